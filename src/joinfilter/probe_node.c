/*
 * probe_node.c
 *		The custom scan above a scan that asks filters row by row.
 *
 * This works above every kind of scan: of indexes, of foreign tables, of samples, and
 * where row-level security has conditions of its own, which then come first.
 *
 * A scan of a table returns a row where it lies on its page, and the key of most rows
 * has a fixed place there: nothing else of the row is looked at before it has passed.
 * A scan that picks columns out of its rows would do so for all of them; this node does
 * it instead, for those that pass.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "joinfilter.h"
#include "nodes.h"

#define PROBE_NAME	"Join Filter Probe"

typedef struct ProbeState
{
	CustomScanState css;
	int			n;
	JoinAsking *asking;
	uint32		rows;			/* asked for since the order was looked at */
	ProjectionInfo *projection; /* of rows that pass, or NULL */
} ProbeState;

static const CustomExecMethods probe_exec_methods;

CustomScan *
joinfilter_probe(Plan *scan, int plan_node_id, List *probes)
{
	CustomScan *node = joinfilter_pass_through(scan, plan_node_id, &joinfilter_probe_methods);
	ListCell   *cell;

	foreach(cell, probes)
	{
		JoinProbe  *probe = lfirst(cell);
		List	   *keys = NIL;
		ListCell   *number;

		foreach(number, probe->resnos)
			keys = lappend(keys, bf_copy_object(((TargetEntry *) list_nth(node->custom_scan_tlist, lfirst_int(number) - 1))->expr));
		joinfilter_write_probe(node, probe->paramid, list_copy(probe->resnos), keys);
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

/*
 * A plan that returns whole rows, in place of a scan of a table that picks columns out
 * of them; NULL if the scan does not, or calculates something.
 */
static Plan *
scan_of_whole_rows(Plan *scan, EState *estate, int eflags)
{
	Index		table = ((Scan *) scan)->scanrelid;
	Plan	   *copy;
	TupleDesc	desc;
	ListCell   *cell;
	bool		whole;

	if (!joinfilter_node_kind(scan)->table_rows || (eflags & EXEC_FLAG_EXPLAIN_ONLY))
		return NULL;
	desc = RelationGetDescr(ExecOpenScanRelation(estate, table, eflags));
	whole = list_length(scan->targetlist) == desc->natts;
	foreach(cell, scan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var		   *column = (Var *) entry->expr;

		if (!IsA(column, Var) || column->varno != (int) table || column->varattno <= 0)
			return NULL;
		whole = whole && column->varattno == entry->resno;
	}
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped || TupleDescAttr(desc, i)->atthasmissing)
			return NULL;
	}
	if (whole)
		return NULL;
	copy = bf_copy_object(scan);
	copy->targetlist = NIL;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		copy->targetlist = lappend(copy->targetlist,
								   makeTargetEntry((Expr *) makeVar((int) table, (AttrNumber) (i + 1), attribute->atttypid,
																	attribute->atttypmod, attribute->attcollation, 0),
												   (AttrNumber) (i + 1), NULL, false));
	}
	return copy;
}

/* Start the scan below, and pick out columns in its place. */
static void
begin_with_projection(ProbeState *state, Plan *scan, Plan *whole, EState *estate, int eflags)
{
	PlanState  *node = &state->css.ss.ps;

	outerPlanState(node) = ExecInitNode(whole, estate, eflags);
	for (int i = 0; i < state->n; i++)
	{
		JoinAsking *asking = &state->asking[i];

		for (int k = 0; k < asking->n_keys; k++)
			asking->columns[k] = ((Var *) list_nth_node(TargetEntry, scan->targetlist, asking->columns[k] - 1)->expr)->varattno;
	}
	node->resultops = &TTSOpsVirtual;
	node->resultopsfixed = true;
	node->resultopsset = true;
	state->projection = ExecBuildProjectionInfo(scan->targetlist, node->ps_ExprContext, node->ps_ResultTupleSlot, NULL,
												ExecGetResultType(outerPlanState(node)));
}

static TupleTableSlot *probe_exec(PlanState *node);

