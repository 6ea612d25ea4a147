-- P1: an index finds a key by every value that is equal to it in SQL, for every supported type

CREATE SCHEMA index_keys;
SET search_path = index_keys, public;
SET max_parallel_workers_per_gather = 0;

-- For all pairs of these values: the number of rows that a plain scan finds with "=", and how many of them an index scan or an
-- exported filter misses.  Half of the values are in the table when the index is built, half are inserted later.
CREATE FUNCTION compared(type text, given text[], OUT rows bigint, OUT missed bigint, OUT used boolean) LANGUAGE plpgsql AS $$
DECLARE
  value text;
  found bigint;
  line text;
BEGIN
  rows := 0;
  missed := 0;
  used := true;
  EXECUTE format('CREATE TEMP TABLE keys (k %s)', type);
  FOR i IN 1 .. cardinality(given) BY 2 LOOP
    EXECUTE format('INSERT INTO keys VALUES (%L)', given[i]);
  END LOOP;
  CREATE INDEX keys_k ON keys USING bloomfilter (k);
  FOR i IN 2 .. cardinality(given) BY 2 LOOP
    EXECUTE format('INSERT INTO keys VALUES (%L)', given[i]);
  END LOOP;
  FOREACH value IN ARRAY given LOOP
    SET LOCAL enable_seqscan = off;
    EXECUTE format('EXPLAIN SELECT FROM keys WHERE k = %L::%s', value, type) INTO line;
    used := used AND (line ~ 'Bitmap Heap Scan' OR type = 'boolean');	-- before 16 the planner simplifies "k = true" to "k"
    EXECUTE format('SELECT count(*) FROM keys WHERE k = %L::%s', value, type) INTO found;
    missed := missed - found;
    IF type !~ '\]$' THEN		-- PostgreSQL has no arrays of arrays
      EXECUTE format('SELECT count(*) FROM keys WHERE k = ANY (ARRAY[%L::%s])', value, type) INTO found;
    END IF;
    missed := missed - found;
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_bitmapscan = off;
    EXECUTE format('SELECT count(*) FROM keys WHERE k = %L::%s', value, type) INTO found;
    missed := missed + 2 * found;
    rows := rows + found;
    SET LOCAL enable_bitmapscan = on;
  END LOOP;
  missed := missed + bloom_index_check('keys_k');
  EXECUTE 'SELECT count(*) FROM keys WHERE NOT bloom_contains(bloom_index_export(''keys_k''), k)' INTO found;
  missed := missed + found;
  DROP TABLE keys;
END $$;

CREATE DOMAIN word AS text CHECK (value <> 'forbidden');
CREATE TYPE pair AS (a int, b text);
SELECT type, (compared(type, given)).* FROM (VALUES
  ('smallint', '{0,-1,32767,-32768}'::text[]),
  ('integer', '{0,-1,2147483647,-2147483648}'),
  ('bigint', '{0,-1,4294967296,9223372036854775807}'),
  ('real', '{0,-0,1.5,NaN,Infinity,-Infinity,0.1}'),
  ('double precision', '{0,-0,1.5,NaN,Infinity,-Infinity,0.1}'),
  ('numeric', '{0,0.00,1,1.0,1.000,1e10,10000000000.0,NaN,Infinity,0.1}'),
  ('text', '{"","a","a ","A","ä"}'),
  ('varchar(10)', '{"","a","a ","A","ä"}'),
  ('char(5)', '{"","a","a ","A","ä"}'),
  ('name', '{"","a","a ","A","ä"}'),
  ('"char"', '{"","a","A"," "}'),
  ('word', '{"","a","a ","A"}'),
  ('bytea', '{"","\\x00","\\x0000","\\xff"}'),
  ('boolean', '{t,f}'),
  ('uuid', '{00000000-0000-0000-0000-000000000000,12345678-1234-1234-1234-123456789abc}'),
  ('date', '{2026-01-01,infinity,-infinity,"0044-03-15 BC"}'),
  ('time', '{00:00,24:00,12:34:56.789}'),
  ('timetz', '{00:00+00,12:00+00,13:00+01,12:00-12}'),
  ('timestamp', '{2026-01-01,"2026-01-01 00:00:00",infinity,-infinity}'),
  ('timestamptz', '{2026-01-01 00:00+00,2026-01-01 01:00+01,infinity}'),
  ('interval', '{1 mon,30 days,720 hours,1 day,24 hours,-1 day}'),
  ('inet', '{127.0.0.1,127.0.0.1/32,127.0.0.0/8,::1}'),
  ('cidr', '{127.0.0.0/8,10.0.0.0/8}'),
  ('macaddr', '{08:00:2b:01:02:03,08002b-010203}'),
  ('macaddr8', '{08:00:2b:01:02:03:04:05,08002b0102030405}'),
  ('bit(4)', '{0000,1010}'),
  ('bit varying', '{"",0,00,1010}'),
  ('oid', '{0,1,4294967295}'),
  ('money', '{0,1.00,-1}'),
  ('xid8', '{0,1,18446744073709551615}'),
  ('pg_lsn', '{0/0,1/0,FFFFFFFF/FFFFFFFF}'),
  ('jsonb', '{"{}","1","1.0","{\"a\": 1, \"b\": 2}","{\"b\": 2.0, \"a\": 1.00}","null"}'),
  ('integer[]', '{"{}","{1}","{1,2}","{NULL}","{{1,2}}","[0:1]={1,2}"}'),
  ('text[]', '{"{}","{a}","{A}","{\"a \"}"}'),
  ('int4range', '{empty,"[1,2)","[1,1]","(0,1]","[1,)"}'),
  ('numrange', '{empty,"[1,2)","[1.0,2.00)","[1,2]"}'),
  ('int4multirange', '{"{}","{[1,2)}","{[1,1]}","{[1,2),[5,6)}"}')) v(type, given);

