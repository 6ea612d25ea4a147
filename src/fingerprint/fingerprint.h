/*
 * fingerprint.h
 *		The access method `fingerprint`: a hash index with entries of six bytes.
 *
 * An entry consists of some bits of the hash of a key, its fingerprint, and the address
 * of a row.  The place of the entry implies further bits of the hash.  The README
 * explains pages, the arithmetic of addresses, locks, WAL and VACUUM.
 */
#ifndef BF_FINGERPRINT_H
#define BF_FINGERPRINT_H

#include "../compat.h"

#include "access/amapi.h"
#include "access/generic_xlog.h"
#include "access/genam.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "../index/index_key.h"

/* ----------------------------------------------------------------
 * Addresses (fp_address.c)
 * ----------------------------------------------------------------
 *
 * A bucket is a primary page with its overflow pages.  Buckets are numbered in the order
 * in which they are created.  Each belongs to a group; at level L there are 2^L groups,
 * and the lowest L bits of a hash are the number of its group.
 */

/* The number of buckets of a group when a level begins; it has twice as many when it ends. */
#define FP_GROUP			4

/* 2^25 groups of 8 pages are 2 TB. */
#define FP_MAX_LEVEL		25

/* Extents per level and sweep, and in all: as many as a metapage has room for. */
#define FP_PIECES_LOG		(BLCKSZ >= 8192 ? 4 : BLCKSZ >= 4096 ? 3 : BLCKSZ >= 2048 ? 2 : 1)
#define FP_MAX_EXTENTS		(1 + FP_GROUP * ((1 << FP_PIECES_LOG) - 1) + \
							 FP_GROUP * (1 << FP_PIECES_LOG) * (FP_MAX_LEVEL - FP_PIECES_LOG + 1))

/*
 * How far an index, or a bucket, has grown: FP_GROUP * level + sweeps done at that
 * level.  Each sweep gives every group another bucket.
 */
typedef unsigned FpStep;

static inline unsigned
fp_level(FpStep step)
{
	return step / FP_GROUP;
}

/* Where a bucket comes from. */
typedef struct FpOrigin
{
	FpStep		step;			/* the one that made it; 0 for the first ones */
	uint32		group;			/* that got it */
	unsigned	member;			/* its place in that group */
} FpOrigin;

extern uint32 fp_bucket(uint64 hash, FpStep step, unsigned *member);
extern FpOrigin fp_origin(uint32 bucket);
extern uint32 fp_group_of(uint32 bucket, unsigned level);
extern FpStep fp_step_shown(uint64 hash, uint32 bucket, FpStep step);
extern uint32 fp_bucket_of(uint32 group, unsigned level, unsigned member);
extern uint32 fp_buckets_at(FpStep step, uint32 group);
extern unsigned fp_extent(uint32 bucket, uint32 *offset, uint32 *size);
extern uint32 fp_extent_size(unsigned extent);

/* ----------------------------------------------------------------
 * Pages (fp_page.c)
 * ----------------------------------------------------------------
 */

#define FP_META_BLOCK		0
#define FP_META_MAGIC		UINT32_C(0x4D495046)	/* "FPIM" */
#define FP_PAGE_MAGIC		UINT32_C(0x50495046)	/* "FPIP" */
#define FP_VERSION			1

typedef enum FpKind
{
	FP_PRIMARY = 1,				/* of a bucket */
	FP_OVERFLOW,				/* more of the same bucket */
	FP_POSTING,					/* rows of one fingerprint that many have */
	FP_FREE
} FpKind;

/*
 * A page of entries.  An entry is a tag, the highest 16 bits of the hash, and a "rest".
 * After this header there is room for all tags that a page can have, followed by the
 * rests.  pd_lower is the end of the rests, so the number of entries follows from it.
 *
 * The rest of an entry has 32 bits, or more in very large tables.  From the lowest bit
 * on, it contains the line pointer of a row, its block, and bits low_bit to high_bit - 1
 * of the hash.
 */
