-- Functions that probe an index: correct results, and only for users who may read the table

CREATE SCHEMA index_functions;
SET search_path = index_functions, public;
SET max_parallel_workers_per_gather = 0;

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

CREATE TABLE events (id int, user_id bigint, day int, note text) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
CREATE TABLE events_2 (note text, gone int, day int, user_id bigint, id int);
ALTER TABLE events_2 DROP gone;
ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES IN (2);
CREATE TABLE events_3 PARTITION OF events FOR VALUES IN (3, 4) PARTITION BY LIST (day);
CREATE TABLE events_3_3 PARTITION OF events_3 FOR VALUES IN (3);
CREATE TABLE events_3_4 PARTITION OF events_3 FOR VALUES IN (4);
CREATE INDEX events_user ON events USING bloomfilter (user_id);
CREATE INDEX events_lower ON events USING bloomfilter (lower(note));
INSERT INTO events SELECT n, n % 1000 + 1000 * (n % 4), 1 + n % 4, 'Note ' || n FROM generate_series(1, 8000) n;

-- present, absent and NULL keys of any integer type; arrays of any shape
SELECT bloom_index_contains('events', 'user_id', 1001) AS yes, bloom_index_contains('events', 'user_id', -1) AS no,
       bloom_index_contains('events', 'user_id', NULL::int) AS of_null, bloom_index_contains(NULL, 'user_id', 1) AS no_table,
       bloom_index_contains('events', 'user_id', 2002::smallint) AS smallint, bloom_index_contains('events', 'user_id', 2002::bigint) AS bigint;
SELECT bloom_index_contains_each('events', 'user_id', '{1001,-1,NULL,2002}'::int[]) AS flat, bloom_index_contains_each('events', 'user_id', '[0:1][2:2]={{1001},{-1}}'::int[]) AS nested,
       bloom_index_contains_each('events', 'user_id', '{}'::int[]) AS empty;
SELECT bool_and(bloom_index_contains('events', 'user_id', user_id)) AS all_of_them FROM events;
SELECT bool_and(b) AS all_at_once FROM unnest(bloom_index_contains_each('events', 'user_id', (SELECT array_agg(user_id) FROM events))) b;
SELECT bloom_index_partitions('events', 'user_id', 2002) ORDER BY 1;
SELECT bloom_index_partitions('events_3', 'user_id', 3003) ORDER BY 1;
SELECT bloom_index_partitions('events', 'user_id', -1);

-- an expression is specified by the name of its index, also with nested partitions
SELECT bloom_index_contains('events', 'events_lower', 'note 77') AS yes, bloom_index_contains('events', 'events_lower', 'Note 77') AS no;
SELECT bloom_index_partitions('events', 'events_lower', 'note 79');

-- bloom_find returns the rows of the query, with the columns of the table
SELECT * FROM bloom_find(NULL::events, 'user_id', 1001) ORDER BY id;
SELECT * FROM events WHERE user_id = 1001 ORDER BY id;
SELECT count(*) FROM generate_series(0, 4000, 13) n, LATERAL (SELECT * FROM bloom_find(NULL::events, 'user_id', n) EXCEPT ALL SELECT * FROM events WHERE user_id = n) x;
SELECT count(*) FROM generate_series(0, 4000, 13) n, LATERAL (SELECT * FROM events WHERE user_id = n EXCEPT ALL SELECT * FROM bloom_find(NULL::events, 'user_id', n)) x;
SELECT (bloom_find(NULL::events_2, 'user_id', 1001)).note ORDER BY 1;
SELECT count(*) FROM bloom_find(NULL::events, 'user_id', NULL::int);
SELECT count(*) FROM bloom_find(NULL::events, NULL, 5);
ALTER TABLE events ADD extra int DEFAULT 7, DROP note;
SELECT * FROM bloom_find(NULL::events, 'user_id', 1001) ORDER BY id;
CREATE TABLE padded (c char(10), n int);
INSERT INTO padded VALUES ('ab', 1), ('cd', 2);
CREATE INDEX ON padded USING bloomfilter (c);
SELECT * FROM bloom_find(NULL::padded, 'c', 'ab   ');

