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

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "index.h"

/* How to hash the keys of an index, as its column has them. */
KeyType *
bfindex_key_type(Relation index, MemoryContext context)
{
	return key_type(TupleDescAttr(RelationGetDescr(index), 0)->atttypid, index->rd_indcollation[0], context);
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
 * Does the index have one of these values?  They are of a type that an operator of
 * its family compares with the column.  A value that the index cannot tell about may
 * be there.  Leaves memory behind in the current context.
 */
bool
bfindex_contains_any(Relation index, Oid type, const Datum *values, const bool *nulls, int n, Snapshot snapshot)
{
	Oid			column = TupleDescAttr(RelationGetDescr(index), 0)->atttypid;
	KeyType    *key;
	bool		is_row;

	/* operators of polymorphic types compare values of the column's own type */
	if (!OidIsValid(type) || type == RECORDOID || IsPolymorphicType(type))
		type = column;
	is_row = type_is_rowtype(getBaseType(type));
	key = key_type(type, index->rd_indcollation[0], CurrentMemoryContext);
	for (int i = 0; i < n; i++)
	{
		uint64		hash;

		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			continue;

		/* a row of another type than the column's can be equal nevertheless */
		if (is_row && HeapTupleHeaderGetTypeId(DatumGetHeapTupleHeader(values[i])) != getBaseType(column))
			return true;
		hash = bfindex_hash(key, values[i]);
		if (!bfindex_has_class_of(index, key) || bfindex_contains_hash(index, hash, snapshot))
			return true;
	}
	return false;
}

/* Does it have an element of this array? */
bool
bfindex_contains_element(Relation index, Datum array, Snapshot snapshot)
{
	ArrayType  *elements = DatumGetArrayTypeP(array);
	Oid			type = ARR_ELEMTYPE(elements);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(type, &length, &by_value, &align);
	deconstruct_array(elements, type, length, by_value, align, &values, &nulls, &n);
	return bfindex_contains_any(index, type, values, nulls, n, snapshot);
}
