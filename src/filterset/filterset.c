/*
 * filterset.c
 *		bloom_set_add, bloom_set_add_all, bloom_set_contains, bloom_set_contains_each
 *
 * A slot is read without a lock, and written only if its row is still the one that was
 * read.  Otherwise another session has changed it: the row is locked and read, and its
 * keys are tested again.  Therefore no key is new to two sessions.
 *
 * A call changes slots in ascending order, so two calls cannot deadlock.  Transactions
 * with several calls can.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "filterset.h"

/* Raise an error if the keys are not of the set's class. */
static void
check_key_class(const FilterSet *set, const KeyClass *class)
{
	const KeyClass *expected = &set->empty_filter.header.class;

	if (!key_class_equal(expected, class))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key of class %s does not fit filter set \"%s\" of class %s", key_class_label(class),
						get_rel_name(set->relation), key_class_label(expected)),
				 key_class_is_array(class) && !key_class_is_array(expected) ?
				 errhint("If each element is a key, use bloom_set_add_all() or bloom_set_contains_each().") :
				 errhint("Cast the key, or create a filter set of another key_type.")));
}

/* Raise the error for a slot that has no row, or more than one. */
static void
refuse_row_count(const FilterSet *set, uint32 slot, uint64 rows)
{
	if (rows == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("slot %u of filter set \"%s\" is missing", slot, get_rel_name(set->relation)),
				 errdetail("The row was deleted, or a row-level security policy hides it."),
				 errhint("bloom_set_reset() empties a filter set and restores missing slots.")));
	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 errmsg("slot %u of filter set \"%s\" is stored %llu times", slot, get_rel_name(set->relation), (unsigned long long) rows),
			 errhint("Delete the repeated rows and restore the primary key.")));
}

/* Read a slot. */
static SetSlot
read_slot(FilterSet *set, uint32 slot, bool read_only)
{
	Datum		value = Int32GetDatum((int32) slot);

	filter_set_run(set, SET_READ, &value, read_only);
	if (SPI_processed != 1)
		refuse_row_count(set, slot, SPI_processed);
	return set_slot_of_row(set, SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
}

/* Raise the error for a slot that can be read, but not written. */
static void
refuse_slot(const FilterSet *set, uint32 slot)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("slot %u of filter set \"%s\" could not be updated", slot, get_rel_name(set->relation)),
			 errdetail("A trigger, a rule or a row-level security policy prevents it."),
			 errhint("Adding a key updates the row of its slot, which the caller must be able to do.")));
}

