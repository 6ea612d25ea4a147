/* Tests the reader with readers/vectors.json, which the server produced. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { bloomHash, Filter, FilterError } from '../bloomfilter.js';
import { nativeKey, typeName } from './native.js';

const vectors = JSON.parse(readFileSync(new URL('../../vectors.json', import.meta.url), 'utf8'));

function fromBase64(text) {
	return new Uint8Array(Buffer.from(text, 'base64'));
}

function checkStats(stats, expected, name) {
	const { fpp, ...exact } = stats;
	assert.deepEqual(exact, {
		kind: exact.kind, bytes: expected.bytes, layers: expected.layers, capacity: expected.capacity, cardinality: expected.cardinality,
		targetFpp: expected.target_fpp, growth: expected.growth, maxLayers: expected.max_layers, keyClass: expected.key_class, formatVersion: 1,
	}, name);
	assert.ok(Math.abs(fpp - expected.fpp) <= 1e-9 * expected.fpp, `${name}: fpp ${fpp} instead of ${expected.fpp}`);
}

test('hashes of keys', () => {
	assert.ok(vectors.keys.length > 150);
	for (const [type, key, hash] of vectors.keys) assert.equal(bloomHash(nativeKey(type, key), typeName(type)), BigInt(hash), `${type} ${key}`);
});

test('filters of all shapes', () => {
	let probes = 0;

	assert.ok(vectors.filters.length > 100);
	for (const vector of vectors.filters) {
		for (const value of [vector.text, fromBase64(vector.text), Buffer.from(vector.text, 'base64')]) {
			const filter = Filter.parse(value);
			const many = new Map();

			assert.equal(filter.kind, vector.kind, vector.name);
			assert.equal(filter.keyClass, vector.stats.key_class, vector.name);
			checkStats(filter.stats(), vector.stats, vector.name);
			for (const [type, text, hash, answer] of vector.probes) {
				const key = nativeKey(type, text);
				const about = `${vector.kind} "${vector.name}": ${type} ${text}`;
				const name = typeName(type);

				assert.equal(filter.contains(key, name), answer > 0, about);
				if (type !== 'real' && (type !== 'double precision' || Object.is(Math.fround(key), key))) assert.equal(filter.contains(key), answer > 0, about);
				if (vector.kind === 'cuckoo') assert.equal(filter.count(key, name), answer, about);
				assert.equal(filter.containsHash(BigInt(hash)), answer > 0, about);
				assert.equal(filter.containsHash(BigInt.asUintN(64, BigInt(hash))), answer > 0, about);
				if (!many.has(name)) many.set(name, [[], []]);
				many.get(name)[0].push(key);
				many.get(name)[1].push(answer > 0);
				probes++;
			}
			for (const [name, [keys, answers]] of many) assert.deepEqual(filter.containsMany(keys, name), answers, vector.name);
		}
	}
	assert.ok(probes > 5000);
});

test('keys of classes that cannot be hashed here are refused, their hashes are accepted', () => {
	for (const vector of vectors.other) {
		const filter = Filter.parse(vector.text);

		assert.equal(filter.keyClass, vector.stats.key_class);
		checkStats(filter.stats(), vector.stats, vector.name);
		for (const [, text, hash, answer] of vector.probes) {
			assert.throws(() => filter.contains(text), (error) => error instanceof FilterError && /cannot be hashed here.*bloom_hash/.test(error.message));
			assert.throws(() => filter.contains(text, 'text'), /class text, the filter has keys of the class/);
			assert.throws(() => filter.contains(1, 'numeric'), /cannot be hashed here/);
			assert.equal(filter.containsHash(BigInt(hash)), answer > 0, vector.name);
		}
	}
});

test('scheme 3 is refused like scheme 2', () => {
	const bytes = fromBase64(vectors.other.find((vector) => vector.name === 'hashed by the server').text);
	assert.equal(bytes[3], 2);
	bytes[3] = 3;
	assert.throws(() => Filter.parse(bytes).contains('(0,1)'), /a function of the server/);
});

test('aggregate states are refused', () => {
	assert.ok(vectors.unfinished.length >= 4);
	for (const [name, text] of vectors.unfinished) assert.throws(() => Filter.parse(text), (error) => error instanceof FilterError && /unfinished/.test(error.message), name);
});

test('malformed bytes and texts are refused', () => {
	assert.ok(vectors.refused.length > 150);
	for (const [why, kind, text] of vectors.refused) {
		const refused = (error) => error instanceof FilterError && error.message.length > 10;
		assert.throws(() => Filter.parse(fromBase64(text)), refused, `${kind}: ${why}`);
		assert.throws(() => Filter.parse(text), refused, `${kind}: ${why}`);
	}
	for (const [why, text] of vectors.not_base64) assert.throws(() => Filter.parse(text), FilterError, why);
});
