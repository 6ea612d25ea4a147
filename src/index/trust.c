/*
 * trust.c
 *		Who may read an index, and whether an index can be relied upon.
 *
 * Everything that reads an index outside of an index scan uses this file: the functions
 * that users call, and the planner when it probes an index for a constant.  For an index
 * scan, the server has made the same checks.
 *
 * Privileges.  The contents of an index depend on every column that its key, its
 * expression and its predicate refer to: a partial index on (name) WHERE salary > 900
 * reveals who earns more than 900.  A user must be able to SELECT all of those columns,
 * and must have USAGE on the table's schema: with SELECT alone, a query cannot name the
 * table.  An index has the keys of all rows, so users to whom row-level security applies
 * cannot read it.
 *
 * Reliance.  A key that an index lacks is known to be absent from the table only if the
 * index has an entry for every row that the snapshots of this transaction can see.
 */
#include "../compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "index_key.h"
#include "trust.h"

/* ----------------------------------------------------------------
 * Privileges
 * ----------------------------------------------------------------
 */

/* Return the member that stands for a column.  As in the server, system columns are negative. */
static int
member_of_column(AttrNumber column)
{
	return column - FirstLowInvalidHeapAttributeNumber;
}

/* Return the set of this column. */
Bitmapset *
trust_column(AttrNumber column)
{
	return bms_make_singleton(member_of_column(column));
}

/*
 * Return the columns of the table that the contents of an index depend on.  A reference
 * to the whole row is column 0.
 *
 * Expressions are read as they are stored.  The relation cache would evaluate their
 * constant parts, which would run code of the table's owner.
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

/* May the current user name tables of this table's schema? */
static AclResult
check_schema(Oid table)
{
	return bf_namespace_aclcheck(get_rel_namespace(table), GetUserId(), ACL_USAGE);
}

/* May the current user SELECT these columns?  NULL stands for all columns. */
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

/* Raise the error of a query that reads these columns if the current user may not. */
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

/* Does row-level security of this table apply to the current user? */
bool
trust_row_security(Oid table)
{
	return check_enable_rls(table, InvalidOid, true) == RLS_ENABLED;
}

/* Raise the error for a user to whom row-level security applies. */
void
trust_refuse_row_security(Oid table)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("indexes of table \"%s\" cannot be read when row-level security applies", get_rel_name(table)),
			 errdetail("An index holds the keys of all rows, including rows that the policies hide."),
			 errhint("To look up keys, use a query or bloom_find().")));
}

/*
 * Return the columns of a partition as columns of its parent.  Those that the parent
 * lacks become column 0, the whole row.
 */
static Bitmapset *
columns_of_parent(const AppendRelInfo *child, const Bitmapset *columns)
{
	Bitmapset  *result = NULL;
	int			member = -1;

	while ((member = bms_next_member(columns, member)) >= 0)
	{
		AttrNumber	column = member + FirstLowInvalidHeapAttributeNumber;

		column = column > 0 && column <= child->num_child_cols ? child->parent_colnos[column - 1] : InvalidAttrNumber;
		result = bms_add_member(result, member_of_column(column));
	}
	return result;
}

/*
 * May the planner probe an index of this table of the query?  The result shows in
 * EXPLAIN.  So the current user must be able to read the key in a query of the table
 * itself, even if this query reads the table through a view with the privileges of the
 * view's owner.  The privileges to a partition are those to the table that the query
 * names.
 */
bool
trust_planner_may_probe(PlannerInfo *root, Index relid, Relation index)
{
	Bitmapset  *columns = trust_index_columns(index);

	while (root->append_rel_array != NULL && root->append_rel_array[relid] != NULL)
	{
		AppendRelInfo *child = root->append_rel_array[relid];

		if (planner_rt_fetch(child->parent_relid, root)->rtekind != RTE_RELATION)
			break;				/* UNION ALL: the query names the table itself */
		columns = columns_of_parent(child, columns);
		relid = child->parent_relid;
	}
	return trust_may_read(planner_rt_fetch(relid, root)->relid, columns);
}

/* ----------------------------------------------------------------
 * Reliance
 * ----------------------------------------------------------------
 */

/*
 * Raise the error that a query of this table would raise.  The indexes of such a table
 * are empty, or cannot be read from this session.
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

/* Raise an error unless the current user may read all of an index, and it has been built. */
void
trust_check_may_inspect(Relation table, Relation index)
{
	trust_check_may_read(table, trust_index_columns(index));
	trust_check_readable(table);
	if (trust_row_security(RelationGetRelid(table)))
		trust_refuse_row_security(RelationGetRelid(table));

	/* CREATE INDEX CONCURRENTLY has not built it, or not yet */
	if (!index->rd_index->indisready)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has not been built", RelationGetRelationName(index)),
				 errhint("If no session is building the index, REINDEX or drop it.")));
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
static bool
rows_are_elsewhere(Oid table)
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
 * Does an index have the rows that this snapshot sees, given the oldest transaction that
 * was running for it?  An index that was built over HOT chains may have the key of a newer
 * version only.
 */
static bool
has_rows_of(Relation index, TransactionId xmin)
{
	return !index->rd_index->indcheckxmin ||
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), xmin);
}

/*
 * Does an index have all rows that it is defined for and that the snapshots of this
 * transaction can see?
 */
bool
trust_is_usable(Relation index)
{
	return index->rd_index->indisvalid && index->rd_index->indisready && has_rows_of(index, TransactionXmin);
}

/*
 * Is a key that the index lacks certainly absent from the table?  The index must have all
 * rows, and it must compare keys as the column does: the collation of the column can
 * treat strings as equal that the collation of the index does not, and so can the type of
 * the column (index_key_compares_like_column).
 */
bool
trust_has_all_rows(Relation table, Relation index)
{
	Form_pg_index form = index->rd_index;
	AttrNumber	column = form->indkey.values[0];
	Oid			collation = column > 0 ? TupleDescAttr(RelationGetDescr(table), column - 1)->attcollation : InvalidOid;

	return trust_is_usable(index) &&
		(!OidIsValid(collation) || get_collation_isdeterministic(collation)) &&
		index_key_compares_like_column(index) &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		!rows_are_elsewhere(RelationGetRelid(table));
}

/*
 * Raise an error unless an index has all rows that it is defined for.  Those of a partial
 * index are the ones that meet its predicate.
 */
void
trust_check_has_all_rows(Relation table, Relation index)
{
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				 errhint("If no session is building the index, REINDEX or drop it.")));
	if (!has_rows_of(index, TransactionXmin))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" may lack rows that this transaction can see", RelationGetRelationName(index)),
				 errhint("Retry in a new transaction.")));
	if (rows_are_elsewhere(RelationGetRelid(table)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" may lack rows of table \"%s\"",
						RelationGetRelationName(index), RelationGetRelationName(table)),
				 errdetail("The table is managed by another extension, such as Citus or TimescaleDB, which may store its rows elsewhere."),
				 errhint("With Citus, each shard has its own index: use run_command_on_shards() and bloom_union_agg().")));
}

/* Raise an error unless an index has the rows that this snapshot, if it is an old one, can see. */
void
trust_check_snapshot(Relation index, Snapshot snapshot)
{
	if (IsolationUsesXactSnapshot() && !has_rows_of(index, snapshot->xmin))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("index \"%s\" cannot be checked with the snapshot of this transaction",
						RelationGetRelationName(index)),
				 errdetail("The index may lack rows that the snapshot sees."),
				 errhint("Retry in a new transaction.")));
}
