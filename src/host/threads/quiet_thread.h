// SPDX-License-Identifier: MIT
// quiet_thread: start a thread with all signals blocked, so that the starter's thread gets them.
//
// Context: H, any thread. The caller's signal mask is restored.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/compiler.h"

// Start `run(argument)`. Return 0, or the error number of pthread_create; then there is no thread.
int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) MUST_USE;

// Give all later threads, of libraries too, a stack size that does not depend on `ulimit -s`, which
// is the recorded program's.
void quiet_thread_make_room(void);

// Return whether the first thread's stack may grow as large as the stacks of later threads.
bool quiet_thread_has_room(void);
