// SPDX-License-Identifier: MIT
// The list of a process's words: what threads of it have put and not taken, in the order of
// addresses; stale words apart; whatever else is in the file, inside the bounds.
#include "recorder/session/block_words_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "target/producer/words/live_entries.h"
#include "target/producer/words/test_words_heap.h"

enum {
    EVENTS = 8000, // births are their numbers
    FOUND_MAX = 200000,
};

struct found {
    uint32_t live_count;
    uint32_t stale_count;
    struct word_block live[FOUND_MAX];
    struct word_block stale[FOUND_MAX];
};

static void add_live(void *context, const struct word_block *block)
{
    struct found *found = context;
    if (found->live_count < FOUND_MAX) {
        found->live[found->live_count++] = *block;
    }
}

static void add_stale(void *context, const struct word_block *block)
{
    struct found *found = context;
    if (found->stale_count < FOUND_MAX) {
        found->stale[found->stale_count++] = *block;
    }
}

static void list(int fd, uint32_t process, struct found *found)
{
    const struct block_words_visitor visitor = {
        .context = found, .live = add_live, .stale = add_stale};
    struct err_info info = {0};
    found->live_count = 0;
    found->stale_count = 0;
    assert_int_equal(block_words_list(fd, 0, process, &visitor, &info), ERR_OK);
    for (uint32_t i = 1; i < found->live_count; i++) {
        const struct word_block *a = &found->live[i - 1];
        assert_true(a->address < found->live[i].address);
        assert_true(a->address + a->size_bytes <= found->live[i].address);
    }
}

static struct process_words *
open_words(int *fd, uint32_t process, const _Atomic uint32_t *tiny_below)
{
    const struct words_source source = {.open = words_file_again, .context = fd};
    struct process_words *words = process_words_new();
    assert_non_null(words);
    assert_int_equal(process_words_open(words, &source, process, tiny_below), ERR_OK);
    return words;
}

static bool is_in(const struct word_block *blocks, uint32_t count, const struct word_block *block)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_same_block(&blocks[i], block)) {
            return true;
        }
    }
    return false;
}

// Blocks that are alive, and blocks that were freed past the hooks.
struct two_kinds {
    struct test_heap heap;
    struct word_block live[EVENTS];
    struct word_block past[EVENTS];
    uint32_t live_count;
    uint32_t past_count;
};

static void fill(struct two_kinds *kinds, struct process_words *words, uint64_t random)
{
    struct words_ended ended;
    struct word_block taken;
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint64_t size = random_size(&random);
        const uint64_t address =
            kinds->live_count < 1200 ? heap_take(&kinds->heap, size, &random) : 0;
        if (address == 0) {
            const uint64_t r = next_random(&random);
            const uint32_t k = (uint32_t)(r >> 16) % kinds->live_count;
            const struct word_block block = kinds->live[k];
            kinds->live[k] = kinds->live[--kinds->live_count];
            if (r % 8 == 0) {
                kinds->past[kinds->past_count++] = block;
            } else {
                assert_true(words_take(words, block.address, &taken));
            }
            heap_give(&kinds->heap, block.address, block.size_bytes);
            continue;
        }
        const struct word_block block = {
            .address = address, .size_bytes = size, .row = 1 + i, .birth_ms = i};
        assert_true(words_put(words, &block, &ended));
        kinds->live[kinds->live_count++] = block;
    }
}

