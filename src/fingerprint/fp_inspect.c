/*
 * fp_inspect.c
 *		fingerprint_stats and fingerprint_check: statistics and consistency of an index.
 */
#include "fingerprint.h"

#include <math.h>

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "../index/inspected.h"

/* With a larger share of overflow pages than this, a btree is advised. */
#define MUCH_OVERFLOW		0.2

/* The operator < of bigint. */
#define INT8_LESS			412

/* ----------------------------------------------------------------
 * Walking over all entries
 * ----------------------------------------------------------------
 */

typedef struct Walk
{
	Relation	index;
	double		rows;
	BlockNumber primary_pages;
	BlockNumber overflow_pages;
	BlockNumber posting_pages;
	double		false_fetches;	/* summed up over the buckets */
	uint64		exhausted;		/* pages that cannot be divided further */
	bool		is_sample;		/* posting pages are not read */
	uint32		references;		/* to posting pages that were not read */
	Tuplesortstate *sort;		/* of entries, if they are to be checked */
	TupleTableSlot *slot;
	FpChain		chain;			/* of the pages of this bucket that were read */
	List	   *chains;			/* of posting pages of this bucket, for later */
} Walk;

/* The pages of a posting chain that are still to be read. */
typedef struct Chain
{
	BlockNumber from;
	BlockNumber block;
	uint32		generation;
	uint64		hash;
	uint64		known;
} Chain;

/* A row of a sort: an address, a hash, and which bits of the hash are known. */
static void
put_row(Tuplesortstate *sort, TupleTableSlot *slot, const FpEntry *entry, uint64 known)
{
	ExecClearTuple(slot);
	slot->tts_values[0] = Int64GetDatum((int64) ((uint64) entry->block << 16 | entry->offset));
	slot->tts_values[1] = Int64GetDatum((int64) (entry->hash & known));
	slot->tts_values[2] = Int64GetDatum((int64) known);
	memset(slot->tts_isnull, 0, 3 * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort, slot);
}

/* Walk over a posting page that is locked, and unlock it.  Returns the rest of its chain. */
static Chain
walk_posting(Walk *walk, Buffer buffer, Chain chain)
{
	Page		page = BufferGetPage(buffer);
	FpEntry		entries[FP_CAPACITY];
	unsigned	n = fp_count(page);

	for (unsigned i = 0; i < n; i++)
		entries[i] = fp_get(page, i, 0);
	chain.from = BufferGetBlockNumber(buffer);
	chain.block = fp_header(page)->next;
	chain.generation = fp_header(page)->next_generation;
	UnlockReleaseBuffer(buffer);
	walk->posting_pages++;
	walk->rows += n;
	for (unsigned i = 0; i < n && walk->sort != NULL; i++)
	{
		entries[i].hash = chain.hash;
		put_row(walk->sort, walk->slot, &entries[i], chain.known);
	}
	return chain;
}

/*
 * Walk over the rest of the chains, with nothing locked, since they can be long.  A page
 * that VACUUM has freed meanwhile ends a chain: statistics need not be exact, and VACUUM
 * cannot run during fingerprint_check.
 */
static void
walk_chains(Walk *walk)
{
	ListCell   *cell;

	foreach(cell, walk->chains)
	{
		Chain		chain = *(Chain *) lfirst(cell);

		while (chain.block != InvalidBlockNumber)
		{
			Buffer		buffer = fp_follow_unlocked(&walk->chain, chain.from, chain.block, chain.generation);

			if (buffer == InvalidBuffer)
				break;
			chain = walk_posting(walk, buffer, chain);
			CHECK_FOR_INTERRUPTS();
		}
	}
	list_free_deep(walk->chains);
	walk->chains = NIL;
}

