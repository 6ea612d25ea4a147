-- P1: a fingerprint index finds every row of its table exactly once, through every kind of change of the table

CREATE SCHEMA fingerprint;
SET search_path = fingerprint, public;
SET max_parallel_workers_per_gather = 0;

-- VACUUM removes the rows that no snapshot sees: wait for the snapshots of autovacuum
CREATE PROCEDURE wait_for_snapshots() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 600 LOOP
    EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL);
    PERFORM pg_stat_clear_snapshot(), pg_sleep(0.05);
  END LOOP;
END $$;

-- The number of rows of a table, the number of keys for which an index scan or a bitmap scan returns a wrong number of rows, and
-- the result of fingerprint_check: rows without an entry, entries without a row, repeated entries.
CREATE FUNCTION verify(tab regclass, index regclass DEFAULT NULL, OUT rows bigint, OUT by_scan bigint, OUT by_bitmap bigint, OUT checked text) LANGUAGE plpgsql AS $$
DECLARE
  compared text := format('SELECT count(*) FROM (SELECT k, count(*) AS n FROM %s WHERE k IS NOT NULL GROUP BY k) x WHERE n <> (SELECT count(*) FROM %1$s t WHERE t.k = x.k)', tab);
BEGIN
  EXECUTE format('SELECT count(*) FROM %s', tab) INTO rows;
  SET LOCAL enable_seqscan = off;
  SET LOCAL enable_bitmapscan = off;
  EXECUTE compared INTO by_scan;
  SET LOCAL enable_bitmapscan = on;
  SET LOCAL enable_indexscan = off;
  EXECUTE compared INTO by_bitmap;
  SET LOCAL enable_indexscan = on;
  SET LOCAL enable_seqscan = on;
  checked := fingerprint_check(coalesce(index, (tab || '_k')::regclass));
END $$;

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

-- CREATE INDEX on a table with rows and NULLs, then inserts
CREATE TABLE built AS SELECT CASE WHEN n % 10 > 0 THEN n END AS k, n AS other FROM generate_series(1, 20000) n;
CREATE INDEX built_k ON built USING fingerprint (k);
SELECT * FROM verify('built');
SELECT rows, bytes_per_row BETWEEN 6 AND 9 AS small, load BETWEEN 0.7 AND 1 AS full, overflow_pages, posting_pages, false_fetches < 0.01 AS selective, key_class, advice
FROM fingerprint_stats('built_k');
INSERT INTO built SELECT n, n FROM generate_series(20001, 30000) n;
SELECT * FROM verify('built');
SELECT count(*) AS nulls FROM built WHERE k IS NULL;

-- an index on an empty table that grows through several levels, row by row and by many rows per statement
CREATE TABLE grown (k int, other int);
CREATE INDEX grown_k ON grown USING fingerprint (k);
SELECT rows, bytes, bytes_per_row, load, key_class, advice FROM fingerprint_stats('grown_k');
SELECT * FROM verify('grown');
DO $$ BEGIN FOR n IN 1 .. 2000 LOOP INSERT INTO grown VALUES (n, n); END LOOP; END $$;
SELECT * FROM verify('grown');
INSERT INTO grown SELECT n, n FROM generate_series(2001, 12000) n;
SELECT * FROM verify('grown');
INSERT INTO grown SELECT n, n FROM generate_series(12001, 60000) n;
SELECT * FROM verify('grown');
INSERT INTO grown SELECT n, n FROM generate_series(60001, 250000) n;
SELECT rows, bytes_per_row BETWEEN 6 AND 9 AS small, load BETWEEN 0.7 AND 1 AS full, overflow_pages < 5 AS even, posting_pages, false_fetches < 0.01 AS selective, advice
FROM fingerprint_stats('grown_k');
SELECT fingerprint_check('grown_k');

-- REINDEX makes it smaller, with the same result for little memory
SET maintenance_work_mem = '1MB';
REINDEX INDEX grown_k;
SELECT fingerprint_check('grown_k'), rows, bytes_per_row < 8.1 AS small FROM fingerprint_stats('grown_k');
RESET maintenance_work_mem;
REINDEX INDEX grown_k;
SELECT fingerprint_check('grown_k'), rows, bytes_per_row < 8.1 AS small FROM fingerprint_stats('grown_k');

