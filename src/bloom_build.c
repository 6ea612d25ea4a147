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
 * What a finished filter looks like depends on nothing but the set of keys, so
 * every decision here (list or lines, exact or spilled) is taken on the exact
 * number of distinct hashes, never on what happened to be in the array.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "bloom_build.h"

/* Lists shorter than this get no cache of recent hashes. */
#define RECENT_FROM		4096

static inline bf_layer *
open_layer(BloomBuilder *builder)
{
	return &builder->frame->layer[builder->frame->layers - 1];
}

/*
 * A frame with room for so many layers.  Only the layers in use are allocated:
 * there may be very many builders.
 */
static bf_filter *
allocate_frame(MemoryContext context, int layers)
{
	return MemoryContextAllocZero(context, offsetof(bf_filter, layer) + sizeof(bf_layer) * layers);
}

static void
allocate_hashes(BloomBuilder *builder, uint32 room)
{
	builder->room = room;
	builder->hashes = MemoryContextAlloc(builder->context, sizeof(uint64) * room);
}

/*
 * Begin an empty filter.  Capacity 0: size it at the end.  Parameters were
 * checked by the caller, except for what filter_shape says about them.
 */
void
build_start(BloomBuilder *builder, MemoryContext context, int64 capacity, double fpp)
{
	bf_filter  *frame = allocate_frame(context, 1);

	frame->kind = BF_KIND_BLOOM;
	frame->layers = 1;
	frame->growth = BF_DEFAULT_GROWTH;
	frame->fpp = fpp;
	frame->layer[0].form = BF_FORM_LIST;
	frame->layer[0].capacity = (uint64) capacity;
	if (capacity > 0)
		frame->layer[0].shape = filter_shape(capacity, fpp);

	memset(builder, 0, sizeof(BloomBuilder));
	builder->context = context;
	builder->frame = frame;
	allocate_hashes(builder, 8);
}

/* Give the builder the class of its first key. */
void
build_set_class(BloomBuilder *builder, const KeyClass *key)
{
	filter_set_class(builder->frame, key);
	if (key->name_length > 0)
	{
		char	   *name = MemoryContextAlloc(builder->context, key->name_length);

		memcpy(name, key->name, key->name_length);
		builder->frame->name = name;
	}
}

