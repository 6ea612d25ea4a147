/*
 * table_lookup.h
 *		Looking up a key in the indexes of a table and all of its partitions.
 */
#ifndef BF_INDEX_TABLE_LOOKUP_H
#define BF_INDEX_TABLE_LOOKUP_H

#include "index.h"

/* A table that has rows of its own, and its index; without an index it may contain any key. */
typedef struct LookupTable
{
	Oid			table;
	Oid			index;
} LookupTable;

/* The tables that a lookup by table and column concerns. */
typedef struct TableLookup
{
	Oid			relation;
	char	   *column;			/* or the name of an index */
	AttrNumber	attribute;		/* 0 if an index was named */
	bool		row_security;	/* it applies to the current user */
	int			n;
	LookupTable *tables;
	MemoryContext context;		/* reset before the tables are resolved again */

	/* the state in which the tables were resolved */
	Oid			user;
	LocalTransactionId transaction;
	SubTransactionId subtransaction;
	uint64		invalidations;
} TableLookup;

extern void table_lookup_init(TableLookup *lookup, MemoryContext parent);
extern void table_lookup_resolve(TableLookup *lookup, Oid relation, const char *column);
extern bool table_lookup_may_contain(const LookupTable *table, const KeyType *type, uint64 hash);

#endif							/* BF_INDEX_TABLE_LOOKUP_H */
