/*
 * geometry.c
 *		Sizing: (capacity, probability) -> lines, groups, probes.
 *
 * The filters are blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash-
 * and Space-Efficient Bloom Filters", 2007).  The blocks are called lines: they
 * are cache lines of 512 bits.  A key sets `probes` bits in each of `groups` lines.
 *
 * With all probes of a group in one line, a test is one memory access instead of
 * seven.  This costs space because lines fill unevenly: with `load` keys per line
 * on average, the number of keys in a line has a Poisson distribution, and the
 * false positives of crowded lines outweigh what sparse ones save.  The formula of
 * a classic Bloom filter misses the target (0.0115 instead of 0.01), so the sum
 * over the distribution is computed here.
 *
 * More groups reduce the unevenness at the price of a memory access each.  The
 * thresholds below keep every filter within 6.5% of the space of a classic Bloom
 * filter (computed for p = 0.5 .. 1e-9):
 *
 *		p		classic bits/key	here (groups x probes)
 *		0.1		4.81				4.84  (1 x 3)
 *		0.01	9.59				9.92  (1 x 6)
 *		0.001	14.38				14.63 (2 x 5)
 *		1e-6	28.76				29.75 (3 x 6)
 *		1e-9	43.13				45.01 (4 x 7)
 *
 * The same capacity and probability must give the same geometry on every platform,
 * or filters from two machines could not be merged.  So this file uses only
 * + - * / on doubles and no libm, is compiled without fused operations, and
 * searches for the largest load on an integer grid; the number of lines is then
 * computed in integers.
 */
#include "geometry.h"

/* Loads are searched and kept in units of 1/1024 key per line. */
#define LOAD_UNIT		1024

/*
 * From this number on, line counts are rounded up to a multiple of 2^j with
 * 128 <= lines / 2^j < 256.  A filter can then be folded to half its size j
 * times.  Rounding costs at most 1/128 of the space.
 */
#define FOLDABLE_LINES	256

/* Higher targets are sized like this one; see poisson_fpp. */
#define LOOSEST_FPP		0.7

static double
power(double base, uint64_t exponent)
{
	double		result = 1.0;

	for (; exponent > 0; exponent >>= 1)
	{
		if (exponent & 1)
			result *= base;
		base *= base;
	}
	return result;
}

/* e^-x for x >= 0: the Taylor series of x/1024, raised to the power of 1024. */
static double
exp_minus(double x)
{
	double		term = 1.0;
	double		sum = 1.0;

	x /= 1024;
	for (int i = 1; i < 12; i++)
	{
		term *= -x / i;
		sum += term;
	}
	return power(sum, 1024);
}

/*
 * Probability that `probes` independent positions are all set in a line of
 * `bits` bits after `set` independent positions were set in it.
 *
 * The number of bits set has mean m(1-(1-1/m)^s) and a variance that matters:
 * E[fill^k] exceeds E[fill]^k by about k(k-1)/2 times fill's relative variance.
 */
static double
line_fpp(double bits, double clear, double clear2, unsigned probes)
{
	double		fill = 1.0 - clear;
	double		variance = (clear + (bits - 1) * clear2) / bits - clear * clear;
	double		excess = 0.5 * probes * (probes - 1.0) * variance / (fill * fill);

	return power(fill, probes) * (1.0 + (excess > 0 ? excess : 0));
}

/* False-positive probability of one line that holds exactly `keys` keys. */
static double
single_line_fpp(unsigned bits, uint64_t keys, unsigned probes)
{
	double		fpp;

	if (keys == 0)
		return 0.0;
	fpp = line_fpp(bits, power(1.0 - 1.0 / bits, keys * probes),
				   power(1.0 - 2.0 / bits, keys * probes), probes);
	return fpp < 1.0 ? fpp : 1.0;
}

/*
 * False-positive probability of one group when lines hold `load` keys on
 * average: the sum over the Poisson distribution of a line's keys.  Loads above
 * 700, where e^-load underflows, do not occur when sizing because of LOOSEST_FPP;
 * otherwise such lines are saturated.
 */
static double
poisson_fpp(double load, unsigned probes)
{
	const double clear_step = power(1.0 - 1.0 / BF_LINE_BITS, probes);
	const double clear2_step = power(1.0 - 2.0 / BF_LINE_BITS, probes);
	double		weight = exp_minus(load);
	double		total = weight;
	double		clear = 1.0;
	double		clear2 = 1.0;
	double		fpp = 0.0;

	if (load > 700)
		return 1.0;
	for (unsigned keys = 1; keys < 2 * load || total < 1.0 - 1e-9; keys++)
	{
		weight *= load / keys;
		clear *= clear_step;
		clear2 *= clear2_step;
		total += weight;
		fpp += weight * line_fpp(BF_LINE_BITS, clear, clear2, probes);
		if (keys > load && weight < 1e-18)
			break;
	}
	return fpp < 1.0 ? fpp : 1.0;
}

