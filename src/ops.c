/*
 * ops.c
 *		Making filters, adding keys to them, removing them, asking for them.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"

#include "expanded.h"
#include "probe.h"

/* ----------------------------------------------------------------
 * Making
 * ----------------------------------------------------------------
 */

/* The first two parameters of both constructors. */
static void
get_size_parameters(FunctionCallInfo fcinfo, const FilterType *type, int64 *capacity, double *fpp)
{
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("capacity and false-positive probability must not be null"),
				 errhint("If the number of keys is not known, let %s_agg(key) find out.", type->name)));
	*capacity = PG_GETARG_INT64(0);
	*fpp = PG_GETARG_FLOAT8(1);
	filter_check_capacity(*capacity);
	filter_check_fpp(*fpp);
}

/*
 * bloom_new(capacity, fpp, growth, max_layers): an empty filter that grows, has
 * a fixed size, or is a rotating window of layers
 */
PG_FUNCTION_INFO_V1(bloom_new);
Datum
bloom_new(PG_FUNCTION_ARGS)
{
	BloomBuilder builder;
	int64		capacity;
	double		fpp;
	int32		growth;
	int32		max_layers;
	bf_shape	shape;

	get_size_parameters(fcinfo, &bloom_methods.type, &capacity, &fpp);
	max_layers = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3);
	growth = !PG_ARGISNULL(2) ? PG_GETARG_INT32(2) : max_layers != 0 ? 1 : BF_DEFAULT_GROWTH;
	if (!PG_ARGISNULL(3) && (max_layers < 2 || max_layers > BF_MAX_LAYERS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_layers must be between 2 and %d", BF_MAX_LAYERS),
				 errdetail("The number given is %d.", max_layers),
				 errhint("A rotating filter of m layers always holds the last (m - 1) x capacity keys added, repetitions counted.")));
	if (growth < 0 || growth > BF_MAX_GROWTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth must be between 0 and %d", BF_MAX_GROWTH),
				 errdetail("The growth given is %d.", growth),
				 errhint("Each layer is so many times as large as the one before; 0 means a fixed size.")));
	if (max_layers > 0 && growth != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a filter with max_layers rotates, and its layers are of equal size"),
				 errdetail("The growth given is %d.", growth),
				 errhint("Leave out growth, or max_layers.")));

	shape = bf_first_shape((uint64) capacity, fpp, (unsigned) growth, (unsigned) max_layers);
	filter_check_words(shape.words, capacity, fpp);
	if (max_layers > 0)
		filter_check_words(shape.words * max_layers, capacity * max_layers, fpp);
	bloom_build_start(&builder, CurrentMemoryContext, shape, (uint64) capacity, fpp);
	builder.base.frame->growth = (uint8) growth;
	builder.base.frame->max_layers = (uint8) max_layers;
	PG_RETURN_POINTER(build_flat(&builder.base));
}

/* cuckoo_new(capacity, fpp, growth): an empty filter that grows when it is full */
PG_FUNCTION_INFO_V1(cuckoo_new);
Datum
cuckoo_new(PG_FUNCTION_ARGS)
{
	CuckooBuilder builder;
	int64		capacity;
	double		fpp;
	int32		growth = PG_ARGISNULL(2) ? BF_DEFAULT_GROWTH : PG_GETARG_INT32(2);
	bf_table	table;

	get_size_parameters(fcinfo, &cuckoo_methods.type, &capacity, &fpp);
	filter_check_cuckoo_growth(growth);
	table = bf_table_for((uint64) capacity, fpp, (unsigned) growth);
	filter_check_words(bf_table_words(table), capacity, fpp);
	cuckoo_build_start(&builder, CurrentMemoryContext, table, (uint64) capacity, fpp);
	builder.base.frame->growth = (uint8) growth;
	PG_RETURN_POINTER(build_flat(&builder.base));
}

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

/* How a call site hashes its key argument, kept in *cache. */
static KeyType *
argument_key_type(FunctionCallInfo fcinfo, int argument, KeyType **cache)
{
	if (*cache == NULL)
		*cache = key_type_of_argument(fcinfo, argument);
	return *cache;
}

/* The keys of an array argument. */
typedef struct KeyArray
{
	AnyArrayType *array;
	KeyClass	class;			/* none if there are no keys */
	int			items;
	bool	   *nulls;			/* one for each item */
	uint64	   *hashes;			/* one for each that is not null */
	Size		n;
} KeyArray;

