/*
 * expanded.h
 *		A filter as an expanded object: a builder that is a Datum.
 */
#ifndef BF_EXPANDED_H
#define BF_EXPANDED_H

#include "compat.h"

#include "utils/expandeddatum.h"

#include "build.h"

typedef struct ExpandedFilter
{
	ExpandedObjectHeader header;
	int			magic;
	AnyBuilder	builder;		/* its memory is header.eoh_context */
} ExpandedFilter;

extern ExpandedFilter *expanded_filter_create(MemoryContext parent);
extern ExpandedFilter *expanded_filter(Datum value);

#endif							/* BF_EXPANDED_H */
