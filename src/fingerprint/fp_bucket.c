/*
 * fp_bucket.c
 *		Finding the bucket of a hash, inserting, and making room in a bucket.
 *
 * The lock on the primary page of a bucket protects the whole bucket: a process that
 * changes one of its overflow pages has the primary page locked exclusively, and a
 * process that reads one has it locked.  Entries are always inserted into the primary
 * page.  When that is full, one of two things happens.  If many entries have the same
 * fingerprint, because many rows have the same key, they move to posting pages, and one
 * entry that refers to those pages replaces them.  Otherwise all entries move to a new
 * overflow page.
 *
 * Locks are taken in this order: primary pages, older buckets first; overflow and posting
 * pages, along their chains; the metapage; a page that is taken into use.
 */
#include "fingerprint.h"

#include "miscadmin.h"
#include "storage/smgr.h"

#include "../index/teststop.h"


/* The number of pages by which the file grows when an overflow or posting page is needed. */
#define EXTEND_PAGES		8

/* ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

/* Return the primary page of a bucket, locked. */
Buffer
fp_read_bucket(Relation index, uint32 bucket, int lock, BufferAccessStrategy strategy)
{
	BlockNumber block = fp_block_of(index, fp_meta(index), bucket);
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);

	LockBuffer(buffer, lock);
	fp_check_page(index, buffer, FP_PRIMARY);
	if (PageIsNew(BufferGetPage(buffer)) ? bucket < FP_GROUP : fp_header(BufferGetPage(buffer))->bucket != bucket)
		index_damaged(index, block, "It is not the page of its bucket.");
	return buffer;
}

/*
 * Raise an error unless a link on block `from` can lead to a block.  Links in a circle are
 * detected by Brent's method (An improved Monte Carlo factorization algorithm, 1980): a
 * page is remembered, after 1, 2, 4, 8, ... pages, until it is met again.
 */
static void
check_link(FpChain *chain, BlockNumber from, BlockNumber block)
{
	if (block >= chain->blocks)
		chain->blocks = RelationGetNumberOfBlocks(chain->index);
	if (block >= chain->blocks || block == FP_META_BLOCK || block == from)
		index_damaged(chain->index, from, "It refers to an invalid block.");
	if (chain->pages > 0 && block == chain->mark)
		index_damaged(chain->index, from, "Pages refer to each other in a circle.");
	chain->pages++;
	if ((chain->pages & (chain->pages - 1)) == 0)
		chain->mark = block;
}

/*
 * Return the page that a link leads to, locked.  Block `from` has the link, or had it before pages
 * between them were freed.  The page keeps its kind meanwhile: `from` is locked, or is a posting page
 * and the caller is VACUUM, which alone frees those.  For free pages, `from` is the metapage.
 *
 * The kind is checked before the page is locked, because a damaged link could lead to a
 * page that this process has locked.  Such a page is of another kind, except for `from`.
 * On a standby, recovery zeroes a page before it restores an image of it, with only that
 * page locked: a reader that sees kind 0 waits for the lock.
 */
Buffer
fp_follow(FpChain *chain, BlockNumber from, BlockNumber block, FpKind kind, int lock)
{
	Buffer		buffer;
	uint8		found;

	check_link(chain, from, block);
	buffer = ReadBufferExtended(chain->index, MAIN_FORKNUM, block, RBM_NORMAL, chain->strategy);
	found = ((volatile FpPage *) fp_header(BufferGetPage(buffer)))->kind;
	if (found != kind && !(found == 0 && lock == BUFFER_LOCK_SHARE))
		index_damaged(chain->index, block, "It is not a page of the expected kind.");
	LockBuffer(buffer, lock);
	fp_check_page(chain->index, buffer, kind);
	return buffer;
}

/*
 * Return a posting page that a link leads to, locked for reading, while nothing that leads there is
 * locked.  InvalidBuffer if the page has been freed in the meantime.
 */
Buffer
fp_follow_unlocked(FpChain *chain, BlockNumber from, BlockNumber block, uint32 generation)
{
	Buffer		buffer;
	const FpPage *header;

	check_link(chain, from, block);
	buffer = ReadBufferExtended(chain->index, MAIN_FORKNUM, block, RBM_NORMAL, chain->strategy);
	header = fp_header(BufferGetPage(buffer));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (PageIsNew(BufferGetPage(buffer)) || header->kind != FP_POSTING || header->generation != generation)
	{
		UnlockReleaseBuffer(buffer);
		return InvalidBuffer;
	}
	fp_check_page(chain->index, buffer, FP_POSTING);
	return buffer;
}

