--
-- Filter sets: bloom_set_create, bloom_set_add, bloom_set_contains and so on.
--
-- A set with an exact table beside it.
--
SELECT bloom_set_create('seen', capacity => 20000, fpp => 0.001);
SELECT bloom_set_add('seen', 'message 4711');
SELECT bloom_set_add('seen', 'message 4711');
SELECT bloom_set_add('seen', NULL::text);
SELECT bloom_set_add_all('seen', ARRAY['a', 'b', 'a', NULL]);
SELECT bloom_set_add_all('seen', ARRAY['b', 'c', 'message 4711']);
SELECT bloom_set_add_all('seen', '{}'::text[]), bloom_set_add_all('seen', ARRAY[NULL]::text[]), bloom_set_add_all('seen', '{d,a}');
SELECT bloom_set_contains('seen', 'message 4711'), bloom_set_contains('seen', 'z'), bloom_set_contains('seen', NULL::text);
SELECT bloom_set_contains_each('seen', ARRAY['a', 'z', NULL]), bloom_set_contains_each('seen', '{{a,z},{b,y}}'::text[]);
SELECT bloom_set_contains_each('seen', '{}'::text[]);
SELECT slots, capacity, cardinality, grown, target_fpp, key_class, expiry, steps, advice FROM bloom_set_stats('seen');

-- every key of the table is found, also after the set has grown to five times its capacity
CREATE TABLE exact (k text PRIMARY KEY);
INSERT INTO exact SELECT 'key ' || n FROM generate_series(1, 100000) n;
SELECT count(*) FILTER (WHERE bloom_set_add('seen', k)) > 990 AS nearly_all FROM (SELECT k FROM exact ORDER BY k LIMIT 1000) x;
SELECT cardinality(bloom_set_add_all('seen', array_agg(k ORDER BY k))) BETWEEN 98500 AND 99000 AS new FROM exact;
SELECT count(*) FROM exact WHERE NOT bloom_set_contains('seen', k);
SELECT count(*) FROM (SELECT unnest(bloom_set_contains_each('seen', array_agg(k))) AS there FROM exact) x WHERE NOT there;
SELECT grown > 1000 AS grown, cardinality BETWEEN 97000 AND 103000 AS about_100000, fpp < 0.001 AS fpp, advice FROM bloom_set_stats('seen');
SELECT count(*) < 100 AS few_false_positives
FROM (SELECT unnest(bloom_set_contains_each('seen', array_agg('absent ' || n))) AS there FROM generate_series(1, 100000) n) x WHERE there;

-- a row per slot, in an ordinary table
SELECT count(*), min(slot), max(slot) FROM seen;
SELECT count(*) FROM exact JOIN seen ON slot = bloom_hash(k) & 1023 WHERE NOT bloom_contains(filter, k);

--
-- Transactions
--
BEGIN;
SELECT bloom_set_add('seen', 'rolled back');
SELECT bloom_set_contains('seen', 'rolled back');
SAVEPOINT s;
SELECT bloom_set_add('seen', 'rolled back, too');
ROLLBACK TO s;
SELECT bloom_set_contains('seen', 'rolled back, too');
ROLLBACK;
SELECT bloom_set_contains('seen', 'rolled back'), bloom_set_add('seen', 'rolled back, too');

-- a read-only transaction can test, but not add a new key
BEGIN READ ONLY;
SELECT bloom_set_contains('seen', 'key 1'), bloom_set_add('seen', 'key 1');
SELECT bloom_set_add('seen', 'read only');
ROLLBACK;

-- testing is STABLE: it does not see what its own statement adds
SELECT bloom_set_add('seen', 'now') AS added, bloom_set_contains('seen', 'now') AS seen;

