-- P8: the catalog entries of the extension

-- every function on filters and keys is IMMUTABLE, PARALLEL SAFE and commented
SELECT p.oid::regprocedure AS function, provolatile, proparallel
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
  AND proname !~ '^(_?bloom_index_|bloom_find$|bloom_set_|_bloomfilter_handler$|_fingerprint_handler$|fingerprint_)'
  AND (provolatile <> 'i' OR proparallel <> 's' OR obj_description(p.oid, 'pg_proc') IS NULL);

-- functions that read tables are STABLE and PARALLEL RESTRICTED: the table may be temporary; one locks out writers, one starts subtransactions; some write
SELECT p.oid::regprocedure AS function, provolatile, proparallel
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter') AND proname ~ '^(_?bloom_index_|bloom_find$|bloom_set_|fingerprint_(stats|check)$)'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- \df bloom* and \df cuckoo* list what users call: functions of types, aggregates, casts, access methods and the planner begin with _
SELECT p.oid::regprocedure AS function
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
  AND proname !~ '^_' AND (
    EXISTS (SELECT FROM pg_type t WHERE p.oid IN (typinput, typoutput, typreceive, typsend)) OR EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid) OR
    EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn)) OR EXISTS (SELECT FROM pg_am WHERE amhandler = p.oid) OR
    EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid) OR EXISTS (SELECT FROM pg_proc f WHERE f.prosupport = p.oid) OR
    EXISTS (SELECT FROM pg_operator WHERE p.oid IN (oprrest, oprjoin) OR oprcode = p.oid AND oprname IN ('=', '<>')))
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT count(*) FILTER (WHERE proname ~ '^(bloom|cuckoo)_') > 50 AS listed, count(*) FILTER (WHERE proname ~ '^_') > 50 AS not_listed
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter');

-- their arguments have names
SELECT p.oid::regprocedure AS unnamed
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter') AND proname !~ '^_' AND (proargnames IS NULL OR '' = ANY (proargnames));

-- all other objects have comments, too
SELECT pg_describe_object(classid, objid, 0) AS uncommented
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
  AND obj_description(objid, classid::regclass::name) IS NULL
  AND classid <> 'pg_type'::regclass;
SELECT obj_description('bloom'::regtype, 'pg_type') IS NOT NULL AND obj_description('cuckoo'::regtype, 'pg_type') IS NOT NULL AS types_commented;

-- aggregates that Citus splits between workers and coordinator
SELECT a.aggfnoid::regprocedure AS aggregate,
       CASE WHEN a.aggcombinefn = 0 OR t.typtype = 'p' THEN 'row gather'
            WHEN EXISTS (SELECT FROM unnest(p.proargtypes) x JOIN pg_type y ON y.oid = x WHERE y.typtype = 'p') THEN 'RUNTIME ERROR'
            ELSE 'pushed down' END AS on_citus,
       a.aggtransspace > 0 AS has_space, t.typsend <> 0 AND t.typreceive <> 0 OR t.typtype = 'p' AS travels
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid JOIN pg_type t ON t.oid = a.aggtranstype
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
ORDER BY a.aggfnoid::regprocedure::text COLLATE "C";

-- there is no operator "filter @> filter": a literal key would be parsed as a filter
SELECT count(*) FROM pg_operator WHERE oprname = '@>' AND oprleft = oprright AND oprleft IN ('bloom'::regtype, 'cuckoo'::regtype);

-- installed in another schema that is not in the search_path
CREATE SCHEMA elsewhere;
ALTER EXTENSION bloomfilter SET SCHEMA elsewhere;
SET search_path = pg_catalog;
SELECT elsewhere.bloom_contains(elsewhere.bloom_agg(x), x) FROM (VALUES (row(1, 'a'::text))) v(x) GROUP BY x;
RESET search_path;
ALTER EXTENSION bloomfilter SET SCHEMA public;
