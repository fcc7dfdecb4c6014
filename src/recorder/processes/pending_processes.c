// SPDX-License-Identifier: MIT
#include "recorder/processes/pending_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"
#include "recorder/processes/pid_lookup.h"
#include "session/exec_check.h"
#include "session/session_env.h"

#define STAT_BYTES_MAX 4096u
#define LOAD_BYTES_MAX 256u
#define PRELOAD        "LD_PRELOAD="

enum {
    LOOK_MS = 50,           // between two looks
    LATE_PIDS_PER_MS = 327, // that the kernel hands out at most
    PIDS_MIN = 32768,       // that it has at least
    YOUNGER_MAX = 1024,
    EMPTY_READS = 3,     // an exec may end between the reads of two files
    WAIT_MS = 1,         // between two searches for processes that have not joined
    MAPPED_WAIT_MS = 50, // the same for those that have the memory
    WAIT_MAX_MS = 2000,  // for those that exist and have not joined
    BUSY_MAX_MS = 10000, // and for those that are under way
    VAIN_CHECKS = 2,
};

static bool has_variable(const struct strbuf *environment, const struct strbuf *variable)
{
    return memmem(environment->data, environment->len, variable->data, variable->len + 1) != NULL;
}

// Return whether a process of the session may be the child of `parent`: that is one itself, or this
// process, or one that adopts orphans.
static bool may_have_child(pid_t parent, const struct strbuf *variable)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    for (pid_t at = getpid(); at > 0; at = proc_file_parent(at)) {
        if (at == parent) {
            return true;
        }
    }
    return parent <= 1 ||
           !proc_file_read(parent, "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment) ||
           environment.len == 0 || has_variable(&environment, variable);
}

// Return whether a process is between the old and the new image of an exec and may be of the
// session. One without memory of its own (a kernel thread, or dead) has no executable.
static bool may_get_variable(pid_t pid, const struct strbuf *stat, const struct strbuf *variable)
{
    char path[64];
    char executable[1];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); // fits
    return readlink(path, executable, sizeof(executable)) > 0 &&
           proc_text_start(strbuf_text(stat)) >= proc_file_own_start() &&
           may_have_child(proc_file_parent(pid), variable);
}

// Return whether a process is a copy of this one: a writer of checkpoints, for example.
static bool is_copy(pid_t pid)
{
    struct stat own;
    struct stat its;
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); // fits
    return stat("/proc/self/exe", &own) == 0 && stat(path, &its) == 0 &&
           file_identity(&own) == file_identity(&its);
}

// Return whether a process maps the session's memory and may still join: not below a filter.
static bool is_mapped(pid_t pid, int memory)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    return memory >= 0 && pid_lookup_maps(pid, memory) && !is_copy(pid) &&
           proc_file_read(pid, "status", STAT_BYTES_MAX, &status) &&
           proc_text_kib(strbuf_text(&status), "Seccomp") == 0;
}

static bool may_join(pid_t pid, const struct strbuf *variable)
{
    for (int i = 0; i < EMPTY_READS; i++) {
        CLEANUP(strbuf_release) struct strbuf environment = {0};
        CLEANUP(strbuf_release) struct strbuf stat = {0};
        if (!proc_file_read(pid, "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment)) {
            return false; // it has ended, or belongs to another user
        }
        if (environment.len > 0) {
            return has_variable(&environment, variable);
        }
        if (!proc_file_read(pid, "stat", STAT_BYTES_MAX, &stat)) {
            return false;
        }
        // During an exec a process has no environment. An empty environment has an address.
        if (proc_text_environment_end(strbuf_text(&stat)) == 0) {
            return may_get_variable(pid, &stat, variable);
        }
    }
    return false;
}

static enum pending_answer answer_of(pid_t pid, const struct strbuf *variable, int memory)
{
    return may_join(pid, variable)  ? PENDING_SOME
           : is_mapped(pid, memory) ? PENDING_MAPPED
                                    : PENDING_NONE;
}

// Return the pid after which the kernel numbers the next process, 0 if it cannot be read: the last
// word of /proc/loadavg, proc(5).
static uint64_t last_pid(void)
{
    CLEANUP(strbuf_release) struct strbuf load = {0};
    const char *word = file_read("/proc/loadavg", LOAD_BYTES_MAX, &load, NULL) == ERR_OK
                           ? strrchr(strbuf_text(&load), ' ')
                           : NULL;
    return word != NULL ? number_field(word) : 0;
}

// Return whether /proc numbers processes as this process does.
static bool proc_is_ours(void)
{
    char self[32] = "";
    return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
           number_field(self) == (uint64_t)getpid();
}

// Return how many pids the kernel has.
static uint64_t count_pids(void)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const bool is_read =
        file_read("/proc/sys/kernel/pid_max", LOAD_BYTES_MAX, &text, NULL) == ERR_OK;
    return max_u64(is_read ? number_field(strbuf_text(&text)) : 0, PIDS_MIN);
}

