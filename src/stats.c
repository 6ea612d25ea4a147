/*
 * stats.c
 *		What a filter says about itself, and what one would cost.
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "core/query.h"
#include "value.h"

PG_FUNCTION_INFO_V1(filter_cardinality);
Datum
filter_cardinality(PG_FUNCTION_ARGS)
{
	bf_filter	filter;

	value_open_argument(&filter, fcinfo, 0);
	PG_RETURN_INT64((int64) rint(bf_filter_census(&filter).keys));
}

PG_FUNCTION_INFO_V1(filter_fpp);
Datum
filter_fpp(PG_FUNCTION_ARGS)
{
	bf_filter	filter;

	value_open_argument(&filter, fcinfo, 0);
	PG_RETURN_FLOAT8(bf_filter_census(&filter).fpp);
}

static TupleDesc
result_type(FunctionCallInfo fcinfo)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return BlessTupleDesc(desc);
}

PG_FUNCTION_INFO_V1(bloom_stats);
Datum
bloom_stats(PG_FUNCTION_ARGS)
{
	struct varlena *image;
	TupleDesc	desc = result_type(fcinfo);
	bf_filter	filter;
	bf_census	census;
	KeyClass	class;
	int64		bits = 0;
	int64		line_bits = 0;
	int64		capacity = 0;
	int32		hashes = 0;
	Datum		values[13];
	bool		nulls[13] = {0};

	image = value_open_argument(&filter, fcinfo, 0);
	census = bf_filter_census(&filter);
	class = filter.header.class;
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
	values[11] = CStringGetTextDatum(key_class_label(&class));
	nulls[11] = class.code == BF_CLASS_NONE;
	values[12] = Int32GetDatum(BF_FORMAT_VERSION);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* bloom_layers(bloom): a row for each layer, the oldest first */
PG_FUNCTION_INFO_V1(bloom_layers);
Datum
bloom_layers(PG_FUNCTION_ARGS)
{
	bf_filter	filter;
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	value_open_argument(&filter, fcinfo, 0);
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

/* cuckoo_stats(cuckoo): the same for a table */
PG_FUNCTION_INFO_V1(cuckoo_stats);
Datum
cuckoo_stats(PG_FUNCTION_ARGS)
{
	struct varlena *image;
	TupleDesc	desc = result_type(fcinfo);
	bf_filter	filter;
	const bf_layer *layer = &filter.layer[0];
	bf_census	census;
	KeyClass	class;
	uint64		slots;
	Datum		values[12];
	bool		nulls[12] = {0};

	image = value_open_argument(&filter, fcinfo, 0);
	census = bf_filter_census(&filter);
	class = filter.header.class;
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
	values[10] = CStringGetTextDatum(key_class_label(&class));
	nulls[10] = class.code == BF_CLASS_NONE;
	values[11] = Int32GetDatum(BF_FORMAT_VERSION);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* What a full filter of this description costs: bytes, bits per key, and `third`. */
static Datum
plan_record(FunctionCallInfo fcinfo, bf_filter *filter, int64 capacity, int32 third)
{
	TupleDesc	desc = result_type(fcinfo);
	int64		bytes;
	Datum		values[3];
	bool		nulls[3] = {0};

	filter->layers = 1;
	filter->header.class.code = BF_CLASS_INTEGER;
	bytes = (int64) bf_filter_size(filter) + VARHDRSZ;
	values[0] = Int64GetDatum(bytes);
	values[1] = Float8GetDatum((double) bytes * 8 / (double) capacity);
	values[2] = Int32GetDatum(third);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

PG_FUNCTION_INFO_V1(bloom_plan);
Datum
bloom_plan(PG_FUNCTION_ARGS)
{
	int64		capacity = PG_GETARG_INT64(0);
	bf_shape	shape = value_shape(capacity, PG_GETARG_FLOAT8(1));
	bf_filter	filter;

	memset(&filter, 0, sizeof(filter));
	filter.layer[0].shape = shape;
	filter.layer[0].form = BF_FORM_LINES;
	return plan_record(fcinfo, &filter, capacity, shape.groups * shape.probes);
}

PG_FUNCTION_INFO_V1(cuckoo_plan);
Datum
cuckoo_plan(PG_FUNCTION_ARGS)
{
	int64		capacity = PG_GETARG_INT64(0);
	double		fpp = PG_GETARG_FLOAT8(1);
	int32		growth = PG_GETARG_INT32(2);
	bf_filter	filter;
	bf_layer   *layer = &filter.layer[0];

	memset(&filter, 0, sizeof(filter));
	value_check_capacity(capacity);
	value_check_fpp(fpp);
	value_check_cuckoo_growth(growth);
	layer->table = bf_table_for((uint64) capacity, fpp, (unsigned) growth);
	value_check_words(bf_table_words(layer->table), capacity, fpp);
	layer->form = BF_FORM_TABLE;
	return plan_record(fcinfo, &filter, capacity, layer->table.slot_bits);
}
