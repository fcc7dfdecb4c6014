// SPDX-License-Identifier: MIT
// hooked_list_test: functions that many processes have, and more than the list may hold.
#include "recorder/processes/hooked_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static size_t add_text(struct strbuf *texts, const char *text)
{
    const size_t at = texts->len;
    strbuf_append(texts, text, strlen(text) + 1);
    return at;
}

static void add_hook(struct attach_hook_vec *hooks,
                     struct strbuf *texts,
                     size_t module,
                     const char *name,
                     const char *reason)
{
    const struct attach_hook hook = {.module = module,
                                     .name = add_text(texts, name),
                                     .allocator = strcmp(name, "execve") == 0 ? "" : "jemalloc",
                                     .reason = reason};
    assert_int_equal(attach_hook_vec_push(hooks, hook), ERR_OK);
}

static void a_function_is_counted_by_processes(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    CLEANUP(rec_hook_vec_release) struct rec_hook_vec list = {0};
    CLEANUP(attach_hook_vec_release) struct attach_hook_vec hooks = {0};
    CLEANUP(strbuf_release) struct strbuf texts = {0};
    CLEANUP(strbuf_release) struct strbuf said = {0};
    const size_t first = add_text(&texts, "/lib/a.so");
    add_hook(&hooks, &texts, first, "execve", "");
    add_hook(&hooks, &texts, first, "malloc", "");
    add_hook(&hooks, &texts, first, "free", "is too short for a jump");
    add_hook(&hooks, &texts, add_text(&texts, "/lib/b.so"), "malloc", "");
    add_hook(&hooks, &texts, add_text(&texts, "/lib/c.so"), "free", "is too short for a jump");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hooked_list_add(&list, &aggregator, &hooks, &texts), ERR_OK);
    }
    assert_int_equal(list.len, 5);
    const struct rec_hook *refused = list.items + 2;
    assert_int_equal(refused->processes, 3);
    assert_string_equal(string_table_get(&aggregator.strings, refused->module), "/lib/a.so");
    assert_string_equal(string_table_get(&aggregator.strings, refused->function), "free");
    assert_string_equal(string_table_get(&aggregator.strings, refused->allocator), "jemalloc");
    assert_string_equal(string_table_get(&aggregator.strings, refused->reason),
                        "is too short for a jump");
    hooked_list_describe(&hooks, &texts, &said);
    assert_string_equal(strbuf_text(&said), "execve, malloc of '/lib/a.so' (jemalloc)\n"
                                            "malloc of '/lib/b.so' (jemalloc)\n");
}

static void the_list_is_bounded(void **state)
{
    (void)state;
    enum {
        MODULES = HOOKED_FUNCTIONS_MAX + 7
    };
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    CLEANUP(rec_hook_vec_release) struct rec_hook_vec list = {0};
    for (int round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < MODULES; i++) {
            CLEANUP(attach_hook_vec_release) struct attach_hook_vec hooks = {0};
            CLEANUP(strbuf_release) struct strbuf texts = {0};
            char path[32];
            (void)snprintf(path, sizeof(path), "/lib/%u.so", i);
            add_hook(&hooks, &texts, add_text(&texts, path), "malloc", "");
            assert_int_equal(hooked_list_add(&list, &aggregator, &hooks, &texts), ERR_OK);
        }
        assert_int_equal(list.len, HOOKED_FUNCTIONS_MAX + 1);
        assert_int_equal(list.items[0].processes, round);
        const struct rec_hook *rest = list.items + HOOKED_FUNCTIONS_MAX;
        assert_int_equal(rest->function, 0);
        assert_int_equal(rest->module, 0);
        assert_int_equal(rest->processes, 7 * round);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_counted_by_processes),
        cmocka_unit_test(the_list_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
