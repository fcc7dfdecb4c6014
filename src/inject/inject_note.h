// SPDX-License-Identifier: MIT
// inject_note: what an attach leaves in the target for the next one.
//
// It is in the target's memory, behind the list of calls (remote_calls.h), and whatever reads it
// checks it: the target can write there. A forked child has a copy. Context: H; no code.
#pragma once

#include <stdint.h>

#include "inject/process/threads/remote_calls.h"

#define INJECT_NOTE_MAGIC UINT64_C(0x65746f6e2d636169) // "iac-note"

enum {
    INJECT_NOTE_VERSION = 1,
    INJECT_NEARS_MAX = 64,
    INJECT_PATCHES_MAX = 320,
    INJECT_PATCH_BYTES = 8, // room for the patch of any architecture
};

struct inject_note_near {
    uint64_t module_start;
    uint64_t key;
    uint64_t image_addr; // its stubs jump there
    uint64_t addr;
    uint64_t bytes;
    uint64_t is_used; // jumps to it were written: threads may be in it until the process ends
};

struct inject_note_patch {
    uint64_t entry;
    uint8_t old_bytes[INJECT_PATCH_BYTES];
    uint8_t new_bytes[INJECT_PATCH_BYTES];
};

struct inject_note {
    uint64_t magic;
    uint32_t version;
    uint32_t next_slot;   // remote_calls.next_slot
    uint64_t page;        // its own address, which tells it from a copy elsewhere
    uint64_t owner_start; // of the process that wrote the patches: start in kernel ticks
    int32_t owner_pid;    // 0: there are no patches
    uint32_t near_count;
    uint32_t patch_count;
    uint32_t reserved;
    uint64_t image_addr; // 0: none
    struct inject_note_near nears[INJECT_NEARS_MAX];
    struct inject_note_patch patches[INJECT_PATCHES_MAX];
};
_Static_assert(sizeof(struct inject_note) <= REMOTE_NOTE_BYTES, "the note fits");
