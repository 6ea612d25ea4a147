/*
 * heap.c
 *		Reads a heap one page at a time, and leaves out pages.
 *
 * heap_next_page() does what heap_getnextslot() does between two pages: it finds the
 * next page, also in synchronized and parallel scans, and determines which of its rows
 * are visible.  The heap's own code for this changed in 17 from reading single blocks to
 * a read stream, and the two versions share no line.  They are kept side by side here
 * instead of in compat.h.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/syscache.h"

#include "heap.h"

/* Is this a table that the server's own heap stores? */
bool
heap_is_table(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_class) GETSTRUCT(tuple))->relam == HEAP_TABLE_AM_OID;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * The block of a scan after a given one; InvalidBlockNumber after the last.  Until the scan is
 * initialized, this is its first block.
 */
static BlockNumber
following_block(HeapScanDesc scan, BlockNumber block)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	if (shared != NULL)
	{
		if (!scan->rs_inited)
			bf_parallelscan_init(scan, shared);
		return table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata, shared);
	}
	if (scan->rs_nblocks == 0)
		return InvalidBlockNumber;
	if (!scan->rs_inited)
		return scan->rs_startblock;
	if (++block >= scan->rs_nblocks)
		block = 0;

	/* other scans of the table may start at the same block */
	if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rs_base.rs_rd, block);
	return block == scan->rs_startblock ? InvalidBlockNumber : block;
}

/* The same, without the pages that are left out. */
static BlockNumber
next_block(HeapScanDesc scan, HeapPages *pages, BlockNumber block)
{
	for (;;)
	{
		block = following_block(scan, block);
		scan->rs_inited = true;
		if (block == InvalidBlockNumber || pages == NULL || pages->bits == NULL || !heap_is_skipped(pages, block))
			return block;
		pages->skipped++;
	}
}

/* Leave out all further pages.  Returns their number. */
uint64
heap_skip_rest(HeapScanDesc scan)
{
	uint64		n = 0;
	BlockNumber block = scan->BF_LAST_BLOCK;

	while ((block = following_block(scan, block)) != InvalidBlockNumber)
	{
		scan->rs_inited = true;
		n++;
	}
	return n;
}

#if PG_VERSION_NUM >= 170000

/* Called by the read stream.  It runs ahead of the scan: pages can be found to be left out when they are already read. */
static BlockNumber
next_block_of_stream(ReadStream * stream, void *context, void *unused)
{
	HeapPages  *pages = context;
	HeapScanDesc scan = pages->scan;

	scan->rs_prefetch_block = next_block(scan, pages, scan->rs_prefetch_block);
	return scan->rs_prefetch_block;
}

/* Let a scan leave out pages, before its first page is read. */
void
heap_leave_out(HeapScanDesc scan, HeapPages *pages)
{
	pages->scan = scan;
	read_stream_end(scan->rs_read_stream);
	scan->rs_read_stream = read_stream_begin_relation(BF_HEAP_STREAM_FLAGS, scan->rs_strategy, scan->rs_base.rs_rd, MAIN_FORKNUM,
													  next_block_of_stream, pages, 0);
}

/* Read the next page and find its visible rows; returns false after the last page. */
static bool
fetch_page(HeapScanDesc scan, HeapPages *pages)
{
	if (BufferIsValid(scan->rs_cbuf))
		ReleaseBuffer(scan->rs_cbuf);
	scan->rs_dir = ForwardScanDirection;
	scan->rs_cbuf = read_stream_next_buffer(scan->rs_read_stream, NULL);
	if (!BufferIsValid(scan->rs_cbuf))
	{
		scan->rs_cblock = InvalidBlockNumber;
		scan->rs_prefetch_block = InvalidBlockNumber;
		scan->rs_inited = false;
		return false;
	}
	scan->rs_cblock = BufferGetBlockNumber(scan->rs_cbuf);
	heap_prepare_pagescan((TableScanDesc) scan);
	scan->rs_inited = true;
	return true;
}

#else

/* Nothing to prepare up to 16. */
void
heap_leave_out(HeapScanDesc scan, HeapPages *pages)
{
	pages->scan = scan;
}

/* The same up to 16. */
static bool
fetch_page(HeapScanDesc scan, HeapPages *pages)
{
	BlockNumber block = next_block(scan, pages, scan->rs_cblock);

	if (block == InvalidBlockNumber)
	{
		if (BufferIsValid(scan->rs_cbuf))
			ReleaseBuffer(scan->rs_cbuf);
		scan->rs_cbuf = InvalidBuffer;
		scan->rs_cblock = InvalidBlockNumber;
		scan->rs_inited = false;
		return false;
	}
	heapgetpage((TableScanDesc) scan, block);
	return true;
}
#endif

/*
 * Advance a scan to the next page.  Its visible rows are listed in rs_vistuples, and it
 * stays pinned until the next call.  Returns false after the last page; there must be no
 * further call then.  The pages to leave out may be NULL; otherwise heap_leave_out() was called.
 */
bool
heap_next_page(HeapScanDesc scan, HeapPages *pages)
{
	CHECK_FOR_INTERRUPTS();
	if (!fetch_page(scan, pages))
		return false;
	bf_count_tuples_returned(scan->rs_base.rs_rd, scan->rs_ntuples);
	return true;
}
