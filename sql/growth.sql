-- Growing, fixed and rotating filters

CREATE SCHEMA growth;
SET search_path = growth, public;

-- Runs a query and returns its single value as text, or the error with its SQLSTATE, detail and hint.
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

-- growth from 1024 to a million keys at 1%, in small steps and in one call
DO $$
DECLARE
  f bloom := bloom_new(1024);
BEGIN
  FOR i IN 0 .. 999 LOOP
    f := bloom_add_all(f, ARRAY(SELECT i * 1000 + n FROM generate_series(1, 1000) n));
  END LOOP;
  CREATE TABLE grown AS SELECT 'in steps of 1000' AS how, f
    UNION ALL SELECT 'at once', bloom_add_all(bloom_new(1024), ARRAY(SELECT generate_series(1, 1000000)));
END $$;
CREATE FUNCTION grow(filter bloom, first int, last int) RETURNS bloom LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN first .. last LOOP
    filter := bloom_add(filter, i);
  END LOOP;
  RETURN filter;
END $$;
SELECT how, layers <= CASE how WHEN 'at once' THEN 3 ELSE 10 END AS few_layers, bytes * 8 / 1e6 <= CASE how WHEN 'at once' THEN 13 ELSE 18 END AS small,
       fpp <= 0.01 AS says_so, lost, measured <= 0.011 AS meets_target
FROM grown, bloom_stats(f),
LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n)) AS lost, avg(bloom_contains(f, -n)::int) AS measured FROM generate_series(1, 1000000) n) m ORDER BY how;
-- bloom_add gives the same bytes as bloom_add_all of one key
SELECT grow(bloom_new(100), 1, 3000) = bloom_add_all(grow(bloom_new(100), 1, 2999), ARRAY[3000]) AS same, layers, lost
FROM (SELECT grow(bloom_new(100), 1, 3000) AS f) x, bloom_stats(f), LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n)) AS lost FROM generate_series(1, 3000) n) l;
-- each layer stays within its share of the target
SELECT count(*) AS layers, bool_and(cardinality <= capacity * 1.1 OR layer = 10) AS none_overfull, sum(fpp) <= 0.01 AS within_target FROM grown, bloom_layers(f) WHERE how <> 'at once';
SELECT * FROM bloom_layers(bloom_add_all(bloom_new(10, growth => 3), ARRAY['a', 'b']));

-- other growth factors: equal layers and large steps
SELECT growth, layers, lost, fpp <= 0.01 AS within_target
FROM (VALUES (1), (3), (10)) g(growth), LATERAL (SELECT grow(bloom_new(200, growth => growth), 1, 5000) AS f) x, LATERAL (SELECT layers, fpp FROM bloom_stats(f)) s,
LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n)) AS lost FROM generate_series(1, 5000) n) l ORDER BY growth;

-- a filter never grows before it holds as many keys as its capacity
SELECT count(*) AS runs, max(layers) AS layers FROM generate_series(1, 200) run,
LATERAL (SELECT bloom_add_all(bloom_new(300), array_agg(run * 1000 + n)) AS f FROM generate_series(1, 300) n) x, LATERAL (SELECT layers FROM bloom_stats(f)) s;
SELECT count(*) AS runs, max((bloom_stats(f)).layers) AS layers FROM (SELECT bloom_agg(run * 1000 + n, 300) AS f FROM generate_series(1, 200) run, generate_series(1, 300) n GROUP BY run) x;

-- beyond its capacity, bloom_agg grows and stays within twice the target, in serial and parallel plans
CREATE TABLE overfed AS SELECT n AS id, n::oid AS o FROM generate_series(1, 60000) n;
ALTER TABLE overfed SET (parallel_workers = 2);
ANALYZE overfed;
CREATE TABLE fed AS SELECT 'serial' AS mode, bloom_agg(id, 1000) AS f, bloom_agg(o, 20000) AS g FROM overfed;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
INSERT INTO fed SELECT 'parallel', x.* FROM (SELECT bloom_agg(id, 1000), bloom_agg(o, 20000) FROM overfed) x;
RESET ALL;
SET search_path = growth, public;
SELECT mode, (bloom_stats(f)).layers > 1 AND (bloom_stats(g)).layers > 1 AS grew, greatest(bloom_fpp(f), bloom_fpp(g)) <= 0.02 AS within_twice,
       lost, measured <= 0.022 AS measured_within_twice
