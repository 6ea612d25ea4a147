/*
 * probe.c
 *		The custom scan above a scan that asks filters row by row.
 *
 * This works above every kind of scan: of indexes, of foreign tables, of samples, and
 * where row-level security has conditions of its own, which then come first.
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

#include "joinfilter.h"

#define PROBE_NAME	"Join Filter Probe"

/* A filter that is asked here. */
typedef struct Asking
{
	int			paramid;
	int			n_keys;
	AttrNumber *columns;		/* of the child's rows */
} Asking;

typedef struct ProbeState
{
	CustomScanState css;
	int			n;
	Asking	   *asking;
	ExecProcNodeMtd usual;		/* while rows are only passed on: how this
								 * node was executed before */
} ProbeState;

static const CustomScanMethods probe_methods;
static const CustomExecMethods probe_exec_methods;

CustomScan *
joinfilter_probe(Plan *scan, int plan_node_id, List *probes)
{
	CustomScan *node = joinfilter_pass_through(scan, plan_node_id, &probe_methods);
	ListCell   *cell;

	foreach(cell, probes)
	{
		JoinProbe  *probe = lfirst(cell);
		List	   *keys = NIL;
		ListCell   *number;

		foreach(number, probe->numbers)
			keys = lappend(keys, bf_copy_object(((TargetEntry *) list_nth(node->custom_scan_tlist, lfirst_int(number) - 1))->expr));
		node->custom_private = lappend(node->custom_private, lcons_int(probe->paramid, list_copy(probe->numbers)));
		node->custom_exprs = lappend(node->custom_exprs, keys);
	}
	return node;
}

static Node *
probe_create(CustomScan *plan)
{
	ProbeState *state = (ProbeState *) newNode(sizeof(ProbeState), T_CustomScanState);

	state->css.methods = &probe_exec_methods;
	return (Node *) state;
}

static void
probe_begin(CustomScanState *css, EState *estate, int eflags)
{
	ProbeState *state = (ProbeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	ListCell   *cell;
	int			i = 0;

	joinfilter_begin_pass_through(css, estate, eflags);
	state->n = list_length(plan->custom_private);
	state->asking = palloc0(sizeof(Asking) * state->n);
	foreach(cell, plan->custom_private)
	{
		List	   *numbers = lfirst(cell);
		Asking	   *asking = &state->asking[i++];

		asking->paramid = linitial_int(numbers);
		asking->n_keys = list_length(numbers) - 1;
		asking->columns = palloc(sizeof(AttrNumber) * asking->n_keys);
		for (int k = 0; k < asking->n_keys; k++)
			asking->columns[k] = (AttrNumber) list_nth_int(numbers, k + 1);
	}
}

/* May the row have a partner?  A NULL has none. */
static bool
row_passes(const Asking *asking, JoinFilter *filter, TupleTableSlot *slot)
{
	uint64		number = 0;

	for (int i = 0; i < asking->n_keys; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, asking->columns[i], &isnull);

		if (isnull)
			return false;
		number = i == 0 ? join_key_number(&filter->outer[0], value) :
			join_key_combine(number, join_key_number(&filter->outer[i], value));
	}
	return join_filter_test(filter, number);
}

/* All filters are switched off: what is left of the node is a call. */
static TupleTableSlot *
pass_on(PlanState *node)
{
	return ExecProcNode(outerPlanState(node));
}

static TupleTableSlot *
probe_exec(CustomScanState *css)
{
	ProbeState *state = (ProbeState *) css;
	ParamExecData *params = css->ss.ps.state->es_param_exec_vals;
	ExprContext *econtext = css->ss.ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(css));
		bool		passes = true;
		int			n_off = 0;

		if (TupIsNull(slot))
			return slot;
		for (int i = 0; i < state->n && passes; i++)
		{
			JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[state->asking[i].paramid].value);

			if (filter == NULL)
				continue;
			if (filter->off)
				n_off++;
			else if (filter->is_integer)	/* nothing is allocated */
				passes = row_passes(&state->asking[i], filter, slot);
			else
			{
				MemoryContext caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

				passes = row_passes(&state->asking[i], filter, slot);
				MemoryContextSwitchTo(caller);
				ResetExprContext(econtext);
			}
		}
		if (n_off == state->n)
		{
			state->usual = css->ss.ps.ExecProcNodeReal;
			ExecSetExecProcNode(&css->ss.ps, pass_on);
		}
		if (passes)
			return slot;
		InstrCountFiltered2(css, 1);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
probe_rescan(CustomScanState *css)
{
	ProbeState *state = (ProbeState *) css;

	if (state->usual != NULL)
	{
		ExecSetExecProcNode(&css->ss.ps, state->usual);
		state->usual = NULL;
	}
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* A merge join marks a row of its inner side, of which it has a copy, and goes on from there. */
static void
probe_mark(CustomScanState *css)
{
	ExecMarkPos(outerPlanState(css));
}

static void
probe_restore(CustomScanState *css)
{
	ExecRestrPos(outerPlanState(css));
}

static void
probe_end(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
}

static void
probe_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	joinfilter_explain_probes(css, plan->custom_private, plan->custom_exprs, ancestors, es);
}

static const CustomScanMethods probe_methods = {
	.CustomName = PROBE_NAME,
	.CreateCustomScanState = probe_create
};

static const CustomExecMethods probe_exec_methods = {
	.CustomName = PROBE_NAME,
	.BeginCustomScan = probe_begin,
	.ExecCustomScan = probe_exec,
	.EndCustomScan = probe_end,
	.ReScanCustomScan = probe_rescan,
	.MarkPosCustomScan = probe_mark,
	.RestrPosCustomScan = probe_restore,
	.ExplainCustomScan = probe_explain
};

void
joinfilter_register_probe(void)
{
	RegisterCustomScanMethods(&probe_methods);
}
