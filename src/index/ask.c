/*
 * ask.c
 *		bloom_index_contains and its family: may a table have a row with this key?
 *
 * The question is about a table and a column, not about an index: REINDEX
 * CONCURRENTLY replaces an index by another one.  It includes partitions and
 * children.  "No" is relied upon, so every table that has no index which can say it
 * counts as a "yes": partial indexes, such as are not valid or not yet usable for
 * our snapshots, foreign partitions, partitions without an index, tables whose rows
 * Citus has put elsewhere.  trust.c decides that, and who may ask.
 *
 * Locks on tables and indexes are kept until the end of the transaction, as those
 * of a query.  That also keeps an index in use from being retired by REINDEX
 * CONCURRENTLY.
 */
#include "../compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "ask.h"
#include "trust.h"

/* ----------------------------------------------------------------
 * Which indexes can answer
 * ----------------------------------------------------------------
 */

/* How often anything about any relation has changed. */
static uint64 invalidations = 0;

static void
count_invalidation(Datum arg, Oid relation)
{
	invalidations++;
}

static bool
index_has_method(Oid index, Oid method)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool		result = HeapTupleIsValid(tuple) && ((Form_pg_class) GETSTRUCT(tuple))->relam == method;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}

/*
 * The usable index of a table on a column, or the one that is `named` or a
 * partition of it.  *found tells whether there is one at all.
 */
static Oid
find_index(Relation table, AttrNumber column, Oid named, bool *found)
{
	Oid			method = get_index_am_oid("bloomfilter", false);
	Oid			usable = InvalidOid;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Oid			oid = lfirst_oid(cell);
		Relation	index;

		if (!index_has_method(oid, method))
			continue;
		if (OidIsValid(named) && oid != named &&
			!(get_rel_relispartition(oid) && list_member_oid(get_partition_ancestors(oid), named)))
			continue;
		index = index_open(oid, AccessShareLock);
		if (OidIsValid(named) || index->rd_index->indkey.values[0] == column)
		{
			*found = true;
			if (!OidIsValid(usable) && bfindex_is(index) && trust_has_all_rows(table, index))
				usable = oid;
		}
		index_close(index, NoLock);
	}
	return usable;
}

/* The column, or if there is none of that name, the index. */
static AttrNumber
find_column(Relation table, const char *name, Oid *named)
{
	AttrNumber	column = get_attnum(RelationGetRelid(table), name);

	*named = InvalidOid;
	if (column != InvalidAttrNumber)
		return column;
	*named = get_relname_relid(name, RelationGetNamespace(table));
	if (!OidIsValid(*named) || !list_member_oid(RelationGetIndexList(table), *named) ||
		!index_has_method(*named, get_index_am_oid("bloomfilter", false)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has neither a column nor a bloomfilter index named \"%s\"",
						RelationGetRelationName(table), name),
				 errhint("Name the column that is indexed; an index on an expression is named itself.")));
	return InvalidAttrNumber;
}

/* The columns that an index tells about. */
static Bitmapset *
columns_of_named_index(Oid named)
{
	Relation	index = index_open(named, AccessShareLock);
	Bitmapset  *columns = trust_index_columns(index);

	index_close(index, NoLock);
	return columns;
}

/* Add a table with rows of its own. */
static void
add_table(Asked *asked, Oid oid, Oid named, bool *found)
{
	Relation	table = table_open(oid, NoLock);

	/* a query, too, passes over temporary children of other sessions */
	if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE && !RELATION_IS_OTHER_TEMP(table))
	{
		AttrNumber	column = OidIsValid(named) ? InvalidAttrNumber : get_attnum(oid, asked->column);

		trust_check_readable(table);
		asked->tables[asked->n++] = (AskedTable) {oid, find_index(table, column, named, found)};
	}
	table_close(table, NoLock);
}

/*
 * Find out who can answer a question.  What was found before is kept while it is
 * good: for this subtransaction, whose locks protect it (a rollback releases them),
 * this user, and until the server reports a change of any relation.  Not all
 * changes wait for our locks: a partition can be attached.
 */
void
ask_resolve(Asked *asked, Oid relation, const char *column)
{
	static bool registered = false;
	MemoryContext caller;
	Relation	table;
	Oid			named;
	List	   *tables;
	ListCell   *cell;
	bool		found = false;

	AcceptInvalidationMessages();
	if (asked->relation == relation && asked->invalidations == invalidations &&
		asked->transaction == BF_LOCAL_TRANSACTION && asked->subtransaction == GetCurrentSubTransactionId() &&
		asked->user == GetUserId() && strcmp(asked->column, column) == 0)
		return;
	if (!registered)
	{
		CacheRegisterRelcacheCallback(count_invalidation, (Datum) 0);
		registered = true;
	}
	asked->relation = InvalidOid;
	MemoryContextReset(asked->context);
	caller = MemoryContextSwitchTo(asked->context);

	table = try_relation_open(relation, AccessShareLock);
	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no table with OID %u", relation)));
	if (table->rd_rel->relkind != RELKIND_RELATION && table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		table->rd_rel->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(table))));
	asked->attribute = find_column(table, column, &named);
	trust_check_may_read(table, asked->attribute != InvalidAttrNumber ? trust_column(asked->attribute) :
						 columns_of_named_index(named));
	trust_check_readable(table);
	asked->secured = trust_row_security(relation);
	asked->column = pstrdup(column);
	asked->user = GetUserId();
	asked->transaction = BF_LOCAL_TRANSACTION;
	asked->subtransaction = GetCurrentSubTransactionId();

	/* what is invalidated from here on is not known to be good */
	asked->invalidations = invalidations;
	asked->n = 0;
	tables = find_all_inheritors(relation, AccessShareLock, NULL);
	asked->tables = palloc(sizeof(AskedTable) * list_length(tables));
	foreach(cell, tables)
	{
		CHECK_FOR_INTERRUPTS();
		add_table(asked, lfirst_oid(cell), named, &found);
	}
	if (!found && asked->n > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no bloomfilter index on column \"%s\" of table \"%s\"",
						column, RelationGetRelationName(table)),
				 asked->attribute < 0 ? 0 : errhint("Create one: CREATE INDEX ON %s USING bloomfilter (%s).",
													quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
																			   RelationGetRelationName(table)),
													quote_identifier(column))));
	relation_close(table, NoLock);
	MemoryContextSwitchTo(caller);
	asked->relation = relation;
}

