/*
 * agg.c
 *		The aggregates bloom_agg and cuckoo_agg(key [, capacity [, fpp]]).
 *
 * There may be a million groups of ten keys or one of a hundred million, so a
 * state has two forms: a small flat struct of hashes (or of a Bloom filter's bit
 * lines, if the declared geometry is small) that a plain palloc'd chunk holds, and beyond
 * STATE_MAX_FLAT bytes an expanded object, which is a memory context of its
 * own.  Neither is a finished filter; the final function makes that, and
 * leaves the state as it was.
 *
 * The aggregates over the common types have the filter type itself as their
 * transition type, because Citus splits only such aggregates between workers
 * and coordinator; its calls bring neither fn_expr nor a lasting fn_extra, so
 * the transition functions do without.  The aggregates over anyelement have
 * `internal`.  The states are the same; the difference is who copies and
 * frees them: nodeAgg does for the former, we do for the latter.
 */
#include "compat.h"

#include "catalog/pg_collation.h"
#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/uuid.h"

#include "agg.h"
#include "expanded.h"

/*
 * A flat state.  It looks like a varlena of the filter type and is never seen
 * outside of the executor: output functions settle it first.
 */
typedef struct FilterState
{
	int32		vl_len_;
	uint16		kind;			/* state_kind(), which no filter has */
	uint8		scheme;			/* of the keys, as in KeyClass */
	uint8		key_class;
	double		fpp;
	uint64		capacity;		/* 0: sized at the end */
	uint32		count;			/* hashes */
	uint32		sorted;			/* so many are in order, and worth a look */
	uint8		is_lines;		/* bit lines instead of hashes */
	uint8		name_length;	/* of the class */
	uint8		growth;			/* as in bf_filter */
	uint8		max_layers;
	uint64		data[FLEXIBLE_ARRAY_MEMBER];	/* the name; then the hashes, or
												 * StateLines */
} FilterState;

/* What only lines need to know, and the lines. */
typedef struct StateLines
{
	bf_shape	shape;
	uint64		keys_left;		/* that may change them; see is_full */
	uint8		lines[FLEXIBLE_ARRAY_MEMBER];
} StateLines;

/* "BS" and "CS". */
#define BLOOM_STATE_KIND	(BF_BIG_ENDIAN ? 0x4253 : 0x5342)
#define CUCKOO_STATE_KIND	(BF_BIG_ENDIAN ? 0x4353 : 0x5343)

#define STATE_FIRST_FLAT	128		/* room for a handful of keys */
#define STATE_MAX_FLAT		65536

/* Who owns the memory of the state at hand. */
typedef struct StateOwner
{
	MemoryContext context;		/* the aggregate's */
	bool		internal;		/* transition type internal, else the filter type */
} StateOwner;

/*
 * Functions that may change their argument, as only an aggregate allows, refuse
 * other callers here.
 */
MemoryContext
agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function %s can only be called as part of an aggregate",
						format_procedure(fcinfo->flinfo->fn_oid))));
	return context;
}

static StateOwner
state_owner(FunctionCallInfo fcinfo, bool internal)
{
	StateOwner	owner = {agg_context(fcinfo), internal};

	return owner;
}

static bool
is_flat_state(Pointer state)
{
	return VARATT_IS_4B_U(state) && VARSIZE(state) >= sizeof(FilterState) &&
		(((FilterState *) state)->kind == BLOOM_STATE_KIND || ((FilterState *) state)->kind == CUCKOO_STATE_KIND);
}

static uint16
kind_of_state(const FilterState *state)
{
	return state->kind == CUCKOO_STATE_KIND ? BF_KIND_CUCKOO : BF_KIND_BLOOM;
}

/* The hashes of a flat state, behind the name of its class. */
static uint64 *
state_hashes(FilterState *state)
{
	return state->data + (state->name_length + 7) / 8;
}

/* Its lines, in the same place. */
static StateLines *
state_lines(FilterState *state)
{
	return (StateLines *) state_hashes(state);
}

/* How many hashes fit. */
static Size
state_room(FilterState *state)
{
	return (VARSIZE(state) - ((char *) state_hashes(state) - (char *) state)) / sizeof(uint64);
}

/* ----------------------------------------------------------------
 * Between states and builders
 * ----------------------------------------------------------------
 */

