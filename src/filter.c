/*
 * filter.c
 *		Filters as varlenas: what all filter types share between the core and
 *		SQL (access, key classes, limits).
 */
#include "compat.h"

#include <math.h>

#include "agg.h"
#include "filter.h"

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
	return agg_settled((struct varlena *) PG_DETOAST_DATUM_PACKED(value));
}

void
filter_refuse_damaged(const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("filter is damaged"),
			 errdetail("%s", problem)));
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
		filter_refuse_damaged(problem);
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
		case BF_CLASS_BIT:
			return "varbit";	/* a cast to bit cuts to one bit */
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
			 class.code == BF_CLASS_TEXT && key->code == BF_CLASS_NAMED ?
			 errhint("Bring the key into the form that the filter was built from, for example key::text or lower(key::text).") :
			 type != NULL ?
			 errhint("Cast the key to the type that the filter was built from, for example key::%s.", type) :
			 errhint("Use a key of the type that the filter was built from.")));
}

/* Filters of different classes cannot be combined. */
void
filter_check_same_class(const bf_filter *a, const bf_filter *b)
{
	KeyClass	left = filter_class(a);
	KeyClass	right = filter_class(b);

	if (left.code == BF_CLASS_NONE || right.code == BF_CLASS_NONE)
		return;
	if (!key_class_equal(&left, &right))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("filters of class %s and of class %s cannot be combined",
						key_class_label(&left), key_class_label(&right)),
				 left.code == right.code && left.scheme != right.scheme ?
				 errdetail("They were made on machines of different byte order.") :
				 errdetail("A key of one class cannot be found in a filter of another."),
				 errhint("Build both filters from keys of one type.")));
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

/* Can a filter of so many words be built? */
void
filter_check_words(uint64 words, int64 capacity, double fpp)
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

/* Geometry for user-given parameters; an error if it cannot be built. */
bf_shape
filter_shape(int64 capacity, double fpp)
{
	bf_shape	shape;

	filter_check_capacity(capacity);
	filter_check_fpp(fpp);
	shape = bf_shape_for((uint64) capacity, fpp);
	filter_check_words(shape.words, capacity, fpp);
	return shape;
}

void
filter_check_cuckoo_growth(int32 growth)
{
	if (growth < 0 || growth > BF_MAX_CUCKOO_GROWTH || growth == 1 || (growth & (growth - 1)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("growth of a cuckoo filter must be 0 or a power of two from 2 to %d", BF_MAX_CUCKOO_GROWTH),
				 errdetail("The growth given is %d.", growth),
				 errhint("A full table becomes so many times as large; 0 keeps no reserve for that.")));
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
