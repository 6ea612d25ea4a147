/*
 * server.c
 *		The host of the core in a PostgreSQL server: memory contexts,
 *		interrupts, errors.
 *
 * Memory is aligned to cache lines and, if it is large, in huge pages.  A probe of a
 * large filter is a cache miss, and with pages of 4 KB also a TLB miss, which takes as
 * long (longer in a virtual machine).  Prefetching hides the cache miss, but not the TLB
 * miss.  Huge pages are requested with madvise.
 */
#include "compat.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/format.h"
#include "server.h"

#define CACHE_LINE		64
#define HUGE_PAGE		(2 * 1024 * 1024)

/* The address from palloc is stored before the aligned one. */
#define OVERHEAD		(CACHE_LINE + sizeof(void *))

static char *
align_block(char *block)
{
	char	   *aligned = (char *) TYPEALIGN(CACHE_LINE, block + sizeof(void *));

	((void **) aligned)[-1] = block;
	return aligned;
}

/*
 * Request huge pages; failure is ignored, since only speed depends on it.  The advice
 * covers all pages of the block including its header: advice for a part would split
 * the mapping, and realloc would have to copy instead of moving pages.
 */
static void
advise(void *memory, Size size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
	if (size >= HUGE_PAGE)
	{
		uintptr_t	page = (uintptr_t) sysconf(_SC_PAGESIZE);
		uintptr_t	start = TYPEALIGN_DOWN(page, (uintptr_t) memory);
		uintptr_t	end = TYPEALIGN(page, (uintptr_t) memory + size);

		(void) madvise((void *) start, end - start, MADV_HUGEPAGE);
	}
#endif
}

static void *
server_allocate(bf_host host, size_t bytes)
{
	MemoryContext context = host.context != NULL ? host.context : CurrentMemoryContext;
	char	   *memory = align_block(MemoryContextAllocHuge(context, bytes + OVERHEAD));

	advise(memory, bytes);
	return memory;
}

/* Reallocate.  The alignment of a block may change when it is moved. */
static void *
server_reallocate(bf_host host, void *memory, size_t old_bytes, size_t bytes)
{
	char	   *block = ((void **) memory)[-1];
	Size		offset = (char *) memory - block;
	char	   *aligned;

	block = repalloc_huge(block, bytes + OVERHEAD);
	aligned = (char *) TYPEALIGN(CACHE_LINE, block + sizeof(void *));
	if (aligned != block + offset)
		memmove(aligned, block + offset, Min(old_bytes, bytes));
	aligned = align_block(block);
	advise(aligned, bytes);
	return aligned;
}

static void
server_release(bf_host host, void *memory)
{
	pfree(((void **) memory)[-1]);
}

static void
server_poll(bf_host host)
{
	CHECK_FOR_INTERRUPTS();
}

static void
server_fail(bf_host host, bf_failure failure, uint64_t number, const char *detail)
{
	switch (failure)
	{
		case BF_FAIL_BYTES:
		case BF_FAIL_GROWTH:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 failure == BF_FAIL_BYTES ? errmsg("filter would need " UINT64_FORMAT " bytes", number) :
					 errmsg("filter is full and would need " UINT64_FORMAT " bytes to grow", number),
					 errdetail("A filter can have at most " UINT64_FORMAT " bytes.", (uint64) BF_MAX_BYTES),
					 failure == BF_FAIL_BYTES ?
					 errhint("Use a higher false-positive probability, or split the keys over several filters.") :
					 errhint("Build a new filter with a higher false-positive probability, or split the keys over several filters.")));
			break;
		case BF_FAIL_LAYERS:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("filter would need " UINT64_FORMAT " layers", number),
					 errdetail("A filter can have at most %d layers.", BF_MAX_LAYERS),
					 errhint("Create a filter with a larger capacity or growth, and add the keys to it.")));
			break;
		case BF_FAIL_UNION_LAYERS:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("union of filters would need " UINT64_FORMAT " layers", number),
					 errdetail("A filter can have at most %d layers; filters of different geometry need one each.",
							   BF_MAX_LAYERS),
					 errhint("Build filters that will be merged with the same capacity, as in bloom_agg(key, capacity).")));
			break;
		case BF_FAIL_DAMAGED:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("filter is damaged"),
					 errdetail("%s", detail),
					 errhint("Build the filter again.")));
			break;
	}
}

const bf_host_methods server_host_methods = {
	.allocate = server_allocate,
	.reallocate = server_reallocate,
	.release = server_release,
	.poll = server_poll,
	.fail = server_fail
};
