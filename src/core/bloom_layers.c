/*
 * bloom_layers.c
 *		The layers of a mutable Bloom filter: lists, lines, and the one rule of
 *		merging.
 *
 * A layer is a list of hashes while that is smaller, and lines of bits after that.
 *
 * The rule of merging is the same for unions, compaction and states of aggregates.
 * Two layers of one shape are merged bit by bit if the result has no more bits set
 * than a full layer: it is then the layer that all keys together would have made.
 * They are also merged if one adds nothing to the other.  Otherwise, and if their
 * shapes differ, they stay separate: no key is lost, each layer is probed, and the
 * false-positive probability of the filter is the sum of the layers'.
 */
#include "bloom.h"

/* ----------------------------------------------------------------
 * Lists
 * ----------------------------------------------------------------
 */

/*
 * The longest list that a layer may have.  Without list_bound, a layer is a list
 * while that is shorter than its lines; see bf_keep_list.  The bound is for the
 * states of parallel aggregates: if their keys turn out to be more than were
 * declared, a list can still be split into layers, and lines cannot.
 */
uint64_t
bf_bloom_longest_list(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	uint64_t	words = layer->size.shape.words;
	uint64_t	longest = words > 2 ? words - 2 : 0;

	if (words == 0 || longest > BF_MAX_LIST)
		longest = BF_MAX_LIST;
	return longest > bloom->list_bound ? longest : bloom->list_bound;
}

/* May a layer of `count` distinct hashes be a list? */
bool
bf_bloom_may_be_list(const bf_bloom *bloom, const bf_bloom_layer *layer, uint64_t count)
{
	return (bloom->list_bound > 0 && count <= bloom->list_bound) || bf_keep_list(layer->size.shape, count);
}

/*
 * The largest room for the list of a layer: enough beyond the longest list that
 * a sort removes many repetitions, but no more than the layer's capacity.
 */
uint64_t
bf_bloom_largest_room(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	uint64_t	longest = bf_bloom_longest_list(bloom, layer);
	uint64_t	room = longest + 2;

	if (layer->size.shape.words == 0)
		return BF_LIST_ROOM;
	if (longest >= 14)
	{
		uint64_t	twice = longest * 2;

		if (longest > bloom->list_bound && twice > layer->size.capacity)
			twice = layer->size.capacity;
		room = room > twice ? room : twice;
	}
	return room < BF_LIST_ROOM ? room : BF_LIST_ROOM;
}

/* Start an empty list with room for more than `count` hashes. */
void
bf_bloom_start_list(const bf_bloom *bloom, bf_bloom_layer *layer, uint64_t count)
{
	uint64_t	least = bf_bloom_largest_room(bloom, layer);

	least = least < 8 ? least : 8;
	bf_accumulator_start(bloom->header.host, &layer->list, least > count ? least : count + 1);
	layer->lines = NULL;
	layer->bits_set = 0;
	layer->full_bits = bf_full_bits(bloom->header.growth, layer->size.shape, layer->size.capacity);
	layer->keys_left = BF_UNCOUNTED;
}

/* ----------------------------------------------------------------
 * Lines
 * ----------------------------------------------------------------
 */

/* The shape of a state that has more keys than are sized exactly. */
bf_shape
bf_bloom_spill_shape(double fpp)
{
	bf_shape	shape = bf_shape_for(BF_MAX_LIST, fpp);

	shape.words = (uint64_t) BF_SPILL_LINES * BF_LINE_WORDS;
	return shape;
}

/* The shape of the lines that a layer has or will have. */
static bf_shape
lines_shape(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	return layer->size.shape.words > 0 ? layer->size.shape : bf_bloom_spill_shape(bloom->header.fpp);
}

/* Make lines of the first n hashes of a layer's list. */
uint8_t *
bf_bloom_lines_of_list(const bf_bloom *bloom, const bf_bloom_layer *layer, uint64_t n, bf_added *added)
{
	bf_host		host = bloom->header.host;
	bf_shape	shape = lines_shape(bloom, layer);
	uint8_t    *lines = bf_allocate_zero(host, shape.words * 8);

	*added = bf_lines_add_many(host, lines, shape, layer->list.hashes, (size_t) n);
	return lines;
}

/* Replace the list of a layer by these lines. */
void
bf_bloom_install_lines(bf_bloom *bloom, bf_bloom_layer *layer, uint8_t *lines, bf_added added)
{
	layer->size.shape = lines_shape(bloom, layer);
	bf_accumulator_free(bloom->header.host, &layer->list);
	layer->lines = lines;
	layer->bits_set = 0;
	layer->full_bits = bf_full_bits(bloom->header.growth, layer->size.shape, layer->size.capacity);
	bf_bloom_count_added(layer, added);
}

/* The number of bits set in the lines of a layer; 0 if it is a list. */
uint64_t
bf_bloom_layer_bits(bf_host host, const bf_bloom_layer *layer)
{
	return layer->lines == NULL ? 0 : bf_lines_bits_set(host, layer->lines, layer->size.shape.words);
}

/* Count the bits of a layer that was loaded, if they were not counted yet. */
void
bf_bloom_count_bits(const bf_bloom *bloom, bf_bloom_layer *layer)
{
	if (layer->bits_set == BF_UNCOUNTED)
		layer->bits_set = bf_bloom_layer_bits(bloom->header.host, layer);
}

/* ----------------------------------------------------------------
 * One layer
 * ----------------------------------------------------------------
 */

