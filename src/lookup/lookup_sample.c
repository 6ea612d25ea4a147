/*
 * lookup_sample.c
 *		Estimates which share of the keys that are looked up exists.
 *
 * The planner's own estimate assumes that all keys of the smaller side of a join exist in the
 * larger one, which is the opposite of where a filter helps.  So keys of the outer side are
 * sampled while the query is planned, and the filter is probed for them.
 *
 * The keys are those of visible rows on a few pages of the outer table, which are up to date
 * even if the table was filled a moment ago; or else values of its statistics.  A sample reads
 * at most SAMPLE_PAGES pages of the outer table, and probes filters SAMPLE_PROBES times.  Of a
 * partitioned table with filters it probes those of SAMPLE_TABLES partitions.  Conditions of
 * the query on the outer table are not evaluated: that could raise errors.
 *
 * The result shows in EXPLAIN.  So the current user must be able to read the keys of both
 * tables (trust.c), and no policy or security barrier may hide rows of them.
 */
#include "../compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "../index/index.h"
#include "../index/trust.h"
#include "lookup.h"

#define SAMPLE_PAGES	4
#define SAMPLE_KEYS		64
#define SAMPLE_TABLES	8
#define SAMPLE_PROBES	64

/* With fewer keys on the pages, the statistics are used. */
#define SAMPLE_FEWEST	8

/* ----------------------------------------------------------------
 * Where the keys come from
 * ----------------------------------------------------------------
 */

/* The column of a table that keys come from. */
typedef struct Source
{
	RangeTblEntry *table;		/* NULL if unknown */
	AttrNumber	column;
	double		rows;			/* lookups, or -1 if unknown */
} Source;

static Node *
strip_relabel(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/* Find the column of a table that a column of the range table is, through subqueries. */
static void
trace_column(Source *source, List *rtable, Var *column)
{
	for (;;)
	{
		RangeTblEntry *rte;
		TargetEntry *entry;

		if (column->varlevelsup > 0 || column->varattno <= 0 || column->varno > list_length(rtable))
			return;
		rte = rt_fetch(column->varno, rtable);
		if (rte->security_barrier || rte->securityQuals != NIL)
			return;
		if (rte->rtekind == RTE_RELATION)
		{
			source->table = rte;
			source->column = column->varattno;
			return;
		}
		if (rte->rtekind != RTE_SUBQUERY || rte->subquery == NULL || rte->subquery->setOperations != NULL)
			return;
		entry = get_tle_by_resno(rte->subquery->targetList, column->varattno);
		column = entry == NULL ? NULL : (Var *) strip_relabel((Node *) entry->expr);
		if (column == NULL || !IsA(column, Var))
			return;
		rtable = rte->subquery->rtable;
	}
}

/* Find the column of an outer query that a parameter stands for; *root becomes that query. */
static Node *
outer_column(PlannerInfo **root, const Param *param)
{
	for (*root = (*root)->parent_root; *root != NULL; *root = (*root)->parent_root)
	{
		ListCell   *cell;

		foreach(cell, (*root)->plan_params)
		{
			PlannerParamItem *item = lfirst(cell);

			if (item->paramId == param->paramid)
				return item->item;
		}
	}
	return NULL;
}

/* Find where the keys of a condition come from, and how many there are. */
static Source
find_source(PlannerInfo *root, Node *key)
{
	Source		source = {NULL, InvalidAttrNumber, -1};
	Var		   *column;

	key = strip_relabel(key);
	if (IsA(key, Var))
	{
		column = (Var *) key;
		if (root->simple_rel_array[column->varno] != NULL)
			source.rows = root->simple_rel_array[column->varno]->rows;
		trace_column(&source, root->parse->rtable, column);
	}
	else if (IsA(key, Param))
	{
		/* the outer query has no estimates yet */
		column = (Var *) outer_column(&root, (Param *) key);
		if (column != NULL && IsA(column, Var))
		{
			Var			local = *column;

			local.varlevelsup = 0;
			trace_column(&source, root->parse->rtable, &local);
		}
	}
	else
	{
		Relids		relids = pull_varnos(root, key);
		int			relid = bms_is_empty(relids) || bms_membership(relids) == BMS_MULTIPLE ? 0 : bms_singleton_member(relids);

		if (relid > 0 && root->simple_rel_array[relid] != NULL)
			source.rows = root->simple_rel_array[relid]->rows;
	}
	return source;
}

/* ----------------------------------------------------------------
 * Keys of the outer side
 * ----------------------------------------------------------------
 */

typedef struct Keys
{
	int			n;
	Datum		values[SAMPLE_KEYS];
	bool		nulls[SAMPLE_KEYS];
} Keys;

/* Add the keys of some visible rows of a page, evenly spaced. */
static void
add_keys_of_page(Keys *keys, Relation table, AttrNumber column, BlockNumber block, Snapshot snapshot)
{
	Buffer		buffer = ReadBuffer(table, block);
	HeapTuple	rows[SAMPLE_KEYS / SAMPLE_PAGES];
	int			n = 0;
	Page		page = BufferGetPage(buffer);
	OffsetNumber last;
	OffsetNumber step;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	last = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	step = (OffsetNumber) Max(last / lengthof(rows), 1);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last && n < (int) lengthof(rows); offset += step)
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleData tuple;

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(table);
		ItemPointerSet(&tuple.t_self, block, offset);
		if (HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer))
			rows[n++] = heap_copytuple(&tuple);
	}
	UnlockReleaseBuffer(buffer);
	for (int i = 0; i < n; i++, keys->n++)
		keys->values[keys->n] = heap_getattr(rows[i], column, RelationGetDescr(table), &keys->nulls[keys->n]);
}

