/*
 * aggregate.h
 *		The aggregates: what other files use of them.
 */
#ifndef BF_AGGREGATE_H
#define BF_AGGREGATE_H

#include "compat.h"

/* A value for output: a state becomes an unfinished filter. */
extern struct varlena *aggregate_export(struct varlena *image);

/* The memory context of the calling aggregate; an error for other callers. */
extern MemoryContext aggregate_context(FunctionCallInfo fcinfo);

#endif							/* BF_AGGREGATE_H */
