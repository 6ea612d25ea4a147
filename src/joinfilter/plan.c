/*
 * plan.c
 *		Where filters go: editing a finished plan.
 *
 * Nothing of a plan's shape is changed: a collector is put under Hash nodes, and
 * scans learn to ask, or get a node above them that does.  So no plan can get worse than its filters cost.  When
 * in doubt, a join gets none.  What has to hold:
 *
 *	- The join drops outer rows without a partner: INNER, SEMI, RIGHT and, in later
 *	  majors, RIGHT ANTI and RIGHT SEMI.
 *	- The inner side gives the same rows whenever it is read.  A parameter from
 *	  outside could change them between two reads, and the first outer row after a
 *	  rescan would be asked against the old filter.  Harmless are the parameter by
 *	  which a Gather tells that it is rescanned, and results of subqueries that
 *	  depend on nothing.
 *	- The outer key is a column, which cannot raise an error that the query would
 *	  not have raised, and comes unchanged from a scan of a table.
 *	- Between the join and that scan a missing row can only make a row be missing
 *	  that the join would drop: outer sides of INNER, LEFT, SEMI and ANTI joins, inner
 *	  sides of INNER joins, nodes that pass rows on one by one, and nodes that group
 *	  rows by the key, in the join's sense of equal, in each of their grouping sets, and
 *	  compute nothing of a group that a missing row of it would change.
 *	- No expression on the way is volatile: it would be evaluated less often.
 *
 * Statements that lock or change rows are left alone: they evaluate conditions again
 * for new versions of a row.
 */
#include "../compat.h"

#include "access/htup_details.h"
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
#include "trace.h"

bool		joinfilter_enabled = false;
int			joinfilter_min_rows = 10000;
double		joinfilter_max_share = 0.6;
bool		joinfilter_batches = true;

static planner_hook_type previous_planner_hook;

typedef struct Edit
{
	PlannedStmt *stmt;
	bool		batches;		/* may scans ask for a page at once? */
	int			next_node_id;
	List	   *probed;			/* scans that ask filters */
	Bitmapset  *harmless;		/* parameters that an inner side may depend on */
} Edit;

/* A scan that asks filters. */
typedef struct Probed
{
	Plan	   *scan;
	List	   *probes;
} Probed;

/* Learn the highest number of a node, and the parameters that do no harm. */
static void
survey(Edit *edit, Plan *plan)
{
	ListCell   *cell;

	check_stack_depth();
	if (plan == NULL)
		return;
	edit->next_node_id = Max(edit->next_node_id, plan->plan_node_id + 1);
	if (IsA(plan, Gather) && ((Gather *) plan)->rescan_param >= 0)
		edit->harmless = bms_add_member(edit->harmless, ((Gather *) plan)->rescan_param);
	if (IsA(plan, GatherMerge) && ((GatherMerge *) plan)->rescan_param >= 0)
		edit->harmless = bms_add_member(edit->harmless, ((GatherMerge *) plan)->rescan_param);

	/* rows that a statement only inserts are never checked again */
	if (IsA(plan, ModifyTable) && ((ModifyTable *) plan)->operation == CMD_INSERT)
		edit->harmless = bms_add_member(edit->harmless, ((ModifyTable *) plan)->epqParam);
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
	foreach(cell, joinfilter_children(plan))
		survey(edit, lfirst(cell));
}

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

/* ----------------------------------------------------------------
 * Placing a filter
 * ----------------------------------------------------------------
 */

/* One pair of keys of a join. */
typedef struct Pair
{
	Expr	   *outer;			/* as the join has it: a column, perhaps
								 * relabelled */
	Expr	   *inner;
	JoinKey		outer_key;
	JoinKey		inner_key;
	List	   *sources;
	double		rows;			/* that were grouped on the way to them */
	bool		done;
} Pair;

