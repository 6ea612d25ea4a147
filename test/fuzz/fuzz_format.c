/*
 * fuzz_format.c
 *		Any bytes as a filter.
 *
 * Every byte string is a usable filter or an error.  A filter that bf_filter_open
 * accepts must be safe to probe.  For one that bf_filter_validate accepts, every
 * function that reads filters must return correct results; it must be written back to
 * the same bytes, and keys can be added to it.
 *
 * Input that begins like a filter is used directly.  Other input describes a filter,
 * which is then written, and damaged in a few places.  Therefore filters with a
 * consistent size, sorted lists and correct tables are frequent.
 */
#include <math.h>

#include "fuzz.h"

#ifndef MOST_BYTES
#define MOST_BYTES	(32 * 1024)
#endif

/* ----------------------------------------------------------------
 * Filters from a description
 * ----------------------------------------------------------------
 */

/* The header and the entries. */
static void
describe(Input *input, bf_filter *filter)
{
	static const uint8_t growths[] = {0, 1, 2, 4, 64, 100, 101, 3};
	static const double probabilities[] = {0.01, 0.99, 0.5, 0.1, 1e-3, 1e-6, 1e-12, 0.9};
	static const char name[256] = "enum mood";
	uint8_t		flags = take_byte(input);
	bool		cuckoo = flags & 1;

	memset(filter, 0, sizeof(*filter));
	filter->header.kind = cuckoo ? BF_KIND_CUCKOO : BF_KIND_BLOOM;
	filter->header.class.code = (flags & 2) != 0 ? BF_CLASS_NAMED : take_byte(input) % (BF_CLASS_COUNT + 1);
	filter->header.class.scheme = filter->header.class.code == BF_CLASS_NONE ? BF_SCHEME_NONE : BF_SCHEME_CANONICAL;
	if (filter->header.class.code == BF_CLASS_NAMED)
	{
		filter->header.class.name = name;
		filter->header.class.name_length = take_byte(input) % 12;
	}
	filter->header.growth = growths[take_byte(input) % 8];
	filter->header.max_layers = (flags & 4) != 0 ? take_byte(input) : 0;
	filter->header.fpp = probabilities[take_byte(input) % 8];
	filter->layers = (flags & 8) != 0 ? 1 + take_byte(input) % BF_MAX_LAYERS : 1;
	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_layer   *layer = &filter->layer[i];
		uint8_t		what = take_byte(input);

		layer->capacity = take_bytes(input, what & 1 ? 2 : 1);
		if ((what & 2) != 0)
			layer->capacity <<= take_byte(input) % 41;
		layer->count = take_byte(input);
		if (cuckoo)
		{
			layer->form = (what & 4) != 0 ? BF_FORM_TABLE : BF_FORM_COUNTS;
			layer->table.buckets = take_bytes(input, what & 8 ? 2 : 1) % 512;
			layer->table.slot_bits = what >> 4 < 12 ? 5 + (what >> 4) : take_byte(input);
			if (layer->table.slot_bits > BF_MAX_SLOT_BITS)
				layer->table.slot_bits = BF_MAX_SLOT_BITS;
			if (layer->table.slot_bits < BF_MIN_SLOT_BITS)
				layer->table.slot_bits = BF_MIN_SLOT_BITS;
			if (layer->table.buckets == 0)
				layer->table.slot_bits = 0;
		}
		else
		{
			layer->form = (what & 4) != 0 ? BF_FORM_LINES : BF_FORM_LIST;
			layer->shape.words = take_byte(input);
			if (layer->shape.words > 8)
				layer->shape.words = (layer->shape.words - 7) * 8;
			layer->shape.groups = (uint8_t) (layer->shape.words == 0 ? 0 : 1 + (what >> 3) % 4);
			layer->shape.probes = (uint8_t) (layer->shape.words == 0 ? 0 : 1 + (what >> 5));
			if (layer->shape.words == 0)
				layer->form = BF_FORM_LIST;
		}
	}
}

