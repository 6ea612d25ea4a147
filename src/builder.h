/*
 * builder.h
 *		The part of a builder that does not depend on the type of its filter.
 */
#ifndef BF_BUILDER_H
#define BF_BUILDER_H

#include "filter.h"

typedef struct FilterBuilder FilterBuilder;

/* What a type of filter does in its own way. */
typedef struct BuilderMethods
{
	FilterType	type;

	/* continue a filter that exists, without reference to it later */
	void		(*load) (FilterBuilder *builder, MemoryContext context, const bf_filter *filter);
	void		(*add_many) (FilterBuilder *builder, const uint64 *hashes, Size n);
	bool		(*contains) (FilterBuilder *builder, uint64 hash);
	uint64		(*describe) (FilterBuilder *builder, bf_filter *filter);
	void		(*write) (FilterBuilder *builder, bf_filter *filter, uint8 *bytes, Size n);

	/*
	 * For aggregates: begin (with parameters that were checked; capacity 0
	 * means to size the filter at the end), the hashes of a builder that holds
	 * nothing else (or -1), merging of another state, and the finished filter,
	 * which leaves the builder as it was.
	 */
	void		(*start) (FilterBuilder *builder, MemoryContext context, uint64 capacity, double fpp);
	int64		(*hashes) (FilterBuilder *builder, const uint64 **hashes);
	bool		(*can_merge) (FilterBuilder *builder, const bf_filter *state);
	void		(*merge) (FilterBuilder *builder, const bf_filter *state);
	struct varlena *(*finish) (FilterBuilder *builder);
} BuilderMethods;

/* Each type's builder begins with this. */
struct FilterBuilder
{
	const BuilderMethods *methods;
	MemoryContext context;		/* all memory of the builder is from here */
	bf_filter  *frame;			/* header and class; layers */
};

/*
 * The size of a frame for so many layers.  Only the layers in use are
 * allocated: there may be very many builders.
 */
static inline Size
frame_size(int layers)
{
	return offsetof(bf_filter, layer) + sizeof(bf_layer) * layers;
}

extern void build_frame(FilterBuilder *builder, const BuilderMethods *methods, MemoryContext context, double fpp);
extern void build_copy_frame(FilterBuilder *builder, const BuilderMethods *methods, MemoryContext context,
							 const bf_filter *filter);
extern void build_set_class(FilterBuilder *builder, const KeyClass *key);

#endif							/* BF_BUILDER_H */
