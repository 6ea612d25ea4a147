/*
 * page_ranges.c
 *		Which pages of a table can contain a key of a filter, according to a BRIN index.
 *
 * The index is searched for each range of keys, as a bitmap scan does it: page ranges that
 * are not summarized are found by every search.  The number of searches is limited, because each
 * reads the whole index: gaps between keys that do not count are searched, too.
 *
 * Since 16, an update of an indexed column can be HOT although a BRIN index contains the
 * column.  If a page range is summarized after that, the summary lacks the old version of the
 * row (heapam_index_build_range_scan() leaves it out), which an older snapshot can still
 * see.  So only pages that are all-visible are left out.  The visibility map is read after the
 * index: a page that is all-visible then contains no row that was updated before the summary
 * was read.
 */
#include "../compat.h"

#include "access/brin.h"
#include "access/brin_internal.h"
#include "access/genam.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "page_ranges.h"

/* Searches per page of a page range: all searches together cost about 2% of reading the table. */
#define PAGES_PER_SEARCH	8

/*
 * Can an index rule out pages by the integers of a column?  Indexes of minmax-multi
 * cannot: when summarize_range() forms the summary anew after union_tuples(), the server
 * loses values that other sessions have added to it meanwhile.
 */
static bool
is_usable(Relation index, AttrNumber column)
{
	if (index->rd_rel->relam != BRIN_AM_OID || !index->rd_index->indisvalid || index->rd_index->indnatts != 1 ||
		index->rd_index->indkey.values[0] != column || RelationGetIndexPredicate(index) != NIL)
		return false;
	if (join_integer_bytes(index->rd_opcintype[0]) == 0)
		return false;
	return index_getprocid(index, 1, BRIN_PROCNUM_OPCINFO) == F_BRIN_MINMAX_OPCINFO;
}

/* Find a BRIN index of a column, while planning. */
Oid
joinfilter_find_ranges_index(Relation table, AttrNumber column)
{
	Oid			found = InvalidOid;
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *cell;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (!OidIsValid(found) && is_usable(index, column))
			found = lfirst_oid(cell);
		index_close(index, NoLock);
	}
	list_free(indexes);
	return found;
}

/* The value of a type that is stored as an integer. */
static Datum
datum_of(Oid type, int64 number)
{
	switch (join_integer_bytes(type))
	{
		case 2:
			return Int16GetDatum((int16) number);
		case 4:
			return Int32GetDatum((int32) number);
		default:
			return Int64GetDatum(number);
	}
}

/* Restrict a range of keys to the values of a type; returns false if none is left. */
static bool
restrict_to_type(JoinKeyRange *range, Oid type)
{
	int			bits = 8 * join_integer_bytes(type);
	int64		most = (int64) (~UINT64CONST(0) >> (65 - bits));

	range->low = Max(range->low, -most - 1);
	range->high = Min(range->high, most);
	return range->low <= range->high;
}

/*
 * Make the search condition that a column is at least, or at most, a number.  Returns false if the
 * index has another order than integers.
 */
static bool
make_search_key(ScanKey key, Relation index, StrategyNumber strategy, int64 number)
{
	Oid			type = index->rd_opcintype[0];
	Oid			operator = get_opfamily_member(index->rd_opfamily[0], type, type, strategy);

	if (!OidIsValid(operator) ||
		get_op_opfamily_strategy(operator, lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf) != strategy)
		return false;
	ScanKeyEntryInitialize(key, 0, 1, strategy, type, InvalidOid, get_opcode(operator), datum_of(type, number));
	return true;
}

/* Add the pages that a search found to those to be read. */
static void
add_found(TIDBitmap *found, HeapPages *pages)
{
	bf_foreach_block(found, block, heap_set_page(pages, block));
}

