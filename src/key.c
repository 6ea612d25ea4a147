/*
 * key.c
 *		From an SQL value to the class and the 64-bit hash of a key.
 *
 * Values that SQL calls equal must hash alike: today, after a dump and restore,
 * and on another machine.  The server's own hash functions do not promise
 * that (they depend on byte order, hash enum OIDs that change on restore, and
 * fold int8 to 32 bits, which alone puts a floor under the false-positive
 * rate).  So values are brought into a canonical form, little-endian and free
 * of everything that equality ignores, and hashed with XXH3; docs/FORMAT.md
 * lists the forms.  Arrays, records and ranges go through the same functions
 * element by element.  Only what we cannot take apart, the types of other
 * extensions, is left to its type's extended hash function, and a filter made
 * that way says so.
 *
 * Where none of this can keep the promise, the key is refused.
 */
#include "compat.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/numeric.h"
#include "utils/pg_lsn.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
#include "utils/varbit.h"
#include "utils/xid8.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: before, the results of XXH3 were not final"
#endif

#include "key.h"
#include "core/portable.h"

#define SERVER_SCHEME	(BF_BIG_ENDIAN ? BF_SCHEME_SERVER_BE : BF_SCHEME_SERVER_LE)

const KeyClass key_class_integer = {BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL};
const KeyClass key_class_text = {BF_SCHEME_CANONICAL, BF_CLASS_TEXT, 0, NULL};
const KeyClass key_class_uuid = {BF_SCHEME_CANONICAL, BF_CLASS_UUID, 0, NULL};

static uint64
key_hash_bytes(const char *bytes, Size length)
{
	return XXH3_64bits(bytes, length);
}

/* ----------------------------------------------------------------
 * Types of a fixed form
 * ----------------------------------------------------------------
 */

/* All integers are one class: 64 bits, sign-extended. */
uint64
key_hash_integer(int64 value)
{
	uint8		bytes[8];

	bf_store64(bytes, (uint64) value);
	return key_hash_bytes((char *) bytes, sizeof(bytes));
}

/*
 * The hash of a string is that of its UTF-8 form, since a filter may be
 * restored into a database of another encoding.
 */
static inline uint64
key_hash_utf8(const char *string, Size length)
{
	static int	encoding = -1;	/* that of the database never changes */

	if (unlikely(encoding < 0))
		encoding = GetDatabaseEncoding();
	if (unlikely(encoding != PG_UTF8 && encoding != PG_SQL_ASCII))
	{
		char	   *utf8 = pg_server_to_any(string, (int) length, PG_UTF8);

		if (utf8 != string)
		{
			uint64		hash = key_hash_bytes(utf8, strlen(utf8));

			pfree(utf8);
			return hash;
		}
	}
	return key_hash_bytes(string, length);
}

/*
 * All string types are one class.  Trailing spaces do not count: they are
 * insignificant in char(n), and a padded literal that is compared with a
 * char(n) column reaches us as text.
 */
uint64
key_hash_text(const char *string, Size length)
{
	while (length > 0 && string[length - 1] == ' ')
		length--;
	return key_hash_utf8(string, length);
}

/*
 * "char" equals the text it is cast to: nothing for a zero byte, and an octal
 * escape for a byte outside ASCII (as PostgreSQL writes it since version 16).
 */
uint64
key_hash_char(char value)
{
	unsigned char byte = (unsigned char) value;
	char		octal[5];

	if (byte < 0x80)
		return key_hash_text(&value, byte == 0 ? 0 : 1);
	snprintf(octal, sizeof(octal), "\\%03o", byte);
	return key_hash_text(octal, 4);
}

uint64
key_hash_uuid(const void *uuid)
{
	return key_hash_bytes(uuid, UUID_LEN);
}

static uint64
key_hash_int2_datum(KeyType *type, Datum value)
{
	return key_hash_integer(DatumGetInt16(value));
}

static uint64
key_hash_int4_datum(KeyType *type, Datum value)
{
	return key_hash_integer(DatumGetInt32(value));
}

/* int8, and everything stored as one: timestamps, times, money, xid8, pg_lsn */
static uint64
key_hash_int8_datum(KeyType *type, Datum value)
{
	return key_hash_integer(DatumGetInt64(value));
}

static uint64
key_hash_oid_datum(KeyType *type, Datum value)
{
	return key_hash_integer((int64) DatumGetObjectId(value));
}

