/*
 * format.c
 *		Reader, writer and validator of the filter format.
 *
 * Layout (docs/FORMAT.md): a header of 28 bytes that ends with the first
 * layer's entry; the name of the key class if it has no number; the entries of
 * further layers; then each layer's contents.  There is one walk over that
 * layout, used to compute sizes, to write and to read, so the three agree.
 *
 * Offsets below count from the first byte of the filter.  Alignment counts
 * from the length word that PostgreSQL keeps before it.
 */
#include <math.h>

#include "format.h"
#include "hashlist.h"

static const char *const class_labels[BF_CLASS_COUNT] = {
	"none", "integer", "text", "uuid", "bytea", "boolean", "float", "numeric",
	"date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet",
	"macaddr", "macaddr8", "bit", "oid", "money", "xid8", "pg_lsn", "jsonb"
};

/* The label of a numbered class; NULL for numbers that mean nothing. */
const char *
bf_class_label(unsigned key_class)
{
	return key_class < BF_CLASS_COUNT ? class_labels[key_class] : NULL;
}

/* The next offset that is a multiple of `to` when the length word counts. */
static uint64_t
align(uint64_t offset, uint64_t to)
{
	return (offset + BF_LENGTH_WORD + to - 1) / to * to - BF_LENGTH_WORD;
}

/*
 * The shapes that a size can tell: those that bf_shape_for chooses for more
 * than one line.  20 shapes x 3 classes = 60 codes.
 */
static const uint8_t first_probes[BF_MAX_GROUPS] = {1, 4, 5, 6};
static const uint8_t first_code[BF_MAX_GROUPS] = {0, 8, 13, 17};

static unsigned
size_code(const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];
	unsigned	probes = layer->shape.probes;
	unsigned	group = layer->shape.groups - 1U;

	if (filter->layers > 1 || layer->form != BF_FORM_LINES ||
		filter->key_class < BF_CLASS_INTEGER || filter->key_class > BF_CLASS_UUID ||
		probes < first_probes[group])
		return BF_SIZE_CODE_HEADER;
	return (first_code[group] + probes - first_probes[group]) * 3 +
		(filter->key_class - BF_CLASS_INTEGER);
}

/*
 * Do the shape and the key class follow from the filter's size alone?  If so,
 * describe the filter as far as probing it needs.
 */
bool
bf_filter_of_size(bf_filter *filter, uint64_t size)
{
	unsigned	code = (unsigned) ((size + BF_LENGTH_WORD) % BF_LINE_BYTES);
	unsigned	group = 0;
	bf_layer   *layer = &filter->layer[0];

	if (size + BF_LENGTH_WORD < BF_WIDE_BYTES || code >= BF_SIZE_CODE_HEADER)
		return false;
	while (group + 1 < BF_MAX_GROUPS && code / 3 >= first_code[group + 1])
		group++;
	filter->kind = BF_KIND_BLOOM;
	filter->scheme = BF_SCHEME_CANONICAL;
	filter->key_class = (uint8_t) (BF_CLASS_INTEGER + code % 3);
	filter->name_length = 0;
	filter->name = NULL;
	filter->layers = 1;
	layer->form = BF_FORM_LINES;
	layer->count = 0;
	layer->shape.words = (size + BF_LENGTH_WORD - BF_LINE_BYTES) / BF_LINE_BYTES * BF_LINE_WORDS;
	layer->shape.groups = (uint8_t) (group + 1);
	layer->shape.probes = (uint8_t) (code / 3 - first_code[group] + first_probes[group]);
	layer->offset = BF_LINE_BYTES - BF_LENGTH_WORD;
	layer->data = NULL;
	return true;
}

/* Offset of the first layer's contents before alignment. */
static uint64_t
contents_offset(const bf_filter *filter)
{
	uint64_t	offset = BF_HEADER_BYTES;

	if (filter->key_class == BF_CLASS_NAMED)
		offset = align(offset + 1 + filter->name_length, 8);
	return align(offset + (filter->layers - 1) * (uint64_t) BF_LAYER_BYTES, 8);
}

/* Size without the padding of wide filters: decides whether it is one. */
static uint64_t
narrow_size(const bf_filter *filter)
{
	uint64_t	offset = contents_offset(filter);

	for (unsigned i = 0; i < filter->layers; i++)
		offset += bf_layer_bytes(&filter->layer[i]);
	return offset;
}

