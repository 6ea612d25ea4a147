/*
 * bloom_sets.c
 *		Union, intersection and compaction of bloom filters.
 *
 * Filters of one geometry are merged bit by bit.  Others cannot be, so their
 * layers are kept side by side: no key is lost, each layer is asked, and the
 * false-positive probability of the whole is what the layers add up to.  The
 * same is done where merging would overfill a layer of a filter that may grow;
 * one of a fixed size takes everything.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "agg.h"
#include "expanded.h"

/* A merged layer may exceed its share of false positives by so much. */
#define TOLERANCE	1.1

/* A layer on its way to a new filter, with its contents in one of two forms. */
typedef struct SetLayer
{
	bf_shape	shape;
	uint64		capacity;
	uint64	   *hashes;			/* a list: sorted, distinct */
	uint32		count;
	uint8	   *lines;			/* else lines */
} SetLayer;

/* ----------------------------------------------------------------
 * Layers
 * ----------------------------------------------------------------
 */

static void
set_layer_to_lines(SetLayer *layer)
{
	layer->lines = palloc0((Size) layer->shape.words * 8);
	bf_lines_add_many(layer->lines, layer->shape, layer->hashes, layer->count);
	pfree(layer->hashes);
	layer->hashes = NULL;
	layer->count = 0;
}

/*
 * Take a layer out of a filter.  An unfinished one (an aggregate's state that
 * came from another node) is finished as it is.
 */
static SetLayer
take_layer(const bf_filter *filter, const bf_layer *from)
{
	SetLayer	layer = {from->shape, from->capacity, NULL, 0, NULL};

	if (from->form == BF_FORM_LINES)
	{
		layer.lines = palloc((Size) from->shape.words * 8);
		memcpy(layer.lines, from->data, (Size) from->shape.words * 8);
		if (layer.capacity == 0)
			layer.capacity = Max(bf_shape_capacity(layer.shape, filter->fpp), 1);
		return layer;
	}
	layer.hashes = palloc(sizeof(uint64) * Max(from->count, 1));
	layer.count = from->count;
	bf_list_read(layer.hashes, from->data, from->count);
	if (layer.capacity == 0)
	{
		layer.capacity = Max(from->count, 1);
		layer.shape = bf_shape_for(layer.capacity, filter->fpp);
		if (!bf_keep_list(layer.shape, layer.count))
			set_layer_to_lines(&layer);
	}
	return layer;
}

/* Two layers of one shape in one. */
static SetLayer
merge_layers(const SetLayer *a, const SetLayer *b)
{
	SetLayer	merged = {a->shape, Max(a->capacity, b->capacity), NULL, 0, NULL};

	Assert(bf_shape_equal(a->shape, b->shape));
	if (a->lines == NULL && b->lines == NULL)
	{
		uint64		total = (uint64) a->count + b->count;

		merged.hashes = palloc(sizeof(uint64) * Max(total, 1));
		if (a->count > 0)
			memcpy(merged.hashes, a->hashes, sizeof(uint64) * a->count);
		if (b->count > 0)
			memcpy(merged.hashes + a->count, b->hashes, sizeof(uint64) * b->count);
		merged.count = (uint32) bf_hashes_sort_unique(merged.hashes, total, 0);
		if (!bf_keep_list(merged.shape, merged.count))
			set_layer_to_lines(&merged);
		return merged;
	}
	merged.lines = palloc0((Size) merged.shape.words * 8);
	for (int i = 0; i < 2; i++)
	{
		const SetLayer *part = i == 0 ? a : b;

		if (part->lines != NULL)
			bf_lines_or(merged.lines, part->lines, merged.shape.words);
		else
			bf_lines_add_many(merged.lines, merged.shape, part->hashes, part->count);
	}
	return merged;
}

/* The probability of a false positive in a layer as it is. */
static double
layer_fpp(const SetLayer *layer)
{
	return layer->lines == NULL ? 0.0 : bf_lines_census(layer->lines, layer->shape).fpp;
}

/*
 * Is it good to have merged two layers into this one?  Yes if it may have no more
 * keys than it was made for: then it is the layer that all of them would have
 * made.  Yes if it meets the probability that it was made for, or if the two side
 * by side would give no fewer false positives, as when one holds the keys of the
 * other.
 */
