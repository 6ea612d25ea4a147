/*
 * filter.c
 *		The filter of one join: which kind, how large, and whether it is of use.
 *
 * What is best is known when all keys are there.  Surrogate keys lie dense: a bit
 * for each integer between the least and the greatest is exact, smaller than a
 * Bloom filter and takes no hash.  Otherwise the keys go into lines, at one per cent:
 * the join itself drops what a filter lets pass, so a smaller probability would not
 * pay for its size.
 */
#include "../compat.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "../core/hashlist.h"
#include "../server.h"
#include "joinfilter.h"

#define FIRST_ROOM			1024
#define LINES_FPP			0.01

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
	build->room = FIRST_ROOM;
	build->numbers = MemoryContextAlloc(context, build->room * sizeof(uint64));
}

/* There is no room for another number: make some, or give up. */
void
join_filter_make_room(JoinFilterBuild *build)
{
	if (build->given_up)
		return;
	if (build->room < build->most)
	{
		build->room = Min(build->room * 2, build->most);
		build->numbers = repalloc_huge(build->numbers, build->room * sizeof(uint64));
		return;
	}
	build->n = bf_hashes_sort_unique(server_host(NULL), build->numbers, build->n, build->sorted);
	build->sorted = build->n;
	if (build->n > build->room / 2)
	{
		build->given_up = true;
		pfree(build->numbers);
		build->numbers = NULL;
	}
}

/* Do the integers lie dense enough for a bit each? */
static bool
fits_bitmap(const JoinFilterBuild *build, uint64 *bits)
{
	uint64		span = (uint64) build->high - (uint64) build->low;

	if (!build->is_integer || span > (uint64) joinfilter_memory * 1024 / 2 * 8 - 64)
		return false;
	*bits = span + 1;
	return *bits <= SMALL_BITMAP_BITS || *bits / BITMAP_BITS_A_KEY <= build->n;
}

static void
make_bitmap(JoinFilter *filter, const JoinFilterBuild *build, uint64 bits)
{
	filter->kind = JOIN_FILTER_BITMAP;
	filter->bytes = (bits + 63) / 64 * sizeof(uint64);
	filter->bits = MemoryContextAllocExtended(build->context, filter->bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint64 i = 0; i < build->n; i++)
	{
		uint64		place = build->numbers[i] - (uint64) build->low;

		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		filter->bits[place / 64] |= UINT64CONST(1) << place % 64;
	}
}

static void
make_lines(JoinFilter *filter, const JoinFilterBuild *build)
{
	bf_host		host = server_host(build->context);
	uint64_t	keys_of_line;
	uint64		lines;

	(void) bf_shape_of_lines(1024, LINES_FPP, &keys_of_line);
	lines = build->n * 1024 / keys_of_line + 2;
	filter->kind = JOIN_FILTER_LINES;
	filter->shape = bf_shape_of_lines(lines, LINES_FPP, &keys_of_line);
	filter->bytes = lines * BF_LINE_BYTES;
	filter->lines = bf_allocate_zero(host, filter->bytes);
	(void) bf_lines_add_many(host, filter->lines, filter->shape, build->numbers, build->n);
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
	filter->keys = build->n;
	if (build->n == 0)
		filter->kind = JOIN_FILTER_EMPTY;
	else if (fits_bitmap(build, &bits))
		make_bitmap(filter, build, bits);
	else
		make_lines(filter, build);
	pfree(build->numbers);
	build->numbers = NULL;
	build->given_up = true;		/* nothing more can be added */
	return filter;
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
			return "bitmap";
		case JOIN_FILTER_LINES:
			return "bloom";
	}
	return "";
}
