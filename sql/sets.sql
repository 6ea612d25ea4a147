-- Union and intersection

CREATE SCHEMA sets;
SET search_path = sets, public;

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

-- filters of random sets of small numbers, compared with arrays
CREATE TABLE sets AS
  SELECT id, capacity, f, members
  FROM (SELECT id, (array[NULL, 300, 300, 5000, 100000])[1 + id % 5] AS capacity FROM generate_series(1, 60) id) s,
  LATERAL (SELECT bloom_agg(n, capacity) AS f, array_agg(n) AS members
           FROM (SELECT ('x' || substr(md5(id || ' ' || i), 1, 4))::bit(16)::int % 4000 AS n FROM generate_series(1, id * id % 300) i) r) m;
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE NOT bloom_contains_all(a.f | b.f, a.members || b.members)) AS lost,
       count(*) FILTER (WHERE a.f | b.f <> b.f | a.f) AS depends_on_order,
       count(*) FILTER (WHERE a.f | a.f <> a.f) AS not_idempotent,
       count(*) FILTER (WHERE abs(bloom_cardinality(a.f | b.f) - (SELECT count(*) FROM unnest(CASE WHEN (bloom_stats(a.f | b.f)).layers = 1 THEN array(SELECT DISTINCT unnest(a.members || b.members))
                                ELSE a.members || b.members END))) > 40) AS miscounted
FROM sets a, sets b;
SELECT count(*) AS triples, count(*) FILTER (WHERE NOT bloom_contains_all(a.f | b.f | c.f, a.members || b.members || c.members)) AS lost
FROM sets a, sets b, sets c WHERE a.id % 7 = 1 AND b.id % 7 = 2 AND c.id % 7 = 3;

-- same geometry: the union equals a filter built from all keys
SELECT a | b = c AS merged, (bloom_stats(a | b)).layers FROM
  (SELECT bloom_agg(n, 5000) FILTER (WHERE n % 3 = 0) AS a, bloom_agg(n, 5000) FILTER (WHERE n % 3 <> 0) AS b, bloom_agg(n, 5000) AS c FROM generate_series(1, 5000) n) x;
SELECT a | b = c AS lists, (bloom_stats(a | b)).bytes FROM
  (SELECT bloom_agg(n, 5000) FILTER (WHERE n % 3 = 0) AS a, bloom_agg(n, 5000) FILTER (WHERE n % 3 <> 0) AS b, bloom_agg(n, 5000) AS c FROM generate_series(1, 50) n) x;
SELECT a | b = c AS list_and_lines FROM
  (SELECT bloom_agg(n, 5000) FILTER (WHERE n % 99 = 0) AS a, bloom_agg(n, 5000) FILTER (WHERE n % 99 <> 0) AS b, bloom_agg(n, 5000) AS c FROM generate_series(1, 3000) n) x;

-- different geometries, or too many keys for one layer: layers side by side, and bloom_fpp shows it
SELECT (s).layers, (s).capacity, abs((s).cardinality - 3000) < 60 AS counted, round((s).fpp::numeric, 2) AS fpp FROM
  (SELECT bloom_stats(bloom_agg(n) FILTER (WHERE n <= 1000) | bloom_agg(n) FILTER (WHERE n > 1000)) AS s FROM generate_series(1, 3000) n) x;
SELECT (s).layers, (s).fpp < 0.021 AS no_layer_overfull FROM
  (SELECT bloom_stats(bloom_agg(n, 2000) FILTER (WHERE n % 2 = 0) | bloom_agg(n, 2000) FILTER (WHERE n % 2 = 1)) AS s FROM generate_series(1, 4000) n) x;
-- a filter of fixed size accepts all keys
SELECT (s).layers, (s).fpp > 0.1 AS overfull FROM
  (SELECT bloom_stats(bloom_add_all(bloom_new(2000, growth => 0), array_agg(n) FILTER (WHERE n % 2 = 0)) | bloom_add_all(bloom_new(2000, growth => 0), array_agg(n) FILTER (WHERE n % 2 = 1))) AS s FROM generate_series(1, 4000) n) x;

-- intersection of the same geometry: no common key is lost, and few others are kept
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE NOT bloom_contains_all(a.f & b.f, array(SELECT unnest(a.members) INTERSECT SELECT unnest(b.members)))) AS lost,
       count(*) FILTER (WHERE a.f & b.f <> b.f & a.f) AS depends_on_order
