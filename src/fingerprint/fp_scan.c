/*
 * fp_scan.c
 *		Index scans, plain and bitmap.
 *
 * The rows of a bucket that have the fingerprint of a key are collected with the bucket locked, and
 * returned one by one, to be rechecked.  No lock or pin is kept between them: a row whose
 * address is used again meanwhile is not visible to the snapshot of the scan.
 *
 * Posting pages are read one at a time, because there can be many.  The first one is read
 * with the bucket locked.  A link to another page contains its generation.  If VACUUM has
 * freed that page meanwhile, the scan starts again and skips the rows that it has
 * returned.  New entries go to the first page of a chain or before it; they are of rows
 * that the snapshot does not see.
 */
#include "fingerprint.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* A posting page that is still to be read. */
typedef struct Link
{
	BlockNumber from;			/* the page that refers to it */
	BlockNumber block;
	uint32		generation;
} Link;

typedef struct FpScan
{
	MemoryContext context;
	KeyType    *type;			/* of the key */
	Oid			subtype;		/* that it was made for */
	MemoryContext scratch;		/* for hashing one value */
	bool		started;
	uint64		hash;
	Snapshot	snapshot;
	FpChain		chain;			/* of the pages that were read */
	Link		broken;			/* the last one whose page was freed */

	/* rows; those before next_row were returned, and a plain scan keeps them */
	ItemPointerData *rows;
	int64		n_rows;
	int64		next_row;
	int64		room;
	bool		keep;
	int64		n_sorted;		/* rows that are sorted, and skipped, because
								 * the scan started again after them */

	/* chains to read after these rows */
	Link	   *links;
	int			n_links;
	int			room_for_links;
} FpScan;

#define FIRST_ROOM	16

IndexScanDesc
fp_beginscan(Relation index, int keys, int orderbys)
{
	IndexScanDesc desc = RelationGetIndexScan(index, keys, orderbys);
	FpScan	   *scan = palloc0(sizeof(FpScan));

	scan->context = CurrentMemoryContext;
	scan->scratch = AllocSetContextCreate(CurrentMemoryContext, "fingerprint scan key", ALLOCSET_SMALL_SIZES);
	scan->room = FIRST_ROOM;
	scan->rows = palloc(scan->room * sizeof(ItemPointerData));
	desc->opaque = scan;
	return desc;
}

void
fp_rescan(IndexScanDesc desc, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	FpScan	   *scan = desc->opaque;

	if (keys != NULL && desc->numberOfKeys > 0)
		memmove(desc->keyData, keys, desc->numberOfKeys * sizeof(ScanKeyData));
	scan->started = false;
	scan->n_rows = scan->next_row = scan->n_sorted = 0;
	scan->n_links = 0;
	scan->broken = (Link) {0};
}

void
fp_endscan(IndexScanDesc desc)
{
	FpScan	   *scan = desc->opaque;

	MemoryContextDelete(scan->scratch);
	if (scan->links != NULL)
		pfree(scan->links);
	pfree(scan->rows);
	pfree(scan);
}

/* ----------------------------------------------------------------
 * Collecting rows
 * ----------------------------------------------------------------
 */

