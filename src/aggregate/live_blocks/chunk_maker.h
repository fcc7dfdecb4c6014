// SPDX-License-Identifier: MIT
// chunk_maker: chunks of memory of 2 MiB, and a thread that makes such of one huge page.
//
// To find a huge page, the kernel may have to move others out of the way, which takes milliseconds,
// and the recorder's promise is to stand still for no more than ten. So one is asked for, and
// fetched when it is there. The thread unmaps what is not needed any more besides. It sleeps else,
// and holds nothing while nobody has asked.
//
// Forked copies of us do not have the chunks (MADV_DONTFORK), nor the thread. Context: H, one
// thread beside the maker's own. Failure: where no huge page is to be had, or no thread, nothing
// but speed is lost.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CHUNK_BYTES ((size_t)2 << 20)

// A chunk of zeroes in small pages, which are there when they are written to; aligned to
// CHUNK_BYTES. NULL: no memory.
char *chunk_map(void);
void chunk_unmap(char *chunk);

struct chunk_maker;

// NULL: no memory, or no thread to be had.
struct chunk_maker *chunk_maker_begin(void);
void chunk_maker_end(struct chunk_maker *maker); // accepts NULL

// Asks for a chunk that is one huge page. Before the next one is asked for, it is to be fetched or
// cancelled.
void chunk_maker_ask(struct chunk_maker *maker);

// Whether there is an answer: then *chunk is the caller's, or NULL if there is no huge page now.
bool chunk_maker_fetch(struct chunk_maker *maker, char **chunk);

// Has `old` unmapped, at most one chunk after each that was fetched.
void chunk_maker_discard(struct chunk_maker *maker, char *old);

// What was asked for is not needed any more. Nothing may have been.
void chunk_maker_cancel(struct chunk_maker *maker);
