// SPDX-License-Identifier: MIT
#include "profile/model/deferred_symbols.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/threads/quiet_thread.h"

// Whether names of frames were never looked up.
static bool is_unnamed(const struct recording *recording)
{
    return recording->meta.state == REC_STATE_RUNNING || recording->symbol_count == 0 ||
           (recording->meta.unknown & REC_UNKNOWN_NAMES) != 0;
}

// Whether debug information was missing at the lookup of the module's names.
static bool has_gap(const struct recording *recording, const struct rec_module *module)
{
    return rec_string_get(recording, module->symbol_advice)[0] != '\0' &&
           rec_string_get(recording, module->build_id)[0] != '\0';
}

// Whether the names were left for later and the module's file was written after the start of the
// recording, so that it may be another file. Only needed for modules without a build-id.
static bool has_changed(const struct recording *recording, const struct late_code_module *module)
{
    const uint64_t start_ns = recording->meta.start_unix_ns; // 0 in a file of another tool
    struct stat status;
    return (recording->meta.unknown & REC_UNKNOWN_NAMES) != 0 && start_ns != 0 &&
           module->build_id[0] == '\0' && module->path[0] == '/' &&
           stat(module->path, &status) == 0 && status.st_mtim.tv_sec >= 0 &&
           clock_to_ns(status.st_mtim) > start_ns;
}

// List the modules of the recording for the lookup, and whether any needs it.
static MUST_USE enum err list_modules(const struct recording *recording,
                                      bool wants_better,
                                      struct late_code_module_vec *out,
                                      bool *out_is_needed)
{
    const bool is_new = is_unnamed(recording);
    bool is_needed = is_new;
    TRY(late_code_module_vec_reserve(out, recording->module_count));
    for (size_t i = 0; i < recording->module_count; i++) {
        const struct rec_module *module = &recording->modules[i];
        struct late_code_module entry = {.path = rec_string_get(recording, module->path),
                                         .build_id = rec_string_get(recording, module->build_id),
                                         .is_named = wants_better && has_gap(recording, module)};
        entry.is_left_alone = is_new ? has_changed(recording, &entry) : !entry.is_named;
        is_needed = is_needed || entry.is_named;
        TRY(late_code_module_vec_push(out, entry));
    }
    *out_is_needed = is_needed;
    return ERR_OK;
}

static void lookup_freep(struct deferred_lookup **lookup)
{
    deferred_lookup_free(*lookup);
}

struct step {
    struct deferred_lookup *lookup;
    const struct late_code *code;
    struct progress *progress;
    enum err result;
};

static void *take_step(void *argument)
{
    struct step *step = argument;
    step->result = deferred_lookup_step(step->lookup, step->code, step->progress);
    return NULL;
}

// Run the step, on a thread of its own if `ulimit -s` makes the first thread's stack too small.
static enum err step_with_room(struct deferred_lookup *lookup,
                               const struct late_code *code,
                               struct progress *progress)
{
    struct step step = {.lookup = lookup, .code = code, .progress = progress, .result = ERR_OK};
    pthread_t thread;
    if (quiet_thread_has_room() || quiet_thread_start(&thread, take_step, &step) != 0) {
        (void)take_step(&step); // the stack of this thread may suffice
    } else {
        (void)pthread_join(thread, NULL); // cannot fail: the thread exists and is joined once
    }
    return step.result;
}

enum err deferred_symbols_find(const struct recording *recording,
                               const struct name_sources *sources,
                               struct deferred_lookup *lookup,
                               struct progress *progress,
                               struct deferred_symbols *out)
{
    CLEANUP(late_code_module_vec_release) struct late_code_module_vec modules = {0};
    CLEANUP(lookup_freep) struct deferred_lookup *own = NULL;
    bool is_needed;
    TRY(list_modules(recording, sources != NULL, &modules, &is_needed));
    if (!is_needed || (sources != NULL && sources->is_off)) {
        *out = (struct deferred_symbols){0};
        return ERR_OK;
    }
    const struct late_code code = {.modules = modules.items,
                                   .module_count = modules.len,
                                   .frames = recording->frames,
                                   .frame_count = recording->frame_count};
    if (lookup == NULL) {
        const struct deferred_lookup_options options = {
            .sources = sources != NULL ? *sources : (struct name_sources){0}};
        TRY(deferred_lookup_new(&options, &own));
        lookup = own;
    }
    TRY(step_with_room(lookup, &code, progress));
    deferred_lookup_take(lookup, out);
    return ERR_OK;
}
