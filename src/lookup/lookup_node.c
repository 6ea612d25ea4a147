/*
 * lookup_node.c
 *		The custom scan that probes filters before it runs its children.
 *
 * It returns the rows of its children, which are scans of one table or of its
 * partitions.  A child is run for a key only if its filter reports the key as present.
 * New parameters are passed to a child only then, so a key that is absent costs only the
 * probe.
 *
 * Filters are probed with the snapshot of the query, so that pages get predicate locks: a
 * serializable transaction has then read that a key is absent.
 *
 * A filter is not probed, and its child always run,
 *	- if the index is not usable now: it may have been dropped since the plan was made, or a
 *	  snapshot may be older than it;
 *	- while the row of a concurrent update is rechecked (EvalPlanQual);
 *	- for a while, if most keys turn out to be present.
 */
#include "../compat.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/partition.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "../index/index.h"
#include "../index/trust.h"
#include "lookup.h"

/*
 * After this many lookups it is decided whether a filter is useful.  If not, it is not
 * probed for the next LOOKUPS_WITHOUT, and then tried again: keys are often ordered.
 */
#define LOOKUPS_OF_SAMPLE	256
#define LOOKUPS_WITHOUT		(64 * LOOKUPS_OF_SAMPLE)

/* A filter is useful if it ends this share of the lookups. */
#define USEFUL_SHARE		0.15

/* The number of pages of all filters whose buffers are remembered. */
#define RECENT_PAGES	32768

/* The number of filters that are prefetched. */
#define PREFETCHED		4

/* One child. */
typedef struct LookupChild
{
	PlanState  *plan;
	Relation	filter;			/* NULL if it is always run */
	Oid			key_type;
	KeyType    *type;			/* how keys of this type are hashed */
	BfindexRecent *recent;		/* buffers of the filter */
	uint64		run;			/* number of the lookup that it was last run
								 * for */
} LookupChild;

typedef struct LookupNodeState
{
	CustomScanState css;
	int			n;
	LookupChild *children;
	ExprState  *key;
	Bitmapset  *changed;		/* parameters that have changed since the
								 * start */

	/* the current lookup */
	uint64		lookup;			/* its number */
	int			current;		/* child whose rows are being returned; -1
								 * before the first */
	int			prefetched;		/* the first child that is not prefetched */
	bool		probing;
	bool		isnull;
	KeyType    *hashed_as;
	uint64		hash;

	/* usefulness */
	uint32		lookups;		/* in this sample */
	uint32		probes;
	uint32		ended;
	uint32		without;		/* lookups until the next sample */
} LookupNodeState;

static const CustomExecMethods lookup_exec_methods;

static Node *
lookup_create(CustomScan *plan)
{
	LookupNodeState *state = (LookupNodeState *) newNode(sizeof(LookupNodeState), T_CustomScanState);

	state->css.methods = &lookup_exec_methods;
	return (Node *) state;
}

/* ----------------------------------------------------------------
 * Start and end
 * ----------------------------------------------------------------
 */

/* Open the filter of a child, if it can be used now.  The lock is kept until the end of the transaction. */
static void
open_filter(LookupNodeState *state, LookupChild *child, Oid filter, Oid key_type)
{
	const CustomScan *plan = castNode(CustomScan, state->css.ss.ps.plan);
	Relation	index = OidIsValid(filter) ? try_relation_open(filter, AccessShareLock) : NULL;

	if (index == NULL)
		return;
	if (bfindex_is(index) && trust_is_usable(index))
	{
		child->key_type = key_type;

		/* partitions have keys of the same type, which are hashed once */
		for (LookupChild *other = state->children; other < child && child->type == NULL; other++)
		{
			if (other->filter != NULL && other->key_type == key_type &&
				index->rd_indcollation[0] == other->filter->rd_indcollation[0] &&
				index_key_type_oid(index) == index_key_type_oid(other->filter))
				child->type = other->type;
		}
		if (child->type == NULL)
			child->type = index_key_type_of_operand(index, key_type, CurrentMemoryContext);
		if (index_key_class_matches(bfindex_class(index), child->type))
		{
			child->filter = index;
			child->recent = bfindex_remember_buffers(index, RECENT_PAGES / Max((uint32) list_length(plan->custom_plans), 1));
			return;
		}
	}
	relation_close(index, NoLock);
}

