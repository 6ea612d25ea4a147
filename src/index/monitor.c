/*
 * monitor.c
 *		The condition of an index, for the view bloom_indexes.
 *
 * The view is read every minute by monitoring systems, over all indexes of a database.  So it
 * must be cheap, must not wait, and must not fail because of one index:
 *
 *	- It reads the metapage and a few pages of each index.
 *	- An index is locked in the mode of a query, only while its pages are read, and only if no
 *	  other session has locked it exclusively.
 *	- Errors of damaged pages become the advice of that index.
 *
 * Its names and its size are public, as in pg_class and pg_relation_size().  The rest is for users
 * who may read the index, as in bloom_index_stats(), and for members of pg_read_all_stats, which
 * pg_monitor is: it has numbers, no keys.
 */
#include "../compat.h"

#include <math.h>

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

#include "../fingerprint/fingerprint.h"
#include "index.h"
#include "inspected.h"
#include "trust.h"

/* Pages of each layer of a bloomfilter index, and buckets of a fingerprint index, that are read. */
#define SAMPLED_PAGES		16
#define SAMPLED_BUCKETS		16

/* A row of the view. */
typedef struct MonitorRow
{
	bool		exists;
	int64		bytes;			/* negative if not known */
	bool		has_health;
	IndexHealth health;
} MonitorRow;

/* May the current user see the condition of an index? */
static bool
may_see(Relation index)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		trust_may_read(index->rd_index->indrelid, trust_index_columns(index));
}

/* Does an index have pages that this session can read? */
static bool
has_pages(Relation index)
{
	return index->rd_index->indisready && !RELATION_IS_OTHER_TEMP(index) &&
		!(RecoveryInProgress() && !RelationIsPermanent(index));
}

/* Read an index that is locked. */
static void
read_index(Relation index, MonitorRow *row)
{
	row->exists = true;
	row->bytes = (int64) RelationGetNumberOfBlocks(index) * BLCKSZ;
	if (!may_see(index))
		return;
	if (!has_pages(index))
	{
		if (!index->rd_index->indisready)
			row->health.advice = INDEX_ADVICE_INVALID;
		return;
	}
	if (bfindex_is(index))
	{
		BfindexMeta meta = bfindex_read_meta(index);

		row->health = bfindex_health(index, &meta, SAMPLED_PAGES);
	}
	else
		row->health = fp_health(index, SAMPLED_BUCKETS);
	row->has_health = true;
}

/* Read an index if it can be locked now. */
static void
lock_and_read(Oid oid, MonitorRow *row)
{
	Relation	index;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
	{
		row->exists = true;
		row->health.advice = "not read: another session has locked it";
		return;
	}
	index = try_relation_open(oid, NoLock);
	if (index != NULL)
	{
		if (bfindex_is(index) || fp_is(index))
			read_index(index, row);
		relation_close(index, NoLock);
	}
	UnlockRelationOid(oid, AccessShareLock);
}

/* Read an index, and turn an error into advice. */
static MonitorRow
monitor_row(Oid oid)
{
	MonitorRow	row = {.bytes = -1};
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	MonitorRow *volatile result = &row;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		lock_and_read(oid, result);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED || error->sqlerrcode == ERRCODE_ASSERT_FAILURE)
		{
			MemoryContextSwitchTo(context);
			CurrentResourceOwner = owner;
			ReThrowError(error);
		}
		result->has_health = false;
		result->health.advice = psprintf("cannot be read: %s", error->message);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return row;
}

/* Set a number, or NULL if it is negative. */
static void
set_number(Datum *value, bool *isnull, double number)
{
	*value = Float8GetDatum(number);
	*isnull = number < 0;
}

/* _bloom_index_health(index): a row, or none if the index was dropped meanwhile */
PG_FUNCTION_INFO_V1(bloom_index_health);
Datum
bloom_index_health(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MonitorRow	row = monitor_row(PG_GETARG_OID(0));
	const IndexHealth *health = &row.health;
	Datum		values[8] = {0};
	bool		nulls[8];

	InitMaterializedSRF(fcinfo, 0);
	if (!row.exists)
		return (Datum) 0;
	memset(nulls, true, sizeof(nulls));
	values[0] = Int64GetDatum(row.bytes);
	nulls[0] = row.bytes < 0;
	if (row.has_health)
	{
		values[1] = Int64GetDatum((int64) rint(health->keys));
		nulls[1] = false;
		values[2] = Int32GetDatum(health->layers);
		nulls[2] = health->layers < 0;
		set_number(&values[3], &nulls[3], health->fill);
		set_number(&values[4], &nulls[4], health->target_fpp);
		set_number(&values[5], &nulls[5], health->fpp);
		set_number(&values[6], &nulls[6], health->stale);
	}
	if (health->advice != NULL)
	{
		values[7] = CStringGetTextDatum(health->advice);
		nulls[7] = false;
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
}
