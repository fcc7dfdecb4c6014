// SPDX-License-Identifier: MIT
// snapshot: see snapshot.h.
//
// Reference counting: the last unref must see all uses by other threads. So every decrement
// releases, and the last one acquires.
#include "server/state/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "formats/import/input_file.h"
#include "host/os/file.h"
#include "host/text/json_writer.h"
#include "profile/compare/renames.h"

enum {
    KEPT_MAX_MIB = 512, // all of 2 million stacks
};

static bool drop_reference(atomic_uint *references)
{
    // Pairs with itself: release publishes this thread's use, acquire sees the others' uses.
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static void add_reference(atomic_uint *references)
{
    // Relaxed: the caller already has a reference.
    (void)atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

static MUST_USE enum err summarize_opened(struct opened *opened,
                                          const struct suppression_choice *rules,
                                          struct err_info *info)
{
    TRY(suppressions_add_chosen(&opened->rules, rules, &opened->profile->recording, info));
    const struct filter filter = {.suppressions = &opened->rules};
    TRY(profile_select(opened->profile, &filter, &opened->everything, info));
    kept_results_init(&opened->kept, (size_t)KEPT_MAX_MIB << 20);
    opened->everything.kept = &opened->kept;
    return summary_build(&opened->everything, &opened->whole);
}

// Make an object of the file that has not been read yet, so that a file that changes meanwhile is
// read again. Return NULL without memory.
static struct opened *begin_opened(const char *path)
{
    struct opened *opened = calloc(1, sizeof(*opened));
    struct stat status;
    if (opened != NULL) {
        atomic_init(&opened->references, 1);
    }
    if (opened != NULL && stat(path, &status) == 0) {
        opened->bytes = (uint64_t)status.st_size;
        opened->identity = file_identity(&status);
    }
    return opened;
}

static MUST_USE enum err finish_opened(struct opened *opened,
                                       const char *shown_path,
                                       const struct suppression_choice *rules,
                                       struct err_info *info)
{
    opened->path = strdup(shown_path);
    return opened->path != NULL ? summarize_opened(opened, rules, info) : ERR_NO_MEMORY;
}

enum err opened_new(const char *path,
                    const char *shown_path,
                    const struct opening *opening,
                    struct opened **out,
                    struct err_info *info)
{
    CLEANUP(opened_unrefp) struct opened *opened = begin_opened(path);
    if (opened == NULL) {
        return ERR_NO_MEMORY;
    }
    TRY(input_open_profile(path, opening->sources, opening->progress, &opened->owned, info));
    opened->profile = opened->owned;
    TRY(finish_opened(opened, shown_path, &opening->rules, info));
    *out = TAKE(opened);
    return ERR_OK;
}

enum err opened_borrow(const struct profile *profile, const char *path, struct opened **out)
{
    CLEANUP(opened_unrefp) struct opened *opened = begin_opened(path);
    if (opened == NULL) {
        return ERR_NO_MEMORY;
    }
    const struct suppression_choice usual = {0};
    opened->profile = profile;
    TRY(finish_opened(opened, path, &usual, NULL));
    *out = TAKE(opened);
    return ERR_OK;
}

static struct opened *opened_ref(struct opened *opened)
{
    add_reference(&opened->references);
    return opened;
}

static void opened_unref(struct opened *opened) // accepts NULL
{
    if (opened != NULL && drop_reference(&opened->references)) {
        kept_results_release(&opened->kept);
        selection_release(&opened->everything);
        profile_close(opened->owned);
        suppressions_release(&opened->rules);
        free(opened->path);
        free(opened);
    }
}

void opened_unrefp(struct opened **opened)
{
    opened_unref(*opened);
}

static MUST_USE enum err unite_sides(struct snapshot *snapshot)
{
    const struct opened *new = snapshot->sides[SIDE_NEW];
    const struct opened *old = snapshot->sides[SIDE_OLD];
    TRY(code_union_build(new->profile, NULL, &snapshot->alone[SIDE_NEW]));
    if (time_range_is_known(&new->profile->recording)) {
        TRY(code_union_build(new->profile, new->profile, &snapshot->twice));
    }
    if (old == NULL) {
        return ERR_OK;
    }
    TRY(code_union_build(old->profile, NULL, &snapshot->alone[SIDE_OLD]));
    TRY(code_union_build(new->profile, old->profile, &snapshot->both));
    return renames_find(&snapshot->both);
}

enum err
snapshot_new(uint64_t generation, struct opened *new, struct opened *old, struct snapshot **out)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL) {
        return ERR_NO_MEMORY;
    }
    atomic_init(&snapshot->references, 1);
    snapshot->generation = generation;
    snapshot->sides[SIDE_NEW] = opened_ref(new);
    snapshot->sides[SIDE_OLD] = old != NULL ? opened_ref(old) : NULL;
    TRY(unite_sides(snapshot));
    *out = TAKE(snapshot);
    return ERR_OK;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    add_reference(&snapshot->references);
    return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
    if (snapshot == NULL || !drop_reference(&snapshot->references)) {
        return;
    }
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        code_union_release(&snapshot->alone[side]);
        opened_unref(snapshot->sides[side]);
    }
    code_union_release(&snapshot->both);
    code_union_release(&snapshot->twice);
    free(snapshot);
}

void snapshot_unrefp(struct snapshot **snapshot)
{
    snapshot_unref(*snapshot);
}

enum err snapshot_write_state(const struct snapshot *snapshot, struct strbuf *out)
{
    const struct opened *opened = snapshot->sides[SIDE_NEW];
    struct json_writer w;
    json_to_strbuf(&w, out, JSON_COMPACT);
    json_key_u64(&w, "generation", snapshot->generation);
    json_key_string(&w, "state", profile_state_name(opened->profile));
    json_key_u64(&w, "runtime_ms", opened->whole.runtime_ms);
    return json_finish(&w) == ERR_OK ? ERR_OK : ERR_NO_MEMORY;
}
