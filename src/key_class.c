/*
 * key_class.c
 *		Classes of keys: their names, and whether two are compatible.
 *
 * A filter stores the class of its keys.  Testing a key of another class would
 * always return false and hide the mistake, so it is an error.
 */
#include "compat.h"

#include "mb/pg_wchar.h"

#include "key.h"

/* The label of a key class, in the server's encoding. */
char *
key_class_label(const KeyClass *class)
{
	char	   *name;

	if (class->code != BF_CLASS_NAMED)
		return pstrdup(bf_class_label(class->code));
	name = pnstrdup(class->name, class->name_length);
	return pg_any_to_server(name, class->name_length, PG_UTF8);
}

/* A type of this class, to be suggested for a cast; NULL if there is none. */
const char *
key_class_cast(const KeyClass *class)
{
	switch (class->code)
	{
		case BF_CLASS_INTEGER:
			return "bigint";
		case BF_CLASS_FLOAT:
			return "float8";
		case BF_CLASS_BIT:
			return "varbit";	/* a cast to bit truncates to one bit */
		case BF_CLASS_NAMED:
			{
				char	   *label = key_class_label(class);

				if (strncmp(label, "enum ", 5) == 0 || strncmp(label, "type ", 5) == 0)
					return label + 5;
				return NULL;
			}
		default:
			return bf_class_label(class->code);
	}
}

/* Are keys of this class arrays?  The name of a type that ends in "[]" is quoted. */
bool
key_class_is_array(const KeyClass *class)
{
	return class->code == BF_CLASS_NAMED && class->name_length >= 2 &&
		memcmp(class->name + class->name_length - 2, "[]", 2) == 0;
}

/* Slow path of key_class_check: compare names, and raise the error. */
void
key_class_compare(const KeyClass *filter, const KeyClass *key)
{
	KeyClass	class = *filter;
	const char *type;

	if (key_class_equal(&class, key) || class.code == BF_CLASS_NONE)
		return;
	type = key_class_cast(&class);
	class.scheme = key->scheme;
	if (key_class_equal(&class, key))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("filter of class %s was built on a machine with a different byte order", key_class_label(&class)),
				 errdetail("Keys of this class are hashed by the hash function of their type, which depends on the byte order."),
				 errhint("Build the filter again on this machine, or use keys of another type, such as text.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("key of class %s does not fit a filter of class %s",
					key_class_label(key), key_class_label(&class)),
			 errdetail("The class of a filter is that of its first key."),
			 key_class_is_array(key) && !key_class_is_array(&class) ?
			 errhint("If each element is a key, use the function whose name ends in _any, _all or _each.") :
			 class.code == BF_CLASS_TEXT && key->code == BF_CLASS_NAMED ?
			 errhint("Convert the key to the form that the filter was built from, for example key::text or lower(key::text).") :
			 type != NULL ?
			 errhint("Cast the key to the type that the filter was built from, for example key::%s.", type) :
			 errhint("Use a key of the type that the filter was built from.")));
}

/* Raise an error if filters to be combined have different classes. */
void
key_class_check_same(const KeyClass *a, const KeyClass *b)
{
	if (a->code != BF_CLASS_NONE && b->code != BF_CLASS_NONE && !key_class_equal(a, b))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("filters of class %s and of class %s cannot be combined",
						key_class_label(a), key_class_label(b)),
				 a->code == b->code && a->scheme != b->scheme ?
				 errdetail("They were built on machines with different byte orders.") :
				 errdetail("A filter holds keys of one class only."),
				 errhint("Build both filters from keys of one type.")));
}
