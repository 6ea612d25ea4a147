/*
 * geometry.h
 *		Sizing: the number of bits and probes of a layer for a number of keys and
 *		a false-positive probability.
 */
#ifndef BF_GEOMETRY_H
#define BF_GEOMETRY_H

#include "portable.h"

#define BF_LINE_BITS		512
#define BF_LINE_BYTES		(BF_LINE_BITS / 8)
#define BF_LINE_WORDS		(BF_LINE_BITS / 64)
#define BF_MAX_GROUPS		4
#define BF_MAX_PROBES		8

/* The smallest probability that hashes of 64 bits can guarantee. */
#define BF_MIN_FPP			1e-12

/* The largest capacity that can be declared: more keys than fit BF_MAX_BYTES. */
#define BF_MAX_CAPACITY		(UINT64_C(1) << 40)

/*
 * The shape of one layer of lines.  A layer of less than one line (words < 8) is a
 * single short line; otherwise `words` is a multiple of 8.
 */
typedef struct bf_shape
{
	uint64_t	words;			/* 64-bit words of bit storage */
	uint8_t		groups;			/* lines each key touches */
	uint8_t		probes;			/* bits each key sets in each of them */
} bf_shape;

/* The shape of a layer that is sized at the end of an aggregate. */
#define BF_UNSIZED		((bf_shape) {0, 0, 0})

extern bf_shape bf_shape_for(uint64_t capacity, double fpp);
extern bf_shape bf_shape_of_lines(uint64_t lines, double fpp, uint64_t *capacity);
extern uint64_t bf_shape_capacity(bf_shape shape, double fpp);
extern double bf_shape_fpp(bf_shape shape, uint64_t keys);
extern uint64_t bf_shape_bits_set(bf_shape shape, uint64_t keys);

static inline bool
bf_shape_equal(bf_shape a, bf_shape b)
{
	return a.words == b.words && a.groups == b.groups && a.probes == b.probes;
}

static inline uint64_t
bf_shape_lines(bf_shape shape)
{
	return shape.words < BF_LINE_WORDS ? 1 : shape.words / BF_LINE_WORDS;
}

static inline unsigned
bf_shape_line_bits(bf_shape shape)
{
	return shape.words < BF_LINE_WORDS ? (unsigned) shape.words * 64 : BF_LINE_BITS;
}

#endif							/* BF_GEOMETRY_H */
