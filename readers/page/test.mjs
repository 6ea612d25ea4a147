/*
 * test.mjs FOLDER [TEST...]
 *		Use docs/filter.html in Chromium, and compare its results with the server's.
 *
 * test/docs/page runs this with a throwaway server.  FOLDER contains expected.jsonl, the
 * output of test.sql, and one filter in files of several forms.
 * TESTs are names of functions below; the default is all of them.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import * as sizes from './sizes.js';

const [, , folder, ...chosen] = process.argv;
const expected = readFileSync(`${folder}/expected.jsonl`, 'utf8').split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
const expectedOf = (test) => {
	const found = expected.filter((line) => line.test === test);

	assert.ok(found.length > 0, `expected.jsonl has results for ${test}`);
	return found;
};
const address = `file://${fileURLToPath(new URL('../../docs/filter.html', import.meta.url))}`;
const psql = (sql) => execFileSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', sql], { encoding: 'utf8' }).trim();

/* ----------------------------------------------------------------
 * Formulas
 * ----------------------------------------------------------------
 */

function comparePlan(mine, server, where) {
	if (server.needed !== undefined)
		assert.deepEqual([mine.tooLarge, mine.needed], [true, server.needed], where);
	else
		assert.deepEqual([mine.tooLarge, mine.bytes, mine.hashes ?? mine.slotBits], [false, server.bytes, server.hashes ?? server.slot_bits], where);
}

function testFormulas() {
	const plans = expectedOf('plan');

	for (const { n, fpp, bloom, cuckoo, growing } of plans) {
		comparePlan(sizes.bloomPlan(n, fpp), bloom, `bloom_plan(${n}, ${fpp})`);
		comparePlan(sizes.cuckooPlan(n, fpp, 0), cuckoo, `cuckoo_plan(${n}, ${fpp}, 0)`);
		comparePlan(sizes.cuckooPlan(n, fpp, 2), growing, `cuckoo_plan(${n}, ${fpp}, 2)`);
	}
	for (const { n, fpp, bytes, layers } of expectedOf('growing'))
		assert.deepEqual([sizes.bloomGrowing(n, fpp).bytes, 1], [bytes, layers], `bloom_new(${n}, ${fpp})`);
	for (const { n, fpp, bytes } of expectedOf('index'))
		assert.equal(sizes.indexPlan(n, fpp).bytes, bytes, `an index for ${n} keys, fpp ${fpp}`);
	let exactly = 0;
	for (const { n, bytes } of expectedOf('fingerprint')) {
		const { least, most } = sizes.fingerprintPlan(n);

		assert.ok(least <= bytes && bytes <= most, `fingerprint index of ${n} keys: ${least} to ${most} bytes, built ${bytes}`);
		assert.ok(most - least <= Math.max(16 * 8192, bytes / 50), `fingerprint index of ${n} keys: ${least} to ${most} bytes`);
		exactly += least === most;
	}
	assert.ok(exactly >= 5 && exactly < expectedOf('fingerprint').length);
	/* entries of large tables are wider; an index has a largest size */
	assert.ok(sizes.fingerprintPlan(1e8).most < 7e8 && sizes.fingerprintPlan(1e10).bytes > 8e10);
	assert.deepEqual([sizes.fingerprintPlan(1e11).tooLarge, sizes.fingerprintPlan(2 ** 40).tooLarge], [false, true]);
	for (const { n, key, exact, btree } of expectedOf('exact')) {
		if (exact !== null)
			assert.equal(sizes.exactBytes(n, key), exact, `array of ${n} keys, ${key}`);
		/* measured: within 1% or a page */
		assert.ok(Math.abs(sizes.btreeBytes(n, key) - btree) <= Math.max(8192, btree / 100), `btree on ${n} keys, ${key}: ${sizes.btreeBytes(n, key)}, measured ${btree}`);
	}
	console.log(`${plans.length * 3} plans, ${expectedOf('growing').length} growing filters and ${expectedOf('index').length} indexes have exactly the sizes that the page computes, ${expectedOf('fingerprint').length} fingerprint indexes the size or range`);
}

/* ----------------------------------------------------------------
 * Page
 * ----------------------------------------------------------------
 */

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM,
	args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
});