-- updates with and without HOT; deletes; aborted transactions and subtransactions; VACUUM removes the entries of all dead rows
UPDATE built SET other = other + 1 WHERE k % 3 = 0;
UPDATE built SET k = k + 100000 WHERE k % 7 = 0;
UPDATE built SET k = NULL WHERE k % 11 = 0;
SELECT * FROM verify('built');
BEGIN;
INSERT INTO built VALUES (500001, 0);
SAVEPOINT s;
INSERT INTO built VALUES (500002, 0);
ROLLBACK TO s;
INSERT INTO built VALUES (500003, 0);
COMMIT;
BEGIN;
INSERT INTO built SELECT n, 0 FROM generate_series(600001, 600100) n;
ROLLBACK;
DELETE FROM built WHERE k % 5 = 0;
SELECT * FROM verify('built');
CALL wait_for_snapshots();
VACUUM built;
SELECT * FROM verify('built');
SELECT rows = (SELECT count(k) FROM built) AS exact FROM fingerprint_stats('built_k');
SET enable_seqscan = off;
SELECT k FROM built WHERE k IN (500001, 500002, 500003, 600001) ORDER BY k;
RESET enable_seqscan;
-- new rows at the addresses of deleted ones
INSERT INTO built SELECT n, 0 FROM generate_series(700001, 705000) n;
SELECT * FROM verify('built');
DELETE FROM built WHERE k > 1000;
CALL wait_for_snapshots();
VACUUM built;
SELECT * FROM verify('built');
SELECT rows = (SELECT count(k) FROM built) AS exact FROM fingerprint_stats('built_k');
INSERT INTO built SELECT n, n FROM generate_series(1001, 20000) n;
SELECT * FROM verify('built');

-- commands that rewrite the table and rebuild the index
VACUUM FULL built;
SELECT * FROM verify('built');
CREATE INDEX built_other ON built (other);
CLUSTER built USING built_other;
SELECT * FROM verify('built');
ALTER TABLE built ALTER other TYPE bigint;
SELECT * FROM verify('built');
REINDEX INDEX built_k;
SELECT * FROM verify('built');
TRUNCATE built;
SELECT * FROM verify('built');
INSERT INTO built SELECT n, n FROM generate_series(1, 20000) n;
SELECT * FROM verify('built');

-- in the transaction that creates the table
BEGIN;
CREATE TABLE fresh (k int);
CREATE INDEX fresh_k ON fresh USING fingerprint (k);
INSERT INTO fresh SELECT generate_series(1, 1000);
TRUNCATE fresh;
SELECT * FROM verify('fresh');
INSERT INTO fresh SELECT generate_series(1, 20000);
SELECT * FROM verify('fresh');
SAVEPOINT s;
TRUNCATE fresh;
INSERT INTO fresh SELECT generate_series(1, 100);
SELECT * FROM verify('fresh');
ROLLBACK TO s;
SELECT * FROM verify('fresh');
COMMIT;
SELECT * FROM verify('fresh');

-- temporary and unlogged tables
CREATE TEMP TABLE passing (k int) ON COMMIT DELETE ROWS;
CREATE INDEX passing_k ON passing USING fingerprint (k);
BEGIN;
INSERT INTO passing SELECT generate_series(1, 20000);
SELECT * FROM verify('passing');
COMMIT;
SELECT * FROM verify('passing');
BEGIN;
INSERT INTO passing SELECT generate_series(5, 2000);
SELECT * FROM verify('passing');
ROLLBACK;
BEGIN;
INSERT INTO passing SELECT generate_series(1, 30000);
SELECT * FROM verify('passing');
COMMIT;
CREATE UNLOGGED TABLE unlogged (k int);
CREATE INDEX unlogged_k ON unlogged USING fingerprint (k);
INSERT INTO unlogged SELECT generate_series(1, 20000);
SELECT * FROM verify('unlogged');
ALTER TABLE unlogged SET LOGGED;
SELECT * FROM verify('unlogged');