static bool
is_good_merge(const SetLayer *merged, const SetLayer *a, const SetLayer *b)
{
	double		fpp;
	double		fpp_a;
	double		fpp_b;

	if (merged->lines == NULL ||
		bf_lines_bits_set(merged->lines, merged->shape.words) <= bf_shape_full_bits(merged->shape, merged->capacity))
		return true;
	fpp = layer_fpp(merged);
	fpp_a = layer_fpp(a);
	fpp_b = layer_fpp(b);
	return fpp <= TOLERANCE * bf_shape_fpp(merged->shape, merged->capacity) ||
		fpp <= fpp_a + fpp_b - fpp_a * fpp_b;
}

static void
free_layer(SetLayer *layer)
{
	if (layer->hashes != NULL)
		pfree(layer->hashes);
	if (layer->lines != NULL)
		pfree(layer->lines);
}

/* A fixed order of layers: the same filters in any order make the same bytes. */
static int
compare_layers(const void *a, const void *b)
{
	const SetLayer *x = a;
	const SetLayer *y = b;

	if (x->shape.words != y->shape.words)
		return x->shape.words < y->shape.words ? -1 : 1;
	if (x->capacity != y->capacity)
		return x->capacity < y->capacity ? -1 : 1;
	if ((x->lines == NULL) != (y->lines == NULL))
		return x->lines == NULL ? -1 : 1;
	if (x->lines != NULL)
		return memcmp(x->lines, y->lines, (Size) x->shape.words * 8);
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	for (uint32 i = 0; i < x->count; i++)
	{
		if (x->hashes[i] != y->hashes[i])
			return x->hashes[i] < y->hashes[i] ? -1 : 1;
	}
	return 0;
}

/* A filter with the header of `model` and these layers. */
static struct varlena *
assemble(const bf_filter *model, const SetLayer *layers, int n)
{
	bf_filter	filter;
	struct varlena *image;

	memcpy(&filter, model, offsetof(bf_filter, layer));
	filter.layers = (uint8) n;
	for (int i = 0; i < n; i++)
	{
		filter.layer[i].shape = layers[i].shape;
		filter.layer[i].capacity = layers[i].capacity;
		filter.layer[i].form = layers[i].lines != NULL ? BF_FORM_LINES : BF_FORM_LIST;
		filter.layer[i].count = layers[i].count;
	}
	image = filter_allocate(&filter);
	for (int i = 0; i < n; i++)
	{
		if (layers[i].lines != NULL)
			memcpy(filter.layer[i].data, layers[i].lines, (Size) layers[i].shape.words * 8);
		else
			bf_list_write(filter.layer[i].data, layers[i].hashes, layers[i].count);
	}
	return image;
}

/* ----------------------------------------------------------------
 * Union
 * ----------------------------------------------------------------
 */

/* Are all layers of both filters of one shape? */
static bool
all_of_one_shape(const bf_filter *a, const bf_filter *b)
{
	for (int i = 0; i < a->layers + b->layers; i++)
	{
		const bf_layer *layer = i < a->layers ? &a->layer[i] : &b->layer[i - a->layers];

		if (!bf_shape_equal(layer->shape, a->layer[0].shape))
			return false;
	}
	return true;
}

/* What the union is like apart from its layers. */
static bf_filter
union_header(const bf_filter *a, const bf_filter *b)
{
	bf_filter	header;

	memcpy(&header, a, offsetof(bf_filter, layer));
	if (a->key_class == BF_CLASS_NONE)
	{
		KeyClass	class = filter_class(b);

		filter_set_class(&header, &class);
	}
	header.fpp = Max(a->fpp, b->fpp);
	header.growth = Max(a->growth, b->growth);
	return header;
}

/*
 * Add a layer to n others: merged with one of them if that is good, and in any
 * case (of the same shape) if the filter has a fixed size.  Returns how many
 * there are then.
 */
