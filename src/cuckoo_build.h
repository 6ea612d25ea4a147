/*
 * cuckoo_build.h
 *		A cuckoo filter that is being changed, in memory.
 */
#ifndef BF_CUCKOO_BUILD_H
#define BF_CUCKOO_BUILD_H

#include "builder.h"
#include "core/hashlist.h"

/*
 * The filter is a multiset of numbers (see core/table.h).  Its table has a number
 * once or not at all; its list counts all other copies.  Copies that were added
 * lately wait in an array, in any order, to be sorted into the list.
 */
typedef struct CuckooBuilder
{
	FilterBuilder base;
	uint8	   *slots;			/* the table, if there is one yet */
	uint64		used;			/* slots of it */
	uint64	   *numbers;		/* the list, ascending */
	uint8	   *counts;			/* of each: 0 after it was deleted */
	uint64	   *pending;
	uint32		listed;			/* used in `numbers` and `counts` */
	uint32		list_room;
	uint32		pended;			/* used in `pending` */
	uint32		pending_room;
	bool		holes;			/* there are counts of 0 */
	bool		placed;			/* numbers of the list may have got a slot since */
} CuckooBuilder;

extern const BuilderMethods cuckoo_methods;

extern void cuckoo_build_start(CuckooBuilder *builder, MemoryContext context, bf_table table,
							   uint64 capacity, double fpp);
extern void cuckoo_build_make_room(CuckooBuilder *builder);
extern void cuckoo_build_add_to_table(CuckooBuilder *builder, uint64 number);
extern void cuckoo_build_remove(CuckooBuilder *builder, uint64 hash);
extern void cuckoo_build_merge_filter(CuckooBuilder *builder, const bf_filter *filter);
extern void cuckoo_build_settle(CuckooBuilder *builder);
extern void cuckoo_build_sort(CuckooBuilder *builder);

/* Add one copy of a number. */
static inline void
cuckoo_build_add_number(CuckooBuilder *builder, uint64 number)
{
	Assert(builder->slots != NULL || builder->pended < builder->pending_room);
	if (builder->slots != NULL)
		cuckoo_build_add_to_table(builder, number);
	else
		builder->pending[builder->pended++] = number;
}

/* Add one copy of a key. */
static inline void
cuckoo_build_add(CuckooBuilder *builder, uint64 hash)
{
	/* this may choose the range of numbers */
	if (unlikely(builder->pended == builder->pending_room))
		cuckoo_build_make_room(builder);
	cuckoo_build_add_number(builder, bf_table_number(builder->base.frame->layer[0].table, hash));
}

#endif							/* BF_CUCKOO_BUILD_H */
