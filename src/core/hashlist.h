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
extern size_t bf_hashes_sort_unique(bf_host host, uint64_t *hashes, size_t n, size_t sorted);

/* In a filter: sorted, distinct, little-endian, at any address. */
extern bool bf_list_is_sorted(bf_host host, const uint8_t *list, size_t n);
extern void bf_list_read(uint64_t *hashes, const uint8_t *list, size_t n);
extern void bf_list_write(uint8_t *list, const uint64_t *hashes, size_t n);

/*
 * A filter may be stored elsewhere, and only few of its bytes be wanted: they are
 * fetched in pieces.  A piece stays valid until the next one is fetched.
 */
typedef const uint8_t *(*bf_fetch) (void *arg, uint64_t offset, size_t n);

extern const uint8_t *bf_fetch_from_memory(void *arg, uint64_t offset, size_t n);
extern uint64_t bf_list_search(bf_fetch fetch, void *arg, uint64_t offset, uint64_t n,
							   uint64_t number, uint64_t largest);

extern bool bf_list_find(const uint8_t *list, size_t n, uint64_t hash);

#endif							/* BF_HASHLIST_H */
