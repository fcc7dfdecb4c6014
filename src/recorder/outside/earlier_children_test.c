// SPDX-License-Identifier: MIT
// earlier_children: children of this process that stay, end, or come between the two looks.
#include "recorder/outside/earlier_children.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t begin(void)
{
    const pid_t child = fork();
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    assert_true(child > 0);
    return child;
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void expect(const struct u32_vec *noted, uint32_t chosen, size_t count, const char *text)
{
    struct strbuf said = {0};
    size_t found = SIZE_MAX;
    assert_int_equal(earlier_children_describe(noted, getpid(), &chosen, 1, &said, &found), ERR_OK);
    assert_int_equal(found, count);
    assert_string_equal(strbuf_text(&said), text);
    strbuf_release(&said);
}

static void children_count_that_are_there_before_and_after(void **state)
{
    (void)state;
    char text[128];
    const int pid = (int)getpid();
    struct u32_vec noted = {0};
    const pid_t stays = begin();
    const pid_t ends = begin();
    const pid_t chosen = begin();
    assert_int_equal(earlier_children_note(pid, &noted), ERR_OK);
    assert_int_equal(noted.len, 3);
    const pid_t comes = begin();
    end(ends);
    (void)snprintf(text, sizeof(text),
                   "1 child of process %d, which ran before; -p %d,%d records it, too", pid, pid,
                   (int)stays);
    expect(&noted, (uint32_t)chosen, 1, text);
    (void)snprintf(text, sizeof(text),
                   "2 children of process %d, which ran before; -p %d,%d,%d records them, too", pid,
                   pid, (int)stays, (int)chosen);
    expect(&noted, (uint32_t)comes, 2, text);
    end(stays);
    expect(&noted, (uint32_t)chosen, 0, "");
    end(chosen);
    end(comes);
    u32_vec_release(&noted);
}

static void a_process_that_has_ended_has_no_children(void **state)
{
    (void)state;
    const pid_t child = begin();
    struct u32_vec noted = {0};
    end(child);
    assert_int_equal(earlier_children_note(child, &noted), ERR_OK);
    assert_int_equal(noted.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_count_that_are_there_before_and_after),
        cmocka_unit_test(a_process_that_has_ended_has_no_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
