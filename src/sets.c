/*
 * sets.c
 *		Unions and intersections of Bloom filters, sums and differences of cuckoo
 *		filters: of two filters, and as aggregates of many.
 *
 * The operations are in core/bloom_sets.c and core/cuckoo_sets.c.  This file checks
 * classes and geometries, handles empty filters of any geometry, and makes the
 * result independent of the order of two arguments.
 */
#include "compat.h"

#include "aggregate.h"
#include "builder.h"
#include "core/query.h"

/* ----------------------------------------------------------------
 * One filter into another
 * ----------------------------------------------------------------
 */

static int
compare_numbers(uint64 a, uint64 b)
{
	return (a > b) - (a < b);
}

/*
 * Compare filters by their bytes alone: more layers come first, then larger capacity,
 * more bits, larger growth.
 */
static int
sets_compare_filters(const bf_filter *a, struct varlena *left, const bf_filter *b, struct varlena *right)
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

/* Combine a mutable filter with another one. */
typedef void (*Combine) (bf_mutable *filter, const bf_filter *other);

/* Replace a filter by a copy of another one. */
static void
sets_become(bf_mutable *filter, const bf_filter *other)
{
	bf_mutable	old = *filter;

	bf_mutable_load(filter, old.header.host, other);
	bf_mutable_free(&old);
}

/*
 * Combine filters of which at least one has no keys; false if both have keys.  The
 * result is the other one, of any geometry.  If neither has keys, it is the first in
 * the order of sets_compare_filters.
 */
static bool
sets_combine_with_empty(bf_mutable *filter, const bf_filter *other)
{
	bool		empty = filter->header.kind == BF_KIND_BLOOM ? bf_bloom_is_empty(&filter->bloom) :
	bf_cuckoo_is_empty(&filter->cuckoo);
	bool		other_empty = bf_filter_is_empty(other);

	if (empty && other_empty)
	{
		struct varlena *left = builder_flat(filter);
		bf_mutable	copy;
		bf_filter	own;

		value_open(&own, left);
		bf_mutable_load(&copy, server_host(NULL), other);
		if (sets_compare_filters(&own, left, other, builder_flat(&copy)) > 0)
			sets_become(filter, other);
	}
	else if (empty)
		sets_become(filter, other);
	return empty || other_empty;
}

static void
sets_unite(bf_mutable *filter, const bf_filter *other)
{
	if (!sets_combine_with_empty(filter, other))
		bf_bloom_unite(&filter->bloom, other);
}

static void
sets_intersect(bf_mutable *filter, const bf_filter *other)
{
	const bf_layer *layer = &other->layer[0];
	bf_shape	shape = filter->bloom.layer[0].size.shape;

	/* the intersection with a filter that never had a key is empty */
	if (filter->header.class.code == BF_CLASS_NONE)
		return;
	if (other->header.class.code == BF_CLASS_NONE)
	{
		sets_become(filter, other);
		return;
	}
	if (filter->bloom.layers > 1 || other->layers > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters with several layers cannot be intersected"),
				 errdetail("The filters have %d and %d layers. Only filters with one layer can be intersected.",
						   (int) filter->bloom.layers, other->layers),
				 errhint("Build both filters with a capacity that is sufficient for either, as in bloom_agg(key, capacity, fpp).")));
	if (!bf_shape_equal(shape, layer->shape))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters of different geometry cannot be intersected"),
				 errdetail("The filters have " UINT64_FORMAT " and " UINT64_FORMAT " bits, and %d and %d hashes per key. Filters made by bloom_new() reserve bits for growth unless growth is 0.",
						   shape.words * 64, layer->shape.words * 64,
						   shape.groups * shape.probes, layer->shape.groups * layer->shape.probes),
				 errhint("Build both filters in the same way with the same parameters, as in bloom_agg(key, capacity, fpp).")));
	bf_bloom_intersect(&filter->bloom, other);
}