FROM fed, LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n) OR NOT bloom_contains(g, n::oid)) AS lost,
                          greatest(avg(bloom_contains(f, -n)::int), avg(bloom_contains(g, (n + 1000000)::oid)::int)) AS measured FROM generate_series(1, 60000) n) m ORDER BY mode DESC;
-- the same at a low fpp, where a list of hashes is nearly as small as the lines
SELECT keys, capacity, layers > 1 AS grew, fpp <= 2e-9 AS within_twice
FROM (VALUES (150, 100), (1000, 100), (20000, 100), (20000, 1000)) v(keys, capacity), LATERAL (SELECT bloom_agg(i, capacity, 1e-9) AS f FROM generate_series(1, keys) i) x, LATERAL (SELECT layers, fpp FROM bloom_stats(f)) s ORDER BY 1, 2;
SELECT bloom_fpp(bloom_add_all(bloom_new(1000, 1e-9), ARRAY(SELECT generate_series(1, 1600)))) <= 1e-9 AS growing,
       bloom_fpp(bloom_add_all(bloom_new(1000, 1e-9, max_layers => 5), ARRAY(SELECT generate_series(1, 1700)))) <= 1e-9 AS rotating;
-- and at a high fpp, where the number of keys is harder to estimate from the bits
SELECT p, count(*) AS runs, max((bloom_stats(f)).layers) AS layers, bool_and(bloom_contains_all(w, ARRAY(SELECT run * 10000 + n FROM generate_series(1001, 2000) n))) AS newest_found
FROM (VALUES (0.5::float8), (0.9)) v(p), generate_series(1, 300) run,
LATERAL (SELECT bloom_add_all(bloom_new(1000, p), array_agg(run * 10000 + n) FILTER (WHERE n <= 1000)) AS f,
                bloom_add_all(bloom_new(1000, p, max_layers => 2), array_agg(run * 10000 + n ORDER BY n)) AS w FROM generate_series(1, 2000) n) x GROUP BY p ORDER BY p;

-- groups beyond their capacity, with small and large states
SELECT count(*) AS groups, bool_and(bloom_contains_all(f, keys)) AS all_found, bool_and(fpp < 0.02) AS within_twice
FROM (SELECT bloom_agg(n, 100) AS f, array_agg(n) AS keys FROM generate_series(1, 40000) n GROUP BY n % 40) x, LATERAL (SELECT fpp FROM bloom_stats(f)) s;

-- fixed filters: the size never changes, and bloom_fpp shows how full the filter is
SELECT times, bytes, layers, abs(fpp / measured - 1) < 0.1 AS within_10_percent
FROM (VALUES (1), (2), (5)) t(times),
LATERAL (SELECT bloom_add_all(bloom_new(20000, growth => 0), array_agg(n)) AS f FROM generate_series(1, 20000 * times) n) x, LATERAL (SELECT bytes, layers, fpp FROM bloom_stats(f)) s,
LATERAL (SELECT avg(bloom_contains(f, -n)::int) AS measured FROM generate_series(1, 200000) n) m ORDER BY times;

-- rotating filters: 5 x 1000 keys at 0.001, 50,000 keys added, 200 runs with different keys
CREATE TABLE windows AS
  SELECT run, f FROM generate_series(1, 200) run,
  LATERAL (SELECT bloom_add_all(bloom_new(1000, 0.001, max_layers => 5), array_agg(run * 100000 + n ORDER BY n)) AS f FROM generate_series(1, 50000) n) x;
SELECT count(*) AS runs, max((bloom_stats(f)).bytes) <= 12500 AS small, max((bloom_stats(f)).layers) AS layers,
       bool_and(bloom_contains_all(f, ARRAY(SELECT run * 100000 + n FROM generate_series(46001, 50000) n))) AS newest_4000_found FROM windows;