typedef struct FpPage
{
	char		page_header[MAXALIGN(SizeOfPageHeaderData)];
	uint32		magic;
	uint32		bucket;			/* of a primary page */
	uint8		kind;
	uint8		step;			/* up to which the bucket has given entries
								 * away */
	uint8		received;		/* members of the group that have given it
								 * theirs */
	uint8		low_bit;
	uint8		high_bit;
	uint8		block_bits;
	uint8		offset_bits;
	uint8		rest_bytes;
	BlockNumber next;			/* of a chain */
	uint32		next_generation;
	uint32		generation;		/* how often the page was taken into use */
	uint8		giving;			/* some entries are already where step + 1 has
								 * them */
	uint8		unused[3];
} FpPage;

#define FP_TAGS_OFFSET		sizeof(FpPage)
#define FP_TAG_BITS			16
#define FP_TAG_SHIFT		(64 - FP_TAG_BITS)
#define FP_NARROW_REST		4	/* bytes; up to 6 in very large tables */

/* Entries of a page with narrow rests. */
#define FP_CAPACITY			((BLCKSZ - FP_TAGS_OFFSET) / (sizeof(uint16) + FP_NARROW_REST))
#define FP_RESTS_OFFSET		(FP_TAGS_OFFSET + FP_CAPACITY * sizeof(uint16))

/* When a page is full, a fingerprint with this number of entries there gets posting pages. */
#define FP_HOT				(FP_CAPACITY / 4)

/* After an insert, a page with room for fewer entries than this makes the index grow. */
#define FP_LITTLE_ROOM		(FP_CAPACITY * 3 / 100)

/*
 * An entry in memory.  Its hash has the bits that follow from the bucket and the page;
 * the others are 0.  An entry whose offset is 0 is a reference: its block is a page of
 * the index, the first posting page of a fingerprint.
 */
typedef struct FpEntry
{
	uint64		hash;
	BlockNumber block;
	OffsetNumber offset;
} FpEntry;

typedef struct FpMeta
{
	uint32		magic;			/* same place in all versions */
	uint32		version;		/* same place in all versions */
	IndexKeyClass class;
	uint32		level;
	uint32		sweep;
	uint32		group;			/* the next to get a bucket in this sweep */
	BlockNumber end;			/* blocks in use */
	BlockNumber free;			/* a chain of free pages */
	uint32		extents;
	BlockNumber extent[FP_MAX_EXTENTS]; /* first block */
} FpMeta;

#define FP_META_OFFSET		MAXALIGN(SizeOfPageHeaderData)

StaticAssertDecl(FP_META_OFFSET + sizeof(FpMeta) <= BLCKSZ, "the metapage is one page");

static inline FpPage *
fp_header(Page page)
{
	return (FpPage *) page;
}

static inline uint16 *
fp_tags(Page page)
{
	return (uint16 *) ((char *) page + FP_TAGS_OFFSET);
}

static inline unsigned
fp_count(Page page)
{
	return (unsigned) (((PageHeader) page)->pd_lower - FP_RESTS_OFFSET) / fp_header(page)->rest_bytes;
}

/* The number of further entries that a page has room for. */
static inline unsigned
fp_room(Page page)
{
	return (unsigned) (BLCKSZ - ((PageHeader) page)->pd_lower) / fp_header(page)->rest_bytes;
}

static inline FpStep
fp_hint(const FpMeta *meta, uint64 hash)
{
	uint32		group = (uint32) (hash & ((UINT64CONST(1) << meta->level) - 1));

	return meta->level * FP_GROUP + meta->sweep + (group < meta->group ? 1 : 0);
}

extern void fp_check_meta(Relation index, Page page);
extern const FpMeta *fp_meta(Relation index);
extern void fp_wrong_row(Relation index, const ItemPointerData *row);
extern void fp_check_row(Relation index, Relation heap, const ItemPointerData *row);
extern void fp_forget_meta(Relation index);
extern FpMeta fp_read_meta(Relation index);
extern void fp_check_page(Relation index, Buffer buffer, FpKind kind);
extern BlockNumber fp_block_of(Relation index, const FpMeta *meta, uint32 bucket);
extern uint32 fp_count_buckets(Relation index);

