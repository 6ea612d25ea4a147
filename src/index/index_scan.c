/*
 * index_scan.c
 *		Index scans, which return a bitmap of all pages of the table, or of none.
 *
 * The index contains no row addresses: it can only rule out that the table contains a
 * key.  A bitmap scan can use that: the bitmap is empty, or it has every page as lossy,
 * and the executor reads them and rechecks the condition.
 */
#include "../compat.h"

#include "access/relscan.h"
#include "access/table.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "index.h"

/* Begin a scan; `opaque` is the memory context for hashing its keys. */
IndexScanDesc
bfindex_beginscan(Relation index, int keys, int orderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, keys, orderbys);

	scan->opaque = AllocSetContextCreate(CurrentMemoryContext, "bloomfilter index scan", ALLOCSET_SMALL_SIZES);
	return scan;
}

/* Set the keys of a scan. */
void
bfindex_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

/* End a scan. */
void
bfindex_endscan(IndexScanDesc scan)
{
	MemoryContextDelete(scan->opaque);
}

/* Can the table contain a row that meets this condition? */
static bool
bfindex_may_match(IndexScanDesc scan, ScanKey key)
{
	IndexKeyList keys = index_key_list(scan->indexRelation, key->sk_subtype, key->sk_argument,
									   (key->sk_flags & SK_ISNULL) != 0, (key->sk_flags & SK_SEARCHARRAY) != 0);

	return bfindex_contains_any(scan->indexRelation, &keys, scan->xs_snapshot);
}

/* Add all pages of the table to the bitmap if it can contain a row that meets all conditions. */
int64
bfindex_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	MemoryContext caller = MemoryContextSwitchTo(scan->opaque);
	Relation	heap;
	BlockNumber blocks;
	bool		may_match = true;

	pgstat_count_index_scan(scan->indexRelation);
	bf_count_index_search(scan);
	for (int i = 0; i < scan->numberOfKeys && may_match; i++)
		may_match = bfindex_may_match(scan, &scan->keyData[i]);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(scan->opaque);
	if (!may_match)
		return 0;

	/*
	 * The size of the table is read after the index was probed.  Rows beyond
	 * it were inserted later, and the snapshot of the scan cannot see them.
	 */
	heap = table_open(IndexGetRelation(RelationGetRelid(scan->indexRelation), false), AccessShareLock);
	blocks = RelationGetNumberOfBlocks(heap);
	table_close(heap, AccessShareLock);
	for (BlockNumber block = 0; block < blocks; block++)
	{
		if (block % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		tbm_add_page(bitmap, block);
	}

	/* as in BRIN, the number of rows is not known */
	return (int64) blocks * 10;
}
