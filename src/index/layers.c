/*
 * layers.c
 *		How large the layers of an index are, and making another one.
 *
 * A key that was not added is reported if it passes in any layer, so the layers'
 * probabilities add up; each may have only a share of the target.  A first layer
 * whose size follows from the keys that are there, or that the user declared, will
 * often stay the only one: it takes three quarters.  One that is a guess, because
 * the table is empty, will soon be the smallest of several: it takes an eighth,
 * which costs it some bits for each of its few keys and leaves the large layers
 * room.  Each further layer takes half of what is left.  A page is full with
 * exactly the keys that it is made for, so no layer exceeds its share.
 *
 * Each layer is made for twice the keys that the one before has.  (Has, not was made
 * for: who knows the hash can choose keys that all fall on one page, and would
 * otherwise double the file with every few thousand.)  From nothing to a million
 * keys at 0.001 that makes four layers and 28 bits a key, where an index built
 * at once has 17.
 *
 * A layer is made by extending the file with zeros, and zeros are an empty page.  The
 * space on disk is allocated, so that a full disk is an error of the statement that needs
 * the layer.  (A hole in the file would be filled by later checkpoints, which must not
 * fail.)  Only statements whose keys belong to a page that is full wait for that.  Replay
 * writes the last page, which makes the file as long there.
 */
#include "../compat.h"

#include "access/generic_xlog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "../server.h"
#include "index.h"
#include "teststop.h"

#define KNOWN_SHARE			(3.0 / 4)
#define GUESSED_SHARE		(1.0 / 8)
#define FURTHER_SHARE		(1.0 / 2)	/* of what is left */

/*
 * No layer is stricter: it would be twice as large as now for every fifth of a
 * bit.  With the strictest target the seventh layer is the first that this
 * concerns, and ten more add a tenth to the target.
 */
#define LEAST_FPP			1e-6

/* The file is extended in steps of this number of pages, 16 MB. */
#define EXTEND_PAGES		2048

#define GUESSED_PAGES		16	/* of the first layer over an empty table */
#define FURTHER_PAGES		64	/* of any other, at least */

/* Pages that are looked at to estimate the number of keys. */
#define SAMPLED_PAGES		32

/* A layer of any number of pages. */
static BfindexLayer
layer_for(double fpp)
{
	BfindexLayer layer = {0};
	bf_shape	shape;
	uint64_t	keys;

	layer.fpp = Max(fpp, LEAST_FPP);
	shape = bf_shape_of_lines(BFINDEX_PAGE_LINES, layer.fpp, &keys);
	layer.probes = shape.probes;
	layer.page_keys = (uint32) Max(keys, 1);
	layer.full_bits = (uint32) Max(bf_shape_bits_set(shape, layer.page_keys), 1);
	return layer;
}

/*
 * The first layer.  `capacity` is the number of keys that it has to hold, known or
 * guessed.
 */
BfindexLayer
bfindex_first_layer(double fpp, uint64 capacity, bool known)
{
	BfindexLayer layer = layer_for(fpp * (known ? KNOWN_SHARE : GUESSED_SHARE));
	uint64		pages = known ? (capacity + layer.page_keys - 1) / layer.page_keys : GUESSED_PAGES;

	layer.first = BFINDEX_META_BLOCK + 1;
	layer.pages = (BlockNumber) Min(Max(pages, 1), MaxBlockNumber / 4);
	return layer;
}

/*
 * About how many distinct keys a layer has.  Keys spread evenly over its pages, so a
 * few of them speak for all.
 */
static double
layer_keys(Relation index, const BfindexLayer *layer, unsigned number)
{
	BlockNumber sample = Min(layer->pages, SAMPLED_PAGES);
	double		keys = 0;

	for (BlockNumber i = 0; i < sample; i++)
	{
		Buffer		buffer = ReadBuffer(index, layer->first + (BlockNumber) ((2 * (uint64) i + 1) * layer->pages / (2 * sample)));

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (bfindex_check_page(index, buffer, number))
			keys += bf_lines_census(server_host(NULL), bfindex_page_lines(BufferGetPage(buffer)),
									bfindex_page_shape(layer)).keys;
		UnlockReleaseBuffer(buffer);
	}
	return keys / sample * layer->pages;
}

