/** A filter cannot be read, or a key cannot be tested. */
export class FilterError extends Error {}

/**
 * A key. The types that a filter accepts depend on its key class:
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
	/** size in the memory of the server, 4 more than the number of bytes */
	bytes: number;
	layers: number;
	/** number of distinct keys that the filter was made for */
	capacity: number;
	/** estimated number of distinct keys */
	cardinality: number;
	/** target false-positive rate */
	targetFpp: number;
	/** current false-positive rate */
	fpp: number;
	growth: number;
	/** maximum number of layers of a rotating filter, otherwise null */
	maxLayers: number | null;
	/** null if the filter has no keys yet */
	keyClass: string | null;
	formatVersion: number;
}

/** A `bloom` or `cuckoo` filter of the PostgreSQL extension bloomfilter. */
export class Filter {
	private constructor(bytes: Uint8Array);

	/**
	 * Reads a filter from its text (base64) or its bytes, which are the same as `bytea`, in binary
	 * `COPY` and on the wire. Validates it completely, and throws a FilterError with the reason.
	 */
	static parse(value: string | Uint8Array): Filter;

	readonly kind: 'bloom' | 'cuckoo';

	/** Key class, such as 'integer' or 'text'; null if the filter has no keys yet. */
	readonly keyClass: string | null;

	/**
	 * Tests for a key. false: definitely absent; true: possibly present.
	 *
	 * `type` is the SQL type of the key, such as 'bigint'. A type of another class than the filter's is
	 * an error, and so is a key of another class. Only `real` requires a type: 0.1 as `real` and 0.1 as
	 * `double precision` are different numbers, and a filter does not record which its keys were.
	 */
	contains(key: Key, type?: string): boolean;

	/** The same for many keys, in their order. */
	containsMany(keys: Iterable<Key>, type?: string): boolean[];

	/** The same for the result of `bloom_hash(key)` on the server, for keys of any class. */
	containsHash(hash: bigint): boolean;

	/** The number of copies of a key in a cuckoo filter; 255 means 255 or more. */
	count(key: Key, type?: string): number;

	/** The result of `bloom_stats` or `cuckoo_stats`, with the same names in camel case. */
	stats(): FilterStats;
}

/** Returns the same as `bloom_hash(key)` on the server, for a key of this SQL type. */
export function bloomHash(key: Key, type: string): bigint;
