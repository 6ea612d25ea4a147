/*
 * key.h
 *		The class and the 64-bit hash of an SQL value as a key.
 */
#ifndef BF_KEY_H
#define BF_KEY_H

#include "compat.h"

#include "utils/array.h"

#include "core/format.h"

typedef bf_key_class KeyClass;

/*
 * The way to hash values of one SQL type.  It is made once per call site by
 * key_type() and kept in fn_extra.  The class of a record depends on the columns of
 * the value, so `class` is valid after hashing.
 */
typedef struct KeyType KeyType;

struct KeyType
{
	KeyClass	class;			/* a name is in name_buffer */
	uint64		(*hash) (KeyType *type, Datum value);
	Oid			typid;			/* base type */
	Oid			collation;
	const char *can_change;		/* a sentence on why ALTER TYPE can change the
								 * hash of a stored value, or NULL */
	const char *instead;		/* a sentence on what to index in that case */
	uint32		generation;		/* counts changes of the class */
	MemoryContext context;		/* of this struct and its parts */
	void	   *private;		/* of nested types and server functions */
	char		name_buffer[BF_MAX_CLASS_NAME];
};

extern const KeyClass key_class_integer;
extern const KeyClass key_class_text;
extern const KeyClass key_class_uuid;

/* Hashes of the common types, without a KeyType. */
extern uint64 key_hash_bytes(const char *bytes, Size length);
extern uint64 key_hash_integer(int64 value);
extern uint64 key_hash_text(const char *string, Size length);
extern uint64 key_hash_char(char value);
extern uint64 key_hash_uuid(const void *uuid);
extern void key_check_collation(Oid collation);
extern void key_refuse_indeterminate_collation(void);

/* Any type. */
extern KeyType *key_type(Oid typid, Oid collation, MemoryContext context);

static inline uint64
key_hash(KeyType *type, Datum value)
{
	return type->hash(type, value);
}

/* Arguments of the function being called. */
extern KeyType *key_type_of_argument(FunctionCallInfo fcinfo, int argument);

/* The same, determined at the first call and kept in *cache. */
static inline KeyType *
key_type_of_call(FunctionCallInfo fcinfo, int argument, KeyType **cache)
{
	if (unlikely(*cache == NULL))
		*cache = key_type_of_argument(fcinfo, argument);
	return *cache;
}

extern void key_check_text_aggregate(FunctionCallInfo fcinfo);
extern bool key_aggregate_is(Oid aggregate, Oid transition, bool with_final);

/* The keys of an array argument, hashed. */
typedef struct KeyArray
{
	AnyArrayType *array;
	KeyClass	class;			/* none if there are no keys */
	int			items;
	bool	   *nulls;			/* one per item */
	uint64	   *hashes;			/* one per item that is not null */
	Size		n;
} KeyArray;

extern KeyArray key_array_of_argument(FunctionCallInfo fcinfo, int argument, KeyType **cache);

/* Arrays of what was found, one flag per key that is not null. */
extern ArrayType *key_array_of_results(const KeyArray *keys, const bool *found);
extern ArrayType *key_array_of_missing(const KeyArray *keys, const bool *found);

/* Classes. */
extern char *key_class_label(const KeyClass *class);
extern const char *key_class_cast(const KeyClass *class);
extern bool key_class_is_array(const KeyClass *class);
extern void key_class_compare(const KeyClass *filter, const KeyClass *key);
extern void key_class_check_same(const KeyClass *a, const KeyClass *b);

static inline bool
key_class_equal(const KeyClass *a, const KeyClass *b)
{
	return a->code == b->code && a->scheme == b->scheme && a->name_length == b->name_length &&
		(a->name_length == 0 || memcmp(a->name, b->name, a->name_length) == 0);
}

/* Raise an error if a key does not have the class of a filter. */
static inline void
key_class_check(const KeyClass *filter, const KeyClass *key)
{
	if (unlikely(filter->code != key->code || filter->scheme != key->scheme || key->code == BF_CLASS_NAMED))
		key_class_compare(filter, key);
}

#endif							/* BF_KEY_H */
