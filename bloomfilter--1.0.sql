/*
 * bloomfilter--1.0.sql
 *		All SQL objects of the extension: the types bloom and cuckoo, their functions,
 *		operators and aggregates, and the access methods.
 *
 * Functions that only the server calls begin with an underscore, so that \df bloom* and
 * \df cuckoo* list what users call.
 */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION bloomfilter" to load this file. \quit

------------------------------------------------------------------
-- bloom: the type, its text and binary forms
------------------------------------------------------------------

CREATE TYPE bloom;

CREATE FUNCTION _bloom_in(cstring) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_out(bloom) RETURNS cstring
  AS 'MODULE_PATHNAME', 'filter_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_recv(internal) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_send(bloom) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE bloom (
  INPUT = _bloom_in, OUTPUT = _bloom_out,
  RECEIVE = _bloom_recv, SEND = _bloom_send,
  STORAGE = external, ALIGNMENT = double
);

COMMENT ON TYPE bloom IS 'Bloom filter: reports every key that was added, and few others';
COMMENT ON FUNCTION _bloom_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _bloom_out(bloom) IS 'I/O';
COMMENT ON FUNCTION _bloom_recv(internal) IS 'I/O';
COMMENT ON FUNCTION _bloom_send(bloom) IS 'I/O';

CREATE FUNCTION _bloom_from_bytea(bytea) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_to_bytea(bloom) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bytea AS bloom) WITH FUNCTION _bloom_from_bytea(bytea);
CREATE CAST (bloom AS bytea) WITH FUNCTION _bloom_to_bytea(bloom);

COMMENT ON FUNCTION _bloom_from_bytea(bytea) IS 'convert bytes to a filter, with validation';
COMMENT ON FUNCTION _bloom_to_bytea(bloom) IS 'convert a filter to bytes';
COMMENT ON CAST (bytea AS bloom) IS 'convert bytes to a filter, with validation';
COMMENT ON CAST (bloom AS bytea) IS 'convert a filter to bytes';

------------------------------------------------------------------
-- bloom: equality and hashing
------------------------------------------------------------------

