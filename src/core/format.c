/*
 * format.c
 *		The layout of a filter's bytes: opening, writing and validating them.
 *
 * The layout (docs/FORMAT.md) is a header of 28 bytes, which ends with the entry of
 * the first layer; the name of the key class if that has no number; the entries of
 * further layers; and the contents of each layer.  The functions that compute
 * sizes, write and read share the computation of offsets.
 *
 * Offsets count from the first byte of the filter, alignment from the length word
 * of the varlena before it.
 */
#include "format.h"

static const char *const class_labels[BF_CLASS_COUNT] = {
	"none", "integer", "text", "uuid", "bytea", "boolean", "float", "numeric",
	"date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet",
	"macaddr", "macaddr8", "bit", "oid", "money", "xid8", "pg_lsn", "jsonb"
};

/* The label of a numbered class; NULL for unknown numbers. */
const char *
bf_class_label(unsigned code)
{
	return code < BF_CLASS_COUNT ? class_labels[code] : NULL;
}

/*
 * Set the class of a header.  Its name is copied because the header may outlive the
 * key.
 */
void
bf_header_set_class(bf_header *header, const bf_key_class *class)
{
	bf_key_class own = *class;

	own.name = NULL;
	if (class->name_length > 0)
		own.name = memcpy(bf_allocate(header->host, class->name_length), class->name, class->name_length);
	header->class = own;
}

/* Copy a header for another host. */
void
bf_header_copy(bf_header *header, const bf_header *from, bf_host host)
{
	*header = *from;
	header->host = host;
	bf_header_set_class(header, &from->class);
}

/* The next offset that is aligned to `to`, counted from the length word. */
static uint64_t
align(uint64_t offset, uint64_t to)
{
	return (offset + BF_LENGTH_WORD + to - 1) / to * to - BF_LENGTH_WORD;
}

/*
 * The shapes that a size can encode: those that bf_shape_for chooses for more than
 * one line.  20 shapes x 3 classes = 60 codes.
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
		filter->header.class.code < BF_CLASS_INTEGER || filter->header.class.code > BF_CLASS_UUID ||
		probes < first_probes[group])
		return BF_SIZE_CODE_HEADER;
	return (first_code[group] + probes - first_probes[group]) * 3 +
		(filter->header.class.code - BF_CLASS_INTEGER);
}

/*
 * Does the size of a filter encode its shape and key class?  If so, describe the
 * filter as far as a probe needs it.
 */
