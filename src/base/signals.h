// SPDX-License-Identifier: MIT
// signals: a short stretch without signal handlers, by raw system calls.
//
// Unlike pthread_sigmask it blocks the signals that libc keeps for itself too (cancellation), so
// that nothing at all runs on this thread in between. Context: T; errno kept. Failure: none that
// the kernel knows for these arguments.
#pragma once

#include <stdint.h>

// Blocks every signal and returns what was blocked before.
uint64_t signals_block(void);

void signals_restore(uint64_t blocked_before);
