/*
 * bloom_sets.c
 *		Union, intersection and compaction of Bloom filters, and the merging of
 *		aggregates' states.
 *
 * The rule that decides whether two layers are merged is in bloom_layers.c.  Two filters
 * of a fixed size are always merged into one layer.  Two windows of one geometry are
 * merged layer by layer, the newest with the newest.  The number of layers is not an
 * error in the state of an aggregate: when it has BF_MAX_LAYERS, layers of one shape are
 * merged even if the result is overfull.
 */
#include <stdlib.h>

#include "bloom.h"
#include "query.h"

/* ----------------------------------------------------------------
 * Layers of another filter
 * ----------------------------------------------------------------
 */

/*
 * View a layer of another filter as one of ours: its lines are used in place, a
 * list is copied.  free_borrowed frees the copy.
 */
static bf_bloom_layer
borrow_layer(bf_bloom *bloom, const bf_layer *from)
{
	bf_bloom_layer layer;

	memset(&layer, 0, sizeof(layer));
	layer.size = (bf_size) {from->shape, from->capacity};
	if (from->form == BF_FORM_LINES)
		layer.lines = from->data;
	else
		bf_bloom_load_layer(bloom, &layer, from);
	return layer;
}

static void
free_borrowed(const bf_bloom *bloom, bf_bloom_layer *layer)
{
	bf_accumulator_free(bloom->header.host, &layer->list);
}

/* Insert a copy of another filter's layer at position `at`. */
static void
bloom_copy_layer(bf_bloom *bloom, unsigned at, const bf_layer *from)
{
	bf_bloom_layer copy;

	bf_bloom_load_layer(bloom, &copy, from);
	bf_bloom_count_bits(bloom, &copy);
	bf_bloom_insert_layer(bloom, at, &copy);
}

/*
 * Merge a layer of another filter, or append a copy of it.  A state that has
 * BF_MAX_LAYERS merges it even if the result is overfull.
 */
static void
bloom_take_layer(bf_bloom *bloom, const bf_layer *from, bool always)
{
	bf_bloom_layer other = borrow_layer(bloom, from);
	bool		full = bloom->layers == BF_MAX_LAYERS;
	bool		merged = bf_bloom_merge_into_any(bloom, bloom->layers, &other, always) ||
	(full && bloom->is_state && bf_bloom_merge_into_any(bloom, bloom->layers, &other, true));

	free_borrowed(bloom, &other);
	if (merged)
		return;
	if (full && !(bloom->is_state && bf_bloom_join_layers(bloom)))
		bf_fail(bloom->header.host, bloom->is_state ? BF_FAIL_LAYERS : BF_FAIL_UNION_LAYERS, BF_MAX_LAYERS + 1, NULL);
	bloom_copy_layer(bloom, bloom->layers, from);
}

/* Hashes of a list that are added together. */
#define BLOCK		1024

/* Add the keys of a list, a block at a time while the block certainly fits. */
static void
bloom_add_list(bf_bloom *bloom, const bf_layer *list)
{
	uint64_t	block[BLOCK];

	for (uint32_t start = 0; start < list->count; start += BLOCK)
	{
		uint32_t	n = list->count - start < BLOCK ? list->count - start : BLOCK;
		bf_bloom_layer *layer;

		if (bloom->batched > 0)
			bf_bloom_apply_batch(bloom);
		layer = &bloom->layer[0];
		bf_list_read(block, list->data + (size_t) start * 8, n);
		if (bloom->layers == 1 && layer->lines != NULL && bf_bloom_lines_take(layer, n))
			bf_bloom_add_to_lines(bloom, layer, block, n);
		else
		{
			for (uint32_t i = 0; i < n; i++)
				bf_bloom_add(bloom, block[i]);
		}
		if (start % BF_POLL_EVERY == 0)
			bf_poll(bloom->header.host);
	}
}

/*
 * Add the keys of a list one by one to a filter of one layer, if they certainly
 * fit.  The union of many small filters would otherwise sort all keys for each.
 */
static bool
add_fitting_list(bf_bloom *bloom, const bf_layer *list)
{
	const bf_bloom_layer *layer = &bloom->layer[0];

	if (bloom->layers > 1 || list->form != BF_FORM_LIST || !bf_shape_equal(layer->size.shape, list->shape) ||
		list->capacity > layer->size.capacity)
		return false;
	if (layer->lines == NULL ? !bf_bloom_may_be_list(bloom, layer, layer->list.n + list->count) :
		!bf_bloom_lines_take(layer, (uint64_t) list->count + BF_BATCH))
		return false;
	bloom_add_list(bloom, list);
	return true;
}

