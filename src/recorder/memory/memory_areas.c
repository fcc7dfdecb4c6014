// SPDX-License-Identifier: MIT
#include "recorder/memory/memory_areas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

#define SMAPS_BYTES_MAX   ((size_t)256 << 20) // some 350,000 mappings
#define PAGES_AT_ONCE     2048u
#define MEMORY_PAGE_BYTES 4096u               // the smallest of any kernel
#define PAGE_PRESENT      ((uint64_t)1 << 63) // pagemap: the page is in memory

void memory_areas_release(struct memory_areas *areas)
{
    memory_area_vec_release(&areas->areas);
    strbuf_release(&areas->text);
}

const char *memory_area_path(const struct memory_areas *areas, const struct memory_area *area)
{
    return strbuf_text(&areas->text) + area->path;
}

// proc(5): "start-end perms offset device inode   path". Return whether the line is one.
static bool parse_head(char *line, const char *text, struct memory_area *out)
{
    char permissions[5] = "";
    int path_at = 0;
    uint64_t start = 0;
    uint64_t end = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %*u %n", &start, &end, permissions,
               &path_at) != 3 ||
        path_at == 0 || start >= end || start % MEMORY_PAGE_BYTES != 0 ||
        end % MEMORY_PAGE_BYTES != 0) {
        return false;
    }
    *out = (struct memory_area){
        .start = start,
        .end = end,
        .path = (size_t)(line + path_at - text),
        .is_accessible = strpbrk(permissions, "rwx") != NULL,
        .is_shared = permissions[3] == 's',
    };
    return true;
}

// Parse "Key:     123 kB", but at most `max`. Return 0 for another key.
static uint64_t kib_of(const char *line, const char *key, uint64_t max)
{
    const size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) {
        return 0;
    }
    const uint64_t kib = number_field(line + length);
    return kib < max / 1024 ? kib * 1024 : max;
}

static void take_figures(const char *line, struct memory_area *area)
{
    const uint64_t bytes = area->end - area->start;
    area->rss_bytes += kib_of(line, "Rss:", bytes - area->rss_bytes);
    area->swap_bytes += kib_of(line, "Swap:", bytes - area->swap_bytes);
}

enum err memory_areas_parse(struct strbuf *text, struct memory_areas *out)
{
    CLEANUP(memory_areas_release) struct memory_areas areas = {.text = *text};
    *text = (struct strbuf){0};
    char *begin = areas.text.data;
    char *end = begin + areas.text.len;
    struct memory_area *area = NULL;
    for (char *line = begin; line < end;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *next = newline != NULL ? newline + 1 : end;
        if (newline != NULL) {
            *newline = '\0';
        }
        struct memory_area head;
        if (line[0] >= 'A' && line[0] <= 'Z') {
            if (area == NULL) {
                return ERR_CORRUPT;
            }
            take_figures(line, area);
        } else if (parse_head(line, begin, &head) && (area == NULL || area->end <= head.start)) {
            TRY(memory_area_vec_push(&areas.areas, head));
            area = areas.areas.items + areas.areas.len - 1;
        } else {
            return ERR_CORRUPT;
        }
        line = next;
    }
    *out = TAKE(areas);
    return ERR_OK;
}

enum err memory_areas_read(pid_t pid, struct memory_areas *out)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid); // fits
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info;
    TRY(file_read(path, SMAPS_BYTES_MAX, &text, &info));
    TRY(strbuf_result(&text));
    if (text.len == 0) {
        return ERR_NOT_FOUND; // a zombie has no map
    }
    return memory_areas_parse(&text, out);
}

bool pagemap_read(void *context, uint64_t first_page, size_t count, uint64_t *bits)
{
    const int fd = *(const int *)context;
    uint64_t entries[PAGES_AT_ONCE];
    for (size_t at = 0; at < count;) {
        const size_t wanted = count - at < ARRAY_LEN(entries) ? count - at : ARRAY_LEN(entries);
        const ssize_t got = pread(fd, entries, wanted * sizeof(*entries),
                                  (off_t)((first_page + at) * sizeof(*entries)));
        if (got < (ssize_t)sizeof(*entries)) {
            return false;
        }
        const size_t pages = (size_t)got / sizeof(*entries);
        for (size_t i = 0; i < pages; i++) {
            bits[(at + i) / 64] |= (uint64_t)((entries[i] & PAGE_PRESENT) != 0) << (at + i) % 64;
        }
        at += pages;
    }
    return true;
}
