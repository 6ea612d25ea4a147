/*
 * plan.c
 *		Adds filters to the hash joins of a finished plan.
 *
 * The shape of the plan stays as the planner chose it.  Each filter adds a node that
 * collects keys under a Hash node (collect_node.c).  The scans that the outer keys come
 * from are replaced by scans that test filters (scan_node.c), or get a node above them that
 * does (probe_node.c).  A join gets a filter only if all of these rules hold:
 *
 *	- The join discards outer rows without a match: INNER, SEMI, RIGHT and, in later
 *	  majors, RIGHT ANTI and RIGHT SEMI.
 *	- The inner side is not volatile, and does not depend on a parameter from outside: after
 *	  a rescan with another value, the first outer rows would be tested against the old
 *	  filter.  Three kinds of parameters are harmless: the one by which a Gather signals a
 *	  rescan, the one by which EvalPlanQual does, and results of uncorrelated subqueries.
 *	  If its rows can depend on the order in which tables are read (LIMIT), a rescan can
 *	  return others.  Then no node between the join and the scan may keep rows for a rescan,
 *	  since these were tested against the old filter.
 *	- The outer key is a plain column of a table.  Testing it cannot raise an error that the
 *	  query would not have raised.  For the same reason the inner key is a plain column, too,
 *	  or the first key of the join: the server does not evaluate the keys after a NULL.
 *	- Between the join and the scan, a missing row only causes rows to be missing that the
 *	  join would discard.  That holds for outer sides of INNER, LEFT, SEMI and ANTI joins,
 *	  for inner sides of INNER joins, for nodes that return the rows of their children one by
 *	  one, and for nodes that group rows by the key in all grouping sets, with the join's
 *	  equality, and return nothing that depends on more than one row of a group.
 *	- No expression between the join and the scan is volatile, because it would be evaluated
 *	  less often.
 *
 * Statements that lock or change rows evaluate the join again for new versions of a row
 * (EvalPlanQual, see execMain.c).  The copy of the plan that does so starts with the parameters of
 * the statement, and so with filters of the old versions.  No node of that copy collects
 * keys, tests a filter or leaves out pages: see joinfilter_is_recheck().
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/syscache.h"

#include "heap.h"
#include "joinfilter.h"
#include "nodes.h"
#include "page_ranges.h"
#include "trace.h"

static bool joinfilter_enabled = false;
static int	joinfilter_min_rows = 10000;
static double joinfilter_max_share = 0.6;
static bool joinfilter_batches = true;

static planner_hook_type previous_planner_hook;

/* A plan to which filters are added. */
typedef struct Edit
{
	PlannedStmt *stmt;
	bool		batches;		/* may scans test all rows of a page before
								 * their own quals? */
	int			next_node_id;
	List	   *probed;			/* scans at which filters are tested */
	Bitmapset  *harmless;		/* parameters that an inner side may depend on */
} Edit;

/* A scan at which filters are tested. */
typedef struct Probed
{
	Plan	   *scan;
	List	   *probes;
} Probed;

/* Call a function for the main plan and all subplans of the statement, until it returns true. */
static bool
walk_statement(Edit *edit, PlanWalker walker)
{
	ListCell   *cell;

	if (walker(&edit->stmt->planTree, edit))
		return true;
	foreach(cell, edit->stmt->subplans)
	{
		if (lfirst(cell) != NULL && walker((Plan **) &lfirst(cell), edit))
			return true;
	}
	return false;
}

/* Find the highest node id and the harmless parameters; returns true if a node is of an unknown kind. */
static bool
survey(Plan **link, void *context)
{
	Edit	   *edit = context;
	Plan	   *plan = *link;
	int			harmless = -1;
	ListCell   *cell;

	if (joinfilter_node_kind(plan)->tag == T_Invalid)
		return true;
	edit->next_node_id = Max(edit->next_node_id, plan->plan_node_id + 1);
	if (IsA(plan, Gather))
		harmless = ((Gather *) plan)->rescan_param;
	else if (IsA(plan, GatherMerge))
		harmless = ((GatherMerge *) plan)->rescan_param;
	else if (IsA(plan, ModifyTable))
		harmless = ((ModifyTable *) plan)->epqParam;
	else if (IsA(plan, LockRows))
		harmless = ((LockRows *) plan)->epqParam;
	if (harmless >= 0)
		edit->harmless = bms_add_member(edit->harmless, harmless);
	foreach(cell, plan->initPlan)
	{
		SubPlan    *subplan = lfirst_node(SubPlan, cell);
		Plan	   *target = list_nth(edit->stmt->subplans, subplan->plan_id - 1);
		ListCell   *param;

		if (target == NULL || !bms_is_empty(target->extParam))
			continue;
		foreach(param, subplan->setParam)
			edit->harmless = bms_add_member(edit->harmless, lfirst_int(param));
	}
	return joinfilter_walk_children(plan, survey, edit);
}

