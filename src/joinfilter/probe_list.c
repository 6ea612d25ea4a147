/*
 * probe_list.c
 *		The filters that a node tests: how the plan stores them, the order in which they
 *		are tested, and EXPLAIN.
 */
#include "../compat.h"

#include <math.h>

#include "access/tupmacs.h"
#include "commands/explain.h"
#include "executor/executor.h"

#include "joinfilter.h"

/* The cost of a test where the key has no fixed offset in the row; otherwise it is 1. */
#define COST_WITHOUT_OFFSET	4.0

/* Add a filter to those that a node tests, with its columns in the rows that the node reads, and its keys for EXPLAIN. */
void
joinfilter_write_probe(CustomScan *node, const JoinProbe *probe, List *columns, List *keys)
{
	node->custom_private = lappend(node->custom_private,
								   list_make3(lcons_int(probe->paramid, columns), list_make1_oid(probe->ranges_index), probe->bounds));
	node->custom_exprs = lappend(node->custom_exprs, keys);
}

/* Read the filters that a node tests from its plan. */
JoinProbeState *
joinfilter_read_probes(const CustomScan *node, int *n)
{
	JoinProbeState *probes = palloc0(sizeof(JoinProbeState) * list_length(node->custom_private));

	*n = list_length(node->custom_private);
	for (int i = 0; i < *n; i++)
	{
		List	   *probe = list_nth(node->custom_private, i);
		List	   *numbers = linitial(probe);

		probes[i].paramid = linitial_int(numbers);
		probes[i].n_keys = list_length(numbers) - 1;
		probes[i].columns = palloc(sizeof(AttrNumber) * probes[i].n_keys);
		for (int k = 0; k < probes[i].n_keys; k++)
			probes[i].columns[k] = (AttrNumber) list_nth_int(numbers, k + 1);
		probes[i].offset = -1;
		probes[i].ranges_index = linitial_oid(lsecond(probe));
		probes[i].n_bounds = list_length(lthird(probe)) / 2;
		probes[i].bounds = joinfilter_read_bounds(lthird(probe));
	}
	return probes;
}

/* The offset of a column in all rows that contain no NULL; -1 if it differs between rows. */
static int
fixed_offset(TupleDesc desc, AttrNumber column)
{
	int			offset = 0;

	for (int i = 0; i < column; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attlen <= 0)
			return -1;
		offset = (int) att_align_nominal(offset, attribute->attalign);
		if (i < column - 1)
			offset += attribute->attlen;
	}
	return offset;
}

/* Find the offsets of keys, where the node reads rows of a table as they are stored. */
void
joinfilter_find_offsets(JoinProbeState *probes, int n, TupleDesc desc)
{
	for (int i = 0; i < n; i++)
	{
		if (probes[i].n_keys != 1 || probes[i].columns[0] <= 0)
			continue;
		probes[i].offset = fixed_offset(desc, probes[i].columns[0]);
		probes[i].bytes = TupleDescAttr(desc, probes[i].columns[0] - 1)->attlen;
	}
}

/* The cost of a filter's tests per row that it discards. */
static double
cost_of_drop(const JoinProbeState *probe, const ParamExecData *params)
{
	const JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[probe->paramid].value);
	double		dropped = 0.5;

	if (filter != NULL && filter->tested >= JOIN_FILTER_SAMPLE)
		dropped = 1 - (double) filter->passed / (double) filter->tested;
	return (probe->offset >= 0 ? 1 : COST_WITHOUT_OFFSET) / Max(dropped, 1e-6);
}

/*
 * Sort filters by the cost of discarding a row, as measured so far, so that the cheapest is
 * tested first.  Equal ones keep their order.
 */
void
joinfilter_sort_probes(JoinProbeState *probes, int n, const ParamExecData *params)
{
	for (int i = 1; i < n; i++)
	{
		JoinProbeState probe = probes[i];
		double		cost = cost_of_drop(&probe, params);
		int			place = i;

		for (; place > 0 && cost < cost_of_drop(&probes[place - 1], params); place--)
			probes[place] = probes[place - 1];
		probes[place] = probe;
	}
}

/*
 * Count what a node did not read: a whole partition, and a number of pages.  Both are kept
 * in one counter of the node's instrumentation, because EXPLAIN adds no other up over
 * processes.  A table has less than 2^32 pages.
 */
#define PARTITION	((double) (UINT64CONST(1) << 44))

void
joinfilter_count_skipped(CustomScanState *css, bool partition, uint64 pages)
{
	InstrCountTuples2(css, (partition ? PARTITION : 0) + (double) pages);
}

/* Show in EXPLAIN what was not read, in total. */
static void
explain_skipped(CustomScanState *css, ExplainState *es)
{
	const double counted = css->ss.ps.instrument->ntuples2;
	const double pages = fmod(counted, PARTITION);
	bool		can_skip = false;
	ListCell   *cell;

	foreach(cell, ((CustomScan *) css->ss.ps.plan)->custom_private)
		can_skip = can_skip || lthird(lfirst(cell)) != NIL || OidIsValid(linitial_oid(lsecond(lfirst(cell))));
	if (!can_skip)
		return;
	if (counted >= PARTITION || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyBool("Partition Skipped", counted >= PARTITION, es);
	if (pages > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyFloat("Pages Skipped", NULL, pages, 0, es);
}

/* Show in EXPLAIN which filters a node tests, and how many rows they discarded. */
void
joinfilter_explain_probes(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *texts = NIL;
	ListCell   *probe;
	ListCell   *keys;

	forboth(probe, plan->custom_private, keys, plan->custom_exprs)
		texts = lappend(texts, joinfilter_deparse(css, linitial_int(linitial(lfirst(probe))), lfirst(keys), ancestors, es));
	ExplainPropertyList("Runtime Filter", texts, es);
	if (es->analyze && css->ss.ps.instrument != NULL && css->ss.ps.instrument->nloops > 0)
	{
		ExplainPropertyFloat("Rows Removed by Runtime Filter", NULL,
							 css->ss.ps.instrument->nfiltered2 / css->ss.ps.instrument->nloops, 0, es);
		explain_skipped(css, es);
	}
}
