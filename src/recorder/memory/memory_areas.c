// SPDX-License-Identifier: MIT
#include "recorder/memory/memory_areas.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "host/text/number.h"

#define SMAPS_BYTES_MAX ((size_t)256 << 20) // some 350,000 mappings
#define PAGES_AT_ONCE   2048u
#define PAGE_PRESENT    ((uint64_t)1 << 63) // pagemap: the page is in memory

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
    uint64_t inode = 0;
    uint32_t major = 0;
    uint32_t minor = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
               &start, &end, permissions, &major, &minor, &inode, &path_at) != 6 ||
        path_at == 0 || start >= end || page_rest(start | end) != 0) {
        return false;
    }
    *out = (struct memory_area){
        .start = start,
        .end = end,
        .device = inode != 0 ? (uint64_t)major << 32 | minor : 0,
        .inode = inode,
        .bss_end = end,
        .path = (size_t)(line + path_at - text),
        .is_accessible = strpbrk(permissions, "rwx") != NULL,
        .is_shared = permissions[3] == 's',
        .may_block = major == 0, // as of each file system without a device
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
    area->shared_bytes += kib_of(line, "Shared_Clean:", bytes - area->shared_bytes);
    area->shared_bytes += kib_of(line, "Shared_Dirty:", bytes - area->shared_bytes);
    area->proportional_bytes += kib_of(line, "Pss:", bytes - area->proportional_bytes);
    area->huge_bytes += kib_of(line, "AnonHugePages:", bytes - area->huge_bytes);
}

// Pss counts the pages of this mapping alone, too.
static void settle_sharing(struct memory_area *area)
{
    area->huge_bytes = min_u64(area->huge_bytes, area->rss_bytes);
    area->shared_bytes = min_u64(area->shared_bytes, area->rss_bytes);
    area->proportional_bytes =
        min_u64(excess_u64(area->proportional_bytes, area->rss_bytes - area->shared_bytes),
                area->shared_bytes);
}

// Make room for an area that begins below the end of the last one: the map changed between two
// reads of the kernel's text, and the later one is right. Return whether the area ends beyond.
static bool cut_overtaken(struct memory_area_vec *areas, const struct memory_area *later)
{
    if (areas->len > 0 && later->end < areas->items[areas->len - 1].end) {
        return false; // no map changes like that
    }
    while (areas->len > 0 && areas->items[areas->len - 1].start >= later->start) {
        areas->len--;
    }
    struct memory_area *last = areas->len > 0 ? areas->items + areas->len - 1 : NULL;
    if (last != NULL && last->end > later->start) {
        const uint64_t bytes = later->start - last->start;
        last->end = later->start;
        last->bss_end = min_u64(last->bss_end, last->end);
        last->rss_bytes = min_u64(last->rss_bytes, bytes);
        last->swap_bytes = min_u64(last->swap_bytes, bytes);
        last->shared_bytes = min_u64(last->shared_bytes, bytes);
        last->proportional_bytes = min_u64(last->proportional_bytes, bytes);
    }
    return true;
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
        } else if (parse_head(line, begin, &head) && cut_overtaken(&areas.areas, &head)) {
            TRY(memory_area_vec_push(&areas.areas, head));
            area = areas.areas.items + areas.areas.len - 1;
        } else {
            return ERR_CORRUPT;
        }
        line = next;
    }
    for (size_t i = 0; i < areas.areas.len; i++) {
        settle_sharing(areas.areas.items + i);
    }
    *out = TAKE(areas);
    return ERR_OK;
}

// Return where the memory of the ELF file ends that is mapped from `start` on: `start` for another
// file, UINT64_MAX if that cannot be read.
static uint64_t end_of_module(int memory, uint64_t start)
{
    union {
        Elf64_Ehdr file;
        uint8_t bytes[PAGE_GRAIN];
    } head;
    if (pread(memory, head.bytes, sizeof(head), (off_t)start) != (ssize_t)sizeof(head)) {
        return UINT64_MAX;
    }
    if (memcmp(head.file.e_ident, ELFMAG, SELFMAG) != 0) {
        return start;
    }
    const size_t table_bytes = head.file.e_phnum * sizeof(Elf64_Phdr);
    if (head.file.e_ident[EI_CLASS] != ELFCLASS64 || table_bytes > sizeof(head) ||
        head.file.e_phoff > sizeof(head) - table_bytes) {
        return UINT64_MAX;
    }
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    for (size_t i = 0; i < head.file.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, head.bytes + head.file.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_LOAD) {
            first = min_u64(first, page_start(segment.p_vaddr));
            last = max_u64(last, segment.p_vaddr + segment.p_memsz);
        }
    }
    return last > first ? page_end(start + last - first) : UINT64_MAX;
}

static bool can_read_head(const struct memory_area *area, const struct page_source *pages)
{
    uint64_t bits = 0;
    return !area->may_block ||
           (pages->read != NULL && pages->read(pages->context, page_count(area->start), 1, &bits) &&
            bits != 0);
}

void memory_areas_bound_bss(struct memory_areas *areas, int memory, const struct page_source *pages)
{
    struct memory_area *items = areas->areas.items;
    size_t first = 0; // of the file that was mapped last: a .bss may lie between its parts
    for (size_t i = 1; i < areas->areas.len; i++) {
        const char *path = memory_area_path(areas, items + i - 1);
        if (path[0] != '\0' && strcmp(path, memory_area_path(areas, items + first)) != 0) {
            first = i - 1;
        }
        if (path[0] == '/' && memory_area_path(areas, items + i)[0] == '\0' &&
            items[i - 1].end == items[i].start) {
            const uint64_t end = items[first].is_shared ? 0
                                 : can_read_head(items + first, pages)
                                     ? end_of_module(memory, items[first].start)
                                     : UINT64_MAX;
            items[i].bss_end = min_u64(items[i].end, max_u64(items[i].start, end));
        }
    }
}

enum err memory_areas_read(pid_t pid, struct memory_areas *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid); // fits
    TRY(file_read(path, SMAPS_BYTES_MAX, &text, NULL));
    if (text.len == 0) {
        return ERR_NOT_FOUND; // a zombie has no map
    }
    TRY(strbuf_result(&text));
    return memory_areas_parse(&text, out);
}

bool memory_areas_is_guarded(const struct memory_areas *areas, size_t index)
{
    const struct memory_area *area = areas->areas.items + index;
    const struct memory_area *guard = index > 0 ? area - 1 : NULL;
    return guard != NULL && guard->end == area->start && !guard->is_accessible &&
           guard->end - guard->start <= MEMORY_GUARD_BYTES_MAX &&
           memory_area_path(areas, area)[0] == '\0';
}

bool memory_read(void *context, uint64_t address, void *out, size_t size_bytes)
{
    const int fd = *(const int *)context;
    return fd >= 0 && pread(fd, out, size_bytes, (off_t)address) == (ssize_t)size_bytes;
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