/* ----------------------------------------------------------------
 * States of one aggregate
 * ----------------------------------------------------------------
 */

/*
 * Is the value a state of the same aggregate call, with the same parameters?  If
 * so, the lines of both first layers have one shape.
 */
bool
bf_bloom_can_merge_state(const bf_bloom *bloom, const bf_filter *state)
{
	const bf_header *header = &bloom->header;
	const bf_size *size = &bloom->layer[0].size;
	const bf_layer *first = &state->layer[0];

	if (state->header.fpp != header->fpp || state->header.growth != header->growth ||
		state->header.max_layers > 0 || header->max_layers > 0 || first->capacity != size->capacity)
		return false;
	if (first->shape.words == 0)
		return true;			/* hashes only */
	if (size->capacity > 0)
		return bf_shape_equal(first->shape, size->shape);
	return first->form == BF_FORM_LINES && bf_shape_equal(first->shape, bf_bloom_spill_shape(header->fpp));
}

/* Order layers by capacity: the last one is open, and the next is sized by it. */
static int
compare_capacities(const void *a, const void *b)
{
	const bf_bloom_layer *x = a;
	const bf_bloom_layer *y = b;

	return (x->size.capacity > y->size.capacity) - (x->size.capacity < y->size.capacity);
}

/* Count the bits of all layers: any of them may become the open one. */
static void
count_all_layers(bf_bloom *bloom)
{
	for (unsigned i = 0; i < bloom->layers; i++)
		bf_bloom_count_bits(bloom, &bloom->layer[i]);
}

/* Merge such a state.  Lists are added key by key, lines are merged. */
void
bf_bloom_merge_state(bf_bloom *bloom, const bf_filter *state)
{
	bf_assert(bf_bloom_can_merge_state(bloom, state));
	count_all_layers(bloom);
	bloom->is_state = true;
	for (unsigned i = 0; i < state->layers; i++)
	{
		const bf_layer *other = &state->layer[i];

		if (other->form == BF_FORM_LIST)
		{
			bloom_add_list(bloom, other);
			continue;
		}
		bf_bloom_order(bloom);	/* may open another layer */
		for (unsigned j = 0; j < bloom->layers; j++)
		{
			/* an unsized list becomes lines of this shape */
			if (bloom->layer[j].size.shape.words == 0)
				bloom->layer[j].size.shape = other->shape;
		}
		bloom_take_layer(bloom, other, other->capacity == 0);
		qsort(bloom->layer, bloom->layers, sizeof(bf_bloom_layer), compare_capacities);
	}
}

/* ----------------------------------------------------------------
 * Union
 * ----------------------------------------------------------------
 */

/* Drop the layers without keys; at least one layer stays. */
static void
drop_empty_layers(bf_bloom *bloom)
{
	unsigned	kept = 0;

	for (unsigned i = 0; i < bloom->layers; i++)
	{
		bf_bloom_layer *layer = &bloom->layer[i];

		if (bloom->layers - i + kept > 1 && bf_bloom_layer_is_empty(bloom->header.host, layer))
			bf_bloom_free_layer(bloom, layer);
		else
			bloom->layer[kept++] = *layer;
	}
	bloom->layers = kept;
}

/* Do both filters rotate in the same way, with layers of one shape? */
static bool
is_same_window(const bf_bloom *bloom, const bf_filter *filter)
{
	bf_shape	shape = bloom->layer[0].size.shape;

	if (bloom->header.max_layers == 0 || bloom->header.max_layers != filter->header.max_layers)
		return false;
	for (unsigned i = 1; i < bloom->layers; i++)
	{
		if (!bf_shape_equal(bloom->layer[i].size.shape, shape))
			return false;
	}
	for (unsigned i = 0; i < filter->layers; i++)
	{
		if (!bf_shape_equal(filter->layer[i].shape, shape))
			return false;
	}
	return true;
}

/*
 * Merge two windows, the newest layer with the newest.  Surplus layers of the other
 * filter are older than all of this one, and are inserted before them.
 */
