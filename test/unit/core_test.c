/*
 * core_test.c
 *		Tests of the core as a plain program, without a server.
 *
 * Random input comes from a fixed seed, which is printed, so that a failure can
 * be reproduced.  Every structure is compared with a simple model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../src/core/base64.h"
#include "../../src/core/mutable.h"
#include "../../src/core/query.h"

static int	passed = 0;
static int	failed = 0;

#define CHECK(condition, ...) \
	do { \
		if (condition) \
			passed++; \
		else \
		{ \
			failed++; \
			printf("not ok: %s:%d: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

#include "operations.h"

#define SEED	UINT64_C(20261116)

static uint64_t random_state = SEED;

/* A stream of distinct, well-mixed words that serve as key hashes. */
static uint64_t
next_random(void)
{
	return bf_mix64(random_state += UINT64_C(0x9E3779B97F4A7C15));
}

static uint8_t *
allocate(size_t n)
{
	uint8_t    *p = calloc(n > 0 ? n : 1, 1);

	if (p == NULL)
		abort();
	return p;
}

/* ----------------------------------------------------------------
 * Geometry: the target is met, within the promised space
 * ----------------------------------------------------------------
 */

/* Measured false-positive rate over `filters` filters of n keys each. */
static double
measure(uint64_t n, double fpp, unsigned filters, uint64_t probes)
{
	bf_shape	shape = bf_shape_for(n, fpp);
	uint8_t    *lines = allocate(shape.words * 8);
	uint64_t   *hashes = malloc(n * sizeof(uint64_t));
	uint64_t	hits = 0;

	for (unsigned f = 0; f < filters; f++)
	{
		uint64_t	lost = 0;

		memset(lines, 0, shape.words * 8);
		for (uint64_t i = 0; i < n; i++)
			hashes[i] = next_random();
		bf_lines_add_many(test_host, lines, shape, hashes, n);
		for (uint64_t i = 0; i < n; i++)
			lost += !bf_lines_test(lines, shape, hashes[i]);
		CHECK(lost == 0, "n=%llu fpp=%g lost %llu", (unsigned long long) n, fpp, (unsigned long long) lost);
		for (uint64_t i = 0; i < probes; i++)
			hits += bf_lines_test(lines, shape, next_random());
	}
	free(lines);
	free(hashes);
	return (double) hits / ((double) probes * filters);
}