--
-- The class of the keys is fixed
--
SELECT bloom_set_add('seen', 4711);
SELECT bloom_set_contains_each('seen', ARRAY[1, 2]);
SELECT bloom_set_create('numbers', 1000, key_type => 'integer');
SELECT bloom_set_add('numbers', 1::smallint), bloom_set_add('numbers', 1::bigint), bloom_set_add('numbers', 1);
SELECT bloom_set_contains('numbers', 1::bigint), bloom_set_contains('numbers', 2::smallint);
SELECT bloom_set_add('numbers', 'one');
CREATE TYPE weekday AS ENUM ('Monday', 'Tuesday');
SELECT bloom_set_create('days', 10, key_type => 'weekday');
SELECT bloom_set_add('days', 'Monday'::weekday), bloom_set_contains('days', 'Monday'::weekday), bloom_set_contains('days', 'Tuesday'::weekday);
SELECT bloom_set_add('days', 'Monday');
SELECT bloom_set_create('records', 10, key_type => 'record');
SELECT bloom_set_create('none', 10, key_type => 0);
-- arrays where keys were meant
SELECT bloom_set_add('seen', ARRAY['a', 'b']);
SELECT bloom_set_contains('numbers', ARRAY[1]);

--
-- Parameters
--
SELECT bloom_set_create('bad', 0);
SELECT bloom_set_create('bad', 10, fpp => 1);
SELECT bloom_set_create(NULL, 10);
SELECT bloom_set_create('bad', NULL);
SELECT bloom_set_create('bad', 10, key_type => NULL);
SELECT bloom_set_create('bad', 10, expiry => '0 days');
SELECT bloom_set_create('bad', 10, expiry => '-1 day');
SELECT bloom_set_create('bad', 10, expiry => '300000 years');
SELECT bloom_set_create('bad', 10, expiry => '1 day', steps => 0);
SELECT bloom_set_create('bad', 10, expiry => '1 day', steps => 61);
SELECT bloom_set_create('bad', 10, steps => 3);
-- the filters of a slot share the fpp, of which each needs at least 1e-12
SELECT bloom_set_create('bad', 10, fpp => 6e-11, expiry => '1 day', steps => 60);
SELECT bloom_set_create('seen', 10);
SELECT bloom_set_create('nowhere.seen', 10);
SELECT bloom_set_create('db.public.seen', 10);
SELECT bloom_set_create('a"b', 10);
SELECT bloom_set_create('"A ""set"""', 10);
SELECT bloom_set_add('"A ""set"""', 'x'), bloom_set_contains('"A ""set"""', 'x');
SELECT bloom_set_add('exact', 'x');
SELECT bloom_set_stats('exact_pkey');
SELECT bloom_set_contains(0, 'x');
SELECT slots, capacity FROM bloom_set_create('large', 100000000) AS s, bloom_set_stats(s);
DROP TABLE large, "A ""set""", days, numbers;

