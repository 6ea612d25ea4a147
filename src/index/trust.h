/*
 * trust.h
 *		Who may look into an index, and whether an index can be relied upon.
 */
#ifndef BF_INDEX_TRUST_H
#define BF_INDEX_TRUST_H

#include "index.h"

#include "nodes/bitmapset.h"

/* Privileges and row-level security. */
extern Bitmapset *trust_index_columns(Relation index);
extern Bitmapset *trust_column(AttrNumber column);
extern bool trust_may_read(Oid table, const Bitmapset *columns);
extern void trust_check_may_read(Relation table, const Bitmapset *columns);
extern bool trust_row_security(Oid table);

/* Tables and indexes that can be read now, and that have all rows. */
extern void trust_check_readable(Relation table);
extern bool trust_rows_are_elsewhere(Oid table);
extern bool trust_sees_snapshots(Relation index);
extern bool trust_has_all_rows(Relation table, Relation index);

#endif							/* BF_INDEX_TRUST_H */