static void
unite_windows(bf_bloom *bloom, const bf_filter *filter)
{
	unsigned	older = filter->layers > bloom->layers ? filter->layers - bloom->layers : 0;

	for (unsigned i = 0; i < older; i++)
		bloom_copy_layer(bloom, i, &filter->layer[i]);
	for (unsigned i = older; i < filter->layers; i++)
	{
		bf_bloom_layer other = borrow_layer(bloom, &filter->layer[i]);

		bf_bloom_merge_layer(bloom, &bloom->layer[bloom->layers - filter->layers + i], &other, true);
		free_borrowed(bloom, &other);
	}
}

/* Unite with another filter; both hold keys, of a class that the caller has checked. */
void
bf_bloom_unite(bf_bloom *bloom, const bf_filter *filter)
{
	bf_header  *header = &bloom->header;
	unsigned	growth = header->growth;
	bool		fixed = growth == 0 && filter->header.growth == 0;
	bool		window = is_same_window(bloom, filter);

	count_all_layers(bloom);
	if (!window)
	{
		bool		rotates = header->max_layers > 0 || filter->header.max_layers > 0;

		header->growth = header->growth > filter->header.growth ? header->growth : filter->header.growth;
		header->max_layers = 0;
		if (rotates && header->growth == 1)
			header->growth = BF_DEFAULT_GROWTH;
	}
	header->fpp = header->fpp > filter->header.fpp ? header->fpp : filter->header.fpp;
	for (unsigned i = 0; i < bloom->layers && growth != header->growth; i++)
	{
		bf_bloom_layer *layer = &bloom->layer[i];

		layer->full_bits = bf_full_bits(header->growth, layer->size.shape, layer->size.capacity);
		layer->bits_set = bf_bloom_layer_bits(header->host, layer);
	}
	if (!window && filter->layers == 1 && add_fitting_list(bloom, &filter->layer[0]))
		return;
	bf_bloom_order(bloom);
	if (window)
	{
		unite_windows(bloom, filter);
		return;
	}

	drop_empty_layers(bloom);
	for (unsigned i = 0; i < filter->layers; i++)
	{
		if (!bf_layer_is_empty(header->host, &filter->layer[i]))
			bloom_take_layer(bloom, &filter->layer[i], fixed);
	}
}

/* Compare layers by content, so that a union does not depend on the order of filters. */
static int
compare_layers(const void *a, const void *b)
{
	const bf_bloom_layer *x = a;
	const bf_bloom_layer *y = b;

	if (x->size.shape.words != y->size.shape.words)
		return x->size.shape.words < y->size.shape.words ? -1 : 1;
	if (x->size.capacity != y->size.capacity)
		return x->size.capacity < y->size.capacity ? -1 : 1;
	if ((x->lines == NULL) != (y->lines == NULL))
		return x->lines == NULL ? -1 : 1;
	if (x->lines != NULL)
		return memcmp(x->lines, y->lines, (size_t) x->size.shape.words * 8);
	if (x->list.n != y->list.n)
		return x->list.n < y->list.n ? -1 : 1;
	for (uint64_t i = 0; i < x->list.n; i++)
	{
		if (x->list.hashes[i] != y->list.hashes[i])
			return x->list.hashes[i] < y->list.hashes[i] ? -1 : 1;
	}
	return 0;
}

/* Sort the layers of a union.  A window stays ordered by age. */
void
bf_bloom_sort_layers(bf_bloom *bloom)
{
	if (bloom->header.max_layers > 0 || bloom->layers == 1)
		return;
	bf_bloom_order(bloom);
	qsort(bloom->layer, bloom->layers, sizeof(bf_bloom_layer), compare_layers);
}

/* ----------------------------------------------------------------
 * Compaction
 * ----------------------------------------------------------------
 */

/*
 * Make a layer as small as its false-positive probability allows.  A list has its
 * keys and can be given any shape; lines can be halved.
 */
