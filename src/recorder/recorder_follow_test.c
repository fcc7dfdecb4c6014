// SPDX-License-Identifier: MIT
// recorder_follow: programs that are held, that have ended and that could not be followed: what the
// recording and the list of attached processes have of them.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator_process.h"
#include "base/compiler.h"
#include "recorder/ingest/test_recorder.h"
#include "recorder/recorder_state.h"
#include "session/exec_check.h"

struct fixture {
    struct recorder_state *s;
    struct recorder_options options;
};

static void set_up(struct fixture *f, uint32_t flags)
{
    *f = (struct fixture){0};
    struct recorder_state *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    f->s = s;
    s->options = &f->options;
    assert_int_equal(session_create(&(struct session_options){.flags = flags}, &s->session, NULL),
                     ERR_OK);
    assert_int_equal(aggregator_init(&s->aggregator), ERR_OK);
    assert_int_equal(drain_init(&s->drain, &s->session, &s->aggregator, NULL), ERR_OK);
    recorder_follow_begin(s);
}

static void tear_down(struct fixture *f)
{
    recorder_attach_release(f->s);
    unrecorded_list_release(&f->s->unrecorded);
    drain_release(&f->s->drain);
    aggregator_release(&f->s->aggregator);
    session_release(&f->s->session);
    free(f->s);
}

static struct attach *attach_of(pid_t pid)
{
    struct attach *attach = calloc(1, sizeof(*attach));
    assert_non_null(attach);
    attach->inject.target.pid = pid;
    return attach;
}

static struct attached_process *add_process(struct fixture *f, pid_t pid)
{
    const struct attached_process process = {.attach = attach_of(pid),
                                             .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
    assert_int_equal(attached_process_vec_push(&f->s->attached, process), ERR_OK);
    return f->s->attached.items + f->s->attached.len - 1;
}

static void execs_are_followed_if_the_session_says_so(void **state)
{
    (void)state;
    for (uint32_t is_on = 0; is_on < 2; is_on++) {
        struct fixture f;
        set_up(&f, is_on != 0 ? SESSION_FOLLOW_EXECS : SESSION_FOLLOW_CHILDREN);
        assert_int_equal(f.s->unrecorded.may_follow, is_on != 0);
        assert_ptr_equal(f.s->follow.session, &f.s->session);
        assert_int_equal(recorder_follow_end(f.s), ERR_OK);
        assert_false(f.s->unrecorded.may_follow);
        tear_down(&f);
    }
}

// The recording waits for followed programs.
static void followed_programs_keep_the_recording(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, SESSION_FOLLOW_EXECS);
    assert_int_equal(recorder_follow_running(f.s), 0);
    add_process(&f, getpid());
    assert_int_equal(recorder_follow_running(f.s), 0);
    add_process(&f, getpid())->is_followed = true;
    add_process(&f, getpid())->is_followed = true;
    assert_int_equal(recorder_follow_running(f.s), 2);
    tear_down(&f);
}

// They stay for as long as the drain may hear of them, and end in the recording. Those of the
// user's choice stay in the list.
static void programs_that_have_ended_leave_the_list(void **state)
{
    (void)state;
    enum {
        CHOSEN,
        FOLLOWED,
        JOINED,
        RUNNING,
        KINDS
    };
    struct fixture f;
    set_up(&f, SESSION_FOLLOW_EXECS);
    pid_t pids[KINDS];
    for (size_t i = 0; i < KINDS; i++) {
        pids[i] = sleeping_child();
        struct attached_process *process = add_process(&f, pids[i]);
        process->is_followed = i == FOLLOWED || i == RUNNING;
        process->has_joined = i == JOINED;
        assert_int_equal(recorder_attach_describe(f.s, process->attach, 1), ERR_OK);
    }
    assert_int_equal(f.s->drain.awaited.len, KINDS);
    assert_int_equal(recorder_follow_round(f.s, 15), ERR_OK);
    for (size_t i = 0; i < RUNNING; i++) {
        end_child(pids[i]);
    }
    for (uint64_t round = 0; round < 2; round++) {
        assert_int_equal(recorder_follow_round(f.s, 20 + round), ERR_OK);
        assert_int_equal(f.s->attached.len, KINDS);
        assert_true(f.s->attached.items[FOLLOWED].has_ended);
        assert_false(f.s->attached.items[RUNNING].has_ended);
    }
    assert_int_equal(recorder_follow_round(f.s, 22), ERR_OK);
    assert_int_equal(f.s->attached.len, 2);
    for (size_t i = 0; i < 2; i++) {
        const int pid = f.s->attached.items[i].attach->inject.target.pid;
        assert_true(pid == pids[CHOSEN] || pid == pids[RUNNING]);
    }
    assert_int_equal(f.s->drain.awaited.len, 1);
    assert_int_equal(f.s->drain.awaited.items[0].process->record.pid, pids[RUNNING]);
    for (size_t i = 0; i < KINDS; i++) {
        const struct aggregator_process *process = f.s->aggregator.processes.items[i];
        assert_int_equal(process->is_ended, i != RUNNING);
        assert_int_equal(process->record.end_ms, process->is_ended ? 15 : 0);
        assert_int_equal(process->record.end_error_ms, process->is_ended ? 1 + 20 - 15 : 0);
    }
    end_child(pids[RUNNING]);
    tear_down(&f);
}

