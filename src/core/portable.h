/*
 * portable.h
 *		Byte order, prefetching and 64-bit arithmetic for all of the core.
 *
 * The core is plain C without PostgreSQL's headers, so it can be tested, fuzzed
 * and timed as an ordinary library.  Filters are little-endian on every machine
 * and can be at any address, since a short varlena header leaves them unaligned.
 * So their words are accessed through the load and store functions below, which
 * compile to plain moves on a little-endian machine.
 */
#ifndef BF_PORTABLE_H
#define BF_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define bf_likely(x)	__builtin_expect(!!(x), 1)
#define bf_unlikely(x)	__builtin_expect(!!(x), 0)
#define bf_prefetch(p)	__builtin_prefetch(p)
/*
 * Always inline: for functions that need their caller's constants, and for those
 * that only prefetch.  gcc considers the latter to have no effect and drops calls
 * of them that are not inlined early.
 */
#define bf_inline		inline __attribute__((always_inline))
#define bf_unreachable()	__builtin_unreachable()
#else
#define bf_unreachable()	((void) 0)
#define bf_inline		inline
#define bf_likely(x)	(x)
#define bf_unlikely(x)	(x)
#define bf_prefetch(p)	((void) (p))
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BF_BIG_ENDIAN 1
#else
#define BF_BIG_ENDIAN 0
#endif

/* Invariants, which builds with assertions check. */
#ifdef USE_ASSERT_CHECKING
#include <assert.h>
#define bf_assert(condition)	assert(condition)
#else
#define bf_assert(condition)	((void) 0)
#endif

static inline uint64_t
bf_swap64(uint64_t x)
{
	x = (x >> 32) | (x << 32);
	x = ((x >> 16) & UINT64_C(0x0000FFFF0000FFFF)) | ((x & UINT64_C(0x0000FFFF0000FFFF)) << 16);
	return ((x >> 8) & UINT64_C(0x00FF00FF00FF00FF)) | ((x & UINT64_C(0x00FF00FF00FF00FF)) << 8);
}

static inline uint64_t
bf_load64(const void *p)
{
	uint64_t	x;

	memcpy(&x, p, sizeof(x));
	return BF_BIG_ENDIAN ? bf_swap64(x) : x;
}

static inline void
bf_store64(void *p, uint64_t x)
{
	if (BF_BIG_ENDIAN)
		x = bf_swap64(x);
	memcpy(p, &x, sizeof(x));
}

static inline uint32_t
bf_load32(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t) b[0] | (uint32_t) b[1] << 8 |
		(uint32_t) b[2] << 16 | (uint32_t) b[3] << 24;
}

static inline void
bf_store32(void *p, uint32_t x)
{
	uint8_t    *b = p;

	b[0] = (uint8_t) x;
	b[1] = (uint8_t) (x >> 8);
	b[2] = (uint8_t) (x >> 16);
	b[3] = (uint8_t) (x >> 24);
}

/* Scale x from [0, 2^64) to [0, n): the upper half of the 128-bit product. */
static inline uint64_t
bf_scale64(uint64_t x, uint64_t n)
{
#ifdef __SIZEOF_INT128__
	return (uint64_t) (((unsigned __int128) x * n) >> 64);
#else
	uint64_t	x0 = (uint32_t) x,
				x1 = x >> 32,
				n0 = (uint32_t) n,
				n1 = n >> 32;
	uint64_t	mid = x1 * n0 + ((x0 * n0) >> 32);
	uint64_t	low = x0 * n1 + (uint32_t) mid;

	return x1 * n1 + (mid >> 32) + (low >> 32);
#endif
}

/*
 * Mix the bits of a 64-bit word.  This is a bijection: David Stafford's variant
 * 13 of the finalizer of MurmurHash3.
 */
static inline uint64_t
bf_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xBF58476D1CE4E5B9);
	x ^= x >> 27;
	x *= UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static inline unsigned
bf_popcount64(uint64_t x)
{
	x = x - ((x >> 1) & UINT64_C(0x5555555555555555));
	x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	return (unsigned) ((x * UINT64_C(0x0101010101010101)) >> 56);
}

#endif							/* BF_PORTABLE_H */
