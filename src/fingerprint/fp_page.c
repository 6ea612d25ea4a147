/*
 * fp_page.c
 *		Pages of a fingerprint index: the metapage, entries, checks.
 *
 * Every page is checked when it is read.  A page of zeros is a bucket that has not
 * received entries yet: extents are made by extending the file.
 */
#include "fingerprint.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

#define LARGEST_REST		6

/*
 * If row addresses have n bits, an index of all rows needs about n - 12 bits for the
 * numbers of its groups, because a group has room for about 2^12 rows.  An index that is
 * still small can grow to that size if its entries have these bits of their hashes.
 */
#define BITS_OF_LEVEL(address_bits)	((address_bits) > 11 ? (address_bits) - 11 : 0)

/* ----------------------------------------------------------------
 * The metapage
 * ----------------------------------------------------------------
 */

/* Return a sentence on what is wrong with a metapage of this version, or NULL. */
static const char *
meta_problem(const FpMeta *meta, BlockNumber blocks)
{
	uint64		end = FP_META_BLOCK + 1;

	if (!index_key_class_is_known(&meta->class))
		return "Its key class is unknown.";
	if (meta->level > FP_MAX_LEVEL || meta->sweep >= FP_GROUP || meta->group >= UINT32_C(1) << meta->level)
		return "Its size is out of range.";
	if (meta->extents < 1 || meta->extents > FP_MAX_EXTENTS || meta->end > blocks)
		return "Its number of extents is out of range, or an extent is beyond the end of the file.";

	/* each was added at the end of the file */
	for (uint32 i = 0; i < meta->extents; i++)
	{
		if (meta->extent[i] < end || meta->extent[i] > meta->end)
			return "An extent starts at an unexpected block.";
		end = (uint64) meta->extent[i] + fp_extent_size(i);
	}
	return end > meta->end ? "An extent starts at an unexpected block." : NULL;
}

/* Raise an error unless a page is a valid metapage.  The page is locked, or a copy. */
void
fp_check_meta(Relation index, Page page)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	const FpMeta *meta = (const FpMeta *) ((char *) page + FP_META_OFFSET);
	const char *problem;

	if (meta->magic != FP_META_MAGIC)
		index_damaged(index, FP_META_BLOCK, "It is not the metapage of a fingerprint index.");
	index_version_check(index, meta->version, FP_VERSION);
	/* generic WAL clears what is between them */
	if (header->pd_lower != BLCKSZ || header->pd_upper != BLCKSZ)
		problem = "It is not the metapage of a fingerprint index.";
	else
		problem = meta_problem(meta, RelationGetNumberOfBlocks(index));
	if (problem != NULL)
		index_damaged(index, FP_META_BLOCK, problem);
}

/* Read the metapage. */
FpMeta
fp_read_meta(Relation index)
{
	Buffer		buffer = ReadBuffer(index, FP_META_BLOCK);
	FpMeta		meta;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	fp_check_meta(index, BufferGetPage(buffer));
	memcpy(&meta, (char *) BufferGetPage(buffer) + FP_META_OFFSET, sizeof(meta));
	UnlockReleaseBuffer(buffer);
	return meta;
}

/* What is kept with the relation, in rd_amcache. */
typedef struct FpCache
{
	FpMeta		meta;
	BlockNumber heap_blocks;	/* that the table has, or has had */
} FpCache;

/*
 * Return a copy of the metapage that is kept with the relation.  It can be outdated: the
 * page of a bucket records how far the bucket has grown, and extents are only added.
 */
const FpMeta *
fp_meta(Relation index)
{
	if (unlikely(index->rd_amcache == NULL))
	{
		FpMeta		meta = fp_read_meta(index);

		index->rd_amcache = MemoryContextAllocZero(index->rd_indexcxt, sizeof(FpCache));
		memcpy(index->rd_amcache, &meta, sizeof(FpMeta));
	}
	return index->rd_amcache;
}

