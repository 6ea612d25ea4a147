/*
 * page.c
 *		Pages of the index: layout, checks and changes.
 *
 * Every page is checked when it is read, because block numbers in the metapage are used as
 * addresses.  A page of zeros is an empty page of lines: a new layer is made by
 * extending the file, and each of its pages is initialized when it gets its first key.
 *
 * WAL.  All changes but setting the bits of a key go through GenericXLog.  GenericXLog
 * compares whole pages to find the changed bytes, which takes 7 to 9 microseconds and
 * would be three quarters of an insert.  Here the changed bytes are known: a few bytes of
 * one line, and a counter.  So bfindex_set_key makes the record that GenericXLog would
 * make, one block with a list of changed regions (offset, length, bytes), for the same
 * resource manager to replay.  That is correct as long as
 *
 *	- generic_redo() works as in PostgreSQL 15 to 19: it copies each region into the page,
 *	  then clears the bytes between pd_lower and pd_upper, of which there are none here.
 *	  On an unknown major version, GenericXLog makes the record (BF_KNOWN_GENERIC_REDO).
 *	- the record has one block and no main data, the buffer is dirty before it is
 *	  registered, and the block is never registered with REGBUF_WILL_INIT: the first
 *	  change of a page after a checkpoint carries an image of the page, as usual.
 *	- a page of zeros is changed only by an image of the whole page.
 */
#include "../compat.h"

#include "access/generic_xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "index.h"

/* ----------------------------------------------------------------
 * Reading
 * ----------------------------------------------------------------
 */

/* Return a sentence on what is wrong with a metapage of this version, or NULL. */
static const char *
bfindex_meta_problem(const BfindexMeta *meta, BlockNumber blocks)
{
	uint64		next = BFINDEX_META_BLOCK + 1;

	if (!(meta->fpp >= BFINDEX_MIN_FPP && meta->fpp <= BFINDEX_MAX_FPP))
		return "Its false-positive probability is out of range.";
	if (!index_key_class_is_known(&meta->class))
		return "Its key class is unknown.";
	if (meta->layers < 1 || meta->layers > BFINDEX_MAX_LAYERS)
		return "Its number of layers is out of range.";
	for (unsigned i = 0; i < meta->layers; i++)
	{
		const BfindexLayer *layer = &meta->layer[i];

		if (layer->first != next)
			return "A layer starts at an unexpected block.";
		if (layer->pages < 1 || next + layer->pages > blocks)
			return "The number of pages of a layer is out of range.";
		if (layer->probes < 1 || layer->probes > BF_MAX_PROBES || layer->full_bits < 1 || layer->page_keys < 1 ||
			!(layer->fpp > 0 && layer->fpp < 1))
			return "The parameters of a layer are out of range.";
		next += layer->pages;
	}
	return NULL;
}

/* Read the metapage, and check it. */
BfindexMeta
bfindex_read_meta(Relation index)
{
	Buffer		buffer = ReadBuffer(index, BFINDEX_META_BLOCK);
	BfindexMeta meta;
	const char *problem;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(&meta, (char *) BufferGetPage(buffer) + BFINDEX_META_OFFSET, sizeof(meta));
	UnlockReleaseBuffer(buffer);
	if (meta.magic != BFINDEX_META_MAGIC)
		index_damaged(index, BFINDEX_META_BLOCK, "It is not the metapage of a bloomfilter index.");
	index_version_check(index, meta.version, BFINDEX_VERSION);
	problem = bfindex_meta_problem(&meta, RelationGetNumberOfBlocks(index));
	if (problem != NULL)
		index_damaged(index, BFINDEX_META_BLOCK, problem);
	return meta;
}

/*
 * Return a copy of the metapage, with at least this number of layers if the index has them.
 *
 * The copy is kept in rd_amcache, which the server frees when it invalidates the relation
 * cache entry: it can be used until the next access to a catalog.  It can be outdated, but
 * only in the number of layers, because existing layers do not change as long as the file
 * is the same.  So the page is read again only for a layer that the copy lacks.
 */
