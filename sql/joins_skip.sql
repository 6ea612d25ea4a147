-- Filters in hash joins: pages and partitions that cannot contain a key are not read, and the rows stay the same

LOAD 'bloomfilter';
CREATE SCHEMA joins_skip;
SET search_path = joins_skip, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SET bloomfilter.join_filter = on;
SET bloomfilter.join_filter_min_rows = 0;
SET bloomfilter.join_filter_max_share = 1;

-- Compares the rows of a query without filters, with filters a page at a time, and with filters row by row.
CREATE FUNCTION compare(query text, OUT n int, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
  expected text[];
  got text[];
  sorted text := format('SELECT coalesce(array_agg(x::text ORDER BY x::text COLLATE "C"), ''{}'') FROM (%s) x', query);
BEGIN
  SET LOCAL bloomfilter.join_filter = off;
  EXECUTE sorted INTO expected;
  n := cardinality(expected);
  SET LOCAL bloomfilter.join_filter = on;
  EXECUTE sorted INTO got;
  result := CASE WHEN got = expected THEN 'same' ELSE 'DIFFERENT: ' || left(got::text, 100) END;
  SET LOCAL bloomfilter.join_filter_batches = off;
  EXECUTE sorted INTO got;
  IF got <> expected THEN
    result := 'DIFFERENT row by row: ' || left(got::text, 100);
  END IF;
END $$;
-- What EXPLAIN ANALYZE shows as not read.
CREATE FUNCTION nodes(plan jsonb) RETURNS SETOF jsonb LANGUAGE sql AS
  $$SELECT plan UNION ALL SELECT n FROM jsonb_array_elements(plan->'Plans') p, nodes(p) n$$;
CREATE FUNCTION skipped(query text, batches text DEFAULT 'on', OUT partitions bigint, OUT pages numeric) LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  PERFORM set_config('bloomfilter.join_filter_batches', batches, true);
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
  SELECT count(*) FILTER (WHERE (n->>'Partition Skipped')::boolean), sum((n->>'Pages Skipped')::numeric) INTO partitions, pages FROM nodes((plan->0->'Plan')::jsonb) n;
END $$;
CREATE FUNCTION pages(name regclass) RETURNS bigint LANGUAGE sql AS $$SELECT pg_relation_size(name) / current_setting('block_size')::int$$;

-- Rows in the order of every column, two per page; the keys of each column are sparse in another way
CREATE TABLE facts (id int, i2 int2, i4 int, i8 int8, d date, ts timestamp, tz timestamptz, t text, filler text) WITH (fillfactor = 10);
ALTER TABLE facts ALTER filler SET STORAGE plain;
INSERT INTO facts SELECT n, n, n, n * 1000000007::int8, date '2020-01-01' + n, timestamp '2020-01-01' + n * interval '1 h', timestamptz '2020-01-01 00:00+00' + n * interval '1 h', n::text, repeat('x', 300)
  FROM generate_series(1, 3000) n;
INSERT INTO facts (id, filler) SELECT n, repeat('x', 300) FROM generate_series(3001, 3100) n;
CREATE TABLE dim AS SELECT id, i2, i4, i8, d, ts, tz, t FROM facts WHERE id % 10 = 0 AND i4 IS NOT NULL;
CREATE INDEX ON facts USING brin (i2) WITH (pages_per_range = 16);
CREATE INDEX ON facts USING brin (i4) WITH (pages_per_range = 64);
CREATE INDEX ON facts USING brin (i8) WITH (pages_per_range = 128);
CREATE INDEX ON facts USING brin (d) WITH (pages_per_range = 64);
CREATE INDEX ON facts USING brin (ts) WITH (pages_per_range = 128);
CREATE INDEX ON facts USING brin (tz) WITH (pages_per_range = 64);
CREATE INDEX ON facts USING brin (t) WITH (pages_per_range = 16);
VACUUM ANALYZE facts, dim;

-- EXPLAIN ANALYZE shows the pages that were not read
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
SELECT trim(regexp_replace(line, '\d+', 'n')) AS line, substring(line FROM '\d+')::int > pages('facts') / 2 AS most
FROM explain('SELECT FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 1000 AND 1100') line WHERE line ~ 'Skipped';

-- Every type, with one and with several stretches of keys
SELECT key, compare(query), (skipped(query)).pages > pages('facts') / 2 AS most
FROM unnest('{i2,i4,i8,d,ts,tz,t}'::text[]) key, (VALUES ('d.id BETWEEN 1000 AND 1100'), ('d.id IN (10, 1500, 2990)'), ('d.id % 500 < 20 AND d.id > 900')) k (keys),
  LATERAL (SELECT format('SELECT f.id, d.id AS of_dim FROM facts f JOIN dim d USING (%s) WHERE %s', key, keys) AS query) q ORDER BY key, keys;
-- different integer types on both sides
SELECT compare(query), (skipped(query)).pages > pages('facts') / 2 AS most
FROM (VALUES ('SELECT f.id FROM facts f JOIN dim d ON f.i2 = d.i4 WHERE d.id < 100'), ('SELECT f.id FROM facts f JOIN dim d ON f.i4 = d.i2 WHERE d.id < 100'),
             ('SELECT f.id FROM facts f JOIN (SELECT i4 + 0::int8 AS k FROM dim WHERE id < 50 UNION ALL SELECT 100000) d ON f.i2 = d.k')) x (query);
-- keys that no row of the type can have, and the ends of the ranges
CREATE TABLE ends AS SELECT * FROM (VALUES (1, '-infinity'::date, '-infinity'::timestamp, '-infinity'::timestamptz, '-9223372036854775808'::int8), (2, 'infinity', 'infinity', 'infinity', 9223372036854775807),
  (3, '2021-01-01', '2020-02-01', '2020-02-01 00:00+00', 1000000007)) x (id, d, ts, tz, i8);
ANALYZE ends;
INSERT INTO facts (id, d, ts, tz, i8, i4, i2, filler) VALUES (4001, 'infinity', 'infinity', 'infinity', 9223372036854775807, 2147483647, 32767, repeat('x', 300)),
  (4002, '-infinity', '-infinity', '-infinity', -9223372036854775808, -2147483648, -32768, repeat('x', 300));
SELECT compare(format('SELECT f.id FROM facts f JOIN (SELECT * FROM ends WHERE id = ANY (%L)) e USING (%s)', ids, key)), (skipped(format('SELECT f.id FROM facts f JOIN (SELECT * FROM ends WHERE id = ANY (%L)) e USING (%s)', ids, key))).pages > pages('facts') / 2 AS most
FROM unnest('{d,ts,tz,i8}'::text[]) key, (VALUES ('{1}'), ('{2}'), ('{3}'), ('{1,2,3}')) i (ids) ORDER BY key, ids;
SELECT compare('SELECT f.id FROM facts f JOIN ends e ON f.i4 = e.i8'), compare('SELECT f.id FROM facts f JOIN ends e ON f.i2 = e.i8');
-- two filters at one scan; a filter without keys; NULL keys
SELECT compare(query), (skipped(query)).pages > pages('facts') / 2 AS most
FROM (VALUES ('SELECT f.id FROM facts f JOIN dim a ON f.i4 = a.i4 JOIN dim b ON f.ts = b.ts WHERE a.id < 2000 AND b.id > 1950'),
             ('SELECT f.id FROM facts f JOIN dim a ON f.i4 = a.i4 JOIN dim b ON f.ts = b.ts WHERE a.id < 100 AND b.id > 1950'),
             ('SELECT f.id FROM facts f JOIN (SELECT i4 FROM facts WHERE id > 3000 AND id < 4000) d USING (i4)')) x (query);

-- Page ranges that are not summarized are read, also after more rows; so are updated and deleted rows
INSERT INTO facts (id, i4, i8, d, filler) SELECT n, n, n * 1000000007::int8, date '2020-01-01' + n, repeat('x', 300) FROM generate_series(5001, 5200) n;
INSERT INTO dim (id, i4, i8, d) SELECT n, n, n * 1000000007::int8, date '2020-01-01' + n FROM generate_series(5001, 5200, 10) n;
SELECT compare(format('SELECT f.id FROM facts f JOIN dim d USING (%s) WHERE d.id > 5000', key)) FROM unnest('{i4,i8,d}'::text[]) key;
UPDATE facts SET i4 = 70000 + id WHERE id % 400 = 0;
INSERT INTO dim (id, i4) SELECT 80000 + n, 70000 + n FROM generate_series(0, 3000, 400) n;
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id > 70000'), compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id < 3000');
DELETE FROM facts WHERE id BETWEEN 500 AND 900;
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 480 AND 1000');
SELECT brin_summarize_new_values('facts_i4_idx') > 0 AS summarized;
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id > 5000');
SELECT brin_desummarize_range('facts_i4_idx', 128);
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 1000 AND 1100');
VACUUM facts;
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 1000 AND 1100'), compare('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id > 5000');

