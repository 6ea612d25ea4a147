/*
 * filterset_table.c
 *		The definition of a filter set, read from its table, and its statements.
 *
 * Definitions and prepared statements are kept for the session.  A relcache invalidation
 * makes the next call read the definition again.  If it is the same, as after VACUUM or
 * ANALYZE, everything is kept.  If not, it is replaced, and freed at the end of the
 * transaction: a trigger on the table can call these functions while a statement of the
 * old definition runs.  So is what was kept for a table that has been dropped.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "../spi_plan.h"
#include "filterset.h"

/* An entry of the session's hash table. */
typedef struct KnownSet
{
	Oid			relation;		/* hash key */
	bool		valid;			/* no invalidation since it was read */
	FilterSet  *set;
} KnownSet;

static HTAB *known_sets = NULL;

/* Counts invalidations, to notice those that arrive while a definition is read. */
static uint64 invalidations = 0;

/* Definitions to be freed at the end of the transaction, linked by FilterSet.next. */
static FilterSet *replaced_sets = NULL;

static void
forget_all(void)
{
	HASH_SEQ_STATUS status;
	KnownSet   *known;

	invalidations++;
	hash_seq_init(&status, known_sets);
	while ((known = hash_seq_search(&status)) != NULL)
		known->valid = false;
}

static void
forget_relation(Datum arg, Oid relation)
{
	KnownSet   *known;

	if (!OidIsValid(relation))
	{
		forget_all();
		return;
	}
	invalidations++;
	known = hash_search(known_sets, &relation, HASH_FIND, NULL);
	if (known != NULL)
		known->valid = false;
}

/* The statements contain the names of schemas, whose changes are no changes of the table. */
static void
forget_names(Datum arg, int cache, uint32 hash)
{
	forget_all();
}

static void
replace_set(FilterSet *set)
{
	set->next = replaced_sets;
	replaced_sets = set;
}

/* Free old definitions: at the end of a transaction, no call uses them. */
static void
free_replaced_sets(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		return;
	while (replaced_sets != NULL)
	{
		FilterSet  *set = replaced_sets;

		replaced_sets = set->next;
		for (int i = 0; i < SET_STATEMENTS; i++)
		{
			if (set->plans[i] != NULL)
				SPI_freeplan(set->plans[i]);
		}
		MemoryContextDelete(set->context);
	}
}

/* Forget the sets whose tables were dropped. */
static void
forget_dropped_sets(void)
{
	Oid		   *relations = palloc(sizeof(Oid) * hash_get_num_entries(known_sets));
	int			n = 0;
	HASH_SEQ_STATUS status;
	KnownSet   *known;

	hash_seq_init(&status, known_sets);
	while ((known = hash_seq_search(&status)) != NULL)
	{
		if (!known->valid)
			relations[n++] = known->relation;
	}
	for (int i = 0; i < n; i++)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relations[i])))
			continue;
		known = hash_search(known_sets, &relations[i], HASH_FIND, NULL);
		replace_set(known->set);
		(void) hash_search(known_sets, &relations[i], HASH_REMOVE, NULL);
	}
	pfree(relations);
}

/* ----------------------------------------------------------------
 * The definition
 * ----------------------------------------------------------------
 */

/*
 * Is this one of the functions bloom_set_empty and bloom_set_empty_expiring?  The name is
 * not sufficient: any user who may create functions in the schema can create one of the
 * same name with other arguments.  Only superusers can create functions in C.
 */
static bool
is_set_function(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		bool		isnull;
		char	   *symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));

		result = strcmp(symbol, "bloom_set_empty") == 0 || strcmp(symbol, "bloom_set_empty_expiring") == 0;
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The default of the column that holds filters, or NULL if it is not that of a set.  Its
 * arguments must be literals.  Expressions are not evaluated, because they would run with
 * the privileges of the caller.
 */
static FuncExpr *
find_definition(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = 0; desc->constr != NULL && i < desc->constr->num_defval; i++)
	{
		AttrDefault *defval = &desc->constr->defval[i];
		const char *column = NameStr(TupleDescAttr(desc, defval->adnum - 1)->attname);
		bool		expires = strcmp(column, "filters") == 0;
		FuncExpr   *call;

		if (!expires && strcmp(column, "filter") != 0)
			continue;
		call = stringToNode(defval->adbin);
		if (IsA(call, FuncExpr) && is_set_function(call->funcid) &&
			list_length(call->args) == (expires ? SET_EXPIRY_ARGUMENTS : SET_ARGUMENTS))
			return call;
	}
	return NULL;
}

static Const *
constant_argument(const FuncExpr *call, int argument)
{
	Node	   *node = list_nth(call->args, argument);

	return IsA(node, Const) && !((Const *) node)->constisnull ? (Const *) node : NULL;
}

/*
 * The duration of a step, or 0 if it is not positive or too long.  A month counts as 31
 * days and a year as 366, so that no key is forgotten early.
 */
