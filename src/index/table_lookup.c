/*
 * table_lookup.c
 *		bloom_index_contains and its variants: testing a table for keys.
 *
 * A lookup names a table and a column, not an index, because REINDEX CONCURRENTLY replaces
 * an index by another one.  It includes partitions and children.  Callers rely on the
 * result that a key is absent, so every table without an index that can be relied upon
 * may contain the key: those with a partial index, with one that is not valid or not yet
 * usable for our snapshots, foreign partitions, partitions without an index, and tables
 * whose rows Citus keeps elsewhere.  trust.c decides that, and who may look up keys.
 *
 * Locks on tables and indexes are kept until the end of the transaction, like those of a
 * query.  They also keep REINDEX CONCURRENTLY from retiring an index that is in use.
 */
#include "../compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "../fingerprint/fingerprint.h"
#include "table_lookup.h"
#include "trust.h"

/* ----------------------------------------------------------------
 * Which indexes can be used
 * ----------------------------------------------------------------
 */

/* The number of relation cache invalidations that this session has received. */
static uint64 invalidations = 0;

static void
count_invalidation(Datum arg, Oid relation)
{
	invalidations++;
}

static void
count_schema_change(Datum arg, int cache, uint32 hash)
{
	invalidations++;
}

/* Can this index rule out that the table contains a key? */
static bool
index_is_filter(Oid index)
{
	Oid			method = index_access_method(index);

	return OidIsValid(method) &&
		(method == get_index_am_oid("bloomfilter", true) || method == get_index_am_oid("fingerprint", true));
}

/*
 * Return the usable index of a table on a column, or the one that is `named` or a
 * partition of it; preferably a bloomfilter index, because it is smaller than a fingerprint
 * index.  *found is set if there is such an index, usable or not.
 */
static Oid
find_index(Relation table, AttrNumber column, Oid named, bool *found)
{
	Oid			bloomfilter = InvalidOid;
	Oid			fingerprint = InvalidOid;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Oid			oid = lfirst_oid(cell);
		Relation	index;

		if (!index_is_filter(oid))
			continue;
		if (OidIsValid(named) && oid != named &&
			!(get_rel_relispartition(oid) && list_member_oid(get_partition_ancestors(oid), named)))
			continue;
		index = index_open(oid, AccessShareLock);
		if (OidIsValid(named) || index->rd_index->indkey.values[0] == column)
		{
			*found = true;
			if (trust_has_all_rows(table, index))
			{
				if (bfindex_is(index))
					bloomfilter = oid;
				else if (fp_is(index))
					fingerprint = oid;
			}
		}
		index_close(index, NoLock);
	}
	return OidIsValid(bloomfilter) ? bloomfilter : fingerprint;
}

/* Return the column of this name, or 0 and set *named to the index of this name. */
static AttrNumber
find_column(Relation table, const char *name, Oid *named)
{
	AttrNumber	column = get_attnum(RelationGetRelid(table), name);

	*named = InvalidOid;
	if (column != InvalidAttrNumber)
		return column;
	*named = get_relname_relid(name, RelationGetNamespace(table));
	if (!OidIsValid(*named) || !list_member_oid(RelationGetIndexList(table), *named) ||
		!index_is_filter(*named))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has neither a column nor a bloomfilter or fingerprint index named \"%s\"",
						RelationGetRelationName(table), name),
				 errhint("Specify the indexed column, or the name of the index if it is on an expression.")));
	return InvalidAttrNumber;
}

/* Return the columns that the contents of an index depend on. */
static Bitmapset *
columns_of_named_index(Oid named)
{
	Relation	index = index_open(named, AccessShareLock);
	Bitmapset  *columns = trust_index_columns(index);

	index_close(index, NoLock);
	return columns;
}

/* Add a table to the lookup if it has rows of its own. */
static void
add_table(TableLookup *lookup, Oid oid, Oid named, bool *found)
{
	Relation	table = table_open(oid, NoLock);

	/* a query omits temporary children of other sessions, too */
	if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE && !RELATION_IS_OTHER_TEMP(table))
	{
		AttrNumber	column = OidIsValid(named) ? InvalidAttrNumber : get_attnum(oid, lookup->column);

		trust_check_readable(table);
		lookup->tables[lookup->n++] = (LookupTable) {oid, find_index(table, column, named, found)};
	}
	table_close(table, NoLock);
}

/* Raise the error for a relation that is not a table, but possibly an index of one. */
static void
refuse_non_table(Relation relation)
{
	Oid			table = IndexGetRelation(RelationGetRelid(relation), true);

	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a table", RelationGetRelationName(relation)),
			 OidIsValid(table) ?
			 errhint("Specify the table \"%s\" and the indexed column; to inspect the index, use bloom_index_stats or fingerprint_stats.",
					 get_rel_name(table)) : 0));
}

