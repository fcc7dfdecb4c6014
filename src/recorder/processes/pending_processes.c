// SPDX-License-Identifier: MIT
// pending_processes: see the header.
#include "recorder/processes/pending_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"
#include "recorder/processes/proc_text.h"
#include "session/session_env.h"

#define ENVIRONMENT_BYTES_MAX (8u << 20) // far above the limit of execve
#define STAT_BYTES_MAX        4096u

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

bool pending_processes_exist(const char *session)
{
    CLEANUP(strbuf_release) struct strbuf variable = {0};
    CLEANUP(directory_closep) DIR *processes = opendir("/proc");
    strbuf_printf(&variable, "%s=%s", SESSION_ENV_NAME, session);
    if (processes == NULL || strbuf_result(&variable) != ERR_OK) {
        return false;
    }
    char own[32];
    (void)snprintf(own, sizeof(own), "%d", (int)getpid()); // fits
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, own) != 0 &&
            may_join(entry->d_name, variable.data, variable.len + 1)) {
            return true;
        }
    }
    return false;
}
