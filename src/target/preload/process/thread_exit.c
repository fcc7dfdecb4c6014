// SPDX-License-Identifier: MIT
#include "target/preload/process/thread_exit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/preload/process/process.h"
#include "target/preload/process/thread_state.h"

enum {
    KEYS_WITHOUT_MEMORY = 32,
};

static pthread_key_t g_exit_key;
static bool g_has_exit_key;

// The value counts the destructor's rounds.
static void arm(uintptr_t round)
{
    (void)pthread_setspecific(g_exit_key, (const void *)round); // if it fails, the lane stays open
}

void thread_exit_arm(void)
{
    const int saved_errno = errno;
    if (g_has_exit_key && pthread_getspecific(g_exit_key) == NULL) {
        arm(1);
    }
    errno = saved_errno;
}

// The destructor of our key. A thread that was cancelled asynchronously inside a hook left the
// guard set, and never returns to that hook.
static void thread_exit(void *value)
{
    struct thread_state *t = thread_way_state();
    const bool is_ours =
        process_session() != NULL && t != NULL && t->generation >> 32 == process_generation() >> 32;
    if (!is_ours) {
        return;
    }
    if (guard_is_held(t)) {
        guard_take(t, (uint64_t)__builtin_frame_address(0));
        thread_state_renew(t);
        guard_release(t);
    }
    const uintptr_t round = (uintptr_t)value;
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        arm(round + 1);
        return;
    }
    thread_state_close(t);
}

// glibc keeps the values of a thread's first 32 keys with the thread, and numbers the keys of each
// linker namespace (dlmopen) from 0: with the first key a library in a namespace would find our
// value as its own. So ours is the last of these 32. For a later key glibc would allocate memory,
// perhaps within the allocator's own first steps in a thread.
void thread_exit_prepare(void)
{
    pthread_key_t keys[KEYS_WITHOUT_MEMORY];
    size_t count = 0;
    bool is_last = g_has_exit_key;
    while (!is_last && count < KEYS_WITHOUT_MEMORY &&
           pthread_key_create(&keys[count], thread_exit) == 0) {
        is_last = keys[count] + 1 >= KEYS_WITHOUT_MEMORY;
        count++;
    }
    if (count > 1 && keys[count - 1] >= KEYS_WITHOUT_MEMORY) {
        (void)pthread_key_delete(keys[--count]); // it exists, as the others do
    }
    if (count > 0) {
        g_exit_key = keys[--count];
        g_has_exit_key = true;
    }
    while (count > 0) {
        (void)pthread_key_delete(keys[--count]);
    }
}
