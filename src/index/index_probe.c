/*
 * index_probe.c
 *		Probing the index for keys.
 *
 * A key that is reported absent is in no row that a snapshot taken before the probe can
 * see, because the inserting transaction sets the bits before it commits.  (That requires
 * that the index has an entry for every such row.  For index scans the server ensures it,
 * for functions trust.c.)
 *
 * In a serializable transaction the result depends on every page that was read, whether
 * the key is present or not.  A page gets a predicate lock before it is read;
 * bfindex_insert checks for such locks on every page that it reads, while it holds the
 * page's lock.
 */
#include "../compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/predicate.h"

#include "index.h"

/*
 * The buffers that pages of an index were found in.
 *
 * Many probes in a row spend most of their time on finding the buffer of a page in the server's
 * hash table, which is not in the CPU's cache.  A page mostly stays where it was, and
 * ReadRecentBuffer() checks whether it did.
 */
typedef struct RecentPage
{
	BlockNumber block;
	Buffer		buffer;			/* InvalidBuffer if none is known */
} RecentPage;

struct BfindexRecent
{
	uint32		mask;			/* the number of pages, a power of 2, less 1 */
	uint32		reads;
	RecentPage	pages[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * Before 19, ReadRecentBuffer() does not count as a use of the buffer, for the choice of buffers
 * to evict.  ReadBuffer() does, once in this many reads.
 */
#define READS_PER_USE	32

/* Start to remember the buffers of an index, of this many pages at most. */
BfindexRecent *
bfindex_remember_buffers(Relation index, uint32 most)
{
	uint32		pages = pg_nextpower2_32(Max(Min(RelationGetNumberOfBlocks(index), most), 1));
	BfindexRecent *recent = palloc0(offsetof(BfindexRecent, pages) + pages * sizeof(RecentPage));

	recent->mask = pages - 1;
	return recent;
}

/* Pin a page, where it was found before if it is still there. */
static Buffer
read_page(Relation index, BlockNumber block, BfindexRecent *recent)
{
	RecentPage *page;

	if (recent == NULL)
		return ReadBuffer(index, block);
	page = &recent->pages[block & recent->mask];
	if (page->block == block && page->buffer != InvalidBuffer && ++recent->reads % READS_PER_USE != 0 &&
		ReadRecentBuffer(bf_relation_locator(index), MAIN_FORKNUM, block, page->buffer))
	{
		pgstat_count_buffer_read(index);
		pgstat_count_buffer_hit(index);
		return page->buffer;
	}
	page->block = block;
	page->buffer = InvalidBuffer;
	page->buffer = ReadBuffer(index, block);
	return page->buffer;
}

/*
 * Load what a probe of the first layer will read into the CPU's cache, if the buffer is known.  An
 * address that is no longer right does no harm.
 */
void
bfindex_prefetch(Relation index, uint64 hash, const BfindexRecent *recent)
{
	BfindexLayer layer;
	const RecentPage *page;
	uint64		line;
	BlockNumber block;

	if (!bfindex_layer(index, 0, &layer))
		return;
	line = bfindex_line(&layer, hash);
	block = layer.first + (BlockNumber) (line / BFINDEX_PAGE_LINES);
	page = &recent->pages[block & recent->mask];
	if (page->block != block || page->buffer == InvalidBuffer)
		return;
	if (!BufferIsLocal(page->buffer))
		bf_prefetch(GetBufferDescriptor(page->buffer - 1));
	bf_prefetch(BufferGetPage(page->buffer));
	bf_prefetch(bfindex_page_lines(BufferGetPage(page->buffer)) + line % BFINDEX_PAGE_LINES * BF_LINE_BYTES);
}

/*
 * Is a key present?  Without a snapshot, no predicate locks are taken.  `recent` makes further
 * probes of the same index faster; it can be NULL.
 */
bool
bfindex_contains_hash(Relation index, uint64 hash, Snapshot snapshot, BfindexRecent *recent)
{
	BfindexLayer layer;
	bool		found = false;
	bool		more = true;

	for (unsigned i = 0; more && !found; i++)
	{
		Buffer		buffer;
		uint64		line;
		BlockNumber block;

		if (!bfindex_layer(index, i, &layer))
			bfindex_lacks_layer(index);
		line = bfindex_line(&layer, hash);
		block = layer.first + (BlockNumber) (line / BFINDEX_PAGE_LINES);
		if (snapshot != NULL)
			PredicateLockPage(index, block, snapshot);
		buffer = read_page(index, block, recent);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		more = false;
		if (bfindex_check_page(index, buffer, i))
		{
			Page		page = BufferGetPage(buffer);

			found = bf_line_test(bfindex_page_lines(page) + line % BFINDEX_PAGE_LINES * BF_LINE_BYTES,
								 BF_LINE_BITS, layer.probes, hash);
			more = (((BfindexPage *) page)->flags & BFINDEX_OVERFLOW) != 0;
		}
		UnlockReleaseBuffer(buffer);
	}
	return found;
}

/*
 * Is one of these keys present?  The result is true for keys of another class than that of
 * the index.
 *
 * The result of a serializable scan depends on all keys, including those after the first
 * that is present: their pages must get predicate locks, too.
 */
bool
bfindex_contains_any(Relation index, const IndexKeyList *keys, Snapshot snapshot)
{
	bool		all = snapshot != NULL && IsolationIsSerializable();
	bool		found = false;

	if (keys->type == NULL)
		return false;			/* the condition compares with NULL */
	if (!index_key_class_matches(bfindex_class(index), keys->type))
	{
		/* unless the index is damaged, a user added an operator to the family */
		bfindex_check_class(index);
		if (snapshot != NULL)
			PredicateLockRelation(index, snapshot);
		return true;
	}
	for (int i = 0; i < keys->n && (all || !found); i++)
	{
		CHECK_FOR_INTERRUPTS();
		found |= bfindex_contains_hash(index, bfindex_hash(key_hash(keys->type, keys->values[i])), snapshot, NULL);
	}
	return found;
}
