/*
 * mutable.h
 *		A mutable filter of either kind.
 */
#ifndef BF_MUTABLE_H
#define BF_MUTABLE_H

#include "bloom.h"
#include "cuckoo.h"

/* header.kind says which of them it is. */
typedef union bf_mutable
{
	bf_header	header;
	bf_bloom	bloom;
	bf_cuckoo	cuckoo;
} bf_mutable;

/* A change of a filter by some keys. */
typedef enum bf_change
{
	BF_ADD,
	BF_REMOVE					/* cuckoo only */
} bf_change;

extern void bf_mutable_start_state(bf_mutable *filter, bf_host host, uint16_t kind, uint64_t capacity, double fpp);
extern void bf_mutable_load(bf_mutable *filter, bf_host host, const bf_filter *from);
extern void bf_mutable_free(bf_mutable *filter);
extern void bf_mutable_set_class(bf_mutable *filter, const bf_key_class *class);
extern bool bf_mutable_contains(bf_mutable *filter, uint64_t hash);

extern void bf_mutable_change(bf_mutable *filter, bf_change change, const bf_key_class *class,
							  const uint64_t *hashes, size_t n);
extern bool bf_mutable_change_in_place(bf_mutable *filter, bf_change change, const bf_key_class *class,
									   const uint64_t *hashes, size_t n);
extern void bf_mutable_copy(bf_mutable *copy, bf_host host, bf_mutable *filter);

/* Would a change leave a filter as it is?  In memory, and fetched in pieces. */
extern bool bf_change_is_void(const bf_filter *filter, bf_change change, const uint64_t *hashes, size_t n);
extern bool bf_change_is_void_pieces(const bf_filter *filter, bf_fetch fetch, void *arg, bf_change change,
									 const uint64_t *hashes, size_t n);

extern bool bf_mutable_can_merge_state(const bf_mutable *filter, const bf_filter *state);
extern void bf_mutable_merge_state(bf_mutable *filter, const bf_filter *state);

extern uint64_t bf_mutable_describe(bf_mutable *filter, bf_filter *description);
extern void bf_mutable_write(bf_mutable *filter, bf_filter *description, uint8_t *bytes, size_t n);

/* Add one key. */
static inline void
bf_mutable_add(bf_mutable *filter, uint64_t hash)
{
	if (filter->header.kind == BF_KIND_BLOOM)
		bf_bloom_add(&filter->bloom, hash);
	else
		bf_cuckoo_add(&filter->cuckoo, hash);
}

#endif							/* BF_MUTABLE_H */
