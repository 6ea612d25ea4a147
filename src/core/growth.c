/*
 * growth.c
 *		When a layer is full, and the size of the next one.
 *
 * A filter that grows is a scalable Bloom filter (Almeida, Baquero, Preguica and
 * Hutchison, "Scalable Bloom Filters", 2007): a chain of layers, each `growth`
 * times as large as the one before.  An absent key is reported if any layer
 * reports it, so the layers' probabilities add up, and each layer gets a share of
 * the target.
 *
 * The first layer gets a third of the target: most filters do not outgrow it, so it
 * should not be much larger than it would be alone.  Each further layer gets 15% of the
 * remainder.  The sum of the shares does not exceed the target for any number of layers,
 * and the shares shrink slowly: ten layers, 1024 keys grown to a million, take 17.4 bits
 * per key at 1% (computed, and measured in the tests).  A layer that replaces several
 * steps of growth, because many keys are added at once, gets the shares of all of them:
 * 1024 keys and then a million at once take 11.0 bits per key.
 *
 * An aggregate gives its first layer the full target, because its capacity was
 * declared.  If there are more keys, the further layers share as much again, so
 * that the filter stays within twice the target.
 *
 * A layer is full when it has a certain number of bits set, which depends on the
 * keys alone.  The number of bits that a number of keys sets varies, and a layer
 * must always take the keys it is made for, since a window guarantees to hold its
 * newest keys.  So a layer is full at six standard deviations above the expected
 * number of bits, and layers of filters that grow or rotate are sized for that.
 */
#include "growth.h"

/* The share of the first layer, and the part of the rest that each further one leaves. */
#define FIRST_SHARE			(1.0 / 3.0)
#define REST_KEPT			0.85	/* with growth of 2 or more */
#define REST_KEPT_EQUAL		0.95	/* with layers of equal size, up to 64 */

/* The smallest rest, for filters whose target was used up by merging. */
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
 * The number of keys n that is estimated from the bits has a variance of
 * n (e^a - a - 1) / (a K), where each key sets K bits and each bit was set a times
 * on average.  Six standard deviations, in units of sqrt(n): 6 for K = 1 (a target
 * of 0.9), 3 for 2, 2.5 for 3, 2 for 5, 1.7 for 7, 1.4 from 8 on.
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

/* The shape of the first layer of a filter. */
bf_shape
bf_first_shape(uint64_t capacity, double fpp, unsigned growth, unsigned max_layers)
{
	if (max_layers > 0)
		return shape_with_margin(capacity, fpp / max_layers);
	if (growth > 0)
		return shape_with_margin(capacity, fpp * FIRST_SHARE);
	return bf_shape_for(capacity, fpp);
}

/* The number of bits set at which a layer certainly has `capacity` keys. */
uint64_t
bf_shape_full_bits(bf_shape shape, uint64_t capacity)
{
	return bf_shape_bits_set(shape, full_keys(capacity, shape));
}

/*
 * The number of bits set at which a layer is full.  A filter of a fixed size is
 * never full, nor is one that is not sized yet.
 */
uint64_t
bf_full_bits(unsigned growth, bf_shape shape, uint64_t capacity)
{
	if (growth == 0 || capacity == 0)
		return UINT64_MAX;
	return bf_shape_full_bits(shape, capacity);
}

/*
 * The size of the layer that follows the last one, for at least `keys` keys.  `used`
 * is the sum of all layers' probabilities when full, `first` that of the first.
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
		step = keys;			/* no need for a whole step */
	return (bf_size) {shape_with_margin(step, share), step};
}

/* Two layers with this share of the target each do not follow each other, unless the second one is larger. */
#define LARGE_SHARE		0.25

/* The layers of one filter have at most this many times the target in total, with a margin for rounding. */
#define LARGEST_SUM		2.05

/*
 * Are the layers those of one filter that has grown, or of a window?  Then a key is in
 * one layer; a window can have it in several.  Layers of merged filters are independent:
 * each of them has its own target, and they can have the same keys.
 *
 * Capacities do not show the difference, because compaction makes the last layer of a
 * grown filter smaller.  A further layer with a large share replaces several steps of
 * growth, so it is larger than the one before.
 */
bool
bf_layers_fit(const bf_filter *filter)
{
	const bf_header *header = &filter->header;
	double		last = 0;
	double		sum = 0;

	if (header->max_layers > 0 || filter->layers == 1)
		return true;
	if (header->growth == 0)
		return false;
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];
		double		share = layer->shape.words > 0 ? bf_shape_fpp(layer->shape, layer->capacity) / header->fpp : 0;

		if (share > LARGE_SHARE && last > LARGE_SHARE &&
			(double) layer->capacity < (double) filter->layer[i - 1].capacity * (1 + header->growth) / 2)
			return false;
		last = share;
		sum += share;
	}
	return sum <= LARGEST_SUM;
}