/* A page that must not log anything, raise an error or use the network */
async function openPage(options = {}, hash = '') {
	const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, ...options });

	page.setDefaultTimeout(120000);		/* for busy machines */
	page.on('console', (message) => assert.fail(`console: ${message.text()}`));
	page.on('pageerror', (error) => assert.fail(`error in the page: ${error.stack}`));
	page.on('request', (request) => assert.ok(/^(file:\/\/.*\/docs\/filter\.html|data:)/.test(request.url()), `request of ${request.url()}`));
	await page.goto(address + hash);
	await page.waitForSelector('#chart path');
	return page;
}

const type = async (page, field, text) => {
	await page.locator(field).selectText();
	await page.keyboard.insertText(text);
	await page.evaluate(() => new Promise((done) => setTimeout(done)));		/* after the timers of the page */
};
const textOf = (page, selector) => page.locator(selector).textContent();

/* The sizes shown: { bloom: bytes, ... }, undefined where there is none */
const shown = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll('#sizes tr:not(.bars)')].map((row) => {
	const bytes = row.querySelector('td').dataset.bytes;

	return [row.className, bytes === undefined ? undefined : Number(bytes)];
})));

async function testTyping(page) {
	const plans = expectedOf('plan').filter((_, i) => i % 197 === 0);
	let tooLarge = 0;

	for (const { n, fpp, bloom, cuckoo, growing } of plans) {
		await type(page, '#n', String(n));
		await type(page, '#fpp', String(fpp));
		for (const grows of [false, true]) {
			await page.locator('#growing').setChecked(grows);
			const { bloom: bloomBytes, cuckoo: cuckooBytes, exact } = await shown(page);
			const table = grows ? growing : cuckoo;

			if (!grows && bloom.needed === undefined)
				assert.equal(bloomBytes, bloom.bytes, `bloom, ${n}, ${fpp}`);
			if (table.needed === undefined)
				assert.equal(cuckooBytes, table.bytes, `cuckoo, ${n}, ${fpp}`);
			assert.equal(exact, 24 + 8 * n);
			assert.equal((await textOf(page, 'tr.cuckoo th .soft')).includes('too large'), table.needed !== undefined, `cuckoo too large, ${n}, ${fpp}`);
			assert.equal(await page.locator('#sql-cuckoo pre').isVisible(), table.needed === undefined);
			tooLarge += table.needed !== undefined;
		}
	}
	assert.ok(tooLarge > 0 && tooLarge < plans.length);

	/* numbers as people type them */
	for (const [text, n] of [['250000', 250000], ['1,000,000', 1e6], ['1_000_000', 1e6], ['10M', 1e7], ['2.5 million', 2.5e6], ['1e6', 1e6], [' 7 ', 7], ['3k', 3000]]) {
		await type(page, '#n', text);
		assert.equal((await shown(page)).exact, 24 + 8 * n, text);
	}
	for (const [text, fpp] of [['1%', '0.01'], ['0.7 %', '0.007'], ['.02', '0.02'], ['1e-3', '0.001'], ['1/250', '0.004'], ['1 in 1,000', '0.001'], ['0.0000001', '1e-7']]) {
		await type(page, '#fpp', text);
		assert.match(await textOf(page, '#sql-bloom pre'), new RegExp(`, ${fpp.replace('.', '\\.')}[,)]`), text);
	}
	/* invalid numbers are reported, and the last valid one stays in effect */
	for (const [field, wrong, good] of [['n', ['', '0', '-1', '1.5', 'many', '2e12', '1 2 x'], '3k'], ['fpp', ['', '0', '1', '100 %', '1e-13', '-0.1', 'few'], '1e-7']]) {
		for (const text of wrong) {
			const before = await shown(page);

			await type(page, `#${field}`, text);
			assert.equal(await page.locator(`#${field}`).getAttribute('aria-invalid'), 'true', text);
			assert.match(await textOf(page, `#${field}-error`), /from 1/, text);
			assert.deepEqual(await shown(page), before, text);
		}
		await type(page, `#${field}`, good);
		assert.equal(await textOf(page, `#${field}-error`), '');
	}
	console.log(`${plans.length} pairs of numbers typed`);
}

