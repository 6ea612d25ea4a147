/*
 * builder.c
 *		Mutable filters as flat values and as expanded objects.
 *
 * Large states of aggregates are expanded objects, and so are PL/pgSQL variables that
 * are changed in place, since PostgreSQL 18.  They can grow, and the executor treats
 * them as values of the filter's type.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "builder.h"

/* ----------------------------------------------------------------
 * Flat values
 * ----------------------------------------------------------------
 */

/* Make a flat value; the state of an aggregate becomes an unfinished filter. */
struct varlena *
builder_flat(bf_mutable *filter)
{
	bf_filter	description;
	uint64		size = bf_mutable_describe(filter, &description);
	struct varlena *image = value_allocate(size);

	bf_mutable_write(filter, &description, (uint8 *) VARDATA(image), (Size) size);
	return image;
}

/*
 * Make the finished filter of an aggregate.  The state stays usable, because a window
 * frame may continue to add to it.
 */
struct varlena *
builder_finish(bf_mutable *filter)
{
	struct varlena *image;

	if (filter->header.kind == BF_KIND_BLOOM)
	{
		bf_filter	description;
		uint64		size = bf_bloom_finish(&filter->bloom, &description);

		image = value_allocate(size);
		bf_bloom_write(&filter->bloom, &description, (uint8 *) VARDATA(image), (Size) size);
	}
	else
	{
		bf_mutable	finished;

		bf_cuckoo_finish(&filter->cuckoo, &finished.cuckoo, server_host(NULL));
		image = builder_flat(&finished);
		bf_mutable_free(&finished);
	}
	return image;
}

/* ----------------------------------------------------------------
 * Expanded objects
 * ----------------------------------------------------------------
 */

/* Describe the flat form, into which the server converts an object to store or send it. */
static uint64
filter_object_describe(FilterObject *object, bf_filter *description)
{
	if (object->filter.header.kind == BF_KIND_BLOOM)
		return bf_bloom_describe_to_travel(&object->filter.bloom, description);
	return bf_mutable_describe(&object->filter, description);
}

static Size
filter_object_flat_size(ExpandedObjectHeader *header)
{
	bf_filter	description;
	uint64		size = filter_object_describe((FilterObject *) header, &description);

	if (size + VARHDRSZ > BF_MAX_BYTES)
		bf_fail(server_host(NULL), BF_FAIL_BYTES, size + VARHDRSZ, NULL);
	return (Size) size + VARHDRSZ;
}

static void
filter_object_flatten(ExpandedObjectHeader *header, void *result, Size allocated_size)
{
	FilterObject *object = (FilterObject *) header;
	bf_filter	description;

	(void) filter_object_describe(object, &description);
	SET_VARSIZE(result, allocated_size);
	bf_mutable_write(&object->filter, &description, (uint8 *) VARDATA(result), allocated_size - VARHDRSZ);
}

static const ExpandedObjectMethods filter_object_methods = {filter_object_flat_size, filter_object_flatten};

static MemoryContext
create_filter_context(MemoryContext parent)
{
	return AllocSetContextCreate(parent, "filter", ALLOCSET_START_SMALL_SIZES);
}

/* Create an object without a filter; the caller starts or loads that. */
FilterObject *
filter_object_create(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "filter object", ALLOCSET_START_SMALL_SIZES);
	FilterObject *object = MemoryContextAllocZero(context, sizeof(FilterObject));

	EOH_init_header(&object->header, &filter_object_methods, context);
	object->magic = FILTER_OBJECT_MAGIC;
	object->context = create_filter_context(context);
	return object;
}

/*
 * Change an object atomically: in place, or in a copy that replaces the filter.  If
 * an error is raised, the copy is freed with the caller's context.
 */
void
filter_object_change(FilterObject *object, bf_change change, const KeyClass *class, const uint64 *hashes, Size n)
{
	MemoryContext context;
	bf_mutable	copy;

	if (bf_mutable_change_in_place(&object->filter, change, class, hashes, n))
		return;
	context = create_filter_context(CurrentMemoryContext);
	bf_mutable_copy(&copy, server_host(context), &object->filter);
	bf_mutable_change(&copy, change, class, hashes, n);

	/* nothing fails from here on */
	MemoryContextSetParent(context, object->header.eoh_context);
	MemoryContextDelete(object->context);
	object->context = context;
	object->filter = copy;
}
