/*
 * bloom_ops.c
 *		Making a bloom filter, adding keys to it, asking it for keys.
 */
#include "compat.h"

#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"

#include "bloom_build.h"

/* bloom_new(capacity, fpp): an empty filter of a fixed size */
PG_FUNCTION_INFO_V1(bloom_new);
Datum
bloom_new(PG_FUNCTION_ARGS)
{
	BloomBuilder builder;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("capacity and false-positive probability must not be null"),
				 errhint("If the number of keys is not known, let bloom_agg(key) find out.")));
	filter_check_capacity(PG_GETARG_INT64(0));
	filter_check_fpp(PG_GETARG_FLOAT8(1));
	build_start(&builder, CurrentMemoryContext, PG_GETARG_INT64(0), PG_GETARG_FLOAT8(1));
	builder.frame->growth = 0;
	PG_RETURN_POINTER(build_flat(&builder));
}

/* How this call site hashes its keys. */
static KeyType *
call_site_key_type(FunctionCallInfo fcinfo, int argument)
{
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra = key_type_of_argument(fcinfo, argument);
	return fcinfo->flinfo->fn_extra;
}

/* bloom_add(bloom, key): the filter with one more key */
PG_FUNCTION_INFO_V1(bloom_add);
Datum
bloom_add(PG_FUNCTION_ARGS)
{
	KeyType    *type;
	bf_filter	filter;
	BloomBuilder builder;
	uint64		hash;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	type = call_site_key_type(fcinfo, 1);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	filter_open_argument(&filter, fcinfo, 0);
	filter_check_class(&filter, &type->class);
	build_load(&builder, CurrentMemoryContext, &filter);
	build_set_class(&builder, &type->class);
	build_add(&builder, hash);
	PG_RETURN_POINTER(build_flat(&builder));
}

/*
 * The hashes of an array's elements, NULLs left out, and how to hash them.
 * For elements that are anonymous records, each has to be of the same class.
 */
static uint64 *
hash_elements(FunctionCallInfo fcinfo, int argument, KeyType **type, Size *n)
{
	AnyArrayType *array = PG_GETARG_ANY_ARRAY_P(argument);
	Oid			element = AARR_ELEMTYPE(array);
	int			items = ArrayGetNItems(AARR_NDIM(array), AARR_DIMS(array));
	uint64	   *hashes = palloc(sizeof(uint64) * Max(items, 1));
	array_iter	iterator;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	KeyClass	first = {0};

	*type = fcinfo->flinfo->fn_extra;
	if (*type == NULL || (*type)->typid != getBaseType(element))
		fcinfo->flinfo->fn_extra = *type = key_type(element, PG_GET_COLLATION(), fcinfo->flinfo->fn_mcxt);
	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	array_iter_setup(&iterator, array);
	*n = 0;
	for (int i = 0; i < items; i++)
	{
		bool		isnull;
		Datum		value = array_iter_next(&iterator, &isnull, i, typlen, typbyval, typalign);

		if (isnull)
			continue;
		hashes[(*n)++] = key_hash(*type, value);
		if (first.code == BF_CLASS_NONE)
			first = (*type)->class;
		else if (first.name != (*type)->class.name)
		{
			bf_filter	others;

			filter_set_class(&others, &first);
			filter_check_class(&others, &(*type)->class);
		}
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	return hashes;
}

/* bloom_add_all(bloom, keys): the filter with all keys of an array */
PG_FUNCTION_INFO_V1(bloom_add_all);
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	KeyType    *type;
	uint64	   *hashes;
	Size		n;
	bf_filter	filter;
	BloomBuilder builder;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	hashes = hash_elements(fcinfo, 1, &type, &n);
	if (n == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	filter_open_argument(&filter, fcinfo, 0);
	filter_check_class(&filter, &type->class);
	build_load(&builder, CurrentMemoryContext, &filter);
	build_set_class(&builder, &type->class);
	build_add_many(&builder, hashes, n);
	PG_RETURN_POINTER(build_flat(&builder));
}

/* bloom_contains(bloom, key): can the key have been added? */
PG_FUNCTION_INFO_V1(bloom_contains);
Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	KeyType    *type = call_site_key_type(fcinfo, 1);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));
	bf_filter	filter;

	filter_open_argument(&filter, fcinfo, 0);
	filter_check_class(&filter, &type->class);
	PG_RETURN_BOOL(bf_filter_contains(&filter, hash));
}

/* bloom_hash(key): the key hash itself */
PG_FUNCTION_INFO_V1(bloom_hash);
Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) key_hash(call_site_key_type(fcinfo, 0), PG_GETARG_DATUM(0)));
}