/* Collect keys of pages that are evenly spaced in a table. */
static void
keys_of_pages(Keys *keys, Relation table, AttrNumber column)
{
	BlockNumber blocks;
	int			pages;

	if (table->rd_tableam != GetHeapamTableAmRoutine() || !ActiveSnapshotSet())
		return;
	blocks = RelationGetNumberOfBlocks(table);
	pages = (int) Min(blocks, SAMPLE_PAGES);
	for (int i = 0; i < pages; i++)
		add_keys_of_page(keys, table, column, (BlockNumber) (((uint64) i * 2 + 1) * blocks / (2 * pages)),
						 GetActiveSnapshot());
}

/* Collect values of the statistics: of the histogram, or the most common ones. */
static void
keys_of_statistics(Keys *keys, Oid table, AttrNumber column, bool inherited)
{
	static const int kinds[] = {STATISTIC_KIND_HISTOGRAM, STATISTIC_KIND_MCV};
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(column), BoolGetDatum(inherited));

	if (!HeapTupleIsValid(tuple))
		return;
	for (int kind = 0; kind < lengthof(kinds) && keys->n < SAMPLE_FEWEST; kind++)
	{
		AttStatsSlot slot;

		if (!get_attstatsslot(&slot, tuple, kinds[kind], InvalidOid, ATTSTATSSLOT_VALUES))
			continue;
		for (int i = 0; i < SAMPLE_KEYS && i < slot.nvalues && keys->n < SAMPLE_KEYS; i++, keys->n++)
		{
			int			place = slot.nvalues <= SAMPLE_KEYS ? i : (int) ((int64) i * slot.nvalues / SAMPLE_KEYS);

			keys->values[keys->n] = datumCopy(slot.values[place], get_typbyval(slot.valuetype), get_typlen(slot.valuetype));
			keys->nulls[keys->n] = false;
		}
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
}

