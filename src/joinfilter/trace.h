/*
 * trace.h
 *		Finds the scans that a column of a join's outer side comes from.
 */
#ifndef BF_TRACE_H
#define BF_TRACE_H

#include "../compat.h"

#include "nodes/plannodes.h"

/* A scan that a traced column comes from, and the column there. */
typedef struct Source
{
	Plan	   *scan;
	AttrNumber	resno;			/* in the scan's target list */
	Var		   *column;
} Source;

/* The key to trace, and the result. */
typedef struct Trace
{
	PlannedStmt *stmt;
	Oid			operator;		/* the join's equality operator */
	Oid			collation;
	bool		same_rows;		/* does the inner side return the same rows
								 * whenever it is read? */
	double		rows;			/* estimated rows of the scans */
	List	   *sources;
} Trace;

extern bool joinfilter_node_is_volatile(PlannedStmt *stmt, Plan *plan);
extern bool joinfilter_tree_is_volatile(PlannedStmt *stmt, Plan *plan, bool ctes);
extern bool joinfilter_tree_depends_on_order(PlannedStmt *stmt, Plan *plan);
extern void joinfilter_trace(Trace *trace, Plan *plan, AttrNumber resno);

#endif							/* BF_TRACE_H */
