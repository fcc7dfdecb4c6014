// SPDX-License-Identifier: MIT
// inject: put the agent into a running process, switch its hooks on and off.
//
//   inject_open     refuse or accept the process; read mappings and modules; find an earlier agent
//   inject_map      map the agent's image, and a near block for each module to patch
//   (the caller plans the patches, makes calls of its own with inject->calls, and fills the agent's
//   data with target_process_write)
//   inject_patch    write stubs and trampolines, and under one stop the jumps
//   inject_unpatch  under one stop, restore the entries' bytes
//
// What is mapped stays mapped, because threads return through it: detaching restores bytes and
// unmaps nothing. A note in the target (inject_note.h) remembers image, near blocks and old bytes.
// So the next attach uses them again, also after a recorder that was killed; and a second recorder
// is refused.
//
// The target needs nothing of ours to be well: between two steps, and after a kill in the middle of
// one, an entry has either its old or its new bytes, and both work.
// Context: H, one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "inject/inject_note.h"
#include "inject/process/target_process.h"
#include "inject/process/threads/remote_calls.h"
#include "inject/process/threads/thread_stop.h"

struct patch_plan;

struct inject_options {
    struct stop_options stop;
    const struct kernel_calls *kernel; // NULL: kernel_calls_real
    // This recorder has hooked the process, or the one that it was forked from: leave its jumps.
    bool keeps_patches;
};

// Memory for the stubs and trampolines of a module, within reach of each of its bytes. It is r-x
// for the target, so inject_patch writes it.
struct inject_near {
    uint64_t module_start; // of its first page
    uint64_t module_end;   // behind its last page
    uint64_t bytes;        // wanted
    uint64_t key;          // of what the block will hold: blocks with equal keys have equal bytes
    uint64_t addr;         // set by inject_map
};

struct inject {
    struct target_process target;
    struct inject_options options;
    struct remote_calls calls; // for calls of the caller
    uint64_t image_addr;       // of the agent's byte 0; 0: not mapped
    struct stop_report stop;   // of the last inject_patch or inject_unpatch
    struct inject_note note;   // a copy of the one in the target
};

// Open a process for injection. `inject` must stay where it is. `options` may be NULL. If an
// earlier recorder left jumps behind, the old bytes are restored. Errors of target_process_open and
// thread_stop_run; ERR_PERMISSION for a target with seccomp filters that cannot be suspended, or
// with another recorder; ERR_NOT_FOUND if there are no jumps to keep.
enum err inject_open(struct inject *inject,
                     int pid,
                     const struct inject_options *options,
                     struct err_info *info) MUST_USE;

// Map the agent and set the addresses of the near blocks. `image` is an ELF shared object without
// undefined symbols, whose only relocations are R_X86_64_RELATIVE (ERR_INVALID otherwise). It is
// relocated and written, but none of it runs. An equal image, and near blocks of the same modules
// with the same keys, of an earlier attach are used again. Afterwards target.mappings is fresh.
// ERR_NO_MEMORY with a sentence if the target may not map it, ERR_LIMIT after too many attaches.
enum err inject_map(struct inject *inject,
                    struct bytes image,
                    struct inject_near *nears,
                    size_t count,
                    struct err_info *info) MUST_USE;

// Return the address of a defined symbol of the mapped image, 0 if it has none.
uint64_t inject_symbol(const struct inject *inject, struct bytes image, const char *name);

// Write the plan's blocks, and its jumps under one stop. Its blocks are at the addresses that
// inject_map gave. Its first index is that of its first jump in the note, or the next one there:
// jumps of earlier plans stay. ERR_INVALID if a block holds other bytes already; then its key was
// wrong. Otherwise fails as patching_apply does. After a failure no entry is changed.
enum err inject_patch(struct inject *inject, const struct patch_plan *plan, struct err_info *info)
    MUST_USE;

// Restore the entries. Does nothing, successfully, if none is changed or the target has ended.
enum err inject_unpatch(struct inject *inject, struct err_info *info) MUST_USE;

// Release what is ours; the target stays as it is. Accepts a zeroed one.
void inject_close(struct inject *inject);
