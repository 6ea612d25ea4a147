/*
 * fuzz_format.c
 *		Any bytes as a filter.
 *
 * Every byte string is a usable filter or an error.  What bf_filter_open takes
 * must be safe to probe; what bf_filter_validate takes must give the right
 * answers from every function that reads filters, must be written back to the
 * same bytes, and must serve as the beginning of a larger filter.
 *
 * Input that begins like a filter is taken as it is.  Other input describes one,
 * which is then written, and damaged at a few places: so that also filters with
 * a consistent size, sorted lists and proper tables are met often.
 */
#include "fuzz.h"

#include <math.h>

#include "core/base64.h"

#ifndef MOST_BYTES
#define MOST_BYTES	(32 * 1024)
#endif

/* ----------------------------------------------------------------
 * Filters from a description
 * ----------------------------------------------------------------
 */

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

/* The header and the entries. */
static void
describe(Input *input, bf_filter *filter)
{
	static const uint8 growths[] = {0, 1, 2, 4, 64, 100, 101, 3};
	static const double probabilities[] = {0.01, 0.99, 0.5, 0.1, 1e-3, 1e-6, 1e-12, 0.9};
	static const char name[256] = "enum mood";
	uint8		flags = take_byte(input);
	bool		cuckoo = flags & 1;

	memset(filter, 0, sizeof(*filter));
	filter->kind = cuckoo ? BF_KIND_CUCKOO : BF_KIND_BLOOM;
	filter->key_class = (flags & 2) != 0 ? BF_CLASS_NAMED : take_byte(input) % (BF_CLASS_COUNT + 1);
	filter->scheme = filter->key_class == BF_CLASS_NONE ? BF_SCHEME_NONE : BF_SCHEME_CANONICAL;
	if (filter->key_class == BF_CLASS_NAMED)
	{
		filter->name = name;
		filter->name_length = take_byte(input) % 12;
	}
	filter->growth = growths[take_byte(input) % 8];
	filter->max_layers = (flags & 4) != 0 ? take_byte(input) : 0;
	filter->fpp = probabilities[take_byte(input) % 8];
	filter->layers = (flags & 8) != 0 ? 1 + take_byte(input) % BF_MAX_LAYERS : 1;
	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_layer   *layer = &filter->layer[i];
		uint8		what = take_byte(input);

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
			layer->shape.groups = (uint8) (layer->shape.words == 0 ? 0 : 1 + (what >> 3) % 4);
			layer->shape.probes = (uint8) (layer->shape.words == 0 ? 0 : 1 + (what >> 5));
			if (layer->shape.words == 0)
				layer->form = BF_FORM_LIST;
		}
	}
}

/* Numbers of a list, in order if `order`. */
static void
fill_list(Input *input, uint8 *list, uint32 count, uint64 range, bool order)
{
	uint64	   *numbers = malloc(sizeof(uint64) * (count + 1));
	uint64		seed = take_bytes(input, 2);
	bool		dense = seed & 1;

	for (uint32 i = 0; i < count; i++)
	{
		uint64		number = dense ? seed + i : bf_mix64(seed + i);

		numbers[i] = range == 0 ? number : dense ? number % range : bf_scale64(number, range);
	}
	if (order)
		qsort(numbers, count, sizeof(uint64), compare_hashes);
	bf_list_write(list, numbers, count);
	free(numbers);
}

static void
fill_layer(Input *input, bf_layer *layer)
{
	uint8		how = take_byte(input);

	if (layer->form == BF_FORM_LIST)
		fill_list(input, layer->data, layer->count, 0, (how & 1) == 0);
	else if (layer->form == BF_FORM_LINES)
	{
		memset(layer->data, how & 2 ? take_byte(input) : 0, (Size) layer->shape.words * 8);
		for (unsigned i = 0; i < how / 4U; i++)
			bf_lines_add(layer->data, layer->shape, bf_mix64(i));
	}
	else
	{
		uint64		range = layer->table.buckets == 0 ? 0 : bf_table_range(layer->table);

		fill_list(input, layer->list, layer->count, range, (how & 1) == 0);
		for (uint32 i = 0; i < layer->count; i++)
			layer->list[(Size) layer->count * 8 + i] = (uint8) (how & 2 ? bf_mix64(i) : 1);
		if (layer->form == BF_FORM_TABLE)
		{
			uint64		n = layer->table.buckets * (how >> 4) / 5;

			memset(layer->data, 0, (Size) bf_table_words(layer->table) * 8);
			layer->used = 0;
			for (uint64 i = 0; i < n; i++)
			{
				uint64		number = bf_scale64(bf_mix64(i), range);

				layer->used += !bf_table_find(layer->data, layer->table, number) &&
					bf_table_insert(layer->data, layer->table, number);
			}
			bf_store64(layer->data - 8, layer->used);
		}
	}
}

