/*
 * value.c
 *		Filters as values of an SQL type: access, limits, parameters.
 *
 * The state of an aggregate has the type of its filter, so it can be met as a
 * value: raw, where the server carries it in a tuple, or as an unfinished filter,
 * where it has left the server.  Neither can be asked for a key, since only the
 * aggregate knows what is to become of it; all functions of filters refuse them
 * here.
 */
#include "compat.h"

#include <math.h>

#include "mb/pg_wchar.h"

#include "server.h"
#include "value.h"

/* ----------------------------------------------------------------
 * Access
 * ----------------------------------------------------------------
 */

void
value_refuse_unfinished(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("filter is unfinished"),
			 errdetail("It is the state of an aggregate, which is sized when all keys are there."),
			 errhint("Let the aggregate end with its own final function, as bloom_agg and cuckoo_agg do.")));
}

/* The value, or as much of it as its header, if that says that it is a filter. */
struct varlena *
value_finished(struct varlena *image)
{
	if (value_is_state(image) || (VARSIZE_ANY_EXHDR(image) >= BF_HEADER_BYTES &&
								  bf_header_is_unfinished((uint8 *) VARDATA_ANY(image))))
		value_refuse_unfinished();
	return image;
}

/*
 * Read the structure of a filter, finished or not.  What got into a table was
 * validated, so a failure here means that the bytes were damaged since.
 */
void
value_open_any(bf_filter *filter, struct varlena *image)
{
	bf_host		host = server_host(NULL);
	const char *problem;

	if (value_is_state(image))
		value_refuse_unfinished();
	problem = bf_filter_open(filter, host, (uint8 *) VARDATA_ANY(image), VARSIZE_ANY_EXHDR(image));
	if (problem != NULL)
		bf_fail(host, BF_FAIL_DAMAGED, 0, problem);
}

/*
 * A value of one type that is a filter of the other was damaged where it was
 * stored.  Functions that know the type check that before they take it apart.
 */
void
value_check_kind(uint16 is, uint16 should_be)
{
	if (is != should_be)
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, "It does not begin like a filter of this type.");
}

/* Read the structure of a filter. */
void
value_open(bf_filter *filter, struct varlena *image)
{
	value_open_any(filter, image);
	if (bf_filter_is_unfinished(filter))
		value_refuse_unfinished();
}

/* The same for an argument, of a certain kind or of any (0). */
struct varlena *
value_open_argument(bf_filter *filter, FunctionCallInfo fcinfo, int argument, uint16 kind)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(argument));

	value_open(filter, image);
	if (kind != 0)
		value_check_kind(filter->header.kind, kind);
	return image;
}

/* Fetch a slice of the value that a Datum points to; it lives as long as this call. */
const uint8_t *
value_fetch_slice(void *value, uint64_t offset, size_t n)
{
	struct varlena *slice = PG_DETOAST_DATUM_SLICE(*(Datum *) value, (int32) offset, (int32) n);

	if (VARSIZE(slice) - VARHDRSZ != n)
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, "It ends before its last layer does.");
	return (const uint8_t *) VARDATA(slice);
}

struct varlena *
value_allocate(uint64 size)
{
	struct varlena *image;

	if (size + VARHDRSZ > BF_MAX_BYTES)
		bf_fail(server_host(NULL), BF_FAIL_BYTES, size + VARHDRSZ, NULL);
	image = palloc((Size) size + VARHDRSZ);
	SET_VARSIZE(image, (Size) size + VARHDRSZ);
	return image;
}

/* ----------------------------------------------------------------
 * Bytes from outside
 * ----------------------------------------------------------------
 */

/* The gate for bytes from outside; NULL if they are a filter of this kind. */
const char *
value_validate(uint16 kind, const uint8 *bytes, Size n)
{
	bf_host		host = server_host(NULL);
	const char *problem = bf_filter_validate(host, bytes, n, kind);
	bf_filter	filter;

	if (problem != NULL)
		return problem;
	(void) bf_filter_open(&filter, host, bytes, n);
	if (filter.header.class.code == BF_CLASS_NAMED &&
		!pg_verify_mbstr(PG_UTF8, filter.header.class.name, filter.header.class.name_length, true))
		return "The name of its key class is malformed.";
	return NULL;
}

struct varlena *
value_from_bytes(uint16 kind, const char *bytes, Size n)
{
	const char *problem = value_validate(kind, (const uint8 *) bytes, n);
	struct varlena *image;

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary representation of type %s", value_type_name(kind)),
				 errdetail("%s", problem)));
	image = value_allocate(n);
	memcpy(VARDATA(image), bytes, n);
	return image;
}

/* ----------------------------------------------------------------
 * Parameters
 * ----------------------------------------------------------------
 */

void
value_check_capacity(int64 capacity)
{
	if (capacity < 1 || (uint64) capacity > BF_MAX_CAPACITY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be between 1 and " UINT64_FORMAT, (uint64) BF_MAX_CAPACITY),
				 errdetail("The capacity given is " INT64_FORMAT ".", capacity),
				 errhint("The capacity is the number of distinct keys that the filter will hold.")));
}

void
value_check_fpp(double fpp)
{
	if (isnan(fpp) || fpp < BF_MIN_FPP || fpp >= 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive probability must be at least 1e-12 and less than 1"),
				 errdetail("The probability given is %g.", fpp),
				 errhint("0.01 means that 1 in 100 keys that were not added is reported nevertheless.")));
}

/* Can a filter of this size be built? */
void
value_check_words(uint64 words, int64 capacity, double fpp)
{
	/* with the header, aligned */
	uint64		needed = words * 8 + 2 * BF_LINE_BYTES;

	if (needed > BF_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter for " INT64_FORMAT " keys at a false-positive probability of %g would need " UINT64_FORMAT " bytes",
						capacity, fpp, needed),
				 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
				 errhint("Accept a higher probability, or split the keys over several filters.")));
}

/* How a Bloom filter grows; max_layers is NULL if it does not rotate. */
void
value_check_growth(int32 growth, const int32 *max_layers)
{
	if (max_layers != NULL && (*max_layers < 2 || *max_layers > BF_MAX_LAYERS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_layers must be between 2 and %d", BF_MAX_LAYERS),
				 errdetail("The number given is %d.", *max_layers),
				 errhint("A rotating filter of m layers always holds the last (m - 1) x capacity keys added, repetitions counted.")));
	if (growth < 0 || growth > BF_MAX_GROWTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth must be between 0 and %d", BF_MAX_GROWTH),
				 errdetail("The growth given is %d.", growth),
				 errhint("Each layer is this many times as large as the one before; 0 means a fixed size.")));
	if (max_layers != NULL && growth != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a filter with max_layers rotates, and its layers are of equal size"),
				 errdetail("The growth given is %d.", growth),
				 errhint("Leave out growth, or max_layers.")));
}

void
value_check_cuckoo_growth(int32 growth)
{
	if (growth < 0 || growth > BF_MAX_CUCKOO_GROWTH || growth == 1 || (growth & (growth - 1)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth of a cuckoo filter must be 0 or a power of two from 2 to %d", BF_MAX_CUCKOO_GROWTH),
				 errdetail("The growth given is %d.", growth),
				 errhint("A full table becomes this many times as large; 0 keeps no reserve for that.")));
}
