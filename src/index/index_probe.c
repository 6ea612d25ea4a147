/*
 * index_probe.c
 *		Probing the index for keys.
 *
 * A key that is reported absent is in no row that a snapshot taken before the probe can
 * see, because the inserting transaction sets the bits before it commits.  (That requires
 * that the index has an entry for every such row.  For index scans the server ensures it,
 * for functions trust.c.)
 *
 * In a serializable transaction the result depends on every page that was read, whether
 * the key is present or not.  A page gets a predicate lock before it is read;
 * bfindex_insert checks for such locks on every page that it reads, while it holds the
 * page's lock.
 */
#include "../compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/predicate.h"

#include "index.h"

/* Is a key present?  Without a snapshot, no predicate locks are taken. */
bool
bfindex_contains_hash(Relation index, uint64 hash, Snapshot snapshot)
{
	BfindexLayer layer;
	bool		found = false;
	bool		more = true;

	for (unsigned i = 0; more && !found; i++)
	{
		Buffer		buffer;
		uint64		line;
		BlockNumber block;

		if (!bfindex_layer(index, i, &layer))
			bfindex_lacks_layer(index);
		line = bfindex_line(&layer, hash);
		block = layer.first + (BlockNumber) (line / BFINDEX_PAGE_LINES);
		if (snapshot != NULL)
			PredicateLockPage(index, block, snapshot);
		buffer = ReadBuffer(index, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		more = false;
		if (bfindex_check_page(index, buffer, i))
		{
			Page		page = BufferGetPage(buffer);

			found = bf_line_test(bfindex_page_lines(page) + line % BFINDEX_PAGE_LINES * BF_LINE_BYTES,
								 BF_LINE_BITS, layer.probes, hash);
			more = (((BfindexPage *) page)->flags & BFINDEX_OVERFLOW) != 0;
		}
		UnlockReleaseBuffer(buffer);
	}
	return found;
}

/*
 * Is one of these keys present?  The result is true for keys of another class than that of
 * the index.
 *
 * The result of a serializable scan depends on all keys, including those after the first
 * that is present: their pages must get predicate locks, too.
 */
bool
bfindex_contains_any(Relation index, const IndexKeyList *keys, Snapshot snapshot)
{
	bool		all = snapshot != NULL && IsolationIsSerializable();
	bool		found = false;

	if (keys->type == NULL)
		return false;			/* the condition compares with NULL */
	if (!index_key_class_matches(bfindex_class(index), keys->type))
	{
		/* unless the index is damaged, a user added an operator to the family */
		bfindex_check_class(index);
		if (snapshot != NULL)
			PredicateLockRelation(index, snapshot);
		return true;
	}
	for (int i = 0; i < keys->n && (all || !found); i++)
	{
		CHECK_FOR_INTERRUPTS();
		found |= bfindex_contains_hash(index, bfindex_hash(key_hash(keys->type, keys->values[i])), snapshot);
	}
	return found;
}