/* Ask the filter of this parameter at every scan where the keys come from. */
static void
add_probes(Edit *edit, List *pairs, int paramid)
{
	Pair	   *first = linitial(pairs);

	for (int i = 0; i < list_length(first->sources); i++)
	{
		Plan	   *scan = ((Source *) list_nth(first->sources, i))->scan;
		JoinProbe  *probe = palloc0(sizeof(JoinProbe));
		Probed	   *probed = NULL;
		ListCell   *cell;

		probe->paramid = paramid;
		foreach(cell, pairs)
		{
			Source	   *source = list_nth(((Pair *) lfirst(cell))->sources, i);

			probe->columns = lappend(probe->columns, source->column);
			probe->numbers = lappend_int(probe->numbers, source->number);
		}
		foreach(cell, edit->probed)
		{
			if (((Probed *) lfirst(cell))->scan == scan)
				probed = lfirst(cell);
		}
		if (probed == NULL)
		{
			probed = palloc0(sizeof(Probed));
			probed->scan = scan;
			edit->probed = lappend(edit->probed, probed);
		}
		probed->probes = lappend(probed->probes, probe);
	}
}

/* One filter of all keys that come from the same scans. */
static void
place_filter(Edit *edit, Hash *hash, List *pairs)
{
	int			n = list_length(pairs);
	JoinKey    *inner = palloc(sizeof(JoinKey) * n);
	JoinKey    *outer = palloc(sizeof(JoinKey) * n);
	List	   *inner_keys = NIL;
	int			paramid = list_length(edit->stmt->paramExecTypes);
	ListCell   *cell;

	foreach(cell, pairs)
	{
		Pair	   *pair = lfirst(cell);

		inner[list_length(inner_keys)] = pair->inner_key;
		outer[list_length(inner_keys)] = pair->outer_key;
		inner_keys = lappend(inner_keys, pair->inner);
	}
	edit->stmt->paramExecTypes = lappend_oid(edit->stmt->paramExecTypes, INTERNALOID);
	add_probes(edit, pairs, paramid);
	outerPlan(hash) = (Plan *) joinfilter_collect(hash, edit->next_node_id++, paramid, inner_keys, inner, outer);
}

/* Does a join of this type discard outer rows without a partner? */
static bool
drops_outer_rows(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT || bf_is_right_semi_or_anti(type);
}

/* The column below relabelling, which changes neither value nor anything else. */
static Var *
outer_column(Expr *expression)
{
	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	return IsA(expression, Var) && ((Var *) expression)->varno == OUTER_VAR ? (Var *) expression : NULL;
}

/* The keys of a join that can be traced to scans. */
static List *
traceable_pairs(Edit *edit, HashJoin *join, Hash *hash)
{
	List	   *pairs = NIL;

	for (int i = 0; i < list_length(join->hashkeys); i++)
	{
		Pair	   *pair = palloc0(sizeof(Pair));
		Trace		way = {edit->stmt, list_nth_oid(join->hashoperators, i), list_nth_oid(join->hashcollations, i)};
		Var		   *column;

		pair->outer = list_nth(join->hashkeys, i);
		pair->inner = list_nth(hash->hashkeys, i);
		column = outer_column(pair->outer);
		if (column == NULL || contain_volatile_functions((Node *) pair->inner) ||
			!join_key_for(way.operator, way.collation,
						  exprType((Node *) pair->outer), exprType((Node *) pair->inner),
						  &pair->outer_key, &pair->inner_key))
			continue;
		joinfilter_trace(&way, outerPlan(join), column->varattno);
		pair->sources = way.sources;
		pair->rows = Max(outerPlan(join)->plan_rows, way.rows);
		if (pair->sources != NIL)
			pairs = lappend(pairs, pair);
	}
	return pairs;
}

