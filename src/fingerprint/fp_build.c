/*
 * fp_build.c
 *		Building a fingerprint index from a table.
 *
 * The size of the index follows from the number of rows, so the hashes and addresses of
 * all rows are collected first: in memory as far as half of maintenance_work_mem
 * suffices, otherwise in a temporary file.  Then buckets are written in the order of
 * their numbers.  Entries in memory are sorted by bucket; a file is divided into files
 * for ranges of buckets, until one fits.
 *
 * Entries that a bucket has no room for, because many rows have the same key, are
 * inserted one by one at the end.
 */
#include "fingerprint.h"

#include <math.h>

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "storage/smgr.h"
#include "utils/memutils.h"

#define PHASE_WRITE			2
#define PHASE_INSERT		3

/* The room of a bucket beyond the mean, in standard deviations of the number of its entries. */
#define DEVIATIONS			2.5

/*
 * For more rows per key, pages for their deviation would cost more than overflow pages.  (With 100
 * rows per key, 9 bytes per row instead of 13.)
 */
#define MOST_CLUSTERED		16.0

/* If at least this estimated share of rows does not go to posting pages, all rows are counted. */
#define MOST				0.95

/* The number of hashes that are kept to estimate how often keys are repeated. */
#define SAMPLE				32768

/* A file is divided into this number of others. */
#define DIVISIONS			64

/* The number of entries that are read from a file at a time. */
#define PIECE				1024

typedef struct Build
{
	Relation	index;
	IndexKeyHasher *hasher;
	double		rows;
	FpEntry		largest;		/* address, or one that needs as many bits */
	uint64	   *sample;			/* the hashes whose bits of sample_mask are 0 */
	uint64		sample_mask;
	unsigned	n_sample;

	/* what was collected; some of it may be in a file */
	FpEntry    *entries;
	uint64		n;
	uint64		room;
	uint64		most;			/* as much room as there may be */
	BufFile    *file;
	uint64		in_file;

	/* what is built */
	FpStep		step;			/* that all groups have grown up to */
	uint32		buckets;
	BufFile    *surplus;
	uint64		n_surplus;
} Build;

/* ----------------------------------------------------------------
 * Collecting
 * ----------------------------------------------------------------
 */

static BufFile *
write_entries(BufFile *file, FpEntry *entries, uint64 n)
{
	if (file == NULL)
		file = BufFileCreateTemp(false);
	for (uint64 i = 0; i < n; i += PIECE)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(file, entries + i, Min(PIECE, n - i) * sizeof(FpEntry));
	}
	return file;
}

static void
read_entries(BufFile *file, FpEntry *entries, uint64 n)
{
	CHECK_FOR_INTERRUPTS();
	if (BufFileRead(file, entries, n * sizeof(FpEntry)) != n * sizeof(FpEntry))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read the temporary file of an index build: %m")));
}

static void
rewind_file(BufFile *file)
{
	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind the temporary file of an index build: %m")));
}

/* Add a hash to the sample, which has all rows of some keys. */
static void
sample_hash(Build *build, uint64 hash)
{
	if ((hash & build->sample_mask) != 0)
		return;
	while (build->n_sample == SAMPLE && build->sample_mask != PG_UINT64_MAX)
	{
		unsigned	kept = 0;

		build->sample_mask = build->sample_mask << 1 | 1;
		for (unsigned i = 0; i < build->n_sample; i++)
		{
			if ((build->sample[i] & build->sample_mask) == 0)
				build->sample[kept++] = build->sample[i];
		}
		build->n_sample = kept;
	}
	if (build->n_sample < SAMPLE && (hash & build->sample_mask) == 0)
		build->sample[build->n_sample++] = hash;
}

static void
collect_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Build	   *build = arg;
	FpEntry    *entry;

	if (isnull[0])
		return;
	if (build->n == build->room && build->room < build->most)
	{
		build->room = Min(build->room * 2, build->most);
		build->entries = repalloc_huge(build->entries, build->room * sizeof(FpEntry));
	}
	else if (build->n == build->room)
	{
		build->file = write_entries(build->file, build->entries, build->n);
		build->in_file += build->n;
		build->n = 0;
	}
	entry = &build->entries[build->n++];
	*entry = (FpEntry)
	{
		index_key_hash(build->hasher, values[0]),
			ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid)
	};
	build->largest.block |= entry->block;
	build->largest.offset |= entry->offset;
	build->rows++;
	sample_hash(build, entry->hash);
}