/* Add one key's hash. */
static inline void
build_add(AnyBuilder *builder, uint64 hash)
{
	if (builder->base.methods == &bloom_methods)
		bloom_build_add(&builder->bloom, hash);
	else
		cuckoo_build_add(&builder->cuckoo, hash);
}

/* Fill a builder from a flat state. */
static void
load_state(AnyBuilder *builder, MemoryContext context, FilterState *state)
{
	const BuilderMethods *methods = builder_methods(kind_of_state(state));
	KeyClass	class = {state->scheme, state->key_class, state->name_length, (char *) state->data};

	if (state->is_lines)
	{
		StateLines *lines = state_lines(state);
		bf_filter	filter;
		bf_layer   *layer = &filter.layer[0];

		memset(&filter, 0, frame_size(1));
		filter.kind = methods->type.kind;
		filter.layers = 1;
		filter.fpp = state->fpp;
		layer->capacity = state->capacity;
		layer->form = BF_FORM_LINES;
		layer->shape = lines->shape;
		layer->data = lines->lines;
		filter.growth = state->growth;
		methods->load(&builder->base, context, &filter);
		builder->bloom.keys_left = lines->keys_left;
	}
	else
		methods->start(&builder->base, context, state->capacity, state->fpp);
	builder->base.frame->growth = state->growth;
	builder->base.frame->max_layers = state->max_layers;
	build_set_class(&builder->base, &class);
	for (uint32 i = 0; i < state->count; i++)
		build_add(builder, state_hashes(state)[i]);
}

/* A builder for any value of a state, which stays as it is. */
static AnyBuilder *
builder_of(Datum value, AnyBuilder *scratch)
{
	ExpandedFilter *expanded = expanded_filter(value);
	struct varlena *flat;

	if (expanded != NULL)
		return &expanded->builder;
	flat = PG_DETOAST_DATUM(value);
	if (is_flat_state((Pointer) flat))
		load_state(scratch, CurrentMemoryContext, (FilterState *) flat);
	else
	{
		bf_filter	filter;

		filter_open(&filter, flat);
		build_load(scratch, CurrentMemoryContext, &filter);
	}
	return scratch;
}

/*
 * Citus prints the state of an aggregate to carry it from a worker to the
 * coordinator, and users may define aggregates without our final function.
 */
struct varlena *
agg_settled(struct varlena *value)
{
	AnyBuilder	builder;

	if (VARSIZE_ANY_EXHDR(value) < 2 ||
		(memcmp(VARDATA_ANY(value), "BS", 2) != 0 && memcmp(VARDATA_ANY(value), "CS", 2) != 0))
		return value;
	if (VARATT_IS_SHORT(value))
		value = (struct varlena *) PG_DETOAST_DATUM(PointerGetDatum(value));
	if (!is_flat_state((Pointer) value))
		return value;
	load_state(&builder, CurrentMemoryContext, (FilterState *) value);
	return build_flat(&builder.base);
}

/* The bit lines of a builder, or NULL if it has none; pending keys are in. */
static const uint8 *
builder_lines(AnyBuilder *builder)
{
	if (builder->base.methods != &bloom_methods || builder->bloom.lines == NULL)
		return NULL;
	bloom_build_apply_batch(&builder->bloom);
	return builder->bloom.lines;
}

/* Is counting keys enough to know when the lines are full, if ever? */
static bool
knows_when_full(const BloomBuilder *builder)
{
	return builder->keys_left != BLOOM_UNCOUNTED || builder->full_bits == UINT64_MAX;
}

/* Make an object of what a builder holds. */
static Pointer
make_expanded(StateOwner owner, AnyBuilder *builder)
{
	ExpandedFilter *expanded = expanded_filter_create(owner.context);
	bf_filter	filter;
	struct varlena *flat = build_flat(&builder->base);

	filter_open(&filter, flat);
	build_load(&expanded->builder, expanded->header.eoh_context, &filter);
	if (builder->base.methods == &bloom_methods)
		expanded->builder.bloom.keys_left = builder->bloom.keys_left;
	pfree(flat);
	return DatumGetPointer(EOHPGetRWDatum(&expanded->header));
}

/*
 * Make a state of what a builder holds, with room for more.  So many hashes were
 * added to it: if many of them were repetitions, look for more of those.
 */