FROM sets a, sets b WHERE a.capacity = b.capacity;
SELECT outcome('SELECT bloom_agg(1) & bloom_agg(n) FROM generate_series(1, 100) n');
SELECT outcome('SELECT (bloom_agg(1) | bloom_agg(n)) & bloom_agg(n) FROM generate_series(1, 100) n');
SELECT outcome('SELECT bloom_agg(1, 10) & bloom_agg(''x'', 10)');
SELECT outcome('SELECT bloom_agg(1, 10) | bloom_agg(''x'', 10)');
SELECT outcome('SELECT bloom_union_agg(f) FROM (SELECT bloom_agg(1) UNION ALL SELECT bloom_agg(''x'')) v(f)');
SELECT outcome('SELECT bloom_intersection_agg(f) FROM (SELECT bloom_agg(1) UNION ALL SELECT bloom_agg(1.5)) v(f)');
SELECT outcome('SELECT bloom_intersection_agg(f) FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 300) n GROUP BY n < 9) x');

-- empty filters: the identity of union, whatever their geometry; their intersection with any filter is empty
SELECT f | e = f AND e | f = f AS identity, bloom_cardinality(f & bloom_new(100)) AS common, (bloom_stats(bloom_new(5) | bloom_new(500))).capacity AS larger
FROM (SELECT bloom_agg(n, 100) AS f FROM generate_series(1, 90) n) x, (VALUES (bloom_new(1)), (bloom_new(100)), (bloom_new(100000, 0.5))) v(e);

-- unsupported intersections
SELECT outcome('SELECT bloom_agg(n, 100) & bloom_agg(n, 100) FROM generate_series(1, 300) n');
SELECT outcome('SELECT bloom_agg(n, 100) & bloom_agg(n, 100, 0.001) FROM generate_series(1, 90) n');
SELECT outcome('SELECT bloom_add(bloom_new(1000), 1) & bloom_agg(n, 1000) FROM generate_series(1, 900) n');
SELECT bloom_contains(bloom_add(bloom_new(1000, growth => 0), 1) & bloom_agg(n, 1000), 1) AS as_the_hint_says FROM generate_series(1, 900) n;

-- NULL
\pset null NULL
SELECT bloom_new(1) | NULL AS union, NULL & bloom_new(1) AS intersection, bloom_union(NULL, NULL) AS both;

-- the maximum number of layers
SELECT outcome('SELECT (bloom_stats(bloom_union_agg(f))).layers FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 64) g, generate_series(1, 100 + g * 60) n GROUP BY g) x');
SELECT outcome('SELECT (bloom_stats(bloom_union_agg(f))).layers FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 65) g, generate_series(1, 100 + g * 60) n GROUP BY g) x');

-- aggregates: no input, only NULLs, one filter, many; in place and in parallel
SELECT bloom_union_agg(f) IS NULL AS union_null, bloom_cardinality(bloom_union_agg(f)) AS union_keys, bloom_intersection_agg(f) IS NULL AS intersection_null FROM sets WHERE false;
SELECT bloom_cardinality(bloom_union_agg(f)) AS union_keys, bloom_intersection_agg(f) IS NULL AS intersection_null FROM (VALUES (NULL::bloom), (NULL)) v(f);
SELECT bloom_union_agg(f) = bloom_agg(1) AS union, bloom_intersection_agg(f) = bloom_agg(1) AS intersection FROM (SELECT NULL UNION ALL SELECT bloom_agg(1) UNION ALL SELECT NULL) v(f);
SELECT bloom_contains_all(bloom_union_agg(f), (SELECT array_agg(m) FROM sets, unnest(members) m)) AS all_found FROM sets;

CREATE TABLE shards AS SELECT g, bloom_agg(n, 60000) AS f, bloom_agg(n, 60000) | (SELECT bloom_agg(-m, 60000) FROM generate_series(1, 500) m) AS common
  FROM generate_series(1, 60000) n, LATERAL (SELECT n % 40 AS g) x GROUP BY g;
ALTER TABLE shards SET (parallel_workers = 2);
ANALYZE shards;
CREATE TABLE whole AS SELECT bloom_union_agg(f) AS u, bloom_intersection_agg(common) AS i FROM shards;
SELECT u = (SELECT bloom_agg(n, 60000) FROM generate_series(1, 60000) n) AS union, bloom_cardinality(i) BETWEEN 500 AND 700 AS intersection,
       (SELECT bool_and(bloom_contains(i, -m)) FROM generate_series(1, 500) m) AS all_found FROM whole;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT bloom_union_agg(f), bloom_intersection_agg(common) FROM shards;
