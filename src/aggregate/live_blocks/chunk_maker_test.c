// SPDX-License-Identifier: MIT
// Chunks that another thread makes: whoever asks gets an answer, whatever it is, and nothing stays
// behind, fetched, cancelled or discarded.
#include "aggregate/live_blocks/chunk_maker.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    ROUNDS = 200,
    PAGE_BYTES = 4096,
    MARK = 0x5a, // in what is discarded
};

// Whether the chunk, all of which was filled with the mark, still is there. What somebody else may
// have mapped in its place since then, a run-time of a sanitizer for one, holds other bytes or may
// not be read; so each page is read by the kernel, from /proc/self/mem.
static bool is_there(const char *chunk, char mark)
{
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_true(memory >= 0);
    bool found = false;
    for (size_t at = 0; !found && at < CHUNK_BYTES; at += PAGE_BYTES) {
        char page[PAGE_BYTES];
        found = pread(memory, page, sizeof(page), (off_t)(uintptr_t)(chunk + at)) == sizeof(page) &&
                page[0] == mark && memcmp(page, page + 1, sizeof(page) - 1) == 0;
    }
    (void)close(memory);
    return found;
}

static bool is_zero(const char *chunk)
{
    return chunk[0] == 0 && memcmp(chunk, chunk + 1, CHUNK_BYTES - 1) == 0;
}

static char *await(struct chunk_maker *maker)
{
    char *chunk = NULL;
    while (!chunk_maker_fetch(maker, &chunk)) {
        (void)sched_yield();
    }
    return chunk;
}

static void who_asks_gets_an_answer(void **state)
{
    (void)state;
    struct chunk_maker *maker = chunk_maker_begin();
    assert_non_null(maker);
    static char *discarded[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        chunk_maker_ask(maker);
        char *chunk = await(maker); // NULL where the machine has none
        char *mine = chunk != NULL ? chunk : chunk_map();
        assert_non_null(mine);
        assert_int_equal((uintptr_t)mine % CHUNK_BYTES, 0);
        assert_true(is_zero(mine));
        memset(mine, MARK, CHUNK_BYTES);
        assert_true(is_there(mine, MARK));
        discarded[round] = mine;
        chunk_maker_discard(maker, mine);
    }
    chunk_maker_end(maker);
    for (size_t round = 0; round < ROUNDS; round++) {
        assert_false(is_there(discarded[round], MARK));
    }
}

// Cancelled before the thread has heard of it, while it is at it, and after it has answered.
static void what_is_cancelled_is_not_answered(void **state)
{
    (void)state;
    struct chunk_maker *maker = chunk_maker_begin();
    assert_non_null(maker);
    char *chunk = NULL;
    for (size_t round = 0; round < ROUNDS; round++) {
        chunk_maker_ask(maker);
        for (size_t i = 0; i < round % 16; i++) {
            (void)sched_yield();
        }
        chunk_maker_cancel(maker);
        assert_false(chunk_maker_fetch(maker, &chunk));
    }
    chunk_maker_ask(maker);
    chunk = await(maker);
    if (chunk != NULL) {
        assert_true(is_zero(chunk));
        chunk_unmap(chunk);
    }
    chunk_maker_ask(maker); // and nobody fetches it
    chunk_maker_end(maker);
}

static void a_maker_that_was_never_asked_ends(void **state)
{
    (void)state;
    chunk_maker_end(chunk_maker_begin());
    chunk_maker_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_gets_an_answer),
        cmocka_unit_test(what_is_cancelled_is_not_answered),
        cmocka_unit_test(a_maker_that_was_never_asked_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