-- CREATE and REINDEX CONCURRENTLY
CREATE INDEX CONCURRENTLY built_again ON built USING fingerprint (k);
REINDEX INDEX CONCURRENTLY built_k;
SELECT * FROM verify('built');
SELECT fingerprint_check('built_again');
DROP INDEX CONCURRENTLY built_again;

-- expressions and predicates
CREATE TABLE people AS SELECT n AS k, 'User' || n || '@Example.com' AS email FROM generate_series(1, 5000) n;
CREATE INDEX people_email ON people USING fingerprint (lower(email));
CREATE INDEX people_even ON people USING fingerprint (k) WHERE k % 2 = 0;
ANALYZE people;
EXPLAIN (COSTS OFF) SELECT * FROM people WHERE lower(email) = 'user77@example.com';
SELECT * FROM people WHERE lower(email) = 'user77@example.com';
EXPLAIN (COSTS OFF) SELECT * FROM people WHERE k = 78 AND k % 2 = 0;
SELECT * FROM people WHERE k = 78 AND k % 2 = 0;
UPDATE people SET k = k + 1 WHERE k % 4 = 0;
UPDATE people SET k = k - 1 WHERE k % 4 = 3;
SELECT fingerprint_check('people_email'), fingerprint_check('people_even');
CALL wait_for_snapshots();
VACUUM people;
SELECT fingerprint_check('people_email'), fingerprint_check('people_even'),
       (SELECT rows FROM fingerprint_stats('people_even')) = (SELECT count(*) FROM people WHERE k % 2 = 0) AS exact;

-- in another tablespace
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE fingerprint_elsewhere LOCATION '';
ALTER INDEX built_k SET TABLESPACE fingerprint_elsewhere;
INSERT INTO built SELECT n, n FROM generate_series(20001, 20100) n;
SELECT * FROM verify('built');
ALTER INDEX built_k SET TABLESPACE pg_default;
DROP TABLESPACE fingerprint_elsewhere;

-- each partition has an index
CREATE TABLE parted (k int, day int) PARTITION BY LIST (day);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (day int, dropped text, k int);
ALTER TABLE parted_2 DROP dropped;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
INSERT INTO parted SELECT n, 1 + n % 2 FROM generate_series(1, 10000) n;
CREATE INDEX parted_k ON parted USING fingerprint (k);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES IN (3);
INSERT INTO parted SELECT n, 3 FROM generate_series(1, 10000) n;
UPDATE parted SET day = 2 WHERE k % 10 = 0;
SELECT relid, fingerprint_check(relid) FROM pg_partition_tree('parted_k') WHERE isleaf ORDER BY 1;
SELECT * FROM verify('parted', 'parted_1_k_idx');
SELECT outcome('SELECT * FROM fingerprint_stats(''parted_k'')');

