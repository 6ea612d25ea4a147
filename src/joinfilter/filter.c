/*
 * filter.c
 *		Builds the filter of one join: its kind, its size, and whether it is useful.
 *
 * The kind is chosen when all keys are known.  Surrogate keys are dense: a bitmap of all
 * integers between the smallest and the largest key is exact, smaller than a Bloom filter,
 * and needs no hash.  Other keys go into the lines of a blocked Bloom filter with a
 * false-positive rate of 1%.  The join itself discards false positives, so a lower rate would not
 * pay for its size.  The lines have 11 bits per key, of which a key sets 4; the 6 of
 * the smallest filter with this rate would make each test slower.
 */
#include "../compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../server.h"
#include "joinfilter.h"

int			joinfilter_memory = 32 * 1024;

#define FIRST_ROOM			1024
#define LINES_BITS_PER_KEY	11

/*
 * A bitmap may have this many bits per key: more than a Bloom filter, because it is
 * exact.  A bitmap that fits into the processor's cache may have any number.
 */
#define BITMAP_BITS_PER_KEY	64
#define SMALL_BITMAP_BITS	(UINT64CONST(8) * 128 * 1024)

/* Integers that a bitmap does not fit are kept in a sorted list, too, if there are no more than this. */
#define MOST_SORTED			4096

/* A filter is switched off while more than this share of a sample passes it. */
#define MOST_PASSED			0.8

/*
 * A filter that is off is tested for a few rows from time to time: tables are often
 * stored in the order of a key, and then the rows that have no match come later.  The
 * number of rows without a test doubles each time, so that a useless filter costs little.
 */
#define RETRY_SAMPLE		64
#define FIRST_PAUSE			2048
#define LONGEST_PAUSE		16384

void
join_filter_start(JoinFilterBuild *build, MemoryContext context, bool is_integer)
{
	memset(build, 0, sizeof(*build));
	build->context = context;
	build->is_integer = is_integer;
	build->low = PG_INT64_MAX;
	build->high = PG_INT64_MIN;

	/* half of the memory for the keys, half for the filter */
	build->most = Max((uint64) joinfilter_memory * 1024 / 2 / sizeof(uint64), FIRST_ROOM);
	bf_accumulator_start(server_host(context), &build->numbers, FIRST_ROOM);
}

/* There is no room for another number: make some, or give up.  False if given up. */
bool
join_filter_make_room(JoinFilterBuild *build)
{
	if (!build->given_up && !bf_accumulator_make_room(server_host(NULL), &build->numbers, build->most))
	{
		build->given_up = true;
		bf_accumulator_free(server_host(NULL), &build->numbers);
	}
	return !build->given_up;
}

/* The size of the lines for a number of keys. */
static uint64
bytes_of_lines(uint64 keys)
{
	return (keys * LINES_BITS_PER_KEY / BF_LINE_BITS + 1) * BF_LINE_BYTES;
}

/* Are the keys dense enough for a bitmap?  Sets its number of bits. */
static bool
fits_bitmap(const JoinFilterBuild *build, uint64 *bits)
{
	uint64		span = (uint64) build->high - (uint64) build->low;

	if (!build->is_integer || span > (uint64) joinfilter_memory * 1024 / 2 * 8 - 64)
		return false;
	*bits = span + 1;
	return *bits <= SMALL_BITMAP_BITS || *bits / BITMAP_BITS_PER_KEY <= build->numbers.n;
}

static void
make_bitmap(JoinFilter *filter, const JoinFilterBuild *build, uint64 bits)
{
	filter->kind = JOIN_FILTER_BITMAP;
	filter->base = (uint64) build->low;
	filter->mask = PG_UINT64_MAX;
	filter->bytes = (bits + 63) / 64 * sizeof(uint64);
	filter->bits = MemoryContextAllocExtended(build->context, filter->bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint64 i = 0; i < build->numbers.n; i++)
	{
		uint64		place = build->numbers.hashes[i] - filter->base;

		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		filter->bits[place / 64] |= UINT64CONST(1) << place % 64;
	}
}

static int
compare_integers(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return (x > y) - (x < y);
}