/* Write what the input describes, and damage it; NULL if it is too large. */
static uint8 *
build_bytes(Input *input, Size *n)
{
	bf_filter	filter;
	uint64		size;
	uint8	   *bytes;
	uint8		damages;

	describe(input, &filter);
	size = bf_filter_size(&filter);
	if (size > MOST_BYTES)
		return NULL;
	*n = (Size) size;
	bytes = malloc(*n + 64);
	memset(bytes, 0xA5, *n + 64);
	bf_filter_write(&filter, bytes, *n);
	for (unsigned i = 0; i < filter.layers; i++)
		fill_layer(input, &filter.layer[i]);
	damages = take_byte(input) % 4;
	for (unsigned i = 0; i < damages && *n > 0; i++)
	{
		Size		at = (Size) take_bytes(input, 2);

		switch (take_byte(input) % 4)
		{
			case 0:
				*n = at % ((Size) size + 64);
				break;
			case 1:
				bytes[at % *n] ^= (uint8) (1 << take_byte(input) % 8);
				break;
			default:
				bytes[at % Min(*n, 64)] = take_byte(input);
		}
	}
	return bytes;
}

/* ----------------------------------------------------------------
 * Reading: the documentation, word by word
 * ----------------------------------------------------------------
 */

static uint64
naive_slot(const bf_layer *layer, uint64 slot)
{
	uint64		value = 0;

	for (unsigned i = 0; i < layer->table.slot_bits; i++)
	{
		uint64		bit = slot * layer->table.slot_bits + i;

		value |= (uint64) (layer->data[bit / 8] >> (bit % 8) & 1) << i;
	}
	return value;
}

/* How often is a number in the table? */
static unsigned
naive_in_table(const bf_layer *layer, uint64 number)
{
	uint64		buckets = layer->table.buckets;
	unsigned	bits = layer->table.slot_bits - 1U;
	uint64		fingerprint = number % (UINT64_C(1) << bits);
	uint64		bucket = number >> bits;
	uint64		window = Min(buckets - 1, 1024);
	uint64		distance = window == 0 ? 0 : 1 +
		(uint64) (((unsigned __int128) ((fingerprint + 1) * UINT64_C(0x9E3779B97F4A7C15)) * window) >> 64);
	unsigned	found = 0;

	for (unsigned i = 0; i < 4; i++)
	{
		found += fingerprint != 0 && naive_slot(layer, bucket * 4 + i) == fingerprint * 2;
		found += naive_slot(layer, (bucket + distance) % buckets * 4 + i) == fingerprint * 2 + 1;
	}
	return found;
}

static unsigned
naive_copies(const bf_layer *layer, uint64 number)
{
	unsigned	copies = layer->form == BF_FORM_TABLE ? naive_in_table(layer, number) : 0;

	for (uint32 i = 0; i < layer->count; i++)
	{
		if (bf_load64(layer->list + (Size) i * 8) == number)
			copies += layer->list[(Size) layer->count * 8 + i];
	}
	return copies;
}

static bool
naive_lines(const bf_layer *layer, uint64 hash)
{
	uint64		lines = layer->shape.words < 8 ? 1 : layer->shape.words / 8;
	uint64		bits = layer->shape.words < 8 ? layer->shape.words * 64 : 512;

	for (unsigned group = 1; group <= layer->shape.groups; group++)
	{
		uint64		group_hash = bf_mix64(hash + group * UINT64_C(0x9E3779B97F4A7C15));
		uint64		line = (uint64) (((unsigned __int128) group_hash * lines) >> 64);
		uint64		x = group_hash & UINT32_MAX;

		for (unsigned i = 0; i < layer->shape.probes; i++)
		{
			uint64		position = x * bits >> 32;

			if ((layer->data[line * 64 + position / 8] >> (position % 8) & 1) == 0)
				return false;
			x = x * UINT64_C(0x9E3779B9) & UINT32_MAX;
		}
	}
	return true;
}

