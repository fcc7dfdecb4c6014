// SPDX-License-Identifier: MIT
// custom_block: the addresses of blocks of the program's own allocator (include/cairn.h), in
// records (wire.h) and in words (block_words.h). Context: T and H.
#pragma once

#include <stdint.h>

// Set in such an address. User addresses never have this bit, even under five-level paging.
#define WIRE_CUSTOM_BLOCK ((uint64_t)1 << 55)
