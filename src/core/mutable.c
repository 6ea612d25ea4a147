/*
 * mutable.c
 *		A mutable filter of either kind, and changes that are atomic.
 *
 * The owner of a filter that is changed in place may catch the error of a failed
 * change and continue to use it.  So a change by many keys is made in one of two
 * ways.  If nothing can fail (no allocation, no poll, no limit), the keys are
 * applied directly.  Otherwise they are applied to a copy, which then replaces the
 * filter.  That happens when there are very many keys, and when a layer may get
 * full or a table may have to grow, which is rare.  A single key needs no copy:
 * adding or removing it fails before the first change or not at all.
 */
#include "mutable.h"
#include "query.h"

static inline bool
is_bloom(const bf_mutable *filter)
{
	return filter->header.kind == BF_KIND_BLOOM;
}

void
bf_mutable_start_state(bf_mutable *filter, bf_host host, uint16_t kind, uint64_t capacity, double fpp)
{
	if (kind == BF_KIND_BLOOM)
		bf_bloom_start_state(&filter->bloom, host, capacity, fpp);
	else
		bf_cuckoo_start_state(&filter->cuckoo, host, capacity, fpp);
}

/* Load a filter; its bytes are copied. */
void
bf_mutable_load(bf_mutable *filter, bf_host host, const bf_filter *from)
{
	if (from->header.kind == BF_KIND_BLOOM)
		bf_bloom_load(&filter->bloom, host, from);
	else
		bf_cuckoo_load(&filter->cuckoo, host, from);
}

void
bf_mutable_free(bf_mutable *filter)
{
	if (is_bloom(filter))
		bf_bloom_free(&filter->bloom);
	else
		bf_cuckoo_free(&filter->cuckoo);
}

/* Give a filter the class of a key, unless it has one. */
void
bf_mutable_set_class(bf_mutable *filter, const bf_key_class *class)
{
	if (filter->header.class.code == BF_CLASS_NONE)
		bf_header_set_class(&filter->header, class);
}

bool
bf_mutable_contains(bf_mutable *filter, uint64_t hash)
{
	return is_bloom(filter) ? bf_bloom_contains(&filter->bloom, hash) : bf_cuckoo_contains(&filter->cuckoo, hash);
}

/* ----------------------------------------------------------------
 * Changes
 * ----------------------------------------------------------------
 */

/* Keys that are tested together. */
#define BLOCK		256

/*
 * The layers that decide whether adding a key changes a filter: all of them, but in
 * a window only the newest, since older ones are dropped sooner.
 */
static const bf_filter *
deciding_layers(const bf_filter *filter, bf_filter *newest)
{
	if (filter->header.max_layers == 0 || filter->layers == 1)
		return filter;
	newest->header = filter->header;
	newest->layers = 1;
	newest->layer[0] = filter->layer[filter->layers - 1];
	return newest;
}

/*
 * Can such a change leave a filter as it is?  A cuckoo filter counts the keys that
 * are added, and the first key gives a filter its class.
 */
static bool
may_be_void(const bf_filter *filter, bf_change change)
{
	if (change == BF_REMOVE)
		return filter->header.kind == BF_KIND_CUCKOO;
	return filter->header.kind == BF_KIND_BLOOM && filter->header.class.code != BF_CLASS_NONE;
}

/*
 * Would a change by these keys leave the bytes of a filter as they are?  True if all
 * keys to be added are reported already, or if all keys to be removed are absent
 * or have reached the limit of their count, which then stays.
 */
bool
bf_change_is_void(const bf_filter *filter, bf_change change, const uint64_t *hashes, size_t n)
{
	const bf_layer *layer = &filter->layer[0];
	bf_filter	newest;
	bool		found[BLOCK];

	if (!may_be_void(filter, change))
		return false;
	filter = deciding_layers(filter, &newest);
	for (size_t start = 0; start < n; start += BLOCK)
	{
		size_t		block = n - start < BLOCK ? n - start : BLOCK;

		if (start % BF_POLL_EVERY == 0)
			bf_poll(filter->header.host);
		bf_filter_contains_many(filter, hashes + start, block, found);
		for (size_t i = 0; i < block; i++)
		{
			if (change == BF_ADD ? !found[i] :
				found[i] && bf_layer_copies(layer, bf_table_number(layer->table, hashes[start + i])) < BF_MAX_COUNT)
				return false;
		}
	}
	return true;
}

/*
 * The same for a filter that is fetched in pieces.  Counts are not read: false means
 * that the whole filter has to be tested.
 */
bool
bf_change_is_void_pieces(const bf_filter *filter, bf_fetch fetch, void *arg, bf_change change,
						 const uint64_t *hashes, size_t n)
{
	bf_filter	newest;

	if (!may_be_void(filter, change))
		return false;
	filter = deciding_layers(filter, &newest);
	for (size_t i = 0; i < n; i++)
	{
		if (bf_filter_contains_pieces(filter, fetch, arg, hashes[i]) != (change == BF_ADD))
			return false;
	}
	return true;
}

