-- P3: a key of the wrong class is an error, not an absent key

CREATE SCHEMA class;
SET search_path = class, public;

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

CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TABLE classes (name text, expression text);
INSERT INTO classes VALUES
  ('integer', '1'), ('text', '''1''::text'), ('uuid', 'md5(''1'')::uuid'), ('bytea', '''1''::bytea'), ('boolean', 'true'),
  ('float', '1::float8'), ('numeric', '1.0'), ('date', '''2024-01-01''::date'), ('time', '''00:01''::time'),
  ('timetz', '''00:01+00''::timetz'), ('timestamp', '''2024-01-01''::timestamp'), ('timestamptz', '''2024-01-01Z''::timestamptz'),
  ('interval', '''1 day''::interval'), ('inet', '''::1''::inet'), ('macaddr', '''08:00:2b:01:02:03''::macaddr'),
  ('macaddr8', '''08:00:2b:01:02:03:04:05''::macaddr8'), ('bit', 'B''1'''), ('oid', '1::oid'), ('money', '1::money'),
  ('xid8', '''1''::xid8'), ('pg_lsn', '''0/1''::pg_lsn'), ('jsonb', '''1''::jsonb'),
  ('enum colour', '''red''::colour'), ('integer[]', 'array[1]'), ('(integer)', 'row(1)'), ('range(integer)', 'int4range(1,2)'),
  ('multirange(integer)', 'int4multirange(int4range(1,2))');

-- every pair of classes: 42804 if they differ
SELECT outcome, count(*) FROM (
  SELECT left(outcome(format('SELECT bloom_contains(bloom_agg(%s), %s)', a.expression, b.expression)), 5)
         || CASE WHEN a.name = b.name THEN ' same class' ELSE ' other class' END AS outcome
  FROM classes a, classes b) x GROUP BY outcome ORDER BY outcome;
SELECT outcome, count(*) FROM (
  SELECT left(outcome(format('SELECT bloom_add(bloom_agg(%s, 100), %s) IS NOT NULL', a.expression, b.expression)), 5)
         || CASE WHEN a.name = b.name THEN ' same class' ELSE ' other class' END AS outcome
  FROM classes a, classes b) x GROUP BY outcome ORDER BY outcome;

-- messages
SELECT outcome('SELECT bloom_contains(bloom_agg(1), ''one'')');
SELECT outcome('SELECT bloom_contains(bloom_agg(''one''), 1)');
SELECT outcome('SELECT bloom_contains(bloom_agg(''red''::colour), ''red'')');
SELECT outcome('SELECT bloom_add(bloom_agg(1.5), 1)');
SELECT outcome('SELECT bloom_add_all(bloom_agg(row(1, ''x''::text)), array[1])');
SELECT outcome('SELECT bloom_agg(r) FROM (VALUES (row(1)), (row(''x''::text))) v(r)');
SELECT outcome('SELECT bloom_agg(row(1, ''x''))');
SELECT outcome('SELECT bloom_contains(bloom_agg(B''101''), ''101'')');
SELECT bloom_contains(bloom_agg(B'101'), '101'::varbit) AS as_the_hint_says;

-- a filter cannot be a key
SELECT outcome('SELECT bloom_agg(bloom_new(10))');
SELECT outcome('SELECT cuckoo_contains(cuckoo_new(10), cuckoo_new(10))');
SELECT outcome('SELECT bloom_add(bloom_new(10), array[bloom_new(10)])');

-- an empty filter accepts a key of any class, and takes the class of its first key
SELECT bloom_contains(bloom_new(10), 1), bloom_contains(bloom_new(10), 'x'), bloom_contains(bloom_agg(n), 'x')
FROM generate_series(1, 0) n;
SELECT (bloom_stats(bloom_new(10))).key_class IS NULL AS none,
       (bloom_stats(bloom_add(bloom_new(10), 1))).key_class,
       (bloom_stats(bloom_add(bloom_add(bloom_new(10), null::text), 1))).key_class AS null_has_no_class;

-- a filter with hashes from a server of the other byte order is rejected
\set own 'bloom_agg(array[''Key'']::citext[])'
SELECT outcome(format('SELECT bloom_contains(set_byte(%1$s::bytea, 3, 5 - get_byte(%1$s::bytea, 3))::bloom, array[''KEY'']::citext[])', :'own'));
SELECT outcome(format('SELECT bloom_contains(%1$s, array[''KEY'']::citext[])', :'own'));
