// SPDX-License-Identifier: MIT
// control_client: finds the recorder of a recording among several, and says why there is no answer.
#include "recorder/control/control_client.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "recorder/control/control_socket.h"
#include "recorder/control/test_network.h"

// Together longer than the client waits for a recorder that is stopped all the time.
#define BUSY_MS    4000u
#define STOPPED_MS 1500u

// A process that answers as a recorder does.
struct recorder {
    const char *recording;
    bool is_gone_when_asked; // it ends at the first request but "is"
    bool is_gone_when_found; // it ends after "is"
    bool is_no_recorder;     // it says yes to all, in other words
    bool is_named;           // it has taken its second name
    bool is_not_to_be_asked; // it ends at "is"
    bool is_busy;            // it takes long before its first answer, and is stopped meanwhile
    bool is_found;
    uint32_t displaced;   // it gives away the places of so many clients that ask after "is"
    bool displaces_first; // or that ask "is"
    pid_t pid;
};

static uint64_t answer(void *context, const char *word, const char *text, struct strbuf *reply)
{
    struct recorder *recorder = context;
    char pid[16];
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (recorder->is_no_recorder) {
        strbuf_append_text(reply, "+yes");
        return 0;
    }
    if (strcmp(word, "is") == 0) {
        if (recorder->is_not_to_be_asked) {
            _exit(0);
        }
        const bool is_it = strcmp(text, recorder->recording) == 0 || strcmp(text, pid) == 0;
        strbuf_append_char(reply, is_it ? '+' : '-');
        recorder->is_found = is_it;
        return 0;
    }
    // The request may have come before the end of the round in which it was found.
    if (recorder->is_gone_when_asked || recorder->is_gone_when_found) {
        _exit(0);
    }
    const bool is_refused = strcmp(word, "refuse") == 0;
    strbuf_printf(reply, is_refused ? "-not %s" : "+%s|%s|%s", is_refused ? text : word, text,
                  recorder->recording);
    return 0;
}

static void work_and_be_stopped(void)
{
    const pid_t recorder = getpid();
    clock_sleep_ns(BUSY_MS * NS_PER_MS);
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) { // it may not be stopped yet
            clock_sleep_ns(STOPPED_MS * NS_PER_MS);
            (void)kill(recorder, SIGCONT);
        }
    }
    (void)raise(SIGSTOP);
}

static void run_recorder(struct recorder *recorder, int ready)
{
    struct control_socket control = CONTROL_SOCKET_INIT;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (control_socket_open(&control, NULL) != ERR_OK) {
        _exit(1);
    }
    if (recorder->is_named) {
        control_socket_name_recording(&control, recorder->recording);
    }
    if (write(ready, "x", 1) != 1) {
        _exit(1);
    }
    if (recorder->is_busy) {
        work_and_be_stopped();
    }
    const struct control_handler handler = {.context = recorder, .answer = answer};
    for (;;) {
        struct pollfd fds[1 + CONTROL_CLIENTS_MAX] = {{.fd = control.listener, .events = POLLIN}};
        for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
            fds[1 + i] = (struct pollfd){.fd = control.clients[i].fd, .events = POLLIN};
        }
        (void)poll(fds, ARRAY_LEN(fds), -1);
        const bool displaces = recorder->is_found || recorder->displaces_first;
        if (displaces && recorder->displaced > 0 && fds[0].revents != 0) {
            (void)close(accept(control.listener, NULL, NULL));
            recorder->displaced--;
            recorder->is_found = false;
            continue;
        }
        control_socket_poll(&control, &handler);
        if (recorder->is_found && recorder->is_gone_when_found) {
            _exit(0);
        }
    }
}

static void start(struct recorder *recorder)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    recorder->pid = fork();
    if (recorder->pid == 0) {
        run_recorder(recorder, ready[1]);
    }
    assert_true(recorder->pid > 0);
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
}

static void stop(const struct recorder *recorder)
{
    (void)kill(recorder->pid, SIGKILL); // it may have ended
    assert_int_equal(waitpid(recorder->pid, NULL, 0), recorder->pid);
}

