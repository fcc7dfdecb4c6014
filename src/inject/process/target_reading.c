// SPDX-License-Identifier: MIT
#include "inject/process/target_reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/os/file.h"
#include "inject/process/module_headers.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_refusal.h"

void target_process_close(struct target_process *target)
{
    if (target->calls != NULL) {
        fd_closep(&target->mem_fd);
        fd_closep(&target->pidfd);
    }
    target_mapping_vec_release(&target->mappings);
    target_module_vec_release(&target->modules);
    u32_vec_release(&target->unread);
    strbuf_release(&target->paths);
    *target = (struct target_process){0};
}

// Find a thread that has not ended, the first one if possible.
static enum err find_live_thread(struct target_process *target, struct err_info *info)
{
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    TRY(proc_files_list_threads(target, &tids, info));
    for (size_t i = 0; i < tids.len; i++) {
        const char state = proc_files_thread_state(target, (int)tids.items[i]);
        if (state != 'Z' && state != 'X') {
            target->live_tid = (int)tids.items[i];
            return ERR_OK;
        }
    }
    return ERR_NOT_FOUND;
}

// proc(5): "start-end perms offset device inode   path".
static bool parse_mapping(const char *line, struct target_mapping *out, int *path_at)
{
    char permissions[5] = "";
    uint32_t major = 0;
    uint32_t minor = 0;
    *path_at = 0;
    if (sscanf(line,
               "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
               &out->start, &out->end, permissions, &out->file_off, &major, &minor, &out->inode,
               path_at) != 7 ||
        *path_at == 0 || out->start >= out->end) {
        return false;
    }
    out->device = major << 20 | minor;
    out->prot = (uint8_t)((permissions[0] == 'r' ? PROT_READ : 0) |
                          (permissions[1] == 'w' ? PROT_WRITE : 0) |
                          (permissions[2] == 'x' ? PROT_EXEC : 0));
    return true;
}

// Equal paths of neighbours, which are usual, are kept once.
static uint32_t keep_path(struct strbuf *paths, uint32_t previous, const char *path)
{
    static const char deleted[] = " (deleted)";
    size_t len = strlen(path);
    if (len > sizeof(deleted) - 1 && strcmp(path + len - (sizeof(deleted) - 1), deleted) == 0) {
        len -= sizeof(deleted) - 1;
    }
    const char *before = strbuf_text(paths) + previous;
    if (strlen(before) == len && memcmp(before, path, len) == 0) {
        return previous;
    }
    const uint32_t at = (uint32_t)paths->len; // the text has at most TEXT_BYTES_MAX
    strbuf_append(paths, path, len);
    strbuf_append_char(paths, '\0');
    return at;
}

static enum err
parse_mappings(struct strbuf *text, struct target_mapping_vec *out, struct strbuf *paths)
{
    strbuf_append_char(paths, '\0'); // offset 0 is the empty path
    uint32_t path = 0;
    const char *end = text->data + text->len;
    for (char *line = text->data; line != NULL && line[0] != '\0';) {
        // Not strchr: a sanitizer's looks for the end of the text, of each line.
        char *newline = memchr(line, '\n', (size_t)(end - line));
        if (newline != NULL) {
            *newline = '\0';
        }
        struct target_mapping mapping = {0};
        int path_at = 0;
        if (!parse_mapping(line, &mapping, &path_at) ||
            (out->len != 0 && mapping.start < out->items[out->len - 1].end)) {
            return ERR_CORRUPT;
        }
        if (out->len == TARGET_MAPPINGS_MAX) {
            return ERR_LIMIT;
        }
        mapping.path = line[path_at] == '\0' ? 0 : keep_path(paths, path, line + path_at);
        path = mapping.path;
        TRY(target_mapping_vec_push(out, mapping));
        line = newline != NULL ? newline + 1 : NULL;
    }
    return strbuf_result(paths);
}

