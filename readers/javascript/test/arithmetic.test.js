/*
 * 64-bit arithmetic on halves, in the rare cases where a carry matters (one key in billions).
 * The results are compared with BigInt, which has no halves.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Filter } from '../bloomfilter.js';

const vectors = JSON.parse(readFileSync(new URL('../../vectors.json', import.meta.url), 'utf8'));
const GOLDEN = 0x9E3779B97F4A7C15n;
const MASK64 = 2n ** 64n - 1n;

function bits(bytes, from, count) {
	let value = 0n;
	for (let i = 0; i < count; i++) value |= BigInt(bytes[from + i >> 3] >> (from + i & 7) & 1) << BigInt(i);
	return value;
}

function distance(fingerprint, buckets) {
	const window = BigInt(Math.min(buckets - 1, 1024));
	return window === 0n ? 0n : 1n + ((fingerprint + 1n) * GOLDEN & MASK64) * window / 2n ** 64n;
}

/* All numbers of a cuckoo filter, by docs/FORMAT.md. */
function numbersOf(bytes) {
	const view = new DataView(bytes.buffer);
	const buckets = view.getUint32(16, true);
	const slotBits = view.getUint8(26);
	const table = view.getUint8(27) === 4;
	const start = bytes.length + 4 >= 2048 ? 60 : 28;
	const words = Math.floor((Math.floor((4 * buckets - 1) * slotBits / 8) + 15) / 8);
	const list = start + (table ? 16 + 8 * words : 8);
	const numbers = new Set();

	for (let i = 0; i < Number(view.getBigUint64(start, true)); i++) numbers.add(view.getBigUint64(list + 8 * i, true));
	for (let slot = 0; table && slot < 4 * buckets; slot++) {
		const value = bits(bytes, (start + 16) * 8 + slot * slotBits, slotBits);
		const fingerprint = value >> 1n;
		let bucket = BigInt(slot >> 2);
		if (value === 0n) continue;
		if (value & 1n) bucket = (bucket + BigInt(buckets) - distance(fingerprint, buckets)) % BigInt(buckets);
		numbers.add(bucket << BigInt(slotBits - 1) | fingerprint);
	}
	return { numbers, buckets, range: BigInt(buckets) << BigInt(slotBits - 1) };
}

const lowest = (number, range) => ((number << 64n) + range - 1n) / range;
const highest = (number, range) => (((number + 1n) << 64n) - 1n) / range;

test('the first and the last hash of every number of cuckoo filters, and of every bucket', () => {
	let asked = 0;
	for (const vector of vectors.filters.filter(({ kind }) => kind === 'cuckoo')) {
		const bytes = new Uint8Array(Buffer.from(vector.text, 'base64'));
		const filter = Filter.parse(bytes);
		const { numbers, buckets, range } = numbersOf(bytes);
		const hashes = [0n, MASK64];

		for (const number of numbers) hashes.push(lowest(number, range), highest(number, range), lowest(number, range) - 1n & MASK64, highest(number, range) + 1n & MASK64);
		for (let bucket = 0; bucket < Math.min(buckets, 3000); bucket++) hashes.push(lowest(BigInt(bucket) * (range / BigInt(buckets)), range));
		for (const hash of hashes) assert.equal(filter.containsHash(hash), numbers.has(hash * range >> 64n), `${vector.name}: ${hash}`);
		asked += hashes.length;
	}
	assert.ok(asked > 20000);
});

test('fingerprints whose lower half is all ones', () => {
	const buckets = 3;
	const slotBits = 44;
	const words = 9;
	const bytes = new Uint8Array(28 + 16 + 8 * words);
	const view = new DataView(bytes.buffer);
	const numbers = [];

	bytes.set(Buffer.from(vectors.filters.find(({ kind, name }) => kind === 'cuckoo' && name === 'one key in a list').text, 'base64').subarray(0, 16));
	view.setUint32(16, buckets, true);
	view.setUint32(20, 10, true);
	view.setUint8(26, slotBits);
	view.setUint8(27, 4);
	// three numbers in each bucket, as their alternate bucket, where the carry matters
	for (let place = 0, n = 0; place < 12; place++) {
		if (place % 4 === 3) continue;
		const fingerprint = BigInt(n++) << 32n | 0xFFFFFFFFn;
		const bucket = (BigInt(place >> 2) + 3n - distance(fingerprint, buckets)) % 3n;
		const value = fingerprint << 1n | 1n;
		numbers.push(bucket << BigInt(slotBits - 1) | fingerprint);
		for (let i = 0; i < slotBits; i++) {
			const bit = place * slotBits + i;
			bytes[44 + (bit >> 3)] |= Number(value >> BigInt(i) & 1n) << (bit & 7);
		}
	}
	view.setUint32(36, numbers.length, true);
	const filter = Filter.parse(bytes);
	const range = BigInt(buckets) << BigInt(slotBits - 1);
	for (const number of numbers) {
		assert.equal(filter.containsHash(lowest(number, range)), true);
		assert.equal(filter.containsHash(lowest(number + 1n, range)), false);
	}
});