static bool
is_wide(uint64_t size)
{
	return size + BF_LENGTH_WORD >= BF_WIDE_BYTES;
}

/* Size of the filter's bytes, length word not included. */
uint64_t
bf_filter_size(const bf_filter *filter)
{
	uint64_t	size = narrow_size(filter);

	if (!is_wide(size))
		return size;
	size = contents_offset(filter);
	for (unsigned i = 0; i < filter->layers; i++)
		size = align(size, BF_LINE_BYTES) + bf_layer_bytes(&filter->layer[i]);
	/* grow to the next size with the right remainder */
	return size + (size_code(filter) + BF_LINE_BYTES -
				   (size + BF_LENGTH_WORD) % BF_LINE_BYTES) % BF_LINE_BYTES;
}

static void
write_layer_entry(uint8_t *to, const bf_layer *layer)
{
	bool		cuckoo = layer->form >= BF_FORM_COUNTS;

	bf_store32(to, (uint32_t) (cuckoo ? layer->table.buckets : layer->shape.words));
	bf_store32(to + 4, (uint32_t) layer->capacity);
	to[8] = (uint8_t) (layer->capacity >> 32);
	to[9] = (uint8_t) (layer->capacity >> 40);
	to[10] = cuckoo ? layer->table.slot_bits : (uint8_t) (layer->shape.groups << 4 | layer->shape.probes);
	to[11] = (uint8_t) layer->form;
}

/* Where things are in the contents of a layer that start at `start`. */
static void
place_contents(bf_layer *layer, uint64_t start)
{
	layer->offset = start + bf_layer_head_bytes(layer);
	layer->list_offset = layer->offset + (layer->form == BF_FORM_TABLE ? bf_table_words(layer->table) * 8 : 0);
}

static void
point_to_contents(bf_layer *layer, uint8_t *bytes)
{
	layer->data = bytes + layer->offset;
	layer->list = bytes + layer->list_offset;
}

/*
 * Write everything but the layers' contents into `n` = bf_filter_size(filter)
 * bytes, and point each layer's data at its place, for the caller to fill.
 */
void
bf_filter_write(bf_filter *filter, uint8_t *bytes, size_t n)
{
	uint64_t	fpp_bits;
	uint64_t	offset = BF_HEADER_BYTES;

	memset(bytes, 0, (size_t) contents_offset(filter));
	bytes[0] = (uint8_t) filter->kind;
	bytes[1] = (uint8_t) (filter->kind >> 8);
	bytes[2] = BF_FORMAT_VERSION;
	bytes[3] = filter->scheme;
	bytes[4] = filter->key_class;
	bytes[5] = filter->layers;
	bytes[6] = filter->growth;
	bytes[7] = filter->max_layers;
	memcpy(&fpp_bits, &filter->fpp, sizeof(fpp_bits));
	bf_store64(bytes + 8, fpp_bits);
	write_layer_entry(bytes + 16, &filter->layer[0]);
	if (filter->key_class == BF_CLASS_NAMED)
	{
		bytes[offset] = filter->name_length;
		memcpy(bytes + offset + 1, filter->name, filter->name_length);
		offset = align(offset + 1 + filter->name_length, 8);
	}
	for (unsigned i = 1; i < filter->layers; i++)
		write_layer_entry(bytes + offset + (i - 1) * BF_LAYER_BYTES, &filter->layer[i]);

	offset = contents_offset(filter);
	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_layer   *layer = &filter->layer[i];
		uint64_t	start = is_wide(n) ? align(offset, BF_LINE_BYTES) : offset;

		memset(bytes + offset, 0, (size_t) (start - offset));
		offset = start + bf_layer_bytes(layer);
		if (layer->form != BF_FORM_LINES)
			bf_store64(bytes + start, layer->count);
		if (layer->form == BF_FORM_TABLE)
			bf_store64(bytes + start + 8, layer->used);
		place_contents(layer, start);
		point_to_contents(layer, bytes);
		if (layer->form >= BF_FORM_COUNTS && layer->count > 0)
			memset(bytes + offset - 8, 0, 8);	/* behind the last count */
	}
	memset(bytes + offset, 0, n - (size_t) offset);
}

