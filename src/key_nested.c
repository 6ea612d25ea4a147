/*
 * key_nested.c
 *		Hashing values that consist of other values: arrays, records, ranges,
 *		multiranges and jsonb.
 *
 * The hash of such a value is the hash of a sequence of parts.  A part is one
 * byte, 0 for NULL and 1 for a value, followed in the latter case by the 64-bit hash
 * of the inner value as a key.  Other properties that equality compares (dimensions,
 * inclusive bounds) are between the parts; docs/FORMAT.md has the details.
 *
 * The class is named after the classes of the inner values, for example
 * (integer,text)[], so arrays of int4 and of int8 have the same class.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/multirangetypes.h"
#include "utils/numeric.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "key_internal.h"
#include "core/portable.h"

/* ----------------------------------------------------------------
 * Parts
 * ----------------------------------------------------------------
 */

static void
key_append_hash(StringInfo parts, uint64 hash)
{
	uint8		bytes[8];

	bf_store64(bytes, hash);
	appendBinaryStringInfo(parts, (char *) bytes, sizeof(bytes));
}

static void
key_append_part(StringInfo parts, KeyType *type, Datum value, bool isnull)
{
	appendStringInfoChar(parts, isnull ? 0 : 1);
	if (!isnull)
		key_append_hash(parts, key_hash(type, value));
}

static void
key_append_number(StringInfo parts, uint32 number)
{
	uint8		bytes[4];

	bf_store32(bytes, number);
	appendBinaryStringInfo(parts, (char *) bytes, sizeof(bytes));
}

/*
 * Copy the properties that depend on an inner type, and record its generation.  A row
 * type inside another type can be altered while values are hashed, and then has
 * another class.
 */
static void
key_follow(KeyType *type, const KeyType *inner, uint32 *generation)
{
	type->can_change = inner->can_change;
	type->instead = inner->instead;
	type->generation++;
	*generation = inner->generation;
}

/* The hash of all parts; frees them. */
static uint64
key_hash_parts(StringInfo parts)
{
	uint64		hash = key_hash_bytes(parts->data, parts->len);

	pfree(parts->data);
	return hash;
}

/* ----------------------------------------------------------------
 * Arrays
 * ----------------------------------------------------------------
 */

typedef struct ArrayParts
{
	KeyType    *element;
	uint32		generation;		/* of the element that the class is named
								 * after */
	int16		typlen;
	bool		typbyval;
	char		typalign;
} ArrayParts;

/* Name the class after that of the elements. */
static void
key_name_array(KeyType *type)
{
	ArrayParts *private = type->private;

	key_set_class_name(type, private->element->class.scheme,
					   psprintf("%s[]", key_class_label(&private->element->class)));
	key_follow(type, private->element, &private->generation);
}

/*
 * The hash of an array: the dimensions if there is more than one, then the elements.
 * Lower bounds are omitted, because oidvector's equality ignores them.
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
	if (unlikely(private->generation != private->element->generation))
		key_name_array(type);
	if (!VARATT_IS_EXPANDED_HEADER(array))
		key_free_copy(array, value);
	return key_hash_parts(&parts);
}

/*
 * Reject anonymous records inside other values: their columns are known only from a
 * value, so the class of the outer type could not name them.
 */
static void
key_refuse_nested_record(Oid typid)
{
	if (getBaseType(typid) == RECORDOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("anonymous records inside other values cannot be keys of a filter"),
				 errdetail("The type of the key does not determine their columns."),
				 errhint("Cast the inner record to a named composite type.")));
}

void
key_set_array(KeyType *type, Oid element)
{
	ArrayParts *private = MemoryContextAlloc(type->context, sizeof(ArrayParts));

	key_refuse_nested_record(element);
	private->element = key_type(element, type->collation, type->context);
	get_typlenbyvalalign(element, &private->typlen, &private->typbyval, &private->typalign);
	type->private = private;
	type->hash = key_hash_array_datum;
	key_name_array(type);
}

/* ----------------------------------------------------------------
 * Records
 * ----------------------------------------------------------------
 */

typedef struct RecordParts
{
	uint64		identifier;		/* of the row type that `columns` describes */
	KeyType   **columns;		/* NULL for a dropped column */
	int			natts;
	uint32		generation;		/* sum of those of the columns that the class
								 * is named after */
	MemoryContext context;		/* of the columns */
} RecordParts;

static uint32
key_columns_generation(const RecordParts *private)
{
	uint32		sum = 0;

	for (int i = 0; i < private->natts; i++)
	{
		if (private->columns[i] != NULL)
			sum += private->columns[i]->generation;
	}
	return sum;
}

/*
 * Name the class after the classes of the columns.  Dropping a column and adding
 * another can leave the class as it was, but changes the hashes of stored values.  So
 * an index, which has to agree with stored values, cannot have rows as keys.
 */
static void
key_name_record(KeyType *type)
{
	RecordParts *private = type->private;
	uint8		scheme = BF_SCHEME_CANONICAL;
	StringInfoData label;

	initStringInfo(&label);
	type->can_change = "Rows are hashed by their columns, which ALTER TYPE and ALTER TABLE can add and drop.";
	type->instead = "Index an expression of a built-in type, such as a column of the row.";
	for (int i = 0; i < private->natts; i++)
	{
		const KeyType *column = private->columns[i];

		if (column == NULL)
			continue;
		appendStringInfo(&label, "%c%s", label.len == 0 ? '(' : ',', key_class_label(&column->class));
		scheme = Max(scheme, column->class.scheme);
	}
	appendStringInfoString(&label, label.len == 0 ? "()" : ")");
	key_set_class_name(type, scheme, label.data);
	pfree(label.data);
	private->generation = key_columns_generation(private);
	type->generation++;
}

