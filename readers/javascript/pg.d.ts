/** The required part of a `Client` or `Pool` of pg. */
export interface Queryable {
	query(text: string): Promise<{ rows: any[] }>;
}

/** The required part of `pg.types` or of a `Client`. */
export interface Types {
	setTypeParser(oid: number, format: 'text' | 'binary', parse: (value: any) => unknown): void;
}

/**
 * Registers parsers that turn columns of type `bloom` and `cuckoo` into Filter objects.
 *
 * `client` is a Client or Pool of pg, used to look up the OIDs of the types. `types` is where the
 * parsers are registered: the client (the default), or `pg.types`, for all clients of the program.
 */
export function register(client: Queryable & Types): Promise<void>;
export function register(client: Queryable, types: Types): Promise<void>;
