/*
 * agg.h
 *		States of the aggregates, as far as others meet them.
 */
#ifndef BF_AGG_H
#define BF_AGG_H

#include "filter.h"

/*
 * Can a value of this size, with a header of four bytes, be a state that is flat?
 * Their sizes are four bytes short of a multiple of 64, as only those of filters
 * are that are not known by their size alone.
 */
static inline bool
agg_is_state_size(Size size)
{
	return size % 64 == 60;
}

/* A filter's bytes proper, should the value be an aggregate's state. */
extern struct varlena *agg_settled(struct varlena *value);

/* Where the state of the calling aggregate lives; an error for other callers. */
extern MemoryContext agg_context(FunctionCallInfo fcinfo);

#endif							/* BF_AGG_H */