-- A key with many rows has posting pages.  They are read one at a time, and freed when their rows are removed.
CREATE TABLE hot (k int, n int);
CREATE INDEX hot_k ON hot USING fingerprint (k);
INSERT INTO hot SELECT CASE WHEN n % 100 = 0 THEN n ELSE 7 END, n FROM generate_series(1, 101000) n;
SELECT * FROM verify('hot');
SELECT rows, bytes_per_row BETWEEN 6 AND 9 AS small, posting_pages > 70 AS many FROM fingerprint_stats('hot_k');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT k FROM hot WHERE k = 7 LIMIT 3;
SELECT count(*), count(DISTINCT n) FROM hot WHERE k = 7;
RESET enable_bitmapscan;
-- a plain scan remembers the rows that it has returned (600 kB for 100,000 rows), a bitmap scan does not
SET enable_indexscan = off;
CREATE FUNCTION executor_memory() RETURNS bigint LANGUAGE sql VOLATILE AS $$SELECT max(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'$$;
SELECT executor_memory() < 400000 AS small FROM hot WHERE k = 7 LIMIT 1;
SET enable_indexscan = on;
SET enable_bitmapscan = off;
SELECT max(memory) > 600000 AS remembers FROM (SELECT CASE WHEN n < 100 THEN executor_memory() END AS memory FROM hot WHERE k = 7) x;
RESET enable_indexscan;
RESET enable_seqscan;
RESET enable_bitmapscan;
DELETE FROM hot WHERE n % 2 = 0 AND k = 7;
VACUUM hot;
SELECT * FROM verify('hot');
DELETE FROM hot WHERE n < 50000;
VACUUM hot;
SELECT * FROM verify('hot');
SELECT rows, posting_pages < 60 AS fewer FROM fingerprint_stats('hot_k');
INSERT INTO hot SELECT 7, -n FROM generate_series(1, 50000) n;
SELECT * FROM verify('hot');
DELETE FROM hot WHERE k = 7;
VACUUM hot;
DELETE FROM hot WHERE n % 300 = 0;
VACUUM hot;
SELECT * FROM verify('hot');
SELECT rows, posting_pages FROM fingerprint_stats('hot_k');
-- the same by CREATE INDEX
INSERT INTO hot SELECT 7, -n FROM generate_series(1, 50000) n;
REINDEX INDEX hot_k;
SELECT * FROM verify('hot');
SELECT rows, posting_pages > 30 AS many FROM fingerprint_stats('hot_k');

-- Keys with dozens of rows each make pages overflow.  VACUUM merges overflow pages into their buckets.
CREATE TABLE dozens (k int, n int);
CREATE INDEX dozens_k ON dozens USING fingerprint (k);
INSERT INTO dozens SELECT n / 60, n FROM generate_series(1, 60000) n;
SELECT * FROM verify('dozens');
SELECT overflow_pages > 0 AS overflow, advice FROM fingerprint_stats('dozens_k');
DELETE FROM dozens WHERE n % 3 > 0;
VACUUM dozens;
SELECT * FROM verify('dozens');
SELECT rows, overflow_pages FROM fingerprint_stats('dozens_k');
INSERT INTO dozens SELECT n / 60, n FROM generate_series(1, 60000) n;
SELECT * FROM verify('dozens');

-- A bucket has two chains of the same key if one of them was on an overflow page that was merged.  (These keys share a bucket of
-- a small index.)
CREATE TABLE chains (k int);
CREATE INDEX chains_k ON chains USING fingerprint (k);
CREATE FUNCTION in_first_bucket(k int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  x numeric := (bloom_hash(k) >> 48 & 65535)::numeric * 11400714819323198485 + 26 * 4294967296;
BEGIN
  FOR i IN 1 .. 2 LOOP
    x := x % 18446744073709551616;
    x := (div(x, 4294967296) * 4294967296 + (div(x, 4294967296)::bigint # (x % 4294967296)::bigint)) * 15485907386658061715;
  END LOOP;
  x := x % 18446744073709551616;
  RETURN div(div(x, 4294967296) * 4, 4294967296) = 0;
END $$;
CREATE TABLE same_bucket AS SELECT k, row_number() OVER () AS n FROM generate_series(1, 1500) k WHERE in_first_bucket(k);
CREATE PROCEDURE fill(first int, last int, times int) LANGUAGE sql AS 'INSERT INTO chains SELECT k FROM same_bucket, generate_series(1, times) WHERE n BETWEEN first AND last ORDER BY n';
CALL fill(1, 1, 400); CALL fill(2, 44, 30); CALL fill(1, 1, 10); CALL fill(45, 100, 30);
CALL fill(1, 1, 400); CALL fill(101, 125, 30); CALL fill(1, 1, 400); CALL fill(126, 150, 30); CALL fill(1, 1, 400); CALL fill(151, 230, 30);
SELECT overflow_pages > 3 AS overflow, posting_pages > 1 AS several FROM fingerprint_stats('chains_k');
SELECT * FROM verify('chains');
DELETE FROM chains WHERE k <> (SELECT k FROM same_bucket WHERE n = 1);
VACUUM chains;
SELECT overflow_pages FROM fingerprint_stats('chains_k');
CALL fill(2, 40, 30);
CALL fill(1, 1, 800);
SELECT * FROM verify('chains');

-- a row address that is reused by a row with the same key
CREATE TABLE again (k int, filler text);
CREATE INDEX again_k ON again USING fingerprint (k);
DO $$ BEGIN FOR i IN 1 .. 5 LOOP INSERT INTO again SELECT n % 50, 'x' FROM generate_series(1, 1000) n; DELETE FROM again WHERE ctid IN (SELECT ctid FROM again LIMIT 500); END LOOP; END $$;
VACUUM again;
INSERT INTO again SELECT n % 50, 'y' FROM generate_series(1, 2500) n;
SELECT * FROM verify('again');
DELETE FROM again;
VACUUM again;
INSERT INTO again SELECT n % 50, 'z' FROM generate_series(1, 2500) n;
SELECT * FROM verify('again');

-- Plans: when the planner chooses the index
CREATE TABLE log AS SELECT n AS id, md5(n::text)::uuid AS trace, n % 2 AS parity, 'event ' || n AS event FROM generate_series(1, 20000) n;
CREATE INDEX log_trace ON log USING fingerprint (trace);
CREATE INDEX log_parity ON log USING fingerprint (parity);
VACUUM ANALYZE log;
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE trace = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
SELECT * FROM log WHERE trace = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE parity = 1;
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE trace > 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
-- several keys: a bitmap scan, so that no row is returned twice
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE trace = ANY ('{c4ca4238-a0b9-2382-0dcc-509a6f75849b,c81e728d-9d4c-2f63-6f06-7f89cc14862c}');
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM log WHERE trace = ANY ('{c4ca4238-a0b9-2382-0dcc-509a6f75849b,c81e728d-9d4c-2f63-6f06-7f89cc14862c}');
RESET enable_bitmapscan;
SELECT id FROM log WHERE trace = ANY ('{c4ca4238-a0b9-2382-0dcc-509a6f75849b,c81e728d-9d4c-2f63-6f06-7f89cc14862c,NULL,c4ca4238-a0b9-2382-0dcc-509a6f75849b}') ORDER BY id;
SELECT count(*) FROM log WHERE trace = ANY (ARRAY(SELECT md5((n % 700)::text)::uuid FROM generate_series(1, 2000) n));
-- joins
EXPLAIN (COSTS OFF) SELECT count(*) FROM (VALUES (1), (2), (30000), (2), (NULL)) v(n) JOIN log ON trace = md5(n::text)::uuid;
SELECT id FROM (VALUES (1), (2), (30000), (2), (NULL)) v(n) JOIN log ON trace = md5(n::text)::uuid ORDER BY id;
SELECT count(*) FROM generate_series(19001, 21000) n JOIN LATERAL (SELECT FROM log WHERE trace = md5(n::text)::uuid OFFSET 0) l ON true;
SELECT count(*) FROM generate_series(19001, 21000) n LEFT JOIN log ON trace = md5(n::text)::uuid WHERE log.id IS NULL;
-- a generic plan
SET plan_cache_mode = force_generic_plan;
PREPARE by_trace(uuid) AS SELECT id FROM log WHERE trace = $1;
PREPARE by_traces(uuid[]) AS SELECT id FROM log WHERE trace = ANY ($1) ORDER BY id;
EXPLAIN (COSTS OFF) EXECUTE by_trace('c4ca4238-a0b9-2382-0dcc-509a6f75849b');
EXECUTE by_trace('c4ca4238-a0b9-2382-0dcc-509a6f75849b');
EXECUTE by_trace('00000000-0000-0000-0000-000000000000');
EXECUTE by_trace(NULL);
EXPLAIN (COSTS OFF) EXECUTE by_traces(NULL);
EXECUTE by_traces('{c4ca4238-a0b9-2382-0dcc-509a6f75849b,c81e728d-9d4c-2f63-6f06-7f89cc14862c,NULL,c4ca4238-a0b9-2382-0dcc-509a6f75849b}');
EXECUTE by_traces('{}');
EXECUTE by_traces(NULL);
RESET plan_cache_mode;
-- order needs a btree
CREATE INDEX log_trace_btree ON log (trace);
EXPLAIN (COSTS OFF) SELECT * FROM log ORDER BY trace LIMIT 5;
DROP INDEX log_trace_btree;
EXPLAIN (COSTS OFF) SELECT * FROM log ORDER BY trace LIMIT 5;
-- several conditions
SET enable_seqscan = off;
SELECT count(*) FROM log WHERE trace = md5('5')::uuid OR trace = md5('6')::uuid;
SELECT count(*) FROM log WHERE trace = md5('5')::uuid AND trace = md5('6')::uuid;
SELECT count(*) FROM log WHERE trace = NULL;

-- cursors: forwards, backwards (through a copy), and WITH HOLD
SET enable_bitmapscan = off;
BEGIN;
DECLARE forwards NO SCROLL CURSOR FOR SELECT id FROM log WHERE trace = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
FETCH 2 FROM forwards;
EXPLAIN (COSTS OFF) DECLARE both_ways SCROLL CURSOR FOR SELECT k FROM hot WHERE k = 7;
DECLARE both_ways SCROLL CURSOR FOR SELECT k FROM hot WHERE k = 7;
SELECT count(*) FROM hot WHERE k = 7;
FETCH ABSOLUTE 50000 FROM both_ways;
FETCH ABSOLUTE 1 FROM both_ways;
FETCH ABSOLUTE 50001 FROM both_ways;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM log WHERE trace = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
COMMIT;
DELETE FROM log WHERE trace = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b';
VACUUM log;
FETCH ALL FROM held;
CLOSE held;
-- a cursor returns the rows of its snapshot while they are deleted through it
BEGIN;
DECLARE deleted CURSOR FOR SELECT k FROM hot WHERE k = 7 AND n < -40000 FOR UPDATE;
FETCH 2 FROM deleted;
DELETE FROM hot WHERE CURRENT OF deleted;
DELETE FROM hot WHERE k = 7 AND n < -40000;
MOVE ALL FROM deleted;
COMMIT;
RESET enable_bitmapscan;
RESET enable_seqscan;
SELECT * FROM verify('hot');

-- values of other types of the operator family; dates and timestamps have different families
CREATE TABLE numbers AS SELECT n::smallint AS s, n AS k, n::bigint AS l, (n / 2.0)::real AS r, 'key' || n AS t, date '2026-01-01' + n AS d FROM generate_series(1, 300) n;
CREATE INDEX numbers_s ON numbers USING fingerprint (s);
CREATE INDEX numbers_k ON numbers USING fingerprint (k);
CREATE INDEX numbers_l ON numbers USING fingerprint (l);
CREATE INDEX numbers_r ON numbers USING fingerprint (r);
CREATE INDEX numbers_t ON numbers USING fingerprint (t);
CREATE INDEX numbers_d ON numbers USING fingerprint (d);
ANALYZE numbers;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM numbers WHERE s = 77::bigint;
SELECT (SELECT count(*) FROM numbers WHERE s = 77::bigint) AS s, (SELECT count(*) FROM numbers WHERE k = 77::smallint) AS k, (SELECT count(*) FROM numbers WHERE l = 77) AS l,
       (SELECT count(*) FROM numbers WHERE r = 77.5::float8) AS r, (SELECT count(*) FROM numbers WHERE t = 'key77'::name) AS t, (SELECT count(*) FROM numbers WHERE d = timestamp '2026-02-01') AS d,
       (SELECT count(*) FROM numbers WHERE l = 77 + 4294967296) AS none;
SELECT (SELECT count(*) FROM numbers WHERE k = ANY ('{2,NULL,4,1001,2}')) AS any, (SELECT count(*) FROM numbers WHERE k = ANY (NULL::int[])) AS any_of_null,
       (SELECT count(*) FROM numbers WHERE k = ANY ('{}')) AS any_of_none, (SELECT count(*) FROM numbers WHERE k = 2 AND k = 4) AS both,
       (SELECT count(*) FROM numbers WHERE k = ANY ('{{2,4},{6,2}}')) AS two_dimensions;
RESET enable_seqscan;

-- long, compressed and external keys
CREATE TABLE long_keys (k text);
INSERT INTO long_keys SELECT repeat(chr(97 + n % 26), n * 500) FROM generate_series(1, 40) n;
CREATE INDEX long_keys_k ON long_keys USING fingerprint (k);
INSERT INTO long_keys SELECT string_agg(md5(n || ':' || i), '') FROM generate_series(1, 5) n, generate_series(1, 400) i GROUP BY n;
SELECT * FROM verify('long_keys');

-- The type of a column can differ from that of its operator class if both have the same representation; ALTER TABLE keeps the index file.
CREATE TABLE related (k oid, v varchar(60));
INSERT INTO related SELECT n, 'key ' || n FROM generate_series(1, 500) n;
CREATE INDEX related_k ON related USING fingerprint (k);
CREATE INDEX related_v ON related USING fingerprint (v);
SELECT pg_relation_filenode('related_k') AS file_k, pg_relation_filenode('related_v') AS file_v \gset
ALTER TABLE related ALTER k TYPE regclass, ALTER v TYPE text;
SELECT pg_relation_filenode('related_k') = :file_k AS kept_k, pg_relation_filenode('related_v') = :file_v AS kept_v;
SET enable_seqscan = off;
INSERT INTO related VALUES (1001, 'later');
SELECT (SELECT count(*) FROM related WHERE k = 1001) AS inserted, (SELECT count(*) FROM related WHERE k = 5::oid) AS by_oid, (SELECT count(*) FROM related WHERE v = 'later') AS v,
       fingerprint_check('related_k') AS k, fingerprint_check('related_v') AS v;
-- citext has its own equality operator: the index remains one of text
ALTER TABLE related ALTER v TYPE citext;
INSERT INTO related VALUES (1002, 'LATER');
SELECT (SELECT count(*) FROM related WHERE v = 'later') AS as_citext, (SELECT count(*) FROM related WHERE v::text = 'later') AS as_text, fingerprint_check('related_v');
RESET enable_seqscan;
\set VERBOSITY sqlstate
REINDEX INDEX related_v;
\set VERBOSITY default
DROP INDEX related_v;
ALTER TABLE related ALTER k TYPE bigint;
SELECT fingerprint_check('related_k');

-- bloom_index_contains and bloom_find use it if the column has no bloomfilter index
CREATE TABLE found (k text) PARTITION BY HASH (k);
CREATE TABLE found_0 PARTITION OF found FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE found_1 PARTITION OF found FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX found_k ON found USING fingerprint (k);
INSERT INTO found SELECT CASE WHEN n % 2 = 0 THEN 'often' ELSE 'key ' || n END FROM generate_series(1, 20000) n;
SELECT count(*) FILTER (WHERE bloom_index_contains('found', 'k', 'key ' || n)) AS there,
  count(*) FILTER (WHERE bloom_index_contains('found', 'k', 'absent ' || n)) < 10 AS few_others FROM generate_series(1, 20000, 2) n;
SELECT bloom_index_contains('found', 'k', 'often') AS often, bloom_index_contains_each('found', 'k', '{key 1,absent,NULL}'),
  (SELECT count(*) FROM bloom_index_partitions('found', 'k', 'key 1')) AS partitions, (SELECT count(*) FROM bloom_find(NULL::found, 'k', 'often')) AS found;
SELECT bloom_index_contains('found_0', 'found_0_k_idx', 'key 3') OR bloom_index_contains('found_1', 'found_1_k_idx', 'key 3') AS by_index;
SELECT outcome('SELECT bloom_index_contains(''found'', ''k'', 1)') AS another_class;
CREATE INDEX found_filter ON found USING bloomfilter (k);
SELECT bloom_index_contains('found', 'k', 'key 1') AS there, bloom_index_contains('found', 'k', 'absent 1') AS not_there;
DELETE FROM found WHERE k = 'key 1';
VACUUM found;
SELECT bloom_index_contains('found', 'k', 'key 1') AS by_bloomfilter;
DROP INDEX found_filter;
SELECT bloom_index_contains('found', 'k', 'key 1') AS by_fingerprint;

-- properties
SELECT property, pg_indexam_has_property(oid, property) AS method FROM pg_am, unnest('{can_order,can_unique,can_multi_col,can_exclude,can_include}'::text[]) property WHERE amname = 'fingerprint';
SELECT property, pg_index_has_property('built_k', property) AS index FROM unnest('{clusterable,index_scan,bitmap_scan,backward_scan}'::text[]) property;
SELECT property, pg_index_column_has_property('built_k', 1, property) AS column FROM unnest('{orderable,distance_orderable,returnable,search_array,search_nulls}'::text[]) property;

-- unsupported definitions, and the reasons
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b int);
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE refused (k int, l int, e mood, f pair, g pair[], j json, p point, c citext, a citext[], b bloom, t text COLLATE ignoring);
SELECT command, regexp_replace(outcome(command), '\m(fingerprint|public)\.|OID \d+ ', '', 'g') AS outcome FROM (VALUES
  ('CREATE UNIQUE INDEX ON refused USING fingerprint (k)'),
  ('CREATE INDEX ON refused USING fingerprint (k, l)'),
  ('CREATE INDEX ON refused USING fingerprint (k) INCLUDE (l)'),
  ('CREATE INDEX ON refused USING fingerprint (k DESC)'),
  ('CREATE INDEX ON refused USING fingerprint (e)'),
  ('CREATE INDEX ON refused USING fingerprint (f)'),
  ('CREATE INDEX ON refused USING fingerprint (g)'),
  ('CREATE INDEX ON refused USING fingerprint (j)'),
  ('CREATE INDEX ON refused USING fingerprint (p)'),
  ('CREATE INDEX ON refused USING fingerprint (a)'),
  ('CREATE INDEX ON refused USING fingerprint (b)'),
  ('CREATE INDEX ON refused USING fingerprint (t)'),
  ('CREATE INDEX ON refused USING fingerprint (k) WITH (fillfactor = 70)'),
  ('CREATE INDEX ON refused USING fingerprint (k int4_ops(fpp = 0.1))'),
  ('ALTER TABLE refused ADD EXCLUDE USING fingerprint (k WITH =)'),
  ('CREATE TABLE excluded (k int, EXCLUDE USING fingerprint (k WITH =))'),
  ('CLUSTER built USING built_k'),
  ('SELECT * FROM fingerprint_stats(''built_other'')'),
  ('SELECT fingerprint_check(''built'')'),
  ('SELECT fingerprint_check(''parted_k'')'),
  ('SELECT bloom_index_check(''built_k'')')) v(command);
-- citext is compared as text, with a warning
\set VERBOSITY sqlstate
CREATE INDEX refused_c ON refused USING fingerprint (c);
\set VERBOSITY default
-- an operator class of a user could define equality differently
CREATE FUNCTION int_same_parity(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 % 2 = $2 % 2';
CREATE OPERATOR ~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = int_same_parity);
CREATE OPERATOR CLASS parity_ops FOR TYPE int USING fingerprint AS OPERATOR 1 ~~~;
SELECT outcome('CREATE INDEX ON refused USING fingerprint (k parity_ops)');
SELECT bool_and(amvalidate(o.oid)) AS all_valid FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod WHERE amname = 'fingerprint' AND opcname <> 'parity_ops';

-- privileges for fingerprint_stats: SELECT on the column, and no row-level security
CREATE ROLE fingerprint_reader;
GRANT USAGE ON SCHEMA fingerprint TO fingerprint_reader;
CREATE TABLE secret (k int, other int);
CREATE INDEX secret_k ON secret USING fingerprint (k);
INSERT INTO secret SELECT n, n FROM generate_series(1, 100) n;
SET ROLE fingerprint_reader;
SELECT outcome('SELECT fingerprint_check(''secret_k'')') AS check, outcome('SELECT rows FROM fingerprint_stats(''secret_k'')') AS stats;
RESET ROLE;
GRANT SELECT (k) ON secret TO fingerprint_reader;
SET ROLE fingerprint_reader;
SELECT outcome('SELECT fingerprint_check(''secret_k'')') AS check, outcome('SELECT rows FROM fingerprint_stats(''secret_k'')') AS stats;
RESET ROLE;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
SET ROLE fingerprint_reader;
SELECT outcome('SELECT fingerprint_check(''secret_k'')') AS check, outcome('SELECT rows FROM fingerprint_stats(''secret_k'')') AS stats;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA fingerprint CASCADE;
DROP ROLE fingerprint_reader;
