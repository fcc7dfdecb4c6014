// SPDX-License-Identifier: MIT
// sample_kinds: the kinds add up to the snapshot's resident bytes, whichever of the two had more.
#include "recorder/samples/sample_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

struct kinds {
    uint64_t anonymous;
    uint64_t file;
    uint64_t shmem;
};

static void the_kinds_add_up(void **state)
{
    (void)state;
    static const struct {
        struct kinds sample;
        struct kinds snapshot;
        struct kinds after;
    } cases[] = {
        {{10, 5, 2}, {10, 5, 2}, {10, 5, 2}},
        {{10, 5, 2}, {12, 5, 2}, {12, 5, 2}}, // more of each kind
        {{10, 5, 2}, {10, 9, 2}, {10, 9, 2}},
        {{10, 5, 2}, {10, 5, 6}, {10, 5, 6}},
        {{10, 5, 2}, {13, 6, 4}, {13, 6, 4}},
        {{10, 5, 2}, {4, 5, 2}, {4, 5, 2}}, // fewer of each kind
        {{10, 5, 2}, {10, 1, 2}, {10, 1, 2}},
        {{10, 5, 2}, {10, 5, 0}, {10, 5, 0}},
        {{10, 5, 2}, {7, 3, 1}, {7, 3, 1}},
        {{10, 5, 2}, {0, 0, 0}, {0, 0, 0}},
        {{10, 5, 2}, {0, 7, 2}, {2, 5, 2}}, // fewer, and other kinds
        {{1, 5, 9}, {0, 3, 9}, {0, 3, 9}},
        {{10, 5, 2}, {14, 1, 0}, {10, 5, 0}}, // fewer in all than of one kind
        {{1, 8, 2}, {0, 0, 9}, {1, 6, 2}},
        {{1, 2, 8}, {1, 2, 0}, {1, 2, 0}},
        {{0, 0, 0}, {3, 2, 1}, {3, 2, 1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kinds *of = &cases[i].snapshot;
        struct rec_rss_sample sample = {.anonymous_bytes = cases[i].sample.anonymous,
                                        .file_bytes = cases[i].sample.file,
                                        .shmem_bytes = cases[i].sample.shmem,
                                        .rss_bytes = 99};
        const struct rec_memory_snapshot snapshot = {.file_bytes = of->file,
                                                     .shared_bytes = of->shmem,
                                                     .rss_bytes =
                                                         of->anonymous + of->file + of->shmem};
        sample_kinds_fit(&sample, &snapshot);
        print_message("%zu: %d %d %d\n", i, (int)sample.anonymous_bytes, (int)sample.file_bytes,
                      (int)sample.shmem_bytes);
        assert_int_equal(sample.rss_bytes, snapshot.rss_bytes);
        assert_int_equal(sample.anonymous_bytes + sample.file_bytes + sample.shmem_bytes,
                         snapshot.rss_bytes);
        assert_int_equal(sample.anonymous_bytes, cases[i].after.anonymous);
        assert_int_equal(sample.file_bytes, cases[i].after.file);
        assert_int_equal(sample.shmem_bytes, cases[i].after.shmem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kinds_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
