// SPDX-License-Identifier: MIT
// relocate: moves the first instructions of a function to another place, so that a jump can take
// theirs.
//
// The jump has PATCH_BYTES (patch_arch.h). The instructions that it overwrites are decoded. Those
// that depend on their own address (branches, calls, operands relative to the instruction pointer)
// are rewritten to mean the same at the new place, and a jump to the rest of the function follows:
//
//   entry:  jmp stub                trampoline:  the first instructions, moved
//           rest of the function <-------------  jmp entry + moved bytes
//
// A function is refused if something could still run the overwritten bytes in their middle:
//
//   it does not decode            the bytes are not code, or of a newer processor
//   it is too short               it ends before PATCH_BYTES and no padding follows
//   a branch leads into it        some branch of the function targets bytes 1 to PATCH_BYTES - 1,
//                                 or jumps back to its first byte
//   a call returns into it        a return address on some stack may point there
//   it cannot be moved            jrcxz, loop: their reach is 127 bytes
//   a breakpoint is there         the copy of a debugger's int3 would trap at a foreign address
//
// On AArch64 a landing pad at the entry stays, because a call by pointer may only land on one
// (BTI), and the instruction behind it moves. A pad that signs the return address (paciasp) is
// undone by the stub and repeated by the trampoline, so a thread right behind it meets what it
// expects before and after.
//
// So only a program counter can be inside the overwritten bytes, and `moves` says where it
// continues. Pure functions over bytes. The bytes are hostile: they come from the target's memory.
// Context: H; any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "patch_arch.h"

#define RELOCATE_MOVES_MAX PATCH_BYTES // an instruction has at least one byte

enum relocate_refusal {
    RELOCATE_OK = 0,
    RELOCATE_UNDECODABLE,
    RELOCATE_TOO_SHORT,
    RELOCATE_BRANCH_INTO,
    RELOCATE_CALL_RETURNS_INTO,
    RELOCATE_UNMOVABLE,
    RELOCATE_BREAKPOINT,
    RELOCATE_OUT_OF_REACH, // an operand, or the trampoline itself, is too far away
};

// An instruction that begins at entry + from continues at trampoline + to.
struct relocate_move {
    uint8_t from;
    uint8_t to;
};

struct relocated {
    uint8_t code[TRAMPOLINE_BYTES]; // for the trampoline's address
    uint8_t code_len;
    uint8_t kept_len; // of a landing pad at the entry, which stays; the jump is behind it
    bool is_signing;  // the pad signs the return address; the stub undoes that
    uint8_t
        old_len; // of the moved instructions, at least PATCH_BYTES unless the function ends there
    uint8_t move_count;
    struct relocate_move moves[RELOCATE_MOVES_MAX];
};

// Move the first instructions of a function from `entry_addr` to `trampoline_addr`. `readable` are
// the bytes at the entry, `size_bytes` of them the function's, 0 if its size is unknown; the bytes
// behind a short function may be padding, which may be overwritten. `out` is written on success.
enum relocate_refusal relocate_prologue(struct bytes readable,
                                        uint64_t size_bytes,
                                        uint64_t entry_addr,
                                        uint64_t trampoline_addr,
                                        struct relocated *out);

// Return the reason as the end of a sentence: "is too short for a jump". "" for RELOCATE_OK.
const char *relocate_refusal_text(enum relocate_refusal refusal);

// Return whether the code at `addr` has a direct call or jump to the address `to`. On x86-64 bytes
// that only look like one count too.
bool relocate_leads_to(struct bytes code, uint64_t addr, uint64_t to);

// Write the jump that replaces the first bytes of a function. RELOCATE_OUT_OF_REACH if the stub is
// too far away.
enum relocate_refusal
relocate_write_jump(uint64_t entry_addr, uint64_t stub_addr, uint8_t out[PATCH_BYTES]);

// Write a stub for what was moved: it passes `index` to the code at `hook_addr`
// (session/agent_hooks.h), which may be anywhere.
void relocate_write_stub(const struct relocated *moved,
                         uint32_t index,
                         uint64_t hook_addr,
                         uint8_t out[STUB_BYTES]);

// Write a stub for `stub_addr` that passes the address of the trampoline, which follows it, to the
// code at `hook_addr`, which may be anywhere; for a function that changes all registers. x86-64
// only.
void relocate_write_abi_stub(uint64_t stub_addr, uint64_t hook_addr, uint8_t out[STUB_BYTES]);

// Let such a stub have the address of a throwing operator's nothrow form, before the trampoline.
void relocate_write_abi_nothrow(uint64_t nothrow_addr, uint8_t out[STUB_BYTES]);
