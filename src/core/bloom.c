/*
 * bloom.c
 *		The mutable Bloom filter: filling it, asking it, writing it.
 *
 * A layer begins as a list of hashes.  Adding is appending to an array, behind a
 * small cache that drops most repetitions; sorting it gives the exact number of
 * distinct keys, which an aggregate needs that is to find the size itself.  That
 * beat hash tables, filters made too large and folded, and chains of growing
 * filters, in time and memory.
 *
 * What a filter of one layer looks like depends on nothing but the set of keys,
 * so every decision here (list or lines, exact or spilled, full or not) is
 * taken on the exact number of distinct hashes or of bits set, never on what
 * happened to be in the array.
 *
 * A filter may be the variable of a procedural language that catches errors, a
 * cancel among them, and goes on with it.  So whatever can fail (allocations,
 * polls, limits) comes before the first change that can be observed: a single
 * key is added or not.  For many keys see mutable.c.
 */
#include "bloom.h"
#include "query.h"

/* The most sorts to leave out after some that found few repetitions. */
#define MOST_SKIPPED	3

/* Lists shorter than this get no cache of recent hashes. */
#define RECENT_FROM		4096

/* Hashes at the end of a list that may be out of order when it is searched. */
#define LONGEST_TAIL	1024

/* Keys that are added without a poll when an addition must not fail: 30 ms. */
#define MOST_WITHOUT_POLL	(1024 * 1024)

/* ----------------------------------------------------------------
 * Layers
 * ----------------------------------------------------------------
 */

/*
 * The longest list that a layer may be.  A list that is shorter than the lines
 * would be is kept; see bf_keep_list.  The bound is for the states of parallel
 * aggregates: lines cannot be refined once it turns out that there are more
 * keys than were declared, lists can.
 */
static uint64_t
longest_list(const bf_bloom *bloom, const bf_bloom_layer *layer)
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
 * sorting it pays, but no more than the keys that the layer is for.
 */
