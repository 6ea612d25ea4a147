/*
 * cuckoo_build.c
 *		A cuckoo filter that is being changed, in memory.
 *
 * While it is small the filter is a list of numbers with a count for each; a
 * table takes over when it is the smaller one.  Nothing is lost on the way: a
 * table can be read back into a list, so the form is a matter of content alone,
 * and so is, for filters that were made at once (by aggregates and merges), the
 * place of each number in the table: they are inserted in ascending order.
 *
 * Aggregates collect whole hashes first, in a list without a table, and choose
 * the range of numbers at the end.
 *
 * A builder may be the variable of a PL/pgSQL function that catches errors, a
 * cancel among them, and goes on with it.  So whatever can fail (allocations,
 * polls, limits) comes before the first change, here and below.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "build.h"
#include "memory.h"

/* Copies that wait to be sorted into the list: at least, and at most (8 MB). */
#define LEAST_PENDING		8
#define MOST_PENDING		(1024 * 1024)

/* Numbers inserted between two polls: in a full table each may take 500 kicks. */
#define POLL_EVERY			4096

/* So many are looked through when a key is asked for, rather than sorted. */
#define FEW_PENDING			64

/*
 * Past the bound of exact sizing an aggregate goes over to a table that is made
 * for so many keys, and gives up what it did not need in the end.
 */
#define SPILL_KEYS			(UINT64CONST(1) << 28)

static inline bf_layer *
layer_of(CuckooBuilder *builder)
{
	return &builder->base.frame->layer[0];
}

static inline void *
allocate(CuckooBuilder *builder, Size size)
{
	return MemoryContextAllocExtended(builder->base.context, Max(size, 1), MCXT_ALLOC_HUGE);
}

/* Begin an empty filter.  A table of no buckets: choose one at the end. */
void
cuckoo_build_start(CuckooBuilder *builder, MemoryContext context, bf_table table,
				   uint64 capacity, double fpp)
{
	bf_layer   *layer;

	memset(builder, 0, sizeof(CuckooBuilder));
	build_frame(&builder->base, &cuckoo_methods, context, fpp);
	layer = layer_of(builder);
	layer->form = BF_FORM_COUNTS;
	layer->capacity = capacity;
	layer->table = table;
	builder->pending_room = LEAST_PENDING;
	builder->pending = allocate(builder, sizeof(uint64) * builder->pending_room);
}

static void
cuckoo_start_aggregate(FilterBuilder *base, MemoryContext context, uint64 capacity, double fpp)
{
	bf_table	none = {0, 0};

	if (capacity > 0)
		filter_check_words(bf_table_words(bf_table_for(capacity, fpp, BF_DEFAULT_GROWTH)), (int64) capacity, fpp);
	cuckoo_build_start((CuckooBuilder *) base, context, none, capacity, fpp);
}

/*
 * What was opened can be probed, but its numbers may lead anywhere if the bytes
 * were damaged: look at those in the list.
 */
static void
check_listed(const bf_layer *layer)
{
	for (uint32 i = 0; layer->table.buckets > 0 && i < layer->count; i++)
	{
		if (bf_load64(layer->list + (Size) i * 8) >= bf_table_range(layer->table))
			filter_refuse_damaged("Its list has a number that is out of range.");
	}
}

/* Continue a filter that exists. */
static void
cuckoo_load(FilterBuilder *base, MemoryContext context, const bf_filter *filter)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	const bf_layer *from = &filter->layer[0];

	check_listed(from);
	memset(builder, 0, sizeof(CuckooBuilder));
	build_copy_frame(base, &cuckoo_methods, context, filter);
	builder->listed = builder->list_room = from->count;
	builder->numbers = allocate(builder, sizeof(uint64) * from->count);
	builder->counts = allocate(builder, from->count);
	bf_list_read(builder->numbers, from->list, from->count);
	memcpy(builder->counts, from->list + (Size) from->count * 8, from->count);
	builder->pending_room = LEAST_PENDING;
	builder->pending = allocate(builder, sizeof(uint64) * builder->pending_room);
	if (from->form == BF_FORM_TABLE)
	{
		Size		bytes = (Size) bf_table_words(from->table) * 8;

		builder->slots = memory_alloc(context, bytes);
		memcpy(builder->slots, from->data, bytes);
		builder->used = from->used;
	}
	layer_of(builder)->data = layer_of(builder)->list = NULL;
}

