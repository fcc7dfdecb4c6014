// SPDX-License-Identifier: MIT
// exec_follow: notes that ask for a tracer, and do not get one. e2e.exec_follow has the others.
#include "recorder/processes/exec_follow.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "recorder/session/session_create.h"
#include "session/exec_check.h"
#include "session/layout.h"
#include "target/producer/exec_note.h"

enum {
    DEADLINE_MS = 60000,
};

struct fixture {
    struct session session;
    struct aggregator aggregator;
    struct unrecorded_list list;
    struct exec_follow follow;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.list.may_follow = true, .follow.session = &f->session};
    const struct session_options options = {.flags = SESSION_FOLLOW_EXECS};
    assert_int_equal(session_create(&options, &f->session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&f->aggregator), ERR_OK);
}

static void end(struct fixture *f)
{
    exec_follow_release(&f->follow);
    unrecorded_list_release(&f->list);
    aggregator_release(&f->aggregator);
    session_release(&f->session);
}

// Put a note as a process would that waits in its exec.
static struct exec_note *note_of(struct fixture *f, pid_t pid, uint64_t number, uint32_t obstacle)
{
    struct exec_note *note = session_exec_note(f->session.memory, (uint32_t)number);
    note->obstacle = obstacle;
    note->pid = (uint32_t)pid;
    note->thread_id = obstacle != EXEC_NONE ? (uint32_t)pid : 0;
    note->number = number;
    memcpy(note->path, "/bin/inner", sizeof("/bin/inner"));
    atomic_store(&note->follow, obstacle != EXEC_NONE ? EXEC_FOLLOW_WANTED : EXEC_FOLLOW_NO);
    atomic_store(&note->state, EXEC_NOTE_READY);
    atomic_fetch_add(&f->session.header->exec_count, 1);
    return note;
}

static void hear(struct fixture *f)
{
    assert_int_equal(unrecorded_list_take(&f->list, &f->aggregator, &f->session, 5), ERR_OK);
    for (size_t i = 0; i < f->list.wanted.len; i++) {
        assert_int_equal(exec_follow_take(&f->follow, f->list.wanted.items + i), ERR_OK);
    }
    wanted_exec_vec_clear(&f->list.wanted);
}

// A hostile program may name any process.
static void only_processes_of_the_session_are_traced(void **state)
{
    (void)state;
    const pid_t strangers[] = {getppid(), getpid(), 1, 0, -1, INT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        struct fixture f;
        begin(&f);
        struct exec_note *note = note_of(&f, strangers[i], 1, EXEC_STATIC);
        hear(&f);
        exec_follow_start(&f.follow);
        assert_int_equal(exec_follow_stop(&f.follow, DEADLINE_MS), 0);
        if (f.follow.items.len != 0) { // without a number it is not even wanted
            assert_int_equal(exec_follow_stage(f.follow.items.items[0]), FOLLOW_OVER);
            assert_true(f.follow.items.items[0]->has_failed);
            assert_int_equal(atomic_load(&note->follow), EXEC_FOLLOW_NO);
            assert_int_equal(atomic_load(&note->state), EXEC_NOTE_HEARD);
            exec_follow_remove(&f.follow, 0);
        }
        assert_int_equal(atomic_load(&note->state), EXEC_NOTE_FREE);
        end(&f);
    }
}

// The child maps the session. It has not been traced yet when its note is taken back.
static void a_note_that_is_taken_back_is_forgotten(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    const pid_t child = fork();
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    assert_true(child > 0);
    struct exec_note *note = note_of(&f, child, 1, EXEC_STATIC);
    hear(&f);
    assert_int_equal(f.follow.items.len, 1);
    assert_int_equal(exec_follow_stage(f.follow.items.items[0]), FOLLOW_QUEUED);
    (void)note_of(&f, child, 2, EXEC_NONE);
    session_exec_note(f.session.memory, 2)->number = 1;
    hear(&f);
    assert_int_equal(f.follow.items.len, 1);
    assert_true(f.follow.items.items[0]->was_taken_back);
    assert_int_equal(exec_follow_stop(&f.follow, DEADLINE_MS), 0);
    assert_int_equal(exec_follow_stage(f.follow.items.items[0]), FOLLOW_OVER);
    assert_int_equal(atomic_load(&note->follow), EXEC_FOLLOW_NO);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    end(&f);
    assert_int_equal(f.list.recent.len, 0);
}

static size_t count_threads(void)
{
    size_t count = 0;
    CLEANUP(directory_closep) DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    return count;
}

// The child does not execute anything: its thread is left, and ends by itself.
static void a_thread_that_does_not_come_is_left(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    const pid_t child = fork();
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    assert_true(child > 0);
    const struct exec_note *note = note_of(&f, child, 1, EXEC_STATIC);
    hear(&f);
    exec_follow_start(&f.follow);
    assert_int_equal(f.follow.items.len, 1);
    const uint32_t left = exec_follow_stop(&f.follow, 0);
    assert_int_equal(f.follow.items.len, 1 - left);
    if (left == 1) {
        assert_int_not_equal(atomic_load(&note->follow), EXEC_FOLLOW_WANTED);
        assert_int_equal(atomic_load(&note->state), EXEC_NOTE_FREE);
    }
    end(&f); // the session is unmapped
    const uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
    while (count_threads() > 1 && clock_monotonic_ms() < end_ms) {
        clock_sleep_ns(NS_PER_MS);
    }
    assert_int_equal(count_threads(), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

// At the end of the recording no process may be left to wait.
static void the_last_notes_are_not_followed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    struct exec_note *note = note_of(&f, getppid(), 1, EXEC_LIBC);
    assert_int_equal(unrecorded_list_take(&f.list, &f.aggregator, &f.session, UINT64_MAX), ERR_OK);
    assert_int_equal(f.list.wanted.len, 0);
    assert_int_equal(f.list.recent.len, 1);
    assert_int_equal(atomic_load(&note->state), EXEC_NOTE_FREE);
    end(&f);
}

// The program is executed, unrecorded, whether the recorder has ended or was killed.
static void waiting_ends_without_a_recorder(void **state)
{
    (void)state;
    for (uint32_t was_killed = 0; was_killed < 2; was_killed++) {
        struct fixture f;
        begin(&f);
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        f.session.header->recorder_pid = (uint32_t)child;
        atomic_store(&f.session.header->state, was_killed != 0 ? SESSION_RUNNING : SESSION_ENDED);
        const struct exec_notice notice = {.path = "/bin/inner",
                                           .obstacle = EXEC_STATIC,
                                           .pid = (uint32_t)getpid(),
                                           .pid_namespace = f.session.header->recorder_namespace,
                                           .is_to_be_followed = true};
        bool is_traced = true;
        const uint64_t number = exec_note_put(f.session.header, &notice, &is_traced);
        assert_int_not_equal(number, 0);
        assert_false(is_traced);
        assert_int_equal(atomic_load(&f.session.header->state),
                         was_killed != 0 ? SESSION_ABANDONED : SESSION_ENDED);
        const struct exec_note *note =
            session_exec_note(f.session.memory, (uint32_t)(number % SESSION_EXEC_NOTES));
        assert_int_equal(atomic_load(&note->follow), EXEC_FOLLOW_LEFT);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_processes_of_the_session_are_traced),
        cmocka_unit_test(a_note_that_is_taken_back_is_forgotten),
        cmocka_unit_test(a_thread_that_does_not_come_is_left),
        cmocka_unit_test(the_last_notes_are_not_followed),
        cmocka_unit_test(waiting_ends_without_a_recorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