static uint64_t
largest_room(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	uint64_t	longest = longest_list(bloom, layer);
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

/*
 * The room at which it pays to look whether there are too many hashes for a
 * list: a little more than the longest list.
 */
static uint64_t
decisive_room(const bf_bloom *bloom, const bf_bloom_layer *layer)
{
	uint64_t	longest = longest_list(bloom, layer);
	uint64_t	room = longest + longest / 32 + 10;
	uint64_t	largest = largest_room(bloom, layer);

	return room < largest ? room : largest;
}

/* An empty list with room for more than `count` hashes. */
void
bf_bloom_start_list(const bf_bloom *bloom, bf_bloom_layer *layer, uint32_t count)
{
	uint64_t	least = largest_room(bloom, layer);

	least = least < 8 ? least : 8;
	layer->room = least > count ? (uint32_t) least : count + 1;
	layer->count = layer->sorted = 0;
	layer->hashes = bf_allocate(bloom->header.host, sizeof(uint64_t) * (uint64_t) layer->room);
	layer->lines = NULL;
	layer->bits_set = 0;
	layer->full_bits = bf_full_bits(bloom->header.growth, layer->size.shape, layer->size.capacity);
	layer->keys_left = BF_UNCOUNTED;
}

void
bf_bloom_free_layer(bf_bloom *bloom, bf_bloom_layer *layer)
{
	bf_release(bloom->header.host, layer->hashes);
	bf_release(bloom->header.host, layer->lines);
	layer->hashes = NULL;
	layer->lines = NULL;
}

/* Put another layer at position `at`.  The filter takes over its memory. */
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

/* Take a layer out of the filter, and free it. */
void
bf_bloom_remove_layer(bf_bloom *bloom, unsigned at)
{
	bf_bloom_free_layer(bloom, &bloom->layer[at]);
	bloom->layers--;
	memmove(&bloom->layer[at], &bloom->layer[at + 1], sizeof(bf_bloom_layer) * (bloom->layers - at));
}

/* ----------------------------------------------------------------
 * Beginning
 * ----------------------------------------------------------------
 */

/* A filter without layers, with room for some. */
static void
start_empty(bf_bloom *bloom, const bf_header *header, bf_host host, unsigned layers)
{
	memset(bloom, 0, sizeof(*bloom));
	bf_header_copy(&bloom->header, header, host);
	bloom->layer = bf_allocate_zero(host, sizeof(bf_bloom_layer) * (uint64_t) layers);
}

/* Begin an empty filter.  Parameters were checked by the caller. */
void
bf_bloom_start(bf_bloom *bloom, bf_host host, bf_size size, double fpp)
{
	bf_header	header = {.kind = BF_KIND_BLOOM, .growth = BF_DEFAULT_GROWTH, .fpp = fpp};

	start_empty(bloom, &header, host, 1);
	bloom->layer[0].size = size;
	bf_bloom_start_list(bloom, &bloom->layer[0], 0);
	bloom->layers = 1;
}

/*
 * Give the state of an aggregate the capacity that was declared.  The keys that
 * change its first layer are counted: no more than there are distinct ones, so
 * that as many as were declared always fit, in any order.
 */
static void
size_state(bf_bloom *bloom, uint64_t capacity)
{
	bf_bloom_layer *layer = &bloom->layer[0];
	bf_shape	shape = bf_shape_for(capacity, bloom->header.fpp);

	if (shape.words * 8 + 2 * BF_LINE_BYTES > BF_MAX_BYTES)
		bf_fail(bloom->header.host, BF_FAIL_BYTES, shape.words * 8 + 2 * BF_LINE_BYTES, NULL);
	layer->size = (bf_size) {shape, capacity};
	layer->full_bits = bf_full_bits(bloom->header.growth, shape, capacity);
	layer->keys_left = capacity;
}

/* Begin the state of an aggregate.  Capacity 0: size it at the end. */
void
bf_bloom_start_state(bf_bloom *bloom, bf_host host, uint64_t capacity, double fpp)
{
	bf_bloom_start(bloom, host, (bf_size) {BF_UNSIZED, 0}, fpp);
	bloom->is_state = true;
	if (capacity > 0)
		size_state(bloom, capacity);
}

/* Count the bits of a layer that was loaded, unless that was done. */
void
bf_bloom_count_bits(const bf_bloom *bloom, bf_bloom_layer *layer)
{
	if (layer->bits_set == BF_UNCOUNTED)
		layer->bits_set = bf_lines_bits_set(bloom->header.host, layer->lines, layer->size.shape.words);
}

/* A copy of a layer that is somewhere as bytes.  Its bits are not counted. */
void
bf_bloom_load_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_layer *from)
{
	bf_host		host = bloom->header.host;

	layer->size = (bf_size) {from->shape, from->capacity};
	if (from->form == BF_FORM_LINES)
	{
		uint8_t    *lines = bf_allocate(host, from->shape.words * 8);

		memcpy(lines, from->data, (size_t) from->shape.words * 8);
		layer->hashes = NULL;
		layer->room = layer->count = layer->sorted = 0;
		layer->keys_left = BF_UNCOUNTED;
		bf_bloom_install_lines(bloom, layer, lines, (bf_added) {0, 0});
		if (layer->full_bits != UINT64_MAX)
			layer->bits_set = BF_UNCOUNTED;
	}
	else
	{
		bf_bloom_start_list(bloom, layer, from->count);
		bf_list_read(layer->hashes, from->data, from->count);
		layer->count = layer->sorted = from->count;
	}
}

/*
 * Continue a filter that exists, without reference to it later.  Only the open
 * layer has to know whether it is full: counting all of them was a third of the
 * time of adding a key to a filter that has grown.
 */
void
bf_bloom_load(bf_bloom *bloom, bf_host host, const bf_filter *filter)
{
	const bf_layer *first = &filter->layer[0];

	start_empty(bloom, &filter->header, host, filter->layers);
	bloom->is_state = bf_filter_is_unfinished(filter);
	for (; bloom->layers < filter->layers; bloom->layers++)
		bf_bloom_load_layer(bloom, &bloom->layer[bloom->layers], &filter->layer[bloom->layers]);
	bf_bloom_count_bits(bloom, bf_bloom_open_layer(bloom));
	if (first->shape.words == 0)
		bloom->layer[0].sorted = 0; /* see bf_bloom_describe_to_travel */
	if (first->shape.words == 0 && first->capacity > 0)
		size_state(bloom, first->capacity);
}

