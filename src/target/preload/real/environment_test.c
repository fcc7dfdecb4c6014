// SPDX-License-Identifier: MIT
// Tests the search in an environment, and the environment made for an exec.
#include "target/preload/real/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

#define OURS    "/usr/lib/cairn/libcairn_preload.so"
#define SESSION "CAIRN_SESSION=/proc/1/fd/3:name"

#define VARIABLES_MAX 1000u

static char *variables_of_process[] = {(char[]){"HOME=/"}, (char[]){"LD_PRELOAD=a.so:" OURS},
                                       (char[]){SESSION}, NULL};

static void expect(const struct made_environment *made, const char *const *want)
{
    size_t i = 0;
    for (; want[i] != NULL; i++) {
        assert_non_null(made->variables[i]);
        assert_string_equal(made->variables[i], want[i]);
    }
    assert_null(made->variables[i]);
}

static void test_taking_us_out(void **state)
{
    (void)state;
    static const struct {
        const char *given[4];
        const char *want[4];
    } cases[] = {
        {{"A=1", "LD_PRELOAD=" OURS, SESSION}, {"A=1"}},
        {{"LD_PRELOAD=" OURS ":b.so", "A=1"}, {"A=1", "LD_PRELOAD=b.so"}},
        {{"LD_PRELOAD=a.so " OURS " b.so", SESSION}, {"LD_PRELOAD=a.so:b.so"}},
        {{"LD_PRELOAD=a.so"}, {"LD_PRELOAD=a.so"}},
        {{"LD_PRELOAD=/x/libcairn_preload.so.1"}, {"LD_PRELOAD=/x/libcairn_preload.so.1"}},
        {{"LD_PRELOAD=libcairn_preload.so", "A=1"}, {"A=1"}}, // found by the loader's search
        {{"LD_PRELOAD=xlibcairn_preload.so"}, {"LD_PRELOAD=xlibcairn_preload.so"}},
        {{"LD_PRELOAD=cairn_preload.so"}, {"LD_PRELOAD=cairn_preload.so"}},
        {{"LD_PRELOADED=" OURS}, {"LD_PRELOADED=" OURS}},
        {{"LD_PRELOAD="}, {NULL}},
        {{NULL}, {NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct made_environment made;
        assert_true(environment_without_us(&made, (char *const *)(uintptr_t)cases[i].given));
        expect(&made, cases[i].want);
        environment_release(&made);
    }
}

static void test_putting_us_in(void **state)
{
    (void)state;
    environ = variables_of_process;
    environment_remember();
    static const struct {
        const char *given[4];
        const char *want[5];
    } cases[] = {
        {{NULL}, {"LD_PRELOAD=" OURS, SESSION}},
        {{"A=1"}, {"A=1", "LD_PRELOAD=" OURS, SESSION}},
        {{"LD_PRELOAD=b.so", SESSION, "A=1"}, {"A=1", "LD_PRELOAD=" OURS ":b.so", SESSION}},
        {{"LD_PRELOAD=", "A=1"}, {"A=1", "LD_PRELOAD=" OURS, SESSION}},
        {{"LD_PRELOAD=b.so:" OURS, "A=1"}, {"A=1", "LD_PRELOAD=" OURS ":b.so", SESSION}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct made_environment made;
        assert_true(environment_with_us(&made, (char *const *)(uintptr_t)cases[i].given, NULL));
        expect(&made, cases[i].want);
        environment_release(&made);
    }
    struct made_environment made;
    assert_true(environment_with_us(&made, NULL, NULL)); // as execve takes it
    expect(&made, (const char *const[]){"LD_PRELOAD=" OURS, SESSION, NULL});
    environment_release(&made);
}

static void test_another_way_in(void **state)
{
    (void)state;
    environ = variables_of_process;
    environment_remember();
    struct made_environment made;
    assert_true(environment_with_us(&made, variables_of_process, "/tmp/door"));
    expect(&made, (const char *const[]){"HOME=/", "LD_PRELOAD=" OURS ":a.so",
                                        "CAIRN_SESSION=/proc/1/fd/3:/tmp/door", NULL});
    environment_release(&made);
    assert_true(environment_names_ours("/proc/1/fd/3:/tmp/door"));
    assert_true(environment_names_ours("/proc/1/fd/3:name"));
    assert_false(environment_names_ours("/proc/1/fd/33:name"));
    assert_false(environment_names_ours("/proc/2/fd/3:name")); // as long as ours
    assert_false(environment_names_ours("/proc/1/fd/3"));
    assert_false(environment_names_ours(""));
}

// Sizes around the arrays' size, and far beyond: nothing is cut or omitted.
static void test_large_environments(void **state)
{
    (void)state;
    static char *given[VARIABLES_MAX + 1];
    static char texts[VARIABLES_MAX][16];
    static char preload[4000];
    const int length = snprintf(preload, sizeof(preload), "LD_PRELOAD=%s:", OURS);
    memset(preload + length, 'x', sizeof(preload) - 1 - (size_t)length);
    static const size_t counts[] = {1, 196, 197, 198, 199, 200, 201, VARIABLES_MAX};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        memset(given, 0, sizeof(given));
        given[0] = preload;
        for (size_t k = 1; k < counts[i]; k++) {
            (void)snprintf(texts[k], sizeof(texts[k]), "V%u=1", (unsigned)k);
            given[k] = texts[k];
        }
        struct made_environment made;
        assert_true(environment_without_us(&made, given));
        const struct environment_scan scan = environment_scan(made.variables);
        assert_int_equal(scan.count, counts[i]);
        assert_null(scan.ours);
        assert_int_equal(strlen(scan.preload), sizeof(preload) - 1 - (size_t)length);
        environment_release(&made);
        assert_true(environment_with_us(&made, given, NULL));
        assert_int_equal(environment_scan(made.variables).count, counts[i] + 1);
        assert_string_equal(environment_scan(made.variables).session, strchr(SESSION, '=') + 1);
        environment_release(&made);
    }
}

// The list of libraries is as long as the array for it, or nearly: it is whole, and what follows
// the array is too.
static void test_lists_as_long_as_their_array(void **state)
{
    (void)state;
    environ = variables_of_process;
    environment_remember();
    const size_t head_bytes = strlen("LD_PRELOAD=" OURS ":");
    for (size_t bytes = ENVIRONMENT_BYTES - 3; bytes <= ENVIRONMENT_BYTES + 3; bytes++) {
        char given[ENVIRONMENT_BYTES + 16] = "LD_PRELOAD=";
        char want[ENVIRONMENT_BYTES + 16] = "LD_PRELOAD=" OURS ":";
        const size_t others_bytes = bytes - 1 - head_bytes;
        memset(given + strlen(given), 'x', others_bytes);
        memset(want + head_bytes, 'x', others_bytes);
        struct made_environment made;
        memset(&made, 0x55, sizeof(made));
        assert_true(environment_with_us(&made, (char *[]){given, NULL}, "/tmp/door"));
        expect(&made, (const char *const[]){want, "CAIRN_SESSION=/proc/1/fd/3:/tmp/door", NULL});
        assert_int_equal(made.mapped != NULL, bytes > ENVIRONMENT_BYTES);
        environment_release(&made);
    }
}

// A door that does not fit is left out, so that no recorder is found.
static void test_doors_as_long_as_their_room(void **state)
{
    (void)state;
    environ = variables_of_process;
    environment_remember();
    const size_t head_bytes = strlen("CAIRN_SESSION=/proc/1/fd/3:");
    for (size_t bytes = ENVIRONMENT_SESSION_BYTES - 2; bytes <= ENVIRONMENT_SESSION_BYTES + 2;
         bytes++) {
        char door[ENVIRONMENT_SESSION_BYTES + 16] = "";
        memset(door, 'd', bytes - 1 - head_bytes);
        struct made_environment made;
        assert_true(environment_with_us(&made, (char *[]){NULL}, door));
        assert_memory_equal(made.variables[1], "CAIRN_SESSION=/proc/1/fd/3:", head_bytes);
        assert_string_equal(made.variables[1] + head_bytes,
                            bytes <= ENVIRONMENT_SESSION_BYTES ? door : "");
        environment_release(&made);
    }
}

// What does not fit is not remembered; what was remembered stays.
static void test_names_that_are_too_long(void **state)
{
    (void)state;
    static char preload[8192] = "LD_PRELOAD=/";
    static char session[8192] = SESSION;
    environ = variables_of_process;
    environment_remember();
    memset(preload + strlen(preload), 'x', 5000);
    memcpy(preload + strlen(preload), OURS, sizeof(OURS));
    memset(session + strlen(session), 'x', 5000);
    char *const environments[][3] = {{preload, (char[]){SESSION}, NULL},
                                     {(char[]){"LD_PRELOAD=" OURS}, session, NULL},
                                     {(char[]){"LD_PRELOAD=" OURS}, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(environments); i++) {
        environ = (char **)(uintptr_t)environments[i];
        environment_remember();
        struct made_environment made;
        assert_true(environment_with_us(&made, NULL, NULL));
        expect(&made, (const char *const[]){"LD_PRELOAD=" OURS, SESSION, NULL});
        environment_release(&made);
    }
    environ = variables_of_process;
}

// The session's variable is remembered up to the length of its room.
static void test_sessions_as_long_as_their_room(void **state)
{
    (void)state;
    for (size_t bytes = ENVIRONMENT_SESSION_BYTES - 1; bytes <= ENVIRONMENT_SESSION_BYTES + 1;
         bytes++) {
        environ = variables_of_process;
        environment_remember();
        char session[ENVIRONMENT_SESSION_BYTES + 16] = SESSION;
        memset(session + strlen(SESSION), 's', bytes - 1 - strlen(SESSION));
        char *const given[] = {(char[]){"LD_PRELOAD=" OURS}, session, NULL};
        environ = (char **)(uintptr_t)given;
        environment_remember();
        struct made_environment made;
        assert_true(environment_with_us(&made, NULL, NULL));
        assert_string_equal(made.variables[1],
                            bytes <= ENVIRONMENT_SESSION_BYTES ? session : SESSION);
        environment_release(&made);
    }
    environ = variables_of_process;
}

static void test_the_session_of_the_process(void **state)
{
    (void)state;
    char **const former = environ;
    environ = variables_of_process;
    assert_true(environment_is_there());
    assert_string_equal(environment_session(), strchr(SESSION, '=') + 1);
    environ = (char *[]){(char[]){"CAIRN_SESSIONS=x"}, NULL};
    assert_null(environment_session());
    environ = NULL;
    assert_false(environment_is_there());
    environ = former;
}

// One of our variables alone is taken out, too.
static void test_stripping_one_variable(void **state)
{
    (void)state;
    char **const former = environ;
    char *session[] = {(char[]){SESSION}, (char[]){"A=1"}, NULL};
    char *preload[] = {(char[]){"LD_PRELOAD=" OURS}, (char[]){"A=1"}, NULL};
    char **const cases[] = {session, preload};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        environ = cases[i];
        environment_strip();
        expect(&(struct made_environment){.variables = environ},
               (const char *const[]){"A=1", NULL});
    }
    environ = former;
}

// As getenv(3) the first PATH counts, and as the loader the last LD_PRELOAD.
static void test_variables_that_come_twice(void **state)
{
    (void)state;
    char *const twice[] = {(char[]){"PATH=/a"},
                           (char[]){"LD_PRELOAD=a.so"},
                           (char[]){"CAIRN_SESSION=one"},
                           (char[]){"PATH=/b"},
                           (char[]){"LD_PRELOAD=b.so:" OURS ":c.so"},
                           (char[]){"CAIRN_SESSION=two"},
                           (char[]){"PATHS=/c"},
                           NULL};
    const struct environment_scan scan = environment_scan(twice);
    assert_string_equal(scan.path, "/a");
    assert_string_equal(scan.session, "two");
    assert_string_equal(scan.preload, "b.so:" OURS ":c.so");
    assert_string_equal(scan.ours, OURS ":c.so");
    assert_int_equal(scan.ours_bytes, strlen(OURS));
    assert_int_equal(scan.count, 7);
}

static void test_looking(void **state)
{
    (void)state;
    const struct environment_scan scan = environment_scan(variables_of_process);
    assert_int_equal(scan.count, 3);
    assert_string_equal(scan.ours, OURS);
    assert_int_equal(scan.ours_bytes, strlen(OURS));
    assert_null(scan.path);
    assert_int_equal(environment_scan(NULL).count, 0);
    assert_null(environment_scan((char *const[]){(char[]){"LD_PRELOAD="}, NULL}).preload);
    assert_false(scan.is_of_valgrind);
    char *const valgrind[] = {(char[]){"VALGRIND_LAUNCHER=/usr/bin/valgrind"}, NULL};
    assert_true(environment_scan(valgrind).is_of_valgrind);
    char *const counted[] = {(char[]){"CAIRN_INSIDE_VALGRIND=1"}, valgrind[0], NULL};
    assert_false(environment_scan(counted).is_of_valgrind);
}

static void test_stripping_the_process(void **state)
{
    (void)state;
    char *own[] = {(char[]){"A=1"}, (char[]){SESSION}, (char[]){"LD_PRELOAD=a.so:" OURS},
                   (char[]){"B=2"}, NULL};
    const char *const want[] = {"A=1", "LD_PRELOAD=a.so", "B=2", NULL};
    static const char *const others[] = {"LD_PRELOAD=a.so", NULL}; // read-only
    char **const former = environ;
    environ = own;
    environment_strip();
    expect(&(struct made_environment){.variables = environ}, want);
    environ = (char **)(uintptr_t)others;
    environment_strip();
    environ = NULL;
    environment_strip();
    environ = former;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taking_us_out),
        cmocka_unit_test(test_putting_us_in),
        cmocka_unit_test(test_another_way_in),
        cmocka_unit_test(test_large_environments),
        cmocka_unit_test(test_looking),
        cmocka_unit_test(test_stripping_the_process),
        cmocka_unit_test(test_lists_as_long_as_their_array),
        cmocka_unit_test(test_doors_as_long_as_their_room),
        cmocka_unit_test(test_names_that_are_too_long),
        cmocka_unit_test(test_sessions_as_long_as_their_room),
        cmocka_unit_test(test_the_session_of_the_process),
        cmocka_unit_test(test_stripping_one_variable),
        cmocka_unit_test(test_variables_that_come_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
