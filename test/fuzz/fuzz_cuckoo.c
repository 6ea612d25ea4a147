/*
 * fuzz_cuckoo.c
 *		The builder of cuckoo filters against a plain table of counters.
 *
 * The input is a filter's parameters and a sequence of operations on three
 * filters, or on three states of an aggregate.  What a filter holds is known
 * exactly: so many copies of each number, 255 meaning that many or more.  So every
 * answer is checked, on top of the bytes being valid, and the bytes of what was
 * finished or merged do not depend on the order of the keys.
 *
 * An operation can be made to fail at any allocation or poll, like a query that is
 * cancelled.  The filter must then have all that it had before, and nothing but a
 * part of what was to be added.
 */
#include "fuzz.h"

#define MOST_OPERATIONS		60
#define MOST_KEYS			1500
#define SUBJECTS			3

/* ----------------------------------------------------------------
 * Counters
 * ----------------------------------------------------------------
 */

#define PLACES	4096			/* a power of two, larger than there are keys */

typedef struct Counter
{
	uint64		number;
	uint16		copies;			/* 0: none, but the place is taken */
	bool		taken;
} Counter;

/* Numbers below N, with N = 0 for whole hashes. */
typedef struct Counters
{
	uint64		range;
	Counter    *places;
	Size		taken;
} Counters;

static Counter *
counter_at(const Counters *counters, uint64 number)
{
	Size		place = bf_mix64(number) % PLACES;

	while (counters->places[place].taken && counters->places[place].number != number)
		place = (place + 1) % PLACES;
	return &counters->places[place];
}

static void
count_more(Counters *counters, uint64 number, unsigned copies)
{
	Counter    *counter = counter_at(counters, number);

	if (!counter->taken)
	{
		counter->taken = true;
		counter->number = number;
		CHECK(++counters->taken < PLACES / 2, "too many counters");
	}
	counter->copies = (uint16) Min(counter->copies + copies, BF_MAX_COUNT);
}

static unsigned
copies_of(const Counters *counters, uint64 number)
{
	return counter_at(counters, number)->copies;
}

static Size
count_distinct(const Counters *counters)
{
	Size		distinct = 0;

	for (Size i = 0; i < PLACES; i++)
		distinct += counters->places[i].copies > 0;
	return distinct;
}

static Counters
new_counters(uint64 range)
{
	Counters	counters = {range, calloc(PLACES, sizeof(Counter)), 0};

	return counters;
}

static uint64
range_of(bf_table table)
{
	return table.buckets == 0 ? 0 : bf_table_range(table);
}

/* What a number is in a smaller range. */
static uint64
convert(uint64 number, uint64 from, bf_table to)
{
	uint64		range = range_of(to);

	if (from == 0)
		return bf_table_number(to, number);
	CHECK(range > 0 && from % range == 0, "the range was %lu and is %lu", from, range);
	return number / (from / range);
}

/* The sum of counters, in the range of a table. */
static void
count_all(Counters *into, const Counters *from, bf_table table)
{
	for (Size i = 0; i < PLACES; i++)
	{
		if (from->places[i].copies > 0)
			count_more(into, convert(from->places[i].number, from->range, table), from->places[i].copies);
	}
}

/* The same in the range of a table. */
static Counters
converted(const Counters *counters, bf_table table)
{
	Counters	result = new_counters(range_of(table));

	count_all(&result, counters, table);
	return result;
}

/* ----------------------------------------------------------------
 * Filters and their parameters
 * ----------------------------------------------------------------
 */

typedef struct Subject
{
	AnyBuilder	builder;
	Counters	counters;
	uint64	   *added;			/* hashes, in their order */
	Size		n;
	bool		exact;			/* `added` tells all */
} Subject;

typedef struct Parameters
{
	bool		aggregate;
	uint64		capacity[SUBJECTS];
	double		fpp;
	uint8		growth;
	KeyClass	class;
} Parameters;

static Parameters parameters;
static Subject subjects[SUBJECTS];
static bool dead;				/* a state was lost in an error */

