// SPDX-License-Identifier: MIT
#include "host/os/process_search.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"

#define CHILDREN_BYTES_MAX (64u << 10)

// False with errno 0 if it has another name.
static bool has_comm(pid_t pid, const char *name)
{
    enum {
        COMM_BYTES_MAX = 64
    };
    CLEANUP(strbuf_release) struct strbuf comm = {0};
    if (!proc_file_read(pid, "comm", COMM_BYTES_MAX, &comm) || comm.len == 0) {
        return false;
    }
    errno = 0;
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
    if (len < 0 && errno == ENOENT) {
        (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)proc_file_living(pid)); // fits
        len = readlink(link, path, sizeof(path) - 1);
    }
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

enum err process_search(const char *name, struct u32_vec *out, struct err_info *info)
{
    CLEANUP(directory_closep) DIR *folder = opendir("/proc");
    if (folder == NULL) {
        return err_set_errno(info, errno, "cannot look for processes in '/proc'");
    }
    enum err err = ERR_OK;
    for (struct dirent *entry; err == ERR_OK && (entry = readdir(folder)) != NULL;) {
        const uint64_t pid = number_field(entry->d_name);
        if (pid == 0 || pid == (uint64_t)getpid()) {
            continue;
        }
        errno = 0;
        if (is_called((pid_t)pid, name)) {
            err = u32_vec_push(out, (uint32_t)pid);
        } else if (err_is_own_lack(errno)) {
            err = err_set_errno(info, errno, "cannot read the name of process %d", (int)pid);
        }
    }
    return err;
}

// Pids with a space behind each.
static enum err append_children(pid_t pid, uint32_t thread, struct u32_vec *out)
{
    char name[64];
    CLEANUP(strbuf_release) struct strbuf text = {0};
    (void)snprintf(name, sizeof(name), "task/%" PRIu32 "/children", thread); // fits
    if (!proc_file_read(pid, name, CHILDREN_BYTES_MAX, &text)) {
        return ERR_OK; // the thread has ended, or the kernel has no such file
    }
    const char *at = strbuf_text(&text);
    for (uint64_t child; number_take(&at, 10, &child); at += strspn(at, " ")) {
        TRY(u32_vec_push(out, (uint32_t)child));
    }
    return ERR_OK;
}

enum err process_search_threads(pid_t pid, size_t most, struct u32_vec *out)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid); // fits
    CLEANUP(directory_closep) DIR *threads = opendir(path);
    if (threads == NULL) {
        return err_is_own_lack(errno) ? ERR_IO : ERR_NOT_FOUND;
    }
    const struct dirent *entry;
    for (size_t count = 0; count < most && (entry = readdir(threads)) != NULL;) {
        const uint64_t thread = number_field(entry->d_name);
        if (thread != 0) {
            TRY(u32_vec_push(out, (uint32_t)thread));
            count++;
        }
    }
    return ERR_OK;
}

enum err process_search_children(pid_t pid, struct u32_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec threads = {0};
    TRY(process_search_threads(pid, SIZE_MAX, &threads));
    for (size_t i = 0; i < threads.len; i++) {
        TRY(append_children(pid, threads.items[i], out));
    }
    return ERR_OK;
}
