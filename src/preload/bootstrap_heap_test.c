// SPDX-License-Identifier: MIT
// bootstrap_heap: blocks are zero, aligned, disjoint and known by their address, until it is used
// up.
#include "preload/bootstrap_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void blocks_are_disjoint_until_the_heap_is_used_up(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 1000};
    assert_null(bootstrap_heap_take(BOOTSTRAP_HEAP_BYTES));
    assert_null(bootstrap_heap_take(SIZE_MAX));
    uint8_t *last_end = g_bootstrap_heap;
    size_t taken = 0;
    for (size_t i = 0;; i++) {
        const size_t size = sizes[i % 7];
        uint8_t *block = bootstrap_heap_take(size);
        if (block == NULL) {
            break;
        }
        assert_int_equal((uintptr_t)block % 16, 0);
        assert_true(block >= last_end);
        assert_true(bootstrap_heap_owns(block));
        assert_int_equal(bootstrap_heap_size(block), size);
        for (size_t k = 0; k < size; k++) {
            assert_int_equal(block[k], 0);
        }
        memset(block, 0xff, size);
        last_end = block + size;
        taken += size;
    }
    assert_true(last_end <= g_bootstrap_heap + BOOTSTRAP_HEAP_BYTES);
    assert_in_range(taken, BOOTSTRAP_HEAP_BYTES / 2, BOOTSTRAP_HEAP_BYTES);
}

static void other_addresses_are_not_ours(void **state)
{
    (void)state;
    void *block = malloc(1);
    assert_false(bootstrap_heap_owns(NULL));
    assert_false(bootstrap_heap_owns(block));
    assert_false(bootstrap_heap_owns(g_bootstrap_heap - 1));
    assert_false(bootstrap_heap_owns(g_bootstrap_heap + BOOTSTRAP_HEAP_BYTES));
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_addresses_are_not_ours),
        cmocka_unit_test(blocks_are_disjoint_until_the_heap_is_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
