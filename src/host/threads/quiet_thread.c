// SPDX-License-Identifier: MIT
#include "host/threads/quiet_thread.h"

#include <signal.h>
#include <sys/resource.h>

#define STACK_BYTES_MIN ((size_t)2 << 20) // libdw puts line tables on the stack

void quiet_thread_make_room(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_default_np(&attributes) != 0) {
        return;
    }
    if (pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < STACK_BYTES_MIN &&
        pthread_attr_setstacksize(&attributes, STACK_BYTES_MIN) == 0) {
        (void)pthread_setattr_default_np(&attributes); // on failure the default stays
    }
    (void)pthread_attr_destroy(&attributes); // cannot fail
}

bool quiet_thread_has_room(void)
{
    struct rlimit stack;
    return getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur >= STACK_BYTES_MIN;
}

int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);                            // cannot fail
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); // a thread inherits the mask of its starter
    const int failure = pthread_create(thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}