/* What is special in the entry of a cuckoo filter. */
static const char *
read_table(bf_layer *layer, uint64_t buckets, uint8_t slot_bits)
{
	if (layer->form != BF_FORM_COUNTS && layer->form != BF_FORM_TABLE)
		return "It is neither a list of numbers nor a table.";
	layer->table.buckets = buckets;
	layer->table.slot_bits = slot_bits;
	if (buckets == 0)
	{
		/* not sized yet: an aggregate's list */
		if (layer->form != BF_FORM_COUNTS || slot_bits != 0)
			return "It has no buckets, but is not an unfinished list of hashes.";
		return NULL;
	}
	if (slot_bits < BF_MIN_SLOT_BITS || slot_bits > BF_MAX_SLOT_BITS ||
		buckets > BF_MAX_RANGE >> (slot_bits - 1))
		return "The width of its slots is out of range.";
	if (bf_table_words(layer->table) > BF_MAX_BYTES / 8)
		return "Its table is larger than a filter may be.";
	return NULL;
}

/* Read and check one layer's entry. */
static const char *
read_layer_entry(bf_layer *layer, const uint8_t *from, uint16_t kind)
{
	uint64_t	words = bf_load32(from);

	memset(layer, 0, sizeof(*layer));
	layer->capacity = bf_load32(from + 4) | (uint64_t) from[8] << 32 | (uint64_t) from[9] << 40;
	if (layer->capacity > BF_MAX_CAPACITY)
		return "A layer's capacity is out of range.";
	layer->form = (bf_form) from[11];
	if (kind == BF_KIND_CUCKOO)
		return read_table(layer, words, from[10]);
	layer->shape.words = words;
	layer->shape.groups = from[10] >> 4;
	layer->shape.probes = from[10] & 15;
	if (layer->form != BF_FORM_LIST && layer->form != BF_FORM_LINES)
		return "A layer is neither a list of hashes nor lines of bits.";
	if (words > BF_LINE_WORDS && words % BF_LINE_WORDS != 0)
		return "A layer is not a whole number of lines.";
	if (words > BF_MAX_BYTES / 8)
		return "A layer is larger than a filter may be.";
	if (words == 0)
	{
		/* not sized yet: an aggregate's list */
		if (layer->form != BF_FORM_LIST || layer->capacity != 0 || from[10] != 0)
			return "A layer has no lines, but is not an unfinished list of hashes.";
	}
	else if (layer->shape.groups < 1 || layer->shape.groups > BF_MAX_GROUPS ||
			 layer->shape.probes < 1 || layer->shape.probes > BF_MAX_PROBES)
		return "A layer's number of hashes is out of range.";
	else if (layer->form == BF_FORM_LIST && layer->capacity == 0)
		return "A layer's capacity is out of range.";
	return NULL;
}

static bool
all_zero(const uint8_t *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
	{
		if (bytes[i] != 0)
			return false;
		if (i % (BF_POLL_EVERY * 64) == 0)
			bf_poll();
	}
	return true;
}

/* No header, class name and list of layers together are longer. */
#define LONGEST_HEAD	(BF_HEADER_BYTES + 8 + BF_MAX_CLASS_NAME + 8 + BF_MAX_LAYERS * BF_LAYER_BYTES + 8)

/*
 * Read a filter's structure.  Everything that decides where memory is accessed
 * is checked here, so that whatever this function accepts can be probed and
 * copied without leaving the bytes; it costs nothing that grows with the
 * filter's size.  bf_filter_validate adds the rest.
 */
