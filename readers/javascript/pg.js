/*
 * pg.js
 *		Filters as values of node-postgres: SELECT returns Filter objects.
 *
 * The types bloom and cuckoo have no fixed OID, so the server is asked for them once.
 */
import { Filter } from './bloomfilter.js';

/**
 * Lets `types` turn columns of type bloom and cuckoo into Filter objects.
 *
 * `client` is a Client or Pool of pg that is asked for the OIDs. `types` is what is told: a
 * client itself (the default), or `pg.types`, which is that of all clients of the program.
 */
export async function register(client, types = client) {
	if (typeof types?.setTypeParser !== 'function') {
		throw new TypeError('a pool has no types of its own: pass pg.types as well, or register each client');
	}
	// the types of the extension, in whatever schema it is, and no others of that name
	const { rows } = await client.query(`
		SELECT t.oid
		FROM pg_extension e
		     JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
		     JOIN pg_type t ON d.classid = 'pg_type'::regclass AND d.objid = t.oid
		WHERE e.extname = 'bloomfilter' AND t.typname IN ('bloom', 'cuckoo')`);
	if (rows.length !== 2) throw new Error('the extension bloomfilter is not in this database');
	for (const { oid } of rows) {
		types.setTypeParser(Number(oid), 'text', Filter.parse);
		types.setTypeParser(Number(oid), 'binary', Filter.parse);
	}
}
