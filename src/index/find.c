/*
 * find.c
 *		bloom_find(row_type, column, key): the rows of a table with this key.
 *
 * A query over many partitions pays for each of them in planning and at the start of the
 * executor, even if the partition's index lacks the key.  bloom_find probes the indexes
 * first and runs a query only on the partitions that may contain the key.
 *
 * The function is STABLE, so its queries use the snapshot of the query that calls it,
 * which was taken before the first index is probed: a row that moves from one partition
 * to another meanwhile is seen where it was.
 *
 * The result is that of "SELECT * FROM table WHERE column = key".  That query itself runs
 * where partitions must not be read directly: if the user may read the table but not a
 * partition or its schema, or if a policy applies to one of them.
 *
 * Queries are prepared once per table and kept as long as the tables of the lookup are
 * known to be the same, at most for the calling statement.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "../spi_plan.h"
#include "table_lookup.h"
#include "trust.h"

/*
 * The number of plans to keep.  That of a table of two columns takes 13 kB.  Queries of
 * further tables are prepared for each key.
 */
#define MAX_KEPT_PLANS		500

/* What a call site keeps. */
typedef struct FindCall
{
	KeyType    *type;
	TableLookup lookup;
	SPIPlanPtr *plans;			/* for each table of the lookup, then for all
								 * together; NULL if not prepared */
	int			kept;
} FindCall;

/*
 * Append "= key" with the equality operator of the column's type.  bloom_find gets an
 * untyped literal as text, which is cast for types that compare differently, such as
 * char(n) and citext.
 */
static void
append_condition(StringInfo query, Oid column_type)
{
	Oid			type = getBaseType(column_type);
	HeapTuple	type_tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr));
	Form_pg_type form = (Form_pg_type) GETSTRUCT(type_tuple);
	Form_pg_operator equal;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify an equality operator for type %s", format_type_be(type))));
	equal = (Form_pg_operator) GETSTRUCT(tuple);
	appendStringInfo(query, " OPERATOR(%s.%s) $1", quote_identifier(get_namespace_name(equal->oprnamespace)),
					 NameStr(equal->oprname));
	if (type == BPCHAROID || equal->oprnamespace != PG_CATALOG_NAMESPACE)
		appendStringInfo(query, "::%s", quote_qualified_identifier(get_namespace_name(form->typnamespace), NameStr(form->typname)));
	ReleaseSysCache(tuple);
	ReleaseSysCache(type_tuple);
}

/*
 * Return the text of the query.  Columns are listed by name in the order of the row type,
 * because a partition can have them in another order; dropped columns are NULL.  All
 * names are qualified with their schema.
 */
static char *
find_query(Oid table, bool only, TupleDesc row, const char *column)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT ");
	for (int i = 0; i < row->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(row, i);

		appendStringInfo(&query, "%s%s", i > 0 ? ", " : "",
						 attribute->attisdropped ? "NULL::pg_catalog.int4" : quote_identifier(NameStr(attribute->attname)));
	}
	appendStringInfo(&query, " FROM %s%s WHERE %s", only ? "ONLY " : "",
					 quote_qualified_identifier(get_namespace_name(get_rel_namespace(table)), get_rel_name(table)),
					 quote_identifier(column));
	append_condition(&query, get_atttype(table, get_attnum(table, column)));
	return query.data;
}

/* Free the plans.  Called when the lookup's context is reset. */
static void
free_plans(void *arg)
{
	FindCall   *call = arg;

	for (int i = 0; i <= call->lookup.n; i++)
	{
		if (call->plans[i] != NULL)
			SPI_freeplan(call->plans[i]);
	}
	call->plans = NULL;
	call->kept = 0;
}

/* Resolve the tables, and forget the plans if those have changed. */
static FindCall *
find_call(FunctionCallInfo fcinfo, Oid relation, const char *column)
{
	FindCall   *call = fcinfo->flinfo->fn_extra;

	if (call == NULL)
	{
		call = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FindCall));
		table_lookup_init(&call->lookup, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = call;
	}
	table_lookup_resolve(&call->lookup, relation, column);
	if (call->plans == NULL)
	{
		MemoryContext context = call->lookup.context;
		MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(MemoryContextCallback));

		call->plans = MemoryContextAllocZero(context, sizeof(SPIPlanPtr) * (call->lookup.n + 1));
		*callback = (MemoryContextCallback) {free_plans, call};
		MemoryContextRegisterResetCallback(context, callback);
	}
	return call;
}

