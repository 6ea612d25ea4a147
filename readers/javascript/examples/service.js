/*
 * service.js
 *		Serves GET /users/ID from a table.  For absent keys it returns 404 from memory,
 *		without a query.
 *
 * The table, and a trigger that sends notifications of new keys (see README.md):
 *
 *   CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL);
 *   CREATE FUNCTION users_added() RETURNS trigger LANGUAGE plpgsql AS
 *     $$BEGIN PERFORM pg_notify('users_added', NEW.id::text); RETURN NULL; END$$;
 *   CREATE TRIGGER users_added AFTER INSERT OR UPDATE OF id ON users
 *     FOR EACH ROW EXECUTE FUNCTION users_added();
 *
 *   PGHOST=... PGDATABASE=... node service.js [PORT]
 *
 * Listens on the loopback interface only.  Port 0, the default, selects a free port.
 */
import http from 'node:http';
import pg from 'pg';
import { register } from '../pg.js';

/* Which keys may exist, to the knowledge of this process. */
class Keys {
	#filter = null;				// null: unknown, so every key may exist
	#recent = new Set();		// keys added after the filter was built
	#client = null;
	#stopped = false;

	mayExist(id) {
		return this.#filter === null || this.#recent.has(id) || this.#filter.contains(id, 'bigint');
	}

	/*
	 * Listens first, then exports: every key is in the export or causes a notification.  Without a
	 * connection, new keys go unnoticed, so there is no filter then.
	 */
	async keepFresh() {
		while (!this.#stopped) {
			const client = new pg.Client({ application_name: 'users filter' });
			try {
				const closed = new Promise((resolve) => {
					client.on('end', resolve);
					client.on('error', resolve);
				});
				client.on('notification', ({ payload }) => this.#added(BigInt(payload)));
				this.#client = client;
				await client.connect();
				await register(client);
				await client.query('LISTEN users_added');
				await this.#refresh();
				await closed;
			} catch (error) {
				console.error(`users filter: ${error.message}`);
			}
			this.#filter = null;
			await client.end().catch(() => {});
			if (!this.#stopped) await new Promise((resolve) => { setTimeout(resolve, 200); });
		}
	}

	/* Gets a new filter, which contains all keys notified before the query. */
	async #refresh() {
		const before = [...this.#recent];
		const { rows: [{ filter }] } = await this.#client.query('SELECT bloom_agg(id) AS filter FROM users');
		this.#filter = filter;
		for (const id of before) this.#recent.delete(id);
	}

	#added(id) {
		this.#recent.add(id);
		if (this.#recent.size % 10000 === 0) this.#refresh().catch(() => this.#client.end());
	}

	async stop() {
		this.#stopped = true;
		await this.#client?.end().catch(() => {});
	}
}

const keys = new Keys();
const pool = new pg.Pool({ application_name: 'users lookup' });
pool.on('error', () => {});		// an idle connection broke; the next query opens another

async function answer(request, response) {
	const reply = (status, text, by) => {
		response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Answered-By': by });
		response.end(`${text}\n`);
	};
	const path = /^\/users\/(-?[0-9]{1,19})$/.exec(request.url);
	const id = path && BigInt(path[1]);

	if (request.method !== 'GET' || path === null || BigInt.asIntN(64, id) !== id) return reply(400, 'GET /users/ID', 'nobody');
	if (!keys.mayExist(id)) return reply(404, 'no such user', 'filter');
	const { rows } = await pool.query('SELECT email FROM users WHERE id = $1', [id.toString()]);
	return rows.length === 0 ? reply(404, 'no such user', 'database') : reply(200, rows[0].email, 'database');
}

const server = http.createServer((request, response) => {
	answer(request, response).catch((error) => {
		console.error(error.message);
		response.writeHead(503);
		response.end();
	});
});

async function stop() {
	server.close();
	server.closeAllConnections?.();
	await keys.stop();
	await pool.end();
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);

const fresh = keys.keepFresh();
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
await fresh;
