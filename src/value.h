/*
 * value.h
 *		Filters as values of an SQL type: access, validation, parameters.
 */
#ifndef BF_VALUE_H
#define BF_VALUE_H

#include "compat.h"

#include "core/format.h"
#include "key.h"

#define VALUE_DEFAULT_FPP	0.01

/*
 * The second byte of a raw aggregate state, which distinguishes it from a filter.  The
 * server handles such a state as a value of the filter's type; its layout is known
 * to aggregate.c alone.
 */
#define VALUE_STATE_MARK	'S'

/* The name of the SQL type of a kind of filter. */
static inline const char *
value_type_name(uint16 kind)
{
	return kind == BF_KIND_CUCKOO ? "cuckoo" : "bloom";
}

/* Reading a filter that is in memory, with a varlena header of any kind. */
extern void value_open(bf_filter *filter, struct varlena *image);
extern void value_open_any(bf_filter *filter, struct varlena *image);
extern void value_check_kind(uint16 is, uint16 should_be);
extern void value_refuse_unfinished(void);
extern struct varlena *value_finished(struct varlena *image);

/* An argument that is a filter; an error if it is the state of an aggregate. */
extern struct varlena *value_open_argument(bf_filter *filter, FunctionCallInfo fcinfo, int argument, uint16 kind);

static inline bool
value_is_state(struct varlena *image)
{
	return VARSIZE_ANY_EXHDR(image) >= 2 && VARDATA_ANY(image)[1] == VALUE_STATE_MARK;
}

/* Memory for a filter of this size, length word not included. */
extern struct varlena *value_allocate(uint64 size);

/*
 * Slices of a value that is stored out of line and not compressed.  A probe by slices
 * takes as long as loading VALUE_BYTES_PER_SLICED_PROBE (measured: 7.5 us, and 243
 * us to load 1.2 MB).  For more than value_sliced_probes probes, the whole value is
 * loaded.
 */
#define VALUE_BYTES_PER_SLICED_PROBE	(32 * 1024)
#define VALUE_MOST_SLICED_PROBES		256

static inline uint32
value_sliced_probes(uint64 size)
{
	return (uint32) Min(size / VALUE_BYTES_PER_SLICED_PROBE + 1, VALUE_MOST_SLICED_PROBES);
}

extern const uint8_t *value_fetch_slice(void *value, uint64_t offset, size_t n);

/* Bytes from outside, which these functions validate before anything reads them. */
extern const char *value_validate(uint16 kind, const uint8 *bytes, Size n);
extern struct varlena *value_from_bytes(uint16 kind, const char *bytes, Size n);

/* Checks of parameters. */
extern void value_check_capacity(int64 capacity);
extern void value_check_fpp(double fpp);
extern bool value_words_fit(uint64 words);
extern void value_check_words(uint64 words, int64 capacity, double fpp);
extern void value_check_growth(int32 growth, const int32 *max_layers);
extern void value_check_cuckoo_growth(int32 growth);

#endif							/* BF_VALUE_H */