static void
probe_begin(CustomScanState *css, EState *estate, int eflags)
{
	ProbeState *state = (ProbeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	Plan	   *scan = outerPlan(plan);
	Plan	   *whole = scan_of_whole_rows(scan, estate, eflags);
	bool		fixed;

	state->asking = joinfilter_read_probes(plan, &state->n);
	if (whole != NULL)
		begin_with_projection(state, scan, whole, estate, eflags);
	else
		joinfilter_begin_pass_through(css, estate, eflags);
	if (ExecGetResultSlotOps(outerPlanState(css), &fixed) == &TTSOpsBufferHeapTuple && fixed)
		joinfilter_find_places(state->asking, state->n, ExecGetResultType(outerPlanState(css)));
	joinfilter_sort_asking(state->asking, state->n, estate->es_param_exec_vals);
	/* without the detour that custom scans take */
	css->ss.ps.ExecProcNode = probe_exec;
}

/*
 * The integer that is the only key of a row, read from its page.  False if it has no
 * fixed place there, or has already been found.
 */
static inline bool
read_integer(const JoinAsking *asking, const JoinFilter *filter, TupleTableSlot *slot, uint64 *number)
{
	HeapTupleHeader header;

	if (asking->offset < 0 || slot->tts_nvalid >= asking->columns[0] || !filter->is_integer ||
		filter->outer[0].key.integer_bytes != asking->bytes)
		return false;
	header = ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_data;
	if ((header->t_infomask & HEAP_HASNULL) || HeapTupleHeaderGetNatts(header) < asking->columns[0])
		return false;
	*number = join_key_read((const char *) header + header->t_hoff + asking->offset, asking->bytes);
	return true;
}

/* May the row have a partner?  A NULL has none. */
static bool
row_passes(const JoinAsking *asking, JoinFilter *filter, TupleTableSlot *slot)
{
	uint64		number = 0;

	for (int i = 0; i < asking->n_keys; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, asking->columns[i], &isnull);

		if (isnull)
			return false;
		number = join_key_append(filter->outer, i, number, value);
	}
	return join_filter_test(filter, number);
}

/* The same where something may be allocated. */
static bool
row_passes_in_context(const JoinAsking *asking, JoinFilter *filter, TupleTableSlot *slot, ExprContext *econtext)
{
	MemoryContext caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		passes = row_passes(asking, filter, slot);

	MemoryContextSwitchTo(caller);
	ResetExprContext(econtext);
	return passes;
}

/*
 * All filters are switched off: what is left of the node is a call.  Where the child is
 * to be rescanned, so is this node, which then asks again.
 */
static TupleTableSlot *
pass_on(PlanState *node)
{
	PlanState  *child = outerPlanState(node);

	Assert(child->chgParam == NULL);
	return child->ExecProcNode(child);
}

/* Ask all filters for a row. */
static inline bool
ask_filters(ProbeState *state, TupleTableSlot *slot)
{
	PlanState  *node = &state->css.ss.ps;
	ParamExecData *params = node->state->es_param_exec_vals;
	int			n_off = 0;

	for (int i = 0; i < state->n; i++)
	{
		const JoinAsking *asking = &state->asking[i];
		JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[asking->paramid].value);
		uint64		number;

		if (filter == NULL)
			continue;
		if (filter->off)
			n_off++;
		else if (read_integer(asking, filter, slot, &number))
		{
			if (!join_filter_test(filter, number))
				return false;
		}
		else if (filter->is_integer ? !row_passes(asking, filter, slot) :
				 !row_passes_in_context(asking, filter, slot, node->ps_ExprContext))
			return false;
	}
	if (n_off == state->n && state->projection == NULL)
		ExecSetExecProcNode(node, pass_on);
	return true;
}

static TupleTableSlot *
probe_exec(PlanState *node)
{
	ProbeState *state = (ProbeState *) node;
	TupleTableSlot *slot;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		slot = ExecProcNode(outerPlanState(node));
		if (TupIsNull(slot))
			return state->projection == NULL ? slot : ExecClearTuple(node->ps_ResultTupleSlot);
		if (state->n > 1 && ++state->rows % JOIN_FILTER_SAMPLE == 0)
			joinfilter_sort_asking(state->asking, state->n, node->state->es_param_exec_vals);
		if (ask_filters(state, slot))
			break;
		InstrCountFiltered2(node, 1);
	}
	if (state->projection == NULL)
		return slot;
	ResetExprContext(node->ps_ExprContext);
	node->ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(state->projection);
}

static TupleTableSlot *
probe_exec_custom(CustomScanState *css)
{
	return probe_exec(&css->ss.ps);
}

static void
probe_rescan(CustomScanState *css)
{
	/* after a rescan there may be other filters */
	if (css->ss.ps.ExecProcNodeReal == pass_on)
		ExecSetExecProcNode(&css->ss.ps, probe_exec);
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

const CustomScanMethods joinfilter_probe_methods = {
	.CustomName = PROBE_NAME,
	.CreateCustomScanState = probe_create
};

static const CustomExecMethods probe_exec_methods = {
	.CustomName = PROBE_NAME,
	.BeginCustomScan = probe_begin,
	.ExecCustomScan = probe_exec_custom,
	.EndCustomScan = probe_end,
	.ReScanCustomScan = probe_rescan,
	.MarkPosCustomScan = probe_mark,
	.RestrPosCustomScan = probe_restore,
	.ExplainCustomScan = joinfilter_explain_probes
};
