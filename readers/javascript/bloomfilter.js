/*
 * bloomfilter.js
 *		Tests filters of the PostgreSQL extension bloomfilter for keys, in Node or a browser.
 *
 * Written from docs/FORMAT.md.  A filter is validated completely when it is parsed, so
 * that no later call can read outside of it.  It is kept as bytes: a filter of 10 MB
 * takes 10 MB.
 *
 * "false" must mean that the server would return false too.  So a key that may have lost
 * precision on its way here (a number beyond 2^53, a Date without microseconds) is an error.
 *
 * JavaScript has no fast 64-bit integers, because BigInt allocates.  So 64-bit numbers are
 * pairs of 32-bit numbers here, `high` and `low`.  XXH3 is written from its specification in
 * the same way, so that this file is all that a program or a page needs.
 */

/** A filter cannot be read, or a key cannot be tested. */
export class FilterError extends Error {
	constructor(message) {
		super(message);
		this.name = 'FilterError';
	}
}

function refuse(message) {
	throw new FilterError(message);
}

const LENGTH_WORD = 4;			// counted in sizes and alignment, not part of the bytes
const HEADER_BYTES = 28;
const ENTRY_BYTES = 12;
const WIDE_BYTES = 2048;
const LINE_WORDS = 8;
const LINE_BYTES = 64;
const LINE_BITS = 512;
const MAX_BYTES = 2 ** 29;
const MAX_WORDS = 2 ** 26;
const MAX_LAYERS = 64;
const MAX_CAPACITY = 2 ** 40;
const MAX_GROWTH = 100;
const MAX_LIST = 12582912;
const UNFINISHED_WORDS = 34594560;
const NAMED = 255;
const LIST = 1;
const LINES = 2;
const CUCKOO_LIST = 3;
const CUCKOO_TABLE = 4;
const BUCKET_SLOTS = 4;
const MAX_WINDOW = 1024;
const MAX_COPIES = 255;
const NO_SIZE_CODE = 60;
const SIZE_CODES = { 1: [0, 1], 2: [24, 4], 3: [39, 5], 4: [51, 6] };	// groups: first code, its probes

const CLASSES = [null, 'integer', 'text', 'uuid', 'bytea', 'boolean', 'float', 'numeric', 'date', 'time', 'timetz',
	'timestamp', 'timestamptz', 'interval', 'inet', 'macaddr', 'macaddr8', 'bit', 'oid', 'money', 'xid8', 'pg_lsn', 'jsonb'];

/* SQL types whose keys can be hashed here, with their key classes. */
const TYPES = new Map(Object.entries({
	smallint: 'integer', int2: 'integer', integer: 'integer', int: 'integer', int4: 'integer', bigint: 'integer', int8: 'integer',
	text: 'text', varchar: 'text', 'character varying': 'text', char: 'text', character: 'text', bpchar: 'text', name: 'text', '"char"': 'text',
	uuid: 'uuid', bytea: 'bytea', boolean: 'boolean', bool: 'boolean',
	real: 'float', float4: 'float', float: 'float', 'double precision': 'float', float8: 'float',
	date: 'date', timestamp: 'timestamp', 'timestamp without time zone': 'timestamp',
	timestamptz: 'timestamptz', 'timestamp with time zone': 'timestamptz',
}));

// ------------------------------------------------------------------
// 64-bit arithmetic on halves.  Functions that return a pair store it in these variables.
// ------------------------------------------------------------------

let high = 0;
let low = 0;

/* The upper half of the product of two 32-bit numbers (a may also be signed).  No intermediate exceeds 2^49. */
function multiplyHigh(a, b) {
	return Math.floor(((a >>> 16) * b + Math.floor((a & 0xFFFF) * b / 0x10000)) / 0x10000);
}

/* high, low = the product modulo 2^64 */
function multiply64(aHigh, aLow, bHigh, bLow) {
	high = (multiplyHigh(aLow, bLow) + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh)) >>> 0;
	low = Math.imul(aLow, bLow) >>> 0;
}

/* high, low = mix64 of the format */
function mix64(h, l) {
	multiply64(h ^ h >>> 30, l ^ (l >>> 30 | h << 2), 0xBF58476D, 0x1CE4E5B9);
	h = high;
	l = low;
	multiply64(h ^ h >>> 27, l ^ (l >>> 27 | h << 5), 0x94D049BB, 0x133111EB);
	h = high;
	l = low;
	high = (h ^ h >>> 31) >>> 0;
	low = (l ^ (l >>> 31 | h << 1)) >>> 0;
}

/* (64-bit number * n) div 2^64, for a 32-bit n */
function scale(h, l, n) {
	return multiplyHigh(h, n) + ((Math.imul(h, n) >>> 0) + multiplyHigh(l, n) >= 2 ** 32 ? 1 : 0);
}

// ------------------------------------------------------------------
// XXH3, 64 bits, without a seed
// ------------------------------------------------------------------

const SECRET = Uint8Array.from((
	'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221' +
	'b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8' +
	'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb' +
	'170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e'
).match(/../g), (byte) => parseInt(byte, 16));
const STRIPE = 64;
const STRIPES_PER_BLOCK = (SECRET.length - STRIPE) / 8;

function read32(bytes, at) {
	return (bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24) >>> 0;
}

/* The 32 bits of the secret from each byte on. */
const SECRET32 = Uint32Array.from({ length: SECRET.length - 3 }, (_, at) => read32(SECRET, at));

/* A sum of 64-bit numbers: sumHigh, sumLow += h, l */
let sumHigh = 0;
let sumLow = 0;

function add64(h, l) {
	const sum = sumLow + l;

	sumLow = sum >>> 0;
	sumHigh = (sumHigh + h + (sum > 0xFFFFFFFF ? 1 : 0)) >>> 0;
}

/* sumHigh, sumLow = n times the first of the 64-bit primes */
function startSum(n) {
	multiply64(0, n, 0x9E3779B1, 0x85EBCA87);
	sumHigh = high;
	sumLow = low;
}