extern void fp_init_meta_page(Page page, const FpMeta *meta);
extern void fp_init_page(Page page, FpKind kind, uint32 bucket);
extern void fp_clear(Page page);
extern uint64 fp_base(Page page);
extern FpEntry fp_get(Page page, unsigned i, uint64 base);
extern ItemPointerData fp_row(Page page, unsigned i);
extern unsigned fp_rows(Page page, ItemPointerData *rows);
extern bool fp_fits(Page page, const FpEntry *entry);
extern bool fp_make_fit(Page page, const FpEntry *entry, unsigned known, unsigned level);
extern void fp_append(Page page, const FpEntry *entry);
extern void fp_remove(Page page, unsigned i);
extern unsigned fp_match(Page page, uint64 hash, uint16 *found);
extern void fp_append_logged(Relation index, Buffer buffer, const FpEntry *entry);

/* ----------------------------------------------------------------
 * Buckets (fp_bucket.c)
 * ----------------------------------------------------------------
 */

/*
 * A walk along links from page to page: through all pages of one bucket and the posting
 * pages that it refers to, or a part of them.  No page is visited twice, unless links are
 * damaged and lead in a circle.  Begin with {index, strategy}.
 */
typedef struct FpChain
{
	Relation	index;
	BufferAccessStrategy strategy;
	BlockNumber blocks;			/* that the file has at least */
	BlockNumber pages;			/* visited */
	BlockNumber mark;			/* one of them, the last whose number is a
								 * power of 2 */
} FpChain;

extern Buffer fp_read_bucket(Relation index, uint32 bucket, int lock, BufferAccessStrategy strategy);
extern Buffer fp_follow(FpChain *chain, BlockNumber from, BlockNumber block, FpKind kind, int lock);
extern Buffer fp_follow_unlocked(FpChain *chain, BlockNumber from, BlockNumber block, uint32 generation);
extern Buffer fp_locate(Relation index, uint64 hash, int lock);
extern void fp_insert_entry(Relation index, const FpEntry *entry, bool may_grow);
extern void fp_spill(Relation index, Buffer buffer);
extern void fp_absorb(Relation index, Buffer buffer);
extern Buffer fp_lock_meta(Relation index);
extern Buffer fp_read_new(Relation index, BlockNumber block);
extern void fp_free_page(GenericXLogState *xlog, Buffer meta, Buffer buffer);

/* fp_grow.c */
extern void fp_grow(Relation index);

/* ----------------------------------------------------------------
 * The access method
 * ----------------------------------------------------------------
 */

/*
 * A predicate lock is on a hash, not on a page, because the entry of a key can move to
 * another page.  The lock manager does not check whether the block exists.
 */
#define FP_PREDICATE_BLOCK(hash)	((BlockNumber) ((hash) >> 33))

extern void fp_define_options(void);
extern bool fp_is(Relation relation);
extern IndexBuildResult *fp_build(Relation heap, Relation index, struct IndexInfo *info);
extern void fp_buildempty(Relation index);
extern char *fp_buildphasename(int64 phase);
extern bool fp_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
					  IndexUniqueCheck unique, bool unchanged, struct IndexInfo *info);
extern IndexBulkDeleteResult *fp_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
											IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *fp_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *result);
extern IndexScanDesc fp_beginscan(Relation index, int keys, int orderbys);
extern void fp_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern void fp_endscan(IndexScanDesc scan);
extern bool fp_gettuple(IndexScanDesc scan, ScanDirection direction);
extern bool fp_may_contain(Relation index, uint64 hash, Snapshot snapshot);
extern struct IndexHealth fp_health(Relation index, uint32 most);
extern int64 fp_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void fp_costestimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count,
							Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
							double *correlation, double *pages);

#endif							/* BF_FINGERPRINT_H */
