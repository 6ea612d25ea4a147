-- bloom_missing and cuckoo_missing: the keys of an array that are definitely absent from the filter

CREATE SCHEMA missing;
SET search_path = missing, public;
\pset null NULL

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

-- each key once, in order of first appearance, without NULLs, in one dimension
SELECT bloom_missing(f, keys) AS bloom, cuckoo_missing(c, keys) AS cuckoo, bloom_missing(f, keys) IS DISTINCT FROM cuckoo_missing(c, keys) AS differ
FROM (SELECT bloom_agg(n) AS f, cuckoo_agg(n) AS c FROM generate_series(1, 10) n) x,
     (VALUES (1, '{1,20,2,30,20}'::int[]), (2, '{30,NULL,20,NULL,30,30}'), (3, '{1,2,3}'), (4, '{NULL}'), (5, '{}'), (6, NULL), (7, '[5:6][0:1]={{40,1},{NULL,30}}')) v(line, keys)
ORDER BY line;
SELECT bloom_missing(NULL, array[1]) AS null_filter, bloom_missing(bloom_new(10), array[3, 1, 3]) AS of_an_empty_filter,
       cuckoo_missing(cuckoo_new(10), '{}'::int[]) AS nothing_of_an_empty_filter, pg_typeof(bloom_missing(bloom_new(10), '{}'::date[])) AS type;

-- the result has the type of the array, passed by value or by reference; a literal is an array of texts
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN some_ints AS int[];
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
SELECT pg_typeof(a), a, pg_typeof(b), b, pg_typeof(c), c, pg_typeof(d), d, pg_typeof(e), e
FROM (SELECT bloom_missing(bloom_agg(1), '{1,2}'::smallint[]) AS a, bloom_missing(bloom_agg('x'), '{x,"a b",NULL,x,y}') AS b,
             bloom_missing(bloom_agg('red'::colour), '{blue,red}'::colour[]) AS c, bloom_missing(bloom_agg(1), '{1,2}'::positive[]) AS d,
             bloom_missing(bloom_agg(1), '{1,2}'::some_ints) AS e) x;
SELECT bloom_missing(bloom_agg(array[1]), NULL::int[]) AS of_null, bloom_missing(bloom_agg(int4range(1, 5)), array[int4range(1, 5), int4range(2, 3), '[2,2]']) AS ranges,
       bloom_missing(bloom_agg('{"a":1}'::jsonb), array['{"a":1}', '{"a": 2}', '{"a":2}']::jsonb[]) AS documents,
       cuckoo_missing(cuckoo_agg(md5('1')::uuid), array[md5('1'), md5('2')]::uuid[]) AS uuids;

-- of keys that are equal in SQL, the first is returned
SELECT bloom_missing(bloom_agg(1.0), '{1.00,2.50,2.5,-0.0,0}'::numeric[]) AS numerics, bloom_missing(bloom_agg(0::float8), '{-0,NaN,NaN}'::float8[]) AS floats,
       bloom_missing(bloom_agg('1 mon'::interval), '{30 days,1 day,24 hours}'::interval[]) AS intervals, bloom_missing(bloom_agg('a'), '{"a ","b ",b}'::text[]) AS texts,
       bloom_missing(bloom_agg('a'), '{a,b}'::char(3)[]) AS padded;

-- a key of the wrong class is an error, and so is a state that is not a filter
SELECT outcome('SELECT bloom_missing(bloom_agg(1), array[''a''])');
SELECT outcome('SELECT cuckoo_missing(cuckoo_agg(''a''::text), array[1])');
SELECT outcome('SELECT bloom_missing(bloom_agg(1), array[1.5])');
SELECT outcome('SELECT bloom_missing(bloom_new(1), array[point(1, 2)])');
CREATE AGGREGATE state(int) (SFUNC = _bloom_agg_transition, STYPE = bloom);
SELECT outcome('SELECT bloom_missing(state(1), array[1])');
SELECT outcome('SELECT bloom_missing(state(1), ''{}''::int[])');

-- every storage option, with few keys (read in slices) and many (loaded): the same results as bloom_contains
CREATE TABLE stored (name text, plain bloom, extended bloom, counted cuckoo);
ALTER TABLE stored ALTER extended SET STORAGE extended;
INSERT INTO stored SELECT 'inline', bloom_agg(n), bloom_agg(n), cuckoo_agg(n) FROM generate_series(1, 500) n
  UNION ALL SELECT 'lines', bloom_agg(n), bloom_agg(n), cuckoo_agg(n) FROM generate_series(1, 50000) n
  UNION ALL SELECT 'layers', bloom_add_all(bloom_new(100), array_agg(n)), bloom_add_all(bloom_new(100), array_agg(n)), cuckoo_add_all(cuckoo_new(100), array_agg(n)) FROM generate_series(1, 50000) n
  UNION ALL SELECT 'list', bloom_agg(n, 1000000), bloom_agg(n, 1000000), cuckoo_agg(n, 1000000) FROM generate_series(1, 5000) n;
SELECT name, cardinality(keys) AS asked, cardinality(bloom_missing(plain, keys)) > 0 AS some,
       bloom_missing(plain, keys) = ARRAY(SELECT k FROM (SELECT k, min(o) AS o FROM unnest(keys) WITH ORDINALITY u(k, o) WHERE NOT bloom_contains(plain, k) GROUP BY k) x ORDER BY o) AS bloom,
       bloom_missing(extended, keys) = bloom_missing(plain, keys) AS compressed,
       cuckoo_missing(counted, keys) = ARRAY(SELECT k FROM (SELECT k, min(o) AS o FROM unnest(keys) WITH ORDINALITY u(k, o) WHERE NOT cuckoo_contains(counted, k) GROUP BY k) x ORDER BY o) AS cuckoo
FROM stored, (VALUES (array[77, 999999, 77, 999998, 999999]), (ARRAY(SELECT abs(bloom_hash(n) % 100000)::int FROM generate_series(1, 60000) n))) v(keys)
ORDER BY name, cardinality(keys);

-- a PL/pgSQL variable that is changed in place since 18
DO $$
DECLARE
  f bloom := bloom_new(100);
  fresh int[] := '{}';
BEGIN
  FOR i IN 1 .. 300 LOOP
    fresh := fresh || bloom_missing(f, array[i / 2]);
    f := bloom_add(f, i / 2);
  END LOOP;
  ASSERT (SELECT count(*) = count(DISTINCT k) FROM unnest(fresh) k), 'a key was new twice';
  ASSERT cardinality(fresh) BETWEEN 145 AND 151, cardinality(fresh);
END $$;

-- for any array, the missing and the contained keys together are all of its keys
SELECT count(*) AS arrays, count(*) FILTER (WHERE m <> e) AS wrong
FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 100) n) x, generate_series(1, 500) seed,
LATERAL (SELECT array_agg(CASE WHEN bloom_hash(seed * 1000 + i) % 11 <> 0 THEN abs(bloom_hash(seed * 1000 - i) % 200)::int END ORDER BY i) AS keys FROM generate_series(1, 1 + seed % 50) i) k,
LATERAL (SELECT bloom_missing(f, keys) AS m, ARRAY(SELECT k FROM (SELECT k, min(o) AS o FROM unnest(keys) WITH ORDINALITY u(k, o) WHERE k IS NOT NULL AND NOT bloom_contains(f, k) GROUP BY k) y ORDER BY o) AS e) r;
