/* node-postgres returns filters as objects, in the text and binary protocols.  Needs a server (PGHOST and so on). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { bloomHash, Filter, FilterError } from '../bloomfilter.js';
import { register } from '../pg.js';

const QUERY = `SELECT bloom_agg(n) AS bloom, cuckoo_agg('user ' || n) AS cuckoo, NULL::bloom AS nothing, bloom_agg(n)::bytea AS bytes,
	ARRAY[bloom_agg(n)] AS array FROM generate_series(1, 3000) n`;

async function connected(config, use) {
	const client = new pg.Client(config);
	await client.connect();
	try {
		return await use(client);
	} finally {
		await client.end();
	}
}

function check({ bloom, cuckoo, nothing }) {
	assert.ok(bloom instanceof Filter && cuckoo instanceof Filter);
	assert.deepEqual([bloom.kind, bloom.keyClass, bloom.contains(1), bloom.contains(3000), bloom.contains(-1)], ['bloom', 'integer', true, true, false]);
	assert.deepEqual([cuckoo.kind, cuckoo.keyClass, cuckoo.count('user 7'), cuckoo.contains('nobody')], ['cuckoo', 'text', 1, false]);
	assert.equal(nothing, null);
}

for (const binary of [false, true]) {
	test(`filters in ${binary ? 'binary' : 'text'}`, () => connected({ binary }, async (client) => {
		await assert.rejects(register({ query: client.query.bind(client) }), /pg.types/);
		await register(client);
		const { rows: [row] } = await client.query({ text: QUERY, binary });
		check(row);
		assert.equal(Filter.parse(row.bytes).contains(1), true);		// bytea has the same bytes
	}));
}

test('a pool, and a schema that is not in the search path', () => connected({}, async (client) => {
	await client.query('CREATE SCHEMA IF NOT EXISTS elsewhere');
	await client.query('ALTER EXTENSION bloomfilter SET SCHEMA elsewhere');
	const pool = new pg.Pool();
	try {
		await assert.rejects(register(pool), /pass pg.types/);
		await register(pool, pg.types);
		check((await pool.query(`SET search_path = public, elsewhere; ${QUERY}`))[1].rows[0]);
	} finally {
		await pool.end();
		await client.query('ALTER EXTENSION bloomfilter SET SCHEMA public');
	}
}));

test('an aggregate state is an error of the query', () => connected({}, async (client) => {
	await register(client);
	await client.query('CREATE OR REPLACE AGGREGATE state(int) (SFUNC = _bloom_agg_transition, STYPE = bloom)');
	await assert.rejects(client.query('SELECT state(n) FROM generate_series(1, 5) n'), (error) => error instanceof FilterError && /unfinished/.test(error.message));
	assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);
}));

test('a database without the extension', () => connected({ database: 'template1' }, async (client) => {
	await assert.rejects(register(client), /not installed in this database/);
}));

test('100000 keys compared with the server, in one query', () => connected({}, async (client) => {
	await register(client);
	const { rows: [{ filter, answers }] } = await client.query(`
		WITH f AS (SELECT bloom_agg(n * 3) AS filter FROM generate_series(1, 20000) n)
		SELECT filter, bloom_contains_each(filter, ARRAY(SELECT generate_series(1, 100000))) AS answers FROM f`);
	assert.deepEqual(filter.containsMany(Array.from({ length: 100000 }, (_, i) => i + 1)), answers);
}));

test('keys of 0 to 1100 bytes have the hashes of the server', () => connected({}, async (client) => {
	const { rows } = await client.query("SELECT n, substr(convert_to(repeat(md5(n::text), 35), 'UTF8'), 1, n) AS key, bloom_hash(substr(convert_to(repeat(md5(n::text), 35), 'UTF8'), 1, n)) AS hash FROM generate_series(0, 1100) n");
	for (const { n, key, hash } of rows) assert.equal(bloomHash(key, 'bytea'), BigInt(hash), `${n} bytes`);
}));
