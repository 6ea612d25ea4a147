/*
 * host.h
 *		A host of the core for tests: memory, polls and failures under control.
 *
 * Memory blocks have the exact size, move when they are enlarged, contain garbage
 * when new, and are tracked: only blocks that were allocated here may be freed.  Any
 * allocation or poll can be made to fail, as when a server runs out of memory or a
 * query is canceled; host_run() then returns.
 *
 * Include it after the headers of the core.
 */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum HostOutcome
{
	HOST_DONE = 0,
	HOST_REFUSED,				/* by the core: a limit, damaged bytes */
	HOST_FAULT					/* an allocation or a poll that was made to
								 * fail */
} HostOutcome;

/* Memory blocks of the core and of the test. */
typedef struct HostMemory
{
	struct
	{
		void	   *memory;
		size_t		bytes;
	}		   *block;
	size_t		blocks;
	size_t		room;
} HostMemory;

static HostMemory core_memory;
static HostMemory test_memory;
static uint64_t host_steps;		/* allocations and polls since host_run() */
static uint64_t host_fault_at;	/* the step to fail, or 0 */
static bool host_running;
static bool host_interrupted;	/* something failed since host_clean() */
static jmp_buf host_return;

static void *
memory_allocate(HostMemory *memory, size_t bytes)
{
	void	   *block = NULL;

	if (memory->blocks == memory->room)
	{
		memory->room = memory->room * 2 + 16;
		memory->block = realloc(memory->block, sizeof(memory->block[0]) * memory->room);
	}
	if (memory->block == NULL || posix_memalign(&block, 64, bytes + (bytes == 0)) != 0)
		abort();
	memory->block[memory->blocks].memory = memset(block, 0xC5, bytes);
	memory->block[memory->blocks++].bytes = bytes;
	return block;
}

/* The index of a block, which must exist. */
static size_t
memory_find(const HostMemory *memory, const void *block)
{
	size_t		i = memory->blocks;

	while (i > 0 && memory->block[i - 1].memory != block)
		i--;
	assert(i > 0);				/* else it was not allocated */
	return i - 1;
}

static void
memory_release(HostMemory *memory, void *block)
{
	size_t		i = memory_find(memory, block);

	free(block);
	memory->block[i] = memory->block[--memory->blocks];
}

static void
host_leave(HostOutcome outcome)
{
	assert(host_running);		/* otherwise a failure is unexpected */
	host_interrupted = true;
	longjmp(host_return, outcome);
}

/* A step that can fail. */
static void
host_step(void)
{
	if (host_running && ++host_steps == host_fault_at)
		host_leave(HOST_FAULT);
}

static void *
host_allocate(bf_host host, size_t bytes)
{
	host_step();
	return memory_allocate(host.context, bytes);
}

static void
host_release(bf_host host, void *block)
{
	memory_release(host.context, block);
}

static void *
host_reallocate(bf_host host, void *block, size_t old_bytes, size_t bytes)
{
	void	   *moved;

	host_step();
	assert(old_bytes <= core_memory.block[memory_find(&core_memory, block)].bytes);
	moved = memory_allocate(host.context, bytes);
	memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
	memory_release(host.context, block);
	return moved;
}

static void
host_poll(bf_host host)
{
	(void) host;
	host_step();
}

static void
host_fail(bf_host host, bf_failure failure, uint64_t number, const char *detail)
{
	(void) host, (void) failure, (void) number, (void) detail;
	host_leave(HOST_REFUSED);
}

static const bf_host_methods host_methods = {
	.allocate = host_allocate,
	.reallocate = host_reallocate,
	.release = host_release,
	.poll = host_poll,
	.fail = host_fail
};

static const bf_host test_host = {.methods = &host_methods, .context = &core_memory};

/* Run an operation, and let its n-th step fail; 0: none. */
static HostOutcome
host_run(void (*work) (void *arg), void *arg, uint64_t fault_at)
{
	int			outcome = setjmp(host_return);

	if (outcome == HOST_DONE)
	{
		host_steps = 0;
		host_fault_at = fault_at;
		host_running = true;
		work(arg);
	}
	host_running = false;
	return (HostOutcome) outcome;
}

/*
 * Free everything.  The core must have freed all of its memory, unless an
 * operation was aborted: then the host frees the rest.
 */
static void
host_clean(void)
{
	assert(host_interrupted || core_memory.blocks == 0);
	host_interrupted = false;
	while (core_memory.blocks > 0)
		memory_release(&core_memory, core_memory.block[0].memory);
	while (test_memory.blocks > 0)
		memory_release(&test_memory, test_memory.block[0].memory);
}

#endif							/* TEST_HOST_H */
