// SPDX-License-Identifier: MIT
// memory_limit: see memory_limit.h.
#include "host/os/memory_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"

enum {
    LINE_MAX_BYTES = 4096
};

// Return the number in a file; UINT64_MAX if it has none ("max").
static uint64_t number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    uint64_t number = UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &number) != 1) {
        number = UINT64_MAX;
    }
    (void)fclose(file); // read only
    return number;
}

// Return the smallest `file` of the group at `path` below `root` and of all groups around it.
static uint64_t
least_around(const char *root, const char *hierarchy, const char *path, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (size_t len = strlen(path);; len--) {
        if (len == 0 || path[len] == '/' || path[len] == '\0') {
            CLEANUP(strbuf_release) struct strbuf name = {0};
            strbuf_printf(&name, "%s%s%.*s/%s", root, hierarchy, (int)len, path, file);
            const uint64_t number =
                strbuf_result(&name) == ERR_OK ? number_in(strbuf_text(&name)) : UINT64_MAX;
            least = min_u64(least, number);
        }
        if (len == 0) {
            return least;
        }
    }
}

static bool has_word(const char *words, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == words || at[-1] == ',') && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

// Return the limit for a line "number:controllers:path"; version 2 has no controllers.
static uint64_t limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return UINT64_MAX;
    }
    *path++ = '\0';
    controllers++;
    path[strcspn(path, "\n")] = '\0';
    if (controllers[0] == '\0') {
        const uint64_t most = least_around(root, "", path, "memory.max");
        const uint64_t high = least_around(root, "", path, "memory.high");
        return most < high ? most : high;
    }
    return has_word(controllers, "memory")
               ? least_around(root, "/memory", path, "memory.limit_in_bytes")
               : UINT64_MAX;
}

uint64_t memory_limit_of(const char *proc_cgroup, const char *cgroup_root, uint64_t machine_bytes)
{
    uint64_t limit = machine_bytes;
    FILE *file = fopen(proc_cgroup, "re");
    if (file == NULL) {
        return limit;
    }
    char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof(line), file) != NULL) {
        const uint64_t here = limit_of_line(cgroup_root, line);
        limit = min_u64(limit, here);
    }
    (void)fclose(file); // read only
    return limit;
}

uint64_t memory_limit_here(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    const uint64_t machine_bytes =
        pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    return memory_limit_of("/proc/self/cgroup", "/sys/fs/cgroup", machine_bytes);
}
