// SPDX-License-Identifier: MIT
// recorder_attach: what the user and the recording hear of attached processes, when the last of
// them has ended, and processes that cannot be recorded.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "recorder/aside/aside.h"
#include "recorder/ingest/test_recorder.h"
#include "recorder/recorder_state.h"

enum {
    NO_PROCESS = INT32_MAX, // more than any pid
    DEADLINE_MS = 60000,
};

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
    f->s->session.memfd = -1;
    assert_int_equal(aggregator_init(&f->s->aggregator), ERR_OK);
}

static void tear_down(struct fixture *f)
{
    recorder_attach_release(f->s);
    awaited_process_vec_release(&f->s->drain.awaited);
    preflight_release(&f->s->preflight);
    aggregator_release(&f->s->aggregator);
    session_release(&f->s->session);
    strbuf_release(&f->log);
    free(f->s);
}

// Return what was logged since the last time.
static const char *take_log(struct fixture *f)
{
    static char taken[4096];
    (void)snprintf(taken, sizeof(taken), "%s", strbuf_text(&f->log));
    strbuf_clear(&f->log);
    return taken;
}

static struct attached_process *add_process(struct fixture *f, int pid, int pidfd)
{
    struct attached_process process = {.attach = calloc(1, sizeof(*process.attach)),
                                       .pidfd = pidfd};
    assert_non_null(process.attach);
    process.attach->inject.target.pid = pid;
    assert_int_equal(attached_process_vec_push(&f->s->attached, process), ERR_OK);
    return f->s->attached.items + f->s->attached.len - 1;
}

// A program that runs again and again has the same functions each time.
static void what_cannot_be_patched_is_told_once(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct attach attach = {0};
    assert_int_equal(recorder_attach_log(f.s, &attach), ERR_OK);
    assert_string_equal(take_log(&f), "");
    strbuf_append_text(&attach.hidden, "one is hidden\nthe last is hidden");
    attach.unpatched_count = 2;
    strbuf_append_text(&attach.unpatched, "free of 'a' is too short, malloc of 'a' is busy");
    assert_int_equal(recorder_attach_log(f.s, &attach), ERR_OK);
    assert_string_equal(take_log(&f),
                        "warning: one is hidden\n"
                        "warning: the last is hidden\n"
                        "warning: calls of functions that cannot be patched are not "
                        "recorded: free of 'a' is too short, malloc of 'a' is busy\n");
    strbuf_clear(&attach.hidden);
    assert_int_equal(recorder_attach_log(f.s, &attach), ERR_OK);
    assert_string_equal(take_log(&f), "");
    assert_int_equal(f.s->unpatched_count, 4);
    strbuf_clear(&attach.unpatched);
    strbuf_append_text(&attach.unpatched, "free of 'b' is too short");
    attach.unpatched_count = 1;
    assert_int_equal(recorder_attach_log(f.s, &attach), ERR_OK);
    assert_string_equal(take_log(&f), "warning: calls of functions that cannot be patched are not "
                                      "recorded: free of 'b' is too short\n");
    assert_int_equal(f.s->unpatched_count, 5);
    assert_string_equal(strbuf_text(&f.s->unpatched),
                        "calls of functions that cannot be patched: free of 'a' is too short, "
                        "malloc of 'a' is busy, free of 'b' is too short");
    attach_release(&attach);
    tear_down(&f);
}

static void what_cannot_be_read_is_told_once(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct attach attach = {0};
    strbuf_append_text(&attach.unread, "/lib/a.so\n/lib/b.so");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(recorder_attach_note(f.s, &attach), ERR_OK);
    }
    assert_string_equal(take_log(&f),
                        "warning: cannot read '/lib/a.so': stacks may end there, and an allocator "
                        "in it is not recorded\n"
                        "warning: cannot read '/lib/b.so': stacks may end there, and an allocator "
                        "in it is not recorded\n");
    assert_int_equal(f.s->unread_count, 2);
    assert_string_equal(strbuf_text(&f.s->unread),
                        "parts of processes that could not be read; stacks may end there, and "
                        "allocators in them are not recorded: '/lib/a.so', '/lib/b.so'");
    assert_int_equal(f.s->hooked.len, 0);
    attach_release(&attach);
    tear_down(&f);
}

enum {
    BUSY_MS = 300, // what a search of some milliseconds takes on a busy machine
};

static void search_slowly(void *context)
{
    (void)context;
    clock_sleep_ns(BUSY_MS * NS_PER_MS);
}

static void release_nothing(void *context)
{
    (void)context;
}

// At once after it was attached to, its libraries are still searched.
static void a_process_is_let_go_when_its_search_is_over(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    const struct aside_work work = {
        .run = search_slowly, .release = release_nothing, .tell = release_nothing};
    struct attach_step *step = malloc(sizeof(*step));
    assert_non_null(step);
    *step = (struct attach_step){.pid = NO_PROCESS,
                                 .session_fd = -1,
                                 .aside = aside_start(&work),
                                 .begun_ms = clock_monotonic_ms()};
    assert_non_null(step->aside);
    add_process(&f, NO_PROCESS, -1)->search = step;
    recorder_attach_end(f.s);
    assert_string_equal(take_log(&f), "");
    tear_down(&f);
}

