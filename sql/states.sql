-- Aggregate states: transfer, functions that accept them, independence of the plan

CREATE SCHEMA states;
SET search_path = states, public;

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

-- Tests whether a line of a query's plan matches a pattern.
CREATE FUNCTION plan_has(query text, pattern text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ pattern THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN false;
END $$;

-- Aggregates without our final function return states: raw ones, which can even be stored
-- in a table (small, with a short header, compressed, out of line), and expanded objects.
CREATE AGGREGATE bloom_state(int) (SFUNC = _bloom_agg_transition, STYPE = bloom);
CREATE AGGREGATE bloom_state(int, bigint) (SFUNC = _bloom_agg_transition, STYPE = bloom);
CREATE AGGREGATE cuckoo_state(int) (SFUNC = _cuckoo_agg_transition, STYPE = cuckoo);
CREATE AGGREGATE bloom_merge_states(bloom) (SFUNC = _bloom_agg_combine, STYPE = bloom, FINALFUNC = _bloom_agg_final);
CREATE AGGREGATE cuckoo_merge_states(cuckoo) (SFUNC = _cuckoo_agg_combine, STYPE = cuckoo, FINALFUNC = _cuckoo_agg_final);
CREATE TABLE states (size int, f bloom, c cuckoo);
ALTER TABLE states ALTER f SET STORAGE extended, ALTER c SET STORAGE extended;
INSERT INTO states SELECT size, bloom_state(n), cuckoo_state(n) FROM (VALUES (0), (5), (300), (2100), (20000)) s(size) LEFT JOIN generate_series(1, 20000) n ON n <= size GROUP BY size;

-- every function rejects them, raw and as unfinished values, with the same error
CREATE TABLE calls (call text);
INSERT INTO calls VALUES
  ('bloom_contains(f, 1)'), ('f @> 1'), ('bloom_contains_any(f, ''{1}''::int[])'), ('bloom_contains_all(f, ''{1}''::int[])'), ('bloom_contains_each(f, ''{1}''::int[])'),
  ('bloom_add(f, 1)'), ('bloom_add_all(f, ''{1}''::int[])'), ('bloom_add(f, NULL::int)'), ('bloom_add_all(f, ''{}''::int[])'), ('bloom_add_all(f, ''{NULL}''::int[])'), ('bloom_contains_any(f, ''{}''::int[])'), ('f | bloom_new(9)'), ('bloom_new(9) | f'), ('f & f'), ('bloom_new(9) & f'),
  ('bloom_compact(f)'), ('bloom_cardinality(f)'), ('bloom_fpp(f)'), ('bloom_stats(f)'), ('bloom_layers(f)'), ('f::bytea'),
  ('f = f'), ('f <> bloom_new(9)'), ('bloom_new(9) = f'), ('_bloom_hash_value(f)'), ('_bloom_hash_value_extended(f, 1)'), ('bloom_union_agg(f)'), ('bloom_intersection_agg(f)'),
  ('cuckoo_contains(c, 1)'), ('c @> 1'), ('cuckoo_contains_any(c, ''{1}''::int[])'), ('cuckoo_contains_all(c, ''{1}''::int[])'), ('cuckoo_contains_each(c, ''{1}''::int[])'),
  ('cuckoo_add(c, 1)'), ('cuckoo_add_all(c, ''{1}''::int[])'), ('cuckoo_delete(c, 1)'), ('cuckoo_delete_all(c, ''{1}''::int[])'), ('cuckoo_delete(c, NULL::int)'), ('cuckoo_delete_all(c, NULL::int[])'), ('cuckoo_count(c, 1)'),
  ('cuckoo_merge(c, cuckoo_new(9))'), ('cuckoo_merge(cuckoo_new(9), c)'), ('cuckoo_cardinality(c)'), ('cuckoo_fpp(c)'), ('cuckoo_stats(c)'), ('c::bytea'),
  ('c = c'), ('c <> cuckoo_new(9)'), ('_cuckoo_hash_value(c)'), ('_cuckoo_hash_value_extended(c, 1)'), ('cuckoo_merge_agg(c)');
SELECT form, count(*) AS calls, outcome FROM calls, (VALUES (5), (300), (2100), (20000)) s(size), (VALUES ('raw', 'f', 'c'), ('unfinished', 'f::text::bloom', 'c::text::cuckoo')) v(form, f, c),
LATERAL (SELECT outcome(format('SELECT (%s)::text FROM (SELECT %s AS f, %s AS c FROM states.states WHERE size = %s OFFSET 0) x', call, v.f, v.c, size))) o(outcome)
GROUP BY form, outcome ORDER BY form, outcome;
SELECT outcome('SELECT bloom_contains(bloom_state(n), 1) FROM generate_series(1, 20000) n') AS object;

-- the input and combine functions accept what output and send write; the final function builds the filter
CREATE TABLE travelled (LIKE states);
INSERT INTO travelled SELECT size, f::text::bloom, c::text::cuckoo FROM states;
SELECT size, bool_and(same_text) AS same_text, bool_and(b = (SELECT bloom_agg(n) FROM generate_series(1, size) n) AND k = (SELECT cuckoo_agg(n) FROM generate_series(1, size) n)) AS same_filter
FROM (SELECT s.size, s.f::text = t.f::text AND s.c::text = t.c::text AS same_text, m.b, m.k FROM states s JOIN travelled t USING (size),
      LATERAL (SELECT bloom_merge_states(x.f) AS b, cuckoo_merge_states(x.c) AS k FROM (VALUES (s.f, s.c)) x(f, c)
               UNION ALL SELECT bloom_merge_states(x.f), cuckoo_merge_states(x.c) FROM (VALUES (t.f, t.c)) x(f, c)) m) x GROUP BY size ORDER BY size;
-- any mixture of forms; counts are added
SELECT b = (SELECT bloom_agg(n) FROM generate_series(1, 20000) n) AS bloom, cuckoo_count(k, 3) AS copies, cuckoo_count(k, 299) AS fewer, cuckoo_count(k, 20000) AS fewest
FROM (SELECT bloom_merge_states(f) AS b, cuckoo_merge_states(c) AS k FROM (SELECT * FROM states UNION ALL SELECT * FROM travelled ORDER BY 1 DESC) x) m;
SELECT b = (SELECT bloom_agg(n) FROM generate_series(1, 20000) n) AS bloom, cuckoo_count(k, 3) AS copies
FROM (SELECT bloom_merge_states(f) AS b, cuckoo_merge_states(c) AS k FROM (SELECT * FROM travelled UNION ALL SELECT * FROM states ORDER BY 1) x) m;
SELECT outcome($$SELECT bloom_merge_states(f) FROM (SELECT bloom_state(1, 10) AS f UNION ALL SELECT bloom_state(1, 11)) x$$) AS other_parameters;
SELECT split_part(outcome('SELECT bloom_merge_states(bloom_new(10, max_layers => 3))'), ':', 1) AS rotating, split_part(outcome('SELECT bloom_merge_states(bloom_new(10, growth => 0))'), ':', 1) AS fixed;

-- a raw state that was damaged in the table is rejected or harmless
CREATE FUNCTION raw(bloom) RETURNS bytea AS 'byteasend' LANGUAGE internal IMMUTABLE STRICT;
CREATE TABLE damaged (f bytea);
INSERT INTO damaged SELECT overlay(raw(f) placing set_byte('\x00', 0, (get_byte(raw(f), place) + change) % 256) from place + 1) FROM states, generate_series(0, 60) place, (VALUES (1), (127), (255)) v(change) WHERE size = 5;
INSERT INTO damaged SELECT substr(raw(f), 1, length) FROM states, generate_series(1, 60) length WHERE size = 5;
UPDATE pg_attribute SET atttypid = 'bloom'::regtype, attalign = 'd' WHERE attrelid = 'damaged'::regclass AND attname = 'f';
SELECT message LIKE 'XX001: filter is damaged%' AS refused, count(*) > 0 AS some, bool_and(message IN ('true', 'false') OR message LIKE 'XX001: filter is damaged%' OR message LIKE '54000: filter would need%' OR message LIKE '22P02: invalid input%') AS nothing_else
FROM damaged, (VALUES ('bloom_cardinality(bloom_merge_states(f)) >= 0'), ('bloom_merge_states(f::text::bloom) = bloom_merge_states(f)')) v(expression),
LATERAL (SELECT outcome(format('SELECT %s FROM states.damaged WHERE ctid = %L', expression, damaged.ctid))) o(message) GROUP BY 1 ORDER BY 1;
DROP TABLE damaged;

-- a transition or combine function accepts only NULL or its own state
SELECT bloom_add_all(bloom_new(1000), array_agg(n)) AS beginning FROM generate_series(1, 600) n \gset
CREATE AGGREGATE go_on(int) (SFUNC = _bloom_agg_transition, STYPE = bloom, FINALFUNC = _bloom_agg_final, INITCOND = :'beginning');
CREATE AGGREGATE merge_on(bloom) (SFUNC = _bloom_agg_combine, STYPE = bloom, FINALFUNC = _bloom_agg_final, INITCOND = :'beginning');
SELECT outcome('SELECT go_on(1)');
SELECT split_part(outcome('SELECT merge_on(bloom_new(9))'), E'\n', 1);
SELECT split_part(outcome('SELECT _bloom_agg_transition(NULL::bloom, 1)'), E'\n', 1);
DROP AGGREGATE go_on(int);
DROP AGGREGATE merge_on(bloom);

-- crafted unfinished values: an impossible capacity is a size error in the final function
CREATE FUNCTION unfinished(kind text, capacity bigint, keys bigint[], count int) RETURNS text LANGUAGE sql AS $$
  SELECT encode(decode(CASE kind WHEN 'bloom' THEN '4246' ELSE '4346' END || '0101010102007b14ae47e17a843f00000000' ||
    (SELECT string_agg(lpad(to_hex(capacity >> (8 * i) & 255), 2, '0'), '' ORDER BY i) FROM generate_series(0, 5) i) || '00' || CASE kind WHEN 'bloom' THEN '01' ELSE '03' END ||
    lpad(to_hex(cardinality(keys)), 2, '0') || repeat('00', 7) ||
    (SELECT string_agg((SELECT string_agg(lpad(to_hex(k >> (8 * i) & 255), 2, '0'), '' ORDER BY i) FROM generate_series(0, 7) i), '' ORDER BY k) FROM unnest(keys) k) ||
    CASE kind WHEN 'bloom' THEN '' ELSE rpad(repeat(lpad(to_hex(count), 2, '0'), cardinality(keys)), (cardinality(keys) + 7) / 8 * 16, '0') END, 'hex'), 'base64') $$;
SELECT outcome(format('SELECT bloom_merge_states(f) FROM (SELECT %L::bloom AS f) x', replace(unfinished('bloom', 1::bigint << 40, '{1,2,3}', 0), E'\n', ''))) AS bloom;
SELECT outcome(format('SELECT cuckoo_merge_states(f) FROM (SELECT %L::cuckoo AS f) x', replace(unfinished('cuckoo', 1::bigint << 40, '{1,2,3}', 255), E'\n', ''))) AS cuckoo;
SELECT outcome(format('SELECT cuckoo_merge_states(f) FROM (SELECT %L::cuckoo AS f UNION ALL SELECT %1$L) x', replace(unfinished('cuckoo', 1::bigint << 40, '{1,2,3}', 255), E'\n', ''))) LIKE '54000:%' AS twice;
SELECT (bloom_stats(bloom_merge_states(f::bloom))).capacity, bloom_cardinality(bloom_merge_states(f::bloom)) AS keys FROM (SELECT replace(unfinished('bloom', 10, '{1,2,3}', 0), E'\n', '') AS f) x;
-- unfinished lines must have the size that an aggregate uses
SELECT outcome($$SELECT f & f FROM (SELECT 'QkYBAQEBAgCN7bWg98awPgQAAAAAAAAAAAAmAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'::bloom f) x$$);

-- With any plan and any number of keys beyond the declared capacity: at most twice the target fpp,
-- and no error for the number of layers.  70 partitions of 900 keys with a capacity of 1000 once needed 65 layers.
CREATE TABLE parts (part int, k int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', p, p) FROM generate_series(1, 70) p \gexec
INSERT INTO parts SELECT n % 70 + 1, n FROM generate_series(1, 63000) n;
ANALYZE parts;
CREATE TABLE fed (mode text, f bloom, g bloom, h bloom, c cuckoo);
INSERT INTO fed SELECT 'serial', bloom_agg(k, 1000), bloom_agg(k::oid, 1000), bloom_agg(k, 70000), cuckoo_agg(k, 1000) FROM parts;
SET enable_partitionwise_aggregate = on; SET max_parallel_workers_per_gather = 0;
SELECT plan_has('SELECT bloom_agg(k, 1000) FROM states.parts', 'Partial Aggregate') AS partial_aggregates;
INSERT INTO fed SELECT 'Append', bloom_agg(k, 1000), bloom_agg(k::oid, 1000), bloom_agg(k, 70000), cuckoo_agg(k, 1000) FROM parts;
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT plan_has('SELECT bloom_agg(k, 1000) FROM states.parts', 'Gather') AS gathers;
INSERT INTO fed SELECT 'Gather', x.* FROM (SELECT bloom_agg(k, 1000), bloom_agg(k::oid, 1000), bloom_agg(k, 70000), cuckoo_agg(k, 1000) FROM parts) x;
RESET ALL;
SET search_path = states, public;
SELECT mode, greatest((bloom_stats(f)).layers, (bloom_stats(g)).layers) <= 8 AS few_layers, greatest(bloom_fpp(f), bloom_fpp(g)) <= 0.02 AS within_twice,
       lost, measured <= 0.022 AS measured_within_twice, h = (SELECT h FROM fed WHERE mode = 'serial') AS fits_same_bytes, c = (SELECT c FROM fed WHERE mode = 'serial') AS cuckoo_same_bytes
FROM fed, LATERAL (SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n) OR NOT bloom_contains(g, n::oid)) AS lost,
                          greatest(avg(bloom_contains(f, -n)::int), avg(bloom_contains(g, (n + 1000000)::oid)::int)) AS measured FROM generate_series(1, 63000) n) m ORDER BY mode DESC;

