/*
 * cuckoo.c
 *		The mutable cuckoo filter: adding, removing and testing keys, writing.
 *
 * Cuckoo filters are from Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter:
 * Practically Better Than Bloom", 2014; table.h says what differs here.
 *
 * A small filter is a list of numbers with a count for each; a table replaces the
 * list once it is smaller.  A table can be read back into a list, so the form
 * depends on the content alone.  In filters that are built at once (by aggregates
 * and merges) the place of each number in the table does as well, because
 * numbers are inserted in ascending order.
 *
 * Aggregates first collect whole hashes, in a list without a table, and choose the
 * range of numbers at the end.
 *
 * There is always one table.  With several, deleting a key could remove the
 * fingerprint of another key from the wrong table.
 *
 * A procedural language may catch an error, such as a cancel, and continue to use the
 * filter.  So all operations that can fail (allocations, polls, limits) come before the
 * first visible change: a single key is added or removed, or not.  For many keys see
 * mutable.c.
 */
#include "cuckoo.h"
#include "lines.h"

/* The least and the most room for pending copies; the most is 8 MB. */
#define LEAST_PENDING		8
#define MOST_PENDING		(1024 * 1024)

/* Numbers inserted between two polls: in a full table each may take MAX_KICKS. */
#define POLL_EVERY			4096

/* The most pending copies that a test compares one by one. */
#define FEW_PENDING			64

/* Keys that are changed without a poll when that must not fail: 30 ms. */
#define MOST_WITHOUT_POLL	65536

/*
 * An aggregate with more than BF_MAX_LIST keys uses a table for this number of
 * keys, and drops the bits that turn out not to be needed at the end.
 */
#define SPILL_KEYS			(UINT64_C(1) << 28)

static void
check_bytes(const bf_cuckoo *cuckoo, uint64_t bytes)
{
	if (bytes + BF_LENGTH_WORD > BF_MAX_BYTES)
		bf_fail(cuckoo->header.host, BF_FAIL_BYTES, bytes + BF_LENGTH_WORD, NULL);
}

static void
refuse_damaged_table(const bf_cuckoo *cuckoo)
{
	bf_fail(cuckoo->header.host, BF_FAIL_DAMAGED, 0, "The number of keys in its table does not match the stored count.");
}

/* ----------------------------------------------------------------
 * Starting and loading
 * ----------------------------------------------------------------
 */

static void
start_empty(bf_cuckoo *cuckoo, const bf_header *header, bf_host host, bf_table table, uint64_t capacity)
{
	memset(cuckoo, 0, sizeof(*cuckoo));
	bf_header_copy(&cuckoo->header, header, host);
	cuckoo->table = table;
	cuckoo->capacity = capacity;
	bf_accumulator_start(host, &cuckoo->pending, LEAST_PENDING);
}

/* Start an empty filter.  A table without buckets is chosen at the end. */
void
bf_cuckoo_start(bf_cuckoo *cuckoo, bf_host host, bf_table table, uint64_t capacity, double fpp)
{
	bf_header	header = {.kind = BF_KIND_CUCKOO, .growth = BF_DEFAULT_GROWTH, .fpp = fpp};

	start_empty(cuckoo, &header, host, table, capacity);
}

/* Start the state of an aggregate.  Capacity 0 is chosen at the end, too. */
void
bf_cuckoo_start_state(bf_cuckoo *cuckoo, bf_host host, uint64_t capacity, double fpp)
{
	bf_cuckoo_start(cuckoo, host, (bf_table) {0, 0}, capacity, fpp);
	if (capacity > 0)
		check_bytes(cuckoo, bf_table_words(bf_table_for(capacity, fpp, BF_DEFAULT_GROWTH)) * 8 + 2 * BF_LINE_BYTES);
}

/*
 * Check the numbers in the list of a filter that was opened.  Opening checks all
 * that probing needs, but numbers of a damaged list could lead outside of a table
 * when they are inserted.
 */