/* Return slots of the kinds that the children return, or project those. */
static void
begin_result(LookupNodeState *state)
{
	PlanState  *node = &state->css.ss.ps;

	if (state->n == 1)
		node->scanops = ExecGetResultSlotOps(state->children[0].plan, &node->scanopsfixed);
	else
	{
		node->scanops = NULL;
		node->scanopsfixed = false;
	}
	node->scanopsset = true;
	ExecAssignScanProjectionInfoWithVarno(&state->css.ss, INDEX_VAR);
}

static TupleTableSlot *lookup_exec(PlanState *node);

static void
lookup_begin(CustomScanState *css, EState *estate, int eflags)
{
	LookupNodeState *state = (LookupNodeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	ListCell   *child_cell;
	ListCell   *filter_cell;

	state->children = palloc0(sizeof(LookupChild) * list_length(plan->custom_plans));
	state->current = -1;
	if (plan->custom_exprs != NIL)
		state->key = ExecInitExpr(linitial(plan->custom_exprs), &css->ss.ps);
	forboth(child_cell, plan->custom_plans, filter_cell, plan->custom_private)
	{
		LookupChild *child = &state->children[state->n++];

		child->plan = ExecInitNode(lfirst(child_cell), estate, eflags);
		css->custom_ps = lappend(css->custom_ps, child->plan);
		if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY) && state->key != NULL && estate->es_epq_active == NULL)
			open_filter(state, child, list_nth_oid(lfirst(filter_cell), LOOKUP_FILTER),
						list_nth_oid(lfirst(filter_cell), LOOKUP_KEY_TYPE));
	}
	begin_result(state);
	/* called directly, not through ExecCustomScan() */
	css->ss.ps.ExecProcNode = lookup_exec;
}

static void
lookup_end(CustomScanState *css)
{
	LookupNodeState *state = (LookupNodeState *) css;

	for (int i = 0; i < state->n; i++)
	{
		ExecEndNode(state->children[i].plan);
		if (state->children[i].filter != NULL)
			relation_close(state->children[i].filter, NoLock);
	}
}

/* ----------------------------------------------------------------
 * Lookups
 * ----------------------------------------------------------------
 */

/* Decide after a sample whether filters are probed further. */
static void
judge(LookupNodeState *state)
{
	if (state->ended < state->probes * USEFUL_SHARE)
		state->without = LOOKUPS_WITHOUT;
	state->lookups = state->probes = state->ended = 0;
}

/* Start a lookup: evaluate the key. */
static void
start_lookup(LookupNodeState *state)
{
	PlanState  *node = &state->css.ss.ps;

	state->lookup++;
	state->hashed_as = NULL;
	state->prefetched = 0;
	if (state->lookups == LOOKUPS_OF_SAMPLE)
		judge(state);
	state->probing = state->without == 0 && state->key != NULL;
	if (state->probing)
		state->lookups++;
	else if (state->without > 0)
	{
		state->without--;
		InstrCountTuples2(node, 1);
	}
}

/* Hash the key of this lookup. */
static void
hash_key(LookupNodeState *state, KeyType *type)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	Datum		key = ExecEvalExpr(state->key, econtext, &state->isnull);

	if (!state->isnull)
		state->hash = bfindex_hash(key_hash(type, key));
	state->hashed_as = type;
	MemoryContextSwitchTo(caller);
	ResetExprContext(econtext);
}

/* Load what the next probes will read, while the current one is made. */
static inline void
prefetch_next(LookupNodeState *state)
{
	int			until = Min(state->current + 1 + PREFETCHED, state->n);

	for (state->prefetched = Max(state->prefetched, state->current + 1); state->prefetched < until; state->prefetched++)
	{
		LookupChild *child = &state->children[state->prefetched];

		if (child->filter != NULL && child->type == state->hashed_as)
			bfindex_prefetch(child->filter, state->hash, child->recent);
	}
}

/* Can a child have rows for this key?  The operator is strict, so there are none for NULL. */
static inline bool
may_have_rows(LookupNodeState *state, LookupChild *child)
{
	PlanState  *node = &state->css.ss.ps;
	bool		found;

	if (state->hashed_as != child->type)
		hash_key(state, child->type);
	if (state->isnull)
		return false;
	prefetch_next(state);
	pgstat_count_index_scan(child->filter);
	found = bfindex_contains_hash(child->filter, state->hash, node->state->es_snapshot, child->recent);
	state->probes++;
	if (found)
	{
		pgstat_count_index_tuples(child->filter, 1);
		InstrCountFiltered1(node, 1);
	}
	else
	{
		state->ended++;
		InstrCountFiltered2(node, 1);
	}
	return found;
}

