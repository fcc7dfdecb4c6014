// SPDX-License-Identifier: MIT
// pid_lookup: see the header.
#include "recorder/pid_lookup.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/file.h"
#include "host/strbuf.h"
#include "recorder/proc_text.h"

#define STATUS_BYTES_MAX 65536u

// 0 if it cannot be seen.
static uint32_t namespace_of(const char *process)
{
    char path[64];
    struct stat found;
    const int length = snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
    return length < (int)sizeof(path) && stat(path, &found) == 0 ? (uint32_t)found.st_ino : 0;
}

uint32_t pid_lookup_innermost(const char *status)
{
    const char *at = proc_text_value(status, "NSpid");
    uint32_t last = 0;
    for (char *end; at != NULL; at = end) {
        at += strspn(at, " \t"); // strtoul would go on to the next line
        if (*at < '0' || *at > '9') {
            break;
        }
        last = (uint32_t)strtoul(at, &end, 10);
    }
    return last;
}

// The text of a process's status; false if it is gone. The caller releases it.
static bool read_status(const char *process, struct strbuf *text)
{
    char path[64];
    struct err_info info;
    const int length = snprintf(path, sizeof(path), "/proc/%s/status", process);
    return length < (int)sizeof(path) && file_read(path, STATUS_BYTES_MAX, text, &info) == ERR_OK;
}

static bool is_it(const char *process, uint32_t inner_pid, uint32_t pid_namespace)
{
    struct strbuf text = {0};
    const bool is_pid =
        read_status(process, &text) && pid_lookup_innermost(strbuf_text(&text)) == inner_pid;
    strbuf_release(&text);
    return is_pid && namespace_of(process) == pid_namespace;
}

pid_t pid_lookup(uint32_t inner_pid, uint32_t pid_namespace)
{
    DIR *all = opendir("/proc");
    if (all == NULL) {
        return 0;
    }
    pid_t found = 0;
    for (const struct dirent *entry; found == 0 && (entry = readdir(all)) != NULL;) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); // 0 if it is no process
        if (pid > 0 && is_it(entry->d_name, inner_pid, pid_namespace)) {
            found = pid;
        }
    }
    (void)closedir(all); // read only
    return found;
}

uint32_t pid_lookup_parent(pid_t pid)
{
    char process[16];
    (void)snprintf(process, sizeof(process), "%d", (int)pid); // fits
    struct strbuf text = {0};
    const char *line =
        read_status(process, &text) ? proc_text_value(strbuf_text(&text), "PPid") : NULL;
    const uint32_t parent = line != NULL ? (uint32_t)strtoul(line, NULL, 10) : 0;
    strbuf_release(&text);
    return parent;
}
