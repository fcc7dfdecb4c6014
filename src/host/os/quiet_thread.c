// SPDX-License-Identifier: MIT
// quiet_thread: see the header.
#include "host/os/quiet_thread.h"

#include <signal.h>

int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);                            // cannot fail
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); // a thread begins with its starter's mask
    const int failure = pthread_create(thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}
