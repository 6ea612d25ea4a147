/*
 * fuzz_bloom.c
 *		The mutable Bloom filter, compared with a plain array of hashes.
 *
 * The input is a filter's parameters and a sequence of operations on it, or on
 * three states of an aggregate.  No key may be missing, except those that a
 * rotating filter may have forgotten.  A filter that is a list has no other keys.  All
 * bytes are valid.  With one layer, the same keys in another order give the same
 * bytes.
 *
 * An operation can be made to fail at any allocation or poll, like a query that is
 * canceled.  The filter must then be unchanged.
 */
#include "fuzz.h"

#define MOST_OPERATIONS		60
#define MOST_STEPS			40
#define MOST_KEYS			6000
#define STATES				3

/* Hashes up to which the state of a parallel aggregate stays a list. */
#define PARTIAL_LIST		(BF_MAX_LIST < 1024 * 1024 ? BF_MAX_LIST : 1024 * 1024)

/* A filter that is being filled, and the keys that it must hold. */
typedef struct Subject
{
	bf_mutable	filter;
	uint64_t	added[MOST_KEYS];
	size_t		n;
	bool		exact;			/* determined by the parameters and the keys */
} Subject;

typedef struct Parameters
{
	uint64_t	capacity;
	double		fpp;
	uint8_t		growth;
	uint8_t		max_layers;
	bool		aggregate;
	bf_key_class class;
} Parameters;

static Parameters parameters;
static Subject subjects[STATES];
static bool dead;				/* a state was lost in an error */

/* ----------------------------------------------------------------
 * Starting
 * ----------------------------------------------------------------
 */

static void
take_parameters(Input *input)
{
	static const double probabilities[] = {0.01, 0.5, 0.1, 0.9, 0.99, 1e-3, 1e-6, 1e-12};
	static const uint8_t growths[] = {0, 1, 2, 3, 2, 10, 100, 2};
	uint8_t		flags = take_byte(input);

	parameters.aggregate = flags & 1;
	parameters.capacity = take_bytes(input, flags & 2 ? 2 : 1) % 3000;
	if (parameters.capacity == 0 && !parameters.aggregate)
		parameters.capacity = 1;
	parameters.fpp = probabilities[take_byte(input) % 8];
	parameters.class = key_classes[flags >> 2 & 3];
	parameters.growth = BF_DEFAULT_GROWTH;
	parameters.max_layers = 0;
	if (!parameters.aggregate)
	{
		parameters.growth = growths[flags >> 4 & 7];
		if ((flags & 128) != 0)
		{
			parameters.growth = 1;
			parameters.max_layers = 2 + take_byte(input) % 6;
		}
	}
}

/* Start an empty filter or state. */
static void
start(void *arg)
{
	bf_bloom   *bloom = arg;
	bf_shape	shape;

	if (parameters.aggregate)
	{
		bf_bloom_start_state(bloom, test_host, parameters.capacity, parameters.fpp);
		return;
	}
	shape = bf_first_shape(parameters.capacity, parameters.fpp, parameters.growth, parameters.max_layers);
	if (shape.words * (parameters.max_layers + 1) * 8 > BF_MAX_BYTES)
		bf_fail(test_host, BF_FAIL_BYTES, shape.words, NULL);
	bf_bloom_start(bloom, test_host, (bf_size) {shape, parameters.capacity}, parameters.fpp);
	bloom->header.growth = parameters.growth;
	bloom->header.max_layers = parameters.max_layers;
}

static bool
start_subject(Subject *subject)
{
	memset(&subject->filter, 0, sizeof(subject->filter));
	subject->n = 0;
	subject->exact = true;
	return host_run(start, &subject->filter.bloom, 0) == HOST_DONE;
}

/* ----------------------------------------------------------------
 * Checking
 * ----------------------------------------------------------------
 */

/*
 * The first of the added keys that must be there.  A rotating filter holds the
 * newest (m - 1) x capacity; a key that is added again counts again.
 */
static size_t
first_held(const Subject *subject)
{
	uint64_t	held = (parameters.max_layers - 1) * parameters.capacity;

	return parameters.max_layers == 0 || held > subject->n ? 0 : subject->n - held;
}

/* The distinct keys of the last call, in ascending order. */
static uint64_t sorted_keys[MOST_KEYS];

static size_t
sort_keys(const Subject *subject)
{
	size_t		distinct = 0;

	memcpy(sorted_keys, subject->added, sizeof(uint64_t) * subject->n);
	qsort(sorted_keys, subject->n, sizeof(uint64_t), compare_hashes);
	for (size_t i = 0; i < subject->n; i++)
	{
		if (i == 0 || sorted_keys[i] != sorted_keys[i - 1])
			sorted_keys[distinct++] = sorted_keys[i];
	}
	return distinct;
}

