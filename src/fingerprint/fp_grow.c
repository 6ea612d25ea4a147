/*
 * fp_grow.c
 *		Growing by one bucket.
 *
 * The next group in the order of the sweep gets another bucket.  Each of its older
 * buckets gives the new one a share of its entries.  This is one WAL record per bucket,
 * which contains both pages.  So after a crash, a bucket has given away all of its share
 * or nothing, and its page records which; the process that grows the index next continues
 * from there.
 *
 * A bucket with overflow pages takes several records.  The last one is that of its
 * primary page, which until then is marked as "giving": readers of such a bucket read the
 * new one as well.  (Both are locked meanwhile, so the mark is only seen after a crash,
 * and on a standby.)
 *
 * The metapage is changed last.  It is a hint for finding a bucket, and determines the
 * next group.
 */
#include "fingerprint.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "../index/teststop.h"

/* The file is extended in steps of this number of pages, 16 MB. */
#define EXTEND_PAGES		2048

/* A group whose buckets are emptier than this share does not grow. */
#define WORTH_GROWING		0.65

/* ----------------------------------------------------------------
 * Extents
 * ----------------------------------------------------------------
 */

/*
 * Ensure that the file has the extent of a bucket.  Overflow pages may be taken into use
 * meanwhile, so the place of the extent is not known until it is there.
 */
static void
ensure_extent(Relation index, uint32 bucket)
{
	uint32		offset;
	uint32		size;
	unsigned	extent = fp_extent(bucket, &offset, &size);

	for (;;)
	{
		Buffer		meta_buffer = fp_lock_meta(index);
		FpMeta	   *meta = (FpMeta *) ((char *) BufferGetPage(meta_buffer) + FP_META_OFFSET);
		BlockNumber blocks = RelationGetNumberOfBlocks(index);
		bool		done = extent < meta->extents;

		if (!done && extent != meta->extents)
			index_damaged(index, FP_META_BLOCK, "Its number of extents contradicts its size.");
		if (!done && (uint64) meta->end + size > blocks)
			bf_extend_with_zeros(index, blocks, Min(meta->end + size - blocks, EXTEND_PAGES));
		else if (!done)
		{
			BlockNumber last = meta->end + size - 1;
			Buffer		buffer = fp_read_new(index, last);
			GenericXLogState *xlog;

			/*
			 * a page that is written makes the file as long on a standby, and
			 * after a crash
			 */
			xlog = GenericXLogStart(index);
			meta = (FpMeta *) (GenericXLogRegisterBuffer(xlog, meta_buffer, 0) + FP_META_OFFSET);
			meta->extent[meta->extents++] = meta->end;
			meta->end += size;
			fp_init_page(GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE), FP_PRIMARY,
						 bucket - offset + size - 1);
			bfindex_test_stop("fingerprint: before extent");
			GenericXLogFinish(xlog);
			bfindex_test_stop("fingerprint: after extent");
			UnlockReleaseBuffer(buffer);
			done = true;
		}
		UnlockReleaseBuffer(meta_buffer);
		if (done)
			break;
		CHECK_FOR_INTERRUPTS();
	}
}

/* ----------------------------------------------------------------
 * Giving
 * ----------------------------------------------------------------
 */

/* A move of entries from one bucket, the giver, to another one, the taker. */
typedef struct Gift
{
	Relation	index;
	FpStep		step;			/* that is taken */
	unsigned	member;			/* of the group, that gives */
	uint32		bucket;			/* that takes */
	Buffer		giver;
	Buffer		taker;
} Gift;

/* The numbers of the entries of a page that belong to the taker, the highest first. */
static unsigned
find_given(const Gift *gift, Page page, uint16 *numbers)
{
	uint64		base = fp_base(BufferGetPage(gift->giver));
	unsigned	n = 0;

	for (unsigned i = fp_count(page); i-- > 0;)
	{
		if (fp_bucket(fp_get(page, i, base).hash, gift->step, NULL) == gift->bucket)
			numbers[n++] = (uint16) i;
	}
	return n;
}

/* Does a page have enough bits of each hash? */
static bool
knows_bits(Page page, FpStep step)
{
	return fp_count(page) == 0 || fp_header(page)->high_bit > fp_level(step - 1);
}

/*
 * Give the entries of a page, which is the primary page of the giver or one of its
 * overflow pages.  The record of the primary page completes the move.  False, and no
 * change, if the taker has no room.
 */
static bool
give_page(const Gift *gift, Buffer buffer)
{
	bool		last = buffer == gift->giver;
	bool		is_new = PageIsNew(BufferGetPage(gift->taker));
	uint16		numbers[FP_CAPACITY];
	unsigned	n = find_given(gift, BufferGetPage(buffer), numbers);
	uint64		base = fp_base(BufferGetPage(gift->giver));
	GenericXLogState *xlog = GenericXLogStart(gift->index);
	Page		giver = GenericXLogRegisterBuffer(xlog, gift->giver, 0);
	Page		from = last ? giver : GenericXLogRegisterBuffer(xlog, buffer, 0);
	Page		to = GenericXLogRegisterBuffer(xlog, gift->taker, is_new ? GENERIC_XLOG_FULL_IMAGE : 0);

	if (is_new)
		fp_init_page(to, FP_PRIMARY, gift->bucket);
	for (unsigned i = 0; i < n; i++)
	{
		FpEntry		entry = fp_get(from, numbers[i], base);

		if (fp_room(to) == 0 ||
			!fp_make_fit(to, &entry, fp_header(from)->high_bit, fp_level(gift->step)) || fp_room(to) == 0)
		{
			GenericXLogAbort(xlog);
			return false;
		}
		fp_append(to, &entry);
		fp_remove(from, numbers[i]);
	}
	fp_header(giver)->giving = !last;
	if (last)
	{
		fp_header(giver)->step = (uint8) gift->step;
		fp_header(to)->received |= (uint8) (1 << gift->member);
	}
	bfindex_test_stop("fingerprint: before giving");
	GenericXLogFinish(xlog);
	bfindex_test_stop("fingerprint: after giving");
	return true;
}

