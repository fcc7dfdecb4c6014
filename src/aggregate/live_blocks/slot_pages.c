// SPDX-License-Identifier: MIT
// slot_pages: see the header.
#include "aggregate/live_blocks/slot_pages.h"

#include <sys/mman.h>

#include "base/compiler.h"
#include "base/minmax.h"

// What is kept for the next to come: of pages a share of what is in use, and the address space of
// the last chunk until the one before it is short of being full by so many pages.
enum {
    SPARE_SHARE = 96,
    SPARE_MIN = 4,
    SPARE_OF_CHUNK = 128,
};

void slot_pages_release(struct slot_pages *pages)
{
    chunk_maker_end(pages->maker);
    for (size_t i = 0; i < pages->chunks.len; i++) {
        chunk_unmap(pages->chunks.items[i]);
    }
    slot_chunk_vec_release(&pages->chunks);
    slot_owner_vec_release(&pages->owners);
    *pages = (struct slot_pages){0};
}

static enum err add_chunk(struct slot_pages *pages)
{
    TRY(slot_chunk_vec_reserve(&pages->chunks, 1));
    char *chunk = chunk_map();
    if (chunk == NULL) {
        return ERR_NO_MEMORY;
    }
    pages->chunks.items[pages->chunks.len++] = chunk;
    return ERR_OK;
}

char *slot_pages_move_chunk(struct slot_pages *pages, size_t index, char *chunk)
{
    char *old = pages->chunks.items[index];
    memcpy(chunk, old, CHUNK_BYTES);
    pages->chunks.items[index] = chunk;
    return old;
}

static bool has_full_chunk(const struct slot_pages *pages)
{
    return pages->owners.len / SLOT_CHUNK_PAGES > pages->huge_count;
}

// The next full chunk moves to `chunk`, or stays where it is if that is NULL: then the kernel may
// make a huge page of it when it finds the time.
static void move_next(struct slot_pages *pages, char *chunk)
{
    if (chunk != NULL) {
        chunk_maker_discard(pages->maker, slot_pages_move_chunk(pages, pages->huge_count, chunk));
    } else {
        (void)madvise(pages->chunks.items[pages->huge_count], CHUNK_BYTES, MADV_HUGEPAGE);
    }
    pages->huge_count++;
}

// There is a full chunk of small pages. One at a time moves to a huge page, when there is one.
static NOINLINE void follow_huge(struct slot_pages *pages)
{
    if (pages->maker == NULL) {
        pages->maker = chunk_maker_begin();
        if (pages->maker == NULL) {
            move_next(pages, NULL);
            return;
        }
    }
    char *chunk = NULL;
    if (pages->is_huge_asked) {
        if (!chunk_maker_fetch(pages->maker, &chunk)) {
            return;
        }
        pages->is_huge_asked = false;
        move_next(pages, chunk);
    }
    if (has_full_chunk(pages)) {
        chunk_maker_ask(pages->maker);
        pages->is_huge_asked = true;
    }
}

// Chunk `index` and what is behind it are not full any more.
static void forget_huge(struct slot_pages *pages, uint32_t index)
{
    pages->huge_count = min_u64(pages->huge_count, index);
    if (pages->is_huge_asked && !has_full_chunk(pages)) {
        chunk_maker_cancel(pages->maker);
        pages->is_huge_asked = false;
    }
}

enum err slot_pages_take(struct slot_pages *pages, uint32_t *owner)
{
    const uint32_t number = (uint32_t)pages->owners.len;
    TRY(slot_owner_vec_reserve(&pages->owners, 1));
    if (number == pages->chunks.len * SLOT_CHUNK_PAGES) {
        TRY(add_chunk(pages));
    }
    *owner = number;
    pages->owners.items[pages->owners.len++] = owner;
    if (number < pages->touched_count) {
        memset(slot_pages_at(pages, number), 0, SLOT_PAGE_BYTES);
    } else {
        pages->touched_count = number + 1;
    }
    if (UNLIKELY(has_full_chunk(pages))) {
        follow_huge(pages);
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
        if (madvise(slot_pages_at(pages, first),
                    (size_t)(pages->touched_count - first) * SLOT_PAGE_BYTES, MADV_DONTNEED) != 0) {
            return;
        }
        pages->touched_count = first;
        // A huge page of which a part is missing is none, and a whole one would come back whole.
        forget_huge(pages, chunk);
        (void)madvise(slot_pages_at(pages, begin), CHUNK_BYTES,
                      MADV_NOHUGEPAGE); // failing costs memory
    }
}

void slot_pages_give(struct slot_pages *pages, const uint32_t *owner)
{
    uint32_t *last = pages->owners.items[--pages->owners.len];
    if (last != owner) {
        memcpy(slot_pages_at(pages, *owner), slot_pages_at(pages, *last), SLOT_PAGE_BYTES);
        *last = *owner;
        pages->owners.items[*owner] = last;
    }
    const size_t used = pages->owners.len;
    if (pages->touched_count > used + used / SPARE_SHARE + SPARE_MIN) {
        drop_tail(pages);
    }
    if (used + SPARE_OF_CHUNK <= (pages->chunks.len - 1) * SLOT_CHUNK_PAGES) {
        chunk_unmap(pages->chunks.items[--pages->chunks.len]);
        forget_huge(pages, (uint32_t)pages->chunks.len);
        const uint32_t held = (uint32_t)pages->chunks.len * SLOT_CHUNK_PAGES;
        pages->touched_count = min_u64(pages->touched_count, held);
    }
}

uint64_t slot_pages_bytes(const struct slot_pages *pages)
{
    return (uint64_t)pages->touched_count * SLOT_PAGE_BYTES + pages->owners.cap * sizeof(void *) +
           pages->chunks.cap * sizeof(void *);
}