static void live_blocks_are_listed_in_order(void **state)
{
    (void)state;
    struct found *found = calloc(1, sizeof(*found));
    assert_non_null(found);
    for (uint32_t allocator = 0; allocator < ALLOCATOR_COUNT; allocator++) {
        int fd = words_file_new();
        struct two_kinds *kinds = calloc(1, sizeof(*kinds));
        assert_non_null(kinds);
        heap_init(&kinds->heap, allocator);
        fill(kinds, open_words(&fd, 7, heap_tiny_below(allocator)), allocator + 5);
        list(fd, 7, found);
        assert_true(kinds->live_count > 300);
        for (uint32_t i = 0; i < kinds->live_count; i++) {
            assert_true(is_in(found->live, found->live_count, &kinds->live[i]));
        }
        // The others are blocks that were freed past the hooks, and no live block has them.
        for (uint32_t i = 0; i < found->live_count; i++) {
            assert_true(is_in(kinds->live, kinds->live_count, &found->live[i]) ||
                        is_in(kinds->past, kinds->past_count, &found->live[i]));
        }
        assert_true(found->stale_count > 0);
        for (uint32_t i = 0; i < found->stale_count; i++) {
            assert_true(is_in(kinds->past, kinds->past_count, &found->stale[i]));
        }
        list(fd, 8, found); // another process
        assert_int_equal(found->live_count + found->stale_count, 0);
        free(kinds);
        (void)close(fd);
    }
    free(found);
}

// The order of the regions in the file is that of their first blocks.
static void regions_are_listed_in_order(void **state)
{
    (void)state;
    struct found *found = calloc(1, sizeof(*found));
    int fd = words_file_new();
    assert_non_null(found);
    struct process_words *words = open_words(&fd, 1, NULL);
    static const uint64_t addresses[] = {0x7fffffff0000, 0x10000000, 0x7f0000000000,
                                         0x20000000 | WIRE_CUSTOM_BLOCK, 0x555500000000};
    for (uint32_t i = 0; i < 5; i++) {
        const struct word_block block = {
            .address = addresses[i], .size_bytes = 40 + i, .row = 1 + i, .birth_ms = 3};
        struct words_ended ended;
        assert_true(words_put(words, &block, &ended));
    }
    list(fd, 1, found);
    assert_int_equal(found->live_count, 5);
    static const uint32_t rows[] = {2, 5, 3, 1, 4};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(found->live[i].row, rows[i]);
        assert_int_equal(found->live[i].address, addresses[rows[i] - 1]);
    }
    (void)close(fd);
    free(found);
}

// A list that others interrupt.
struct interrupted {
    uint32_t live_count;
    uint32_t longest; // blocks between two pauses
    uint32_t since;
    uint32_t pauses;
    uint32_t last_pause; // it does not go on after this one; 0: it does
};

static void count_live(void *context, const struct word_block *block)
{
    struct interrupted *list = context;
    (void)block;
    list->live_count++;
    list->since++;
    list->longest = list->since > list->longest ? list->since : list->longest;
}

static bool count_pause(void *context)
{
    struct interrupted *list = context;
    list->since = 0;
    return ++list->pauses != list->last_pause;
}

static void others_are_served_between_chunks(void **state)
{
    (void)state;
    enum {
        BLOCKS = 60000,
        STEP = 256,
    };
    int fd = words_file_new();
    struct process_words *words = open_words(&fd, 1, NULL);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const struct word_block block = {.address = 0x7f0000000000 + (uint64_t)i * STEP,
                                         .size_bytes = 100,
                                         .row = 1 + i,
                                         .birth_ms = 3};
        struct words_ended ended;
        assert_true(words_put(words, &block, &ended));
    }
    for (uint32_t last = 0; last <= 3; last++) {
        struct interrupted list = {.last_pause = last};
        const struct block_words_visitor visitor = {
            .context = &list, .live = count_live, .stale = count_live, .goes_on = count_pause};
        struct err_info info = {0};
        assert_int_equal(block_words_list(fd, 0, 1, &visitor, &info), ERR_OK);
        assert_int_equal(list.pauses, last != 0 ? last : BLOCKS / BLOCK_WORDS_PAUSE);
        assert_in_range(list.longest, 1, BLOCK_WORDS_PAUSE + 1);
        assert_int_equal(list.live_count, last != 0 ? last * BLOCK_WORDS_PAUSE : BLOCKS);
    }
    (void)close(fd);
}