void
bf_bloom_free(bf_bloom *bloom)
{
	bf_host		host = bloom->header.host;

	for (unsigned i = 0; i < bloom->layers; i++)
		bf_bloom_free_layer(bloom, &bloom->layer[i]);
	bf_release(host, bloom->layer);
	bf_release(host, bloom->recent);
	bf_release(host, (void *) bloom->header.class.name);
	memset(bloom, 0, sizeof(*bloom));
}

/* ----------------------------------------------------------------
 * From a list to lines
 * ----------------------------------------------------------------
 */

/* The shape past the bound of exact sizing: as large as is allowed there. */
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

/* Lines with the first n hashes of a layer's list. */
uint8_t *
bf_bloom_lines_of_list(const bf_bloom *bloom, const bf_bloom_layer *layer, size_t n, bf_added *added)
{
	bf_host		host = bloom->header.host;
	bf_shape	shape = lines_shape(bloom, layer);
	uint8_t    *lines = bf_allocate_zero(host, shape.words * 8);

	*added = bf_lines_add_many(host, lines, shape, layer->hashes, n);
	return lines;
}

/* Make these the contents of a layer, instead of its list. */
void
bf_bloom_install_lines(bf_bloom *bloom, bf_bloom_layer *layer, uint8_t *lines, bf_added added)
{
	layer->size.shape = lines_shape(bloom, layer);
	bf_release(bloom->header.host, layer->hashes);
	layer->hashes = NULL;
	layer->room = layer->count = layer->sorted = 0;
	layer->lines = lines;
	layer->bits_set = 0;
	layer->full_bits = bf_full_bits(bloom->header.growth, layer->size.shape, layer->size.capacity);
	bf_bloom_count_added(layer, added);
}

/* The same in the open layer: what helps to gather a list has had its time. */
static void
bloom_open_lines(bf_bloom *bloom, bf_bloom_layer *layer, uint8_t *lines, bf_added added)
{
	bf_bloom_install_lines(bloom, layer, lines, added);
	bf_release(bloom->header.host, bloom->recent);
	bloom->recent = NULL;
	bloom->is_part |= bloom->list_bound > 0;
	bloom->list_bound = 0;
}

/*
 * The list of the open layer has become too long: go over to lines.  Only a list
 * that list_bound has kept can have more hashes than the layer is made for; the
 * others go into further layers then.
 */
static void
bloom_list_to_lines(bf_bloom *bloom)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	bf_host		host = bloom->header.host;
	uint64_t   *hashes = layer->hashes;
	uint32_t	count = layer->count;
	uint32_t	fitting = count;
	bf_added	added;
	uint8_t    *lines;

	if (bloom->is_state && layer->keys_left != BF_UNCOUNTED && layer->keys_left < count)
		fitting = (uint32_t) layer->keys_left;
	lines = bf_bloom_lines_of_list(bloom, layer, fitting, &added);
	layer->hashes = NULL;
	bloom_open_lines(bloom, layer, lines, added);
	bf_bloom_add_many(bloom, hashes + fitting, count - fitting);
	bf_release(host, hashes);
}

/* Bring a list into order and drop repetitions. */
void
bf_bloom_sort_list(const bf_bloom *bloom, bf_bloom_layer *layer)
{
	uint32_t	sorted = layer->sorted;

	layer->sorted = 0;			/* in no order, should the sort be cancelled */
	layer->count = layer->sorted =
		(uint32_t) bf_hashes_sort_unique(bloom->header.host, layer->hashes, layer->count, sorted);
}

/* Enlarge a list; its contents stay. */
static void
enlarge_list(bf_bloom *bloom, bf_bloom_layer *layer, uint64_t room)
{
	layer->hashes = bf_reallocate(bloom->header.host, layer->hashes, sizeof(uint64_t) * (uint64_t) layer->room,
								  sizeof(uint64_t) * room);
	layer->room = (uint32_t) room;
}

/*
 * Go over to lines if these show that there are too many distinct hashes for a
 * list: then the hashes need not be sorted.
 */