static bool
naive_contains(const bf_filter *filter, uint64 hash)
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
			for (uint32 j = 0; j < layer->count; j++)
			{
				if (bf_load64(layer->data + (Size) j * 8) == hash)
					return true;
			}
		}
		else if (naive_copies(layer, bf_table_number(layer->table, hash)) > 0)
			return true;
	}
	return false;
}

/* ----------------------------------------------------------------
 * Reading in pieces
 * ----------------------------------------------------------------
 */

typedef struct Store
{
	const uint8 *bytes;
	Size		n;
	uint8	   *piece;
} Store;

static const uint8 *
fetch_piece(void *arg, uint64 offset, Size n)
{
	Store	   *store = arg;

	CHECK(offset <= store->n && n <= store->n - offset, "a piece of %zu bytes at %lu of %zu", n, offset, store->n);
	free(store->piece);
	store->piece = malloc(n + (n == 0));
	memcpy(store->piece, store->bytes + offset, n);
	return store->piece;
}

/* ----------------------------------------------------------------
 * Using a filter
 * ----------------------------------------------------------------
 */

#define PROBES	40

/* Some hashes to ask for: of keys that are there, of their neighbours, of others. */
static void
choose_probes(const bf_filter *filter, uint64 seed, uint64 *hashes)
{
	for (unsigned i = 0; i < PROBES; i++)
	{
		const bf_layer *layer = &filter->layer[i % filter->layers];
		const uint8 *list = layer->form == BF_FORM_LIST ? layer->data : layer->list;

		hashes[i] = bf_mix64(i % 2 ? i / 4 : seed + i);
		if (i % 4 == 3 && layer->form != BF_FORM_LINES && layer->count > 0)
		{
			uint64		number = bf_load64(list + (seed + i) % layer->count * 8);

			if (layer->table.buckets > 0)
				number = hash_of_number(layer->table, number);
			hashes[i] = number + (i % 8 == 7 ? i % 3 - 1 : 0);
		}
	}
	hashes[0] = 0;
	hashes[4] = UINT64_MAX;
}

static void
ask(const bf_filter *filter, const Exact *copy, uint64 seed, bool valid)
{
	uint64		hashes[PROBES];
	bool		found[PROBES];
	Store		store = {copy->bytes, copy->n, NULL};
	bf_filter	far;
	bool		of_size;

	choose_probes(filter, seed, hashes);
	CHECK(bf_filter_open_pieces(&far, copy->n, fetch_piece, &store) == NULL, "cannot be opened in pieces");
	bf_filter_contains_many(filter, hashes, PROBES, found);
	for (unsigned i = 0; i < PROBES; i++)
	{
		bool		there = bf_filter_contains(filter, hashes[i]);
		bool		there_far = bf_filter_contains_pieces(&far, fetch_piece, &store, hashes[i]);

		CHECK(found[i] == there, "contains_many differs for %lu", hashes[i]);
		if (!valid)
			continue;
		CHECK(there == there_far, "contains_pieces differs for %lu", hashes[i]);
		CHECK(there == naive_contains(filter, hashes[i]), "wrong answer for %lu", hashes[i]);
	}

	/* what the size tells */
	of_size = bf_filter_of_size(&far, copy->n);
	if (of_size && valid)
	{
		CHECK(far.kind == filter->kind && filter->layers == 1 && far.key_class == filter->key_class &&
			  far.scheme == filter->scheme && filter->layer[0].form == BF_FORM_LINES &&
			  bf_shape_equal(far.layer[0].shape, filter->layer[0].shape) &&
			  far.layer[0].offset == filter->layer[0].offset, "the size tells another filter");
		for (unsigned i = 0; i < PROBES; i++)
			CHECK(found[i] == bf_filter_contains_pieces(&far, fetch_piece, &store, hashes[i]), "differs by size");
	}
	free(store.piece);
}

