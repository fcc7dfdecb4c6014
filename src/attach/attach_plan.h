// SPDX-License-Identifier: MIT
// attach_plan: which functions of a process's modules are hooked, and how: the steps of attach.h
// that change nothing in the process.
//
//   attach_plan_examine   find the allocator of a module; once for each module
//   attach_plan_nears     how much memory each module needs nearby
//   (inject_map gives it)
//   attach_plan_patches   the plan, for the addresses of that memory
//
// They fill `modules`, `nears` and `plan` of the attach, in the same order, with one entry for each
// module that has an allocator. Before, `plan.first_index` is set. Context: H, one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/err.h"

// Note that a part of the process could not be read, for the next words to the user. Once for each
// name. What fails for lack of memory is found by the caller of the next step.
void attach_plan_note_unread(struct attach *attach, const char *name);
// Note the modules whose headers could not be read.
void attach_plan_note_modules(struct attach *attach);

// Find the allocator in one module, or note that it has none. ERR_UNSUPPORTED: a fresh program has
// a sanitizer inside. ERR_NO_MEMORY, ERR_IO: cairn itself has no descriptor to read it.
enum err attach_plan_examine(struct attach *attach,
                             const struct target_module *module,
                             const struct attach_options *options,
                             struct err_info *info) MUST_USE;

// Whether the module's file was examined before and has no allocator.
bool attach_plan_is_plain(const struct attach *attach,
                          const struct target_module *module,
                          const struct attach_options *options);

// Return how many bytes of a module's near block are slots; unwind tables follow.
uint64_t attach_plan_slots_bytes(const struct attach_module *found);

// ERR_LIMIT, ERR_NO_MEMORY.
enum err attach_plan_nears(struct attach *attach, struct err_info *info) MUST_USE;

// ERR_CORRUPT if the agent in the process is not ours, ERR_NO_MEMORY.
enum err attach_plan_patches(struct attach *attach, struct err_info *info) MUST_USE;

// Tell the agent from which size on blocks are 32 bytes apart, with the allocators of `modules` and
// those of earlier calls. ERR_NOT_FOUND if the process has ended.
enum err attach_plan_send_sizes(const struct attach *attach) MUST_USE;

// Release the three; they are empty afterwards.
void attach_plan_release(struct attach *attach);
