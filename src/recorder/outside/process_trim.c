// SPDX-License-Identifier: MIT
#include "recorder/outside/process_trim.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"
#include "recorder/outside/glibc_heap.h"
#include "recorder/outside/thread_stacks.h"

enum {
    LIMIT_MS = 120000, // of a release
    STATM_BYTES_MAX = 4096,
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
    for (uint64_t at = range.start; at < range.end; at += PAGES_STEP * page_bytes()) {
        uint64_t bits[PAGES_STEP / 64] = {0};
        const size_t count = min_u64(page_count(range.end - at), PAGES_STEP);
        if (!pagemap_read(&pagemap, page_count(at), count, bits)) {
            return false;
        }
        for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
            *pages += (uint64_t)__builtin_popcountll(bits[i]);
        }
    }
    return true;
}

// ERR_NOT_FOUND: it has ended; other errors: it may not be read.
static MUST_USE enum err estimate_release(pid_t pid, struct release_estimate *out)
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

static uint64_t resident_bytes(int pid)
{
    CLEANUP(strbuf_release) struct strbuf statm = {0};
    return proc_file_read(pid, "statm", STATM_BYTES_MAX, &statm)
               ? proc_text_pages(strbuf_text(&statm)).resident * page_bytes()
               : 0;
}

// Add what other allocators than glibc have said. One that did not leaves the sum unknown.
static void add_promises(struct process_trim *o)
{
    uint64_t bytes = 0;
    bool is_any = false;
    bool is_all = true;
    for (size_t i = 0; i < o->trim.count; i++) {
        const struct trim_call *call = o->trim.calls + i;
        is_any = is_any || call->is_promised;
        is_all = is_all && (call->is_promised || strcmp(call->allocator, "glibc") == 0);
        bytes += call->promised_bytes;
    }
    const bool is_known = is_all && (o->promised.is_known || (is_any && o->promised.is_unused));
    o->promised = (struct release_estimate){.bytes = is_known ? o->promised.bytes + bytes : 0,
                                            .is_known = is_known};
}

enum err
process_trim_run(int pid, uint64_t patience_ms, struct process_trim *out, struct err_info *info)
{
    *out = (struct process_trim){0};
    if (estimate_release(pid, &out->promised) != ERR_OK) {
        out->promised.is_known = false; // what can be done is done without it
    }
    out->before_bytes = resident_bytes(pid);
    TRY(trim_run(pid, (uint32_t)min_u64(patience_ms, UINT32_MAX), LIMIT_MS, &out->trim, info));
    out->after_bytes = resident_bytes(pid);
    add_promises(out);
    return ERR_OK;
}
