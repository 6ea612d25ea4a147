/*
 * key_scalar.c
 *		Hashing values of built-in scalar types, and of enums.
 *
 * Each type has a canonical form: a sequence of bytes that is the same for all
 * values that are equal in SQL, in every database and on every machine.  Numbers
 * are little-endian, strings are UTF-8.  The hash of a value is XXH3 of these bytes;
 * docs/FORMAT.md lists the forms.
 *
 * Types of one class share a form: all integers, both floats, all string types,
 * inet and cidr, both bit string types.
 */
#include "compat.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_conversion.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: before, the results of XXH3 were not final"
#endif

#include "key_internal.h"
#include "core/portable.h"

const KeyClass key_class_integer = {BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL};
const KeyClass key_class_text = {BF_SCHEME_CANONICAL, BF_CLASS_TEXT, 0, NULL};
const KeyClass key_class_uuid = {BF_SCHEME_CANONICAL, BF_CLASS_UUID, 0, NULL};

/* ----------------------------------------------------------------
 * Bytes, integers, strings, uuids
 * ----------------------------------------------------------------
 */

/* The hash of bytes, which all hashes of the canonical scheme are computed with. */
uint64
key_hash_bytes(const char *bytes, Size length)
{
	return XXH3_64bits(bytes, length);
}

/* The hash of an integer of any width: 64 bits, sign-extended. */
uint64
key_hash_integer(int64 value)
{
	uint8		bytes[8];

	bf_store64(bytes, (uint64) value);
	return key_hash_bytes((char *) bytes, sizeof(bytes));
}

/*
 * The server's conversion from the database encoding to UTF-8; fn_oid is invalid if
 * there is none.  It is looked up in pg_catalog, because a conversion in the
 * search_path must not change the hash of a key.
 */
static FmgrInfo *
key_conversion_to_utf8(void)
{
	static FmgrInfo conversion;
	static bool known = false;

	if (unlikely(!known))
	{
		Oid			function = FindDefaultConversion(PG_CATALOG_NAMESPACE, GetDatabaseEncoding(), PG_UTF8);

		if (OidIsValid(function))
			fmgr_info_cxt(function, &conversion, TopMemoryContext);
		known = true;
	}
	return &conversion;
}

/*
 * The hash of a string in an encoding other than UTF-8.  ASCII characters have the
 * same bytes in all encodings of databases.  A string without a UTF-8 form, because
 * its encoding leaves code points undefined, is hashed by its bytes: no other
 * encoding has that string.
 */
static uint64
key_hash_converted(const char *string, Size length)
{
	FmgrInfo   *conversion = key_conversion_to_utf8();
	char		buffer[1024];
	char	   *utf8 = buffer;
	Size		size = length * MAX_CONVERSION_GROWTH + 1;
	Size		ascii = 0;
	uint64		hash;

	while (ascii < length && !IS_HIGHBIT_SET(string[ascii]))
		ascii++;
	if (ascii == length || !OidIsValid(conversion->fn_oid))
		return key_hash_bytes(string, length);
	if (size > sizeof(buffer))
		utf8 = MemoryContextAllocHuge(CurrentMemoryContext, size);
	if (DatumGetInt32(FunctionCall6(conversion, Int32GetDatum(GetDatabaseEncoding()), Int32GetDatum(PG_UTF8),
									CStringGetDatum(string), CStringGetDatum(utf8),
									Int32GetDatum((int32) length), BoolGetDatum(true))) == (int32) length)
		hash = key_hash_bytes(utf8, strlen(utf8));
	else
		hash = key_hash_bytes(string, length);
	if (utf8 != buffer)
		pfree(utf8);
	return hash;
}

/*
 * The hash of a string, which is that of its UTF-8 form, since a filter may be
 * restored into a database of another encoding.  (Inline for key_hash_text; the
 * declaration in the header makes it callable from other files.)
 */
