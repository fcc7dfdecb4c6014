// SPDX-License-Identifier: MIT
// chunk_maker: see the header.
#include "aggregate/live_blocks/chunk_maker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host/os/quiet_thread.h"

enum {
    SMALL_PAGE_BYTES = 4096,
};

// What both threads use is under the lock, which nobody holds for longer than it takes to change a
// few words.
struct chunk_maker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; // there is something to do, or it is over
    char *old;              // to be unmapped, or NULL
    char *made;             // the answer
    bool is_asked;          // and there is no answer yet
    bool is_over;
    _Atomic bool is_answered; // may be read without the lock
};

// Where a huge page can be, at a multiple of its size.
static char *map_aligned(int advice)
{
    char *memory = mmap(NULL, 2 * CHUNK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    const size_t before = -(uintptr_t)memory % CHUNK_BYTES;
    if (before > 0) {
        (void)munmap(memory, before);
    }
    char *chunk = memory + before;
    (void)munmap(chunk + CHUNK_BYTES, CHUNK_BYTES - before);
    // A forked copy of us writes checkpoints and has no use for the blocks. Failing costs memory.
    (void)madvise(chunk, CHUNK_BYTES, MADV_DONTFORK);
    (void)madvise(chunk, CHUNK_BYTES, advice); // failing costs speed, or memory
    return chunk;
}

char *chunk_map(void)
{
    return map_aligned(MADV_NOHUGEPAGE);
}

void chunk_unmap(char *chunk)
{
    (void)munmap(chunk, CHUNK_BYTES); // of what has been mapped like that
}

static long faults(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage); // cannot fail for it
    return usage.ru_minflt;
}

// A chunk that is one huge page: its first byte brings all of it, so that the second page is there.
static char *make_huge(void)
{
    char *chunk = map_aligned(MADV_HUGEPAGE);
    if (chunk == NULL) {
        return NULL;
    }
    *(volatile char *)chunk = 0;
    const long before = faults();
    *(volatile char *)(chunk + SMALL_PAGE_BYTES) = 0;
    if (faults() != before) {
        chunk_unmap(chunk);
        return NULL;
    }
    return chunk;
}

// The thread has made what was asked for. Nobody may want it any more.
static void answer(struct chunk_maker *maker, char *made)
{
    if (maker->is_asked) {
        maker->is_asked = false;
        maker->made = made;
        // Release: pairs with the acquire in chunk_maker_fetch.
        atomic_store_explicit(&maker->is_answered, true, memory_order_release);
    } else if (made != NULL) {
        chunk_unmap(made);
    }
}

static void *run(void *argument)
{
    struct chunk_maker *maker = argument;
    (void)pthread_mutex_lock(&maker->lock); // cannot fail, here and below: it is not ours yet
    while (!maker->is_over) {
        char *old = maker->old;
        if (old == NULL && !maker->is_asked) {
            (void)pthread_cond_wait(&maker->changed, &maker->lock);
            continue;
        }
        const bool is_asked = maker->is_asked;
        maker->old = NULL;
        (void)pthread_mutex_unlock(&maker->lock);
        if (old != NULL) {
            chunk_unmap(old);
        }
        char *made = is_asked ? make_huge() : NULL;
        (void)pthread_mutex_lock(&maker->lock);
        if (is_asked) {
            answer(maker, made);
        }
    }
    (void)pthread_mutex_unlock(&maker->lock);
    return NULL;
}

struct chunk_maker *chunk_maker_begin(void)
{
    struct chunk_maker *maker = calloc(1, sizeof(*maker));
    if (maker == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&maker->lock, NULL); // neither can fail
    (void)pthread_cond_init(&maker->changed, NULL);
    if (quiet_thread_start(&maker->thread, run, maker) != 0) {
        free(maker);
        return NULL;
    }
    return maker;
}

void chunk_maker_end(struct chunk_maker *maker)
{
    if (maker == NULL) {
        return;
    }
    chunk_maker_cancel(maker);
    (void)pthread_mutex_lock(&maker->lock);
    maker->is_over = true;
    (void)pthread_cond_signal(&maker->changed);
    (void)pthread_mutex_unlock(&maker->lock);
    (void)pthread_join(maker->thread, NULL); // ours, and joined once
    if (maker->old != NULL) {
        chunk_unmap(maker->old);
    }
    free(maker);
}

void chunk_maker_ask(struct chunk_maker *maker)
{
    (void)pthread_mutex_lock(&maker->lock);
    maker->is_asked = true;
    (void)pthread_cond_signal(&maker->changed);
    (void)pthread_mutex_unlock(&maker->lock);
}

void chunk_maker_discard(struct chunk_maker *maker, char *old)
{
    (void)pthread_mutex_lock(&maker->lock);
    maker->old = old; // the one before it was gone before there was an answer
    (void)pthread_cond_signal(&maker->changed);
    (void)pthread_mutex_unlock(&maker->lock);
}

bool chunk_maker_fetch(struct chunk_maker *maker, char **chunk)
{
    if (!atomic_load_explicit(&maker->is_answered, memory_order_acquire)) {
        return false;
    }
    // The thread changes neither before it is asked again.
    *chunk = maker->made;
    atomic_store_explicit(&maker->is_answered, false, memory_order_relaxed);
    return true;
}

void chunk_maker_cancel(struct chunk_maker *maker)
{
    (void)pthread_mutex_lock(&maker->lock);
    maker->is_asked = false;
    (void)pthread_mutex_unlock(&maker->lock);
    char *made = NULL;
    if (chunk_maker_fetch(maker, &made) && made != NULL) {
        chunk_unmap(made);
    }
}
