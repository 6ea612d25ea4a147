/*
 * bloom_sets.c
 *		Union, intersection and compaction of Bloom filters, and the merging of
 *		aggregates' states.
 *
 * The rule of merging, for all of them:  Two layers of one shape are merged bit
 * by bit if the result has no more bits set than a full layer: then it is the
 * layer that all keys together would have made.  They are merged as well if one
 * adds nothing to the other.  Otherwise, and if their shapes differ, they stand
 * side by side: no key is lost, each layer is asked, and the false-positive
 * probability of the whole is what the layers add up to.
 *
 * A filter of a fixed size takes everything into one layer, and so do two windows
 * of one geometry, the newest into the newest.  The state of an aggregate never
 * fails for the number of its layers: with as many as there may be, those of one
 * shape are merged in any case.
 */
#include <stdlib.h>

#include "bloom.h"
#include "query.h"

/* ----------------------------------------------------------------
 * The rule
 * ----------------------------------------------------------------
 */

/*
 * A layer of another filter, to be looked at: its lines are where they are, of a
 * list there is a copy.  free_borrowed ends that.
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
free_borrowed(bf_bloom *bloom, const bf_bloom_layer *layer)
{
	bf_release(bloom->header.host, layer->hashes);
}

/* The bits set in the lines of a layer; none if it is a list. */
static uint64_t
own_bits(bf_host host, const bf_bloom_layer *layer)
{
	return layer->lines == NULL ? 0 : bf_lines_bits_set(host, layer->lines, layer->size.shape.words);
}

/*
 * Lines of both a layer and another one of the same shape, in memory of their
 * own.
 */
static uint8_t *
bloom_lines_of_both(bf_bloom *bloom, const bf_bloom_layer *layer, const bf_bloom_layer *other, bf_added *added)
{
	bf_host		host = bloom->header.host;
	bf_shape	shape = layer->size.shape;
	uint8_t    *lines = bf_allocate_zero(host, shape.words * 8);

	for (unsigned i = 0; i < 2; i++)
	{
		const bf_bloom_layer *part = i == 0 ? layer : other;

		if (part->lines != NULL)
			bf_lines_or(host, lines, part->lines, shape.words);
		else
			bf_lines_add_many(host, lines, shape, part->hashes, part->count);
	}
	*added = (bf_added) {bf_lines_bits_set(host, lines, shape.words), 0};
	return lines;
}

/* Merge two lists, if that makes a list; false if it does not. */
static bool
bloom_merge_lists(bf_bloom *bloom, bf_bloom_layer *layer, const bf_bloom_layer *other)
{
	bf_host		host = bloom->header.host;
	uint64_t	total = (uint64_t) layer->count + other->count;
	uint64_t   *hashes = bf_allocate(host, sizeof(uint64_t) * (total + 1));
	uint64_t	count;

	memcpy(hashes, layer->hashes, sizeof(uint64_t) * layer->count);
	memcpy(hashes + layer->count, other->hashes, sizeof(uint64_t) * other->count);
	count = bf_hashes_sort_unique(host, hashes, (size_t) total, 0);
	if (!bf_bloom_may_be_list(bloom, layer, count))
	{
		bf_release(host, hashes);
		return false;
	}
	bf_release(host, layer->hashes);
	layer->hashes = hashes;
	layer->room = (uint32_t) (total + 1);
	layer->count = layer->sorted = (uint32_t) count;
	return true;
}

/*
 * Merge another layer of the same shape into one of the filter's, if the rule
 * says so or in any case.  False if not; then nothing has changed.
 */
