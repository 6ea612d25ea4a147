/*
 * fmgr.h
 *		Calling SQL functions, for fuzzing without a server; see postgres.h.
 */
#ifndef SHIM_FMGR_H
#define SHIM_FMGR_H

typedef struct NullableDatum
{
	Datum		value;
	bool		isnull;
} NullableDatum;

typedef struct FunctionCallInfoBaseData
{
	bool		isnull;
	NullableDatum args[4];
} FunctionCallInfoBaseData;

typedef FunctionCallInfoBaseData *FunctionCallInfo;

typedef struct Pg_finfo_record
{
	int			api_version;
} Pg_finfo_record;

#define PGDLLEXPORT
#define PG_FUNCTION_ARGS			FunctionCallInfo fcinfo
#define PG_ARGISNULL(n)				(fcinfo->args[n].isnull)
#define PG_GETARG_DATUM(n)			(fcinfo->args[n].value)
#define PG_RETURN_DATUM(x)			return (x)
#define PG_RETURN_POINTER(x)		return PointerGetDatum(x)
#define PG_RETURN_NULL() \
	do { \
		fcinfo->isnull = true; \
		return (Datum) 0; \
	} while (0)
#define PG_DETOAST_DATUM(x)			((struct varlena *) DatumGetPointer(x))
#define PG_DETOAST_DATUM_PACKED(x)	PG_DETOAST_DATUM(x)

#endif							/* SHIM_FMGR_H */
