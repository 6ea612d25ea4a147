-- Examples for script/demo: each part compares a filter or an index of the extension with PostgreSQL's own way.
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET random_page_cost = 1.1;		-- for SSDs and cached tables
CREATE EXTENSION bloomfilter;
LOAD 'bloomfilter';

\echo
\echo '=== 1. An index that finds rows by equality in about 7 bytes per row, however long the keys are.'
\echo '    Compared with a btree on the same uuid column: size, and time of 40,000 lookups one by one, half of which find a row.'
\echo '    (A nested loop is forced for both.  Each time is that of a second run.)'
\echo '    (creating a table of 500,000 rows ...)'
CREATE TABLE request (trace_id uuid, message text);
INSERT INTO request SELECT md5(n::text)::uuid, 'request ' || n FROM generate_series(1, 500000) n;
CREATE TABLE wanted AS SELECT md5((n * 25)::text)::uuid AS trace_id FROM generate_series(1, 40000) n;
VACUUM ANALYZE request, wanted;
SELECT count(message) FROM request \g /dev/null
\set lookups 'SELECT count(message) FROM wanted JOIN request USING (trace_id)'
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
\set ECHO queries
\timing on
CREATE INDEX request_fingerprint ON request USING fingerprint (trace_id);
\timing off
\set ECHO none
:lookups \g /dev/null
\set ECHO queries
\timing on
SELECT count(message) FROM wanted JOIN request USING (trace_id);
\timing off
\set ECHO none
SELECT pg_relation_size('request_fingerprint') AS fingerprint \gset
DROP INDEX request_fingerprint;
\echo '--- The same with a btree instead:'
\set ECHO queries
\timing on
CREATE INDEX request_btree ON request (trace_id);
\timing off
\set ECHO none
:lookups \g /dev/null
\set ECHO queries
\timing on
SELECT count(message) FROM wanted JOIN request USING (trace_id);
\timing off
\set ECHO none
SELECT pg_size_pretty(:fingerprint::bigint) AS fingerprint, round(:fingerprint / 500000.0, 1) AS "bytes per row",
       pg_size_pretty(pg_relation_size('request_btree')) AS btree, round(pg_relation_size('request_btree') / 500000.0, 1) AS "bytes per row";
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;

\echo
\echo '=== 2. Which keys of a batch are new?  A small filter is tested before the btree.  The SQL does not change.'
\echo '    Compared with PostgreSQL''s plan of the same query: 40,000 keys, 10% of them in the table of part 1, which has a btree.'
CREATE TABLE batch AS SELECT md5((CASE WHEN n % 10 = 0 THEN n ELSE n + 10000000 END)::text)::uuid AS trace_id FROM generate_series(1, 40000) n;
VACUUM ANALYZE batch;
\echo
\set ECHO queries
\timing on
SELECT count(*) AS new FROM batch WHERE NOT EXISTS (SELECT FROM request WHERE request.trace_id = batch.trace_id);
CREATE INDEX request_filter ON request USING bloomfilter (trace_id);
\timing off
SET bloomfilter.lookup_filter = on;
\timing on
SELECT count(*) AS new FROM batch WHERE NOT EXISTS (SELECT FROM request WHERE request.trace_id = batch.trace_id);
\timing off
EXPLAIN (COSTS OFF) SELECT count(*) AS new FROM batch WHERE NOT EXISTS (SELECT FROM request WHERE request.trace_id = batch.trace_id);
\set ECHO none
RESET bloomfilter.lookup_filter;