void
bf_cuckoo_check_listed(const bf_cuckoo *cuckoo, const bf_layer *layer)
{
	for (uint32_t i = 0; layer->table.buckets > 0 && i < layer->count; i++)
	{
		if (bf_load64(layer->list + (size_t) i * 8) >= bf_table_range(layer->table))
			bf_fail(cuckoo->header.host, BF_FAIL_DAMAGED, 0, "A number in its list is out of range.");
	}
}

/* Load a filter; its bytes are copied. */
void
bf_cuckoo_load(bf_cuckoo *cuckoo, bf_host host, const bf_filter *filter)
{
	const bf_layer *from = &filter->layer[0];

	start_empty(cuckoo, &filter->header, host, from->table, from->capacity);
	bf_cuckoo_check_listed(cuckoo, from);
	cuckoo->numbers = bf_allocate(host, sizeof(uint64_t) * (uint64_t) from->count);
	cuckoo->counts = bf_allocate(host, from->count);
	cuckoo->listed = cuckoo->list_room = from->count;
	bf_list_read(cuckoo->numbers, from->list, from->count);
	memcpy(cuckoo->counts, from->list + (size_t) from->count * 8, from->count);
	if (from->form == BF_FORM_TABLE)
	{
		uint64_t	bytes = bf_table_words(from->table) * 8;

		cuckoo->slots = bf_allocate(host, bytes);
		memcpy(cuckoo->slots, from->data, (size_t) bytes);
		cuckoo->used = from->used;
	}
}

void
bf_cuckoo_free(bf_cuckoo *cuckoo)
{
	bf_host		host = cuckoo->header.host;

	bf_release(host, cuckoo->slots);
	bf_release(host, cuckoo->numbers);
	bf_release(host, cuckoo->counts);
	bf_accumulator_free(host, &cuckoo->pending);
	bf_release(host, (void *) cuckoo->header.class.name);
	memset(cuckoo, 0, sizeof(*cuckoo));
}

bool
bf_cuckoo_is_empty(const bf_cuckoo *cuckoo)
{
	for (uint32_t i = 0; i < cuckoo->listed; i++)
	{
		if (cuckoo->counts[i] > 0)
			return false;
	}
	return cuckoo->used == 0 && cuckoo->pending.n == 0;
}

/* ----------------------------------------------------------------
 * The list
 * ----------------------------------------------------------------
 */

/* Make room for this number of entries. */
static void
reserve_list(bf_cuckoo *cuckoo, uint64_t room)
{
	bf_host		host = cuckoo->header.host;
	uint64_t	old = cuckoo->list_room;

	if (room <= old)
		return;
	if (room > UINT32_MAX)
		check_bytes(cuckoo, room * 9);
	room = room > old * 3 / 2 ? room : old * 3 / 2;
	room = room < UINT32_MAX ? room : UINT32_MAX;
	if (cuckoo->numbers == NULL)
		cuckoo->numbers = bf_allocate(host, 1);
	if (cuckoo->counts == NULL)
		cuckoo->counts = bf_allocate(host, 1);
	cuckoo->numbers = bf_reallocate(host, cuckoo->numbers, sizeof(uint64_t) * old, sizeof(uint64_t) * room);
	cuckoo->counts = bf_reallocate(host, cuckoo->counts, old, room);
	cuckoo->list_room = (uint32_t) room;
}

static inline unsigned
add_counts(unsigned a, unsigned b)
{
	return a + b < BF_MAX_COUNT ? a + b : BF_MAX_COUNT;
}

/* Merge entries of the same number, and drop those without copies. */
static void
cuckoo_compact_list(bf_cuckoo *cuckoo)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < cuckoo->listed; i++)
	{
		if (cuckoo->counts[i] == 0)
			continue;
		if (n > 0 && cuckoo->numbers[n - 1] == cuckoo->numbers[i])
			cuckoo->counts[n - 1] = (uint8_t) add_counts(cuckoo->counts[n - 1], cuckoo->counts[i]);
		else
		{
			cuckoo->numbers[n] = cuckoo->numbers[i];
			cuckoo->counts[n] = cuckoo->counts[i];
			n++;
		}
	}
	cuckoo->listed = n;
	cuckoo->has_holes = false;
}

/*
 * Limit the copies of each number to BF_MAX_COUNT, including the one in the table.
 * The list alone can count that many.
 */
