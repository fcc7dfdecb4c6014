// SPDX-License-Identifier: MIT
// Entries of blocks against a list of what is alive: each free finds its block, whichever thread
// frees it, however many there are, and when no region can be mapped.
#include "target/producer/words/live_entries.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "target/producer/words/test_words_heap.h"

enum {
    BLOCKS = 30000, // alive at once: more than a chunk has
    EVENTS = 4 * BLOCKS,
    THREADS = 4,
    THREAD_EVENTS = 40000,
    SLOTS = 512,
};

static struct process_words *open_words(int *fd)
{
    const struct words_source source = {.open = words_file_again, .context = fd};
    *fd = words_file_new();
    struct process_words *words = process_words_new();
    assert_non_null(words);
    assert_int_equal(process_words_open(words, &source, 1, NULL), ERR_OK);
    return words;
}

// Handles may be at any distance, and blocks of any size.
static struct word_block nth_block(uint64_t n)
{
    return (struct word_block){.address = (n % 2 != 0 ? WIRE_CUSTOM_BLOCK : 0) + 7 * n + 1,
                               .size_bytes = n * 31 % 100000,
                               .birth_ms = n,
                               .row = 1 + (uint32_t)(n % (WORD_ROW_MAX - 1))};
}

static void each_free_finds_its_block(void **state)
{
    (void)state;
    int fd;
    struct process_words *words = open_words(&fd);
    uint64_t *alive = calloc(BLOCKS, sizeof(*alive));
    assert_non_null(alive);
    uint64_t random = 5;
    size_t count = 0;
    for (uint64_t n = 1; n <= EVENTS; n++) {
        if (count < BLOCKS) {
            const struct word_block block = nth_block(n);
            assert_true(entries_put(words, &block));
            alive[count++] = n;
        }
        if (next_random(&random) % 3 != 0 || count == BLOCKS) {
            const size_t k = next_random(&random) % count;
            const struct word_block expected = nth_block(alive[k]);
            struct word_block found;
            assert_true(entries_take(words, expected.address, &found));
            assert_true(is_same_block(&found, &expected));
            assert_false(entries_take(words, expected.address, &found));
            alive[k] = alive[--count];
        }
    }
    assert_true(count > 4096 && process_words_chunk_find(words, 1) != NULL);
    free(alive);
    (void)close(fd);
}

static void a_stale_entry_ends(void **state)
{
    (void)state;
    int fd;
    struct process_words *words = open_words(&fd);
    struct words_ended ended = {0};
    const struct word_block block = nth_block(9);
    assert_false(entries_are_used(words));
    assert_true(entries_put(words, &block));
    assert_true(entries_are_used(words));
    entries_end(words, block.address + 1, &ended);
    assert_int_equal(ended.count, 0);
    entries_end(words, block.address, &ended);
    assert_int_equal(ended.count, 1);
    assert_true(is_same_block(&ended.blocks[0], &block));
    entries_end(words, block.address, &ended);
    assert_int_equal(ended.count, 1);
    (void)close(fd);
}

static void a_handler_s_block_is_settled_once(void **state)
{
    (void)state;
    int fd;
    struct process_words *words = open_words(&fd);
    struct word_block block = nth_block(9);
    struct word_block found;
    block.row = WORD_ROW_MAX;
    assert_true(entries_put(words, &block));
    block.row = 4;
    assert_true(entries_settle(words, &block, WORD_ROW_MAX));
    assert_false(entries_settle(words, &block, WORD_ROW_MAX));
    assert_true(entries_take(words, block.address, &found));
    assert_true(is_same_block(&found, &block));
    assert_false(entries_settle(words, &block, 4));
    (void)close(fd);
}

// Once the program limits its address space, new regions are not mapped; entries are.
static void a_limited_process_has_entries(void **state)
{
    (void)state;
    int fd;
    struct process_words *words = open_words(&fd);
    struct words_ended ended;
    struct word_block found;
    const struct word_block before = {.address = 0x10000000, .size_bytes = 40, .row = 1};
    const struct word_block after = {.address = 0x7f0000000000, .size_bytes = 50, .row = 2};
    assert_true(words_put(words, &before, &ended));
    process_words_map_leanly(words, false);
    assert_false(words_put(words, &after, &ended));
    assert_true(entries_put(words, &after));
    for (uint64_t n = 100; n < BLOCKS; n++) {
        const struct word_block block = nth_block(n);
        assert_true(entries_put(words, &block));
    }
    assert_true(words_take(words, before.address, &found));
    assert_true(entries_take(words, after.address, &found));
    assert_true(is_same_block(&found, &after));
    (void)close(fd);
}

// No room is reserved, which would be most of what a limit leaves.
static void a_process_that_begins_behind_a_limit_has_entries_alone(void **state)
{
    (void)state;
    int fd = words_file_new();
    const struct words_source source = {.open = words_file_again, .context = &fd, .is_lean = true};
    struct process_words *words = process_words_new();
    struct words_ended ended;
    struct word_block found;
    const struct word_block block = {.address = 0x10000000, .size_bytes = 40, .row = 1};
    assert_int_equal(process_words_open(words, &source, 1, NULL), ERR_OK);
    assert_null(words->directory);
    assert_null(words->entries_room);
    assert_false(words_put(words, &block, &ended));
    assert_true(entries_put(words, &block));
    process_words_map_leanly(words, false);
    assert_true(entries_take(words, block.address, &found));
    assert_true(is_same_block(&found, &block));
    (void)close(fd);
}

struct shared {
    struct process_words *words;
    _Atomic uint64_t slots[SLOTS]; // number of a block; 0: none
    _Atomic uint64_t next;
    _Atomic uint32_t wrong;
};

static void *exchange_blocks(void *argument)
{
    struct shared *s = argument;
    uint64_t random = (uint64_t)pthread_self();
    for (uint32_t i = 0; i < THREAD_EVENTS; i++) {
        const uint64_t n = 1 + atomic_fetch_add(&s->next, 1);
        const struct word_block block = nth_block(n);
        struct word_block found;
        s->wrong += !entries_put(s->words, &block);
        const uint64_t other = atomic_exchange(&s->slots[next_random(&random) % SLOTS], n);
        const struct word_block expected = nth_block(other);
        s->wrong += other != 0 && (!entries_take(s->words, expected.address, &found) ||
                                   !is_same_block(&found, &expected));
    }
    return NULL;
}

static void threads_pair_each_others_blocks(void **state)
{
    (void)state;
    int fd;
    struct shared *s = calloc(1, sizeof(*s));
    pthread_t threads[THREADS];
    assert_non_null(s);
    s->words = open_words(&fd);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, exchange_blocks, s), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(s->wrong, 0);
    free(s);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_free_finds_its_block),
        cmocka_unit_test(a_stale_entry_ends),
        cmocka_unit_test(a_handler_s_block_is_settled_once),
        cmocka_unit_test(a_limited_process_has_entries),
        cmocka_unit_test(a_process_that_begins_behind_a_limit_has_entries_alone),
        cmocka_unit_test(threads_pair_each_others_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
