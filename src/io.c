/*
 * io.c
 *		Input, output, casts and equality of the filter types.
 *
 * A filter has the same bytes on disk, on the wire and as bytea; the text form is
 * these bytes in base64.
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
					errdetail("The length of the text is %zu; it must be a multiple of four.", length),
					errhint("Use the text that the server printed, unchanged.")));
	if (n + VARHDRSZ > BF_MAX_BYTES)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("filter of %zu bytes is too large", n + VARHDRSZ),
					errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES)));
	image = value_allocate(n);
	if (!bf_base64_decode(server_host(NULL), (uint8 *) VARDATA(image), string, length, &bad))
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", value_type_name(kind)),
					errdetail("The character at position %zu is not valid base64.", bad + 1),
					errhint("Use the text that the server printed, unchanged.")));
	problem = value_validate(kind, (uint8 *) VARDATA(image), n);
	if (problem != NULL)
		bf_ereturn(fcinfo->context,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", value_type_name(kind)),
					errdetail("%s", problem),
					errhint("Use the text that the server printed, unchanged.")));
	PG_RETURN_POINTER(image);
}

/*
 * The argument of an output function.  It may be the state of an aggregate: Citus
 * sends states from workers to the coordinator, and users may define aggregates
 * without our final function.
 */
static struct varlena *
printable_argument(FunctionCallInfo fcinfo)
{
	return aggregate_export(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
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

SQL_FUNCTION(filter_to_bytea,
			 PointerGetDatum(value_finished((struct varlena *) PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0)))));

/* Functions of one type, which pass the kind of the result. */
SQL_FUNCTION(bloom_in, filter_in(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(bloom_recv, filter_recv(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(bloom_from_bytea, filter_from_bytea(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(cuckoo_in, filter_in(fcinfo, BF_KIND_CUCKOO));

SQL_FUNCTION(cuckoo_recv, filter_recv(fcinfo, BF_KIND_CUCKOO));

SQL_FUNCTION(cuckoo_from_bytea, filter_from_bytea(fcinfo, BF_KIND_CUCKOO));

/* ----------------------------------------------------------------
 * Equality
 * ----------------------------------------------------------------
 */

/* The first n bytes of a filter, or all of them if n is negative; a copy only if it is not stored inline. */
static struct varlena *
filter_bytes(Datum filter, int32 n)
{
	if (VARATT_IS_EXTERNAL(DatumGetPointer(filter)) || VARATT_IS_COMPRESSED(DatumGetPointer(filter)))
		return PG_DETOAST_DATUM_SLICE(filter, 0, n);
	return (struct varlena *) DatumGetPointer(filter);
}

/*
 * Filters are equal if their bytes are.  Most that differ have different sizes.  ANALYZE compares
 * each row with up to 200 others in one memory context, so copies are freed.
 */
static bool
filter_equal(Datum a, Datum b)
{
	bool		same_size = toast_raw_datum_size(a) == toast_raw_datum_size(b);
	int32		looked_at = same_size ? -1 : BF_HEADER_BYTES;
	struct varlena *left = value_finished(filter_bytes(a, looked_at));
	struct varlena *right = value_finished(filter_bytes(b, looked_at));
	bool		equal = same_size && memcmp(VARDATA_ANY(left), VARDATA_ANY(right), VARSIZE_ANY_EXHDR(left)) == 0;

	if (left != (struct varlena *) DatumGetPointer(a))
		pfree(left);
	if (right != (struct varlena *) DatumGetPointer(b))
		pfree(right);
	return equal;
}

SQL_FUNCTION(filter_eq, BoolGetDatum(filter_equal(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1))));
SQL_FUNCTION(filter_ne, BoolGetDatum(!filter_equal(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1))));

static Datum
filter_hash_bytes(FunctionCallInfo fcinfo, bool extended)
{
	struct varlena *image = value_finished(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
	unsigned char *bytes = (unsigned char *) VARDATA_ANY(image);
	int			n = (int) VARSIZE_ANY_EXHDR(image);

	return extended ? hash_any_extended(bytes, n, (uint64) PG_GETARG_INT64(1)) : hash_any(bytes, n);
}

SQL_FUNCTION(filter_hash, filter_hash_bytes(fcinfo, false));
SQL_FUNCTION(filter_hash_extended, filter_hash_bytes(fcinfo, true));