/* Read the metapage again when it is next needed. */
void
fp_forget_meta(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

/* Raise the error for an entry that cannot be of a row. */
void
fp_wrong_row(Relation index, const ItemPointerData *row)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has a damaged entry", RelationGetRelationName(index)),
			 errdetail("The table has no row (%u,%u).", ItemPointerGetBlockNumberNoCheck(row),
					   ItemPointerGetOffsetNumberNoCheck(row)),
			 errhint("REINDEX the index.")));
}

/*
 * Raise an error unless an entry can be of a row, before that block of the table is read:
 * reading block 0xFFFFFFFF would extend the table.  The number of blocks is kept, because
 * getting it takes a system call.  Other table access methods may have row addresses of
 * any kind.
 */
void
fp_check_row(Relation index, Relation heap, const ItemPointerData *row)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(row);
	FpCache    *cache;

	fp_meta(index);
	cache = index->rd_amcache;
	if (likely(block < cache->heap_blocks && ItemPointerGetOffsetNumberNoCheck(row) != InvalidOffsetNumber))
		return;
	if (heap->rd_tableam == GetHeapamTableAmRoutine())
		cache->heap_blocks = RelationGetNumberOfBlocks(heap);
	else
		cache->heap_blocks = InvalidBlockNumber;
	if (block >= cache->heap_blocks || ItemPointerGetOffsetNumberNoCheck(row) == InvalidOffsetNumber)
		fp_wrong_row(index, row);
}

/* Return the block of a bucket. */
BlockNumber
fp_block_of(Relation index, const FpMeta *meta, uint32 bucket)
{
	uint32		offset;
	uint32		size;
	unsigned	extent = fp_extent(bucket, &offset, &size);

	if (extent >= meta->extents)
	{
		fp_forget_meta(index);
		meta = fp_meta(index);
		if (extent >= meta->extents)
			index_damaged(index, FP_META_BLOCK, "It lacks an extent that another page refers to.");
	}
	return meta->extent[extent] + offset;
}

/* The present number of buckets.  The next one may have received entries already. */
uint32
fp_count_buckets(Relation index)
{
	FpMeta		meta = fp_read_meta(index);
	uint32		next = fp_buckets_at(meta.level * FP_GROUP + meta.sweep, meta.group);
	uint32		offset;
	uint32		size;

	return fp_extent(next, &offset, &size) < meta.extents ? next + 1 : next;
}

/* ----------------------------------------------------------------
 * Pages of entries
 * ----------------------------------------------------------------
 */

/* Raise an error unless a locked page is of this kind.  A primary page can be new. */
void
fp_check_page(Relation index, Buffer buffer, FpKind kind)
{
	Page		page = BufferGetPage(buffer);
	const FpPage *header = fp_header(page);
	const PageHeaderData *bounds = (const PageHeaderData *) page;

	if (kind == FP_PRIMARY && PageIsNew(page))
		return;
	if (header->magic != FP_PAGE_MAGIC || header->kind != kind)
		index_damaged(index, BufferGetBlockNumber(buffer), "It is not a page of the expected kind.");
	if (bounds->pd_lower < FP_RESTS_OFFSET || bounds->pd_lower > BLCKSZ || bounds->pd_upper != BLCKSZ ||
		header->rest_bytes < FP_NARROW_REST || header->rest_bytes > LARGEST_REST ||
		(bounds->pd_lower - FP_RESTS_OFFSET) % header->rest_bytes != 0)
		index_damaged(index, BufferGetBlockNumber(buffer), "Its number of entries contradicts its size.");
	if (header->low_bit > header->high_bit || header->high_bit > FP_TAG_SHIFT ||
		header->block_bits > 32 || header->offset_bits > 16 || header->step > FP_GROUP * (FP_MAX_LEVEL + 1) ||
		header->block_bits + header->offset_bits + header->high_bit - header->low_bit > 8 * header->rest_bytes)
		index_damaged(index, BufferGetBlockNumber(buffer), "The layout of its entries is out of range.");
}