/* ----------------------------------------------------------------
 * The size
 * ----------------------------------------------------------------
 */

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* How often keys are repeated, according to the sample. */
typedef struct Repetition
{
	double		rows;			/* that do not go to posting pages */
	double		cluster;		/* how many of them have the same key as one
								 * of them, on average */
} Repetition;

static Repetition
find_repetition(Build *build)
{
	double		rows = 0;
	double		squares = 0;
	unsigned	start = 0;

	qsort(build->sample, build->n_sample, sizeof(uint64), compare_hashes);
	for (unsigned i = 1; i <= build->n_sample; i++)
	{
		if (i == build->n_sample || build->sample[i] != build->sample[start])
		{
			unsigned	run = i - start;

			if (run < FP_HOT)
			{
				rows += run;
				squares += (double) run * run;
			}
			start = i;
		}
	}
	return (Repetition) {rows * ((double) build->sample_mask + 1), rows == 0 ? 1 : squares / rows};
}

/* The number of entries that an empty page of a level has room for. */
static unsigned
capacity_at(const Build *build, unsigned level)
{
	PGAlignedBlock block;

	fp_init_page((Page) block.data, FP_OVERFLOW, 0);
	fp_make_fit((Page) block.data, &build->largest, FP_TAG_SHIFT, level);
	return fp_room((Page) block.data);
}

/*
 * Choose the smallest index in which few buckets get more entries than their pages can hold.  All
 * groups are equally full, so either all have taken the last step or none.  The number of entries of a
 * bucket has mean m and variance cm, if rows come in clusters of c.  It is to be
 * C = m + d sqrt(cm), which is a quadratic equation of sqrt(m).
 */
static void
choose_size(Build *build)
{
	Repetition	repetition = find_repetition(build);
	double		entries = repetition.rows > MOST * build->rows ? build->rows : repetition.rows;
	double		d = DEVIATIONS * sqrt(Min(repetition.cluster, MOST_CLUSTERED));

	for (build->step = 0; fp_level(build->step) < FP_MAX_LEVEL; build->step++)
	{
		double		root = (sqrt(d * d + 4.0 * capacity_at(build, fp_level(build->step))) - d) / 2;

		build->buckets = fp_buckets_at(build->step, 0);
		if (build->buckets * root * root >= entries)
			break;
	}
	build->buckets = fp_buckets_at(build->step, 0);
}

/* ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

/* The metapage of an index that is built. */
static FpMeta
new_meta(const Build *build, const KeyType *type)
{
	FpMeta		meta = {FP_META_MAGIC, FP_VERSION};
	uint32		offset;
	uint32		size;
	uint32		bucket = 0;

	index_key_class_set(&meta.class, type);
	meta.level = fp_level(build->step);
	meta.sweep = build->step % FP_GROUP;
	meta.end = FP_META_BLOCK + 1;
	meta.free = InvalidBlockNumber;
	while (bucket < build->buckets)
	{
		meta.extents = fp_extent(bucket, &offset, &size);
		meta.extent[meta.extents++] = meta.end;
		meta.end += size;
		bucket += size;
	}
	return meta;
}

static int
compare_entries(const void *a, const void *b)
{
	return compare_hashes(&((const FpEntry *) a)->hash, &((const FpEntry *) b)->hash);
}

/* Write the next bucket, which is the next page of the file. */
static void
write_bucket(Build *build, uint32 bucket, FpEntry *entries, uint64 n)
{
	Buffer		buffer = bf_extend_relation(build->index, MAIN_FORKNUM);
	Page		page = BufferGetPage(buffer);
	FpOrigin	origin = fp_origin(bucket);
	uint64		i;
	FpEntry		largest = {0};

	/* blocks are written in order, and so are buckets */
	Assert(BufferGetBlockNumber(buffer) == FP_META_BLOCK + 1 + bucket);
	fp_init_page(page, FP_PRIMARY, bucket);
	fp_header(page)->step = (uint8) build->step;
	fp_header(page)->received = (uint8) (origin.step > 0 ? (1 << origin.member) - 1 : 0);

	/* encode for the largest address, once */
	for (i = 0; i < n; i++)
	{
		largest.block |= entries[i].block;
		largest.offset |= entries[i].offset;
	}
	if (n > 0 && !fp_make_fit(page, &largest, FP_TAG_SHIFT, fp_level(fp_header(page)->step)))
		elog(ERROR, "an empty page has no room");

	/*
	 * rows of one key arrive together, so that those of hot keys go to
	 * posting pages
	 */
	if (n > fp_room(page))
		qsort(entries, n, sizeof(FpEntry), compare_entries);
	for (i = 0; i < n && fp_room(page) > 0; i++)
		fp_append(page, &entries[i]);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
	if (i < n)
	{
		build->surplus = write_entries(build->surplus, entries + i, n - i);
		build->n_surplus += n - i;
	}
}