SELECT avg(hits) <= 0.0011 AS window_meets_target, avg(old) < 0.0011 AS old_keys_forgotten FROM windows,
LATERAL (SELECT avg(bloom_contains(f, -n)::int) AS hits, avg(bloom_contains(f, run * 100000 + n)::int) AS old FROM generate_series(1, 4000) n) m;
-- a key that is added again counts as new
SELECT bloom_contains(once, 7) AS forgotten, bloom_contains(again, 7) AS refreshed FROM
 (SELECT bloom_add_all(bloom_new(1000, 1e-9, max_layers => 3), array_agg(CASE WHEN n = 1 THEN 7 ELSE n + 1000 END ORDER BY n)) AS once,
         bloom_add_all(bloom_new(1000, 1e-9, max_layers => 3), array_agg(CASE WHEN n IN (1, 1500, 3500) THEN 7 ELSE n + 1000 END ORDER BY n)) AS again FROM generate_series(1, 5000) n) x;
SELECT layer, capacity, cardinality BETWEEN 990 AND 1100 AS full FROM windows, bloom_layers(f) WHERE run = 1 ORDER BY layer;

-- unions of all kinds of filters
SELECT kind_a, kind_b, layers, growth, max_layers, bloom_contains_all(a | b, ARRAY(SELECT generate_series(1, 600)) || ARRAY(SELECT generate_series(100001, 100600))) AS all_found
FROM (VALUES ('fixed', bloom_new(1000, growth => 0)), ('growing', bloom_new(1000)), ('small growing', bloom_new(100)), ('rotating', bloom_new(1000, max_layers => 3)), ('rotating more', bloom_new(200, max_layers => 9))) x(kind_a, new_a),
     (VALUES ('fixed', bloom_new(1000, growth => 0)), ('growing', bloom_new(1000)), ('small growing', bloom_new(100)), ('rotating', bloom_new(1000, max_layers => 3)), ('rotating more', bloom_new(200, max_layers => 9))) y(kind_b, new_b),
LATERAL (SELECT bloom_add_all(new_a, ARRAY(SELECT generate_series(1, 600))) AS a, bloom_add_all(new_b, ARRAY(SELECT generate_series(100001, 100600))) AS b) f,
LATERAL (SELECT layers, growth, max_layers FROM bloom_stats(a | b)) s WHERE kind_a <= kind_b ORDER BY kind_a, kind_b;

-- union of windows: their newest layers are merged and stay the newest
SELECT (bloom_stats(a | b)).layers, bloom_contains_all(a | b, ARRAY(SELECT generate_series(1501, 3500)) || ARRAY(SELECT generate_series(100201, 100700))) AS newest_found,
       bloom_contains_all(bloom_add_all(a | b, ARRAY(SELECT generate_series(-900, -1))), ARRAY(SELECT generate_series(2501, 3500))) AS still_there
FROM (SELECT bloom_add_all(bloom_new(1000, 1e-6, max_layers => 3), ARRAY(SELECT generate_series(1, 3500))) AS a, bloom_add_all(bloom_new(1000, 1e-6, max_layers => 3), ARRAY(SELECT generate_series(100001, 100700))) AS b) x;

-- bloom_compact: fewer bytes, the same keys, within the target
SELECT name, (bloom_stats(f)).bytes > (bloom_stats(c)).bytes AS smaller, (bloom_stats(c)).layers, lost, (bloom_stats(c)).fpp <= 0.0105 AS within_target, bloom_compact(c) = c AS again
FROM (SELECT 'too large' AS name, bloom_add_all(bloom_new(100000, growth => 0), ARRAY(SELECT generate_series(1, 20000))) AS f, 20000 AS keys
      UNION ALL SELECT 'much too large', bloom_agg(n, 1000000), 3000 FROM generate_series(1, 3000) n
      UNION ALL SELECT 'with an empty layer', bloom_agg(n) | bloom_agg(n, 5000), 100 FROM generate_series(1, 100) n
      UNION ALL SELECT 'just right', bloom_agg(n), 5000 FROM generate_series(1, 5000) n) x,