static int
add_layer(SetLayer *layers, int n, SetLayer layer, bool fixed)
{
	for (int i = 0; i < n; i++)
	{
		SetLayer	merged;

		if (!bf_shape_equal(layers[i].shape, layer.shape))
			continue;
		merged = merge_layers(&layers[i], &layer);
		if (fixed || is_good_merge(&merged, &layers[i], &layer))
		{
			free_layer(&layers[i]);
			free_layer(&layer);
			layers[i] = merged;
			return n;
		}
		free_layer(&merged);
	}
	layers[n] = layer;
	return n + 1;
}

/*
 * The union of two filters that hold keys.
 *
 * Of two windows of one geometry, the newest layers are merged, then the ones
 * before them: the result is a window again.
 */
static struct varlena *
unite(const bf_filter *a, const bf_filter *b)
{
	bf_filter	header = union_header(a, b);
	SetLayer   *layers = palloc(sizeof(SetLayer) * (a->layers + b->layers));
	bool		fixed = a->growth == 0 && b->growth == 0;
	bool		window = a->max_layers > 0 && a->max_layers == b->max_layers && all_of_one_shape(a, b);
	int			n = 0;

	if (!window)
	{
		header.max_layers = 0;
		if (header.growth == 1 && (a->max_layers > 0 || b->max_layers > 0))
			header.growth = BF_DEFAULT_GROWTH;
	}
	for (int i = 0; i < a->layers; i++)
	{
		if (window || !bf_layer_is_empty(&a->layer[i]))
			layers[n++] = take_layer(a, &a->layer[i]);
	}
	for (int i = 0; i < b->layers; i++)
	{
		SetLayer	layer;

		if (!window && bf_layer_is_empty(&b->layer[i]))
			continue;
		layer = take_layer(b, &b->layer[i]);
		if (window)
		{
			/* counted from the newest; what is older than all of a goes first */
			int			older = b->layers - a->layers - i;

			if (older > 0)
			{
				memmove(layers + i + 1, layers + i, sizeof(SetLayer) * (n - i));
				layers[i] = layer;
				n++;
			}
			else
			{
				int			home = n - b->layers + i;

				layers[home] = merge_layers(&layers[home], &layer);
			}
			continue;
		}
		n = add_layer(layers, n, layer, fixed);
	}
	if (n > BF_MAX_LAYERS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("union of filters would need %d layers", n),
				 errdetail("A filter can have at most %d layers; filters of different geometry need one each.", BF_MAX_LAYERS),
				 errhint("Build filters that will be merged with one capacity, as in bloom_agg(key, capacity).")));
	if (!window)
		qsort(layers, n, sizeof(SetLayer), compare_layers);
	return assemble(&header, layers, n);
}

/* The better of two filters without keys: the one for more of them. */
static bool
first_is_larger(const bf_filter *a, const bf_filter *b)
{
	return a->layer[0].capacity > b->layer[0].capacity ||
		(a->layer[0].capacity == b->layer[0].capacity && a->layer[0].shape.words >= b->layer[0].shape.words);
}

/*
 * The union of two values.  An empty filter leaves the other as it is, whatever
 * their geometries.
 */
static struct varlena *
union_of(struct varlena *left, struct varlena *right)
{
	bf_filter	a;
	bf_filter	b;
	bool		a_empty;
	bool		b_empty;

	filter_open(&a, left);
	filter_open(&b, right);
	filter_check_same_class(&a, &b);
	a_empty = bf_filter_is_empty(&a);
	b_empty = bf_filter_is_empty(&b);
	if (a_empty && b_empty)
		return first_is_larger(&a, &b) ? left : right;
	if (a_empty || b_empty)
		return a_empty ? right : left;
	return unite(&a, &b);
}

PG_FUNCTION_INFO_V1(bloom_union);
Datum
bloom_union(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(union_of(PG_GETARG_FILTER_P(0), PG_GETARG_FILTER_P(1)));
}

/* ----------------------------------------------------------------
 * Compaction
 * ----------------------------------------------------------------
 */

/*
 * Make a layer as small as it can be at the probability it was made for.  A list
 * knows its keys and can be sized anew; lines can be halved.
 */
