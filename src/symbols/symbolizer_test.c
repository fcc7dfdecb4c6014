// SPDX-License-Identifier: MIT
// symbolizer: which modules stay open between calls. What it finds is tested in tests/symbols.
#include "symbols/symbolizer.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

static void resolve_one(struct symbolizer *symbolizer, uint32_t module)
{
    const struct symbol_query query = {.address = 0x2000};
    struct symbol_chain chain;
    CLEANUP(symbol_frame_vec_release) struct symbol_frame_vec frames = {0};
    assert_int_equal(symbolizer_resolve(symbolizer, module, &query, 1, &chain, &frames), ERR_OK);
}

// A module that is too large to stay open does not count afterwards.
static void modules_stay_open_up_to_a_size(void **state)
{
    (void)state;
    struct stat own;
    Dl_info libc;
    struct symbolizer *symbolizer = NULL;
    CLEANUP(string_table_release) struct string_table strings = {0};
    assert_int_equal(stat("/proc/self/exe", &own), 0);
    assert_int_not_equal(dladdr((void *)(uintptr_t)abort, &libc), 0);
    const struct symbolizer_options options = {.strings = &strings,
                                               .keep_bytes = (uint64_t)own.st_size};
    assert_int_equal(symbolizer_new(&options, &symbolizer), ERR_OK);
    uint32_t small = 0;
    uint32_t large = 0;
    const struct bytes any = {.len = 0};
    assert_int_equal(symbolizer_add_module(symbolizer, "/proc/self/exe", any, &small), ERR_OK);
    assert_int_equal(symbolizer_add_module(symbolizer, libc.dli_fname, any, &large), ERR_OK);
    const int closed = open_files_count();
    resolve_one(symbolizer, small);
    const int open = open_files_count();
    assert_in_range(open, closed + 1, closed + 2);
    for (unsigned i = 0; i < 2; i++) {
        resolve_one(symbolizer, large);
        assert_int_equal(open_files_count(), open);
        resolve_one(symbolizer, small);
        assert_int_equal(open_files_count(), open);
    }
    symbolizer_free(symbolizer);
    assert_int_equal(open_files_count(), closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_stay_open_up_to_a_size),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