--
-- The definition is that of the table
--
SELECT bloom_set_create('named', 100);
SELECT bloom_set_add('named', 'x');
CREATE SCHEMA set_schema;
ALTER TABLE named SET SCHEMA set_schema;
ALTER TABLE set_schema.named RENAME TO renamed;
ALTER TABLE set_schema.renamed ADD COLUMN note text;
SELECT bloom_set_contains('set_schema.renamed', 'x'), bloom_set_add('set_schema.renamed', 'y'), bloom_set_add('set_schema.renamed', 'y');
-- another table of the old name does not matter
SELECT bloom_set_create('named', 100);
SELECT bloom_set_contains('named', 'x'), bloom_set_contains('set_schema.renamed', 'y');
SET search_path = pg_temp, set_schema;
SELECT public.bloom_set_contains('renamed', 'x'), public.bloom_set_add('public.named', 'x');
RESET search_path;
-- schemas that exchange their names, and the extension in another schema
CREATE SCHEMA other;
SELECT bloom_set_create('other.renamed', 100);
SELECT bloom_set_add('other.renamed', 'z'), bloom_set_contains('set_schema.renamed', 'z');
ALTER SCHEMA set_schema RENAME TO third;
ALTER SCHEMA other RENAME TO set_schema;
SELECT bloom_set_contains('third.renamed', 'x'), bloom_set_contains('set_schema.renamed', 'x');
SELECT bloom_set_add('third.renamed', 'z'), bloom_set_add('set_schema.renamed', 'z');
SELECT bloom_set_contains_each('third.renamed', '{x,y,z}'), bloom_set_contains_each('set_schema.renamed', '{x,y,z}');
ALTER EXTENSION bloomfilter SET SCHEMA third;
SELECT third.bloom_set_add('third.renamed', 'a'), third.bloom_set_contains('third.renamed', 'a') AS statement_before;
ALTER SCHEMA third RENAME TO fourth;
SELECT fourth.bloom_set_contains('fourth.renamed', 'a'), fourth.bloom_set_add('fourth.renamed', 'b'), fourth.bloom_set_add('fourth.renamed', 'b');
ALTER EXTENSION bloomfilter SET SCHEMA public;
SELECT bloom_set_add('fourth.renamed', 'c'), bloom_set_contains('fourth.renamed', 'b');
DROP SCHEMA set_schema CASCADE;
DROP SCHEMA fourth CASCADE;
-- tables that are dropped, and whose definition changes in a transaction
DO $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    PERFORM bloom_set_create('brief', 10, expiry => make_interval(days => i));
    PERFORM bloom_set_add('brief', 'x');
    ALTER TABLE brief RENAME TO shortly;
    ASSERT NOT bloom_set_add('shortly', 'x') AND bloom_set_add('shortly', 'y');
    DROP TABLE shortly;
  END LOOP;
END $$;
-- a temporary set of the same name is another one
SELECT bloom_set_create('pg_temp.hidden', 100);
SELECT bloom_set_add('hidden', 'x');
SELECT bloom_set_create('hidden', 100);
SELECT bloom_set_contains('pg_temp.hidden', 'x'), bloom_set_contains('public.hidden', 'x'), slots - (SELECT count(*) FROM public.hidden) AS missing
FROM bloom_set_stats('public.hidden');
DROP TABLE pg_temp.hidden, public.hidden;
-- a function of the same name does not make a filter set, nor is one called, nor is an expression evaluated
CREATE FUNCTION _bloom_set(slots integer, capacity integer, empty text) RETURNS bloom
  LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'called'; RETURN bloom_new(10); END $$;
CREATE FUNCTION evil() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'called'; RETURN 1024; END $$;
SELECT bloom_set_create('genuine', 100);
SELECT bloom_set_add('genuine', 'x');
CREATE TABLE forged (slot integer, filter bloom DEFAULT _bloom_set(1024, 100, 'x'::text));
SELECT bloom_set_contains('forged', 'x');
CREATE TABLE forged_too (slot integer, filter bloom DEFAULT _bloom_set(evil(), 100::bigint, bloom_new(10)));
SELECT bloom_set_contains('forged_too', 'x');
DROP TABLE genuine, forged, forged_too;
DROP FUNCTION evil, _bloom_set(integer, integer, text);
ALTER TABLE named RENAME filter TO other;
SELECT bloom_set_contains('named', 'x');
ALTER TABLE named RENAME other TO filter;
SELECT bloom_set_contains('named', 'x');
-- columns whose values would be misread
ALTER TABLE named ALTER slot TYPE numeric;
SELECT bloom_set_contains_each('named', '{x}');
ALTER TABLE named ALTER slot TYPE integer;
SELECT bloom_set_contains_each('named', '{x}');
ALTER TABLE named RENAME slot TO n;
SELECT bloom_set_contains('named', 'x');
ALTER TABLE named RENAME n TO slot;
SELECT bloom_set_create('turning', 100, expiry => '1 day');
SELECT bloom_set_add('turning', 'x');
ALTER TABLE turning ALTER turn TYPE numeric;
SELECT bloom_set_contains('turning', 'x');
DROP TABLE turning;
ALTER TABLE named ALTER filter DROP DEFAULT;
SELECT bloom_set_contains('named', 'x');
ALTER TABLE named ALTER filter SET DEFAULT bloom_new(100);
SELECT bloom_set_contains('named', 'x');
ALTER TABLE named ALTER filter SET DEFAULT _bloom_set(1000, 100, bloom_new(100));
SELECT bloom_set_contains('named', 'x');
ALTER TABLE named ALTER filter SET DEFAULT _bloom_set(NULL, 100, bloom_new(100));
SELECT bloom_set_contains('named', 'x');
DROP TABLE named;

