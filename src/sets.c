/*
 * sets.c
 *		Unions and intersections of bloom filters, sums of cuckoo filters, and
 *		the aggregates that make them of many filters.
 *
 * The rules are the core's: core/bloom_sets.c, core/cuckoo.c.  Here is what
 * they need to be functions of SQL: classes that go together, empty filters of
 * any geometry, errors, and a result that does not depend on the order of the two
 * arguments.
 */
#include "compat.h"

#include "aggregate.h"
#include "builder.h"
#include "core/query.h"

/* ----------------------------------------------------------------
 * Two filters
 * ----------------------------------------------------------------
 */

static int
compare_numbers(uint64 a, uint64 b)
{
	return (a > b) - (a < b);
}

/*
 * The order in which two filters are combined, larger ones first.  Equal values
 * are in either order.
 */
static int
compare_filters(const bf_filter *a, struct varlena *left, const bf_filter *b, struct varlena *right)
{
	const bf_layer *x = &a->layer[0];
	const bf_layer *y = &b->layer[0];
	Size		left_size = VARSIZE_ANY_EXHDR(left);
	Size		right_size = VARSIZE_ANY_EXHDR(right);
	int			order = compare_numbers(b->layers, a->layers);

	if (order == 0)
		order = compare_numbers(y->capacity, x->capacity);
	if (order == 0)
		order = compare_numbers(y->shape.words + bf_table_words(y->table), x->shape.words + bf_table_words(x->table));
	if (order == 0)
		order = compare_numbers(b->header.growth, a->header.growth);
	if (order == 0)
		order = compare_numbers(right_size, left_size);
	if (order == 0)
		order = memcmp(VARDATA_ANY(right), VARDATA_ANY(left), left_size);
	return order;
}

/* Two arguments to be combined, in an order that does not depend on theirs. */
typedef struct Pair
{
	bf_filter	first;
	bf_filter	second;
	struct varlena *first_image;
	struct varlena *second_image;
} Pair;

static void
order_pair(Pair *pair, struct varlena *left, struct varlena *right)
{
	pair->first_image = left;
	pair->second_image = right;
	value_open(&pair->first, left);
	value_open(&pair->second, right);
	key_class_check_same(&pair->first.header.class, &pair->second.header.class);
	if (compare_filters(&pair->first, left, &pair->second, right) > 0)
	{
		pair->first_image = right;
		pair->second_image = left;
		value_open(&pair->first, right);
		value_open(&pair->second, left);
	}
}

/*
 * A filter without keys leaves the other as it is, whatever their geometries.  Of
 * two such filters it is the one for more keys; for as many, the one of more
 * bits, then of larger growth.  NULL if both have keys.
 */
static struct varlena *
other_than_empty(const Pair *pair)
{
	if (bf_filter_is_empty(&pair->second))
		return pair->first_image;
	return bf_filter_is_empty(&pair->first) ? pair->second_image : NULL;
}

/* bloom_union(a, b): a filter of the keys of either */
PG_FUNCTION_INFO_V1(bloom_union);
Datum
bloom_union(PG_FUNCTION_ARGS)
{
	Pair	   *pair = palloc(sizeof(Pair));
	struct varlena *result;
	bf_mutable	filter;

	order_pair(pair, value_argument(fcinfo, 0), value_argument(fcinfo, 1));
	result = other_than_empty(pair);
	if (result == NULL)
	{
		bf_mutable_load(&filter, server_host(NULL), &pair->first);
		bf_bloom_unite(&filter.bloom, &pair->second);
		bf_bloom_sort_layers(&filter.bloom);
		result = builder_flat(&filter);
	}
	PG_RETURN_POINTER(result);
}

static void
check_intersectable(const bf_filter *a, const bf_filter *b)
{
	const bf_layer *x = &a->layer[0];
	const bf_layer *y = &b->layer[0];

	if (a->layers > 1 || b->layers > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters of several layers cannot be intersected"),
				 errdetail("One has %d layers, the other %d, and a key may be in different ones.", a->layers, b->layers),
				 errhint("Build both with one capacity that is enough for either, as in bloom_agg(key, capacity, fpp).")));
	if (!bf_shape_equal(x->shape, y->shape))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters of different geometry cannot be intersected"),
				 errdetail("One has " UINT64_FORMAT " bits with %d hashes, the other " UINT64_FORMAT " bits with %d hashes.",
						   x->shape.words * 64, x->shape.groups * x->shape.probes,
						   y->shape.words * 64, y->shape.groups * y->shape.probes),
				 errhint("Build both in the same way with the same parameters, as in bloom_agg(key, capacity, fpp); bloom_new() reserves bits for growth unless growth is 0.")));
}

