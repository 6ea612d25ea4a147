-- P4, P7: more of sql/bounds.sql.  REGRESS lacks this file, because it takes half a minute; the full
-- set of tests runs it, with each file alone.

SET max_parallel_workers_per_gather = 0;
-- neither the order of the keys nor repeated keys matter where keys are not counted exactly
SELECT (SELECT bloom_agg(n, null, 0.02) FROM generate_series(1, 13000000) n) =
       (SELECT bloom_agg(13000000 - n % 13000000, null, 0.02) FROM generate_series(1, 14000000) n) AS same;

-- a large declared capacity: the list of hashes has the usual maximum length
WITH made AS MATERIALIZED (SELECT bloom_agg(n, 150000000, 0.02) AS f FROM generate_series(1, 13000000) n)
SELECT (SELECT (bloom_stats(f)).bytes > 100000000 FROM made) AS is_lines,
       count(*) FILTER (WHERE NOT bloom_contains((SELECT f FROM made), n)) AS lost FROM generate_series(1, 13000000, 1300) n;
