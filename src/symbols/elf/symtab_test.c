// SPDX-License-Identifier: MIT
// Tests symtab on a file made byte by byte: where functions without a size end, and which name
// wins; and how symbol_table finds one.
#include "symbols/elf/symtab.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "symbols/elf/symbol_table.h"

enum {
    SYMBOLS_MAX = 8,
    NAME_BYTES = 16, // of each symbol, in the table of names
    SECTIONS = 5,
    CODE = 1, // 0x1000 to 0x1100
    MORE = 2, // 0x1100 to 0x1200
};

struct image {
    Elf64_Ehdr head;
    Elf64_Shdr sections[SECTIONS]; // none, code, more code, symbols, names
    Elf64_Sym symbols[1 + SYMBOLS_MAX];
    char names[(1 + SYMBOLS_MAX) * NAME_BYTES];
};

// A function: `name` is NULL behind the last one.
struct function {
    const char *name;
    uint64_t address;
    uint64_t size;
    uint16_t section;
    unsigned char binding;
};

static struct image make_image(const struct function functions[SYMBOLS_MAX])
{
    struct image image = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                             EV_CURRENT},
                 .e_type = ET_DYN,
                 .e_machine = EM_X86_64,
                 .e_version = EV_CURRENT,
                 .e_shoff = offsetof(struct image, sections),
                 .e_ehsize = sizeof(Elf64_Ehdr),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = SECTIONS},
        .sections = {{0},
                     {.sh_type = SHT_NOBITS, .sh_addr = 0x1000, .sh_size = 0x100},
                     {.sh_type = SHT_NOBITS, .sh_addr = 0x1100, .sh_size = 0x100},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = offsetof(struct image, symbols),
                      .sh_size = sizeof(((struct image *)0)->symbols),
                      .sh_link = 4,
                      .sh_entsize = sizeof(Elf64_Sym)},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct image, names),
                      .sh_size = sizeof(((struct image *)0)->names)}},
    };
    for (size_t i = 0; i < SYMBOLS_MAX && functions[i].name != NULL; i++) {
        const size_t at = (1 + i) * NAME_BYTES;
        (void)snprintf(image.names + at, NAME_BYTES, "%s", functions[i].name);
        image.symbols[1 + i] = (Elf64_Sym){.st_name = (Elf64_Word)at,
                                           .st_info = ELF64_ST_INFO(functions[i].binding, STT_FUNC),
                                           .st_shndx = functions[i].section,
                                           .st_value = functions[i].address,
                                           .st_size = functions[i].size};
    }
    return image;
}

// What an address must be called; NULL: nothing.
struct wanted {
    uint64_t address;
    const char *name;
};

static void
expect(const struct function functions[SYMBOLS_MAX], const struct wanted *wanted, size_t count)
{
    struct image image = make_image(functions);
    struct symtab symtab;
    assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
    Elf *elf = elf_memory((char *)&image, sizeof(image));
    assert_non_null(elf);
    assert_int_equal(symtab_init(&symtab, elf), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        const char *found = symtab_find(&symtab, wanted[i].address);
        const char *name = wanted[i].name != NULL ? wanted[i].name : "nothing";
        if (strcmp(found != NULL ? found : "nothing", name) != 0) {
            fail_msg("0x%llx is %s, not %s", (unsigned long long)wanted[i].address,
                     found != NULL ? found : "nothing", name);
        }
    }
    symtab_release(&symtab);
    assert_int_equal(elf_end(elf), 0);
}

static void a_function_has_the_bytes_of_its_size(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"first", 0x1010, 0x10, CODE, STB_GLOBAL},
        {"second", 0x1030, 0x10, CODE, STB_GLOBAL},
        {"endless", UINT64_MAX - 0xff, 0x1000, SHN_ABS, STB_GLOBAL},
    };
    static const struct wanted wanted[] = {
        {0x100f, NULL},
        {0x1010, "first"},
        {0x101f, "first"},
        {0x1020, NULL},
        {0x102f, NULL},
        {0x1030, "second"},
        {0x103f, "second"},
        {0x1040, NULL},
        {UINT64_MAX - 0x100, NULL},
        {UINT64_MAX - 0xff, "endless"},
        {UINT64_MAX - 1, "endless"},
    };
    expect(functions, wanted, ARRAY_LEN(wanted));
}

// In any order of the table, and whatever bytes the addresses differ in.
static void functions_are_found_by_all_bytes_of_their_addresses(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"byte 7", 0x0100000000000000, 0x10, SHN_ABS, STB_GLOBAL},
        {"byte 0", 0x1001, 1, CODE, STB_GLOBAL},
        {"byte 5", 0x10000001000, 0x10, SHN_ABS, STB_GLOBAL},
        {"byte 2", 0x11000, 0x10, SHN_ABS, STB_GLOBAL},
        {"none", 0x1000, 1, CODE, STB_GLOBAL},
        {"byte 1", 0x1100, 0x10, MORE, STB_GLOBAL},
        {"two bytes", 0x11001, 0, SHN_ABS, STB_GLOBAL},
        {"alias", 0x1000, 1, CODE, STB_LOCAL},
    };
    static const struct wanted wanted[] = {
        {0x1000, "none"},   {0x1001, "byte 0"},        {0x1002, NULL},
        {0x1100, "byte 1"}, {0x11000, "byte 2"},       {0x1100f, "byte 2"},
        {0x11010, NULL},    {0x1000000100f, "byte 5"}, {0x010000000000000f, "byte 7"},
    };
    expect(functions, wanted, ARRAY_LEN(wanted));
}

