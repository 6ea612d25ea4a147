/*
 * fuzz.js FOLDER
 *		The JavaScript part of readers/fuzz: compares hashes, results and rejections with the server.
 */
import { createReadStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { bloomHash, Filter, FilterError } from '../bloomfilter.js';
import { nativeKey } from './native.js';

const folder = process.argv[2];
const KNOWN = ['integer', 'text', 'uuid', 'bytea', 'boolean', 'float', 'date', 'timestamp', 'timestamptz'];
const fromHex = (hex) => Buffer.from(hex, 'hex').toString('utf8');
const rows = (name) => readFileSync(`${folder}/${name}.tsv`, 'utf8').split('\n').slice(0, -1).map((line) => line.split('\t'));
let wrong = 0;

function complain(...words) {
	if (wrong++ < 20) console.error('javascript:', ...words);
}

async function* lines(name) {
	for await (const line of createInterface({ input: createReadStream(`${folder}/${name}.tsv`) })) yield line.split('\t');
}


// keys: their hashes, and the results of the filters of their classes
const filters = new Map(rows('filters').map(([name, bloom, cuckoo]) => [name, [Filter.parse(bloom), Filter.parse(cuckoo)]]));
const batches = new Map();
let keys = 0;
for await (const [name, type, hex, hash, inBloom, inCuckoo] of lines('keys')) {
	const key = nativeKey(type, fromHex(hex));
	const [bloom, cuckoo] = filters.get(name);

	if (bloomHash(key, type) !== BigInt(hash)) complain('different hash', type, fromHex(hex));
	if (bloom.contains(key, type) !== (inBloom === '1')) complain('different result', type, fromHex(hex));
	if (cuckoo.count(key, type) !== Number(inCuckoo)) complain('different count', type, fromHex(hex));
	if (!batches.has(type)) batches.set(type, { bloom, keys: [], answers: [] });
	batches.get(type).keys.push(key);
	batches.get(type).answers.push(inBloom === '1');
	keys++;
}
for (const [type, batch] of batches) {
	const answers = batch.bloom.containsMany(batch.keys, type);
	if (answers.length !== batch.answers.length || answers.some((answer, i) => answer !== batch.answers[i])) complain('containsMany', type);
}

// changed filters
const probes = new Map();
for (const [name, type, hex, hash] of rows('probes')) {
	if (!probes.has(name)) probes.set(name, []);
	probes.get(name).push([nativeKey(type, fromHex(hex)), type, BigInt(hash)]);
}
const verdicts = { read: 0, refused: 0, unfinished: 0 };
for await (const [text, verdict, name, answers] of lines('mutants')) {
	let filter;

	verdicts[verdict]++;
	for (const value of [text, new Uint8Array(Buffer.from(text, 'base64'))]) {
		filter = undefined;
		try {
			filter = Filter.parse(value);
			if (verdict !== 'read') complain(`read, but ${verdict} by the server:`, text);
		} catch (error) {
			if (!(error instanceof FilterError)) complain('fails with', error, text);
			else if (verdict === 'read') complain(`refused (${error.message}), but read by the server:`, text);
			else if (verdict === 'unfinished' && !error.message.includes('unfinished')) complain('refused for a different reason:', error.message, text);
		}
	}
	if (filter === undefined || verdict !== 'read') continue;
	if ((filter.keyClass ?? '') !== name) complain('different class:', filter.keyClass, text);
	filter.stats();
	if (name !== '' && !KNOWN.includes(name)) {
		try {
			filter.contains(1);
			complain('accepts keys of the class', name);
		} catch (error) {
			if (!(error instanceof FilterError)) complain('fails with', error, text);
		}
		continue;
	}
	const mine = (probes.get(name || 'integer') ?? []).map(([key, type, hash]) => {
		const found = filter.contains(key, type);
		if (filter.containsHash(hash) !== found) complain('key and hash give different results:', text);
		return filter.kind === 'cuckoo' ? filter.count(key, type) : Number(found);
	});
	if (mine.map((answer) => `${answer},`).join('') !== answers) complain('results', mine.join(), 'instead of', answers, text);
}

const megabytes = Math.round(process.resourceUsage().maxRSS / 1024);
if (megabytes > 400) complain('took', megabytes, 'MB');
console.log(`javascript: ${keys} keys and ${verdicts.read + verdicts.refused + verdicts.unfinished} filters (${verdicts.read} read), ${wrong} differences, ${megabytes} MB`);
process.exitCode = wrong > 0 ? 1 : 0;