static bool
bloom_replace_list_by_proof(bf_bloom *bloom, bf_bloom_layer *layer)
{
	uint8_t    *lines;
	bf_added	added;

	if (layer->size.shape.words == 0 || layer->count <= longest_list(bloom, layer) ||
		layer->count > layer->keys_left)	/* perhaps more than it is made
											 * for */
		return false;
	lines = bf_bloom_lines_of_list(bloom, layer, layer->count, &added);
	if (bf_bloom_may_be_list(bloom, layer, added.keys))
	{
		bf_release(bloom->header.host, lines);
		return false;
	}
	bloom_open_lines(bloom, layer, lines, added);
	return true;
}

/* The open list is full: find repetitions, or grow, or go over to lines. */
void
bf_bloom_make_room(bf_bloom *bloom)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	uint64_t	largest = largest_room(bloom, layer);
	uint64_t	decisive = decisive_room(bloom, layer);

	if (bloom_replace_list_by_proof(bloom, layer))
		return;

	/* after sorts that removed few repetitions, skip the next ones */
	if (bloom->skip_sorts > 0 && layer->room < largest)
		bloom->skip_sorts--;
	else
	{
		uint32_t	count = layer->count;

		bf_bloom_sort_list(bloom, layer);
		if (layer->count <= count - count / 8)
			bloom->fruitless_sorts = 0;
		else if (bloom->fruitless_sorts < MOST_SKIPPED)
			bloom->fruitless_sorts++;
		bloom->skip_sorts = bloom->fruitless_sorts;
		if (!bf_bloom_may_be_list(bloom, layer, layer->count))
		{
			bloom_list_to_lines(bloom);
			return;
		}
	}
	if (layer->count >= layer->room / 2 && layer->room < largest)
	{
		uint64_t	room = (uint64_t) layer->room * 2;

		if (layer->room < decisive && room > decisive)
			room = decisive;
		enlarge_list(bloom, layer, room < largest ? room : largest);
	}
	bf_assert(layer->count < layer->room);
	if (bloom->recent == NULL && layer->room >= RECENT_FROM)
	{
		/* every entry begins as a hash that does not belong there */
		bloom->recent = bf_allocate(bloom->header.host, sizeof(uint64_t) << BF_RECENT_BITS);
		for (uint64_t i = 0; i < (1 << BF_RECENT_BITS); i++)
			bloom->recent[i] = ~i << (64 - BF_RECENT_BITS);
	}
}

/* ----------------------------------------------------------------
 * Adding
 * ----------------------------------------------------------------
 */

static inline bool
is_full(const bf_bloom_layer *layer)
{
	bf_assert(layer->bits_set != BF_UNCOUNTED);
	return layer->bits_set >= layer->full_bits || layer->keys_left == 0;
}

