/*
 * contains.c
 *		bloom_contains, bloom_contains_any, bloom_missing, cuckoo_count and so
 *		on: testing keys.
 *
 * A stored filter is passed as a TOAST pointer.  Fetching all of it for every row makes a
 * query thousands of times slower (243 us per row for 1.2 MB, instead of 0.05 us).
 * Keeping a copy helps only if the next row has the same filter, and is slower still if
 * every row has another one.  Which case applies is not known in advance, so:
 *
 *	- the first probes of a stored filter fetch only the slices that they need, a
 *	  line of 64 bytes per group; for the most common filters not even the header
 *	  is read, since their size encodes the geometry;
 *	- after as many probes as take the time of fetching the whole filter, it is
 *	  loaded into memory, and kept until another filter is loaded.
 *
 * A stored value is identified by its TOAST pointer, not by its address, where another
 * value may be stored later.  A flat filter is used in place; only its structure is kept,
 * and used as long as the header is the same.
 */
#include "compat.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "builder.h"
#include "core/query.h"

/* The state of a call site, kept in fn_extra. */
typedef struct Probe
{
	KeyType    *key_type;
	MemoryContext context;		/* of the call site */
	bool		counting;		/* for cuckoo_count: needs the whole filter
								 * with its list */

	/* the structure of the last flat filter of one layer of lines */
	Size		flat_size;		/* with the length word; 0: none */
	uint8		flat_header[BF_HEADER_BYTES];

	/* the stored filter probed last */
	Oid			toast_relation;
	Oid			toast_value;
	uint32		probes;			/* of this filter so far */
	bool		one_layer;		/* of the loaded filter */
	MemoryContext loaded_context;
	bf_filter  *loaded;			/* NULL if not in memory yet */

	bf_filter	filter;			/* the filter opened last */
} Probe;

static Probe *
probe_create(FunctionCallInfo fcinfo)
{
	Probe	   *probe = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(Probe));

	probe->context = fcinfo->flinfo->fn_mcxt;
	fcinfo->flinfo->fn_extra = probe;
	return probe;
}

static inline Probe *
probe_of_call(FunctionCallInfo fcinfo)
{
	Probe	   *probe = fcinfo->flinfo->fn_extra;

	return likely(probe != NULL) ? probe : probe_create(fcinfo);
}

/* ----------------------------------------------------------------
 * Filters in memory
 * ----------------------------------------------------------------
 */

/*
 * Open a flat filter in place.  The header and the size determine the structure of a
 * filter that is one layer of lines, so it is not read again for each row; see also
 * probe_one.  A column of small filters has a short length word.
 */
static const bf_filter *
probe_open_flat(Probe *probe, struct varlena *image)
{
	bf_filter  *filter = &probe->filter;
	uint8	   *bytes = (uint8 *) VARDATA_ANY(image);
	Size		size = VARSIZE_ANY_EXHDR(image) + VARHDRSZ;

	if (size == probe->flat_size && bf_same_header(bytes, probe->flat_header))
	{
		filter->layer[0].data = bytes + filter->layer[0].offset;
		return filter;
	}
	probe->flat_size = 0;
	value_open(filter, image);
	if (filter->layers == 1 && filter->layer[0].form == BF_FORM_LINES && filter->header.class.code != BF_CLASS_NAMED)
	{
		probe->flat_size = size;
		memcpy(probe->flat_header, bytes, BF_HEADER_BYTES);
	}
	return filter;
}

/* Load a stored filter into memory.  The lines of a wide filter are aligned to cache lines. */
static const bf_filter *
probe_load(Probe *probe, Datum value)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(value);
	Size		n = VARSIZE_ANY_EXHDR(image);
	bf_host		host;
	bf_filter  *filter;
	uint8	   *bytes;

	probe->flat_size = 0;
	value_open(&probe->filter, image);	/* an error if it is not a filter */
	if (probe->loaded_context == NULL)
		probe->loaded_context = AllocSetContextCreate(probe->context, "filter in use", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(probe->loaded_context);
	host = server_host(probe->loaded_context);
	bytes = (uint8 *) bf_allocate(host, n + BF_LINE_BYTES) + BF_LINE_BYTES - BF_LENGTH_WORD;
	memcpy(bytes, VARDATA_ANY(image), n);
	pfree(image);

	filter = MemoryContextAlloc(probe->loaded_context, sizeof(bf_filter));
	(void) bf_filter_open(filter, host, bytes, n);
	if (filter->layer[0].form == BF_FORM_TABLE && !probe->counting)
		bf_layer_keep_unplaced(host, &filter->layer[0]);
	probe->loaded = filter;
	probe->one_layer = filter->layers == 1;
	return filter;
}

