/*
 * heap.h
 *		Reads a heap one page at a time, and leaves out pages.
 */
#ifndef BF_JOINFILTER_HEAP_H
#define BF_JOINFILTER_HEAP_H

#include "../compat.h"

#include "access/heapam.h"

/* The pages to be read. */
typedef struct HeapPages
{
	HeapScanDesc scan;
	BlockNumber n;				/* pages after these are read */
	uint64	   *bits;			/* a bit for each of them, set if the page is
								 * to be read; NULL: all are read */
	uint64		skipped;		/* pages that were left out */
} HeapPages;

static inline bool
heap_is_skipped(const HeapPages *pages, BlockNumber block)
{
	return block < pages->n && !(pages->bits[block / 64] >> block % 64 & 1);
}

static inline void
heap_set_page(HeapPages *pages, BlockNumber block)
{
	if (block < pages->n)
		pages->bits[block / 64] |= UINT64CONST(1) << block % 64;
}

extern bool heap_is_table(Oid relation);
extern void heap_leave_out(HeapScanDesc scan, HeapPages *pages);
extern uint64 heap_skip_rest(HeapScanDesc scan);
extern bool heap_next_page(HeapScanDesc scan, HeapPages *pages);

#endif							/* BF_JOINFILTER_HEAP_H */
