// SPDX-License-Identifier: MIT
#include "inject/process/address_gaps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/memory/page_size.h"

#define PAGE UINT64_C(4096)
#define GB   (UINT64_C(1) << 30)

// A program at its usual place, a library, and a stack.
static struct target_mapping g_mappings[] = {
    {.start = 0x555555554000, .end = 0x555555560000},
    {.start = 0x555555560000, .end = 0x555555600000}, // its heap
    {.start = 0x7ffff7c00000, .end = 0x7ffff7e00000},
    {.start = 0x7ffffffde000, .end = 0x7ffffffff000},
};

static struct target_process target_of(struct target_mapping *mappings, size_t count)
{
    return (struct target_process){.mappings = {.items = mappings, .len = count}};
}

static void memory_near_a_module_is_free_and_in_reach(void **state)
{
    (void)state;
    const struct target_process target = target_of(g_mappings, ARRAY_LEN(g_mappings));
    for (size_t i = 0; i < ARRAY_LEN(g_mappings); i += 2) {
        const struct address_range module = {.start = g_mappings[i].start,
                                             .end = g_mappings[i].end};
        const struct address_range_vec none = {0};
        const uint64_t addr = address_gaps_find_near(&target, &none, 2 * PAGE, module);
        assert_int_not_equal(addr, 0);
        assert_int_equal(addr % PAGE, 0);
        assert_true(addr + 2 * PAGE <= module.start); // below: a heap grows above
        assert_true(module.end - addr < 2 * GB);
        for (size_t j = 0; j < ARRAY_LEN(g_mappings); j++) {
            assert_true(addr + 2 * PAGE <= g_mappings[j].start || addr >= g_mappings[j].end);
        }
    }
}

static void what_is_taken_is_not_given_twice(void **state)
{
    (void)state;
    const struct target_process target = target_of(g_mappings, ARRAY_LEN(g_mappings));
    struct address_range_vec taken = {0};
    const struct address_range module = {.start = 0x7ffff7c00000, .end = 0x7ffff7e00000};
    for (unsigned i = 0; i < 50; i++) {
        const uint64_t addr = i % 2 == 0 ? address_gaps_find_near(&target, &taken, 3 * PAGE, module)
                                         : address_gaps_find(&target, &taken, 3 * PAGE);
        assert_int_not_equal(addr, 0);
        for (size_t j = 0; j < taken.len; j++) {
            assert_true(addr + 3 * PAGE <= taken.items[j].start || addr >= taken.items[j].end);
        }
        assert_int_equal(address_range_vec_push(
                             &taken, (struct address_range){.start = addr, .end = addr + 3 * PAGE}),
                         ERR_OK);
    }
    address_range_vec_release(&taken);
}

static void a_program_at_a_low_address_has_room_below(void **state)
{
    (void)state;
    struct target_mapping low[] = {{.start = 0x400000, .end = 0x500000},
                                   {.start = 0x500000, .end = 0x900000}};
    const struct target_process target = target_of(low, ARRAY_LEN(low));
    const uint64_t addr =
        address_gaps_find_near(&target, &(struct address_range_vec){0}, PAGE,
                               (struct address_range){.start = 0x400000, .end = 0x500000});
    assert_true(addr >= 0x100000 && addr < 0x400000);
}

static void without_room_there_is_none(void **state)
{
    (void)state;
    struct target_mapping full[] = {{.start = PAGE, .end = UINT64_C(0x7ffffffff000)}};
    const struct target_process target = target_of(full, 1);
    const struct address_range_vec none = {0};
    assert_int_equal(address_gaps_find(&target, &none, PAGE), 0);
    assert_int_equal(
        address_gaps_find_near(&target, &none, PAGE,
                               (struct address_range){.start = 10 * GB, .end = 11 * GB}),
        0);
}

int main(void)
{
    g_page_bits = 12; // addresses here are drawn so, whatever this kernel has
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_near_a_module_is_free_and_in_reach),
        cmocka_unit_test(what_is_taken_is_not_given_twice),
        cmocka_unit_test(a_program_at_a_low_address_has_room_below),
        cmocka_unit_test(without_room_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
