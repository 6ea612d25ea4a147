/*
 * citus_like.c
 *		Two aggregates that run another aggregate in two steps, as Citus does.
 *
 * worker_partial(aggregate, arguments) runs the transition function of another
 * aggregate and returns its state as text; coord_combine(aggregate, text, type)
 * reads such texts, combines the states and finishes them.  This test is about
 * the differences from PostgreSQL's nodeAgg.c:
 *
 * - every call has a new FmgrInfo: fn_expr is not set, fn_extra is lost;
 * - AggGetAggref() returns the outer aggregate, which has other arguments;
 * - several arguments come as one record;
 * - a state is sent by the output and input functions of its type, not by the
 *   serialization functions of the aggregate.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

PG_MODULE_MAGIC;

/* The state of the outer aggregate, which holds that of the inner one. */
typedef struct Inner
{
	FormData_pg_aggregate aggregate;
	int16		length;			/* of the transition type, as by_value */
	bool		by_value;
	NullableDatum state;
} Inner;

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "not called as an aggregate");
	return context;
}

/* The state passed to the call, or a new one for the aggregate that it names. */
static Inner *
get_inner(FunctionCallInfo fcinfo)
{
	Inner	   *inner;
	HeapTuple	tuple;

	if (!PG_ARGISNULL(0))
		return (Inner *) PG_GETARG_POINTER(0);
	tuple = SearchSysCache1(AGGFNOID, PG_GETARG_DATUM(1));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "%u is not an aggregate", PG_GETARG_OID(1));
	inner = MemoryContextAllocZero(aggregate_context(fcinfo), sizeof(Inner));
	inner->aggregate = *(Form_pg_aggregate) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (inner->aggregate.aggtranstype == INTERNALOID || !OidIsValid(inner->aggregate.aggcombinefn))
		elog(ERROR, "this aggregate is not run in two steps");
	get_typlenbyval(inner->aggregate.aggtranstype, &inner->length, &inner->by_value);
	inner->state.isnull = true;
	return inner;
}

/*
 * Call a function that is not strict with the state as its first argument, and keep
 * its result as the new state, by the rules of nodeAgg.c.
 */
static void
advance(FunctionCallInfo fcinfo, Inner *inner, Oid function, int nargs, const NullableDatum *args)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	FmgrInfo	info;
	Datum		value;

	fmgr_info(function, &info);
	if (info.fn_strict)
		elog(ERROR, "strict functions are not what this is made for");
	InitFunctionCallInfoData(*call, &info, nargs + 1, fcinfo->fncollation, fcinfo->context, NULL);
	call->args[0] = inner->state;
	memcpy(&call->args[1], args, sizeof(NullableDatum) * nargs);
	value = FunctionCallInvoke(call);

	if (!inner->by_value && (call->isnull || inner->state.isnull || value != inner->state.value))
	{
		MemoryContext context = aggregate_context(fcinfo);
		MemoryContext old = MemoryContextSwitchTo(context);

		if (!call->isnull &&
			!(DatumIsReadWriteExpandedObject(value, false, inner->length) &&
			  MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) == context))
			value = datumCopy(value, false, inner->length);
		MemoryContextSwitchTo(old);
		if (!inner->state.isnull)
		{
			if (DatumIsReadWriteExpandedObject(inner->state.value, false, inner->length))
				DeleteExpandedObject(inner->state.value);
			else
				pfree(DatumGetPointer(inner->state.value));
		}
	}
	inner->state.value = value;
	inner->state.isnull = call->isnull;
}

PG_FUNCTION_INFO_V1(worker_partial_transition);
Datum
worker_partial_transition(PG_FUNCTION_ARGS)
{
	Inner	   *inner = get_inner(fcinfo);
	NullableDatum args[FUNC_MAX_ARGS];
	int			nargs = 1;

	args[0] = fcinfo->args[2];
	if (get_fn_expr_argtype(fcinfo->flinfo, 2) == RECORDOID)
	{
		HeapTupleHeader record = PG_GETARG_HEAPTUPLEHEADER(2);
		TupleDesc	columns = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(record), HeapTupleHeaderGetTypMod(record));
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(record), .t_data = record};
		Datum		values[FUNC_MAX_ARGS];
		bool		nulls[FUNC_MAX_ARGS];

		nargs = columns->natts;
		heap_deform_tuple(&tuple, columns, values, nulls);
		ReleaseTupleDesc(columns);
		for (int i = 0; i < nargs; i++)
		{
			args[i].value = values[i];
			args[i].isnull = nulls[i];
		}
	}
	advance(fcinfo, inner, inner->aggregate.aggtransfn, nargs, args);
	PG_RETURN_POINTER(inner);
}

PG_FUNCTION_INFO_V1(worker_partial_final);
Datum
worker_partial_final(PG_FUNCTION_ARGS)
{
	Inner	   *inner;
	Oid			output;
	bool		is_varlena;

	if (PG_ARGISNULL(0) || ((Inner *) PG_GETARG_POINTER(0))->state.isnull)
		PG_RETURN_NULL();
	inner = (Inner *) PG_GETARG_POINTER(0);
	getTypeOutputInfo(inner->aggregate.aggtranstype, &output, &is_varlena);
	PG_RETURN_TEXT_P(cstring_to_text(OidOutputFunctionCall(output, inner->state.value)));
}

PG_FUNCTION_INFO_V1(coord_combine_transition);
Datum
coord_combine_transition(PG_FUNCTION_ARGS)
{
	Inner	   *inner = get_inner(fcinfo);
	NullableDatum partial = {.isnull = PG_ARGISNULL(2)};
	Oid			input;
	Oid			parameter;

	if (!partial.isnull)
	{
		getTypeInputInfo(inner->aggregate.aggtranstype, &input, &parameter);
		partial.value = OidInputFunctionCall(input, text_to_cstring(PG_GETARG_TEXT_PP(2)), parameter, -1);
	}
	advance(fcinfo, inner, inner->aggregate.aggcombinefn, 1, &partial);
	PG_RETURN_POINTER(inner);
}

PG_FUNCTION_INFO_V1(coord_combine_final);
Datum
coord_combine_final(PG_FUNCTION_ARGS)
{
	Inner	   *inner;

	LOCAL_FCINFO(call, 1);
	FmgrInfo	info;
	Datum		value;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	inner = (Inner *) PG_GETARG_POINTER(0);
	fmgr_info(inner->aggregate.aggfinalfn, &info);
	InitFunctionCallInfoData(*call, &info, 1, fcinfo->fncollation, fcinfo->context, NULL);
	call->args[0] = inner->state;
	value = FunctionCallInvoke(call);
	fcinfo->isnull = call->isnull;
	return value;
}