void pid_order_init(struct pid_order *order, uint64_t now_ms)
{
    const uint64_t pid = last_pid();
    *order = (struct pid_order){.first_pid = pid,
                                .last_pid = pid,
                                .look_ms = now_ms,
                                .late_ms = count_pids() / LATE_PIDS_PER_MS,
                                .is_uncertain = pid == 0 || !proc_is_ours()};
}

static void look(struct pid_order *order, uint64_t now_ms)
{
    const uint64_t pid = last_pid();
    const bool is_late = now_ms > order->look_ms + order->late_ms;
    order->is_uncertain = order->is_uncertain || is_late || pid < order->last_pid;
    order->last_pid = pid;
    order->look_ms = now_ms;
}

void pid_order_look(struct pid_order *order, uint64_t now_ms)
{
    if (!order->is_uncertain && now_ms >= order->look_ms + LOOK_MS) {
        look(order, now_ms);
    }
}

// Search the processes that are younger than the session. They have the pids above the first one,
// because the kernel hands pids out in ascending order. A child of one of them has a higher pid
// still, so it is met later; when the search arrives at the last pid, it reads that again.
// PENDING_UNSEEN: the order is not certain, because the pids have started again at the lowest, or
// may have.
static enum pending_answer
search_younger(const struct strbuf *variable, int memory, const struct pid_order *order)
{
    uint64_t last = order->last_pid;
    for (uint64_t pid = order->first_pid + 1; pid <= last; pid++) {
        const enum pending_answer answer =
            pid != (uint64_t)getpid() ? answer_of((pid_t)pid, variable, memory) : PENDING_NONE;
        if (answer != PENDING_NONE) {
            return answer;
        }
        last = pid == last ? last_pid() : last;
        if (last - order->first_pid > YOUNGER_MAX) {
            return PENDING_UNSEEN;
        }
    }
    return last_pid() >= order->last_pid ? PENDING_NONE : PENDING_UNSEEN;
}

// Return the next process of a listing of /proc other than this one, 0 at the end.
static pid_t next_process(DIR *processes)
{
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        const pid_t pid = (pid_t)number_field(entry->d_name);
        if (pid > 0 && pid != getpid()) {
            return pid;
        }
    }
    return 0;
}

static enum pending_answer search_all(const struct strbuf *variable, int memory)
{
    CLEANUP(directory_closep) DIR *processes = opendir("/proc");
    enum pending_answer answer = PENDING_NONE;
    for (pid_t pid;
         answer == PENDING_NONE && processes != NULL && (pid = next_process(processes)) > 0;) {
        answer = answer_of(pid, variable, memory);
    }
    return answer == PENDING_NONE ? PENDING_UNSEEN : answer;
}

// Return whether a process is one of the session and could have joined. The list of unrecorded
// programs has those that cannot. One in the middle of an exec may be of any session.
static bool could_join(pid_t pid, const struct strbuf *variable)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); // fits
    return proc_file_read(pid, "environ", PROC_FILE_ENVIRONMENT_BYTES, &environment) &&
           environment.len > 0 && has_variable(&environment, variable) &&
           memmem(environment.data, environment.len, PRELOAD, strlen(PRELOAD)) != NULL &&
           exec_check(path) == EXEC_NONE;
}

// Return whether a process that could join is about to, as far as can be seen: it has or awaits a
// processor, the disk or its tracer. What sleeps waits for something else.
static bool is_under_way(const struct strbuf *stat)
{
    const char state = proc_text_state(strbuf_text(stat));
    return state == 'R' || state == 'D' || state == 't';
}