static inline const char *
open_filter(bf_filter *filter, uint64_t n, bf_fetch fetch, void *arg)
{
	uint64_t	offset = BF_HEADER_BYTES;
	uint64_t	fpp_bits;
	uint64_t	fetched = n < LONGEST_HEAD ? n : LONGEST_HEAD;
	const uint8_t *head;
	const char *problem;

	if (n < BF_HEADER_BYTES)
		return "It is shorter than the header of a filter.";
	head = fetch(arg, 0, (size_t) fetched);
	filter->kind = (uint16_t) (head[0] | head[1] << 8);
	if (filter->kind != BF_KIND_BLOOM && filter->kind != BF_KIND_CUCKOO)
		return "It does not begin like a filter of this type.";
	if (head[2] != BF_FORMAT_VERSION)
		return "Its format version is not known to this version of the extension.";
	filter->scheme = head[3];
	filter->key_class = head[4];
	filter->layers = head[5];
	filter->growth = head[6];
	filter->max_layers = head[7];
	fpp_bits = bf_load64(head + 8);
	memcpy(&filter->fpp, &fpp_bits, sizeof(fpp_bits));

	if (filter->scheme > BF_SCHEME_SERVER_BE)
		return "Its hash scheme is not known to this version of the extension.";
	if (filter->key_class >= BF_CLASS_COUNT && filter->key_class != BF_CLASS_NAMED)
		return "Its key class is not known to this version of the extension.";
	if (filter->layers < 1 || filter->layers > (filter->kind == BF_KIND_CUCKOO ? 1 : BF_MAX_LAYERS))
		return "Its number of layers is out of range.";
	if (!(filter->fpp >= BF_MIN_FPP && filter->fpp < 1))
		return "Its false-positive probability is out of range.";

	filter->name = NULL;
	filter->name_length = 0;
	if (filter->key_class == BF_CLASS_NAMED)
	{
		if (n < offset + 1 || n < align(offset + 1 + head[offset], 8))
			return "It ends before its key class does.";
		filter->name_length = head[offset];
		filter->name = (const char *) head + offset + 1;
		offset = align(offset + 1 + filter->name_length, 8);
	}
	if (n < contents_offset(filter))
		return "It ends before its list of layers does.";
	for (unsigned i = 0; i < filter->layers; i++)
	{
		problem = read_layer_entry(&filter->layer[i], i == 0 ? head + 16 :
								   head + offset + (i - 1) * BF_LAYER_BYTES, filter->kind);
		if (problem != NULL)
			return problem;
	}

	offset = contents_offset(filter);
	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_layer   *layer = &filter->layer[i];
		uint64_t	words = bf_layer_head_bytes(layer);

		if (is_wide(n))
			offset = align(offset, BF_LINE_BYTES);
		if (offset > n || n - offset < words)
			return "It ends before its last layer does.";
		if (words > 0)
		{
			const uint8_t *at = offset + words <= fetched ? head + offset : fetch(arg, offset, (size_t) words);
			uint64_t	count = bf_load64(at);

			if (count > (n - offset) / 8 - 1)
				return "It ends before its list of hashes does.";
			layer->count = (uint32_t) count;
			layer->used = words > 8 ? bf_load64(at + 8) : 0;
			if (layer->used > layer->table.buckets * BF_BUCKET_SLOTS)
				return "Its table does not hold as many keys as it says.";
		}
		if (bf_layer_bytes(layer) > n - offset)
			return "It ends before its last layer does.";
		place_contents(layer, offset);
		offset += bf_layer_bytes(layer);
	}
	if (n != bf_filter_size(filter))
		return "Its size does not agree with its contents.";
	return NULL;
}

static const uint8_t *
fetch_from_memory(void *arg, uint64_t offset, size_t n)
{
	(void) n;
	return (const uint8_t *) arg + offset;
}

/* Read the structure of a filter that is in memory. */
const char *
bf_filter_open(bf_filter *filter, const uint8_t *bytes, size_t n)
{
	const char *problem = open_filter(filter, n, fetch_from_memory, (void *) bytes);

	if (problem == NULL)
	{
		for (unsigned i = 0; i < filter->layers; i++)
			point_to_contents(&filter->layer[i], (uint8_t *) bytes);
	}
	return problem;
}

/*
 * Read the structure of a filter that is stored elsewhere.  The name of a key
 * class is in the first piece: valid until another one is fetched, which
 * happens here if there are several lists of hashes.
 */
const char *
bf_filter_open_pieces(bf_filter *filter, uint64_t size, bf_fetch fetch, void *arg)
{
	return open_filter(filter, size, fetch, arg);
}

/* The parts of the bytes that mean nothing have to be zero. */
static bool
padding_is_zero(const bf_filter *filter, const uint8_t *bytes, size_t n)
{
	uint64_t	offset = BF_HEADER_BYTES;
	uint64_t	end;

	if (filter->key_class == BF_CLASS_NAMED)
	{
		end = offset + 1 + filter->name_length;
		offset = align(end, 8);
		if (!all_zero(bytes + end, offset - end))
			return false;
	}
	end = offset + (filter->layers - 1) * (uint64_t) BF_LAYER_BYTES;
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];
		uint64_t	start = layer->offset - bf_layer_head_bytes(layer);

		if (!all_zero(bytes + end, start - end))
			return false;
		end = start + bf_layer_bytes(layer);
	}
	return all_zero(bytes + end, n - end);
}