static void
take_parameters(Input *input)
{
	static const double probabilities[] = {0.5, 0.99, 0.9, 0.7, 0.1, 0.01, 1e-6, 1e-12};
	static const uint8 growths[] = {0, 0, 2, 2, 4, 8, 64, 0};
	static const KeyClass classes[] = {
		{BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL},
		{BF_SCHEME_CANONICAL, BF_CLASS_NAMED, 9, "enum mood"}
	};
	uint8		flags = take_byte(input);
	uint64		capacity = take_byte(input);

	parameters.aggregate = flags & 1;
	parameters.class = classes[flags >> 1 & 1];
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

typedef struct Start
{
	AnyBuilder *builder;
	uint64		capacity;
} Start;

static void
start(void *arg)
{
	Start	   *work = arg;
	bf_table	table;

	if (parameters.aggregate)
	{
		cuckoo_methods.start(&work->builder->base, CurrentMemoryContext, work->capacity, parameters.fpp);
		return;
	}
	table = bf_table_for(work->capacity, parameters.fpp, parameters.growth);
	filter_check_words(bf_table_words(table), (int64) work->capacity, parameters.fpp);
	cuckoo_build_start(&work->builder->cuckoo, CurrentMemoryContext, table, work->capacity, parameters.fpp);
	work->builder->base.frame->growth = parameters.growth;
}

static bool
start_subject(Subject *subject, uint64 capacity)
{
	Start		work = {&subject->builder, capacity};

	memset(subject, 0, sizeof(*subject));
	subject->exact = true;
	subject->added = malloc(sizeof(uint64) * MOST_KEYS);
	if (shim_run(start, &work) != SHIM_DONE)
		return false;
	subject->counters = new_counters(range_of(subject->builder.base.frame->layer[0].table));
	return true;
}

static void
free_subject(Subject *subject)
{
	free(subject->added);
	free(subject->counters.places);
	subject->added = NULL;
	subject->counters.places = NULL;
}

/* The state of an aggregate may have gone over from hashes to numbers. */
static void
follow_range(Subject *subject)
{
	bf_table	table = subject->builder.base.frame->layer[0].table;
	Counters	now;

	if (range_of(table) == subject->counters.range)
		return;
	CHECK(parameters.aggregate && subject->counters.range == 0, "the range changed");
	now = converted(&subject->counters, table);
	free(subject->counters.places);
	subject->counters = now;
}

/* ----------------------------------------------------------------
 * Checking
 * ----------------------------------------------------------------
 */

/* Keys past this bound are not sorted, so that their order shows. */
static bool
is_large(struct varlena *image)
{
	bf_filter	filter;

	filter_open(&filter, image);
	return filter.layer[0].used + filter.layer[0].count > BF_MAX_LIST;
}

static bool
same_bytes(struct varlena *a, struct varlena *b)
{
	return VARSIZE(a) == VARSIZE(b) && memcmp(a, b, VARSIZE(a)) == 0;
}

/*
 * Do the bytes hold what they should?  With `more`, they may hold as many copies
 * in addition.
 */
static void
check_copies(const Counters *counters, const Counters *more, struct varlena *image)
{
	Exact		copy = exact_copy(VARDATA(image), VARSIZE_ANY_EXHDR(image));
	const char *problem = bf_filter_validate(copy.bytes, copy.n, BF_KIND_CUCKOO);
	bf_filter	filter;
	const bf_layer *layer = &filter.layer[0];
	Counters	wanted;
	Counters	extra;
	Size		distinct = 0;

	CHECK(problem == NULL, "invalid bytes: %s", problem);
	CHECK(bf_filter_open(&filter, copy.bytes, copy.n) == NULL, "cannot be opened");
	wanted = converted(counters, layer->table);
	extra = new_counters(wanted.range);
	if (more != NULL)
		count_all(&extra, more, layer->table);
	for (Size i = 0; i < PLACES; i++)
	{
		const Counter *counter = &wanted.places[i];
		unsigned	copies;
		unsigned	most;

		if (counter->copies == 0)
			continue;
		copies = bf_layer_copies(layer, counter->number);
		most = Min(counter->copies + copies_of(&extra, counter->number), BF_MAX_COUNT);
		CHECK(copies >= counter->copies && copies <= most, "%u copies of %lu, should be %u to %u",
			  copies, counter->number, counter->copies, most);
		distinct++;
	}
	for (Size i = 0; i < PLACES; i++)
	{
		const Counter *counter = &extra.places[i];
		unsigned	copies;

		if (counter->copies == 0 || copies_of(&wanted, counter->number) > 0)
			continue;
		copies = bf_layer_copies(layer, counter->number);
		CHECK(copies <= counter->copies, "%u copies of %lu, should be at most %u", copies, counter->number, counter->copies);
		distinct += copies > 0;
	}
	CHECK(bf_layer_distinct(layer) == distinct, "%lu distinct numbers, should be %zu", bf_layer_distinct(layer), distinct);
	for (uint64 i = 0; i < 20; i++)
	{
		uint64		hash = bf_mix64(i);
		unsigned	copies = copies_of(&wanted, bf_table_number(layer->table, hash));

		if (more == NULL)
			CHECK(bf_filter_contains(&filter, hash) == (copies > 0), "wrong answer for %lu", hash);
	}
	free(wanted.places);
	free(extra.places);
	exact_free(&copy);
}

typedef struct Operation
{
	Subject    *subject;
	const uint64 *hashes;
	Size		n;
	bool		flag;
	bool		answer;
	struct varlena *image;
	struct varlena *other;
} Operation;

static void
ask(void *arg)
{
	Operation  *operation = arg;

	operation->answer = build_contains(&operation->subject->builder.base, operation->hashes[0]);
}

static void
flatten(void *arg)
{
	Operation  *operation = arg;

	operation->image = build_flat(&operation->subject->builder.base);
}

/* Ask the builder for one key. */
static void
check_answer(Subject *subject, uint64 hash)
{
	Operation	operation = {.subject = subject, .hashes = &hash, .n = 1};
	bf_table	table;

	CHECK(shim_run(ask, &operation) == SHIM_DONE, "asking failed: %s", shim_message);
	follow_range(subject);
	table = subject->builder.base.frame->layer[0].table;
	CHECK(operation.answer == (copies_of(&subject->counters, bf_table_number(table, hash)) > 0),
		  "wrong answer for %lu", hash);
}

/* For some of what was ever added, and for others. */
static void
check_builder(Subject *subject)
{
	for (Size i = 0; i < subject->n; i++)
		check_answer(subject, subject->added[i]);
	for (uint64 i = 0; i < 20; i++)
		check_answer(subject, bf_mix64(i));
}

/* The bytes as they are now; NULL if they are too many. */
static struct varlena *
check_flat(Subject *subject)
{
	Operation	operation = {.subject = subject};

	if (shim_run(flatten, &operation) != SHIM_DONE)
		return NULL;
	follow_range(subject);
	check_copies(&subject->counters, NULL, operation.image);
	return operation.image;
}

/*
 * After an operation that failed: all copies that were there still are, and no
 * others but some of `more`.  Go on with what is there.
 */
static void
after_failure(Subject *subject, const Counters *more)
{
	Operation	operation = {.subject = subject};
	bf_filter	filter;
	const bf_layer *layer = &filter.layer[0];
	Counters	now;

	if (parameters.aggregate)
	{
		dead = true;
		return;
	}
	if (shim_run(flatten, &operation) != SHIM_DONE)
	{
		dead = true;
		return;
	}
	check_copies(&subject->counters, more, operation.image);
	filter_open(&filter, operation.image);
	now = new_counters(range_of(layer->table));
	for (uint32 i = 0; i < layer->count; i++)
		count_more(&now, bf_load64(layer->list + (Size) i * 8), layer->list[(Size) layer->count * 8 + i]);
	if (layer->form == BF_FORM_TABLE)
	{
		uint64	   *numbers = malloc(sizeof(uint64) * (layer->used + 1));
		Size		n = bf_table_numbers(layer->data, layer->table, numbers, layer->used);

		for (Size i = 0; i < n; i++)
			count_more(&now, numbers[i], 1);
		free(numbers);
	}
	free(subject->counters.places);
	subject->counters = now;
	subject->exact = false;
}

/* ----------------------------------------------------------------
 * Operations
 * ----------------------------------------------------------------
 */

/* As SQL functions do. */
static void
add(void *arg)
{
	Operation  *operation = arg;
	AnyBuilder *builder = &operation->subject->builder;

	if (operation->n > 0 && builder->base.frame->key_class == BF_CLASS_NONE)
		build_set_class(&builder->base, &parameters.class);
	if (operation->flag)
		builder->base.methods->add_many(&builder->base, operation->hashes, operation->n);
	else
	{
		for (Size i = 0; i < operation->n; i++)
			cuckoo_build_add(&builder->cuckoo, operation->hashes[i]);
	}
}

static void
remove_keys(void *arg)
{
	Operation  *operation = arg;

	for (Size i = 0; i < operation->n; i++)
		cuckoo_build_remove(&operation->subject->builder.cuckoo, operation->hashes[i]);
}

static void
finish(void *arg)
{
	Operation  *operation = arg;

	operation->image = cuckoo_methods.finish(&operation->subject->builder.base);
}

/* Go on with what the bytes say. */
static void
reload(void *arg)
{
	Operation  *operation = arg;
	struct varlena *image = build_flat(&operation->subject->builder.base);
	bf_filter	filter;
	AnyBuilder	builder;

	filter_open(&filter, image);
	build_load(&builder, CurrentMemoryContext, &filter);
	operation->subject->builder = builder;
	pfree(image);
}

static void
sort(void *arg)
{
	Operation  *operation = arg;

	cuckoo_build_sort(&operation->subject->builder.cuckoo);
}

/* Merge another state of the aggregate, which came as bytes. */
static void
merge_state(void *arg)
{
	Operation  *operation = arg;
	FilterBuilder *builder = &operation->subject->builder.base;
	bf_filter	filter;
	KeyClass	class;

	filter_open(&filter, operation->other);
	class = filter_class(&filter);
	if (class.code != BF_CLASS_NONE && builder->frame->key_class == BF_CLASS_NONE)
		build_set_class(builder, &class);
	CHECK(builder->methods->can_merge(builder, &filter), "states do not fit");
	builder->methods->merge(builder, &filter);
}

/* Merge a filter into one that is being changed. */
static void
merge_filter(void *arg)
{
	Operation  *operation = arg;
	AnyBuilder *builder = &operation->subject->builder;
	bf_filter	filter;
	bf_filter	ours;

	filter_open(&filter, operation->other);
	if (bf_filter_is_empty(&filter))
		return;
	build_describe(&builder->base, &ours);
	if (ours.layer[0].count == 0 && ours.layer[0].used == 0)
		build_load(builder, CurrentMemoryContext, &filter);
	else
		cuckoo_build_merge_filter(&builder->cuckoo, &filter);
}

/* The sum of two filters, from their bytes. */
static void
merge_bytes(void *arg)
{
	Operation  *operation = arg;
	bf_filter	filter;
	AnyBuilder	builder;
	Subject		subject;
	Operation	merging = {.subject = &subject, .other = operation->other};

	filter_open(&filter, operation->image);
	build_load(&builder, CurrentMemoryContext, &filter);
	subject.builder = builder;
	merge_filter(&merging);
	cuckoo_build_sort(&subject.builder.cuckoo);
	operation->image = build_flat(&subject.builder.base);
}

/* Run an operation that the input may let fail. */
static ShimOutcome
run(Input *input, bool faults, void (*work) (void *), Operation *operation)
{
	shim_fail_after(faults ? take_byte(input) : 0);
	return shim_run(work, operation);
}

static bf_table
table_of(const Subject *subject)
{
	return subject->builder.base.frame->layer[0].table;
}

static void
run_add(Input *input, Subject *subject, uint8 code, bool faults)
{
	HashRun		run_of = take_hashes(input, table_of(subject));
	Size		n = 1;
	unsigned	repeat = 1;
	Operation	operation = {.subject = subject, .flag = code & 16};
	uint64	   *hashes;

	switch (code % 4)
	{
		case 0:
			n = (Size) take_byte(input) * (1 + run_of.kind / 8 % 4);
			break;
		case 1:
			n = take_byte(input) % 16;
			break;
		case 2:
			repeat = take_byte(input);
			break;
	}
	n *= repeat;
	if (n > MOST_KEYS - subject->n)
		return;
	hashes = malloc(sizeof(uint64) * Max(n, 1));
	for (Size i = 0; i < n; i++)
		hashes[i] = hash_at(&run_of, repeat > 1 ? 0 : i);
	operation.hashes = hashes;
	operation.n = n;
	if (run(input, faults, add, &operation) == SHIM_DONE)
	{
		follow_range(subject);
		for (Size i = 0; i < n; i++)
		{
			count_more(&subject->counters, bf_table_number(table_of(subject), hashes[i]), 1);
			subject->added[subject->n++] = hashes[i];
		}
	}
	else
	{
		Counters	more = new_counters(0);

		for (Size i = 0; i < n; i++)
			count_more(&more, hashes[i], 1);
		after_failure(subject, &more);
		free(more.places);
	}
	free(hashes);
}

/* Remove keys that were added; or, with `absent`, some that are not there. */
static void
run_remove(Input *input, Subject *subject, bool absent, bool faults)
{
	Size		n = take_byte(input) % 32;
	Size		from = (Size) take_bytes(input, 2);
	uint64		hashes[32];
	Operation	operation = {.subject = subject, .hashes = hashes};
	bf_table	table = table_of(subject);

	if (parameters.aggregate)
		return;
	for (Size i = 0; i < n; i++)
	{
		uint64		hash = absent ? bf_mix64(from * 3 + i) : subject->n > 0 ? subject->added[(from + i) % subject->n] : 0;

		if (absent && copies_of(&subject->counters, bf_table_number(table, hash)) > 0)
			continue;
		if (!absent && copies_of(&subject->counters, bf_table_number(table, hash)) == 0)
			continue;
		hashes[operation.n++] = hash;
	}
	if (absent)
	{
		/* removing what is not there changes nothing */
		if (run(input, faults, remove_keys, &operation) != SHIM_DONE)
			after_failure(subject, NULL);
		return;
	}
	for (Size i = 0; i < operation.n; i++)
	{
		Operation	one = {.subject = subject, .hashes = &hashes[i], .n = 1};
		Counter    *counter = counter_at(&subject->counters, bf_table_number(table, hashes[i]));

		if (run(input, faults, remove_keys, &one) != SHIM_DONE)
		{
			after_failure(subject, NULL);
			return;
		}
		if (counter->copies > 0 && counter->copies < BF_MAX_COUNT)
			counter->copies--;
		subject->exact = false;
	}
}

static void
run_merge_states(Input *input, Subject *subject, Subject *other, bool faults)
{
	Operation	operation = {.subject = subject};

	operation.other = check_flat(other);
	if (operation.other == NULL || run(input, faults, merge_state, &operation) != SHIM_DONE)
	{
		dead = true;
		return;
	}
	follow_range(subject);
	count_all(&subject->counters, &other->counters, table_of(subject));
	memcpy(subject->added + subject->n, other->added, sizeof(uint64) * other->n);
	subject->n += other->n;
}

/* Can they be merged?  Or has one no keys? */
static bool
mergeable(const Subject *a, const Subject *b)
{
	return range_of(table_of(a)) == range_of(table_of(b)) &&
		count_distinct(&a->counters) > 0 && count_distinct(&b->counters) > 0;
}

/* Merge one filter into another that is being changed. */
static void
run_merge_in_place(Input *input, Subject *subject, Subject *other, bool faults)
{
	Operation	operation = {.subject = subject, .other = check_flat(other)};

	if (operation.other == NULL)
		return;
	if (run(input, faults, merge_filter, &operation) != SHIM_DONE)
	{
		after_failure(subject, &other->counters);
		return;
	}
	count_all(&subject->counters, &other->counters, table_of(subject));
	memcpy(subject->added + subject->n, other->added, sizeof(uint64) * other->n);
	subject->n += other->n;
	subject->exact = false;
}

/* Merge both ways. */
static void
check_merge(Subject *subject, Subject *other)
{
	struct varlena *a = check_flat(subject);
	struct varlena *b = check_flat(other);
	Operation	one = {.image = a, .other = b};
	Operation	two = {.image = b, .other = a};
	const bf_layer *ours = &subject->builder.base.frame->layer[0];
	Counters	sum;

	if (a == NULL || b == NULL ||
		shim_run(merge_bytes, &one) != SHIM_DONE || shim_run(merge_bytes, &two) != SHIM_DONE)
		return;
	sum = new_counters(subject->counters.range);
	count_all(&sum, &subject->counters, ours->table);
	count_all(&sum, &other->counters, ours->table);
	check_copies(&sum, NULL, one.image);
	check_copies(&sum, NULL, two.image);
	free(sum.places);
	CHECK(is_large(one.image) || same_bytes(one.image, two.image), "a merge depends on the order");
}

/* Bytes that forget the order stay as they are. */
static void
run_sort(Input *input, Subject *subject, bool faults)
{
	Operation	operation = {.subject = subject};
	struct varlena *once;
	struct varlena *twice;

	if (parameters.aggregate)
		return;
	if (run(input, faults, sort, &operation) != SHIM_DONE)
	{
		after_failure(subject, NULL);
		return;
	}
	once = check_flat(subject);
	if (once == NULL)
		return;
	CHECK(shim_run(sort, &operation) == SHIM_DONE, "sorting failed: %s", shim_message);
	twice = check_flat(subject);
	CHECK(twice != NULL && same_bytes(once, twice), "sorting again changes the bytes");
}

/* ----------------------------------------------------------------
 * The same keys in another order
 * ----------------------------------------------------------------
 */

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? 1 : -(x > y);
}