/* Has a bucket received the entries of this hash?  The first buckets have had them from the start. */
static bool
has_received(Page page, uint32 bucket, uint64 hash)
{
	FpOrigin	origin = fp_origin(bucket);
	unsigned	giver;

	if (origin.step == 0)
		return true;
	if (PageIsNew(page))
		return false;
	if (likely(fp_header(page)->received == (1 << origin.member) - 1))
		return true;
	fp_bucket(hash, origin.step - 1, &giver);
	return (fp_header(page)->received & (1 << giver)) != 0;
}

/*
 * Return the primary page of the bucket that a hash belongs to, locked.
 *
 * The metapage is a hint.  The page of a bucket records from which buckets it has received
 * entries, and up to which step it has given entries away.  The address is computed again
 * from there, until bucket and address agree.  Each such change is one WAL record, so this
 * works on a standby as well.
 */
Buffer
fp_locate(Relation index, uint64 hash, int lock)
{
	FpStep		step = fp_hint(fp_meta(index), hash);

	for (unsigned tries = 0;; tries++)
	{
		uint32		bucket = fp_bucket(hash, step, NULL);
		Buffer		buffer = fp_read_bucket(index, bucket, lock, NULL);
		Page		page = BufferGetPage(buffer);

		if (!has_received(page, bucket, hash))
			step = fp_origin(bucket).step - 1;
		else if (fp_header(page)->step == step || fp_bucket(hash, fp_header(page)->step, NULL) == bucket)
			return buffer;
		else
		{
			step = fp_step_shown(hash, bucket, fp_header(page)->step);
			fp_forget_meta(index);
		}
		UnlockReleaseBuffer(buffer);
		CHECK_FOR_INTERRUPTS();
		if (tries > FP_GROUP * FP_MAX_LEVEL * 4)
			index_damaged(index, FP_META_BLOCK, "Buckets refer to each other in a circle.");
	}
}

/* ----------------------------------------------------------------
 * Pages that are taken into use, and freed
 * ----------------------------------------------------------------
 */

/* Return the metapage, locked exclusively. */
Buffer
fp_lock_meta(Relation index)
{
	Buffer		meta = ReadBuffer(index, FP_META_BLOCK);

	LockBuffer(meta, BUFFER_LOCK_EXCLUSIVE);
	fp_check_meta(index, BufferGetPage(meta));
	return meta;
}

/* The metapage's contents, in a buffer or in its copy that is to be logged. */
static FpMeta *
meta_of(Page page)
{
	return (FpMeta *) ((char *) page + FP_META_OFFSET);
}

/* Return a page behind those that are in use, locked exclusively. */
Buffer
fp_read_new(Relation index, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(index, block);

	/* looked at before it is locked, for the reason that fp_follow has */
	if (!PageIsNew(BufferGetPage(buffer)))
		index_damaged(index, FP_META_BLOCK, "A page behind the last one is in use.");
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	return buffer;
}

/*
 * Find a page that is not in use, and lock it.  fp_use_page takes it into use.  The lock on
 * the metapage also protects extending the file, whose space is allocated on disk.
 */
static Buffer
fp_find_page(Relation index, Buffer meta_buffer)
{
	const FpMeta *meta = meta_of(BufferGetPage(meta_buffer));
	FpChain		chain = {index};

	if (meta->free != InvalidBlockNumber)
		return fp_follow(&chain, FP_META_BLOCK, meta->free, FP_FREE, BUFFER_LOCK_EXCLUSIVE);
	if (RelationGetNumberOfBlocks(index) <= meta->end)
		bf_extend_with_zeros(index, RelationGetNumberOfBlocks(index), EXTEND_PAGES);
	return fp_read_new(index, meta->end);
}

