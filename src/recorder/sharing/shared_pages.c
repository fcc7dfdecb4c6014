// SPDX-License-Identifier: MIT
#include "recorder/sharing/shared_pages.h"

#include <stdbool.h>

#include "base/minmax.h"
#include "base/order.h"

static int compare_claims(const void *left, const void *right)
{
    const struct shared_claim *a = left;
    const struct shared_claim *b = right;
    return order_u64(a->device, b->device)
               ?: order_u64(a->inode, b->inode)
               ?: order_u64(a->process, b->process)
               ?: order_u64(a->part, b->part);
}

static bool is_same_file(const struct shared_claim *a, const struct shared_claim *b)
{
    return a->device == b->device && a->inode == b->inode;
}

// Return what the claims of one file count for together.
static uint64_t sum_of_file(const struct shared_claim *claims, size_t count)
{
    uint64_t divided_bytes = 0;
    uint64_t most_bytes = 0;
    uint64_t process_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_next = i == 0 || claims[i].process != claims[i - 1].process;
        process_bytes = (is_next ? 0 : process_bytes) + claims[i].shared_bytes;
        most_bytes = max_u64(most_bytes, process_bytes);
        divided_bytes += claims[i].proportional_bytes;
    }
    return max_u64(divided_bytes, most_bytes);
}

static void settle_file(const struct shared_claim *claims,
                        size_t count,
                        struct rec_part *parts,
                        struct rec_memory_snapshot *snapshots)
{
    uint64_t left_bytes = sum_of_file(claims, count);
    for (size_t i = 0; i < count; i++) {
        struct rec_part *part = parts + claims[i].part;
        const uint64_t counted_bytes = min_u64(claims[i].shared_bytes, left_bytes);
        const uint64_t repeated_bytes =
            min_u64(claims[i].shared_bytes - counted_bytes, part->rss_bytes - part->repeated_bytes);
        left_bytes -= counted_bytes;
        part->repeated_bytes += repeated_bytes;
        snapshots[part->snapshot].repeated_bytes[part->kind - 1] += repeated_bytes;
    }
}

void shared_pages_settle(struct shared_claim_vec *claims,
                         struct rec_part *parts,
                         struct rec_memory_snapshot *snapshots)
{
    shared_claim_vec_sort(claims, compare_claims);
    for (size_t first = 0; first < claims->len;) {
        size_t end = first + 1;
        while (end < claims->len && is_same_file(claims->items + first, claims->items + end)) {
            end++;
        }
        settle_file(claims->items + first, end - first, parts, snapshots);
        first = end;
    }
}

void shared_pages_settle_amounts(const struct shared_amount *amounts, size_t count)
{
    uint64_t divided_bytes = 0;
    uint64_t most_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        divided_bytes += amounts[i].proportional_bytes;
        most_bytes = max_u64(most_bytes, amounts[i].bytes);
    }
    uint64_t left_bytes = max_u64(divided_bytes, most_bytes);
    for (size_t i = 0; i < count; i++) {
        const uint64_t counted_bytes = min_u64(amounts[i].bytes, left_bytes);
        left_bytes -= counted_bytes;
        *amounts[i].repeated_bytes = amounts[i].bytes - counted_bytes;
    }
}
