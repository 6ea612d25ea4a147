/*
 * bloom_io.c
 *		Input, output, casts and equality of type bloom.
 *
 * All of it is shared with other filter types; see filter.c.
 */
#include "compat.h"

#include "filter.h"

static const FilterType bloom_type = {BF_KIND_BLOOM, "bloom"};

PG_FUNCTION_INFO_V1(bloom_in);
Datum
bloom_in(PG_FUNCTION_ARGS)
{
	return filter_in(fcinfo, &bloom_type);
}

PG_FUNCTION_INFO_V1(bloom_out);
Datum
bloom_out(PG_FUNCTION_ARGS)
{
	return filter_out(fcinfo);
}

PG_FUNCTION_INFO_V1(bloom_recv);
Datum
bloom_recv(PG_FUNCTION_ARGS)
{
	return filter_recv(fcinfo, &bloom_type);
}

PG_FUNCTION_INFO_V1(bloom_send);
Datum
bloom_send(PG_FUNCTION_ARGS)
{
	return filter_send(fcinfo);
}

PG_FUNCTION_INFO_V1(bloom_from_bytea);
Datum
bloom_from_bytea(PG_FUNCTION_ARGS)
{
	return filter_from_bytea(fcinfo, &bloom_type);
}

PG_FUNCTION_INFO_V1(bloom_to_bytea);
Datum
bloom_to_bytea(PG_FUNCTION_ARGS)
{
	return filter_to_bytea(fcinfo);
}

PG_FUNCTION_INFO_V1(bloom_eq);
Datum
bloom_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(filter_equal(fcinfo));
}

PG_FUNCTION_INFO_V1(bloom_ne);
Datum
bloom_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!filter_equal(fcinfo));
}

PG_FUNCTION_INFO_V1(bloom_hash_value);
Datum
bloom_hash_value(PG_FUNCTION_ARGS)
{
	return filter_hash(fcinfo);
}

PG_FUNCTION_INFO_V1(bloom_hash_value_extended);
Datum
bloom_hash_value_extended(PG_FUNCTION_ARGS)
{
	return filter_hash_extended(fcinfo);
}