/* Initialize a page that was found, as part of a record. */
static Page
fp_use_page(GenericXLogState *xlog, Buffer meta_buffer, Buffer buffer, FpKind kind, uint32 bucket)
{
	Page		old = BufferGetPage(buffer);
	bool		was_free = !PageIsNew(old);
	FpMeta	   *meta = meta_of(GenericXLogRegisterBuffer(xlog, meta_buffer, 0));
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE);
	uint32		generation = was_free ? fp_header(old)->generation + 1 : 1;

	if (meta->free != InvalidBlockNumber)
		meta->free = fp_header(old)->next;
	else
		meta->end++;
	fp_init_page(page, kind, bucket);
	fp_header(page)->generation = generation;
	return page;
}

/* Free a page, as part of a record. */
void
fp_free_page(GenericXLogState *xlog, Buffer meta_buffer, Buffer buffer)
{
	FpMeta	   *meta = meta_of(GenericXLogRegisterBuffer(xlog, meta_buffer, 0));
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, 0);
	uint32		generation = fp_header(page)->generation + 1;

	fp_init_page(page, FP_FREE, 0);
	fp_header(page)->generation = generation;
	fp_header(page)->next = meta->free;
	meta->free = BufferGetBlockNumber(buffer);
}

/* ----------------------------------------------------------------
 * Making room
 * ----------------------------------------------------------------
 */

/* Move all entries of a primary page, which is locked exclusively, to a new overflow page. */
void
fp_spill(Relation index, Buffer buffer)
{
	Buffer		meta = fp_lock_meta(index);
	Buffer		overflow = fp_find_page(index, meta);
	GenericXLogState *xlog = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, 0);
	Page		to = fp_use_page(xlog, meta, overflow, FP_OVERFLOW, fp_header(page)->bucket);
	FpPage		was = *fp_header(to);

	memcpy(to, page, BLCKSZ);
	fp_header(to)->kind = FP_OVERFLOW;
	fp_header(to)->generation = was.generation;
	fp_clear(page);
	fp_header(page)->next = BufferGetBlockNumber(overflow);
	bfindex_test_stop("fingerprint: before spill");
	GenericXLogFinish(xlog);
	bfindex_test_stop("fingerprint: after spill");
	UnlockReleaseBuffer(overflow);
	UnlockReleaseBuffer(meta);
}

/* A fingerprint on a page, and the number of its entry. */
typedef struct Numbered
{
	uint64		fingerprint;
	uint16		number;
} Numbered;

static int
compare_numbered(const void *a, const void *b)
{
	const Numbered *x = a;
	const Numbered *y = b;

	if (x->fingerprint != y->fingerprint)
		return x->fingerprint < y->fingerprint ? -1 : 1;
	return (int) x->number - (int) y->number;
}

static int
compare_numbers_descending(const void *a, const void *b)
{
	return (int) *(const uint16 *) b - (int) *(const uint16 *) a;
}

/*
 * Find the fingerprint that most entries of a page have, if these are enough for posting
 * pages.  Returns the numbers of the entries, the highest first.  References are not
 * counted, and never move to a posting page: a page can have several of one fingerprint,
 * from overflow pages that it has absorbed.
 */
static unsigned
find_hot(Page page, uint16 *numbers)
{
	Numbered	sorted[FP_CAPACITY] = {0};
	unsigned	n = 0;
	unsigned	most = 0;
	unsigned	start = 0;

	for (unsigned i = 0; i < fp_count(page); i++)
	{
		FpEntry		entry = fp_get(page, i, 0);

		if (entry.offset != InvalidOffsetNumber)
			sorted[n++] = (Numbered) {entry.hash, (uint16) i};
	}
	qsort(sorted, n, sizeof(Numbered), compare_numbered);
	for (unsigned i = 0, run = 0; i < n; i++)
	{
		run = i > 0 && sorted[i].fingerprint == sorted[i - 1].fingerprint ? run + 1 : 1;
		if (run > most)
		{
			most = run;
			start = i + 1 - run;
		}
	}
	if (most < FP_HOT)
		return 0;
	for (unsigned i = 0; i < most; i++)
		numbers[i] = sorted[start + i].number;
	qsort(numbers, most, sizeof(uint16), compare_numbers_descending);
	return most;
}

/*
 * Move entries from one page to another, all of them or none.  Both pages are copies that
 * are to be logged.  Numbers descend: the last entry of the page, which replaces a removed
 * one, is then not one that is still to be moved.
 */
