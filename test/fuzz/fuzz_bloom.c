/*
 * fuzz_bloom.c
 *		The builder of bloom filters against a plain array of hashes.
 *
 * The input is a filter's parameters and a sequence of operations on it, or on
 * three states of an aggregate.  No key may ever be missing, but for those that a
 * rotating filter may have forgotten; a filter that is a list has no others; all
 * bytes are valid; and if there is one layer, the same keys in another order make
 * the same bytes.
 *
 * An operation can be made to fail at any allocation or poll, like a query that is
 * cancelled.  The filter must then have all keys that it had before.
 */
#include "fuzz.h"

#define MOST_OPERATIONS		60
#define MOST_KEYS			6000
#define STATES				3

/* A key that was added. */
typedef struct Added
{
	uint64		hash;
	bool		maybe;			/* the operation failed */
} Added;

/* A filter that is being filled, and what it has to hold. */
typedef struct Subject
{
	AnyBuilder	builder;
	Added	   *added;
	Size		n;
	bool		exact;			/* nothing failed, nothing else is in it */
} Subject;

typedef struct Parameters
{
	uint64		capacity;
	double		fpp;
	uint8		growth;
	uint8		max_layers;
	bool		aggregate;
	KeyClass	class;
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
	static const uint8 growths[] = {0, 1, 2, 3, 2, 10, 100, 2};
	static const KeyClass classes[] = {
		{BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL},
		{BF_SCHEME_CANONICAL, BF_CLASS_BYTEA, 0, NULL},
		{BF_SCHEME_CANONICAL, BF_CLASS_NAMED, 9, "enum mood"},
		{BF_SCHEME_CANONICAL, BF_CLASS_UUID, 0, NULL}
	};
	uint8		flags = take_byte(input);

	parameters.aggregate = flags & 1;
	parameters.capacity = take_bytes(input, flags & 2 ? 2 : 1) % 3000;
	if (parameters.capacity == 0 && !parameters.aggregate)
		parameters.capacity = 1;
	parameters.fpp = probabilities[take_byte(input) % 8];
	parameters.class = classes[flags >> 2 & 3];
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

/* Begin an empty filter or state. */
static void
start(void *arg)
{
	AnyBuilder *builder = arg;

	if (parameters.aggregate)
		bloom_methods.start(&builder->base, CurrentMemoryContext, parameters.capacity, parameters.fpp);
	else
	{
		bf_shape	shape = bf_first_shape(parameters.capacity, parameters.fpp, parameters.growth, parameters.max_layers);

		filter_check_words(shape.words * Max(parameters.max_layers, 1), (int64) parameters.capacity, parameters.fpp);
		bloom_build_start(&builder->bloom, CurrentMemoryContext, shape, parameters.capacity, parameters.fpp);
	}
	builder->base.frame->growth = parameters.growth;
	builder->base.frame->max_layers = parameters.max_layers;
}

static bool
start_subject(Subject *subject)
{
	memset(subject, 0, sizeof(*subject));
	subject->exact = true;
	subject->added = malloc(sizeof(Added) * MOST_KEYS);
	return shim_run(start, &subject->builder) == SHIM_DONE;
}

/* ----------------------------------------------------------------
 * Checking
 * ----------------------------------------------------------------
 */

/*
 * The first of the added keys that must be there.  A rotating filter holds the
 * newest (m - 1) x capacity; a key that is added again counts again.
 */
static Size
first_held(const Subject *subject)
{
	uint64		held = (parameters.max_layers - 1) * parameters.capacity;

	return parameters.max_layers == 0 || held > subject->n ? 0 : subject->n - held;
}

static bool
was_added(const Subject *subject, uint64 hash)
{
	for (Size i = 0; i < subject->n; i++)
	{
		if (subject->added[i].hash == hash)
			return true;
	}
	return false;
}

/* Do the bytes of a filter hold what they should? */
static void
check_image(const Subject *subject, struct varlena *image)
{
	Exact		copy = exact_copy(VARDATA(image), VARSIZE_ANY_EXHDR(image));
	const char *problem = bf_filter_validate(copy.bytes, copy.n, BF_KIND_BLOOM);
	bf_filter	filter;
	bool		list = true;

	CHECK(problem == NULL, "invalid bytes: %s", problem);
	CHECK(bf_filter_open(&filter, copy.bytes, copy.n) == NULL, "cannot be opened");
	for (Size i = first_held(subject); i < subject->n; i++)
		CHECK(subject->added[i].maybe || bf_filter_contains(&filter, subject->added[i].hash),
			  "key %zu of %zu is missing from the bytes", i, subject->n);
	for (unsigned i = 0; i < filter.layers; i++)
		list &= filter.layer[i].form == BF_FORM_LIST;
	if (list && subject->exact && filter.max_layers == 0)
	{
		uint64		total = 0;

		for (unsigned i = 0; i < filter.layers; i++)
			total += filter.layer[i].count;
		for (unsigned i = 0; i < filter.layers; i++)
		{
			for (uint32 j = 0; j < filter.layer[i].count; j++)
				CHECK(was_added(subject, bf_load64(filter.layer[i].data + (Size) j * 8)), "a key that nobody added");
		}
		CHECK(total <= subject->n, "too many keys");
	}
	exact_free(&copy);
}

typedef struct Question
{
	AnyBuilder *builder;
	uint64		hash;
	bool		answer;
} Question;

static void
ask(void *arg)
{
	Question   *question = arg;

	question->answer = build_contains(&question->builder->base, question->hash);
}

/* Ask the builder for all keys. */
static void
check_builder(Subject *subject)
{
	for (Size i = first_held(subject); i < subject->n; i++)
	{
		Question	question = {&subject->builder, subject->added[i].hash, false};
		ShimOutcome outcome = shim_run(ask, &question);

		if (outcome == SHIM_ERROR)
			continue;			/* what is pending makes it too large */
		CHECK(subject->added[i].maybe || question.answer, "key %zu of %zu is missing", i, subject->n);
	}
}

/* ----------------------------------------------------------------
 * Operations
 * ----------------------------------------------------------------
 */

typedef struct Operation
{
	Subject    *subject;
	Subject    *other;
	const uint64 *hashes;
	Size		n;
	bool		flag;
	struct varlena *image;
} Operation;

/* As SQL functions do. */
static void
add(void *arg)
{
	Operation  *operation = arg;
	AnyBuilder *builder = &operation->subject->builder;

	if (operation->n > 0 && builder->base.frame->key_class == BF_CLASS_NONE)
		build_set_class(&builder->base, &parameters.class);
	if (!parameters.aggregate)
		builder->base.methods->add_many(&builder->base, operation->hashes, operation->n);
	else
	{
		for (Size i = 0; i < operation->n; i++)
			bloom_build_add(&builder->bloom, operation->hashes[i]);
	}
}

static void
flatten(void *arg)
{
	Operation  *operation = arg;

	operation->image = build_flat(&operation->subject->builder.base);
}

static void
finish(void *arg)
{
	Operation  *operation = arg;

	operation->image = bloom_methods.finish(&operation->subject->builder.base);
}

/* Go on with what the bytes say. */
static void
reload(void *arg)
{
	Operation  *operation = arg;
	struct varlena *image = build_flat(&operation->subject->builder.base);
	uint64		keys_left = operation->subject->builder.bloom.keys_left;
	bf_filter	filter;
	AnyBuilder	builder;

	filter_open(&filter, image);
	build_load(&builder, CurrentMemoryContext, &filter);
	if (operation->flag)
		builder.bloom.keys_left = keys_left;
	operation->subject->builder = builder;
	pfree(image);
}

/* Merge another state of the aggregate, which came as bytes. */
static void
merge(void *arg)
{
	Operation  *operation = arg;
	FilterBuilder *builder = &operation->subject->builder.base;
	bf_filter	filter;
	KeyClass	class;

	filter_open(&filter, operation->image);
	class = filter_class(&filter);
	if (class.code != BF_CLASS_NONE)
	{
		filter_check_class(builder->frame, &class);
		if (builder->frame->key_class == BF_CLASS_NONE)
			build_set_class(builder, &class);
	}
	CHECK(builder->methods->can_merge(builder, &filter), "states do not fit");
	builder->methods->merge(builder, &filter);
}

/* Union, intersection and compaction. */
extern Datum bloom_union(PG_FUNCTION_ARGS);
extern Datum bloom_intersection(PG_FUNCTION_ARGS);
extern Datum bloom_compact(PG_FUNCTION_ARGS);
extern Datum bloom_union_agg_transition(PG_FUNCTION_ARGS);
extern Datum bloom_intersection_agg_transition(PG_FUNCTION_ARGS);

typedef struct SetOperation
{
	Datum		(*function) (PG_FUNCTION_ARGS);
	struct varlena *a;
	struct varlena *b;
	struct varlena *result;
} SetOperation;

static void
combine(void *arg)
{
	SetOperation *operation = arg;
	FunctionCallInfoBaseData call = {0};

	call.args[0].value = PointerGetDatum(operation->a);
	call.args[1].value = PointerGetDatum(operation->b);
	operation->result = (struct varlena *) DatumGetPointer(operation->function(&call));
}

/* Note that keys were added, or may have been. */
static void
note(Subject *subject, const uint64 *hashes, Size n, bool maybe)
{
	for (Size i = 0; i < n; i++)
	{
		subject->added[subject->n].hash = hashes[i];
		subject->added[subject->n++].maybe = maybe;
	}
	if (maybe)
		subject->exact = false;
}

/* Run an operation that the input may let fail. */
static ShimOutcome
run(Input *input, bool faults, void (*work) (void *), Operation *operation)
{
	shim_fail_after(faults ? take_byte(input) : 0);
	return shim_run(work, operation);
}

/*
 * After an operation that failed: whatever was there before must still be.  But
 * the state of an aggregate is gone with its query.
 */
static void
after_failure(Subject *subject)
{
	if (parameters.aggregate)
		dead = true;
	else
		check_builder(subject);
}

static void
run_add(Input *input, Subject *subject, bool faults, bool one)
{
	HashRun		run_of = take_hashes(input, (bf_table) {0, 0});
	Size		n = one ? 1 : (Size) take_byte(input) * (1 + run_of.kind / 8 % 8);
	uint64	   *hashes;
	Operation	operation = {.subject = subject};
	ShimOutcome outcome;

	if (2 * n > MOST_KEYS - subject->n)
		return;
	hashes = malloc(sizeof(uint64) * Max(n, 1));
	for (Size i = 0; i < n; i++)
		hashes[i] = hash_at(&run_of, i);
	operation.hashes = hashes;
	operation.n = n;
	outcome = run(input, faults, add, &operation);
	if (outcome != SHIM_DONE)
	{
		note(subject, hashes, n, true);
		after_failure(subject);
		/* try again, as one would */
		if (outcome == SHIM_FAULT && !dead && (run_of.kind & 8) != 0)
			outcome = shim_run(add, &operation);
	}
	if (outcome == SHIM_DONE)
		note(subject, hashes, n, false);
	free(hashes);
}

static void
run_merge(Input *input, Subject *subject, Subject *other, bool faults)
{
	Operation	operation = {.subject = other};
	ShimOutcome outcome;

	if (!parameters.aggregate || subject == other || subject->n + other->n > MOST_KEYS)
		return;
	if (shim_run(flatten, &operation) != SHIM_DONE)
	{
		dead = true;
		return;
	}
	check_image(other, operation.image);
	operation.subject = subject;
	outcome = run(input, faults, merge, &operation);
	if (outcome != SHIM_DONE)
		dead = true;
	else
	{
		memcpy(subject->added + subject->n, other->added, sizeof(Added) * other->n);
		subject->n += other->n;
	}
}

/* Combine two filters; what comes out may become the first of them. */
static void
run_sets(Input *input, Subject *subject, Subject *other)
{
	uint8		which = take_byte(input);
	Operation	left = {.subject = subject};
	Operation	right = {.subject = other};
	SetOperation sets = {.function = bloom_union};
	Subject		both = *subject;
	bf_filter	filter;
	bool		compact = which % 4 == 2;

	if (parameters.aggregate || subject->n + other->n > MOST_KEYS ||
		shim_run(flatten, &left) != SHIM_DONE || shim_run(flatten, &right) != SHIM_DONE)
		return;
	sets.a = left.image;
	sets.b = right.image;
	if (which % 4 == 3)
	{
		/* keys of both are in the intersection */
		sets.function = which & 4 ? bloom_intersection : bloom_intersection_agg_transition;
		if (parameters.max_layers > 0 || shim_run(combine, &sets) != SHIM_DONE)
			return;
		CHECK(bf_filter_validate((uint8 *) VARDATA(sets.result), VARSIZE_ANY_EXHDR(sets.result), BF_KIND_BLOOM) == NULL,
			  "invalid intersection");
		filter_open(&filter, sets.result);
		for (Size i = 0; i < subject->n && i < 300; i++)
		{
			uint64		hash = subject->added[i].hash;

			if (!subject->added[i].maybe && other->exact && was_added(other, hash))
				CHECK(bf_filter_contains(&filter, hash), "a common key is missing from the intersection");
		}
		return;
	}
	if (compact)
		sets.function = bloom_compact;
	else if (which % 4 == 1)
		sets.function = bloom_union_agg_transition;
	if (shim_run(combine, &sets) != SHIM_DONE)
		return;

	if (parameters.max_layers > 0)
	{
		/* two windows: the newest keys of each */
		check_image(subject, sets.result);
		if (!compact)
			check_image(other, sets.result);
		return;
	}
	both.added = malloc(sizeof(Added) * MOST_KEYS);
	memcpy(both.added, subject->added, sizeof(Added) * subject->n);
	if (!compact)
	{
		memcpy(both.added + both.n, other->added, sizeof(Added) * other->n);
		both.n += other->n;
		both.exact &= other->exact;
	}
	check_image(&both, sets.result);
	if ((which & 8) != 0)
	{
		/* go on with it: its shapes are not those of the parameters */
		filter_open(&filter, sets.result);
		build_load(&both.builder, CurrentMemoryContext, &filter);
		both.exact = false;
		free(subject->added);
		*subject = both;
	}
	else
		free(both.added);
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

	return x < y ? -1 : x > y;
}

static void
check_order(Subject *subject)
{
	Subject		again;
	Operation	first = {.subject = subject};
	Operation	second = {.subject = &again};
	uint64	   *hashes;

	if (!subject->exact || shim_run(parameters.aggregate ? finish : flatten, &first) != SHIM_DONE)
		return;
	check_image(subject, first.image);
	if (((uint8 *) VARDATA(first.image))[5] != 1)
		return;
	CHECK(start_subject(&again), "cannot start again: %s", shim_message);
	hashes = malloc(sizeof(uint64) * (subject->n + 1));
	for (Size i = 0; i < subject->n; i++)
		hashes[i] = subject->added[i].hash;
	qsort(hashes, subject->n, sizeof(uint64), compare_hashes);
	second.hashes = hashes;
	second.n = subject->n;
	if (shim_run(add, &second) == SHIM_DONE &&
		shim_run(parameters.aggregate ? finish : flatten, &second) == SHIM_DONE &&
		((uint8 *) VARDATA(second.image))[5] == 1)
		CHECK(VARSIZE(first.image) == VARSIZE(second.image) &&
			  memcmp(first.image, second.image, VARSIZE(first.image)) == 0,
			  "the same keys in another order make other bytes");
	free(again.added);
	free(hashes);
}

/* ---------------------------------------------------------------- */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	uint8		flags = take_byte(&input);
	bool		eager = flags & 1;
	int			states = flags & 2 ? STATES : 1;
	bool		started = true;

	bf_poll = shim_poll;
	dead = false;
	take_parameters(&input);
	for (int i = 0; i < states; i++)
		started &= start_subject(&subjects[i]);
	for (int operations = 0; started && !dead && input.left > 0 && operations < MOST_OPERATIONS; operations++)
	{
		uint8		code = take_byte(&input);
		Subject    *subject = &subjects[code / 16 % states];
		Subject    *other = &subjects[(code / 16 + 1) % states];
		bool		faults = code / 64 == 3;
		Operation	operation = {.subject = subject, .flag = code & 64};
		ShimOutcome outcome;

		switch (code % 16)
		{
			case 0:
			case 1:
			case 2:
			case 3:
			case 4:
				run_add(&input, subject, faults, false);
				break;
			case 5:
			case 6:
				run_add(&input, subject, faults, true);
				break;
			case 7:
				check_builder(subject);
				break;
			case 8:
			case 9:
				outcome = run(&input, faults, flatten, &operation);
				if (outcome == SHIM_DONE)
					check_image(subject, operation.image);
				else
					after_failure(subject);
				break;
			case 10:
			case 11:
				if (run(&input, faults, reload, &operation) != SHIM_DONE)
					after_failure(subject);
				break;
			case 12:
				run_sets(&input, subject, other);
				break;
			case 13:
			case 14:
				run_merge(&input, subject, other, faults);
				break;
			case 15:
				if (!parameters.aggregate)
					break;
				outcome = shim_run(finish, &operation);
				if (outcome == SHIM_DONE)
					check_image(subject, operation.image);
				else
					dead = true;
				break;
		}
		if (eager && !dead)
			check_builder(subject);
	}
	for (int i = 0; i < states; i++)
	{
		if (started && !dead)
		{
			check_builder(&subjects[i]);
			check_order(&subjects[i]);
		}
		free(subjects[i].added);
		subjects[i].added = NULL;
	}
	shim_free_all();
	return 0;
}
