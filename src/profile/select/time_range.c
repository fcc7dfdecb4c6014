// SPDX-License-Identifier: MIT
#include "profile/select/time_range.h"

#include "base/compiler.h"
#include "base/minmax.h"

const char *const block_class_names[] = {"in_in", "in_out", "out_in", "out_out", NULL};

struct amount {
    uint64_t blocks;
    uint64_t bytes;
};

// The events of one row within the range.
struct row_part {
    struct amount births; // inside
    struct amount in_out;
    struct amount out_in;
    struct amount out_out;
    struct amount at_moment; // live at the end of the peak slice, of the wanted classes
    uint64_t temporary;
};

DEFINE_VEC(row_part_vec, struct row_part);

bool time_range_is_known(const struct recording *recording)
{
    return recording->slice_ms > 0 && recording->slice_count > 0 && recording->cell_count > 0 &&
           (recording->meta.unknown & REC_UNKNOWN_ALLOCATIONS) == 0;
}

struct time_range time_range_covering(const struct recording *recording,
                                      uint64_t from_ms,
                                      uint64_t to_ms,
                                      uint32_t classes)
{
    uint64_t count = recording->slice_count;
    uint64_t first = from_ms / recording->slice_ms;
    uint64_t end = to_ms / recording->slice_ms + (to_ms % recording->slice_ms != 0);
    first = first < count ? first : count - 1;
    end = min_u64(end, count);
    end = end > first ? end : first + 1;
    return (struct time_range){.first = (uint32_t)first, .end = (uint32_t)end, .classes = classes};
}

static struct amount sum_of_amounts(struct amount left, struct amount right)
{
    return (struct amount){left.blocks + right.blocks, left.bytes + right.bytes};
}

static struct amount difference_of_amounts(struct amount whole, struct amount part)
{
    return (struct amount){excess_u64(whole.blocks, part.blocks),
                           excess_u64(whole.bytes, part.bytes)};
}

// The slice of the range at whose end the whole heap was largest.
static uint32_t find_moment(const struct recording *recording, struct time_range range)
{
    uint32_t moment = range.first;
    for (uint32_t i = range.first; i < range.end; i++) {
        if (recording->slices[i].live_bytes > recording->slices[moment].live_bytes) {
            moment = i;
        }
    }
    return moment;
}

// The end of a slice, or of the run if that is earlier.
static uint64_t end_of_slice(const struct recording *recording, uint32_t slice)
{
    uint64_t end_ms = (slice + UINT64_C(1)) * recording->slice_ms;
    uint64_t run_ms = recording->meta.runtime_ms;
    return slice + UINT64_C(1) == recording->slice_count && run_ms < end_ms ? run_ms : end_ms;
}

uint64_t time_range_peak_ms(const struct recording *recording, struct time_range range)
{
    return end_of_slice(recording, find_moment(recording, range));
}

uint64_t time_range_end_ms(const struct recording *recording, struct time_range range)
{
    return end_of_slice(recording, range.end - 1);
}

static void
add_cells(const struct recording *recording, struct time_range range, struct row_part_vec *parts)
{
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        if (cell->slice >= range.first && cell->slice < range.end) {
            struct row_part *part = &parts->items[cell->row];
            part->births = sum_of_amounts(
                part->births, (struct amount){cell->allocations, cell->allocated_bytes});
            part->temporary += cell->temporary;
        }
    }
}

enum block_class time_range_class(const struct time_range *range, const struct rec_cohort *cohort)
{
    const bool is_freed_inside = cohort->freed_slice < range->end; // REC_NONE is above all slices
    if (cohort->born_slice >= range->first) {
        return is_freed_inside ? BLOCKS_IN_IN : BLOCKS_IN_OUT;
    }
    return is_freed_inside ? BLOCKS_OUT_IN : BLOCKS_OUT_OUT;
}

bool time_range_is_over(const struct time_range *range,
                        const struct rec_cohort *cohort,
                        uint32_t left)
{
    return cohort->freed_slice < range->first || left < range->first;
}

static void add_cohort(const struct rec_cohort *cohort,
                       const struct time_range *range,
                       uint32_t moment,
                       uint32_t left,
                       struct row_part *part)
{
    struct amount amount = {cohort->blocks, cohort->bytes};
    const enum block_class class = time_range_class(range, cohort);
    if (class == BLOCKS_IN_OUT) {
        part->in_out = sum_of_amounts(part->in_out, amount);
    } else if (class == BLOCKS_OUT_IN) {
        part->out_in = sum_of_amounts(part->out_in, amount);
    } else if (class == BLOCKS_OUT_OUT) {
        part->out_out = sum_of_amounts(part->out_out, amount);
    }
    const bool is_live =
        cohort->born_slice <= moment && cohort->freed_slice > moment && left > moment;
    if (is_live && (range->classes & class) != 0) {
        part->at_moment = sum_of_amounts(part->at_moment, amount);
    }
}

static void add_cohorts(const struct profile *profile,
                        const struct time_range *range,
                        uint32_t moment,
                        struct row_part_vec *parts)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->cohort_count; i++) {
        const struct rec_cohort *cohort = &recording->cohorts[i];
        const uint32_t process = profile_process_of_row(profile, cohort->row);
        const uint32_t left = process_lives_left_of_cohorts(&profile->lives, process);
        if (cohort->born_slice < range->end && !time_range_is_over(range, cohort, left)) {
            add_cohort(cohort, range, moment, left, &parts->items[cohort->row]);
        }
    }
}

static struct costs costs_of_part(const struct row_part *part, uint32_t classes)
{
    struct amount in_in = difference_of_amounts(part->births, part->in_out);
    struct amount freed = {0};
    struct amount live = {0};
    freed = (classes & BLOCKS_IN_IN) != 0 ? sum_of_amounts(freed, in_in) : freed;
    freed = (classes & BLOCKS_OUT_IN) != 0 ? sum_of_amounts(freed, part->out_in) : freed;
    live = (classes & BLOCKS_IN_OUT) != 0 ? sum_of_amounts(live, part->in_out) : live;
    live = (classes & BLOCKS_OUT_OUT) != 0 ? sum_of_amounts(live, part->out_out) : live;
    uint64_t temporary = min_u64(part->temporary, in_in.blocks);
    return (struct costs){.values = {
                              [COST_PEAK_BYTES] = part->at_moment.bytes,
                              [COST_PEAK_BLOCKS] = part->at_moment.blocks,
                              [COST_ALLOCATIONS] = freed.blocks + live.blocks,
                              [COST_ALLOCATED_BYTES] = freed.bytes + live.bytes,
                              [COST_FREES] = freed.blocks,
                              [COST_FREED_BYTES] = freed.bytes,
                              [COST_TEMPORARY] = (classes & BLOCKS_IN_IN) != 0 ? temporary : 0,
                              [COST_LEAKED_BYTES] = live.bytes,
                              [COST_LEAKED_ALLOCATIONS] = live.blocks,
                          }};
}

enum err
time_range_costs(const struct profile *profile, struct time_range range, struct costs_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(row_part_vec_release) struct row_part_vec parts = {0};
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    TRY(row_part_vec_resize(&parts, recording->row_count));
    TRY(costs_vec_resize(&costs, recording->row_count));
    add_cells(recording, range, &parts);
    add_cohorts(profile, &range, find_moment(recording, range), &parts);
    for (size_t i = 0; i < parts.len; i++) {
        costs.items[i] = costs_of_part(&parts.items[i], range.classes);
    }
    *out = TAKE(costs);
    return ERR_OK;
}
