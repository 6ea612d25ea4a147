/*
 * inspect.c
 *		bloom_index_stats, bloom_index_check, bloom_index_export: functions that read
 *		all of an index.
 */
#include "../compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "../server.h"
#include "../value.h"
#include "index.h"
#include "inspected.h"
#include "trust.h"

/* The share of stale keys, and the number of layers, for which REINDEX is advised. */
#define MUCH_STALE		0.3
#define MANY_LAYERS		3

/* ----------------------------------------------------------------
 * Statistics
 * ----------------------------------------------------------------
 */

/* Statistics of one layer, or of all. */
typedef struct LayerStats
{
	double		bits_set;
	double		keys;
	double		fpp;			/* mean over the pages */
	double		overflowed;		/* share of the pages */
} LayerStats;

/*
 * Read pages of a layer at equal distances, at most this number of them.  Keys are spread
 * evenly over the pages, so a few pages are representative.
 */
static LayerStats
layer_stats(Relation index, const BfindexLayer *layer, unsigned number, BlockNumber most)
{
	BlockNumber n = Min(most, layer->pages);
	double		scale = (double) layer->pages / n;
	LayerStats	stats = {0};

	for (BlockNumber i = 0; i < n; i++)
	{
		Buffer		buffer = ReadBuffer(index, layer->first + (BlockNumber) ((uint64) i * layer->pages / n));

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (bfindex_check_page(index, buffer, number))
		{
			Page		page = BufferGetPage(buffer);
			bf_census	census = bf_lines_census(server_host(NULL), bfindex_page_lines(page), bfindex_page_shape(layer));

			stats.bits_set += (double) census.bits_set * scale;
			stats.keys += census.keys * scale;
			stats.fpp += census.fpp / n;
			if (((BfindexPage *) page)->flags & BFINDEX_OVERFLOW)
				stats.overflowed += 1.0 / n;
		}
		UnlockReleaseBuffer(buffer);
	}
	return stats;
}

