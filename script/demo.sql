-- What script/demo shows.  The statements are the README's.
\set ECHO queries
\pset footer off
SET client_min_messages = warning;

\echo
\echo === Is this key in the table at all?  An index that is a filter, maintained by the server.
\echo
CREATE EXTENSION bloomfilter;
CREATE TABLE orders AS SELECT n AS id, md5(n::text) AS token FROM generate_series(1, 100000) n;
CREATE INDEX orders_token ON orders USING bloomfilter (token);
CREATE INDEX orders_btree ON orders (token);
INSERT INTO orders VALUES (100001, 'the newest');
SELECT bloom_index_contains('orders', 'token', 'no such token') AS unknown, bloom_index_contains('orders', 'token', 'the newest') AS newest,
       pg_size_pretty(pg_relation_size('orders_token')) AS filter, pg_size_pretty(pg_relation_size('orders_btree')) AS btree;

\echo
\echo === Which days can have seen this user?  One small filter a day instead of all events.
\echo
CREATE TABLE events AS
  SELECT date '2026-01-01' + n % 30 AS day, 'user-' || (n * 7919::bigint) % 65537 AS user_id
  FROM generate_series(1, 300000) n;
CREATE TABLE day_filter AS SELECT day, bloom_agg(user_id) AS seen FROM events GROUP BY day;
SELECT day FROM day_filter WHERE bloom_contains(seen, 'user-42') ORDER BY day;
\echo --- the truth, from the table:
SELECT DISTINCT day FROM events WHERE user_id = 'user-42' ORDER BY day;
SELECT pg_size_pretty(pg_table_size('events')) AS events, pg_size_pretty(pg_table_size('day_filter')) AS filters,
       (SELECT round(avg(bloom_cardinality(seen))) FROM day_filter) AS users_a_day;

\echo
\echo === An existence check before a join: rows that cannot match never reach it.
\echo
CREATE TABLE dim AS SELECT n AS id, CASE WHEN n % 50 = 0 THEN 'EU' ELSE 'other' END AS region FROM generate_series(1, 100000) n;
CREATE TABLE fact AS SELECT n AS id, 1 + (n * 7919::bigint) % 100000 AS dim_id, n % 100 AS amount FROM generate_series(1, 1000000) n;
ANALYZE dim, fact;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT count(*), sum(amount) FROM fact JOIN dim ON fact.dim_id = dim.id
WHERE dim.region = 'EU'
  AND bloom_contains((SELECT bloom_agg(id) FROM dim WHERE region = 'EU'), fact.dim_id);
SELECT count(*), sum(amount) FROM fact JOIN dim ON fact.dim_id = dim.id
WHERE dim.region = 'EU'
  AND bloom_contains((SELECT bloom_agg(id) FROM dim WHERE region = 'EU'), fact.dim_id);
\echo --- the same without the filter:
SELECT count(*), sum(amount) FROM fact JOIN dim ON fact.dim_id = dim.id WHERE dim.region = 'EU';

\echo
\echo === Filters in hash joins by themselves: one setting, no change to the SQL.
\echo
SET bloomfilter.join_filter = on;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT count(*), sum(amount) FROM fact JOIN dim ON fact.dim_id = dim.id WHERE dim.region = 'EU';
SELECT count(*), sum(amount) FROM fact JOIN dim ON fact.dim_id = dim.id WHERE dim.region = 'EU';
RESET bloomfilter.join_filter;

\echo
\echo === Filters that can delete: redeem a coupon, ask again.
\echo
CREATE TABLE coupons AS SELECT 'C-' || n AS code FROM generate_series(1, 100000) n;
CREATE TABLE coupon_filter AS SELECT cuckoo_agg(code) AS live FROM coupons;
SELECT cuckoo_contains(live, 'C-4711') AS before FROM coupon_filter;
WITH redeemed AS (DELETE FROM coupons WHERE code = 'C-4711' RETURNING code)
UPDATE coupon_filter SET live = cuckoo_delete_all(live, ARRAY(SELECT code FROM redeemed));
SELECT cuckoo_contains(live, 'C-4711') AS after, pg_size_pretty((cuckoo_stats(live)).bytes) AS size FROM coupon_filter;

\echo
\echo === What does it cost?  Ask before building, and after.
\echo
SELECT * FROM bloom_plan(1000000, 0.01);
SELECT bytes, hashes, capacity, cardinality, round(fpp::numeric, 4) AS fpp, key_class
FROM bloom_stats((SELECT bloom_agg(id) FROM fact));

\echo
\echo === A wrong kind of key is an error, not a silent "no".
\echo
\set ON_ERROR_STOP off
SELECT bloom_contains(bloom_agg(id), 'forty-two') FROM dim;
