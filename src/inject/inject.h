// SPDX-License-Identifier: MIT
// inject: put the agent into a running process, switch its hooks on and off.
//
//   inject_open    refuse or accept the process; read mappings and modules; find an earlier agent
//   inject_map     map the agent's image and a near block for each module to patch
//   (the caller plans the patches, makes more calls with inject->calls, and fills the agent's page)
//   inject_patch   under one stop: write jumps to the entries
//   inject_unpatch under one stop: restore the entries' bytes
//
// What is mapped stays for ever, because threads return through it: detaching restores bytes and
// unmaps nothing. A note in the target (inject_note.h) remembers image, near blocks and old bytes;
// so the next attach uses them again, also after a recorder that was killed.
//
// Nothing of ours needs to live on for the target to be well: between two steps, and after a kill
// in the middle of one, every entry has either its old or its new bytes, and both work.
// x86-64 only: ERR_UNSUPPORTED with a sentence on other machines. Context: H, one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "inject/process/remote_calls.h"
#include "inject/process/target_process.h"
#include "inject/process/thread_stop.h"

struct patch_plan;

struct inject_options {
    struct stop_options stop;
    const struct kernel_calls *kernel; // NULL: kernel_calls_real
};

// Memory for stubs and trampolines, within 2 GB of each byte of the module's text. It is r-x for
// the target; write with target_process_write().
struct inject_near {
    uint32_t module; // index in target.modules
    uint32_t bytes;  // wanted; whole pages
    uint64_t addr;   // set by inject_map
};

struct inject {
    struct target_process target;
    struct inject_options options;
    struct remote_calls calls; // for calls of the caller
    uint64_t image_addr;       // of the agent's byte 0; 0: not mapped
    bool is_known;             // the target has an agent of an earlier attach
    struct stop_report stop;   // of the last inject_patch or inject_unpatch
};

// Open a process for injection. `options` may be NULL. Errors of target_process_open, and
// ERR_PERMISSION for a target with seccomp filters that cannot be suspended. If an earlier recorder
// left patches behind, their old bytes are restored first.
enum err inject_open(struct inject *inject,
                     int pid,
                     const struct inject_options *options,
                     struct err_info *info) MUST_USE;

// Map the agent and set the addresses of the near blocks. `image` is an ELF shared object without
// undefined symbols, whose only relocations are R_X86_64_RELATIVE; ERR_INVALID otherwise. It is
// mapped, relocated and written, but none of it runs. An agent with the same image, and near blocks
// of the same modules, of an earlier attach are used again; the agent's data stays as it was then.
enum err inject_map(struct inject *inject,
                    struct bytes image,
                    struct inject_near *nears,
                    size_t count,
                    struct err_info *info) MUST_USE;

// Find the address of a global symbol of the image in the target, 0 if it has none.
uint64_t inject_symbol(const struct inject *inject, struct bytes image, const char *name);

// Write the plan's stubs and trampolines, and the jumps under one stop. Fails if an entry no longer
// has the planned old bytes (ERR_CORRUPT); then no entry is changed.
enum err inject_patch(struct inject *inject, const struct patch_plan *plan, struct err_info *info)
    MUST_USE;

// Restore the entries of the last plan. Does nothing if the target has ended.
enum err inject_unpatch(struct inject *inject, struct err_info *info) MUST_USE;

// Release what is ours; the target stays as it is. Accepts a zeroed one.
void inject_close(struct inject *inject);
