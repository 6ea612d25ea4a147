/*
 * fuzz_cuckoo.c
 *		The mutable cuckoo filter, compared with a plain table of counters.
 *
 * The input is a filter's parameters and a sequence of operations on three
 * filters, or on three states of an aggregate.  The contents of a filter are known
 * exactly: the copies of each number, where 255 means 255 or more.  So every result
 * is checked.  All bytes must be valid, and those of a finished or merged filter must
 * not depend on the order of the keys.
 *
 * An operation can be made to fail at any allocation or poll, like a query that is
 * canceled.  The filter must then be unchanged.
 */
#include "fuzz.h"

#define MOST_OPERATIONS		60
#define MOST_STEPS			40
#define MOST_KEYS			1500
#define SUBJECTS			3

/* ----------------------------------------------------------------
 * Counters
 * ----------------------------------------------------------------
 */

#define PLACES	4096			/* a power of two, larger than the number of
								 * keys */

typedef struct Counter
{
	uint64_t	number;
	uint16_t	copies;			/* 0: none, but the place is in use */
	bool		taken;
} Counter;

/* Numbers below N, with N = 0 for whole hashes. */
typedef struct Counters
{
	uint64_t	range;
	size_t		taken;
	Counter		places[PLACES];
} Counters;

static Counter *
counter_at(Counters *counters, uint64_t number)
{
	size_t		place = bf_mix64(number) % PLACES;

	while (counters->places[place].taken && counters->places[place].number != number)
		place = (place + 1) % PLACES;
	return &counters->places[place];
}

static void
count_more(Counters *counters, uint64_t number, unsigned copies)
{
	Counter    *counter = counter_at(counters, number);

	if (!counter->taken)
	{
		counter->taken = true;
		counter->number = number;
		CHECK(++counters->taken < PLACES / 2, "too many counters");
	}
	copies += counter->copies;
	counter->copies = (uint16_t) (copies < BF_MAX_COUNT ? copies : BF_MAX_COUNT);
}

static size_t
count_distinct(const Counters *counters)
{
	size_t		distinct = 0;

	for (size_t i = 0; i < PLACES; i++)
		distinct += counters->places[i].copies > 0;
	return distinct;
}

static uint64_t
range_of(bf_table table)
{
	return table.buckets == 0 ? 0 : bf_table_range(table);
}

/* Add counters to others, which are in the range of a table. */
static void
count_all(Counters *into, const Counters *from, bf_table table)
{
	uint64_t	range = range_of(table);

	CHECK(from->range == 0 || (range > 0 && from->range % range == 0), "the range has changed");
	for (size_t i = 0; i < PLACES; i++)
	{
		uint64_t	number = from->places[i].number;

		if (from->places[i].copies > 0)
			count_more(into, from->range == 0 ? bf_table_number(table, number) : number / (from->range / range),
					   from->places[i].copies);
	}
}

/* The same counters in the range of a table. */
static void
convert(Counters *result, const Counters *counters, bf_table table)
{
	memset(result, 0, sizeof(*result));
	result->range = range_of(table);
	count_all(result, counters, table);
}

/* ----------------------------------------------------------------
 * Filters and their parameters
 * ----------------------------------------------------------------
 */

typedef struct Subject
{
	bf_mutable	filter;
	Counters	counters;
	uint64_t	capacity;
	uint64_t	added[MOST_KEYS];	/* hashes, in order of arrival */
	size_t		n;
	bool		exact;			/* determined by `added` */
} Subject;

typedef struct Parameters
{
	bool		aggregate;
	uint64_t	capacity[SUBJECTS];
	double		fpp;
	uint8_t		growth;
	bf_key_class class;
} Parameters;

static Parameters parameters;
static Subject subjects[SUBJECTS];
static bool dead;				/* a state was lost in an error */

static void
take_parameters(Input *input)
{
	static const double probabilities[] = {0.5, 0.99, 0.9, 0.7, 0.1, 0.01, 1e-6, 1e-12};
	static const uint8_t growths[] = {0, 0, 2, 2, 4, 8, 64, 0};
	uint8_t		flags = take_byte(input);
	uint64_t	capacity = take_byte(input);

	parameters.aggregate = flags & 1;
	parameters.class = key_classes[flags & 2];
	parameters.growth = parameters.aggregate ? BF_DEFAULT_GROWTH : growths[flags >> 2 & 7];
	parameters.fpp = probabilities[take_byte(input) % 8];
	if ((flags & 32) != 0)
		capacity = capacity * 8 + 1;	/* else up to 100, or none */
	else
		capacity %= 101;
	if (capacity == 0 && !parameters.aggregate)
		capacity = 1;
	for (int i = 0; i < SUBJECTS; i++)
		parameters.capacity[i] = capacity;
	/* another capacity may have the same range of numbers */
	if ((flags & 64) != 0 && !parameters.aggregate)
		parameters.capacity[1] = capacity * 2;
}

