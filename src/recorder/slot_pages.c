// SPDX-License-Identifier: MIT
// slot_pages: see the header.
#include "recorder/slot_pages.h"

#include <sys/mman.h>

#include "base/compiler.h"

// What is kept for the next to come: of pages a share of what is in use, and the address space of
// the last chunk until the one before it is short of being full by so many pages.
enum {
    SPARE_SHARE = 96,
    SPARE_MIN = 4,
    SPARE_OF_CHUNK = 128,
};

void slot_pages_release(struct slot_pages *pages)
{
    for (size_t i = 0; i < pages->chunks.len; i++) {
        (void)munmap(pages->chunks.items[i], SLOT_CHUNK_BYTES);
    }
    slot_chunk_vec_release(&pages->chunks);
    slot_owner_vec_release(&pages->owners);
    pages->touched_count = 0;
}

static void *memory_of(const struct slot_pages *pages, uint32_t number)
{
    return pages->chunks.items[number / SLOT_CHUNK_PAGES] +
           (size_t)(number % SLOT_CHUNK_PAGES) * SLOT_PAGE_BYTES;
}

// Where a huge page can be, at a multiple of its size.
static char *map_chunk(void)
{
    char *memory = mmap(NULL, 2 * SLOT_CHUNK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    const size_t before = -(uintptr_t)memory % SLOT_CHUNK_BYTES;
    if (before > 0) {
        (void)munmap(memory, before);
    }
    (void)munmap(memory + before + SLOT_CHUNK_BYTES, SLOT_CHUNK_BYTES - before);
    return memory + before;
}

static enum err add_chunk(struct slot_pages *pages)
{
    TRY(slot_chunk_vec_reserve(&pages->chunks, 1));
    char *chunk = map_chunk();
    if (chunk == NULL) {
        return ERR_NO_MEMORY;
    }
    // A forked copy of us writes checkpoints and has no use for the blocks. Failing costs memory.
    (void)madvise(chunk, SLOT_CHUNK_BYTES, MADV_DONTFORK);
    // Not before it is full: a huge page is there as a whole.
    (void)madvise(chunk, SLOT_CHUNK_BYTES, MADV_NOHUGEPAGE);
    if (pages->chunks.len > 0) {
        char *full = pages->chunks.items[pages->chunks.len - 1];
        // Failing costs speed. The kernel makes it a huge page when it finds the time; doing so at
        // once (MADV_COLLAPSE) made pauses of 20 ms.
        (void)madvise(full, SLOT_CHUNK_BYTES, MADV_HUGEPAGE);
    }
    pages->chunks.items[pages->chunks.len++] = chunk;
    return ERR_OK;
}

enum err slot_pages_take(struct slot_pages *pages, struct slot_page *owner)
{
    const uint32_t number = (uint32_t)pages->owners.len;
    TRY(slot_owner_vec_reserve(&pages->owners, 1));
    if (number == pages->chunks.len * SLOT_CHUNK_PAGES) {
        TRY(add_chunk(pages));
    }
    *owner = (struct slot_page){.memory = memory_of(pages, number), .number = number};
    pages->owners.items[pages->owners.len++] = owner;
    if (number < pages->touched_count) {
        memset(owner->memory, 0, SLOT_PAGE_BYTES);
    } else {
        pages->touched_count = number + 1;
    }
    return ERR_OK;
}

// Gives the kernel back what has been touched and is not in use.
static void drop_tail(struct slot_pages *pages)
{
    const uint32_t used = (uint32_t)pages->owners.len;
    while (pages->touched_count > used) {
        const uint32_t chunk = (pages->touched_count - 1) / SLOT_CHUNK_PAGES;
        const uint32_t begin = chunk * SLOT_CHUNK_PAGES;
        const uint32_t first = begin > used ? begin : used;
        // Failing costs memory, and what is there then must not be taken for zeroes.
        if (madvise(memory_of(pages, first),
                    (size_t)(pages->touched_count - first) * SLOT_PAGE_BYTES, MADV_DONTNEED) != 0) {
            return;
        }
        pages->touched_count = first;
    }
}

void slot_pages_give(struct slot_pages *pages, const struct slot_page *owner)
{
    struct slot_page *last = pages->owners.items[--pages->owners.len];
    if (last != owner) {
        memcpy(owner->memory, last->memory, SLOT_PAGE_BYTES);
        *last = *owner;
        pages->owners.items[owner->number] = last;
    }
    const size_t used = pages->owners.len;
    if (pages->touched_count > used + used / SPARE_SHARE + SPARE_MIN) {
        drop_tail(pages);
    }
    if (used + SPARE_OF_CHUNK <= (pages->chunks.len - 1) * SLOT_CHUNK_PAGES) {
        (void)munmap(pages->chunks.items[--pages->chunks.len], SLOT_CHUNK_BYTES);
        const uint32_t held = (uint32_t)pages->chunks.len * SLOT_CHUNK_PAGES;
        pages->touched_count = pages->touched_count < held ? pages->touched_count : held;
    }
}

uint64_t slot_pages_bytes(const struct slot_pages *pages)
{
    return (uint64_t)pages->touched_count * SLOT_PAGE_BYTES + pages->owners.cap * sizeof(void *) +
           pages->chunks.cap * sizeof(void *);
}