/* Hash an array's elements; how to do that is kept in *cache. */
static KeyArray
hash_elements(FunctionCallInfo fcinfo, int argument, KeyType **cache)
{
	AnyArrayType *array = PG_GETARG_ANY_ARRAY_P(argument);
	Oid			element = AARR_ELEMTYPE(array);
	KeyArray	keys = {array};
	array_iter	iterator;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	char	   *name = palloc(BF_MAX_CLASS_NAME);

	keys.items = ArrayGetNItems(AARR_NDIM(array), AARR_DIMS(array));
	keys.nulls = palloc(sizeof(bool) * Max(keys.items, 1));
	keys.hashes = palloc(sizeof(uint64) * Max(keys.items, 1));
	if (type_is_collatable(element) && !OidIsValid(PG_GET_COLLATION()))
		key_refuse_indeterminate_collation();
	if (*cache == NULL || (*cache)->typid != getBaseType(element))
		*cache = key_type(element, PG_GET_COLLATION(), fcinfo->flinfo->fn_mcxt);
	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	bf_array_iter_setup(&iterator, array, typlen, typbyval, typalign);
	for (int i = 0; i < keys.items; i++)
	{
		Datum		value = bf_array_iter_next(&iterator, &keys.nulls[i], i, typlen, typbyval, typalign);

		if (i % BF_POLL_EVERY == 0)
			bf_poll();
		if (keys.nulls[i])
			continue;
		keys.hashes[keys.n++] = key_hash(*cache, value);
		if (keys.class.code == BF_CLASS_NONE)
		{
			keys.class = (*cache)->class;
			if (keys.class.name_length > 0)
				keys.class.name = memcpy(name, keys.class.name, keys.class.name_length);
		}
		else if ((*cache)->typid == RECORDOID)
		{
			/* anonymous records: each has a class of its own */
			bf_filter	others;

			filter_set_class(&others, &keys.class);
			filter_check_class(&others, &(*cache)->class);
		}
	}
	return keys;
}

/* ----------------------------------------------------------------
 * Adding and removing
 * ----------------------------------------------------------------
 */

/* What is done to a filter with the hashes of some keys. */
typedef void (*Change) (FilterBuilder *builder, const uint64 *hashes, Size n);

static void
add_all(FilterBuilder *builder, const uint64 *hashes, Size n)
{
	builder->methods->add_many(builder, hashes, n);
}

static void
remove_all(FilterBuilder *builder, const uint64 *hashes, Size n)
{
	for (Size i = 0; i < n; i++)
	{
		cuckoo_build_remove((CuckooBuilder *) builder, hashes[i]);
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
}

/*
 * The filter argument, changed.  A read-write expanded object is changed in
 * place: it is the caller's to change.
 */
static Datum
change_filter(FunctionCallInfo fcinfo, const KeyClass *class, const uint64 *hashes, Size n, Change change)
{
	Datum		value = PG_GETARG_DATUM(0);
	ExpandedFilter *expanded = NULL;
	AnyBuilder	flat;
	AnyBuilder *builder = &flat;
	bf_filter	filter;

	if (VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value)))
		expanded = expanded_filter(value);
	if (expanded != NULL)
	{
		builder = &expanded->builder;
		filter_check_class(builder->base.frame, class);
	}
	else
	{
		filter_open_argument(&filter, fcinfo, 0);
		filter_check_class(&filter, class);
		if (BF_MODIFY_IN_PLACE)
		{
			expanded = expanded_filter_create(CurrentMemoryContext);
			builder = &expanded->builder;
		}
		build_load(builder, expanded ? expanded->header.eoh_context : CurrentMemoryContext, &filter);
	}
	if (builder->base.frame->key_class == BF_CLASS_NONE && change == add_all)
		build_set_class(&builder->base, class);
	change(&builder->base, hashes, n);
	if (expanded != NULL)
		PG_RETURN_DATUM(EOHPGetRWDatum(&expanded->header));
	PG_RETURN_POINTER(build_flat(&builder->base));
}

