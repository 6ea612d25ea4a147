-- When the planner uses the index: for absent keys, and never where it would read the table repeatedly

CREATE SCHEMA index_plans;
SET search_path = index_plans, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
CREATE FUNCTION plan_has(query text, pattern text) RETURNS boolean LANGUAGE sql AS 'SELECT coalesce(bool_or(line ~ pattern), false) FROM plan(query) line';
CREATE FUNCTION total_cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;

-- multiples of ten are keys
CREATE TABLE facts AS SELECT n * 10 AS k, n % 100 AS other, repeat('x', 50) AS filler FROM generate_series(1, 100000) n;
CREATE INDEX facts_k ON facts USING bloomfilter (k);
CREATE TABLE few AS SELECT n * 7 AS k FROM generate_series(1, 20) n;
VACUUM ANALYZE facts, few;

-- an absent key, a present key, arrays of either, and both
SELECT plan('SELECT * FROM facts WHERE k = 5');
SELECT plan('SELECT * FROM facts WHERE k = 50');
SELECT plan('SELECT * FROM facts WHERE k = ANY (''{1,2,3}'')');
SELECT plan('SELECT * FROM facts WHERE k IN (1, 2, 30)');
SELECT plan('SELECT * FROM facts WHERE k = 5 AND other = 7');

-- an unknown key: cheaper than reading the table, more expensive than an index that finds rows
PREPARE by_key(int) AS SELECT count(*) FROM facts WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
SELECT plan('EXECUTE by_key(5)');
EXECUTE by_key(5);
EXECUTE by_key(50);
RESET plan_cache_mode;
PREPARE by_keys(int[]) AS SELECT count(*) FROM facts WHERE k = ANY ($1);
SET plan_cache_mode = force_generic_plan;
EXECUTE by_keys('{5,6,7}');
EXECUTE by_keys('{50,60,7}');
RESET plan_cache_mode;

-- frequent values are assumed to be present, rare ones are not
CREATE TABLE kinds AS SELECT n % 3 AS k, CASE WHEN n % 10000 = 0 THEN n % 7 END AS seldom, NULL::int AS never, repeat('x', 50) AS filler FROM generate_series(1, 100000) n;
CREATE INDEX kinds_k ON kinds USING bloomfilter (k);
CREATE INDEX kinds_seldom ON kinds USING bloomfilter (seldom);
CREATE INDEX kinds_never ON kinds USING bloomfilter (never);
ANALYZE kinds;
PREPARE by_kind(int) AS SELECT count(*) FROM kinds WHERE k = $1;
PREPARE by_seldom(int) AS SELECT count(*) FROM kinds WHERE seldom = $1;
PREPARE by_never(int) AS SELECT count(*) FROM kinds WHERE never = $1;
SET plan_cache_mode = force_generic_plan;
SELECT plan_has('EXECUTE by_kind(1)', 'kinds_k') AS kind, plan_has('EXECUTE by_seldom(1)', 'kinds_seldom') AS seldom, plan_has('EXECUTE by_never(1)', 'kinds_never') AS never;
RESET plan_cache_mode;

