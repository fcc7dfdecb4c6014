// SPDX-License-Identifier: MIT
// code_reader: where instructions are read: the target's memory, or a file. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns how many bytes at `addr` it copied, less than `len` where readable memory ends.
struct code_reader {
    size_t (*read)(void *context, uint64_t addr, uint8_t *out, size_t len);
    void *context;
};
