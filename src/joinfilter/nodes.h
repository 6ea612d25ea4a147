/*
 * nodes.h
 *		What joinfilter knows about each kind of plan node.
 */
#ifndef BF_NODES_H
#define BF_NODES_H

#include "../compat.h"

#include "nodes/plannodes.h"

/* Where a filter on a column of a node's rows can be applied instead. */
typedef enum FilterPath
{
	PATH_NONE,					/* nowhere below the node */
	PATH_SCAN,					/* at the node itself, which scans a table */
	PATH_OUTER,					/* at the outer child, whose rows the node
								 * returns one by one */
	PATH_SUBQUERY,				/* at the child that is not the outer one */
	PATH_APPEND,				/* at each of the listed children */
	PATH_JOIN,					/* at one side, if the type of join allows it */
	PATH_GROUP					/* at the outer child, if the column is a
								 * grouping column */
} FilterPath;

/* A kind of node.  Offsets are those of fields of its struct; 0 means that there is none. */
typedef struct NodeKind
{
	NodeTag		tag;			/* T_Invalid: not in the table */
	FilterPath	path;
	bool		opaque;			/* evaluates expressions that are not listed */
	bool		table_rows;		/* returns rows of a table as they are on
								 * their page */
	size_t		child;			/* a child besides the outer and inner one */
	size_t		children;		/* a list of such children */
	size_t		expressions[2]; /* besides target list and quals */
} NodeKind;

/* The value of a field that is a pointer. */
#define NODE_FIELD(type, plan, offset)	(*(type *) ((char *) (plan) + (offset)))

/* Called for the link to a plan, which it may change; true ends the walk. */
typedef bool (*PlanWalker) (Plan **link, void *context);

extern const NodeKind *joinfilter_node_kind(const Plan *plan);
extern bool joinfilter_walk_children(Plan *plan, PlanWalker walker, void *context);

#endif							/* BF_NODES_H */
