/*
 * alternatives.h
 *		The structures that alternatives.c compares, behind one interface: the core's
 *		filters, and short implementations of others.
 */
#ifndef BENCH_ALTERNATIVES_H
#define BENCH_ALTERNATIVES_H

#include <math.h>

#include "host.h"

#define FPP		0.01

typedef struct structure structure;

/* Keys are hashes; n is the number of keys that the structure is made for. */
struct structure
{
	const char *name;
	void		(*make) (structure *s);
	void		(*add) (structure *s, uint64_t hash);
	void		(*finish) (structure *s);	/* if it must be finished before
											 * it can be asked */
	bool		(*contains) (const structure *s, uint64_t hash);
	void		(*delete) (structure *s, uint64_t hash);
	uint64_t	n;
	uint64_t	bytes;
	uint8_t    *data[2];
	uint64_t	size;			/* positions, buckets or cells */
	uint64_t   *keys;			/* until it is built */
	uint64_t	added;
	uint64_t	seed;
	bf_mutable	made;
	bf_filter	filter;
};

static void
take(structure *s, int which, uint64_t bytes)
{
	s->data[which] = allocate(bytes + 8);
	s->bytes += bytes;
}

/* ---- the core's filters */

static void
bloom_make(structure *s)
{
	bf_bloom_start(&s->made.bloom, host, (bf_size) {bf_shape_for(s->n, FPP), s->n}, FPP);
	s->made.header.growth = 0;
}

static void
cuckoo_make(structure *s)
{
	bf_cuckoo_start(&s->made.cuckoo, host, bf_table_for(s->n, FPP, 0), s->n, FPP);
	s->made.header.growth = 0;
}

static void
core_add(structure *s, uint64_t hash)
{
	bf_mutable_add(&s->made, hash);
}

static void
core_finish(structure *s)
{
	s->data[0] = seal(&s->made, &s->filter);
	s->bytes = bf_filter_size(&s->filter);
	if (s->delete != NULL)
		bf_mutable_load(&s->made, host, &s->filter);	/* mutable again */
}

static bool
core_contains(const structure *s, uint64_t hash)
{
	return bf_filter_contains(&s->filter, hash);
}

/* In batches, as cuckoo_delete_all does. */
static void
cuckoo_delete(structure *s, uint64_t hash)
{
	static uint64_t batch[1024];

	batch[s->added++ % 1024] = hash;
	if (s->added % 1024 == 0)
		bf_cuckoo_remove_many(&s->made.cuckoo, batch, 1024);
}

/* ---- classic Bloom filters: k bits anywhere; counters instead of bits; pairs of filters */

#define CLASSIC_K	7

/* The i-th position of a key. */
static inline uint64_t
position(const structure *s, uint64_t hash, unsigned i)
{
	return bf_scale64(hash + i * (bf_mix64(hash) | 1), s->size);
}

static void
classic_make(structure *s)
{
	s->size = (uint64_t) ceil((double) s->n * 9.59);
	take(s, 0, s->size / 8 + 1);
}

static inline void
classic_set(structure *s, int which, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSIC_K; i++)
		s->data[which][position(s, hash, i) / 8] |= (uint8_t) (1 << position(s, hash, i) % 8);
}

static inline bool
classic_test(const structure *s, int which, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSIC_K; i++)
	{
		if (!(s->data[which][position(s, hash, i) / 8] >> position(s, hash, i) % 8 & 1))
			return false;
	}
	return true;
}

static void
classic_add(structure *s, uint64_t hash)
{
	classic_set(s, 0, hash);
}

static bool
classic_contains(const structure *s, uint64_t hash)
{
	return classic_test(s, 0, hash);
}

/* Counters of 4 bits, which saturate at 15. */
static void
counting_make(structure *s)
{
	s->size = (uint64_t) ceil((double) s->n * 9.59);
	take(s, 0, s->size / 2 + 1);
}

static inline unsigned
counter(const structure *s, uint64_t at)
{
	return s->data[0][at / 2] >> at % 2 * 4 & 15;
}

static void
counting_add(structure *s, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSIC_K; i++)
	{
		uint64_t	at = position(s, hash, i);

		if (counter(s, at) < 15)
			s->data[0][at / 2] = (uint8_t) (s->data[0][at / 2] + (1 << at % 2 * 4));
	}
}

