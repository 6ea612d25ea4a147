/*
 * ask.h
 *		Questions to the indexes of a table, addressed by table and column.
 */
#ifndef BF_INDEX_ASK_H
#define BF_INDEX_ASK_H

#include "index.h"

/*
 * A table that has rows of its own: the one that was named, a partition, a child.
 * Without a usable index it may have any key.
 */
typedef struct AskedTable
{
	Oid			table;
	Oid			index;
} AskedTable;

/* Who asks what, and the tables that can answer. */
typedef struct Asked
{
	Oid			relation;
	char	   *column;			/* or the name of an index */
	AttrNumber	attribute;		/* 0 if an index was named */
	bool		secured;		/* row-level security applies to the asker */
	int			n;
	AskedTable *tables;

	/* as long as these are the same, so is the rest */
	Oid			user;
	LocalTransactionId transaction;
	SubTransactionId subtransaction;
	uint64		invalidations;
	MemoryContext context;
} Asked;

extern void ask_resolve(Asked *asked, Oid relation, const char *column);
extern bool ask_table(const AskedTable *table, const KeyType *key, uint64 hash);

#endif							/* BF_INDEX_ASK_H */