/* Check that filters have the same geometry, as sums and differences require. */
static void
sets_check_geometry(const bf_cuckoo *cuckoo, const bf_filter *other)
{
	const bf_layer *layer = &other->layer[0];

	if (!bf_cuckoo_can_merge(cuckoo, other))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cuckoo filters of different geometry cannot be combined"),
				 errdetail("The filters have " UINT64_FORMAT " and " UINT64_FORMAT " buckets, %d and %d bits per slot, fpp %g and %g, and growth %d and %d.",
						   cuckoo->table.buckets, layer->table.buckets,
						   cuckoo->table.slot_bits, layer->table.slot_bits,
						   cuckoo->header.fpp, other->header.fpp,
						   cuckoo->header.growth, other->header.growth),
				 errhint("Build both filters in the same way with the same parameters, as in cuckoo_agg(key, capacity, fpp) or cuckoo_new(capacity, fpp, growth).")));
}

static void
sets_merge(bf_mutable *filter, const bf_filter *other)
{
	if (sets_combine_with_empty(filter, other))
		return;
	sets_check_geometry(&filter->cuckoo, other);
	bf_cuckoo_merge(&filter->cuckoo, other);
}

/* Make the result independent of the order in which filters were combined. */
static struct varlena *
sets_finish(bf_mutable *filter)
{
	if (filter->header.kind == BF_KIND_BLOOM)
		bf_bloom_sort_layers(&filter->bloom);
	else
		bf_cuckoo_sort(&filter->cuckoo);
	return builder_flat(filter);
}

/* ----------------------------------------------------------------
 * Two filters
 * ----------------------------------------------------------------
 */

static bool
same_bytes(struct varlena *a, struct varlena *b)
{
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

/*
 * Return a result, or an argument that has the same bytes.  If that is stored and the
 * result is assigned to the same row, it is not written again.
 */
static Datum
sets_return(FunctionCallInfo fcinfo, struct varlena *result, struct varlena **arguments, int n)
{
	int			same = -1;

	/* the first one that is stored, or else any */
	for (int i = n - 1; i >= 0; i--)
	{
		if ((same < 0 || VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(PG_GETARG_DATUM(i)))) && same_bytes(result, arguments[i]))
			same = i;
	}
	if (same < 0)
		PG_RETURN_POINTER(result);
	PG_RETURN_DATUM(PG_GETARG_DATUM(same));
}

static Datum
sets_combine_two(FunctionCallInfo fcinfo, uint16 kind, Combine combine)
{
	bf_filter	a;
	bf_filter	b;
	struct varlena *left = value_open_argument(&a, fcinfo, 0, kind);
	struct varlena *right = value_open_argument(&b, fcinfo, 1, kind);
	struct varlena *arguments[] = {left, right};
	bool		swap = sets_compare_filters(&a, left, &b, right) > 0;
	bf_mutable	filter;

	key_class_check_same(&a.header.class, &b.header.class);
	bf_mutable_load(&filter, server_host(NULL), swap ? &b : &a);
	combine(&filter, swap ? &a : &b);
	return sets_return(fcinfo, sets_finish(&filter), arguments, 2);
}

/* bloom_union(a, b): a filter of the keys of either filter */
SQL_FUNCTION(bloom_union, sets_combine_two(fcinfo, BF_KIND_BLOOM, sets_unite));

/* bloom_intersection(a, b): a filter of the keys that both filters report */
SQL_FUNCTION(bloom_intersection, sets_combine_two(fcinfo, BF_KIND_BLOOM, sets_intersect));

/* cuckoo_merge(a, b): the keys of both filters, with their counts added */
SQL_FUNCTION(cuckoo_merge, sets_combine_two(fcinfo, BF_KIND_CUCKOO, sets_merge));

/*
 * cuckoo_subtract(a, b): the keys of a without those of b, the inverse of
 * cuckoo_merge.  The result has the geometry of a.
 */
