// SPDX-License-Identifier: MIT
// checkpoint, output_file and session_clock: the recorder's work besides reading lanes.
#include "recorder/output/checkpoint.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "recorder/session/session_clock.h"
#include "recording/read/recording_reader.h"
#include "recording/test_support/recording_bytes.h"
#include "recording/test_support/recording_text.h"
#include "recording/write/output_file.h"
#include "recording/write/recording_writer.h"

enum {
    DEADLINE_MS = 20000
};

struct fixture {
    char folder[64];
    char path[128];
    struct recording recording;
    struct checkpoint checkpoint;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/cairn-test-XXXXXX");
    if (f == NULL || mkdtemp(f->folder) == NULL) {
        return -1;
    }
    (void)snprintf(f->path, sizeof(f->path), "%s/sub/out.cairn", f->folder);
    struct err_info info = {0};
    if (recording_from_text("", &f->recording, &info) != ERR_OK) {
        print_error("%s\n", info.text);
        return -1;
    }
    *state = f;
    return checkpoint_init(&f->checkpoint, f->path, 100);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    checkpoint_release(&f->checkpoint);
    recording_release(&f->recording);
    char folder[128];
    (void)snprintf(folder, sizeof(folder), "%s/sub", f->folder);
    (void)unlink(f->path);
    (void)rmdir(folder);
    int left = rmdir(f->folder);
    free(f);
    return left; // fails if anything was left behind
}

static enum err write_recording(void *context, const char *path, struct err_info *info)
{
    const struct fixture *f = context;
    return recording_write(&f->recording, path, NULL, info);
}

static void start(struct fixture *f, uint64_t now_ms)
{
    const struct checkpoint_source source = {.context = f, .write = write_recording};
    checkpoint_start(&f->checkpoint, &source, now_ms);
}