-- a slot of another class
BEGIN;
UPDATE seen SET filter = bloom_add(bloom_new(10), 1) WHERE slot = bloom_hash('x') & 1023;
SELECT bloom_set_contains('seen', 'x');
ROLLBACK;

--
-- A missing slot is an error, never an absent key
--
DELETE FROM seen WHERE slot = bloom_hash('key 1') & 1023;
SELECT bloom_set_contains('seen', 'key 1');
SELECT bloom_set_add('seen', 'key 1');
SELECT bloom_set_contains_each('seen', ARRAY['key 2', 'key 1']);
SELECT bloom_set_add_all('seen', ARRAY['key 2', 'key 1', 'not added']);
SELECT bloom_set_contains('seen', 'not added');
SELECT advice FROM bloom_set_stats('seen');
TRUNCATE seen;
SELECT bloom_set_add('seen', 'key 2');
SELECT bloom_set_reset('seen');
SELECT bloom_set_contains('seen', 'key 2'), bloom_set_add('seen', 'key 2'), bloom_set_add('seen', 'key 1');
SELECT bloom_set_reset('seen');
SELECT slots, cardinality, key_class, advice FROM bloom_set_stats('seen');
ALTER TABLE seen DROP CONSTRAINT seen_pkey;
INSERT INTO seen SELECT * FROM seen WHERE slot = bloom_hash('twice') & 1023;
SELECT bloom_set_contains('seen', 'twice');
SELECT bloom_set_add('seen', 'twice');
SELECT bloom_set_contains_each('seen', ARRAY['twice']);
DROP TABLE seen;

--
-- Privileges, row-level security, triggers
--
SELECT bloom_set_create('shared', 1000);
CREATE ROLE bf_reader;
CREATE ROLE bf_writer;
GRANT SELECT ON shared TO bf_reader, bf_writer;
GRANT UPDATE ON shared TO bf_writer;
SET ROLE bf_writer;
SELECT bloom_set_add('shared', 'x');
SELECT bloom_set_reset('shared');
SET ROLE bf_reader;
SELECT bloom_set_contains('shared', 'x');
SELECT bloom_set_add('shared', 'x') AS not_new;
SELECT bloom_set_add('shared', 'y');
RESET ROLE;
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
SET ROLE bf_writer;
SELECT bloom_set_contains('shared', 'x');
SELECT bloom_set_add('shared', 'x');
RESET ROLE;
CREATE POLICY reading ON shared FOR SELECT USING (true);
SET ROLE bf_writer;
SELECT bloom_set_contains('shared', 'x');
SELECT bloom_set_add('shared', 'y');
RESET ROLE;
ALTER TABLE shared DISABLE ROW LEVEL SECURITY;
CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- another call for the same set, whose definition changes meanwhile
  IF NOT bloom_set_contains('shared', 'by the trigger') THEN
    ANALYZE exact;
    PERFORM bloom_set_add('shared', 'by the trigger');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER t AFTER UPDATE ON shared FOR EACH ROW EXECUTE FUNCTION count_change();