-- Indexes that do not tell: partial, of several columns, of an expression, not minmax; minmax-multi can lack values
CREATE TABLE others AS SELECT id, i4 AS a, i4 AS b, i4 AS c, i4 AS e, i4 AS m FROM facts WHERE i4 IS NOT NULL ORDER BY i4;
ALTER TABLE others ADD COLUMN filler text DEFAULT 'x';
CREATE INDEX ON others USING brin (a) WITH (pages_per_range = 1) WHERE id > 100;
CREATE INDEX ON others USING brin (b, c) WITH (pages_per_range = 1);
CREATE INDEX ON others USING brin ((c % 10)) WITH (pages_per_range = 1);
CREATE INDEX ON others USING brin (e int4_bloom_ops) WITH (pages_per_range = 1);
CREATE INDEX ON others USING brin (m int4_minmax_multi_ops) WITH (pages_per_range = 1);
VACUUM ANALYZE others;
SELECT key, compare(format('SELECT o.id FROM others o JOIN dim d ON o.%s = d.i4 WHERE d.id < 200', key)), coalesce((skipped(format('SELECT o.id FROM others o JOIN dim d ON o.%s = d.i4 WHERE d.id < 200', key))).pages, 0) AS pages
FROM unnest('{a,b,c,e,m}'::text[]) key;

