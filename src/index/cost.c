/*
 * cost.c
 *		What a scan of the index costs.
 *
 * A scan reads a page of the index, and then nothing of the table, or all of it.
 * What decides is the probability of a hit:
 *
 *	- If the key is known when the query is planned, the index is asked.  The answer
 *	  informs the cost alone: rows may come before the plan is executed.
 *	- If it is not, as in a generic plan, one question in ten is assumed to be a hit.
 *	  Who makes this index expects misses, or many partitions of which few have the
 *	  key; where hits are the rule, another index is chosen or should be made.
 *	- On the inner side of a nested loop, or in a subquery with a key of the outer
 *	  query, every question is assumed to be one, and to read the whole table anew.
 *	  A wrong estimate of the number of loops would cost a scan of the table for each.
 *
 * The server computes the cost of the table's pages itself, from the share of rows
 * that the index says it selects: for N rows of a table of T pages it expects
 * 2TN / (2T + N) pages to be read.  That is hT if N = 2hT / (2 - h), which is what we
 * say.  It is less than the rows on those pages; the time for the others is added
 * to the cost of the index.
 */
#include "../compat.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

#include "index.h"

#define HIT_OF_UNKNOWN_KEY		0.1

/*
 * May the planner ask the index?  The answer shows in EXPLAIN, so only if the user
 * could ask it directly, whoever the owner of a view may be, and not past a security
 * barrier.  The rights to a partition are those to the table that the query names.
 */
static bool
bfindex_may_ask(PlannerInfo *root, IndexOptInfo *info)
{
	Index		relid = info->rel->relid;
	AttrNumber	column = info->indexkeys[0];
	Oid			table;

	if (info->hypothetical || root->qual_security_level > 0)
		return false;
	while (root->append_rel_array != NULL && root->append_rel_array[relid] != NULL)
	{
		AppendRelInfo *child = root->append_rel_array[relid];

		if (planner_rt_fetch(child->parent_relid, root)->rtekind != RTE_RELATION)
			break;				/* UNION ALL: the table itself is named */
		column = column > 0 && column <= child->num_child_cols ? child->parent_colnos[column - 1] : 0;
		relid = child->parent_relid;
	}
	table = planner_rt_fetch(relid, root)->relid;
	return check_enable_rls(table, InvalidOid, true) != RLS_ENABLED &&
		(pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		 (column > 0 && pg_attribute_aclcheck(table, column, GetUserId(), ACL_SELECT) == ACLCHECK_OK));
}

/* May the table have a row that meets this condition on a constant? */
static bool
bfindex_ask(Relation index, Node *clause, const Const *key)
{
	Oid			type = key->consttype;

	if (key->constisnull)
		return false;
	if (IsA(clause, ScalarArrayOpExpr))
		return bfindex_contains_element(index, key->constvalue, NULL);
	return bfindex_contains_any(index, type, &key->constvalue, &key->constisnull, 1, NULL);
}

/* Does a key come from an outer query, which may ask for many? */
static bool
bfindex_key_of_outer_query(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		ListCell   *cell;

		foreach(cell, root->init_plans)
		{
			if (list_member_int(lfirst_node(SubPlan, cell)->setParam, ((Param *) node)->paramid))
				return false;
		}
		return true;
	}
	return expression_tree_walker(node, bfindex_key_of_outer_query, (void *) root);
}

/* The probability that a scan reads the table, the keys that it asks for, and whether it will do so repeatedly. */
static double
bfindex_hit_probability(PlannerInfo *root, IndexPath *path, double *keys, bool *repeated)
{
	Relation	index = NULL;
	bool		may_ask = bfindex_may_ask(root, path->indexinfo);
	double		hit = 1;
	ListCell   *cell;

	*keys = 0;
	foreach(cell, path->indexclauses)
	{
		IndexClause *index_clause = lfirst_node(IndexClause, cell);
		ListCell   *qual;

		foreach(qual, index_clause->indexquals)
		{
			Node	   *clause = (Node *) lfirst_node(RestrictInfo, qual)->clause;
			bool		is_array = IsA(clause, ScalarArrayOpExpr);
			Node	   *key = is_array ? lsecond(((ScalarArrayOpExpr *) clause)->args) : get_rightop(clause);
			double		elements = is_array ? bf_estimate_array_length(root, key) : 1;
			double		one;

			*keys += elements;
			*repeated |= bfindex_key_of_outer_query(key, root);
			if (IsA(key, Const) && may_ask)
			{
				if (index == NULL)
					index = index_open(path->indexinfo->indexoid, NoLock);
				one = bfindex_ask(index, clause, (Const *) key) ? 1 : BFINDEX_DEFAULT_FPP;
			}
			else
				one = 1 - pow(1 - HIT_OF_UNKNOWN_KEY, elements);
			hit = Min(hit, one);
		}
	}
	if (index != NULL)
		index_close(index, NoLock);
	return hit;
}

void
bfindex_costestimate(PlannerInfo *root, IndexPath *path, double loop_count,
					 Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
					 double *correlation, double *pages)
{
	RelOptInfo *rel = path->indexinfo->rel;
	double		table_pages = Max(rel->pages, 1);
	double		tuples = Max(rel->tuples, 1);
	bool		repeated = loop_count > 1 || path->path.param_info != NULL;
	double		keys;
	double		hit = bfindex_hit_probability(root, path, &keys, &repeated);
	double		selected;
	double		index_random_cost;
	double		table_page_cost;
	Cost		cpu_per_tuple = cpu_tuple_cost + Max(rel->baserestrictcost.per_tuple, cpu_operator_cost);

	if (repeated)
		hit = 1;
	get_tablespace_page_costs(path->indexinfo->reltablespace, &index_random_cost, NULL);
	get_tablespace_page_costs(rel->reltablespace, NULL, &table_page_cost);

	selected = Min(2 * hit * table_pages / (2 - hit), tuples);
	*selectivity = selected / tuples;
	*startup_cost = 0;
	*total_cost = keys * (index_random_cost + cpu_operator_cost) +
		(hit * tuples - Min(selected, hit * tuples)) * cpu_per_tuple + hit * table_pages * cpu_operator_cost;

	/* what the server takes for cached from one loop to the next is not */
	if (repeated)
		*total_cost += table_pages * table_page_cost;
	*correlation = 0;
	*pages = path->indexinfo->pages;
}
