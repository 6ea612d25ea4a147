/*
 * builder.h
 *		Mutable filters as flat values and as expanded objects.
 */
#ifndef BF_BUILDER_H
#define BF_BUILDER_H

#include "compat.h"

#include "utils/expandeddatum.h"

#include "core/mutable.h"
#include "server.h"
#include "value.h"

/*
 * A mutable filter as an expanded object.  The filter has its own memory context, a
 * child of the object's, so that another filter can replace it.
 */
typedef struct FilterObject
{
	ExpandedObjectHeader header;
	int			magic;
	bool		is_state;		/* of bloom_agg or cuckoo_agg: not a finished
								 * filter */
	MemoryContext context;		/* of the filter's memory */
	bf_mutable	filter;
} FilterObject;

#define FILTER_OBJECT_MAGIC	0x46494c54

extern FilterObject *filter_object_create(MemoryContext parent);
extern void filter_object_change(FilterObject *object, bf_change change, const KeyClass *class,
								 const uint64 *hashes, Size n);

static inline bf_host
filter_object_host(FilterObject *object)
{
	return server_host(object->context);
}

/* A read-write Datum of the object. */
static inline Datum
filter_object_datum(FilterObject *object)
{
	return EOHPGetRWDatum(&object->header);
}

/* The object that a Datum refers to, or NULL if it is not one of ours. */
static inline FilterObject *
filter_object(Datum value)
{
	FilterObject *object;
	varatt_expanded pointer;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return NULL;
	memcpy(&pointer, VARDATA_EXTERNAL(DatumGetPointer(value)), sizeof(pointer));
	object = (FilterObject *) pointer.eohptr;
	Assert(VARATT_IS_EXPANDED_HEADER(object));
	return object->header.vl_len_ == EOH_HEADER_MAGIC && object->magic == FILTER_OBJECT_MAGIC ? object : NULL;
}

/* The same for a read-write Datum; NULL for others. */
static inline FilterObject *
filter_object_to_change(Datum value)
{
	return VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value)) ? filter_object(value) : NULL;
}

/* Raise an error if the object is a state of an aggregate. */
static inline void
filter_object_check(const FilterObject *object)
{
	if (object->is_state)
		value_refuse_unfinished();
}

/* Return an argument unchanged; an error if it is a state of an aggregate. */
static inline Datum
filter_unchanged(Datum value)
{
	const FilterObject *object = filter_object(value);

	if (object != NULL)
		filter_object_check(object);
	else
		(void) value_finished(PG_DETOAST_DATUM_SLICE(value, 0, BF_HEADER_BYTES));
	return value;
}

/* Flat values: of a filter, and of the finished filter of an aggregate. */
extern struct varlena *builder_flat(bf_mutable *filter);
extern struct varlena *builder_finish(bf_mutable *filter);

#endif							/* BF_BUILDER_H */