/* Lock a slot against changes, and read it. */
static SetSlot
lock_slot(FilterSet *set, uint32 slot)
{
	Datum		value = Int32GetDatum((int32) slot);

	filter_set_run(set, SET_LOCK, &value, false);
	if (SPI_processed == 0)
	{
		/* this fails if the row was deleted meanwhile */
		read_slot(set, slot, false);
		refuse_slot(set, slot);
	}
	if (SPI_processed != 1)
		refuse_row_count(set, slot, SPI_processed);
	return set_slot_of_row(set, SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
}

/*
 * A slot was written.  Raise an error if a trigger has stored something else that lacks
 * some of the keys: they would be new again.
 */
static void
check_stored(const FilterSet *set, uint32 number, int64 now, const KeyClass *class, const uint64 *hashes, Size n)
{
	SetSlot		slot = set_slot_of_row(set, SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
	bool	   *found = palloc(n);

	set_slot_contains(set, &slot, now, class, hashes, n, found);
	if (memchr(found, 0, n) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
				 errmsg("slot %u of filter set \"%s\" lacks a key that was added", number, get_rel_name(set->relation)),
				 errdetail("A trigger has changed the row that was to be stored."),
				 errhint("Triggers of a filter set must not remove keys from NEW.")));
}

/*
 * Add those of n keys that a slot lacks, given its contents.  found[] is set for those it has.
 *
 * If another session has changed the slot, it is locked, and read and written again.
 */
static void
add_to_slot(FilterSet *set, uint32 number, SetSlot slot, const KeyClass *class, const uint64 *hashes, Size n, bool *found)
{
	int64		now = set_current_step(set);
	uint64	   *fresh = palloc(sizeof(uint64) * n);

	for (int attempt = 0; attempt < 2; attempt++)
	{
		Datum		values[5];
		Size		lacking = 0;

		if (attempt > 0)
			slot = lock_slot(set, number);
		set_slot_contains(set, &slot, now, class, hashes, n, found);
		for (Size i = 0; i < n; i++)
		{
			if (!found[i])
				fresh[lacking++] = hashes[i];
		}
		if (lacking == 0)
			return;
		set_slot_add(set, &slot, now, class, fresh, lacking);
		values[0] = Int32GetDatum((int32) number);
		values[1] = slot.stored[0];
		values[2] = set_slot_datum(set, &slot);
		values[3] = slot.stored[1];
		values[4] = Int64GetDatum(slot.turn);
		filter_set_run(set, SET_WRITE, values, false);
		if (SPI_processed > 1)
			refuse_row_count(set, number, SPI_processed);
		if (SPI_processed == 1)
		{
			check_stored(set, number, now, class, fresh, lacking);
			return;
		}
	}
	refuse_slot(set, number);
}

/* ----------------------------------------------------------------
 * One key
 * ----------------------------------------------------------------
 */

/* bloom_set_add(set, key): add a key; true if it was new */
PG_FUNCTION_INFO_V1(bloom_set_add);
Datum
bloom_set_add(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);
	KeyType    *type = key_type_of_call(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));
	uint32		number = set_slot_number(set, hash);
	bool		found;

	check_key_class(set, &type->class);
	SPI_connect();
	add_to_slot(set, number, read_slot(set, number, false), &type->class, &hash, 1, &found);
	SPI_finish();
	PG_RETURN_BOOL(!found);
}

/* bloom_set_contains(set, key): may the key have been added? */
PG_FUNCTION_INFO_V1(bloom_set_contains);
Datum
bloom_set_contains(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);
	KeyType    *type = key_type_of_call(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	uint64		hash = key_hash(type, PG_GETARG_DATUM(1));
	SetSlot		slot;
	bool		found;

	check_key_class(set, &type->class);
	SPI_connect();
	slot = read_slot(set, set_slot_number(set, hash), true);
	set_slot_contains(set, &slot, set_current_step(set), &type->class, &hash, 1, &found);
	SPI_finish();
	PG_RETURN_BOOL(found);
}

/* ----------------------------------------------------------------
 * Many keys
 * ----------------------------------------------------------------
 */

/* A key of an array, to be sorted by its slot. */
typedef struct SetKey
{
	uint32		slot;
	Size		at;				/* in KeyArray.hashes */
} SetKey;

/* The keys of one slot. */
typedef struct SetGroup
{
	uint32		number;
	bool		is_read;
	Size		start;			/* in the sorted keys */
	Size		n;
	SetSlot		slot;
} SetGroup;

typedef struct SetGroups
{
	uint64	   *hashes;			/* sorted by slot */
	Size	   *at;				/* where each of them is in KeyArray.hashes */
	SetGroup   *group;
	Size		n;
} SetGroups;

static int
compare_slots(const void *a, const void *b, void *arg)
{
	const SetKey *x = a;
	const SetKey *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Sort the keys by slot. */
static SetGroups
group_keys(const FilterSet *set, const KeyArray *keys)
{
	SetKey	   *sorted = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(SetKey) * keys->n);
	SetGroups	groups = {0};

	groups.hashes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * keys->n);
	groups.at = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Size) * keys->n);
	groups.group = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(SetGroup) * Min(keys->n, set->slots));
	for (Size i = 0; i < keys->n; i++)
		sorted[i] = (SetKey) {set_slot_number(set, keys->hashes[i]), i};
	qsort_interruptible(sorted, keys->n, sizeof(SetKey), compare_slots, NULL);
	for (Size i = 0; i < keys->n; i++)
	{
		if (i == 0 || sorted[i].slot != sorted[i - 1].slot)
			groups.group[groups.n++] = (SetGroup) {.number = sorted[i].slot, .start = i};
		groups.group[groups.n - 1].n++;
		groups.at[i] = sorted[i].at;
		groups.hashes[i] = keys->hashes[sorted[i].at];
	}
	pfree(sorted);
	return groups;
}

