-- P7: an aggregate that sizes its filter, with more keys than it can count exactly (12,582,912):
-- folded lines instead of a list, no key is lost, the target fpp is met

SET max_parallel_workers_per_gather = 0;
WITH spilled AS MATERIALIZED (SELECT bloom_agg(n, null, 0.02) AS f FROM generate_series(1, 13000000) n)
SELECT bytes <= 1.1 * (bloom_plan(13000000, 0.02)).bytes AS sized, capacity >= 13000000 AS holds_all, layers,
       abs(cardinality - 13000000) < 130000 AS counted, fpp <= 0.02 AS says_so, lost, measured <= 0.022 AS meets_target
FROM spilled, bloom_stats(f),
LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n)) AS lost, avg(bloom_contains(f, -n)::int) AS measured
         FROM generate_series(1, 13000000, 13) n) probes;

-- a long-running aggregate can be canceled, and the session continues
SET statement_timeout = '200ms';
SELECT bloom_agg(n) FROM generate_series(1, 100000000) n;
RESET statement_timeout;
SELECT bloom_contains(bloom_agg(1), 1);
