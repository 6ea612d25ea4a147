/*
 * inspected.h
 *		An index that a function inspects: opening it, and reading its rows.
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

/* The condition of an index, of either access method.  A negative number is not known. */
typedef struct IndexHealth
{
	int			layers;
	double		keys;
	double		fill;			/* share of the bits or slots that are used */
	double		target_fpp;
	double		fpp;
	double		stale;			/* share of the keys that belong to no row */
	const char *advice;			/* a sentence, or NULL */
} IndexHealth;

#define INDEX_ADVICE_INVALID	"not valid: if no session is building it, REINDEX or drop it"

extern Inspected inspected_open(Oid oid, const char *method);
extern void inspected_close(Inspected inspected);
extern void inspected_scan(Inspected inspected, Snapshot snapshot, IndexBuildCallback callback, void *state);

#endif							/* BF_INDEX_INSPECTED_H */
