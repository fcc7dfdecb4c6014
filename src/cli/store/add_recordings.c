// SPDX-License-Identifier: MIT
// add_recordings: see add_recordings.h.
#include "cli/store/add_recordings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/filter_options.h"
#include "formats/import/input_file.h"
#include "host/os/file.h"
#include "host/os/mutex.h"

enum {
    BATCH_FILES = 64,
    BATCHES = 2, // one is read while the other is added
    WORKERS_MAX = 16,
    HELD_BYTES_MAX = 256 << 20,
    ADDED_BYTES_MAX = 64 << 20, // by one transaction, unless one recording has more
};

// A file of a batch. Written by the worker that took it, until `is_done`.
struct addition {
    const char *path; // borrowed
    int64_t id;
    bool is_known; // nothing to do
    bool is_done;
    struct recording_rows rows; // owned
    char *damage;               // owned; what is missing from the file, NULL: nothing
    enum err problem;
    struct err_info info;
};

struct batch {
    struct addition files[BATCH_FILES];
    size_t count;
};

struct crew {
    const struct name_sources *names;  // borrowed
    const struct store_labels *labels; // borrowed
    pthread_mutex_t mutex;             // protects what follows, and `is_done` of files
    pthread_cond_t changed;
    struct batch *batches; // BATCHES of them
    size_t given;          // files that workers may take, counted over all batches
    size_t taken;
    size_t awaited;    // the number of the file that is needed next
    size_t held_bytes; // of rows that were made and not added
    bool is_over;
    pthread_t threads[WORKERS_MAX];
    size_t thread_count;
};

static void addition_release(struct addition *file)
{
    recording_rows_release(&file->rows);
    free(file->damage);
    *file = (struct addition){0};
}

enum err add_recordings_read(const char *path,
                             const struct name_sources *names,
                             const struct recording_source *source,
                             struct recording_rows *out,
                             char **out_damage,
                             struct err_info *info)
{
    static const struct filter_words words = {.suppresses = true};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    CLEANUP(selection_release) struct selection selection = {0};
    TRY(input_open_profile(path, names, NULL, &profile, info));
    TRY(filter_words_apply(&words, &profile->recording, &applied, info));
    TRY(profile_select(profile, &applied.filter, &selection, info));
    struct recording_source whole = *source;
    whole.selection = &selection;
    TRY(recording_rows_make(&whole, out, info));
    if (out_damage != NULL && profile->damage[0] != '\0') {
        *out_damage = strdup(profile->damage);
        return *out_damage != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    return ERR_OK;
}

static MUST_USE enum err
read_file(const struct crew *crew, struct addition *file, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf place = {0}; // `cairn analyze --store` may run elsewhere
    TRY(file_absolute_path(file->path, &place, info));
    const struct recording_source source = {
        .labels = crew->labels, .path = strbuf_text(&place), .id = file->id};
    return add_recordings_read(file->path, crew->names, &source, &file->rows, &file->damage, info);
}

static struct addition *crew_file(const struct crew *crew, size_t number)
{
    return &crew->batches[number / BATCH_FILES % BATCHES].files[number % BATCH_FILES];
}

// Whether a worker may take a file. What is needed next never waits for memory.
static bool may_take(const struct crew *crew)
{
    return crew->taken < crew->given &&
           (crew->held_bytes < HELD_BYTES_MAX || crew->taken <= crew->awaited);
}

static void *run_worker(void *context)
{
    struct crew *crew = context;
    mutex_lock(&crew->mutex);
    while (!crew->is_over) {
        if (!may_take(crew)) {
            (void)pthread_cond_wait(&crew->changed, &crew->mutex);
            continue;
        }
        struct addition *file = crew_file(crew, crew->taken++);
        mutex_unlock(&crew->mutex);
        if (!file->is_known) {
            file->problem = read_file(crew, file, &file->info);
        }
        mutex_lock(&crew->mutex);
        crew->held_bytes += recording_rows_bytes(&file->rows);
        file->is_done = true;
        (void)pthread_cond_broadcast(&crew->changed);
    }
    mutex_unlock(&crew->mutex);
    return NULL;
}

static void crew_release(struct crew *crew)
{
    mutex_lock(&crew->mutex);
    crew->is_over = true;
    (void)pthread_cond_broadcast(&crew->changed);
    mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++) {
        (void)pthread_join(crew->threads[i], NULL);
    }
    for (size_t i = 0; crew->batches != NULL && i < (size_t)BATCHES * BATCH_FILES; i++) {
        addition_release(crew_file(crew, i));
    }
    free(crew->batches);
    (void)pthread_cond_destroy(&crew->changed); // no thread waits
    (void)pthread_mutex_destroy(&crew->mutex);  // no thread holds it
}

static MUST_USE enum err crew_start(struct crew *crew, int files, struct err_info *info)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = processors > 1 ? (size_t)processors : 1;
    wanted = wanted < WORKERS_MAX ? wanted : WORKERS_MAX;
    wanted = wanted < (size_t)files ? wanted : (size_t)files;
    crew->batches = calloc(BATCHES, sizeof(*crew->batches));
    if (crew->batches == NULL) {
        return ERR_NO_MEMORY;
    }
    while (crew->thread_count < wanted) {
        const int status =
            pthread_create(&crew->threads[crew->thread_count], NULL, run_worker, crew);
        if (status != 0 && crew->thread_count == 0) {
            return err_set_errno(info, status, "cannot start a thread");
        }
        if (status != 0) {
            break;
        }
        crew->thread_count++;
    }
    return ERR_OK;
}