-- Partitions: ranges, lists, several levels, NULL, default, hash, other column numbers
CREATE TABLE ranges (id int, k int, t text) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE ranges_%s PARTITION OF ranges FOR VALUES FROM (%s) TO (%s)', n, n * 300, n * 300 + 300) FROM generate_series(1, 8) n \gexec
CREATE TABLE ranges_0 (gone int, t text, k int, id int);
ALTER TABLE ranges_0 DROP COLUMN gone;
ALTER TABLE ranges ATTACH PARTITION ranges_0 FOR VALUES FROM (MINVALUE) TO (300);
CREATE TABLE ranges_9 PARTITION OF ranges DEFAULT;
INSERT INTO ranges SELECT n, n, n::text FROM generate_series(-20, 3000) n;
INSERT INTO ranges SELECT 4000 + n, NULL, n::text FROM generate_series(1, 20) n;
CREATE TABLE lists (id int, k int, t text) PARTITION BY LIST (k);
CREATE TABLE lists_1 PARTITION OF lists FOR VALUES IN (1, 3, 5);
CREATE TABLE lists_2 PARTITION OF lists FOR VALUES IN (2, 4, NULL);
CREATE TABLE lists_3 PARTITION OF lists FOR VALUES IN (6);
CREATE TABLE lists_4 PARTITION OF lists FOR VALUES IN (7, 8, 9) PARTITION BY HASH (id);
CREATE TABLE lists_4a PARTITION OF lists_4 FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE lists_4b PARTITION OF lists_4 FOR VALUES WITH (modulus 2, remainder 1);
CREATE TABLE lists_5 PARTITION OF lists DEFAULT;
INSERT INTO lists SELECT n, nullif(n % 13, 11), n::text FROM generate_series(1, 500) n;
CREATE TABLE levels (id int, d date, k int8) PARTITION BY RANGE (d);
CREATE TABLE levels_1 PARTITION OF levels FOR VALUES FROM ('-infinity') TO ('2021-01-01') PARTITION BY RANGE (d);
CREATE TABLE levels_1a PARTITION OF levels_1 FOR VALUES FROM ('-infinity') TO ('2020-07-01');
CREATE TABLE levels_1b PARTITION OF levels_1 FOR VALUES FROM ('2020-07-01') TO (MAXVALUE);
CREATE TABLE levels_2 PARTITION OF levels FOR VALUES FROM ('2021-01-01') TO ('infinity') PARTITION BY LIST (k);
CREATE TABLE levels_2a PARTITION OF levels_2 FOR VALUES IN (1, 9223372036854775807);
CREATE TABLE levels_2b PARTITION OF levels_2 DEFAULT;
CREATE TABLE levels_3 PARTITION OF levels FOR VALUES FROM ('infinity') TO (MAXVALUE);
INSERT INTO levels SELECT n, date '2020-01-01' + n, n % 5 FROM generate_series(1, 700) n;
INSERT INTO levels VALUES (1001, 'infinity', 1), (1002, '-infinity', 1), (1003, '2022-01-01', 9223372036854775807);
CREATE TABLE pairs (id int, a int, b int) PARTITION BY RANGE (a, b);
CREATE TABLE pairs_1 PARTITION OF pairs FOR VALUES FROM (1, 1) TO (1, 100);
CREATE TABLE pairs_2 PARTITION OF pairs FOR VALUES FROM (1, 100) TO (50, 1);
CREATE TABLE pairs_3 PARTITION OF pairs FOR VALUES FROM (50, 1) TO (MAXVALUE, MAXVALUE);
INSERT INTO pairs SELECT n, 1 + n / 10, 1 + n % 100 FROM generate_series(1, 900) n;
CREATE TABLE keys AS SELECT n AS k, date '2020-01-01' + n AS d FROM generate_series(-10, 3000) n UNION ALL SELECT 5000, 'infinity' UNION ALL SELECT 5001, '-infinity';
ANALYZE ranges, lists, levels, pairs, keys;
SELECT query, compare(query), (skipped(query)).partitions FROM (VALUES
  ('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k BETWEEN 700 AND 720'),
  ('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k IN (5, 299, 1500)'),
  ('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k IN (300, 2699, 5000)'),
  ('SELECT p.id FROM ranges p JOIN (SELECT k * 1000003::int8 AS k FROM keys WHERE k IN (0, 1, 2000) UNION ALL SELECT 450) q USING (k)'),
  ('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k BETWEEN 10000 AND 20000'),
  ('SELECT p.id FROM lists p JOIN keys USING (k) WHERE keys.k IN (3, 6)'),
  ('SELECT p.id FROM lists p JOIN keys USING (k) WHERE keys.k BETWEEN 4 AND 4.5'),
  ('SELECT p.id FROM lists p JOIN keys USING (k) WHERE keys.k IN (8, 10)'),
  ('SELECT p.id FROM levels p JOIN keys USING (d) WHERE keys.d < ''2020-03-01'''),
  ('SELECT p.id FROM levels p JOIN keys USING (d) WHERE keys.k BETWEEN 100 AND 120'),
  ('SELECT p.id FROM levels p JOIN keys USING (d) WHERE keys.k IN (250, 5000)'),
  ('SELECT p.id FROM levels p JOIN keys USING (d) WHERE keys.k > 5000'),
  ('SELECT p.id FROM levels p JOIN (SELECT 9223372036854775807 AS k UNION ALL SELECT 0) q USING (k)'),
  ('SELECT p.id FROM pairs p JOIN keys ON p.a = keys.k WHERE keys.k BETWEEN 60 AND 62'),
  ('SELECT p.id FROM pairs p JOIN keys ON p.a = keys.k WHERE keys.k BETWEEN 1 AND 1.5'),
  ('SELECT p.id FROM pairs p JOIN keys ON p.b = keys.k WHERE keys.k BETWEEN 200 AND 300'),
  ('SELECT p.id FROM ranges_3 p JOIN keys USING (k) WHERE keys.k BETWEEN 2 AND 2.5'),
  ('SELECT p.id FROM ranges p JOIN keys USING (k) JOIN lists l ON l.id = p.id WHERE keys.k < 10 AND l.k = 3')) x (query);
