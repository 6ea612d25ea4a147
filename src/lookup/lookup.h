/*
 * lookup.h
 *		Lookups that probe a bloomfilter index first, without a change to the SQL.
 *
 * The inner side of a nested loop, or a correlated subquery, looks up one key after the other
 * in an index of a table.  If the table also has a bloomfilter index of the same column, a
 * custom scan above the index scan probes that index first.  If the key is absent, the scan
 * below it is not run.
 *
 * lookup_match.c finds the filter for an index path, lookup_sample.c estimates which share of
 * the keys exists, lookup_path.c adds paths, lookup_plan.c makes plans of them, and
 * lookup_node.c executes those.
 */
#ifndef BF_LOOKUP_H
#define BF_LOOKUP_H

#include "../compat.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* The settings bloomfilter.lookup_filter_min_rows and .lookup_filter_max_share. */
extern int	lookup_min_rows;
extern double lookup_max_share;

/* ----------------------------------------------------------------
 * Matching
 * ----------------------------------------------------------------
 */

/* A condition of an index path, and a filter of the column that it compares with a key. */
typedef struct LookupMatch
{
	IndexOptInfo *filter;
	Oid			index;			/* that the path scans */
	int			part;			/* of several indexes that are combined; from
								 * 0 */
	int			qual;			/* the condition's place among those of the
								 * index; from 0 */
	OpExpr	   *condition;		/* column = key */
} LookupMatch;

extern bool lookup_has_filter(const RelOptInfo *rel);
extern bool lookup_is_filter(const IndexOptInfo *index);
extern bool lookup_is_secured(PlannerInfo *root, Index relid);
extern Index lookup_topmost_parent(PlannerInfo *root, Index relid);
extern List *lookup_matches(PlannerInfo *root, Path *path);

/* ----------------------------------------------------------------
 * Estimates
 * ----------------------------------------------------------------
 */

typedef enum LookupEstimate
{
	LOOKUP_UNKNOWN,				/* nothing is known of the keys */
	LOOKUP_FEW,					/* there are too few to bother */
	LOOKUP_SAMPLED				/* the share is known */
} LookupEstimate;

/* What is known of the keys that are looked up. */
typedef struct LookupShare
{
	LookupEstimate estimate;
	double		share;			/* of the keys that a table has */
} LookupShare;

extern LookupShare lookup_share(PlannerInfo *root, RelOptInfo *rel, const LookupMatch *match);

/* ----------------------------------------------------------------
 * Paths, plans and nodes
 * ----------------------------------------------------------------
 */

extern void lookup_init(void);

/*
 * In a path, custom_private consists of two lists.  The first has five numbers for each child:
 * the filter, the index that the child scans, part and qual of the match, and the operator.  The
 * second has the columns that the children return, as columns of the path's table: the target
 * of the path itself may be changed later to one that is computed from them.
 *
 * In a plan, custom_private has two OIDs for each child: the filter and the type of the key.
 * The filter of a child that is always run is InvalidOid.
 */
#define LOOKUP_FILTER		0
#define LOOKUP_INDEX		1
#define LOOKUP_PART			2
#define LOOKUP_QUAL			3
#define LOOKUP_OPERATOR		4
#define LOOKUP_KEY_TYPE		1

extern const CustomPathMethods lookup_path_methods;
extern const CustomScanMethods lookup_scan_methods;

#endif							/* BF_LOOKUP_H */
