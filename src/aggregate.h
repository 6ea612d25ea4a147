/*
 * aggregate.h
 *		The aggregates, as far as other files meet them.
 */
#ifndef BF_AGGREGATE_H
#define BF_AGGREGATE_H

#include "compat.h"

/* What is to be printed or sent: a state becomes an unfinished filter. */
extern struct varlena *aggregate_export(struct varlena *image);

/* Where the state of the calling aggregate lives; an error for other callers. */
extern MemoryContext aggregate_context(FunctionCallInfo fcinfo);

#endif							/* BF_AGGREGATE_H */
