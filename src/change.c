/*
 * change.c
 *		bloom_new, bloom_add, bloom_add_all, cuckoo_new, cuckoo_add,
 *		cuckoo_delete and so on: creating filters, adding and removing keys.
 *
 * A change without effect returns the argument itself.  For a stored filter that is
 * the TOAST pointer of the row, so an UPDATE writes nothing but the row.
 */
#include "compat.h"

#include "access/detoast.h"

#include "builder.h"
#include "core/growth.h"

/* ----------------------------------------------------------------
 * Creating
 * ----------------------------------------------------------------
 */

/* Get the first two parameters of both constructors. */
static void
get_size_parameters(FunctionCallInfo fcinfo, uint16 kind, int64 *capacity, double *fpp)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("capacity must not be null"),
				 errhint("If the number of keys is unknown, use %s_agg(key), which determines it.", value_type_name(kind))));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("false-positive probability must not be null"),
				 errhint("Omit the argument for the default of 0.01.")));
	*capacity = PG_GETARG_INT64(0);
	*fpp = PG_GETARG_FLOAT8(1);
	value_check_capacity(*capacity);
	value_check_fpp(*fpp);
}

/*
 * bloom_new(capacity, fpp, growth, max_layers): an empty filter that grows, has a
 * fixed size, or is a rotating window of layers
 */
PG_FUNCTION_INFO_V1(bloom_new);
Datum
bloom_new(PG_FUNCTION_ARGS)
{
	bf_mutable	filter;
	int64		capacity;
	double		fpp;
	int32		growth;
	int32		max_layers;
	bf_shape	shape;

	get_size_parameters(fcinfo, BF_KIND_BLOOM, &capacity, &fpp);
	max_layers = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3);
	growth = !PG_ARGISNULL(2) ? PG_GETARG_INT32(2) : max_layers != 0 ? 1 : BF_DEFAULT_GROWTH;
	value_check_growth(growth, PG_ARGISNULL(3) ? NULL : &max_layers);

	shape = bf_first_shape((uint64) capacity, fpp, (unsigned) growth, (unsigned) max_layers);
	value_check_words(shape.words, capacity, fpp);
	if (max_layers > 0)
		value_check_words(shape.words * max_layers, capacity * max_layers, fpp);
	bf_bloom_start(&filter.bloom, server_host(NULL), (bf_size) {shape, (uint64) capacity}, fpp);
	filter.header.growth = (uint8) growth;
	filter.header.max_layers = (uint8) max_layers;
	PG_RETURN_POINTER(builder_flat(&filter));
}

/* cuckoo_new(capacity, fpp, growth): an empty filter that grows when it is full */
PG_FUNCTION_INFO_V1(cuckoo_new);
Datum
cuckoo_new(PG_FUNCTION_ARGS)
{
	bf_mutable	filter;
	int64		capacity;
	double		fpp;
	int32		growth = PG_ARGISNULL(2) ? BF_DEFAULT_GROWTH : PG_GETARG_INT32(2);
	bf_table	table;

	get_size_parameters(fcinfo, BF_KIND_CUCKOO, &capacity, &fpp);
	value_check_cuckoo_growth(growth);
	table = bf_table_for((uint64) capacity, fpp, (unsigned) growth);
	value_check_words(bf_table_words(table), capacity, fpp);
	bf_cuckoo_start(&filter.cuckoo, server_host(NULL), table, (uint64) capacity, fpp);
	filter.header.growth = (uint8) growth;
	PG_RETURN_POINTER(builder_flat(&filter));
}

/* ----------------------------------------------------------------
 * Adding and removing
 * ----------------------------------------------------------------
 */

/*
 * Do slices of a stored filter show that the change has no effect?  False if they do
 * not, or if the filter is not valid; the whole filter has to be read then.
 */
static bool
change_is_void_by_slices(Datum value, bf_change change, const KeyClass *class, const uint64 *hashes, Size n)
{
	struct varlena *image = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	bf_filter	filter;
	uint64		size;

	if (!VARATT_IS_EXTERNAL_ONDISK(image))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, image);
	size = pointer.va_rawsize - VARHDRSZ;
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer) || n > value_sliced_probes(size) ||
		bf_filter_open_pieces(&filter, server_host(NULL), size, value_fetch_slice, &value) != NULL ||
		bf_filter_is_unfinished(&filter))
		return false;
	key_class_check(&filter.header.class, class);
	return bf_change_is_void_pieces(&filter, value_fetch_slice, &value, change, hashes, n);
}

