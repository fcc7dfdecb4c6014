// SPDX-License-Identifier: MIT
// signals: a short stretch without signal handlers, by raw system calls.
//
// Unlike pthread_sigmask this also blocks the signals that libc reserves for itself (cancellation),
// so no handler runs on this thread in between. Context: T; errno kept. Failure: none that the
// kernel has for these arguments.
#pragma once

#include <stdint.h>

// Block every signal and return the previously blocked ones.
uint64_t signals_block(void);

void signals_restore(uint64_t blocked_before);