static uint64
key_hash_bool_datum(KeyType *type, Datum value)
{
	return key_hash_integer(DatumGetBool(value) ? 1 : 0);
}

/* float4 and float8 are one class; one zero, one NaN. */
static uint64
key_hash_double(double value)
{
	uint64		bits;

	if (value == 0)
		value = 0;				/* -0 */
	if (isnan(value))
		bits = UINT64CONST(0x7FF8000000000000);
	else
		memcpy(&bits, &value, sizeof(bits));
	return key_hash_integer((int64) bits);
}

static uint64
key_hash_float4_datum(KeyType *type, Datum value)
{
	return key_hash_double(DatumGetFloat4(value));
}

static uint64
key_hash_float8_datum(KeyType *type, Datum value)
{
	return key_hash_double(DatumGetFloat8(value));
}

/* Hash a varlena's content and free it if it had to be detoasted. */
static inline uint64
key_hash_varlena(Datum value, uint64 (*hash) (const char *, Size))
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	uint64		result;

	if (likely(!VARATT_IS_EXTERNAL(varlena) && !VARATT_IS_COMPRESSED(varlena)))
		return hash(VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
	varlena = pg_detoast_datum_packed(varlena);
	result = hash(VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
	if ((Pointer) varlena != DatumGetPointer(value))
		pfree(varlena);
	return result;
}

static uint64
key_hash_text_datum(KeyType *type, Datum value)
{
	return key_hash_varlena(value, key_hash_text);
}

static uint64
key_hash_bytea_datum(KeyType *type, Datum value)
{
	return key_hash_varlena(value, key_hash_bytes);
}

static uint64
key_hash_name_datum(KeyType *type, Datum value)
{
	const char *string = NameStr(*DatumGetName(value));

	return key_hash_text(string, strlen(string));
}

static uint64
key_hash_char_datum(KeyType *type, Datum value)
{
	return key_hash_char(DatumGetChar(value));
}

static uint64
key_hash_uuid_datum(KeyType *type, Datum value)
{
	return key_hash_uuid(DatumGetUUIDP(value));
}

static uint64
key_hash_macaddr_datum(KeyType *type, Datum value)
{
	return key_hash_bytes((char *) DatumGetMacaddrP(value), sizeof(macaddr));
}

static uint64
key_hash_macaddr8_datum(KeyType *type, Datum value)
{
	return key_hash_bytes((char *) DatumGetMacaddr8P(value), sizeof(macaddr8));
}

/* Digits without insignificant zeros, as text: 1.0 and 1.00 are "1". */
static uint64
key_hash_numeric_datum(KeyType *type, Datum value)
{
	Numeric		number = DatumGetNumeric(value);
	char	   *digits = numeric_normalize(number);
	uint64		hash = key_hash_bytes(digits, strlen(digits));

	pfree(digits);
	if ((Pointer) number != DatumGetPointer(value))
		pfree(number);
	return hash;
}

/*
 * Intervals compare by their span, a month being 30 days and a day 24 hours:
 * whole days, and the rest of a day in microseconds.
 */
static uint64
key_hash_interval_datum(KeyType *type, Datum value)
{
	const Interval *interval = DatumGetIntervalP(value);
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		rest = interval->time % USECS_PER_DAY;
	uint8		bytes[16];

	days += interval->time / USECS_PER_DAY;
	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	bf_store64(bytes, (uint64) days);
	bf_store64(bytes + 8, (uint64) rest);
	return key_hash_bytes((char *) bytes, sizeof(bytes));
}

static uint64
key_hash_timetz_datum(KeyType *type, Datum value)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	uint8		bytes[12];

	bf_store64(bytes, (uint64) time->time);
	bf_store32(bytes + 8, (uint32) time->zone);
	return key_hash_bytes((char *) bytes, sizeof(bytes));
}

/* inet and cidr: version, prefix length, address. */
static uint64
key_hash_inet_datum(KeyType *type, Datum value)
{
	inet	   *address = DatumGetInetPP(value);
	uint8		bytes[2 + 16];
	int			length = ip_family(address) == PGSQL_AF_INET ? 4 : 16;
	uint64		hash;

	bytes[0] = length == 4 ? 4 : 6;
	bytes[1] = ip_bits(address);
	memcpy(bytes + 2, ip_addr(address), length);
	hash = key_hash_bytes((char *) bytes, 2 + length);
	if ((Pointer) address != DatumGetPointer(value))
		pfree(address);
	return hash;
}

