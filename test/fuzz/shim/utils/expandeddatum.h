/*
 * expandeddatum.h
 *		Expanded objects for the fuzz targets: there are none among the arguments,
 *		and a result is flattened at once.
 */
#ifndef SHIM_EXPANDEDDATUM_H
#define SHIM_EXPANDEDDATUM_H

typedef struct ExpandedObjectHeader
{
	uint32		vl_len_;
	MemoryContext eoh_context;
} ExpandedObjectHeader;

typedef struct varatt_expanded
{
	ExpandedObjectHeader *eohptr;
} varatt_expanded;

#define EOH_HEADER_MAGIC				0xFFFFFFFF
#define VARATT_IS_EXPANDED_HEADER(p)	((p)->header.vl_len_ == EOH_HEADER_MAGIC)
#define VARATT_IS_EXTERNAL_EXPANDED(p)	((void) (p), false)
#define VARATT_IS_EXTERNAL_EXPANDED_RW(p)	((void) (p), false)
#define VARDATA_EXTERNAL(p)				VARDATA(p)

extern Datum EOHPGetRWDatum(ExpandedObjectHeader *header);
extern void DeleteExpandedObject(Datum object);

#endif							/* SHIM_EXPANDEDDATUM_H */
