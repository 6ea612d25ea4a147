-- Nothing is written if nothing changes: a function with nothing to do returns the stored value,
-- and UPDATE leaves it in place

CREATE SCHEMA unchanged;
SET search_path = unchanged, public;

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

-- The keys 1 to 50000 in every kind of filter.
CREATE TABLE filters (id text PRIMARY KEY, f bloom, g bloom, c cuckoo);
ALTER TABLE filters ALTER g SET STORAGE extended;
INSERT INTO filters SELECT id, f, f, c FROM
  (SELECT bloom_agg(n) AS one_layer, bloom_agg(n, NULL, 1e-6) AS three_groups, bloom_add_all(bloom_new(1000), array_agg(n)) AS grown, bloom_agg(n, 10000000) AS list,
          bloom_add_all(bloom_new(10000, growth => 0), array_agg(n)) AS fixed, bloom_add_all(bloom_new(20000, max_layers => 4), array_agg(n)) AS rotating,
          cuckoo_agg(n) AS counted, cuckoo_add_all(cuckoo_agg(n), array_fill(7, array[300])) AS saturated, cuckoo_agg(n, 10000000) AS long_list FROM generate_series(1, 50000) n) x,
  LATERAL (VALUES ('one layer', one_layer, counted), ('three groups', three_groups, saturated), ('grown', grown, long_list), ('list', list, NULL), ('fixed', fixed, NULL), ('rotating', rotating, NULL)) v(id, f, c);

