/*
 * growth.h
 *		When a layer is full, and what the next one is like.
 */
#ifndef BF_GROWTH_H
#define BF_GROWTH_H

#include "format.h"

extern bf_shape bf_first_shape(uint64_t capacity, double fpp, unsigned growth, unsigned max_layers);
extern uint64_t bf_shape_full_bits(bf_shape shape, uint64_t capacity);
extern uint64_t bf_full_bits(const bf_filter *filter, const bf_layer *layer);
extern void bf_next_layer(const bf_filter *filter, uint64_t keys, bf_layer *next);

#endif							/* BF_GROWTH_H */