/* Pass the parameters that have changed to a child, before it is run for this lookup. */
static void
prepare_child(LookupNodeState *state, LookupChild *child)
{
	if (state->changed != NULL)
		UpdateChangedParamSet(child->plan, state->changed);
	if (child->run != 0 && child->plan->chgParam == NULL)
		ExecReScan(child->plan);
	child->run = state->lookup;
}

/* Advance to the next child that may have rows; returns false if there is none. */
static bool
next_child(LookupNodeState *state)
{
	if (state->current < 0)
		start_lookup(state);
	while (++state->current < state->n)
	{
		LookupChild *child = &state->children[state->current];

		if (!state->probing || child->filter == NULL || may_have_rows(state, child))
		{
			prepare_child(state, child);
			return true;
		}
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

static TupleTableSlot *
lookup_exec(PlanState *node)
{
	LookupNodeState *state = (LookupNodeState *) node;
	TupleTableSlot *slot;

	CHECK_FOR_INTERRUPTS();
	if (state->current >= state->n)
		return NULL;
	for (;;)
	{
		if (state->current < 0)
		{
			if (!next_child(state))
				return NULL;
		}
		slot = ExecProcNode(state->children[state->current].plan);
		if (!TupIsNull(slot))
			break;
		if (!next_child(state))
			return NULL;
	}
	if (node->ps_ProjInfo == NULL)
		return slot;
	ResetExprContext(node->ps_ExprContext);
	node->ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(node->ps_ProjInfo);
}

static TupleTableSlot *
lookup_exec_custom(CustomScanState *css)
{
	return lookup_exec(&css->ss.ps);
}

/* Start again.  Children are rescanned when they are run. */
static void
lookup_rescan(CustomScanState *css)
{
	LookupNodeState *state = (LookupNodeState *) css;

	if (css->ss.ps.chgParam != NULL && !bms_is_subset(css->ss.ps.chgParam, state->changed))
	{
		MemoryContext caller = MemoryContextSwitchTo(css->ss.ps.state->es_query_cxt);

		state->changed = bms_add_members(state->changed, css->ss.ps.chgParam);
		MemoryContextSwitchTo(caller);
	}
	state->current = -1;
}

/* ----------------------------------------------------------------
 * EXPLAIN
 * ----------------------------------------------------------------
 */

/* Return the names of the filters: of the partitioned index that they are partitions of, if there is one. */
static List *
filter_names(const CustomScan *plan)
{
	List	   *filters = NIL;
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, plan->custom_private)
	{
		Oid			filter = list_nth_oid(lfirst(cell), LOOKUP_FILTER);

		if (list_length(plan->custom_private) > 1 && OidIsValid(filter) && get_rel_relispartition(filter))
			filter = llast_oid(get_partition_ancestors(filter));
		if (OidIsValid(filter))
			filters = list_append_unique_oid(filters, filter);
	}
	foreach(cell, filters)
	{
		char	   *name = get_rel_name(lfirst_oid(cell));

		names = lappend(names, name != NULL ? name : pstrdup("?"));
	}
	return names;
}

static void
lookup_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, css->ss.ps.plan, ancestors);

	ExplainPropertyList("Filter Index", filter_names(plan), es);
	if (plan->custom_exprs != NIL)
		ExplainPropertyText("Filter Key", deparse_expression(linitial(plan->custom_exprs), context,
															 list_length(es->rtable) > 1 || es->verbose, false), es);
	if (es->analyze && css->ss.ps.instrument != NULL)
	{
		double		present = css->ss.ps.instrument->nfiltered1;
		double		absent = css->ss.ps.instrument->nfiltered2;
		double		without = css->ss.ps.instrument->ntuples2;

		ExplainPropertyFloat("Filter Probes", NULL, present + absent, 0, es);
		ExplainPropertyFloat("Scans Avoided", NULL, absent, 0, es);
		if (without > 0 || es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyFloat("Lookups While Switched Off", NULL, without, 0, es);
	}
}

const CustomScanMethods lookup_scan_methods = {
	.CustomName = "Lookup Filter",
	.CreateCustomScanState = lookup_create
};

static const CustomExecMethods lookup_exec_methods = {
	.CustomName = "Lookup Filter",
	.BeginCustomScan = lookup_begin,
	.ExecCustomScan = lookup_exec_custom,
	.EndCustomScan = lookup_end,
	.ReScanCustomScan = lookup_rescan,
	.ExplainCustomScan = lookup_explain
};
