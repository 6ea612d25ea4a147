/*
 * partition_bounds.c
 *		Which keys a partition can contain.
 *
 * The bounds are computed while planning, from the partition constraint, which comprises
 * the bounds of all levels.  They are a list of ranges of integers.  A scan of a partition
 * whose ranges contain no key of a filter ends without reading a page.  Conditions that are
 * not understood restrict nothing: those of default and hash partitions, and those on several
 * columns.  NULL is not a bound, because it matches nothing.
 */
#include "../compat.h"

#include "access/stratnum.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "joinfilter.h"

/* A partition with more ranges than this has no bounds. */
#define MOST_BOUNDS	1024

/* The integer that a constant is. */
static int64
integer_value(const Const *constant)
{
	switch (join_integer_bytes(constant->consttype))
	{
		case 2:
			return DatumGetInt16(constant->constvalue);
		case 4:
			return DatumGetInt32(constant->constvalue);
		default:
			return DatumGetInt64(constant->constvalue);
	}
}

/* The range of a column that an operator and a constant allow; returns false if they are not understood. */
static bool
range_of_comparison(Oid operator, Expr *left, Expr *right, AttrNumber column, JoinKeyRange *range)
{
	const Var  *var = (Var *) left;
	const Const *constant = (Const *) right;
	int64		value;

	*range = (JoinKeyRange) {PG_INT64_MIN, PG_INT64_MAX};
	if (!IsA(left, Var) || var->varattno != column || !IsA(right, Const) || constant->constisnull ||
		constant->consttype != var->vartype || join_integer_bytes(var->vartype) == 0)
		return false;
	value = integer_value(constant);
	switch (get_op_opfamily_strategy(operator, lookup_type_cache(var->vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf))
	{
		case BTEqualStrategyNumber:
			*range = (JoinKeyRange) {value, value};
			return true;
		case BTGreaterEqualStrategyNumber:
			range->low = value;
			return true;
		case BTLessStrategyNumber:
			range->high = value > PG_INT64_MIN ? value - 1 : value;
			return true;
		default:
			return false;
	}
}

/* The ranges that the list of values of a partition allows, or NIL. */
static List *
ranges_of_list(const ScalarArrayOpExpr *expression, AttrNumber column)
{
	List	   *ranges = NIL;
	ListCell   *cell;

	if (!expression->useOr || !IsA(lsecond(expression->args), ArrayExpr))
		return NIL;
	foreach(cell, ((ArrayExpr *) lsecond(expression->args))->elements)
	{
		JoinKeyRange *range = palloc(sizeof(JoinKeyRange));

		if (!range_of_comparison(expression->opno, linitial(expression->args), lfirst(cell), column, range))
			return NIL;
		ranges = lappend(ranges, range);
	}
	return ranges;
}

/* The ranges of a column that a condition allows; NIL if it is not understood. */
static List *
ranges_of_condition(Node *condition, AttrNumber column)
{
	if (IsA(condition, OpExpr) && list_length(((OpExpr *) condition)->args) == 2)
	{
		const OpExpr *expression = (OpExpr *) condition;
		JoinKeyRange *range = palloc(sizeof(JoinKeyRange));

		return range_of_comparison(expression->opno, linitial(expression->args), lsecond(expression->args), column, range) ?
			list_make1(range) : NIL;
	}
	if (IsA(condition, ScalarArrayOpExpr))
		return ranges_of_list((ScalarArrayOpExpr *) condition, column);

	/* a partition for NULL and other values */
	if (is_orclause(condition) && list_length(((BoolExpr *) condition)->args) == 2 &&
		IsA(linitial(((BoolExpr *) condition)->args), NullTest))
	{
		const NullTest *test = linitial(((BoolExpr *) condition)->args);

		if (test->nulltesttype == IS_NULL && IsA(test->arg, Var) && ((Var *) test->arg)->varattno == column)
			return ranges_of_condition(lsecond(((BoolExpr *) condition)->args), column);
	}
	return NIL;
}

/* The intersection of two lists of ranges. */
static List *
intersect(const List *a, const List *b)
{
	List	   *result = NIL;
	ListCell   *cell_a;
	ListCell   *cell_b;

	foreach(cell_a, a)
	{
		foreach(cell_b, b)
		{
			const JoinKeyRange *x = lfirst(cell_a);
			const JoinKeyRange *y = lfirst(cell_b);
			JoinKeyRange *both = palloc(sizeof(JoinKeyRange));

			*both = (JoinKeyRange) {Max(x->low, y->low), Min(x->high, y->high)};
			if (both->low <= both->high)
				result = lappend(result, both);
		}
	}
	return result;
}

static Const *
bound_as_constant(int64 bound)
{
	return makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(bound), false, FLOAT8PASSBYVAL);
}

/*
 * Find the bounds of a column of a partition: a list of constants, two for each range, which plans
 * can contain.  NIL means that there are none.
 */
List *
joinfilter_find_bounds(Relation partition, AttrNumber column)
{
	List	   *ranges = NIL;
	List	   *bounds = NIL;
	bool		restricted = false;
	ListCell   *cell;

	/* nothing ensures that a foreign table respects its bounds */
	if (!partition->rd_rel->relispartition || partition->rd_rel->relkind != RELKIND_RELATION)
		return NIL;
	foreach(cell, RelationGetPartitionQual(partition))
	{
		List	   *allowed = ranges_of_condition(lfirst(cell), column);

		if (allowed == NIL)
			continue;
		ranges = restricted ? intersect(ranges, allowed) : allowed;
		restricted = true;
		if (list_length(ranges) > MOST_BOUNDS)
			return NIL;
	}

	/* a partition that can contain no row at all is not worth a special case */
	foreach(cell, ranges)
	{
		const JoinKeyRange *range = lfirst(cell);

		bounds = lappend(bounds, bound_as_constant(range->low));
		bounds = lappend(bounds, bound_as_constant(range->high));
	}
	return bounds;
}

/* Read bounds from a plan. */
JoinKeyRange *
joinfilter_read_bounds(const List *bounds)
{
	JoinKeyRange *ranges = palloc(sizeof(JoinKeyRange) * (list_length(bounds) / 2));

	for (int i = 0; i < list_length(bounds); i += 2)
	{
		ranges[i / 2].low = DatumGetInt64(list_nth_node(Const, bounds, i)->constvalue);
		ranges[i / 2].high = DatumGetInt64(list_nth_node(Const, bounds, i + 1)->constvalue);
	}
	return ranges;
}

/* Can a partition contain a key of a filter? */
bool
joinfilter_partition_matches(const JoinProbeState *probe, JoinFilter *filter)
{
	for (int i = 0; i < probe->n_bounds; i++)
	{
		if (join_filter_has_between(filter, probe->bounds[i].low, probe->bounds[i].high))
			return true;
	}
	return probe->n_bounds == 0;
}
