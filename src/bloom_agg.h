/*
 * bloom_agg.h
 *		States of the bloom aggregates, as far as others meet them.
 */
#ifndef BF_BLOOM_AGG_H
#define BF_BLOOM_AGG_H

#include "filter.h"

/* A filter's bytes proper, should the value be an aggregate's state. */
extern struct varlena *bloom_settled(struct varlena *value);

#endif							/* BF_BLOOM_AGG_H */
