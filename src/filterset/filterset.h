/*
 * filterset.h
 *		Filter sets: tables of small filters to which many sessions add keys.
 *
 * A filter set is an ordinary table with a row per slot.  The hash of a key determines
 * its slot, so that sessions rarely need the same row.  Everything that defines the set
 * is the default of a column, which pg_dump copies, TRUNCATE leaves, and UPDATE does not
 * evaluate:
 *
 *		slot int4 PRIMARY KEY,
 *		filter bloom DEFAULT _bloom_set(<slots>, <capacity>, <empty filter>)
 *
 * or, if keys expire (see filterset_slot.c),
 *
 *		slot int4 PRIMARY KEY,
 *		filters bloom[] DEFAULT _bloom_set(<slots>, <capacity>, <empty filter>, <expiry>, <steps>),
 *		turn int8 DEFAULT 0
 *
 * The capacity is that of the set.  The empty filter carries the capacity of a slot, the
 * false-positive probability and the class of the keys.
 *
 * All reads and writes are SQL statements, so that triggers, policies, privileges and
 * logical decoding apply as to any table.
 */
#ifndef BF_FILTERSET_H
#define BF_FILTERSET_H

#include "../compat.h"

#include "executor/spi.h"
#include "utils/timestamp.h"

#include "../value.h"

#define SET_MAX_SLOTS		(1 << 24)
#define SET_MAX_STEPS		60

/* The function of the default, and its arguments: where keys do not expire, and where they do. */
#define SET_FUNCTION			"_bloom_set"
#define SET_ARGUMENTS			3
#define SET_EXPIRY_ARGUMENTS	5

/* The statements of a set; $1 is a slot, or an array of them. */
typedef enum SetStatement
{
	SET_READ,					/* the row of a slot */
	SET_LOCK,					/* the same, locked against changes */
	SET_READ_MANY,				/* the rows of some slots */
	SET_WRITE,					/* the row of a slot, unless it was changed */
	SET_READ_ALL,				/* all rows */
	SET_FILL,					/* insert the missing slots and empty the
								 * others */
	SET_STATEMENTS
} SetStatement;

typedef struct FilterSet
{
	Oid			relation;
	Oid			filter_type;	/* bloom */
	MemoryContext context;		/* of this struct and its parts */
	uint32		slots;
	int64		capacity;		/* of all slots */
	Interval	expiry;
	int32		steps;			/* of an expiry */
	int64		step;			/* microseconds; 0: keys do not expire */
	struct varlena *empty;		/* the filter that a slot starts with */
	bf_filter	empty_filter;	/* the same, opened */
	char	   *schema;			/* of the extension; quoted */
	char	   *table;			/* its name, qualified and quoted */
	SPIPlanPtr	plans[SET_STATEMENTS];	/* NULL if not prepared */
	struct FilterSet *next;		/* to be freed, after this one */
} FilterSet;

/* The contents of a slot: one filter, or one per step, the newest first. */
typedef struct SetSlot
{
	Datum	   *filters;
	int			n;
	int64		turn;			/* the step of the newest filter */
	Datum		stored[2];		/* the columns as they were read */
} SetSlot;

/* filterset_table.c */
extern FilterSet *filter_set(Oid relation, Oid caller);
extern void filter_set_run(FilterSet *set, SetStatement statement, Datum *values, bool read_only);
extern Portal filter_set_open(FilterSet *set);
extern int64 set_step_length(const Interval *expiry, int32 steps);

/* filterset_slot.c */
extern int64 set_current_step(const FilterSet *set);
extern SetSlot set_slot_of_row(const FilterSet *set, HeapTuple row, TupleDesc desc);
extern int	set_slot_filters_in_use(const FilterSet *set, const SetSlot *slot, int64 now);
extern void set_slot_contains(const FilterSet *set, const SetSlot *slot, int64 now, const KeyClass *class,
							  const uint64 *hashes, Size n, bool *found);
extern void set_slot_add(const FilterSet *set, SetSlot *slot, int64 now, const KeyClass *class, const uint64 *hashes, Size n);
extern Datum set_slot_datum(const FilterSet *set, const SetSlot *slot);

/* The columns of the contents of a slot. */
static inline const char *
set_columns(const FilterSet *set)
{
	return set->step == 0 ? "filter" : "filters, turn";
}

/* The slot of a key, in SQL (bloom_hash(key) & 4294967295) % slots. */
static inline uint32
set_slot_number(const FilterSet *set, uint64 hash)
{
	return (uint32) hash % set->slots;
}

#endif							/* BF_FILTERSET_H */
