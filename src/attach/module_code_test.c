// SPDX-License-Identifier: MIT
// module_code_test: libraries and programs whose allocators change all registers, or do not.
#include "attach/module_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

#define LIBRARIES "/lib/x86_64-linux-gnu/"

struct expected {
    const char *path;
    const char *users; // the value of --allocator; NULL: none
    const char *function;
    bool changes_all;
};

static const struct expected expected[] = {
    {LIBRARIES "libc.so.6", NULL, "malloc", true},
    {LIBRARIES "libc.so.6", NULL, "free", true},
    {LIBRARIES "libc.so.6", NULL, "calloc", true},
    {LIBRARIES "libc.so.6", NULL, "realloc", true},
    {LIBRARIES "libc.so.6", NULL, "posix_memalign", true},
    {LIBRARIES "libc.so.6", NULL, "execve", false}, // its hook saves them in any case
    {LIBRARIES "libc.so.6", "malloc=malloc", "malloc", false},
    {PROGRAMS "/glibc_static", NULL, "malloc", true},
    {PROGRAMS "/jemalloc_inside", NULL, "malloc", true},
    {PROGRAMS "/jemalloc_inside", NULL, "free", true},
    {PROGRAMS "/jemalloc_inside", NULL, "realloc", false}, // it keeps r8 and r11
    {PROGRAMS "/operators_jemalloc", NULL, "_Znwm", true},
    {PROGRAMS "/operators_jemalloc", NULL, "_ZnwmSt11align_val_t", true},
    {PROGRAMS "/kept_registers", NULL, "je_malloc", false},
    {PROGRAMS "/kept_registers", NULL, "je_free", false},
    {PROGRAMS "/own_pool", "malloc=my_pool_malloc", "my_pool_malloc", false},
};

static void the_code_of_the_file_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct expected *wanted = expected + i;
        CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
        struct err_info info = {0};
        struct allocator_name_vec users = {0};
        struct allocator_scan scan = {0};
        assert_int_equal(elf_file_open(&file, wanted->path, &info), ERR_OK);
        if (wanted->users != NULL) {
            assert_int_equal(allocator_names_parse(wanted->users, &users, &info), ERR_OK);
        }
        assert_int_equal(allocator_scan(&file, wanted->path, NULL, &users, &scan), ERR_OK);
        module_code_note(&file, &scan);
        size_t found = 0;
        for (size_t at = 0; at < scan.entries.len; at++) {
            if (strcmp(scan.entries.items[at].name, wanted->function) == 0) {
                found++;
                if (scan.entries.items[at].changes_all != wanted->changes_all) {
                    fail_msg("%s of %s: wanted %d", wanted->function, wanted->path,
                             wanted->changes_all);
                }
            }
        }
        if (found != 1) {
            fail_msg("%s has %zu functions %s", wanted->path, found, wanted->function);
        }
        allocator_scan_release(&scan);
        allocator_names_release(&users);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_code_of_the_file_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