static const BfindexMeta *
bfindex_cached_meta(Relation index, unsigned layers)
{
	const BfindexMeta *meta = index->rd_amcache;

	if (unlikely(meta == NULL || meta->layers < layers))
	{
		BfindexMeta current = bfindex_read_meta(index);

		if (index->rd_amcache == NULL)
			index->rd_amcache = MemoryContextAlloc(index->rd_indexcxt, sizeof(BfindexMeta));
		meta = memcpy(index->rd_amcache, &current, sizeof(BfindexMeta));
	}
	return meta;
}

/* Get a layer by its number; false if there is no such layer. */
bool
bfindex_layer(Relation index, unsigned number, BfindexLayer *layer)
{
	const BfindexMeta *meta = bfindex_cached_meta(index, number + 1);

	if (number >= meta->layers)
		return false;
	*layer = meta->layer[number];
	return true;
}

/* Return the class of the keys of an index, valid until the next access to a catalog. */
const IndexKeyClass *
bfindex_class(Relation index)
{
	return &bfindex_cached_meta(index, 0)->class;
}

/* Raise an error if the metapage names another class of keys than the index has. */
void
bfindex_check_class(Relation index)
{
	IndexKeyClass class = *bfindex_class(index);

	index_key_class_check(index, &class, BFINDEX_META_BLOCK);
}

/* Raise the error for a page that has overflowed into a layer that does not exist. */
void
bfindex_lacks_layer(Relation index)
{
	index_damaged(index, BFINDEX_META_BLOCK, "It lacks a layer that another page refers to.");
}

/* Drop the copy of the metapage, after the file was built. */
void
bfindex_forget_meta(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

/* Check a locked page of lines.  False if it is a page of zeros, which has no keys yet. */
bool
bfindex_check_page(Relation index, Buffer buffer, unsigned layer)
{
	Page		page = BufferGetPage(buffer);
	const BfindexPage *header = (const BfindexPage *) page;

	if (PageIsNew(page))
		return false;
	if (((PageHeader) page)->pd_lower != BLCKSZ || ((PageHeader) page)->pd_upper != BLCKSZ ||
		header->magic != BFINDEX_PAGE_MAGIC)
		index_damaged(index, BufferGetBlockNumber(buffer), "It is not a page of a bloomfilter index.");
	if (header->layer != layer || header->bits_set > BFINDEX_PAGE_LINES * BF_LINE_BITS)
		index_damaged(index, BufferGetBlockNumber(buffer), "Its header contradicts the metapage.");
	return true;
}

/* ----------------------------------------------------------------
 * Making and changing
 * ----------------------------------------------------------------
 */

/* Initialize a page without a hole. */
static void
bfindex_init(Page page)
{
	PageInit(page, BLCKSZ, 0);
	((PageHeader) page)->pd_lower = BLCKSZ;
}

void
bfindex_init_meta_page(Page page, const BfindexMeta *meta)
{
	bfindex_init(page);
	memcpy((char *) page + BFINDEX_META_OFFSET, meta, sizeof(*meta));
}

void
bfindex_init_page(Page page, unsigned layer)
{
	BfindexPage *header = (BfindexPage *) page;

	bfindex_init(page);
	header->magic = BFINDEX_PAGE_MAGIC;
	header->layer = (uint16) layer;
}

/* Set the bits of a key on a page, which the caller logs. */
static void
bfindex_set_bits(Page page, unsigned line, unsigned probes, uint64 hash)
{
	((BfindexPage *) page)->bits_set +=
		bf_line_set(bfindex_page_lines(page) + line * BF_LINE_BYTES, BF_LINE_BITS, probes, hash);
}

/* Set the bits of a key by GenericXLog; on a page of zeros, initialize it. */
static void
bfindex_set_key_generic(Relation index, Buffer buffer, unsigned line, unsigned probes,
						unsigned layer, uint64 hash)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	bool		is_new = PageIsNew(BufferGetPage(buffer));
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, is_new ? GENERIC_XLOG_FULL_IMAGE : 0);

	if (is_new)
		bfindex_init_page(page, layer);
	bfindex_set_bits(page, line, probes, hash);
	GenericXLogFinish(xlog);
}