LATERAL (SELECT bloom_compact(f) AS c) y, LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(c, n)) AS lost FROM generate_series(1, keys) n) l ORDER BY name;
SELECT bloom_compact(bloom_new(5000)) = bloom_new(5000) AS empty_stays, bloom_compact(f) = f AS window_stays, bloom_compact(NULL) IS NULL AS of_null FROM windows WHERE run = 1;

-- errors: a 65th layer, and growth at the size limit
SELECT outcome('SELECT (bloom_stats(grow(bloom_new(1, growth => 1), 1, 60))).layers > 10');
SELECT outcome('SELECT grow(bloom_new(1, growth => 1), 1, 1000)');
SELECT outcome('SELECT (bloom_stats(bloom_add_all(bloom_new(10, growth => 1), ARRAY(SELECT generate_series(1, 1000))))).layers');
SELECT outcome($$SELECT bloom_add_all(f, ARRAY(SELECT -n FROM generate_series(1, 100000) n))
  FROM (SELECT bloom_add_all(bloom_new(40000, growth => 100), ARRAY(SELECT generate_series(1, 4000000))) AS f) x$$) AS growth_at_the_limit;

-- filters of several layers are sent, stored and tested like others
CREATE TABLE kept_layers AS SELECT how, f FROM grown UNION ALL SELECT 'window', f FROM windows WHERE run = 1;
SELECT how, f::text::bloom = f AS text, f::bytea::bloom = f AS bytea, bloom_contains_each(f, CASE how WHEN 'window' THEN ARRAY[149999, 150000, -1] ELSE ARRAY[1, 1000000, -1] END) AS each FROM kept_layers ORDER BY how;
WITH flat AS MATERIALIZED (SELECT how, bloom_contains_each(f::text::bloom, keys) AS answers FROM kept_layers, LATERAL (SELECT array_agg(n ORDER BY n) AS keys FROM generate_series(1, 150000, 211) n) k)
SELECT how, count(*) AS wrong FROM kept_layers JOIN flat USING (how), generate_series(1, 150000, 211) n WHERE bloom_contains(f, n) <> answers[1 + n / 211] GROUP BY how;

-- random operations compared with a plain set: add, add_all, union, compact, round trips
DO $$
DECLARE
  seed constant float8 := 0.20261116;
  f bloom;
  model int[];
  other int[];
  n int;
BEGIN
  RAISE NOTICE 'seed %', seed;
  PERFORM setseed(seed);
  FOR run IN 1 .. 12 LOOP
    f := bloom_new(1 + (random() * 200)::int, 0.02, (ARRAY[0, 1, 2, 2, 3, 8])[1 + run % 6]);
    model := '{}';
    FOR step IN 1 .. 60 LOOP
      n := 1 + (random() * random() * 300)::int;
      other := ARRAY(SELECT (random() * 1000000)::int FROM generate_series(1, n));
      CASE (random() * 5)::int
        WHEN 0 THEN f := bloom_add(f, other[1]); other := other[1:1];
        WHEN 1 THEN f := f::text::bloom; other := '{}';
        WHEN 2 THEN f := bloom_compact(f::bytea::bloom); other := '{}';
        WHEN 3 THEN f := f | bloom_add_all(bloom_new(1 + (random() * 500)::int, 0.02, 2), other);
        ELSE f := bloom_add_all(f, other);
      END CASE;
      model := model || other;
      IF NOT bloom_contains_all(f, model) THEN
        RAISE EXCEPTION 'run %, step %: a key is lost', run, step;
      END IF;
      IF (bloom_stats(f)).layers > 50 THEN
        EXIT;
      END IF;
    END LOOP;
  END LOOP;
END $$;