/* Prepare a lookup whose memory is freed with `parent`. */
void
table_lookup_init(TableLookup *lookup, MemoryContext parent)
{
	lookup->context = AllocSetContextCreate(parent, "bloomfilter table lookup", ALLOCSET_SMALL_SIZES);
}

/*
 * Find the tables and indexes of a lookup.
 *
 * Those of the last call are kept while they are known to be right: for the same user, in
 * the same subtransaction, whose locks protect them (a rollback releases the locks), and
 * until the server reports a change of any relation.  Locks do not suffice, because a
 * partition can be attached.
 */
void
table_lookup_resolve(TableLookup *lookup, Oid relation, const char *column)
{
	static bool registered = false;
	MemoryContext caller;
	Relation	table;
	Oid			named;
	List	   *tables;
	ListCell   *cell;
	bool		found = false;

	AcceptInvalidationMessages();
	if (OidIsValid(relation) && lookup->relation == relation && lookup->invalidations == invalidations &&
		lookup->transaction == BF_LOCAL_TRANSACTION && lookup->subtransaction == GetCurrentSubTransactionId() &&
		lookup->user == GetUserId() && strcmp(lookup->column, column) == 0)
		return;
	if (!registered)
	{
		CacheRegisterRelcacheCallback(count_invalidation, (Datum) 0);
		/* bloom_find keeps statements that contain names of schemas */
		CacheRegisterSyscacheCallback(NAMESPACEOID, count_schema_change, (Datum) 0);
		registered = true;
	}
	lookup->relation = InvalidOid;
	MemoryContextReset(lookup->context);
	caller = MemoryContextSwitchTo(lookup->context);

	table = try_relation_open(relation, AccessShareLock);
	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", relation)));
	if (table->rd_rel->relkind != RELKIND_RELATION && table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		table->rd_rel->relkind != RELKIND_MATVIEW)
		refuse_non_table(table);
	lookup->attribute = find_column(table, column, &named);
	trust_check_may_read(table, lookup->attribute != InvalidAttrNumber ? trust_column(lookup->attribute) :
						 columns_of_named_index(named));
	trust_check_readable(table);
	lookup->row_security = trust_row_security(relation);
	lookup->column = pstrdup(column);
	lookup->user = GetUserId();
	lookup->transaction = BF_LOCAL_TRANSACTION;
	lookup->subtransaction = GetCurrentSubTransactionId();

	/* invalidations from here on may concern the tables that follow */
	lookup->invalidations = invalidations;
	lookup->n = 0;
	tables = find_all_inheritors(relation, AccessShareLock, NULL);
	lookup->tables = palloc(sizeof(LookupTable) * list_length(tables));
	foreach(cell, tables)
	{
		CHECK_FOR_INTERRUPTS();
		add_table(lookup, lfirst_oid(cell), named, &found);
	}
	if (!found && lookup->n > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("column \"%s\" of table \"%s\" has no bloomfilter or fingerprint index",
						column, RelationGetRelationName(table)),
				 lookup->attribute < 0 ? 0 : errhint("Create an index with CREATE INDEX ON %s USING bloomfilter (%s).",
													 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
																				RelationGetRelationName(table)),
													 quote_identifier(column))));
	relation_close(table, NoLock);
	MemoryContextSwitchTo(caller);
	lookup->relation = relation;
}

/* Raise the error for a key of another class than that of an index. */
static void
refuse_class(Relation index, IndexKeyClass stored, const KeyType *type)
{
	KeyClass	of_index;
	const char *cast;

	index_key_class_check(index, &stored, 0);
	of_index = index_key_class(&stored);
	cast = key_class_cast(&of_index);
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("key of class %s does not fit index \"%s\" of class %s", key_class_label(&type->class),
					RelationGetRelationName(index), key_class_label(&of_index)),
			 key_class_is_array(&type->class) && !key_class_is_array(&of_index) ?
			 errhint("If each element is a key, use bloom_index_contains_each() or bloom_index_missing().") :
			 cast != NULL ? errhint("Cast the key to the type of the column, for example key::%s.", cast) :
			 errhint("Cast the key to the type of the column.")));
}

/*
 * Can this table contain a row with the key?
 *
 * A probe counts as a scan of the index, so that reports of unused indexes do not list it.
 * A key that is present counts as an entry read: idx_tup_read / idx_scan is the share of
 * such keys.
 */
