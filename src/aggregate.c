/*
 * aggregate.c
 *		The aggregates bloom_agg and cuckoo_agg(key [, capacity [, fpp]]).
 *
 * There may be a million groups of ten keys or one group of a hundred million, so a
 * state has two forms: a small state is a list of hashes in a palloc'd chunk, and a
 * large one, beyond STATE_MAX_FLAT bytes, is an expanded object with a memory
 * context.  (A context per group would be slow: hash aggregation sums the memory of
 * all contexts for every new group.)  Neither is a finished filter.  The final
 * function makes one, and leaves the state as it is.
 *
 * The aggregates over common types have the filter type as their transition type,
 * because Citus splits only such aggregates between workers and coordinator.  Its
 * calls pass no fn_expr and keep no fn_extra, so these transition functions use
 * neither.  The aggregates over anyelement have the transition type `internal`.
 * The states are the same, but nodeAgg copies and frees the former, and this file
 * the latter.
 *
 * A partial state, of a parallel query or of Citus, will be merged with others.  All
 * parts together may exceed the declared capacity when no single one does, and
 * bits cannot be split into layers afterwards.  So a partial state stays a list for
 * up to PARTIAL_LIST hashes.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/uuid.h"

#include "aggregate.h"
#include "builder.h"
#include "core/query.h"

/*
 * A small state.  It is a varlena of the filter type, so the server may copy it,
 * shorten its header or store it.  A state that comes from a tuple is checked
 * by aggregate_check_state.
 *
 * This is the only array of hashes that is not a bf_accumulator: its memory is the
 * varlena's, and hashes keep their order, on which the layers of a filter depend that has
 * more keys than its capacity.
 */
typedef struct State
{
	int32		vl_len_;
	char		kind;			/* 'B' or 'C' */
	char		mark;			/* VALUE_STATE_MARK */
	uint8		scheme;			/* of the keys, as in KeyClass */
	uint8		key_class;
	double		fpp;
	uint64		capacity;		/* 0: sized at the end */
	uint32		count;			/* hashes */
	uint32		sorted;			/* length of the sorted prefix, in which keys
								 * are looked up before they are appended; 0
								 * if few keys are repeated */
	uint8		name_length;	/* of the class */
	uint64		data[FLEXIBLE_ARRAY_MEMBER];	/* the name; then the hashes */
} State;

#define STATE_FIRST_FLAT	128 /* room for a handful of keys */
#define STATE_MAX_FLAT		65536

/*
 * The longest list of a partial state: 8 MB, or 16 MB with repetitions.  Within this
 * bound any number of parts is merged key by key, as if one process had seen all
 * keys.
 *
 * The leader adds the keys of lists one by one, while workers that make lines do so in
 * parallel: with lists, a parallel build of a million keys took 1.3 times as long.  So in
 * parallel plans the bound is lower if the declared capacity exceeds it.  With a smaller
 * capacity, a part of that length exceeds the capacity by itself, and lines would not
 * help.
 */
#define PARTIAL_LIST		(1024 * 1024)
#define PARALLEL_LIST		(64 * 1024)

/* The owner of a state's memory. */
typedef struct Owner
{
	MemoryContext context;		/* the aggregate's */
	bool		internal;		/* transition type internal, else the filter
								 * type */
	bool		combines;		/* combines states, else adds keys */
} Owner;

/*
 * The memory context of the calling aggregate.  Functions that change their argument,
 * which only an aggregate allows, raise an error for other callers.
 */
MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function %s can only be called as part of an aggregate",
						format_procedure(fcinfo->flinfo->fn_oid))));
	return context;
}

/* ----------------------------------------------------------------
 * Small states
 * ----------------------------------------------------------------
 */

static uint16
kind_of_state(const State *state)
{
	return state->kind == 'C' ? BF_KIND_CUCKOO : BF_KIND_BLOOM;
}

/* The hashes of a state, which follow the name of its class. */
static uint64 *
state_hashes(State *state)
{
	return state->data + (state->name_length + 7) / 8;
}

/* The number of hashes that fit. */
static Size
state_room(State *state)
{
	return (VARSIZE(state) - ((char *) state_hashes(state) - (char *) state)) / sizeof(uint64);
}

static KeyClass
state_class(State *state)
{
	return (KeyClass) {state->scheme, state->key_class, state->name_length, (char *) state->data};
}

