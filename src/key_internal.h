/*
 * key_internal.h
 *		Declarations that only the key files share.
 *
 * A function key_set_<kind>() completes a KeyType whose typid, collation and context
 * are set: it sets the hash function and the class.
 */
#ifndef BF_KEY_INTERNAL_H
#define BF_KEY_INTERNAL_H

#include "key.h"

/* key.c: names of classes, errors */
extern void key_set_class_name(KeyType *type, uint8 scheme, const char *label);
extern void key_set_class_of_type(KeyType *type, uint8 scheme, const char *kind);
extern void key_refuse_type(Oid typid, const char *reason, const char *hint);

/* key_scalar.c: scalar values */
extern uint64 key_hash_utf8(const char *string, Size length);
extern uint64 key_hash_numeric(Datum value);
extern bool key_set_scalar(KeyType *type);
extern void key_set_enum(KeyType *type);

/* Free what detoasting has copied. */
static inline void
key_free_copy(void *copy, Datum value)
{
	if (copy != DatumGetPointer(value))
		pfree(copy);
}

/* key_nested.c: values that consist of other values */
extern void key_set_array(KeyType *type, Oid element);
extern void key_set_record(KeyType *type);
extern void key_set_range(KeyType *type, bool multirange);
extern void key_set_jsonb(KeyType *type);

#endif							/* BF_KEY_INTERNAL_H */
