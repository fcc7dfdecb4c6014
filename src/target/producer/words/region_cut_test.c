// SPDX-License-Identifier: MIT
// A process that limits its addresses gives back the words that it does not use: what had words
// keeps them, all other blocks have entries, whatever threads do meanwhile.
#include "target/producer/words/region_cut.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "target/producer/words/live_entries.h"
#include "target/producer/words/test_words_heap.h"

enum {
    EVENTS = 20000,
    ALIVE_MAX = 1500,
    THREADS = 4,
    THREAD_BLOCKS = 2000,
    THREAD_ROUNDS = 20,
};

static struct process_words *open_words(int *fd, const _Atomic uint32_t *tiny_below)
{
    const struct words_source source = {.open = words_file_again, .context = fd};
    *fd = words_file_new();
    struct process_words *words = process_words_new();
    assert_non_null(words);
    assert_int_equal(process_words_open(words, &source, 1, tiny_below), ERR_OK);
    return words;
}

// As book.c does it.
static bool put(struct process_words *words, const struct word_block *block)
{
    struct words_ended ended = {.count = 0};
    const bool is_put = ((block->address & WIRE_CUSTOM_BLOCK) == 0 ||
                         words_have_room(words, block->address, block->size_bytes)) &&
                        words_put(words, block, &ended);
    return (is_put || entries_put(words, block)) && ended.count == 0;
}

static bool take(struct process_words *words, const struct word_block *expected)
{
    struct word_block found;
    return (words_take(words, expected->address, &found) ||
            entries_take(words, expected->address, &found)) &&
           is_same_block(&found, expected);
}

// Return how much of a region this process has mapped.
static uint64_t mapped_bytes(const struct words_region *region)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    const uint64_t first = (uint64_t)region;
    uint64_t sum = 0;
    uint64_t start;
    uint64_t end;
    assert_non_null(maps);
    while (fscanf(maps, "%lx-%lx%*[^\n]\n", &start, &end) == 2) {
        start = start > first ? start : first;
        end = end < first + sizeof(*region) ? end : first + sizeof(*region);
        sum += start < end ? end - start : 0;
    }
    (void)fclose(maps);
    return sum;
}

struct run {
    struct process_words *words;
    struct test_heap *heap;
    struct word_block alive[ALIVE_MAX];
    size_t count;
    uint64_t random;
};

static void step(struct run *r, uint64_t now)
{
    if (r->count < ALIVE_MAX) {
        const uint64_t size = random_size(&r->random);
        const uint64_t address = heap_take(r->heap, size, &r->random);
        const struct word_block block = {
            .address = address, .size_bytes = size, .birth_ms = now % 1000, .row = 7};
        if (address != 0) {
            assert_true(put(r->words, &block));
            r->alive[r->count++] = block;
        }
    }
    if (r->count > 0 && next_random(&r->random) % 3 != 0) {
        const size_t k = next_random(&r->random) % r->count;
        assert_true(take(r->words, r->alive + k));
        heap_give(r->heap, r->alive[k].address, r->alive[k].size_bytes);
        r->alive[k] = r->alive[--r->count];
    }
}

static void each_free_finds_its_block(void **state)
{
    (void)state;
    for (enum test_allocator allocator = 0; allocator < ALLOCATOR_COUNT; allocator++) {
        int fd;
        struct run *r = calloc(1, sizeof(*r));
        assert_non_null(r);
        r->heap = calloc(1, sizeof(*r->heap));
        assert_non_null(r->heap);
        heap_init(r->heap, allocator);
        r->words = open_words(&fd, heap_tiny_below(allocator));
        r->random = 3 + (uint64_t)allocator;
        for (uint64_t i = 0; i < EVENTS; i++) {
            if (i == EVENTS / 100) { // most of the heap has had no block yet
                process_words_map_leanly(r->words, false);
            }
            step(r, i);
        }
        while (r->count > 0) {
            assert_true(take(r->words, r->alive + --r->count));
        }
        free(r->heap);
        free(r);
        (void)close(fd);
    }
}