// Blocks with entries are among those with words.
static void entries_are_listed_in_order(void **state)
{
    (void)state;
    struct found *found = calloc(1, sizeof(*found));
    int fd = words_file_new();
    assert_non_null(found);
    struct process_words *words = open_words(&fd, 1, NULL);
    struct words_ended ended;
    struct word_block taken;
    for (uint32_t i = 0; i < 6000; i++) {
        const struct word_block block = {.address = 0x10000000 + (uint64_t)64 * i,
                                         .size_bytes = 40,
                                         .row = 1 + i,
                                         .birth_ms = i};
        assert_true(i % 3 == 0 ? words_put(words, &block, &ended) : entries_put(words, &block));
    }
    assert_true(entries_take(words, 0x10000000 + 64, &taken));
    list(fd, 1, found);
    assert_int_equal(found->live_count, 5999);
    assert_int_equal(found->stale_count, 0);
    for (uint32_t i = 0; i < 5999; i++) {
        const uint32_t number = i == 0 ? 0 : i + 1;
        assert_int_equal(found->live[i].row, 1 + number);
        assert_int_equal(found->live[i].birth_ms, number);
        assert_int_equal(found->live[i].size_bytes, 40);
    }
    (void)close(fd);
    free(found);
}

// Also where all have been freed since.
static void places_are_where_blocks_have_been(void **state)
{
    (void)state;
    static const struct word_block blocks[] = {
        {.address = 0x10000000 + 0x5010, .size_bytes = 40, .row = 1},
        {.address = 0x10000000 + 0x9100, .size_bytes = 300, .row = 1},
        {.address = 0x10000000 + 0x20000, .size_bytes = 70000, .row = 1},
        {.address = 0x10000000 + WORDS_REGION_BYTES, .size_bytes = 40, .row = 1},
    };
    static const struct {
        uint64_t start;
        uint64_t end;
        bool is_any;
    } cases[] = {
        {0x10000000, 0x10005000, false},
        {0x10000000, 0x10006000, true},
        {0x10005000, 0x10006000, true},
        {0x10006000, 0x10009000, false},
        {0x10009000, 0x1000a000, true},
        {0x10021000, 0x10000000 + WORDS_REGION_BYTES, false},
        {0x10020000, 0x10021000, true},
        {0x10021000, 0x10001000 + WORDS_REGION_BYTES, true},
        {0x7f0000000000, 0x7f0000100000, false},
        {0, UINT64_MAX, true},
    };
    int fd = words_file_new();
    struct process_words *words = open_words(&fd, 1, NULL);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        struct words_ended ended;
        struct word_block taken;
        assert_true(words_put(words, blocks + i, &ended));
        assert_true(words_take(words, blocks[i].address, &taken));
    }
    struct block_words_places *places = NULL;
    assert_int_equal(block_words_places_open(fd, 0, 1, &places), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (block_words_places_any(places, cases[i].start, cases[i].end) != cases[i].is_any) {
            fail_msg("case %zu", i);
        }
    }
    block_words_places_free(places);
    assert_int_equal(block_words_places_open(fd, 0, 2, &places), ERR_OK); // another process
    assert_false(block_words_places_any(places, 0, UINT64_MAX));
    block_words_places_free(places);
    assert_int_equal(block_words_places_open(-1, 0, 1, &places), ERR_IO);
    (void)close(fd);
}