static bool
counting_contains(const structure *s, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSIC_K; i++)
	{
		if (counter(s, position(s, hash, i)) == 0)
			return false;
	}
	return true;
}

static void
counting_delete(structure *s, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSIC_K; i++)
	{
		uint64_t	at = position(s, hash, i);

		if (counter(s, at) > 0 && counter(s, at) < 15)
			s->data[0][at / 2] = (uint8_t) (s->data[0][at / 2] - (1 << at % 2 * 4));
	}
}

/* One filter of the added keys, one of the deleted keys. */
static void
pair_make(structure *s)
{
	classic_make(s);
	take(s, 1, s->size / 8 + 1);
}

static bool
pair_contains(const structure *s, uint64_t hash)
{
	return classic_test(s, 0, hash) && !classic_test(s, 1, hash);
}

static void
pair_delete(structure *s, uint64_t hash)
{
	classic_set(s, 1, hash);
}

/*
 * ---- d-left counting: four tables with buckets of 8 cells.  A key goes into the emptiest
 * of its four buckets.  A cell has a remainder of 12 bits and a count of 4 bits.  The
 * positions of a key in the four tables are permutations of one number, so equal cells
 * mean equal numbers, and a key can be deleted from its cell.
 */
#define DLEFT_BITS	12

static void
dleft_make(structure *s)
{
	s->size = (uint64_t) ((double) s->n / (4 * 8 * 0.75)) + 1;	/* buckets of a table */
	take(s, 0, s->size * 4 * 8 * 2);
}

static inline uint16_t *
dleft_bucket(const structure *s, uint64_t hash, unsigned table, uint16_t *remainder)
{
	static const uint64_t primes[] = {1, 1000000007, 715827883, 536870909};
	uint64_t	range = s->size << DLEFT_BITS;
	uint64_t	number = bf_scale64(hash, range);

	number = (uint64_t) ((unsigned __int128) number * primes[table] % range);
	*remainder = (uint16_t) (number % (1 << DLEFT_BITS));
	return (uint16_t *) s->data[0] + ((number >> DLEFT_BITS) * 4 + table) * 8;
}

/* The cell of a key, or NULL. */
static inline uint16_t *
dleft_find(const structure *s, uint64_t hash)
{
	for (unsigned table = 0; table < 4; table++)
	{
		uint16_t	remainder;
		uint16_t   *cells = dleft_bucket(s, hash, table, &remainder);

		for (unsigned i = 0; i < 8; i++)
		{
			if (cells[i] >> 4 == remainder && (cells[i] & 15) != 0)
				return &cells[i];
		}
	}
	return NULL;
}

static void
dleft_add(structure *s, uint64_t hash)
{
	uint16_t   *best = NULL;
	uint16_t	value = 0;
	unsigned	most = 0;
	uint16_t   *cell = dleft_find(s, hash);

	if (cell != NULL)
	{
		*cell = (uint16_t) (*cell + ((*cell & 15) < 15));
		return;
	}
	for (unsigned table = 0; table < 4; table++)
	{
		uint16_t	remainder;
		uint16_t   *cells = dleft_bucket(s, hash, table, &remainder);
		unsigned	empty = 0;

		for (unsigned i = 0; i < 8; i++)
			empty += (cells[i] & 15) == 0;
		if (empty > most)
		{
			most = empty;
			best = cells;
			value = (uint16_t) (remainder << 4 | 1);
		}
	}
	if (best == NULL)
	{
		fprintf(stderr, "a bucket of the d-left table is full\n");
		exit(1);
	}
	while ((*best & 15) != 0)
		best++;
	*best = value;
}

static bool
dleft_contains(const structure *s, uint64_t hash)
{
	return dleft_find(s, hash) != NULL;
}

static void
dleft_delete(structure *s, uint64_t hash)
{
	uint16_t   *cell = dleft_find(s, hash);

	if (cell != NULL && (*cell & 15) < 15)
		(*cell)--;
}

