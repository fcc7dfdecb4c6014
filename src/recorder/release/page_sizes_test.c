// SPDX-License-Identifier: MIT
// page_sizes: resident_pages, survivors and extents of blocks for pages of 4, 16 and 64 KiB. An
// area has eight pages, every second one resident, and blocks that are stated in parts of a page.
#include "recorder/memory/resident_pages.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "host/memory/page_size.h"
#include "recorder/memory/survivors.h"
#include "recorder/release/block_extent.h"

enum {
    PAGES = 8,
    RESIDENT = 0x55, // bit n: page n
};
#define START UINT64_C(0x10000000)

static bool read_pages(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    (void)context;
    assert_int_equal(first_page, START / page_bytes());
    assert_int_equal(count, PAGES);
    bits[0] = RESIDENT;
    return true;
}

static void expect_counts(void)
{
    const uint64_t page = page_bytes();
    struct memory_area area = {.start = START, .end = START + PAGES * page};
    const struct memory_areas map = {.areas = {.items = &area, .len = 1}};
    const struct page_source source = {.read = read_pages};
    struct resident_pages pages;
    bool is_listed = false;
    assert_int_equal(resident_pages_init(&pages, &map), ERR_OK);
    assert_int_equal(resident_pages_want(&pages, 0, &is_listed), ERR_OK);
    assert_true(is_listed);
    page_wants_read(&pages.wants, &source);
    resident_pages_take(&pages);
    assert_int_equal(resident_pages_count(&pages, 0, START, area.end), 4);
    assert_int_equal(resident_pages_bytes(&pages, 0, START, area.end), 4 * page);
    assert_int_equal(resident_pages_bytes(&pages, 0, START + 100, START + 2 * page + 300),
                     page - 100 + 300);
    struct survivors survivors;
    assert_int_equal(survivors_init(&survivors, &pages), ERR_OK);
    // Page 0 is full but for 16 bytes, page 2 is sparse, pages 4 and 6 are empty.
    survivors_count(&survivors, 0, (struct address_range){START, START + page - 16});
    survivors_count(&survivors, 0, (struct address_range){START + 2 * page, START + 2 * page + 64});
    struct sparse_pages sum = {0};
    survivors_sum(&survivors, 0, (struct address_range){START, area.end}, &sum);
    assert_int_equal(sum.empty_bytes, 2 * page);
    assert_int_equal(sum.sparse_bytes, page);
    assert_int_equal(sum.block_bytes, 64);
    survivors_pin(&survivors, 0, (struct address_range){START + 4 * page, START + 4 * page + 1});
    uint64_t trailing = 0;
    assert_int_equal(survivors_releasable_bytes(
                         &survivors, 0, (struct address_range){START + page, area.end}, &trailing),
                     2 * page); // 2 and 6
    assert_int_equal(trailing, page);
    survivors_release(&survivors);
    resident_pages_release(&pages);
}

static void expect_extents(void)
{
    const uint64_t page = page_bytes();
    const uint64_t large = 200 << 10;
    struct address_range range = block_extent_of(START + BLOCK_MAPPED_HEAD, large);
    assert_int_equal(range.start, START);
    assert_int_equal(range.end, page_end(START + BLOCK_MAPPED_HEAD + large));
    assert_true(block_is_apart(START + page + BLOCK_MAPPED_HEAD, large));
    assert_int_equal(block_is_apart(START + PAGE_GRAIN + BLOCK_MAPPED_HEAD, large),
                     page == PAGE_GRAIN);
}

static void counts_are_of_pages_of_each_size(void **state)
{
    (void)state;
    const uint32_t own = g_page_bits;
    for (g_page_bits = 12; g_page_bits <= 16; g_page_bits += 2) {
        expect_counts();
        expect_extents();
    }
    g_page_bits = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_of_pages_of_each_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
