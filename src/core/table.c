/*
 * table.c
 *		The table of a cuckoo filter: geometry, inserting, removing.
 *
 * Inserting into two full buckets evicts a number from one of them to its other
 * bucket, and so on.  Which one is evicted looks random and is not: it depends
 * on the number that is inserted, so the same inserts make the same table.  If
 * MAX_KICKS evictions lead nowhere, all of them are undone.
 *
 * The alternate bucket is near, within BF_TABLE_WINDOW buckets.  That keeps both
 * in one or two pages of memory and costs no space: crowded stretches push
 * their numbers along to where there is room.  Tables are filled to 95 % with
 * less than one eviction a key if the keys come in order, as they do from an
 * aggregate (computed by simulation for 3 to 262144 buckets; test/unit holds it
 * to that).
 */
#include "table.h"

#define MAX_KICKS		500

/* A filter that can grow has fingerprints for at least this number of keys. */
#define HEADROOM_KEYS	(UINT64_C(1) << 20)

/* ----------------------------------------------------------------
 * Geometry
 * ----------------------------------------------------------------
 */

/* The keys that the fingerprints of a filter for `capacity` keys are made for. */
static double
keys_to_come(uint64_t capacity, unsigned growth)
{
	if (growth == 0)
		return (double) capacity;
	return capacity * 2 > HEADROOM_KEYS ? (double) capacity * 2 : (double) HEADROOM_KEYS;
}

/* Does a table of these dimensions meet the target when it holds `keys` keys? */
static bool
is_wide_enough(uint64_t buckets, unsigned slot_bits, double keys, double fpp)
{
	/* exact but for the last product: powers of two only move the point */
	return (double) buckets * (double) (UINT64_C(1) << (slot_bits - 1)) * fpp >= keys;
}

/*
 * The table for a filter of `capacity` keys.  Of N numbers n are taken, so a key
 * that was not added is found with probability n/N.
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

/* How many bits of the fingerprints could be given up by a table of `keys` keys? */
unsigned
bf_table_spare_bits(bf_table table, uint64_t keys, double fpp, unsigned growth)
{
	unsigned	bits = table.slot_bits;

	while (bits > BF_MIN_SLOT_BITS && is_wide_enough(table.buckets, bits - 1U, keys_to_come(keys, growth), fpp))
		bits--;
	return table.slot_bits - bits;
}

/*
 * How many bits of each fingerprint go into the number of the bucket when the
 * table grows?  0: it cannot grow.  A filter that should not (growth 0) has to
 * when there are more keys than slots, as adding never fails.
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

/* The other bucket of what is kept as `value` in a bucket. */
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
 * Make room for a value in a full bucket: put it in the place of another one,
 * that into its other bucket, and so on until one has an empty slot.
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
		/* what has fingerprint 0 has no other place */
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
 * no place was found.
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

/* The number that is kept as `value` in a bucket. */
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

/* How many slots of the bucket have this value? */
static unsigned
table_bucket_count(const uint8_t *slots, bf_table table, uint64_t bucket, uint64_t value)
{
	unsigned	n = 0;

	for (unsigned i = 0; i < BF_BUCKET_SLOTS; i++)
		n += bf_slot_get(slots, table.slot_bits, bucket * BF_BUCKET_SLOTS + i) == value;
	return n;
}

/*
 * Is this a table of `used` numbers, each in one place?  NULL, or a sentence on
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
		return "Its table does not hold as many keys as it says.";
	for (uint64_t bit = bits; bit < bf_table_words(table) * 64; bit++)
	{
		if (slots[bit / 8] >> (bit % 8) & 1)
			return "It has bits set where there should be none.";
	}
	return NULL;
}