CREATE FUNCTION _bloom_eq(bloom, bloom) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_ne(bloom, bloom) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_hash_value(bloom) RETURNS integer
  AS 'MODULE_PATHNAME', 'filter_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_hash_value_extended(bloom, bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'filter_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR = (
  LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = _bloom_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR <> (
  LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = _bloom_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS bloom_ops DEFAULT FOR TYPE bloom USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 _bloom_hash_value(bloom),
  FUNCTION 2 _bloom_hash_value_extended(bloom, bigint);

COMMENT ON FUNCTION _bloom_eq(bloom, bloom) IS 'implementation of = operator';
COMMENT ON FUNCTION _bloom_ne(bloom, bloom) IS 'implementation of <> operator';
COMMENT ON FUNCTION _bloom_hash_value(bloom) IS 'hash of a filter, for hash indexes and joins';
COMMENT ON FUNCTION _bloom_hash_value_extended(bloom, bigint) IS 'seeded hash of a filter, for hash partitioning';
COMMENT ON OPERATOR = (bloom, bloom) IS 'equal, byte by byte';
COMMENT ON OPERATOR <> (bloom, bloom) IS 'not equal';
COMMENT ON OPERATOR FAMILY bloom_ops USING hash IS 'hashing of filters by their bytes';
COMMENT ON OPERATOR CLASS bloom_ops USING hash IS 'hashing of filters by their bytes';

------------------------------------------------------------------
-- bloom: creating filters, adding and testing keys
------------------------------------------------------------------

CREATE FUNCTION bloom_new(
    capacity bigint, fpp float8 DEFAULT 0.01,
    growth integer DEFAULT NULL, max_layers integer DEFAULT NULL) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_add_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'filter_add_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_add_all(filter bloom, keys anycompatiblearray) RETURNS bloom
  AS 'MODULE_PATHNAME', 'filter_add_all' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _bloom_add_support;

CREATE FUNCTION bloom_rotate(filter bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_rotate(bloom) IS 'begin a new layer of a rotating filter, and drop its oldest one';
COMMENT ON FUNCTION bloom_new(bigint, float8, integer, integer) IS 'create an empty filter that grows, has a fixed size (growth => 0), or rotates (max_layers)';
COMMENT ON FUNCTION bloom_add_all(bloom, anycompatiblearray) IS 'add all keys of an array to a filter';
COMMENT ON FUNCTION _bloom_add_support(internal) IS 'planner support';

CREATE FUNCTION _bloom_contains_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'filter_contains_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_contains_sel(internal, oid, internal, integer) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_contains_sel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_contains_joinsel(internal, oid, internal, smallint, internal) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_contains_joinsel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _bloom_contains_support(internal) IS 'planner support';
COMMENT ON FUNCTION _bloom_contains_sel(internal, oid, internal, integer) IS 'restriction selectivity of @>';
COMMENT ON FUNCTION _bloom_contains_joinsel(internal, oid, internal, smallint, internal) IS 'join selectivity of @>';

-- Keys are declared anycompatible, and arrays of keys anycompatiblearray, so that literals
-- and parameters of unknown type are text and all other keys keep their type.
CREATE FUNCTION bloom_add(filter bloom, key anycompatible) RETURNS bloom
  AS 'MODULE_PATHNAME', 'filter_add' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _bloom_add_support;
CREATE FUNCTION bloom_contains(filter bloom, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT _bloom_contains_support;
CREATE FUNCTION bloom_hash(key anycompatible) RETURNS bigint
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR @> (
  LEFTARG = bloom, RIGHTARG = anycompatible, FUNCTION = bloom_contains,
  RESTRICT = _bloom_contains_sel, JOIN = _bloom_contains_joinsel
);

COMMENT ON FUNCTION bloom_add(bloom, anycompatible) IS 'add a key to a filter';
COMMENT ON FUNCTION bloom_contains(bloom, anycompatible) IS 'test for a key; false means that it was definitely not added';
COMMENT ON FUNCTION bloom_hash(anycompatible) IS '64-bit hash of a key, the same in every filter';
COMMENT ON OPERATOR @> (bloom, anycompatible) IS 'test for a key; false means that it was definitely not added';

CREATE FUNCTION bloom_contains_any(filter bloom, keys anycompatiblearray) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_all(filter bloom, keys anycompatiblearray) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_each(filter bloom, keys anycompatiblearray) RETURNS boolean[]
  AS 'MODULE_PATHNAME', 'filter_contains_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_missing(filter bloom, keys anycompatiblearray) RETURNS anycompatiblearray
  AS 'MODULE_PATHNAME', 'filter_missing' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_contains_any(bloom, anycompatiblearray) IS 'test whether any of the keys may have been added';
COMMENT ON FUNCTION bloom_contains_all(bloom, anycompatiblearray) IS 'test whether all of the keys may have been added';
COMMENT ON FUNCTION bloom_contains_each(bloom, anycompatiblearray) IS 'test for each key of an array';
COMMENT ON FUNCTION bloom_missing(bloom, anycompatiblearray) IS 'distinct keys of an array that were definitely not added';

------------------------------------------------------------------
-- bloom: union and intersection
------------------------------------------------------------------

CREATE FUNCTION bloom_union(a bloom, b bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_intersection(a bloom, b bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR | (LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_union, COMMUTATOR = |);
CREATE OPERATOR & (LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_intersection, COMMUTATOR = &);

COMMENT ON FUNCTION bloom_union(bloom, bloom) IS 'union of two filters';
COMMENT ON FUNCTION bloom_intersection(bloom, bloom) IS 'intersection of two filters, with more false positives than a filter of the common keys';
COMMENT ON OPERATOR | (bloom, bloom) IS 'union';
COMMENT ON OPERATOR & (bloom, bloom) IS 'intersection';

CREATE FUNCTION _bloom_union_agg_transition(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_union_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_union_agg_final(bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_union_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_intersection_agg_transition(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_intersection_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_union_agg(filter bloom) (
  SFUNC = _bloom_union_agg_transition, STYPE = bloom, SSPACE = 4096,
  FINALFUNC = _bloom_union_agg_final, COMBINEFUNC = _bloom_union_agg_transition,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_intersection_agg(filter bloom) (
  SFUNC = _bloom_intersection_agg_transition, STYPE = bloom, SSPACE = 4096,
  COMBINEFUNC = _bloom_intersection_agg_transition, PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_union_agg_transition(bloom, bloom) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_union_agg_final(bloom) IS 'aggregate final function';
COMMENT ON FUNCTION _bloom_intersection_agg_transition(bloom, bloom) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_union_agg(bloom) IS 'union of all filters';
COMMENT ON AGGREGATE bloom_intersection_agg(bloom) IS 'intersection of all filters; null if there are none';

------------------------------------------------------------------
-- bloom: statistics and sizing
------------------------------------------------------------------

CREATE FUNCTION bloom_cardinality(filter bloom) RETURNS bigint
  AS 'MODULE_PATHNAME', 'filter_cardinality' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_fpp(filter bloom) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_fpp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_stats(
    filter bloom,
    OUT bytes bigint, OUT bits bigint, OUT hashes integer, OUT layers integer,
    OUT capacity bigint, OUT cardinality bigint, OUT fill float8,
    OUT target_fpp float8, OUT fpp float8, OUT growth integer,
    OUT max_layers integer, OUT key_class text, OUT format_version integer,
    OUT advice text)
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_layers(
    filter bloom,
    OUT layer integer, OUT capacity bigint, OUT cardinality bigint, OUT bytes bigint,
    OUT hashes integer, OUT fill float8, OUT fpp float8) RETURNS SETOF record
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 3;
CREATE FUNCTION bloom_compact(filter bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_plan(
    capacity bigint, fpp float8 DEFAULT 0.01,
    growth integer DEFAULT NULL, max_layers integer DEFAULT NULL,
    OUT bytes bigint, OUT bits_per_key float8, OUT hashes integer, OUT growing_bytes bigint)
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION bloom_cardinality(bloom) IS 'estimated number of distinct keys in the filter';
COMMENT ON FUNCTION bloom_fpp(bloom) IS 'current probability that an absent key is reported';
COMMENT ON FUNCTION bloom_stats(bloom) IS 'geometry, contents and false-positive probability of the filter';
COMMENT ON FUNCTION bloom_layers(bloom) IS 'layers of the filter, the oldest first';
COMMENT ON FUNCTION bloom_compact(bloom) IS 'reduce the size of a filter';
COMMENT ON FUNCTION bloom_plan(bigint, float8, integer, integer) IS 'size, bits per key and hashes that a filter would have (the maximum for a rotating one), and its size if it can grow';

------------------------------------------------------------------
-- cuckoo: the type, its text and binary forms
------------------------------------------------------------------

CREATE TYPE cuckoo;

CREATE FUNCTION _cuckoo_in(cstring) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_out(cuckoo) RETURNS cstring
  AS 'MODULE_PATHNAME', 'filter_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_recv(internal) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_send(cuckoo) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE cuckoo (
  INPUT = _cuckoo_in, OUTPUT = _cuckoo_out,
  RECEIVE = _cuckoo_recv, SEND = _cuckoo_send,
  STORAGE = external, ALIGNMENT = double
);

COMMENT ON TYPE cuckoo IS 'cuckoo filter: reports every key that was added, and few others; keys can be deleted';
COMMENT ON FUNCTION _cuckoo_in(cstring) IS 'I/O';
COMMENT ON FUNCTION _cuckoo_out(cuckoo) IS 'I/O';
COMMENT ON FUNCTION _cuckoo_recv(internal) IS 'I/O';
COMMENT ON FUNCTION _cuckoo_send(cuckoo) IS 'I/O';

CREATE FUNCTION _cuckoo_from_bytea(bytea) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_to_bytea(cuckoo) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bytea AS cuckoo) WITH FUNCTION _cuckoo_from_bytea(bytea);
CREATE CAST (cuckoo AS bytea) WITH FUNCTION _cuckoo_to_bytea(cuckoo);

COMMENT ON FUNCTION _cuckoo_from_bytea(bytea) IS 'convert bytes to a filter, with validation';
COMMENT ON FUNCTION _cuckoo_to_bytea(cuckoo) IS 'convert a filter to bytes';
COMMENT ON CAST (bytea AS cuckoo) IS 'convert bytes to a filter, with validation';
COMMENT ON CAST (cuckoo AS bytea) IS 'convert a filter to bytes';

------------------------------------------------------------------
-- cuckoo: equality and hashing
------------------------------------------------------------------

CREATE FUNCTION _cuckoo_eq(cuckoo, cuckoo) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_ne(cuckoo, cuckoo) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_hash_value(cuckoo) RETURNS integer
  AS 'MODULE_PATHNAME', 'filter_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_hash_value_extended(cuckoo, bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'filter_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR = (
  LEFTARG = cuckoo, RIGHTARG = cuckoo, FUNCTION = _cuckoo_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR <> (
  LEFTARG = cuckoo, RIGHTARG = cuckoo, FUNCTION = _cuckoo_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS cuckoo_ops DEFAULT FOR TYPE cuckoo USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 _cuckoo_hash_value(cuckoo),
  FUNCTION 2 _cuckoo_hash_value_extended(cuckoo, bigint);

COMMENT ON FUNCTION _cuckoo_eq(cuckoo, cuckoo) IS 'implementation of = operator';
COMMENT ON FUNCTION _cuckoo_ne(cuckoo, cuckoo) IS 'implementation of <> operator';
COMMENT ON FUNCTION _cuckoo_hash_value(cuckoo) IS 'hash of a filter, for hash indexes and joins';
COMMENT ON FUNCTION _cuckoo_hash_value_extended(cuckoo, bigint) IS 'seeded hash of a filter, for hash partitioning';
COMMENT ON OPERATOR = (cuckoo, cuckoo) IS 'equal, byte by byte';
COMMENT ON OPERATOR <> (cuckoo, cuckoo) IS 'not equal';
COMMENT ON OPERATOR FAMILY cuckoo_ops USING hash IS 'hashing of filters by their bytes';
COMMENT ON OPERATOR CLASS cuckoo_ops USING hash IS 'hashing of filters by their bytes';

------------------------------------------------------------------
-- cuckoo: creating filters, adding, deleting and testing keys
------------------------------------------------------------------

CREATE FUNCTION cuckoo_new(
    capacity bigint, fpp float8 DEFAULT 0.01, growth integer DEFAULT 2) RETURNS cuckoo
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_add_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'filter_add_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_add_all(filter cuckoo, keys anycompatiblearray) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'filter_add_all' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _cuckoo_add_support;

COMMENT ON FUNCTION cuckoo_new(bigint, float8, integer) IS 'create an empty filter, which grows when it is full';
COMMENT ON FUNCTION cuckoo_add_all(cuckoo, anycompatiblearray) IS 'add all keys of an array to a filter';
COMMENT ON FUNCTION _cuckoo_add_support(internal) IS 'planner support';

CREATE FUNCTION _cuckoo_contains_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'filter_contains_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_contains_sel(internal, oid, internal, integer) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_contains_sel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_contains_joinsel(internal, oid, internal, smallint, internal) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_contains_joinsel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _cuckoo_contains_support(internal) IS 'planner support';
COMMENT ON FUNCTION _cuckoo_contains_sel(internal, oid, internal, integer) IS 'restriction selectivity of @>';
COMMENT ON FUNCTION _cuckoo_contains_joinsel(internal, oid, internal, smallint, internal) IS 'join selectivity of @>';

-- Keys are declared anycompatible, and arrays of keys anycompatiblearray, so that literals
-- and parameters of unknown type are text and all other keys keep their type.
CREATE FUNCTION cuckoo_add(filter cuckoo, key anycompatible) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'filter_add' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _cuckoo_add_support;
CREATE FUNCTION cuckoo_delete(filter cuckoo, key anycompatible) RETURNS cuckoo
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _cuckoo_add_support;
CREATE FUNCTION cuckoo_delete_all(filter cuckoo, keys anycompatiblearray) RETURNS cuckoo
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT _cuckoo_add_support;
CREATE FUNCTION cuckoo_count(filter cuckoo, key anycompatible) RETURNS integer
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_contains(filter cuckoo, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT _cuckoo_contains_support;
CREATE OPERATOR @> (
  LEFTARG = cuckoo, RIGHTARG = anycompatible, FUNCTION = cuckoo_contains,
  RESTRICT = _cuckoo_contains_sel, JOIN = _cuckoo_contains_joinsel
);

COMMENT ON FUNCTION cuckoo_add(cuckoo, anycompatible) IS 'add one copy of a key to a filter';
COMMENT ON FUNCTION cuckoo_delete(cuckoo, anycompatible) IS 'remove one copy of a key, which must have been added, from a filter';
COMMENT ON FUNCTION cuckoo_delete_all(cuckoo, anycompatiblearray) IS 'remove one copy of each key of an array from a filter';
COMMENT ON FUNCTION cuckoo_count(cuckoo, anycompatible) IS 'number of copies of a key; 255 means 255 or more';
COMMENT ON FUNCTION cuckoo_contains(cuckoo, anycompatible) IS 'test for a key; false means that it was definitely not added';
COMMENT ON OPERATOR @> (cuckoo, anycompatible) IS 'test for a key; false means that it was definitely not added';

CREATE FUNCTION cuckoo_contains_any(filter cuckoo, keys anycompatiblearray) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_contains_all(filter cuckoo, keys anycompatiblearray) RETURNS boolean
  AS 'MODULE_PATHNAME', 'filter_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_contains_each(filter cuckoo, keys anycompatiblearray) RETURNS boolean[]
  AS 'MODULE_PATHNAME', 'filter_contains_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_missing(filter cuckoo, keys anycompatiblearray) RETURNS anycompatiblearray
  AS 'MODULE_PATHNAME', 'filter_missing' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION cuckoo_contains_any(cuckoo, anycompatiblearray) IS 'test whether any of the keys may have been added';
COMMENT ON FUNCTION cuckoo_contains_all(cuckoo, anycompatiblearray) IS 'test whether all of the keys may have been added';
COMMENT ON FUNCTION cuckoo_contains_each(cuckoo, anycompatiblearray) IS 'test for each key of an array';
COMMENT ON FUNCTION cuckoo_missing(cuckoo, anycompatiblearray) IS 'distinct keys of an array that were definitely not added';

------------------------------------------------------------------
-- cuckoo: sums and differences
------------------------------------------------------------------

CREATE FUNCTION cuckoo_merge(a cuckoo, b cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_subtract(a cuckoo, b cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_merge_agg_transition(cuckoo, cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_merge_agg_transition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_merge_agg_final(cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_merge_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_merge_agg(filter cuckoo) (
  SFUNC = _cuckoo_merge_agg_transition, STYPE = cuckoo, SSPACE = 4096,
  FINALFUNC = _cuckoo_merge_agg_final, COMBINEFUNC = _cuckoo_merge_agg_transition,
  PARALLEL = SAFE);

COMMENT ON FUNCTION cuckoo_merge(cuckoo, cuckoo) IS 'sum of two filters: keys of both, with their counts added';
COMMENT ON FUNCTION cuckoo_subtract(cuckoo, cuckoo) IS 'difference of two filters: keys of a without those of b, which a must contain';
COMMENT ON FUNCTION _cuckoo_merge_agg_transition(cuckoo, cuckoo) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_merge_agg_final(cuckoo) IS 'aggregate final function';
COMMENT ON AGGREGATE cuckoo_merge_agg(cuckoo) IS 'sum of all filters: keys of all, with their counts added';

------------------------------------------------------------------
-- cuckoo: statistics and sizing
------------------------------------------------------------------

CREATE FUNCTION cuckoo_cardinality(filter cuckoo) RETURNS bigint
  AS 'MODULE_PATHNAME', 'filter_cardinality' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_fpp(filter cuckoo) RETURNS float8
  AS 'MODULE_PATHNAME', 'filter_fpp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_stats(
    filter cuckoo,
    OUT bytes bigint, OUT bits bigint, OUT slot_bits integer, OUT capacity bigint,
    OUT cardinality bigint, OUT fill float8, OUT listed bigint,
    OUT target_fpp float8, OUT fpp float8, OUT growth integer,
    OUT key_class text, OUT format_version integer)
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cuckoo_plan(
    capacity bigint, fpp float8 DEFAULT 0.01, growth integer DEFAULT 2,
    OUT bytes bigint, OUT bits_per_key float8, OUT slot_bits integer)
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION cuckoo_cardinality(cuckoo) IS 'estimated number of distinct keys in the filter';
COMMENT ON FUNCTION cuckoo_fpp(cuckoo) IS 'current probability that an absent key is reported';
COMMENT ON FUNCTION cuckoo_stats(cuckoo) IS 'geometry, contents and false-positive probability of the filter';
COMMENT ON FUNCTION cuckoo_plan(bigint, float8, integer) IS 'size, bits per key and bits per slot that a filter would have';

------------------------------------------------------------------
-- Aggregates
--
-- The transition type is the filter type for common key types, and internal for all
-- others; src/aggregate.c says why.  Each aggregate takes the key alone, the key and
-- a capacity, or the key, a capacity and a false-positive probability.
------------------------------------------------------------------

------------------------------------------------------------------
-- bloom_agg
------------------------------------------------------------------

CREATE FUNCTION _bloom_agg_combine(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_final(bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_combine_internal' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_final(internal) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _bloom_agg_combine(bloom, bloom) IS 'aggregate combine function';
COMMENT ON FUNCTION _bloom_agg_final(bloom) IS 'aggregate final function';
COMMENT ON FUNCTION _bloom_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION _bloom_agg_final(internal) IS 'aggregate final function';
COMMENT ON FUNCTION _bloom_agg_serialize(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION _bloom_agg_deserialize(bytea, internal) IS 'aggregate deserial function';

-- bloom_agg over smallint
CREATE FUNCTION _bloom_agg_transition(state bloom, key smallint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key smallint, capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key smallint, capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key smallint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key smallint, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key smallint, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, smallint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, smallint, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, smallint, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(smallint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(smallint, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(smallint, bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over integer
CREATE FUNCTION _bloom_agg_transition(state bloom, key integer) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key integer, capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key integer, capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key integer) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key integer, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key integer, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, integer) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, integer, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, integer, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(integer) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(integer, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(integer, bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over bigint
CREATE FUNCTION _bloom_agg_transition(state bloom, key bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key bigint, capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key bigint, capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key bigint, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key bigint, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, bigint, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, bigint, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(bigint, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(bigint, bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over text
CREATE FUNCTION _bloom_agg_transition(state bloom, key text) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key text, capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key text, capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key text) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key text, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key text, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, text) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, text, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, text, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(text) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(text, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(text, bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over uuid
CREATE FUNCTION _bloom_agg_transition(state bloom, key uuid) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key uuid, capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key uuid, capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key uuid) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key uuid, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key uuid, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, uuid) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, uuid, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, uuid, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(uuid) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(uuid, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(uuid, bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over "char"
CREATE FUNCTION _bloom_agg_transition(state bloom, key "char") RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key "char", capacity bigint) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state bloom, key "char", capacity bigint, fpp float8) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key "char") (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key "char", capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key "char", capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = bloom, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(bloom, "char") IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, "char", bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(bloom, "char", bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg("char") IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg("char", bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg("char", bigint, float8) IS 'filter of all non-null keys';

-- bloom_agg over any other type
CREATE FUNCTION _bloom_agg_transition(state internal, key anyelement) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state internal, key anyelement, capacity bigint) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _bloom_agg_transition(state internal, key anyelement, capacity bigint, fpp float8) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_agg(key anyelement) (
  SFUNC = _bloom_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  SERIALFUNC = _bloom_agg_serialize, DESERIALFUNC = _bloom_agg_deserialize,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key anyelement, capacity bigint) (
  SFUNC = _bloom_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  SERIALFUNC = _bloom_agg_serialize, DESERIALFUNC = _bloom_agg_deserialize,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_agg(key anyelement, capacity bigint, fpp float8) (
  SFUNC = _bloom_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _bloom_agg_final, COMBINEFUNC = _bloom_agg_combine,
  SERIALFUNC = _bloom_agg_serialize, DESERIALFUNC = _bloom_agg_deserialize,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _bloom_agg_transition(internal, anyelement) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(internal, anyelement, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _bloom_agg_transition(internal, anyelement, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_agg(anyelement) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(anyelement, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE bloom_agg(anyelement, bigint, float8) IS 'filter of all non-null keys';

------------------------------------------------------------------
-- cuckoo_agg
------------------------------------------------------------------

CREATE FUNCTION _cuckoo_agg_combine(cuckoo, cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_final(cuckoo) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'cuckoo_agg_combine_internal' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_final(internal) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'filter_agg_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'cuckoo_agg_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _cuckoo_agg_combine(cuckoo, cuckoo) IS 'aggregate combine function';
COMMENT ON FUNCTION _cuckoo_agg_final(cuckoo) IS 'aggregate final function';
COMMENT ON FUNCTION _cuckoo_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION _cuckoo_agg_final(internal) IS 'aggregate final function';
COMMENT ON FUNCTION _cuckoo_agg_serialize(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION _cuckoo_agg_deserialize(bytea, internal) IS 'aggregate deserial function';

-- cuckoo_agg over smallint
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key smallint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key smallint, capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key smallint, capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int2' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key smallint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key smallint, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key smallint, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, smallint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, smallint, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, smallint, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(smallint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(smallint, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(smallint, bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over integer
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key integer) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key integer, capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key integer, capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int4' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key integer) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key integer, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key integer, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, integer) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, integer, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, integer, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(integer) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(integer, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(integer, bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over bigint
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key bigint, capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key bigint, capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_int8' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key bigint, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key bigint, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, bigint, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, bigint, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(bigint, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(bigint, bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over text
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key text) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key text, capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key text, capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key text) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key text, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key text, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, text) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, text, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, text, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(text) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(text, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(text, bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over uuid
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key uuid) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key uuid, capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key uuid, capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_uuid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key uuid) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key uuid, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key uuid, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, uuid) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, uuid, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, uuid, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(uuid) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(uuid, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(uuid, bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over "char"
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key "char") RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key "char", capacity bigint) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state cuckoo, key "char", capacity bigint, fpp float8) RETURNS cuckoo
  AS 'MODULE_PATHNAME', 'cuckoo_agg_char' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key "char") (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key "char", capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key "char", capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = cuckoo, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, "char") IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, "char", bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(cuckoo, "char", bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg("char") IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg("char", bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg("char", bigint, float8) IS 'filter of all non-null keys';

-- cuckoo_agg over any other type
CREATE FUNCTION _cuckoo_agg_transition(state internal, key anyelement) RETURNS internal
  AS 'MODULE_PATHNAME', 'cuckoo_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state internal, key anyelement, capacity bigint) RETURNS internal
  AS 'MODULE_PATHNAME', 'cuckoo_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _cuckoo_agg_transition(state internal, key anyelement, capacity bigint, fpp float8) RETURNS internal
  AS 'MODULE_PATHNAME', 'cuckoo_agg_any' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE cuckoo_agg(key anyelement) (
  SFUNC = _cuckoo_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  SERIALFUNC = _cuckoo_agg_serialize, DESERIALFUNC = _cuckoo_agg_deserialize,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key anyelement, capacity bigint) (
  SFUNC = _cuckoo_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  SERIALFUNC = _cuckoo_agg_serialize, DESERIALFUNC = _cuckoo_agg_deserialize,
  PARALLEL = SAFE);
CREATE AGGREGATE cuckoo_agg(key anyelement, capacity bigint, fpp float8) (
  SFUNC = _cuckoo_agg_transition, STYPE = internal, SSPACE = 256,
  FINALFUNC = _cuckoo_agg_final, COMBINEFUNC = _cuckoo_agg_combine,
  SERIALFUNC = _cuckoo_agg_serialize, DESERIALFUNC = _cuckoo_agg_deserialize,
  PARALLEL = SAFE);

COMMENT ON FUNCTION _cuckoo_agg_transition(internal, anyelement) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(internal, anyelement, bigint) IS 'aggregate transition function';
COMMENT ON FUNCTION _cuckoo_agg_transition(internal, anyelement, bigint, float8) IS 'aggregate transition function';
COMMENT ON AGGREGATE cuckoo_agg(anyelement) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(anyelement, bigint) IS 'filter of all non-null keys';
COMMENT ON AGGREGATE cuckoo_agg(anyelement, bigint, float8) IS 'filter of all non-null keys';

------------------------------------------------------------------
-- Index: the access method
------------------------------------------------------------------

CREATE FUNCTION _bloomfilter_handler(internal) RETURNS index_am_handler
  AS 'MODULE_PATHNAME', 'bloomfilter_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD bloomfilter TYPE INDEX HANDLER _bloomfilter_handler;

COMMENT ON FUNCTION _bloomfilter_handler(internal) IS 'bloomfilter index access method handler';
COMMENT ON ACCESS METHOD bloomfilter IS 'Bloom filter index access method';

-- Operator classes exist for the types that this extension hashes itself.  Equal values
-- of the types of one family have the same hash, so operators can mix these types.

CREATE OPERATOR FAMILY integer_ops USING bloomfilter;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE smallint USING bloomfilter FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (smallint, smallint);
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE integer USING bloomfilter FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (integer, integer);
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE bigint USING bloomfilter FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (bigint, bigint);
ALTER OPERATOR FAMILY integer_ops USING bloomfilter ADD
  OPERATOR 1 pg_catalog.= (smallint, integer),
  OPERATOR 1 pg_catalog.= (smallint, bigint),
  OPERATOR 1 pg_catalog.= (integer, smallint),
  OPERATOR 1 pg_catalog.= (integer, bigint),
  OPERATOR 1 pg_catalog.= (bigint, smallint),
  OPERATOR 1 pg_catalog.= (bigint, integer);
COMMENT ON OPERATOR FAMILY integer_ops USING bloomfilter IS 'equality of integers of all widths';
COMMENT ON OPERATOR CLASS int2_ops USING bloomfilter IS 'equality of smallint';
COMMENT ON OPERATOR CLASS int4_ops USING bloomfilter IS 'equality of integer';
COMMENT ON OPERATOR CLASS int8_ops USING bloomfilter IS 'equality of bigint';

CREATE OPERATOR FAMILY float_ops USING bloomfilter;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE real USING bloomfilter FAMILY float_ops AS
  OPERATOR 1 pg_catalog.= (real, real);
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE double precision USING bloomfilter FAMILY float_ops AS
  OPERATOR 1 pg_catalog.= (double precision, double precision);
ALTER OPERATOR FAMILY float_ops USING bloomfilter ADD
  OPERATOR 1 pg_catalog.= (real, double precision),
  OPERATOR 1 pg_catalog.= (double precision, real);
COMMENT ON OPERATOR FAMILY float_ops USING bloomfilter IS 'equality of floating-point numbers of both widths';
COMMENT ON OPERATOR CLASS float4_ops USING bloomfilter IS 'equality of real';
COMMENT ON OPERATOR CLASS float8_ops USING bloomfilter IS 'equality of double precision';

CREATE OPERATOR FAMILY text_ops USING bloomfilter;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING bloomfilter FAMILY text_ops AS
  OPERATOR 1 pg_catalog.= (text, text);
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING bloomfilter FAMILY text_ops AS
  OPERATOR 1 pg_catalog.= (name, name);
ALTER OPERATOR FAMILY text_ops USING bloomfilter ADD
  OPERATOR 1 pg_catalog.= (text, name),
  OPERATOR 1 pg_catalog.= (name, text);
COMMENT ON OPERATOR FAMILY text_ops USING bloomfilter IS 'equality of strings';
COMMENT ON OPERATOR CLASS text_ops USING bloomfilter IS 'equality of text';
COMMENT ON OPERATOR CLASS name_ops USING bloomfilter IS 'equality of name';

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (bpchar, bpchar);
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING bloomfilter AS
  OPERATOR 1 pg_catalog.= ("char", "char");
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE boolean USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (boolean, boolean);
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (bytea, bytea);
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (uuid, uuid);
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (numeric, numeric);
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (date, date);
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (time, time);
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (timetz, timetz);
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (timestamp, timestamp);
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (timestamptz, timestamptz);
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (interval, interval);
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (inet, inet);
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (macaddr, macaddr);
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (macaddr8, macaddr8);
CREATE OPERATOR CLASS bit_ops DEFAULT FOR TYPE bit USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (bit, bit);
CREATE OPERATOR CLASS varbit_ops DEFAULT FOR TYPE varbit USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (varbit, varbit);
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (oid, oid);
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (money, money);
CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (xid8, xid8);
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (pg_lsn, pg_lsn);
CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (jsonb, jsonb);
CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (anyarray, anyarray);
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (anyenum, anyenum);
CREATE OPERATOR CLASS record_ops DEFAULT FOR TYPE record USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (record, record);
CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (anyrange, anyrange);
CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING bloomfilter AS
  OPERATOR 1 pg_catalog.= (anymultirange, anymultirange);

COMMENT ON OPERATOR CLASS bpchar_ops USING bloomfilter IS 'equality of bpchar';
COMMENT ON OPERATOR FAMILY bpchar_ops USING bloomfilter IS 'equality of bpchar';
COMMENT ON OPERATOR CLASS char_ops USING bloomfilter IS 'equality of char';
COMMENT ON OPERATOR FAMILY char_ops USING bloomfilter IS 'equality of char';
COMMENT ON OPERATOR CLASS bool_ops USING bloomfilter IS 'equality of boolean';
COMMENT ON OPERATOR FAMILY bool_ops USING bloomfilter IS 'equality of boolean';
COMMENT ON OPERATOR CLASS bytea_ops USING bloomfilter IS 'equality of bytea';
COMMENT ON OPERATOR FAMILY bytea_ops USING bloomfilter IS 'equality of bytea';
COMMENT ON OPERATOR CLASS uuid_ops USING bloomfilter IS 'equality of uuid';
COMMENT ON OPERATOR FAMILY uuid_ops USING bloomfilter IS 'equality of uuid';
COMMENT ON OPERATOR CLASS numeric_ops USING bloomfilter IS 'equality of numeric';
COMMENT ON OPERATOR FAMILY numeric_ops USING bloomfilter IS 'equality of numeric';
COMMENT ON OPERATOR CLASS date_ops USING bloomfilter IS 'equality of date';
COMMENT ON OPERATOR FAMILY date_ops USING bloomfilter IS 'equality of date';
COMMENT ON OPERATOR CLASS time_ops USING bloomfilter IS 'equality of time';
COMMENT ON OPERATOR FAMILY time_ops USING bloomfilter IS 'equality of time';
COMMENT ON OPERATOR CLASS timetz_ops USING bloomfilter IS 'equality of timetz';
COMMENT ON OPERATOR FAMILY timetz_ops USING bloomfilter IS 'equality of timetz';
COMMENT ON OPERATOR CLASS timestamp_ops USING bloomfilter IS 'equality of timestamp';
COMMENT ON OPERATOR FAMILY timestamp_ops USING bloomfilter IS 'equality of timestamp';
COMMENT ON OPERATOR CLASS timestamptz_ops USING bloomfilter IS 'equality of timestamptz';
COMMENT ON OPERATOR FAMILY timestamptz_ops USING bloomfilter IS 'equality of timestamptz';
COMMENT ON OPERATOR CLASS interval_ops USING bloomfilter IS 'equality of interval';
COMMENT ON OPERATOR FAMILY interval_ops USING bloomfilter IS 'equality of interval';
COMMENT ON OPERATOR CLASS inet_ops USING bloomfilter IS 'equality of inet';
COMMENT ON OPERATOR FAMILY inet_ops USING bloomfilter IS 'equality of inet';
COMMENT ON OPERATOR CLASS macaddr_ops USING bloomfilter IS 'equality of macaddr';
COMMENT ON OPERATOR FAMILY macaddr_ops USING bloomfilter IS 'equality of macaddr';
COMMENT ON OPERATOR CLASS macaddr8_ops USING bloomfilter IS 'equality of macaddr8';
COMMENT ON OPERATOR FAMILY macaddr8_ops USING bloomfilter IS 'equality of macaddr8';
COMMENT ON OPERATOR CLASS bit_ops USING bloomfilter IS 'equality of bit';
COMMENT ON OPERATOR FAMILY bit_ops USING bloomfilter IS 'equality of bit';
COMMENT ON OPERATOR CLASS varbit_ops USING bloomfilter IS 'equality of varbit';
COMMENT ON OPERATOR FAMILY varbit_ops USING bloomfilter IS 'equality of varbit';
COMMENT ON OPERATOR CLASS oid_ops USING bloomfilter IS 'equality of oid';
COMMENT ON OPERATOR FAMILY oid_ops USING bloomfilter IS 'equality of oid';
COMMENT ON OPERATOR CLASS money_ops USING bloomfilter IS 'equality of money';
COMMENT ON OPERATOR FAMILY money_ops USING bloomfilter IS 'equality of money';
COMMENT ON OPERATOR CLASS xid8_ops USING bloomfilter IS 'equality of xid8';
COMMENT ON OPERATOR FAMILY xid8_ops USING bloomfilter IS 'equality of xid8';
COMMENT ON OPERATOR CLASS pg_lsn_ops USING bloomfilter IS 'equality of pg_lsn';
COMMENT ON OPERATOR FAMILY pg_lsn_ops USING bloomfilter IS 'equality of pg_lsn';
COMMENT ON OPERATOR CLASS jsonb_ops USING bloomfilter IS 'equality of jsonb';
COMMENT ON OPERATOR FAMILY jsonb_ops USING bloomfilter IS 'equality of jsonb';
COMMENT ON OPERATOR CLASS array_ops USING bloomfilter IS 'equality of anyarray';
COMMENT ON OPERATOR FAMILY array_ops USING bloomfilter IS 'equality of anyarray';
COMMENT ON OPERATOR CLASS enum_ops USING bloomfilter IS 'rejected: labels of an enum can be renamed';
COMMENT ON OPERATOR FAMILY enum_ops USING bloomfilter IS 'rejected: labels of an enum can be renamed';
COMMENT ON OPERATOR CLASS record_ops USING bloomfilter IS 'rejected: columns of a row type can be added and dropped';
COMMENT ON OPERATOR FAMILY record_ops USING bloomfilter IS 'rejected: columns of a row type can be added and dropped';
COMMENT ON OPERATOR CLASS range_ops USING bloomfilter IS 'equality of anyrange';
COMMENT ON OPERATOR FAMILY range_ops USING bloomfilter IS 'equality of anyrange';
COMMENT ON OPERATOR CLASS multirange_ops USING bloomfilter IS 'equality of anymultirange';
COMMENT ON OPERATOR FAMILY multirange_ops USING bloomfilter IS 'equality of anymultirange';

------------------------------------------------------------------
-- Fingerprint index: the access method
------------------------------------------------------------------

CREATE FUNCTION _fingerprint_handler(internal) RETURNS index_am_handler
  AS 'MODULE_PATHNAME', 'fingerprint_handler' LANGUAGE C STRICT;
CREATE ACCESS METHOD fingerprint TYPE INDEX HANDLER _fingerprint_handler;

COMMENT ON FUNCTION _fingerprint_handler(internal) IS 'fingerprint index access method handler';
COMMENT ON ACCESS METHOD fingerprint IS 'fingerprint index access method';

-- The same operator classes as those of bloomfilter.

CREATE OPERATOR FAMILY integer_ops USING fingerprint;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE smallint USING fingerprint FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (smallint, smallint);
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE integer USING fingerprint FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (integer, integer);
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE bigint USING fingerprint FAMILY integer_ops AS
  OPERATOR 1 pg_catalog.= (bigint, bigint);
ALTER OPERATOR FAMILY integer_ops USING fingerprint ADD
  OPERATOR 1 pg_catalog.= (smallint, integer),
  OPERATOR 1 pg_catalog.= (smallint, bigint),
  OPERATOR 1 pg_catalog.= (integer, smallint),
  OPERATOR 1 pg_catalog.= (integer, bigint),
  OPERATOR 1 pg_catalog.= (bigint, smallint),
  OPERATOR 1 pg_catalog.= (bigint, integer);
COMMENT ON OPERATOR FAMILY integer_ops USING fingerprint IS 'equality of integers of all widths';
COMMENT ON OPERATOR CLASS int2_ops USING fingerprint IS 'equality of smallint';
COMMENT ON OPERATOR CLASS int4_ops USING fingerprint IS 'equality of integer';
COMMENT ON OPERATOR CLASS int8_ops USING fingerprint IS 'equality of bigint';

CREATE OPERATOR FAMILY float_ops USING fingerprint;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE real USING fingerprint FAMILY float_ops AS
  OPERATOR 1 pg_catalog.= (real, real);
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE double precision USING fingerprint FAMILY float_ops AS
  OPERATOR 1 pg_catalog.= (double precision, double precision);
ALTER OPERATOR FAMILY float_ops USING fingerprint ADD
  OPERATOR 1 pg_catalog.= (real, double precision),
  OPERATOR 1 pg_catalog.= (double precision, real);
COMMENT ON OPERATOR FAMILY float_ops USING fingerprint IS 'equality of floating-point numbers of both widths';
COMMENT ON OPERATOR CLASS float4_ops USING fingerprint IS 'equality of real';
COMMENT ON OPERATOR CLASS float8_ops USING fingerprint IS 'equality of double precision';

CREATE OPERATOR FAMILY text_ops USING fingerprint;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING fingerprint FAMILY text_ops AS
  OPERATOR 1 pg_catalog.= (text, text);
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING fingerprint FAMILY text_ops AS
  OPERATOR 1 pg_catalog.= (name, name);
ALTER OPERATOR FAMILY text_ops USING fingerprint ADD
  OPERATOR 1 pg_catalog.= (text, name),
  OPERATOR 1 pg_catalog.= (name, text);
COMMENT ON OPERATOR FAMILY text_ops USING fingerprint IS 'equality of strings';
COMMENT ON OPERATOR CLASS text_ops USING fingerprint IS 'equality of text';
COMMENT ON OPERATOR CLASS name_ops USING fingerprint IS 'equality of name';

CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING fingerprint AS
  OPERATOR 1 pg_catalog.= (bpchar, bpchar);
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING fingerprint AS
  OPERATOR 1 pg_catalog.= ("char", "char");
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE boolean USING fingerprint AS
  OPERATOR 1 pg_catalog.= (boolean, boolean);
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING fingerprint AS
  OPERATOR 1 pg_catalog.= (bytea, bytea);
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING fingerprint AS
  OPERATOR 1 pg_catalog.= (uuid, uuid);
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING fingerprint AS
  OPERATOR 1 pg_catalog.= (numeric, numeric);
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING fingerprint AS
  OPERATOR 1 pg_catalog.= (date, date);
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING fingerprint AS
  OPERATOR 1 pg_catalog.= (time, time);
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING fingerprint AS
  OPERATOR 1 pg_catalog.= (timetz, timetz);
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING fingerprint AS
  OPERATOR 1 pg_catalog.= (timestamp, timestamp);
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING fingerprint AS
  OPERATOR 1 pg_catalog.= (timestamptz, timestamptz);
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING fingerprint AS
  OPERATOR 1 pg_catalog.= (interval, interval);
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING fingerprint AS
  OPERATOR 1 pg_catalog.= (inet, inet);
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING fingerprint AS
  OPERATOR 1 pg_catalog.= (macaddr, macaddr);
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING fingerprint AS
  OPERATOR 1 pg_catalog.= (macaddr8, macaddr8);
CREATE OPERATOR CLASS bit_ops DEFAULT FOR TYPE bit USING fingerprint AS
  OPERATOR 1 pg_catalog.= (bit, bit);
CREATE OPERATOR CLASS varbit_ops DEFAULT FOR TYPE varbit USING fingerprint AS
  OPERATOR 1 pg_catalog.= (varbit, varbit);
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING fingerprint AS
  OPERATOR 1 pg_catalog.= (oid, oid);
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING fingerprint AS
  OPERATOR 1 pg_catalog.= (money, money);
CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING fingerprint AS
  OPERATOR 1 pg_catalog.= (xid8, xid8);
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING fingerprint AS
  OPERATOR 1 pg_catalog.= (pg_lsn, pg_lsn);
CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING fingerprint AS
  OPERATOR 1 pg_catalog.= (jsonb, jsonb);
CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING fingerprint AS
  OPERATOR 1 pg_catalog.= (anyarray, anyarray);
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING fingerprint AS
  OPERATOR 1 pg_catalog.= (anyenum, anyenum);
CREATE OPERATOR CLASS record_ops DEFAULT FOR TYPE record USING fingerprint AS
  OPERATOR 1 pg_catalog.= (record, record);
CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING fingerprint AS
  OPERATOR 1 pg_catalog.= (anyrange, anyrange);
CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING fingerprint AS
  OPERATOR 1 pg_catalog.= (anymultirange, anymultirange);

COMMENT ON OPERATOR CLASS bpchar_ops USING fingerprint IS 'equality of bpchar';
COMMENT ON OPERATOR FAMILY bpchar_ops USING fingerprint IS 'equality of bpchar';
COMMENT ON OPERATOR CLASS char_ops USING fingerprint IS 'equality of char';
COMMENT ON OPERATOR FAMILY char_ops USING fingerprint IS 'equality of char';
COMMENT ON OPERATOR CLASS bool_ops USING fingerprint IS 'equality of boolean';
COMMENT ON OPERATOR FAMILY bool_ops USING fingerprint IS 'equality of boolean';
COMMENT ON OPERATOR CLASS bytea_ops USING fingerprint IS 'equality of bytea';
COMMENT ON OPERATOR FAMILY bytea_ops USING fingerprint IS 'equality of bytea';
COMMENT ON OPERATOR CLASS uuid_ops USING fingerprint IS 'equality of uuid';
COMMENT ON OPERATOR FAMILY uuid_ops USING fingerprint IS 'equality of uuid';
COMMENT ON OPERATOR CLASS numeric_ops USING fingerprint IS 'equality of numeric';
COMMENT ON OPERATOR FAMILY numeric_ops USING fingerprint IS 'equality of numeric';
COMMENT ON OPERATOR CLASS date_ops USING fingerprint IS 'equality of date';
COMMENT ON OPERATOR FAMILY date_ops USING fingerprint IS 'equality of date';
COMMENT ON OPERATOR CLASS time_ops USING fingerprint IS 'equality of time';
COMMENT ON OPERATOR FAMILY time_ops USING fingerprint IS 'equality of time';
COMMENT ON OPERATOR CLASS timetz_ops USING fingerprint IS 'equality of timetz';
COMMENT ON OPERATOR FAMILY timetz_ops USING fingerprint IS 'equality of timetz';
COMMENT ON OPERATOR CLASS timestamp_ops USING fingerprint IS 'equality of timestamp';
COMMENT ON OPERATOR FAMILY timestamp_ops USING fingerprint IS 'equality of timestamp';
COMMENT ON OPERATOR CLASS timestamptz_ops USING fingerprint IS 'equality of timestamptz';
COMMENT ON OPERATOR FAMILY timestamptz_ops USING fingerprint IS 'equality of timestamptz';
COMMENT ON OPERATOR CLASS interval_ops USING fingerprint IS 'equality of interval';
COMMENT ON OPERATOR FAMILY interval_ops USING fingerprint IS 'equality of interval';
COMMENT ON OPERATOR CLASS inet_ops USING fingerprint IS 'equality of inet';
COMMENT ON OPERATOR FAMILY inet_ops USING fingerprint IS 'equality of inet';
COMMENT ON OPERATOR CLASS macaddr_ops USING fingerprint IS 'equality of macaddr';
COMMENT ON OPERATOR FAMILY macaddr_ops USING fingerprint IS 'equality of macaddr';
COMMENT ON OPERATOR CLASS macaddr8_ops USING fingerprint IS 'equality of macaddr8';
COMMENT ON OPERATOR FAMILY macaddr8_ops USING fingerprint IS 'equality of macaddr8';
COMMENT ON OPERATOR CLASS bit_ops USING fingerprint IS 'equality of bit';
COMMENT ON OPERATOR FAMILY bit_ops USING fingerprint IS 'equality of bit';
COMMENT ON OPERATOR CLASS varbit_ops USING fingerprint IS 'equality of varbit';
COMMENT ON OPERATOR FAMILY varbit_ops USING fingerprint IS 'equality of varbit';
COMMENT ON OPERATOR CLASS oid_ops USING fingerprint IS 'equality of oid';
COMMENT ON OPERATOR FAMILY oid_ops USING fingerprint IS 'equality of oid';
COMMENT ON OPERATOR CLASS money_ops USING fingerprint IS 'equality of money';
COMMENT ON OPERATOR FAMILY money_ops USING fingerprint IS 'equality of money';
COMMENT ON OPERATOR CLASS xid8_ops USING fingerprint IS 'equality of xid8';
COMMENT ON OPERATOR FAMILY xid8_ops USING fingerprint IS 'equality of xid8';
COMMENT ON OPERATOR CLASS pg_lsn_ops USING fingerprint IS 'equality of pg_lsn';
COMMENT ON OPERATOR FAMILY pg_lsn_ops USING fingerprint IS 'equality of pg_lsn';
COMMENT ON OPERATOR CLASS jsonb_ops USING fingerprint IS 'equality of jsonb';
COMMENT ON OPERATOR FAMILY jsonb_ops USING fingerprint IS 'equality of jsonb';
COMMENT ON OPERATOR CLASS array_ops USING fingerprint IS 'equality of anyarray';
COMMENT ON OPERATOR FAMILY array_ops USING fingerprint IS 'equality of anyarray';
COMMENT ON OPERATOR CLASS enum_ops USING fingerprint IS 'rejected: labels of an enum can be renamed';
COMMENT ON OPERATOR FAMILY enum_ops USING fingerprint IS 'rejected: labels of an enum can be renamed';
COMMENT ON OPERATOR CLASS record_ops USING fingerprint IS 'rejected: columns of a row type can be added and dropped';
COMMENT ON OPERATOR FAMILY record_ops USING fingerprint IS 'rejected: columns of a row type can be added and dropped';
COMMENT ON OPERATOR CLASS range_ops USING fingerprint IS 'equality of anyrange';
COMMENT ON OPERATOR FAMILY range_ops USING fingerprint IS 'equality of anyrange';
COMMENT ON OPERATOR CLASS multirange_ops USING fingerprint IS 'equality of anymultirange';
COMMENT ON OPERATOR FAMILY multirange_ops USING fingerprint IS 'equality of anymultirange';

CREATE FUNCTION fingerprint_stats(index regclass, OUT rows bigint, OUT bytes bigint, OUT bytes_per_row double precision,
    OUT load double precision, OUT overflow_pages bigint, OUT posting_pages bigint, OUT false_fetches double precision,
    OUT key_class text, OUT advice text)
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
CREATE FUNCTION fingerprint_check(index regclass, OUT missing bigint, OUT dangling bigint, OUT repeated bigint)
  AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 100000;

COMMENT ON FUNCTION fingerprint_stats(regclass) IS 'size and condition of a fingerprint index';
COMMENT ON FUNCTION fingerprint_check(regclass) IS 'numbers of rows without an entry, entries without a row, and repeated entries, normally 0';

------------------------------------------------------------------
-- Index: lookups
------------------------------------------------------------------

-- These read tables, which may be temporary, so parallel workers cannot call them.

CREATE FUNCTION bloom_index_contains(relation regclass, column_name text, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10;
CREATE FUNCTION bloom_index_contains_each(relation regclass, column_name text, keys anycompatiblearray) RETURNS boolean[]
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100;
CREATE FUNCTION bloom_index_missing(relation regclass, column_name text, keys anycompatiblearray) RETURNS anycompatiblearray
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100;
CREATE FUNCTION bloom_index_partitions(relation regclass, column_name text, key anycompatible) RETURNS SETOF regclass
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000 ROWS 3;
CREATE FUNCTION bloom_find(row_type anyelement, column_name text, key anycompatible) RETURNS SETOF anyelement
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;

COMMENT ON FUNCTION bloom_index_contains(regclass, text, anycompatible) IS 'test a table for a key; false means that definitely no row has it';
COMMENT ON FUNCTION bloom_index_contains_each(regclass, text, anycompatiblearray) IS 'test a table for each key of an array';
COMMENT ON FUNCTION bloom_index_missing(regclass, text, anycompatiblearray) IS 'distinct keys of an array that definitely no row of the table has';
COMMENT ON FUNCTION bloom_index_partitions(regclass, text, anycompatible) IS 'partitions that may have a row with this key';
COMMENT ON FUNCTION bloom_find(anyelement, text, anycompatible) IS 'rows with this key, reading only partitions that may have one';

------------------------------------------------------------------
-- Index: inspection
------------------------------------------------------------------

CREATE FUNCTION bloom_index_export(index regclass) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
CREATE FUNCTION bloom_index_stats(index regclass, OUT layers integer, OUT keys bigint, OUT capacity bigint,
    OUT bytes bigint, OUT fill double precision, OUT target_fpp double precision, OUT fpp double precision,
    OUT stale double precision, OUT key_class text, OUT advice text)
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;
CREATE FUNCTION bloom_index_check(index regclass) RETURNS bigint
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100000;

COMMENT ON FUNCTION bloom_index_export(regclass) IS 'copy an index to a filter';
COMMENT ON FUNCTION bloom_index_stats(regclass) IS 'size, keys and false-positive probability of an index, with advice';
COMMENT ON FUNCTION bloom_index_check(regclass) IS 'number of rows whose key is missing from an index, normally 0';

------------------------------------------------------------------
-- Filter sets
------------------------------------------------------------------

CREATE FUNCTION _bloom_set(slots integer, capacity bigint, empty bloom) RETURNS bloom
  AS 'MODULE_PATHNAME', 'bloom_set_empty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _bloom_set(slots integer, capacity bigint, empty bloom, expiry interval, steps integer) RETURNS bloom[]
  AS 'MODULE_PATHNAME', 'bloom_set_empty_expiring' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_set_create(
    name text, capacity bigint, fpp float8 DEFAULT 0.01, key_type regtype DEFAULT 'text',
    expiry interval DEFAULT NULL, steps integer DEFAULT NULL) RETURNS regclass
  AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
CREATE FUNCTION bloom_set_add(set regclass, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
CREATE FUNCTION bloom_set_add_all(set regclass, keys anycompatiblearray) RETURNS anycompatiblearray
  AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
CREATE FUNCTION bloom_set_contains(set regclass, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
CREATE FUNCTION bloom_set_contains_each(set regclass, keys anycompatiblearray) RETURNS boolean[]
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;
CREATE FUNCTION bloom_set_reset(set regclass) RETURNS void
  AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
CREATE FUNCTION bloom_set_stats(
    set regclass, OUT slots integer, OUT capacity bigint, OUT cardinality bigint, OUT grown bigint, OUT bytes bigint,
    OUT target_fpp float8, OUT fpp float8, OUT key_class text, OUT expiry interval, OUT steps integer, OUT advice text)
  AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION _bloom_set(integer, bigint, bloom) IS 'definition of a filter set, and the contents of an empty slot';
COMMENT ON FUNCTION _bloom_set(integer, bigint, bloom, interval, integer) IS 'definition of a filter set whose keys expire, and the contents of an empty slot';
COMMENT ON FUNCTION bloom_set_create(text, bigint, float8, regtype, interval, integer) IS 'create a filter set, a table of small filters to which many sessions can add keys';
COMMENT ON FUNCTION bloom_set_add(regclass, anycompatible) IS 'add a key to a filter set; true if it was new';
COMMENT ON FUNCTION bloom_set_add_all(regclass, anycompatiblearray) IS 'add keys to a filter set; returns those that were new';
COMMENT ON FUNCTION bloom_set_contains(regclass, anycompatible) IS 'test a filter set for a key';
COMMENT ON FUNCTION bloom_set_contains_each(regclass, anycompatiblearray) IS 'test a filter set for each key of an array';
COMMENT ON FUNCTION bloom_set_reset(regclass) IS 'remove all keys of a filter set, and restore missing slots';
COMMENT ON FUNCTION bloom_set_stats(regclass) IS 'definition and contents of a filter set';

------------------------------------------------------------------
-- Index: monitoring
------------------------------------------------------------------

CREATE FUNCTION _bloom_index_health(index oid, OUT bytes bigint, OUT keys bigint, OUT layers integer,
    OUT fill double precision, OUT target_fpp double precision, OUT fpp double precision, OUT stale double precision,
    OUT advice text) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'bloom_index_health' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 10000 ROWS 1;

CREATE VIEW bloom_indexes AS
  SELECT n.nspname AS schemaname, t.relname AS tablename, i.relname AS indexname, i.oid AS indexrelid,
         a.amname AS method, c.bytes, c.keys, c.layers, c.fill, c.target_fpp, c.fpp, c.stale, c.advice
  FROM pg_catalog.pg_class i
    JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) i.relam
    JOIN pg_catalog.pg_index x ON x.indexrelid OPERATOR(pg_catalog.=) i.oid
    JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) x.indrelid
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) i.relnamespace,
    LATERAL _bloom_index_health(i.oid) c
  WHERE i.relkind OPERATOR(pg_catalog.=) 'i'
    AND a.amname OPERATOR(pg_catalog.=) ANY (ARRAY['bloomfilter', 'fingerprint']::pg_catalog.name[]);
GRANT SELECT ON bloom_indexes TO PUBLIC;

COMMENT ON FUNCTION _bloom_index_health(oid) IS 'condition of an index, for the view bloom_indexes';
COMMENT ON VIEW bloom_indexes IS 'size and condition of all bloomfilter and fingerprint indexes, for monitoring';
