// SPDX-License-Identifier: MIT
// recorder_control: the recorder's answers to each request of `cairn ctl`, as a client of its
// socket reads them.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/aggregator_process.h"
#include "base/compiler.h"
#include "recorder/control/test_network.h"
#include "recorder/processes/attach_step.h"
#include "recorder/recorder_state.h"

#define OUTPUT "/tmp/of a test.cairn"

enum {
    PROGRAM_PID = 4001,
    CHOSEN_PID = 4002,
    JOINED_PID = 4003,
    STRANGE_PID = 4004,
    FIRST_PID = 4005,
    NOW_MS = 1002003,
};

struct fixture {
    struct recorder_state *s;
    struct recorder_options options;
    struct session_header header;
    struct attach chosen;
    struct strbuf log;
    enum err reload_result; // of the server beside the recorder
    bool has_reloaded;
    bool is_reload_refused;
};

static void note_log(void *context, const char *sentence)
{
    struct fixture *f = context;
    strbuf_append_text(&f->log, sentence);
    strbuf_append_char(&f->log, '\n');
}

static enum err begin_reload(void *context, struct err_info *info)
{
    const struct fixture *f = context;
    return f->is_reload_refused ? err_set(info, ERR_INVALID, "it reads them already") : ERR_OK;
}

static bool end_reload(void *context, struct err_info *result)
{
    const struct fixture *f = context;
    if (f->has_reloaded && f->reload_result != ERR_OK) {
        (void)err_set(result, f->reload_result, "a certificate is missing");
    }
    return f->has_reloaded;
}

static void set_up(struct fixture *f)
{
    *f = (struct fixture){.options.callbacks = {.context = f, .log = note_log}};
    struct recorder_state *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    f->s = s;
    s->options = &f->options;
    s->socket = (struct control_socket)CONTROL_SOCKET_INIT;
    s->session.header = &f->header;
    s->program.pid = PROGRAM_PID;
    atomic_store(&s->clock.now_ms, NOW_MS);
    assert_int_equal(control_socket_open(&s->socket, NULL), ERR_OK);
    assert_int_equal(aggregator_init(&s->aggregator), ERR_OK);
    assert_int_equal(run_control_init(&s->control, &f->options.run, &f->header, &s->aggregator),
                     ERR_OK);
    strbuf_append_text(&s->output_absolute, OUTPUT);
    assert_int_equal(checkpoint_init(&s->checkpoint, OUTPUT, 1000), ERR_OK);
}

static void tear_down(struct fixture *f)
{
    struct recorder_state *s = f->s;
    control_socket_close(&s->socket);
    checkpoint_release(&s->checkpoint);
    aggregator_release(&s->aggregator);
    attached_process_vec_release(&s->attached);
    strbuf_release(&s->output_absolute);
    strbuf_release(&s->rotation.kept);
    strbuf_release(&f->log);
    free(s);
}

static int send_request(const struct fixture *f, const char *request)
{
    struct sockaddr_un address;
    socklen_t bytes = sizeof(address);
    assert_int_equal(getsockname(f->s->socket.listener, (struct sockaddr *)&address, &bytes), 0);
    const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, bytes), 0);
    assert_int_equal(send(client, request, strlen(request), 0), strlen(request));
    recorder_control_answer(f->s);
    return client;
}

// Read what has arrived: "" if there is nothing yet.
static const char *reply_of(int client)
{
    static char reply[CONTROL_REPLY_BYTES_MAX + 1];
    const ssize_t len = recv(client, reply, sizeof(reply) - 1, MSG_DONTWAIT);
    reply[len > 0 ? len : 0] = '\0';
    return reply;
}

static const char *ask(const struct fixture *f, const char *request)
{
    const int client = send_request(f, request);
    const char *reply = reply_of(client);
    assert_int_equal(close(client), 0);
    return reply;
}

// Ask while the recorder reads a process: the answer comes afterwards.
static const char *ask_meanwhile(const struct fixture *f, const char *request)
{
    f->s->has_work_aside = true;
    const int client = send_request(f, request);
    char early;
    assert_int_equal(recv(client, &early, 1, MSG_DONTWAIT), -1);
    f->s->has_work_aside = false;
    recorder_control_answer(f->s);
    const char *reply = reply_of(client);
    assert_int_equal(close(client), 0);
    return reply;
}

