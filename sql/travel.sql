-- P6: every filter that can be made can be printed, dumped, restored and sent

CREATE SCHEMA travel;
SET search_path = travel, public;

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

-- Reproducible keys: k is text, i covers the whole range of bigint.
CREATE TABLE keys AS
  SELECT n, md5(n::text) AS k,
         ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint AS i
  FROM generate_series(1, 100000) n;
ANALYZE keys;

CREATE TABLE filters AS
  SELECT 'empty' AS name, bloom_new(1000) AS f
  UNION ALL SELECT 'tiny', bloom_agg(1)
  UNION ALL SELECT 'list', bloom_agg(n, 100000) FROM generate_series(1, 500) n
  UNION ALL SELECT 'lines', bloom_agg(n, 100000) FROM generate_series(1, 50000) n
  UNION ALL SELECT 'text', bloom_agg(k) FROM keys
  UNION ALL SELECT 'strict', bloom_agg(n, null, 1e-12) FROM generate_series(1, 1000) n
  UNION ALL SELECT 'loose', bloom_agg(n, null, 0.99) FROM generate_series(1, 1000) n
  UNION ALL SELECT 'named', bloom_agg(row(n, k)) FROM keys WHERE n <= 1000
  UNION ALL SELECT 'server', bloom_agg(array[n::text]::citext[]) FROM generate_series(1, 1000) n;

SELECT name, f::text::bloom = f AS text, f::bytea::bloom = f AS bytea FROM filters ORDER BY name;

-- COPY in text and binary format
\copy filters TO 'results/filters.txt'
\copy filters TO 'results/filters.bin' WITH (FORMAT binary)
CREATE TABLE copied (name text, f bloom);
\copy copied FROM 'results/filters.txt'
\copy copied FROM 'results/filters.bin' WITH (FORMAT binary)
SELECT filters.name, count(*), bool_and(copied.f = filters.f) AS same FROM filters JOIN copied USING (name) GROUP BY 1 ORDER BY 1;

-- the text form has no backslashes and nothing to escape
SELECT bool_and(f::text ~ '^[A-Za-z0-9+/]+=*$') FROM filters;

-- binary rows that are not filters are rejected, and COPY keeps no other rows
CREATE TABLE raw AS SELECT name, f::bytea AS f FROM filters UNION ALL SELECT 'bad', set_byte(f::bytea, 16, 7) FROM filters WHERE name = 'list';
\copy (SELECT * FROM raw WHERE name <> 'bad') TO 'results/raw.bin' WITH (FORMAT binary)
\copy (SELECT * FROM raw) TO 'results/bad.bin' WITH (FORMAT binary)
CREATE TABLE received (name text, f bloom);
\copy received FROM 'results/bad.bin' WITH (FORMAT binary)
SELECT count(*) AS after_bad FROM received;
\copy received FROM 'results/raw.bin' WITH (FORMAT binary)
SELECT count(*) AS received, bool_and(received.f = filters.f) AS same FROM received JOIN filters USING (name);

-- every storage option of a column
CREATE TABLE kept (name text, external bloom, main bloom, extended bloom, plain_array bloom[]);
ALTER TABLE kept ALTER main SET STORAGE main, ALTER extended SET STORAGE extended;
INSERT INTO kept SELECT name, f, f, f, array[f, null, f] FROM filters;
SELECT count(*) AS rows, bool_and(external = f AND main = f AND extended = f AND plain_array[1] = f AND plain_array[3] = f) AS same
FROM kept JOIN filters USING (name);
SELECT bool_and(bloom_contains(main, n) AND bloom_contains(external, n) AND bloom_contains(extended, n) AND bloom_contains(plain_array[3], n)) AS found
FROM kept, generate_series(1, 50000, 77) n WHERE name = 'lines';

-- equality, DISTINCT, GROUP BY, hash join, hash index, hash partitioning
SELECT count(*) AS filters FROM (SELECT DISTINCT f FROM (SELECT f FROM filters UNION ALL SELECT f FROM filters) x) y;
SELECT count(*) AS filters FROM (SELECT f FROM filters UNION SELECT f FROM filters) x;
SELECT f = f AS eq, f <> f AS ne, f = bloom_new(1001) AS other FROM filters WHERE name = 'empty';
SELECT count(*) FROM (SELECT f FROM kept JOIN filters ON f = external GROUP BY f) x;
CREATE INDEX ON filters USING hash (f);
SET enable_seqscan = off;
SELECT name FROM filters WHERE f = (SELECT main FROM kept WHERE name = 'named');
RESET enable_seqscan;
CREATE TABLE spread (f bloom) PARTITION BY HASH (f);
CREATE TABLE spread_0 PARTITION OF spread FOR VALUES WITH (modulus 1, remainder 0);
INSERT INTO spread SELECT f FROM filters;
SELECT outcome('SELECT count(*) FROM (SELECT f FROM filters ORDER BY f) x');
