/*
 * bloom_build.c
 *		A bloom filter that is being filled, in memory.
 *
 * The same builder serves every way to make a filter: adding keys to one,
 * aggregates with a declared capacity, and aggregates that find the capacity
 * themselves by collecting the hashes first.  Collecting is appending to an
 * array, behind a small cache that drops most repetitions; sorting it at the
 * end gives the exact number of distinct keys.  That beat hash tables, filters
 * made too large and folded, and chains of growing filters, in time and memory.
 *
 * What a filter of one layer looks like depends on nothing but the set of keys,
 * so every decision here (list or lines, exact or spilled, full or not) is
 * taken on the exact number of distinct hashes or of bits set, never on what
 * happened to be in the array.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "build.h"
#include "memory.h"

/* After sorts in vain, a list may double so many times without another. */
#define MOST_SKIPPED	3

/* Lists shorter than this get no cache of recent hashes. */
#define RECENT_FROM		4096

static inline bf_layer *
open_layer(BloomBuilder *builder)
{
	return &builder->base.frame->layer[builder->base.frame->layers - 1];
}

/* Bytes of a layer's contents, without the count of a list. */
static Size
content_bytes(const bf_layer *layer)
{
	return (Size) (layer->form == BF_FORM_LIST ? (uint64) layer->count * 8 : layer->shape.words * 8);
}

/*
 * The largest room for the list of a layer: enough beyond the longest list there
 * may be that sorting it is worth the while, but no more than the keys that the
 * layer is for.
 */
static uint64
largest_room(const bf_layer *layer)
{
	uint64		words = layer->shape.words;

	if (words == 0)
		return BLOOM_LIST_ROOM;
	return Min(Max(words, words < 16 ? 0 : Min(words * 2, layer->capacity)), BLOOM_LIST_ROOM);
}

/*
 * With so many hashes it is worth the while to look whether there are too many
 * for a list: a little more than the longest list.
 */
static uint64
decisive_room(const bf_layer *layer)
{
	uint64		words = Min(layer->shape.words, BF_MAX_LIST);

	return Min(words + words / 32 + 8, largest_room(layer));
}

/* A list for the open layer, with room for more than `count` hashes. */
static void
allocate_hashes(BloomBuilder *builder, uint32 count)
{
	builder->room = (uint32) Max(Min(8, largest_room(open_layer(builder))), (uint64) count + 1);
	builder->count = builder->sorted = 0;
	builder->hashes = MemoryContextAlloc(builder->base.context, sizeof(uint64) * builder->room);
}

/*
 * Begin an empty filter.  Capacity 0 and a shape of no words: size it at the
 * end.  Parameters were checked by the caller.
 */
void
bloom_build_start(BloomBuilder *builder, MemoryContext context, bf_shape shape, uint64 capacity, double fpp)
{
	bf_layer   *layer;

	memset(builder, 0, sizeof(BloomBuilder));
	build_frame(&builder->base, &bloom_methods, context, fpp);
	layer = open_layer(builder);
	layer->form = BF_FORM_LIST;
	layer->capacity = capacity;
	layer->shape = shape;
	builder->keys_left = BLOOM_UNCOUNTED;
	allocate_hashes(builder, 0);
}

/* The same for an aggregate. */
static void
bloom_build_start_aggregate(FilterBuilder *base, MemoryContext context, uint64 capacity, double fpp)
{
	BloomBuilder *builder = (BloomBuilder *) base;

	bloom_build_start(builder, context, capacity > 0 ? filter_shape((int64) capacity, fpp) : BF_UNSIZED,
					  capacity, fpp);
	if (capacity > 0)
		builder->keys_left = capacity;
}

/* ----------------------------------------------------------------
 * The open layer: list or lines
 * ----------------------------------------------------------------
 */

/*
 * A builder may be the variable of a PL/pgSQL function that catches errors, a
 * cancel among them, and goes on with it.  So whatever can fail (allocations,
 * polls, limits) comes before the first change, here and below.
 */

