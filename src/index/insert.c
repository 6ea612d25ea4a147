/*
 * insert.c
 *		Inserting a key into the index.
 *
 * The page of a key is in one of three states.  If all bits of the key are set, nothing is
 * left to do, and a share lock suffices.  If some are not, they are set under an exclusive
 * lock.  If the page is full, the key belongs to the next layer: that layer has to exist
 * before the page gets the flag OVERFLOW, and the page has to have the flag before the key
 * is inserted there.  Each of these steps is logged before the next, so after a crash
 * between them every key is still found.
 *
 * Bits count as set only if they are read with the page locked.  Otherwise another process
 * might not have logged them yet: a crash would lose them, while our transaction, which
 * relies on them, survives.
 */
#include "../compat.h"

#include "storage/predicate.h"

#include "index.h"
#include "teststop.h"

/* The state of a locked page with regard to a key. */
typedef enum BfindexFound
{
	BFINDEX_PRESENT,			/* all bits of the key are set */
	BFINDEX_ELSEWHERE,			/* the page has overflowed */
	BFINDEX_FULL,				/* the page has to overflow */
	BFINDEX_ABSENT				/* the page has room for the key */
} BfindexFound;

/* Return the state of a locked page. */
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
 * Return the lock that will probably suffice, from reading the page without a lock.  Bits
 * and flags are only set, so bfindex_look will find those that are seen here.  Others may
 * be set by the time the lock is granted.
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

		/* a reader takes its predicate lock before it reads the page */
		CheckForSerializableConflictIn(index, NULL, block);
		can_overflow = found == BFINDEX_FULL && bfindex_layer(index, layer_number + 1, &next);
		if (found == BFINDEX_PRESENT || found == BFINDEX_ELSEWHERE ||
			(lock == BUFFER_LOCK_EXCLUSIVE && (found == BFINDEX_ABSENT || can_overflow)))
			break;

		/* the page can change while it is not locked */
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

/* Insert the key of a row into the first layer whose page has room for it. */
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
