/*
 * probe_list.c
 *		What the nodes that ask filters have in common: how a plan says which, in
 *		what order they are asked, and what EXPLAIN tells.
 */
#include "../compat.h"

#include "access/tupmacs.h"
#include "commands/explain.h"
#include "executor/executor.h"

#include "joinfilter.h"

/* How much more it costs to read a key that has no fixed place in its row. */
#define COST_OF_SEARCH	4.0

/* Let a node ask this filter, for these columns of the rows that it reads. */
void
joinfilter_write_probe(CustomScan *node, int paramid, List *numbers, List *keys)
{
	node->custom_private = lappend(node->custom_private, lcons_int(paramid, numbers));
	node->custom_exprs = lappend(node->custom_exprs, keys);
}

/* The filters that a node asks. */
JoinAsking *
joinfilter_read_probes(const CustomScan *node, int *n)
{
	JoinAsking *all = palloc0(sizeof(JoinAsking) * list_length(node->custom_private));
	ListCell   *cell;

	*n = 0;
	foreach(cell, node->custom_private)
	{
		List	   *numbers = lfirst(cell);
		JoinAsking *asking = &all[(*n)++];

		asking->paramid = linitial_int(numbers);
		asking->n_keys = list_length(numbers) - 1;
		asking->columns = palloc(sizeof(AttrNumber) * asking->n_keys);
		for (int i = 0; i < asking->n_keys; i++)
			asking->columns[i] = (AttrNumber) list_nth_int(numbers, i + 1);
		asking->offset = -1;
	}
	return all;
}

/* Where a column begins in every row without NULLs; -1 if that differs from row to row. */
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

/* The rows are those of a table: some keys have a place in them that does not change. */
void
joinfilter_find_places(JoinAsking *asking, int n, TupleDesc desc)
{
	for (int i = 0; i < n; i++)
	{
		if (asking[i].n_keys != 1 || asking[i].columns[0] <= 0)
			continue;
		asking[i].offset = fixed_offset(desc, asking[i].columns[0]);
		asking[i].bytes = TupleDescAttr(desc, asking[i].columns[0] - 1)->attlen;
	}
}

/* What it costs to drop a row by this filter. */
static double
cost_of_drop(const JoinAsking *asking, const ParamExecData *params)
{
	const JoinFilter *filter = (JoinFilter *) DatumGetPointer(params[asking->paramid].value);
	double		dropped = 0.5;

	if (filter != NULL && filter->asked >= JOIN_FILTER_SAMPLE)
		dropped = 1 - (double) filter->passed / (double) filter->asked;
	return (asking->offset >= 0 ? 1 : COST_OF_SEARCH) / Max(dropped, 1e-6);
}

/*
 * Bring filters into the order in which they are asked: the one first that drops a row
 * at the least cost, as far as is known by now.  Those that are alike stay in place.
 */
void
joinfilter_sort_asking(JoinAsking *asking, int n, const ParamExecData *params)
{
	for (int i = 1; i < n; i++)
	{
		JoinAsking	one = asking[i];
		double		cost = cost_of_drop(&one, params);
		int			place = i;

		for (; place > 0 && cost < cost_of_drop(&asking[place - 1], params); place--)
			asking[place] = asking[place - 1];
		asking[place] = one;
	}
}

/* Which filters a node asks, and how many rows they have dropped. */
void
joinfilter_explain_probes(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *texts = NIL;
	ListCell   *number_cell;
	ListCell   *key_cell;

	forboth(number_cell, plan->custom_private, key_cell, plan->custom_exprs)
		texts = lappend(texts, joinfilter_deparse(css, linitial_int(lfirst(number_cell)), lfirst(key_cell), ancestors, es));
	ExplainPropertyList("Join Filter", texts, es);
	if (es->analyze && css->ss.ps.instrument != NULL && css->ss.ps.instrument->nloops > 0)
		ExplainPropertyFloat("Rows Removed by Join Filter", NULL,
							 css->ss.ps.instrument->nfiltered2 / css->ss.ps.instrument->nloops, 0, es);
}
