// SPDX-License-Identifier: MIT
// Records of counters: what a reader sees is what was counted, and words at random are read within
// their bounds or refused.
#include "session/books/book_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bucket.h"
#include "base/compiler.h"
#include "session/books/block_words.h"
#include "session/books/sampling_level.h"

static uint64_t g_random = 7;

static uint64_t next(void)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return g_random >> 16;
}

static uint64_t random_cell(void)
{
    return (next() % 1000) << BOOK_COUNT_BITS | (1 + next() % BOOK_COUNT_MAX);
}

static struct book_counter random_counter(void)
{
    struct book_counter c = {.row = 1 + (uint32_t)next() % WORD_ROW_MAX,
                             .peak_number = (uint32_t)next()};
    for (uint32_t i = 0; i < BOOK_SIZES; i++) {
        c.sizes[i] = next() % 3 == 0 ? random_cell() : 0;
        c.sizes_used |= (c.sizes[i] != 0 || next() % 8 == 0 ? 1u : 0u) << i;
        c.size_buckets[i] = (uint8_t)(next() % BUCKET_COUNT);
    }
    for (uint32_t i = 0; i < BOOK_LIVES; i++) {
        c.lives[i] = next() % 2 == 0 ? random_cell() : 0;
        c.lives_used |= (uint8_t)((c.lives[i] != 0 ? 1u : 0u) << i);
        c.life_buckets[i] = (uint8_t)(next() % BUCKET_COUNT);
    }
    for (uint32_t i = 0; i < BOOK_COHORTS; i++) {
        c.cohorts[i] = next() % 2 == 0 ? random_cell() : 0;
        c.cohorts_used |= (uint8_t)((c.cohorts[i] != 0 ? 1u : 0u) << i);
        c.born[i] = (uint32_t)next();
    }
    c.temporary = next() % 2 == 0 ? random_cell() : 0;
    if (next() % 2 == 0) {
        c.before_bytes = (int64_t)(next() % 2000) - 1000;
        c.before_blocks = (int32_t)(next() % 20) - 10;
    }
    return c;
}

static struct book_net net_of(const struct book_counter *c)
{
    struct book_net net = {0};
    for (uint32_t i = 0; i < BOOK_SIZES; i++) {
        net.bytes += (int64_t)book_cell_bytes(c->sizes[i]);
        net.blocks += book_cell_count(c->sizes[i]);
    }
    for (uint32_t i = 0; i < BOOK_LIVES; i++) {
        net.bytes -= (int64_t)book_cell_bytes(c->lives[i]);
        net.blocks -= book_cell_count(c->lives[i]);
    }
    return net;
}

static void assert_cells(const uint64_t *cells,
                         const uint8_t *buckets,
                         uint32_t count,
                         const uint64_t *found,
                         const uint8_t *found_buckets,
                         uint32_t found_count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (cells[i] != 0) {
            assert_true(at < found_count);
            assert_true(found[at] == cells[i] && found_buckets[at] == buckets[i]);
            at++;
        }
    }
    assert_int_equal(at, found_count);
}

static void a_record_says_what_was_counted(void **state)
{
    (void)state;
    uint32_t longest = 0;
    for (int run = 0; run < 20000; run++) {
        const struct book_counter c = random_counter();
        uint64_t words[BOOK_WORDS_MAX];
        struct book_entry entry;
        const uint32_t count = book_record(&c, words);
        const struct book_net net = net_of(&c);
        if (count == 0) {
            assert_int_equal(net.blocks, 0);
            continue;
        }
        longest = count > longest ? count : longest;
        assert_true(count <= BOOK_WORDS_MAX);
        assert_int_equal(words[0] & 0xff, BOOK_TAG);
        assert_int_equal(book_record_words(words[0]), count);
        assert_true(book_record_read(words, &entry));
        assert_true(entry.row == c.row && entry.peak_number == c.peak_number);
        assert_true(entry.before_bytes == c.before_bytes && entry.before_blocks == c.before_blocks);
        assert_true(entry.temporary == c.temporary);
        assert_cells(c.sizes, c.size_buckets, BOOK_SIZES, entry.sizes, entry.size_buckets,
                     entry.size_count);
        assert_cells(c.lives, c.life_buckets, BOOK_LIVES, entry.lives, entry.life_buckets,
                     entry.life_count);
        const struct book_net found = book_entry_net(&entry);
        assert_true(found.bytes == net.bytes && found.blocks == net.blocks);
        for (uint32_t i = 0, at = 0; i < BOOK_COHORTS; i++) {
            if (c.cohorts[i] != 0) {
                assert_true(entry.cohorts[at] == c.cohorts[i]);
                assert_true(entry.born_ms[at] == (uint64_t)c.born[i] << BOOK_COHORT_BITS);
                at++;
            }
        }
    }
    assert_true(longest > BOOK_WORDS_MAX / 2);
}

