-- Aggregates: overload resolution, groups, window frames, memory (P7)

CREATE SCHEMA aggregates;
SET search_path = aggregates, public;

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

-- overload chosen for each type
CREATE DOMAIN positive AS integer CHECK (value > 0);
CREATE DOMAIN code AS varchar(10);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a integer, b text);
CREATE TABLE every_type (a int2, b int4, c int8, d text, e varchar(5), f char(5), g name, h "char", i uuid, j numeric, k float8, l date,
  m timestamptz, n int[], o text[], p inet, q bytea, r boolean, s jsonb, t oid, u code, v positive, w mood, x pair, y int4range);
INSERT INTO every_type VALUES (1, 1, 1, '1', '1', '1', '1', '1', md5('1')::uuid, 1, 1, '2024-01-01', '2024-01-01Z', '{1}', '{1}', '::1', '1', true, '1', 1, '1', 1, 'ok', row(1, '1'), '[1,2)');
SELECT attname, outcome(format('SELECT bloom_contains(bloom_agg(%1$I), %1$I) AND bloom_contains(bloom_agg(%1$I, 10), %1$I) AND bloom_contains(bloom_agg(%1$I, 10, 0.1), %1$I)
                          AND bloom_contains(bloom_add(bloom_new(10), %1$I), %1$I) AND bloom_hash(%1$I) IS NOT NULL FROM every_type GROUP BY %1$I', attname)) AS found
FROM pg_attribute WHERE attrelid = 'every_type'::regclass AND attnum > 0
  AND outcome(format('SELECT bloom_contains(bloom_agg(%1$I), %1$I) AND bloom_contains(bloom_agg(%1$I, 10), %1$I) AND bloom_contains(bloom_agg(%1$I, 10, 0.1), %1$I)
                          AND bloom_contains(bloom_add(bloom_new(10), %1$I), %1$I) AND bloom_hash(%1$I) IS NOT NULL FROM every_type GROUP BY %1$I', attname)) <> 'true';
SELECT bloom_contains(bloom_agg('literal'), 'literal'), bloom_contains(bloom_agg('literal', 10, 0.5), 'literal');
PREPARE probe AS SELECT bloom_contains(bloom_agg('x'::text), $1);
EXECUTE probe('x');

-- groups of every size (list, small lines, expanded object), with DISTINCT, FILTER and ORDER BY
SELECT size, count(*) FILTER (WHERE NOT bloom_contains(auto, key)) AS auto_lost, count(*) FILTER (WHERE NOT bloom_contains(sized, key)) AS sized_lost,
       count(*) FILTER (WHERE NOT bloom_contains(poly, key::oid)) AS poly_lost, count(*) FILTER (WHERE NOT bloom_contains(strict, key)) AS strict_lost,
       bool_and(auto = ordered AND auto = deduped) AS same
FROM (SELECT size, bloom_agg(key) AS auto, bloom_agg(key, 1000) AS sized, bloom_agg(key::oid) AS poly, bloom_agg(key, 20000, 1e-9) AS strict,
             bloom_agg(key ORDER BY -key) AS ordered, bloom_agg(DISTINCT key) AS deduped
      FROM (VALUES (1), (3), (10), (11), (12), (100), (1000), (8000), (8200), (40000)) s(size), generate_series(1, size) key GROUP BY size) g,
     generate_series(1, size) key
GROUP BY size ORDER BY size;

-- a state is moved when the name of its key class is stored in it
SELECT size, bool_and(bloom_contains(f, array[key])) FROM (
  SELECT size, bloom_agg(array[key], null, 0.001) AS f FROM (VALUES (1), (9), (10), (11), (20000)) s(size), generate_series(1, size) key GROUP BY size) g, generate_series(1, size) key
GROUP BY size ORDER BY size;

-- window frames: the final function leaves the state intact
SELECT n, bloom_cardinality(grows) AS grows, bloom_cardinality(slides) AS slides, grows = whole AS is_whole,
       bloom_contains(slides, n) AND bloom_contains(grows, 1) AND bloom_contains(poly, n::oid) AS found
FROM (SELECT n, bloom_agg(n) OVER (ORDER BY n) AS grows, bloom_agg(n, 100) OVER (ORDER BY n ROWS 2 PRECEDING) AS slides,
             bloom_agg(n::oid) OVER (ORDER BY n) AS poly, bloom_agg(n) OVER () AS whole FROM generate_series(1, 12) n) w ORDER BY n;
SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n)) AS lost, count(DISTINCT bloom_stats(f)) AS frames
FROM (SELECT n, bloom_agg(n) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS f FROM generate_series(1, 300) n) w;

-- hash aggregation that spills to disk, and sorted grouping
SET work_mem = '64kB';
SELECT count(*) AS groups, sum((NOT bloom_contains(f, k))::int) AS lost FROM (SELECT n % 20000 AS g, min(k) AS k, bloom_agg(k) AS f FROM keys GROUP BY 1) x;
SET enable_hashagg = off;
SELECT count(*) AS groups, sum((NOT bloom_contains(f, k))::int) AS lost FROM (SELECT n % 20000 AS g, min(k) AS k, bloom_agg(k) AS f FROM keys GROUP BY 1) x;
RESET ALL;
SET search_path = aggregates, public;

-- a million small groups in a hash aggregate
SET work_mem = '1GB';
SET max_parallel_workers_per_gather = 0;
SELECT count(*) AS groups, count(*) FILTER (WHERE bloom_contains(f, g * 3 + 1)) AS found
FROM (SELECT n / 3 AS g, bloom_agg(n) AS f FROM generate_series(0, 2999999) n GROUP BY n / 3) x;
RESET ALL;
SET search_path = aggregates, public;

-- memory per group beyond that of count(): at most 200 bytes for ten keys
CREATE FUNCTION hash_memory(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Peak Memory Usage')::bigint * 1024;
END $$;
SET work_mem = '1GB'; SET max_parallel_workers_per_gather = 0; SET enable_sort = off;
SELECT key, (hash_memory(format(query, 'bloom_agg(' || key || ')')) - hash_memory(format(query, 'count(n)'))) / 200000 <= 200 AS small
FROM (VALUES ('n'), ('n::oid')) k(key), (VALUES ('SELECT %s FROM generate_series(0, 1999999) n GROUP BY n / 10')) q(query);
RESET ALL;
SET search_path = aggregates, public;

-- the size of a state depends on the distinct keys, not on the rows: a million rows, few keys
SELECT bloom_cardinality(bloom_agg('a rather long key, in a short list of them, number ' || n % 1000)) BETWEEN 990 AND 1010 AS keys,
       bloom_cardinality(bloom_agg(n % 1000, 5000)) BETWEEN 990 AND 1010 AS sized,
       bloom_cardinality(bloom_agg((n % 1000)::oid, 5000)) BETWEEN 990 AND 1010 AS poly
FROM generate_series(1, 1000000) n;

-- a partitioned table: partial aggregates under Append
CREATE TABLE parted (id int, k text) PARTITION BY HASH (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO parted SELECT n, k FROM keys WHERE n <= 20000;
ANALYZE parted;
SET enable_partitionwise_aggregate = on;
SELECT bloom_agg(k) = (SELECT bloom_agg(k) FROM keys WHERE n <= 20000) AS same FROM parted;
RESET ALL;
SET search_path = aggregates, public;

-- the pattern from the README: a filter before a join, in a parallel plan
CREATE TABLE many AS SELECT n AS id FROM generate_series(1, 300000) n;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
\set query 'SELECT count(*) FROM many WHERE bloom_contains((SELECT bloom_agg(id) FROM many WHERE id <= 100), id)'
SELECT plan_has(:'query', '^ *InitPlan') AS filter_made_once, plan_has(:'query', 'Gather') AS gathers,
       plan_has(:'query', 'Partial Aggregate') AS partial_aggregates, plan_has(:'query', 'Filter: bloom_contains') AS filters;
SELECT count(*) BETWEEN 100 AND 5000 AS some, count(*) FILTER (WHERE id <= 100) AS wanted
FROM many WHERE bloom_contains((SELECT bloom_agg(id) FROM many WHERE id <= 100), id);
RESET ALL;
SET search_path = aggregates, public;

-- states with more and with fewer keys than declared are merged in any order
CREATE AGGREGATE merge_overfed(bloom) (SFUNC = _bloom_agg_combine, STYPE = bloom, FINALFUNC = _bloom_agg_final);
SELECT bool_and(bloom_contains_all(f, ARRAY(SELECT generate_series(1, 120)))) AS found, max((bloom_stats(f)).layers) < 12 AS few_layers FROM (VALUES ('{1,2,3}'::int[]), ('{1,3,2}'), ('{2,1,3}'), ('{2,3,1}')) o(ordering),
LATERAL (SELECT merge_overfed(state ORDER BY array_position(ordering, which)) AS f FROM
  (SELECT 1 AS which, bloom_agg(n, 6, 0.001) AS state FROM generate_series(1, 1) n UNION ALL SELECT 2, bloom_agg(n, 6, 0.001) FROM generate_series(1, 119) n UNION ALL SELECT 3, bloom_agg(n, 6, 0.001) FROM generate_series(120, 120) n) s) m;
DROP AGGREGATE merge_overfed(bloom);
