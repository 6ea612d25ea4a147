/*
 * lookup_plan.c
 *		Makes the plan of a path that probes filters.
 *
 * The key is copied from the condition in the plan of the child, where the planner has replaced
 * columns of other tables by parameters.
 */
#include "../compat.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "lookup.h"

/* Return the key that the column of an index is compared with, or NULL. */
static Node *
key_of_conditions(List *conditions, AttrNumber column, Oid operator)
{
	ListCell   *cell;

	foreach(cell, conditions)
	{
		OpExpr	   *condition = lfirst(cell);
		Var		   *left;

		if (!IsA(condition, OpExpr) || condition->opno != operator)
			continue;
		left = linitial(condition->args);
		if (IsA(left, Var) && left->varno == INDEX_VAR && left->varattno == column)
			return lsecond(condition->args);
	}
	return NULL;
}

/* Return the key that the scan of an index below a plan looks up, or NULL. */
static Node *
find_key(Plan *plan, List *match)
{
	Oid			index = list_nth_oid(match, LOOKUP_INDEX);
	AttrNumber	column = (AttrNumber) list_nth_oid(match, LOOKUP_COLUMN);
	Oid			operator = list_nth_oid(match, LOOKUP_OPERATOR);
	Node	   *key = NULL;
	ListCell   *cell;

	switch (nodeTag(plan))
	{
		case T_Result:			/* evaluates conditions without columns first */
		case T_BitmapHeapScan:
			return outerPlan(plan) == NULL ? NULL : find_key(outerPlan(plan), match);
		case T_BitmapAnd:
			foreach(cell, ((BitmapAnd *) plan)->bitmapplans)
			{
				if (key == NULL)
					key = find_key(lfirst(cell), match);
			}
			return key;
		case T_IndexScan:
			if (((IndexScan *) plan)->indexid == index)
				key = key_of_conditions(((IndexScan *) plan)->indexqual, column, operator);
			return key;
		case T_IndexOnlyScan:
			if (((IndexOnlyScan *) plan)->indexid == index)
				key = key_of_conditions(((IndexOnlyScan *) plan)->indexqual, column, operator);
			return key;
		case T_BitmapIndexScan:
			if (((BitmapIndexScan *) plan)->indexid == index)
				key = key_of_conditions(((BitmapIndexScan *) plan)->indexqual, column, operator);
			return key;
		default:
			return NULL;
	}
}

/*
 * Return the target list of the rows that the children return, with the columns of this table.
 *
 * A value without columns, such as one of an outer query, is hidden: the node computes it
 * itself.  Otherwise a key that contains the same expression would be computed from a row
 * that has not been read yet.
 */
static List *
returned_columns(List *children, List *columns)
{
	List	   *result = NIL;
	ListCell   *cell;

	if (list_length(children) == 1)
	{
		result = bf_copy_object(((Plan *) linitial(children))->targetlist);
		foreach(cell, result)
		{
			TargetEntry *entry = lfirst_node(TargetEntry, cell);
			Node	   *value = (Node *) entry->expr;

			if (!contain_var_clause(value) && !contain_volatile_functions(value))
				entry->expr = (Expr *) makeNullConst(exprType(value), exprTypmod(value), exprCollation(value));
		}
		return result;
	}
	foreach(cell, columns)
		result = lappend(result, makeTargetEntry(bf_copy_object(lfirst(cell)), (AttrNumber) (list_length(result) + 1), NULL, false));
	return result;
}

/* Make the plan of a path. */
static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);
	Node	   *key = NULL;
	ListCell   *child;
	ListCell   *match;

	forboth(child, children, match, linitial_node(List, path->custom_private))
	{
		Oid			filter = list_nth_oid(lfirst(match), LOOKUP_FILTER);
		Oid			column_type;
		Oid			key_type = InvalidOid;

		if (OidIsValid(filter))
		{
			Node	   *key_of_child = find_key(lfirst(child), lfirst(match));

			if (key == NULL)
				key = key_of_child;
			if (key_of_child != NULL && equal(key, key_of_child))
				op_input_types(list_nth_oid(lfirst(match), LOOKUP_OPERATOR), &column_type, &key_type);
			else
				filter = InvalidOid;
		}
		scan->custom_private = lappend(scan->custom_private, list_make2_oid(filter, key_type));
	}

	scan->custom_scan_tlist = returned_columns(children, lsecond(path->custom_private));
	scan->scan.plan.targetlist = tlist;
	scan->custom_plans = children;
	if (key != NULL)
		scan->custom_exprs = list_make1(bf_copy_object(key));
	scan->flags = path->flags;
	scan->methods = &lookup_scan_methods;
	return &scan->scan.plan;
}

const CustomPathMethods lookup_path_methods = {
	.CustomName = "Lookup Filter",
	.PlanCustomPath = plan_path
};