// Hash the files of a batch, ask the store which of them it has, and give them to the workers. A
// file that cannot be hashed is the batch's last.
static MUST_USE enum err crew_give(struct crew *crew,
                                   struct store *store,
                                   struct batch *batch,
                                   char *const *paths,
                                   size_t count,
                                   struct err_info *info)
{
    int64_t ids[BATCH_FILES];
    bool is_known[BATCH_FILES];
    enum err problem = ERR_OK;
    for (size_t i = 0; i < BATCH_FILES; i++) {
        addition_release(&batch->files[i]);
    }
    for (batch->count = 0; batch->count < count && problem == ERR_OK; batch->count++) {
        struct addition *file = &batch->files[batch->count];
        file->path = paths[batch->count];
        problem = store_identify(file->path, &file->id, &file->info);
        file->problem = problem;
        ids[batch->count] = file->id;
    }
    TRY(store_find_known(store, ids, batch->count, is_known, info));
    for (size_t i = 0; i < batch->count; i++) {
        batch->files[i].is_known = is_known[i] || batch->files[i].problem != ERR_OK;
    }
    mutex_lock(&crew->mutex);
    crew->given += batch->count; // a batch that is not full is the last
    (void)pthread_cond_broadcast(&crew->changed);
    mutex_unlock(&crew->mutex);
    return ERR_OK;
}

// Wait for the next file.
static void crew_await(struct crew *crew, struct addition *file)
{
    mutex_lock(&crew->mutex);
    (void)pthread_cond_broadcast(&crew->changed);
    while (!file->is_done) {
        (void)pthread_cond_wait(&crew->changed, &crew->mutex);
    }
    crew->awaited++;
    mutex_unlock(&crew->mutex);
}

// Add the rows of files, and free them.
static MUST_USE enum err add_files(struct crew *crew,
                                   struct store *store,
                                   struct addition *files,
                                   size_t count,
                                   struct add_counts *counts,
                                   struct err_info *info)
{
    const struct recording_rows *rows[BATCH_FILES];
    bool is_new[BATCH_FILES];
    size_t row_count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!files[i].is_known) {
            rows[row_count++] = &files[i].rows;
            bytes += recording_rows_bytes(&files[i].rows);
        }
        if (files[i].damage != NULL) {
            (void)fprintf(stderr, "cairn: %s: %s\n", files[i].path, files[i].damage);
        }
    }
    if (row_count > 0) {
        TRY(store_add(store, rows, row_count, is_new, info));
    }
    for (size_t i = 0; i < row_count; i++) {
        counts->added += is_new[i];
        counts->known += !is_new[i];
    }
    counts->known += count - row_count;
    for (size_t i = 0; i < count; i++) {
        recording_rows_release(&files[i].rows);
    }
    mutex_lock(&crew->mutex);
    crew->held_bytes -= bytes;
    mutex_unlock(&crew->mutex);
    return ERR_OK;
}

// Add the files of a batch up to one that has a problem, and return that.
static MUST_USE enum err crew_finish(struct crew *crew,
                                     struct store *store,
                                     struct batch *batch,
                                     struct add_counts *counts,
                                     struct err_info *info)
{
    size_t first = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct addition *file = &batch->files[i];
        crew_await(crew, file);
        if (file->problem != ERR_OK) {
            TRY(add_files(crew, store, batch->files + first, i - first, counts, info));
            *info = file->info;
            return file->problem;
        }
        bytes += recording_rows_bytes(&file->rows);
        if (bytes >= ADDED_BYTES_MAX || i + 1 == batch->count) {
            TRY(add_files(crew, store, batch->files + first, i + 1 - first, counts, info));
            first = i + 1;
            bytes = 0;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err add_batches(struct crew *crew,
                                     struct store *store,
                                     char *const *paths,
                                     size_t count,
                                     struct add_counts *counts,
                                     struct err_info *info)
{
    struct batch *before = NULL;
    bool is_last = false;
    for (size_t at = 0; at < count && !is_last; at += BATCH_FILES) {
        const size_t wanted = count - at < BATCH_FILES ? count - at : BATCH_FILES;
        struct batch *batch = &crew->batches[at / BATCH_FILES % BATCHES];
        TRY(crew_give(crew, store, batch, paths + at, wanted, info));
        is_last = batch->files[batch->count - 1].problem != ERR_OK;
        TRY(before != NULL ? crew_finish(crew, store, before, counts, info) : ERR_OK);
        before = batch;
    }
    return before != NULL ? crew_finish(crew, store, before, counts, info) : ERR_OK;
}

enum err add_recordings(struct store *store,
                        char *const *paths,
                        int count,
                        const struct name_sources *names,
                        const struct store_labels *labels,
                        struct add_counts *out,
                        struct err_info *info)
{
    struct crew crew = {.names = names,
                        .labels = labels,
                        .mutex = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    struct add_counts counts = {0};
    enum err problem = crew_start(&crew, count, info);
    if (problem == ERR_OK) {
        problem = add_batches(&crew, store, paths, (size_t)count, &counts, info);
    }
    crew_release(&crew);
    TRY(problem);
    *out = counts;
    return ERR_OK;
}
