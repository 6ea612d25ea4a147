/*
 * trace.h
 *		From a join down to the scans that its outer rows come from.
 */
#ifndef BF_TRACE_H
#define BF_TRACE_H

#include "../compat.h"

#include "nodes/plannodes.h"

/* A scan where a column of a join's outer side comes from, and the column there. */
typedef struct Source
{
	Plan	   *scan;
	AttrNumber	number;			/* in the target list of the scan */
	Var		   *column;
} Source;

/* The way from a column of a join's outer side down to the scans where it comes from. */
typedef struct Trace
{
	PlannedStmt *stmt;
	Oid			operator;		/* what the join takes for equal */
	Oid			collation;
	double		rows;			/* the most that were grouped on the way */
	List	   *sources;
} Trace;

extern List *joinfilter_children(Plan *plan);
extern bool joinfilter_node_is_volatile(PlannedStmt *stmt, Plan *plan);
extern bool joinfilter_tree_is_volatile(PlannedStmt *stmt, Plan *plan);
extern void joinfilter_trace(Trace *way, Plan *plan, AttrNumber number);

#endif							/* BF_TRACE_H */