static void
test_fpp_is_met(void)
{
	static const uint64_t sizes[] = {1, 10, 100, 999, 10000, 1000000};
	static const double targets[] = {0.5, 0.1, 0.03, 0.01, 0.001, 1e-4, 1e-5};

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
	{
		for (unsigned t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
		{
			/* enough probes for about 4000 hits: a standard error of 1.6% */
			unsigned	filters = sizes[s] < 1000 ? 400 : sizes[s] == 10000 ? 10 : 1;
			uint64_t	probes = (uint64_t) (4000 / targets[t] / filters) + 1;
			double		rate;

			if (probes * filters > 50000000)
				probes = 50000000 / filters;
			rate = measure(sizes[s], targets[t], filters, probes);
			CHECK(rate <= 1.1 * targets[t], "n=%llu: target %g, measured %g",
				  (unsigned long long) sizes[s], targets[t], rate);
		}
	}
}

static void
test_space(void)
{
	static const double targets[] = {0.5, 0.25, 0.1, 0.05, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6, 1e-8, 1e-9};

	for (unsigned t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
	{
		double		bits = -log2(targets[t]);
		double		classic = 1e18;

		/*
		 * bits per key of a classic filter with the best whole number of
		 * hashes
		 */
		for (int k = (int) bits; k <= bits + 2; k++)
		{
			double		b = k < 1 ? classic : -k / log(1 - pow(targets[t], 1.0 / k));

			classic = b < classic ? b : classic;
		}
		for (uint64_t n = 100000; n <= 100000000; n = n * 7 / 3)
		{
			bf_shape	shape = bf_shape_for(n, targets[t]);
			double		ratio = (double) shape.words * 64 / (double) n / classic;

			CHECK(ratio <= 1.075, "n=%llu fpp=%g: %g times a classic filter",
				  (unsigned long long) n, targets[t], ratio);
			CHECK(bf_shape_fpp(shape, n) <= targets[t], "n=%llu fpp=%g", (unsigned long long) n, targets[t]);
		}
	}
	CHECK(bf_shape_for(20, 0.01).words <= 4, "20 keys need %d words", (int) bf_shape_for(20, 0.01).words);
}

static void
test_geometry_is_sane(void)
{
	/* neither a larger capacity nor a lower fpp makes a filter smaller */
	for (double fpp = 0.9; fpp > 1e-12; fpp *= 0.37)
	{
		uint64_t	last = 0;

		for (uint64_t n = 1; n < 40000; n += n / 9 + 1)
		{
			bf_shape	shape = bf_shape_for(n, fpp);
			uint64_t	lines = bf_shape_lines(shape);

			CHECK(shape.words >= last, "n=%llu fpp=%g", (unsigned long long) n, fpp);
			CHECK(shape.words <= 8 || shape.words % 8 == 0, "n=%llu fpp=%g", (unsigned long long) n, fpp);
			CHECK(shape.groups >= 1 && shape.groups <= BF_MAX_GROUPS &&
				  shape.probes >= 1 && shape.probes <= BF_MAX_PROBES, "n=%llu fpp=%g", (unsigned long long) n, fpp);
			last = shape.words;
			while (lines >= 256)
			{
				CHECK(lines % 2 == 0, "%llu lines cannot be folded", (unsigned long long) bf_shape_lines(shape));
				lines /= 2;
			}
		}
	}
	/* extremes neither overflow nor divide by zero */
	CHECK(bf_shape_for(UINT64_MAX, 1e-300).words > BF_MAX_BYTES / 8, "largest");
	CHECK(bf_shape_for(0, 0.999999).words == 1, "smallest");
	CHECK(bf_shape_for(3000000000, 0.5).words * 8 > BF_MAX_BYTES, "3e9 keys");
}

/* Golden geometry: a change would break merging with existing filters. */
static void
test_golden_geometry(void)
{
	static const struct
	{
		uint64_t	n;
		double		fpp;
		uint64_t	words;
		unsigned	groups,
					probes;
	}			golden[] =
	{
		{1, 0.01, 1, 1, 8}, {20, 0.01, 4, 1, 8}, {50, 0.01, 8, 1, 7}, {100, 0.01, 16, 1, 6},
		{1000, 0.01, 160, 1, 6}, {1000, 0.001, 232, 2, 5}, {1000000, 0.5, 22656, 1, 1},
		{1000000, 0.1, 75776, 1, 3}, {1000000, 0.01, 155648, 1, 6}, {1000000, 0.001, 229376, 2, 5},
		{1000000, 1e-4, 311296, 2, 6}, {1000000, 1e-6, 466944, 3, 6}, {1000000, 1e-9, 704512, 4, 7},
		{10000000, 0.01, 1556480, 1, 6}, {100000000, 0.01, 15532032, 1, 6},
	};

	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++)
	{
		bf_shape	shape = bf_shape_for(golden[i].n, golden[i].fpp);

		CHECK(shape.words == golden[i].words && shape.groups == golden[i].groups && shape.probes == golden[i].probes,
			  "{%llu, %g, %llu, %u, %u}", (unsigned long long) golden[i].n, golden[i].fpp,
			  (unsigned long long) shape.words, shape.groups, shape.probes);
	}
}

/* ----------------------------------------------------------------
 * Lines
 * ----------------------------------------------------------------
 */

/* One by one, batched, shared, in any order: the same bits.  Folding is exact. */
static void
test_lines_operations(void)
{
	enum
	{
		N = 5000
	};
	uint64_t	hashes[N];
	bool		found[N];

	for (int round = 0; round < 40; round++)
	{
		bf_shape	shape = bf_shape_for(1 + next_random() % 20000, pow(10, -1 - (int) (next_random() % 9)));
		size_t		bytes = shape.words * 8;
		uint8_t    *a = allocate(bytes);
		uint8_t    *b = allocate(bytes);
		uint8_t    *both = allocate(bytes);
		unsigned	lost = 0;

		for (int i = 0; i < N; i++)
			hashes[i] = next_random();
		bf_lines_add_many(test_host, a, shape, hashes, N / 2);
		for (int i = N - 1; i >= N / 2; i--)
			bf_lines_add_shared(b, shape, hashes[i]);
		for (int i = N - 1; i >= 0; i--)
			bf_lines_add(both, shape, hashes[i]);
		bf_lines_test_many(test_host, both, shape, hashes, N, found);
		for (int i = 0; i < N; i++)
			lost += !found[i] || !bf_lines_test(both, shape, hashes[i]);
		CHECK(lost == 0, "lost %u", lost);

		bf_lines_or(test_host, b, a, shape.words);
		CHECK(memcmp(b, both, bytes) == 0, "OR differs");
		bf_lines_and(test_host, b, a, shape.words);
		CHECK(memcmp(b, a, bytes) == 0, "AND differs");

		for (unsigned factor = 2; factor < 8;)
		{
			bf_shape	half = shape;
			uint8_t    *direct;
			uint64_t	expected;

			if (!bf_lines_can_fold(shape, factor))
			{
				factor++;
				continue;
			}
			half.words /= factor;
			expected = bf_lines_fold(test_host, NULL, both, shape, factor);
			CHECK(bf_lines_fold(test_host, both, both, shape, factor) == expected, "bits counted");
			direct = allocate(half.words * 8);
			CHECK(bf_lines_bits_set(test_host, both, half.words) == expected, "bits");
			bf_lines_add_many(test_host, direct, half, hashes, N);
			CHECK(memcmp(direct, both, half.words * 8) == 0, "fold of %llu words differs",
				  (unsigned long long) shape.words);
			free(direct);
			shape = half;
		}
		free(a);
		free(b);
		free(both);
	}
}

static void
test_census(void)
{
	static const uint64_t sizes[] = {1, 10, 100, 1000, 50000};

	for (unsigned s = 0; s < 5; s++)
	{
		for (double fpp = 0.1; fpp > 1e-7; fpp /= 10)
		{
			bf_shape	shape = bf_shape_for(sizes[s], fpp);
			uint8_t    *lines = allocate(shape.words * 8);
			bf_census	census = bf_lines_census(test_host, lines, shape);
			double		error;

			CHECK(census.bits_set == 0 && census.keys == 0 && census.fpp == 0, "empty");
			for (uint64_t i = 0; i < sizes[s]; i++)
				bf_lines_add(lines, shape, next_random());
			census = bf_lines_census(test_host, lines, shape);
			error = fabs(census.keys - (double) sizes[s]) / (double) sizes[s];
			CHECK(error < 0.02 + 0.7 / sqrt((double) sizes[s]), "n=%llu fpp=%g: estimated %g",
				  (unsigned long long) sizes[s], fpp, census.keys);
			CHECK(sizes[s] < 1000 || fabs(census.fpp / fpp - 1) < 0.35, "n=%llu: target %g, estimated %g",
				  (unsigned long long) sizes[s], fpp, census.fpp);
			memset(lines, 0xFF, shape.words * 8);
			census = bf_lines_census(test_host, lines, shape);
			CHECK(census.fpp == 1.0 && isfinite(census.keys), "full: %g %g", census.fpp, census.keys);
			free(lines);
		}
	}
}

/* ----------------------------------------------------------------
 * Lists of hashes
 * ----------------------------------------------------------------
 */

static void
test_lists(void)
{
	static const size_t sizes[] = {0, 1, 2, 23, 24, 25, 1000, 70000, 1000000};

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
	{
		size_t		n = sizes[s];
		uint64_t   *hashes = malloc((n + 1) * sizeof(uint64_t));
		uint64_t   *model = malloc((n + 1) * sizeof(uint64_t));
		uint8_t    *list = allocate(n * 8 + 1);
		size_t		kept;
		size_t		model_kept = 0;
		unsigned	wrong = 0;

		for (int kind = 0; kind < 5; kind++)
		{
			for (size_t i = 0; i < n; i++)
			{
				uint64_t	r = next_random();

				/*
				 * uniform; many repetitions; only low bits; only high;
				 * extremes
				 */
				hashes[i] = kind == 0 ? r : kind == 1 ? bf_mix64(r % (n / 3 + 1)) :
					kind == 2 ? r % 1000 : kind == 3 ? r << 50 : (r & 1) ? UINT64_MAX : r & 2;
			}
			memcpy(model, hashes, n * sizeof(uint64_t));
			qsort(model, n, sizeof(uint64_t), compare_hashes);
			model_kept = 0;
			for (size_t i = 0; i < n; i++)
			{
				if (i == 0 || model[i] != model[i - 1])
					model[model_kept++] = model[i];
			}
			kept = bf_hashes_sort_unique(test_host, hashes, n, 0);
			CHECK(kept == model_kept && memcmp(hashes, model, kept * sizeof(uint64_t)) == 0, "n=%zu kind %d", n, kind);

			/* stored at an odd address */
			bf_list_write(list + 1, hashes, kept);
			CHECK(bf_list_is_sorted(test_host, list + 1, kept), "n=%zu", n);
			wrong = 0;
			for (size_t i = 0; i < kept; i += 1 + kept / 3000)
			{
				uint64_t	near = hashes[i] + 1;

				bool		there = bsearch(&near, model, kept, sizeof(uint64_t), compare_hashes) != NULL;

				wrong += !bf_list_find(list + 1, kept, hashes[i]) || bf_list_find(list + 1, kept, near) != there;
				wrong += bf_hashes_find(hashes, kept, hashes[i]) != i || (bf_hashes_find(hashes, kept, near) < kept) != there;
				wrong += bf_list_search(bf_fetch_from_memory, list, 1, kept, hashes[i], UINT64_MAX) != i ||
					(bf_list_search(bf_fetch_from_memory, list, 1, kept, near, UINT64_MAX) < kept) != there;
			}
			CHECK(wrong == 0, "n=%zu kind %d: %u wrong results", n, kind, wrong);
			bf_list_read(hashes, list + 1, kept);
			CHECK(memcmp(hashes, model, kept * sizeof(uint64_t)) == 0, "n=%zu", n);
		}
		if (kept > 1)
		{
			bf_store64(list + 1, UINT64_MAX);
			CHECK(!bf_list_is_sorted(test_host, list + 1, kept), "n=%zu", n);
		}
		free(hashes);
		free(model);
		free(list);
	}
}

/* An array that is collected in an accumulator has every hash once, up to the bound. */
static void
test_accumulator(void)
{
	enum
	{
		MOST = 5000
	};
	bf_accumulator accumulator;
	uint64_t	added = 0;
	unsigned	wrong = 0;

	/* 1000 distinct hashes, each a hundred times: there is always room */
	bf_accumulator_start(test_host, &accumulator, 8);
	for (; added < 100000; added++)
	{
		if (bf_accumulator_is_full(&accumulator) && !bf_accumulator_make_room(test_host, &accumulator, MOST))
			break;
		bf_accumulator_add(&accumulator, bf_mix64(added % 1000));
		if (added % 997 == 0)
			wrong += !bf_accumulator_contains(test_host, &accumulator, bf_mix64(added % 1000)) ||
				bf_accumulator_contains(test_host, &accumulator, bf_mix64(1000 + added));
	}
	CHECK(added == 100000 && accumulator.room <= MOST, "room for %u hashes", (unsigned) accumulator.room);
	bf_accumulator_sort(test_host, &accumulator);
	CHECK(accumulator.n == 1000 && accumulator.sorted == 1000 && wrong == 0, "%u hashes, %u wrong", (unsigned) accumulator.n, wrong);

	/* distinct ones: no room when more than half of the bound is in use */
	accumulator.n = accumulator.sorted = 0;
	for (added = 0; added < 2 * MOST; added++)
	{
		if (bf_accumulator_is_full(&accumulator) && !bf_accumulator_make_room(test_host, &accumulator, MOST))
			break;
		bf_accumulator_add(&accumulator, bf_mix64(added));
	}
	CHECK(added == MOST && accumulator.n == MOST, "%u added", (unsigned) added);
	bf_accumulator_free(test_host, &accumulator);
	CHECK(accumulator.hashes == NULL && accumulator.room == 0, "not freed");
}

/* Repetitions are dropped if they are more than a quarter; otherwise the order stays. */
static void
test_drop_repetitions(void)
{
	uint64_t	hashes[10000];
	size_t		lengths[] = {1, 9, 100, 8192, 10000};

	for (unsigned l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
	{
		size_t		n = lengths[l];
		size_t		few = n - n / 8;
		size_t		kept;
		unsigned	wrong = 0;

		for (size_t i = 0; i < n; i++)
			hashes[i] = bf_mix64(i % few);
		CHECK(bf_hashes_drop_repetitions(test_host, hashes, n) == 0, "n=%zu", n);
		for (size_t i = 0; i < n; i++)
			wrong += hashes[i] != bf_mix64(i % few);
		for (size_t i = 0; i < n; i++)
			hashes[i] = bf_mix64(i % (n / 3 + 1));
		kept = bf_hashes_drop_repetitions(test_host, hashes, n);
		CHECK(kept == (n > 1 ? n / 3 + 1 : 0), "n=%zu: %zu kept", n, kept);
		for (size_t i = 1; i < kept; i++)
			wrong += hashes[i - 1] >= hashes[i];
		CHECK(wrong == 0, "n=%zu: another order", n);
	}
}

/* ----------------------------------------------------------------
 * Base64
 * ----------------------------------------------------------------
 */

static void
test_base64(void)
{
	char		text[400];
	uint8_t		bytes[300];
	uint8_t		back[300];
	size_t		n;
	size_t		bad;

	bf_base64_encode(test_host, text, (const uint8_t *) "foobar", 6);
	CHECK(memcmp(text, "Zm9vYmFy", 8) == 0, "foobar");
	bf_base64_encode(test_host, text, (const uint8_t *) "foob", 4);
	CHECK(memcmp(text, "Zm9vYg==", 8) == 0, "foob");

	for (size_t length = 0; length < 300; length++)
	{
		size_t		size = bf_base64_encoded_size(length);

		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t) next_random();
		bf_base64_encode(test_host, text, bytes, length);
		CHECK(bf_base64_decoded_size(text, size, &n) && n == length, "length %zu", length);
		CHECK(bf_base64_decode(test_host, back, text, size, &bad) && memcmp(bytes, back, length) == 0, "length %zu", length);
		if (size > 0)
		{
			size_t		at = next_random() % size;

			text[at] = "!\\\n -_"[next_random() % 6];
			CHECK(!bf_base64_decode(test_host, back, text, size, &bad), "length %zu: bad digit accepted", length);
		}
	}
	CHECK(!bf_base64_decoded_size("abc", 3, &n), "abc");
	CHECK(!bf_base64_decode(test_host, back, "Zh==", 4, &bad), "stray bits accepted");
	CHECK(!bf_base64_decode(test_host, back, "Zm9=", 4, &bad), "stray bits accepted");
	CHECK(!bf_base64_decode(test_host, back, "Z===", 4, &bad), "three pads accepted");
	CHECK(!bf_base64_decode(test_host, back, "Zg==Zg==", 8, &bad) && bad == 2, "pads in the middle");
}

/* ----------------------------------------------------------------
 * Format
 * ----------------------------------------------------------------
 */

/* The description of a filter of one list. */
static bf_filter
list_filter(void)
{
	bf_filter	filter;

	memset(&filter, 0, sizeof(filter));
	filter.header = (bf_header) {.host = test_host, .kind = BF_KIND_BLOOM, .fpp = 0.01, .class = key_classes[0]};
	filter.layers = 1;
	filter.layer[0].form = BF_FORM_LIST;
	return filter;
}

/* A filter of any structure, with random contents. */
static uint8_t *
random_filter(size_t *n)
{
	bf_filter	filter = list_filter();
	uint8_t    *bytes;

	filter.header.fpp = pow(10, -1 - (double) (next_random() % 8));
	filter.layers = (uint8_t) (next_random() % 3 == 0 ? 1 + next_random() % 5 : 1);
	filter.header.growth = (uint8_t) (next_random() % 4);
	filter.header.class.code = (uint8_t) (1 + next_random() % 21);
	if (next_random() % 4 == 0)
	{
		filter.header.class.code = BF_CLASS_NAMED;
		filter.header.class.name = "enum mood that is rather long, to move things around";
		filter.header.class.name_length = (uint8_t) (1 + next_random() % 50);
	}
	for (unsigned i = 0; i < filter.layers; i++)
	{
		bf_layer   *layer = &filter.layer[i];

		layer->capacity = 1 + next_random() % (next_random() % 2 ? 30 : 5000);
		layer->shape = bf_shape_for(layer->capacity, filter.header.fpp);
		layer->form = BF_FORM_LINES;
		if (next_random() % 2 && layer->shape.words > 2)
		{
			layer->form = BF_FORM_LIST;
			layer->count = (uint32_t) (next_random() % (layer->shape.words - 1));
		}
	}
	if (filter.layers == 1 && next_random() % 6 == 0)
	{
		memset(&filter.layer[0], 0, sizeof(bf_layer));
		filter.layer[0].form = BF_FORM_LIST;
		filter.layer[0].count = (uint32_t) (next_random() % 1000);
	}
	*n = bf_filter_size(&filter);
	bytes = malloc(*n);
	memset(bytes, 0xA5, *n);
	bf_filter_write(&filter, bytes, *n);
	for (unsigned i = 0; i < filter.layers; i++)
	{
		bf_layer   *layer = &filter.layer[i];

		if (layer->form == BF_FORM_LIST)
		{
			uint64_t   *hashes = malloc((layer->count + 1) * sizeof(uint64_t));

			for (unsigned j = 0; j < layer->count; j++)
				hashes[j] = next_random();
			bf_hashes_sort(test_host, hashes, layer->count);
			bf_list_write(layer->data, hashes, layer->count);
			free(hashes);
		}
		else
		{
			for (uint64_t w = 0; w < layer->shape.words; w++)
				bf_store64(layer->data + w * 8, next_random() & next_random());
		}
	}
	return bytes;
}

/* Reading in pieces gives the same results, with few pieces. */
static void
check_pieces(const bf_filter *filter, const uint8_t *bytes, size_t n)
{
	Store		s = {.all = {(uint8_t *) bytes, n}};
	bf_filter	far;
	unsigned	wrong = 0;
	unsigned	probes = 0;

	CHECK(bf_filter_open_pieces(&far, test_host, n, fetch_piece, &s) == NULL, "pieces");
	s.fetches = 0;
	for (unsigned i = 0; i < 20; i++)
	{
		const bf_layer *layer = &filter->layer[i % filter->layers];
		uint64_t	hash = i % 2 && layer->form == BF_FORM_LIST && layer->count > 0 ?
		bf_load64(layer->data + next_random() % layer->count * 8) : next_random();

		probes++;
		wrong += bf_filter_contains(filter, hash) != bf_filter_contains_pieces(&far, fetch_piece, &s, hash);
	}
	CHECK(wrong == 0, "%u wrong results", wrong);
	CHECK(filter->layers > 1 || s.fetches <= probes * 4, "%u fetches", s.fetches);
	if (bf_filter_of_size(&far, test_host, n))
		CHECK(far.header.class.code == filter->header.class.code && far.layer[0].shape.words == filter->layer[0].shape.words &&
			  far.layer[0].shape.groups == filter->layer[0].shape.groups &&
			  far.layer[0].shape.probes == filter->layer[0].shape.probes &&
			  far.layer[0].offset == filter->layer[0].offset, "the size implies a different shape");
	else
		CHECK(n + 4 < BF_WIDE_BYTES || filter->layers > 1 || filter->layer[0].form == BF_FORM_LIST ||
			  filter->header.class.code > BF_CLASS_UUID, "size does not tell the shape");
	bytes_free(s.piece);
}

/* A written filter can be read; wide filters have their shape from their size. */
static void
test_format_round_trip(void)
{
	for (int round = 0; round < 3000; round++)
	{
		size_t		n;
		uint8_t    *bytes = random_filter(&n);
		bf_filter	filter;
		const char *problem = bf_filter_validate(test_host, bytes, n, BF_KIND_BLOOM);

		CHECK(problem == NULL, "%s", problem);
		CHECK(bf_filter_open(&filter, test_host, bytes, n) == NULL, "round %d", round);
		CHECK(bf_filter_size(&filter) == n, "round %d", round);
		check_pieces(&filter, bytes, n);
		CHECK(bf_filter_validate(test_host, bytes, n, BF_KIND_CUCKOO) != NULL, "accepted as a cuckoo filter");
		free(bytes);
	}
}

/* ----------------------------------------------------------------
 * Cuckoo tables
 * ----------------------------------------------------------------
 */

/* Tests whether exactly these numbers are in the table. */
static bool
table_holds(const uint8_t *slots, bf_table table, uint64_t *numbers, size_t n)
{
	uint64_t   *found = malloc((table.buckets * BF_BUCKET_SLOTS + 1) * sizeof(uint64_t));
	size_t		count = 0;
	bool		same;

	for (uint64_t slot = 0; bf_table_next(test_host, slots, table, &slot, &found[count]);)
		count++;
	qsort(found, count, sizeof(uint64_t), compare_hashes);
	qsort(numbers, n, sizeof(uint64_t), compare_hashes);
	same = count == n && memcmp(found, numbers, n * sizeof(uint64_t)) == 0;
	free(found);
	return same;
}

/*
 * Random inserts and removals, compared with a plain array, for every width and
 * around every size.  A failed insert leaves all bytes unchanged.
 */
static void
test_table_operations(void)
{
	for (int round = 0; round < 400; round++)
	{
		bf_table	table = {1 + next_random() % (round % 4 == 0 ? 3 : 3000),
		(uint8_t) (BF_MIN_SLOT_BITS + next_random() % (BF_MAX_SLOT_BITS - BF_MIN_SLOT_BITS + 1))};
		size_t		bytes;
		uint8_t    *slots;
		uint8_t    *copy;
		uint64_t   *numbers;
		size_t		n = 0;
		unsigned	wrong = 0;
		size_t		steps = (size_t) table.buckets * 8;

		if (bf_table_range(table) > BF_MAX_RANGE)
			table.slot_bits = 40;
		bytes = (size_t) bf_table_words(table) * 8;
		slots = allocate(bytes);	/* exact size, for the memory checker */
		copy = allocate(bytes);
		numbers = malloc((table.buckets * BF_BUCKET_SLOTS + 1) * sizeof(uint64_t));
		for (size_t step = 0; step < steps; step++)
		{
			uint64_t	number = bf_table_number(table, next_random());

			/* mostly inserts in the first half, then mostly removals */
			if (n == 0 || next_random() % 8 < (step < steps * 3 / 4 ? 7 : 2))
			{
				if (bf_table_find(slots, table, number))
					continue;
				memcpy(copy, slots, bytes);
				if (bf_table_insert(slots, table, number))
					numbers[n++] = number;
				else
					wrong += memcmp(copy, slots, bytes) != 0;
			}
			else
			{
				size_t		i = next_random() % n;

				wrong += !bf_table_find(slots, table, numbers[i]);
				wrong += !bf_table_remove(slots, table, numbers[i]);
				wrong += bf_table_find(slots, table, numbers[i]);
				numbers[i] = numbers[--n];
			}
			if (step % (steps / 8 + 1) == 0)
			{
				for (size_t i = 0; i < n; i++)
					wrong += !bf_table_find(slots, table, numbers[i]);
				wrong += bf_table_check(test_host, slots, table, n) != NULL;
			}
		}
		CHECK(wrong == 0 && table_holds(slots, table, numbers, n), "%u wrong with %llu buckets of %u bits",
			  wrong, (unsigned long long) table.buckets, table.slot_bits);
		free(slots);
		free(copy);
		free(numbers);
	}
}

/*
 * Tables filled completely, in order and at random: almost no number is left
 * over, and the false-positive rate is that of the geometry.  Growing keeps every
 * number.
 */
static void
test_table_load(void)
{
	static const uint64_t capacities[] = {1, 7, 100, 1000, 20000, 1000000};
	static const double targets[] = {0.5, 0.1, 0.01, 0.001, 1e-6};

	for (unsigned c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++)
	{
		for (unsigned t = 0; t < 2 * sizeof(targets) / sizeof(targets[0]); t++)
		{
			double		fpp = targets[t / 2];
			bf_table	table = bf_table_for(capacities[c], fpp, 0);
			bf_table	larger = {table.buckets * 2, (uint8_t) (table.slot_bits - 1)};
			uint64_t	full = bf_table_full(table);
			uint8_t    *slots = allocate((size_t) bf_table_words(table) * 8);
			uint64_t   *numbers = malloc(full * sizeof(uint64_t));
			uint64_t	n = 0;
			uint64_t	distinct = 0;
			uint64_t	left = 0;
			uint64_t	hits = 0;

			for (uint64_t i = 0; i < full; i++)
				numbers[i] = bf_table_number(table, next_random());
			if (t % 2 == 0)
				qsort(numbers, full, sizeof(uint64_t), compare_hashes);
			for (uint64_t i = 0; i < full; i++)
			{
				if (bf_table_find(slots, table, numbers[i]))
					continue;
				distinct++;
				if (bf_table_insert(slots, table, numbers[i]))
					numbers[n++] = numbers[i];
				else
					left++;
			}
			CHECK(left <= 3 + distinct / (table.slot_bits > 6 ? 5000 : 150), "%llu of %llu left over, %llu buckets of %u bits, order %u",
				  (unsigned long long) left, (unsigned long long) distinct, (unsigned long long) table.buckets, table.slot_bits, t % 2);
			for (uint64_t i = 0; i < 200000; i++)
				hits += bf_table_find(slots, table, bf_table_number(table, next_random()));
			CHECK(hits / 200000.0 <= 1.1 * fpp + 2e-5 || capacities[c] < 100, "target %g, measured %g", fpp, hits / 200000.0);
			CHECK(bf_table_check(test_host, slots, table, n) == NULL, "%s", bf_table_check(test_host, slots, table, n));
			if (table.slot_bits > BF_MIN_SLOT_BITS)
			{
				uint8_t    *moved = allocate((size_t) bf_table_words(larger) * 8);
				uint64_t	count = 0;
				uint64_t	number;

				CHECK(bf_table_range(larger) == bf_table_range(table), "range");
				for (uint64_t slot = 0; bf_table_next(test_host, slots, table, &slot, &number);)
					count += bf_table_insert(moved, larger, number);
				CHECK(n - count <= n / 10000, "%llu were not moved", (unsigned long long) (n - count));
				CHECK(count < n || table_holds(moved, larger, numbers, n), "a different set after growing");
				free(moved);
			}
			free(slots);
			free(numbers);
		}
	}
}

/* Space and capacity, at any size. */
static void
test_table_geometry(void)
{
	for (uint64_t n = 1; n < 3000000; n += 1 + n / 7)
	{
		for (double fpp = 0.9; fpp > 1e-12; fpp /= 3.7)
		{
			bf_table	table = bf_table_for(n, fpp, 0);
			bf_table	growing = bf_table_for(n, fpp, 2);
			double		bits = ceil(log2((double) n / (double) table.buckets / fpp)) + 1;

			CHECK(bf_table_full(table) >= n && growing.buckets == table.buckets, "n=%llu", (unsigned long long) n);
			CHECK(table.buckets == 1 || bf_table_full((bf_table) {table.buckets - 1, table.slot_bits}) < n, "n=%llu", (unsigned long long) n);
			CHECK(table.slot_bits <= (bits > BF_MIN_SLOT_BITS ? bits : BF_MIN_SLOT_BITS), "n=%llu fpp=%g: %u bits", (unsigned long long) n, fpp, table.slot_bits);
			CHECK(growing.slot_bits > table.slot_bits || table.slot_bits == BF_MIN_SLOT_BITS || growing.slot_bits == BF_MAX_SLOT_BITS ||
				  bf_table_range(growing) >= BF_MAX_RANGE / 2, "no headroom for n=%llu fpp=%g", (unsigned long long) n, fpp);
			CHECK(growing.slot_bits <= BF_MAX_SLOT_BITS && bf_table_range(growing) <= BF_MAX_RANGE, "n=%llu", (unsigned long long) n);
		}
	}
	CHECK(bf_table_words(bf_table_for(1000000, 0.001, 0)) * 64 <= 14e6, "space of a fixed table");
	CHECK(bf_table_words(bf_table_for(1000000, 0.001, 2)) * 64 <= 15.5e6, "space of a growing table");
}

/* Violations of each rule of the validator. */
static void
test_format_rules(void)
{
	bf_filter	filter = list_filter();
	uint8_t		bytes[200];
	size_t		n;

	filter.layer[0].capacity = 100;
	filter.layer[0].shape = bf_shape_for(100, 0.01);
	filter.layer[0].count = 2;
	n = bf_filter_size(&filter);
	bf_filter_write(&filter, bytes, n);
	bf_store64(filter.layer[0].data, 5);
	bf_store64(filter.layer[0].data + 8, 7);
	CHECK(bf_filter_validate(test_host, bytes, n, BF_KIND_BLOOM) == NULL, "valid");
#define BROKEN(offset, value, what) \
	do { \
		uint8_t		kept = bytes[offset]; \
		bytes[offset] = (value); \
		CHECK(bf_filter_validate(test_host, bytes, n, BF_KIND_BLOOM) != NULL, what); \
		bytes[offset] = kept; \
	} while (0)
	BROKEN(0, 0, "magic");
	BROKEN(1, 'X', "magic");
	BROKEN(2, 2, "version");
	BROKEN(3, 0, "scheme none with a class");
	BROKEN(3, 9, "scheme");
	BROKEN(4, 0, "class none with a scheme");
	BROKEN(4, 200, "class");
	BROKEN(5, 0, "no layers");
	BROKEN(5, 65, "too many layers");
	BROKEN(7, 2, "rotating, but growing");
	BROKEN(7, 65, "max_layers");
	BROKEN(15, 0xBF, "negative fpp");
	BROKEN(15, 0x7F, "fpp not a number");
	BROKEN(16, 17, "lines");
	BROKEN(19, 0xFF, "huge");
	BROKEN(25, 0xFF, "capacity");
	BROKEN(26, 0x10, "no probes");
	BROKEN(26, 0x06, "no groups");
	BROKEN(26, 0x19, "probes");
	BROKEN(26, 0x56, "groups");
	BROKEN(27, 0, "form");
	BROKEN(27, 3, "form");
	BROKEN(28, 3, "count");
	BROKEN(35, 1, "count");
	BROKEN(36, 8, "order");
	BROKEN(36, 7, "repetition");
	CHECK(bf_filter_validate(test_host, bytes, n - 1, BF_KIND_BLOOM) != NULL, "short");
	CHECK(bf_filter_validate(test_host, bytes, n, BF_KIND_BLOOM) == NULL, "valid again");
}

/* A list of a million hashes that is read in pieces: two or three pieces suffice. */
static void
test_long_list_in_pieces(void)
{
	enum
	{
		N = 1000000
	};
	bf_filter	filter = list_filter();
	uint64_t   *hashes = malloc(N * sizeof(uint64_t));
	Store		s = {.piece = {NULL, 0}};
	unsigned	lost = 0;

	filter.layer[0].count = N;
	s.all = bytes_allocate(bf_filter_size(&filter));
	bf_filter_write(&filter, s.all.bytes, s.all.n);
	for (unsigned i = 0; i < N; i++)
		hashes[i] = next_random();
	bf_hashes_sort(test_host, hashes, N);
	bf_list_write(filter.layer[0].data, hashes, N);
	for (unsigned i = 0; i < 1000; i++)
	{
		lost += !bf_filter_contains_pieces(&filter, fetch_piece, &s, hashes[i * 1000 + i % 7]);
		lost += bf_filter_contains_pieces(&filter, fetch_piece, &s, next_random());
	}
	CHECK(lost == 0, "%u wrong", lost);
	CHECK(s.fetches < 2000 * 3, "%u fetches for 2000 probes", s.fetches);
	free(hashes);
	host_clean();
}

/* ----------------------------------------------------------------
 * Mutable filters
 * ----------------------------------------------------------------
 */

static bool
holds(const bf_filter *filter, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		if (!bf_filter_contains(filter, hashes[i]))
			return false;
	}
	return true;
}

