/*
 * handler.c
 *		The access method as the server sees it: properties, options, vacuum.
 */
#include "../compat.h"

#include "access/reloptions.h"
#include "catalog/pg_class.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "index.h"
#include "teststop.h"

PG_FUNCTION_INFO_V1(bloomfilter_handler);

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
	.amstrategies = INDEX_KEY_EQUAL,
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
	.amvalidate = index_key_validate,
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
static int	bfindex_test_passes;

void
bfindex_define_test_stop(void)
{
	DefineCustomStringVariable("bloomfilter.test_stop", "Where the server stops.", NULL, &bfindex_test_place, "",
							   PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.test_stop_passes", "How often a session passes that place before.", NULL,
							&bfindex_test_passes, 0, 0, INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL);
}

/*
 * Stop the server as pg_ctl stop -m immediate does: what was logged just before is
 * lost, or, if the name of the place is followed by ", flushed", is not.
 */
void
bfindex_test_stop(const char *place)
{
	size_t		length = strlen(place);

	bool		flushed;

	if (bfindex_test_place == NULL || strncmp(bfindex_test_place, place, length) != 0)
		return;
	flushed = strcmp(bfindex_test_place + length, ", flushed") == 0;
	if ((!flushed && bfindex_test_place[length] != '\0') || bfindex_test_passes-- > 0)
		return;
	if (flushed)
		XLogFlush(GetXLogInsertRecPtr());
	kill(PostmasterPid, SIGQUIT);
	for (;;)
		pg_usleep(1000);
}
#endif
