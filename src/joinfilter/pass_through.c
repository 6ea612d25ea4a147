/*
 * pass_through.c
 *		What custom scans share that return the rows of their child unchanged, and how
 *		EXPLAIN shows their keys.
 */
#include "../compat.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"

#include "joinfilter.h"

/* Make a custom scan above a plan, with the same columns in its target list. */
CustomScan *
joinfilter_pass_through(Plan *child, int plan_node_id, const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	ListCell   *cell;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->parallel_safe = child->parallel_safe;
	plan->plan_node_id = plan_node_id;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	plan->lefttree = child;
	foreach(cell, child->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry((Expr *) makeVarFromTargetEntry(OUTER_VAR, entry),
														  entry->resno, entry->resname, entry->resjunk));
		plan->targetlist = lappend(plan->targetlist,
								   makeTargetEntry((Expr *) makeVarFromTargetEntry(INDEX_VAR, entry),
												   entry->resno, entry->resname, entry->resjunk));
	}
	scan->methods = methods;
	return scan;
}

/* Start such a node and its child.  It returns the slots of the child. */
void
joinfilter_begin_pass_through(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *child = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);

	outerPlanState(css) = child;
	css->ss.ps.resultops = ExecGetResultSlotOps(child, &css->ss.ps.resultopsfixed);
	css->ss.ps.resultopsset = true;
}

/* Print a filter and its keys as EXPLAIN shows them. */
char *
joinfilter_deparse(CustomScanState *css, int paramid, List *keys, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, css->ss.ps.plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	StringInfoData text;
	ListCell   *key;

	initStringInfo(&text);
	foreach(key, keys)
		appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", deparse_expression(lfirst(key), context, prefix, false));
	return psprintf("$%d (%s)", paramid, text.data);
}
