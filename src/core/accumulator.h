/*
 * accumulator.h
 *		An array of key hashes that is appended to, sorted and deduplicated.
 */
#ifndef BF_ACCUMULATOR_H
#define BF_ACCUMULATOR_H

#include "hashlist.h"

typedef struct bf_accumulator
{
	uint64_t   *hashes;			/* NULL before the start and after the end */
	uint64_t	n;				/* used in `hashes` */
	uint64_t	sorted;			/* length of the sorted, distinct prefix */
	uint64_t	room;			/* allocated in `hashes` */
} bf_accumulator;

extern void bf_accumulator_start(bf_host host, bf_accumulator *accumulator, uint64_t room);
extern void bf_accumulator_reserve(bf_host host, bf_accumulator *accumulator, uint64_t room);
extern bool bf_accumulator_make_room(bf_host host, bf_accumulator *accumulator, uint64_t most);
extern void bf_accumulator_sort(bf_host host, bf_accumulator *accumulator);
extern bool bf_accumulator_contains(bf_host host, bf_accumulator *accumulator, uint64_t hash);
extern void bf_accumulator_free(bf_host host, bf_accumulator *accumulator);

/* Is there no room for another hash? */
static inline bool
bf_accumulator_is_full(const bf_accumulator *accumulator)
{
	return accumulator->n == accumulator->room;
}

/* Append a hash; the caller has made room for it. */
static inline void
bf_accumulator_add(bf_accumulator *accumulator, uint64_t hash)
{
	bf_assert(accumulator->n < accumulator->room);
	accumulator->hashes[accumulator->n++] = hash;
}

#endif							/* BF_ACCUMULATOR_H */
