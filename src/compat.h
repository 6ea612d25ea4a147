/*
 * compat.h
 *		All differences between the supported major versions of PostgreSQL.
 */
#ifndef BF_COMPAT_H
#define BF_COMPAT_H

#include "postgres.h"
#include "fmgr.h"

#include <limits.h>				/* included by the server's headers before 19 */

/* Report a soft error from an input function, since 16. */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#include "varatt.h"
#define bf_ereturn(context, ...) ereturn(context, (Datum) 0, __VA_ARGS__)
#else
#define bf_ereturn(context, ...) ereport(ERROR, __VA_ARGS__)
#endif

/*
 * The module is built with hidden symbols.  The server does that itself since 16;
 * before, any other module could replace a function that is not static.  Functions
 * that SQL calls have to be exported.
 */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(function) \
	extern PGDLLEXPORT Datum function(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, function) (void); \
	const Pg_finfo_record * \
	CppConcat(pg_finfo_, function) (void) \
	{ \
		static const Pg_finfo_record info = {1}; \
		return &info; \
	} \
	extern int	bf_swallow_semicolon
#endif

/* Define an SQL function whose result is an expression over fcinfo. */
#define SQL_FUNCTION(name, expression) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return expression; \
	} \
	extern int	bf_swallow_semicolon

#if PG_VERSION_NUM >= 180000
#define BF_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "bloomfilter", .version = BF_VERSION)
#else
#define BF_MODULE_MAGIC	PG_MODULE_MAGIC
#endif

/* The file of a relation, which has another name since 16. */
#if PG_VERSION_NUM >= 160000
#define bf_relation_locator(relation) ((relation)->rd_locator)
#else
#define bf_relation_locator(relation) ((relation)->rd_node)
#endif

/* A type that is new in 19. */
#if PG_VERSION_NUM < 190000
#define REGDATABASEOID		InvalidOid
#endif

/* Iterate over an array.  The element type is passed at the start since 19, before at each step. */
#if PG_VERSION_NUM >= 190000
#define bf_array_iter_setup(iterator, array, length, by_value, align) \
	array_iter_setup(iterator, array, length, by_value, align)
#define bf_array_iter_next(iterator, isnull, i, length, by_value, align) \
	array_iter_next(iterator, isnull, i)
#else
#define bf_array_iter_setup(iterator, array, length, by_value, align) \
	array_iter_setup(iterator, array)
#define bf_array_iter_next(iterator, isnull, i, length, by_value, align) \
	array_iter_next(iterator, isnull, i, length, by_value, align)
#endif

/* ----------------------------------------------------------------
 * The index
 * ----------------------------------------------------------------
 */

/* Extend the main fork of a relation with pages of zeros; no one else extends it. */
#if PG_VERSION_NUM >= 160000
#define bf_extend_with_zeros(relation, first, count) \
	smgrzeroextend(RelationGetSmgr(relation), MAIN_FORKNUM, first, (int) (count), false)
#else
#define bf_extend_with_zeros(relation, first, count) \
	do { \
		PGAlignedBlock zeros; \
		BlockNumber next_block = (first); \
		BlockNumber end_block = next_block + (count); \
		memset(&zeros, 0, sizeof(zeros)); \
		for (; next_block < end_block; next_block++) \
			smgrextend(RelationGetSmgr(relation), MAIN_FORKNUM, next_block, zeros.data, false); \
	} while (0)
#endif

/* Append a page to a relation and lock it exclusively; no one else extends it. */
#if PG_VERSION_NUM >= 160000
#define bf_extend_relation(relation, fork) \
	ExtendBufferedRel(BMR_REL(relation), fork, NULL, EB_LOCK_FIRST)
#else
#define bf_extend_relation(relation, fork) \
	ReadBufferExtended(relation, fork, P_NEW, RBM_ZERO_AND_LOCK, NULL)
#endif

/*
 * Is generic_redo() known to replay the records that bfindex_set_key() and fp_append_logged() make?  Those of
 * 15 to 19 have been read; for later ones GenericXLog makes the records.
 */
#define BF_KNOWN_GENERIC_REDO	(PG_VERSION_NUM < 200000)

#if PG_VERSION_NUM >= 180000
#define bf_vacuum_delay_point()	vacuum_delay_point(false)
#else
#define bf_vacuum_delay_point()	vacuum_delay_point()
#endif