static void
start(void *arg)
{
	Subject    *subject = arg;
	bf_table	table = {0, 0};

	if (parameters.aggregate)
		bf_cuckoo_start_state(&subject->filter.cuckoo, test_host, subject->capacity, parameters.fpp);
	else
	{
		table = bf_table_for(subject->capacity, parameters.fpp, parameters.growth);
		if (bf_table_words(table) * 8 + 2 * BF_LINE_BYTES > BF_MAX_BYTES)
			bf_fail(test_host, BF_FAIL_BYTES, bf_table_words(table) * 8, NULL);
		bf_cuckoo_start(&subject->filter.cuckoo, test_host, table, subject->capacity, parameters.fpp);
		subject->filter.header.growth = parameters.growth;
	}
	subject->counters.range = range_of(table);
}

static bool
start_subject(Subject *subject, uint64_t capacity)
{
	memset(subject, 0, sizeof(*subject));
	subject->capacity = capacity;
	subject->exact = true;
	return host_run(start, subject, 0) == HOST_DONE;
}

static bf_table
table_of(const Subject *subject)
{
	return subject->filter.cuckoo.table;
}

/* The state of an aggregate may have changed from hashes to numbers. */
static void
follow_range(Subject *subject)
{
	static Counters now;

	if (range_of(table_of(subject)) == subject->counters.range)
		return;
	CHECK(parameters.aggregate && subject->counters.range == 0, "the range has changed");
	convert(&now, &subject->counters, table_of(subject));
	subject->counters = now;
}

/* ----------------------------------------------------------------
 * Checking
 * ----------------------------------------------------------------
 */

/* Check that the bytes are valid and hold the right numbers. */
static void
check_bytes(const Counters *counters, Bytes bytes)
{
	static Counters wanted;
	bf_filter	filter;
	const bf_layer *layer = &filter.layer[0];
	uint64_t	distinct;

	open_valid(&filter, bytes, BF_KIND_CUCKOO);
	convert(&wanted, counters, layer->table);
	for (size_t i = 0; i < PLACES; i++)
	{
		const Counter *counter = &wanted.places[i];

		if (counter->copies > 0)
			CHECK(bf_layer_copies(layer, counter->number) == counter->copies, "%u copies of %lu, should be %u",
				  bf_layer_copies(layer, counter->number), counter->number, counter->copies);
	}
	distinct = bf_layer_distinct(test_host, layer);
	CHECK(distinct == count_distinct(&wanted), "%lu distinct numbers, should be %zu", distinct, count_distinct(&wanted));
	for (uint64_t i = 0; i < 20; i++)
	{
		uint64_t	hash = bf_mix64(i);

		CHECK(bf_filter_contains(&filter, hash) == (counter_at(&wanted, bf_table_number(layer->table, hash))->copies > 0),
			  "wrong result for %lu", hash);
	}
}

/* Test the filter for one key. */
static void
check_answer(Subject *subject, uint64_t hash)
{
	Operation	operation = {.filter = &subject->filter, .hashes = &hash};

	CHECK(host_run(look_up, &operation, 0) == HOST_DONE, "the test for a key failed");
	follow_range(subject);
	CHECK(operation.answer == (counter_at(&subject->counters, bf_table_number(table_of(subject), hash))->copies > 0),
		  "wrong result for %lu", hash);
}

/* For all keys ever added, and for others. */
static void
check_answers(Subject *subject)
{
	for (size_t i = 0; i < subject->n; i++)
		check_answer(subject, subject->added[i]);
	for (uint64_t i = 0; i < 20; i++)
		check_answer(subject, bf_mix64(i));
}

/* The current bytes; NULL if they are too many. */
static Bytes
check_flat(Subject *subject)
{
	Bytes		bytes = flat(&subject->filter);

	follow_range(subject);
	if (bytes.bytes != NULL)
		check_bytes(&subject->counters, bytes);
	return bytes;
}

/* After an operation that failed.  The state of an aggregate ends with its query. */
static void
after_failure(Subject *subject)
{
	if (parameters.aggregate)
		dead = true;
	else
		bytes_free(check_flat(subject));
}