/* ----------------------------------------------------------------
 * Which joins get a filter
 * ----------------------------------------------------------------
 */

/* One pair of keys of a join. */
typedef struct Pair
{
	Expr	   *outer;			/* as in the join: a column, perhaps
								 * relabelled */
	Expr	   *inner;
	JoinKey		outer_key;
	JoinKey		inner_key;
	List	   *sources;
	double		rows;			/* estimated rows of the scans or of the outer
								 * side, whichever are more */
	bool		done;
} Pair;

static bool
same_scans(List *a, List *b)
{
	ListCell   *cell_a;
	ListCell   *cell_b;

	if (list_length(a) != list_length(b))
		return false;
	forboth(cell_a, a, cell_b, b)
	{
		if (((Source *) lfirst(cell_a))->scan != ((Source *) lfirst(cell_b))->scan)
			return false;
	}
	return true;
}

/* The filters that are tested at a scan. */
static Probed *
probed_scan(Edit *edit, Plan *scan)
{
	ListCell   *cell;

	foreach(cell, edit->probed)
	{
		if (((Probed *) lfirst(cell))->scan == scan)
			return lfirst(cell);
	}
	return NULL;
}

/*
 * Find what allows a scan to skip a partition or pages: the bounds of the partition, or a
 * BRIN index.  This requires that the key is a single integer.
 */
static void
find_bounds(Edit *edit, const Plan *scan, JoinProbe *probe, const JoinKey *key)
{
	const RangeTblEntry *rte = rt_fetch(((const Scan *) scan)->scanrelid, edit->stmt->rtable);
	AttrNumber	column = linitial_node(Var, probe->columns)->varattno;
	Relation	table;

	if (list_length(probe->columns) > 1 || key->integer_bytes == 0 || rte->rtekind != RTE_RELATION ||
		!joinfilter_node_kind(scan)->table_rows || column <= 0)
		return;
	table = table_open(rte->relid, NoLock);
	probe->bounds = joinfilter_find_bounds(table, column);
	if (IsA(scan, SeqScan))
		probe->ranges_index = joinfilter_find_ranges_index(table, column);
	table_close(table, NoLock);
}

/* Test the filter of this parameter at every scan that the keys come from. */
static void
add_probes(Edit *edit, List *pairs, int paramid)
{
	Pair	   *first = linitial(pairs);

	for (int i = 0; i < list_length(first->sources); i++)
	{
		Plan	   *scan = ((Source *) list_nth(first->sources, i))->scan;
		JoinProbe  *probe = palloc0(sizeof(JoinProbe));
		Probed	   *probed = probed_scan(edit, scan);
		ListCell   *cell;

		probe->paramid = paramid;
		foreach(cell, pairs)
		{
			Source	   *source = list_nth(((Pair *) lfirst(cell))->sources, i);

			probe->columns = lappend(probe->columns, source->column);
			probe->resnos = lappend_int(probe->resnos, source->resno);
		}
		find_bounds(edit, scan, probe, &first->outer_key);
		if (probed == NULL)
		{
			probed = palloc0(sizeof(Probed));
			probed->scan = scan;
			edit->probed = lappend(edit->probed, probed);
		}
		probed->probes = lappend(probed->probes, probe);
	}
}

/* Add one filter on all keys that come from the same scans. */
static void
place_filter(Edit *edit, Hash *hash, List *pairs)
{
	int			n = list_length(pairs);
	JoinKey    *inner = palloc(sizeof(JoinKey) * n);
	JoinKey    *outer = palloc(sizeof(JoinKey) * n);
	List	   *inner_keys = NIL;
	int			paramid = list_length(edit->stmt->paramExecTypes);

	for (int i = 0; i < n; i++)
	{
		Pair	   *pair = list_nth(pairs, i);

		inner[i] = pair->inner_key;
		outer[i] = pair->outer_key;
		inner_keys = lappend(inner_keys, pair->inner);
	}
	edit->stmt->paramExecTypes = lappend_oid(edit->stmt->paramExecTypes, INTERNALOID);
	add_probes(edit, pairs, paramid);
	outerPlan(hash) = (Plan *) joinfilter_collect(hash, edit->next_node_id++, paramid, inner_keys, inner, outer);
}

