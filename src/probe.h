/*
 * probe.h
 *		Asking a filter for keys, wherever the filter is.
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "access/detoast.h"

#include "filter.h"

/* What a call site keeps between calls, in fn_extra. */
typedef struct FilterProbe
{
	KeyType    *key_type;
	MemoryContext context;		/* of the call site */

	/* the structure of the last flat filter of one layer of lines */
	Size		flat_size;		/* 0: none */
	uint8		flat_header[BF_HEADER_BYTES];

	/* the stored filter probed last */
	Oid			toast_relation;
	Oid			toast_value;
	uint32		probes;			/* how often */
	MemoryContext loaded_context;
	bf_filter  *loaded;			/* NULL if not in memory yet */
	bool		one_layer;		/* it has but one layer */

	bf_filter	filter;			/* room to open one in */
} FilterProbe;

extern FilterProbe *filter_probe_create(FunctionCallInfo fcinfo);
extern bool filter_probe_any(FilterProbe *probe, Datum filter, const KeyClass *class, uint64 hash);
extern void filter_probe_many(FilterProbe *probe, Datum filter, const KeyClass *class,
							 const uint64 *hashes, Size n, bool *found);

static inline FilterProbe *
filter_probe(FunctionCallInfo fcinfo)
{
	FilterProbe *probe = fcinfo->flinfo->fn_extra;

	return likely(probe != NULL) ? probe : filter_probe_create(fcinfo);
}

/*
 * May the filter hold the key?  The usual case is short: the filter that was
 * loaded before, of one layer.
 */
static inline bool
filter_probe_one(FilterProbe *probe, Datum filter, const KeyClass *class, uint64 hash)
{
	if (probe->loaded != NULL && probe->one_layer && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(filter)))
	{
		struct varatt_external pointer;

		VARATT_EXTERNAL_GET_POINTER(pointer, DatumGetPointer(filter));
		if (pointer.va_valueid == probe->toast_value && pointer.va_toastrelid == probe->toast_relation)
		{
			filter_check_class(probe->loaded, class);
			return bf_layer_contains(&probe->loaded->layer[0], hash);
		}
	}
	return filter_probe_any(probe, filter, class, hash);
}

#endif							/* BF_PROBE_H */
