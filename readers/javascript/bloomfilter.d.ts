/** Why a filter cannot be read, or a key cannot be asked for. */
export class FilterError extends Error {}

/**
 * A key. Which of these a filter takes depends on its class:
 *
 * - integer: number (up to 2^53) or bigint
 * - text: string
 * - uuid: string, or Uint8Array of 16 bytes
 * - bytea: Uint8Array
 * - boolean: boolean
 * - float: number
 * - date: string such as '2024-02-29', '0044-03-15 BC', 'infinity'
 * - timestamp: string such as '2024-02-29 12:34:56.789012', 'infinity'
 * - timestamptz: string such as '2024-02-29T12:34:56.789Z', '2024-02-29 13:34:56.789012+01', 'infinity'
 */
export type Key = number | bigint | string | boolean | Uint8Array;

export interface FilterStats {
	kind: 'bloom' | 'cuckoo';
	/** size in memory of the server, 4 more than its bytes */
	bytes: number;
	layers: number;
	/** distinct keys it was made for */
	capacity: number;
	/** estimated distinct keys in it */
	cardinality: number;
	/** probability of a false positive it was made for */
	targetFpp: number;
	/** the same as it is now */
	fpp: number;
	growth: number;
	/** layers of a rotating filter, else null */
	maxLayers: number | null;
	/** null as long as it has no keys */
	keyClass: string | null;
	formatVersion: number;
}

/** A `bloom` or `cuckoo` filter of the PostgreSQL extension bloomfilter. */
export class Filter {
	private constructor(bytes: Uint8Array);

	/**
	 * Reads a filter from its text (base64) or its bytes, which are the same as `bytea`, in binary
	 * `COPY` and on the wire. Checks all of it, and throws a FilterError that says what is wrong.
	 */
	static parse(value: string | Uint8Array): Filter;

	readonly kind: 'bloom' | 'cuckoo';

	/** Class of the keys, such as 'integer' or 'text'; null as long as there are none. */
	readonly keyClass: string | null;

	/**
	 * Is the key in the filter? false: certainly not; true: probably.
	 *
	 * `type` is the SQL type of the key, for instance 'bigint'. A type of another class than the
	 * filter's is an error, as is a key that is not of the class. Only `real` needs a type: 0.1 is not
	 * the same number as `real` and as `double precision`, and a filter cannot tell which its keys were.
	 */
	contains(key: Key, type?: string): boolean;

	/** The same for many keys, in their order. */
	containsMany(keys: Iterable<Key>, type?: string): boolean[];

	/** The same for what `bloom_hash(key)` returned on the server: for keys of any class. */
	containsHash(hash: bigint): boolean;

	/** How often a key was added to a cuckoo filter and not deleted; 255 means 255 or more. */
	count(key: Key, type?: string): number;

	/** What `bloom_stats` or `cuckoo_stats` say, under the same names in camel case. */
	stats(): FilterStats;
}

/** Prepares XXH3. Await it once, before the first key is asked for; parsing does not need it. */
export function load(): Promise<void>;

/** What `bloom_hash(key)` returns on the server, for a key of this SQL type. */
export function bloomHash(key: Key, type: string): bigint;
