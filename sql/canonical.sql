-- P4: the same keys and the same geometry give the same bytes.  No function changes its argument.

CREATE SCHEMA canonical;
SET search_path = canonical, public;
CREATE TYPE colour AS ENUM ('red', 'green');

-- Runs a query and returns its single value as text, or the error with its SQLSTATE, detail and hint.
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
  detail text;
  hint text;
BEGIN
  EXECUTE query INTO result;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n-> ', sqlstate || ': ' || sqlerrm, nullif(detail, ''), nullif(hint, ''));
END $$;

-- Reproducible keys: k is text, i covers the whole range of bigint.
CREATE TABLE keys AS
  SELECT n, md5(n::text) AS k,
         ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint AS i
  FROM generate_series(1, 100000) n;
ANALYZE keys;

-- any order, repeated keys, one key per call or all keys in one call
SELECT count(DISTINCT f::text) FROM (
  SELECT bloom_agg(k, 1000) FROM keys WHERE n <= 700
  UNION ALL SELECT bloom_agg(k, 1000 ORDER BY k) FROM keys WHERE n <= 700
  UNION ALL SELECT bloom_agg(k, 1000) FROM (SELECT k FROM keys, generate_series(1, 3) WHERE n <= 700 ORDER BY md5(k || generate_series)) x
) v(f);
SELECT bloom_add_all(bloom_new(1000), array_agg(k)) =
       bloom_add_all(bloom_add_all(bloom_new(1000), array_agg(k ORDER BY n DESC) FILTER (WHERE n > 20)), array_agg(k) FILTER (WHERE n <= 30)) AS same
FROM keys WHERE n <= 700;

-- every number of keys around the change from list to lines
SELECT count(*) FROM generate_series(1, 40) size,
LATERAL (SELECT bloom_agg(n, 100) AS up, bloom_agg(n, 100 ORDER BY n DESC) AS down,
                bloom_agg(n / 2, 100 ORDER BY n) = bloom_agg(n / 2, 100 ORDER BY n DESC) AS repeated
         FROM generate_series(1, size) n) f
WHERE up = down AND repeated;

-- with and without workers, typed and polymorphic, declared and automatic capacity
CREATE TABLE many AS SELECT n AS id, md5(n::text) AS k, n::oid AS o, (n % 50)::oid AS few FROM generate_series(1, 300000) n;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE by_mode (mode text, typed bloom, typed_sized bloom, typed_small bloom, poly bloom, poly_sized bloom, of_few bloom);
SET max_parallel_workers_per_gather = 0;
INSERT INTO by_mode SELECT 'serial', bloom_agg(k), bloom_agg(k, 300000, 0.001), bloom_agg(k, 2000), bloom_agg(o), bloom_agg(o, 300000, 0.1), bloom_agg(few, 100000) FROM many;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT bloom_agg(k), bloom_agg(o) FROM many;
INSERT INTO by_mode SELECT 'parallel', x.* FROM (SELECT bloom_agg(k), bloom_agg(k, 300000, 0.001), bloom_agg(k, 2000), bloom_agg(o), bloom_agg(o, 300000, 0.1), bloom_agg(few, 100000) FROM many) x;
RESET ALL;
SET search_path = canonical, public;
SELECT a.typed = b.typed AS typed, a.typed_sized = b.typed_sized AS typed_sized, a.typed_small = b.typed_small AS typed_small,
       a.poly = b.poly AS poly, a.poly_sized = b.poly_sized AS poly_sized, a.of_few = b.of_few AS of_few
FROM by_mode a, by_mode b WHERE a.mode = 'serial' AND b.mode = 'parallel';
SELECT count(*) AS lost FROM many, by_mode
WHERE NOT (bloom_contains(typed, k) AND bloom_contains(typed_sized, k) AND bloom_contains(typed_small, k)
       AND bloom_contains(poly, o) AND bloom_contains(poly_sized, o) AND bloom_contains(of_few, few)) AND id % 10 = 0;

-- arguments are not modified
DO $$
DECLARE
  f bloom := bloom_agg(n) FROM generate_series(1, 1000) n;
  empty bloom := bloom_new(1000);
  before text := f::text || empty::text;
  g bloom;
BEGIN
  g := bloom_add(f, 5000);
  g := bloom_add(empty, 1);
  g := bloom_add_all(f, array[7000, 8000]);
  g := bloom_add_all(empty, array[1, 2, 3]);
  ASSERT before = f::text || empty::text, 'an argument was changed';
  ASSERT g <> empty;