/* Copy a layer from the bytes of a filter.  Its bits are not counted. */
void
bf_bloom_load_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_layer *from)
{
	bf_host		host = bloom->header.host;

	layer->size = (bf_size) {from->shape, from->capacity};
	if (from->form == BF_FORM_LINES)
	{
		uint8_t    *lines = bf_allocate(host, from->shape.words * 8);

		memcpy(lines, from->data, (size_t) from->shape.words * 8);
		layer->list.hashes = NULL;
		layer->keys_left = BF_UNCOUNTED;
		bf_bloom_install_lines(bloom, layer, lines, (bf_added) {0, 0});
		if (layer->full_bits != UINT64_MAX)
			layer->bits_set = BF_UNCOUNTED;
	}
	else
	{
		bf_bloom_start_list(bloom, layer, from->count);
		bf_list_read(layer->list.hashes, from->data, from->count);
		layer->list.n = layer->list.sorted = from->count;
	}
}

void
bf_bloom_free_layer(const bf_bloom *bloom, bf_bloom_layer *layer)
{
	bf_accumulator_free(bloom->header.host, &layer->list);
	bf_release(bloom->header.host, layer->lines);
	layer->lines = NULL;
}

/* May a layer have the key?  The list of the open layer may be sorted for that. */
bool
bf_bloom_layer_contains(const bf_bloom *bloom, bf_bloom_layer *layer, uint64_t hash)
{
	if (layer->lines != NULL)
		return bf_lines_test(layer->lines, layer->size.shape, hash);
	return bf_accumulator_contains(bloom->header.host, &layer->list, hash);
}

bool
bf_bloom_layer_is_empty(bf_host host, const bf_bloom_layer *layer)
{
	return layer->lines == NULL ? layer->list.n == 0 :
		bf_bytes_are_zero(host, layer->lines, layer->size.shape.words * 8);
}

/* ----------------------------------------------------------------
 * Layers of a filter
 * ----------------------------------------------------------------
 */

/* Insert a layer at position `at`.  The filter owns its memory from then on. */
void
bf_bloom_insert_layer(bf_bloom *bloom, unsigned at, const bf_bloom_layer *layer)
{
	bf_bloom_layer added = *layer;

	bloom->layer = bf_reallocate(bloom->header.host, bloom->layer, sizeof(bf_bloom_layer) * bloom->layers,
								 sizeof(bf_bloom_layer) * (bloom->layers + 1));
	memmove(&bloom->layer[at + 1], &bloom->layer[at], sizeof(bf_bloom_layer) * (bloom->layers - at));
	bloom->layer[at] = added;
	bloom->layers++;
}

/* Remove a layer from the filter and free it. */
void
bf_bloom_remove_layer(bf_bloom *bloom, unsigned at)
{
	bf_bloom_free_layer(bloom, &bloom->layer[at]);
	bloom->layers--;
	memmove(&bloom->layer[at], &bloom->layer[at + 1], sizeof(bf_bloom_layer) * (bloom->layers - at));
}

/* ----------------------------------------------------------------
 * Merging
 * ----------------------------------------------------------------
 */

/* Make new lines with the contents of two layers of one shape. */
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
			bf_lines_add_many(host, lines, shape, part->list.hashes, (size_t) part->list.n);
	}
	*added = (bf_added) {bf_lines_bits_set(host, lines, shape.words), 0};
	return lines;
}

/* Merge two lists.  False, and nothing has changed, if the result is too long for a list. */
static bool
bloom_merge_lists(bf_bloom *bloom, bf_bloom_layer *layer, const bf_bloom_layer *other)
{
	bf_host		host = bloom->header.host;
	size_t		own = (size_t) layer->list.n;
	size_t		others = (size_t) other->list.n;
	bf_accumulator both;
	bool		fits;

	bf_accumulator_start(host, &both, own + others + 1);
	memcpy(both.hashes, layer->list.hashes, sizeof(uint64_t) * own);
	memcpy(both.hashes + own, other->list.hashes, sizeof(uint64_t) * others);
	both.n = own + others;
	bf_accumulator_sort(host, &both);
	fits = bf_bloom_may_be_list(bloom, layer, both.n);
	bf_accumulator_free(host, fits ? &layer->list : &both);
	if (fits)
		layer->list = both;
	return fits;
}

/*
 * Merge another layer of the same shape into one of the filter's, if the rule
 * allows it or `always` is true.  False, and nothing has changed, if not.
 */
bool
bf_bloom_merge_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_bloom_layer *other, bool always)
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
	if (both.bits > full_bits && both.bits != bf_bloom_layer_bits(host, layer) &&
		both.bits != bf_bloom_layer_bits(host, other))
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

/* Merge a layer into the first of n layers that the rule allows; false if none is. */
bool
bf_bloom_merge_into_any(bf_bloom *bloom, unsigned n, const bf_bloom_layer *other, bool always)
{
	for (unsigned i = 0; i < n; i++)
	{
		const bf_size *size = &bloom->layer[i].size;

		/* the first layer of a state keeps the capacity that was declared */
		if (bf_shape_equal(size->shape, other->size.shape) &&
			(!bloom->is_state || size->capacity == other->size.capacity) &&
			bf_bloom_merge_layer(bloom, &bloom->layer[i], other, always))
			return true;
	}
	return false;
}

/*
 * Merge two layers of one shape, full or not, to make room for another layer in a
 * filter that has BF_MAX_LAYERS.  False if no two have the same shape.
 */
bool
bf_bloom_join_layers(bf_bloom *bloom)
{
	for (unsigned i = 1; i < bloom->layers; i++)
	{
		if (bf_bloom_merge_into_any(bloom, i, &bloom->layer[i], true))
		{
			bf_bloom_remove_layer(bloom, i);
			return true;
		}
	}
	return false;
}