/* A kind of filter and its growth. */
typedef struct FilterKind
{
	bool		cuckoo;
	uint8_t		growth;
	uint8_t		max_layers;
} FilterKind;

/*
 * A filter is filled by changes of one key and of many, through all of its forms:
 * a list, lines or a table, nearly full ones, further layers or larger tables, a
 * rotating window.  Before a change succeeds, it fails at each of its allocations
 * and polls, and each failure leaves the filter unchanged.
 */
static void
test_changes_are_whole(void)
{
	const unsigned capacity = 500;
	const size_t held = 1000;	/* a window always has them */
	static const FilterKind cases[] = {
		{false, 2, 0}, {false, 1, 0}, {false, 0, 0}, {false, 1, 3}, {true, 2, 0}, {true, 0, 0}
	};
	uint64_t	hashes[2600];

	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
	{
		bf_mutable	filter;
		bf_filter	opened;
		size_t		n = 0;
		size_t		first;
		Operation	operation = {.filter = &filter, .class = &key_classes[2]};

		if (cases[c].cuckoo)
			bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(capacity, 0.01, cases[c].growth), capacity, 0.01);
		else
		{
			bf_size		size = {bf_first_shape(capacity, 0.01, cases[c].growth, cases[c].max_layers), capacity};

			bf_bloom_start(&filter.bloom, test_host, size, 0.01);
		}
		filter.header.growth = cases[c].growth;
		filter.header.max_layers = cases[c].max_layers;
		while (n < 2600)
		{
			bool		removes = cases[c].cuckoo && n > 0 && next_random() % 4 == 0;
			size_t		room = removes ? n : 2600 - n;

			operation.n = next_random() % 3 == 0 ? 1 : 1 + next_random() % 60;
			operation.n = operation.n < room ? operation.n : room;
			operation.change = removes ? BF_REMOVE : BF_ADD;
			if (removes)
				n -= operation.n;
			operation.hashes = hashes + n;
			for (size_t i = 0; i < operation.n && !removes; i++)
				hashes[n++] = next_random();

			/*
			 * sometimes to a filter with pending keys; writing them may fail
			 * as well
			 */
			if (next_random() % 3 == 0)
			{
				CHECK(host_run(change, &operation, 0) == HOST_DONE, "case %u: rejected with %zu keys", c, n);
				continue;
			}
			for (uint64_t step = 1; host_run(flatten, &operation, step) == HOST_FAULT;)
				step++;
			CHECK(change_step_by_step(&operation, UINT64_MAX) == HOST_DONE, "case %u: rejected with %zu keys", c, n);
		}
		first = cases[c].max_layers > 0 ? 2600 - held : 0;
		open_valid(&opened, flat(&filter), filter.header.kind);
		CHECK(holds(&opened, hashes + first, 2600 - first), "case %u: a key is lost", c);
		CHECK(host_interrupted, "case %u: nothing failed", c);
		bf_mutable_free(&filter);
		host_clean();
	}
}

