/*
 * key_array.c
 *		Arrays of keys: their hashes, and arrays of what was found.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "core/hashlist.h"
#include "key.h"
#include "server.h"

/* Hash the elements of an array; the KeyType is kept in *cache. */
KeyArray
key_array_of_argument(FunctionCallInfo fcinfo, int argument, KeyType **cache)
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
			CHECK_FOR_INTERRUPTS();
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
			/* each anonymous record has its own class */
			key_class_check(&keys.class, &(*cache)->class);
		}
	}
	return keys;
}

/*
 * Make an array of the results, with the dimensions of the keys' array.  found[] is
 * the data of such an array, so no Datum is made of each element.
 */
ArrayType *
key_array_of_results(const KeyArray *keys, const bool *found)
{
	int			dimensions = AARR_NDIM(keys->array);
	bool		nulls = keys->n < (Size) keys->items;
	Size		offset = nulls ? ARR_OVERHEAD_WITHNULLS(dimensions, keys->items) : ARR_OVERHEAD_NONULLS(dimensions);
	ArrayType  *results;
	uint8	   *bitmap;

	if (keys->items == 0)
		return construct_empty_array(BOOLOID);
	results = palloc0(offset + keys->n);
	SET_VARSIZE(results, offset + keys->n);
	results->ndim = dimensions;
	results->dataoffset = nulls ? (int32) offset : 0;
	results->elemtype = BOOLOID;
	memcpy(ARR_DIMS(results), AARR_DIMS(keys->array), sizeof(int) * dimensions);
	memcpy(ARR_LBOUND(results), AARR_LBOUND(keys->array), sizeof(int) * dimensions);
	memcpy(ARR_DATA_PTR(results), found, keys->n);
	bitmap = ARR_NULLBITMAP(results);
	for (int i = 0; bitmap != NULL && i < keys->items; i++)
	{
		if (!keys->nulls[i])
			bitmap[i / 8] |= 1 << i % 8;
		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
	}
	return results;
}

/*
 * Make an array of the keys that were not found, each once.  Keys of the same hash
 * are equal; the first one is kept.
 */
ArrayType *
key_array_of_missing(const KeyArray *keys, const bool *found)
{
	Oid			element = AARR_ELEMTYPE(keys->array);
	uint64	   *missing = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * (keys->n + 1));
	bool	   *taken;
	Datum	   *values;
	array_iter	iterator;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Size		distinct = 0;
	Size		key = 0;
	int			n = 0;

	for (Size i = 0; i < keys->n; i++)
	{
		if (!found[i])
			missing[distinct++] = keys->hashes[i];
	}
	distinct = bf_hashes_sort_unique(server_host(NULL), missing, distinct, 0);
	if (distinct == 0)
		return construct_empty_array(element);

	taken = palloc0(distinct);
	values = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum) * distinct);
	get_typlenbyvalalign(element, &typlen, &typbyval, &typalign);
	bf_array_iter_setup(&iterator, keys->array, typlen, typbyval, typalign);
	for (int i = 0; i < keys->items; i++)
	{
		bool		isnull;
		Datum		value = bf_array_iter_next(&iterator, &isnull, i, typlen, typbyval, typalign);

		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		if (!found[key])
		{
			Size		place = bf_hashes_find(missing, distinct, keys->hashes[key]);

			if (!taken[place])
				values[n++] = value;
			taken[place] = true;
		}
		key++;
	}
	return construct_array(values, n, element, typlen, typbyval, typalign);
}