/*
 * Add the rows of a table, or of all together, to the result.
 *
 * A generic plan assumes that most keys are absent.  With bfindex_probed_table, the
 * planner assumes that the key is present in this table, whose index has been probed.
 */
static void
find_in(FindCall *call, int table, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			key_type = get_fn_expr_argtype(fcinfo->flinfo, 2);
	bool		all = table == call->lookup.n;
	Oid			relation = all ? call->lookup.relation : call->lookup.tables[table].table;
	SPIPlanPtr	plan = call->plans[table];
	bool		keep = plan != NULL || call->kept < MAX_KEPT_PLANS;
	SPIExecuteOptions options = {0};

	if (plan == NULL)
	{
		plan = SPI_prepare(find_query(relation, !all, result->setDesc, call->lookup.column),
						   1, &key_type);
		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		if (keep)
		{
			SPI_keepplan(plan);
			call->plans[table] = plan;
			call->kept++;
		}
	}
	options.read_only = true;
	options.params = makeParamList(1);
	options.params->params[0] = (ParamExternData) {PG_GETARG_DATUM(2), false, PARAM_FLAG_CONST, key_type};
	options.dest = CreateTuplestoreDestReceiver();
	SetTuplestoreDestReceiverParams(options.dest, result->setResult, result->econtext->ecxt_per_query_memory,
									false, NULL, NULL);
	bfindex_probed_table = all ? InvalidOid : relation;
	if (SPI_execute_plan_extended(plan, &options) != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_plan_extended failed");
	if (!spi_plan_uses(plan, relation))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("schema of table \"%s\" was renamed by another session", get_rel_name(relation)),
				 errdetail("Another table has the name of the table now."),
				 errhint("Retry the transaction.")));
	if (!keep)
		SPI_freeplan(plan);
}

/* Add the rows of the tables that may contain the key to the result. */
static void
find_rows(FindCall *call, FunctionCallInfo fcinfo)
{
	const TableLookup *lookup = &call->lookup;
	uint64		hash = key_hash(call->type, PG_GETARG_DATUM(2));
	int		   *found = palloc(sizeof(int) * (lookup->n + 1));
	int			n = 0;
	bool		readable = !lookup->row_security;

	for (int i = 0; i < lookup->n && readable; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (table_lookup_may_contain(&lookup->tables[i], call->type, hash))
		{
			found[n++] = i;
			readable = trust_may_read(lookup->tables[i].table, NULL);
		}
	}
	if (!readable)
	{
		found[0] = lookup->n;
		n = 1;
	}
	for (int i = 0; i < n; i++)
		find_in(call, found[i], fcinfo);
}

PG_FUNCTION_INFO_V1(bloom_find);
Datum
bloom_find(PG_FUNCTION_ARGS)
{
	Oid			row_type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relation = get_typ_typrelid(row_type);
	Oid			probed_before = bfindex_probed_table;
	FindCall   *call;
	char	   *column;

	if (!OidIsValid(relation))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("first argument of bloom_find must have the row type of a table"),
				 errdetail("Its type is %s.", format_type_be(row_type)),
				 errhint("Specify the table as in bloom_find(NULL::table, 'column', key).")));
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
	{
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}

	column = text_to_cstring(PG_GETARG_TEXT_PP(1));
	call = find_call(fcinfo, relation, column);
	if (call->lookup.attribute == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("bloom_find requires a column, but \"%s\" is an index", column),
				 errhint("With an index on an expression, use bloom_index_contains() or bloom_index_partitions().")));

	/* the columns as they are now that the table is locked */
	InitMaterializedSRF(fcinfo, 0);
	key_type_of_call(fcinfo, 2, &call->type);
	SPI_connect();
	PG_TRY();
	{
		find_rows(call, fcinfo);
	}
	PG_FINALLY();
	{
		bfindex_probed_table = probed_before;
	}
	PG_END_TRY();
	SPI_finish();
	return (Datum) 0;
}
