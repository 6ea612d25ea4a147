/* The Node part of readers/bench. */
import pg from 'pg';
import { Filter } from '../bloomfilter.js';
import { register } from '../pg.js';

const seconds = Number(process.env.SECONDS_EACH ?? 3);
const report = (what, rate) => console.log(`javascript\t${what}\t${Math.round(rate)} per second`);

/* Keys per second.  Each call of `ask` tests `each` keys. */
async function rate(what, each, ask) {
	const start = performance.now();
	let asked = 0;
	let batch = 0;

	do {
		for (let i = 0; i < Math.max(1, 256 / each); i++) await ask(batch++);
		asked = batch * each;
	} while (performance.now() - start < seconds * 1000);
	report(what, asked / (performance.now() - start) * 1000);
}

/* The same without await, which takes as long as a test. */
function rateSync(what, each, ask) {
	const start = performance.now();
	let batch = 0;

	do {
		for (let i = 0; i < Math.max(1, 1024 / each); i++) ask(batch++);
	} while (performance.now() - start < seconds * 1000);
	report(what, batch * each / (performance.now() - start) * 1000);
}

const client = new pg.Client();
await client.connect();
const { rows: [texts] } = await client.query('SELECT * FROM filters');
for (const [name, text] of Object.entries(texts)) {
	const start = performance.now();
	Filter.parse(text);
	console.log(`javascript\tread ${name} (${Math.round(text.length * 3 / 4 / 1024)} kB) from text\t${(performance.now() - start).toFixed(1)} ms`);
}
await register(client);
const { rows: [filters] } = await client.query('SELECT * FROM filters');
const id = (n) => n * 7919 % 2000000 + 1;
rateSync('bloom, integer: contains', 1, (n) => filters.bloom_of_id.contains(id(n)));
rateSync('bloom, text: contains', 1, (n) => filters.bloom_of_email.contains(`user${id(n)}@example.org`));
rateSync('cuckoo, integer: contains', 1, (n) => filters.cuckoo_of_id.contains(id(n)));
const many = Array.from({ length: 10000 }, (_, n) => id(n));
rateSync('bloom, integer: containsMany of 10000', 10000, () => filters.bloom_of_id.containsMany(many));
await rate('one query per key', 1, (n) => client.query({ name: 'exists', text: 'SELECT 1 FROM users WHERE id = $1', values: [id(n)] }));
await client.end();