/* Search the index for a range of keys; returns false if that is not possible. */
static bool
search(Relation index, IndexScanDesc scan, JoinKeyRange range, HeapPages *pages)
{
	ScanKeyData keys[2];
	TIDBitmap  *found;

	if (!restrict_to_type(&range, index->rd_opcintype[0]))
		return true;
	if (!make_search_key(&keys[0], index, BTGreaterEqualStrategyNumber, range.low) ||
		!make_search_key(&keys[1], index, BTLessEqualStrategyNumber, range.high))
		return false;
	index_rescan(scan, keys, 2, NULL, 0);
	found = tbm_create((Size) work_mem * 1024, NULL);
	(void) index_getbitmap(scan, found);
	add_found(found, pages);
	tbm_free(found);
	return true;
}

/* Add the pages that are not all-visible to those to be read. */
static void
add_changed(Relation table, HeapPages *pages)
{
	Buffer		map = InvalidBuffer;

	for (BlockNumber block = 0; block < pages->n; block++)
	{
		if (block % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (heap_is_skipped(pages, block) && !VM_ALL_VISIBLE(table, block, &map))
			heap_set_page(pages, block);
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
}

/*
 * Can a summary lack rows that the snapshot sees?  The server leaves out rows that are dead to all
 * of its own snapshots, but not to those of a standby, which it does not know.  From 16 on it also
 * leaves out recently dead versions of rows.
 */
static bool
summary_may_lack_rows(Snapshot snapshot)
{
	return BF_BRIN_ALLOWS_HOT || snapshot->takenDuringRecovery;
}

/* May a snapshot use the index?  Those from before its creation may see rows that it lacks. */
static bool
is_old_enough(Relation index)
{
	return !index->rd_index->indcheckxmin ||
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin);
}

/* Search the index for all keys of a filter.  Returns false if all pages have to be read. */
static bool
search_all(Relation table, Relation index, JoinFilter *filter, Snapshot snapshot, HeapPages *pages)
{
	JoinKeyRange ranges[JOIN_MOST_RANGES];
	BlockNumber per_range = BrinGetPagesPerRange(index);
	int			n = join_filter_ranges(filter, ranges, (int) Min(Max(per_range / PAGES_PER_SEARCH, 1), JOIN_MOST_RANGES));
	IndexScanDesc scan;
	bool		searched = n >= 0;

	if (!searched)
		return false;
	scan = bf_index_beginscan_bitmap(index, snapshot, 2);
	for (int i = 0; i < n && searched; i++)
		searched = search(index, scan, ranges[i], pages);
	index_endscan(scan);
	if (searched && summary_may_lack_rows(snapshot))
		add_changed(table, pages);
	return searched;
}

/*
 * Find the pages of a table that can contain a key of a filter.  Those that another filter
 * has ruled out already stay so.
 */
void
joinfilter_find_pages(Relation table, Oid index_oid, AttrNumber column, JoinFilter *filter, Snapshot snapshot, HeapPages *pages)
{
	HeapPages	found = {.n = RelationGetNumberOfBlocks(table)};
	Relation	index;
	Size		words = (found.n + 63) / 64;

	if (found.n == 0)
		return;
	index = try_relation_open(index_oid, AccessShareLock);
	if (index == NULL)
		return;
	found.bits = MemoryContextAllocZero(CurrentMemoryContext, words * sizeof(uint64));
	if (is_usable(index, column) && is_old_enough(index) && search_all(table, index, filter, snapshot, &found))
	{
		if (pages->bits == NULL)
		{
			pages->n = found.n;
			pages->bits = found.bits;
			found.bits = NULL;
		}
		else
		{
			/* the table can have grown since the other index was searched */
			for (BlockNumber block = 0; block < pages->n; block++)
			{
				if (heap_is_skipped(&found, block))
					pages->bits[block / 64] &= ~(UINT64CONST(1) << block % 64);
			}
		}
	}
	if (found.bits != NULL)
		pfree(found.bits);
	relation_close(index, NoLock);
}
