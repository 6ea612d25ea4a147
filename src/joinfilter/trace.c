/*
 * trace.c
 *		From a join down to the scans that its outer rows come from, and what may be on
 *		the way: see the rules at the head of plan.c.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "trace.h"

/* ----------------------------------------------------------------
 * Looking at plans
 * ----------------------------------------------------------------
 */

/* All plans directly below a plan. */
List *
joinfilter_children(Plan *plan)
{
	List	   *children = NIL;

	if (plan->lefttree != NULL)
		children = lappend(children, plan->lefttree);
	if (plan->righttree != NULL)
		children = lappend(children, plan->righttree);
	switch (nodeTag(plan))
	{
		case T_Append:
			return list_concat(children, ((Append *) plan)->appendplans);
		case T_MergeAppend:
			return list_concat(children, ((MergeAppend *) plan)->mergeplans);
		case T_SubqueryScan:
			return lappend(children, ((SubqueryScan *) plan)->subplan);
		case T_BitmapAnd:
			return list_concat(children, ((BitmapAnd *) plan)->bitmapplans);
		case T_BitmapOr:
			return list_concat(children, ((BitmapOr *) plan)->bitmapplans);
		case T_CustomScan:
			return list_concat(children, ((CustomScan *) plan)->custom_plans);
		default:
			return children;
	}
}

/* What a kind of node evaluates besides its target list and its quals; *known is false for kinds not listed. */
static List *
more_expressions(Plan *plan, bool *known)
{
	*known = true;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SubqueryScan:
		case T_CteScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
		case T_Append:
		case T_MergeAppend:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Hash:
		case T_Agg:
		case T_Group:
		case T_Unique:
		case T_SetOp:
		case T_Gather:
		case T_GatherMerge:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_RecursiveUnion:
		case T_ProjectSet:
			return NIL;
		case T_IndexScan:
			return list_concat_copy(((IndexScan *) plan)->indexqual, ((IndexScan *) plan)->indexorderby);
		case T_IndexOnlyScan:
			return list_concat_copy(((IndexOnlyScan *) plan)->indexqual, ((IndexOnlyScan *) plan)->indexorderby);
		case T_BitmapIndexScan:
			return ((BitmapIndexScan *) plan)->indexqual;
		case T_BitmapHeapScan:
			return ((BitmapHeapScan *) plan)->bitmapqualorig;
		case T_SampleScan:
			return list_make1(((SampleScan *) plan)->tablesample);
		case T_TidScan:
			return ((TidScan *) plan)->tidquals;
		case T_TidRangeScan:
			return ((TidRangeScan *) plan)->tidrangequals;
		case T_FunctionScan:
			return ((FunctionScan *) plan)->functions;
		case T_ValuesScan:
			return ((ValuesScan *) plan)->values_lists;
		case T_ForeignScan:
			return ((ForeignScan *) plan)->fdw_exprs;
		case T_Result:
			return (List *) ((Result *) plan)->resconstantqual;
		case T_NestLoop:
			return ((Join *) plan)->joinqual;
		case T_MergeJoin:
			return list_concat_copy(((Join *) plan)->joinqual, ((MergeJoin *) plan)->mergeclauses);
		case T_HashJoin:
			return list_concat_copy(((Join *) plan)->joinqual, ((HashJoin *) plan)->hashclauses);
		case T_Memoize:
			return ((Memoize *) plan)->param_exprs;
		case T_Limit:
			return list_make2(((Limit *) plan)->limitOffset, ((Limit *) plan)->limitCount);
		default:
			*known = false;
			return NIL;
	}
}

static bool
is_volatile_function(Oid function)
{
	return OidIsValid(function) && func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* Does an aggregate consist of volatile functions?  It is itself always called immutable. */
static bool
has_volatile_aggregate(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(((Aggref *) node)->aggfnoid));
		bool		result = true;

		if (HeapTupleIsValid(tuple))
		{
			Form_pg_aggregate form = (Form_pg_aggregate) GETSTRUCT(tuple);

			result = is_volatile_function(form->aggtransfn) || is_volatile_function(form->aggfinalfn) ||
				is_volatile_function(form->aggcombinefn) || is_volatile_function(form->aggserialfn) ||
				is_volatile_function(form->aggdeserialfn);
			ReleaseSysCache(tuple);
		}
		if (result)
			return true;
	}
	return expression_tree_walker(node, has_volatile_aggregate, context);
}