static void
shrink_layer(SetLayer *layer)
{
	double		share = bf_shape_fpp(layer->shape, layer->capacity);

	if (layer->lines == NULL)
	{
		bf_shape	shape = bf_shape_for(Max(layer->count, 1), share);

		if (shape.words >= layer->shape.words)
			return;
		layer->shape = shape;
		layer->capacity = Max(layer->count, 1);
		if (!bf_keep_list(shape, layer->count))
			set_layer_to_lines(layer);
		return;
	}
	while (bf_lines_can_fold(layer->shape, 2))
	{
		bf_shape	half = layer->shape;
		uint64		capacity;

		half.words /= 2;
		capacity = bf_shape_capacity(half, share);
		if (bf_lines_folded_bits(layer->lines, layer->shape, 2) > bf_shape_bits_set(half, capacity))
			break;
		layer->shape = bf_lines_fold(layer->lines, layer->lines, layer->shape, 2);
		layer->capacity = Min(layer->capacity, capacity);
	}
}

/*
 * bloom_compact(bloom): the same keys in fewer bytes.  Layers without keys are
 * dropped, those that are too large folded, those that fit together merged.  A
 * window keeps its layers: they are equal for a reason.
 */
PG_FUNCTION_INFO_V1(bloom_compact);
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	struct varlena *image = PG_GETARG_FILTER_P(0);
	bf_filter	filter;
	SetLayer   *layers;
	int			n = 0;

	filter_open(&filter, image);
	if (filter.max_layers > 0 || bf_filter_is_empty(&filter))
		PG_RETURN_POINTER(image);
	layers = palloc(sizeof(SetLayer) * filter.layers);
	for (int i = 0; i < filter.layers; i++)
	{
		SetLayer	layer;

		if (bf_layer_is_empty(&filter.layer[i]))
			continue;
		layer = take_layer(&filter, &filter.layer[i]);
		shrink_layer(&layer);
		n = add_layer(layers, n, layer, filter.growth == 0);
	}
	PG_RETURN_POINTER(assemble(&filter, layers, n));
}

/* ----------------------------------------------------------------
 * Intersection
 * ----------------------------------------------------------------
 */

static bool
one_geometry(const bf_filter *a, const bf_filter *b)
{
	return a->layers == 1 && b->layers == 1 && bf_shape_equal(a->layer[0].shape, b->layer[0].shape);
}

/* Keep the hashes of a list that the other layer may hold. */
static SetLayer
keep_common(const bf_layer *list, const bf_layer *other)
{
	SetLayer	common = {list->shape, list->capacity, NULL, 0, NULL};

	common.hashes = palloc(sizeof(uint64) * Max(list->count, 1));
	for (uint32 i = 0; i < list->count; i++)
	{
		uint64		hash = bf_load64(list->data + (Size) i * 8);

		if (bf_layer_contains(other, hash))
			common.hashes[common.count++] = hash;
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	return common;
}

/*
 * The intersection of two values.  It may hold keys that are in neither: those
 * that both report falsely, and those whose bits were set by different keys of
 * the two.  It never lacks one that is in both.
 */
static struct varlena *
intersection_of(struct varlena *left, struct varlena *right)
{
	bf_filter	a;
	bf_filter	b;
	SetLayer	layer;

	filter_open(&a, left);
	filter_open(&b, right);
	filter_check_same_class(&a, &b);

	/* nothing in common with a filter that never had a key */
	if (a.key_class == BF_CLASS_NONE)
		return left;
	if (b.key_class == BF_CLASS_NONE)
		return right;
	if (a.layers > 1 || b.layers > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters of several layers cannot be intersected"),
				 errdetail("One has %d layers, the other %d, and a key may be in different ones.", a.layers, b.layers),
				 errhint("Build both with one capacity that is enough for either, as in bloom_agg(key, capacity, fpp).")));
	if (!one_geometry(&a, &b))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters of different geometry cannot be intersected"),
				 errdetail("One has " UINT64_FORMAT " bits with %d hashes, the other " UINT64_FORMAT " bits with %d hashes.",
						   a.layer[0].shape.words * 64, a.layer[0].shape.groups * a.layer[0].shape.probes,
						   b.layer[0].shape.words * 64, b.layer[0].shape.groups * b.layer[0].shape.probes),
				 errhint("Build both in the same way with the same parameters, as in bloom_agg(key, capacity, fpp); bloom_new() reserves bits for growth unless growth is 0.")));

	/* a list has the hashes themselves, so what is left of it is exact */
	if (a.layer[0].form == BF_FORM_LIST)
		layer = keep_common(&a.layer[0], &b.layer[0]);
	else if (b.layer[0].form == BF_FORM_LIST)
		layer = keep_common(&b.layer[0], &a.layer[0]);
	else
	{
		bf_layer	common = a.layer[0];

		layer = take_layer(&a, &a.layer[0]);
		bf_lines_and(layer.lines, b.layer[0].data, layer.shape.words);
		common.data = layer.lines;
		if (bf_layer_is_empty(&common) && bf_keep_list(layer.shape, 0))
			layer.lines = NULL; /* an empty filter is a list */
	}
	layer.capacity = Max(a.layer[0].capacity, b.layer[0].capacity);
	a.fpp = Max(a.fpp, b.fpp);
	a.growth = Max(a.growth, b.growth);
	a.max_layers = Min(a.max_layers, b.max_layers);
	return assemble(&a, &layer, 1);
}

