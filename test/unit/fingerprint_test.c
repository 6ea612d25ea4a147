/*
 * fingerprint_test.c
 *		Tests of the fingerprint index's addresses and page encoding, without a server.
 *
 * Sizes that no test server can have, tables of terabytes and indexes of billions of rows, are
 * tested here.  Functions of the server that are not called are left undefined.
 */
#include "../../src/fingerprint/fingerprint.h"

#undef Assert
#define Assert(condition)	((condition) ? (void) 0 : abort())

#include "../../src/fingerprint/fp_address.c"
#include "../../src/fingerprint/fp_page.c"

static int	passed = 0;
static int	failed = 0;

#undef printf
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

#define SEED	UINT64CONST(20261118)

static uint64 random_state = SEED;

static uint64
next_random(void)
{
	uint64		x = random_state += UINT64CONST(0x9E3779B97F4A7C15);

	x = (x ^ (x >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

/* As in the server. */
void
PageInit(Page page, Size size, Size special)
{
	memset(page, 0, size);
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData;
	((PageHeader) page)->pd_upper = ((PageHeader) page)->pd_special = (LocationIndex) (size - special);
}

/* A step moves an entry to the newest bucket of its group, or not at all. */
static void
test_moves(void)
{
	for (FpStep step = 0; step < FP_GROUP * FP_MAX_LEVEL; step++)
	{
		for (int i = 0; i < 20000; i++)
		{
			uint64		hash = next_random();
			uint32		before = fp_bucket(hash, step, NULL);
			uint32		after = fp_bucket(hash, step + 1, NULL);
			uint32		group = (uint32) (hash & ((UINT64CONST(1) << fp_level(step)) - 1));

			if (before != after)
			{
				CHECK(after == fp_bucket_of(group, fp_level(step), FP_GROUP + step % FP_GROUP), "step %u", step);
				CHECK(fp_origin(after).step == step + 1, "step %u", step);
			}
			if (after >= fp_buckets_at(step + 1, 0) || fp_group_of(after, fp_level(step + 1)) !=
				(hash & ((UINT64CONST(1) << fp_level(step + 1)) - 1)))
				CHECK(false, "bucket %u at step %u is not one of its group", after, step);
		}
	}
}

/* The step that a group has taken when an index has grown to this size, as fp_hint has it. */
static FpStep
step_at(uint64 position, uint32 group)
{
	FpStep		step = 0;

	while (position >= UINT64CONST(1) << fp_level(step))
		position -= UINT64CONST(1) << fp_level(step++);
	return step + ((group & ((UINT64CONST(1) << fp_level(step)) - 1)) < position ? 1 : 0);
}

/*
 * A process that knows the index as it was long ago finds the bucket of a hash from one bucket to
 * the next, as fp_locate does, and never looks for a bucket that does not exist yet.
 */
static void
test_old_hints(void)
{
	for (int i = 0; i < 300000; i++)
	{
		uint64		hash = next_random();
		uint64		now = next_random() >> (46 + next_random() % 18);
		FpStep		step = step_at(next_random() % (now + 1), (uint32) hash);
		FpStep		taken = step_at(now, (uint32) hash);

		for (unsigned tries = 0; fp_bucket(hash, step, NULL) != fp_bucket(hash, taken, NULL); tries++)
		{
			uint32		bucket = fp_bucket(hash, step, NULL);
			FpStep		of_bucket = step_at(now, 0);

			/* the bucket's group is that of its level, or of the next one */
			of_bucket = step_at(now, fp_group_of(bucket, fp_level(of_bucket)));
			step = fp_step_shown(hash, bucket, of_bucket);
			if (step > taken || tries > FP_GROUP * FP_MAX_LEVEL)
			{
				CHECK(false, "bucket %u shows step %u, but the group has taken %u", bucket, step, taken);
				break;
			}
		}
		passed++;
	}
}

/* What decides are the tag and the bits up to the level: others do not matter. */
static void
test_bits(void)
{
	for (int i = 0; i < 100000; i++)
	{
		uint64		hash = next_random();
		FpStep		step = (FpStep) (next_random() % (FP_GROUP * FP_MAX_LEVEL));
		uint64		known = ((UINT64CONST(2) << fp_level(step)) - 1) | PG_UINT64_MAX << FP_TAG_SHIFT;

		CHECK(fp_bucket(hash, step, NULL) == fp_bucket(hash & known, step, NULL), "step %u", step);
	}
}

/* All buckets of an index have about the same number of entries, whatever its step. */
static void
test_balance(void)
{
	for (FpStep step = 0; step <= 6 * FP_GROUP; step++)
	{
		uint32		buckets = fp_buckets_at(step, 0);
		unsigned   *counts = calloc(buckets, sizeof(unsigned));
		double		mean = 4000;
		double		worst = 0;

		for (uint64 i = 0; i < mean * buckets; i++)
			counts[fp_bucket(next_random(), step, NULL)]++;
		for (uint32 i = 0; i < buckets; i++)
			worst = Max(worst, Max(counts[i], mean) - Min(counts[i], mean));

		/*
		 * five standard deviations of a fair choice, and half of one for the
		 * tags
		 */
		CHECK(worst < 5.5 * 63.2, "step %u: a bucket is off by %.0f of %.0f", step, worst, mean);
		free(counts);
	}
}

/* Buckets are numbered without gaps, and so are extents; each bucket has one place. */
static void
test_extents(void)
{
	unsigned	last = 0;
	uint32		covered = 0;

	for (uint32 bucket = 0; bucket < UINT32_C(1) << 20; bucket++)
	{
		uint32		offset;
		uint32		size;
		unsigned	extent = fp_extent(bucket, &offset, &size);

		CHECK(size == fp_extent_size(extent), "bucket %u", bucket);
		if (offset == 0)
		{
			CHECK(bucket == covered && (bucket == 0 || extent == last + 1), "bucket %u", bucket);
			covered += size;
		}
		if (extent != (offset == 0 ? extent : last) || bucket != covered - size + offset)
			CHECK(false, "bucket %u is not in its place", bucket);
		last = extent;
	}
	for (unsigned level = 0; level <= FP_MAX_LEVEL; level++)
	{
		uint32		offset;
		uint32		size;
		uint32		bucket = fp_bucket_of((UINT32_C(1) << level) - 1, level, 2 * FP_GROUP - 1);

		CHECK(fp_extent(bucket, &offset, &size) < FP_MAX_EXTENTS, "level %u", level);
		CHECK(offset == size - 1, "level %u", level);
		CHECK(bucket + 1 == fp_buckets_at((level + 1) * FP_GROUP, 0), "level %u", level);
	}
}

/* Entries of any size are what they were, as far as their hashes are known. */
static void
test_pages(void)
{
	static union
	{
		char		data[BLCKSZ];
		uint64		aligned;
	}			block;
	static FpEntry entries[FP_CAPACITY];
	Page		page = block.data;

	for (int round = 0; round < 300; round++)
	{
		unsigned	n = 0;
		unsigned	level = (unsigned) (next_random() % (FP_MAX_LEVEL + 1));
		uint64		base = next_random() & ((UINT64CONST(1) << level) - 1);
		unsigned	block_bits = (unsigned) (next_random() % 33);
		unsigned	offset_bits = 1 + (unsigned) (next_random() % 16);

		fp_init_page(page, FP_OVERFLOW, 0);
		while (fp_room(page) > 0)
		{
			FpEntry		entry;
			uint16		found[FP_CAPACITY];
			bool		is_found = false;

			/* addresses grow, so that the page is encoded anew now and then */
			entry.hash = (next_random() & ~((UINT64CONST(1) << level) - 1)) | base;
			entry.block = (BlockNumber) (next_random() & ((UINT64CONST(1) << (n * block_bits / FP_CAPACITY + 1)) - 1));
			entry.offset = (OffsetNumber) (1 + next_random() % ((1 << offset_bits) - 1));
			if (!fp_make_fit(page, &entry, FP_TAG_SHIFT, level) || fp_room(page) == 0)
				break;
			fp_append(page, &entry);
			entries[n++] = entry;
			for (unsigned i = fp_match(page, entry.hash, found); i-- > 0;)
				is_found |= found[i] == n - 1;
			CHECK(is_found, "entry %u of round %d", n - 1, round);
			if (next_random() % 16 == 0)
			{
				unsigned	victim = (unsigned) (next_random() % n);

				fp_remove(page, victim);
				entries[victim] = entries[--n];
			}
			CHECK(fp_count(page) == n, "%u and not %u", fp_count(page), n);
		}
		CHECK(n > 600, "only %u entries fit a page", n);
		for (unsigned i = 0; i < n; i++)
		{
			FpEntry		entry = fp_get(page, i, base);
			unsigned	high = Max(fp_header(page)->high_bit, level);
			uint64		known = ((UINT64CONST(1) << high) - 1) | PG_UINT64_MAX << FP_TAG_SHIFT;

			CHECK(entry.block == entries[i].block && entry.offset == entries[i].offset &&
				  entry.hash == (entries[i].hash & known), "entry %u of round %d", i, round);
		}
		CHECK(fp_header(page)->high_bit > level, "no bits are left in round %d", round);
	}
}

int
main(void)
{
	printf("seed %llu\n", (unsigned long long) SEED);
	test_moves();
	test_old_hints();
	test_bits();
	test_balance();
	test_extents();
	test_pages();
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
