/*
 * fp_vacuum.c
 *		Removing the entries of dead rows.
 *
 * Buckets are visited in the order of their numbers.  An entry moves only to a bucket
 * with a higher number, and within a bucket it moves with the bucket locked.  So no entry
 * is missed, and no concurrent insert waits for more than one bucket.  Entries of a
 * bucket that was created meanwhile are visited as well, some of them a second time.
 */
#include "fingerprint.h"

#include "commands/vacuum.h"
#include "miscadmin.h"

#include "../index/teststop.h"

typedef struct Vacuum
{
	Relation	index;
	BufferAccessStrategy strategy;
	IndexBulkDeleteCallback callback;
	void	   *state;
	double		removed;
	double		remaining;
} Vacuum;

/* Remove what is to be removed from a page that is locked exclusively. */
static void
clean_page(Vacuum *vacuum, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	ItemPointerData rows[FP_CAPACITY];
	uint16		numbers[FP_CAPACITY];
	unsigned	n = 0;

	for (unsigned i = fp_rows(page, rows); i-- > 0;)
	{
		if (ItemPointerGetOffsetNumberNoCheck(&rows[i]) == InvalidOffsetNumber)
			continue;
		if (vacuum->callback(&rows[i], vacuum->state))
			numbers[n++] = (uint16) i;
		else
			vacuum->remaining++;
	}
	if (n > 0)
	{
		GenericXLogState *xlog = GenericXLogStart(vacuum->index);

		page = GenericXLogRegisterBuffer(xlog, buffer, 0);
		for (unsigned i = 0; i < n; i++)
			fp_remove(page, numbers[i]);
		GenericXLogFinish(xlog);
		bfindex_test_stop("fingerprint: after vacuum of a page");
		vacuum->removed += n;
	}
}

/*
 * Clean a chain of posting pages, of which the first one was cleaned already.  Only
 * VACUUM unlinks pages, so the page after another one remains the next while neither is
 * locked.
 */
static void
clean_posting(Vacuum *vacuum, BlockNumber from, BlockNumber head)
{
	FpChain		chain = {vacuum->index, vacuum->strategy};
	Buffer		previous = fp_follow(&chain, from, head, FP_POSTING, BUFFER_LOCK_EXCLUSIVE);

	for (;;)
	{
		BlockNumber block = fp_header(BufferGetPage(previous))->next;
		Buffer		buffer;

		if (block == InvalidBlockNumber)
			break;
		buffer = fp_follow(&chain, BufferGetBlockNumber(previous), block, FP_POSTING, BUFFER_LOCK_EXCLUSIVE);
		clean_page(vacuum, buffer);
		if (fp_count(BufferGetPage(buffer)) == 0)
		{
			Buffer		meta = fp_lock_meta(vacuum->index);
			GenericXLogState *xlog = GenericXLogStart(vacuum->index);
			FpPage	   *header = fp_header(GenericXLogRegisterBuffer(xlog, previous, 0));

			header->next = fp_header(BufferGetPage(buffer))->next;
			header->next_generation = fp_header(BufferGetPage(buffer))->next_generation;
			fp_free_page(xlog, meta, buffer);
			GenericXLogFinish(xlog);
			bfindex_test_stop("fingerprint: after unlinking");
			UnlockReleaseBuffer(meta);
			UnlockReleaseBuffer(buffer);
		}
		else
		{
			UnlockReleaseBuffer(previous);
			previous = buffer;
		}
		LockBuffer(previous, BUFFER_LOCK_UNLOCK);
		bf_vacuum_delay_point();
		LockBuffer(previous, BUFFER_LOCK_EXCLUSIVE);
	}
	UnlockReleaseBuffer(previous);
}

