/** What is needed of a `Client` or `Pool` of pg. */
export interface Queryable {
	query(text: string): Promise<{ rows: any[] }>;
}

/** What is needed of `pg.types`, or of a `Client`. */
export interface Types {
	setTypeParser(oid: number, format: 'text' | 'binary', parse: (value: any) => unknown): void;
}

/**
 * Lets `types` turn columns of type `bloom` and `cuckoo` into Filter objects.
 *
 * `client` is a Client or Pool of pg that is asked for the OIDs of the types. `types` is what is
 * told: the client itself (the default), or `pg.types`, which is that of all clients of the program.
 */
export function register(client: Queryable & Types): Promise<void>;
export function register(client: Queryable, types: Types): Promise<void>;
