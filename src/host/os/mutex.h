// SPDX-License-Identifier: MIT
// mutex: locks and unlocks a plain mutex of this process.
//
// Neither can fail in correct use: the mutex is initialized, a thread locks it once, and the thread
// that holds it unlocks it. Context: H.
#pragma once

#include <pthread.h>

static inline void mutex_lock(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex);
}

static inline void mutex_unlock(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_unlock(mutex);
}