static void
cuckoo_cap_counts(bf_cuckoo *cuckoo)
{
	cuckoo->was_placed = false;
	if (cuckoo->slots == NULL)
		return;
	for (uint32_t i = 0; i < cuckoo->listed; i++)
	{
		if (cuckoo->counts[i] == BF_MAX_COUNT &&
			bf_table_find(cuckoo->slots, cuckoo->table, cuckoo->numbers[i]))
			cuckoo->counts[i]--;
	}
}

/* Merge the pending copies, which are sorted, into the list, in place from its end. */
static void
cuckoo_insert_pending(bf_cuckoo *cuckoo, uint32_t runs)
{
	const uint64_t *pending = cuckoo->pending.hashes;
	uint64_t	old = cuckoo->listed;
	uint64_t	fresh = cuckoo->pending.n;
	uint64_t	end = old + runs;

	while (fresh > 0)
	{
		if (old > 0 && cuckoo->numbers[old - 1] > pending[fresh - 1])
		{
			old--;
			end--;
			cuckoo->numbers[end] = cuckoo->numbers[old];
			cuckoo->counts[end] = cuckoo->counts[old];
		}
		else
		{
			uint64_t	number = pending[fresh - 1];
			unsigned	copies = 0;

			for (; fresh > 0 && pending[fresh - 1] == number; fresh--)
				copies = add_counts(copies, 1);
			end--;
			cuckoo->numbers[end] = number;
			cuckoo->counts[end] = (uint8_t) copies;
		}
	}
	bf_assert(end == old);
	cuckoo->pending.n = 0;
	cuckoo->listed += runs;
}

/*
 * Sort the first n pending copies, and reserve room in the list for them.  Returns
 * the number of distinct ones.
 */
static uint32_t
cuckoo_prepare_pending(bf_cuckoo *cuckoo, uint64_t n)
{
	uint64_t   *pending = cuckoo->pending.hashes;
	uint32_t	runs = 0;

	bf_hashes_sort(cuckoo->header.host, pending, (size_t) n);
	for (uint64_t i = 0; i < n; i++)
	{
		runs += i == 0 || pending[i] != pending[i - 1];
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(cuckoo->header.host);
	}
	reserve_list(cuckoo, (uint64_t) cuckoo->listed + runs);
	return runs;
}

/* Merge the pending copies into the list, and compact it. */
void
bf_cuckoo_merge_pending(bf_cuckoo *cuckoo)
{
	bool		all_new = cuckoo->listed == 0;

	if (cuckoo->pending.n > 0)
	{
		uint32_t	runs = cuckoo_prepare_pending(cuckoo, cuckoo->pending.n);

		/* nothing fails from here on */
		cuckoo_insert_pending(cuckoo, runs);
		cuckoo->has_holes = !all_new;
		cuckoo->was_placed = true;
	}
	if (cuckoo->has_holes)
		cuckoo_compact_list(cuckoo);
	if (cuckoo->was_placed)
		cuckoo_cap_counts(cuckoo);
}

/* The place of a number in the list, or `listed`. */
static uint32_t
cuckoo_find_listed(const bf_cuckoo *cuckoo, uint64_t number)
{
	return (uint32_t) bf_hashes_find(cuckoo->numbers, cuckoo->listed, number);
}

/*
 * Change the range of numbers, which keeps their order: hashes become numbers of
 * `table`, and numbers lose their lowest drop_bits bits.
 */
void
bf_cuckoo_renumber(bf_cuckoo *cuckoo, bf_table table, unsigned drop_bits)
{
	for (uint32_t i = 0; i < cuckoo->listed; i++)
		cuckoo->numbers[i] = drop_bits > 0 ? cuckoo->numbers[i] >> drop_bits :
			bf_table_number(table, cuckoo->numbers[i]);
	cuckoo_compact_list(cuckoo);
	cuckoo->table = table;
}

/* ----------------------------------------------------------------
 * The table
 * ----------------------------------------------------------------
 */

