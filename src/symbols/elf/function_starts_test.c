// SPDX-License-Identifier: MIT
// The starts of this test's own functions, compared with its symbol table.
#include "symbols/elf/function_starts.h"

#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"

static Elf_Data *find_symbols(Elf *elf, GElf_Shdr *header)
{
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL;
         section = elf_nextscn(elf, section)) {
        if (gelf_getshdr(section, header) != NULL && header->sh_type == SHT_SYMTAB) {
            return elf_getdata(section, NULL);
        }
    }
    return NULL;
}

// A function of this folder's code: gcc describes each of them in .eh_frame.
static bool is_ours(Elf *elf, const GElf_Shdr *header, const GElf_Sym *symbol)
{
    const char *name = elf_strptr(elf, header->sh_link, symbol->st_name);
    return GELF_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_size > 1 && name != NULL &&
           strncmp(name, "function_starts_", sizeof("function_starts_") - 1) == 0;
}

static void each_byte_of_a_function_has_its_start(void **state)
{
    (void)state;
    assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    assert_non_null(elf);
    struct function_starts starts;
    function_starts_init(elf, &starts);
    assert_true(starts.count > 2);
    struct function_starts apart = starts; // the FDEs are elsewhere, as BOLT leaves some
    apart.frames_addr = 0;
    GElf_Shdr header = {0};
    Elf_Data *symbols = find_symbols(elf, &header);
    assert_non_null(symbols);
    unsigned found = 0;
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(symbols, i, &symbol) != NULL; i++) {
        if (!is_ours(elf, &header, &symbol)) {
            continue;
        }
        for (uint64_t at = 0; at < symbol.st_size; at++) {
            assert_int_equal(function_starts_find(&starts, symbol.st_value + at), symbol.st_value);
            assert_int_equal(function_starts_find(&apart, symbol.st_value + at), symbol.st_value);
        }
        assert_int_not_equal(function_starts_find(&starts, symbol.st_value - 1), symbol.st_value);
        assert_int_not_equal(function_starts_find(&starts, symbol.st_value + symbol.st_size),
                             symbol.st_value);
        found++;
    }
    assert_true(found >= 2); // function_starts_init and function_starts_find
    // Outside of all functions.
    static const uint64_t nowhere[] = {0, 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        assert_int_equal(function_starts_find(&starts, nowhere[i]), 0);
    }
    (void)elf_end(elf);
    (void)close(fd); // only read from
}

// As for a file without the table.
static void nothing_is_found_without_a_table(void **state)
{
    (void)state;
    struct function_starts none = {0};
    assert_int_equal(function_starts_find(&none, 0x1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_of_a_function_has_its_start),
        cmocka_unit_test(nothing_is_found_without_a_table),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
