// SPDX-License-Identifier: MIT
#include "host/os/proc_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"

#define STAT_BYTES_MAX   4096u
#define STATUS_BYTES_MAX 65536u

bool proc_file_read(pid_t pid, const char *name, size_t max_bytes, struct strbuf *out)
{
    char path[64];
    const int length = snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return length < (int)sizeof(path) && file_read(path, max_bytes, out, NULL) == ERR_OK &&
           strbuf_result(out) == ERR_OK;
}

int proc_file_open(pid_t pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name); // a name that fits
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool proc_file_executable(pid_t pid, char path[static PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid); // fits
    const ssize_t len = readlink(link, path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    return len > 0;
}

enum err proc_file_watch(pid_t pid, int *out_fd, struct err_info *info)
{
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        return errno == ESRCH ? err_set(info, ERR_NOT_FOUND, "process %d has ended", (int)pid)
                              : err_set_errno(info, errno, "cannot watch process %d", (int)pid);
    }
    *out_fd = fd;
    return ERR_OK;
}

// Return the state in the file `name` of a process: its stat, or the stat of one of its threads.
static char state_in(pid_t pid, const char *name)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    (void)proc_file_read(pid, name, STAT_BYTES_MAX,
                         &text); // else it is empty, as that of a dead one
    return proc_text_state(strbuf_text(&text));
}

static bool has_ended(pid_t pid, const char *task)
{
    char name[32];
    const int length = snprintf(name, sizeof(name), "task/%s/stat", task);
    const char state = state_in(pid, name);
    return length >= (int)sizeof(name) || state == 'Z' || state == 'X';
}

pid_t proc_file_living(pid_t pid)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid); // fits
    CLEANUP(directory_closep) DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return pid;
    }
    // The first thread is listed first.
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        const pid_t task = (pid_t)number_field(entry->d_name);
        if (task > 0 && !has_ended(pid, entry->d_name)) {
            return task;
        }
    }
    return pid;
}

uint64_t proc_file_start(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return proc_file_read(pid, "stat", STAT_BYTES_MAX, &text) ? proc_text_start(strbuf_text(&text))
                                                              : 0;
}

uint64_t proc_file_own_start(void)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return file_read("/proc/self/stat", STAT_BYTES_MAX, &text, NULL) == ERR_OK
               ? proc_text_start(strbuf_text(&text))
               : 0;
}

char proc_file_state(pid_t pid)
{
    return state_in(pid, "stat");
}

bool proc_file_is_stopped(pid_t pid)
{
    const char state = proc_file_state(pid);
    return state == 'T' || state == 't' || state == 'X';
}

pid_t proc_file_parent(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return proc_file_read(pid, "status", STATUS_BYTES_MAX, &text)
               ? (pid_t)proc_text_number(strbuf_text(&text), "PPid")
               : 0;
}