-- the smallest capacities, at any target: no layer exceeds its capacity
SELECT count(*) AS filters, count(*) FILTER (WHERE bloom_fpp(f) > 2.2 * p) AS overfull, count(*) FILTER (WHERE f::text::bloom <> f) AS differ
FROM (VALUES (0.1::float8), (0.01), (0.001), (1e-6)) t(p), generate_series(1, 6) capacity, generate_series(1, 40) size, LATERAL (SELECT bloom_agg(n, capacity, p) AS f FROM generate_series(1, size) n) x;
-- parts of very different sizes, one of which alone exceeds the capacity
CREATE TABLE uneven (part int, k int) PARTITION BY LIST (part);
CREATE TABLE uneven_1 PARTITION OF uneven FOR VALUES IN (1);
CREATE TABLE uneven_2 PARTITION OF uneven FOR VALUES IN (2);
CREATE TABLE uneven_3 PARTITION OF uneven FOR VALUES IN (3);
INSERT INTO uneven SELECT 1, n FROM generate_series(1, 2000) n UNION ALL SELECT 2, n FROM generate_series(10001, 1310000) n UNION ALL SELECT 3, n FROM generate_series(-20000, -1) n;
ANALYZE uneven;
SET enable_partitionwise_aggregate = on; SET max_parallel_workers_per_gather = 0;
SELECT capacity, bloom_contains_all(f, ARRAY(SELECT k FROM uneven)) AS all_found, bloom_fpp(f) <= 0.03 AS within_a_part_more, f::text::bloom = f AS same_text
FROM (VALUES (1000), (10000), (100000), (750000)) v(capacity), LATERAL (SELECT bloom_agg(k, capacity) AS f FROM uneven) x;
RESET ALL;
SET search_path = states, public;
-- any number of parts: 150 states of several layers each, all of different sizes
SELECT (bloom_stats(f)).layers <= 64 AS few_layers, bloom_contains_all(f, ARRAY(SELECT generate_series(1, 150 * 151 / 2 * 7))) AS all_found, f::text::bloom = f AS same_text
FROM (SELECT bloom_merge_states(f ORDER BY p) AS f FROM (SELECT p, bloom_agg(n, 5) AS f FROM generate_series(1, 150) p, generate_series((p - 1) * p / 2 * 7 + 1, p * (p + 1) / 2 * 7) n GROUP BY p) x) y;

