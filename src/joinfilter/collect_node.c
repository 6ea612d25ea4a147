/*
 * collect_node.c
 *		The custom scan under a Hash node, which returns the rows of its child and
 *		collects their keys.
 *
 * After the last row the filter is built and its parameter set.  A rescan first resets
 * the parameter: until the keys are complete again, the scans of the outer side let all
 * rows pass.
 *
 * The processes of a Parallel Hash fill one filter in shared memory.  Its parameter is set
 * from the start.  No process reads an outer row before it has waited at the barrier for
 * the complete hash table, and by then all processes have added their last key.  A worker
 * that starts later adds nothing, neither to the hash table nor to the filter.
 *
 * The key expressions are those of the Hash node.  A join whose keys come from different
 * scans has several filters, and so several of these nodes one above the other.
 */
#include "../compat.h"

#include <math.h>

#include "commands/explain.h"
#include "executor/executor.h"
#include "storage/shmem.h"

#include "../server.h"
#include "joinfilter.h"

#define COLLECT_NAME	"Runtime Filter"

typedef struct CollectState
{
	CustomScanState css;
	int			paramid;
	int			n_keys;
	bool		is_integer;
	ExprState **expressions;	/* of the inner keys */
	JoinKeyState *inner;
	JoinKeyState *outer;
	uint64		planned;		/* keys that the planner estimates */
	bool		started;
	JoinFilterBuild build;
	JoinFilter *filter;			/* once it is complete */
	bool		counted_off;	/* counted as switched off, for EXPLAIN */
	JoinFilterShared *shared;	/* filled by all processes, or NULL */
} CollectState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

/* A key as a list, which plans can contain. */
static List *
key_as_list(const JoinKey *key)
{
	return list_make5_oid((Oid) key->integer_bytes, (Oid) key->is_string, key->function, (Oid) key->extended, key->collation);
}

static JoinKey
key_from_list(const List *list)
{
	JoinKey		key;

	key.integer_bytes = (int) linitial_oid(list);
	key.is_string = (bool) lsecond_oid(list);
	key.function = lthird_oid(list);
	key.extended = (bool) lfourth_oid(list);
	key.collation = list_nth_oid(list, 4);
	return key;
}

/* Make a node between a Hash and its child that builds a filter from these expressions over the child's rows. */
CustomScan *
joinfilter_collect(Hash *hash, int plan_node_id, int paramid, List *inner_keys, const JoinKey *inner, const JoinKey *outer)
{
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = joinfilter_pass_through(child, plan_node_id, &joinfilter_collect_methods);
	double		rows = hash->plan.parallel_aware ? hash->rows_total : child->plan_rows;
	List	   *inner_list = NIL;
	List	   *outer_list = NIL;

	for (int i = 0; i < list_length(inner_keys); i++)
	{
		inner_list = lappend(inner_list, key_as_list(&inner[i]));
		outer_list = lappend(outer_list, key_as_list(&outer[i]));
	}
	scan->scan.plan.parallel_aware = hash->plan.parallel_aware;
	scan->custom_private = list_make3(list_make2_int(paramid, (int) Min(rows, INT_MAX)), inner_list, outer_list);
	scan->custom_exprs = bf_copy_object(inner_keys);
	return scan;
}

/* ----------------------------------------------------------------
 * In the executor
 * ----------------------------------------------------------------
 */

static const CustomExecMethods collect_exec_methods;

static Node *
collect_create(CustomScan *plan)
{
	CollectState *state = (CollectState *) newNode(sizeof(CollectState), T_CustomScanState);

	state->css.methods = &collect_exec_methods;
	return (Node *) state;
}

/* Set the filter of this process and its parameter.  A shared filter may still be incomplete. */
static void
set_filter(CollectState *state, JoinFilter *filter)
{
	ParamExecData *parameter = &state->css.ss.ps.state->es_param_exec_vals[state->paramid];

	state->filter = filter;
	if (filter != NULL)
		filter->outer = state->outer;
	parameter->value = PointerGetDatum(filter);
	parameter->isnull = filter == NULL;
}

static TupleTableSlot *collect_exec(PlanState *node);
static TupleTableSlot *return_row(PlanState *node);