#define REGION_HEADER	(2 * sizeof(OffsetNumber))

/* Append a region of a page in the form that generic_redo() reads: offset, length, bytes. */
static char *
append_region(char *to, Page page, Size offset, Size length)
{
	OffsetNumber numbers[2] = {(OffsetNumber) offset, (OffsetNumber) length};

	memcpy(to, numbers, sizeof(numbers));
	memcpy(to + sizeof(numbers), (char *) page + offset, length);
	return to + sizeof(numbers) + length;
}

/* Return the bytes of a line that differ, as one bit per byte. */
static uint64
changed_bytes(const uint8 *before, const uint8 *after)
{
	uint64		changed = 0;

	for (unsigned word = 0; word < BF_LINE_WORDS; word++)
	{
		uint64		bits = bf_load64(before + word * sizeof(uint64)) ^ bf_load64(after + word * sizeof(uint64));

		while (bits != 0)
		{
			unsigned	byte = (unsigned) pg_rightmost_one_pos64(bits) / 8;

			changed |= UINT64CONST(1) << (word * sizeof(uint64) + byte);
			bits &= ~(UINT64CONST(0xFF) << (byte * 8));
		}
	}
	return changed;
}

StaticAssertDecl(BF_LINE_BYTES == 64, "one bit per byte of a line");

/*
 * Append the regions of a line that have changed.  Unchanged bytes between two regions are
 * included where that takes no more space than another region header.
 */
static char *
append_changed_regions(char *to, Page page, Size line_offset, uint64 changed)
{
	while (changed != 0)
	{
		unsigned	first = (unsigned) pg_rightmost_one_pos64(changed);
		unsigned	last = first;

		for (changed &= changed - 1; changed != 0; changed &= changed - 1)
		{
			unsigned	next = (unsigned) pg_rightmost_one_pos64(changed);

			if (next - last - 1 > REGION_HEADER)
				break;
			last = next;
		}
		to = append_region(to, page, line_offset + first, last - first + 1);
	}
	return to;
}

/*
 * Set the bits of a key on a page that is locked exclusively, and log the change.  At most
 * BF_MAX_PROBES bytes of the line change, and the counter.
 */
void
bfindex_set_key(Relation index, Buffer buffer, unsigned line, const BfindexLayer *layer,
				unsigned layer_number, uint64 hash)
{
	Page		page = BufferGetPage(buffer);
	Size		line_offset = BFINDEX_LINES_OFFSET + line * BF_LINE_BYTES;
	uint8		before[BF_LINE_BYTES];
	const uint8 *after = (const uint8 *) page + line_offset;
	char		regions[BF_MAX_PROBES * (REGION_HEADER + 1) + BF_LINE_BYTES + REGION_HEADER + sizeof(uint32)];
	char	   *end = regions;
	XLogRecPtr	record;

	if (!BF_KNOWN_GENERIC_REDO || PageIsNew(page))
	{
		bfindex_set_key_generic(index, buffer, line, layer->probes, layer_number, hash);
		return;
	}

	memcpy(before, after, BF_LINE_BYTES);
	if (RelationNeedsWAL(index))
		XLogBeginInsert();
	START_CRIT_SECTION();
	bfindex_set_bits(page, line, layer->probes, hash);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		end = append_changed_regions(end, page, line_offset, changed_bytes(before, after));
		end = append_region(end, page, offsetof(BfindexPage, bits_set), sizeof(uint32));
		Assert(end <= regions + sizeof(regions));
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, regions, (int) (end - regions));
		record = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, record);
	}
	END_CRIT_SECTION();
}

/* Set the flag OVERFLOW of a page that is locked exclusively, and log the change. */
void
bfindex_set_overflow(Relation index, Buffer buffer)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(xlog, buffer, 0);

	((BfindexPage *) page)->flags |= BFINDEX_OVERFLOW;
	GenericXLogFinish(xlog);
}
