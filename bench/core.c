/*
 * core.c
 *		Measures the speed of the core, without a server.
 *
 * Times adds, misses and hits of Bloom and cuckoo filters, one by one and
 * batched, and compares them with a classic Bloom filter (k bits anywhere) and a
 * hash set of 64-bit words.  Every figure is the best of several runs,
 * interleaved over all cases.  Prints CSV: structure, keys, operation, mode, ns
 * per key, bits per key.
 *
 * "One by one" means that each lookup depends on the result of the previous one,
 * as in a program that acts on each result.
 *
 *	core [keys ...]			default: 1000000 10000000
 */
#include <math.h>

#include "host.h"

#define ROUNDS		5
#define PROBES		2000000
#define FPP			0.01

typedef enum
{
	BLOOM, CUCKOO, CLASSIC, SET, STRUCTURES
} structure;

typedef enum
{
	ADD, MISS, HIT, OPERATIONS
} operation;

static const char *const structure_names[] = {"bloom", "cuckoo", "classic Bloom", "hash set"};
static const char *const operation_names[] = {"add", "miss", "hit"};

static uint64_t sink;			/* keeps results from being optimized out */

/* ----------------------------------------------------------------
 * The peers
 * ----------------------------------------------------------------
 */

/* The classic Bloom filter: k bits anywhere in m, by double hashing. */
typedef struct
{
	uint8_t    *bits;
	uint64_t	m;
	unsigned	k;
} classic;

static inline bool
classic_probe(const classic *c, uint64_t hash, bool set)
{
	uint64_t	step = bf_mix64(hash) | 1;

	for (unsigned i = 0; i < c->k; i++, hash += step)
	{
		uint64_t	at = bf_scale64(hash, c->m);

		if (set)
			c->bits[at / 8] |= (uint8_t) (1 << at % 8);
		else if (!(c->bits[at / 8] >> at % 8 & 1))
			return false;
	}
	return true;
}

/* Open addressing, linear probing, at most half full; 0 is an empty slot. */
typedef struct
{
	uint64_t   *places;
	uint64_t	mask;
} set;

static inline bool
set_probe(const set *s, uint64_t hash, bool add)
{
	for (uint64_t i = hash & s->mask;; i = (i + 1) & s->mask)
	{
		if (s->places[i] == hash)
			return true;
		if (s->places[i] == 0)
		{
			if (add)
				s->places[i] = hash;
			return false;
		}
	}
}

/* ----------------------------------------------------------------
 * The cases
 * ----------------------------------------------------------------
 */

typedef struct
{
	uint64_t	n;
	bf_mutable	made[2];		/* filters that are being filled */
	bf_filter	filled[2];		/* the same as values */
	uint8_t    *bytes[2];
	classic classic;
	set set;
	uint64_t   *hashes;			/* of a batch of lookups */
	bool	   *found;
} subject;

static inline bool
look_up(const subject *s, structure what, uint64_t hash)
{
	switch (what)
	{
		case BLOOM:
		case CUCKOO:
			return bf_filter_contains(&s->filled[what], hash);
		case CLASSIC:
			return classic_probe(&s->classic, hash, false);
		default:
			return set_probe(&s->set, hash, false);
	}
}

/* Start with an empty filter, sized for all keys. */
static void
clear(subject *s, structure what)
{
	switch (what)
	{
		case BLOOM:
			bf_bloom_start(&s->made[what].bloom, host, (bf_size) {bf_shape_for(s->n, FPP), s->n}, FPP);
			s->made[what].header.growth = 0;
			break;
		case CUCKOO:
			bf_cuckoo_start(&s->made[what].cuckoo, host, bf_table_for(s->n, FPP, 0), s->n, FPP);
			s->made[what].header.growth = 0;
			break;
		case CLASSIC:
			memset(s->classic.bits, 0, s->classic.m / 8 + 1);
			break;
		default:
			memset(s->set.places, 0, (s->set.mask + 1) *8);
	}
}

/* Write the filled filter as a value, for lookups. */
static void
fill(subject *s, structure what)
{
	if (what > CUCKOO)
		return;
	free(s->bytes[what]);
	s->bytes[what] = seal(&s->made[what], &s->filled[what]);
}

static inline void
add(subject *s, structure what, uint64_t hash)
{
	switch (what)
	{
		case BLOOM:
			bf_bloom_add(&s->made[what].bloom, hash);
			break;
		case CUCKOO:
			bf_cuckoo_add(&s->made[what].cuckoo, hash);
			break;
		case CLASSIC:
			classic_probe(&s->classic, hash, true);
			break;
		default:
			sink += set_probe(&s->set, hash, true);
	}
}

