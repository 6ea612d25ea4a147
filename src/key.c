/*
 * key.c
 *		Choosing how to hash an SQL type.
 *
 * Values that are equal in SQL must have the same hash: now, after a dump and
 * restore, and on another machine.  The server's hash functions do not guarantee
 * that: they depend on byte order and hash enum OIDs, which change on restore.  They
 * also fold int8 to 32 bits, which puts a floor under the false-positive rate.  So values are
 * converted to a canonical form, little-endian and without anything that equality
 * ignores, and hashed with XXH3 (key_scalar.c).  Arrays, records, ranges and jsonb
 * are hashed element by element (key_nested.c).  Other types, mostly of other
 * extensions, are hashed by their own extended hash function, and the filter's
 * scheme records that.
 *
 * A type for which none of this is possible is rejected.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "key_internal.h"
#include "core/portable.h"

#define SERVER_SCHEME	(BF_BIG_ENDIAN ? BF_SCHEME_SERVER_BE : BF_SCHEME_SERVER_LE)

/* ----------------------------------------------------------------
 * Names of classes
 * ----------------------------------------------------------------
 */

/*
 * Name a class.  Names are stored in the filter, so they are UTF-8 and at most
 * BF_MAX_CLASS_NAME bytes long.  A longer name is truncated and followed by a hash
 * of the whole.
 */
void
key_set_class_name(KeyType *type, uint8 scheme, const char *label)
{
	char	   *utf8 = pg_server_to_any(label, (int) strlen(label), PG_UTF8);
	Size		length = strlen(utf8);

	if (length > BF_MAX_CLASS_NAME)
	{
		int			kept = pg_encoding_mbcliplen(PG_UTF8, utf8, (int) length, BF_MAX_CLASS_NAME - 17);
		uint64		hash = key_hash_bytes(utf8, length);

		utf8 = psprintf("%.*s#%08x%08x", kept, utf8, (uint32) (hash >> 32), (uint32) hash);
		length = kept + 17;
	}
	memcpy(type->name_buffer, utf8, length);
	type->class = (KeyClass) {scheme, BF_CLASS_NAMED, (uint8) length, type->name_buffer};
}

/*
 * Name a class after its type, as in "enum mood".  The name is used because OIDs
 * change on restore.  It is quoted unless it is a plain word, so that an enum named
 * "a[]" differs from an array of enums "a".
 */
void
key_set_class_of_type(KeyType *type, uint8 scheme, const char *kind)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type->typid));
	const char *name;
	StringInfoData label;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type->typid);
	name = NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname);
	initStringInfo(&label);
	appendStringInfo(&label, "%s ", kind);
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name))
		appendStringInfoString(&label, name);
	else
	{
		appendStringInfoChar(&label, '"');
		for (const char *c = name; *c != '\0'; c++)
		{
			if (*c == '"')
				appendStringInfoChar(&label, '"');
			appendStringInfoChar(&label, *c);
		}
		appendStringInfoChar(&label, '"');
	}
	key_set_class_name(type, scheme, label.data);
	pfree(label.data);
	ReleaseSysCache(tuple);
}

/* ----------------------------------------------------------------
 * Types that cannot be keys
 * ----------------------------------------------------------------
 */

void
key_refuse_type(Oid typid, const char *reason, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("values of type %s cannot be keys of a filter", format_type_be(typid)),
			 errdetail("%s", reason),
			 errhint("%s", hint)));
}

/* Reject types whose values are OIDs. */
static void
key_refuse_oid_alias(Oid typid)
{
	switch (typid)
	{
		case REGCLASSOID:
		case REGCOLLATIONOID:
		case REGCONFIGOID:
		case REGDATABASEOID:
		case REGDICTIONARYOID:
		case REGNAMESPACEOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGROLEOID:
		case REGTYPEOID:
		case ACLITEMOID:
			key_refuse_type(typid, "Its values are OIDs of objects, which change when a dump is restored.",
							"Cast the key to text, or to oid to look it up in an index.");
	}
}