static void
start_lines(BloomBuilder *builder, bf_shape shape)
{
	bf_layer   *layer = open_layer(builder);

	layer->form = BF_FORM_LINES;
	layer->shape = shape;
	builder->lines = MemoryContextAllocZero(builder->context, (Size) shape.words * 8);
	builder->batch = MemoryContextAlloc(builder->context, sizeof(uint64) * BF_BATCH);
	builder->batched = 0;
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

/* Continue a filter that exists.  The builder does not refer to it later. */
void
build_load(BloomBuilder *builder, MemoryContext context, const bf_filter *filter)
{
	bf_filter  *frame = allocate_frame(context, filter->layers);
	KeyClass	class = filter_class(filter);
	bf_layer   *layer;

	memcpy(frame, filter, offsetof(bf_filter, layer) + sizeof(bf_layer) * filter->layers);
	memset(builder, 0, sizeof(BloomBuilder));
	builder->context = context;
	builder->frame = frame;
	build_set_class(builder, &class);

	for (int i = 0; i < frame->layers - 1; i++)
	{
		Size		bytes = (Size) (frame->layer[i].form == BF_FORM_LIST ?
									(uint64) frame->layer[i].count * 8 : frame->layer[i].shape.words * 8);

		frame->layer[i].data = MemoryContextAlloc(context, bytes);
		memcpy(frame->layer[i].data, filter->layer[i].data, bytes);
	}

	layer = open_layer(builder);
	if (layer->form == BF_FORM_LINES)
	{
		start_lines(builder, layer->shape);
		memcpy(builder->lines, layer->data, (Size) layer->shape.words * 8);
	}
	else
	{
		allocate_hashes(builder, Max(8, layer->count + 1));
		bf_list_read(builder->hashes, layer->data, layer->count);
		builder->count = builder->sorted = layer->count;
	}
	layer->data = NULL;
}

void
build_apply_batch(BloomBuilder *builder)
{
	bf_shape	shape = open_layer(builder)->shape;

	for (uint32 i = 0; i < builder->batched; i++)
		bf_lines_add(builder->lines, shape, builder->batch[i]);
	builder->batched = 0;
}

/* Bring the list into order and drop repetitions. */
static void
settle_list(BloomBuilder *builder)
{
	builder->count = builder->sorted =
		(uint32) bf_hashes_sort_unique(builder->hashes, builder->count, builder->sorted);
}

static void
list_to_lines(BloomBuilder *builder, bf_shape shape)
{
	start_lines(builder, shape);
	bf_lines_add_many(builder->lines, shape, builder->hashes, builder->count);
}

/* The shape past the bound of exact sizing: as large as is allowed there. */
static bf_shape
spill_shape(double fpp)
{
	bf_shape	shape = bf_shape_for(BUILD_EXACT_KEYS, fpp);

	shape.words = (uint64) BUILD_SPILL_LINES * BF_LINE_WORDS;
	return shape;
}

/* Are these more distinct keys than the open layer may keep as a list? */
static bool
list_is_too_long(const bf_layer *layer, uint64 distinct)
{
	if (layer->shape.words == 0)
		return distinct > BUILD_EXACT_KEYS;
	return !bf_keep_list(layer->shape, distinct);
}

/*
 * How many hashes the list may hold, repetitions included: enough that
 * sorting them is always worth the while.
 */
static uint64
largest_room(const bf_layer *layer)
{
	if (layer->shape.words == 0)
		return BUILD_LIST_ROOM;
	return Min(Max(layer->shape.words * 2, 8), BUILD_LIST_ROOM);
}

/*
 * The list is full: find repetitions, or grow, or go over to lines.
 */
void
build_make_room(BloomBuilder *builder)
{
	bf_layer   *layer = open_layer(builder);
	uint64		largest = largest_room(layer);

	if (builder->room >= largest && layer->shape.words > 0)
	{
		/*
		 * No distinct key sets more than groups x probes bits, so the lines
		 * may prove that there are too many keys for a list without sorting.
		 */
		bf_shape	shape = layer->shape;
		uint64		longest = shape.words > 2 ? shape.words - 2 : 0;

		list_to_lines(builder, shape);
		if (bf_lines_census(builder->lines, shape).bits_set > longest * shape.groups * shape.probes)
		{
			drop_list(builder);
			return;
		}
		pfree(builder->lines);
		pfree(builder->batch);
		builder->lines = NULL;
		builder->batch = NULL;
		layer->form = BF_FORM_LIST;
	}

	settle_list(builder);
	if (list_is_too_long(layer, builder->count))
	{
		list_to_lines(builder, layer->shape.words > 0 ? layer->shape : spill_shape(builder->frame->fpp));
		drop_list(builder);
		return;
	}
	if (builder->count >= builder->room / 2 && builder->room < largest)
	{
		builder->room = (uint32) Min((uint64) builder->room * 2, largest);
		builder->hashes = repalloc(builder->hashes, sizeof(uint64) * builder->room);
	}
	Assert(builder->count < builder->room);
	if (builder->recent == NULL && builder->room >= RECENT_FROM)
	{
		/* every entry begins as a hash that does not belong there */
		builder->recent = MemoryContextAlloc(builder->context, sizeof(uint64) << BUILD_RECENT_BITS);
		for (uint64 i = 0; i < (1 << BUILD_RECENT_BITS); i++)
			builder->recent[i] = ~i << (64 - BUILD_RECENT_BITS);
	}
}

void
build_add_many(BloomBuilder *builder, const uint64 *hashes, Size n)
{
	for (Size i = 0; i < n; i++)
	{
		build_add(builder, hashes[i]);
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
}

/*
 * Is the filter a state of the same aggregate call, of one layer with the same
 * parameters?  Then its lines, if it has any, are of the builder's shape.
 */
bool
build_can_merge_state(BloomBuilder *builder, const bf_filter *filter)
{
	const bf_layer *open = open_layer(builder);
	const bf_layer *other = &filter->layer[0];

	return builder->frame->layers == 1 && filter->layers == 1 &&
		filter->fpp == builder->frame->fpp && other->capacity == open->capacity &&
		(other->form == BF_FORM_LIST ||
		 bf_shape_equal(other->shape, open->shape.words > 0 ? open->shape : spill_shape(filter->fpp)));
}

/* Merge such a state, which may be a list or lines. */
void
build_merge_state(BloomBuilder *builder, const bf_filter *filter)
{
	const bf_layer *other = &filter->layer[0];

	Assert(build_can_merge_state(builder, filter));
	if (other->form == BF_FORM_LIST)
	{
		for (uint32 i = 0; i < other->count; i++)
		{
			build_add(builder, bf_load64(other->data + (Size) i * 8));
			if (i % BF_POLL_EVERY == 0)
				bf_poll();
		}
		return;
	}
	if (builder->lines == NULL)
	{
		list_to_lines(builder, other->shape);
		drop_list(builder);
	}
	build_apply_batch(builder);
	bf_lines_or(builder->lines, other->data, other->shape.words);
}

/* As many hashes at the end of a list may be out of order when it is searched. */
#define LONGEST_TAIL	1024

/* Is the hash in the list?  Its unsorted tail is looked through. */
static bool
find_hash(BloomBuilder *builder, uint64 hash)
{
	const uint64 *hashes = builder->hashes;
	uint32		low = 0;
	uint32		high;

	if (builder->count - builder->sorted > LONGEST_TAIL)
		settle_list(builder);
	for (uint32 i = builder->sorted; i < builder->count; i++)
	{
		if (hashes[i] == hash)
			return true;
	}
	high = builder->sorted;
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (hashes[middle] == hash)
			return true;
		if (hashes[middle] < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* May the filter being built hold the key? */
bool
build_contains(BloomBuilder *builder, uint64 hash)
{
	bf_filter  *frame = builder->frame;

	if (builder->lines != NULL)
	{
		build_apply_batch(builder);
		if (bf_lines_test(builder->lines, open_layer(builder)->shape, hash))
			return true;
	}
	else if (find_hash(builder, hash))
		return true;
	for (int i = 0; i < frame->layers - 1; i++)
	{
		if (bf_layer_contains(&frame->layer[i], hash))
			return true;
	}
	return false;
}

/*
 * Describe the filter as it stands and return its size.  Settles what is
 * pending, which changes nothing that can be observed.
 */
uint64
build_describe(BloomBuilder *builder, bf_filter *filter)
{
	bf_layer   *layer = open_layer(builder);

	if (builder->lines != NULL)
		build_apply_batch(builder);
	else
	{
		settle_list(builder);
		layer->count = builder->count;
		if (list_is_too_long(layer, builder->count))
		{
			list_to_lines(builder, layer->shape.words > 0 ? layer->shape : spill_shape(builder->frame->fpp));
			drop_list(builder);
		}
	}
	memcpy(filter, builder->frame, offsetof(bf_filter, layer) + sizeof(bf_layer) * builder->frame->layers);
	return bf_filter_size(filter);
}

/* Write what build_describe described. */
void
build_write(BloomBuilder *builder, bf_filter *filter, uint8 *bytes, Size n)
{
	bf_layer   *layer = &filter->layer[filter->layers - 1];

	bf_filter_write(filter, bytes, n);
	for (int i = 0; i < filter->layers - 1; i++)
	{
		const bf_layer *sealed = &builder->frame->layer[i];

		memcpy(filter->layer[i].data, sealed->data,
			   (Size) (sealed->form == BF_FORM_LIST ? (uint64) sealed->count * 8 : sealed->shape.words * 8));
	}
	if (layer->form == BF_FORM_LIST)
		bf_list_write(layer->data, builder->hashes, layer->count);
	else
		memcpy(layer->data, builder->lines, (Size) layer->shape.words * 8);
}

/* The filter as a flat value; an unfinished one stays unfinished. */
struct varlena *
build_flat(BloomBuilder *builder)
{
	bf_filter	filter;
	struct varlena *image;
	uint64		size = build_describe(builder, &filter);

	filter_check_size(size + BF_LENGTH_WORD);
	image = palloc((Size) size + VARHDRSZ);
	SET_VARSIZE(image, (Size) size + VARHDRSZ);
	build_write(builder, &filter, (uint8 *) VARDATA(image), (Size) size);
	return image;
}

/* Fold spilled lines as far as the target allows. */
static struct varlena *
finish_spilled(bf_filter *filter, uint8 *lines)
{
	bf_layer   *layer = &filter->layer[0];
	bf_shape	shape = layer->shape;
	uint8	   *folded = lines;
	struct varlena *image;

	while (bf_lines_can_fold(shape))
	{
		bf_shape	half = shape;

		half.words /= 2;
		if (bf_lines_folded_bits(folded, shape) >
			bf_shape_bits_set(half, bf_shape_capacity(half, filter->fpp)))
			break;
		if (folded == lines)
		{
			/* the builder's own lines stay as they are */
			folded = palloc((Size) half.words * 8);
			shape = bf_lines_fold(folded, lines, shape);
		}
		else
			shape = bf_lines_fold(folded, folded, shape);
	}
	layer->shape = shape;
	layer->capacity = bf_shape_capacity(shape, filter->fpp);
	image = filter_allocate(filter);
	memcpy(layer->data, folded, (Size) shape.words * 8);
	if (folded != lines)
		pfree(folded);
	return image;
}

/*
 * The finished filter.  The builder stays usable: a window frame may go on
 * adding to it.
 */
struct varlena *
build_finish(BloomBuilder *builder)
{
	bf_filter	filter;
	bf_layer   *layer = &filter.layer[0];
	struct varlena *image;

	build_describe(builder, &filter);
	if (layer->capacity > 0)
		return build_flat(builder);
	if (layer->form == BF_FORM_LINES)
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
	memset(layer->data, 0, (Size) layer->shape.words * 8);
	bf_lines_add_many(layer->data, layer->shape, builder->hashes, builder->count);
	return image;
}