-- bloom_plan and cuckoo_plan compared with the size of filled filters.
-- A window never exceeds the planned size, and reaches it when all of its layers are full.
SELECT capacity, fpp, max_layers, (bloom_plan(capacity, fpp, max_layers => max_layers)).bytes AS planned, max((bloom_stats(f)).bytes) AS most, max((bloom_stats(f)).bytes) = (bloom_plan(capacity, fpp, max_layers => max_layers)).bytes AS as_planned
FROM (VALUES (10, 0.01::float8, 2), (100, 0.001, 5), (1000, 0.01, 3), (1000, 1e-6, 8), (2000, 0.1, 2), (77, 0.5, 64)) v(capacity, fpp, max_layers),
LATERAL (SELECT bloom_add_all(bloom_new(capacity, fpp, max_layers => max_layers), ARRAY(SELECT generate_series(1, n * (1 + capacity / 50)))) AS f FROM generate_series(1, max_layers * 50, 1 + max_layers / 4) n) x GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
-- fixed and growing filters, up to their capacity
SELECT growth, capacity, fpp, (bloom_plan(capacity, fpp, growth)).bytes AS planned, (bloom_stats(f)).bytes AS made, (bloom_stats(f)).layers,
       (bloom_plan(capacity, fpp)).growing_bytes - (bloom_stats(bloom_add_all(bloom_new(capacity, fpp), ARRAY(SELECT generate_series(1, capacity))))).bytes AS difference_growing
FROM (VALUES (0), (1), (2), (10)) g(growth), (VALUES (20, 0.01::float8), (1000, 0.001), (5000, 1e-5), (20000, 0.3)) v(capacity, fpp),
LATERAL (SELECT bloom_add_all(bloom_new(capacity, fpp, growth), ARRAY(SELECT generate_series(1, capacity))) AS f) x ORDER BY 1, 2;
-- without growth and max_layers: the filter that an aggregate builds
SELECT n, (bloom_plan(n, p)).bytes - (bloom_stats((SELECT bloom_agg(k, NULL, p) FROM generate_series(1, n) k))).bytes AS difference, bloom_plan(n, p) = bloom_plan(n, p, 0) AS as_fixed
FROM (VALUES (30, 0.01::float8), (1000, 0.001), (30000, 0.01)) v(n, p);
SELECT growth, capacity, (cuckoo_plan(capacity, 0.001, growth)).bytes AS planned, (cuckoo_stats(f)).bytes - (cuckoo_stats(f)).listed * 9 AS made_without_list, (cuckoo_stats(f)).slot_bits - (cuckoo_plan(capacity, 0.001, growth)).slot_bits AS other_bits
FROM (VALUES (0), (2), (16)) g(growth), (VALUES (1000), (30000)) v(capacity),
LATERAL (SELECT cuckoo_add_all(cuckoo_new(capacity, 0.001, growth), ARRAY(SELECT generate_series(1, capacity))) AS f) x ORDER BY 1, 2;
SELECT bloom_plan(NULL, 0.01, 2) IS NULL AND bloom_plan(10, NULL, 2) IS NULL AND cuckoo_plan(10, NULL) IS NULL AS of_null, bloom_plan(10, 0.01, NULL, NULL) = bloom_plan(10) AS defaults, bloom_plan(10, 0.01, 1, 4) = bloom_plan(10, max_layers => 4) AS growth_of_a_window;
-- growing_bytes is the same whatever else is planned, and NULL beyond the limit
SELECT bool_and(p.growing_bytes = (bloom_plan(1000, 0.001, growth => 2)).bytes) AS same, (bloom_plan(400000000)).growing_bytes AS too_large, (bloom_plan(340000000)).growing_bytes AS fits
FROM (SELECT (bloom_plan(1000, 0.001)).* UNION ALL SELECT (bloom_plan(1000, 0.001, 0)).* UNION ALL SELECT (bloom_plan(1000, 0.001, 7)).* UNION ALL SELECT (bloom_plan(1000, 0.001, max_layers => 3)).*) p;
SELECT outcome('SELECT bloom_plan(10, 0.01, -1)');
SELECT outcome('SELECT bloom_plan(10, 0.01, 2, 4)');
SELECT outcome('SELECT bloom_plan(10, 0.01, max_layers => 1)');
SELECT outcome('SELECT bloom_plan(10000000, 0.01, max_layers => 64)');
SELECT outcome('SELECT bloom_new(10000000, 0.01, max_layers => 64)');
