-- The bytes of a cuckoo filter: canonical form, validation, storage and transfer

CREATE SCHEMA cuckoo_bytes;
SET search_path = cuckoo_bytes, public;
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

-- Counts the lines of a query's plan that match a pattern (the wording of plans differs between major versions).
CREATE FUNCTION plan_has(query text, pattern text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  line text;
  result bigint := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    result := result + (line ~ pattern)::int;
  END LOOP;
  RETURN result;
END $$;

-- Reproducible keys: k is text, i covers the whole range of bigint.
CREATE TABLE keys AS
  SELECT n, md5(n::text) AS k,
         ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint AS i
  FROM generate_series(1, 100000) n;
ANALYZE keys;

-- any order, any number of workers, typed or polymorphic: the same bytes
SELECT count(DISTINCT f::text) FROM (
  SELECT cuckoo_agg(k, 1000) FROM keys WHERE n <= 950
  UNION ALL SELECT cuckoo_agg(k, 1000 ORDER BY k) FROM keys WHERE n <= 950
  UNION ALL SELECT cuckoo_agg(k, 1000 ORDER BY n DESC) FROM keys WHERE n <= 950
) v(f);
SELECT count(*) FROM generate_series(1, 60) size,
LATERAL (SELECT cuckoo_agg(n, 100) = cuckoo_agg(n, 100 ORDER BY n DESC) AS sized, cuckoo_agg(n) = cuckoo_agg(n ORDER BY -n) AS auto,
                cuckoo_agg(n / 2, 100 ORDER BY n) = cuckoo_agg(n / 2, 100 ORDER BY n DESC) AS repeated,
                cuckoo_agg(n, 10) = cuckoo_agg(n, 10 ORDER BY n DESC) AS overfed
         FROM generate_series(1, size) n) f
WHERE sized AND auto AND repeated AND overfed;
CREATE TABLE in_parallel AS SELECT n AS id, md5((n % 250000)::text) AS k, (n % 250000)::oid AS o, (n % 50)::oid AS few FROM generate_series(1, 300000) n;
ALTER TABLE in_parallel SET (parallel_workers = 2);
ANALYZE in_parallel;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
CREATE TABLE cuckoo_by_mode (mode text, typed cuckoo, sized cuckoo, overfed cuckoo, poly cuckoo, of_few cuckoo);
SET max_parallel_workers_per_gather = 0;
INSERT INTO cuckoo_by_mode SELECT 'serial', cuckoo_agg(k), cuckoo_agg(k, 300000, 0.001), cuckoo_agg(k, 2000), cuckoo_agg(o), cuckoo_agg(few, 100000) FROM in_parallel;
SET max_parallel_workers_per_gather = 2;
SELECT plan_has('SELECT cuckoo_agg(k), cuckoo_agg(o) FROM in_parallel', 'Partial Aggregate') AS partial;
INSERT INTO cuckoo_by_mode SELECT 'parallel', x.* FROM (SELECT cuckoo_agg(k), cuckoo_agg(k, 300000, 0.001), cuckoo_agg(k, 2000), cuckoo_agg(o), cuckoo_agg(few, 100000) FROM in_parallel) x;
RESET ALL;
SET search_path = cuckoo_bytes, public;
SELECT a.typed = b.typed AS typed, a.sized = b.sized AS sized, a.overfed = b.overfed AS overfed, a.poly = b.poly AS poly, a.of_few = b.of_few AS of_few
FROM cuckoo_by_mode a, cuckoo_by_mode b WHERE a.mode = 'serial' AND b.mode = 'parallel';
SELECT count(*) AS lost FROM in_parallel, cuckoo_by_mode
WHERE NOT (cuckoo_contains(typed, k) AND cuckoo_contains(sized, k) AND cuckoo_contains(overfed, k) AND cuckoo_contains(poly, o) AND cuckoo_contains(of_few, few)) AND id % 20 = 0;

-- no function changes its argument
DO $$
DECLARE
  f cuckoo := cuckoo_agg(n) FROM generate_series(1, 1000) n;
  empty cuckoo := cuckoo_new(1000);
  before text := f::text || empty::text;
  g cuckoo;
BEGIN
  g := cuckoo_add(f, 5000);
  g := cuckoo_delete(f, 5);
  g := cuckoo_add_all(empty, array[1, 2, 2]);
  g := cuckoo_delete_all(f, array[1, 2, 3]);
  g := cuckoo_merge(f, f);
  ASSERT before = f::text || empty::text, 'an argument was changed';
  ASSERT g <> f;
END $$;

-- Golden vectors.  A change to any of these would break every stored filter.
SELECT 'empty' AS filter, cuckoo_new(1000) AS bytes
UNION ALL SELECT 'fixed', cuckoo_new(1000, growth => 0)
UNION ALL SELECT 'one key', cuckoo_agg(1)
UNION ALL SELECT 'copies', cuckoo_add_all(cuckoo_new(100), array[1, 2, 2, 3, 3, 3])
UNION ALL SELECT 'table', cuckoo_agg(n, NULL, 0.5) FROM generate_series(1, 20) n
UNION ALL SELECT 'table with copies', cuckoo_agg(n % 13, 13) FROM generate_series(1, 16) n
UNION ALL SELECT 'one bucket', cuckoo_add_all(cuckoo_new(4, 0.9, 0), array['a', 'b', 'c', 'd', 'e'])
UNION ALL SELECT 'grown', cuckoo_add_all(cuckoo_new(5, 0.01, 4), array_agg(n)) FROM generate_series(1, 24) n
UNION ALL SELECT 'deleted', cuckoo_delete_all(cuckoo_add_all(cuckoo_new(12, 0.02, 0), array_agg(n)), array[1, 3, 5]) FROM generate_series(1, 12) n
UNION ALL SELECT 'named class', cuckoo_agg('red'::colour)
UNION ALL SELECT 'saturated', cuckoo_add_all(cuckoo_new(3), array_fill(1, array[300]));
SELECT md5(cuckoo_agg(n)::bytea) AS ten_thousand, md5(cuckoo_agg(n::text, 100000, 1e-6)::bytea) AS large,
       md5(cuckoo_agg(md5(n::text)::uuid, NULL, 1e-9)::bytea) AS strict, md5(cuckoo_add_all(cuckoo_new(100), array_agg(n))::bytea) AS grown,
       md5(cuckoo_agg(n % 3000, 1000)::bytea) AS overfed, md5(cuckoo_delete_all(cuckoo_agg(n), array_agg(n) FILTER (WHERE n % 3 = 0))::bytea) AS deleted,
       md5(cuckoo_merge(cuckoo_agg(n, 5000) FILTER (WHERE n <= 4000), cuckoo_agg(n, 5000) FILTER (WHERE n BETWEEN 2000 AND 6000))::bytea) AS merged
FROM generate_series(1, 10000) n;

-- external bytes
SELECT outcome('SELECT ''''::cuckoo');
SELECT outcome('SELECT bloom_agg(1)::text::cuckoo');
SELECT outcome('SELECT cuckoo_agg(1)::bytea::bloom');
SELECT outcome('SELECT (cuckoo_new(10)::bytea || ''\x00'')::cuckoo');
-- 36 bytes that claim to have four billion buckets
SELECT outcome('SELECT overlay(cuckoo_new(1)::bytea placing ''\xffffffff'' from 17)::cuckoo');
CREATE TABLE cuckoo_tampered AS
SELECT name, place, change, overlay(f::bytea placing set_byte('\x00', 0, (get_byte(f::bytea, place) + change) % 256) from place + 1) AS bytes
FROM (VALUES ('empty', cuckoo_new(1000)), ('list', cuckoo_add_all(cuckoo_new(1000), array[1, 2, 2, 3])),
             ('table', cuckoo_add_all(cuckoo_new(12, 0.1, 0), array[1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10])), ('named', cuckoo_add(cuckoo_new(50), 'red'::colour))) v(name, f),
LATERAL generate_series(0, length(f::bytea) - 1) place, (VALUES (1), (2), (16), (128), (255)) c(change);
SELECT name, left(outcome, 5) AS outcome, count(*) > 0 AS seen FROM cuckoo_tampered,
LATERAL (SELECT outcome(format('SELECT cuckoo_cardinality(f) >= 0 AND cuckoo_fpp(f) >= 0 AND (cuckoo_stats(f)).bytes > 0 AND f::text::cuckoo = f FROM (VALUES (%L::bytea::cuckoo)) v(f)', bytes))) o(outcome)
GROUP BY 1, 2 ORDER BY 1, 2;

-- every storage option: the same results, and few buffers
CREATE TABLE cuckoos (name text PRIMARY KEY, f cuckoo, highest int);
INSERT INTO cuckoos
  SELECT 'tiny', cuckoo_agg(n), 1 FROM generate_series(1, 1) n
  UNION ALL SELECT 'short header', cuckoo_agg(n), 15 FROM generate_series(1, 15) n
  UNION ALL SELECT 'inline', cuckoo_agg(n), 500 FROM generate_series(1, 500) n
  UNION ALL SELECT 'external', cuckoo_agg(n), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'strict', cuckoo_agg(n, NULL, 1e-9), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'loose', cuckoo_agg(n, NULL, 0.5), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'copies', cuckoo_agg(n / 3), 6666 FROM generate_series(3, 20000) n
  UNION ALL SELECT 'long list', cuckoo_agg(n, 500000), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'grown', cuckoo_add_all(cuckoo_new(10), array_agg(n)), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'empty', cuckoo_new(100000), 0;
CREATE TABLE cuckoo_ways (name text, plain cuckoo, main cuckoo, extended cuckoo, in_array cuckoo[]);
ALTER TABLE cuckoo_ways ALTER main SET STORAGE main, ALTER extended SET STORAGE extended;
INSERT INTO cuckoo_ways SELECT name, f, f, f, array[NULL, f] FROM cuckoos;
CREATE TABLE cuckoo_answers AS
  SELECT name, n, cuckoo_contains(flat, n) AS answer, n <= highest AS added
  FROM (SELECT name, f::text::cuckoo AS flat, highest FROM cuckoos) m, generate_series(1, 40000, 61) n;
SELECT count(*) AS probes, count(*) FILTER (WHERE added AND NOT answer) AS lost FROM cuckoo_answers;
SELECT name, count(*) AS wrong FROM cuckoo_ways JOIN cuckoo_answers USING (name)
WHERE cuckoo_contains(plain, n) <> answer OR cuckoo_contains(main, n) <> answer OR cuckoo_contains(extended, n) <> answer OR cuckoo_contains(in_array[2], n) <> answer GROUP BY name;
SELECT count(*) AS wrong FROM (SELECT * FROM cuckoo_ways JOIN cuckoo_answers USING (name) ORDER BY n, name) x
WHERE cuckoo_contains(plain, n) <> answer OR cuckoo_contains(main, n) <> answer OR cuckoo_contains(extended, n) <> answer OR cuckoo_contains(in_array[2], n) <> answer;
SELECT count(*) AS wrong FROM cuckoo_ways w JOIN (SELECT name, array_agg(n ORDER BY n) AS keys, array_agg(answer ORDER BY n) AS answers FROM cuckoo_answers GROUP BY name) a USING (name)
WHERE cuckoo_contains_each(plain, keys) <> answers OR cuckoo_contains_each(extended, keys) <> answers;

CREATE FUNCTION buffers_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
END $$;
CREATE TABLE thirty AS SELECT g, cuckoo_agg(n * 30 + g) AS f FROM generate_series(1, 100000) n, generate_series(1, 30) g GROUP BY g;
SELECT buffers_of('SELECT count(*) FROM thirty WHERE cuckoo_contains(f, 12345)') <= 30 * 16 + 30 AS few_buffers, count(*) FILTER (WHERE cuckoo_contains(f, 12345)) BETWEEN 1 AND 3 AS found FROM thirty;
DROP TABLE thirty;

-- COPY in text and binary format; equality, DISTINCT, hash index
\copy cuckoos TO 'results/cuckoos.txt'
\copy cuckoos TO 'results/cuckoos.bin' WITH (FORMAT binary)
CREATE TABLE cuckoos_copied (LIKE cuckoos);
\copy cuckoos_copied FROM 'results/cuckoos.txt'
\copy cuckoos_copied FROM 'results/cuckoos.bin' WITH (FORMAT binary)
SELECT count(*), bool_and(c.f = m.f) AS same, bool_and(c.f::text::cuckoo = m.f AND c.f::bytea::cuckoo = m.f) AS round_trips FROM cuckoos m JOIN cuckoos_copied c USING (name);
SELECT count(*) AS filters FROM (SELECT DISTINCT f FROM cuckoos_copied) x;
CREATE INDEX ON cuckoos USING hash (f);
SET enable_seqscan = off;
SELECT name FROM cuckoos WHERE f = (SELECT extended FROM cuckoo_ways WHERE name = 'loose');
RESET enable_seqscan;
SELECT f = f AS eq, f <> f AS ne, f = cuckoo_new(1001) AS other FROM cuckoos WHERE name = 'empty';

DROP TABLE in_parallel, cuckoo_by_mode, cuckoo_tampered, cuckoo_answers, cuckoos_copied;