static Pointer
make_state(StateOwner owner, AnyBuilder *builder, uint32 added)
{
	const BuilderMethods *methods = builder->base.methods;
	const uint8 *lines = builder_lines(builder);
	bf_filter  *frame = builder->base.frame;
	bf_layer   *layer = &frame->layer[0];
	Size		fixed = offsetof(FilterState, data) + (frame->name_length + 7) / 8 * 8;
	Size		size = STATE_FIRST_FLAT;
	const uint64 *hashes;
	int64		count = methods->hashes(&builder->base, &hashes);
	FilterState *state;

	if (count >= 0)
	{
		while (size < fixed + ((Size) count * 2 + 1) * 8 + 4)
			size *= 2;
	}
	else if (lines != NULL && frame->layers == 1 && knows_when_full(&builder->bloom))
		size = (fixed + offsetof(StateLines, lines) + (Size) layer->shape.words * 8 + 4 + 63) / 64 * 64;
	else
		size = STATE_MAX_FLAT * 2;	/* only a builder can hold it */
	size -= 4;
	if (size > STATE_MAX_FLAT)
		return make_expanded(owner, builder);
	Assert(agg_is_state_size(size));

	state = MemoryContextAllocZero(owner.internal ? owner.context : CurrentMemoryContext, size);
	SET_VARSIZE(state, size);
	state->kind = methods == &bloom_methods ? BLOOM_STATE_KIND : CUCKOO_STATE_KIND;
	state->scheme = frame->scheme;
	state->key_class = frame->key_class;
	state->fpp = frame->fpp;
	state->capacity = layer->capacity;
	state->growth = frame->growth;
	state->max_layers = frame->max_layers;
	state->name_length = frame->name_length;
	if (frame->name_length > 0)
		memcpy(state->data, frame->name, frame->name_length);
	if (count < 0)
	{
		state->is_lines = true;
		state_lines(state)->shape = layer->shape;
		state_lines(state)->keys_left = builder->bloom.keys_left;
		memcpy(state_lines(state)->lines, lines, (Size) layer->shape.words * 8);
	}
	else
	{
		state->count = (uint32) count;
		if (methods == &bloom_methods && state->count < added - added / 4 && builder->bloom.sorted == state->count)
			state->sorted = state->count;
		memcpy(state_hashes(state), hashes, sizeof(uint64) * count);
	}
	return (Pointer) state;
}

/* Replace a flat state; nodeAgg frees the old one unless it is internal. */
static Pointer
replace_state(StateOwner owner, Pointer old, AnyBuilder *builder, uint32 added)
{
	Pointer		state = make_state(owner, builder, added);

	if (owner.internal && old != NULL)
		pfree(old);
	return state;
}

/* ----------------------------------------------------------------
 * Transition
 * ----------------------------------------------------------------
 */

/* The arguments behind the key: (NULL for "size it yourself", fpp). */
static void
get_parameters(FunctionCallInfo fcinfo, int64 *capacity, double *fpp)
{
	*capacity = 0;
	*fpp = FILTER_DEFAULT_FPP;
	if (PG_NARGS() > 2 && !PG_ARGISNULL(2))
	{
		*capacity = PG_GETARG_INT64(2);
		filter_check_capacity(*capacity);
	}
	if (PG_NARGS() > 3)
	{
		if (PG_ARGISNULL(3))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("false-positive probability must not be null"),
					 errhint("Leave it out for the default of 0.01.")));
		*fpp = PG_GETARG_FLOAT8(3);
		filter_check_fpp(*fpp);
	}
}

static void
refuse_other_parameters(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("capacity and false-positive probability must be the same for all rows of an aggregate"),
			 errhint("Use constants, or GROUP BY what they depend on.")));
}

/* All rows must ask for the same filter: do the arguments say the same? */
static inline bool
same_parameters(FunctionCallInfo fcinfo, uint64 capacity, double fpp)
{
	if (PG_NARGS() > 2 && (PG_ARGISNULL(2) ? 0 : (uint64) PG_GETARG_INT64(2)) != capacity)
		return false;
	return PG_NARGS() <= 3 || (!PG_ARGISNULL(3) && PG_GETARG_FLOAT8(3) == fpp);
}

static inline bool
same_parameters_as(FunctionCallInfo fcinfo, const bf_filter *frame)
{
	/* the capacity of a table that has grown is a multiple of what was declared */
	return frame->layer[0].table.buckets > 0 ||
		same_parameters(fcinfo, frame->layer[0].capacity, frame->fpp);
}

