/*
 * fp_address.c
 *		From a hash to a bucket, and from a bucket to a place in the file.
 *
 * This is linear hashing with partial expansions (Litwin 1980, Larson 1980).  At level L
 * there are 2^L groups, each of FP_GROUP = 4 buckets when the level begins.  Sweep m (0
 * to 3) adds bucket 4 + m to each group in turn, and an equal share of the entries of
 * each older bucket of the group moves to it.  After the fourth sweep a group has 8
 * buckets and becomes two groups of the next level: buckets 0 to 3 are the group with the
 * same number, buckets 4 to 7 the one whose number has bit L set.  No entry moves for
 * that, because only entries whose hash has bit L set have moved in the four sweeps.
 *
 * So each sweep enlarges the index by a quarter to a seventh, and an entry moves only to
 * a bucket that is newer than all others.  VACUUM relies on that.
 */
#include "fingerprint.h"

#include "port/pg_bitutils.h"

/*
 * The bucket of its group that contains an entry with bit L set, after each sweep: one of
 * the first 4 of the group (STAYS), or a new one.  Entries are spread evenly over the
 * numbers 0 to 419, of which a row of this table covers a range.  After sweep m, each new
 * bucket has 2 / (5 + m) of these numbers, and those that stay are the rest.
 */
#define STAYS				0xFF
#define DRAWN_FROM			420

static const struct
{
	uint16		end;			/* of the range, not included */
	uint8		after[FP_GROUP];
}			moves[] = {
	{60, {STAYS, STAYS, STAYS, 3}},
	{75, {STAYS, STAYS, 2, 3}},
	{140, {STAYS, STAYS, 2, 2}},
	{160, {STAYS, 1, 2, 2}},
	{175, {STAYS, 1, 1, 3}},
	{252, {STAYS, 1, 1, 1}},
	{280, {0, 1, 1, 1}},
	{300, {0, 0, 2, 2}},
	{315, {0, 0, 0, 3}},
	{DRAWN_FROM, {0, 0, 0, 0}}
};

/*
 * A number below `n` for a tag, different for each level and group.  Tags that are equal draw
 * the same number: the 2^16 of them divide a group finely enough.
 */
static uint32
draw(uint64 hash, unsigned level, uint32 group, uint32 n)
{
	uint64		x = (hash >> FP_TAG_SHIFT) * UINT64CONST(0x9E3779B97F4A7C15) + ((uint64) level << 32 | group);

	x = (x ^ (x >> 32)) * UINT64CONST(0xD6E8FEB86659FD93);
	x = (x ^ (x >> 32)) * UINT64CONST(0xD6E8FEB86659FD93);
	return (uint32) (((x >> 32) * n) >> 32);
}

/* The member of its group to which the sweeps of a level, up to sweep m, have moved an entry. */
static unsigned
moved_to(uint64 hash, unsigned level, uint32 group, unsigned m)
{
	uint32		x = draw(hash, level, group, DRAWN_FROM);
	unsigned	row = 0;

	for (unsigned i = 0; i < lengthof(moves) - 1; i++)
		row += x >= moves[i].end;
	return moves[row].after[m];
}

/* The member, of the first 4 of its group, that contains an entry when a level begins. */
static unsigned
home(uint64 hash, uint32 group)
{
	unsigned	level;

	if (group == 0)
		return draw(hash, FP_MAX_LEVEL + 1, 0, FP_GROUP);

	/* where the last level that set a bit of the group's number has left it */
	level = (unsigned) pg_leftmost_one_pos32(group);
	return moved_to(hash, level, group - (UINT32_C(1) << level), FP_GROUP - 1);
}

/* The bucket that is a member of a group at a level. */
uint32
fp_bucket_of(uint32 group, unsigned level, unsigned member)
{
	if (member < FP_GROUP)
	{
		if (group == 0)
			return member;
		level = (unsigned) pg_leftmost_one_pos32(group);
		group -= UINT32_C(1) << level;
		member += FP_GROUP;
	}
	return (member << level) + group;
}