// Put an exec into the list as its thread leaves it.
static struct followed_exec *
add_item(struct fixture *f, pid_t pid, enum follow_stage stage, uint32_t place)
{
    struct exec_note *note = session_exec_note(f->s->session.memory, place);
    atomic_store(&note->state, EXEC_NOTE_HEARD);
    const struct wanted_exec wanted = {
        .exec = {.pid = pid, .obstacle = EXEC_STATIC, .number = place},
        .note = note,
        .thread = pid};
    assert_int_equal(exec_follow_take(&f->s->follow, &wanted), ERR_OK);
    struct followed_exec *item = f->s->follow.items.items[f->s->follow.items.len - 1];
    item->has_failed = false;
    item->attach->inject.target.pid = pid;
    atomic_store(&item->stage, stage);
    return item;
}

// The thread of a process that has ended keeps the recording, but nothing of it runs.
static void a_thread_of_an_ended_process_is_no_running_process(void **state)
{
    (void)state;
    static const enum follow_stage stages[] = {FOLLOW_QUEUED, FOLLOW_RUNNING, FOLLOW_HELD,
                                               FOLLOW_OVER};
    for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
        struct fixture f;
        set_up(&f, SESSION_FOLLOW_EXECS);
        const pid_t child = sleeping_child();
        struct followed_exec *item = add_item(&f, child, stages[i], 2);
        item->start.pid = stages[i] >= FOLLOW_HELD ? child : 0;
        assert_int_equal(recorder_follow_living(f.s), 1);
        end_child(child);
        assert_int_equal(recorder_follow_living(f.s), 0);
        assert_int_equal(recorder_follow_running(f.s), 1);
        add_process(&f, getpid())->is_followed = true;
        assert_int_equal(recorder_follow_living(f.s), 1);
        atomic_store(&item->stage, FOLLOW_OVER);
        tear_down(&f);
    }
}