/* How many of these keys are distinct and not in the filter yet? */
static uint64_t
bloom_count_distinct_new(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	bf_host		host = bloom->header.host;
	uint64_t   *fresh = bf_allocate(host, sizeof(uint64_t) * (uint64_t) n);
	size_t		count = 0;

	for (size_t i = 0; i < n; i++)
	{
		if (!bf_bloom_contains(bloom, hashes[i]))
			fresh[count++] = hashes[i];
		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	count = bf_hashes_sort_unique(host, fresh, count, 0);
	bf_release(host, fresh);
	return count;
}

/* The size of the layer to follow the open one, for at least `keys` keys. */
static bf_size
next_size(const bf_bloom *bloom, uint64_t keys)
{
	bf_size		next;
	double		first = bf_shape_fpp(bloom->layer[0].size.shape, bloom->layer[0].size.capacity);
	double		used = first;
	uint64_t	bytes = BF_LINE_BYTES * 2;

	for (unsigned i = 1; i < bloom->layers; i++)
		used += bf_shape_fpp(bloom->layer[i].size.shape, bloom->layer[i].size.capacity);
	next = bf_next_size(&bloom->header, bloom->layer[bloom->layers - 1].size, used, first, keys);

	/* would the filter still be of a legal size? */
	if (bloom->layers == bloom->header.max_layers)
		return next;			/* in the place of another one */
	bytes += next.shape.words * 8;
	for (unsigned i = 0; i < bloom->layers; i++)
		bytes += bloom->layer[i].size.shape.words * 8 + BF_LINE_BYTES;
	if (bytes > BF_MAX_BYTES)
		bf_fail(bloom->header.host, BF_FAIL_GROWTH, bytes, NULL);
	if (bloom->layers == BF_MAX_LAYERS)
		bf_fail(bloom->header.host, BF_FAIL_LAYERS, BF_MAX_LAYERS + 1, NULL);
	return next;
}

/*
 * The open layer is full and n keys are coming: open the next.  A window of
 * layers forgets its oldest when it has as many as it may.  The state of an
 * aggregate joins two others then, or stays with what it has.
 *
 * Parts of one aggregate have layers of few sizes, so that they can be joined.
 */
static void
bloom_open_next_layer(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	bool		window = bloom->header.max_layers > 0;
	bool		forget = window && bloom->layers == bloom->header.max_layers;
	uint64_t	expected = n > 1 && !window ? bloom_count_distinct_new(bloom, hashes, n) : 1;
	bf_bloom_layer next;

	if (bloom->is_state && bloom->layers == BF_MAX_LAYERS && !bf_bloom_join_layers(bloom))
		return;
	for (uint64_t rounded = 1; bloom->is_part && expected > 1; rounded *= 2)
	{
		if (rounded >= expected)
		{
			expected = rounded;
			break;
		}
	}
	next.size = next_size(bloom, expected);
	bf_bloom_start_list(bloom, &next, 0);
	bf_bloom_insert_layer(bloom, bloom->layers, &next);
	/* nothing fails from here on */
	if (forget)
		bf_bloom_remove_layer(bloom, 0);
}

/* Is the key in a layer?  The unsorted tail of an open list is looked through. */
bool
bf_bloom_layer_contains(const bf_bloom *bloom, bf_bloom_layer *layer, uint64_t hash)
{
	if (layer->lines != NULL)
		return bf_lines_test(layer->lines, layer->size.shape, hash);
	if (layer->count - layer->sorted > LONGEST_TAIL)
		bf_bloom_sort_list(bloom, layer);
	for (uint32_t i = layer->sorted; i < layer->count; i++)
	{
		if (layer->hashes[i] == hash)
			return true;
	}
	return bf_hashes_find(layer->hashes, layer->sorted, hash) < layer->sorted;
}

/* Is the key in a layer that is not the open one? */
static bool
bloom_closed_layers_contain(const bf_bloom *bloom, uint64_t hash)
{
	for (unsigned i = 0; i + 1 < bloom->layers; i++)
	{
		if (bf_bloom_layer_contains(bloom, &bloom->layer[i], hash))
			return true;
	}
	return false;
}

/*
 * Add the first of n keys that are coming.
 *
 * A filter that grows skips a key that any layer has.  A window adds it to the
 * newest layer, wherever else it may be: the older one will be forgotten.
 */
static void
bloom_add_next(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	uint64_t	hash = hashes[0];
	bf_bloom_layer *layer;

	if (bloom->header.max_layers == 0 && bloom_closed_layers_contain(bloom, hash))
		return;
	layer = bf_bloom_open_layer(bloom);
	/* a list that goes over to lines may fill another one with what is left */
	while (layer->lines == NULL && layer->count == layer->room)
	{
		bf_bloom_make_room(bloom);
		layer = bf_bloom_open_layer(bloom);
	}
	if (layer->lines != NULL && is_full(layer))
	{
		if (bf_lines_test(layer->lines, layer->size.shape, hash))
			return;
		bloom_open_next_layer(bloom, hashes, n);
		layer = bf_bloom_open_layer(bloom);
	}
	if (layer->lines != NULL)
	{
		unsigned	fresh = bf_lines_add(layer->lines, layer->size.shape, hash);

		bf_bloom_count_added(layer, (bf_added) {fresh, fresh > 0});
	}
	else
	{
		bf_assert(layer->count < layer->room);
		layer->hashes[layer->count++] = hash;
	}
}

/* Add one key to a filter of any number of layers. */
void
bf_bloom_add_layered(bf_bloom *bloom, uint64_t hash)
{
	bloom_add_next(bloom, &hash, 1);
}

/*
 * Apply the keys that wait to be many.  Should the layer get full on the way,
 * the others of them go where bloom_add_next says.
 */
void
bf_bloom_apply_batch(bf_bloom *bloom)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	uint32_t	n = bloom->batched;
	uint64_t	batch[BF_BATCH];

	bloom->batched = 0;
	if (bf_likely(bf_bloom_lines_take(layer, n)))
	{
		bf_bloom_add_to_lines(bloom, layer, bloom->batch, n);
		return;
	}
	memcpy(batch, bloom->batch, sizeof(uint64_t) * n);
	for (uint32_t i = 0; i < n; i++)
		bf_bloom_add_layered(bloom, batch[i]);
}

