/*
 * bloom_write.c
 *		Writing a mutable Bloom filter: as a value, as a state for another
 *		process, and as the result of an aggregate.
 *
 * The filter is described first, which yields its size.  The caller allocates
 * memory of that size, and the filter is written as described.
 */
#include "bloom.h"

/* Describe all layers in their current form. */
static void
bloom_describe_layers(bf_bloom *bloom, bf_filter *filter)
{
	filter->header = bloom->header;
	filter->layers = (uint8_t) bloom->layers;
	for (unsigned i = 0; i < bloom->layers; i++)
	{
		const bf_bloom_layer *layer = &bloom->layer[i];

		filter->layer[i] = (bf_layer) {.shape = layer->size.shape, .capacity = layer->size.capacity, .count = (uint32_t) layer->list.n};
		filter->layer[i].form = layer->lines != NULL ? BF_FORM_LINES : BF_FORM_LIST;
	}
}

/*
 * Describe the filter and return its size.  The state of an aggregate is described
 * as an unfinished value, in which a list has no shape.
 */
uint64_t
bf_bloom_describe(bf_bloom *bloom, bf_filter *filter)
{
	bf_bloom_order(bloom);
	bloom_describe_layers(bloom, filter);
	if (bloom->is_state && filter->layers == 1 && filter->layer[0].form == BF_FORM_LIST)
		filter->layer[0].shape = BF_UNSIZED;
	return bf_filter_size(filter);
}

/*
 * Describe the state of an aggregate for another process.  That process adds the
 * hashes one by one, so the list is not sorted if that would remove few of them:
 * sorting took 25% of the time of a parallel build.
 */
uint64_t
bf_bloom_describe_to_travel(bf_bloom *bloom, bf_filter *filter)
{
	const bf_bloom_layer *layer = &bloom->layer[0];

	if (!bloom->is_state || bloom->layers > 1 || layer->lines != NULL || bloom->fruitless_sorts == 0 ||
		!bf_bloom_may_be_list(bloom, layer, layer->list.n))
		return bf_bloom_describe(bloom, filter);
	bloom_describe_layers(bloom, filter);
	filter->layer[0].shape = BF_UNSIZED;
	return bf_filter_size(filter);
}

/*
 * The largest factor by which spilled lines can be folded without exceeding the
 * false-positive probability.
 */
static unsigned
bloom_spare_factor(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	bf_shape	shape = layer->size.shape;
	unsigned	factor = 1;

	/* with BF_MAX_LIST keys at the loosest target, no larger factor is left */
	for (unsigned candidate = 2; candidate <= 512; candidate++)
	{
		bf_shape	folded = shape;

		if (!bf_lines_can_fold(shape, candidate))
			continue;
		folded.words /= candidate;
		if (bf_lines_fold(bloom->header.host, NULL, layer->lines, shape, candidate) >
			bf_shape_bits_set(folded, bf_shape_capacity(folded, bloom->header.fpp)))
			break;
		factor = candidate;
	}
	return factor;
}

/*
 * Describe the finished filter of an aggregate and return its size.  The state can
 * take further keys, as a window frame requires.
 */
uint64_t
bf_bloom_finish(bf_bloom *bloom, bf_filter *filter)
{
	bf_layer   *layer = &filter->layer[0];

	bloom->list_bound = 0;
	bf_bloom_order(bloom);
	bloom_describe_layers(bloom, filter);
	if (layer->capacity == 0 && layer->form == BF_FORM_LIST)
	{
		layer->capacity = layer->count > 0 ? layer->count : 1;
		layer->shape = bf_shape_for(layer->capacity, filter->header.fpp);
		if (!bf_keep_list(layer->shape, layer->count))
			layer->form = BF_FORM_LINES;
	}
	else if (layer->capacity == 0)
	{
		layer->shape.words /= bloom_spare_factor(bloom, &bloom->layer[0]);
		layer->capacity = bf_shape_capacity(layer->shape, filter->header.fpp);
		layer->capacity = layer->capacity > 0 ? layer->capacity : 1;
	}
	return bf_filter_size(filter);
}

/* Write the filter as it was described. */
void
bf_bloom_write(bf_bloom *bloom, bf_filter *filter, uint8_t *bytes, size_t n)
{
	bf_host		host = bloom->header.host;

	bf_filter_write(filter, bytes, n);
	for (unsigned i = 0; i < bloom->layers; i++)
	{
		const bf_bloom_layer *from = &bloom->layer[i];
		bf_layer   *to = &filter->layer[i];

		if (to->form == BF_FORM_LIST)
			bf_list_write(to->data, from->list.hashes, (size_t) from->list.n);
		else if (from->lines == NULL)
		{
			memset(to->data, 0, (size_t) to->shape.words * 8);
			bf_lines_add_many(host, to->data, to->shape, from->list.hashes, (size_t) from->list.n);
		}
		else if (to->shape.words == from->size.shape.words)
			memcpy(to->data, from->lines, (size_t) to->shape.words * 8);
		else
			bf_lines_fold(host, to->data, from->lines, from->size.shape,
						  (unsigned) (from->size.shape.words / to->shape.words));
	}
}
