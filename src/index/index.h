/*
 * index.h
 *		The access method `bloomfilter`: an index that is a filter of a column.
 *
 * Block 0 is the metapage.  The layers follow it, one after the other, each of them a
 * number of pages of 512-bit lines.  A key sets and tests bits of one line per layer, so
 * it touches one page per layer.  The core maps hashes to lines; the lines of all pages
 * of a layer, in order, are those of a layer of a `bloom` value.
 *
 * A page counts its set bits.  When it has as many as its share of the keys would set, it
 * is full: it gets the flag OVERFLOW, and further keys that map to it go to the next
 * layer.  So a key is looked up in the first layer, and in the next one only if its page
 * in the first has overflowed.  No counter of a whole layer exists, which every insert
 * would have to update.
 *
 * Bits and flags are only set, and layers only added.  Therefore a process that has seen
 * a key's bits or a flag can rely on them.  README has the rules for locking and WAL.
 */
#ifndef BF_INDEX_H
#define BF_INDEX_H

#include "../compat.h"

#include "access/amapi.h"
#include "catalog/pg_class.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "../core/lines.h"
#include "index_key.h"

/* ----------------------------------------------------------------
 * Pages
 * ----------------------------------------------------------------
 */

#define BFINDEX_META_BLOCK	0
#define BFINDEX_META_MAGIC	UINT32_C(0x4D494642)	/* "BFIM" */
#define BFINDEX_PAGE_MAGIC	UINT32_C(0x50494642)	/* "BFIP" */
#define BFINDEX_VERSION		1

/*
 * The header of a page of lines.  The lines fill the page up to its end, and pd_lower and
 * pd_upper are at the end: there is no hole that a WAL record could omit.
 */
typedef struct BfindexPage
{
	char		page_header[MAXALIGN(SizeOfPageHeaderData)];
	uint32		magic;
	uint16		layer;
	uint16		flags;
	uint32		bits_set;		/* in the lines of this page */
	uint32		unused[7];
} BfindexPage;

#define BFINDEX_OVERFLOW	0x0001	/* further keys are in the next layer */

#define BFINDEX_LINES_OFFSET	BF_LINE_BYTES
#define BFINDEX_PAGE_LINES		((BLCKSZ - BFINDEX_LINES_OFFSET) / BF_LINE_BYTES)
#define BFINDEX_PAGE_WORDS		((uint64) BFINDEX_PAGE_LINES * BF_LINE_WORDS)

StaticAssertDecl(sizeof(BfindexPage) <= BFINDEX_LINES_OFFSET, "lines begin after the header");

static inline uint8 *
bfindex_page_lines(Page page)
{
	return (uint8 *) page + BFINDEX_LINES_OFFSET;
}

/* A layer, as the metapage describes it. */
typedef struct BfindexLayer
{
	double		fpp;			/* its share of the target */
	BlockNumber first;			/* its first block */
	BlockNumber pages;
	uint32		page_keys;		/* the number of keys that a page is sized for */
	uint32		full_bits;		/* a page with this many bits set is full */
	uint32		probes;			/* bits per key */
	uint32		unused;
} BfindexLayer;

/* Return the shape that the core uses for the lines of one page. */
static inline bf_shape
bfindex_page_shape(const BfindexLayer *layer)
{
	return (bf_shape) {BFINDEX_PAGE_WORDS, 1, (uint8) layer->probes};
}

/* Layers double in size, so a relation cannot hold more. */
#define BFINDEX_MAX_LAYERS	32

/* full_bits of a layer that takes any number of keys, because no further one fits. */
#define BFINDEX_NEVER_FULL	PG_UINT32_MAX

typedef struct BfindexMeta
{
	uint32		magic;			/* same place in all versions */
	uint32		version;		/* same place in all versions */
	double		fpp;			/* target, for all layers together */
	uint16		layers;
	IndexKeyClass class;
	BfindexLayer layer[BFINDEX_MAX_LAYERS];
} BfindexMeta;

#define BFINDEX_META_OFFSET		MAXALIGN(SizeOfPageHeaderData)

StaticAssertDecl(BFINDEX_META_OFFSET + sizeof(BfindexMeta) <= BLCKSZ, "the metapage is one page");