static void the_recorder_of_a_recording_answers(void **state)
{
    (void)state;
    struct recorder recorders[] = {{.recording = "/tmp/control_client_test.1"},
                                   {.recording = "/tmp/control_client_test.12"},
                                   {.recording = "/tmp/control_client_test.2"}};
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        start(&recorders[i]);
    }
    // One that does not run delays no other.
    assert_int_equal(kill(recorders[2].pid, SIGSTOP), 0);
    char pid[16];
    char reply_to_pid[64];
    (void)snprintf(pid, sizeof(pid), "%d", (int)recorders[1].pid);
    (void)snprintf(reply_to_pid, sizeof(reply_to_pid), "mark|here it is|%s",
                   recorders[1].recording);
    const struct {
        const char *recording;
        const char *word;
        const char *text;
        const char *reply;
    } cases[] = {
        {"/tmp/control_client_test.1", "status", NULL, "status||/tmp/control_client_test.1"},
        {"/tmp/control_client_test.12", "status", NULL, "status||/tmp/control_client_test.12"},
        {"/tmp/../tmp/control_client_test.1", "mark", "", "mark||/tmp/control_client_test.1"},
        {pid, "mark", "here it is", reply_to_pid},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf reply = {0};
        struct err_info info = {0};
        strbuf_append_text(&reply, "before:");
        assert_int_equal(
            control_ask(cases[i].recording, cases[i].word, cases[i].text, &reply, &info), ERR_OK);
        assert_memory_equal(strbuf_text(&reply), "before:", 7);
        assert_string_equal(strbuf_text(&reply) + 7, cases[i].reply);
    }
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        stop(&recorders[i]);
    }
}

static void recorders_of_other_recordings_are_not_asked(void **state)
{
    (void)state;
    struct recorder recorders[] = {
        {.recording = "/tmp/control_client_test.1", .is_named = true, .is_not_to_be_asked = true},
        {.recording = "/tmp/control_client_test.12", .is_named = true},
        {.recording = "/tmp/control_client_test.2"}, // has not taken its second name yet
    };
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        start(&recorders[i]);
    }
    for (size_t i = 1; i < ARRAY_LEN(recorders); i++) {
        CLEANUP(strbuf_release) struct strbuf reply = {0};
        assert_int_equal(control_ask(recorders[i].recording, "mark", "x", &reply, NULL), ERR_OK);
        assert_non_null(strstr(strbuf_text(&reply), recorders[i].recording));
    }
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    assert_int_equal(control_ask("/tmp/control_client_test.none", "mark", "x", &reply, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(waitpid(recorders[0].pid, NULL, WNOHANG), 0); // it lives
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        stop(&recorders[i]);
    }
}

static void a_recorder_that_works_is_waited_for(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    struct recorder busy = {.recording = "/tmp/control_client_test.1", .is_busy = true};
    start(&busy);
    assert_int_equal(control_ask(busy.recording, "status", NULL, &reply, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&reply), "status||/tmp/control_client_test.1");
    stop(&busy);
}

static void a_refusal_and_an_end_are_said(void **state)
{
    (void)state;
    struct recorder refusing = {.recording = "/tmp/control_client_test.3"};
    static const char silent[] =
        "the recorder of '/tmp/control_client_test.4' does not answer; it may have ended";
    static const char unknown[] =
        "you have no running recording '/tmp/control_client_test.4'; it may have ended";
    struct {
        struct recorder recorder;
        const char *text; // NULL: either
    } dying[] = {
        {{.recording = "/tmp/control_client_test.4", .is_gone_when_asked = true}, silent},
        {{.recording = "/tmp/control_client_test.4", .is_gone_when_found = true}, NULL},
        {{.recording = "/tmp/control_client_test.4", .is_no_recorder = true}, unknown},
    };
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    struct err_info info = {0};
    start(&refusing);
    assert_int_equal(control_ask(refusing.recording, "refuse", "now", &reply, &info), ERR_INVALID);
    assert_string_equal(info.text, "/tmp/control_client_test.3: not now");
    stop(&refusing);
    for (size_t i = 0; i < ARRAY_LEN(dying); i++) {
        start(&dying[i].recorder);
        assert_int_equal(control_ask(dying[i].recorder.recording, "status", NULL, &reply, &info),
                         ERR_NOT_FOUND);
        if (dying[i].text != NULL) {
            assert_string_equal(info.text, dying[i].text);
        }
        assert_int_equal(reply.len, 0);
        stop(&dying[i].recorder);
    }
}

// The recorder has heard nothing of them.
static void a_displaced_client_asks_again(void **state)
{
    (void)state;
    struct recorder busy = {.recording = "/tmp/control_client_test.9", .displaced = 3};
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    start(&busy);
    assert_int_equal(control_ask(busy.recording, "mark", "x", &reply, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&reply), "mark|x|/tmp/control_client_test.9");
    stop(&busy);
}

static uint32_t g_late_sends; // so many further ones wait until the other side has closed

