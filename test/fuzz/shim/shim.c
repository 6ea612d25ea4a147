/*
 * shim.c
 *		As much of PostgreSQL as the builders need, for fuzzing without a server.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <sanitizer/asan_interface.h>

#include "postgres.h"
#include "fmgr.h"

#include "agg.h"
#include "expanded.h"
#include "memory.h"

char		shim_message[200];

static jmp_buf handler;
static bool handling = false;
static unsigned steps_left = 0; /* 0: nothing fails */

/* ----------------------------------------------------------------
 * Errors and faults
 * ----------------------------------------------------------------
 */

void
shim_assert_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "assertion failed: %s, %s:%d\n", condition, file, line);
	abort();
}

/* Leave what shim_run() runs. */
void
shim_throw(ShimOutcome why)
{
	if (!handling)
	{
		fprintf(stderr, "error where none was expected: %s\n", shim_message);
		abort();
	}
	longjmp(handler, why);
}

/* Run something that may throw. */
ShimOutcome
shim_run(void (*work) (void *arg), void *arg)
{
	ShimOutcome outcome = SHIM_DONE;

	switch (setjmp(handler))
	{
		case SHIM_DONE:
			handling = true;
			work(arg);
			break;
		case SHIM_ERROR:
			outcome = SHIM_ERROR;
			break;
		default:
			outcome = SHIM_FAULT;
	}
	handling = false;
	steps_left = 0;
	return outcome;
}

/* In the next shim_run(), make the n-th allocation or poll fail; 0: none. */
void
shim_fail_after(unsigned steps)
{
	steps_left = steps;
}

/* A place where something could fail. */
static void
fault_point(const char *what)
{
	if (!handling || steps_left == 0 || --steps_left > 0)
		return;
	snprintf(shim_message, sizeof(shim_message), "%s failed on purpose", what);
	shim_throw(SHIM_FAULT);
}

void
shim_poll(void)
{
	fault_point("poll");
}

int
errmsg(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(shim_message, sizeof(shim_message), format, arguments);
	va_end(arguments);
	return 0;
}

/* These are formatted too, for the sanitizers to see their arguments. */
static void
format_away(const char *format, va_list arguments)
{
	char		text[500];

	vsnprintf(text, sizeof(text), format, arguments);
}

int
errdetail(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	format_away(format, arguments);
	va_end(arguments);
	return 0;
}

int
errhint(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	format_away(format, arguments);
	va_end(arguments);
	return 0;
}

/* ----------------------------------------------------------------
 * Memory
 * ----------------------------------------------------------------
 */

/* Before each block, and out of bounds for whoever uses it. */
typedef struct Block
{
	struct Block *next;
	struct Block *previous;
	Size		size;
	uint64		magic;
} Block;

#define BLOCK_MAGIC		UINT64_C(0x626c6f636b73)
#define MEMORY_MAGIC	UINT64_C(0x6d656d6f7279)	/* of memory_alloc */

static Block *blocks = NULL;

static void *
block_allocate(Size size, bool huge)
{
	Block	   *block;

	if (!huge && size > MaxAllocSize)
	{
		errmsg("invalid memory alloc request size " UINT64_FORMAT, size);
		shim_throw(SHIM_ERROR);
	}
	block = malloc(sizeof(Block) + size);
	if (block == NULL)
	{
		errmsg("out of memory");
		shim_throw(SHIM_ERROR);
	}
	block->size = size;
	block->magic = BLOCK_MAGIC;
	block->previous = NULL;
	block->next = blocks;
	if (blocks != NULL)
	{
		ASAN_UNPOISON_MEMORY_REGION(blocks, sizeof(Block));
		blocks->previous = block;
		ASAN_POISON_MEMORY_REGION(blocks, sizeof(Block));
	}
	blocks = block;
	memset(block + 1, 0xC5, size);
	ASAN_POISON_MEMORY_REGION(block, sizeof(Block));
	return block + 1;
}

/* The block of a pointer, which has to be the start of one of its kind. */
static Block *
block_of(void *pointer, uint64 magic)
{
	Block	   *block;

	if (pointer == NULL)
	{
		fprintf(stderr, "NULL is freed or reallocated\n");
		abort();
	}
	block = (Block *) pointer - 1;
	ASAN_UNPOISON_MEMORY_REGION(block, sizeof(Block));
	if (block->magic != magic)
	{
		fprintf(stderr, "what is freed or reallocated was not allocated like that\n");
		abort();
	}
	return block;
}