/* One key: the second argument.  Nothing changes if it is NULL. */
static Datum
change_by_key(FunctionCallInfo fcinfo, Change change)
{
	KeyType    *type;
	uint64		hash;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	type = argument_key_type(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	return change_filter(fcinfo, &type->class, &hash, 1, change);
}

/* The keys of an array. */
static Datum
change_by_array(FunctionCallInfo fcinfo, Change change)
{
	KeyArray	keys;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	keys = hash_elements(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	if (keys.n == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return change_filter(fcinfo, &keys.class, keys.hashes, keys.n, change);
}

/* bloom_add, cuckoo_add(filter, key): the filter with one more key */
PG_FUNCTION_INFO_V1(filter_add);
Datum
filter_add(PG_FUNCTION_ARGS)
{
	return change_by_key(fcinfo, add_all);
}

/* bloom_add_all, cuckoo_add_all(filter, keys): the filter with all of an array */
PG_FUNCTION_INFO_V1(filter_add_all);
Datum
filter_add_all(PG_FUNCTION_ARGS)
{
	return change_by_array(fcinfo, add_all);
}

/* cuckoo_delete(filter, key): the filter with one copy of the key less */
PG_FUNCTION_INFO_V1(cuckoo_delete);
Datum
cuckoo_delete(PG_FUNCTION_ARGS)
{
	return change_by_key(fcinfo, remove_all);
}

/* cuckoo_delete_all(filter, keys): the same for each key of an array */
PG_FUNCTION_INFO_V1(cuckoo_delete_all);
Datum
cuckoo_delete_all(PG_FUNCTION_ARGS)
{
	return change_by_array(fcinfo, remove_all);
}

/* ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* bloom_contains, cuckoo_contains(filter, key): can the key have been added? */
PG_FUNCTION_INFO_V1(filter_contains);
Datum
filter_contains(PG_FUNCTION_ARGS)
{
	FilterProbe *probe = filter_probe(fcinfo);
	KeyType    *type = argument_key_type(fcinfo, 1, &probe->key_type);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));

	PG_RETURN_BOOL(filter_probe_one(probe, PG_GETARG_DATUM(0), &type->class, hash));
}

/* Ask for all keys of an array; found[] has one entry for each not null. */
static KeyArray
probe_elements(FunctionCallInfo fcinfo, bool **found)
{
	FilterProbe *probe = filter_probe(fcinfo);
	KeyArray	keys = hash_elements(fcinfo, 1, &probe->key_type);

	*found = palloc(sizeof(bool) * Max(keys.n, 1));
	if (keys.n > 0)
		filter_probe_many(probe, PG_GETARG_DATUM(0), &keys.class, keys.hashes, keys.n, *found);
	return keys;
}

/*
 * Three-valued ANY and ALL: the first key that decides does; otherwise a NULL
 * element leaves it open.
 */
static Datum
probe_until(FunctionCallInfo fcinfo, bool deciding)
{
	bool	   *found;
	KeyArray	keys = probe_elements(fcinfo, &found);

	for (Size i = 0; i < keys.n; i++)
	{
		if (found[i] == deciding)
			PG_RETURN_BOOL(deciding);
	}
	if (keys.n < (Size) keys.items)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(!deciding);
}

/* ..._contains_any(filter, keys): can any of them have been added? */
PG_FUNCTION_INFO_V1(filter_contains_any);
Datum
filter_contains_any(PG_FUNCTION_ARGS)
{
	return probe_until(fcinfo, true);
}

/* ..._contains_all(filter, keys): can all of them have been added? */
PG_FUNCTION_INFO_V1(filter_contains_all);
Datum
filter_contains_all(PG_FUNCTION_ARGS)
{
	return probe_until(fcinfo, false);
}

/*
 * An array of the same shape as the keys', with their answers.  Those are what the
 * data of an array of booleans without nulls is: no need to make a Datum of each.
 */
static ArrayType *
array_of_answers(const KeyArray *keys, const bool *found)
{
	int			dimensions = AARR_NDIM(keys->array);
	bool		nulls = keys->n < (Size) keys->items;
	Size		offset = nulls ? ARR_OVERHEAD_WITHNULLS(dimensions, keys->items) : ARR_OVERHEAD_NONULLS(dimensions);
	ArrayType  *answers;

	if (keys->items == 0)
		return construct_empty_array(BOOLOID);
	answers = palloc0(offset + keys->n);
	SET_VARSIZE(answers, offset + keys->n);
	answers->ndim = dimensions;
	answers->dataoffset = nulls ? (int32) offset : 0;
	answers->elemtype = BOOLOID;
	memcpy(ARR_DIMS(answers), AARR_DIMS(keys->array), sizeof(int) * dimensions);
	memcpy(ARR_LBOUND(answers), AARR_LBOUND(keys->array), sizeof(int) * dimensions);
	memcpy(ARR_DATA_PTR(answers), found, keys->n);
	for (int i = 0; nulls && i < keys->items; i++)
	{
		if (!keys->nulls[i])
			ARR_NULLBITMAP(answers)[i / 8] |= 1 << i % 8;
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	return answers;
}

/* ..._contains_each(filter, keys): an answer for each, in the array's shape */
PG_FUNCTION_INFO_V1(filter_contains_each);
Datum
filter_contains_each(PG_FUNCTION_ARGS)
{
	bool	   *found;
	KeyArray	keys = probe_elements(fcinfo, &found);

	PG_RETURN_ARRAYTYPE_P(array_of_answers(&keys, found));
}

/* bloom_hash(key): the key hash itself */
PG_FUNCTION_INFO_V1(bloom_hash);
Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	KeyType    *type = argument_key_type(fcinfo, 0, (KeyType **) &fcinfo->flinfo->fn_extra);

	PG_RETURN_INT64((int64) key_hash(type, PG_GETARG_DATUM(0)));
}

/* cuckoo_count(cuckoo, key): how many copies of the key? */
PG_FUNCTION_INFO_V1(cuckoo_count);
Datum
cuckoo_count(PG_FUNCTION_ARGS)
{
	KeyType    *type = argument_key_type(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));
	bf_filter	filter;

	filter_open_argument(&filter, fcinfo, 0);
	filter_check_class(&filter, &type->class);
	PG_RETURN_INT32((int32) bf_layer_copies(&filter.layer[0], bf_table_number(filter.layer[0].table, hash)));
}
