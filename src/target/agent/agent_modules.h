// SPDX-License-Identifier: MIT
// agent_modules: what the agent knows of a module besides module_table.h.
//
// Context: T, any thread.
#pragma once

#include <stdint.h>

// Return the flags of the module that has `pc`: enum agent_module_flags; 0: it is in none.
uint32_t agent_module_flags_at(uint64_t pc);
