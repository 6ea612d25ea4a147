/*
 * theory.c
 *		Measures false positives of the core with keys that were not added, and
 *		computes what the formulas predict: the figures and charts of docs/theory.md.
 *
 *	theory [positives] fpp fill ...
 *
 *	fpp		measured rate relative to the target, of filters made in four ways
 *	fill	false-positive rate while a filter fills, and beyond its capacity
 *	groups	bits per key relative to a classic filter, by the number of lines per key
 *	growth	layers, bits and time of filters that grew
 *	hash	false positives caused by a hash of 32 bits; time of hash functions
 *
 * `positives`: the expected number of false positives in a measurement (default 400, for a
 * standard error of 5%).  Prints CSV: group, series, x, value, unit.
 */
#define XXH_INLINE_ALL
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "../src/core/growth.h"
#include "../src/core/lines.h"
#include "host.h"

#define KEYS	100000
#define BATCH	1024

static const double targets[] = {0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6};

#define TARGETS	(sizeof(targets) / sizeof(targets[0]))

static void
print(const char *group, const char *series, double x, double value, const char *unit)
{
	printf("%s,\"%s\",%g,%.6g,%s\n", group, series, x, value, unit);
	fflush(stdout);
}

/* Bits per key of a classic Bloom filter: 1 / ln 2 for each halving of the rate. */
static double
classic_bits(double fpp)
{
	return log2(1 / fpp) / log(2);
}

static uint64_t sink;			/* keeps results from being optimized out */
static double wanted = 400;		/* false positives in a measurement */

/* Number of lookups for that; at least as many as for 1e-4. */
static uint64_t
enough(double fpp)
{
	return (uint64_t) (wanted / fmin(fpp, 1e-4)) / BATCH * BATCH + BATCH;
}

/* The share of keys that are reported although they were not added. */
static double
measure(const bf_filter *filter, uint64_t lookups)
{
	static uint64_t hashes[BATCH];
	static bool found[BATCH];
	uint64_t	positives = 0;

	for (uint64_t i = 0; i < lookups; i += BATCH)
	{
		for (unsigned j = 0; j < BATCH; j++)
			hashes[j] = hash_of(OTHERS + i + j);
		bf_filter_contains_many(filter, hashes, BATCH, found);
		for (unsigned j = 0; j < BATCH; j++)
			positives += found[j];
	}
	return (double) positives / (double) lookups;
}

static void
add_all(bf_mutable *made, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		bf_mutable_add(made, hash_of(i));
}

/* A filter of fixed size. */
static void
start_bloom(bf_mutable *made, uint64_t capacity, double fpp)
{
	bf_bloom_start(&made->bloom, host, (bf_size) {bf_shape_for(capacity, fpp), capacity}, fpp);
	made->header.growth = 0;
}

static void
start_cuckoo(bf_mutable *made, uint64_t capacity, double fpp)
{
	bf_cuckoo_start(&made->cuckoo, host, bf_table_for(capacity, fpp, 0), capacity, fpp);
	made->header.growth = 0;
}

/* As bloom_new(1024, fpp) makes it. */
static void
start_small(bf_mutable *made, double fpp)
{
	bf_bloom_start(&made->bloom, host, (bf_size) {bf_first_shape(1024, fpp, BF_DEFAULT_GROWTH, 0), 1024}, fpp);
}

/* ----------------------------------------------------------------
 * Measured rate relative to the target
 * ----------------------------------------------------------------
 */

/* One line per key, sized by the formula for bits anywhere. */
static double
measure_naive(double fpp)
{
	unsigned	best = (unsigned) lround(log2(1 / fpp));
	bf_shape	shape = {0, 1, (uint8_t) (best < 1 ? 1 : best > BF_MAX_PROBES ? BF_MAX_PROBES : best)};
	uint64_t	lookups = enough(fpp) / 4;	/* it has more false positives */
	uint64_t	positives = 0;
	uint8_t    *lines;

	shape.words = (uint64_t) ceil(KEYS * classic_bits(fpp) / BF_LINE_BITS) * BF_LINE_WORDS;
	lines = allocate(shape.words * 8);
	for (uint64_t i = 0; i < KEYS; i++)
		bf_lines_add(lines, shape, hash_of(i));
	for (uint64_t i = 0; i < lookups; i++)
		positives += bf_lines_test(lines, shape, hash_of(OTHERS + i));
	free(lines);
	return (double) positives / (double) lookups;
}