/* ----------------------------------------------------------------
 * The list
 * ----------------------------------------------------------------
 */

/* Make room for more entries. */
static void
reserve_list(CuckooBuilder *builder, uint64 room)
{
	if (room <= builder->list_room)
		return;
	if (room > PG_UINT32_MAX)
		filter_check_size(room * 9);
	room = Min(Max(room, (uint64) builder->list_room * 3 / 2), PG_UINT32_MAX);
	if (builder->numbers == NULL)
	{
		uint64	   *numbers = allocate(builder, sizeof(uint64) * room);

		builder->counts = allocate(builder, room);
		builder->numbers = numbers;
	}
	else
	{
		builder->numbers = repalloc_huge(builder->numbers, sizeof(uint64) * room);
		builder->counts = repalloc_huge(builder->counts, room);
	}
	builder->list_room = (uint32) room;
}

/* Make room for more copies that wait. */
static void
reserve_pending(CuckooBuilder *builder, uint64 room)
{
	if (room <= builder->pending_room)
		return;
	if (room > PG_UINT32_MAX)
		filter_check_size(room * 8);
	builder->pending = repalloc_huge(builder->pending, sizeof(uint64) * room);
	builder->pending_room = (uint32) room;
}

static inline unsigned
add_counts(unsigned a, unsigned b)
{
	return Min(a + b, BF_MAX_COUNT);
}

/* Sum up entries of the same number, and drop those of no copies. */
static void
compact_list(CuckooBuilder *builder)
{
	uint32		n = 0;

	for (uint32 i = 0; i < builder->listed; i++)
	{
		if (builder->counts[i] == 0)
			continue;
		if (n > 0 && builder->numbers[n - 1] == builder->numbers[i])
			builder->counts[n - 1] = (uint8) add_counts(builder->counts[n - 1], builder->counts[i]);
		else
		{
			builder->numbers[n] = builder->numbers[i];
			builder->counts[n] = builder->counts[i];
			n++;
		}
	}
	builder->listed = n;
	builder->holes = false;
}

/*
 * Copies of a number are never more than BF_MAX_COUNT, the one in the table
 * included.  The list alone can count as many.
 */
static void
cap_counts(CuckooBuilder *builder)
{
	builder->placed = false;
	if (builder->slots == NULL)
		return;
	for (uint32 i = 0; i < builder->listed; i++)
	{
		if (builder->counts[i] == BF_MAX_COUNT &&
			bf_table_find(builder->slots, layer_of(builder)->table, builder->numbers[i]))
			builder->counts[i]--;
	}
}

