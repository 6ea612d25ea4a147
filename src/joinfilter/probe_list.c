/*
 * probe_list.c
 *		The filters that a node tests: how the plan stores them, the order in which they
 *		are tested, and EXPLAIN.
 */
#include "../compat.h"

#include "access/tupmacs.h"
#include "commands/explain.h"
#include "executor/executor.h"

#include "joinfilter.h"

/* The cost of a test where the key has no fixed offset in the row; otherwise it is 1. */
#define COST_WITHOUT_OFFSET	4.0

/* Add a filter to those that a node tests: its parameter, its columns in the rows that the node reads, and its keys for EXPLAIN. */
void
joinfilter_write_probe(CustomScan *node, int paramid, List *columns, List *keys)
{
	node->custom_private = lappend(node->custom_private, lcons_int(paramid, columns));
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
		List	   *numbers = list_nth(node->custom_private, i);

		probes[i].paramid = linitial_int(numbers);
		probes[i].n_keys = list_length(numbers) - 1;
		probes[i].columns = palloc(sizeof(AttrNumber) * probes[i].n_keys);
		for (int k = 0; k < probes[i].n_keys; k++)
			probes[i].columns[k] = (AttrNumber) list_nth_int(numbers, k + 1);
		probes[i].offset = -1;
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

/* Show in EXPLAIN which filters a node tests, and how many rows they discarded. */
void
joinfilter_explain_probes(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *texts = NIL;
	ListCell   *numbers;
	ListCell   *keys;

	forboth(numbers, plan->custom_private, keys, plan->custom_exprs)
		texts = lappend(texts, joinfilter_deparse(css, linitial_int(lfirst(numbers)), lfirst(keys), ancestors, es));
	ExplainPropertyList("Runtime Filter", texts, es);
	if (es->analyze && css->ss.ps.instrument != NULL && css->ss.ps.instrument->nloops > 0)
		ExplainPropertyFloat("Rows Removed by Runtime Filter", NULL,
							 css->ss.ps.instrument->nfiltered2 / css->ss.ps.instrument->nloops, 0, es);
}