static void
make_lines(JoinFilter *filter, const JoinFilterBuild *build)
{
	uint64		n = build->numbers.n;

	filter->kind = JOIN_FILTER_LINES;
	filter->bytes = bytes_of_lines(n);
	filter->lines = bf_allocate_zero(server_host(build->context), filter->bytes);
	(void) bf_lines_add_batches(server_host(NULL), filter->lines, join_lines_shape(filter->bytes), build->numbers.hashes, n);
	if (filter->is_integer && n <= MOST_SORTED)
	{
		filter->sorted = MemoryContextAlloc(build->context, sizeof(int64) * n);
		memcpy(filter->sorted, build->numbers.hashes, sizeof(int64) * n);
		qsort(filter->sorted, n, sizeof(int64), compare_integers);
	}
}

/* Build the filter when all keys are collected; returns NULL if there were too many. */
JoinFilter *
join_filter_finish(JoinFilterBuild *build)
{
	JoinFilter *filter;
	uint64		bits;

	if (build->given_up)
		return NULL;
	filter = MemoryContextAllocZero(build->context, sizeof(JoinFilter));
	filter->is_integer = build->is_integer;
	filter->low = build->low;
	filter->high = build->high;
	filter->keys = build->numbers.n;
	join_filter_begin(filter, false);
	if (build->numbers.n == 0)
		filter->kind = JOIN_FILTER_EMPTY;
	else if (fits_bitmap(build, &bits))
		make_bitmap(filter, build, bits);
	else
		make_lines(filter, build);
	bf_accumulator_free(server_host(NULL), &build->numbers);
	build->given_up = true;		/* nothing more can be added */
	return filter;
}

/* ----------------------------------------------------------------
 * Filters shared by the processes of a Parallel Hash
 * ----------------------------------------------------------------
 *
 * No outer row is read before all processes have built their part of the hash table, so
 * the filter is complete when it is first tested.  It is sized for the number of keys that
 * the planner estimates.  With many more keys it would let most rows pass, and is switched off at first.
 */

#define SHARED_BITS_PER_KEY	16
#define LEAST_PLANNED		1024
#define MOST_SURPLUS		4	/* a filter with more than this times the
								 * planned keys is off at first */

/* Map signed numbers to unsigned numbers of the same order, and back. */
#define ORDERED(number)		((uint64) (number) ^ (UINT64CONST(1) << 63))

static inline uint8 *
shared_bytes(JoinFilterShared *shared)
{
	return (uint8 *) shared + TYPEALIGN(BF_LINE_BYTES, sizeof(JoinFilterShared));
}

/* Choose the size for a number of keys, within the memory limit. */
static void
shared_describe(JoinFilterShared *shared, bool is_integer, uint64 planned)
{
	uint64		most = (uint64) joinfilter_memory * 1024 / 2;

	memset(shared, 0, sizeof(*shared));
	shared->is_integer = is_integer;
	shared->planned = Max(planned, LEAST_PLANNED);
	if (is_integer)
	{
		shared->bytes = SMALL_BITMAP_BITS / 8;
		while (shared->bytes > most)
			shared->bytes /= 2;
		while (shared->bytes * 8 < shared->planned * SHARED_BITS_PER_KEY && shared->bytes * 2 <= most)
			shared->bytes *= 2;
		shared->mask = shared->bytes * 8 - 1;
	}
	else
		shared->bytes = Min(bytes_of_lines(shared->planned), most / BF_LINE_BYTES * BF_LINE_BYTES);
}

Size
join_shared_size(bool is_integer, uint64 planned)
{
	JoinFilterShared shared;

	shared_describe(&shared, is_integer, planned);
	return TYPEALIGN(BF_LINE_BYTES, sizeof(JoinFilterShared)) + shared.bytes;
}

void
join_shared_start(JoinFilterShared *shared, bool is_integer, uint64 planned)
{
	shared_describe(shared, is_integer, planned);
	join_shared_empty(shared);
}

/* Remove all keys.  The size stays the same, even if the memory limit has changed. */
void
join_shared_empty(JoinFilterShared *shared)
{
	pg_atomic_init_u64(&shared->rows, 0);
	pg_atomic_init_u64(&shared->low, PG_UINT64_MAX);
	pg_atomic_init_u64(&shared->high, 0);
	memset(shared_bytes(shared), 0, shared->bytes);
}