/* Sort what waits into the list. */
void
cuckoo_build_settle(CuckooBuilder *builder)
{
	uint64	   *pending = builder->pending;
	uint32		runs = 0;
	uint64		old;
	uint64		fresh;
	uint64		end;

	if (builder->pended == 0)
	{
		if (builder->holes)
			compact_list(builder);
		if (builder->placed)
			cap_counts(builder);
		return;
	}
	bf_hashes_sort(pending, builder->pended);
	for (uint32 i = 0; i < builder->pended; i++)
	{
		runs += i == 0 || pending[i] != pending[i - 1];
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	reserve_list(builder, (uint64) builder->listed + runs);

	/* nothing fails from here on; merge from the end, in place */
	old = builder->listed;
	fresh = builder->pended;
	end = builder->listed + runs;
	while (fresh > 0)
	{
		if (old > 0 && builder->numbers[old - 1] > pending[fresh - 1])
		{
			old--;
			end--;
			builder->numbers[end] = builder->numbers[old];
			builder->counts[end] = builder->counts[old];
		}
		else
		{
			uint64		number = pending[fresh - 1];
			unsigned	copies = 0;

			for (; fresh > 0 && pending[fresh - 1] == number; fresh--)
				copies = add_counts(copies, 1);
			end--;
			builder->numbers[end] = number;
			builder->counts[end] = (uint8) copies;
		}
	}
	Assert(end == old);
	builder->pended = 0;
	if (builder->listed == 0)
		builder->listed = runs; /* all of them distinct */
	else
	{
		builder->listed += runs;
		compact_list(builder);
	}
	cap_counts(builder);
}

/* The place of a number in the list that was settled, or `listed`. */
static uint32
find_listed(const CuckooBuilder *builder, uint64 number)
{
	return (uint32) bf_hashes_find(builder->numbers, builder->listed, number);
}

/* ----------------------------------------------------------------
 * The table
 * ----------------------------------------------------------------
 */

static uint8 *
allocate_slots(CuckooBuilder *builder, bf_table table)
{
	uint64		bytes = bf_table_words(table) * 8;

	filter_check_size(bytes + BF_LENGTH_WORD);
	return memory_alloc_zero(builder->base.context, (Size) bytes);
}

/* Enlarge a table and the capacity that goes with it; false if that cannot be. */
static bool
enlarge(bf_table *table, uint64 *capacity, unsigned growth)
{
	unsigned	bits = bf_table_growth_bits(*table, growth);
	bf_table	larger = {table->buckets << bits, (uint8) (table->slot_bits - bits)};

	if (bits == 0 || bf_table_words(larger) * 8 + 2 * BF_LINE_BYTES > BF_MAX_BYTES ||
		*capacity << bits > BF_MAX_CAPACITY)
		return false;
	*table = larger;
	*capacity <<= bits;
	return true;
}

/*
 * Make a table of the list, which was settled: as large as it has to be, and
 * with the numbers inserted in ascending order.  If the list is smaller than such
 * a table, it stays.
 */
static void
list_to_table(CuckooBuilder *builder)
{
	bf_layer   *layer = layer_of(builder);
	bf_table	table = layer->table;
	uint64		capacity = layer->capacity;
	uint64		used = 0;
	uint8	   *slots;
	uint8	   *placed;

	while (bf_table_full(table) < builder->listed && enlarge(&table, &capacity, builder->base.frame->growth))
		continue;
	if (bf_keep_counts(table, builder->listed))
	{
		filter_check_size(bf_table_words(table) * 8 + BF_LENGTH_WORD);
		layer->table = table;
		layer->capacity = capacity;
		return;
	}
	slots = allocate_slots(builder, table);
	placed = allocate(builder, builder->listed);
	for (uint32 i = 0; i < builder->listed; i++)
	{
		placed[i] = used < bf_table_full(table) && bf_table_insert(slots, table, builder->numbers[i]);
		used += placed[i];
		if (i % POLL_EVERY == 0)
			bf_poll();
	}

	/* nothing fails from here on */
	layer->table = table;
	layer->capacity = capacity;
	layer->form = BF_FORM_TABLE;
	builder->slots = slots;
	builder->used = used;
	for (uint32 i = 0; i < builder->listed; i++)
		builder->counts[i] -= placed[i];
	pfree(placed);
	compact_list(builder);
}

/* All numbers in the table: as many as it says, or it is damaged. */
static void
take_numbers(const CuckooBuilder *builder, uint64 *numbers)
{
	if (bf_table_numbers(builder->slots, builder->base.frame->layer[0].table, numbers, (Size) builder->used) != builder->used)
		filter_refuse_damaged("Its table does not hold as many keys as it says.");
}

/* The other way: take everything out of the table. */
static void
table_to_list(CuckooBuilder *builder)
{
	cuckoo_build_settle(builder);
	reserve_pending(builder, builder->used);
	take_numbers(builder, builder->pending);

	builder->pended = (uint32) builder->used;
	memory_free(builder->slots);
	builder->slots = NULL;
	builder->used = 0;
	layer_of(builder)->form = BF_FORM_COUNTS;
	cuckoo_build_settle(builder);
}

/*
 * Replace the table by one of the same range that is `table`, and move there
 * what is in the list for lack of a place.
 */
static void
move_to_table(CuckooBuilder *builder, bf_table table, uint64 capacity)
{
	bf_layer   *layer = layer_of(builder);
	uint8	   *slots;
	uint8	   *placed;
	uint64		moved;
	uint64		used;

	Assert(bf_table_range(table) == bf_table_range(layer->table));
	cuckoo_build_settle(builder);
	slots = allocate_slots(builder, table);
	placed = allocate(builder, builder->listed);
	used = moved = bf_table_move(builder->slots, layer->table, slots, table);
	for (uint32 i = 0; i < builder->listed; i++)
	{
		placed[i] = used < bf_table_full(table) &&
			!bf_table_find(builder->slots, layer->table, builder->numbers[i]) &&
			bf_table_insert(slots, table, builder->numbers[i]);
		used += placed[i];
		if (i % POLL_EVERY == 0)
			bf_poll();
	}
	if (moved < builder->used)
	{
		uint64		missing = builder->used - moved;

		reserve_pending(builder, missing);
		if (bf_table_missing(builder->slots, layer->table, slots, table, builder->pending, (Size) missing) != missing)
			filter_refuse_damaged("Its table does not hold as many keys as it says.");
		builder->pended = (uint32) missing;
	}

	/* nothing fails from here on */
	memory_free(builder->slots);
	builder->slots = slots;
	builder->used = used;
	layer->table = table;
	layer->capacity = capacity;
	for (uint32 i = 0; i < builder->listed; i++)
		builder->counts[i] -= placed[i];
	pfree(placed);
	compact_list(builder);
}

/* There are as many keys in the table as it takes: can it grow? */
static bool
grow(CuckooBuilder *builder)
{
	bf_layer   *layer = layer_of(builder);
	bf_table	table = layer->table;
	uint64		capacity = layer->capacity;

	if (!enlarge(&table, &capacity, builder->base.frame->growth))
		return false;
	move_to_table(builder, table, capacity);
	return true;
}

/* Replace each number by what `table` makes of it, which keeps their order. */
static void
renumber(CuckooBuilder *builder, bf_table table, unsigned drop_bits)
{
	for (uint32 i = 0; i < builder->listed; i++)
		builder->numbers[i] = drop_bits > 0 ? builder->numbers[i] >> drop_bits :
			bf_table_number(table, builder->numbers[i]);
	compact_list(builder);
	layer_of(builder)->table = table;
}

/* The list of an aggregate gets too long: choose a table for many more. */
static void
spill(CuckooBuilder *builder)
{
	bf_layer   *layer = layer_of(builder);
	double		fpp = builder->base.frame->fpp;
	bf_table	table;

	if (layer->capacity > 0)
		table = bf_table_for(layer->capacity, fpp, builder->base.frame->growth);
	else
	{
		table = bf_table_for(BF_MAX_LIST, fpp, 0);
		while (table.slot_bits < BF_MAX_SLOT_BITS && (double) bf_table_range(table) * fpp < (double) SPILL_KEYS &&
			   bf_table_range(table) < BF_MAX_RANGE / 2)
			table.slot_bits++;
	}
	renumber(builder, table, 0);
}

/* ----------------------------------------------------------------
 * Adding
 * ----------------------------------------------------------------
 */

/* Too many wait: sort them in, and go over to a table if that is due. */
void
cuckoo_build_make_room(CuckooBuilder *builder)
{
	bf_layer   *layer = layer_of(builder);

	cuckoo_build_settle(builder);
	reserve_pending(builder, Min(Max((uint64) builder->listed / 2, LEAST_PENDING), MOST_PENDING));
	if (builder->slots != NULL || bf_keep_counts(layer->table, builder->listed))
		return;
	if (layer->table.buckets == 0)
		spill(builder);
	list_to_table(builder);
}

/* Add one copy of a number when there is a table. */
void
cuckoo_build_add_to_table(CuckooBuilder *builder, uint64 number)
{
	if (builder->pended == builder->pending_room)
		cuckoo_build_make_room(builder);
	if (!bf_table_find(builder->slots, layer_of(builder)->table, number) &&
		builder->used >= bf_table_full(layer_of(builder)->table) && grow(builder) &&
		builder->pended == builder->pending_room)
		cuckoo_build_make_room(builder);

	/* growing may have moved the number into the table from the list */
	if (!bf_table_find(builder->slots, layer_of(builder)->table, number) &&
		builder->used < bf_table_full(layer_of(builder)->table) &&
		bf_table_insert(builder->slots, layer_of(builder)->table, number))
	{
		builder->used++;
		builder->placed = true;
	}
	else
		builder->pending[builder->pended++] = number;
}

static void
cuckoo_add_many(FilterBuilder *base, const uint64 *hashes, Size n)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	bf_layer   *layer = layer_of(builder);

	for (Size i = 0; i < n; i++)
	{
		if (builder->slots != NULL && i + BF_BATCH < n)
			bf_table_prefetch(builder->slots, layer->table, bf_table_number(layer->table, hashes[i + BF_BATCH]));
		cuckoo_build_add(builder, hashes[i]);
		if (i % POLL_EVERY == 0)
			bf_poll();
	}
}