-- the smallest capacities: layers of several capacities have the same shape, and states keep their capacity
SELECT count(*) AS merged, count(*) FILTER (WHERE NOT bloom_contains_all(f, ARRAY(SELECT generate_series(1, 20 * size)))) AS lost
FROM generate_series(1, 4) capacity, (VALUES (0.5::float8), (0.1), (0.01)) t(p), generate_series(1, 12) size,
LATERAL (SELECT bloom_merge_states(f ORDER BY part) AS f FROM (SELECT part, bloom_agg((part - 1) * size + n, capacity, p) AS f FROM generate_series(1, 20) part, generate_series(1, size) n GROUP BY part) x) y;

-- groups with every way of merging states: Gather, Gather Merge over a sort, a Finalize step that spills
CREATE TABLE grouped AS SELECT n % 3000 AS g, n FROM generate_series(1, 90000) n;
INSERT INTO grouped SELECT -1, n FROM generate_series(1, 30000) n;
ALTER TABLE grouped SET (parallel_workers = 2);
ANALYZE grouped;
CREATE VIEW filters AS SELECT g, bloom_agg(n) AS a, bloom_agg(n, 40000) AS b, bloom_agg(n::oid) AS o, cuckoo_agg(n) AS c, min(n) AS k FROM grouped GROUP BY g;
CREATE TABLE serial AS SELECT * FROM filters;
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET work_mem = '64MB';
SET enable_sort = off; SET enable_gathermerge = off;
SELECT plan_has('TABLE states.filters', 'Finalize HashAggregate') AND plan_has('TABLE states.filters', 'Gather$') AS gathered_in_a_hash_table;
SELECT count(*) AS groups, count(*) FILTER (WHERE s.a = f.a AND s.b = f.b AND s.o = f.o AND s.c = f.c) AS same FROM filters f JOIN serial s USING (g);
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT count(*) AS groups, count(*) FILTER (WHERE s.a = f.a AND s.b = f.b AND s.o = f.o AND s.c = f.c) AS same_when_spilled FROM filters f JOIN serial s USING (g);
RESET enable_sort; RESET enable_gathermerge; SET enable_hashagg = off;
SELECT plan_has('TABLE states.filters', 'Finalize GroupAggregate') AND plan_has('TABLE states.filters', 'Gather Merge') AS gathered_in_order;
SELECT count(*) AS groups, count(*) FILTER (WHERE s.a = f.a AND s.b = f.b AND s.o = f.o AND s.c = f.c) AS same_in_order FROM filters f JOIN serial s USING (g);
RESET ALL;
SET search_path = states, public;

