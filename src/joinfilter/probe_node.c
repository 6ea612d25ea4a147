/*
 * probe_node.c
 *		The custom scan above another scan that tests filters row by row.
 *
 * It works above every kind of scan: of indexes, foreign tables and samples, and also
 * where row-level security applies, because the scan evaluates its quals first.
 *
 * A scan of a table can return a row as it is stored on its page, where most keys have a
 * fixed offset, so that nothing else of the row is read before it has passed.  A scan with a
 * projection would compute it for all rows.  This node then takes the projection over from the
 * scan, and computes it for the rows that pass.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/rel.h"

#include "joinfilter.h"
#include "nodes.h"

#define PROBE_NAME	"Runtime Filter Probe"

typedef struct ProbeNodeState
{
	CustomScanState css;
	int			n;
	JoinProbeState *probes;
	uint32		rows;			/* tested so far */
	bool		undecided;		/* can a filter that is not complete yet rule
								 * out the partition? */
	bool		finished;		/* it was ruled out */
	uint64		pause;			/* rows to return without a test, while all
								 * filters are off */
	uint64		untested;		/* those that are left */
	ProjectionInfo *projection; /* for rows that pass, or NULL */
} ProbeNodeState;

static const CustomExecMethods probe_exec_methods;

/* Make a node above a scan that tests these filters. */
CustomScan *
joinfilter_probe(Plan *scan, int plan_node_id, List *probes)
{
	CustomScan *node = joinfilter_pass_through(scan, plan_node_id, &joinfilter_probe_methods);
	ListCell   *cell;

	foreach(cell, probes)
	{
		JoinProbe  *probe = lfirst(cell);
		List	   *keys = NIL;
		ListCell   *resno;

		foreach(resno, probe->resnos)
			keys = lappend(keys, bf_copy_object(list_nth_node(TargetEntry, node->custom_scan_tlist, lfirst_int(resno) - 1)->expr));
		joinfilter_write_probe(node, probe, list_copy(probe->resnos), keys);
	}
	return node;
}

static Node *
probe_create(CustomScan *plan)
{
	ProbeNodeState *state = (ProbeNodeState *) newNode(sizeof(ProbeNodeState), T_CustomScanState);

	state->css.methods = &probe_exec_methods;
	return (Node *) state;
}

/*
 * Make a copy of a scan that returns whole rows of its table, if the scan has a projection of plain
 * columns; otherwise return NULL.
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

/* Start the copy of the scan that returns whole rows, and take over its projection. */
static void
begin_with_projection(ProbeNodeState *state, Plan *scan, Plan *whole, EState *estate, int eflags)
{
	PlanState  *node = &state->css.ss.ps;

	outerPlanState(node) = ExecInitNode(whole, estate, eflags);
	for (int i = 0; i < state->n; i++)
	{
		AttrNumber *columns = state->probes[i].columns;

		for (int k = 0; k < state->probes[i].n_keys; k++)
			columns[k] = ((Var *) list_nth_node(TargetEntry, scan->targetlist, columns[k] - 1)->expr)->varattno;
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
	ProbeNodeState *state = (ProbeNodeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	Plan	   *scan = outerPlan(plan);
	Plan	   *whole = joinfilter_is_recheck(estate) ? NULL : scan_of_whole_rows(scan, estate, eflags);
	bool		fixed;

	state->probes = joinfilter_read_probes(plan, &state->n);
	if (joinfilter_is_recheck(estate))
		state->n = 0;
	if (whole != NULL)
		begin_with_projection(state, scan, whole, estate, eflags);
	else
		joinfilter_begin_pass_through(css, estate, eflags);
	if (ExecGetResultSlotOps(outerPlanState(css), &fixed) == &TTSOpsBufferHeapTuple && fixed)
		joinfilter_find_offsets(state->probes, state->n, ExecGetResultType(outerPlanState(css)));
	joinfilter_sort_probes(state->probes, state->n, estate->es_param_exec_vals);
	state->undecided = true;
	/* called directly, not through ExecCustomScan() */
	css->ss.ps.ExecProcNode = probe_exec;
}

/*
 * Read the only key of a row, an integer, from its page.  Returns false if it has no fixed
 * offset there, or if the slot already contains it.
 */
static inline bool
read_integer(const JoinProbeState *probe, const JoinFilter *filter, TupleTableSlot *slot, uint64 *number)
{
	HeapTupleHeader header;

	if (probe->offset < 0 || slot->tts_nvalid >= probe->columns[0] || !filter->is_integer ||
		filter->outer[0].key.integer_bytes != probe->bytes)
		return false;
	header = ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_data;
	if ((header->t_infomask & HEAP_HASNULL) || HeapTupleHeaderGetNatts(header) < probe->columns[0])
		return false;
	*number = join_key_read((const char *) header + header->t_hoff + probe->offset, probe->bytes);
	return true;
}

/* Test a filter for a row.  A NULL matches nothing. */
static bool
row_passes(const JoinProbeState *probe, JoinFilter *filter, TupleTableSlot *slot)
{
	uint64		number = 0;

	for (int i = 0; i < probe->n_keys; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, probe->columns[i], &isnull);

		if (isnull)
			return false;
		number = join_key_append(filter->outer, i, number, value);
	}
	return join_filter_test(filter, number);
}

/* The same for keys whose hash functions may allocate memory. */
static bool
row_passes_in_context(const JoinProbeState *probe, JoinFilter *filter, TupleTableSlot *slot, ExprContext *econtext)
{
	MemoryContext caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		passes = row_passes(probe, filter, slot);

	MemoryContextSwitchTo(caller);
	ResetExprContext(econtext);
	return passes;
}

static TupleTableSlot *return_untested(PlanState *node);

/* Test all filters for a row. */
static inline bool
test_filters(ProbeNodeState *state, TupleTableSlot *slot)
{
	PlanState  *node = &state->css.ss.ps;
	ParamExecData *params = node->state->es_param_exec_vals;
	uint64		untested = PG_UINT64_MAX;

	for (int i = 0; i < state->n; i++)
	{
		const JoinProbeState *probe = &state->probes[i];
		JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[probe->paramid].value);
		uint64		number;

		if (filter == NULL)
		{
			untested = 0;
			continue;
		}
		if (join_filter_pauses(filter, 1))
		{
			untested = Min(untested, filter->untested);
			continue;
		}
		untested = 0;
		if (read_integer(probe, filter, slot, &number))
		{
			if (!join_filter_test(filter, number))
				return false;
		}
		else if (filter->is_integer ? !row_passes(probe, filter, slot) :
				 !row_passes_in_context(probe, filter, slot, node->ps_ExprContext))
			return false;
	}
	if (untested > 0 && state->projection == NULL)
	{
		state->pause = state->untested = untested;
		ExecSetExecProcNode(node, return_untested);
	}
	return true;
}

