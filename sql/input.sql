-- P5, P6: external bytes are validated; errors name parameters that are out of range

CREATE SCHEMA input;
SET search_path = input, public;
CREATE TYPE colour AS ENUM ('red', 'green');

-- Runs a query and returns its single value as text, or the error with its SQLSTATE, detail and hint.
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
  detail text;
  hint text;
BEGIN
  EXECUTE query INTO result;
  RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n-> ', sqlstate || ': ' || sqlerrm, nullif(detail, ''), nullif(hint, ''));
END $$;

SELECT outcome('SELECT ''''::bloom');
SELECT outcome('SELECT ''abc''::bloom');
SELECT outcome('SELECT ''ab!d''::bloom');
SELECT outcome('SELECT ''QkYB''::bloom');
SELECT outcome('SELECT ''\x''::bytea::bloom');
SELECT outcome('SELECT decode(''deadbeef'', ''hex'')::bloom');
SELECT outcome('SELECT set_byte(bloom_new(10)::bytea, 2, 99)::bloom');
SELECT outcome('SELECT (bloom_new(10)::bytea || ''\x00'')::bloom');
SELECT outcome('SELECT substr(bloom_agg(n)::bytea, 1, 50)::bloom FROM generate_series(1, 20) n');

-- 36 bytes with a header that claims half a gigabyte
SELECT outcome('SELECT overlay(bloom_new(1)::bytea placing ''\xffffff03'' from 17)::bloom');
-- a class name that is not valid UTF-8
SELECT outcome($$SELECT overlay(bloom_agg('red'::colour)::bytea placing '\xff' from 31)::bloom$$);

-- every byte of some filters, changed to other values: the result is a
-- usable filter or 22P03
CREATE TABLE tampered AS
SELECT name, place, change, overlay(f::bytea placing set_byte('\x00', 0, (get_byte(f::bytea, place) + change) % 256) from place + 1) AS bytes
FROM (VALUES ('empty', bloom_new(1000)), ('list', bloom_add_all(bloom_new(1000), array[1, 2, 3])),
             ('lines', bloom_add_all(bloom_new(5), array[1, 2, 3])), ('named', bloom_add(bloom_new(50), 'red'::colour))) v(name, f),
LATERAL generate_series(0, length(f::bytea) - 1) place, (VALUES (1), (2), (16), (128), (255)) c(change);
SELECT name, left(outcome, 5) AS outcome, count(*) > 0 AS seen FROM tampered,
LATERAL (SELECT outcome(format('SELECT bloom_cardinality(f) >= 0 AND bloom_fpp(f) >= 0 AND (bloom_stats(f)).bytes > 0 AND f::text::bloom = f FROM (VALUES (%L::bytea::bloom)) v(f)', bytes))) o(outcome)
GROUP BY 1, 2 ORDER BY 1, 2;

-- parameter checks
SELECT outcome('SELECT bloom_new(0)');
SELECT outcome('SELECT bloom_new(-1)');
SELECT outcome('SELECT bloom_new(9223372036854775807)');
SELECT outcome('SELECT bloom_new(10, 0)');
SELECT outcome('SELECT bloom_new(10, 1)');
SELECT outcome('SELECT bloom_new(10, -0.5)');
SELECT outcome('SELECT bloom_new(10, ''NaN'')');
SELECT outcome('SELECT bloom_new(10, 1e-300)');
SELECT outcome('SELECT bloom_new(null)');
SELECT outcome('SELECT bloom_new(10, null)');
SELECT outcome('SELECT bloom_plan(0)');
SELECT outcome('SELECT bloom_plan(10, 2)');
SELECT outcome('SELECT bloom_agg(1, 0)');
SELECT outcome('SELECT bloom_agg(1, 10, 0)');
SELECT outcome('SELECT bloom_agg(1, 10, null)');
SELECT outcome('SELECT bloom_agg(1.5, -3)');
SELECT outcome('SELECT bloom_agg(n, n) FROM generate_series(1, 3) n');
SELECT outcome('SELECT bloom_agg(n, 10, n / 10.0) FROM generate_series(1, 3) n');
SELECT outcome('SELECT bloom_agg(n::oid, nullif(n, 2)) FROM generate_series(2, 3) n');

-- too large: the error names the size and the limit, and has a hint
SELECT outcome('SELECT bloom_new(1000000000)');
SELECT outcome('SELECT bloom_plan(1000000000)');
SELECT outcome('SELECT bloom_agg(1, 1000000000)');
SELECT outcome('SELECT (bloom_plan(430000000)).bytes');

-- a crafted state whose shape does not match its header is rejected
CREATE AGGREGATE merge_states(bloom) (SFUNC = _bloom_agg_combine, STYPE = bloom);
SELECT outcome($$SELECT merge_states(f) FROM (SELECT bloom_agg(n, 10) AS f FROM generate_series(1, 10) n
  UNION ALL SELECT (overlay(substr(bloom_agg(n, 10)::bytea, 1, 28) placing '\x40000000' from 17) || decode(repeat('ff', 512), 'hex'))::bloom FROM generate_series(1, 10) n) x$$);
DROP AGGREGATE merge_states(bloom);
-- parameters are checked even if the key is NULL
SELECT outcome('SELECT bloom_agg(k, c ORDER BY o) FROM (VALUES (1, 1, 20), (2, NULL, 10)) v(o, k, c)');

-- parameters of growth
SELECT outcome('SELECT bloom_new(10, growth => -1)');
SELECT outcome('SELECT bloom_new(10, growth => 101)');
SELECT outcome('SELECT bloom_new(10, max_layers => 1)');
SELECT outcome('SELECT bloom_new(10, max_layers => 65)');
SELECT outcome('SELECT bloom_new(10, growth => 2, max_layers => 5)');
SELECT outcome('SELECT bloom_new(100000000, max_layers => 64)');

-- support functions cannot be called directly
SELECT outcome('SELECT _bloom_agg_transition(null, 1)');
SELECT outcome('SELECT _bloom_agg_transition(bloom_add(bloom_new(10), 1), 1)');
SELECT outcome('SELECT _bloom_agg_combine(bloom_new(1), bloom_new(1))');
SELECT outcome('SELECT _bloom_agg_final(bloom_new(1))');