/* Numbers of a list, in order if `order`. */
static void
fill_list(Input *input, uint8_t *list, uint32_t count, uint64_t range, bool order)
{
	uint64_t   *numbers = memory_allocate(&test_memory, sizeof(uint64_t) * count);
	uint64_t	seed = take_bytes(input, 2);
	bool		dense = seed & 1;

	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t	number = dense ? seed + i : bf_mix64(seed + i);

		numbers[i] = range == 0 ? number : dense ? number % range : bf_scale64(number, range);
	}
	if (order)
		qsort(numbers, count, sizeof(uint64_t), compare_hashes);
	bf_list_write(list, numbers, count);
}

static void
fill_layer(Input *input, bf_layer *layer)
{
	uint8_t		how = take_byte(input);

	if (layer->form == BF_FORM_LIST)
		fill_list(input, layer->data, layer->count, 0, (how & 1) == 0);
	else if (layer->form == BF_FORM_LINES)
	{
		memset(layer->data, how & 2 ? take_byte(input) : 0, (size_t) layer->shape.words * 8);
		for (unsigned i = 0; i < how / 4U; i++)
			bf_lines_add(layer->data, layer->shape, bf_mix64(i));
	}
	else
	{
		uint64_t	range = layer->table.buckets == 0 ? 0 : bf_table_range(layer->table);

		fill_list(input, layer->list, layer->count, range, (how & 1) == 0);
		for (uint32_t i = 0; i < layer->count; i++)
			layer->list[(size_t) layer->count * 8 + i] = (uint8_t) (how & 2 ? bf_mix64(i) : 1);
		if (layer->form == BF_FORM_TABLE)
		{
			uint64_t	n = layer->table.buckets * (how >> 4) / 5;

			memset(layer->data, 0, (size_t) bf_table_words(layer->table) * 8);
			layer->used = 0;
			for (uint64_t i = 0; i < n; i++)
			{
				uint64_t	number = bf_scale64(bf_mix64(i), range);

				layer->used += !bf_table_find(layer->data, layer->table, number) &&
					bf_table_insert(layer->data, layer->table, number);
			}
			bf_store64(layer->data - 8, layer->used);
		}
	}
}

/* Write the filter that the input describes, and damage it; NULL if it is too large. */
static Bytes
build_bytes(Input *input)
{
	bf_filter	filter;
	size_t		size;
	size_t		n;
	uint8_t    *bytes;
	uint8_t		damages;

	describe(input, &filter);
	n = size = (size_t) bf_filter_size(&filter);
	if (size > MOST_BYTES)
		return (Bytes) {NULL, 0};
	bytes = memory_allocate(&test_memory, size + 64);
	bf_filter_write(&filter, bytes, size);
	for (unsigned i = 0; i < filter.layers; i++)
		fill_layer(input, &filter.layer[i]);
	damages = take_byte(input) % 4;
	for (unsigned i = 0; i < damages && n > 0; i++)
	{
		size_t		at = (size_t) take_bytes(input, 2);

		switch (take_byte(input) % 4)
		{
			case 0:
				n = at % (size + 64);
				break;
			case 1:
				bytes[at % n] ^= (uint8_t) (1 << take_byte(input) % 8);
				break;
			default:
				bytes[at % (n < 64 ? n : 64)] = take_byte(input);
		}
	}
	return bytes_copy(bytes, n);
}

/* ----------------------------------------------------------------
 * Reading, exactly as documented
 * ----------------------------------------------------------------
 */

static uint64_t
naive_slot(const bf_layer *layer, uint64_t slot)
{
	uint64_t	value = 0;

	for (unsigned i = 0; i < layer->table.slot_bits; i++)
	{
		uint64_t	bit = slot * layer->table.slot_bits + i;

		value |= (uint64_t) (layer->data[bit / 8] >> (bit % 8) & 1) << i;
	}
	return value;
}

/* Count a number in the table. */
static unsigned
naive_in_table(const bf_layer *layer, uint64_t number)
{
	uint64_t	buckets = layer->table.buckets;
	unsigned	bits = layer->table.slot_bits - 1U;
	uint64_t	fingerprint = number % (UINT64_C(1) << bits);
	uint64_t	bucket = number >> bits;
	uint64_t	window = buckets - 1 < 1024 ? buckets - 1 : 1024;
	uint64_t	distance = window == 0 ? 0 : 1 +
	(uint64_t) (((unsigned __int128) ((fingerprint + 1) * UINT64_C(0x9E3779B97F4A7C15)) * window) >> 64);
	unsigned	found = 0;

	for (unsigned i = 0; i < 4; i++)
	{
		found += fingerprint != 0 && naive_slot(layer, bucket * 4 + i) == fingerprint * 2;
		found += naive_slot(layer, (bucket + distance) % buckets * 4 + i) == fingerprint * 2 + 1;
	}
	return found;
}

