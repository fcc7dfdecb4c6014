// SPDX-License-Identifier: MIT
#include "cli/names/background_symbolizer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/mutex.h"
#include "host/threads/quiet_thread.h"

enum {
    NICE = 5,        // more would delay the end of a run where all processors are busy
    REST_FACTOR = 4, // times the duration of a step
    REST_FACTOR_LATER = 50,
    REST_NS_MIN = 10000000,
};

#define KEEP_BYTES ((uint64_t)64 << 20)
#define LATER_NS   NS_PER_S // of work

static void code_list_release(struct code_list *list)
{
    late_code_module_vec_release(&list->modules);
    rec_frame_vec_release(&list->frames);
}

void background_symbolizer_init(struct background_symbolizer *ahead,
                                const struct name_sources *sources)
{
    *ahead = (struct background_symbolizer){.sources = *sources};
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic); // these cannot fail
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&ahead->lock, NULL);
    (void)pthread_cond_init(&ahead->news, NULL);
    (void)pthread_cond_init(&ahead->end, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

static bool is_going_on(void *context)
{
    const struct background_symbolizer *ahead = context;
    // Relaxed: no other data depends on it.
    return !atomic_load_explicit(&ahead->is_ending, memory_order_relaxed);
}

// Move the inbox to the thread's own list. The caller holds the lock.
static enum err take_inbox(struct background_symbolizer *ahead)
{
    struct code_list *in = &ahead->inbox;
    struct code_list *code = &ahead->code;
    TRY(late_code_module_vec_reserve(&code->modules, in->modules.len));
    TRY(rec_frame_vec_reserve(&code->frames, in->frames.len));
    for (size_t i = 0; i < in->modules.len; i++) {
        code->modules.items[code->modules.len++] = in->modules.items[i];
    }
    for (size_t i = 0; i < in->frames.len; i++) {
        code->frames.items[code->frames.len++] = in->frames.items[i];
    }
    late_code_module_vec_clear(&in->modules);
    rec_frame_vec_clear(&in->frames);
    return ERR_OK;
}

static enum err symbolize_next(struct background_symbolizer *ahead)
{
    const struct late_code code = {.modules = ahead->code.modules.items,
                                   .module_count = ahead->code.modules.len,
                                   .frames = ahead->code.frames.items,
                                   .frame_count = ahead->code.frames.len};
    return deferred_lookup_step(ahead->lookup, &code, NULL);
}

// Wait for `ns` or for the end. The caller holds the lock.
static void rest_for(struct background_symbolizer *ahead, uint64_t ns)
{
    const uint64_t until_ns = clock_monotonic_ns() + ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    while (!ahead->is_over && clock_monotonic_ns() < until_ns) {
        (void)pthread_cond_timedwait(&ahead->end, &ahead->lock, &until); // the clock says it
    }
}

static void *run_symbolizer(void *context)
{
    struct background_symbolizer *ahead = context;
    enum err err = ERR_OK;
    // Both calls affect only this thread, and are optional.
    (void)!nice(NICE);
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    mutex_lock(&ahead->lock);
    while (err == ERR_OK && !ahead->is_over) {
        if (ahead->inbox.frames.len == 0) {
            (void)pthread_cond_wait(&ahead->news, &ahead->lock);
            continue;
        }
        err = take_inbox(ahead);
        ahead->is_stepping = true;
        mutex_unlock(&ahead->lock);
        const uint64_t begin_ns = clock_monotonic_ns();
        err = err == ERR_OK ? symbolize_next(ahead) : err;
        const uint64_t spent_ns = clock_monotonic_ns() - begin_ns;
        ahead->spent_ns += spent_ns;
        const uint64_t factor = ahead->spent_ns < LATER_NS ? REST_FACTOR : REST_FACTOR_LATER;
        mutex_lock(&ahead->lock);
        ahead->is_stepping = false;
        (void)pthread_cond_signal(&ahead->end);
        rest_for(ahead, factor * spent_ns + REST_NS_MIN);
    }
    mutex_unlock(&ahead->lock);
    return NULL;
}

static void begin_symbolizer(struct background_symbolizer *ahead)
{
#ifdef __SANITIZE_ADDRESS__
    // The sanitizer's allocator does not take its locks before a fork. The writer of a checkpoint
    // would block forever on a lock that this thread held.
    ahead->has_failed = true;
    return;
#endif
    const struct deferred_lookup_options options = {.sources = ahead->sources,
                                                    .keep_bytes = KEEP_BYTES,
                                                    .go_on = is_going_on,
                                                    .context = ahead};
    if (deferred_lookup_new(&options, &ahead->lookup) != ERR_OK) {
        ahead->has_failed = true;
        return;
    }
    ahead->is_running = quiet_thread_start(&ahead->thread, run_symbolizer, ahead) == 0;
    ahead->has_failed = !ahead->is_running;
}

// Copy `text` for the lifetime of `ahead`.
static enum err keep_text(struct background_symbolizer *ahead, const char *text, const char **out)
{
    TRY(owned_text_vec_reserve(&ahead->texts, 1));
    char *copy = strdup(text);
    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    ahead->texts.items[ahead->texts.len++] = copy;
    *out = copy;
    return ERR_OK;
}

static enum err
put_module(struct background_symbolizer *ahead, const char *path, const char *build_id)
{
    struct late_code_module module = {0};
    TRY(keep_text(ahead, path, &module.path));
    TRY(keep_text(ahead, build_id, &module.build_id));
    // The path of an executable may come later than its first frames (stack_table.h).
    module.is_left_alone = path[0] == '\0';
    return late_code_module_vec_push(&ahead->inbox.modules, module);
}

// Copy new modules and frames. The caller holds the lock.
static enum err fill_inbox(struct background_symbolizer *ahead, const struct stack_table *stacks)
{
    struct code_list *inbox = &ahead->inbox;
    for (; ahead->seen_modules < stacks->modules.len; ahead->seen_modules++) {
        const struct rec_module *module = stacks->modules.items + ahead->seen_modules;
        TRY(put_module(ahead, string_table_get(stacks->strings, module->path),
                       string_table_get(stacks->strings, module->build_id)));
    }
    for (; ahead->seen_frames < stacks->frames.len; ahead->seen_frames++) {
        TRY(rec_frame_vec_push(&inbox->frames, stacks->frames.items[ahead->seen_frames]));
    }
    return ERR_OK;
}

void background_symbolizer_see(struct background_symbolizer *ahead,
                               const struct stack_table *stacks)
{
    if (ahead->has_failed || ahead->seen_frames == stacks->frames.len) {
        return;
    }
    if (!ahead->is_running) {
        begin_symbolizer(ahead);
    }
    mutex_lock(&ahead->lock);
    (void)fill_inbox(ahead, stacks); // the next call retries what did not fit
    (void)pthread_cond_signal(&ahead->news);
    mutex_unlock(&ahead->lock);
}

struct deferred_lookup *background_symbolizer_end(struct background_symbolizer *ahead)
{
    if (ahead->is_running) {
        mutex_lock(&ahead->lock);
        ahead->is_over = true;
        atomic_store_explicit(&ahead->is_ending, true, memory_order_relaxed);
        (void)pthread_cond_signal(&ahead->news);
        (void)pthread_cond_signal(&ahead->end);
        while (ahead->is_stepping) {
            (void)pthread_cond_wait(&ahead->end, &ahead->lock);
        }
        mutex_unlock(&ahead->lock);
    }
    ahead->has_failed = true; // later code is ignored
    // is_ending stopped the step that ran. Clear it, because the lookup's callback must return true
    // again.
    atomic_store_explicit(&ahead->is_ending, false, memory_order_relaxed);
    return ahead->lookup;
}

void background_symbolizer_leave(struct background_symbolizer *ahead)
{
    if (ahead->is_running) {
        (void)pthread_detach(ahead->thread); // not joined yet
        ahead->is_running = false;
    }
}

void background_symbolizer_release(struct background_symbolizer *ahead)
{
    struct deferred_lookup *lookup = background_symbolizer_end(ahead);
    if (ahead->is_running) {
        (void)pthread_join(ahead->thread, NULL); // joined exactly once
        ahead->is_running = false;
    }
    deferred_lookup_free(lookup);
    ahead->lookup = NULL;
    code_list_release(&ahead->code);
    code_list_release(&ahead->inbox);
    for (size_t i = 0; i < ahead->texts.len; i++) {
        free(ahead->texts.items[i]);
    }
    owned_text_vec_release(&ahead->texts);
    (void)pthread_cond_destroy(&ahead->end);
    (void)pthread_cond_destroy(&ahead->news);
    (void)pthread_mutex_destroy(&ahead->lock);
}
