/*
 * joinfilter.h
 *		Filters in hash joins, without a change to the SQL.
 *
 * After planning, filters are added to the finished plan (plan.c).  A custom scan under
 * the Hash node of a join returns the rows of its child and collects their keys
 * (collect_node.c).  When the hash table is complete, the keys become a filter (filter.c),
 * which is passed to the outer side through an executor parameter.  Rows of the outer side that
 * cannot match are then discarded at the scan, below all other joins: by the
 * sequential scan itself, a page at a time (scan_node.c), or by a node above any
 * other scan, row by row (probe_node.c).  As long as the parameter is not set, all rows
 * pass, so the result does not depend on the order in which the executor runs the nodes.
 */
#ifndef BF_JOINFILTER_H
#define BF_JOINFILTER_H

#include "../compat.h"

#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "port/atomics.h"

#include "../core/accumulator.h"
#include "../core/lines.h"
#include "../key.h"

/* The setting bloomfilter.join_filter_memory, in kB. */
extern int	joinfilter_memory;

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

/*
 * How values of one side of a join are mapped to 64-bit numbers, such that values that
 * the join's operator considers equal have the same number.  This is decided by the operator
 * and its collation alone.  The type of a column would not do: the planner strips binary
 * compatible casts and collations from it.
 */
typedef struct JoinKey
{
	int			integer_bytes;	/* 2, 4 or 8: an integer, which is its own
								 * number */
	bool		is_string;		/* equal if and only if the bytes are */
	Oid			function;		/* otherwise the operator's hash function */
	bool		extended;		/* it takes a seed and returns 64 bits */
	Oid			collation;
} JoinKey;

/* The same in the executor. */
typedef struct JoinKeyState
{
	JoinKey		key;
	FmgrInfo	finfo;
} JoinKeyState;

extern int	join_integer_bytes(Oid type);
extern bool join_key_for(Oid operator, Oid collation, Oid outer_type, Oid inner_type, JoinKey *outer, JoinKey *inner);
extern void join_key_init(JoinKeyState *state, const JoinKey *key, MemoryContext context);

/* The number of a value. */
static inline uint64
join_key_number(JoinKeyState *state, Datum value)
{
	switch (state->key.integer_bytes)
	{
		case 2:
			return (uint64) (int64) DatumGetInt16(value);
		case 4:
			return (uint64) (int64) DatumGetInt32(value);
		case 8:
			return (uint64) DatumGetInt64(value);
		default:
			break;
	}
	if (state->key.is_string)
	{
		struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
		uint64		hash = key_hash_bytes(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));

		/* the context is reset only once per page */
		if (unlikely((Pointer) string != DatumGetPointer(value)))
			pfree(string);
		return hash;
	}
	if (state->key.extended)
		return DatumGetUInt64(FunctionCall2Coll(&state->finfo, state->key.collation, value, Int64GetDatum(0)));
	return DatumGetUInt32(FunctionCall1Coll(&state->finfo, state->key.collation, value));
}

/* The number of the keys up to the i-th, given the number of those before it. */
static inline uint64
join_key_append(JoinKeyState *states, int i, uint64 before, Datum value)
{
	uint64		number = join_key_number(&states[i], value);

	return i == 0 ? number : bf_mix64(before) + number;
}

/* The number of an integer at its aligned place in a row. */
static inline uint64
join_key_read(const char *key, int bytes)
{
	if (bytes == 8)
		return *(const uint64 *) key;
	return (uint64) (bytes == 4 ? (int64) *(const int32 *) key : (int64) *(const int16 *) key);
}

/* ----------------------------------------------------------------
 * Filters
 * ----------------------------------------------------------------
 */

typedef enum JoinFilterKind
{
	JOIN_FILTER_EMPTY,			/* no key: no row passes */
	JOIN_FILTER_BITMAP,			/* a bit per integer, or per residue class of
								 * integers */
	JOIN_FILTER_LINES			/* Bloom filter */
} JoinFilterKind;

/*
 * A filter in shared memory that the processes of a Parallel Hash fill together.  Its
 * size is fixed before the first key is known.
 */
