// SPDX-License-Identifier: MIT
// pending_processes: see the header.
#include "recorder/processes/pending_processes.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "host/text/strbuf.h"
#include "session/session_env.h"

#define ENVIRONMENT_BYTES_MAX (8u << 20) // far above the limit of execve
#define LOAD_BYTES_MAX        256u

enum {
    AGE_MS_MAX = 100, // too short for the kernel to hand out all pids (32768 at least)
    YOUNGER_MAX = 1024,
};

// Return whether a process has no environment yet: between the old and the new image of an exec it
// has none. A process without memory of its own (a kernel thread, or dead) has no executable
// either.
static bool is_in_exec(pid_t pid)
{
    char path[64];
    char executable[1];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid); // fits
    return readlink(path, executable, sizeof(executable)) > 0 &&
           proc_file_start(pid) >= proc_file_own_start();
}

static bool may_join(pid_t pid, const struct strbuf *variable)
{
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    if (!proc_file_read(pid, "environ", ENVIRONMENT_BYTES_MAX, &environment)) {
        return false; // it has ended, or belongs to another user
    }
    return environment.len > 0 ? memmem(environment.data, environment.len, variable->data,
                                        variable->len + 1) != NULL
                               : is_in_exec(pid);
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

// Search the processes that are younger than this one. They have the pids above its own, because
// the kernel hands pids out in ascending order. A child of one of them has a higher pid still, so
// it is met later; when the search arrives at the last pid, it reads that again. PENDING_UNSEEN:
// the order is not certain, because the pids have started again at the lowest, or may have.
static enum pending_answer search_younger(const struct strbuf *variable, uint64_t age_ms)
{
    const uint64_t own = (uint64_t)getpid();
    if (age_ms > AGE_MS_MAX || !proc_is_ours()) {
        return PENDING_UNSEEN;
    }
    for (uint64_t pid = own + 1, last = last_pid(); pid <= last; pid++) {
        if (may_join((pid_t)pid, variable)) {
            return PENDING_SOME;
        }
        last = pid == last ? last_pid() : last;
        if (last - own > YOUNGER_MAX) {
            return PENDING_UNSEEN;
        }
    }
    return last_pid() >= own ? PENDING_NONE : PENDING_UNSEEN;
}

static bool search_all(const struct strbuf *variable)
{
    CLEANUP(directory_closep) DIR *processes = opendir("/proc");
    if (processes == NULL) {
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        const pid_t pid = (pid_t)number_field(entry->d_name);
        if (pid > 0 && pid != getpid() && may_join(pid, variable)) {
            return true;
        }
    }
    return false;
}

enum pending_answer pending_processes_find(const char *session, uint64_t age_ms)
{
    CLEANUP(strbuf_release) struct strbuf variable = {0};
    strbuf_printf(&variable, "%s=%s", SESSION_ENV_NAME, session);
    if (strbuf_result(&variable) != ERR_OK) {
        return PENDING_UNSEEN;
    }
    const enum pending_answer answer = search_younger(&variable, age_ms);
    if (answer != PENDING_UNSEEN) {
        return answer;
    }
    return search_all(&variable) ? PENDING_SOME : PENDING_UNSEEN;
}
