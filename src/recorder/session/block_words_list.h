// SPDX-License-Identifier: MIT
// block_words_list: lists the live blocks of a process by their words
// (session/books/block_words.h) and entries (block_entries.h there), in the order of their
// addresses.
//
// Both are read with pread, words a chunk of address at a time: a hole in the file stays a hole,
// which a mapping would fill with pages. Each chunk is copied once. Whatever is in the file,
// addresses ascend, and those of words are inside the regions; rows and births are within their
// bits, and the caller checks what they mean.
//
// Stale words. Live blocks of malloc do not overlap. So if two listed blocks do, the older one was
// freed past the hooks, and if they are of one age, the one that starts inside the other. It is
// reported apart.
//
// While the process runs, the list is a sample: each word is either that of a block or not. Others
// can be served between two chunks.
// Context: H. Failure: ERR_NO_MEMORY, ERR_IO; some blocks were reported then.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "session/books/block_entries.h"

enum {
    BLOCK_WORDS_PAUSE = 4096 // about a millisecond of work
};

struct block_words_visitor {
    void *context;
    void (*live)(void *context, const struct word_block *block);
    void (*stale)(void *context, const struct word_block *block);
    // After each BLOCK_WORDS_PAUSE blocks or more. Return false to end the visit. NULL: none.
    bool (*goes_on)(void *context);
};

// Visit the blocks of all regions of `process` in the file whose words begin at `base`.
MUST_USE enum err block_words_list(int words_fd,
                                   uint64_t base,
                                   uint32_t process,
                                   const struct block_words_visitor *visitor,
                                   struct err_info *info);

// Where a process has had blocks so far: where it has not, an allocator has something of its own.
// Entries (block_entries.h) do not say it: once a block has had one, blocks may have been anywhere.
struct block_words_places;

// Find the regions of `process`, as above. ERR_NO_MEMORY, ERR_IO.
MUST_USE enum err block_words_places_open(int words_fd,
                                          uint64_t base,
                                          uint32_t process,
                                          struct block_words_places **out);
void block_words_places_free(struct block_words_places *places);

// Return whether a block has begun in the pages of a range; also if that is unknown.
bool block_words_places_any(const struct block_words_places *places, uint64_t start, uint64_t end);