/* Sort entries of a range of buckets by bucket, and write those buckets. */
static void
write_sorted(Build *build, FpEntry *entries, uint64 n, uint32 first, uint32 end)
{
	uint32		buckets = end - first;
	uint64	   *start = palloc_extended((buckets + 1) * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint64	   *next = palloc_extended(buckets * sizeof(uint64), MCXT_ALLOC_HUGE);

	for (uint64 i = 0; i < n; i++)
	{
		if (i % (1 << 16) == 0)
			CHECK_FOR_INTERRUPTS();
		start[fp_bucket(entries[i].hash, build->step, NULL) - first + 1]++;
	}
	for (uint32 i = 0; i < buckets; i++)
	{
		start[i + 1] += start[i];
		next[i] = start[i];
	}

	/* put each entry where it belongs, and go on with the one that was there */
	for (uint32 i = 0; i < buckets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		while (next[i] < start[i + 1])
		{
			FpEntry		entry = entries[next[i]];
			uint32		to = fp_bucket(entry.hash, build->step, NULL) - first;

			while (to != i)
			{
				FpEntry		other = entries[next[to]];

				entries[next[to]++] = entry;
				entry = other;
				to = fp_bucket(entry.hash, build->step, NULL) - first;
			}
			entries[next[i]++] = entry;
		}
	}
	for (uint32 i = 0; i < buckets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		write_bucket(build, first + i, entries + start[i], start[i + 1] - start[i]);
	}
	pfree(start);
	pfree(next);
}

/* Write a range of buckets from a file, which is closed then. */
static void
write_from_file(Build *build, BufFile *file, uint64 n, uint32 first, uint32 end)
{
	BufFile    *files[DIVISIONS] = {0};
	uint64		counts[DIVISIONS] = {0};
	uint32		width = (end - first + DIVISIONS - 1) / DIVISIONS;
	FpEntry		piece[PIECE];

	if (file != NULL)
		rewind_file(file);
	if (n <= build->most || end - first == 1)
	{
		/*
		 * one bucket with more entries than fit into memory: nearly all are
		 * surplus
		 */
		uint64		loaded = Min(n, build->most);

		if (file != NULL)
			read_entries(file, build->entries, loaded);
		write_sorted(build, build->entries, loaded, first, end);
		for (uint64 i = loaded; i < n; i += PIECE)
		{
			uint64		length = Min(PIECE, n - i);

			read_entries(file, piece, length);
			build->surplus = write_entries(build->surplus, piece, length);
			build->n_surplus += length;
		}
	}
	else
	{
		for (uint64 i = 0; i < n; i += PIECE)
		{
			uint64		length = Min(PIECE, n - i);

			read_entries(file, piece, length);
			for (uint64 j = 0; j < length; j++)
			{
				uint32		to = (fp_bucket(piece[j].hash, build->step, NULL) - first) / width;

				if (files[to] == NULL)
					files[to] = BufFileCreateTemp(false);
				BufFileWrite(files[to], &piece[j], sizeof(FpEntry));
				counts[to]++;
			}
		}
		BufFileClose(file);
		file = NULL;
		for (unsigned i = 0; i < DIVISIONS && first + i * width < end; i++)
			write_from_file(build, files[i], counts[i], first + i * width, Min(first + (i + 1) * width, end));
	}
	if (file != NULL)
		BufFileClose(file);
}

/* Write empty buckets from this one on, up to the end of the last extent. */
static void
write_empty(Relation index, ForkNumber fork, uint32 bucket, const FpMeta *meta)
{
	for (; FP_META_BLOCK + 1 + bucket < meta->end; bucket++)
	{
		Buffer		buffer = bf_extend_relation(index, fork);

		CHECK_FOR_INTERRUPTS();
		fp_init_page(BufferGetPage(buffer), FP_PRIMARY, bucket);
		MarkBufferDirty(buffer);
		UnlockReleaseBuffer(buffer);
	}
}

/* Insert the entries that buckets had no room for. */
static void
insert_surplus(Build *build)
{
	FpEntry		piece[PIECE];

	if (build->surplus == NULL)
		return;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_INSERT);
	rewind_file(build->surplus);
	for (uint64 i = 0; i < build->n_surplus; i += PIECE)
	{
		uint64		length = Min(PIECE, build->n_surplus - i);

		read_entries(build->surplus, piece, length);
		for (uint64 j = 0; j < length; j++)
			fp_insert_entry(build->index, &piece[j], false);
	}
	BufFileClose(build->surplus);
}