/* Does a join of this type discard outer rows without a match? */
static bool
drops_outer_rows(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT || bf_is_right_semi_or_anti(type);
}

/* The column of a node's child, or of a join's outer side, that a key is, or NULL.  Relabelling does not change a value. */
static Var *
key_column(Expr *expression)
{
	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	return IsA(expression, Var) && ((Var *) expression)->varno == OUTER_VAR ? (Var *) expression : NULL;
}

/* The keys of a join that can be tested at scans. */
static List *
traceable_pairs(Edit *edit, HashJoin *join, Hash *hash)
{
	List	   *pairs = NIL;
	bool		same_rows = !joinfilter_tree_depends_on_order(edit->stmt, &hash->plan);

	for (int i = 0; i < list_length(join->hashkeys); i++)
	{
		Pair	   *pair = palloc0(sizeof(Pair));
		Trace		trace = {edit->stmt, list_nth_oid(join->hashoperators, i), list_nth_oid(join->hashcollations, i), same_rows};
		Var		   *column;

		pair->outer = list_nth(join->hashkeys, i);
		pair->inner = list_nth(hash->hashkeys, i);
		column = key_column(pair->outer);
		if (column == NULL || (i > 0 && key_column(pair->inner) == NULL) || contain_volatile_functions((Node *) pair->inner) ||
			!join_key_for(trace.operator, trace.collation, exprType((Node *) pair->outer), exprType((Node *) pair->inner),
						  &pair->outer_key, &pair->inner_key))
			continue;
		joinfilter_trace(&trace, outerPlan(join), column->varattno);
		pair->sources = trace.sources;
		pair->rows = Max(outerPlan(join)->plan_rows, trace.rows);
		if (pair->sources != NIL)
			pairs = lappend(pairs, pair);
	}
	return pairs;
}

/* Add filters to a join, one for each set of scans that its keys come from. */
static void
consider_join(Edit *edit, HashJoin *join)
{
	Hash	   *hash = castNode(Hash, innerPlan(join));
	List	   *pairs;
	ListCell   *cell;

	if (!drops_outer_rows(join->join.jointype) ||
		(joinfilter_max_share < 1 && join->join.plan.plan_rows > outerPlan(join)->plan_rows * joinfilter_max_share) ||
		!bms_is_subset(hash->plan.extParam, edit->harmless) ||
		joinfilter_node_is_volatile(edit->stmt, &join->join.plan) || joinfilter_tree_is_volatile(edit->stmt, &hash->plan, false))
		return;
	pairs = traceable_pairs(edit, join, hash);
	foreach(cell, pairs)
	{
		Pair	   *pair = lfirst(cell);
		List	   *together = NIL;
		ListCell   *other_cell;

		if (pair->done || pair->rows < joinfilter_min_rows)
			continue;
		foreach(other_cell, pairs)
		{
			Pair	   *other = lfirst(other_cell);

			if (!other->done && same_scans(pair->sources, other->sources))
			{
				other->done = true;
				together = lappend(together, other);
			}
		}
		place_filter(edit, hash, together);
	}
}

/* Consider all joins of a plan, from the top down: a filter goes below the joins that are considered later. */
static bool
consider_joins(Plan **link, void *edit)
{
	if (IsA(*link, HashJoin))
		consider_join(edit, (HashJoin *) *link);
	return joinfilter_walk_children(*link, consider_joins, edit);
}

/* ----------------------------------------------------------------
 * How scans test filters
 * ----------------------------------------------------------------
 */

/* Can a scan test all rows of a page at once?  It must scan a heap, and the keys must be columns stored in its rows. */
static bool
can_batch(Edit *edit, const Probed *probed)
{
	ListCell   *cell;
	ListCell   *column;

	if (!edit->batches || !IsA(probed->scan, SeqScan) ||
		!heap_is_table(rt_fetch(((Scan *) probed->scan)->scanrelid, edit->stmt->rtable)->relid))
		return false;
	foreach(cell, probed->probes)
	{
		foreach(column, ((JoinProbe *) lfirst(cell))->columns)
		{
			if (lfirst_node(Var, column)->varattno <= 0)
				return false;
		}
	}
	return true;
}

/* Put nodes that test filters in place of, or above, the scans of a plan. */
static bool
add_probing_nodes(Plan **link, void *context)
{
	Edit	   *edit = context;
	Probed	   *probed = probed_scan(edit, *link);

	(void) joinfilter_walk_children(*link, add_probing_nodes, edit);
	if (probed != NULL && can_batch(edit, probed))
		*link = (Plan *) joinfilter_scan((SeqScan *) *link, probed->probes);
	else if (probed != NULL)
		*link = (Plan *) joinfilter_probe(*link, edit->next_node_id++, probed->probes);
	return false;
}