/* bit and bit varying: the bits, then how many there are. */
static uint64
key_hash_bit_datum(KeyType *type, Datum value)
{
	VarBit	   *bits = DatumGetVarBitP(value);
	Size		length = VARBITBYTES(bits);
	uint8	   *bytes = palloc(length + 4);
	uint64		hash;

	memcpy(bytes, VARBITS(bits), length);
	bf_store32(bytes + length, (uint32) VARBITLEN(bits));
	hash = key_hash_bytes((char *) bytes, length + 4);
	pfree(bytes);
	if ((Pointer) bits != DatumGetPointer(value))
		pfree(bits);
	return hash;
}

/* Enums by their label: OIDs change on restore. */
static uint64
key_hash_enum_datum(KeyType *type, Datum value)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);
	const char *label;
	uint64		hash;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", DatumGetObjectId(value))));
	label = NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel);
	hash = key_hash_text(label, strlen(label));
	ReleaseSysCache(tuple);
	return hash;
}

/* The type's own extended hash function, finalised once more. */
static uint64
key_hash_server_datum(KeyType *type, Datum value)
{
	FmgrInfo   *proc = type->private;

	return bf_mix64(DatumGetUInt64(FunctionCall2Coll(proc, type->collation, value, Int64GetDatum(0))));
}

/* ----------------------------------------------------------------
 * Types made of others
 *
 * The hash covers a sequence of parts: for each a byte that says whether it
 * is there, and its hash.
 * ----------------------------------------------------------------
 */

static void
key_append_part(StringInfo parts, KeyType *type, Datum value, bool isnull)
{
	uint8		bytes[8];

	appendStringInfoChar(parts, isnull ? 0 : 1);
	if (!isnull)
	{
		bf_store64(bytes, key_hash(type, value));
		appendBinaryStringInfo(parts, (char *) bytes, sizeof(bytes));
	}
}

static void
key_append_number(StringInfo parts, uint32 number)
{
	uint8		bytes[4];

	bf_store32(bytes, number);
	appendBinaryStringInfo(parts, (char *) bytes, sizeof(bytes));
}

static uint64
key_hash_parts(StringInfo parts)
{
	uint64		hash = key_hash_bytes(parts->data, parts->len);

	pfree(parts->data);
	return hash;
}

/*
 * Name a class by a text.  Names travel with the filter, so they are UTF-8 and
 * at most 255 bytes; a longer one ends in a hash of the whole instead.
 */
static void
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
	type->class.scheme = scheme;
	type->class.code = BF_CLASS_NAMED;
	type->class.name_length = (uint8) length;
	type->class.name = type->name_buffer;
}

/*
 * The class of a type or enum by its name.  Unless it is a plain word it is
 * quoted, so that an enum named "a[]" is not taken for an array of enums "a".
 */
static void
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

typedef struct ArrayParts
{
	KeyType    *element;
	int16		typlen;
	bool		typbyval;
	char		typalign;
} ArrayParts;

/*
 * Arrays: their dimensions if more than one, and their elements.  Lower bounds
 * are left out: array equality looks at them, oidvector's does not.
 */
static uint64
key_hash_array_datum(KeyType *type, Datum value)
{
	ArrayParts *private = type->private;
	AnyArrayType *array = DatumGetAnyArrayP(value);
	int			dimensions = AARR_NDIM(array);
	int			items = ArrayGetNItems(dimensions, AARR_DIMS(array));
	array_iter	iterator;
	StringInfoData parts;

	initStringInfo(&parts);
	if (dimensions > 1)
	{
		key_append_number(&parts, (uint32) dimensions);
		for (int i = 0; i < dimensions; i++)
			key_append_number(&parts, (uint32) AARR_DIMS(array)[i]);
	}
	bf_array_iter_setup(&iterator, array, private->typlen, private->typbyval, private->typalign);
	for (int i = 0; i < items; i++)
	{
		bool		isnull;
		Datum		element = bf_array_iter_next(&iterator, &isnull, i, private->typlen,
												 private->typbyval, private->typalign);

		key_append_part(&parts, private->element, element, isnull);
		if (i % BF_POLL_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
	}
	if (!VARATT_IS_EXPANDED_HEADER(array) && (Pointer) array != DatumGetPointer(value))
		pfree(array);
	return key_hash_parts(&parts);
}

typedef struct RecordParts
{
	uint64		identifier;		/* of the row type that the rest is about */
	KeyType   **columns;		/* NULL where dropped */
	MemoryContext context;		/* of the columns */
} RecordParts;

/*
 * The columns of an anonymous record are known only from a value, so a class
 * that contains one could not be told apart from others.
 */
static void
key_refuse_nested_record(Oid typid)
{
	if (getBaseType(typid) == RECORDOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("anonymous records inside of other values cannot be keys of a filter"),
				 errdetail("Their columns are not part of the key's type."),
				 errhint("Cast the inner record to a named composite type.")));
}

