// SPDX-License-Identifier: MIT
// Threads take what one gives: each number once, and none stays.
#include "session/books/free_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>

enum {
    TAKERS = 3,
    NUMBERS = 60000, // in eight ranges
};

struct world {
    struct free_rows *rows;
    _Atomic uint32_t taken;
    _Atomic uint8_t times[NUMBERS + 1];
};

static struct free_rows *new_list(void)
{
    void *list = mmap(NULL, sizeof(struct free_rows), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(list, MAP_FAILED);
    return list;
}

// Take a number of any range. 0: there is none.
static uint32_t take_any(struct free_rows *rows)
{
    for (uint32_t i = 0; i < FREE_RANGES_WORDS; i++) {
        for (uint64_t left = free_rows_ranges(rows, i); left != 0; left &= left - 1) {
            const uint32_t number = free_rows_take(rows, i * 64 + (uint32_t)__builtin_ctzll(left));
            if (number != 0) {
                return number;
            }
        }
    }
    return 0;
}

static void *take_all(void *argument)
{
    struct world *w = argument;
    while (atomic_load(&w->taken) < NUMBERS) {
        const uint32_t number = take_any(w->rows);
        if (number != 0) {
            assert_in_range(number, 1, NUMBERS);
            atomic_fetch_add(&w->times[number], 1);
            atomic_fetch_add(&w->taken, 1);
        }
    }
    return NULL;
}

static void each_number_is_taken_once(void **state)
{
    (void)state;
    static struct world w;
    pthread_t takers[TAKERS];
    w.rows = new_list();
    for (uint32_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_create(&takers[i], NULL, take_all, &w), 0);
    }
    for (uint32_t i = 0; i < NUMBERS; i++) {
        free_rows_give(w.rows, 1 + i * 7919 % NUMBERS); // prime: each once
    }
    for (uint32_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_join(takers[i], NULL), 0);
    }
    for (uint32_t number = 1; number <= NUMBERS; number++) {
        assert_int_equal(w.times[number], 1);
    }
    assert_int_equal(take_any(w.rows), 0);
    (void)munmap(w.rows, sizeof(*w.rows));
}

static void an_empty_range_is_left_out(void **state)
{
    (void)state;
    struct free_rows *rows = new_list();
    free_rows_give(rows, 70 * WORD_RANGE_ROWS + 5);
    assert_int_equal(free_rows_ranges(rows, 0), 0);
    assert_int_equal(free_rows_ranges(rows, 1), 1 << 6);
    assert_int_equal(free_rows_take(rows, 69), 0);
    assert_int_equal(free_rows_take(rows, 70), 70 * WORD_RANGE_ROWS + 5);
    assert_int_equal(free_rows_take(rows, 70), 0);
    assert_int_equal(free_rows_ranges(rows, 1), 0);
    (void)munmap(rows, sizeof(*rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_taken_once),
        cmocka_unit_test(an_empty_range_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