END $$;

-- results do not depend on settings
SET timezone = 'UTC';
SELECT bloom_hash('2024-01-01 00:00+00'::timestamptz) AS h \gset
SET timezone = 'Asia/Tokyo'; SET extra_float_digits = -5; SET intervalstyle = iso_8601; SET bytea_output = escape;
SELECT bloom_hash('2024-01-01 00:00+00'::timestamptz) = :h AS timestamptz, bloom_hash(0.1::float8) <> bloom_hash(0.1000001::float8) AS float;
SELECT bloom_contains(bloom_agg('2024-01-01 09:00+09'::timestamptz), '2024-01-01 00:00+00'::timestamptz);
RESET ALL;
SET search_path = canonical, public;

-- Golden vectors.  A change to any of these would break every stored filter.
SELECT expression, outcome(format('SELECT bloom_hash(%s)', expression)) AS hash FROM (VALUES
  (1, '0'), (2, '1'), (3, '-1'), (4, '9223372036854775807'), (5, ''''''), (6, '''a'''), (7, '''Motörhead'''),
  (8, 'repeat(''x'', 300)'), (9, '''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11''::uuid'), (10, '''\xdeadbeef''::bytea'), (11, 'true'), (12, '0.5::float8'),
  (13, '''NaN''::float8'), (14, '1.50'), (15, '''2024-02-29''::date'), (16, '''12:34:56''::time'), (17, '''12:34:56+02''::timetz'),
  (18, '''2024-02-29 12:34:56''::timestamp'), (19, '''2024-02-29 12:34:56+00''::timestamptz'), (20, '''1 mon''::interval'),
  (21, '''10.1.2.3/8''::inet'), (22, '''::1''::inet'), (23, '''08:00:2b:01:02:03''::macaddr'), (24, '''08:00:2b:01:02:03:04:05''::macaddr8'), (25, 'B''10110'''),
  (26, '1247::oid'), (27, '''12.30''::money'), (28, '''red''::colour'), (29, 'array[1,2,3]'), (30, 'array[[1,null],[3,4]]'),
  (31, 'row(1, ''a''::text, null::int)'), (32, 'int4range(1,10)'), (33, '''empty''::int4range'), (34, '''{[1,2),[3,4)}''::int4multirange'),
  (35, '''{"a": [1.0, "x", null, true], "b": {}}''::jsonb'), (36, '''1''::jsonb')) v(line, expression)
ORDER BY line;

SELECT 'empty' AS filter, bloom_new(1000) AS bytes
UNION ALL SELECT 'one key', bloom_agg(1)
UNION ALL SELECT 'twenty', bloom_agg(n) FROM generate_series(1, 20) n
UNION ALL SELECT 'list', bloom_agg(n::text, 1000) FROM generate_series(1, 3) n
UNION ALL SELECT 'named class', bloom_agg('red'::colour)
UNION ALL SELECT 'layers', bloom_agg(1) | bloom_agg(n, 100) FROM generate_series(2, 9) n
UNION ALL SELECT 'grown', bloom_add_all(bloom_add_all(bloom_new(5), array[1, 2, 3, 4, 5, 6, 7, 8, 9]), array[10, 11, 12, 13, 14, 15])
UNION ALL SELECT 'window', bloom_add_all(bloom_new(4, 0.05, max_layers => 2), array['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q'])
UNION ALL SELECT 'fixed', bloom_add(bloom_new(1000, growth => 0), 1.5)
UNION ALL SELECT 'two groups', bloom_agg(n, 100, 0.001) FROM generate_series(1, 100) n;
SELECT md5(bloom_agg(n)::bytea) AS ten_thousand, md5(bloom_agg(n::text, 100000, 1e-6)::bytea) AS large,
       md5(bloom_agg(md5(n::text)::uuid, null, 1e-9)::bytea) AS four_groups,
       md5(bloom_add_all(bloom_new(100), array_agg(n))::bytea) AS grown, md5(bloom_agg(n, 1000)::bytea) AS overfed,
       md5((bloom_agg(n, 5000) FILTER (WHERE n <= 4000) & bloom_agg(n, 5000) FILTER (WHERE n BETWEEN 2000 AND 6000))::bytea) AS intersection
FROM generate_series(1, 10000) n;
