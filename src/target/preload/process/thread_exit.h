// SPDX-License-Identifier: MIT
// thread_exit: closes the lane of a thread that ends.
//
// The preload library has a key whose destructor does it, in its last round: the key re-arms itself
// until then, because other destructors allocate and free. The agent cannot have a key; there the
// recorder closes the lanes of threads that are gone. Context: T; errno is kept.
#pragma once

// Prepare, once, before any lane is opened.
void thread_exit_prepare(void);

// Ensure that the calling thread, which has opened a lane, closes it. Not under the guard: libc may
// allocate.
void thread_exit_arm(void);