/* Collect keys of the outer side.  There may be none.  Also estimates the number of lookups if it is not known. */
static void
sample_keys(Keys *keys, Source *source)
{
	Relation	table;

	keys->n = 0;
	if (source->table == NULL || !trust_may_read(source->table->relid, trust_column(source->column)))
		return;
	table = try_relation_open(source->table->relid, NoLock);
	if (table == NULL)
		return;
	if (!RELATION_IS_OTHER_TEMP(table) && !(RecoveryInProgress() && !RelationIsPermanent(table)))
	{
		bool		stored = table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW;
		BlockNumber pages;
		double		visible;

		if (source->rows < 0 && stored)
			estimate_rel_size(table, NULL, &pages, &source->rows, &visible);
		else if (source->rows < 0 && table->rd_rel->reltuples > 0)
			source->rows = table->rd_rel->reltuples;
		if (source->rows < 0 || source->rows >= lookup_min_rows)
		{
			if (stored)
				keys_of_pages(keys, table, source->column);
			if (keys->n < SAMPLE_FEWEST)
				keys_of_statistics(keys, source->table->relid, source->column, !stored);
		}
	}
	relation_close(table, NoLock);
}

/* ----------------------------------------------------------------
 * Probing
 * ----------------------------------------------------------------
 */

/* Return the filter of another partition that corresponds to this one. */
static IndexOptInfo *
corresponding_filter(PlannerInfo *root, const IndexOptInfo *filter, const RelOptInfo *partition)
{
	char	   *name;
	ListCell   *cell;

	if (partition == filter->rel || filter->indexkeys[0] <= 0)
		return partition == filter->rel ? (IndexOptInfo *) filter : NULL;
	name = get_attname(planner_rt_fetch(filter->rel->relid, root)->relid, (AttrNumber) filter->indexkeys[0], false);
	foreach(cell, partition->indexlist)
	{
		IndexOptInfo *other = lfirst_node(IndexOptInfo, cell);

		if (lookup_is_filter(other) && other->opfamily[0] == filter->opfamily[0] && other->indexkeys[0] > 0 &&
			strcmp(name, get_attname(planner_rt_fetch(partition->relid, root)->relid, (AttrNumber) other->indexkeys[0], false)) == 0)
			return other;
	}
	return NULL;
}

/* Choose the filters to probe: this one, or those of some partitions. */
static int
choose_filters(PlannerInfo *root, const RelOptInfo *rel, IndexOptInfo *filter, IndexOptInfo **chosen)
{
	Index		parent = lookup_topmost_parent(root, rel->relid);
	List	   *tables = NIL;
	int			n = 0;

	for (Index i = 1; parent != rel->relid && i < (Index) root->simple_rel_array_size; i++)
	{
		RelOptInfo *other = root->simple_rel_array[i];

		if (other != NULL && other->reloptkind == RELOPT_OTHER_MEMBER_REL && other->indexlist != NIL &&
			!IS_DUMMY_REL(other) && lookup_topmost_parent(root, i) == parent)
			tables = lappend(tables, other);
	}
	for (int i = 0; i < Min(list_length(tables), SAMPLE_TABLES); i++)
	{
		int			place = list_length(tables) <= SAMPLE_TABLES ? i : i * list_length(tables) / SAMPLE_TABLES;
		IndexOptInfo *other = corresponding_filter(root, filter, list_nth(tables, place));

		if (other != NULL)
			chosen[n++] = other;
	}
	if (n == 0)
		chosen[n++] = filter;
	return n;
}

/* Probe a filter for some of the keys, starting with the given one; returns false if that is not allowed. */
static bool
probe_filter(PlannerInfo *root, const IndexOptInfo *filter, Oid key_type, const Keys *keys, int first, int n, int *found)
{
	Relation	index = index_open(filter->indexoid, NoLock);
	bool		allowed = trust_planner_may_probe(root, filter->rel->relid, index);
	KeyType    *type = index_key_type_of_operand(index, key_type, CurrentMemoryContext);

	allowed = allowed && index_key_class_matches(bfindex_class(index), type);
	for (int i = 0; allowed && i < n; i++)
	{
		int			key = (first + i) % keys->n;

		if (!keys->nulls[key] &&
			bfindex_contains_hash(index, bfindex_hash(key_hash(type, keys->values[key])), NULL, NULL))
			(*found)++;
	}
	index_close(index, NoLock);
	return allowed;
}

