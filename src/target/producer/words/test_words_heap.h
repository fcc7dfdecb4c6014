// SPDX-License-Identifier: MIT
// test_words_heap: addresses as an allocator could give them out, and a list of words that is
// searched from end to end: what a table of words must find. Context: tests, after cmocka.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/test_support/random_numbers.h"
#include "session/books/block_words.h"
#include "target/producer/words/process_words.h"

enum {
    HEAP_UNIT = 8,
    HEAP_BYTES = 8 << 20,
    HEAP_BUSY = 96 << 10, // small blocks are here, so that grains are used again and again
    HEAP_PAGE = 4096,
    NAIVE_MAX = 8192,
};

// How close to each other blocks are.
enum test_allocator {
    ALLOCATOR_GLIBC,   // 32 bytes from start to start, and more
    ALLOCATOR_CLASSES, // as jemalloc: requests of 8 and 16 bytes have pages of their own
    ALLOCATOR_SLOTS,   // as musl: slots of 16 bytes next to larger ones
    ALLOCATOR_CUSTOM,  // anything, with addresses of the program's own allocator
    ALLOCATOR_COUNT,
};

struct test_heap {
    enum test_allocator allocator;
    uint64_t base; // the middle of it is where a region ends
    uint8_t used[HEAP_BYTES / HEAP_UNIT];
    uint32_t page_blocks[HEAP_BYTES / HEAP_PAGE]; // that begin in it
    uint32_t page_class[HEAP_BYTES / HEAP_PAGE];
};

// Return the sizes that have tiny words; NULL: none, or the address says it.
static inline const _Atomic uint32_t *heap_tiny_below(enum test_allocator allocator)
{
    static const _Atomic uint32_t below[ALLOCATOR_COUNT] = {
        [ALLOCATOR_CLASSES] = WORDS_TINY_USUAL, [ALLOCATOR_SLOTS] = WORDS_TINY_SMALL};
    return below[allocator] != WORDS_TINY_NEVER ? below + allocator : NULL;
}

static inline void heap_init(struct test_heap *heap, enum test_allocator allocator)
{
    const uint64_t custom = allocator == ALLOCATOR_CUSTOM ? WIRE_CUSTOM_BLOCK : 0;
    heap->allocator = allocator;
    heap->base = 1000 * WORDS_REGION_BYTES - HEAP_BYTES / 2 + custom;
}

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static inline uint64_t heap_extent(const struct test_heap *heap, uint64_t size_bytes)
{
    switch (heap->allocator) {
    case ALLOCATOR_GLIBC:
        return size_bytes <= 24 ? 32 : round_up(size_bytes + 8, 16);
    case ALLOCATOR_CLASSES:
        return size_bytes <= 8    ? 8
               : size_bytes <= 16 ? 16
               : size_bytes <= 32 ? 32
                                  : round_up(size_bytes, 16);
    case ALLOCATOR_SLOTS:
        return round_up(size_bytes + 4, 16);
    default:
        return size_bytes <= 8 ? 8 : round_up(size_bytes, 8);
    }
}

// The class of pages that a block needs; 0: it shares them with all others.
static inline uint32_t heap_class(const struct test_heap *heap, uint64_t extent)
{
    return heap->allocator == ALLOCATOR_CLASSES ? extent <= 16 ? (uint32_t)extent : 1 : 0;
}

static inline bool heap_is_free(const struct test_heap *heap, uint64_t at, uint64_t extent)
{
    if (memchr(heap->used + at / HEAP_UNIT, true, extent / HEAP_UNIT) != NULL) {
        return false;
    }
    for (uint64_t p = at / HEAP_PAGE; p <= (at + extent - 1) / HEAP_PAGE; p++) {
        if (heap->page_blocks[p] > 0 && heap->page_class[p] != heap_class(heap, extent)) {
            return false;
        }
    }
    return true;
}

static inline void heap_mark(struct test_heap *heap, uint64_t at, uint64_t extent, bool is_used)
{
    memset(heap->used + at / HEAP_UNIT, is_used, extent / HEAP_UNIT);
    for (uint64_t p = at / HEAP_PAGE; p <= (at + extent - 1) / HEAP_PAGE; p++) {
        heap->page_blocks[p] += is_used ? 1 : -1u;
        heap->page_class[p] = heap_class(heap, extent);
    }
}