/* Clean the first posting page of each reference, with the bucket locked; the chains are for later. */
static void
clean_references(Vacuum *vacuum, FpChain *chain, Buffer buffer, BlockNumber *heads, unsigned *n_heads)
{
	for (unsigned i = fp_count(BufferGetPage(buffer)); i-- > 0;)
	{
		FpEntry		entry = fp_get(BufferGetPage(buffer), i, 0);
		Buffer		posting;
		Page		page;

		if (entry.offset != InvalidOffsetNumber)
			continue;
		posting = fp_follow(chain, BufferGetBlockNumber(buffer), entry.block, FP_POSTING, BUFFER_LOCK_EXCLUSIVE);
		page = BufferGetPage(posting);
		clean_page(vacuum, posting);
		if (fp_header(page)->next != InvalidBlockNumber)
			heads[(*n_heads)++] = entry.block;
		else if (fp_count(page) == 0)
		{
			Buffer		meta = fp_lock_meta(vacuum->index);
			GenericXLogState *xlog = GenericXLogStart(vacuum->index);

			fp_remove(GenericXLogRegisterBuffer(xlog, buffer, 0), i);
			fp_free_page(xlog, meta, posting);
			GenericXLogFinish(xlog);
			bfindex_test_stop("fingerprint: after removing a reference");
			UnlockReleaseBuffer(meta);
		}
		UnlockReleaseBuffer(posting);
	}
}

static void
clean_bucket(Vacuum *vacuum, uint32 bucket)
{
	Buffer		buffer = fp_read_bucket(vacuum->index, bucket, BUFFER_LOCK_EXCLUSIVE, vacuum->strategy);
	FpChain		chain = {vacuum->index, vacuum->strategy};
	BlockNumber first = BufferGetBlockNumber(buffer);
	BlockNumber from = first;
	BlockNumber block;
	BlockNumber *heads = NULL;
	unsigned	n_heads = 0;

	if (PageIsNew(BufferGetPage(buffer)))
	{
		UnlockReleaseBuffer(buffer);
		return;
	}
	heads = palloc(FP_CAPACITY * sizeof(BlockNumber));
	clean_page(vacuum, buffer);
	clean_references(vacuum, &chain, buffer, heads, &n_heads);
	for (block = fp_header(BufferGetPage(buffer))->next; block != InvalidBlockNumber;)
	{
		Buffer		overflow = fp_follow(&chain, from, block, FP_OVERFLOW, BUFFER_LOCK_EXCLUSIVE);

		clean_page(vacuum, overflow);
		heads = repalloc(heads, (n_heads + FP_CAPACITY) * sizeof(BlockNumber));
		clean_references(vacuum, &chain, overflow, heads, &n_heads);
		from = block;
		block = fp_header(BufferGetPage(overflow))->next;
		UnlockReleaseBuffer(overflow);
	}
	if (fp_header(BufferGetPage(buffer))->next != InvalidBlockNumber)
		fp_absorb(vacuum->index, buffer);
	UnlockReleaseBuffer(buffer);
	for (unsigned i = 0; i < n_heads; i++)
		clean_posting(vacuum, first, heads[i]);
	pfree(heads);
}

/* Several passes can belong to one VACUUM: the last one tells what remains. */
IndexBulkDeleteResult *
fp_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *result, IndexBulkDeleteCallback callback, void *state)
{
	Vacuum		vacuum = {info->index, info->strategy, callback, state};
	FpMeta		before = fp_read_meta(info->index);
	FpMeta		after;
	uint32		bucket = 0;
	uint32		end;

	while (bucket < (end = fp_count_buckets(info->index)))
	{
		for (; bucket < end; bucket++)
		{
			bf_vacuum_delay_point();
			clean_bucket(&vacuum, bucket);
		}
	}
	after = fp_read_meta(info->index);
	if (result == NULL)
		result = palloc0(sizeof(IndexBulkDeleteResult));
	result->num_pages = RelationGetNumberOfBlocks(info->index);
	result->num_index_tuples = vacuum.remaining;

	/* entries that moved meanwhile may have been counted twice */
	result->estimated_count = after.level != before.level || after.sweep != before.sweep || after.group != before.group;
	result->tuples_removed += vacuum.removed;
	return result;
}

IndexBulkDeleteResult *
fp_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *result)
{
	if (info->analyze_only)
		return result;
	if (result == NULL)
	{
		result = palloc0(sizeof(IndexBulkDeleteResult));
		result->num_index_tuples = info->num_heap_tuples;
		result->estimated_count = true;
	}
	result->num_pages = RelationGetNumberOfBlocks(info->index);
	return result;
}
