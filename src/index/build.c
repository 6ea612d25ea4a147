/*
 * build.c
 *		Building the index from a table.
 *
 * The hashes of all keys are collected and sorted.  That tells how many distinct
 * keys there are, and so how large the index has to be; and since lines are in the
 * order of the hashes, it is then written page by page.
 *
 * Hashes are kept in memory as long as half of maintenance_work_mem suffices, with
 * repetitions removed when it gets full.  If it does not, what is there goes to a
 * temporary file as a sorted run, and the runs are merged in the end: once to
 * count, once to write.  (The server's sort would do the same with three times the
 * bytes for each number, and more than twice the time for the whole index.)
 *
 * An index over no rows is sized by what is known otherwise: the capacity that the
 * user declared, or the room that the largest sibling of a partition has.  If nothing
 * is known it begins small and grows.
 */
#include "../compat.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opfamily.h"
#include "commands/extension.h"
#include "commands/progress.h"
#include "catalog/dependency.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "partitioning/partdesc.h"
#include "pgstat.h"
#include "storage/buffile.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "../core/accumulator.h"
#include "../server.h"
#include "index.h"

/* Room for further keys in an index that was built over some: a quarter. */
#define HEAD_ROOM(keys)		((keys) + (keys) / 4)

/* As many keys are sorted in memory at most. */
#define MAX_IN_MEMORY		(UINT64CONST(1) << 28)
#define FIRST_IN_MEMORY		1024

#define PHASE_SORT			2
#define PHASE_WRITE			3

/* ----------------------------------------------------------------
 * Collecting hashes
 * ----------------------------------------------------------------
 */

/* A sorted run of distinct hashes in a file; a piece of it is in memory. */
typedef struct Run
{
	uint64		start;			/* in the file, in hashes */
	uint64		length;
	uint64		fetched;		/* of them, so far */
	uint64	   *piece;
	uint64		in_piece;
	uint64		next;			/* to read in the piece */
} Run;

/* The next hash of a run.  They are a heap, the least on top. */
typedef struct RunHead
{
	uint64		hash;
	uint32		run;
} RunHead;

typedef struct Collection
{
	KeyType    *key;
	MemoryContext scratch;		/* for hashing one value */
	double		rows;

	/* in memory */
	bf_accumulator hashes;
	uint64		most;			/* as much room as there may be */
	uint64		next;			/* to read in memory */

	/* on disk, if they became too many */
	BufFile    *file;
	Run		   *runs;
	uint32		n_runs;
	uint64		in_file;		/* hashes */
	uint64		piece;			/* of a run, at most */
	RunHead    *heads;
	uint32		n_heads;
} Collection;

/* Pieces of runs are not larger than this, and only with very many runs smaller. */
#define LARGEST_PIECE		16384
#define SMALLEST_PIECE		128

/* Write what is in memory, sorted, to the file. */
static void
collection_write_run(Collection *collection)
{
	bf_accumulator *hashes = &collection->hashes;
	Run			run = {collection->in_file, hashes->n};

	if (collection->file == NULL)
	{
		collection->file = BufFileCreateTemp(false);
		collection->runs = palloc(sizeof(Run));
	}
	else
		collection->runs = repalloc_huge(collection->runs, (collection->n_runs + 1) * sizeof(Run));
	for (uint64 i = 0; i < hashes->n; i += LARGEST_PIECE)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(collection->file, hashes->hashes + i, Min(LARGEST_PIECE, hashes->n - i) * sizeof(uint64));
	}
	collection->runs[collection->n_runs++] = run;
	collection->in_file += hashes->n;
	hashes->n = hashes->sorted = 0;
}

static void
collection_add(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Collection *collection = arg;
	MemoryContext caller;
	uint64		hash;

	if (isnull[0])
		return;
	caller = MemoryContextSwitchTo(collection->scratch);
	hash = bfindex_hash(collection->key, values[0]);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(collection->scratch);
	collection->rows += 1;
	if (bf_accumulator_is_full(&collection->hashes) &&
		!bf_accumulator_make_room(server_host(NULL), &collection->hashes, collection->most))
		collection_write_run(collection);
	bf_accumulator_add(&collection->hashes, hash);
}