/*
 * The bucket of a hash when its group has grown up to a step.  This uses only bits that an
 * entry has at that step: those of the tag, and the lowest ones up to bit L.
 */
uint32
fp_bucket(uint64 hash, FpStep step, unsigned *member)
{
	unsigned	level = fp_level(step);
	unsigned	sweeps = step % FP_GROUP;
	uint32		group = (uint32) (hash & ((UINT64CONST(1) << level) - 1));
	unsigned	to = STAYS;

	if (sweeps > 0 && (hash >> level & 1))
		to = moved_to(hash, level, group, sweeps - 1);
	to = to == STAYS ? home(hash, group) : FP_GROUP + to;
	if (member != NULL)
		*member = to;
	return fp_bucket_of(group, level, to);
}

FpOrigin
fp_origin(uint32 bucket)
{
	unsigned	level;
	FpOrigin	origin = {0, 0, bucket};

	if (bucket >= FP_GROUP)
	{
		level = (unsigned) pg_leftmost_one_pos32(bucket) - 2;
		origin.member = bucket >> level;
		origin.group = bucket - (origin.member << level);
		origin.step = level * FP_GROUP + (origin.member - FP_GROUP) + 1;
	}
	return origin;
}

/* The number of the group that a bucket belongs to at a level. */
uint32
fp_group_of(uint32 bucket, unsigned level)
{
	FpOrigin	origin = fp_origin(bucket);
	unsigned	made_at;

	if (origin.step == 0)
		return 0;
	made_at = fp_level(origin.step - 1);
	return level > made_at ? origin.group + (UINT32_C(1) << made_at) : origin.group;
}

/*
 * A step that the group of a hash has taken for certain, if a bucket that the hash belonged to once
 * has given entries away up to `step`.  A level divides a group into two, and then the bucket only
 * shows what its own half has taken: of the other half it shows that it has become one.
 */
FpStep
fp_step_shown(uint64 hash, uint32 bucket, FpStep step)
{
	unsigned	level = fp_level(step);
	uint32		different = (fp_group_of(bucket, level) ^ (uint32) hash) & (uint32) ((UINT64CONST(1) << level) - 1);

	return different == 0 ? step : (FpStep) (FP_GROUP * (pg_rightmost_one_pos32(different) + 1));
}

/* The number of buckets when `group` groups have taken the next step. */
uint32
fp_buckets_at(FpStep step, uint32 group)
{
	return ((FP_GROUP + step % FP_GROUP) << fp_level(step)) + group;
}

/* The number of buckets in an extent, as fp_extent has it. */
uint32
fp_extent_size(unsigned extent)
{
	const unsigned small = FP_GROUP * ((1 << FP_PIECES_LOG) - 1);

	if (extent == 0)
		return FP_GROUP;
	return extent <= small ? 1 : UINT32_C(1) << ((extent - 1 - small) / (FP_GROUP << FP_PIECES_LOG));
}

/*
 * The extent that a bucket is in, its place there, and the number of buckets in it.  The
 * buckets that a sweep makes are divided into up to 2^FP_PIECES_LOG extents of equal size.
 */
unsigned
fp_extent(uint32 bucket, uint32 *offset, uint32 *size)
{
	FpOrigin	origin = fp_origin(bucket);
	unsigned	level;
	unsigned	pieces_log;

	if (origin.step == 0)
	{
		*offset = bucket;
		*size = FP_GROUP;
		return 0;
	}
	level = fp_level(origin.step - 1);
	pieces_log = Min(level, FP_PIECES_LOG);
	*size = UINT32_C(1) << (level - pieces_log);
	*offset = origin.group & (*size - 1);
	return 1 + FP_GROUP * ((UINT32_C(1) << pieces_log) - 1) + (FP_GROUP << FP_PIECES_LOG) * (level - pieces_log) +
		((origin.member - FP_GROUP) << pieces_log) + (origin.group >> (level - pieces_log));
}
