/*
 * handler.c
 *		The access method as the server sees it: properties, options, operator
 *		classes, vacuum.
 */
#include "../compat.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "index.h"
#include "teststop.h"

PG_FUNCTION_INFO_V1(bloomfilter_handler);

/* The only strategy: equality. */
#define EQUAL_STRATEGY	1

/* ----------------------------------------------------------------
 * Options
 * ----------------------------------------------------------------
 */

static relopt_kind bfindex_options_kind;

/* At the start of the module. */
void
bfindex_define_options(void)
{
	bfindex_options_kind = add_reloption_kind();
	add_real_reloption(bfindex_options_kind, "fpp", "Probability that a key that is not there is reported",
					   BFINDEX_DEFAULT_FPP, BFINDEX_MIN_FPP, BFINDEX_MAX_FPP, AccessExclusiveLock);
	add_int_reloption(bfindex_options_kind, "capacity", "Number of distinct keys to begin with room for",
					  BFINDEX_NO_CAPACITY, 1, INT_MAX, AccessExclusiveLock);
	bfindex_define_test_stop();
}

static bytea *
bfindex_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt options[] = {
		{"fpp", RELOPT_TYPE_REAL, offsetof(BfindexOptions, fpp)},
		{"capacity", RELOPT_TYPE_INT, offsetof(BfindexOptions, capacity)}
	};

	return build_reloptions(reloptions, validate, bfindex_options_kind, sizeof(BfindexOptions),
							options, lengthof(options));
}

/* ----------------------------------------------------------------
 * Operator classes
 * ----------------------------------------------------------------
 */

/*
 * Is an operator class as the access method wants it?  All operators of its family
 * are equality, and there are no support functions: keys are hashed by their
 * type.
 */
static bool
bfindex_validate(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass class;
	CatCList   *operators;
	CatCList   *functions;
	bool		found = false;
	bool		valid = true;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));
	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop operator = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);

		if (operator->amopstrategy != EQUAL_STRATEGY || operator->amoppurpose != AMOP_SEARCH ||
			!check_amop_signature(operator->amopopr, BOOLOID, operator->amoplefttype, operator->amoprighttype))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator class \"%s\" of access method %s contains an operator that is not equality: %s",
							NameStr(class->opcname), "bloomfilter", format_operator(operator->amopopr))));
			valid = false;
		}
		found |= operator->amoplefttype == class->opcintype && operator->amoprighttype == class->opcintype;
	}
	if (!found || functions->n_members > 0)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s lacks equality of its type, or has support functions",
						NameStr(class->opcname), "bloomfilter")));
		valid = false;
	}
	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(tuple);
	return valid;
}

/* ----------------------------------------------------------------
 * Vacuum
 * ----------------------------------------------------------------
 */

/*
 * A bit belongs to many keys, so nothing can be removed.  Not to ask the callback
 * also means that CREATE INDEX CONCURRENTLY finds no row in the index and inserts
 * every one again, which bfindex_insert makes cheap.
 */
static IndexBulkDeleteResult *
bfindex_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
				   IndexBulkDeleteCallback callback, void *state)
{
	return result != NULL ? result : palloc0(sizeof(IndexBulkDeleteResult));
}

static IndexBulkDeleteResult *
bfindex_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *result)
{
	if (info->analyze_only)
		return result;
	if (result == NULL)
		result = palloc0(sizeof(IndexBulkDeleteResult));
	result->num_pages = RelationGetNumberOfBlocks(info->index);
	result->num_index_tuples = info->num_heap_tuples;
	result->estimated_count = true;
	return result;
}

/* ----------------------------------------------------------------
 * The routine
 * ----------------------------------------------------------------
 */

/*
 * Properties that are not named are false.  amsummarizing in particular has to be:
 * with it a HOT chain could hold several keys, and an index built over the chain
 * would have the newest alone, while an older snapshot sees another.
 */
static const IndexAmRoutine bfindex_routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = EQUAL_STRATEGY,
	.amsearcharray = true,
	.ampredlocks = true,
	.amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL,
	.ambuild = bfindex_build,
	.ambuildempty = bfindex_buildempty,
	.aminsert = bfindex_insert,
	.ambulkdelete = bfindex_bulkdelete,
	.amvacuumcleanup = bfindex_vacuumcleanup,
	.amcostestimate = bfindex_costestimate,
	.amoptions = bfindex_options,
	.ambuildphasename = bfindex_buildphasename,
	.amvalidate = bfindex_validate,
	.ambeginscan = bfindex_beginscan,
	.amrescan = bfindex_rescan,
	.amgetbitmap = bfindex_getbitmap,
	.amendscan = bfindex_endscan
};

Datum
bloomfilter_handler(PG_FUNCTION_ARGS)
{
	BF_RETURN_ROUTINE(bfindex_routine);
}

/* The false-positive rate that an index is, or will be, built for. */
double
bfindex_fpp(Relation index)
{
	const BfindexOptions *options = (const BfindexOptions *) index->rd_options;

	return options != NULL ? options->fpp : BFINDEX_DEFAULT_FPP;
}

/* Is the relation an index of this access method, with a file? */
bool
bfindex_is(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_INDEX && relation->rd_indam->ambuild == bfindex_build;
}

/* ----------------------------------------------------------------
 * Stops, for tests
 * ----------------------------------------------------------------
 */
#ifdef BFINDEX_TEST_STOPS

#include <signal.h>

#include "access/xlog.h"

static char *bfindex_test_place;

void
bfindex_define_test_stop(void)
{
	DefineCustomStringVariable("bloomfilter.test_stop", "Where the server stops.", NULL, &bfindex_test_place, "",
							   PGC_SUSET, 0, NULL, NULL, NULL);
}

/*
 * Stop the server as pg_ctl stop -m immediate does: what was logged just before is
 * lost, or, if the name of the place is followed by ", flushed", is not.
 */
void
bfindex_test_stop(const char *place)
{
	size_t		length = strlen(place);

	if (bfindex_test_place == NULL || strncmp(bfindex_test_place, place, length) != 0)
		return;
	if (strcmp(bfindex_test_place + length, ", flushed") == 0)
		XLogFlush(GetXLogInsertRecPtr());
	else if (bfindex_test_place[length] != '\0')
		return;
	kill(PostmasterPid, SIGQUIT);
	for (;;)
		pg_usleep(1000);
}
#endif
