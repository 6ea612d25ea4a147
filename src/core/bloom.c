/*
 * bloom.c
 *		The mutable Bloom filter: starting, loading, adding and testing keys.
 *
 * The filter is a scalable Bloom filter (Almeida, Baquero, Preguica and Hutchison,
 * "Scalable Bloom Filters", 2007): a chain of layers, each a blocked Bloom
 * filter; see growth.c and geometry.c.
 *
 * A layer begins as a list of hashes.  A key is appended to an array, unless a
 * small cache shows that it was appended recently; sorting the array gives the exact
 * number of distinct keys, from which an aggregate chooses the size of its filter.
 * This took less time and memory than a hash table, an oversized filter that is
 * folded at the end, or a chain of growing filters.
 *
 * The bytes of a filter of one layer depend on the set of keys alone.  So every
 * decision here (list or lines, exact or spilled, full or not) depends on the
 * exact number of distinct hashes or of bits set, never on the length of
 * an unsorted array.
 *
 * A procedural language may catch an error, such as a cancel, and continue to use the
 * filter.  So all operations that can fail (allocations, polls, limits) come before the
 * first visible change: a single key is added or not.  For many keys see mutable.c.
 *
 * This file uses bloom_layers.c; bloom_sets.c and bloom_write.c use both.
 */
#include "bloom.h"

/* The most sorts that are skipped after some that found few repetitions. */
#define MOST_SKIPPED	3

/* Lists shorter than this get no cache of recent hashes. */
#define RECENT_FROM		4096

/* Keys that are added without a poll when that must not fail: 30 ms. */
#define MOST_WITHOUT_POLL	(1024 * 1024)

/* ----------------------------------------------------------------
 * Starting and loading
 * ----------------------------------------------------------------
 */

/* Start a filter without layers, with room for some. */
static void
start_empty(bf_bloom *bloom, const bf_header *header, bf_host host, unsigned layers)
{
	memset(bloom, 0, sizeof(*bloom));
	bf_header_copy(&bloom->header, header, host);
	bloom->layer = bf_allocate_zero(host, sizeof(bf_bloom_layer) * (uint64_t) layers);
}

/* Start an empty filter.  The caller has checked the parameters. */
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
 * Give the state of an aggregate the capacity that was declared.  Keys that set a
 * bit in its first layer are counted.  These are never more than the distinct
 * keys, so the declared number of keys always fits, in any order.
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

/* Start the state of an aggregate.  Capacity 0 means that it is sized at the end. */
void
bf_bloom_start_state(bf_bloom *bloom, bf_host host, uint64_t capacity, double fpp)
{
	bf_bloom_start(bloom, host, (bf_size) {BF_UNSIZED, 0}, fpp);
	bloom->is_state = true;
	if (capacity > 0)
		size_state(bloom, capacity);
}

/*
 * Load a filter; its bytes are copied.  Bits are counted in the open layer only,
 * since only that one can become full: counting all layers took a third of the
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
		bloom->layer[0].list.sorted = 0;	/* see bf_bloom_describe_to_travel */
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

/* Replace the list of the open layer by lines, and free what helped to collect it. */
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
 * Replace the list of the open layer, which has become too long, by lines.  A list
 * that was kept because of list_bound can have more hashes than the layer's
 * capacity; the surplus goes into further layers.
 */
static void
bloom_list_to_lines(bf_bloom *bloom)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	bf_accumulator list = layer->list;
	uint64_t	fitting = list.n;
	bf_added	added;
	uint8_t    *lines;

	if (bloom->is_state && layer->keys_left != BF_UNCOUNTED && layer->keys_left < list.n)
		fitting = layer->keys_left;
	lines = bf_bloom_lines_of_list(bloom, layer, fitting, &added);
	layer->list.hashes = NULL;
	bloom_open_lines(bloom, layer, lines, added);
	bf_bloom_add_many(bloom, list.hashes + fitting, (size_t) (list.n - fitting));
	bf_accumulator_free(bloom->header.host, &list);
}

/*
 * Replace the list by lines if these prove that there are too many distinct hashes
 * for a list.  That saves sorting them.
 */
static bool
bloom_replace_list_by_proof(bf_bloom *bloom, bf_bloom_layer *layer)
{
	uint8_t    *lines;
	bf_added	added;

	if (layer->size.shape.words == 0 || layer->list.n <= bf_bloom_longest_list(bloom, layer) ||
		layer->list.n > layer->keys_left)	/* perhaps more than fit */
		return false;
	lines = bf_bloom_lines_of_list(bloom, layer, layer->list.n, &added);
	if (bf_bloom_may_be_list(bloom, layer, added.keys))
	{
		bf_release(bloom->header.host, lines);
		return false;
	}
	bloom_open_lines(bloom, layer, lines, added);
	return true;
}

/*
 * Make room in the open list, which is full: drop repetitions, enlarge it, or
 * replace it by lines.
 */
