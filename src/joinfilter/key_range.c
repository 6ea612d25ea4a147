/*
 * key_range.c
 *		Which ranges of integers contain keys of a filter.
 *
 * A scan needs this to skip whole partitions and pages.  A bitmap has a bit for every
 * integer.  For a Bloom filter of few integers, a sorted list of them is kept; for one of
 * many, only the smallest and the largest key are known.  All results are conservative: a
 * range that is reported to contain no key contains none.
 */
#include "../compat.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "joinfilter.h"

/* Gaps between keys are looked for in at most this many steps. */
#define MOST_STEPS	65536

/* Find the least key between two integers, which are not beyond the smallest and the largest key. */
static bool
next_key(const JoinFilter *filter, int64 from, int64 to, int64 *key)
{
	uint64		left = (uint64) to - (uint64) from;

	if (filter->sorted != NULL)
	{
		uint64		first = 0;
		uint64		end = filter->keys;

		while (first < end)
		{
			uint64		middle = (first + end) / 2;

			if (filter->sorted[middle] < from)
				first = middle + 1;
			else
				end = middle;
		}
		if (first == filter->keys || filter->sorted[first] > to)
			return false;
		*key = filter->sorted[first];
		return true;
	}
	if (filter->kind != JOIN_FILTER_BITMAP)
	{
		*key = from;
		return true;
	}
	for (uint64 at = 0; at <= left;)
	{
		uint64		place = ((uint64) from + at - filter->base) & filter->mask;
		uint64		word = filter->bits[place / 64] >> place % 64;

		if (word != 0)
		{
			at += (uint64) pg_rightmost_one_pos64(word);
			*key = (int64) ((uint64) from + at);
			return at <= left;
		}
		at += 64 - place % 64;
	}
	return false;
}

/* Can there be a key between two integers, both included? */
bool
join_filter_has_between(JoinFilter *filter, int64 low, int64 high)
{
	int64		key;

	if (filter->shared != NULL)
		join_shared_open(filter);
	if (filter->kind == JOIN_FILTER_EMPTY)
		return false;
	if (!filter->is_integer)
		return true;
	low = Max(low, filter->low);
	high = Min(high, filter->high);
	return low <= high && next_key(filter, low, high, &key);
}

/* Keep a gap between keys if it is among the n largest. */
static void
keep_gap(JoinKeyRange *gaps, int *count, int n, JoinKeyRange gap)
{
	int			smallest = 0;

	if (*count < n)
	{
		gaps[(*count)++] = gap;
		return;
	}
	for (int i = 1; i < n; i++)
	{
		if ((uint64) gaps[i].high - (uint64) gaps[i].low < (uint64) gaps[smallest].high - (uint64) gaps[smallest].low)
			smallest = i;
	}
	if (n > 0 && (uint64) gap.high - (uint64) gap.low > (uint64) gaps[smallest].high - (uint64) gaps[smallest].low)
	{
		/* the others keep their order */
		memmove(&gaps[smallest], &gaps[smallest + 1], sizeof(JoinKeyRange) * (n - 1 - smallest));
		gaps[n - 1] = gap;
	}
}

/*
 * Find at most n ranges that contain all keys of a filter, separated by the largest gaps
 * between keys.  Returns their number; -1 if nothing is known about the keys.
 */
int
join_filter_ranges(JoinFilter *filter, JoinKeyRange *ranges, int n)
{
	JoinKeyRange gaps[JOIN_MOST_RANGES];
	int			count = 0;
	uint64		step;
	int64		key;

	Assert(n > 0 && n <= JOIN_MOST_RANGES);
	if (filter->shared != NULL)
		join_shared_open(filter);
	if (filter->kind == JOIN_FILTER_EMPTY)
		return 0;
	if (!filter->is_integer)
		return -1;
	ranges[0] = (JoinKeyRange) {filter->low, filter->high};

	/* the gaps of a bitmap of residues are short in a wide range */
	if (filter->kind == JOIN_FILTER_BITMAP && filter->mask != PG_UINT64_MAX &&
		((uint64) filter->high - (uint64) filter->low) / 16 > filter->mask)
		return 1;
	step = ((uint64) filter->high - (uint64) filter->low) / MOST_STEPS;
	key = filter->low;
	while ((uint64) filter->high - (uint64) key > step)
	{
		int64		end = (int64) ((uint64) key + step);
		int64		next;

		CHECK_FOR_INTERRUPTS();
		if (!next_key(filter, end + 1, filter->high, &next))
			break;
		if (next > end + 1)
			keep_gap(gaps, &count, n - 1, (JoinKeyRange) {end + 1, next - 1});
		key = next;
	}
	for (int i = 0; i < count; i++)
	{
		ranges[i].high = gaps[i].low - 1;
		ranges[i + 1].low = gaps[i].high + 1;
	}
	ranges[count].high = filter->high;
	return count + 1;
}
