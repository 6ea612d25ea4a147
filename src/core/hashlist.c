/*
 * hashlist.c
 *		Sorting, searching and storing lists of 64-bit key hashes.
 *
 * Hashes are uniform over 64 bits.  The radix sort relies on that for buckets of
 * even size, and the searches for their interpolation; neither needs it to be
 * correct.  With crafted hashes the sort takes at most 64 passes and a search takes
 * a bisection.
 */
#include "hashlist.h"

/* Arrays shorter than this are sorted by insertion. */
#define SHORT_PIECE		32
#define MAX_RADIX_BITS	12

/* So is a sorted array to which at most this number was appended. */
#define FEW_MORE		4

/* Sort n hashes, the first `sorted` of which are in order. */
static void
hashes_insertion_sort(uint64_t *hashes, size_t n, size_t sorted)
{
	for (size_t i = sorted; i < n; i++)
	{
		uint64_t	hash = hashes[i];
		size_t		j = i;

		for (; j > 0 && hashes[j - 1] > hash; j--)
			hashes[j] = hashes[j - 1];
		hashes[j] = hash;
	}
}

/*
 * The bits of one pass.  The bits that distinguish n hashes are split evenly over
 * as few passes as possible: a pass with many buckets misses the cache, and so
 * does every further pass.
 */
static unsigned
radix_width(size_t n)
{
	unsigned	width = 1;

	while (width < 2 * MAX_RADIX_BITS && (n >> width) > 1)
		width++;
	return width <= MAX_RADIX_BITS ? width : (width + 1) / 2;
}

/* The number of upper bits that are the same in all hashes. */
static unsigned
common_bits(const uint64_t *hashes, size_t n)
{
	uint64_t	differ = 0;
	unsigned	bits = 0;

	for (size_t i = 1; i < n; i++)
		differ |= hashes[i] ^ hashes[0];
	while (bits < 64 && (differ >> (63 - bits) & 1) == 0)
		bits++;
	return bits;
}

/*
 * Sort in place by radix, the top bits first: count the buckets, swap every
 * element into its bucket, then sort each bucket by the next bits.  Bits that are
 * the same in all elements are skipped, since numbers of a cuckoo filter start with
 * zeros and a key may be repeated.  All levels share the table `next`, so that at
 * most 13 tables of 16 KB are on the stack.
 *
 * Swaps are independent of one another, unlike in a chain that moves each displaced
 * element to its place.  No element is ever missing from the array, so a poll may
 * raise an error.
 */
static void
hashes_radix_sort(bf_host host, uint64_t *hashes, size_t n, uint32_t *next)
{
	uint32_t	end[1 << MAX_RADIX_BITS];
	uint32_t	largest = 0;
	unsigned	bits;
	unsigned	width;
	unsigned	shift;
	unsigned	buckets;

	if (n < SHORT_PIECE)
	{
		hashes_insertion_sort(hashes, n, 1);
		return;
	}
	bits = common_bits(hashes, n);
	if (bits == 64)
		return;					/* all equal */
	if (n >= BF_POLL_EVERY)
		bf_poll(host);

	width = radix_width(n);
	if (width > 64 - bits)
		width = 64 - bits;
	shift = 64 - bits - width;
	buckets = 1U << width;
#define BUCKET(hash)	((unsigned) ((hash) >> shift) & (buckets - 1))

	memset(end, 0, buckets * sizeof(end[0]));
	for (size_t i = 0; i < n; i++)
		end[BUCKET(hashes[i])]++;
	for (uint32_t b = 0, sum = 0; b < buckets; b++)
	{
		next[b] = sum;
		largest = end[b] > largest ? end[b] : largest;
		sum += end[b];
		end[b] = sum;
	}
	for (unsigned b = 0; b < buckets; b++)
	{
		if (n >= BF_POLL_EVERY)
			bf_poll(host);
		/* elements that swaps bring here are processed in the next round */
		while (next[b] < end[b])
		{
			for (size_t i = next[b]; i < end[b]; i++)
			{
				uint64_t	hash = hashes[i];
				uint32_t	home = next[BUCKET(hash)]++;

				hashes[i] = hashes[home];
				hashes[home] = hash;
			}
		}
	}
#undef BUCKET
	if (largest < SHORT_PIECE)
	{
		/* every element is near its place */
		hashes_insertion_sort(hashes, n, 1);
		return;
	}
	for (size_t b = 0, start = 0; b < buckets; b++)
	{
		if (n >= BF_POLL_EVERY)
			bf_poll(host);
		hashes_radix_sort(host, hashes + start, end[b] - start, next);
		start = end[b];
	}
}

