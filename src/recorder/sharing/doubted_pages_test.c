// SPDX-License-Identifier: MIT
// Shared pages of samples that may count twice: how many of them count, and how many may.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recorder/sharing/doubted_pages.h"

static void doubted_pages_count_as_repeated(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t of_files; // wanted
        uint64_t of_shmem;
    } cases[] = {{0, 0, 0}, {30, 30, 0}, {90, 70, 20}, {400, 70, 100}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rec_rss_sample sample = {
            .rss_bytes = 500, .file_bytes = 80, .repeated_file_bytes = 10, .shmem_bytes = 100};
        doubted_pages_add(&sample, cases[i].bytes);
        assert_int_equal(sample.repeated_file_bytes, 10 + cases[i].of_files);
        assert_int_equal(sample.repeated_shmem_bytes, cases[i].of_shmem);
        assert_int_equal(sample.doubted_bytes, cases[i].of_files + cases[i].of_shmem);
        assert_int_equal(shared_bytes_counted(&sample), 170 - sample.doubted_bytes);
        assert_int_equal(shared_bytes_of(&sample), 180);
    }
}

static void set_up(struct rec_rss_sample samples[2])
{
    for (size_t i = 0; i < 2; i++) {
        samples[i] = (struct rec_rss_sample){.rss_bytes = 200, .file_bytes = 30, .shmem_bytes = 70};
        doubted_pages_add(samples + i, 60);
    }
}

// Samples admit what is doubted one after the other.
static void what_must_count_is_admitted(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t left[2]; // wanted: doubted
    } cases[] = {{0, {60, 60}}, {50, {10, 60}}, {75, {0, 45}}, {1000, {0, 0}}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rec_rss_sample samples[2];
        set_up(samples);
        const uint64_t admitted = doubted_pages_admit(samples, 2, cases[i].bytes);
        assert_int_equal(admitted, 120 - cases[i].left[0] - cases[i].left[1]);
        for (size_t at = 0; at < 2; at++) {
            assert_int_equal(samples[at].doubted_bytes, cases[i].left[at]);
            assert_int_equal(shared_bytes_counted(samples + at), 100 - cases[i].left[at]);
        }
    }
}

// What counts stays; no more is doubted than is repeated.
static void a_doubt_has_a_limit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t left[2];
    } cases[] = {{0, {0, 0}}, {50, {50, 0}}, {75, {60, 15}}, {UINT64_MAX, {60, 60}}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rec_rss_sample samples[2];
        set_up(samples);
        doubted_pages_limit(samples, 2, cases[i].bytes);
        for (size_t at = 0; at < 2; at++) {
            assert_int_equal(samples[at].doubted_bytes, cases[i].left[at]);
            assert_int_equal(shared_bytes_counted(samples + at), 40);
        }
    }
    struct rec_rss_sample sample = {.file_bytes = 9, .repeated_file_bytes = 5, .doubted_bytes = 7};
    doubted_pages_limit(&sample, 1, UINT64_MAX);
    assert_int_equal(sample.doubted_bytes, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubted_pages_count_as_repeated),
        cmocka_unit_test(what_must_count_is_admitted),
        cmocka_unit_test(a_doubt_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
