/*
 * cuckoo_sets.c
 *		Sums and differences of cuckoo filters, and merging states of aggregates.
 *
 * Filters with the same range of numbers are merged number by number, and their
 * counts are added.  Subtracting works in the same way.
 */
#include "cuckoo.h"
#include "query.h"

/*
 * Add the contents of a filter: numbers of the same range, or hashes if the filter
 * is unfinished.
 */
static void
cuckoo_add_filter(bf_cuckoo *cuckoo, const bf_filter *filter)
{
	const bf_layer *from = &filter->layer[0];
	const uint8_t *counts = from->list + (size_t) from->count * 8;

	bf_cuckoo_check_listed(cuckoo, from);
	if (from->form == BF_FORM_TABLE)
		bf_cuckoo_add_table(cuckoo, from->data, from->table, 0);
	for (uint32_t i = 0; i < from->count; i++)
	{
		uint64_t	value = bf_load64(from->list + (size_t) i * 8);

		if (from->table.buckets > 0)
			bf_cuckoo_add_copies(cuckoo, value, counts[i]);
		else
		{
			/* making room may choose another range of numbers */
			for (unsigned copy = 0; copy < counts[i]; copy++)
				bf_cuckoo_add(cuckoo, value);
		}
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(cuckoo->header.host);
	}
}

/* Is the value a state of the same aggregate call? */
bool
bf_cuckoo_can_merge_state(const bf_cuckoo *cuckoo, const bf_filter *state)
{
	const bf_layer *other = &state->layer[0];

	if (state->header.fpp != cuckoo->header.fpp || state->header.growth != cuckoo->header.growth)
		return false;
	if (cuckoo->table.buckets > 0 && other->table.buckets > 0)
		return bf_table_range(cuckoo->table) == bf_table_range(other->table);
	return cuckoo->table.buckets > 0 || other->table.buckets > 0 || cuckoo->capacity == other->capacity;
}

/* Merge such a state. */
void
bf_cuckoo_merge_state(bf_cuckoo *cuckoo, const bf_filter *state)
{
	bf_assert(bf_cuckoo_can_merge_state(cuckoo, state));
	if (cuckoo->table.buckets == 0 && state->layer[0].table.buckets > 0)
	{
		/* the other state has a table, so this one needs the same range */
		bf_cuckoo_merge_pending(cuckoo);
		bf_cuckoo_renumber(cuckoo, state->layer[0].table, 0);
		cuckoo->capacity = state->layer[0].capacity;
	}
	cuckoo_add_filter(cuckoo, state);
}

/* Do both filters have the same range of numbers and the same parameters? */
bool
bf_cuckoo_can_merge(const bf_cuckoo *cuckoo, const bf_filter *filter)
{
	return bf_table_range(cuckoo->table) == bf_table_range(filter->layer[0].table) &&
		cuckoo->header.fpp == filter->header.fpp && cuckoo->header.growth == filter->header.growth;
}

/*
 * Merge such a filter: counts are added.  The table gets the size of the larger one,
 * so that the order of the filters does not matter.
 */
void
bf_cuckoo_merge(bf_cuckoo *cuckoo, const bf_filter *filter)
{
	const bf_layer *other = &filter->layer[0];

	bf_assert(bf_cuckoo_can_merge(cuckoo, filter));
	if (other->table.buckets == cuckoo->table.buckets)
		cuckoo->capacity = cuckoo->capacity > other->capacity ? cuckoo->capacity : other->capacity;
	else if (other->table.buckets > cuckoo->table.buckets)
	{
		if (cuckoo->slots != NULL)
			bf_cuckoo_move_to_table(cuckoo, other->table, other->capacity);
		cuckoo->table = other->table;
		cuckoo->capacity = other->capacity;
	}
	cuckoo_add_filter(cuckoo, filter);
}

/* A walk over the distinct numbers of a filter. */
typedef struct Cursor
{
	const bf_filter *filter;
	uint64_t	slot;			/* of the table */
	bool		past_table;
	uint32_t	listed;			/* next place in the list */
	uint64_t	seen;
} Cursor;

/* The next number and its copies; false at the end. */
static bool
next_number(Cursor *cursor, uint64_t *number, unsigned *copies)
{
	const bf_layer *layer = &cursor->filter->layer[0];
	bf_host		host = cursor->filter->header.host;

	if (++cursor->seen % BF_POLL_EVERY == 0)
		bf_poll(host);
	if (!cursor->past_table && layer->form == BF_FORM_TABLE &&
		bf_table_next(host, layer->data, layer->table, &cursor->slot, number))
	{
		*copies = 1 + (layer->count > 0 ? bf_layer_listed(layer, *number) : 0);
		return true;
	}
	cursor->past_table = true;
	while (cursor->listed < layer->count)
	{
		uint32_t	place = cursor->listed++;

		*number = bf_load64(layer->list + (size_t) place * 8);
		*copies = layer->list[(size_t) layer->count * 8 + place];
		if (layer->form != BF_FORM_TABLE || !bf_table_find(layer->data, layer->table, *number))
			return true;
	}
	return false;
}

/*
 * Subtract such a filter: its counts are subtracted.  A count that has reached its
 * limit stays.  False, and nothing has changed, if a number has fewer copies than
 * should be subtracted, since that would remove other keys of the same number;
 * *there and *wanted are the two counts.
 */
bool
bf_cuckoo_subtract(bf_cuckoo *cuckoo, const bf_filter *filter, unsigned *there, unsigned *wanted)
{
	Cursor		cursor = {.filter = filter};
	uint64_t	number;

	bf_assert(bf_cuckoo_can_merge(cuckoo, filter));
	bf_cuckoo_check_listed(cuckoo, &filter->layer[0]);
	bf_cuckoo_merge_pending(cuckoo);
	while (next_number(&cursor, &number, wanted))
	{
		*there = bf_cuckoo_copies(cuckoo, number);
		if (*there < *wanted && *there < BF_MAX_COUNT)
			return false;
	}
	cursor = (Cursor) {.filter = filter};
	while (next_number(&cursor, &number, wanted))
		bf_cuckoo_remove_copies(cuckoo, number, *wanted);
	return true;
}

/*
 * Make the table independent of the order of insertion: move all numbers to the
 * list, from which bf_cuckoo_describe inserts them in ascending order.  That takes
 * 17 bytes per key, so very large filters are left as they are.
 */
void
bf_cuckoo_sort(bf_cuckoo *cuckoo)
{
	if (cuckoo->slots != NULL && cuckoo->used <= BF_MAX_LIST)
		bf_cuckoo_table_to_list(cuckoo);
}
