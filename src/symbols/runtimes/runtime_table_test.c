// SPDX-License-Identifier: MIT
// Tests of runtime_table: how each row is recognised in a made-up module, which environments open a
// runtime, the sentences, and the page for users, which has the rows of the table.
#include "symbols/runtimes/runtime_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "session/runtime_settings.h"
#include "symbols/runtimes/test_module.h"

static void
make_module(const char *function, uint16_t defined_in, const char *section, struct elf_file *out)
{
    const int fd = memfd_create("module", MFD_CLOEXEC);
    assert_true(test_module_write(fd, function, defined_in, section));
    assert_int_equal(elf_file_open_fd(out, fd, "module", NULL), ERR_OK);
}

static const char *found_in(const char *function, const char *section, const char *path)
{
    CLEANUP(elf_file_close) struct elf_file module = {.fd = -1};
    make_module(function, 1, section, &module);
    const struct runtime *runtime = runtime_table_of_module(&module, path);
    return runtime != NULL ? runtime->key : "";
}

static void each_row_is_recognised_in_each_way(void **state)
{
    (void)state;
    const struct runtime *runtime;
    for (size_t i = 0; (runtime = runtime_table_row(i)) != NULL; i++) {
        char text[200];
        size_t ways = runtime->function != NULL;
        for (size_t k = 0; runtime->sections[k] != NULL; k++) {
            assert_string_equal(found_in("main", runtime->sections[k], "/bin/x"), runtime->key);
            ways++;
        }
        for (size_t k = 0; runtime->libraries[k] != NULL; k++) {
            (void)snprintf(text, sizeof(text), "/lib/%s.9", runtime->libraries[k]);
            assert_string_equal(found_in("main", ".text", text), runtime->key);
            ways++;
        }
        if (runtime->function != NULL) {
            assert_string_equal(found_in(runtime->function, ".text", "/bin/x"), runtime->key);
            (void)snprintf(text, sizeof(text), "%s@@V_1", runtime->function);
            assert_string_equal(found_in(text, ".text", "/bin/x"), runtime->key);
            (void)snprintf(text, sizeof(text), "%s_", runtime->function);
            assert_string_equal(found_in(text, ".text", "/bin/x"), "");
        }
        assert_true(ways > 0);
        assert_ptr_equal(runtime_table_named(runtime->key), runtime);
    }
}

static void other_modules_have_none(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        uint16_t defined_in;
        const char *section;
        const char *path;
    } cases[] = {
        {"main", 1, ".text", "/bin/x"},
        {"_emalloc", SHN_UNDEF, ".text", "/usr/lib/php/20220829/mysqli.so"},
        {"PyMem_RawMallo", 1, ".text", "/bin/x"},
        {"main", 1, ".gopclnta", "/bin/x"},
        {"main", 1, ".text", "/lib/libpython3/x"},
        {"main", 1, ".text", "/lib/xlibjvm.so"},
        {"main", 1, ".text", ""},
        {"", 1, "", "libpytho"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(elf_file_close) struct elf_file module = {.fd = -1};
        make_module(cases[i].function, cases[i].defined_in, cases[i].section, &module);
        assert_null(runtime_table_of_module(&module, cases[i].path));
    }
    assert_null(runtime_table_named(""));
    assert_null(runtime_table_named("perl"));
    assert_null(runtime_table_of_library((struct bytes){0}));
}

static void a_variable_opens_a_runtime(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *environment; // its lines, each ended by a zero byte
        size_t len;
        bool is_open;
    } cases[] = {
#define TEXT(text) text, sizeof(text)
        {"php", TEXT("A=1\0USE_ZEND_ALLOC=0\0B="), true},
        {"php", TEXT("A=1\0USE_ZEND_ALLOC=1"), false},
        {"php", TEXT("NOT_USE_ZEND_ALLOC=0"), false},
        {"php", TEXT("PYTHONMALLOC=malloc"), false},
        {"python", TEXT("PYTHONMALLOC=malloc_debug"), true},
        {"python", TEXT("PYTHONMALLOC=mimalloc"), false},
        {"erlang", TEXT("ERL_FLAGS=+Mea min +S 1"), true},
        {"java", TEXT("USE_ZEND_ALLOC=0"), false},
        {"php", "USE_ZEND_ALLOC=0", 15, false}, // cut
        {"php", "USE_ZEND_ALLOC=0", 16, true},
        {"php", NULL, 0, false},
#undef TEXT
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct bytes environment = {.data = (const uint8_t *)cases[i].environment,
                                          .len = cases[i].len};
        if (runtime_is_open(runtime_table_named(cases[i].key), environment) != cases[i].is_open) {
            fail_msg("case %zu: %s", i, cases[i].key);
        }
    }
}