static size_t add_text(struct attach *attach, const char *text)
{
    const size_t at = attach->hook_texts.len;
    strbuf_append_text(&attach->hook_texts, text);
    strbuf_append_char(&attach->hook_texts, '\0');
    return at;
}

static void hooks_are_noted_and_told_to_those_who_ask(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct attach attach = {.inject.target.pid = 77};
    static const char *const paths[] = {"/lib/a.so", "/lib/b.so"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const size_t module = add_text(&attach, paths[i]);
        const struct attach_hook hook = {
            .module = module, .name = add_text(&attach, "malloc"), .allocator = "", .reason = ""};
        assert_int_equal(attach_hook_vec_push(&attach.hooks, hook), ERR_OK);
    }
    assert_int_equal(recorder_attach_note(f.s, &attach), ERR_OK);
    assert_int_equal(f.s->hooked.len, 2);
    assert_string_equal(take_log(&f), "");
    f.options.tells_stops = true;
    assert_int_equal(recorder_attach_note(f.s, &attach), ERR_OK);
    assert_string_equal(take_log(&f), "hooked in process 77: malloc of '/lib/a.so'\n"
                                      "hooked in process 77: malloc of '/lib/b.so'\n");
    attach_release(&attach);
    tear_down(&f);
}

static void the_stop_of_threads_is_told_to_those_who_ask(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct attach attach = {.inject = {.target.pid = 77,
                                       .stop = {.held_ns = 4560000,
                                                .stop_ns = 1230000,
                                                .work_ns = 2340000,
                                                .threads = 8,
                                                .attempts = 1}}};
    recorder_attach_log_stop(f.s, &attach, 9);
    assert_string_equal(take_log(&f), "");
    f.options.tells_stops = true;
    recorder_attach_log_stop(f.s, &attach, 9);
    assert_string_equal(take_log(&f),
                        "process 77 was stopped for 4.56 ms (threads: 8; 1.23 ms until all had "
                        "stopped; 2.34 ms for 9 functions; attempt 1; ordinary priority)\n");
    attach.inject.stop.is_realtime = true;
    attach.inject.stop.attempts = 3;
    recorder_attach_log_stop(f.s, &attach, 0);
    assert_string_equal(take_log(&f),
                        "process 77 was stopped for 4.56 ms (threads: 8; 1.23 ms until all had "
                        "stopped; 2.34 ms for 0 functions; attempt 3; real-time priority)\n");
    attach.inject.stop.attempts = 0;
    recorder_attach_log_stop(f.s, &attach, 9);
    assert_string_equal(take_log(&f), "");
    tear_down(&f);
}

// A followed program runs on without keeping the recording.
static void the_last_process_ends_the_recording(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_true(recorder_attach_is_over(f.s));
    pid_t children[3];
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        children[i] = sleeping_child();
        const int pidfd = (int)syscall(SYS_pidfd_open, children[i], 0);
        assert_true(pidfd >= 0);
        add_process(&f, children[i], pidfd)->is_followed = i == 2;
    }
    assert_false(recorder_attach_is_over(f.s));
    end_child(children[0]);
    assert_false(recorder_attach_is_over(f.s));
    assert_true(f.s->attached.items[0].has_ended);
    assert_false(f.s->attached.items[1].has_ended);
    f.s->attached.items[1].has_ended = true; // it could not be recorded
    assert_true(recorder_attach_is_over(f.s));
    assert_false(f.s->attached.items[2].has_ended);
    f.s->attached.items[2].is_followed = false;
    assert_false(recorder_attach_is_over(f.s));
    end_child(children[1]);
    end_child(children[2]);
    assert_true(recorder_attach_is_over(f.s));
    tear_down(&f);
}