static void
check_finish(Subject *subject, bool order)
{
	Subject		again;
	Operation	first = {.subject = subject};
	Operation	second = {.subject = &again};
	uint64	   *hashes;

	if (shim_run(finish, &first) != SHIM_DONE)
	{
		dead = true;
		return;
	}
	follow_range(subject);
	check_copies(&subject->counters, NULL, first.image);
	if (!order)
		return;
	CHECK(start_subject(&again, parameters.capacity[0]), "cannot start again: %s", shim_message);
	hashes = malloc(sizeof(uint64) * (subject->n + 1));
	memcpy(hashes, subject->added, sizeof(uint64) * subject->n);
	qsort(hashes, subject->n, sizeof(uint64), compare_hashes);
	second.hashes = hashes;
	second.n = subject->n;
	if (shim_run(add, &second) == SHIM_DONE && shim_run(finish, &second) == SHIM_DONE)
	{
		check_copies(&subject->counters, NULL, second.image);
		CHECK(subject->n > BF_MAX_LIST || same_bytes(first.image, second.image),
			  "the same keys in another order make other bytes");
	}
	free_subject(&again);
	free(hashes);
}

/* The hashes of a small state, one for each copy. */
static void
check_hashes(Subject *subject)
{
	const uint64 *hashes;
	int64		n = cuckoo_methods.hashes(&subject->builder.base, &hashes);
	Counters	counted;

	if (n < 0)
		return;
	counted = new_counters(0);
	CHECK(subject->counters.range == 0, "hashes, but there is a table");
	for (int64 i = 0; i < n; i++)
		count_more(&counted, hashes[i], 1);
	CHECK(count_distinct(&counted) == count_distinct(&subject->counters), "hashes");
	for (Size i = 0; i < PLACES; i++)
		CHECK(counted.places[i].copies == 0 ||
			  counted.places[i].copies == copies_of(&subject->counters, counted.places[i].number), "copies of hashes");
	free(counted.places);
}

