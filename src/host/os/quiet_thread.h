// SPDX-License-Identifier: MIT
// quiet_thread: a thread that no signal is ever delivered to, so that they all stay its starter's.
//
// Context: H, any thread, whose own mask is afterwards what it was.
#pragma once

#include <pthread.h>

#include "base/compiler.h"

// Starts `run(argument)`. 0, or the error number of pthread_create; then there is no thread.
int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) MUST_USE;

// Gives all threads that begin from now on, of libraries too, a stack that does not depend on
// `ulimit -s`, which is the recorded program's.
void quiet_thread_make_room(void);
