/*
 * bloomfilter.c
 *		Module entry.
 *
 * Membership filters as SQL values.  Data walks one way: an SQL value becomes
 * a key class and a 64-bit hash (src/key.c), the hash goes into a filter
 * (src/core, which knows nothing of PostgreSQL), and the filter is a varlena
 * (src/filter.c).  The types `bloom` and `cuckoo` share all of that, their
 * aggregates, functions and I/O; src/bloom_*.c and src/cuckoo_*.c are what
 * each has for itself: how one is built, and how two are merged.
 */
#include "src/compat.h"

#include "miscadmin.h"

#include "src/core/portable.h"

BF_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static void
poll_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/* Let the core's long loops be cancelled. */
void
_PG_init(void)
{
	bf_poll = poll_interrupts;
}
