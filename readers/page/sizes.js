/*
 * sizes.js
 *		Sizes of filters, computed with the server's formulas.
 *
 * A port of src/core/geometry.c, growth.c, table.c, of the sizes in format.c, of the
 * first layer in src/index/layers.c and of choose_size in src/fingerprint/fp_build.c.
 * Names are the same; the C files give the reasons.  Both implementations use only
 * + - * / (and square roots) on doubles, in the same order, so the sizes are exactly
 * equal.  readers/page/test.mjs compares them with bloom_plan, cuckoo_plan and real indexes.
 *
 * Numbers stay below 2^53: at most 2^40 keys, times 4 groups, times 1024.  So a
 * double replaces uint64_t, and division replaces shifts and masks.
 */

export const MAX_CAPACITY = 2 ** 40;
export const MIN_FPP = 1e-12;
export const MAX_BYTES = 512 * 1024 * 1024;
export const INDEX_MIN_FPP = 0.0001;
export const INDEX_MAX_FPP = 0.5;
export const INDEX_MAX_CAPACITY = 2 ** 31 - 1;

const LINE_BITS = 512;
const LINE_BYTES = 64;
const LINE_WORDS = 8;
const MAX_PROBES = 8;

const LOAD_UNIT = 1024;
const FOLDABLE_LINES = 256;
const LOOSEST_FPP = 0.7;

/* ----------------------------------------------------------------
 * Lines: src/core/geometry.c
 * ----------------------------------------------------------------
 */

function power(base, exponent) {
	let result = 1.0;

	for (; exponent > 0; exponent = Math.floor(exponent / 2)) {
		if (exponent % 2 === 1)
			result *= base;
		base *= base;
	}
	return result;
}

/* Exact for integers; the quotient of doubles could round down to an integer. */
function divideUp(a, b) {
	return (a - a % b) / b + (a % b > 0 ? 1 : 0);
}

/* e^-x for x >= 0.  Math.exp may differ between browsers in the last bit. */
function expMinus(x) {
	let term = 1.0;
	let sum = 1.0;

	x /= 1024;
	for (let i = 1; i < 12; i++) {
		term *= -x / i;
		sum += term;
	}
	return power(sum, 1024);
}

function lineFpp(bits, clear, clear2, probes) {
	const fill = 1.0 - clear;
	const variance = (clear + (bits - 1) * clear2) / bits - clear * clear;
	const excess = 0.5 * probes * (probes - 1.0) * variance / (fill * fill);

	return power(fill, probes) * (1.0 + (excess > 0 ? excess : 0));
}

function singleLineFpp(bits, keys, probes) {
	if (keys === 0)
		return 0.0;
	return Math.min(lineFpp(bits, power(1.0 - 1.0 / bits, keys * probes),
		power(1.0 - 2.0 / bits, keys * probes), probes), 1.0);
}

function poissonFpp(load, probes) {
	const clearStep = power(1.0 - 1.0 / LINE_BITS, probes);
	const clear2Step = power(1.0 - 2.0 / LINE_BITS, probes);
	let weight = expMinus(load);
	let total = weight;
	let clear = 1.0;
	let clear2 = 1.0;
	let fpp = 0.0;

	if (load > 700)
		return 1.0;
	for (let keys = 1; keys < 2 * load || total < 1.0 - 1e-9; keys++) {
		weight *= load / keys;
		clear *= clearStep;
		clear2 *= clear2Step;
		total += weight;
		fpp += weight * lineFpp(LINE_BITS, clear, clear2, probes);
		if (keys > load && weight < 1e-18)
			break;
	}
	return Math.min(fpp, 1.0);
}

function largestLoad(fpp, groups, probes) {
	let low = 0;
	let high = 700 * LOAD_UNIT;

	while (high - low > 1) {
		const middle = Math.floor((low + high) / 2);

		if (power(poissonFpp(middle / LOAD_UNIT, probes), groups) <= fpp)
			low = middle;
		else
			high = middle;
	}
	return low;
}

const solved = new Map();