/* Set the columns of a record type and name its class after them. */
static void
key_set_record_columns(KeyType *type, TupleDesc desc, uint64 identifier)
{
	RecordParts *private = type->private;

	private->identifier = 0;	/* not valid if an error is raised below */
	if (private->context == NULL)
		private->context = AllocSetContextCreate(type->context, "bloomfilter record columns", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(private->context);
	private->columns = MemoryContextAllocZero(private->context, sizeof(KeyType *) * (desc->natts + 1));
	private->natts = desc->natts;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		key_refuse_nested_record(attribute->atttypid);
		private->columns[i] = key_type(attribute->atttypid, attribute->attcollation, private->context);
	}
	key_name_record(type);
	private->identifier = identifier;
}

/*
 * The hash of a record: its columns without dropped ones.  The columns of anonymous
 * records can differ from value to value, and a named type can be altered.
 */
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
	if (unlikely(private->generation != key_columns_generation(private)))
		key_name_record(type);
	pfree(values);
	pfree(nulls);
	ReleaseTupleDesc(desc);
	key_free_copy(record, value);
	return key_hash_parts(&parts);
}

/* Set the hash function of a record.  The columns of an anonymous one come with a value. */
void
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

/* ----------------------------------------------------------------
 * Ranges and multiranges
 * ----------------------------------------------------------------
 */

typedef struct RangeParts
{
	TypeCacheEntry *range;
	KeyType    *element;
	bool		multirange;
	uint32		generation;		/* of the element that the class is named
								 * after */
} RangeParts;

/* Name the class after that of the bounds. */
static void
key_name_range(KeyType *type)
{
	RangeParts *private = type->private;

	key_set_class_name(type, private->element->class.scheme,
					   psprintf(private->multirange ? "multirange(%s)" : "range(%s)",
								key_class_label(&private->element->class)));
	key_follow(type, private->element, &private->generation);
}

/*
 * Append one range: a byte that is 0 if the range is empty, else 1; and unless it is
 * empty, for each bound a byte that is 1 if it is inclusive, and its value as a part,
 * NULL if it is infinite.
 */
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

/* The hash of a range, or of all ranges of a multirange. */
static uint64
key_hash_range_datum(KeyType *type, Datum value)
{
	RangeParts *private = type->private;
	void	   *copy = PG_DETOAST_DATUM(value);
	RangeType  *range = copy;
	RangeType **ranges = &range;
	int32		count = 1;
	StringInfoData parts;

	check_stack_depth();
	initStringInfo(&parts);
	if (private->multirange)
		multirange_deserialize(private->range, copy, &count, &ranges);
	for (int32 i = 0; i < count; i++)
		key_append_range(&parts, private, ranges[i]);
	if (unlikely(private->generation != private->element->generation))
		key_name_range(type);
	if (private->multirange && count > 0)
		pfree(ranges);
	key_free_copy(copy, value);
	return key_hash_parts(&parts);
}

/*
 * Set the hash function of a range type.  Bounds are hashed by their own type, but
 * compared by the range type's operator class.  Both have the same equality only if
 * that is the default operator class of the type of the bounds.
 */
void
key_set_range(KeyType *type, bool multirange)
{
	RangeParts *private = MemoryContextAlloc(type->context, sizeof(RangeParts));
	TypeCacheEntry *entry = lookup_type_cache(type->typid,
											  multirange ? TYPECACHE_MULTIRANGE_INFO : TYPECACHE_RANGE_INFO);
	TypeCacheEntry *element;

	private->range = multirange ? entry->rngtype : entry;
	element = lookup_type_cache(private->range->rngelemtype->type_id, TYPECACHE_CMP_PROC);
	if (element->cmp_proc != private->range->rng_cmp_proc_finfo.fn_oid)
		key_refuse_type(type->typid,
						"The bounds of this range type are compared by an operator class other than their type's default.",
						"Use lower() and upper() of the range as keys.");
	private->element = key_type(element->type_id, private->range->rng_collation, type->context);
	type->private = private;
	private->multirange = multirange;
	type->hash = key_hash_range_datum;
	key_name_range(type);
}

/* ----------------------------------------------------------------
 * jsonb
 * ----------------------------------------------------------------
 */

/* Append a scalar: its kind, then a hash, or 0 or 1 for null and booleans. */
static void
key_append_jsonb_scalar(StringInfo parts, const JsonbValue *value)
{
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
			hash = key_hash_numeric(NumericGetDatum(value->val.numeric));
			break;
		case jbvBool:
			appendStringInfoChar(parts, 'b');
			hash = value->val.boolean ? 1 : 0;
			break;
		default:
			elog(ERROR, "unexpected kind of jsonb scalar: %d", (int) value->type);
	}
	key_append_hash(parts, hash);
}

/*
 * The hash of the array or object that the iterator has entered, up to its end.  The
 * order of an object's members depends on the database encoding, so their hashes
 * are added, which does not depend on the order.
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
				key_append_hash(&parts, key_hash_jsonb_container(iterator, token == WJB_BEGIN_OBJECT));
				break;
			default:
				if (object)
					key_append_hash(&parts, sum);
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
 * The hash of a jsonb.  A scalar, such as '1', is stored as an array of one element
 * with a flag.  The kind of the value is mixed in, so that '1' and '[1]' differ.
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

	key_free_copy(json, value);
	return bf_mix64(hash + (scalar ? 's' : token == WJB_BEGIN_ARRAY ? 'a' : 'o'));
}

void
key_set_jsonb(KeyType *type)
{
	type->class = (KeyClass) {BF_SCHEME_CANONICAL, BF_CLASS_JSONB, 0, NULL};
	type->hash = key_hash_jsonb_datum;
}