static void
write_meta(Relation index, ForkNumber fork, const FpMeta *meta)
{
	Buffer		buffer = bf_extend_relation(index, fork);

	Assert(BufferGetBlockNumber(buffer) == FP_META_BLOCK);
	fp_init_meta_page(BufferGetPage(buffer), meta);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
}

IndexBuildResult *
fp_build(Relation heap, Relation index, struct IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fingerprint index build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Build		build = {index};
	IndexBuildResult *result;
	FpMeta		meta;
	double		rows;
	uint64		n;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	if (info->ii_ExclusionOps != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support exclusion constraints", "fingerprint"),
				 errhint("Use a btree, with UNIQUE.")));
	build.hasher = index_key_hasher(index, context);
	index_key_check(index, build.hasher->type);
	build.most = Max((uint64) maintenance_work_mem * 1024 / 2 / sizeof(FpEntry), PIECE);
	build.room = PIECE;
	build.sample = palloc(SAMPLE * sizeof(uint64));
	build.entries = palloc(build.room * sizeof(FpEntry));
	rows = table_index_build_scan(heap, index, info, true, true, collect_row, &build, NULL);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	n = build.n;
	choose_size(&build);
	meta = new_meta(&build, build.hasher->type);
	write_meta(index, MAIN_FORKNUM, &meta);
	if (build.file != NULL)
	{
		build.file = write_entries(build.file, build.entries, build.n);
		n += build.in_file;
		if (build.room < build.most)
			build.entries = repalloc_huge(build.entries, build.most * sizeof(FpEntry));
		write_from_file(&build, build.file, n, 0, build.buckets);
	}
	else
		write_sorted(&build, build.entries, n, 0, build.buckets);
	write_empty(index, MAIN_FORKNUM, build.buckets, &meta);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0, RelationGetNumberOfBlocks(index), true);
	fp_forget_meta(index);
	insert_surplus(&build);

	MemoryContextSwitchTo(caller);
	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = rows;
	result->index_tuples = build.rows;
	MemoryContextDelete(context);
	return result;
}

/* Write the index that an unlogged table has after a crash: of no rows. */
void
fp_buildempty(Relation index)
{
	Build		build = {index};
	FpMeta		meta;

	choose_size(&build);
	meta = new_meta(&build, index_key_type(index, CurrentMemoryContext));
	write_meta(index, INIT_FORKNUM, &meta);
	write_empty(index, INIT_FORKNUM, 0, &meta);
	log_newpage_range(index, INIT_FORKNUM, 0, meta.end, true);
}

char *
fp_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return (char *) "hashing keys";
		case PHASE_WRITE:
			return (char *) "writing pages";
		case PHASE_INSERT:
			return (char *) "inserting rows of repeated keys";
		default:
			return NULL;
	}
}

/* Insert one row. */
bool
fp_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
		  IndexUniqueCheck unique, bool unchanged, struct IndexInfo *info)
{
	FpEntry		entry;

	if (isnull[0])
		return false;
	entry.hash = index_key_hash(index_key_insert_hasher(index, info), values[0]);
	entry.block = ItemPointerGetBlockNumber(tid);
	entry.offset = ItemPointerGetOffsetNumber(tid);
	fp_insert_entry(index, &entry, true);

	/* a reader that did not see the entry had its lock before it looked */
	CheckForSerializableConflictIn(index, NULL, FP_PREDICATE_BLOCK(entry.hash));
	return false;
}