\echo
\echo '=== 3. Reports on a star schema: scans discard rows without a join partner.  The SQL does not change.'
\echo '    Compared with the same hash joins without filters.'
\echo '    (creating 1.5 million sales in 12 partitions, one per month ...)'
CREATE TABLE product AS SELECT n AS id, 'group ' || n % 50 AS grp FROM generate_series(1, 100000) n;
CREATE TABLE shop AS SELECT n AS id, 'Country ' || n % 20 AS country FROM generate_series(1, 20000) n;
CREATE TABLE calendar AS SELECT day::date, 'Q' || extract(quarter FROM day) AS quarter FROM generate_series('2026-01-01', '2026-12-31', interval '1 day') day;
CREATE TABLE sale (day date, product_id int, shop_id int, amount int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE sale_%s PARTITION OF sale FOR VALUES FROM (%L) TO (%L)', to_char(month, 'MM'), month, month + interval '1 month')
FROM generate_series(timestamp '2026-01-01', '2026-12-01', interval '1 month') month \gexec
INSERT INTO sale SELECT date '2026-01-01' + n / 4110, (1 + (hashint4extended(n, 1) & 2147483647) % 100000)::int,
  (1 + (hashint4extended(n, 2) & 2147483647) % 20000)::int, n % 100 FROM generate_series(0, 1499999) n;
VACUUM ANALYZE product, shop, calendar, sale;
\set ECHO queries
\timing on
SELECT country, count(*), sum(amount) FROM sale JOIN product ON product.id = product_id JOIN shop ON shop.id = shop_id
WHERE grp = 'group 7' AND country IN ('Country 3', 'Country 4') GROUP BY country ORDER BY country;
\timing off
SET bloomfilter.join_filter = on;
\timing on
SELECT country, count(*), sum(amount) FROM sale JOIN product ON product.id = product_id JOIN shop ON shop.id = shop_id
WHERE grp = 'group 7' AND country IN ('Country 3', 'Country 4') GROUP BY country ORDER BY country;
\timing off
\set ECHO none

\echo
\echo '=== 4. One quarter of the same table, selected in the calendar: partitions without any of its days are not read.'
\echo '    Compared with the same hash join without a filter, which reads all partitions.'
SET bloomfilter.join_filter = off;
\echo
\set ECHO queries
\timing on
SELECT count(*), sum(amount) FROM sale JOIN calendar USING (day) WHERE quarter = 'Q2';
\timing off
SET bloomfilter.join_filter = on;
\timing on
SELECT count(*), sum(amount) FROM sale JOIN calendar USING (day) WHERE quarter = 'Q2';
\timing off
\set ECHO none
\echo '--- EXPLAIN ANALYZE of it, only the lines about partitions.  (The rows of the first page were read before the filter was complete.)'
\set partitions 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(amount) FROM sale JOIN calendar USING (day) WHERE quarter = ''Q2'''
:partitions \g | grep -E 'on sale|Partition Skipped' | sed 's/^  *//'
RESET bloomfilter.join_filter;

\echo
\echo '=== 5. A key in many partitions: one page of a small index per partition shows whether the key is in it.'
\echo '    Compared with a scan, and with btrees, which take more space.  Each time is that of a second lookup.'
\echo '    (bloom_find reads the one partition that may have the key, 8000 rows.)'
\echo '    (creating 480,000 events in 60 partitions, one per day ...)'
CREATE TABLE events (day date, user_id bigint, what text) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)', n, date '2026-01-01' + n, date '2026-01-02' + n)
FROM generate_series(0, 59) n \gexec
INSERT INTO events SELECT date '2026-01-01' + n / 8000, (n * 7919::bigint) % 400009, 'something that happened' FROM generate_series(0, 479999) n;
VACUUM ANALYZE events;
SELECT * FROM events WHERE user_id = 42 \g /dev/null
\set ECHO queries
\timing on
SELECT * FROM events WHERE user_id = 4711;
CREATE INDEX filter ON events USING bloomfilter (user_id);
\timing off
\set ECHO none
SELECT * FROM bloom_find(NULL::events, 'user_id', 42) \g /dev/null
\set ECHO queries
\timing on
SELECT * FROM bloom_find(NULL::events, 'user_id', 4711);
\timing off
\set ECHO none
SELECT sum(pg_relation_size(relid)) AS filters FROM pg_partition_tree('filter') \gset
DROP INDEX filter;
\echo '--- The same with btrees instead:'
\set ECHO queries
\timing on
CREATE INDEX btree ON events (user_id);
\timing off
\set ECHO none
SELECT * FROM events WHERE user_id = 42 \g /dev/null
\set ECHO queries
\timing on
SELECT * FROM events WHERE user_id = 4711;
\timing off
\set ECHO none
SELECT pg_size_pretty(:filters::bigint) AS filters, pg_size_pretty(sum(pg_relation_size(relid))) AS btrees FROM pg_partition_tree('btree');
-- for the session after the demo
DROP INDEX btree;
CREATE INDEX filter ON events USING bloomfilter (user_id);

\echo
\echo '=== 6. Filters as values: which articles has a reader seen?  One filter per reader, which forgets the oldest articles.'
\echo '    Compared with a table of readers and articles and its index.'
\echo '    (creating 100 readers with 5000 articles each ...)'
CREATE TABLE seen (reader int, article bigint);
INSERT INTO seen SELECT reader, (hashint8extended(n, reader) & 2147483647) % 1000000 FROM generate_series(1, 100) reader, generate_series(1, 5000) n;
CREATE INDEX ON seen (reader, article);
CREATE TABLE reader AS SELECT reader, bloom_add_all(bloom_new(1250, max_layers => 5), array_agg(article)) AS seen FROM seen GROUP BY reader;
ALTER TABLE reader ADD PRIMARY KEY (reader);
VACUUM ANALYZE seen, reader;
SELECT bloom_missing(seen, ARRAY[1]), EXISTS (SELECT FROM seen) FROM reader LIMIT 1 \g /dev/null
\echo '--- How many of the articles 1 to 1000 are new to reader 42?  (The filter reports up to 1% of the new ones as seen.)'
\set ECHO queries
\timing on
SELECT cardinality(bloom_missing(seen, ARRAY(SELECT generate_series(1, 1000)))) AS new FROM reader WHERE reader = 42;
SELECT count(*) AS new FROM generate_series(1, 1000) a WHERE NOT EXISTS (SELECT FROM seen WHERE reader = 42 AND article = a);
\timing off
\set ECHO none
SELECT pg_size_pretty(pg_total_relation_size('reader')) AS filters, pg_size_pretty(pg_total_relation_size('seen')) AS "table and index";

\echo
\echo '=== 7. Deleting keys from a filter: redeem a coupon, then test for it again.'
\echo '    Compared with an array of the codes: size.'
CREATE TABLE coupons AS SELECT 'C-' || n AS code FROM generate_series(1, 100000) n;
CREATE TABLE coupon_filter AS SELECT cuckoo_agg(code) AS live FROM coupons;
\echo
\set ECHO queries
SELECT cuckoo_contains(live, 'C-4711') AS before FROM coupon_filter;
WITH redeemed AS (DELETE FROM coupons WHERE code = 'C-4711' RETURNING code)
UPDATE coupon_filter SET live = cuckoo_delete_all(live, ARRAY(SELECT code FROM redeemed));
SELECT cuckoo_contains(live, 'C-4711') AS after, pg_size_pretty((cuckoo_stats(live)).bytes) AS filter,
       (SELECT pg_size_pretty(pg_column_size(array_agg(code))::bigint) FROM coupons) AS array FROM coupon_filter;
\set ECHO none