static uint8_t *
allocate_slots(const bf_cuckoo *cuckoo, bf_table table)
{
	uint64_t	bytes = bf_table_words(table) * 8;

	check_bytes(cuckoo, bytes);
	return bf_allocate_zero(cuckoo->header.host, bytes);
}

/* Enlarge a table and its capacity; false if it cannot grow. */
static bool
enlarge(bf_table *table, uint64_t *capacity, unsigned growth)
{
	unsigned	bits = bf_table_growth_bits(*table, growth);
	bf_table	larger = {table->buckets << bits, (uint8_t) (table->slot_bits - bits)};

	if (bits == 0 || bf_table_words(larger) * 8 + 2 * BF_LINE_BYTES > BF_MAX_BYTES ||
		*capacity << bits > BF_MAX_CAPACITY)
		return false;
	*table = larger;
	*capacity <<= bits;
	return true;
}

/*
 * Insert numbers of the list into a new table that has `used` numbers so far,
 * those that are in the present table left out.  Which of them got a slot is
 * noted in *placed; returns how many the new table has then.
 */
static uint64_t
cuckoo_place_listed(const bf_cuckoo *cuckoo, uint8_t *slots, bf_table table, uint64_t used, uint8_t **placed)
{
	*placed = bf_allocate(cuckoo->header.host, cuckoo->listed);
	for (uint32_t i = 0; i < cuckoo->listed; i++)
	{
		(*placed)[i] = used < bf_table_full(table) &&
			!(cuckoo->slots != NULL && bf_table_find(cuckoo->slots, cuckoo->table, cuckoo->numbers[i])) &&
			bf_table_insert(slots, table, cuckoo->numbers[i]);
		used += (*placed)[i];
		if (i % POLL_EVERY == 0)
			bf_poll(cuckoo->header.host);
	}
	return used;
}

/* Replace the table, if there is one, by another.  Nothing fails here. */
static void
install_table(bf_cuckoo *cuckoo, uint8_t *slots, bf_table table, uint64_t capacity, uint64_t used, uint8_t *placed)
{
	bf_release(cuckoo->header.host, cuckoo->slots);
	cuckoo->slots = slots;
	cuckoo->used = used;
	cuckoo->table = table;
	cuckoo->capacity = capacity;
	for (uint32_t i = 0; i < cuckoo->listed; i++)
		cuckoo->counts[i] -= placed[i];
	bf_release(cuckoo->header.host, placed);
	cuckoo_compact_list(cuckoo);
}

/*
 * Make a table of the list, which is as large as the list requires; nothing is
 * pending.  Numbers are inserted in ascending order.  If the list is smaller than
 * such a table, it stays.
 */
static void
cuckoo_list_to_table(bf_cuckoo *cuckoo)
{
	bf_table	table = cuckoo->table;
	uint64_t	capacity = cuckoo->capacity;
	uint64_t	used;
	uint8_t    *slots;
	uint8_t    *placed;

	while (bf_table_full(table) < cuckoo->listed && enlarge(&table, &capacity, cuckoo->header.growth))
		continue;
	check_bytes(cuckoo, bf_table_words(table) * 8);
	if (bf_keep_counts(table, cuckoo->listed))
	{
		cuckoo->table = table;
		cuckoo->capacity = capacity;
		return;
	}
	slots = allocate_slots(cuckoo, table);
	used = cuckoo_place_listed(cuckoo, slots, table, 0, &placed);
	install_table(cuckoo, slots, table, capacity, used, placed);
}

/*
 * Copy all numbers of a table to the pending copies of a filter, which has none.
 * If they are not as many as the table says, it is damaged.
 */
static void
cuckoo_take_numbers(bf_cuckoo *cuckoo, const bf_cuckoo *from)
{
	uint64_t	number;
	uint64_t	n = 0;

	bf_accumulator_reserve(cuckoo->header.host, &cuckoo->pending, from->used);
	for (uint64_t slot = 0; bf_table_next(cuckoo->header.host, from->slots, from->table, &slot, &number); n++)
	{
		if (n < from->used)
			cuckoo->pending.hashes[n] = number;
	}
	if (n != from->used)
		refuse_damaged_table(cuckoo);
}

