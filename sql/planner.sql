-- Planner estimates

CREATE SCHEMA planner;
SET search_path = planner, public;

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

CREATE FUNCTION estimate(query text, OUT estimated numeric, OUT actual numeric) LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  estimated := plan -> 0 -> 'Plan' ->> 'Plan Rows';
  actual := plan -> 0 -> 'Plan' ->> 'Actual Rows';
END $$;
SET max_parallel_workers_per_gather = 0;

-- uniform and skewed columns, with ids in the filter and ids not in it
CREATE TABLE facts AS
  SELECT n AS id, n % 10000 AS uniform, floor(10000 * ((n * 7919::bigint % 100003) / 100003.0) ^ 4)::int AS skewed,
         'key-' || n % 2000 AS word, CASE WHEN n % 4 = 0 THEN NULL ELSE n % 500 END AS sparse
  FROM generate_series(1, 100000) n;
-- statistics from all rows, not from a random sample
ALTER TABLE facts ALTER id SET STATISTICS 400, ALTER uniform SET STATISTICS 400, ALTER skewed SET STATISTICS 400, ALTER word SET STATISTICS 400, ALTER sparse SET STATISTICS 400;
ANALYZE facts;
SELECT name, clause, estimated BETWEEN actual / 2 AND actual * 2 AS within_2x
FROM (VALUES ('1 % of uniform', 'n % 100 = 0', 'uniform'), ('10 % of uniform', 'n % 10 = 0', 'uniform'), ('90 % of uniform', 'n % 10 > 0', 'uniform'),
             ('all of uniform', 'true', 'uniform'), ('head of skewed', 'n < 10', 'skewed'), ('tail of skewed', 'n > 5000', 'skewed'),
             ('1 % of skewed', 'n % 100 = 7', 'skewed'), ('with NULLs', 'n < 250', 'sparse'), ('of a unique column', 'n % 50 = 0', 'id')) v(name, clause, col),
LATERAL (SELECT bloom_agg(n) AS f FROM generate_series(0, 9999) n WHERE CASE clause WHEN 'n % 100 = 0' THEN n % 100 = 0 WHEN 'n % 10 = 0' THEN n % 10 = 0 WHEN 'n % 10 > 0' THEN n % 10 > 0
         WHEN 'true' THEN true WHEN 'n < 10' THEN n >= 0 AND n < 10 WHEN 'n > 5000' THEN n > 5000 WHEN 'n % 100 = 7' THEN n % 100 = 7 WHEN 'n < 250' THEN n >= 0 AND n < 250
         ELSE n % 50 = 0 END) made,
LATERAL estimate(format('SELECT * FROM facts WHERE bloom_contains(%L, %I)', f, col)) e;
-- the same for the operator, and for text keys
SELECT estimated BETWEEN actual / 2 AND actual * 2 AS by_operator FROM (SELECT bloom_agg(n) AS f FROM generate_series(0, 9999, 10) n) x, estimate(format('SELECT * FROM facts WHERE %L::bloom @> uniform', f));
SELECT estimated BETWEEN actual / 2 AND actual * 2 AS of_text FROM (SELECT bloom_agg('key-' || n) AS f FROM generate_series(0, 99) n) x, estimate(format('SELECT * FROM facts WHERE bloom_contains(%L, word)', f));
SELECT estimated BETWEEN actual / 2 AND actual * 2 AS of_layers
FROM (SELECT bloom_add_all(bloom_add_all(bloom_new(10), ARRAY(SELECT generate_series(0, 5000, 50))), ARRAY(SELECT generate_series(5000, 9999, 50))) AS f) x, estimate(format('SELECT * FROM facts WHERE bloom_contains(%L, uniform)', f));
SELECT estimated <= 2 AS nothing_in_null FROM estimate('SELECT * FROM facts WHERE bloom_contains(NULL, uniform)');
SELECT estimated <= 2 AS nothing_in_empty FROM estimate('SELECT * FROM facts WHERE bloom_contains(bloom_new(100), uniform)');
-- a constant of the wrong class is an error during execution, not during planning
SELECT plan_has(format('SELECT * FROM facts WHERE bloom_contains(%L::bloom, uniform)', bloom_agg('x')), 'Filter: ') AS planned;

-- statistics of a column that is cast to another type
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE cast_columns AS SELECT 'pg_class'::regclass AS r, 'x' COLLATE ignoring AS c FROM generate_series(1, 1000);
ANALYZE cast_columns;
SELECT count(*) FROM cast_columns WHERE bloom_contains(bloom_add(bloom_new(10), 'pg_class'::regclass::oid), r::oid);
SELECT count(*) FROM cast_columns WHERE bloom_add(bloom_new(10), 'x') @> (c COLLATE "C");

-- a prefilter does not change the estimate of the join
CREATE TABLE dims AS SELECT n AS id, n % 100 AS region FROM generate_series(0, 9999) n;
ANALYZE dims;
SELECT p.actual = f.actual AS same_rows, f.estimated / p.estimated BETWEEN 0.8 AND 1.2 AS same_estimate
FROM estimate('SELECT * FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7') p,
     estimate('SELECT * FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7 AND bloom_contains((SELECT bloom_agg(id) FROM dims WHERE region = 7), facts.uniform)') f;
SELECT p.actual = f.actual AS same_rows, f.estimated / p.estimated BETWEEN 0.8 AND 1.2 AS same_estimate
FROM estimate('SELECT * FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7') p,
     estimate('SELECT * FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7 AND (SELECT bloom_agg(id) FROM dims WHERE region = 7) @> facts.uniform') f;

-- cheap conditions are evaluated first
SELECT plan_has('SELECT * FROM facts WHERE bloom_contains((SELECT bloom_agg(id) FROM dims), uniform) AND id > 50000',
                'Filter: \(\(id > 50000\) AND bloom_contains') AS cheap_first;

-- with a subquery the query runs in parallel, and the filter is built once
ALTER TABLE facts SET (parallel_workers = 2);
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
\set query 'SELECT count(*) FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7 AND bloom_contains((SELECT bloom_agg(id) FROM dims WHERE region = 7), facts.uniform)'
SELECT plan_has(:'query', '^ *InitPlan') AS made_once, plan_has(:'query', 'Parallel Seq Scan on facts') AS parallel_scans, plan_has(:'query', 'Filter: bloom_contains') AS filters;
SELECT count(*) FROM facts JOIN dims ON facts.uniform = dims.id WHERE region = 7 AND bloom_contains((SELECT bloom_agg(id) FROM dims WHERE region = 7), facts.uniform);
RESET ALL;
SET search_path = planner, public;