/* ----------------------------------------------------------------
 * Stored filters
 * ----------------------------------------------------------------
 */

/* Open a stored filter to be probed by slices; NULL if it is not valid. */
static const bf_filter *
probe_open_slices(Probe *probe, Datum value, uint64 size)
{
	bf_filter  *filter = &probe->filter;

	probe->flat_size = 0;		/* of what was there before */
	if (bf_filter_of_size(filter, server_host(NULL), size))
		return filter;
	if (bf_filter_open_pieces(filter, server_host(NULL), size, value_fetch_slice, &value) != NULL)
		return NULL;
	if (bf_filter_is_unfinished(filter))
		value_refuse_unfinished();
	return filter;
}

/*
 * Open the filter for `probes` more probes.  If *sliced is true, its layers have to
 * be fetched by slices.
 */
static const bf_filter *
probe_find_filter(Probe *probe, Datum value, Size probes, bool *sliced)
{
	struct varlena *image = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	const bf_filter *filter;
	uint64		size;

	*sliced = false;
	if (!VARATT_IS_EXTERNAL_ONDISK(image))
		return probe_open_flat(probe, PG_DETOAST_DATUM_PACKED(value));

	VARATT_EXTERNAL_GET_POINTER(pointer, image);
	size = pointer.va_rawsize - VARHDRSZ;
	if (probe->toast_value != pointer.va_valueid || probe->toast_relation != pointer.va_toastrelid)
	{
		probe->loaded = NULL;
		probe->toast_value = pointer.va_valueid;
		probe->toast_relation = pointer.va_toastrelid;
		probe->probes = 0;
	}
	if (probe->loaded != NULL)
		return probe->loaded;

	/* slices of a compressed value would decompress all that is before them */
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer) || probe->counting)
	{
		if (probe->probes++ > 0)
			return probe_load(probe, value);
		return probe_open_flat(probe, PG_DETOAST_DATUM_PACKED(value));
	}
	probe->probes += (uint32) Min(probes, VALUE_MOST_SLICED_PROBES);
	if (probe->probes > value_sliced_probes(size))
		return probe_load(probe, value);
	filter = probe_open_slices(probe, value, size);
	*sliced = filter != NULL;
	if (filter != NULL)
		return filter;
	return probe_open_flat(probe, PG_DETOAST_DATUM_PACKED(value));	/* raises the error */
}

/* Slow path of probe_one: any filter, anywhere. */
static pg_noinline bool
probe_anywhere(Probe *probe, Datum value, const KeyClass *class, uint64 hash)
{
	FilterObject *object = filter_object(value);
	const bf_filter *filter;
	bool		sliced;

	if (object != NULL)
	{
		filter_object_check(object);
		key_class_check(&object->filter.header.class, class);
		return bf_mutable_contains(&object->filter, hash);
	}
	filter = probe_find_filter(probe, value, 1, &sliced);
	key_class_check(&filter->header.class, class);
	if (sliced)
		return bf_filter_contains_pieces(filter, value_fetch_slice, &value, hash);
	return bf_filter_contains(filter, hash);
}

/*
 * May the key have been added?  There are two fast paths: a flat filter of one layer
 * of lines whose structure is known from the last row (the result of a subquery, a
 * constant, a parameter), and the stored filter that is loaded.
 */
static inline bool
probe_one(Probe *probe, Datum value, const KeyClass *class, uint64 hash)
{
	struct varlena *image = (struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_4B_U(image))
	{
		if (VARSIZE(image) == probe->flat_size && bf_same_header((uint8 *) VARDATA(image), probe->flat_header))
		{
			const bf_layer *layer = &probe->filter.layer[0];

			key_class_check(&probe->filter.header.class, class);
			return bf_lines_test((uint8 *) VARDATA(image) + layer->offset, layer->shape, hash);
		}
	}
	else if (probe->loaded != NULL && probe->one_layer && VARATT_IS_EXTERNAL_ONDISK(image))
	{
		struct varatt_external pointer;

		VARATT_EXTERNAL_GET_POINTER(pointer, image);
		if (pointer.va_valueid == probe->toast_value && pointer.va_toastrelid == probe->toast_relation)
		{
			key_class_check(&probe->loaded->header.class, class);
			return bf_layer_contains(&probe->loaded->layer[0], hash);
		}
	}
	return probe_anywhere(probe, value, class, hash);
}

