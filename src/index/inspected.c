/*
 * inspected.c
 *		An index that a function inspects: opening it, and reading its rows.
 */
#include "inspected.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "index_key.h"
#include "trust.h"

/* Raise the error for an argument that is not an index, but possibly a table with one. */
static void
refuse_non_index(Oid oid, const char *method)
{
	Relation	relation = try_relation_open(oid, AccessShareLock);
	ListCell   *cell;
	const char *index = NULL;

	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index with OID %u does not exist", oid)));
	foreach(cell, relation->rd_rel->relhasindex ? RelationGetIndexList(relation) : NIL)
	{
		if (index_access_method(lfirst_oid(cell)) == get_index_am_oid(method, true))
			index = get_rel_name(lfirst_oid(cell));
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not an index", RelationGetRelationName(relation)),
			 index != NULL ?
			 errhint("Specify an index of the table, such as \"%s\"; to test the table for a key, use bloom_index_contains.", index) :
			 errhint("Specify the name of a %s index.", method)));
}

/*
 * Raise the error for an index of another access method.  Both of this extension have functions
 * of their own.
 */
static void
refuse_method(Relation index, const char *method)
{
	const char *own = get_am_name(index->rd_rel->relam);

	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not a %s index", RelationGetRelationName(index), method),
			 errdetail("It is a %s index.", own),
			 strcmp(own, "fingerprint") == 0 ? errhint("Use fingerprint_stats or fingerprint_check.") :
			 strcmp(own, "bloomfilter") == 0 ? errhint("Use bloom_index_stats or bloom_index_check.") : 0));
}

/* Open an index of an access method, and raise an error if it cannot be inspected. */
Inspected
inspected_open(Oid oid, const char *method)
{
	Oid			table = IndexGetRelation(oid, true);
	Inspected	inspected;

	if (!OidIsValid(table))
		refuse_non_index(oid, method);
	inspected.heap = table_open(table, AccessShareLock);
	inspected.index = index_open(oid, AccessShareLock);
	if (strcmp(get_am_name(inspected.index->rd_rel->relam), method) != 0)
		refuse_method(inspected.index, method);
	if (inspected.index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", RelationGetRelationName(inspected.index)),
				 errhint("Specify the index of a partition, as listed by SELECT relid FROM pg_partition_tree('%s') WHERE isleaf.",
						 RelationGetRelationName(inspected.index))));
	trust_check_may_inspect(inspected.heap, inspected.index);
	return inspected;
}

/* Close an index, but keep the locks until the end of the transaction. */
void
inspected_close(Inspected inspected)
{
	index_close(inspected.index, NoLock);
	table_close(inspected.heap, NoLock);
}

/*
 * Call a function for every row of the index that a snapshot sees.  Expressions and predicates of
 * the index run with the privileges of the table's owner in a restricted context, as when the
 * index is built.
 */
void
inspected_scan(Inspected inspected, Snapshot snapshot, IndexBuildCallback callback, void *state)
{
	struct IndexInfo *info;
	Oid			user;
	int			security;
	int			settings = NewGUCNestLevel();

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(inspected.heap->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
	bf_restrict_search_path();
	info = BuildIndexInfo(inspected.index); /* evaluates constants */
	info->ii_Concurrent = true; /* to use our snapshot */
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	table_index_build_scan(inspected.heap, inspected.index, info, true, false, callback, state,
						   table_beginscan_strat(inspected.heap, snapshot, 0, NULL, true, true));
	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, security);
}