async function testSliders(page) {
	const [n, fpp] = [page.getByRole('slider', { name: 'Keys' }), page.getByRole('slider', { name: 'False-positive rate' })];
	let before = 0;

	/* from end to end by keyboard: each step is a different number, and the sizes only grow */
	await page.locator('#growing').setChecked(false);
	await type(page, '#fpp', '1 %');
	await n.focus();
	await page.keyboard.press('Home');
	assert.equal(await n.getAttribute('aria-valuetext'), '1 key');
	for (let i = 0; i < 20; i++) {
		const { exact } = await shown(page);

		assert.ok(exact > before);
		before = exact;
		await page.keyboard.press('ArrowRight');
	}
	await page.keyboard.press('End');
	assert.equal(await n.getAttribute('aria-valuetext'), '1,000,000,000 keys');
	assert.equal(await page.locator('#n').inputValue(), '1,000,000,000');
	await type(page, '#n', '1M');
	await fpp.focus();
	await page.keyboard.press('Home');
	assert.equal(await page.locator('#fpp').inputValue(), '50%');
	before = 0;
	for (let value = 0.5; value > 1.01e-9;) {
		const { bloom, cuckoo, index } = await shown(page);

		assert.equal(bloom, Number(psql(`SELECT bytes FROM bloom_plan(1000000, ${value})`)), `bloom at ${value}`);
		assert.equal(cuckoo, Number(psql(`SELECT bytes FROM cuckoo_plan(1000000, ${value}, 0)`)), `cuckoo at ${value}`);
		assert.equal(index === undefined, value < 0.0001, `index at ${value}`);
		for (let i = 0; i < 8; i++)
			await page.keyboard.press('ArrowRight');
		value = await page.evaluate(() => Number(/fpp = (.*)/.exec(document.getElementById('fpp-help').textContent)[1]));
		assert.ok(value !== before);
		before = value;
	}
	/* by mouse */
	const box = await fpp.boundingBox();
	await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
	assert.match(await page.locator('#fpp').inputValue(), /^0\.00[12]\d*6?%$/);
	/* on the chart: its left end is 50%, its right end 1e-9 */
	await page.locator('#chart').scrollIntoViewIfNeeded();
	const chart = await page.locator('#chart').boundingBox();
	await page.mouse.move(chart.x + 36, chart.y + 80);
	await page.mouse.down();
	assert.equal(await page.locator('#fpp').inputValue(), '50%');
	await page.mouse.move(chart.x + chart.width - 14, chart.y + 80, { steps: 5 });
	await page.mouse.up();
	assert.match(await textOf(page, '#fpp-help'), /fpp = 1e-9$/);
	/* one line per series, and a dot on each except the index, which does not support this rate */
	assert.equal(await page.locator('#chart path').count(), 4);
	assert.equal(await page.locator('#chart circle').count(), 3);
}

