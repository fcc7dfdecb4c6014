// SPDX-License-Identifier: MIT
// process_search: see process_search.h.
#include "host/os/process_search.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"

static bool has_comm(pid_t pid, const char *name)
{
    enum {
        COMM_BYTES_MAX = 64
    };
    CLEANUP(strbuf_release) struct strbuf comm = {0};
    if (!proc_file_read(pid, "comm", COMM_BYTES_MAX, &comm) || comm.len == 0) {
        return false;
    }
    strbuf_truncate(&comm, comm.len - 1); // the line feed
    return strcmp(strbuf_text(&comm), name) == 0;
}

// The executable of another user's process cannot be read, but its command name can.
static bool is_called(pid_t pid, const char *name)
{
    static const char deleted[] = " (deleted)"; // proc(5)
    char link[64];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid); // fits
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len < 0) {
        return errno != ENOENT && has_comm(pid, name); // of threads of the kernel, and of the dead
    }
    path[len] = '\0';
    const ssize_t end = len - (ssize_t)(sizeof(deleted) - 1);
    if (end > 0 && strcmp(path + end, deleted) == 0) {
        path[end] = '\0';
    }
    return strcmp(path_file_name(path), name) == 0 || has_comm(pid, name);
}

enum err process_search(const char *name, struct u32_vec *out)
{
    DIR *folder = opendir("/proc");
    if (folder == NULL) {
        return ERR_IO;
    }
    enum err err = ERR_OK;
    for (struct dirent *entry; err == ERR_OK && (entry = readdir(folder)) != NULL;) {
        const uint64_t pid = number_field(entry->d_name);
        if (pid != 0 && pid != (uint64_t)getpid() && is_called((pid_t)pid, name)) {
            err = u32_vec_push(out, (uint32_t)pid);
        }
    }
    (void)closedir(folder); // was only read
    return err;
}
