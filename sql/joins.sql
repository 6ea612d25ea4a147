-- Filters in hash joins: the same rows and side effects as without them, no new errors, and where filters are placed

LOAD 'bloomfilter';
CREATE SCHEMA joins;
SET search_path = joins, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;

-- off by default, can be set by any user
SHOW bloomfilter.join_filter;
SELECT name, context, boot_val FROM pg_settings WHERE name LIKE 'bloomfilter.join%' AND name !~ 'batches' ORDER BY name;

-- place every possible filter
SET bloomfilter.join_filter = on;
SET bloomfilter.join_filter_min_rows = 0;
SET bloomfilter.join_filter_max_share = 1;

-- Filters in a plan.
CREATE FUNCTION filters(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  line text;
  n int := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    n := n + (line ~ 'Filter Keys:')::int;
  END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
-- Compares the rows of a query without filters, with filters a page at a time, and with filters row by row.
CREATE FUNCTION compare(query text, OUT filtered boolean, OUT n int, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
  expected text[];
  got text[];
  sorted text := format('SELECT coalesce(array_agg(x::text ORDER BY x::text COLLATE "C"), ''{}'') FROM (%s) x', query);
BEGIN
  SET LOCAL bloomfilter.join_filter = off;
  EXECUTE sorted INTO expected;
  n := cardinality(expected);
  SET LOCAL bloomfilter.join_filter = on;
  filtered := filters(query) > 0;
  EXECUTE sorted INTO got;
  result := CASE WHEN got = expected THEN 'same' ELSE 'DIFFERENT: ' || left(got::text, 100) END;
  SET LOCAL bloomfilter.join_filter_batches = off;
  EXECUTE sorted INTO got;
  IF got <> expected THEN
    result := 'DIFFERENT row by row: ' || left(got::text, 100);
  END IF;
END $$;

CREATE TABLE facts AS
  SELECT n AS id, n AS k, n::int2 AS k2, n::int8 AS k8, n::text AS t, n::text::varchar AS v, n::text::char(8) AS c, (n / 10.0)::numeric AS num,
         n / 2.0::float8 AS f8, (n / 2.0)::float4 AS f4, date '2020-01-01' + n AS d, timestamp '2020-01-01' + n * interval '1 h' AS ts,
         md5(n::text)::uuid AS u, ARRAY[n, NULL] AS a, n % 7 AS seven, repeat('x', 20) AS filler
  FROM generate_series(1, 2000) n;
CREATE TABLE dim AS SELECT * FROM facts WHERE id % 100 = 0;
INSERT INTO facts (id, seven) SELECT n, 1 FROM generate_series(2001, 2050) n;
INSERT INTO dim (id, seven) VALUES (5000, 1);
CREATE TABLE empty AS SELECT * FROM dim WHERE false;
CREATE TABLE other AS SELECT id, k, t, seven FROM facts WHERE id % 3 = 0;
CREATE INDEX ON facts (id);
VACUUM ANALYZE facts, dim, empty, other;

-- EXPLAIN shows where a filter is built and where it is probed
SELECT plan('SELECT * FROM facts JOIN dim USING (k)');
SELECT plan('SELECT * FROM facts JOIN dim USING (k)') FROM set_config('bloomfilter.join_filter_batches', 'off', false);
RESET bloomfilter.join_filter_batches;
-- two keys make one filter, two joins make two; each is probed below both joins
SELECT filters('SELECT * FROM facts JOIN dim USING (k, t)') AS two_keys, filters('SELECT * FROM facts f JOIN dim a ON f.k = a.k JOIN other b ON f.t = b.t') AS two_joins;

-- Join types: only joins that discard outer rows get filters
SELECT compare('SELECT f.id, d.id FROM facts f JOIN dim d ON f.k = d.k');
SELECT compare('SELECT f.id FROM facts f WHERE EXISTS (SELECT FROM dim d WHERE f.k = d.k)');
SELECT compare('SELECT f.id FROM facts f WHERE k IN (SELECT k FROM dim)');
SELECT compare('SELECT f.id, d.id FROM facts f RIGHT JOIN dim d ON f.k = d.k');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id, d.id FROM facts f LEFT JOIN dim d ON f.k = d.k') c) x;
SELECT compare('SELECT f.id, d.id FROM facts f FULL JOIN dim d ON f.k = d.k');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id FROM facts f WHERE NOT EXISTS (SELECT FROM dim d WHERE f.k = d.k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT d.id FROM dim d WHERE NOT EXISTS (SELECT FROM facts f WHERE f.k = d.k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT d.id FROM dim d WHERE EXISTS (SELECT FROM facts f WHERE f.k = d.k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT d.id FROM dim d LEFT JOIN facts f ON f.k = d.k') c) x;
SELECT compare('SELECT f.id FROM facts f WHERE k NOT IN (SELECT k FROM dim WHERE k IS NOT NULL)');
-- join conditions besides the hash keys
SELECT compare('SELECT f.id, d.id FROM facts f JOIN dim d ON f.k = d.k AND f.id <> d.seven');
SELECT compare('SELECT f.id, d.id FROM facts f RIGHT JOIN dim d ON f.k = d.k AND d.seven = 1');

-- Keys are hashed as the operator and the collation of the join compare them
SELECT compare('SELECT f.id, d.id FROM facts f JOIN dim d ON f.' || a || ' = ' || b) FROM
  (VALUES ('k', 'd.k2'), ('k2', 'd.k8'), ('k8', 'd.k'), ('t', 'd.t'), ('t', 'd.v'), ('v', 'd.t'), ('c', 'd.c'), ('c', 'd.t::bpchar'), ('num', 'd.num'), ('f8', 'd.f4'),
          ('f4', 'd.f8'), ('f8', 'd.f8'), ('d', 'd.d'), ('ts', 'd.ts'), ('u', 'd.u'), ('a', 'd.a'), ('k', 'd.k8 + 0'), ('t', 'lower(d.t)')) x (a, b);
-- a cast that only changes the operator
CREATE TABLE padded AS SELECT n AS id, CASE n % 2 WHEN 0 THEN n || '  ' ELSE n::text END AS t FROM generate_series(1, 100) n;
CREATE TABLE plain AS SELECT n AS id, n::text AS t, n::text::citext AS ci FROM generate_series(1, 100, 3) n;
ANALYZE padded, plain;
SELECT compare('SELECT a.id, b.id FROM padded a JOIN plain b ON a.t::bpchar = b.t::bpchar');
SELECT compare('SELECT a.id, b.id FROM plain a JOIN padded b ON a.t::bpchar = b.t::bpchar');
SELECT compare('SELECT a.id, b.id FROM padded a JOIN plain b ON a.t = b.t');
CREATE TABLE upper AS SELECT n AS id, chr(64 + n) AS t FROM generate_series(1, 26) n;
CREATE TABLE lower AS SELECT n AS id, chr(96 + n) AS t FROM generate_series(1, 26, 3) n;
ANALYZE upper, lower;
SELECT compare('SELECT a.id, b.id FROM upper a JOIN lower b ON a.t::citext = b.t::citext');
SELECT compare('SELECT a.id, b.id FROM upper a JOIN lower b ON a.t = b.t');
-- a collation under which more values are equal (an ordinary one if the server has no ICU)
DO $$
BEGIN
  CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN OTHERS THEN
  CREATE COLLATION loose FROM "C";
END $$;
SELECT (c).filtered, (c).result FROM (SELECT compare('SELECT a.id, b.id FROM upper a JOIN lower b ON a.t COLLATE loose = b.t') c) x;
SELECT (c).filtered, (c).result FROM (SELECT compare('SELECT a.id, b.id FROM upper a JOIN lower b ON a.t = b.t COLLATE loose') c) x;
SELECT (c).filtered, (c).result FROM (SELECT compare('SELECT a.id FROM upper a WHERE t COLLATE loose IN (SELECT t FROM lower b)') c) x;
-- a group of values that the join distinguishes: the filter must not discard only some of them
CREATE TABLE mixed (id int, t text COLLATE loose);
INSERT INTO mixed SELECT n, CASE n % 2 WHEN 0 THEN chr(65 + n / 2 % 26) ELSE chr(97 + n / 2 % 26) END FROM generate_series(0, 103) n;
ANALYZE mixed;
SELECT (c).result FROM (SELECT compare('SELECT a.t COLLATE "C", b.id FROM (SELECT t FROM mixed GROUP BY t) a JOIN upper b ON a.t COLLATE "C" = b.t') c) x;
SELECT (c).result FROM (SELECT compare('SELECT a.t COLLATE "C", b.id FROM (SELECT t FROM mixed GROUP BY t) a JOIN lower b ON a.t COLLATE "C" = b.t') c) x;
SELECT (c).filtered, (c).result FROM (SELECT compare('SELECT a.t COLLATE "C", b.id FROM (SELECT t FROM mixed GROUP BY t) a JOIN (SELECT * FROM lower WHERE id < 8) b ON a.t = b.t') c) x;
-- strings in every form on either side: short, compressed, out of line
CREATE TABLE strings (id int, t text, b bytea);
ALTER TABLE strings ALTER t SET STORAGE external;
INSERT INTO strings SELECT n, repeat('long ', n * 700) || n, convert_to(repeat('long ', n * 700) || n, 'UTF8') FROM generate_series(1, 6) n
  UNION ALL SELECT n, 'short ' || n, convert_to('short ' || n, 'UTF8') FROM generate_series(1, 6) n UNION ALL SELECT 7, '', '' UNION ALL SELECT 8, NULL, NULL;
CREATE TABLE others AS SELECT id, t, b, t::varchar AS v FROM strings WHERE id % 2 = 1;
SELECT count(*) FILTER (WHERE pg_column_size(t) < length(t)) AS compressed, count(*) FILTER (WHERE length(t) > 2000) AS long FROM others;
SELECT compare('SELECT a.id, b.id FROM strings a JOIN others b ON a.t = b.t');
SELECT compare('SELECT a.id, b.id FROM others a JOIN strings b ON a.t = b.t');
SELECT compare('SELECT a.id, b.id FROM strings a JOIN others b ON a.t = b.v');
SELECT compare('SELECT a.id, b.id FROM strings a JOIN others b ON a.b = b.b');
SELECT compare('SELECT a.id, b.id FROM strings a JOIN others b ON a.b = b.b AND a.t = b.v AND a.id = b.id');
SELECT compare('SELECT a.id, b.id FROM strings a JOIN others b ON a.t COLLATE "C" = b.t');
-- equal values with different representations
CREATE TABLE floats (id int, f float8, n numeric);
INSERT INTO floats VALUES (1, '0', '1.0'), (2, '-0', '1.00'), (3, 'NaN', 'NaN'), (4, '-NaN', '0'), (5, 'infinity', '-0.0'), (6, '-infinity', '1e3'), (7, NULL, NULL);
SELECT compare('SELECT a.id, b.id FROM floats a JOIN floats b ON a.f = b.f');
SELECT compare('SELECT a.id, b.id FROM floats a JOIN floats b ON a.n = b.n');
-- the smallest and the largest integers
CREATE TABLE ends AS SELECT n AS id, CASE n WHEN 1 THEN -9223372036854775808 WHEN 2 THEN 9223372036854775807 WHEN 3 THEN 0 WHEN 4 THEN -1 END::int8 AS k FROM generate_series(1, 5) n;
SELECT compare('SELECT a.id, b.id FROM ends a JOIN ends b ON a.k = b.k');
SELECT compare('SELECT a.id, b.id FROM facts a JOIN ends b ON a.k = b.k');
SELECT compare('SELECT a.id, b.id FROM ends a JOIN (SELECT * FROM ends WHERE id = 2) b ON a.k = b.k');
-- a type with a 32-bit hash only: alone, in an array and in a row
CREATE TYPE little;
SET client_min_messages = warning;
CREATE FUNCTION little_in(cstring) RETURNS little AS 'int4in' LANGUAGE internal STRICT IMMUTABLE;
CREATE FUNCTION little_out(little) RETURNS cstring AS 'int4out' LANGUAGE internal STRICT IMMUTABLE;
RESET client_min_messages;
CREATE TYPE little (INPUT = little_in, OUTPUT = little_out, LIKE = int4);
CREATE FUNCTION little_eq(little, little) RETURNS bool AS 'int4eq' LANGUAGE internal STRICT IMMUTABLE;
CREATE FUNCTION little_hash(little) RETURNS int AS 'hashint4' LANGUAGE internal STRICT IMMUTABLE;
CREATE OPERATOR = (LEFTARG = little, RIGHTARG = little, PROCEDURE = little_eq, HASHES);
CREATE OPERATOR CLASS little_ops DEFAULT FOR TYPE little USING hash AS OPERATOR 1 =, FUNCTION 1 little_hash(little);
CREATE CAST (int AS little) WITHOUT FUNCTION;
CREATE TYPE little_row AS (a little);
CREATE TABLE littles AS SELECT n AS id, n::little AS k, ARRAY[n::little] AS a, ROW(n::little)::little_row AS r FROM generate_series(1, 1000) n;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT a.id, b.id FROM littles a JOIN (SELECT * FROM littles WHERE id % 100 = 0) b USING (' || key || ')') c FROM unnest('{k,a,r}'::text[]) key) x;

-- Operators that can match NULLs get no filter
CREATE FUNCTION nully_eq(little, little) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1::text::int IS NOT DISTINCT FROM $2::text::int';
CREATE OPERATOR === (LEFTARG = little, RIGHTARG = little, PROCEDURE = nully_eq, HASHES);
CREATE OPERATOR CLASS nully_ops FOR TYPE little USING hash AS OPERATOR 1 ===, FUNCTION 1 little_hash(little);
SELECT filters('SELECT * FROM littles a JOIN littles b ON a.k === b.k');
SELECT compare('SELECT a.id, b.id FROM facts a JOIN dim b ON a.k IS NOT DISTINCT FROM b.k');

-- The outer key must be a column: an expression could raise an error
SELECT compare('SELECT f.id FROM facts f JOIN dim d ON 100 / (f.k + 1) = d.k');
SELECT compare('SELECT f.id FROM facts f JOIN dim d ON f.k + 1 = d.k');
-- system columns
CREATE TABLE places AS SELECT ctid AS place, tableoid AS in_table FROM facts WHERE id % 50 = 0;
SELECT compare('SELECT f.id FROM facts f JOIN places p ON f.ctid = p.place');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id FROM facts f JOIN (SELECT DISTINCT in_table FROM places) p ON f.tableoid = p.in_table') c) x;
SELECT compare('SELECT f.id FROM other f JOIN (SELECT in_table FROM places LIMIT 1) p ON f.tableoid = p.in_table');

-- Filters pass down through joins
SET join_collapse_limit = 1;
SELECT compare('SELECT f.id, o.id, d.id FROM facts f JOIN other o ON f.t = o.t JOIN dim d ON f.k = d.k');
SELECT compare('SELECT f.id, o.id, d.id FROM facts f LEFT JOIN other o ON f.t = o.t JOIN dim d ON f.k = d.k');
SELECT compare('SELECT f.id, o.id, d.id FROM facts f LEFT JOIN other o ON f.t = o.t JOIN dim d ON o.k = d.k');
SELECT compare('SELECT f.id, o.id, d.id FROM facts f LEFT JOIN other o ON f.t = o.t LEFT JOIN dim d ON o.k = d.k');
SELECT compare('SELECT f.id, o.id, d.id FROM facts f FULL JOIN other o ON f.t = o.t JOIN dim d ON f.k = d.k');
SELECT compare('SELECT f.id, o.id, d.id FROM (facts f FULL JOIN other o ON f.t = o.t) RIGHT JOIN dim d ON coalesce(f.k, o.k) = d.k');
SELECT compare('SELECT f.id, d.id FROM (SELECT * FROM facts f WHERE NOT EXISTS (SELECT FROM other o WHERE f.t = o.t)) f JOIN dim d ON f.k = d.k');
SELECT compare('SELECT f.id, d.id FROM (SELECT * FROM facts f WHERE EXISTS (SELECT FROM other o WHERE f.t = o.t)) f JOIN dim d ON f.k = d.k');
-- not through the inner side of an ANTI or LEFT join: missing rows there would add rows to the result
SELECT compare('SELECT f.id, o.id FROM facts f JOIN (SELECT a.id, a.k FROM other a WHERE NOT EXISTS (SELECT FROM (SELECT x.k FROM facts x JOIN dim y ON x.k = y.k) z WHERE z.k = a.k)) o ON f.k = o.k');
SELECT compare('SELECT a.id, m.id, d.id FROM other a LEFT JOIN (SELECT f.id, f.k FROM facts f JOIN dim d ON f.k = d.k) m ON a.k = m.k LEFT JOIN dim d ON m.k = d.k');
RESET join_collapse_limit;
SET enable_nestloop = on;
SET enable_hashjoin = on;
SELECT compare('SELECT f.id, s.n, d.id FROM facts f CROSS JOIN (VALUES (1), (2)) s (n) JOIN dim d ON f.k = d.k');
SET enable_nestloop = off;

-- Filters stop where the number of rows matters
SELECT compare('SELECT x.id FROM (SELECT * FROM facts ORDER BY id LIMIT 500) x JOIN dim d USING (k)');
SELECT compare('SELECT x.id FROM (SELECT * FROM facts ORDER BY id OFFSET 500) x JOIN dim d USING (k)');
SELECT compare('SELECT x.n FROM (SELECT seven AS k, count(*) AS n FROM facts GROUP BY seven) x JOIN dim d USING (k)');
SELECT compare('SELECT x.n FROM (SELECT k, count(*) AS n FROM facts GROUP BY GROUPING SETS ((k), ())) x RIGHT JOIN dim d USING (k)');
SELECT compare('SELECT x.n, d.id FROM (SELECT k, row_number() OVER (ORDER BY id) AS n FROM facts) x JOIN dim d USING (k)');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT x.k FROM (SELECT DISTINCT k, t FROM facts) x JOIN dim d USING (k)') c) x;
SELECT compare('SELECT x.k FROM (SELECT DISTINCT ON (seven) seven, k FROM facts ORDER BY seven, id DESC) x JOIN dim d USING (k)');
SELECT compare('SELECT x.k FROM (SELECT k FROM facts EXCEPT ALL SELECT k FROM other) x JOIN dim d USING (k)');
SELECT compare('SELECT x.k FROM (SELECT k FROM facts INTERSECT SELECT k FROM other) x JOIN dim d USING (k)');
SELECT compare('SELECT x.k, n FROM (SELECT k, generate_series(1, 2) AS n FROM facts) x JOIN dim d USING (k)');
SELECT compare('WITH x AS MATERIALIZED (SELECT * FROM facts) SELECT a.id FROM x a JOIN dim d USING (k) UNION ALL SELECT -count(*) FROM x');
SELECT compare('WITH RECURSIVE r (k) AS (SELECT 1 UNION ALL SELECT f.k + 1 FROM r JOIN facts f ON f.k = r.k WHERE f.k < 50) SELECT r.k, f.id FROM r JOIN facts f ON f.k = r.k');
SELECT compare('WITH RECURSIVE r (k) AS (SELECT k FROM dim UNION SELECT r.k - 1 FROM r JOIN facts f ON f.k = r.k JOIN other o ON o.k = f.k) SELECT * FROM r');
-- filters pass through nodes that pass rows on one by one
SELECT compare('SELECT x.id FROM (SELECT id, k FROM facts UNION ALL SELECT id, k FROM other UNION ALL SELECT 1, 100) x JOIN dim d USING (k)');
SELECT compare('SELECT x.id FROM (SELECT id, k FROM facts WHERE seven = 3 ORDER BY t) x JOIN dim d USING (k)');
SELECT compare('SELECT x.id FROM (SELECT id, k FROM facts WHERE seven = 3 OFFSET 0) x JOIN dim d USING (k)');

-- groups of the key are discarded as a whole, below the aggregation, if all grouping sets have the key
CREATE FUNCTION below_groups(query text) RETURNS boolean LANGUAGE sql AS
  $$SELECT regexp_replace(string_agg(p, E'\n'), 'Hash *\n.*', '') ~ '(Aggregate|Group|Unique).*Runtime Filter (Scan|Probe)' FROM plan(query) p$$;
SELECT below, compare(query), query FROM (SELECT format('SELECT x.*, d.id FROM (%s) x JOIN dim d USING (k)', x) AS query FROM (VALUES
  ('SELECT k, count(*) AS n FROM facts GROUP BY k'),
  ('SELECT k FROM facts GROUP BY k'),
  ('SELECT k, count(*) AS n FROM facts GROUP BY k HAVING count(*) > 1 OR k > 500'),
  ('SELECT k, seven FROM facts GROUP BY k, seven'),
  ('SELECT k8 AS k FROM facts GROUP BY k8'),
  ('SELECT k, count(DISTINCT seven) AS n, array_agg(id ORDER BY id) AS a FROM facts GROUP BY k'),
  ('SELECT k, seven FROM facts GROUP BY k, ROLLUP (seven)'),
  ('SELECT k, seven, t FROM facts GROUP BY GROUPING SETS ((k, seven), (k, t), (k))'),
  ('SELECT k, seven FROM facts GROUP BY GROUPING SETS ((k, seven), (seven))'),
  ('SELECT k, seven FROM facts GROUP BY CUBE (k, seven)'),
  ('SELECT max(k) AS k, seven FROM facts GROUP BY seven'),
  ('SELECT k FROM (SELECT k, seven FROM facts GROUP BY k, seven) y GROUP BY k'),
  ('SELECT DISTINCT k, seven FROM facts'),
  ('SELECT DISTINCT ON (k) k, id FROM facts ORDER BY k, id'),
  ('SELECT DISTINCT ON (seven) seven, k FROM facts ORDER BY seven, k')) v (x)) q, below_groups(query) below;
SET enable_hashagg = off;
SELECT below, compare(query), query FROM (SELECT format('SELECT x.*, d.id FROM (%s) x JOIN dim d USING (k)', x) AS query FROM (VALUES
  ('SELECT k, count(*) AS n FROM facts GROUP BY k'), ('SELECT k FROM facts GROUP BY k'), ('SELECT DISTINCT k, seven FROM facts'), ('SELECT DISTINCT seven, k FROM facts'),
  ('SELECT k, seven, t FROM facts GROUP BY GROUPING SETS ((k, seven), (k, t), (k))'),
  ('SELECT k, seven, t FROM facts GROUP BY GROUPING SETS ((k, seven), (t))')) v (x)) q, below_groups(query) below;
RESET enable_hashagg;
-- not where an incomplete group could show, because an expression computed from it could fail.  The filter is
-- switched off during the scan, or starts during the scan, or does not apply to all children of an Append
CREATE TABLE pairs AS SELECT i % 10000 AS k, 1 AS v FROM generate_series(0, 19999) i;
CREATE TABLE neighbours AS SELECT i / 2 AS k, 1 AS v FROM generate_series(0, 19999) i;
CREATE TABLE singles AS SELECT i AS k, 1 AS v FROM generate_series(0, 9999) i;
CREATE TABLE singles_again AS TABLE singles;
CREATE INDEX ON neighbours (k);
ANALYZE pairs, neighbours, singles, singles_again;
SELECT (compare('SELECT sum(g.s) FROM singles JOIN (SELECT k, sum(v) / (count(*) - 1) AS s FROM pairs GROUP BY k) g USING (k) WHERE singles.k < 3900')).result;
SET enable_hashagg = off;
SET enable_sort = off;
SELECT (compare('SELECT sum(g.s) FROM singles JOIN (SELECT k, sum(v) / (count(*) - 1) AS s FROM neighbours GROUP BY k) g USING (k) WHERE singles.k % 10 = 0')).result;
RESET enable_hashagg;
RESET enable_sort;
SELECT (compare('SELECT sum(g.s) FROM singles JOIN (SELECT k, sum(v) / (count(*) - 1) AS s FROM (SELECT k, v FROM singles UNION ALL SELECT k + 0, v FROM singles_again) u GROUP BY k) g USING (k) WHERE singles.k < 100')).result;
SELECT (compare('SELECT sum(1 / g.v) FROM singles JOIN (SELECT DISTINCT ON (k) k, v FROM pairs ORDER BY k, v) g USING (k) WHERE singles.k < 3900')).result;

-- few groups of many rows: join_filter_min_rows applies to the rows
SET bloomfilter.join_filter_min_rows = 2040;
SELECT filters('SELECT x.k FROM (SELECT seven AS k FROM facts GROUP BY seven) x JOIN (SELECT DISTINCT seven AS k FROM dim WHERE id = 100) d USING (k)') AS of_groups,
       filters('SELECT x.k FROM (SELECT seven AS k FROM facts WHERE id < 2000 GROUP BY seven) x JOIN (SELECT DISTINCT seven AS k FROM dim WHERE id = 100) d USING (k)') AS of_too_few;
-- few rows that a join below keeps: join_filter_min_rows applies to the rows of the scan, as it does to the rows of a join that multiplies them
SET join_collapse_limit = 1;
SELECT filters('SELECT f.id FROM (facts f JOIN other o ON f.id = o.id AND o.seven = 1) JOIN (SELECT k FROM dim WHERE id < 300) d ON f.k = d.k') AS of_scan,
       filters('SELECT o.id FROM (other o JOIN facts f ON f.seven = o.seven) JOIN (SELECT k FROM dim WHERE id < 300) d ON o.k = d.k') AS of_join,
       filters('SELECT o.id FROM (other o JOIN facts f ON f.id = o.id) JOIN (SELECT k FROM dim WHERE id < 300) d ON o.k = d.k') AS one_of_two;
RESET join_collapse_limit;
SET bloomfilter.join_filter_min_rows = 0;

-- Volatile functions are called as often as without filters
CREATE SEQUENCE calls;
CREATE FUNCTION calls_of(query text, OUT without bigint, OUT with_filters bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setval('joins.calls', 1);
  SET LOCAL bloomfilter.join_filter = off;
  EXECUTE format('SELECT count(x::text) FROM (%s) x', query);
  without := nextval('joins.calls') - 2;
  PERFORM setval('joins.calls', 1);
  SET LOCAL bloomfilter.join_filter = on;
  EXECUTE format('SELECT count(x::text) FROM (%s) x', query);
  with_filters := nextval('joins.calls') - 2;
END $$;
SELECT calls_of('SELECT x.id, x.c FROM (SELECT id, k, nextval(''calls'') AS c FROM facts) x JOIN dim d USING (k)');
SELECT calls_of('SELECT x.id FROM (SELECT id, k FROM facts WHERE nextval(''calls'') > 0) x JOIN dim d USING (k)');
SELECT calls_of('SELECT x.id FROM facts x JOIN (SELECT k, nextval(''calls'') AS c FROM dim) d USING (k)');
SELECT calls_of('SELECT x.id FROM (SELECT id, k, (SELECT nextval(''calls'') + facts.k) AS c FROM facts) x JOIN dim d USING (k)');
-- a subquery that is computed once, before the first row that needs it
SET join_collapse_limit = 1;
SELECT calls_of('SELECT f.id FROM (facts f JOIN facts g ON f.id = g.id) JOIN (SELECT k + 1000000 AS k FROM dim OFFSET 0) d ON f.k = d.k WHERE f.id + g.k > (SELECT nextval(''calls'') * 0)');
RESET join_collapse_limit;
-- an aggregate with a volatile transition function
CREATE FUNCTION count_calls(n bigint, value int) RETURNS bigint LANGUAGE sql VOLATILE AS $$SELECT nextval('joins.calls')$$;
CREATE AGGREGATE counting(int) (SFUNC = count_calls, STYPE = bigint, INITCOND = '0');
SELECT calls_of('SELECT x.k, x.n FROM (SELECT k, counting(id) AS n FROM facts GROUP BY k) x JOIN dim d USING (k)');
SELECT calls_of('SELECT x.k, x.n FROM (SELECT k, count(*) AS n FROM facts GROUP BY k HAVING nextval(''calls'') > 0) x JOIN dim d USING (k)');
-- also in nodes beside the path of the filter
SET join_collapse_limit = 1;
SET enable_nestloop = on;
SET enable_memoize = off;
SELECT calls_of('SELECT f.id, l.c FROM facts f CROSS JOIN LATERAL (SELECT nextval(''calls'') + f.seven * 0 AS c OFFSET 0) l JOIN dim d ON f.k = d.k');
SELECT calls_of('SELECT f.id, o.c FROM facts f JOIN (SELECT k, nextval(''calls'') AS c FROM other OFFSET 0) o ON f.k = o.k JOIN (SELECT k + 1000000 AS k FROM dim OFFSET 0) d ON f.k = d.k');
RESET enable_memoize;
SET enable_nestloop = off;
-- also in a common table expression, which is executed as far as it is read; it returns the same rows whenever it is read
SELECT calls_of('WITH c AS MATERIALIZED (SELECT k, nextval(''calls'') AS c FROM other) SELECT f.id, c.c FROM facts f JOIN c ON f.k = c.k JOIN (SELECT k + 1000000 AS k FROM dim OFFSET 0) d ON f.k = d.k');
SELECT calls_of('WITH b AS MATERIALIZED (SELECT k, nextval(''calls'') AS c FROM other), c AS MATERIALIZED (SELECT k, c FROM b)
  SELECT f.id FROM facts f JOIN c ON f.k = c.k JOIN (SELECT k + 1000000 AS k FROM dim OFFSET 0) d ON f.k = d.k');
SELECT filters('WITH c AS MATERIALIZED (SELECT k, nextval(''calls'') AS c FROM dim) SELECT f.id FROM facts f JOIN c ON f.k = c.k') AS of_a_cte;
RESET join_collapse_limit;

-- Rows of the inner side that depend on the order in which a table is read can be others after a rescan.  Rows that a node
-- below keeps for the rescan, here the hash table of "other", have been tested against the old filter.
SET join_collapse_limit = 1;
SELECT inner_side, filters(format('SELECT f.id FROM (facts f JOIN other o ON f.id = o.id) JOIN (%s) d ON o.k = d.k', inner_side))
FROM (VALUES ('SELECT k FROM dim'), ('SELECT k FROM dim LIMIT 10'), ('SELECT DISTINCT ON (seven) k, seven FROM dim'),
  ('SELECT max(k) AS k FROM dim GROUP BY seven'), ('SELECT sum(f8)::int AS k FROM dim GROUP BY seven'), ('SELECT (array_agg(k))[1] AS k FROM dim GROUP BY seven')) x (inner_side);
RESET join_collapse_limit;
SELECT filters('SELECT f.id FROM facts f JOIN (SELECT k FROM dim LIMIT 10) d ON f.k = d.k') AS of_a_limit;
-- the same with groups in a hash table, and with sorted rows
SELECT filters('SELECT x.k FROM (SELECT k FROM facts GROUP BY k) x JOIN (SELECT k FROM dim) d USING (k)') AS hashed,
       filters('SELECT x.k FROM (SELECT k FROM facts GROUP BY k) x JOIN (SELECT k FROM dim LIMIT 10) d USING (k)') AS hashed_limit;
SET enable_hashagg = off;
SELECT filters('SELECT x.k FROM (SELECT k FROM facts GROUP BY k) x JOIN (SELECT k FROM dim) d USING (k)') AS sorted,
       filters('SELECT x.k FROM (SELECT k FROM facts GROUP BY k) x JOIN (SELECT k FROM dim LIMIT 10) d USING (k)') AS sorted_limit;
RESET enable_hashagg;

-- Hash functions that are not written in C can raise errors.  A filter would call them for rows that conditions of the scan discard.
CREATE TYPE number AS (n int);
CREATE FUNCTION number_equal(number, number) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS $$BEGIN RETURN ($1).n = ($2).n; END$$;
CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF ($1).n < 0 THEN RAISE 'negative'; END IF;
  RETURN hashint4(($1).n);
END$$;
CREATE OPERATOR === (LEFTARG = number, RIGHTARG = number, FUNCTION = number_equal, COMMUTATOR = ===, HASHES, JOIN = eqjoinsel);
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING hash AS OPERATOR 1 ===, FUNCTION 1 number_hash(number);
CREATE TABLE numbers AS SELECT ROW(CASE WHEN n % 10 = 0 THEN -n ELSE n END)::number AS k, n % 10 <> 0 AS good FROM generate_series(1, 500) n;
CREATE TABLE some_numbers AS SELECT ROW(n)::number AS k FROM generate_series(1, 20) n;
ANALYZE numbers, some_numbers;
SELECT compare('SELECT n.k FROM numbers n JOIN some_numbers s ON n.k === s.k WHERE n.good');
-- also as elements of arrays and rows
CREATE TYPE numbered AS (n number);
CREATE TABLE nested AS SELECT ARRAY[k] AS a, ROW(k)::numbered AS r, good FROM numbers;
CREATE TABLE some_nested AS SELECT ARRAY[k] AS a, ROW(k)::numbered AS r FROM some_numbers;
ANALYZE nested, some_nested;
SELECT compare('SELECT n.a FROM nested n JOIN some_nested s ON n.a = s.a WHERE n.good');
SELECT compare('SELECT n.r FROM nested n JOIN some_nested s ON n.r = s.r WHERE n.good');

-- Keys are evaluated as far as the join does, which stops at the first NULL
CREATE TABLE divisors AS SELECT * FROM (VALUES (5, 2), (NULL, 0)) v (k, divisor);
ANALYZE divisors;
SELECT * FROM compare('SELECT f.id FROM facts f JOIN divisors d ON f.id = d.k AND f.k = 10 / d.divisor');
SELECT * FROM compare('SELECT f.id FROM facts f JOIN divisors d ON f.id + 0 = d.k AND f.k = 10 / d.divisor');
SELECT * FROM compare('SELECT f.id FROM facts f JOIN divisors d ON f.k = 10 / nullif(d.divisor, 0) AND f.id + 0 = d.k');

-- Row-level security is applied first, and nothing is revealed about hidden rows
CREATE TABLE secrets AS SELECT n AS id, n AS k, n % 10 = 0 AS open FROM generate_series(1, 1000) n;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION may_see(open boolean, id int) RETURNS boolean LANGUAGE plpgsql STABLE COST 1000 AS $$
BEGIN
  RETURN open;
END $$;
CREATE POLICY p ON secrets USING (may_see(open, id));
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM secrets WHERE id <> 778;
CREATE FUNCTION by_function() RETURNS SETOF secrets LANGUAGE sql STABLE AS 'SELECT * FROM secrets';
CREATE TABLE hidden AS SELECT 777 AS k;
CREATE TABLE hidden_by_view AS SELECT 778 AS k;
CREATE TABLE missing AS SELECT 5000 AS k;
CREATE ROLE regress_joins;
GRANT USAGE ON SCHEMA joins TO regress_joins;
GRANT SELECT ON ALL TABLES IN SCHEMA joins TO regress_joins;
ANALYZE secrets, hidden, hidden_by_view, missing;
CREATE FUNCTION removed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ 'Removed by' THEN
      RETURN NEXT trim(line);
    END IF;
  END LOOP;
END $$;
SET ROLE regress_joins;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.id, d.k FROM secrets s JOIN dim d USING (k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.id, d.k FROM barrier s JOIN dim d USING (k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.id, d.k FROM by_function() s JOIN dim d USING (k)') c) x;
-- keys 777 and 778 are hidden, key 5000 does not exist
SELECT via, (SELECT array_agg(x) FROM removed(format('SELECT FROM %s s JOIN %s USING (k)', via, hidden)) x) =
            (SELECT array_agg(x) FROM removed(format('SELECT FROM %s s JOIN missing USING (k)', via)) x) AS as_if_it_did_not_exist
FROM (VALUES ('secrets', 'hidden'), ('barrier', 'hidden_by_view'), ('by_function()', 'hidden')) x (via, hidden);
RESET ROLE;
-- EXECUTE privilege on the extension's functions is not required
BEGIN;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
SET LOCAL ROLE regress_joins;
SELECT count(*) FROM facts JOIN dim USING (k);
ROLLBACK;

-- An inner side that depends on outer parameters changes between two reads
SELECT compare('SELECT o.id, (SELECT sum(f.id) FROM facts f JOIN dim d ON f.k = d.k WHERE d.seven = o.seven) FROM dim o');
SELECT compare('SELECT o.id, (SELECT sum(f.id) FROM facts f JOIN dim d ON f.k = d.k WHERE f.seven = o.seven) FROM dim o');
SELECT compare('SELECT o.id, (SELECT sum(f.id) FROM facts f JOIN dim d ON f.k = d.k + o.seven) FROM dim o');
SELECT compare('SELECT f.id FROM facts f JOIN dim d ON f.k = d.k WHERE d.seven = (SELECT min(seven) FROM other)');
SELECT compare('SELECT f.id FROM facts f JOIN (SELECT * FROM dim WHERE k > (SELECT avg(k) FROM dim)) d ON f.k = d.k');
SET enable_nestloop = on;
SET enable_material = off;
SET enable_memoize = off;
SET join_collapse_limit = 1;
SELECT compare('SELECT o.id, l.id FROM dim o CROSS JOIN LATERAL (SELECT f.id FROM facts f JOIN other d ON f.k = d.k WHERE d.seven = o.seven AND f.id < 50 OFFSET 0) l');
-- a hash key that depends on outer parameters: the first outer row would be tested against the old filter
CREATE TABLE steps AS SELECT n * 100 AS b FROM generate_series(4, 0, -1) n;
CREATE TABLE pair AS SELECT n AS z FROM generate_series(1, 2) n;
CREATE TABLE ones AS SELECT k, 1 AS z FROM facts WHERE k IS NOT NULL;
CREATE TABLE three AS SELECT n AS k FROM generate_series(1, 3) n;
ANALYZE steps, pair, ones, three;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.b, m.* FROM steps s CROSS JOIN LATERAL (SELECT p.z, l.k FROM pair p CROSS JOIN LATERAL
  (SELECT o.k FROM ones o JOIN three t ON o.k = t.k + s.b WHERE o.z = p.z OFFSET 0) l OFFSET 0) m') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.b, m.* FROM steps s CROSS JOIN LATERAL (SELECT p.z, l.k FROM pair p CROSS JOIN LATERAL
  (SELECT o.k FROM ones o JOIN three t ON o.k = (SELECT t.k + s.b) WHERE o.z = p.z OFFSET 0) l OFFSET 0) m') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT s.b, m.* FROM steps s CROSS JOIN LATERAL (SELECT p.z, l.k FROM pair p CROSS JOIN LATERAL
  (SELECT o.k FROM ones o JOIN (SELECT k + s.b AS k FROM three) t ON o.k = t.k WHERE o.z = p.z OFFSET 0) l OFFSET 0) m') c) x;
-- a hash join that is rescanned for each row of a nested loop
SELECT compare('SELECT p.z, x.id FROM pair p JOIN (SELECT f.id, f.k FROM facts f JOIN dim d ON f.k = d.k OFFSET 0) x ON x.k > p.z * 900');
SET work_mem = '64kB';
SELECT compare('SELECT p.z, x.id FROM pair p JOIN (SELECT f.id, f.k FROM facts f JOIN facts d ON f.k = d.k OFFSET 0) x ON x.k > p.z * 900');
RESET work_mem;
RESET join_collapse_limit;
RESET enable_memoize;
RESET enable_material;
SET enable_nestloop = off;

-- Statements that lock or change rows get filters, too: see joins_modify.sql
CREATE TABLE target (id int PRIMARY KEY, k int);
SELECT filters('INSERT INTO target SELECT f.id, f.k FROM facts f JOIN dim d USING (k)') > 0 AS insert,
       filters('INSERT INTO target SELECT f.id, f.k FROM facts f JOIN dim d USING (k) ON CONFLICT (id) DO UPDATE SET k = excluded.k') > 0 AS upsert,
       filters('CREATE TABLE made AS SELECT f.id, f.k FROM facts f JOIN dim d USING (k)') > 0 AS create_as,
       filters('SELECT f.id FROM facts f JOIN dim d USING (k) FOR UPDATE') AS for_update,
       filters('SELECT f.id FROM facts f JOIN dim d USING (k) FOR SHARE OF d') AS for_share,
       filters('UPDATE target SET k = f.k FROM facts f JOIN dim d USING (k) WHERE f.id = target.id') AS update,
       filters('DELETE FROM target USING facts f JOIN dim d USING (k) WHERE f.id = target.id') AS delete,
       filters('MERGE INTO target USING (SELECT f.id, f.k FROM facts f JOIN dim d USING (k)) s ON s.id = target.id WHEN MATCHED THEN UPDATE SET k = s.k') AS merge,
       filters('WITH w AS (DELETE FROM target RETURNING *) SELECT f.id FROM facts f JOIN dim d USING (k)') AS modifying;
INSERT INTO target SELECT f.id, f.k FROM facts f JOIN dim d USING (k);
INSERT INTO target SELECT f.id, -f.k FROM facts f JOIN dim d USING (k) ON CONFLICT (id) DO UPDATE SET k = excluded.k;
CREATE TABLE made AS SELECT f.id, f.k FROM facts f JOIN dim d USING (k);
CREATE MATERIALIZED VIEW seen AS SELECT f.id, f.k FROM facts f JOIN dim d USING (k);
SELECT (SELECT sum(k) FROM target), (SELECT sum(k) FROM made), (SELECT sum(k) FROM seen);
WITH new AS (INSERT INTO target SELECT f.id + 10000, f.k FROM facts f JOIN dim d USING (k) RETURNING id) SELECT count(*) FROM new;

-- Prepared statements, cursors, and parallel plans that are stopped early or rescanned
PREPARE by_seven(int) AS SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k) WHERE d.seven = $1 OR $1 IS NULL;
SET plan_cache_mode = force_generic_plan;
SELECT filters('EXECUTE by_seven(1)') > 0 AS filtered;
EXECUTE by_seven(1);
EXECUTE by_seven(NULL);
EXECUTE by_seven(-1);
EXECUTE by_seven(2);
EXECUTE by_seven(NULL);
RESET plan_cache_mode;
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT f.id FROM facts f JOIN dim d USING (k) ORDER BY f.id;
FETCH 3 FROM back;
FETCH BACKWARD 2 FROM back;
FETCH LAST FROM back;
MOVE ABSOLUTE 0 FROM back;
FETCH 2 FROM back;
DECLARE unsorted SCROLL CURSOR FOR SELECT f.id FROM facts f JOIN dim d USING (k);
FETCH 3 FROM unsorted;
FETCH BACKWARD 2 FROM unsorted;
MOVE BACKWARD ALL FROM unsorted;
FETCH 2 FROM unsorted;
DECLARE onward NO SCROLL CURSOR WITH HOLD FOR SELECT f.id FROM facts f JOIN dim d USING (k);
FETCH 2 FROM onward;
COMMIT;
FETCH 2 FROM onward;
MOVE FORWARD ALL FROM onward;
CLOSE onward;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k);
SET enable_parallel_hash = off;
SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k);
SET parallel_leader_participation = off;
SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k);
SET enable_parallel_hash = on;
SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k);
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT count(*), sum(f.id) FROM facts f JOIN dim d USING (k);
RESET max_parallel_workers;
SELECT count(*) FROM (SELECT f.id FROM facts f JOIN dim d USING (k) LIMIT 5) x;
BEGIN;
DECLARE early NO SCROLL CURSOR FOR SELECT d.k / 100 AS k FROM facts f JOIN dim d USING (k) ORDER BY 1;
FETCH 2 FROM early;
FETCH 2 FROM early;
COMMIT;
-- rescans under Gather
SET enable_nestloop = on;
SET enable_material = off;
SELECT z, (SELECT count(*) FROM facts f JOIN dim d USING (k) WHERE f.id > z) FROM pair;
SELECT p.z, count(*), sum(x.id) FROM pair p CROSS JOIN LATERAL (SELECT f.id FROM facts f JOIN dim d USING (k) WHERE f.id > p.z * 900 OFFSET 0) x GROUP BY 1 ORDER BY 1;
SELECT p.z, count(*), sum(x.id) FROM pair p LEFT JOIN (SELECT f.id FROM facts f JOIN dim d USING (k) OFFSET 0) x ON x.id > p.z * 900 GROUP BY 1 ORDER BY 1;
-- rescans by workers alone, which are started again each time; with several batches, which read all outer rows first; stopped early
SET parallel_leader_participation = off;
SELECT p.z, count(*), sum(x.id) FROM pair p LEFT JOIN (SELECT f.id FROM facts f JOIN dim d USING (k) OFFSET 0) x ON x.id > p.z * 900 GROUP BY 1 ORDER BY 1;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT p.z, count(*), sum(x.id) FROM pair p LEFT JOIN (SELECT f.id FROM facts f JOIN other d USING (t) OFFSET 0) x ON x.id > p.z * 900 GROUP BY 1 ORDER BY 1;
RESET parallel_leader_participation;
SELECT p.z, count(*), sum(x.id) FROM pair p LEFT JOIN (SELECT f.id FROM facts f JOIN other d USING (t) OFFSET 0) x ON x.id > p.z * 900 GROUP BY 1 ORDER BY 1;
SELECT z, (SELECT count(*) FROM (SELECT f.id FROM facts f JOIN other d USING (t) LIMIT z * 3) x) FROM pair;
RESET hash_mem_multiplier;
RESET work_mem;
-- a function that changes join_filter_memory between rescans: shared filters keep their size
CREATE FUNCTION with_other_memory(n int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET bloomfilter.join_filter_memory = '64MB' AS 'BEGIN RETURN n; END';
SELECT p.z, with_other_memory(count(*)::int), sum(x.id) FROM pair p LEFT JOIN (SELECT f.id FROM facts f JOIN dim d USING (k) OFFSET 0) x ON x.id > with_other_memory(p.z) * 900 GROUP BY 1 ORDER BY 1;
RESET enable_material;
SET enable_nestloop = off;
-- Each process draws its own sample
SELECT count(*) FROM facts f JOIN other o ON f.k = o.k JOIN (SELECT * FROM dim TABLESAMPLE BERNOULLI (100)) d ON f.k = d.k;
SET max_parallel_workers_per_gather = 0;

-- EXPLAIN ANALYZE of filters, also if the leader has none, in text and in JSON
CREATE FUNCTION kinds(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ 'Filter Kind' THEN
      RETURN NEXT replace(trim(line), 'of workers', 'bitmap');
    END IF;
  END LOOP;
END $$;
CREATE FUNCTION nodes(plan jsonb) RETURNS SETOF jsonb LANGUAGE sql AS
  $$SELECT plan UNION ALL SELECT n FROM jsonb_array_elements(plan->'Plans') p, nodes(p) n$$;
CREATE FUNCTION kinds_json(query text) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
  RETURN QUERY SELECT jsonb_build_object('Kind', replace(n->>'Filter Kind', 'of workers', 'bitmap'), 'Keys', n->'Filter Keys Collected', 'Memory', n->'Filter Memory', 'Off', n->'Filters Switched Off')
    FROM nodes((plan->0->'Plan')::jsonb) n WHERE n ? 'Filter Keys';
  -- rows returned and rows removed add up to all rows
  RETURN QUERY SELECT to_jsonb((n->>'Actual Rows')::float + (n->>'Rows Removed by Runtime Filter')::float) FROM nodes((plan->0->'Plan')::jsonb) n
    WHERE n ? 'Rows Removed by Runtime Filter' AND current_setting('max_parallel_workers_per_gather') = '0';
END $$;
CREATE TABLE all_pass AS SELECT n AS id, n::int8 * 1000003 AS k FROM generate_series(1, 20000) n;
ANALYZE all_pass;
CREATE FUNCTION all_kinds() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT kinds('SELECT FROM facts f JOIN dim d USING (k)') UNION ALL SELECT kinds_json('SELECT FROM facts f JOIN dim d USING (k)')::text$$;
SET max_parallel_workers_per_gather = 2;
SELECT all_kinds();
SET parallel_leader_participation = off;
SELECT all_kinds();
SET enable_parallel_hash = off;
SELECT all_kinds();
RESET parallel_leader_participation;
SELECT all_kinds();
SET enable_parallel_hash = on;
SET max_parallel_workers_per_gather = 0;
SELECT all_kinds();
SELECT kinds('SELECT FROM facts f JOIN empty d USING (k)');
SELECT kinds('SELECT FROM facts f JOIN dim d USING (t)');
SELECT kinds('SELECT FROM all_pass a JOIN all_pass b USING (k)');
SELECT kinds_json('SELECT FROM all_pass a JOIN all_pass b USING (k)');
SET bloomfilter.join_filter_memory = '64kB';
SELECT kinds('SELECT FROM all_pass a JOIN all_pass b USING (k)');
RESET bloomfilter.join_filter_memory;
-- a filter that most rows pass is switched off, and on again where rows have no match
CREATE TABLE in_order AS SELECT n AS id, n / 200 AS k, (n / 200)::text AS t, repeat('x', 40) AS filler FROM generate_series(0, 119999) n;
CREATE TABLE in_order_keys AS SELECT k, t FROM in_order WHERE id % 200 = 0;
ANALYZE in_order, in_order_keys;
CREATE FUNCTION share_removed(query text, batches text) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('bloomfilter.join_filter_batches', batches, true);
  RETURN (SELECT round(sum(regexp_replace(line, '.*: ', '')::numeric) / 120000, 1) FROM removed(query) line WHERE line ~ 'Runtime');
END $$;
SELECT keys, least, share_removed(format(query, 'k', keys), 'on') >= least AS k, share_removed(format(query, 't', keys), 'on') >= least AS t,
       share_removed(format(query, 'k', keys), 'off') >= least AS k_by_row, share_removed(format(query, 't', keys), 'off') >= least AS t_by_row
FROM (VALUES ('k < 150', 0.6), ('k BETWEEN 150 AND 299', 0.5), ('k % 300 < 150', 0.3)) a (keys, least), (VALUES ('SELECT i.* FROM in_order i JOIN in_order_keys d USING (%s) WHERE d.%s')) q (query);
SELECT kinds('SELECT FROM in_order i JOIN in_order_keys d USING (k) WHERE d.' || keys) FROM unnest('{k < 150,k BETWEEN 150 AND 700}'::text[]) keys;
SELECT compare(format('SELECT i.id FROM in_order i JOIN in_order_keys d USING (%s) WHERE d.k %% 300 < 150', key)) FROM unnest('{k,t}'::text[]) key;
-- filters of one join at different scans; several filters at one scan that discard different shares of the rows
SET join_collapse_limit = 1;
SELECT filters(q), compare(q) FROM (VALUES ('SELECT a.id, d.id FROM (facts a JOIN other b ON a.id = b.id) JOIN dim d ON a.k = d.k AND b.t = d.t')) x (q);
SELECT compare('SELECT a.id FROM all_pass a JOIN (SELECT k FROM all_pass WHERE id % 2 = 0) x ON a.k = x.k JOIN (SELECT id FROM all_pass WHERE id % 10 < 7) y ON a.id = y.id
  JOIN (SELECT k FROM all_pass WHERE id % 20 = 0) z ON a.k = z.k');
-- columns that are projected for a join that spills
SET work_mem = '64kB';
SELECT compare('SELECT f.filler, f.t, o.id FROM facts f JOIN all_pass o ON f.k = o.id WHERE o.id % 3 = 0');
SELECT compare('SELECT f.ctid, f.seven + 1, o.id FROM facts f JOIN all_pass o ON f.t = o.id::text WHERE o.id % 3 = 0');
SET enable_seqscan = off;
SELECT compare('SELECT f.filler, f.t, o.id FROM facts f JOIN all_pass o ON f.k = o.id WHERE f.id < 1500 AND o.id % 3 = 0');
RESET enable_seqscan;
RESET work_mem;
RESET join_collapse_limit;

-- All kinds of scans
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT compare('SELECT f.id FROM facts f JOIN dim d ON f.id = d.k WHERE f.id < 500');
SELECT compare('SELECT f.id, f.t FROM facts f JOIN dim d ON f.id = d.k WHERE f.id < 500');
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT compare('SELECT f.id, f.t FROM facts f JOIN dim d ON f.id = d.k WHERE f.id < 500');
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_seqscan;
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (k) WHERE f.ctid < ''(5,1)''');
SELECT compare('SELECT f.id FROM facts f JOIN dim d USING (k) WHERE f.ctid = ANY (''{"(0,1)","(1,2)"}'')');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id FROM facts f TABLESAMPLE BERNOULLI (50) REPEATABLE (1) JOIN dim d USING (k)') c) x;
SELECT (c).result FROM (SELECT compare('SELECT v.n FROM (VALUES (1), (100)) v (n) JOIN dim d ON v.n = d.k') c) x;
SELECT (c).result FROM (SELECT compare('SELECT n FROM generate_series(1, 1000) n JOIN dim d ON n = d.k') c) x;

-- a merge join that restores the position of its inner side
CREATE TABLE four AS SELECT (id / 4)::money AS k, id % 50 AS z FROM facts;
CREATE TABLE five AS SELECT (id / 5)::money AS k, id % 50 AS z FROM facts;
CREATE INDEX ON four (k);
CREATE INDEX ON five (k);
VACUUM ANALYZE four, five;
SET enable_mergejoin = on;
SET enable_sort = off;
SET enable_material = off;
SET enable_seqscan = off;
SET join_collapse_limit = 1;
SELECT compare('SELECT a.k, b.z FROM four a JOIN five b ON a.k = b.k JOIN three c ON a.z = c.k JOIN three d ON b.z = d.k');
RESET join_collapse_limit;
RESET enable_seqscan;
RESET enable_material;
RESET enable_sort;
SET enable_mergejoin = off;

-- Columns that were added after the rows
CREATE TABLE older AS SELECT n AS id FROM generate_series(1, 500) n;
ALTER TABLE older ADD COLUMN k int DEFAULT 300, ADD COLUMN t text DEFAULT '400', ADD COLUMN nothing int;
INSERT INTO older SELECT n, n, n FROM generate_series(501, 800) n;
ANALYZE older;
SELECT compare('SELECT o.id FROM older o JOIN dim d USING (' || key || ')') FROM unnest('{k,t}'::text[]) key;
SELECT compare('SELECT o.id FROM older o JOIN dim d ON o.nothing = d.k');
ALTER TABLE older DROP COLUMN k;
ALTER TABLE older ADD COLUMN k int8 DEFAULT 500;
SELECT compare('SELECT o.id FROM older o JOIN dim d USING (k)');

-- Foreign tables, also with asynchronous execution
CREATE EXTENSION postgres_fdw;
DO $$
BEGIN
  EXECUTE format('CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, async_capable ''true'')',
                 split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database());
END $$;
CREATE USER MAPPING FOR CURRENT_USER SERVER here;
CREATE FOREIGN TABLE far (id int, k int) SERVER here OPTIONS (schema_name 'joins', table_name 'facts');
CREATE TABLE far_parts (id int, k int) PARTITION BY RANGE (k);
CREATE FOREIGN TABLE far_1 PARTITION OF far_parts FOR VALUES FROM (0) TO (700) SERVER here OPTIONS (schema_name 'joins', table_name 'other');
CREATE FOREIGN TABLE far_2 PARTITION OF far_parts FOR VALUES FROM (700) TO (1400) SERVER here OPTIONS (schema_name 'joins', table_name 'facts');
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id FROM far f JOIN dim d USING (k)') c) x;
SELECT (c).n, (c).result FROM (SELECT compare('SELECT f.id FROM far_parts f JOIN dim d USING (k)') c) x;
SET client_min_messages = warning;
DROP EXTENSION postgres_fdw CASCADE;
RESET client_min_messages;

-- Partitions with different column numbers, pruned during planning and execution; inheritance
CREATE TABLE parts (id int, k int, t text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (700);
CREATE TABLE parts_2 (gone int, t text, k int, id int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (700) TO (1400);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT id, k, t FROM facts;
CREATE TABLE parent (id int, k int);
CREATE TABLE child (more text, t text) INHERITS (parent);
INSERT INTO parent SELECT id, k FROM facts;
INSERT INTO child SELECT id, k, 'x', t FROM facts;
ANALYZE parts, parent, child;
SELECT compare('SELECT p.id FROM parts p JOIN dim d USING (' || key || ')') FROM unnest('{k,t}'::text[]) key;
SELECT compare('SELECT p.id FROM parts p JOIN dim d USING (k, t) WHERE p.k > 800');
SELECT compare('SELECT p.id FROM parent p JOIN dim d USING (k)');
SET enable_partitionwise_join = on;
CREATE TABLE parts_too (LIKE parts) PARTITION BY RANGE (k);
CREATE TABLE parts_too_1 PARTITION OF parts_too FOR VALUES FROM (0) TO (700);
CREATE TABLE parts_too_2 PARTITION OF parts_too FOR VALUES FROM (700) TO (1400);
CREATE TABLE parts_too_3 PARTITION OF parts_too DEFAULT;
INSERT INTO parts_too SELECT id, k, t FROM dim;
ANALYZE parts_too;
SELECT compare('SELECT p.id FROM parts p JOIN parts_too d USING (k)');
SELECT compare('SELECT p.id FROM parts p JOIN parts_too d USING (k) JOIN dim ON p.t = dim.t');
RESET enable_partitionwise_join;
PREPARE pruned(int) AS SELECT count(*), sum(p.id) FROM parts p JOIN dim d USING (k) WHERE p.k < $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE pruned(500);
EXECUTE pruned(1500);
EXECUTE pruned(-5);
RESET plan_cache_mode;

-- A scan is counted once in the statistics
CREATE TABLE counted AS SELECT n AS k, repeat('x', 100) AS filler FROM generate_series(1, 5000) n;
CREATE TABLE counted_dim AS SELECT 7 AS k;
ANALYZE counted, counted_dim;
SELECT count(*) FROM counted JOIN counted_dim USING (k);
SELECT pg_stat_force_next_flush() FROM generate_series(1, (current_setting('server_version_num')::int >= 150000)::int);
SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relid = 'counted'::regclass;

-- An inner side without rows, or with NULL keys only: nothing passes
SELECT compare('SELECT f.id FROM facts f JOIN empty d USING (k)');
SELECT compare('SELECT f.id, d.id FROM facts f LEFT JOIN empty d USING (k)');
SELECT compare('SELECT f.id FROM facts f JOIN (SELECT * FROM dim WHERE k IS NULL) d USING (k)');
SELECT compare('SELECT f.id FROM empty f JOIN dim d USING (k)');
SELECT compare('SELECT f.id FROM facts f RIGHT JOIN (SELECT * FROM dim WHERE k IS NULL) d USING (k)');
-- more keys than join_filter_memory allows: no filter, the same rows
SET bloomfilter.join_filter_memory = '64kB';
CREATE TABLE many AS SELECT n AS id, n::int8 * 1000003 AS k FROM generate_series(1, 20000) n;
ANALYZE many;
SELECT compare('SELECT a.id FROM many a JOIN many b USING (k)');
SELECT compare('SELECT a.id FROM many a JOIN (SELECT k % 50 * 1000003 AS k FROM facts) b USING (k)');
RESET bloomfilter.join_filter_memory;

-- Errors during execution, caught and retried
CREATE FUNCTION fails_at(n int, at int) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF n = at THEN
    RAISE EXCEPTION 'at %', n;
  END IF;
  RETURN n;
END $$;
CREATE FUNCTION retried(OUT attempt int, OUT outcome text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 4 LOOP
    attempt := i;
    BEGIN
      SELECT count(*) || ' rows' INTO outcome FROM facts f JOIN dim d USING (k) WHERE fails_at(d.k, i * 900) > 0 AND fails_at(f.k, i * 700) > 0;
    EXCEPTION WHEN raise_exception THEN
      outcome := SQLERRM;
    END;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT * FROM retried();
-- cancellation
CREATE FUNCTION cancelled() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count(*) FROM facts f JOIN dim d USING (k) JOIN generate_series(1, 1000000000) n ON n = f.k;
  RETURN 'not cancelled';
EXCEPTION WHEN query_canceled THEN
  RETURN 'cancelled';
END $$;
SET statement_timeout = '300ms';
SELECT cancelled();
RESET statement_timeout;
SELECT count(*) FROM facts f JOIN dim d USING (k);
-- a function with a join, called by a query with a join
CREATE FUNCTION nested(n int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(*) FROM facts f JOIN dim d USING (k) WHERE d.k < n);
END $$;
SELECT compare('SELECT f.id, nested(f.k) FROM facts f JOIN dim d USING (k)');
SELECT compare('SELECT f.id, d.id FROM facts f JOIN (SELECT id, k, nested(k) AS n FROM dim) d ON f.k = d.k AND f.k > d.n');

-- Independence of search_path
SET search_path = '';
SELECT joins.filters('SELECT * FROM joins.facts JOIN joins.dim USING (k)') > 0 AS filtered;
SELECT count(*) FROM joins.facts JOIN joins.dim USING (k);
SET search_path = joins, public;

-- Temporary tables
CREATE TEMP TABLE passing AS SELECT id, k FROM facts;
SELECT compare('SELECT p.id FROM passing p JOIN dim d USING (k)');
SELECT compare('SELECT f.id FROM facts f JOIN (SELECT * FROM passing WHERE id % 500 = 0) p USING (k)');
DROP TABLE passing;

-- Filters are placed only if enough rows are expected to be discarded; otherwise the plan is unchanged
RESET bloomfilter.join_filter_min_rows;
RESET bloomfilter.join_filter_max_share;
SELECT filters('SELECT * FROM facts JOIN dim USING (k)') AS too_few_rows, filters('SELECT * FROM many JOIN (SELECT * FROM many WHERE id < 100) m USING (k)') AS enough,
       filters('SELECT * FROM many a JOIN many b USING (k)') AS too_many_survive;
SELECT (SELECT array_agg(line) FROM plan(query) line) = (SELECT array_agg(line) FROM (SELECT set_config('bloomfilter.join_filter', 'off', true) OFFSET 0) s, plan(query) line) AS same_plan
FROM (VALUES ('SELECT * FROM facts JOIN dim USING (k)'), ('SELECT * FROM facts f LEFT JOIN dim USING (k) ORDER BY f.id')) x (query);
SET bloomfilter.join_filter_min_rows = 0;
SET bloomfilter.join_filter_max_share = 1;

-- Prepared statements follow the setting
PREPARE kept AS SELECT count(*) FROM facts JOIN dim USING (k);
SET plan_cache_mode = force_generic_plan;
EXECUTE kept;
SELECT filters('EXECUTE kept') > 0 AS filtered;
SET bloomfilter.join_filter = off;
SELECT filters('EXECUTE kept') > 0 AS filtered;
EXECUTE kept;
SET bloomfilter.join_filter = on;
SELECT filters('EXECUTE kept') > 0 AS filtered;
EXECUTE kept;
-- filters need the library, not the extension: they work without it, and with it in another schema
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION bloomfilter CASCADE;
EXECUTE kept;
SELECT filters('EXECUTE kept') > 0 AS filtered, filters('SELECT * FROM facts JOIN dim USING (k)') > 0 AS filtered_too;
SELECT count(*) FROM facts JOIN dim USING (k);
ROLLBACK;
EXECUTE kept;
SELECT filters('EXECUTE kept') > 0 AS filtered;
CREATE SCHEMA joins_elsewhere;
BEGIN;
ALTER EXTENSION bloomfilter SET SCHEMA joins_elsewhere;
EXECUTE kept;
SELECT filters('SELECT * FROM facts JOIN dim USING (k)') > 0 AS filtered;
ROLLBACK;
RESET plan_cache_mode;

DROP OWNED BY regress_joins;
DROP ROLE regress_joins;