/* ----------------------------------------------------------------
 * Asking and removing
 * ----------------------------------------------------------------
 */

static bool
cuckoo_build_contains(FilterBuilder *base, uint64 hash)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	bf_table	table = layer_of(builder)->table;
	uint64		number = bf_table_number(table, hash);
	uint32		place;

	if (builder->slots != NULL && bf_table_find(builder->slots, table, number))
		return true;
	if (builder->pended > FEW_PENDING)
		cuckoo_build_settle(builder);
	for (uint32 i = 0; i < builder->pended; i++)
	{
		if (builder->pending[i] == number)
			return true;
	}
	place = find_listed(builder, number);
	return place < builder->listed && builder->counts[place] > 0;
}

/*
 * Remove one copy of a key, if there is one.  A count that has reached its limit
 * stays there: nobody knows how many copies there are.
 */
void
cuckoo_build_remove(CuckooBuilder *builder, uint64 hash)
{
	bf_table	table = layer_of(builder)->table;
	uint64		number = bf_table_number(table, hash);
	bool		in_table;
	uint32		place;
	unsigned	listed;

	if (builder->pended > 0)
		cuckoo_build_settle(builder);
	in_table = builder->slots != NULL && bf_table_find(builder->slots, table, number);
	place = find_listed(builder, number);
	listed = place < builder->listed ? builder->counts[place] : 0;
	if (listed + in_table >= BF_MAX_COUNT)
		return;
	if (listed > 0)
	{
		builder->counts[place]--;
		builder->holes |= builder->counts[place] == 0;
	}
	else if (in_table)
	{
		bf_table_remove(builder->slots, table, number);
		builder->used--;
	}
}

