/*
 * filterset_create.c
 *		bloom_set_create, bloom_set_reset, bloom_set_stats
 *
 * The size of a slot is a compromise, chosen by measurement.  A change writes a new version
 * of a row, so small slots are fast; the overhead of a row, about 60 bytes, and of
 * its index entry makes large slots small.  See docs/sets.md.
 */
#include "../compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "../builder.h"
#include "../core/growth.h"
#include "../core/query.h"
#include "filterset.h"

extern Datum filter_out(PG_FUNCTION_ARGS);

/* The most bytes of lines in a slot: with one filter, and with one per step of an expiry. */
#define SLOT_BYTES				512
#define EXPIRING_SLOT_BYTES		1024

/* The fewest slots, so that sessions rarely need the same one. */
#define MIN_SLOTS			1024

/*
 * The fill factor while slots are empty, and afterwards.  A filter grows to several times
 * the size of an empty one, so pages are left almost empty first.
 */
#define EMPTY_FILLFACTOR	10
#define FILLFACTOR			50

#define DEFAULT_STEPS		4

/* ----------------------------------------------------------------
 * Creating
 * ----------------------------------------------------------------
 */

typedef struct SetSize
{
	int32		slots;
	uint64		capacity;		/* of each filter */
	double		fpp;			/* of each filter */
	bf_shape	shape;
} SetSize;

/*
 * Divide the capacity among this many slots, with one filter per step of an expiry and one
 * for the current step.  The number of keys in a slot varies; a filter has room for three
 * standard deviations more than the mean.
 */
static SetSize
size_with_slots(int32 slots, int64 capacity, double fpp, int32 steps)
{
	double		mean = (double) capacity / slots / Max(steps, 1);
	SetSize		size = {slots, (uint64) ceil(mean + 3 * sqrt(mean)), Max(fpp / (steps + 1), BF_MIN_FPP)};

	size.capacity = Max(size.capacity, 1);
	size.shape = bf_first_shape(size.capacity, size.fpp, BF_DEFAULT_GROWTH, 0);
	return size;
}

/*
 * The fewest slots that are small enough.  With a low fpp and many steps, even filters of one key are
 * large; a slot may take twice their size then.
 */
static SetSize
choose_size(int64 capacity, double fpp, int32 steps)
{
	uint64		limit = steps > 0 ? EXPIRING_SLOT_BYTES : SLOT_BYTES;
	int32		low = MIN_SLOTS;
	int32		high = SET_MAX_SLOTS;
	SetSize		size = size_with_slots(SET_MAX_SLOTS, 1, fpp, steps);

	limit = Max(limit, size.shape.words * 8 * (steps + 1) * 2);
	while (low < high)
	{
		int32		middle = low + (high - low) / 2;

		size = size_with_slots(middle, capacity, fpp, steps);
		if (size.shape.words * 8 * (steps + 1) > limit)
			low = middle + 1;
		else
			high = middle;
	}
	size = size_with_slots(high, capacity, fpp, steps);
	value_check_words(size.shape.words, (int64) size.capacity, size.fpp);
	return size;
}

/* An empty filter for keys of this type. */
static struct varlena *
empty_filter(SetSize size, Oid key_typid)
{
	bf_mutable	filter;
	KeyType    *type;

	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(key_typid)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", key_typid),
				 errhint("Specify the name of a type, for example key_type => 'integer'.")));
	if (getBaseType(key_typid) == RECORDOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of a filter set cannot be of type record"),
				 errhint("Use a named row type, or a column of another type.")));
	type = key_type(key_typid, get_typcollation(key_typid), CurrentMemoryContext);
	bf_bloom_start(&filter.bloom, server_host(NULL), (bf_size) {size.shape, size.capacity}, size.fpp);
	bf_mutable_set_class(&filter, &type->class);
	return builder_flat(&filter);
}

static void
run_command(const char *command)
{
	int			result = SPI_execute(command, false, 0);

	if (result != SPI_OK_UTILITY)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(result));
}

static char *
interval_text(Interval *interval)
{
	return DatumGetCString(DirectFunctionCall1(interval_out, PointerGetDatum(interval)));
}

/* Insert the missing slots and empty the others. */
static void
fill_slots(FilterSet *set)
{
	filter_set_run(set, SET_FILL, NULL, false);
	if (SPI_processed != set->slots)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("filter set \"%s\" could not be emptied", get_rel_name(set->relation)),
				 errdetail("Because of a trigger, a rule or a row-level security policy, " UINT64_FORMAT " of %u slots were updated.",
						   SPI_processed, set->slots),
				 errhint("Resetting a set updates the rows of all slots, which the caller must be able to do.")));
}

