/*
 * filter.c
 *		The filter of one join: which kind, how large, and whether it is of use.
 *
 * What is best is known when all keys are there.  Surrogate keys lie dense: a bit
 * for each integer between the least and the greatest is exact, smaller than a
 * Bloom filter and takes no hash.  Otherwise the keys go into lines, at one per cent:
 * the join itself drops what a filter lets pass, so a smaller probability would not
 * pay for its size.  Eleven bits a key of which four are set do that; the six of the
 * smallest possible filter would be more work for each key.
 */
#include "../compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../server.h"
#include "joinfilter.h"

#define FIRST_ROOM			1024
#define LINES_BITS_A_KEY	11

/*
 * A bitmap may have this number of bits a key: more than a Bloom filter, for being
 * exact.  One that fits the processor's cache may have any.
 */
#define BITMAP_BITS_A_KEY	64
#define SMALL_BITMAP_BITS	(UINT64CONST(8) * 128 * 1024)

/* A filter that lets more than this share of a sample pass is switched off. */
#define MOST_PASSED			0.8

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

/* Whole lines. */
static uint64
bytes_of_lines(uint64 keys)
{
	return (keys * LINES_BITS_A_KEY / BF_LINE_BITS + 1) * BF_LINE_BYTES;
}

/* Do the integers lie dense enough for a bit each? */
static bool
fits_bitmap(const JoinFilterBuild *build, uint64 *bits)
{
	uint64		span = (uint64) build->high - (uint64) build->low;

	if (!build->is_integer || span > (uint64) joinfilter_memory * 1024 / 2 * 8 - 64)
		return false;
	*bits = span + 1;
	return *bits <= SMALL_BITMAP_BITS || *bits / BITMAP_BITS_A_KEY <= build->numbers.n;
}

static void
make_bitmap(JoinFilter *filter, const JoinFilterBuild *build, uint64 bits)
{
	filter->kind = JOIN_FILTER_BITMAP;
	filter->bytes = (bits + 63) / 64 * sizeof(uint64);
	filter->bits = MemoryContextAllocExtended(build->context, filter->bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint64 i = 0; i < build->numbers.n; i++)
	{
		uint64		place = build->numbers.hashes[i] - (uint64) build->low;

		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		filter->bits[place / 64] |= UINT64CONST(1) << place % 64;
	}
}

/* The numbers are not needed any more: each becomes the hash that tells its line and bits. */
static void
make_lines(JoinFilter *filter, JoinFilterBuild *build)
{
	uint64	   *hashes = build->numbers.hashes;
	uint64		n = build->numbers.n;

	filter->kind = JOIN_FILTER_LINES;
	filter->bytes = bytes_of_lines(n);
	filter->lines = bf_allocate_zero(server_host(build->context), filter->bytes);
	for (uint64 start = 0; start < n; start += BF_BATCH)
	{
		uint64		end = Min(start + BF_BATCH, n);

		if (start % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		for (uint64 i = start; i < end; i++)
		{
			hashes[i] = bf_group_hash(hashes[i], 0);
			bf_prefetch(join_line(filter->lines, filter->bytes, hashes[i]));
		}
		for (uint64 i = start; i < end; i++)
			(void) bf_probes_set(join_line(filter->lines, filter->bytes, hashes[i]),
								 BF_LINE_BITS, JOIN_LINE_PROBES, (uint32) hashes[i]);
	}
}

/* All keys are there.  NULL if there were too many for a filter. */
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
 * Shared by the processes of a Parallel Hash
 * ----------------------------------------------------------------
 *
 * No outer row is read before all processes have built their part of the hash
 * table, so all keys are there when the first one is asked for.  How many there will
 * be is what the planner thinks; with many more the filter is of no use.
 */

#define SHARED_BITS_A_KEY	16
#define LEAST_PLANNED		1024
#define SURPLUS				4	/* times the planned keys is too much */

/* Signed numbers in the order of unsigned ones. */
#define ORDERED(number)		((uint64) (number) ^ (UINT64CONST(1) << 63))

static inline uint8 *
shared_bytes(JoinFilterShared *shared)
{
	return (uint8 *) shared + TYPEALIGN(BF_LINE_BYTES, sizeof(JoinFilterShared));
}

/* Describe the filter for a number of keys, within the memory that there may be. */
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
		while (shared->bytes * 8 < shared->planned * SHARED_BITS_A_KEY && shared->bytes * 2 <= most)
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

/* Take all keys out.  Its size stays: what settings say may have changed meanwhile. */
void
join_shared_empty(JoinFilterShared *shared)
{
	pg_atomic_init_u64(&shared->rows, 0);
	pg_atomic_init_u64(&shared->low, PG_UINT64_MAX);
	pg_atomic_init_u64(&shared->high, 0);
	memset(shared_bytes(shared), 0, shared->bytes);
}

/* Set a bit that others may set bits beside. */
static inline void
set_bit(uint8 *bytes, uint64 place)
{
	uint8		bit = (uint8) (1 << place % 8);

	if (!(bytes[place / 8] & bit))
		(void) __atomic_fetch_or(&bytes[place / 8], bit, __ATOMIC_RELAXED);
}

/* Add a key; least, greatest and number are kept in this process for now. */
void
join_shared_add(JoinFilterShared *shared, JoinFilterBuild *local, uint64 number)
{
	uint8	   *bytes = shared_bytes(shared);

	local->rows++;
	if (shared->is_integer)
	{
		uint64		place = number & shared->mask;

		local->low = Min(local->low, (int64) number);
		local->high = Max(local->high, (int64) number);
		set_bit(bytes, BF_BIG_ENDIAN ? place ^ 56 : place);
	}
	else
	{
		uint64		hash = bf_group_hash(number, 0);
		uint8	   *line = join_line(bytes, shared->bytes, hash);
		uint32_t	x = (uint32_t) hash;

		for (unsigned i = 0; i < JOIN_LINE_PROBES; i++, x *= BF_NEXT_PROBE)
			set_bit(line, bf_probe_position(x, BF_LINE_BITS));
	}
}

/* This process has added all of its keys. */
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

/* The filter of this process, to be opened when it is complete. */
JoinFilter *
join_shared_attach(JoinFilterShared *shared, MemoryContext context)
{
	JoinFilter *filter = MemoryContextAllocZero(context, sizeof(JoinFilter));

	filter->shared = shared;
	return filter;
}

/* It is asked for the first time, hence complete. */
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
		filter->kind = JOIN_FILTER_MODULAR;
		filter->bits = (uint64 *) shared_bytes(shared);
	}
	else
	{
		filter->kind = JOIN_FILTER_LINES;
		filter->lines = shared_bytes(shared);
	}
	filter->off = filter->keys > shared->planned * SURPLUS;
}

void
join_filter_release(JoinFilter *filter)
{
	if (filter->bits != NULL)
		pfree(filter->bits);
	if (filter->lines != NULL)
		bf_release(server_host(NULL), filter->lines);
	pfree(filter);
}

/* A sample has been asked: a filter that lets most of it pass costs more than it saves. */
void
join_filter_judge(JoinFilter *filter)
{
	if ((double) filter->passed > MOST_PASSED * (double) filter->asked)
		filter->off = true;
}

const char *
join_filter_kind_name(JoinFilterKind kind)
{
	switch (kind)
	{
		case JOIN_FILTER_EMPTY:
			return "empty";
		case JOIN_FILTER_BITMAP:
		case JOIN_FILTER_MODULAR:
			return "bitmap";
		case JOIN_FILTER_LINES:
			return "bloom";
	}
	return "";
}