/* ----------------------------------------------------------------
 * Merging
 * ----------------------------------------------------------------
 */

/*
 * Add all that a filter holds: numbers, which are ours too but for the lowest
 * `drop_bits` bits, or hashes if it is unfinished.
 */
static void
add_filter(CuckooBuilder *builder, const bf_filter *filter, unsigned drop_bits)
{
	const bf_layer *from = &filter->layer[0];
	const uint8 *counts = from->list + (Size) from->count * 8;

	check_listed(from);
	if (from->form == BF_FORM_TABLE)
	{
		uint64_t	number;
		uint64		n = 0;

		for (uint64_t slot = 0; bf_table_next(from->data, from->table, &slot, &number);)
		{
			if (builder->pended == builder->pending_room)
				cuckoo_build_make_room(builder);
			cuckoo_build_add_number(builder, number >> drop_bits);
			if (n++ % POLL_EVERY == 0)
				bf_poll();
		}
	}
	for (uint32 i = 0; i < from->count; i++)
	{
		uint64		value = bf_load64(from->list + (Size) i * 8) >> drop_bits;

		for (unsigned copy = 0; copy < counts[i]; copy++)
		{
			if (from->table.buckets == 0)
			{
				cuckoo_build_add(builder, value);
				continue;
			}
			if (builder->pended == builder->pending_room)
				cuckoo_build_make_room(builder);
			cuckoo_build_add_number(builder, value);
		}
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
}

/* Is it a state of the same aggregate call? */
static bool
cuckoo_can_merge(FilterBuilder *base, const bf_filter *state)
{
	const bf_layer *ours = &base->frame->layer[0];
	const bf_layer *other = &state->layer[0];

	if (state->fpp != base->frame->fpp || state->growth != base->frame->growth)
		return false;
	if (ours->table.buckets > 0 && other->table.buckets > 0)
		return bf_table_range(ours->table) == bf_table_range(other->table);
	return ours->table.buckets > 0 || other->table.buckets > 0 || ours->capacity == other->capacity;
}

/* Merge such a state. */
static void
cuckoo_merge_state(FilterBuilder *base, const bf_filter *state)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	bf_layer   *layer = layer_of(builder);

	if (layer->table.buckets == 0 && state->layer[0].table.buckets > 0)
	{
		/* it has spilled already, so we have to */
		cuckoo_build_settle(builder);
		renumber(builder, state->layer[0].table, 0);
		layer->capacity = state->layer[0].capacity;
	}
	add_filter(builder, state, 0);
}

