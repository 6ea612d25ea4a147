-- Strings in databases of other encodings: they are hashed in UTF-8, or by their bytes if they have no UTF-8 form

\set regression :DBNAME
SET client_min_messages = warning;
DROP DATABASE IF EXISTS bloomfilter_latin1;
DROP DATABASE IF EXISTS bloomfilter_win1252;
DROP DATABASE IF EXISTS bloomfilter_euc_jp;
CREATE DATABASE bloomfilter_latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C';
CREATE DATABASE bloomfilter_win1252 TEMPLATE template0 ENCODING 'WIN1252' LOCALE 'C';
CREATE DATABASE bloomfilter_euc_jp TEMPLATE template0 ENCODING 'EUC_JP' LOCALE 'C';

-- results that the other databases must reproduce
SELECT bloom_hash('plain') AS plain, bloom_hash(chr(228)) AS umlaut, bloom_hash(chr(8364)) AS euro, bloom_hash(chr(26085)) AS sun, bloom_hash(jsonb_build_object(chr(228), chr(228))) AS json;

\c bloomfilter_latin1
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SELECT bloom_hash('plain') AS plain, bloom_hash(chr(228)) AS umlaut, bloom_hash(jsonb_build_object(chr(228), chr(228))) AS json;
-- short strings are converted in a buffer on the stack, long ones are not
SELECT bloom_hash(repeat(chr(228), n)) = bloom_hash(repeat(chr(228), n - 1) || chr(228) || '  ') AS same, bloom_hash(repeat(chr(228), n)) = bloom_hash(repeat(chr(228), n + 1)) AS other
FROM (VALUES (254), (255), (256), (257), (5000)) v(n);
\c bloomfilter_win1252
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SET enable_seqscan = off;
SELECT bloom_hash('plain') AS plain, bloom_hash(convert_from('\xe4', 'WIN1252')) AS umlaut, bloom_hash(convert_from('\x80', 'WIN1252')) AS euro;
CREATE TABLE keys (n serial, k text, j jsonb);
INSERT INTO keys (k) SELECT convert_from(set_byte('\x00', 0, n), 'WIN1252') FROM generate_series(1, 135) n;
SELECT convert_to(k, 'UTF8') FROM keys WHERE n = 129;
CREATE INDEX keys_k ON keys USING bloomfilter (k);
CREATE INDEX keys_j ON keys USING bloomfilter (j);
INSERT INTO keys (k) SELECT convert_from(set_byte('\x00', 0, n), 'WIN1252') FROM generate_series(136, 255) n;
UPDATE keys SET j = to_jsonb(k);
SELECT count(*) AS text_keys FROM keys a, LATERAL (SELECT FROM keys b WHERE b.k = a.k OFFSET 0) x;
SELECT count(*) AS json_keys FROM keys a, LATERAL (SELECT FROM keys b WHERE b.j = a.j OFFSET 0) x;
SELECT bloom_index_check('keys_k'), bloom_index_check('keys_j'), (SELECT bool_and(bloom_contains(f, k)) FROM keys, (SELECT bloom_agg(k) AS f FROM keys) x) AS as_value;

\c bloomfilter_euc_jp
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SET enable_seqscan = off;
SELECT bloom_hash('plain') AS plain, bloom_hash(convert_from('\xc6fc', 'EUC_JP')) AS sun;
CREATE TABLE keys AS SELECT convert_from(set_byte(set_byte('\x0000', 0, a), 1, b), 'EUC_JP') AS k FROM generate_series(161, 254) a, generate_series(161, 254) b;
SELECT convert_to(k, 'UTF8') FROM keys WHERE k = convert_from('\xa9a1', 'EUC_JP');
CREATE INDEX keys_k ON keys USING bloomfilter (k);
INSERT INTO keys SELECT k || 'x' FROM keys;
SELECT count(*) AS keys FROM keys;
SELECT bloom_index_check('keys_k'), (SELECT bool_and(bloom_contains(f, k)) FROM keys, (SELECT bloom_agg(k) AS f FROM keys) x) AS as_value;
-- few different strings have the same hash
SELECT count(DISTINCT bloom_hash(k)) > 17600 AS hashes FROM keys;

\c :regression
DROP DATABASE bloomfilter_latin1;
DROP DATABASE bloomfilter_win1252;
DROP DATABASE bloomfilter_euc_jp;