static unsigned
naive_copies(const bf_layer *layer, uint64_t number)
{
	unsigned	copies = layer->form == BF_FORM_TABLE ? naive_in_table(layer, number) : 0;

	for (uint32_t i = 0; i < layer->count; i++)
	{
		if (bf_load64(layer->list + (size_t) i * 8) == number)
			copies += layer->list[(size_t) layer->count * 8 + i];
	}
	return copies;
}

static bool
naive_lines(const bf_layer *layer, uint64_t hash)
{
	uint64_t	lines = layer->shape.words < 8 ? 1 : layer->shape.words / 8;
	uint64_t	bits = layer->shape.words < 8 ? layer->shape.words * 64 : 512;

	for (unsigned group = 1; group <= layer->shape.groups; group++)
	{
		uint64_t	group_hash = bf_mix64(hash + group * UINT64_C(0x9E3779B97F4A7C15));
		uint64_t	line = (uint64_t) (((unsigned __int128) group_hash * lines) >> 64);
		uint64_t	x = group_hash & UINT32_MAX;

		for (unsigned i = 0; i < layer->shape.probes; i++)
		{
			uint64_t	position = x * bits >> 32;

			if ((layer->data[line * 64 + position / 8] >> (position % 8) & 1) == 0)
				return false;
			x = x * UINT64_C(0x9E3779B9) & UINT32_MAX;
		}
	}
	return true;
}

static bool
naive_contains(const bf_filter *filter, uint64_t hash)
{
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];

		if (layer->form == BF_FORM_LINES)
		{
			if (naive_lines(layer, hash))
				return true;
		}
		else if (layer->form == BF_FORM_LIST)
		{
			for (uint32_t j = 0; j < layer->count; j++)
			{
				if (bf_load64(layer->data + (size_t) j * 8) == hash)
					return true;
			}
		}
		else if (naive_copies(layer, bf_table_number(layer->table, hash)) > 0)
			return true;
	}
	return false;
}

/* ----------------------------------------------------------------
 * Using a filter
 * ----------------------------------------------------------------
 */

#define PROBES	40

/* Some hashes to test: of present keys, adjacent ones, and others. */
static void
choose_probes(const bf_filter *filter, uint64_t seed, uint64_t *hashes)
{
	for (unsigned i = 0; i < PROBES; i++)
	{
		const bf_layer *layer = &filter->layer[i % filter->layers];
		const uint8_t *list = layer->form == BF_FORM_LIST ? layer->data : layer->list;

		hashes[i] = bf_mix64(i % 2 ? i / 4 : seed + i);
		if (i % 4 == 3 && layer->form != BF_FORM_LINES && layer->count > 0)
		{
			uint64_t	number = bf_load64(list + (seed + i) % layer->count * 8);

			if (layer->table.buckets > 0)
				number = hash_of_number(layer->table, number);
			hashes[i] = number + (i % 8 == 7 ? i % 3 - 1 : 0);
		}
	}
	hashes[0] = 0;
	hashes[4] = UINT64_MAX;
}

