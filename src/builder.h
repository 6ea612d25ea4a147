/*
 * builder.h
 *		A mutable filter in the server, also as a Datum.
 */
#ifndef BF_BUILDER_H
#define BF_BUILDER_H

#include "compat.h"

#include "utils/expandeddatum.h"

#include "core/mutable.h"
#include "server.h"
#include "value.h"

/*
 * A mutable filter that is a Datum: an expanded object.  Its filter has a memory
 * context of its own, a child of the object's, so that another filter can take
 * its place.
 */
typedef struct FilterObject
{
	ExpandedObjectHeader header;
	int			magic;
	bool		is_state;		/* of bloom_agg or cuckoo_agg: not a filter
								 * yet */
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

/* Whoever has this Datum may change the object. */
static inline Datum
filter_object_datum(FilterObject *object)
{
	return EOHPGetRWDatum(&object->header);
}

/* The object behind a Datum, or NULL if that is something else. */
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

/* The same, if it may be changed. */
static inline FilterObject *
filter_object_to_change(Datum value)
{
	return VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value)) ? filter_object(value) : NULL;
}

/* Functions of filters refuse objects that are not one. */
static inline void
filter_object_check(const FilterObject *object)
{
	if (object->is_state)
		value_refuse_unfinished();
}

/* The same for any value that is returned as it came. */
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

/* The filter as a flat value: as it stands, or as an aggregate finishes it. */
extern struct varlena *builder_flat(bf_mutable *filter);
extern struct varlena *builder_finish(bf_mutable *filter);

#endif							/* BF_BUILDER_H */