/* page.c: layout, checks and changes of pages */
extern BfindexMeta bfindex_read_meta(Relation index);
extern bool bfindex_layer(Relation index, unsigned number, BfindexLayer *layer);
extern const IndexKeyClass *bfindex_class(Relation index);
extern void bfindex_check_class(Relation index);
extern void bfindex_lacks_layer(Relation index);
extern void bfindex_forget_meta(Relation index);
extern void bfindex_init_meta_page(Page page, const BfindexMeta *meta);
extern void bfindex_init_page(Page page, unsigned layer);
extern bool bfindex_check_page(Relation index, Buffer buffer, unsigned layer);
extern void bfindex_set_key(Relation index, Buffer buffer, unsigned line, const BfindexLayer *layer,
							unsigned layer_number, uint64 hash);
extern void bfindex_set_overflow(Relation index, Buffer buffer);

/* layers.c: sizes of layers, adding a layer */
extern BfindexLayer bfindex_first_layer(double fpp, uint64 capacity, bool known);
extern void bfindex_grow(Relation index, unsigned layers);
extern uint64 bfindex_room_of_file(double fpp, BlockNumber blocks);

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

/*
 * Return the hash that maps a key to a line and its bits: that of the core's first and
 * only group of probes.  The lines of a layer are in the order of these hashes.
 */
static inline uint64
bfindex_hash(uint64 key_hash)
{
	return bf_group_hash(key_hash, 0);
}

/* Return the line of a layer that a key maps to. */
static inline uint64
bfindex_line(const BfindexLayer *layer, uint64 hash)
{
	return bf_group_line(hash, (uint64) layer->pages * BFINDEX_PAGE_LINES);
}

/* index_probe.c: is a key present? */
typedef struct BfindexRecent BfindexRecent;

extern BfindexRecent *bfindex_remember_buffers(Relation index, uint32 most);
extern void bfindex_prefetch(Relation index, uint64 hash, const BfindexRecent *recent);
extern bool bfindex_contains_hash(Relation index, uint64 hash, Snapshot snapshot, BfindexRecent *recent);
extern bool bfindex_contains_any(Relation index, const IndexKeyList *keys, Snapshot snapshot);

/* ----------------------------------------------------------------
 * The access method
 * ----------------------------------------------------------------
 */

typedef struct BfindexOptions
{
	int32		vl_len_;		/* varlena header */
	double		fpp;
	int			capacity;		/* BFINDEX_NO_CAPACITY if not given */
} BfindexOptions;

/*
 * A false positive costs a scan of the table where no other index exists, which is the
 * main use of this one; so the default is strict.  The lower limit follows from the single
 * line per key: below 1e-4, lines that happen to hold many keys make the index several
 * times as large as one with more lines per key.
 */
#define BFINDEX_DEFAULT_FPP		0.001
#define BFINDEX_MIN_FPP			0.0001
#define BFINDEX_MAX_FPP			0.5
#define BFINDEX_NO_CAPACITY		(-1)

extern void bfindex_define_options(void);

/* The table that bloom_find reads, whose index has been probed for the key; or InvalidOid. */
extern Oid	bfindex_probed_table;

extern IndexBuildResult *bfindex_build(Relation heap, Relation index, struct IndexInfo *info);
extern void bfindex_buildempty(Relation index);
extern char *bfindex_buildphasename(int64 phase);
extern bool bfindex_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
						   IndexUniqueCheck unique, bool unchanged, struct IndexInfo *info);
extern IndexScanDesc bfindex_beginscan(Relation index, int keys, int orderbys);
extern void bfindex_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern void bfindex_endscan(IndexScanDesc scan);
extern int64 bfindex_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void bfindex_costestimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count,
								 Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
								 double *correlation, double *pages);
extern bool bfindex_key_of_outer_query(struct Node *node, struct PlannerInfo *root);

/* inspect.c */
extern struct IndexHealth bfindex_health(Relation index, const BfindexMeta *meta, BlockNumber most);

/* Is the relation an index of this access method that has a file? */
static inline bool
bfindex_is(Relation relation)
{
	return relation->rd_rel->relkind == RELKIND_INDEX && relation->rd_indam->ambuild == bfindex_build;
}

/* Return the false-positive rate that an index is, or will be, built for. */
static inline double
bfindex_fpp(Relation index)
{
	const BfindexOptions *options = (const BfindexOptions *) index->rd_options;

	return options != NULL ? options->fpp : BFINDEX_DEFAULT_FPP;
}

#endif							/* BF_INDEX_H */
