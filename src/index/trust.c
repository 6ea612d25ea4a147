/*
 * trust.c
 *		Who may look into an index, and whether an index can be relied upon.
 *
 * Everything that reads an index outside of an index scan depends on this file: the
 * functions that users call, and the planner where it probes an index for a constant.
 * In an index scan the server itself has checked all of it.
 *
 * Privileges.  The contents of an index tell about every column that its key, its
 * expression and its predicate refer to: a partial index on (name) WHERE salary > 900
 * tells who earns more than 900.  A user must be able to SELECT all of those columns, and
 * must have USAGE of the table's schema: with SELECT alone, a table cannot be named in a
 * query.  An index has the keys of all rows, so it is closed to users to whom row-level
 * security applies.
 *
 * Reliance.  That an index lacks a key is believed only if it has an entry for every row
 * that the snapshots of this transaction can see.
 */
#include "../compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "nodes/nodes.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "trust.h"

/* ----------------------------------------------------------------
 * Privileges
 * ----------------------------------------------------------------
 */

/* Sets of columns are offset as the server's own are, so that system columns fit. */
static int
member_of_column(AttrNumber column)
{
	return column - FirstLowInvalidHeapAttributeNumber;
}

Bitmapset *
trust_column(AttrNumber column)
{
	return bms_make_singleton(member_of_column(column));
}

/*
 * The columns of the table that an index tells about.  A reference to the whole row
 * is column 0.
 *
 * Expressions are taken as they are stored: the relation cache would evaluate what is
 * constant in them, and run code of the table's owner for that.
 */
Bitmapset *
trust_index_columns(Relation index)
{
	static const AttrNumber expressions[] = {Anum_pg_index_indexprs, Anum_pg_index_indpred};
	const int2vector *keys = &index->rd_index->indkey;
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(index)));
	Bitmapset  *columns = NULL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", RelationGetRelid(index));
	for (int i = 0; i < keys->dim1; i++)
	{
		if (keys->values[i] != 0)
			columns = bms_add_member(columns, member_of_column(keys->values[i]));
	}
	for (int i = 0; i < lengthof(expressions); i++)
	{
		bool		isnull;
		Datum		datum = SysCacheGetAttr(INDEXRELID, tuple, expressions[i], &isnull);

		if (!isnull)
			pull_varattnos(stringToNode(TextDatumGetCString(datum)), 1, &columns);
	}
	ReleaseSysCache(tuple);
	return columns;
}

static AclResult
check_schema(Oid table)
{
	return bf_namespace_aclcheck(get_rel_namespace(table), GetUserId(), ACL_USAGE);
}

static AclResult
check_columns(Oid table, const Bitmapset *columns)
{
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);
	int			member = -1;

	if (result == ACLCHECK_OK || bms_is_empty(columns))
		return result;
	while ((member = bms_next_member(columns, member)) >= 0)
	{
		AttrNumber	column = member + FirstLowInvalidHeapAttributeNumber;

		result = column == InvalidAttrNumber ? pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ALL) :
			pg_attribute_aclcheck(table, column, GetUserId(), ACL_SELECT);
		if (result != ACLCHECK_OK)
			break;
	}
	return result;
}

/*
 * May the current user read these columns of all rows in a query that names the table?
 * NULL stands for all columns.
 */
bool
trust_may_read(Oid table, const Bitmapset *columns)
{
	return check_schema(table) == ACLCHECK_OK && check_columns(table, columns) == ACLCHECK_OK &&
		!trust_row_security(table);
}

/* Raise the error of a query that reads these columns, if the current user may not. */
void
trust_check_may_read(Relation table, const Bitmapset *columns)
{
	AclResult	result = check_schema(RelationGetRelid(table));

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_SCHEMA, get_namespace_name(RelationGetNamespace(table)));
	result = check_columns(RelationGetRelid(table), columns);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(table->rd_rel->relkind), RelationGetRelationName(table));
}

/* Does row-level security apply to the current user? */
bool
trust_row_security(Oid table)
{
	return check_enable_rls(table, InvalidOid, true) == RLS_ENABLED;
}

/* ----------------------------------------------------------------
 * Reliance
 * ----------------------------------------------------------------
 */

/*
 * Raise the error that a query of this table would raise.  Its indexes are empty, or
 * not to be read from this session.
 */
void
trust_check_readable(Relation table)
{
	if (RELATION_IS_OTHER_TEMP(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	if (RecoveryInProgress() && !RelationIsPermanent(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	if (!RelationIsScannable(table))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("materialized view \"%s\" has not been populated", RelationGetRelationName(table)),
				 errhint("Use the REFRESH MATERIALIZED VIEW command.")));
}

/*
 * Does another extension keep rows of this table elsewhere, where its indexes do not
 * have them?
 *
 * Citus leaves an empty table with empty indexes under the name of a table that it
 * distributes, on each node, and lists it in a catalog.  TimescaleDB keeps the rows of
 * a compressed chunk in another table; chunks are in a schema of its own unless the user
 * has chosen another one.
 */
bool
trust_rows_are_elsewhere(Oid table)
{
	Oid			catalog = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	Oid			index = get_relname_relid("pg_dist_partition_logical_relid_index", PG_CATALOG_NAMESPACE);
	AttrNumber	column = OidIsValid(catalog) ? get_attnum(catalog, "logicalrelid") : InvalidAttrNumber;
	Relation	relation;
	SysScanDesc scan;
	ScanKeyData key;
	char	   *schema = get_namespace_name(get_rel_namespace(table));
	bool		result;

	if (schema != NULL && strcmp(schema, "_timescaledb_internal") == 0)
		return true;
	if (column == InvalidAttrNumber)
		return false;
	relation = table_open(catalog, AccessShareLock);
	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	scan = systable_beginscan(relation, index, OidIsValid(index), NULL, 1, &key);
	result = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return result;
}

/*
 * Does an index have the rows that the snapshots of this transaction see?  One that was
 * built over HOT chains may have the key of a newer version only.
 */
bool
trust_sees_snapshots(Relation index)
{
	return !index->rd_index->indcheckxmin ||
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin);
}

/*
 * Is a key that the index lacks certainly absent from the table?  The index must have
 * all rows, and it must compare keys as the column does: the collation of the
 * column can regard strings as equal that the collation of the index does not, and so can
 * the type of the column (index_key_compares_like_column).
 */
bool
trust_has_all_rows(Relation table, Relation index)
{
	Form_pg_index form = index->rd_index;
	AttrNumber	column = form->indkey.values[0];
	Oid			collation = column > 0 ? TupleDescAttr(RelationGetDescr(table), column - 1)->attcollation : InvalidOid;

	return form->indisvalid && form->indisready &&
		(!OidIsValid(collation) || get_collation_isdeterministic(collation)) &&
		index_key_compares_like_column(index) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) && trust_sees_snapshots(index);
}
