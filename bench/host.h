/*
 * host.h
 *		Shared by the programs that measure the core: a clock of CPU time, memory in
 *		huge pages, a host of the core that never interrupts, and key hashes.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../src/core/mutable.h"
#include "../src/core/query.h"

#define HUGE_PAGE	((size_t) 2 * 1024 * 1024)

static inline double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static inline void *
allocate(size_t n)
{
	size_t		unit = n < HUGE_PAGE ? 64 : HUGE_PAGE;
	void	   *p = aligned_alloc(unit, (n + unit) / unit * unit);

	if (p == NULL)
		abort();
	memset(p, 0, n);
	return p;
}

/* The host of the core: memory as above, no interrupts. */
static void *
host_allocate(bf_host host, size_t bytes)
{
	(void) host;
	return allocate(bytes);
}

static void
host_release(bf_host host, void *memory)
{
	(void) host;
	free(memory);
}

static void *
host_reallocate(bf_host host, void *memory, size_t old_bytes, size_t bytes)
{
	void	   *larger = host_allocate(host, bytes);

	memcpy(larger, memory, old_bytes < bytes ? old_bytes : bytes);
	free(memory);
	return larger;
}

static void
host_poll(bf_host host)
{
	(void) host;
}

static void
host_fail(bf_host host, bf_failure failure, uint64_t number, const char *detail)
{
	(void) host;
	(void) number;
	fprintf(stderr, "failure %d: %s\n", (int) failure, detail != NULL ? detail : "too large");
	exit(1);
}

static const bf_host_methods host_methods = {
	.allocate = host_allocate,
	.reallocate = host_reallocate,
	.release = host_release,
	.poll = host_poll,
	.fail = host_fail
};

static const bf_host host = {.methods = &host_methods};

/* Key hashes, all distinct: added keys are numbered from 0, others from 2^40. */
static inline uint64_t
hash_of(uint64_t n)
{
	return bf_mix64(n * UINT64_C(0x9E3779B97F4A7C15) + 1);
}

#define OTHERS	(UINT64_C(1) << 40)

/* Write the filled filter as a value, for lookups.  Returns its memory, to be freed. */
static inline uint8_t *
seal(bf_mutable *made, bf_filter *filled)
{
	static const bf_key_class class = {BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL};
	uint64_t	size;
	uint8_t    *bytes;

	bf_mutable_set_class(made, &class);
	size = bf_mutable_describe(made, filled);
	/* aligned like a value: the lines of a wide filter are cache lines */
	bytes = allocate((size_t) size + BF_LENGTH_WORD);
	bf_mutable_write(made, filled, bytes + BF_LENGTH_WORD, (size_t) size);
	bf_mutable_free(made);
	return bytes;
}

#endif							/* BENCH_HOST_H */