static void
check_parameters(FunctionCallInfo fcinfo, Pointer state)
{
	ExpandedFilter *expanded = expanded_filter(PointerGetDatum(state));

	/* a flat filter comes from another node, which has checked */
	if (expanded != NULL ? !same_parameters_as(fcinfo, expanded->builder.base.frame) :
		is_flat_state(state) && !same_parameters(fcinfo, ((FilterState *) state)->capacity, ((FilterState *) state)->fpp))
		refuse_other_parameters();
}

/* The state to begin with, of the parameters in the call and of no class. */
static Pointer
first_state(FunctionCallInfo fcinfo, StateOwner owner, const BuilderMethods *methods)
{
	AnyBuilder	builder;
	int64		capacity;
	double		fpp;

	get_parameters(fcinfo, &capacity, &fpp);
	methods->start(&builder.base, CurrentMemoryContext, (uint64) capacity, fpp);
	return make_state(owner, &builder, 0);
}

/* Give a flat state its class, which may need more room for a name. */
static Pointer
classify_state(StateOwner owner, FilterState *state, const KeyClass *class)
{
	bf_filter	filter;
	AnyBuilder	builder;

	memset(&filter, 0, offsetof(bf_filter, layer));
	filter.scheme = state->scheme;
	filter.key_class = state->key_class;
	filter.name_length = state->name_length;
	filter.name = (char *) state->data;
	filter_check_class(&filter, class);
	if (state->key_class != BF_CLASS_NONE)
		return (Pointer) state;
	if (class->code != BF_CLASS_NAMED)
	{
		state->scheme = class->scheme;
		state->key_class = class->code;
		return (Pointer) state;
	}
	load_state(&builder, CurrentMemoryContext, state);
	build_set_class(&builder.base, class);
	return replace_state(owner, (Pointer) state, &builder, 0);
}

/* Take in one key.  Returns the state, which may have moved. */
static inline Pointer
add_to_state(FunctionCallInfo fcinfo, StateOwner owner, Pointer old,
			 const KeyClass *class, uint64 hash)
{
	ExpandedFilter *expanded = expanded_filter(PointerGetDatum(old));
	FilterState *state;
	AnyBuilder	scratch;
	Pointer		moved;

	if (expanded != NULL)
	{
		AnyBuilder *builder = &expanded->builder;

		filter_check_class(builder->base.frame, class);
		if (unlikely(builder->base.frame->key_class == BF_CLASS_NONE))
			build_set_class(&builder->base, class);
		build_add(builder, hash);
		return old;
	}
	if (unlikely(!is_flat_state(old)))
	{
		/* a filter that the aggregate begins with, of any geometry */
		Assert(!owner.internal);
		old = make_expanded(owner, builder_of(PointerGetDatum(old), &scratch));
		return add_to_state(fcinfo, owner, old, class, hash);
	}

	state = (FilterState *) old;
	if (unlikely(state->key_class != class->code || class->code == BF_CLASS_NAMED))
	{
		moved = classify_state(owner, state, class);
		if (!is_flat_state(moved))
			return add_to_state(fcinfo, owner, moved, class, hash);
		state = (FilterState *) moved;
	}
	if (state->is_lines)
	{
		StateLines *own = state_lines(state);

		if (likely(own->keys_left > 0))
			bloom_count_keys(&own->keys_left, bf_lines_add(own->lines, own->shape, hash) > 0);
		else if (!bf_lines_test(own->lines, own->shape, hash))
		{
			/* more keys than were declared: another layer */
			load_state(&scratch, CurrentMemoryContext, state);
			bloom_build_add_layered(&scratch.bloom, hash);
			return replace_state(owner, (Pointer) state, &scratch, 0);
		}
	}
	else
	{
		if (state->sorted > 0 && bf_hashes_find(state_hashes(state), state->sorted, hash) < state->sorted)
			return (Pointer) state;
		if (unlikely(state->count == state_room(state)))
		{
			load_state(&scratch, CurrentMemoryContext, state);
			build_add(&scratch, hash);
			if (scratch.base.methods == &bloom_methods && scratch.bloom.lines == NULL)
				bloom_build_make_room(&scratch.bloom);	/* find repetitions */
			return replace_state(owner, (Pointer) state, &scratch, state->count);
		}
		state_hashes(state)[state->count++] = hash;
	}
	return (Pointer) state;
}

