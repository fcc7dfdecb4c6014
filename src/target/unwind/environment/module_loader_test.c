// SPDX-License-Identifier: MIT
// Lists modules whose segments the test makes up: it stands in for the loader while it refreshes.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/unwind/environment/module_table.h"

#define BIAS ((uint64_t)0x7a0000000000)

static struct dl_phdr_info g_module;

typedef int iterate_function(int (*)(struct dl_phdr_info *, size_t, void *), void *);

// The loader's function, but for the moment of a refresh.
int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *context)
{
    if (g_module.dlpi_phdr != NULL) {
        return callback(&g_module, sizeof(g_module), context);
    }
    iterate_function *const real = (iterate_function *)dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return real(callback, context);
}

// A program's segments are one span unless a free page is between them; a library's are always one.
static void segments_without_a_free_page_between_are_one_span(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint64_t first_bytes; // of the segment at page 1
        uint64_t second;      // the other segment
        bool is_one;
    } cases[] = {
        {"", 0x1000, 0x2000, true},  {"", 0x1000, 0x3000, false}, {"", 1, 0x2000, true},
        {"", 1, 0x3000, false},      {"", 2, 0x2000, true},       {"", 0x1001, 0x3000, true},
        {"", 0x1001, 0x4000, false}, {"", 0xfff, 0x2010, true},   {"lib.so", 1, 0x9000, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const Elf64_Phdr headers[] = {
            {.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_memsz = cases[i].first_bytes},
            {.p_type = PT_LOAD, .p_vaddr = cases[i].second, .p_memsz = 16}};
        g_module = (struct dl_phdr_info){.dlpi_addr = BIAS,
                                         .dlpi_name = cases[i].path,
                                         .dlpi_phdr = headers,
                                         .dlpi_phnum = ARRAY_LEN(headers)};
        module_table_refresh();
        g_module = (struct dl_phdr_info){0};
        struct module_span first;
        struct module_span second;
        print_message("'%s', %#llx bytes, then %#llx\n", cases[i].path,
                      (unsigned long long)cases[i].first_bytes,
                      (unsigned long long)cases[i].second);
        assert_true(module_table_find_listed(BIAS + 0x1000, &first));
        assert_true(module_table_find_listed(BIAS + cases[i].second + 15, &second));
        assert_int_equal(first.start, BIAS + 0x1000);
        assert_int_equal(second.end, BIAS + cases[i].second + 16);
        assert_int_equal(first.start == second.start, cases[i].is_one);
        assert_false(module_table_find_listed(second.end, &second));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_without_a_free_page_between_are_one_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