-- values of other types in the same operator family
CREATE TABLE numbers (s smallint, i int, l bigint, r real, d double precision, n name, t text, v varchar(20), c char(20));
INSERT INTO numbers SELECT n, n, n, n / 2.0, n / 2.0, 'key' || n, 'key' || n, 'key' || n, 'key' || n FROM generate_series(1, 300) n;
CREATE INDEX ON numbers USING bloomfilter (s);
CREATE INDEX ON numbers USING bloomfilter (i);
CREATE INDEX ON numbers USING bloomfilter (l);
CREATE INDEX ON numbers USING bloomfilter (r);
CREATE INDEX ON numbers USING bloomfilter (d);
CREATE INDEX ON numbers USING bloomfilter (n);
CREATE INDEX ON numbers USING bloomfilter (t);
CREATE INDEX ON numbers USING bloomfilter (v);
CREATE INDEX ON numbers USING bloomfilter (c);
ANALYZE numbers;
CREATE FUNCTION lookup(col text, value text, OUT rows bigint, OUT used boolean) LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  SET LOCAL enable_seqscan = off;
  EXECUTE format('EXPLAIN SELECT FROM numbers WHERE %I = %s', col, value) INTO line;
  used := line ~ 'Bitmap Heap Scan';
  EXECUTE format('SELECT count(*) FROM numbers WHERE %I = %s', col, value) INTO rows;
