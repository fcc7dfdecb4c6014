// SPDX-License-Identifier: MIT
// agent_modules: the agent's part of module_table.h: a list that needs neither libc nor the loader.
//
// The recorder lists the modules from /proc/PID/maps before it enables the agent. Afterwards the
// patched _dl_debug_state, which the loader calls under its own lock whenever its list is complete,
// lists them anew: those that are never unloaded are taken over, the others come from the loader's
// list. There are two lists. A reader finds a module in the current one and begins again if that
// was replaced meanwhile. Paths are only ever added to one pool.
//
// Context: T. Changes only by the thread that has the loader's lock. Failure: modules beyond
// AGENT_MODULES_MAX, and paths beyond the pool, are left out; walks follow frame pointers there.
#pragma once

// List the modules anew if the loader's list is complete.
void agent_modules_changed(void);
