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
#include "trust.h"

/* The share of stale keys, and the number of layers, for which REINDEX is advised. */
#define MUCH_STALE		0.3
#define MANY_LAYERS		3

/* ----------------------------------------------------------------
 * Opening an index
 * ----------------------------------------------------------------
 */

/* An index and its table, both locked, that the current user may read. */
typedef struct Inspected
{
	Relation	heap;
	Relation	index;
} Inspected;

/* Open an index, and raise an error if it cannot be inspected. */
static Inspected
inspect_open(Oid oid)
{
	Oid			table = IndexGetRelation(oid, true);
	Inspected	inspected;

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 get_rel_name(oid) == NULL ? errmsg("index with OID %u does not exist", oid) :
				 errmsg("\"%s\" is not an index", get_rel_name(oid))));
	inspected.heap = table_open(table, AccessShareLock);
	inspected.index = index_open(oid, AccessShareLock);
	if (inspected.index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", RelationGetRelationName(inspected.index)),
				 errhint("Specify the index of a partition; SELECT relid FROM pg_partition_tree('%s') WHERE isleaf lists them.",
						 RelationGetRelationName(inspected.index))));
	if (!bfindex_is(inspected.index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a bloomfilter index", RelationGetRelationName(inspected.index))));
	trust_check_may_inspect(inspected.heap, inspected.index);
	return inspected;
}

/* Close an index, but keep the locks until the end of the transaction. */
static void
inspect_close(Inspected inspected)
{
	index_close(inspected.index, NoLock);
	table_close(inspected.heap, NoLock);
}

/* ----------------------------------------------------------------
 * Statistics
 * ----------------------------------------------------------------
 */

/* Statistics of one layer, or of all. */
typedef struct LayerStats
{
	uint64		bits_set;
	double		keys;
	double		fpp;			/* mean over the pages */
	double		overflowed;		/* share of the pages */
} LayerStats;

/* Read all pages of a layer. */
static LayerStats
layer_stats(Relation index, const BfindexLayer *layer, unsigned number)
{
	LayerStats	stats = {0};

	for (BlockNumber i = 0; i < layer->pages; i++)
	{
		Buffer		buffer = ReadBuffer(index, layer->first + i);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (bfindex_check_page(index, buffer, number))
		{
			Page		page = BufferGetPage(buffer);
			bf_census	census = bf_lines_census(server_host(NULL), bfindex_page_lines(page), bfindex_page_shape(layer));

			stats.bits_set += census.bits_set;
			stats.keys += census.keys;
			stats.fpp += census.fpp / layer->pages;
			if (((BfindexPage *) page)->flags & BFINDEX_OVERFLOW)
				stats.overflowed += 1.0 / layer->pages;
		}
		UnlockReleaseBuffer(buffer);
	}
	return stats;
}

/*
 * Estimate the number of distinct keys that the rows of the table have now, from the
 * statistics of ANALYZE and VACUUM; negative if there are none, or if the index is partial.
 */
static double
live_keys(Inspected inspected)
{
	AttrNumber	column = inspected.index->rd_index->indkey.values[0];
	double		rows = inspected.heap->rd_rel->reltuples;
	HeapTuple	tuple;
	Form_pg_statistic form;
	double		keys;

	if (rows < 0 || !heap_attisnull(inspected.index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return -1;
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(RelationGetRelid(column != 0 ? inspected.heap : inspected.index)),
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

PG_FUNCTION_INFO_V1(bloom_index_stats);
Datum
bloom_index_stats(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspect_open(PG_GETARG_OID(0));
	BfindexMeta meta = bfindex_read_meta(inspected.index);
	KeyClass	class = index_key_class(&meta.class);
	LayerStats	all = {0};
	uint64		bits = 0;
	uint64		capacity = 0;
	double		reached = 1;	/* share of the lookups that reach a layer */
	double		live = live_keys(inspected);
	double		stale;
	TupleDesc	desc;
	Datum		values[10];
	bool		nulls[10] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (unsigned i = 0; i < meta.layers; i++)
	{
		LayerStats	stats = layer_stats(inspected.index, &meta.layer[i], i);

		all.bits_set += stats.bits_set;
		all.keys += stats.keys;
		all.fpp += reached * stats.fpp;
		reached *= stats.overflowed;
		bits += (uint64) meta.layer[i].pages * BFINDEX_PAGE_WORDS * 64;
		capacity += (uint64) meta.layer[i].pages * meta.layer[i].page_keys;
	}
	stale = all.keys > live ? 1 - live / all.keys : 0;

	values[0] = Int32GetDatum(meta.layers);
	values[1] = Int64GetDatum((int64) rint(all.keys));
	values[2] = Int64GetDatum((int64) capacity);
	values[3] = Int64GetDatum((int64) RelationGetNumberOfBlocks(inspected.index) * BLCKSZ);
	values[4] = Float8GetDatum((double) all.bits_set / (double) bits);
	values[5] = Float8GetDatum(meta.fpp);
	values[6] = Float8GetDatum(all.fpp);
	values[7] = Float8GetDatum(stale);
	nulls[7] = live < 0;
	values[8] = CStringGetTextDatum(key_class_label(&class));
	if (!inspected.index->rd_index->indisvalid)
		values[9] = CStringGetTextDatum("not valid: REINDEX or drop it");
	else if (live >= 0 && stale > MUCH_STALE)
		values[9] = CStringGetTextDatum("REINDEX INDEX CONCURRENTLY: many keys belong to deleted rows");
	else if (meta.layers >= MANY_LAYERS)
		values[9] = CStringGetTextDatum("REINDEX INDEX CONCURRENTLY: a single layer would take less space and time");
	else
		nulls[9] = true;
	inspect_close(inspected);
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

	if (!isnull[0] && !bfindex_contains_hash(index, bfindex_hash(index_key_hash(state->hasher, values[0])), NULL))
		state->missing++;
}

/*
 * Look up every row that a new snapshot sees, and return the number of rows whose key is
 * missing.  Expressions and predicates of the index run with the privileges of the table's
 * owner in a restricted context, as when the index is built.
 */
PG_FUNCTION_INFO_V1(bloom_index_check);
Datum
bloom_index_check(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspect_open(PG_GETARG_OID(0));
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	struct IndexInfo *info;
	CheckState	state = {0};
	Oid			user;
	int			security;
	int			settings = NewGUCNestLevel();

	trust_check_snapshot(inspected.index, snapshot);
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(inspected.heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
	bf_restrict_search_path();
	info = BuildIndexInfo(inspected.index); /* evaluates constants */
	bfindex_check_class(inspected.index);
	state.hasher = index_key_hasher(inspected.index, CurrentMemoryContext);
	info->ii_Concurrent = true; /* to use our snapshot */
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(inspected.heap, inspected.index, info, true, false, check_row, &state,
						   table_beginscan_strat(inspected.heap, snapshot, 0, NULL, true, true));
	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, security);
	UnregisterSnapshot(snapshot);
	inspect_close(inspected);
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
	Inspected	inspected = inspect_open(PG_GETARG_OID(0));
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
	inspect_close(inspected);
	PG_RETURN_POINTER(image);
}