static int
compare_rows(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/* Ensure that there is room for this number of further rows; returns the place of the first one. */
static ItemPointerData *
room_for_rows(FpScan *scan, unsigned n)
{
	if (unlikely(scan->n_rows + n > scan->room))
	{
		scan->room = Max(scan->room * 2, scan->n_rows + n);
		scan->rows = repalloc_huge(scan->rows, scan->room * sizeof(ItemPointerData));
	}
	return scan->rows + scan->n_rows;
}

/* Add n rows, which are behind the others already, except for those that were returned before. */
static void
add_rows(FpScan *scan, unsigned n)
{
	const ItemPointerData *new = scan->rows + scan->n_rows;

	if (likely(scan->n_sorted == 0))
	{
		scan->n_rows += n;
		return;
	}
	for (unsigned i = 0; i < n; i++)
	{
		if (bsearch(&new[i], scan->rows, scan->n_sorted, sizeof(ItemPointerData), compare_rows) == NULL)
			scan->rows[scan->n_rows++] = new[i];
	}
}

static void
add_link(FpScan *scan, BlockNumber from, BlockNumber block, uint32 generation)
{
	if (block == InvalidBlockNumber)
		return;
	for (int i = 0; i < scan->n_links; i++)
	{
		if (scan->links[i].block == block)
			return;
	}
	if (scan->n_links == scan->room_for_links)
	{
		scan->room_for_links = Max(scan->room_for_links * 2, 4);
		scan->links = scan->links == NULL ? MemoryContextAlloc(scan->context, scan->room_for_links * sizeof(Link)) :
			repalloc(scan->links, scan->room_for_links * sizeof(Link));
	}
	scan->links[scan->n_links++] = (Link) {from, block, generation};
}

/* Add the rows of a posting page that is locked, and the link to the next one. */
static void
add_posting(FpScan *scan, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	bf_test_for_old_snapshot(scan->snapshot, scan->chain.index, page);
	add_rows(scan, fp_rows(page, room_for_rows(scan, fp_count(page))));
	add_link(scan, BufferGetBlockNumber(buffer), fp_header(page)->next, fp_header(page)->next_generation);
}

/* Add the rows of one page of a bucket that is locked. */
static void
add_matches(FpScan *scan, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	uint16		found[FP_CAPACITY];
	unsigned	n;
	ItemPointerData *rows;
	unsigned	n_rows = 0;

	bf_test_for_old_snapshot(scan->snapshot, scan->chain.index, page);
	n = fp_match(page, scan->hash, found);
	rows = room_for_rows(scan, n);

	for (unsigned i = 0; i < n; i++)
	{
		ItemPointerData row = fp_row(page, found[i]);

		if (ItemPointerGetOffsetNumberNoCheck(&row) != InvalidOffsetNumber)
			rows[n_rows++] = row;
	}
	add_rows(scan, n_rows);
	if (likely(n_rows == n))
		return;

	/* references to posting pages */
	for (unsigned i = 0; i < n; i++)
	{
		ItemPointerData row = fp_row(page, found[i]);

		if (ItemPointerGetOffsetNumberNoCheck(&row) == InvalidOffsetNumber)
		{
			Buffer		posting = fp_follow(&scan->chain, BufferGetBlockNumber(buffer),
											ItemPointerGetBlockNumberNoCheck(&row), FP_POSTING, BUFFER_LOCK_SHARE);

			add_posting(scan, posting);
			UnlockReleaseBuffer(posting);
		}
	}
}

static void
add_bucket(FpScan *scan, Buffer buffer)
{
	BlockNumber from = BufferGetBlockNumber(buffer);
	BlockNumber block = fp_header(BufferGetPage(buffer))->next;

	add_matches(scan, buffer);
	while (block != InvalidBlockNumber)
	{
		Buffer		overflow = fp_follow(&scan->chain, from, block, FP_OVERFLOW, BUFFER_LOCK_SHARE);

		add_matches(scan, overflow);
		from = block;
		block = fp_header(BufferGetPage(overflow))->next;
		UnlockReleaseBuffer(overflow);
	}
}

/*
 * Collect the rows of the bucket that the hash belongs to.  If that bucket is giving
 * entries to another one, it stays locked while the other one is read, so that no row is
 * collected twice.
 */
static void
collect_bucket(FpScan *scan, Relation index)
{
	Buffer		buffer = fp_locate(index, scan->hash, BUFFER_LOCK_SHARE);
	const FpPage *header = fp_header(BufferGetPage(buffer));
	uint32		other = header->giving ? fp_bucket(scan->hash, header->step + 1, NULL) : header->bucket;

	scan->chain = (FpChain) {index};
	add_bucket(scan, buffer);
	if (unlikely(other != header->bucket))
	{
		Buffer		taker = fp_read_bucket(index, other, BUFFER_LOCK_SHARE, NULL);

		if (!PageIsNew(BufferGetPage(taker)))
			add_bucket(scan, taker);
		UnlockReleaseBuffer(taker);
	}
	UnlockReleaseBuffer(buffer);
}

/* Start again, without the rows that were returned: all that were collected. */
static void
restart(FpScan *scan, Relation index)
{
	qsort(scan->rows, scan->n_rows, sizeof(ItemPointerData), compare_rows);
	scan->n_sorted = scan->n_rows;
	scan->n_links = 0;
	collect_bucket(scan, index);
}

/* Collect more rows; false if there are none. */
static bool
collect_more(IndexScanDesc desc)
{
	FpScan	   *scan = desc->opaque;

	while (scan->n_links > 0)
	{
		Link		link = scan->links[--scan->n_links];
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (!scan->keep)
			scan->n_rows = scan->next_row = 0;
		buffer = fp_follow_unlocked(&scan->chain, link.from, link.block, link.generation);
		if (buffer != InvalidBuffer)
		{
			add_posting(scan, buffer);
			UnlockReleaseBuffer(buffer);
		}
		else
		{
			/*
			 * a page that refers to it still has not been changed by who
			 * freed it
			 */
			if (scan->broken.block == link.block && scan->broken.generation == link.generation)
				index_damaged(desc->indexRelation, link.from, "It refers to a page that is not in use.");
			scan->broken = link;
			restart(scan, desc->indexRelation);
		}
		if (scan->next_row < scan->n_rows)
			return true;
	}
	return false;
}

/* ----------------------------------------------------------------
 * Scans
 * ----------------------------------------------------------------
 */

/* Hash the key of the scan; false if it is NULL. */
static bool
hash_key(IndexScanDesc desc)
{
	FpScan	   *scan = desc->opaque;
	ScanKey		key = &desc->keyData[0];
	MemoryContext caller;

	for (int i = 0; i < desc->numberOfKeys; i++)
	{
		if (desc->keyData[i].sk_flags & SK_ISNULL)
			return false;
	}
	if (scan->type == NULL || scan->subtype != key->sk_subtype)
	{
		scan->type = index_key_type_of_operand(desc->indexRelation, key->sk_subtype, scan->context);
		scan->subtype = key->sk_subtype;
		if (!index_key_class_matches(&fp_meta(desc->indexRelation)->class, scan->type))
		{
			IndexKeyClass class = fp_meta(desc->indexRelation)->class;

			index_key_class_check(desc->indexRelation, &class, FP_META_BLOCK);
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("index \"%s\" cannot be searched for a key of type %s",
							RelationGetRelationName(desc->indexRelation), format_type_be(scan->type->typid)),
					 errdetail("An operator that the extension does not provide was added to its operator family.")));
		}
	}
	caller = MemoryContextSwitchTo(scan->scratch);
	scan->hash = key_hash(scan->type, key->sk_argument);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(scan->scratch);
	return true;
}

