// SPDX-License-Identifier: MIT
// waiting_arch (AArch64): what the loader's empty function does while fresh_stop.h waits.
//
// It counts down from 2^29 and returns. That takes 0.2 to 1 second of a processor: longer than a
// look is late, and short if the recorder was killed. It uses a register that a caller does not
// rely on. The function is a single `ret`, and another one may follow at once, so it becomes a
// branch to the code, which is behind the loader's text. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "inject/process/code_cave.h"

enum {
    WAITING_PIECES_MAX = 2,
    WAITING_BYTES_MAX = 16,
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
    const struct address_range cave = code_cave_of(target, loader);
    const int64_t words = (int64_t)(cave.start - function) / 4;
    out[0] = (struct waiting_piece){.addr = cave.start, .len = 16};
    put_u32(out[0].bytes, 0x52a40010);      // movz w16, #0x2000, lsl #16
    put_u32(out[0].bytes + 4, 0x51000610);  // sub w16, w16, #1
    put_u32(out[0].bytes + 8, 0x35fffff0);  // cbnz w16, to the sub
    put_u32(out[0].bytes + 12, 0xd65f03c0); // ret
    out[1] = (struct waiting_piece){.addr = function, .len = 4};
    put_u32(out[1].bytes, 0x14000000u | ((uint32_t)words & 0x03ffffffu)); // b
    const bool is_near = words > -0x2000000 && words < 0x2000000;
    return cave.end - cave.start >= WAITING_BYTES_MAX && is_near ? 2 : 0;
}