/* Move all numbers from the table to the list. */
void
bf_cuckoo_table_to_list(bf_cuckoo *cuckoo)
{
	uint32_t	runs;

	bf_cuckoo_merge_pending(cuckoo);
	cuckoo_take_numbers(cuckoo, cuckoo);
	runs = cuckoo_prepare_pending(cuckoo, cuckoo->used);

	/* nothing fails from here on */
	bf_release(cuckoo->header.host, cuckoo->slots);
	cuckoo->slots = NULL;
	cuckoo->pending.n = cuckoo->used;
	cuckoo->used = 0;
	cuckoo_insert_pending(cuckoo, runs);
	cuckoo_compact_list(cuckoo);
}

/*
 * Replace the table by another one of the same range, and move numbers there from
 * the list that had found no place before.  Numbers that find no place in the new
 * table are pending afterwards.
 */
void
bf_cuckoo_move_to_table(bf_cuckoo *cuckoo, bf_table table, uint64_t capacity)
{
	bf_host		host = cuckoo->header.host;
	uint64_t	used = 0;
	uint64_t	n = 0;
	uint64_t	number;
	uint8_t    *slots;
	uint8_t    *placed;

	bf_assert(bf_table_range(table) == bf_table_range(cuckoo->table));
	bf_cuckoo_merge_pending(cuckoo);
	slots = allocate_slots(cuckoo, table);
	for (uint64_t slot = 0; bf_table_next(host, cuckoo->slots, cuckoo->table, &slot, &number); n++)
	{
		if (bf_table_insert(slots, table, number))
			used++;
		else
		{
			/* with room for the key that made the table grow */
			if (n - used + 1 >= cuckoo->pending.room)
				bf_accumulator_reserve(cuckoo->header.host, &cuckoo->pending, (n - used + 1) * 2);
			cuckoo->pending.hashes[n - used] = number;
		}
		if (n % POLL_EVERY == 0)
			bf_poll(host);
	}
	if (n != cuckoo->used)
		refuse_damaged_table(cuckoo);
	n -= used;
	used = cuckoo_place_listed(cuckoo, slots, table, used, &placed);

	/* nothing fails from here on */
	install_table(cuckoo, slots, table, capacity, used, placed);
	cuckoo->pending.n = n;
}

/* Enlarge the table, which is full, if it can grow. */
static void
cuckoo_grow(bf_cuckoo *cuckoo)
{
	bf_table	table = cuckoo->table;
	uint64_t	capacity = cuckoo->capacity;

	if (enlarge(&table, &capacity, cuckoo->header.growth))
		bf_cuckoo_move_to_table(cuckoo, table, capacity);
}

/* Choose a table for an aggregate whose list is too long. */
static void
cuckoo_spill(bf_cuckoo *cuckoo)
{
	double		fpp = cuckoo->header.fpp;
	bf_table	table;

	if (cuckoo->capacity > 0)
		table = bf_table_for(cuckoo->capacity, fpp, cuckoo->header.growth);
	else
	{
		table = bf_table_for(BF_MAX_LIST, fpp, 0);
		while (table.slot_bits < BF_MAX_SLOT_BITS && (double) bf_table_range(table) * fpp < (double) SPILL_KEYS &&
			   bf_table_range(table) < BF_MAX_RANGE / 2)
			table.slot_bits++;
	}
	bf_cuckoo_renumber(cuckoo, table, 0);
}

/* Replace the list by a table if it has become too long. */
static void
choose_form(bf_cuckoo *cuckoo)
{
	if (cuckoo->slots != NULL || bf_keep_counts(cuckoo->table, cuckoo->listed))
		return;
	if (cuckoo->table.buckets == 0)
		cuckoo_spill(cuckoo);
	cuckoo_list_to_table(cuckoo);
}

/* ----------------------------------------------------------------
 * Adding
 * ----------------------------------------------------------------
 */