/*
 * Add many keys.  As all of them are known, a new layer is made large enough
 * for those that are still to come.
 */
void
bf_bloom_add_many(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		const bf_bloom_layer *layer = bf_bloom_open_layer(bloom);

		if (layer->lines != NULL && i + BF_BATCH < n)
			bf_lines_prefetch(layer->lines, layer->size.shape, hashes[i + BF_BATCH]);
		bloom_add_next(bloom, hashes + i, n - i);
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(bloom->header.host);
	}
}

/*
 * Make sure that n keys can be added without anything that could fail on the
 * way.  False if that cannot be promised; then nothing has changed.
 */
bool
bf_bloom_reserve(bf_bloom *bloom, size_t n)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	uint64_t	largest = largest_room(bloom, layer);
	uint64_t	needed = layer->count + (uint64_t) n;
	uint64_t	room = (uint64_t) layer->room * 2;

	if (n >= MOST_WITHOUT_POLL || bloom->batched > 0)
		return false;
	if (layer->lines != NULL)
		return bf_bloom_lines_take(layer, n);
	if (needed > largest)
		return false;
	if (needed > layer->room)
	{
		room = room < largest ? room : largest;
		enlarge_list(bloom, layer, room > needed ? room : needed);
	}
	return true;
}

/* ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* May the filter hold the key? */
bool
bf_bloom_contains(bf_bloom *bloom, uint64_t hash)
{
	if (bloom->batched > 0)
		bf_bloom_apply_batch(bloom);
	return bf_bloom_layer_contains(bloom, bf_bloom_open_layer(bloom), hash) || bloom_closed_layers_contain(bloom, hash);
}

bool
bf_bloom_layer_is_empty(bf_host host, const bf_bloom_layer *layer)
{
	return layer->lines == NULL ? layer->count == 0 :
		bf_bytes_are_zero(host, layer->lines, layer->size.shape.words * 8);
}

bool
bf_bloom_is_empty(const bf_bloom *bloom)
{
	for (unsigned i = 0; i < bloom->layers; i++)
	{
		if (!bf_bloom_layer_is_empty(bloom->header.host, &bloom->layer[i]))
			return false;
	}
	return bloom->batched == 0;
}

/*
 * How many of these keys would change the filter?  The last of those is
 * returned, too.  In a window only the newest layer counts: see bloom_add_next.
 */
size_t
bf_bloom_count_new(bf_bloom *bloom, const uint64_t *hashes, size_t n, uint64_t *last)
{
	size_t		new_keys = 0;

	for (size_t i = 0; i < n; i++)
	{
		if (!bf_bloom_layer_contains(bloom, bf_bloom_open_layer(bloom), hashes[i]) &&
			(bloom->header.max_layers > 0 || !bloom_closed_layers_contain(bloom, hashes[i])))
		{
			*last = hashes[i];
			new_keys++;
		}
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(bloom->header.host);
	}
	return new_keys;
}

/*
 * Give the open layer the form that can be written, and that any other layer
 * has: nothing waits, and a list is sorted and no longer than it may be.
 */
void
bf_bloom_order(bf_bloom *bloom)
{
	if (bloom->batched > 0)
		bf_bloom_apply_batch(bloom);

	/* what does not fit the lines may open another layer, as a list */
	while (bf_bloom_open_layer(bloom)->lines == NULL)
	{
		bf_bloom_layer *layer = bf_bloom_open_layer(bloom);

		if (bloom_replace_list_by_proof(bloom, layer))
			return;
		bf_bloom_sort_list(bloom, layer);
		if (bf_bloom_may_be_list(bloom, layer, layer->count))
			return;
		bloom_list_to_lines(bloom);
	}
}
