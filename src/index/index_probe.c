/*
 * index_probe.c
 *		Is a key in the index?
 *
 * "No" is certain for every row that a snapshot taken before the question can
 * see: the row's inserter set the bits before it committed.  (It is also certain
 * only if the index has an entry for every such row; scans and functions that rely
 * on it see to that.)
 *
 * In a serializable transaction the answer, yes or no, depends on every page that
 * was looked at.  Each gets a predicate lock before it is read; bfindex_insert
 * checks for such locks on every page that it looks at, while it holds the page.
 */
#include "../compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/predicate.h"

#include "index.h"

/* `snapshot` NULL: the answer will not be relied upon. */
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
 * Does the index have one of these keys?  The result is true for values of a class that
 * the index does not have.
 *
 * What a serializable scan returns depends on all of the values, also on those after
 * the first that is found: their pages must be locked, too.
 */
bool
bfindex_contains_any(Relation index, const IndexKeyList *keys, Snapshot snapshot)
{
	bool		all = snapshot != NULL && IsolationIsSerializable();
	bool		found = false;

	if (keys->type != NULL && !index_key_class_matches(bfindex_class(index), keys->type))
	{
		/*
		 * unless it is damaged, the operator was added to ours by somebody
		 * else
		 */
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