/*
 * Are all numbers of the list below N?  bf_filter_open does not look at them, and
 * promises no more than safe probing: looking up the others is not safe.
 */
static bool
numbers_in_range(const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];

	if (layer->form != BF_FORM_TABLE)
		return true;
	for (uint32 i = 0; i < layer->count; i++)
	{
		if (bf_load64(layer->list + (Size) i * 8) >= bf_table_range(layer->table))
			return false;
	}
	return true;
}

static void
count(const bf_filter *filter, uint64 seed, bool valid)
{
	bf_census	census = bf_filter_census(filter);

	if (valid)
		CHECK(isfinite(census.keys) && census.keys >= 0 && census.fpp >= 0 && census.fpp <= 1 + 1e-9,
			  "census: %g keys, fpp %g", census.keys, census.fpp);
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];

		if (valid && bf_layer_is_empty(layer))
			CHECK(bf_layer_census(layer).keys == 0 && bf_layer_census(layer).fpp == 0, "keys in an empty layer");
		if (layer->form == BF_FORM_LINES)
		{
			for (unsigned factor = 2; factor < 4; factor++)
			{
				uint8	   *folded;
				bf_shape	shape;

				if (!bf_lines_can_fold(layer->shape, factor))
					continue;
				folded = malloc((Size) layer->shape.words / factor * 8);
				shape = bf_lines_fold(folded, layer->data, layer->shape, factor);
				CHECK(bf_lines_bits_set(folded, shape.words) == bf_lines_folded_bits(layer->data, layer->shape, factor),
					  "bits of a folded layer");
				free(folded);
			}
		}
	}
	if (filter->kind == BF_KIND_CUCKOO)
	{
		const bf_layer *layer = &filter->layer[0];
		uint64		distinct = bf_layer_distinct(layer);
		uint64		seen = 0;

		for (uint32 i = 0; i < layer->count; i++)
		{
			uint64		number = bf_load64(layer->list + (Size) i * 8);
			unsigned	copies = bf_layer_copies(layer, number);

			if (i >= 50 || !valid)
				continue;
			CHECK(copies == naive_copies(layer, number) && copies <= BF_MAX_COUNT && copies > 0, "%u copies", copies);
		}
		bf_layer_copies(layer, bf_table_number(layer->table, seed));
		if (layer->form == BF_FORM_TABLE)
		{
			Size		room = (Size) layer->used;
			uint64	   *numbers = malloc(sizeof(uint64) * (room + (room == 0)));
			Size		n = bf_table_numbers(layer->data, layer->table, numbers, room);

			for (Size i = 0; valid && i < n; i++)
			{
				CHECK(numbers[i] < bf_table_range(layer->table), "number out of range");
				CHECK(bf_table_find(layer->data, layer->table, numbers[i]), "number not found");
				seen += bf_layer_listed(layer, numbers[i]) > 0;
			}
			CHECK(!valid || n == layer->used, "%zu numbers, %lu used", n, layer->used);
			CHECK(!valid || distinct == n + layer->count - seen, "distinct");
			free(numbers);
		}
	}
}

static void
write_again(const bf_filter *filter, const Exact *copy, bool valid)
{
	bf_filter	again = *filter;
	uint64		size = bf_filter_size(&again);
	uint8	   *bytes;
	char	   *text;
	Size		length = bf_base64_encoded_size(copy->n);
	Size		n;
	Size		bad;

	CHECK(size == copy->n, "size %lu of %zu", size, copy->n);
	bytes = malloc(copy->n);
	memset(bytes, 0xEE, copy->n);
	bf_filter_write(&again, bytes, copy->n);
	CHECK(memcmp(bytes, copy->bytes, BF_HEADER_BYTES) == 0, "header differs");
	for (unsigned i = 0; i < again.layers; i++)
	{
		const bf_layer *from = &filter->layer[i];
		const bf_layer *to = &again.layer[i];
		Size		head = (Size) bf_layer_head_bytes(from);

		CHECK(from->offset == to->offset && from->list_offset == to->list_offset, "layer %u is elsewhere", i);
		CHECK(head == 0 || memcmp(from->data - head, to->data - head, head) == 0, "lengths of layer %u differ", i);
		memcpy(to->data, from->data, (Size) bf_layer_bytes(from) - head);
	}
	CHECK(!valid || memcmp(bytes, copy->bytes, copy->n) == 0, "bytes differ");
	free(bytes);

	text = malloc(length);
	bytes = malloc(copy->n);
	bf_base64_encode(text, copy->bytes, copy->n);
	CHECK(bf_base64_decoded_size(text, length, &n) && n == copy->n, "base64 size");
	CHECK(bf_base64_decode(bytes, text, length, &bad) && memcmp(bytes, copy->bytes, n) == 0, "base64");
	free(text);
	free(bytes);
}

