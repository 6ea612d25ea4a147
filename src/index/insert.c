/*
 * insert.c
 *		Inserting a key into the index.
 *
 * Three things can be found on the page of a key.  All of its bits are set: nothing
 * is to be done, and a share lock has sufficed.  Some are not: they are set, under
 * an exclusive lock.  Or the page is full: the key belongs to the next layer, which
 * has to exist before the page says so, and the page has to say so before the key
 * goes there.  Each of the three steps is logged before the next, so a crash
 * between them leaves an index in which every key is found.
 *
 * That bits are set is believed only with the page locked: what another process
 * is about to log could be lost in a crash, while our transaction, which relies on
 * it, survives.
 */
#include "../compat.h"

#include "nodes/execnodes.h"
#include "storage/predicate.h"

#include "index.h"
#include "teststop.h"

/* What is found on a page that is locked. */
typedef enum BfindexFound
{
	BFINDEX_PRESENT,			/* all bits of the key */
	BFINDEX_ELSEWHERE,			/* the page has overflowed */
	BFINDEX_FULL,				/* it should */
	BFINDEX_ABSENT				/* there is room for the key */
} BfindexFound;

static BfindexFound
bfindex_look(Relation index, Buffer buffer, const BfindexLayer *layer, unsigned layer_number,
			 unsigned line, uint64 hash)
{
	Page		page = BufferGetPage(buffer);
	const BfindexPage *header = (const BfindexPage *) page;

	if (!bfindex_check_page(index, buffer, layer_number))
		return BFINDEX_ABSENT;
	if (bf_line_test(bfindex_page_lines(page) + line * BF_LINE_BYTES, BF_LINE_BITS, layer->probes, hash))
		return BFINDEX_PRESENT;
	if (header->flags & BFINDEX_OVERFLOW)
		return BFINDEX_ELSEWHERE;
	return header->bits_set >= layer->full_bits ? BFINDEX_FULL : BFINDEX_ABSENT;
}

/*
 * The lock that will probably do, by a glance at the page without any.  Bits and
 * flags are only ever set: what a glance sees of them, bfindex_look will find too.
 * What it does not see may have come when the lock is there.
 */
static int
bfindex_lock_to_try(Buffer buffer, const BfindexLayer *layer, unsigned line, uint64 hash)
{
	Page		page = BufferGetPage(buffer);

	if ((((const BfindexPage *) page)->flags & BFINDEX_OVERFLOW) ||
		bf_line_test(bfindex_page_lines(page) + line * BF_LINE_BYTES, BF_LINE_BITS, layer->probes, hash))
		return BUFFER_LOCK_SHARE;
	return BUFFER_LOCK_EXCLUSIVE;
}

/* Insert into one layer; false if the key belongs to the next one. */
static bool
bfindex_insert_into(Relation index, const BfindexLayer *layer, unsigned layer_number, uint64 hash)
{
	uint64		line_of_layer = bfindex_line(layer, hash);
	unsigned	line = (unsigned) (line_of_layer % BFINDEX_PAGE_LINES);
	BlockNumber block = layer->first + (BlockNumber) (line_of_layer / BFINDEX_PAGE_LINES);
	Buffer		buffer = ReadBuffer(index, block);
	BfindexLayer next;
	BfindexFound found;
	int			lock = bfindex_lock_to_try(buffer, layer, line, hash);

	for (;;)
	{
		bool		can_overflow;

		LockBuffer(buffer, lock);
		found = bfindex_look(index, buffer, layer, layer_number, line, hash);

		/* an asker has its predicate lock before it reads the page: see it */
		CheckForSerializableConflictIn(index, NULL, block);
		can_overflow = found == BFINDEX_FULL && bfindex_layer(index, layer_number + 1, &next);
		if (found == BFINDEX_PRESENT || found == BFINDEX_ELSEWHERE ||
			(lock == BUFFER_LOCK_EXCLUSIVE && (found == BFINDEX_ABSENT || can_overflow)))
			break;

		/* who takes another lock, or makes a layer, has to look again */
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		if (found == BFINDEX_FULL && !can_overflow)
			bfindex_grow(index, layer_number + 1);
		lock = BUFFER_LOCK_EXCLUSIVE;
	}

	if (found == BFINDEX_FULL)
	{
		bfindex_test_stop("before overflow");
		bfindex_set_overflow(index, buffer);
		bfindex_test_stop("after overflow");
	}
	else if (found == BFINDEX_ABSENT)
		bfindex_set_key(index, buffer, line, layer, layer_number, hash);
	UnlockReleaseBuffer(buffer);
	return found == BFINDEX_PRESENT || found == BFINDEX_ABSENT;
}

bool
bfindex_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			   IndexUniqueCheck unique, bool unchanged, struct IndexInfo *info)
{
	BfindexLayer layer;
	uint64		hash;

	if (isnull[0])
		return false;
	hash = bfindex_hash(index_key_hash(index_key_insert_hasher(index, info), values[0]));
	for (unsigned i = 0; bfindex_layer(index, i, &layer); i++)
	{
		if (bfindex_insert_into(index, &layer, i, hash))
			return false;
	}
	bfindex_lacks_layer(index);
	return false;
}