/* Does an expression have a subquery with something volatile in it? */
static bool
has_volatile_subplan(Node *node, PlannedStmt *stmt)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) &&
		joinfilter_tree_is_volatile(stmt, list_nth(stmt->subplans, ((SubPlan *) node)->plan_id - 1)))
		return true;
	return expression_tree_walker(node, has_volatile_subplan, (void *) stmt);
}

/* Does a node evaluate anything volatile, or is it of a kind that we do not know? */
bool
joinfilter_node_is_volatile(PlannedStmt *stmt, Plan *plan)
{
	bool		known;
	List	   *more = more_expressions(plan, &known);

	return !known ||
		(IsA(plan, Agg) && (has_volatile_aggregate((Node *) plan->targetlist, NULL) ||
							has_volatile_aggregate((Node *) plan->qual, NULL))) ||
		contain_volatile_functions((Node *) plan->targetlist) || has_volatile_subplan((Node *) plan->targetlist, stmt) ||
		contain_volatile_functions((Node *) plan->qual) || has_volatile_subplan((Node *) plan->qual, stmt) ||
		contain_volatile_functions((Node *) more) || has_volatile_subplan((Node *) more, stmt);
}

bool
joinfilter_tree_is_volatile(PlannedStmt *stmt, Plan *plan)
{
	ListCell   *cell;

	check_stack_depth();
	if (plan == NULL)
		return false;
	if (joinfilter_node_is_volatile(stmt, plan))
		return true;

	/* each process draws a sample of its own */
	if (IsA(plan, SampleScan) && ((SampleScan *) plan)->tablesample->repeatable == NULL)
		return true;
	foreach(cell, joinfilter_children(plan))
	{
		if (joinfilter_tree_is_volatile(stmt, lfirst(cell)))
			return true;
	}
	return false;
}

/* ----------------------------------------------------------------
 * From a join to the scans that its outer rows come from
 * ----------------------------------------------------------------
 */

/* The column of a plan, if it is one. */
static Var *
column_of(Plan *plan, AttrNumber number)
{
	TargetEntry *entry = get_tle_by_resno(plan->targetlist, number);

	return entry != NULL && IsA(entry->expr, Var) ? (Var *) entry->expr : NULL;
}

/* Go on below a join, where a missing row makes no other difference than at the join. */
static void
trace_join(Trace *way, Join *join, Var *column)
{
	bool		outer = column->varno == OUTER_VAR;

	if (outer ? join->jointype != JOIN_INNER && join->jointype != JOIN_LEFT &&
		join->jointype != JOIN_SEMI && join->jointype != JOIN_ANTI : join->jointype != JOIN_INNER)
		return;

	/* the other side may be read less often, or not at all */
	if (!joinfilter_tree_is_volatile(way->stmt, outer ? innerPlan(join) : outerPlan(join)))
		joinfilter_trace(way, outer ? outerPlan(join) : innerPlan(join), column->varattno);
}

/*
 * Are rows grouped by a column, one of the first n of these?  Rows of one group
 * must be equal to the join, too: otherwise a filter could take some and leave others.
 */
static bool
is_grouped_by(const Trace *way, AttrNumber column, int n, const AttrNumber *columns, const Oid *operators, const Oid *collations)
{
	for (int i = 0; i < n; i++)
	{
		if (columns[i] == column)
			return collations[i] == way->collation && equality_ops_are_compatible(operators[i], way->operator);
	}
	return false;
}