/* Walk over one page of a bucket that is locked. */
static void
walk_page(Walk *walk, Buffer buffer, uint64 base, unsigned level)
{
	Page		page = BufferGetPage(buffer);
	unsigned	n = fp_count(page);
	unsigned	high = fp_header(page)->high_bit;
	uint64		known = ((UINT64CONST(1) << Max(high, level)) - 1) | (PG_UINT64_MAX << FP_TAG_SHIFT);

	for (unsigned i = 0; i < n; i++)
	{
		FpEntry		entry = fp_get(page, i, base);

		if (entry.offset == InvalidOffsetNumber && walk->is_sample)
			walk->references++;
		else if (entry.offset == InvalidOffsetNumber)
		{
			Buffer		head = fp_follow(&walk->chain, BufferGetBlockNumber(buffer), entry.block, FP_POSTING,
										 BUFFER_LOCK_SHARE);
			Chain	   *chain = palloc(sizeof(Chain));

			*chain = walk_posting(walk, head, (Chain) {.hash = entry.hash, .known = known});
			walk->chains = lappend(walk->chains, chain);
		}
		else
		{
			walk->rows++;
			if (walk->sort != NULL)
				put_row(walk->sort, walk->slot, &entry, known);
		}
	}
	walk->exhausted += n > 0 && high <= level;

	/*
	 * tags tell less within a bucket, because they have decided what belongs
	 * to it
	 */
	walk->false_fetches += ldexp((double) n * FP_GROUP * 1.5, -(FP_TAG_BITS + (int) high - (int) level));
}

static void
walk_bucket(Walk *walk, uint32 bucket)
{
	Buffer		buffer = fp_read_bucket(walk->index, bucket, BUFFER_LOCK_SHARE, NULL);
	Page		page = BufferGetPage(buffer);

	if (!PageIsNew(page))
	{
		uint64		base = fp_base(page);
		unsigned	level = fp_level(fp_header(page)->step);
		BlockNumber from = BufferGetBlockNumber(buffer);
		BlockNumber block = fp_header(page)->next;

		walk->primary_pages++;
		walk->chain = (FpChain) {walk->index};
		walk_page(walk, buffer, base, level);
		while (block != InvalidBlockNumber)
		{
			Buffer		overflow = fp_follow(&walk->chain, from, block, FP_OVERFLOW, BUFFER_LOCK_SHARE);

			walk->overflow_pages++;
			walk_page(walk, overflow, base, level);
			from = block;
			block = fp_header(BufferGetPage(overflow))->next;
			UnlockReleaseBuffer(overflow);
		}
	}
	UnlockReleaseBuffer(buffer);
	walk_chains(walk);
}

/* Walk over buckets at equal distances, at most this number of them; returns the number of all buckets. */
static uint32
walk_buckets(Walk *walk, uint32 most)
{
	uint32		buckets = fp_count_buckets(walk->index);
	uint32		n = Min(most, buckets);

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		walk_bucket(walk, (uint32) ((uint64) i * buckets / n));
	}
	return buckets;
}

/* ----------------------------------------------------------------
 * Statistics
 * ----------------------------------------------------------------
 */

/* Return advice on an index, or NULL. */
static const char *
fp_advice(const Walk *walk)
{
	if (!walk->index->rd_index->indisvalid)
		return INDEX_ADVICE_INVALID;
	if (walk->exhausted > 0)
		return "REINDEX INDEX CONCURRENTLY: entries have too few bits for an index of this size";
	if (walk->overflow_pages > MUCH_OVERFLOW * walk->primary_pages || walk->posting_pages > walk->primary_pages)
		return "consider a btree: many keys are repeated";
	return NULL;
}

/*
 * Estimate the condition of an index from the primary and overflow pages of at most `most` buckets.
 *
 * The number of pages other than primary pages follows from the metapage.  If the buckets
 * refer to posting pages, then pages that are not overflow pages of the buckets count as
 * posting pages, and the number of rows is that of the last VACUUM or ANALYZE.
 */
IndexHealth
fp_health(Relation index, uint32 most)
{
	FpMeta		meta = fp_read_meta(index);
	Walk		walk = {index, .is_sample = true};
	const unsigned capacity = FP_CAPACITY;
	IndexHealth health = {.layers = -1, .target_fpp = -1, .stale = -1};
	double		buckets = walk_buckets(&walk, most);
	double		share = walk.primary_pages / buckets;
	double		others = meta.end - FP_META_BLOCK - 1 - buckets;

	if (walk.references > 0)
		walk.posting_pages = (BlockNumber) Max(others * share - walk.overflow_pages, 0);
	health.keys = walk.rows / share;
	if (walk.references > 0)
		health.keys = Max(health.keys, index->rd_rel->reltuples);
	health.fill = walk.rows / (((double) walk.primary_pages + walk.overflow_pages) * capacity);
	health.fpp = walk.false_fetches / walk.primary_pages;
	health.advice = fp_advice(&walk);
	return health;
}

