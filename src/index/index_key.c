/*
 * index_key.c
 *		Keys of an index: their type, class and hash.
 *
 * Keys are hashed by their type, not by a support function of the operator class: the
 * hash of a key is the one that a filter value has for it (key.h).  So an operator class
 * consists of equality operators only, and it must be one of this extension, whose
 * operators are known to agree with the hashes.
 */
#include "../compat.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "index_key.h"

/* ----------------------------------------------------------------
 * Types
 * ----------------------------------------------------------------
 */

/*
 * Return the type that the keys of an index are hashed as: the one that its operators
 * compare.  The column can be of another type that has the same representation, such as
 * varchar for text and regclass for oid; and ALTER TABLE can change one into the other
 * without a new index file.  Polymorphic operators compare values of the column's type.
 */
Oid
index_key_type_oid(Relation index)
{
	Oid			type = index->rd_opcintype[0];

	return type == RECORDOID || IsPolymorphicType(type) ? TupleDescAttr(RelationGetDescr(index), 0)->atttypid : type;
}

/* Return how to hash the keys of an index. */
KeyType *
index_key_type(Relation index, MemoryContext context)
{
	return key_type(index_key_type_oid(index), index->rd_indcollation[0], context);
}

/*
 * The same for the other operand of an operator of the index, whose type is that of a scan
 * key (sk_subtype).
 */
KeyType *
index_key_type_of_operand(Relation index, Oid type, MemoryContext context)
{
	if (!OidIsValid(type) || type == RECORDOID || IsPolymorphicType(type))
		type = index_key_type_oid(index);
	return key_type(type, index->rd_indcollation[0], context);
}

/*
 * Does the index compare keys with the equality operator of the column's type?  It does
 * not if that type has an operator of its own, such as citext, which has the
 * representation of text.
 */
bool
index_key_compares_like_column(Relation index)
{
	Oid			type = getBaseType(TupleDescAttr(RelationGetDescr(index), 0)->atttypid);
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR);

	return type == index->rd_opcintype[0] || op_in_opfamily(entry->eq_opr, index->rd_opfamily[0]);
}

/* Return the access method of an index, or InvalidOid if the index does not exist. */
Oid
index_access_method(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Oid			method = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		method = ((Form_pg_class) GETSTRUCT(tuple))->relam;
		ReleaseSysCache(tuple);
	}
	return method;
}

/* Raise an error if keys of this type cannot be indexed.  To be called by ambuild. */
void
index_key_check(Relation index, const KeyType *type)
{
	const char *method = get_am_name(index->rd_rel->relam);
	Oid			extension = getExtensionOfObject(OperatorFamilyRelationId, index->rd_opfamily[0]);
	char	   *extension_name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	const char *type_name = format_type_be(TupleDescAttr(RelationGetDescr(index), 0)->atttypid);

	if (extension_name == NULL || strcmp(extension_name, "bloomfilter") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" supports only its own operator classes", method),
				 errdetail("Keys are hashed by their type, and the operators of other operator classes may treat keys with different hashes as equal.")));
	if (type->class.scheme != BF_SCHEME_CANONICAL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("values of type %s cannot be keys of a %s index", type_name, method),
				 errdetail("They are hashed by a function of another extension, which may change when that extension is updated."),
				 errhint("Index an expression of a built-in type, such as lower(column::text).")));
	if (type->can_change != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("values of type %s cannot be keys of a %s index", type_name, method),
				 errdetail("%s", type->can_change),
				 errhint("%s", type->instead)));
	if (!index_key_compares_like_column(index))
		ereport(WARNING,
				(errmsg("index \"%s\" does not support the equality operator of type %s",
						RelationGetRelationName(index), type_name),
				 errdetail("It compares values as type %s.", format_type_be(index->rd_opcintype[0])),
				 errhint("Index an expression of a built-in type, such as lower(column::text).")));
}

/*
 * Validate an operator class, as amvalidate does.  All operators of its family must be
 * equality, and there must be no support functions.
 */