/* high, low = the two halves of the 128-bit product, combined by XOR */
function fold(aHigh, aLow, bHigh, bLow) {
	const middle = multiplyHigh(aLow, bLow) + (Math.imul(aHigh, bLow) >>> 0) + (Math.imul(aLow, bHigh) >>> 0);
	const upper = multiplyHigh(aHigh, bLow) + multiplyHigh(aLow, bHigh) + (Math.imul(aHigh, bHigh) >>> 0) + Math.floor(middle / 2 ** 32);

	high = (multiplyHigh(aHigh, bHigh) + Math.floor(upper / 2 ** 32) ^ middle) >>> 0;
	low = (Math.imul(aLow, bLow) ^ upper) >>> 0;
}

/* Adds sixteen bytes, mixed with sixteen bytes of the secret, to the sum. */
function addMixed(bytes, at, secret) {
	fold((read32(bytes, at + 4) ^ SECRET32[secret + 4]) >>> 0, (read32(bytes, at) ^ SECRET32[secret]) >>> 0,
		(read32(bytes, at + 12) ^ SECRET32[secret + 12]) >>> 0, (read32(bytes, at + 8) ^ SECRET32[secret + 8]) >>> 0);
	add64(high, low);
}

/* high, low = the avalanche of XXH3 */
function avalanche(h, l) {
	multiply64(h, l ^ h >>> 5, 0x16566791, 0x9E3779F9);
	low = (low ^ high) >>> 0;
}

/* high, low = the avalanche of XXH64, for the shortest keys */
function avalanche64(h, l) {
	multiply64(h, l ^ h >>> 1, 0xC2B2AE3D, 0x27D4EB4F);
	h = high;
	l = low;
	multiply64(h ^ h >>> 29, l ^ (l >>> 29 | h << 3), 0x165667B1, 0x9E3779F9);
	low = (low ^ high) >>> 0;
}

function swapBytes(number) {
	return (number << 24 | number << 8 & 0xFF0000 | number >>> 8 & 0xFF00 | number >>> 24) >>> 0;
}

function hashUpTo3(bytes, n) {
	if (n === 0) avalanche64(SECRET32[60] ^ SECRET32[68], SECRET32[56] ^ SECRET32[64]);
	else avalanche64(0, (bytes[0] << 16 | bytes[n >> 1] << 24 | bytes[n - 1] | n << 8) ^ SECRET32[0] ^ SECRET32[4]);
}

function hash4To8(bytes, n) {
	let h = read32(bytes, 0) ^ SECRET32[12] ^ SECRET32[20];
	let l = read32(bytes, n - 4) ^ SECRET32[8] ^ SECRET32[16];

	multiply64(h ^ (l << 17 | h >>> 15) ^ (h << 24 | l >>> 8), l ^ (h << 17 | l >>> 15) ^ (l << 24 | h >>> 8), 0x9FB21C65, 0x1E98DF25);
	multiply64(high, low ^ (high >>> 3) + n, 0x9FB21C65, 0x1E98DF25);
	h = high;
	l = low;
	high = (h ^ h >>> 28) >>> 0;
	low = (l ^ (l >>> 28 | h << 4)) >>> 0;
}

function hash9To16(bytes, n) {
	const firstHigh = (read32(bytes, 4) ^ SECRET32[28] ^ SECRET32[36]) >>> 0;
	const firstLow = (read32(bytes, 0) ^ SECRET32[24] ^ SECRET32[32]) >>> 0;
	const lastHigh = (read32(bytes, n - 4) ^ SECRET32[44] ^ SECRET32[52]) >>> 0;
	const lastLow = (read32(bytes, n - 8) ^ SECRET32[40] ^ SECRET32[48]) >>> 0;

	sumHigh = 0;
	sumLow = n;
	add64(swapBytes(firstLow), swapBytes(firstHigh));
	add64(lastHigh, lastLow);
	fold(firstHigh, firstLow, lastHigh, lastLow);
	add64(high, low);
	avalanche(sumHigh, sumLow);
}

function hash17To128(bytes, n) {
	startSum(n);
	for (let i = (n - 1) >> 5; i >= 0; i--) {
		addMixed(bytes, 16 * i, 32 * i);
		addMixed(bytes, n - 16 * (i + 1), 32 * i + 16);
	}
	avalanche(sumHigh, sumLow);
}

function hash129To240(bytes, n) {
	startSum(n);
	for (let i = 0; i < 8; i++) addMixed(bytes, 16 * i, 16 * i);
	avalanche(sumHigh, sumLow);
	sumHigh = high;
	sumLow = low;
	for (let i = 8; i < n >> 4; i++) addMixed(bytes, 16 * i, 16 * (i - 8) + 3);
	addMixed(bytes, n - 16, 136 - 17);
	avalanche(sumHigh, sumLow);
}

/* The accumulators of a long key: eight 64-bit numbers, as upper and lower halves. */
const upper = new Uint32Array(8);
const lower = new Uint32Array(8);

function accumulate(i, h, l) {
	const sum = lower[i] + l;

	lower[i] = sum;
	upper[i] = upper[i] + h + (sum > 0xFFFFFFFF ? 1 : 0);
}

function accumulateStripe(bytes, at, secret) {
	for (let i = 0; i < 8; i++) {
		const h = read32(bytes, at + 8 * i + 4);
		const l = read32(bytes, at + 8 * i);
		const keyHigh = (h ^ SECRET32[secret + 8 * i + 4]) >>> 0;
		const keyLow = (l ^ SECRET32[secret + 8 * i]) >>> 0;

		accumulate(i ^ 1, h, l);
		accumulate(i, multiplyHigh(keyHigh, keyLow), Math.imul(keyHigh, keyLow) >>> 0);
	}
}

function scramble() {
	for (let i = 0; i < 8; i++) {
		const secret = SECRET.length - STRIPE + 8 * i;

		multiply64(upper[i] ^ SECRET32[secret + 4], lower[i] ^ upper[i] >>> 15 ^ SECRET32[secret], 0, 0x9E3779B1);
		upper[i] = high;
		lower[i] = low;
	}
}

