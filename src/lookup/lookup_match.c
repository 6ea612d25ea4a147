/*
 * lookup_match.c
 *		Finds the filter that can be probed before an index is scanned.
 *
 * A filter is a bloomfilter index of the same table.  It fits a path if the path has a
 * condition "column = key" on the filter's column, with an operator of the filter's family
 * and with its collation.  The condition is one of those that the path passes to its index,
 * so it is not volatile, its evaluation before all other conditions is allowed, and no row
 * of the path fails it.  The planner does not list indexes that are not valid, that may lack
 * rows of old snapshots, or whose predicate does not follow from the query.
 */
#include "../compat.h"

#include "access/transam.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "../index/index.h"
#include "lookup.h"

/* Is this a bloomfilter index that can be used in this query? */
bool
lookup_is_filter(const IndexOptInfo *index)
{
	return index->amcostestimate == bfindex_costestimate && !index->hypothetical &&
		(index->indpred == NIL || index->predOK);
}

/* Does a table have a filter? */
bool
lookup_has_filter(const RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		if (lookup_is_filter(lfirst_node(IndexOptInfo, cell)))
			return true;
	}
	return false;
}

/* Return the table of the query that a partition or child belongs to; otherwise the table itself. */
Index
lookup_topmost_parent(PlannerInfo *root, Index relid)
{
	while (root->append_rel_array != NULL && root->append_rel_array[relid] != NULL &&
		   planner_rt_fetch(root->append_rel_array[relid]->parent_relid, root)->rtekind == RTE_RELATION)
		relid = root->append_rel_array[relid]->parent_relid;
	return relid;
}

/*
 * Does a row-level security policy or a security barrier apply to a table of the query?
 * EXPLAIN ANALYZE would show how often its index was scanned, and so which keys hidden rows
 * have.
 */
bool
lookup_is_secured(PlannerInfo *root, Index relid)
{
	if (planner_rt_fetch(lookup_topmost_parent(root, relid), root)->securityQuals != NIL)
		return true;
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->parse->rtable)
		{
			if (lfirst_node(RangeTblEntry, cell)->security_barrier)
				return true;
		}
	}
	return false;
}

/*
 * Does the key differ from one execution of a scan to the next?  It does if it has a column
 * of another table, or a parameter of an outer query.
 */
static bool
key_varies(PlannerInfo *root, Node *key)
{
	return contain_var_clause(key) || bfindex_key_of_outer_query(key, root);
}

/*
 * Can the filter rule out that this condition holds for any row?
 *
 * Operators that a user has added to a family may compare types that cannot be hashed.
 */
static bool
filter_fits(IndexOptInfo *filter, OpExpr *condition)
{
	return condition->opno < FirstNormalObjectId && op_strict(condition->opno) &&
		get_op_opfamily_strategy(condition->opno, filter->opfamily[0]) == INDEX_KEY_EQUAL &&
		(!OidIsValid(filter->indexcollations[0]) || filter->indexcollations[0] == condition->inputcollid) &&
		match_index_to_operand(linitial(condition->args), 0, filter);
}

/* Return the condition "column = key" that an index clause is, or NULL. */
static OpExpr *
condition_of_clause(PlannerInfo *root, IndexClause *clause)
{
	OpExpr	   *condition;

	if (clause->lossy || list_length(clause->indexquals) != 1)
		return NULL;
	condition = (OpExpr *) linitial_node(RestrictInfo, clause->indexquals)->clause;
	return IsA(condition, OpExpr) && list_length(condition->args) == 2 && key_varies(root, lsecond(condition->args)) ?
		condition : NULL;
}

/* Is a key evaluated without a function that could raise an error? */
static bool
key_is_plain(Node *key)
{
	while (IsA(key, RelabelType))
		key = (Node *) ((RelabelType *) key)->arg;
	return IsA(key, Var) || IsA(key, Param);
}

/* Does an expression contain a subquery?  It may be one that computes a parameter. */
static bool
has_subquery(Node *node, void *root)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		for (PlannerInfo *query = root; query != NULL; query = query->parent_root)
		{
			ListCell   *cell;

			foreach(cell, query->init_plans)
			{
				if (list_member_int(lfirst_node(SubPlan, cell)->setParam, ((Param *) node)->paramid))
					return true;
			}
		}
	}
	return expression_tree_walker(node, has_subquery, root);
}

/* Does a condition that a path passes to an index contain a subquery? */
static bool
index_has_subquery(PlannerInfo *root, Path *path)
{
	List	   *parts = IsA(path, BitmapAndPath) ? ((BitmapAndPath *) path)->bitmapquals :
	IsA(path, BitmapOrPath) ? ((BitmapOrPath *) path)->bitmapquals : NIL;
	ListCell   *cell;
	ListCell   *qual;

	foreach(cell, parts)
	{
		if (index_has_subquery(root, lfirst(cell)))
			return true;
	}
	if (!IsA(path, IndexPath))
		return false;
	foreach(cell, ((IndexPath *) path)->indexclauses)
	{
		foreach(qual, lfirst_node(IndexClause, cell)->indexquals)
		{
			if (has_subquery((Node *) lfirst_node(RestrictInfo, qual)->clause, root))
				return true;
		}
	}
	return has_subquery((Node *) ((IndexPath *) path)->indexorderbys, root);
}

/* Add the matches of an index path; after the first of several that are combined, only those with plain keys. */
static List *
add_matches(PlannerInfo *root, List *matches, IndexPath *path, int part)
{
	int			qual = 0;
	ListCell   *cell;
	ListCell   *filter_cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		OpExpr	   *condition = condition_of_clause(root, clause);
		int			place = qual;

		qual += list_length(clause->indexquals);
		if (condition == NULL || !(part == 0 || key_is_plain(lsecond(condition->args))))
			continue;
		foreach(filter_cell, path->indexinfo->rel->indexlist)
		{
			IndexOptInfo *filter = lfirst_node(IndexOptInfo, filter_cell);
			LookupMatch *match;

			if (!lookup_is_filter(filter) || !filter_fits(filter, condition))
				continue;
			match = palloc(sizeof(LookupMatch));
			*match = (LookupMatch) {filter, path->indexinfo->indexoid, part, place, condition};
			matches = lappend(matches, match);
			break;
		}
	}
	return matches;
}

/*
 * Return all matches of a path.  A path that scans a filter itself has none.  Of several
 * indexes that are combined, those after the first may not be scanned, and their keys not
 * evaluated, if the first finds no row; so their keys count only if they are just parameters.
 *
 * A scan evaluates the keys of all conditions of its indexes, even if no row exists.  If the
 * filter rules out all rows, it does not.  That makes a difference for a subquery, which can be
 * volatile.  (Conditions without columns are evaluated above the node that probes the filter.)
 */
List *
lookup_matches(PlannerInfo *root, Path *path)
{
	List	   *parts;
	List	   *matches = NIL;
	ListCell   *cell;

	if (path->parallel_aware || !lookup_has_filter(path->parent))
		return NIL;
	if (IsA(path, BitmapHeapPath))
		path = ((BitmapHeapPath *) path)->bitmapqual;
	if (index_has_subquery(root, path))
		return NIL;
	parts = IsA(path, BitmapAndPath) ? ((BitmapAndPath *) path)->bitmapquals : list_make1(path);
	foreach(cell, parts)
	{
		IndexPath  *part = lfirst(cell);

		if (!IsA(part, IndexPath))
			continue;
		if (lookup_is_filter(part->indexinfo))
			return NIL;
		matches = add_matches(root, matches, part, foreach_current_index(cell));
	}
	return matches;
}
