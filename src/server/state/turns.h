// SPDX-License-Identifier: MIT
// turns: wait for one of the turns that a semaphore counts, for a limited time.
//
// The time is that of the monotonic clock, so a step of the wall clock changes nothing. Context: H.
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

// Take a turn; false if none is free within `patience_ms`. Give it back with sem_post.
bool turns_take(sem_t *turns, uint64_t patience_ms);