void
bf_bloom_make_room(bf_bloom *bloom)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	bf_accumulator *list = &layer->list;
	uint64_t	longest = bf_bloom_longest_list(bloom, layer);
	uint64_t	largest = bf_bloom_largest_room(bloom, layer);

	if (bloom_replace_list_by_proof(bloom, layer))
		return;

	/* after sorts that removed few repetitions, skip the next ones */
	if (bloom->skip_sorts > 0 && list->room < largest)
		bloom->skip_sorts--;
	else
	{
		uint64_t	n = list->n;

		bf_accumulator_sort(bloom->header.host, list);
		if (list->n <= n - n / 8)
			bloom->fruitless_sorts = 0;
		else if (bloom->fruitless_sorts < MOST_SKIPPED)
			bloom->fruitless_sorts++;
		bloom->skip_sorts = bloom->fruitless_sorts;
		if (!bf_bloom_may_be_list(bloom, layer, list->n))
		{
			bloom_list_to_lines(bloom);
			return;
		}
	}
	if (list->n >= list->room / 2 && list->room < largest)
	{
		uint64_t	room = list->room * 2;
		uint64_t	decisive = longest + longest / 32 + 10;

		/* stop a little past the longest list: lines may be due then */
		if (list->room < decisive && room > decisive)
			room = decisive;
		bf_accumulator_reserve(bloom->header.host, list, room < largest ? room : largest);
	}
	bf_assert(!bf_accumulator_is_full(list));
	if (bloom->recent == NULL && list->room >= RECENT_FROM)
	{
		/* each entry is initialized with a hash that belongs elsewhere */
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

/* Count the distinct keys among these that the filter does not report yet. */
static uint64_t
bloom_count_distinct_new(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	bf_host		host = bloom->header.host;
	bf_accumulator fresh;
	uint64_t	count;

	bf_accumulator_start(host, &fresh, n);
	for (size_t i = 0; i < n; i++)
	{
		if (!bf_bloom_contains(bloom, hashes[i]))
			bf_accumulator_add(&fresh, hashes[i]);
		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	bf_accumulator_sort(host, &fresh);
	count = fresh.n;
	bf_accumulator_free(host, &fresh);
	return count;
}

/* Choose the size of the layer that follows the open one, for at least `keys` keys. */
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
		return next;			/* it replaces another one */
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
 * Open the next layer: the open one is full and n more keys follow.  A window that
 * has max_layers drops its oldest layer.  The state of an aggregate that has
 * BF_MAX_LAYERS merges two of them, or if it cannot, keeps the open layer.
 *
 * Sizes are rounded to powers of two in the parts of one aggregate, so that their
 * layers can be merged.
 */
static void
bloom_open_next_layer(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	bool		window = bloom->header.max_layers > 0;
	bool		drop_oldest = window && bloom->layers == bloom->header.max_layers;
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
	if (drop_oldest)
		bf_bloom_remove_layer(bloom, 0);
}

/* Open a new layer of a window, which drops its oldest one if it has max_layers. */
void
bf_bloom_rotate(bf_bloom *bloom)
{
	bloom_open_next_layer(bloom, NULL, 1);
}

/* May a layer other than the open one have the key? */
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
 * Add the first of n keys.
 *
 * A filter that grows skips a key that any layer reports.  A window adds it unless
 * the newest layer reports it, because older layers are dropped sooner.
 */
static void
bloom_add_next(bf_bloom *bloom, const uint64_t *hashes, size_t n)
{
	uint64_t	hash = hashes[0];
	bf_bloom_layer *layer;

	if (bloom->header.max_layers == 0 && bloom_closed_layers_contain(bloom, hash))
		return;
	layer = bf_bloom_open_layer(bloom);
	/* a list that is replaced by lines may fill the next layer's list, too */
	while (layer->lines == NULL && bf_accumulator_is_full(&layer->list))
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
		bf_accumulator_add(&layer->list, hash);
}

/* Add one key to a filter of any number of layers. */
void
bf_bloom_add_layered(bf_bloom *bloom, uint64_t hash)
{
	bloom_add_next(bloom, &hash, 1);
}

/*
 * Add the keys that were batched.  If the layer may get full, they are added one
 * by one, and the next layer takes the rest.
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

/* Add many keys.  A new layer is made large enough for all that are left. */
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
 * Reserve memory so that adding n keys cannot fail.  False, and nothing has
 * changed, if that cannot be guaranteed.
 */
bool
bf_bloom_reserve(bf_bloom *bloom, size_t n)
{
	bf_bloom_layer *layer = bf_bloom_open_layer(bloom);
	uint64_t	largest = bf_bloom_largest_room(bloom, layer);
	uint64_t	needed = layer->list.n + n;
	uint64_t	room = layer->list.room * 2;

	if (n >= MOST_WITHOUT_POLL || bloom->batched > 0)
		return false;
	if (layer->lines != NULL)
		return bf_bloom_lines_take(layer, n);
	if (needed > largest)
		return false;
	if (needed > layer->list.room)
	{
		room = room < largest ? room : largest;
		bf_accumulator_reserve(bloom->header.host, &layer->list, room > needed ? room : needed);
	}
	return true;
}

/* ----------------------------------------------------------------
 * Testing
 * ----------------------------------------------------------------
 */

/* May the key have been added? */
bool
bf_bloom_contains(bf_bloom *bloom, uint64_t hash)
{
	if (bloom->batched > 0)
		bf_bloom_apply_batch(bloom);
	return bf_bloom_layer_contains(bloom, bf_bloom_open_layer(bloom), hash) || bloom_closed_layers_contain(bloom, hash);
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
 * Count the keys that would change the filter, and return the last of them in
 * *last.  In a window only the newest layer counts: see bloom_add_next.
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
 * Give the open layer the form that can be written: no keys are batched, and a
 * list is sorted and no longer than it may be.
 */
void
bf_bloom_order(bf_bloom *bloom)
{
	if (bloom->batched > 0)
		bf_bloom_apply_batch(bloom);

	/* keys that do not fit the lines open another layer, which is a list */
	while (bf_bloom_open_layer(bloom)->lines == NULL)
	{
		bf_bloom_layer *layer = bf_bloom_open_layer(bloom);

		if (bloom_replace_list_by_proof(bloom, layer))
			return;
		bf_accumulator_sort(bloom->header.host, &layer->list);
		if (bf_bloom_may_be_list(bloom, layer, layer->list.n))
			return;
		bloom_list_to_lines(bloom);
	}
}
