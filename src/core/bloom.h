/*
 * bloom.h
 *		The mutable Bloom filter, through which every Bloom filter is made and
 *		changed.
 *
 * Aggregates, additions, unions, intersections and compaction use the same object.
 * It is a chain of layers.  The last layer is the open one, to which new keys are
 * added.
 */
#ifndef BF_BLOOM_H
#define BF_BLOOM_H

#include "accumulator.h"
#include "format.h"
#include "growth.h"
#include "lines.h"

/* log2 of the number of recent hashes in the cache: 16 KB. */
#define BF_RECENT_BITS		11

/* A number of bits or keys that is not counted. */
#define BF_UNCOUNTED		UINT64_MAX

/*
 * One layer: a list of hashes while that is allowed, then lines.  The list of the
 * open layer may be unsorted and have repetitions; the others are sorted and
 * distinct.
 */
typedef struct bf_bloom_layer
{
	bf_size		size;			/* no words: sized at the end */
	bf_accumulator list;		/* not started if lines */
	uint8_t    *lines;			/* NULL if a list */
	uint64_t	bits_set;		/* in `lines`, or BF_UNCOUNTED */
	uint64_t	full_bits;		/* a layer with this many bits set is full */
	uint64_t	keys_left;		/* keys until it is full, or BF_UNCOUNTED */
} bf_bloom_layer;

typedef struct bf_bloom
{
	bf_header	header;
	bf_bloom_layer *layer;
	unsigned	layers;
	bool		is_state;		/* of an aggregate: written as an unfinished
								 * value */
	bool		is_part;		/* a partial state that has exceeded its
								 * list_bound */
	uint8_t		fruitless_sorts;	/* sorts in a row that found few
									 * repetitions */
	uint8_t		skip_sorts;		/* sorts to skip for that reason */
	uint32_t	list_bound;		/* a list of at most this length stays a list
								 * even if lines would be smaller */
	uint32_t	batched;		/* used in `batch` */
	uint64_t   *recent;			/* cache of recent hashes, to skip repetitions */
	uint64_t	batch[BF_BATCH];	/* hashes not yet applied to open lines */
} bf_bloom;

/* Making one. */
extern void bf_bloom_start(bf_bloom *bloom, bf_host host, bf_size size, double fpp);
extern void bf_bloom_start_state(bf_bloom *bloom, bf_host host, uint64_t capacity, double fpp);
extern void bf_bloom_load(bf_bloom *bloom, bf_host host, const bf_filter *filter);
extern void bf_bloom_free(bf_bloom *bloom);

/* Adding and testing keys. */
extern void bf_bloom_make_room(bf_bloom *bloom);
extern void bf_bloom_apply_batch(bf_bloom *bloom);
extern void bf_bloom_add_layered(bf_bloom *bloom, uint64_t hash);
extern void bf_bloom_add_many(bf_bloom *bloom, const uint64_t *hashes, size_t n);
extern void bf_bloom_rotate(bf_bloom *bloom);
extern bool bf_bloom_reserve(bf_bloom *bloom, size_t n);
extern bool bf_bloom_contains(bf_bloom *bloom, uint64_t hash);
extern bool bf_bloom_is_empty(const bf_bloom *bloom);
extern size_t bf_bloom_count_new(bf_bloom *bloom, const uint64_t *hashes, size_t n, uint64_t *last);

/* The filter as bytes: describe it, allocate what it needs, write it. */
extern uint64_t bf_bloom_describe(bf_bloom *bloom, bf_filter *filter);
extern uint64_t bf_bloom_describe_to_travel(bf_bloom *bloom, bf_filter *filter);
extern uint64_t bf_bloom_finish(bf_bloom *bloom, bf_filter *filter);
extern void bf_bloom_write(bf_bloom *bloom, bf_filter *filter, uint8_t *bytes, size_t n);

/* Sets: see bloom_sets.c. */
extern bool bf_bloom_can_merge_state(const bf_bloom *bloom, const bf_filter *state);
extern void bf_bloom_merge_state(bf_bloom *bloom, const bf_filter *state);
extern void bf_bloom_unite(bf_bloom *bloom, const bf_filter *filter);
extern void bf_bloom_sort_layers(bf_bloom *bloom);
extern void bf_bloom_intersect(bf_bloom *bloom, const bf_filter *filter);
extern void bf_bloom_compact(bf_bloom *bloom);

