/*
 * format.h
 *		The bytes of a filter: layout, reading, writing, validating.
 *
 * docs/FORMAT.md is the specification.  A filter has the same bytes on disk, on the
 * wire and as bytea.
 */
#ifndef BF_FORMAT_H
#define BF_FORMAT_H

#include "geometry.h"
#include "hashlist.h"
#include "table.h"

#define BF_FORMAT_VERSION	1

/* The first two bytes: what kind of filter. */
#define BF_KIND_BLOOM		UINT16_C(0x4642)	/* "BF" */
#define BF_KIND_CUCKOO		UINT16_C(0x4643)	/* "CF" */

#define BF_HEADER_BYTES		28
#define BF_LAYER_BYTES		12	/* of the header, or one directory entry */
#define BF_LENGTH_WORD		4	/* of the varlena header before the bytes */

#define BF_MAX_LAYERS		64
#define BF_MAX_GROWTH		100
#define BF_DEFAULT_GROWTH	2	/* the next layer's capacity over the last's */
#define BF_MAX_BYTES		(UINT64_C(512) * 1024 * 1024)	/* with length word */
#define BF_MAX_CLASS_NAME	255
#define BF_MAX_COUNT		255 /* copies of a key; this count is final */
#define BF_MAX_CUCKOO_GROWTH	64

/*
 * Bounds of an aggregate without a declared capacity, as documented in
 * docs/reference.md.  Up to BF_MAX_LIST distinct hashes are collected in a list of
 * at most BF_LIST_ROOM entries (128 MB), and the filter is sized exactly.  Beyond
 * that, keys are added to BF_SPILL_LINES lines (264 MB), which are folded to a
 * fitting size at the end.  That number has many divisors, which allows as many
 * sizes.
 */
#define BF_MAX_LIST			(12 * 1024 * 1024)
#define BF_LIST_ROOM		(16 * 1024 * 1024)
#define BF_SPILL_LINES		(32 * 27 * 5 * 7 * 11 * 13)

/*
 * Filters of this size are stored out of line.  From this size on, lines are
 * aligned to 64 bytes and the size encodes the geometry; see docs/FORMAT.md.
 */
#define BF_WIDE_BYTES		2048

/*
 * Values of size % 64 in a wide filter.  Lower ones encode the shape and key class
 * of a single layer of lines; this one means that they are in the header only.
 */
#define BF_SIZE_CODE_HEADER	60

/* The hash functions of a filter's keys. */
typedef enum bf_scheme
{
	BF_SCHEME_NONE = 0,			/* no key yet */
	BF_SCHEME_CANONICAL = 1,	/* XXH3 over canonical bytes: the same
								 * anywhere */
	BF_SCHEME_SERVER_LE = 2,	/* a type's own hash procs, little-endian
								 * server */
	BF_SCHEME_SERVER_BE = 3		/* the same, big-endian server */
} bf_scheme;

/* The class of a filter's keys; the name of BF_CLASS_NAMED follows the header. */
typedef enum bf_class
{
	BF_CLASS_NONE = 0,
	BF_CLASS_INTEGER = 1,
	BF_CLASS_TEXT = 2,
	BF_CLASS_UUID = 3,
	BF_CLASS_BYTEA = 4,
	BF_CLASS_BOOLEAN = 5,
	BF_CLASS_FLOAT = 6,
	BF_CLASS_NUMERIC = 7,
	BF_CLASS_DATE = 8,
	BF_CLASS_TIME = 9,
	BF_CLASS_TIMETZ = 10,
	BF_CLASS_TIMESTAMP = 11,
	BF_CLASS_TIMESTAMPTZ = 12,
	BF_CLASS_INTERVAL = 13,
	BF_CLASS_INET = 14,
	BF_CLASS_MACADDR = 15,
	BF_CLASS_MACADDR8 = 16,
	BF_CLASS_BIT = 17,
	BF_CLASS_OID = 18,
	BF_CLASS_MONEY = 19,
	BF_CLASS_XID8 = 20,
	BF_CLASS_PG_LSN = 21,
	BF_CLASS_JSONB = 22,
	BF_CLASS_COUNT,
	BF_CLASS_NAMED = 255
} bf_class;

typedef enum bf_form
{
	/* bloom */
	BF_FORM_LIST = 1,			/* the sorted hashes themselves */
	BF_FORM_LINES = 2,			/* bit lines */
	/* cuckoo */
	BF_FORM_COUNTS = 3,			/* sorted numbers, and how often each was
								 * added */
	BF_FORM_TABLE = 4			/* a table, and a list as above of what it
								 * cannot hold */
} bf_form;

/*
 * One layer.
 *
 * An unfinished layer of a Bloom filter is the state of an aggregate, which is sized
 * at the end.  It is a list without a shape (words = 0), or BF_SPILL_LINES lines if
 * there are too many keys for a list.  Its capacity is the declared one, or 0.
 *
 * A cuckoo filter has one layer, which is a multiset of numbers; see table.h.  A
 * number is in the table once or not at all, and its other copies are counted in
 * the list.  An unfinished layer is a list without a table (buckets = 0), whose
 * numbers are whole hashes.
 */