static void
check_answers(const bf_filter *filter, Bytes bytes, uint64_t seed, bool valid)
{
	uint64_t	hashes[PROBES];
	bool		found[PROBES];
	Store		store = {.all = bytes};
	bf_filter	far;

	choose_probes(filter, seed, hashes);
	CHECK(bf_filter_open_pieces(&far, test_host, bytes.n, fetch_piece, &store) == NULL, "cannot be opened in pieces");
	bf_filter_contains_many(filter, hashes, PROBES, found);
	for (unsigned i = 0; i < PROBES; i++)
	{
		bool		there = bf_filter_contains(filter, hashes[i]);
		bool		there_far = bf_filter_contains_pieces(&far, fetch_piece, &store, hashes[i]);

		CHECK(found[i] == there, "contains_many differs for %lu", hashes[i]);
		if (!valid)
			continue;
		CHECK(there == there_far, "contains_pieces differs for %lu", hashes[i]);
		CHECK(there == naive_contains(filter, hashes[i]), "wrong result for %lu", hashes[i]);
	}

	/* from the size alone */
	if (!bf_filter_of_size(&far, test_host, bytes.n) || !valid)
		return;
	CHECK(far.header.kind == filter->header.kind && filter->layers == 1 &&
		  far.header.class.code == filter->header.class.code && far.header.class.scheme == filter->header.class.scheme &&
		  filter->layer[0].form == BF_FORM_LINES && bf_shape_equal(far.layer[0].shape, filter->layer[0].shape) &&
		  far.layer[0].offset == filter->layer[0].offset, "the size gives a different filter");
	for (unsigned i = 0; i < PROBES; i++)
		CHECK(found[i] == bf_filter_contains_pieces(&far, fetch_piece, &store, hashes[i]), "differs by size");
}

/*
 * Are all numbers of the list below N?  bf_filter_open does not check them, and
 * guarantees only safe probing: looking up larger numbers is not safe.
 */
static bool
numbers_in_range(const bf_layer *layer)
{
	for (uint32_t i = 0; layer->form == BF_FORM_TABLE && i < layer->count; i++)
	{
		if (bf_load64(layer->list + (size_t) i * 8) >= bf_table_range(layer->table))
			return false;
	}
	return true;
}

static void
check_folding(const bf_layer *layer)
{
	for (unsigned factor = 2; factor < 4; factor++)
	{
		Bytes		folded;

		if (!bf_lines_can_fold(layer->shape, factor))
			continue;
		folded = bytes_allocate((size_t) layer->shape.words / factor * 8);
		bf_lines_fold(test_host, folded.bytes, layer->data, layer->shape, factor);
		CHECK(bf_lines_bits_set(test_host, folded.bytes, layer->shape.words / factor) ==
			  bf_lines_fold(test_host, NULL, layer->data, layer->shape, factor), "bits of a folded layer");
	}
}

static void
check_counts(const bf_layer *layer, uint64_t seed, bool valid)
{
	uint64_t	distinct = bf_layer_distinct(test_host, layer);
	uint64_t	seen = 0;
	size_t		n = 0;

	for (uint32_t i = 0; i < layer->count; i++)
	{
		uint64_t	number = bf_load64(layer->list + (size_t) i * 8);
		unsigned	copies = bf_layer_copies(layer, number);

		CHECK(i >= 50 || !valid || (copies == naive_copies(layer, number) && copies <= BF_MAX_COUNT && copies > 0),
			  "%u copies", copies);
	}
	bf_layer_copies(layer, bf_table_number(layer->table, seed));
	if (layer->form == BF_FORM_TABLE)
	{
		uint64_t	number;

		for (uint64_t slot = 0; bf_table_next(test_host, layer->data, layer->table, &slot, &number); n++)
		{
			CHECK(!valid || number < bf_table_range(layer->table), "number out of range");
			CHECK(!valid || bf_table_find(layer->data, layer->table, number), "number not found");
			seen += valid && bf_layer_listed(layer, number) > 0;
		}
	}
	CHECK(!valid || (n == layer->used && distinct == n + layer->count - seen), "distinct");
}

static void
check_estimates(const bf_filter *filter, uint64_t seed, bool valid)
{
	bf_census	census = bf_filter_census(filter);

	CHECK(!valid || (isfinite(census.keys) && census.keys >= 0 && census.fpp >= 0 && census.fpp <= 1 + 1e-9),
		  "census: %g keys, fpp %g", census.keys, census.fpp);
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];

		census = bf_layer_census(test_host, layer);
		CHECK(!valid || !bf_layer_is_empty(test_host, layer) || (census.keys == 0 && census.fpp == 0), "keys in an empty layer");
		if (layer->form == BF_FORM_LINES)
			check_folding(layer);
	}
	if (filter->header.kind == BF_KIND_CUCKOO)
		check_counts(&filter->layer[0], seed, valid);
}