static bool
was_added(size_t distinct, uint64_t hash)
{
	return bsearch(&hash, sorted_keys, distinct, sizeof(uint64_t), compare_hashes) != NULL;
}

/* Check that the bytes are valid and hold the right keys. */
static void
check_bytes(const Subject *subject, Bytes bytes)
{
	bf_filter	filter;
	uint64_t	listed = 0;
	bool		lines = false;
	size_t		distinct = sort_keys(subject);

	open_valid(&filter, bytes, BF_KIND_BLOOM);
	for (size_t i = first_held(subject); i < subject->n; i++)
		CHECK(bf_filter_contains(&filter, subject->added[i]), "key %zu of %zu is missing from the bytes", i, subject->n);
	for (unsigned i = 0; i < filter.layers; i++)
	{
		lines |= filter.layer[i].form == BF_FORM_LINES;
		listed += filter.layer[i].count;
		for (uint32_t j = 0; j < filter.layer[i].count && subject->exact; j++)
			CHECK(was_added(distinct, bf_load64(filter.layer[i].data + (size_t) j * 8)), "a key that was not added");
	}
	CHECK(!subject->exact || lines || filter.header.max_layers > 0 || (listed >= distinct && listed <= subject->n),
		  "%lu of %zu keys", listed, distinct);
}

/* The same for the current filter. */
static void
check_flat(Subject *subject)
{
	Bytes		bytes = flat(&subject->filter);

	if (bytes.bytes != NULL)
		check_bytes(subject, bytes);
	bytes_free(bytes);
}

/* Test the filter for all keys. */
static void
check_keys(Subject *subject)
{
	for (size_t i = first_held(subject); i < subject->n; i++)
	{
		Operation	operation = {.filter = &subject->filter, .hashes = &subject->added[i]};

		/* pending keys may make it too large */
		CHECK(host_run(look_up, &operation, 0) != HOST_DONE || operation.answer, "key %zu of %zu is missing", i, subject->n);
	}
}

/* ----------------------------------------------------------------
 * Operations
 * ----------------------------------------------------------------
 */

/* After an operation that failed.  The state of an aggregate ends with its query. */
static void
after_failure(Subject *subject)
{
	if (parameters.aggregate)
		dead = true;
	else
		check_flat(subject);
}

static void
add_to_state(void *arg)
{
	Operation  *operation = arg;

	if (operation->n > 0)
		bf_mutable_set_class(operation->filter, &parameters.class);
	for (size_t i = 0; i < operation->n; i++)
		bf_bloom_add(&operation->filter->bloom, operation->hashes[i]);
}

static void
run_add(Input *input, Subject *subject, bool faults, bool one)
{
	HashRun		run_of = take_hashes(input, (bf_table) {0, 0});
	size_t		n = one ? 1 : (size_t) take_byte(input) * (1 + run_of.kind / 8 % 8);
	uint64_t   *hashes = subject->added + subject->n;
	Operation	operation = {.filter = &subject->filter, .class = &parameters.class, .hashes = hashes, .n = n};
	uint8_t		fault = faults ? take_byte(input) : 0;
	HostOutcome outcome;
	Bytes		before = {NULL, 0};
	bool		is_void = false;

	if (n == 0 || n > MOST_KEYS - subject->n)
		return;
	for (size_t i = 0; i < n; i++)
		hashes[i] = hash_at(&run_of, i);
	/* not always: writing a filter sorts it */
	if (!parameters.aggregate && !faults && n % 2 == 1)
		before = flat(&subject->filter);
	if (before.bytes != NULL)
		is_void = change_is_void(&operation, before);
	if (parameters.aggregate)
		outcome = host_run(add_to_state, &operation, fault);
	else
		outcome = faults && fault % 4 == 0 ? change_step_by_step(&operation, MOST_STEPS) : host_run(change, &operation, fault);
	if (outcome != HOST_DONE)
		after_failure(subject);
	/* try again */
	if (outcome == HOST_FAULT && !dead && (run_of.kind & 8) != 0)
		outcome = host_run(change, &operation, 0);
	if (outcome == HOST_DONE)
		subject->n += n;
	if (outcome == HOST_DONE && before.bytes != NULL)
		check_void(&operation, before, is_void);
	bytes_free(before);
}

