-- Expected results from the server, as lines of JSON for test.mjs.
\set ON_ERROR_STOP on
CREATE EXTENSION bloomfilter;
SET bytea_output = hex;

CREATE FUNCTION plan(call text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	result jsonb;
BEGIN
	EXECUTE format('SELECT to_jsonb(p) FROM %s p', call) INTO result;
	RETURN result;
EXCEPTION WHEN program_limit_exceeded THEN
	RETURN jsonb_build_object('needed', substring(sqlerrm FROM 'would need (\d+) bytes')::bigint);
END $$;

-- bloom_plan and cuckoo_plan over a grid, at the boundaries of the formulas, and for random numbers
SELECT setseed(0.17);
CREATE TABLE grid AS
SELECT n, fpp FROM
	(SELECT (10 ^ (i / 6.0))::bigint AS n FROM generate_series(0, 72) i
	 UNION VALUES (2), (3), (511), (512), (513), (1048575), (1048576), (2 ^ 40)) a,
	(SELECT (10 ^ (-i / 4.0))::float8 AS fpp FROM generate_series(1, 48) i
	 UNION VALUES (0.999::float8), (0.7), (0.5), (2e-3), (1.999e-3), (1e-5), (9.99e-6), (1e-8), (9.99e-9), (1e-12)) b
UNION SELECT (10 ^ (random() * 9))::bigint, 10 ^ (-random() * 11.9) FROM generate_series(1, 3000);
SELECT jsonb_build_object('test', 'plan', 'n', n, 'fpp', fpp,
	'bloom', plan(format('bloom_plan(%s, %s)', n, fpp)),
	'cuckoo', plan(format('cuckoo_plan(%s, %s, 0)', n, fpp)),
	'growing', plan(format('cuckoo_plan(%s, %s, 2)', n, fpp)))
FROM (SELECT * FROM grid WHERE fpp < 1 ORDER BY fpp, n) g;

-- growing filters that hold as many keys as their capacity and are not lists
SELECT jsonb_build_object('test', 'growing', 'n', n, 'fpp', p, 'bytes', bytes, 'layers', layers)
FROM (VALUES (1), (7), (50), (200), (300), (512), (700), (1000), (1500), (2200), (3000), (5000), (20000), (100000)) a(n),
	(VALUES (0.95::float8), (0.8), (0.5), (0.3), (0.2), (0.1), (0.05), (0.02), (0.01), (0.005), (0.001), (1e-5), (1e-9)) b(p),
	LATERAL (SELECT bloom_add_all(bloom_new(n, p), array_agg(k)) AS f FROM generate_series(1, n) k) c,
	bloom_stats(f)
WHERE fill > 0;

CREATE TABLE my_table (my_key bigint);
CREATE FUNCTION index_bytes(n bigint, fpp float8) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX measured ON my_table USING bloomfilter (my_key) WITH (fpp = %s, capacity = %s)', fpp, n);
	n := pg_relation_size('measured');
	DROP INDEX measured;
	RETURN n;
END $$;
SELECT jsonb_build_object('test', 'index', 'n', n, 'fpp', fpp, 'bytes', index_bytes(n, fpp))
FROM (VALUES (1), (700), (1000), (54321), (1000000), (3000000)) a(n),
	(VALUES (0.5), (0.2), (0.0316), (0.01), (0.001), (0.0001)) b(fpp);

-- fingerprint indexes of near-unique keys, where the number of buckets changes and in between
CREATE FUNCTION fingerprint_bytes(n bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE measured AS SELECT md5(n::text)::uuid AS key FROM generate_series(1, %s) n', n);
	CREATE INDEX measured_key ON measured USING fingerprint (key);
	n := pg_relation_size('measured_key');
	DROP TABLE measured;
	RETURN n;
END $$;
SELECT jsonb_build_object('test', 'fingerprint', 'n', n, 'bytes', fingerprint_bytes(n))
FROM unnest('{1,1000,5000,5067,5068,6000,10000,20000,50000,70000,100000,120000,162000,200000,300000,324000,330000,500000,1000000}'::bigint[]) n;

CREATE FUNCTION exact_bytes(n bigint, type text, key text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	exact bigint;
	btree bigint;
BEGIN
	EXECUTE format('CREATE TABLE measured AS SELECT (%s)::%s AS key FROM generate_series(1, %s) n', key, type, n);
	CREATE INDEX measured_key ON measured (key);
	btree := pg_relation_size('measured_key');
	IF n <= 10000 THEN
		EXECUTE 'SELECT pg_column_size(array_agg(key)) FROM measured' INTO exact;
	END IF;
	DROP TABLE measured;
	RETURN jsonb_build_object('test', 'exact', 'n', n, 'exact', exact, 'btree', btree);
END $$;
SELECT exact_bytes(n, type, key) || jsonb_build_object('key', name)
FROM (VALUES (1), (300), (1000), (10000), (100000), (1000000)) a(n),
	(VALUES ('bigint', 'bigint', 'n * 7919::bigint'), ('uuid', 'uuid', 'md5(n::text)'),
		('text16', 'text', 'substr(md5(n::text), 1, 16)'), ('text36', 'text', 'md5(n::text)::uuid')) b(name, type, key);

-- Filters, keys as people type them, and the results of the server.
CREATE FUNCTION asked(name text, filter text, type text, keys text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	kind text := CASE WHEN filter ~ 'cuckoo' THEN 'cuckoo' ELSE 'bloom' END;
	result jsonb;
BEGIN
	EXECUTE format($q$
		SELECT jsonb_build_object('filter', f::text, 'answers', (SELECT jsonb_agg(%1$s ORDER BY i) FROM unnest($1) WITH ORDINALITY k(key, i)),
			'hashes', (SELECT jsonb_agg(bloom_hash(key::%2$s)::text ORDER BY i) FROM unnest($1) WITH ORDINALITY k(key, i)),
			'stats', (SELECT to_jsonb(s) FROM %3$s_stats(f) s))
		FROM (%4$s) x(f)$q$,
		format(CASE kind WHEN 'cuckoo' THEN 'cuckoo_count(f, key::%s)' ELSE 'bloom_contains(f, key::%s)::int' END, type),
		type, kind, filter) INTO result USING keys;
	RETURN result || jsonb_build_object('test', 'ask', 'name', name, 'kind', kind, 'type', type, 'keys', keys);
END $$;
SELECT asked(name, filter, type, keys) FROM (VALUES
	('a list of integers', 'SELECT bloom_agg(n * 1000) FROM generate_series(1, 5) n', 'bigint', '{1000,5000,999,-1000,9223372036854775807}'::text[]),
	('lines of integers', 'SELECT bloom_agg(n * 4294967296) FROM generate_series(1, 20000) n', 'bigint',
		(SELECT array_agg((n * 2147483648)::text) FROM generate_series(1, 400) n)),
	('text', 'SELECT bloom_agg(''key '' || n, NULL, 0.2) FROM generate_series(1, 300) n', 'text',
		(SELECT array_agg('key ' || n) FROM generate_series(250, 500) n) || '{ key 1,key 1 ,Ünïcode ✓}'::text[]),
	('uuid', 'SELECT bloom_agg(md5(n::text)::uuid) FROM generate_series(1, 100) n', 'uuid',
		(SELECT array_agg(CASE WHEN n % 2 = 0 THEN md5(n::text) ELSE md5(n::text)::uuid::text END) FROM generate_series(90, 120) n)),
	('bytea', 'SELECT bloom_agg(sha256(n::text::bytea)) FROM generate_series(1, 10) n', 'bytea',
		(SELECT array_agg(sha256(n::text::bytea)::text) FROM generate_series(8, 14) n)),
	('boolean', 'SELECT bloom_agg(true)', 'boolean', '{true,false,t,f,yes,off,1}'),
	('double precision', 'SELECT bloom_agg(n / 10.0::float8) FROM generate_series(-20, 20) n', 'double precision', '{0,-0,0.1,.1,1e-1,0.7,-2,2.05,NaN,Infinity,1e300}'),
	('real', 'SELECT bloom_agg((n / 10.0)::real) FROM generate_series(-20, 20) n', 'real', '{0,0.1,0.7,-1.9,2.05,1e10}'),
	('dates', 'SELECT bloom_agg(date ''2026-01-01'' + n) FROM generate_series(0, 58) n', 'date', '{2026-01-01,2026-02-28,2026-03-01,2024-02-29,infinity}'),
	('timestamp', 'SELECT bloom_agg(timestamp ''2026-01-01'' + n * interval ''1.5 seconds'') FROM generate_series(0, 9) n', 'timestamp',
		'{2026-01-01 00:00:00,2026-01-01 00:00:01.5,2026-01-01 00:00:01}'),
	('timestamptz', 'SELECT bloom_agg(timestamptz ''2026-01-01 00:00:00+00'' + n * interval ''1 hour'') FROM generate_series(0, 9) n', 'timestamptz',
		'{2026-01-01 00:00:00Z,2026-01-01 03:00:00+02,2026-01-01 03:30:00+02}'),
	('grown to several layers', 'SELECT bloom_add_all(bloom_add_all(bloom_new(100), array_agg(n) FILTER (WHERE n <= 100)), array_agg(n)) FROM generate_series(1, 2500) n', 'bigint',
		(SELECT array_agg(n::text) FROM generate_series(2400, 2600) n)),
	('rotating', 'SELECT bloom_add_all(bloom_new(100, max_layers => 3), array_agg(n)) FROM generate_series(1, 1000) n', 'bigint',
		(SELECT array_agg(n::text) FROM generate_series(1, 1100, 10) n)),
	('a cuckoo list', 'SELECT cuckoo_agg(n % 5) FROM generate_series(1, 18) n', 'bigint', '{0,1,2,3,4,5,-1}'),
	('a cuckoo table', 'SELECT cuckoo_agg(''key '' || n, NULL, 0.1) FROM generate_series(1, 5000) n', 'text',
		(SELECT array_agg('key ' || n) FROM generate_series(4900, 5300) n)),
	('a key added 300 times', 'SELECT cuckoo_agg(1) FROM generate_series(1, 300) n', 'bigint', '{1,2}'),
	('empty', 'SELECT bloom_new(1000)', 'bigint', '{1,-9223372036854775808}'),
	('keys that only the server hashes', 'SELECT bloom_agg(n / 7.0) FROM generate_series(1, 100) n', 'numeric', '{1,1.0,2,0.5}')
	) v(name, filter, type, keys);

SELECT jsonb_build_object('test', 'example', 'filter', bloom_agg(name)) FROM unnest('{Mercury,Venus,Earth,Mars,Jupiter,Saturn,Uranus,Neptune}'::text[]) name;
INSERT INTO my_table SELECT n * 3 FROM generate_series(1, 20000) n;