// Processes know the variables, and the recorder knows the runtimes.
static void both_sides_know_the_same_variables(void **state)
{
    (void)state;
    uint32_t all = 0;
    for (size_t i = 0; runtime_table_row(i) != NULL; i++) {
        const struct runtime *row = runtime_table_row(i);
        assert_int_equal(row->setting != NULL, row->environment != NULL);
        if (row->environment != NULL) {
            char line[64];
            char others[][24] = {"A=1", "NOT_USE_ZEND_ALLOC=0"};
            char *const variables[] = {others[0], line, others[1], NULL};
            const int len = snprintf(line, sizeof(line), "%s", row->environment);
            assert_int_equal(runtime_settings_in(variables), row->settings);
            assert_int_equal(runtime_table_settings(
                                 (struct bytes){.data = (const uint8_t *)line, .len = (size_t)len}),
                             row->settings);
            line[len - 1] = '\0';
            assert_int_equal(runtime_settings_in(variables), 0);
        }
        assert_int_equal(all & row->settings, 0);
        all |= row->settings;
    }
    assert_int_equal(all, RUNTIME_SETTING_PYTHON | RUNTIME_SETTING_PHP | RUNTIME_SETTING_ERLANG);
}

static void sentences_say_what_helps(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    runtime_explain(runtime_table_named("php"), &text);
    assert_string_equal(strbuf_text(&text),
                        "runs PHP: its objects come from chunks of its own allocator (Zend); cairn "
                        "sees each of them only with USE_ZEND_ALLOC=0");
    strbuf_clear(&text);
    runtime_explain_static(runtime_table_named("go"), &text);
    assert_string_equal(strbuf_text(&text),
                        "static Go program; runtime/pprof writes profiles of Go's heap, which "
                        "'cairn report' opens");
}

static void append_names(struct strbuf *out, const char *what, const char *const *names)
{
    for (; *names != NULL; names++) {
        strbuf_printf(out, "%s%s `%s`", out->len > 0 ? ", " : "", what, *names);
    }
}

// Return the row of the page.
static void append_row(const struct runtime *runtime, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf ways = {0};
    CLEANUP(strbuf_release) struct strbuf shows = {0};
    const char *const function[] = {runtime->function, NULL};
    append_names(&ways, "section", runtime->sections);
    append_names(&ways, "function", function);
    append_names(&ways, "library", runtime->libraries);
    strbuf_printf(&shows, runtime->setting != NULL ? "`%s`" : "%s",
                  runtime->setting != NULL ? runtime->setting : runtime->instead);
    strbuf_printf(out, "| %s, `%s` | %s | %s | %s | %s |\n", runtime->name, runtime->key,
                  strbuf_text(&ways), runtime->hides, strbuf_text(&shows),
                  runtime->tried != NULL ? runtime->tried : "not tried");
}

static void the_page_for_users_has_the_rows_of_the_table(void **state)
{
    (void)state;
    FILE *page = fopen(RUNTIMES_PAGE, "re");
    assert_non_null(page);
    CLEANUP(strbuf_release) struct strbuf wanted = {0};
    CLEANUP(strbuf_release) struct strbuf found = {0};
    char *line = NULL;
    size_t room = 0;
    for (size_t i = 0; runtime_table_row(i) != NULL; i++) {
        append_row(runtime_table_row(i), &wanted);
    }
    while (getline(&line, &room, page) > 0) {
        const bool is_row = strstr(line, "section `") != NULL ||
                            strstr(line, "function `") != NULL || strstr(line, "library `") != NULL;
        strbuf_append_text(&found, is_row ? line : "");
    }
    free(line);
    (void)fclose(page); // was only read
    assert_string_equal(strbuf_text(&found), strbuf_text(&wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_recognised_in_each_way),
        cmocka_unit_test(other_modules_have_none),
        cmocka_unit_test(a_variable_opens_a_runtime),
        cmocka_unit_test(both_sides_know_the_same_variables),
        cmocka_unit_test(sentences_say_what_helps),
        cmocka_unit_test(the_page_for_users_has_the_rows_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