/* May this table have a row with the key? */
bool
ask_table(const AskedTable *table, const KeyType *key, uint64 hash)
{
	Relation	index = OidIsValid(table->index) ? RelationIdGetRelation(table->index) : NULL;
	bool		result = true;

	if (index == NULL)
		return true;
	if (likely(index_key_class_matches(bfindex_class(index), key)))
		result = bfindex_contains_hash(index, hash, GetActiveSnapshot());
	else
	{
		KeyClass	of_index;

		bfindex_check_class(index);
		of_index = index_key_class(bfindex_class(index));
		if (of_index.name_length > 0)
			of_index.name = pnstrdup(of_index.name, of_index.name_length);
		key_class_check(&of_index, &key->class);
	}
	RelationClose(index);
	return result;
}

/* ----------------------------------------------------------------
 * Functions
 * ----------------------------------------------------------------
 */

/* What a call site keeps. */
typedef struct AskCall
{
	KeyType    *key;
	Asked		asked;
} AskCall;

static AskCall *
ask_call(FunctionCallInfo fcinfo)
{
	AskCall    *call = fcinfo->flinfo->fn_extra;
	const text *column = PG_GETARG_TEXT_PP(1);
	char		name[NAMEDATALEN];

	if (call == NULL)
	{
		call = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(AskCall));
		call->asked.context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "bloomfilter index question",
													ALLOCSET_SMALL_SIZES);
		fcinfo->flinfo->fn_extra = call;
	}
	text_to_cstring_buffer(column, name, sizeof(name));
	ask_resolve(&call->asked, PG_GETARG_OID(0), name);
	if (call->asked.secured)
		trust_refuse_row_security(call->asked.relation);
	return call;
}

/* May any of the tables have a row with the key? */
static bool
ask_any(const Asked *asked, const KeyType *key, uint64 hash)
{
	for (int i = 0; i < asked->n; i++)
	{
		if (ask_table(&asked->tables[i], key, hash))
			return true;
	}
	return false;
}

PG_FUNCTION_INFO_V1(bloom_index_contains);
Datum
bloom_index_contains(PG_FUNCTION_ARGS)
{
	AskCall    *call = ask_call(fcinfo);
	KeyType    *key = key_type_of_call(fcinfo, 2, &call->key);
	uint64		hash = bfindex_hash(key_hash(key, PG_GETARG_DATUM(2)));

	PG_RETURN_BOOL(ask_any(&call->asked, key, hash));
}

PG_FUNCTION_INFO_V1(bloom_index_contains_each);
Datum
bloom_index_contains_each(PG_FUNCTION_ARGS)
{
	AskCall    *call = ask_call(fcinfo);
	KeyArray	keys = key_array_of_argument(fcinfo, 2, &call->key);
	Datum	   *answers = palloc(sizeof(Datum) * Max(keys.items, 1));
	uint64	   *hash = keys.hashes;

	for (int i = 0; i < keys.items; i++)
	{
		CHECK_FOR_INTERRUPTS();
		answers[i] = BoolGetDatum(!keys.nulls[i] &&
								  ask_any(&call->asked, call->key, bfindex_hash(*hash)));
		hash += !keys.nulls[i];
	}
	if (keys.items == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(BOOLOID));
	PG_RETURN_ARRAYTYPE_P(construct_md_array(answers, keys.nulls, AARR_NDIM(keys.array), AARR_DIMS(keys.array),
											 AARR_LBOUND(keys.array), BOOLOID, sizeof(bool), true, TYPALIGN_CHAR));
}

PG_FUNCTION_INFO_V1(bloom_index_partitions);
Datum
bloom_index_partitions(PG_FUNCTION_ARGS)
{
	AskCall    *call = ask_call(fcinfo);
	KeyType    *key = key_type_of_call(fcinfo, 2, &call->key);
	uint64		hash = bfindex_hash(key_hash(key, PG_GETARG_DATUM(2)));
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < call->asked.n; i++)
	{
		Datum		table = ObjectIdGetDatum(call->asked.tables[i].table);
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		if (ask_table(&call->asked.tables[i], key, hash))
			tuplestore_putvalues(result->setResult, result->setDesc, &table, &isnull);
	}
	return (Datum) 0;
}