static bool
bloom_merge_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_bloom_layer *other, bool always)
{
	bf_host		host = bloom->header.host;
	bf_shape	shape = layer->size.shape;
	uint64_t	capacity = layer->size.capacity > other->size.capacity ? layer->size.capacity : other->size.capacity;
	uint64_t	full_bits = always ? UINT64_MAX : bf_shape_full_bits(shape, capacity);
	bf_added	both = {0, 0};
	uint8_t    *lines = layer->lines;

	bf_assert(bf_shape_equal(other->size.shape, shape));
	if (layer->lines == NULL && other->lines == NULL && bloom_merge_lists(bloom, layer, other))
	{
		layer->size.capacity = capacity;
		layer->full_bits = bf_full_bits(bloom->header.growth, shape, capacity);
		return true;
	}

	if (layer->lines != NULL && other->lines != NULL)
		both.bits = bf_lines_bits_set_or(host, layer->lines, other->lines, shape.words);
	else
		lines = bloom_lines_of_both(bloom, layer, other, &both);
	if (both.bits > full_bits && both.bits != own_bits(host, layer) && both.bits != own_bits(host, other))
	{
		if (lines != layer->lines)
			bf_release(host, lines);
		return false;
	}
	if (lines != layer->lines)
		bf_release(host, layer->lines);
	else
		bf_lines_or(host, lines, other->lines, shape.words);
	layer->size.capacity = capacity;
	layer->keys_left = BF_UNCOUNTED;
	bf_bloom_install_lines(bloom, layer, lines, both);
	return true;
}

/* Merge a layer into one of the first n, if there is one that the rule allows. */
static bool
bloom_merge_into_any(bf_bloom *bloom, unsigned n, const bf_bloom_layer *other, bool always)
{
	for (unsigned i = 0; i < n; i++)
	{
		const bf_size *size = &bloom->layer[i].size;

		/* the first layer of a state keeps the capacity that was declared */
		if (bf_shape_equal(size->shape, other->size.shape) &&
			(!bloom->is_state || size->capacity == other->size.capacity) &&
			bloom_merge_layer(bloom, &bloom->layer[i], other, always))
			return true;
	}
	return false;
}

/*
 * There are as many layers as there may be: merge two of one shape in any case, to
 * make room for another.  False if no two are alike.
 */
bool
bf_bloom_join_layers(bf_bloom *bloom)
{
	for (unsigned i = 1; i < bloom->layers; i++)
	{
		if (bloom_merge_into_any(bloom, i, &bloom->layer[i], true))
		{
			bf_bloom_remove_layer(bloom, i);
			return true;
		}
	}
	return false;
}

/* Put a copy of another filter's layer at position `at`. */
static void
bloom_copy_layer(bf_bloom *bloom, unsigned at, const bf_layer *from)
{
	bf_bloom_layer copy;

	bf_bloom_load_layer(bloom, &copy, from);
	bf_bloom_count_bits(bloom, &copy);
	bf_bloom_insert_layer(bloom, at, &copy);
}

/*
 * Merge a layer of another filter, or else put a copy of it at the end.  A state
 * that has as many layers as there may be merges it in any case.
 */
static void
bloom_take_layer(bf_bloom *bloom, const bf_layer *from, bool always)
{
	bf_bloom_layer other = borrow_layer(bloom, from);
	bool		full = bloom->layers == BF_MAX_LAYERS;
	bool		merged = bloom_merge_into_any(bloom, bloom->layers, &other, always) ||
	(full && bloom->is_state && bloom_merge_into_any(bloom, bloom->layers, &other, true));

	free_borrowed(bloom, &other);
	if (merged)
		return;
	if (full && !(bloom->is_state && bf_bloom_join_layers(bloom)))
		bf_fail(bloom->header.host, bloom->is_state ? BF_FAIL_LAYERS : BF_FAIL_UNION_LAYERS, BF_MAX_LAYERS + 1, NULL);
	bloom_copy_layer(bloom, bloom->layers, from);
}

/* Hashes of a list that are added together. */
#define BLOCK		1024

/* Add the keys of a list: a block at a time while there is certainly room for it. */
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
 * have room there.  Many filters of few keys shall not cost a sort of all each.
 */
