/*
 * bloom_expanded.h
 *		A bloom filter as an expanded object: a builder that is a Datum.
 */
#ifndef BF_BLOOM_EXPANDED_H
#define BF_BLOOM_EXPANDED_H

#include "compat.h"

#include "utils/expandeddatum.h"

#include "bloom_build.h"

typedef struct ExpandedBloom
{
	ExpandedObjectHeader header;
	int			magic;
	BloomBuilder builder;		/* its memory is header.eoh_context */
} ExpandedBloom;

extern ExpandedBloom *expanded_bloom_create(MemoryContext parent);
extern ExpandedBloom *expanded_bloom(Datum value);

#endif							/* BF_BLOOM_EXPANDED_H */