/* The next hash of a run; false at its end. */
static bool
run_next(Collection *collection, Run *run, uint64 *hash)
{
	if (run->next == run->in_piece)
	{
		Size		bytes;

		if (run->fetched == run->length)
			return false;
		run->in_piece = Min(run->length - run->fetched, collection->piece);
		run->next = 0;
		bytes = run->in_piece * sizeof(uint64);
		if (BufFileSeek(collection->file, 0, (off_t) ((run->start + run->fetched) * sizeof(uint64)), SEEK_SET) != 0 ||
			BufFileRead(collection->file, run->piece, bytes) != bytes)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read the temporary file of an index build: %m")));
		run->fetched += run->in_piece;
	}
	*hash = run->piece[run->next++];
	return true;
}

/* The head at this place may be larger than those below it. */
static void
heads_sift_down(RunHead *heads, uint32 n, uint32 place)
{
	RunHead		moved = heads[place];

	for (;;)
	{
		uint32		least = place * 2 + 1;

		if (least >= n)
			break;
		if (least + 1 < n && heads[least + 1].hash < heads[least].hash)
			least++;
		if (moved.hash <= heads[least].hash)
			break;
		heads[place] = heads[least];
		place = least;
	}
	heads[place] = moved;
}

/* Read the runs from the start. */
static void
collection_rewind(Collection *collection)
{
	collection->n_heads = 0;
	for (uint32 i = 0; i < collection->n_runs; i++)
	{
		Run		   *run = &collection->runs[i];
		RunHead    *head = &collection->heads[collection->n_heads];

		run->fetched = run->in_piece = run->next = 0;
		head->run = i;
		if (run_next(collection, run, &head->hash))
			collection->n_heads++;
	}
	for (uint32 i = collection->n_heads / 2; i-- > 0;)
		heads_sift_down(collection->heads, collection->n_heads, i);
}

/* The next hash in ascending order, perhaps repeated; false at the end. */
static bool
collection_next(Collection *collection, uint64 *hash)
{
	RunHead    *top = collection->heads;

	if (collection->file == NULL)
	{
		if (collection->next == collection->hashes.n)
			return false;
		*hash = collection->hashes.hashes[collection->next++];
		return true;
	}
	if (collection->n_heads == 0)
		return false;
	*hash = top->hash;
	if (!run_next(collection, &collection->runs[top->run], &top->hash))
		*top = collection->heads[--collection->n_heads];
	if (collection->n_heads > 1)
		heads_sift_down(collection->heads, collection->n_heads, 0);
	return true;
}

/* Sort all hashes; returns how many are distinct.  They are read from the start. */
static uint64
collection_finish(Collection *collection)
{
	uint64		distinct = 0;
	uint64		last = 0;
	uint64		hash;

	bf_accumulator_sort(server_host(NULL), &collection->hashes);
	if (collection->file == NULL)
		return collection->hashes.n;
	if (collection->hashes.n > 0)
		collection_write_run(collection);
	bf_accumulator_free(server_host(NULL), &collection->hashes);

	collection->piece = Min(Max(collection->most / collection->n_runs, SMALLEST_PIECE), LARGEST_PIECE);
	collection->heads = MemoryContextAllocHuge(CurrentMemoryContext, collection->n_runs * sizeof(RunHead));
	for (uint32 i = 0; i < collection->n_runs; i++)
		collection->runs[i].piece = palloc(collection->piece * sizeof(uint64));
	collection_rewind(collection);
	for (uint64 i = 0; collection_next(collection, &hash); i++)
	{
		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		distinct += distinct == 0 || hash != last;
		last = hash;
	}
	collection_rewind(collection);
	return distinct;
}

/* ----------------------------------------------------------------
 * Size
 * ----------------------------------------------------------------
 */

/*
 * The keys that this index of a sibling has room for, if it is one on the same column.
 *
 * The size of its file says that, and can be had even of an index that is damaged or not
 * built yet: a sibling must never make the creation of a partition fail.  A file of
 * the size that an index over no rows begins with says nothing.
 */