PG_FUNCTION_INFO_V1(bloom_intersection);
Datum
bloom_intersection(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(intersection_of(PG_GETARG_FILTER_P(0), PG_GETARG_FILTER_P(1)));
}

/* ----------------------------------------------------------------
 * Aggregates
 *
 * The state is a filter, and so is what workers send.  Most often all filters
 * have one geometry: then the state, which is ours, is changed in place.
 * ----------------------------------------------------------------
 */

/* Open the two values for a change in place, if that is possible. */
static bool
open_in_place(struct varlena *state, struct varlena *value, bf_filter *a, bf_filter *b)
{
	if (VARATT_IS_EXTENDED(state))
		return false;
	filter_open(a, state);
	filter_open(b, value);
	return one_geometry(a, b) && a->key_class != BF_CLASS_NONE && b->key_class != BF_CLASS_NONE &&
		a->layer[0].form == BF_FORM_LINES && b->layer[0].form == BF_FORM_LINES &&
		a->fpp == b->fpp && a->growth == b->growth && a->max_layers == b->max_layers &&
		a->layer[0].capacity == b->layer[0].capacity && a->layer[0].capacity > 0;
}

/*
 * Add a list of hashes to the state, made an object that can grow: many filters
 * of few keys shall not cost a copy of the state each.  NULL if that cannot be
 * done, or if the state might be too full then to hold the keys of both.
 */
static ExpandedFilter *
add_list(MemoryContext context, Datum state, const bf_filter *value)
{
	const bf_layer *list = &value->layer[0];
	bool		is_ours = VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(state));
	ExpandedFilter *expanded = is_ours ? expanded_filter(state) : NULL;
	bf_filter	own;
	const bf_filter *frame = &own;
	BloomBuilder *builder;
	uint64		enough;

	if (value->layers > 1 || list->form != BF_FORM_LIST || list->capacity == 0 ||
		value->max_layers > 0 || value->key_class == BF_CLASS_NONE)
		return NULL;
	if (expanded != NULL)
		frame = expanded->builder.base.frame;
	else
		filter_open(&own, filter_detoast(state));
	if (!one_geometry(frame, value) || frame->key_class == BF_CLASS_NONE || frame->fpp != value->fpp ||
		frame->growth != value->growth || frame->max_layers > 0 || frame->layer[0].capacity != list->capacity)
		return NULL;
	filter_check_same_class(frame, value);
	if (expanded == NULL)
	{
		expanded = expanded_filter_create(context);
		build_load(&expanded->builder, expanded->header.eoh_context, &own);
	}

	/* not while it is nearly full: then it has to be judged whether to merge */
	builder = &expanded->builder.bloom;
	enough = list->capacity - list->capacity / 8;
	if (builder->lines == NULL ? builder->count + (uint64) list->count > enough :
		builder->full_bits != UINT64_MAX &&
		builder->bits_set + ((uint64) list->count + BF_BATCH) * list->shape.probes * list->shape.groups >
		bf_shape_bits_set(list->shape, enough))
	{
		if (frame == &own)
			DeleteExpandedObject(EOHPGetRWDatum(&expanded->header));
		return NULL;
	}
	for (uint32 i = 0; i < list->count; i++)
	{
		bloom_build_add(builder, bf_load64(list->data + (Size) i * 8));
		if (i % BF_POLL_EVERY == 0)
			bf_poll();
	}
	return expanded;
}

