// SPDX-License-Identifier: MIT
// patching: write a plan's jumps into a target under one stop, and take them back.
//
// While all threads are stopped: each entry must have its planned old bytes; a thread whose program
// counter is inside them continues in the trampoline; if a stack holds an address inside them
// (stop_scan.h), the threads are let go and stopped again later. Then the jumps are written. If one
// cannot be written, those before it are restored.
//
// Threads are only moved to trampolines, which do the same with or without the jumps, so every
// moment of this is a good one to be killed, but for a write of five bytes that cross a page.
// Context: H.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "inject/code/patch_plan.h"
#include "inject/inject_note.h"
#include "inject/process/threads/thread_stop.h"

// Write the jumps of a plan whose stubs and trampolines are in place. ERR_CORRUPT if an entry has
// other bytes, ERR_IO if it cannot be written, and the errors of thread_stop_run.
enum err patching_apply(struct target_process *target,
                        const struct stop_options *options,
                        const struct patch_plan *plan,
                        struct stop_report *report,
                        struct err_info *info) MUST_USE;

// Write the old bytes to each entry that has the new ones. Others were changed or unmapped by the
// target, and stay. Needs fresh mappings. ERR_IO if one cannot be read or written, and the errors
// of thread_stop_run.
enum err patching_restore(struct target_process *target,
                          const struct stop_options *options,
                          const struct inject_note_patch *patches,
                          size_t count,
                          struct stop_report *report,
                          struct err_info *info) MUST_USE;