static void count_unjoined(const struct strbuf *variable, struct pending_search *search)
{
    CLEANUP(directory_closep) DIR *processes = opendir("/proc");
    for (pid_t pid; processes != NULL && (pid = next_process(processes)) > 0;) {
        CLEANUP(strbuf_release) struct strbuf stat = {0};
        if (map_u64_find(&search->unrecorded, (uint64_t)pid) != NULL ||
            !proc_file_read(pid, "stat", STAT_BYTES_MAX, &stat)) {
            continue;
        }
        const bool is_in_exec = proc_text_environment_end(strbuf_text(&stat)) == 0 &&
                                may_get_variable(pid, &stat, variable);
        const bool may_come = !is_in_exec && could_join(pid, variable);
        search->unjoined_count += may_come;
        search->has_busy = search->has_busy || ((is_in_exec || may_come) && is_under_way(&stat));
    }
}

static MUST_USE enum err name_variable(const char *session, struct strbuf *out)
{
    strbuf_printf(out, "%s=%s", SESSION_ENV_NAME, session);
    return strbuf_result(out);
}

enum pending_answer
pending_processes_find(const struct pending_marks *marks, struct pid_order *order, uint64_t now_ms)
{
    CLEANUP(strbuf_release) struct strbuf variable = {0};
    if (name_variable(marks->session, &variable) != ERR_OK) {
        return PENDING_UNSEEN;
    }
    look(order, now_ms);
    const enum pending_answer answer =
        order->is_uncertain ? PENDING_UNSEEN : search_younger(&variable, marks->memory, order);
    return answer != PENDING_UNSEEN ? answer : search_all(&variable, marks->memory);
}

void pending_wait_restart(struct pending_wait *wait, uint64_t now_ms)
{
    wait->quiet_since_ms = now_ms;
    wait->vain_checks = 0;
    wait->is_certain = false;
}

bool pending_wait_is_due(const struct pending_wait *wait, uint64_t now_ms)
{
    // When a search was certain, the pass since then found none that had joined before.
    return !wait->is_certain && now_ms >= wait->next_check_ms;
}

struct pending_search *pending_search_new(const struct pending_wait *wait,
                                          const struct pending_marks *marks,
                                          const struct map_u64 *unrecorded,
                                          uint64_t now_ms)
{
    struct pending_search *search = calloc(1, sizeof(*search));
    if (search == NULL) {
        return NULL;
    }
    search->session = strdup(marks->session);
    search->memory = marks->memory >= 0 ? fcntl(marks->memory, F_DUPFD_CLOEXEC, 0) : -1;
    search->order = wait->order;
    search->now_ms = now_ms;
    search->counts = now_ms >= wait->quiet_since_ms + WAIT_MAX_MS;
    search->is_late = now_ms >= wait->quiet_since_ms + BUSY_MAX_MS;
    enum err err = search->session != NULL ? ERR_OK : ERR_NO_MEMORY;
    uint64_t pid;
    uint32_t value;
    for (size_t at = 0; err == ERR_OK && map_u64_next(unrecorded, &at, &pid, &value);) {
        err = map_u64_put(&search->unrecorded, pid, value);
    }
    if (err != ERR_OK) {
        pending_search_free(search);
        return NULL;
    }
    return search;
}

void pending_search_free(void *context)
{
    struct pending_search *search = context;
    map_u64_release(&search->unrecorded);
    fd_closep(&search->memory);
    free(search->session);
    free(search);
}

void pending_search_run(void *context)
{
    struct pending_search *search = context;
    CLEANUP(strbuf_release) struct strbuf variable = {0};
    const struct pending_marks marks = {.session = search->session, .memory = search->memory};
    search->answer = pending_processes_find(&marks, &search->order, search->now_ms);
    if (search->answer == PENDING_SOME && search->counts &&
        name_variable(search->session, &variable) == ERR_OK) {
        count_unjoined(&variable, search);
    }
}

bool pending_wait_take(struct pending_wait *wait, const struct pending_search *search)
{
    if (search == NULL) { // who does not show its environment may be one of the session
        wait->unjoined_count = 1;
        return true;
    }
    wait->order = search->order;
    wait->has_mapped = search->answer == PENDING_MAPPED;
    wait->next_check_ms = search->now_ms + (wait->has_mapped ? MAPPED_WAIT_MS : WAIT_MS);
    const bool is_enough = search->counts && (search->is_late || !search->has_busy);
    wait->unjoined_count = is_enough ? search->unjoined_count : 0;
    wait->is_certain = search->answer == PENDING_NONE;
    wait->vain_checks = search->answer == PENDING_UNSEEN ? wait->vain_checks + 1 : 0;
    return !wait->is_certain && !wait->has_mapped &&
           (is_enough || wait->vain_checks >= VAIN_CHECKS);
}