/* The best number of probes and its load.  Cached, because it takes some milliseconds. */
function solveLoad(fpp, groups) {
	const name = `${fpp} ${groups}`;
	let best = solved.get(name);

	if (best === undefined) {
		best = { probes: 0, load: 0 };
		for (let probes = 1; probes <= MAX_PROBES; probes++) {
			const load = largestLoad(fpp, groups, probes);

			if (load > best.load)
				best = { probes, load };
		}
		solved.set(name, best);
	}
	return best;
}

function groupsFor(fpp) {
	return fpp >= 2e-3 ? 1 : fpp >= 1e-5 ? 2 : fpp >= 1e-8 ? 3 : 4;
}

function foldable(lines) {
	let unit = 1;

	while (Math.floor(lines / unit) >= FOLDABLE_LINES)
		unit *= 2;
	return divideUp(lines, unit) * unit;
}

/* Words, groups and probes of a layer for `capacity` keys: bf_shape_for. */
function shapeFor(capacity, fpp) {
	fpp = Math.min(Math.max(fpp, MIN_FPP), LOOSEST_FPP);

	const groups = groupsFor(fpp);

	for (let words = 1; words <= LINE_WORDS && capacity <= LINE_BITS; words++) {
		let best = fpp;
		let probes = 0;

		for (let k = 1; k <= MAX_PROBES; k++) {
			const got = singleLineFpp(words * 64, capacity, groups * k);

			if (got <= best) {
				best = got;
				probes = k;
			}
		}
		if (probes > 0)
			return { words, groups, probes };
	}

	const { probes, load } = solveLoad(fpp, groups);
	const lines = Math.max(divideUp(capacity * groups * LOAD_UNIT, load), 2);

	return { words: foldable(lines) * LINE_WORDS, groups, probes };
}

/* ----------------------------------------------------------------
 * First layer of a growing filter: src/core/growth.c
 * ----------------------------------------------------------------
 */

/* The capacity and six standard deviations, which are given in quarters of its root. */
function fullKeys(capacity, shape) {
	const quarters = [24, 24, 12, 10, 9, 8, 7, 7];
	const bits = shape.groups * shape.probes;
	let root = Math.floor(Math.sqrt(capacity));

	/* the integer root, independent of the rounding of the browser's sqrt */
	while (root * root > capacity)
		root--;
	while ((root + 1) * (root + 1) <= capacity)
		root++;
	return capacity + Math.floor(((bits < 8 ? quarters[bits] : 6) * root + 3) / 4);
}

function growingShape(capacity, fpp) {
	const share = fpp * (1.0 / 3.0);

	return shapeFor(fullKeys(capacity, shapeFor(capacity, share)), share);
}

/* ----------------------------------------------------------------
 * Cuckoo tables: src/core/table.c
 * ----------------------------------------------------------------
 */

function tableFor(capacity, fpp, growth) {
	const keys = growth === 0 ? capacity : Math.max(capacity * 2, 2 ** 20);
	let buckets = Math.max(Math.floor(capacity * 5 / 19), 1);
	let slotBits = 5;

	while (Math.floor((buckets * 19 + 4) / 5) < capacity)
		buckets++;
	while (!(buckets * 2 ** (slotBits - 1) * fpp >= keys) &&
		   slotBits < 56 && buckets * 2 ** (slotBits - 1) < 2 ** 61)
		slotBits++;
	return { buckets, slotBits };
}

function tableWords({ buckets, slotBits }) {
	const last = (buckets * 4 - 1) * slotBits;

	return Math.floor((Math.floor(last / 8) + 8 + 7) / 8);
}

/* ----------------------------------------------------------------
 * Bytes: src/core/format.c
 * ----------------------------------------------------------------
 */

const HEADER_BYTES = 28;
const LENGTH_WORD = 4;
const WIDE_BYTES = 2048;
const SIZE_CODE_HEADER = 60;

/* Size of a filter whose only layer has contents of this size, length word included. */
function filterBytes(contents, sizeCode) {
	const narrow = HEADER_BYTES + LENGTH_WORD + contents;

	if (narrow < WIDE_BYTES)
		return narrow;

	/* the header takes a line; round up to the next size with the right remainder */
	const size = LINE_BYTES + contents;

	return size + (sizeCode + LINE_BYTES - size % LINE_BYTES) % LINE_BYTES;
}