/* Layers: see bloom_layers.c. */
extern uint64_t bf_bloom_longest_list(const bf_bloom *bloom, const bf_bloom_layer *layer);
extern uint64_t bf_bloom_largest_room(const bf_bloom *bloom, const bf_bloom_layer *layer);
extern bool bf_bloom_may_be_list(const bf_bloom *bloom, const bf_bloom_layer *layer, uint64_t count);
extern void bf_bloom_start_list(const bf_bloom *bloom, bf_bloom_layer *layer, uint64_t count);
extern bf_shape bf_bloom_spill_shape(double fpp);
extern uint8_t *bf_bloom_lines_of_list(const bf_bloom *bloom, const bf_bloom_layer *layer, uint64_t n, bf_added *added);
extern void bf_bloom_install_lines(bf_bloom *bloom, bf_bloom_layer *layer, uint8_t *lines, bf_added added);
extern uint64_t bf_bloom_layer_bits(bf_host host, const bf_bloom_layer *layer);
extern void bf_bloom_count_bits(const bf_bloom *bloom, bf_bloom_layer *layer);
extern void bf_bloom_load_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_layer *from);
extern void bf_bloom_free_layer(const bf_bloom *bloom, bf_bloom_layer *layer);
extern bool bf_bloom_layer_contains(const bf_bloom *bloom, bf_bloom_layer *layer, uint64_t hash);
extern bool bf_bloom_layer_is_empty(bf_host host, const bf_bloom_layer *layer);
extern void bf_bloom_insert_layer(bf_bloom *bloom, unsigned at, const bf_bloom_layer *layer);
extern void bf_bloom_remove_layer(bf_bloom *bloom, unsigned at);
extern bool bf_bloom_merge_layer(bf_bloom *bloom, bf_bloom_layer *layer, const bf_bloom_layer *other, bool always);
extern bool bf_bloom_merge_into_any(bf_bloom *bloom, unsigned n, const bf_bloom_layer *other, bool always);
extern bool bf_bloom_join_layers(bf_bloom *bloom);

/* For bloom_sets.c and bloom_write.c. */
extern void bf_bloom_order(bf_bloom *bloom);

/* The open layer, to which new keys are added. */
static inline bf_bloom_layer *
bf_bloom_open_layer(bf_bloom *bloom)
{
	return &bloom->layer[bloom->layers - 1];
}

/* Update the counters of a layer after keys were added to its lines. */
static inline void
bf_bloom_count_added(bf_bloom_layer *layer, bf_added added)
{
	layer->bits_set += added.bits;
	if (layer->keys_left != BF_UNCOUNTED)
		layer->keys_left -= added.keys < layer->keys_left ? added.keys : layer->keys_left;
}

/* Do n more keys certainly fit the lines? */
static inline bool
bf_bloom_lines_take(const bf_bloom_layer *layer, uint64_t n)
{
	bf_shape	shape = layer->size.shape;

	bf_assert(layer->bits_set != BF_UNCOUNTED);
	return n <= layer->keys_left && layer->bits_set + n * shape.probes * shape.groups <= layer->full_bits;
}

/* Add keys that fit the lines. */
static inline void
bf_bloom_add_to_lines(bf_bloom *bloom, bf_bloom_layer *layer, const uint64_t *hashes, size_t n)
{
	bf_bloom_count_added(layer, bf_lines_add_many(bloom->header.host, layer->lines, layer->size.shape, hashes, n));
}

/* Add one key.  Inline, because aggregates do little else. */
static inline void
bf_bloom_add(bf_bloom *bloom, uint64_t hash)
{
	bf_bloom_layer *layer = bloom->layer;

	if (bf_unlikely(bloom->layers > 1))
	{
		bf_bloom_add_layered(bloom, hash);
		return;
	}
	if (layer->lines != NULL)
	{
		bloom->batch[bloom->batched++] = hash;
		if (bloom->batched == BF_BATCH)
			bf_bloom_apply_batch(bloom);
		return;
	}
	if (bloom->recent != NULL)
	{
		uint64_t   *seen = &bloom->recent[hash >> (64 - BF_RECENT_BITS)];

		if (*seen == hash)
			return;
		*seen = hash;
	}
	if (bf_unlikely(bf_accumulator_is_full(&layer->list)))
	{
		bf_bloom_make_room(bloom);
		if (bloom->layers > 1 || layer->lines != NULL)
		{
			bf_bloom_add(bloom, hash);
			return;
		}
	}
	bf_accumulator_add(&layer->list, hash);
}

#endif							/* BF_BLOOM_H */