// A heap of little more than a page leaves little more than the notes of a region.
static void what_is_unused_is_unmapped(void **state)
{
    (void)state;
    static const _Atomic uint32_t below = WORDS_TINY_USUAL;
    static const _Atomic uint32_t never = WORDS_TINY_NEVER;
    const _Atomic uint32_t *const kinds[] = {NULL, &never, &below};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        int fd;
        struct process_words *words = open_words(&fd, kinds[i]);
        const struct word_block block = {.address = 0x7f0002000040, .size_bytes = 8, .row = 5};
        assert_true(put(words, &block));
        const struct words_region *region = process_words_find(words, block.address);
        process_words_map_leanly(words, false);
        const uint64_t bytes = mapped_bytes(region);
        printf("%lu KiB are mapped\n", bytes >> 10);
        assert_in_range(bytes, 64 << 10, 512 << 10);
        assert_true(take(words, &block));
        (void)close(fd);
    }
}

// Blocks may need tiny words only afterwards, because an allocator is loaded.
static void tiny_blocks_that_come_later_have_entries(void **state)
{
    (void)state;
    int fd;
    static _Atomic uint32_t below = WORDS_TINY_NEVER;
    struct process_words *words = open_words(&fd, &below);
    const struct word_block first = {.address = 0x7f0002000040, .size_bytes = 20, .row = 5};
    const struct word_block tiny = {.address = 0x7f0002000060, .size_bytes = 8, .row = 6};
    const struct word_block next = {.address = 0x7f0002000068, .size_bytes = 8, .row = 7};
    assert_true(put(words, &first));
    process_words_map_leanly(words, false);
    atomic_store(&below, WORDS_TINY_USUAL);
    assert_true(put(words, &tiny));
    assert_true(put(words, &next));
    assert_true(take(words, &first));
    assert_true(take(words, &tiny));
    assert_true(take(words, &next));
    (void)close(fd);
}

static struct {
    struct process_words *words;
    _Atomic uint32_t begun; // threads that have put a block
    _Atomic uint32_t wrong;
} g_shared;

// Blocks of one thread are in pages that other threads use, too.
static void *put_and_take(void *argument)
{
    static const uint64_t sizes[] = {8, 100, 700, 5000};
    const uint64_t thread = (uint64_t)argument;
    for (uint64_t i = 0; i < THREAD_BLOCKS; i++) {
        const struct word_block block = {.address = 0x7f0000000000 + (i << 14) +
                                                    (thread << 12) % 8192 + thread / 2 * 1024,
                                         .size_bytes = thread < 2 ? sizes[i % 4] : sizes[i % 3],
                                         .birth_ms = i,
                                         .row = 1 + (uint32_t)thread};
        g_shared.wrong += !put(g_shared.words, &block);
        (void)atomic_fetch_or(&g_shared.begun, 1u << thread);
        g_shared.wrong += !take(g_shared.words, &block);
    }
    return NULL;
}

static void threads_go_on_meanwhile(void **state)
{
    (void)state;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        int fd;
        static _Atomic uint32_t never = WORDS_TINY_NEVER;
        pthread_t threads[THREADS];
        g_shared.words = open_words(&fd, &never);
        g_shared.begun = 0;
        for (uint64_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(threads + i, NULL, put_and_take, (void *)i), 0);
        }
        while (atomic_load(&g_shared.begun) == 0) {
        }
        process_words_map_leanly(g_shared.words, false);
        for (uint64_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(g_shared.wrong, 0);
        (void)close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_free_finds_its_block),
        cmocka_unit_test(what_is_unused_is_unmapped),
        cmocka_unit_test(tiny_blocks_that_come_later_have_entries),
        cmocka_unit_test(threads_go_on_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