PG_FUNCTION_INFO_V1(fingerprint_stats);
Datum
fingerprint_stats(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspected_open(PG_GETARG_OID(0), "fingerprint");
	Walk		walk = {inspected.index};
	FpMeta		meta = fp_read_meta(inspected.index);
	KeyClass	class = index_key_class(&meta.class);
	double		bytes;
	double		pages;
	const unsigned capacity = FP_CAPACITY;
	const char *advice;
	TupleDesc	desc;
	Datum		values[9];
	bool		nulls[9] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	walk_buckets(&walk, PG_UINT32_MAX);
	bytes = (double) RelationGetNumberOfBlocks(inspected.index) * BLCKSZ;
	advice = fp_advice(&walk);
	pages = (double) walk.primary_pages + walk.overflow_pages + walk.posting_pages;
	values[0] = Int64GetDatum((int64) walk.rows);
	values[1] = Int64GetDatum((int64) bytes);
	values[2] = Float8GetDatum(bytes / walk.rows);
	nulls[2] = walk.rows == 0;
	values[3] = Float8GetDatum(walk.rows / (pages * capacity));
	values[4] = Int64GetDatum((int64) walk.overflow_pages);
	values[5] = Int64GetDatum((int64) walk.posting_pages);
	values[6] = Float8GetDatum(walk.false_fetches / walk.primary_pages);
	values[7] = CStringGetTextDatum(key_class_label(&class));
	nulls[8] = advice == NULL;
	values[8] = nulls[8] ? (Datum) 0 : CStringGetTextDatum(advice);
	inspected_close(inspected);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* ----------------------------------------------------------------
 * Check
 * ----------------------------------------------------------------
 */

static Tuplesortstate *
begin_sort(TupleDesc desc)
{
	AttrNumber	columns[] = {1};
	Oid			operators[] = {INT8_LESS};
	Oid			collations[] = {InvalidOid};
	bool		nulls_first[] = {false};

	return tuplesort_begin_heap(desc, 1, columns, operators, collations, nulls_first, maintenance_work_mem / 2, NULL,
								TUPLESORT_NONE);
}

/* What a scan of the table collects. */
typedef struct Rows
{
	IndexKeyHasher *hasher;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
} Rows;

static void
collect_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Rows	   *rows = arg;
	FpEntry		entry;

	if (isnull[0])
		return;
	entry.hash = index_key_hash(rows->hasher, values[0]);
	entry.block = ItemPointerGetBlockNumber(tid);
	entry.offset = ItemPointerGetOffsetNumber(tid);
	put_row(rows->sort, rows->slot, &entry, PG_UINT64_MAX);
}

