-- Filters in hash joins of UPDATE, DELETE, MERGE, SELECT FOR UPDATE and modifying CTEs: the same changes and the same rows

LOAD 'bloomfilter';
CREATE SCHEMA joins_modify;
SET search_path = joins_modify, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SET bloomfilter.join_filter_min_rows = 0;
SET bloomfilter.join_filter_max_share = 1;

CREATE TABLE facts AS SELECT n AS id, n % 200 AS k, n AS v, (n % 200)::text AS t, date '2020-01-01' + n / 20 AS d, repeat('x', 100) AS filler FROM generate_series(1, 4000) n;
CREATE INDEX ON facts USING brin (d) WITH (pages_per_range = 8);
CREATE TABLE dim AS SELECT n AS id, n AS k, n::text AS t, date '2020-01-01' + n AS d, 1000 + n AS v FROM generate_series(0, 299) n;
CREATE TABLE parts (id int, k int, v int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts_2 (v int, gone int, k int, id int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (50) TO (100);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT id, k, v FROM facts;
CREATE TABLE log (what text, id int, v int);
VACUUM ANALYZE facts, dim, parts, log;

-- The effect of a statement that returns rows, on all tables, as a hash; the statement is rolled back.
CREATE FUNCTION effect(statement text, filter text, batches text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  returned text[] := '{}';
  line record;
BEGIN
  PERFORM set_config('bloomfilter.join_filter', filter, true), set_config('bloomfilter.join_filter_batches', batches, true);
  FOR line IN EXECUTE statement LOOP
    returned := returned || line::text;
  END LOOP;
  SET LOCAL bloomfilter.join_filter = off;
  RAISE EXCEPTION USING MESSAGE = (SELECT array_agg(md5(x) ORDER BY n) FROM (
    SELECT 1 AS n, (SELECT string_agg(part, '' ORDER BY part) FROM unnest(returned) part) AS x
    UNION ALL SELECT 2, (SELECT string_agg(f::text, '' ORDER BY f::text) FROM facts f) UNION ALL SELECT 3, (SELECT string_agg(p::text, '' ORDER BY p::text) FROM parts p)
    UNION ALL SELECT 4, (SELECT string_agg(l::text, '' ORDER BY l::text) FROM log l) UNION ALL SELECT 5, (SELECT string_agg(d::text, '' ORDER BY d::text) FROM dim d)) x)::text;
EXCEPTION WHEN raise_exception THEN
  RETURN SQLERRM;
END $$;
CREATE FUNCTION filters(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  line text;
  n int := 0;
BEGIN
  SET LOCAL bloomfilter.join_filter = on;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
    n := n + (line ~ 'Filter Keys:')::int;
  END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION compare(statement text, OUT filtered boolean, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
  expected text := effect(statement, 'off', 'on');
BEGIN
  filtered := filters(statement) > 0;
  result := CASE WHEN effect(statement, 'on', 'on') <> expected THEN 'DIFFERENT' WHEN effect(statement, 'on', 'off') <> expected THEN 'DIFFERENT row by row' ELSE 'same' END;
END $$;

-- UPDATE and DELETE
SELECT compare(statement), statement FROM (VALUES
  ('UPDATE facts f SET v = d.v FROM dim d WHERE f.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING f.id, f.v'),
  ('UPDATE facts f SET v = d.v FROM dim d WHERE f.t = d.t AND d.id BETWEEN 10 AND 12 RETURNING f.id, f.v'),
  ('UPDATE facts f SET v = d.v FROM dim d WHERE f.d = d.d AND d.id BETWEEN 100 AND 102 RETURNING f.id, f.v'),
  ('UPDATE facts f SET k = f.k + 1000 FROM dim d WHERE f.k = d.k AND d.id < 20 RETURNING f.id, f.k'),
  ('UPDATE facts f SET v = d.v FROM dim d JOIN dim e USING (t) WHERE f.k = d.k AND d.id < 20 AND e.id > 10 RETURNING f.tableoid::regclass, f'),
  ('UPDATE facts SET v = 0 WHERE k IN (SELECT k FROM dim WHERE id < 7) RETURNING *'),
  ('UPDATE dim d SET v = f.v FROM facts f WHERE f.k = d.k AND d.id < 5 AND f.id < 100 RETURNING d.*'),
  ('UPDATE parts p SET v = d.v FROM dim d WHERE p.k = d.k AND d.id BETWEEN 60 AND 62 RETURNING p.*'),
  ('UPDATE parts p SET k = p.k + 40 FROM dim d WHERE p.k = d.k AND d.id BETWEEN 20 AND 22 RETURNING p.*, p.tableoid::regclass'),
  ('DELETE FROM facts f USING dim d WHERE f.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING f.id, d.id'),
  ('DELETE FROM facts f USING dim d WHERE f.d = d.d AND d.id BETWEEN 100 AND 102 RETURNING f.*'),
  ('DELETE FROM parts p USING dim d WHERE p.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING p.id'),
  ('DELETE FROM facts f WHERE EXISTS (SELECT FROM dim d WHERE f.k = d.k AND d.id < 9) RETURNING f.id')) x (statement);
-- EXPLAIN ANALYZE of an UPDATE shows the pages that it does not read
CREATE FUNCTION lines(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL bloomfilter.join_filter = on;
  RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement;
END $$;
VACUUM facts;
BEGIN;
SELECT substring(line FROM '\d+')::int > (SELECT 0.7 * relpages FROM pg_class WHERE oid = 'facts'::regclass) AS most
FROM lines('UPDATE facts f SET v = d.v FROM dim d WHERE f.d = d.d AND d.id BETWEEN 100 AND 102') line WHERE line ~ 'Pages Skipped';
ROLLBACK;

-- MERGE (without RETURNING, which exists since 17)
CREATE FUNCTION merged(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  n int;
BEGIN
  EXECUTE statement;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
SELECT filters(m) > 0 AS filtered, (compare(format('SELECT merged(%L)', m))).result, m FROM (VALUES
  ('MERGE INTO facts f USING (SELECT * FROM dim WHERE id BETWEEN 10 AND 12) d ON f.k = d.k WHEN MATCHED THEN UPDATE SET v = d.v'),
  ('MERGE INTO facts f USING (SELECT * FROM dim WHERE id BETWEEN 190 AND 210) d ON f.k = d.k WHEN MATCHED AND f.id < 2000 THEN UPDATE SET v = d.v WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (9000 + d.id, d.k, d.v)'),
  ('MERGE INTO facts f USING (SELECT * FROM dim WHERE id BETWEEN 190 AND 210) d ON f.d = d.d WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (9000 + d.id, d.k, d.v)'),
  ('MERGE INTO parts f USING (SELECT * FROM dim WHERE id BETWEEN 190 AND 210) d ON f.k = d.k WHEN MATCHED THEN UPDATE SET v = d.v WHEN NOT MATCHED THEN INSERT (id, k, v) VALUES (9000 + d.id, d.k, d.v)'),
  ('MERGE INTO dim d USING (SELECT DISTINCT k FROM facts WHERE id < 50) f ON f.k = d.k WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN DO NOTHING')) x (m);

-- Rows are locked as without filters
SELECT compare(statement), statement FROM (VALUES
  ('SELECT f.id, d.id AS dim FROM facts f JOIN dim d USING (k) WHERE d.id < 5 FOR UPDATE'),
  ('SELECT f.id FROM facts f JOIN dim d USING (k) WHERE d.id < 5 FOR UPDATE OF f'),
  ('SELECT p.id FROM parts p JOIN dim d USING (k) WHERE d.id BETWEEN 60 AND 61 FOR NO KEY UPDATE OF p'),
  ('SELECT f.id FROM facts f JOIN dim d USING (k) WHERE d.id < 5 ORDER BY f.id LIMIT 7 FOR SHARE'),
  ('SELECT f.id FROM facts f WHERE k IN (SELECT k FROM dim WHERE id < 3) FOR KEY SHARE SKIP LOCKED'),
  ('SELECT f.id FROM facts f JOIN (SELECT k FROM dim WHERE id < 5 FOR UPDATE) d USING (k)')) x (statement);
CREATE FUNCTION locked(filter text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('bloomfilter.join_filter', filter, true);
  PERFORM FROM facts f JOIN dim d USING (k) WHERE d.id < 5 FOR UPDATE OF f;
  RETURN (SELECT count(*) FROM facts WHERE xmax <> 0);
END $$;
BEGIN;
SELECT locked('off');
ROLLBACK;
VACUUM FULL facts;
BEGIN;
SELECT locked('on');
ROLLBACK;

-- CTEs that change rows; INSERT with a join; rules and triggers
CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log SELECT TG_OP, f.id, d.v FROM facts f JOIN dim d USING (k) WHERE f.id = OLD.id AND d.id < 250;
  RETURN NEW;
END $$;
SELECT compare(statement), statement FROM (VALUES
  ('WITH u AS (UPDATE facts f SET v = d.v FROM dim d WHERE f.k = d.k AND d.id < 3 RETURNING f.id, f.k) SELECT u.id, d.v FROM u JOIN dim d USING (k)'),
  ('WITH u AS (UPDATE facts SET v = 0 WHERE k < 10 RETURNING k) SELECT f.id, f.v FROM facts f JOIN (SELECT DISTINCT k FROM u) u USING (k)'),
  ('WITH x AS (DELETE FROM facts f USING dim d WHERE f.k = d.k AND d.id < 3 RETURNING f.*) INSERT INTO log SELECT ''moved'', x.id, d.v FROM x JOIN dim d USING (k) RETURNING *'),
  ('WITH i AS (INSERT INTO log SELECT ''new'', f.id, d.v FROM facts f JOIN dim d USING (k) WHERE d.id = 7 RETURNING id) UPDATE facts f SET v = -1 FROM i WHERE f.id = i.id RETURNING f.id')) x (statement);
CREATE TRIGGER logging AFTER UPDATE OR DELETE ON facts FOR EACH ROW EXECUTE FUNCTION log_change();
SELECT compare('UPDATE facts f SET v = d.v FROM dim d WHERE f.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING f.id, f.v');
SELECT compare('DELETE FROM facts f USING dim d WHERE f.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING f.id');
DROP TRIGGER logging ON facts;
CREATE VIEW few AS SELECT id, k, v FROM facts WHERE id < 2000;
SELECT compare('UPDATE few f SET v = d.v FROM dim d WHERE f.k = d.k AND d.id BETWEEN 10 AND 12 RETURNING f.*');
-- a cursor, and WHERE CURRENT OF
SET bloomfilter.join_filter = on;
BEGIN;
DECLARE c CURSOR FOR SELECT f.id FROM facts f JOIN dim d USING (k) WHERE d.id < 5 FOR UPDATE OF f;
FETCH 2 FROM c;
UPDATE facts SET v = -5 WHERE CURRENT OF c RETURNING id, v;
FETCH 1 FROM c;
ROLLBACK;
-- prepared statements
PREPARE change(int) AS UPDATE facts f SET v = d.v FROM dim d WHERE f.k = d.k AND d.id < $1;
SET plan_cache_mode = force_generic_plan;
BEGIN;
EXECUTE change(3);
EXECUTE change(1);
EXECUTE change(0);
SELECT count(*) FROM facts WHERE v >= 1000 AND id <> v;
ROLLBACK;
