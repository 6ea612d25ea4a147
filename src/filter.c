/*
 * filter.c
 *		Filters as varlenas: what all filter types share between the core and
 *		SQL (access, key classes, limits, input and output).
 */
#include "compat.h"

#include <math.h>

#include "access/detoast.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "bloom_agg.h"
#include "filter.h"
#include "core/base64.h"

/* ----------------------------------------------------------------
 * Access
 * ----------------------------------------------------------------
 */

/*
 * A filter in memory, with a varlena header of any kind.  Should it be the state
 * of an aggregate (that has no final function of ours), put it in order.
 */
struct varlena *
filter_detoast(Datum value)
{
	return bloom_settled((struct varlena *) PG_DETOAST_DATUM_PACKED(value));
}

/*
 * Read the structure of a filter in memory, with a varlena header of any kind.
 * What got into a table was validated, so a failure here means that the bytes
 * were damaged since.
 */
void
filter_open(bf_filter *filter, struct varlena *image)
{
	const char *problem = bf_filter_open(filter, (uint8 *) VARDATA_ANY(image), VARSIZE_ANY_EXHDR(image));

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("filter is damaged"),
				 errdetail("%s", problem)));
}

void
filter_open_argument(bf_filter *filter, FunctionCallInfo fcinfo, int argument)
{
	filter_open(filter, PG_GETARG_FILTER_P(argument));
}

/* Allocate a filter as described, with everything but its layers' contents. */
struct varlena *
filter_allocate(bf_filter *filter)
{
	uint64		size = bf_filter_size(filter);
	struct varlena *image;

	filter_check_size(size + BF_LENGTH_WORD);
	image = palloc((Size) size + VARHDRSZ);
	SET_VARSIZE(image, (Size) size + VARHDRSZ);
	bf_filter_write(filter, (uint8 *) VARDATA(image), (size_t) size);
	return image;
}

/* ----------------------------------------------------------------
 * Key classes
 * ----------------------------------------------------------------
 */

KeyClass
filter_class(const bf_filter *filter)
{
	KeyClass	class = {filter->scheme, filter->key_class, filter->name_length, filter->name};

	return class;
}

void
filter_set_class(bf_filter *filter, const KeyClass *key)
{
	filter->scheme = key->scheme;
	filter->key_class = key->code;
	filter->name_length = key->name_length;
	filter->name = key->name;
}

/* What a key may be cast to for its class; the class itself if that is a type. */
static const char *
cast_for_class(const KeyClass *class)
{
	switch (class->code)
	{
		case BF_CLASS_INTEGER:
			return "bigint";
		case BF_CLASS_FLOAT:
			return "float8";
		case BF_CLASS_NAMED:
			{
				char	   *label = key_class_label(class);

				if (strncmp(label, "enum ", 5) == 0 || strncmp(label, "type ", 5) == 0)
					return label + 5;
				return NULL;
			}
		default:
			return bf_class_label(class->code);
	}
}

/*
 * A key of another class could only give the answer "no", and the asker would
 * never learn that the question was wrong.
 */
void
filter_compare_class(const bf_filter *filter, const KeyClass *key)
{
	KeyClass	class = filter_class(filter);
	const char *type;

	if (key_class_equal(&class, key) || class.code == BF_CLASS_NONE)
		return;
	type = cast_for_class(&class);
	class.scheme = key->scheme;
	if (key_class_equal(&class, key))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("filter of class %s was made on a machine of another byte order", key_class_label(&class)),
				 errdetail("Keys of this class are hashed by the server's own functions, which depend on the byte order."),
				 errhint("Build the filter again on this machine, or use a key of another type, such as its text form.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("key of class %s does not fit a filter of class %s",
					key_class_label(key), key_class_label(&class)),
			 errdetail("A filter holds keys of the class of its first key."),
			 type != NULL ?
			 errhint("Cast the key to the type that the filter was built from, for example key::%s.", type) :
			 errhint("Use a key of the type that the filter was built from.")));
}

/* ----------------------------------------------------------------
 * Parameters
 * ----------------------------------------------------------------
 */

