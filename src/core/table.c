/*
 * table.c
 *		The table of a cuckoo filter: geometry, inserting, removing.
 *
 * If both buckets of a number are full, another number is evicted from one of them
 * to its other bucket, and so on.  The choice is pseudo-random and seeded with the
 * number that is inserted, so the same inserts make the same table.  If MAX_KICKS
 * evictions find no empty slot, they are undone.
 *
 * The alternate bucket is at most BF_TABLE_WINDOW buckets away.  So both are in one or
 * two pages of memory.  The short distance costs no space: evictions move numbers from
 * crowded regions to others.  Tables fill up to 95% with less than one eviction per key
 * if keys are inserted in order, as aggregates do (simulated for 3 to 262144 buckets;
 * test/unit checks it).
 */
#include "table.h"

#define MAX_KICKS		500

/* The fingerprints of a filter that can grow are for at least this number of keys. */
#define HEADROOM_KEYS	(UINT64_C(1) << 20)

/* ----------------------------------------------------------------
 * Geometry
 * ----------------------------------------------------------------
 */

/* The number of keys for which the fingerprints of a filter are sized. */
static double
keys_to_come(uint64_t capacity, unsigned growth)
{
	if (growth == 0)
		return (double) capacity;
	return capacity * 2 > HEADROOM_KEYS ? (double) capacity * 2 : (double) HEADROOM_KEYS;
}

/* Does a table of these dimensions meet the target with `keys` keys? */
static bool
is_wide_enough(uint64_t buckets, unsigned slot_bits, double keys, double fpp)
{
	/* only the last product is rounded */
	return (double) buckets * (double) (UINT64_C(1) << (slot_bits - 1)) * fpp >= keys;
}

/*
 * Choose the table of a filter of `capacity` keys.  If n of N numbers are in it, an
 * absent key is reported with probability n/N.
 */
bf_table
bf_table_for(uint64_t capacity, double fpp, unsigned growth)
{
	bf_table	table = {capacity * 5 / 19, BF_MIN_SLOT_BITS};
	double		keys = keys_to_come(capacity, growth);

	if (table.buckets == 0)
		table.buckets = 1;
	while (bf_table_full(table) < capacity)
		table.buckets++;
	while (!is_wide_enough(table.buckets, table.slot_bits, keys, fpp) &&
		   table.slot_bits < BF_MAX_SLOT_BITS && bf_table_range(table) < BF_MAX_RANGE / 2)
		table.slot_bits++;
	return table;
}

/* The number of fingerprint bits that a table of `keys` keys does not need. */
unsigned
bf_table_spare_bits(bf_table table, uint64_t keys, double fpp, unsigned growth)
{
	unsigned	bits = table.slot_bits;

	while (bits > BF_MIN_SLOT_BITS && is_wide_enough(table.buckets, bits - 1U, keys_to_come(keys, growth), fpp))
		bits--;
	return table.slot_bits - bits;
}

/*
 * The number of bits of each fingerprint that become part of the bucket's number
 * when the table grows; 0 if it cannot grow.  A filter with growth 0 grows, too,
 * when it has more keys than slots, because adding a key never fails.
 */
unsigned
bf_table_growth_bits(bf_table table, unsigned growth)
{
	unsigned	bits = 1;

	while ((2U << bits) <= growth)
		bits++;
	if (bits > (unsigned) table.slot_bits - BF_MIN_SLOT_BITS)
		bits = (unsigned) table.slot_bits - BF_MIN_SLOT_BITS;
	return bits;
}

/* ----------------------------------------------------------------
 * Changing slots
 * ----------------------------------------------------------------
 */

static void
table_slot_set(uint8_t *slots, unsigned bits, uint64_t slot, uint64_t value)
{
	uint64_t	at = slot * bits;
	uint64_t	mask = ((UINT64_C(1) << bits) - 1) << (at % 8);
	uint64_t	word = bf_load64(slots + at / 8);

	bf_store64(slots + at / 8, (word & ~mask) | value << (at % 8));
}

/* Replace a slot of value `from` in a bucket by `to`; false if there is none. */
static bool
table_bucket_replace(uint8_t *slots, bf_table table, uint64_t bucket, uint64_t from, uint64_t to)
{
	uint64_t	slot = bucket * BF_BUCKET_SLOTS;

	if (!bf_bucket_holds(slots, table.slot_bits, slot * table.slot_bits, from))
		return false;
	while (bf_slot_get(slots, table.slot_bits, slot) != from)
		slot++;
	table_slot_set(slots, table.slot_bits, slot, to);
	return true;
}

/* The other bucket of the number that is `value` in this one. */
static uint64_t
other_bucket(bf_table table, uint64_t bucket, uint64_t value)
{
	uint64_t	distance;

	if ((value & 1) == 0)
		return bf_table_alternate(table, bucket, value >> 1);
	distance = bf_table_distance(table, value >> 1);
	return bucket >= distance ? bucket - distance : bucket + table.buckets - distance;
}

/*
 * Put a value into a full bucket: it replaces another one, which moves to its other
 * bucket, and so on until a bucket has an empty slot.
 */
