-- How functions are called: parameters without a type, named arguments, and hints for mistaken calls

CREATE SCHEMA calls;
SET search_path = calls, public;
\pset null NULL

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

CREATE TABLE filters AS
  SELECT bloom_agg(k) AS b, cuckoo_agg(k) AS c, bloom_agg(n) AS bi, cuckoo_agg(n) AS ci FROM (VALUES ('a', 1), ('b', 2)) v(k, n);

-- arrays without a type are arrays of texts: literals, and parameters as drivers send them
SELECT bloom_contains_any(b, '{a,z}') AS "any", bloom_contains_all(b, '{a,z}') AS "all", bloom_contains_each(b, '{a,z,NULL}') AS "each",
       bloom_contains(bloom_add_all(b, '{y,z}'), 'z') AS added FROM filters;
SELECT cuckoo_contains_any(c, '{a,z}') AS "any", cuckoo_contains_all(c, '{a,z}') AS "all", cuckoo_contains_each(c, '{a,z,NULL}') AS "each",
       cuckoo_contains(cuckoo_add_all(c, '{y,z}'), 'z') AS added, cuckoo_contains(cuckoo_delete_all(c, '{a}'), 'a') AS deleted FROM filters;
PREPARE untyped AS
  SELECT bloom_contains_any(b, $1), bloom_contains_all(b, $2), bloom_contains_each(b, $3), bloom_cardinality(bloom_add_all(b, $4)),
         cuckoo_contains_any(c, $5), cuckoo_contains_all(c, $6), cuckoo_contains_each(c, $7), cuckoo_cardinality(cuckoo_add_all(c, $8)),
         cuckoo_cardinality(cuckoo_delete_all(c, $9)) FROM filters;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'untyped';
EXECUTE untyped('{a,z}', '{a,b}', '{a,z}', '{x,y}', '{a,z}', '{a,b}', '{a,z}', '{x,y}', '{a,b}');
SELECT bloom_contains_any(b, NULL) AS "any", cuckoo_contains_each(c, NULL) AS "each", bloom_add_all(b, NULL) = b AS nothing_added, cuckoo_delete_all(c, NULL) = c AS nothing_deleted,
       bloom_contains_all(bi, '{}') AS of_none FROM filters;
SELECT outcome('SELECT bloom_contains_any(bi, ''{1,2}'') FROM filters');
SELECT outcome('SELECT cuckoo_delete_all(ci, ''{1,2}'') FROM filters');

-- all other arrays keep their type, so that the class of a key is that of its own type
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN some_ints AS int[];
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
SELECT type, (bloom_stats(b)).key_class AS bloom, (cuckoo_stats(c)).key_class AS cuckoo FROM (VALUES
  ('smallint', bloom_add_all(bloom_new(10), '{1}'::smallint[]), cuckoo_add_all(cuckoo_new(10), '{1}'::smallint[])),
  ('bigint', bloom_add_all(bloom_new(10), '{1}'::bigint[]), cuckoo_add_all(cuckoo_new(10), '{1}'::bigint[])),
  ('numeric', bloom_add_all(bloom_new(10), '{1}'::numeric[]), cuckoo_add_all(cuckoo_new(10), '{1}'::numeric[])),
  ('real', bloom_add_all(bloom_new(10), '{1}'::real[]), cuckoo_add_all(cuckoo_new(10), '{1}'::real[])),
  ('char(3)', bloom_add_all(bloom_new(10), '{1}'::char(3)[]), cuckoo_add_all(cuckoo_new(10), '{1}'::char(3)[])),
  ('"char"', bloom_add_all(bloom_new(10), '{1}'::"char"[]), cuckoo_add_all(cuckoo_new(10), '{1}'::"char"[])),
  ('name', bloom_add_all(bloom_new(10), '{1}'::name[]), cuckoo_add_all(cuckoo_new(10), '{1}'::name[])),
  ('citext', bloom_add_all(bloom_new(10), '{1}'::citext[]), cuckoo_add_all(cuckoo_new(10), '{1}'::citext[])),
  ('bit(2)', bloom_add_all(bloom_new(10), '{01}'::bit(2)[]), cuckoo_add_all(cuckoo_new(10), '{01}'::bit(2)[])),
  ('cidr', bloom_add_all(bloom_new(10), '{10.0.0.0/8}'::cidr[]), cuckoo_add_all(cuckoo_new(10), '{10.0.0.0/8}'::cidr[])),
  ('array of a domain', bloom_add_all(bloom_new(10), '{1}'::positive[]), cuckoo_add_all(cuckoo_new(10), '{1}'::positive[])),
  ('domain over an array', bloom_add_all(bloom_new(10), '{1}'::some_ints), cuckoo_add_all(cuckoo_new(10), '{1}'::some_ints)),
  ('enum', bloom_add_all(bloom_new(10), '{red}'::colour[]), cuckoo_add_all(cuckoo_new(10), '{red}'::colour[])),
  ('row', bloom_add_all(bloom_new(10), array[row(1, 'a'::text)]), cuckoo_add_all(cuckoo_new(10), array[row(1, 'a'::text)]))) v(type, b, c);
SELECT bloom_contains_each(bi, '{1,3}'::smallint[]) AS smallint, bloom_contains_each(bi, '{1,3}'::bigint[]) AS bigint, bloom_contains_each(bi, '{1,3}'::positive[]) AS domain,
       bloom_contains_each(b, '{a,z}'::char(3)[]) AS padded, bloom_contains_each(b, '{a,z}'::name[]) AS name FROM filters;

