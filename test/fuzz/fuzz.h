/*
 * fuzz.h
 *		What all fuzz targets share: reading the input, reporting a finding.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "compat.h"

#include "build.h"

/* A wrong answer is reported like a crash. */
#define CHECK(condition, ...) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
			abort(); \
		} \
	} while (0)

/* The rest of the input.  Beyond its end there are zeros. */
typedef struct Input
{
	const uint8 *at;
	Size		left;
} Input;

static inline uint8
take_byte(Input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->at++;
}

static inline uint64
take_bytes(Input *input, unsigned n)
{
	uint64		value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64) take_byte(input) << (8 * i);
	return value;
}

/* A hash of a kind that the input chooses, and those that follow it. */
typedef struct HashRun
{
	unsigned	kind;
	uint64		first;
	bf_table	table;			/* for those that are made to collide */
} HashRun;

/* The smallest hash with this number. */
static inline uint64
hash_of_number(bf_table table, uint64 number)
{
	uint64		range = bf_table_range(table);
	unsigned __int128 hash = (((unsigned __int128) (number % range) << 64) + range - 1) / range;

	return (uint64) hash;
}

static inline HashRun
take_hashes(Input *input, bf_table table)
{
	HashRun		run = {take_byte(input), 0, table};

	run.first = take_bytes(input, run.kind % 8 == 7 ? 8 : 1);
	return run;
}

static inline uint64
hash_at(const HashRun *run, uint64 i)
{
	uint64		n = run->first + i;
	unsigned	shift;

	switch (run->kind % 8)
	{
		case 0:
		case 1:
			return bf_mix64(n + 1); /* as good as any */
		case 2:
			return n;			/* the same upper bits */
		case 3:
			return ~n;
		case 4:
			return n << 56 | n; /* few upper bits, all over the range */
		case 5:
			if (run->table.buckets == 0)
				return n << 48;
			/* numbers that are neighbours: one bucket, until it is left */
			return hash_of_number(run->table, n);
		case 6:
			if (run->table.buckets == 0)
				return bf_mix64(n) << 60;
			/* one fingerprint, in each bucket */
			shift = run->table.slot_bits - 1U;
			return hash_of_number(run->table, n << shift | (run->kind / 8 & ((UINT64_C(1) << shift) - 1)));
		default:
			return n;
	}
}

/* The bytes of a filter in a block of their exact size, at an odd address. */
typedef struct Exact
{
	uint8	   *block;
	uint8	   *bytes;
	Size		n;
} Exact;

static inline Exact
exact_copy(const void *bytes, Size n)
{
	Size		shift = n % 5;
	Exact		copy = {malloc(n + shift + (n + shift == 0)), NULL, n};

	copy.bytes = copy.block + shift;
	if (n > 0)
		memcpy(copy.bytes, bytes, n);
	return copy;
}

static inline void
exact_free(Exact *copy)
{
	free(copy->block);
}

#endif							/* FUZZ_H */
