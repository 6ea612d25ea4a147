/*
 * trust.h
 *		Who may read an index, and whether an index can be relied upon.
 */
#ifndef BF_INDEX_TRUST_H
#define BF_INDEX_TRUST_H

#include "../compat.h"

#include "nodes/bitmapset.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

struct PlannerInfo;

/* Privileges and row-level security. */
extern Bitmapset *trust_index_columns(Relation index);
extern Bitmapset *trust_column(AttrNumber column);
extern bool trust_may_read(Oid table, const Bitmapset *columns);
extern void trust_check_may_read(Relation table, const Bitmapset *columns);
extern bool trust_row_security(Oid table);
extern void trust_refuse_row_security(Oid table);
extern bool trust_planner_may_probe(struct PlannerInfo *root, Index relid, Relation index);

/* Tables and indexes that can be read now, and that have all rows. */
extern void trust_check_readable(Relation table);
extern void trust_check_may_inspect(Relation table, Relation index);
extern bool trust_is_usable(Relation index);
extern bool trust_has_all_rows(Relation table, Relation index);
extern void trust_check_has_all_rows(Relation table, Relation index);
extern void trust_check_snapshot(Relation index, Snapshot snapshot);

#endif							/* BF_INDEX_TRUST_H */