-- an array whose type the parser does not know is refused; through text it is an array of texts
ANALYZE pg_class;
SELECT split_part(outcome('SELECT bloom_contains_any(b, most_common_vals) FROM filters, pg_stats LIMIT 1'), E'\n', 1);
SELECT count(*) > 0 AS some, bool_and(bloom_contains_all(bloom_add_all(b, most_common_vals::text::text[]), most_common_vals::text::text[])) AS "all"
FROM filters, pg_stats WHERE schemaname = 'pg_catalog' AND most_common_vals IS NOT NULL;

-- named arguments, as the reference names them
SELECT bloom_contains(filter => bloom_add(filter => bloom_new(capacity => 10, fpp => 0.01, growth => 2, max_layers => NULL), key => 'x'), key => 'x') AS "add",
       bloom_contains_any(filter => b, keys => '{a}') AS "any", bloom_contains_all(filter => b, keys => '{a}') AS "all", bloom_contains_each(filter => b, keys => '{a}') AS "each",
       bloom_missing(filter => b, keys => '{z}') AS missing, bloom_cardinality(filter => bloom_add_all(filter => b, keys => '{z}')) AS cardinality,
       bloom_fpp(filter => b) < 0.1 AS fpp, bloom_union(a => b, b => b) = b AS "union", bloom_intersection(a => b, b => b) = b AS intersection, bloom_compact(filter => b) = b AS compact,
       bloom_hash(key => 1) = bloom_hash(1) AS hash, (bloom_stats(filter => b)).layers, (bloom_layers(filter => b)).layer, (bloom_plan(capacity => 10, fpp => 0.01, growth => 2, max_layers => NULL)).hashes > 0 AS plan
FROM filters;
SELECT cuckoo_contains(filter => cuckoo_add(filter => cuckoo_new(capacity => 10, fpp => 0.01, growth => 2), key => 'x'), key => 'x') AS "add",
       cuckoo_contains_any(filter => c, keys => '{a}') AS "any", cuckoo_contains_all(filter => c, keys => '{a}') AS "all", cuckoo_contains_each(filter => c, keys => '{a}') AS "each",
       cuckoo_missing(filter => c, keys => '{z}') AS missing, cuckoo_cardinality(filter => cuckoo_add_all(filter => c, keys => '{z}')) AS cardinality,
       cuckoo_count(filter => cuckoo_delete(filter => c, key => 'a'), key => 'a') AS count, cuckoo_cardinality(filter => cuckoo_delete_all(filter => c, keys => '{a,b}')) AS deleted,
       cuckoo_fpp(filter => c) < 0.1 AS fpp, cuckoo_count(cuckoo_merge(a => c, b => c), 'a') AS merged, cuckoo_cardinality(cuckoo_subtract(a => c, b => c)) AS subtracted,
       (cuckoo_stats(filter => c)).key_class, (cuckoo_plan(capacity => 10, fpp => 0.01, growth => 2)).slot_bits > 0 AS plan
FROM filters;

-- an array where one key is expected: the hint names the functions for arrays
CREATE TABLE things (id int, colour colour, label text);
INSERT INTO things SELECT n, 'red', 'label ' || n FROM generate_series(1, 1000) n;
CREATE INDEX things_id ON things USING bloomfilter (id);
CREATE INDEX things_label ON things USING fingerprint (label);
SELECT outcome('SELECT bloom_contains(bi, array[1, 2]) FROM filters');
SELECT outcome('SELECT b @> ''{a,b}''::text[] FROM filters');
SELECT outcome('SELECT cuckoo_add(ci, array[''a'', ''b'']) FROM filters');
SELECT outcome('SELECT bloom_index_contains(''things'', ''id'', array[1, 2])');
SELECT outcome('SELECT bloom_contains(bloom_agg(array[1]), array[''a''])');

-- the same for functions of tables and indexes
SELECT bloom_index_contains(relation => 'things', column_name => 'id', key => 1) AS "contains", bloom_index_contains_each(relation => 'things', column_name => 'id', keys => array[1, -1]) AS "each",
       bloom_index_missing(relation => 'things', column_name => 'id', keys => array[1, -1]) AS missing, bloom_index_partitions(relation => 'things', column_name => 'id', key => 1) AS partition,
       (bloom_find(row_type => NULL::things, column_name => 'id', key => 1)).id AS found, bloom_contains(bloom_index_export(index => 'things_id'), 1) AS exported,
       (bloom_index_stats(index => 'things_id')).layers, bloom_index_check(index => 'things_id') AS "check", (fingerprint_stats(index => 'things_label')).rows, (fingerprint_check(index => 'things_label')).missing AS "check";

-- a table where an index is expected, an index where a table is expected, an index of another access method
SELECT call, outcome('SELECT ' || call) FROM (VALUES
  ('bloom_index_stats(''things'')'), ('fingerprint_check(''things'')'), ('bloom_index_export(''filters'')'), ('bloom_index_check(''pg_stats'')'),
  ('bloom_index_contains(''things_id'', ''id'', 1)'), ('bloom_index_contains_each(''things_label'', ''label'', ''{a}'')'), ('bloom_index_contains(''pg_stats'', ''tablename'', ''a'')'),
  ('bloom_index_stats(''things_label'')'), ('fingerprint_stats(''things_id'')'), ('bloom_index_check(''pg_class_oid_index'')')) v(call);

-- an enum cannot be indexed: the hint is one that works (since 17, the type is shown with its schema)
SELECT replace(outcome('CREATE INDEX ON things USING bloomfilter (colour)'), 'calls.', '') AS outcome;
SELECT replace(outcome('CREATE INDEX ON things USING fingerprint ((array[colour]))'), 'calls.', '') AS outcome;
CREATE INDEX ON things (colour);
ALTER TABLE things ALTER colour TYPE text;
CREATE INDEX ON things USING bloomfilter (colour);
