// SPDX-License-Identifier: MIT
// preflight: programs of other libcs and with allocators of their own: what is refused, and what
// wants the agent.
#include "recorder/launch/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "inject/allocators/allocator_names.h"

enum {
    PATH_BYTES = 256,
};

enum wish {
    FORCE = 1,
    CHILDREN = 2,
    AGENT = 4,
    ALL = 8,
    NAMED = 16,
};

#define OWN_MALLOC(how, rest)                                                            \
    "has its own malloc built in (" how "), which a preloaded library cannot see; " rest \
    " with --force"
#define OWN_RUN      "the rest of its run can be recorded"
#define OWN_CHILDREN "the programs that it starts can be recorded"
#define STATIC_TEXT \
    "is a static executable, which loads no libraries; link it dynamically to record it"
#define LIBC_TEXT                                                                        \
    "is linked with a libc other than glibc (such as musl), into which cairn's library " \
    "cannot be "                                                                         \
    "loaded; link it with glibc to record it"

static const struct {
    const char *program;
    unsigned wishes;
    const char *refusal; // what follows the program's name; NULL: none
    bool is_refused;
    bool wants_agent;
    bool is_static;
} programs[] = {
    {"glibc_dynamic", 0, NULL, false, false, false},
    {"glibc_dynamic", AGENT, NULL, false, false, false},
    {"glibc_dynamic", NAMED, OWN_MALLOC("with names of its own", OWN_RUN), true, true, false},
    {"glibc_dynamic", NAMED | AGENT, OWN_MALLOC("with names of its own", OWN_RUN), false, true,
     false},
    {"glibc_dynamic", NAMED | FORCE, NULL, false, false, false},
    {"glibc_dynamic", ALL, "for --all-allocators", true, true, false},
    {"glibc_dynamic", ALL | AGENT, "for --all-allocators", false, true, false},
    {"glibc_static", 0, STATIC_TEXT, true, true, true},
    {"glibc_static", AGENT, STATIC_TEXT, false, true, true},
    {"glibc_static", FORCE, STATIC_TEXT, true, true, true},
    {"musl_dynamic", 0, LIBC_TEXT, true, true, false},
    {"musl_dynamic", AGENT, LIBC_TEXT, false, true, false},
    {"musl_static", AGENT, STATIC_TEXT, false, true, true},
    {"jemalloc_inside", 0, OWN_MALLOC("jemalloc", OWN_RUN), true, true, false},
    {"jemalloc_inside", CHILDREN, OWN_MALLOC("jemalloc", OWN_CHILDREN), true, true, false},
    {"jemalloc_inside", AGENT, OWN_MALLOC("jemalloc", OWN_RUN), false, true, false},
    {"jemalloc_inside", FORCE, NULL, false, false, false},
    {"jemalloc_prefixed", 0, OWN_MALLOC("jemalloc", OWN_RUN), true, true, false},
    {"tcmalloc_inside", 0, OWN_MALLOC("tcmalloc", OWN_RUN), true, true, false},
    {"jemalloc_shared", 0, OWN_MALLOC("with names of its own", OWN_RUN), true, true, false},
    {"mimalloc_prefixed", 0, OWN_MALLOC("with names of its own", OWN_RUN), true, true, false},
};

static void check_program(size_t place)
{
    char path[PATH_BYTES];
    const unsigned wishes = programs[place].wishes;
    CLEANUP(allocator_name_vec_release) struct allocator_name_vec names = {0};
    struct err_info info = {0};
    if ((wishes & NAMED) != 0) {
        assert_int_equal(allocator_name_vec_push(&names, (struct allocator_name){0}), ERR_OK);
    }
    const struct preflight_options options = {.allow_own_malloc = (wishes & FORCE) != 0,
                                              .follow_children = (wishes & CHILDREN) != 0,
                                              .can_use_agent = (wishes & AGENT) != 0,
                                              .searches_libraries = (wishes & ALL) != 0,
                                              .allocator_names = &names};
    (void)snprintf(path, sizeof(path), "%s/%s", PROGRAMS, programs[place].program);
    print_message("%s, %u\n", programs[place].program, wishes);
    struct preflight found;
    char *argv[] = {path, NULL};
    const enum err err = preflight_check(argv, &options, &found, &info);
    assert_int_equal(err, programs[place].is_refused ? ERR_UNSUPPORTED : ERR_OK);
    assert_int_equal(found.wants_agent, programs[place].wants_agent);
    assert_int_equal(found.is_static, programs[place].is_static);
    const char *refusal = strbuf_text(&found.refusal);
    const size_t wanted = programs[place].refusal != NULL ? strlen(programs[place].refusal) : 0;
    assert_int_equal(found.refusal.len != 0, wanted != 0);
    if (wanted != 0) {
        assert_non_null(strstr(refusal, path));
        assert_true(found.refusal.len > wanted);
        assert_string_equal(refusal + found.refusal.len - wanted, programs[place].refusal);
    }
    assert_string_equal(info.text, programs[place].is_refused ? refusal : "");
    if (programs[place].is_refused) {
        assert_int_equal(found.exit_status, PREFLIGHT_STATUS_CANNOT_RECORD);
    }
    preflight_release(&found);
}

static void programs_with_allocators_of_their_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        check_program(i);
    }
}

// It runs, because the library sees no reason against it, and is told of once.
static void an_allocator_without_names_is_told_once(void **state)
{
    (void)state;
    char path[] = "/tmp/preflight-XXXXXX";
    char strip[PATH_BYTES];
    struct preflight found;
    char *argv[] = {path, NULL};
    assert_int_equal(close(mkstemp(path)), 0);
    (void)snprintf(strip, sizeof(strip), "strip -o %s %s/jemalloc_prefixed", path, PROGRAMS);
    assert_int_equal(system(strip), 0);
    assert_int_equal(preflight_check(argv, &(struct preflight_options){0}, &found, NULL), ERR_OK);
    const char *hidden = preflight_find_hidden(&found);
    assert_non_null(hidden);
    assert_non_null(strstr(hidden, " contains jemalloc, but has no symbols"));
    assert_null(preflight_find_hidden(&found));
    preflight_release(&found);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_allocators_of_their_own),
        cmocka_unit_test(an_allocator_without_names_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