/* Create an empty state with room for `count` hashes; NULL if it would be too large. */
static State *
state_create(Owner owner, uint16 kind, uint64 capacity, double fpp, const KeyClass *class, Size count)
{
	Size		fixed = offsetof(State, data) + (class->name_length + 7) / 8 * 8;
	Size		size = STATE_FIRST_FLAT;
	State	   *state;

	while (size < fixed + count * sizeof(uint64) + 4)
		size *= 2;
	if (size > STATE_MAX_FLAT)
		return NULL;
	size -= 4;					/* fits a chunk of a power of two */
	state = MemoryContextAllocZero(owner.internal ? owner.context : CurrentMemoryContext, size);
	SET_VARSIZE(state, size);
	state->kind = kind == BF_KIND_CUCKOO ? 'C' : 'B';
	state->mark = VALUE_STATE_MARK;
	state->scheme = class->scheme;
	state->key_class = class->code;
	state->fpp = fpp;
	state->capacity = capacity;
	state->name_length = class->name_length;
	if (class->name_length > 0)
		memcpy(state->data, class->name, class->name_length);
	return state;
}

/* Free a state, unless the executor does because it copies states. */
static void
state_release(Owner owner, State *state)
{
	if (owner.internal)
		pfree(state);
}

/* Is this a small state that a transition function has made? */
static bool
is_state(Pointer value)
{
	return VARATT_IS_4B_U(value) && value_is_state((struct varlena *) value);
}

/*
 * Check a small state from a tuple, which may come from a damaged or manipulated
 * table.  The validator of the core checks the bytes of filters; this checks the
 * fields of State, and uses the validator's check of key classes.
 */
static State *
aggregate_check_state(struct varlena *image)
{
	State	   *state = (State *) image;
	KeyClass	class;

	Assert(is_state((Pointer) image));
	if (VARSIZE(image) < offsetof(State, data) || (state->kind != 'B' && state->kind != 'C'))
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, "It is marked as an aggregate state, but its contents are not those of one.");
	class = state_class(state);
	if (VARSIZE(image) < offsetof(State, data) + (state->name_length + 7) / 8 * 8 ||
		state->count > state_room(state) || state->sorted > state->count ||
		state->capacity > BF_MAX_CAPACITY || !(state->fpp >= BF_MIN_FPP && state->fpp < 1) ||
		bf_class_validate(&class) != NULL || (class.code == BF_CLASS_NONE && state->count > 0))
		bf_fail(server_host(NULL), BF_FAIL_DAMAGED, 0, "The fields of the aggregate state are inconsistent.");
	return state;
}

/* Start a mutable filter with what a state holds. */
static void
aggregate_load_state(bf_mutable *filter, bf_host host, State *state, uint32 list_bound)
{
	KeyClass	class = state_class(state);

	bf_mutable_start_state(filter, host, kind_of_state(state), state->capacity, state->fpp);
	bf_mutable_set_class(filter, &class);
	if (filter->header.kind == BF_KIND_BLOOM)
	{
		filter->bloom.list_bound = list_bound;
		bf_bloom_reserve(&filter->bloom, state->count);
	}
	for (uint32 i = 0; i < state->count; i++)
		bf_mutable_add(filter, state_hashes(state)[i]);
}

/* Return a filter as it is, and the state of an aggregate as an unfinished filter. */
struct varlena *
aggregate_export(struct varlena *image)
{
	bf_mutable	filter;
	bf_filter	state;

	if (value_is_state(image))
	{
		if (VARATT_IS_SHORT(image))
			image = (struct varlena *) PG_DETOAST_DATUM(PointerGetDatum(image));
		aggregate_load_state(&filter, server_host(NULL), aggregate_check_state(image), PARTIAL_LIST);
		return builder_flat(&filter);
	}
	if (VARSIZE_ANY_EXHDR(image) < BF_HEADER_BYTES || !bf_header_is_unfinished((uint8 *) VARDATA_ANY(image)))
		return image;

	/* its list may be unsorted: see bf_bloom_describe_to_travel */
	value_open_any(&state, image);
	if (state.layer[0].form != BF_FORM_LIST || bf_list_is_sorted(state.header.host, state.layer[0].data, state.layer[0].count))
		return image;
	bf_mutable_load(&filter, server_host(NULL), &state);
	if (filter.header.kind == BF_KIND_BLOOM)
		filter.bloom.list_bound = PARTIAL_LIST;
	return builder_flat(&filter);
}