/* Learn the columns of a record type and name its class after them. */
static void
key_set_record_columns(KeyType *type, TupleDesc desc, uint64 identifier)
{
	RecordParts *private = type->private;
	uint8		scheme = BF_SCHEME_CANONICAL;
	StringInfoData label;

	private->identifier = 0;	/* nothing valid should we fail below */
	if (private->context == NULL)
		private->context = AllocSetContextCreate(type->context, "bloomfilter record columns", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(private->context);
	private->columns = MemoryContextAllocZero(private->context, sizeof(KeyType *) * (desc->natts + 1));
	initStringInfo(&label);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		key_refuse_nested_record(attribute->atttypid);
		private->columns[i] = key_type(attribute->atttypid, attribute->attcollation, private->context);
		appendStringInfo(&label, "%c%s", label.len == 0 ? '(' : ',',
						 key_class_label(&private->columns[i]->class));
		scheme = Max(scheme, private->columns[i]->class.scheme);
	}
	appendStringInfoString(&label, label.len == 0 ? "()" : ")");
	key_set_class_name(type, scheme, label.data);
	pfree(label.data);
	private->identifier = identifier;
}

/* Records: their columns, dropped ones left out. */
static uint64
key_hash_record_datum(KeyType *type, Datum value)
{
	RecordParts *private = type->private;
	HeapTupleHeader record = DatumGetHeapTupleHeader(value);
	Oid			tuptype = HeapTupleHeaderGetTypeId(record);
	int32		tuptypmod = HeapTupleHeaderGetTypMod(record);
	TupleDesc	desc = lookup_rowtype_tupdesc(tuptype, tuptypmod);
	uint64		identifier = assign_record_type_identifier(tuptype, tuptypmod);
	HeapTupleData tuple;
	Datum	   *values;
	bool	   *nulls;
	StringInfoData parts;

	check_stack_depth();
	if (private->identifier != identifier)	/* another type, or altered */
		key_set_record_columns(type, desc, identifier);

	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	values = palloc(sizeof(Datum) * (desc->natts + 1));
	nulls = palloc(sizeof(bool) * (desc->natts + 1));
	heap_deform_tuple(&tuple, desc, values, nulls);
	initStringInfo(&parts);
	for (int i = 0; i < desc->natts; i++)
	{
		if (private->columns[i] != NULL)
			key_append_part(&parts, private->columns[i], values[i], nulls[i]);
	}
	pfree(values);
	pfree(nulls);
	ReleaseTupleDesc(desc);
	if ((Pointer) record != DatumGetPointer(value))
		pfree(record);
	return key_hash_parts(&parts);
}

typedef struct RangeParts
{
	TypeCacheEntry *range;
	KeyType    *element;
} RangeParts;

/* One range: whether it is empty, and the two bounds with their kind. */
static void
key_append_range(StringInfo parts, RangeParts *private, const RangeType *range)
{
	RangeBound	bounds[2];
	bool		empty;

	range_deserialize(private->range, range, &bounds[0], &bounds[1], &empty);
	appendStringInfoChar(parts, empty ? 0 : 1);
	for (int i = 0; i < 2 && !empty; i++)
	{
		appendStringInfoChar(parts, bounds[i].inclusive ? 1 : 0);
		key_append_part(parts, private->element, bounds[i].val, bounds[i].infinite);
	}
}

static uint64
key_hash_range_datum(KeyType *type, Datum value)
{
	RangeType  *range = DatumGetRangeTypeP(value);
	StringInfoData parts;

	check_stack_depth();
	initStringInfo(&parts);
	key_append_range(&parts, type->private, range);
	if ((Pointer) range != DatumGetPointer(value))
		pfree(range);
	return key_hash_parts(&parts);
}

