/*
 * collect.c
 *		The custom scan under a Hash node: passes rows through and collects their
 *		keys.
 *
 * When the last row has passed, the filter is made and put into its parameter.  A
 * rescan takes it back first: the scans on the outer side then let everything pass
 * until the keys are complete again.
 *
 * In the plan, the node's target list stands for the columns of its child, one for
 * one, and the expressions of the keys are those of the Hash node.
 */
#include "../compat.h"

#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "joinfilter.h"

#define COLLECTOR_NAME	"Join Filter"

/* One filter that is being made. */
typedef struct Collecting
{
	int			paramid;
	int			n_keys;
	bool		is_integer;
	ExprState **expressions;	/* of the inner keys */
	JoinKeyState *inner;
	JoinKeyState *outer;
	JoinFilterBuild build;
	JoinFilter *filter;			/* once it is complete */
} Collecting;

typedef struct CollectState
{
	CustomScanState css;
	int			n;
	Collecting *collecting;
	bool		started;
} CollectState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

static const CustomScanMethods collector_methods;

/* A collector above a plan, for no filter yet. */
CustomScan *
joinfilter_collector(Plan *child, int plan_node_id)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	ListCell   *cell;
	AttrNumber	column = 0;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
	plan->parallel_safe = child->parallel_safe;
	plan->plan_node_id = plan_node_id;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	plan->lefttree = child;
	foreach(cell, child->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Oid			type = exprType((Node *) entry->expr);
		int32		typmod = exprTypmod((Node *) entry->expr);
		Oid			collation = exprCollation((Node *) entry->expr);

		column++;
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry((Expr *) makeVar(OUTER_VAR, column, type, typmod, collation, 0),
														  column, entry->resname, entry->resjunk));
		plan->targetlist = lappend(plan->targetlist,
								   makeTargetEntry((Expr *) makeVar(INDEX_VAR, column, type, typmod, collation, 0),
												   column, entry->resname, entry->resjunk));
	}
	scan->methods = &collector_methods;
	return scan;
}

bool
joinfilter_is_collector(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &collector_methods;
}

static List *
key_as_list(const JoinKey *key)
{
	return list_make4_oid((Oid) key->integer_bytes, key->function, (Oid) key->extended, key->collation);
}

static JoinKey
key_from_list(const List *list)
{
	return (JoinKey) {(int) linitial_oid(list), lsecond_oid(list), (bool) lthird_oid(list), lfourth_oid(list)};
}

/* Let it make a filter, too: of these expressions over its child's rows. */
void
joinfilter_collector_add(CustomScan *collector, int paramid, List *inner_keys, const JoinKey *inner, const JoinKey *outer)
{
	List	   *inner_list = NIL;
	List	   *outer_list = NIL;

	for (int i = 0; i < list_length(inner_keys); i++)
	{
		inner_list = lappend(inner_list, key_as_list(&inner[i]));
		outer_list = lappend(outer_list, key_as_list(&outer[i]));
	}
	collector->custom_private = lappend(collector->custom_private,
										list_make3(list_make1_int(paramid), inner_list, outer_list));
	collector->custom_exprs = lappend(collector->custom_exprs, copyObject(inner_keys));
}

/* ----------------------------------------------------------------
 * In the executor
 * ----------------------------------------------------------------
 */

static const CustomExecMethods collector_exec_methods;

static Node *
collector_create(CustomScan *plan)
{
	CollectState *state = (CollectState *) newNode(sizeof(CollectState), T_CustomScanState);

	state->css.methods = &collector_exec_methods;
	return (Node *) state;
}

static void
set_parameter(CollectState *state, const Collecting *collecting)
{
	ParamExecData *parameter = &state->css.ss.ps.state->es_param_exec_vals[collecting->paramid];

	parameter->value = PointerGetDatum(collecting->filter);
	parameter->isnull = collecting->filter == NULL;
}

static void
collector_begin(CustomScanState *css, EState *estate, int eflags)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	PlanState  *child;
	ListCell   *filter_cell;
	ListCell   *keys_cell;
	int			i = 0;

	child = outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);

	/* the child's slots are passed on as they are */
	css->ss.ps.resultops = ExecGetResultSlotOps(child, &css->ss.ps.resultopsfixed);
	css->ss.ps.resultopsset = true;

	state->n = list_length(plan->custom_private);
	state->collecting = palloc0(sizeof(Collecting) * state->n);
	forboth(filter_cell, plan->custom_private, keys_cell, plan->custom_exprs)
	{
		List	   *filter = lfirst_node(List, filter_cell);
		List	   *keys = lfirst_node(List, keys_cell);
		Collecting *collecting = &state->collecting[i++];

		collecting->paramid = linitial_int(linitial(filter));
		collecting->n_keys = list_length(keys);
		collecting->expressions = palloc(sizeof(ExprState *) * collecting->n_keys);
		collecting->inner = palloc0(sizeof(JoinKeyState) * collecting->n_keys);
		collecting->outer = palloc0(sizeof(JoinKeyState) * collecting->n_keys);
		for (int k = 0; k < collecting->n_keys; k++)
		{
			JoinKey		inner = key_from_list(list_nth(lsecond(filter), k));
			JoinKey		outer = key_from_list(list_nth(lthird(filter), k));

			collecting->expressions[k] = ExecInitExpr(list_nth(keys, k), &css->ss.ps);
			join_key_init(&collecting->inner[k], &inner, CurrentMemoryContext);
			join_key_init(&collecting->outer[k], &outer, CurrentMemoryContext);
		}
		collecting->is_integer = collecting->n_keys == 1 && collecting->inner[0].key.integer_bytes > 0;
		set_parameter(state, collecting);
	}
}

