-- Filters stored in tables: correct results with every storage option, and few
-- buffers per lookup

CREATE SCHEMA stored;
SET search_path = stored, public;

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

CREATE TYPE holder AS (name text, f bloom);
CREATE TABLE made (name text PRIMARY KEY, f bloom, highest int);
INSERT INTO made
  SELECT 'tiny', bloom_agg(n), 1 FROM generate_series(1, 1) n
  UNION ALL SELECT 'short header', bloom_agg(n), 20 FROM generate_series(1, 20) n
  UNION ALL SELECT 'inline', bloom_agg(n), 1000 FROM generate_series(1, 1000) n
  UNION ALL SELECT 'external', bloom_agg(n), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'two groups', bloom_agg(n, NULL, 0.001), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'three groups', bloom_agg(n, NULL, 1e-6), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'four groups', bloom_agg(n, NULL, 1e-9), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'loose', bloom_agg(n, NULL, 0.5), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'long list', bloom_agg(n, 500000), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'mostly empty', bloom_agg(n, 20000), 3000 FROM generate_series(1, 3000) n
  UNION ALL SELECT 'layers', bloom_agg(n) FILTER (WHERE n <= 15000) | bloom_agg(n) FILTER (WHERE n > 15000), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'layers and lists', bloom_agg(n) FILTER (WHERE n <= 15000) | bloom_agg(n, 500000) FILTER (WHERE n > 15000), 20000 FROM generate_series(1, 20000) n
  UNION ALL SELECT 'empty', bloom_new(100000), 0;

-- every storage option; composites and arrays are stored as a whole
CREATE TABLE ways (name text, plain bloom, main bloom, extended bloom, in_array bloom[], in_row holder);
ALTER TABLE ways ALTER main SET STORAGE main, ALTER extended SET STORAGE extended;
INSERT INTO ways SELECT name, f, f, f, array[NULL, f], row(name, f)::holder FROM made;

-- compare with a flat filter; each filter is probed often enough to be loaded
CREATE TABLE answers AS
  SELECT name, n, bloom_contains(flat, n) AS answer, n <= highest AS added
  FROM (SELECT name, f::text::bloom AS flat, highest FROM made) m, generate_series(1, 40000, 61) n;
SELECT count(*) AS probes, count(*) FILTER (WHERE added AND NOT answer) AS lost FROM answers;
SELECT name, count(*) AS wrong FROM ways JOIN answers USING (name)
WHERE bloom_contains(plain, n) <> answer OR bloom_contains(main, n) <> answer OR bloom_contains(extended, n) <> answer
   OR bloom_contains(in_array[2], n) <> answer OR bloom_contains((in_row).f, n) <> answer GROUP BY name;

-- the same with a different filter in each row, so that none is loaded
SELECT count(*) AS wrong FROM (SELECT * FROM ways JOIN answers USING (name) ORDER BY n, name) x
WHERE bloom_contains(plain, n) <> answer OR bloom_contains(main, n) <> answer OR bloom_contains(extended, n) <> answer
   OR bloom_contains(in_array[2], n) <> answer OR bloom_contains((in_row).f, n) <> answer;

-- and with a few rows each, on both sides of the threshold
SELECT count(*) AS wrong FROM (SELECT * FROM ways JOIN answers USING (name) ORDER BY n / 700, name, n) x
WHERE bloom_contains(plain, n) <> answer OR bloom_contains(extended, n) <> answer;

-- a filter that is updated between two probes from one call site
CREATE FUNCTION watch() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  seen text := '';
BEGIN
  FOR i IN 1 .. 100 LOOP
    UPDATE ways SET plain = (SELECT f FROM made WHERE made.name = CASE WHEN i % 2 = 0 THEN 'external' ELSE 'layers' END) WHERE name = 'empty';
    seen := seen || (SELECT bloom_contains(plain, 20000)::int + bloom_contains(plain, 25000 + i)::int FROM ways WHERE name = 'empty');
  END LOOP;
  RETURN replace(replace(seen, '1', ''), '2', '');
END $$;
SELECT watch() AS zeros;

