/*
 * fuzz.h
 *		What all fuzz targets share: reading the input, reporting a finding,
 *		and operations on filters that may fail.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "core/base64.h"
#include "core/mutable.h"
#include "core/query.h"
#include "host.h"

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

/* ----------------------------------------------------------------
 * The input
 * ----------------------------------------------------------------
 */

/* The rest of the input.  Beyond its end there are zeros. */
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

/* A hash of a kind that the input chooses, and those that follow it. */
typedef struct HashRun
{
	unsigned	kind;
	uint64_t	first;
	bf_table	table;			/* for those that are made to collide */
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
			return bf_mix64(n + 1); /* as good as any */
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
			return n;			/* the same upper bits */
	}
}

static inline int
compare_hashes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* ----------------------------------------------------------------
 * The bytes of filters
 * ----------------------------------------------------------------
 */

/* In a block of their exact size, at an odd address. */
typedef struct Bytes
{
	uint8_t    *bytes;			/* NULL if there are none */
	size_t		n;
} Bytes;

static inline Bytes
bytes_allocate(size_t n)
{
	return (Bytes) {(uint8_t *) memory_allocate(&test_memory, n + n % 5) + n % 5, n};
}

static inline Bytes
bytes_copy(const uint8_t *from, size_t n)
{
	Bytes		copy = bytes_allocate(n);

	if (n > 0)
		memcpy(copy.bytes, from, n);
	return copy;
}

static inline void
bytes_free(Bytes bytes)
{
	if (bytes.bytes != NULL)
		memory_release(&test_memory, bytes.bytes - bytes.n % 5);
}

static inline bool
bytes_equal(Bytes a, Bytes b)
{
	return a.n == b.n && memcmp(a.bytes, b.bytes, a.n) == 0;
}

/* Bytes that must be valid, also after a journey as text. */
static inline void
open_valid(bf_filter *filter, Bytes bytes, uint16_t kind)
{
	size_t		length = bf_base64_encoded_size(bytes.n);
	char	   *text = memory_allocate(&test_memory, length);
	Bytes		back;
	size_t		n;
	size_t		bad;
	const char *problem;

	bf_base64_encode(test_host, text, bytes.bytes, bytes.n);
	CHECK(bf_base64_decoded_size(text, length, &n) && n == bytes.n, "size of the text");
	back = bytes_allocate(n);
	CHECK(bf_base64_decode(test_host, back.bytes, text, length, &bad) && bytes_equal(bytes, back), "the text");
	problem = bf_filter_validate(test_host, back.bytes, n, kind);
	CHECK(problem == NULL, "invalid bytes: %s", problem);
	bytes_free(back);
	memory_release(&test_memory, text);
	CHECK(bf_filter_open(filter, test_host, bytes.bytes, bytes.n) == NULL, "cannot be opened");
}

/* ----------------------------------------------------------------
 * Operations that may fail
 * ----------------------------------------------------------------
 */

typedef struct Operation
{
	bf_mutable *filter;
	const bf_filter *other;
	bf_change	change;
	const bf_key_class *class;
	const uint64_t *hashes;
	size_t		n;
	bool		flag;
	bool		answer;
	Bytes		result;
} Operation;

/* The filter as a value; the state of an aggregate is an unfinished one. */
static inline void
flatten(void *arg)
{
	Operation  *operation = arg;
	bf_filter	description;
	uint64_t	size = bf_mutable_describe(operation->filter, &description);

	if (size + BF_LENGTH_WORD > BF_MAX_BYTES)
		bf_fail(test_host, BF_FAIL_BYTES, size, NULL);
	operation->result = bytes_allocate((size_t) size);
	bf_mutable_write(operation->filter, &description, operation->result.bytes, operation->result.n);
}

/* The finished filter of an aggregate. */
static inline void
finish(void *arg)
{
	Operation  *operation = arg;

	if (operation->filter->header.kind == BF_KIND_BLOOM)
	{
		bf_filter	description;
		uint64_t	size = bf_bloom_finish(&operation->filter->bloom, &description);

		if (size + BF_LENGTH_WORD > BF_MAX_BYTES)
			bf_fail(test_host, BF_FAIL_BYTES, size, NULL);
		operation->result = bytes_allocate((size_t) size);
		bf_bloom_write(&operation->filter->bloom, &description, operation->result.bytes, operation->result.n);
	}
	else
	{
		bf_mutable	finished;
		Operation	flattening = {.filter = &finished};

		bf_cuckoo_finish(&operation->filter->cuckoo, &finished.cuckoo, test_host);
		flatten(&flattening);
		bf_mutable_free(&finished);
		operation->result = flattening.result;
	}
}

/* Continue a filter, in the place of what was there. */
static inline void
load(void *arg)
{
	Operation  *operation = arg;
	bf_mutable	loaded;

	bf_mutable_load(&loaded, test_host, operation->other);
	if (operation->filter->header.kind != 0)
		bf_mutable_free(operation->filter);
	*operation->filter = loaded;
}

static inline void
ask(void *arg)
{
	Operation  *operation = arg;

	operation->answer = bf_mutable_contains(operation->filter, operation->hashes[0]);
}

/* Merge another state of the aggregate. */
static inline void
merge_state(void *arg)
{
	Operation  *operation = arg;

	if (operation->other->header.class.code != BF_CLASS_NONE)
		bf_mutable_set_class(operation->filter, &operation->other->header.class);
	CHECK(bf_mutable_can_merge_state(operation->filter, operation->other), "states do not fit");
	bf_mutable_merge_state(operation->filter, operation->other);
}

/* A filter as bytes; none if it would be too large. */
static inline Bytes
flat(bf_mutable *filter)
{
	Operation	operation = {.filter = filter};

	return host_run(flatten, &operation, 0) == HOST_DONE ? operation.result : (Bytes) {NULL, 0};
}

/*
 * Change a filter as a variable is changed: in place, or else a copy that takes
 * its place.
 */
static inline void
change(void *arg)
{
	Operation  *operation = arg;
	bf_mutable	copy;

	if (bf_mutable_change_in_place(operation->filter, operation->change, operation->class, operation->hashes, operation->n))
		return;
	bf_mutable_copy(&copy, test_host, operation->filter);
	bf_mutable_change(&copy, operation->change, operation->class, operation->hashes, operation->n);
	bf_mutable_free(operation->filter);
	*operation->filter = copy;
}

#define MOST_STEPS		40

/*
 * The same, after failures at each step on the way.  A change is made whole or
 * not at all: after each of them the bytes are what they were.
 */
static inline HostOutcome
change_step_by_step(Operation *operation)
{
	Bytes		before = flat(operation->filter);
	HostOutcome outcome = HOST_FAULT;

	for (uint64_t step = 1; before.n > 0 && step <= MOST_STEPS && outcome == HOST_FAULT; step++)
	{
		outcome = host_run(change, operation, step);
		if (outcome != HOST_DONE)
		{
			Bytes		after = flat(operation->filter);

			CHECK(bytes_equal(before, after), "a change that failed at step %u has changed the filter", (unsigned) step);
			bytes_free(after);
		}
	}
	bytes_free(before);
	return outcome == HOST_FAULT ? host_run(change, operation, 0) : outcome;
}

#endif							/* FUZZ_H */
