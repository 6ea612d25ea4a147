/*
 * table.h
 *		The table of a cuckoo filter: buckets, slots and fingerprints.
 *
 * This is partial-key cuckoo hashing (Fan, Andersen, Kaminsky and Mitzenmacher,
 * "Cuckoo Filter: Practically Better Than Bloom", 2014): a key is a fingerprint in
 * one of two buckets, and the second bucket is computed from the first one and the
 * fingerprint.  Two things differ.  The second bucket is at a distance that depends
 * on the fingerprint, which works for any number of buckets; and a bit of each slot
 * says which of the two buckets it is in.
 *
 * So a table of B buckets whose slots have F bits is a set of numbers below
 * N = B x 2^(F-1).  A key becomes a number by scaling its hash; the upper part of
 * the number is its own bucket, the lower F-1 bits are its fingerprint.  A number is
 * in a slot of its own bucket or of the alternate one, and the slot's lowest bit
 * says which.  Every number can be read back from its slot, a key is looked up by
 * comparing 8 slots, and only the scaling of hashes loses information.
 *
 * A table twice as large with slots one bit shorter has the same N: when it grows, a
 * bit of each fingerprint becomes part of the bucket's number.
 */
#ifndef BF_TABLE_H
#define BF_TABLE_H

#include "host.h"

#define BF_BUCKET_SLOTS		4
#define BF_MIN_SLOT_BITS	5
#define BF_MAX_SLOT_BITS	56
#define BF_MAX_RANGE		(UINT64_C(1) << 62)

/* The largest distance of an alternate bucket. */
#define BF_TABLE_WINDOW		1024

typedef struct bf_table
{
	uint64_t	buckets;		/* 0: no table, numbers are whole hashes */
	uint8_t		slot_bits;
} bf_table;

extern bf_table bf_table_for(uint64_t capacity, double fpp, unsigned growth);
extern unsigned bf_table_spare_bits(bf_table table, uint64_t keys, double fpp, unsigned growth);
extern unsigned bf_table_growth_bits(bf_table table, unsigned growth);

extern bool bf_table_insert(uint8_t *slots, bf_table table, uint64_t number);
extern bool bf_table_remove(uint8_t *slots, bf_table table, uint64_t number);
extern bool bf_table_next(bf_host host, const uint8_t *slots, bf_table table, uint64_t *slot, uint64_t *number);
extern const char *bf_table_check(bf_host host, const uint8_t *slots, bf_table table, uint64_t used);

/* The number of keys at which a table is full: 95% of its slots. */
static inline uint64_t
bf_table_full(bf_table table)
{
	return (table.buckets * 19 + 4) / 5;
}

/* N: numbers are below it. */
static inline uint64_t
bf_table_range(bf_table table)
{
	return table.buckets << (table.slot_bits - 1);
}

/* The number of a key. */
static inline uint64_t
bf_table_number(bf_table table, uint64_t hash)
{
	return table.buckets == 0 ? hash : bf_scale64(hash, bf_table_range(table));
}

/* The size in 64-bit words, such that any slot can be read by loading eight bytes. */
static inline uint64_t
bf_table_words(bf_table table)
{
	uint64_t	last = (table.buckets * BF_BUCKET_SLOTS - 1) * table.slot_bits;

	return table.buckets == 0 ? 0 : (last / 8 + 8 + 7) / 8;
}

/* ----------------------------------------------------------------
 * The places of a number
 * ----------------------------------------------------------------
 */

static inline uint64_t
bf_table_fingerprint(bf_table table, uint64_t number)
{
	return number & ((UINT64_C(1) << (table.slot_bits - 1)) - 1);
}

static inline uint64_t
bf_table_bucket(bf_table table, uint64_t number)
{
	return number >> (table.slot_bits - 1);
}