/* Make room for pending copies: merge them into the list, and replace it if it is too long. */
void
bf_cuckoo_make_room(bf_cuckoo *cuckoo)
{
	uint64_t	room;

	bf_cuckoo_merge_pending(cuckoo);
	room = cuckoo->listed / 2 > LEAST_PENDING ? cuckoo->listed / 2 : LEAST_PENDING;
	bf_accumulator_reserve(cuckoo->header.host, &cuckoo->pending, room < MOST_PENDING ? room : MOST_PENDING);
	choose_form(cuckoo);
}

/* Add one copy of a number when there is a table. */
void
bf_cuckoo_add_to_table(bf_cuckoo *cuckoo, uint64_t number)
{
	if (bf_accumulator_is_full(&cuckoo->pending))
		bf_cuckoo_make_room(cuckoo);
	if (cuckoo->used >= bf_table_full(cuckoo->table) && !bf_table_find(cuckoo->slots, cuckoo->table, number))
		cuckoo_grow(cuckoo);

	/* growing may have moved the number into the table from the list */
	if (!bf_table_find(cuckoo->slots, cuckoo->table, number) &&
		cuckoo->used < bf_table_full(cuckoo->table) &&
		bf_table_insert(cuckoo->slots, cuckoo->table, number))
	{
		cuckoo->used++;
		cuckoo->was_placed = true;
	}
	else
		bf_accumulator_add(&cuckoo->pending, number);
}

/* Add one copy of each key. */
void
bf_cuckoo_add_many(bf_cuckoo *cuckoo, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		if (cuckoo->slots != NULL && i + BF_BATCH < n)
			bf_table_prefetch(cuckoo->slots, cuckoo->table, bf_table_number(cuckoo->table, hashes[i + BF_BATCH]));
		bf_cuckoo_add(cuckoo, hashes[i]);
		if (i % POLL_EVERY == POLL_EVERY - 1)
			bf_poll(cuckoo->header.host);
	}
}

/*
 * Reserve memory so that adding n keys cannot fail.  False, and nothing that can be
 * observed has changed, if that cannot be guaranteed.
 */
bool
bf_cuckoo_reserve(bf_cuckoo *cuckoo, size_t n)
{
	bf_table	larger = cuckoo->table;
	uint64_t	capacity = cuckoo->capacity;

	if (n >= MOST_WITHOUT_POLL)
		return false;
	if (cuckoo->pending.n + n > cuckoo->pending.room)
	{
		bf_cuckoo_make_room(cuckoo);
		bf_accumulator_reserve(cuckoo->header.host, &cuckoo->pending, cuckoo->pending.n + n);
	}
	return cuckoo->slots == NULL || cuckoo->used + n <= bf_table_full(cuckoo->table) ||
		!enlarge(&larger, &capacity, cuckoo->header.growth);
}

/* ----------------------------------------------------------------
 * Testing and removing
 * ----------------------------------------------------------------
 */

bool
bf_cuckoo_contains(bf_cuckoo *cuckoo, uint64_t hash)
{
	uint64_t	number = bf_table_number(cuckoo->table, hash);
	uint32_t	place;

	if (cuckoo->slots != NULL && bf_table_find(cuckoo->slots, cuckoo->table, number))
		return true;
	if (cuckoo->pending.n > FEW_PENDING)
		bf_cuckoo_merge_pending(cuckoo);
	for (uint64_t i = 0; i < cuckoo->pending.n; i++)
	{
		if (cuckoo->pending.hashes[i] == number)
			return true;
	}
	place = cuckoo_find_listed(cuckoo, number);
	return place < cuckoo->listed && cuckoo->counts[place] > 0;
}

/* Count the copies of a number; none are pending. */
unsigned
bf_cuckoo_copies(const bf_cuckoo *cuckoo, uint64_t number)
{
	uint32_t	place = cuckoo_find_listed(cuckoo, number);

	bf_assert(cuckoo->pending.n == 0);
	return (place < cuckoo->listed ? cuckoo->counts[place] : 0) +
		(cuckoo->slots != NULL && bf_table_find(cuckoo->slots, cuckoo->table, number));
}

/*
 * Remove copies of a number, or all if there are fewer; none are pending.  A count
 * that has reached its limit stays: the true number of copies is unknown.
 */