inline uint64
key_hash_utf8(const char *string, Size length)
{
	static int	encoding = -1;	/* of the database; it never changes */

	if (unlikely(encoding < 0))
		encoding = GetDatabaseEncoding();
	if (unlikely(encoding != PG_UTF8 && encoding != PG_SQL_ASCII))
		return key_hash_converted(string, length);
	return key_hash_bytes(string, length);
}

/*
 * The hash of a string of any type.  Trailing spaces are ignored: they are
 * insignificant in char(n), and a padded literal that is compared with a char(n)
 * column is passed as text.
 */
uint64
key_hash_text(const char *string, Size length)
{
	while (length > 0 && string[length - 1] == ' ')
		length--;
	return key_hash_utf8(string, length);
}

/*
 * The hash of a "char", which equals the text it is cast to: an empty string for a
 * zero byte, and an octal escape for a byte outside ASCII, as PostgreSQL writes it
 * since version 16.
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

/* The hash of the 16 bytes of a uuid, in the order in which they are written. */
uint64
key_hash_uuid(const void *uuid)
{
	return key_hash_bytes(uuid, UUID_LEN);
}

/* ----------------------------------------------------------------
 * Values of each type
 * ----------------------------------------------------------------
 */

/* Define the hash function of a KeyType as an expression over `value`. */
#define HASH_DATUM(name, expression) \
	static uint64 \
	name(KeyType *type, Datum value) \
	{ \
		return expression; \
	}

HASH_DATUM(key_hash_int2_datum, key_hash_integer(DatumGetInt16(value)))

/* int4, and date, which is stored as one */
HASH_DATUM(key_hash_int4_datum, key_hash_integer(DatumGetInt32(value)))

/* int8, and the types stored as one: timestamps, time, money, xid8, pg_lsn */
HASH_DATUM(key_hash_int8_datum, key_hash_integer(DatumGetInt64(value)))
HASH_DATUM(key_hash_oid_datum, key_hash_integer((int64) DatumGetObjectId(value)))
HASH_DATUM(key_hash_bool_datum, key_hash_integer(DatumGetBool(value) ? 1 : 0))

/*
 * The hash of a float4 or float8: the bits of a float8.  Both zeros are equal, and so
 * are all NaNs.
 */
static uint64
key_hash_double(double value)
{
	uint64		bits;

	if (value == 0)
		value = 0;				/* drops the sign of -0 */
	if (isnan(value))
		bits = UINT64CONST(0x7FF8000000000000);
	else
		memcpy(&bits, &value, sizeof(bits));
	return key_hash_integer((int64) bits);
}

HASH_DATUM(key_hash_float4_datum, key_hash_double(DatumGetFloat4(value)))
HASH_DATUM(key_hash_float8_datum, key_hash_double(DatumGetFloat8(value)))

/* Hash a varlena's content, and free the copy if it had to be detoasted. */
static inline uint64
key_hash_varlena(Datum value, uint64 (*hash) (const char *, Size))
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);
	uint64		result;

	if (likely(!VARATT_IS_EXTERNAL(varlena) && !VARATT_IS_COMPRESSED(varlena)))
		return hash(VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
	varlena = pg_detoast_datum_packed(varlena);
	result = hash(VARDATA_ANY(varlena), VARSIZE_ANY_EXHDR(varlena));
	key_free_copy(varlena, value);
	return result;
}

HASH_DATUM(key_hash_text_datum, key_hash_varlena(value, key_hash_text))
HASH_DATUM(key_hash_bytea_datum, key_hash_varlena(value, key_hash_bytes))

static uint64
key_hash_name_datum(KeyType *type, Datum value)
{
	const char *string = NameStr(*DatumGetName(value));

	return key_hash_text(string, strlen(string));
}

HASH_DATUM(key_hash_char_datum, key_hash_char(DatumGetChar(value)))
HASH_DATUM(key_hash_uuid_datum, key_hash_uuid(DatumGetUUIDP(value)))
HASH_DATUM(key_hash_macaddr_datum, key_hash_bytes((char *) DatumGetMacaddrP(value), sizeof(macaddr)))
HASH_DATUM(key_hash_macaddr8_datum, key_hash_bytes((char *) DatumGetMacaddr8P(value), sizeof(macaddr8)))