/*
 * The same while keys are pending: the filter is made again for each step that
 * fails, because reading it would sort the keys in.  Without pending keys, removing
 * in place has no step that can fail.
 */
static void
test_removal_is_whole(void)
{
	enum
	{
		N = 900, COPIES = 2
	};
	uint64_t	hashes[N];
	Bytes		expected = {NULL, 0};
	HostOutcome outcome = HOST_FAULT;

	for (size_t i = 0; i < N; i++)
		hashes[i] = next_random();
	for (uint64_t step = 0; outcome == HOST_FAULT; step++)
	{
		bf_mutable	filter;
		Operation	operation = {.filter = &filter, .change = BF_REMOVE, .class = &key_classes[2], .hashes = hashes, .n = 300};
		Bytes		after;
		uint32_t	waiting;

		bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(N, 0.01, 2), N, 0.01);
		for (unsigned copy = 0; copy < COPIES; copy++)
			bf_mutable_change(&filter, BF_ADD, &key_classes[2], hashes, N);
		bf_cuckoo_merge_pending(&filter.cuckoo);
		waiting = filter.cuckoo.list_room - filter.cuckoo.listed + 1;	/* not enough room for
																		 * them */
		bf_mutable_change(&filter, BF_ADD, &key_classes[2], hashes, waiting);
		CHECK(filter.cuckoo.slots != NULL && filter.cuckoo.pending.n == waiting, "%u of %u keys wait", (unsigned) filter.cuckoo.pending.n, waiting);
		if (step > 0)
			outcome = host_run(change, &operation, step);
		after = flat(&filter);
		if (step == 0)
			expected = after;
		else if (outcome == HOST_FAULT)
			CHECK(bytes_equal(expected, after), "a removal that failed at step %u changed the filter", (unsigned) step);
		else
		{
			CHECK(host_run(change, &operation, 0) == HOST_DONE && host_steps == 0, "%u steps", (unsigned) host_steps);
			CHECK(step > 1, "nothing failed");
		}
		bf_mutable_free(&filter);
	}
	host_clean();
}

