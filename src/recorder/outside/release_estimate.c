// SPDX-License-Identifier: MIT
#include "recorder/outside/release_estimate.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "recorder/outside/glibc_heap.h"
#include "recorder/outside/thread_stacks.h"

enum {
    PAGES_STEP = 4096, // read at once
};

struct reading {
    struct memory_areas map;
    struct u64_vec tops;
    struct u64_vec pointers;
    struct foreign_heap heap;
};

static void reading_release(struct reading *r)
{
    memory_areas_release(&r->map);
    u64_vec_release(&r->tops);
    u64_vec_release(&r->pointers);
    foreign_heap_release(&r->heap);
}

// Count the resident pages of a range. Returns false if they cannot be read.
static bool count_resident(int pagemap, struct address_range range, uint64_t *pages)
{
    uint64_t bits[PAGES_STEP / 64];
    for (uint64_t at = range.start; at < range.end; at += PAGES_STEP * page_bytes()) {
        const size_t count = min_u64(page_count(range.end - at), PAGES_STEP);
        for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
            bits[i] = 0;
        }
        if (!pagemap_read(&pagemap, page_count(at), count, bits)) {
            return false;
        }
        for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
            *pages += (uint64_t)__builtin_popcountll(bits[i]);
        }
    }
    return true;
}

enum err release_estimate_read(pid_t pid, struct release_estimate *out)
{
    CLEANUP(reading_release) struct reading r = {0};
    *out = (struct release_estimate){0};
    pid = proc_file_living(pid);
    TRY(memory_areas_read(pid, &r.map));
    CLEANUP(fd_closep) int memory_fd = proc_file_open(pid, "mem");
    CLEANUP(fd_closep) int pagemap = proc_file_open(pid, "pagemap");
    if (memory_fd < 0 || pagemap < 0) {
        return ERR_PERMISSION;
    }
    const struct memory_source memory = {.read = memory_read, .context = &memory_fd};
    const struct page_source pages = {.read = pagemap_read, .context = &pagemap};
    TRY(thread_stacks_find(pid, &r.map, &memory, &pages, &r.tops, &r.pointers));
    u64_vec_sort_numbers(&r.tops);
    TRY(glibc_heap_read(&r.map, &memory, &r.tops, &r.heap));
    bool is_read = r.heap.is_read && r.heap.is_whole;
    uint64_t count = 0;
    for (size_t i = 0; i < r.heap.free.len && is_read; i++) {
        const struct address_range range = r.heap.free.items[i];
        is_read = foreign_heap_is_top(&r.heap, range) ||
                  count_resident(pagemap, foreign_heap_whole_pages(range), &count);
    }
    *out = (struct release_estimate){.bytes = is_read ? count * page_bytes() : 0,
                                     .is_known = is_read,
                                     .is_unused = !r.heap.is_read};
    return ERR_OK;
}
