/*
 * accumulator.c
 *		An array of key hashes that is appended to, sorted and deduplicated.
 *
 * Layers of Bloom filters, pending copies of cuckoo filters, index builds and
 * filters in joins collect hashes here, to count the distinct ones.  Appending
 * and a radix sort take less time and memory than a hash table.  The small state
 * of an aggregate is the exception: it is an array inside of a varlena, which the
 * server copies; see aggregate.c.
 *
 * The owner calls bf_accumulator_make_room when the array is full, or decides by
 * itself between sorting and a larger array, as bloom.c does.
 */
#include "accumulator.h"

/* Hashes behind the sorted prefix that a search compares one by one. */
#define LONGEST_TAIL	1024

/* Begin an empty array with room for this number of hashes. */
void
bf_accumulator_start(bf_host host, bf_accumulator *accumulator, uint64_t room)
{
	accumulator->hashes = bf_allocate(host, sizeof(uint64_t) * room);
	accumulator->n = accumulator->sorted = 0;
	accumulator->room = room;
}

/* Enlarge the array to this room, unless it has as much. */
void
bf_accumulator_reserve(bf_host host, bf_accumulator *accumulator, uint64_t room)
{
	if (room <= accumulator->room)
		return;
	accumulator->hashes = bf_reallocate(host, accumulator->hashes, sizeof(uint64_t) * accumulator->room,
										sizeof(uint64_t) * room);
	accumulator->room = room;
}

/*
 * Make room in a full array of at most `most` hashes: double it, or drop
 * repetitions.  False if more than half of the array is still in use then; the
 * caller stops collecting or empties the array, since the next sort would follow too soon.
 */
bool
bf_accumulator_make_room(bf_host host, bf_accumulator *accumulator, uint64_t most)
{
	most = most < BF_MAX_SORTED ? most : BF_MAX_SORTED;
	if (accumulator->room < most)
	{
		bf_accumulator_reserve(host, accumulator, accumulator->room * 2 < most ? accumulator->room * 2 : most);
		return true;
	}
	bf_accumulator_sort(host, accumulator);
	return accumulator->n <= accumulator->room / 2;
}

/* Sort the hashes and drop repetitions. */
void
bf_accumulator_sort(bf_host host, bf_accumulator *accumulator)
{
	uint64_t	sorted = accumulator->sorted;

	accumulator->sorted = 0;	/* not sorted if a poll raises an error */
	accumulator->n = accumulator->sorted =
		bf_hashes_sort_unique(host, accumulator->hashes, (size_t) accumulator->n, (size_t) sorted);
}

/* Is the hash there? */
bool
bf_accumulator_contains(bf_host host, bf_accumulator *accumulator, uint64_t hash)
{
	if (accumulator->n - accumulator->sorted > LONGEST_TAIL)
		bf_accumulator_sort(host, accumulator);
	for (uint64_t i = accumulator->sorted; i < accumulator->n; i++)
	{
		if (accumulator->hashes[i] == hash)
			return true;
	}
	return bf_hashes_find(accumulator->hashes, (size_t) accumulator->sorted, hash) < accumulator->sorted;
}

/* Release the array.  The accumulator need not have been started. */
void
bf_accumulator_free(bf_host host, bf_accumulator *accumulator)
{
	bf_release(host, accumulator->hashes);
	*accumulator = (bf_accumulator) {NULL, 0, 0, 0};
}
