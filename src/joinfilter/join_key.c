/*
 * join_key.c
 *		Chooses how keys of a join are mapped to numbers, from the join's operator.
 */
#include "../compat.h"

#include "access/htup_details.h"
#include "access/hash.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "joinfilter.h"

/* The width of a type whose values are integers, in the order of its operators, or 0. */
int
join_integer_bytes(Oid type)
{
	switch (type)
	{
		case INT2OID:
			return 2;
		case INT4OID:
		case DATEOID:
			return 4;
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return 8;
		default:
			return 0;
	}
}

/* Is this the equality function of integers of any width, or of values stored as integers? */
static bool
is_integer_operator(Oid function)
{
	switch (function)
	{
		case F_INT2EQ:
		case F_INT4EQ:
		case F_INT8EQ:
		case F_INT24EQ:
		case F_INT42EQ:
		case F_INT28EQ:
		case F_INT82EQ:
		case F_INT48EQ:
		case F_INT84EQ:
		case F_DATE_EQ:
		case F_TIMESTAMP_EQ:
		case F_TIMESTAMPTZ_EQ:
			return true;
		default:
			return false;
	}
}

/*
 * Does this equality function compare bytes?  That of char(n) does not, because it
 * ignores trailing blanks.
 */
static bool
is_string_operator(Oid function, Oid collation)
{
	return function == F_BYTEAEQ ||
		(function == F_TEXTEQ && OidIsValid(collation) && get_collation_isdeterministic(collation));
}

/*
 * Is a function written in C?  A filter calls hash functions for rows that the query may discard before it
 * would call them itself, so they must not raise errors or be slow.  Functions in C are trusted with that.
 */
static bool
is_compiled(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		Oid			language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;

		result = language == INTERNALlanguageId || language == ClanguageId;
		ReleaseSysCache(tuple);
	}
	return result;
}

/* Are a type's own hash functions, and those of its elements, compiled? */
static bool
type_hash_is_compiled(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(getBaseType(type), TYPECACHE_HASH_PROC | TYPECACHE_HASH_EXTENDED_PROC);
	Oid			element = get_base_element_type(type);
	bool		result = true;

	check_stack_depth();
	if (OidIsValid(entry->hash_proc) && !is_compiled(entry->hash_proc))
		return false;
	if (OidIsValid(entry->hash_extended_proc) && !is_compiled(entry->hash_extended_proc))
		return false;
	if (!OidIsValid(element))
		element = get_range_subtype(entry->typtype == TYPTYPE_MULTIRANGE ? get_multirange_range(entry->type_id) : entry->type_id);
	if (OidIsValid(element))
		return type_hash_is_compiled(element);
	if (OidIsValid(entry->typrelid))
	{
		TupleDesc	desc = lookup_rowtype_tupdesc(entry->type_id, -1);

		for (int i = 0; i < desc->natts && result; i++)
			result = TupleDescAttr(desc, i)->attisdropped || type_hash_is_compiled(TupleDescAttr(desc, i)->atttypid);
		ReleaseTupleDesc(desc);
	}
	return result;
}

/*
 * Does a type have a 64-bit hash function?  Those of arrays, rows and ranges need one
 * for their elements, and the elements of an anonymous row are not known.
 */
static bool
has_extended_hash(Oid type)
{
	return type != RECORDOID && type != RECORDARRAYOID &&
		OidIsValid(lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc);
}

/*
 * Choose how the keys of both sides of a join are mapped to numbers; returns false if the
 * operator has no hash functions that may be called early.  The operator must be strict: another one could match
 * NULLs, which filters discard.
 */
bool
join_key_for(Oid operator, Oid collation, Oid outer_type, Oid inner_type, JoinKey *outer, JoinKey *inner)
{
	Oid			left;
	Oid			right;
	CatCList   *members;
	bool		found = false;

	memset(outer, 0, sizeof(*outer));
	memset(inner, 0, sizeof(*inner));
	outer->collation = inner->collation = collation;
	if (!op_strict(operator))
		return false;
	op_input_types(operator, &left, &right);
	if (is_integer_operator(get_opcode(operator)))
	{
		outer->integer_bytes = join_integer_bytes(left);
		inner->integer_bytes = join_integer_bytes(right);
		return true;
	}
	if (is_string_operator(get_opcode(operator), collation))
	{
		outer->is_string = inner->is_string = true;
		return true;
	}

	members = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(operator));
	for (int i = 0; i < members->n_members && !found && has_extended_hash(outer_type) && has_extended_hash(inner_type); i++)
	{
		Form_pg_amop form = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		if (form->amopmethod != HASH_AM_OID || form->amopstrategy != HTEqualStrategyNumber)
			continue;
		outer->extended = inner->extended = true;
		outer->function = get_opfamily_proc(form->amopfamily, form->amoplefttype, form->amoplefttype, HASHEXTENDED_PROC);
		inner->function = get_opfamily_proc(form->amopfamily, form->amoprighttype, form->amoprighttype, HASHEXTENDED_PROC);
		found = OidIsValid(outer->function) && OidIsValid(inner->function);
	}
	ReleaseSysCacheList(members);
	if (!found)
	{
		outer->extended = inner->extended = false;
		found = get_op_hash_functions(operator, &outer->function, &inner->function);
	}
	return found && is_compiled(outer->function) && is_compiled(inner->function) &&
		type_hash_is_compiled(outer_type) && type_hash_is_compiled(inner_type);
}

/* Prepare a key for the executor. */
void
join_key_init(JoinKeyState *state, const JoinKey *key, MemoryContext context)
{
	state->key = *key;
	if (OidIsValid(key->function))
		fmgr_info_cxt(key->function, &state->finfo, context);
}
