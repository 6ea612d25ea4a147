/*
 * joinfilter.h
 *		Filters in hash joins, without a change to the SQL.
 *
 * After planning, a finished plan is edited (plan.c).  Under the Hash node of a join
 * comes a custom scan that passes rows through and collects their keys (collect.c);
 * when the hash table is complete, so is a filter of its keys (filter.c), which an
 * executor parameter makes known to the outer side.  There rows that cannot find a
 * partner are dropped where they are born, below every other join: by the sequential
 * scan itself, a page at a time (scan.c), or by a node above any other scan, row by
 * row (probe.c).  A parameter that is not set yet lets everything pass, so nothing depends on
 * the order in which the executor works.
 */
#ifndef BF_JOINFILTER_H
#define BF_JOINFILTER_H

#include "../compat.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "port/atomics.h"

#include "../core/accumulator.h"
#include "../core/lines.h"
#include "../key.h"

/* Settings. */
extern bool joinfilter_enabled;
extern int	joinfilter_min_rows;
extern double joinfilter_max_share;
extern bool joinfilter_batches;
extern int	joinfilter_memory;	/* kB */

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

/*
 * How values of one side become numbers that are equal if the join's operator calls
 * them equal.  Decided by that operator alone: what the planner has stripped from a
 * column (a cast, a collation) the operator still knows.
 */
typedef struct JoinKey
{
	int			integer_bytes;	/* 2, 4 or 8: an integer is its own number */
	bool		is_string;		/* equal if the bytes are */
	Oid			function;		/* otherwise the operator's hash function */
	bool		extended;		/* which takes a seed and has 64 bits */
	Oid			collation;
} JoinKey;

/* The same at run time. */
typedef struct JoinKeyState
{
	JoinKey		key;
	FmgrInfo	finfo;
} JoinKeyState;

extern bool join_key_for(Oid operator, Oid collation, Oid outer_type, Oid inner_type, JoinKey *outer, JoinKey *inner);
extern void join_key_init(JoinKeyState *state, const JoinKey *key, MemoryContext context);

/* The number of a value, or of the next one of several. */
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

		/* there may be a page full of them */
		if (unlikely((Pointer) string != DatumGetPointer(value)))
			pfree(string);
		return hash;
	}
	if (state->key.extended)
		return DatumGetUInt64(FunctionCall2Coll(&state->finfo, state->key.collation, value, Int64GetDatum(0)));
	return DatumGetUInt32(FunctionCall1Coll(&state->finfo, state->key.collation, value));
}

/* The number of several keys together. */
static inline uint64
join_key_combine(uint64 so_far, uint64 next)
{
	return bf_mix64(so_far) + next;
}

/* ----------------------------------------------------------------
 * Filters
 * ----------------------------------------------------------------
 */

typedef enum JoinFilterKind
{
	JOIN_FILTER_EMPTY,			/* no key: nothing passes */
	JOIN_FILTER_BITMAP,			/* a bit for each integer from low to high */
	JOIN_FILTER_MODULAR,		/* a bit for each integer, and those that
								 * agree with it in their lower bits */
	JOIN_FILTER_LINES			/* Bloom filter */
} JoinFilterKind;

/*
 * A filter that the processes of a Parallel Hash fill together.  It is made before
 * the first key is seen.
 */
typedef struct JoinFilterShared
{
	bool		is_integer;
	uint64		planned;		/* keys that it is made for */
	uint64		bytes;
	uint64		mask;			/* of a modular bitmap */
	pg_atomic_uint64 rows;		/* rows with keys that were added */
	pg_atomic_uint64 low;		/* least and greatest integer, as unsigned
								 * numbers in the order of the signed ones */
	pg_atomic_uint64 high;
} JoinFilterShared;

/* A complete filter.  The parameter is a pointer to it, NULL as long as there is none. */
typedef struct JoinFilter
{
	JoinFilterKind kind;
	bool		is_integer;		/* a single integer key: low and high count */
	bool		off;			/* it turned out to be of no use */
	int64		low;
	int64		high;
	uint64	   *bits;			/* of a bitmap */
	uint64		mask;
	JoinFilterShared *shared;	/* where it is still to be opened */
	uint8	   *lines;
	uint64		bytes;
	uint64		keys;
	uint64		asked;
	uint64		passed;
	int			n_keys;
	JoinKeyState *outer;		/* how the askers' keys become numbers */
} JoinFilter;

