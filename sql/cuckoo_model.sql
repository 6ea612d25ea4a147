-- A million random operations on a cuckoo filter, including merges and subtractions, compared
-- with a table of counters: no false negatives at any point, counts never too low, and too high
-- only for keys that share a number in the filter.

CREATE SCHEMA cuckoo_model;
SET search_path = cuckoo_model, public;

CREATE FUNCTION model_run(seed bigint, keys int, capacity int, fpp float8, growth int, operations int,
  OUT added bigint, OUT deleted bigint, OUT merges bigint, OUT subtractions bigint, OUT round_trips bigint, OUT false_negatives bigint,
  OUT counts_too_low bigint, OUT counts_too_high bigint, OUT counts_compared bigint, OUT false_positives float8, OUT target float8)
LANGUAGE plpgsql AS $$
DECLARE
  f cuckoo := cuckoo_new(capacity, fpp, growth);
  other cuckoo;
  model int[] := array_fill(0, array[keys]);
  universe bigint[] := ARRAY(SELECT bloom_hash(n + seed * 1000003) FROM generate_series(1, keys) n);
  strange bigint[] := ARRAY(SELECT bloom_hash(-n - seed * 1000003) FROM generate_series(1, 20000) n);
  random bigint := seed;
  batch bigint[];
  picks int[];
  k int;
  size int;
  step int := 0;
  done bigint := 0;
  filling bool := true;
BEGIN
  added := 0; deleted := 0; merges := 0; subtractions := 0; round_trips := 0; false_negatives := 0;
  counts_too_low := 0; counts_too_high := 0; counts_compared := 0; target := fpp;
  WHILE done < operations LOOP
    step := step + 1;
    random := bloom_hash(random);
    size := 1 + abs(random % 400);
    -- fill and empty the filter in turn
    IF step % 500 = 0 THEN
      filling := NOT filling;
    END IF;
    picks := ARRAY(SELECT 1 + abs(bloom_hash(random + n) % CASE WHEN bloom_hash(n - random) % 8 = 0 THEN 16 ELSE keys END) FROM generate_series(1, size) n);
    batch := '{}';
    IF abs((random >> 20) % 5) < (CASE WHEN filling THEN 3 ELSE 1 END) THEN
      FOREACH k IN ARRAY picks LOOP
        model[k] := model[k] + 1;
        batch := batch || universe[k];
      END LOOP;
      added := added + size;
      IF (random >> 30) % 10 = 0 THEN
        -- through a second filter
        other := cuckoo_add_all(cuckoo_new(capacity, fpp, growth), batch);
        f := CASE WHEN (random >> 40) % 2 = 0 THEN cuckoo_merge(f, other) ELSE cuckoo_merge(other, f) END;
        merges := merges + 1;
      ELSIF size < 20 THEN
        FOR i IN 1 .. size LOOP
          f := cuckoo_add(f, batch[i]);
        END LOOP;
      ELSE
        f := cuckoo_add_all(f, batch);
      END IF;
    ELSE
      FOREACH k IN ARRAY picks LOOP
        -- only keys that are present; a saturated key stays
        IF model[k] > 0 THEN
          IF model[k] < 255 THEN
            model[k] := model[k] - 1;
          END IF;
          batch := batch || universe[k];
        END IF;
      END LOOP;
      deleted := deleted + cardinality(batch);
      IF (random >> 30) % 10 = 0 THEN
        -- through a second filter
        f := cuckoo_subtract(f, cuckoo_add_all(cuckoo_new(capacity, fpp, growth), batch));
        subtractions := subtractions + 1;
      ELSIF cardinality(batch) BETWEEN 1 AND 20 THEN
        FOR i IN 1 .. cardinality(batch) LOOP
          f := cuckoo_delete(f, batch[i]);
        END LOOP;
      ELSE
        f := cuckoo_delete_all(f, batch);
      END IF;
    END IF;
    done := done + greatest(cardinality(batch), 1);
    IF step % 7 = 0 THEN
      f := CASE (random >> 44) % 2 WHEN 0 THEN f::text::cuckoo ELSE f::bytea::cuckoo END;
      round_trips := round_trips + 1;
    END IF;
    IF step % 50 = 0 OR done >= operations THEN
      SELECT false_negatives + count(*) INTO false_negatives
      FROM unnest(cuckoo_contains_each(f, universe), model) u(answer, n) WHERE n > 0 AND NOT answer;
    END IF;
    IF step % 500 = 0 OR done >= operations THEN
      SELECT counts_too_low + count(*) FILTER (WHERE counted < least(n, 255)), counts_too_high + count(*) FILTER (WHERE counted > least(n, 255)), counts_compared + count(*)
      INTO counts_too_low, counts_too_high, counts_compared
      FROM unnest(universe, model) u(key, n), LATERAL (SELECT cuckoo_count(f, key) AS counted) c;
    END IF;
  END LOOP;
  SELECT avg(answer::int) INTO false_positives FROM unnest(cuckoo_contains_each(f, strange)) u(answer);
END $$;

-- fpp, keys, capacity: growing from a small filter, with headroom, fixed, overfull
SELECT seed, fpp, capacity, growth, added + deleted >= operations AS all_done, merges > 20 AS merged, subtractions > 20 AS subtracted, round_trips > 100 AS travelled, false_negatives, counts_too_low,
       counts_too_high <= 1.2 * fpp * counts_compared AS collisions_within_fpp, r.false_positives <= 1.1 * r.target AS fpp_met
FROM (VALUES (20261116, 20000, 100, 0.01::float8, 2, 400000), (20261117, 20000, 30000, 0.001, 2, 200000),
             (20261118, 20000, 12000, 0.02, 0, 200000), (20261119, 5000, 500, 0.05, 4, 200000)) v(seed, keys, capacity, fpp, growth, operations),
LATERAL model_run(seed, keys, capacity, fpp, growth, operations) r ORDER BY seed;
DROP FUNCTION model_run;