static void
show_fpp(void)
{
	for (unsigned i = 0; i < TARGETS; i++)
	{
		double		fpp = targets[i];
		const char *const names[] = {"bloom", "cuckoo", "bloom, grown from 1024 keys"};

		for (unsigned way = 0; way < 3; way++)
		{
			bf_mutable	made;
			bf_filter	filter;
			uint8_t    *bytes;

			if (way == 0)
				start_bloom(&made, KEYS, fpp);
			else if (way == 1)
				start_cuckoo(&made, KEYS, fpp);
			else
				start_small(&made, fpp);
			add_all(&made, KEYS);
			bytes = seal(&made, &filter);
			print("charts: fpp", names[way], fpp, measure(&filter, enough(fpp)) / fpp, "times the target");
			free(bytes);
		}
		print("charts: fpp", "blocked, textbook size", fpp, measure_naive(fpp) / fpp, "times the target");
	}
}

/* ----------------------------------------------------------------
 * While a filter fills
 * ----------------------------------------------------------------
 */

static void
show_fill(void)
{
	bf_shape	shape = bf_shape_for(KEYS, 0.01);
	bf_table	table = bf_table_for(KEYS, 0.01, 0);
	double		bits = (double) shape.words * 64;
	unsigned	probes = (unsigned) shape.groups * shape.probes;

	for (unsigned tenth = 2; tenth <= 20; tenth += 2)
	{
		uint64_t	keys = (uint64_t) KEYS * tenth / 10;
		double		x = tenth * 10;

		for (unsigned way = 0; way < 2; way++)
		{
			bf_mutable	made;
			bf_filter	filter;
			uint8_t    *bytes;

			if (way == 0)
				start_bloom(&made, KEYS, 0.01);
			else
				start_cuckoo(&made, KEYS, 0.01);
			add_all(&made, keys);
			bytes = seal(&made, &filter);
			print("theory: fill", way == 0 ? "bloom measured" : "cuckoo measured", x, 100 * measure(&filter, (uint64_t) (25 * wanted) * BATCH), "%");
			free(bytes);
		}
		print("theory: fill", "bloom predicted", x, 100 * bf_shape_fpp(shape, keys), "%");
		print("theory: fill", "bloom textbook", x, 100 * pow(1 - exp(-(double) (keys * probes) / bits), probes), "%");
		print("theory: fill", "cuckoo predicted", x, 100 * (double) keys / (double) bf_table_range(table), "%");
	}
}

/* ----------------------------------------------------------------
 * Lines and groups
 * ----------------------------------------------------------------
 */

static void
show_groups(void)
{
	for (double power = 1; power < 9.1; power += 0.5)
	{
		double		fpp = pow(10, -power);
		const char *const names[] = {"one line per key", "two lines per key", "three lines per key", "four lines per key"};

		for (uint8_t groups = 1; groups <= BF_MAX_GROUPS; groups++)
		{
			uint64_t	most = 0;

			for (uint8_t probes = 1; probes <= BF_MAX_PROBES; probes++)
			{
				uint64_t	keys = bf_shape_capacity((bf_shape) {(uint64_t) 65536 * BF_LINE_WORDS, groups, probes}, fpp);

				most = keys > most ? keys : most;
			}
			print("theory: groups", names[groups - 1], fpp, 65536.0 * BF_LINE_BITS / (double) most / classic_bits(fpp), "times classic");
		}
		print("theory: groups", "chosen", fpp, (double) bf_shape_for(10000000, fpp).words * 64 / 1e7 / classic_bits(fpp), "times classic");
	}
}

/* ----------------------------------------------------------------
 * Growth
 * ----------------------------------------------------------------
 */

/* Nanoseconds per absent key; each lookup depends on the result of the previous one. */
static double
time_miss(const bf_filter *filter)
{
	double		best = INFINITY;

	for (int round = 0; round < 3; round++)
	{
		uint64_t	key = OTHERS;
		double		start = now();

		for (int i = 0; i < 1000000; i++)
			key += 1 + bf_filter_contains(filter, hash_of(key));
		best = fmin(best, (now() - start) / 1000000);
	}
	return best;
}

