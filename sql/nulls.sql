-- NULL and empty arguments for every function

\pset null NULL
SELECT bloom_contains(null, 1) AS "null, key", bloom_contains(bloom_agg(1), null::int) AS "filter, null", bloom_contains(null, null::int) AS "null, null",
       bloom_contains(bloom_new(10), null::int) AS "empty, null", bloom_contains(bloom_new(10), 1) AS "empty, key";
SELECT bloom_add(null, 1) AS "null, key", bloom_add(bloom_agg(1), null::int) = bloom_agg(1) AS "filter, null", bloom_add(null, null::int) AS "null, null",
       bloom_add(bloom_new(10), null::text) = bloom_new(10) AS "empty, null";
SELECT bloom_add_all(null, array[1]) AS "null, keys", bloom_add_all(bloom_agg(1), null::int[]) = bloom_agg(1) AS "filter, null",
       bloom_add_all(bloom_new(10), '{}'::int[]) = bloom_new(10) AS "empty, {}", bloom_add_all(bloom_new(10), array[null, null]::int[]) = bloom_new(10) AS "empty, {null}",
       bloom_add_all(bloom_new(10), array[1, null, 2]) = bloom_add_all(bloom_new(10), array[1, 2]) AS "nulls skipped";
SELECT bloom_cardinality(null), bloom_fpp(null), bloom_stats(null) IS NULL AS stats, bloom_hash(null::int), bloom_plan(null) IS NULL AS plan,
       null::bloom = bloom_new(1) AS eq;
SELECT bloom_cardinality(f) AS cardinality, bloom_fpp(f) AS fpp, (bloom_stats(f)).fill FROM (VALUES (bloom_new(10)), (bloom_new(100000))) v(f);

-- aggregates: NULL keys are skipped; no rows give an empty filter, not NULL
SELECT bloom_agg(n) = bloom_agg(n) FILTER (WHERE n IS NOT NULL) AS skipped FROM (VALUES (1), (null), (3), (null)) v(n);
SELECT bloom_agg(n) IS NOT NULL AS not_null, bloom_cardinality(bloom_agg(n)) AS keys, bloom_contains(bloom_agg(n), 1) AS contains,
       bloom_agg(n) = bloom_agg(n::oid) AS typed_or_not, bloom_agg(n) = bloom_agg(n::text) AS of_any_class
FROM generate_series(1, 0) n;
SELECT bloom_agg(null::int) = bloom_agg(null::text) AS of_no_class, bloom_cardinality(bloom_agg(null::uuid)),
       (bloom_stats(bloom_agg(null::int, 1000, 0.001))).capacity AS keeps_geometry, (bloom_stats(bloom_agg(null::oid, 1000, 0.001))).target_fpp;
SELECT bloom_agg(n, null) = bloom_agg(n) AS null_capacity, bloom_agg(n, null, 0.01) = bloom_agg(n) AS default_fpp FROM generate_series(1, 100) n;

-- a prefilter built from no rows keeps no rows
SELECT count(*) FROM generate_series(1, 1000) k WHERE bloom_contains((SELECT bloom_agg(n) FROM generate_series(1, 1000) n WHERE false), k);

-- result arrays are like those that the server builds: every length and position of NULLs
WITH f AS (SELECT bloom_agg(k) AS f FROM generate_series(1, 9, 2) k)
SELECT bool_and(bloom_contains_each(f, keys) = answers AND array_send(bloom_contains_each(f, keys)) = array_send(answers)) AS same, count(*)
FROM f, generate_series(1, 70) n, generate_series(1, 12) m,
LATERAL (SELECT array_agg(nullif(i % m, 0) ORDER BY i) AS keys, array_agg(bloom_contains(f, nullif(i % m, 0)) ORDER BY i) AS answers FROM generate_series(1, n) i) a;
SELECT bloom_contains_each(bloom_agg(k), '[2:3][0:2]={{1,NULL,3},{4,500,NULL}}'::int[]) FROM generate_series(1, 10) k;
