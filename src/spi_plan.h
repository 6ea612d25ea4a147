/*
 * spi_plan.h
 *		Which table a prepared statement has used.
 *
 * SPI statements name their tables.  If another session renames a schema meanwhile and another one gets
 * its name, a statement uses another table, although the intended one is locked: its text is analyzed
 * again after each change of a schema.
 */
#ifndef BF_SPI_PLAN_H
#define BF_SPI_PLAN_H

#include "executor/spi.h"
#include "utils/plancache.h"

/* Has a plan that was executed used this table? */
static inline bool
spi_plan_uses(SPIPlanPtr plan, Oid relation)
{
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));

	return list_member_oid(source->relationOids, relation);
}

#endif							/* BF_SPI_PLAN_H */
