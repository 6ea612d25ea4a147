-- P1: a bloomfilter index covers every row, whatever happens to its table

CREATE SCHEMA index;
SET search_path = index, public;
SET max_parallel_workers_per_gather = 0;

-- Returns how many of the keys 1 .. highest a plain scan finds and an index scan does not.
CREATE FUNCTION missed(tab regclass, highest int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  by_index bigint;
  by_scan bigint;
BEGIN
  SET LOCAL enable_seqscan = off;
  EXECUTE format('SELECT count(*) FROM generate_series(1, %s) n, LATERAL (SELECT FROM %s t WHERE t.k = n OFFSET 0) x', highest, tab) INTO by_index;
  SET LOCAL enable_seqscan = on;
  SET LOCAL enable_bitmapscan = off;
  EXECUTE format('SELECT count(*) FROM %s t WHERE t.k BETWEEN 1 AND %s', tab, highest) INTO by_scan;
  SET LOCAL enable_bitmapscan = on;
  RETURN by_scan - by_index;
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

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;

-- built on a table with rows and NULLs, then inserted into
CREATE TABLE built AS SELECT CASE WHEN n % 10 > 0 THEN n END AS k, n AS other FROM generate_series(1, 20000) n;
CREATE INDEX built_k ON built USING bloomfilter (k);
SELECT missed('built', 60), bloom_index_check('built_k');
INSERT INTO built SELECT n, n FROM generate_series(20001, 30000) n;
SELECT bloom_index_check('built_k');

-- created on an empty table and grown to several layers, by single rows and by many in one statement
CREATE TABLE grown (k int, other int);
CREATE INDEX grown_k ON grown USING bloomfilter (k) WITH (fpp = 0.01);
DO $$ BEGIN FOR n IN 1 .. 2000 LOOP INSERT INTO grown VALUES (n, n); END LOOP; END $$;
INSERT INTO grown SELECT n, n FROM generate_series(2001, 250000) n;
SELECT layers BETWEEN 2 AND 3 AS grown, abs(keys - 250000) < 2500 AS counted, capacity >= keys AS room, target_fpp, fpp < 0.011 AS as_promised, key_class
FROM bloom_index_stats('grown_k');
SELECT missed('grown', 60), bloom_index_check('grown_k');
SELECT count(*) < 0.011 * 200000 AS as_promised FROM generate_series(1000001, 1200000) n WHERE bloom_index_contains('grown', 'k', n);

-- P2: no growth up to the declared capacity, and the measured fpp meets the target
CREATE TABLE declared (k int);
CREATE INDEX declared_k ON declared USING bloomfilter (k) WITH (capacity = 100000, fpp = 0.02);
INSERT INTO declared SELECT generate_series(1, 99000);
SELECT layers, bytes / 100000.0 < 1.25 AS small FROM bloom_index_stats('declared_k');
SELECT count(*) < 0.022 * 200000 AS as_promised FROM generate_series(1000001, 1200000) n WHERE bloom_index_contains('declared', 'k', n);

-- HOT and other updates, deletes, aborted transactions and subtransactions, VACUUM
UPDATE built SET other = other + 1 WHERE k % 3 = 0;
UPDATE built SET k = k + 100000 WHERE k % 7 = 0;
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
VACUUM built;
SELECT missed('built', 60), bloom_index_check('built_k');
SELECT bloom_index_contains('built', 'k', 500001) AS committed, bloom_index_contains('built', 'k', 500003) AS after_savepoint;

-- table rewrites, which rebuild the index
VACUUM FULL built;
SELECT missed('built', 60), bloom_index_check('built_k');
CREATE INDEX built_other ON built (other);
CLUSTER built USING built_other;
SELECT missed('built', 60), bloom_index_check('built_k');
ALTER TABLE built ALTER other TYPE bigint;
SELECT bloom_index_check('built_k');
REINDEX INDEX built_k;
SELECT bloom_index_check('built_k'), (SELECT layers FROM bloom_index_stats('built_k'));
TRUNCATE built;
SELECT bloom_index_contains('built', 'k', 1) AS after_truncate;
INSERT INTO built SELECT n, n FROM generate_series(1, 20000) n;
SELECT missed('built', 60), bloom_index_check('built_k');

-- in the transaction that creates the table
BEGIN;
CREATE TABLE fresh (k int);
CREATE INDEX fresh_k ON fresh USING bloomfilter (k);
INSERT INTO fresh SELECT generate_series(1, 1000);
TRUNCATE fresh;
SELECT bloom_index_contains('fresh', 'k', 1) AS after_truncate;
INSERT INTO fresh SELECT generate_series(1, 100000);
SELECT missed('fresh', 60), bloom_index_check('fresh_k');
SAVEPOINT s;
TRUNCATE fresh;
ROLLBACK TO s;
SELECT missed('fresh', 60), bloom_index_check('fresh_k');
COMMIT;
SELECT missed('fresh', 60), bloom_index_check('fresh_k');

-- temporary and unlogged tables
CREATE TEMP TABLE passing (k int) ON COMMIT DELETE ROWS;
CREATE INDEX passing_k ON passing USING bloomfilter (k);
BEGIN;
INSERT INTO passing SELECT generate_series(1, 100000);
SELECT bloom_index_check('passing_k'), bloom_index_contains('passing', 'k', 99999) AS present;
COMMIT;
SELECT bloom_index_contains('passing', 'k', 1) AS after_commit;
BEGIN;
INSERT INTO passing SELECT generate_series(5, 2000);
SELECT bloom_index_check('passing_k'), bloom_index_contains('passing', 'k', 1) AS absent;
COMMIT;
CREATE UNLOGGED TABLE unlogged (k int);
CREATE INDEX unlogged_k ON unlogged USING bloomfilter (k);
INSERT INTO unlogged SELECT generate_series(1, 100000);
SELECT missed('unlogged', 60), bloom_index_check('unlogged_k');
ALTER TABLE unlogged SET LOGGED;
SELECT bloom_index_check('unlogged_k');

-- CREATE and REINDEX CONCURRENTLY
CREATE INDEX CONCURRENTLY built_again ON built USING bloomfilter (k) WITH (fpp = 0.05);
REINDEX INDEX CONCURRENTLY built_k;
SELECT bloom_index_check('built_again'), bloom_index_check('built_k');
DROP INDEX built_again;

-- expressions and predicates
CREATE TABLE people AS SELECT n AS k, 'User' || n || '@Example.com' AS email FROM generate_series(1, 5000) n;
CREATE INDEX people_email ON people USING bloomfilter (lower(email));
CREATE INDEX people_even ON people USING bloomfilter (k) WHERE k % 2 = 0;
ANALYZE people;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM people WHERE lower(email) = 'user77@example.com';
SELECT * FROM people WHERE lower(email) = 'user77@example.com';
EXPLAIN (COSTS OFF) SELECT * FROM people WHERE k = 78 AND k % 2 = 0;
SELECT * FROM people WHERE k = 78 AND k % 2 = 0;
RESET enable_seqscan;
SELECT bloom_index_check('people_email'), bloom_index_check('people_even');

-- maintenance_work_mem exceeded: the sort uses the disk, and the index is the same
SET maintenance_work_mem = '1MB';
REINDEX INDEX grown_k;
SELECT bloom_index_check('grown_k');
SELECT md5(bloom_index_export('grown_k')::text) AS little_memory \gset
SET maintenance_work_mem = '256MB';
REINDEX INDEX grown_k;
SELECT md5(bloom_index_export('grown_k')::text) = :'little_memory' AS same;
RESET maintenance_work_mem;

-- few distinct keys make a small index, even if the hashes of all rows exceed maintenance_work_mem
CREATE TABLE repeated AS SELECT n % 20000 AS k FROM generate_series(1, 300000) n;
SET maintenance_work_mem = '1MB';
CREATE INDEX repeated_k ON repeated USING bloomfilter (k);
RESET maintenance_work_mem;
SELECT abs(keys - 20000) < 200 AS counted, bytes < 70000 AS small FROM bloom_index_stats('repeated_k');

-- another tablespace
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE index_elsewhere LOCATION '';
ALTER INDEX built_k SET TABLESPACE index_elsewhere;
INSERT INTO built SELECT n, n FROM generate_series(20001, 20100) n;
SELECT bloom_index_check('built_k');
ALTER INDEX built_k SET TABLESPACE pg_default;
DROP TABLESPACE index_elsewhere;

-- each partition has its own index; that of a new partition starts with the size of its siblings
CREATE TABLE parted (k int, day int) PARTITION BY LIST (day);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (day int, dropped text, k int);
ALTER TABLE parted_2 DROP dropped;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
INSERT INTO parted SELECT n, 1 + n % 2 FROM generate_series(1, 200000) n;
CREATE INDEX parted_k ON parted USING bloomfilter (k);
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES IN (3);
SELECT relid, layers, capacity > 120000 AS large, keys FROM pg_partition_tree('parted_k'), bloom_index_stats(relid) WHERE isleaf AND relid::text ~ '3';
INSERT INTO parted SELECT n, 3 FROM generate_series(1, 100000) n;
SELECT relid, layers, bloom_index_check(relid) FROM pg_partition_tree('parted_k'), bloom_index_stats(relid) WHERE isleaf ORDER BY 1;
SELECT missed('parted', 60);

-- ALTER TABLE rebuilds the indexes of all partitions: a sibling that is being rebuilt has no size yet
TRUNCATE parted_1;
SELECT capacity > 120000 AS large, keys FROM bloom_index_stats('parted_1_k_idx');
-- partitions without rows do not keep each other's indexes large
TRUNCATE parted;
REINDEX TABLE parted;
SELECT max(capacity) > 120000 AS large, sum(keys) AS keys FROM pg_partition_tree('parted_k'), bloom_index_stats(relid) WHERE isleaf;
CREATE TABLE rebuilt (k int, day int) PARTITION BY LIST (day);
CREATE TABLE rebuilt_1 PARTITION OF rebuilt FOR VALUES IN (1);
CREATE TABLE rebuilt_2 PARTITION OF rebuilt FOR VALUES IN (2);
CREATE INDEX ON rebuilt USING bloomfilter (k);
INSERT INTO rebuilt SELECT n, 2 FROM generate_series(1, 1000) n;
ALTER TABLE rebuilt ALTER COLUMN k TYPE bigint;
SELECT bloom_index_check('rebuilt_1_k_idx') AS empty_partition, bloom_index_check('rebuilt_2_k_idx') AS full_partition;
SELECT missed('rebuilt', 60);

-- properties of the access method
SELECT pg_indexam_has_property(oid, 'can_unique') AS can_unique, pg_indexam_has_property(oid, 'can_multi_col') AS can_multi_col,
       pg_indexam_has_property(oid, 'can_include') AS can_include, pg_index_has_property('built_k'::regclass, 'bitmap_scan') AS bitmap_scan,
       pg_index_has_property('built_k'::regclass, 'index_scan') AS index_scan
FROM pg_am WHERE amname = 'bloomfilter';

-- unsupported columns and options (since 17 the messages qualify type names, because an index is built with a safe search_path)
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN good_pair AS pair CHECK ((value).a > 0);
CREATE TYPE pair_range AS RANGE (SUBTYPE = pair);
CREATE TABLE refused_row (k int);
CREATE TABLE refused (k int, l int, e mood, m mood[], f pair, g pair[], h good_pair, i pair_range, r refused_row, j json, p point, a citext[], b bloom);
SELECT command, regexp_replace(outcome('CREATE ' || command), '\m(index|public)\.', '', 'g') AS outcome FROM (VALUES
  ('UNIQUE INDEX ON refused USING bloomfilter (k)'),
  ('INDEX ON refused USING bloomfilter (k, l)'),
  ('INDEX ON refused USING bloomfilter (k) INCLUDE (l)'),
  ('INDEX ON refused USING bloomfilter (e)'),
  ('INDEX ON refused USING bloomfilter (m)'),
  ('INDEX ON refused USING bloomfilter (f)'),
  ('INDEX ON refused USING bloomfilter (g)'),
  ('INDEX ON refused USING bloomfilter (h)'),
  ('INDEX ON refused USING bloomfilter (i)'),
  ('INDEX ON refused USING bloomfilter (r)'),
  ('INDEX ON refused USING bloomfilter (a)'),
  ('INDEX ON refused USING bloomfilter (j)'),
  ('INDEX ON refused USING bloomfilter (p)'),
  ('INDEX ON refused USING bloomfilter (b)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (fpp = 0)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (fpp = 0.00001)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (fpp = 0.6)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (capacity = 0)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (capacity = many)'),
  ('INDEX ON refused USING bloomfilter (k) WITH (growth = 2)'),
  ('INDEX ON refused USING bloomfilter (k int4_ops(fpp = 0.1))')) v(command);
SELECT outcome('ALTER TABLE refused ADD EXCLUDE USING bloomfilter (k WITH =)');

-- The type of a column can differ from that of its operator class if both have the same representation.  ALTER TABLE then
-- keeps the file of the index, and the index remains usable.
CREATE TABLE related (k oid, v varchar(60));
INSERT INTO related SELECT oid, 'key ' || relname FROM pg_class;
CREATE INDEX related_k ON related USING bloomfilter (k);
CREATE INDEX related_v ON related USING bloomfilter (v);
SELECT pg_relation_filenode('related_k') AS file_k, pg_relation_filenode('related_v') AS file_v \gset
ALTER TABLE related ALTER k TYPE regclass, ALTER v TYPE text;
SELECT pg_relation_filenode('related_k') = :file_k AS kept_k, pg_relation_filenode('related_v') = :file_v AS kept_v;
SET enable_seqscan = off;
INSERT INTO related VALUES (0, 'later');
UPDATE related SET k = 'related' WHERE k = 'pg_class'::regclass;
SELECT (SELECT count(*) FROM related WHERE k = 'related'::regclass) AS updated, (SELECT count(*) FROM related WHERE k = 0) AS inserted,
       (SELECT count(*) FROM related WHERE k = ANY ('{pg_proc,pg_type}'::regclass[])) AS two, (SELECT count(*) FROM related WHERE k = 'pg_am'::regclass::oid) AS by_oid,
       bloom_index_contains('related', 'k', 'pg_am'::regclass::oid) AS yes, bloom_index_contains('related', 'k', 4::oid) AS no, bloom_index_check('related_k');
REINDEX INDEX related_k;
VACUUM FULL related;
CREATE INDEX CONCURRENTLY related_k2 ON related USING bloomfilter (k);
SELECT bloom_index_check('related_k') AS rebuilt, bloom_index_check('related_k2') AS created;
-- an exported filter of these OIDs would be wrong in another database
SELECT outcome('SELECT bloom_index_export(''related_k'')');
-- citext has its own equality operator, which the index, still one of text, does not support
SELECT pg_relation_filenode('related_v') AS file_v \gset
ALTER TABLE related ALTER v TYPE citext;
SELECT pg_relation_filenode('related_v') = :file_v AS kept_v;
INSERT INTO related VALUES (1, 'LATER');
SELECT (SELECT count(*) FROM related WHERE v = 'later') AS as_citext, (SELECT count(*) FROM related WHERE v::text = 'later') AS as_text,
       (SELECT bool_or(line ~ 'related_v') FROM plan('SELECT * FROM related WHERE v = ''later''') line) AS used_as_citext,
       (SELECT bool_or(line ~ 'related_v') FROM plan('SELECT * FROM related WHERE v::text = ''later''') line) AS used_as_text,
       bloom_index_contains('related', 'v', 'nothing') AS cannot_tell, bloom_index_check('related_v');
-- bloom_find uses the equality operator of the column
SELECT (SELECT count(*) FROM bloom_find(NULL::related, 'v', 'later')) AS literal, (SELECT count(*) FROM bloom_find(NULL::related, 'v', 'Later'::text)) AS text,
       (SELECT count(*) FROM bloom_find(NULL::related, 'v', 'lAter'::citext)) AS citext, (SELECT count(*) FROM bloom_find(NULL::related, 'v', 'nothing')) AS none;
SELECT outcome('SELECT bloom_index_export(''related_v'')');
\set VERBOSITY sqlstate
CREATE INDEX related_v2 ON related USING bloomfilter (v);
VACUUM FULL related;
\set VERBOSITY default
SELECT bloom_index_check('related_v') AS rebuilt;
RESET enable_seqscan;
DROP INDEX related_v, related_v2;
-- a change to a type of another operator class rebuilds the index, or fails
ALTER TABLE related ALTER k TYPE bigint;
SELECT bloom_index_check('related_k'), bloom_index_contains('related', 'k', 4) AS no;
\set VERBOSITY sqlstate
ALTER TABLE related ALTER k TYPE mood USING 'sad';
\set VERBOSITY default

-- options take effect when the index is rebuilt
ALTER INDEX declared_k SET (fpp = 0.2, capacity = 200000);
SELECT target_fpp FROM bloom_index_stats('declared_k');
REINDEX INDEX declared_k;
SELECT target_fpp, capacity >= 200000 AS room FROM bloom_index_stats('declared_k');

-- user-defined operator classes are rejected: their equality could differ
CREATE FUNCTION int_same_parity(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 % 2 = $2 % 2';
CREATE OPERATOR ~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = int_same_parity);
CREATE OPERATOR CLASS parity_ops FOR TYPE int USING bloomfilter AS OPERATOR 1 ~~~;
SELECT outcome('CREATE INDEX ON refused USING bloomfilter (k parity_ops)');
SELECT bool_and(amvalidate(o.oid)) AS all_valid FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod WHERE amname = 'bloomfilter' AND opcname <> 'parity_ops';

SET client_min_messages = warning;
DROP SCHEMA index CASCADE;
