/*
 * cuckoo_sets.c
 *		Sums of cuckoo filters.
 *
 * Filters with the same range of numbers are merged number by number: counts add
 * up.  One table always: were there several, deleting a key could hit another
 * one's fingerprint in the wrong table.
 */
#include "compat.h"

#include "agg.h"
#include "expanded.h"

/* Can the filter be merged into the builder?  An error if not. */
static void
check_mergeable(const bf_filter *frame, const bf_filter *filter)
{
	const bf_layer *a = &frame->layer[0];
	const bf_layer *b = &filter->layer[0];

	if (a->table.buckets == 0 || b->table.buckets == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the state of an aggregate cannot be merged with a filter"),
				 errhint("Finish the aggregate first.")));
	if (bf_table_range(a->table) != bf_table_range(b->table) || frame->fpp != filter->fpp ||
		frame->growth != filter->growth)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cuckoo filters of different geometry cannot be merged"),
				 errdetail("One has " UINT64_FORMAT " buckets with slots of %d bits for a probability of %g and growth %d, the other " UINT64_FORMAT " with %d bits for %g and growth %d.",
						   a->table.buckets, a->table.slot_bits, frame->fpp, frame->growth,
						   b->table.buckets, b->table.slot_bits, filter->fpp, filter->growth),
				 errhint("Build both in the same way with the same parameters, as in cuckoo_agg(key, capacity, fpp) or cuckoo_new(capacity, fpp, growth).")));
}

/* Merge a filter into a builder.  An empty one of any geometry adds nothing. */
static void
merge(AnyBuilder *builder, MemoryContext context, const bf_filter *filter)
{
	CuckooBuilder *cuckoo = &builder->cuckoo;

	filter_check_same_class(builder->base.frame, filter);
	if (bf_filter_is_empty(filter))
		return;
	if (cuckoo->used == 0 && cuckoo->pended == 0 && cuckoo->listed == 0)
	{
		build_load(builder, context, filter);
		return;
	}
	check_mergeable(builder->base.frame, filter);
	cuckoo_build_merge_filter(cuckoo, filter);
}

/* cuckoo_merge(a, b): the keys of both, as often as in both together */
PG_FUNCTION_INFO_V1(cuckoo_merge);
Datum
cuckoo_merge(PG_FUNCTION_ARGS)
{
	AnyBuilder	builder;
	bf_filter	a;
	bf_filter	b;

	filter_open_argument(&a, fcinfo, 0);
	filter_open_argument(&b, fcinfo, 1);
	build_load(&builder, CurrentMemoryContext, &a);
	merge(&builder, CurrentMemoryContext, &b);
	cuckoo_build_sort(&builder.cuckoo);
	PG_RETURN_POINTER(build_flat(&builder.base));
}

/* Transition and combine function of cuckoo_merge_agg. */
PG_FUNCTION_INFO_V1(cuckoo_merge_agg_transition);
Datum
cuckoo_merge_agg_transition(PG_FUNCTION_ARGS)
{
	MemoryContext context = agg_context(fcinfo);
	ExpandedFilter *state;
	bf_filter	filter;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));

	/* most groups have one filter: the second one makes it an object */
	state = expanded_filter(PG_GETARG_DATUM(0));
	if (state == NULL || !VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(PG_GETARG_DATUM(0))))
	{
		filter_open_argument(&filter, fcinfo, 0);
		state = expanded_filter_create(context);
		build_load(&state->builder, state->header.eoh_context, &filter);
	}
	filter_open_argument(&filter, fcinfo, 1);
	merge(&state->builder, state->header.eoh_context, &filter);
	PG_RETURN_DATUM(EOHPGetRWDatum(&state->header));
}

/*
 * The sum of nothing is an empty filter.  The state stays as it is; what is
 * returned has forgotten the order in which the filters came.
 */
PG_FUNCTION_INFO_V1(cuckoo_merge_agg_final);
Datum
cuckoo_merge_agg_final(PG_FUNCTION_ARGS)
{
	AnyBuilder	builder;
	bf_filter	filter;

	if (PG_ARGISNULL(0))
	{
		cuckoo_methods.start(&builder.base, CurrentMemoryContext, 0, FILTER_DEFAULT_FPP);
		PG_RETURN_POINTER(cuckoo_methods.finish(&builder.base));
	}
	if (expanded_filter(PG_GETARG_DATUM(0)) == NULL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	filter_open_argument(&filter, fcinfo, 0);
	build_load(&builder, CurrentMemoryContext, &filter);
	cuckoo_build_sort(&builder.cuckoo);
	PG_RETURN_POINTER(build_flat(&builder.base));
}