/* Removing very many keys can be interrupted, which leaves the filter unchanged. */
static void
test_long_removal(void)
{
	enum
	{
		N = 200000
	};
	uint64_t   *hashes = malloc(N * sizeof(uint64_t));
	bf_mutable	filter;
	bf_mutable	copy;
	Operation	operation = {.filter = &filter, .change = BF_REMOVE, .class = &key_classes[0], .hashes = hashes, .n = N};

	for (size_t i = 0; i < N; i++)
		hashes[i] = next_random();
	bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(N, 0.01, 2), N, 0.01);
	bf_mutable_change(&filter, BF_ADD, &key_classes[0], hashes, N);
	bf_mutable_copy(&copy, test_host, &filter);
	operation.filter = &copy;
	CHECK(host_run(change_own, &operation, 0) == HOST_DONE && host_steps >= N / BF_POLL_EVERY,
		  "%u polls", (unsigned) host_steps);
	CHECK(bf_cuckoo_is_empty(&copy.cuckoo), "keys are left");
	bf_mutable_free(&copy);
	operation.filter = &filter;
	CHECK(change_step_by_step(&operation, 8) == HOST_DONE && bf_cuckoo_is_empty(&filter.cuckoo), "keys are left");
	bf_mutable_free(&filter);
	free(hashes);
	host_clean();
}

