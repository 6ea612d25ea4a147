/*
 * lookup_path.c
 *		Adds paths that probe a filter before each lookup, and chooses between them.
 *
 * A path that looks up keys which vary gets a companion: a custom path above it that probes a
 * filter first, and runs the path only for keys that may exist.  With a share h of keys that
 * exist, it costs a probe + h * path.  The planner then decides between a nested loop with
 * it and other joins.  The server's own paths are all kept.
 *
 * There are three cases:
 *
 *	- h has been sampled (lookup_sample.c), and most keys are absent.  The path gets the cost
 *	  above, with a somewhat larger h than sampled: a nested loop with a wrong h can cost
 *	  twice as much as the hash join that it replaces.
 *	- h is not known, or not small enough for this.  The choice of the join remains that of the
 *	  server.  Nested loops that it has chosen get the custom path in place of their inner
 *	  path, at the same cost.  (If that were a path of the table that costs a little less, it
 *	  would win over the index path, and the server would then cost semijoins differently.)
 *	- h is large, or the keys are few: no filter.
 *
 * Whatever the estimate, the node stops probing if that turns out to be useless.
 *
 * For a partitioned table one node takes the place of the Append.  It hashes the key once and
 * runs only partitions that may have it.  It does not where the Append could prune
 * partitions at run time, or is scanned to be updated; there each partition has its own node.
 */
#include "../compat.h"

#include "access/sysattr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"

#include "lookup.h"

static bool lookup_enabled = false;
int			lookup_min_rows = 500;
double		lookup_max_share = 0.8;

static set_rel_pathlist_hook_type previous_rel_hook;
static set_join_pathlist_hook_type previous_join_hook;

/* A probe costs about 0.3 microseconds, a tenth of a lookup in cached pages of a btree. */
#define PROBE_COST			(16 * cpu_operator_cost)

/*
 * The factor by which the share of keys that exist is overestimated.  With it, a million keys
 * that are looked up in five million rows need a sampled share of less than 0.27 (anti join)
 * or 0.14 (left join) for a nested loop to win over the hash join, by their costs.  Measured,
 * it took a third of the time at 0.1; at 0.5 it took between 0.7 and 1.2 times as long.
 */
#define SHARE_MARGIN		1.25

/* ----------------------------------------------------------------
 * Making paths
 * ----------------------------------------------------------------
 */

/* A path that is about to be made: its children, the filter of each, and what is known of the keys. */
typedef struct Draft
{
	List	   *children;
	List	   *filters;		/* five numbers each, see lookup.h */
	int			n_filters;
	LookupShare share;
	Cost		unfiltered;		/* cost of children without a filter */
	Cost		filtered;		/* cost of the others */
} Draft;

static bool
is_lookup_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &lookup_path_methods;
}

/*
 * Return a path that is not freed when add_path() discards it from the list of its table.  It
 * never frees index paths.
 */
static Path *
keep_path(Path *path)
{
	BitmapHeapPath *copy;

	if (!IsA(path, BitmapHeapPath))
		return path;
	copy = makeNode(BitmapHeapPath);
	*copy = *(BitmapHeapPath *) path;
	return &copy->path;
}

/* Is a filter with share a better than one with share b? */
static bool
is_better(const LookupShare *a, const LookupShare *b)
{
	return a->estimate == LOOKUP_SAMPLED && (b->estimate != LOOKUP_SAMPLED || a->share < b->share);
}