void
bf_cuckoo_remove_copies(bf_cuckoo *cuckoo, uint64_t number, unsigned copies)
{
	bool		in_table = cuckoo->slots != NULL && bf_table_find(cuckoo->slots, cuckoo->table, number);
	uint32_t	place = cuckoo_find_listed(cuckoo, number);
	unsigned	listed = place < cuckoo->listed ? cuckoo->counts[place] : 0;
	unsigned	from_list = copies < listed ? copies : listed;

	bf_assert(cuckoo->pending.n == 0);
	if (listed + in_table >= BF_MAX_COUNT)
		return;
	if (from_list > 0)
	{
		cuckoo->counts[place] = (uint8_t) (listed - from_list);
		cuckoo->has_holes |= cuckoo->counts[place] == 0;
	}
	if (in_table && copies > from_list)
	{
		bf_table_remove(cuckoo->slots, cuckoo->table, number);
		cuckoo->used--;
	}
}

/* Remove one copy of each key. */
void
bf_cuckoo_remove_many(bf_cuckoo *cuckoo, const uint64_t *hashes, size_t n)
{
	bf_cuckoo_merge_pending(cuckoo);
	for (size_t i = 0; i < n; i++)
	{
		bf_cuckoo_remove_copies(cuckoo, bf_table_number(cuckoo->table, hashes[i]), 1);
		if (i % BF_POLL_EVERY == BF_POLL_EVERY - 1)
			bf_poll(cuckoo->header.host);
	}
}

/* Make sure that removing n keys cannot fail.  False if that cannot be guaranteed. */
bool
bf_cuckoo_reserve_removal(bf_cuckoo *cuckoo, size_t n)
{
	if (n >= MOST_WITHOUT_POLL)
		return false;
	bf_cuckoo_merge_pending(cuckoo);
	return true;
}

/* ----------------------------------------------------------------
 * Adding what other filters hold
 * ----------------------------------------------------------------
 */

/* Add copies of a number of this filter's range. */
void
bf_cuckoo_add_copies(bf_cuckoo *cuckoo, uint64_t number, unsigned copies)
{
	while (copies-- > 0)
	{
		if (bf_accumulator_is_full(&cuckoo->pending))
			bf_cuckoo_make_room(cuckoo);
		bf_cuckoo_add_number(cuckoo, number);
	}
}

/* Add all numbers of a table, less their lowest `drop_bits` bits. */
void
bf_cuckoo_add_table(bf_cuckoo *cuckoo, const uint8_t *slots, bf_table table, unsigned drop_bits)
{
	bf_host		host = cuckoo->header.host;
	uint64_t	number;
	uint64_t	n = 0;

	for (uint64_t slot = 0; bf_table_next(host, slots, table, &slot, &number);)
	{
		bf_cuckoo_add_copies(cuckoo, number >> drop_bits, 1);
		if (n++ % POLL_EVERY == 0)
			bf_poll(host);
	}
}

/* ----------------------------------------------------------------
 * Writing
 * ----------------------------------------------------------------
 */

/* Count the distinct numbers in the table and the list; none are pending. */
static uint64_t
cuckoo_count_distinct(const bf_cuckoo *cuckoo)
{
	uint64_t	distinct = cuckoo->used;

	for (uint32_t i = 0; i < cuckoo->listed; i++)
		distinct += cuckoo->slots == NULL ||
			!bf_table_find(cuckoo->slots, cuckoo->table, cuckoo->numbers[i]);
	return distinct;
}

/* Give the filter the form that can be written. */
static void
cuckoo_order(bf_cuckoo *cuckoo)
{
	bf_cuckoo_merge_pending(cuckoo);
	choose_form(cuckoo);
	if (cuckoo->slots != NULL && bf_keep_counts(cuckoo->table, cuckoo->used) &&
		bf_keep_counts(cuckoo->table, cuckoo_count_distinct(cuckoo)))
		bf_cuckoo_table_to_list(cuckoo);
}