/* ----------------------------------------------------------------
 * Large states
 * ----------------------------------------------------------------
 */

static FilterObject *
create_object(Owner owner)
{
	FilterObject *object = filter_object_create(owner.context);

	object->is_state = true;
	return object;
}

/* Replace a small state by an object. */
static FilterObject *
state_to_object(Owner owner, State *state, uint32 list_bound)
{
	FilterObject *object = create_object(owner);

	aggregate_load_state(&object->filter, filter_object_host(object), state, list_bound);
	state_release(owner, state);
	return object;
}

static Pointer
object_pointer(FilterObject *object)
{
	return DatumGetPointer(filter_object_datum(object));
}

/*
 * The object of a state argument, or NULL if it is a small state.  An error if it is
 * neither: an INITCOND would be a finished filter with its own geometry.
 */
static FilterObject *
state_object(FunctionCallInfo fcinfo, Pointer state, uint16 kind)
{
	FilterObject *object = filter_object_to_change(PointerGetDatum(state));

	if (object != NULL ? !object->is_state || object->filter.header.kind != kind :
		!is_state(state) || kind_of_state((State *) state) != kind)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function %s does not support INITCOND",
						format_procedure(fcinfo->flinfo->fn_oid)),
				 errdetail("The initial state must be null."),
				 errhint("Define the aggregate without INITCOND.")));
	return object;
}

/* The declared capacity of a state. */
static uint64
object_capacity(const FilterObject *object)
{
	return object->filter.header.kind == BF_KIND_BLOOM ? object->filter.bloom.layer[0].size.capacity :
		object->filter.cuckoo.capacity;
}

/* Is that capacity known?  A cuckoo table that has grown has a multiple of it. */
static bool
object_knows_capacity(const FilterObject *object)
{
	return object->filter.header.kind == BF_KIND_BLOOM || object->filter.cuckoo.table.buckets == 0;
}

/* ----------------------------------------------------------------
 * Parameters
 * ----------------------------------------------------------------
 */

/* Get the arguments that follow the key: capacity, NULL if not declared, and fpp. */
static void
get_parameters(FunctionCallInfo fcinfo, uint16 kind, int64 *capacity, double *fpp)
{
	*capacity = 0;
	*fpp = VALUE_DEFAULT_FPP;
	if (PG_NARGS() > 3)
	{
		if (PG_ARGISNULL(3))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("false-positive probability must not be null"),
					 errhint("Omit the argument for the default of 0.01.")));
		*fpp = PG_GETARG_FLOAT8(3);
		value_check_fpp(*fpp);
	}
	if (PG_NARGS() > 2 && !PG_ARGISNULL(2))
	{
		*capacity = PG_GETARG_INT64(2);
		value_check_capacity(*capacity);
		value_check_words(kind == BF_KIND_BLOOM ? bf_shape_for((uint64) *capacity, *fpp).words :
						  bf_table_words(bf_table_for((uint64) *capacity, *fpp, BF_DEFAULT_GROWTH)),
						  *capacity, *fpp);
	}
}

static void
refuse_other_parameters(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("capacity and false-positive probability must be the same for all rows of a group"),
			 errhint("Use constants, or add the columns that they depend on to GROUP BY.")));
}

/* Are the parameters of this row those of the state? */
static inline bool
same_parameters(FunctionCallInfo fcinfo, uint64 capacity, double fpp)
{
	if (PG_NARGS() > 2 && (PG_ARGISNULL(2) ? 0 : (uint64) PG_GETARG_INT64(2)) != capacity)
		return false;
	return PG_NARGS() <= 3 || (!PG_ARGISNULL(3) && PG_GETARG_FLOAT8(3) == fpp);
}

static inline bool
same_parameters_as(FunctionCallInfo fcinfo, const FilterObject *object)
{
	return PG_NARGS() <= 2 || !object_knows_capacity(object) ||
		same_parameters(fcinfo, object_capacity(object), object->filter.header.fpp);
}

/* ----------------------------------------------------------------
 * Transition
 * ----------------------------------------------------------------
 */

