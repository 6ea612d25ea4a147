/*
 * page.js
 *		The script of docs/filter.html: sizes of filters, and testing one for keys.
 *
 * script/page puts this file, sizes.js and the reader of readers/javascript into the
 * page.  External data, a filter or a key, is added to the document only as text.
 */
import * as sizes from './sizes.js';
import * as reader from '../javascript/bloomfilter.js';

const element = (id) => document.getElementById(id);

/* make('p', { className: 'soft' }, 'text', child, ...) */
function make(tag, properties = {}, ...children) {
	const made = Object.assign(document.createElement(tag), properties);

	made.append(...children);
	return made;
}

/* ----------------------------------------------------------------
 * Formatting numbers
 * ----------------------------------------------------------------
 */

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function digits(number, significant) {
	return new Intl.NumberFormat('en-US', { maximumSignificantDigits: significant }).format(number);
}

/* Units of 1024 like those of pg_size_pretty */
function pretty(bytes) {
	const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];
	let unit = 0;

	while (bytes >= 1000 && unit < units.length - 1) {
		bytes /= 1024;
		unit++;
	}
	return `${unit === 0 || bytes >= 100 ? whole.format(bytes) : bytes.toPrecision(3)} ${units[unit]}`;
}

/* 0.01 -> "1%", 1e-7 -> "0.00001%" */
function percent(fpp) {
	return `${new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4, maximumFractionDigits: 20 }).format(fpp * 100)}%`;
}

function oneIn(fpp) {
	const times = 1 / fpp;

	return `1 in ${times < 10 ? digits(times, 2) : digits(times, 3)}`;
}

const keysInWords = (n) => `${whole.format(n)} ${n === 1 ? 'key' : 'keys'}`;

/* ----------------------------------------------------------------
 * Input
 * ----------------------------------------------------------------
 */

/*
 * Sliders have ten steps per decade, by Renard's numbers: 1, 1.25, 1.6, 2 and so on.
 * The values are made from decimal digits, so that the SQL shows the same digits.
 */
const RENARD = ['1', '1.25', '1.6', '2', '2.5', '3.2', '4', '5', '6.3', '8'];
const N_STEPS = [];
const FPP_STEPS = [];
for (let decade = 0; decade <= 9; decade++) {
	for (const step of RENARD) {
		const n = Math.round(Number(`${step}e${decade}`));
		const fpp = Number(`${step}e-${decade}`);

		if (n <= 1e9 && !N_STEPS.includes(n))
			N_STEPS.push(n);
		if (fpp <= 0.5)
			FPP_STEPS.push(fpp);
	}
}
FPP_STEPS.sort((a, b) => b - a);

const wanted = { n: 1e6, fpp: 0.01, key: 'bigint', growing: false };