SELECT u = (SELECT bloom_union_agg(f) FROM shards) AS union, i = (SELECT bloom_intersection_agg(common) FROM shards) AS intersection FROM whole;
SELECT bloom_intersection_agg(f) IS NULL AS none FROM shards WHERE g < 0;
RESET ALL;
SET search_path = sets, public;

-- aggregating stored filters does not change them
SELECT bloom_cardinality(f) = 1500 AS unchanged FROM shards WHERE g = 0;
SELECT bloom_cardinality(grows) AS keys FROM (SELECT g, bloom_union_agg(f) OVER (ORDER BY g) AS grows FROM shards WHERE g < 3) x ORDER BY g;

-- many filters of few keys: the state becomes an object, as a list and as lines, until it is full
CREATE TABLE sparse AS SELECT size, g, bloom_agg(n, 20000) AS f, bloom_agg(n, 4000) AS narrow, cuckoo_agg(n, 20000) AS c
  FROM (VALUES (1), (40), (700)) s(size), generate_series(1, 6000) n, LATERAL (SELECT n / size AS g) x GROUP BY 1, 2;
SELECT size, united = whole AS same, shuffled = whole AS in_any_order, bloom_contains_all(overfed, keys) AS overfed, bloom_fpp(overfed) < 0.03 AS and_honest, merged = cuckoos AS cuckoos
FROM (SELECT size, bloom_union_agg(f ORDER BY g) AS united, bloom_union_agg(f ORDER BY md5(g::text)) AS shuffled, bloom_union_agg(narrow) AS overfed, cuckoo_merge_agg(c ORDER BY g) AS merged
      FROM sparse GROUP BY size) s,
     (SELECT bloom_agg(n, 20000) AS whole, cuckoo_agg(n, 20000) AS cuckoos, array_agg(n) AS keys FROM generate_series(1, 6000) n) x ORDER BY size;
SELECT bool_and(running = (SELECT bloom_agg(n, 20000) FROM generate_series(1, 6000) n WHERE n / 40 <= g)) AS as_a_window
FROM (SELECT g, bloom_union_agg(f) OVER (ORDER BY g) AS running FROM sparse WHERE size = 40) x;

-- no common keys: an empty list, from the operator and from the aggregate
WITH f AS (SELECT bloom_agg(1, 12) AS a, bloom_agg(4, 12) AS b), g AS (SELECT a AS v FROM f UNION ALL SELECT b FROM f)
SELECT (SELECT a & b FROM f) = (SELECT bloom_intersection_agg(v) FROM g) AS one_empty_filter, (SELECT bloom_cardinality(bloom_intersection_agg(v)) FROM g) AS keys;

-- keys that fit the capacity: the union equals the filter of all keys, whether small or full
SELECT fpp, count(*) AS unions, count(*) FILTER (WHERE whole <> united) AS one_by_one_differs, count(*) FILTER (WHERE whole <> halves) AS halves_differ
FROM (VALUES (0.3), (0.01), (0.0001)) p(fpp), generate_series(1, 200) capacity, (VALUES (0.5), (0.9), (1)) s(share), LATERAL (SELECT ceil(capacity * share)::int AS n) x,
LATERAL (SELECT bloom_agg(i * 7919 + capacity, capacity, fpp) AS whole,
                bloom_agg(i * 7919 + capacity, capacity, fpp) FILTER (WHERE i % 2 = 0) | bloom_agg(i * 7919 + capacity, capacity, fpp) FILTER (WHERE i % 2 = 1) AS halves
         FROM generate_series(1, n) i) w,
LATERAL (SELECT bloom_union_agg(f) AS united FROM (SELECT bloom_agg(i * 7919 + capacity, capacity, fpp) AS f FROM generate_series(1, n) i GROUP BY i) f) u
GROUP BY fpp ORDER BY fpp DESC;

-- a fixed filter among growing ones: the same false-positive rate in any order
SELECT round(bloom_fpp(bloom_union_agg(f ORDER BY i))::numeric, 3) AS fixed_first, round(bloom_fpp(bloom_union_agg(f ORDER BY -i))::numeric, 3) AS fixed_last
FROM (SELECT 0 AS i, bloom_add_all(bloom_new(1000, growth => 0), ARRAY(SELECT generate_series(1, 1000))) AS f
      UNION ALL SELECT g, bloom_agg(10000 + g * 20 + n, 1000) FROM generate_series(1, 49) g, generate_series(1, 20) n GROUP BY g) x;