/*
 * One row of an aggregate.  The state is made even for a NULL key: it carries
 * the declared geometry.
 */
static pg_noinline Datum
transition_slowly(FunctionCallInfo fcinfo, const BuilderMethods *methods, bool internal,
				  const KeyClass *class, uint64 hash)
{
	StateOwner	owner = state_owner(fcinfo, internal);
	Pointer		state;

	if (PG_ARGISNULL(0))
		state = first_state(fcinfo, owner, methods);
	else
	{
		state = PG_GETARG_POINTER(0);
		if (PG_NARGS() > 2)
			check_parameters(fcinfo, state);
	}
	if (!PG_ARGISNULL(1))
		state = add_to_state(fcinfo, owner, state, class, hash);
	PG_RETURN_POINTER(state);
}

/*
 * The usual case, made short: another key of the same class for a large state.
 * Whoever is not an aggregate is refused in the other function.
 */
static pg_attribute_always_inline bool
add_to_large_state(FunctionCallInfo fcinfo, const BuilderMethods *methods, const KeyClass *class, uint64 hash)
{
	ExpandedFilter *expanded;
	const bf_filter *frame;

	if (fcinfo->context == NULL || !(IsA(fcinfo->context, AggState) || IsA(fcinfo->context, WindowAggState)) ||
		PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
		!VARATT_IS_EXTERNAL_EXPANDED_RW(PG_GETARG_POINTER(0)) ||
		(expanded = expanded_filter(PG_GETARG_DATUM(0))) == NULL)
		return false;
	frame = expanded->builder.base.frame;
	if (expanded->builder.base.methods != methods || frame->key_class != class->code ||
		class->code == BF_CLASS_NAMED || frame->scheme != class->scheme || !same_parameters_as(fcinfo, frame))
		return false;
	if (methods == &bloom_methods)
		bloom_build_add(&expanded->builder.bloom, hash);
	else
		cuckoo_build_add(&expanded->builder.cuckoo, hash);
	return true;
}

static pg_attribute_always_inline Datum
transition(FunctionCallInfo fcinfo, const BuilderMethods *methods, bool internal, const KeyClass *class, uint64 hash)
{
	if (likely(add_to_large_state(fcinfo, methods, class, hash)))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return transition_slowly(fcinfo, methods, internal, class, hash);
}

static inline Datum
transition_text(FunctionCallInfo fcinfo, const BuilderMethods *methods)
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
	return transition(fcinfo, methods, false, &key_class_text, hash);
}

/* The transition function of the aggregates over any type. */
static inline Datum
transition_any(FunctionCallInfo fcinfo, const BuilderMethods *methods)
{
	KeyType    *type = fcinfo->flinfo->fn_extra;
	KeyClass	none = {0};
	uint64		hash;

	if (PG_ARGISNULL(1))
		return transition(fcinfo, methods, true, &none, 0);
	if (type == NULL)
		fcinfo->flinfo->fn_extra = type = key_type_of_argument(fcinfo, 1);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	return transition(fcinfo, methods, true, &type->class, hash);
}

/* The transition functions of the aggregates of a filter type. */
#define TRANSITION(name, expression) \
PG_FUNCTION_INFO_V1(name); \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return expression; \
}
#define TRANSITION_OF(methods, class, hash_expression) \
	transition(fcinfo, &methods, false, &class, PG_ARGISNULL(1) ? 0 : (hash_expression))