PG_FUNCTION_INFO_V1(cuckoo_subtract);
Datum
cuckoo_subtract(PG_FUNCTION_ARGS)
{
	bf_filter	a;
	bf_filter	b;
	bf_mutable	filter;
	unsigned	there = 0;
	unsigned	wanted = 0;

	(void) value_open_argument(&a, fcinfo, 0, BF_KIND_CUCKOO);
	(void) value_open_argument(&b, fcinfo, 1, BF_KIND_CUCKOO);
	key_class_check_same(&a.header.class, &b.header.class);
	if (bf_filter_is_empty(&b))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	bf_mutable_load(&filter, server_host(NULL), &a);
	if (!bf_filter_is_empty(&a))
		sets_check_geometry(&filter.cuckoo, &b);
	if (bf_filter_is_empty(&a) || !bf_cuckoo_subtract(&filter.cuckoo, &b, &there, &wanted))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cuckoo filter to be subtracted is not contained in the first argument"),
				 wanted == 0 ? errdetail("The first argument has no keys.") :
				 errdetail("The count of a key is %u in the filter to be subtracted, but %u in the first argument.", wanted, there),
				 errhint("Subtract only keys that were added or merged before.")));
	PG_RETURN_POINTER(sets_finish(&filter));
}

/* bloom_compact(bloom): the same keys in fewer bytes */
PG_FUNCTION_INFO_V1(bloom_compact);
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	struct varlena *image = value_open_argument(&filter, fcinfo, 0, BF_KIND_BLOOM);
	bf_mutable	compact;

	if (filter.header.max_layers > 0 || bf_filter_is_empty(&filter))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	bf_mutable_load(&compact, server_host(NULL), &filter);
	bf_bloom_compact(&compact.bloom);
	return sets_return(fcinfo, builder_flat(&compact), &image, 1);
}

/* ----------------------------------------------------------------
 * Aggregates
 *
 * The state is a finished filter: the first value itself, and from the second value
 * on an object that is changed in place.
 * ----------------------------------------------------------------
 */

/* Transition and combine function of these aggregates; NULL values are skipped. */
static Datum
sets_combine_many(FunctionCallInfo fcinfo, uint16 kind, Combine combine)
{
	MemoryContext context = aggregate_context(fcinfo);
	FilterObject *object;
	bf_filter	filter;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(value_open_argument(&filter, fcinfo, 1, kind));
	object = filter_object_to_change(PG_GETARG_DATUM(0));
	if (object == NULL)
	{
		value_open_argument(&filter, fcinfo, 0, kind);
		object = filter_object_create(context);
		bf_mutable_load(&object->filter, filter_object_host(object), &filter);
	}
	value_open_argument(&filter, fcinfo, 1, kind);
	key_class_check_same(&object->filter.header.class, &filter.header.class);
	combine(&object->filter, &filter);
	PG_RETURN_DATUM(filter_object_datum(object));
}

SQL_FUNCTION(bloom_union_agg_transition, sets_combine_many(fcinfo, BF_KIND_BLOOM, sets_unite));
SQL_FUNCTION(bloom_intersection_agg_transition, sets_combine_many(fcinfo, BF_KIND_BLOOM, sets_intersect));
SQL_FUNCTION(cuckoo_merge_agg_transition, sets_combine_many(fcinfo, BF_KIND_CUCKOO, sets_merge));

/*
 * Make the result; without input it is an empty filter.  The state is not changed,
 * because a window frame may continue to use it.
 */
static Datum
sets_final(FunctionCallInfo fcinfo, uint16 kind)
{
	bf_mutable	filter;
	bf_filter	state;

	if (PG_ARGISNULL(0))
	{
		bf_mutable_start_state(&filter, server_host(NULL), kind, 0, VALUE_DEFAULT_FPP);
		PG_RETURN_POINTER(builder_finish(&filter));
	}
	if (filter_object(PG_GETARG_DATUM(0)) == NULL)
		PG_RETURN_DATUM(filter_unchanged(PG_GETARG_DATUM(0)));
	value_open_argument(&state, fcinfo, 0, kind);
	bf_mutable_load(&filter, server_host(NULL), &state);
	PG_RETURN_POINTER(sets_finish(&filter));
}

SQL_FUNCTION(bloom_union_agg_final, sets_final(fcinfo, BF_KIND_BLOOM));
SQL_FUNCTION(cuckoo_merge_agg_final, sets_final(fcinfo, BF_KIND_CUCKOO));