/* ----------------------------------------------------------------
 * Operations
 * ----------------------------------------------------------------
 */

static void
add_to_state(void *arg)
{
	Operation  *operation = arg;

	bf_mutable_set_class(operation->filter, &parameters.class);
	for (size_t i = 0; i < operation->n; i++)
		bf_cuckoo_add(&operation->filter->cuckoo, operation->hashes[i]);
}

/* Change a filter, all or nothing. */
static bool
run_change(Subject *subject, bf_change what, const uint64_t *hashes, size_t n, uint8_t fault)
{
	Operation	operation = {.filter = &subject->filter, .change = what, .class = &parameters.class, .hashes = hashes, .n = n};
	HostOutcome outcome;
	Bytes		before = {NULL, 0};
	bool		is_void = false;

	/* not always: writing a filter sorts it */
	if (!parameters.aggregate && fault == 0 && n > 1 && n % 2 == 0)
		before = flat(&subject->filter);
	if (before.bytes != NULL)
		is_void = change_is_void(&operation, before);
	if (parameters.aggregate)
		outcome = host_run(add_to_state, &operation, fault);
	else
		outcome = fault > 0 && fault % 4 == 0 ? change_step_by_step(&operation, MOST_STEPS) : host_run(change, &operation, fault);
	if (outcome != HOST_DONE)
	{
		after_failure(subject);
		bytes_free(before);
		return false;
	}
	if (before.bytes != NULL)
		check_void(&operation, before, is_void);
	bytes_free(before);
	follow_range(subject);
	for (size_t i = 0; i < n; i++)
	{
		uint64_t	number = bf_table_number(table_of(subject), hashes[i]);
		Counter    *counter = counter_at(&subject->counters, number);

		if (what == BF_ADD)
			count_more(&subject->counters, number, 1);
		else if (counter->copies > 0 && counter->copies < BF_MAX_COUNT)
			counter->copies--;
	}
	return true;
}

static void
run_add(Input *input, Subject *subject, uint8_t code, bool faults)
{
	HashRun		run_of = take_hashes(input, table_of(subject));
	bool		repeat = code % 4 == 2;
	size_t		n = code % 4 < 3 ? take_byte(input) : 1;
	uint64_t   *hashes = subject->added + subject->n;
	uint8_t		fault = faults ? take_byte(input) : 0;

	if (code % 4 == 0)
		n *= 1 + run_of.kind / 8 % 4;
	if (code % 4 == 1)
		n %= 16;
	if (n > MOST_KEYS - subject->n)
		return;
	for (size_t i = 0; i < n; i++)
		hashes[i] = hash_at(&run_of, repeat ? 0 : i);
	/* one by one, or all in one call */
	for (size_t i = 0, size; i < n && !dead; i += size)
	{
		size = (code & 16) != 0 || parameters.aggregate ? n : 1;
		if (!run_change(subject, BF_ADD, hashes + i, size, i == 0 ? fault : 0))
			return;
		subject->n += size;
	}
}

