-- Size, growth and false-positive rate of cuckoo filters, measured
-- with keys that were not added

CREATE SCHEMA cuckoo_growth;
SET search_path = cuckoo_growth, public;

-- bits per key: the size is not rounded up to a power of two
SELECT round((cuckoo_plan(1000000, 0.001)).bits_per_key::numeric, 2) AS growing, round((cuckoo_plan(1000000, 0.001, 0)).bits_per_key::numeric, 2) AS fixed,
       (cuckoo_plan(1000000, 0.001)).bits_per_key <= 15.5 AND (cuckoo_plan(1000000, 0.001, 0)).bits_per_key <= 14 AS as_promised,
       round((cuckoo_plan(1300000)).bytes::numeric / (cuckoo_plan(2100000)).bytes, 2) AS "1.3 M : 2.1 M";
SELECT (cuckoo_stats(f)).bytes AS bytes, (cuckoo_stats(f)).bytes <= 15.5 / 8 * 1000000 AS small, (cuckoo_stats(f)).fill > 0.94 AS filled
FROM (SELECT cuckoo_agg(n, NULL, 0.001) AS f FROM generate_series(1, 1000000) n) x;

-- the target is met at capacity, and cuckoo_fpp agrees with the measured rate
SELECT keys, fpp AS target, measured <= 1.1 * fpp AS met, abs(measured - cuckoo_fpp(f)) <= 0.1 * cuckoo_fpp(f) + 3e-5 AS says_so, lost
FROM (VALUES (1000, 0.5, 2), (1000, 0.1, 0), (1000, 0.01, 0), (10000, 0.01, 2), (100000, 0.01, 0), (100000, 0.001, 2), (100000, 0.001, 0), (1000000, 0.03, 0)) v(keys, fpp, growth),
LATERAL (SELECT cuckoo_add_all(cuckoo_new(keys, fpp, growth), array_agg(n)) AS f FROM generate_series(1, keys) n) x,
LATERAL (SELECT avg(cuckoo_contains(f, -n)::int) AS measured, 0 AS zero FROM generate_series(1, 500000) n) m,
LATERAL (SELECT count(*) FILTER (WHERE NOT cuckoo_contains(f, n)) AS lost FROM generate_series(1, keys) n) l ORDER BY 1, 2, growth;

-- growth from 1000 keys to a million at 1%: one table, the target is met
SELECT (cuckoo_stats(f)).capacity, (cuckoo_stats(f)).slot_bits, (cuckoo_stats(f)).fill BETWEEN 0.9 AND 0.96 AS filled, lost, round(measured, 4) AS measured, measured <= 0.011 AS meets_target
FROM (SELECT cuckoo_add_all(cuckoo_new(1000), array_agg(n)) AS f FROM generate_series(1, 1000000) n) x,
LATERAL (SELECT count(*) FILTER (WHERE NOT cuckoo_contains(f, n)) AS lost, avg(cuckoo_contains(f, -n)::int) AS measured FROM generate_series(1, 1000000) n) m;
-- beyond capacity and reserve the false-positive rate rises, and cuckoo_fpp shows it
SELECT cuckoo_fpp(f) > 0.01 AS above_target, abs(measured / cuckoo_fpp(f) - 1) < 0.1 AS says_so, lost
FROM (SELECT cuckoo_add_all(cuckoo_new(1000, 0.01, 0), array_agg(n)) AS f FROM generate_series(1, 20000) n) x,
LATERAL (SELECT count(*) FILTER (WHERE NOT cuckoo_contains(f, n) AND n <= 20000) AS lost, avg(cuckoo_contains(f, -n)::int) AS measured FROM generate_series(1, 200000) n) m;
-- when no fingerprint bits are left, nearly every key is reported, and none is lost
SELECT (cuckoo_stats(f)).slot_bits, (cuckoo_stats(f)).listed > 100 AS listed, cuckoo_fpp(f) > 0.9 AS useless, count(*) FILTER (WHERE NOT cuckoo_contains(f, n)) AS lost
FROM (SELECT cuckoo_add_all(cuckoo_new(100, 0.3, 0), array_agg(n)) AS f FROM generate_series(1, 5000) n) x, generate_series(1, 5000) n GROUP BY f;

-- the table is at least 94% full before it grows, at every size
CREATE FUNCTION fill_before_growth(capacity int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  f cuckoo := cuckoo_add_all(cuckoo_new(capacity), ARRAY(SELECT generate_series(1, capacity)));
  bits bigint := (cuckoo_stats(f)).bits;
  fill float8;
  n int := capacity;
BEGIN
  LOOP
    fill := (cuckoo_stats(f)).fill;
    n := n + 1;
    f := cuckoo_add(f, n);
    EXIT WHEN (cuckoo_stats(f)).bits > bits;
  END LOOP;
  RETURN fill;
END $$;
SELECT capacity, fill_before_growth(capacity) >= 0.94 AS full_first FROM (VALUES (1), (4), (10), (50), (100), (500), (1000), (5000), (20000), (100000)) v(capacity);
DROP FUNCTION fill_before_growth;

-- crafted keys that all map to one bucket: no growth, no lost key
CREATE TABLE crafted AS SELECT n FROM generate_series(1, 4000000) n WHERE bloom_hash(n)::bit(64)::bit(10) = B'0000000000';
SELECT count(*) > 3000 AS many, (cuckoo_stats(f)).capacity, (cuckoo_stats(f)).bytes < 60000 AS small, bool_and(cuckoo_contains(f, n)) AS found
FROM crafted, (SELECT cuckoo_add_all(cuckoo_new(10000, 0.01), array_agg(n)) AS f FROM crafted) x GROUP BY f;
SELECT cuckoo_cardinality(cuckoo_delete_all(f, array_agg(n))) AS left FROM crafted, (SELECT cuckoo_add_all(cuckoo_new(10000, 0.01), array_agg(n)) AS f FROM crafted) x GROUP BY f;
DROP TABLE crafted;

-- an aggregate with more keys than it can count exactly (12,582,912): still one table
SET max_parallel_workers_per_gather = 0;
WITH spilled AS MATERIALIZED (SELECT cuckoo_agg(n, NULL, 0.02) AS f FROM generate_series(1, 13000000) n)
SELECT bytes <= 2.1 * (cuckoo_plan(13000000, 0.02)).bytes AS sized, abs(cardinality - 13000000) < 130000 AS counted, fpp <= 0.02 AS says_so, lost, measured <= 0.022 AS meets_target, f::bytea::cuckoo = f AS valid
FROM spilled, cuckoo_stats(f),
LATERAL (SELECT count(*) FILTER (WHERE NOT cuckoo_contains(f, n)) AS lost, avg(cuckoo_contains(f, -n)::int) AS measured FROM generate_series(1, 13000000, 13) n) probes;
RESET ALL;
SET search_path = cuckoo_growth, public;
