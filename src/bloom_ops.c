/*
 * bloom_ops.c
 *		Making a bloom filter, adding keys to it, asking it for keys.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"

#include "bloom_build.h"
#include "bloom_expanded.h"
#include "bloom_probe.h"

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

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("capacity and false-positive probability must not be null"),
				 errhint("If the number of keys is not known, let bloom_agg(key) find out.")));
	capacity = PG_GETARG_INT64(0);
	fpp = PG_GETARG_FLOAT8(1);
	max_layers = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3);
	growth = !PG_ARGISNULL(2) ? PG_GETARG_INT32(2) : max_layers != 0 ? 1 : BF_DEFAULT_GROWTH;
	filter_check_capacity(capacity);
	filter_check_fpp(fpp);
	if (!PG_ARGISNULL(3) && (max_layers < 2 || max_layers > BF_MAX_LAYERS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_layers must be between 2 and %d", BF_MAX_LAYERS),
				 errdetail("The number given is %d.", max_layers),
				 errhint("A rotating filter of m layers always holds its newest (m - 1) x capacity keys.")));
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
	filter_check_shape(shape, capacity, fpp);
	if (max_layers > 0)
	{
		bf_shape	window = {shape.words * max_layers, shape.groups, shape.probes};

		filter_check_shape(window, capacity * max_layers, fpp);
	}
	build_start(&builder, CurrentMemoryContext, shape, (uint64) capacity, fpp);
	builder.frame->growth = (uint8) growth;
	builder.frame->max_layers = (uint8) max_layers;
	PG_RETURN_POINTER(build_flat(&builder));
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
	array_iter_setup(&iterator, array);
	for (int i = 0; i < keys.items; i++)
	{
		Datum		value = array_iter_next(&iterator, &keys.nulls[i], i, typlen, typbyval, typalign);

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
 * Adding
 * ----------------------------------------------------------------
 */

/*
 * The filter argument with keys added.  A read-write expanded object is changed
 * in place: it is the caller's to change.
 */
static Datum
add_keys(FunctionCallInfo fcinfo, const KeyClass *class, const uint64 *hashes, Size n)
{
	Datum		value = PG_GETARG_DATUM(0);
	ExpandedBloom *expanded = NULL;
	BloomBuilder flat;
	BloomBuilder *builder = &flat;
	bf_filter	filter;

	if (VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value)))
		expanded = expanded_bloom(value);
	if (expanded != NULL)
	{
		builder = &expanded->builder;
		filter_check_class(builder->frame, class);
	}
	else
	{
		filter_open_argument(&filter, fcinfo, 0);
		filter_check_class(&filter, class);
		if (BF_MODIFY_IN_PLACE)
		{
			expanded = expanded_bloom_create(CurrentMemoryContext);
			builder = &expanded->builder;
		}
		build_load(builder, expanded ? expanded->header.eoh_context : CurrentMemoryContext, &filter);
	}
	if (builder->frame->key_class == BF_CLASS_NONE)
		build_set_class(builder, class);
	build_add_many(builder, hashes, n);
	if (expanded != NULL)
		PG_RETURN_DATUM(EOHPGetRWDatum(&expanded->header));
	PG_RETURN_POINTER(build_flat(builder));
}

/* bloom_add(bloom, key): the filter with one more key */
PG_FUNCTION_INFO_V1(bloom_add);
Datum
bloom_add(PG_FUNCTION_ARGS)
{
	KeyType    *type;
	uint64		hash;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	type = argument_key_type(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	return add_keys(fcinfo, &type->class, &hash, 1);
}

/* bloom_add_all(bloom, keys): the filter with all keys of an array */
PG_FUNCTION_INFO_V1(bloom_add_all);
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	KeyArray	keys;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	keys = hash_elements(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	if (keys.n == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return add_keys(fcinfo, &keys.class, keys.hashes, keys.n);
}

/* ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* bloom_contains(bloom, key): can the key have been added? */
PG_FUNCTION_INFO_V1(bloom_contains);
Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	BloomProbe *probe = bloom_probe(fcinfo);
	KeyType    *type = argument_key_type(fcinfo, 1, bloom_probe_key_type(probe));
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));

	PG_RETURN_BOOL(bloom_probe_one(probe, PG_GETARG_DATUM(0), &type->class, hash));
}

/* Ask for all keys of an array; found[] has one entry for each not null. */
static KeyArray
probe_elements(FunctionCallInfo fcinfo, bool **found)
{
	BloomProbe *probe = bloom_probe(fcinfo);
	KeyArray	keys = hash_elements(fcinfo, 1, bloom_probe_key_type(probe));

	*found = palloc(sizeof(bool) * Max(keys.n, 1));
	if (keys.n > 0)
		bloom_probe_many(probe, PG_GETARG_DATUM(0), &keys.class, keys.hashes, keys.n, *found);
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

/* bloom_contains_any(bloom, keys): can any of them have been added? */
PG_FUNCTION_INFO_V1(bloom_contains_any);
Datum
bloom_contains_any(PG_FUNCTION_ARGS)
{
	return probe_until(fcinfo, true);
}

/* bloom_contains_all(bloom, keys): can all of them have been added? */
PG_FUNCTION_INFO_V1(bloom_contains_all);
Datum
bloom_contains_all(PG_FUNCTION_ARGS)
{
	return probe_until(fcinfo, false);
}

/* bloom_contains_each(bloom, keys): an answer for each, in the array's shape */
PG_FUNCTION_INFO_V1(bloom_contains_each);
Datum
bloom_contains_each(PG_FUNCTION_ARGS)
{
	bool	   *found;
	KeyArray	keys = probe_elements(fcinfo, &found);
	Datum	   *answers = palloc(sizeof(Datum) * Max(keys.items, 1));
	Size		next = 0;

	for (int i = 0; i < keys.items; i++)
		answers[i] = BoolGetDatum(keys.nulls[i] ? false : found[next++]);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(answers, keys.nulls, AARR_NDIM(keys.array),
											 AARR_DIMS(keys.array), AARR_LBOUND(keys.array),
											 BOOLOID, sizeof(bool), true, TYPALIGN_CHAR));
}

/* bloom_hash(key): the key hash itself */
PG_FUNCTION_INFO_V1(bloom_hash);
Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	KeyType    *type = argument_key_type(fcinfo, 0, (KeyType **) &fcinfo->flinfo->fn_extra);

	PG_RETURN_INT64((int64) key_hash(type, PG_GETARG_DATUM(0)));
}
