// SPDX-License-Identifier: MIT
// pending_processes: see the header.
#include "recorder/processes/pending_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"
#include "session/session_env.h"

#define ENVIRONMENT_BYTES_MAX (8u << 20) // far above the limit of execve
#define STAT_BYTES_MAX        4096u
#define LOAD_BYTES_MAX        256u

enum {
    AGE_MS_MAX = 100, // too short for the kernel to hand out all pids (32768 at least)
    YOUNGER_MAX = 1024,
};

static void directory_closep(DIR **directory)
{
    if (*directory != NULL) {
        (void)closedir(*directory); // only read from
    }
}

// Return the start of the process in kernel ticks; 0 if it cannot be read.
static uint64_t start_of(const char *pid)
{
    char path[64];
    CLEANUP(strbuf_release) struct strbuf stat = {0};
    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid); // fits
    return file_read(path, STAT_BYTES_MAX, &stat, NULL) == ERR_OK
               ? proc_text_start(strbuf_text(&stat))
               : 0;
}

// Return whether a process has no environment yet: between the old and the new image of an exec it
// has none. A process without memory of its own (a kernel thread, or dead) has no executable
// either.
static bool is_in_exec(const char *pid)
{
    char path[64];
    char executable[1];
    (void)snprintf(path, sizeof(path), "/proc/%.20s/exe", pid); // fits
    return readlink(path, executable, sizeof(executable)) > 0 && start_of(pid) >= start_of("self");
}

static bool may_join(const char *pid, const char *variable, size_t length)
{
    char path[64];
    CLEANUP(strbuf_release) struct strbuf environment = {0};
    (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", pid); // fits
    if (file_read(path, ENVIRONMENT_BYTES_MAX, &environment, NULL) != ERR_OK) {
        return false; // it has ended, or belongs to another user
    }
    return environment.len > 0 ? memmem(environment.data, environment.len, variable, length) != NULL
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
static bool proc_is_ours(uint64_t own)
{
    char self[32] = "";
    char expected[32];
    (void)snprintf(expected, sizeof(expected), "%" PRIu64, own); // fits
    return readlink("/proc/self", self, sizeof(self) - 1) > 0 && strcmp(self, expected) == 0;
}

// Search the processes that are younger than this one. They have the pids above its own, because
// the kernel hands pids out in ascending order. A child of one of them has a higher pid still, so
// that it is met later; the last pid is read again for each. False: the order is not sure, because
// the pids have started again at the lowest, or may have.
static bool search_younger(const char *variable, size_t length, uint64_t age_ms, bool *has_found)
{
    const uint64_t own = (uint64_t)getpid();
    if (age_ms > AGE_MS_MAX || !proc_is_ours(own)) {
        return false;
    }
    *has_found = false;
    for (uint64_t pid = own + 1, last = last_pid(); pid <= last; pid++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%" PRIu64, pid); // fits
        *has_found = *has_found || may_join(name, variable, length);
        last = pid == last ? last_pid() : last;
        if (last - own > YOUNGER_MAX) {
            return false;
        }
    }
    return last_pid() >= own;
}

static bool search_all(const char *variable, size_t length)
{
    CLEANUP(directory_closep) DIR *processes = opendir("/proc");
    if (processes == NULL) {
        return false;
    }
    char own[32];
    (void)snprintf(own, sizeof(own), "%d", (int)getpid()); // fits
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, own) != 0 &&
            may_join(entry->d_name, variable, length)) {
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
    bool has_found = false;
    if (search_younger(variable.data, variable.len + 1, age_ms, &has_found)) {
        return has_found ? PENDING_SOME : PENDING_NONE;
    }
    return search_all(variable.data, variable.len + 1) ? PENDING_SOME : PENDING_UNSEEN;
}
