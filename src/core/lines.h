/*
 * lines.h
 *		Lines of bits, the blocks of a blocked Bloom filter (see geometry.c):
 *		setting, testing and combining them.
 */
#ifndef BF_LINES_H
#define BF_LINES_H

#include "geometry.h"
#include "host.h"

/* Keys whose memory accesses are started together. */
#define BF_BATCH		32

/*
 * The hash that selects a key's line and bits in a group.  The key hash is mixed
 * even for the first group: users shard by bloom_hash(), and keys whose hashes
 * agree in some bits must still spread over all lines.
 */
static inline uint64_t
bf_group_hash(uint64_t hash, unsigned group)
{
	return bf_mix64(hash + (group + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

/*
 * The line of a group: the group hash scaled to the number of lines.  In a filter of
 * half the size it is line / 2, so bf_lines_fold is exact.
 */
static inline uint64_t
bf_group_line(uint64_t group_hash, uint64_t lines)
{
	return bf_scale64(group_hash, lines);
}

/*
 * All positions in a line come from the lower half of the group hash, repeatedly multiplied by this,
 * as in RocksDB's util/bloom_impl.h.  Compare double hashing (Kirsch and Mitzenmacher, "Less Hashing,
 * Same Performance", 2006).
 */
#define BF_NEXT_PROBE	UINT32_C(0x9E3779B9)

/*
 * Prefetch the line of a group.  If the filter is not aligned, a line spans two
 * cache lines.
 */
static bf_inline void
bf_line_prefetch(const uint8_t *data, bf_shape shape, uint64_t group_hash)
{
	const uint8_t *line = data + bf_group_line(group_hash, bf_shape_lines(shape)) * BF_LINE_BYTES;

	bf_prefetch(line);
	if ((uintptr_t) data % BF_LINE_BYTES != 0)
		bf_prefetch(line + BF_LINE_BYTES - 1);
}

/* Prefetch the lines of all groups; returns the first group hash. */
static bf_inline uint64_t
bf_lines_prefetch(const uint8_t *data, bf_shape shape, uint64_t hash)
{
	uint64_t	first = bf_group_hash(hash, 0);

	bf_line_prefetch(data, shape, first);
	for (unsigned g = 1; g < shape.groups; g++)
		bf_line_prefetch(data, shape, bf_group_hash(hash, g));
	return first;
}

static bf_inline unsigned
bf_probe_position(uint32_t x, unsigned bits)
{
	return (unsigned) (((uint64_t) x * bits) >> 32);
}

static bf_inline bool
bf_probes_test(const uint8_t *line, unsigned bits, unsigned probes, uint32_t x)
{
	unsigned	all = 1;

	/* testing all costs less than a mispredicted branch at the first miss */
	for (unsigned i = 0; i < probes; i++, x *= BF_NEXT_PROBE)
	{
		unsigned	position = bf_probe_position(x, bits);

		all &= (unsigned) line[position / 8] >> position % 8;
	}
	return all & 1;
}

static bf_inline unsigned
bf_probes_set(uint8_t *line, unsigned bits, unsigned probes, uint32_t x)
{
	unsigned	fresh = 0;

	for (unsigned i = 0; i < probes; i++, x *= BF_NEXT_PROBE)
	{
		unsigned	position = bf_probe_position(x, bits);
		unsigned	byte = line[position / 8];

		fresh += !(byte >> position % 8 & 1);
		line[position / 8] = (uint8_t) (byte | 1U << position % 8);
	}
	return fresh;
}

/*
 * Are all probes of a group set in a line of `bits` bits?  Nearly all lines are
 * whole, and the constant saves a multiplication per probe.
 */
static inline bool
bf_line_test(const uint8_t *line, unsigned bits, unsigned probes, uint64_t group_hash)
{
	if (bits == BF_LINE_BYTES * 8)
		return bf_probes_test(line, BF_LINE_BYTES * 8, probes, (uint32_t) group_hash);
	return bf_probes_test(line, bits, probes, (uint32_t) group_hash);
}

/* Set all probes of a group; returns how many bits were not set before. */
static inline unsigned
bf_line_set(uint8_t *line, unsigned bits, unsigned probes, uint64_t group_hash)
{
	if (bits == BF_LINE_BYTES * 8)
		return bf_probes_set(line, BF_LINE_BYTES * 8, probes, (uint32_t) group_hash);
	return bf_probes_set(line, bits, probes, (uint32_t) group_hash);
}

/* Test a key whose first group hash is known. */
static inline bool
bf_lines_test_from(const uint8_t *data, bf_shape shape, uint64_t hash, uint64_t group_hash)
{
	const uint64_t lines = bf_shape_lines(shape);
	const unsigned bits = bf_shape_line_bits(shape);

	for (unsigned g = 0;;)
	{
		if (!bf_line_test(data + bf_group_line(group_hash, lines) * BF_LINE_BYTES,
						  bits, shape.probes, group_hash))
			return false;
		if (++g == shape.groups)
			return true;
		group_hash = bf_group_hash(hash, g);
	}
}

static inline bool
bf_lines_test(const uint8_t *data, bf_shape shape, uint64_t hash)
{
	return bf_lines_test_from(data, shape, hash, bf_group_hash(hash, 0));
}

/*
 * Add a key whose first group hash is known; returns how many bits were not set
 * before.
 */
static inline unsigned
bf_lines_add_from(uint8_t *data, bf_shape shape, uint64_t hash, uint64_t group_hash)
{
	const uint64_t lines = bf_shape_lines(shape);
	const unsigned bits = bf_shape_line_bits(shape);
	unsigned	fresh = 0;

	for (unsigned g = 0;;)
	{
		fresh += bf_line_set(data + bf_group_line(group_hash, lines) * BF_LINE_BYTES,
							 bits, shape.probes, group_hash);
		if (++g == shape.groups)
			return fresh;
		group_hash = bf_group_hash(hash, g);
	}
}

static inline unsigned
bf_lines_add(uint8_t *data, bf_shape shape, uint64_t hash)
{
	return bf_lines_add_from(data, shape, hash, bf_group_hash(hash, 0));
}

/*
 * Set a bit in memory where other processes set bits at the same time.  A bit that is
 * already set is not written, so that processors need not exchange its cache line.
 */
static inline void
bf_bit_set_shared(uint8_t *bytes, uint64_t position)
{
	uint8_t		bit = (uint8_t) (1U << position % 8);

	if (!(bytes[position / 8] & bit))
		(void) __atomic_fetch_or(&bytes[position / 8], bit, __ATOMIC_RELAXED);
}

/* Add a key to lines to which other processes add keys at the same time. */
static inline void
bf_lines_add_shared(uint8_t *data, bf_shape shape, uint64_t hash)
{
	for (unsigned g = 0; g < shape.groups; g++)
	{
		uint64_t	group_hash = bf_group_hash(hash, g);
		uint8_t    *line = data + bf_group_line(group_hash, bf_shape_lines(shape)) * BF_LINE_BYTES;
		uint32_t	x = (uint32_t) group_hash;

		for (unsigned i = 0; i < shape.probes; i++, x *= BF_NEXT_PROBE)
			bf_bit_set_shared(line, bf_probe_position(x, bf_shape_line_bits(shape)));
	}
}

/* The effect of adding keys. */
typedef struct bf_added
{
	uint64_t	bits;			/* that were not set before */
	uint64_t	keys;			/* that set such a bit: at most the distinct
								 * ones */
} bf_added;

/*
 * Add many keys: prefetch the lines of a batch, then set their bits.  Prefetches
 * follow one another closely because each waits for the translation of its address,
 * and several translations run in parallel.
 *
 * There is no poll in the first batch, so that nothing can fail there.
 *
 * This is inlined for callers whose groups and probes are constants, which makes it
 * faster by a third; all others call bf_lines_add_many.
 */
static bf_inline bf_added
bf_lines_add_batches(bf_host host, uint8_t *data, bf_shape shape, const uint64_t *hashes, size_t n)
{
	bf_added	added = {0, 0};

	for (size_t start = 0; start < n; start += BF_BATCH)
	{
		size_t		end = n - start < BF_BATCH ? n : start + BF_BATCH;

		uint64_t	group_hashes[BF_BATCH];

		if (start > 0 && start % BF_POLL_EVERY == 0)
			bf_poll(host);
		for (size_t i = start; i < end; i++)
			group_hashes[i - start] = bf_lines_prefetch(data, shape, hashes[i]);
		for (size_t i = start; i < end; i++)
		{
			unsigned	fresh = bf_lines_add_from(data, shape, hashes[i], group_hashes[i - start]);

			added.bits += fresh;
			added.keys += fresh > 0;
		}
	}
	return added;
}

/*
 * Bulk operations.  Those that count or test change nothing.
 */
extern bf_added bf_lines_add_many(bf_host host, uint8_t *data, bf_shape shape,
								  const uint64_t *hashes, size_t n);
extern void bf_lines_test_many(bf_host host, const uint8_t *data, bf_shape shape,
							   const uint64_t *hashes, size_t n, bool *found);
extern uint64_t bf_lines_bits_set(bf_host host, const uint8_t *data, uint64_t words);
extern uint64_t bf_lines_bits_set_or(bf_host host, const uint8_t *a, const uint8_t *b, uint64_t words);
extern void bf_lines_or(bf_host host, uint8_t *into, const uint8_t *from, uint64_t words);
extern void bf_lines_and(bf_host host, uint8_t *into, const uint8_t *from, uint64_t words);
extern bool bf_lines_can_fold(bf_shape shape, unsigned factor);
extern uint64_t bf_lines_fold(bf_host host, uint8_t *into, const uint8_t *from, bf_shape shape, unsigned factor);

/* Estimates from the bits that are set. */
typedef struct bf_census
{
	uint64_t	bits_set;
	double		keys;			/* estimated number of distinct keys */
	double		fpp;			/* probability of a false positive now */
} bf_census;

extern bf_census bf_lines_census(bf_host host, const uint8_t *data, bf_shape shape);

#endif							/* BF_LINES_H */