void
fp_init_meta_page(Page page, const FpMeta *meta)
{
	PageInit(page, BLCKSZ, 0);
	((PageHeader) page)->pd_lower = BLCKSZ;
	memcpy((char *) page + FP_META_OFFSET, meta, sizeof(*meta));
}

void
fp_init_page(Page page, FpKind kind, uint32 bucket)
{
	FpPage	   *header = fp_header(page);

	PageInit(page, BLCKSZ, 0);
	((PageHeader) page)->pd_lower = FP_RESTS_OFFSET;
	header->magic = FP_PAGE_MAGIC;
	header->bucket = bucket;
	header->kind = (uint8) kind;
	header->step = (uint8) (kind == FP_PRIMARY ? fp_origin(bucket).step : 0);
	header->high_bit = FP_TAG_SHIFT;
	header->low_bit = FP_TAG_SHIFT;
	header->rest_bytes = FP_NARROW_REST;
	header->next = InvalidBlockNumber;
}

/* ----------------------------------------------------------------
 * Entries
 * ----------------------------------------------------------------
 */

static inline uint64
mask(unsigned bits)
{
	return bits >= 64 ? PG_UINT64_MAX : (UINT64CONST(1) << bits) - 1;
}

/* The number of bits that a number needs. */
static unsigned
bits_of(uint32 number)
{
	return number == 0 ? 0 : (unsigned) pg_leftmost_one_pos32(number) + 1;
}

static inline uint64
get_rest(Page page, unsigned i)
{
	unsigned	bytes = fp_header(page)->rest_bytes;
	const uint8 *at = (const uint8 *) page + FP_RESTS_OFFSET + i * bytes;
	uint32		low;
	uint64		rest;

	memcpy(&low, at, sizeof(low));
	rest = low;
	for (unsigned byte = sizeof(low); byte < bytes; byte++)
		rest |= (uint64) at[byte] << (8 * byte);
	return rest;
}

static void
set_rest(Page page, unsigned i, uint64 rest)
{
	unsigned	bytes = fp_header(page)->rest_bytes;
	uint8	   *at = (uint8 *) page + FP_RESTS_OFFSET + i * bytes;
	uint32		low = (uint32) rest;

	memcpy(at, &low, sizeof(low));
	for (unsigned byte = sizeof(low); byte < bytes; byte++)
		at[byte] = (uint8) (rest >> (8 * byte));
}

static void
set_count(Page page, unsigned n)
{
	((PageHeader) page)->pd_lower = (LocationIndex) (FP_RESTS_OFFSET + n * fp_header(page)->rest_bytes);
}

/* Remove all entries. */
void
fp_clear(Page page)
{
	set_count(page, 0);
}

/* The bits of the hash that all entries of a bucket share, by its primary page. */
uint64
fp_base(Page page)
{
	return fp_group_of(fp_header(page)->bucket, fp_level(fp_header(page)->step));
}

/* Return an entry.  `base` are the bits of its hash that follow from the bucket. */
FpEntry
fp_get(Page page, unsigned i, uint64 base)
{
	const FpPage *header = fp_header(page);
	uint64		rest = get_rest(page, i);
	FpEntry		entry;

	entry.offset = (OffsetNumber) (rest & mask(header->offset_bits));
	rest >>= header->offset_bits;
	entry.block = (BlockNumber) (rest & mask(header->block_bits));
	rest >>= header->block_bits;
	entry.hash = base | rest << header->low_bit | (uint64) fp_tags(page)[i] << FP_TAG_SHIFT;
	return entry;
}

static inline ItemPointerData
decode_row(const FpPage *header, uint64 rest)
{
	ItemPointerData row;

	ItemPointerSet(&row, (BlockNumber) (rest >> header->offset_bits & mask(header->block_bits)),
				   (OffsetNumber) (rest & mask(header->offset_bits)));
	return row;
}

