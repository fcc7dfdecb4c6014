// SPDX-License-Identifier: MIT
#include "symbols/names/range_index.h"

#include <stdbool.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/search.h"

enum {
    SEARCH_LIMIT = 10000
};

void range_index_release(struct range_index *index)
{
    range_vec_release(&index->ranges);
    u64_vec_release(&index->reach);
}

void range_index_clear(struct range_index *index)
{
    range_vec_clear(&index->ranges);
    u64_vec_clear(&index->reach);
}

enum err range_index_add(struct range_index *index, uint64_t begin, uint64_t end, uint32_t value)
{
    if (begin >= end) {
        return ERR_OK;
    }
    return range_vec_push(&index->ranges,
                          (struct range){.begin = begin, .end = end, .value = value});
}

// Searches are downwards, so the larger value is first.
static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left;
    const struct range *b = right;
    return order_u64(a->begin, b->begin) ?: order_u64(b->value, a->value);
}

static bool is_sorted(const struct range_vec *ranges)
{
    for (size_t i = 1; i < ranges->len; i++) {
        if (compare_ranges(&ranges->items[i - 1], &ranges->items[i]) > 0) {
            return false;
        }
    }
    return true;
}

enum err range_index_seal(struct range_index *index)
{
    size_t count = index->ranges.len;
    TRY(u64_vec_resize(&index->reach, count));
    if (!is_sorted(&index->ranges)) {
        range_vec_sort(&index->ranges, compare_ranges);
    }
    uint64_t reach = 0;
    for (size_t i = 0; i < count; i++) {
        reach = max_u64(reach, index->ranges.items[i].end);
        index->reach.items[i] = reach;
    }
    return ERR_OK;
}

struct range_search range_index_search(const struct range_index *index, uint64_t address)
{
    const struct range *ranges = index->ranges.items;
    return (struct range_search){.next =
                                     FIRST_WHERE(at, index->reach.len, ranges[at].begin > address)};
}

const struct range *
range_index_next(const struct range_index *index, struct range_search *search, uint64_t address)
{
    while (search->next > 0 && search->steps < SEARCH_LIMIT) {
        size_t at = --search->next;
        search->steps++;
        if (index->reach.items[at] <= address) {
            break;
        }
        if (index->ranges.items[at].end > address) {
            return &index->ranges.items[at];
        }
    }
    search->next = 0;
    return NULL;
}