-- names that need quotes, and a search_path with traps
CREATE TABLE "odd ""table" ("odd ""column" int, "SELECT" text);
CREATE INDEX ON "odd ""table" USING bloomfilter ("odd ""column");
INSERT INTO "odd ""table" VALUES (1, 'one'), (2, 'two');
CREATE FUNCTION trap(int, int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = trap);
SET search_path = index_functions, public, pg_catalog;
SELECT * FROM bloom_find(NULL::"odd ""table", 'odd "column', 2);
SET search_path = index_functions, public;
DROP OPERATOR index_functions.= (int, int);

-- an exported filter has the same keys, and all functions accept it
SELECT bloom_contains(f, 4::bigint) AS yes, bloom_contains(f, 1) AS no, f = f::text::bloom AS printed, f = f::bytea::bloom AS bytes,
       abs(bloom_cardinality(f) - 250) < 5 AS counted, (bloom_stats(f)).layers, bloom_fpp(f) < 0.001 AS fpp
FROM bloom_index_export('events_1_user_id_idx') f;
SELECT bool_and(bloom_contains(f, user_id)) AS all_of_them FROM events_2, bloom_index_export('events_2_user_id_idx') f;
CREATE TABLE layered (k text);
CREATE INDEX layered_k ON layered USING bloomfilter (k) WITH (fpp = 0.05);
INSERT INTO layered SELECT 'key' || n FROM generate_series(1, 200000) n;
SELECT layers > 1 AS has_layers FROM bloom_index_stats('layered_k');
SELECT bool_and(bloom_contains(f, k)) AS all_of_them, (SELECT f = f::text::bloom FROM bloom_index_export('layered_k') f) AS valid FROM layered, bloom_index_export('layered_k') f;
SELECT count(*) FILTER (WHERE bloom_index_contains('layered', 'k', 'no' || n)) < 0.055 * 50000 AS index_as_promised, count(*) FILTER (WHERE bloom_contains(f, 'no' || n)) < 0.055 * 50000 AS export_as_promised
FROM generate_series(1, 50000) n, bloom_index_export('layered_k') f;
SELECT bloom_contains(bloom_add(f, 'another'), 'another') AS added, bloom_contains(f | bloom_agg('third'::text), 'key5') AS united FROM bloom_index_export('layered_k') f GROUP BY f;

-- statistics: stale keys and advice
ANALYZE layered;
SELECT stale < 0.05 AS fresh, advice FROM bloom_index_stats('layered_k');
DELETE FROM layered WHERE k < 'key2';
SELECT stale < 0.05 AS not_known_yet FROM bloom_index_stats('layered_k');
VACUUM ANALYZE layered;
SELECT round(stale::numeric, 1) AS stale, advice FROM bloom_index_stats('layered_k');
-- a rebuilt index still has rows that an old snapshot may see, such as that of an autovacuum
DO $$
BEGIN
  FOR i IN 1 .. 300 LOOP
    REINDEX INDEX layered_k;
    EXIT WHEN (SELECT stale < 0.05 FROM bloom_index_stats('layered_k'));
    PERFORM pg_sleep(0.1);
  END LOOP;
END $$;
SELECT stale < 0.05 AS fresh, layers, advice FROM bloom_index_stats('layered_k');
CREATE TABLE never_analyzed (k int) WITH (autovacuum_enabled = off);
CREATE INDEX never_analyzed_k ON never_analyzed USING bloomfilter (k);
INSERT INTO never_analyzed SELECT generate_series(1, 10);
SELECT keys, stale FROM bloom_index_stats('never_analyzed_k');

