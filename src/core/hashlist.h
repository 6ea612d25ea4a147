/*
 * hashlist.h
 *		Sorting, searching and storing lists of 64-bit key hashes.
 *
 * Filters with few keys are stored as a list, and aggregates collect hashes in an
 * array until the number of keys is known.
 */
#ifndef BF_HASHLIST_H
#define BF_HASHLIST_H

#include "host.h"

/* The longest array that can be sorted: buckets are counted in 32 bits. */
#define BF_MAX_SORTED	UINT32_MAX

/* In memory: arrays of native words. */
extern void bf_hashes_sort(bf_host host, uint64_t *hashes, size_t n);
extern size_t bf_hashes_sort_unique(bf_host host, uint64_t *hashes, size_t n, size_t sorted);
extern size_t bf_hashes_drop_repetitions(bf_host host, uint64_t *hashes, size_t n);
extern size_t bf_hashes_find(const uint64_t *hashes, size_t n, uint64_t hash);

/* In a filter: sorted, distinct, little-endian, at any address. */
extern bool bf_list_find(const uint8_t *list, size_t n, uint64_t hash);
extern bool bf_list_is_sorted(bf_host host, const uint8_t *list, size_t n);
extern void bf_list_read(uint64_t *hashes, const uint8_t *list, size_t n);
extern void bf_list_write(uint8_t *list, const uint64_t *hashes, size_t n);

/*
 * Fetches a piece of a filter that is stored elsewhere, so that a probe need not
 * read all of it.  A piece stays valid until the next one is fetched.
 */
typedef const uint8_t *(*bf_fetch) (void *arg, uint64_t offset, size_t n);

extern const uint8_t *bf_fetch_from_memory(void *arg, uint64_t offset, size_t n);
extern uint64_t bf_list_search(bf_fetch fetch, void *arg, uint64_t offset, uint64_t n,
							   uint64_t number, uint64_t largest);

#endif							/* BF_HASHLIST_H */