/* Add a key.  The smallest and largest key and their number are kept in this process until it has finished. */
void
join_shared_add(JoinFilterShared *shared, JoinFilterBuild *local, uint64 number)
{
	local->rows++;
	if (shared->is_integer)
	{
		uint64		place = number & shared->mask;

		local->low = Min(local->low, (int64) number);
		local->high = Max(local->high, (int64) number);
		bf_bit_set_shared(shared_bytes(shared), BF_BIG_ENDIAN ? place ^ 56 : place);
	}
	else
		bf_lines_add_shared(shared_bytes(shared), join_lines_shape(shared->bytes), number);
}

/* Publish what join_shared_add() kept in this process, which has added all of its keys. */
void
join_shared_finish(JoinFilterShared *shared, const JoinFilterBuild *local)
{
	uint64		seen = pg_atomic_read_u64(&shared->low);

	while (ORDERED(local->low) < seen && !pg_atomic_compare_exchange_u64(&shared->low, &seen, ORDERED(local->low)))
		;
	seen = pg_atomic_read_u64(&shared->high);
	while (ORDERED(local->high) > seen && !pg_atomic_compare_exchange_u64(&shared->high, &seen, ORDERED(local->high)))
		;
	pg_atomic_fetch_add_u64(&shared->rows, (int64) local->rows);
}

/* Make a handle of this process to a filter that is not complete yet. */
JoinFilter *
join_shared_attach(JoinFilterShared *shared, MemoryContext context)
{
	JoinFilter *filter = MemoryContextAllocZero(context, sizeof(JoinFilter));

	filter->shared = shared;
	return filter;
}

/* Read what kind of filter it is when it is first tested, and so complete. */
void
join_shared_open(JoinFilter *filter)
{
	JoinFilterShared *shared = filter->shared;

	filter->shared = NULL;
	filter->is_integer = shared->is_integer;
	filter->keys = pg_atomic_read_u64(&shared->rows);
	filter->bytes = shared->bytes;
	filter->low = (int64) ORDERED(pg_atomic_read_u64(&shared->low));
	filter->high = (int64) ORDERED(pg_atomic_read_u64(&shared->high));
	filter->mask = shared->mask;
	if (filter->keys == 0)
		filter->kind = JOIN_FILTER_EMPTY;
	else if (shared->is_integer)
	{
		filter->kind = JOIN_FILTER_BITMAP;
		filter->bits = (uint64 *) shared_bytes(shared);
	}
	else
	{
		filter->kind = JOIN_FILTER_LINES;
		filter->lines = shared_bytes(shared);
	}
	join_filter_begin(filter, filter->keys > shared->planned * MOST_SURPLUS);
}

void
join_filter_release(JoinFilter *filter)
{
	if (filter->bits != NULL)
		pfree(filter->bits);
	if (filter->lines != NULL)
		bf_release(server_host(NULL), filter->lines);
	if (filter->sorted != NULL)
		pfree(filter->sorted);
	pfree(filter);
}

/* Begin to test a filter, or to leave it out. */
void
join_filter_begin(JoinFilter *filter, bool off)
{
	filter->pause = !off ? 0 : filter->off ? Min(filter->pause * 2, LONGEST_PAUSE) : FIRST_PAUSE;
	filter->off = off;
	filter->untested = filter->pause;
	filter->judged_tested = filter->tested;
	filter->judged_passed = filter->passed;
	filter->judge_at = filter->tested + (off ? RETRY_SAMPLE : JOIN_FILTER_SAMPLE);
}

/*
 * Switch a filter off if most rows since the last call passed: testing it costs more than it
 * saves.  Otherwise switch it on again.
 */
void
join_filter_judge(JoinFilter *filter)
{
	const double tested = (double) (filter->tested - filter->judged_tested);
	const double passed = (double) (filter->passed - filter->judged_passed);

	join_filter_begin(filter, passed > MOST_PASSED * tested);
}

/* The kind as EXPLAIN shows it. */
const char *
join_filter_kind_name(JoinFilterKind kind)
{
	return kind == JOIN_FILTER_EMPTY ? "empty" : kind == JOIN_FILTER_BITMAP ? "bitmap" : "bloom";
}