/* Add a child to a draft, with the best filter that fits. */
static void
add_child(PlannerInfo *root, Draft *draft, Path *child)
{
	List	   *matches = IsA(child, IndexPath) || IsA(child, BitmapHeapPath) ? lookup_matches(root, child) : NIL;
	LookupMatch *best = NULL;
	LookupShare best_share = {LOOKUP_UNKNOWN, 1};
	ListCell   *cell;

	foreach(cell, matches)
	{
		LookupMatch *match = lfirst(cell);
		LookupShare share = lookup_share(root, child->parent, match);

		if (best == NULL || is_better(&share, &best_share))
		{
			best = match;
			best_share = share;
		}
	}
	draft->children = lappend(draft->children, keep_path(child));
	if (best == NULL)
	{
		draft->filters = lappend(draft->filters, list_make1_oid(InvalidOid));
		draft->unfiltered += child->total_cost;
		return;
	}
	draft->filters = lappend(draft->filters,
							 list_make5_oid(best->filter->indexoid, best->index, (Oid) best->part, (Oid) best->qual, best->condition->opno));
	draft->filtered += child->total_cost;
	if (draft->n_filters++ == 0)
		draft->share = best_share;
}

/* Make a custom path that returns the rows of `path`, with the cost of `path`. */
static CustomPath *
make_path(Path *path, const Draft *draft)
{
	CustomPath *custom = makeNode(CustomPath);

	custom->path.pathtype = T_CustomScan;
	custom->path.parent = path->parent;
	custom->path.pathtarget = path->pathtarget;
	custom->path.param_info = path->param_info;
	custom->path.parallel_safe = path->parallel_safe;
	custom->path.rows = path->rows;
	custom->path.startup_cost = path->startup_cost;
	custom->path.total_cost = path->total_cost;
	custom->path.pathkeys = path->pathkeys;
	bf_copy_disabled_nodes(&custom->path, path);
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	custom->custom_paths = draft->children;
	custom->custom_private = list_make2(draft->filters, path->pathtarget->exprs);
	custom->methods = &lookup_path_methods;
	return custom;
}

/* ----------------------------------------------------------------
 * Partitions
 * ----------------------------------------------------------------
 */

/* Add the columns of a table that an expression contains, as columns of another table of the same names. */
static Bitmapset *
columns_by_name(Bitmapset *columns, Node *expression, Index relid, Oid table, Oid other)
{
	Bitmapset  *members = NULL;
	int			member = -1;

	pull_varattnos(expression, relid, &members);
	while ((member = bms_next_member(members, member)) >= 0)
	{
		AttrNumber	column = (AttrNumber) (member + FirstLowInvalidHeapAttributeNumber);

		if (column > 0 && table != other)
			column = get_attnum(other, get_attname(table, column, false));
		columns = bms_add_member(columns, column - FirstLowInvalidHeapAttributeNumber);
	}
	return columns;
}

/* Return the columns of a table that are partition keys of it or of its partitions. */
static Bitmapset *
partition_columns(PlannerInfo *root, const RelOptInfo *rel)
{
	Oid			table = planner_rt_fetch(rel->relid, root)->relid;
	Bitmapset  *columns = NULL;

	for (Index i = 1; i < (Index) root->simple_rel_array_size; i++)
	{
		const RelOptInfo *other = root->simple_rel_array[i];

		if (other == NULL || other->part_scheme == NULL || lookup_topmost_parent(root, i) != rel->relid)
			continue;
		for (int k = 0; k < other->part_scheme->partnatts; k++)
			columns = columns_by_name(columns, (Node *) other->partexprs[k], i, planner_rt_fetch(i, root)->relid, table);
	}
	return columns;
}

/* Could an Append exclude partitions at run time?  It could if a condition concerns a partition key. */
static bool
may_prune(PlannerInfo *root, const Path *append)
{
	const RelOptInfo *rel = append->parent;
	List	   *conditions = list_copy(rel->baserestrictinfo);
	Bitmapset  *columns = NULL;
	ListCell   *cell;

	if (!enable_partition_pruning || rel->part_scheme == NULL)
		return false;
	if (append->param_info != NULL)
		conditions = list_concat(conditions, append->param_info->ppi_clauses);
	foreach(cell, conditions)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
	return bms_overlap(columns, partition_columns(root, rel));
}

