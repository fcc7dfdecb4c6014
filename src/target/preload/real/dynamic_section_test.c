// SPDX-License-Identifier: MIT
// Compares dynamic_section and definitions with dlsym(): every function that libc and libm define,
// names that no module defines, and a table that is not relocated.
#include "target/preload/real/dynamic_section.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/preload/real/definitions.h"

static struct dynamic_section section_of(const struct link_map *module)
{
    struct dynamic_section section;
    assert_true(dynamic_section_read(module->l_addr, module->l_ld, &section));
    return section;
}

static const struct link_map *module_named(const char *part)
{
    for (const struct link_map *module = _r_debug.r_map; module != NULL; module = module->l_next) {
        if (strstr(module->l_name, part) != NULL) {
            return module;
        }
    }
    fail_msg("%s is not loaded", part);
    return NULL;
}

// DT_SYMTAB has no length; the loader's tables put the names behind the symbols.
static size_t symbol_count(const struct dynamic_section *section)
{
    return (size_t)((const char *)section->names - (const char *)section->symbols) /
           sizeof(ElfW(Sym));
}

// Compare a section of the module with dlsym().
static void check_section(const struct link_map *module,
                          const struct dynamic_section section,
                          const char *part,
                          size_t at_least)
{
    void *handle = dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(handle);
    size_t checked = 0;
    for (size_t i = 1; i < symbol_count(&section); i++) {
        const ElfW(Sym) *symbol = &section.symbols[i];
        const char *name = section.names + symbol->st_name;
        const uint32_t type = ELF64_ST_TYPE(symbol->st_info);
        if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) {
            continue;
        }
        // A function with older versions only is hidden from both.
        const uint64_t expected = (uint64_t)dlsym(handle, name);
        const uint64_t found = dynamic_section_function(&section, name);
        if (found != expected) {
            print_message("%s: %s is at %#lx, dlsym says %#lx\n", part, name, found, expected);
        }
        assert_int_equal(found, expected);
        checked += found != 0;
    }
    assert_true(checked >= at_least);
    assert_int_equal(dlclose(handle), 0);
}

static void check_module(const char *part, size_t at_least)
{
    const struct link_map *module = module_named(part);
    check_section(module, section_of(module), part, at_least);
}

// The hash of the System V ABI, as its figure 5-13 computes it.
static uint32_t abi_hash(const char *name)
{
    unsigned long hash = 0;
    while (*name != '\0') {
        hash = (hash << 4) + (unsigned char)*name++;
        const unsigned long high = hash & 0xf0000000;
        hash ^= high >> 24;
        hash &= ~high;
    }
    return (uint32_t)hash;
}

// Linkers write this table, too, for older loaders: here one of ours, for the symbols of libc.
static void test_the_older_table_leads_to_the_same_functions(void **state)
{
    (void)state;
    enum {
        BUCKETS = 61
    };
    const struct link_map *module = module_named("libc.so");
    struct dynamic_section section = section_of(module);
    const size_t count = symbol_count(&section);
    uint32_t *table = calloc(2 + BUCKETS + count, sizeof(*table));
    assert_non_null(table);
    uint32_t *buckets = table + 2;
    uint32_t *chain = buckets + BUCKETS;
    table[0] = BUCKETS;
    table[1] = (uint32_t)count;
    for (size_t i = 1; i < count; i++) {
        uint32_t *bucket = &buckets[abi_hash(section.names + section.symbols[i].st_name) % BUCKETS];
        chain[i] = *bucket;
        *bucket = (uint32_t)i;
    }
    section.gnu_hash = NULL;
    section.hash = table;
    check_section(module, section, "libc.so", 1500);
    assert_int_equal(dynamic_section_function(&section, "no such name"), 0);
    table[0] = 0; // an empty one
    assert_int_equal(dynamic_section_function(&section, "malloc"), 0);
    free(table);
}

static void test_every_function_is_where_dlsym_finds_it(void **state)
{
    (void)state;
    check_module("libc.so", 1500);
    void *mathematics = dlopen("libm.so.6", RTLD_NOW); // many of its functions are IFUNCs
    assert_non_null(mathematics);
    check_module("libm.so", 400);
}

static void test_what_nobody_defines_is_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"",        "mallo",  "mallocc",
                                        "_Znwm@@", "stdout", "no such name"};
    const struct dynamic_section section = section_of(module_named("libc.so"));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(dynamic_section_function(&section, names[i]), 0);
        assert_null(definition_first(names[i]).module);
    }
}

// Like the vdso's: its dynamic section's addresses lack the bias.
static void test_a_section_that_is_not_relocated_is_read_all_the_same(void **state)
{
    (void)state;
    const struct link_map *module = module_named("libc.so");
    ElfW(Dyn) copy[128];
    size_t count = 0;
    do {
        copy[count] = module->l_ld[count];
        if (copy[count].d_un.d_ptr >= module->l_addr) {
            copy[count].d_un.d_ptr -= module->l_addr;
        }
    } while (module->l_ld[count++].d_tag != DT_NULL && count < ARRAY_LEN(copy));
    struct dynamic_section section;
    assert_true(dynamic_section_read(module->l_addr, copy, &section));
    assert_int_equal(dynamic_section_function(&section, "gnu_get_libc_version"),
                     (uint64_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
}

static void test_modules_are_searched_in_the_loaders_order(void **state)
{
    (void)state;
    static const char *const names[] = {"malloc", "free", "dlopen", "mmap", "gnu_get_libc_version",
                                        "memcpy"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct definition first = definition_first(names[i]);
        assert_int_equal(first.address, (uint64_t)dlsym(RTLD_DEFAULT, names[i]));
        assert_int_equal(definition_next(names[i]).address, (uint64_t)dlsym(RTLD_NEXT, names[i]));
        assert_false(definition_is_ours(first));
    }
}

// This program's reference to libc leads there.
static void test_references_lead_to_the_module_that_defines(void **state)
{
    (void)state;
    const uint64_t here = (uint64_t)symbol_count;
    assert_ptr_equal(definition_module_at(here), _r_debug.r_map);
    const struct definition found = definition_for(here, "gnu_get_libc_version");
    assert_ptr_equal(found.module, module_named("libc.so"));
    assert_int_equal(found.address, (uint64_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    assert_null(definition_for(here, "no such name").module);
    assert_null(definition_for(1, "gnu_get_libc_version").module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_is_where_dlsym_finds_it),
        cmocka_unit_test(test_the_older_table_leads_to_the_same_functions),
        cmocka_unit_test(test_what_nobody_defines_is_not_found),
        cmocka_unit_test(test_a_section_that_is_not_relocated_is_read_all_the_same),
        cmocka_unit_test(test_modules_are_searched_in_the_loaders_order),
        cmocka_unit_test(test_references_lead_to_the_module_that_defines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
