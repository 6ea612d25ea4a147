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
 * There the parameter is set from the start: no process reads an outer row before it
 * has met the others at the barrier where the hash table is complete, and each of them
 * has added its last key by then.  A worker that starts later than that adds nothing,
 * to the hash table and to the filter.
 *
 * The expressions of the keys are those of the Hash node.  A join whose keys come from
 * different scans has several filters, hence several collectors, one above the other.
 */
#include "../compat.h"

#include <math.h>

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

#include "../server.h"
#include "joinfilter.h"

#define COLLECTOR_NAME	"Join Filter"

typedef struct CollectState
{
	CustomScanState css;
	int			paramid;
	int			n_keys;
	bool		is_integer;
	ExprState **expressions;	/* of the inner keys */
	JoinKeyState *inner;
	JoinKeyState *outer;
	uint64		planned;		/* keys that the planner expects */
	bool		started;
	JoinFilterBuild build;
	JoinFilter *filter;			/* once it is complete */
	bool		counted_off;	/* EXPLAIN knows that it was switched off */
	JoinFilterShared *shared;	/* filled by all processes, or NULL */
} CollectState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

static const CustomScanMethods collector_methods;

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

/* What is below a Hash, with a filter made of these expressions over its rows. */
CustomScan *
joinfilter_collector(Hash *hash, int plan_node_id, int paramid, List *inner_keys, const JoinKey *inner, const JoinKey *outer)
{
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = joinfilter_pass_through(child, plan_node_id, &collector_methods);
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

static const CustomExecMethods collector_exec_methods;

static Node *
collector_create(CustomScan *plan)
{
	CollectState *state = (CollectState *) newNode(sizeof(CollectState), T_CustomScanState);

	state->css.methods = &collector_exec_methods;
	return (Node *) state;
}

static void
set_parameter(CollectState *state)
{
	ParamExecData *parameter = &state->css.ss.ps.state->es_param_exec_vals[state->paramid];

	parameter->value = PointerGetDatum(state->filter);
	parameter->isnull = state->filter == NULL;
}

static TupleTableSlot *collector_exec(PlanState *node);

static void
collector_begin(CustomScanState *css, EState *estate, int eflags)
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
	set_parameter(state);
	/* without the detour that custom scans take */
	css->ss.ps.ExecProcNode = collector_exec;
}

/* Collect the keys of one row.  A row with a NULL among them finds no partner. */
static void
collect_row(CollectState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller;
	uint64		number = 0;
	bool		isnull = false;

	/* few keys leave something behind: spare them the call */
	if (unlikely(!econtext->ecxt_per_tuple_memory->isReset || econtext->ecxt_per_tuple_memory->firstchild != NULL))
		ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (int i = 0; i < state->n_keys && !isnull; i++)
	{
		Datum		value = ExecEvalExpr(state->expressions[i], econtext, &isnull);

		if (!isnull)
			number = i == 0 ? join_key_number(&state->inner[i], value) :
				join_key_combine(number, join_key_number(&state->inner[i], value));
	}
	if (!isnull && state->shared != NULL)
		join_shared_add(state->shared, &state->build, number);
	else if (!isnull)
		join_filter_add(&state->build, number);
	MemoryContextSwitchTo(caller);
}

/* The filter of this process is there: complete, or complete as soon as it is asked. */
static void
set_filter(CollectState *state, JoinFilter *filter)
{
	state->filter = filter;
	if (filter != NULL)
	{
		filter->n_keys = state->n_keys;
		filter->outer = state->outer;
	}
	set_parameter(state);
}

/*
 * The last row has passed.  EXPLAIN sums up what nodes count over processes: keys and
 * bytes are counted where it expects other things.
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
		return;					/* asked for rows once more, or shared */
	set_filter(state, join_filter_finish(&state->build));
	if (state->filter != NULL)
	{
		InstrCountTuples2(&state->css, (double) state->filter->keys);
		InstrCountFiltered1(&state->css, (double) state->filter->bytes);
	}
}