function hashLong(bytes, n) {
	const stripes = Math.floor((n - 1) / STRIPE);

	upper.set([0, 0x9E3779B1, 0xC2B2AE3D, 0x165667B1, 0x85EBCA77, 0, 0x27D4EB2F, 0]);
	lower.set([0xC2B2AE3D, 0x85EBCA87, 0x27D4EB4F, 0x9E3779F9, 0xC2B2AE63, 0x85EBCA77, 0x165667C5, 0x9E3779B1]);
	for (let stripe = 0; stripe < stripes; stripe++) {
		accumulateStripe(bytes, stripe * STRIPE, 8 * (stripe % STRIPES_PER_BLOCK));
		if (stripe % STRIPES_PER_BLOCK === STRIPES_PER_BLOCK - 1) scramble();
	}
	accumulateStripe(bytes, n - STRIPE, SECRET.length - STRIPE - 7);
	startSum(n);
	for (let i = 0; i < 8; i += 2) {
		const secret = 11 + 8 * i;

		fold((upper[i] ^ SECRET32[secret + 4]) >>> 0, (lower[i] ^ SECRET32[secret]) >>> 0,
			(upper[i + 1] ^ SECRET32[secret + 12]) >>> 0, (lower[i + 1] ^ SECRET32[secret + 8]) >>> 0);
		add64(high, low);
	}
	avalanche(sumHigh, sumLow);
}

/* high, low = XXH3 of the bytes */
function xxh3(bytes) {
	const n = bytes.length;

	if (n < 4) hashUpTo3(bytes, n);
	else if (n <= 8) hash4To8(bytes, n);
	else if (n <= 16) hash9To16(bytes, n);
	else if (n <= 128) hash17To128(bytes, n);
	else if (n <= 240) hash129To240(bytes, n);
	else hashLong(bytes, n);
}

// ------------------------------------------------------------------
// Keys: canonical bytes and their hash
// ------------------------------------------------------------------

const eight = new DataView(new ArrayBuffer(8));
const eightBytes = new Uint8Array(eight.buffer);
const encoder = new TextEncoder();

function isBytes(value) {
	return Object.prototype.toString.call(value) === '[object Uint8Array]';	// also from another window
}

/* The type of a key, for messages. */
function describe(key) {
	if (key === null) return 'null';
	if (Array.isArray(key)) return 'an array';
	if (typeof key === 'object') return `a ${Object.prototype.toString.call(key).slice(8, -1)}`;
	return typeof key === 'undefined' ? 'undefined' : `a ${typeof key}`;
}

function integerBytes(key) {
	if (typeof key === 'bigint') {
		if (BigInt.asIntN(64, key) !== key) refuse(`${key} is out of range for bigint`);
		eight.setBigInt64(0, key, true);
		return eightBytes;
	}
	if (typeof key !== 'number') refuse(`a key of class integer is a number or a BigInt, not ${describe(key)}`);
	if (!Number.isInteger(key)) refuse(`${key} is not an integer`);
	if (!Number.isSafeInteger(key)) refuse(`${key} is beyond 2^53 and may have been rounded: pass a BigInt`);
	eight.setUint32(0, key >>> 0, true);
	eight.setInt32(4, Math.floor(key / 2 ** 32), true);
	return eightBytes;
}

function textBytes(key) {
	if (typeof key !== 'string') refuse(`a key of class text is a string, not ${describe(key)}`);
	if (/[\uD800-\uDFFF]/u.test(key)) refuse('the string contains an unpaired surrogate, which PostgreSQL does not support in text');
	if (key.includes('\0')) refuse('the string contains a zero character, which PostgreSQL does not support in text');
	let length = key.length;
	while (length > 0 && key.charCodeAt(length - 1) === 0x20) length--;
	return encoder.encode(key.slice(0, length));
}

function uuidBytes(key) {
	if (isBytes(key)) {
		if (key.length !== 16) refuse(`a uuid has 16 bytes, not ${key.length}`);
		return key;
	}
	if (typeof key !== 'string') refuse(`a key of class uuid is a string or a Uint8Array of 16 bytes, not ${describe(key)}`);
	// as the server reads it: optional hyphens after any four digits, optional braces
	const digits = /^(?:\{((?:[0-9a-f]{4}-?){7}[0-9a-f]{4})\}|((?:[0-9a-f]{4}-?){7}[0-9a-f]{4}))$/i.exec(key);
	if (digits === null) refuse(`"${key}" is not a uuid`);
	return Uint8Array.from((digits[1] ?? digits[2]).replaceAll('-', '').match(/../g), (pair) => parseInt(pair, 16));
}

function byteaBytes(key) {
	if (!isBytes(key)) refuse(`a key of class bytea is a Uint8Array, not ${describe(key)}`);
	return key;
}

function booleanBytes(key) {
	if (typeof key !== 'boolean') refuse(`a key of class boolean is true or false, not ${describe(key)}`);
	return integerBytes(key ? 1 : 0);
}

/*
 * The filter does not record whether its keys were real or double precision.  0.1 as a real
 * is a different number than 0.1 as a double precision, and both are written 0.1 here.
 */
function floatBytes(key, type) {
	if (typeof key !== 'number') refuse(`a key of class float is a number, not ${describe(key)}`);
	const real = Math.fround(key);
	if (type === 'real' || type === 'float4') {
		if (!Number.isFinite(real) && Number.isFinite(key)) refuse(`${key} is out of range for real`);
		key = real;
	} else if (type === undefined && !Object.is(real, key)) {
		refuse(`${key} differs as real and as double precision: pass the type of the column, 'real' or 'double precision'`);
	}
	if (Number.isNaN(key)) eight.setBigUint64(0, 0x7FF8000000000000n, true);
	else eight.setFloat64(0, key === 0 ? 0 : key, true);	// -0 becomes 0
	return eightBytes;
}