/* The structure is written back as it was read. */
static void
check_writing(const bf_filter *filter, Bytes bytes, bool valid)
{
	bf_filter	again = *filter;
	Bytes		copy = bytes_allocate(bytes.n);

	CHECK(bf_filter_size(&again) == bytes.n, "size %lu of %zu", bf_filter_size(&again), bytes.n);
	bf_filter_write(&again, copy.bytes, copy.n);
	CHECK(memcmp(bytes.bytes, copy.bytes, BF_HEADER_BYTES) == 0, "header differs");
	for (unsigned i = 0; i < again.layers; i++)
	{
		const bf_layer *from = &filter->layer[i];
		const bf_layer *to = &again.layer[i];
		size_t		head = (size_t) bf_layer_head_bytes(from);

		CHECK(from->offset == to->offset && from->list_offset == to->list_offset, "layer %u has a different offset", i);
		CHECK(head == 0 || memcmp(from->data - head, to->data - head, head) == 0, "lengths of layer %u differ", i);
		memcpy(to->data, from->data, (size_t) bf_layer_bytes(from) - head);
	}
	CHECK(!valid || bytes_equal(bytes, copy), "bytes differ");
}

/* Any bytes as base64: malformed, or the only text of the decoded bytes. */
static void
decode_text(const uint8_t *data, size_t length)
{
	const char *text = (const char *) bytes_copy(data, length).bytes;
	char	   *again = memory_allocate(&test_memory, length);
	Bytes		bytes;
	size_t		n;
	size_t		bad = 0;

	if (!bf_base64_decoded_size(text, length, &n))
		return;
	bytes = bytes_allocate(n);
	if (bf_base64_decode(test_host, bytes.bytes, text, length, &bad))
	{
		CHECK(bf_base64_encoded_size(n) == length, "base64 size");
		bf_base64_encode(test_host, again, bytes.bytes, n);
		CHECK(memcmp(again, text, length) == 0, "a different text for the same bytes");
	}
	else
		CHECK(bad < length, "bad digit at %zu of %zu", bad, length);
}

/* ----------------------------------------------------------------
 * Changing an external filter
 * ----------------------------------------------------------------
 */

static const uint64_t continued_keys[] = {5, 0, UINT64_MAX, UINT64_C(1) << 63, 77, 78, 79, 80, 81, 82, 83, 84};

#define CONTINUED_KEYS	(sizeof(continued_keys) / sizeof(continued_keys[0]))

/* An operation on a loaded filter, with keys or with itself, and its result. */
typedef struct Continuation
{
	const bf_filter *filter;
	void		(*work) (void *operation);	/* NULL: none */
	bf_change	change;
	bool		finish;
	Bytes		result;
} Continuation;

static void
continue_filter(void *arg)
{
	Continuation *continuation = arg;
	bf_mutable	filter;
	Operation	operation = {.filter = &filter, .other = continuation->filter, .flag = true, .change = continuation->change,
	.class = &key_classes[0], .hashes = continued_keys, .n = CONTINUED_KEYS};

	bf_mutable_load(&filter, test_host, continuation->filter);
	if (filter.header.kind == BF_KIND_BLOOM && filter.bloom.is_state)
		filter.bloom.list_bound = BF_MAX_LIST;	/* a partial state may be any
												 * list */
	if (continuation->work != NULL)
		continuation->work(&operation);
	bf_mutable_contains(&filter, continued_keys[0]);
	if (continuation->finish)
		finish(&operation);
	else
		flatten(&operation);
	bf_mutable_free(&filter);
	continuation->result = operation.result;
}

/* Check that the result is valid and has all keys; false if it is too large. */
static bool
check_continuation(Continuation *continuation, uint64_t seed)
{
	const bf_filter *filter = continuation->filter;
	bool		adds = continuation->work == change || continuation->work == change_own;
	bf_filter	result;
	uint64_t	hashes[PROBES];

	if (host_run(continue_filter, continuation, 0) != HOST_DONE)
		return false;
	open_valid(&result, continuation->result, filter->header.kind);
	CHECK(!continuation->finish || !bf_filter_is_unfinished(&result), "still unfinished");
	for (size_t i = 0; adds && i < CONTINUED_KEYS && filter->header.max_layers == 0; i++)
		CHECK(bf_filter_contains(&result, continued_keys[i]), "a new key is lost");
	choose_probes(filter, seed, hashes);
	for (unsigned i = 0; i < PROBES && !(adds && filter->header.max_layers > 0); i++)
		CHECK(!bf_filter_contains(filter, hashes[i]) || bf_filter_contains(&result, hashes[i]), "a key is lost");
	return true;
}