typedef struct JoinFilterShared
{
	bool		is_integer;
	uint64		planned;		/* keys that it is sized for */
	uint64		bytes;
	uint64		mask;			/* of a bitmap */
	pg_atomic_uint64 rows;		/* rows whose keys were added */
	pg_atomic_uint64 low;		/* smallest and largest integer, mapped to
								 * unsigned numbers of the same order */
	pg_atomic_uint64 high;
} JoinFilterShared;

/*
 * A complete filter.  The parameter is a pointer to it, or NULL.  The bit of an integer in a
 * bitmap is (integer - base) & mask: exact if base is low and the mask has all bits.
 */
typedef struct JoinFilter
{
	JoinFilterKind kind;
	bool		is_integer;		/* a single integer key: low and high are set */
	bool		off;			/* switched off, because most rows pass */
	int64		low;
	int64		high;
	uint64	   *bits;			/* of a bitmap */
	uint64		base;
	uint64		mask;
	JoinFilterShared *shared;	/* not NULL until the filter is first tested */
	uint8	   *lines;
	int64	   *sorted;			/* the keys of lines, if these are few
								 * integers, or NULL */
	uint64		bytes;
	uint64		keys;
	uint64		tested;
	uint64		passed;
	uint64		judge_at;		/* join_filter_judge() is due after this many
								 * tests */
	uint64		judged_tested;	/* tests and passes when it was last called */
	uint64		judged_passed;
	uint64		untested;		/* rows to pass untested before the next
								 * sample */
	uint64		pause;			/* their number at the last call */
	JoinKeyState *outer;		/* how keys of outer rows are mapped to
								 * numbers */
} JoinFilter;

/* The keys collected for a filter. */
typedef struct JoinFilterBuild
{
	MemoryContext context;
	bool		is_integer;
	bool		given_up;		/* more keys than there may be */
	int64		low;
	int64		high;
	bf_accumulator numbers;		/* of a filter of this process */
	uint64		most;
	uint64		rows;			/* added to a shared filter */
} JoinFilterBuild;

extern void join_filter_start(JoinFilterBuild *build, MemoryContext context, bool is_integer);
extern bool join_filter_make_room(JoinFilterBuild *build);
extern JoinFilter *join_filter_finish(JoinFilterBuild *build);
extern void join_filter_release(JoinFilter *filter);
extern Size join_shared_size(bool is_integer, uint64 planned);
extern void join_shared_start(JoinFilterShared *shared, bool is_integer, uint64 planned);
extern void join_shared_empty(JoinFilterShared *shared);
extern void join_shared_add(JoinFilterShared *shared, JoinFilterBuild *local, uint64 number);
extern void join_shared_finish(JoinFilterShared *shared, const JoinFilterBuild *local);
extern JoinFilter *join_shared_attach(JoinFilterShared *shared, MemoryContext context);
extern void join_shared_open(JoinFilter *filter);

/* key_range.c */
#define JOIN_MOST_RANGES	16

typedef struct JoinKeyRange
{
	int64		low;
	int64		high;			/* included */
} JoinKeyRange;

extern bool join_filter_has_between(JoinFilter *filter, int64 low, int64 high);
extern int	join_filter_ranges(JoinFilter *filter, JoinKeyRange *ranges, int n);

extern void join_filter_begin(JoinFilter *filter, bool off);
extern void join_filter_judge(JoinFilter *filter);
extern const char *join_filter_kind_name(JoinFilterKind kind);

static inline void
join_filter_add(JoinFilterBuild *build, uint64 number)
{
	if (build->is_integer)
	{
		build->low = Min(build->low, (int64) number);
		build->high = Max(build->high, (int64) number);
	}
	if (likely(!bf_accumulator_is_full(&build->numbers)) || join_filter_make_room(build))
		bf_accumulator_add(&build->numbers, number);
}

/* The core's description of lines of this size.  A key sets four bits of one line. */
static inline bf_shape
join_lines_shape(uint64 bytes)
{
	return (bf_shape) {bytes / sizeof(uint64), 1, 4};
}

/* Tests after which it is decided whether a filter removes enough rows. */
#define JOIN_FILTER_SAMPLE		2048

/* Can a filter be left out for some rows, because it is switched off and no sample is due? */
static inline bool
join_filter_pauses(JoinFilter *filter, int rows)
{
	if (likely(!filter->off) || filter->untested == 0)
		return false;
	filter->untested -= Min(filter->untested, (uint64) rows);
	return true;
}