/* Any bytes as base64: malformed, or the one text of what they stand for. */
static void
decode_text(const uint8 *data, Size length)
{
	Exact		text = exact_copy(data, length);
	Size		n;
	Size		bad = 0;

	if (bf_base64_decoded_size((char *) text.bytes, length, &n))
	{
		uint8	   *bytes = malloc(n + (n == 0));

		if (bf_base64_decode(bytes, (char *) text.bytes, length, &bad))
		{
			char	   *again = malloc(length + (length == 0));

			CHECK(bf_base64_encoded_size(n) == length, "base64 size");
			bf_base64_encode(again, bytes, n);
			CHECK(memcmp(again, text.bytes, length) == 0, "another text for the same bytes");
			free(again);
		}
		else
			CHECK(bad < length, "bad digit at %zu of %zu", bad, length);
		free(bytes);
	}
	exact_free(&text);
}

/* ----------------------------------------------------------------
 * A filter from outside as the beginning of a larger one
 * ----------------------------------------------------------------
 */

typedef struct Continuation
{
	const bf_filter *filter;
	uint64		seed;
	bool		add;
	struct varlena *image;
} Continuation;

static const uint64 continued_keys[] = {5, 0, UINT64_MAX, UINT64_C(1) << 63, 77, 78, 79, 80, 81, 82, 83, 84};

#define CONTINUED_KEYS	(sizeof(continued_keys) / sizeof(continued_keys[0]))

static void
continue_filter(void *arg)
{
	Continuation *work = arg;
	AnyBuilder	builder;

	build_load(&builder, CurrentMemoryContext, work->filter);
	if (work->add)
	{
		KeyClass	class = {BF_SCHEME_CANONICAL, BF_CLASS_INTEGER, 0, NULL};

		if (builder.base.frame->key_class == BF_CLASS_NONE)
			build_set_class(&builder.base, &class);
		builder.base.methods->add_many(&builder.base, continued_keys, CONTINUED_KEYS);
	}
	work->image = build_flat(&builder.base);
}

static void
finish_filter(void *arg)
{
	Continuation *work = arg;
	AnyBuilder	builder;

	build_load(&builder, CurrentMemoryContext, work->filter);
	work->image = builder.base.methods->finish(&builder.base);
}

static void
go_on(const bf_filter *filter, const Exact *copy, uint64 seed)
{
	Continuation work = {filter, seed, false, NULL};
	bf_filter	larger;
	uint64		hashes[PROBES];
	const char *problem;

	CHECK(shim_run(continue_filter, &work) == SHIM_DONE, "cannot be loaded: %s", shim_message);
	CHECK(VARSIZE_ANY_EXHDR(work.image) == copy->n && memcmp(VARDATA(work.image), copy->bytes, copy->n) == 0,
		  "a builder changes it");

	/* as an aggregate's state it may have any shape that is valid */
	if (filter->layer[0].capacity == 0)
	{
		CHECK(shim_run(finish_filter, &work) == SHIM_DONE, "cannot be finished: %s", shim_message);
		problem = bf_filter_validate((uint8 *) VARDATA(work.image), VARSIZE_ANY_EXHDR(work.image), filter->kind);
		CHECK(problem == NULL, "finished: %s", problem);
		bf_filter_open(&larger, (uint8 *) VARDATA(work.image), VARSIZE_ANY_EXHDR(work.image));
		CHECK(larger.layer[0].capacity > 0, "still unfinished");
		choose_probes(filter, seed, hashes);
		for (unsigned i = 0; i < PROBES; i++)
			CHECK(!bf_filter_contains(filter, hashes[i]) || bf_filter_contains(&larger, hashes[i]), "a key is lost at the end");
	}

	/* sizing another layer takes milliseconds */
	if (filter->kind == BF_KIND_BLOOM && seed % 16 != 0)
		return;
	work.add = true;
	if (shim_run(continue_filter, &work) == SHIM_ERROR)
		return;					/* too large */
	problem = bf_filter_validate((uint8 *) VARDATA(work.image), VARSIZE_ANY_EXHDR(work.image), filter->kind);
	CHECK(problem == NULL, "with more keys: %s", problem);
	bf_filter_open(&larger, (uint8 *) VARDATA(work.image), VARSIZE_ANY_EXHDR(work.image));
	if (filter->max_layers > 0)
		return;
	for (Size i = 0; i < CONTINUED_KEYS; i++)
		CHECK(bf_filter_contains(&larger, continued_keys[i]), "a new key is lost");
	choose_probes(filter, seed, hashes);
	for (unsigned i = 0; i < PROBES; i++)
		CHECK(!bf_filter_contains(filter, hashes[i]) || bf_filter_contains(&larger, hashes[i]), "a key is lost");
}

