/*
 * probe.c
 *		Asking a filter for keys, wherever the filter is.
 *
 * A filter read from a table reaches us as a TOAST pointer.  Fetching all of it
 * for every row makes a query thousands of times slower than it should be
 * (243 us a row for 1.2 MB, against 0.05 us), and keeping a copy helps only if
 * the next row has the same filter: with another filter in each row it is even
 * slower.  We cannot know which it is, so:
 *
 *	- the first probes of a stored filter fetch only the slices they need, a
 *	  line of 64 bytes for each group; for the most common filters not even the
 *	  header, since their size tells the geometry;
 *	- a filter that was probed about as often as fetching it whole would have
 *	  cost is loaded into memory, and stays there until another one is.
 *
 * A stored value is known by its TOAST pointer, never by its address, which
 * says nothing about what is there now.  A flat filter is used in place; of it
 * only the structure is remembered, and only as long as the header is the same.
 */
#include "compat.h"

#include "access/detoast.h"
#include "utils/memutils.h"

#include "expanded.h"
#include "memory.h"
#include "probe.h"

/*
 * A probe by slices costs about as much as loading this many bytes.  (Measured:
 * 7.5 us against 243 us for 1.2 MB.)
 */
#define BYTES_PER_SLICED_PROBE	(32 * 1024)
#define MAX_SLICED_PROBES		256

FilterProbe *
filter_probe_create(FunctionCallInfo fcinfo)
{
	FilterProbe *probe = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FilterProbe));

	probe->context = fcinfo->flinfo->fn_mcxt;
	fcinfo->flinfo->fn_extra = probe;
	return probe;
}

/* ----------------------------------------------------------------
 * Filters in memory
 * ----------------------------------------------------------------
 */

/*
 * A flat filter, in place.  The header and the size fix the structure of a
 * filter that is one layer of lines, so it need not be read again for each row.
 */
static const bf_filter *
open_flat(FilterProbe *probe, struct varlena *image)
{
	uint8	   *bytes = (uint8 *) VARDATA_ANY(image);
	Size		n = VARSIZE_ANY_EXHDR(image);
	bf_filter  *filter = &probe->filter;

	if (n == probe->flat_size && memcmp(bytes, probe->flat_header, BF_HEADER_BYTES) == 0)
	{
		filter->layer[0].data = bytes + filter->layer[0].offset;
		return filter;
	}
	probe->flat_size = 0;
	filter_open(filter, image);
	if (filter->layers == 1 && filter->layer[0].form == BF_FORM_LINES && filter->key_class != BF_CLASS_NAMED)
	{
		probe->flat_size = n;
		memcpy(probe->flat_header, bytes, BF_HEADER_BYTES);
	}
	return filter;
}

/*
 * To answer whether a key is there, the list of a cuckoo filter matters only as
 * far as its numbers are not in the table, and hardly any is not.
 */
