/*
 * bloomfilter.c
 *		Module entry.
 *
 * Membership filters as SQL values.  Data flows in one direction: an SQL value becomes a
 * key class and a 64-bit hash (src/key*.c), the hash goes into a filter (src/core, which
 * does not depend on PostgreSQL), and the filter is a value of an SQL type (src/value.c)
 * or, while it changes, an object (src/builder.c).  The types `bloom` and `cuckoo` share
 * all of that.  The files that SQL calls are named after what a user does: contains,
 * change, aggregate, sets, stats, io, planner.  An index (src/index) keeps the same lines
 * on pages of its own.  Hash joins (src/joinfilter) make filters of their own while they
 * run, and lookups in other indexes (src/lookup) probe such an index first.
 */
#include "src/compat.h"

#include "src/fingerprint/fingerprint.h"
#include "src/index/index.h"
#include "src/joinfilter/joinfilter.h"
#include "src/lookup/lookup.h"

#include "utils/guc.h"

BF_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	bfindex_define_options();
	fp_define_options();
	joinfilter_init();
	lookup_init();
	MarkGUCPrefixReserved("bloomfilter");
}