/* ---------------------------------------------------------------- */

static void
run_operation(Input *input, uint8 code)
{
	Subject    *subject = &subjects[code / 16 % SUBJECTS];
	Subject    *other = &subjects[(code / 16 + 1) % SUBJECTS];
	bool		faults = code / 64 == 3;
	Operation	operation = {.subject = subject};

	switch (code % 16)
	{
		case 0:
		case 1:
		case 2:
		case 3:
		case 4:
		case 5:
			run_add(input, subject, code, faults);
			break;
		case 6:
		case 7:
			run_remove(input, subject, false, faults);
			break;
		case 8:
			run_remove(input, subject, true, faults);
			break;
		case 9:
			if (run(input, faults, flatten, &operation) != SHIM_DONE)
				after_failure(subject, NULL);
			else
				check_flat(subject);
			break;
		case 10:
			if (run(input, faults, reload, &operation) != SHIM_DONE)
				after_failure(subject, NULL);
			else
				follow_range(subject);
			break;
		case 11:
			run_sort(input, subject, faults);
			break;
		case 12:
		case 13:
		case 14:
			if (subject->n + other->n > MOST_KEYS)
				break;
			if (parameters.aggregate)
				run_merge_states(input, subject, other, faults);
			else if (mergeable(subject, other))
			{
				if (code % 16 == 12)
					run_merge_in_place(input, subject, other, faults);
				else
					check_merge(subject, other);
			}
			break;
		case 15:
			if (parameters.aggregate)
			{
				check_hashes(subject);
				check_finish(subject, false);
			}
			else
				check_builder(subject);
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	bool		started = true;

	bf_poll = shim_poll;
	dead = false;
	take_parameters(&input);
	for (int i = 0; i < SUBJECTS; i++)
		started &= start_subject(&subjects[i], parameters.capacity[i]);
	for (int i = 0; started && !dead && input.left > 0 && i < MOST_OPERATIONS; i++)
		run_operation(&input, take_byte(&input));
	for (int i = 0; i < SUBJECTS; i++)
	{
		if (started && !dead)
			check_builder(&subjects[i]);
		if (started && !dead && parameters.aggregate)
			check_finish(&subjects[i], subjects[i].exact);
		else if (started && !dead)
			check_flat(&subjects[i]);
		free_subject(&subjects[i]);
	}
	shim_free_all();
	return 0;
}
