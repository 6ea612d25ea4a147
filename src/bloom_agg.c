/*
 * bloom_agg.c
 *		The aggregates bloom_agg(key [, capacity [, fpp]]).
 *
 * There may be a million groups of ten keys or one of a hundred million, so a
 * state has two forms: a small flat struct of hashes (or of bit lines, if the
 * declared geometry is small) that a plain palloc'd chunk holds, and beyond
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

#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/uuid.h"

#include "bloom_agg.h"
#include "bloom_expanded.h"

/*
 * A flat state.  It looks like a varlena of type bloom and is never seen
 * outside of the executor: output functions settle it first.
 */
typedef struct BloomState
{
	int32		vl_len_;
	uint16		kind;			/* BLOOM_STATE_KIND, which no filter has */
	uint8		scheme;			/* of the keys, as in KeyClass */
	uint8		key_class;
	double		fpp;
	uint64		capacity;		/* 0: sized at the end */
	uint32		count;			/* hashes */
	uint8		is_lines;		/* bit lines instead of hashes */
	uint8		name_length;	/* of the class */
	uint8		growth;			/* as in bf_filter */
	uint8		max_layers;
	uint64		data[FLEXIBLE_ARRAY_MEMBER];	/* the name; then the hashes, or
												 * StateLines */
} BloomState;

/* What only lines need to know, and the lines. */
typedef struct StateLines
{
	bf_shape	shape;
	uint64		keys_left;		/* that may change them; see is_full */
	uint8		lines[FLEXIBLE_ARRAY_MEMBER];
} StateLines;

#define BLOOM_STATE_KIND	(BF_BIG_ENDIAN ? 0x4253 : 0x5342)	/* "BS" */

#define STATE_FIRST_FLAT	128		/* room for a handful of keys */
#define STATE_MAX_FLAT		65536

/* Who owns the memory of the state at hand. */
typedef struct StateOwner
{
	MemoryContext context;		/* the aggregate's */
	bool		internal;		/* transition type internal, else bloom */
} StateOwner;

static StateOwner
state_owner(FunctionCallInfo fcinfo, bool internal)
{
	StateOwner	owner;

	if (!AggCheckCallContext(fcinfo, &owner.context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function %s can only be called as part of an aggregate",
						format_procedure(fcinfo->flinfo->fn_oid))));
	owner.internal = internal;
	return owner;
}

static bool
is_flat_state(Pointer state)
{
	return VARATT_IS_4B_U(state) && VARSIZE(state) >= sizeof(BloomState) &&
		((BloomState *) state)->kind == BLOOM_STATE_KIND;
}

/* The hashes of a flat state, behind the name of its class. */
static uint64 *
state_hashes(BloomState *state)
{
	return state->data + (state->name_length + 7) / 8;
}

/* Its lines, in the same place. */
static StateLines *
state_lines(BloomState *state)
{
	return (StateLines *) state_hashes(state);
}

/* How many hashes fit. */
static Size
state_room(BloomState *state)
{
	return (VARSIZE(state) - ((Pointer) state_hashes(state) - (Pointer) state)) / sizeof(uint64);
}

/* ----------------------------------------------------------------
 * Between states and builders
 * ----------------------------------------------------------------
 */

/* Fill a builder from a flat state. */
static void
load_state(BloomBuilder *builder, MemoryContext context, BloomState *state)
{
	bf_filter	filter;
	bf_layer   *layer = &filter.layer[0];

	memset(&filter, 0, offsetof(bf_filter, layer) + sizeof(bf_layer));
	filter.kind = BF_KIND_BLOOM;
	filter.layers = 1;
	filter.growth = state->growth;
	filter.max_layers = state->max_layers;
	filter.fpp = state->fpp;
	filter.scheme = state->scheme;
	filter.key_class = state->key_class;
	filter.name_length = state->name_length;
	filter.name = (char *) state->data;
	layer->capacity = state->capacity;
	if (state->is_lines)
	{
		StateLines *lines = state_lines(state);

		layer->form = BF_FORM_LINES;
		layer->shape = lines->shape;
		layer->data = lines->lines;
		build_load(builder, context, &filter);
		builder->keys_left = lines->keys_left;
		return;
	}
	layer->form = BF_FORM_LIST;
	if (state->capacity > 0)
		layer->shape = bf_shape_for(state->capacity, state->fpp);
	build_load(builder, context, &filter);
	if (state->capacity > 0)
		builder->keys_left = state->capacity;
	for (uint32 i = 0; i < state->count; i++)
		build_add(builder, state_hashes(state)[i]);
}

