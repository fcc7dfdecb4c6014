// SPDX-License-Identifier: MIT
#include "profile/growth/growth_repeats.h"

#include <stdlib.h>

#include "base/minmax.h"
#include "base/order.h"

enum {
    WIDE_DIVISOR = 4,
};

static int compare_births(const void *left, const void *right)
{
    const struct stack_birth *a = left;
    const struct stack_birth *b = right;
    return order_u64(a->stack, b->stack) ?: order_u64(a->slice, b->slice);
}

size_t growth_repeats_count(struct stack_birth *births, size_t count)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    size_t repeats = 0;
    for (size_t i = 0; i < count; i++) {
        first = min_u64(first, births[i].slice);
        last = max_u64(last, births[i].slice);
    }
    if (count > 1) {
        qsort(births, count, sizeof(*births), compare_births);
    }
    for (size_t begin = 0; begin < count;) {
        size_t end = begin + 1;
        size_t moments = 1;
        while (end < count && births[end].stack == births[begin].stack) {
            moments += births[end].slice != births[end - 1].slice;
            end++;
        }
        const uint64_t width = births[end - 1].slice - births[begin].slice;
        repeats += moments > 1 && width * WIDE_DIVISOR >= last - first ? moments : 0;
        begin = end;
    }
    return repeats;
}
