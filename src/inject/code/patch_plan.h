// SPDX-License-Identifier: MIT
// patch_plan: everything that is to be written into a process to hook its allocators, computed
// before any of its threads is stopped.
//
// Each module with allocators gets one near block: memory in reach of each byte of the module's
// code, with a slot of PATCH_SLOT_BYTES for each patched function. The agent may be anywhere.
//
//   entry of malloc         near block of the module: slot         agent
//   +------------------+    +-----------------------------------+
//   | jmp stub         |--->| stub: push index, jmp *hook       |---> hook (agent_hooks.h)
//   | ...              |<---| trampoline: moved bytes, jmp back |<--- calls the trampoline
//   +------------------+    +-----------------------------------+
//
// The caller maps the blocks, writes their bytes, gives the agent its table (`index` to
// trampoline_addr, nothrow_addr, hook), stops the threads, moves program counters by `moves`, and
// writes `new_bytes`. To detach, it writes `old_bytes`. The blocks stay mapped until the end.
//
// A function that cannot be patched is in `refusals`, and the others are patched all the same. One
// that calls another function of the same module that is to be patched, as operator new of the C++
// runtime calls malloc, needs no patch and is not a reason to refuse.
// Invariant: entries differ, and no two patches overlap. Owns its vectors. Pure but for `reader`.
// Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "inject/code/code_reader.h"
#include "inject/code/relocate.h"
#include "session/agent_hooks.h"

#define PATCH_SLOT_BYTES (STUB_BYTES + TRAMPOLINE_BYTES)

// A function to patch, at its address in the process.
struct patch_target {
    uint64_t addr;
    uint64_t size_bytes; // 0: unknown
    enum agent_hook hook;
    int32_t nothrow;  // index in the same array, of the nothrow form of a throwing operator
    bool changes_all; // see changed_registers.h
    const char *name; // borrowed until the plan is released
};

struct patch {
    uint64_t entry_addr;
    uint64_t jump_addr; // of the bytes that change: the entry, or behind its landing pad
    uint8_t old_bytes[PATCH_BYTES];
    uint8_t new_bytes[PATCH_BYTES];
    uint32_t index; // in the agent's table; patches are in its order, from the plan's first_index
    enum agent_hook hook;
    const char *name;         // borrowed
    uint64_t stub_addr;       // in the near block
    uint64_t trampoline_addr; // in the near block; acts as the function did
    uint64_t nothrow_addr;    // of a throwing operator's nothrow form (its trampoline); 0: none
    bool has_abi_hook;        // its stub jumps to one of abi_hook_addrs
    uint8_t move_count;
    struct relocate_move moves[RELOCATE_MOVES_MAX];
};
DEFINE_VEC(patch_vec, struct patch);

// The bytes of a near block. Its size is that of its slots; the caller maps whole pages.
struct near_block {
    uint64_t addr;
    uint8_t *bytes; // owned
    size_t len;
};
DEFINE_VEC(near_block_vec, struct near_block);

struct patch_refusal {
    uint64_t addr;
    const char *name;   // borrowed
    const char *reason; // static; the end of a sentence that begins with the name
};
DEFINE_VEC(patch_refusal_vec, struct patch_refusal);

struct patch_plan {
    struct patch_vec patches;
    struct near_block_vec blocks;
    struct patch_refusal_vec refusals;
    uint32_t first_index;                  // set it before the first module is added
    uint64_t hook_addrs[AGENT_HOOK_COUNT]; // in the target; set them likewise. 0: not hooked
    // Likewise, for functions that change all registers. 0: the others do.
    uint64_t abi_hook_addrs[AGENT_HOOK_COUNT];
};

void patch_plan_release(struct patch_plan *plan); // accepts a zeroed one

// Return how many bytes the near block of a module with `count` functions needs.
static inline size_t patch_plan_block_bytes(size_t count)
{
    return count * PATCH_SLOT_BYTES;
}

// Add the functions of one module, whose near block begins at `block_addr`. A throwing operator
// without a nothrow form is not patched, because a hook cannot call it. ERR_NO_MEMORY.
enum err patch_plan_add(struct patch_plan *plan,
                        const struct patch_target *targets,
                        size_t count,
                        uint64_t block_addr,
                        const struct code_reader *reader) MUST_USE;

// Return where a thread at `pc` must continue once the patches are written: in a trampoline if the
// pc is inside overwritten bytes, else at `pc`. A thread at an entry itself stays, and meets the
// hook.
uint64_t patch_plan_moved_pc(const struct patch_plan *plan, uint64_t pc);