// In the place of libc's.
ssize_t send(int fd, const void *from, size_t len, int flags)
{
    struct pollfd closed = {.fd = fd};
    if (g_late_sends > 0) {
        g_late_sends--;
        assert_int_equal(poll(&closed, 1, 60000), 1);
    }
    return sendto(fd, from, len, flags, NULL, 0);
}

// They have not asked yet.
static void a_client_that_is_displaced_before_it_asks_asks_again(void **state)
{
    (void)state;
    struct recorder busy = {
        .recording = "/tmp/control_client_test.9", .displaced = 3, .displaces_first = true};
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    start(&busy);
    g_late_sends = busy.displaced;
    assert_int_equal(control_ask(busy.recording, "mark", "x", &reply, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&reply), "mark|x|/tmp/control_client_test.9");
    assert_int_equal(g_late_sends, 0);
    stop(&busy);
}

static void a_recorder_is_asked_by_its_process_id(void **state)
{
    (void)state;
    struct recorder recorders[] = {{.recording = "/tmp/control_client_test.6"},
                                   {.recording = "/tmp/control_client_test.7"}};
    char expected[64];
    struct err_info info = {0};
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        start(&recorders[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        CLEANUP(strbuf_release) struct strbuf reply = {0};
        assert_int_equal(control_ask_recorder(recorders[i].pid, "mark", "x", &reply, &info),
                         ERR_OK);
        (void)snprintf(expected, sizeof(expected), "mark|x|%s", recorders[i].recording);
        assert_string_equal(strbuf_text(&reply), expected);
        strbuf_clear(&reply);
        assert_int_equal(control_ask_recorder(recorders[i].pid, "refuse", "x", &reply, &info),
                         ERR_INVALID);
        (void)snprintf(expected, sizeof(expected), "%d: not x", (int)recorders[i].pid);
        assert_string_equal(info.text, expected);
    }
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        stop(&recorders[i]);
        CLEANUP(strbuf_release) struct strbuf reply = {0};
        assert_int_equal(control_ask_recorder(recorders[i].pid, "mark", "x", &reply, &info),
                         ERR_NOT_FOUND);
        (void)snprintf(expected, sizeof(expected), "process %d records nothing",
                       (int)recorders[i].pid);
        assert_string_equal(info.text, expected);
    }
    // Its number begins as that of a recorder.
    struct recorder last = {.recording = "/tmp/control_client_test.8"};
    start(&last);
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    assert_int_equal(control_ask_recorder(last.pid / 10, "mark", "x", &reply, &info),
                     ERR_NOT_FOUND);
    stop(&last);
}

// Wait until there is something to read.
static void await(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 60000), 1);
}

static void a_reply_is_taken_when_it_has_come(void **state)
{
    (void)state;
    static const char *const words[] = {"mark", "refuse", "mark"};
    struct recorder recorder = {.recording = "/tmp/control_client_test.1"};
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    int fds[ARRAY_LEN(words)];
    start(&recorder);
    assert_int_equal(kill(recorder.pid, SIGSTOP), 0);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        assert_int_equal(control_begin(recorder.pid, words[i], "x", &fds[i], NULL), ERR_OK);
        assert_int_equal(control_take(fds[i], &reply), ERR_NOT_FOUND);
    }
    assert_int_equal(kill(recorder.pid, SIGCONT), 0);
    await(fds[0]);
    assert_int_equal(control_take(fds[0], &reply), ERR_OK);
    assert_string_equal(strbuf_text(&reply), "mark|x|/tmp/control_client_test.1");
    await(fds[1]);
    assert_int_equal(control_take(fds[1], &reply), ERR_DEAD); // it refused
    await(fds[2]);
    stop(&recorder);
    strbuf_clear(&reply);
    assert_int_equal(control_take(fds[2], &reply), ERR_OK); // said before its end
    assert_int_equal(control_take(fds[2], &reply), ERR_DEAD);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(control_begin(recorder.pid, "mark", "x", &fds[0], NULL), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorder_of_a_recording_answers),
        cmocka_unit_test(recorders_of_other_recordings_are_not_asked),
        cmocka_unit_test(a_recorder_that_works_is_waited_for),
        cmocka_unit_test(a_refusal_and_an_end_are_said),
        cmocka_unit_test(a_displaced_client_asks_again),
        cmocka_unit_test(a_client_that_is_displaced_before_it_asks_asks_again),
        cmocka_unit_test(a_recorder_is_asked_by_its_process_id),
        cmocka_unit_test(a_reply_is_taken_when_it_has_come),
    };
    return cmocka_run_group_tests(tests, leave_network, NULL);
}
