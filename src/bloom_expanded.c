/*
 * bloom_expanded.c
 *		A bloom filter as an expanded object: a builder that is a Datum.
 *
 * Large aggregate states take this form: they can grow in place, and still
 * pass for a value of type bloom wherever the executor puts them.  Flattened,
 * a state that is not sized yet is a list of hashes, so that parallel workers
 * can be merged to an exact size.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "bloom_expanded.h"

#define EXPANDED_BLOOM_MAGIC	0x424c4f4d

static Size
get_flat_size(ExpandedObjectHeader *header)
{
	bf_filter	filter;
	uint64		size = build_describe(&((ExpandedBloom *) header)->builder, &filter);

	filter_check_size(size + BF_LENGTH_WORD);
	return (Size) size + VARHDRSZ;
}

static void
flatten_into(ExpandedObjectHeader *header, void *result, Size allocated_size)
{
	BloomBuilder *builder = &((ExpandedBloom *) header)->builder;
	bf_filter	filter;

	build_describe(builder, &filter);
	SET_VARSIZE(result, allocated_size);
	build_write(builder, &filter, (uint8 *) VARDATA(result), allocated_size - VARHDRSZ);
}

static const ExpandedObjectMethods methods = {get_flat_size, flatten_into};

/* An object without a filter yet: the caller starts or loads its builder. */
ExpandedBloom *
expanded_bloom_create(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "bloom filter", ALLOCSET_START_SMALL_SIZES);
	ExpandedBloom *expanded = MemoryContextAllocZero(context, sizeof(ExpandedBloom));

	EOH_init_header(&expanded->header, &methods, context);
	expanded->magic = EXPANDED_BLOOM_MAGIC;
	return expanded;
}

/* The object behind a Datum, or NULL if that is something else. */
ExpandedBloom *
expanded_bloom(Datum value)
{
	ExpandedBloom *expanded;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return NULL;
	expanded = (ExpandedBloom *) DatumGetEOHP(value);
	return expanded->magic == EXPANDED_BLOOM_MAGIC ? expanded : NULL;
}
