/*
 * probe.h
 *		Asking a filter for keys, wherever the filter is.
 */
#ifndef BF_PROBE_H
#define BF_PROBE_H

#include "filter.h"

/* What a call site keeps between calls, in fn_extra. */
typedef struct FilterProbe FilterProbe;

extern FilterProbe *filter_probe(FunctionCallInfo fcinfo);
extern KeyType **filter_probe_key_type(FilterProbe *probe);
extern bool filter_probe_one(FilterProbe *probe, Datum filter, const KeyClass *class, uint64 hash);
extern void filter_probe_many(FilterProbe *probe, Datum filter, const KeyClass *class,
							 const uint64 *hashes, Size n, bool *found);

#endif							/* BF_PROBE_H */