SELECT bloom_set_add('shared', 'z');
SELECT bloom_set_contains('shared', 'z'), bloom_set_contains('shared', 'by the trigger');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER r BEFORE UPDATE ON shared FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT bloom_set_add('shared', 'refused');
SELECT bloom_set_reset('shared');
SELECT bloom_set_contains('shared', 'z');
-- the second time, its row is locked: once more is enough
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''refused''; RETURN NULL; END';
SELECT bloom_set_add('shared', 'refused');
-- a trigger that stores something else: not without the key, which would be new again
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.filter = OLD.filter; RETURN NEW; END';
SELECT bloom_set_add('shared', 'refused');
SELECT bloom_set_add_all('shared', '{refused,refused too}');
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.filter = bloom_add(NEW.filter, ''more''::text); RETURN NEW; END';
SELECT bloom_set_add('shared', 'not refused'), bloom_set_add('shared', 'not refused');
DROP TRIGGER r ON shared;
-- rules: beside the UPDATE, instead of it, and when they are gone
CREATE TABLE changes (n integer, filter bloom);
CREATE RULE also AS ON UPDATE TO shared DO ALSO INSERT INTO changes VALUES (1);
SELECT bloom_set_add('shared', 'also');
CREATE RULE nothing AS ON UPDATE TO shared DO INSTEAD NOTHING;
SELECT bloom_set_add('shared', 'nothing');
DROP RULE nothing ON shared;
SELECT bloom_set_add('shared', 'nothing'), bloom_set_contains('shared', 'also');
CREATE RULE another AS ON UPDATE TO shared DO INSTEAD INSERT INTO changes VALUES (2) RETURNING *;
SELECT bloom_set_add('shared', 'another');
DROP RULE another ON shared;
SELECT bloom_set_add('shared', 'another'), bloom_set_add('shared', 'another');
DROP TABLE shared, changes;
DROP ROLE bf_reader, bf_writer;

-- a temporary set, a view over one, a partitioned table
SELECT bloom_set_create('pg_temp.mine', 100);
SELECT bloom_set_add('mine', 'x'), bloom_set_add('mine', 'x');
CREATE TEMP VIEW v AS SELECT * FROM mine;
SELECT bloom_set_add('v', 'x');
-- with the default of a set, a view and a partitioned table are one
SELECT 'ALTER VIEW v ALTER filter SET DEFAULT ' || pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'mine'::regclass \gexec
SELECT bloom_set_add('v', 'x'), bloom_set_add('v', 'y'), bloom_set_add('v', 'y');
SELECT bloom_set_contains('mine', 'y');
CREATE TABLE parted (LIKE mine INCLUDING DEFAULTS, PRIMARY KEY (slot)) PARTITION BY HASH (slot);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT bloom_set_reset('parted');
SELECT cardinality(bloom_set_add_all('parted', array_agg('key ' || n))) > 95 AS new FROM generate_series(1, 100) n;
SELECT count(*) FROM generate_series(1, 100) n WHERE NOT bloom_set_contains('parted', 'key ' || n);
-- rows of a child are rows of its parent
CREATE TEMP TABLE child () INHERITS (mine);
INSERT INTO child SELECT slot, filter FROM ONLY mine WHERE slot = bloom_hash('x') & 1023;
SELECT bloom_set_contains('mine', 'x');
SELECT bloom_set_add('mine', 'x');
DROP TABLE child, parted;
-- ANALYZE makes no statistics of filters, which would take long
ANALYZE mine;
SELECT attname FROM pg_stats WHERE tablename = 'mine';