/*
 * Can there be a row with this hash?  As for a scan, an entry exists before its row can be
 * visible, and until no snapshot sees the row.
 */
bool
fp_may_contain(Relation index, uint64 hash, Snapshot snapshot)
{
	FpScan		scan = {CurrentMemoryContext};
	bool		found;

	scan.hash = hash;
	scan.snapshot = snapshot;
	scan.room = FIRST_ROOM;
	scan.rows = palloc(scan.room * sizeof(ItemPointerData));
	PredicateLockPage(index, FP_PREDICATE_BLOCK(hash), snapshot);
	collect_bucket(&scan, index);
	found = scan.n_rows > 0 || scan.n_links > 0;
	pfree(scan.rows);
	if (scan.links != NULL)
		pfree(scan.links);
	return found;
}

/* Begin a search; false if no row can match. */
static bool
start(IndexScanDesc desc)
{
	FpScan	   *scan = desc->opaque;

	pgstat_count_index_scan(desc->indexRelation);
	bf_count_index_search(desc);
	scan->started = true;
	scan->snapshot = desc->xs_snapshot;
	if (!hash_key(desc))
		return false;
	PredicateLockPage(desc->indexRelation, FP_PREDICATE_BLOCK(scan->hash), desc->xs_snapshot);
	collect_bucket(scan, desc->indexRelation);
	return true;
}

bool
fp_gettuple(IndexScanDesc desc, ScanDirection direction)
{
	FpScan	   *scan = desc->opaque;

	scan->keep = true;
	if (!scan->started && !start(desc))
		return false;
	if (scan->next_row == scan->n_rows && !collect_more(desc))
		return false;
	desc->xs_heaptid = scan->rows[scan->next_row++];
	fp_check_row(desc->indexRelation, desc->heapRelation, &desc->xs_heaptid);
	desc->xs_recheck = true;
	return true;
}

/* A bitmap takes the offsets that a page of a table can have. */
static void
check_offsets(const FpScan *scan, Relation index)
{
	for (int64 i = 0; i < scan->n_rows; i++)
	{
		OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(&scan->rows[i]);

		if (offset == InvalidOffsetNumber || offset > MaxHeapTuplesPerPage)
			fp_wrong_row(index, &scan->rows[i]);
	}
}

int64
fp_getbitmap(IndexScanDesc desc, TIDBitmap *bitmap)
{
	FpScan	   *scan = desc->opaque;
	int64		rows = 0;

	scan->keep = false;
	if (!start(desc))
		return 0;
	do
	{
		check_offsets(scan, desc->indexRelation);
		tbm_add_tuples(bitmap, scan->rows, (int) scan->n_rows, true);
		rows += scan->n_rows;
	} while (collect_more(desc));
	return rows;
}
