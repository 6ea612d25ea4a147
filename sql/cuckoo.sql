-- The type cuckoo: a multiset that supports deletion.  Code shared with bloom (keys,
-- classes, input, SQL functions) has its own tests; this file tests that cuckoo uses it.

CREATE SCHEMA cuckoo;
SET search_path = cuckoo, public;

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

-- Counts the lines of a query's plan that match a pattern (the wording of plans differs between major versions).
CREATE FUNCTION plan_has(query text, pattern text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  line text;
  result bigint := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    result := result + (line ~ pattern)::int;
  END LOOP;
  RETURN result;
END $$;

-- Reproducible keys: k is text, i covers the whole range of bigint.
CREATE TABLE keys AS
  SELECT n, md5(n::text) AS k,
         ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint AS i
  FROM generate_series(1, 100000) n;
ANALYZE keys;

\pset null NULL

-- added twice and deleted once: still present
SELECT cuckoo_count(f, 1) AS one, cuckoo_count(f, 2) AS two, cuckoo_count(f, 3) AS three, cuckoo_count(f, 4) AS none,
       cuckoo_contains_each(cuckoo_delete_all(f, array[1, 2, 3, 4]), array[1, 2, 3, 4]) AS after_one_delete,
       cuckoo_contains_each(cuckoo_delete_all(f, array[1, 2, 3, 2, 3]), array[1, 2, 3, 4]) AS after_two
FROM (SELECT cuckoo_add_all(cuckoo_new(100), array[1, 2, 2, 3, 3, 3]) AS f) x;
-- deleting the last added key restores the filter
SELECT cuckoo_delete(cuckoo_add(f, 5000), 5000) = f AS as_before, cuckoo_delete_all(f, array_agg(n)) = cuckoo_delete_all(cuckoo_add(cuckoo_new(1000), 0), array[0]) AS empty_again
FROM (SELECT cuckoo_add_all(cuckoo_new(1000), array_agg(n)) AS f FROM generate_series(1, 50) n) x, generate_series(1, 50) n GROUP BY f;
-- a table whose keys are all deleted becomes an empty list
SELECT (cuckoo_stats(f)).bytes > 1000 AS was_table, (cuckoo_stats(g)).bytes, cuckoo_cardinality(g), cuckoo_fpp(g)
FROM (SELECT f, cuckoo_delete_all(f, keys) AS g FROM (SELECT cuckoo_agg(n, 1000) AS f, array_agg(n) AS keys FROM generate_series(1, 1000) n) x) y;

-- deleting an absent key changes nothing
SELECT count(*) FILTER (WHERE cuckoo_delete(f, -n) = f) AS unchanged, count(*) FILTER (WHERE cuckoo_contains(f, -n)) AS false_positives
FROM (SELECT cuckoo_agg(n, NULL, 1e-6) AS f FROM generate_series(1, 1000) n) x, generate_series(1, 1000) n;
SELECT cuckoo_delete(f, 1) = f AS of_an_empty_one, cuckoo_delete_all(f, array['x']) = f AS of_any_class FROM (VALUES (cuckoo_new(10))) v(f);

-- millions of copies: the count saturates, the key can no longer be deleted, other keys are unaffected
CREATE TABLE hot AS SELECT cuckoo_agg(CASE WHEN n <= 1000000 THEN 0 ELSE n END) AS f, cuckoo_agg(n) FILTER (WHERE n > 1000000) AS others FROM generate_series(1, 1010000) n;
SELECT cuckoo_count(f, 0) AS copies, cuckoo_count(f, 1000001) AS of_another, (cuckoo_stats(f)).bytes <= 1.2 * (cuckoo_stats(others)).bytes AS small,
       cuckoo_cardinality(f) AS keys FROM hot;
SELECT cuckoo_delete_all(f, array_fill(0, array[1000])) = f AS frozen, cuckoo_contains(cuckoo_delete(f, 1000001), 1000001) AS of_another FROM hot;
SELECT n AS added, cuckoo_count(f, 7) AS counted, cuckoo_count(g, 7) AS after_deleting_all
FROM (VALUES (1), (2), (3), (100), (253), (254), (255), (256), (1000)) v(n),
LATERAL (SELECT cuckoo_add_all(cuckoo_add_all(cuckoo_new(1000), array_agg(i)), array_fill(7, array[n])) FROM generate_series(1001, 1900) i) w(f),
LATERAL (SELECT cuckoo_delete_all(f, array_fill(7, array[n]))) d(g) ORDER BY n;

-- every size around each change of form, with copies added before, during and after growth of the table
SELECT count(*) AS filters, count(*) FILTER (WHERE f::bytea::cuckoo <> f) AS other_bytes, sum(wrong) AS wrong_counts
FROM generate_series(1, 12) capacity, (VALUES (0), (2), (4), (16)) g(growth), (VALUES (1e-6), (1e-9)) p(fpp), generate_series(1, 60, 3) size,
LATERAL (SELECT cuckoo_add_all(cuckoo_add_all(cuckoo_add_all(cuckoo_new(capacity, fpp, growth), array_agg(n)), array_agg(n) FILTER (WHERE n > size / 2)), array_agg(n ORDER BY -n)) AS f FROM generate_series(1, size) n) x,
LATERAL (SELECT count(*) FILTER (WHERE cuckoo_count(f, n) <> 2 + (n > size / 2)::int) AS wrong FROM generate_series(1, size) n) y;
SELECT count(*) AS filters, count(*) FILTER (WHERE cuckoo_agg::bytea::cuckoo <> cuckoo_agg) AS other_bytes
FROM (SELECT cuckoo_agg(n, capacity, fpp) FROM generate_series(1, 12) capacity, (VALUES (0.3), (0.01), (1e-6)) p(fpp), generate_series(1, 60) size, LATERAL generate_series(1, size) n GROUP BY capacity, fpp, size) x;

-- keys: values that are equal in SQL are the same key, different classes are rejected
SELECT cuckoo_contains(cuckoo_agg(1::smallint), 1::bigint) AS integers, cuckoo_contains(cuckoo_agg('a '::char(5)), 'a'::text) AS padded, cuckoo_agg('x'::name) @> 'x' AS name,
       cuckoo_agg(1.0) @> 1.00 AS numeric, cuckoo_agg('-0'::float8) @> 0::float8 AS zero, cuckoo_agg(row(1, 'a'::text)) @> row(1::bigint, 'a'::varchar) AS record, cuckoo_agg(array[1, 2]) @> array[1, 2]::bigint[] AS "array";
SELECT outcome('SELECT cuckoo_contains(cuckoo_agg(1), ''a'')');
SELECT outcome('SELECT cuckoo_add(cuckoo_agg(1), ''a''::text)');
SELECT outcome('SELECT cuckoo_delete(cuckoo_agg(1), ''a''::text)');
SELECT outcome('SELECT cuckoo_count(cuckoo_agg(''a''::text), 1)');
SELECT outcome('SELECT cuckoo_merge(cuckoo_agg(''a''::text, 10), cuckoo_agg(1, 10))');
SELECT outcome('SELECT cuckoo_merge(cuckoo_add(cuckoo_new(1000, growth => 4), 1), cuckoo_agg(n, 1000)) FROM generate_series(1, 3) n');
SELECT cuckoo_count(cuckoo_merge(cuckoo_add(cuckoo_new(1000), 1), cuckoo_agg(n, 1000)), 1) AS as_the_hint_says FROM generate_series(1, 3) n;
SELECT outcome('SELECT (cuckoo_stats(cuckoo_agg(k::citext))).key_class FROM keys');
SELECT outcome('SELECT cuckoo_agg(c) FROM (SELECT k::citext AS c FROM keys OFFSET 0) x');
SELECT outcome('SELECT cuckoo_agg(''pg_class''::regclass)');

-- NULL and empty input
SELECT cuckoo_contains(NULL, 1) AS a, cuckoo_contains(cuckoo_agg(1), NULL::int) AS b, cuckoo_add(NULL, 1) AS c, cuckoo_add(cuckoo_agg(1), NULL::int) = cuckoo_agg(1) AS d,
       cuckoo_delete(NULL, 1) AS e, cuckoo_delete(cuckoo_agg(1), NULL::int) = cuckoo_agg(1) AS f, cuckoo_delete_all(cuckoo_agg(1), NULL::int[]) = cuckoo_agg(1) AS g,
       cuckoo_delete_all(cuckoo_agg(1), '{}'::int[]) = cuckoo_agg(1) AS h, cuckoo_delete_all(cuckoo_agg(1), array[NULL, 1]) @> 1 AS i, cuckoo_count(cuckoo_agg(1), NULL::int) AS j;
SELECT cuckoo_agg(n) IS NOT NULL AS not_null, cuckoo_contains(cuckoo_agg(n), 1) AS contains, cuckoo_cardinality(cuckoo_agg(n)) AS keys, cuckoo_cardinality(cuckoo_merge_agg(NULL)) AS merged
FROM generate_series(1, 0) n;
SELECT cuckoo_contains_any(f, array[9, NULL]) AS "any", cuckoo_contains_any(f, array[1, NULL]) AS any_found, cuckoo_contains_all(f, array[1, NULL]) AS "all", cuckoo_contains_all(f, array[9, NULL]) AS all_not,
       cuckoo_contains_any(f, '{}'::int[]) AS any_empty, cuckoo_contains_all(f, '{}'::int[]) AS all_empty, cuckoo_contains_each(f, array[[1, 2], [NULL, 9]]) AS each
FROM (SELECT cuckoo_agg(n) AS f FROM generate_series(1, 3) n) x;

-- parameter checks
SELECT outcome('SELECT cuckoo_new(0)');
SELECT outcome('SELECT cuckoo_new(10, 1)');
SELECT outcome('SELECT cuckoo_new(NULL)');
SELECT outcome('SELECT cuckoo_new(10, 0.01, 3)');
SELECT outcome('SELECT cuckoo_new(10, 0.01, 128)');
SELECT outcome('SELECT cuckoo_new(10, 0.01, 1)');
SELECT outcome('SELECT cuckoo_new(10, growth => -2)');
SELECT outcome('SELECT cuckoo_plan(10, growth => 5)');
SELECT outcome('SELECT cuckoo_new(1000000000)');
SELECT outcome('SELECT cuckoo_agg(1, 1000000000)');
SELECT outcome('SELECT cuckoo_agg(n, n) FROM generate_series(1, 3) n');
SELECT outcome('SELECT _cuckoo_agg_transition(NULL, 1)');
SELECT outcome('SELECT _cuckoo_merge_agg_transition(cuckoo_new(1), cuckoo_new(1))');

-- merging adds the counts
SELECT cuckoo_count(m, 1) AS a_only, cuckoo_count(m, 500) AS both, cuckoo_count(m, 900) AS b_only, cuckoo_count(m, 901) AS neither, m = cuckoo_merge(b, a) AS either_way,
       cuckoo_count(cuckoo_merge(m, m), 500) AS doubled, m = cuckoo_agg_of_both AS as_if_at_once
FROM (SELECT cuckoo_merge(a, b) AS m, a, b, cuckoo_agg_of_both FROM
  (SELECT cuckoo_agg(n, 1000) FILTER (WHERE n <= 600) AS a, cuckoo_agg(n, 1000) FILTER (WHERE n BETWEEN 400 AND 900) AS b FROM generate_series(1, 900) n) x,
  (SELECT cuckoo_agg(n, 1000) AS cuckoo_agg_of_both FROM (SELECT generate_series(1, 600) UNION ALL SELECT generate_series(400, 900)) u(n)) y) z;
SELECT cuckoo_count(cuckoo_merge(a, b), 7) AS "200 + 100" FROM (SELECT cuckoo_add_all(cuckoo_new(10), array_fill(7, array[200])) AS a, cuckoo_add_all(cuckoo_new(10), array_fill(7, array[100])) AS b) x;
-- filters that have doubled and empty filters can be merged, filters of different geometry cannot
SELECT (cuckoo_stats(a)).slot_bits AS small, (cuckoo_stats(b)).slot_bits AS grown, cuckoo_cardinality(cuckoo_merge(a, b)) AS keys, cuckoo_merge(a, b) = cuckoo_merge(b, a) AS either_way,
       cuckoo_contains_all(cuckoo_merge(a, b), ARRAY(SELECT generate_series(1, 5000))) AS found
FROM (SELECT cuckoo_agg(n, 1000) FILTER (WHERE n <= 1000) AS a, cuckoo_add_all(cuckoo_new(1000), array_agg(n) FILTER (WHERE n > 1000)) AS b FROM generate_series(1, 5000) n) x;
SELECT cuckoo_merge(a, b) = cuckoo_merge(b, a) AS either_way FROM (SELECT cuckoo_add(cuckoo_new(7, 0.01), 1) AS a, cuckoo_add(cuckoo_new(8, 0.01), 2) AS b) x;
SELECT outcome('SELECT cuckoo_merge(cuckoo_agg(1, 1000), cuckoo_agg(1, 1001, 0.01))');
SELECT outcome('SELECT cuckoo_merge(cuckoo_agg(1, 1000, 0.02), cuckoo_agg(1, 1000, 0.01))');
SELECT outcome('SELECT cuckoo_merge(cuckoo_add(cuckoo_new(1000, growth => 4), 1), cuckoo_agg(1, 1000))');
SELECT cuckoo_merge(cuckoo_new(77), f) = f AS with_empty, cuckoo_merge(f, cuckoo_new(77)) = f AS and_back FROM (SELECT cuckoo_agg(n, 1000) AS f FROM generate_series(1, 9) n) x;
SELECT m = whole AS same_bytes, cuckoo_cardinality(m) AS keys FROM
  (SELECT cuckoo_merge_agg(f) AS m FROM (SELECT cuckoo_agg(n, 3000, 0.001) AS f FROM generate_series(1, 3000) n GROUP BY n % 7 UNION ALL SELECT NULL UNION ALL SELECT cuckoo_new(5)) x) y,
  (SELECT cuckoo_agg(n, 3000, 0.001) AS whole FROM generate_series(1, 3000) n) z;
SELECT sum(cuckoo_cardinality(m)) FROM (SELECT cuckoo_merge_agg(f) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS m
  FROM (SELECT g, cuckoo_agg(n + g * 100, 1000) AS f FROM generate_series(1, 100) n, generate_series(1, 4) g GROUP BY g) x) y;

-- subtraction is the inverse of merging
SELECT cuckoo_subtract(m, b) = a AS without_b, cuckoo_subtract(m, a) = b AS without_a, cuckoo_cardinality(cuckoo_subtract(m, m)) AS nothing,
       cuckoo_count(cuckoo_subtract(m, b), 500) AS was_in_both, cuckoo_contains(cuckoo_subtract(m, b), 900) AS was_in_b
FROM (SELECT cuckoo_merge(a, b) AS m, a, b FROM (SELECT cuckoo_agg(n, 1000) AS a FROM generate_series(1, 600) n) x, (SELECT cuckoo_agg(n, 1000) AS b FROM generate_series(401, 900) n) y) z;
-- subtracting a day from a month
SELECT cuckoo_subtract(month, day) = rest AS "a day less", cuckoo_subtract(cuckoo_subtract(month, day), rest) = cuckoo_subtract(month, month) AS "all days less"
FROM (SELECT cuckoo_merge_agg(f) AS month, cuckoo_merge_agg(f) FILTER (WHERE d = 17) AS day, cuckoo_merge_agg(f) FILTER (WHERE d <> 17) AS rest
      FROM (SELECT n % 30 AS d, cuckoo_agg(n % 700, 2000, 0.001) AS f FROM generate_series(1, 3000) n GROUP BY 1) x) y;
-- random filters: the same counts and, if the table did not grow, the same bytes as after merging with an empty filter
SELECT count(*) AS pairs, count(*) FILTER (WHERE capacity_before = capacity_after) > 50 AS some_as_large, count(*) FILTER (WHERE capacity_before < capacity_after) > 50 AS some_larger,
       count(*) FILTER (WHERE capacity_before = capacity_after AND back <> ordered) AS other_bytes,
       sum((SELECT count(*) FROM generate_series(1, 150) k WHERE cuckoo_count(a, k) <> cuckoo_count(back, k))) AS other_counts
FROM (SELECT a, cuckoo_merge(a, cuckoo_new(1)) AS ordered, cuckoo_subtract(cuckoo_merge(a, b), b) AS back, (cuckoo_stats(a)).capacity AS capacity_before, (cuckoo_stats(cuckoo_merge(a, b))).capacity AS capacity_after
      FROM (SELECT cuckoo_add_all(cuckoo_new(20 + seed % 60, 0.001, 2), ARRAY(SELECT abs(bloom_hash(seed * 1000 + i) % 150)::int FROM generate_series(0, seed * 7 % 90) i)) AS a,
                   cuckoo_add_all(cuckoo_new(20 + seed % 60, 0.001, 2), ARRAY(SELECT abs(bloom_hash(-seed * 1000 - i) % 150)::int FROM generate_series(0, seed * 11 % 90) i)) AS b
            FROM generate_series(1, 300) seed) x) y;
-- subtracting an empty filter of any geometry, subtracting from an empty filter, and NULL
SELECT cuckoo_subtract(f, cuckoo_new(77)) = f AS nothing_less, cuckoo_subtract(cuckoo_new(5), cuckoo_new(77)) = cuckoo_new(5) AS empty_less_empty,
       cuckoo_subtract(f, NULL) IS NULL AND cuckoo_subtract(NULL, f) IS NULL AS of_null, (cuckoo_stats(cuckoo_subtract(f, f))).key_class FROM (SELECT cuckoo_agg('x'::text, 1000) AS f) x;
-- saturated counts do not change
SELECT cuckoo_count(cuckoo_subtract(a, b), 7) AS "300 - 100", cuckoo_count(cuckoo_subtract(a, a), 7) AS "300 - 300", cuckoo_count(cuckoo_subtract(c, b), 7) AS "254 - 100", cuckoo_count(cuckoo_subtract(c, c), 7) AS "254 - 254"
FROM (SELECT cuckoo_add_all(cuckoo_new(10), array_fill(7, array[300])) AS a, cuckoo_add_all(cuckoo_new(10), array_fill(7, array[100])) AS b, cuckoo_add_all(cuckoo_new(10), array_fill(7, array[254])) AS c) x;
-- subtracting a filter that is not contained, or has another geometry or key class, is an error
SELECT outcome('SELECT cuckoo_subtract(cuckoo_agg(n, 1000), cuckoo_agg(n + 1, 1000)) FROM generate_series(1, 900) n');
SELECT outcome('SELECT cuckoo_subtract(cuckoo_agg(7, 10), cuckoo_add_all(cuckoo_new(10), array_fill(7, array[300])))');
SELECT outcome('SELECT cuckoo_subtract(cuckoo_new(10), cuckoo_agg(7, 10))');
SELECT outcome('SELECT cuckoo_subtract(cuckoo_agg(1, 1000), cuckoo_agg(1, 2001))');
SELECT outcome('SELECT cuckoo_subtract(cuckoo_agg(1, 1000), cuckoo_agg(''1''::text, 1000))');

-- window frames, GROUP BY, DISTINCT, FILTER, ORDER BY
SELECT max(cuckoo_cardinality(f)), min(cuckoo_cardinality(f)) FROM (SELECT cuckoo_agg(n) OVER (ORDER BY n ROWS 99 PRECEDING) AS f FROM generate_series(1, 500) n) x;
SELECT count(*) FILTER (WHERE cuckoo_contains(f, n)) AS found, count(*) FROM (SELECT n % 5000 AS g, cuckoo_agg(n) AS f FROM keys GROUP BY 1) x JOIN keys ON n % 5000 = g;
SELECT count(*) FILTER (WHERE cuckoo_count(f, n) = 1 + (n <= 10)::int) AS right FROM (SELECT cuckoo_agg(x) AS f FROM (SELECT generate_series(1, 1000) UNION ALL SELECT generate_series(1, 10)) y(x)) z, generate_series(1, 1000) n;

-- planner estimates for a constant filter
CREATE TABLE visits AS SELECT n AS id, n % 10000 AS customer FROM generate_series(1, 100000) n;
ANALYZE visits;
SELECT cuckoo_agg(n) AS filter FROM generate_series(1, 100) n \gset
SELECT plan_has(format('SELECT * FROM visits WHERE cuckoo_contains(%L, customer)', :'filter'), 'Filter: cuckoo_contains') AS filters,
       plan_has('SELECT count(*) FROM visits WHERE (SELECT cuckoo_agg(n) FROM generate_series(1, 100) n) @> customer', '^ *InitPlan') AS made_once;
CREATE FUNCTION estimated_rows(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::float8;
END $$;
SELECT estimated_rows(format('SELECT * FROM visits WHERE cuckoo_contains(%L, customer)', :'filter')) BETWEEN 700 AND 1600 AS function,
       estimated_rows(format('SELECT * FROM visits WHERE %L::cuckoo @> customer', :'filter')) BETWEEN 700 AND 1600 AS operator,
       estimated_rows('SELECT * FROM visits WHERE cuckoo_contains((SELECT cuckoo_agg(n) FROM generate_series(1, 100) n), customer)') > 90000 AS prefilter;
SELECT count(*) FROM visits WHERE cuckoo_contains((SELECT cuckoo_agg(n, 100, 1e-9) FROM generate_series(1, 100) n), customer);

-- as a PL/pgSQL variable (changed in place since PostgreSQL 18)
DO $$
DECLARE
  f cuckoo := cuckoo_new(100);
  g cuckoo;
BEGIN
  FOR i IN 1 .. 3000 LOOP
    f := cuckoo_add(f, i);
    IF i > 500 THEN
      f := cuckoo_delete(f, i - 500);
    END IF;
    IF i % 250 = 0 THEN
      ASSERT cuckoo_contains_all(f, ARRAY(SELECT generate_series(greatest(1, i - 499), i))), 'a key is lost';
      g := f;
      g := cuckoo_delete_all(g, ARRAY(SELECT generate_series(greatest(1, i - 499), i)));
      ASSERT cuckoo_cardinality(g) = 0 AND cuckoo_cardinality(f) BETWEEN least(i, 499) AND 501, 'not all are deleted';
    END IF;
  END LOOP;
  ASSERT cuckoo_cardinality(f) BETWEEN 498 AND 500;
  BEGIN
    f := cuckoo_delete(f, 'text');
    ASSERT false, 'a key of another class was taken';
  EXCEPTION WHEN datatype_mismatch THEN
    ASSERT cuckoo_contains_all(f, ARRAY(SELECT generate_series(2501, 3000))), 'an error left its mark';
  END;
  f := cuckoo_add_all(f, array_fill(2999, array[300]));
  ASSERT cuckoo_count(f, 2999) = 255;
  f := cuckoo_delete(f, 2999);
  ASSERT cuckoo_count(f, 2999) = 255 AND f @> 2999;
END $$;
SET statement_timeout = '1s';
DO $$
DECLARE
  f cuckoo := cuckoo_new(1000);
  first int[] := ARRAY(SELECT generate_series(1, 20000));
  more int[];
BEGIN
  f := cuckoo_add_all(f, first);
  BEGIN
    FOR i IN 1 .. 1000 LOOP
      more := ARRAY(SELECT generate_series(i * 100000, i * 100000 + 99999));
      f := cuckoo_add_all(f, more);
      f := cuckoo_delete_all(f, more);
    END LOOP;
  EXCEPTION WHEN query_canceled THEN
    ASSERT cuckoo_contains_all(f, first), 'a key is lost';
    more := ARRAY(SELECT -n FROM generate_series(1, 300000) n);
    f := cuckoo_add_all(f, more);
    ASSERT cuckoo_contains_all(f, first || more), 'a key is lost';
  END;
END $$;
RESET statement_timeout;
DROP TABLE hot, visits;
