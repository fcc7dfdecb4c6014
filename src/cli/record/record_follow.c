// SPDX-License-Identifier: MIT
#include "cli/record/record_follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/options/command.h"
#include "cli/options/output_name.h"
#include "cli/record/record_options.h"
#include "cli/text/screen_text.h"
#include "host/os/proc_file.h"
#include "host/os/process_search.h"
#include "recorder/control/control_client.h"
#include "recording/write/output_file.h"

enum {
    LOOK_MS_MIN = 100,
    LOOK_MS_MAX = 2000,
    HELD_UP_MS = 500,   // an ordinary end takes less
    COST_DIVISOR = 500, // looking takes at most this part of a processor
};

struct seen_process {
    uint32_t pid;
    uint64_t start; // proc_file_start
};
DEFINE_VEC(seen_process_vec, struct seen_process);

struct follower {
    struct record_settings settings;     // of each recording
    const struct option_word_vec *names; // borrowed
    struct strbuf output;                // owned; settings.output
    struct seen_process_vec seen;        // owned; those that have been tried and still run
    sigset_t signals;                    // which are waited for
    sigset_t former;                     // the mask of the recorders
    uint64_t end_ms;                     // UINT64_MAX: none
    pid_t recorder;                      // 0: none
    uint64_t ended_ms;                   // since when only threads are left of it; 0: not
    bool is_over;
    bool has_failed; // a recording
};

static void follower_release(struct follower *follower)
{
    strbuf_release(&follower->output);
    seen_process_vec_release(&follower->seen);
}

static bool has_process(const struct seen_process_vec *processes, struct seen_process wanted)
{
    for (size_t i = 0; i < processes->len; i++) {
        if (processes->items[i].pid == wanted.pid && processes->items[i].start == wanted.start) {
            return true;
        }
    }
    return false;
}

// Find the processes that have not been tried, and forget those that have ended.
static MUST_USE enum err
look_for_processes(struct follower *follower, struct seen_process_vec *out, struct err_info *info)
{
    CLEANUP(u32_vec_release) struct u32_vec found = {0};
    CLEANUP(seen_process_vec_release) struct seen_process_vec still = {0};
    for (size_t i = 0; i < follower->names->len; i++) {
        TRY(process_search(follower->names->items[i].text, &found, info));
    }
    for (size_t i = 0; i < found.len; i++) {
        const pid_t pid = (pid_t)found.items[i];
        const struct seen_process process = {.pid = found.items[i], .start = proc_file_start(pid)};
        struct seen_process_vec *list = has_process(&follower->seen, process) ? &still : out;
        if (process.start != 0 && pid != follower->recorder && !has_process(list, process)) {
            TRY(seen_process_vec_push(list, process));
        }
    }
    const struct seen_process_vec former = follower->seen;
    follower->seen = still;
    still = former;
    return ERR_OK;
}

static _Noreturn void run_recorder(const struct follower *follower, const struct u32_vec *pids)
{
    char *no_program[] = {NULL};
    struct record_settings settings = follower->settings;
    settings.recorder.attach_pids = pids->items;
    settings.recorder.attach_count = pids->len;
    settings.recorder.attaches_by_name = true;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); // valid
    (void)sigprocmask(SIG_SETMASK, &follower->former, NULL);
    const int status = record_run(&settings, no_program);
    // What waits for the end of its output does not wait for a thread that cannot end.
    (void)fclose(stdout); // the messages went to stderr
    (void)fclose(stderr); // no place is left to report an error
    exit(status);
}

// Start a recorder for all that were found, up to the limit; it is told of the others later.
static MUST_USE enum err begin_recording(struct follower *follower,
                                         const struct seen_process_vec *found,
                                         struct err_info *info)
{
    CLEANUP(u32_vec_release) struct u32_vec pids = {0};
    for (size_t i = 0; i < found->len && i < ATTACH_TARGETS_MAX; i++) {
        TRY(u32_vec_push(&pids, found->items[i].pid));
        TRY(seen_process_vec_push(&follower->seen, found->items[i]));
    }
    const pid_t recorder = fork();
    if (recorder == 0) {
        run_recorder(follower, &pids);
    }
    follower->recorder = recorder > 0 ? recorder : 0;
    return recorder > 0 ? ERR_OK : err_set_errno(info, errno, "cannot start the recorder");
}

// Tell the recorder of one more process, again if that has just begun to load its libraries. A
// recorder that is about to end leaves it to the next.
static MUST_USE enum err offer_process(struct follower *follower,
                                       const struct seen_process *process)
{
    char pid[16];
    struct err_info info = {0};
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    (void)snprintf(pid, sizeof(pid), "%" PRIu32, process->pid); // fits
    const enum err err = control_ask_recorder(follower->recorder, "attach", pid, &reply, &info);
    const bool is_tried =
        err == ERR_INVALID || (err == ERR_OK && strcmp(strbuf_text(&reply), "later") != 0);
    return is_tried ? seen_process_vec_push(&follower->seen, *process) : ERR_OK;
}

static MUST_USE enum err attend_recorder(struct follower *follower, struct err_info *info)
{
    CLEANUP(seen_process_vec_release) struct seen_process_vec found = {0};
    TRY(look_for_processes(follower, &found, info));
    if (found.len > 0 && follower->recorder == 0) {
        return begin_recording(follower, &found, info);
    }
    for (size_t i = 0; i < found.len; i++) {
        TRY(offer_process(follower, found.items + i));
    }
    return ERR_OK;
}

