// SPDX-License-Identifier: MIT
// live_entries: pairs allocations with frees by the entries of their blocks
// (session/books/block_entries.h), where words cannot (live_words.h).
//
// The order is that of live_words.h: a put comes before the malloc returns, a take before the free
// is called. So whatever threads access the entry of a live block do so one after the other. Only a
// free entry is contended, and claimed by compare and swap.
//
// Context: T, any thread, and its signal handlers in the middle of these functions. No lock, no
// system call but for a new chunk. Failure: no entry is free and no chunk can be had; the callers
// count the block as lost.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/books/block_entries.h"
#include "target/producer/words/live_words.h"

// Whether any block of this process has had an entry.
ALWAYS_INLINE bool entries_are_used(const struct process_words *words)
{
    return process_words_chunk_find(words, 0) != NULL; // a block's own put precedes its take
}

// End the entry of a block that was freed past the hooks: add it to `ended`.
void entries_end(struct process_words *words, uint64_t address, struct words_ended *ended);

// Store the entry of a new block, whose address has none. false: there is no room.
bool entries_put(struct process_words *words, const struct word_block *block);

// Take the entry of a block that is about to be freed. false: it has none.
bool entries_take(struct process_words *words, uint64_t address, struct word_block *out);

// Give the block's entry a row and a birth, if it is there and has the row `before`.
bool entries_settle(struct process_words *words, const struct word_block *block, uint32_t before);
