// SPDX-License-Identifier: MIT
// recorder_wake: wakes the recorder's main thread, which sleeps between its passes.
//
// Context: T and H, async-signal-safe; one system call; errno is kept.
#pragma once

#include <stdatomic.h>

#include "base/sys.h"
#include "session/layout.h"

// Release: a recorder that acquires the new count sees all that the caller has published.
static inline void session_wake_recorder(struct session_header *session)
{
    atomic_fetch_add_explicit(&session->recorder_wake, 1, memory_order_release);
    (void)sys_futex_wake(&session->recorder_wake, 1); // it is fine if no thread sleeps
}