/* The next row of a sort; false at its end. */
static bool
next_row(Tuplesortstate *sort, TupleTableSlot *slot, uint64 *tid, uint64 *hash, uint64 *known)
{
	if (!tuplesort_gettupleslot(sort, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	*tid = (uint64) DatumGetInt64(slot->tts_values[0]);
	*hash = (uint64) DatumGetInt64(slot->tts_values[1]);
	*known = (uint64) DatumGetInt64(slot->tts_values[2]);
	return true;
}

/* Does the table have a row at an address?  Dead rows count until VACUUM has removed them. */
static bool
is_used(Relation heap, uint64 tid, Buffer *buffer)
{
	BlockNumber block = (BlockNumber) (tid >> 16);
	OffsetNumber offset = (OffsetNumber) tid;
	bool		used;

	if (block >= RelationGetNumberOfBlocks(heap) || offset == InvalidOffsetNumber)
		return false;
	*buffer = ReleaseAndReadBuffer(*buffer, heap, block);
	LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	used = offset <= PageGetMaxOffsetNumber(BufferGetPage(*buffer)) &&
		ItemIdIsUsed(PageGetItemId(BufferGetPage(*buffer), offset));
	LockBuffer(*buffer, BUFFER_LOCK_UNLOCK);
	return used;
}

/* Compare the index with the table, which is locked against changes. */
PG_FUNCTION_INFO_V1(fingerprint_check);
Datum
fingerprint_check(PG_FUNCTION_ARGS)
{
	Inspected	inspected = inspected_open(PG_GETARG_OID(0), "fingerprint");
	TupleDesc	desc;
	TupleDesc	sort_desc = CreateTemplateTupleDesc(3);
	Walk		walk = {inspected.index};
	Rows		rows = {0};
	Snapshot	snapshot;
	IndexKeyClass class;
	TupleTableSlot *slots[2];
	uint64		entry_tid;
	uint64		entry_hash;
	uint64		known;
	uint64		row_tid = 0;
	uint64		row_hash = 0;
	uint64		ignored;
	bool		more_rows;
	uint64		previous = PG_UINT64_MAX;
	bool		found = false;
	int64		missing = 0;
	int64		dangling = 0;
	int64		repeated = 0;
	Buffer		heap_buffer = InvalidBuffer;
	Datum		values[3];
	bool		nulls[3] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (!bf_is_owner(RelationGetRelid(inspected.heap), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(inspected.heap->rd_rel->relkind),
					   RelationGetRelationName(inspected.heap));
	LockRelation(inspected.heap, ShareLock);
	for (AttrNumber i = 1; i <= 3; i++)
		TupleDescInitEntry(sort_desc, i, NULL, INT8OID, -1, 0);
	bf_finish_tuple_desc(sort_desc);
	slots[0] = MakeSingleTupleTableSlot(sort_desc, &TTSOpsMinimalTuple);
	slots[1] = MakeSingleTupleTableSlot(sort_desc, &TTSOpsMinimalTuple);
	walk.slot = rows.slot = MakeSingleTupleTableSlot(sort_desc, &TTSOpsVirtual);

	walk.sort = begin_sort(sort_desc);
	walk_buckets(&walk, PG_UINT32_MAX);
	tuplesort_performsort(walk.sort);

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	class = fp_meta(inspected.index)->class;
	index_key_class_check(inspected.index, &class, FP_META_BLOCK);
	rows.hasher = index_key_hasher(inspected.index, CurrentMemoryContext);
	rows.sort = begin_sort(sort_desc);
	inspected_scan(inspected, snapshot, collect_row, &rows);
	UnregisterSnapshot(snapshot);
	tuplesort_performsort(rows.sort);

	/* merge; `found` tells whether the row has had its entry */
	more_rows = next_row(rows.sort, slots[1], &row_tid, &row_hash, &ignored);
	while (next_row(walk.sort, slots[0], &entry_tid, &entry_hash, &known))
	{
		CHECK_FOR_INTERRUPTS();
		while (more_rows && row_tid < entry_tid)
		{
			missing += !found;
			found = false;
			more_rows = next_row(rows.sort, slots[1], &row_tid, &row_hash, &ignored);
		}
		if (entry_tid == previous)
			repeated++;
		previous = entry_tid;
		if (more_rows && row_tid == entry_tid)
		{
			if ((row_hash & known) == entry_hash)
				found = true;
			else
				dangling++;
		}
		else if (inspected.heap->rd_tableam == GetHeapamTableAmRoutine() && !is_used(inspected.heap, entry_tid, &heap_buffer))
			dangling++;
	}
	while (more_rows)
	{
		missing += !found;
		found = false;
		more_rows = next_row(rows.sort, slots[1], &row_tid, &row_hash, &ignored);
	}
	if (BufferIsValid(heap_buffer))
		ReleaseBuffer(heap_buffer);
	ExecDropSingleTupleTableSlot(slots[0]);
	ExecDropSingleTupleTableSlot(slots[1]);
	ExecDropSingleTupleTableSlot(walk.slot);
	tuplesort_end(walk.sort);
	tuplesort_end(rows.sort);
	UnlockRelation(inspected.heap, ShareLock);
	inspected_close(inspected);
	values[0] = Int64GetDatum(missing);
	values[1] = Int64GetDatum(dangling);
	values[2] = Int64GetDatum(repeated);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