// As functions of hand-written assembly.
static void a_function_without_a_size_ends_at_the_next_or_with_its_section(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"first", 0x1000, 0, CODE, STB_GLOBAL},  {"second", 0x1020, 0, CODE, STB_GLOBAL},
        {"third", 0x1140, 0, MORE, STB_GLOBAL},  {"behind", 0x1100, 0, CODE, STB_GLOBAL},
        {"before", 0x10f0, 0, MORE, STB_GLOBAL}, {"absolute", 0x3000, 0, SHN_ABS, STB_GLOBAL},
        {"nowhere", 0x4000, 0, 99, STB_GLOBAL},
    };
    static const struct wanted wanted[] = {
        {0xfff, NULL},      {0x1000, "first"}, {0x101f, "first"}, {0x1020, "second"},
        {0x10ef, "second"}, {0x10f0, NULL},    {0x10ff, NULL},    {0x1100, NULL},
        {0x113f, NULL},     {0x1140, "third"}, {0x11ff, "third"}, {0x1200, NULL},
        {0x3000, NULL},     {0x4000, NULL},
    };
    expect(functions, wanted, ARRAY_LEN(wanted));
}

static void the_last_byte_of_a_section_is_of_its_last_function(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"last", 0x10ff, 0, CODE, STB_GLOBAL},
        {"next", 0x1180, 0, MORE, STB_GLOBAL},
    };
    static const struct wanted wanted[] = {
        {0x10fe, NULL}, {0x10ff, "last"}, {0x1100, NULL}, {0x117f, NULL}, {0x1180, "next"},
    };
    expect(functions, wanted, ARRAY_LEN(wanted));
}

// Global, then weak, then local; fewer underscores; the shorter name; the first in the alphabet.
static void of_several_names_the_public_one_wins(void **state)
{
    (void)state;
    static const struct function all[] = {
        {"ab", 0x1000, 0x10, CODE, STB_GLOBAL},   {"b", 0x1000, 0x10, CODE, STB_GLOBAL},
        {"c", 0x1000, 0x10, CODE, STB_GLOBAL},    {"_a", 0x1000, 0x10, CODE, STB_GNU_UNIQUE},
        {"__a", 0x1000, 0x10, CODE, STB_GLOBAL},  {"longer_weak", 0x1000, 0x10, CODE, STB_WEAK},
        {"local", 0x1000, 0x10, CODE, STB_LOCAL},
    };
    static const char *const ranking[] = {"b", "c", "ab", "_a", "__a", "longer_weak", "local"};
    // Without the first ones of the ranking the next one wins, in either order of the table.
    for (size_t first = 0; first < ARRAY_LEN(ranking); first++) {
        for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
            struct function functions[SYMBOLS_MAX] = {{0}};
            size_t count = 0;
            for (size_t i = 0; i < ARRAY_LEN(all); i++) {
                const struct function *one = all + (is_reversed ? ARRAY_LEN(all) - 1 - i : i);
                for (size_t k = first; k < ARRAY_LEN(ranking); k++) {
                    if (strcmp(ranking[k], one->name) == 0) {
                        functions[count++] = *one;
                    }
                }
            }
            const struct wanted wanted[] = {{0x1000, ranking[first]}, {0x100f, ranking[first]}};
            expect(functions, wanted, ARRAY_LEN(wanted));
        }
    }
}

static void what_has_no_size_may_have_several_names(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"_other", 0x1000, 0, CODE, STB_GLOBAL},
        {"name", 0x1000, 0, CODE, STB_GLOBAL},
        {"next", 0x1080, 0, CODE, STB_GLOBAL},
    };
    static const struct wanted wanted[] = {
        {0x1000, "name"}, {0x107f, "name"}, {0x1080, "next"}, {0x10ff, "next"}};
    expect(functions, wanted, ARRAY_LEN(wanted));
}

static void a_symbol_is_found_by_its_whole_name(void **state)
{
    (void)state;
    static const struct function functions[SYMBOLS_MAX] = {
        {"wanted_more", 0x1010, 0x10, CODE, STB_GLOBAL},
        {"wanted", 0x1020, 0x10, SHN_UNDEF, STB_GLOBAL},
        {"unwanted", 0x1030, 0x10, CODE, STB_GLOBAL},
        {"wanted", 0x1040, 0x10, CODE, STB_GLOBAL},
        {"elsewhere", 0x1050, 0x10, SHN_UNDEF, STB_GLOBAL},
    };
    struct image image = make_image(functions);
    image.symbols[4].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT); // of any kind
    assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
    Elf *elf = elf_memory((char *)&image, sizeof(image));
    assert_non_null(elf);
    GElf_Sym symbol = {.st_value = 1};
    assert_false(symbol_table_find(elf, "elsewhere", &symbol));
    assert_false(symbol_table_find(elf, "want", &symbol));
    assert_int_equal(symbol.st_value, 1);
    assert_true(symbol_table_find(elf, "wanted", &symbol));
    assert_int_equal(symbol.st_value, 0x1040);
    assert_int_equal(elf_end(elf), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_is_found_by_its_whole_name),
        cmocka_unit_test(a_function_has_the_bytes_of_its_size),
        cmocka_unit_test(functions_are_found_by_all_bytes_of_their_addresses),
        cmocka_unit_test(a_function_without_a_size_ends_at_the_next_or_with_its_section),
        cmocka_unit_test(the_last_byte_of_a_section_is_of_its_last_function),
        cmocka_unit_test(of_several_names_the_public_one_wins),
        cmocka_unit_test(what_has_no_size_may_have_several_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