/* Return the address of an entry; that of a reference has offset 0. */
ItemPointerData
fp_row(Page page, unsigned i)
{
	return decode_row(fp_header(page), get_rest(page, i));
}

/* Decode the addresses of all entries; returns their number. */
unsigned
fp_rows(Page page, ItemPointerData *rows)
{
	const FpPage header = *fp_header(page); /* a copy stays in registers */
	unsigned	n = fp_count(page);

	for (unsigned i = 0; i < n; i++)
		rows[i] = decode_row(&header, get_rest(page, i));
	return n;
}

/* Can the page, as it is encoded, hold the address of this entry? */
bool
fp_fits(Page page, const FpEntry *entry)
{
	const FpPage *header = fp_header(page);

	return ((uint64) entry->block >> header->block_bits) == 0 && entry->offset >> header->offset_bits == 0;
}

/*
 * Encode the entries of a page again, so that it can hold another one, of whose hash the
 * bits below `known` are known.  Bits of the hash that follow from the level of the
 * bucket are dropped first.  False, and no change, if the entries would not fit the page.
 */
bool
fp_make_fit(Page page, const FpEntry *entry, unsigned known, unsigned level)
{
	FpPage	   *header = fp_header(page);
	FpPage		old = *header;
	unsigned	n = fp_count(page);
	unsigned	address_bits;
	unsigned	high = Min(n == 0 ? FP_TAG_SHIFT : old.high_bit, known);
	unsigned	needed;
	uint64		rests[FP_CAPACITY];

	if (fp_fits(page, entry) && old.high_bit <= known && n > 0)
		return true;
	for (unsigned i = 0; i < n; i++)
		rests[i] = get_rest(page, i);
	if (n == 0)
		header->rest_bytes = FP_NARROW_REST;
	header->block_bits = (uint8) Max(n == 0 ? 0 : old.block_bits, bits_of(entry->block));
	header->offset_bits = (uint8) Max(n == 0 ? 0 : old.offset_bits, bits_of(entry->offset));
	header->low_bit = (uint8) Max(n == 0 ? 0 : old.low_bit, Min(level, high));
	high = Max(high, header->low_bit);
	address_bits = header->block_bits + header->offset_bits;
	needed = Min(high, Max(BITS_OF_LEVEL(address_bits), header->low_bit + 2u));
	while (header->rest_bytes < LARGEST_REST && 8 * header->rest_bytes < address_bits + needed - header->low_bit)
		header->rest_bytes++;
	header->high_bit = (uint8) Min(high, header->low_bit + 8 * header->rest_bytes - address_bits);
	if ((n + 1) * header->rest_bytes > BLCKSZ - FP_RESTS_OFFSET)
	{
		*header = old;
		return false;
	}
	for (unsigned i = 0; i < n; i++)
	{
		uint64		offset = rests[i] & mask(old.offset_bits);
		uint64		block = rests[i] >> old.offset_bits & mask(old.block_bits);
		uint64		extra = rests[i] >> (old.offset_bits + old.block_bits) >> (header->low_bit - old.low_bit);

		extra &= mask(header->high_bit - header->low_bit);
		set_rest(page, i, (extra << header->block_bits | block) << header->offset_bits | offset);
	}
	set_count(page, n);
	return true;
}

/* Append an entry to a page that has room for it, and that it fits. */
void
fp_append(Page page, const FpEntry *entry)
{
	const FpPage *header = fp_header(page);
	unsigned	n = fp_count(page);
	uint64		extra = entry->hash >> header->low_bit & mask(header->high_bit - header->low_bit);

	Assert(fp_room(page) > 0 && fp_fits(page, entry));
	set_count(page, n + 1);
	fp_tags(page)[n] = (uint16) (entry->hash >> FP_TAG_SHIFT);
	set_rest(page, n, (extra << header->block_bits | entry->block) << header->offset_bits | entry->offset);
}