static void
bloom_shrink_layer(bf_bloom *bloom, bf_bloom_layer *layer)
{
	bf_host		host = bloom->header.host;
	double		share = bf_shape_fpp(layer->size.shape, layer->size.capacity);

	if (layer->lines == NULL)
	{
		uint64_t	capacity = layer->list.n > 0 ? layer->list.n : 1;
		bf_shape	shape = bf_shape_for(capacity, share);

		if (shape.words >= layer->size.shape.words)
			return;
		layer->size = (bf_size) {shape, capacity};
		if (!bf_keep_list(shape, layer->list.n))
		{
			bf_added	added;
			uint8_t    *lines = bf_bloom_lines_of_list(bloom, layer, layer->list.n, &added);

			bf_bloom_install_lines(bloom, layer, lines, added);
		}
		return;
	}
	while (bf_lines_can_fold(layer->size.shape, 2))
	{
		bf_shape	half = layer->size.shape;
		uint64_t	capacity;

		half.words /= 2;
		capacity = bf_shape_capacity(half, share);
		if (bf_lines_fold(host, NULL, layer->lines, layer->size.shape, 2) > bf_shape_bits_set(half, capacity))
			break;
		bf_lines_fold(host, layer->lines, layer->lines, layer->size.shape, 2);
		layer->size.shape = half;
		if (capacity < layer->size.capacity)
			layer->size.capacity = capacity;
	}
}

/*
 * Make the filter smaller: drop empty layers, fold oversized ones, and merge those
 * that fit together.  A window is left as it is, since its layers have to stay
 * equal.
 */
void
bf_bloom_compact(bf_bloom *bloom)
{
	if (bloom->header.max_layers > 0)
		return;
	drop_empty_layers(bloom);
	for (unsigned i = 0; i < bloom->layers; i++)
		bloom_shrink_layer(bloom, &bloom->layer[i]);
	for (unsigned i = 1; i < bloom->layers;)
	{
		if (bf_bloom_merge_into_any(bloom, i, &bloom->layer[i], bloom->header.growth == 0))
			bf_bloom_remove_layer(bloom, i);
		else
			i++;
	}
}

/* ----------------------------------------------------------------
 * Intersection
 * ----------------------------------------------------------------
 */

/* Keep the hashes of a list that the other layer reports. */
static void
bloom_keep_common(const bf_bloom *bloom, bf_bloom_layer *list, bf_bloom_layer *other)
{
	uint64_t	kept = 0;

	for (uint64_t i = 0; i < list->list.n; i++)
	{
		if (bf_bloom_layer_contains(bloom, other, list->list.hashes[i]))
			list->list.hashes[kept++] = list->list.hashes[i];
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(bloom->header.host);
	}
	list->list.n = list->list.sorted = kept;
}

/*
 * Intersect with another filter; both have one layer of one shape.  The result
 * reports every key that is in both.  Its false positives are the keys that both
 * filters report, some of which are in one of them or in neither.
 */
void
bf_bloom_intersect(bf_bloom *bloom, const bf_filter *filter)
{
	bf_header  *header = &bloom->header;
	bf_bloom_layer *layer = &bloom->layer[0];
	bf_bloom_layer other = borrow_layer(bloom, &filter->layer[0]);
	uint64_t	capacity = layer->size.capacity > other.size.capacity ? layer->size.capacity : other.size.capacity;

	bf_assert(bloom->layers == 1 && filter->layers == 1 && bf_shape_equal(layer->size.shape, other.size.shape));
	bf_assert(bloom->batched == 0 && bloom->recent == NULL);
	if (layer->lines == NULL)
	{
		/* a list has the hashes themselves, so the result is exact */
		bf_accumulator_sort(header->host, &layer->list);
		bloom_keep_common(bloom, layer, &other);
		free_borrowed(bloom, &other);
	}
	else if (other.lines == NULL)
	{
		bloom_keep_common(bloom, &other, layer);
		bf_bloom_free_layer(bloom, layer);
		*layer = other;
	}
	else
	{
		bf_lines_and(header->host, layer->lines, other.lines, layer->size.shape.words);
		if (bf_bloom_layer_is_empty(header->host, layer) && bf_keep_list(layer->size.shape, 0))
		{
			/* an empty filter is a list */
			bf_bloom_free_layer(bloom, layer);
			bf_bloom_start_list(bloom, layer, 0);
		}
	}
	layer->size.capacity = capacity;
	layer->keys_left = BF_UNCOUNTED;
	header->fpp = header->fpp > filter->header.fpp ? header->fpp : filter->header.fpp;
	header->growth = header->growth > filter->header.growth ? header->growth : filter->header.growth;
	header->max_layers = header->max_layers < filter->header.max_layers ? header->max_layers : filter->header.max_layers;
}
