/*
 * postgres.h
 *		As much of PostgreSQL as the builders need, for fuzzing without a server.
 *
 * Memory is malloc'd in blocks of the exact size, so that the address sanitizer
 * sees every step beyond one; it belongs to no context and is freed after each
 * input.  An error is a longjmp to shim_run().  An allocation or a poll can be
 * made to fail on purpose, as if memory ran out or the query were cancelled
 * there; see shim_fail_after.
 */
#ifndef SHIM_POSTGRES_H
#define SHIM_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The branch of compat.h that needs no further headers. */
#define PG_VERSION_NUM		150000

typedef int8_t int8;
typedef int16_t int16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;
typedef size_t Size;
typedef char *Pointer;
typedef uintptr_t Datum;
typedef unsigned int Oid;

#define UINT64CONST(x)		UINT64_C(x)
#define PG_UINT32_MAX		UINT32_MAX
#define PG_UINT64_MAX		UINT64_MAX
#define INT64_FORMAT		"%ld"
#define UINT64_FORMAT		"%lu"
#define FLEXIBLE_ARRAY_MEMBER
#define Min(x, y)			((x) < (y) ? (x) : (y))
#define Max(x, y)			((x) > (y) ? (x) : (y))
#define likely(x)			__builtin_expect((x) != 0, 1)
#define unlikely(x)			__builtin_expect((x) != 0, 0)
#define CppConcat(x, y)		x##y
#define PointerGetDatum(x)	((Datum) (x))
#define DatumGetPointer(x)	((Pointer) (x))

#define Assert(condition) \
	do { \
		if (!(condition)) \
			shim_assert_failed(#condition, __FILE__, __LINE__); \
	} while (0)

extern void shim_assert_failed(const char *condition, const char *file, int line) __attribute__((noreturn));

/* ----------------------------------------------------------------
 * Memory
 * ----------------------------------------------------------------
 */

typedef struct MemoryContextData *MemoryContext;

#define CurrentMemoryContext	((MemoryContext) NULL)
#define MCXT_ALLOC_HUGE			0x01
#define MaxAllocSize			((Size) 0x3fffffff)

extern void *palloc(Size size);
extern void *palloc0(Size size);
extern void *palloc_extended(Size size, int flags);
extern void *repalloc(void *pointer, Size size);
extern void *repalloc_huge(void *pointer, Size size);
extern void pfree(void *pointer);

#define MemoryContextAlloc(context, size)		((void) (context), palloc(size))
#define MemoryContextAllocZero(context, size)	((void) (context), palloc0(size))
#define MemoryContextAllocHuge(context, size)	((void) (context), palloc_extended(size, MCXT_ALLOC_HUGE))
#define MemoryContextAllocExtended(context, size, flags) \
	((void) (context), palloc_extended(size, flags))

/* ----------------------------------------------------------------
 * Varlenas: always a header of four bytes, never compressed
 * ----------------------------------------------------------------
 */

struct varlena
{
	uint32		size;
	char		data[FLEXIBLE_ARRAY_MEMBER];
};

#define VARHDRSZ				((Size) 4)
#define VARSIZE(p)				((Size) ((struct varlena *) (p))->size)
#define SET_VARSIZE(p, n)		(((struct varlena *) (p))->size = (uint32) (n))
#define VARDATA(p)				(((struct varlena *) (p))->data)
#define VARDATA_ANY(p)			VARDATA(p)
#define VARSIZE_ANY_EXHDR(p)	(VARSIZE(p) - VARHDRSZ)
#define VARATT_IS_EXTENDED(p)	((void) (p), false)
#define VARATT_IS_SHORT(p)		((void) (p), false)

/* ----------------------------------------------------------------
 * Errors
 * ----------------------------------------------------------------
 */

#define ERROR									21
#define ERRCODE_DATA_CORRUPTED					0
#define ERRCODE_DATATYPE_MISMATCH				0
#define ERRCODE_FEATURE_NOT_SUPPORTED			0
#define ERRCODE_INVALID_PARAMETER_VALUE			0
#define ERRCODE_PROGRAM_LIMIT_EXCEEDED			0

#define ereport(level, ...) \
	do { \
		(void) (level); \
		(void) (__VA_ARGS__); \
		shim_throw(SHIM_ERROR); \
	} while (0)

static inline int
errcode(int code)
{
	return code;
}

extern int	errmsg(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int	errdetail(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int	errhint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ----------------------------------------------------------------
 * What the fuzz targets use
 * ----------------------------------------------------------------
 */

typedef enum ShimOutcome
{
	SHIM_DONE = 0,
	SHIM_ERROR,					/* an error that was reported */
	SHIM_FAULT					/* an allocation or a poll failed on purpose */
} ShimOutcome;

extern char shim_message[200];	/* of the last error */

extern void shim_throw(ShimOutcome why) __attribute__((noreturn));
extern ShimOutcome shim_run(void (*work) (void *arg), void *arg);
extern void shim_fail_after(unsigned steps);
extern void shim_poll(void);
extern void shim_free_all(void);

#endif							/* SHIM_POSTGRES_H */
