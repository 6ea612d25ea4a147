/*
 * index.h
 *		The access method `bloomfilter`: an index that is a filter of a column.
 *
 * Block 0 is the metapage.  After it come the layers, one behind the other, each
 * a number of pages of 512-bit lines.  A key touches one line of a layer, hence
 * one page: the line is where the core puts the key in a layer of that many
 * lines, so that the lines of all pages, one after the other, are those of a
 * `bloom` value.
 *
 * A page counts its set bits.  One that has as many as its share of keys would
 * set is full: it gets the flag OVERFLOW, and further keys that belong to it go
 * to the next layer.  So a key is looked for in the first layer, and in the next
 * one only if its page there overflowed.  There is no counter for a whole layer
 * that all inserts would have to change.
 *
 * Bits and flags are only ever set, layers only ever added.  That is what makes
 * concurrency simple: whoever saw a key's bits set, or a flag, can rely on it.
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
 * A page of lines.  Everything up to the end of the page is in use, and
 * pd_lower and pd_upper say so: there is no hole that WAL could leave out.
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

#define BFINDEX_OVERFLOW	0x0001	/* keys of this page are in the next layer
									 * too */

#define BFINDEX_LINES_OFFSET	BF_LINE_BYTES
#define BFINDEX_PAGE_LINES		((BLCKSZ - BFINDEX_LINES_OFFSET) / BF_LINE_BYTES)
#define BFINDEX_PAGE_WORDS		((uint64) BFINDEX_PAGE_LINES * BF_LINE_WORDS)

StaticAssertDecl(sizeof(BfindexPage) <= BFINDEX_LINES_OFFSET, "lines begin behind the header");

static inline uint8 *
bfindex_page_lines(Page page)
{
	return (uint8 *) page + BFINDEX_LINES_OFFSET;
}

/*
 * A layer.
 */
typedef struct BfindexLayer
{
	double		fpp;			/* its share of the target */
	BlockNumber first;			/* block */
	BlockNumber pages;
	uint32		page_keys;		/* for how many keys each page is made */
	uint32		full_bits;		/* set bits from which on a page is full */
	uint32		probes;			/* bits that a key sets */
	uint32		unused;
} BfindexLayer;

/* The lines of one page as a shape of the core's. */
static inline bf_shape
bfindex_page_shape(const BfindexLayer *layer)
{
	return (bf_shape) {BFINDEX_PAGE_WORDS, 1, (uint8) layer->probes};
}

/* Layers double, so these are more than fit into a relation. */
#define BFINDEX_MAX_LAYERS	32

/* full_bits of a layer that takes any number of keys: there can be no other. */
#define BFINDEX_NEVER_FULL	PG_UINT32_MAX

typedef struct BfindexMeta
{
	uint32		magic;
	uint32		version;
	double		fpp;			/* target, for all layers together */
	uint16		layers;
	IndexKeyClass class;
	BfindexLayer layer[BFINDEX_MAX_LAYERS];
} BfindexMeta;

#define BFINDEX_META_OFFSET		MAXALIGN(SizeOfPageHeaderData)

StaticAssertDecl(BFINDEX_META_OFFSET + sizeof(BfindexMeta) <= BLCKSZ, "the metapage is one page");

/* page.c: what pages are like, and how they are changed */
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

/* layers.c: how large layers are, and making further ones */
extern BfindexLayer bfindex_first_layer(double fpp, uint64 capacity, bool known);
extern void bfindex_grow(Relation index, unsigned layers);
extern uint64 bfindex_room_of_file(double fpp, BlockNumber blocks);

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

/*
 * The hash that places a key: that of the only group of probes.  The core's
 * lines are in the order of these numbers.
 */
static inline uint64
bfindex_hash(uint64 key_hash)
{
	return bf_group_hash(key_hash, 0);
}

/* Where in a layer a key is. */
static inline uint64
bfindex_line(const BfindexLayer *layer, uint64 hash)
{
	return bf_group_line(hash, (uint64) layer->pages * BFINDEX_PAGE_LINES);
}

/* index_probe.c: is a key in the index? */
extern bool bfindex_contains_hash(Relation index, uint64 hash, Snapshot snapshot);
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
 * A key that is reported by mistake costs a whole scan where there is no other
 * index, which is what this one is for; so the default is strict.  The limits
 * follow from the one line that a key touches: below 1e-4 lines that happen to
 * hold many keys make the index several times as large as it would be with more
 * lines a key.
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