/* Return the number of rows of a table as VACUUM and ANALYZE have counted them; negative if not known. */
static double
table_rows(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	double		rows = -1;

	if (HeapTupleIsValid(tuple))
	{
		rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return rows;
}

/*
 * Estimate the number of distinct keys that the rows of the table have now, from the
 * statistics of ANALYZE and VACUUM; negative if there are none, or if the index is partial.
 */
static double
live_keys(Relation index)
{
	AttrNumber	column = index->rd_index->indkey.values[0];
	Oid			table = index->rd_index->indrelid;
	double		rows = table_rows(table);
	HeapTuple	tuple;
	Form_pg_statistic form;
	double		keys;

	if (rows < 0 || !heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return -1;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column != 0 ? table : RelationGetRelid(index)),
							Int16GetDatum(column != 0 ? column : 1), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return rows == 0 ? 0 : -1;
	form = (Form_pg_statistic) GETSTRUCT(tuple);
	keys = form->stadistinct > 0 ? form->stadistinct : -form->stadistinct * rows;
	keys = Min(keys, rows * (1 - form->stanullfrac));
	if (form->stadistinct == 0)
		keys = -1;
	ReleaseSysCache(tuple);
	return keys;
}

/* Return advice on an index, or NULL. */
static const char *
bfindex_advice(Relation index, const BfindexMeta *meta, double stale)
{
	if (!index->rd_index->indisvalid)
		return INDEX_ADVICE_INVALID;
	if (meta->fpp != bfindex_fpp(index))
		return psprintf("REINDEX INDEX CONCURRENTLY: it was built with fpp = %g, and fpp = %g takes effect when it is rebuilt",
						meta->fpp, bfindex_fpp(index));
	if (stale > MUCH_STALE)
		return "REINDEX INDEX CONCURRENTLY: many keys belong to deleted rows";
	if (meta->layers >= MANY_LAYERS)
		return "REINDEX INDEX CONCURRENTLY: a single layer would take less space and time";
	return NULL;
}

/* Return the condition of an index.  At most `most` pages of each layer are read. */
IndexHealth
bfindex_health(Relation index, const BfindexMeta *meta, BlockNumber most)
{
	IndexHealth health = {.layers = meta->layers, .target_fpp = meta->fpp, .stale = -1};
	double		live = live_keys(index);
	double		bits_set = 0;
	uint64		bits = 0;
	double		reached = 1;	/* share of the lookups that reach a layer */

	for (unsigned i = 0; i < meta->layers; i++)
	{
		LayerStats	stats = layer_stats(index, &meta->layer[i], i, most);

		bits_set += stats.bits_set;
		bits += (uint64) meta->layer[i].pages * BFINDEX_PAGE_WORDS * 64;
		health.keys += stats.keys;
		health.fpp += reached * stats.fpp;
		reached *= stats.overflowed;
	}
	health.fill = bits_set / (double) bits;
	if (live >= 0)
		health.stale = health.keys > live ? 1 - live / health.keys : 0;
	health.advice = bfindex_advice(index, meta, health.stale);
	return health;
}

PG_FUNCTION_INFO_V1(bloom_index_stats);
Datum
bloom_index_stats(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspected_open(PG_GETARG_OID(0), "bloomfilter");
	BfindexMeta meta = bfindex_read_meta(inspected.index);
	IndexHealth health = bfindex_health(inspected.index, &meta, MaxBlockNumber);
	KeyClass	class = index_key_class(&meta.class);
	uint64		capacity = 0;
	TupleDesc	desc;
	Datum		values[10];
	bool		nulls[10] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (unsigned i = 0; i < meta.layers; i++)
		capacity += (uint64) meta.layer[i].pages * meta.layer[i].page_keys;
	values[0] = Int32GetDatum(health.layers);
	values[1] = Int64GetDatum((int64) rint(health.keys));
	values[2] = Int64GetDatum((int64) capacity);
	values[3] = Int64GetDatum((int64) RelationGetNumberOfBlocks(inspected.index) * BLCKSZ);
	values[4] = Float8GetDatum(health.fill);
	values[5] = Float8GetDatum(health.target_fpp);
	values[6] = Float8GetDatum(health.fpp);
	values[7] = Float8GetDatum(health.stale);
	nulls[7] = health.stale < 0;
	values[8] = CStringGetTextDatum(key_class_label(&class));
	nulls[9] = health.advice == NULL;
	values[9] = nulls[9] ? (Datum) 0 : CStringGetTextDatum(health.advice);
	inspected_close(inspected);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* ----------------------------------------------------------------
 * Check
 * ----------------------------------------------------------------
 */

/* The state of a check, for the callback of the table scan. */
typedef struct CheckState
{
	IndexKeyHasher *hasher;
	int64		missing;
} CheckState;

/* Look up the key of a row. */
static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	CheckState *state = arg;

	if (!isnull[0] && !bfindex_contains_hash(index, bfindex_hash(index_key_hash(state->hasher, values[0])), NULL, NULL))
		state->missing++;
}

/* Look up every row that a new snapshot sees, and return the number of rows whose key is missing. */
PG_FUNCTION_INFO_V1(bloom_index_check);
Datum
bloom_index_check(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspected_open(PG_GETARG_OID(0), "bloomfilter");
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	CheckState	state = {0};

	trust_check_snapshot(inspected.index, snapshot);
	bfindex_check_class(inspected.index);
	state.hasher = index_key_hasher(inspected.index, CurrentMemoryContext);
	inspected_scan(inspected, snapshot, check_row, &state);
	UnregisterSnapshot(snapshot);
	inspected_close(inspected);
	PG_RETURN_INT64(state.missing);
}

/* ----------------------------------------------------------------
 * Export
 * ----------------------------------------------------------------
 */

/* Copy the lines of a layer to a value. */
static void
export_layer(Relation index, const BfindexLayer *layer, unsigned number, uint8 *to)
{
	const Size	page_bytes = (Size) BFINDEX_PAGE_LINES * BF_LINE_BYTES;

	for (BlockNumber i = 0; i < layer->pages; i++)
	{
		Buffer		buffer = ReadBuffer(index, layer->first + i);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (bfindex_check_page(index, buffer, number))
			memcpy(to + i * page_bytes, bfindex_page_lines(BufferGetPage(buffer)), page_bytes);
		else
			memset(to + i * page_bytes, 0, page_bytes);
		UnlockReleaseBuffer(buffer);
	}
}

/*
 * Raise an error unless a `bloom` value can be tested for keys of the column's type: it
 * must be a type that values support, and compare keys as the index does.
 */
static void
bfindex_check_exportable(Relation index)
{
	Oid			type = TupleDescAttr(RelationGetDescr(index), 0)->atttypid;

	if (!index_key_compares_like_column(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" does not support the equality operator of type %s",
						RelationGetRelationName(index), format_type_be(type))));
	key_type(type, index->rd_indcollation[0], CurrentMemoryContext);
}

/* Return a copy of the index as a `bloom` value. */
PG_FUNCTION_INFO_V1(bloom_index_export);
Datum
bloom_index_export(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspected_open(PG_GETARG_OID(0), "bloomfilter");
	BfindexMeta meta = bfindex_read_meta(inspected.index);
	bf_filter	filter;
	struct varlena *image;

	trust_check_has_all_rows(inspected.heap, inspected.index);
	bfindex_check_class(inspected.index);
	bfindex_check_exportable(inspected.index);
	PredicateLockRelation(inspected.index, GetActiveSnapshot());
	memset(&filter, 0, sizeof(filter));
	filter.header.host = server_host(NULL);
	filter.header.kind = BF_KIND_BLOOM;
	filter.header.growth = BF_DEFAULT_GROWTH;
	filter.header.fpp = meta.fpp;
	filter.header.class = index_key_class(&meta.class);
	filter.layers = (uint8) meta.layers;
	for (unsigned i = 0; i < meta.layers; i++)
	{
		const BfindexLayer *layer = &meta.layer[i];

		filter.layer[i].form = BF_FORM_LINES;
		filter.layer[i].shape = (bf_shape) {layer->pages * BFINDEX_PAGE_WORDS, 1, (uint8) layer->probes};
		filter.layer[i].capacity = (uint64) layer->pages * layer->page_keys;
	}
	image = value_allocate(bf_filter_size(&filter));
	bf_filter_write(&filter, (uint8 *) VARDATA(image), VARSIZE(image) - VARHDRSZ);
	for (unsigned i = 0; i < meta.layers; i++)
		export_layer(inspected.index, &meta.layer[i], i, filter.layer[i].data);
	inspected_close(inspected);
	PG_RETURN_POINTER(image);
}
