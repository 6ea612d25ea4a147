/*
 * stats.c
 *		Statistics of a filter, and the size that a filter would have.
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "core/growth.h"
#include "core/query.h"
#include "value.h"

static bf_census
census_of_argument(FunctionCallInfo fcinfo)
{
	bf_filter	filter;

	value_open_argument(&filter, fcinfo, 0, 0);
	return bf_filter_census(&filter);
}

/* bloom_cardinality, cuckoo_cardinality(filter): the estimated number of distinct keys */
SQL_FUNCTION(filter_cardinality, Int64GetDatum((int64) rint(census_of_argument(fcinfo).keys)));

/* bloom_fpp, cuckoo_fpp(filter): the current false-positive probability */
SQL_FUNCTION(filter_fpp, Float8GetDatum(census_of_argument(fcinfo).fpp));

static TupleDesc
result_type(FunctionCallInfo fcinfo)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return BlessTupleDesc(desc);
}

/*
 * Advice is given if the false-positive probability and the number of keys exceed target
 * and capacity by these factors.  Both vary: at a target of 1e-5, the probability of a
 * small filter that is full can be twice the target.
 */
#define FPP_TOLERANCE	1.5
#define KEYS_TOLERANCE	1.1

/* Return advice on a filter, or NULL. */
static const char *
bloom_advice(const bf_filter *filter, bf_census census, int64 capacity)
{
	bool		has_more = filter->layers > 1 || census.keys > (double) capacity * KEYS_TOLERANCE;

	if (!bf_layers_fit(filter))
		return psprintf("build filters with one capacity before merging them: the false-positive rates of %d layers add up, and a key is counted once for each layer that has it",
						filter->layers);
	if (has_more && census.fpp > filter->header.fpp * FPP_TOLERANCE)
		return psprintf("build the filter with a capacity of at least %lld: it was made for fewer keys, and its false-positive rate is %.2g instead of %.2g",
						(long long) rint(census.keys), census.fpp, filter->header.fpp);
	return NULL;
}

