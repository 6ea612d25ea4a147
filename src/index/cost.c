/*
 * cost.c
 *		The cost of an index scan.
 *
 * A scan reads one page of the index per key and layer, and then either nothing of the
 * table or all of it.  So its cost depends on the probability that one of its keys is
 * present:
 *
 *	- If the keys are constants, the index is probed while the query is planned.  The
 *	  result is used for the estimate only, because rows can be inserted before the plan
 *	  is executed.  If probing all keys would cost as much as reading the table, the scan
 *	  cannot win, and no key is probed.
 *	- If they are not, as in a generic plan, one key in ten is assumed to be present.  This
 *	  index is created where most keys are absent, or where few of many partitions contain
 *	  a key.  But in a column of few distinct values, users know the values and look up
 *	  those that exist.
 *	- On the inner side of a nested loop, and in a subquery whose key comes from the outer
 *	  query, every key is assumed to be present, and to read the whole table again.  If
 *	  the number of loops were underestimated, each would cost a scan of the table.
 *	- In the queries of bloom_find, which has probed the index, the key is present.
 *
 * The server computes the cost of the table's pages from the selectivity that the index
 * returns: for N rows of a table of T pages it expects 2TN / (2T + N) pages to be read.
 * With probability h of reading T pages, that has to be hT, so N = 2hT / (2 - h).  This is
 * less than the number of rows on those pages; the CPU cost of the other rows is added to
 * the cost of the index.
 */
#include "../compat.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

#include "index.h"
#include "trust.h"

Oid			bfindex_probed_table = InvalidOid;

/* The probability that a key is present of which nothing is known. */
#define HIT_OF_UNKNOWN_KEY		0.1

/* A value that this share of the rows has is assumed to be present. */
#define SHARE_OF_KNOWN_KEY		0.01

/* Can the table contain a row that meets this condition on a constant? */
static bool
bfindex_probe(Relation index, Node *clause, const Const *key)
{
	bool		is_array = IsA(clause, ScalarArrayOpExpr);
	Oid			type = is_array ? get_base_element_type(key->consttype) : key->consttype;
	IndexKeyList keys = index_key_list(index, type, key->constvalue, key->constisnull, is_array);

	return bfindex_contains_any(index, &keys, NULL);
}

/* Return the probability that a key is present of which only the column is known. */
static double
bfindex_hit_of_unknown_key(PlannerInfo *root, Node *column)
{
	VariableStatData stats;
	bool		is_default;
	double		distinct;
	double		share;
	double		hit = HIT_OF_UNKNOWN_KEY;

	examine_variable(root, column, 0, &stats);
	distinct = get_variable_numdistinct(&stats, &is_default);
	if (!is_default && distinct > 0)
	{
		share = 1 / distinct;
		if (HeapTupleIsValid(stats.statsTuple))
			share *= 1 - ((Form_pg_statistic) GETSTRUCT(stats.statsTuple))->stanullfrac;
		hit = Max(hit, Min(share / SHARE_OF_KNOWN_KEY, 1));
	}
	ReleaseVariableStats(stats);
	return hit;
}

/* Does a key come from an outer query, which may scan once per row? */
bool
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

/* A condition of the scan. */
typedef struct BfindexCondition
{
	Node	   *clause;
	Node	   *column;
	Node	   *key;			/* or array of keys */
	double		keys;
} BfindexCondition;

/* Return the parts of a condition. */
static BfindexCondition
bfindex_condition(PlannerInfo *root, const RestrictInfo *qual)
{
	BfindexCondition condition = {(Node *) qual->clause};

	if (IsA(qual->clause, ScalarArrayOpExpr))
	{
		condition.column = linitial(((ScalarArrayOpExpr *) qual->clause)->args);
		condition.key = lsecond(((ScalarArrayOpExpr *) qual->clause)->args);
		condition.keys = bf_estimate_array_length(root, condition.key);
	}
	else
	{
		condition.column = get_leftop(qual->clause);
		condition.key = get_rightop(qual->clause);
		condition.keys = 1;
	}
	return condition;
}

/* The properties of a scan that determine its cost. */
typedef struct BfindexScanCost
{
	double		hit;			/* probability that it reads the table */
	Cost		probes;			/* cost of reading the index */
	bool		repeated;		/* it may run many times, with other keys */
} BfindexScanCost;

/* Examine the conditions of a scan; `most` is the cost of reading the table. */
static BfindexScanCost
bfindex_scan_cost(PlannerInfo *root, IndexPath *path, Cost per_probe, Cost most)
{
	IndexOptInfo *info = path->indexinfo;
	Relation	index = info->hypothetical ? NULL : index_open(info->indexoid, NoLock);
	bool		may_probe = index != NULL && trust_planner_may_probe(root, info->rel->relid, index);
	bool		probed = planner_rt_fetch(info->rel->relid, root)->relid == bfindex_probed_table;
	BfindexScanCost cost = {1};
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		ListCell   *qual;

		foreach(qual, lfirst_node(IndexClause, cell)->indexquals)
		{
			BfindexCondition condition = bfindex_condition(root, lfirst_node(RestrictInfo, qual));
			double		hit;

			cost.probes += condition.keys * per_probe;
			cost.repeated |= bfindex_key_of_outer_query(condition.key, root);
			if (cost.probes >= most || probed)
				hit = 1;
			else if (IsA(condition.key, Const) && may_probe)
				hit = bfindex_probe(index, condition.clause, (Const *) condition.key) ? 1 : BFINDEX_DEFAULT_FPP;
			else
				hit = 1 - pow(1 - bfindex_hit_of_unknown_key(root, condition.column), condition.keys);
			cost.hit = Min(cost.hit, hit);
		}
	}
	if (index != NULL)
		index_close(index, NoLock);
	return cost;
}

/* Estimate the cost of a scan, as amcostestimate does. */
void
bfindex_costestimate(PlannerInfo *root, IndexPath *path, double loop_count,
					 Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
					 double *correlation, double *pages)
{
	RelOptInfo *rel = path->indexinfo->rel;
	double		table_pages = Max(rel->pages, 1);
	double		tuples = Max(rel->tuples, 1);
	double		hit;
	double		selected;
	double		index_random_cost;
	double		table_page_cost;
	Cost		cpu_per_tuple = cpu_tuple_cost + Max(rel->baserestrictcost.per_tuple, cpu_operator_cost);
	BfindexScanCost scan;

	get_tablespace_page_costs(path->indexinfo->reltablespace, &index_random_cost, NULL);
	get_tablespace_page_costs(rel->reltablespace, NULL, &table_page_cost);
	scan = bfindex_scan_cost(root, path, index_random_cost + cpu_operator_cost,
							 table_pages * table_page_cost + tuples * cpu_per_tuple);
	scan.repeated |= loop_count > 1 || path->path.param_info != NULL;
	hit = scan.repeated ? 1 : scan.hit;

	selected = Min(2 * hit * table_pages / (2 - hit), tuples);
	*selectivity = selected / tuples;
	*startup_cost = 0;
	*total_cost = scan.probes +
		(hit * tuples - Min(selected, hit * tuples)) * cpu_per_tuple + hit * table_pages * cpu_operator_cost;

	/* the server assumes that pages stay cached from one loop to the next */
	if (scan.repeated)
		*total_cost += table_pages * table_page_cost;
	*correlation = 0;
	*pages = path->indexinfo->pages;
}