/* Remove keys that were added and, with `absent`, others. */
static void
run_remove(Input *input, Subject *subject, bool absent, bool faults)
{
	size_t		n = take_byte(input) % 32;
	size_t		from = (size_t) take_bytes(input, 2);
	uint8_t		fault = faults ? take_byte(input) : 0;
	uint64_t	hashes[32];

	if (parameters.aggregate || n == 0 || subject->n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		hashes[i] = absent ? bf_mix64(from * 3 + i) : subject->added[(from + i) % subject->n];
	if (run_change(subject, BF_REMOVE, hashes, n, fault))
		subject->exact = false;
}

static void
sort(void *arg)
{
	bf_cuckoo_sort(&((Operation *) arg)->filter->cuckoo);
}

/* Bytes in canonical form do not change when they are sorted again. */
static void
run_sort(Subject *subject, uint8_t fault)
{
	Operation	operation = {.filter = &subject->filter};
	Bytes		once;

	if (parameters.aggregate)
		return;
	if (host_run(sort, &operation, fault) != HOST_DONE)
	{
		after_failure(subject);
		return;
	}
	once = check_flat(subject);
	CHECK(host_run(sort, &operation, 0) == HOST_DONE, "sorting failed");
	CHECK(once.bytes == NULL || bytes_equal(once, check_flat(subject)), "sorting again changes the bytes");
}

/* Merge one filter or state into another.  If that fails, it is not used again. */
static void
run_merge(Subject *subject, Subject *other, uint8_t fault)
{
	Bytes		bytes = check_flat(other);
	bf_filter	filter;
	Operation	operation = {.filter = &subject->filter, .other = &filter};

	dead = bytes.bytes == NULL;
	if (dead)
		return;
	open_valid(&filter, bytes, BF_KIND_CUCKOO);
	dead = host_run(parameters.aggregate ? merge_state : unite, &operation, fault) != HOST_DONE;
	if (dead)
		return;
	follow_range(subject);
	count_all(&subject->counters, &other->counters, table_of(subject));
	memcpy(subject->added + subject->n, other->added, sizeof(uint64_t) * other->n);
	subject->n += other->n;
	subject->exact &= parameters.aggregate;
}

/*
 * The sum or the difference of two filters, in canonical form.  NULL if it would be
 * too large, or if it was made to fail.
 */
static Bytes
combined(Bytes left, Bytes right, void (*combine) (void *), uint8_t fault, bool *possible)
{
	bf_mutable	result = {.header.kind = 0};
	bf_filter	a;
	bf_filter	b;
	Operation	operation = {.filter = &result, .other = &a, .flag = true, .answer = true};
	Bytes		bytes = {NULL, 0};

	open_valid(&a, left, BF_KIND_CUCKOO);
	open_valid(&b, right, BF_KIND_CUCKOO);
	CHECK(host_run(load, &operation, 0) == HOST_DONE, "cannot be loaded");
	operation.other = &b;
	if (host_run(combine, &operation, fault) == HOST_DONE)
		bytes = flat(&result);
	*possible = operation.answer;
	bf_mutable_free(&result);
	return bytes;
}

static Bytes
sum_of(Bytes left, Bytes right)
{
	bool		possible;

	return combined(left, right, unite, 0, &possible);
}

/* Subtract counters from others in the same range.  False if there are too few. */
static bool
count_less(Counters *from, const Counters *less)
{
	for (size_t i = 0; i < PLACES; i++)
	{
		Counter    *counter = counter_at(from, less->places[i].number);

		if (counter->copies < less->places[i].copies)
			return false;
	}
	for (size_t i = 0; i < PLACES; i++)
	{
		Counter    *counter = counter_at(from, less->places[i].number);

		if (counter->copies < BF_MAX_COUNT)
			counter->copies -= less->places[i].copies;
	}
	return true;
}

/* Tests whether both have the same numbers with the same copies. */
static bool
same_counts(Counters *a, Counters *b)
{
	for (size_t i = 0; i < PLACES; i++)
	{
		if (a->places[i].copies > 0 && counter_at(b, a->places[i].number)->copies != a->places[i].copies)
			return false;
	}
	return count_distinct(a) == count_distinct(b);
}

/*
 * Subtract one filter from another, whether or not it is contained, and from their
 * sum, which gives the other one.
 */
static void
check_difference(Subject *subject, Subject *other, uint8_t fault)
{
	static Counters own;
	static Counters others;
	static Counters left;
	Bytes		a = check_flat(subject);
	Bytes		b = check_flat(other);
	Bytes		sum;
	Bytes		rest;
	Bytes		sorted;
	bf_filter	was;
	bf_filter	is;
	bool		possible;
	bool		contained;

	if (a.bytes == NULL || b.bytes == NULL)
		return;
	convert(&own, &subject->counters, table_of(subject));
	convert(&others, &other->counters, table_of(subject));
	left = own;
	contained = count_less(&left, &others);
	rest = combined(a, b, subtract, fault, &possible);
	if (rest.bytes != NULL)
	{
		CHECK(possible == contained, "difference is possible: %d", possible);
		check_bytes(contained ? &left : &own, rest);
	}

	sum = sum_of(a, b);
	if (sum.bytes == NULL)
		return;
	left = own;
	count_all(&left, &others, table_of(subject));
	CHECK(count_less(&left, &others), "the sum does not contain its part");
	rest = combined(sum, b, subtract, 0, &possible);
	CHECK(possible, "a part of the sum cannot be subtracted");
	check_bytes(&left, rest);

	/*
	 * in a table of the same size, the bytes are the canonical form of the
	 * same multiset
	 */
	open_valid(&was, a, BF_KIND_CUCKOO);
	open_valid(&is, rest, BF_KIND_CUCKOO);
	if (was.layer[0].capacity != is.layer[0].capacity || !same_counts(&left, &own))
		return;
	sorted = combined(a, a, sort, 0, &possible);
	CHECK(subject->n + other->n > BF_MAX_LIST || bytes_equal(sorted, rest), "the sum minus a part gives different bytes");
}

/* Merge in both orders. */
static void
check_sum(Subject *subject, Subject *other)
{
	static Counters sum;
	Bytes		a = check_flat(subject);
	Bytes		b = check_flat(other);
	Bytes		one;
	Bytes		two;

	if (a.bytes == NULL || b.bytes == NULL || (one = sum_of(a, b)).bytes == NULL || (two = sum_of(b, a)).bytes == NULL)
		return;
	convert(&sum, &subject->counters, table_of(subject));
	count_all(&sum, &other->counters, table_of(subject));
	check_bytes(&sum, one);
	check_bytes(&sum, two);
	/* keys beyond this bound are not sorted, so that their order matters */
	CHECK(subject->n + other->n > BF_MAX_LIST || bytes_equal(one, two), "a merge depends on the order");
}

/* ----------------------------------------------------------------
 * The same keys in another order
 * ----------------------------------------------------------------
 */

static Bytes
finished(Subject *subject)
{
	Operation	operation = {.filter = &subject->filter};

	dead = host_run(finish, &operation, 0) != HOST_DONE;
	if (!dead)
	{
		follow_range(subject);
		check_bytes(&subject->counters, operation.result);
	}
	return operation.result;
}

static void
check_order(Subject *subject)
{
	static Subject again;
	Bytes		first = finished(subject);
	Bytes		second;

	if (first.bytes == NULL || !subject->exact || subject->n == 0)
		return;
	CHECK(start_subject(&again, subject->capacity), "cannot start again");
	again.n = subject->n;
	memcpy(again.added, subject->added, sizeof(uint64_t) * subject->n);
	qsort(again.added, again.n, sizeof(uint64_t), compare_hashes);
	if (run_change(&again, BF_ADD, again.added, again.n, 0))
	{
		second = finished(&again);
		CHECK(second.bytes == NULL || subject->n > BF_MAX_LIST || bytes_equal(first, second),
			  "the same keys in another order give different bytes");
	}
	bf_mutable_free(&again.filter);
}

/* ---------------------------------------------------------------- */

static void
run_operation(Input *input, uint8_t code)
{
	Subject    *subject = &subjects[code / 16 % SUBJECTS];
	Subject    *other = &subjects[(code / 16 + 1) % SUBJECTS];
	bool		faults = code / 64 == 3;
	Operation	operation = {.filter = &subject->filter};

	switch (code % 16)
	{
		default:
			run_add(input, subject, code, faults);
			break;
		case 6:
		case 7:
		case 8:
			run_remove(input, subject, code % 16 == 8, faults);
			break;
		case 9:
			if (host_run(flatten, &operation, faults ? take_byte(input) : 0) != HOST_DONE)
				after_failure(subject);
			else
				bytes_free(check_flat(subject));
			break;
		case 10:
			dead = !reload(&subject->filter, faults ? take_byte(input) : 0);
			follow_range(subject);
			break;
		case 11:
			run_sort(subject, faults ? take_byte(input) : 0);
			break;
		case 12:
		case 13:
		case 14:
			if (subject->n + other->n > MOST_KEYS)
				break;
			/* as filters they must fit and have keys */
			if (!parameters.aggregate && (range_of(table_of(subject)) != range_of(table_of(other)) ||
										  count_distinct(&subject->counters) == 0 || count_distinct(&other->counters) == 0))
				break;
			if (parameters.aggregate || code % 16 == 12)
				run_merge(subject, other, faults ? take_byte(input) : 0);
			else if (code % 16 == 14)
				check_difference(subject, other, faults ? take_byte(input) : 0);
			else
				check_sum(subject, other);
			break;
		case 15:
			if (parameters.aggregate)
				finished(subject);
			else
				check_answers(subject);
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	bool		started = true;

	dead = false;
	take_parameters(&input);
	for (int i = 0; i < SUBJECTS; i++)
		started &= start_subject(&subjects[i], parameters.capacity[i]);
	for (int i = 0; started && !dead && input.left > 0 && i < MOST_OPERATIONS; i++)
		run_operation(&input, take_byte(&input));
	for (int i = 0; i < SUBJECTS; i++)
	{
		if (started && !dead)
			check_answers(&subjects[i]);
		if (started && !dead && parameters.aggregate)
			check_order(&subjects[i]);
		else if (started && !dead)
			check_flat(&subjects[i]);
		if (subjects[i].filter.header.kind != 0)
			bf_mutable_free(&subjects[i].filter);
	}
	host_clean();
	return 0;
}
