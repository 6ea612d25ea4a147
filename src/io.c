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

#include "aggregate.h"
#include "core/base64.h"
#include "server.h"
#include "value.h"

static Datum
filter_in(FunctionCallInfo fcinfo, uint16 kind)
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
					errmsg("invalid input syntax for type %s", value_type_name(kind)),
					errdetail("The text has %zu characters; base64 comes in groups of four.", length),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	if (n + VARHDRSZ > BF_MAX_BYTES)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("filter would need %zu bytes", n + VARHDRSZ),
					errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES)));
	image = palloc(n + VARHDRSZ);
	SET_VARSIZE(image, n + VARHDRSZ);
	if (!bf_base64_decode(server_host(NULL), (uint8 *) VARDATA(image), string, length, &bad))
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", value_type_name(kind)),
					errdetail("The character at position %zu is not valid base64 there.", bad + 1),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	problem = value_validate(kind, (uint8 *) VARDATA(image), n);
	if (problem != NULL)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input for type %s", value_type_name(kind)),
					errdetail("%s", problem),
					errhint("The text form of a filter is what the database printed, unchanged.")));
	PG_RETURN_POINTER(image);
}

/*
 * What is printed or sent may be the state of an aggregate: Citus carries one
 * from a worker to the coordinator, and users may define aggregates without our
 * final function.
 */
static struct varlena *
printable_argument(FunctionCallInfo fcinfo)
{
	return aggregate_export_state(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
}

PG_FUNCTION_INFO_V1(filter_out);
Datum
filter_out(PG_FUNCTION_ARGS)
{
	struct varlena *image = printable_argument(fcinfo);
	Size		n = VARSIZE_ANY_EXHDR(image);
	Size		length = bf_base64_encoded_size(n);
	char	   *string = palloc(length + 1);

	bf_base64_encode(server_host(NULL), string, (uint8 *) VARDATA_ANY(image), n);
	string[length] = '\0';
	PG_RETURN_CSTRING(string);
}

static Datum
filter_recv(FunctionCallInfo fcinfo, uint16 kind)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			n = message->len - message->cursor;

	PG_RETURN_POINTER(value_from_bytes(kind, pq_getmsgbytes(message, n), (Size) n));
}

PG_FUNCTION_INFO_V1(filter_send);
Datum
filter_send(PG_FUNCTION_ARGS)
{
	struct varlena *image = printable_argument(fcinfo);
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

static Datum
filter_from_bytea(FunctionCallInfo fcinfo, uint16 kind)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_POINTER(value_from_bytes(kind, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)));
}

PG_FUNCTION_INFO_V1(filter_to_bytea);
Datum
filter_to_bytea(PG_FUNCTION_ARGS)
{
	struct varlena *image = value_argument(fcinfo, 0);
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
	return filter_in(fcinfo, BF_KIND_BLOOM);
}

PG_FUNCTION_INFO_V1(bloom_recv);
Datum
bloom_recv(PG_FUNCTION_ARGS)
{
	return filter_recv(fcinfo, BF_KIND_BLOOM);
}

PG_FUNCTION_INFO_V1(bloom_from_bytea);
Datum
bloom_from_bytea(PG_FUNCTION_ARGS)
{
	return filter_from_bytea(fcinfo, BF_KIND_BLOOM);
}

PG_FUNCTION_INFO_V1(cuckoo_in);
Datum
cuckoo_in(PG_FUNCTION_ARGS)
{
	return filter_in(fcinfo, BF_KIND_CUCKOO);
}

PG_FUNCTION_INFO_V1(cuckoo_recv);
Datum
cuckoo_recv(PG_FUNCTION_ARGS)
{
	return filter_recv(fcinfo, BF_KIND_CUCKOO);
}

PG_FUNCTION_INFO_V1(cuckoo_from_bytea);
Datum
cuckoo_from_bytea(PG_FUNCTION_ARGS)
{
	return filter_from_bytea(fcinfo, BF_KIND_CUCKOO);
}

/* ----------------------------------------------------------------
 * Equality
 * ----------------------------------------------------------------
 */

/* Refuse the state of an aggregate, looking at no more than its header. */
static void
refuse_unfinished_datum(Datum value)
{
	struct varlena *head = PG_DETOAST_DATUM_SLICE(value, 0, BF_HEADER_BYTES);

	if (value_is_state(head) || (VARSIZE_ANY_EXHDR(head) == BF_HEADER_BYTES &&
								 bf_header_is_unfinished((uint8 *) VARDATA_ANY(head))))
		value_refuse_unfinished();
}

/* Filters are equal if their bytes are; most that are not differ in size. */
static bool
filter_equal(FunctionCallInfo fcinfo)
{
	Size		left_size = toast_raw_datum_size(PG_GETARG_DATUM(0));
	Size		right_size = toast_raw_datum_size(PG_GETARG_DATUM(1));
	struct varlena *left;
	struct varlena *right;

	if (left_size != right_size)
	{
		refuse_unfinished_datum(PG_GETARG_DATUM(0));
		refuse_unfinished_datum(PG_GETARG_DATUM(1));
		return false;
	}
	left = value_argument(fcinfo, 0);
	right = value_argument(fcinfo, 1);
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
	struct varlena *image = value_argument(fcinfo, 0);

	return hash_any((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image));
}

PG_FUNCTION_INFO_V1(filter_hash_extended);
Datum
filter_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *image = value_argument(fcinfo, 0);

	return hash_any_extended((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image),
							 (uint64) PG_GETARG_INT64(1));
}