/* A builder for any value of a state, which stays as it is. */
static BloomBuilder *
builder_of(Datum value, BloomBuilder *scratch)
{
	ExpandedBloom *expanded = expanded_bloom(value);
	struct varlena *flat;

	if (expanded != NULL)
		return &expanded->builder;
	flat = PG_DETOAST_DATUM(value);
	if (is_flat_state((Pointer) flat))
		load_state(scratch, CurrentMemoryContext, (BloomState *) flat);
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
bloom_settled(struct varlena *value)
{
	BloomBuilder builder;

	if (VARSIZE_ANY_EXHDR(value) < 2 || memcmp(VARDATA_ANY(value), "BS", 2) != 0)
		return value;
	if (VARATT_IS_SHORT(value))
		value = (struct varlena *) PG_DETOAST_DATUM(PointerGetDatum(value));
	if (!is_flat_state((Pointer) value))
		return value;
	load_state(&builder, CurrentMemoryContext, (BloomState *) value);
	return build_flat(&builder);
}

/* Make a state of what a builder holds, with room for more. */
static Pointer
make_state(StateOwner owner, BloomBuilder *builder)
{
	bf_filter  *frame;
	bf_layer   *layer;
	Size		fixed;
	Size		size = STATE_FIRST_FLAT;
	BloomState *state;

	if (builder->lines != NULL)
		build_apply_batch(builder);
	frame = builder->frame;
	layer = &frame->layer[0];
	fixed = offsetof(BloomState, data) + (frame->name_length + 7) / 8 * 8;

	/*
	 * Sizes are four bytes short of a multiple of 64, as only those of filters
	 * are that are not known by their size alone.
	 */
	if (builder->lines != NULL)
		size = (fixed + offsetof(StateLines, lines) + (Size) layer->shape.words * 8 + 4 + 63) / 64 * 64;
	else
	{
		while (size < fixed + ((Size) builder->count * 2 + 1) * 8 + 4)
			size *= 2;
	}
	size -= 4;
	if (size > STATE_MAX_FLAT || frame->layers > 1)
	{
		ExpandedBloom *expanded = expanded_bloom_create(owner.context);
		bf_filter	filter;
		struct varlena *flat = build_flat(builder);

		filter_open(&filter, flat);
		build_load(&expanded->builder, expanded->header.eoh_context, &filter);
		expanded->builder.keys_left = builder->keys_left;
		pfree(flat);
		return DatumGetPointer(EOHPGetRWDatum(&expanded->header));
	}

	state = MemoryContextAllocZero(owner.internal ? owner.context : CurrentMemoryContext, size);
	SET_VARSIZE(state, size);
	state->kind = BLOOM_STATE_KIND;
	state->scheme = frame->scheme;
	state->key_class = frame->key_class;
	state->fpp = frame->fpp;
	state->capacity = layer->capacity;
	state->growth = frame->growth;
	state->max_layers = frame->max_layers;
	state->name_length = frame->name_length;
	if (frame->name_length > 0)
		memcpy(state->data, frame->name, frame->name_length);
	if (builder->lines != NULL)
	{
		state->is_lines = true;
		state_lines(state)->shape = layer->shape;
		state_lines(state)->keys_left = builder->keys_left;
		memcpy(state_lines(state)->lines, builder->lines, (Size) layer->shape.words * 8);
	}
	else
	{
		state->count = builder->count;
		memcpy(state_hashes(state), builder->hashes, sizeof(uint64) * builder->count);
	}
	return (Pointer) state;
}

/* Replace a flat state; nodeAgg frees the old one unless it is internal. */
static Pointer
replace_state(StateOwner owner, Pointer old, BloomBuilder *builder)
{
	Pointer		state = make_state(owner, builder);

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

/* All rows must ask for the same filter. */
static void
check_parameters(FunctionCallInfo fcinfo, Pointer state)
{
	int64		given = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT64(2);
	ExpandedBloom *expanded = expanded_bloom(PointerGetDatum(state));
	int64		capacity;
	double		fpp;

	if (expanded != NULL)
	{
		capacity = (int64) expanded->builder.frame->layer[0].capacity;
		fpp = expanded->builder.frame->fpp;
	}
	else if (is_flat_state(state))
	{
		capacity = (int64) ((BloomState *) state)->capacity;
		fpp = ((BloomState *) state)->fpp;
	}
	else
		return;					/* from another node, which has checked */
	if (given != capacity || (PG_NARGS() > 3 && (PG_ARGISNULL(3) || PG_GETARG_FLOAT8(3) != fpp)))
		refuse_other_parameters();
}

/* The state to begin with, of the parameters in the call and of no class. */
static Pointer
first_state(FunctionCallInfo fcinfo, StateOwner owner)
{
	BloomBuilder builder;
	int64		capacity;
	double		fpp;

	get_parameters(fcinfo, &capacity, &fpp);
	build_start(&builder, CurrentMemoryContext, capacity > 0 ? filter_shape(capacity, fpp) : BF_UNSIZED,
				(uint64) capacity, fpp);
	if (capacity > 0)
		builder.keys_left = (uint64) capacity;
	return make_state(owner, &builder);
}

/* Give a flat state its class, which may need more room for a name. */
static Pointer
classify_state(StateOwner owner, BloomState *state, const KeyClass *class)
{
	bf_filter	filter;
	BloomBuilder builder;

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
	build_set_class(&builder, class);
	return replace_state(owner, (Pointer) state, &builder);
}

/* Take in one key.  Returns the state, which may have moved. */
static inline Pointer
add_to_state(FunctionCallInfo fcinfo, StateOwner owner, Pointer old,
			 const KeyClass *class, uint64 hash)
{
	ExpandedBloom *expanded = expanded_bloom(PointerGetDatum(old));
	BloomState *state;
	BloomBuilder scratch;
	Pointer		moved;

	if (expanded != NULL)
	{
		BloomBuilder *builder = &expanded->builder;

		filter_check_class(builder->frame, class);
		if (unlikely(builder->frame->key_class == BF_CLASS_NONE))
			build_set_class(builder, class);
		build_add(builder, hash);
		return old;
	}
	if (unlikely(!is_flat_state(old)))
	{
		/* a flat filter: a state that came from elsewhere, such as another node */
		old = replace_state(owner, old, builder_of(PointerGetDatum(old), &scratch));
		return add_to_state(fcinfo, owner, old, class, hash);
	}

	state = (BloomState *) old;
	if (unlikely(state->key_class != class->code || class->code == BF_CLASS_NAMED))
	{
		moved = classify_state(owner, state, class);
		if (!is_flat_state(moved))
			return add_to_state(fcinfo, owner, moved, class, hash);
		state = (BloomState *) moved;
	}
	if (state->is_lines)
	{
		StateLines *own = state_lines(state);

		if (likely(own->keys_left > 0))
			build_count_key(&own->keys_left, bf_lines_add(own->lines, own->shape, hash));
		else if (!bf_lines_test(own->lines, own->shape, hash))
		{
			/* more keys than were declared: another layer */
			load_state(&scratch, CurrentMemoryContext, state);
			build_add_layered(&scratch, hash);
			return replace_state(owner, (Pointer) state, &scratch);
		}
	}
	else
	{
		if (unlikely(state->count == state_room(state)))
		{
			load_state(&scratch, CurrentMemoryContext, state);
			build_add(&scratch, hash);
			if (scratch.lines == NULL)
				build_make_room(&scratch);
			return replace_state(owner, (Pointer) state, &scratch);
		}
		state_hashes(state)[state->count++] = hash;
	}
	return (Pointer) state;
}

/*
 * One row of an aggregate.  The state is made even for a NULL key: it carries
 * the declared geometry.
 */
static Datum
transition(FunctionCallInfo fcinfo, bool internal, const KeyClass *class, uint64 hash)
{
	StateOwner	owner = state_owner(fcinfo, internal);
	Pointer		state;

	if (PG_ARGISNULL(0))
		state = first_state(fcinfo, owner);
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

/* The transition functions of the aggregates over the common types. */
#define TYPED_TRANSITION(name, class, hash_expression) \
PG_FUNCTION_INFO_V1(name); \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return transition(fcinfo, false, &class, PG_ARGISNULL(1) ? 0 : (hash_expression)); \
}

TYPED_TRANSITION(bloom_agg_int2, key_class_integer, key_hash_integer(PG_GETARG_INT16(1)))
TYPED_TRANSITION(bloom_agg_int4, key_class_integer, key_hash_integer(PG_GETARG_INT32(1)))
TYPED_TRANSITION(bloom_agg_int8, key_class_integer, key_hash_integer(PG_GETARG_INT64(1)))
TYPED_TRANSITION(bloom_agg_uuid, key_class_uuid, key_hash_uuid(PG_GETARG_UUID_P(1)))
TYPED_TRANSITION(bloom_agg_char, key_class_text, key_hash_char(PG_GETARG_CHAR(1)))

PG_FUNCTION_INFO_V1(bloom_agg_text);
Datum
bloom_agg_text(PG_FUNCTION_ARGS)
{
	uint64		hash = 0;

	if (PG_ARGISNULL(0))
		key_check_text_aggregate(fcinfo);
	if (!PG_ARGISNULL(1))
	{
		text	   *key = PG_GETARG_TEXT_PP(1);

		key_check_collation(PG_GET_COLLATION());
		hash = key_hash_text(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
	}
	return transition(fcinfo, false, &key_class_text, hash);
}

/* The transition function of the aggregates over any type. */
PG_FUNCTION_INFO_V1(bloom_agg_any);
Datum
bloom_agg_any(PG_FUNCTION_ARGS)
{
	KeyType    *type = fcinfo->flinfo->fn_extra;
	KeyClass	none = {0};
	uint64		hash;

	if (PG_ARGISNULL(1))
		return transition(fcinfo, true, &none, 0);
	if (type == NULL)
		fcinfo->flinfo->fn_extra = type = key_type_of_argument(fcinfo, 1);
	hash = key_hash(type, PG_GETARG_DATUM(1));
	return transition(fcinfo, true, &type->class, hash);
}

/* ----------------------------------------------------------------
 * Combine, serialize, final
 * ----------------------------------------------------------------
 */

/* Add what `from` holds to the builder of another state of the same call. */
static void
merge_into(BloomBuilder *builder, Datum from)
{
	ExpandedBloom *expanded = expanded_bloom(from);
	struct varlena *flat = expanded != NULL ? build_flat(&expanded->builder) :
		bloom_settled((struct varlena *) PG_DETOAST_DATUM(from));
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
	if (!build_can_merge_state(builder, &filter))
		refuse_other_parameters();
	build_merge_state(builder, &filter);
}

static Datum
combine(FunctionCallInfo fcinfo, bool internal)
{
	StateOwner	owner = state_owner(fcinfo, internal);
	BloomBuilder scratch;
	BloomBuilder *builder;
	Pointer		old = PG_ARGISNULL(0) ? NULL : PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
	{
		if (old == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(old);
	}
	if (old == NULL)
		PG_RETURN_POINTER(make_state(owner, builder_of(PG_GETARG_DATUM(1), &scratch)));

	builder = builder_of(PointerGetDatum(old), &scratch);
	merge_into(builder, PG_GETARG_DATUM(1));
	if (builder != &scratch)
		PG_RETURN_POINTER(old);
	PG_RETURN_POINTER(replace_state(owner, old, builder));
}

PG_FUNCTION_INFO_V1(bloom_agg_combine);
Datum
bloom_agg_combine(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, false);
}

PG_FUNCTION_INFO_V1(bloom_agg_combine_internal);
Datum
bloom_agg_combine_internal(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, true);
}

/* A state travels between processes as the bytes of an unfinished filter. */
PG_FUNCTION_INFO_V1(bloom_agg_serialize);
Datum
bloom_agg_serialize(PG_FUNCTION_ARGS)
{
	BloomBuilder scratch;

	state_owner(fcinfo, true);
	PG_RETURN_BYTEA_P(build_flat(builder_of(PG_GETARG_DATUM(0), &scratch)));
}

PG_FUNCTION_INFO_V1(bloom_agg_deserialize);
Datum
bloom_agg_deserialize(PG_FUNCTION_ARGS)
{
	static const FilterType type = {BF_KIND_BLOOM, "bloom"};

	state_owner(fcinfo, true);
	return filter_from_bytea(fcinfo, &type);
}

/*
 * The finished filter.  No rows at all give an empty filter, not NULL: a query
 * that keeps the rows whose key may be in an empty set keeps none.
 */
PG_FUNCTION_INFO_V1(bloom_agg_final);
Datum
bloom_agg_final(PG_FUNCTION_ARGS)
{
	BloomBuilder scratch;

	state_owner(fcinfo, false);
	if (PG_ARGISNULL(0))
	{
		build_start(&scratch, CurrentMemoryContext, BF_UNSIZED, 0, FILTER_DEFAULT_FPP);
		PG_RETURN_POINTER(build_finish(&scratch));
	}
	PG_RETURN_POINTER(build_finish(builder_of(PG_GETARG_DATUM(0), &scratch)));
}
