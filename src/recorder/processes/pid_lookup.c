// SPDX-License-Identifier: MIT
// pid_lookup: see the header.
#include "recorder/processes/pid_lookup.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "host/text/strbuf.h"

#define STATUS_BYTES_MAX 65536u
#define MAPS_BYTES_MAX   (16u << 20) // of the 65530 mappings that a process may have

enum {
    PID_TEXT_BYTES = 16,
    MAPPING_TEXT_BYTES = 64,
};

struct sought {
    uint32_t inner_pid;
    uint32_t pid_namespace;           // used only without a
    char mapping[MAPPING_TEXT_BYTES]; // device and inode as in proc's maps, or ""
    bool believes_unseen;             // a process with unreadable mappings matches, too
};

// Return 0 if it cannot be seen.
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
    uint64_t last = 0;
    at = at != NULL ? at : "";
    do {
        at += strspn(at, " \t"); // not on the next line
    } while (number_take(&at, 10, &last));
    return (uint32_t)last;
}

// Read one of a process's texts; false if it has ended, or is unreadable. The caller releases it.
static bool read_text(const char *process, const char *name, size_t max_bytes, struct strbuf *text)
{
    char path[64];
    struct err_info info;
    const int length = snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
    return length < (int)sizeof(path) && file_read(path, max_bytes, text, &info) == ERR_OK;
}

// Return whether the process matches; `unseen` if its mappings are unreadable.
static bool has_mapping(const char *process, const char *mapping, bool unseen)
{
    struct strbuf text = {0};
    const bool has_it = read_text(process, "maps", MAPS_BYTES_MAX, &text)
                            ? strstr(strbuf_text(&text), mapping) != NULL
                            : unseen;
    strbuf_release(&text);
    return has_it;
}

static bool is_it(const char *process, const struct sought *sought)
{
    struct strbuf text = {0};
    const bool is_pid = read_text(process, "status", STATUS_BYTES_MAX, &text) &&
                        pid_lookup_innermost(strbuf_text(&text)) == sought->inner_pid;
    strbuf_release(&text);
    if (!is_pid || sought->mapping[0] == '\0') {
        return is_pid && namespace_of(process) == sought->pid_namespace;
    }
    return has_mapping(process, sought->mapping, sought->believes_unseen);
}

// Find the first matching process. `name` gets its pid as a text. False: there is none.
static bool find_process(const struct sought *sought, char name[PID_TEXT_BYTES])
{
    DIR *all = opendir("/proc");
    if (all == NULL) {
        return false;
    }
    bool has_found = false;
    for (const struct dirent *entry; !has_found && (entry = readdir(all)) != NULL;) {
        if (number_field(entry->d_name) > 0 && strlen(entry->d_name) < PID_TEXT_BYTES &&
            is_it(entry->d_name, sought)) {
            (void)snprintf(name, PID_TEXT_BYTES, "%.15s", entry->d_name); // all of it, see above
            has_found = true;
        }
    }
    (void)closedir(all); // read only
    return has_found;
}

pid_t pid_lookup(uint32_t inner_pid, uint32_t pid_namespace)
{
    const struct sought sought = {.inner_pid = inner_pid, .pid_namespace = pid_namespace};
    char name[PID_TEXT_BYTES];
    return find_process(&sought, name) ? (pid_t)number_field(name) : 0;
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
    char name[PID_TEXT_BYTES];
    if (!find_process(&sought, name)) {
        (void)snprintf(name, sizeof(name), "%u", inner_pid); // fits
        sought.believes_unseen = true;
        return is_it(name, &sought) ? namespace_of(name) : 0;
    }
    return namespace_of(name);
}

// In kernel ticks; 0 if it cannot be read.
static uint64_t start_of(const char *process)
{
    struct strbuf text = {0};
    const bool is_read = read_text(process, "stat", STATUS_BYTES_MAX, &text);
    const uint64_t start = is_read ? proc_text_start(strbuf_text(&text)) : 0;
    strbuf_release(&text);
    return start;
}

bool pid_lookup_may_map(pid_t pid, int mapped_file)
{
    char mapping[MAPPING_TEXT_BYTES];
    char process[PID_TEXT_BYTES];
    (void)snprintf(process, sizeof(process), "%d", (int)pid); // fits
    return !mapping_of(mapped_file, mapping) ||
           has_mapping(process, mapping, start_of(process) >= start_of("self"));
}

uint32_t pid_lookup_parent(pid_t pid)
{
    char process[16];
    (void)snprintf(process, sizeof(process), "%d", (int)pid); // fits
    struct strbuf text = {0};
    const char *line = read_text(process, "status", STATUS_BYTES_MAX, &text)
                           ? proc_text_value(strbuf_text(&text), "PPid")
                           : NULL;
    const uint32_t parent = line != NULL ? (uint32_t)number_field(line) : 0;
    strbuf_release(&text);
    return parent;
}
