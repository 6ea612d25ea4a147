/*
 * handler.c
 *		The access method as the server sees it: properties, options, vacuum.
 */
#include "../compat.h"

#include "access/reloptions.h"
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

/* Register the options, when the module is loaded. */
void
bfindex_define_options(void)
{
	bfindex_options_kind = add_reloption_kind();
	add_real_reloption(bfindex_options_kind, "fpp", "False-positive rate: the probability that an absent key is reported",
					   BFINDEX_DEFAULT_FPP, BFINDEX_MIN_FPP, BFINDEX_MAX_FPP, AccessExclusiveLock);
	add_int_reloption(bfindex_options_kind, "capacity", "Number of distinct keys that the first layer has room for",
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
 * Remove nothing: a bit belongs to many keys.  As the callback is not called, CREATE INDEX
 * CONCURRENTLY finds no row in the index and inserts every row again, which is cheap
 * because bfindex_insert finds the bits set.
 */
static IndexBulkDeleteResult *
bfindex_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
				   IndexBulkDeleteCallback callback, void *state)
{
	return result != NULL ? result : palloc0(sizeof(IndexBulkDeleteResult));
}

/* Report the size of the index and, as its number of entries, the rows of the table. */
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
 * The properties that are not listed are false.  amsummarizing must be false: with it, a
 * HOT chain could contain several keys, and an index built over the chain would have only
 * the newest one, while an older snapshot sees another.
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
	DefineCustomStringVariable("bloomfilter.test_stop", "Place in the code where the server stops.", NULL, &bfindex_test_place, "",
							   PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("bloomfilter.test_stop_passes", "How often a session passes that place before.", NULL,
							&bfindex_test_passes, 0, 0, INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL);
}

/*
 * Stop the server as pg_ctl stop -m immediate does, if the setting names this place.  WAL
 * that has not been flushed is lost.  If ", flushed" follows the name, WAL is flushed
 * first.
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