/* Describe the filter and return its size. */
uint64_t
bf_cuckoo_describe(bf_cuckoo *cuckoo, bf_filter *filter)
{
	bf_layer   *layer = &filter->layer[0];

	cuckoo_order(cuckoo);
	filter->header = cuckoo->header;
	filter->layers = 1;
	*layer = (bf_layer) {.table = cuckoo->table, .capacity = cuckoo->capacity, .used = cuckoo->used, .count = cuckoo->listed};
	layer->form = cuckoo->slots != NULL ? BF_FORM_TABLE : BF_FORM_COUNTS;
	return bf_filter_size(filter);
}

/* Write the filter as it was described. */
void
bf_cuckoo_write(bf_cuckoo *cuckoo, bf_filter *filter, uint8_t *bytes, size_t n)
{
	bf_layer   *layer = &filter->layer[0];

	bf_filter_write(filter, bytes, n);
	if (layer->form == BF_FORM_TABLE)
		memcpy(layer->data, cuckoo->slots, (size_t) bf_table_words(layer->table) * 8);
	bf_list_write(layer->list, cuckoo->numbers, layer->count);
	if (layer->count > 0)
		memcpy(layer->list + (size_t) layer->count * 8, cuckoo->counts, layer->count);
}

/* Choose the table of a finished filter of `keys` distinct keys. */
static void
choose_table(const bf_cuckoo *state, uint64_t keys, bf_table *table, uint64_t *capacity, unsigned *drop_bits)
{
	double		fpp = state->header.fpp;
	unsigned	growth = state->header.growth;

	*table = state->table;
	*capacity = state->capacity;
	*drop_bits = 0;
	if (table->buckets == 0)
	{
		if (*capacity == 0)
			*capacity = keys > 0 ? keys : 1;
		*table = bf_table_for(*capacity, fpp, growth);
	}
	else if (*capacity == 0)
	{
		/* a table for SPILL_KEYS: drop the bits that are not needed */
		*drop_bits = bf_table_spare_bits(*table, keys, fpp, growth);
		table->slot_bits = (uint8_t) (table->slot_bits - *drop_bits);
		*capacity = bf_table_full(*table);
	}
}

/*
 * Make the finished filter of an aggregate from a copy, because a window frame may
 * continue to add to the state.  A table of more than BF_MAX_LIST keys is not
 * sorted: its numbers are moved to another table with the bits that are needed.
 */
void
bf_cuckoo_finish(bf_cuckoo *cuckoo, bf_cuckoo *finished, bf_host host)
{
	bool		large;
	bf_table	table;
	unsigned	drop_bits;
	uint64_t	capacity;

	cuckoo_order(cuckoo);
	large = cuckoo->slots != NULL && cuckoo->used > BF_MAX_LIST;
	start_empty(finished, &cuckoo->header, host, cuckoo->table, cuckoo->capacity);
	if (large)
	{
		choose_table(cuckoo, cuckoo->used, &table, &capacity, &drop_bits);
		finished->table = table;
		finished->capacity = capacity;
		finished->slots = allocate_slots(finished, table);
		bf_cuckoo_add_table(finished, cuckoo->slots, cuckoo->table, drop_bits);
		for (uint32_t i = 0; i < cuckoo->listed; i++)
		{
			bf_cuckoo_add_copies(finished, cuckoo->numbers[i] >> drop_bits, cuckoo->counts[i]);
			if (i % POLL_EVERY == POLL_EVERY - 1)
				bf_poll(host);
		}
		return;
	}

	reserve_list(finished, cuckoo->listed);
	if (cuckoo->listed > 0)
	{
		memcpy(finished->numbers, cuckoo->numbers, sizeof(uint64_t) * cuckoo->listed);
		memcpy(finished->counts, cuckoo->counts, cuckoo->listed);
	}
	finished->listed = cuckoo->listed;
	if (cuckoo->slots != NULL)
	{
		cuckoo_take_numbers(finished, cuckoo);
		finished->pending.n = cuckoo->used;
		bf_cuckoo_merge_pending(finished);
	}
	choose_table(cuckoo, finished->listed, &table, &capacity, &drop_bits);
	check_bytes(finished, bf_table_words(table) * 8);
	if (cuckoo->table.buckets == 0 || drop_bits > 0)
		bf_cuckoo_renumber(finished, table, drop_bits);
	finished->capacity = capacity;
}
