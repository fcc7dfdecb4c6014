// SPDX-License-Identifier: MIT
// recorder_modules: notes of loaded libraries, whose processes wait for an answer: each gets one,
// also if it names a process that is not recorded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "recorder/ingest/test_recorder.h"
#include "recorder/recorder_state.h"

struct fixture {
    struct recorder_state *s;
    struct recorder_options options;
    struct strbuf log;
};

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.options.callbacks = {.context = &f->log, .log = note_log}};
    f->s = calloc(1, sizeof(*f->s));
    assert_non_null(f->s);
    f->s->options = &f->options;
    assert_int_equal(session_create(&(struct session_options){0}, &f->s->session, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&f->s->aggregator), ERR_OK);
}

static void tear_down(struct fixture *f)
{
    recorder_attach_release(f->s);
    unrecorded_list_release(&f->s->unrecorded);
    aggregator_release(&f->s->aggregator);
    session_release(&f->s->session);
    strbuf_release(&f->log);
    free(f->s);
}

static pid_t gone_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

static struct exec_note *add_note(struct fixture *f, pid_t pid, uint32_t follow)
{
    struct exec_note *note =
        session_exec_note(f->s->session.memory, (uint32_t)f->s->unrecorded.loaded.len);
    atomic_store(&note->state, EXEC_NOTE_HEARD);
    atomic_store(&note->follow, follow);
    const struct loaded_note loaded = {.pid = pid, .note = note};
    assert_int_equal(loaded_note_vec_push(&f->s->unrecorded.loaded, loaded), ERR_OK);
    return note;
}

static void add_attached(struct fixture *f, pid_t pid, bool is_patched)
{
    struct attached_process process = {.attach = calloc(1, sizeof(*process.attach)), .pidfd = -1};
    assert_non_null(process.attach);
    process.attach->inject.target = (struct target_process){
        .pid = pid, .live_tid = pid, .mem_fd = -1, .pidfd = -1, .calls = &kernel_calls_real};
    process.attach->is_patched = is_patched;
    assert_int_equal(attached_process_vec_push(&f->s->attached, process), ERR_OK);
}

// Run rounds until no note waits.
static void run_rounds(struct fixture *f)
{
    const uint64_t end_ms = clock_monotonic_ms() + 60000;
    bool is_searching = true;
    while (is_searching && clock_monotonic_ms() < end_ms) {
        assert_int_equal(recorder_modules_round(f->s), ERR_OK);
        is_searching = f->s->copies.len > 0 || f->s->unrecorded.loaded.len > 0;
        for (size_t i = 0; i < f->s->attached.len; i++) {
            is_searching = is_searching || f->s->attached.items[i].search != NULL;
        }
    }
    assert_false(is_searching);
}

// Processes that are not recorded, the recorder itself, and one that has ended.
static void each_note_is_answered(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    const pid_t gone = gone_child();
    add_attached(&f, gone, true);
    const pid_t pids[] = {getpid(), getppid(), 0, 1, -1, gone};
    struct exec_note *notes[ARRAY_LEN(pids)];
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        notes[i] = add_note(&f, pids[i], EXEC_FOLLOW_WANTED);
    }
    struct exec_note *late = add_note(&f, getppid(), EXEC_FOLLOW_LEFT);
    run_rounds(&f);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        assert_int_equal(atomic_load(&notes[i]->follow), EXEC_FOLLOW_NO);
        assert_int_equal(atomic_load(&notes[i]->state), EXEC_NOTE_FREE);
    }
    assert_int_equal(atomic_load(&late->follow), EXEC_FOLLOW_LEFT); // it has not waited
    assert_int_equal(atomic_load(&late->state), EXEC_NOTE_FREE);
    assert_int_equal(f.s->unrecorded.loaded.len, 0);
    assert_string_equal(strbuf_text(&f.log), ""); // a process that has ended needs nothing
    assert_int_equal(recorder_modules_round(f.s), ERR_OK);
    tear_down(&f);
}

// A look for modules begins with what was said before: nothing of it stays.
static void only_patched_processes_of_the_note_are_looked_at(void **state)
{
    (void)state;
    static const struct {
        bool is_patched;
        bool is_all; // the note names no process: it is one of them
        bool is_other;
        bool is_looked_at;
    } cases[] = {
        {true, false, false, true},   {true, true, false, true},   {true, false, true, false},
        {false, false, false, false}, {false, true, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        set_up(&f);
        const pid_t gone = gone_child();
        add_attached(&f, gone, cases[i].is_patched);
        f.s->attached.items[0].attach->unpatched_count = 7;
        (void)add_note(&f, cases[i].is_all ? 0 : cases[i].is_other ? 1 : gone, EXEC_FOLLOW_WANTED);
        run_rounds(&f);
        assert_int_equal(f.s->attached.items[0].attach->unpatched_count,
                         cases[i].is_looked_at ? 0 : 7);
        tear_down(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_note_is_answered),
        cmocka_unit_test(only_patched_processes_of_the_note_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