static void say_waiting(const struct follower *follower)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    screen_append(&name, follower->names->items[0].text);
    if (!follower->settings.is_quiet && !follower->is_over) {
        // no other place to report an error
        (void)fprintf(stderr, "cairn: waiting for a process with the name '%s'%s; Ctrl-C ends\n",
                      strbuf_text(&name), follower->names->len > 1 ? " or another one" : "");
    }
}

// Whether the recorder has ended but for a thread that the kernel cannot end: it reads a file whose
// file system does not answer (attach_step.h).
static bool is_held_up(struct follower *follower)
{
    const bool has_ended = proc_file_state(follower->recorder) == 'Z';
    const uint64_t now_ms = clock_monotonic_ms();
    follower->ended_ms = !has_ended ? 0 : follower->ended_ms != 0 ? follower->ended_ms : now_ms;
    return has_ended && now_ms - follower->ended_ms >= HELD_UP_MS;
}

// See whether the recorder has ended.
static void reap_recorder(struct follower *follower)
{
    int status = 0;
    if (follower->recorder == 0) {
        return;
    }
    const pid_t reaped = waitpid(follower->recorder, &status, WNOHANG);
    if (reaped == 0 && !is_held_up(follower)) {
        return;
    }
    follower->ended_ms = 0;
    if (WIFSIGNALED(status) && !follower->is_over) {
        (void)fprintf(stderr, "cairn: the recorder died (signal %d)\n", WTERMSIG(status));
    }
    follower->recorder = 0;
    follower->has_failed = follower->has_failed || status != 0;
    say_waiting(follower);
}

// Stop at a signal, or after the duration. The terminal's signals reach the recorder themselves.
static void note_signal(struct follower *follower, int number, const siginfo_t *signal)
{
    const bool is_late = clock_monotonic_ms() >= follower->end_ms;
    const bool is_stop = number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (is_late) {
        follower->end_ms = UINT64_MAX;
    }
    follower->is_over = follower->is_over || is_late || is_stop;
    if (follower->recorder != 0 && (is_late || (is_stop && signal->si_code <= 0))) {
        (void)kill(follower->recorder, is_late ? SIGTERM : number); // ours, and not reaped
    }
}

// Sleep until something has happened, or the next look is due.
static void rest_until_look(struct follower *follower, uint64_t look_ns)
{
    siginfo_t signal = {0};
    uint64_t sleep_ms = look_ns * COST_DIVISOR / NS_PER_MS;
    sleep_ms = min_u64(max_u64(sleep_ms, LOOK_MS_MIN), LOOK_MS_MAX);
    const struct timespec timeout = {.tv_sec = (time_t)(sleep_ms / 1000),
                                     .tv_nsec = (long)(sleep_ms % 1000 * NS_PER_MS)};
    note_signal(follower, sigtimedwait(&follower->signals, &signal, &timeout), &signal);
}

static MUST_USE enum err take_signals(struct follower *follower, struct err_info *info)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    (void)sigemptyset(&follower->signals); // these cannot fail for valid signals
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        (void)sigaddset(&follower->signals, numbers[i]);
    }
    // If it is ignored, the kernel reaps recorders itself.
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    return sigprocmask(SIG_BLOCK, &follower->signals, &follower->former) == 0
               ? ERR_OK
               : err_set_errno(info, errno, "cannot wait for signals");
}

// A file with one name for all recordings has the latest; each is kept under its time, too.
static MUST_USE enum err prepare_follower(struct follower *follower, struct err_info *info)
{
    struct record_settings *settings = &follower->settings;
    CLEANUP(strbuf_release) struct strbuf probe = {0};
    if (settings->output == NULL) {
        output_name_append_default(&follower->output, follower->names->items[0].text, false);
        TRY(strbuf_result(&follower->output));
        settings->output = strbuf_text(&follower->output);
    }
    settings->recorder.rotation.keeps_last = strstr(settings->output, "%p") == NULL;
    if (settings->recorder.run.duration_ms != 0) {
        follower->end_ms = clock_monotonic_ms() + settings->recorder.run.duration_ms;
        settings->recorder.run.duration_ms = 0;
    }
    TRY(output_name_expand(settings->output, (uint32_t)getpid(), &probe, info));
    TRY(output_file_probe(strbuf_text(&probe), info));
    return take_signals(follower, info);
}

int record_follow(const struct record_settings *settings, const struct option_word_vec *names)
{
    struct err_info info = {0};
    CLEANUP(follower_release)
    struct follower follower = {.settings = *settings, .names = names, .end_ms = UINT64_MAX};
    if (prepare_follower(&follower, &info) != ERR_OK) {
        return command_error(&info);
    }
    say_waiting(&follower);
    while (!follower.is_over || follower.recorder != 0) {
        const uint64_t began_ns = clock_thread_cpu_ns();
        struct err_info trouble = {0};
        if (!follower.is_over && attend_recorder(&follower, &trouble) != ERR_OK) {
            (void)command_error(&trouble); // not fatal: the next search may succeed
        }
        rest_until_look(&follower, clock_thread_cpu_ns() - began_ns);
        reap_recorder(&follower);
    }
    return settings->is_strict && follower.has_failed ? STATUS_USAGE : STATUS_OK;
}
