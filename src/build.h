/*
 * build.h
 *		A filter that is being filled, in memory: what the builders of all
 *		filter types have in common.
 */
#ifndef BF_BUILD_H
#define BF_BUILD_H

#include "bloom_build.h"
#include "cuckoo_build.h"

/* Room for a builder of any type. */
typedef union AnyBuilder
{
	FilterBuilder base;
	BloomBuilder bloom;
	CuckooBuilder cuckoo;
} AnyBuilder;

extern const BuilderMethods *builder_methods(uint16 kind);
extern void build_load(AnyBuilder *builder, MemoryContext context, const bf_filter *filter);
extern struct varlena *build_flat(FilterBuilder *builder);

static inline bool
build_contains(FilterBuilder *builder, uint64 hash)
{
	return builder->methods->contains(builder, hash);
}

/*
 * Describe the filter as it stands and return its size.  Settles what is
 * pending, which changes nothing that can be observed.
 */
static inline uint64
build_describe(FilterBuilder *builder, bf_filter *filter)
{
	return builder->methods->describe(builder, filter);
}

/* Write what build_describe described. */
static inline void
build_write(FilterBuilder *builder, bf_filter *filter, uint8 *bytes, Size n)
{
	builder->methods->write(builder, filter, bytes, n);
}

#endif							/* BF_BUILD_H */