static void
collect_begin(CustomScanState *css, EState *estate, int eflags)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *numbers = linitial(plan->custom_private);

	joinfilter_begin_pass_through(css, estate, eflags);
	state->paramid = linitial_int(numbers);
	state->planned = (uint64) lsecond_int(numbers);
	state->n_keys = list_length(plan->custom_exprs);
	state->expressions = palloc(sizeof(ExprState *) * state->n_keys);
	state->inner = palloc0(sizeof(JoinKeyState) * state->n_keys);
	state->outer = palloc0(sizeof(JoinKeyState) * state->n_keys);
	for (int i = 0; i < state->n_keys; i++)
	{
		JoinKey		inner = key_from_list(list_nth(lsecond(plan->custom_private), i));
		JoinKey		outer = key_from_list(list_nth(lthird(plan->custom_private), i));

		state->expressions[i] = ExecInitExpr(list_nth(plan->custom_exprs, i), &css->ss.ps);
		join_key_init(&state->inner[i], &inner, CurrentMemoryContext);
		join_key_init(&state->outer[i], &outer, CurrentMemoryContext);
	}
	state->is_integer = state->n_keys == 1 && state->inner[0].key.integer_bytes > 0;
	set_filter(state, NULL);
	/* called directly, not through ExecCustomScan() */
	css->ss.ps.ExecProcNode = joinfilter_is_recheck(estate) ? return_row : collect_exec;
}

/* Collect the keys of one row, unless one is NULL, which matches nothing. */
static void
collect_row(CollectState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller;
	uint64		number = 0;
	bool		isnull = false;

	/* evaluating most keys allocates nothing, and then the call is skipped */
	if (unlikely(!econtext->ecxt_per_tuple_memory->isReset || econtext->ecxt_per_tuple_memory->firstchild != NULL))
		ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < state->n_keys && !isnull; i++)
	{
		Datum		value = ExecEvalExpr(state->expressions[i], econtext, &isnull);

		if (!isnull)
			number = join_key_append(state->inner, i, number, value);
	}
	if (!isnull && state->shared != NULL)
		join_shared_add(state->shared, &state->build, number);
	else if (!isnull)
		join_filter_add(&state->build, number);
	MemoryContextSwitchTo(caller);
}

/*
 * Build the filter after the last row.  The numbers of keys and bytes are stored in
 * counters of the node's instrumentation, because EXPLAIN adds these up over processes.
 */
static void
finish_collecting(CollectState *state)
{
	if (state->shared != NULL && !state->build.given_up)
	{
		join_shared_finish(state->shared, &state->build);
		state->build.given_up = true;
	}
	if (state->filter != NULL)
		return;					/* shared, or called after the last row */
	set_filter(state, join_filter_finish(&state->build));
	if (state->filter != NULL)
	{
		InstrCountTuples2(&state->css, (double) state->filter->keys);
		InstrCountFiltered1(&state->css, (double) state->filter->bytes);
	}
}

static TupleTableSlot *
collect_exec(PlanState *node)
{
	CollectState *state = (CollectState *) node;
	TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

	if (unlikely(!state->started))
	{
		join_filter_start(&state->build, node->state->es_query_cxt, state->is_integer);
		state->started = true;
	}
	if (TupIsNull(slot))
		finish_collecting(state);
	else if (!state->build.given_up)
		collect_row(state, slot);
	return slot;
}

/* Return the next row of the child, if no filter is needed. */
static TupleTableSlot *
return_row(PlanState *node)
{
	return ExecProcNode(outerPlanState(node));
}

static TupleTableSlot *
collect_exec_custom(CustomScanState *css)
{
	return collect_exec(&css->ss.ps);
}

/* Count a filter that was switched off, but only once. */
static void
count_off(CollectState *state)
{
	if (state->filter != NULL && state->filter->off && !state->counted_off)
	{
		InstrCountFiltered2(&state->css, 1);
		state->counted_off = true;
	}
}

/* Use a filter in shared memory. */
static void
attach(CollectState *state, JoinFilterShared *shared)
{
	if (state->filter != NULL)
		pfree(state->filter);
	state->shared = shared;
	set_filter(state, join_shared_attach(shared, state->css.ss.ps.state->es_query_cxt));
}

/* Drop the filter and the collected keys, before they are collected again. */
static void
forget_filter(CollectState *state)
{
	count_off(state);
	state->counted_off = false;
	bf_accumulator_free(server_host(NULL), &state->build.numbers);
	memset(&state->build, 0, sizeof(JoinFilterBuild));
	state->started = false;
	if (state->shared != NULL)
		attach(state, state->shared);
	else
	{
		if (state->filter != NULL)
			join_filter_release(state->filter);
		set_filter(state, NULL);
	}
}

