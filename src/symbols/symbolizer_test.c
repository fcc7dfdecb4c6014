// SPDX-License-Identifier: MIT
// symbolizer: which modules stay open between calls. What it finds is tested in tests/symbols.
#include "symbols/symbolizer.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "symbols/elf/test_elf_image.h"

static void resolve_one(struct symbolizer *symbolizer, uint32_t module)
{
    const struct symbol_query query = {.address = 0x2000};
    struct symbol_chain chain;
    CLEANUP(symbol_frame_vec_release) struct symbol_frame_vec frames = {0};
    assert_int_equal(symbolizer_resolve(symbolizer, module, &query, 1, &chain, &frames), ERR_OK);
}

// Copy a file with its holes to a new one, whose name replaces the template.
static void copy_file(const char *from, char *template)
{
    CLEANUP(fd_closep) int in = open(from, O_RDONLY | O_CLOEXEC);
    CLEANUP(fd_closep) int out = mkstemp(template);
    struct stat status;
    char bytes[TEST_ELF_BYTES];
    assert_int_equal(fstat(in, &status), 0);
    assert_int_equal(read(in, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(write(out, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(ftruncate(out, status.st_size), 0);
}

// A module that takes too much memory to stay open does not count afterwards. Without debug
// information only the symbols count, however large the file is: its table is read once, not at
// each call.
static void modules_stay_open_up_to_a_size(void **state)
{
    (void)state;
    char link[32];
    char path[] = "/tmp/symbolizer_test.XXXXXX";
    static const uint8_t ret = 0xc3;
    const struct bytes code = {.data = &ret, .len = sizeof(ret)};
    const struct bytes any = {.len = 0};
    struct symbolizer *symbolizer = NULL;
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    CLEANUP(string_table_release) struct string_table strings = {0};
    const struct symbolizer_options options = {.strings = &strings, .keep_bytes = 4096};
    assert_true(test_elf_open(EM_X86_64, code, code, "f", &file));
    assert_int_equal(ftruncate(file.fd, 60 << 20), 0);               // a hole
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file.fd); // fits
    copy_file(link, path);
    char own[PATH_MAX];
    const ssize_t own_len = readlink("/proc/self/exe", own, sizeof(own) - 1);
    assert_true(own_len > 0);
    own[own_len] = '\0';
    assert_int_equal(symbolizer_new(&options, &symbolizer), ERR_OK);
    uint32_t small = 0;
    uint32_t large = 0;
    assert_int_equal(symbolizer_add_module(symbolizer, path, any, &small), ERR_OK);
    assert_int_equal(symbolizer_add_module(symbolizer, own, any, &large), ERR_OK);
    const int closed = open_files_count();
    resolve_one(symbolizer, small);
    assert_int_equal(open_files_count(), closed + 1);
    for (unsigned i = 0; i < 2; i++) {
        resolve_one(symbolizer, large);
        assert_int_equal(open_files_count(), closed + 1);
        resolve_one(symbolizer, small);
        assert_int_equal(open_files_count(), closed + 1);
    }
    symbolizer_free(symbolizer);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_files_count(), closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_stay_open_up_to_a_size),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