--
-- Expiry.  The step of a slot is set back instead of waiting.
--
SELECT bloom_set_create('recent', 1000, expiry => '8 days', steps => 4);
SELECT expiry, steps, target_fpp, key_class FROM bloom_set_stats('recent');
SELECT bloom_set_add('recent', 'a'), bloom_set_add('recent', 'a');
-- what is reported after n steps of two days
CREATE FUNCTION pass(steps integer) RETURNS void LANGUAGE sql AS 'UPDATE recent SET turn = turn - steps';
SELECT pass(1);
SELECT bloom_set_contains('recent', 'a'), bloom_set_add('recent', 'a') AS again, bloom_set_add('recent', 'b');
SELECT pass(3);
SELECT bloom_set_contains_each('recent', '{a,b,c}');
SELECT pass(1);
SELECT bloom_set_contains_each('recent', '{a,b,c}'), cardinality FROM bloom_set_stats('recent');
SELECT bloom_set_add_all('recent', '{a,b,c}');
SELECT pass(3);
SELECT bloom_set_contains_each('recent', '{a,b,c}'), bloom_set_add_all('recent', '{d}');
SELECT pass(1);
SELECT bloom_set_contains_each('recent', '{a,b,c,d}');
SELECT pass(100);
SELECT bloom_set_contains_each('recent', '{a,b,c,d}'), bloom_set_add('recent', 'a');
-- a clock that was set back: nothing is forgotten, and the slot's own step counts
SELECT pass(-10);
SELECT bloom_set_contains_each('recent', '{a,b}'), bloom_set_add('recent', 'e'), bloom_set_add('recent', 'a');
SELECT pass(14);
SELECT bloom_set_contains_each('recent', '{a,e}');
SELECT pass(1);
SELECT bloom_set_contains_each('recent', '{a,e}');
-- each slot has at most one filter per step and one more
SELECT max(cardinality(filters)) FROM recent;
-- the first and the last step of all; a difference of steps that is no bigint, as if by a step of 1 us
UPDATE recent SET turn = '-9223372036854775808'::bigint;
SELECT bloom_set_contains('recent', 'e'), bloom_set_add('recent', 'e'), bloom_set_contains('recent', 'e') AS statement_before;
UPDATE recent SET turn = 9223372036854775807;
SELECT bloom_set_contains('recent', 'e'), bloom_set_add('recent', 'f'), bloom_set_add('recent', 'f');
SELECT bloom_set_create('brief', 10, expiry => '4 microseconds');
BEGIN;
UPDATE brief SET turn = '-9223372036854775808'::bigint + (extract(epoch FROM now() - '2000-01-01 00:00+00'::timestamptz) * 1000000)::bigint - 4294967296 + 1;
SELECT count(*) FROM generate_series(1, 100) n WHERE bloom_set_add('brief', n::text);
ROLLBACK;
-- a slot without filters, in a step to come
UPDATE brief SET filters = '{}', turn = 9223372036854775807;
SELECT bloom_set_contains('brief', 'x');
SELECT bloom_set_add('brief', 'x');
SELECT bloom_set_contains_each('brief', '{x,y}');
SELECT bloom_set_stats('brief');
DROP TABLE brief;
UPDATE recent SET filters = '{}';
SELECT bloom_set_contains('recent', 'e');
SELECT bloom_set_add('recent', 'e');
UPDATE recent SET filters = ARRAY[NULL]::bloom[];
SELECT bloom_set_contains('recent', 'e');
SELECT bloom_set_reset('recent');
SELECT bloom_set_contains('recent', 'e'), bloom_set_add('recent', 'e');
SELECT s.expiry, s.steps FROM bloom_set_create('monthly', 10, expiry => '1 month 2 days') AS name, bloom_set_stats(name) AS s;
-- many steps and a low fpp: filters are large even for one key, so a slot has some keys nevertheless
SELECT slots, bytes < 40 * 1024 * 1024 AS small, target_fpp FROM bloom_set_create('precise', 1000, fpp => 6.1e-11, expiry => '1 day', steps => 60) AS name, bloom_set_stats(name) AS s;
SELECT count(bloom_set_add('precise', n::text)) FROM generate_series(1, 3) n;
SELECT bloom_set_contains_each('precise', ARRAY['1', '2', '3', '4']);
DROP TABLE precise;