#define TRANSITIONS(filter) \
TRANSITION(filter##_agg_int2, TRANSITION_OF(filter##_methods, key_class_integer, key_hash_integer(PG_GETARG_INT16(1)))) \
TRANSITION(filter##_agg_int4, TRANSITION_OF(filter##_methods, key_class_integer, key_hash_integer(PG_GETARG_INT32(1)))) \
TRANSITION(filter##_agg_int8, TRANSITION_OF(filter##_methods, key_class_integer, key_hash_integer(PG_GETARG_INT64(1)))) \
TRANSITION(filter##_agg_uuid, TRANSITION_OF(filter##_methods, key_class_uuid, key_hash_uuid(PG_GETARG_UUID_P(1)))) \
TRANSITION(filter##_agg_char, TRANSITION_OF(filter##_methods, key_class_text, key_hash_char(PG_GETARG_CHAR(1)))) \
TRANSITION(filter##_agg_text, transition_text(fcinfo, &filter##_methods)) \
TRANSITION(filter##_agg_any, transition_any(fcinfo, &filter##_methods))

TRANSITIONS(bloom)
TRANSITIONS(cuckoo)

/* ----------------------------------------------------------------
 * Combine, serialize, final
 * ----------------------------------------------------------------
 */

/* Add what `from` holds to the builder of another state of the same call. */
static void
merge_into(FilterBuilder *builder, Datum from)
{
	ExpandedFilter *expanded = expanded_filter(from);
	struct varlena *flat = expanded != NULL ? build_flat(&expanded->builder.base) :
		agg_settled((struct varlena *) PG_DETOAST_DATUM(from));
	bf_filter	filter;
	KeyClass	class;

	filter_open(&filter, flat);
	class = filter_class(&filter);
	if (class.code != BF_CLASS_NONE)
	{
		filter_check_class(builder->frame, &class);
		if (builder->frame->key_class == BF_CLASS_NONE)
			build_set_class(builder, &class);
	}
	if (!builder->methods->can_merge(builder, &filter))
		refuse_other_parameters();
	builder->methods->merge(builder, &filter);
}

static Datum
combine(FunctionCallInfo fcinfo, bool internal)
{
	StateOwner	owner = state_owner(fcinfo, internal);
	AnyBuilder	scratch;
	AnyBuilder *builder;
	Pointer		old = PG_ARGISNULL(0) ? NULL : PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
	{
		if (old == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(old);
	}
	if (old == NULL)
		PG_RETURN_POINTER(make_state(owner, builder_of(PG_GETARG_DATUM(1), &scratch), 0));

	builder = builder_of(PointerGetDatum(old), &scratch);
	merge_into(&builder->base, PG_GETARG_DATUM(1));
	if (builder != &scratch)
		PG_RETURN_POINTER(old);
	if (!is_flat_state(old))
		PG_RETURN_POINTER(make_expanded(owner, builder));	/* it began with a filter */
	PG_RETURN_POINTER(replace_state(owner, old, builder, 0));
}

PG_FUNCTION_INFO_V1(filter_agg_combine);
Datum
filter_agg_combine(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, false);
}

PG_FUNCTION_INFO_V1(filter_agg_combine_internal);
Datum
filter_agg_combine_internal(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, true);
}

/* A state travels between processes as the bytes of an unfinished filter. */
PG_FUNCTION_INFO_V1(filter_agg_serialize);
Datum
filter_agg_serialize(PG_FUNCTION_ARGS)
{
	AnyBuilder	scratch;

	state_owner(fcinfo, true);
	PG_RETURN_BYTEA_P(build_flat(&builder_of(PG_GETARG_DATUM(0), &scratch)->base));
}

PG_FUNCTION_INFO_V1(bloom_agg_deserialize);
Datum
bloom_agg_deserialize(PG_FUNCTION_ARGS)
{
	state_owner(fcinfo, true);
	return filter_from_bytea(fcinfo, &bloom_methods.type);
}

PG_FUNCTION_INFO_V1(cuckoo_agg_deserialize);
Datum
cuckoo_agg_deserialize(PG_FUNCTION_ARGS)
{
	state_owner(fcinfo, true);
	return filter_from_bytea(fcinfo, &cuckoo_methods.type);
}

/*
 * The finished filter.  No rows at all give an empty filter, not NULL: a query
 * that keeps the rows whose key may be in an empty set keeps none.
 */
static Datum
final(FunctionCallInfo fcinfo, const BuilderMethods *methods)
{
	AnyBuilder	scratch;
	AnyBuilder *builder = &scratch;

	state_owner(fcinfo, false);
	if (PG_ARGISNULL(0))
		methods->start(&scratch.base, CurrentMemoryContext, 0, FILTER_DEFAULT_FPP);
	else
		builder = builder_of(PG_GETARG_DATUM(0), &scratch);
	PG_RETURN_POINTER(methods->finish(&builder->base));
}

PG_FUNCTION_INFO_V1(bloom_agg_final);
Datum
bloom_agg_final(PG_FUNCTION_ARGS)
{
	return final(fcinfo, &bloom_methods);
}

PG_FUNCTION_INFO_V1(cuckoo_agg_final);
Datum
cuckoo_agg_final(PG_FUNCTION_ARGS)
{
	return final(fcinfo, &cuckoo_methods);
}
