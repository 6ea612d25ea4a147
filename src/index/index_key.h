/*
 * index_key.h
 *		Keys of an index: their type, class and hash.
 *
 * Nothing here depends on an access method or its pages.  The name of the access method
 * that appears in messages is that of the index or operator class at hand.
 */
#ifndef BF_INDEX_KEY_H
#define BF_INDEX_KEY_H

#include "../compat.h"

#include "storage/block.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "../key.h"

struct IndexInfo;

/* The only strategy of an operator class: equality. */
#define INDEX_KEY_EQUAL		1

extern Oid	index_key_type_oid(Relation index);
extern KeyType *index_key_type(Relation index, MemoryContext context);
extern KeyType *index_key_type_of_operand(Relation index, Oid type, MemoryContext context);
extern bool index_key_compares_like_column(Relation index);
extern Oid	index_access_method(Oid index);
extern void index_key_check(Relation index, const KeyType *type);
extern bool index_key_validate(Oid opclass);

/* ----------------------------------------------------------------
 * Classes
 * ----------------------------------------------------------------
 */

/*
 * The class of the keys, as it is stored in a metapage.  All members are bytes, so the
 * struct can be at any offset.
 */
typedef struct IndexKeyClass
{
	uint8		scheme;
	uint8		code;
	uint8		name_length;
	uint8		unused[3];
	char		name[BF_MAX_CLASS_NAME + 1];
} IndexKeyClass;

extern void index_key_class_set(IndexKeyClass *stored, const KeyType *type);
extern bool index_key_class_is_known(const IndexKeyClass *stored);
extern void index_key_class_check(Relation index, const IndexKeyClass *stored, BlockNumber block);
extern void index_damaged(Relation index, BlockNumber block, const char *detail);
extern void index_version_check(Relation index, uint32 stored, uint32 supported);

/* Return the stored class; its name stays in the struct. */
static inline KeyClass
index_key_class(const IndexKeyClass *stored)
{
	return (KeyClass) {stored->scheme, stored->code, stored->name_length, stored->name};
}

/* Do equal values of this type have the hashes that the keys of the index have? */
static inline bool
index_key_class_matches(const IndexKeyClass *stored, const KeyType *type)
{
	KeyClass	class = index_key_class(stored);

	return key_class_equal(&class, &type->class);
}

/* ----------------------------------------------------------------
 * Hashes
 * ----------------------------------------------------------------
 */

/* Hashes the indexed values of many rows without leaving memory behind. */
typedef struct IndexKeyHasher
{
	KeyType    *type;
	MemoryContext scratch;
} IndexKeyHasher;

extern IndexKeyHasher *index_key_hasher(Relation index, MemoryContext context);
extern IndexKeyHasher *index_key_insert_hasher(Relation index, struct IndexInfo *info);

static inline uint64
index_key_hash(IndexKeyHasher *hasher, Datum value)
{
	MemoryContext caller = MemoryContextSwitchTo(hasher->scratch);
	uint64		hash = key_hash(hasher->type, value);

	MemoryContextSwitchTo(caller);
	MemoryContextReset(hasher->scratch);
	return hash;
}

/*
 * The values, none of them NULL, that a condition compares with the indexed column; one
 * of them has to be equal to it.
 */
typedef struct IndexKeyList
{
	KeyType    *type;			/* NULL if the condition compares with NULL */
	Datum	   *values;
	int			n;
} IndexKeyList;

extern IndexKeyList index_key_list(Relation index, Oid type, Datum value, bool isnull, bool is_array);

#endif							/* BF_INDEX_KEY_H */