/* Is a column in every grouping set of an aggregation?  A set consists of the first columns, as many as it has members. */
static bool
is_in_all_sets(const Trace *way, AttrNumber column, const Agg *agg)
{
	int			n = agg->numCols;
	ListCell   *cell;

	foreach(cell, agg->groupingSets)
		n = Min(n, list_length(lfirst(cell)));
	if (!is_grouped_by(way, column, n, agg->grpColIdx, agg->grpOperators, agg->grpCollations))
		return false;
	foreach(cell, agg->chain)
	{
		if (!is_in_all_sets(way, column, lfirst_node(Agg, cell)))
			return false;
	}
	return true;
}

/*
 * Is all that a group shows in each of its rows?  A filter may take some rows of a
 * group and leave others: it may not be there yet for the first ones, be switched
 * off before the last, or not reach all children of an Append.  The join drops such
 * a group like a whole one, but what is computed before could fail on it: a division
 * by count(*) - 1, say.  Partial results of aggregates nobody looks into.
 */
static bool
groups_show_rows(Plan *plan)
{
	if (IsA(plan, Agg))
		return DO_AGGSPLIT_SKIPFINAL(((Agg *) plan)->aggsplit) ||
			!(contain_agg_clause((Node *) plan->targetlist) || contain_agg_clause((Node *) plan->qual));
	if (IsA(plan, Unique))
		return ((Unique *) plan)->numCols == list_length(plan->targetlist);
	return true;
}

/* Go on below a node that makes groups of rows: all rows of a group have the column, or none. */
static void
trace_groups(Trace *way, Plan *plan, Var *column)
{
	AttrNumber	number = column->varattno;
	bool		grouped = false;

	if (column->varno != OUTER_VAR || !groups_show_rows(plan))
		return;
	if (IsA(plan, Agg))
		grouped = is_in_all_sets(way, number, (Agg *) plan);
	else if (IsA(plan, Group))
	{
		const Group *group = (Group *) plan;

		grouped = is_grouped_by(way, number, group->numCols, group->grpColIdx, group->grpOperators, group->grpCollations);
	}
	else if (IsA(plan, Unique))
	{
		const Unique *unique = (Unique *) plan;

		grouped = is_grouped_by(way, number, unique->numCols, unique->uniqColIdx, unique->uniqOperators, unique->uniqCollations);
	}
	if (!grouped)
		return;
	way->rows = Max(way->rows, outerPlan(plan)->plan_rows);
	joinfilter_trace(way, outerPlan(plan), number);
}

/* Add the scans that this column of a plan comes from, as far as they can be reached. */
void
joinfilter_trace(Trace *way, Plan *plan, AttrNumber number)
{
	Var		   *column = column_of(plan, number);
	ListCell   *cell;

	check_stack_depth();
	if (column == NULL || joinfilter_node_is_volatile(way->stmt, plan))
		return;

	/*
	 * an Append talks to an asynchronous scan directly: there is no room
	 * between them
	 */
	if (plan->async_capable)
		return;
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
			if (((Scan *) plan)->scanrelid > 0 && column->varattno != 0)
			{
				Source	   *source = palloc(sizeof(Source));

				*source = (Source) {plan, number, column};
				way->sources = lappend(way->sources, source);
			}
			break;
		case T_SubqueryScan:
			if (column->varattno > 0)
				joinfilter_trace(way, ((SubqueryScan *) plan)->subplan, column->varattno);
			break;
		case T_Append:
			foreach(cell, ((Append *) plan)->appendplans)
				joinfilter_trace(way, lfirst(cell), number);
			break;
		case T_MergeAppend:
			foreach(cell, ((MergeAppend *) plan)->mergeplans)
				joinfilter_trace(way, lfirst(cell), number);
			break;
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			trace_join(way, (Join *) plan, column);
			break;
		case T_Agg:
		case T_Group:
		case T_Unique:
			trace_groups(way, plan, column);
			break;
		case T_Hash:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Memoize:
		case T_Result:

			/*
			 * keys that differ between processes must not make a table that
			 * they share
			 */
			if (column->varno == OUTER_VAR && outerPlan(plan) != NULL && !(IsA(plan, Hash) && plan->parallel_aware))
				joinfilter_trace(way, outerPlan(plan), column->varattno);
			break;
		default:
			break;
	}
}
