-- Filters before lookups: the same rows as without them, no new errors, and where filters are probed

LOAD 'bloomfilter';
CREATE SCHEMA lookups;
SET search_path = lookups, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_mergejoin = off;
SET enable_hashjoin = off;
SET enable_seqscan = off;
SET enable_material = off;
SET enable_memoize = off;

-- off by default, can be set by any user
SHOW bloomfilter.lookup_filter;
SELECT name, context, boot_val FROM pg_settings WHERE name LIKE 'bloomfilter.lookup%' ORDER BY name;

-- probe wherever it is possible
SET bloomfilter.lookup_filter = on;
SET bloomfilter.lookup_filter_min_rows = 0;
SET bloomfilter.lookup_filter_max_share = 1;

-- The plan of a query.
CREATE FUNCTION plan(query text, OUT plan text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  -- since 18, EXPLAIN marks nodes that a setting has switched off
  FOR plan IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF plan !~ 'Disabled: true' THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;
-- The filters that a plan probes.
CREATE FUNCTION filters(query text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(substring(line from 'Filter Index: (.*)'), ', ') FROM plan(query) p (line)
$$;
-- Compares the rows of a query without and with filters.
CREATE FUNCTION compare(query text, OUT filters text, OUT n int, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
  expected text[];
  got text[];
  sorted text := format('SELECT coalesce(array_agg(x::text ORDER BY x::text COLLATE "C"), ''{}'') FROM (%s) x', query);
BEGIN
  SET LOCAL bloomfilter.lookup_filter = off;
  EXECUTE sorted INTO expected;
  n := cardinality(expected);
  SET LOCAL bloomfilter.lookup_filter = on;
  filters := filters(query);
  EXECUTE sorted INTO got;
  result := CASE WHEN got = expected THEN 'same' ELSE 'DIFFERENT: ' || left(got::text, 100) END;
END $$;
-- What EXPLAIN ANALYZE shows of the nodes.
CREATE FUNCTION counts(query text) RETURNS TABLE (property text, value text) LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
  RETURN QUERY
    WITH RECURSIVE nodes (node) AS (
      SELECT plan -> 0 -> 'Plan' UNION ALL SELECT child FROM nodes, json_array_elements(node -> 'Plans') child)
    SELECT pair.key, pair.value::text FROM nodes, json_each(node) pair
    WHERE node ->> 'Custom Plan Provider' = 'Lookup Filter' AND pair.key ~ '^(Filter|Scans|Lookups)';
END $$;

-- every tenth key exists; the third of them twice
CREATE TABLE t AS
  SELECT n AS id, n AS k, n::int2 AS k2, n::int8 AS k8, n::text AS s, n::text::varchar AS v, n::text::char(8) AS c, (n / 10.0)::numeric AS num,
         n / 2.0::float8 AS f8, (n / 2.0)::float4 AS f4, date '2020-01-01' + n AS d, timestamp '2020-01-01' + n * interval '1 h' AS ts,
         md5(n::text)::uuid AS u, ARRAY[n, NULL] AS a, n % 7 AS seven
  FROM generate_series(10, 2000, 10) n;
INSERT INTO t SELECT * FROM t WHERE id % 30 = 0;
INSERT INTO t (id, seven) SELECT n, 1 FROM generate_series(2001, 2010) n;
CREATE TABLE o AS
  SELECT n AS id, n AS k, n::int2 AS k2, n::int8 AS k8, n::text AS s, n::text::varchar AS v, n::text::char(8) AS c, (n / 10.0)::numeric AS num,
         n / 2.0::float8 AS f8, (n / 2.0)::float4 AS f4, date '2020-01-01' + n AS d, timestamp '2020-01-01' + n * interval '1 h' AS ts,
         md5(n::text)::uuid AS u, ARRAY[n, NULL] AS a, n % 7 AS seven
  FROM generate_series(1, 600) n;
INSERT INTO o (id, seven) SELECT n, 1 FROM generate_series(601, 610) n;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY '{k,k2,k8,s,v,c,num,f8,f4,d,ts,u,a}'::text[] LOOP
    EXECUTE format('CREATE INDEX t_%1$s ON t (%1$s); CREATE INDEX t_%1$s_filter ON t USING bloomfilter (%1$s)', name);
  END LOOP;
END $$;
VACUUM ANALYZE t, o;

-- EXPLAIN shows the filter and the key
SELECT plan('SELECT * FROM o JOIN t ON t.k = o.k');
SELECT * FROM counts('SELECT * FROM o JOIN t ON t.k = o.k');

-- Join types
SELECT compare('SELECT o.id, t.id, t.seven FROM o JOIN t ON t.k = o.k');
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k');
SELECT compare('SELECT o.id FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)');
SELECT compare('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k)');
SELECT compare('SELECT o.id FROM o WHERE k IN (SELECT k FROM t)');
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k AND t.seven = o.seven AND t.id <> 30');
SELECT compare('SELECT o.id, t.id FROM o RIGHT JOIN t ON t.k = o.k WHERE o.id < 100 OR o.id IS NULL');
-- three tables, each lookup with its filter
SELECT compare('SELECT o.id, t.id, u.id FROM o JOIN t ON t.k = o.k LEFT JOIN t u ON u.s = o.s');
-- whole rows and system columns
SELECT compare('SELECT o.id, t FROM o LEFT JOIN t ON t.k = o.k');
SELECT compare('SELECT o.id, t.ctid, t.tableoid::regclass FROM o LEFT JOIN t ON t.k = o.k');
SELECT compare('SELECT o.id, x.y FROM o LEFT JOIN (SELECT k, coalesce(seven, 3) AS y FROM t) x ON x.k = o.k');

-- Correlated subqueries
SELECT compare('SELECT o.id, (SELECT max(t.id) FROM t WHERE t.k = o.k) FROM o');
SELECT compare('SELECT o.id, (SELECT t.seven + o.seven FROM t WHERE t.k = o.k LIMIT 1) FROM o');
SELECT compare('SELECT o.id FROM o WHERE o.seven = 2 OR EXISTS (SELECT FROM t WHERE t.k = o.k AND t.seven > o.seven - 4)');
SELECT compare('SELECT o.id, ARRAY(SELECT t.id FROM t WHERE t.k = o.k ORDER BY t.id) FROM o');
SELECT compare('SELECT o.id, (SELECT count(*) FROM t JOIN t b ON b.id = t.id AND b.s = o.s WHERE t.k = o.k) FROM o');
SELECT compare('SELECT o.id, x.* FROM o, LATERAL (SELECT t.id, t.seven FROM t WHERE t.k = o.k ORDER BY t.id LIMIT 1) x');
SELECT compare('SELECT o.id, x.* FROM o LEFT JOIN LATERAL (SELECT count(*) FROM t WHERE t.k = o.k) x ON true');
-- a key that does not vary is looked up once
SELECT compare('SELECT t.id FROM t WHERE t.k = (SELECT max(k) / 2 FROM o)');
SELECT compare('SELECT t.id FROM t WHERE t.k = 30');

-- Pages of temporary tables are in buffers of the session; a filter of many pages, each probed often
CREATE TEMPORARY TABLE own AS SELECT n AS k FROM generate_series(10, 300000, 10) n;
CREATE INDEX ON own (k);
CREATE INDEX ON own USING bloomfilter (k);
ANALYZE own;
SELECT compare('SELECT n.k, own.k FROM generate_series(1, 3000) n (k) LEFT JOIN own ON own.k = n.k');
SELECT compare('SELECT n.k, own.k FROM generate_series(1, 300000, 3) n (k) LEFT JOIN own ON own.k = n.k');
DROP TABLE own;

-- Keys of all types, and operators of two types
SELECT a, b, c.* FROM
  (VALUES ('k', 'o.k'), ('k', 'o.k2'), ('k2', 'o.k8'), ('k8', 'o.k'), ('s', 'o.s'), ('s', 'o.v'), ('v', 'o.s'), ('v', 'o.v'), ('c', 'o.c'),
          ('c', 'o.s::bpchar'), ('num', 'o.num'), ('f8', 'o.f4'), ('f4', 'o.f8'), ('f8', 'o.f8'), ('d', 'o.d'), ('ts', 'o.ts'), ('u', 'o.u'),
          ('a', 'o.a'), ('k', 'o.k + 1'), ('s', 'lower(o.s)'), ('s', 'o.c')) x (a, b),
  compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.' || a || ' = ' || b) c;

-- Other indexes and scans: hash, several columns, bitmaps, an expression
CREATE TABLE other AS SELECT id, k, s, seven, k % 3 AS three FROM t;
CREATE INDEX other_hash ON other USING hash (k);
CREATE INDEX other_k_filter ON other USING bloomfilter (k);
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.k = o.k');
DROP INDEX other_hash;
CREATE INDEX other_seven_k ON other (seven, k);
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.seven = o.seven AND x.k = o.k');
SET enable_indexscan = off;
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.seven = o.seven AND x.k = o.k');
CREATE INDEX other_three ON other (three);
RESET enable_indexscan;
CREATE INDEX other_expression ON other (abs(id));
CREATE INDEX other_expression_filter ON other USING bloomfilter (abs(id));
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON abs(x.id) = o.k');
-- the filter itself is not probed twice
DROP INDEX other_seven_k, other_expression;
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.k = o.k WHERE o.id < 20');

-- A partial filter answers only if its predicate follows from the query
DROP INDEX other_k_filter, other_expression_filter;
CREATE INDEX other_k ON other (k);
CREATE INDEX other_k_partial ON other USING bloomfilter (k) WHERE seven = 2;
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.k = o.k');
SELECT compare('SELECT o.id, x.id FROM o LEFT JOIN other x ON x.k = o.k AND x.seven = 2');
SELECT compare('SELECT o.id, x.id FROM o JOIN other x ON x.k = o.k AND x.seven = o.seven AND o.seven = 2');

-- Collations: the filter must compare as the lookup does
CREATE TABLE words (w text);
INSERT INTO words SELECT s FROM t;
CREATE INDEX words_posix ON words (w COLLATE "POSIX");
CREATE INDEX words_c ON words (w COLLATE "C");
CREATE INDEX words_filter ON words USING bloomfilter (w COLLATE "C");
SELECT compare('SELECT o.id, w FROM o LEFT JOIN words ON w = o.s COLLATE "C"');
SELECT compare('SELECT o.id, w FROM o LEFT JOIN words ON w = o.s COLLATE "POSIX"');
-- citext is not text, and no filter of it is used for its own operator
CREATE TABLE ci (w citext);
INSERT INTO ci SELECT 'Word ' || n FROM generate_series(1, 50) n;
CREATE INDEX ci_w ON ci (w);
CREATE INDEX ci_text ON ci ((w::text));
SET client_min_messages = error;
CREATE INDEX ci_filter ON ci USING bloomfilter (w text_ops);
RESET client_min_messages;
SELECT compare('SELECT o.id, w FROM o LEFT JOIN ci ON w = (''wORD '' || o.id)::citext');
-- operators that a user has added have no filter
CREATE TABLE numbers (n int8);
INSERT INTO numbers SELECT k8 FROM t;
CREATE FUNCTION equals(int8, money) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::text::numeric = $2::numeric';
CREATE OPERATOR === (FUNCTION = equals, LEFTARG = int8, RIGHTARG = money);
CREATE FUNCTION compares(int8, money) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS
  'SELECT CASE WHEN $1::numeric < $2::numeric THEN -1 ELSE ($1::numeric > $2::numeric)::int END';
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 === (int8, money), FUNCTION 1 (int8, money) compares(int8, money);
ALTER OPERATOR FAMILY public.integer_ops USING bloomfilter ADD OPERATOR 1 === (int8, money);
CREATE INDEX numbers_n ON numbers (n);
CREATE INDEX numbers_filter ON numbers USING bloomfilter (n);
SELECT compare('SELECT o.id, n FROM o LEFT JOIN numbers ON n === o.k8::numeric::money WHERE o.id < 50');
ALTER OPERATOR FAMILY public.integer_ops USING bloomfilter DROP OPERATOR 1 (int8, money);
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (int8, money), FUNCTION 1 (int8, money);

-- Nodes above and below: Memoize, rescans of an inner join, cursors, limits
SET enable_memoize = on;
SELECT plan FROM plan('SELECT * FROM o JOIN t ON t.k = o.seven * 10') WHERE plan ~ 'Memoize|Custom';
SELECT compare('SELECT o.id, t.id FROM o JOIN t ON t.k = o.seven * 10');
SET enable_memoize = off;
SELECT compare('SELECT a.id, b.id, t.id FROM o a JOIN o b ON b.id = a.id + 1 LEFT JOIN t ON t.k = b.k WHERE a.id < 50');
SELECT compare('SELECT o.id, (SELECT count(*) FROM (SELECT t.id FROM t WHERE t.k = o.k OFFSET 0) x JOIN t b ON b.id = x.id) FROM o WHERE o.id < 100');
BEGIN;
DECLARE position SCROLL CURSOR FOR SELECT o.id, t.id FROM o JOIN t ON t.k = o.k WHERE t.seven = 3 ORDER BY o.id, t.ctid;
FETCH 3 FROM position;
FETCH BACKWARD 2 FROM position;
FETCH 2 FROM position;
COMMIT;

-- Statements that change rows
BEGIN;
CREATE TABLE changed AS SELECT * FROM t;
CREATE INDEX ON changed (k);
CREATE INDEX changed_filter ON changed USING bloomfilter (k);
SELECT filters('UPDATE changed SET seven = 100 FROM o WHERE changed.k = o.k'), filters('DELETE FROM changed USING o WHERE changed.k = o.k'),
  filters('INSERT INTO changed (k) SELECT k FROM o WHERE NOT EXISTS (SELECT FROM changed WHERE changed.k = o.k)'),
  filters('MERGE INTO changed USING o ON changed.k = o.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (o.k)');
UPDATE changed SET seven = 100 FROM o WHERE changed.k = o.k;
SELECT count(*), sum(k) FROM changed WHERE seven = 100;
-- a row that the statement itself inserts is not seen; one of an earlier statement is
INSERT INTO changed (k) SELECT o.k FROM o, generate_series(1, 2) WHERE NOT EXISTS (SELECT FROM changed WHERE changed.k = o.k);
SELECT count(*), count(DISTINCT k), sum(k) FROM changed;
INSERT INTO changed (k) SELECT k FROM o WHERE NOT EXISTS (SELECT FROM changed WHERE changed.k = o.k) AND k > 0;
MERGE INTO changed USING (SELECT k + 300 AS k FROM o) o ON changed.k = o.k WHEN MATCHED THEN UPDATE SET seven = 200 WHEN NOT MATCHED THEN INSERT VALUES (0, o.k);
SELECT count(*), sum(k), count(*) FILTER (WHERE seven = 200) FROM changed;
SELECT compare('SELECT o.id, c.k FROM o JOIN changed c ON c.k = o.k FOR UPDATE OF c');
DELETE FROM changed USING o WHERE changed.k = o.k;
SELECT count(*), sum(k) FROM changed;
ROLLBACK;

-- Partitions: one node in place of the Append runs only those that may have the key
CREATE TABLE parted (part int, k int, s text, seven int) PARTITION BY RANGE (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted_2 (seven int, gone int, s text, k int, part int);
ALTER TABLE parted_2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (1000) TO (1500);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (1500) TO (3000) PARTITION BY LIST (seven);
CREATE TABLE parted_3_1 PARTITION OF parted_3 FOR VALUES IN (0, 1, 2, 3);
CREATE TABLE parted_3_2 PARTITION OF parted_3 DEFAULT;
INSERT INTO parted SELECT id, k, s, seven FROM t;
-- keys 400, 800 ... are in several partitions
INSERT INTO parted SELECT id * 7 % 3000, k, s, seven FROM t WHERE id % 400 = 0;
CREATE INDEX parted_k ON parted (k);
CREATE INDEX parted_filter ON parted USING bloomfilter (k);
VACUUM ANALYZE parted;
SELECT plan('SELECT * FROM o JOIN parted p ON p.k = o.k');
SELECT * FROM counts('SELECT * FROM o JOIN parted p ON p.k = o.k');
SELECT compare('SELECT o.id, p FROM o LEFT JOIN parted p ON p.k = o.k');
SELECT compare('SELECT o.id, p.tableoid::regclass, p.* FROM o LEFT JOIN parted p ON p.k = o.k');
SELECT compare('SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM parted p WHERE p.k = o.k)');
SELECT compare('SELECT o.id FROM o WHERE EXISTS (SELECT FROM parted p WHERE p.k = o.k)');
SELECT compare('SELECT o.id, (SELECT sum(part) FROM parted p WHERE p.k = o.k) FROM o');
SELECT compare('SELECT o.id, (SELECT p.s || o.s FROM parted p WHERE p.k = o.k LIMIT 1) FROM o');
SELECT compare('SELECT o.id, x.* FROM o, LATERAL (SELECT p.k, p.s FROM parted p WHERE p.k = o.k ORDER BY p.s LIMIT 1) x');
SELECT compare('SELECT o.id, p.s FROM o LEFT JOIN parted p ON p.k = o.k AND (p.s > ''5'' OR o.s < ''5'')');
SELECT compare('SELECT o.id, p.k FROM o JOIN parted p ON p.k = o.k FOR UPDATE OF p');
SET enable_memoize = on;
SELECT compare('SELECT o.id, p.k FROM o JOIN parted p ON p.k = o.seven * 400');
SET enable_memoize = off;
-- an Append that prunes at run time stays: each partition has its own node
SELECT compare('SELECT o.id, p.k FROM o JOIN parted p ON p.k = o.k AND p.part = o.id');
SELECT compare('SELECT o.id, p.k FROM o JOIN parted p ON p.k = o.k AND p.seven = o.seven');
SELECT compare('SELECT o.id, (SELECT count(*) FROM parted p WHERE p.k = o.k AND p.part = o.id) FROM o');
SET enable_partition_pruning = off;
SELECT compare('SELECT o.id, p.k FROM o JOIN parted p ON p.k = o.k AND p.part = o.id');
RESET enable_partition_pruning;
-- and so does one that is scanned to be changed
BEGIN;
SELECT filters('UPDATE parted p SET s = ''changed'' FROM o WHERE p.k = o.k');
UPDATE parted p SET s = 'changed' FROM o WHERE p.k = o.k;
SELECT count(*), sum(k) FROM parted WHERE s = 'changed';
MERGE INTO parted p USING o ON p.k = o.k WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (o.id, o.k, 'new', 1);
SELECT s, count(*), sum(k) FROM parted WHERE s IN ('merged', 'new') GROUP BY s ORDER BY s;
DELETE FROM parted p USING o WHERE p.k = o.k;
SELECT count(*), sum(k) FROM parted;
ROLLBACK;
-- a partition without a filter, or without an index, is always scanned
CREATE TABLE parted_4 (LIKE parted);
INSERT INTO parted_4 SELECT id + 5000, k + 1, s, seven FROM t WHERE id % 50 = 0;
CREATE INDEX ON parted_4 (k);
DROP INDEX parted_filter;
CREATE INDEX parted_1_filter ON parted_1 USING bloomfilter (k);
CREATE INDEX parted_2_filter ON parted_2 USING bloomfilter (k);
ALTER TABLE parted ATTACH PARTITION parted_4 FOR VALUES FROM (5000) TO (9000);
SELECT compare('SELECT o.id, p FROM o LEFT JOIN parted p ON p.k = o.k');
SELECT * FROM counts('SELECT * FROM o JOIN parted p ON p.k = o.k');
-- partitionwise joins
CREATE TABLE outer_parted (part int, k int) PARTITION BY RANGE (part);
CREATE TABLE outer_1 PARTITION OF outer_parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE outer_2 PARTITION OF outer_parted FOR VALUES FROM (1000) TO (1500);
INSERT INTO outer_parted SELECT id, k FROM o WHERE id < 1500;
CREATE TABLE inner_parted (part int, k int, s text) PARTITION BY RANGE (part);
CREATE TABLE inner_1 PARTITION OF inner_parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE inner_2 PARTITION OF inner_parted FOR VALUES FROM (1000) TO (1500);
INSERT INTO inner_parted SELECT id, k, s FROM t WHERE id < 1500;
CREATE INDEX ON inner_parted (k);
CREATE INDEX inner_filter ON inner_parted USING bloomfilter (k);
VACUUM ANALYZE outer_parted, inner_parted;
SELECT compare('SELECT a.k, b FROM outer_parted a LEFT JOIN inner_parted b ON b.part = a.part AND b.k = a.k');
SET enable_partitionwise_join = on;
SELECT compare('SELECT a.k, b FROM outer_parted a LEFT JOIN inner_parted b ON b.part = a.part AND b.k = a.k');
RESET enable_partitionwise_join;
-- inheritance and UNION ALL
CREATE TABLE parent (k int, s text);
CREATE TABLE child (extra int) INHERITS (parent);
INSERT INTO parent SELECT k, s FROM t WHERE id % 20 = 0;
INSERT INTO child SELECT k, s, id FROM t WHERE id % 20 = 10;
CREATE INDEX ON parent (k);
CREATE INDEX ON child (k);
CREATE INDEX parent_filter ON parent USING bloomfilter (k);
CREATE INDEX child_filter ON child USING bloomfilter (k);
SELECT compare('SELECT o.id, p FROM o LEFT JOIN parent p ON p.k = o.k');
SELECT compare('SELECT o.id, (SELECT p.s || p.k FROM parent p WHERE p.k = o.k LIMIT 1) FROM o');
SELECT compare('SELECT o.id, (SELECT sum(length(p.s)) FROM parent p WHERE p.k = o.k) FROM o');
SELECT compare('SELECT o.id, p.tableoid::regclass FROM o LEFT JOIN ONLY parent p ON p.k = o.k');
SELECT compare('SELECT o.id, x.k, x.s FROM o LEFT JOIN (SELECT k, s FROM parent UNION ALL SELECT k, s FROM t) x ON x.k = o.k');

-- Parallel workers probe filters, too, and their counts are added
RESET enable_seqscan;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan FROM plan('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k') WHERE plan ~ 'Gather|Custom';
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k');
SELECT compare('SELECT o.id, p FROM o LEFT JOIN parent p ON p.k = o.k');
SELECT * FROM counts('SELECT * FROM o LEFT JOIN t ON t.k = o.k') WHERE property ~ 'Probes|Avoided';
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;

-- Prepared plans follow the index and the setting
SET plan_cache_mode = force_generic_plan;
PREPARE lookup (int) AS SELECT count(t.id) FROM o LEFT JOIN other t ON t.k = o.k WHERE o.id > $1;
DROP INDEX other_k_partial;
CREATE INDEX other_k_filter ON other USING bloomfilter (k);
EXECUTE lookup (5);
SELECT filters('EXECUTE lookup (5)');
REINDEX INDEX other_k_filter;
EXECUTE lookup (5);
DROP INDEX other_k_filter;
EXECUTE lookup (5);
SELECT filters('EXECUTE lookup (5)');
CREATE INDEX other_k_filter ON other USING bloomfilter (k);
SELECT filters('EXECUTE lookup (5)');
SET bloomfilter.lookup_filter = off;
SELECT filters('EXECUTE lookup (5)');
SET bloomfilter.lookup_filter = on;
TRUNCATE other;
EXECUTE lookup (5);
INSERT INTO other (id, k) VALUES (1, 7);
EXECUTE lookup (5);
ALTER TABLE other ALTER k TYPE int8;
EXECUTE lookup (5);
SELECT filters('EXECUTE lookup (5)');
DEALLOCATE lookup;
RESET plan_cache_mode;

-- An index that is not valid is not probed, not even by a plan that was made before
BEGIN;
PREPARE lookup AS SELECT count(t.id) FROM o LEFT JOIN t ON t.k = o.k;
EXECUTE lookup;
UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 't_k_filter'::regclass;
INSERT INTO t (id, k) VALUES (0, 1), (0, 2);
SELECT filters('EXECUTE lookup');
SELECT filters('SELECT * FROM o LEFT JOIN t ON t.k = o.k');
EXECUTE lookup;
ROLLBACK;

-- Row-level security and security barriers: no filter
CREATE ROLE regress_lookups;
GRANT USAGE ON SCHEMA lookups TO regress_lookups;
GRANT SELECT ON ALL TABLES IN SCHEMA lookups TO regress_lookups;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM t WHERE seven <> 2;
CREATE VIEW no_barrier AS SELECT * FROM t WHERE seven <> 2;
GRANT SELECT ON barrier, no_barrier TO regress_lookups;
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN barrier t ON t.k = o.k');
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN no_barrier t ON t.k = o.k');
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY not_three ON t USING (seven <> 3);
SET ROLE regress_lookups;
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k');
RESET ROLE;
SELECT compare('SELECT o.id, t.id FROM o LEFT JOIN t ON t.k = o.k');
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON o, t FROM regress_lookups;
SET ROLE regress_lookups;
SELECT count(*) FROM o LEFT JOIN t ON t.k = o.k;
SELECT filters('SELECT * FROM generate_series(1, 10) o (k) LEFT JOIN no_barrier t ON t.k = o.k');
RESET ROLE;

-- The planner's choice: a join with many absent keys
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET enable_seqscan;
RESET bloomfilter.lookup_filter_min_rows;
RESET bloomfilter.lookup_filter_max_share;
SET random_page_cost = 1.1;
CREATE TABLE big AS SELECT n * 10 AS k, n AS payload FROM generate_series(1, 50000) n;
CREATE INDEX big_k ON big (k);
CREATE INDEX big_filter ON big USING bloomfilter (k);
CREATE TABLE new AS SELECT n * 10 + 1 AS k FROM generate_series(1, 5000) n;
CREATE TABLE old AS SELECT n * 10 AS k FROM generate_series(1, 5000) n;
CREATE TABLE few AS SELECT n * 10 + 1 AS k FROM generate_series(1, 100) n;
VACUUM ANALYZE big, new, old, few;
SELECT plan('SELECT k FROM new WHERE NOT EXISTS (SELECT FROM big WHERE big.k = new.k)');
SELECT compare('SELECT k FROM new WHERE NOT EXISTS (SELECT FROM big WHERE big.k = new.k)');
-- all exist, or few keys: the plan is the one without filters
CREATE FUNCTION same_plan(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  with_filters text[] := ARRAY(SELECT plan(query));
BEGIN
  SET LOCAL bloomfilter.lookup_filter = off;
  RETURN with_filters = ARRAY(SELECT plan(query));
END $$;
SELECT same_plan('SELECT k FROM old WHERE NOT EXISTS (SELECT FROM big WHERE big.k = old.k)') AS old,
  same_plan('SELECT k FROM few WHERE NOT EXISTS (SELECT FROM big WHERE big.k = few.k)') AS few,
  same_plan('SELECT k, (SELECT payload FROM big WHERE big.k = old.k) FROM old') AS correlated;
-- the sample is of the rows that are there now, and through a subquery
INSERT INTO few SELECT n * 10 + 1 AS k FROM generate_series(101, 5000) n;
SELECT filters('SELECT k FROM few WHERE NOT EXISTS (SELECT FROM big WHERE big.k = few.k)');
SELECT filters('SELECT k FROM (SELECT k FROM few GROUP BY k) few WHERE NOT EXISTS (SELECT FROM big WHERE big.k = few.k)');
-- without privileges nothing is sampled: the planner must not reveal which keys exist
GRANT SELECT ON new TO regress_lookups;
CREATE VIEW owned AS SELECT * FROM big;
GRANT SELECT ON owned TO regress_lookups;
SET ROLE regress_lookups;
SELECT same_plan('SELECT k FROM new WHERE NOT EXISTS (SELECT FROM owned WHERE owned.k = new.k)');
RESET ROLE;
-- a scan that returns the key, or a part of it
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
CREATE TABLE both_k AS SELECT n AS k FROM generate_series(10, 20000, 10) n;
CREATE INDEX both_k_btree ON both_k (k);
CREATE INDEX both_k_filter ON both_k USING bloomfilter (k);
CREATE TABLE outer_k AS SELECT n AS k, 10000 + n AS a, n % 2 AS z FROM generate_series(1, 1000) n;
VACUUM ANALYZE both_k, outer_k;
SELECT compare('SELECT (SELECT x FROM (SELECT o.k AS x, t.k FROM both_k t UNION ALL SELECT t.k, t.k FROM both_k t) y WHERE y.k = o.k LIMIT 1) FROM outer_k o');
SELECT compare('SELECT o.k, y.* FROM outer_k o, LATERAL (SELECT o.k AS x, t.k FROM both_k t UNION ALL SELECT p.k, p.k FROM outer_k p WHERE p.k < 10) y WHERE y.k = o.k');
SELECT compare('SELECT o.k, y.* FROM outer_k o, LATERAL (SELECT o.k + 1 AS x, t.k FROM both_k t UNION ALL SELECT t.k, t.k FROM both_k t) y WHERE y.k = (o.k + 1) * 2');
-- the key of an index that is scanned only if another one finds rows
CREATE TABLE combined AS SELECT n AS k, n % 60 AS a, n % 50 AS b FROM generate_series(10, 20000, 10) n;
CREATE INDEX combined_a ON combined (a);
CREATE INDEX combined_b ON combined (b);
CREATE INDEX combined_filter ON combined USING bloomfilter (b);
VACUUM ANALYZE combined;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT compare('SELECT o.k FROM outer_k o JOIN combined t ON t.a = o.a AND t.b = 10 / o.z');
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- Conditions of an index are evaluated also for keys that do not exist.  No subquery in one of them is skipped by a
-- filter, or executed twice: the sequence is advanced as often without and with the setting.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET bloomfilter.lookup_filter_min_rows = 0;
SET bloomfilter.lookup_filter_max_share = 1;
CREATE TABLE item AS SELECT n AS id, n * 10 AS code, n % 20 AS y FROM generate_series(1, 20000) n;
CREATE TABLE batch AS SELECT n * 10 + 1 AS code, 10000 + n AS y, 0 AS zero FROM generate_series(1, 100) n;
CREATE TABLE one_row (id int PRIMARY KEY);
INSERT INTO one_row VALUES (1);
CREATE INDEX item_code ON item (code, id);
CREATE INDEX item_filter ON item USING bloomfilter (code);
VACUUM ANALYZE item, batch, one_row;
CREATE SEQUENCE calls;
CREATE FUNCTION calls_of(query text, OUT without bigint, OUT with_filters bigint, OUT filters text) LANGUAGE plpgsql AS $$
BEGIN
  filters := filters(query);
  PERFORM setval('lookups.calls', 1);
  SET LOCAL bloomfilter.lookup_filter = off;
  EXECUTE format('SELECT count(x::text) FROM (%s) x', query);
  without := nextval('lookups.calls') - 2;
  PERFORM setval('lookups.calls', 1);
  SET LOCAL bloomfilter.lookup_filter = on;
  EXECUTE format('SELECT count(x::text) FROM (%s) x', query);
  with_filters := nextval('lookups.calls') - 2;
END $$;
SELECT calls_of('SELECT b.code FROM batch b LEFT JOIN item i ON i.code = b.code AND i.id > b.zero');
SELECT calls_of('SELECT (SELECT i.y FROM item i WHERE i.code = b.code AND i.id > (SELECT nextval(''calls'') + b.zero)) FROM batch b');
SELECT calls_of('SELECT i.y FROM batch b LEFT JOIN item i ON i.code = b.code AND i.id > (SELECT nextval(''calls'') FROM one_row r WHERE r.id > b.zero)');
SELECT calls_of('SELECT i.y FROM batch b LEFT JOIN item i ON i.code = (SELECT nextval(''calls'')::int FROM one_row r WHERE r.id > b.zero) AND i.code = b.code');
-- a condition without columns is evaluated before the filter is probed
SELECT calls_of('SELECT (SELECT i.y FROM item i WHERE i.code = b.code AND (SELECT nextval(''calls'') + b.zero) > 0) FROM batch b');
-- of two conditions of one column, the key of the other one is not evaluated: the first index finds no row
CREATE TABLE combined_too AS SELECT n % 2000 AS y, n % 50 AS code, repeat('x', 100) AS filler FROM generate_series(1, 100000) n;
CREATE INDEX ON combined_too (y);
CREATE INDEX ON combined_too (code);
CREATE INDEX combined_too_filter ON combined_too USING bloomfilter (code);
VACUUM ANALYZE combined_too;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET random_page_cost = 10;
SELECT compare('SELECT b.code, i.filler FROM batch b LEFT JOIN combined_too i ON i.y = b.y AND i.code = 100 / b.zero AND i.code = b.code');
RESET random_page_cost;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET bloomfilter.lookup_filter_min_rows;
RESET bloomfilter.lookup_filter_max_share;

-- keys that turn out to exist switch the filter off; it is tried again later
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SELECT * FROM counts('SELECT count(*) FROM generate_series(10, 500000, 10) g (k) JOIN big ON big.k = g.k');
SELECT * FROM counts('SELECT count(*) FROM generate_series(300010, 800000, 10) g (k) LEFT JOIN big ON big.k = g.k');
-- a scan that is switched off stays switched off
RESET enable_seqscan;
SET enable_hashjoin = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT filters('SELECT k FROM new WHERE NOT EXISTS (SELECT FROM big WHERE big.k = new.k)');
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_bitmapscan;

SET client_min_messages = warning;
DROP SCHEMA lookups CASCADE;
DROP ROLE regress_lookups;