static bool
add_fitting_list(bf_bloom *bloom, const bf_layer *list)
{
	const bf_bloom_layer *layer = &bloom->layer[0];

	if (bloom->layers > 1 || list->form != BF_FORM_LIST || !bf_shape_equal(layer->size.shape, list->shape) ||
		list->capacity > layer->size.capacity)
		return false;
	if (layer->lines == NULL ? !bf_bloom_may_be_list(bloom, layer, (uint64_t) layer->count + list->count) :
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
 * Is the value a state of the same aggregate call, with the same parameters?
 * Then lines of the first layer, if there are any, have one shape.
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

/* Put the layer of the largest capacity last: it is the one to grow from. */
static int
compare_capacities(const void *a, const void *b)
{
	const bf_bloom_layer *x = a;
	const bf_bloom_layer *y = b;

	return (x->size.capacity > y->size.capacity) - (x->size.capacity < y->size.capacity);
}

/* Any layer may become the open one: count the bits of all. */
static void
count_all_layers(bf_bloom *bloom)
{
	for (unsigned i = 0; i < bloom->layers; i++)
		bf_bloom_count_bits(bloom, &bloom->layer[i]);
}

/* Merge such a state.  Lists are added key by key, lines by the rule. */
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
		bf_bloom_order(bloom);	/* another layer may be the open one then */
		for (unsigned j = 0; j < bloom->layers; j++)
		{
			/* a list that is sized at the end becomes lines as large as these */
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
 * Merge two windows, the newest layers first.  What is older than all layers of
 * this one goes before them.
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

		bloom_merge_layer(bloom, &bloom->layer[bloom->layers - filter->layers + i], &other, true);
		free_borrowed(bloom, &other);
	}
}

/*
 * Unite with another filter; both hold keys.  The class of the keys is the
 * caller's business.
 */
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
		layer->bits_set = own_bits(header->host, layer);
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

/* A fixed order of layers: the same filters in any order make the same bytes. */
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
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	for (uint32_t i = 0; i < x->count; i++)
	{
		if (x->hashes[i] != y->hashes[i])
			return x->hashes[i] < y->hashes[i] ? -1 : 1;
	}
	return 0;
}

/* Bring the layers of a union into that order.  A window is ordered by age. */
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
 * Make a layer as small as it can be at the probability it was made for.  A list
 * knows its keys and can be sized anew; lines can be halved.
 */
static void
bloom_shrink_layer(bf_bloom *bloom, bf_bloom_layer *layer)
{
	bf_host		host = bloom->header.host;
	double		share = bf_shape_fpp(layer->size.shape, layer->size.capacity);

	if (layer->lines == NULL)
	{
		uint64_t	capacity = layer->count > 0 ? layer->count : 1;
		bf_shape	shape = bf_shape_for(capacity, share);

		if (shape.words >= layer->size.shape.words)
			return;
		layer->size = (bf_size) {shape, capacity};
		if (!bf_keep_list(shape, layer->count))
		{
			bf_added	added;
			uint8_t    *lines = bf_bloom_lines_of_list(bloom, layer, layer->count, &added);

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
 * The same keys in fewer bytes.  Layers without keys are dropped, those that are
 * too large folded, those that fit together merged.  A window keeps its layers:
 * they are equal for a reason.
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
		if (bloom_merge_into_any(bloom, i, &bloom->layer[i], bloom->header.growth == 0))
			bf_bloom_remove_layer(bloom, i);
		else
			i++;
	}
}

/* ----------------------------------------------------------------
 * Intersection
 * ----------------------------------------------------------------
 */

/* Keep the hashes of a list that the other layer may hold. */
static void
bloom_keep_common(const bf_bloom *bloom, bf_bloom_layer *list, bf_bloom_layer *other)
{
	uint32_t	kept = 0;

	for (uint32_t i = 0; i < list->count; i++)
	{
		if (bf_bloom_layer_contains(bloom, other, list->hashes[i]))
			list->hashes[kept++] = list->hashes[i];
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(bloom->header.host);
	}
	list->count = list->sorted = kept;
}

/*
 * Intersect with another filter; both have one layer of one shape.  The result
 * may hold keys that are in neither: those that both report falsely, and those
 * whose bits were set by different keys of the two.  It never lacks one that is
 * in both.
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
		/* a list has the hashes themselves, so what is left of it is exact */
		bf_bloom_sort_list(bloom, layer);
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
