/*
 * growth.h
 *		When a layer is full, and the size of the next one.
 */
#ifndef BF_GROWTH_H
#define BF_GROWTH_H

#include "format.h"

/* The size of a layer. */
typedef struct bf_size
{
	bf_shape	shape;
	uint64_t	capacity;
} bf_size;

extern bf_shape bf_first_shape(uint64_t capacity, double fpp, unsigned growth, unsigned max_layers);
extern uint64_t bf_shape_full_bits(bf_shape shape, uint64_t capacity);
extern uint64_t bf_full_bits(unsigned growth, bf_shape shape, uint64_t capacity);
extern bf_size bf_next_size(const bf_header *header, bf_size last, double used, double first, uint64_t keys);
extern bool bf_layers_fit(const bf_filter *filter);

#endif							/* BF_GROWTH_H */
