/*
 * cuckoo_sets.c
 *		Sums of cuckoo filters, and the merging of aggregates' states.
 *
 * Filters with the same range of numbers are merged number by number: counts add
 * up.
 */
#include "cuckoo.h"

/*
 * Add all that a filter holds: numbers, which are ours too, or hashes if it is
 * unfinished.
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
			/* to make room may choose another range of numbers */
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
		/* it has spilled already, so we have to */
		bf_cuckoo_merge_pending(cuckoo);
		bf_cuckoo_renumber(cuckoo, state->layer[0].table, 0);
		cuckoo->capacity = state->layer[0].capacity;
	}
	cuckoo_add_filter(cuckoo, state);
}

/* Have both filters the same range of numbers and the same parameters? */
bool
bf_cuckoo_can_merge(const bf_cuckoo *cuckoo, const bf_filter *filter)
{
	return bf_table_range(cuckoo->table) == bf_table_range(filter->layer[0].table) &&
		cuckoo->header.fpp == filter->header.fpp && cuckoo->header.growth == filter->header.growth;
}

/*
 * Merge such a filter: counts add up.  The table becomes as large as the larger
 * one, so that the order does not matter.
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

/*
 * Forget the order in which keys came: take all out of the table, from where
 * bf_cuckoo_describe puts them back in ascending order.  That takes 17 bytes a
 * key, so very large filters are left as they are.
 */
void
bf_cuckoo_sort(bf_cuckoo *cuckoo)
{
	if (cuckoo->slots != NULL && cuckoo->used <= BF_MAX_LIST)
		bf_cuckoo_table_to_list(cuckoo);
}