/*
 * Can one node take the place of an Append?  That of a partition which is partitioned itself
 * becomes part of the one above it.  The target list of one that is scanned to be updated
 * has columns that only an Append may have.  Foreign tables may be scanned concurrently by an
 * Append.
 */
static bool
can_replace_append(PlannerInfo *root, AppendPath *append)
{
	RelOptInfo *rel = append->path.parent;
	ListCell   *cell;

	if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION || append->path.parallel_aware || list_length(append->subpaths) < 2 ||
		bms_is_member((int) rel->relid, root->all_result_relids) || may_prune(root, &append->path))
		return false;
	foreach(cell, append->subpaths)
	{
		if (IsA(lfirst(cell), ForeignPath))
			return false;
	}
	return true;
}

/* Add the children of an Append to a draft, without the nodes that probe a filter for one of them. */
static void
add_children(PlannerInfo *root, Draft *draft, List *paths)
{
	ListCell   *cell;

	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		add_child(root, draft, is_lookup_path(path) ? linitial(((CustomPath *) path)->custom_paths) : path);
	}
}

/* Draft a path that probes filters for this one; returns false if there is none. */
static bool
draft_path(PlannerInfo *root, Path *path, Draft *draft)
{
	memset(draft, 0, sizeof(*draft));
	if (!IS_SIMPLE_REL(path->parent) || bf_path_is_disabled(path) || lookup_is_secured(root, path->parent->relid))
		return false;
	if (IsA(path, AppendPath))
	{
		if (!can_replace_append(root, (AppendPath *) path))
			return false;
		add_children(root, draft, ((AppendPath *) path)->subpaths);
	}
	else if (IsA(path, IndexPath) || IsA(path, BitmapHeapPath))
	{
		if (!lookup_has_filter(path->parent))
			return false;
		add_child(root, draft, path);
	}
	return draft->n_filters > 0 && draft->share.estimate != LOOKUP_FEW;
}

/* ----------------------------------------------------------------
 * Choosing
 * ----------------------------------------------------------------
 */

/* Is it worthwhile to probe a filter in a scan that is run anyway? */
static bool
is_useful(const LookupShare *share)
{
	return share->estimate == LOOKUP_UNKNOWN || share->share <= lookup_max_share;
}

/* Insert a path where it belongs in a list that is sorted by cost.  Unlike add_path(), discards none. */
static void
insert_path(RelOptInfo *rel, Path *path)
{
	int			place = 0;

	while (place < list_length(rel->pathlist) && !bf_path_is_disabled((Path *) list_nth(rel->pathlist, place)) &&
		   ((Path *) list_nth(rel->pathlist, place))->total_cost <= path->total_cost)
		place++;
	rel->pathlist = list_insert_nth(rel->pathlist, place, path);
}

/* Add the companion of a path of a table. */
static void
consider_path(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	Draft		draft;
	CustomPath *custom;
	double		share;
	Cost		cost;

	if (!draft_path(root, path, &draft))
		return;
	share = draft.share.share * SHARE_MARGIN;
	cost = draft.n_filters * PROBE_COST + draft.unfiltered + share * draft.filtered;
	custom = make_path(path, &draft);
	if (draft.share.estimate == LOOKUP_SAMPLED && share < 1 && cost < path->total_cost)
	{
		custom->path.startup_cost = Min(PROBE_COST + share * path->startup_cost, cost);
		custom->path.total_cost = cost;
		insert_path(rel, &custom->path);
	}
	else if (path->param_info == NULL && is_useful(&draft.share))
	{
		/*
		 * in a correlated subquery: a path of the same cost, in the same
		 * place
		 */
		ListCell   *cell;

		foreach(cell, rel->pathlist)
		{
			if (lfirst(cell) == path)
				lfirst(cell) = custom;
		}
	}
}

