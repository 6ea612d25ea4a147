/*
 * compat.h
 *		Every difference between PostgreSQL majors that the code meets.
 */
#ifndef BF_COMPAT_H
#define BF_COMPAT_H

#include "postgres.h"
#include "fmgr.h"

#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#include "varatt.h"
#endif

/* Input functions report errors softly where the server can take them so. */
#if PG_VERSION_NUM >= 160000
#define bf_ereturn(context, ...) ereturn(context, (Datum) 0, __VA_ARGS__)
#else
#define bf_ereturn(context, ...) ereport(ERROR, __VA_ARGS__)
#endif

/*
 * The module is built with hidden symbols: before PostgreSQL 16 everything not
 * static would be visible to, and could be replaced by, any other module.
 * What SQL calls has to be exported nevertheless.
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

/* A function that SQL calls by this name: what an expression over fcinfo says. */
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

/* A type that is new in 19. */
#if PG_VERSION_NUM < 190000
#define REGDATABASEOID		InvalidOid
#endif

/* Who walks an array says what its elements look like: at the start or at each step. */
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

/* Extend the main fork of a relation, which nobody else extends, with pages of zeros. */
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

/* A new page at the end of a relation that nobody else extends, locked exclusively. */
#if PG_VERSION_NUM >= 160000
#define bf_extend_relation(relation, fork) \
	ExtendBufferedRel(BMR_REL(relation), fork, NULL, EB_LOCK_FIRST)
#else
#define bf_extend_relation(relation, fork) \
	ReadBufferExtended(relation, fork, P_NEW, RBM_ZERO_AND_LOCK, NULL)
#endif

/* Majors whose generic_redo() was read: see src/index/page.c. */
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

/* A handler returns its routine: since 19 as a constant, before as memory of its own. */
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

/* The number of a transaction of this session. */
#if PG_VERSION_NUM >= 170000
#define BF_LOCAL_TRANSACTION	(MyProc->vxid.lxid)
#else
#define BF_LOCAL_TRANSACTION	(MyProc->lxid)
#endif

/*
 * Functions of the owner of a table see no search_path but a safe one, until the
 * settings of the caller are restored.  The server itself does that since 17.
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

/* Beginning a sequential scan, and counting its rows. */
#if PG_VERSION_NUM >= 190000
#define bf_table_beginscan(relation, snapshot)	table_beginscan(relation, snapshot, 0, NULL, 0)
#define bf_table_beginscan_parallel(relation, shared)	table_beginscan_parallel(relation, shared, 0)
#define bf_init_scan_slot(estate, scan, desc, ops)	ExecInitScanTupleSlot(estate, scan, desc, ops, 0)
#else
#define bf_table_beginscan(relation, snapshot)	table_beginscan(relation, snapshot, 0, NULL)
#define bf_table_beginscan_parallel(relation, shared)	table_beginscan_parallel(relation, shared)
#define bf_init_scan_slot(estate, scan, desc, ops)	ExecInitScanTupleSlot(estate, scan, desc, ops)
#endif

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

/* A copy of a node; the server's own macro wants a later standard of C since 19. */
#define bf_copy_object(node)	copyObjectImpl(node)

/* What a planner hook takes and passes on. */
#if PG_VERSION_NUM >= 190000
#define BF_PLANNER_PARAMETERS \
	Query *parse, const char *query, int options, ParamListInfo params, ExplainState *es
#define BF_PLANNER_ARGUMENTS	parse, query, options, params, es
#else
#define BF_PLANNER_PARAMETERS \
	Query *parse, const char *query, int options, ParamListInfo params
#define BF_PLANNER_ARGUMENTS	parse, query, options, params
#endif

/*
 * Since PostgreSQL 18, PL/pgSQL lets a function change a variable in place in
 * "f := bloom_add(f, x)".  That needs the function to return its result as an
 * expanded object; before, that would be a detour.
 */
#if PG_VERSION_NUM >= 180000
#define BF_MODIFY_IN_PLACE	1
#else
#define BF_MODIFY_IN_PLACE	0
#endif

#endif							/* BF_COMPAT_H */
