/*
 * bloom_probe.h
 *		Asking a bloom filter for keys, wherever the filter is.
 */
#ifndef BF_BLOOM_PROBE_H
#define BF_BLOOM_PROBE_H

#include "filter.h"

/* What a call site keeps between calls, in fn_extra. */
typedef struct BloomProbe BloomProbe;

extern BloomProbe *bloom_probe(FunctionCallInfo fcinfo);
extern KeyType **bloom_probe_key_type(BloomProbe *probe);
extern bool bloom_probe_one(BloomProbe *probe, Datum filter, const KeyClass *class, uint64 hash);
extern void bloom_probe_many(BloomProbe *probe, Datum filter, const KeyClass *class,
							 const uint64 *hashes, Size n, bool *found);

#endif							/* BF_BLOOM_PROBE_H */