/* Days from 2000-01-01 to a date of the proleptic Gregorian calendar. */
function daysOf(yearText, monthText, dayText, bc, key) {
	const year = bc ? 1 - Number(yearText) : Number(yearText);
	const month = Number(monthText);
	const day = Number(dayText);
	const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
	const lengths = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

	if (Number(yearText) < 1 || month < 1 || month > 12 || day < 1 || day > lengths[month - 1]) refuse(`"${key}" is not a valid date`);
	// count years from March, so that the leap day is the last day
	const y = month > 2 ? year : year - 1;
	const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
	const days = 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 730425;
	if (days < -2451545) refuse(`"${key}" is out of range: the first day is 4714-11-24 BC`);
	return days;
}

const YEAR = '(\\d{4}|[1-9]\\d{4,6})';
const DATE = new RegExp(`^${YEAR}-(\\d\\d)-(\\d\\d)( BC)?$`);
const TIMESTAMP = new RegExp(`^${YEAR}-(\\d\\d)-(\\d\\d)[ T](\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.(\\d{1,6})0*)?)?` +
	'(Z|[+-]\\d\\d(?::\\d\\d(?::\\d\\d)?)?)?( BC)?$');

/* 1 for infinity, -1 for -infinity, otherwise 0 */
function infinite(key) {
	if (key === 'infinity' || key === Infinity) return 1;
	return key === '-infinity' || key === -Infinity ? -1 : 0;
}

function dateBytes(key) {
	if (infinite(key) !== 0) return integerBytes(infinite(key) > 0 ? 2 ** 31 - 1 : -(2 ** 31));
	if (typeof key !== 'string') refuse(`a key of class date is a string such as '2024-02-29', not ${describe(key)}: a Date is an instant, whose day depends on the time zone`);
	const parts = DATE.exec(key);
	if (parts === null) refuse(`"${key}" is not a date of the form YYYY-MM-DD`);
	const days = daysOf(parts[1], parts[2], parts[3], parts[4] !== undefined, key);
	if (days >= 2145031949) refuse(`"${key}" is out of range: the last day is 5874897-12-31`);
	return integerBytes(days);
}

function timestampBytes(key, zoned) {
	const name = zoned ? 'timestamptz' : 'timestamp';
	if (infinite(key) !== 0) return integerBytes(infinite(key) > 0 ? 2n ** 63n - 1n : -(2n ** 63n));
	if (typeof key !== 'string') {
		refuse(`a key of class ${name} is a string such as '2024-02-29 12:34:56.789012${zoned ? '+00' : ''}', not ${describe(key)}: a Date has no microseconds` +
			(zoned ? '; if the keys have none either, pass date.toISOString()' : ''));
	}
	const parts = TIMESTAMP.exec(key);
	if (parts === null) refuse(`"${key}" is not a ${name} of the form YYYY-MM-DD HH:MM:SS.ssssss${zoned ? '+HH:MM' : ''}`);
	const [, year, month, day, hour, minute, second = '00', fraction = '', zone, bc] = parts;
	if (zoned && zone === undefined) refuse(`"${key}" has no time zone`);
	if (!zoned && zone !== undefined) refuse(`"${key}" has a time zone, which a timestamp does not have`);
	if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) refuse(`"${key}" does not have a time of day between 00:00:00 and 23:59:59.999999`);
	let seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
	if (zoned && zone !== 'Z') {
		const [hours, minutes = 0, rest = 0] = zone.slice(1).split(':').map(Number);
		if (hours > 15 || minutes > 59 || rest > 59) refuse(`"${key}" has a time zone that is out of range`);
		seconds -= (zone[0] === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + rest);
	}
	const micros = (BigInt(daysOf(year, month, day, bc !== undefined, key)) * 86400n + BigInt(seconds)) * 1000000n + BigInt(fraction.padEnd(6, '0'));
	if (micros < -211813488000000000n || micros >= 9223371331200000000n) refuse(`"${key}" is out of range for ${name}`);
	return integerBytes(micros);
}

const CANONICAL = {
	integer: integerBytes, text: textBytes, uuid: uuidBytes, bytea: byteaBytes, boolean: booleanBytes, float: floatBytes,
	date: dateBytes, timestamp: (key) => timestampBytes(key, false), timestamptz: (key) => timestampBytes(key, true),
};

/* The key class of an SQL type. */
function classOf(type) {
	if (typeof type !== 'string') refuse(`a type is a string such as 'bigint', not ${describe(type)}`);
	const name = TYPES.get(type.toLowerCase());
	if (name === undefined) refuse(`keys of type ${type} cannot be hashed here: get bloom_hash(key) from the server and call containsHash`);
	return name;
}

/* high, low = the hash of a key of this class */
function hashOf(key, className, type) {
	if (key === null || key === undefined) refuse('NULL cannot be tested: the server returns NULL for it');
	xxh3(CANONICAL[className](key, type?.toLowerCase()));
}

/** Returns the same as `bloom_hash(key)` on the server, for a key of this SQL type. */
export function bloomHash(key, type) {
	hashOf(key, classOf(type), type);
	return BigInt.asIntN(64, BigInt(high) << 32n | BigInt(low));
}

// ------------------------------------------------------------------
// Reading and validating
// ------------------------------------------------------------------

const DIGITS = new Uint8Array(128).fill(255);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].forEach((digit, value) => { DIGITS[digit.charCodeAt(0)] = value; });

/* Canonical base64: padded, no white space, unused bits zero. */
function fromBase64(text) {
	if (text.startsWith('\\x')) refuse('this is the text of a bytea, not of a filter: pass the bytes');
	if (text.length % 4 !== 0) refuse('not base64: the length is not a multiple of 4');
	if (text.length / 4 * 3 - 2 + LENGTH_WORD > MAX_BYTES) refuse('larger than the maximum size of a filter');
	const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
	const digits = text.length - padding;
	const bytes = new Uint8Array(Math.floor(digits * 3 / 4));
	let bits = 0;
	let have = 0;
	let at = 0;

	for (let i = 0; i < digits; i++) {
		const code = text.charCodeAt(i);
		const digit = code < 128 ? DIGITS[code] : 255;
		if (digit === 255) refuse(`not base64: character ${i + 1} is not a digit`);
		bits = (bits << 6 | digit) & 0xFFFF;
		have += 6;
		if (have >= 8) {
			have -= 8;
			bytes[at++] = bits >> have;
		}
	}
	if ((bits & (1 << have) - 1) !== 0) refuse('not base64: unused bits of the last digit are set');
	return bytes;
}