void
bf_hashes_sort(bf_host host, uint64_t *hashes, size_t n)
{
	uint32_t	next[1 << MAX_RADIX_BITS];

	hashes_radix_sort(host, hashes, n, next);
}

/*
 * Drop repetitions from a sorted array; returns how many hashes remain.  If a poll
 * raises an error, no hash is lost.
 */
static size_t
hashes_unique(bf_host host, uint64_t *hashes, size_t n)
{
	size_t		kept = 0;

	for (size_t i = 0; i < n; i++)
	{
		if (kept == 0 || hashes[kept - 1] != hashes[i])
			hashes[kept++] = hashes[i];
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(host);
	}
	return kept;
}

/*
 * Sort and drop repetitions; the first `sorted` hashes are sorted and distinct
 * already.  Often all are, because a window frame calls the final function for
 * every row.
 */
size_t
bf_hashes_sort_unique(bf_host host, uint64_t *hashes, size_t n, size_t sorted)
{
	if (sorted == n)
		return n;
	if (n - sorted <= FEW_MORE && n < BF_POLL_EVERY)
		hashes_insertion_sort(hashes, n, sorted);
	else
		bf_hashes_sort(host, hashes, n);
	return hashes_unique(host, hashes, n);
}

/* Bits of the bitmap that counts distinct hashes: 8 KB. */
#define BITMAP_BITS		65536

/*
 * Are at least three quarters of the hashes certainly distinct?  At least as many
 * are as have different upper bits, which a bitmap counts in a tenth of the time
 * that sorting takes.
 */
static bool
hashes_mostly_distinct(const uint64_t *hashes, size_t n)
{
	uint64_t	seen[BITMAP_BITS / 64];
	unsigned	bits = 6;
	size_t		distinct = 0;

	if (n > BITMAP_BITS / 8)
		return false;
	while (((size_t) 1 << bits) < n * 8)
		bits++;
	memset(seen, 0, ((size_t) 1 << bits) / 8);
	for (size_t i = 0; i < n; i++)
	{
		uint64_t	place = hashes[i] >> (64 - bits);
		uint64_t	bit = UINT64_C(1) << place % 64;

		distinct += (seen[place / 64] & bit) == 0;
		seen[place / 64] |= bit;
	}
	return distinct >= n - n / 4;
}

/*
 * Sort and drop repetitions if these are more than a quarter, and return how many
 * hashes remain.  Otherwise leave the array as it is, and return 0.
 */
size_t
bf_hashes_drop_repetitions(bf_host host, uint64_t *hashes, size_t n)
{
	uint64_t   *sorted;
	size_t		distinct;

	if (hashes_mostly_distinct(hashes, n))
		return 0;
	sorted = memcpy(bf_allocate(host, sizeof(uint64_t) * (uint64_t) n), hashes, sizeof(uint64_t) * n);
	distinct = bf_hashes_sort_unique(host, sorted, n, 0);
	if (distinct < n - n / 4)
		memcpy(hashes, sorted, sizeof(uint64_t) * distinct);
	else
		distinct = 0;
	bf_release(host, sorted);
	return distinct;
}

/* ----------------------------------------------------------------
 * Searching
 * ----------------------------------------------------------------
 *
 * There are two searches, for lists in memory and for lists that are fetched in
 * pieces.  Both guess the place of a number by interpolation, which finds
 * uniform numbers in one or two steps, and bisect if the guesses fail.
 */

/* Entry of a list in memory: native, or little-endian at any address. */
static bf_inline uint64_t
entry_at(const uint8_t *list, size_t place, bool native)
{
	uint64_t	entry;

	if (!native)
		return bf_load64(list + place * 8);
	memcpy(&entry, list + place * 8, sizeof(entry));
	return entry;
}

/*
 * The place of the first of n entries that is not less than the number; n if all
 * are.  Without a branch that depends on the entries.
 */
static bf_inline size_t
bisect(const uint8_t *list, size_t n, uint64_t number, bool native)
{
	size_t		place = 0;

	while (n > 1)
	{
		size_t		half = n / 2;

		place += entry_at(list, place + half - 1, native) < number ? half : 0;
		n -= half;
	}
	return place + (n == 1 && entry_at(list, place, native) < number);
}

/* After two guesses, this number of entries around the place are compared. */
#define NEAR			32