/* Find out whether the partition cannot contain a key, as soon as a filter is complete. */
static bool
decide(ProbeNodeState *state)
{
	const ParamExecData *params = state->css.ss.ps.state->es_param_exec_vals;

	state->undecided = false;
	for (int i = 0; i < state->n; i++)
	{
		JoinProbeState *probe = &state->probes[i];
		JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[probe->paramid].value);

		if (probe->decided || probe->n_bounds == 0)
			continue;
		if (filter == NULL)
		{
			state->undecided = true;
			continue;
		}
		probe->decided = true;
		if (!joinfilter_partition_matches(probe, filter))
		{
			joinfilter_count_skipped(&state->css, true, 0);
			return false;
		}
	}
	return true;
}

static TupleTableSlot *
probe_exec(PlanState *node)
{
	ProbeNodeState *state = (ProbeNodeState *) node;
	TupleTableSlot *slot;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (unlikely(state->undecided) && !decide(state))
			state->finished = true;
		slot = state->finished ? NULL : ExecProcNode(outerPlanState(node));
		if (TupIsNull(slot))
			return state->projection == NULL ? slot : ExecClearTuple(node->ps_ResultTupleSlot);
		if (state->n > 1 && ++state->rows % JOIN_FILTER_SAMPLE == 0)
			joinfilter_sort_probes(state->probes, state->n, node->state->es_param_exec_vals);
		if (test_filters(state, slot))
			break;
		InstrCountFiltered2(node, 1);
	}
	if (state->projection == NULL)
		return slot;
	ResetExprContext(node->ps_ExprContext);
	node->ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(state->projection);
}

/* End a pause of all filters.  If this were inlined, return_untested() would need a stack frame. */
static pg_noinline TupleTableSlot *
resume_tests(ProbeNodeState *state)
{
	PlanState  *node = &state->css.ss.ps;
	const ParamExecData *params = node->state->es_param_exec_vals;

	for (int i = 0; i < state->n; i++)
	{
		JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[state->probes[i].paramid].value);

		if (filter != NULL)
			filter->untested -= Min(filter->untested, state->pause);
	}
	ExecSetExecProcNode(node, probe_exec);
	return probe_exec(node);
}

/*
 * Return the next row of the child, while all filters are switched off.  A rescan of the
 * child also rescans this node, which then tests filters again.
 */
static TupleTableSlot *
return_untested(PlanState *node)
{
	ProbeNodeState *state = (ProbeNodeState *) node;
	PlanState  *child = outerPlanState(node);

	if (unlikely(--state->untested == 0))
		return resume_tests(state);
	Assert(child->chgParam == NULL);
	return child->ExecProcNode(child);
}

static TupleTableSlot *
probe_exec_custom(CustomScanState *css)
{
	return probe_exec(&css->ss.ps);
}

static void
probe_rescan(CustomScanState *css)
{
	ProbeNodeState *state = (ProbeNodeState *) css;

	/* after a rescan there are new filters */
	state->undecided = true;
	state->finished = false;
	for (int i = 0; i < state->n; i++)
		state->probes[i].decided = false;
	if (css->ss.ps.ExecProcNodeReal == return_untested)
		ExecSetExecProcNode(&css->ss.ps, probe_exec);
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* Mark a position for a merge join, which keeps a copy of the row there and only has to continue after it. */
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