/* Make these the lines of the open layer. */
static void
install_lines(BloomBuilder *builder, uint8 *lines, bf_shape shape)
{
	bf_layer   *layer = open_layer(builder);
	uint64	   *batch = MemoryContextAlloc(builder->base.context, sizeof(uint64) * BF_BATCH);

	layer->form = BF_FORM_LINES;
	layer->shape = shape;
	builder->lines = lines;
	builder->batch = batch;
	builder->batched = 0;
	builder->bits_set = 0;
	builder->full_bits = bf_full_bits(builder->base.frame, layer);
}

static void
drop_list(BloomBuilder *builder)
{
	if (builder->hashes != NULL)
		pfree(builder->hashes);
	if (builder->recent != NULL)
		pfree(builder->recent);
	builder->hashes = builder->recent = NULL;
	builder->count = builder->sorted = builder->room = 0;
}

/* The shape past the bound of exact sizing: as large as is allowed there. */
static bf_shape
spill_shape(double fpp)
{
	bf_shape	shape = bf_shape_for(BF_MAX_LIST, fpp);

	shape.words = (uint64) BLOOM_SPILL_LINES * BF_LINE_WORDS;
	return shape;
}

/*
 * An aggregate with a declared capacity counts the keys that changed its first
 * layer: no more than there are distinct ones, so that as many as were declared
 * always fit, in any order.  What comes from a table has no such count, and
 * tells by its bits when it is full.
 */
static inline bool
is_full(const BloomBuilder *builder)
{
	return builder->bits_set >= builder->full_bits || builder->keys_left == 0;
}

/* Note what keys have changed in the lines of the open layer. */
static inline void
count_added(BloomBuilder *builder, bf_added added)
{
	builder->bits_set += added.bits;
	bloom_count_keys(&builder->keys_left, added.keys);
}

/* Lines with the keys of the list. */
typedef struct Lines
{
	uint8	   *data;
	bf_shape	shape;
	bf_added	added;
} Lines;

static Lines
lines_of_list(BloomBuilder *builder)
{
	bf_shape	shape = open_layer(builder)->shape;
	Lines		lines = {NULL, shape.words > 0 ? shape : spill_shape(builder->base.frame->fpp), {0, 0}};

	lines.data = memory_alloc_zero(builder->base.context, (Size) lines.shape.words * 8);
	lines.added = bf_lines_add_many(lines.data, lines.shape, builder->hashes, builder->count);
	return lines;
}

/* Go over from a list to lines. */
static void
replace_list(BloomBuilder *builder, const Lines *lines)
{
	install_lines(builder, lines->data, lines->shape);
	count_added(builder, lines->added);
	drop_list(builder);
}

static void
list_to_lines(BloomBuilder *builder)
{
	Lines		lines = lines_of_list(builder);

	replace_list(builder, &lines);
}

/* Bring the list into order and drop repetitions. */
static void
settle_list(BloomBuilder *builder)
{
	uint32		sorted = builder->sorted;

	builder->sorted = 0;		/* in no order, should the sort be cancelled */
	builder->count = builder->sorted =
		(uint32) bf_hashes_sort_unique(builder->hashes, builder->count, sorted);
}

/*
 * The list is full: find repetitions, or grow, or go over to lines.
 */