END $$;
SELECT value, string_agg(col || ':' || (f).rows || CASE WHEN (f).used THEN '' ELSE ' (not by index)' END, ' ' ORDER BY col) AS found
FROM (SELECT value, col, lookup(col, value) AS f
      FROM (VALUES ('77::smallint'), ('77'), ('77::bigint')) v(value), unnest('{s,i,l}'::text[]) col
      UNION ALL SELECT value, col, lookup(col, value) FROM (VALUES ('77.5::real'), ('77.5::float8')) v(value), unnest('{r,d}'::text[]) col
      UNION ALL SELECT value, col, lookup(col, value)
      FROM (VALUES ('''key77'''), ('''key77''::text'), ('''key77''::varchar'), ('''key77''::name'), ('''key77''::char(20)'), ('''key77''::word')) v(value),
           unnest('{n,t,v,c}'::text[]) col) x
GROUP BY value ORDER BY value;

-- dates and timestamps are in different operator families: neither is looked up by the hash of the other
CREATE TABLE dates AS SELECT date '2026-01-01' + n AS d, timestamp '2026-01-01' + n * interval '1 day' AS t FROM generate_series(0, 9) n;
CREATE INDEX ON dates USING bloomfilter (d);
CREATE INDEX ON dates USING bloomfilter (t);
SET enable_seqscan = off;
SELECT (SELECT count(*) FROM dates WHERE d = timestamp '2026-01-05') AS by_timestamp, (SELECT count(*) FROM dates WHERE t = date '2026-01-05') AS by_date;

-- NULL and ANY
CREATE TABLE nulls AS SELECT CASE WHEN n % 2 = 0 THEN n END AS k FROM generate_series(1, 100) n;
CREATE INDEX ON nulls USING bloomfilter (k);
SELECT (SELECT count(*) FROM nulls WHERE k = NULL) AS is_null, (SELECT count(*) FROM nulls WHERE k = ANY ('{2,NULL,4,1001}')) AS any,
       (SELECT count(*) FROM nulls WHERE k = ANY (NULL::int[])) AS any_of_null, (SELECT count(*) FROM nulls WHERE k = ANY ('{}')) AS any_of_none,
       (SELECT count(*) FROM nulls WHERE k = 2 AND k = 4) AS both, (SELECT count(*) FROM nulls WHERE k IN (2, 4, 6)) AS in_list,
       (SELECT count(*) FROM nulls WHERE k = ANY ('{{2,4},{6,8}}')) AS two_dimensions, (SELECT count(*) FROM nulls WHERE k IS NULL) AS nulls;

-- long, compressed and out-of-line keys
CREATE TABLE long_keys (k text);
INSERT INTO long_keys SELECT repeat(chr(97 + n % 26), n * 500) FROM generate_series(1, 40) n;
CREATE INDEX long_keys_k ON long_keys USING bloomfilter (k);
INSERT INTO long_keys SELECT string_agg(md5(n || ':' || i), '') FROM generate_series(1, 5) n, generate_series(1, 400) i GROUP BY n;
SELECT bloom_index_check('long_keys_k'), (SELECT count(*) FROM long_keys WHERE k = repeat('b', 27 * 500)) AS compressed,
       (SELECT count(*) FROM long_keys WHERE k = (SELECT string_agg(md5(3 || ':' || i), '') FROM generate_series(1, 400) i)) AS external;

-- Row types, and types that contain them, are rejected: ALTER TYPE changes stored rows, during an index build or after it.
-- Expressions of their columns are supported.
CREATE TABLE rows (k pair);
INSERT INTO rows SELECT row(n, 'b' || n)::pair FROM generate_series(1, 100) n;
\set VERBOSITY sqlstate
CREATE INDEX rows_k ON rows USING bloomfilter (k);
\set VERBOSITY default
CREATE INDEX rows_b ON rows USING bloomfilter (((k).b));
CREATE INDEX rows_both ON rows USING bloomfilter (((k).a || ' ' || (k).b));
ALTER TYPE pair ADD ATTRIBUTE c int;
INSERT INTO rows VALUES (row(101, 'b101', NULL));
SELECT (SELECT count(*) FROM rows WHERE (k).b = 'b7') AS built, (SELECT count(*) FROM rows WHERE (k).b = 'b101') AS inserted,
       (SELECT count(*) FROM rows WHERE (k).a || ' ' || (k).b = '7 b7') AS both, bloom_index_check('rows_b');
RESET enable_seqscan;

-- strings require a deterministic collation
CREATE TABLE collated (k text COLLATE "C", l text);
INSERT INTO collated SELECT 'key' || n, 'key' || n FROM generate_series(1, 100) n;
CREATE INDEX collated_k ON collated USING bloomfilter (k);
CREATE INDEX collated_l ON collated USING bloomfilter (l COLLATE "POSIX");
SET enable_seqscan = off;
SELECT (SELECT count(*) FROM collated WHERE k = 'key7') AS k, (SELECT count(*) FROM collated WHERE l = 'key7') AS other_collation,
       (SELECT count(*) FROM collated WHERE l = 'key7' COLLATE "POSIX") AS l;
RESET enable_seqscan;
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE ignoring_case (k text COLLATE ignoring, a text[] COLLATE ignoring) PARTITION BY LIST (k);
CREATE INDEX ON ignoring_case USING bloomfilter (k);
CREATE TABLE ignoring_case_1 PARTITION OF ignoring_case DEFAULT;
CREATE TABLE ignoring_case_2 (k text COLLATE ignoring, a text[] COLLATE ignoring);
CREATE INDEX ON ignoring_case_2 USING bloomfilter (k);
CREATE INDEX ON ignoring_case_2 USING bloomfilter (a);
CREATE INDEX ON ignoring_case_2 USING bloomfilter (k COLLATE "C");
-- an index that compares bytes cannot rule out strings that are equal under the column's collation
INSERT INTO ignoring_case_2 VALUES ('key');
SELECT (SELECT count(*) FROM ignoring_case_2 WHERE k = 'KEY') AS rows, bloom_index_contains('ignoring_case_2', 'k', 'KEY') AS maybe,
       (SELECT count(*) FROM ignoring_case_2 WHERE k = 'KEY' COLLATE "C") AS by_bytes;

SET client_min_messages = warning;
DROP SCHEMA index_keys CASCADE;
