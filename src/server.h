/*
 * server.h
 *		The host of the core in a PostgreSQL server.
 */
#ifndef BF_SERVER_H
#define BF_SERVER_H

#include "compat.h"

#include "core/host.h"

extern const bf_host_methods server_host_methods;

/* Memory comes from this context; NULL is the current one. */
static inline bf_host
server_host(MemoryContext context)
{
	return (bf_host) {&server_host_methods, context, false};
}

#endif							/* BF_SERVER_H */
