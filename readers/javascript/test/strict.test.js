/* Values that are not keys, or may have lost precision, are errors. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { bloomHash, Filter, FilterError } from '../bloomfilter.js';
import * as reader from '../bloomfilter.js';

const vectors = JSON.parse(readFileSync(new URL('../../vectors.json', import.meta.url), 'utf8'));
const textOf = (keyClass) => vectors.filters.find((vector) => vector.stats.key_class === keyClass).text;
const filterOf = (keyClass) => Filter.parse(textOf(keyClass));
const integers = filterOf('integer');

function refused(call, pattern) {
	assert.throws(call, (error) => error instanceof FilterError && error.name === 'FilterError' && pattern.test(error.message), String(call));
}

test('text may end with the newline that psql prints, and with nothing else', () => {
	const text = textOf('integer');

	for (const end of ['\n', '\r\n']) assert.equal(Filter.parse(text + end).contains(1), integers.contains(1));
	for (const end of ['\n\n', ' ', '\t', '\r', '\n ']) refused(() => Filter.parse(text + end), /not base64/);
	refused(() => Filter.parse('\n' + text), /not base64/);
});

test('NULL is not a key', () => {
	for (const keyClass of ['integer', 'text', null]) {
		refused(() => filterOf(keyClass).contains(null), /NULL/);
		refused(() => filterOf(keyClass).contains(undefined), /NULL/);
	}
});

test('an empty filter accepts keys of any class', () => {
	const empty = filterOf(null);

	for (const key of [1, 1n, 'a', true, new Uint8Array(3), 0.1]) assert.equal(empty.contains(key), false);
	assert.equal(empty.contains(1, 'bigint'), false);
	refused(() => empty.contains('1', 'bigint'), /not a string/);
	assert.deepEqual(empty.containsMany([1, 'a']), [false, false]);
});

test('integer', () => {
	for (const key of ['1', true, new Date(0), new Uint8Array(8), {}, [1], Symbol('1'), () => 1]) refused(() => integers.contains(key), /class integer is a number or a BigInt/);
	for (const key of [0.5, NaN, Infinity, -Infinity]) refused(() => integers.contains(key), /not an integer/);
	for (const key of [2 ** 53, -(2 ** 53), 1e300]) refused(() => integers.contains(key), /BigInt/);
	for (const key of [2n ** 63n, -(2n ** 63n) - 1n, 2n ** 100n]) refused(() => integers.contains(key), /out of range for bigint/);
	assert.equal(bloomHash(-0, 'integer'), bloomHash(0n, 'bigint'));
});

test('types of another class', () => {
	refused(() => integers.contains(1, 'text'), /class text, the filter has keys of the class integer/);
	refused(() => integers.contains(1, 'double precision'), /class float/);
	refused(() => integers.contains(1, 'numeric'), /cannot be hashed here/);
	refused(() => integers.contains(1, 'nonsense'), /cannot be hashed here/);
	refused(() => integers.contains(1, 'constructor'), /cannot be hashed here/);
	refused(() => integers.contains(1, 7), /a type is a string/);
	refused(() => bloomHash(1), /a type is a string/);
	assert.equal(integers.contains(1, 'INTEGER'), true);
});

test('text', () => {
	const texts = filterOf('text');

	for (const key of [1, 1n, true, new Uint8Array(1), new String('a')]) refused(() => texts.contains(key), /class text is a string/);
	for (const key of ['\uD83D', '\uDC18', 'a\uDC18\uD83D', '\uD83D\uD83D\uDC18']) refused(() => texts.contains(key), /surrogate/);
	refused(() => texts.contains('a\0'), /zero character/);
	assert.equal(bloomHash(' '.repeat(100000), 'text'), bloomHash('', 'text'));
	assert.equal(bloomHash(`${' '.repeat(100000)}a`, 'text') === bloomHash('a', 'text'), false);
});

test('uuid', () => {
	const uuids = filterOf('uuid');
	const one = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';

	for (const key of ['', 'a', one.slice(1), `${one}0`, `{${one}`, `${one}}`, one.replace('a0', 'g0'), ` ${one}`, one.replace('-', '--'), `${one}-`]) refused(() => uuids.contains(key), /is not a uuid/);
	refused(() => uuids.contains(new Uint8Array(15)), /16 bytes/);
	refused(() => uuids.contains(1), /class uuid/);
	assert.equal(bloomHash(new Uint8Array(Buffer.from(one.replaceAll('-', ''), 'hex')), 'uuid'), bloomHash(one, 'uuid'));
});

test('bytea and boolean', () => {
	refused(() => filterOf('bytea').contains('\\x00'), /Uint8Array, not a string/);
	refused(() => filterOf('bytea').contains(new ArrayBuffer(3)), /not a ArrayBuffer/);
	refused(() => filterOf('bytea').contains(new Uint16Array(3)), /not a Uint16Array/);
	refused(() => filterOf('bytea').contains([1, 2]), /not an array/);
	for (const key of [0, 1, 'true', 't']) refused(() => filterOf('boolean').contains(key), /true or false/);
});

test('float: a key that differs as real and as double precision needs its type', () => {
	const floats = filterOf('float');

	refused(() => floats.contains(0.1), /'real' or 'double precision'/);
	refused(() => floats.containsMany([0.5, 0.1]), /'real' or 'double precision'/);
	refused(() => floats.contains('0.5'), /class float is a number/);
	refused(() => floats.contains(1n), /class float is a number/);
	refused(() => floats.contains(1e39, 'real'), /out of range for real/);
	assert.equal(bloomHash(0.1, 'real') === bloomHash(0.1, 'double precision'), false);
	assert.equal(bloomHash(0.1, 'real'), bloomHash(Math.fround(0.1), 'double precision'));
	assert.equal(bloomHash(-0, 'float8'), bloomHash(0, 'float8'));
	const reals = Filter.parse(vectors.filters.find((vector) => vector.name === 'only reals').text);
	assert.deepEqual(reals.containsMany(Float32Array.of(0.1, 0.2)), [true, false]);
});

test('dates', () => {
	const dates = filterOf('date');

	for (const key of ['2023-02-29', '1900-02-29', '2024-13-01', '2024-00-01', '2024-01-00', '2024-01-32', '0000-01-01', '0002-02-29 BC', '0000-01-01 BC']) refused(() => dates.contains(key), /not a valid date/);
	for (const key of ['', 'today', '2024-1-1', '24-01-01', '2024-01-01 ', '2024-01-01T00:00', '02024-01-01', '+2024-01-01', '2024/01/01', 'Infinity', '2024-01-01 bc', '２024-01-01']) refused(() => dates.contains(key), /not a date of the form/);
	for (const key of ['4714-11-23 BC', '5874898-01-01', '9999999-01-01']) refused(() => dates.contains(key), /out of range/);
	for (const key of [new Date(), 0, NaN]) refused(() => dates.contains(key), /such as '2024-02-29'/);
	assert.equal(bloomHash(Infinity, 'date'), bloomHash('infinity', 'date'));
});

test('timestamps', () => {
	const local = filterOf('timestamp');
	const zoned = filterOf('timestamptz');

	refused(() => zoned.contains(new Date()), /no microseconds.*toISOString/);
	refused(() => local.contains(new Date()), /no microseconds/);
	refused(() => zoned.contains('2024-01-01 00:00:00'), /no time zone/);
	refused(() => local.contains('2024-01-01 00:00:00Z'), /has a time zone/);
	for (const key of ['2024-01-01', '2024-01-01 00', '2024-01-01 00:00:00.1234567', '2024-01-01  00:00:00', '2024-01-01 00:00:00.', 'now']) refused(() => local.contains(key), /not a timestamp of the form/);
	for (const key of ['2024-01-01 24:00:00', '2024-01-01 23:60:00', '2024-01-01 23:59:60']) refused(() => local.contains(key), /time of day/);
	for (const key of ['2024-01-01 00:00:00+16', '2024-01-01 00:00:00+01:60', '2024-01-01 00:00:00+01:00:60']) refused(() => zoned.contains(key), /time zone that is out of range/);
	for (const key of ['294277-01-01 00:00:00', '4714-11-23 00:00:00 BC']) refused(() => local.contains(key), /out of range/);
	refused(() => zoned.contains('294276-12-31 23:59:59-01'), /out of range/);
	refused(() => zoned.contains('4714-11-24 00:00:00+01 BC'), /out of range/);
	assert.equal(bloomHash('2024-01-01 00:00:00.1234560000', 'timestamp'), bloomHash('2024-01-01T00:00:00.123456', 'timestamp'));
	assert.equal(bloomHash(new Date(1700000000123).toISOString(), 'timestamptz'), bloomHash('2023-11-14 22:13:20.123+00', 'timestamptz'));
});

test('containsMany takes an iterable object', () => {
	for (const keys of ['123', 1, null, undefined, {}]) refused(() => integers.containsMany(keys), /iterable/);
	assert.deepEqual(integers.containsMany(new Set([1])), [true]);
	assert.deepEqual(integers.containsMany(BigInt64Array.of(1n)), [true]);
	assert.deepEqual(integers.containsMany([]), []);
	refused(() => integers.containsMany([1, 'a']), /class integer/);
});

test('hashes and counts', () => {
	refused(() => integers.containsHash(1), /a hash is a BigInt/);
	refused(() => integers.containsHash(2n ** 64n), /64 bits/);
	refused(() => integers.containsHash(-(2n ** 63n) - 1n), /64 bits/);
	refused(() => integers.count(1), /does not count/);
});

test('only strings and Uint8Arrays are parsed', () => {
	for (const value of [null, undefined, 1, {}, [], new ArrayBuffer(40), new DataView(new ArrayBuffer(40))]) refused(() => Filter.parse(value), /a filter is a string/);
	refused(() => new Filter(), /Filter.parse/);
});

test('a filter does not change with the bytes it was parsed from, nor by assignment', () => {
	const bytes = new Uint8Array(Buffer.from(vectors.filters.find((vector) => vector.name === 'one word').text, 'base64'));
	const filter = Filter.parse(bytes);

	bytes.fill(0);
	assert.equal(filter.contains(1), true);
	assert.throws(() => { filter.keyClass = 'text'; }, TypeError);
});

test('the declarations are complete', () => {
	const declared = readFileSync(new URL('../bloomfilter.d.ts', import.meta.url), 'utf8');
	const exported = [...declared.matchAll(/^export (?:class|function) (\w+)/gm)].map((match) => match[1]);
	const methods = [...declared.matchAll(/^\t(\w+)\(/gm)].map((match) => match[1]);
	const stats = declared.match(/interface FilterStats \{(.*?)\n\}/s)[1];

	assert.deepEqual(exported.sort(), Object.keys(reader).sort());
	assert.deepEqual(methods.sort(), Object.getOwnPropertyNames(Filter.prototype).filter((name) => name !== 'constructor').sort());
	assert.deepEqual([...stats.matchAll(/^\t(\w+):/gm)].map((match) => match[1]).sort(), Object.keys(integers.stats()).sort());
});

test('the reader imports nothing', () => {
	assert.equal(readFileSync(new URL('../bloomfilter.js', import.meta.url), 'utf8').match(/^import .*$|import\(.*$|require\(.*$/gm), null);
	assert.deepEqual(Object.keys(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).dependencies ?? {}), []);
});