/* Add all keys, one by one or 1024 at a time.  Returns ns per key. */
static double
time_add(subject *s, structure what, bool batched)
{
	double		start;
	double		ns;

	clear(s, what);
	start = now();
	if (!batched)
	{
		for (uint64_t i = 0; i < s->n; i++)
			add(s, what, hash_of(i));
	}
	else
	{
		for (uint64_t i = 0; i < s->n; i += 1024)
		{
			size_t		size = s->n - i < 1024 ? (size_t) (s->n - i) : 1024;

			for (size_t j = 0; j < size; j++)
				s->hashes[j] = hash_of(i + j);
			if (what == BLOOM)
				bf_bloom_add_many(&s->made[what].bloom, s->hashes, size);
			else
				bf_cuckoo_add_many(&s->made[what].cuckoo, s->hashes, size);
		}
	}
	ns = (now() - start) / (double) s->n;
	fill(s, what);
	return ns;
}

static double
time_lookups(subject *s, structure what, operation op, bool batched)
{
	uint64_t	base = op == MISS ? OTHERS : 0;
	uint64_t	step = op == MISS ? 1 : s->n / 7 * 2 + 1;
	uint64_t	key = 0;
	uint64_t	found = 0;
	double		start = now();

	if (!batched)
	{
		/* the next lookup depends on the result */
		for (uint64_t i = 0; i < PROBES; i++)
		{
			bool		present = look_up(s, what, hash_of(base + key));

			found += present;
			key += step + (present && op == MISS);
			if (op == HIT)
				key = (key + !present) % s->n;
		}
	}
	else
	{
		for (uint64_t i = 0; i < PROBES; i += 1024)
		{
			for (size_t j = 0; j < 1024; j++)
			{
				s->hashes[j] = hash_of(base + key);
				key += step;
				if (op == HIT)
					key %= s->n;
			}
			bf_filter_contains_many(&s->filled[what], s->hashes, 1024, s->found);
			for (size_t j = 0; j < 1024; j++)
				found += s->found[j];
		}
	}
	sink += found;
	if (op == HIT && found < PROBES)
		fprintf(stderr, "%s lost keys\n", structure_names[what]);
	return (now() - start) / PROBES;
}

static double
bits_per_key(const subject *s, structure what)
{
	switch (what)
	{
		case BLOOM:
		case CUCKOO:
			return (double) bf_filter_size(&s->filled[what]) * 8 / (double) s->n;
		case CLASSIC:
			return (double) s->classic.m / (double) s->n;
		default:
			return (double) (s->set.mask + 1) *64 / (double) s->n;
	}
}

static void
prepare(subject *s, uint64_t n)
{
	memset(s, 0, sizeof(*s));
	s->n = n;
	s->classic.k = 7;
	s->classic.m = (uint64_t) ceil((double) n * 9.59);
	s->classic.bits = allocate(s->classic.m / 8 + 1);
	s->set.mask = 1;
	while (s->set.mask < 2 * n)
		s->set.mask *= 2;
	s->set.places = allocate(s->set.mask * 8);
	s->set.mask--;
	s->hashes = malloc(1024 * sizeof(uint64_t));
	s->found = malloc(1024 * sizeof(bool));
}

static void
release(subject *s)
{
	free(s->bytes[BLOOM]);
	free(s->bytes[CUCKOO]);
	free(s->classic.bits);
	free(s->set.places);
	free(s->hashes);
	free(s->found);
}

static void
run(uint64_t n)
{
	subject		s;
	double		best[STRUCTURES][OPERATIONS][2];

	prepare(&s, n);
	for (int round = 0; round < ROUNDS; round++)
	{
		for (structure what = 0; what < STRUCTURES; what++)
		{
			for (operation op = 0; op < OPERATIONS; op++)
			{
				for (int batched = 0; batched < (what <= CUCKOO ? 2 : 1); batched++)
				{
					double		ns = op == ADD ? time_add(&s, what, batched) : time_lookups(&s, what, op, batched);

					if (round == 0 || ns < best[what][op][batched])
						best[what][op][batched] = ns;
				}
			}
		}
	}
	for (structure what = 0; what < STRUCTURES; what++)
	{
		for (operation op = 0; op < OPERATIONS; op++)
		{
			for (int batched = 0; batched < (what <= CUCKOO ? 2 : 1); batched++)
				printf("%s,%llu,%s,%s,%.1f,%.2f\n", structure_names[what], (unsigned long long) n, operation_names[op],
					   batched ? "batched" : "one by one", best[what][op][batched], bits_per_key(&s, what));
		}
	}
	release(&s);
}

int
main(int argc, char **argv)
{
	printf("structure,keys,operation,mode,ns,bits per key\n");
	if (argc < 2)
	{
		run(1000000);
		run(10000000);
	}
	for (int i = 1; i < argc; i++)
		run(strtoull(argv[i], NULL, 10));
	return sink == 42 ? 1 : 0;
}
