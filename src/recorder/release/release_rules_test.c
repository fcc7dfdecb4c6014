// SPDX-License-Identifier: MIT
// Tests of release_rules: spans that follow from the sources of each allocator, worked out by hand.
#include "recorder/release/release_rules.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/memory/page_size.h"

static void allocators_are_known_by_name_or_file(void **state)
{
    (void)state;
    static const struct {
        const char *allocator;
        const char *path;
        enum release_rule rule;
    } cases[] = {
        {"libc", "/usr/lib/libc.so.6", RELEASE_GLIBC},
        {"", "/lib/libc-2.31.so", RELEASE_GLIBC},
        {"", "/lib/libjemalloc.so.2", RELEASE_JEMALLOC},
        {"jemalloc", "/opt/server", RELEASE_JEMALLOC}, // built in
        {"tcmalloc", "/opt/server", RELEASE_TCMALLOC},
        {"mimalloc", "/opt/addon.node", RELEASE_MIMALLOC},
        {"libc", "/opt/static", RELEASE_BY_PAGE}, // musl's, too, is called so
        {"", "/lib/ld-musl-x86_64.so.1", RELEASE_BY_PAGE},
        {"snmalloc", "/opt/server", RELEASE_BY_PAGE},
        {"", "", RELEASE_BY_PAGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(release_rule_of(cases[i].allocator, cases[i].path), cases[i].rule);
    }
}

static void a_block_keeps_what_its_allocator_cannot_return(void **state)
{
    (void)state;
    static const struct {
        enum release_rule rule;
        uint64_t address;
        uint64_t size_bytes;
        uint64_t start;
        uint64_t end;
    } cases[] = {
        {RELEASE_BY_PAGE, 0x10010, 100, 0x10000, 0x11000},
        {RELEASE_BY_PAGE, 0x10ff0, 100, 0x10000, 0x12000},
        {RELEASE_BY_PAGE, 0x10010, 0, 0x10000, 0x11000},
        // a chunk of 112 bytes from 16 before the block, and 48 of what follows
        {RELEASE_GLIBC, 0x10010, 100, 0x10000, 0x10000 + 112 + 48},
        {RELEASE_GLIBC, 0x10010, 104, 0x10000, 0x10000 + 112 + 48}, // 8 bytes of the next chunk
        {RELEASE_GLIBC, 0x10010, 105, 0x10000, 0x10000 + 128 + 48},
        {RELEASE_GLIBC, 0x10010, 1, 0x10000, 0x10000 + 32 + 48},
        // a class of 256: one page
        {RELEASE_JEMALLOC, 0x10300, 250, 0x10000, 0x11000},
        // a class of 96: three pages. 0x11040 is 4160 = 43 * 96 + 32 behind 0x10000, 86 * 96 behind
        // 0xf000
        {RELEASE_JEMALLOC, 0x11040, 90, 0xf000, 0x12000},
        // a class of 5120: five pages
        {RELEASE_JEMALLOC, 0x10000 + 3 * 5120, 5000, 0x10000, 0x15000},
        {RELEASE_JEMALLOC, 0x10008, 8, 0x10000, 0x11000},
        {RELEASE_JEMALLOC, 0x10040, 20000, 0x10000, 0x15000}, // large
        {RELEASE_JEMALLOC, 0x10004, 90, 0x10000, 0x11000},    // no region begins there
        // 256: 32 in 8 KiB
        {RELEASE_TCMALLOC, 0x11300, 250, 0x10000, 0x12000},
        // 5120: 16 KiB waste less than an eighth. 0x12800 is two of them behind 0x10000
        {RELEASE_TCMALLOC, 0x12800, 5000, 0x10000, 0x14000},
        // 20480: two in 40 KiB
        {RELEASE_TCMALLOC, 0x15000, 20000, 0x10000, 0x1a000},
        {RELEASE_TCMALLOC, 0x12000, 300 << 10, 0x12000, 0x5e000}, // pages, up to a whole one
        {RELEASE_MIMALLOC, 0x18000, 100, 0x10000, 0x20000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct address_range span =
            release_span_of(cases[i].rule, cases[i].address, cases[i].size_bytes);
        if (span.start != cases[i].start || span.end != cases[i].end) {
            fail_msg("case %zu: [%" PRIx64 ", %" PRIx64 "), wanted [%" PRIx64 ", %" PRIx64 ")", i,
                     span.start, span.end, cases[i].start, cases[i].end);
        }
    }
}

// A block is within what it keeps, whatever a program says of its place and size.
static void a_span_holds_its_block(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (unsigned i = 0; i < 200000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint64_t address = (random >> 16) % (UINT64_C(1) << 46) + (1 << 20);
        const uint64_t size_bytes = 1 + (random >> 40) % ((uint64_t)1 << (4 + i % 16));
        for (int rule = RELEASE_BY_PAGE; rule <= RELEASE_MIMALLOC; rule++) {
            const struct address_range span =
                release_span_of((enum release_rule)rule, address, size_bytes);
            assert_true(span.start <= address && span.end >= address + 1);
            assert_true(span.end - span.start < size_bytes + (1 << 20));
        }
    }
}

int main(void)
{
    g_page_bits = 12; // addresses here are drawn so, whatever this kernel has
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocators_are_known_by_name_or_file),
        cmocka_unit_test(a_block_keeps_what_its_allocator_cannot_return),
        cmocka_unit_test(a_span_holds_its_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