bool
bf_filter_of_size(bf_filter *filter, bf_host host, uint64_t size)
{
	unsigned	code = (unsigned) ((size + BF_LENGTH_WORD) % BF_LINE_BYTES);
	unsigned	group = 0;
	bf_layer   *layer = &filter->layer[0];

	if (size + BF_LENGTH_WORD < BF_WIDE_BYTES || code >= BF_SIZE_CODE_HEADER)
		return false;
	if ((size + BF_LENGTH_WORD) / BF_LINE_BYTES - 1 == BF_SPILL_LINES)
		return false;			/* it may be unfinished: see the header */
	while (group + 1 < BF_MAX_GROUPS && code / 3 >= first_code[group + 1])
		group++;
	filter->header.host = host;
	filter->header.kind = BF_KIND_BLOOM;
	filter->header.class = (bf_key_class) {BF_SCHEME_CANONICAL, (uint8_t) (BF_CLASS_INTEGER + code % 3), 0, NULL};
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

/* Offset of the entries of further layers: behind the name of the key class. */
static uint64_t
entries_offset(const bf_filter *filter)
{
	if (filter->header.class.code != BF_CLASS_NAMED)
		return BF_HEADER_BYTES;
	return align(BF_HEADER_BYTES + 1 + filter->header.class.name_length, 8);
}

/* Offset of the first layer's contents before alignment. */
static uint64_t
contents_offset(const bf_filter *filter)
{
	return align(entries_offset(filter) + (filter->layers - 1) * (uint64_t) BF_LAYER_BYTES, 8);
}

/* Size without the padding of wide filters, which decides whether the filter is wide. */
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
	/* pad to the next size with this remainder */
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

/* Set the offsets of a layer whose contents start at `start`. */
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
	uint64_t	offset = contents_offset(filter);

	memset(bytes, 0, (size_t) offset);
	bytes[0] = (uint8_t) filter->header.kind;
	bytes[1] = (uint8_t) (filter->header.kind >> 8);
	bytes[2] = BF_FORMAT_VERSION;
	bytes[3] = filter->header.class.scheme;
	bytes[4] = filter->header.class.code;
	bytes[5] = filter->layers;
	bytes[6] = filter->header.growth;
	bytes[7] = filter->header.max_layers;
	memcpy(&fpp_bits, &filter->header.fpp, sizeof(fpp_bits));
	bf_store64(bytes + 8, fpp_bits);
	write_layer_entry(bytes + 16, &filter->layer[0]);
	if (filter->header.class.code == BF_CLASS_NAMED)
	{
		bytes[BF_HEADER_BYTES] = filter->header.class.name_length;
		if (filter->header.class.name_length > 0)	/* 0 in damaged filters */
			memcpy(bytes + BF_HEADER_BYTES + 1, filter->header.class.name, filter->header.class.name_length);
	}
	for (unsigned i = 1; i < filter->layers; i++)
		write_layer_entry(bytes + entries_offset(filter) + (i - 1) * BF_LAYER_BYTES, &filter->layer[i]);
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

/* Read and check the entry of a cuckoo filter. */
static const char *
read_table(bf_layer *layer, uint64_t buckets, uint8_t slot_bits)
{
	if (layer->form != BF_FORM_COUNTS && layer->form != BF_FORM_TABLE)
		return "It is neither a list of numbers nor a table.";
	layer->table.buckets = buckets;
	layer->table.slot_bits = slot_bits;
	if (buckets == 0)
	{
		/* the state of an aggregate, sized at the end */
		if (layer->form != BF_FORM_COUNTS || slot_bits != 0)
			return "It has no buckets, but is not an unfinished list of hashes.";
		return NULL;
	}
	if (slot_bits < BF_MIN_SLOT_BITS || slot_bits > BF_MAX_SLOT_BITS ||
		buckets > BF_MAX_RANGE >> (slot_bits - 1))
		return "The width of its slots is out of range.";
	if (bf_table_words(layer->table) > BF_MAX_BYTES / 8)
		return "Its table is larger than the maximum size of a filter.";
	return NULL;
}

/* The offset of the first layer's entry in the header. */
#define FIRST_ENTRY		(BF_HEADER_BYTES - BF_LAYER_BYTES)

static uint64_t
entry_capacity(const uint8_t *entry)
{
	return bf_load32(entry + 4) | (uint64_t) entry[8] << 32 | (uint64_t) entry[9] << 40;
}

bool
bf_header_is_unfinished(const uint8_t *head)
{
	return bf_load32(head + FIRST_ENTRY) == 0 || entry_capacity(head + FIRST_ENTRY) == 0;
}

/* Read and check one layer's entry. */
static const char *
read_layer_entry(bf_layer *layer, const uint8_t *from, uint16_t kind)
{
	uint64_t	words = bf_load32(from);

	memset(layer, 0, sizeof(*layer));
	layer->capacity = entry_capacity(from);
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
		return "The size of a layer is not a multiple of a line.";
	if (words > BF_MAX_BYTES / 8)
		return "A layer is larger than the maximum size of a filter.";
	if (words == 0)
	{
		/* the state of an aggregate, sized at the end */
		if (layer->form != BF_FORM_LIST || from[10] != 0)
			return "A layer has no lines, but is not an unfinished list of hashes.";
	}
	else if (layer->shape.groups < 1 || layer->shape.groups > BF_MAX_GROUPS ||
			 layer->shape.probes < 1 || layer->shape.probes > BF_MAX_PROBES)
		return "A layer's number of hashes is out of range.";
	else if (layer->form == BF_FORM_LIST && layer->capacity == 0)
		return "A layer's capacity is out of range.";
	return NULL;
}

bool
bf_bytes_are_zero(bf_host host, const uint8_t *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
	{
		if (bytes[i] != 0)
			return false;
		if (i % (BF_POLL_EVERY * 64) == 0)
			bf_poll(host);
	}
	return true;
}

bool
bf_layer_is_empty(bf_host host, const bf_layer *layer)
{
	if (layer->form == BF_FORM_LINES)
		return bf_bytes_are_zero(host, layer->data, bf_layer_bytes(layer));
	return layer->count == 0 && layer->used == 0;
}

bool
bf_filter_is_empty(const bf_filter *filter)
{
	for (unsigned i = 0; i < filter->layers; i++)
	{
		if (!bf_layer_is_empty(filter->header.host, &filter->layer[i]))
			return false;
	}
	return true;
}

/* An upper bound of the header, class name and entries of layers. */
#define LONGEST_HEAD	(BF_HEADER_BYTES + 8 + BF_MAX_CLASS_NAME + 8 + BF_MAX_LAYERS * BF_LAYER_BYTES + 8)

/*
 * Find the contents of each layer.  `head` is the first piece of the filter, of
 * `fetched` bytes.
 */
static const char *
find_contents(bf_filter *filter, uint64_t n, const uint8_t *head, uint64_t fetched, bf_fetch fetch, void *arg)
{
	uint64_t	offset = contents_offset(filter);

	for (unsigned i = 0; i < filter->layers; i++)
	{
		bf_layer   *layer = &filter->layer[i];
		uint64_t	words = bf_layer_head_bytes(layer);

		if (is_wide(n))
			offset = align(offset, BF_LINE_BYTES);
		if (offset > n || n - offset < words)
			return "Its last layer is truncated.";
		if (words > 0)
		{
			const uint8_t *at = offset + words <= fetched ? head + offset : fetch(arg, offset, (size_t) words);
			uint64_t	count = bf_load64(at);

			if (count > (n - offset) / 8 - 1)
				return "Its list of hashes is truncated.";
			layer->count = (uint32_t) count;
			layer->used = words > 8 ? bf_load64(at + 8) : 0;
			if (layer->used > layer->table.buckets * BF_BUCKET_SLOTS)
				return "The number of keys in its table does not match the stored count.";
		}
		if (bf_layer_bytes(layer) > n - offset)
			return "Its last layer is truncated.";
		place_contents(layer, offset);
		offset += bf_layer_bytes(layer);
	}
	if (n != bf_filter_size(filter))
		return "Its size does not match its contents.";
	return NULL;
}

/* Are scheme and class known?  NULL, or a sentence on what is wrong. */
static const char *
check_class_numbers(const bf_key_class *class)
{
	if (class->scheme > BF_SCHEME_SERVER_BE)
		return "Its hash scheme is not supported by this version of the extension.";
	if (class->code >= BF_CLASS_COUNT && class->code != BF_CLASS_NAMED)
		return "Its key class is not supported by this version of the extension.";
	return NULL;
}

/* Is this the class of a key?  NULL, or a sentence on what is wrong. */
const char *
bf_class_validate(const bf_key_class *class)
{
	bool		named = class->code == BF_CLASS_NAMED;

	if (class->code == BF_CLASS_NONE ? class->scheme != BF_SCHEME_NONE :
		named ? class->scheme == BF_SCHEME_NONE : class->scheme != BF_SCHEME_CANONICAL)
		return "Its key class does not match its hash scheme.";
	if (named != (class->name_length > 0) || (named && memchr(class->name, 0, class->name_length) != NULL))
		return "The name of its key class is invalid.";
	return check_class_numbers(class);
}

/*
 * Read the structure of a filter that is fetched in pieces.  Everything that
 * determines memory accesses is checked here, so a filter that is accepted can be
 * probed and copied without leaving its bytes.  The time does not depend on
 * the filter's size.  bf_filter_validate checks the rest.
 *
 * The name of a key class points into the first piece.  It is valid until another
 * piece is fetched, which this function does if there are several lists of hashes.
 */
const char *
bf_filter_open_pieces(bf_filter *filter, bf_host host, uint64_t n, bf_fetch fetch, void *arg)
{
	uint64_t	fpp_bits;
	uint64_t	fetched = n < LONGEST_HEAD ? n : LONGEST_HEAD;
	const uint8_t *head;
	const char *problem;

	if (n < BF_HEADER_BYTES)
		return "It is shorter than a filter header.";
	head = fetch(arg, 0, (size_t) fetched);
	filter->header.host = host;
	filter->header.kind = (uint16_t) (head[0] | head[1] << 8);
	if (filter->header.kind != BF_KIND_BLOOM && filter->header.kind != BF_KIND_CUCKOO)
		return "It does not start with the signature of this type.";
	if (head[2] != BF_FORMAT_VERSION)
		return "Its format version is not supported by this version of the extension.";
	filter->header.class.scheme = head[3];
	filter->header.class.code = head[4];
	filter->layers = head[5];
	filter->header.growth = head[6];
	filter->header.max_layers = head[7];
	fpp_bits = bf_load64(head + 8);
	memcpy(&filter->header.fpp, &fpp_bits, sizeof(fpp_bits));

	problem = check_class_numbers(&filter->header.class);
	if (problem != NULL)
		return problem;
	if (filter->layers < 1 || filter->layers > (filter->header.kind == BF_KIND_CUCKOO ? 1 : BF_MAX_LAYERS))
		return "Its number of layers is out of range.";
	if (!(filter->header.fpp >= BF_MIN_FPP && filter->header.fpp < 1))
		return "Its false-positive probability is out of range.";

	filter->header.class.name = NULL;
	filter->header.class.name_length = 0;
	if (filter->header.class.code == BF_CLASS_NAMED)
	{
		if (n < BF_HEADER_BYTES + 1 || n < align(BF_HEADER_BYTES + 1 + head[BF_HEADER_BYTES], 8))
			return "Its key class is truncated.";
		filter->header.class.name_length = head[BF_HEADER_BYTES];
		filter->header.class.name = (const char *) head + BF_HEADER_BYTES + 1;
	}
	if (n < contents_offset(filter))
		return "Its list of layers is truncated.";
	for (unsigned i = 0; i < filter->layers; i++)
	{
		problem = read_layer_entry(&filter->layer[i], i == 0 ? head + FIRST_ENTRY :
								   head + entries_offset(filter) + (i - 1) * BF_LAYER_BYTES, filter->header.kind);
		if (problem != NULL)
			return problem;
		if (i > 0 && (filter->layer[i].capacity == 0 || filter->layer[i].shape.words == 0))
			return "A layer's capacity is out of range.";
	}
	if (bf_filter_is_unfinished(filter) && (filter->layers > 1 || filter->header.max_layers > 0))
		return "It is an unfinished aggregate state, but has or allows several layers.";

	return find_contents(filter, n, head, fetched, fetch, arg);
}

/* Read the structure of a filter that is in memory. */
const char *
bf_filter_open(bf_filter *filter, bf_host host, const uint8_t *bytes, size_t n)
{
	const char *problem = bf_filter_open_pieces(filter, host, n, bf_fetch_from_memory, (void *) bytes);

	if (problem == NULL)
	{
		for (unsigned i = 0; i < filter->layers; i++)
			point_to_contents(&filter->layer[i], (uint8_t *) bytes);
	}
	return problem;
}

/* Are all padding bytes zero? */
static bool
padding_is_zero(const bf_filter *filter, const uint8_t *bytes, size_t n)
{
	uint64_t	offset = entries_offset(filter);
	uint64_t	end = BF_HEADER_BYTES + 1 + filter->header.class.name_length;

	if (offset > end && !bf_bytes_are_zero(filter->header.host, bytes + end, offset - end))
		return false;
	end = offset + (filter->layers - 1) * (uint64_t) BF_LAYER_BYTES;
	for (unsigned i = 0; i < filter->layers; i++)
	{
		const bf_layer *layer = &filter->layer[i];
		uint64_t	start = layer->offset - bf_layer_head_bytes(layer);

		if (!bf_bytes_are_zero(filter->header.host, bytes + end, start - end))
			return false;
		end = start + bf_layer_bytes(layer);
	}
	return bf_bytes_are_zero(filter->header.host, bytes + end, n - end);
}

/* Validate the contents of a cuckoo filter. */
static const char *
validate_cuckoo(const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];
	const uint8_t *counts = layer->list + (uint64_t) layer->count * 8;
	uint64_t	distinct = layer->used;
	const char *problem;

	if (filter->header.growth == 1 || filter->header.growth > BF_MAX_CUCKOO_GROWTH ||
		(filter->header.growth & (filter->header.growth - 1)) != 0 || filter->header.max_layers != 0)
		return "Its growth parameters are invalid.";
	if (!bf_list_is_sorted(filter->header.host, layer->list, layer->count))
		return "Its list of numbers is not in ascending order.";
	if (layer->count > 0 && layer->table.buckets > 0 &&
		bf_load64(layer->list + ((uint64_t) layer->count - 1) * 8) >= bf_table_range(layer->table))
		return "A number in its list is out of range.";
	if (!bf_bytes_are_zero(filter->header.host, counts + layer->count, (8 - layer->count % 8) % 8))
		return "Padding bytes are not zero.";
	if (layer->form == BF_FORM_TABLE)
	{
		problem = bf_table_check(filter->header.host, layer->data, layer->table, layer->used);
		if (problem != NULL)
			return problem;
	}
	for (uint64_t i = 0; i < layer->count; i++)
	{
		bool		in_table = layer->form == BF_FORM_TABLE &&
		bf_table_find(layer->data, layer->table, bf_load64(layer->list + i * 8));

		distinct += !in_table;
		if (counts[i] == 0)
			return "Its list has a count of zero.";
		if (counts[i] == BF_MAX_COUNT && in_table)
			return "The count of a key exceeds the maximum.";
		if (i % BF_POLL_EVERY == 0)
			bf_poll(filter->header.host);
	}
	if (bf_keep_counts(layer->table, distinct) != (layer->form == BF_FORM_COUNTS))
		return "Its encoding does not match the number of keys.";
	return NULL;
}