static void
start_collecting(CollectState *state)
{
	for (int i = 0; i < state->n; i++)
		join_filter_start(&state->collecting[i].build, state->css.ss.ps.state->es_query_cxt,
						  state->collecting[i].is_integer);
	state->started = true;
}

/* Collect the keys of one row.  A row with a NULL among them finds no partner. */
static void
collect_row(CollectState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller;

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];
		uint64		number = 0;
		bool		isnull = false;

		if (collecting->build.given_up)
			continue;
		for (int k = 0; k < collecting->n_keys && !isnull; k++)
		{
			Datum		value = ExecEvalExpr(collecting->expressions[k], econtext, &isnull);

			if (!isnull)
				number = k == 0 ? join_key_number(&collecting->inner[k], value) :
					join_key_combine(number, join_key_number(&collecting->inner[k], value));
		}
		if (!isnull)
			join_filter_add(&collecting->build, number);
	}
	MemoryContextSwitchTo(caller);
}

/* The last row has passed. */
static void
finish_collecting(CollectState *state)
{
	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];

		if (collecting->filter != NULL)
			continue;			/* asked for rows once more */
		collecting->filter = join_filter_finish(&collecting->build);
		if (collecting->filter != NULL)
		{
			collecting->filter->n_keys = collecting->n_keys;
			collecting->filter->outer = collecting->outer;
		}
		set_parameter(state, collecting);
	}
}

static TupleTableSlot *
collector_exec(CustomScanState *css)
{
	CollectState *state = (CollectState *) css;
	TupleTableSlot *slot = ExecProcNode(outerPlanState(css));

	if (unlikely(!state->started))
		start_collecting(state);
	if (TupIsNull(slot))
		finish_collecting(state);
	else
		collect_row(state, slot);
	return slot;
}

/* The filters are not good any more; keys are collected anew. */
static void
forget_filters(CollectState *state)
{
	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];

		if (collecting->filter != NULL)
			join_filter_release(collecting->filter);
		if (collecting->build.numbers != NULL)
			pfree(collecting->build.numbers);
		memset(&collecting->build, 0, sizeof(JoinFilterBuild));
		collecting->filter = NULL;
		set_parameter(state, collecting);
	}
	state->started = false;
}

static void
collector_rescan(CustomScanState *css)
{
	forget_filters((CollectState *) css);
	if (outerPlan(css->ss.ps.plan) != NULL && outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
collector_end(CustomScanState *css)
{
	forget_filters((CollectState *) css);
	ExecEndNode(outerPlanState(css));
}

static void
collector_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	int			i = 0;
	ListCell   *cell;

	foreach(cell, plan->custom_exprs)
	{
		const Collecting *collecting = &state->collecting[i++];
		StringInfoData keys;
		ListCell   *key;

		initStringInfo(&keys);
		foreach(key, lfirst_node(List, cell))
			appendStringInfo(&keys, "%s%s", keys.len > 0 ? ", " : "", deparse_expression(lfirst(key), context, prefix, false));
		ExplainPropertyText("Filter Keys", psprintf("$%d: %s", collecting->paramid, keys.data), es);
		if (es->analyze && collecting->filter != NULL)
		{
			const JoinFilter *filter = collecting->filter;

			if (es->format == EXPLAIN_FORMAT_TEXT)
				ExplainPropertyText("Filter Kind",
									psprintf("%s  Keys: " UINT64_FORMAT "  Memory: " UINT64_FORMAT "kB%s",
											 join_filter_kind_name(filter->kind), filter->keys, (filter->bytes + 1023) / 1024,
											 filter->off ? "  Switched off" : ""), es);
			else
			{
				ExplainPropertyText("Filter Kind", join_filter_kind_name(filter->kind), es);
				ExplainPropertyInteger("Filter Keys Collected", NULL, (int64) filter->keys, es);
				ExplainPropertyInteger("Filter Memory", "kB", (int64) (filter->bytes + 1023) / 1024, es);
				ExplainPropertyInteger("Filter Rows Asked", NULL, (int64) filter->asked, es);
				ExplainPropertyInteger("Filter Rows Passed", NULL, (int64) filter->passed, es);
				ExplainPropertyBool("Filter Switched Off", filter->off, es);
			}
		}
	}
}

static const CustomScanMethods collector_methods = {
	.CustomName = COLLECTOR_NAME,
	.CreateCustomScanState = collector_create
};

static const CustomExecMethods collector_exec_methods = {
	.CustomName = COLLECTOR_NAME,
	.BeginCustomScan = collector_begin,
	.ExecCustomScan = collector_exec,
	.EndCustomScan = collector_end,
	.ReScanCustomScan = collector_rescan,
	.ExplainCustomScan = collector_explain
};

void
joinfilter_register_collector(void)
{
	RegisterCustomScanMethods(&collector_methods);
}
