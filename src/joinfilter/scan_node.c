/*
 * scan_node.c
 *		A sequential scan that tests filters for all rows of a page at once.
 *
 * Discarding a row should be as cheap as possible: without a slot, a function call or
 * an expression.  So the keys of all visible rows are read from the page, and the
 * filters are tested one after the other, each for the rows that passed those before it.
 * For a large filter the memory accesses of all rows are started before the first result
 * is needed.  Only the rows that pass are returned, one by one, to the scan's own quals.
 *
 * Pages and partitions that cannot contain a key are not read at all: see page_ranges.c and
 * partition_bounds.c.  This is decided at the first page boundary after a filter is complete;
 * a hash join can read an outer row before.
 *
 * The header of a row is usually not in the processor's cache, so the rows a few places
 * ahead are prefetched.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "heap.h"
#include "joinfilter.h"
#include "page_ranges.h"

#define SCAN_NAME	"Runtime Filter Scan"

/* How many rows ahead of the current one are prefetched. */
#define ROWS_AHEAD	6

/* Filters are sorted again after this many pages. */
#define PAGES_PER_SORT	128

typedef struct ScanNodeState
{
	CustomScanState css;
	int			n;
	JoinProbeState *probes;
	bool		finished;
	bool		undecided;		/* can a filter that is not complete yet rule
								 * out pages? */
	bool		has_index;		/* a BRIN index can rule out pages */
	HeapPages	wanted;			/* pages to read */
	int			pages;			/* read so far */
	int			selected;		/* rows of this page that passed */
	int			next;			/* the one of them to return next */
	OffsetNumber selection[MaxHeapTuplesPerPage];
	HeapTupleData tuple;
} ScanNodeState;

/* ----------------------------------------------------------------
 * In the plan
 * ----------------------------------------------------------------
 */

/* Make a sequential scan that tests these filters. */
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
		List	   *columns = NIL;
		ListCell   *column;

		foreach(column, probe->columns)
			columns = lappend_int(columns, lfirst_node(Var, column)->varattno);
		joinfilter_write_probe(result, probe, columns, bf_copy_object(probe->columns));
	}
	result->methods = &joinfilter_scan_methods;
	return result;
}

/* ----------------------------------------------------------------
 * Testing the rows of a page
 * ----------------------------------------------------------------
 */

/* Let the state's tuple point to a row of the page. */
static inline void
set_tuple(ScanNodeState *state, Page page, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);

	state->tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	state->tuple.t_len = ItemIdGetLength(item);
}

/* Compute the number of the keys of the state's tuple; returns false if one is NULL, which matches nothing. */
static inline bool
tuple_number(ScanNodeState *state, const JoinProbeState *probe, JoinFilter *filter, TupleDesc desc, uint64 *number)
{
	*number = 0;
	for (int i = 0; i < probe->n_keys; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(&state->tuple, probe->columns[i], desc, &isnull);

		if (isnull)
			return false;
		*number = join_key_append(filter->outer, i, *number, value);
	}
	return true;
}

/* Prefetch the header of a row, and its key, which may be in the next cache line. */
static inline void
prefetch_row(const ScanNodeState *state, const JoinProbeState *probe, Page page, int i)
{
	const char *row;

	if (i >= state->selected)
		return;
	row = (const char *) PageGetItem(page, PageGetItemId(page, state->selection[i]));
	bf_prefetch(row + offsetof(HeapTupleHeaderData, t_infomask2));
	bf_prefetch(row + MAXALIGN(SizeofHeapTupleHeader) + Max(probe->offset, 0));
}

/*
 * Test a bitmap for keys at a fixed offset, without a function call and without a branch
 * that depends on the result.  Rows with NULLs, and rows that were stored before the column was
 * added, are tested as in test_filter().
 */
