// SPDX-License-Identifier: MIT
// api_pointers: gives the modules of a process that contain include/cairn.h the address of the
// agent's table, as announce.h of the preload library does in its own process.
//
// Each such module has a note in its image (owner "cairn", type 1) that locates its pointer to the
// table. Notes and pointers are the target's, and hostile: a pointer is only written where it is
// aligned, in a writable segment of its own module, and still NULL, or ours when it is taken back.
//
// Context: H, one thread. Failure: a module that cannot be read is left out, and its calls do
// nothing, as without a recorder.
#pragma once

#include <stdint.h>

#include "inject/process/target_process.h"

#define API_TABLE_SYMBOL "cairn_api_v1" // in the agent's image

// Let the modules, as target.modules lists them, have the table at `table`.
void api_pointers_give(const struct target_process *target, uint64_t table);

// Take it back from all modules that have it.
void api_pointers_take_back(const struct target_process *target, uint64_t table);