-- no key is probed during planning if probing all of them would cost as much as reading the table
CREATE TABLE small WITH (autovacuum_enabled = off) AS SELECT n AS k FROM generate_series(1, 1000) n;
CREATE INDEX small_k ON small USING bloomfilter (k);
ANALYZE small;
CREATE FUNCTION blocks_read() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT pg_stat_force_next_flush(); SELECT pg_stat_clear_snapshot(); SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = ''small_k''';
SELECT pg_stat_force_next_flush();
SELECT blocks_read() AS before \gset
SELECT 'SELECT * FROM small WHERE k IN (' || string_agg((-n)::text, ', ') || ')' AS many FROM generate_series(1, 1000) n \gset
SELECT plan_has(:'many', 'small_k') AS many;
SELECT pg_stat_force_next_flush();
SELECT blocks_read() - :before AS for_many;
SELECT plan_has('SELECT * FROM small WHERE k = -1', 'small_k') AS one;
SELECT pg_stat_force_next_flush();
SELECT blocks_read() - :before > 0 AS for_one;

-- realistic estimates: a miss costs almost nothing, a hit about as much as a sequential scan
SET enable_seqscan = off;
SELECT total_cost('SELECT * FROM facts WHERE k = 5') < 50 AS miss, total_cost('SELECT * FROM facts WHERE k = 50') BETWEEN 1.0 * scan AND 1.5 * scan AS hit
FROM (SELECT relpages * current_setting('seq_page_cost')::float8 + reltuples * (current_setting('cpu_tuple_cost')::float8 + current_setting('cpu_operator_cost')::float8) AS scan
      FROM pg_class WHERE oid = 'facts'::regclass) x;
RESET enable_seqscan;

-- in a nested loop every lookup is estimated as a hit that reads the table
SELECT plan_has('SELECT * FROM few JOIN facts USING (k)', 'facts_k') AS joined, plan_has('SELECT * FROM few WHERE EXISTS (SELECT FROM facts WHERE facts.k = few.k)', 'facts_k') AS semi_joined,
       plan_has('SELECT * FROM few LEFT JOIN facts USING (k)', 'facts_k') AS left_joined,
       plan_has('SELECT * FROM (SELECT k FROM few LIMIT 1) f JOIN facts USING (k)', 'facts_k') AS single_row;
-- the same in a subquery with a key from the outer query
SELECT plan_has('SELECT EXISTS (SELECT FROM facts WHERE facts.k = few.k) FROM few', 'facts_k') AS correlated,
       plan_has('SELECT * FROM facts WHERE k = (SELECT min(k) - 1 FROM few)', 'facts_k') AS uncorrelated;
-- so a plan that is forced to use the index has that cost
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_seqscan = off;
SELECT total_cost('SELECT * FROM few JOIN facts USING (k)') > 20 * 0.9 * scan AS loops_cost
FROM (SELECT relpages * current_setting('seq_page_cost')::float8 AS scan FROM pg_class WHERE oid = 'facts'::regclass) x;
RESET enable_seqscan;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- with another index: both where that helps, the other alone where it finds the rows
CREATE INDEX facts_other ON facts (other);
PREPARE by_both(int) AS SELECT count(*) FROM facts WHERE k = $1 AND other = 5;
SET plan_cache_mode = force_generic_plan;
SELECT plan('EXECUTE by_both(50)');
EXECUTE by_both(50);
EXECUTE by_both(60);
EXECUTE by_both(5);
RESET plan_cache_mode;
CREATE INDEX facts_btree ON facts (k);
SELECT plan_has('SELECT * FROM facts WHERE k = 50', 'facts_btree') AS btree_finds, plan_has('SELECT * FROM few JOIN facts USING (k)', 'facts_btree') AS btree_joins;
SET plan_cache_mode = force_generic_plan;
SELECT plan_has('EXECUTE by_key(5)', 'facts_btree') AS btree_for_unknown;
RESET plan_cache_mode;
DROP INDEX facts_btree;

-- parallel plans
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_seqscan = off;
SET cpu_tuple_cost = 1;
SELECT plan_has('SELECT count(*) FROM facts WHERE k = 50', 'Parallel Bitmap Heap Scan') AS parallel;
SELECT count(*) FROM facts WHERE k = 50;
SELECT count(*) FROM facts WHERE k = ANY ('{50,51,60}');
RESET cpu_tuple_cost;
RESET enable_seqscan;
RESET max_parallel_workers_per_gather;

-- partitions: only those that may have the key are read
CREATE TABLE parted (k int, day int, filler text) PARTITION BY LIST (day);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES IN (3);
INSERT INTO parted SELECT n, 1 + n % 3, repeat('x', 50) FROM generate_series(1, 60000) n;
CREATE INDEX parted_k ON parted USING bloomfilter (k);
VACUUM ANALYZE parted;
SET max_parallel_workers_per_gather = 0;
SELECT plan('SELECT * FROM parted WHERE k = 7');
SELECT k, day FROM parted WHERE k = 7;
PREPARE by_part(int) AS SELECT k, day FROM parted WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_part(7);
EXECUTE by_part(8);
EXECUTE by_part(-8);
RESET plan_cache_mode;

-- rows inserted after planning are found: probing during planning does not affect the result
PREPARE later AS SELECT count(*) FROM facts WHERE k = 123;
EXPLAIN (COSTS OFF) EXECUTE later;
EXECUTE later;
INSERT INTO facts VALUES (123, 0, '');
EXECUTE later;

-- EXPLAIN reveals nothing about rows to users who may not see them
CREATE FUNCTION costs_differ(query text) RETURNS boolean LANGUAGE sql AS
  $$ SELECT total_cost(replace(query, 'KEY', '5')) <> total_cost(replace(query, 'KEY', '50')) $$;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM facts WHERE other < 50;
CREATE VIEW plain AS SELECT * FROM facts WHERE other < 50;
SELECT costs_differ('SELECT * FROM facts WHERE k = KEY') AS own, costs_differ('SELECT * FROM plain WHERE k = KEY') AS view, costs_differ('SELECT * FROM barrier WHERE k = KEY') AS barrier;
SET client_min_messages = warning;
DROP ROLE IF EXISTS index_plans_reader;
RESET client_min_messages;
CREATE ROLE index_plans_reader;
GRANT USAGE ON SCHEMA index_plans TO index_plans_reader;
GRANT SELECT ON barrier, plain TO index_plans_reader;
SET ROLE index_plans_reader;
SELECT costs_differ('SELECT * FROM plain WHERE k = KEY') AS view_only, costs_differ('SELECT * FROM barrier WHERE k = KEY') AS barrier_only;
RESET ROLE;
GRANT SELECT ON facts, parted TO index_plans_reader;
SET ROLE index_plans_reader;
SELECT costs_differ('SELECT * FROM facts WHERE k = KEY') AS granted, costs_differ('SELECT * FROM parted WHERE k = -KEY + 10') AS parent_granted;
RESET ROLE;
-- nor to users without USAGE on the schema, who read the table through a view
REVOKE USAGE ON SCHEMA index_plans FROM index_plans_reader;
CREATE SCHEMA index_plans_open;
GRANT USAGE ON SCHEMA index_plans_open TO index_plans_reader;
CREATE VIEW index_plans_open.plain AS SELECT * FROM facts WHERE other < 50;
CREATE VIEW index_plans_open.barrier WITH (security_barrier) AS SELECT * FROM facts WHERE other < 50;
GRANT SELECT ON index_plans_open.plain, index_plans_open.barrier TO index_plans_reader;
CREATE FUNCTION index_plans_open.cost(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  EXECUTE 'EXPLAIN ' || query INTO line;
  RETURN line;
END $$;
SET ROLE index_plans_reader;
SELECT name, index_plans_open.cost(format('SELECT * FROM index_plans_open.%s WHERE k = 5', name)) = index_plans_open.cost(format('SELECT * FROM index_plans_open.%s WHERE k = 50', name)) AS same_cost
FROM (VALUES ('plain'), ('barrier')) v(name);
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA index_plans_open CASCADE;
RESET client_min_messages;
GRANT USAGE ON SCHEMA index_plans TO index_plans_reader;
-- nor about a column of the predicate that they may not read
CREATE TABLE graded (k int, grade int, filler text);
INSERT INTO graded SELECT n * 10, n % 100, repeat('x', 50) FROM generate_series(1, 50000) n;
CREATE INDEX graded_k ON graded USING bloomfilter (k) WHERE grade IS NOT NULL OR grade IS NULL;
ANALYZE graded;
CREATE VIEW graded_all AS SELECT * FROM graded WHERE grade IS NOT NULL OR grade IS NULL;
SELECT costs_differ('SELECT k FROM graded_all WHERE k = KEY') AS own;
GRANT SELECT ON graded_all TO index_plans_reader;
GRANT SELECT (k) ON graded TO index_plans_reader;
SET ROLE index_plans_reader;
SELECT costs_differ('SELECT k FROM graded_all WHERE k = KEY') AS key_granted;
RESET ROLE;
GRANT SELECT (grade) ON graded TO index_plans_reader;
SET ROLE index_plans_reader;
SELECT costs_differ('SELECT k FROM graded_all WHERE k = KEY') AS both_granted;
RESET ROLE;
ALTER TABLE facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY small ON facts USING (other < 50);
CREATE POLICY small ON parted USING (day < 3);
SET ROLE index_plans_reader;
SELECT costs_differ('SELECT * FROM facts WHERE k = KEY') AS secured, costs_differ('SELECT * FROM parted WHERE k = -KEY + 10') AS parent_secured;
SELECT costs_differ('SELECT * FROM plain WHERE k = KEY') AS secured_view;
SELECT count(*) FROM parted WHERE k = 5;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA index_plans CASCADE;
DROP ROLE index_plans_reader;
