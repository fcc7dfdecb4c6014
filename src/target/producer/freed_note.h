// SPDX-License-Identifier: MIT
// freed_note: what a hook takes of a block before the allocator frees or moves it. Context: T.
#pragma once

#include <stdbool.h>

#include "session/books/block_words.h"

struct freed_note {
    bool is_taken;           // else `taken` says nothing
    struct word_block taken; // of row 0: the block had no word
};