/* The SQL creates filters and indexes of the sizes shown. */
async function testSql(page) {
	const full = (sql, kind) => JSON.parse(psql(`SELECT to_jsonb(s) FROM (${sql.replace(/;$/, '')}) x(f), ${kind}_stats(${kind}_add_all(f, (SELECT array_agg(my_key) FROM my_table))) s`));

	await type(page, '#n', '20000');
	for (const fpp of ['10 %', '0.01', '0.0002']) {
		await type(page, '#fpp', fpp);
		for (const grows of [true, false]) {
			await page.locator('#growing').setChecked(grows);
			const { bloom, cuckoo, index } = await shown(page);

			assert.equal(full(await textOf(page, '#sql-bloom pre'), 'bloom').bytes, bloom, `bloom_new, ${fpp}, ${grows}`);
			/* keys that share a number are in a list, which cuckoo_plan does not include */
			const { bytes, listed, slot_bits: slotBits } = full(await textOf(page, '#sql-cuckoo pre'), 'cuckoo');
			const more = Number(/about ([\d,.]+) keys/.exec(await textOf(page, '#shared'))?.[1].replaceAll(',', '') ?? 0);
			assert.ok(bytes >= cuckoo && bytes <= cuckoo + 9 * listed + 70, `cuckoo_new, ${fpp}, ${grows}: ${bytes} bytes with ${listed} in the list, the page shows ${cuckoo}`);
			assert.ok(Math.abs(listed - more) <= 5 * Math.sqrt(more) + 0.05 * more + 5, `cuckoo_new, ${fpp}, ${grows}: ${listed} keys share a number, the page shows ${more}`);
			assert.ok((await textOf(page, 'tr.cuckoo th')).includes(`slots of ${slotBits} bits`));
			const made = (await textOf(page, '#sql-index pre')).replace('INDEX ON', 'INDEX pasted ON');
			assert.equal(Number(psql(`BEGIN; ${made} SELECT pg_relation_size('pasted'); ROLLBACK`)), index, `CREATE INDEX, ${fpp}`);
			if (!grows)
				assert.equal(Number(psql(`SELECT bytes FROM (${(await textOf(page, '#sql-agg pre')).replace(/;$/, '')}) x(f), bloom_stats(f)`)), bloom, `bloom_agg, ${fpp}`);
		}
	}
	const { fingerprint } = await shown(page);
	const built = Number(psql(`BEGIN; ${(await textOf(page, '#sql-fingerprint pre')).replace('INDEX ON', 'INDEX pasted ON')} SELECT pg_relation_size('pasted'); ROLLBACK`));
	const { least, most } = sizes.fingerprintPlan(20000);
	assert.ok(built >= least && built <= most && fingerprint >= least && fingerprint <= most, `fingerprint index: ${built}, the page shows ${fingerprint}`);
	assert.match(await textOf(page, '#fingerprint'), least === most ? /exactly this size/ : new RegExp(`${least.toLocaleString('en-US')} to ${most.toLocaleString('en-US')} bytes`));

	/* copied by the button, pasted into a field */
	for (const id of ['index', 'fingerprint', 'agg', 'bloom', 'cuckoo']) {
		await page.locator(`#sql-${id} button`).click();
		await page.locator(`#sql-${id} button`, { hasText: 'Copied' }).waitFor();
		await page.locator('#clear').click();		/* puts the cursor into the field */
		await page.keyboard.press('Control+v');
		assert.equal(await page.locator('#filter').inputValue(), await textOf(page, `#sql-${id} pre`));
	}
	await page.locator('#clear').click();
	console.log('the SQL creates filters of the sizes shown');
}