-- row by row
SELECT (skipped('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k BETWEEN 700 AND 720', 'off')).*;
-- other scans of partitions
CREATE INDEX ON ranges (k);
SET enable_seqscan = off;
SET enable_indexscan = on;
SELECT compare('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k IN (5, 1500)');
SET enable_bitmapscan = on;
SELECT compare('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k IN (5, 1500) AND p.k < 2000');
RESET enable_bitmapscan;
RESET enable_indexscan;
RESET enable_seqscan;
SET enable_bitmapscan = off;
-- a foreign table can contain rows that its bounds exclude
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE TABLE with_foreign (id int, k int) PARTITION BY RANGE (k);
CREATE TABLE with_foreign_1 PARTITION OF with_foreign FOR VALUES FROM (1) TO (10);
CREATE FOREIGN TABLE with_foreign_2 PARTITION OF with_foreign FOR VALUES FROM (10) TO (20) SERVER files OPTIONS (program 'echo 1,50', format 'csv');
INSERT INTO with_foreign VALUES (1, 5);
SELECT compare('SELECT p.id, k FROM with_foreign p JOIN keys USING (k) WHERE keys.k IN (5, 50)');
SET client_min_messages = warning;
DROP EXTENSION file_fdw CASCADE;
RESET client_min_messages;
-- a partition that is detached and attached elsewhere, in a cached plan
PREPARE kept AS SELECT count(*), sum(p.id) FROM ranges p JOIN keys USING (k) WHERE keys.k BETWEEN 700 AND 720;
SET plan_cache_mode = force_generic_plan;
EXECUTE kept;
ALTER TABLE ranges DETACH PARTITION ranges_2;
UPDATE ranges_2 SET k = k + 3000;
ALTER TABLE ranges ATTACH PARTITION ranges_2 FOR VALUES FROM (3600) TO (4000);
EXECUTE kept;
UPDATE keys SET k = k + 3000 WHERE k BETWEEN 700 AND 720;
EXECUTE kept;
DEALLOCATE kept;
RESET plan_cache_mode;

