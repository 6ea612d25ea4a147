/*
 * io.c
 *		Input, output, casts and equality of the filter types.
 *
 * A filter is the same bytes on disk, on the wire and as bytea; the text form
 * is those bytes in base64.
 */
#include "compat.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "agg.h"
#include "build.h"
#include "core/base64.h"

/* The gate for bytes from outside; NULL if they are a filter of this type. */
static const char *
validate(const FilterType *type, const uint8 *bytes, Size n)
{
	const char *problem = bf_filter_validate(bytes, n, type->kind);
	bf_filter	filter;

	if (problem != NULL)
		return problem;
	bf_filter_open(&filter, bytes, n);
	if (filter.key_class == BF_CLASS_NAMED &&
		!pg_verify_mbstr(PG_UTF8, filter.name, filter.name_length, true))
		return "The name of its key class is malformed.";
	return NULL;
}

static Datum
filter_in(FunctionCallInfo fcinfo, const FilterType *type)
{
	const char *string = PG_GETARG_CSTRING(0);
	size_t		length = strlen(string);
	size_t		n;
	size_t		bad;
	struct varlena *image;
	const char *problem;

	if (!bf_base64_decoded_size(string, length, &n))
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", type->name),
					errdetail("The text has %zu characters; base64 comes in groups of four.", length),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	if (n + VARHDRSZ > BF_MAX_BYTES)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("filter would need %zu bytes", n + VARHDRSZ),
					errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES)));
	image = palloc(n + VARHDRSZ);
	SET_VARSIZE(image, n + VARHDRSZ);
	if (!bf_base64_decode((uint8 *) VARDATA(image), string, length, &bad))
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", type->name),
					errdetail("The character at position %zu is not valid base64 there.", bad + 1),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	problem = validate(type, (uint8 *) VARDATA(image), n);
	if (problem != NULL)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input for type %s", type->name),
					errdetail("%s", problem),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	PG_RETURN_POINTER(image);
}

PG_FUNCTION_INFO_V1(filter_out);
Datum
filter_out(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);
	Size		n = VARSIZE_ANY_EXHDR(image);
	Size		length = bf_base64_encoded_size(n);
	char	   *string = palloc(length + 1);

	bf_base64_encode(string, (uint8 *) VARDATA_ANY(image), n);
	string[length] = '\0';
	PG_RETURN_CSTRING(string);
}

static Datum
filter_from_bytes(const FilterType *type, const char *bytes, Size n)
{
	const char *problem = validate(type, (const uint8 *) bytes, n);
	struct varlena *image;

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary representation of type %s", type->name),
				 errdetail("%s", problem)));
	image = palloc(n + VARHDRSZ);
	SET_VARSIZE(image, n + VARHDRSZ);
	memcpy(VARDATA(image), bytes, n);
	PG_RETURN_POINTER(image);
}

static Datum
filter_recv(FunctionCallInfo fcinfo, const FilterType *type)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			n = message->len - message->cursor;

	return filter_from_bytes(type, pq_getmsgbytes(message, n), (Size) n);
}

PG_FUNCTION_INFO_V1(filter_send);
Datum
filter_send(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

Datum
filter_from_bytea(FunctionCallInfo fcinfo, const FilterType *type)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	return filter_from_bytes(type, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

PG_FUNCTION_INFO_V1(filter_to_bytea);
Datum
filter_to_bytea(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);
	Size		n = VARSIZE_ANY_EXHDR(image);
	bytea	   *bytes = palloc(n + VARHDRSZ);

	SET_VARSIZE(bytes, n + VARHDRSZ);
	memcpy(VARDATA(bytes), VARDATA_ANY(image), n);
	PG_RETURN_BYTEA_P(bytes);
}

/* What has to know which type it makes. */
PG_FUNCTION_INFO_V1(bloom_in);
Datum
bloom_in(PG_FUNCTION_ARGS)
{
	return filter_in(fcinfo, &bloom_methods.type);
}

PG_FUNCTION_INFO_V1(bloom_recv);
Datum
bloom_recv(PG_FUNCTION_ARGS)
{
	return filter_recv(fcinfo, &bloom_methods.type);
}

PG_FUNCTION_INFO_V1(bloom_from_bytea);
Datum
bloom_from_bytea(PG_FUNCTION_ARGS)
{
	return filter_from_bytea(fcinfo, &bloom_methods.type);
}

PG_FUNCTION_INFO_V1(cuckoo_in);
Datum
cuckoo_in(PG_FUNCTION_ARGS)
{
	return filter_in(fcinfo, &cuckoo_methods.type);
}

PG_FUNCTION_INFO_V1(cuckoo_recv);
Datum
cuckoo_recv(PG_FUNCTION_ARGS)
{
	return filter_recv(fcinfo, &cuckoo_methods.type);
}

PG_FUNCTION_INFO_V1(cuckoo_from_bytea);
Datum
cuckoo_from_bytea(PG_FUNCTION_ARGS)
{
	return filter_from_bytea(fcinfo, &cuckoo_methods.type);
}

/* ----------------------------------------------------------------
 * Equality
 * ----------------------------------------------------------------
 */

/* Filters are equal if their bytes are; most that are not differ in size. */
static bool
filter_equal(FunctionCallInfo fcinfo)
{
	Size		left_size = toast_raw_datum_size(PG_GETARG_DATUM(0));
	Size		right_size = toast_raw_datum_size(PG_GETARG_DATUM(1));
	struct varlena *left;
	struct varlena *right;

	if (left_size != right_size && !agg_is_state_size(left_size) && !agg_is_state_size(right_size))
		return false;
	left = PG_GETARG_FILTER_P(0);
	right = PG_GETARG_FILTER_P(1);
	return VARSIZE_ANY_EXHDR(left) == VARSIZE_ANY_EXHDR(right) &&
		memcmp(VARDATA_ANY(left), VARDATA_ANY(right), VARSIZE_ANY_EXHDR(left)) == 0;
}

PG_FUNCTION_INFO_V1(filter_eq);
Datum
filter_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(filter_equal(fcinfo));
}

PG_FUNCTION_INFO_V1(filter_ne);
Datum
filter_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!filter_equal(fcinfo));
}

PG_FUNCTION_INFO_V1(filter_hash);
Datum
filter_hash(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);

	return hash_any((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image));
}

PG_FUNCTION_INFO_V1(filter_hash_extended);
Datum
filter_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);

	return hash_any_extended((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image),
							 (uint64) PG_GETARG_INT64(1));
}