int64
set_step_length(const Interval *expiry, int32 steps)
{
	int64		days = (int64) (expiry->month / MONTHS_PER_YEAR) * 366 + expiry->month % MONTHS_PER_YEAR * 31 + (int64) expiry->day;
	int64		length;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &length) || pg_add_s64_overflow(length, expiry->time, &length) || length <= 0)
		return 0;
	return length / steps + (length % steps != 0);
}

/* Read the definition.  Returns false if there is none. */
static bool
read_definition(FilterSet *set, Relation relation, Oid schema)
{
	FuncExpr   *call = find_definition(relation);
	Const	   *arguments[SET_EXPIRY_ARGUMENTS];

	if (call == NULL)
		return false;
	for (int i = 0; i < list_length(call->args); i++)
	{
		arguments[i] = constant_argument(call, i);
		if (arguments[i] == NULL)
			return false;
	}
	set->relation = RelationGetRelid(relation);
	set->schema = pstrdup(quote_identifier(get_namespace_name(schema)));
	set->table = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation));
	set->slots = DatumGetInt32(arguments[0]->constvalue);
	set->capacity = DatumGetInt64(arguments[1]->constvalue);
	set->filter_type = arguments[2]->consttype;
	set->empty = PG_DETOAST_DATUM_COPY(arguments[2]->constvalue);
	value_open(&set->empty_filter, set->empty);
	if (list_length(call->args) == SET_EXPIRY_ARGUMENTS)
	{
		set->expiry = *DatumGetIntervalP(arguments[3]->constvalue);
		set->steps = DatumGetInt32(arguments[4]->constvalue);
		if (set->steps < 1 || set->steps > SET_MAX_STEPS)
			return false;
		set->step = set_step_length(&set->expiry, set->steps);
		if (set->step == 0)
			return false;
	}
	return set->slots >= 1 && set->slots <= SET_MAX_SLOTS &&
		set->empty_filter.header.kind == BF_KIND_BLOOM && set->empty_filter.header.class.code != BF_CLASS_NONE;
}

static bool
same_definition(const FilterSet *a, const FilterSet *b)
{
	return a->slots == b->slots && a->capacity == b->capacity && a->step == b->step && a->steps == b->steps &&
		memcmp(&a->expiry, &b->expiry, sizeof(Interval)) == 0 && a->filter_type == b->filter_type &&
		VARSIZE(a->empty) == VARSIZE(b->empty) && memcmp(a->empty, b->empty, VARSIZE(a->empty)) == 0 &&
		strcmp(a->schema, b->schema) == 0 && strcmp(a->table, b->table) == 0;
}

/*
 * Raise an error unless a set has the column of this type.  The values of another type would be
 * read as if they were of this one.
 */
static void
check_column(Relation relation, const char *column, Oid type)
{
	AttrNumber	attribute = get_attnum(RelationGetRelid(relation), column);

	if (attribute == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("filter set \"%s\" has no column \"%s\"", RelationGetRelationName(relation), column),
				 errhint("Restore the column, which is of type %s, or create another filter set.", format_type_be(type))));
	if (TupleDescAttr(RelationGetDescr(relation), attribute - 1)->atttypid != type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of filter set \"%s\" is of type %s", column, RelationGetRelationName(relation),
						format_type_be(TupleDescAttr(RelationGetDescr(relation), attribute - 1)->atttypid)),
				 errdetail("The functions of filter sets expect %s.", format_type_be(type)),
				 errhint("Restore the type with ALTER TABLE.")));
}

/* Read the definition of a set into a memory context of its own. */
static FilterSet *
load_set(Oid relid, Oid schema)
{
	Relation	relation = NULL;
	MemoryContext context;
	MemoryContext old;
	FilterSet  *set;

	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		relation = relation_open(relid, NoLock);
	if (relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid),
				 errhint("Create a filter set with bloom_set_create().")));
	context = AllocSetContextCreate(CurrentMemoryContext, "filter set", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	set = palloc0(sizeof(FilterSet));
	set->context = context;
	if (!read_definition(set, relation, schema))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a filter set", RelationGetRelationName(relation)),
				 errhint("Create a filter set with bloom_set_create().")));
	MemoryContextSwitchTo(old);
	check_column(relation, "slot", INT4OID);
	if (set->step != 0)
		check_column(relation, "turn", INT8OID);
	relation_close(relation, NoLock);
	return set;
}

/*
 * The filter set of this table.  The lock, which is kept until the end of the
 * transaction, ensures that the definition does not change.
 */