/*
 * The hash of a numeric: its digits as text without insignificant zeros, so that 1.0
 * and 1.00 are "1".  Also used for numbers in jsonb.
 */
uint64
key_hash_numeric(Datum value)
{
	Numeric		number = DatumGetNumeric(value);
	char	   *digits = numeric_normalize(number);
	uint64		hash = key_hash_bytes(digits, strlen(digits));

	pfree(digits);
	key_free_copy(number, value);
	return hash;
}

HASH_DATUM(key_hash_numeric_datum, key_hash_numeric(value))

/*
 * The hash of an interval.  Intervals compare by their length, with months of 30 days
 * and days of 24 hours.  The form is the number of whole days and the remaining
 * microseconds, which are never negative.
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

/*
 * The hash of a timetz: time and zone, because 12:00+02 and 10:00+00 are not equal.
 */
static uint64
key_hash_timetz_datum(KeyType *type, Datum value)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	uint8		bytes[12];

	bf_store64(bytes, (uint64) time->time);
	bf_store32(bytes + 8, (uint32) time->zone);
	return key_hash_bytes((char *) bytes, sizeof(bytes));
}

/* The hash of an inet or cidr: IP version (4 or 6), prefix length, address. */
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
	key_free_copy(address, value);
	return hash;
}

/* The hash of a bit or bit varying: the bits, then their number. */
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
	key_free_copy(bits, value);
	return hash;
}

/* The hash of an enum value: its label, because OIDs change on restore. */
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

/* ----------------------------------------------------------------
 * Collations of strings
 * ----------------------------------------------------------------
 */

/* The last collation that was found to be deterministic; most queries use only one. */
static Oid	deterministic_collation = InvalidOid;

static void
key_forget_collation(Datum arg, int cacheid, uint32 hashvalue)
{
	deterministic_collation = InvalidOid;
}

/* Raise an error: collations conflict, so the equality of strings is not defined. */
void
key_refuse_indeterminate_collation(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDETERMINATE_COLLATION),
			 errmsg("could not determine which collation to use for a key"),
			 errhint("Use the COLLATE clause to set the collation explicitly.")));
}

/*
 * Reject nondeterministic collations: strings of different bytes can be equal, and
 * which ones depends on the version of the collation's provider.
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
				 errmsg("nondeterministic collation \"%s\" is not supported for keys",
						get_collation_name(collation)),
				 errdetail("Strings that are equal under this collation may differ in their bytes, which are hashed."),
				 errhint("Convert the key to a canonical form with a deterministic collation, for example lower(key) COLLATE \"C\".")));
	deterministic_collation = collation;
}

/* ----------------------------------------------------------------
 * The table of scalar types
 * ----------------------------------------------------------------
 */

static const struct
{
	Oid			typid;
	uint8		class;
	uint64		(*hash) (KeyType *, Datum);
}			scalar_types[] =

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
};

/*
 * Set the hash function and class of a type in the table above; false if it is not
 * there.  "char" is the only string type without a collation.
 */
bool
key_set_scalar(KeyType *type)
{
	for (int i = 0; i < (int) lengthof(scalar_types); i++)
	{
		if (scalar_types[i].typid != type->typid)
			continue;
		type->class = (KeyClass) {BF_SCHEME_CANONICAL, scalar_types[i].class, 0, NULL};
		type->hash = scalar_types[i].hash;
		if (type->class.code == BF_CLASS_TEXT && type->typid != CHAROID)
			key_check_collation(type->collation);
		return true;
	}
	return false;
}

/* Set the hash function of an enum; its class is named after the type. */
void
key_set_enum(KeyType *type)
{
	type->hash = key_hash_enum_datum;
	type->can_change = "Values of an enum are hashed by their labels, which ALTER TYPE ... RENAME VALUE changes.";
	type->instead = "Use a btree index, or a column of type text.";
	key_set_class_of_type(type, BF_SCHEME_CANONICAL, "enum");
}
