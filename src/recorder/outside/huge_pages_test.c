// SPDX-License-Identifier: MIT
// huge_pages: drawn maps, whose pages are written or not by a rule that the test states.
#include "recorder/outside/huge_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/memory/page_size.h"

#define HUGE  (UINT64_C(2) << 20)
#define START (UINT64_C(0x40000000) + HUGE / 2) // an area need not begin with a huge page

struct drawn {
    uint64_t written_each; // page of the memory, from address 0
    uint64_t absent_range; // this range of 2 MiB has an absent page; 0: none
    size_t reads;
};

static bool read_drawn(void *context, uint64_t address, void *out, size_t size_bytes)
{
    struct drawn *drawn = context;
    assert_true(drawn->absent_range == 0 || address / HUGE != drawn->absent_range);
    drawn->reads++;
    memset(out, 0, size_bytes);
    ((uint8_t *)out)[size_bytes - 1] = address / PAGE_GRAIN % drawn->written_each == 0;
    return true;
}

static bool pages_of_drawn(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    const struct drawn *drawn = context;
    for (size_t i = 0; i < count; i++) {
        const uint64_t address = (first_page + i) * page_bytes();
        const bool is_absent = drawn->absent_range == address / HUGE && address % HUGE == 0;
        bits[i / 64] |= (uint64_t)!is_absent << i % 64;
    }
    return true;
}

// Return the estimate for an area with so many bytes in huge pages.
static uint64_t estimate(struct drawn *drawn, uint64_t size_bytes, uint64_t huge_bytes)
{
    struct memory_area areas[] = {{.start = 0x1000, .end = 0x9000, .rss_bytes = 0x8000},
                                  {.start = START,
                                   .end = START + size_bytes,
                                   .rss_bytes = size_bytes,
                                   .huge_bytes = huge_bytes}};
    struct memory_areas map = {.areas = {.items = areas, .len = 2}};
    const struct memory_source memory = {.read = read_drawn, .context = drawn};
    const struct page_source pages = {.read = pages_of_drawn, .context = drawn};
    huge_pages_estimate(&map, &memory, &pages);
    assert_int_equal(areas[0].blank_bytes, 0);
    return areas[1].blank_bytes;
}

static void expect_count_of_what_was_not_written(void)
{
    static const uint64_t each[] = {1, 2, 8, 64, 512, 100000000};
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        for (uint64_t huge_pages = 4; huge_pages <= 4096; huge_pages *= 4) {
            struct drawn drawn = {.written_each = each[i]};
            const uint64_t bytes = huge_pages * HUGE;
            const uint64_t blank_bytes = estimate(&drawn, bytes + HUGE, bytes);
            const uint64_t truth = bytes - bytes / each[i];
            const uint64_t off = blank_bytes > truth ? blank_bytes - truth : truth - blank_bytes;
            assert_true(off <= bytes / 50);
            assert_true(drawn.reads <= 2048);
        }
    }
}

static void what_was_not_written_is_counted(void **state)
{
    (void)state;
    const uint32_t own = g_page_bits;
    for (g_page_bits = 12; g_page_bits <= 16; g_page_bits += 2) {
        expect_count_of_what_was_not_written();
    }
    g_page_bits = own;
}

static void pages_that_are_absent_are_not_read(void **state)
{
    (void)state;
    struct drawn drawn = {.written_each = 2, .absent_range = START / HUGE + 3};
    const uint64_t blank_bytes = estimate(&drawn, 10 * HUGE, 8 * HUGE);
    assert_in_range(blank_bytes, 4 * HUGE - HUGE / 8, 4 * HUGE + HUGE / 8);
}

static void a_map_without_huge_pages_costs_nothing(void **state)
{
    (void)state;
    struct drawn drawn = {.written_each = 2};
    assert_int_equal(estimate(&drawn, 64 * HUGE, 0), 0);
    assert_int_equal(estimate(&drawn, HUGE / 2, HUGE / 2), 0);
    assert_int_equal(drawn.reads, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_written_is_counted),
        cmocka_unit_test(pages_that_are_absent_are_not_read),
        cmocka_unit_test(a_map_without_huge_pages_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
