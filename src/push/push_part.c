// SPDX-License-Identifier: MIT
#include "push/push_part.h"

#include "base/compiler.h"
#include "base/minmax.h"

enum {
    FIGURE_COUNT = 4,
};

static const double score_max = 1e15; // a whole figure; below 2^53, so that sums stay exact enough

// The figures of a row or of all: allocated since the previous profile, and in use.
struct figures {
    uint64_t values[FIGURE_COUNT];
};

void push_parts_release(struct push_parts *parts)
{
    push_part_vec_release(&parts->parts);
    u32_vec_release(&parts->of_process);
    u64_vec_release(&parts->scores);
}

static struct figures
figures_of(const struct selection *selection, const struct row_change_vec *changes, size_t index)
{
    const struct rec_row *row = &selection->profile->recording.rows[index];
    const bool is_there = selection_row_exists(selection, (uint32_t)index);
    return (struct figures){{changes->items[index].allocations,
                             changes->items[index].allocated_bytes,
                             is_there ? row->allocations - row->frees : 0,
                             is_there ? row->allocated_bytes - row->freed_bytes : 0}};
}

static MUST_USE enum err score_rows(const struct selection *selection,
                                    const struct row_change_vec *changes,
                                    struct u64_vec *out)
{
    struct figures all = {{0}};
    TRY(u64_vec_resize(out, selection->profile->recording.row_count));
    for (size_t i = 0; i < out->len; i++) {
        const struct figures row = figures_of(selection, changes, i);
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
            all.values[f] = capped_sum_u64(all.values[f], row.values[f]);
        }
    }
    for (size_t i = 0; i < out->len; i++) {
        const struct figures row = figures_of(selection, changes, i);
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
            const double share =
                all.values[f] > 0 ? (double)row.values[f] / (double)all.values[f] : 0;
            const uint64_t score = row.values[f] > 0 ? (uint64_t)(share * score_max) + 1 : 0;
            out->items[i] = max_u64(out->items[i], score);
        }
    }
    return ERR_OK;
}

// Return from which sum on a process has a part of its own.
static MUST_USE enum err least_score(const struct u64_vec *sums, uint64_t *out)
{
    CLEANUP(u64_vec_release) struct u64_vec sorted = {0};
    for (size_t i = 0; i < sums->len; i++) {
        TRY(u64_vec_push(&sorted, sums->items[i]));
    }
    u64_vec_sort_numbers(&sorted);
    *out = sorted.len > PUSH_PARTS_MAX ? sorted.items[sorted.len - PUSH_PARTS_MAX] : 0;
    return ERR_OK;
}

static MUST_USE enum err
add_part(struct push_parts *parts, uint32_t process, uint32_t shown_as, uint32_t *shared)
{
    if (shown_as != REC_NONE || *shared == REC_NONE) {
        TRY(push_part_vec_push(&parts->parts, (struct push_part){.process = shown_as}));
    }
    const uint32_t last = (uint32_t)parts->parts.len - 1;
    if (shown_as == REC_NONE && *shared == REC_NONE) {
        *shared = last;
    }
    parts->of_process.items[process] = shown_as == REC_NONE ? *shared : last;
    return ERR_OK;
}

static MUST_USE enum err divide_rows(const struct u64_vec *sums, struct push_parts *parts)
{
    uint64_t least;
    size_t own_count = 0;
    uint32_t shared = REC_NONE;
    TRY(least_score(sums, &least));
    TRY(u32_vec_resize(&parts->of_process, sums->len));
    for (uint32_t i = 0; i < sums->len; i++) {
        parts->of_process.items[i] = REC_NONE;
        if (sums->items[i] == 0) {
            continue;
        }
        const bool is_own = sums->items[i] >= least && own_count < PUSH_PARTS_MAX;
        own_count += is_own;
        TRY(add_part(parts, i, is_own ? i : REC_NONE, &shared));
    }
    // A profile without samples says that the program lives.
    return parts->parts.len > 0
               ? ERR_OK
               : push_part_vec_push(&parts->parts,
                                    (struct push_part){.process = sums->len > 0 ? 0 : REC_NONE});
}

enum err push_parts_find(const struct selection *selection,
                         const struct row_change_vec *changes,
                         struct push_parts *out)
{
    const struct profile *profile = selection->profile;
    CLEANUP(push_parts_release) struct push_parts parts = {0};
    CLEANUP(u64_vec_release) struct u64_vec sums = {0};
    TRY(score_rows(selection, changes, &parts.scores));
    TRY(u64_vec_resize(&sums, profile->recording.process_count));
    for (size_t i = 0; i < parts.scores.len; i++) {
        uint64_t *sum = &sums.items[profile_process_of_row(profile, (uint32_t)i)];
        *sum = capped_sum_u64(*sum, parts.scores.items[i]);
    }
    TRY(divide_rows(&sums, &parts));
    for (size_t i = 0; i < parts.scores.len; i++) {
        const uint32_t process = profile_process_of_row(profile, (uint32_t)i);
        if (parts.scores.items[i] > 0) {
            parts.parts.items[parts.of_process.items[process]].row_count++;
        }
    }
    *out = TAKE(parts);
    return ERR_OK;
}

// Set *out to the lowest score of the `alone_max` highest ones of a part, and *ties to how many of
// that score are among them.
static MUST_USE enum err lowest_alone(const struct push_parts *parts,
                                      const struct flag_vec *fates,
                                      size_t alone_max,
                                      uint64_t *out,
                                      size_t *ties)
{
    CLEANUP(u64_vec_release) struct u64_vec scores = {0};
    for (size_t i = 0; i < fates->len; i++) {
        if (fates->items[i] == EXPORT_IN_OTHER) {
            TRY(u64_vec_push(&scores, parts->scores.items[i]));
        }
    }
    u64_vec_sort_numbers(&scores);
    const size_t first = scores.len > alone_max ? scores.len - alone_max : 0;
    *out = alone_max > 0 && scores.len > 0 ? scores.items[first] : UINT64_MAX;
    *ties = 0;
    for (size_t i = first; i < scores.len && scores.items[i] == *out; i++) {
        ++*ties;
    }
    return ERR_OK;
}

enum err push_parts_choose(const struct push_parts *parts,
                           const struct profile *profile,
                           size_t part,
                           size_t alone_max,
                           struct flag_vec *fates)
{
    uint64_t lowest;
    size_t ties;
    TRY(flag_vec_resize(fates, parts->scores.len));
    for (size_t i = 0; i < fates->len; i++) {
        const uint32_t process = profile_process_of_row(profile, (uint32_t)i);
        const bool is_here = parts->scores.items[i] > 0 && parts->of_process.items[process] == part;
        fates->items[i] = is_here ? EXPORT_IN_OTHER : EXPORT_NOWHERE;
    }
    TRY(lowest_alone(parts, fates, alone_max, &lowest, &ties));
    for (size_t i = 0; i < fates->len; i++) {
        const uint64_t score = parts->scores.items[i];
        if (fates->items[i] != EXPORT_IN_OTHER || score < lowest ||
            (score == lowest && ties == 0)) {
            continue;
        }
        ties -= score == lowest;
        fates->items[i] = EXPORT_ALONE;
    }
    return ERR_OK;
}
