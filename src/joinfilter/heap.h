/*
 * heap.h
 *		Reads a heap one page at a time.
 */
#ifndef BF_JOINFILTER_HEAP_H
#define BF_JOINFILTER_HEAP_H

#include "../compat.h"

#include "access/heapam.h"

extern bool heap_is_table(Oid relation);
extern bool heap_next_page(HeapScanDesc scan);

#endif							/* BF_JOINFILTER_HEAP_H */
