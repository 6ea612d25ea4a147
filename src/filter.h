/*
 * filter.h
 *		Filters as varlenas: what all filter types share between the core and
 *		SQL (access, key classes, limits).
 */
#ifndef BF_FILTER_H
#define BF_FILTER_H

#include "compat.h"

#include "core/format.h"
#include "key.h"

/* The words a filter type is spoken of with. */
typedef struct FilterType
{
	uint16		kind;			/* BF_KIND_... */
	const char *name;			/* of the SQL type */
} FilterType;

#define FILTER_DEFAULT_FPP	0.01

/* Reading a filter that is in memory. */
extern struct varlena *filter_detoast(Datum value);
extern void filter_open(bf_filter *filter, struct varlena *image);
extern void filter_refuse_damaged(const char *problem);
extern void filter_open_argument(bf_filter *filter, FunctionCallInfo fcinfo, int argument);

/* Making one: the varlena with all but the layers' contents. */
extern struct varlena *filter_allocate(bf_filter *filter);

/* Key classes. */
extern KeyClass filter_class(const bf_filter *filter);
extern void filter_compare_class(const bf_filter *filter, const KeyClass *key);
extern void filter_check_same_class(const bf_filter *a, const bf_filter *b);

/* Is the key of the filter's class?  An error if not. */
static inline void
filter_check_class(const bf_filter *filter, const KeyClass *key)
{
	if (unlikely(filter->key_class != key->code || filter->scheme != key->scheme ||
				 key->code == BF_CLASS_NAMED))
		filter_compare_class(filter, key);
}

extern void filter_set_class(bf_filter *filter, const KeyClass *key);

/* Parameters. */
extern void filter_check_capacity(int64 capacity);
extern void filter_check_fpp(double fpp);
extern void filter_check_words(uint64 words, int64 capacity, double fpp);
extern void filter_check_cuckoo_growth(int32 growth);
extern bf_shape filter_shape(int64 capacity, double fpp);
extern void filter_check_size(uint64 bytes);

/* Input, as far as others need it. */
extern Datum filter_from_bytea(FunctionCallInfo fcinfo, const FilterType *type);

#define PG_GETARG_FILTER_P(n)	filter_detoast(PG_GETARG_DATUM(n))

#endif							/* BF_FILTER_H */
