// SPDX-License-Identifier: MIT
#include "recorder/sharing/shared_pages.h"

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

void shared_claim_add(struct shared_claim *sum, const struct shared_claim *more)
{
    sum->shared_bytes += more->shared_bytes;
    sum->proportional_bytes += more->proportional_bytes;
    sum->private_bytes += more->private_bytes;
}

// Add up the claims of the first process. Return their number.
static size_t add_process(const struct shared_claim *claims, size_t count, struct shared_claim *out)
{
    *out = claims[0];
    size_t end = 1;
    for (; end < count && claims[end].process == claims[0].process; end++) {
        shared_claim_add(out, claims + end);
    }
    return end;
}

// Return what the claims of one file count for together.
static uint64_t sum_of_file(const struct shared_claim *claims, size_t count)
{
    uint64_t divided_bytes = 0;
    uint64_t most_bytes = 0;
    uint64_t private_bytes = 0;
    uint64_t whole_bytes = 0; // of the process with most of the file
    for (size_t first = 0; first < count;) {
        struct shared_claim sum;
        first += add_process(claims + first, count - first, &sum);
        const uint64_t doubted_bytes = min_u64(sum.shared_bytes, sum.late_bytes);
        divided_bytes += excess_u64(sum.proportional_bytes, doubted_bytes);
        most_bytes = max_u64(most_bytes, sum.shared_bytes - doubted_bytes);
        private_bytes += sum.private_bytes;
        whole_bytes = max_u64(whole_bytes, sum.private_bytes + sum.shared_bytes);
    }
    return max_u64(max_u64(divided_bytes, most_bytes), excess_u64(whole_bytes, private_bytes));
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

bool shared_pages_are_late(const struct shared_claim_vec *claims)
{
    for (size_t i = 0; i < claims->len; i++) {
        if (claims->items[i].late_bytes > 0) {
            return true;
        }
    }
    return false;
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
