-- Examples for script/demo: four uses of filters, compared with a solution without filters.
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE EXTENSION bloomfilter;
LOAD 'bloomfilter';

\echo
\echo '=== 1. Which articles has a reader seen?  300 readers, 5000 articles each: a rotating filter per reader.'
\echo '    (creating a table of 1.5 million rows with an index, and 300 filters ...)'
CREATE TABLE seen (reader int, article bigint);
INSERT INTO seen SELECT reader, (hashint8extended(n, reader) & 2147483647) % 1000000 FROM generate_series(1, 300) reader, generate_series(1, 5000) n;
CREATE INDEX ON seen (reader, article);
CREATE TABLE reader AS SELECT reader, bloom_add_all(bloom_new(1250, max_layers => 5), array_agg(article)) AS seen FROM seen GROUP BY reader;
ALTER TABLE reader ADD PRIMARY KEY (reader);
VACUUM ANALYZE seen, reader;
SELECT bloom_missing(seen, ARRAY[1]), EXISTS (SELECT FROM seen) FROM reader LIMIT 1 \g /dev/null
\echo '--- How many of the articles 1 to 1000 are definitely new to reader 42?'
\set ECHO queries
\timing on
SELECT cardinality(bloom_missing(seen, ARRAY(SELECT generate_series(1, 1000)))) AS new FROM reader WHERE reader = 42;
\set ECHO none
\echo '--- The exact number, from the table (the filter reports up to 1% of the new articles as seen):'
\set ECHO queries
SELECT count(*) AS new FROM generate_series(1, 1000) a WHERE NOT EXISTS (SELECT FROM seen WHERE reader = 42 AND article = a);
\timing off
SELECT pg_size_pretty(pg_total_relation_size('reader')) AS filters, pg_size_pretty(pg_total_relation_size('seen')) AS "table and index",
       round(pg_total_relation_size('seen')::numeric / pg_total_relation_size('reader'), 1) AS "times smaller";
\set ECHO none

\echo
\echo '=== 2. Daily partitions, looked up by user, without btrees.'
\echo '    (creating 60 partitions with 1.2 million rows ...)'
CREATE TABLE events (day date, user_id bigint, what text) PARTITION BY RANGE (day);
DO $$
BEGIN
  FOR n IN 0 .. 59 LOOP
    EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)', n, date '2026-01-01' + n, date '2026-01-02' + n);
  END LOOP;
END $$;
INSERT INTO events SELECT date '2026-01-01' + n % 60, (n * 7919::bigint) % 1000003, 'something that happened' FROM generate_series(1, 1200000) n;
VACUUM ANALYZE events;
\set ECHO queries
\timing on
SELECT * FROM events WHERE user_id = 42;
CREATE INDEX filter ON events USING bloomfilter (user_id);
SELECT * FROM bloom_find(NULL::events, 'user_id', 42);
CREATE INDEX btree ON events (user_id);
\timing off
SELECT pg_size_pretty(sum(pg_relation_size(relid)) FILTER (WHERE parentrelid = 'filter'::regclass)) AS filters,
       pg_size_pretty(sum(pg_relation_size(relid)) FILTER (WHERE parentrelid = 'btree'::regclass)) AS btrees
FROM (SELECT * FROM pg_partition_tree('filter') UNION ALL SELECT * FROM pg_partition_tree('btree')) x;
\set ECHO none

\echo
\echo '=== 3. Reports on a star schema: with one setting, scans discard rows without a join partner.  The SQL does not change.'
\echo '    (creating a table of 3 million sales ...)'
CREATE TABLE product AS SELECT n AS id, 'group ' || n % 50 AS grp FROM generate_series(1, 100000) n;
CREATE TABLE shop AS SELECT n AS id, 'Country ' || n % 20 AS country FROM generate_series(1, 20000) n;
CREATE TABLE sale AS SELECT n AS id, (1 + (hashint4extended(n, 1) & 2147483647) % 100000)::int AS product_id,
  (1 + (hashint4extended(n, 2) & 2147483647) % 20000)::int AS shop_id, n % 100 AS amount FROM generate_series(1, 3000000) n;
VACUUM ANALYZE product, shop, sale;
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
RESET bloomfilter.join_filter;

\echo
\echo '=== 4. Deleting keys: redeem a coupon, then test for it again.'
CREATE TABLE coupons AS SELECT 'C-' || n AS code FROM generate_series(1, 100000) n;
CREATE TABLE coupon_filter AS SELECT cuckoo_agg(code) AS live FROM coupons;
\echo
\set ECHO queries
SELECT cuckoo_contains(live, 'C-4711') AS before FROM coupon_filter;
WITH redeemed AS (DELETE FROM coupons WHERE code = 'C-4711' RETURNING code)
UPDATE coupon_filter SET live = cuckoo_delete_all(live, ARRAY(SELECT code FROM redeemed));
SELECT cuckoo_contains(live, 'C-4711') AS after, pg_size_pretty((cuckoo_stats(live)).bytes) AS size FROM coupon_filter;

\set ECHO none
\echo '--- The size of a filter, before building it.'
\set ECHO queries
SELECT pg_size_pretty(bytes) AS size, bits_per_key, hashes FROM bloom_plan(1000000, 0.01);
\set ECHO none
