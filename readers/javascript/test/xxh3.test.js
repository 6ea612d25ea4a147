/*
 * The XXH3 of docs/filter.html, which replaces hash-wasm there: same hashes for keys of all
 * lengths, on both sides of every length at which the algorithm changes.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { createXXHash3 } from 'hash-wasm';
import { createXXHash3 as createForPage } from '../../page/xxh3.js';

test('the XXH3 of the page agrees with hash-wasm', async () => {
	const theirs = await createXXHash3();
	const ours = await createForPage();
	let random = 20261117;

	for (let length = 0; length <= 2200; length++) {
		const bytes = Uint8Array.from({ length }, () => (random = Math.imul(random, 1103515245) + 12345 & 0x7fffffff) >> 16 & 255);

		assert.deepEqual([...ours.init().update(bytes).digest('binary')], [...theirs.init().update(bytes).digest('binary')], `${length} bytes`);
	}
});