static uint64
key_hash_multirange_datum(KeyType *type, Datum value)
{
	RangeParts *private = type->private;
	MultirangeType *multirange = DatumGetMultirangeTypeP(value);
	RangeType **ranges;
	int32		count;
	StringInfoData parts;

	check_stack_depth();
	initStringInfo(&parts);
	multirange_deserialize(private->range, multirange, &count, &ranges);
	for (int32 i = 0; i < count; i++)
		key_append_range(&parts, private, ranges[i]);
	if (count > 0)
		pfree(ranges);
	if ((Pointer) multirange != DatumGetPointer(value))
		pfree(multirange);
	return key_hash_parts(&parts);
}

/* A scalar of a jsonb: its kind, and a hash or the value itself. */
static void
key_append_jsonb_scalar(StringInfo parts, const JsonbValue *value)
{
	uint8		bytes[8];
	uint64		hash = 0;

	switch (value->type)
	{
		case jbvNull:
			appendStringInfoChar(parts, 'n');
			break;
		case jbvString:
			appendStringInfoChar(parts, 's');
			hash = key_hash_utf8(value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			appendStringInfoChar(parts, 'd');
			hash = key_hash_numeric_datum(NULL, NumericGetDatum(value->val.numeric));
			break;
		case jbvBool:
			appendStringInfoChar(parts, 'b');
			hash = value->val.boolean ? 1 : 0;
			break;
		default:
			elog(ERROR, "unexpected kind of jsonb scalar: %d", (int) value->type);
	}
	bf_store64(bytes, hash);
	appendBinaryStringInfo(parts, (char *) bytes, sizeof(bytes));
}

/*
 * The array or object that the iterator has just entered.  Members of an object
 * are summed up: their order depends on the database's encoding.
 */
static uint64
key_hash_jsonb_container(JsonbIterator **iterator, bool object)
{
	StringInfoData parts;
	uint64		sum = 0;
	uint64		key = 0;

	check_stack_depth();
	initStringInfo(&parts);
	for (;;)
	{
		JsonbValue	value;
		JsonbIteratorToken token = JsonbIteratorNext(iterator, &value, false);
		uint8		bytes[8];

		switch (token)
		{
			case WJB_KEY:
				key = key_hash_utf8(value.val.string.val, value.val.string.len);
				continue;
			case WJB_ELEM:
			case WJB_VALUE:
				key_append_jsonb_scalar(&parts, &value);
				break;
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				appendStringInfoChar(&parts, token == WJB_BEGIN_ARRAY ? 'a' : 'o');
				bf_store64(bytes, key_hash_jsonb_container(iterator, token == WJB_BEGIN_OBJECT));
				appendBinaryStringInfo(&parts, (char *) bytes, sizeof(bytes));
				break;
			default:
				if (object)
				{
					bf_store64(bytes, sum);
					appendBinaryStringInfo(&parts, (char *) bytes, sizeof(bytes));
				}
				return key_hash_parts(&parts);
		}
		if (object)
		{
			sum += bf_mix64(key + key_hash_bytes(parts.data, parts.len));
			resetStringInfo(&parts);
		}
	}
}

/*
 * jsonb: '1' is an array of one scalar that says it is not one.
 */
static uint64
key_hash_jsonb_datum(KeyType *type, Datum value)
{
	Jsonb	   *json = DatumGetJsonbP(value);
	JsonbIterator *iterator = JsonbIteratorInit(&json->root);
	JsonbValue	top;
	JsonbIteratorToken token = JsonbIteratorNext(&iterator, &top, false);
	bool		scalar = token == WJB_BEGIN_ARRAY && top.val.array.rawScalar;
	uint64		hash = key_hash_jsonb_container(&iterator, token == WJB_BEGIN_OBJECT);

	if ((Pointer) json != DatumGetPointer(value))
		pfree(json);
	return bf_mix64(hash + (scalar ? 's' : token == WJB_BEGIN_ARRAY ? 'a' : 'o'));
}

/* ----------------------------------------------------------------
 * Choosing the way to hash a type
 * ----------------------------------------------------------------
 */

static void
key_refuse_type(Oid typid, const char *reason, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("values of type %s cannot be keys of a filter", format_type_be(typid)),
			 errdetail("%s", reason),
			 errhint("%s", hint)));
}

/* The collation found to be deterministic last; most queries have only one. */
static Oid	deterministic_collation = InvalidOid;

