// SPDX-License-Identifier: MIT
#include "inject/process/proc_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"

#define TEXT_BYTES_MAX  ((size_t)256 << 20)
#define TEXT_BYTES_STEP ((size_t)16 << 10)

enum err proc_files_fail(int problem, const char *path, struct err_info *info)
{
    switch (problem) {
    case ENOENT:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ERR_PERMISSION;
    default:
        return err_set_errno(info, problem, "cannot read '%s'", path);
    }
}

enum err proc_files_read(const struct target_process *target,
                         int tid,
                         const char *name,
                         struct strbuf *out,
                         struct err_info *info)
{
    char path[80];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", target->pid, tid, name); // fits
    CLEANUP(fd_closep) int fd = target->calls->open(path, O_RDONLY);
    if (fd < 0) {
        return proc_files_fail(errno, path, info);
    }
    while (out->len < TEXT_BYTES_MAX && strbuf_reserve(out, TEXT_BYTES_STEP)) {
        const ssize_t got =
            target->calls->read_at(fd, out->data + out->len, TEXT_BYTES_STEP, (off_t)out->len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return proc_files_fail(errno, path, info);
        }
        out->len += (size_t)got;
        out->data[out->len] = '\0';
        if (got == 0) {
            return ERR_OK;
        }
    }
    return out->failed ? ERR_NO_MEMORY : ERR_LIMIT;
}

char proc_files_thread_state(const struct target_process *target, int tid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const enum err err = proc_files_read(target, tid, "stat", &text, NULL);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? 'X' : '?';
    }
    return proc_text_state(strbuf_text(&text));
}

bool proc_files_is_confined(const struct target_process *target, int tid)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    const enum err err = proc_files_read(target, tid, "status", &status, NULL);
    if (err != ERR_OK) {
        return err != ERR_NOT_FOUND; // a filter that is not known of could kill the target
    }
    return proc_text_number(strbuf_text(&status), "Seccomp") != 0;
}

enum err proc_files_list_threads(const struct target_process *target,
                                 struct u32_vec *out,
                                 struct err_info *info)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", target->pid); // fits
    CLEANUP(directory_closep) DIR *folder = opendir(path);
    if (folder == NULL) {
        return proc_files_fail(errno, path, info);
    }
    enum err err = ERR_OK;
    for (struct dirent *entry; err == ERR_OK && (entry = readdir(folder)) != NULL;) {
        const uint64_t tid = number_field(entry->d_name);
        if (tid != 0) {
            err = u32_vec_push(out, (uint32_t)tid);
        }
    }
    return err;
}

// Take the next field, "0x" and digits. 0 if there is none.
static uint64_t take_field(const char **at)
{
    uint64_t value = 0;
    *at += strcspn(*at, "x");
    *at += **at == 'x' ? 1 : 0;
    return number_take(at, 16, &value) ? value : 0;
}

uint64_t proc_files_sleeps(const struct target_process *target, int tid)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    return proc_files_read(target, tid, "status", &status, NULL) == ERR_OK
               ? proc_text_number(strbuf_text(&status), "voluntary_ctxt_switches")
               : 0;
}

// proc(5): "running", or "NUMBER ARGUMENTS... sp pc", where -1 means blocked without a call.
struct current_call proc_files_current_call(const struct target_process *target, int tid)
{
    enum {
        ARGUMENTS = 6
    };
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct current_call call = {.number = -1};
    uint64_t number;
    if (proc_files_read(target, tid, "syscall", &text, NULL) != ERR_OK) {
        return call;
    }
    const char *said = strbuf_text(&text);
    call.is_running = strncmp(said, "running", strlen("running")) == 0;
    if (!number_take(&said, 10, &number)) {
        return call;
    }
    call.number = (long)number;
    call.first_argument = take_field(&said);
    for (unsigned i = 1; i < ARGUMENTS; i++) {
        (void)take_field(&said);
    }
    call.sp = take_field(&said);
    call.pc = take_field(&said);
    return call;
}