/*
 * For how many keys a first layer as large as this file would be made; 0 if the file
 * is not larger than that of an index whose size was guessed.
 */
uint64
bfindex_room_of_file(double fpp, BlockNumber blocks)
{
	if (blocks <= BFINDEX_META_BLOCK + 1 + GUESSED_PAGES)
		return 0;
	return (uint64) (blocks - BFINDEX_META_BLOCK - 1) * layer_for(fpp * KNOWN_SHARE).page_keys;
}

/* The layer that follows those that an index has. */
static BfindexLayer
next_layer(Relation index, const BfindexMeta *meta)
{
	const BfindexLayer *last = &meta->layer[meta->layers - 1];
	BfindexLayer layer;
	double		left = meta->fpp;
	double		pages;
	BlockNumber room;

	for (unsigned i = 0; i < meta->layers; i++)
		left -= meta->layer[i].fpp;
	layer = layer_for(left * FURTHER_SHARE);
	layer.first = last->first + last->pages;
	room = MaxBlockNumber - layer.first;
	pages = layer_keys(index, last, meta->layers - 1) * 2 / layer.page_keys;
	layer.pages = (BlockNumber) Min(Max(pages, FURTHER_PAGES), room);

	/* where no further one would fit, this one takes whatever comes */
	if (meta->layers + 1 == BFINDEX_MAX_LAYERS || (room - layer.pages) / 4 < layer.pages)
		layer.full_bits = BFINDEX_NEVER_FULL;
	return layer;
}

/*
 * Make the file long enough to have this block.  Some of it may have been left by a process
 * that was cancelled, or that failed, before it made the layer.
 */
static void
extend_to(Relation index, BlockNumber block)
{
	BlockNumber next;

	while ((next = RelationGetNumberOfBlocks(index)) <= block)
	{
		CHECK_FOR_INTERRUPTS();
		bf_extend_with_zeros(index, next, Min(block - next + 1, EXTEND_PAGES));
	}
}

/*
 * Ensure that an index has more than `layers` layers.  The caller holds no lock
 * on any of its pages.
 *
 * A layer exists from the moment that the metapage names it.  Should we not get so
 * far, then the next one who tries finds the file extended already: nothing was
 * written to the pages there, since one record logs both the metapage and the last
 * page.
 */
void
bfindex_grow(Relation index, unsigned layers)
{
	BfindexMeta meta;

	LockRelationForExtension(index, ExclusiveLock);
	meta = bfindex_read_meta(index);
	if (meta.layers <= layers)
	{
		BfindexLayer layer = next_layer(index, &meta);
		BlockNumber last = layer.first + layer.pages - 1;
		Buffer		meta_buffer;
		Buffer		buffer;
		GenericXLogState *xlog;

		bfindex_test_stop("before extending");
		extend_to(index, last);
		bfindex_test_stop("after extending");
		buffer = ReadBuffer(index, last);
		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		meta_buffer = ReadBuffer(index, BFINDEX_META_BLOCK);
		LockBuffer(meta_buffer, BUFFER_LOCK_EXCLUSIVE);
		meta.layer[meta.layers] = layer;
		meta.layers++;
		xlog = GenericXLogStart(index);
		bfindex_init_page(GenericXLogRegisterBuffer(xlog, buffer, GENERIC_XLOG_FULL_IMAGE), meta.layers - 1);
		memcpy(GenericXLogRegisterBuffer(xlog, meta_buffer, 0) + BFINDEX_META_OFFSET, &meta, sizeof(meta));
		GenericXLogFinish(xlog);
		UnlockReleaseBuffer(meta_buffer);
		UnlockReleaseBuffer(buffer);
		bfindex_test_stop("after publishing");
	}
	UnlockRelationForExtension(index, ExclusiveLock);
}
