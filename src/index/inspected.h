/*
 * inspected.h
 *		An index that a function looks into: opening it, and reading its rows.
 */
#ifndef BF_INDEX_INSPECTED_H
#define BF_INDEX_INSPECTED_H

#include "../compat.h"

#include "access/tableam.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* An index and its table, both locked, that the current user may read. */
typedef struct Inspected
{
	Relation	heap;
	Relation	index;
} Inspected;

extern Inspected inspected_open(Oid oid, const char *method);
extern void inspected_close(Inspected inspected);
extern void inspected_scan(Inspected inspected, Snapshot snapshot, IndexBuildCallback callback, void *state);

#endif							/* BF_INDEX_INSPECTED_H */