/* bloom_intersection(a, b): a filter of the keys of both, and a few more */
PG_FUNCTION_INFO_V1(bloom_intersection);
Datum
bloom_intersection(PG_FUNCTION_ARGS)
{
	struct varlena *left = value_argument(fcinfo, 0);
	struct varlena *right = value_argument(fcinfo, 1);
	bf_filter	a;
	bf_filter	b;
	bf_mutable	filter;

	value_open(&a, left);
	value_open(&b, right);
	key_class_check_same(&a.header.class, &b.header.class);

	/* nothing in common with a filter that never had a key */
	if (a.header.class.code == BF_CLASS_NONE)
		PG_RETURN_POINTER(left);
	if (b.header.class.code == BF_CLASS_NONE)
		PG_RETURN_POINTER(right);
	check_intersectable(&a, &b);
	bf_mutable_load(&filter, server_host(NULL), &a);
	bf_bloom_intersect(&filter.bloom, &b);
	PG_RETURN_POINTER(builder_flat(&filter));
}

/* bloom_compact(bloom): the same keys in fewer bytes */
PG_FUNCTION_INFO_V1(bloom_compact);
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	struct varlena *image = value_open_argument(&filter, fcinfo, 0);
	bf_mutable	compact;

	if (filter.header.max_layers > 0 || bf_filter_is_empty(&filter))
		PG_RETURN_POINTER(image);
	bf_mutable_load(&compact, server_host(NULL), &filter);
	bf_bloom_compact(&compact.bloom);
	PG_RETURN_POINTER(builder_flat(&compact));
}

/* Can the filter be added to the other?  An error if not. */
static void
check_mergeable(const bf_cuckoo *cuckoo, const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];

	if (!bf_cuckoo_can_merge(cuckoo, filter))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cuckoo filters of different geometry cannot be merged"),
				 errdetail("One has " UINT64_FORMAT " buckets with slots of %d bits for a probability of %g and growth %d, the other " UINT64_FORMAT " with %d bits for %g and growth %d.",
						   cuckoo->table.buckets, cuckoo->table.slot_bits, cuckoo->header.fpp, cuckoo->header.growth,
						   layer->table.buckets, layer->table.slot_bits, filter->header.fpp, filter->header.growth),
				 errhint("Build both in the same way with the same parameters, as in cuckoo_agg(key, capacity, fpp) or cuckoo_new(capacity, fpp, growth).")));
}

/* cuckoo_merge(a, b): the keys of both, as often as in both together */
PG_FUNCTION_INFO_V1(cuckoo_merge);
Datum
cuckoo_merge(PG_FUNCTION_ARGS)
{
	Pair	   *pair = palloc(sizeof(Pair));
	struct varlena *result;
	bf_mutable	filter;

	order_pair(pair, value_argument(fcinfo, 0), value_argument(fcinfo, 1));
	result = other_than_empty(pair);
	bf_mutable_load(&filter, server_host(NULL), &pair->first);
	if (result != NULL)
	{
		bf_filter	only;

		value_open(&only, result);
		bf_mutable_load(&filter, server_host(NULL), &only);
	}
	else
	{
		check_mergeable(&filter.cuckoo, &pair->second);
		bf_cuckoo_merge(&filter.cuckoo, &pair->second);
	}
	bf_cuckoo_sort(&filter.cuckoo);
	PG_RETURN_POINTER(builder_flat(&filter));
}

/* ----------------------------------------------------------------
 * Aggregates
 *
 * The state is a filter, and so is what workers send: the first value as it came,
 * and from the second one on an object that can be changed in place.
 * ----------------------------------------------------------------
 */

/* Put another filter into the state, in the way of this aggregate. */
typedef void (*Combine) (FilterObject *object, const bf_filter *filter, struct varlena *image);

/* Let the object hold this filter instead of what it has. */
static void
replace_filter(FilterObject *object, const bf_filter *filter)
{
	bf_mutable	old = object->filter;

	bf_mutable_load(&object->filter, filter_object_host(object), filter);
	bf_mutable_free(&old);
}

/*
 * If one of the two has no keys, the other is the result: see other_than_empty.
 * False if both have some.
 */
