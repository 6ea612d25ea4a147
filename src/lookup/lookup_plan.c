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

/*
 * Return the key of a condition of an index scan, or NULL.  The planner keeps the order of the conditions.
 * Another one of the same column and operator must not be taken instead: its key might raise an error.
 */
static Node *
key_of_match(Oid index, List *conditions, List *match)
{
	int			qual = (int) list_nth_oid(match, LOOKUP_QUAL);
	OpExpr	   *condition;

	if (index != list_nth_oid(match, LOOKUP_INDEX) || qual >= list_length(conditions))
		return NULL;
	condition = list_nth(conditions, qual);
	return IsA(condition, OpExpr) && condition->opno == list_nth_oid(match, LOOKUP_OPERATOR) ? lsecond(condition->args) : NULL;
}

/* Return the key that the scan of an index below a plan looks up, or NULL. */
static Node *
find_key(Plan *plan, List *match)
{
	int			part = (int) list_nth_oid(match, LOOKUP_PART);

	switch (nodeTag(plan))
	{
		case T_Result:			/* evaluates conditions without columns first */
		case T_BitmapHeapScan:
			return outerPlan(plan) == NULL ? NULL : find_key(outerPlan(plan), match);
		case T_BitmapAnd:
			return part >= list_length(((BitmapAnd *) plan)->bitmapplans) ? NULL :
				find_key(list_nth(((BitmapAnd *) plan)->bitmapplans, part), match);
		case T_IndexScan:
			return key_of_match(((IndexScan *) plan)->indexid, ((IndexScan *) plan)->indexqual, match);
		case T_IndexOnlyScan:
			return key_of_match(((IndexOnlyScan *) plan)->indexid, ((IndexOnlyScan *) plan)->indexqual, match);
		case T_BitmapIndexScan:
			return key_of_match(((BitmapIndexScan *) plan)->indexid, ((BitmapIndexScan *) plan)->indexqual, match);
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