/* Test many keys: the filter is opened once, and its memory is prefetched. */
static void
probe_many(Probe *probe, Datum value, const KeyClass *class, const uint64 *hashes, Size n, bool *found)
{
	FilterObject *object = filter_object(value);
	const bf_filter *filter;
	bool		sliced = false;

	if (object != NULL)
	{
		filter_object_check(object);
		key_class_check(&object->filter.header.class, class);
		for (Size i = 0; i < n; i++)
		{
			found[i] = bf_mutable_contains(&object->filter, hashes[i]);
			if (i % BF_POLL_EVERY == 0)
				CHECK_FOR_INTERRUPTS();
		}
		return;
	}
	filter = probe_find_filter(probe, value, n, &sliced);
	key_class_check(&filter->header.class, class);
	if (sliced)
	{
		for (Size i = 0; i < n; i++)
			found[i] = bf_filter_contains_pieces(filter, value_fetch_slice, &value, hashes[i]);
	}
	else
		bf_filter_contains_many(filter, hashes, n, found);
}

/* ----------------------------------------------------------------
 * SQL functions
 * ----------------------------------------------------------------
 */

/* bloom_contains, cuckoo_contains(filter, key): may the key have been added? */
PG_FUNCTION_INFO_V1(filter_contains);
Datum
filter_contains(PG_FUNCTION_ARGS)
{
	Probe	   *probe = probe_of_call(fcinfo);
	KeyType    *type = key_type_of_call(fcinfo, 1, &probe->key_type);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));

	PG_RETURN_BOOL(probe_one(probe, PG_GETARG_DATUM(0), &type->class, hash));
}

/* Test all keys of an array; found[] has one entry per key that is not null. */
static KeyArray
probe_elements(FunctionCallInfo fcinfo, bool **found)
{
	Probe	   *probe = probe_of_call(fcinfo);
	KeyArray	keys = key_array_of_argument(fcinfo, 1, &probe->key_type);

	*found = palloc(sizeof(bool) * Max(keys.n, 1));
	if (keys.n > 0)
		probe_many(probe, PG_GETARG_DATUM(0), &keys.class, keys.hashes, keys.n, *found);
	else
		(void) filter_unchanged(PG_GETARG_DATUM(0));
	return keys;
}

/*
 * Three-valued ANY and ALL: one key with the deciding result determines the result of
 * all; otherwise a NULL element makes it NULL.
 */
static Datum
probe_until(FunctionCallInfo fcinfo, bool deciding)
{
	bool	   *found;
	KeyArray	keys = probe_elements(fcinfo, &found);

	for (Size i = 0; i < keys.n; i++)
	{
		if (found[i] == deciding)
			PG_RETURN_BOOL(deciding);
	}
	if (keys.n < (Size) keys.items)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(!deciding);
}

/* ..._contains_any(filter, keys): may any of the keys have been added? */
SQL_FUNCTION(filter_contains_any, probe_until(fcinfo, true));

/* ..._contains_all(filter, keys): may all of the keys have been added? */
SQL_FUNCTION(filter_contains_all, probe_until(fcinfo, false));

/* Test all keys of an array, and make another array of the results. */
static Datum
probe_to_array(FunctionCallInfo fcinfo, ArrayType *(*make) (const KeyArray *keys, const bool *found))
{
	bool	   *found;
	KeyArray	keys = probe_elements(fcinfo, &found);

	PG_RETURN_ARRAYTYPE_P(make(&keys, found));
}

/* ..._contains_each(filter, keys): a result for each key, in an array of the same shape */
SQL_FUNCTION(filter_contains_each, probe_to_array(fcinfo, key_array_of_results));

/* bloom_missing, cuckoo_missing(filter, keys): the keys that were certainly not added */
SQL_FUNCTION(filter_missing, probe_to_array(fcinfo, key_array_of_missing));

/* bloom_hash(key): the 64-bit hash of a key */
PG_FUNCTION_INFO_V1(bloom_hash);
Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	KeyType    *type = key_type_of_call(fcinfo, 0, (KeyType **) &fcinfo->flinfo->fn_extra);

	PG_RETURN_INT64((int64) key_hash(type, PG_GETARG_DATUM(0)));
}

/* cuckoo_count(cuckoo, key): the number of copies of a key */
PG_FUNCTION_INFO_V1(cuckoo_count);
Datum
cuckoo_count(PG_FUNCTION_ARGS)
{
	Probe	   *probe = probe_of_call(fcinfo);
	KeyType    *type = key_type_of_call(fcinfo, 1, &probe->key_type);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));
	const bf_filter *filter;
	bool		sliced;

	probe->counting = true;
	filter = probe_find_filter(probe, PG_GETARG_DATUM(0), 1, &sliced);
	value_check_kind(filter->header.kind, BF_KIND_CUCKOO);
	key_class_check(&filter->header.class, &type->class);
	PG_RETURN_INT32((int32) bf_layer_copies(&filter->layer[0], bf_table_number(filter->layer[0].table, hash)));
}