/* What is collected on the way to a filter. */
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

/* The bits of a key lie in one line. */
#define JOIN_LINE_PROBES		4

static inline uint8 *
join_line(uint8 *lines, uint64 bytes, uint64 hash)
{
	return lines + bf_group_line(hash, bytes / BF_LINE_BYTES) * BF_LINE_BYTES;
}

static inline bool
join_lines_test(const JoinFilter *filter, uint64 number)
{
	uint64		hash = bf_group_hash(number, 0);

	return bf_probes_test(join_line(filter->lines, filter->bytes, hash), BF_LINE_BITS, JOIN_LINE_PROBES, (uint32) hash);
}

/* After how many questions it is decided whether a filter is worth asking. */
#define JOIN_FILTER_SAMPLE		2048

static inline bool
join_filter_test(JoinFilter *filter, uint64 number)
{
	bool		found = false;

	if (unlikely(filter->shared != NULL))
		join_shared_open(filter);
	switch (filter->kind)
	{
		case JOIN_FILTER_EMPTY:
			break;
		case JOIN_FILTER_MODULAR:
			if ((int64) number >= filter->low && (int64) number <= filter->high)
				found = filter->bits[(number & filter->mask) / 64] >> (number & filter->mask) % 64 & 1;
			break;
		case JOIN_FILTER_BITMAP:
			if ((int64) number >= filter->low && (int64) number <= filter->high)
			{
				uint64		place = number - (uint64) filter->low;

				found = filter->bits[place / 64] >> place % 64 & 1;
			}
			break;
		case JOIN_FILTER_LINES:
			found = !(filter->is_integer && ((int64) number < filter->low || (int64) number > filter->high)) &&
				join_lines_test(filter, number);
			break;
	}
	filter->passed += found;
	if (unlikely(++filter->asked == JOIN_FILTER_SAMPLE))
		join_filter_judge(filter);
	return found;
}

/* ----------------------------------------------------------------
 * Plans
 * ----------------------------------------------------------------
 */

/* Where a filter is asked: its parameter, and the columns that are its keys. */
typedef struct JoinProbe
{
	int			paramid;
	List	   *columns;		/* Vars of the scan's target list */
	List	   *numbers;		/* their places in it */
} JoinProbe;

/* The same in the executor. */
typedef struct JoinAsking
{
	int			paramid;
	int			n_keys;
	AttrNumber *columns;		/* of the rows that the node reads */
	int			offset;			/* where the only key begins in every row of
								 * the table without NULLs, or -1 */
	int			bytes;			/* its length */
} JoinAsking;

extern void joinfilter_init(void);

/* plan.c: a node that passes rows of its child on as they are */
extern CustomScan *joinfilter_pass_through(Plan *child, int plan_node_id, const CustomScanMethods *methods);
extern void joinfilter_begin_pass_through(CustomScanState *css, EState *estate, int eflags);
extern char *joinfilter_deparse(CustomScanState *css, List *keys, List *ancestors, ExplainState *es);

/* collect.c */
extern CustomScan *joinfilter_collector(Hash *hash, int plan_node_id, int paramid, List *inner_keys,
										const JoinKey *inner, const JoinKey *outer);
extern void joinfilter_register_collector(void);

/* ask.c: what scan.c and probe.c have in common */
extern void joinfilter_write_probe(CustomScan *node, int paramid, List *numbers, List *keys);
extern JoinAsking *joinfilter_read_probes(const CustomScan *node, int *n);
extern void joinfilter_find_places(JoinAsking *asking, int n, TupleDesc desc);
extern void joinfilter_sort_asking(JoinAsking *asking, int n, const ParamExecData *params);
extern void joinfilter_explain_probes(CustomScanState *css, List *ancestors, ExplainState *es);

/* scan.c and probe.c */
extern CustomScan *joinfilter_batched_scan(SeqScan *scan, List *probes);
extern void joinfilter_register_scan(void);
extern CustomScan *joinfilter_probe(Plan *scan, int plan_node_id, List *probes);
extern void joinfilter_register_probe(void);

#endif							/* BF_JOINFILTER_H */
