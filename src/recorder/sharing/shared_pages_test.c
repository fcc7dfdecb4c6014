// SPDX-License-Identifier: MIT
// shared_pages: what counts of the pages that several processes have.
#include "recorder/sharing/shared_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

#define MB ((uint64_t)1 << 20)

enum {
    PROCESSES = 3,
};

// One part of each process, all of one file.
struct file_case {
    uint64_t rss_bytes[PROCESSES];
    uint64_t shared_bytes[PROCESSES];
    uint64_t proportional_bytes[PROCESSES];
    uint64_t repeated_bytes[PROCESSES]; // wanted
    uint64_t late_bytes[PROCESSES];
};

static const struct file_case files[] = {
    // All have the same 60 MiB.
    {{60 * MB, 60 * MB, 60 * MB},
     {60 * MB, 60 * MB, 60 * MB},
     {20 * MB, 20 * MB, 20 * MB},
     {0, 60 * MB, 60 * MB},
     {0}},
    // The third has 10 MiB of its own besides.
    {{60 * MB, 60 * MB, 70 * MB},
     {60 * MB, 60 * MB, 60 * MB},
     {20 * MB, 20 * MB, 20 * MB},
     {0, 60 * MB, 60 * MB},
     {0}},
    // Unrecorded processes have the pages, too: what one process has counts.
    {{8 * MB, 8 * MB, 4 * MB}, {8 * MB, 8 * MB, 4 * MB}, {MB, MB, MB}, {0, 8 * MB, 4 * MB}, {0}},
    // Pairs share different pages: A with B, B with C.
    {{4 * MB, 8 * MB, 4 * MB},
     {4 * MB, 8 * MB, 4 * MB},
     {2 * MB, 4 * MB, 2 * MB},
     {0, 4 * MB, 4 * MB},
     {0}},
    // Nothing is shared.
    {{MB, 2 * MB, 3 * MB}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0}},
    // All touch the same 60 MiB while they are read, and the first one was alone then.
    {{60 * MB, 60 * MB, 60 * MB},
     {0, 60 * MB, 60 * MB},
     {0, 30 * MB, 20 * MB},
     {0, 60 * MB, 60 * MB},
     {0, 60 * MB, 60 * MB}},
    // Two touch what the first one does not have.
    {{8 * MB, 60 * MB, 60 * MB},
     {0, 60 * MB, 60 * MB},
     {0, 30 * MB, 30 * MB},
     {0, 8 * MB, 60 * MB},
     {0, 60 * MB, 60 * MB}},
    // It has other pages of the file, which the next look shows.
    {{60 * MB, 70 * MB, 0},
     {60 * MB, 60 * MB, 0},
     {30 * MB, 30 * MB, 0},
     {0, 60 * MB, 0},
     {0, 10 * MB, 0}},
};

static void a_file_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const struct file_case *c = &files[i];
        struct rec_part parts[PROCESSES];
        struct rec_memory_snapshot snapshots[PROCESSES];
        CLEANUP(shared_claim_vec_release) struct shared_claim_vec claims = {0};
        for (uint32_t at = PROCESSES; at > 0; at--) { // in any order
            const uint32_t p = at - 1;
            parts[p] = (struct rec_part){
                .snapshot = p, .kind = REC_PART_SHARED, .rss_bytes = c->rss_bytes[p]};
            snapshots[p] = (struct rec_memory_snapshot){.rss_bytes = c->rss_bytes[p],
                                                        .shared_bytes = c->rss_bytes[p]};
            const struct shared_claim claim = {.device = 1,
                                               .inode = 5,
                                               .process = p,
                                               .part = p,
                                               .shared_bytes = c->shared_bytes[p],
                                               .proportional_bytes = c->proportional_bytes[p],
                                               .private_bytes =
                                                   c->rss_bytes[p] - c->shared_bytes[p],
                                               .late_bytes = c->late_bytes[p]};
            assert_int_equal(shared_claim_vec_push(&claims, claim), ERR_OK);
        }
        shared_pages_settle(&claims, parts, snapshots);
        for (size_t p = 0; p < PROCESSES; p++) {
            assert_int_equal(parts[p].repeated_bytes, c->repeated_bytes[p]);
            assert_int_equal(rec_snapshot_counted_rss(&snapshots[p]),
                             c->rss_bytes[p] - c->repeated_bytes[p]);
        }
    }
}

static void different_files_are_apart(void **state)
{
    (void)state;
    struct rec_part parts[2] = {
        {.snapshot = 0, .kind = REC_PART_FILE, .rss_bytes = MB},
        {.snapshot = 1, .kind = REC_PART_FILE, .rss_bytes = MB},
    };
    struct rec_memory_snapshot snapshots[2] = {{.rss_bytes = MB, .file_bytes = MB},
                                               {.rss_bytes = MB, .file_bytes = MB}};
    CLEANUP(shared_claim_vec_release) struct shared_claim_vec claims = {0};
    for (uint32_t p = 0; p < 2; p++) {
        const struct shared_claim claim = {.device = 1,
                                           .inode = 5 + p,
                                           .process = p,
                                           .part = p,
                                           .shared_bytes = MB,
                                           .proportional_bytes = MB / 2};
        assert_int_equal(shared_claim_vec_push(&claims, claim), ERR_OK);
    }
    shared_pages_settle(&claims, parts, snapshots);
    assert_int_equal(parts[0].repeated_bytes + parts[1].repeated_bytes, 0);
}

static void samples_count_shared_pages_once(void **state)
{
    (void)state;
    uint64_t repeated[3] = {9, 9, 9};
    const struct shared_amount amounts[3] = {{64 * MB, 22 * MB, &repeated[0]},
                                             {64 * MB, 22 * MB, &repeated[1]},
                                             {74 * MB, 32 * MB, &repeated[2]}};
    shared_pages_settle_amounts(amounts, 3);
    assert_int_equal(repeated[0], 0);
    assert_int_equal(repeated[1] + repeated[2], (64 + 64 + 74 - 76) * MB);
    shared_pages_settle_amounts(amounts, 1); // one process: as the kernel counts it
    assert_int_equal(repeated[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_counts_once),
        cmocka_unit_test(different_files_are_apart),
        cmocka_unit_test(samples_count_shared_pages_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
