// SPDX-License-Identifier: MIT
#include "attach/executed_path.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/target_file.h"
#include "inject/process/proc_files.h"

// Append where a link in the process's folder of /proc leads, or nothing.
static void append_link(const struct target_process *target, const char *name, struct strbuf *out)
{
    char path[64];
    char text[PATH_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", target->live_tid, name); // fits
    const ssize_t len = readlink(path, text, sizeof(text));
    strbuf_append(out, text, len > 0 ? (size_t)len : 0);
}

// Return the address of the name of the exec; 0 if it is not known.
static uint64_t name_address(const struct target_process *target)
{
    CLEANUP(strbuf_release) struct strbuf auxv = {0};
    Elf64_auxv_t entry;
    if (proc_files_read(target, target->live_tid, "auxv", &auxv, NULL) != ERR_OK) {
        return 0;
    }
    for (size_t at = 0; auxv.len - at >= sizeof(entry); at += sizeof(entry)) {
        memcpy(&entry, auxv.data + at, sizeof(entry));
        if (entry.a_type == AT_EXECFN) {
            return entry.a_un.a_val;
        }
    }
    return 0;
}

// Append a text of the process byte by byte, as the page behind its end may be missing.
static void append_text_at(const struct target_process *target, uint64_t addr, struct strbuf *out)
{
    char byte = 0;
    while (addr != 0 && out->len < PATH_MAX &&
           target_process_read(target, addr, &byte, sizeof(byte)) == ERR_OK && byte != 0) {
        strbuf_append(out, &byte, sizeof(byte));
        addr++;
    }
}

static bool is_executable_of(const struct target_process *target, const char *path)
{
    char link[64];
    struct stat executed;
    struct stat named;
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", target->live_tid); // fits
    return stat(link, &executed) == 0 && target_file_stat(target->live_tid, path, &named) &&
           executed.st_dev == named.st_dev && executed.st_ino == named.st_ino;
}

enum err executed_path_append(const struct target_process *target, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf path = {0};
    append_text_at(target, name_address(target), &name);
    const char *from = strbuf_text(&name);
    if (*from != '/') {
        append_link(target, "cwd", &path);
        strbuf_append_text(&path, "/");
        from += strncmp(from, "./", 2) == 0 ? 2 : 0;
    }
    strbuf_append_text(&path, from);
    // "/proc/self/exe" and "/dev/fd/3" are other files for other processes; "a/../b" is not pretty.
    const char *text = strbuf_text(&path);
    if (*from != '\0' && strncmp(text, "/proc/", 6) != 0 && strncmp(text, "/dev/", 5) != 0 &&
        strstr(text, "/../") == NULL && is_executable_of(target, text)) {
        strbuf_append(out, text, path.len);
    } else {
        append_link(target, "exe", out);
    }
    return strbuf_result(out);
}