static void
run_merge(Input *input, Subject *subject, Subject *other, bool faults)
{
	bf_filter	filter;
	Operation	operation = {.filter = &subject->filter, .other = &filter};
	Bytes		bytes;

	if (!parameters.aggregate || subject == other || subject->n + other->n > MOST_KEYS)
		return;
	bytes = flat(&other->filter);
	dead = bytes.bytes == NULL;
	if (dead)
		return;
	check_bytes(other, bytes);
	open_valid(&filter, bytes, BF_KIND_BLOOM);
	dead = host_run(merge_state, &operation, faults ? take_byte(input) : 0) != HOST_DONE;
	memcpy(subject->added + subject->n, other->added, sizeof(uint64_t) * other->n);
	subject->n += other->n;
	bytes_free(bytes);
}

/* ----------------------------------------------------------------
 * Sets
 * ----------------------------------------------------------------
 */

/* Combine two filters; the result may replace the first of them. */
static void
run_sets(Input *input, Subject *subject, Subject *other)
{
	static Subject result;
	static void (*const functions[]) (void *) = {unite, unite, compact, intersect};
	uint8_t		which = take_byte(input);
	bool		uniting = which % 4 < 2;
	bool		intersecting = which % 4 == 3;
	Bytes		left = flat(&subject->filter);
	Bytes		right = flat(&other->filter);
	bf_filter	a;
	bf_filter	b;
	Operation	operation = {.filter = &result.filter, .flag = which % 4 == 0};
	HostOutcome outcome = HOST_FAULT;
	size_t		distinct = sort_keys(other);

	if (parameters.aggregate || left.bytes == NULL || right.bytes == NULL || subject->n + other->n > MOST_KEYS)
		return;
	open_valid(&a, left, BF_KIND_BLOOM);
	open_valid(&b, right, BF_KIND_BLOOM);
	if (intersecting ? a.header.class.code == 0 || b.header.class.code == 0 || a.layers > 1 || b.layers > 1 ||
		!bf_shape_equal(a.layer[0].shape, b.layer[0].shape) : bf_filter_is_empty(&a) || (uniting && bf_filter_is_empty(&b)))
		return;
	for (int fault = which >> 4; outcome == HOST_FAULT; fault = 0)
	{
		memset(&result.filter, 0, sizeof(result.filter));
		operation.other = &a;
		outcome = host_run(load, &operation, 0);
		CHECK(outcome == HOST_DONE, "cannot be loaded");
		operation.other = &b;
		outcome = host_run(functions[which % 4], &operation, fault);
	}
	if (outcome != HOST_DONE)
		return;
	result.n = 0;
	result.exact = false;
	for (size_t i = 0; i < subject->n; i++)
	{
		if (!intersecting || was_added(distinct, subject->added[i]))
			result.added[result.n++] = subject->added[i];
	}
	if (uniting && parameters.max_layers > 0)
		check_flat(&result);	/* two windows: the newest keys of each */
	if (uniting)
	{
		memcpy(result.added + result.n, other->added, sizeof(uint64_t) * other->n);
		result.n += other->n;
		result.exact = subject->exact && other->exact;
	}
	if (!intersecting || parameters.max_layers == 0)
		check_flat(&result);
	result.exact = false;
	if (!intersecting && parameters.max_layers == 0 && (which & 8) != 0)
	{
		/* continue with it: its shapes are not those of the parameters */
		bf_mutable_free(&subject->filter);
		*subject = result;
	}
	else
		bf_mutable_free(&result.filter);
	bytes_free(left);
	bytes_free(right);
}

/* ----------------------------------------------------------------
 * The same keys in another order, and in parts
 * ----------------------------------------------------------------
 */

/* The filter, finished if it is a state. */
static Bytes
result_of(Subject *subject)
{
	Operation	operation = {.filter = &subject->filter};

	if (host_run(parameters.aggregate ? finish : flatten, &operation, 0) != HOST_DONE)
		return (Bytes) {NULL, 0};
	check_bytes(subject, operation.result);
	return operation.result;
}

static void
check_order(Subject *subject)
{
	static Subject again;
	Bytes		first = result_of(subject);
	Bytes		second;
	Operation	operation = {.filter = &again.filter, .change = BF_ADD, .class = &parameters.class, .hashes = again.added};

	if (!subject->exact || first.bytes == NULL || first.bytes[5] != 1)
		return;
	CHECK(start_subject(&again), "cannot start again");
	again.n = operation.n = subject->n;
	memcpy(again.added, subject->added, sizeof(uint64_t) * subject->n);
	qsort(again.added, again.n, sizeof(uint64_t), compare_hashes);
	if (subject->n > 0 && host_run(parameters.aggregate ? add_to_state : change, &operation, 0) == HOST_DONE)
	{
		second = result_of(&again);
		CHECK(second.bytes == NULL || second.bytes[5] != 1 || bytes_equal(first, second),
			  "the same keys in another order give different bytes");
	}
	bf_mutable_free(&again.filter);
}