static void
key_forget_collation(Datum arg, int cacheid, uint32 hashvalue)
{
	deterministic_collation = InvalidOid;
}

/* Strings of several collations: nobody can say which of them are equal. */
void
key_refuse_indeterminate_collation(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDETERMINATE_COLLATION),
			 errmsg("could not determine which collation to use for a key"),
			 errhint("Use the COLLATE clause to set the collation explicitly.")));
}

/*
 * Under a nondeterministic collation strings of different bytes can be equal,
 * and only the collation's provider, in its present version, knows which.
 */
void
key_check_collation(Oid collation)
{
	static bool registered = false;

	if (collation == deterministic_collation || collation == DEFAULT_COLLATION_OID ||
		collation == C_COLLATION_OID || !OidIsValid(collation))
		return;
	if (!registered)
	{
		CacheRegisterSyscacheCallback(COLLOID, key_forget_collation, (Datum) 0);
		registered = true;
	}
	if (!get_collation_isdeterministic(collation))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("strings with the nondeterministic collation \"%s\" cannot be keys of a filter",
						get_collation_name(collation)),
				 errdetail("Strings that this collation calls equal may have different bytes, and a filter sees the bytes."),
				 errhint("Bring the key into one form and give it another collation, for example lower(key) COLLATE \"C\".")));
	deterministic_collation = collation;
}

static void
key_set_array(KeyType *type, Oid element)
{
	ArrayParts *private = MemoryContextAlloc(type->context, sizeof(ArrayParts));

	key_refuse_nested_record(element);
	private->element = key_type(element, type->collation, type->context);
	get_typlenbyvalalign(element, &private->typlen, &private->typbyval, &private->typalign);
	type->private = private;
	type->hash = key_hash_array_datum;
	key_set_class_name(type, private->element->class.scheme,
				   psprintf("%s[]", key_class_label(&private->element->class)));
}

/* Of an anonymous record the columns are known only from a value. */
static void
key_set_record(KeyType *type)
{
	type->private = MemoryContextAllocZero(type->context, sizeof(RecordParts));
	type->hash = key_hash_record_datum;
	if (type->typid == RECORDOID)
		key_set_class_name(type, BF_SCHEME_CANONICAL, "record");
	else
	{
		TupleDesc	desc = lookup_rowtype_tupdesc(type->typid, -1);

		key_set_record_columns(type, desc, assign_record_type_identifier(type->typid, -1));
		ReleaseTupleDesc(desc);
	}
}

static void
key_set_range(KeyType *type, bool multirange)
{
	RangeParts *private = MemoryContextAlloc(type->context, sizeof(RangeParts));
	TypeCacheEntry *entry = lookup_type_cache(type->typid, multirange ? TYPECACHE_MULTIRANGE_INFO : TYPECACHE_RANGE_INFO);
	TypeCacheEntry *element;

	private->range = multirange ? entry->rngtype : entry;
	element = lookup_type_cache(private->range->rngelemtype->type_id, TYPECACHE_CMP_PROC);
	if (element->cmp_proc != private->range->rng_cmp_proc_finfo.fn_oid)
		key_refuse_type(type->typid,
					"The bounds of this range type are compared by an operator class other than their type's default.",
					"Use lower() and upper() of the range as keys.");
	private->element = key_type(element->type_id, private->range->rng_collation, type->context);
	type->private = private;
	type->hash = multirange ? key_hash_multirange_datum : key_hash_range_datum;
	key_set_class_name(type, private->element->class.scheme,
				   psprintf(multirange ? "multirange(%s)" : "range(%s)",
							key_class_label(&private->element->class)));
}

/*
 * Is this base type one of our own, that is, a filter?  The catalog knows which
 * types came with the extension, whatever schema they are in; asking it keeps
 * the key code independent of the filters that are built on it.
 */
static bool
key_is_filter(Oid typid)
{
	Oid			extension = getExtensionOfObject(TypeRelationId, typid);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL && strcmp(name, "bloomfilter") == 0;
}

