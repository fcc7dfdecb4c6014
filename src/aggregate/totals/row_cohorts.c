// SPDX-License-Identifier: MIT
#include "aggregate/totals/row_cohorts.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"

void row_cohorts_release(struct row_cohorts *made)
{
    rec_cohort_vec_release(&made->step);
    rec_cohort_vec_release(&made->late);
}

static void clear(struct row_cohorts *made)
{
    for (uint32_t i = made->first; i < made->end; i++) {
        made->blocks[i] = 0;
        made->bytes[i] = 0;
    }
    made->first = SERIES_SLICES_MAX;
    made->end = 0;
    rec_cohort_vec_clear(&made->late);
}

static void add(struct row_cohorts *made, uint32_t step, int64_t blocks, int64_t bytes)
{
    made->blocks[step] += blocks;
    made->bytes[step] += bytes;
    made->first = min_u64(made->first, step);
    made->end = step < made->end ? made->end : step + 1;
}

static void find_live(struct row_cohorts *made, const struct row_part *part)
{
    clear(made);
    for (size_t i = 0; i < part->cell_count; i++) {
        const struct rec_cell *cell = part->cells + i;
        add(made, cell->slice >> part->shift, (int64_t)(cell->allocations - cell->frees),
            (int64_t)(cell->allocated_bytes - cell->freed_bytes));
    }
    for (size_t i = 0; i < part->freed_count; i++) {
        const struct rec_cohort *cohort = part->freed + i;
        add(made, cohort->freed_slice, cohort->blocks, (int64_t)cohort->bytes);
        add(made, cohort->born_slice, -(int64_t)cohort->blocks, -(int64_t)cohort->bytes);
    }
}

static bool is_possible(int64_t blocks, int64_t bytes)
{
    return blocks >= 0 && bytes >= 0 && (blocks > 0 || bytes == 0);
}

// Take blocks of the step's last cohort for the next step. A cohort has blocks of several sizes: of
// a part of it the mean size is taken, or what the step's live blocks lack.
static enum err move_last(struct row_cohorts *made, uint32_t step)
{
    struct rec_cohort *last = made->step.items + made->step.len - 1;
    struct rec_cohort moved = *last;
    const uint64_t lacking = made->blocks[step] < 0 ? (uint64_t)-made->blocks[step] : 1;
    if (lacking < last->blocks) {
        const uint64_t lacking_bytes = made->bytes[step] < 0 ? (uint64_t)-made->bytes[step] : 0;
        const uint64_t mean_bytes = share_u64(last->bytes, lacking, last->blocks);
        moved.blocks = (uint32_t)lacking;
        moved.bytes = min_u64(last->bytes, max_u64(mean_bytes, lacking_bytes));
    }
    moved.born_slice = step + 1;
    TRY(rec_cohort_vec_push(&made->late, moved));
    last->blocks -= moved.blocks;
    last->bytes -= moved.bytes;
    made->step.len -= last->blocks == 0;
    add(made, step, moved.blocks, (int64_t)moved.bytes);
    add(made, step + 1, -(int64_t)moved.blocks, -(int64_t)moved.bytes);
    return ERR_OK;
}

static int by_death(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    return order_u64(a->freed_slice, b->freed_slice);
}

// Begin a step with the freed blocks born in it, those of `freed` and those that were too many in
// the step before. Those freed in it are no cohort any more.
static enum err
begin_step(struct row_cohorts *made, uint32_t step, const struct rec_cohort *freed, size_t count)
{
    struct rec_cohort_vec *all = &made->late;
    rec_cohort_vec_clear(&made->step);
    for (size_t i = 0; i < count; i++) {
        TRY(rec_cohort_vec_push(all, freed[i]));
    }
    rec_cohort_vec_sort(all, by_death);
    for (size_t i = 0; i < all->len; i++) {
        const struct rec_cohort *cohort = all->items + i;
        struct rec_cohort *last = made->step.len > 0 ? made->step.items + made->step.len - 1 : NULL;
        if (last != NULL && last->freed_slice == cohort->freed_slice &&
            cohort->blocks <= UINT32_MAX - last->blocks) {
            last->blocks += cohort->blocks;
            last->bytes += cohort->bytes;
        } else if (cohort->freed_slice > step) {
            TRY(rec_cohort_vec_push(&made->step, *cohort));
        }
    }
    rec_cohort_vec_clear(all);
    return ERR_OK;
}

// Nothing can be moved any more: the file contradicts itself. The next step has the difference.
static void carry(struct row_cohorts *made, uint32_t step)
{
    if (step + 1 < made->end) {
        add(made, step + 1, made->blocks[step], made->bytes[step]);
    }
    made->blocks[step] = 0;
    made->bytes[step] = 0;
}

static enum err push_step(const struct row_cohorts *made,
                          const struct row_part *part,
                          uint32_t step,
                          struct rec_cohort_vec *out)
{
    const int64_t blocks = made->blocks[step];
    for (size_t i = 0; i < made->step.len; i++) {
        struct rec_cohort cohort = made->step.items[i];
        cohort.born_slice <<= part->shift;
        cohort.freed_slice <<= part->shift;
        TRY(rec_cohort_vec_push(out, cohort));
    }
    if (blocks == 0) {
        return ERR_OK;
    }
    return rec_cohort_vec_push(
        out, (struct rec_cohort){.row = part->row,
                                 .born_slice = step << part->shift,
                                 .freed_slice = REC_NONE, // sorts behind all slices
                                 .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                                 .bytes = (uint64_t)made->bytes[step]});
}

enum err
row_cohorts_add(struct row_cohorts *made, const struct row_part *part, struct rec_cohort_vec *out)
{
    size_t at = 0;
    find_live(made, part);
    for (uint32_t step = made->first; step < made->end; step++) {
        const size_t begin = at;
        while (at < part->freed_count && part->freed[at].born_slice == step) {
            at++;
        }
        TRY(begin_step(made, step, part->freed + begin, at - begin));
        while (!is_possible(made->blocks[step], made->bytes[step]) && made->step.len > 0) {
            TRY(move_last(made, step));
        }
        if (!is_possible(made->blocks[step], made->bytes[step])) {
            carry(made, step);
        }
        TRY(push_step(made, part, step, out));
    }
    return ERR_OK;
}