static void
keep_strays(bf_layer *layer, MemoryContext context)
{
	uint64	   *strays = MemoryContextAllocHuge(context, sizeof(uint64) * (Size) layer->count + 1);
	uint32		n = 0;

	for (uint32 i = 0; i < layer->count; i++)
	{
		uint64		number = bf_load64(layer->list + (Size) i * 8);

		if (number < bf_table_range(layer->table) && !bf_table_find(layer->data, layer->table, number))
			strays[n++] = number;
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	layer->list = MemoryContextAlloc(context, (Size) n * 9 + 1);
	bf_list_write(layer->list, strays, n);
	memset(layer->list + (Size) n * 8, 1, n);
	layer->count = n;
	pfree(strays);
}

/*
 * Load a stored filter, with its lines on cache line boundaries if it is wide.
 */
static const bf_filter *
load(FilterProbe *probe, Datum value)
{
	struct varlena *image = filter_detoast(value);
	Size		n = VARSIZE_ANY_EXHDR(image);
	bf_filter  *filter;
	uint8	   *bytes;

	if (probe->loaded_context == NULL)
		probe->loaded_context = AllocSetContextCreate(probe->context, "filter in use", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(probe->loaded_context);
	bytes = (uint8 *) memory_alloc(probe->loaded_context, n + BF_LINE_BYTES) + BF_LINE_BYTES - BF_LENGTH_WORD;
	memcpy(bytes, VARDATA_ANY(image), n);

	filter = MemoryContextAlloc(probe->loaded_context, sizeof(bf_filter));
	if (bf_filter_open(filter, bytes, n) != NULL)
		filter_open(filter, image); /* raises the error */
	pfree(image);
	if (filter->layer[0].form == BF_FORM_TABLE)
		keep_strays(&filter->layer[0], probe->loaded_context);
	probe->loaded = filter;
	probe->one_layer = filter->layers == 1;
	return filter;
}

/* ----------------------------------------------------------------
 * Stored filters
 * ----------------------------------------------------------------
 */

/* Fetch a slice; it lives as long as this call. */
static const uint8_t *
fetch_slice(void *arg, uint64_t offset, size_t n)
{
	struct varlena *slice = PG_DETOAST_DATUM_SLICE(*(Datum *) arg, (int32) offset, (int32) n);

	if (VARSIZE(slice) - VARHDRSZ != n)
		filter_refuse_damaged("It ends before its last layer does.");
	return (const uint8_t *) VARDATA(slice);
}

/* The structure of a stored filter, to probe it by slices; NULL if it has none. */
static const bf_filter *
open_slices(FilterProbe *probe, Datum value, uint64 size)
{
	bf_filter  *filter = &probe->filter;

	probe->flat_size = 0;		/* of what was there before */
	if (bf_filter_of_size(filter, size))
		return filter;
	return bf_filter_open_pieces(filter, size, fetch_slice, &value) == NULL ? filter : NULL;
}

/*
 * Find the filter for `probes` more probes.  *sliced tells whether its layers
 * have to be fetched.
 */
static const bf_filter *
find_filter(FilterProbe *probe, Datum value, Size probes, bool *sliced)
{
	struct varlena *image = (struct varlena *) DatumGetPointer(value);
	struct varatt_external pointer;
	const bf_filter *filter;
	uint64		size;

	*sliced = false;
	if (!VARATT_IS_EXTERNAL_ONDISK(image))
		return open_flat(probe, filter_detoast(value));

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
	if (VARATT_EXTERNAL_IS_COMPRESSED(pointer))
	{
		if (probe->probes++ > 0)
			return load(probe, value);
		return open_flat(probe, filter_detoast(value));
	}
	probe->probes += (uint32) Min(probes, MAX_SLICED_PROBES);
	if (probe->probes > Min(size / BYTES_PER_SLICED_PROBE + 1, MAX_SLICED_PROBES))
		return load(probe, value);
	filter = open_slices(probe, value, size);
	*sliced = filter != NULL;
	if (filter != NULL)
		return filter;
	return open_flat(probe, filter_detoast(value)); /* a state, or damaged */
}

/* May the filter hold the key?  Of filter_probe_one, what is not inline. */
bool
filter_probe_any(FilterProbe *probe, Datum value, const KeyClass *class, uint64 hash)
{
	ExpandedFilter *expanded = expanded_filter(value);
	const bf_filter *filter;
	bool		sliced;

	if (expanded != NULL)
	{
		filter_check_class(expanded->builder.base.frame, class);
		return build_contains(&expanded->builder.base, hash);
	}
	filter = find_filter(probe, value, 1, &sliced);
	filter_check_class(filter, class);
	if (sliced)
		return bf_filter_contains_pieces(filter, fetch_slice, &value, hash);
	return bf_filter_contains(filter, hash);
}

/* The same for many keys: the filter is found once, its memory prefetched. */
void
filter_probe_many(FilterProbe *probe, Datum value, const KeyClass *class,
				 const uint64 *hashes, Size n, bool *found)
{
	ExpandedFilter *expanded = expanded_filter(value);
	const bf_filter *filter;
	bool		sliced = false;

	if (expanded != NULL)
	{
		filter_check_class(expanded->builder.base.frame, class);
		for (Size i = 0; i < n; i++)
		{
			found[i] = build_contains(&expanded->builder.base, hashes[i]);
			if (i % BF_POLL_EVERY == 0)
				bf_poll();
		}
		return;
	}
	filter = find_filter(probe, value, n, &sliced);
	filter_check_class(filter, class);
	if (sliced)
	{
		for (Size i = 0; i < n; i++)
			found[i] = bf_filter_contains_pieces(filter, fetch_slice, &value, hashes[i]);
	}
	else
		bf_filter_contains_many(filter, hashes, n, found);
}