-- Rescans: other keys rule out other pages and partitions
CREATE TABLE few AS SELECT n FROM (VALUES (1), (2), (5)) v (n);
ANALYZE few;
SET enable_nestloop = on;
SET enable_material = off;
SELECT compare('SELECT few.n, x.id FROM few CROSS JOIN LATERAL (SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id = 1000 AND f.id > few.n OFFSET 0) x');
SELECT compare('SELECT few.n, x.c FROM few CROSS JOIN LATERAL (SELECT count(*) AS c FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 100 * few.n AND 100 * few.n + 200) x');
SELECT compare('SELECT few.n, x.c FROM few CROSS JOIN LATERAL (SELECT count(*) AS c FROM ranges f JOIN keys d USING (k) WHERE d.k BETWEEN 300 * few.n AND 300 * few.n + 10) x');
RESET enable_material;
SET enable_nestloop = off;

-- Parallel scans, with a shared filter and with one per process; Parallel Append
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE FUNCTION in_parallel(parallel_hash text, leader text, query text, OUT same text, OUT pages boolean, OUT partitions bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('enable_parallel_hash', parallel_hash, true), set_config('parallel_leader_participation', leader, true);
  SELECT result INTO same FROM compare(query);
  SELECT s.pages > 0, s.partitions INTO pages, partitions FROM skipped(query) s;
END $$;
SELECT parallel_hash, leader, (in_parallel(parallel_hash, leader, query)).*
FROM (VALUES ('on', 'on'), ('on', 'off'), ('off', 'on'), ('off', 'off')) v (parallel_hash, leader),
  (VALUES ('SELECT f.id FROM facts f JOIN dim d USING (i4) WHERE d.id BETWEEN 1000 AND 1100'), ('SELECT f.id FROM facts f JOIN dim d USING (i8) WHERE d.id IN (10, 1500, 2990)'),
          ('SELECT p.id FROM ranges p JOIN keys USING (k) WHERE keys.k IN (5, 1500)')) x (query) ORDER BY query, parallel_hash, leader;
SET max_parallel_workers_per_gather = 0;

-- A BRIN operator class, or a partition key, with the reverse order
CREATE OPERATOR FAMILY reversed_family USING brin;
CREATE OPERATOR CLASS reversed_ops FOR TYPE int USING brin FAMILY reversed_family AS
  OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 brin_minmax_opcinfo(internal), FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
  FUNCTION 3 brin_minmax_consistent(internal, internal, internal), FUNCTION 4 brin_minmax_union(internal, internal, internal);
CREATE FUNCTION reversed_compare(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS reversed_order FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 reversed_compare(int, int);
CREATE TABLE backward AS SELECT id, i4 AS k, filler FROM facts WHERE id <= 3000;
CREATE INDEX ON backward USING brin (k reversed_ops) WITH (pages_per_range = 16);
CREATE TABLE backward_parts (id int, k int) PARTITION BY RANGE (k reversed_order);
CREATE TABLE backward_parts_1 PARTITION OF backward_parts FOR VALUES FROM (4000) TO (1000);
CREATE TABLE backward_parts_2 PARTITION OF backward_parts FOR VALUES FROM (1000) TO (-10);
INSERT INTO backward_parts SELECT id, k FROM backward WHERE k < 4000;
VACUUM ANALYZE backward, backward_parts;
SELECT compare(query), (skipped(query)).* FROM (VALUES ('SELECT b.id FROM backward b JOIN dim d ON b.k = d.i4 WHERE d.id BETWEEN 1000 AND 1100'),
  ('SELECT b.id FROM backward_parts b JOIN dim d ON b.k = d.i4 WHERE d.id BETWEEN 1000 AND 1100')) x (query);