static void make_folder(const struct fixture *f)
{
    char folder[128];
    (void)snprintf(folder, sizeof(folder), "%s/sub", f->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static enum checkpoint_event write_once(struct fixture *f, uint64_t now_ms)
{
    assert_true(checkpoint_is_due(&f->checkpoint, now_ms, 0));
    start(f, now_ms);
    assert_false(checkpoint_is_due(&f->checkpoint, now_ms + 1000000, 0)); // one at a time
    return checkpoint_finish(&f->checkpoint, DEADLINE_MS, now_ms + 1);
}

static void a_checkpoint_is_a_whole_recording(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    assert_false(checkpoint_is_due(&f->checkpoint, 99, 0));
    assert_int_equal(write_once(f, 100), CHECKPOINT_WRITTEN);
    assert_int_equal(f->checkpoint.written_count, 1);
    struct recording opened = {0};
    struct err_info info = {0};
    assert_int_equal(recording_open(f->path, &opened, NULL, &info), ERR_OK);
    recording_release(&opened);
}

static void failure_is_reported_once_and_so_is_recovery(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(write_once(f, 1000), CHECKPOINT_FAILED); // there is no folder
    assert_non_null(strstr(f->checkpoint.report->text, f->path));
    assert_int_equal(write_once(f, 2000), CHECKPOINT_NOTHING);
    make_folder(f);
    assert_int_equal(write_once(f, 3000), CHECKPOINT_RECOVERED);
    assert_int_equal(write_once(f, 4000), CHECKPOINT_WRITTEN);
    assert_int_equal(f->checkpoint.written_count, 2);
}

// Return 0 if all is as it should be.
static int fail_to_start(struct fixture *f)
{
    const struct rlimit none = {0};
    const bool is_limited = (geteuid() != 0 || setresuid(1, 1, 1) == 0) && // root has no limit
                            setrlimit(RLIMIT_NPROC, &none) == 0;
    const uint64_t number = checkpoint_request(&f->checkpoint, 1);
    start(f, 2);
    const bool is_due = checkpoint_is_due(&f->checkpoint, 2, 2);
    const enum checkpoint_event first = checkpoint_poll(&f->checkpoint, 3);
    const bool is_announced = f->checkpoint.ended_count == number;
    const bool is_due_again = checkpoint_is_due(&f->checkpoint, 4, 4);
    start(f, 200);
    const enum checkpoint_event second = checkpoint_finish(&f->checkpoint, DEADLINE_MS, 201);
    return !(is_limited && !is_due && first == CHECKPOINT_FAILED && is_announced && !is_due_again &&
             strstr(f->checkpoint.report->text, "cannot start a process") != NULL &&
             second == CHECKPOINT_NOTHING);
}

// Else a client would wait for the checkpoint until the recording ends.
static void a_writer_that_cannot_be_started_is_a_failure(void **state)
{
    struct fixture *f = *state;
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(fail_to_start(f));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_writing_costs_makes_checkpoints_rarer(void **state)
{
    (void)state;
    static const struct {
        uint64_t processor_ms;
        uint64_t took_ms;
        uint64_t interval_ms;
    } cases[] = {
        {0, 0, 100},       // as requested
        {2, 25, 100},      // just so
        {40, 40, 2000},    // 2 % of the time
        {40, 900, 3600},   // it had to wait: a quarter of the time
        {1, 60000, 10000}, // a stalled disk makes it no rarer than this
        {400, 60000, 20000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(checkpoint_interval(100, 100, cases[i].processor_ms, cases[i].took_ms),
                         cases[i].interval_ms);
    }
}

static void the_first_comes_early_and_the_others_more_rarely(void **state)
{
    (void)state;
    static const uint64_t wanted_ms[] = {1000, 2000, 4000, 8000, 10000, 10000};
    struct checkpoint checkpoint = {0};
    assert_int_equal(checkpoint_init(&checkpoint, "never written", 10000), ERR_OK);
    assert_false(checkpoint_is_due(&checkpoint, wanted_ms[0] - 1, 0));
    assert_true(checkpoint_is_due(&checkpoint, wanted_ms[0], 0));
    for (size_t i = 1; i < ARRAY_LEN(wanted_ms); i++) {
        assert_int_equal(checkpoint_interval(10000, wanted_ms[i - 1], 0, 0), wanted_ms[i]);
    }
    checkpoint_release(&checkpoint);
}

// A recorder that has much to write after a second would else take a tenth of the time for it.
static void what_writing_will_cost_delays_the_first(void **state)
{
    (void)state;
    static const struct {
        uint64_t asked_ms;
        uint64_t expected_ms;
        uint64_t due_ms;
        uint64_t interval_ms;
    } cases[] = {
        {60000, 0, 1000, 1000},    // nothing to write
        {60000, 19, 1000, 1000},   // just so
        {60000, 80, 4000, 4000},   // 2 % of the time
        {60000, 900, 10000, 45000} // a recorder that is killed early leaves a file
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct checkpoint checkpoint = {0};
        assert_int_equal(checkpoint_init(&checkpoint, "never written", cases[i].asked_ms), ERR_OK);
        checkpoint_expect(&checkpoint, cases[i].expected_ms);
        assert_false(checkpoint_is_due(&checkpoint, cases[i].due_ms - 1, 0));
        assert_true(checkpoint_is_due(&checkpoint, cases[i].due_ms, 0));
        assert_int_equal(checkpoint.interval_ms, cases[i].interval_ms);
        checkpoint_release(&checkpoint);
    }
    struct checkpoint never = {0};
    assert_int_equal(checkpoint_init(&never, "never written", 0), ERR_OK);
    checkpoint_expect(&never, 80);
    assert_false(checkpoint_is_due(&never, UINT64_MAX, 0));
    assert_int_equal(never.interval_ms, 0);
    checkpoint_release(&never);
}

// A recorder that ends leaves no writer behind, which could replace a file that another recording
// writes by then.
static void a_release_waits_for_the_writer(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    start(f, 100);
    const pid_t writer = f->checkpoint.writer;
    assert_true(writer > 0);
    checkpoint_release(&f->checkpoint);
    assert_int_equal(waitpid(writer, NULL, WNOHANG), -1); // waited for already
    assert_int_equal(access(f->path, R_OK), 0);
    assert_null(f->checkpoint.report);
    checkpoint_release(&f->checkpoint);
    struct checkpoint never_begun = {0};
    checkpoint_release(&never_begun);
}

static enum err hang(void *context, const char *path, struct err_info *info)
{
    (void)context, (void)path, (void)info;
    while (pause() < 0) {
    }
    return ERR_OK;
}

// Else the recorder would never write its own file.
static void a_writer_that_hangs_is_killed(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    const struct checkpoint_source source = {.write = hang};
    checkpoint_start(&f->checkpoint, &source, 100);
    assert_int_equal(checkpoint_finish(&f->checkpoint, 1, 101), CHECKPOINT_FAILED);
    assert_string_equal(f->checkpoint.report->text, "the checkpoint's writer was killed");
    assert_int_equal(write_once(f, 1000), CHECKPOINT_RECOVERED);
}

// A checkpoint states the interval that was known when it began.
static void slow_writing_counts_for_the_next_checkpoint(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    static const uint64_t takes_ms[] = {40, 1000000, 0, 70, 0};
    uint64_t begins_ms = 1000;
    uint64_t interval_ms = 100; // as requested: its duration was unknown
    for (size_t i = 0; i < ARRAY_LEN(takes_ms); i++) {
        assert_int_equal(f->checkpoint.interval_ms, interval_ms);
        assert_true(checkpoint_is_due(&f->checkpoint, begins_ms, 0));
        start(f, begins_ms);
        assert_false(checkpoint_is_due(&f->checkpoint, UINT64_MAX, 0)); // one at a time
        const uint64_t ended_ms = begins_ms + takes_ms[i];
        assert_int_equal(checkpoint_finish(&f->checkpoint, DEADLINE_MS, ended_ms),
                         CHECKPOINT_WRITTEN);
        const uint64_t due_ms = begins_ms + interval_ms;
        assert_int_equal(checkpoint_is_due(&f->checkpoint, ended_ms, 0), ended_ms >= due_ms);
        assert_true(ended_ms >= due_ms || !checkpoint_is_due(&f->checkpoint, due_ms - 1, 0));
        begins_ms = ended_ms > due_ms ? ended_ms : due_ms;
        interval_ms =
            checkpoint_interval(100, interval_ms, f->checkpoint.processor_ms, takes_ms[i]);
    }
}

static void a_request_waits_until_what_came_before_is_read(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    f->checkpoint.asked_ms = 0;
    assert_int_equal(checkpoint_request(&f->checkpoint, 70), 1);
    assert_false(checkpoint_is_due(&f->checkpoint, 70, 55));
    assert_false(checkpoint_is_due(&f->checkpoint, 72, 70));
    assert_true(checkpoint_is_due(&f->checkpoint, 73, 71));
    start(f, 73);
    assert_int_equal(checkpoint_finish(&f->checkpoint, DEADLINE_MS, 80), CHECKPOINT_WRITTEN);
    assert_false(checkpoint_is_due(&f->checkpoint, UINT64_MAX, UINT64_MAX)); // it was one request
}

static void an_interval_of_0_means_never(void **state)
{
    struct fixture *f = *state;
    f->checkpoint.asked_ms = 0;
    assert_false(checkpoint_is_due(&f->checkpoint, UINT64_MAX, 0));
}

static void an_output_that_cannot_be_is_refused_before(void **state)
{
    struct fixture *f = *state;
    struct err_info info = {0};
    assert_int_equal(output_file_probe(f->path, &info), ERR_OK); // makes the folder
    assert_int_equal(access(f->path, F_OK), -1);                 // and nothing else
    static const struct {
        const char *path;
        enum err want;
    } cases[] = {
        {"/", ERR_INVALID},
        {"/tmp", ERR_INVALID},
        {"/dev/null", ERR_INVALID},
        {"/proc/1/out.cairn", ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum err got = output_file_probe(cases[i].path, &info);
        print_message("%s: %s\n", cases[i].path, info.text);
        assert_true(got == cases[i].want || (cases[i].want != ERR_INVALID && got != ERR_OK));
        assert_non_null(strstr(info.text, cases[i].path));
    }
}

static void the_clock_runs_by_itself(void **state)
{
    (void)state;
    struct session session;
    struct session_clock clock;
    assert_int_equal(session_create(&(struct session_options){.max_frames = 8}, &session, NULL), 0);
    int program[2]; // an end of file, like a pidfd's
    assert_int_equal(pipe(program), 0);
    assert_int_equal(session_clock_start(&clock, &session, program[0], 1, NULL), ERR_OK);
    for (int waited_ms = 0; session_clock_now(&clock) < 20; waited_ms++) {
        assert_true(waited_ms < DEADLINE_MS);
        (void)poll(NULL, 0, 1);
    }
    // The program's writes there do not count, and do not last.
    atomic_store(&session.header->clock_ms, UINT64_MAX);
    for (int waited_ms = 0; atomic_load(&session.header->clock_ms) == UINT64_MAX; waited_ms++) {
        assert_true(waited_ms < DEADLINE_MS);
        (void)poll(NULL, 0, 1);
    }
    assert_true(session_clock_now(&clock) < DEADLINE_MS);
    assert_int_equal(atomic_load(&session.header->recorder_wake), 0);
    (void)close(program[1]);
    for (int waited_ms = 0; atomic_load(&session.header->recorder_wake) == 0; waited_ms++) {
        assert_true(waited_ms < DEADLINE_MS);
        (void)poll(NULL, 0, 1);
    }
    session_clock_stop(&clock);
    session_clock_stop(&clock);
    assert_int_equal(atomic_load(&session.header->recorder_wake), 1); // not again and again
    (void)close(program[0]);
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_checkpoint_is_a_whole_recording, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failure_is_reported_once_and_so_is_recovery, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_writer_that_cannot_be_started_is_a_failure, set_up,
                                        tear_down),
        cmocka_unit_test(what_writing_costs_makes_checkpoints_rarer),
        cmocka_unit_test(the_first_comes_early_and_the_others_more_rarely),
        cmocka_unit_test(what_writing_will_cost_delays_the_first),
        cmocka_unit_test_setup_teardown(a_release_waits_for_the_writer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_writer_that_hangs_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_writing_counts_for_the_next_checkpoint, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_request_waits_until_what_came_before_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_interval_of_0_means_never, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_output_that_cannot_be_is_refused_before, set_up,
                                        tear_down),
        cmocka_unit_test(the_clock_runs_by_itself),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
