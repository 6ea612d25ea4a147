-- Monitoring: counters of index scans, the view bloom_indexes, advice

LOAD 'bloomfilter';
CREATE SCHEMA monitoring;
SET search_path = monitoring, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

-- What a statement says, or its error.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE statement INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ': ' || SQLERRM;
END $$;

-- Probes count as index scans, and keys that are present as entries read
CREATE TABLE probed (b int, f int) WITH (autovacuum_enabled = off);
INSERT INTO probed SELECT n, n FROM generate_series(1, 100) n;
CREATE INDEX probed_b ON probed USING bloomfilter (b);
CREATE INDEX probed_f ON probed USING fingerprint (f);
CREATE FUNCTION scans(OUT indexrelname name, OUT idx_scan bigint, OUT idx_tup_read bigint) RETURNS SETOF record LANGUAGE sql VOLATILE AS
  'SELECT indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes WHERE relname ~ ''^probed'' ORDER BY 1';
SELECT bloom_index_contains('probed', 'b', 1) AS present, bloom_index_contains('probed', 'b', -1) AS absent,
       bloom_index_contains('probed', 'f', 1) AS present, bloom_index_contains('probed', 'f', -1) AS absent;
SELECT pg_stat_force_next_flush();
SELECT * FROM scans();
SELECT bloom_index_contains_each('probed', 'b', ARRAY[1, 2, -1, NULL, -2]) AS b, bloom_index_contains_each('probed', 'f', ARRAY[1, 2, -1, NULL, -2]) AS f;
SELECT pg_stat_force_next_flush();
SELECT * FROM scans();
SELECT bloom_index_partitions('probed', 'b', 5), bloom_index_partitions('probed', 'f', 5);
SELECT pg_stat_force_next_flush();
SELECT * FROM scans();
-- bloom_find probes once, and its query scans the table
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM generate_series(-9, 10) n, bloom_find(NULL::probed, 'b', n);
SELECT count(*) FROM generate_series(-9, 10) n, bloom_find(NULL::probed, 'f', n);
RESET enable_indexscan;
RESET enable_bitmapscan;
SELECT pg_stat_force_next_flush();
SELECT * FROM scans();
-- a key that was not probed is not counted: another type of key, a NULL
SELECT outcome('SELECT bloom_index_contains(''probed'', ''b'', ''text'')'), bloom_index_contains('probed', 'b', NULL::int);
SELECT pg_stat_force_next_flush();
SELECT * FROM scans();
-- partitions: each index that was probed
CREATE TABLE probed_parts (k int, part int) PARTITION BY LIST (part);
CREATE TABLE probed_parts_1 PARTITION OF probed_parts FOR VALUES IN (1);
CREATE TABLE probed_parts_2 PARTITION OF probed_parts FOR VALUES IN (2);
CREATE INDEX ON probed_parts USING bloomfilter (k);
INSERT INTO probed_parts VALUES (7, 2);
SELECT count(*) FROM bloom_find(NULL::probed_parts, 'k', 7);
SELECT pg_stat_force_next_flush();
SELECT * FROM scans() WHERE indexrelname ~ 'parts';
-- filters before lookups
CREATE TABLE probed_lookup (k int);
INSERT INTO probed_lookup SELECT generate_series(1, 1000);
CREATE INDEX probed_lookup_btree ON probed_lookup (k);
CREATE INDEX probed_lookup_filter ON probed_lookup USING bloomfilter (k);
CREATE TABLE keys AS SELECT n AS k FROM generate_series(981, 1080) n;
ANALYZE probed_lookup, keys;
SET bloomfilter.lookup_filter = on;
SET bloomfilter.lookup_filter_min_rows = 0;
SET bloomfilter.lookup_filter_max_share = 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT count(*) FROM keys JOIN probed_lookup USING (k);
SELECT pg_stat_force_next_flush();
SELECT indexrelname, idx_scan, idx_tup_read BETWEEN 20 AND 22 AS present FROM scans() WHERE indexrelname ~ 'filter';
RESET bloomfilter.lookup_filter;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- The view lists the indexes of both access methods, and estimates from a few pages what bloom_index_stats and
-- fingerprint_stats compute from all
CREATE TABLE large (b int, f int, grown int) WITH (autovacuum_enabled = off);
CREATE INDEX large_grown ON large USING bloomfilter (grown) WITH (fpp = 0.05);
INSERT INTO large SELECT n, n, n FROM generate_series(1, 400000) n;
CREATE INDEX large_b ON large USING bloomfilter (b);
CREATE INDEX large_f ON large USING fingerprint (f);
CREATE INDEX large_other ON large (b);
ANALYZE large;
SELECT schemaname, tablename, indexname, indexrelid = indexname::regclass AS oid, method, bytes = pg_relation_size(indexrelid) AS bytes,
       layers, target_fpp, fpp < target_fpp AS kept, stale < 0.05 AS fresh, advice