static TupleTableSlot *
collector_exec(PlanState *node)
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

static TupleTableSlot *
collector_exec_custom(CustomScanState *css)
{
	return collector_exec(&css->ss.ps);
}

/* Count a filter that was switched off, once. */
static void
count_off(CollectState *state)
{
	if (state->filter != NULL && state->filter->off && !state->counted_off)
	{
		InstrCountFiltered2(&state->css, 1);
		state->counted_off = true;
	}
}

/* Share a filter: it can be asked as soon as there is something to ask for. */
static void
attach(CollectState *state, JoinFilterShared *shared)
{
	if (state->filter != NULL)
		pfree(state->filter);
	state->shared = shared;
	set_filter(state, join_shared_attach(shared, state->css.ss.ps.state->es_query_cxt));
}

/* The filter is not good any more; keys are collected anew. */
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
collector_rescan(CustomScanState *css)
{
	forget_filter((CollectState *) css);
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
collector_end(CustomScanState *css)
{
	forget_filter((CollectState *) css);
	ExecEndNode(outerPlanState(css));
}

/* ----------------------------------------------------------------
 * Shared memory
 * ----------------------------------------------------------------
 *
 * It begins where a cache line does.  What it looks like is decided once, when it is
 * made: workers, and those that start after a rescan, take it as it is.
 */

static Size
collector_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
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
collector_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	CollectState *state = (CollectState *) css;

	join_shared_start(shared_at(coordinate), state->is_integer, state->planned);
	attach(state, shared_at(coordinate));
}

static void
collector_reinitialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	join_shared_empty(shared_at(coordinate));
	attach((CollectState *) css, shared_at(coordinate));
}

static void
collector_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	attach((CollectState *) css, shared_at(coordinate));
}

/* The shared memory may go away: keep what EXPLAIN tells.  Other filters stay as they are. */
static void
collector_shutdown(CustomScanState *css)
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
 * What became of the filters.  One that is shared is the same for all processes; of
 * the others there is one for each process and each time that the node was run, and
 * keys and bytes are those of one, as EXPLAIN does it with rows.
 */
static void
explain_filters(CollectState *state, ExplainState *es)
{
	const JoinFilter *filter = state->filter;
	const double loops = state->css.ss.ps.instrument->nloops;
	const bool	shared = state->css.ss.ps.plan->parallel_aware && filter != NULL;
	const double keys = shared ? (double) filter->keys : state->css.ss.ps.instrument->ntuples2 / loops;
	const double bytes = shared ? (double) filter->bytes : state->css.ss.ps.instrument->nfiltered1 / loops;
	const double off = state->css.ss.ps.instrument->nfiltered2;
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
collector_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CollectState *state = (CollectState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	ExplainPropertyText("Filter Keys", psprintf("$%d (%s)", state->paramid,
												joinfilter_deparse(css, plan->custom_exprs, ancestors, es)), es);
	if (es->analyze && css->ss.ps.instrument != NULL && css->ss.ps.instrument->nloops > 0)
		explain_filters(state, es);
}

static const CustomScanMethods collector_methods = {
	.CustomName = COLLECTOR_NAME,
	.CreateCustomScanState = collector_create
};

static const CustomExecMethods collector_exec_methods = {
	.CustomName = COLLECTOR_NAME,
	.BeginCustomScan = collector_begin,
	.ExecCustomScan = collector_exec_custom,
	.EndCustomScan = collector_end,
	.ReScanCustomScan = collector_rescan,
	.EstimateDSMCustomScan = collector_estimate_dsm,
	.InitializeDSMCustomScan = collector_initialize_dsm,
	.ReInitializeDSMCustomScan = collector_reinitialize_dsm,
	.InitializeWorkerCustomScan = collector_initialize_worker,
	.ShutdownCustomScan = collector_shutdown,
	.ExplainCustomScan = collector_explain
};

void
joinfilter_register_collector(void)
{
	RegisterCustomScanMethods(&collector_methods);
}
