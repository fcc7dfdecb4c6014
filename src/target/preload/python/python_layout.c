// SPDX-License-Identifier: MIT
#include "target/preload/python/python_layout.h"

#include <pthread.h>
#include <stddef.h>

#include "base/compiler.h"

// An offset behind the two locks of the interpreter's lock. glibc's have 40 bytes on x86-64, and 48
// on AArch64.
#define GIL_LOCKS(offset) ((offset) + 2 * (sizeof(pthread_mutex_t) - 40))

static const struct python_layout layouts[] = {
    {
        .version = 0x030a,
        .runtime = {.finalizing = 16,
                    .has_thread_key = GIL_LOCKS(584),
                    .thread_key = GIL_LOCKS(588)},
        .thread = {.frame = 24, .cframe = 48},
        .cframe = {.previous = 8, .bytes = 16},
        .frame = {.code = 32, .previous = 24, .instruction = 96, .depth = 80, .bytes = 352},
        .code = {.first_line = 40,
                 .file = 104,
                 .name = 112,
                 .lines = 120,
                 .bytecode = 48,
                 .instructions = 176},
        .bytes = {.size = 16, .data = 32},
        .text = {.length = 16, .hash = 24, .state = 32, .ascii_data = 48, .other_data = 72},
    },
    {
        .version = 0x030b, // the offsets are the same in all releases of 3.11
        .runtime = {.finalizing = 24,
                    .has_thread_key = GIL_LOCKS(592),
                    .thread_key = GIL_LOCKS(596)},
        .thread = {.frame = 56},
        .cframe = {.frame = 8, .previous = 16, .bytes = 24},
        .frame = {.code = 32, .previous = 48, .instruction = 56, .is_entry = 68, .bytes = 72},
        .code = {.first_line = 72, .file = 112, .name = 128, .lines = 136, .instructions = 184},
        .bytes = {.size = 16, .data = 32},
        .text = {.length = 16, .hash = 24, .state = 32, .ascii_data = 48, .other_data = 72},
    },
    {
        .version = 0x030c,
        .runtime = {.finalizing = 24, .has_thread_key = 1544, .thread_key = 1548},
        .thread = {.frame = 56},
        .cframe = {.frame = 0, .previous = 8, .bytes = 16},
        .frame =
            {.code = 0, .previous = 8, .instruction = 56, .owner = 70, .c_stack = 3, .bytes = 72},
        .code = {.first_line = 68, .file = 112, .name = 128, .lines = 136, .instructions = 192},
        .bytes = {.size = 16, .data = 32},
        .text = {.length = 16, .hash = 24, .state = 32, .ascii_data = 40, .other_data = 56},
    },
    {
        .version = 0x030d,
        .runtime = {.finalizing = 608, .has_thread_key = 2160, .thread_key = 2164},
        .thread = {.frame = 72},
        .frame =
            {.code = 0, .previous = 8, .instruction = 56, .owner = 70, .c_stack = 3, .bytes = 72},
        .code = {.first_line = 68, .file = 112, .name = 128, .lines = 136, .instructions = 200},
        .bytes = {.size = 16, .data = 32},
        .text = {.length = 16, .hash = 24, .state = 32, .ascii_data = 40, .other_data = 56},
    },
    {
        .version = 0x030e,
        .runtime = {.finalizing = 784, .has_thread_key = 2336, .thread_key = 2340},
        .thread = {.frame = 72},
        .frame =
            {.code = 0, .previous = 8, .instruction = 56, .owner = 74, .c_stack = 3, .bytes = 80},
        .code = {.first_line = 68, .file = 112, .name = 128, .lines = 136, .instructions = 208},
        .bytes = {.size = 16, .data = 32},
        .text = {.length = 16, .hash = 24, .state = 32, .ascii_data = 40, .other_data = 56},
    },
};

const struct python_layout *python_layout_of(uint32_t version)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        if (layouts[i].version == version) {
            return &layouts[i];
        }
    }
    return NULL;
}