/*
 * Change the filter argument.  A read-write expanded object is changed in place; if
 * that fails, it is unchanged.
 */
static Datum
change_filter(FunctionCallInfo fcinfo, bf_change change, const KeyClass *class, const uint64 *hashes, Size n)
{
	FilterObject *object = filter_object_to_change(PG_GETARG_DATUM(0));
	bf_mutable	flat;
	bf_filter	filter;

	if (object != NULL)
	{
		filter_object_check(object);
		key_class_check(&object->filter.header.class, class);
		filter_object_change(object, change, class, hashes, n);
		PG_RETURN_DATUM(filter_object_datum(object));
	}
	if (change_is_void_by_slices(PG_GETARG_DATUM(0), change, class, hashes, n))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	value_open_argument(&filter, fcinfo, 0, change == BF_REMOVE ? BF_KIND_CUCKOO : 0);
	key_class_check(&filter.header.class, class);

	/*
	 * where variables can be changed in place, a flat one becomes an object
	 * even if nothing changes, so that later calls need not copy it
	 */
	if ((!BF_MODIFY_IN_PLACE || VARATT_IS_EXTERNAL(DatumGetPointer(PG_GETARG_DATUM(0)))) &&
		bf_change_is_void(&filter, change, hashes, n))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (BF_MODIFY_IN_PLACE)
	{
		object = filter_object_create(CurrentMemoryContext);
		bf_mutable_load(&object->filter, filter_object_host(object), &filter);
		bf_mutable_change(&object->filter, change, class, hashes, n);
		PG_RETURN_DATUM(filter_object_datum(object));
	}
	bf_mutable_load(&flat, server_host(NULL), &filter);
	bf_mutable_change(&flat, change, class, hashes, n);
	PG_RETURN_POINTER(builder_flat(&flat));
}

/* Change the filter by the second argument: a key or an array.  NULL keys are skipped. */
static Datum
change_by_argument(FunctionCallInfo fcinfo, bf_change change, bool is_array)
{
	KeyType   **type = (KeyType **) &fcinfo->flinfo->fn_extra;
	KeyArray	keys = {0};
	uint64		hash;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (!PG_ARGISNULL(1) && is_array)
		keys = key_array_of_argument(fcinfo, 1, type);
	else if (!PG_ARGISNULL(1))
	{
		hash = key_hash(key_type_of_call(fcinfo, 1, type), PG_GETARG_DATUM(1));
		keys = (KeyArray) {.class = (*type)->class, .hashes = &hash, .n = 1};
	}
	if (keys.n == 0)
		PG_RETURN_DATUM(filter_unchanged(PG_GETARG_DATUM(0)));
	return change_filter(fcinfo, change, &keys.class, keys.hashes, keys.n);
}

/* bloom_add, cuckoo_add(filter, key): the filter with a key added */
SQL_FUNCTION(filter_add, change_by_argument(fcinfo, BF_ADD, false));

/* bloom_add_all, cuckoo_add_all(filter, keys): the filter with all keys of an array added */
SQL_FUNCTION(filter_add_all, change_by_argument(fcinfo, BF_ADD, true));

/* cuckoo_delete(filter, key): the filter with one copy of a key removed */
SQL_FUNCTION(cuckoo_delete, change_by_argument(fcinfo, BF_REMOVE, false));

/* cuckoo_delete_all(filter, keys): the filter with one copy of each key removed */
SQL_FUNCTION(cuckoo_delete_all, change_by_argument(fcinfo, BF_REMOVE, true));

/* bloom_rotate(filter): begin a new layer of a rotating filter, and drop the oldest */
PG_FUNCTION_INFO_V1(bloom_rotate);
Datum
bloom_rotate(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	bf_mutable	rotated;

	value_open_argument(&filter, fcinfo, 0, BF_KIND_BLOOM);
	if (filter.header.max_layers == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot rotate a filter without max_layers"),
				 errhint("Create the filter with bloom_new(capacity, fpp, max_layers => n).")));
	bf_mutable_load(&rotated, server_host(NULL), &filter);
	bf_bloom_rotate(&rotated.bloom);
	PG_RETURN_POINTER(builder_flat(&rotated));
}
