// SPDX-License-Identifier: MIT
// Tests of elf_file: files that claim more than cairn reads, and files that are cut while open.
#include "symbols/elf/elf_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "symbols/elf/symbol_table.h"
#include "symbols/elf/test_elf_image.h"

static const uint8_t ret = 0xc3;

// Return a new descriptor of a small ELF file, which may be written to.
static int make_file(void)
{
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    const struct bytes code = {.data = &ret, .len = sizeof(ret)};
    assert_true(test_elf_open(EM_X86_64, code, code, "f", &file));
    return fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
}

static void write_section(int fd, size_t index, const Elf64_Shdr *header)
{
    assert_int_equal(
        pwrite(fd, header, sizeof(*header), (off_t)(TEST_ELF_SECTIONS + index * sizeof(*header))),
        sizeof(*header));
}

static Elf64_Shdr read_section(int fd, size_t index)
{
    Elf64_Shdr header;
    assert_int_equal(
        pread(fd, &header, sizeof(header), (off_t)(TEST_ELF_SECTIONS + index * sizeof(header))),
        sizeof(header));
    return header;
}

static bool says(const struct err_info *info, const char *part)
{
    return strstr(err_text(info), part) != NULL;
}

static void a_file_that_is_almost_a_hole_is_refused(void **state)
{
    (void)state;
    const int fd = make_file();
    struct elf_file file;
    struct err_info info = {0};
    assert_int_equal(ftruncate(fd, (off_t)1 << 36), 0);
    assert_int_equal(elf_file_open_fd(&file, fd, "image", &info), ERR_LIMIT);
    assert_true(says(&info, "'image' claims 68719476736 bytes, but has only"));
}

static void a_table_of_symbols_has_a_limit(void **state)
{
    (void)state;
    for (size_t i = 1; i <= 2; i++) { // the symbols, their names
        const int fd = make_file();
        struct elf_file file;
        struct err_info info = {0};
        Elf64_Shdr header = read_section(fd, i);
        header.sh_size = ((uint64_t)1 << 30) + 1;
        write_section(fd, i, &header);
        assert_int_equal(elf_file_open_fd(&file, fd, "image", &info), ERR_LIMIT);
        assert_true(says(&info, "bytes; cairn reads at most 1073741824"));
    }
}

// A page of a mapping that is behind the end of its file gives SIGBUS.
static void a_large_file_may_be_cut_while_it_is_open(void **state)
{
    (void)state;
    static const off_t large = 70 << 20;
    const int fd = make_file();
    CLEANUP(elf_file_close) struct elf_file file = {.fd = -1};
    Elf64_Shdr symbols = read_section(fd, 1);
    Elf64_Sym table[2];
    assert_int_equal(pread(fd, table, sizeof(table), TEST_ELF_SYMBOLS), sizeof(table));
    assert_int_equal(posix_fallocate(fd, 0, large), 0);
    symbols.sh_offset = (uint64_t)large - sizeof(table);
    assert_int_equal(pwrite(fd, table, sizeof(table), (off_t)symbols.sh_offset), sizeof(table));
    write_section(fd, 1, &symbols);
    CLEANUP(elf_file_close) struct elf_file whole = {.fd = -1};
    struct symbol_table found;
    assert_int_equal(elf_file_open_fd(&whole, fcntl(fd, F_DUPFD_CLOEXEC, 0), "image", NULL),
                     ERR_OK);
    assert_true(symbol_table_open(&found, whole.elf, SHT_SYMTAB));
    assert_int_equal(elf_file_open_fd(&file, fd, "image", NULL), ERR_OK);
    assert_int_equal(ftruncate(fd, TEST_ELF_BYTES), 0);
    assert_false(symbol_table_open(&found, file.elf, SHT_SYMTAB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_almost_a_hole_is_refused),
        cmocka_unit_test(a_table_of_symbols_has_a_limit),
        cmocka_unit_test(a_large_file_may_be_cut_while_it_is_open),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