/* Remove an entry.  The last one takes its place, so that few bytes change. */
void
fp_remove(Page page, unsigned i)
{
	unsigned	last = fp_count(page) - 1;

	fp_tags(page)[i] = fp_tags(page)[last];
	set_rest(page, i, get_rest(page, last));
	set_count(page, last);
}

/*
 * Find the entries of a hash: their numbers go to `found`, which has room for FP_CAPACITY.
 *
 * Tags are compared eight at a time.  (GCC's vectors are available on every architecture.)
 */
unsigned
fp_match(Page page, uint64 hash, uint16 *found)
{
	typedef uint16 Tags __attribute__((vector_size(16), aligned(2), may_alias));
	typedef uint64 Words __attribute__((vector_size(16)));
	const FpPage *header = fp_header(page);
	const uint16 *tags = fp_tags(page);
	const uint16 tag = (uint16) (hash >> FP_TAG_SHIFT);
	const unsigned n = fp_count(page);
	const unsigned address_bits = header->block_bits + header->offset_bits;
	const uint64 extra = hash >> header->low_bit & mask(header->high_bit - header->low_bit);
	const		Tags wanted = {tag, tag, tag, tag, tag, tag, tag, tag};
	unsigned	matches = 0;
	unsigned	i = 0;

	while (i < n)
	{
		unsigned	end = Min(i + 32, n);

		if (end - i == 32)
		{
			const		Tags *four = (const Tags *) (tags + i);
			Words		equal = (Words) ((four[0] == wanted) | (four[1] == wanted) | (four[2] == wanted) | (four[3] == wanted));

			if (likely((equal[0] | equal[1]) == 0))
			{
				i = end;
				continue;
			}
		}
		for (; i < end; i++)
		{
			if (tags[i] == tag && get_rest(page, i) >> address_bits == extra)
				found[matches++] = (uint16) i;
		}
	}
	return matches;
}

/* ----------------------------------------------------------------
 * WAL
 * ----------------------------------------------------------------
 */

#define REGION_HEADER	(2 * sizeof(OffsetNumber))

/* Append a region of a page as generic_redo() reads it: offset, length, bytes. */
static char *
append_region(char *to, Page page, Size offset, Size length)
{
	OffsetNumber numbers[2] = {(OffsetNumber) offset, (OffsetNumber) length};

	memcpy(to, numbers, sizeof(numbers));
	memcpy(to + sizeof(numbers), (char *) page + offset, length);
	return to + sizeof(numbers) + length;
}

/*
 * Append an entry, and log that.  GenericXLog would compare the whole page to find the
 * changes; src/index/page.c explains why its record can be written directly.  After
 * replaying it, generic_redo() clears the space between pd_lower and pd_upper, which is
 * unused.  The record has 64 bytes.
 */
void
fp_append_logged(Relation index, Buffer buffer, const FpEntry *entry)
{
	Page		page = BufferGetPage(buffer);
	unsigned	rest_bytes = fp_header(page)->rest_bytes;
	char		regions[3 * REGION_HEADER + sizeof(LocationIndex) + sizeof(uint16) + LARGEST_REST];
	char	   *end = regions;

	if (!BF_KNOWN_GENERIC_REDO)
	{
		GenericXLogState *xlog = GenericXLogStart(index);

		fp_append(GenericXLogRegisterBuffer(xlog, buffer, 0), entry);
		GenericXLogFinish(xlog);
		return;
	}
	if (RelationNeedsWAL(index))
		XLogBeginInsert();
	START_CRIT_SECTION();
	fp_append(page, entry);
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		unsigned	last = fp_count(page) - 1;
		XLogRecPtr	record;

		end = append_region(end, page, offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex));
		end = append_region(end, page, FP_TAGS_OFFSET + last * sizeof(uint16), sizeof(uint16));
		end = append_region(end, page, FP_RESTS_OFFSET + last * rest_bytes, rest_bytes);
		Assert(end <= regions + sizeof(regions));
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, regions, (int) (end - regions));
		record = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, record);
	}
	END_CRIT_SECTION();
}