static bool
move_entries(Page from, const uint16 *numbers, unsigned n, Page to, uint64 base, unsigned level)
{
	if (fp_room(to) < n)
		return false;
	for (unsigned i = 0; i < n; i++)
	{
		FpEntry		entry = fp_get(from, numbers[i], base);

		if (fp_room(to) == 0 || !fp_make_fit(to, &entry, fp_header(from)->high_bit, level) || fp_room(to) == 0)
			return false;
		fp_append(to, &entry);
	}
	for (unsigned i = 0; i < n; i++)
		fp_remove(from, numbers[i]);
	return true;
}

/*
 * Move the entries of a frequent fingerprint from a primary page, which is locked
 * exclusively, to posting pages.  False if there is no such fingerprint.
 */
static bool
fp_extract(Relation index, Buffer buffer)
{
	uint16		numbers[FP_CAPACITY];
	unsigned	n = find_hot(BufferGetPage(buffer), numbers);
	FpEntry		reference = {0};
	bool		referred = false;
	FpChain		chain = {index};
	Buffer		head = InvalidBuffer;
	Buffer		meta = InvalidBuffer;
	Buffer		posting = InvalidBuffer;
	GenericXLogState *xlog;
	Page		page;
	Page		to;
	unsigned	level;
	unsigned	known;
	uint64		base;
	bool		extracted;

	if (n == 0)
		return false;
	known = fp_header(BufferGetPage(buffer))->high_bit;
	level = fp_level(fp_header(BufferGetPage(buffer))->step);
	base = fp_base(BufferGetPage(buffer));

	/* is there a reference already? */
	reference.hash = fp_get(BufferGetPage(buffer), numbers[0], base).hash;
	for (unsigned i = 0; i < fp_count(BufferGetPage(buffer)) && !referred; i++)
	{
		FpEntry		entry = fp_get(BufferGetPage(buffer), i, base);

		if (entry.offset == InvalidOffsetNumber && entry.hash == reference.hash)
		{
			reference = entry;
			referred = true;
		}
	}
	if (referred)
	{
		head = fp_follow(&chain, BufferGetBlockNumber(buffer), reference.block, FP_POSTING, BUFFER_LOCK_EXCLUSIVE);
		xlog = GenericXLogStart(index);
		page = GenericXLogRegisterBuffer(xlog, buffer, 0);
		to = GenericXLogRegisterBuffer(xlog, head, 0);
		if (fp_room(to) >= FP_HOT && move_entries(page, numbers, Min(n, fp_room(to)), to, base, level))
		{
			GenericXLogFinish(xlog);
			UnlockReleaseBuffer(head);
			return true;
		}
		GenericXLogAbort(xlog);
	}

	/* a new posting page, before the others */
	meta = fp_lock_meta(index);
	posting = fp_find_page(index, meta);
	xlog = GenericXLogStart(index);
	page = GenericXLogRegisterBuffer(xlog, buffer, 0);
	to = fp_use_page(xlog, meta, posting, FP_POSTING, 0);
	if (referred)
	{
		fp_header(to)->next = reference.block;
		fp_header(to)->next_generation = fp_header(BufferGetPage(head))->generation;
		for (unsigned i = 0; i < fp_count(page); i++)
		{
			FpEntry		entry = fp_get(page, i, base);

			if (entry.offset == InvalidOffsetNumber && entry.block == reference.block && entry.hash == reference.hash)
			{
				/*
				 * entries are removed from the highest number on; this one
				 * moves to the end
				 */
				for (unsigned j = 0; j < n; j++)
				{
					if (numbers[j] == fp_count(page) - 1)
						numbers[j] = (uint16) i;
				}
				fp_remove(page, i);
				qsort(numbers, n, sizeof(uint16), compare_numbers_descending);
				break;
			}
		}
	}
	if (!move_entries(page, numbers, n, to, base, level))
		index_damaged(index, BufferGetBlockNumber(buffer), "Its entries do not fit another page.");
	reference.block = BufferGetBlockNumber(posting);
	reference.offset = InvalidOffsetNumber;
	extracted = fp_make_fit(page, &reference, known, level);
	if (extracted)
	{
		fp_append(page, &reference);
		bfindex_test_stop("fingerprint: before posting");
		GenericXLogFinish(xlog);
		bfindex_test_stop("fingerprint: after posting");
	}
	else
		GenericXLogAbort(xlog);
	UnlockReleaseBuffer(posting);
	UnlockReleaseBuffer(meta);
	if (head != InvalidBuffer)
		UnlockReleaseBuffer(head);
	return extracted;
}