-- a key of the wrong class is also an error when reading slices, even if only the header shows it
CREATE TABLE wrong_class AS SELECT bloom_agg(n::text) AS texts, bloom_agg(n::numeric) AS numerics, bloom_agg(array[n]) AS arrays FROM generate_series(1, 5000) n;
SELECT outcome('SELECT bloom_contains(texts, 1) FROM wrong_class');
SELECT outcome('SELECT bloom_contains(numerics, 1) FROM wrong_class');
SELECT outcome('SELECT bloom_contains(arrays, 1) FROM wrong_class');
SELECT outcome('SELECT bloom_contains_any(arrays, array[1]) FROM wrong_class');
SELECT bool_and(bloom_contains(texts, n::text) AND bloom_contains(numerics, n::numeric) AND bloom_contains(arrays, array[n])) AS found
FROM wrong_class, generate_series(1, 5000, 333) n;

-- one key tested against many stored filters of 1.2 MB: buffers per filter
CREATE TABLE large (id int, i bloom, t numeric, n bloom, l bloom);
INSERT INTO large SELECT g, i, g, n, l FROM generate_series(1, 20) g,
  (SELECT bloom_agg(k) AS i, bloom_agg(k::numeric) AS n, bloom_agg(k, 20000000) FILTER (WHERE k <= 150000) AS l FROM generate_series(1, 1000000) k) f;
VACUUM ANALYZE large;
CREATE FUNCTION buffers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
SELECT buffers('SELECT id FROM large WHERE bloom_contains(i, -5)') / 20.0 <= 5 AS by_size, buffers('SELECT id FROM large WHERE bloom_contains(n, -5.0)') / 20.0 <= 8 AS by_header,
       buffers('SELECT id FROM large WHERE bloom_contains(l, -5)') / 20.0 <= 13 AS list,
       buffers('SELECT id FROM large WHERE bloom_cardinality(i) < 0') / 20.0 > 150 AS whole;

-- arrays: any, all and each, with the SQL semantics for NULL and {}
\pset null NULL
SELECT keys, bloom_contains_any(f, keys) AS "any", bloom_contains_all(f, keys) AS "all", bloom_contains_each(f, keys) AS "each"
FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 10) n) x,
     (VALUES (1, '{1,2}'::int[]), (2, '{1,99}'), (3, '{98,99}'), (4, '{1,NULL}'), (5, '{99,NULL}'), (6, '{NULL}'), (7, '{}'), (8, NULL), (9, '[0:1][5:6]={{1,99},{NULL,2}}')) v(line, keys) ORDER BY line;
SELECT bloom_contains_any(NULL, '{1}'::int[]), bloom_contains_all(bloom_new(10), '{1}'::int[]) AS in_empty, bloom_contains_any(bloom_new(10), '{x}'::text[]) AS of_no_class;
SELECT outcome('SELECT bloom_contains_each(bloom_agg(1), ''{a}''::text[])');
SELECT name, count(*) FILTER (WHERE one <> each OR one <> stored) AS wrong, bool_or(each) AS hits
FROM made JOIN ways USING (name),
LATERAL (SELECT array_agg(n ORDER BY n) AS keys FROM generate_series(1, 40000, 7) n) k,
LATERAL unnest(keys, bloom_contains_each(f::text::bloom, keys), bloom_contains_each(plain, keys)) u(key, each, stored),
LATERAL (SELECT bloom_contains(f, key) AS one) o WHERE name IN ('short header', 'external', 'three groups', 'long list', 'layers') GROUP BY name ORDER BY name;
SELECT bloom_contains_all(plain, array[1, 500, 20000]) AS "all", bloom_contains_any(plain, array[500000, 600000, 20000]) AS "any", bloom_contains_each(plain, array[1, 600000]) AS few
FROM ways WHERE name = 'four groups';

-- the operator
SELECT f @> 5 AS int4, f @> 5::bigint AS int8, f @> 5000 AS missing, t @> 'five' AS literal, t @> 'five'::varchar AS varchar, t @> 'f'::"char" AS "char"
FROM (SELECT bloom_agg(n) AS f FROM generate_series(1, 10) n) x, (SELECT bloom_agg('five') AS t) y;
SELECT count(*) FROM ways WHERE plain @> 20000;