/* The next offset that is a multiple of `to`, counting the length word. */
function align(offset, to) {
	return Math.ceil((offset + LENGTH_WORD) / to) * to - LENGTH_WORD;
}

function checkZero(bytes, from, to) {
	for (let i = from; i < to; i++) {
		if (bytes[i] !== 0) refuse(`byte ${i} of the padding is not zero`);
	}
}

/* A u64.  Above 2^53 it is rounded, which exceeds the size of any filter. */
function numberAt(view, offset) {
	return view.getUint32(offset + 4, true) * 2 ** 32 + view.getUint32(offset, true);
}

function capacityAt(view, offset) {
	return view.getUint16(offset + 8, true) * 2 ** 32 + view.getUint32(offset + 4, true);
}

/*
 * The position of a number in a sorted list of u64, or -1.
 */
function findInList(view, start, count, h, l) {
	let first = 0;
	let end = count;

	while (first < end) {
		const middle = (first + end) >>> 1;
		const thisHigh = view.getUint32(start + middle * 8 + 4, true);
		const thisLow = view.getUint32(start + middle * 8, true);
		if (thisHigh === h && thisLow === l) return middle;
		if (thisHigh < h || thisHigh === h && thisLow < l) first = middle + 1;
		else end = middle;
	}
	return -1;
}

function checkAscending(view, start, count) {
	for (let i = 1; i < count; i++) {
		const before = start + (i - 1) * 8;
		const beforeHigh = view.getUint32(before + 4, true);
		const thisHigh = view.getUint32(before + 12, true);
		if (beforeHigh > thisHigh || beforeHigh === thisHigh && view.getUint32(before, true) >= view.getUint32(before + 8, true)) {
			refuse('list is not in ascending order');
		}
	}
}

/* A layer of a bloom filter: a list of hashes, or lines. */
class BloomLayer {
	constructor(view, entry) {
		const hashing = view.getUint8(entry + 10);

		this.view = view;
		this.words = view.getUint32(entry, true);
		this.capacity = capacityAt(view, entry);
		this.groups = hashing >> 4;
		this.probes = hashing & 15;
		this.form = view.getUint8(entry + 11);
		this.count = 0;
		this.start = 0;
		if (this.form !== LIST && this.form !== LINES) refuse(`layer form ${this.form} is unknown`);
		if (this.capacity > MAX_CAPACITY) refuse('layer capacity is out of range');
		if (this.words > MAX_WORDS) refuse('layer is too large');
		if (this.words > LINE_WORDS && this.words % LINE_WORDS !== 0) refuse('layer is not a whole number of lines');
		if (this.words === 0) {
			if (this.form !== LIST || hashing !== 0) refuse('layer without lines is not an unfinished list');
			refuse('it is the unfinished state of an aggregate, not a filter');
		}
		if (this.groups < 1 || this.groups > 4) refuse('groups are out of range');
		if (this.probes < 1 || this.probes > 8) refuse('probes are out of range');
		if (this.capacity === 0) {
			if (this.form === LIST || this.words !== UNFINISHED_WORDS) refuse('layer has no capacity');
			refuse('it is the unfinished state of an aggregate, not a filter');
		}
		this.lines = this.words < LINE_WORDS ? 1 : this.words / LINE_WORDS;
		this.lineBits = this.words < LINE_WORDS ? this.words * 64 : LINE_BITS;
	}

	/* Reads the contents, which begin at `start`.  Returns where they end. */
	open(start, size) {
		let end = start + this.words * 8;

		this.start = start;
		if (this.form === LIST) {
			if (size - start < 8) refuse('filter ends before its list does');
			this.count = numberAt(this.view, start);
			if (this.count > (size - start) / 8 - 1) refuse('filter ends before its list does');
			if (this.count > MAX_LIST || this.count + 1 >= this.words) refuse('list is not shorter than lines');
			end = start + 8 + this.count * 8;
		}
		if (end > size) refuse('filter ends before its last layer does');
		if (this.form === LIST) checkAscending(this.view, start + 8, this.count);
		return end;
	}

	isEmpty() {
		if (this.form === LIST) return this.count === 0;
		for (let word = 0; word < this.words * 2; word++) {
			if (this.view.getUint32(this.start + word * 4, true) !== 0) return false;
		}
		return true;
	}

	copies(h, l) {
		return (this.form === LIST ? findInList(this.view, this.start + 8, this.count, h, l) >= 0 : this.linesContain(h, l)) ? 1 : 0;
	}

	linesContain(h, l) {
		for (let group = 0; group < this.groups; group++) {
			l += 0x7F4A7C15;
			h = (h + 0x9E3779B9 + (l >= 2 ** 32 ? 1 : 0)) >>> 0;
			l >>>= 0;
			mix64(h, l);
			const line = this.start + scale(high, low, this.lines) * LINE_BYTES;
			let x = low;
			for (let probe = 0; probe < this.probes; probe++) {
				const bit = Math.floor(x * this.lineBits / 2 ** 32);
				if ((this.view.getUint8(line + (bit >> 3)) >> (bit & 7) & 1) === 0) return false;
				x = Math.imul(x, 0x9E3779B9) >>> 0;
			}
		}
		return true;
	}

	/* Estimates the number of keys and the false-positive rate. */
	census() {
		if (this.form === LIST) return { keys: this.count, fpp: this.count / 2 ** 64 };
		const histogram = new Array(LINE_BITS + 1).fill(0);
		let keys = 0;
		let passes = 0;

		for (let line = 0; line < this.lines; line++) {
			let set = 0;
			for (let offset = 0; offset < this.lineBits / 8; offset += 4) {
				let x = this.view.getUint32(this.start + line * LINE_BYTES + offset, true);
				x -= x >>> 1 & 0x55555555;
				x = (x & 0x33333333) + (x >>> 2 & 0x33333333);
				set += Math.imul(x + (x >>> 4) & 0x0F0F0F0F, 0x01010101) >>> 24;
			}
			histogram[set]++;
		}
		for (let set = 1; set <= this.lineBits; set++) {
			const fill = (set < this.lineBits ? set : set - 0.5) / this.lineBits;
			keys += histogram[set] * -this.lineBits / this.probes / this.groups * Math.log1p(-fill);
			passes += histogram[set] * (set / this.lineBits) ** this.probes;
		}
		return { keys, fpp: (passes / this.lines) ** this.groups };
	}
}

