/*
 * fp_handler.c
 *		The access method `fingerprint` as the server sees it: properties and costs.
 */
#include "fingerprint.h"

#include "access/reloptions.h"
#include "catalog/pg_am.h"
#include "commands/vacuum.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "utils/selfuncs.h"

PG_FUNCTION_INFO_V1(fingerprint_handler);

static relopt_kind fp_options_kind;

/* Called when the module is loaded.  There are no options. */
void
fp_define_options(void)
{
	fp_options_kind = add_reloption_kind();
}

static bytea *
fp_options(Datum reloptions, bool validate)
{
	return build_reloptions(reloptions, validate, fp_options_kind, 0, NULL, 0);
}

/*
 * Properties that are not listed are false.  amsearcharray is false because a scan must
 * not return a row twice, for two elements of an array (the executor uses a bitmap
 * instead).  amsummarizing is false because every version of a row that is not HOT has an
 * entry.
 */
static const IndexAmRoutine fp_routine = {
	.type = T_IndexAmRoutine,
	.amstrategies = INDEX_KEY_EQUAL,
	.ampredlocks = true,
	.amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL,
	.ambuild = fp_build,
	.ambuildempty = fp_buildempty,
	.aminsert = fp_insert,
	.ambulkdelete = fp_bulkdelete,
	.amvacuumcleanup = fp_vacuumcleanup,
	.amcostestimate = fp_costestimate,
	.amoptions = fp_options,
	.ambuildphasename = fp_buildphasename,
	.amvalidate = index_key_validate,
	.ambeginscan = fp_beginscan,
	.amrescan = fp_rescan,
	.amgettuple = fp_gettuple,
	.amgetbitmap = fp_getbitmap,
	.amendscan = fp_endscan
};

Datum
fingerprint_handler(PG_FUNCTION_ARGS)
{
	BF_RETURN_ROUTINE(fp_routine);
}

/* Is the relation an index of this access method, with a file? */
bool
fp_is(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_INDEX && relation->rd_indam->ambuild == fp_build;
}

/*
 * A search reads one page of the index.  The server computes the rest from the estimated
 * number of matching rows; false fetches are too few to count.
 */
void
fp_costestimate(PlannerInfo *root, IndexPath *path, double loop_count,
				Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
				double *correlation, double *pages)
{
	GenericCosts costs = {0};

	genericcostestimate(root, path, loop_count, &costs);
	*startup_cost = costs.indexStartupCost;
	*total_cost = costs.indexTotalCost;
	*selectivity = costs.indexSelectivity;
	*correlation = costs.indexCorrelation;
	*pages = costs.numIndexPages;
}