/* The size code of a wide filter of integers, which encodes its shape. */
function sizeCode({ groups, probes }) {
	const firstProbes = [1, 4, 5, 6];
	const firstCode = [0, 8, 13, 17];

	if (probes < firstProbes[groups - 1])
		return SIZE_CODE_HEADER;
	return (firstCode[groups - 1] + probes - firstProbes[groups - 1]) * 3;
}

/* `needed` is the size that the server compares with the limit and reports in its error. */
function plan(words, sizeCode, more) {
	const needed = words * 8 + 2 * LINE_BYTES;

	return { bytes: filterBytes(words * 8 + more.head, sizeCode), needed, tooLarge: needed > MAX_BYTES, ...more.shown };
}

function bloomOfShape(shape) {
	return plan(shape.words, sizeCode(shape), { head: 0, shown: { hashes: shape.groups * shape.probes } });
}

/* bloom_plan(capacity, fpp), which also applies to bloom_agg and to bloom_new with growth => 0 */
export function bloomPlan(capacity, fpp) {
	return bloomOfShape(shapeFor(capacity, fpp));
}

/* A growing filter, bloom_new(capacity, fpp), when it holds `capacity` keys */
export function bloomGrowing(capacity, fpp) {
	return bloomOfShape(growingShape(capacity, fpp));
}

/*
 * cuckoo_plan(capacity, fpp, growth), and `shared`, which the plan leaves out: the estimated
 * number of keys that have the number of another key.  Each takes 9 bytes in a list.
 */
export function cuckooPlan(capacity, fpp, growth) {
	const table = tableFor(capacity, fpp, growth);
	const range = table.buckets * 2 ** (table.slotBits - 1);
	const shared = capacity + range * Math.expm1(-capacity / range);

	return plan(tableWords(table), SIZE_CODE_HEADER, { head: 16, shown: { slotBits: table.slotBits, shared } });
}

/* ----------------------------------------------------------------
 * Index: src/index/layers.c
 * ----------------------------------------------------------------
 */

const PAGE_BYTES = 8192;
const PAGE_LINES = (PAGE_BYTES - LINE_BYTES) / LINE_BYTES;
const KNOWN_SHARE = 3.0 / 4;

/* CREATE INDEX ... USING bloomfilter ... WITH (capacity, fpp): size of the file, metapage included */
export function indexPlan(capacity, fpp) {
	const { probes, load } = solveLoad(fpp * KNOWN_SHARE, 1);
	const pageKeys = Math.max(Math.floor(PAGE_LINES * load / LOAD_UNIT), 1);
	const pages = Math.max(divideUp(capacity, pageKeys), 1);

	return { bytes: (1 + pages) * PAGE_BYTES, hashes: probes };
}

/* ----------------------------------------------------------------
 * Fingerprint index: src/fingerprint/fp_build.c
 * ----------------------------------------------------------------
 */

const FP_GROUP = 4;
const FP_MAX_LEVEL = 25;
const FP_RESTS_OFFSET = 2768;
const FP_NARROW_REST = 4;
const FP_LARGEST_REST = 6;
const FP_EXTEND_PAGES = 8;
const FP_TAGS = 65536;
const DEVIATIONS = 2.5;

/* The number of bits of a number, as bits_of in fp_page.c */
function bitsOf(number) {
	let bits = 0;

	for (; number >= 1; number = Math.floor(number / 2))
		bits++;
	return bits;
}

/* Entries that an empty page of a level has room for: fp_make_fit in fp_page.c, and fp_room */
function fpCapacity(addressBits, level) {
	const needed = Math.max(addressBits > 11 ? addressBits - 11 : 0, level + 2);
	let rest = FP_NARROW_REST;

	while (rest < FP_LARGEST_REST && 8 * rest < addressBits + needed - level)
		rest++;
	return Math.floor((PAGE_BYTES - FP_RESTS_OFFSET) / rest);
}