/* Would a merge of lines be good?  Tried on a copy, if counting bits is not enough. */
static bool
would_be_good_merge(const bf_layer *a, const bf_layer *b)
{
	SetLayer	left = {a->shape, a->capacity, NULL, 0, a->data};
	SetLayer	right = {b->shape, b->capacity, NULL, 0, b->data};
	SetLayer	merged;
	bool		result;

	if (bf_lines_bits_set_or(a->data, b->data, a->shape.words) <= bf_shape_full_bits(a->shape, a->capacity))
		return true;
	merged = merge_layers(&left, &right);
	result = is_good_merge(&merged, &left, &right);
	free_layer(&merged);
	return result;
}

static struct varlena *
union_in_aggregate(struct varlena *state, struct varlena *value)
{
	bf_filter	a;
	bf_filter	b;

	if (open_in_place(state, value, &a, &b))
	{
		filter_check_same_class(&a, &b);
		if (a.growth == 0 || would_be_good_merge(&a.layer[0], &b.layer[0]))
		{
			bf_lines_or(a.layer[0].data, b.layer[0].data, a.layer[0].shape.words);
			return state;
		}
	}
	return union_of(state, value);
}

static struct varlena *
intersection_in_aggregate(struct varlena *state, struct varlena *value)
{
	bf_filter	a;
	bf_filter	b;

	if (open_in_place(state, value, &a, &b))
	{
		filter_check_same_class(&a, &b);
		bf_lines_and(a.layer[0].data, b.layer[0].data, a.layer[0].shape.words);
		if (!bf_layer_is_empty(&a.layer[0]))
			return state;
	}
	return intersection_of(state, value);
}

/*
 * Transition and combine function of both aggregates: NULL values are skipped,
 * the first other one is the state.
 */
static Datum
aggregate_sets(FunctionCallInfo fcinfo, struct varlena *(*step) (struct varlena *, struct varlena *))
{
	MemoryContext context = agg_context(fcinfo);
	struct varlena *state;
	struct varlena *value;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (PG_ARGISNULL(0))
	{
		/* flat, so that it can be changed in place from here on */
		state = PG_GETARG_FILTER_P(1);
		PG_RETURN_POINTER(VARATT_IS_SHORT(state) ? (struct varlena *) PG_DETOAST_DATUM(PointerGetDatum(state)) : state);
	}
	value = PG_GETARG_FILTER_P(1);
	if (step == union_in_aggregate)
	{
		ExpandedFilter *expanded;
		bf_filter	filter;

		filter_open(&filter, value);
		expanded = add_list(context, PG_GETARG_DATUM(0), &filter);
		if (expanded != NULL)
			PG_RETURN_DATUM(EOHPGetRWDatum(&expanded->header));
	}
	state = (struct varlena *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(step(state, value));
}

PG_FUNCTION_INFO_V1(bloom_union_agg_transition);
Datum
bloom_union_agg_transition(PG_FUNCTION_ARGS)
{
	return aggregate_sets(fcinfo, union_in_aggregate);
}

PG_FUNCTION_INFO_V1(bloom_intersection_agg_transition);
Datum
bloom_intersection_agg_transition(PG_FUNCTION_ARGS)
{
	return aggregate_sets(fcinfo, intersection_in_aggregate);
}

/* The union of nothing is an empty filter. */
PG_FUNCTION_INFO_V1(bloom_union_agg_final);
Datum
bloom_union_agg_final(PG_FUNCTION_ARGS)
{
	BloomBuilder empty;

	if (!PG_ARGISNULL(0))
	{
		/* a copy if it is an object: a window frame may go on adding to that */
		PG_RETURN_POINTER(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
	}
	bloom_build_start(&empty, CurrentMemoryContext, BF_UNSIZED, 0, FILTER_DEFAULT_FPP);
	PG_RETURN_POINTER(bloom_methods.finish(&empty.base));
}
