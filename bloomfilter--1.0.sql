/* bloomfilter--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION bloomfilter" to load this file. \quit

------------------------------------------------------------------
-- The type, its text and binary forms
------------------------------------------------------------------

CREATE TYPE bloom;

CREATE FUNCTION bloom_in(cstring) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_out(bloom) RETURNS cstring
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_recv(internal) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_send(bloom) RETURNS bytea
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE bloom (
  INPUT = bloom_in, OUTPUT = bloom_out,
  RECEIVE = bloom_recv, SEND = bloom_send,
  STORAGE = external, ALIGNMENT = double
);

COMMENT ON TYPE bloom IS 'Bloom filter: a small set that may report a key it does not hold, and never misses one it does';
COMMENT ON FUNCTION bloom_in(cstring) IS 'I/O';
COMMENT ON FUNCTION bloom_out(bloom) IS 'I/O';
COMMENT ON FUNCTION bloom_recv(internal) IS 'I/O';
COMMENT ON FUNCTION bloom_send(bloom) IS 'I/O';

CREATE FUNCTION bloom_from_bytea(bytea) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_to_bytea(bloom) RETURNS bytea
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bytea AS bloom) WITH FUNCTION bloom_from_bytea(bytea);
CREATE CAST (bloom AS bytea) WITH FUNCTION bloom_to_bytea(bloom);

COMMENT ON FUNCTION bloom_from_bytea(bytea) IS 'a filter from its bytes, which are validated';
COMMENT ON FUNCTION bloom_to_bytea(bloom) IS 'the bytes of a filter';
COMMENT ON CAST (bytea AS bloom) IS 'a filter from its bytes, which are validated';
COMMENT ON CAST (bloom AS bytea) IS 'the bytes of a filter';

------------------------------------------------------------------
-- Equality: of the bytes
------------------------------------------------------------------

CREATE FUNCTION bloom_eq(bloom, bloom) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_ne(bloom, bloom) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_hash_value(bloom) RETURNS integer
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_hash_value_extended(bloom, bigint) RETURNS bigint
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR = (
  LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES
);
CREATE OPERATOR <> (
  LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR CLASS bloom_ops DEFAULT FOR TYPE bloom USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 bloom_hash_value(bloom),
  FUNCTION 2 bloom_hash_value_extended(bloom, bigint);

COMMENT ON FUNCTION bloom_eq(bloom, bloom) IS 'implementation of = operator';
COMMENT ON FUNCTION bloom_ne(bloom, bloom) IS 'implementation of <> operator';
COMMENT ON FUNCTION bloom_hash_value(bloom) IS 'hash of a filter, for hash indexes and joins';
COMMENT ON FUNCTION bloom_hash_value_extended(bloom, bigint) IS 'seeded hash of a filter, for hash partitioning';
COMMENT ON OPERATOR = (bloom, bloom) IS 'equal: the same bytes';
COMMENT ON OPERATOR <> (bloom, bloom) IS 'not equal';
COMMENT ON OPERATOR FAMILY bloom_ops USING hash IS 'hashing of filters by their bytes';
COMMENT ON OPERATOR CLASS bloom_ops USING hash IS 'hashing of filters by their bytes';

------------------------------------------------------------------
-- Making a filter and adding to it
------------------------------------------------------------------

CREATE FUNCTION bloom_new(
    capacity bigint, fpp float8 DEFAULT 0.01,
    growth integer DEFAULT NULL, max_layers integer DEFAULT NULL) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_add_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_add_all(filter bloom, keys anyarray) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT bloom_add_support;

COMMENT ON FUNCTION bloom_new(bigint, float8, integer, integer) IS 'an empty filter that grows, has a fixed size (growth => 0), or rotates (max_layers)';
COMMENT ON FUNCTION bloom_add_all(bloom, anyarray) IS 'the filter with all keys of an array added';
COMMENT ON FUNCTION bloom_add_support(internal) IS 'planner support';

CREATE FUNCTION bloom_contains_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_sel(internal, oid, internal, integer) RETURNS float8
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_joinsel(internal, oid, internal, smallint, internal) RETURNS float8
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_contains_support(internal) IS 'planner support';
COMMENT ON FUNCTION bloom_contains_sel(internal, oid, internal, integer) IS 'restriction selectivity of @>';
COMMENT ON FUNCTION bloom_contains_joinsel(internal, oid, internal, smallint, internal) IS 'join selectivity of @>';

-- Keys are anycompatible: then literals of unknown type are text, and every
-- other key keeps its own type.
CREATE FUNCTION bloom_add(filter bloom, key anycompatible) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE SUPPORT bloom_add_support;
CREATE FUNCTION bloom_contains(filter bloom, key anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT bloom_contains_support;
CREATE FUNCTION bloom_hash(key anycompatible) RETURNS bigint
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR @> (
  LEFTARG = bloom, RIGHTARG = anycompatible, FUNCTION = bloom_contains,
  RESTRICT = bloom_contains_sel, JOIN = bloom_contains_joinsel
);

COMMENT ON FUNCTION bloom_add(bloom, anycompatible) IS 'the filter with a key added';
COMMENT ON FUNCTION bloom_contains(bloom, anycompatible) IS 'can the key have been added? false: certainly not';
COMMENT ON FUNCTION bloom_hash(anycompatible) IS 'the 64-bit hash that a key has in every filter';
COMMENT ON OPERATOR @> (bloom, anycompatible) IS 'can the key have been added?';

CREATE FUNCTION bloom_contains_any(filter bloom, keys anyarray) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_all(filter bloom, keys anyarray) RETURNS boolean
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_contains_each(filter bloom, keys anyarray) RETURNS boolean[]
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_contains_any(bloom, anyarray) IS 'can any of the keys have been added?';
COMMENT ON FUNCTION bloom_contains_all(bloom, anyarray) IS 'can all of the keys have been added?';
COMMENT ON FUNCTION bloom_contains_each(bloom, anyarray) IS 'for each of the keys: can it have been added?';

------------------------------------------------------------------
-- Sets
------------------------------------------------------------------

CREATE FUNCTION bloom_union(a bloom, b bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_intersection(a bloom, b bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR | (LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_union, COMMUTATOR = |);
CREATE OPERATOR & (LEFTARG = bloom, RIGHTARG = bloom, FUNCTION = bloom_intersection, COMMUTATOR = &);

COMMENT ON FUNCTION bloom_union(bloom, bloom) IS 'filter of the keys of either';
COMMENT ON FUNCTION bloom_intersection(bloom, bloom) IS 'filter of the keys of both, and a few more';
COMMENT ON OPERATOR | (bloom, bloom) IS 'union';
COMMENT ON OPERATOR & (bloom, bloom) IS 'intersection';

CREATE FUNCTION bloom_union_agg_transition(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_union_agg_final(bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_intersection_agg_transition(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE bloom_union_agg(filter bloom) (
  SFUNC = bloom_union_agg_transition, STYPE = bloom, SSPACE = 4096,
  FINALFUNC = bloom_union_agg_final, COMBINEFUNC = bloom_union_agg_transition,
  PARALLEL = SAFE);
CREATE AGGREGATE bloom_intersection_agg(filter bloom) (
  SFUNC = bloom_intersection_agg_transition, STYPE = bloom, SSPACE = 4096,
  COMBINEFUNC = bloom_intersection_agg_transition, PARALLEL = SAFE);

COMMENT ON FUNCTION bloom_union_agg_transition(bloom, bloom) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_union_agg_final(bloom) IS 'aggregate final function';
COMMENT ON FUNCTION bloom_intersection_agg_transition(bloom, bloom) IS 'aggregate transition function';
COMMENT ON AGGREGATE bloom_union_agg(bloom) IS 'filter of the keys of any of the filters';
COMMENT ON AGGREGATE bloom_intersection_agg(bloom) IS 'filter of the keys of all of the filters, and a few more; NULL if there are none';

------------------------------------------------------------------
-- What a filter says about itself
------------------------------------------------------------------

CREATE FUNCTION bloom_cardinality(filter bloom) RETURNS bigint
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_fpp(filter bloom) RETURNS float8
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_stats(
    filter bloom,
    OUT bytes bigint, OUT bits bigint, OUT hashes integer, OUT layers integer,
    OUT capacity bigint, OUT cardinality bigint, OUT fill float8,
    OUT target_fpp float8, OUT fpp float8, OUT growth integer,
    OUT max_layers integer, OUT key_class text, OUT format_version integer)
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
    OUT bytes bigint, OUT bits_per_key float8, OUT hashes integer)
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_cardinality(bloom) IS 'estimated number of distinct keys in the filter';
COMMENT ON FUNCTION bloom_fpp(bloom) IS 'probability, as the filter is now, that a key that was not added is reported';
COMMENT ON FUNCTION bloom_stats(bloom) IS 'geometry, contents and false-positive probability of the filter';
COMMENT ON FUNCTION bloom_layers(bloom) IS 'the layers of the filter, the oldest first';
COMMENT ON FUNCTION bloom_compact(bloom) IS 'the same keys in fewer bytes';
COMMENT ON FUNCTION bloom_plan(bigint, float8) IS 'what a filter would cost: size, bits per key, hashes';

------------------------------------------------------------------
-- Aggregates
--
-- Over the common types the transition type is bloom, over any other type it
-- is internal; see src/bloom_agg.c for the reason.  (This runs as superuser:
-- every function called in the block is named with its schema.)
------------------------------------------------------------------

CREATE FUNCTION bloom_agg_combine(bloom, bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_agg_final(bloom) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_agg_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'bloom_agg_combine_internal' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_agg_final(internal) RETURNS bloom
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION bloom_agg_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bloom_agg_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_agg_combine(bloom, bloom) IS 'aggregate combine function';
COMMENT ON FUNCTION bloom_agg_final(bloom) IS 'aggregate final function';
COMMENT ON FUNCTION bloom_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION bloom_agg_final(internal) IS 'aggregate final function';
COMMENT ON FUNCTION bloom_agg_serialize(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION bloom_agg_deserialize(bytea, internal) IS 'aggregate deserial function';

DO $$
DECLARE
  key text;
  symbol text;
  state text;
  travel text;
  args text;
BEGIN
  FOR key, symbol, state, travel IN VALUES
    ('smallint', 'bloom_agg_int2', 'bloom', ''),
    ('integer', 'bloom_agg_int4', 'bloom', ''),
    ('bigint', 'bloom_agg_int8', 'bloom', ''),
    ('text', 'bloom_agg_text', 'bloom', ''),
    ('uuid', 'bloom_agg_uuid', 'bloom', ''),
    ('"char"', 'bloom_agg_char', 'bloom', ''),
    ('anyelement', 'bloom_agg_any', 'internal',
     'SERIALFUNC = bloom_agg_serialize, DESERIALFUNC = bloom_agg_deserialize,')
  LOOP
    FOREACH args IN ARRAY ARRAY[
      'key %1$s', 'key %1$s, capacity bigint', 'key %1$s, capacity bigint, fpp float8']
    LOOP
      args := pg_catalog.format(args, key);
      EXECUTE pg_catalog.format($f$
        CREATE FUNCTION bloom_agg_transition(state %2$s, %1$s) RETURNS %2$s
          AS 'MODULE_PATHNAME', %3$L LANGUAGE C IMMUTABLE PARALLEL SAFE;
        CREATE AGGREGATE bloom_agg(%1$s) (
          SFUNC = bloom_agg_transition, STYPE = %2$s, SSPACE = 256,
          FINALFUNC = bloom_agg_final, COMBINEFUNC = bloom_agg_combine,
          %4$s PARALLEL = SAFE);

        COMMENT ON FUNCTION bloom_agg_transition(state %2$s, %1$s) IS 'aggregate transition function';
        COMMENT ON AGGREGATE bloom_agg(%1$s) IS 'filter of all keys that are not null';
        $f$, args, state, symbol, travel);
    END LOOP;
  END LOOP;
END $$;
