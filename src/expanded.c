/*
 * expanded.c
 *		A filter as an expanded object: a builder that is a Datum.
 *
 * Large aggregate states take this form: they can grow in place, and still
 * pass for a value of the filter type wherever the executor puts them.  Flattened,
 * a state that is not sized yet is a list of hashes, so that parallel workers
 * can be merged to an exact size.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "expanded.h"

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	bf_filter	filter;
	uint64		size = build_describe(&((ExpandedFilter *) header)->builder.base, &filter);

	filter_check_size(size + BF_LENGTH_WORD);
	return (Size) size + VARHDRSZ;
}

static void
flatten_into(ExpandedObjectHeader *header, void *result, Size allocated_size)
{
	FilterBuilder *builder = &((ExpandedFilter *) header)->builder.base;
	bf_filter	filter;

	build_describe(builder, &filter);
	SET_VARSIZE(result, allocated_size);
	build_write(builder, &filter, (uint8 *) VARDATA(result), allocated_size - VARHDRSZ);
}

static const ExpandedObjectMethods methods = {get_flat_size, flatten_into};

/* An object without a filter yet: the caller starts or loads its builder. */
ExpandedFilter *
expanded_filter_create(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "filter", ALLOCSET_START_SMALL_SIZES);
	ExpandedFilter *expanded = MemoryContextAllocZero(context, sizeof(ExpandedFilter));

	EOH_init_header(&expanded->header, &methods, context);
	expanded->magic = EXPANDED_FILTER_MAGIC;
	return expanded;
}
