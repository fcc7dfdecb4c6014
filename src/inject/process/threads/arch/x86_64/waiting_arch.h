// SPDX-License-Identifier: MIT
// waiting_arch (x86-64): what the loader's empty function does while fresh_stop.h waits.
//
// It counts down from 2^26, with a pause at each step, and returns. That takes 0.3 to 3 seconds of
// a processor, depending on its kind: longer than a look is late, and short if the recorder was
// killed. It uses a register that a caller does not rely on. The code takes the place of the
// function and of the padding behind it. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "inject/process/target_process.h"

enum {
    WAITING_PIECES_MAX = 1,
    WAITING_BYTES_MAX = 16, // functions begin at its multiples
};

struct waiting_piece {
    uint64_t addr;
    uint8_t bytes[WAITING_BYTES_MAX];
    size_t len;
};

// Set the pieces of code to write, the one at the function last. Returns their number; 0: there is
// no room.
ALWAYS_INLINE size_t waiting_make(const struct target_process *target,
                                  const struct target_module *loader,
                                  uint64_t function,
                                  struct waiting_piece out[WAITING_PIECES_MAX])
{
    static const uint8_t code[] = {
        0xb9, 0x00, 0x00, 0x00, 0x04, // mov $0x4000000, %ecx
        0xf3, 0x90,                   // pause
        0xff, 0xc9,                   // dec %ecx
        0x75, 0xfa,                   // jnz to the pause
        0xc3,                         // ret
    };
    (void)target; // it needs no other room
    (void)loader;
    _Static_assert(sizeof(code) <= WAITING_BYTES_MAX, "it fits");
    out[0] = (struct waiting_piece){.addr = function, .len = sizeof(code)};
    memcpy(out[0].bytes, code, sizeof(code));
    return function % WAITING_BYTES_MAX == 0 ? 1 : 0;
}