/* bloom_set_create(name, capacity, fpp, key_type, expiry, steps): create a filter set */
PG_FUNCTION_INFO_V1(bloom_set_create);
Datum
bloom_set_create(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"name", "capacity", "fpp", "key_type"};
	const char *schema = quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)));
	RangeVar   *name;
	Oid			namespace;
	char	   *table;
	SetSize		size;
	int32		steps = 0;
	Interval   *expiry = PG_ARGISNULL(4) ? NULL : PG_GETARG_INTERVAL_P(4);
	char	   *empty;
	StringInfoData query;
	Oid			relation;

	for (int i = 0; i < 4; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("%s must not be null", names[i]),
					 errhint("Omit fpp and key_type to use their defaults; a name and a capacity are needed.")));
	}
	value_check_capacity(PG_GETARG_INT64(1));
	value_check_fpp(PG_GETARG_FLOAT8(2));
	if (expiry != NULL)
	{
		steps = PG_ARGISNULL(5) ? DEFAULT_STEPS : PG_GETARG_INT32(5);
		if (steps < 1 || steps > SET_MAX_STEPS)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("steps must be between 1 and %d", SET_MAX_STEPS),
					 errdetail("The specified value is %d.", steps),
					 errhint("A key is reported for at most 1/steps of the expiry longer than the expiry.")));
		if (set_step_length(expiry, steps) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("expiry must be positive and at most 290000 years"),
					 errdetail("The specified value is %s.", interval_text(expiry)),
					 errhint("Specify for how long a key is reported, such as interval '7 days'.")));
		if (PG_GETARG_FLOAT8(2) < BF_MIN_FPP * (steps + 1))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("false-positive probability must be at least %g with %d steps", BF_MIN_FPP * (steps + 1), steps),
					 errdetail("The specified value is %g.", PG_GETARG_FLOAT8(2)),
					 errhint("Specify a larger fpp or fewer steps: the filters of a slot share the fpp.")));
	}
	else if (!PG_ARGISNULL(5))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("steps cannot be specified without an expiry"),
				 errhint("Specify the expiry as well, such as expiry => interval '7 days'.")));
	size = choose_size(PG_GETARG_INT64(1), PG_GETARG_FLOAT8(2), steps);

	name = makeRangeVarFromNameList(textToQualifiedNameList(PG_GETARG_TEXT_PP(0)));
	if (name->catalogname != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("name of a filter set must not include a database"),
				 errhint("Specify a name, or a schema and a name: the set is created in the current database.")));
	namespace = RangeVarGetCreationNamespace(name);
	if (OidIsValid(get_relname_relid(name->relname, namespace)))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists", name->relname),
				 errhint("A filter set is a table. To remove all keys of an existing set, call bloom_set_reset.")));
	table = quote_qualified_identifier(get_namespace_name(namespace), name->relname);
	empty = DatumGetCString(DirectFunctionCall1(filter_out, PointerGetDatum(empty_filter(size, PG_GETARG_OID(3)))));

	/*
	 * literals of the exact types, so that no other function is meant, and
	 * filter_set() understands them
	 */
	initStringInfo(&query);
	appendStringInfo(&query, "CREATE TABLE %s (slot pg_catalog.int4 PRIMARY KEY, %s NOT NULL DEFAULT %s." SET_FUNCTION "(%d, '" INT64_FORMAT "'::pg_catalog.int8, '%s'::%s.bloom",
					 table, psprintf(expiry == NULL ? "filter %s.bloom" : "filters %s.bloom[]", schema), schema,
					 size.slots, PG_GETARG_INT64(1), empty, schema);
	if (expiry != NULL)
		appendStringInfo(&query, ", '%s'::pg_catalog.interval, %d), turn pg_catalog.int8 NOT NULL DEFAULT 0",
						 interval_text(expiry), steps);
	else
		appendStringInfoChar(&query, ')');
	appendStringInfo(&query, ") WITH (fillfactor = %d, toast_tuple_target = 8160)", EMPTY_FILLFACTOR);

	SPI_connect();
	run_command(query.data);
	/* by its schema: a temporary table of the same name would be found first */
	relation = get_relname_relid(name->relname, namespace);
	fill_slots(filter_set(relation, fcinfo->flinfo->fn_oid));
	/* ANALYZE would compare filters for long, and keep row versions meanwhile */
	run_command(psprintf("ALTER TABLE %s SET (fillfactor = %d), ALTER %s SET STATISTICS 0", table, FILLFACTOR,
						 expiry == NULL ? "filter" : "filters"));
	SPI_finish();
	PG_RETURN_OID(relation);
}