void
bloom_build_make_room(BloomBuilder *builder)
{
	bf_layer   *layer = open_layer(builder);
	uint64		largest = largest_room(layer);

	if (layer->shape.words > 0 && builder->room >= decisive_room(layer))
	{
		/* the lines may prove that there are too many, without sorting */
		Lines		lines = lines_of_list(builder);

		if (!bf_keep_list(layer->shape, lines.added.keys))
		{
			replace_list(builder, &lines);
			return;
		}
		memory_free(lines.data);
	}

	/* where sorts were for nothing, do without the next ones */
	if (builder->skip_sorts > 0 && builder->room < largest)
		builder->skip_sorts--;
	else
	{
		uint32		count = builder->count;

		settle_list(builder);
		builder->vain_sorts = builder->count > count - count / 8 ? Min(builder->vain_sorts + 1, MOST_SKIPPED) : 0;
		builder->skip_sorts = builder->vain_sorts;
		if (!bf_keep_list(layer->shape, builder->count))
		{
			list_to_lines(builder);
			return;
		}
	}
	if (builder->count >= builder->room / 2 && builder->room < largest)
	{
		uint64		room = Min((uint64) builder->room * 2, largest);

		if (layer->shape.words > 0 && builder->room < decisive_room(layer))
			room = Min(room, decisive_room(layer));
		builder->hashes = repalloc(builder->hashes, sizeof(uint64) * room);
		builder->room = (uint32) room;
		memory_advise(builder->hashes, sizeof(uint64) * room);
	}
	Assert(builder->count < builder->room);
	if (builder->recent == NULL && builder->room >= RECENT_FROM)
	{
		/* every entry begins as a hash that does not belong there */
		builder->recent = MemoryContextAlloc(builder->base.context, sizeof(uint64) << BLOOM_RECENT_BITS);
		for (uint64 i = 0; i < (1 << BLOOM_RECENT_BITS); i++)
			builder->recent[i] = ~i << (64 - BLOOM_RECENT_BITS);
	}
}

/* Continue a filter that exists. */
static void
bloom_build_load(FilterBuilder *base, MemoryContext context, const bf_filter *filter)
{
	BloomBuilder *builder = (BloomBuilder *) base;
	bf_filter  *frame;
	bf_layer   *layer;

	memset(builder, 0, sizeof(BloomBuilder));
	build_copy_frame(base, &bloom_methods, context, filter);
	builder->keys_left = BLOOM_UNCOUNTED;
	frame = base->frame;

	for (int i = 0; i < frame->layers - 1; i++)
	{
		frame->layer[i].data = memory_alloc(context, content_bytes(&frame->layer[i]));
		memcpy(frame->layer[i].data, filter->layer[i].data, content_bytes(&frame->layer[i]));
	}

	layer = open_layer(builder);
	if (layer->form == BF_FORM_LINES)
	{
		uint8	   *lines = memory_alloc(context, content_bytes(layer));

		memcpy(lines, layer->data, content_bytes(layer));
		install_lines(builder, lines, layer->shape);
		if (builder->full_bits != UINT64_MAX)
			builder->bits_set = bf_lines_bits_set(lines, layer->shape.words);
	}
	else
	{
		allocate_hashes(builder, layer->count);
		bf_list_read(builder->hashes, layer->data, layer->count);
		builder->count = builder->sorted = layer->count;
	}
	layer->data = NULL;
}

/* ----------------------------------------------------------------
 * Layers
 * ----------------------------------------------------------------
 */

/* Make sure that there is memory for another layer, and that there may be one. */
static void
prepare_layer(BloomBuilder *builder)
{
	if (builder->base.frame->layers == BF_MAX_LAYERS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter would need %d layers", BF_MAX_LAYERS + 1),
				 errdetail("A filter can have at most %d layers.", BF_MAX_LAYERS),
				 errhint("Make a filter with a larger capacity or growth, and add the keys to that.")));
	builder->base.frame = repalloc(builder->base.frame, frame_size(builder->base.frame->layers + 1));
}

/* Then put it at position `at`. */
static void
insert_layer(bf_filter *frame, int at, const bf_layer *layer)
{
	memmove(&frame->layer[at + 1], &frame->layer[at], sizeof(bf_layer) * (frame->layers - at));
	frame->layers++;
	frame->layer[at] = *layer;
}