// A held program is in the recording before it begins, in place of the one that its process had.
static void a_held_program_replaces_the_former_one(void **state)
{
    (void)state;
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        struct fixture f;
        set_up(&f, SESSION_FOLLOW_EXECS);
        const pid_t child = sleeping_child();
        if (is_listed != 0) {
            const struct attached_process *former = add_process(&f, child);
            assert_int_equal(recorder_attach_describe(f.s, former->attach, 1), ERR_OK);
        }
        struct followed_exec *item = add_item(&f, child, FOLLOW_HELD, 3);
        item->wanted.exec.time_ms = 17;
        const struct attach *attach = item->attach;
        assert_int_equal(recorder_follow_running(f.s), 1);
        assert_int_equal(recorder_follow_round(f.s, 30), ERR_OK);
        assert_int_equal(f.s->attached.len, 1);
        assert_ptr_equal(f.s->attached.items[0].attach, attach);
        assert_int_equal(f.s->attached.items[0].is_followed, is_listed == 0);
        assert_true(f.s->attached.items[0].pidfd >= 0);
        assert_null(item->attach); // taken, once
        int accepted = 0;
        assert_int_equal(sem_getvalue(&item->is_accepted, &accepted), 0);
        assert_int_equal(accepted, 1);
        assert_int_equal(f.s->drain.awaited.len, 1);
        assert_int_equal(f.s->drain.awaited.items[0].process->record.start_ms, 30);
        assert_int_equal(f.s->aggregator.processes.len, 1 + is_listed);
        assert_int_equal(f.s->aggregator.processes.items[is_listed]->record.epoch, is_listed);
        if (is_listed != 0) { // it ended with its exec, without having allocated
            const struct rec_process *former = &f.s->aggregator.processes.items[0]->record;
            assert_int_equal(former->end_ms, 17);
            assert_int_equal(former->end_error_ms, 1);
            assert_true((former->flags & REC_PROCESS_EXECED) != 0);
        }
        assert_int_equal(recorder_follow_round(f.s, 31), ERR_OK);
        assert_int_equal(f.s->aggregator.processes.len, 1 + is_listed);
        assert_int_equal(sem_getvalue(&item->is_accepted, &accepted), 0);
        assert_int_equal(accepted, 1);
        atomic_store(&item->stage, FOLLOW_OVER);
        assert_int_equal(recorder_follow_round(f.s, 32), ERR_OK);
        assert_int_equal(f.s->follow.items.len, 0);
        assert_int_equal(f.s->unrecorded.recent.len, 0);
        end_child(child);
        tear_down(&f);
    }
}

// One whose process has ended already is listed anew.
static void an_ended_process_is_not_replaced(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, SESSION_FOLLOW_EXECS);
    const pid_t child = sleeping_child();
    add_process(&f, child)->has_ended = true;
    (void)add_item(&f, child, FOLLOW_HELD, 3);
    assert_int_equal(recorder_follow_round(f.s, 30), ERR_OK);
    assert_int_equal(f.s->attached.len, 2);
    end_child(child);
    for (size_t i = 0; i < f.s->follow.items.len; i++) {
        atomic_store(&f.s->follow.items.items[i]->stage, FOLLOW_OVER);
    }
    tear_down(&f);
}

static void what_could_not_be_followed_is_unrecorded(void **state)
{
    (void)state;
    static const struct {
        bool has_failed;
        bool was_taken_back;
        bool makes_child;
        size_t unrecorded;
    } cases[] = {
        {false, false, false, 0},
        {true, false, false, 1},
        {true, true, false, 0},
        {true, false, true, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        set_up(&f, SESSION_FOLLOW_EXECS);
        const pid_t child = sleeping_child();
        struct followed_exec *queued = add_item(&f, child, FOLLOW_QUEUED, 2);
        struct followed_exec *item = add_item(&f, child, FOLLOW_OVER, 3);
        item->has_failed = cases[i].has_failed;
        item->was_taken_back = cases[i].was_taken_back;
        item->start.makes_child = cases[i].makes_child;
        // Not started, so that it stays.
        atomic_store(&queued->stage, FOLLOW_RUNNING);
        assert_int_equal(recorder_follow_round(f.s, 44), ERR_OK);
        assert_int_equal(f.s->follow.items.len, 1);
        assert_ptr_equal(f.s->follow.items.items[0], queued);
        assert_int_equal(atomic_load(&session_exec_note(f.s->session.memory, 3)->state),
                         EXEC_NOTE_FREE);
        assert_int_equal(f.s->unrecorded.recent.len, cases[i].unrecorded);
        if (cases[i].unrecorded != 0) {
            const struct unrecorded_exec *exec = f.s->unrecorded.recent.items;
            assert_int_equal(exec->pid, cases[i].makes_child ? 0 : child);
            assert_int_equal(exec->heard_ms, 44);
            assert_int_equal(exec->obstacle, EXEC_STATIC);
        }
        atomic_store(&queued->stage, FOLLOW_OVER);
        end_child(child);
        tear_down(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(execs_are_followed_if_the_session_says_so),
        cmocka_unit_test(followed_programs_keep_the_recording),
        cmocka_unit_test(programs_that_have_ended_leave_the_list),
        cmocka_unit_test(a_thread_of_an_ended_process_is_no_running_process),
        cmocka_unit_test(a_held_program_replaces_the_former_one),
        cmocka_unit_test(an_ended_process_is_not_replaced),
        cmocka_unit_test(what_could_not_be_followed_is_unrecorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
