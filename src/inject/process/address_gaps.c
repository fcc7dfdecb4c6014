// SPDX-License-Identifier: MIT
#include "inject/process/address_gaps.h"

#include "address_space_arch.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"

#define LOWEST UINT64_C(0x100000) // above every usual vm.mmap_min_addr

struct gap_search {
    const struct address_range_vec *taken;
    struct address_range window;
    uint64_t bytes;
    struct address_range best;
};

// The lowest taken range that overlaps [start, end), NULL if none does.
static const struct address_range *
find_taken(const struct address_range_vec *taken, uint64_t start, uint64_t end)
{
    const struct address_range *lowest = NULL;
    for (size_t i = 0; i < taken->len; i++) {
        const struct address_range *range = taken->items + i;
        if (range->start < end && range->end > start &&
            (lowest == NULL || range->start < lowest->start)) {
            lowest = range;
        }
    }
    return lowest;
}

// Keep the larger one of the best gap so far and the free range [start, end) between mappings.
static void offer(struct gap_search *search, uint64_t start, uint64_t end)
{
    start = max_u64(start, search->window.start);
    end = min_u64(end, search->window.end);
    while (start < end) {
        const struct address_range *taken = find_taken(search->taken, start, end);
        const uint64_t free_end = taken != NULL ? max_u64(start, taken->start) : end;
        if (free_end - start >= search->bytes &&
            free_end - start > search->best.end - search->best.start) {
            search->best = (struct address_range){.start = start, .end = free_end};
        }
        start = taken != NULL ? taken->end : end;
    }
}

static uint64_t find_in(const struct target_process *target,
                        const struct address_range_vec *taken,
                        uint64_t bytes,
                        struct address_range window)
{
    struct gap_search search = {.taken = taken, .window = window, .bytes = bytes};
    uint64_t free_from = LOWEST;
    for (size_t i = 0; i < target->mappings.len; i++) {
        offer(&search, free_from, target->mappings.items[i].start);
        free_from = max_u64(free_from, target->mappings.items[i].end);
    }
    offer(&search, free_from, address_space_end(target));
    const uint64_t room = search.best.end - search.best.start;
    return room == 0 ? 0 : search.best.start + page_start((room - bytes) / 2);
}

uint64_t address_gaps_find(const struct target_process *target,
                           const struct address_range_vec *taken,
                           uint64_t bytes)
{
    return find_in(target, taken, bytes,
                   (struct address_range){.start = LOWEST, .end = address_space_end(target)});
}

uint64_t address_gaps_find_near(const struct target_process *target,
                                const struct address_range_vec *taken,
                                uint64_t bytes,
                                struct address_range near)
{
    const uint64_t lowest =
        near.end > ADDRESS_SPACE_REACH + LOWEST ? near.end - ADDRESS_SPACE_REACH : LOWEST;
    const uint64_t highest = min_u64(near.start + ADDRESS_SPACE_REACH, address_space_end(target));
    const uint64_t below =
        find_in(target, taken, bytes, (struct address_range){.start = lowest, .end = near.start});
    return below != 0 ? below
                      : find_in(target, taken, bytes,
                                (struct address_range){.start = near.end, .end = highest});
}