/* Change a filter.  If this fails, the filter must not be used any more. */
void
bf_mutable_change(bf_mutable *filter, bf_change change, const bf_key_class *class, const uint64_t *hashes, size_t n)
{
	if (change == BF_REMOVE)
		bf_cuckoo_remove_many(&filter->cuckoo, hashes, n);
	else
	{
		bf_mutable_set_class(filter, class);
		if (is_bloom(filter))
			bf_bloom_add_many(&filter->bloom, hashes, n);
		else
			bf_cuckoo_add_many(&filter->cuckoo, hashes, n);
	}
}

/* Make sure that a change cannot fail.  False if that cannot be guaranteed. */
static bool
reserve(bf_mutable *filter, bf_change change, size_t n)
{
	if (change == BF_REMOVE)
		return bf_cuckoo_reserve_removal(&filter->cuckoo, n);
	return is_bloom(filter) ? bf_bloom_reserve(&filter->bloom, n) : bf_cuckoo_reserve(&filter->cuckoo, n);
}

/*
 * Add keys in place that may need another layer or a larger table.  Possible if at
 * most one of them is new; false if not.
 */
static bool
add_single(bf_mutable *filter, const uint64_t *hashes, size_t n)
{
	uint64_t	last = 0;
	size_t		new_keys;

	if (!is_bloom(filter))
	{
		if (n == 1)
			bf_cuckoo_add(&filter->cuckoo, hashes[0]);
		return n == 1;
	}
	new_keys = bf_bloom_count_new(&filter->bloom, hashes, n, &last);

	/* if a key opens the next layer of a window, the others are new there */
	if (new_keys > 1 || (new_keys == 1 && n > 1 && filter->header.max_layers > 0))
		return false;
	if (new_keys == 1)
		bf_bloom_add_layered(&filter->bloom, last);
	return true;
}

/*
 * Change a filter in place.  False if that is not possible; the caller then changes a
 * copy that replaces the filter.  After false or an error the filter is unchanged.
 */
bool
bf_mutable_change_in_place(bf_mutable *filter, bf_change change, const bf_key_class *class,
						   const uint64_t *hashes, size_t n)
{
	bf_header	header = filter->header;
	bool		done = true;

	if (change == BF_ADD && header.class.code == BF_CLASS_NONE)
		bf_header_set_class(&header, class);
	if (reserve(filter, change, n))
	{
		/* nothing fails from here on */
		filter->header.class = header.class;
		filter->header.host.quiet = true;
		bf_mutable_change(filter, change, &header.class, hashes, n);
		filter->header.host.quiet = false;
	}
	else
		done = change == BF_ADD && add_single(filter, hashes, n);
	if (done)
		filter->header.class = header.class;
	else if (header.class.name != filter->header.class.name)
		bf_release(header.host, (void *) header.class.name);
	return done;
}

/* Copy a filter into memory of another host. */
void
bf_mutable_copy(bf_mutable *copy, bf_host host, bf_mutable *filter)
{
	bf_filter	description;
	uint64_t	size = bf_mutable_describe(filter, &description);
	uint8_t    *bytes = bf_allocate(host, size);

	bf_mutable_write(filter, &description, bytes, (size_t) size);
	bf_mutable_load(copy, host, &description);
	bf_release(host, bytes);
}

/* ----------------------------------------------------------------
 * States of aggregates
 * ----------------------------------------------------------------
 */

bool
bf_mutable_can_merge_state(const bf_mutable *filter, const bf_filter *state)
{
	if (filter->header.kind != state->header.kind)
		return false;
	return is_bloom(filter) ? bf_bloom_can_merge_state(&filter->bloom, state) :
		bf_cuckoo_can_merge_state(&filter->cuckoo, state);
}

void
bf_mutable_merge_state(bf_mutable *filter, const bf_filter *state)
{
	if (is_bloom(filter))
		bf_bloom_merge_state(&filter->bloom, state);
	else
		bf_cuckoo_merge_state(&filter->cuckoo, state);
}

/* ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

/*
 * Describe the filter and return its size.  Keys that are batched or pending are
 * applied first, which changes nothing that can be observed.
 */
uint64_t
bf_mutable_describe(bf_mutable *filter, bf_filter *description)
{
	return is_bloom(filter) ? bf_bloom_describe(&filter->bloom, description) :
		bf_cuckoo_describe(&filter->cuckoo, description);
}

/* Write the filter as it was described. */
void
bf_mutable_write(bf_mutable *filter, bf_filter *description, uint8_t *bytes, size_t n)
{
	if (is_bloom(filter))
		bf_bloom_write(&filter->bloom, description, bytes, n);
	else
		bf_cuckoo_write(&filter->cuckoo, description, bytes, n);
}