static void a_false_record_is_refused_or_within_bounds(void **state)
{
    (void)state;
    uint32_t read = 0;
    for (int run = 0; run < 200000; run++) {
        uint64_t words[BOOK_WORDS_MAX];
        struct book_entry entry;
        const struct book_counter c = random_counter();
        uint32_t count = book_record(&c, words);
        if (count == 0) {
            continue;
        }
        const uint32_t at = (uint32_t)next() % count;
        words[at] ^= (uint64_t)1 << next() % 64;
        count = book_record_words(words[0]);
        assert_true(count <= BOOK_WORDS_MAX);
        if (count == 0 || !book_record_read(words, &entry)) {
            continue;
        }
        read++;
        assert_true(entry.row != 0 && entry.size_count <= BOOK_SIZES);
        assert_true(entry.life_count <= BOOK_LIVES && entry.cohort_count <= BOOK_COHORTS);
        for (uint32_t i = 0; i < entry.size_count; i++) {
            assert_true(entry.size_buckets[i] < BUCKET_COUNT &&
                        book_cell_count(entry.sizes[i]) > 0);
        }
        for (uint32_t i = 0; i < entry.life_count; i++) {
            assert_true(entry.life_buckets[i] < BUCKET_COUNT &&
                        book_cell_count(entry.lives[i]) > 0);
        }
    }
    assert_true(read > 1000);
}

static void a_full_cell_takes_no_more(void **state)
{
    (void)state;
    assert_true(book_cell_has_room(0, BOOK_BYTES_MAX));
    assert_false(book_cell_has_room(book_cell_with(0, 1), BOOK_BYTES_MAX));
    assert_false(book_cell_has_room(BOOK_COUNT_MAX, 1));
    const uint64_t cell = book_cell_with(book_cell_with(0, 100), 28);
    assert_int_equal(book_cell_count(cell), 2);
    assert_int_equal(book_cell_bytes(cell), 128);
}

// One block, which was chosen. No more, and no weight that no interval gives.
static void a_chosen_block_has_a_weight(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        uint64_t size_bytes;
        uint64_t weight;
        bool is_sound;
    } cases[] = {
        {1, 100, 1, true},
        {1, (uint64_t)1 << 40, 1, true},
        {1, 100, 5000, true},
        {1, 0, BLOCK_WEIGHT_MAX, true},
        {1, BLOCK_WEIGHT_INTERVAL_MAX, 2, true},
        {1, BLOCK_WEIGHT_INTERVAL_MAX + 1, 2, false},
        {1, 0, BLOCK_WEIGHT_MAX + 1, false},
        {1, 100, 0, false},
        {2, 100, 2, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int is_free = 0; is_free < 2; is_free++) {
            struct book_counter c = {.row = 7, .peak_number = 9};
            const uint64_t cell =
                cases[i].count * cases[i].size_bytes << BOOK_COUNT_BITS | cases[i].count;
            *(is_free ? c.lives : c.sizes) = cell;
            c.sizes_used = !is_free;
            c.lives_used = (uint8_t)is_free;
            uint64_t words[BOOK_WORDS_MAX];
            struct book_entry entry;
            const uint32_t count = book_record_weighted(&c, cases[i].weight, words);
            assert_int_equal(book_record_words(words[0]), count);
            assert_int_equal(book_record_read(words, &entry), cases[i].is_sound);
            if (cases[i].is_sound) {
                const int64_t sign = is_free ? -1 : 1;
                const struct book_net net = book_entry_net(&entry);
                assert_int_equal(net.blocks, sign * (int64_t)cases[i].weight);
                assert_int_equal(net.bytes,
                                 sign * (int64_t)(cases[i].weight * cases[i].size_bytes));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chosen_block_has_a_weight),
        cmocka_unit_test(a_record_says_what_was_counted),
        cmocka_unit_test(a_false_record_is_refused_or_within_bounds),
        cmocka_unit_test(a_full_cell_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