/* bloom_set_reset(set): forget all keys, and restore missing slots */
PG_FUNCTION_INFO_V1(bloom_set_reset);
Datum
bloom_set_reset(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);

	SPI_connect();
	fill_slots(set);
	SPI_finish();
	PG_RETURN_VOID();
}

/* ----------------------------------------------------------------
 * Statistics
 * ----------------------------------------------------------------
 */

#define ROWS_AT_A_TIME	1000

/* What a scan of all slots adds up. */
typedef struct SetTotals
{
	int64		rows;
	int64		grown;			/* slots with a filter of several layers */
	double		keys;
	double		fpp;			/* sum over slots */
} SetTotals;

static void
add_slot_to_totals(const FilterSet *set, const SetSlot *slot, SetTotals *totals)
{
	int			used = set_slot_filters_in_use(set, slot, set_current_step(set));
	double		absent = 1;
	bool		grown = false;

	for (int i = 0; i < used; i++)
	{
		bf_filter	filter;
		bf_census	census;

		value_open(&filter, PG_DETOAST_DATUM_PACKED(slot->filters[i]));
		census = bf_filter_census(&filter);
		totals->keys += census.keys;
		absent *= 1 - census.fpp;
		grown = grown || filter.layers > 1;
	}
	totals->rows++;
	totals->grown += grown;
	totals->fpp += 1 - absent;
}

static SetTotals
scan_slots(FilterSet *set)
{
	SetTotals	totals = {0};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "slots of a filter set", ALLOCSET_DEFAULT_SIZES);
	Portal		portal = filter_set_open(set);

	do
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		SPI_cursor_fetch(portal, true, ROWS_AT_A_TIME);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			SetSlot		slot = set_slot_of_row(set, SPI_tuptable->vals[i], SPI_tuptable->tupdesc);

			CHECK_FOR_INTERRUPTS();
			add_slot_to_totals(set, &slot, &totals);
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
		SPI_freetuptable(SPI_tuptable);
	} while (SPI_processed > 0);
	SPI_cursor_close(portal);
	return totals;
}

/* Return advice on a set, or NULL. */
static const char *
set_advice(const FilterSet *set, const SetTotals *totals)
{
	if (totals->rows < set->slots)
		return psprintf("call bloom_set_reset, which empties the set: of %u slots, " INT64_FORMAT " are missing",
						set->slots, set->slots - totals->rows);
	if (totals->keys > set->capacity * 1.1)
		return "create a set of a larger capacity, which is smaller and faster: this one has more keys than it was made for";
	return NULL;
}

/* bloom_set_stats(set): definition and contents of a filter set */
PG_FUNCTION_INFO_V1(bloom_set_stats);
Datum
bloom_set_stats(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);
	TupleDesc	desc;
	SetTotals	totals;
	const char *advice;
	Datum		values[11];
	bool		nulls[11] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	SPI_connect();
	totals = scan_slots(set);
	SPI_finish();

	values[0] = Int32GetDatum((int32) set->slots);
	values[1] = Int64GetDatum(set->capacity);
	values[2] = Int64GetDatum((int64) rint(totals.keys));
	values[3] = Int64GetDatum(totals.grown);
	values[4] = DirectFunctionCall1(pg_total_relation_size, ObjectIdGetDatum(set->relation));
	values[5] = Float8GetDatum(set->empty_filter.header.fpp * (set->steps > 0 ? set->steps + 1 : 1));
	values[6] = Float8GetDatum(totals.rows > 0 ? totals.fpp / (double) totals.rows : 0.0);
	values[7] = CStringGetTextDatum(key_class_label(&set->empty_filter.header.class));
	values[8] = PointerGetDatum(&set->expiry);
	values[9] = Int32GetDatum(set->steps);
	nulls[8] = nulls[9] = set->step == 0;
	advice = set_advice(set, &totals);
	nulls[10] = advice == NULL;
	if (advice != NULL)
		values[10] = CStringGetTextDatum(advice);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