/* Types are known by their name, never by their OID. */
static void
key_set_server(KeyType *type)
{
	TypeCacheEntry *entry = lookup_type_cache(type->typid, TYPECACHE_HASH_EXTENDED_PROC_FINFO);
	FmgrInfo   *proc;

	if (type->typid == UNKNOWNOID)
		key_refuse_type(type->typid, "A constant inside of a row has no type.", "Give it one, as in row(1, 'a'::text).");
	if (key_is_filter(type->typid))
		key_refuse_type(type->typid, "A filter is a set of keys, not a key.",
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

	/* its hash function sees strings in the encoding of the database */
	key_set_class_of_type(type, SERVER_SCHEME, GetDatabaseEncoding() == PG_UTF8 ? "type" :
					  psprintf("%s type", GetDatabaseEncodingName()));
}

/*
 * Find out how to hash a type, or refuse it.  The result and all that belongs
 * to it live in `context`.
 */
KeyType *
key_type(Oid typid, Oid collation, MemoryContext context)
{
	static const struct
	{
		Oid			typid;
		uint8		class;
		uint64		(*hash) (KeyType *, Datum);
	}			simple[] =
	{
		{INT2OID, BF_CLASS_INTEGER, key_hash_int2_datum},
		{INT4OID, BF_CLASS_INTEGER, key_hash_int4_datum},
		{INT8OID, BF_CLASS_INTEGER, key_hash_int8_datum},
		{TEXTOID, BF_CLASS_TEXT, key_hash_text_datum},
		{VARCHAROID, BF_CLASS_TEXT, key_hash_text_datum},
		{BPCHAROID, BF_CLASS_TEXT, key_hash_text_datum},
		{NAMEOID, BF_CLASS_TEXT, key_hash_name_datum},
		{CHAROID, BF_CLASS_TEXT, key_hash_char_datum},
		{UUIDOID, BF_CLASS_UUID, key_hash_uuid_datum},
		{BYTEAOID, BF_CLASS_BYTEA, key_hash_bytea_datum},
		{BOOLOID, BF_CLASS_BOOLEAN, key_hash_bool_datum},
		{FLOAT4OID, BF_CLASS_FLOAT, key_hash_float4_datum},
		{FLOAT8OID, BF_CLASS_FLOAT, key_hash_float8_datum},
		{NUMERICOID, BF_CLASS_NUMERIC, key_hash_numeric_datum},
		{DATEOID, BF_CLASS_DATE, key_hash_int4_datum},
		{TIMEOID, BF_CLASS_TIME, key_hash_int8_datum},
		{TIMETZOID, BF_CLASS_TIMETZ, key_hash_timetz_datum},
		{TIMESTAMPOID, BF_CLASS_TIMESTAMP, key_hash_int8_datum},
		{TIMESTAMPTZOID, BF_CLASS_TIMESTAMPTZ, key_hash_int8_datum},
		{INTERVALOID, BF_CLASS_INTERVAL, key_hash_interval_datum},
		{INETOID, BF_CLASS_INET, key_hash_inet_datum},
		{CIDROID, BF_CLASS_INET, key_hash_inet_datum},
		{MACADDROID, BF_CLASS_MACADDR, key_hash_macaddr_datum},
		{MACADDR8OID, BF_CLASS_MACADDR8, key_hash_macaddr8_datum},
		{BITOID, BF_CLASS_BIT, key_hash_bit_datum},
		{VARBITOID, BF_CLASS_BIT, key_hash_bit_datum},
		{OIDOID, BF_CLASS_OID, key_hash_oid_datum},
		{CASHOID, BF_CLASS_MONEY, key_hash_int8_datum},
		{XID8OID, BF_CLASS_XID8, key_hash_int8_datum},
		{PG_LSNOID, BF_CLASS_PG_LSN, key_hash_int8_datum},
		{JSONBOID, BF_CLASS_JSONB, key_hash_jsonb_datum},
	};
	KeyType    *type = MemoryContextAllocZero(context, sizeof(KeyType));
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext scratch;
	Oid			element;

	check_stack_depth();
	type->typid = typid = getBaseType(typid);
	type->collation = collation;
	type->context = context;

	for (int i = 0; i < (int) lengthof(simple); i++)
	{
		if (simple[i].typid != typid)
			continue;
		type->class.scheme = BF_SCHEME_CANONICAL;
		type->class.code = simple[i].class;
		type->hash = simple[i].hash;
		if (simple[i].class == BF_CLASS_TEXT && typid != CHAROID)
			key_check_collation(collation);
		return type;
	}

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
			key_refuse_type(typid, "The value stands for an object by its OID, which changes when a dump is restored.",
						"Cast the key to text.");
	}

	/* labels are put together in a context of their own */
	scratch = AllocSetContextCreate(caller, "bloomfilter key class", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(scratch);
	element = get_element_type(typid);
	if (OidIsValid(element))
		key_set_array(type, element);
	else
	{
		switch (typid == RECORDOID ? TYPTYPE_COMPOSITE : get_typtype(typid))
		{
			case TYPTYPE_ENUM:
				type->hash = key_hash_enum_datum;
				key_set_class_of_type(type, BF_SCHEME_CANONICAL, "enum");
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
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	return type;
}

/* The class of a key in words, in the server's encoding. */
char *
key_class_label(const KeyClass *class)
{
	char	   *name;
	char	   *label;

	if (class->code != BF_CLASS_NAMED)
		return pstrdup(bf_class_label(class->code));
	name = pnstrdup(class->name, class->name_length);
	label = pg_any_to_server(name, class->name_length, PG_UTF8);
	return label;
}

/* ----------------------------------------------------------------
 * Arguments of functions and aggregates
 * ----------------------------------------------------------------
 */

/* The type that an implicit cast hides, or InvalidOid if there is no cast. */
static Oid
key_implicit_cast_source(Node *node)
{
	if (IsA(node, RelabelType) && ((RelabelType *) node)->relabelformat == COERCE_IMPLICIT_CAST)
		return exprType((Node *) ((RelabelType *) node)->arg);
	if (IsA(node, CoerceViaIO) && ((CoerceViaIO *) node)->coerceformat == COERCE_IMPLICIT_CAST)
		return exprType((Node *) ((CoerceViaIO *) node)->arg);
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcformat == COERCE_IMPLICIT_CAST)
		return exprType(linitial(((FuncExpr *) node)->args));
	return InvalidOid;
}

static void
key_check_text_expression(Node *node)
{
	Oid			source = key_implicit_cast_source(node);

	if (!OidIsValid(source) || getBaseType(source) < FirstNormalObjectId)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("values of type %s cannot be keys of a filter", format_type_be(source)),
			 errdetail("The key was implicitly cast to text, which need not agree with its type on what is equal."),
			 errhint("Bring the key into one form of type text yourself, for example lower(key::text).")));
}