/* Count tests of a filter. */
static inline void
join_filter_count(JoinFilter *filter, int tested, int passed)
{
	filter->passed += (uint64) passed;
	filter->tested += (uint64) tested;
	if (unlikely(filter->tested >= filter->judge_at))
		join_filter_judge(filter);
}

/* Test a filter for a key. */
static inline bool
join_filter_test(JoinFilter *filter, uint64 number)
{
	bool		found = false;

	if (unlikely(filter->shared != NULL))
		join_shared_open(filter);
	if (filter->kind != JOIN_FILTER_EMPTY &&
		!(filter->is_integer && ((int64) number < filter->low || (int64) number > filter->high)))
	{
		uint64		place = (number - filter->base) & filter->mask;

		found = filter->kind == JOIN_FILTER_BITMAP ? filter->bits[place / 64] >> place % 64 & 1 :
			bf_lines_test(filter->lines, join_lines_shape(filter->bytes), number);
	}
	join_filter_count(filter, 1, found);
	return found;
}

/* ----------------------------------------------------------------
 * Plans
 * ----------------------------------------------------------------
 */

/* A filter that is tested at a scan: its parameter, and the columns that are its keys. */
typedef struct JoinProbe
{
	int			paramid;
	List	   *columns;		/* Vars of the scan's target list */
	List	   *resnos;			/* their places in it */
	List	   *bounds;			/* of the partition: see partition_bounds.c */
	Oid			ranges_index;	/* a BRIN index of the only column, or
								 * InvalidOid */
} JoinProbe;

/* The same in the executor. */
typedef struct JoinProbeState
{
	int			paramid;
	int			n_keys;
	AttrNumber *columns;		/* of the rows that the node reads */
	int			offset;			/* of the only key in all rows of the table
								 * that contain no NULL, or -1 */
	int			bytes;			/* length of that key */
	int			n_bounds;
	JoinKeyRange *bounds;		/* of the only key in this partition, or NULL */
	Oid			ranges_index;
	bool		decided;		/* was the filter compared with the bounds and
								 * the index? */
} JoinProbeState;

extern void joinfilter_init(void);

/* Does a node belong to the copy of a plan that evaluates a join again for new versions of rows? */
static inline bool
joinfilter_is_recheck(const EState *estate)
{
	return estate->es_epq_active != NULL;
}

/* pass_through.c: nodes that return the rows of their child unchanged */
extern CustomScan *joinfilter_pass_through(Plan *child, int plan_node_id, const CustomScanMethods *methods);
extern void joinfilter_begin_pass_through(CustomScanState *css, EState *estate, int eflags);
extern char *joinfilter_deparse(CustomScanState *css, int paramid, List *keys, List *ancestors, ExplainState *es);

/* probe_list.c: what scan_node.c and probe_node.c share */
extern void joinfilter_write_probe(CustomScan *node, const JoinProbe *probe, List *columns, List *keys);
extern JoinProbeState *joinfilter_read_probes(const CustomScan *node, int *n);
extern void joinfilter_find_offsets(JoinProbeState *probes, int n, TupleDesc desc);
extern void joinfilter_sort_probes(JoinProbeState *probes, int n, const ParamExecData *params);
extern void joinfilter_count_skipped(CustomScanState *css, bool partition, uint64 pages);
extern void joinfilter_explain_probes(CustomScanState *css, List *ancestors, ExplainState *es);

/* partition_bounds.c */
extern List *joinfilter_find_bounds(Relation partition, AttrNumber column);
extern JoinKeyRange *joinfilter_read_bounds(const List *bounds);
extern bool joinfilter_partition_matches(const JoinProbeState *probe, JoinFilter *filter);

/* collect_node.c, scan_node.c and probe_node.c */
extern const CustomScanMethods joinfilter_collect_methods;
extern const CustomScanMethods joinfilter_scan_methods;
extern const CustomScanMethods joinfilter_probe_methods;
extern CustomScan *joinfilter_collect(Hash *hash, int plan_node_id, int paramid, List *inner_keys,
									  const JoinKey *inner, const JoinKey *outer);
extern CustomScan *joinfilter_scan(SeqScan *from, List *probes);
extern CustomScan *joinfilter_probe(Plan *scan, int plan_node_id, List *probes);

#endif							/* BF_JOINFILTER_H */
