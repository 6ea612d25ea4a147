/*
 * filterset_slot.c
 *		The contents of one slot of a filter set.
 *
 * If keys expire, time is divided into steps, numbered since 2000; an expiry consists of
 * `steps` steps.  The slot has an array of filters, one per step, the newest first, and
 * the number of the step of the newest one, its turn.  A key is added to the filter of
 * the current step, and reported during that step and the next `steps` steps: at least
 * for the expiry, and at most for one step more.
 *
 * Old filters are dropped when a slot is written.  A reader ignores those that are too
 * old.  If the clock is behind the slot, its newest filter is taken for the current one,
 * so that keys are reported longer.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "common/int.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "../builder.h"
#include "../core/query.h"
#include "filterset.h"

/* The current step, by the start of the transaction. */
int64
set_current_step(const FilterSet *set)
{
	TimestampTz now = GetCurrentTransactionStartTimestamp();

	if (set->step == 0)
		return 0;
	return now / set->step - (now % set->step < 0);
}

static void
set_deconstruct(ArrayType *array, Oid type, Datum **values, int *n)
{
	int16		typlen;
	bool		typbyval;
	char		typalign;

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign, values, NULL, n);
}

/* The contents of a row that SET_READ or SET_READ_MANY returned. */
SetSlot
set_slot_of_row(const FilterSet *set, HeapTuple row, TupleDesc desc)
{
	SetSlot		slot = {.n = 1};
	bool		isnull[2] = {0};

	slot.stored[0] = heap_getattr(row, 2, desc, &isnull[0]);
	if (set->step != 0)
		slot.stored[1] = heap_getattr(row, 3, desc, &isnull[1]);
	if (set->step == 0 && !isnull[0])
	{
		slot.filters = palloc(sizeof(Datum));
		slot.filters[0] = slot.stored[0];
	}
	else if (!isnull[0] && !isnull[1])
	{
		slot.turn = DatumGetInt64(slot.stored[1]);
		set_deconstruct(DatumGetArrayTypeP(slot.stored[0]), set->filter_type, &slot.filters, &slot.n);
	}
	if (isnull[0] || isnull[1] || slot.n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("filter set \"%s\" has a slot without a filter", get_rel_name(set->relation)),
				 errhint("bloom_set_reset() empties a filter set and restores its slots.")));
	return slot;
}

/* The number of steps since the newest filter's, or 0 if the clock is behind it. */
static int64
slot_age(const SetSlot *slot, int64 now)
{
	int64		age;

	if (now <= slot->turn)
		return 0;
	return pg_sub_s64_overflow(now, slot->turn, &age) ? PG_INT64_MAX : age;
}

/* The number of filters that are not too old. */
int
set_slot_filters_in_use(const FilterSet *set, const SetSlot *slot, int64 now)
{
	int64		age = slot_age(slot, now);

	if (set->step == 0)
		return 1;
	return age > set->steps ? 0 : (int) Min(set->steps + 1 - age, slot->n);
}

/* Test the slot for some keys. */
void
set_slot_contains(const FilterSet *set, const SetSlot *slot, int64 now, const KeyClass *class,
				  const uint64 *hashes, Size n, bool *found)
{
	int			used = set_slot_filters_in_use(set, slot, now);

	memset(found, false, n);
	for (int i = 0; i < used; i++)
	{
		bf_filter	filter;

		value_open(&filter, PG_DETOAST_DATUM_PACKED(slot->filters[i]));
		key_class_check(&filter.header.class, class);
		for (Size key = 0; key < n; key++)
			found[key] = found[key] || bf_filter_contains(&filter, hashes[key]);
	}
}

/* Drop old filters and add empty ones, so that the newest is that of the current step. */
static void
set_slot_turn(const FilterSet *set, SetSlot *slot, int64 now)
{
	int			used = set_slot_filters_in_use(set, slot, now);
	int			shift;
	Datum	   *filters;

	if (set->step == 0 || now <= slot->turn)
		return;
	shift = (int) Min(slot_age(slot, now), set->steps + 1);
	filters = palloc(sizeof(Datum) * (shift + used));
	for (int i = 0; i < shift; i++)
		filters[i] = PointerGetDatum(set->empty);
	memcpy(filters + shift, slot->filters, sizeof(Datum) * used);
	slot->filters = filters;
	slot->n = used == 0 ? 1 : shift + used;
	slot->turn = now;
}

/* Add keys to the newest filter. */
void
set_slot_add(const FilterSet *set, SetSlot *slot, int64 now, const KeyClass *class, const uint64 *hashes, Size n)
{
	bf_mutable	changed;
	bf_filter	filter;

	set_slot_turn(set, slot, now);
	value_open(&filter, PG_DETOAST_DATUM_PACKED(slot->filters[0]));
	bf_mutable_load(&changed, server_host(NULL), &filter);
	bf_mutable_change(&changed, BF_ADD, class, hashes, n);
	slot->filters[0] = PointerGetDatum(builder_flat(&changed));
}

/* The value of the filter column. */
Datum
set_slot_datum(const FilterSet *set, const SetSlot *slot)
{
	int16		typlen;
	bool		typbyval;
	char		typalign;

	if (set->step == 0)
		return slot->filters[0];
	get_typlenbyvalalign(set->filter_type, &typlen, &typbyval, &typalign);
	return PointerGetDatum(construct_array(slot->filters, slot->n, set->filter_type, typlen, typbyval, typalign));
}

/* ----------------------------------------------------------------
 * The default
 * ----------------------------------------------------------------
 */

/* _bloom_set(slots, capacity, empty): the contents of an empty slot */
SQL_FUNCTION(bloom_set_empty, PG_GETARG_DATUM(2));

/* _bloom_set(slots, capacity, empty, expiry, steps): the same if keys expire */
PG_FUNCTION_INFO_V1(bloom_set_empty_expiring);
Datum
bloom_set_empty_expiring(PG_FUNCTION_ARGS)
{
	int32		steps = PG_GETARG_INT32(4);
	FilterSet	set = {.step = 1, .filter_type = get_fn_expr_argtype(fcinfo->flinfo, 2)};
	SetSlot		slot = {.n = steps + 1};

	if (steps < 1 || steps > SET_MAX_STEPS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("steps must be between 1 and %d", SET_MAX_STEPS)));
	slot.filters = palloc(sizeof(Datum) * slot.n);
	for (int i = 0; i < slot.n; i++)
		slot.filters[i] = PG_GETARG_DATUM(2);
	PG_RETURN_DATUM(set_slot_datum(&set, &slot));
}
