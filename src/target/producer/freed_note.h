// SPDX-License-Identifier: MIT
// freed_note: what a hook takes or notes of a block before the allocator frees or moves it.
// Context: T.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/books/block_words.h"

struct freed_note {
    uint64_t stamp;          // before the free; 0: nothing was noted
    struct word_block taken; // if the thread keeps a book; of row 0: the block had no word
    bool is_announced;       // by this one; else an outer realloc has an earlier stamp announced
};
