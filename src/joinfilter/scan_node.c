/*
 * scan_node.c
 *		A sequential scan that asks filters for all rows of a page at once.
 *
 * A row that a filter drops should cost as little as possible: no slot, no call of a
 * function, no expression.  So the keys of all visible rows of a page are read from
 * the page, and the filters asked for them one after the other, each for the rows
 * that the ones before let pass; where a filter is large its memory accesses are
 * started together.  Only what is left goes on, one by one, to the scan's own
 * conditions.
 *
 * The first column of a row is often a miss of the cache, so that of a row some
 * places ahead is fetched while one is looked at.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "heap.h"
#include "joinfilter.h"

#define SCAN_NAME	"Join Filter Scan"

/* How far ahead of the row that is looked at the next ones are fetched. */
#define ROWS_AHEAD	6

/* After how many pages it is looked whether filters should be asked in another order. */
#define PAGES_OF_ORDER	128

typedef struct BatchScanState
{
	CustomScanState css;
	int			n;
	JoinAsking *asking;
	bool		finished;
	int			pages;			/* read by now */
	int			selected;		/* rows of this page that passed */
	int			next;			/* of them, to return */
	OffsetNumber selection[MaxHeapTuplesPerPage];
	HeapTupleData tuple;
} BatchScanState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

/* A sequential scan that asks these filters. */
CustomScan *
joinfilter_scan(SeqScan *from, List *probes)
{
	Scan	   *scan = (Scan *) from;
	CustomScan *result = makeNode(CustomScan);
	ListCell   *cell;

	result->scan.plan = scan->plan;
	result->scan.plan.type = T_CustomScan;
	result->scan.scanrelid = scan->scanrelid;
	result->custom_relids = bms_make_singleton((int) scan->scanrelid);
	foreach(cell, probes)
	{
		JoinProbe  *probe = lfirst(cell);
		List	   *numbers = NIL;
		ListCell   *column;

		foreach(column, probe->columns)
			numbers = lappend_int(numbers, lfirst_node(Var, column)->varattno);
		joinfilter_write_probe(result, probe->paramid, numbers, bf_copy_object(probe->columns));
	}
	result->methods = &joinfilter_scan_methods;
	return result;
}

/* ----------------------------------------------------------------
 * Asking
 * ----------------------------------------------------------------
 */

/* Point the tuple at a row of the page. */
static inline void
look_at(BatchScanState *state, Page page, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);

	state->tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	state->tuple.t_len = ItemIdGetLength(item);
}

/* The number of a row's keys; false if one is NULL, which has no partner. */
static inline bool
row_number(BatchScanState *state, const JoinAsking *asking, JoinFilter *filter, TupleDesc desc, uint64 *number)
{
	*number = 0;
	for (int i = 0; i < asking->n_keys; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(&state->tuple, asking->columns[i], desc, &isnull);

		if (isnull)
			return false;
		*number = join_key_append(filter->outer, i, *number, value);
	}
	return true;
}

/*
 * Start to read a row of the page that is looked at some rows later: its header, and
 * its key where that may lie in the cache line after.
 */
static inline void
fetch_ahead(const BatchScanState *state, const JoinAsking *asking, Page page, int i)
{
	const char *row;

	if (i >= state->selected)
		return;
	row = (const char *) PageGetItem(page, PageGetItemId(page, state->selection[i]));
	bf_prefetch(row + offsetof(HeapTupleHeaderData, t_infomask2));
	bf_prefetch(row + MAXALIGN(SizeofHeapTupleHeader) + Max(asking->offset, 0));
}

/*
 * Ask a bitmap for a key whose place in the row is known: nothing is called, and no
 * branch depends on what is found.  Rows with NULLs, or older than the column, take
 * the way of all others.
 */
