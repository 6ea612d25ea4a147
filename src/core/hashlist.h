/*
 * hashlist.h
 *		Lists of key hashes: the form of a filter while it holds few keys, and
 *		what an aggregate gathers before it knows how many there are.
 */
#ifndef BF_HASHLIST_H
#define BF_HASHLIST_H

#include "host.h"

/* In memory: native words; sorting takes less than 2^32. */
extern void bf_hashes_sort(bf_host host, uint64_t *hashes, size_t n);
extern size_t bf_hashes_find(const uint64_t *hashes, size_t n, uint64_t hash);
extern size_t bf_hashes_unique(bf_host host, uint64_t *hashes, size_t n);
extern size_t bf_hashes_sort_unique(bf_host host, uint64_t *hashes, size_t n, size_t sorted);

/* In a filter: sorted, distinct, little-endian, at any address. */
extern size_t bf_list_search(const uint8_t *list, size_t n, uint64_t hash, uint64_t largest);
extern bool bf_list_is_sorted(bf_host host, const uint8_t *list, size_t n);
extern void bf_list_read(uint64_t *hashes, const uint8_t *list, size_t n);
extern void bf_list_write(uint8_t *list, const uint64_t *hashes, size_t n);

static inline bool
bf_list_find(const uint8_t *list, size_t n, uint64_t hash)
{
	return bf_list_search(list, n, hash, UINT64_MAX) < n;
}

#endif							/* BF_HASHLIST_H */