/*
 * Keys that fit into a table, but not into the larger one that it becomes, where
 * too many share two buckets.  They stay pending, and so may the key for which the
 * table grew.
 */
static void
test_table_moves(void)
{
	enum
	{
		FULL = 31, SHARING = 24, SLOT_BITS = 15
	};
	const bf_table table = {8, SLOT_BITS};
	const bf_table larger = {16, SLOT_BITS - 1};
	uint8_t    *slots = bf_allocate_zero(test_host, bf_table_words(table) * 8);
	uint64_t	hashes[FULL + 1];
	size_t		n = 0;
	bf_mutable	filter;
	bf_filter	opened;
	Operation	operation = {.filter = &filter, .change = BF_ADD, .class = &key_classes[2], .hashes = hashes + FULL, .n = 1};

	/* a full table: keys that will share a pair of buckets, then any others */
	for (unsigned pass = 0; pass < 2; pass++)
	{
		for (uint64_t number = 0; n < (pass == 0 ? SHARING : FULL) && number < bf_table_range(table); number += 1 + pass * 100)
		{
			uint64_t	own = bf_table_bucket(larger, number);
			uint64_t	alternate = bf_table_alternate(larger, own, bf_table_fingerprint(larger, number));
			uint64_t	lower = own < alternate ? own : alternate;
			bool		sharing = own + alternate == 2 * lower + 1 && (lower == 5 || lower == 13);

			if (sharing == (pass == 0) && bf_table_insert(slots, table, number))
				hashes[n++] = number << (64 - 3 - (SLOT_BITS - 1));
		}
	}
	CHECK(n == FULL && bf_table_full(table) == FULL, "%zu keys", n);
	hashes[FULL] = UINT64_MAX;
	bf_cuckoo_start(&filter.cuckoo, test_host, table, FULL, 0.01);
	bf_mutable_set_class(&filter, &key_classes[2]);
	filter.cuckoo.slots = slots;
	filter.cuckoo.used = FULL;
	open_valid(&opened, flat(&filter), BF_KIND_CUCKOO);
	CHECK(opened.layer[0].used == FULL, "%u in the table", (unsigned) opened.layer[0].used);
	CHECK(change_step_by_step(&operation, UINT64_MAX) == HOST_DONE, "rejected");
	open_valid(&opened, flat(&filter), BF_KIND_CUCKOO);
	CHECK(opened.layer[0].table.buckets == larger.buckets && opened.layer[0].count >= SHARING - 16,
		  "%u buckets, %u in the list", (unsigned) opened.layer[0].table.buckets, opened.layer[0].count);
	CHECK(holds(&opened, hashes, FULL + 1), "a key is lost");
	bf_mutable_free(&filter);
	host_clean();
}

