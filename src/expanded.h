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

#define EXPANDED_FILTER_MAGIC	0x46494c54

extern ExpandedFilter *expanded_filter_create(MemoryContext parent);

/* The object behind a Datum, or NULL if that is something else. */
static inline ExpandedFilter *
expanded_filter(Datum value)
{
	ExpandedFilter *expanded;
	varatt_expanded pointer;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return NULL;
	memcpy(&pointer, VARDATA_EXTERNAL(DatumGetPointer(value)), sizeof(pointer));
	expanded = (ExpandedFilter *) pointer.eohptr;
	Assert(VARATT_IS_EXPANDED_HEADER(expanded));
	return expanded->header.vl_len_ == EOH_HEADER_MAGIC && expanded->magic == EXPANDED_FILTER_MAGIC ? expanded : NULL;
}

#endif							/* BF_EXPANDED_H */
