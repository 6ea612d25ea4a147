/*
 * planner.c
 *		Selectivity and cost of filter tests, for the planner.
 *
 * The selectivity of ..._contains(filter, column) is estimated from the filter if that is
 * a constant.  If the filter is a subquery, used as a test before a join, it is close to
 * 1: the join clause is the same condition once more, and the planner multiplies both
 * selectivities as if they were independent.  With an accurate estimate of the scan, that
 * of the join was 54 times too low.
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "core/query.h"
#include "value.h"

/* A filter that the query itself builds, tested before a join. */
#define PREFILTER_SELECTIVITY	0.95

/* A filter in each row, or a parameter, of which nothing is known. */
#define DEFAULT_SELECTIVITY		0.1

/* Costs in units of cpu_operator_cost. */
#define COST_IN_CACHE			3	/* hashing and a probe of a small filter */
#define COST_IN_MEMORY			8	/* the same with a memory access */
#define COST_STORED				100 /* slices from a TOAST table */
#define CACHED_BYTES			(256 * 1024)

/* ----------------------------------------------------------------
 * Selectivity
 * ----------------------------------------------------------------
 */

/* The part of a column's most common values that a constant filter reports. */
typedef struct ColumnShare
{
	double		values;			/* most common values tested */
	double		values_found;	/* of them in the filter */
	double		rows;			/* share of the rows with these values */
	double		rows_found;
} ColumnShare;

/*
 * Test the most common values of a column.  (The histogram's values are not used for
 * the others: they are spaced evenly, so that those of a column of numbers may all
 * be odd.)
 */
static ColumnShare
look_at_column(const bf_filter *filter, VariableStatData *column, Oid typid)
{
	ColumnShare share = {0};
	KeyClass	class = filter->header.class;
	AttStatsSlot slot;
	KeyType    *type;

	if (!HeapTupleIsValid(column->statsTuple) || !column->acl_ok ||
		!get_attstatsslot(&slot, column->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		return share;

	/*
	 * The key may have another type or collation than the column, by a cast
	 * that changes nothing.
	 */
	if (getBaseType(typid) != getBaseType(slot.valuetype))
	{
		free_attstatsslot(&slot);
		return share;
	}
	type = key_type(typid, DEFAULT_COLLATION_OID, CurrentMemoryContext);
	for (int i = 0; i < slot.nvalues; i++)
	{
		uint64		hash = key_hash(type, slot.values[i]);

		share.values++;
		share.rows += slot.numbers[i];
		if (key_class_equal(&class, &type->class) && bf_filter_contains(filter, hash))
		{
			share.values_found++;
			share.rows_found += slot.numbers[i];
		}
	}
	free_attstatsslot(&slot);
	return share;
}

/*
 * The selectivity of a constant filter: the share of the rows whose most common
 * values it reports, plus its share of the other distinct values, plus false
 * positives.
 */
static double
constant_selectivity(const bf_filter *filter, VariableStatData *column, Oid typid)
{
	bf_census	census = bf_filter_census(filter);
	ColumnShare share = look_at_column(filter, column, typid);
	bool		is_default;
	double		distinct = get_variable_numdistinct(column, &is_default);
	double		nulls = HeapTupleIsValid(column->statsTuple) ?
	((Form_pg_statistic) GETSTRUCT(column->statsTuple))->stanullfrac : 0.0;
	double		others = Max(1.0 - nulls - share.rows, 0.0);
	double		other_values = Max(distinct - share.values, 1.0);
	double		held = Min(Max(census.keys - share.values_found, 0.0) / other_values, 1.0);

	return share.rows_found + others * (held + (1.0 - held) * census.fpp);
}

static double
contains_selectivity(PlannerInfo *root, List *args, int varRelid)
{
	Node	   *filter_node = estimate_expression_value(root, linitial(args));
	VariableStatData column;
	double		selectivity;

	if (IsA(filter_node, Const))
	{
		Const	   *constant = (Const *) filter_node;
		bf_filter	filter;

		if (constant->constisnull)
			return 0.0;
		value_open(&filter, PG_DETOAST_DATUM_PACKED(constant->constvalue));
		examine_variable(root, lsecond(args), varRelid, &column);
		selectivity = constant_selectivity(&filter, &column, exprType(lsecond(args)));
		ReleaseVariableStats(column);
		CLAMP_PROBABILITY(selectivity);
		return selectivity;
	}
	if (IsA(filter_node, Param) && ((Param *) filter_node)->paramkind == PARAM_EXEC)
		return PREFILTER_SELECTIVITY;
	return DEFAULT_SELECTIVITY;
}

/* ----------------------------------------------------------------
 * Cost
 * ----------------------------------------------------------------
 */

/*
 * The cost of a probe: more than a comparison, so that cheap conditions come first.
 * A filter in each row costs its TOAST slices.
 */
static double
contains_cost(Node *call)
{
	List	   *args = NIL;
	Node	   *filter;

	if (call != NULL && IsA(call, FuncExpr))
		args = ((FuncExpr *) call)->args;
	else if (call != NULL && IsA(call, OpExpr))
		args = ((OpExpr *) call)->args;
	if (args == NIL)
		return COST_IN_MEMORY;
	filter = linitial(args);
	if (IsA(filter, Const) && !((Const *) filter)->constisnull)
		return toast_raw_datum_size(((Const *) filter)->constvalue) <= CACHED_BYTES ? COST_IN_CACHE : COST_IN_MEMORY;
	if (contain_var_clause(filter))
		return COST_STORED;
	return COST_IN_MEMORY;
}

/* Support function of bloom_contains and cuckoo_contains. */
PG_FUNCTION_INFO_V1(filter_contains_support);
Datum
filter_contains_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *selectivity = (SupportRequestSelectivity *) request;

		selectivity->selectivity = contains_selectivity(selectivity->root, selectivity->args, selectivity->varRelid);
		PG_RETURN_POINTER(request);
	}
	if (IsA(request, SupportRequestCost))
	{
		SupportRequestCost *cost = (SupportRequestCost *) request;

		cost->startup = 0;
		cost->per_tuple = contains_cost(cost->node) * cpu_operator_cost;
		PG_RETURN_POINTER(request);
	}
	PG_RETURN_POINTER(NULL);
}

/* Estimators of the operator @>. */
SQL_FUNCTION(filter_contains_sel, Float8GetDatum(contains_selectivity((PlannerInfo *) PG_GETARG_POINTER(0),
																	  (List *) PG_GETARG_POINTER(2), PG_GETARG_INT32(3))));
SQL_FUNCTION(filter_contains_joinsel, Float8GetDatum(contains_selectivity((PlannerInfo *) PG_GETARG_POINTER(0),
																		  (List *) PG_GETARG_POINTER(2), 0)));

/* Support function of functions that add and remove keys, which can work in place. */
PG_FUNCTION_INFO_V1(filter_add_support);
Datum
filter_add_support(PG_FUNCTION_ARGS)
{
#if BF_MODIFY_IN_PLACE
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestModifyInPlace))
	{
		SupportRequestModifyInPlace *modify = (SupportRequestModifyInPlace *) request;
		Param	   *filter = linitial(modify->args);

		/*
		 * keys are hashed before the filter is touched, so they may refer to
		 * it
		 */
		if (IsA(filter, Param) && filter->paramkind == PARAM_EXTERN && filter->paramid == modify->paramid)
			PG_RETURN_POINTER(filter);
	}
#endif
	PG_RETURN_POINTER(NULL);
}