static bool
table_evict(uint8_t *slots, bf_table table, uint64_t bucket, uint64_t value, uint64_t seed)
{
	uint64_t	path[MAX_KICKS];
	uint64_t	evicted[MAX_KICKS];
	unsigned	kicks = 0;

	while (kicks < MAX_KICKS)
	{
		unsigned	victim;
		unsigned	tried = 0;

		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		victim = (unsigned) (seed >> 62);
		path[kicks] = bucket * BF_BUCKET_SLOTS + victim;
		/* a number with fingerprint 0 has no other place */
		while ((evicted[kicks] = bf_slot_get(slots, table.slot_bits, path[kicks])) <= 1 && tried++ < BF_BUCKET_SLOTS)
		{
			victim = (victim + 1) % BF_BUCKET_SLOTS;
			path[kicks] = bucket * BF_BUCKET_SLOTS + victim;
		}
		if (evicted[kicks] <= 1)
			break;
		table_slot_set(slots, table.slot_bits, path[kicks], value);
		bucket = other_bucket(table, bucket, evicted[kicks]);
		value = evicted[kicks] ^ 1;
		kicks++;
		if (table_bucket_replace(slots, table, bucket, 0, value))
			return true;
	}
	while (kicks-- > 0)
		table_slot_set(slots, table.slot_bits, path[kicks], evicted[kicks]);
	return false;
}

/*
 * Insert a number that is not in the table.  False, and nothing has changed, if
 * there is no place for it.
 */
bool
bf_table_insert(uint8_t *slots, bf_table table, uint64_t number)
{
	uint64_t	own = bf_table_bucket(table, number);
	uint64_t	value = bf_table_value(table, number);
	uint64_t	alternate = bf_table_alternate(table, own, value >> 1);
	uint64_t	seed = bf_mix64(number);

	if (value != 0 && table_bucket_replace(slots, table, own, 0, value))
		return true;
	if (table_bucket_replace(slots, table, alternate, 0, value + 1))
		return true;
	if (value != 0 && (seed & 1) != 0)
		return table_evict(slots, table, own, value, seed);
	return table_evict(slots, table, alternate, value + 1, seed);
}

/* Remove a number; false if it is not there. */
bool
bf_table_remove(uint8_t *slots, bf_table table, uint64_t number)
{
	uint64_t	own = bf_table_bucket(table, number);
	uint64_t	value = bf_table_value(table, number);

	if (value != 0 && table_bucket_replace(slots, table, own, value, 0))
		return true;
	return table_bucket_replace(slots, table, bf_table_alternate(table, own, value >> 1), value + 1, 0);
}

/* ----------------------------------------------------------------
 * The table as a whole
 * ----------------------------------------------------------------
 */

/* The number that is `value` in a bucket. */
static uint64_t
table_number_at(bf_table table, uint64_t bucket, uint64_t value)
{
	if ((value & 1) != 0)
		bucket = other_bucket(table, bucket, value);
	return bucket << (table.slot_bits - 1) | value >> 1;
}

/* The next number of the table at or behind *slot; false if there is none. */
bool
bf_table_next(bf_host host, const uint8_t *slots, bf_table table, uint64_t *slot, uint64_t *number)
{
	for (uint64_t i = *slot; i < table.buckets * BF_BUCKET_SLOTS; i++)
	{
		uint64_t	value = bf_slot_get(slots, table.slot_bits, i);

		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
		if (value != 0)
		{
			*number = table_number_at(table, i / BF_BUCKET_SLOTS, value);
			*slot = i + 1;
			return true;
		}
	}
	return false;
}

/* The number of slots of the bucket that have this value. */
static unsigned
table_bucket_count(const uint8_t *slots, bf_table table, uint64_t bucket, uint64_t value)
{
	unsigned	n = 0;

	for (unsigned i = 0; i < BF_BUCKET_SLOTS; i++)
		n += bf_slot_get(slots, table.slot_bits, bucket * BF_BUCKET_SLOTS + i) == value;
	return n;
}

/*
 * Check that a table has `used` numbers, each in one place.  NULL, or a sentence on
 * what is wrong.
 */
const char *
bf_table_check(bf_host host, const uint8_t *slots, bf_table table, uint64_t used)
{
	uint64_t	bits = table.buckets * BF_BUCKET_SLOTS * table.slot_bits;
	uint64_t	found = 0;

	for (uint64_t bucket = 0; bucket < table.buckets; bucket++)
	{
		if (bucket % BF_POLL_EVERY == 0)
			bf_poll(host);
		for (unsigned i = 0; i < BF_BUCKET_SLOTS; i++)
		{
			uint64_t	value = bf_slot_get(slots, table.slot_bits, bucket * BF_BUCKET_SLOTS + i);

			if (value == 0)
				continue;
			found++;
			if (table_bucket_count(slots, table, bucket, value) > 1 ||
				(value > 1 && table_bucket_count(slots, table, other_bucket(table, bucket, value), value ^ 1) > 0))
				return "A key is in its table twice.";
		}
	}
	if (found != used)
		return "The number of keys in its table does not match the stored count.";
	for (uint64_t bit = bits; bit < bf_table_words(table) * 64; bit++)
	{
		if (slots[bit / 8] >> (bit % 8) & 1)
			return "Unused bits of its table are not zero.";
	}
	return NULL;
}
