/*
 * trace.c
 *		Finds the scans that a column of a join's outer side comes from, as far as a
 *		filter may be applied there: see the rules at the head of plan.c.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "nodes.h"
#include "trace.h"

/* ----------------------------------------------------------------
 * Volatile expressions
 * ----------------------------------------------------------------
 */

/* A search for something volatile. */
typedef struct VolatileSearch
{
	PlannedStmt *stmt;
	bool		ctes;			/* also in common table expressions? */
	bool		order;			/* also for what depends on the order of rows? */
	Bitmapset  *subplans;		/* that have been searched */
} VolatileSearch;

static bool tree_is_volatile(VolatileSearch *search, Plan *plan);

/* Search a subplan of the statement, once: several nodes and expressions can refer to it. */
static bool
subplan_is_volatile(VolatileSearch *search, int plan_id)
{
	if (bms_is_member(plan_id, search->subplans))
		return false;
	search->subplans = bms_add_member(search->subplans, plan_id);
	return tree_is_volatile(search, list_nth(search->stmt->subplans, plan_id - 1));
}

static bool
is_volatile_function(Oid function)
{
	return OidIsValid(function) && func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* Does an aggregate call volatile functions?  Its own entry in pg_proc always says immutable. */
static bool
is_volatile_aggregate(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Form_pg_aggregate form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	result = is_volatile_function(form->aggtransfn) || is_volatile_function(form->aggfinalfn) ||
		is_volatile_function(form->aggcombinefn) || is_volatile_function(form->aggserialfn) ||
		is_volatile_function(form->aggdeserialfn);
	ReleaseSysCache(tuple);
	return result;
}

/* A search for the subquery that computes a parameter before it is needed. */
typedef struct InitPlanSearch
{
	int			param;
	int			plan_id;		/* 0 until it is found */
} InitPlanSearch;

static bool
find_init_plan(Plan **link, void *context)
{
	InitPlanSearch *search = context;
	ListCell   *cell;

	if (*link == NULL)
		return false;
	foreach(cell, (*link)->initPlan)
	{
		SubPlan    *subplan = lfirst_node(SubPlan, cell);

		if (list_member_int(subplan->setParam, search->param))
		{
			search->plan_id = subplan->plan_id;
			return true;
		}
	}
	return joinfilter_walk_children(*link, find_init_plan, context);
}

/*
 * Is a parameter computed by a subquery that evaluates something volatile?  Without rows that
 * need the parameter, the subquery is not executed.
 */
static bool
is_volatile_param(VolatileSearch *search, const Param *param)
{
	InitPlanSearch init_plan = {param->paramid};
	ListCell   *cell;

	if (param->paramkind != PARAM_EXEC)
		return false;
	find_init_plan(&search->stmt->planTree, &init_plan);
	foreach(cell, search->stmt->subplans)
	{
		if (init_plan.plan_id == 0)
			find_init_plan((Plan **) &lfirst(cell), &init_plan);
	}
	return init_plan.plan_id != 0 && subplan_is_volatile(search, init_plan.plan_id);
}

/* Does an expression contain a volatile aggregate, or a subquery that evaluates something volatile? */
static bool
has_volatile_part(Node *node, void *search)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && is_volatile_aggregate(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, Param) && is_volatile_param(search, (Param *) node))
		return true;
	if (IsA(node, SubPlan) && subplan_is_volatile(search, ((SubPlan *) node)->plan_id))
		return true;
	return expression_tree_walker(node, has_volatile_part, search);
}

static bool
is_volatile(VolatileSearch *search, void *expression)
{
	return contain_volatile_functions(expression) || has_volatile_part(expression, search);
}

static bool
node_is_volatile(VolatileSearch *search, Plan *plan)
{
	const NodeKind *kind = joinfilter_node_kind(plan);

	if (kind->opaque || is_volatile(search, plan->targetlist) || is_volatile(search, plan->qual))
		return true;
	for (int i = 0; i < lengthof(kind->expressions) && kind->expressions[i] != 0; i++)
	{
		if (is_volatile(search, NODE_FIELD(Node *, plan, kind->expressions[i])))
			return true;
	}
	return false;
}

static bool
subtree_is_volatile(Plan **link, void *search)
{
	return tree_is_volatile(search, *link);
}

/* Sums of these types are exact in any order. */
static bool
is_exact_number(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID || type == NUMERICOID;
}

/*
 * Can an aggregate depend on the order of its rows, or raise an error for some of the rows of a group that
 * it does not raise for all?  A sum of floating-point numbers can.
 */
