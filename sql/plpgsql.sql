-- Filters in PL/pgSQL variables (changed in place since PostgreSQL 18; the results
-- are the same in older versions)

CREATE SCHEMA plpgsql;
SET search_path = plpgsql, public;

DO $$
DECLARE
  f bloom := bloom_new(3000);
  g bloom;
  small bloom := bloom_new(10);
  before bloom;
BEGIN
  FOR i IN 1 .. 3000 LOOP
    f := bloom_add(f, i);
    IF i % 500 = 0 THEN
      ASSERT bloom_contains(f, i) AND bloom_contains(f, 1), 'a key is lost';
      g := f;                                   -- a copy, not a reference
      g := bloom_add(g, -i);
      ASSERT bloom_contains(g, -i) AND bloom_cardinality(g) >= bloom_cardinality(f), 'the copy lacks its key';
    END IF;
  END LOOP;
  ASSERT f = (SELECT bloom_add_all(bloom_new(3000), array_agg(n)) FROM generate_series(1, 3000) n), 'other bytes than by bloom_add_all';
  ASSERT bloom_contains_all(f, ARRAY(SELECT generate_series(1, 3000))), 'a key is lost';
  ASSERT bloom_cardinality(f) BETWEEN 2900 AND 3100;

  -- an expanded object is tested, printed, compared and merged
  f := bloom_add_all(f, ARRAY[-1, -2, NULL]);
  ASSERT f @> -2 AND f::text::bloom = f AND bloom_contains(f | bloom_agg(5), -1);
  ASSERT (bloom_stats(f)).capacity = 3000;

  -- NULL keys, and a key computed from the filter itself
  f := bloom_add(f, NULL::int);
  f := bloom_add(f, bloom_cardinality(f)::int + 1000000);
  before := f;

  -- an error leaves the variable unchanged
  BEGIN
    f := bloom_add(f, 'text');
    ASSERT false, 'a key of another class was taken';
  EXCEPTION WHEN datatype_mismatch THEN
    ASSERT f = before, 'an error left its mark';
  END;
  BEGIN
    f := bloom_add_all(f, ARRAY['text']);
    ASSERT false, 'a key of another class was taken';
  EXCEPTION WHEN datatype_mismatch THEN
    ASSERT f = before, 'an error left its mark';
  END;

  small := bloom_add(bloom_add(small, 'a'), 'b');
  ASSERT bloom_contains_all(small, ARRAY['a', 'b']) AND NOT bloom_contains(small, 'c');
  small := bloom_add(small, 'c');
  ASSERT small = bloom_add_all(bloom_new(10), ARRAY['c', 'b', 'a']);
END $$;

-- adding and testing in turn, across the change from a list to lines
DO $$
DECLARE
  f bloom := bloom_new(20000);
BEGIN
  FOR i IN 1 .. 4000 LOOP
    IF bloom_contains(f, i) AND bloom_fpp(f) < 1e-6 THEN
      RAISE EXCEPTION 'found % before it was added', i;
    END IF;
    f := bloom_add(f, i);
    IF NOT bloom_contains(f, i) OR NOT bloom_contains(f, i / 2 + 1) THEN
      RAISE EXCEPTION 'lost %', i;
    END IF;
  END LOOP;
END $$;

-- a function that builds a filter, and a table that stores it
CREATE FUNCTION fold(keys text[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
  f bloom := bloom_new(100);
  k text;
BEGIN
  FOREACH k IN ARRAY keys LOOP
    f := bloom_add(f, k);
  END LOOP;
  RETURN f;
END $$;
CREATE TABLE folded_filters AS SELECT fold(array['x', 'y']) AS f;
UPDATE folded_filters SET f = bloom_add(f, 'z');
SELECT f = bloom_add_all(bloom_new(100), array['x', 'y', 'z']) AS same, bloom_contains_each(f, array['x', 'z', 'q']) FROM folded_filters;

-- an error or cancellation that is caught leaves the filter unchanged
DO $$
DECLARE
  f bloom := bloom_new(1, 0.01, 1);
  n int := 0;
  g bloom;
BEGIN
  BEGIN
    FOR i IN 1 .. 1000 LOOP
      f := bloom_add(f, i);
      n := i;
    END LOOP;
  EXCEPTION WHEN program_limit_exceeded THEN
    NULL;
  END;
  ASSERT n > 60 AND bloom_contains_all(f, ARRAY(SELECT generate_series(1, n))), 'a key is lost';
  FOR i IN 1 .. 40 LOOP
    BEGIN
      f := bloom_add(f, 1000 + i);
    EXCEPTION WHEN program_limit_exceeded THEN
      NULL;
    END;
  END LOOP;
  g := f;
  ASSERT bloom_contains_all(g, ARRAY(SELECT generate_series(1, n))), 'a key is lost';
END $$;
SET statement_timeout = '1s';
DO $$
DECLARE
  f bloom := bloom_new(3000000, growth => 0);
  first int[] := ARRAY(SELECT generate_series(1, 20000));
  more int[];
BEGIN
  f := bloom_add_all(f, first);
  BEGIN
    FOR i IN 1 .. 1000 LOOP
      more := ARRAY(SELECT generate_series(i * 100000, i * 100000 + 99999));
      f := bloom_add_all(f, more);
    END LOOP;
  EXCEPTION WHEN query_canceled THEN
    ASSERT bloom_contains_all(f, first), 'a key is lost';
    more := ARRAY(SELECT -n FROM generate_series(1, 300000) n);
    f := bloom_add_all(f, more);
    ASSERT bloom_contains_all(f, first || more), 'a key is lost';
  END;
END $$;
RESET statement_timeout;

-- adding many keys is all or nothing.  Here the filter cannot grow, because the next layer would be too large
DO $$
DECLARE
  f bloom := bloom_new(3000000, 0.001, growth => 100);
  before bloom;
  failures int := 0;
BEGIN
  f := bloom_add(f, 0);
  FOR i IN 1 .. 14 LOOP
    before := f;
    BEGIN
      f := bloom_add_all(f, ARRAY(SELECT generate_series(i * 300000, i * 300000 + 299999)));
      ASSERT bloom_contains(f, i * 300000) AND bloom_contains(f, i * 300000 + 299999), 'a key is lost';
    EXCEPTION WHEN program_limit_exceeded THEN
      failures := failures + 1;
      ASSERT f = before, 'an error left its mark';
    END;
  END LOOP;
  ASSERT failures > 2, 'the filter was never full';
  -- keys that are already present need no space
  f := bloom_add_all(f, ARRAY[0, 300000, 300001]);
  ASSERT f = before, 'keys that were there changed the filter';
END $$;