/* A canceled sort leaves an unsorted list, in which all keys are found. */
static void
test_cancelled_sort(void)
{
	enum
	{
		N = BF_POLL_EVERY + 3000, TAIL = 100
	};
	uint64_t   *hashes = malloc((N + TAIL) * sizeof(uint64_t));
	HostOutcome outcome = HOST_FAULT;

	for (size_t i = 0; i < N + TAIL; i++)
		hashes[i] = next_random();
	for (uint64_t step = 1; outcome == HOST_FAULT; step += 1 + step / 2)
	{
		bf_mutable	filter;
		Operation	operation = {.filter = &filter};
		unsigned	lost = 0;

		bf_mutable_start_state(&filter, test_host, BF_KIND_BLOOM, 0, 0.01);
		for (size_t i = 0; i < N; i++)
			bf_mutable_add(&filter, hashes[i]);
		bf_bloom_order(&filter.bloom);
		for (size_t i = N; i < N + TAIL; i++)
			bf_mutable_add(&filter, hashes[i]);
		outcome = host_run(flatten, &operation, step);
		for (size_t i = 0; i < N + TAIL; i++)
			lost += !bf_mutable_contains(&filter, hashes[i]);
		CHECK(lost == 0, "%u keys lost by a sort that was canceled at step %u", lost, (unsigned) step);
		CHECK(step > 1 || outcome == HOST_FAULT, "nothing failed");
		bf_mutable_free(&filter);
	}
	free(hashes);
	host_clean();
}

/*
 * Adding keys to an empty filter that fails: the filter has no class until the
 * keys are added, whichever step fails.
 */
static void
test_class_of_failed_change(void)
{
	enum
	{
		N = 70000
	};
	uint64_t   *hashes = malloc(N * sizeof(uint64_t));

	for (size_t i = 0; i < N; i++)
		hashes[i] = next_random();
	for (unsigned cuckoo = 0; cuckoo < 2; cuckoo++)
	{
		bf_mutable	filter;
		Operation	operation = {.filter = &filter, .change = BF_ADD, .class = &key_classes[2], .hashes = hashes, .n = N};
		HostOutcome outcome = HOST_FAULT;

		if (cuckoo)
			bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(500, 0.01, 2), 500, 0.01);
		else
			bf_bloom_start(&filter.bloom, test_host, (bf_size) {bf_first_shape(500, 0.01, 2, 0), 500}, 0.01);
		for (uint64_t step = 1; outcome == HOST_FAULT; step++)
		{
			CHECK(filter.header.class.code == BF_CLASS_NONE && filter.header.class.name == NULL,
				  "a class after step %u failed", (unsigned) step - 1);
			outcome = host_run(change, &operation, step);
		}
		CHECK(outcome == HOST_DONE && filter.header.class.code == BF_CLASS_NAMED, "no class");
		CHECK(host_interrupted, "nothing failed");
		bf_mutable_free(&filter);
		host_clean();
	}
	free(hashes);
}

/*
 * A change that is predicted to leave the bytes unchanged does so.  For a Bloom filter
 * no other change does: keys that are present, absent, and in older layers.
 */
static void
test_void_changes(void)
{
	enum
	{
		N = 400, CHANGES = 300
	};
	uint64_t	hashes[N];
	unsigned	voids[2][5] = {{0}};
	unsigned	others[2][5] = {{0}};

	for (size_t i = 0; i < N; i++)
		hashes[i] = next_random();
	for (unsigned kind = 0; kind < 5; kind++)
	{
		bf_mutable	filter;
		bool		cuckoo = kind == 4;

		if (cuckoo)
			bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(20, 0.01, 2), 20, 0.01);
		else
		{
			unsigned	growth = kind == 0 ? 0 : kind == 1 ? 2 : 1;
			unsigned	max_layers = kind == 2 ? 3 : kind == 3 ? 2 : 0;

			bf_bloom_start(&filter.bloom, test_host, (bf_size) {bf_first_shape(60, 0.01, growth, max_layers), 60}, 0.01);
			filter.header.growth = (uint8_t) growth;
			filter.header.max_layers = (uint8_t) max_layers;
		}
		for (unsigned i = 0; i < CHANGES; i++)
		{
			bool		removes = cuckoo && next_random() % 2 == 0;
			size_t		n = 1 + next_random() % 3;
			size_t		range = i < CHANGES / 2 ? 2 + i : N - n;
			Operation	operation = {.filter = &filter, .change = removes ? BF_REMOVE : BF_ADD, .class = &key_classes[0],
			.hashes = hashes + next_random() % (range < N - n ? range : N - n), .n = n};
			Bytes		before = flat(&filter);
			bool		is_void = change_is_void(&operation, before);

			change_own(&operation);
			check_void(&operation, before, is_void);
			is_void ? voids[removes][kind]++ : others[removes][kind]++;
			for (size_t j = 0; j < n && !removes; j++)
				CHECK(bf_mutable_contains(&filter, operation.hashes[j]), "a key is lost");
			bytes_free(before);
		}
		bf_mutable_free(&filter);
		host_clean();
	}
	for (unsigned kind = 0; kind < 5; kind++)
	{
		bool		removes = kind == 4;

		CHECK(voids[removes][kind] > 10 && others[removes][kind] > 10, "kind %u: %u void, %u not", kind,
			  voids[removes][kind], others[removes][kind]);
	}
	CHECK(voids[0][4] == 0, "adding to a cuckoo filter counts");
}

/* The sum or difference of two cuckoo filters, given as bytes, in canonical form. */
static Bytes
combine_cuckoos(Bytes left, Bytes right, void (*combine) (void *), bool *possible)
{
	bf_mutable	result;
	bf_filter	a;
	bf_filter	b;
	Operation	operation = {.filter = &result, .other = &b, .flag = true, .answer = true};
	Bytes		bytes;

	open_valid(&a, left, BF_KIND_CUCKOO);
	open_valid(&b, right, BF_KIND_CUCKOO);
	bf_mutable_load(&result, test_host, &a);
	combine(&operation);
	*possible = operation.answer;
	bytes = flat(&result);
	bf_mutable_free(&result);
	return bytes;
}

static Bytes
cuckoo_of(const uint64_t *hashes, size_t n, uint64_t capacity, unsigned growth)
{
	bf_mutable	filter;
	Bytes		bytes;

	bf_cuckoo_start(&filter.cuckoo, test_host, bf_table_for(capacity, 0.01, growth), capacity, 0.01);
	filter.header.growth = (uint8_t) growth;
	bf_mutable_change(&filter, BF_ADD, &key_classes[0], hashes, n);
	bf_cuckoo_sort(&filter.cuckoo);
	bytes = flat(&filter);
	bf_mutable_free(&filter);
	return bytes;
}

