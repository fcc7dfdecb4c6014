// SPDX-License-Identifier: MIT
// The read-only part of a module is what the loader makes of it, with pages of each size.
#include "target/preload/real/redirected_slots.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/compiler.h"

// _dl_relocate_object and _dl_protect_relro of glibc: both ends down to a page.
static void a_part_has_whole_pages_of_the_kernel(void **state)
{
    (void)state;
    static const struct {
        uint64_t page_bytes;
        uint64_t start;
        uint64_t end;
    } cases[] = {
        {4 << 10, 0x7f001f000, 0x7f0030000},
        {16 << 10, 0x7f001c000, 0x7f0030000},
        {64 << 10, 0x7f0010000, 0x7f0030000},
    };
    static const ElfW(Phdr) headers[] = {
        {.p_type = PT_LOAD, .p_vaddr = 0, .p_memsz = 0xa9dc},
        {.p_type = PT_GNU_RELRO, .p_vaddr = 0x1fd20, .p_memsz = 0x102e1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct read_only_part part = read_only_part_of(
            0x7f0000000, (struct bytes){(const uint8_t *)headers, sizeof(headers)},
            cases[i].page_bytes);
        assert_int_equal(part.start, cases[i].start);
        assert_int_equal(part.end, cases[i].end);
        assert_int_equal(part.page_bytes, cases[i].page_bytes);
    }
}

static void a_module_without_such_a_part_has_none(void **state)
{
    (void)state;
    static const ElfW(Phdr) header = {.p_type = PT_LOAD, .p_memsz = 0x1000};
    const struct read_only_part part = read_only_part_of(
        0x10000, (struct bytes){(const uint8_t *)&header, sizeof(header)}, 64 << 10);
    assert_int_equal(part.end - part.start, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_whole_pages_of_the_kernel),
        cmocka_unit_test(a_module_without_such_a_part_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