/* What is special in the contents of a cuckoo filter. */
static const char *
validate_cuckoo(const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];
	const uint8_t *counts = layer->list + (uint64_t) layer->count * 8;
	uint64_t	distinct = layer->count;
	const char *problem;

	if (filter->growth == 1 || filter->growth > BF_MAX_CUCKOO_GROWTH ||
		(filter->growth & (filter->growth - 1)) != 0 || filter->max_layers != 0)
		return "Its rule of growth is contradictory.";
	if (!bf_list_is_sorted(layer->list, layer->count))
		return "Its list of numbers is not in ascending order.";
	if (layer->count > 0 && layer->table.buckets > 0 &&
		bf_load64(layer->list + ((uint64_t) layer->count - 1) * 8) >= bf_table_range(layer->table))
		return "Its list has a number that is out of range.";
	if (!all_zero(counts + layer->count, (8 - layer->count % 8) % 8))
		return "Bytes that have to be zero are not.";
	if (layer->form == BF_FORM_TABLE)
	{
		problem = bf_table_check(layer->data, layer->table, layer->used);
		if (problem != NULL)
			return problem;
		distinct = bf_layer_distinct(layer);
	}
	for (uint64_t i = 0; i < layer->count; i++)
	{
		if (counts[i] == 0)
			return "Its list counts a key that is not there.";
		if (counts[i] == BF_MAX_COUNT && layer->form == BF_FORM_TABLE &&
			bf_table_find(layer->data, layer->table, bf_load64(layer->list + i * 8)))
			return "A key is there more often than it can be.";
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	if (bf_keep_counts(layer->table, distinct) != (layer->form == BF_FORM_COUNTS))
		return "It has the wrong one of its two forms for as many keys.";
	return NULL;
}

/*
 * The one validator: bytes from outside (text, binary, bytea, an aggregate
 * state) pass here before anything else reads them.
 */
const char *
bf_filter_validate(const uint8_t *bytes, size_t n, uint16_t kind)
{
	bf_filter	filter;
	const char *problem = bf_filter_open(&filter, bytes, n);

	if (problem != NULL)
		return problem;
	if (filter.kind != kind)
		return "It does not begin like a filter of this type.";
	if (n + BF_LENGTH_WORD > BF_MAX_BYTES)
		return "It is larger than a filter may be.";
	if (kind == BF_KIND_CUCKOO)
	{
		problem = validate_cuckoo(&filter);
		if (problem != NULL)
			return problem;
	}
	if (filter.growth > BF_MAX_GROWTH || filter.max_layers > BF_MAX_LAYERS ||
		(filter.max_layers > 0 && (filter.growth != 1 || filter.layers > filter.max_layers)))
		return "Its rule of growth is contradictory.";
	if (filter.layer[0].capacity == 0 && (filter.layers > 1 || filter.max_layers > 0))
		return "It is unfinished, yet has several layers or may have.";
	if (filter.key_class == BF_CLASS_NONE ? filter.scheme != BF_SCHEME_NONE :
		filter.key_class == BF_CLASS_NAMED ? filter.scheme == BF_SCHEME_NONE :
		filter.scheme != BF_SCHEME_CANONICAL)
		return "Its key class and its hash scheme contradict each other.";
	if (filter.key_class == BF_CLASS_NAMED)
	{
		if (filter.name_length == 0 || memchr(filter.name, 0, filter.name_length) != NULL)
			return "The name of its key class is malformed.";
	}

	for (unsigned i = 0; i < filter.layers; i++)
	{
		const bf_layer *layer = &filter.layer[i];

		if (i > 0 && layer->capacity == 0)
			return "A layer's capacity is out of range.";
		if (layer->form != BF_FORM_LIST)
			continue;
		if (!bf_keep_list(layer->shape, layer->count))
			return "A list of hashes is longer than it may be.";
		if (!bf_list_is_sorted(layer->data, layer->count))
			return "A list of hashes is not in ascending order.";
	}
	if (!padding_is_zero(&filter, bytes, n))
		return "Bytes that have to be zero are not.";
	if (filter.key_class == BF_CLASS_NONE && !bf_filter_is_empty(&filter))
		return "It holds keys, but of no class.";
	return NULL;
}