/* Tests whether `a` has as many copies as `b` of the number of each hash. */
static bool
same_copies(const bf_filter *a, const bf_filter *b, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		uint64_t	number = bf_table_number(a->layer[0].table, hashes[i]);

		if (bf_layer_copies(&a->layer[0], number) != bf_layer_copies(&b->layer[0], number))
			return false;
	}
	return bf_layer_distinct(test_host, &a->layer[0]) == bf_layer_distinct(test_host, &b->layer[0]);
}

/*
 * Subtraction is the inverse of merging: for lists and tables, keys with several
 * copies, keys that both have, and tables that grow when merged.
 */
static void
test_subtraction(void)
{
	enum
	{
		N = 6000
	};
	uint64_t	hashes[N];
	unsigned	grown = 0;
	unsigned	same = 0;

	for (unsigned round = 0; round < 120; round++)
	{
		unsigned	growth = round % 3 == 0 ? 0 : 2;
		uint64_t	capacity = 1 + next_random() % (round % 4 == 0 ? 40 : 4000);
		size_t		n = next_random() % (N / 2);
		size_t		m = 1 + next_random() % (N / 2);
		bool		possible;
		bf_filter	was;
		bf_filter	is;
		Bytes		a;
		Bytes		b;
		Bytes		back;

		for (size_t i = 0; i < N; i++)
			hashes[i] = i > 0 && next_random() % 4 == 0 ? hashes[next_random() % i] : next_random();
		a = cuckoo_of(hashes, n, capacity, growth);
		b = cuckoo_of(hashes + N - m, m, capacity, growth);
		if (n == 0)
			continue;
		back = combine_cuckoos(combine_cuckoos(a, b, unite, &possible), b, subtract, &possible);
		CHECK(possible, "a part of the sum is not in it");
		open_valid(&was, a, BF_KIND_CUCKOO);
		open_valid(&is, back, BF_KIND_CUCKOO);
		CHECK(same_copies(&was, &is, hashes, N), "round %u: different copies", round);
		if (was.layer[0].capacity == is.layer[0].capacity)
		{
			same++;
			CHECK(bytes_equal(a, back), "round %u: different bytes", round);
		}
		else
			grown++;
		/* a filter minus itself is empty */
		back = combine_cuckoos(a, a, subtract, &possible);
		open_valid(&is, back, BF_KIND_CUCKOO);
		CHECK(possible && bf_filter_is_empty(&is), "round %u: not empty", round);
		/* keys that it does not contain cannot be subtracted */
		back = combine_cuckoos(a, combine_cuckoos(a, b, unite, &possible), subtract, &possible);
		CHECK(!possible && bytes_equal(a, back), "round %u: subtracted more than it contains", round);
		host_clean();
	}
	CHECK(grown > 5 && same > 5, "%u grew, %u did not", grown, same);

	/* a saturated count stays, and no smaller count contains it */
	for (size_t i = 0; i < 300; i++)
		hashes[i] = 5;
	{
		bool		possible;
		bf_filter	is;
		Bytes		many = cuckoo_of(hashes, 300, 10, 2);
		Bytes		few = cuckoo_of(hashes, 200, 10, 2);

		open_valid(&is, combine_cuckoos(many, few, subtract, &possible), BF_KIND_CUCKOO);
		CHECK(possible && bf_layer_copies(&is.layer[0], bf_table_number(is.layer[0].table, 5)) == BF_MAX_COUNT, "the saturated count changed");
		open_valid(&is, combine_cuckoos(many, many, subtract, &possible), BF_KIND_CUCKOO);
		CHECK(possible && bf_layer_copies(&is.layer[0], bf_table_number(is.layer[0].table, 5)) == BF_MAX_COUNT, "the saturated count changed");
		combine_cuckoos(few, many, subtract, &possible);
		CHECK(!possible, "subtracted more than it contains");
		open_valid(&is, combine_cuckoos(few, cuckoo_of(hashes, 199, 10, 2), subtract, &possible), BF_KIND_CUCKOO);
		CHECK(possible && bf_layer_copies(&is.layer[0], bf_table_number(is.layer[0].table, 5)) == 1, "not one copy left");
	}
	host_clean();
}

/* The finished filter of an aggregate in several parts, each of which may stay a list. */
static Bytes
aggregate_in_parts(const uint64_t *hashes, unsigned parts, size_t each, uint64_t capacity)
{
	bf_mutable	whole;
	Operation	operation = {.filter = &whole};

	bf_mutable_start_state(&whole, test_host, BF_KIND_BLOOM, capacity, 0.01);
	for (unsigned i = 0; i < parts; i++)
	{
		bf_mutable	part;
		bf_filter	state;
		Bytes		bytes;

		bf_mutable_start_state(&part, test_host, BF_KIND_BLOOM, capacity, 0.01);
		part.bloom.list_bound = 1024 * 1024;
		bf_mutable_set_class(&part, &key_classes[2]);
		for (size_t j = 0; j < each; j++)
			bf_mutable_add(&part, hashes[i * each + j]);
		bytes = flat(&part);
		open_valid(&state, bytes, BF_KIND_BLOOM);
		CHECK(state.layers == 1 && state.layer[0].shape.words == 0 && state.layer[0].capacity == capacity &&
			  state.layer[0].count == each, "%u hashes", state.layer[0].count);
		operation.other = &state;
		merge_state(&operation);
		bf_mutable_free(&part);
	}
	finish(&operation);
	bf_mutable_free(&whole);
	return operation.result;
}

/* Parts within the declared capacity give the same bytes as the whole, others meet the fpp. */
static void
test_partial_states(void)
{
	enum
	{
		PARTS = 70, EACH = 900, N = PARTS * EACH, CAPACITY = 1000
	};
	uint64_t   *hashes = malloc(N * sizeof(uint64_t));
	bf_filter	filter;

	for (size_t i = 0; i < N; i++)
		hashes[i] = next_random();
	for (uint64_t capacity = 0; capacity <= CAPACITY; capacity += CAPACITY)
		CHECK(bytes_equal(aggregate_in_parts(hashes, 20, 50, capacity), aggregate_in_parts(hashes, 1, 1000, capacity)),
			  "parts make other bytes");
	open_valid(&filter, aggregate_in_parts(hashes, PARTS, EACH, CAPACITY), BF_KIND_BLOOM);
	CHECK(holds(&filter, hashes, N), "a key is lost");
	CHECK(filter.layers <= 8 && bf_filter_census(&filter).fpp <= 0.02, "%u layers, fpp %g", filter.layers,
		  bf_filter_census(&filter).fpp);

	/* a single part with far more keys than declared */
	open_valid(&filter, aggregate_in_parts(hashes, 1, N, CAPACITY), BF_KIND_BLOOM);
	CHECK(holds(&filter, hashes, N) && bf_filter_census(&filter).fpp <= 0.02, "fpp %g", bf_filter_census(&filter).fpp);
	free(hashes);
	host_clean();
}

int
main(void)
{
	printf("core tests, seed %llu\n", (unsigned long long) SEED);
	test_golden_geometry();
	test_geometry_is_sane();
	test_space();
	test_fpp_is_met();
	test_lines_operations();
	test_census();
	test_lists();
	test_accumulator();
	test_drop_repetitions();
	test_base64();
	test_format_round_trip();
	test_format_rules();
	test_long_list_in_pieces();
	test_table_geometry();
	test_table_operations();
	test_table_load();
	test_changes_are_whole();
	test_removal_is_whole();
	test_long_removal();
	test_table_moves();
	test_cancelled_sort();
	test_class_of_failed_change();
	test_void_changes();
	test_subtraction();
	test_partial_states();
	printf("core: %d passed, %d failed\n", passed, failed);
	return failed > 0;
}