/*
 * The longest list of a state; 0 unless the state is partial.  It is partial if the
 * aggregate is not finished in this plan node, has no final function, or belongs to
 * another extension that calls our transition function, as Citus does on its
 * workers.
 */
static uint32
list_bound(FunctionCallInfo fcinfo, Owner owner, uint64 capacity)
{
	Aggref	   *aggregate = owner.combines ? NULL : AggGetAggref(fcinfo);

	if (aggregate == NULL ||
		(!DO_AGGSPLIT_SKIPFINAL(aggregate->aggsplit) && key_aggregate_is(aggregate->aggfnoid, fcinfo->flinfo->fn_oid, true)))
		return 0;
	return IsInParallelMode() && capacity > PARALLEL_LIST ? PARALLEL_LIST : PARTIAL_LIST;
}

/*
 * Make room in a small state: drop repetitions, or move it to a larger chunk.  NULL
 * if that would exceed STATE_MAX_FLAT.
 */
static State *
state_enlarge(Owner owner, State *state)
{
	KeyClass	class = state_class(state);
	State	   *larger;

	if (state->kind == 'B')
	{
		state->sorted = (uint32) bf_hashes_drop_repetitions(server_host(NULL), state_hashes(state), state->count);
		if (state->sorted > 0)
			state->count = state->sorted;
		if (state->count <= state_room(state) / 2)
			return state;
	}
	larger = state_create(owner, kind_of_state(state), state->capacity, state->fpp, &class, state_room(state) * 2);
	if (larger == NULL)
		return NULL;
	memcpy(state_hashes(larger), state_hashes(state), sizeof(uint64) * state->count);
	larger->count = state->count;
	larger->sorted = state->sorted;
	state_release(owner, state);
	return larger;
}

/* Give a small state the class of its first key, or check the class of another key. */
static State *
state_classify(Owner owner, State *state, const KeyClass *class)
{
	KeyClass	own = state_class(state);
	State	   *named;

	key_class_check(&own, class);
	if (likely(own.code != BF_CLASS_NONE))
		return state;
	if (class->code != BF_CLASS_NAMED)
	{
		state->scheme = class->scheme;
		state->key_class = class->code;
		return state;
	}
	/* it has no keys yet, but may need more room for the name */
	named = state_create(owner, kind_of_state(state), state->capacity, state->fpp, class, 1);
	state_release(owner, state);
	return named;
}

/* Add one key.  Returns the state, which may have moved. */
static Pointer
aggregate_add_key(FunctionCallInfo fcinfo, Owner owner, Pointer pointer, const KeyClass *class, uint64 hash)
{
	FilterObject *object = filter_object_to_change(PointerGetDatum(pointer));

	if (object == NULL)
	{
		State	   *state = (State *) pointer;
		State	   *larger;

		if (unlikely(state->key_class != class->code || state->scheme != class->scheme || class->code == BF_CLASS_NAMED))
			state = state_classify(owner, state, class);
		larger = state;
		if (state->sorted > 0 && bf_hashes_find(state_hashes(state), state->sorted, hash) < state->sorted)
			return (Pointer) state;
		if (unlikely(state->count >= state_room(state)))
			larger = state_enlarge(owner, state);
		if (larger != NULL)
		{
			state_hashes(larger)[larger->count++] = hash;
			return (Pointer) larger;
		}
		object = state_to_object(owner, state, list_bound(fcinfo, owner, state->capacity));
	}
	key_class_check(&object->filter.header.class, class);
	bf_mutable_set_class(&object->filter, class);
	bf_mutable_add(&object->filter, hash);
	return object_pointer(object);
}

/*
 * Process one row of an aggregate.  A state is made even for a NULL key, because it
 * holds the declared geometry.
 */
static pg_noinline Datum
aggregate_transition_slowly(FunctionCallInfo fcinfo, uint16 kind, bool internal, const KeyClass *class, uint64 hash)
{
	Owner		owner = {aggregate_context(fcinfo), internal, false};
	Pointer		state;

	if (PG_ARGISNULL(0))
	{
		int64		capacity;
		double		fpp;

		get_parameters(fcinfo, kind, &capacity, &fpp);
		state = (Pointer) state_create(owner, kind, (uint64) capacity, fpp, &(KeyClass) {0}, 1);
	}
	else
	{
		FilterObject *object;

		state = PG_GETARG_POINTER(0);
		object = state_object(fcinfo, state, kind);
		if (object != NULL ? !same_parameters_as(fcinfo, object) :
			!same_parameters(fcinfo, ((State *) state)->capacity, ((State *) state)->fpp))
			refuse_other_parameters();
	}
	if (!PG_ARGISNULL(1))
		state = aggregate_add_key(fcinfo, owner, state, class, hash);
	PG_RETURN_POINTER(state);
}