static pg_attribute_always_inline void
ask_bitmap(BatchScanState *state, const JoinAsking *asking, JoinFilter *filter, Page page, TupleDesc desc, int bytes)
{
	const uint64 *bits = filter->bits;
	const uint64 low = (uint64) filter->low;
	const uint64 span = (uint64) filter->high - low;
	const uint64 base = filter->base;
	const uint64 mask = filter->mask;
	const int	offset = asking->offset;
	const uint64 asked_before = filter->asked;
	int			n = state->selected;
	int			others = 0;
	int			others_kept = 0;
	int			kept = 0;

	for (int i = 0; i < n; i++)
	{
		OffsetNumber row = state->selection[i];
		HeapTupleHeader header = (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, row));
		uint64		number;
		bool		found;

		fetch_ahead(state, asking, page, i + ROWS_AHEAD);
		if (unlikely((header->t_infomask & HEAP_HASNULL) || HeapTupleHeaderGetNatts(header) < asking->columns[0]))
		{
			look_at(state, page, row);
			found = row_number(state, asking, filter, desc, &number) && join_filter_test(filter, number);
			others++;
			others_kept += found;
		}
		else
		{
			uint64		place;
			bool		within;

			number = join_key_read((const char *) header + header->t_hoff + offset, bytes);
			within = number - low <= span;
			place = within ? (number - base) & mask : 0;
			found = (bits[place / 64] >> place % 64) & within;
		}
		state->selection[kept] = row;
		kept += found;
	}
	state->selected = kept;
	filter->asked += (uint64) (n - others);
	filter->passed += (uint64) (kept - others_kept);
	if (asked_before < JOIN_FILTER_SAMPLE && filter->asked >= JOIN_FILTER_SAMPLE)
		join_filter_judge(filter);
}

/* Keep those of the selected rows that may have a partner. */
static void
ask_filter(BatchScanState *state, const JoinAsking *asking, JoinFilter *filter, Page page, TupleDesc desc)
{
	uint64		numbers[MaxHeapTuplesPerPage];
	int			n = 0;
	int			kept = 0;
	bool		prefetch;

	if (unlikely(filter->shared != NULL))
		join_shared_open(filter);
	prefetch = filter->kind == JOIN_FILTER_LINES;
	for (int i = 0; i < ROWS_AHEAD; i++)
		fetch_ahead(state, asking, page, i);
	if (filter->kind == JOIN_FILTER_BITMAP && asking->offset >= 0 && filter->outer[0].key.integer_bytes == asking->bytes)
	{
		if (asking->bytes == 8)
			ask_bitmap(state, asking, filter, page, desc, 8);
		else if (asking->bytes == 4)
			ask_bitmap(state, asking, filter, page, desc, 4);
		else
			ask_bitmap(state, asking, filter, page, desc, 2);
		return;
	}
	for (int i = 0; i < state->selected; i++)
	{
		OffsetNumber offset = state->selection[i];

		fetch_ahead(state, asking, page, i + ROWS_AHEAD);
		look_at(state, page, offset);
		if (!row_number(state, asking, filter, desc, &numbers[n]))
			continue;
		if (prefetch)
			(void) bf_lines_prefetch(filter->lines, join_lines_shape(filter->bytes), numbers[n]);
		state->selection[n++] = offset;
	}
	for (int i = 0; i < n; i++)
	{
		state->selection[kept] = state->selection[i];
		kept += join_filter_test(filter, numbers[i]);
	}
	state->selected = kept;
}

/* Go to the next page that has a row to return; false at the end. */
static bool
next_page(BatchScanState *state)
{
	HeapScanDesc scan = (HeapScanDesc) state->css.ss.ss_currentScanDesc;
	ParamExecData *params = state->css.ss.ps.state->es_param_exec_vals;
	TupleDesc	desc = RelationGetDescr(state->css.ss.ss_currentRelation);
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller;

	do
	{
		Page		page;

		if (!heap_next_page(scan))
			return false;
		page = BufferGetPage(scan->rs_cbuf);
		state->selected = (int) scan->rs_ntuples;
		state->next = 0;
		memcpy(state->selection, scan->rs_vistuples, sizeof(OffsetNumber) * scan->rs_ntuples);
		if (state->n > 1 && ++state->pages % PAGES_OF_ORDER == 0)
			joinfilter_sort_asking(state->asking, state->n, params);
		caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		for (int i = 0; i < state->n && state->selected > 0; i++)
		{
			JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[state->asking[i].paramid].value);

			if (filter != NULL && !filter->off)
				ask_filter(state, &state->asking[i], filter, page, desc);
		}
		MemoryContextSwitchTo(caller);
		ResetExprContext(econtext);
		InstrCountFiltered2(&state->css, (double) scan->rs_ntuples - state->selected);
	} while (state->selected == 0);
	return true;
}

/* ----------------------------------------------------------------
 * In the executor
 * ----------------------------------------------------------------
 */