/* The layer of a cuckoo filter: an optional table, and a list of numbers with their counts. */
class CuckooLayer {
	constructor(view, entry) {
		this.view = view;
		this.buckets = view.getUint32(entry, true);
		this.capacity = capacityAt(view, entry);
		this.slotBits = view.getUint8(entry + 10);
		this.form = view.getUint8(entry + 11);
		this.listed = 0;
		this.used = 0;
		this.distinct = 0;
		this.table = 0;
		this.list = 0;
		if (this.form !== CUCKOO_LIST && this.form !== CUCKOO_TABLE) refuse(`layer form ${this.form} is unknown`);
		if (this.capacity > MAX_CAPACITY) refuse('layer capacity is out of range');
		if (this.buckets === 0) {
			if (this.form !== CUCKOO_LIST || this.slotBits !== 0) refuse('layer without buckets is not an unfinished list');
			refuse('it is the unfinished state of an aggregate, not a filter');
		}
		if (this.slotBits < 5 || this.slotBits > 56) refuse('slot bits are out of range');
		if (this.buckets > 2 ** (63 - this.slotBits)) refuse('range of numbers is too large');
		this.words = Math.floor((Math.floor((BUCKET_SLOTS * this.buckets - 1) * this.slotBits / 8) + 15) / 8);
		if (this.words > MAX_WORDS) refuse('table is too large');
		if (this.capacity === 0) refuse('it is the unfinished state of an aggregate, not a filter');
		this.range = this.buckets * 2 ** (this.slotBits - 1);	// exact: 32 bits and a power of two
		this.window = Math.min(this.buckets - 1, MAX_WINDOW);
		// fingerprints and slots, as pairs: masks of their upper and lower half
		const fingerprintBits = this.slotBits - 1;
		this.maskHigh = fingerprintBits > 32 ? 2 ** (fingerprintBits - 32) - 1 : 0;
		this.maskLow = fingerprintBits >= 32 ? 0xFFFFFFFF : 2 ** fingerprintBits - 1;
		this.slotMaskHigh = this.slotBits > 32 ? 2 ** (this.slotBits - 32) - 1 : 0;
		this.slotMaskLow = this.slotBits >= 32 ? 0xFFFFFFFF : 2 ** this.slotBits - 1;
	}

	open(start, size) {
		const fixed = this.form === CUCKOO_TABLE ? 16 + this.words * 8 : 8;

		if (size - start < fixed) refuse('filter ends before its table or list does');
		this.listed = numberAt(this.view, start);
		if (this.listed > (size - start - fixed) / 9) refuse('filter ends before its list does');
		this.list = start + fixed;
		const unpadded = this.list + 9 * this.listed;
		const end = start + Math.ceil((unpadded - start) / 8) * 8;
		if (end > size) refuse('filter ends before its list does');
		for (let i = unpadded; i < end; i++) {
			if (this.view.getUint8(i) !== 0) refuse(`byte ${i} of the padding is not zero`);
		}
		if (this.form === CUCKOO_TABLE) {
			this.table = start + 16;
			this.used = numberAt(this.view, start + 8);
			this.checkTable();
		}
		this.checkList();
		if ((this.form === CUCKOO_LIST) !== (9 * this.distinct < 8 * this.words)) refuse(`encoding does not match the number of keys, ${this.distinct}`);
		return end;
	}

	/* high, low = the value of a slot.  8 bytes can be read from the start of any slot. */
	slot(number) {
		const bit = number * this.slotBits;
		const at = this.table + Math.floor(bit / 8);
		const shift = bit % 8;
		const h = this.view.getUint32(at + 4, true);
		const l = this.view.getUint32(at, true);

		low = ((shift === 0 ? l : l >>> shift | h << 32 - shift) & this.slotMaskLow) >>> 0;
		high = (h >>> shift & this.slotMaskHigh) >>> 0;
	}

	/* Does one of these slots of a bucket have this value? */
	bucketHas(bucket, h, l, from = 0) {
		for (let i = from; i < BUCKET_SLOTS; i++) {
			this.slot(BUCKET_SLOTS * bucket + i);
			if (high === h && low === l) return true;
		}
		return false;
	}

	/* The alternate bucket of a fingerprint in its own bucket. */
	alternate(bucket, h, l) {
		if (this.window === 0) return bucket;
		multiply64(h + (l === 0xFFFFFFFF ? 1 : 0), l + 1 >>> 0, 0x9E3779B9, 0x7F4A7C15);
		return (bucket + 1 + scale(high, low, this.window)) % this.buckets;
	}

	/*
	 * Checks that no number is in the table twice: neither twice in one bucket with the same
	 * bit, nor in both its own and its alternate bucket.  Needs no memory.
	 */
	checkTable() {
		const slots = BUCKET_SLOTS * this.buckets;
		const bits = slots * this.slotBits;
		let used = 0;

		for (let number = 0; number < slots; number++) {
			this.slot(number);
			const h = high;
			const l = low;
			const bucket = Math.floor(number / BUCKET_SLOTS);
			if (h === 0 && l === 0) continue;
			used++;
			if (this.bucketHas(bucket, h, l, number % BUCKET_SLOTS + 1)) refuse('number is in the table twice');
			if (l % 2 === 0 && this.bucketHas(this.alternate(bucket, h >>> 1, (l >>> 1 | h << 31) >>> 0), h, l + 1)) refuse('number is in the table twice');
		}
		if (used !== this.used) refuse(`${used} slots are used, not ${this.used}`);
		if (this.view.getUint8(this.table + Math.floor(bits / 8)) >> bits % 8 !== 0) refuse('bit is set after the last slot');
		for (let i = Math.floor(bits / 8) + 1; i < this.words * 8; i++) {
			if (this.view.getUint8(this.table + i) !== 0) refuse('bit is set after the last slot');
		}
	}

