// SPDX-License-Identifier: MIT
// The kernel's own page, and rounding to pages of each size.
#include "host/memory/page_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

static void the_size_is_the_kernel_s(void **state)
{
    (void)state;
    assert_int_equal(page_bytes(), getpagesize());
    assert_int_equal(page_bytes(), getauxval(AT_PAGESZ));
}

static void addresses_are_rounded_to_pages_of_each_size(void **state)
{
    (void)state;
    static const struct {
        uint32_t bits;
        uint64_t start; // of the page with 0x123456
        uint64_t end;
        uint64_t rest;
        uint64_t count; // before it
    } cases[] = {
        {12, 0x123000, 0x124000, 0x456, 0x123},
        {14, 0x120000, 0x124000, 0x3456, 0x48},
        {16, 0x120000, 0x130000, 0x3456, 0x12},
    };
    const uint32_t own = g_page_bits;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        g_page_bits = cases[i].bits;
        assert_int_equal(page_start(0x123456), cases[i].start);
        assert_int_equal(page_end(0x123456), cases[i].end);
        assert_int_equal(page_rest(0x123456), cases[i].rest);
        assert_int_equal(page_count(0x123456), cases[i].count);
        assert_int_equal(page_end(cases[i].end), cases[i].end);
        assert_int_equal(page_rest(cases[i].end), 0);
        assert_true(page_bytes() % PAGE_GRAIN == 0 && PAGE_LARGEST % page_bytes() == 0);
    }
    g_page_bits = own;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_is_the_kernel_s),
        cmocka_unit_test(addresses_are_rounded_to_pages_of_each_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
