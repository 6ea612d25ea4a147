/*
 * XXH3 of the reader: the hashes of the reference implementation (computed by the Python package
 * xxhash) for keys of all lengths, on both sides of every length at which the algorithm changes.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { bloomHash } from '../bloomfilter.js';

const EXPECTED = {
	0: 0x2d06800538d394c2n,
	1: 0x552a06acaea49d21n,
	3: 0x199e144036c42f40n,
	4: 0x5560cb5f6438fe3dn,
	8: 0xc4bb2cfb9064462dn,
	9: 0x816ea3cecca3a1d0n,
	16: 0xd3da6d2447314c3en,
	17: 0xeb912bfe8fcab7f7n,
	128: 0x56ec233b1ae8130cn,
	129: 0xb18b46de1571a1d9n,
	240: 0xf9f08800e4c39a2en,
	241: 0xb8abffd9dd1c4e1dn,
	1024: 0x98a1e82c506aa5d0n,
	1025: 0x48602a9c158e2b36n,
	2200: 0xd38b312aad85baecn,
};
const HASH_OF_ALL = 0xaf826cdaee2e03d1n;

test('XXH3 of keys of 0 to 2200 bytes', () => {
	const all = new BigUint64Array(2201);
	let random = 20261117;

	for (let length = 0; length <= 2200; length++) {
		const bytes = Uint8Array.from({ length }, () => (random = Math.imul(random, 1103515245) + 12345 & 0x7fffffff) >> 16 & 255);

		all[length] = BigInt.asUintN(64, bloomHash(bytes, 'bytea'));
		if (Object.hasOwn(EXPECTED, length)) assert.equal(all[length], EXPECTED[length], `${length} bytes`);
	}
	assert.equal(BigInt.asUintN(64, bloomHash(new Uint8Array(all.buffer), 'bytea')), HASH_OF_ALL);
});
