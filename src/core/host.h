/*
 * host.h
 *		What the core needs from the program that it is part of.
 *
 * The core is plain C and works anywhere: in a server, in a fuzzer, in a test.
 * Memory, interrupts and errors are the host's: a server has memory contexts
 * whose size it watches, cancels queries, and reports errors by a jump.  So
 * every filter carries a handle to its host, and the few things that can fail
 * or wait go through it.  Anything that calls one of these functions may not
 * return.
 */
#ifndef BF_HOST_H
#define BF_HOST_H

#include "portable.h"

/* Why an operation cannot be done. */
typedef enum bf_failure
{
	BF_FAIL_BYTES,				/* the filter would be larger than it may be */
	BF_FAIL_GROWTH,				/* it is full, and would be too large if it
								 * grew */
	BF_FAIL_LAYERS,				/* it would have more layers than it may have */
	BF_FAIL_UNION_LAYERS,		/* the same, in a union of filters */
	BF_FAIL_DAMAGED				/* its bytes contradict themselves */
} bf_failure;

typedef struct bf_host bf_host;

typedef struct bf_host_methods
{
	/*
	 * Memory for random access: aligned to cache lines and, if there is much
	 * of it, in huge pages where the system has them.  Never NULL.
	 */
	void	   *(*allocate) (bf_host host, size_t bytes);
	void	   *(*reallocate) (bf_host host, void *memory, size_t old_bytes, size_t bytes);
	void		(*release) (bf_host host, void *memory);

	/* Long loops call this about every millisecond. */
	void		(*poll) (bf_host host);

	/* Report an error; does not return.  `detail` is a sentence or NULL. */
	void		(*fail) (bf_host host, bf_failure failure, uint64_t number, const char *detail);
} bf_host_methods;

struct bf_host
{
	const bf_host_methods *methods;
	void	   *context;		/* where memory comes from */
	bool		quiet;			/* no polls: what is being done must not fail */
};

/* Cheap items handled between two polls: a millisecond or so. */
#define BF_POLL_EVERY	65536

static inline void *
bf_allocate(bf_host host, uint64_t bytes)
{
	return host.methods->allocate(host, (size_t) (bytes > 0 ? bytes : 1));
}

static inline void *
bf_allocate_zero(bf_host host, uint64_t bytes)
{
	void	   *memory = bf_allocate(host, bytes);

	memset(memory, 0, (size_t) bytes);
	return memory;
}

static inline void *
bf_reallocate(bf_host host, void *memory, uint64_t old_bytes, uint64_t bytes)
{
	return host.methods->reallocate(host, memory, (size_t) old_bytes, (size_t) bytes);
}

/* NULL is allowed. */
static inline void
bf_release(bf_host host, void *memory)
{
	if (memory != NULL)
		host.methods->release(host, memory);
}

static inline void
bf_poll(bf_host host)
{
	if (!host.quiet)
		host.methods->poll(host);
}

/* The host jumps away; should it not, nothing sensible can follow. */
static inline _Noreturn void
bf_fail(bf_host host, bf_failure failure, uint64_t number, const char *detail)
{
	host.methods->fail(host, failure, number, detail);
	bf_unreachable();
}

#endif							/* BF_HOST_H */