/*
 * Merge another filter of the same range of numbers into one.  The table
 * becomes as large as the larger one, so that the order does not matter.
 */
void
cuckoo_build_merge_filter(CuckooBuilder *builder, const bf_filter *filter)
{
	bf_layer   *layer = layer_of(builder);
	const bf_layer *other = &filter->layer[0];

	if (other->table.buckets == layer->table.buckets)
		layer->capacity = Max(layer->capacity, other->capacity);
	else if (other->table.buckets > layer->table.buckets)
	{
		if (builder->slots != NULL)
			move_to_table(builder, other->table, other->capacity);
		layer->table = other->table;
		layer->capacity = other->capacity;
	}
	add_filter(builder, filter, 0);
}

/*
 * Forget the order in which keys came: take all out of the table, from where
 * build_describe puts them back in ascending order.  That takes 17 bytes a key, so
 * very large filters are left as they are.
 */
void
cuckoo_build_sort(CuckooBuilder *builder)
{
	if (builder->slots != NULL && builder->used <= BF_MAX_LIST)
		table_to_list(builder);
}

/* ----------------------------------------------------------------
 * Finishing
 * ----------------------------------------------------------------
 */

/* How many distinct numbers are in the table and in the list that was settled? */
static uint64
count_distinct(CuckooBuilder *builder)
{
	uint64		distinct = builder->used;

	for (uint32 i = 0; i < builder->listed; i++)
		distinct += builder->slots == NULL ||
			!bf_table_find(builder->slots, layer_of(builder)->table, builder->numbers[i]);
	return distinct;
}

static uint64
cuckoo_describe(FilterBuilder *base, bf_filter *filter)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	bf_layer   *layer = layer_of(builder);

	cuckoo_build_settle(builder);
	if (builder->slots == NULL)
	{
		if (!bf_keep_counts(layer->table, builder->listed))
		{
			if (layer->table.buckets == 0)
				spill(builder);
			list_to_table(builder);
		}
	}
	else if (bf_keep_counts(layer->table, builder->used) && bf_keep_counts(layer->table, count_distinct(builder)))
		table_to_list(builder);
	layer->form = builder->slots != NULL ? BF_FORM_TABLE : BF_FORM_COUNTS;
	layer->used = builder->used;
	layer->count = builder->listed;
	memcpy(filter, base->frame, frame_size(1));
	return bf_filter_size(filter);
}

static void
cuckoo_write(FilterBuilder *base, bf_filter *filter, uint8 *bytes, Size n)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	bf_layer   *layer = &filter->layer[0];

	bf_filter_write(filter, bytes, n);
	if (layer->form == BF_FORM_TABLE)
		memcpy(layer->data, builder->slots, (Size) bf_table_words(layer->table) * 8);
	bf_list_write(layer->list, builder->numbers, layer->count);
	if (layer->count > 0)
		memcpy(layer->list + (Size) layer->count * 8, builder->counts, layer->count);
}

/* The hashes of a builder that holds few and nothing else: a flat state. */
static int64
cuckoo_hashes(FilterBuilder *base, const uint64 **hashes)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	uint64	   *copies;
	uint64		n = 0;

	if (layer_of(builder)->table.buckets > 0)
		return -1;
	cuckoo_build_settle(builder);
	for (uint32 i = 0; i < builder->listed; i++)
		n += builder->counts[i];
	if (n > BF_POLL_EVERY)
		return -1;				/* no matter how many */
	copies = palloc(sizeof(uint64) * Max(n, 1));
	n = 0;
	for (uint32 i = 0; i < builder->listed; i++)
	{
		for (unsigned j = 0; j < builder->counts[i]; j++)
			copies[n++] = builder->numbers[i];
	}
	*hashes = copies;
	return (int64) n;
}