static bool
keep_other_than_empty(FilterObject *object, const bf_filter *filter, struct varlena *image)
{
	bf_mutable *state = &object->filter;

	key_class_check_same(&state->header.class, &filter->header.class);
	if (state->header.kind == BF_KIND_BLOOM ? bf_bloom_is_empty(&state->bloom) : bf_cuckoo_is_empty(&state->cuckoo))
	{
		struct varlena *own = builder_flat(state);
		Pair	   *pair = palloc(sizeof(Pair));

		order_pair(pair, own, image);
		if (other_than_empty(pair) != own)
			replace_filter(object, filter);
		return true;
	}
	return bf_filter_is_empty(filter);
}

static void
unite_object(FilterObject *object, const bf_filter *filter, struct varlena *image)
{
	if (!keep_other_than_empty(object, filter, image))
		bf_bloom_unite(&object->filter.bloom, filter);
}

static void
merge_object(FilterObject *object, const bf_filter *filter, struct varlena *image)
{
	if (keep_other_than_empty(object, filter, image))
		return;
	check_mergeable(&object->filter.cuckoo, filter);
	bf_cuckoo_merge(&object->filter.cuckoo, filter);
}

static void
intersect_object(FilterObject *object, const bf_filter *filter, struct varlena *image)
{
	bf_mutable *state = &object->filter;
	bf_filter	own;

	key_class_check_same(&state->header.class, &filter->header.class);
	if (state->header.class.code == BF_CLASS_NONE)
		return;
	if (filter->header.class.code == BF_CLASS_NONE)
	{
		replace_filter(object, filter);
		return;
	}
	own.layers = (uint8) state->bloom.layers;
	own.layer[0].shape = state->bloom.layer[0].size.shape;
	check_intersectable(&own, filter);
	bf_bloom_intersect(&state->bloom, filter);
}

/*
 * Transition and combine function of these aggregates: NULL values are skipped,
 * the first other one is the state.
 */
static Datum
combine_filters(FunctionCallInfo fcinfo, Combine combine)
{
	MemoryContext context = aggregate_context(fcinfo);
	FilterObject *object;
	struct varlena *image;
	bf_filter	filter;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(value_argument(fcinfo, 1));
	object = filter_object_to_change(PG_GETARG_DATUM(0));
	if (object == NULL)
	{
		value_open_argument(&filter, fcinfo, 0);
		object = filter_object_create(context);
		bf_mutable_load(&object->filter, filter_object_host(object), &filter);
	}
	image = value_open_argument(&filter, fcinfo, 1);
	combine(object, &filter, image);
	PG_RETURN_DATUM(filter_object_datum(object));
}

PG_FUNCTION_INFO_V1(bloom_union_agg_transition);
Datum
bloom_union_agg_transition(PG_FUNCTION_ARGS)
{
	return combine_filters(fcinfo, unite_object);
}

PG_FUNCTION_INFO_V1(bloom_intersection_agg_transition);
Datum
bloom_intersection_agg_transition(PG_FUNCTION_ARGS)
{
	return combine_filters(fcinfo, intersect_object);
}

PG_FUNCTION_INFO_V1(cuckoo_merge_agg_transition);
Datum
cuckoo_merge_agg_transition(PG_FUNCTION_ARGS)
{
	return combine_filters(fcinfo, merge_object);
}

/*
 * The union or sum of nothing is an empty filter.  The state stays as it is; what
 * is returned has forgotten the order in which the filters came.
 */
static Datum
final(FunctionCallInfo fcinfo, uint16 kind)
{
	bf_mutable	filter;
	bf_filter	description;

	if (PG_ARGISNULL(0))
	{
		bf_mutable_start_state(&filter, server_host(NULL), kind, 0, VALUE_DEFAULT_FPP);
		PG_RETURN_POINTER(builder_finish(&filter));
	}
	if (filter_object(PG_GETARG_DATUM(0)) == NULL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	value_open_argument(&description, fcinfo, 0);
	bf_mutable_load(&filter, server_host(NULL), &description);
	if (kind == BF_KIND_BLOOM)
		bf_bloom_sort_layers(&filter.bloom);
	else
		bf_cuckoo_sort(&filter.cuckoo);
	PG_RETURN_POINTER(builder_flat(&filter));
}

PG_FUNCTION_INFO_V1(bloom_union_agg_final);
Datum
bloom_union_agg_final(PG_FUNCTION_ARGS)
{
	return final(fcinfo, BF_KIND_BLOOM);
}

PG_FUNCTION_INFO_V1(cuckoo_merge_agg_final);
Datum
cuckoo_merge_agg_final(PG_FUNCTION_ARGS)
{
	return final(fcinfo, BF_KIND_CUCKOO);
}
