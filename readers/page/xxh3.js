/*
 * xxh3.js
 *		64-bit XXH3, written from its specification, for the page: a single file cannot
 *		load libraries.
 *
 * Replaces hash-wasm, with the few methods that the reader uses.  BigInt is slow, some
 * microseconds per key, which does not matter for keys that are typed.  In applications
 * the reader uses hash-wasm.  A test of the reader compares the two.
 */

const SECRET = Uint8Array.from((
	'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221' +
	'b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8' +
	'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb' +
	'170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e'
).match(/../g), (byte) => parseInt(byte, 16));

const PRIME32_1 = 0x9E3779B1n;
const PRIME32_2 = 0x85EBCA77n;
const PRIME32_3 = 0xC2B2AE3Dn;
const PRIME64_1 = 0x9E3779B185EBCA87n;
const PRIME64_2 = 0xC2B2AE3D27D4EB4Fn;
const PRIME64_3 = 0x165667B19E3779F9n;
const PRIME64_4 = 0x85EBCA77C2B2AE63n;
const PRIME64_5 = 0x27D4EB2F165667C5n;
const PRIME_MX1 = 0x165667919E3779F9n;
const PRIME_MX2 = 0x9FB21C651E98DF25n;

const STRIPE = 64;
const STRIPES_A_BLOCK = (SECRET.length - STRIPE) / 8;

const cut = (number) => BigInt.asUintN(64, number);
const rotated = (number, by) => cut(number << by) | number >> 64n - by;

function read(bytes, at, length) {
	let number = 0n;
	for (let i = length - 1; i >= 0; i--) number = number << 8n | BigInt(bytes[at + i]);
	return number;
}
const read32 = (bytes, at) => read(bytes, at, 4);
const read64 = (bytes, at) => read(bytes, at, 8);
const secret64 = (at) => read64(SECRET, at);

function swapped(number) {
	let result = 0n;
	for (let i = 0n; i < 64n; i += 8n) result = result << 8n | number >> i & 255n;
	return result;
}

/* The two halves of a 128-bit product, combined by XOR. */
function folded(a, b) {
	const product = a * b;
	return cut(product) ^ product >> 64n;
}

function avalanche(hash) {
	hash = cut((hash ^ hash >> 37n) * PRIME_MX1);
	return hash ^ hash >> 32n;
}

/* The avalanche of XXH64, for the shortest keys. */
function avalanche64(hash) {
	hash = cut((hash ^ hash >> 33n) * PRIME64_2);
	hash = cut((hash ^ hash >> 29n) * PRIME64_3);
	return hash ^ hash >> 32n;
}

/* Mixes sixteen bytes. */
const mixed = (bytes, at, secret) => folded(read64(bytes, at) ^ secret64(secret), read64(bytes, at + 8) ^ secret64(secret + 8));

function upTo16(bytes, n) {
	if (n > 8) {
		const low = read64(bytes, 0) ^ secret64(24) ^ secret64(32);
		const high = read64(bytes, n - 8) ^ secret64(40) ^ secret64(48);
		return avalanche(cut(BigInt(n) + swapped(low) + high + folded(low, high)));
	}
	if (n >= 4) {
		let hash = read32(bytes, n - 4) + (read32(bytes, 0) << 32n) ^ secret64(8) ^ secret64(16);
		hash = cut((hash ^ rotated(hash, 49n) ^ rotated(hash, 24n)) * PRIME_MX2);
		hash = cut((hash ^ (hash >> 35n) + BigInt(n)) * PRIME_MX2);
		return hash ^ hash >> 28n;
	}
	if (n > 0) {
		const all = BigInt(bytes[0]) << 16n | BigInt(bytes[n >> 1]) << 24n | BigInt(bytes[n - 1]) | BigInt(n) << 8n;
		return avalanche64(all ^ read32(SECRET, 0) ^ read32(SECRET, 4));
	}
	return avalanche64(secret64(56) ^ secret64(64));
}

function upTo128(bytes, n) {
	let sum = BigInt(n) * PRIME64_1;
	for (let i = (n - 1) >> 5; i >= 0; i--)
		sum += mixed(bytes, 16 * i, 32 * i) + mixed(bytes, n - 16 * (i + 1), 32 * i + 16);
	return avalanche(cut(sum));
}

function upTo240(bytes, n) {
	let first = BigInt(n) * PRIME64_1;
	let rest = mixed(bytes, n - 16, 136 - 17);
	for (let i = 0; i < 8; i++) first += mixed(bytes, 16 * i, 16 * i);
	for (let i = 8; i < n >> 4; i++) rest += mixed(bytes, 16 * i, 16 * (i - 8) + 3);
	return avalanche(cut(avalanche(cut(first)) + rest));
}

function long(bytes, n) {
	const sums = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
	const stripes = Math.floor((n - 1) / STRIPE);
	const accumulate = (at, secret) => {
		for (let i = 0; i < 8; i++) {
			const word = read64(bytes, at + 8 * i);
			const key = word ^ secret64(secret + 8 * i);
			sums[i ^ 1] = cut(sums[i ^ 1] + word);
			sums[i] = cut(sums[i] + (key & 0xFFFFFFFFn) * (key >> 32n));
		}
	};
	for (let s = 0; s < stripes; s++) {
		accumulate(s * STRIPE, 8 * (s % STRIPES_A_BLOCK));
		if (s % STRIPES_A_BLOCK === STRIPES_A_BLOCK - 1)
			for (let i = 0; i < 8; i++)
				sums[i] = cut((sums[i] ^ sums[i] >> 47n ^ secret64(SECRET.length - STRIPE + 8 * i)) * PRIME32_1);
	}
	accumulate(n - STRIPE, SECRET.length - STRIPE - 7);
	let sum = BigInt(n) * PRIME64_1;
	for (let i = 0; i < 4; i++)
		sum += folded(sums[2 * i] ^ secret64(11 + 16 * i), sums[2 * i + 1] ^ secret64(19 + 16 * i));
	return avalanche(cut(sum));
}

export function xxh3(bytes) {
	const n = bytes.length;
	return n <= 16 ? upTo16(bytes, n) : n <= 128 ? upTo128(bytes, n) : n <= 240 ? upTo240(bytes, n) : long(bytes, n);
}

export async function createXXHash3() {
	let hash = 0n;
	return {
		init() { return this; },
		update(bytes) { hash = xxh3(bytes); return this; },
		digest() { return Uint8Array.from({ length: 8 }, (_, i) => Number(hash >> BigInt(56 - 8 * i) & 255n)); },
	};
}
