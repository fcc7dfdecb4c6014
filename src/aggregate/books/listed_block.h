// SPDX-License-Identifier: MIT
// listed_block: a live block of a process, as its word says (session/books/block_words.h). Context:
// H.
#pragma once

#include <stdint.h>

#include "host/containers/vec.h"

struct listed_block {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t row;     // of the row table
    uint32_t weight;  // session/books/sampling_level.h
    uint32_t born_ms; // at most UINT32_MAX
};

DEFINE_VEC(listed_block_vec, struct listed_block);
