/*
 * fuzz.h
 *		Shared by all fuzz targets: reading the input, reporting a finding.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "core/base64.h"
#include "core/mutable.h"
#include "core/query.h"

/* A wrong result is reported like a crash. */
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

#include "operations.h"

/* ----------------------------------------------------------------
 * The input
 * ----------------------------------------------------------------
 */

/* The rest of the input.  Reading beyond its end gives zeros. */
typedef struct Input
{
	const uint8_t *at;
	size_t		left;
} Input;

static inline uint8_t
take_byte(Input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->at++;
}

static inline uint64_t
take_bytes(Input *input, unsigned n)
{
	uint64_t	value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t) take_byte(input) << (8 * i);
	return value;
}

/* A hash of a kind that the input chooses, and its successors. */
typedef struct HashRun
{
	unsigned	kind;
	uint64_t	first;
	bf_table	table;			/* for hashes that collide */
} HashRun;

/* The smallest hash with this number. */
static inline uint64_t
hash_of_number(bf_table table, uint64_t number)
{
	uint64_t	range = bf_table_range(table);
	unsigned __int128 hash = (((unsigned __int128) (number % range) << 64) + range - 1) / range;

	return (uint64_t) hash;
}

static inline HashRun
take_hashes(Input *input, bf_table table)
{
	HashRun		run = {take_byte(input), 0, table};

	run.first = take_bytes(input, run.kind % 8 == 7 ? 8 : 1);
	return run;
}

static inline uint64_t
hash_at(const HashRun *run, uint64_t i)
{
	uint64_t	n = run->first + i;
	unsigned	shift;

	switch (run->kind % 8)
	{
		case 0:
		case 1:
			return bf_mix64(n + 1); /* random */
		case 3:
			return ~n;
		case 4:
			return n << 56 | n; /* few upper bits, over the whole range */
		case 5:
			if (run->table.buckets == 0)
				return n << 48;
			/* adjacent numbers: one bucket, as long as they fit */
			return hash_of_number(run->table, n);
		case 6:
			if (run->table.buckets == 0)
				return bf_mix64(n) << 60;
			/* one fingerprint, in each bucket */
			shift = run->table.slot_bits - 1U;
			return hash_of_number(run->table, n << shift | (run->kind / 8 & ((UINT64_C(1) << shift) - 1)));
		default:
			return n;			/* the same upper bits */
	}
}

#endif							/* FUZZ_H */