/* A tuple descriptor that is made by hand is finished since 19. */
#if PG_VERSION_NUM >= 190000
#define bf_finish_tuple_desc(desc)	TupleDescFinalize(desc)
#else
#define bf_finish_tuple_desc(desc)	((void) 0)
#endif

#if PG_VERSION_NUM >= 170000
#define bf_test_for_old_snapshot(snapshot, relation, page)	((void) 0)
#else
#define bf_test_for_old_snapshot(snapshot, relation, page)	TestForOldSnapshot(snapshot, relation, page)
#endif

/* EXPLAIN ANALYZE counts searches of an index since 18. */
#if PG_VERSION_NUM >= 180000
#define bf_count_index_search(scan) \
	do { \
		if ((scan)->instrument != NULL) \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define bf_count_index_search(scan)	((void) 0)
#endif

#if PG_VERSION_NUM >= 170000
#define bf_estimate_array_length(root, node)	estimate_array_length(root, node)
#else
#define bf_estimate_array_length(root, node)	estimate_array_length(node)
#endif

/* Return the routine of an index handler: a constant since 19, before a copy. */
#if PG_VERSION_NUM >= 190000
#define BF_RETURN_ROUTINE(routine)	PG_RETURN_POINTER(&(routine))
#else
#define BF_RETURN_ROUTINE(routine) \
	do { \
		IndexAmRoutine *copy = makeNode(IndexAmRoutine); \
		*copy = (routine); \
		PG_RETURN_POINTER(copy); \
	} while (0)
#endif

/* The local transaction ID. */
#if PG_VERSION_NUM >= 170000
#define BF_LOCAL_TRANSACTION	(MyProc->vxid.lxid)
#else
#define BF_LOCAL_TRANSACTION	(MyProc->lxid)
#endif

/*
 * Set a safe search_path for functions of a table's owner, until the settings of the
 * caller are restored.
 */
#if PG_VERSION_NUM >= 170000
#define bf_restrict_search_path()	RestrictSearchPath()
#else
#define bf_restrict_search_path() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, \
							  GUC_ACTION_SAVE, true, 0, false))
#endif

#if PG_VERSION_NUM >= 160000
#define bf_is_owner(relation, user)	object_ownercheck(RelationRelationId, relation, user)
#else
#define bf_is_owner(relation, user)	pg_class_ownercheck(relation, user)
#endif

#if PG_VERSION_NUM >= 160000
#define bf_namespace_aclcheck(schema, user, mode)	object_aclcheck(NamespaceRelationId, schema, user, mode)
#else
#define bf_namespace_aclcheck(schema, user, mode)	pg_namespace_aclcheck(schema, user, mode)
#endif

/* ----------------------------------------------------------------
 * Filters in joins
 * ----------------------------------------------------------------
 */

/* Functions that print properties in EXPLAIN have a header of their own since 18. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif

/* Semi and anti joins that return rows of the inner side, since 18 and since 16. */
#if PG_VERSION_NUM >= 180000
#define bf_is_right_semi_or_anti(type)	((type) == JOIN_RIGHT_SEMI || (type) == JOIN_RIGHT_ANTI)
#elif PG_VERSION_NUM >= 160000
#define bf_is_right_semi_or_anti(type)	((type) == JOIN_RIGHT_ANTI)
#else
#define bf_is_right_semi_or_anti(type)	false
#endif

/* Start a sequential scan. */
#if PG_VERSION_NUM >= 190000
#define bf_table_beginscan(relation, snapshot)	table_beginscan(relation, snapshot, 0, NULL, 0)
#define bf_table_beginscan_parallel(relation, shared)	table_beginscan_parallel(relation, shared, 0)
#define bf_init_scan_slot(estate, scan, desc, ops)	ExecInitScanTupleSlot(estate, scan, desc, ops, 0)
#else
#define bf_table_beginscan(relation, snapshot)	table_beginscan(relation, snapshot, 0, NULL)
#define bf_table_beginscan_parallel(relation, shared)	table_beginscan_parallel(relation, shared)
#define bf_init_scan_slot(estate, scan, desc, ops)	ExecInitScanTupleSlot(estate, scan, desc, ops)
#endif

/* An index scan that returns a bitmap counts its searches since 18. */
#if PG_VERSION_NUM >= 180000
#define bf_index_beginscan_bitmap(index, snapshot, n)	index_beginscan_bitmap(index, snapshot, NULL, n)
#else
#define bf_index_beginscan_bitmap(index, snapshot, n)	index_beginscan_bitmap(index, snapshot, n)
#endif

