/*
 * layers.c
 *		Sizes of the layers of an index, and adding a layer.
 *
 * An absent key is reported if it passes in any layer, so the false-positive rates of the
 * layers add up, and each layer gets a share of the target.  A first layer that is sized
 * by known or declared keys often remains the only one: it gets three quarters.  A first
 * layer over an empty table has a guessed size and is soon the smallest of several: it
 * gets an eighth, which costs a few more bits for each of its few keys and leaves more to
 * the large layers.  Each further layer gets half of the remainder.  A page is full with
 * exactly the keys that it is sized for, so no layer exceeds its share.
 *
 * A further layer is sized for twice the keys that the last one contains.  (It is not sized
 * by the last one's capacity: a user who knows the hash can choose keys that all map to
 * one page, and would double the file with every few thousand keys.)  Growing from an
 * empty table to a million keys at 0.001 makes four layers and 28 bits per key; an index
 * built over the same keys has 17.
 *
 * A layer is made by extending the file with zeros, and a page of zeros is empty.  The
 * space on disk is allocated, so that a full disk is an error of the statement that needs
 * the layer.  (A hole in the file would be filled by later checkpoints, which must not
 * fail.)  Only statements whose keys map to a full page wait for it.  The WAL record
 * includes the last page of the layer, so replay makes the file as long.
 */
#include "../compat.h"

#include "access/generic_xlog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"

#include "../server.h"
#include "index.h"
#include "teststop.h"

/* Shares of the false-positive rate, see above. */
#define KNOWN_SHARE			(3.0 / 4)
#define GUESSED_SHARE		(1.0 / 8)
#define FURTHER_SHARE		(1.0 / 2)	/* of the remainder */

/*
 * The lowest false-positive rate of a layer: stricter ones need disproportionately more
 * space, because a key has one line only.  With the strictest target, the seventh layer
 * is the first to reach it, and ten more add a tenth to the target.
 */
#define LEAST_FPP			1e-6

/* The file is extended in steps of this number of pages, 16 MB. */
#define EXTEND_PAGES		2048

#define GUESSED_PAGES		16	/* of a first layer over an empty table */
#define FURTHER_PAGES		64	/* of a further layer, at least */

/* The number of pages that are read to estimate the number of keys. */
#define SAMPLED_PAGES		32

/* Return a layer with this false-positive rate, and without pages yet. */
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

/* Return the first layer.  `capacity` is used if it is known, from keys or a declaration. */
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
 * Estimate the number of distinct keys in a layer.  Keys are spread evenly over its pages,
 * so a sample of pages suffices.
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
 * Return the capacity of a first layer as large as this file; 0 if the file is not larger
 * than that of an index whose size was guessed.
 */
uint64
bfindex_room_of_file(double fpp, BlockNumber blocks)
{
	if (blocks <= BFINDEX_META_BLOCK + 1 + GUESSED_PAGES)
		return 0;
	return (uint64) (blocks - BFINDEX_META_BLOCK - 1) * layer_for(fpp * KNOWN_SHARE).page_keys;
}

/* Return the layer that follows the last one of an index. */
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

	/* where no further layer would fit, this one takes all keys */
	if (meta->layers + 1 == BFINDEX_MAX_LAYERS || (room - layer.pages) / 4 < layer.pages)
		layer.full_bits = BFINDEX_NEVER_FULL;
	return layer;
}

/*
 * Extend the file up to this block.  A process that was cancelled or failed before it
 * added the layer may have extended it already.
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
 * Ensure that an index has more than `layers` layers.  The caller must not hold locks on
 * its pages.
 *
 * A layer exists as soon as the metapage lists it.  After a failure before that, the next
 * process finds the file extended.  Its new pages are still zeros, because one record logs
 * both the metapage and the last page.
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