	checkList() {
		checkAscending(this.view, this.list, this.listed);
		this.distinct = this.used;
		for (let i = 0; i < this.listed; i++) {
			const h = this.view.getUint32(this.list + i * 8 + 4, true);
			const l = this.view.getUint32(this.list + i * 8, true);
			const copies = this.view.getUint8(this.list + this.listed * 8 + i);
			// exact: a bucket number times a power of two, and numbers below 2^53
			const bucket = h * 2 ** (33 - this.slotBits) + Math.floor(l / 2 ** (this.slotBits - 1));
			if (Math.floor(bucket) >= this.buckets) refuse('number is out of range');
			if (copies === 0) refuse('number in the list has no copies');
			if (!this.tableHas(h, l)) this.distinct++;
			else if (copies === MAX_COPIES) refuse('number has more copies than can be counted');
		}
	}

	/* Is this number in the table? */
	tableHas(h, l) {
		if (this.form !== CUCKOO_TABLE) return false;
		const bucket = Math.floor(h * 2 ** (33 - this.slotBits) + Math.floor(l / 2 ** (this.slotBits - 1)));
		const fingerprintHigh = (h & this.maskHigh) >>> 0;
		const fingerprintLow = (l & this.maskLow) >>> 0;
		const valueHigh = (fingerprintHigh << 1 | fingerprintLow >>> 31) >>> 0;
		const valueLow = fingerprintLow << 1 >>> 0;

		return (valueHigh !== 0 || valueLow !== 0) && this.bucketHas(bucket, valueHigh, valueLow) ||
			this.bucketHas(this.alternate(bucket, fingerprintHigh, fingerprintLow), valueHigh, valueLow + 1);
	}

	/* The number of copies of the key with this hash. */
	copies(h, l) {
		// hash * buckets has 96 bits, in three parts; shifted right, it is the number
		const top = scale(h, l, this.buckets);
		const middle = (Math.imul(h, this.buckets) + multiplyHigh(l, this.buckets)) >>> 0;
		const bottom = Math.imul(l, this.buckets) >>> 0;
		const shift = 65 - this.slotBits;

		if (shift >= 32) {
			l = shift === 32 ? middle : (middle >>> shift - 32 | top << 64 - shift) >>> 0;
			h = top >>> shift - 32;
		} else {
			l = (bottom >>> shift | middle << 32 - shift) >>> 0;
			h = (middle >>> shift | top << 32 - shift) >>> 0;
		}
		const place = findInList(this.view, this.list, this.listed, h, l);
		return (this.tableHas(h, l) ? 1 : 0) + (place < 0 ? 0 : this.view.getUint8(this.list + this.listed * 8 + place));
	}

	isEmpty() {
		return this.distinct === 0;
	}

	census() {
		const fpp = this.distinct / this.range;
		return { keys: fpp < 1 ? -this.range * Math.log1p(-fpp) : this.range, fpp };
	}
}

/** A bloom or cuckoo filter. Use `Filter.parse` to create one. */
export class Filter {
	#bytes;
	#view;
	#class;
	#scheme;
	#layers = [];
	#target;
	#growth;
	#maxLayers;

	/**
	 * Reads a filter from its text (base64, also with a newline at its end, as psql prints it) or
	 * its bytes, which are the same as bytea, in binary COPY and on the wire. Validates it
	 * completely.
	 */
	static parse(value) {
		if (typeof value === 'string') return new Filter(fromBase64(value.replace(/\r?\n$/, '')));
		if (!isBytes(value)) refuse(`a filter is a string (base64) or a Uint8Array, not ${describe(value)}`);
		if (value.length + LENGTH_WORD > MAX_BYTES) refuse('larger than the maximum size of a filter');
		return new Filter(new Uint8Array(value));	// a copy, which cannot change after validation
	}