-- the result is true wherever no index can rule out the key
CREATE TABLE mixed (k int, day int) PARTITION BY LIST (day);
CREATE TABLE mixed_1 PARTITION OF mixed FOR VALUES IN (1);
CREATE TABLE mixed_2 PARTITION OF mixed FOR VALUES IN (2);
CREATE INDEX mixed_1_k ON mixed_1 USING bloomfilter (k);
SELECT bloom_index_contains('mixed_1', 'k', 5) AS no, bloom_index_contains('mixed', 'k', 5) AS maybe;
SELECT bloom_index_partitions('mixed', 'k', 5);
CREATE INDEX mixed_2_k ON mixed_2 USING bloomfilter (k) WHERE k > 10;
SELECT bloom_index_contains('mixed_2', 'k', 5) AS partial;
CREATE INDEX mixed_2_k2 ON mixed_2 USING bloomfilter (k);
SELECT bloom_index_contains('mixed', 'k', 5) AS no;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'mixed_2_k2'::regclass;
SELECT bloom_index_contains('mixed', 'k', 5) AS not_valid, (SELECT advice FROM bloom_index_stats('mixed_2_k2'));
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'mixed_2_k2'::regclass;
CREATE EXTENSION postgres_fdw;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
CREATE FOREIGN TABLE mixed_3 PARTITION OF mixed FOR VALUES IN (3) SERVER elsewhere;
SELECT bloom_index_contains('mixed', 'k', 5) AS foreign;
SELECT bloom_index_partitions('mixed', 'k', 5);
DROP FOREIGN TABLE mixed_3;
CREATE TABLE parent (k int);
CREATE INDEX parent_k ON parent USING bloomfilter (k);
SELECT bloom_index_contains('parent', 'k', 5) AS no;
CREATE TABLE child () INHERITS (parent);
INSERT INTO child VALUES (5);
SELECT bloom_index_contains('parent', 'k', 5) AS child, bloom_index_contains('parent', 'k', 6) AS without_index;
CREATE INDEX child_k ON child USING bloomfilter (k);
SELECT bloom_index_contains('parent', 'k', 5) AS child, bloom_index_contains('parent', 'k', 6) AS with_index;
SELECT * FROM bloom_find(NULL::parent, 'k', 5);

-- changes within a transaction are visible, even to a single call site
CREATE FUNCTION changes() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text := '';
BEGIN
  FOR i IN 1 .. 6 LOOP
    CASE i WHEN 2 THEN INSERT INTO mixed VALUES (77, 1);
           WHEN 3 THEN TRUNCATE mixed;
           WHEN 4 THEN DROP INDEX mixed_1_k;
           WHEN 5 THEN CREATE INDEX mixed_1_k ON mixed_1 USING bloomfilter (k);
           WHEN 6 THEN CREATE TABLE mixed_4 PARTITION OF mixed FOR VALUES IN (4);
           ELSE NULL;
    END CASE;
    result := result || ' ' || bloom_index_contains('mixed', 'k', 77);
  END LOOP;
  RETURN result;
END $$;
SELECT changes();

-- an index that may lack rows cannot be exported, unless it is a partial index
SELECT bloom_contains(bloom_index_export('mixed_2_k'), 5) AS not_in_the_partial_index;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'mixed_2_k2'::regclass;
SELECT outcome('SELECT bloom_index_export(''mixed_2_k2'')');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'mixed_2_k2'::regclass;

-- errors
SELECT call, outcome('SELECT ' || call) FROM (VALUES
  ('bloom_index_contains(''events'', ''user_id'', ''text'')'),
  ('bloom_index_contains(''events'', ''id'', 1)'),
  ('bloom_index_contains(''events'', ''nothing'', 1)'),
  ('bloom_index_contains(''events_user'', ''user_id'', 1)'),
  ('bloom_index_contains(''events'', ''events_user_id_idx'', 1)'),
  ('bloom_index_contains(''events'', ''user_id'', 1.5)'),
  ('count(*) FROM bloom_find(NULL::int, ''user_id'', 1)'),
  ('count(*) FROM bloom_find(NULL::events, ''events_lower'', ''x'')'),
  ('bloom_index_stats(''events_user'')'),
  ('bloom_index_stats(''events'')'),
  ('bloom_index_export(''pg_class_oid_index'')'),
  ('bloom_index_check(''events_user'')'),
  ('bloom_index_stats(0)'),
  ('bloom_index_contains(0, ''user_id'', 1)'),
  ('bloom_index_contains(''events'', ''ctid'', 1)')) v(call);

-- bloom_index_missing: each absent key once, in order of first appearance, without NULLs, in one dimension
CREATE TABLE partly (k int);
INSERT INTO partly SELECT generate_series(1, 1000);
CREATE INDEX ON partly USING bloomfilter (k);
SELECT bloom_index_missing('partly', 'k', '{{1,-20,2},{-30,-20,NULL}}'::int[]) AS some, bloom_index_missing('partly', 'k', '{1,2}'::bigint[]) AS none, bloom_index_missing('partly', 'k', '{}'::int[]) AS of_none,
       bloom_index_missing('partly', 'k', '{NULL}'::int[]) AS of_null, bloom_index_missing('partly', 'k', NULL::int[]) IS NULL AS is_null, pg_typeof(bloom_index_missing('partly', 'k', '{-1}'::smallint[])) AS type;