-- random keys and steps, against a table of the step in which each key was new
SELECT setseed(0.27);
SELECT bloom_set_create('lately', 2000, fpp => 0.000001, expiry => '5 hours', steps => 5);
CREATE TABLE added (k text PRIMARY KEY, step integer);
DO $$
DECLARE
  at integer := 0;
  passed integer;
  key text;
  expected boolean;
  wrong integer := 0;
BEGIN
  FOR i IN 1 .. 5000 LOOP
    IF random() < 0.02 THEN
      passed := CASE WHEN random() < 0.1 THEN 7 ELSE 1 END;
      at := at + passed;
      UPDATE lately SET turn = turn - passed;
    END IF;
    key := 'key ' || (random() * 500)::int;
    expected := EXISTS (SELECT FROM added a WHERE a.k = key AND a.step >= at - 5);
    IF random() < 0.5 THEN
      wrong := wrong + (bloom_set_contains('lately', key) <> expected)::int;
    ELSE
      wrong := wrong + (bloom_set_add('lately', key) = expected)::int;
      IF NOT expected THEN
        INSERT INTO added VALUES (key, at) ON CONFLICT (k) DO UPDATE SET step = EXCLUDED.step;
      END IF;
    END IF;
  END LOOP;
  RAISE NOTICE '% wrong in % steps', wrong, at;
END $$;
SELECT count(*) > 100 AS several FROM added WHERE step > 50;

--
-- bloom_rotate
--
CREATE TABLE feed (f bloom);
INSERT INTO feed VALUES (bloom_new(100, 0.001, max_layers => 3));
UPDATE feed SET f = bloom_add_all(f, ARRAY['day 1, a', 'day 1, b']);
UPDATE feed SET f = bloom_add(bloom_rotate(f), 'day 2');
UPDATE feed SET f = bloom_add(bloom_rotate(f), 'day 3');
SELECT bloom_contains_each(f, ARRAY['day 1, a', 'day 1, b', 'day 2', 'day 3', 'day 4']) FROM feed;
UPDATE feed SET f = bloom_rotate(f);
SELECT bloom_contains_each(f, ARRAY['day 1, a', 'day 1, b', 'day 2', 'day 3', 'day 4']) FROM feed;
SELECT l.* FROM feed, bloom_layers(f) AS l;
SELECT bloom_contains_each(bloom_rotate(f), ARRAY['day 2', 'day 3']), bloom_contains_each(bloom_rotate(bloom_rotate(f)), ARRAY['day 2', 'day 3']),
       bloom_cardinality(bloom_rotate(bloom_rotate(f))) FROM feed;
SELECT bloom_contains(bloom_add(bloom_rotate(bloom_rotate(bloom_rotate(f))), 'x'), 'x'), bloom_add(bloom_rotate(bloom_rotate(bloom_rotate(f))), 1) FROM feed;
SELECT bloom_cardinality(bloom_rotate(bloom_new(100, max_layers => 2))), bloom_rotate(NULL) IS NULL AS null;
SELECT bloom_rotate(bloom_new(100));
-- a layer of lines below an empty one, and as text and back
SELECT bloom_cardinality(f) BETWEEN 90 AND 110 AS about_100, bloom_cardinality(bloom_rotate(f)) AS dropped, f::text::bloom = f AS travels
FROM (SELECT bloom_rotate(bloom_add_all(bloom_new(100, max_layers => 2), array_agg(n))) AS f FROM generate_series(1, 100) n) x;
SELECT bloom_cardinality(bloom_rotate(bloom_rotate(f)))
FROM (SELECT bloom_add_all(bloom_new(100, max_layers => 2), array_agg(n)) AS f FROM generate_series(1, 100) n) x;
DROP FUNCTION count_change, refuse, pass;
DROP TABLE "a""b", exact, recent, monthly, lately, added, feed;
DROP TYPE weekday CASCADE;
