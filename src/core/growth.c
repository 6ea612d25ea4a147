/*
 * growth.c
 *		When a layer is full, and what the next one is like.
 *
 * A filter that grows is a chain of layers, each `growth` times as large as the
 * one before.  A key that was not added passes if it passes in any layer, so the
 * layers' probabilities add up, and each may have only a share of the target.
 *
 * The first layer gets a third: most filters never outgrow it, and should not
 * pay too much for the chance that they might.  Each further one gets 15 % of
 * what is left.  The shares never add up to more than the target however long
 * the chain, and shrink slowly enough that ten layers, 1024 keys grown to a
 * million, take 17.4 bits a key at 1 % (computed, and measured in the tests).
 * A layer that is as large as several steps of growth, made for many keys at
 * once, takes the shares of all of them: 1024 keys and then a million at once
 * take 11.0 bits a key.
 *
 * An aggregate gives its first layer the full target, since it was told how
 * many keys there are.  If there are more, the further layers share as much
 * again: twice the target at most.
 *
 * Whether a layer is full is told by the number of its bits that are set, which
 * depends on nothing but the keys.  That number varies around the one that is
 * expected.  A layer must take as many as it was made for, always: a
 * window of layers promises to hold its newest keys.  So "full" means six
 * standard deviations more, and layers of filters that grow or rotate are sized
 * for that.
 */
#include "growth.h"

/* What of the target a first layer keeps for itself, and a further one of the rest. */
#define FIRST_SHARE			(1.0 / 3.0)
#define REST_KEPT			0.85	/* by growth of 2 or more */
#define REST_KEPT_EQUAL		0.95	/* by layers of equal size: there may be
									 * 64 */

/* What is left at the least, where merges have used up everything. */
#define LEAST_SHARE			0.05

static uint64_t
integer_root(uint64_t x)
{
	uint64_t	root = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1)
	{
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	}
	return root;
}

/*
 * The number of keys at which a layer for `capacity` counts as full.
 *
 * The number of keys n that one would guess from the bits has a variance of
 * n (e^a - a - 1) / (a K), with K bits set by each key and a the mean number of
 * times that each bit was.  Six standard deviations, in root(n): 6 for K = 1
 * (a target of 0.9), 3 for 2, 2.5 for 3, 2 for 5, 1.7 for 7, 1.4 from 8 on.
 */
static uint64_t
full_keys(uint64_t capacity, bf_shape shape)
{
	static const uint8_t quarters[] = {24, 24, 12, 10, 9, 8, 7, 7};
	unsigned	bits = (unsigned) shape.groups * shape.probes;

	return capacity + ((bits < 8 ? quarters[bits] : 6) * integer_root(capacity) + 3) / 4;
}

/* The shape of a layer that holds `capacity` keys before it is full. */
static bf_shape
shape_with_margin(uint64_t capacity, double fpp)
{
	return bf_shape_for(full_keys(capacity, bf_shape_for(capacity, fpp)), fpp);
}

/* The shape of the first layer of a filter made to measure. */
bf_shape
bf_first_shape(uint64_t capacity, double fpp, unsigned growth, unsigned max_layers)
{
	if (max_layers > 0)
		return shape_with_margin(capacity, fpp / max_layers);
	if (growth > 0)
		return shape_with_margin(capacity, fpp * FIRST_SHARE);
	return bf_shape_for(capacity, fpp);
}

/* The number of set bits at which a layer certainly has all keys it is made for. */
uint64_t
bf_shape_full_bits(bf_shape shape, uint64_t capacity)
{
	return bf_shape_bits_set(shape, full_keys(capacity, shape));
}

/*
 * The number of set bits from which on a layer takes no new keys.  A filter of
 * a fixed size takes any number, and so does one that is not sized yet.
 */
uint64_t
bf_full_bits(unsigned growth, bf_shape shape, uint64_t capacity)
{
	if (growth == 0 || capacity == 0)
		return UINT64_MAX;
	return bf_shape_full_bits(shape, capacity);
}

/*
 * The layer to follow the last one, for at least `keys` keys.  `used` is what
 * all layers may use of the target when full, `first` the part of the first.
 */
bf_size
bf_next_size(const bf_header *header, bf_size last, double used, double first, uint64_t keys)
{
	uint64_t	step = last.capacity * header->growth;
	double		kept = header->growth > 1 ? REST_KEPT : REST_KEPT_EQUAL;
	double		budget = header->fpp;
	double		rest;
	double		share;

	if (header->max_layers > 0)
		return last;
	if (first > header->fpp / 2)
		budget += first;		/* a first layer of the full target */
	rest = budget - used;
	if (rest < header->fpp * LEAST_SHARE)
		rest = header->fpp * LEAST_SHARE;
	share = rest * (1.0 - kept);
	while (step < keys && step < BF_MAX_CAPACITY)
	{
		share += (rest - share) * (1.0 - kept);
		step = header->growth > 1 ? step * header->growth : step + last.capacity;
	}
	if (step > keys && keys > last.capacity * header->growth)
		step = keys;			/* known: no need for a whole step */
	return (bf_size) {shape_with_margin(step, share), step};
}
