// SPDX-License-Identifier: MIT
// Pages that stay together: whoever owns one finds in it what was written there, wherever it is
// now.
#include "aggregate/live_blocks/slot_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    OWNERS = 3000, // of six chunks
    ROUNDS = 60000,
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void write_stamp(const struct slot_pages *pages, uint32_t page, uint64_t stamp)
{
    uint64_t *words = slot_pages_at(pages, page);
    words[0] = stamp;
    words[SLOT_PAGE_BYTES / sizeof(*words) - 1] = ~stamp;
}

static void assert_stamp(const struct slot_pages *pages, uint32_t page, uint64_t stamp)
{
    const uint64_t *words = slot_pages_at(pages, page);
    assert_int_equal(words[0], stamp);
    assert_int_equal(words[SLOT_PAGE_BYTES / sizeof(*words) - 1], ~stamp);
}

static void assert_zero(const struct slot_pages *pages, uint32_t page)
{
    const uint64_t *words = slot_pages_at(pages, page);
    for (size_t i = 0; i < SLOT_PAGE_BYTES / sizeof(*words); i++) {
        assert_int_equal(words[i], 0);
    }
}

// A page for the first owner without one, or the last owner's back: their number goes up and down.
static void pages_move_and_keep_what_is_in_them(void **state)
{
    (void)state;
    static uint32_t owners[OWNERS];
    static uint64_t stamps[OWNERS]; // 0: that owner has no page
    struct slot_pages pages = {0};
    uint64_t random = 7;
    size_t used = 0;
    uint64_t worst_spare = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const size_t i = next_random(&random) % OWNERS;
        const bool is_growing = round / (ROUNDS / 4) % 2 == 0;
        if (stamps[i] == 0 && (is_growing || round % 8 == 0)) {
            assert_int_equal(slot_pages_take(&pages, owners + i), ERR_OK);
            assert_zero(&pages, owners[i]);
            stamps[i] = next_random(&random);
            write_stamp(&pages, owners[i], stamps[i]);
            used++;
        } else if (stamps[i] != 0 && (!is_growing || round % 8 == 0)) {
            assert_stamp(&pages, owners[i], stamps[i]);
            slot_pages_give(&pages, owners + i);
            stamps[i] = 0;
            used--;
            const uint64_t spare = pages.touched_count - used;
            worst_spare = spare > worst_spare ? spare : worst_spare;
        }
        assert_int_equal(pages.owners.len, used);
    }
    for (size_t i = 0; i < OWNERS; i++) {
        if (stamps[i] != 0) {
            assert_stamp(&pages, owners[i], stamps[i]);
        }
    }
    assert_in_range(worst_spare, 1, OWNERS / 96 + 4);
    slot_pages_release(&pages);
}

static void all_that_is_given_back_is_given_to_the_kernel(void **state)
{
    (void)state;
    static uint32_t owners[OWNERS];
    struct slot_pages pages = {0};
    for (size_t i = 0; i < OWNERS; i++) {
        assert_int_equal(slot_pages_take(&pages, owners + i), ERR_OK);
    }
    const uint64_t least_bytes = (uint64_t)OWNERS * SLOT_PAGE_BYTES;
    assert_in_range(slot_pages_bytes(&pages), least_bytes, least_bytes * 102 / 100);
    for (size_t i = 0; i < OWNERS; i++) {
        slot_pages_give(&pages, owners + i);
    }
    assert_int_equal(pages.chunks.len, 1);
    assert_in_range(pages.touched_count, 0, 4);
    slot_pages_release(&pages);
}

// As when there is a huge page for it; here it is any memory.
static void a_chunk_that_moves_keeps_its_pages(void **state)
{
    (void)state;
    static uint32_t owners[OWNERS];
    struct slot_pages pages = {0};
    for (size_t i = 0; i < OWNERS; i++) {
        assert_int_equal(slot_pages_take(&pages, owners + i), ERR_OK);
        write_stamp(&pages, owners[i], i + 1);
    }
    for (size_t i = 0; i < OWNERS / SLOT_CHUNK_PAGES; i++) {
        char *chunk = chunk_map();
        assert_non_null(chunk);
        char *old = slot_pages_move_chunk(&pages, i, chunk);
        assert_ptr_not_equal(old, chunk);
        chunk_unmap(old);
        assert_ptr_equal(slot_pages_at(&pages, owners[i * SLOT_CHUNK_PAGES]), chunk);
    }
    for (size_t i = 0; i < OWNERS; i++) {
        assert_stamp(&pages, owners[i], i + 1);
        slot_pages_give(&pages, owners + i);
        for (size_t k = i + 1; k < OWNERS; k += 97) {
            assert_stamp(&pages, owners[k], k + 1);
        }
    }
    slot_pages_release(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_move_and_keep_what_is_in_them),
        cmocka_unit_test(a_chunk_that_moves_keeps_its_pages),
        cmocka_unit_test(all_that_is_given_back_is_given_to_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
