/*
 * cuckoo.h
 *		The mutable cuckoo filter, through which every cuckoo filter is made and
 *		changed.
 */
#ifndef BF_CUCKOO_H
#define BF_CUCKOO_H

#include "accumulator.h"
#include "format.h"

/*
 * The filter is a multiset of numbers (see table.h).  Its table has a number
 * once or not at all; its list counts all other copies.  Copies that were added
 * recently are pending: they wait in an array, unsorted, to be merged into the
 * list.
 */
typedef struct bf_cuckoo
{
	bf_header	header;
	bf_table	table;			/* no buckets: chosen at the end */
	uint64_t	capacity;		/* 0: chosen at the end */
	uint8_t    *slots;			/* of the table, if there is one yet */
	uint64_t	used;			/* slots in use */
	uint64_t   *numbers;		/* the list, ascending */
	uint8_t    *counts;			/* of each number: 0 after it was deleted */
	uint32_t	listed;			/* used in `numbers` and `counts` */
	uint32_t	list_room;
	bf_accumulator pending;		/* its sorted prefix is not used: repetitions
								 * are copies */
	bool		has_holes;		/* some counts are 0 */
	bool		was_placed;		/* a number of the list may have got a slot,
								 * so that its count is too high */
} bf_cuckoo;

/* Making one. */
extern void bf_cuckoo_start(bf_cuckoo *cuckoo, bf_host host, bf_table table, uint64_t capacity, double fpp);
extern void bf_cuckoo_start_state(bf_cuckoo *cuckoo, bf_host host, uint64_t capacity, double fpp);
extern void bf_cuckoo_load(bf_cuckoo *cuckoo, bf_host host, const bf_filter *filter);
extern void bf_cuckoo_free(bf_cuckoo *cuckoo);

/* Adding, removing and testing keys. */
extern void bf_cuckoo_make_room(bf_cuckoo *cuckoo);
extern void bf_cuckoo_add_to_table(bf_cuckoo *cuckoo, uint64_t number);
extern void bf_cuckoo_add_many(bf_cuckoo *cuckoo, const uint64_t *hashes, size_t n);
extern void bf_cuckoo_remove_many(bf_cuckoo *cuckoo, const uint64_t *hashes, size_t n);
extern bool bf_cuckoo_reserve(bf_cuckoo *cuckoo, size_t n);
extern bool bf_cuckoo_reserve_removal(bf_cuckoo *cuckoo, size_t n);
extern bool bf_cuckoo_contains(bf_cuckoo *cuckoo, uint64_t hash);
extern bool bf_cuckoo_is_empty(const bf_cuckoo *cuckoo);

/* Sums and differences: see cuckoo_sets.c. */
extern bool bf_cuckoo_can_merge_state(const bf_cuckoo *cuckoo, const bf_filter *state);
extern void bf_cuckoo_merge_state(bf_cuckoo *cuckoo, const bf_filter *state);
extern bool bf_cuckoo_can_merge(const bf_cuckoo *cuckoo, const bf_filter *filter);
extern void bf_cuckoo_merge(bf_cuckoo *cuckoo, const bf_filter *filter);
extern bool bf_cuckoo_subtract(bf_cuckoo *cuckoo, const bf_filter *filter, unsigned *there, unsigned *wanted);
extern void bf_cuckoo_sort(bf_cuckoo *cuckoo);

/* For cuckoo_sets.c. */
extern void bf_cuckoo_check_listed(const bf_cuckoo *cuckoo, const bf_layer *layer);
extern void bf_cuckoo_merge_pending(bf_cuckoo *cuckoo);
extern void bf_cuckoo_renumber(bf_cuckoo *cuckoo, bf_table table, unsigned drop_bits);
extern void bf_cuckoo_table_to_list(bf_cuckoo *cuckoo);
extern void bf_cuckoo_move_to_table(bf_cuckoo *cuckoo, bf_table table, uint64_t capacity);
extern unsigned bf_cuckoo_copies(const bf_cuckoo *cuckoo, uint64_t number);
extern void bf_cuckoo_remove_copies(bf_cuckoo *cuckoo, uint64_t number, unsigned copies);
extern void bf_cuckoo_add_copies(bf_cuckoo *cuckoo, uint64_t number, unsigned copies);
extern void bf_cuckoo_add_table(bf_cuckoo *cuckoo, const uint8_t *slots, bf_table table, unsigned drop_bits);

/* The filter as bytes: describe it, allocate what it needs, write it. */
extern uint64_t bf_cuckoo_describe(bf_cuckoo *cuckoo, bf_filter *filter);
extern void bf_cuckoo_finish(bf_cuckoo *cuckoo, bf_cuckoo *finished, bf_host host);
extern void bf_cuckoo_write(bf_cuckoo *cuckoo, bf_filter *filter, uint8_t *bytes, size_t n);

/* Add one copy of a number. */
static inline void
bf_cuckoo_add_number(bf_cuckoo *cuckoo, uint64_t number)
{
	if (cuckoo->slots != NULL)
		bf_cuckoo_add_to_table(cuckoo, number);
	else
		bf_accumulator_add(&cuckoo->pending, number);
}

/* Add one copy of a key. */
static inline void
bf_cuckoo_add(bf_cuckoo *cuckoo, uint64_t hash)
{
	/* this may choose the range of numbers */
	if (bf_unlikely(bf_accumulator_is_full(&cuckoo->pending)))
		bf_cuckoo_make_room(cuckoo);
	bf_cuckoo_add_number(cuckoo, bf_table_number(cuckoo->table, hash));
}

#endif							/* BF_CUCKOO_H */