/* Does the aggregate have this transition function? */
static bool
key_aggregate_has_transition(Oid aggregate, Oid transition)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggtransfn == transition;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * An aggregate over text takes values of citext and the like, too, and they
 * arrive with no trace of the equality of their own type.  The expression that
 * computes the argument still shows the implicit cast; refuse it.  (Not seen:
 * an argument that a lower plan node has computed as text already, as for
 * "bloom_agg(c) ... GROUP BY c::text", and one that the planner has simplified
 * to text, as it does with constants, parameters and casts of text to citext.)
 * A collation that could not be determined is refused here as well.
 *
 * Where the caller has no such expression, as when Citus calls a transition
 * function, there is nothing to check.
 */
void
key_check_text_aggregate(FunctionCallInfo fcinfo)
{
	Aggref	   *aggregate = AggGetAggref(fcinfo);
	ListCell   *cell;

	if (AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_WINDOW)
	{
		foreach(cell, castNode(WindowAggState, fcinfo->context)->funcs)
		{
			WindowFunc *function = ((WindowFuncExprState *) lfirst(cell))->wfunc;

			if (function->args == NIL || !key_aggregate_has_transition(function->winfnoid, fcinfo->flinfo->fn_oid))
				continue;
			key_check_text_expression(linitial(function->args));
			if (!OidIsValid(function->inputcollid))
				key_refuse_indeterminate_collation();
		}
	}
	else if (aggregate != NULL && aggregate->args != NIL &&
			 key_aggregate_has_transition(aggregate->aggfnoid, fcinfo->flinfo->fn_oid))
	{
		key_check_text_expression((Node *) ((TargetEntry *) linitial(aggregate->args))->expr);
		if (!OidIsValid(aggregate->inputcollid))
			key_refuse_indeterminate_collation();
	}
}

/* How to hash a function's key argument, by its type in this call. */
KeyType *
key_type_of_argument(FunctionCallInfo fcinfo, int argument)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	Oid			typid = get_fn_expr_argtype(flinfo, argument);

	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of the key")));
	if (type_is_collatable(typid) && !OidIsValid(PG_GET_COLLATION()))
		key_refuse_indeterminate_collation();
	return key_type(typid, PG_GET_COLLATION(), flinfo->fn_mcxt);
}