static const CustomExecMethods scan_exec_methods;

static Node *
scan_create(CustomScan *plan)
{
	BatchScanState *state = (BatchScanState *) newNode(sizeof(BatchScanState), T_CustomScanState);

	state->css.methods = &scan_exec_methods;
	return (Node *) state;
}

static void
scan_begin(CustomScanState *css, EState *estate, int eflags)
{
	BatchScanState *state = (BatchScanState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	TupleDesc	desc = RelationGetDescr(css->ss.ss_currentRelation);

	/*
	 * rows are returned where they are, in the buffer; the server expected
	 * copies
	 */
	bf_init_scan_slot(estate, &css->ss, desc, &TTSOpsBufferHeapTuple);
	ExecAssignScanProjectionInfoWithVarno(&css->ss, (int) plan->scan.scanrelid);
	css->ss.ps.qual = ExecInitQual(plan->scan.plan.qual, &css->ss.ps);

	state->asking = joinfilter_read_probes(plan, &state->n);
	joinfilter_find_places(state->asking, state->n, desc);
	joinfilter_sort_asking(state->asking, state->n, estate->es_param_exec_vals);
	state->tuple.t_tableOid = RelationGetRelid(css->ss.ss_currentRelation);
}

/* The next row that the filters let pass. */
static TupleTableSlot *
scan_next(ScanState *node)
{
	BatchScanState *state = (BatchScanState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	HeapScanDesc scan;

	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = bf_table_beginscan(node->ss_currentRelation, node->ps.state->es_snapshot);
	if (state->next == state->selected)
	{
		ExecClearTuple(slot);	/* it has the page pinned */
		if (state->finished || !next_page(state))
		{
			state->finished = true;
			return slot;
		}
	}
	scan = (HeapScanDesc) node->ss_currentScanDesc;
	look_at(state, BufferGetPage(scan->rs_cbuf), state->selection[state->next]);
	ItemPointerSet(&state->tuple.t_self, scan->rs_cblock, state->selection[state->next]);
	state->next++;
	return ExecStoreBufferHeapTuple(&state->tuple, slot, scan->rs_cbuf);
}

/* Nothing is checked again: such statements have no filters. */
static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
scan_exec(CustomScanState *css)
{
	return ExecScan(&css->ss, scan_next, scan_recheck);
}

static void
scan_rescan(CustomScanState *css)
{
	BatchScanState *state = (BatchScanState *) css;

	state->selected = state->next = 0;
	state->finished = false;
	if (css->ss.ss_currentScanDesc != NULL)
		table_rescan(css->ss.ss_currentScanDesc, NULL);
	ExecScanReScan(&css->ss);
}

static void
scan_end(CustomScanState *css)
{
	if (css->ss.ss_currentScanDesc != NULL)
		table_endscan(css->ss.ss_currentScanDesc);
}

static Size
scan_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return table_parallelscan_estimate(css->ss.ss_currentRelation, css->ss.ps.state->es_snapshot);
}

static void
scan_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	table_parallelscan_initialize(css->ss.ss_currentRelation, coordinate, css->ss.ps.state->es_snapshot);
	css->ss.ss_currentScanDesc = bf_table_beginscan_parallel(css->ss.ss_currentRelation, coordinate);
}

static void
scan_reinitialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	table_parallelscan_reinitialize(css->ss.ss_currentRelation, coordinate);
}

static void
scan_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	css->ss.ss_currentScanDesc = bf_table_beginscan_parallel(css->ss.ss_currentRelation, coordinate);
}

const CustomScanMethods joinfilter_scan_methods = {
	.CustomName = SCAN_NAME,
	.CreateCustomScanState = scan_create
};

static const CustomExecMethods scan_exec_methods = {
	.CustomName = SCAN_NAME,
	.BeginCustomScan = scan_begin,
	.ExecCustomScan = scan_exec,
	.EndCustomScan = scan_end,
	.ReScanCustomScan = scan_rescan,
	.EstimateDSMCustomScan = scan_estimate_dsm,
	.InitializeDSMCustomScan = scan_initialize_dsm,
	.ReInitializeDSMCustomScan = scan_reinitialize_dsm,
	.InitializeWorkerCustomScan = scan_initialize_worker,
	.ExplainCustomScan = joinfilter_explain_probes
};
