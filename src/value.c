/*
 * value.c
 *		Filters as values of an SQL type: access, validation, parameters.
 *
 * The state of an aggregate has the type of its filter, so it can occur as a value:
 * raw in a tuple of the executor, or as an unfinished filter after it was sent.
 * Neither can be probed.  All functions of filters raise an error for them here.
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
			 errmsg("value is an aggregate state, not a filter"),
			 errhint("Specify the matching FINALFUNC in CREATE AGGREGATE, or use bloom_agg or cuckoo_agg.")));
}

/* Return a value, or a slice with its header, if it is a finished filter; else an error. */
struct varlena *
value_finished(struct varlena *image)
{
	if (value_is_state(image) || (VARSIZE_ANY_EXHDR(image) >= BF_HEADER_BYTES &&
								  bf_header_is_unfinished((uint8 *) VARDATA_ANY(image))))
		value_refuse_unfinished();
	return image;
}

/*
 * Read the structure of a filter, finished or not.  Stored bytes were validated when
 * they were input, so a failure here means that they were damaged since.
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
 * Check that a value is a filter of its own type.  If it is one of the other type, it
 * was damaged where it was stored.
 */
void
value_check_kind(uint16 is, uint16 should_be)
{
	if (is != should_be)
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, bf_wrong_kind(is));
}

/* Read the structure of a filter. */
void
value_open(bf_filter *filter, struct varlena *image)
{
	value_open_any(filter, image);
	if (bf_filter_is_unfinished(filter))
		value_refuse_unfinished();
}

/* The same for an argument, of the given kind or of any (0). */
struct varlena *
value_open_argument(bf_filter *filter, FunctionCallInfo fcinfo, int argument, uint16 kind)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(argument));

	value_open(filter, image);
	if (kind != 0)
		value_check_kind(filter->header.kind, kind);
	return image;
}

/* Fetch a slice of the value that a Datum points to, into the current memory context. */
const uint8_t *
value_fetch_slice(void *value, uint64_t offset, size_t n)
{
	struct varlena *slice = PG_DETOAST_DATUM_SLICE(*(Datum *) value, (int32) offset, (int32) n);

	if (VARSIZE(slice) - VARHDRSZ != n)
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, "Its last layer is truncated.");
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

/* Validate bytes from outside.  NULL, or a sentence on what is wrong. */
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
		return "The name of its key class is invalid.";
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
				 errdetail("The specified value is " INT64_FORMAT ".", capacity),
				 errhint("Specify the number of distinct keys that the filter will hold.")));
}

void
value_check_fpp(double fpp)
{
	if (isnan(fpp) || fpp < BF_MIN_FPP || fpp >= 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive probability must be at least 1e-12 and less than 1"),
				 errdetail("The specified value is %g.", fpp),
				 errhint("Specify the share of absent keys that the filter may report, such as 0.01 for 1%%.")));
}

/* The bytes of a filter of this many words, with the aligned header. */
static uint64
value_bytes_of_words(uint64 words)
{
	return words * 8 + 2 * BF_LINE_BYTES;
}

/* Can a filter have this many words? */
bool
value_words_fit(uint64 words)
{
	return value_bytes_of_words(words) <= BF_MAX_BYTES;
}

/* Check that a filter does not exceed BF_MAX_BYTES. */
void
value_check_words(uint64 words, int64 capacity, double fpp)
{
	if (!value_words_fit(words))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("filter for " INT64_FORMAT " keys at a false-positive probability of %g would need " UINT64_FORMAT " bytes",
						capacity, fpp, value_bytes_of_words(words)),
				 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
				 errhint("Use a higher false-positive probability, or split the keys over several filters.")));
}

/* Check how a Bloom filter grows; max_layers is NULL if it does not rotate. */
void
value_check_growth(int32 growth, const int32 *max_layers)
{
	if (max_layers != NULL && (*max_layers < 2 || *max_layers > BF_MAX_LAYERS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_layers must be between 2 and %d", BF_MAX_LAYERS),
				 errdetail("The specified value is %d.", *max_layers),
				 errhint("Omit max_layers unless the filter should forget its oldest keys.")));
	if (growth < 0 || growth > BF_MAX_GROWTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth must be between 0 and %d", BF_MAX_GROWTH),
				 errdetail("The specified value is %d.", growth),
				 errhint("Specify the capacity of each layer relative to the previous one, or 0 for a fixed size.")));
	if (max_layers != NULL && growth != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth must be 1 if max_layers is specified"),
				 errdetail("The specified growth is %d.", growth),
				 errhint("Omit growth or max_layers.")));
}

void
value_check_cuckoo_growth(int32 growth)
{
	if (growth < 0 || growth > BF_MAX_CUCKOO_GROWTH || growth == 1 || (growth & (growth - 1)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth of a cuckoo filter must be 0 or a power of two from 2 to %d", BF_MAX_CUCKOO_GROWTH),
				 errdetail("The specified value is %d.", growth),
				 errhint("Specify the factor by which a full table grows, or 0 to reserve nothing for growth.")));
}