static bool
aggregate_is_fragile(Node *node, void *context)
{
	static const char *const sums[] = {"sum", "avg"};
	static const char *const others[] = {"count", "min", "max", "bool_and", "bool_or", "every"};

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *aggregate = (Aggref *) node;
		const char *name = aggregate->aggfnoid < FirstGenbkiObjectId ? get_func_name(aggregate->aggfnoid) : NULL;
		bool		known = false;

		for (int i = 0; i < lengthof(sums) && name != NULL; i++)
			known |= strcmp(name, sums[i]) == 0 && is_exact_number(linitial_oid(aggregate->aggargtypes));
		for (int i = 0; i < lengthof(others) && name != NULL; i++)
			known |= strcmp(name, others[i]) == 0;
		if (!known)
			return true;
	}
	return expression_tree_walker(node, aggregate_is_fragile, context);
}

/*
 * Can the rows that a node returns, other than their order, depend on the order of its input?  That order
 * can differ from one execution to the next, because of parallel workers and synchronized scans.
 */
static bool
depends_on_order(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
		case T_ForeignScan:		/* may contain a limit */
			return true;
		case T_Unique:			/* DISTINCT ON */
			return ((const Unique *) plan)->numCols < list_length(plan->targetlist);
		case T_Agg:
			return aggregate_is_fragile((Node *) plan->targetlist, NULL) || aggregate_is_fragile((Node *) plan->qual, NULL);
		default:
			return false;
	}
}

/* A sample without a seed differs from process to process. */
static bool
tree_is_volatile(VolatileSearch *search, Plan *plan)
{
	return plan != NULL &&
		(node_is_volatile(search, plan) || (search->order && depends_on_order(plan)) ||
		 (IsA(plan, SampleScan) && ((SampleScan *) plan)->tablesample->repeatable == NULL) ||
		 (search->ctes && IsA(plan, CteScan) && subplan_is_volatile(search, ((CteScan *) plan)->ctePlanId)) ||
		 joinfilter_walk_children(plan, subtree_is_volatile, search));
}

/* Does a node itself evaluate anything volatile?  What is not known is taken to be volatile. */
bool
joinfilter_node_is_volatile(PlannedStmt *stmt, Plan *plan)
{
	VolatileSearch search = {stmt, true};

	return node_is_volatile(&search, plan);
}

/*
 * Does a plan evaluate anything volatile?
 *
 * A common table expression returns the same rows whenever it is read, even if it is volatile.
 * But it is executed only as far as it is read, which matters if `ctes` is true.
 */
bool
joinfilter_tree_is_volatile(PlannedStmt *stmt, Plan *plan, bool ctes)
{
	VolatileSearch search = {stmt, ctes};

	return tree_is_volatile(&search, plan);
}

/* Can the rows of a plan differ from one execution to the next, with the same snapshot and parameters? */
bool
joinfilter_tree_depends_on_order(PlannedStmt *stmt, Plan *plan)
{
	VolatileSearch search = {stmt, .order = true};

	return tree_is_volatile(&search, plan);
}

/* ----------------------------------------------------------------
 * From a join to the scans that its outer rows come from
 * ----------------------------------------------------------------
 */

/*
 * Continue at the side of a join that the column comes from, if removing a row there
 * removes only result rows that contain it.
 */
static void
trace_join(Trace *trace, Join *join, Var *column)
{
	bool		outer = column->varno == OUTER_VAR;

	if (join->jointype != JOIN_INNER &&
		!(outer && (join->jointype == JOIN_LEFT || join->jointype == JOIN_SEMI || join->jointype == JOIN_ANTI)))
		return;

	/* the other side may be read less often, or not at all */
	if (!joinfilter_tree_is_volatile(trace->stmt, outer ? innerPlan(join) : outerPlan(join), true))
		joinfilter_trace(trace, outer ? outerPlan(join) : innerPlan(join), column->varattno);
}

/*
 * Is a column among the first n grouping columns, and grouped by the join's equality?
 * Otherwise a group could contain keys that are different to the join, and a filter
 * would remove only some of its rows.
 */
static bool
is_grouped_by(const Trace *trace, AttrNumber column, int n, const AttrNumber *columns, const Oid *operators, const Oid *collations)
{
	for (int i = 0; i < n; i++)
	{
		if (columns[i] == column)
			return collations[i] == trace->collation && equality_ops_are_compatible(operators[i], trace->operator);
	}
	return false;
}