static void a_process_is_described_before_it_joins(void **state)
{
    (void)state;
    static const struct {
        bool is_fresh;
        bool is_program;
        uint32_t flags;
    } cases[] = {
        {false, false, REC_PROCESS_ATTACHED},
        {false, true, REC_PROCESS_ATTACHED | REC_PROCESS_MAIN},
        {true, false, 0},
        {true, true, REC_PROCESS_MAIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        set_up(&f);
        const int pid = getpid();
        f.s->program.pid = cases[i].is_program ? pid : pid + 1;
        struct attach attach = {.inject.target.pid = pid, .is_fresh = cases[i].is_fresh};
        strbuf_append_text(&attach.executable, "/bin/of a test");
        strbuf_append_text(&attach.allocator, "/lib/of a test.so");
        assert_int_equal(recorder_attach_describe(f.s, &attach, 55), ERR_OK);
        assert_int_equal(f.s->drain.awaited.len, 1);
        const struct rec_process *record = &f.s->drain.awaited.items[0].process->record;
        assert_int_equal(record->pid, pid);
        assert_int_equal(record->parent_pid, cases[i].is_fresh ? getppid() : 0);
        assert_int_equal(record->flags & (REC_PROCESS_ATTACHED | REC_PROCESS_MAIN), cases[i].flags);
        assert_int_equal(record->start_ms, 55);
        assert_int_equal(record->exit_status, -1);
        const struct string_table *strings = &f.s->aggregator.strings;
        assert_string_equal(string_table_get(strings, record->executable), "/bin/of a test");
        assert_string_equal(string_table_get(strings, record->allocator), "/lib/of a test.so");
        attach_release(&attach);
        tear_down(&f);
    }
}

// Processes of the user's choice must be recorded; those that were found by name are omitted, as
// long as one is left.
static void processes_that_are_gone_are_refused_or_omitted(void **state)
{
    (void)state;
    static const uint32_t gone[] = {NO_PROCESS, NO_PROCESS - 1};
    static const struct {
        size_t count;
        bool is_by_name;
        const char *log;
        const char *error;
    } cases[] = {
        {1, false, "", "there is no process 2147483647"},
        {2, false, "", "there is no process 2147483647"},
        {1, true, "", "there is no process 2147483647"},
        {2, true, "warning: there is no process 2147483647; it is omitted\n",
         "there is no process 2147483646"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        set_up(&f);
        f.options.attach_pids = gone;
        f.options.attach_count = cases[i].count;
        f.options.attaches_by_name = cases[i].is_by_name;
        struct err_info info = {0};
        assert_int_equal(recorder_attach_open(f.s, &info), ERR_NOT_FOUND);
        assert_string_equal(take_log(&f), cases[i].log);
        assert_string_equal(info.text, cases[i].error);
        assert_true(f.s->is_attached);
        assert_int_equal(f.s->attached.len, 0);
        tear_down(&f);
    }
}

// It has ended between two steps.
static void a_process_that_ends_meanwhile_is_refused_or_omitted(void **state)
{
    (void)state;
    for (int is_by_name = 0; is_by_name < 2; is_by_name++) {
        struct fixture f;
        set_up(&f);
        f.options.attaches_by_name = is_by_name;
        assert_int_equal(recorder_join_open(f.s, NO_PROCESS, false), ERR_OK);
        assert_true(attach_step_await(f.s->joining.items[0].step, DEADLINE_MS));
        struct err_info info = {0};
        assert_int_equal(recorder_attach_begin(f.s, &info), is_by_name ? ERR_OK : ERR_NOT_FOUND);
        assert_string_equal(info.text, is_by_name ? "" : "process 2147483647 has ended");
        assert_string_equal(take_log(&f),
                            is_by_name ? "warning: there is no process 2147483647; it is omitted\n"
                                       : "");
        recorder_attach_end(f.s); // no function was changed
        assert_string_equal(take_log(&f), "");
        tear_down(&f);
    }
}

// Ask as the follower does, until there is a result.
static void ask_until_known(struct fixture *f, int pid)
{
    enum join_result result = JOIN_LATER;
    struct err_info info = {0};
    const uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
    while (result != JOIN_KNOWN && clock_monotonic_ms() < end_ms) {
        assert_int_equal(recorder_attach_join(f->s, pid, &result, &info), ERR_OK);
        assert_int_equal(recorder_join_round(f->s, 1), ERR_OK);
    }
    assert_int_equal(result, JOIN_KNOWN);
    assert_int_equal(f->s->joining.len, 0);
}

// The children of recorded processes map the session, and so are recorded; the recorder maps it,
// too, and its other children are not.
static void what_recorded_processes_start_is_known(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_int_equal(session_create(&(struct session_options){0}, &f.s->session, NULL), ERR_OK);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork(); // a copy of us: it maps the session
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        const pid_t inner = fork();
        if (inner == 0) {
            (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
            _exit(1);
        }
        (void)!write(ready[1], &inner, sizeof(inner));
        (void)pause();
        _exit(0);
    }
    pid_t inner;
    assert_int_equal(read(ready[0], &inner, sizeof(inner)), sizeof(inner));
    const pid_t known[] = {child, inner};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        ask_until_known(&f, known[i]);
        assert_string_equal(take_log(&f), "");
    }
    const int strangers[] = {NO_PROCESS, getpid()};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        ask_until_known(&f, strangers[i]);
        assert_non_null(strstr(take_log(&f), "; it is omitted\n"));
    }
    assert_int_equal(f.s->attached.len, 0);
    assert_int_equal(kill(inner, SIGKILL), 0);
    end_child(child);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_patched_is_told_once),
        cmocka_unit_test(a_process_is_let_go_when_its_search_is_over),
        cmocka_unit_test(what_cannot_be_read_is_told_once),
        cmocka_unit_test(hooks_are_noted_and_told_to_those_who_ask),
        cmocka_unit_test(the_stop_of_threads_is_told_to_those_who_ask),
        cmocka_unit_test(the_last_process_ends_the_recording),
        cmocka_unit_test(a_process_is_described_before_it_joins),
        cmocka_unit_test(processes_that_are_gone_are_refused_or_omitted),
        cmocka_unit_test(a_process_that_ends_meanwhile_is_refused_or_omitted),
        cmocka_unit_test(what_recorded_processes_start_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