static void
lookup_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *rte)
{
	List	   *paths;
	ListCell   *cell;

	if (previous_rel_hook != NULL)
		previous_rel_hook(root, rel, relid, rte);
	if (!lookup_enabled || rte->rtekind != RTE_RELATION || IS_DUMMY_REL(rel))
		return;
	paths = list_copy(rel->pathlist);
	foreach(cell, paths)
		consider_path(root, rel, lfirst(cell));
}

/* Return a path that probes filters and can take the place of the inner path of a nested loop; NULL if there is none. */
static Path *
replacement(PlannerInfo *root, Path *inner)
{
	Draft		draft;

	if (IsA(inner, MemoizePath))
	{
		Path	   *path = replacement(root, ((MemoizePath *) inner)->subpath);
		MemoizePath *copy;

		if (path == NULL)
			return NULL;
		copy = makeNode(MemoizePath);
		*copy = *(MemoizePath *) inner;
		copy->subpath = path;
		return &copy->path;
	}
	if (inner->param_info == NULL)
		return NULL;
	if (draft_path(root, inner, &draft))
		return is_useful(&draft.share) ? &make_path(inner, &draft)->path : NULL;
	if (IsA(inner, AppendPath) && !inner->parallel_aware)
	{
		AppendPath *append = (AppendPath *) inner;
		AppendPath *copy = NULL;

		for (int i = 0; i < list_length(append->subpaths); i++)
		{
			Path	   *path = replacement(root, list_nth(append->subpaths, i));

			if (path == NULL)
				continue;
			if (copy == NULL)
			{
				copy = makeNode(AppendPath);
				*copy = *append;
				copy->subpaths = list_copy(append->subpaths);
			}
			lfirst(list_nth_cell(copy->subpaths, i)) = path;
		}
		return copy == NULL ? NULL : &copy->path;
	}
	return NULL;
}

/* Probe filters in the nested loops among these paths. */
static void
use_in_nested_loops(PlannerInfo *root, List *paths)
{
	ListCell   *cell;

	foreach(cell, paths)
	{
		JoinPath   *join = lfirst(cell);
		Path	   *path;

		if (!IsA(join, NestPath) || join->outerjoinpath->rows < lookup_min_rows)
			continue;
		path = replacement(root, join->innerjoinpath);
		if (path != NULL)
			join->innerjoinpath = path;
	}
}

static void
lookup_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner,
					 JoinType type, JoinPathExtraData *extra)
{
	if (previous_join_hook != NULL)
		previous_join_hook(root, joinrel, outer, inner, type, extra);
	if (!lookup_enabled)
		return;
	use_in_nested_loops(root, joinrel->pathlist);
	use_in_nested_loops(root, joinrel->partial_pathlist);
}

/* ----------------------------------------------------------------
 * Settings
 * ----------------------------------------------------------------
 */

/* Discard cached plans, which were made with the old setting. */
static void
setting_changed(bool value, void *extra)
{
	if (value != lookup_enabled)
		ResetPlanCache();
}

/* Define the settings, register the node and hook into the planner, when the module is loaded. */
void
lookup_init(void)
{
	DefineCustomBoolVariable("bloomfilter.lookup_filter", "Probes bloomfilter indexes before lookups in other indexes.",
							 "Applies to inner sides of nested loops and to correlated subqueries.",
							 &lookup_enabled, false, PGC_USERSET, 0, NULL, setting_changed, NULL);
	DefineCustomIntVariable("bloomfilter.lookup_filter_min_rows",
							"Sets the minimum estimated number of lookups for a filter to be probed.", NULL,
							&lookup_min_rows, 500, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("bloomfilter.lookup_filter_max_share",
							 "Sets the maximum share of keys that exist for a filter to be probed.", NULL,
							 &lookup_max_share, 0.8, 0, 1, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterCustomScanMethods(&lookup_scan_methods);
	previous_rel_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = lookup_rel_pathlist;
	previous_join_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = lookup_join_pathlist;
}