void
filter_check_capacity(int64 capacity)
{
	if (capacity < 1 || (uint64) capacity > BF_MAX_CAPACITY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be between 1 and " UINT64_FORMAT, (uint64) BF_MAX_CAPACITY),
				 errdetail("The capacity given is " INT64_FORMAT ".", capacity),
				 errhint("The capacity is the number of distinct keys that the filter will hold.")));
}

void
filter_check_fpp(double fpp)
{
	if (isnan(fpp) || fpp < BF_MIN_FPP || fpp >= 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive probability must be at least 1e-12 and less than 1"),
				 errdetail("The probability given is %g.", fpp),
				 errhint("0.01 means that 1 in 100 keys that were not added is reported nevertheless.")));
}

/* Can a filter of this shape be built? */
void
filter_check_shape(bf_shape shape, int64 capacity, double fpp)
{
	uint64		needed = shape.words * 8;

	if (needed + 2 * BF_LINE_BYTES > BF_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter for " INT64_FORMAT " keys at a false-positive probability of %g would need " UINT64_FORMAT " bytes",
						capacity, fpp, needed),
				 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
				 errhint("Accept a higher probability, or split the keys over several filters.")));
}

/* Geometry for user-given parameters; an error if it cannot be built. */
bf_shape
filter_shape(int64 capacity, double fpp)
{
	bf_shape	shape;

	filter_check_capacity(capacity);
	filter_check_fpp(fpp);
	shape = bf_shape_for((uint64) capacity, fpp);
	filter_check_shape(shape, capacity, fpp);
	return shape;
}

/* `bytes` includes the length word. */
void
filter_check_size(uint64 bytes)
{
	if (bytes > BF_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter would need " UINT64_FORMAT " bytes", bytes),
				 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
				 errhint("Accept a higher false-positive probability, or split the keys over several filters.")));
}

/* ----------------------------------------------------------------
 * Input and output
 *
 * A filter is the same bytes on disk, on the wire and as bytea; the text form
 * is those bytes in base64.
 * ----------------------------------------------------------------
 */

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

Datum
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

Datum
filter_out(FunctionCallInfo fcinfo)
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

Datum
filter_recv(FunctionCallInfo fcinfo, const FilterType *type)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			n = message->len - message->cursor;

	return filter_from_bytes(type, pq_getmsgbytes(message, n), (Size) n);
}

Datum
filter_send(FunctionCallInfo fcinfo)
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

Datum
filter_to_bytea(FunctionCallInfo fcinfo)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);
	Size		n = VARSIZE_ANY_EXHDR(image);
	bytea	   *bytes = palloc(n + VARHDRSZ);

	SET_VARSIZE(bytes, n + VARHDRSZ);
	memcpy(VARDATA(bytes), VARDATA_ANY(image), n);
	PG_RETURN_BYTEA_P(bytes);
}

/* ----------------------------------------------------------------
 * Equality
 * ----------------------------------------------------------------
 */

/* Filters are equal if their bytes are; most that are not differ in size. */
bool
filter_equal(FunctionCallInfo fcinfo)
{
	Datum		a = PG_GETARG_DATUM(0);
	Datum		b = PG_GETARG_DATUM(1);
	struct varlena *left;
	struct varlena *right;

	if (toast_raw_datum_size(a) != toast_raw_datum_size(b))
		return false;
	left = PG_GETARG_FILTER_P(0);
	right = PG_GETARG_FILTER_P(1);
	return VARSIZE_ANY_EXHDR(left) == VARSIZE_ANY_EXHDR(right) &&
		memcmp(VARDATA_ANY(left), VARDATA_ANY(right), VARSIZE_ANY_EXHDR(left)) == 0;
}

Datum
filter_hash(FunctionCallInfo fcinfo)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);

	return hash_any((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image));
}

Datum
filter_hash_extended(FunctionCallInfo fcinfo)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);

	return hash_any_extended((unsigned char *) VARDATA_ANY(image), (int) VARSIZE_ANY_EXHDR(image),
							 (uint64) PG_GETARG_INT64(1));
}