bool
index_key_validate(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass class;
	const char *method;
	CatCList   *operators;
	CatCList   *functions;
	bool		found = false;
	bool		valid = true;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	method = get_am_name(class->opcmethod);
	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));
	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop operator = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);

		if (operator->amopstrategy != INDEX_KEY_EQUAL || operator->amoppurpose != AMOP_SEARCH ||
			!check_amop_signature(operator->amopopr, BOOLOID, operator->amoplefttype, operator->amoprighttype))
		{
			ereport(INFO,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("operator class \"%s\" of access method %s contains an operator that is not equality: %s",
							NameStr(class->opcname), method, format_operator(operator->amopopr))));
			valid = false;
		}
		found |= operator->amoplefttype == class->opcintype && operator->amoprighttype == class->opcintype;
	}
	if (!found)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is missing the equality operator of type %s",
						NameStr(class->opcname), method, format_type_be(class->opcintype))));
		valid = false;
	}
	if (functions->n_members > 0)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s contains support functions, which the access method does not use",
						NameStr(class->opcname), method)));
		valid = false;
	}
	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(tuple);
	return valid;
}

/* ----------------------------------------------------------------
 * Classes
 * ----------------------------------------------------------------
 */

/* Store the class of a type in a metapage. */
void
index_key_class_set(IndexKeyClass *stored, const KeyType *type)
{
	memset(stored, 0, sizeof(*stored));
	stored->scheme = type->class.scheme;
	stored->code = type->class.code;
	stored->name_length = type->class.name_length;
	if (stored->name_length > 0)
		memcpy(stored->name, type->class.name, stored->name_length);
}

/* Is the stored class one that index_key_class_set() can have stored? */
bool
index_key_class_is_known(const IndexKeyClass *stored)
{
	if (stored->scheme != BF_SCHEME_CANONICAL)
		return false;
	if (stored->code == BF_CLASS_NAMED)
		return stored->name_length > 0;
	return stored->code != BF_CLASS_NONE && stored->code < BF_CLASS_COUNT && stored->name_length == 0;
}

/*
 * Raise an error if the class that is stored in a metapage, at this block, is not that of
 * the index.  The class follows from the definition of the index, so the page is damaged.
 */
void
index_key_class_check(Relation index, const IndexKeyClass *stored, BlockNumber block)
{
	if (!index_key_class_matches(stored, index_key_type(index, CurrentMemoryContext)))
		index_damaged(index, block, "Its key class is not that of the column.");
}

/* Raise the error for a page that contradicts itself or others; `detail` is a sentence. */
void
index_damaged(Relation index, BlockNumber block, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has a damaged page at block %u", RelationGetRelationName(index), block),
			 errdetail("%s", detail),
			 errhint("REINDEX the index.")));
}

/*
 * Raise an error if the version that is stored in a metapage is not the one that this library
 * reads.  REINDEX does not read the old file, so it works with every version.
 */
void
index_version_check(Relation index, uint32 stored, uint32 supported)
{
	if (stored != supported)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has format version %u, which is not supported", RelationGetRelationName(index), stored),
				 errdetail("The installed version of bloomfilter supports version %u.", supported),
				 errhint("REINDEX the index, or install the version of bloomfilter that wrote it.")));
}

/* ----------------------------------------------------------------
 * Hashes
 * ----------------------------------------------------------------
 */

/* Prepare for hashing values of the indexed column. */
IndexKeyHasher *
index_key_hasher(Relation index, MemoryContext context)
{
	IndexKeyHasher *hasher = MemoryContextAlloc(context, sizeof(IndexKeyHasher));

	hasher->type = index_key_type(index, context);
	hasher->scratch = AllocSetContextCreate(context, "index key", ALLOCSET_SMALL_SIZES);
	return hasher;
}

/* The same for aminsert.  It is kept for all rows of the statement. */
IndexKeyHasher *
index_key_insert_hasher(Relation index, struct IndexInfo *info)
{
	if (info->ii_AmCache == NULL)
		info->ii_AmCache = index_key_hasher(index, info->ii_Context);
	return info->ii_AmCache;
}

/*
 * Return the values of a condition.  `type` is the one that an operator of the index
 * compares with the column (sk_subtype of a scan key): of the value, or of its elements
 * if it is an array.  The list is in the current memory context.
 */
IndexKeyList
index_key_list(Relation index, Oid type, Datum value, bool isnull, bool is_array)
{
	IndexKeyList list = {0};

	if (isnull)
		return list;
	list.type = index_key_type_of_operand(index, type, CurrentMemoryContext);
	if (is_array)
	{
		ArrayType  *array = DatumGetArrayTypeP(value);
		bool	   *nulls;
		int			n;
		int16		length;
		bool		by_value;
		char		align;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &list.values, &nulls, &n);
		for (int i = 0; i < n; i++)
		{
			if (!nulls[i])
				list.values[list.n++] = list.values[i];
		}
	}
	else
	{
		list.values = palloc(sizeof(Datum));
		list.values[list.n++] = value;
	}
	return list;
}