FilterSet *
filter_set(Oid relation, Oid caller)
{
	KnownSet   *known;
	FilterSet  *set;
	uint64		before;
	bool		found;

	LockRelationOid(relation, AccessShareLock);
	if (known_sets == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = sizeof(KnownSet), .hcxt = CacheMemoryContext};

		known_sets = hash_create("filter sets", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
		/* ALTER SCHEMA ... RENAME, and ALTER EXTENSION ... SET SCHEMA */
		CacheRegisterSyscacheCallback(NAMESPACEOID, forget_names, (Datum) 0);
		CacheRegisterSyscacheCallback(OPEROID, forget_names, (Datum) 0);
		RegisterXactCallback(free_replaced_sets, NULL);
	}
	known = hash_search(known_sets, &relation, HASH_FIND, NULL);
	if (likely(known != NULL && known->valid))
		return known->set;

	forget_dropped_sets();
	before = invalidations;
	set = load_set(relation, get_func_namespace(caller));
	known = hash_search(known_sets, &relation, HASH_ENTER, &found);
	if (found && same_definition(known->set, set))
		MemoryContextDelete(set->context);
	else
	{
		MemoryContextSetParent(set->context, CacheMemoryContext);
		if (found)
			replace_set(known->set);
		known->set = set;
	}
	known->valid = invalidations == before;
	return known->set;
}

/* ----------------------------------------------------------------
 * Statements
 * ----------------------------------------------------------------
 */

/* The text of a statement, and the number of its parameters. */
static char *
statement_text(const FilterSet *set, SetStatement statement, int *parameters)
{
	bool		expires = set->step != 0;

	switch (statement)
	{
		case SET_WRITE:
			*parameters = expires ? 5 : 3;
			return expires ?
				psprintf("UPDATE %s SET filters = $3, turn = $5 WHERE slot OPERATOR(pg_catalog.=) $1"
						 " AND filters OPERATOR(pg_catalog.=) $2 AND turn OPERATOR(pg_catalog.=) $4"
						 " RETURNING slot, filters, turn", set->table) :
				psprintf("UPDATE %s SET filter = $3 WHERE slot OPERATOR(pg_catalog.=) $1 AND filter OPERATOR(%s.=) $2"
						 " RETURNING slot, filter", set->table, set->schema);
		case SET_READ_ALL:
			*parameters = 0;
			return psprintf("SELECT slot, %s FROM %s", set_columns(set), set->table);
		case SET_FILL:
			*parameters = 0;
			return psprintf("INSERT INTO %s (slot) SELECT n FROM pg_catalog.generate_series(0, %u) AS n"
							" ON CONFLICT (slot) DO UPDATE SET %s", set->table, set->slots - 1,
							expires ? "filters = DEFAULT, turn = DEFAULT" : "filter = DEFAULT");
		default:
			*parameters = 1;
			return psprintf("SELECT slot, %s FROM %s WHERE slot OPERATOR(pg_catalog.=) %s%s", set_columns(set), set->table,
							statement == SET_READ_MANY ? "ANY ($1)" : "$1", statement == SET_LOCK ? " FOR NO KEY UPDATE" : "");
	}
}

/* The plan of a statement, which is prepared on first use. */
static SPIPlanPtr
statement_plan(FilterSet *set, SetStatement statement)
{
	if (set->plans[statement] == NULL)
	{
		Oid			filters = set->step != 0 ? get_array_type(set->filter_type) : set->filter_type;
		Oid			types[] = {statement == SET_READ_MANY ? INT4ARRAYOID : INT4OID, filters, filters, INT8OID, INT8OID};
		int			n;
		char	   *query = statement_text(set, statement, &n);
		SPIPlanPtr	plan = SPI_prepare(query, n, types);

		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		set->plans[statement] = plan;
	}
	return set->plans[statement];
}

/* Raise an error if the statement has used another table, while the caller waited for a row. */
static void
check_table(const FilterSet *set, SPIPlanPtr plan)
{
	if (!spi_plan_uses(plan, set->relation))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("schema of filter set \"%s\" was renamed by another session", get_rel_name(set->relation)),
				 errdetail("Another table has the name of the set now."),
				 errhint("Retry the transaction.")));
}

/* Run a statement.  The result is in SPI_processed and SPI_tuptable. */
void
filter_set_run(FilterSet *set, SetStatement statement, Datum *values, bool read_only)
{
	SPIPlanPtr	plan = statement_plan(set, statement);
	int			result = SPI_execute_plan(plan, values, NULL, read_only, 0);

	if (result == SPI_OK_REWRITTEN)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("filter set \"%s\" could not be updated", get_rel_name(set->relation)),
				 errdetail("A rule replaces the statement."),
				 errhint("Drop the rule: the functions of filter sets insert and update rows.")));
	if (result != SPI_OK_SELECT && result != SPI_OK_UPDATE_RETURNING && result != SPI_OK_INSERT)
		elog(ERROR, "SPI_execute_plan failed: %s", SPI_result_code_string(result));
	check_table(set, plan);
}

/* Open a cursor for all slots. */
Portal
filter_set_open(FilterSet *set)
{
	SPIPlanPtr	plan = statement_plan(set, SET_READ_ALL);
	Portal		portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);

	check_table(set, plan);
	return portal;
}