-- window frames: the final function leaves the state intact, even beyond the declared capacity
SELECT count(*) FILTER (WHERE NOT bloom_contains(f, n) OR NOT bloom_contains(f, 1) OR NOT cuckoo_contains(c, n)) AS lost, max((bloom_stats(f)).layers) AS layers
FROM (SELECT n, bloom_agg(n, 20) OVER w AS f, cuckoo_agg(n, 20) OVER w AS c FROM generate_series(1, 400) n WINDOW w AS (ORDER BY n ROWS UNBOUNDED PRECEDING)) x;

-- Unions and sums do not depend on the order of their arguments.  Of two filters without keys,
-- the result is the one for more keys, then the one with more bits, then the one with the larger growth.
CREATE TABLE various (name text, f bloom);
INSERT INTO various VALUES ('empty', bloom_new(10, 0.1)), ('empty, other growth', bloom_new(10, 0.1, growth => 3)), ('empty, fixed', bloom_new(10, 0.1, growth => 0)), ('empty, larger', bloom_new(1000)),
  ('empty, had keys', (SELECT bloom_agg(1, 12)) & (SELECT bloom_agg(4, 12))), ('empty, rotating', bloom_new(10, 0.1, max_layers => 3)), ('no rows', (SELECT bloom_agg(n) FROM generate_series(1, 0) n));
