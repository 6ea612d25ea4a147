/*
 * alternatives.c
 *		Compares the core's filters with other structures at the same target.
 *
 *	alternatives [keys ...]		default: 1000000 10000000
 *
 * Measures bytes per key; nanoseconds to add (or build), to look up present and absent
 * keys, and to delete; false positives; and keys that are lost when half of them are
 * deleted.  Prints CSV: group, structure, keys, value, unit.
 */
#include "alternatives.h"

#define PROBES	1000000
#define ROUNDS	3

static const structure all[] = {
	{.name = "bloom (ours)", .make = bloom_make, .add = core_add, .finish = core_finish, .contains = core_contains, .delete = NULL},
	{.name = "cuckoo (ours)", .make = cuckoo_make, .add = core_add, .finish = core_finish, .contains = core_contains, .delete = cuckoo_delete},
	{.name = "classic Bloom", .make = classic_make, .add = classic_add, .finish = NULL, .contains = classic_contains, .delete = NULL},
	{.name = "counting Bloom, 4 bits", .make = counting_make, .add = counting_add, .finish = NULL, .contains = counting_contains, .delete = counting_delete},
	{.name = "two Bloom filters", .make = pair_make, .add = classic_add, .finish = NULL, .contains = pair_contains, .delete = pair_delete},
	{.name = "d-left counting", .make = dleft_make, .add = dleft_add, .finish = NULL, .contains = dleft_contains, .delete = dleft_delete},
	{.name = "binary fuse, 8 bits", .make = fuse_make, .add = fuse_add, .finish = fuse_finish, .contains = fuse_contains, .delete = NULL}
};

#define STRUCTURES	(sizeof(all) / sizeof(all[0]))

enum
{
	BYTES, ADD, MISS, HIT, DELETE, POSITIVES, LOST, FIGURES
};

static const char *const units[FIGURES] = {
	"bytes per key", "ns to add", "ns per miss", "ns per hit", "ns to delete", "% false positives", "% of the keys lost after half were deleted"
};

/* Each lookup depends on the result of the previous one.  The better of two turns; the first warms the caches. */
static double
time_lookups(const structure * s, uint64_t base, uint64_t step, uint64_t modulus)
{
	double		best = INFINITY;

	for (int turn = 0; turn < 2; turn++)
	{
		uint64_t	key = 0;
		double		start = now();

		for (int i = 0; i < PROBES; i++)
			key = (key + step + s->contains(s, hash_of(base + key))) % modulus;
		best = fmin(best, (now() - start) / PROBES);
	}
	return best;
}

static void
run(structure s, uint64_t n, double *best)
{
	uint64_t	found = 0;
	uint64_t	lost = 0;
	double		start;
	double		figure[FIGURES] = {0};

	s.n = n;
	s.make(&s);
	start = now();
	for (uint64_t i = 0; i < n; i++)
		s.add(&s, hash_of(i));
	if (s.finish != NULL)
		s.finish(&s);
	figure[ADD] = (now() - start) / (double) n;
	figure[BYTES] = (double) s.bytes / (double) n;
	figure[MISS] = time_lookups(&s, OTHERS, 1, OTHERS);
	figure[HIT] = time_lookups(&s, 0, n / 7 * 2, n);
	for (uint64_t i = 0; i < 4 * PROBES; i++)
		found += s.contains(&s, hash_of(OTHERS + i));
	figure[POSITIVES] = 100 * (double) found / (4 * PROBES);
	for (uint64_t i = 0; i < n; i++)
		lost += !s.contains(&s, hash_of(i));
	if (lost > 0)
		fprintf(stderr, "%s lost keys\n", s.name);
	if (s.delete != NULL)
	{
		s.added = 0;
		start = now();
		for (uint64_t i = 0; i < n / 2; i++)
			s.delete(&s, hash_of(i));
		figure[DELETE] = (now() - start) / (double) (n / 2);
		if (s.delete == cuckoo_delete)
		{
			free(s.data[0]);
			s.data[0] = seal(&s.made, &s.filter);
		}
		for (uint64_t i = n / 2; i < n; i++)
			lost += !s.contains(&s, hash_of(i));
		figure[LOST] = 100 * (double) lost / (double) (n - n / 2);
	}
	for (int i = 0; i < FIGURES; i++)
		best[i] = fmin(best[i], figure[i]);
	free(s.data[0]);
	free(s.data[1]);
	free(s.keys);
}

static void
run_all(uint64_t n)
{
	double		best[STRUCTURES][FIGURES];

	for (unsigned i = 0; i < STRUCTURES; i++)
	{
		for (int j = 0; j < FIGURES; j++)
			best[i][j] = INFINITY;
	}
	for (int round = 0; round < ROUNDS; round++)
	{
		for (unsigned i = 0; i < STRUCTURES; i++)
			run(all[i], n, best[i]);
	}
	for (unsigned i = 0; i < STRUCTURES; i++)
	{
		for (int j = 0; j < FIGURES; j++)
		{
			if (all[i].delete != NULL || (j != DELETE && j != LOST))
				printf("theory: alternatives,\"%s\",%llu,%.3g,%s\n", all[i].name, (unsigned long long) n, best[i][j], units[j]);
		}
	}
}

int
main(int argc, char **argv)
{
	if (argc < 2)
	{
		run_all(1000000);
		run_all(10000000);
	}
	for (int i = 1; i < argc; i++)
		run_all(strtoull(argv[i], NULL, 10));
	return 0;
}