/*
 * ---- binary fuse filter of 8 bits: the fingerprint of a key is the exclusive or of three
 * cells in three consecutive segments.  It is built by peeling: a cell that only one key
 * uses is assigned to that key, and the key is removed, which frees further cells.  Cells
 * are set in the reverse order.
 */
typedef struct
{
	uint64_t	keys;			/* exclusive or of the hashes that use the
								 * cell */
	uint32_t	count;
} fuse_cell;

static uint64_t
fuse_segment(const structure *s)
{
	return UINT64_C(1) << (unsigned) floor(log((double) s->n) / log(3.33) + 2.25);
}

static inline uint64_t
fuse_place(const structure *s, uint64_t hash, unsigned i)
{
	uint64_t	segment = s->seed >> 32;
	uint64_t	first = bf_scale64(hash, s->size - 2 * segment);

	return i == 0 ? first : (first + i * segment) ^ ((hash >> (18 * (2 - i))) & (segment - 1));
}

static inline uint64_t
fuse_hash(const structure *s, uint64_t hash)
{
	return bf_mix64(hash + (s->seed & UINT32_MAX));
}

static inline uint8_t
fuse_fingerprint(uint64_t hash)
{
	return (uint8_t) (hash ^ hash >> 32);
}

static void
fuse_make(structure *s)
{
	uint64_t	segment = fuse_segment(s);
	double		factor = fmax(1.125, 0.875 + 0.25 * log(1e6) / log((double) s->n));

	s->keys = allocate(s->n * 8);
	s->size = ((uint64_t) ((double) s->n * factor) / segment + 1) * segment;
	s->seed = segment << 32;
	take(s, 0, s->size);
}

static void
fuse_add(structure *s, uint64_t hash)
{
	s->keys[s->added++] = hash;
}

/* One attempt.  Returns false if the remaining keys share all their cells. */
static bool
fuse_build(structure *s, fuse_cell *cells, uint64_t *stack, uint64_t *alone)
{
	uint64_t	waiting = 0;
	uint64_t	peeled = 0;

	memset(cells, 0, s->size * sizeof(fuse_cell));
	for (uint64_t i = 0; i < s->n; i++)
	{
		uint64_t	hash = fuse_hash(s, s->keys[i]);

		for (unsigned j = 0; j < 3; j++)
		{
			cells[fuse_place(s, hash, j)].keys ^= hash;
			cells[fuse_place(s, hash, j)].count++;
		}
	}
	for (uint64_t cell = 0; cell < s->size; cell++)
	{
		if (cells[cell].count == 1)
			alone[waiting++] = cell;
		while (waiting > 0)
		{
			uint64_t	at = alone[--waiting];
			uint64_t	hash = cells[at].keys;

			if (cells[at].count != 1)
				continue;
			stack[2 * peeled] = hash;
			stack[2 * peeled++ + 1] = at;
			for (unsigned j = 0; j < 3; j++)
			{
				uint64_t	place = fuse_place(s, hash, j);

				cells[place].keys ^= hash;
				if (--cells[place].count == 1 && place <= cell)
					alone[waiting++] = place;
			}
		}
	}
	if (peeled < s->n)
		return false;
	while (peeled-- > 0)
	{
		uint64_t	hash = stack[2 * peeled];
		uint8_t		value = fuse_fingerprint(hash);

		for (unsigned j = 0; j < 3; j++)
			value ^= s->data[0][fuse_place(s, hash, j)];
		s->data[0][stack[2 * peeled + 1]] ^= value;
	}
	return true;
}

static void
fuse_finish(structure *s)
{
	fuse_cell  *cells = allocate(s->size * sizeof(fuse_cell));
	uint64_t   *stack = allocate(s->n * 16);
	uint64_t   *alone = allocate(s->size * 8);

	while (!fuse_build(s, cells, stack, alone))
		s->seed++;
	free(cells);
	free(stack);
	free(alone);
}

static bool
fuse_contains(const structure *s, uint64_t hash)
{
	uint8_t		value;

	hash = fuse_hash(s, hash);
	value = fuse_fingerprint(hash);
	for (unsigned j = 0; j < 3; j++)
		value ^= s->data[0][fuse_place(s, hash, j)];
	return value == 0;
}

#endif							/* BENCH_ALTERNATIVES_H */