async function testAddress(page) {
	const address = await page.evaluate(() => location.hash);

	assert.match(address, /^#n=20000&fpp=0\.0002&key=bigint$/);
	const other = await openPage({}, '#n=3000000&fpp=0.002&key=text36&growing');
	assert.deepEqual([await other.locator('#n').inputValue(), await other.locator('#fpp').inputValue(), await other.locator('#key').inputValue(), await other.locator('#growing').isChecked()],
		['3,000,000', '0.2%', 'text36', true]);
	assert.equal((await shown(other)).exact, 24 + 40 * 3e6);
	await other.locator('#key').selectOption('uuid');
	assert.equal((await shown(other)).exact, 24 + 16 * 3e6);
	assert.match(await textOf(other, '#assumed'), /uuid takes 31\.56 bytes/);
	await other.close();
	const strange = await openPage({}, '#n=<b>&fpp=7&key=constructor');
	assert.equal(await strange.locator('#n').inputValue(), '1,000,000');
	await strange.close();
}

/* The results shown: [[key, CSS class, text], ...] */
const answers = (page) => page.evaluate(() => [...document.querySelectorAll('#answers tr')].map((row) => [row.cells[0].textContent, row.cells[1].firstChild.className.replace('verdict ', ''), row.cells[1].textContent]));

const inWords = (copies) => copies === 0 ? 'definitely absent' : copies === 1 ? 'possibly present' : copies === 255 ? 'possibly present, 255 or more copies' : `possibly present, ${copies} copies`;

async function testAsking(page) {
	let asked = 0;

	for (const { name, filter, kind, type: keyType, keys, answers: says, hashes, stats } of expectedOf('ask')) {
		await type(page, '#filter', filter);
		assert.equal(await textOf(page, '#problem'), '', name);
		const facts = Object.fromEntries(await page.evaluate(() => [...document.querySelectorAll('#facts div')].map((fact) => [fact.firstChild.textContent, fact.lastChild.textContent])));
		assert.equal(facts.kind, kind, name);
		assert.equal(facts['key class'], stats.key_class ?? 'none yet', name);
		assert.equal(Number(facts['distinct keys (estimate)'].replaceAll(',', '')), stats.cardinality, name);
		const shownFpp = facts['false-positive rate'] === 'none' ? 0 : parseFloat(facts['false-positive rate']) / 100;
		assert.ok(Math.abs(shownFpp - stats.fpp) <= 1e-3 * stats.fpp, `${name}: false-positive rate ${shownFpp}, on the server ${stats.fpp}`);

		const types = await page.locator('#type option').evaluateAll((options) => options.map((option) => option.value));
		if (keyType === 'numeric')
			assert.deepEqual(types, ['hash'], name);
		else if (stats.key_class !== null) {
			await page.locator('#type').selectOption(keyType);
			await type(page, '#keys', keys.join('\n'));
			assert.deepEqual(await answers(page), keys.map((key, i) => [key, says[i] > 0 ? 'yes' : 'no', inWords(says[i])]), name);
			assert.equal(await textOf(page, '#verdict'), `${says.filter((n) => n > 0).length} possibly present, ${says.filter((n) => n === 0).length} definitely absent`, name);
			asked += keys.length;
		}
		/* the same by hashes computed by the server */
		await page.locator('#type').selectOption('hash');
		await type(page, '#keys', hashes.join('\n'));
		assert.deepEqual((await answers(page)).map(([, verdict]) => verdict), says.map((n) => n > 0 ? 'yes' : 'no'), `${name}, by hash`);
		asked += keys.length;
	}
	/* invalid keys are reported one by one */
	for (const [filterName, keyType, line] of [['a list of integers', 'bigint', '1.5'], ['a list of integers', 'bigint', '9223372036854775808'], ['uuid', 'uuid', 'no uuid'], ['dates', 'date', '2026-02-30'],
		['bytea', 'bytea', 'abc'], ['boolean', 'boolean', 'perhaps'], ['double precision', 'double precision', '1e999'], ['timestamptz', 'timestamptz', '2026-01-01 00:00:00']]) {
		const { filter, keys } = expectedOf('ask').find(({ name }) => name === filterName);

		await type(page, '#filter', filter);
		await page.locator('#type').selectOption(keyType);
		await type(page, '#keys', `${keys[0]}\n${line}\n\n`);
		const found = await answers(page);
		assert.deepEqual(found.map(([, verdict]) => verdict), ['yes', 'bad'], line);
		assert.match(await textOf(page, '#verdict'), /^1 possibly present, 0 definitely absent, 1 invalid$/);
	}
	/* a key is shown as text, even if it looks like HTML */
	const { filter } = expectedOf('ask').find(({ name }) => name === 'text');
	await type(page, '#filter', filter);
	await type(page, '#keys', '<img src=x onerror=alert(1)>');
	assert.deepEqual((await answers(page))[0].slice(0, 2), ['<img src=x onerror=alert(1)>', 'no']);
	await type(page, '#keys', Array.from({ length: 1500 }, (_, i) => `line ${i}`).join('\n'));
	assert.match(await textOf(page, '#verdict'), /only the first 1,000 of 1,500 lines$/);
	await type(page, '#filter', `  '${filter.replace(/(.{76})/g, '$1\n')}'\n`);
	assert.equal(await textOf(page, '#problem'), '', 'in quotes, with line breaks');

	/* the example is the filter that the server creates, and works */
	await page.locator('#example').click();
	assert.equal(await page.locator('#filter').inputValue(), expectedOf('example')[0].filter);
	assert.deepEqual((await answers(page)).map(([key, verdict]) => `${key} ${verdict}`), ['Earth yes', 'Mars yes', 'Pluto no', 'Ceres no']);
	await page.locator('#clear').click();
	assert.ok(!await page.locator('#opened').isVisible());
	console.log(`${asked} keys of ${expectedOf('ask').length} filters: same results as the server`);
}

/* Drop a local file onto the page, as with a mouse */
async function drop(page, selector, path) {
	const session = await page.context().newCDPSession(page);
	await page.locator(selector).scrollIntoViewIfNeeded();
	const box = await page.locator(selector).boundingBox();
	const data = { items: [], files: [path], dragOperationsMask: 1 };

	for (const type of ['dragEnter', 'dragOver', 'drop'])
		await session.send('Input.dispatchDragEvent', { type, x: box.x + box.width / 2, y: box.y + 12, data });
	await session.detach();
}

async function testFiles(page) {
	const bytes = readFileSync(`${folder}/bytes.filter`);
	const damage = (name, change) => {
		const copy = Buffer.from(bytes);

		writeFileSync(`${folder}/${name}`, change(copy) ?? copy);
		return `${folder}/${name}`;
	};
	const settled = async () => page.waitForFunction(() => !document.getElementById('opened').hidden || document.getElementById('problem').textContent !== '');
	const forget = () => page.locator('#clear').click();

	for (const form of ['text', 'bytes', 'hex', 'copy']) {
		for (const way of ['opened', 'dropped']) {
			if (way === 'opened')
				await page.locator('#file').setInputFiles(`${folder}/${form}.filter`);
			else
				await drop(page, '#drop', `${folder}/${form}.filter`);
			await settled();
			assert.equal(await textOf(page, '#problem'), '', `${form}, ${way}`);
			await type(page, '#keys', 'key 1\nkey 3000\nno key');
			assert.deepEqual((await answers(page)).map(([, verdict]) => verdict), ['yes', 'yes', 'no'], `${form}, ${way}`);
			await forget();
		}
	}
	/* damaged files and files that are not filters are refused with a reason, and hide the key fields */
	for (const [path, reason] of [
		[damage('magic', (copy) => { copy[0] = 0x41; }), /The filter cannot be read/],
		[damage('version', (copy) => { copy[2] = 9; }), /version 9/],
		[damage('short', (copy) => copy.subarray(0, 1000)), /The filter cannot be read/],
		[damage('long', (copy) => Buffer.concat([copy, Buffer.alloc(64)])), /The filter cannot be read/],
		[damage('padding', (copy) => { copy[40] = 1; }), /padding is not zero/],
		[damage('probes', (copy) => { copy[26] = 0xFF; }), /The filter cannot be read/],
		[damage('nothing', () => Buffer.alloc(0)), /shorter than the header/],
		[damage('prose', () => Buffer.from('Dear diary,')), /not base64/],
		[damage('picture', () => Buffer.from([0x89, 0x50, 0x4E, 0x47, 0xFF, 0xFE])), /neither text nor/],
		[damage('copy', () => readFileSync(`${folder}/copy.filter`).subarray(0, 100)), /is truncated/],
		[damage('header', () => readFileSync(`${folder}/copy.filter`).subarray(0, 15)), /is truncated/],
		[`${folder}/two.filter`, /does not contain exactly one filter/],
	]) {
		await page.locator('#example').click();
		await drop(page, '#drop', path);
		await page.waitForFunction(() => document.getElementById('problem').textContent !== '');
		assert.match(await textOf(page, '#problem'), reason, path);
		assert.ok(!await page.locator('#opened').isVisible(), path);
	}
	/* pasted text with one digit missing, one changed, white space only */
	const text = readFileSync(`${folder}/text.filter`, 'utf8').trim();
	await type(page, '#filter', text.slice(1));
	assert.match(await textOf(page, '#problem'), /not base64/);
	await type(page, '#filter', `R${text.slice(1)}`);
	assert.match(await textOf(page, '#problem'), /neither a bloom nor a cuckoo/);
	await type(page, '#filter', `\\x${bytes.toString('hex').slice(0, -1)}`);
	assert.match(await textOf(page, '#problem'), /pairs of hexadecimal digits/);
	await type(page, '#filter', ' \n ');
	assert.equal(await textOf(page, '#problem'), '');
	assert.ok(!await page.locator('#opened').isVisible());
	/* outside the zone: the page stays */
	await drop(page, 'h1', `${folder}/text.filter`);
	await settled();
	assert.equal(await page.title(), 'bloomfilter: filter size calculator and reader');
	await forget();
	console.log('files opened and dropped; damaged files are refused');
}

/* ----------------------------------------------------------------
 * Accessibility: keyboard, screen readers, small screens, dark mode
 * ----------------------------------------------------------------
 */

async function testKeyboard(page) {
	const seen = [];

	await page.locator('#example').click();
	await page.locator('h1').click();
	for (let i = 0; i < 60; i++) {
		await page.keyboard.press('Tab');
		const [name, outlined] = await page.evaluate(() => {
			const at = document.activeElement;
			const visible = at.id === 'file' ? at.parentElement : at;

			return [at === document.body || at === null ? null : at.id || `${at.closest('[id]').id} ${at.localName}`, getComputedStyle(visible).outlineStyle !== 'none'];
		});
		if (name === null || seen.includes(name))
			break;
		seen.push(name);
		assert.ok(outlined, `${name} shows that it has the focus`);
	}
	assert.deepEqual(seen, ['n', 'n-slide', 'fpp', 'fpp-slide', 'key', 'growing',
		...['index', 'fingerprint', 'agg', 'bloom', 'cuckoo'].flatMap((id) => [`sql-${id} button`, `sql-${id} pre`]),
		'filter', 'file', 'example', 'clear', 'type', 'keys', 'opened div', 'export summary']);
	await page.locator('summary').focus();
	await page.keyboard.press('Enter');
	assert.ok(await page.locator('details pre').isVisible());

	/* every control, picture and table has a name */
	const session = await page.context().newCDPSession(page);
	const { nodes } = await session.send('Accessibility.getFullAXTree');
	const roles = new Map();
	for (const { role, name } of nodes.filter((node) => !node.ignored)) {
		if (['textbox', 'slider', 'combobox', 'checkbox', 'button', 'image', 'img', 'table', 'region', 'heading'].includes(role?.value)) {
			assert.ok(name?.value?.trim(), `a ${role.value} has no name`);
			roles.set(role.value, (roles.get(role.value) ?? 0) + 1);
		}
	}
	assert.deepEqual([roles.get('slider'), roles.get('textbox'), roles.get('combobox'), roles.get('checkbox')], [2, 4, 2, 1]);
	await session.detach();
	console.log(`${seen.length} stops by keyboard, ${nodes.length} nodes for screen readers`);
}

/* Everything fits the screen and has enough contrast. */
async function testLooks() {
	const grounds = new Set();

	for (const colorScheme of ['light', 'dark']) {
		for (const width of [320, 360, 768, 1280]) {
			const page = await openPage({ colorScheme, viewport: { width, height: 800 } }, width === 320 ? '#n=1099511627776&fpp=1e-12&key=text36' : '');

			await page.locator('#example').click();
			await type(page, '#keys', `Earth\n${'long'.repeat(100)}\nPluto`);
			await page.locator('summary').click();
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${colorScheme}, ${width} pixels: no overflow`);
			const found = await page.evaluate(() => {
				const parse = (color) => color.match(/[\d.]+/g).map(Number);
				const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
				const ground = (at) => {
					for (; at !== null; at = at.parentElement) {
						const color = parse(getComputedStyle(at).backgroundColor);

						if (color.length === 3 || color[3] > 0)
							return color;
					}
					return [255, 255, 255];
				};
				const low = [];
				let texts = 0;
				const clipped = [];

				for (const at of document.querySelectorAll('body *')) {
					const own = [...at.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== '') || (at.matches('input[type=text], textarea, select'));
					const box = at.getBoundingClientRect();

					if (!own || box.width < 2 || at.closest('script, style, .hidden, option'))
						continue;
					const style = getComputedStyle(at);
					const [a, b] = [luminance(parse(at instanceof SVGElement ? style.fill : style.color)), luminance(ground(at))].sort((x, y) => y - x);
					texts++;
					if ((a + 0.05) / (b + 0.05) < 4.5)
						low.push(`${at.localName}.${at.className?.baseVal ?? at.className}: ${at.textContent.trim().slice(0, 30)} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
					if (box.right > innerWidth + 0.5 || box.left < -0.5)
						clipped.push(`${at.localName} ${at.textContent.slice(0, 30)}`);
				}
				return { low, clipped, texts, ground: getComputedStyle(document.body).backgroundColor };
			});
			assert.deepEqual(found.low, [], `${colorScheme}, ${width} pixels: contrast of at least 4.5`);
			assert.deepEqual(found.clipped, [], `${colorScheme}, ${width} pixels`);
			assert.ok(found.texts > 60);
			grounds.add(found.ground);
			await page.close();
		}
	}
	assert.equal(grounds.size, 2);
	console.log('light and dark, from 320 pixels: everything fits and is readable');
}

try {
	const tests = [testFormulas, testTyping, testSliders, testSql, testAddress, testAsking, testFiles, testKeyboard, testLooks];
	const page = await openPage();

	for (const test of tests.filter(({ name }) => chosen.length === 0 || chosen.includes(name)))
		await test(page);
} finally {
	await browser.close();
}