static void each_name_of_a_recording_is_known(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct recorder_state *s = f.s;
    f.chosen.inject.target.pid = CHOSEN_PID;
    struct aggregator_process joined = {0};
    // The first and the last slot are in use, and their neighbours are not.
    s->drain.slot_count = 3;
    s->drain.processes[0] = (struct drain_process){.aggregator = &joined, .pid = FIRST_PID};
    s->drain.processes[1].pid = STRANGE_PID;
    s->drain.processes[2] = (struct drain_process){.aggregator = &joined, .pid = JOINED_PID};
    s->drain.processes[3] = (struct drain_process){.aggregator = &joined, .pid = STRANGE_PID};
    char own[32];
    (void)snprintf(own, sizeof(own), "is %d", (int)getpid());
    const struct {
        const char *request;
        const char *reply;
    } cases[] = {
        {own, "+"},          {"is 4001", "+"},        {"is 4002", "-"}, // not attached to yet
        {"is 4003", "+"},    {"is 4004", "-"},        {"is 4005", "+"},    {"is 0", "-"},
        {"is " OUTPUT, "+"}, {"is " OUTPUT "2", "-"}, {"is /tmp/of", "-"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].request);
        assert_string_equal(ask(&f, cases[i].request), cases[i].reply);
    }
    const struct attached_process chosen = {.attach = &f.chosen, .pidfd = -1};
    assert_int_equal(attached_process_vec_push(&s->attached, chosen), ERR_OK);
    assert_string_equal(ask(&f, "is 4002"), "+");
    // Other processes may have these pids now.
    s->has_ended = true;
    s->attached.items[0].has_ended = true;
    s->drain.processes[0].is_dead = true;
    static const char *const ended[] = {"is 4001", "is 4002", "is 4005"};
    for (size_t i = 0; i < ARRAY_LEN(ended); i++) {
        print_message("%s\n", ended[i]);
        assert_string_equal(ask(&f, ended[i]), "-");
    }
    s->has_ended = false;
    s->is_attached = true; // to others than its first process, which has ended
    assert_string_equal(ask(&f, "is 4001"), "-");
    assert_string_equal(ask(&f, "is 4003"), "+");
    tear_down(&f);
}

// A program that has an answer may rely on it that the next events are recorded.
static void the_answer_comes_when_a_gap_is_over(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    atomic_store(&f.header.state, SESSION_ABANDONED);
    const int client = send_request(&f, "is 4001");
    assert_string_equal(reply_of(client), "");
    atomic_store(&f.header.state, SESSION_RUNNING);
    recorder_control_answer(f.s);
    assert_string_equal(reply_of(client), "+");
    assert_int_equal(close(client), 0);
    tear_down(&f);
}