/* P(a normal variable is more than x standard deviations above its mean), to 1e-7 (Abramowitz and Stegun 26.2.17) */
function normalTail(x) {
	const t = 1 / (1 + 0.2316419 * x);

	return Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI) * t *
		(0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
}

/* The index of near-unique keys for a table with this number of rows per page: choose_size */
function fpBuilt(rows, rowsPerPage) {
	const addressBits = bitsOf(Math.ceil(rows / rowsPerPage) - 1) + bitsOf(rowsPerPage);

	for (let step = 0; step <= FP_GROUP * FP_MAX_LEVEL; step++) {
		const level = Math.floor(step / FP_GROUP);
		const capacity = fpCapacity(addressBits, level);
		const root = (Math.sqrt(DEVIATIONS * DEVIATIONS + 4.0 * capacity) - DEVIATIONS) / 2;
		const members = FP_GROUP + step % FP_GROUP;
		const buckets = members * 2 ** level;

		if (buckets * root * root >= rows) {
			/* buckets with more entries than a page has room for; the tags divide a group unevenly */
			const mean = rows / buckets;
			const deviation = Math.sqrt(mean + mean * mean * (members - 1) / FP_TAGS);

			return { pages: 1 + buckets, overflows: buckets * normalTail((capacity + 0.5 - mean) / deviation) };
		}
	}
	return null;
}

/* Each bucket that overflows takes a page, and the file grows by eight of them at a time. */
function fpBytes({ pages }, overflows) {
	return (pages + FP_EXTEND_PAGES * Math.ceil(Math.max(Math.round(overflows), 0) / FP_EXTEND_PAGES)) * PAGE_BYTES;
}

/*
 * CREATE INDEX ... USING fingerprint: the size of the file for a row per key and 100 rows per page of the
 * table.  The size is known to the byte, `least` = `most`, unless buckets may overflow, or addresses
 * may be so long that entries are wider, which depends on the rows per page of the table
 * (`dependsOnTable`).  `tooLarge`: such an index would overflow.
 */
export function fingerprintPlan(rows) {
	const typical = fpBuilt(rows, 100);
	const others = [20, 31, 32, 63, 64, 100, 127, 128, 226].map((rowsPerPage) => fpBuilt(rows, rowsPerPage)).filter((built) => built !== null);

	if (typical === null)
		return { tooLarge: true };
	/* the estimate of the number of overflows is not exact, so the range is generous */
	const low = ({ overflows }) => overflows < 1e-3 ? 0 : 0.5 * overflows - 5 * Math.sqrt(overflows) - 1;
	const high = ({ overflows }) => overflows < 1e-3 ? 0 : 2 * overflows + 5 * Math.sqrt(overflows) + 1;
	return {
		bytes: fpBytes(typical, typical.overflows),
		least: Math.min(...others.map((built) => fpBytes(built, low(built)))),
		most: Math.max(...others.map((built) => fpBytes(built, high(built)))),
		dependsOnTable: others.some(({ pages }) => pages !== typical.pages),
		tooLarge: false,
	};
}

/* ----------------------------------------------------------------
 * Structures to compare with
 * ----------------------------------------------------------------
 */

/*
 * `element` is the exact size of a key in an array.  `btree` is the size per key of a
 * newly built btree on a million distinct keys, measured with pg_relation_size on
 * PostgreSQL 15.  The tests repeat the measurement.
 */
export const KEYS = {
	bigint: { label: 'bigint', element: 8, btree: 22.49 },
	uuid: { label: 'uuid', element: 16, btree: 31.56 },
	text16: { label: 'text of 16 characters', element: 20, btree: 40.64 },
	text36: { label: 'text of 36 characters', element: 40, btree: 59.06 },
};

/* A metapage, the pages of keys, and a root if there are several */
export function btreeBytes(capacity, key) {
	const pages = Math.max(Math.ceil(capacity * KEYS[key].btree / PAGE_BYTES), 1);

	return (1 + pages + (pages > 1 ? 1 : 0)) * PAGE_BYTES;
}

/* An array of all keys, the smallest exact set in SQL; its header takes 24 bytes */
export function exactBytes(capacity, key) {
	return 24 + capacity * KEYS[key].element;
}
