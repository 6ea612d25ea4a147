/*
 * agg.h
 *		States of the aggregates, as far as others meet them.
 */
#ifndef BF_AGG_H
#define BF_AGG_H

#include "filter.h"

/* A filter's bytes proper, should the value be an aggregate's state. */
extern struct varlena *agg_settled(struct varlena *value);

#endif							/* BF_AGG_H */