/* All that changes a filter, on one that was damaged: any error, but no harm. */
static void
change_damaged(void *arg)
{
	Continuation *work = arg;
	AnyBuilder	builder;

	build_load(&builder, CurrentMemoryContext, work->filter);
	if (builder.base.frame->kind == BF_KIND_CUCKOO)
	{
		for (Size i = 0; i < CONTINUED_KEYS; i++)
			cuckoo_build_remove(&builder.cuckoo, continued_keys[i]);
		if (work->filter->layer[0].table.buckets > 0)
		{
			cuckoo_build_merge_filter(&builder.cuckoo, work->filter);
			cuckoo_build_sort(&builder.cuckoo);
		}
	}
	builder.base.methods->add_many(&builder.base, continued_keys, CONTINUED_KEYS);
	builder.base.methods->contains(&builder.base, work->seed);
	build_flat(&builder.base);
	builder.base.methods->finish(&builder.base);
}

/* ---------------------------------------------------------------- */

static void
try_filter(const uint8 *bytes, Size n)
{
	Exact		copy = exact_copy(bytes, n);
	bf_filter	filter;
	bool		opened = bf_filter_open(&filter, copy.bytes, n) == NULL;
	bool		bloom = bf_filter_validate(copy.bytes, n, BF_KIND_BLOOM) == NULL;
	bool		cuckoo = bf_filter_validate(copy.bytes, n, BF_KIND_CUCKOO) == NULL;
	bool		valid = bloom || cuckoo;
	uint64		seed = n;

	CHECK(!(bloom && cuckoo), "both kinds at once");
	CHECK(opened || !valid, "valid, but cannot be opened");
	if (opened)
	{
		for (Size i = 0; i < n && i < 64; i++)
			seed = bf_mix64(seed + copy.bytes[n - 1 - i]);
		ask(&filter, &copy, seed, valid);
		if (numbers_in_range(&filter))
			count(&filter, seed, valid);
		write_again(&filter, &copy, valid);
		CHECK(!valid || filter.kind == (bloom ? BF_KIND_BLOOM : BF_KIND_CUCKOO), "kind");
	}
	if (valid)
		go_on(&filter, &copy, seed);
	else if (opened)
	{
		Continuation work = {&filter, seed, true, NULL};

		/* seldom, as it takes long */
		if (seed % 32 == 0)
			shim_run(continue_filter, &work);
		else if (seed % 32 == 1)
			shim_run(change_damaged, &work);
	}
	exact_free(&copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bf_poll = shim_poll;
	if (size > 0 && (data[0] == 'B' || data[0] == 'C'))
		try_filter(data, size);
	else if (size > 0 && data[0] == 'T')
		decode_text(data + 1, size - 1);
	else
	{
		Input		input = {data, size};
		Size		n = 0;
		uint8	   *bytes = build_bytes(&input, &n);

		if (bytes != NULL)
			try_filter(bytes, n);
		free(bytes);
	}
	shim_free_all();
	return 0;
}