/* Give as much as the taker has room for, after making room if necessary. */
static void
give_page_surely(const Gift *gift, Buffer buffer)
{
	if (give_page(gift, buffer))
		return;
	fp_spill(gift->index, gift->taker);
	if (!give_page(gift, buffer))
		index_damaged(gift->index, BufferGetBlockNumber(buffer), "Its entries do not fit another page.");
}

/*
 * Let one bucket give its share to another.  Both are locked.  A bucket that lacks the
 * necessary bits of its hashes, or has not received all of its own entries yet, keeps its
 * entries, where lookups find them.
 */
static void
give(const Gift *gift)
{
	Page		page = BufferGetPage(gift->giver);
	uint32		bucket;
	FpOrigin	origin;
	BlockNumber block;

	if (PageIsNew(page) || fp_header(page)->step != gift->step - 1 || !knows_bits(page, gift->step))
		return;
	bucket = fp_header(page)->bucket;
	origin = fp_origin(bucket);
	if (origin.step > 0 && fp_header(page)->received != (1 << origin.member) - 1)
		return;
	for (unsigned pass = 0; pass < 2; pass++)
	{
		FpChain		chain = {gift->index};
		BlockNumber from = BufferGetBlockNumber(gift->giver);

		/* first see whether all pages of the bucket can give */
		for (block = fp_header(page)->next; block != InvalidBlockNumber;)
		{
			Buffer		overflow = fp_follow(&chain, from, block, FP_OVERFLOW, BUFFER_LOCK_EXCLUSIVE);
			bool		knows = knows_bits(BufferGetPage(overflow), gift->step);

			if (pass == 1)
				give_page_surely(gift, overflow);
			from = block;
			block = fp_header(BufferGetPage(overflow))->next;
			UnlockReleaseBuffer(overflow);
			if (!knows && pass == 0)
				return;
		}
	}
	give_page_surely(gift, gift->giver);
	fp_absorb(gift->index, gift->giver);
}

/* ----------------------------------------------------------------
 * A step
 * ----------------------------------------------------------------
 */

/*
 * Are the buckets of a group full enough to grow?  A single page can also be full because
 * of keys that growing does not separate, such as crafted ones.
 */
static bool
is_worth_growing(Relation index, const FpMeta *meta)
{
	unsigned	members = FP_GROUP + meta->sweep;
	const unsigned capacity = FP_CAPACITY;
	double		load = 0;

	for (unsigned i = 0; i < members; i++)
	{
		Buffer		buffer = fp_read_bucket(index, fp_bucket_of(meta->group, meta->level, i), BUFFER_LOCK_SHARE, NULL);
		Page		page = BufferGetPage(buffer);

		if (!PageIsNew(page))
			load += fp_header(page)->next != InvalidBlockNumber ? 1 : 1 - (double) fp_room(page) / capacity;
		UnlockReleaseBuffer(buffer);
	}
	return load >= WORTH_GROWING * members;
}

/* Record on the metapage that a step is taken. */
static void
advance(Relation index)
{
	Buffer		buffer = fp_lock_meta(index);
	GenericXLogState *xlog = GenericXLogStart(index);
	FpMeta	   *meta = (FpMeta *) (GenericXLogRegisterBuffer(xlog, buffer, 0) + FP_META_OFFSET);

	if (++meta->group == UINT32_C(1) << meta->level)
	{
		meta->group = 0;
		if (++meta->sweep == FP_GROUP)
		{
			meta->sweep = 0;
			meta->level++;
		}
	}
	GenericXLogFinish(xlog);
	UnlockReleaseBuffer(buffer);
	fp_forget_meta(index);
}

/*
 * Add a bucket, unless another process is doing so.  The caller holds no lock on any
 * page.
 */
void
fp_grow(Relation index)
{
	FpMeta		meta;

	if (!ConditionalLockPage(index, FP_META_BLOCK, ExclusiveLock))
		return;
	meta = fp_read_meta(index);
	if ((meta.level < FP_MAX_LEVEL || meta.sweep < FP_GROUP - 1) && is_worth_growing(index, &meta))
	{
		Gift		gift = {index};

		gift.step = meta.level * FP_GROUP + meta.sweep + 1;
		gift.bucket = fp_bucket_of(meta.group, meta.level, FP_GROUP + meta.sweep);
		ensure_extent(index, gift.bucket);
		for (gift.member = 0; gift.member < FP_GROUP + meta.sweep; gift.member++)
		{
			CHECK_FOR_INTERRUPTS();
			gift.giver = fp_read_bucket(index, fp_bucket_of(meta.group, meta.level, gift.member),
										BUFFER_LOCK_EXCLUSIVE, NULL);
			gift.taker = fp_read_bucket(index, gift.bucket, BUFFER_LOCK_EXCLUSIVE, NULL);
			give(&gift);
			UnlockReleaseBuffer(gift.taker);
			UnlockReleaseBuffer(gift.giver);
		}
		advance(index);
	}
	UnlockPage(index, FP_META_BLOCK, ExclusiveLock);
}