static void
collect_rescan(CustomScanState *css)
{
	forget_filter((CollectState *) css);
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
collect_end(CustomScanState *css)
{
	forget_filter((CollectState *) css);
	ExecEndNode(outerPlanState(css));
}

/* ----------------------------------------------------------------
 * Shared memory
 * ----------------------------------------------------------------
 *
 * The filter is aligned to a cache line.  Its size is chosen once, when the memory is
 * set up; workers use it as it is, also those that start after a rescan.
 */

static Size
collect_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	CollectState *state = (CollectState *) css;

	return add_size(join_shared_size(state->is_integer, state->planned), BF_LINE_BYTES);
}

static JoinFilterShared *
shared_at(void *coordinate)
{
	return (JoinFilterShared *) TYPEALIGN(BF_LINE_BYTES, coordinate);
}

static void
collect_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	CollectState *state = (CollectState *) css;

	join_shared_start(shared_at(coordinate), state->is_integer, state->planned);
	attach(state, shared_at(coordinate));
}

static void
collect_reinitialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	join_shared_empty(shared_at(coordinate));
	attach((CollectState *) css, shared_at(coordinate));
}

static void
collect_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	attach((CollectState *) css, shared_at(coordinate));
}

/* Detach from a shared filter before its memory is freed, but keep the figures for EXPLAIN. */
static void
collect_shutdown(CustomScanState *css)
{
	CollectState *state = (CollectState *) css;
	ParamExecData *parameter = &css->ss.ps.state->es_param_exec_vals[state->paramid];

	if (state->shared != NULL && state->filter->shared != NULL)
		join_shared_open(state->filter);
	count_off(state);
	if (state->shared == NULL)
		return;
	state->filter->bits = NULL;
	state->filter->lines = NULL;
	state->shared = NULL;
	parameter->value = (Datum) 0;
	parameter->isnull = true;
}

/*
 * Show the filter in EXPLAIN ANALYZE.  A shared filter is the same for all processes.
 * Otherwise there is one filter per process and per execution of the node; keys and bytes
 * are then averages per loop, as EXPLAIN shows rows.
 */
static void
explain_filters(CollectState *state, ExplainState *es)
{
	const JoinFilter *filter = state->filter;
	const PlanState *node = &state->css.ss.ps;
	const double loops = node->instrument->nloops;
	const bool	shared = node->plan->parallel_aware && filter != NULL;
	const double keys = shared ? (double) filter->keys : node->instrument->ntuples2 / loops;
	const double bytes = shared ? (double) filter->bytes : node->instrument->nfiltered1 / loops;
	const double off = node->instrument->nfiltered2;
	const char *kind = filter != NULL ? join_filter_kind_name(filter->kind) : state->build.given_up ? "none" : "of workers";

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		char	   *counts = psprintf("%s  Keys: %.0f  Memory: %.0fkB", kind, keys, ceil(bytes / 1024));

		if (off > 0 && off >= loops)
			counts = psprintf("%s  Switched off", counts);
		else if (off > 0)
			counts = psprintf("%s  Switched off: %.0f of %.0f", counts, off, loops);
		ExplainPropertyText("Filter Kind", counts, es);
		return;
	}
	ExplainPropertyText("Filter Kind", kind, es);
	ExplainPropertyFloat("Filter Keys Collected", NULL, keys, 0, es);
	ExplainPropertyFloat("Filter Memory", "kB", ceil(bytes / 1024), 0, es);
	ExplainPropertyFloat("Filters Switched Off", NULL, off, 0, es);
}

static void
collect_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	ExplainPropertyText("Filter Keys", joinfilter_deparse(css, state->paramid, plan->custom_exprs, ancestors, es), es);
	if (es->analyze && css->ss.ps.instrument != NULL && css->ss.ps.instrument->nloops > 0)
		explain_filters(state, es);
}

const CustomScanMethods joinfilter_collect_methods = {
	.CustomName = COLLECT_NAME,
	.CreateCustomScanState = collect_create
};

static const CustomExecMethods collect_exec_methods = {
	.CustomName = COLLECT_NAME,
	.BeginCustomScan = collect_begin,
	.ExecCustomScan = collect_exec_custom,
	.EndCustomScan = collect_end,
	.ReScanCustomScan = collect_rescan,
	.EstimateDSMCustomScan = collect_estimate_dsm,
	.InitializeDSMCustomScan = collect_initialize_dsm,
	.ReInitializeDSMCustomScan = collect_reinitialize_dsm,
	.InitializeWorkerCustomScan = collect_initialize_worker,
	.ShutdownCustomScan = collect_shutdown,
	.ExplainCustomScan = collect_explain
};