/*
 * Is this base type a filter?  The catalog says which types belong to the extension,
 * in any schema, so the key code does not depend on the filter code.
 */
static bool
key_is_filter(Oid typid)
{
	Oid			extension = getExtensionOfObject(TypeRelationId, typid);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL && strcmp(name, "bloomfilter") == 0;
}

/* ----------------------------------------------------------------
 * Types hashed by the server
 * ----------------------------------------------------------------
 */

/*
 * Hash a value by its type's extended hash function.  The result is mixed because it
 * need not be uniform over 64 bits.
 */
static uint64
key_hash_server_datum(KeyType *type, Datum value)
{
	FmgrInfo   *proc = type->private;

	return bf_mix64(DatumGetUInt64(FunctionCall2Coll(proc, type->collation, value, Int64GetDatum(0))));
}

/* Hash the type by its default hash operator class, if it has one. */
static void
key_set_server(KeyType *type)
{
	TypeCacheEntry *entry = lookup_type_cache(type->typid, TYPECACHE_HASH_EXTENDED_PROC_FINFO);
	FmgrInfo   *proc;

	if (type->typid == UNKNOWNOID)
		key_refuse_type(type->typid, "A string literal or NULL inside a row has no type unless it is cast.", "Add a cast, as in row(1, 'a'::text).");
	if (key_is_filter(type->typid))
		key_refuse_type(type->typid, "A filter cannot be a key of another filter.",
						"To combine filters, use bloom_union_agg, cuckoo_merge_agg or one of the set operations.");
	if (!OidIsValid(entry->hash_extended_proc))
		key_refuse_type(type->typid, "The type has no default hash operator class with a 64-bit hash function.",
						"Cast the key to a type that has one, such as text.");
	if (type_is_collatable(type->typid))
		key_check_collation(type->collation);
	proc = MemoryContextAlloc(type->context, sizeof(FmgrInfo));
	fmgr_info_copy(proc, &entry->hash_extended_proc_finfo, type->context);
	type->private = proc;
	type->hash = key_hash_server_datum;

	/* the function hashes strings in the database encoding: name that, too */
	key_set_class_of_type(type, SERVER_SCHEME, GetDatabaseEncoding() == PG_UTF8 ? "type" :
						  psprintf("%s type", GetDatabaseEncodingName()));
}

/* ----------------------------------------------------------------
 * Any type
 * ----------------------------------------------------------------
 */

/* Set the hash function of a type that is not a scalar, by its kind. */
static void
key_set_by_kind(KeyType *type)
{
	Oid			element = get_element_type(type->typid);

	if (OidIsValid(element))
		key_set_array(type, element);
	else if (type->typid == JSONBOID)
		key_set_jsonb(type);
	else
	{
		switch (type->typid == RECORDOID ? TYPTYPE_COMPOSITE : get_typtype(type->typid))
		{
			case TYPTYPE_ENUM:
				key_set_enum(type);
				break;
			case TYPTYPE_COMPOSITE:
				key_set_record(type);
				break;
			case TYPTYPE_RANGE:
				key_set_range(type, false);
				break;
			case TYPTYPE_MULTIRANGE:
				key_set_range(type, true);
				break;
			default:
				key_set_server(type);
				break;
		}
	}
}

/*
 * Determine how to hash a type; an error if it cannot be a key.  The result is
 * allocated in `context`.
 */
KeyType *
key_type(Oid typid, Oid collation, MemoryContext context)
{
	KeyType    *type = MemoryContextAllocZero(context, sizeof(KeyType));
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext scratch;

	check_stack_depth();
	type->typid = getBaseType(typid);
	type->collation = collation;
	type->context = context;
	if (key_set_scalar(type))
		return type;
	key_refuse_oid_alias(type->typid);

	/* parts of names are freed with this context */
	scratch = AllocSetContextCreate(caller, "bloomfilter key class", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(scratch);
	key_set_by_kind(type);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	return type;
}
