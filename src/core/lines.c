/*
 * lines.c
 *		Bulk operations on lines of bits, and estimates from the bits set.
 */
#include <math.h>

#include "lines.h"

/* bf_lines_add_batches for any shape. */
bf_added
bf_lines_add_many(bf_host host, uint8_t *data, bf_shape shape, const uint64_t *hashes, size_t n)
{
	return bf_lines_add_batches(host, data, shape, hashes, n);
}

/* Test many keys; found[i] is true if the key of hashes[i] may have been added. */
void
bf_lines_test_many(bf_host host, const uint8_t *data, bf_shape shape,
				   const uint64_t *hashes, size_t n, bool *found)
{
	for (size_t start = 0; start < n; start += BF_BATCH)
	{
		size_t		end = n - start < BF_BATCH ? n : start + BF_BATCH;

		uint64_t	group_hashes[BF_BATCH];

		/* most absent keys miss in the first line: prefetch only that */
		for (size_t i = start; i < end; i++)
		{
			group_hashes[i - start] = bf_group_hash(hashes[i], 0);
			bf_line_prefetch(data, shape, group_hashes[i - start]);
		}
		for (size_t i = start; i < end; i++)
			found[i] = bf_lines_test_from(data, shape, hashes[i], group_hashes[i - start]);
		if (start % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
}

uint64_t
bf_lines_bits_set(bf_host host, const uint8_t *data, uint64_t words)
{
	return bf_lines_bits_set_or(host, data, data, words);
}

/* The number of bits set in the union of two layers. */
uint64_t
bf_lines_bits_set_or(bf_host host, const uint8_t *a, const uint8_t *b, uint64_t words)
{
	uint64_t	set = 0;

	for (uint64_t i = 0; i < words; i++)
	{
		set += bf_popcount64(bf_load64(a + i * 8) | bf_load64(b + i * 8));
		if (i % (BF_POLL_EVERY * 16) == 0)
			bf_poll(host);
	}
	return set;
}

/*
 * Set all bits in `into` that are set in `from`.  The compiler vectorizes this
 * loop and the next.
 */
void
bf_lines_or(bf_host host, uint8_t *into, const uint8_t *from, uint64_t words)
{
	for (uint64_t i = 0; i < words; i++)
	{
		bf_store64(into + i * 8, bf_load64(into + i * 8) | bf_load64(from + i * 8));
		if (i % (BF_POLL_EVERY * 16) == 0)
			bf_poll(host);
	}
}

void
bf_lines_and(bf_host host, uint8_t *into, const uint8_t *from, uint64_t words)
{
	for (uint64_t i = 0; i < words; i++)
	{
		bf_store64(into + i * 8, bf_load64(into + i * 8) & bf_load64(from + i * 8));
		if (i % (BF_POLL_EVERY * 16) == 0)
			bf_poll(host);
	}
}

/* Can each `factor` lines of the layer be combined into one? */
bool
bf_lines_can_fold(bf_shape shape, unsigned factor)
{
	return shape.words >= (uint64_t) factor * BF_LINE_WORDS && bf_shape_lines(shape) % factor == 0;
}

/*
 * Fold a layer: combine each `factor` lines into one.  The result is the layer that
 * the same keys would have made in the smaller shape.  Returns how many of its bits
 * are set.  `into` may be `from`, or NULL to count only.
 */
uint64_t
bf_lines_fold(bf_host host, uint8_t *into, const uint8_t *from, bf_shape shape, unsigned factor)
{
	uint64_t	lines = bf_shape_lines(shape) / factor;
	uint64_t	set = 0;

	for (uint64_t line = 0; line < lines; line++)
	{
		for (unsigned w = 0; w < BF_LINE_WORDS; w++)
		{
			const uint8_t *words = from + line * factor * BF_LINE_BYTES + w * 8;
			uint64_t	folded = 0;

			for (unsigned i = 0; i < factor; i++)
				folded |= bf_load64(words + i * BF_LINE_BYTES);
			set += bf_popcount64(folded);
			if (into != NULL)
				bf_store64(into + line * BF_LINE_BYTES + w * 8, folded);
		}
		if (line % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	return set;
}

/*
 * Estimate from the bits set how many keys were added, and the probability that an
 * absent key is reported.
 *
 * Each line is a small Bloom filter.  A line with x of m bits set has about
 * -m/k ln(1 - x/m) keys, and reports an absent key with probability (x/m)^k.  Both
 * depend on x alone, so a histogram of x is sufficient.  A key is counted once in
 * each group, and an absent key is reported if every group reports it; groups
 * select their lines independently.
 */
bf_census
bf_lines_census(bf_host host, const uint8_t *data, bf_shape shape)
{
	uint64_t	histogram[BF_LINE_BITS + 1] = {0};
	const uint64_t lines = bf_shape_lines(shape);
	const unsigned bits = bf_shape_line_bits(shape);
	bf_census	census = {0, 0.0, 0.0};

	for (uint64_t line = 0; line < lines; line++)
	{
		unsigned	set = 0;

		for (unsigned w = 0; w < bits / 64; w++)
			set += bf_popcount64(bf_load64(data + line * BF_LINE_BYTES + w * 8));
		histogram[set]++;
		if (line % BF_POLL_EVERY == 0)
			bf_poll(host);
	}

	for (unsigned set = 1; set <= bits; set++)
	{
		/* a full line gives a lower bound: half a bit less than full */
		double		fill = (set < bits ? set : set - 0.5) / bits;
		double		keys = -(double) bits / shape.probes * log1p(-fill);

		if (histogram[set] == 0)
			continue;
		census.bits_set += set * histogram[set];
		census.keys += keys / shape.groups * (double) histogram[set];
		census.fpp += pow((double) set / bits, shape.probes) * (double) histogram[set];
	}
	census.fpp = pow(census.fpp / (double) lines, shape.groups);
	return census;
}