-- Returns the TOAST value ID that a column refers to.  It changes if the value is rewritten.
CREATE FUNCTION chunks() RETURNS TABLE (chunk oid) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT DISTINCT chunk_id FROM %s', (SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'filters'::regclass));
END $$;
CREATE FUNCTION written(update text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  before oid[] := ARRAY(SELECT chunks());
BEGIN
  EXECUTE update;
  RETURN (SELECT count(*) FROM chunks() x(chunk) WHERE chunk <> ALL (before));
END $$;
SELECT count(*) AS stored FROM chunks();

-- adding present keys and deleting absent ones: nothing is written, and the bytes stay the same
CREATE TABLE copies AS SELECT id, f::bytea AS f, g::bytea AS g, c::bytea AS c FROM filters;
SELECT change, written('UPDATE filters SET ' || change) FROM (VALUES
  ('f = f'), ('f = bloom_add(f, 49999), g = bloom_add(g, 49999)'), ('f = bloom_add_all(f, ARRAY[49990, 49991, NULL, 49999])'), ('g = bloom_add_all(g, ARRAY(SELECT generate_series(45000, 50000)))'),
  ('f = bloom_add_all(f, ARRAY(SELECT generate_series(45000, 50000)))'), ('f = bloom_add(f, 49999::bigint)'), ('f = bloom_add(f, NULL::int), g = bloom_add_all(g, ''{}''::int[])'),
  ('f = bloom_add(bloom_add(f, 49998), 49999)'), ('c = cuckoo_delete(c, -5)'), ('c = cuckoo_delete_all(c, ARRAY[-6, -7, -8])'), ('c = cuckoo_delete_all(c, ARRAY(SELECT -generate_series(10001, 10010)))'),
  ('f = f | f, g = g | g'), ('f = f | bloom_new(5), g = bloom_new(77) | g'), ('f = f & f WHERE id IN (''one layer'', ''fixed'', ''list'')'), ('c = cuckoo_merge(c, cuckoo_new(5))'), ('c = cuckoo_subtract(c, cuckoo_new(5))'),
  ('f = f | (SELECT bloom_agg(n, 50000) FROM generate_series(1, 100) n) WHERE id = ''one layer'''), ('f = (SELECT bloom_agg(n, 50000) FROM generate_series(1, 100) n) | f WHERE id = ''one layer'''),
  ('f = bloom_compact(f) WHERE id = ''one layer''')) v(change);
SELECT count(*) AS same FROM filters JOIN copies USING (id) WHERE filters.f::bytea = copies.f AND filters.g::bytea = copies.g AND filters.c::bytea IS NOT DISTINCT FROM copies.c;

-- a key with a saturated count stays, and nothing is written
SELECT written('UPDATE filters SET c = cuckoo_delete(c, 7) WHERE id = ''three groups'''), written('UPDATE filters SET c = cuckoo_delete_all(c, array[7, -5, 7]) WHERE id = ''three groups''') AS among_others;

-- changes are written: a new key, and in a window a key that its newest layer does not have;
-- the overfull fixed filter already reports -3
BEGIN;
SELECT change, written('UPDATE filters SET ' || change) FROM (VALUES
  ('f = bloom_add(f, -3)'), ('f = bloom_add_all(f, ARRAY[49999, -4])'), ('g = bloom_add_all(g, ARRAY(SELECT generate_series(-50, 50)))'), ('f = bloom_add(f, 20001) WHERE id = ''rotating'''), ('f = f | (SELECT bloom_agg(-n, 50000) FROM generate_series(1, 100) n) WHERE id = ''one layer'''),
  ('c = cuckoo_delete(c, 5)'), ('c = cuckoo_delete_all(c, ARRAY[-6, 8])'), ('c = cuckoo_add(c, 5)')) v(change);
SELECT id, bloom_contains_all(f, array[-3, -4]) AS f, bloom_contains(g, -50) AS g, cuckoo_count(c, 5) AS five, cuckoo_count(c, 8) AS eight FROM filters ORDER BY id;
ROLLBACK;

-- a window does not add a key of its newest layer again; a key of an older layer is added, or it would be forgotten
SELECT bloom_contains(f, 1) AS one, bloom_contains(f, 2) AS two, (bloom_stats(f)).layers
FROM (SELECT bloom_add_all(bloom_add(bloom_add_all(bloom_new(1000, 1e-6, max_layers => 3), ARRAY(SELECT generate_series(1, 1500))), 1), ARRAY(SELECT generate_series(10001, 11800))) AS f) x;

-- WAL volume: the same as for UPDATE ... SET x = x
CREATE FUNCTION wal(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  plan json;
  least_bytes bigint;
BEGIN
  -- take the minimum of several runs: the first after a checkpoint writes whole pages, and others may prune a page
  FOR i IN 1 .. 7 LOOP
    EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || query INTO plan;
    least_bytes := least(least_bytes, (plan -> 0 -> 'Plan' ->> 'WAL Bytes')::bigint);
  END LOOP;
  RETURN least_bytes;
END $$;
CREATE TABLE one (id int PRIMARY KEY, f bloom, c cuckoo) WITH (fillfactor = 10);
INSERT INTO one SELECT 1, bloom_agg(n), cuckoo_agg(n) FROM generate_series(1, 500000) n;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.f := bloom_add(NEW.f, 77); NEW.c := cuckoo_delete(NEW.c, -77); RETURN NEW; END $$;
CREATE TABLE by_trigger (LIKE one INCLUDING ALL);
INSERT INTO by_trigger TABLE one;
-- any BEFORE UPDATE trigger locks the row first, which writes additional WAL
CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER idle BEFORE UPDATE ON by_trigger FOR EACH ROW EXECUTE FUNCTION idle();
CREATE TABLE by_idle_trigger AS SELECT wal('UPDATE by_trigger SET id = id') AS by_idle_trigger;
CREATE TRIGGER note BEFORE UPDATE ON by_trigger FOR EACH ROW EXECUTE FUNCTION note();
CREATE TABLE measured AS SELECT wal('UPDATE one SET f = f, c = c') AS same, wal('UPDATE one SET f = bloom_add(f, 77)') AS added, wal('UPDATE one SET f = bloom_add_all(f, array[77, 78, 79])') AS added_all,
  wal('UPDATE one SET f = f | f') AS united, wal('UPDATE one SET c = cuckoo_delete(c, -77)') AS deleted, wal('UPDATE by_trigger SET id = id') AS by_trigger,
  wal('INSERT INTO one VALUES (1) ON CONFLICT (id) DO UPDATE SET f = one.f') AS conflict_same, wal('INSERT INTO one VALUES (1) ON CONFLICT (id) DO UPDATE SET f = bloom_add(one.f, 77), c = cuckoo_delete(one.c, -77)') AS conflict,
  wal('UPDATE one SET f = bloom_add_all(f, ARRAY(SELECT (random() * -1e9)::int FROM generate_series(1, 20)))') AS changed;
SELECT same < 1000 AS little, added <= same AS added, added_all <= same AS added_all, united <= same AS united, deleted <= same AS deleted, by_trigger <= by_idle_trigger AS by_trigger, conflict <= conflict_same AS conflict, changed > 600000 AS changed
FROM measured, by_idle_trigger;

-- reading slices: a key of a stored 600 kB filter takes few buffers
CREATE FUNCTION buffers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE query;	-- fill the catalog caches
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
VACUUM one;
SELECT buffers('SELECT bloom_add(f, 77) IS NULL FROM one') < 20 AS bloom, buffers('SELECT cuckoo_delete(c, -77) IS NULL FROM one') < 20 AS cuckoo, buffers('SELECT bloom_add_all(f, array[77, 78, 79]) IS NULL FROM one') < 50 AS few,
       buffers('SELECT bloom_add(f, -77) IS NULL FROM one') > 70 AS changed;

-- the same errors when reading slices, and for values that are not filters
SELECT outcome('SELECT bloom_add(f, ''a'') FROM one');
SELECT outcome('SELECT cuckoo_delete(c, 1.5) FROM one');
SELECT outcome('SELECT cuckoo_delete_all(c, array[''a'']) FROM one');
CREATE AGGREGATE state(int) (SFUNC = _bloom_agg_transition, STYPE = bloom);
CREATE TABLE states AS SELECT state(n) AS f FROM generate_series(1, 5000) n;
SELECT split_part(outcome('SELECT bloom_add(f, 1) FROM states'), E'\n', 1);
SELECT split_part(outcome('SELECT bloom_add_all(f, array[1, 2]) FROM states'), E'\n', 1);
CREATE TABLE damaged (f bytea, c bytea);
ALTER TABLE damaged ALTER f SET STORAGE external, ALTER c SET STORAGE external;
INSERT INTO damaged SELECT substr(bloom_agg(n)::bytea, 1, 5000), cuckoo_agg(n)::bytea FROM generate_series(1, 20000) n UNION ALL SELECT cuckoo_agg(n)::bytea, bloom_agg(n)::bytea FROM generate_series(1, 20000) n;
UPDATE pg_attribute SET atttypid = CASE attname WHEN 'f' THEN 'bloom'::regtype ELSE 'cuckoo'::regtype END, attalign = 'd' WHERE attrelid = 'damaged'::regclass AND attname IN ('f', 'c');
SELECT outcome('SELECT bloom_add(f, 1) FROM damaged LIMIT 1');
SELECT outcome('SELECT cuckoo_delete(c, -1) FROM damaged OFFSET 1');
DROP TABLE damaged;

-- adding a first key is a change, because it sets the class; deleting from an empty filter is none
SELECT (bloom_stats(bloom_add(bloom_new(10), 1))).key_class, bloom_add(bloom_new(10), 1) = bloom_new(10) AS same, cuckoo_delete(cuckoo_new(10), 1) = cuckoo_new(10) AS nothing_to_delete;

-- variables: the result is independent of the argument
DO $$
DECLARE
  f bloom := (SELECT one.f FROM one);
  g bloom;
BEGIN
  g := bloom_add(f, 77);
  f := bloom_add(f, -12345);
  ASSERT bloom_contains(f, -12345) AND NOT bloom_contains(g, -12345) AND g = (SELECT one.f FROM one), 'they are one';
  g := bloom_add(g, -12345);
  ASSERT f = g;
  f := bloom_add(f, 77);
  f := bloom_add(f, -54321);
  ASSERT f <> g AND bloom_contains_all(f, array[77, -12345, -54321]) AND NOT bloom_contains(g, -54321);
  UPDATE one SET f = bloom_new(1);
  ASSERT bloom_contains(f, 77);
END $$;
