/*
 * memory.h
 *		Memory that is accessed at random: aligned to cache lines and, if there is
 *		much of it, in huge pages.
 */
#ifndef BF_MEMORY_H
#define BF_MEMORY_H

#include "compat.h"

extern void *memory_alloc(MemoryContext context, Size size);
extern void *memory_alloc_zero(MemoryContext context, Size size);
extern void memory_free(void *memory);
extern void memory_advise(void *memory, Size size);

#endif							/* BF_MEMORY_H */