/*
 * Distribute the keys over the states of several processes, each a list of hashes up
 * to `list_bound`, and merge the states.  If all are lists, the result is the same as
 * that of one process.
 */
static void
check_parts(Subject *subject, unsigned parts, uint32_t list_bound)
{
	static Subject part;
	static Subject whole;
	uint64_t	distinct = sort_keys(subject);
	Bytes		all = result_of(subject);
	Bytes		merged;
	bf_filter	filter;

	CHECK(start_subject(&whole), "cannot start again");
	for (unsigned i = 0; i < parts; i++)
	{
		Operation	adding = {.filter = &part.filter, .hashes = part.added};
		Operation	merging = {.filter = &whole.filter, .other = &filter};

		CHECK(start_subject(&part), "cannot start again");
		part.filter.bloom.list_bound = list_bound;
		for (size_t j = 0; j < subject->n; j++)
		{
			if (bf_mix64(subject->added[j] + j) % parts == i)
				part.added[part.n++] = subject->added[j];
		}
		adding.n = part.n;
		if (host_run(add_to_state, &adding, 0) != HOST_DONE || (merged = flat(&part.filter)).bytes == NULL)
			return;
		check_bytes(&part, merged);
		open_valid(&filter, merged, BF_KIND_BLOOM);
		if (host_run(i == 0 ? load : merge_state, &merging, 0) != HOST_DONE)
			return;
		bytes_free(merged);
		bf_mutable_free(&part.filter);
		memcpy(whole.added + whole.n, part.added, sizeof(uint64_t) * part.n);
		whole.n += part.n;
	}
	merged = result_of(&whole);
	CHECK(merged.bytes == NULL || all.bytes == NULL || !subject->exact ||
		  (parameters.capacity > 0 && distinct > parameters.capacity) ||
		  distinct > list_bound || bytes_equal(merged, all), "parts give different bytes");
	bf_mutable_free(&whole.filter);
}

/* ---------------------------------------------------------------- */

static void
run_operation(Input *input, uint8_t code, int states)
{
	Subject    *subject = &subjects[code / 16 % states];
	Subject    *other = &subjects[(code / 16 + 1) % states];
	bool		faults = code / 64 == 3;
	Operation	operation = {.filter = &subject->filter};

	switch (code % 16)
	{
		default:
			run_add(input, subject, faults, code % 16 > 4);
			break;
		case 7:
			check_keys(subject);
			break;
		case 8:
		case 9:
			if (host_run(flatten, &operation, faults ? take_byte(input) : 0) == HOST_DONE)
				check_bytes(subject, operation.result);
			else
				after_failure(subject);
			break;
		case 10:
		case 11:
			if (!reload(&subject->filter, faults ? take_byte(input) : 0))
				after_failure(subject);
			break;
		case 12:
			run_sets(input, subject, other);
			break;
		case 13:
		case 14:
			run_merge(input, subject, other, faults);
			break;
		case 15:
			dead = parameters.aggregate && result_of(subject).bytes == NULL;
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	uint8_t		flags = take_byte(&input);
	int			states = flags & 2 ? STATES : 1;
	bool		started = true;

	dead = false;
	take_parameters(&input);
	for (int i = 0; i < states; i++)
		started &= start_subject(&subjects[i]);
	for (int operations = 0; started && !dead && input.left > 0 && operations < MOST_OPERATIONS; operations++)
	{
		uint8_t		code = take_byte(&input);

		run_operation(&input, code, states);
		if ((flags & 1) != 0 && !dead)
			check_keys(&subjects[code / 16 % states]);
	}
	for (int i = 0; i < states; i++)
	{
		if (started && !dead)
		{
			check_keys(&subjects[i]);
			check_order(&subjects[i]);
			if (parameters.aggregate)
			{
				check_parts(&subjects[i], 1 + subjects[i].n % 20, PARTIAL_LIST);
				check_parts(&subjects[i], 1 + subjects[i].n % 5, subjects[i].n % 50);
			}
		}
		if (subjects[i].filter.header.kind != 0)
			bf_mutable_free(&subjects[i].filter);
	}
	host_clean();
	return 0;
}