bool
table_lookup_may_contain(const LookupTable *table, const KeyType *type, uint64 hash)
{
	Relation	index = OidIsValid(table->index) ? RelationIdGetRelation(table->index) : NULL;
	bool		result = true;

	if (index == NULL)
		return true;
	if (likely(bfindex_is(index)))
	{
		if (unlikely(!index_key_class_matches(bfindex_class(index), type)))
			refuse_class(index, *bfindex_class(index), type);
		result = bfindex_contains_hash(index, bfindex_hash(hash), GetActiveSnapshot(), NULL);
	}
	else
	{
		if (unlikely(!index_key_class_matches(&fp_meta(index)->class, type)))
			refuse_class(index, fp_meta(index)->class, type);
		result = fp_may_contain(index, hash, GetActiveSnapshot());
	}
	pgstat_count_index_scan(index);
	if (result)
		pgstat_count_index_tuples(index, 1);
	RelationClose(index);
	return result;
}

/* ----------------------------------------------------------------
 * Functions
 * ----------------------------------------------------------------
 */

/* What a call site keeps. */
typedef struct LookupCall
{
	KeyType    *type;
	TableLookup lookup;
} LookupCall;

/* Resolve the table and column that were passed to a function. */
static LookupCall *
lookup_call(FunctionCallInfo fcinfo)
{
	LookupCall *call = fcinfo->flinfo->fn_extra;
	char		column[NAMEDATALEN];

	if (call == NULL)
	{
		call = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(LookupCall));
		table_lookup_init(&call->lookup, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = call;
	}
	text_to_cstring_buffer(PG_GETARG_TEXT_PP(1), column, sizeof(column));
	table_lookup_resolve(&call->lookup, PG_GETARG_OID(0), column);
	if (call->lookup.row_security)
		trust_refuse_row_security(call->lookup.relation);
	return call;
}

/* Can any of the tables contain a row with the key? */
static bool
any_table_may_contain(const LookupCall *call, uint64 hash)
{
	for (int i = 0; i < call->lookup.n; i++)
	{
		if (table_lookup_may_contain(&call->lookup.tables[i], call->type, hash))
			return true;
	}
	return false;
}

PG_FUNCTION_INFO_V1(bloom_index_contains);
Datum
bloom_index_contains(PG_FUNCTION_ARGS)
{
	LookupCall *call = lookup_call(fcinfo);
	KeyType    *type = key_type_of_call(fcinfo, 2, &call->type);

	PG_RETURN_BOOL(any_table_may_contain(call, key_hash(type, PG_GETARG_DATUM(2))));
}

PG_FUNCTION_INFO_V1(bloom_index_contains_each);
Datum
bloom_index_contains_each(PG_FUNCTION_ARGS)
{
	LookupCall *call = lookup_call(fcinfo);
	KeyArray	keys = key_array_of_argument(fcinfo, 2, &call->type);
	Datum	   *results = palloc(sizeof(Datum) * Max(keys.items, 1));
	uint64	   *hash = keys.hashes;

	for (int i = 0; i < keys.items; i++)
	{
		CHECK_FOR_INTERRUPTS();
		results[i] = BoolGetDatum(!keys.nulls[i] && any_table_may_contain(call, *hash));
		hash += !keys.nulls[i];
	}
	if (keys.items == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(BOOLOID));
	PG_RETURN_ARRAYTYPE_P(construct_md_array(results, keys.nulls, AARR_NDIM(keys.array), AARR_DIMS(keys.array),
											 AARR_LBOUND(keys.array), BOOLOID, sizeof(bool), true, TYPALIGN_CHAR));
}

/* bloom_index_missing: the keys of an array that definitely no row has, each once */
PG_FUNCTION_INFO_V1(bloom_index_missing);
Datum
bloom_index_missing(PG_FUNCTION_ARGS)
{
	LookupCall *call = lookup_call(fcinfo);
	KeyArray	keys = key_array_of_argument(fcinfo, 2, &call->type);
	bool	   *found = palloc(sizeof(bool) * Max(keys.n, 1));

	for (Size i = 0; i < keys.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found[i] = any_table_may_contain(call, keys.hashes[i]);
	}
	PG_RETURN_ARRAYTYPE_P(key_array_of_missing(&keys, found));
}

PG_FUNCTION_INFO_V1(bloom_index_partitions);
Datum
bloom_index_partitions(PG_FUNCTION_ARGS)
{
	LookupCall *call = lookup_call(fcinfo);
	KeyType    *type = key_type_of_call(fcinfo, 2, &call->type);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(2));
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < call->lookup.n; i++)
	{
		Datum		table = ObjectIdGetDatum(call->lookup.tables[i].table);
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		if (table_lookup_may_contain(&call->lookup.tables[i], type, hash))
			tuplestore_putvalues(result->setResult, result->setDesc, &table, &isnull);
	}
	return (Datum) 0;
}