SELECT outcome('SELECT bloom_index_missing(''partly'', ''k'', ''{a}'')');
SELECT bloom_index_missing('partly', 'k', keys) = ARRAY(SELECT k FROM unnest(keys, bloom_index_contains_each('partly', 'k', keys)) WITH ORDINALITY u(k, found, o) WHERE NOT found ORDER BY o) AS as_each,
       bloom_index_missing('partly', 'k', keys) && ARRAY(SELECT k FROM partly) AS wrong, cardinality(bloom_index_missing('partly', 'k', keys)) > 1900 AS many
FROM (SELECT array_agg(n) AS keys FROM generate_series(-1000, 2000) n) x;
CREATE TABLE partly_text (k text);
INSERT INTO partly_text SELECT 'k' || n FROM generate_series(1, 1000) n;
CREATE INDEX ON partly_text USING fingerprint (k);
SELECT bloom_index_missing('partly_text', 'k', '{k1,x,y,x}') AS untyped;
DROP TABLE partly, partly_text;

-- privileges on the table or the column; under a policy the functions raise an error, and bloom_find applies the policy
SET client_min_messages = warning;
DROP ROLE IF EXISTS index_functions_reader;
CREATE ROLE index_functions_reader;
RESET client_min_messages;
GRANT USAGE ON SCHEMA index_functions TO index_functions_reader;
CREATE TABLE secrets (k int, l int, day int) PARTITION BY LIST (day);
CREATE TABLE secrets_1 PARTITION OF secrets FOR VALUES IN (1);
CREATE TABLE secrets_2 PARTITION OF secrets FOR VALUES IN (2);
CREATE INDEX secrets_k ON secrets USING bloomfilter (k);
INSERT INTO secrets SELECT n, n, 1 + n % 2 FROM generate_series(1, 100) n;
CREATE FUNCTION as_reader() RETURNS TABLE (call text, result text) LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL ROLE index_functions_reader;
  RETURN QUERY SELECT v.call, outcome('SELECT ' || v.call) FROM (VALUES
    ('bloom_index_contains(''secrets'', ''k'', 5)'), ('bloom_index_contains_each(''secrets'', ''k'', ''{5}''::int[])'),
    ('count(*) FROM bloom_index_partitions(''secrets'', ''k'', 5)'), ('count(*) FROM bloom_find(NULL::secrets, ''k'', 5)'),
    ('bloom_index_export(''secrets_1_k_idx'') IS NOT NULL'), ('(bloom_index_stats(''secrets_1_k_idx'')).layers'), ('bloom_index_check(''secrets_1_k_idx'')')) v(call);
  RESET ROLE;
END $$;
SELECT * FROM as_reader();
GRANT SELECT (k) ON secrets TO index_functions_reader;
SELECT * FROM as_reader();
-- SELECT on the parent only: bloom_find runs the plain query
GRANT SELECT ON secrets TO index_functions_reader;
SELECT * FROM as_reader();
GRANT SELECT ON secrets_1, secrets_2 TO index_functions_reader;
-- the policy of a partition does not apply to users who read the parent
ALTER TABLE secrets_2 ENABLE ROW LEVEL SECURITY;
SELECT * FROM as_reader();
SET ROLE index_functions_reader;
SELECT count(*) FROM bloom_find(NULL::secrets, 'k', 6);
SELECT count(*) FROM bloom_find(NULL::secrets, 'k', 5);
RESET ROLE;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON secrets TO index_functions_reader USING (k % 2 = 0);
SELECT * FROM as_reader();
SET ROLE index_functions_reader;
SELECT count(*) FROM bloom_find(NULL::secrets, 'k', 6);
RESET ROLE;

