/*
 * page_ranges.h
 *		Finds the pages of a table that can contain a key of a filter.
 */
#ifndef BF_PAGE_RANGES_H
#define BF_PAGE_RANGES_H

#include "../compat.h"

#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "heap.h"
#include "joinfilter.h"

extern Oid	joinfilter_find_ranges_index(Relation table, AttrNumber column);
extern void joinfilter_find_pages(Relation table, Oid index_oid, AttrNumber column, JoinFilter *filter, Snapshot snapshot,
								  HeapPages *pages);

#endif							/* BF_PAGE_RANGES_H */
