/*
 * key_argument.c
 *		The type of a key argument.
 *
 * The declared type of a key argument is polymorphic, or text.  Its type in the query,
 * which determines which values are equal, is known only from the call expression
 * of the function or aggregate.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "core/host.h"
#include "key.h"

/* Determine how to hash a key argument, by its type in this call. */
KeyType *
key_type_of_argument(FunctionCallInfo fcinfo, int argument)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	Oid			typid = get_fn_expr_argtype(flinfo, argument);

	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of the key")));
	if (type_is_collatable(typid) && !OidIsValid(PG_GET_COLLATION()))
		key_refuse_indeterminate_collation();
	return key_type(typid, PG_GET_COLLATION(), flinfo->fn_mcxt);
}

/* The source type of an implicit cast, or InvalidOid if there is none. */
static Oid
key_implicit_cast_source(Node *node)
{
	if (IsA(node, RelabelType) && ((RelabelType *) node)->relabelformat == COERCE_IMPLICIT_CAST)
		return exprType((Node *) ((RelabelType *) node)->arg);
	if (IsA(node, CoerceViaIO) && ((CoerceViaIO *) node)->coerceformat == COERCE_IMPLICIT_CAST)
		return exprType((Node *) ((CoerceViaIO *) node)->arg);
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcformat == COERCE_IMPLICIT_CAST)
		return exprType(linitial(((FuncExpr *) node)->args));
	return InvalidOid;
}

/*
 * Reject a key that was implicitly cast to text, unless its type is built in: those
 * have the same equality as text.
 */
static void
key_check_text_expression(Node *node)
{
	Oid			source = key_implicit_cast_source(node);

	if (!OidIsValid(source) || getBaseType(source) < FirstNormalObjectId)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("key of type %s was implicitly cast to text", format_type_be(source)),
			 errdetail("The equality of text may differ from that of type %s.", format_type_be(source)),
			 errhint("Cast the key explicitly to a canonical form, for example lower(key::text).")));
}

/*
 * Does the aggregate have this transition function, and a final function if that is
 * required?  A window computes several aggregates, and an aggregate of another
 * extension can call our functions.
 */
bool
key_aggregate_is(Oid aggregate, Oid transition, bool with_final)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_aggregate form = (Form_pg_aggregate) GETSTRUCT(tuple);

		result = form->aggtransfn == transition && (!with_final || OidIsValid(form->aggfinalfn));
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Check the argument of an aggregate over text.  It also accepts values of citext and
 * similar types, whose own equality is lost by the implicit cast.  The argument's
 * expression shows that cast, which is rejected.  Two cases are not detected:
 * arguments that a lower plan node has computed as text, as in
 * "bloom_agg(c) ... GROUP BY c::text", and those that the planner has simplified to
 * text, such as constants, parameters and casts of text to citext.  An
 * indeterminate collation is rejected, too.
 *
 * Without an expression, as when Citus calls a transition function, nothing can be
 * checked.
 */
void
key_check_text_aggregate(FunctionCallInfo fcinfo)
{
	Aggref	   *aggregate = AggGetAggref(fcinfo);
	ListCell   *cell;

	if (AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_WINDOW)
	{
		foreach(cell, castNode(WindowAggState, fcinfo->context)->funcs)
		{
			WindowFunc *function = ((WindowFuncExprState *) lfirst(cell))->wfunc;

			if (function->args == NIL || !key_aggregate_is(function->winfnoid, fcinfo->flinfo->fn_oid, false))
				continue;
			key_check_text_expression(linitial(function->args));
			if (!OidIsValid(function->inputcollid))
				key_refuse_indeterminate_collation();
		}
	}
	else if (aggregate != NULL && aggregate->args != NIL &&
			 key_aggregate_is(aggregate->aggfnoid, fcinfo->flinfo->fn_oid, false))
	{
		key_check_text_expression((Node *) ((TargetEntry *) linitial(aggregate->args))->expr);
		if (!OidIsValid(aggregate->inputcollid))
			key_refuse_indeterminate_collation();
	}
}