static pg_attribute_always_inline void
test_bitmap(ScanNodeState *state, const JoinProbeState *probe, JoinFilter *filter, Page page, TupleDesc desc, int bytes)
{
	const uint64 *bits = filter->bits;
	const uint64 low = (uint64) filter->low;
	const uint64 span = (uint64) filter->high - low;
	const uint64 base = filter->base;
	const uint64 mask = filter->mask;
	const int	offset = probe->offset;
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

		prefetch_row(state, probe, page, i + ROWS_AHEAD);
		if (unlikely((header->t_infomask & HEAP_HASNULL) || HeapTupleHeaderGetNatts(header) < probe->columns[0]))
		{
			set_tuple(state, page, row);
			found = tuple_number(state, probe, filter, desc, &number) && join_filter_test(filter, number);
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
	join_filter_count(filter, n - others, kept - others_kept);
}

/* Test a filter for the selected rows, and keep those that pass. */
static void
test_filter(ScanNodeState *state, const JoinProbeState *probe, JoinFilter *filter, Page page, TupleDesc desc)
{
	uint64		numbers[MaxHeapTuplesPerPage];
	int			n = 0;
	int			kept = 0;
	bool		prefetch;

	if (unlikely(filter->shared != NULL))
		join_shared_open(filter);
	prefetch = filter->kind == JOIN_FILTER_LINES;
	for (int i = 0; i < ROWS_AHEAD; i++)
		prefetch_row(state, probe, page, i);
	if (filter->kind == JOIN_FILTER_BITMAP && probe->offset >= 0 && filter->outer[0].key.integer_bytes == probe->bytes)
	{
		if (probe->bytes == 8)
			test_bitmap(state, probe, filter, page, desc, 8);
		else if (probe->bytes == 4)
			test_bitmap(state, probe, filter, page, desc, 4);
		else
			test_bitmap(state, probe, filter, page, desc, 2);
		return;
	}
	for (int i = 0; i < state->selected; i++)
	{
		OffsetNumber offset = state->selection[i];

		prefetch_row(state, probe, page, i + ROWS_AHEAD);
		set_tuple(state, page, offset);
		if (!tuple_number(state, probe, filter, desc, &numbers[n]))
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

/*
 * Find out which pages need not be read, as soon as a filter is complete.  Returns false if
 * no page has to be read, because the partition cannot contain a key.
 */
static bool
decide(ScanNodeState *state)
{
	Relation	table = state->css.ss.ss_currentRelation;
	EState	   *estate = state->css.ss.ps.state;

	state->undecided = false;
	for (int i = 0; i < state->n; i++)
	{
		JoinProbeState *probe = &state->probes[i];
		JoinFilter *filter = (JoinFilter *) DatumGetPointer(estate->es_param_exec_vals[probe->paramid].value);

		if (probe->decided || (probe->n_bounds == 0 && !OidIsValid(probe->ranges_index)))
			continue;
		if (filter == NULL)
		{
			state->undecided = true;
			continue;
		}
		probe->decided = true;
		if (!joinfilter_partition_matches(probe, filter))
			return false;
		if (OidIsValid(probe->ranges_index))
		{
			MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

			joinfilter_find_pages(table, probe->ranges_index, probe->columns[0], filter, estate->es_snapshot, &state->wanted);
			MemoryContextSwitchTo(caller);
		}
	}
	return true;
}

/* Count the pages of a partition that are not read.  Processes that share the scan count each page once. */
static void
count_partition(ScanNodeState *state)
{
	HeapScanDesc scan = (HeapScanDesc) state->css.ss.ss_currentScanDesc;

	if (state->css.ss.ps.instrument != NULL)
		joinfilter_count_skipped(&state->css, true,
								 scan != NULL ? heap_skip_rest(scan) : RelationGetNumberOfBlocks(state->css.ss.ss_currentRelation));
}

/* Start the scan, if this process has not started it. */
static HeapScanDesc
begin_scan(ScanNodeState *state)
{
	ScanState  *node = &state->css.ss;

	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = bf_table_beginscan(node->ss_currentRelation, node->ps.state->es_snapshot);
	if (state->has_index && state->wanted.scan != (HeapScanDesc) node->ss_currentScanDesc)
		heap_leave_out((HeapScanDesc) node->ss_currentScanDesc, &state->wanted);
	return (HeapScanDesc) node->ss_currentScanDesc;
}

/* Advance to the next page that has a row to return; returns false after the last page. */
static bool
next_page(ScanNodeState *state)
{
	HeapScanDesc scan;
	ParamExecData *params = state->css.ss.ps.state->es_param_exec_vals;
	TupleDesc	desc = RelationGetDescr(state->css.ss.ss_currentRelation);
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller;

	do
	{
		Page		page;

		if (unlikely(state->undecided) && !decide(state))
		{
			count_partition(state);
			return false;
		}
		scan = begin_scan(state);
		if (!heap_next_page(scan, state->has_index ? &state->wanted : NULL))
			return false;
		page = BufferGetPage(scan->rs_cbuf);
		state->selected = (int) scan->rs_ntuples;
		state->next = 0;
		memcpy(state->selection, scan->rs_vistuples, sizeof(OffsetNumber) * scan->rs_ntuples);
		if (state->n > 1 && ++state->pages % PAGES_PER_SORT == 0)
			joinfilter_sort_probes(state->probes, state->n, params);
		caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		for (int i = 0; i < state->n && state->selected > 0; i++)
		{
			JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[state->probes[i].paramid].value);

			if (filter != NULL && !join_filter_pauses(filter, state->selected))
				test_filter(state, &state->probes[i], filter, page, desc);
		}
		MemoryContextSwitchTo(caller);
		ResetExprContext(econtext);
		InstrCountFiltered2(&state->css, (double) scan->rs_ntuples - state->selected);
	} while (state->selected == 0);
	return true;
}

/* Advance to the next page that has a row to return, and count those that were not read. */
static bool
next_page_counted(ScanNodeState *state)
{
	bool		found = next_page(state);

	if (state->wanted.skipped > 0)
		joinfilter_count_skipped(&state->css, false, state->wanted.skipped);
	state->wanted.skipped = 0;
	return found;
}

/* ----------------------------------------------------------------
 * In the executor
 * ----------------------------------------------------------------
 */

static const CustomExecMethods scan_exec_methods;

static Node *
scan_create(CustomScan *plan)
{
	ScanNodeState *state = (ScanNodeState *) newNode(sizeof(ScanNodeState), T_CustomScanState);

	state->css.methods = &scan_exec_methods;
	return (Node *) state;
}

static void
scan_begin(CustomScanState *css, EState *estate, int eflags)
{
	ScanNodeState *state = (ScanNodeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	TupleDesc	desc = RelationGetDescr(css->ss.ss_currentRelation);

	/* rows stay in their buffer, unlike in the slot that the server made */
	bf_init_scan_slot(estate, &css->ss, desc, &TTSOpsBufferHeapTuple);
	ExecAssignScanProjectionInfoWithVarno(&css->ss, (int) plan->scan.scanrelid);
	css->ss.ps.qual = ExecInitQual(plan->scan.plan.qual, &css->ss.ps);

	state->probes = joinfilter_read_probes(plan, &state->n);
	if (joinfilter_is_recheck(estate))
		state->n = 0;
	joinfilter_find_offsets(state->probes, state->n, desc);
	joinfilter_sort_probes(state->probes, state->n, estate->es_param_exec_vals);
	state->tuple.t_tableOid = RelationGetRelid(css->ss.ss_currentRelation);
	state->undecided = true;
	for (int i = 0; i < state->n; i++)
		state->has_index = state->has_index || OidIsValid(state->probes[i].ranges_index);
}

/* Return the next row that passes the filters. */
static TupleTableSlot *
scan_next(ScanState *node)
{
	ScanNodeState *state = (ScanNodeState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	HeapScanDesc scan;

	if (state->next == state->selected)
	{
		ExecClearTuple(slot);	/* it has the page pinned */
		if (state->finished || !next_page_counted(state))
		{
			state->finished = true;
			return slot;
		}
	}
	scan = (HeapScanDesc) node->ss_currentScanDesc;
	set_tuple(state, BufferGetPage(scan->rs_cbuf), state->selection[state->next]);
	ItemPointerSet(&state->tuple.t_self, scan->rs_cblock, state->selection[state->next]);
	state->next++;
	return ExecStoreBufferHeapTuple(&state->tuple, slot, scan->rs_cbuf);
}

/* Check a new version of a row.  The filters do not apply to it. */
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
	ScanNodeState *state = (ScanNodeState *) css;

	state->selected = state->next = 0;
	state->finished = false;
	state->undecided = true;
	for (int i = 0; i < state->n; i++)
		state->probes[i].decided = false;
	if (state->wanted.bits != NULL)
		pfree(state->wanted.bits);
	state->wanted.bits = NULL;
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