static uint64
room_of_sibling_index(Oid oid, const char *column)
{
	Relation	index;
	uint64		room = 0;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return 0;
	index = try_index_open(oid, NoLock);
	if (index == NULL)
		return 0;
	if (bfindex_is(index) && strcmp(NameStr(TupleDescAttr(RelationGetDescr(index), 0)->attname), column) == 0 &&
		smgrexists(RelationGetSmgr(index), MAIN_FORKNUM))
		room = bfindex_room_of_file(bfindex_fpp(index), RelationGetNumberOfBlocks(index));
	index_close(index, AccessShareLock);
	return room;
}

/*
 * The room that the largest sibling of a partition has: a new partition will often
 * become as large.  Siblings that others have locked are passed over, as is the default
 * partition, and those without rows, whose indexes may themselves have followed a sibling.
 */
static uint64
room_of_siblings(Relation heap, Relation index)
{
	const char *column = NameStr(TupleDescAttr(RelationGetDescr(index), 0)->attname);
	Oid			parent;
	Oid			default_partition;
	ListCell   *cell;
	uint64		most = 0;

	if (!heap->rd_rel->relispartition)
		return 0;
	parent = get_partition_parent(RelationGetRelid(heap), true);
	default_partition = get_default_partition_oid(parent);
	foreach(cell, find_inheritance_children(parent, NoLock))
	{
		Oid			sibling = lfirst_oid(cell);
		Relation	table;

		CHECK_FOR_INTERRUPTS();
		if (sibling == RelationGetRelid(heap) || sibling == default_partition ||
			!ConditionalLockRelationOid(sibling, AccessShareLock))
			continue;
		table = try_table_open(sibling, NoLock);
		if (table == NULL)
			continue;
		if (table->rd_rel->relkind == RELKIND_RELATION && !RELATION_IS_OTHER_TEMP(table) &&
			RelationGetNumberOfBlocks(table) > 0)
		{
			ListCell   *index_cell;

			foreach(index_cell, RelationGetIndexList(table))
				most = Max(most, room_of_sibling_index(lfirst_oid(index_cell), column));
		}
		table_close(table, AccessShareLock);
	}
	return most;
}

/* What the new index is like, for a number of keys. */
static BfindexMeta
bfindex_new_meta(Relation heap, Relation index, const KeyType *key, uint64 keys)
{
	const KeyClass *class = &key->class;
	const BfindexOptions *options = (const BfindexOptions *) index->rd_options;
	BfindexMeta meta = {BFINDEX_META_MAGIC, BFINDEX_VERSION};
	uint64		capacity = HEAD_ROOM(keys);
	bool		declared = options != NULL && options->capacity != BFINDEX_NO_CAPACITY;

	meta.fpp = bfindex_fpp(index);
	meta.scheme = class->scheme;
	meta.class = class->code;
	meta.name_length = class->name_length;
	if (class->name_length > 0)
		memcpy(meta.name, class->name, class->name_length);
	meta.layers = 1;

	if (declared)
		capacity = Max((uint64) options->capacity, keys);
	else if (keys == 0 && heap != NULL)
		capacity = room_of_siblings(heap, index);
	meta.layer[0] = bfindex_first_layer(meta.fpp, capacity, true);

	/* less than fills a page says nothing about the size to come */
	if (!declared && capacity < HEAD_ROOM(meta.layer[0].page_keys))
		meta.layer[0] = bfindex_first_layer(meta.fpp, capacity, false);
	return meta;
}

/* ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

/* Write all pages. */
static void
bfindex_write(Relation index, ForkNumber fork, const BfindexMeta *meta, Collection *collection)
{
	const BfindexLayer *layer = &meta->layer[0];
	Buffer		buffer = bf_extend_relation(index, fork);
	uint64		hash = 0;
	bool		more = collection_next(collection, &hash);

	Assert(BufferGetBlockNumber(buffer) == BFINDEX_META_BLOCK);
	bfindex_init_meta_page(BufferGetPage(buffer), meta);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);

	for (BlockNumber i = 0; i < layer->pages; i++)
	{
		Page		page;
		uint64		line;

		CHECK_FOR_INTERRUPTS();
		buffer = bf_extend_relation(index, fork);
		Assert(BufferGetBlockNumber(buffer) == layer->first + i);
		page = BufferGetPage(buffer);
		bfindex_init_page(page, 0);
		while (more && (line = bfindex_line(layer, hash)) / BFINDEX_PAGE_LINES == i)
		{
			((BfindexPage *) page)->bits_set +=
				bf_line_set(bfindex_page_lines(page) + line % BFINDEX_PAGE_LINES * BF_LINE_BYTES,
							BF_LINE_BITS, layer->probes, hash);
			more = collection_next(collection, &hash);
		}
		MarkBufferDirty(buffer);
		UnlockReleaseBuffer(buffer);
	}
	Assert(!more);
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_range(index, fork, 0, layer->first + layer->pages, true);
}

/* Can keys of this type be in an index?  An error if not. */
static void
bfindex_check_key(Relation index, const KeyType *key)
{
	Oid			extension = getExtensionOfObject(OperatorFamilyRelationId, index->rd_opfamily[0]);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	const char *type = format_type_be(TupleDescAttr(RelationGetDescr(index), 0)->atttypid);

	if (name == NULL || strcmp(name, "bloomfilter") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"bloomfilter\" supports only its own operator classes"),
				 errdetail("It hashes keys by their type, which need not agree with the operators of another class.")));
	if (key->class.scheme != BF_SCHEME_CANONICAL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("values of type %s cannot be keys of a bloomfilter index", type),
				 errdetail("They are hashed by a function of another extension, which may change with its version."),
				 errhint("Index an expression of a built-in type, such as lower(column::text).")));
	if (key->can_change != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("values of type %s cannot be keys of a bloomfilter index", type),
				 errdetail("%s", key->can_change),
				 errhint("Index an expression of a built-in type.")));
	if (!bfindex_compares_like_column(index))
		ereport(WARNING,
				(errmsg("index \"%s\" does not support the equality operator of type %s",
						RelationGetRelationName(index), type),
				 errdetail("It compares values as type %s.", format_type_be(index->rd_opcintype[0])),
				 errhint("Index an expression of a built-in type, such as lower(column::text).")));
}

IndexBuildResult *
bfindex_build(Relation heap, Relation index, struct IndexInfo *info)
{
	Collection	collection = {0};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "bloomfilter index build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	IndexBuildResult *result;
	BfindexMeta meta;
	uint64		keys;
	double		rows;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	collection.key = bfindex_key_type(index, context);
	bfindex_check_key(index, collection.key);
	collection.scratch = AllocSetContextCreate(context, "bloomfilter index key", ALLOCSET_SMALL_SIZES);
	collection.most = Min((uint64) maintenance_work_mem * 1024 / 2 / sizeof(uint64), MAX_IN_MEMORY);
	bf_accumulator_start(server_host(context), &collection.hashes, FIRST_IN_MEMORY);

	rows = table_index_build_scan(heap, index, info, true, true, collection_add, &collection, NULL);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	keys = collection_finish(&collection);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	meta = bfindex_new_meta(heap, index, collection.key, keys);
	bfindex_write(index, MAIN_FORKNUM, &meta, &collection);
	bfindex_forget_meta(index);

	if (collection.file != NULL)
		BufFileClose(collection.file);
	MemoryContextSwitchTo(caller);
	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = rows;
	result->index_tuples = collection.rows;
	MemoryContextDelete(context);
	return result;
}

/* The index that an unlogged table has after a crash: of no keys. */
void
bfindex_buildempty(Relation index)
{
	KeyType    *key = bfindex_key_type(index, CurrentMemoryContext);
	BfindexMeta meta = bfindex_new_meta(NULL, index, key, 0);
	Collection	nothing = {0};

	bfindex_write(index, INIT_FORKNUM, &meta, &nothing);
}

char *
bfindex_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return (char *) "hashing keys";
		case PHASE_SORT:
			return (char *) "sorting hashes";
		case PHASE_WRITE:
			return (char *) "writing pages";
		default:
			return NULL;
	}
}