/*
 * The validator.  Bytes from outside (text, binary, bytea, serialized aggregate
 * states) are validated here before anything else reads them.
 */
const char *
bf_filter_validate(bf_host host, const uint8_t *bytes, size_t n, uint16_t kind)
{
	bf_filter	filter;
	const char *problem = bf_filter_open(&filter, host, bytes, n);

	if (problem != NULL)
		return problem;
	if (filter.header.kind != kind)
		return "It does not start with the signature of this type.";
	if (n + BF_LENGTH_WORD > BF_MAX_BYTES)
		return "It is larger than the maximum size of a filter.";
	if (kind == BF_KIND_CUCKOO)
	{
		problem = validate_cuckoo(&filter);
		if (problem != NULL)
			return problem;
	}
	if (filter.header.growth > BF_MAX_GROWTH || filter.header.max_layers > BF_MAX_LAYERS ||
		(filter.header.max_layers > 0 && (filter.header.growth != 1 || filter.layers > filter.header.max_layers)))
		return "Its growth parameters are invalid.";
	if (filter.layer[0].form == BF_FORM_LINES && filter.layer[0].capacity == 0 &&
		bf_shape_lines(filter.layer[0].shape) != BF_SPILL_LINES)
		return "It is an unfinished aggregate state with an unexpected number of lines.";
	problem = bf_class_validate(&filter.header.class);
	if (problem != NULL)
		return problem;

	for (unsigned i = 0; i < filter.layers; i++)
	{
		const bf_layer *layer = &filter.layer[i];

		if (layer->form != BF_FORM_LIST)
			continue;
		if (!bf_keep_list(layer->shape, layer->count))
			return "A list of hashes exceeds the maximum length.";
		if (!bf_list_is_sorted(host, layer->data, layer->count))
			return "A list of hashes is not in ascending order.";
	}
	if (!padding_is_zero(&filter, bytes, n))
		return "Padding bytes are not zero.";
	if (filter.header.class.code == BF_CLASS_NONE && !bf_filter_is_empty(&filter))
		return "It has keys, but no key class.";
	return NULL;
}