/* The largest load, in LOAD_UNITs, that keeps `groups` groups within fpp. */
static uint64_t
largest_load(double fpp, unsigned groups, unsigned probes)
{
	uint64_t	low = 0;		/* always permissible */
	uint64_t	high = 700 * LOAD_UNIT;

	while (high - low > 1)
	{
		uint64_t	middle = (low + high) / 2;

		if (power(poisson_fpp((double) middle / LOAD_UNIT, probes), groups) <= fpp)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The best number of probes for a target, and its load. */
typedef struct solution
{
	double		fpp;
	unsigned	groups;
	uint8_t		probes;
	uint64_t	load;
} solution;

/*
 * Find the best number of probes for a target, and its load.  The search takes
 * about a millisecond, so the results of the last targets are kept: a query with
 * GROUP BY sizes a filter for every group.
 */
static void
solve_load(double fpp, unsigned groups, uint8_t *probes, uint64_t *load)
{
	static solution memo[8];
	static unsigned next = 0;

	for (unsigned i = 0; i < 8; i++)
	{
		if (memo[i].load > 0 && memo[i].fpp == fpp && memo[i].groups == groups)
		{
			*probes = memo[i].probes;
			*load = memo[i].load;
			return;
		}
	}

	*load = 0;
	for (unsigned k = 1; k <= BF_MAX_PROBES; k++)
	{
		uint64_t	candidate = largest_load(fpp, groups, k);

		if (candidate > *load)
		{
			*load = candidate;
			*probes = (uint8_t) k;
		}
	}
	memo[next] = (solution) {fpp, groups, *probes, *load};
	next = (next + 1) % 8;
}

static unsigned
groups_for(double fpp)
{
	return fpp >= 2e-3 ? 1 : fpp >= 1e-5 ? 2 : fpp >= 1e-8 ? 3 : 4;
}

/* Round a number of lines up to one that can be folded. */
static uint64_t
foldable(uint64_t lines)
{
	uint64_t	unit = 1;

	while (lines / unit >= FOLDABLE_LINES)
		unit *= 2;
	return (lines + unit - 1) / unit * unit;
}

/*
 * Choose the geometry for `capacity` keys at probability `fpp`, 0 < fpp < 1.
 *
 * The size is not limited here: the caller compares it with BF_MAX_BYTES and can
 * report both.
 */
bf_shape
bf_shape_for(uint64_t capacity, double fpp)
{
	bf_shape	shape;
	uint64_t	load;

	if (capacity < 1)
		capacity = 1;
	if (capacity > BF_MAX_CAPACITY)
		capacity = BF_MAX_CAPACITY;
	if (fpp < BF_MIN_FPP)
		fpp = BF_MIN_FPP;
	if (fpp > LOOSEST_FPP)
		fpp = LOOSEST_FPP;
	shape.groups = (uint8_t) groups_for(fpp);

	/*
	 * Few keys fit one line or a part of one.  Its load is known exactly, and
	 * all groups use it: it is a classic Bloom filter of groups x probes hash
	 * functions.  Take the shortest line that meets the target, and the
	 * number of probes with the fewest false positives.
	 */
	for (unsigned words = 1; words <= BF_LINE_WORDS && capacity <= BF_LINE_BITS; words++)
	{
		double		best = fpp;

		shape.probes = 0;
		for (unsigned k = 1; k <= BF_MAX_PROBES; k++)
		{
			double		got = single_line_fpp(words * 64, capacity, shape.groups * k);

			if (got <= best)
			{
				best = got;
				shape.probes = (uint8_t) k;
			}
		}
		if (shape.probes > 0)
		{
			shape.words = words;
			return shape;
		}
	}

	solve_load(fpp, shape.groups, &shape.probes, &load);
	shape.words = (capacity * shape.groups * LOAD_UNIT + load - 1) / load;
	if (shape.words < 2)
		shape.words = 2;
	shape.words = foldable(shape.words) * BF_LINE_WORDS;
	return shape;
}

/*
 * The shape of `lines` lines in which every key uses a single line, even if that
 * costs space, and the number of keys that they hold within fpp.
 */
bf_shape
bf_shape_of_lines(uint64_t lines, double fpp, uint64_t *capacity)
{
	bf_shape	shape = {lines * BF_LINE_WORDS, 1, 0};
	uint64_t	load;

	solve_load(fpp, 1, &shape.probes, &load);
	*capacity = lines * load / LOAD_UNIT;
	return shape;
}

/* The number of keys that a shape holds before it exceeds fpp. */
uint64_t
bf_shape_capacity(bf_shape shape, double fpp)
{
	uint64_t	low = 0;
	uint64_t	high = shape.words * 64 * 2;

	while (high - low > 1)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (bf_shape_fpp(shape, middle) <= fpp)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * The expected number of bits set in a shape that holds `keys`.  A layer is full
 * when it has as many, which depends on its contents alone and is the same on every
 * platform.
 */
uint64_t
bf_shape_bits_set(bf_shape shape, uint64_t keys)
{
	unsigned	bits = bf_shape_line_bits(shape);
	double		lines = (double) bf_shape_lines(shape);
	double		clear;

	if (shape.words <= BF_LINE_WORDS)
		clear = power(1.0 - 1.0 / bits, keys * shape.groups * shape.probes);
	else
	{
		/* the mean over the Poisson distribution of a line's keys */
		double		load = (double) keys * shape.groups / lines;
		double		exponent = load * (1.0 - power(1.0 - 1.0 / bits, shape.probes));

		clear = exponent < 700 ? exp_minus(exponent) : 0.0;
	}
	return (uint64_t) (lines * bits * (1.0 - clear));
}

/* The expected false-positive probability of a shape that holds `keys`. */
double
bf_shape_fpp(bf_shape shape, uint64_t keys)
{
	if (shape.words <= BF_LINE_WORDS)
		return single_line_fpp(bf_shape_line_bits(shape), keys, shape.groups * shape.probes);
	return power(poisson_fpp((double) keys * shape.groups / (double) bf_shape_lines(shape),
							 shape.probes), shape.groups);
}