static void
go_on(const bf_filter *filter, Bytes bytes, uint64_t seed)
{
	bool		bloom = filter->header.kind == BF_KIND_BLOOM;
	bool		unfinished = bf_filter_is_unfinished(filter);
	Continuation continuation = {.filter = filter};
	bool		declared = unfinished && filter->layer[0].capacity > 0; /* for perhaps too many
																		 * keys */

	CHECK(check_continuation(&continuation, seed) || declared, "cannot be loaded");
	CHECK(declared || bytes_equal(bytes, continuation.result), "loading changes the filter");
	continuation.finish = unfinished;
	CHECK(!unfinished || check_continuation(&continuation, seed) || declared, "cannot be finished");

	/* sizing another layer takes milliseconds */
	if (bloom && seed % 16 != 0)
		return;
	continuation.work = change_own;
	check_continuation(&continuation, seed);
	if (unfinished || bf_filter_is_empty(filter))
		return;
	continuation.work = change;
	check_continuation(&continuation, seed);
	continuation.work = unite;
	check_continuation(&continuation, seed);
	continuation.work = compact;
	CHECK(!bloom || check_continuation(&continuation, seed), "cannot be compacted");
	continuation.work = intersect;
	CHECK(!bloom || filter->layers > 1 || check_continuation(&continuation, seed), "cannot be intersected");
}

/* All changes, on a damaged filter: any error is allowed, but no memory error. */
static void
change_damaged(const bf_filter *filter, uint64_t seed)
{
	static void (*const works[]) (void *) = {change, change_own, unite, compact, intersect};
	bool		cuckoo = filter->header.kind == BF_KIND_CUCKOO;
	unsigned	possible = bf_filter_is_unfinished(filter) ? 2 : cuckoo ? 3 : filter->layers > 1 ? 4 : 5;
	Continuation continuation = {.filter = filter, .work = works[seed / 64 % possible], .finish = seed & 1,
	.change = cuckoo && seed & 32 ? BF_REMOVE : BF_ADD};

	host_run(continue_filter, &continuation, 0);
}

/* ---------------------------------------------------------------- */

static void
try_filter(Bytes bytes)
{
	bf_filter	filter;
	bool		opened = bf_filter_open(&filter, test_host, bytes.bytes, bytes.n) == NULL;
	bool		bloom = bf_filter_validate(test_host, bytes.bytes, bytes.n, BF_KIND_BLOOM) == NULL;
	bool		cuckoo = bf_filter_validate(test_host, bytes.bytes, bytes.n, BF_KIND_CUCKOO) == NULL;
	bool		valid = bloom || cuckoo;
	uint64_t	seed = bytes.n;

	CHECK(!(bloom && cuckoo), "both kinds");
	CHECK(opened || !valid, "valid, but cannot be opened");
	if (!opened)
		return;
	CHECK(!valid || filter.header.kind == (bloom ? BF_KIND_BLOOM : BF_KIND_CUCKOO), "kind");
	for (size_t i = 0; i < bytes.n && i < 64; i++)
		seed = bf_mix64(seed + bytes.bytes[bytes.n - 1 - i]);
	check_answers(&filter, bytes, seed, valid);
	if (numbers_in_range(&filter.layer[0]))
		check_estimates(&filter, seed, valid);
	check_writing(&filter, bytes, valid);
	if (valid)
		go_on(&filter, bytes, seed);
	else if (seed % 32 < 2)
		change_damaged(&filter, seed);	/* rarely, because it takes long */
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 'T')
		decode_text(data + 1, size - 1);
	else
	{
		Input		input = {data, size};
		bool		raw = size > 0 && (data[0] == 'B' || data[0] == 'C');
		Bytes		bytes = raw ? bytes_copy(data, size) : build_bytes(&input);

		if (bytes.bytes != NULL)
			try_filter(bytes);
	}
	host_clean();
	return 0;
}
