/*
 * operations.h
 *		Operations on filters that may fail, for fuzz targets and unit tests.
 *
 * Include it after the headers of the core and the definition of CHECK.
 */
#ifndef TEST_OPERATIONS_H
#define TEST_OPERATIONS_H

#include "host.h"

/* Key classes: by number and by name. */
static const bf_key_class key_classes[] = {
	{BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL},
	{BF_SCHEME_CANONICAL, BF_CLASS_BYTEA, 0, NULL},
	{BF_SCHEME_CANONICAL, BF_CLASS_NAMED, 9, "enum mood"},
	{BF_SCHEME_CANONICAL, BF_CLASS_UUID, 0, NULL}
};

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

/* A filter that is read in pieces: each piece is in a block that the next one replaces. */
typedef struct Store
{
	Bytes		all;
	Bytes		piece;
	unsigned	fetches;
} Store;

static inline const uint8_t *
fetch_piece(void *arg, uint64_t offset, size_t n)
{
	Store	   *store = arg;

	if (offset > store->all.n || n > store->all.n - offset)
		abort();
	bytes_free(store->piece);
	store->piece = bytes_copy(store->all.bytes + offset, n);
	store->fetches++;
	return store->piece.bytes;
}

/* Check that bytes are valid, also after a round trip through text. */
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

/* The filter as a value; for the state of an aggregate, an unfinished one. */
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

/* Load a filter, replacing the current one. */
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
look_up(void *arg)
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
	CHECK(bf_mutable_can_merge_state(operation->filter, operation->other), "states cannot be merged");
	bf_mutable_merge_state(operation->filter, operation->other);
}

/* Unions of Bloom filters and sums of cuckoo filters; with a flag, in canonical form. */
static inline void
unite(void *arg)
{
	Operation  *operation = arg;
	bf_mutable *filter = operation->filter;

	if (filter->header.kind == BF_KIND_BLOOM)
	{
		bf_bloom_unite(&filter->bloom, operation->other);
		if (operation->flag)
			bf_bloom_sort_layers(&filter->bloom);
		return;
	}
	CHECK(bf_cuckoo_can_merge(&filter->cuckoo, operation->other), "filters cannot be merged");
	bf_cuckoo_merge(&filter->cuckoo, operation->other);
	if (operation->flag)
		bf_cuckoo_sort(&filter->cuckoo);
}

/* The difference of cuckoo filters, in canonical form; `answer` is whether it exists. */
static inline void
subtract(void *arg)
{
	Operation  *operation = arg;
	bf_cuckoo  *cuckoo = &operation->filter->cuckoo;
	unsigned	there;
	unsigned	wanted;

	CHECK(bf_cuckoo_can_merge(cuckoo, operation->other), "filters cannot be merged");
	operation->answer = bf_cuckoo_subtract(cuckoo, operation->other, &there, &wanted);
	CHECK(operation->answer || there < wanted, "%u copies are not enough for %u", there, wanted);
	if (operation->flag)
		bf_cuckoo_sort(cuckoo);
}

static inline void
intersect(void *arg)
{
	Operation  *operation = arg;

	bf_bloom_intersect(&operation->filter->bloom, operation->other);
}

static inline void
compact(void *arg)
{
	bf_bloom_compact(&((Operation *) arg)->filter->bloom);
}

/* A filter as bytes; NULL if it would be too large. */
static inline Bytes
flat(bf_mutable *filter)
{
	Operation	operation = {.filter = filter};

	return host_run(flatten, &operation, 0) == HOST_DONE ? operation.result : (Bytes) {NULL, 0};
}

/* Load a filter from its bytes; false if it is too large. */
static inline bool
reload(bf_mutable *filter, uint64_t fault_at)
{
	Bytes		bytes = flat(filter);
	bf_filter	value;
	Operation	operation = {.filter = filter, .other = &value};

	if (bytes.bytes == NULL)
		return false;
	open_valid(&value, bytes, filter->header.kind);
	host_run(load, &operation, fault_at);
	bytes_free(bytes);
	return true;
}

/* Change a filter that is not shared. */
static inline void
change_own(void *arg)
{
	Operation  *operation = arg;

	bf_mutable_change(operation->filter, operation->change, operation->class, operation->hashes, operation->n);
}

/*
 * Change a filter as a PL/pgSQL variable is changed: in place, or by replacing it
 * with a changed copy.
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

/* Would a change leave the filter unchanged?  Reading all bytes and reading pieces must agree, where possible. */
static inline bool
change_is_void(const Operation *operation, Bytes bytes)
{
	bf_filter	filter;
	Store		store = {.all = bytes};
	bool		whole;
	bool		pieces;

	open_valid(&filter, bytes, operation->filter->header.kind);
	whole = bf_change_is_void(&filter, operation->change, operation->hashes, operation->n);
	CHECK(bf_filter_open_pieces(&filter, test_host, bytes.n, fetch_piece, &store) == NULL, "cannot be opened in pieces");
	pieces = bf_change_is_void_pieces(&filter, fetch_piece, &store, operation->change, operation->hashes, operation->n);
	CHECK(whole == pieces || (whole && operation->change == BF_REMOVE), "in pieces: %d, as a whole: %d", pieces, whole);
	bytes_free(store.piece);
	return whole;
}

/*
 * After a change: the bytes are the same if and only if this was predicted.
 * Exceptions: keys of a cuckoo filter are counted, and many keys can rotate a window
 * until it is the same again.
 */
static inline void
check_void(const Operation *operation, Bytes before, bool is_void)
{
	const bf_header *header = &operation->filter->header;
	bool		may_return = header->kind == BF_KIND_CUCKOO || (header->max_layers > 0 && operation->n > 1);
	Bytes		after = flat(operation->filter);

	CHECK(after.bytes == NULL || bytes_equal(before, after) == is_void || (may_return && !is_void), "void: %d", is_void);
	bytes_free(after);
}

/*
 * The same, after failures at each of the first steps.  A change is all or nothing:
 * after each failure the bytes are unchanged.
 */
static inline HostOutcome
change_step_by_step(Operation *operation, uint64_t most_steps)
{
	Bytes		before = flat(operation->filter);
	HostOutcome outcome = HOST_FAULT;

	for (uint64_t step = 1; before.n > 0 && step <= most_steps && outcome == HOST_FAULT; step++)
	{
		outcome = host_run(change, operation, step);
		if (outcome != HOST_DONE)
		{
			Bytes		after = flat(operation->filter);

			CHECK(bytes_equal(before, after), "a change that failed at step %u changed the filter", (unsigned) step);
			bytes_free(after);
		}
	}
	bytes_free(before);
	return outcome == HOST_FAULT ? host_run(change, operation, 0) : outcome;
}

#endif							/* TEST_OPERATIONS_H */