/* Would the filter still be of a legal size with one more layer? */
static void
check_growth(const bf_filter *filter, const bf_layer *next)
{
	uint64		bytes = BF_LINE_BYTES * 2 + next->shape.words * 8;

	for (int i = 0; i < filter->layers; i++)
		bytes += filter->layer[i].shape.words * 8 + BF_LINE_BYTES;
	if (bytes > BF_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter is full, and would need " UINT64_FORMAT " bytes to grow", bytes),
				 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
				 errhint("Accept a higher false-positive probability, or split the keys over several filters.")));
}

/* Keys on their way into a builder, of which the first is next. */
typedef struct Coming
{
	const uint64 *hashes;
	Size		n;
} Coming;

static bool bloom_build_contains(FilterBuilder *base, uint64 hash);

/* How many of them are distinct and not in the filter yet? */
static uint64
count_new(BloomBuilder *builder, const Coming *coming)
{
	uint64	   *hashes = palloc_extended(sizeof(uint64) * coming->n, MCXT_ALLOC_HUGE);
	Size		n = 0;

	for (Size i = 0; i < coming->n; i++)
	{
		if (!bloom_build_contains(&builder->base, coming->hashes[i]))
			hashes[n++] = coming->hashes[i];
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	n = bf_hashes_sort_unique(hashes, n, 0);
	pfree(hashes);
	return n;
}

/*
 * The open layer is full and there are new keys: seal it and open the next.  A
 * window of layers forgets its oldest when it has as many as it may.
 */
static void
open_next_layer(BloomBuilder *builder, const Coming *coming)
{
	bool		window = builder->base.frame->max_layers > 0;
	bool		forget = window && builder->base.frame->layers == builder->base.frame->max_layers;
	uint64		expected = coming->n > 1 && !window ? count_new(builder, coming) : 1;
	bf_filter  *frame;
	bf_layer	next;
	uint64	   *hashes;
	uint32		room;

	bf_next_layer(builder->base.frame, expected, &next);
	if (!forget)
	{
		check_growth(builder->base.frame, &next);
		prepare_layer(builder);
	}
	room = (uint32) Min(8, largest_room(&next));
	hashes = MemoryContextAlloc(builder->base.context, sizeof(uint64) * room);

	/* nothing fails from here on */
	frame = builder->base.frame;
	open_layer(builder)->data = builder->lines;
	pfree(builder->batch);
	builder->lines = NULL;
	builder->batch = NULL;
	builder->keys_left = BLOOM_UNCOUNTED;
	if (forget)
	{
		memory_free(frame->layer[0].data);
		frame->layers--;
		memmove(&frame->layer[0], &frame->layer[1], sizeof(bf_layer) * frame->layers);
	}
	insert_layer(frame, frame->layers, &next);
	builder->hashes = hashes;
	builder->room = room;
	builder->count = builder->sorted = 0;
}

/* Is the key in a layer that is sealed? */
static bool
sealed_contain(BloomBuilder *builder, uint64 hash)
{
	for (int i = 0; i < builder->base.frame->layers - 1; i++)
	{
		if (bf_layer_contains(&builder->base.frame->layer[i], hash))
			return true;
	}
	return false;
}

/*
 * Add the first of the keys that are coming.
 *
 * A filter that grows skips a key that any layer has.  A window adds it to the
 * newest layer, wherever else it may be: the older one will be forgotten.
 */
static void
add_next(BloomBuilder *builder, const Coming *coming)
{
	uint64		hash = coming->hashes[0];

	if (builder->base.frame->max_layers == 0 && sealed_contain(builder, hash))
		return;
	if (builder->lines == NULL && builder->count == builder->room)
		bloom_build_make_room(builder);
	if (builder->lines != NULL && is_full(builder))
	{
		if (bf_lines_test(builder->lines, open_layer(builder)->shape, hash))
			return;
		open_next_layer(builder, coming);
	}
	if (builder->lines != NULL)
	{
		unsigned	fresh = bf_lines_add(builder->lines, open_layer(builder)->shape, hash);

		count_added(builder, (bf_added) {fresh, fresh > 0});
	}
	else
		builder->hashes[builder->count++] = hash;
}

/* Add one key to a filter of several layers. */
void
bloom_build_add_layered(BloomBuilder *builder, uint64 hash)
{
	Coming		coming = {&hash, 1};

	add_next(builder, &coming);
}

/*
 * Apply the keys that wait to be many.  Should the layer get full on the way,
 * the others of them go where add_next says.
 */
void
bloom_build_apply_batch(BloomBuilder *builder)
{
	bf_shape	shape = open_layer(builder)->shape;
	uint32		n = builder->batched;
	uint64		batch[BF_BATCH];

	builder->batched = 0;
	if (likely(n <= builder->keys_left &&
			   builder->bits_set + (uint64) n * shape.probes * shape.groups <= builder->full_bits))
	{
		count_added(builder, bf_lines_add_many(builder->lines, shape, builder->batch, n));
		return;
	}
	memcpy(batch, builder->batch, sizeof(uint64) * n);
	for (uint32 i = 0; i < n; i++)
		bloom_build_add_layered(builder, batch[i]);
}

/*
 * Add many keys.  As all of them are known, a new layer is made large enough
 * for those that are still to come.
 */
static void
bloom_build_add_many(FilterBuilder *base, const uint64 *hashes, Size n)
{
	BloomBuilder *builder = (BloomBuilder *) base;

	for (Size i = 0; i < n; i++)
	{
		Coming		coming = {hashes + i, n - i};

		if (builder->lines != NULL && i + BF_BATCH < n)
			bf_lines_prefetch(builder->lines, open_layer(builder)->shape, hashes[i + BF_BATCH]);
		add_next(builder, &coming);
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
}

/* ----------------------------------------------------------------
 * States of one aggregate
 * ----------------------------------------------------------------
 */

/*
 * Is the filter a state of the same aggregate call, with the same parameters?
 * Then lines of the first layer, if there are any, have one shape.
 */
static bool
bloom_build_can_merge(FilterBuilder *base, const bf_filter *filter)
{
	BloomBuilder *builder = (BloomBuilder *) base;
	const bf_filter *frame = builder->base.frame;
	const bf_layer *ours = &frame->layer[0];
	const bf_layer *other = &filter->layer[0];

	if (filter->fpp != frame->fpp || filter->growth != frame->growth ||
		filter->max_layers > 0 || frame->max_layers > 0 || other->capacity != ours->capacity)
		return false;
	if (ours->capacity > 0)
		return bf_shape_equal(other->shape, ours->shape);
	return other->form == BF_FORM_LIST ||
		bf_shape_equal(other->shape, ours->shape.words > 0 ? ours->shape : spill_shape(filter->fpp));
}

/* Merge lines into a layer of the same shape that has room for them. */
static bool
merge_lines(BloomBuilder *builder, const bf_layer *other)
{
	bf_filter  *frame = builder->base.frame;
	bf_layer   *open = open_layer(builder);

	if (builder->lines == NULL &&
		(open->shape.words == 0 || bf_shape_equal(open->shape, other->shape)))
	{
		list_to_lines(builder);
		open = open_layer(builder);
	}
	if (builder->lines != NULL && bf_shape_equal(open->shape, other->shape))
	{
		uint64		bits_set = bf_lines_bits_set_or(builder->lines, other->data, other->shape.words);

		if (bits_set <= builder->full_bits)
		{
			bf_lines_or(builder->lines, other->data, other->shape.words);
			builder->bits_set = bits_set;
			builder->keys_left = BLOOM_UNCOUNTED;
			return true;
		}
	}
	for (int i = 0; i < frame->layers - 1; i++)
	{
		bf_layer   *layer = &frame->layer[i];

		if (layer->form == BF_FORM_LINES && bf_shape_equal(layer->shape, other->shape) &&
			bf_lines_bits_set_or(layer->data, other->data, other->shape.words) <= bf_full_bits(frame, layer))
		{
			bf_lines_or(layer->data, other->data, other->shape.words);
			return true;
		}
	}
	return false;
}

/*
 * Merge such a state.  Lists are added key by key.  Lines go where they fit, or
 * else become a layer of their own.
 */
static void
bloom_build_merge(FilterBuilder *base, const bf_filter *filter)
{
	BloomBuilder *builder = (BloomBuilder *) base;
	bf_filter	own;

	Assert(bloom_build_can_merge(base, filter));

	/* the first layer is that of the declared capacity: keep it the first */
	if (base->frame->layers == 1 && filter->layers > 1)
	{
		filter_open(&own, build_flat(base));
		drop_list(builder);
		if (builder->lines != NULL)
		{
			memory_free(builder->lines);
			pfree(builder->batch);
		}
		bloom_build_load(base, base->context, filter);
		filter = &own;
	}
	for (int i = 0; i < filter->layers; i++)
	{
		const bf_layer *other = &filter->layer[i];

		if (builder->lines != NULL)
			bloom_build_apply_batch(builder);
		if (other->form == BF_FORM_LIST)
		{
			for (uint32 j = 0; j < other->count; j++)
			{
				bloom_build_add(builder, bf_load64(other->data + (Size) j * 8));
				if (j % BF_POLL_EVERY == 0)
					bf_poll();
			}
		}
		else if (!merge_lines(builder, other))
		{
			bf_layer	layer = *other;

			check_growth(builder->base.frame, other);
			prepare_layer(builder);
			layer.data = memory_alloc(builder->base.context, content_bytes(other));
			memcpy(layer.data, other->data, content_bytes(other));
			insert_layer(builder->base.frame, builder->base.frame->layers - 1, &layer);
		}
	}
}

/* ----------------------------------------------------------------
 * Asking and finishing
 * ----------------------------------------------------------------
 */

/* As many hashes at the end of a list may be out of order when it is searched. */
#define LONGEST_TAIL	1024

/* Is the hash in the list?  Its unsorted tail is looked through. */
static bool
find_hash(BloomBuilder *builder, uint64 hash)
{
	const uint64 *hashes = builder->hashes;

	if (builder->count - builder->sorted > LONGEST_TAIL)
		settle_list(builder);
	for (uint32 i = builder->sorted; i < builder->count; i++)
	{
		if (hashes[i] == hash)
			return true;
	}
	return bf_hashes_find(hashes, builder->sorted, hash) < builder->sorted;
}

/* May the filter being built hold the key? */
static bool
bloom_build_contains(FilterBuilder *base, uint64 hash)
{
	BloomBuilder *builder = (BloomBuilder *) base;

	if (builder->lines != NULL)
		bloom_build_apply_batch(builder);
	if (builder->lines != NULL ?
		bf_lines_test(builder->lines, open_layer(builder)->shape, hash) :
		find_hash(builder, hash))
		return true;
	return sealed_contain(builder, hash);
}

/*
 * Describe the filter as it stands and return its size.  Settles what is
 * pending, which changes nothing that can be observed.
 */
static uint64
bloom_build_describe(FilterBuilder *base, bf_filter *filter)
{
	BloomBuilder *builder = (BloomBuilder *) base;

	if (builder->lines != NULL)
		bloom_build_apply_batch(builder);
	if (builder->lines == NULL)
	{
		bf_layer   *layer = open_layer(builder);

		settle_list(builder);
		layer->count = builder->count;
		if (!bf_keep_list(layer->shape, builder->count))
			list_to_lines(builder);
	}
	memcpy(filter, builder->base.frame, frame_size(builder->base.frame->layers));
	return bf_filter_size(filter);
}

/* Write what bloom_build_describe described. */
static void
bloom_build_write(FilterBuilder *base, bf_filter *filter, uint8 *bytes, Size n)
{
	BloomBuilder *builder = (BloomBuilder *) base;
	bf_layer   *layer = &filter->layer[filter->layers - 1];

	bf_filter_write(filter, bytes, n);
	for (int i = 0; i < filter->layers - 1; i++)
		memcpy(filter->layer[i].data, builder->base.frame->layer[i].data, content_bytes(&filter->layer[i]));
	if (layer->form == BF_FORM_LIST)
		bf_list_write(layer->data, builder->hashes, layer->count);
	else
		memcpy(layer->data, builder->lines, content_bytes(layer));
}

/*
 * Fold spilled lines as far as the target allows: by the largest divisor with
 * which they are not fuller than they may be.
 */
static struct varlena *
finish_spilled(bf_filter *filter, const uint8 *lines)
{
	bf_layer   *layer = &filter->layer[0];
	bf_shape	shape = layer->shape;
	unsigned	factor = 1;
	struct varlena *image;

	/* twelve million keys at the loosest target leave no larger factor */
	for (unsigned candidate = 2; candidate <= 512; candidate++)
	{
		bf_shape	folded = shape;

		if (!bf_lines_can_fold(shape, candidate))
			continue;
		folded.words /= candidate;
		if (bf_lines_folded_bits(lines, shape, candidate) >
			bf_shape_bits_set(folded, bf_shape_capacity(folded, filter->fpp)))
			break;
		factor = candidate;
	}
	layer->shape.words /= factor;
	layer->capacity = Max(bf_shape_capacity(layer->shape, filter->fpp), 1);
	image = filter_allocate(filter);
	if (factor == 1)
		memcpy(layer->data, lines, content_bytes(layer));	/* or less than a line */
	else
		bf_lines_fold(layer->data, lines, shape, factor);
	return image;
}

/*
 * The finished filter.  The builder stays usable: a window frame may go on
 * adding to it.
 */
static struct varlena *
bloom_build_finish(FilterBuilder *base)
{
	BloomBuilder *builder = (BloomBuilder *) base;
	bf_filter	filter;
	bf_layer   *layer = &filter.layer[0];
	struct varlena *image;

	bloom_build_describe(base, &filter);
	if (layer->capacity > 0 || filter.layers > 1)
		return build_flat(base);
	if (builder->lines != NULL)
		return finish_spilled(&filter, builder->lines);

	layer->capacity = Max(layer->count, 1);
	layer->shape = bf_shape_for(layer->capacity, filter.fpp);
	if (bf_keep_list(layer->shape, layer->count))
	{
		image = filter_allocate(&filter);
		bf_list_write(layer->data, builder->hashes, layer->count);
		return image;
	}
	layer->form = BF_FORM_LINES;
	image = filter_allocate(&filter);
	memset(layer->data, 0, content_bytes(layer));
	bf_lines_add_many(layer->data, layer->shape, builder->hashes, builder->count);
	return image;
}

/* The hashes of a builder that holds nothing else. */
static int64
bloom_build_hashes(FilterBuilder *base, const uint64 **hashes)
{
	BloomBuilder *builder = (BloomBuilder *) base;

	if (builder->lines != NULL || base->frame->layers > 1)
		return -1;
	*hashes = builder->hashes;
	return builder->count;
}

const BuilderMethods bloom_methods = {
	.type = {BF_KIND_BLOOM, "bloom"},
	.load = bloom_build_load,
	.add_many = bloom_build_add_many,
	.contains = bloom_build_contains,
	.describe = bloom_build_describe,
	.write = bloom_build_write,
	.start = bloom_build_start_aggregate,
	.hashes = bloom_build_hashes,
	.can_merge = bloom_build_can_merge,
	.merge = bloom_build_merge,
	.finish = bloom_build_finish
};