FROM bloom_indexes WHERE tablename = 'large' ORDER BY indexname;
SELECT indexname, abs(v.keys - s.keys) < 0.03 * s.keys AS keys, abs(v.fill - s.fill) < 0.03 * s.fill AS fill, abs(v.fpp - s.fpp) < 0.2 * s.fpp AS fpp, v.layers = s.layers AS layers
FROM bloom_indexes v, bloom_index_stats(v.indexrelid) s WHERE tablename = 'large' AND method = 'bloomfilter' ORDER BY 1;
SELECT indexname, abs(v.keys - s.rows) < 0.1 * s.rows AS keys, abs(v.fill - s.load) < 0.1 * s.load AS fill, abs(v.fpp - s.false_fetches) < 0.2 * s.false_fetches AS fpp
FROM bloom_indexes v, fingerprint_stats(v.indexrelid) s WHERE tablename = 'large' AND method = 'fingerprint' ORDER BY 1;
-- the metapage and 16 pages are read of an index with one layer, and of a fingerprint index the pages of 16 buckets
CREATE FUNCTION pages_read(view_of text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM _bloom_index_health(%L::regclass)', view_of) INTO plan;
  RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
END $$;
SELECT pages_read('large_b') > 0 AS warm, pages_read('large_f') > 0 AS warm;
SELECT pages_read('large_b') AS of_b, pg_relation_size('large_b') / current_setting('block_size')::int > 50 AS large, pages_read('large_f') AS of_f;
-- repeated keys of a fingerprint index have pages of their own, which are not read: rows are counted as VACUUM does
CREATE TABLE repeated (k int) WITH (autovacuum_enabled = off);
INSERT INTO repeated SELECT 1 FROM generate_series(1, 20000);
CREATE INDEX repeated_k ON repeated USING fingerprint (k);
SELECT keys, advice FROM bloom_indexes WHERE indexname = 'repeated_k';
-- empty indexes, partitions (not the partitioned index), unlogged and temporary tables, an index on an expression
CREATE UNLOGGED TABLE unlogged (k int);
CREATE INDEX unlogged_k ON unlogged USING bloomfilter (k);
CREATE INDEX unlogged_f ON unlogged USING fingerprint (k);
CREATE TEMPORARY TABLE temporary (k int);
CREATE INDEX temporary_k ON temporary USING bloomfilter ((k + 1)) WHERE k > 5;
INSERT INTO temporary SELECT generate_series(1, 10);
SELECT tablename, indexname, method, keys, stale FROM bloom_indexes WHERE tablename ~ '^(probed_parts|unlogged|temporary)' ORDER BY 1, 2;

-- Rights: names and size for all, the condition for those who may read the index and for members of pg_monitor
SET client_min_messages = warning;
DROP ROLE IF EXISTS monitoring_reader;
CREATE ROLE monitoring_reader;
RESET client_min_messages;
CREATE FUNCTION seen() RETURNS TABLE (indexname name, bytes boolean, keys boolean, advice text) LANGUAGE sql VOLATILE AS
  'SELECT indexname, bytes > 0, keys > 0, advice FROM public.bloom_indexes WHERE tablename = ''guarded'' ORDER BY 1';
CREATE TABLE guarded (k int, l int);
INSERT INTO guarded SELECT n, n FROM generate_series(1, 100) n;
CREATE INDEX guarded_k ON guarded USING bloomfilter (k);
CREATE INDEX guarded_partial ON guarded USING bloomfilter (k) WHERE l > 50;
CREATE INDEX guarded_f ON guarded USING fingerprint (l);
GRANT USAGE ON SCHEMA monitoring TO monitoring_reader;
SET ROLE monitoring_reader;
SELECT * FROM seen();
RESET ROLE;
GRANT SELECT (k) ON guarded TO monitoring_reader;
SET ROLE monitoring_reader;
SELECT * FROM seen();
RESET ROLE;
GRANT SELECT ON guarded TO monitoring_reader;
SET ROLE monitoring_reader;
SELECT * FROM seen();
RESET ROLE;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
SET ROLE monitoring_reader;
SELECT * FROM seen();
RESET ROLE;
REVOKE ALL ON guarded FROM monitoring_reader;
REVOKE ALL ON SCHEMA monitoring FROM monitoring_reader;
GRANT pg_monitor TO monitoring_reader;
GRANT USAGE ON SCHEMA monitoring TO monitoring_reader; -- of seen()
SET ROLE monitoring_reader;
SELECT * FROM seen();
SELECT outcome('SELECT bloom_index_contains(''guarded'', ''k'', 5)'), outcome('SELECT keys FROM bloom_index_stats(''guarded_k'')');
RESET ROLE;
REVOKE ALL ON SCHEMA monitoring FROM monitoring_reader;
DROP ROLE monitoring_reader;

-- An index that cannot be read does not make the view fail: not built, not valid, damaged, without a file
BEGIN;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'guarded_k'::regclass;
UPDATE pg_index SET indisvalid = false, indisready = false WHERE indexrelid = 'guarded_f'::regclass;
SELECT * FROM seen();
ROLLBACK;
CREATE INDEX guarded_btree ON guarded (k);
BEGIN;
UPDATE pg_class SET relfilenode = (SELECT relfilenode FROM pg_class WHERE oid = 'guarded_btree'::regclass) WHERE oid IN ('guarded_k'::regclass, 'guarded_f'::regclass);
SELECT * FROM seen();
ROLLBACK;
BEGIN;
UPDATE pg_class SET relfilenode = 1 WHERE oid IN ('guarded_k'::regclass, 'guarded_f'::regclass);
SELECT indexname, bytes, keys, regexp_replace(advice, '"[^"]*"', '...') AS advice FROM seen();
ROLLBACK;
SELECT * FROM seen();
-- no locks are left behind
BEGIN;
SELECT count(*) > 5 AS many FROM bloom_indexes;
SELECT l.relation::regclass, mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_am a ON a.oid = c.relam
WHERE pid = pg_backend_pid() AND amname IN ('bloomfilter', 'fingerprint');
COMMIT;
-- other objects do not have a condition
SELECT (SELECT count(*) FROM _bloom_index_health('guarded'::regclass)) AS of_table, (SELECT count(*) FROM _bloom_index_health('guarded_btree'::regclass)) AS of_btree,
       (SELECT count(*) FROM _bloom_index_health(0)) AS of_nothing;

-- Advice after a change of fpp, until the index is rebuilt
ALTER INDEX guarded_k SET (fpp = 0.01);
SELECT advice FROM bloom_index_stats('guarded_k');
SELECT advice FROM bloom_indexes WHERE indexname = 'guarded_k';
REINDEX INDEX guarded_k;
SELECT target_fpp, advice FROM bloom_index_stats('guarded_k');
ALTER INDEX guarded_k RESET (fpp);
SELECT advice FROM bloom_index_stats('guarded_k');
ALTER INDEX guarded_k SET (fpp = 0.01, capacity = 500);
SELECT advice FROM bloom_index_stats('guarded_k');

-- bloom_stats: advice for merged filters whose layers do not fit together, and cardinality adds up; one capacity is the remedy
SELECT layers, abs(cardinality - users) < 0.05 * users AS right, round(fpp::numeric, 1) AS fpp, advice
FROM (VALUES (NULL), (20000)) c(declared), LATERAL (SELECT bloom_union_agg(f) AS merged FROM
        (SELECT bloom_agg((day * 997 + k * 13) % 20000, declared) AS f FROM generate_series(1, 30) day, generate_series(1, 9000 + day * 37) k GROUP BY day) days) m,
     (SELECT count(DISTINCT (day * 997 + k * 13) % 20000) AS users FROM generate_series(1, 30) day, generate_series(1, 9000 + day * 37) k) t, bloom_stats(merged);
-- two filters suffice, of any kind
SELECT kind, layers, left(advice, 51) AS advice FROM
  (SELECT 'agg' AS kind, bloom_agg(n) FILTER (WHERE n < 5000) | bloom_agg(n) FILTER (WHERE n < 5500) AS f FROM generate_series(1, 10000) n
   UNION ALL SELECT 'new', bloom_add_all(bloom_new(5000), array_agg(n)) | bloom_add_all(bloom_new(5100), array_agg(n)) FROM generate_series(1, 5000) n
   UNION ALL SELECT 'fixed', bloom_add_all(bloom_new(5000, growth => 0), array_agg(n)) | bloom_add_all(bloom_new(9000, growth => 0), array_agg(n)) FROM generate_series(1, 5000) n) x, bloom_stats(f);
-- more keys than the filter was made for
SELECT layers, round(fpp::numeric, 2) AS fpp, advice
FROM (SELECT bloom_add_all(bloom_new(1000, growth => 0), array_agg(n)) AS f FROM generate_series(1, 3000) n) x, bloom_stats(f);
-- none for filters that are full, that grow, that were compacted, windows, and copies of indexes; a small filter varies
SELECT p, count(*) AS filters, count(advice) AS with_advice
FROM (VALUES (0.1::float8), (0.01), (0.00001)) v(p), LATERAL (SELECT bloom_agg(n * 1000 + k, n, p) AS f FROM generate_series(1, 1000, 9) n, generate_series(1, n) k GROUP BY n) x, bloom_stats(f) GROUP BY p ORDER BY p;
SELECT count(*) AS filters, count(s.advice) AS with_advice, count(compacted.advice) AS compacted_with_advice, max(s.layers) AS layers
FROM (VALUES (1), (2), (5)) g(g), (VALUES (100), (1000)) c(capacity), (VALUES (0.1::float8), (0.0001)) p(p), (VALUES (50), (1300)) a(a), (VALUES (1), (700), (20000)) b(b),
     LATERAL (SELECT bloom_add_all(bloom_add_all(bloom_new(capacity, p, g), ARRAY(SELECT generate_series(1, a))), ARRAY(SELECT generate_series(a + 1, a + b))) AS f) x,
     LATERAL (SELECT layers, advice FROM bloom_stats(f)) s, LATERAL (SELECT advice FROM bloom_stats(bloom_compact(f))) compacted;
SELECT layers, advice FROM bloom_stats((SELECT bloom_agg(k, 1000) FROM generate_series(1, 20000) k));
SELECT layers, advice FROM bloom_stats(bloom_add_all(bloom_new(1000, max_layers => 4), ARRAY(SELECT generate_series(1, 20000))));
SELECT layers, advice FROM bloom_stats(bloom_index_export('large_grown'));
SELECT advice FROM bloom_stats(bloom_new(10));

SET client_min_messages = warning;
DROP SCHEMA monitoring CASCADE;
