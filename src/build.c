/*
 * build.c
 *		A filter that is being filled, in memory: what the builders of all
 *		filter types have in common.
 */
#include "compat.h"

#include "build.h"

const BuilderMethods *
builder_methods(uint16 kind)
{
	return kind == BF_KIND_CUCKOO ? &cuckoo_methods : &bloom_methods;
}

/* A frame of one layer, of no class yet. */
void
build_frame(FilterBuilder *builder, const BuilderMethods *methods, MemoryContext context, double fpp)
{
	bf_filter  *frame = MemoryContextAllocZero(context, frame_size(1));

	frame->kind = methods->type.kind;
	frame->layers = 1;
	frame->growth = BF_DEFAULT_GROWTH;
	frame->fpp = fpp;
	builder->methods = methods;
	builder->context = context;
	builder->frame = frame;
}

/* The frame of a filter that exists. */
void
build_copy_frame(FilterBuilder *builder, const BuilderMethods *methods, MemoryContext context,
				 const bf_filter *filter)
{
	KeyClass	class = filter_class(filter);

	builder->methods = methods;
	builder->context = context;
	builder->frame = MemoryContextAlloc(context, frame_size(filter->layers));
	memcpy(builder->frame, filter, frame_size(filter->layers));
	build_set_class(builder, &class);
}

/* Give the builder the class of its first key. */
void
build_set_class(FilterBuilder *builder, const KeyClass *key)
{
	KeyClass	own = *key;

	if (key->name_length > 0)
	{
		char	   *name = MemoryContextAlloc(builder->context, key->name_length);

		own.name = memcpy(name, key->name, key->name_length);
	}
	filter_set_class(builder->frame, &own);
}

/* Continue a filter that exists.  The builder does not refer to it later. */
void
build_load(AnyBuilder *builder, MemoryContext context, const bf_filter *filter)
{
	builder_methods(filter->kind)->load(&builder->base, context, filter);
}

/* The filter as a flat value; an unfinished one stays unfinished. */
struct varlena *
build_flat(FilterBuilder *builder)
{
	bf_filter	filter;
	struct varlena *image;
	uint64		size = build_describe(builder, &filter);

	filter_check_size(size + BF_LENGTH_WORD);
	image = palloc((Size) size + VARHDRSZ);
	SET_VARSIZE(image, (Size) size + VARHDRSZ);
	build_write(builder, &filter, (uint8 *) VARDATA(image), (Size) size);
	return image;
}
