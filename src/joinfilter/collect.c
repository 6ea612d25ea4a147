/*
 * collect.c
 *		The custom scan under a Hash node: passes rows through and collects their
 *		keys.
 *
 * When the last row has passed, the filter is made and put into its parameter.  A
 * rescan takes it back first: the scans on the outer side then let everything pass
 * until the keys are complete again.
 *
 * Under a Parallel Hash the processes fill one filter together, in shared memory.
 * There the parameter is set from the start: no outer row is read before the last
 * process has added its last key.
 *
 * The expressions of the keys are those of the Hash node.
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
#include "storage/shmem.h"
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
	JoinFilterShared *shared;	/* filled by all processes, or NULL */
} Collecting;

typedef struct CollectState
{
	CustomScanState css;
	int			n;
	Collecting *collecting;
	bool		started;
	uint64		planned;		/* keys that the planner expects */
} CollectState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

static const CustomScanMethods collector_methods;

/* A collector for what is below a Hash, for no filter yet. */
CustomScan *
joinfilter_collector(Hash *hash, int plan_node_id)
{
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = joinfilter_pass_through(child, plan_node_id, &collector_methods);

	scan->scan.plan.parallel_aware = hash->plan.parallel_aware;
	scan->custom_private = list_make1(makeInteger((int) Min(hash->plan.parallel_aware ? hash->rows_total : child->plan_rows, INT_MAX)));
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
	collector->custom_exprs = lappend(collector->custom_exprs, bf_copy_object(inner_keys));
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
	ListCell   *filter_cell;
	ListCell   *keys_cell;
	int			i = 0;

	joinfilter_begin_pass_through(css, estate, eflags);
	state->planned = (uint64) intVal(linitial(plan->custom_private));
	state->n = list_length(plan->custom_exprs);
	state->collecting = palloc0(sizeof(Collecting) * state->n);
	filter_cell = list_nth_cell(plan->custom_private, 1);
	foreach(keys_cell, plan->custom_exprs)
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
		filter_cell = lnext(plan->custom_private, filter_cell);
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
		if (isnull)
			continue;
		if (collecting->shared != NULL)
			join_shared_add(collecting->shared, &collecting->build, number);
		else
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

		if (collecting->shared != NULL && !collecting->build.given_up)
		{
			join_shared_finish(collecting->shared, &collecting->build);
			collecting->build.given_up = true;
		}
		if (collecting->filter != NULL)
			continue;			/* asked for rows once more, or shared */
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

/* Share a filter: it can be asked as soon as there is something to ask for. */
static void
attach(CollectState *state, Collecting *collecting, JoinFilterShared *shared)
{
	if (collecting->filter != NULL)
		pfree(collecting->filter);
	collecting->shared = shared;
	collecting->filter = join_shared_attach(shared, state->css.ss.ps.state->es_query_cxt);
	collecting->filter->n_keys = collecting->n_keys;
	collecting->filter->outer = collecting->outer;
	set_parameter(state, collecting);
}

/* The filters are not good any more; keys are collected anew. */
static void
forget_filters(CollectState *state)
{
	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];

		if (collecting->shared != NULL)
			attach(state, collecting, collecting->shared);
		if (collecting->filter != NULL && collecting->shared == NULL)
			join_filter_release(collecting->filter);
		if (collecting->build.numbers != NULL)
			pfree(collecting->build.numbers);
		memset(&collecting->build, 0, sizeof(JoinFilterBuild));
		if (collecting->shared == NULL)
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

/* ----------------------------------------------------------------
 * Shared memory
 * ----------------------------------------------------------------
 */

static Size
shared_size(const CollectState *state, const Collecting *collecting)
{
	return TYPEALIGN(BF_LINE_BYTES, join_shared_size(collecting->is_integer, state->planned));
}

static Size
collector_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	CollectState *state = (CollectState *) css;
	Size		size = BF_LINE_BYTES;

	for (int i = 0; i < state->n; i++)
		size = add_size(size, shared_size(state, &state->collecting[i]));
	return size;
}

/* Attach to all filters, which lie one behind the other; the first process makes them. */
static void
attach_all(CollectState *state, void *coordinate, bool make)
{
	char	   *place = (char *) TYPEALIGN(BF_LINE_BYTES, coordinate);

	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];
		JoinFilterShared *shared = (JoinFilterShared *) place;

		if (make)
			join_shared_start(shared, collecting->is_integer, state->planned);
		attach(state, collecting, shared);
		place += shared_size(state, collecting);
	}
}

static void
collector_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	attach_all((CollectState *) css, coordinate, true);
}

static void
collector_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	attach_all((CollectState *) css, coordinate, false);
}

/* The shared memory goes away: keep what EXPLAIN tells. */
static void
collector_shutdown(CustomScanState *css)
{
	CollectState *state = (CollectState *) css;

	for (int i = 0; i < state->n; i++)
	{
		Collecting *collecting = &state->collecting[i];
		ParamExecData *parameter = &css->ss.ps.state->es_param_exec_vals[collecting->paramid];

		if (collecting->shared == NULL)
			continue;
		if (collecting->filter->shared != NULL)
			join_shared_open(collecting->filter);
		collecting->filter->bits = NULL;
		collecting->filter->lines = NULL;
		collecting->shared = NULL;
		parameter->value = (Datum) 0;
		parameter->isnull = true;
	}
}

static void
collector_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	int			i = 0;
	ListCell   *cell;

	foreach(cell, plan->custom_exprs)
	{
		const Collecting *collecting = &state->collecting[i++];

		ExplainPropertyText("Filter Keys", psprintf("$%d (%s)", collecting->paramid,
													joinfilter_deparse(css, lfirst_node(List, cell), ancestors, es)), es);
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
	.EstimateDSMCustomScan = collector_estimate_dsm,
	.InitializeDSMCustomScan = collector_initialize_dsm,
	.ReInitializeDSMCustomScan = collector_initialize_dsm,
	.InitializeWorkerCustomScan = collector_initialize_worker,
	.ShutdownCustomScan = collector_shutdown,
	.ExplainCustomScan = collector_explain
};

void
joinfilter_register_collector(void)
{
	RegisterCustomScanMethods(&collector_methods);
}
