/*
 * query.h
 *		Reading a filter: membership, counts, estimates.
 */
#ifndef BF_QUERY_H
#define BF_QUERY_H

#include "format.h"
#include "lines.h"

/* Membership, in memory and in pieces (see bf_filter_open_pieces). */
extern bool bf_filter_contains(const bf_filter *filter, uint64_t hash);
extern void bf_filter_contains_many(const bf_filter *filter, const uint64_t *hashes,
									size_t n, bool *found);
extern bool bf_filter_contains_pieces(const bf_filter *filter, bf_fetch fetch, void *arg, uint64_t hash);

/* Estimates. */
extern bf_census bf_layer_census(bf_host host, const bf_layer *layer);
extern bf_census bf_filter_census(const bf_filter *filter);

/* Of a cuckoo filter. */
extern unsigned bf_layer_listed(const bf_layer *layer, uint64_t number);
extern unsigned bf_layer_copies(const bf_layer *layer, uint64_t number);
extern uint64_t bf_layer_distinct(bf_host host, const bf_layer *layer);
extern void bf_layer_keep_unplaced(bf_host host, bf_layer *layer);

/* Of a list of hashes, in a filter of either kind. */
extern uint64_t bf_layer_read_hashes(const bf_layer *layer, uint64_t *hashes);

static inline bool
bf_layer_contains(const bf_layer *layer, uint64_t hash)
{
	uint64_t	number;

	switch (layer->form)
	{
		case BF_FORM_LIST:
			return bf_list_find(layer->data, layer->count, hash);
		case BF_FORM_LINES:
			return bf_lines_test(layer->data, layer->shape, hash);
		default:
			number = bf_table_number(layer->table, hash);
			if (layer->form == BF_FORM_TABLE && bf_table_find(layer->data, layer->table, number))
				return true;
			return layer->count > 0 && bf_layer_listed(layer, number) > 0;
	}
}

#endif							/* BF_QUERY_H */