// The kernel lists the mappings piece by piece. If two become one between two pieces, the first of
// them is listed twice; then the list is read again.
static enum err read_mappings(const struct target_process *target,
                              struct target_mapping_vec *mappings,
                              struct strbuf *paths,
                              struct err_info *info)
{
    enum {
        TRIES = 20
    };
    enum err err = ERR_CORRUPT;
    for (int i = 0; i < TRIES && err == ERR_CORRUPT; i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        target_mapping_vec_clear(mappings);
        strbuf_clear(paths);
        TRY(proc_files_read(target, target->live_tid, "maps", &text, info));
        err = parse_mappings(&text, mappings, paths);
    }
    return err == ERR_LIMIT
               ? err_set(info, err, "process %d has more than %d mappings; cairn reads no more",
                         target->pid, (int)TARGET_MAPPINGS_MAX)
               : err;
}

static enum err refresh_mappings(struct target_process *target, struct err_info *info)
{
    CLEANUP(target_mapping_vec_release) struct target_mapping_vec mappings = {0};
    CLEANUP(strbuf_release) struct strbuf paths = {0};
    TRY(read_mappings(target, &mappings, &paths, info));
    if (mappings.len == 0) {
        return ERR_NOT_FOUND; // it has ended
    }
    struct target_process fresh = *target;
    fresh.mappings = mappings;
    fresh.paths = paths;
    CLEANUP(target_module_vec_release) struct target_module_vec modules = {0};
    CLEANUP(u32_vec_release) struct u32_vec unread = {0};
    fresh.has_more_modules = false;
    TRY(module_headers_read(&fresh, &modules, &unread, &fresh.has_more_modules));
    target_mapping_vec_release(&target->mappings);
    target_module_vec_release(&target->modules);
    u32_vec_release(&target->unread);
    strbuf_release(&target->paths);
    target->mappings = mappings;
    target->modules = modules;
    target->has_more_modules = fresh.has_more_modules;
    target->unread = unread;
    target->paths = paths;
    mappings = (struct target_mapping_vec){0};
    modules = (struct target_module_vec){0};
    unread = (struct u32_vec){0};
    paths = (struct strbuf){0};
    return ERR_OK;
}

enum err target_process_refresh(struct target_process *target, struct err_info *info)
{
    const enum err err = refresh_mappings(target, info);
    return err == ERR_OK ? ERR_OK : target_refusal_explain(target, err, info);
}

static enum err open_files(struct target_process *target, struct err_info *info)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", target->pid,
                   target->live_tid); // fits
    target->mem_fd = target->calls->open(path, O_RDWR);
    if (target->mem_fd < 0) {
        return target_refusal_explain(target, proc_files_fail(errno, path, info), info);
    }
    target->pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0); // -1 before Linux 5.3
    if (target->pidfd < 0 && err_is_own_lack(errno)) {
        return err_set_errno(info, errno, "cannot watch process %d", target->pid);
    }
    return target_process_refresh(target, info);
}

enum err target_process_open(struct target_process *target,
                             int pid,
                             const struct kernel_calls *calls,
                             struct err_info *info)
{
    CLEANUP(target_process_close)
    struct target_process opened = {.pid = pid, .mem_fd = -1, .pidfd = -1, .calls = calls};
    enum {
        TRIES = 5
    };
    opened.live_tid = pid;
    TRY(target_refusal_find(&opened, info));
    enum err err = find_live_thread(&opened, info);
    if (err != ERR_OK) {
        return target_refusal_explain(&opened, err, info);
    }
    err = open_files(&opened, info);
    // The thread may end before its files are open: other threads go on, or execute a program.
    for (int i = 1; i < TRIES && err == ERR_NOT_FOUND && find_live_thread(&opened, info) == ERR_OK;
         i++) {
        fd_closep(&opened.mem_fd);
        fd_closep(&opened.pidfd);
        err = open_files(&opened, info);
    }
    TRY(err);
    *target = opened;
    opened = (struct target_process){0};
    return ERR_OK;
}
