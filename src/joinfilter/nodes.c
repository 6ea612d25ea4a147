/*
 * nodes.c
 *		The table of plan nodes: their children, their expressions, and whether a
 *		filter can be applied below them.
 *
 * It lists all nodes of PostgreSQL 15 to 19: see ExecInitNode() in execProcnode.c for
 * the kinds, planstate_tree_walker() in nodeFuncs.c for the children and plannodes.h for
 * the expressions.  A kind that is not listed could have children at unknown places, so
 * a plan that contains one gets no filter at all (see survey() in plan.c).
 */
#include "../compat.h"

#include "miscadmin.h"

#include "nodes.h"

static const NodeKind kinds[] = {
	/* scans of tables */
	{T_SeqScan, PATH_SCAN, .table_rows = true},
	{T_SampleScan, PATH_SCAN, .expressions = {offsetof(SampleScan, tablesample)}},
	{T_IndexScan, PATH_SCAN, .table_rows = true,
	.expressions = {offsetof(IndexScan, indexqual), offsetof(IndexScan, indexorderby)}},
	{T_IndexOnlyScan, PATH_SCAN,
	.expressions = {offsetof(IndexOnlyScan, indexqual), offsetof(IndexOnlyScan, indexorderby)}},
	{T_BitmapHeapScan, PATH_SCAN, .table_rows = true, .expressions = {offsetof(BitmapHeapScan, bitmapqualorig)}},
	{T_TidScan, PATH_SCAN, .expressions = {offsetof(TidScan, tidquals)}},
	{T_TidRangeScan, PATH_SCAN, .expressions = {offsetof(TidRangeScan, tidrangequals)}},
	{T_ForeignScan, PATH_SCAN, .expressions = {offsetof(ForeignScan, fdw_exprs)}},

	/* other scans */
	{T_SubqueryScan, PATH_SUBQUERY, .child = offsetof(SubqueryScan, subplan)},
	{T_FunctionScan, PATH_NONE, .expressions = {offsetof(FunctionScan, functions)}},
	{T_ValuesScan, PATH_NONE, .expressions = {offsetof(ValuesScan, values_lists)}},
	{T_TableFuncScan, PATH_NONE, .opaque = true},
	{T_CteScan, PATH_NONE},
	{T_NamedTuplestoreScan, PATH_NONE},
	{T_WorkTableScan, PATH_NONE},
	{T_BitmapIndexScan, PATH_NONE, .expressions = {offsetof(BitmapIndexScan, indexqual)}},
	{T_BitmapAnd, PATH_NONE, .children = offsetof(BitmapAnd, bitmapplans)},
	{T_BitmapOr, PATH_NONE, .children = offsetof(BitmapOr, bitmapplans)},
	{T_CustomScan, PATH_NONE, .opaque = true, .children = offsetof(CustomScan, custom_plans)},

	/* joins, and nodes that return the rows of their children */
	{T_NestLoop, PATH_JOIN, .expressions = {offsetof(Join, joinqual)}},
	{T_MergeJoin, PATH_JOIN, .expressions = {offsetof(Join, joinqual), offsetof(MergeJoin, mergeclauses)}},
	{T_HashJoin, PATH_JOIN, .expressions = {offsetof(Join, joinqual), offsetof(HashJoin, hashclauses)}},
	{T_Append, PATH_APPEND, .children = offsetof(Append, appendplans)},
	{T_MergeAppend, PATH_APPEND, .children = offsetof(MergeAppend, mergeplans)},
	{T_Hash, PATH_OUTER},
	{T_Sort, PATH_OUTER},
	{T_IncrementalSort, PATH_OUTER},
	{T_Material, PATH_OUTER},
	{T_Memoize, PATH_OUTER, .expressions = {offsetof(Memoize, param_exprs)}},
	{T_Result, PATH_OUTER, .expressions = {offsetof(Result, resconstantqual)}},
	{T_Gather, PATH_NONE},
	{T_GatherMerge, PATH_NONE},

	/* nodes whose result depends on several rows together */
	{T_Agg, PATH_GROUP},
	{T_Group, PATH_GROUP},
	{T_Unique, PATH_GROUP},
	{T_SetOp, PATH_NONE},
	{T_WindowAgg, PATH_NONE, .opaque = true},
	{T_Limit, PATH_NONE, .expressions = {offsetof(Limit, limitOffset), offsetof(Limit, limitCount)}},
	{T_RecursiveUnion, PATH_NONE},
	{T_ProjectSet, PATH_NONE},

	/* nodes that lock or change rows */
	{T_LockRows, PATH_NONE, .opaque = true},
	{T_ModifyTable, PATH_NONE, .opaque = true},

	{T_Invalid, PATH_NONE, .opaque = true}
};

/* Find the kind of a node; its tag is T_Invalid if the node is not in the table. */
const NodeKind *
joinfilter_node_kind(const Plan *plan)
{
	const NodeKind *kind = kinds;

	while (kind->tag != T_Invalid && kind->tag != nodeTag(plan))
		kind++;
	return kind;
}

/* Call a function for each plan directly below a plan; returns true as soon as the function does. */
bool
joinfilter_walk_children(Plan *plan, PlanWalker walker, void *context)
{
	const NodeKind *kind = joinfilter_node_kind(plan);
	ListCell   *cell;

	check_stack_depth();
	if ((plan->lefttree != NULL && walker(&plan->lefttree, context)) ||
		(plan->righttree != NULL && walker(&plan->righttree, context)) ||
		(kind->child != 0 && walker(&NODE_FIELD(Plan *, plan, kind->child), context)))
		return true;
	if (kind->children != 0)
	{
		foreach(cell, NODE_FIELD(List *, plan, kind->children))
		{
			if (walker((Plan **) &lfirst(cell), context))
				return true;
		}
	}
	return false;
}
