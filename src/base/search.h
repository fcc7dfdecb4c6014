// SPDX-License-Identifier: MIT
// search: binary search in a sorted array. Context: T and H; pure.
#pragma once

#include <stddef.h>

// Return the smallest index below `count` for which `condition` is true, or `count`. `at` names the
// index in the condition, which must stay true from its first true index on:
//   const size_t first = FIRST_WHERE(at, ranges->len, ranges->items[at].end > address);
#define FIRST_WHERE(at, count, condition)                                  \
    ({                                                                     \
        size_t search_low = 0;                                             \
        size_t search_high = (count);                                      \
        while (search_low < search_high) {                                 \
            const size_t at = search_low + (search_high - search_low) / 2; \
            if (condition) {                                               \
                search_high = at;                                          \
            } else {                                                       \
                search_low = at + 1;                                       \
            }                                                              \
        }                                                                  \
        search_low;                                                        \
    })