static int
compare_groups(const void *a, const void *b)
{
	uint32		x = ((const SetGroup *) a)->number;
	uint32		y = ((const SetGroup *) b)->number;

	return (x > y) - (x < y);
}

/* Read the slots of all groups. */
static void
read_groups(FilterSet *set, SetGroups *groups, bool read_only)
{
	Datum	   *numbers = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Datum) * groups->n);
	Datum		value;

	for (Size i = 0; i < groups->n; i++)
		numbers[i] = Int32GetDatum((int32) groups->group[i].number);
	value = PointerGetDatum(construct_array(numbers, (int) groups->n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	filter_set_run(set, SET_READ_MANY, &value, read_only);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		bool		isnull;
		SetGroup	wanted = {.number = (uint32) DatumGetInt32(heap_getattr(row, 1, SPI_tuptable->tupdesc, &isnull))};
		SetGroup   *group = bsearch(&wanted, groups->group, groups->n, sizeof(SetGroup), compare_groups);

		if (group == NULL)
			continue;			/* not one of ours */
		if (group->is_read)
			refuse_row_count(set, group->number, 2);
		group->slot = set_slot_of_row(set, row, SPI_tuptable->tupdesc);
		group->is_read = true;
	}
	for (Size i = 0; i < groups->n; i++)
	{
		if (!groups->group[i].is_read)
			refuse_row_count(set, groups->group[i].number, 0);
	}
}

/*
 * Test the keys of an array, and add those that are lacking if that is wanted.  Returns which
 * of them there were before, in an array that outlives the SPI connection.
 */
static bool *
test_keys(FilterSet *set, const KeyArray *keys, bool add)
{
	bool	   *result = MemoryContextAllocHuge(CurrentMemoryContext, Max(keys->n, 1));
	SetGroups	groups;
	bool	   *found;

	if (keys->n == 0)
		return result;
	check_key_class(set, &keys->class);
	SPI_connect();
	found = MemoryContextAllocHuge(CurrentMemoryContext, keys->n);
	groups = group_keys(set, keys);
	read_groups(set, &groups, !add);
	for (Size i = 0; i < groups.n; i++)
	{
		SetGroup   *group = &groups.group[i];
		const uint64 *hashes = groups.hashes + group->start;

		CHECK_FOR_INTERRUPTS();
		if (add)
			add_to_slot(set, group->number, group->slot, &keys->class, hashes, group->n, found + group->start);
		else
			set_slot_contains(set, &group->slot, set_current_step(set), &keys->class, hashes, group->n, found + group->start);
	}
	for (Size i = 0; i < keys->n; i++)
		result[groups.at[i]] = found[i];
	SPI_finish();
	return result;
}

/* bloom_set_add_all(set, keys): add keys; those of them that were new, each once */
PG_FUNCTION_INFO_V1(bloom_set_add_all);
Datum
bloom_set_add_all(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);
	KeyArray	keys = key_array_of_argument(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);

	PG_RETURN_ARRAYTYPE_P(key_array_of_missing(&keys, test_keys(set, &keys, true)));
}

/* bloom_set_contains_each(set, keys): for each key, may it have been added? */
PG_FUNCTION_INFO_V1(bloom_set_contains_each);
Datum
bloom_set_contains_each(PG_FUNCTION_ARGS)
{
	FilterSet  *set = filter_set(PG_GETARG_OID(0), fcinfo->flinfo->fn_oid);
	KeyArray	keys = key_array_of_argument(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);

	PG_RETURN_ARRAYTYPE_P(key_array_of_results(&keys, test_keys(set, &keys, false)));
}
