// SPDX-License-Identifier: MIT
// old_session: give back the addresses that an earlier attach left reserved in a process.
//
// A session has room for 4096 lanes, 5.2 GB of addresses, and for block words, 1.3 TiB. A thread
// makes its lane accessible when it records its first event, and regions of words at their first
// block; the others stay inaccessible, and are of no use after the detach. Those are unmapped by
// the next attach. What was accessible stays, and so does the rest.
//
// Nothing may open a lane, or words, of the old session while it is unmapped, or later, when the
// program may have mapped its own memory there. A thread opens them in one piece of the agent's
// code, with all signals blocked (thread_state_open, process_words_map), so no handler and no
// coroutine can suspend it there: it is in the agent, and runs on its present stack. So all threads
// are stopped, and if one has its program counter in the agent, or an address of the agent on its
// stack, all stays as it is.
// Nothing enters the agent afterwards, because the functions have their own bytes by then. The
// mappings are read after the stop, so a lane that was opened just before it counts as accessible.
//
// Context: H. Failure: the addresses stay reserved, which harms nothing.
#pragma once

#include "attach/attach.h"

// Needs an attach whose functions are restored, and whose agent still has the page of the earlier
// attach. Afterwards the target's mappings are fresh, if it still runs.
void old_session_release(struct attach *attach);
