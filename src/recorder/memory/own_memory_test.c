// SPDX-License-Identifier: MIT
// own_memory: it counts private memory, not shared memory, and rejects texts that are not statm.
#include "recorder/memory/own_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

#define MIB ((uint64_t)1 << 20)

static void private_memory_counts_and_shared_does_not(void **state)
{
    (void)state;
    static const struct {
        int flags;
        uint64_t least;
        uint64_t most;
    } cases[] = {{MAP_PRIVATE, 60 * MIB, 68 * MIB}, {MAP_SHARED, 0, 4 * MIB}};
    const int fd = own_memory_open();
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t before = own_memory_bytes(fd);
        assert_true(before > 0);
        void *memory = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
                            cases[i].flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        assert_true(memory != MAP_FAILED);
        const uint64_t after = own_memory_bytes(fd);
        assert_in_range(after > before ? after - before : 0, cases[i].least, cases[i].most);
        assert_int_equal(munmap(memory, 64 * MIB), 0);
    }
    assert_int_equal(close(fd), 0);
}

static void what_is_not_statm_is_unknown(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t pages;
    } cases[] = {
        {"", 0}, {"9 8", 0}, {"x 8 7", 0}, {"9 7 8", 0}, {"9 8 8", 0}, {"9 8 7 6 5 4 3\n", 1},
    };
    assert_int_equal(own_memory_bytes(-1), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int fd = memfd_create("statm", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
        assert_int_equal(own_memory_bytes(fd), cases[i].pages * (uint64_t)sysconf(_SC_PAGESIZE));
        assert_int_equal(close(fd), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_memory_counts_and_shared_does_not),
        cmocka_unit_test(what_is_not_statm_is_unknown),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