-- an index reveals its predicate and its expression: SELECT on all of their columns is required
CREATE TABLE staff (name text, title text, salary int);
INSERT INTO staff SELECT 'name' || n, 'title' || n, n FROM generate_series(1, 1000) n;
CREATE INDEX staff_rich ON staff USING bloomfilter (name) WHERE salary > 900;
CREATE INDEX staff_both ON staff USING bloomfilter ((name || title));
CREATE FUNCTION whole(staff) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1.name || $1.salary';
CREATE INDEX staff_row ON staff USING bloomfilter (whole(staff));
GRANT SELECT (name) ON staff TO index_functions_reader;
CREATE FUNCTION as_clerk() RETURNS TABLE (call text, result text) LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL ROLE index_functions_reader;
  RETURN QUERY SELECT v.call, outcome('SELECT ' || v.call) FROM (VALUES
    ('bloom_contains(bloom_index_export(''staff_rich''), ''name950'')'), ('(bloom_index_stats(''staff_rich'')).keys > 90'), ('bloom_index_check(''staff_rich'')'),
    ('bloom_index_contains(''staff'', ''name'', ''name950'')'), ('bloom_index_contains(''staff'', ''staff_rich'', ''name950'')'),
    ('bloom_index_contains(''staff'', ''staff_both'', ''name7title7'')'), ('bloom_index_export(''staff_both'') IS NOT NULL'),
    ('bloom_index_contains(''staff'', ''staff_row'', ''name77'')'), ('bloom_index_export(''staff_row'') IS NOT NULL')) v(call);
  RESET ROLE;
END $$;
SELECT * FROM as_clerk();
GRANT SELECT (title) ON staff TO index_functions_reader;
SELECT * FROM as_clerk();
GRANT SELECT (salary) ON staff TO index_functions_reader;
SELECT * FROM as_clerk();

-- a partition in a schema without USAGE: the same result as the query
CREATE SCHEMA index_functions_hidden;
CREATE TABLE hidden (k int, part int) PARTITION BY LIST (part);
CREATE TABLE index_functions_hidden.hidden_1 PARTITION OF hidden FOR VALUES IN (1);
CREATE INDEX ON hidden USING bloomfilter (k);
INSERT INTO hidden VALUES (5, 1);
GRANT SELECT ON hidden, index_functions_hidden.hidden_1 TO index_functions_reader;
SET ROLE index_functions_reader;
SELECT (SELECT count(*) FROM hidden WHERE k = 5) AS query, (SELECT count(*) FROM bloom_find(NULL::hidden, 'k', 5)) AS find;
RESET ROLE;

-- a table in a schema without USAGE: SELECT alone does not give access to its index by OID
CREATE TABLE index_functions_hidden.alone AS SELECT 5 AS k;
CREATE INDEX alone_k ON index_functions_hidden.alone USING bloomfilter (k);
GRANT SELECT ON index_functions_hidden.alone TO index_functions_reader;
SELECT 'index_functions_hidden.alone'::regclass::oid AS alone, 'index_functions_hidden.alone_k'::regclass::oid AS alone_k \gset
SET ROLE index_functions_reader;
SELECT outcome('SELECT k FROM index_functions_hidden.alone') AS query, outcome(format('SELECT bloom_index_contains(%s, ''k'', 5)', :alone)) AS contains,
       outcome(format('SELECT keys FROM bloom_index_stats(%s)', :alone_k)) AS stats, outcome(format('SELECT bloom_index_check(%s)', :alone_k)) AS "check",
       outcome(format('SELECT bloom_contains(bloom_index_export(%s), 5)', :alone_k)) AS export;
RESET ROLE;

-- relations that a query cannot read either: an unpopulated materialized view; specs/index_temporary.spec tests temporary tables
CREATE MATERIALIZED VIEW unpopulated AS SELECT 5 AS k WITH NO DATA;
CREATE INDEX unpopulated_k ON unpopulated USING bloomfilter (k);
SELECT call, outcome('SELECT ' || call) FROM (VALUES
  ('bloom_index_contains(''unpopulated'', ''k'', 5)'), ('bloom_index_partitions(''unpopulated'', ''k'', 5)'), ('count(*) FROM bloom_find(NULL::unpopulated, ''k'', 5)'),
  ('bloom_index_export(''unpopulated_k'')'), ('bloom_index_stats(''unpopulated_k'')'), ('bloom_index_check(''unpopulated_k'')')) v(call);
