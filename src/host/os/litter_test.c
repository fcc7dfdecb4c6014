// SPDX-License-Identifier: MIT
// litter: which files are removed, and above all which stay.
#include "host/os/litter.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

enum {
    DEAD_PID = 0x3ffffffe // beyond any kernel's pid_max
};

static void make(const char *name, long age_s)
{
    const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    const struct timespec then = {.tv_sec = time(NULL) - age_s};
    const struct timespec times[] = {then, then};
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(close(fd), 0);
}

static void only_old_names_of_the_dead_go(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        const char *end;
        long pid; // pid in the name; 0: the test's own
        long age_s;
        int goes;
    } cases[] = {
        {"f.cairn.", "-0.tmp", DEAD_PID, 100, 1},   {"f.cairn.", "-17.tmp", DEAD_PID, 100, 1},
        {"f.cairn.", "-1.tmp", DEAD_PID, 5, 0},     {"f.cairn.", "-0.tmp", 0, 100, 0},
        {"f.cairn.", "-0.tmp2", DEAD_PID, 100, 0},  {"f.cairn.", ".tmp", DEAD_PID, 100, 0},
        {"f.cairn2.", "-0.tmp", DEAD_PID, 100, 0},  {"f.cairn.-", "-0.tmp", DEAD_PID, 100, 0},
        {"f.cairn.", "-x.tmp", DEAD_PID, 100, 0},   {"f.cairn.", "", DEAD_PID, 100, 0},
        {"g.f.cairn.", "-0.tmp", DEAD_PID, 100, 0},
    };
    char folder[] = "/tmp/litter_test.XXXXXX";
    char names[ARRAY_LEN(cases)][64];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s%ld%s", cases[i].base,
                       cases[i].pid != 0 ? cases[i].pid : (long)getpid(), cases[i].end); // fits
        make(names[i], cases[i].age_s);
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/f.cairn", folder);
    litter_remove(path);
    litter_remove("/nowhere/f.cairn");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", names[i]);
        assert_int_equal(access(names[i], F_OK) != 0, cases[i].goes);
        (void)unlink(names[i]); // if it exists
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_old_names_of_the_dead_go),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