static void
block_free(Block *block)
{
	Block	   *neighbours[2] = {block->next, block->previous};

	for (int i = 0; i < 2; i++)
	{
		if (neighbours[i] == NULL)
			continue;
		ASAN_UNPOISON_MEMORY_REGION(neighbours[i], sizeof(Block));
		if (i == 0)
			neighbours[i]->previous = block->previous;
		else
			neighbours[i]->next = block->next;
		ASAN_POISON_MEMORY_REGION(neighbours[i], sizeof(Block));
	}
	if (blocks == block)
		blocks = block->next;
	block->magic = 0;
	free(block);
}

void *
palloc_extended(Size size, int flags)
{
	fault_point("allocation");
	return block_allocate(size, (flags & MCXT_ALLOC_HUGE) != 0);
}

void *
palloc(Size size)
{
	return palloc_extended(size, 0);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

/* Always to another place, so that old pointers are found out. */
static void *
block_reallocate(void *pointer, Size size, bool huge)
{
	Block	   *old = block_of(pointer, BLOCK_MAGIC);
	Size		old_size = old->size;
	void	   *moved;

	ASAN_POISON_MEMORY_REGION(old, sizeof(Block));
	fault_point("allocation");
	moved = block_allocate(size, huge);
	memcpy(moved, pointer, Min(old_size, size));
	block_free(block_of(pointer, BLOCK_MAGIC));
	return moved;
}

void *
repalloc(void *pointer, Size size)
{
	return block_reallocate(pointer, size, false);
}

void *
repalloc_huge(void *pointer, Size size)
{
	return block_reallocate(pointer, size, true);
}

void
pfree(void *pointer)
{
	block_free(block_of(pointer, BLOCK_MAGIC));
}

/* Forget everything that an input allocated. */
void
shim_free_all(void)
{
	while (blocks != NULL)
	{
		ASAN_UNPOISON_MEMORY_REGION(blocks, sizeof(Block));
		block_free(blocks);
	}
}

/*
 * Instead of src/memory.c, which would leave room behind a block.  What comes from
 * here must go back here.
 */
void *
memory_alloc(MemoryContext context, Size size)
{
	void	   *memory;
	Block	   *block;

	(void) context;
	fault_point("allocation");
	memory = block_allocate(size, true);
	block = block_of(memory, BLOCK_MAGIC);
	block->magic = MEMORY_MAGIC;
	ASAN_POISON_MEMORY_REGION(block, sizeof(Block));
	return memory;
}

void *
memory_alloc_zero(MemoryContext context, Size size)
{
	return memset(memory_alloc(context, size), 0, size);
}

void
memory_free(void *memory)
{
	block_free(block_of(memory, MEMORY_MAGIC));
}

void
memory_advise(void *memory, Size size)
{
	(void) memory;
	(void) size;
}

/* ----------------------------------------------------------------
 * Other parts of the extension
 * ----------------------------------------------------------------
 */

MemoryContext
agg_context(FunctionCallInfo fcinfo)
{
	(void) fcinfo;
	return CurrentMemoryContext;
}

/* Flat states are never met here. */
struct varlena *
agg_settled(struct varlena *value)
{
	return value;
}

ExpandedFilter *
expanded_filter_create(MemoryContext parent)
{
	ExpandedFilter *expanded = palloc0(sizeof(ExpandedFilter));

	(void) parent;
	expanded->header.vl_len_ = EOH_HEADER_MAGIC;
	return expanded;
}

/* The header is the first in the object. */
Datum
EOHPGetRWDatum(ExpandedObjectHeader *header)
{
	return PointerGetDatum(build_flat(&((ExpandedFilter *) header)->builder.base));
}

/* All memory is freed after each input. */
void
DeleteExpandedObject(Datum object)
{
	(void) object;
}

char *
key_class_label(const KeyClass *class)
{
	char	   *label = palloc((Size) class->name_length + 10);

	if (class->code == BF_CLASS_NAMED)
	{
		memcpy(label, class->name, class->name_length);
		label[class->name_length] = '\0';
	}
	else
		snprintf(label, 10, "class %u", class->code);
	return label;
}
