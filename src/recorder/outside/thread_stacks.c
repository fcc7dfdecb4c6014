// SPDX-License-Identifier: MIT
#include "recorder/outside/thread_stacks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/search.h"
#include "host/memory/page_size.h"
#include "host/os/proc_file.h"
#include "host/os/process_search.h"
#include "host/text/proc_text.h"

enum {
    USUAL_BYTES = 8 << 20, // of a stack and its guard
    DEPTH_GRAINS = 16,     // of a thread that sleeps, up to its descriptor
    NEAR_BYTES = 64 << 10, // from a descriptor to the end of its stack
    THREADS_MAX = 4096,
    SYSCALL_BYTES_MAX = 512,
};

struct search {
    const struct memory_areas *map;
    const struct memory_source *memory;
    const struct page_source *pages;
    const struct u64_vec *pointers;
};

// Return the end of the stack that begins with an area, if this part of a page has the descriptor
// of its thread; else 0. A page that is not resident has none, and is not read: that would bring it
// back.
static uint64_t top_by_grain(const struct search *s, const struct memory_area *area, uint64_t at)
{
    uint64_t words[PAGE_GRAIN / sizeof(uint64_t)];
    uint64_t bits = 0;
    if (at < area->start || at >= area->end || s->pages->read == NULL ||
        !s->pages->read(s->pages->context, page_count(at), 1, &bits) || bits == 0 ||
        !s->memory->read(s->memory->context, at, words, sizeof(words))) {
        return 0;
    }
    for (size_t i = 0; i + 1 < ARRAY_LEN(words); i++) {
        const uint64_t start = words[i];
        const uint64_t top = start + words[i + 1];
        if (start < area->start && area->start - start <= MEMORY_GUARD_BYTES_MAX &&
            page_rest(start) == 0 && top > at && top <= area->end && top - at <= NEAR_BYTES &&
            page_rest(top) == 0) {
            return top;
        }
    }
    return 0;
}

// Return the lowest place of a stack pointer whose descriptor may be in an area.
static uint64_t lowest(const struct memory_area *area)
{
    return excess_u64(area->start, (DEPTH_GRAINS - 1) * PAGE_GRAIN);
}

// Each place is looked at once, however many pointers are below it.
static uint64_t top_of(const struct search *s, const struct memory_area *area)
{
    uint64_t top = top_by_grain(s, area, area->end - PAGE_GRAIN);
    top = top != 0 ? top : top_by_grain(s, area, area->start + USUAL_BYTES - 2 * PAGE_GRAIN);
    const struct u64_vec *pointers = s->pointers;
    uint64_t next = area->start; // places before it have been looked at
    for (size_t i =
             FIRST_WHERE(at, pointers->len, grain_start(pointers->items[at]) >= lowest(area));
         top == 0 && i < pointers->len && grain_start(pointers->items[i]) < area->end; i++) {
        const uint64_t end = grain_start(pointers->items[i]) + DEPTH_GRAINS * PAGE_GRAIN;
        next = max_u64(next, grain_start(pointers->items[i]));
        for (; top == 0 && next < min_u64(end, area->end); next += PAGE_GRAIN) {
            top = top_by_grain(s, area, next);
        }
    }
    return top;
}

static enum err find_pointers(pid_t pid, struct u64_vec *pointers)
{
    CLEANUP(u32_vec_release) struct u32_vec threads = {0};
    if (process_search_threads(pid, THREADS_MAX, &threads) == ERR_NO_MEMORY) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < threads.len; i++) {
        char name[64];
        CLEANUP(strbuf_release) struct strbuf text = {0};
        (void)snprintf(name, sizeof(name), "task/%" PRIu32 "/syscall", threads.items[i]); // fits
        const uint64_t pointer = proc_file_read(pid, name, SYSCALL_BYTES_MAX, &text)
                                     ? proc_text_stack_pointer(strbuf_text(&text))
                                     : 0; // it has ended
        if (pointer != 0) {
            TRY(u64_vec_push(pointers, pointer));
        }
    }
    u64_vec_sort_numbers(pointers);
    return ERR_OK;
}

// Return whether a stack may begin with an area: an inaccessible one is before it.
static bool may_be_stack(const struct memory_areas *map, size_t index)
{
    const struct memory_area *area = map->areas.items + index;
    return index > 0 && area[-1].end == area->start && !area[-1].is_accessible &&
           area->is_accessible && area->rss_bytes > 0 && memory_area_path(map, area)[0] == '\0';
}

enum err thread_stacks_find(pid_t pid,
                            const struct memory_areas *map,
                            const struct memory_source *memory,
                            const struct page_source *pages,
                            struct u64_vec *tops,
                            struct u64_vec *pointers)
{
    const struct search s = {.map = map, .memory = memory, .pages = pages, .pointers = pointers};
    bool has_pointers = false;
    for (size_t i = 0; i < map->areas.len; i++) {
        if (!may_be_stack(map, i)) {
            continue;
        }
        TRY(has_pointers ? ERR_OK : find_pointers(pid, pointers));
        has_pointers = true;
        const uint64_t top = top_of(&s, map->areas.items + i);
        if (top != 0) {
            TRY(u64_vec_push(tops, top));
        }
    }
    return ERR_OK;
}
