/*
 * pg.js
 *		Filters in node-postgres: SELECT returns Filter objects.
 *
 * The types bloom and cuckoo have no fixed OIDs, so they are looked up once.
 */
import { Filter } from './bloomfilter.js';

/**
 * Registers parsers that turn columns of type bloom and cuckoo into Filter objects.
 *
 * `client` is a Client or Pool of pg, used to look up the OIDs. `types` is where the parsers are
 * registered: the client (the default), or `pg.types`, for all clients of the program.
 */
export async function register(client, types = client) {
	if (typeof types?.setTypeParser !== 'function') {
		throw new TypeError('a pool has no type parsers: also pass pg.types, or register each client');
	}
	// the types of the extension, in any schema, and no others of the same names
	const { rows } = await client.query(`
		SELECT t.oid
		FROM pg_extension e
		     JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
		     JOIN pg_type t ON d.classid = 'pg_type'::regclass AND d.objid = t.oid
		WHERE e.extname = 'bloomfilter' AND t.typname IN ('bloom', 'cuckoo')`);
	if (rows.length !== 2) throw new Error('the extension bloomfilter is not installed in this database');
	for (const { oid } of rows) {
		types.setTypeParser(Number(oid), 'text', Filter.parse);
		types.setTypeParser(Number(oid), 'binary', Filter.parse);
	}
}