/* Estimate the share of keys that exist. */
static LookupShare
sample_share(PlannerInfo *root, RelOptInfo *rel, const LookupMatch *match)
{
	LookupShare result = {LOOKUP_UNKNOWN, 1};
	Source		source = find_source(root, lsecond(match->condition->args));
	IndexOptInfo *filters[SAMPLE_TABLES];
	Keys		keys;
	Oid			column_type;
	Oid			key_type;
	int			n_filters;
	int			n_keys;
	int			found = 0;

	if (source.rows >= 0 && source.rows < lookup_min_rows)
		return (LookupShare) {LOOKUP_FEW, 1};
	sample_keys(&keys, &source);
	if (source.rows >= 0 && source.rows < lookup_min_rows)
		return (LookupShare) {LOOKUP_FEW, 1};
	if (keys.n == 0)
		return result;
	op_input_types(match->condition->opno, &column_type, &key_type);
	n_filters = choose_filters(root, rel, match->filter, filters);
	n_keys = Min(SAMPLE_PROBES / n_filters, keys.n);
	for (int i = 0; i < n_filters; i++)
	{
		if (!probe_filter(root, filters[i], key_type, &keys, i * n_keys, n_keys, &found))
			return result;
	}

	/* neither 0 nor 1 follows from a sample */
	result.share = (found + 0.5) / (n_filters * n_keys + 1);
	result.estimate = LOOKUP_SAMPLED;
	return result;
}

/* ----------------------------------------------------------------
 * Samples of a query
 * ----------------------------------------------------------------
 */

/* A sample that was made while a query is planned. */
typedef struct Sample
{
	PlannerInfo *root;
	Index		table;			/* the topmost parent */
	char	   *column;			/* of it or its partitions; NULL for an
								 * expression */
	OpExpr	   *condition;
	LookupShare share;
} Sample;

/* The samples of the query that is being planned. */
typedef struct Samples
{
	PlannerGlobal *query;
	List	   *samples;
	MemoryContextCallback callback;
} Samples;

static Samples *current_samples = NULL;

static void
forget_samples(void *arg)
{
	if (current_samples == arg)
		current_samples = NULL;
}

/* Return the samples of this query.  They are freed with the memory of its planner. */
static Samples *
samples_of_query(PlannerInfo *root)
{
	if (current_samples == NULL || current_samples->query != root->glob)
	{
		Samples    *samples = MemoryContextAllocZero(root->planner_cxt, sizeof(Samples));

		samples->query = root->glob;
		samples->callback = (MemoryContextCallback) {forget_samples, samples};
		MemoryContextRegisterResetCallback(root->planner_cxt, &samples->callback);
		current_samples = samples;
	}
	return current_samples;
}

/*
 * Return what is known of the keys of a condition.  All partitions of a table share a sample,
 * whose result is the average share of keys that one partition has.
 */
LookupShare
lookup_share(PlannerInfo *root, RelOptInfo *rel, const LookupMatch *match)
{
	Samples    *samples = samples_of_query(root);
	Index		table = lookup_topmost_parent(root, rel->relid);
	char	   *column = NULL;
	MemoryContext caller;
	MemoryContext scratch;
	Sample	   *sample;
	ListCell   *cell;

	if (match->filter->indexkeys[0] > 0)
		column = get_attname(planner_rt_fetch(rel->relid, root)->relid, (AttrNumber) match->filter->indexkeys[0], false);
	foreach(cell, samples->samples)
	{
		sample = lfirst(cell);
		if (sample->root == root && sample->table == table && sample->condition->opno == match->condition->opno &&
			(column == NULL ? sample->column == NULL : sample->column != NULL && strcmp(column, sample->column) == 0) &&
			equal(lsecond(sample->condition->args), lsecond(match->condition->args)))
			return sample->share;
	}
	caller = MemoryContextSwitchTo(root->planner_cxt);
	sample = palloc(sizeof(Sample));
	*sample = (Sample) {root, table, column == NULL ? NULL : pstrdup(column), bf_copy_object(match->condition)};
	scratch = AllocSetContextCreate(caller, "bloomfilter lookup sample", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(scratch);
	sample->share = sample_share(root, rel, match);
	MemoryContextSwitchTo(root->planner_cxt);
	samples = samples_of_query(root);
	samples->samples = lappend(samples->samples, sample);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	return sample->share;
}