static void recording_stops_and_starts(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    static const char *const talk[][2] = {
        {"start", "-recording has already started"},
        {"stop", "+stopped"},
        {"stop", "-recording is already stopped"},
        {"start", "+recording"},
        {"mark here it is", "+marked at 1002.003 s"},
        {"mark", "-a mark needs a text of at most 1024 bytes"},
        {"detach", "-cairn started this program; 'cairn ctl FILE stop' stops recording"},
        {"snapshot", "-there is no process whose memory map can be read"},
        {"reload", "-there is nothing to reload"},
        {"reloaded", "+"},
        {"attach 4005", "+later"},
        {"bake a cake", "-unknown request 'bake'"},
        {"", ""},
        {"statuses", "-unknown request 'statuses'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(talk); i++) {
        print_message("%s\n", talk[i][0]);
        assert_string_equal(ask(&f, talk[i][0]), talk[i][1]);
    }
    assert_false(f.s->is_stopped);
    assert_int_equal(f.s->aggregator.marks.marks.len, 3); // stop, start, ours
    assert_int_equal(f.s->aggregator.marks.marks.items[2].time_ms, NOW_MS);
    assert_string_equal(strbuf_text(&f.log), "");
    tear_down(&f);
}

// This process is recorded, once or twice.
static void a_snapshot_is_of_all_recorded_processes(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct recorder_state *s = f.s;
    assert_int_equal(session_create(&(struct session_options){0}, &s->session, NULL), ERR_OK);
    for (uint32_t slot = 0; slot < 2; slot++) {
        const struct rec_process record = {.pid = (uint32_t)getpid()};
        struct aggregator_process *process = NULL;
        assert_int_equal(aggregator_process_begin(&s->aggregator, &record, &process), ERR_OK);
        s->drain.processes[slot] = (struct drain_process){.aggregator = process, .pid = getpid()};
        s->drain.slot_count = slot + 1;
        CLEANUP(strbuf_release) struct strbuf expected = {0};
        atomic_fetch_add(&s->clock.now_ms, 1);
        const char *reply = ask_meanwhile(&f, "snapshot");
        assert_int_equal(s->memory_snapshots.last.memory_snapshots.len, slot + 1);
        assert_true(s->memory_snapshots.last.rss_bytes > 0);
        strbuf_printf(&expected, "+took a snapshot of %s at 1002.00%u s: %" PRIu64 " KiB",
                      slot == 0 ? "1 process" : "2 processes", (unsigned)slot + 4,
                      s->memory_snapshots.last.rss_bytes >> 10);
        assert_string_equal(reply, strbuf_text(&expected));
    }
    memory_snapshots_release(&s->memory_snapshots);
    session_release(&s->session);
    tear_down(&f);
}

// What `--follow` sends. The next recorder takes what comes after the end.
static void an_attached_recorder_takes_processes_until_it_ends(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.s->is_attached = true;
    f.s->session.memfd = -1;
    assert_string_equal(ask(&f, "attach 0"), "-'0' is not a process");
    assert_string_equal(ask(&f, "attach 2147483648"), "-'2147483648' is not a process");
    assert_string_equal(ask(&f, "attach ten"), "-'ten' is not a process");
    assert_string_equal(strbuf_text(&f.log),
                        "warning: '0' is not a process; it is omitted\n"
                        "warning: '2147483648' is not a process; it is omitted\n"
                        "warning: 'ten' is not a process; it is omitted\n");
    // The highest number that a process could have, and none has.
    assert_string_equal(ask(&f, "attach 2147483647"), "+later");
    assert_null(strstr(strbuf_text(&f.log), "'2147483647' is not a process"));
    f.s->has_ended = true;
    assert_string_equal(ask(&f, "attach 0"), "+later");
    f.s->has_ended = false;
    assert_string_equal(ask(&f, "detach"), "+detaching");
    assert_true(f.s->is_stopped);
    assert_string_equal(ask(&f, "attach 0"), "+later");
    f.s->is_stopped = false;
    f.s->is_attached = false;
    assert_string_equal(ask(&f, "attach 0"), "+later");
    for (size_t i = 0; i < f.s->joining.len; i++) { // what is left to its thread is not freed
        assert_true(attach_step_await(f.s->joining.items[i].step, 120000));
    }
    recorder_attach_release(f.s);
    tear_down(&f);
}

static void a_reload_and_its_result_are_told(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.options.callbacks.reload = begin_reload;
    f.options.callbacks.has_reloaded = end_reload;
    f.is_reload_refused = true;
    assert_string_equal(ask(&f, "reload"), "-it reads them already");
    f.is_reload_refused = false;
    assert_string_equal(ask(&f, "reload"), "+");
    assert_string_equal(ask(&f, "reloaded"), "+");
    f.has_reloaded = true;
    assert_string_equal(ask(&f, "reloaded"), "+reloaded");
    f.reload_result = ERR_IO;
    assert_string_equal(ask(&f, "reloaded"), "-a certificate is missing");
    tear_down(&f);
}

static void the_status_has_the_present_figures(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct recorder_state *s = f.s;
    s->drain.process_count = 2;
    s->aggregator.totals.sums.allocations = 30;
    s->aggregator.totals.sums.live_bytes = 400;
    s->aggregator.totals.peak_bytes = 5000;
    s->checkpoint.written_count = 6;
    assert_string_equal(ask(&f, "mark one"), "+marked at 1002.003 s");
    static const struct {
        uint32_t recording;
        const char *word;
    } cases[] = {
        {SESSION_RECORD_ALL, "recording"},        {SESSION_RECORD_FREES, "stopped"},
        {SESSION_RECORD_NOTHING, "not started"},  {SESSION_RECORD_SAMPLE, "recording"},
        {SESSION_RECORD_SAMPLE_FREES, "stopped"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        s->control.recording = cases[i].recording;
        CLEANUP(strbuf_release) struct strbuf expected = {0};
        strbuf_printf(&expected,
                      "+state\t%s\nfile\t" OUTPUT "\nrecorder_pid\t%d\nprogram_pid\t4001\n"
                      "processes\t2\nruntime_ms\t1002003\nallocations\t30\nlive_bytes\t400\n"
                      "peak_bytes\t5000\ncheckpoints\t6\nmarks\t1\n",
                      cases[i].word, (int)getpid());
        assert_string_equal(ask(&f, "status"), strbuf_text(&expected));
    }
    tear_down(&f);
}

static void hear_answer(const struct fixture *f,
                        const char *request,
                        bool is_for_rotation,
                        const char *expected)
{
    const int client = send_request(f, request);
    assert_string_equal(reply_of(client), ""); // it comes with the file
    f->s->checkpoint.ended_count = f->s->checkpoint.begun_count + 1;
    recorder_control_reply_written(f->s, is_for_rotation);
    assert_string_equal(reply_of(client), expected);
    assert_int_equal(close(client), 0);
}

static void a_checkpoint_is_answered_when_it_is_written(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct recorder_state *s = f.s;
    strbuf_append_text(&s->rotation.kept, "/tmp/kept.cairn");
    hear_answer(&f, "checkpoint", false, "+written to " OUTPUT);
    assert_false(rotation_is_awaited(&s->rotation, UINT64_MAX));
    hear_answer(&f, "rotate", true, "+kept as /tmp/kept.cairn");
    assert_true(rotation_is_awaited(&s->rotation, s->checkpoint.ended_count));
    s->rotation.has_failed = true;
    hear_answer(&f, "rotate", true, "-cannot keep the recording as /tmp/kept.cairn");
    hear_answer(&f, "checkpoint", false, "+written to " OUTPUT);
    s->checkpoint.has_failed = true;
    (void)err_set(s->checkpoint.report, ERR_IO, "the disk is full");
    hear_answer(&f, "checkpoint", false, "-the disk is full");
    hear_answer(&f, "rotate", true, "-the disk is full");
    // A later number is not announced yet.
    const int client = send_request(&f, "checkpoint");
    s->checkpoint.ended_count = 0;
    recorder_control_reply_written(s, false);
    assert_string_equal(reply_of(client), "");
    assert_int_equal(close(client), 0);
    tear_down(&f);
}

// End the checkpoint that is written, and keep it as the loop does.
static void end_checkpoint(struct recorder_state *s, const char *kept)
{
    s->checkpoint.ended_count = s->checkpoint.begun_count;
    const bool is_awaited = rotation_is_awaited(&s->rotation, s->checkpoint.ended_count);
    assert_true(is_awaited);
    rotation_settle(&s->rotation, s->checkpoint.ended_count);
    strbuf_clear(&s->rotation.kept);
    strbuf_append_text(&s->rotation.kept, kept);
    recorder_control_reply_written(s, is_awaited);
}

static void a_second_rotation_does_not_take_the_first_one_s_place(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    struct recorder_state *s = f.s;
    const int first = send_request(&f, "rotate");
    s->checkpoint.begun_count = 1; // and is written
    const int second = send_request(&f, "rotate");
    end_checkpoint(s, "/tmp/kept.1.cairn");
    assert_string_equal(reply_of(first), "+kept as /tmp/kept.1.cairn");
    assert_string_equal(reply_of(second), "");
    s->checkpoint.begun_count = 2;
    end_checkpoint(s, "/tmp/kept.2.cairn");
    assert_string_equal(reply_of(second), "+kept as /tmp/kept.2.cairn");
    assert_false(rotation_is_awaited(&s->rotation, UINT64_MAX));
    assert_int_equal(close(first), 0);
    assert_int_equal(close(second), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_of_a_recording_is_known),
        cmocka_unit_test(the_answer_comes_when_a_gap_is_over),
        cmocka_unit_test(recording_stops_and_starts),
        cmocka_unit_test(a_snapshot_is_of_all_recorded_processes),
        cmocka_unit_test(an_attached_recorder_takes_processes_until_it_ends),
        cmocka_unit_test(a_reload_and_its_result_are_told),
        cmocka_unit_test(the_status_has_the_present_figures),
        cmocka_unit_test(a_checkpoint_is_answered_when_it_is_written),
        cmocka_unit_test(a_second_rotation_does_not_take_the_first_one_s_place),
    };
    return cmocka_run_group_tests(tests, leave_network, NULL);
}