static void
consider_join(Edit *edit, HashJoin *join)
{
	Hash	   *hash = castNode(Hash, innerPlan(join));
	double		outer_rows = outerPlan(join)->plan_rows;
	double		rows = join->join.plan.plan_rows;
	List	   *pairs;
	ListCell   *cell;

	if (!drops_outer_rows(join->join.jointype) ||
		(joinfilter_max_share < 1 && rows > outer_rows * joinfilter_max_share) ||
		!bms_is_subset(hash->plan.extParam, edit->harmless) ||
		joinfilter_node_is_volatile(edit->stmt, &join->join.plan) || joinfilter_tree_is_volatile(edit->stmt, &hash->plan))
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

static void
visit(Edit *edit, Plan *plan)
{
	ListCell   *cell;

	check_stack_depth();
	if (plan == NULL)
		return;
	if (IsA(plan, HashJoin))
		consider_join(edit, (HashJoin *) plan);
	foreach(cell, joinfilter_children(plan))
		visit(edit, lfirst(cell));
}

/* ----------------------------------------------------------------
 * Where filters are asked
 * ----------------------------------------------------------------
 */

/* Can a scan ask for the rows of a page at once?  Of a heap, for columns that every row has. */
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

/* The plan, or what takes its place because it asks filters. */
static Plan *
asking(Edit *edit, Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return NULL;
	foreach(cell, edit->probed)
	{
		Probed	   *probed = lfirst(cell);

		if (probed->scan != plan)
			continue;
		if (can_batch(edit, probed))
			return (Plan *) joinfilter_scan((SeqScan *) plan, probed->probes);
		return (Plan *) joinfilter_probe(plan, edit->next_node_id++, probed->probes);
	}
	return plan;
}

static void
let_list_ask(Edit *edit, List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
		lfirst(cell) = asking(edit, lfirst(cell));
}

/* Let the scans below a plan ask their filters. */
static void
let_ask(Edit *edit, Plan *plan)
{
	ListCell   *cell;
	List	   *children;

	check_stack_depth();
	if (plan == NULL)
		return;
	children = joinfilter_children(plan);
	plan->lefttree = asking(edit, plan->lefttree);
	plan->righttree = asking(edit, plan->righttree);
	if (IsA(plan, Append))
		let_list_ask(edit, ((Append *) plan)->appendplans);
	else if (IsA(plan, MergeAppend))
		let_list_ask(edit, ((MergeAppend *) plan)->mergeplans);
	else if (IsA(plan, SubqueryScan))
		((SubqueryScan *) plan)->subplan = asking(edit, ((SubqueryScan *) plan)->subplan);
	foreach(cell, children)
		let_ask(edit, lfirst(cell));
}

/* Is a function in FROM one whose query the planner may put in its place? */
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
 * Does the query, or one inside of it, have conditions that must come first?  Then a
 * filter must not be asked before them, and EXPLAIN not tell how many rows it dropped.
 * The finished plan does not show it any more.
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

/* Put filters into a finished plan. */
static void
edit_plan(PlannedStmt *stmt, bool batches)
{
	Edit		edit = {stmt, batches};
	ListCell   *cell;

	if ((stmt->commandType != CMD_SELECT && stmt->commandType != CMD_INSERT) || stmt->utilityStmt != NULL ||
		stmt->rowMarks != NIL || stmt->hasModifyingCTE || stmt->planTree == NULL)
		return;
	survey(&edit, stmt->planTree);
	foreach(cell, stmt->subplans)
		survey(&edit, lfirst(cell));
	visit(&edit, stmt->planTree);
	foreach(cell, stmt->subplans)
		visit(&edit, lfirst(cell));
	if (edit.probed == NIL)
		return;
	let_ask(&edit, stmt->planTree);
	foreach(cell, stmt->subplans)
		let_ask(&edit, lfirst(cell));
}

static PlannedStmt *
joinfilter_planner(BF_PLANNER_PARAMETERS)
{
	/* the planner takes the query apart */
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

/* Plans that are kept were made with the old setting. */
static void
setting_changed(bool value, void *extra)
{
	if (value != joinfilter_enabled)
		ResetPlanCache();
}

/* At the start of the module. */
void
joinfilter_init(void)
{
	DefineCustomBoolVariable("bloomfilter.join_filter", "Puts filters into hash joins.",
							 "Rows that cannot find a partner are dropped where they are read.",
							 &joinfilter_enabled, false, PGC_USERSET, 0, NULL, setting_changed, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_min_rows",
							"A join gets a filter if its outer side is expected to have this number of rows.", NULL,
							&joinfilter_min_rows, 10000, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("bloomfilter.join_filter_max_share",
							 "A join gets a filter if it is expected to keep at most this share of its outer rows.", NULL,
							 &joinfilter_max_share, 0.6, 0, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.join_filter_memory",
							"The memory that the keys of one filter and the filter may take.", NULL,
							&joinfilter_memory, 32 * 1024, 64, MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomBoolVariable("bloomfilter.join_filter_batches", "Asks filters for all rows of a page at once.",
							 "Otherwise they are asked row by row, as a condition of the scan.",
							 &joinfilter_batches, true, PGC_USERSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("bloomfilter");
	RegisterCustomScanMethods(&joinfilter_collect_methods);
	RegisterCustomScanMethods(&joinfilter_scan_methods);
	RegisterCustomScanMethods(&joinfilter_probe_methods);
	previous_planner_hook = planner_hook;
	planner_hook = joinfilter_planner;
}
