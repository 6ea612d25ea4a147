/*
 * agg.h
 *		States of the aggregates, as far as others meet them.
 */
#ifndef BF_AGG_H
#define BF_AGG_H

#include "filter.h"

/* A filter's bytes proper, should the value be an aggregate's state. */
extern struct varlena *agg_settled(struct varlena *value);

/* Where the state of the calling aggregate lives; an error for other callers. */
extern MemoryContext agg_context(FunctionCallInfo fcinfo);

#endif							/* BF_AGG_H */