INSERT INTO various SELECT format('%s keys from %s, growth %s', size, first, growth), bloom_add_all(bloom_new(capacity, 0.02, growth => growth), ARRAY(SELECT generate_series(first, first + size)))
  FROM (VALUES (3, 100), (300, 100), (300, 500), (2000, 500)) s(size, capacity), (VALUES (1), (1000)) x(first), (VALUES (0), (1), (2)) g(growth);
INSERT INTO various SELECT format('%s keys from %s, rotating', size, first), bloom_add_all(bloom_new(100, 0.02, max_layers => 3), ARRAY(SELECT generate_series(first, first + size))) FROM (VALUES (3), (250)) s(size), (VALUES (1), (1000)) x(first);
INSERT INTO various SELECT format('%s keys, sized', size), bloom_agg(n) FROM (VALUES (3), (50), (700)) s(size), generate_series(1, size) n GROUP BY size;
SELECT count(*) AS unions, count(*) FILTER (WHERE a.f | b.f <> b.f | a.f) AS differ FROM various a, various b;
SELECT a.name, b.name FROM various a, various b WHERE a.f | b.f <> b.f | a.f LIMIT 5;
SELECT bloom_new(10, 0.1) | bloom_new(10, 0.1, growth => 3) = bloom_new(10, 0.1, growth => 3) AS larger_growth, bloom_new(10) | bloom_new(1000) = bloom_new(1000) AS larger_capacity;
SELECT count(*) AS sums, count(*) FILTER (WHERE cuckoo_merge(a, b) <> cuckoo_merge(b, a)) AS differ
FROM (VALUES (cuckoo_new(10)), (cuckoo_new(10, 0.1)), (cuckoo_new(10, growth => 4)), (cuckoo_new(1000)), (cuckoo_new(1000, growth => 0)), (cuckoo_delete(cuckoo_add(cuckoo_new(10), 1), 1))) x(a),
     (VALUES (cuckoo_new(10)), (cuckoo_new(10, 0.1)), (cuckoo_new(10, growth => 4)), (cuckoo_new(1000)), (cuckoo_new(1000, growth => 0)), (cuckoo_delete(cuckoo_add(cuckoo_new(10), 1), 1))) y(b);
SELECT count(*) AS sums, count(*) FILTER (WHERE cuckoo_merge(a, b) <> cuckoo_merge(b, a)) AS differ
FROM (SELECT cuckoo_add_all(cuckoo_new(100), ARRAY(SELECT generate_series(first, first + size))) AS a FROM (VALUES (1), (50)) x(first), (VALUES (0), (5), (150), (1000)) s(size)) a,
     (SELECT cuckoo_add_all(cuckoo_new(100), ARRAY(SELECT generate_series(first, first + size))) AS b FROM (VALUES (1), (50)) x(first), (VALUES (0), (5), (150), (1000)) s(size)) b;
SELECT cuckoo_merge(cuckoo_new(10), cuckoo_new(1000)) = cuckoo_new(1000) AS larger;