/* The place of a hash in a list in memory, or n if it is not there. */
static bf_inline size_t
find_in_memory(const uint8_t *list, size_t n, uint64_t hash, bool native)
{
	size_t		low = 0;
	size_t		high = n;
	size_t		place;
	uint64_t	distance;
	int64_t		guess;

	if (n == 0)
		return n;
	place = (size_t) bf_scale64(hash, n);
	distance = hash - entry_at(list, place, native);
	if (distance == 0)
		return place;

	/* a signed distance: no processor predicts on which side the hash is */
	guess = (int64_t) (place + bf_scale64(distance, n) - ((distance >> 63) != 0 ? n : 0));
	guess = guess < (int64_t) n ? guess : (int64_t) n - 1;
	place = (size_t) (guess > 0 ? guess : 0);
	for (unsigned i = 0; i < NEAR && entry_at(list, place, native) < hash && place + 1 < n; i++)
		place++;
	for (unsigned i = 0; i < NEAR && entry_at(list, place, native) > hash && place > 0; i++)
		place--;
	if (entry_at(list, place, native) == hash)
		return place;
	if (entry_at(list, place, native) < hash)
		low = place + 1;
	else
		high = place;
	/* the neighbour usually shows that the hash is absent */
	if (low < n && low > 0 && entry_at(list, low, native) > hash && entry_at(list, low - 1, native) < hash)
		return n;
	place = low + bisect(list + low * 8, high - low, hash, native);
	return place < high && entry_at(list, place, native) == hash ? place : n;
}

/* The place of a hash in a sorted array, or n if it is not there. */
size_t
bf_hashes_find(const uint64_t *hashes, size_t n, uint64_t hash)
{
	return find_in_memory((const uint8_t *) hashes, n, hash, true);
}

/* Is the hash in a stored list that is in memory? */
bool
bf_list_find(const uint8_t *list, size_t n, uint64_t hash)
{
	return find_in_memory(list, n, hash, false) < n;
}

/* Entries that are fetched together: half a TOAST chunk. */
#define WINDOW			128

/* The expected number of entries in a range of numbers, at most `most`. */
static uint64_t
expected_entries(uint64_t distance, double density, uint64_t most)
{
	double		entries = (double) distance * density;

	return entries < (double) most ? (uint64_t) entries : most;
}

/*
 * The place of a number in a list of n uniform numbers up to `largest`, or n if
 * it is not there.  The list starts at `offset` of what is fetched from.
 *
 * The first window is guessed from the whole list and the next one from the
 * numbers in the first; the second nearly always has the number.  After four guesses
 * the list is bisected, so that no list is slow.  A list that is out of order can
 * hide a number, but leads to no access outside of it.
 */
uint64_t
bf_list_search(bf_fetch fetch, void *arg, uint64_t offset, uint64_t n, uint64_t number, uint64_t largest)
{
	uint64_t	low = 0;		/* the number, if present, is in [low, high) */
	uint64_t	high = n;
	double		density = (double) n / ((double) largest + 1.0);
	uint64_t	guess = expected_entries(number, density, high);

	for (unsigned guesses = 1; low < high; guesses++)
	{
		uint64_t	start = guess > low + WINDOW / 2 ? guess - WINDOW / 2 : low;
		size_t		length;
		const uint8_t *window;
		uint64_t	first;
		uint64_t	last;

		if (start + WINDOW > high)
			start = high > low + WINDOW ? high - WINDOW : low;
		length = high - start < WINDOW ? (size_t) (high - start) : WINDOW;
		window = fetch(arg, offset + start * 8, length * 8);
		first = bf_load64(window);
		last = bf_load64(window + (length - 1) * 8);
		if (number >= first && number <= last)
		{
			size_t		place = bisect(window, length, number, false);

			return place < length && bf_load64(window + place * 8) == number ? start + place : n;
		}
		if (number < first)
		{
			high = start;
			guess = high - expected_entries(first - number, density, high - low);
		}
		else
		{
			low = start + length;
			guess = low + expected_entries(number - last, density, high - low);
		}
		if (guesses >= 4)
			guess = low + (high - low) / 2;
	}
	return n;
}

const uint8_t *
bf_fetch_from_memory(void *arg, uint64_t offset, size_t n)
{
	(void) n;
	return (const uint8_t *) arg + offset;
}

/* ----------------------------------------------------------------
 * Lists as they are stored
 * ----------------------------------------------------------------
 */

/* Is the list strictly ascending? */
bool
bf_list_is_sorted(bf_host host, const uint8_t *list, size_t n)
{
	for (size_t i = 1; i < n; i++)
	{
		if (bf_load64(list + (i - 1) * 8) >= bf_load64(list + i * 8))
			return false;
		if (i % BF_POLL_EVERY == 0)
			bf_poll(host);
	}
	return true;
}

void
bf_list_read(uint64_t *hashes, const uint8_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hashes[i] = bf_load64(list + i * 8);
}

void
bf_list_write(uint8_t *list, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bf_store64(list + i * 8, hashes[i]);
}