/* Is a column in every grouping set of an aggregation?  A set of n columns consists of the first n. */
static bool
is_in_all_sets(const Trace *trace, AttrNumber column, const Agg *agg)
{
	int			n = agg->numCols;
	ListCell   *cell;

	foreach(cell, agg->groupingSets)
		n = Min(n, list_length(lfirst(cell)));
	if (!is_grouped_by(trace, column, n, agg->grpColIdx, agg->grpOperators, agg->grpCollations))
		return false;
	foreach(cell, agg->chain)
	{
		if (!is_in_all_sets(trace, column, lfirst_node(Agg, cell)))
			return false;
	}
	return true;
}

/*
 * Continue below a node that groups rows by the column.
 *
 * A filter can remove some rows of a group and keep others: it may not be complete when the
 * first ones are read, be switched off before the last, or not reach all children of an
 * Append.  The join discards such a group like a complete one, but an expression over
 * an aggregate could raise an error for it before, such as a division by count(*) - 1.
 * So nothing that the node returns may depend on more than one row of a group.  Partial
 * aggregates are allowed, because no expression reads them, unless computing them from some
 * of the rows could raise an error itself.
 */
static void
trace_group(Trace *trace, Plan *plan, Var *column)
{
	AttrNumber	number = column->varattno;
	bool		grouped;

	if (column->varno != OUTER_VAR)
		return;
	if (IsA(plan, Agg))
		grouped = ((DO_AGGSPLIT_SKIPFINAL(((Agg *) plan)->aggsplit) && !aggregate_is_fragile((Node *) plan->targetlist, NULL)) ||
				   !(contain_agg_clause((Node *) plan->targetlist) || contain_agg_clause((Node *) plan->qual))) &&
			is_in_all_sets(trace, number, (Agg *) plan);
	else if (IsA(plan, Unique))
	{
		const Unique *unique = (Unique *) plan;

		grouped = unique->numCols == list_length(plan->targetlist) &&
			is_grouped_by(trace, number, unique->numCols, unique->uniqColIdx, unique->uniqOperators, unique->uniqCollations);
	}
	else
	{
		const Group *group = castNode(Group, plan);

		grouped = is_grouped_by(trace, number, group->numCols, group->grpColIdx, group->grpOperators, group->grpCollations);
	}
	if (!grouped)
		return;
	joinfilter_trace(trace, outerPlan(plan), number);
}

/*
 * Does a node keep rows, so that it can return them again without reading its child again?  They would
 * lack rows that an older filter has discarded.
 */
static bool
keeps_rows(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Hash:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Memoize:
			return true;
		case T_Agg:
			return ((const Agg *) plan)->aggstrategy == AGG_HASHED || ((const Agg *) plan)->aggstrategy == AGG_MIXED;
		default:
			return false;
	}
}

/* Add the scans that a column of a plan comes from to the trace, as far as a filter may be applied there. */
void
joinfilter_trace(Trace *trace, Plan *plan, AttrNumber resno)
{
	const NodeKind *kind = joinfilter_node_kind(plan);
	TargetEntry *entry = get_tle_by_resno(plan->targetlist, resno);
	Var		   *column = entry != NULL ? (Var *) entry->expr : NULL;
	ListCell   *cell;

	check_stack_depth();

	/*
	 * An Append calls an asynchronous scan directly, so no node can be put
	 * between them.
	 */
	if (column == NULL || !IsA(column, Var) || plan->async_capable || joinfilter_node_is_volatile(trace->stmt, plan) ||
		(!trace->same_rows && keeps_rows(plan)))
		return;
	switch (kind->path)
	{
		case PATH_NONE:
			break;
		case PATH_SCAN:
			if (((Scan *) plan)->scanrelid > 0 && column->varattno != 0)
			{
				Source	   *source = palloc(sizeof(Source));

				*source = (Source) {plan, resno, column};
				trace->sources = lappend(trace->sources, source);
				trace->rows += plan->plan_rows;
			}
			break;
		case PATH_OUTER:

			/*
			 * Processes of a Parallel Hash share one hash table, but each may
			 * have a filter of its own: the table would depend on which
			 * process read a row.
			 */
			if (column->varno == OUTER_VAR && outerPlan(plan) != NULL && !(IsA(plan, Hash) && plan->parallel_aware))
				joinfilter_trace(trace, outerPlan(plan), column->varattno);
			break;
		case PATH_SUBQUERY:
			if (column->varattno > 0)
				joinfilter_trace(trace, NODE_FIELD(Plan *, plan, kind->child), column->varattno);
			break;
		case PATH_APPEND:
			foreach(cell, NODE_FIELD(List *, plan, kind->children))
				joinfilter_trace(trace, lfirst(cell), resno);
			break;
		case PATH_JOIN:
			trace_join(trace, (Join *) plan, column);
			break;
		case PATH_GROUP:
			trace_group(trace, plan, column);
			break;
	}
}