bool
bf_layer_is_empty(const bf_layer *layer)
{
	if (layer->form == BF_FORM_LINES)
		return all_zero(layer->data, bf_layer_bytes(layer));
	return layer->count == 0 && layer->used == 0;
}

bool
bf_filter_is_empty(const bf_filter *filter)
{
	for (unsigned i = 0; i < filter->layers; i++)
	{
		if (!bf_layer_is_empty(&filter->layer[i]))
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------
 * Multisets
 * ----------------------------------------------------------------
 */

/* The largest number that there may be. */
static uint64_t
largest_number(bf_table table)
{
	return table.buckets == 0 ? UINT64_MAX : bf_table_range(table) - 1;
}

/* How many copies does the list count? */
unsigned
bf_layer_listed(const bf_layer *layer, uint64_t number)
{
	size_t		place;

	if (layer->count == 0)
		return 0;
	place = bf_list_search(layer->list, layer->count, number, largest_number(layer->table));
	return place < layer->count ? layer->list[(uint64_t) layer->count * 8 + place] : 0;
}

/* How many are there? */
unsigned
bf_layer_copies(const bf_layer *layer, uint64_t number)
{
	return bf_layer_listed(layer, number) +
		(layer->form == BF_FORM_TABLE && bf_table_find(layer->data, layer->table, number));
}

/* How many distinct numbers? */
uint64_t
bf_layer_distinct(const bf_layer *layer)
{
	uint64_t	distinct = layer->used;

	if (layer->form != BF_FORM_TABLE)
		return layer->count;
	for (uint64_t i = 0; i < layer->count; i++)
	{
		uint64_t	number = bf_load64(layer->list + i * 8);

		if (number >= bf_table_range(layer->table) || !bf_table_find(layer->data, layer->table, number))
			distinct++;
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	return distinct;
}

/*
 * May the key with this hash have been added?  It is asked for in all layers, so
 * their memory is fetched at once.
 */
bool
bf_filter_contains(const bf_filter *filter, uint64_t hash)
{
	uint64_t	group_hash;

	if (filter->layers == 1)
		return bf_layer_contains(&filter->layer[0], hash);
	group_hash = bf_group_hash(hash, 0);
	for (unsigned i = filter->layers; i-- > 0;)
	{
		if (filter->layer[i].form == BF_FORM_LINES)
			bf_line_prefetch(filter->layer[i].data, filter->layer[i].shape, group_hash);
	}
	for (unsigned i = filter->layers; i-- > 0;)
	{
		const bf_layer *layer = &filter->layer[i];

		if (layer->form == BF_FORM_LINES ? bf_lines_test_from(layer->data, layer->shape, hash, group_hash) :
			bf_layer_contains(layer, hash))
			return true;
	}
	return false;
}

/* The same for many keys: memory is fetched for a batch of them at a time. */
void
bf_filter_contains_many(const bf_filter *filter, const uint64_t *hashes, size_t n, bool *found)
{
	if (filter->layers == 1 && filter->layer[0].form == BF_FORM_LINES)
	{
		bf_lines_test_many(filter->layer[0].data, filter->layer[0].shape, hashes, n, found);
		return;
	}
	for (size_t i = 0; i < n; i++)
	{
		if (filter->layer[0].form == BF_FORM_TABLE && i + BF_BATCH < n)
			bf_table_prefetch(filter->layer[0].data, filter->layer[0].table,
							  bf_table_number(filter->layer[0].table, hashes[i + BF_BATCH]));
		found[i] = bf_filter_contains(filter, hashes[i]);
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
}

/* One layer's census, whatever its form; a list knows its keys exactly. */
bf_census
bf_layer_census(const bf_layer *layer)
{
	bf_census	census = {0, 0.0, 0.0};

	if (layer->form == BF_FORM_LINES)
		return bf_lines_census(layer->data, layer->shape);
	census.keys = (double) bf_layer_distinct(layer);
	if (layer->table.buckets == 0)
		census.fpp = census.keys / 18446744073709551616.0;
	else
	{
		/* keys of one number count once: there are a few more than numbers */
		double		range = (double) bf_table_range(layer->table);

		census.bits_set = layer->used;
		census.fpp = census.keys / range;
		census.keys = census.fpp < 1 ? -range * log1p(-census.fpp) : range;
	}
	return census;
}

/*
 * All layers together: keys add up (a key is in one layer only), and a stray
 * key passes if it passes in any.
 */
bf_census
bf_filter_census(const bf_filter *filter)
{
	bf_census	total = {0, 0.0, 0.0};

	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_census	census = bf_layer_census(&filter->layer[i]);

		total.bits_set += census.bits_set;
		total.keys += census.keys;
		total.fpp = total.fpp + census.fpp - total.fpp * census.fpp;
	}
	return total;
}

/* Hashes of a list fetched at a time: half a TOAST chunk. */
#define LIST_WINDOW		128

/*
 * How many entries of a list are between numbers so far apart?  Not more than
 * most; entries of damaged lists may be out of range.
 */
static uint64_t
entries_between(uint64_t distance, double density, uint64_t most)
{
	double		entries = (double) distance * density;

	return entries < (double) most ? (uint64_t) entries : most;
}

/*
 * Is the number in a list that is stored elsewhere?  Numbers are uniform, so its
 * place is guessed from the whole list first, and after a look at that place
 * from there: the second window nearly always has it.  Bisect if not.
 */
static bool
list_contains_pieces(const bf_layer *layer, bf_fetch fetch, void *arg, uint64_t number)
{
	uint64_t	low = 0;
	uint64_t	high = layer->count;
	double		density = (double) layer->count / ((double) largest_number(layer->table) + 1.0);
	uint64_t	guess = entries_between(number, density, high);

	for (unsigned guesses = 1; low < high; guesses++)
	{
		uint64_t	start = guess > low + LIST_WINDOW / 2 ? guess - LIST_WINDOW / 2 : low;
		uint64_t	n = LIST_WINDOW;
		const uint8_t *window;
		uint64_t	first;
		uint64_t	last;

		if (start >= high)
			start = high > low + LIST_WINDOW ? high - LIST_WINDOW : low;
		if (n > high - start)
			n = high - start;
		window = fetch(arg, layer->list_offset + start * 8, (size_t) n * 8);
		first = bf_load64(window);
		last = bf_load64(window + (n - 1) * 8);
		if (number >= first && number <= last)
			return bf_list_find(window, (size_t) n, number);
		if (number < first)
		{
			high = start;
			guess = high - entries_between(first - number, density, high - low);
		}
		else
		{
			low = start + n;
			guess = low + entries_between(number - last, density, high - low);
		}
		if (guesses >= 4)
			guess = low + (high - low) / 2;
	}
	return false;
}

/* Is the number in a table that is stored elsewhere? */
static bool
table_contains_pieces(const bf_layer *layer, bf_fetch fetch, void *arg, uint64_t number)
{
	bf_table	table = layer->table;
	uint64_t	value = bf_table_value(table, number);
	uint64_t	bucket = bf_table_bucket(table, number);

	for (unsigned i = 0; i < 2; i++)
	{
		uint64_t	at = bf_bucket_start(table, bucket);

		if (value + i != 0 &&
			bf_bucket_holds(fetch(arg, layer->offset + at / 8, bf_bucket_span(table, at)),
							table.slot_bits, at % 8, value + i))
			return true;
		bucket = bf_table_alternate(table, bucket, value >> 1);
	}
	return false;
}

/* bf_filter_contains for a filter that is stored elsewhere. */
bool
bf_filter_contains_pieces(const bf_filter *filter, bf_fetch fetch, void *arg, uint64_t hash)
{
	for (unsigned i = filter->layers; i-- > 0;)
	{
		const bf_layer *layer = &filter->layer[i];
		unsigned	group = 0;

		if (layer->form != BF_FORM_LINES)
		{
			uint64_t	number = bf_table_number(layer->table, hash);

			if (layer->form == BF_FORM_TABLE && table_contains_pieces(layer, fetch, arg, number))
				return true;
			if (list_contains_pieces(layer, fetch, arg, number))
				return true;
			continue;
		}
		for (; group < layer->shape.groups; group++)
		{
			uint64_t	group_hash = bf_group_hash(hash, group);
			uint64_t	line = bf_group_line(group_hash, bf_shape_lines(layer->shape));
			unsigned	bits = bf_shape_line_bits(layer->shape);

			if (!bf_line_test(fetch(arg, layer->offset + line * BF_LINE_BYTES, bits / 8),
							  bits, layer->shape.probes, group_hash))
				break;
		}
		if (group == layer->shape.groups)
			return true;
	}
	return false;
}
