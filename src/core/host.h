/*
 * host.h
 *		The services that the core needs from the program it is part of.
 *
 * The core is plain C and runs in a server, in a fuzzer or in a test.  The host
 * provides memory, interrupts and errors: a server has memory contexts, cancels
 * queries, and reports errors with longjmp.  So every filter has a handle to its
 * host, and everything that can fail or wait goes through it.  A function that
 * calls one of these may not return.
 */
#ifndef BF_HOST_H
#define BF_HOST_H

#include "portable.h"

/* Why an operation failed. */
typedef enum bf_failure
{
	BF_FAIL_BYTES,				/* the filter would exceed BF_MAX_BYTES */
	BF_FAIL_GROWTH,				/* it is full, and would exceed BF_MAX_BYTES
								 * if it grew */
	BF_FAIL_LAYERS,				/* it would exceed BF_MAX_LAYERS */
	BF_FAIL_UNION_LAYERS,		/* a union would exceed BF_MAX_LAYERS */
	BF_FAIL_DAMAGED				/* its bytes are inconsistent */
} bf_failure;

typedef struct bf_host bf_host;

typedef struct bf_host_methods
{
	/*
	 * Allocate memory for random access: aligned to cache lines and, if it is
	 * large, in huge pages where the system has them.  Never returns NULL.
	 */
	void	   *(*allocate) (bf_host host, size_t bytes);
	void	   *(*reallocate) (bf_host host, void *memory, size_t old_bytes, size_t bytes);
	void		(*release) (bf_host host, void *memory);

	/* Check for interrupts; long loops call this about every millisecond. */
	void		(*poll) (bf_host host);

	/* Report an error; does not return.  `detail` is a sentence or NULL. */
	void		(*fail) (bf_host host, bf_failure failure, uint64_t number, const char *detail);
} bf_host_methods;

struct bf_host
{
	const bf_host_methods *methods;
	void	   *context;		/* where memory comes from */
	bool		quiet;			/* no polls: the operation must not fail */
};

/* Cheap items processed between two polls: about a millisecond. */
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

/* Report an error through the host, which does not return. */
static inline _Noreturn void
bf_fail(bf_host host, bf_failure failure, uint64_t number, const char *detail)
{
	host.methods->fail(host, failure, number, detail);
	bf_unreachable();
}

#endif							/* BF_HOST_H */
