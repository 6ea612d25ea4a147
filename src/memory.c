/*
 * memory.c
 *		Memory that is accessed at random: aligned to cache lines and, if there is
 *		much of it, in huge pages.
 *
 * A probe of a large filter is one miss of the cache, and with pages of 4 KB
 * also one of the address translation, which costs as much again (more in a
 * virtual machine).  Prefetching hides the first, not the second.  Where the
 * system leaves it to programs to ask for huge pages, we do.
 */
#include "compat.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "utils/memutils.h"

#include "memory.h"

#define CACHE_LINE		64
#define HUGE_PAGE		(2 * 1024 * 1024)

/*
 * Ask for huge pages, which is granted or not: for speed alone.  The advice is for
 * all pages of a large block, its header included: a part of it would split the
 * mapping, and then realloc has to copy instead of moving pages.
 */
void
memory_advise(void *memory, Size size)
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

/* The address that palloc gave is kept before the aligned one. */
void *
memory_alloc(MemoryContext context, Size size)
{
	char	   *raw = MemoryContextAllocHuge(context, size + CACHE_LINE + sizeof(void *));
	char	   *aligned = (char *) TYPEALIGN(CACHE_LINE, raw + sizeof(void *));

	((void **) aligned)[-1] = raw;
	memory_advise(aligned, size);
	return aligned;
}

void *
memory_alloc_zero(MemoryContext context, Size size)
{
	void	   *memory = memory_alloc(context, size);

	memset(memory, 0, size);
	return memory;
}

void
memory_free(void *memory)
{
	pfree(((void **) memory)[-1]);
}