// A block with an entry may have been anywhere, also in a process that has no words at all.
static void places_of_entries_are_unknown(void **state)
{
    (void)state;
    static const struct word_block block = {
        .address = 0x10000000 + 0x5010, .size_bytes = 40, .row = 1};
    int fd = words_file_new();
    struct process_words *words = open_words(&fd, 1, NULL);
    struct block_words_places *places = NULL;
    assert_int_equal(block_words_places_open(fd, 0, 1, &places), ERR_OK);
    assert_false(block_words_places_any(places, 0, UINT64_MAX));
    block_words_places_free(places);
    struct word_block taken;
    assert_true(entries_put(words, &block));
    assert_true(entries_take(words, block.address, &taken));
    assert_int_equal(block_words_places_open(fd, 0, 1, &places), ERR_OK);
    assert_true(block_words_places_any(places, 0x10000000, 0x10010000));
    block_words_places_free(places);
    assert_int_equal(block_words_places_open(fd, 0, 2, &places), ERR_OK); // another process
    assert_false(block_words_places_any(places, 0, UINT64_MAX));
    block_words_places_free(places);
    (void)close(fd);
}

static void write_random(int fd, uint64_t offset, uint64_t count, uint64_t *random)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t r = next_random(random);
        const uint64_t word = r % 8 == 0 ? WORD_MARKER : r % 8 == 1 ? UINT64_MAX : r;
        const off_t at = (off_t)(offset + next_random(random) % 4096 * 8);
        assert_int_equal(pwrite(fd, &word, sizeof(word), at), sizeof(word));
    }
}

// A program may write anything: list() checks that what is reported is in order.
static void a_scribbled_file_is_listed_within_bounds(void **state)
{
    (void)state;
    struct found *found = calloc(1, sizeof(*found));
    assert_non_null(found);
    uint32_t entry_count = 0; // their addresses may be anything
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed * 991;
        int fd = words_file_new();
        const uint64_t notes[] = {words_region_note(1, 100),
                                  words_region_note(1, 100),
                                  words_region_note(1, ENTRY_PLACE),
                                  (uint64_t)1 << 32,
                                  words_region_note(1, WORDS_PLACES - 1),
                                  next_random(&random)};
        const off_t at = offsetof(struct words_file, regions);
        assert_int_equal(pwrite(fd, notes, sizeof(notes), at), sizeof(notes));
        for (uint32_t i = 0; i < 6; i++) {
            const uint64_t offset = words_region_offset(i);
            write_random(fd, offset, 300, &random); // notes of pages, or entries
            write_random(fd, offset + offsetof(struct words_region, coarse), 300, &random);
            write_random(fd, offset + offsetof(struct words_region, large), 300, &random);
            write_random(fd, offset + offsetof(struct words_region, middle), 1000, &random);
            write_random(fd, offset + offsetof(struct words_region, fine), 1000, &random);
            write_random(fd, offset + offsetof(struct words_region, tiny), 3000, &random);
        }
        list(fd, 1, found);
        for (uint32_t i = 0; i < found->live_count; i++) {
            const uint32_t place = words_place(found->live[i].address);
            entry_count += place != 100 && place != WORDS_PLACES - 1;
            assert_int_not_equal(found->live[i].row, 0);
            assert_true(found->live[i].size_bytes >> WORDS_ADDRESS_BITS == 0);
        }
        (void)close(fd);
    }
    assert_int_not_equal(entry_count, 0);
    free(found);
}

static void a_short_file_is_an_error(void **state)
{
    (void)state;
    const struct block_words_visitor visitor = {.live = add_live, .stale = add_stale};
    struct err_info info = {0};
    int fd = words_file_new();
    assert_int_equal(ftruncate(fd, 5000), 0);
    assert_int_not_equal(block_words_list(fd, 0, 1, &visitor, &info), ERR_OK);
    (void)close(fd);
    assert_int_not_equal(block_words_list(fd, 0, 1, &visitor, &info), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_blocks_are_listed_in_order),
        cmocka_unit_test(regions_are_listed_in_order),
        cmocka_unit_test(others_are_served_between_chunks),
        cmocka_unit_test(entries_are_listed_in_order),
        cmocka_unit_test(places_are_where_blocks_have_been),
        cmocka_unit_test(places_of_entries_are_unknown),
        cmocka_unit_test(a_scribbled_file_is_listed_within_bounds),
        cmocka_unit_test(a_short_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
