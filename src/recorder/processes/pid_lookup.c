// SPDX-License-Identifier: MIT
#include "recorder/processes/pid_lookup.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"

#define STATUS_BYTES_MAX 65536u
#define TGID_FROM_PIDNS  _IOR(0xb7, 7, int) // linux/nsfs.h from 6.11 on: NS_GET_TGID_FROM_PIDNS
#define MAPS_BYTES_MAX   (16u << 20)        // of the 65530 mappings that a process may have

enum {
    MAPPING_TEXT_BYTES = 64,
};

struct sought {
    uint32_t inner_pid;
    uint32_t pid_namespace;           // used only without a
    char mapping[MAPPING_TEXT_BYTES]; // device and inode as in proc's maps, or ""
    bool takes_unseen;                // a process with unreadable mappings matches, too
};

// The namespace that was looked into last.
static struct {
    uint32_t number;
    int fd; // -1: none
} g_open = {.fd = -1};

// Return 0 if it cannot be seen.
static uint32_t namespace_of(pid_t pid)
{
    char path[64];
    struct stat found;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid); // fits
    return stat(path, &found) == 0 ? (uint32_t)found.st_ino : 0;
}

// Return whether the process matches; `unseen` if its mappings are unreadable.
static bool has_mapping(pid_t pid, const char *mapping, bool unseen)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    bool is_read = proc_file_read(pid, "maps", MAPS_BYTES_MAX, &text);
    if (is_read && text.len == 0) {
        is_read = proc_file_read(proc_file_living(pid), "maps", MAPS_BYTES_MAX, &text);
    }
    return is_read ? strstr(strbuf_text(&text), mapping) != NULL : unseen;
}

static bool is_it(pid_t pid, const struct sought *sought)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const bool is_by_mapping = sought->mapping[0] != '\0';
    if (!is_by_mapping && namespace_of(pid) != sought->pid_namespace) {
        return false; // half the work of reading its status
    }
    const bool is_pid = proc_file_read(pid, "status", STATUS_BYTES_MAX, &text) &&
                        proc_text_innermost_pid(strbuf_text(&text)) == sought->inner_pid;
    if (!is_pid || !is_by_mapping) {
        return is_pid;
    }
    return has_mapping(pid, sought->mapping, sought->takes_unseen);
}

// Return the first matching process, 0 if there is none.
static pid_t find_process(const struct sought *sought)
{
    CLEANUP(directory_closep) DIR *all = opendir("/proc");
    if (all == NULL) {
        return 0;
    }
    pid_t found = 0;
    for (const struct dirent *entry; found == 0 && (entry = readdir(all)) != NULL;) {
        const pid_t pid = (pid_t)number_field(entry->d_name);
        found = pid > 0 && is_it(pid, sought) ? pid : 0;
    }
    return found;
}

// Keep the namespace of a process open, so that the kernel translates its pids. While it is open,
// no other gets its number.
static void keep_open(pid_t pid, uint32_t pid_namespace)
{
    struct stat opened;
    const int fd = proc_file_open(pid, "ns/pid");
    if (fd >= 0 && fstat(fd, &opened) == 0 && (uint32_t)opened.st_ino == pid_namespace) {
        fd_closep(&g_open.fd);
        g_open.number = pid_namespace;
        g_open.fd = fd;
    } else if (fd >= 0) {
        (void)close(fd); // the pid has changed hands
    }
}

pid_t pid_lookup(uint32_t inner_pid, uint32_t pid_namespace)
{
    if (g_open.fd >= 0 && g_open.number == pid_namespace) {
        const int pid = ioctl(g_open.fd, TGID_FROM_PIDNS, (unsigned long)inner_pid);
        if (pid > 0 || errno == ESRCH) {
            return pid > 0 ? pid : 0;
        }
    }
    const struct sought sought = {.inner_pid = inner_pid, .pid_namespace = pid_namespace};
    const pid_t found = find_process(&sought);
    if (found > 0) {
        keep_open(found, pid_namespace);
    }
    return found;
}

struct inner_pid pid_lookup_inner(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct inner_pid inner = {.pid_namespace = namespace_of(pid)};
    if (proc_file_read(pid, "status", STATUS_BYTES_MAX, &text)) {
        inner.pid = proc_text_innermost_pid(strbuf_text(&text));
    }
    return inner;
}

// Format the file as proc's maps do; false: it does not exist.
static bool mapping_of(int mapped_file, char text[MAPPING_TEXT_BYTES])
{
    struct stat file;
    if (fstat(mapped_file, &file) != 0) {
        return false;
    }
    (void)snprintf(text, MAPPING_TEXT_BYTES, " %02x:%02x %ju ", major(file.st_dev),
                   minor(file.st_dev), (uintmax_t)file.st_ino); // fits
    return true;
}

uint32_t pid_lookup_namespace(uint32_t inner_pid, int mapped_file)
{
    struct sought sought = {.inner_pid = inner_pid};
    if (!mapping_of(mapped_file, sought.mapping)) {
        return 0;
    }
    const pid_t found = find_process(&sought);
    if (found > 0) {
        return namespace_of(found);
    }
    sought.takes_unseen = true;
    return is_it((pid_t)inner_pid, &sought) ? namespace_of((pid_t)inner_pid) : 0;
}

bool pid_lookup_maps(pid_t pid, int mapped_file)
{
    char mapping[MAPPING_TEXT_BYTES];
    return mapping_of(mapped_file, mapping) && has_mapping(pid, mapping, false);
}

bool pid_lookup_may_map(pid_t pid, int mapped_file)
{
    char mapping[MAPPING_TEXT_BYTES];
    return !mapping_of(mapped_file, mapping) ||
           has_mapping(pid, mapping, proc_file_start(pid) >= proc_file_own_start());
}