	constructor(bytes) {
		if (!isBytes(bytes)) refuse('use Filter.parse');
		this.#bytes = bytes;
		this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		const size = bytes.length;
		const view = this.#view;

		// the header
		if (size < HEADER_BYTES) refuse('shorter than the header of a filter');
		const magic = view.getUint16(0, false);
		if (magic !== 0x4246 && magic !== 0x4346) refuse('neither a bloom nor a cuckoo filter');
		/** 'bloom' or 'cuckoo' */
		this.kind = magic === 0x4246 ? 'bloom' : 'cuckoo';
		const cuckoo = this.kind === 'cuckoo';
		const count = view.getUint8(5);
		this.#scheme = view.getUint8(3);
		this.#class = view.getUint8(4);
		this.#growth = view.getUint8(6);
		this.#maxLayers = view.getUint8(7);
		this.#target = view.getFloat64(8, true);
		if (view.getUint8(2) !== 1) refuse(`format version ${view.getUint8(2)} is unknown`);
		if (this.#scheme > 3) refuse(`hash scheme ${this.#scheme} is unknown`);
		if (this.#class >= CLASSES.length && this.#class !== NAMED) refuse(`key class ${this.#class} is unknown`);
		if (this.#class === NAMED ? this.#scheme === 0 : this.#scheme !== (this.#class === 0 ? 0 : 1)) refuse('key class does not match hash scheme');
		if (count < 1 || count > (cuckoo ? 1 : MAX_LAYERS)) refuse(`number of layers, ${count}, is out of range`);
		if (!(this.#target >= 1e-12 && this.#target < 1)) refuse('false-positive probability is out of range');
		if (this.#growth > MAX_GROWTH || this.#maxLayers > MAX_LAYERS) refuse('growth or max_layers is out of range');
		if (cuckoo && (this.#maxLayers !== 0 || ![0, 2, 4, 8, 16, 32, 64].includes(this.#growth))) refuse('growth or max_layers is invalid for a cuckoo filter');
		if (this.#maxLayers > 0 && (this.#growth !== 1 || count > this.#maxLayers)) refuse('rotating filter grows or has too many layers');

		// the name of the class
		let offset = HEADER_BYTES;
		let name = CLASSES[this.#class];
		if (this.#class === NAMED) {
			const end = offset + 1 + (size > offset ? view.getUint8(offset) : 0);
			offset = align(end, 8);
			if (size < offset) refuse('filter ends before its class name does');
			try {
				name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(HEADER_BYTES + 1, end));
			} catch {
				refuse('class name is not UTF-8');
			}
			if (name === '' || name.includes('\0')) refuse('class name is empty or has a zero byte');
			checkZero(bytes, end, offset);
		}
		/** key class, or null if the filter has no keys yet */
		this.keyClass = name;

		// the entries: the entry of layer 1 is the end of the header
		const entriesEnd = offset + ENTRY_BYTES * (count - 1);
		const contents = align(entriesEnd, 8);
		if (size < contents) refuse('filter ends before its layer entries do');
		for (let i = 0; i < count; i++) {
			const entry = i === 0 ? HEADER_BYTES - ENTRY_BYTES : offset + ENTRY_BYTES * (i - 1);
			this.#layers.push(cuckoo ? new CuckooLayer(view, entry) : new BloomLayer(view, entry));
		}

		// the contents, with zeros between and after them
		const wide = size + LENGTH_WORD >= WIDE_BYTES;
		let end = entriesEnd;
		let start = contents;
		let narrowSize = contents;
		for (const layer of this.#layers) {
			if (wide) start = align(start, LINE_BYTES);
			if (start > size) refuse('filter ends before its last layer does');
			checkZero(bytes, end, start);
			end = layer.open(start, size);
			narrowSize += end - start;
			start = end;
		}
		if (wide !== (narrowSize + LENGTH_WORD >= WIDE_BYTES)) refuse('size does not match narrow or wide layout');
		const padding = wide ? (this.#sizeCode() - (end + LENGTH_WORD) % LINE_BYTES + LINE_BYTES) % LINE_BYTES : 0;
		if (size !== end + padding) refuse('size is not the sum of the parts');
		checkZero(bytes, end, size);
		if (this.#class === 0 && !this.#layers.every((layer) => layer.isEmpty())) refuse('filter has keys but no key class');
		Object.freeze(this);
	}

	/* The size of a wide filter modulo 64. */
	#sizeCode() {
		const layer = this.#layers[0];
		if (this.kind === 'cuckoo' || this.#layers.length > 1 || layer.form !== LINES || this.#class < 1 || this.#class > 3) return NO_SIZE_CODE;
		const [code, probes] = SIZE_CODES[layer.groups];
		return layer.probes < probes ? NO_SIZE_CODE : code + 3 * (layer.probes - probes) + this.#class - 1;
	}

	/* The number of copies of a key, 0 or 1 in a bloom filter. */
	#copies(key, type) {
		let className = this.keyClass;

		if (type !== undefined) {
			className = classOf(type);
			if (this.keyClass !== null && className !== this.keyClass) refuse(`a key of type ${type} has the class ${className}, the filter has keys of the class ${this.keyClass}`);
		}
		if (className === null) {
			if (key === null || key === undefined) refuse('NULL cannot be tested: the server returns NULL for it');
			return 0;	// an empty filter accepts keys of any class
		}
		if (this.#scheme > 1 || !Object.hasOwn(CANONICAL, className)) {
			refuse(`keys of the class ${className} cannot be hashed here${this.#scheme > 1 ? ', but only by a function of the server' : ''}: get bloom_hash(key) from the server and call containsHash`);
		}
		hashOf(key, className, type);
		return this.#copiesOf(high, low);
	}

	#copiesOf(h, l) {
		for (const layer of this.#layers) {
			const copies = layer.copies(h, l);
			if (copies > 0) return copies;
		}
		return 0;
	}

	/** Tests for a key. false: definitely absent; true: possibly present. */
	contains(key, type) {
		return this.#copies(key, type) > 0;
	}

	/** The same for many keys, in their order. */
	containsMany(keys, type) {
		if (typeof keys !== 'object' || typeof keys?.[Symbol.iterator] !== 'function') refuse(`keys must be an array or another iterable object, not ${describe(keys)}`);
		if (type === undefined && Object.prototype.toString.call(keys) === '[object Float32Array]') type = 'real';
		return Array.from(keys, (key) => this.#copies(key, type) > 0);
	}

	/** The same for the result of bloom_hash(key) on the server, for keys of any class. */
	containsHash(hash) {
		if (typeof hash !== 'bigint') refuse(`a hash is a BigInt, not ${describe(hash)}`);
		if (BigInt.asIntN(64, hash) !== hash && BigInt.asUintN(64, hash) !== hash) refuse(`${hash} does not fit into 64 bits`);
		return this.#copiesOf(Number(BigInt.asUintN(64, hash) >> 32n), Number(BigInt.asUintN(32, hash))) > 0;
	}

	/** The number of copies of a key in a cuckoo filter; 255 means 255 or more. */
	count(key, type) {
		if (this.kind !== 'cuckoo') refuse('a bloom filter does not count keys');
		return this.#copies(key, type);
	}

	/** The result of bloom_stats or cuckoo_stats, with the same names in camel case. */
	stats() {
		let capacity = 0;
		let keys = 0;
		let fpp = 0;

		for (const layer of this.#layers) {
			const census = layer.census();
			capacity += layer.capacity;
			keys += census.keys;
			fpp += census.fpp - fpp * census.fpp;
		}
		return {
			kind: this.kind,
			bytes: this.#bytes.length + LENGTH_WORD,
			layers: this.#layers.length,
			capacity,
			cardinality: Math.round(keys),
			targetFpp: this.#target,
			fpp,
			growth: this.#growth,
			maxLayers: this.#maxLayers === 0 ? null : this.#maxLayers,
			keyClass: this.keyClass,
			formatVersion: 1,
		};
	}
}