/* Can the planner replace a function in FROM by the query in its body, which may have security conditions? */
static bool
may_be_inlined(RangeTblEntry *rte)
{
	ListCell   *cell;

	foreach(cell, rte->functions)
	{
		Node	   *call = lfirst_node(RangeTblFunction, cell)->funcexpr;
		HeapTuple	tuple = IsA(call, FuncExpr) ?
		SearchSysCache1(PROCOID, ObjectIdGetDatum(((FuncExpr *) call)->funcid)) : NULL;
		bool		is_sql = HeapTupleIsValid(tuple) && ((Form_pg_proc) GETSTRUCT(tuple))->prolang == SQLlanguageId;

		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		if (is_sql)
			return true;
	}
	return false;
}

/*
 * Does the query, or one inside of it, contain a row-level security policy or a security
 * barrier?  Its conditions must be evaluated before a filter is tested; otherwise the row
 * counts of EXPLAIN ANALYZE would reveal which keys hidden rows have.  This is determined
 * from the query, because the finished plan no longer shows it.
 */
static bool
has_security(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;
		ListCell   *cell;

		if (query->hasRowSecurity)
			return true;
		foreach(cell, query->rtable)
		{
			RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

			if (rte->security_barrier || rte->securityQuals != NIL || may_be_inlined(rte))
				return true;
		}
		return query_tree_walker(query, has_security, context, 0);
	}
	return expression_tree_walker(node, has_security, context);
}

/* Add filters to a finished plan. */
static void
edit_plan(PlannedStmt *stmt, bool batches)
{
	Edit		edit = {stmt, batches};

	if (stmt->commandType == CMD_UTILITY || stmt->utilityStmt != NULL || stmt->planTree == NULL || walk_statement(&edit, survey))
		return;
	(void) walk_statement(&edit, consider_joins);
	if (edit.probed != NIL)
		(void) walk_statement(&edit, add_probing_nodes);
}

static PlannedStmt *
joinfilter_planner(BF_PLANNER_PARAMETERS)
{
	/* before planning, which modifies the query */
	bool		batches = joinfilter_enabled && joinfilter_batches && !has_security((Node *) parse, NULL);
	PlannedStmt *stmt = previous_planner_hook != NULL ? previous_planner_hook(BF_PLANNER_ARGUMENTS) :
	standard_planner(BF_PLANNER_ARGUMENTS);

	if (joinfilter_enabled)
		edit_plan(stmt, batches && !stmt->dependsOnRole);
	return stmt;
}

/* ----------------------------------------------------------------
 * Settings
 * ----------------------------------------------------------------
 */

/* Discard cached plans, which were made with the old setting. */
static void
setting_changed(bool value, void *extra)
{
	if (value != joinfilter_enabled)
		ResetPlanCache();
}

/* Define the settings, register the nodes and hook into the planner, when the module is loaded. */
void
joinfilter_init(void)
{
	DefineCustomBoolVariable("bloomfilter.join_filter", "Adds filters to hash joins.",
							 "Rows of the outer side that cannot match are discarded at the scan.",
							 &joinfilter_enabled, false, PGC_USERSET, 0, NULL, setting_changed, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_min_rows",
							"Sets the minimum estimated number of rows that are read for a join to get a filter.",
							"These are the rows of the scan that tests the filter, or the outer rows of the join, whichever are more.",
							&joinfilter_min_rows, 10000, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("bloomfilter.join_filter_max_share",
							 "Sets the maximum estimated share of outer rows that a join may keep to get a filter.", NULL,
							 &joinfilter_max_share, 0.6, 0, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_memory",
							"Sets the maximum memory to be used for one filter and for collecting its keys.", NULL,
							&joinfilter_memory, 32 * 1024, 64, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomBoolVariable("bloomfilter.join_filter_batches", "Probes filters for all rows of a page together in sequential scans.",
							 "Otherwise filters are probed for one row at a time, by a node above the scan.",
							 &joinfilter_batches, true, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterCustomScanMethods(&joinfilter_collect_methods);
	RegisterCustomScanMethods(&joinfilter_scan_methods);
	RegisterCustomScanMethods(&joinfilter_probe_methods);
	previous_planner_hook = planner_hook;
	planner_hook = joinfilter_planner;
}