/* The distance from the own bucket to the alternate one. */
static inline uint64_t
bf_table_distance(bf_table table, uint64_t fingerprint)
{
	uint64_t	window = table.buckets - 1 < BF_TABLE_WINDOW ? table.buckets - 1 : BF_TABLE_WINDOW;

	if (window == 0)
		return 0;
	return 1 + bf_scale64((fingerprint + 1) * UINT64_C(0x9E3779B97F4A7C15), window);
}

static inline uint64_t
bf_table_alternate(bf_table table, uint64_t bucket, uint64_t fingerprint)
{
	uint64_t	alternate = bucket + bf_table_distance(table, fingerprint);

	return alternate < table.buckets ? alternate : alternate - table.buckets;
}

/*
 * The value of a slot that has a number in its own bucket.  In the alternate bucket
 * the value is one more.  0 is an empty slot, so a number with fingerprint 0 is
 * always in the alternate bucket.
 */
static inline uint64_t
bf_table_value(bf_table table, uint64_t number)
{
	return bf_table_fingerprint(table, number) << 1;
}

/* ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

static inline uint64_t
bf_slot_get(const uint8_t *slots, unsigned bits, uint64_t slot)
{
	uint64_t	at = slot * bits;

	return (bf_load64(slots + at / 8) >> (at % 8)) & ((UINT64_C(1) << bits) - 1);
}

/* The bit at which a bucket starts. */
static inline uint64_t
bf_bucket_start(bf_table table, uint64_t bucket)
{
	return bucket * BF_BUCKET_SLOTS * table.slot_bits;
}

/* The number of bytes to read for a bucket that starts at this bit. */
static inline size_t
bf_bucket_span(bf_table table, uint64_t at)
{
	return (size_t) (at % 8 + (BF_BUCKET_SLOTS - 1) * table.slot_bits) / 8 + 8;
}

/*
 * Has the bucket that starts at bit `at` a slot of this value?  If the bucket fits a
 * word, its four slots are compared at once: the sum below has the upper bit of a
 * slot unset if and only if the slot's other bits are all zero.
 */
static inline bool
bf_bucket_holds(const uint8_t *slots, unsigned bits, uint64_t at, uint64_t value)
{
	if (bits <= 15)
	{
		uint64_t	ones = UINT64_C(1) | UINT64_C(1) << bits | UINT64_C(1) << 2 * bits | UINT64_C(1) << 3 * bits;
		uint64_t	upper = ones << (bits - 1);
		uint64_t	lower = upper - ones;
		uint64_t	difference = (bf_load64(slots + at / 8) >> (at % 8)) ^ (value * ones);

		return (~(((difference & lower) + lower) | difference) & upper) != 0;
	}
	for (unsigned i = 0; i < BF_BUCKET_SLOTS; i++, at += bits)
	{
		if (((bf_load64(slots + at / 8) >> (at % 8)) & ((UINT64_C(1) << bits) - 1)) == value)
			return true;
	}
	return false;
}

/* Is the number in the table? */
static inline bool
bf_table_find(const uint8_t *slots, bf_table table, uint64_t number)
{
	unsigned	bits = table.slot_bits;
	uint64_t	bucket = bf_table_bucket(table, number);
	uint64_t	value = bf_table_value(table, number);

	if (value != 0 && bf_bucket_holds(slots, bits, bf_bucket_start(table, bucket), value))
		return true;
	bucket = bf_table_alternate(table, bucket, value >> 1);
	return bf_bucket_holds(slots, bits, bf_bucket_start(table, bucket), value + 1);
}

static bf_inline void
bf_table_prefetch(const uint8_t *slots, bf_table table, uint64_t number)
{
	uint64_t	bucket = bf_table_bucket(table, number);
	uint64_t	alternate = bf_table_alternate(table, bucket, bf_table_fingerprint(table, number));

	bf_prefetch(slots + bf_bucket_start(table, bucket) / 8);
	bf_prefetch(slots + bf_bucket_start(table, alternate) / 8);
}

#endif							/* BF_TABLE_H */
