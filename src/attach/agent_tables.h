// SPDX-License-Identifier: MIT
// agent_tables: fills the agent's page and tables (session/agent_page.h) in a running process.
//
// Context: H, before the agent is enabled. Modules and paths beyond the tables' room are left out,
// and counted.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/err.h"
#include "host/containers/vec.h"

// Unwind tables that were made for a module (unwind_copy.h).
struct agent_unwind {
    uint64_t module_start;
    uint64_t addr;
    uint64_t bytes;
};
DEFINE_VEC(agent_unwind_vec, struct agent_unwind);

// Addresses in the target.
struct agent_places {
    uint64_t page;
    uint64_t session;
    uint64_t session_bytes; // that are mapped
    uint64_t words;         // of the session; 0: they are not mapped
    uint64_t attachment;    // zeroed
    uint64_t process_page;
    const struct agent_unwind_vec *unwind; // borrowed
    uint32_t process_flags;                // of the process: enum process_flags (session/layout.h)
};

// What the tables lack.
struct agent_gaps {
    uint32_t omitted_modules; // for lack of room
    bool lacks_stack_top;     // of the first thread
};

// Write page, patches and modules; `enabled` stays 0. ERR_NOT_FOUND if the process has ended.
enum err agent_tables_write(const struct attach *attach,
                            const struct agent_places *places,
                            struct agent_gaps *gaps) MUST_USE;