/*
 * Move entries of overflow pages back to the primary page, which is locked exclusively,
 * as far as there is room, and free overflow pages that are then empty.
 */
void
fp_absorb(Relation index, Buffer buffer)
{
	Buffer		previous = InvalidBuffer;
	FpChain		chain = {index};
	BlockNumber block = fp_header(BufferGetPage(buffer))->next;

	while (block != InvalidBlockNumber)
	{
		BlockNumber from = BufferGetBlockNumber(previous == InvalidBuffer ? buffer : previous);
		Buffer		overflow = fp_follow(&chain, from, block, FP_OVERFLOW, BUFFER_LOCK_EXCLUSIVE);
		unsigned	n = fp_count(BufferGetPage(overflow));
		bool		absorbed = false;

		block = fp_header(BufferGetPage(overflow))->next;
		if (fp_room(BufferGetPage(buffer)) > n + FP_LITTLE_ROOM)
		{
			Buffer		meta = fp_lock_meta(index);
			GenericXLogState *xlog = GenericXLogStart(index);
			Page		page = GenericXLogRegisterBuffer(xlog, buffer, 0);
			Page		before = previous == InvalidBuffer ? page : GenericXLogRegisterBuffer(xlog, previous, 0);
			Page		source = GenericXLogRegisterBuffer(xlog, overflow, 0);
			uint16		numbers[FP_CAPACITY];

			for (unsigned i = 0; i < n; i++)
				numbers[i] = (uint16) (n - 1 - i);
			absorbed = move_entries(source, numbers, n, page, fp_base(page), fp_level(fp_header(page)->step));
			if (absorbed)
			{
				fp_header(before)->next = block;
				fp_header(page)->generation++;	/* readers of a standby wait
												 * for this page */
				fp_free_page(xlog, meta, overflow);
				GenericXLogFinish(xlog);
				bfindex_test_stop("fingerprint: after absorbing");
			}
			else
				GenericXLogAbort(xlog);
			UnlockReleaseBuffer(meta);
		}
		if (absorbed)
			UnlockReleaseBuffer(overflow);
		else
		{
			if (previous != InvalidBuffer)
				UnlockReleaseBuffer(previous);
			previous = overflow;
		}
	}
	if (previous != InvalidBuffer)
		UnlockReleaseBuffer(previous);
}

/* ----------------------------------------------------------------
 * Inserting
 * ----------------------------------------------------------------
 */

/* Encode a page anew and append an entry; false if the page has no room for that. */
static bool
append_recoded(Relation index, Buffer buffer, const FpEntry *entry)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, 0);

	if (!fp_make_fit(page, entry, FP_TAG_SHIFT, fp_level(fp_header(page)->step)))
	{
		GenericXLogAbort(xlog);
		return false;
	}
	fp_append(page, entry);
	GenericXLogFinish(xlog);
	return true;
}

/*
 * Insert an entry whose whole hash is known.  Afterwards, grow the index if the page is
 * nearly full.
 */
void
fp_insert_entry(Relation index, const FpEntry *entry, bool may_grow)
{
	bool		crowded = false;
	bool		done = false;

	while (!done)
	{
		Buffer		buffer = fp_locate(index, entry->hash, BUFFER_LOCK_EXCLUSIVE);
		Page		page = BufferGetPage(buffer);

		if (fp_room(page) > 0 && fp_count(page) > 0 && fp_fits(page, entry))
		{
			fp_append_logged(index, buffer, entry);
			done = true;
		}
		else if (fp_room(page) > 0)
			done = append_recoded(index, buffer, entry);
		if (done && fp_room(page) < FP_LITTLE_ROOM)
			crowded |= fp_room(page) != FP_LITTLE_ROOM - 1 || !fp_extract(index, buffer);
		else if (!done && !fp_extract(index, buffer))
		{
			fp_spill(index, buffer);
			crowded = true;
		}
		UnlockReleaseBuffer(buffer);
	}
	if (crowded && may_grow)
		fp_grow(index);
}