REFRESH MATERIALIZED VIEW unpopulated;
SELECT bloom_index_contains('unpopulated', 'k', 5) AS yes, bloom_index_contains('unpopulated', 'k', 6) AS no;

-- code in the index runs with the privileges and restrictions of an index build by the owner
CREATE ROLE index_functions_owner;
GRANT ALL ON SCHEMA index_functions TO index_functions_owner;
SET ROLE index_functions_owner;
CREATE TABLE owned (k int);
CREATE FUNCTION who(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN current_user || ' ' || $1; END $$;
INSERT INTO owned VALUES (1), (2);
CREATE INDEX owned_who ON owned USING bloomfilter (who(k));
RESET ROLE;
SELECT bloom_index_check('owned_who') AS as_owner, current_user = session_user AS back;
-- even if it is evaluated as a constant
SET ROLE index_functions_owner;
CREATE TABLE seen (who name);
CREATE FUNCTION note() RETURNS void LANGUAGE sql AS 'INSERT INTO index_functions.seen VALUES (current_user)';
CREATE FUNCTION noting(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM index_functions.note(); RETURN $1; EXCEPTION WHEN OTHERS THEN RETURN $1; END $$;
CREATE INDEX owned_noting ON owned USING bloomfilter ((k + noting(1)));
RESET ROLE;
\c
SET search_path = index_functions, public;
SELECT bloom_index_check('owned_noting') AS as_owner;
SELECT DISTINCT who FROM seen WHERE who <> 'index_functions_owner';
-- functions in the caller's search_path are not called
SET ROLE index_functions_owner;
CREATE FUNCTION folded(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN lower($1); END $$;
CREATE TABLE folded (k text);
INSERT INTO folded VALUES ('A');
CREATE INDEX folded_k ON folded USING bloomfilter (folded(k));
RESET ROLE;
CREATE SCHEMA index_functions_evil;
GRANT USAGE ON SCHEMA index_functions_evil TO public;
CREATE FUNCTION index_functions_evil.lower(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'evil code runs as %', current_user; END $$;
SET search_path = index_functions_evil, pg_catalog, index_functions, public;
SELECT bloom_index_check('folded_k');
SHOW search_path;
SET search_path = index_functions, public;
DROP TABLE owned, seen, folded;
DROP FUNCTION who(int), note(), noting(int), folded(text);
DROP SCHEMA index_functions_evil CASCADE;
REVOKE ALL ON SCHEMA index_functions FROM index_functions_owner;
DROP ROLE index_functions_owner;

-- bloom_find keeps its plans during a statement; changes of the tables by the same statement are followed
CREATE TABLE changing (part int, k bigint, what text) PARTITION BY LIST (part);
CREATE TABLE changing_1 PARTITION OF changing FOR VALUES IN (1);
INSERT INTO changing SELECT 1, n FROM generate_series(1, 100) n;
CREATE INDEX ON changing USING bloomfilter (k);
CREATE FUNCTION change(n int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF n = 20 THEN
    CREATE TABLE changing_2 (what text, k bigint, part int);
    ALTER TABLE changing ATTACH PARTITION changing_2 FOR VALUES IN (2);
  ELSIF n = 40 THEN
    CREATE INDEX changing_k ON changing (k);
  ELSIF n = 60 THEN
    DROP INDEX changing_k;
    ALTER TABLE changing_1 RENAME TO changing_one;
  ELSIF n = 80 THEN
    BEGIN
      PERFORM bloom_find(NULL::changing, 'k', m), 1 / (m - 5) FROM generate_series(1, 10) m;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END IF;
  RETURN n;
END $$;
SELECT count(*), sum(found.k) FROM (SELECT change(n) AS k FROM generate_series(1, 100) n OFFSET 0) keys,
  LATERAL bloom_find(NULL::changing, 'k', keys.k) found;
-- and nothing of them is left behind
SELECT count(*) AS plans_left FROM pg_backend_memory_contexts WHERE ident LIKE 'SELECT part, k, what FROM ONLY%';
DROP TABLE changing;

SET client_min_messages = warning;
DROP SCHEMA index_functions, index_functions_hidden CASCADE;
DROP ROLE index_functions_reader;
