// SPDX-License-Identifier: MIT
// adhoc: see the header.
#include "profile/adhoc.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "profile/ledger.h"

struct ranked {
    uint64_t weight;
    uint32_t index;
};

static int compare(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

DEFINE_VEC(ranked_vec, struct ranked);

enum err adhoc_ranked(const struct profile *profile, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(ranked_vec_release) struct ranked_vec all = {0};
    for (size_t i = 0; i < recording->adhoc_count; i++) {
        TRY(ranked_vec_push(
            &all, (struct ranked){.weight = recording->adhoc[i].weight, .index = (uint32_t)i}));
    }
    if (all.len > 0) {
        qsort(all.items, all.len, sizeof(all.items[0]), compare);
    }
    for (size_t i = 0; i < all.len; i++) {
        TRY(u32_vec_push(out, all.items[i].index));
    }
    return ERR_OK;
}

static void write_location(struct json_writer *w,
                           const struct profile *profile,
                           uint32_t location,
                           bool is_inlined)
{
    json_begin_object(w);
    json_key_string(w, "function", profile_location_function(profile, location));
    json_key_string(w, "file", profile_location_file(profile, location));
    json_key_u64(w, "line", profile_location_get(profile, location)->line);
    json_key_string(w, "module", profile_location_module(profile, location));
    json_key_bool(w, "inlined", is_inlined);
    json_end_object(w);
}

static MUST_USE enum err
write_one(struct json_writer *w, const struct profile *profile, const struct rec_adhoc *adhoc)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    TRY(ledger_stack(profile, adhoc->node, &locations, &inlined));
    json_begin_object(w);
    json_key_string(
        w, "name", locations.len > 0 ? profile_location_function(profile, locations.items[0]) : "");
    json_key_u64(w, "pid", profile->recording.processes[adhoc->process].pid);
    json_key_u64(w, "events", adhoc->events);
    json_key_u64(w, "weight", adhoc->weight);
    json_key(w, "frames");
    json_begin_array(w);
    for (size_t i = 1; i < locations.len; i++) {
        write_location(w, profile, locations.items[i], inlined.items[i] != 0);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}

enum err adhoc_write_json(struct json_writer *w, const struct profile *profile)
{
    CLEANUP(u32_vec_release) struct u32_vec ranked = {0};
    TRY(adhoc_ranked(profile, &ranked));
    json_key(w, "adhoc");
    json_begin_array(w);
    for (size_t i = 0; i < ranked.len; i++) {
        TRY(write_one(w, profile, profile->recording.adhoc + ranked.items[i]));
    }
    json_end_array(w);
    return ERR_OK;
}