/*
 * Fast path: add a key to a large state of the same class.  False if this is another
 * case, which aggregate_transition_slowly handles.
 */
static pg_attribute_always_inline bool
add_to_large_state(FunctionCallInfo fcinfo, uint16 kind, const KeyClass *class, uint64 hash)
{
	FilterObject *object;
	const bf_header *header;

	if (fcinfo->context == NULL || !(IsA(fcinfo->context, AggState) || IsA(fcinfo->context, WindowAggState)) ||
		PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
		(object = filter_object_to_change(PG_GETARG_DATUM(0))) == NULL)
		return false;
	header = &object->filter.header;
	if (!object->is_state || header->kind != kind || header->class.code != class->code ||
		class->code == BF_CLASS_NAMED || header->class.scheme != class->scheme || !same_parameters_as(fcinfo, object))
		return false;
	bf_mutable_add(&object->filter, hash);
	return true;
}

static pg_attribute_always_inline Datum
transition(FunctionCallInfo fcinfo, uint16 kind, bool internal, const KeyClass *class, uint64 hash)
{
	if (likely(add_to_large_state(fcinfo, kind, class, hash)))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return aggregate_transition_slowly(fcinfo, kind, internal, class, hash);
}

static inline Datum
aggregate_transition_text(FunctionCallInfo fcinfo, uint16 kind)
{
	uint64		hash = 0;

	if (PG_ARGISNULL(0))
		key_check_text_aggregate(fcinfo);
	if (!PG_ARGISNULL(1))
	{
		struct varlena *key = (struct varlena *) PG_GETARG_POINTER(1);

		if (VARATT_IS_EXTERNAL(key) || VARATT_IS_COMPRESSED(key))
			key = pg_detoast_datum_packed(key);

		if (PG_GET_COLLATION() != DEFAULT_COLLATION_OID)
			key_check_collation(PG_GET_COLLATION());
		hash = key_hash_text(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
	}
	return transition(fcinfo, kind, false, &key_class_text, hash);
}

/* The transition function of the aggregates over any type. */
static inline Datum
aggregate_transition_any(FunctionCallInfo fcinfo, uint16 kind)
{
	KeyType    *type;
	KeyClass	none = {0};
	uint64		hash;

	if (PG_ARGISNULL(1))
		return transition(fcinfo, kind, true, &none, 0);
	type = key_type_of_call(fcinfo, 1, (KeyType **) &fcinfo->flinfo->fn_extra);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	return transition(fcinfo, kind, true, &type->class, hash);
}

/* Over the common types.  `hash` is evaluated only if the key is not NULL. */
#define TRANSITION_OF(kind, class, hash) \
	transition(fcinfo, kind, false, &class, PG_ARGISNULL(1) ? 0 : (hash))

SQL_FUNCTION(bloom_agg_int2, TRANSITION_OF(BF_KIND_BLOOM, key_class_integer, key_hash_integer(PG_GETARG_INT16(1))));

SQL_FUNCTION(bloom_agg_int4, TRANSITION_OF(BF_KIND_BLOOM, key_class_integer, key_hash_integer(PG_GETARG_INT32(1))));

SQL_FUNCTION(bloom_agg_int8, TRANSITION_OF(BF_KIND_BLOOM, key_class_integer, key_hash_integer(PG_GETARG_INT64(1))));

SQL_FUNCTION(bloom_agg_uuid, TRANSITION_OF(BF_KIND_BLOOM, key_class_uuid, key_hash_uuid(PG_GETARG_UUID_P(1))));

SQL_FUNCTION(bloom_agg_char, TRANSITION_OF(BF_KIND_BLOOM, key_class_text, key_hash_char(PG_GETARG_CHAR(1))));

SQL_FUNCTION(bloom_agg_text, aggregate_transition_text(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(bloom_agg_any, aggregate_transition_any(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(cuckoo_agg_int2, TRANSITION_OF(BF_KIND_CUCKOO, key_class_integer, key_hash_integer(PG_GETARG_INT16(1))));

SQL_FUNCTION(cuckoo_agg_int4, TRANSITION_OF(BF_KIND_CUCKOO, key_class_integer, key_hash_integer(PG_GETARG_INT32(1))));

SQL_FUNCTION(cuckoo_agg_int8, TRANSITION_OF(BF_KIND_CUCKOO, key_class_integer, key_hash_integer(PG_GETARG_INT64(1))));

SQL_FUNCTION(cuckoo_agg_uuid, TRANSITION_OF(BF_KIND_CUCKOO, key_class_uuid, key_hash_uuid(PG_GETARG_UUID_P(1))));

SQL_FUNCTION(cuckoo_agg_char, TRANSITION_OF(BF_KIND_CUCKOO, key_class_text, key_hash_char(PG_GETARG_CHAR(1))));

SQL_FUNCTION(cuckoo_agg_text, aggregate_transition_text(fcinfo, BF_KIND_CUCKOO));

SQL_FUNCTION(cuckoo_agg_any, aggregate_transition_any(fcinfo, BF_KIND_CUCKOO));

/* ----------------------------------------------------------------
 * Combine
 * ----------------------------------------------------------------
 */

/*
 * The other state of a combine function, which comes from a tuple.  It is a small
 * state, or an unfinished filter if it was an object.  The hashes of a small state
 * or a short list are in `hashes`; otherwise see `filter`.
 */
typedef struct Part
{
	KeyClass	class;
	uint64		capacity;
	double		fpp;
	uint64	   *hashes;			/* NULL: see `filter` */
	uint32		count;
	bf_filter	filter;
} Part;

/* Read the hashes of an unfinished filter, each as often as it was added. */
static void
aggregate_read_hashes(Part *part)
{
	const bf_layer *layer = &part->filter.layer[0];
	uint64		copies;

	if (layer->shape.words > 0 || layer->table.buckets > 0 || layer->count > STATE_MAX_FLAT / 8)
		return;
	copies = bf_layer_read_hashes(layer, NULL);
	if (copies > STATE_MAX_FLAT / 8)
		return;
	part->hashes = palloc(sizeof(uint64) * (copies + 1));
	part->count = (uint32) bf_layer_read_hashes(layer, part->hashes);
}

static void
aggregate_open_part(Part *part, Datum value, uint16 kind)
{
	struct varlena *image = (struct varlena *) PG_DETOAST_DATUM(value);

	part->hashes = NULL;
	part->count = 0;
	if (value_is_state(image))
	{
		State	   *state = aggregate_check_state(image);

		value_check_kind(kind_of_state(state), kind);
		part->class = state_class(state);
		part->capacity = state->capacity;
		part->fpp = state->fpp;
		part->hashes = state_hashes(state);
		part->count = state->count;
		return;
	}
	value_open_any(&part->filter, image);
	value_check_kind(part->filter.header.kind, kind);
	if (part->filter.header.growth != BF_DEFAULT_GROWTH || part->filter.header.max_layers > 0)
		refuse_other_parameters();	/* not made by an aggregate */
	part->class = part->filter.header.class;
	part->capacity = part->filter.layer[0].capacity;
	part->fpp = part->filter.header.fpp;
	aggregate_read_hashes(part);
}

/* Merge a part that is a filter into the state, which becomes an object. */
static Pointer
aggregate_merge_filter(Owner owner, Pointer state, const Part *part)
{
	FilterObject *object;

	if (state == NULL)
	{
		object = create_object(owner);
		bf_mutable_load(&object->filter, filter_object_host(object), &part->filter);
		if (part->filter.header.kind == BF_KIND_BLOOM)
			object->filter.bloom.is_state = true;
		return object_pointer(object);
	}
	object = filter_object_to_change(PointerGetDatum(state));
	if (object == NULL)
		object = state_to_object(owner, (State *) state, 0);
	if (part->class.code != BF_CLASS_NONE)
	{
		key_class_check(&object->filter.header.class, &part->class);
		bf_mutable_set_class(&object->filter, &part->class);
	}
	if (!bf_mutable_can_merge_state(&object->filter, &part->filter))
		refuse_other_parameters();
	bf_mutable_merge_state(&object->filter, &part->filter);
	return object_pointer(object);
}

static Datum
aggregate_combine(FunctionCallInfo fcinfo, uint16 kind, bool internal)
{
	Owner		owner = {aggregate_context(fcinfo), internal, true};
	FilterObject *object = NULL;
	Pointer		state = NULL;
	Part		part;

	if (!PG_ARGISNULL(0))
	{
		state = PG_GETARG_POINTER(0);
		object = state_object(fcinfo, state, kind);
	}
	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	aggregate_open_part(&part, PG_GETARG_DATUM(1), kind);
	if (part.hashes == NULL)
		PG_RETURN_POINTER(aggregate_merge_filter(owner, state, &part));
	if (state == NULL)
		state = (Pointer) state_create(owner, kind, part.capacity, part.fpp, &part.class, Min(part.count, STATE_MAX_FLAT / 16));
	else if (object != NULL ? part.fpp != object->filter.header.fpp ||
			 (object_knows_capacity(object) && part.capacity != object_capacity(object)) :
			 part.fpp != ((State *) state)->fpp || part.capacity != ((State *) state)->capacity)
		refuse_other_parameters();
	for (uint32 i = 0; i < part.count; i++)
		state = aggregate_add_key(fcinfo, owner, state, &part.class, part.hashes[i]);
	PG_RETURN_POINTER(state);
}

SQL_FUNCTION(bloom_agg_combine, aggregate_combine(fcinfo, BF_KIND_BLOOM, false));

SQL_FUNCTION(bloom_agg_combine_internal, aggregate_combine(fcinfo, BF_KIND_BLOOM, true));

SQL_FUNCTION(cuckoo_agg_combine, aggregate_combine(fcinfo, BF_KIND_CUCKOO, false));

SQL_FUNCTION(cuckoo_agg_combine_internal, aggregate_combine(fcinfo, BF_KIND_CUCKOO, true));

/* ----------------------------------------------------------------
 * Serialize, final
 * ----------------------------------------------------------------
 */

/* Serialize an internal state as the bytes of an unfinished filter. */
PG_FUNCTION_INFO_V1(filter_agg_serialize);
Datum
filter_agg_serialize(PG_FUNCTION_ARGS)
{
	FilterObject *object;

	aggregate_context(fcinfo);
	object = filter_object(PG_GETARG_DATUM(0));
	PG_RETURN_BYTEA_P(object != NULL ? builder_flat(&object->filter) :
					  aggregate_export((struct varlena *) PG_GETARG_POINTER(0)));
}

/* Deserialize a state; the bytes are validated. */
static Datum
aggregate_deserialize(FunctionCallInfo fcinfo, uint16 kind)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	aggregate_context(fcinfo);
	PG_RETURN_POINTER(value_from_bytes(kind, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)));
}

SQL_FUNCTION(bloom_agg_deserialize, aggregate_deserialize(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(cuckoo_agg_deserialize, aggregate_deserialize(fcinfo, BF_KIND_CUCKOO));

/*
 * Make the finished filter.  Without rows the result is an empty filter, not NULL, so
 * that a query that tests keys against an empty set returns no rows.
 */
static Datum
aggregate_final(FunctionCallInfo fcinfo, uint16 kind)
{
	bf_host		host = server_host(NULL);
	bf_mutable	filter;
	bf_filter	unfinished;
	FilterObject *object;
	struct varlena *state;

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
	{
		bf_mutable_start_state(&filter, host, kind, 0, VALUE_DEFAULT_FPP);
		PG_RETURN_POINTER(builder_finish(&filter));
	}
	object = filter_object(PG_GETARG_DATUM(0));
	if (object != NULL)
		PG_RETURN_POINTER(builder_finish(&object->filter));
	state = (struct varlena *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	if (value_is_state(state))
		aggregate_load_state(&filter, host, aggregate_check_state(state), 0);
	else
	{
		value_open_any(&unfinished, state);
		bf_mutable_load(&filter, host, &unfinished);
	}
	value_check_kind(filter.header.kind, kind);
	PG_RETURN_POINTER(builder_finish(&filter));
}

SQL_FUNCTION(bloom_agg_final, aggregate_final(fcinfo, BF_KIND_BLOOM));

SQL_FUNCTION(cuckoo_agg_final, aggregate_final(fcinfo, BF_KIND_CUCKOO));