/* 1000000, 1,000,000, 1_000_000, 1e6, 1M, 1 million; undefined if it is not a number of keys */
function parseKeys(text) {
	const parts = /^(\d[\d,_'\u00A0\u202F ]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(k|thousand|m|mio|million|g|bn|billion)?$/i.exec(text.trim());
	const powers = { k: 3, t: 3, m: 6, g: 9, b: 9 };

	if (parts === null)
		return undefined;
	const number = Number(parts[1].replace(/[,_'\u00A0\u202F ]/g, '')) * 10 ** (powers[parts[2]?.[0].toLowerCase()] ?? 0);
	const n = Math.round(number);
	return n >= 1 && n <= sizes.MAX_CAPACITY && Math.abs(n - number) < 1e-6 * n ? n : undefined;
}

/* 0.01, 1e-2, 1%, 1/100, 1 in 100; undefined if it is not a probability */
function parseFpp(text) {
	const plain = /^(\d*\.?\d+(?:e-?\d{1,2})?)\s*(%)?$/i.exec(text.trim());
	const ratio = /^(\d+)\s*(?:\/|in)\s*(\d[\d,_ ]*)$/i.exec(text.trim());
	let fpp;

	if (plain !== null)
		/* 0.7% is 0.007, not the rounded 0.7 / 100 */
		fpp = plain[2] === undefined ? Number(plain[1]) : Number(/e/i.test(plain[1]) ? plain[1] / 100 : `${plain[1]}e-2`);
	else if (ratio !== null)
		fpp = Number(ratio[1]) / Number(ratio[2].replace(/[,_ ]/g, ''));
	return fpp >= sizes.MIN_FPP && fpp < 1 ? fpp : undefined;
}

/* The step nearest to a value, on a logarithmic scale */
function nearest(steps, value) {
	let best = 0;

	steps.forEach((step, i) => {
		if (Math.abs(Math.log(step / value)) < Math.abs(Math.log(steps[best] / value)))
			best = i;
	});
	return best;
}

/* ----------------------------------------------------------------
 * Sizes
 * ----------------------------------------------------------------
 */

const bloomOf = (n, fpp) => wanted.growing ? sizes.bloomGrowing(n, fpp) : sizes.bloomPlan(n, fpp);
const cuckooOf = (n, fpp) => sizes.cuckooPlan(n, fpp, wanted.growing ? 2 : 0);

/* Why the index is impossible, or null */
function indexRefuses() {
	if (wanted.fpp < sizes.INDEX_MIN_FPP || wanted.fpp > sizes.INDEX_MAX_FPP)
		return `supports rates from ${percent(sizes.INDEX_MIN_FPP)} to ${percent(sizes.INDEX_MAX_FPP)}`;
	if (wanted.n > sizes.INDEX_MAX_CAPACITY)
		return `supports a capacity of at most ${whole.format(sizes.INDEX_MAX_CAPACITY)} keys, and grows beyond it`;
	return null;
}

const TOO_LARGE = 'too large: a filter has at most 512 MB';
const SPLIT = 'accept a higher rate, or split the keys over several filters';

/* One row per structure */
function allSizes() {
	const { n, fpp, key } = wanted;
	const bloom = bloomOf(n, fpp);
	const cuckoo = cuckooOf(n, fpp);
	const refusal = indexRefuses();
	const fingerprint = sizes.fingerprintPlan(n);
	const exact = sizes.exactBytes(n, key);

	return [
		{ series: 'bloom', name: 'bloom', what: `can be merged; ${bloom.hashes} ${bloom.hashes === 1 ? 'bit' : 'bits'} set per key`,
			bytes: bloom.bytes, problem: bloom.tooLarge ? TOO_LARGE : null },
		{ series: 'cuckoo', name: 'cuckoo', what: `supports deleting keys; slots of ${cuckoo.slotBits} bits`,
			bytes: cuckoo.bytes, problem: cuckoo.tooLarge ? TOO_LARGE : null },
		refusal === null
			? { series: 'index', name: 'filter index', what: 'a bloomfilter index, maintained by the server', bytes: sizes.indexPlan(n, fpp).bytes }
			: { series: 'index', name: 'filter index', problem: refusal },
		fingerprint.tooLarge
			? { series: 'fingerprint', name: 'fingerprint index', problem: 'too many rows for an index' }
			: { series: 'fingerprint', name: 'fingerprint index', what: 'finds rows by equality', bytes: fingerprint.bytes },
		{ series: 'btree', name: 'btree', what: 'finds rows, in order; ranges', bytes: sizes.btreeBytes(n, key) },
		{ series: 'exact', name: 'array', what: 'all keys, exact', bytes: exact,
			problem: exact > 2 ** 30 ? 'too large: a value has at most 1 GB' : null },
	];
}

/* How well the size of the fingerprint index is known */
function fingerprintNote() {
	const { least, most, dependsOnTable, tooLarge } = sizes.fingerprintPlan(wanted.n);

	if (tooLarge)
		return '';
	return `A fingerprint index is computed for one row per key${dependsOnTable ? ' and 100 rows per page of the table' : ''}. ` +
		(least === most ? 'CREATE INDEX makes exactly this size.'
			: dependsOnTable ? `CREATE INDEX makes ${pretty(least)} to ${pretty(most)}, depending on the number of rows per page.`
				: `CREATE INDEX makes ${whole.format(least)} to ${whole.format(most)} bytes: a few buckets can overflow.`) +
		' An index that grew with its table takes 7.0 to 8.8 bytes per row.';
}

function times(factor) {
	return `${factor < 10 ? digits(factor, 2) : digits(factor, factor < 100 ? 2 : 3)} times`;
}

function showSizes() {
	const rows = allSizes();
	const largest = Math.max(...rows.map((row) => row.bytes ?? 0));
	const bytesOf = (series) => rows.find((row) => row.series === series).bytes;
	const compared = [['fingerprint', 'a fingerprint index'], ['btree', 'a btree'], ['exact', 'an array of the keys']]
		.filter(([series]) => bytesOf(series) !== undefined)
		.map(([series, name], i) => {
			const factor = bytesOf(series) / bytesOf('bloom');

			return `${name}${i === 0 ? ' takes' : ''} ${factor > 0.95 && factor < 1.05 ? '' : `${times(factor)} `}as much`;
		});

	element('answer').replaceChildren(
		`A bloom filter for ${keysInWords(wanted.n)} ${rows[0].problem ? 'would take' : 'takes'} `, make('b', {}, pretty(bytesOf('bloom'))),
		`; ${compared.slice(0, -1).join(', ')} and ${compared.at(-1)}.`);
	element('sizes').replaceChildren(...rows.flatMap((row) => {
		const head = make('th', { scope: 'row' }, make('b', {}, row.name), ' ');
		const size = make('td', {}, row.bytes === undefined ? '–' : make('b', {}, pretty(row.bytes)));
		const bits = make('td', { className: 'bits' }, row.bytes === undefined ? '–' : digits(row.bytes * 8 / wanted.n, 4));
		const fill = make('i', { hidden: row.bytes === undefined });
		const bar = make('tr', { className: `bars ${row.series}`, ariaHidden: 'true' }, make('td', { colSpan: 3 }, make('span', { className: 'bar' }, fill)));

		if (row.problem)
			head.append(make('span', { className: 'soft too-large' }, row.problem));
		else
			head.append(make('span', { className: 'soft' }, row.what));
		if (row.bytes !== undefined) {
			fill.style.width = `${100 * row.bytes / largest}%`;
			size.prepend(make('small', { className: 'soft' }, whole.format(row.bytes), make('span', {}, ' bytes')));
			size.dataset.bytes = row.bytes;
		}
		return [make('tr', { className: row.series }, head, size, bits), bar];
	}));
	const { shared } = cuckooOf(wanted.n, wanted.fpp);
	element('shared').textContent = shared < 1 ? ''
		: `A cuckoo filter takes another 9 bytes for each key that collides with another: about ${digits(shared, 2)} keys here.`;
	element('fingerprint').textContent = fingerprintNote();
	element('assumed').textContent = `A btree on ${sizes.KEYS[wanted.key].label} takes ${sizes.KEYS[wanted.key].btree} bytes per key: ` +
		'measured with pg_relation_size on PostgreSQL 15, a million distinct keys, newly built. 1 kB is 1024 bytes.';
}

/* ----------------------------------------------------------------
 * Chart
 * ----------------------------------------------------------------
 */

const SERIES = [
	{ series: 'bloom', name: 'bloom', bits: (n, fpp) => bloomOf(n, fpp).bytes * 8 / n },
	{ series: 'cuckoo', name: 'cuckoo', bits: (n, fpp) => cuckooOf(n, fpp).bytes * 8 / n },
	{ series: 'index', name: 'filter index', bits: (n, fpp) => fpp >= sizes.INDEX_MIN_FPP && fpp <= sizes.INDEX_MAX_FPP ? sizes.indexPlan(n, fpp).bytes * 8 / n : undefined },
	{ series: 'limit', name: 'lower bound of any filter', bits: (n, fpp) => Math.log2(1 / fpp) },
];

function draw(tag, attributes, text) {
	const drawn = document.createElementNS('http://www.w3.org/2000/svg', tag);

	for (const [name, value] of Object.entries(attributes))
		drawn.setAttribute(name, value);
	if (text !== undefined)
		drawn.textContent = text;
	return drawn;
}

const chart = element('chart');
const FPP_FIRST = FPP_STEPS[0];
const FPP_LAST = FPP_STEPS[FPP_STEPS.length - 1];
const margin = { left: 34, right: 14, top: 10, bottom: 40 };

/*
 * On a phone, some points take 20 ms when they are computed for the first time.  So
 * they are computed a few at a time, and the chart is drawn when all are known.
 * Meanwhile, the sliders stay responsive.
 */
let points = 0;
let pending;

function prepareChart() {
	const end = performance.now() + 12;

	clearTimeout(pending);
	while (points < FPP_STEPS.length && performance.now() < end) {
		SERIES.forEach(({ bits }) => bits(1e6, FPP_STEPS[points]));
		points++;
	}
	if (points < FPP_STEPS.length)
		pending = setTimeout(prepareChart);
	else
		drawChart();
}

function drawChart() {
	const { n, fpp } = wanted;
	const width = chart.clientWidth;
	const height = chart.clientHeight;
	const lines = SERIES.map(({ series, bits }) => ({ series, at: FPP_STEPS.map((step) => [step, bits(n, step)]).filter(([, y]) => y !== undefined) }));
	/* an index takes at least a page: for few keys its line leaves the chart, and only the table shows it */
	const highest = Math.max(...['bloom', 'cuckoo'].map((name) => Math.max(...lines.find(({ series }) => series === name).at.map(([, y]) => y))));
	const unit = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => highest / step <= 7) ?? 1000;
	const top = Math.ceil(highest / unit) * unit;
	const x = (value) => margin.left + (width - margin.left - margin.right) * Math.log(FPP_FIRST / value) / Math.log(FPP_FIRST / FPP_LAST);
	const y = (value) => height - margin.bottom - (height - margin.top - margin.bottom) * value / top;
	const parts = [];

	if (width === 0)
		return;
	for (let value = 0; value <= top; value += unit) {
		parts.push(draw('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }));
		parts.push(draw('text', { x: margin.left - 6, y: y(value) + 4, 'text-anchor': 'end' }, String(value)));
	}
	for (let decade = 1; decade <= 9; decade += width < 480 ? 2 : 1) {
		const value = Number(`1e-${decade}`);

		parts.push(draw('line', { class: 'grid', x1: x(value), x2: x(value), y1: height - margin.bottom, y2: height - margin.bottom + 5 }));
		parts.push(draw('text', { x: x(value), y: height - margin.bottom + 18, 'text-anchor': decade === 9 ? 'end' : 'middle' },
			decade <= 4 ? percent(value) : `1e-${decade}`));
	}
	parts.push(draw('text', { x: width - margin.right, y: height - 4, 'text-anchor': 'end' }, 'false-positive rate'));
	const inside = draw('clipPath', { id: 'inside' });
	inside.append(draw('rect', { x: margin.left, y: margin.top - 6, width: width - margin.left - margin.right + 8, height: height - margin.top - margin.bottom + 8 }));
	parts.push(inside);
	for (const { series, at } of [...lines].reverse())
		parts.push(draw('path', { class: `line ${series}`, 'clip-path': 'url(#inside)', d: at.map(([a, b], i) => `${i === 0 ? 'M' : 'L'}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join('') }));
	if (fpp <= FPP_FIRST && fpp >= FPP_LAST) {
		parts.push(draw('line', { class: 'at', x1: x(fpp), x2: x(fpp), y1: margin.top - 6, y2: height - margin.bottom }));
		for (const { series, bits } of [...SERIES].reverse()) {
			const value = bits(n, fpp);

			if (value !== undefined && value <= top)
				parts.push(draw('circle', { class: `dot ${series}`, cx: x(fpp), cy: y(value), r: 5 }));
		}
	}
	chart.setAttribute('viewBox', `0 0 ${width} ${height}`);
	chart.replaceChildren(...parts);
}

function showLegend() {
	element('legend').replaceChildren(...SERIES.map(({ series, name, bits }) => {
		const value = bits(wanted.n, wanted.fpp);

		return make('li', { className: `key ${series}` }, `${name} `, make('b', {}, value === undefined ? '–' : digits(value, 4)));
	}));
}

/* A click or a drag on the chart selects the rate. */
function chooseOnChart(event) {
	const box = chart.getBoundingClientRect();
	const share = (event.clientX - box.left - margin.left) / (box.width - margin.left - margin.right);
	const step = FPP_STEPS[nearest(FPP_STEPS, FPP_FIRST * (FPP_LAST / FPP_FIRST) ** Math.min(Math.max(share, 0), 1))];

	change({ fpp: step });
}

/* ----------------------------------------------------------------
 * SQL
 * ----------------------------------------------------------------
 */

function showSql() {
	const { n, fpp, growing } = wanted;
	const bloom = bloomOf(n, fpp);
	const cuckoo = cuckooOf(n, fpp);
	const refusal = indexRefuses();
	const fingerprint = sizes.fingerprintPlan(n);
	const fixed = growing ? '' : ', growth => 0';
	const agg = sizes.bloomPlan(n, fpp);
	const kind = growing ? 'growing' : 'of fixed size';
	const size = (plan, more = '') => plan.tooLarge ? `${TOO_LARGE}; ${SPLIT}` : pretty(plan.bytes) + more;
	const full = ' when full';
	const statements = [
		{ id: 'sql-index', what: `Filter index: ${refusal ?? pretty(sizes.indexPlan(n, fpp).bytes)}`,
			sql: refusal === null ? `CREATE INDEX ON my_table USING bloomfilter (my_key) WITH (fpp = ${fpp}, capacity = ${n});` : null },
		{ id: 'sql-fingerprint', what: `Index that finds rows: ${fingerprint.tooLarge ? 'too many rows' : pretty(fingerprint.bytes)}`,
			sql: fingerprint.tooLarge ? null : 'CREATE INDEX ON my_table USING fingerprint (my_key);' },
		{ id: 'sql-agg', what: `Bloom filter from a column: ${size(agg)}`,
			sql: agg.tooLarge ? null : `SELECT bloom_agg(my_key, ${n}, ${fpp}) FROM my_table;` },
		{ id: 'sql-bloom', what: `Empty bloom filter, ${kind}: ${size(bloom, full)}`,
			sql: bloom.tooLarge ? null : `SELECT bloom_new(${n}, ${fpp}${fixed});` },
		{ id: 'sql-cuckoo', what: `Empty cuckoo filter, ${kind}: ${size(cuckoo, full)}`,
			sql: cuckoo.tooLarge ? null : `SELECT cuckoo_new(${n}, ${fpp}${fixed});` },
	];

	/* the buttons are kept, so that focus is not lost while numbers change */
	for (const { id, what, sql } of statements) {
		let block = element(id);

		if (block === null) {
			const copy = make('button', { type: 'button' }, 'Copy');
			const code = make('pre', { tabIndex: 0 });

			block = make('div', { id }, make('h3', {}, make('span'), copy), code);
			code.setAttribute('aria-label', 'SQL');
			copy.addEventListener('click', () => copyText(code, copy));
			element('sql').append(block);
		}
		block.querySelector('span').textContent = what;
		block.querySelector('pre').textContent = sql ?? '';
		block.querySelector('pre').hidden = block.querySelector('button').hidden = sql === null;
		block.querySelector('button').setAttribute('aria-label', `Copy: ${what}`);
	}
}

/* A page opened from a file may not have a clipboard: then select the text, to be copied by hand. */
async function copyText(code, button) {
	try {
		await navigator.clipboard.writeText(code.textContent);
		button.textContent = 'Copied';
	} catch {
		getSelection().selectAllChildren(code);
		button.textContent = document.execCommand('copy') ? 'Copied' : 'Selected';
	}
	setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

/* ----------------------------------------------------------------
 * Controls
 * ----------------------------------------------------------------
 */

const fields = {
	n: { steps: N_STEPS, parse: parseKeys, show: (n) => whole.format(n), words: keysInWords,
		problem: `Enter a number of keys from 1 to ${whole.format(sizes.MAX_CAPACITY)}, such as 250000, 10M or 1e6.` },
	fpp: { steps: FPP_STEPS, parse: parseFpp, show: percent, words: (fpp) => `${percent(fpp)}, ${oneIn(fpp)}`,
		problem: 'Enter a rate from 1e-12 to less than 1, such as 1%, 0.01 or 1 in 100.' },
};

function setProblem(name, problem) {
	element(name).setAttribute('aria-invalid', problem === '' ? 'false' : 'true');
	element(`${name}-error`).textContent = problem;
}

/* `typing` is the field with the cursor, whose text is left alone. */
function change(changes, typing) {
	Object.assign(wanted, changes);
	for (const [name, { steps, show, words }] of Object.entries(fields)) {
		const slide = element(`${name}-slide`);

		if (name !== typing) {
			element(name).value = show(wanted[name]);
			setProblem(name, '');
		}
		slide.value = nearest(steps, wanted[name]);
		slide.setAttribute('aria-valuetext', words(wanted[name]));
	}
	element('fpp-help').textContent = `${oneIn(wanted.fpp)} absent keys; fpp = ${wanted.fpp}`;
	element('key').value = wanted.key;
	element('growing').checked = wanted.growing;
	showSizes();
	showLegend();
	showSql();
	prepareChart();
	try {
		history.replaceState(null, '', `#n=${wanted.n}&fpp=${wanted.fpp}&key=${wanted.key}${wanted.growing ? '&growing' : ''}`);
	} catch {
		/* browsers limit the rate of such calls */
	}
}

/* An address such as filter.html#n=1000000&fpp=0.01 sets the input. */
function changeFromAddress() {
	const given = new URLSearchParams(location.hash.slice(1));
	const key = given.get('key');

	change({
		n: parseKeys(given.get('n') ?? '') ?? wanted.n,
		fpp: parseFpp(given.get('fpp') ?? '') ?? wanted.fpp,
		key: Object.hasOwn(sizes.KEYS, key ?? '') ? key : wanted.key,
		growing: given.has('growing') || (wanted.growing && !given.has('n')),
	});
}

function startSizes() {
	for (const [name, { steps, parse, problem }] of Object.entries(fields)) {
		const field = element(name);
		const slide = element(`${name}-slide`);

		slide.max = steps.length - 1;
		slide.addEventListener('input', () => change({ [name]: steps[slide.value] }));
		field.addEventListener('input', () => {
			const value = parse(field.value);

			setProblem(name, value === undefined ? problem : '');
			if (value !== undefined)
				change({ [name]: value }, name);
		});
		field.addEventListener('change', () => {
			if (parse(field.value) !== undefined)
				change({});
		});
	}
	for (const [name, { label }] of Object.entries(sizes.KEYS))
		element('key').append(make('option', { value: name }, label));
	element('key').addEventListener('change', (event) => change({ key: event.target.value }));
	element('growing').addEventListener('change', (event) => change({ growing: event.target.checked }));
	chart.addEventListener('pointerdown', chooseOnChart);
	chart.addEventListener('pointermove', (event) => { if (event.buttons & 1) chooseOnChart(event); });
	addEventListener('hashchange', changeFromAddress);
	new ResizeObserver(() => { if (points === FPP_STEPS.length) drawChart(); }).observe(chart);
	changeFromAddress();
}

/* ----------------------------------------------------------------
 * Testing a filter for keys
 * ----------------------------------------------------------------
 */

/* SELECT bloom_agg(name) of the eight planets */
const EXAMPLE = 'QkYBAQIBAgB7FK5H4XqEPwIAAAAIAAAAAAAYAgSKuIjCC5C5ZSpKJaNMEKY=';
const EXAMPLE_KEYS = 'Earth\nMars\nPluto\nCeres';

const BINARY_COPY = [...'PGCOPY\n'].map((c) => c.charCodeAt(0)).concat(0xFF, 0x0D, 0x0A, 0x00);

const startsWith = (bytes, start) => start.every((byte, i) => bytes[i] === byte);

/* The only value of a binary COPY file */
function fromBinaryCopy(bytes) {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

	try {
		const row = BINARY_COPY.length + 8 + view.getUint32(BINARY_COPY.length + 4);
		const length = view.getInt32(row + 2);

		if (view.getInt16(row) !== 1 || length < 0 || view.getInt16(row + 6 + length) !== -1)
			throw new reader.FilterError('the binary COPY does not contain exactly one filter');
		return bytes.subarray(row + 6, row + 6 + length);
	} catch (error) {
		throw error instanceof RangeError ? new reader.FilterError('the binary COPY is truncated, or does not contain exactly one filter') : error;
	}
}

function fromHex(text) {
	if (!/^(?:[0-9a-f]{2})*$/i.test(text))
		throw new reader.FilterError('\\x must be followed by pairs of hexadecimal digits');
	const bytes = new Uint8Array(text.length / 2);

	for (let i = 0; i < bytes.length; i++)
		bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
	return bytes;
}

/* The text of a filter, also in quotes or with line breaks, or the text of its bytea */
function filterOfText(text) {
	const bare = text.replace(/\s+/g, '').replace(/^'(.*)'$/, '$1');

	return reader.Filter.parse(bare.startsWith('\\x') ? fromHex(bare.slice(2)) : bare);
}

/* The contents of a file: bytes of a filter, binary COPY, or text */
function filterOfBytes(bytes) {
	if (startsWith(bytes, BINARY_COPY))
		return reader.Filter.parse(fromBinaryCopy(bytes));
	if (bytes.length > 2 && bytes[2] < 0x20 && (startsWith(bytes, [0x42, 0x46]) || startsWith(bytes, [0x43, 0x46])))
		return reader.Filter.parse(bytes);
	let text;
	try {
		text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch {
		throw new reader.FilterError('the file is neither text nor the bytes of a filter');
	}
	return filterOfText(text);
}

let opened = null;

/* The types in which keys of a class can be entered, with an example */
const TYPES = {
	integer: [['bigint', 'integer', '42']],
	text: [['text', 'text', 'some text']],
	uuid: [['uuid', 'uuid', '00112233-4455-6677-8899-aabbccddeeff']],
	bytea: [['bytea', 'bytea, as hexadecimal digits', '\\x00ff']],
	boolean: [['boolean', 'boolean', 'true']],
	float: [['double precision', 'double precision', '0.1'], ['real', 'real', '0.1']],
	date: [['date', 'date', '2026-02-28']],
	timestamp: [['timestamp', 'timestamp', '2026-02-28 12:34:56.789']],
	timestamptz: [['timestamptz', 'timestamp with time zone', '2026-02-28 12:34:56.789+01']],
};
const HASH = ['hash', 'hashes from bloom_hash(key)', '-8276789315993482060'];

/* The input of a line as a key of this type, for the reader */
function keyOfLine(line, type) {
	const text = line.trim();
	const refuse = (what) => { throw new reader.FilterError(`"${text}" is not ${what}`); };

	switch (type) {
		case 'hash':
		case 'bigint':
			return /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : refuse('an integer');
		case 'text':
			return line;
		case 'bytea': {
			const hex = /^(?:\\x)?((?:[0-9a-f]{2})*)$/i.exec(text) ?? refuse('pairs of hexadecimal digits');

			return fromHex(hex[1]);
		}
		case 'boolean':
			if (/^(t|true|yes|on|1)$/i.test(text))
				return true;
			return /^(f|false|no|off|0)$/i.test(text) ? false : refuse('true or false');
		case 'real':
		case 'double precision': {
			const special = { nan: NaN, infinity: Infinity, '+infinity': Infinity, '-infinity': -Infinity };

			if (Object.hasOwn(special, text.toLowerCase()))
				return special[text.toLowerCase()];
			return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : refuse('a number in range');
		}
		default:
			return text;
	}
}

/* [CSS class of the result, its text] */
function ask(line, type) {
	try {
		const key = keyOfLine(line, type);
		let copies;

		if (type === 'hash')
			copies = opened.containsHash(key) ? 1 : 0;
		else if (opened.keyClass === null)
			copies = 0;
		else
			copies = opened.kind === 'cuckoo' ? opened.count(key, type) : opened.contains(key, type) ? 1 : 0;
		if (copies === 0)
			return ['no', 'definitely absent'];
		return ['yes', copies === 255 ? 'possibly present, 255 or more copies' : copies > 1 ? `possibly present, ${copies} copies` : 'possibly present'];
	} catch (error) {
		if (error instanceof reader.FilterError)
			return ['bad', error.message];
		throw error;
	}
}

const MOST_LINES = 1000;

function showAnswers() {
	const type = element('type').value;
	const lines = element('keys').value.split(/\r?\n/).filter((line) => line.trim() !== '');
	const shown = lines.slice(0, MOST_LINES);
	const counts = { yes: 0, no: 0, bad: 0 };

	element('answers').replaceChildren(...shown.map((line) => {
		const [verdict, words] = ask(line, type);

		counts[verdict]++;
		return make('tr', {}, make('th', { scope: 'row', className: 'mono' }, line), make('td', {}, make('span', { className: `verdict ${verdict}` }, words)));
	}));
	element('verdict').textContent = lines.length === 0 ? 'No keys entered'
		: [`${counts.yes} possibly present`, `${counts.no} definitely absent`, ...(counts.bad > 0 ? [`${counts.bad} invalid`] : []),
			...(lines.length > MOST_LINES ? [`only the first ${whole.format(MOST_LINES)} of ${whole.format(lines.length)} lines`] : [])].join(', ');
}

function describeType() {
	const type = element('type').value;
	const [, , example] = [...Object.values(TYPES).flat(), HASH].find(([name]) => name === type) ?? HASH;

	element('keys-help').textContent = type === 'hash' ? 'Hashes computed by the server, for keys of any type: SELECT bloom_hash(key)'
		: `For example ${example}${type === 'text' ? '; trailing spaces are ignored, as on the server' : ''}`;
	showAnswers();
}

function showFilter() {
	const stats = opened.stats();
	const types = TYPES[opened.keyClass] ?? [];
	const before = element('type').value;
	const facts = [
		['kind', stats.kind],
		['key class', stats.keyClass ?? 'none yet'],
		['distinct keys (estimate)', whole.format(stats.cardinality)],
		['capacity', keysInWords(stats.capacity)],
		['false-positive rate', stats.fpp === 0 ? 'none' : percent(stats.fpp)],
		['target rate', percent(stats.targetFpp)],
		['size', `${pretty(stats.bytes)}`],
		stats.kind === 'bloom' ? ['layers', stats.maxLayers === null ? String(stats.layers) : `${stats.layers} of ${stats.maxLayers}, rotating`] : ['growth', String(stats.growth)],
	];

	element('facts').replaceChildren(...facts.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
	element('type').replaceChildren(...[...types, HASH].map(([value, label]) => make('option', { value }, label)));
	if ([...types, HASH].some(([value]) => value === before))
		element('type').value = before;
	element('opened-status').textContent = `A ${stats.kind} filter of about ${keysInWords(stats.cardinality)} is open.`;
	describeType();
}

/* `open` returns a filter, or throws */
function openFilter(open) {
	element('problem').textContent = '';
	try {
		opened = open();
		element('opened').hidden = false;
		showFilter();
	} catch (error) {
		opened = null;
		element('opened').hidden = true;
		if (!(error instanceof reader.FilterError))
			throw error;
		element('problem').textContent = `The filter cannot be read: ${error.message}.`;
	}
}

function closeFilter() {
	opened = null;
	element('opened').hidden = true;
	element('problem').textContent = '';
}

async function openFile(file) {
	let bytes;

	element('filter').value = '';
	closeFilter();
	try {
		bytes = new Uint8Array(await file.arrayBuffer());
	} catch (error) {
		element('problem').textContent = `The file ${file.name} cannot be read: ${error.message}`;
		return;
	}
	openFilter(() => filterOfBytes(bytes));
}

/*
 * Some input methods, such as dictation, raise one event per line.  The work is done
 * once, after the last event.
 */
function afterwards(work) {
	let due = false;

	return () => {
		if (due)
			return;
		due = true;
		setTimeout(() => {
			due = false;
			work();
		});
	};
}

function startAsking() {
	const field = element('filter');
	const drop = element('drop');

	element('type').addEventListener('change', describeType);
	element('keys').addEventListener('input', afterwards(() => { if (opened !== null) showAnswers(); }));
	field.addEventListener('input', afterwards(() => {
		if (field.value.trim() === '')
			closeFilter();
		else
			openFilter(() => filterOfText(field.value));
	}));
	element('example').addEventListener('click', () => {
		field.value = EXAMPLE;
		element('keys').value = EXAMPLE_KEYS;
		openFilter(() => filterOfText(EXAMPLE));
	});
	element('clear').addEventListener('click', () => {
		field.value = '';
		element('keys').value = '';
		closeFilter();
		field.focus();
	});
	element('file').addEventListener('change', (event) => {
		if (event.target.files.length > 0)
			openFile(event.target.files[0]);
		event.target.value = '';	/* so that the same file can be opened again */
	});
	/* a file dropped outside the zone must not replace the page */
	addEventListener('dragover', (event) => {
		event.preventDefault();
		drop.classList.toggle('over', drop.contains(event.target));
	});
	addEventListener('dragleave', (event) => {
		if (!drop.contains(event.relatedTarget))
			drop.classList.remove('over');
	});
	addEventListener('drop', (event) => {
		drop.classList.remove('over');
		if (event.dataTransfer.files.length > 0) {
			event.preventDefault();
			openFile(event.dataTransfer.files[0]);
		} else if (event.target !== field && drop.contains(event.target)) {
			event.preventDefault();
			field.value = event.dataTransfer.getData('text');
			field.dispatchEvent(new Event('input'));
		}
	});
	if (field.value.trim() !== '')		/* restored by the browser after a reload */
		field.dispatchEvent(new Event('input'));
}

startSizes();
startAsking();