typedef struct bf_layer
{
	bf_shape	shape;			/* bloom */
	bf_table	table;			/* cuckoo */
	uint64_t	capacity;
	bf_form		form;
	uint32_t	count;			/* entries of the list */
	uint64_t	used;			/* slots of the table */
	uint64_t	offset;			/* of the lines, the table, or the first hash */
	uint64_t	list_offset;	/* of the first number of the list */
	uint8_t    *data;			/* at `offset`, if the filter is in memory */
	uint8_t    *list;			/* at `list_offset` */
} bf_layer;

/* The class of a filter's keys, and the function that hashed them. */
typedef struct bf_key_class
{
	uint8_t		scheme;			/* bf_scheme */
	uint8_t		code;			/* bf_class */
	uint8_t		name_length;	/* of BF_CLASS_NAMED */
	const char *name;			/* UTF-8, not terminated */
} bf_key_class;

/* The properties of a filter other than its layers. */
typedef struct bf_header
{
	bf_host		host;
	uint16_t	kind;
	uint8_t		growth;
	uint8_t		max_layers;
	double		fpp;			/* the target for the whole filter */
	bf_key_class class;
} bf_header;

/* The structure of a filter; its contents stay in the bytes. */
typedef struct bf_filter
{
	bf_header	header;
	uint8_t		layers;
	bf_layer	layer[BF_MAX_LAYERS];
} bf_filter;

extern const char *bf_class_label(unsigned code);
extern const char *bf_class_validate(const bf_key_class *class);
extern void bf_header_copy(bf_header *header, const bf_header *from, bf_host host);
extern void bf_header_set_class(bf_header *header, const bf_key_class *class);

/* Reading.  NULL, or a sentence on what is wrong. */
extern const char *bf_filter_open(bf_filter *filter, bf_host host, const uint8_t *bytes, size_t n);
extern const char *bf_filter_validate(bf_host host, const uint8_t *bytes, size_t n, uint16_t kind);

/* Reading a filter that is fetched in pieces. */
extern const char *bf_filter_open_pieces(bf_filter *filter, bf_host host, uint64_t n, bf_fetch fetch, void *arg);
extern bool bf_filter_of_size(bf_filter *filter, bf_host host, uint64_t size);

/* Writing: first the size, then everything but the layers' contents. */
extern uint64_t bf_filter_size(const bf_filter *filter);
extern void bf_filter_write(bf_filter *filter, uint8_t *bytes, size_t n);

extern bool bf_bytes_are_zero(bf_host host, const uint8_t *bytes, uint64_t n);
extern bool bf_layer_is_empty(bf_host host, const bf_layer *layer);
extern bool bf_filter_is_empty(const bf_filter *filter);

/*
 * Is the value an unfinished filter: the state of an aggregate that was sent to
 * another process or machine?  Only functions of the aggregate accept it.
 */
static inline bool
bf_filter_is_unfinished(const bf_filter *filter)
{
	const bf_layer *layer = &filter->layer[0];

	return layer->capacity == 0 || (layer->shape.words == 0 && layer->table.buckets == 0);
}

/* The same for the first BF_HEADER_BYTES of a filter. */
extern bool bf_header_is_unfinished(const uint8_t *head);

/* Are the first BF_HEADER_BYTES of two filters the same?  Without a branch per word. */
static inline bool
bf_same_header(const uint8_t *a, const uint8_t *b)
{
	return ((bf_load64(a) ^ bf_load64(b)) | (bf_load64(a + 8) ^ bf_load64(b + 8)) |
			(bf_load64(a + 16) ^ bf_load64(b + 16)) |
			(bf_load64(a + BF_HEADER_BYTES - 8) ^ bf_load64(b + BF_HEADER_BYTES - 8))) == 0;
}

/*
 * Is a layer of `count` distinct hashes a list?  It is if that is smaller than lines
 * and has at most BF_MAX_LIST hashes; a layer without a shape must be one.  This
 * depends on the content alone, so that the same keys make the same bytes in any
 * order.
 */
static inline bool
bf_keep_list(bf_shape shape, uint64_t count)
{
	return count <= BF_MAX_LIST && (shape.words == 0 || count + 1 < shape.words);
}

/* Is a cuckoo filter of `count` distinct numbers a list? */
static inline bool
bf_keep_counts(bf_table table, uint64_t count)
{
	return table.buckets == 0 ? count <= BF_MAX_LIST : count * 9 < bf_table_words(table) * 8;
}

/* The size of what precedes a layer's contents: the list's length and the table's load. */
static inline uint64_t
bf_layer_head_bytes(const bf_layer *layer)
{
	return layer->form == BF_FORM_LINES ? 0 : layer->form == BF_FORM_TABLE ? 16 : 8;
}

/* The size of a layer: lines, or a list, or a table and a list. */
static inline uint64_t
bf_layer_bytes(const bf_layer *layer)
{
	uint64_t	count = layer->count;
	uint64_t	table = layer->form == BF_FORM_TABLE ? bf_table_words(layer->table) * 8 : 0;
	uint64_t	counts = layer->form >= BF_FORM_COUNTS ? (count + 7) / 8 * 8 : 0;

	if (layer->form == BF_FORM_LINES)
		return layer->shape.words * 8;
	return bf_layer_head_bytes(layer) + table + count * 8 + counts;
}

#endif							/* BF_FORMAT_H */
