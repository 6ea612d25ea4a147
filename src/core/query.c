/*
 * query.c
 *		Reading a filter: membership, counts, estimates.
 *
 * The filter was opened by bf_filter_open or bf_filter_open_pieces.  Its bytes are
 * not changed.
 */
#include <math.h>

#include "query.h"

/* ----------------------------------------------------------------
 * Multisets
 * ----------------------------------------------------------------
 */

/* The largest number of a table's range. */
static uint64_t
largest_number(bf_table table)
{
	return table.buckets == 0 ? UINT64_MAX : bf_table_range(table) - 1;
}

/* The number of copies that the list counts. */
unsigned
bf_layer_listed(const bf_layer *layer, uint64_t number)
{
	uint64_t	place = bf_list_search(bf_fetch_from_memory, layer->list, 0, layer->count,
									   number, largest_number(layer->table));

	return place < layer->count ? layer->list[(uint64_t) layer->count * 8 + place] : 0;
}

/* The number of copies in the list and in the table. */
unsigned
bf_layer_copies(const bf_layer *layer, uint64_t number)
{
	return bf_layer_listed(layer, number) +
		(layer->form == BF_FORM_TABLE && bf_table_find(layer->data, layer->table, number));
}

/* The number of distinct numbers. */
uint64_t
bf_layer_distinct(bf_host host, const bf_layer *layer)
{
	uint64_t	distinct = layer->used;

	if (layer->form != BF_FORM_TABLE)
		return layer->count;
	for (uint64_t i = 0; i < layer->count; i++)
	{
		uint64_t	number = bf_load64(layer->list + i * 8);

		if (number >= bf_table_range(layer->table) || !bf_table_find(layer->data, layer->table, number))
			distinct++;
		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	return distinct;
}

/*
 * Replace the list of a layer that has a table by a new list of the numbers that are
 * not in the table.  A test needs no others, and few remain.
 */
void
bf_layer_keep_unplaced(bf_host host, bf_layer *layer)
{
	uint8_t    *list = bf_allocate(host, (uint64_t) layer->count * 9);
	uint32_t	n = 0;

	for (uint32_t i = 0; i < layer->count; i++)
	{
		uint64_t	number = bf_load64(layer->list + (size_t) i * 8);

		if (number < bf_table_range(layer->table) && !bf_table_find(layer->data, layer->table, number))
			bf_store64(list + (size_t) n++ * 8, number);
		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	memset(list + (size_t) n * 8, 1, n);	/* counts */
	layer->list = bf_reallocate(host, list, (uint64_t) layer->count * 9, (uint64_t) n * 9 + 1);
	layer->count = n;
}

/*
 * Read the hashes of an unfinished list, each as often as it was added.  Returns
 * their number; NULL only counts them.
 */
uint64_t
bf_layer_read_hashes(const bf_layer *layer, uint64_t *hashes)
{
	bool		counted = layer->form == BF_FORM_COUNTS;
	const uint8_t *list = counted ? layer->list : layer->data;
	uint64_t	n = 0;

	for (uint32_t i = 0; i < layer->count; i++)
	{
		unsigned	copies = counted ? list[(size_t) layer->count * 8 + i] : 1;

		for (unsigned copy = 0; hashes != NULL && copy < copies; copy++)
			hashes[n + copy] = bf_load64(list + (size_t) i * 8);
		n += copies;
	}
	return n;
}

/*
 * May the key with this hash have been added?  All layers may have to be tested, so
 * their lines are prefetched together.
 */
bool
bf_filter_contains(const bf_filter *filter, uint64_t hash)
{
	uint64_t	group_hash;

	if (filter->layers == 1)
		return bf_layer_contains(&filter->layer[0], hash);
	group_hash = bf_group_hash(hash, 0);
	for (unsigned i = filter->layers; i-- > 0;)
	{
		if (filter->layer[i].form == BF_FORM_LINES)
			bf_line_prefetch(filter->layer[i].data, filter->layer[i].shape, group_hash);
	}
	for (unsigned i = filter->layers; i-- > 0;)
	{
		const bf_layer *layer = &filter->layer[i];

		if (layer->form == BF_FORM_LINES ? bf_lines_test_from(layer->data, layer->shape, hash, group_hash) :
			bf_layer_contains(layer, hash))
			return true;
	}
	return false;
}

/* Test many keys; lines are prefetched for a batch at a time. */
void
bf_filter_contains_many(const bf_filter *filter, const uint64_t *hashes, size_t n, bool *found)
{
	if (filter->layers == 1 && filter->layer[0].form == BF_FORM_LINES)
	{
		bf_lines_test_many(filter->header.host, filter->layer[0].data, filter->layer[0].shape, hashes, n, found);
		return;
	}
	for (size_t i = 0; i < n; i++)
	{
		if (filter->layer[0].form == BF_FORM_TABLE && i + BF_BATCH < n)
			bf_table_prefetch(filter->layer[0].data, filter->layer[0].table,
							  bf_table_number(filter->layer[0].table, hashes[i + BF_BATCH]));
		found[i] = bf_filter_contains(filter, hashes[i]);
		if (i % BF_POLL_EVERY == 0)
			bf_poll(filter->header.host);
	}
}

/* Estimates for one layer of any form; those of a list are exact. */
bf_census
bf_layer_census(bf_host host, const bf_layer *layer)
{
	bf_census	census = {0, 0.0, 0.0};

	if (layer->form == BF_FORM_LINES)
		return bf_lines_census(host, layer->data, layer->shape);
	census.keys = (double) bf_layer_distinct(host, layer);
	if (layer->table.buckets == 0)
		census.fpp = census.keys / 18446744073709551616.0;
	else
	{
		/* some keys have the same number: there are more keys than numbers */
		double		range = (double) bf_table_range(layer->table);

		census.bits_set = layer->used;
		census.fpp = census.keys / range;
		census.keys = census.fpp < 1 ? -range * log1p(-census.fpp) : range;
	}
	return census;
}

/*
 * Estimates for all layers.  Keys add up, since a key is in one layer only, and an
 * absent key is reported if any layer reports it.
 */
bf_census
bf_filter_census(const bf_filter *filter)
{
	bf_census	total = {0, 0.0, 0.0};

	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_census	census = bf_layer_census(filter->header.host, &filter->layer[i]);

		total.bits_set += census.bits_set;
		total.keys += census.keys;
		total.fpp = total.fpp + census.fpp - total.fpp * census.fpp;
	}
	return total;
}

/* Is the number in a table that is fetched in pieces? */
static bool
table_contains_pieces(const bf_layer *layer, bf_fetch fetch, void *arg, uint64_t number)
{
	bf_table	table = layer->table;
	uint64_t	value = bf_table_value(table, number);
	uint64_t	bucket = bf_table_bucket(table, number);

	for (unsigned i = 0; i < 2; i++)
	{
		uint64_t	at = bf_bucket_start(table, bucket);

		if (value + i != 0 &&
			bf_bucket_holds(fetch(arg, layer->offset + at / 8, bf_bucket_span(table, at)),
							table.slot_bits, at % 8, value + i))
			return true;
		bucket = bf_table_alternate(table, bucket, value >> 1);
	}
	return false;
}

/* bf_filter_contains for a filter that is fetched in pieces. */
bool
bf_filter_contains_pieces(const bf_filter *filter, bf_fetch fetch, void *arg, uint64_t hash)
{
	for (unsigned i = filter->layers; i-- > 0;)
	{
		const bf_layer *layer = &filter->layer[i];
		unsigned	group = 0;

		if (layer->form != BF_FORM_LINES)
		{
			uint64_t	number = bf_table_number(layer->table, hash);

			if (layer->form == BF_FORM_TABLE && table_contains_pieces(layer, fetch, arg, number))
				return true;
			if (bf_list_search(fetch, arg, layer->list_offset, layer->count, number,
							   largest_number(layer->table)) < layer->count)
				return true;
			continue;
		}
		for (; group < layer->shape.groups; group++)
		{
			uint64_t	group_hash = bf_group_hash(hash, group);
			uint64_t	line = bf_group_line(group_hash, bf_shape_lines(layer->shape));
			unsigned	bits = bf_shape_line_bits(layer->shape);

			if (!bf_line_test(fetch(arg, layer->offset + line * BF_LINE_BYTES, bits / 8),
							  bits, layer->shape.probes, group_hash))
				break;
		}
		if (group == layer->shape.groups)
			return true;
	}
	return false;
}
