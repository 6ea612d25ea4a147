/*
 * find.c
 *		bloom_find(row_type, column, key): the rows of a table with this key.
 *
 * A query over many partitions pays for each of them in planning and at the start of
 * the executor, even if its index says "no".  Here the indexes are lookup first, and
 * only for the partitions that may have the key is there a query.
 *
 * The function is STABLE, so everything below runs in the snapshot of the query that
 * calls it, which was taken before the first index is lookup: a row that moves from
 * one partition to another meanwhile is seen where it was.
 *
 * The result is that of "SELECT * FROM table WHERE column = key".  That very query is
 * run where partitions must not be read by themselves: if the user may read the
 * table but not a partition or its schema, or if a policy applies to one of them.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "table_lookup.h"
#include "trust.h"

/* The key as the query gets it. */
typedef struct FindKey
{
	Oid			type;
	Datum		value;
} FindKey;

/*
 * Append "= key" with the equality operator of the column's type.  A literal has come to us
 * as text: a type that compares otherwise, such as char(n) or citext, needs it as its own.
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
 * The query, as text: columns by name in the order of the row type, so that a
 * partition may have them in another; dropped ones are NULL.  Everything is named
 * with its schema.
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

/* Run the query, its rows going to the result. */
static void
find_in(Oid table, bool only, ReturnSetInfo *result, const char *column, FindKey key)
{
	SPIExecuteOptions options = {0};
	SPIPlanPtr	plan = SPI_prepare(find_query(table, only, result->setDesc, column), 1, &key.type);

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	options.read_only = true;
	options.params = makeParamList(1);
	options.params->params[0] = (ParamExternData) {key.value, false, PARAM_FLAG_CONST, key.type};
	options.dest = CreateTuplestoreDestReceiver();
	SetTuplestoreDestReceiverParams(options.dest, result->setResult, result->econtext->ecxt_per_query_memory,
									false, NULL, NULL);
	if (SPI_execute_plan_extended(plan, &options) != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_plan_extended failed");
	SPI_freeplan(plan);
}

PG_FUNCTION_INFO_V1(bloom_find);
Datum
bloom_find(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			row_type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relation = get_typ_typrelid(row_type);
	TableLookup lookup = {0};
	KeyType    *type;
	FindKey		key;
	uint64		hash;
	char	   *column;
	List	   *tables = NIL;
	bool		alone = true;
	ListCell   *cell;

	if (!OidIsValid(relation))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("first argument of bloom_find must be of the row type of a table"),
				 errdetail("It is of type %s.", format_type_be(row_type)),
				 errhint("Name the table as in bloom_find(NULL::table, 'column', key).")));
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
	{
		InitMaterializedSRF(fcinfo, 0);
		return (Datum) 0;
	}

	column = text_to_cstring(PG_GETARG_TEXT_PP(1));
	table_lookup_init(&lookup, CurrentMemoryContext);
	table_lookup_resolve(&lookup, relation, column);
	if (lookup.attribute == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("bloom_find needs a column, and \"%s\" is an index", column),
				 errhint("With an index on an expression, use bloom_index_contains() or bloom_index_partitions().")));

	/* the columns as they are now that the table is locked */
	InitMaterializedSRF(fcinfo, 0);
	type = key_type_of_argument(fcinfo, 2);
	key = (FindKey) {get_fn_expr_argtype(fcinfo->flinfo, 2), PG_GETARG_DATUM(2)};
	hash = bfindex_hash(key_hash(type, key.value));
	for (int i = 0; i < lookup.n && !lookup.row_security && alone; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!table_lookup_may_contain(&lookup.tables[i], type, hash))
			continue;
		tables = lappend_oid(tables, lookup.tables[i].table);
		alone = trust_may_read(lookup.tables[i].table, NULL);
	}

	SPI_connect();
	if (lookup.row_security || !alone)
		find_in(relation, false, result, column, key);
	else
	{
		foreach(cell, tables)
			find_in(lfirst_oid(cell), true, result, column, key);
	}
	SPI_finish();
	return (Datum) 0;
}