PG_FUNCTION_INFO_V1(bloom_stats);
Datum
bloom_stats(PG_FUNCTION_ARGS)
{
	struct varlena *image;
	TupleDesc	desc = result_type(fcinfo);
	bf_filter	filter;
	bf_census	census;
	int64		bits = 0;
	int64		line_bits = 0;
	int64		capacity = 0;
	int32		hashes = 0;
	const char *advice;
	Datum		values[14];
	bool		nulls[14] = {0};

	image = value_open_argument(&filter, fcinfo, 0, BF_KIND_BLOOM);
	census = bf_filter_census(&filter);
	for (int i = 0; i < filter.layers; i++)
	{
		const bf_layer *layer = &filter.layer[i];

		bits += (int64) layer->shape.words * 64;
		if (layer->form == BF_FORM_LINES)
			line_bits += (int64) layer->shape.words * 64;
		capacity += (int64) layer->capacity;
		hashes = Max(hashes, layer->shape.groups * layer->shape.probes);
	}

	values[0] = Int64GetDatum((int64) (VARSIZE_ANY_EXHDR(image) + VARHDRSZ));
	values[1] = Int64GetDatum(bits);
	values[2] = Int32GetDatum(hashes);
	values[3] = Int32GetDatum(filter.layers);
	values[4] = Int64GetDatum(capacity);
	values[5] = Int64GetDatum((int64) rint(census.keys));
	values[6] = Float8GetDatum(line_bits > 0 ? (double) census.bits_set / (double) line_bits : 0.0);
	values[7] = Float8GetDatum(filter.header.fpp);
	values[8] = Float8GetDatum(census.fpp);
	values[9] = Int32GetDatum(filter.header.growth);
	values[10] = Int32GetDatum(filter.header.max_layers);
	nulls[10] = filter.header.max_layers == 0;
	values[11] = CStringGetTextDatum(key_class_label(&filter.header.class));
	nulls[11] = filter.header.class.code == BF_CLASS_NONE;
	values[12] = Int32GetDatum(BF_FORMAT_VERSION);
	advice = bloom_advice(&filter, census, capacity);
	nulls[13] = advice == NULL;
	values[13] = nulls[13] ? (Datum) 0 : CStringGetTextDatum(advice);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* bloom_layers(bloom): a row per layer, the oldest first */
PG_FUNCTION_INFO_V1(bloom_layers);
Datum
bloom_layers(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	value_open_argument(&filter, fcinfo, 0, BF_KIND_BLOOM);
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < filter.layers; i++)
	{
		const bf_layer *layer = &filter.layer[i];
		bf_census	census = bf_layer_census(filter.header.host, layer);
		Datum		values[7];
		bool		nulls[7] = {0};

		values[0] = Int32GetDatum(i + 1);
		values[1] = Int64GetDatum((int64) layer->capacity);
		values[2] = Int64GetDatum((int64) rint(census.keys));
		values[3] = Int64GetDatum((int64) bf_layer_bytes(layer));
		values[4] = Int32GetDatum(layer->shape.groups * layer->shape.probes);
		values[5] = Float8GetDatum(layer->form == BF_FORM_LINES ?
								   (double) census.bits_set / ((double) layer->shape.words * 64) : 0.0);
		values[6] = Float8GetDatum(census.fpp);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* cuckoo_stats(cuckoo): geometry, contents and false-positive probability */
PG_FUNCTION_INFO_V1(cuckoo_stats);
Datum
cuckoo_stats(PG_FUNCTION_ARGS)
{
	struct varlena *image;
	TupleDesc	desc = result_type(fcinfo);
	bf_filter	filter;
	const bf_layer *layer = &filter.layer[0];
	bf_census	census;
	uint64		slots;
	Datum		values[12];
	bool		nulls[12] = {0};

	image = value_open_argument(&filter, fcinfo, 0, BF_KIND_CUCKOO);
	census = bf_filter_census(&filter);
	slots = layer->table.buckets * BF_BUCKET_SLOTS;
	values[0] = Int64GetDatum((int64) (VARSIZE_ANY_EXHDR(image) + VARHDRSZ));
	values[1] = Int64GetDatum((int64) (slots * layer->table.slot_bits));
	values[2] = Int32GetDatum(layer->table.slot_bits);
	values[3] = Int64GetDatum((int64) layer->capacity);
	values[4] = Int64GetDatum((int64) rint(census.keys));
	values[5] = Float8GetDatum(slots > 0 ? (double) layer->used / (double) slots : 0.0);
	values[6] = Int64GetDatum((int64) layer->count);
	values[7] = Float8GetDatum(filter.header.fpp);
	values[8] = Float8GetDatum(census.fpp);
	values[9] = Int32GetDatum(filter.header.growth);
	values[10] = CStringGetTextDatum(key_class_label(&filter.header.class));
	nulls[10] = filter.header.class.code == BF_CLASS_NONE;
	values[11] = Int32GetDatum(BF_FORMAT_VERSION);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* The size of a full filter with equal layers. */
static int64
plan_bytes(bf_layer layer, int layers)
{
	bf_filter	filter = {.layers = layers,.header.class.code = BF_CLASS_INTEGER};

	for (int i = 0; i < layers; i++)
		filter.layer[i] = layer;
	return (int64) bf_filter_size(&filter) + VARHDRSZ;
}

/*
 * Return bytes, bits per key and `third` for a full filter with equal layers.  The fourth
 * column is for bloom_plan: the size if the first layer has the shape `growing`, or NULL if
 * that is beyond the limit.
 */
static Datum
plan_record(FunctionCallInfo fcinfo, bf_layer layer, int layers, int32 third, bf_shape growing)
{
	TupleDesc	desc = result_type(fcinfo);
	int64		capacity = PG_GETARG_INT64(0) * layers;
	uint64		words = layer.shape.words + bf_table_words(layer.table);
	int64		bytes;
	Datum		values[4];
	bool		nulls[4] = {0};

	value_check_words(words, PG_GETARG_INT64(0), PG_GETARG_FLOAT8(1));
	if (layers > 1)
		value_check_words(words * layers, capacity, PG_GETARG_FLOAT8(1));
	bytes = plan_bytes(layer, layers);
	values[0] = Int64GetDatum(bytes);
	values[1] = Float8GetDatum((double) bytes * 8 / (double) capacity);
	values[2] = Int32GetDatum(third);
	nulls[3] = !value_words_fit(growing.words);
	values[3] = nulls[3] ? (Datum) 0 : Int64GetDatum(plan_bytes((bf_layer) {.shape = growing, .form = BF_FORM_LINES}, 1));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/*
 * bloom_plan(capacity, fpp, growth, max_layers): without the last two arguments the
 * size of bloom_agg's filter.  With one of them the size of bloom_new's, whose first
 * layer has only a share of the probability; of a window, with all layers.  In any case,
 * growing_bytes is the size of bloom_new(capacity, fpp).
 */
PG_FUNCTION_INFO_V1(bloom_plan);
Datum
bloom_plan(PG_FUNCTION_ARGS)
{
	int32		max_layers = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT32(3);
	int32		growth = !PG_ARGISNULL(2) ? PG_GETARG_INT32(2) : PG_ARGISNULL(3) ? 0 : 1;
	bf_shape	shape;
	bf_shape	growing;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	value_check_capacity(PG_GETARG_INT64(0));
	value_check_fpp(PG_GETARG_FLOAT8(1));
	value_check_growth(growth, PG_ARGISNULL(3) ? NULL : &max_layers);
	shape = bf_first_shape((uint64) PG_GETARG_INT64(0), PG_GETARG_FLOAT8(1), (unsigned) growth, (unsigned) max_layers);
	growing = bf_first_shape((uint64) PG_GETARG_INT64(0), PG_GETARG_FLOAT8(1), BF_DEFAULT_GROWTH, 0);
	return plan_record(fcinfo, (bf_layer) {.shape = shape, .form = BF_FORM_LINES}, Max(max_layers, 1),
					   shape.groups * shape.probes, growing);
}

PG_FUNCTION_INFO_V1(cuckoo_plan);
Datum
cuckoo_plan(PG_FUNCTION_ARGS)
{
	int32		growth = PG_GETARG_INT32(2);
	bf_table	table;

	value_check_capacity(PG_GETARG_INT64(0));
	value_check_fpp(PG_GETARG_FLOAT8(1));
	value_check_cuckoo_growth(growth);
	table = bf_table_for((uint64) PG_GETARG_INT64(0), PG_GETARG_FLOAT8(1), (unsigned) growth);
	return plan_record(fcinfo, (bf_layer) {.table = table, .form = BF_FORM_TABLE}, 1, table.slot_bits, (bf_shape) {0});
}
