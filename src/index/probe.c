/*
 * probe.c
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
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "index.h"

/*
 * The type that the keys of an index are hashed as: the one that its operators
 * compare.  The column can be of another type that has the same representation, such as
 * varchar for text and regclass for oid; and ALTER TABLE can change one into the other
 * without a new index file.  Polymorphic operators compare values of the column's type.
 */
Oid
bfindex_type_of_keys(Relation index)
{
	Oid			type = index->rd_opcintype[0];

	return type == RECORDOID || IsPolymorphicType(type) ? TupleDescAttr(RelationGetDescr(index), 0)->atttypid : type;
}

/* How to hash the keys of an index. */
KeyType *
bfindex_key_type(Relation index, MemoryContext context)
{
	return key_type(bfindex_type_of_keys(index), index->rd_indcollation[0], context);
}

/*
 * Does the index compare keys with the equality operator of the column's type?  It does
 * not if that type has an operator of its own, such as citext, which has the
 * representation of text.
 */
bool
bfindex_compares_like_column(Relation index)
{
	Oid			type = getBaseType(TupleDescAttr(RelationGetDescr(index), 0)->atttypid);
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR);

	return type == index->rd_opcintype[0] || op_in_opfamily(entry->eq_opr, index->rd_opfamily[0]);
}

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
 * Does the index have one of these values?  `type` is the one that an operator of the
 * index compares with the column.  The result is true for values of a class that the
 * index does not have.  Leaves memory behind in the current context.
 *
 * What a serializable scan returns depends on all of the values, also on those after
 * the first that is found: their pages must be locked, too.
 */
bool
bfindex_contains_any(Relation index, Oid type, const Datum *values, const bool *nulls, int n, Snapshot snapshot)
{
	bool		all = snapshot != NULL && IsolationIsSerializable();
	bool		found = false;
	KeyType    *key;

	if (!OidIsValid(type) || type == RECORDOID || IsPolymorphicType(type))
		type = bfindex_type_of_keys(index);
	key = key_type(type, index->rd_indcollation[0], CurrentMemoryContext);
	if (!bfindex_has_class_of(index, key))
	{
		/* unless it is damaged, the operator was added to ours by somebody else */
		bfindex_check_class(index);
		if (snapshot != NULL)
			PredicateLockRelation(index, snapshot);
		return true;
	}
	for (int i = 0; i < n && (all || !found); i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			found |= bfindex_contains_hash(index, bfindex_hash(key, values[i]), snapshot);
	}
	return found;
}

/* Does it have an element of this array? */
bool
bfindex_contains_element(Relation index, Oid type, Datum array, Snapshot snapshot)
{
	ArrayType  *elements = DatumGetArrayTypeP(array);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(ARR_ELEMTYPE(elements), &length, &by_value, &align);
	deconstruct_array(elements, ARR_ELEMTYPE(elements), length, by_value, align, &values, &nulls, &n);
	return bfindex_contains_any(index, type, values, nulls, n, snapshot);
}