// Return an address for a block; 0: none was found.
static inline uint64_t heap_take(struct test_heap *heap, uint64_t size_bytes, uint64_t *random)
{
    const uint64_t extent = heap_extent(heap, size_bytes);
    const uint64_t align = heap->allocator == ALLOCATOR_CUSTOM || extent == 8 ? 8 : 16;
    const uint64_t room = extent < HEAP_BUSY / 4 ? HEAP_BUSY : HEAP_BYTES;
    const uint64_t first = (HEAP_BYTES - room) / 2;
    for (int tries = 0; tries < 40; tries++) {
        const uint64_t at = first + next_random(random) % (room - extent) / align * align;
        if (heap_is_free(heap, at, extent)) {
            heap_mark(heap, at, extent, true);
            return heap->base + at;
        }
    }
    return 0;
}

static inline void heap_give(struct test_heap *heap, uint64_t address, uint64_t size_bytes)
{
    heap_mark(heap, address - heap->base, heap_extent(heap, size_bytes), false);
}

// Half of the sizes are tiny, some have a table of their own, few are large.
static inline uint64_t random_size(uint64_t *random)
{
    const uint64_t r = next_random(random);
    const uint64_t more = r >> 32;
    return r % 16 < 7    ? more % 25
           : r % 16 < 11 ? more % 256
           : r % 16 < 13 ? 256 + more % 3840
           : r % 16 < 15 ? 4096 + more % 12000
           : r % 64 < 32 ? 131064 + more % 16
                         : (1 << 20) + more % (300 << 10);
}

struct naive_word {
    struct word_block block;
    uint32_t table; // bits of its grain
};

struct naive_words {
    uint64_t base;
    uint32_t count;
    uint32_t tiny_below;
    struct naive_word words[NAIVE_MAX];
    bool is_marked[HEAP_BYTES / 32];
};

static inline void naive_remove(struct naive_words *n, uint32_t i)
{
    n->words[i] = n->words[--n->count];
}

// Add a block, and move those that it ends to `ended`. Return their number.
static inline uint32_t
naive_put(struct naive_words *n, const struct word_block *block, struct word_block *ended)
{
    const uint64_t size = block->size_bytes;
    bool *mark = &n->is_marked[(block->address - n->base) / 32];
    const bool is_tiny = size < n->tiny_below;
    const uint32_t table = size >= 4096 ? 12 : size >= 256 ? 8 : *mark || is_tiny ? 3 : 5;
    const bool is_first_tiny = table == 3 && !*mark;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->count;) {
        const struct naive_word *w = &n->words[i];
        if (w->block.address == block->address ||
            (w->table == table && w->block.address >> table == block->address >> table) ||
            (is_first_tiny && w->table == 5 && w->block.address >> 5 == block->address >> 5)) {
            ended[count++] = w->block;
            naive_remove(n, i);
        } else {
            i++;
        }
    }
    if (block->row != 0) {
        *mark |= is_first_tiny;
        n->words[n->count++] = (struct naive_word){.block = *block, .table = table};
    }
    return count;
}

static inline bool naive_take(struct naive_words *n, uint64_t address, struct word_block *out)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->words[i].block.address == address) {
            *out = n->words[i].block;
            naive_remove(n, i);
            return true;
        }
    }
    return false;
}

static inline bool is_same_block(const struct word_block *a, const struct word_block *b)
{
    return a->address == b->address && a->size_bytes == b->size_bytes && a->row == b->row &&
           a->birth_ms == b->birth_ms;
}

// A file of words for a test. Returns its descriptor.
static inline int words_file_new(void)
{
    const int fd = memfd_create("words", MFD_CLOEXEC);
    const uint64_t magic = WORDS_MAGIC;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)WORDS_FILE_BYTES), 0);
    assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
    return fd;
}

static inline long words_file_again(const void *context)
{
    // ThreadSanitizer does not see that words_source.c closes it, and reports its number as a race.
    return syscall(SYS_dup, *(const int *)context);
}