/* Run a statement for each block of a bitmap. */
#if PG_VERSION_NUM >= 180000
#define bf_foreach_block(bitmap, block, statement) \
	do { \
		TBMPrivateIterator *iterator = tbm_begin_private_iterate(bitmap); \
		TBMIterateResult result; \
		while (tbm_private_iterate(iterator, &result)) \
		{ \
			BlockNumber block = result.blockno; \
			statement; \
		} \
		tbm_end_private_iterate(iterator); \
	} while (0)
#else
#define bf_foreach_block(bitmap, block, statement) \
	do { \
		TBMIterator *iterator = tbm_begin_iterate(bitmap); \
		TBMIterateResult *result; \
		while ((result = tbm_iterate(iterator)) != NULL) \
		{ \
			BlockNumber block = result->blockno; \
			statement; \
		} \
		tbm_end_iterate(iterator); \
	} while (0)
#endif

/* Take part in a parallel sequential scan; since 19 it can be restricted to some blocks. */
#if PG_VERSION_NUM >= 190000
#define bf_parallelscan_init(scan, shared) \
	table_block_parallelscan_startblock_init((scan)->rs_base.rs_rd, (scan)->rs_parallelworkerdata, shared, \
											 (scan)->rs_startblock, (scan)->rs_numblocks)
#else
#define bf_parallelscan_init(scan, shared) \
	table_block_parallelscan_startblock_init((scan)->rs_base.rs_rd, (scan)->rs_parallelworkerdata, shared)
#endif

/* The block that a scan has reached: since 17 that of its read stream. */
#if PG_VERSION_NUM >= 170000
#define BF_LAST_BLOCK	rs_prefetch_block
#else
#define BF_LAST_BLOCK	rs_cblock
#endif

/* How the heap reads a stream of pages in a sequential scan, since 17; see heap_beginscan(). */
#if PG_VERSION_NUM >= 180000
#define BF_HEAP_STREAM_FLAGS	(READ_STREAM_SEQUENTIAL | READ_STREAM_USE_BATCHING)
#else
#define BF_HEAP_STREAM_FLAGS	READ_STREAM_SEQUENTIAL
#endif

/* Updates of a column in a BRIN index can be HOT since 16. */
#define BF_BRIN_ALLOWS_HOT	(PG_VERSION_NUM >= 160000)

/* Count the rows of a sequential scan. */
#if PG_VERSION_NUM >= 160000
#define bf_count_tuples_returned(rel, n) \
	do { \
		if (pgstat_should_count_relation(rel)) \
			(rel)->pgstat_info->counts.tuples_returned += (n); \
	} while (0)
#else
#define bf_count_tuples_returned(rel, n) \
	do { \
		if (pgstat_should_count_relation(rel)) \
			(rel)->pgstat_info->t_counts.t_tuples_returned += (n); \
	} while (0)
#endif

/* Copy a node; the server's macro requires a later C standard since 19. */
#define bf_copy_object(node)	copyObjectImpl(node)

/* The parameters of a planner hook. */
#if PG_VERSION_NUM >= 190000
#define BF_PLANNER_PARAMETERS \
	Query *parse, const char *query, int options, ParamListInfo params, ExplainState *es
#define BF_PLANNER_ARGUMENTS	parse, query, options, params, es
#else
#define BF_PLANNER_PARAMETERS \
	Query *parse, const char *query, int options, ParamListInfo params
#define BF_PLANNER_ARGUMENTS	parse, query, options, params
#endif

/* ----------------------------------------------------------------
 * Filters before lookups
 * ----------------------------------------------------------------
 */

/*
 * Is a path of a kind that a setting such as enable_indexscan has switched off?  Since 18
 * such paths are counted, before they have a high cost.
 */
#if PG_VERSION_NUM >= 180000
#define bf_path_is_disabled(path)	((path)->disabled_nodes > 0)
#define bf_copy_disabled_nodes(to, from)	((to)->disabled_nodes = (from)->disabled_nodes)
#else
#define bf_path_is_disabled(path)	((path)->total_cost >= disable_cost)
#define bf_copy_disabled_nodes(to, from)	((void) 0)
#endif

/*
 * Since 18, PL/pgSQL lets a function change a variable in place in
 * "f := bloom_add(f, x)" if the function returns an expanded object.  Before, an
 * object would be flattened at each step.
 */
#if PG_VERSION_NUM >= 180000
#define BF_MODIFY_IN_PLACE	1
#else
#define BF_MODIFY_IN_PLACE	0
#endif

#endif							/* BF_COMPAT_H */