-- counts: of one stored filter repeatedly, and of a different one in each row; keys 1 to 100 were added three times
CREATE TABLE counted AS
  SELECT i, cuckoo_add_all(cuckoo_add_all(cuckoo_agg(n + i * 100000), ARRAY(SELECT generate_series(1, 100))), ARRAY(SELECT generate_series(1, 100) UNION ALL SELECT generate_series(1, 100))) AS f
  FROM generate_series(0, 3) i, generate_series(1, 20000) n GROUP BY i;
SELECT cuckoo_count((SELECT f FROM counted WHERE i = 1), n) AS copies, count(*) BETWEEN 0.99 * min(expected) AND 1.01 * min(expected) AS as_expected
FROM (SELECT n, CASE WHEN n <= 100 THEN 100 WHEN n BETWEEN 100001 AND 120000 THEN 20000 ELSE 29900 END AS expected
      FROM (SELECT generate_series(1, 30000) UNION ALL SELECT generate_series(100001, 120000)) x(n)) y GROUP BY 1 HAVING count(*) > 50 ORDER BY 1;
SELECT count(*) FILTER (WHERE cuckoo_count(f, key) < CASE WHEN key <= 100 THEN 3 ELSE 1 END) AS too_few, count(*) FILTER (WHERE cuckoo_count(f, key) > CASE WHEN key <= 100 THEN 4 ELSE 1 END) < 10 AS few_too_many, count(*)
FROM (SELECT f, key FROM counted, LATERAL (SELECT generate_series(1, 50) UNION ALL SELECT generate_series(101, 150) + i * 100000) k(key) ORDER BY key % 1000, i OFFSET 0) x;
DROP TABLE counted;

-- bytes damaged in the table, after validation: a cuckoo table holds more keys than its header says
CREATE TABLE damaged (f bytea);
ALTER TABLE damaged ALTER f SET STORAGE external;
INSERT INTO damaged SELECT set_byte(set_byte(cuckoo_agg(n)::bytea, 68, 200), 69, 0) FROM generate_series(1, 20000) n;
UPDATE pg_attribute SET atttypid = 'cuckoo'::regtype, attalign = 'd' WHERE attrelid = 'damaged'::regclass AND attname = 'f';
SELECT outcome('SELECT cuckoo_add(f, 1)::text IS NULL FROM damaged');
SELECT outcome('SELECT cuckoo_merge(f, f)::text IS NULL FROM damaged');
SELECT cuckoo_contains(f, 1) AS still_readable FROM damaged;
DROP TABLE damaged;

-- a filter stored as one type but of the other: functions that unpack it reject it
CREATE TABLE damaged (name text, f bytea, g bytea);
INSERT INTO damaged SELECT 'list', set_byte(bloom_add(bloom_new(1000), 1)::bytea, 0, 67), set_byte(cuckoo_add(cuckoo_new(1000), 1)::bytea, 0, 66);
INSERT INTO damaged SELECT 'other', cuckoo_agg(n)::bytea, bloom_agg(n)::bytea FROM generate_series(1, 3000) n;
UPDATE pg_attribute SET atttypid = CASE attname WHEN 'f' THEN 'bloom'::regtype ELSE 'cuckoo'::regtype END, attalign = 'd' WHERE attrelid = 'damaged'::regclass AND attname IN ('f', 'g');
SELECT message, count(*) FROM (VALUES ('f | f'), ('f | bloom_new(10)'), ('bloom_new(10) | f'), ('f & f'), ('bloom_compact(f)'), ('cuckoo_merge(g, g)'), ('cuckoo_delete(g, 1)'), ('cuckoo_delete_all(g, ARRAY[1])'), ('cuckoo_count(g, 1)'), ('bloom_stats(f)'), ('bloom_layers(f)'), ('cuckoo_stats(g)')) c(call), (VALUES ('list'), ('other')) n(name),
LATERAL (SELECT split_part(outcome(format('SELECT (%s)::text IS NULL FROM damaged WHERE name = %L', call, n.name)), E'\n', 1)) o(message) GROUP BY 1 ORDER BY 1;
SELECT split_part(outcome('SELECT bloom_union_agg(f) FROM (SELECT f FROM damaged UNION ALL SELECT bloom_new(10)) x'), E'\n', 1) AS many, split_part(outcome('SELECT cuckoo_merge_agg(g) FROM (SELECT cuckoo_new(10) AS g UNION ALL SELECT g FROM damaged) x'), E'\n', 1) AS sums;
DROP TABLE damaged;
