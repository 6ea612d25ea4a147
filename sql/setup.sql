-- What the other tests use.

-- Run a query; its single value as text, or the error with its code and hint.
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

-- How often a pattern occurs in a query's plan (whose words change over majors).
CREATE FUNCTION plan_has(query text, pattern text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  line text;
  result bigint := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    result := result + (line ~ pattern)::int;
  END LOOP;
  RETURN result;
END $$;

-- A table of reproducible keys: k is text, i all of bigint's range.
CREATE TABLE keys AS
  SELECT n, md5(n::text) AS k,
         ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint AS i
  FROM generate_series(1, 100000) n;
ANALYZE keys;