static void
show_growth(void)
{
	const uint64_t n = 1000000;
	const char *const names[] = {"made to size", "one by one", "a thousand at a time", "all at once"};
	uint64_t   *hashes = malloc(n * sizeof(uint64_t));

	for (uint64_t i = 0; i < n; i++)
		hashes[i] = hash_of(i);
	for (unsigned way = 0; way < 4; way++)
	{
		uint64_t	step = way == 1 ? 1 : way == 2 ? 1000 : n;
		bf_mutable	made;
		bf_filter	filter;
		uint8_t    *bytes;

		if (way == 0)
			start_bloom(&made, n, 0.01);
		else
			start_small(&made, 0.01);

		/*
		 * bf_bloom_add_many sizes the next layer for all remaining keys of
		 * the call
		 */
		for (uint64_t i = 0; i < n; i += step)
			bf_bloom_add_many(&made.bloom, hashes + i, (size_t) step);
		bytes = seal(&made, &filter);
		print("theory: growth", names[way], 1, filter.layers, "layers");
		print("theory: growth", names[way], 2, (double) bf_filter_size(&filter) * 8 / (double) n, "bits per key");
		print("theory: growth", names[way], 3, 100 * measure(&filter, (uint64_t) (25 * wanted) * BATCH), "% false positives");
		print("theory: growth", names[way], 4, time_miss(&filter), "ns per miss");
		free(bytes);
	}
	free(hashes);
}

/* ----------------------------------------------------------------
 * Hashes
 * ----------------------------------------------------------------
 */

/* A hash folded to 32 bits and mixed again: the lost bits stay lost. */
static uint64_t
folded(uint64_t hash)
{
	return bf_mix64((uint32_t) (hash ^ hash >> 32));
}

static uint64_t
fnv(const uint8_t *bytes, size_t n)
{
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void
show_hash(void)
{
	static const size_t lengths[] = {8, 16, 36, 100};
	uint8_t		pool[1024 + 100];

	for (unsigned i = 0; i < sizeof(pool); i++)
		pool[i] = (uint8_t) hash_of(i);

	for (uint64_t n = 100000; n <= 10000000; n *= 10)
	{
		bf_shape	shape = bf_shape_for(n, 1e-6);
		uint8_t    *lines[2] = {allocate(shape.words * 8), allocate(shape.words * 8)};
		uint64_t	positives[2] = {0, 0};
		const uint64_t lookups = (uint64_t) (125000 * wanted);

		for (uint64_t i = 0; i < n; i++)
		{
			bf_lines_add(lines[0], shape, hash_of(i));
			bf_lines_add(lines[1], shape, folded(hash_of(i)));
		}
		for (uint64_t i = 0; i < lookups; i++)
		{
			positives[0] += bf_lines_test(lines[0], shape, hash_of(OTHERS + i));
			positives[1] += bf_lines_test(lines[1], shape, folded(hash_of(OTHERS + i)));
		}
		print("theory: hash", "64 bits", (double) n, (double) positives[0] / (double) lookups, "false positives");
		print("theory: hash", "32 bits", (double) n, (double) positives[1] / (double) lookups, "false positives");
		free(lines[0]);
		free(lines[1]);
	}
	for (unsigned i = 0; i < 4; i++)
	{
		double		best[3] = {INFINITY, INFINITY, INFINITY};

		for (int round = 0; round < 5; round++)
		{
			for (unsigned which = 0; which < 3; which++)
			{
				double		start = now();

				uint64_t	hash = 0;

				/* each hash determines the next key */
				for (int j = 0; j < 1000000; j++)
				{
					const uint8_t *key = pool + hash % 1024;

					hash = which == 0 ? XXH3_64bits(key, lengths[i]) : which == 1 ? XXH64(key, lengths[i], 0) : fnv(key, lengths[i]);
				}
				sink += hash;
				best[which] = fmin(best[which], (now() - start) / 1000000);
			}
		}
		print("theory: hash", "XXH3", (double) lengths[i], best[0], "ns");
		print("theory: hash", "XXH64", (double) lengths[i], best[1], "ns");
		print("theory: hash", "FNV-1a", (double) lengths[i], best[2], "ns");
	}
}

int
main(int argc, char **argv)
{
	static const struct
	{
		const char *name;
		void		(*show) (void);
	}			shows[] = {{"fpp", show_fpp}, {"fill", show_fill}, {"groups", show_groups}, {"growth", show_growth}, {"hash", show_hash}};

	for (int i = 1; i < argc; i++)
	{
		if (strtod(argv[i], NULL) > 0)
			wanted = strtod(argv[i], NULL);
		for (unsigned j = 0; j < sizeof(shows) / sizeof(shows[0]); j++)
		{
			if (strcmp(argv[i], shows[j].name) == 0)
				shows[j].show();
		}
	}
	return sink == 42 ? 1 : 0;
}