/*
 * The finished filter of an aggregate with a table of more keys than are sorted:
 * moved to another table, with as many bits as are needed.
 */
static struct varlena *
finish_large(CuckooBuilder *builder, const bf_filter *state)
{
	bf_filter	filter;
	bf_layer   *layer = &filter.layer[0];
	CuckooBuilder finished;
	unsigned	spare = 0;

	memcpy(&filter, state, frame_size(1));
	layer->data = builder->slots;
	layer->list = allocate(builder, (Size) bf_counts_bytes(builder->listed));
	bf_list_write(layer->list, builder->numbers, builder->listed);
	if (builder->listed > 0)
		memcpy(layer->list + (Size) builder->listed * 8, builder->counts, builder->listed);
	if (layer->capacity == 0)
		spare = bf_table_spare_bits(layer->table, builder->used, filter.fpp, filter.growth);

	cuckoo_build_start(&finished, CurrentMemoryContext,
					   (bf_table) {layer->table.buckets, (uint8) (layer->table.slot_bits - spare)},
					   layer->capacity > 0 ? layer->capacity : bf_table_full(layer->table), filter.fpp);
	finished.base.frame->growth = filter.growth;
	filter_set_class(finished.base.frame, &(KeyClass) {filter.scheme, filter.key_class, filter.name_length, filter.name});
	finished.slots = allocate_slots(&finished, layer_of(&finished)->table);
	add_filter(&finished, &filter, spare);
	pfree(layer->list);
	return build_flat(&finished.base);
}

/*
 * The finished filter, of a copy: a window frame may go on adding to the
 * builder.
 */
static struct varlena *
cuckoo_finish(FilterBuilder *base)
{
	CuckooBuilder *builder = (CuckooBuilder *) base;
	CuckooBuilder finished;
	bf_layer   *layer;
	bf_filter	filter;
	double		fpp = base->frame->fpp;
	unsigned	growth = base->frame->growth;

	cuckoo_describe(base, &filter);
	if (builder->slots != NULL && builder->used > BF_MAX_LIST)
		return finish_large(builder, &filter);
	memset(&finished, 0, sizeof(finished));
	build_copy_frame(&finished.base, &cuckoo_methods, CurrentMemoryContext, &filter);
	layer = layer_of(&finished);
	reserve_list(&finished, Max((uint64) builder->listed, 1));
	if (builder->listed > 0)
	{
		memcpy(finished.numbers, builder->numbers, sizeof(uint64) * builder->listed);
		memcpy(finished.counts, builder->counts, builder->listed);
	}
	finished.listed = builder->listed;
	finished.pending = allocate(&finished, sizeof(uint64) * Max(builder->used, LEAST_PENDING));
	finished.pending_room = (uint32) Max(builder->used, LEAST_PENDING);
	if (builder->slots != NULL)
	{
		take_numbers(builder, finished.pending);
		finished.pended = (uint32) builder->used;
		layer->form = BF_FORM_COUNTS;
		cuckoo_build_settle(&finished);
	}

	if (layer->table.buckets == 0)
	{
		if (layer->capacity == 0)
			layer->capacity = Max(finished.listed, 1);
		renumber(&finished, bf_table_for(layer->capacity, fpp, growth), 0);
	}
	else if (layer->capacity == 0)
	{
		/* a table that was made for many: fit it to those that came */
		unsigned	spare = bf_table_spare_bits(layer->table, finished.listed, fpp, growth);
		bf_table	table = {layer->table.buckets, (uint8) (layer->table.slot_bits - spare)};

		if (spare > 0)
			renumber(&finished, table, spare);
		layer->capacity = bf_table_full(table);
	}
	return build_flat(&finished.base);
}

const BuilderMethods cuckoo_methods = {
	.type = {BF_KIND_CUCKOO, "cuckoo"},
	.load = cuckoo_load,
	.add_many = cuckoo_add_many,
	.contains = cuckoo_build_contains,
	.describe = cuckoo_describe,
	.write = cuckoo_write,
	.start = cuckoo_start_aggregate,
	.hashes = cuckoo_hashes,
	.can_merge = cuckoo_can_merge,
	.merge = cuckoo_merge_state,
	.finish = cuckoo_finish
};
