/*
 * bloom_build.h
 *		A bloom filter that is being filled, in memory.
 */
#ifndef BF_BLOOM_BUILD_H
#define BF_BLOOM_BUILD_H

#include "builder.h"
#include "core/growth.h"
#include "core/hashlist.h"

/*
 * Bounds of an aggregate that sizes itself (docs/reference.md promises them).
 * Up to BF_MAX_LIST distinct hashes are collected, in a list of at most
 * LIST_ROOM entries (128 MB), and the filter is sized exactly.  Beyond that
 * they go into SPILL_LINES lines (264 MB), folded to a fitting size at the end:
 * a number with many divisors, so that there are many sizes to choose from.
 */
#define BLOOM_LIST_ROOM		(16 * 1024 * 1024)
#define BLOOM_SPILL_LINES	(32 * 27 * 5 * 7 * 11 * 13)

/*
 * The builder holds the newest layer open and older ones sealed.  The open
 * layer is a list of hashes (in any order, with repetitions) until that is no
 * longer allowed, then lines.
 */
typedef struct BloomBuilder
{
	FilterBuilder base;			/* its frame: sealed layers, the open one last */
	uint64	   *hashes;			/* of the open layer, while a list */
	uint64	   *recent;			/* hashes seen lately, to skip repetitions */
	uint64	   *batch;			/* lines: hashes not yet applied */
	uint8	   *lines;			/* of the open layer, when not a list */
	uint64		bits_set;		/* in the lines */
	uint64		full_bits;		/* with so many they take no new key */
	uint64		keys_left;		/* nor after so many more, if we counted */
	uint32		room;			/* allocated in `hashes` */
	uint32		sorted;			/* the first so many are sorted and distinct */
	uint32		count;			/* used in `hashes` */
	uint32		batched;		/* used in `batch` */
	uint8		vain_sorts;		/* so many in a row found few repetitions */
	uint8		skip_sorts;		/* so many are to be skipped */
} BloomBuilder;

#define BLOOM_UNCOUNTED		PG_UINT64_MAX

/* So many keys changed bits: count them, if keys are counted. */
static inline void
bloom_count_keys(uint64 *keys_left, uint64 keys)
{
	if (*keys_left != BLOOM_UNCOUNTED)
		*keys_left -= Min(keys, *keys_left);
}

extern const BuilderMethods bloom_methods;

extern void bloom_build_start(BloomBuilder *builder, MemoryContext context, bf_shape shape,
							  uint64 capacity, double fpp);
extern void bloom_build_make_room(BloomBuilder *builder);
extern void bloom_build_apply_batch(BloomBuilder *builder);
extern void bloom_build_add_layered(BloomBuilder *builder, uint64 hash);

/* log2 of the number of recent hashes that are remembered: 16 KB. */
#define BLOOM_RECENT_BITS	11

/* Add one key's hash. */
static inline void
bloom_build_add(BloomBuilder *builder, uint64 hash)
{
	if (unlikely(builder->base.frame->layers > 1))
	{
		bloom_build_add_layered(builder, hash);
		return;
	}
	if (builder->lines != NULL)
	{
		builder->batch[builder->batched++] = hash;
		if (builder->batched == BF_BATCH)
			bloom_build_apply_batch(builder);
		return;
	}
	if (builder->recent != NULL)
	{
		uint64	   *seen = &builder->recent[hash >> (64 - BLOOM_RECENT_BITS)];

		if (*seen == hash)
			return;
		*seen = hash;
	}
	if (unlikely(builder->count == builder->room))
	{
		bloom_build_make_room(builder);
		if (builder->lines != NULL)
		{
			bloom_build_add(builder, hash);
			return;
		}
	}
	builder->hashes[builder->count++] = hash;
}

#endif							/* BF_BLOOM_BUILD_H */
