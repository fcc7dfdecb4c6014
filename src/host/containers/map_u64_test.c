// SPDX-License-Identifier: MIT
#include "host/containers/map_u64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    struct map_u64 map = {0};
    size_t position = 0;
    uint64_t key;
    uint32_t value;
    assert_null(map_u64_find(&map, 0));
    assert_null(map_u64_find(&map, 1));
    assert_false(map_u64_remove(&map, 0));
    assert_false(map_u64_remove(&map, 1));
    assert_false(map_u64_next(&map, &position, &key, &value));
    assert_int_equal(map_u64_count(&map), 0);
    map_u64_clear(&map);
    map_u64_release(&map);
}

static void every_key_is_possible(void **state)
{
    (void)state;
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63, 0xdeadbeef};
    struct map_u64 map = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(keys); i++) {
        assert_int_equal(map_u64_put(&map, keys[i], i), ERR_OK);
        assert_int_equal(map_u64_put(&map, keys[i], i + 100), ERR_OK);
    }
    assert_int_equal(map_u64_count(&map), ARRAY_LEN(keys));
    for (uint32_t i = 0; i < ARRAY_LEN(keys); i++) {
        uint32_t *value = map_u64_find(&map, keys[i]);
        assert_non_null(value);
        assert_int_equal(*value, i + 100);
    }
    map_u64_release(&map);
}

// The model is a plain array over a small range of keys.
static void it_agrees_with_an_array_over_random_steps(void **state)
{
    (void)state;
    enum {
        KEY_COUNT = 500,
        STEP_COUNT = 200000
    };
    static uint32_t model[KEY_COUNT]; // value + 1, 0 = absent
    struct map_u64 map = {0};
    uint64_t random = 12345;
    size_t count = 0;
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        random = hash_mix(random + step);
        uint64_t key = random % KEY_COUNT;
        uint32_t *value = map_u64_find(&map, key);
        assert_int_equal(value != NULL ? *value + 1 : 0, model[key]);
        // Fill, then drain, then fill again, so that all densities occur.
        bool put = (random >> 32) % 100 < ((step / 5000) % 2 != 0 ? 80U : 20U);
        if (put) {
            assert_int_equal(map_u64_put(&map, key, step), ERR_OK);
            count += model[key] == 0;
            model[key] = step + 1;
        } else {
            assert_int_equal(map_u64_remove(&map, key), model[key] != 0);
            count -= model[key] != 0;
            model[key] = 0;
        }
        assert_int_equal(map_u64_count(&map), count);
    }
    size_t position = 0;
    uint64_t key;
    uint32_t value;
    for (size_t seen = 0; map_u64_next(&map, &position, &key, &value); seen++) {
        assert_true(key < KEY_COUNT && seen < count);
        assert_int_equal(model[key], value + 1);
        model[key] = 0;
    }
    for (size_t i = 0; i < KEY_COUNT; i++) {
        assert_int_equal(model[i], 0);
    }
    map_u64_clear(&map);
    assert_int_equal(map_u64_count(&map), 0);
    assert_null(map_u64_find(&map, 0));
    map_u64_release(&map);
}

static void keys_get_numbers_in_the_order_of_first_use(void **state)
{
    const struct {
        uint64_t key;
        uint32_t number;
    } steps[] = {{7, 0}, {0, 1}, {7, 0}, {UINT64_MAX, 2}, {0, 1}, {map_u64_pair(1, 2), 3}};
    struct map_u64 map = {0};
    uint32_t number;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        assert_int_equal(map_u64_number(&map, steps[i].key, map_u64_count(&map), &number), ERR_OK);
        assert_int_equal(number, steps[i].number);
    }
    assert_int_equal(map_u64_number(&map, 7, UINT32_MAX, &number), ERR_OK);
    assert_int_equal(map_u64_number(&map, 8, UINT32_MAX, &number), ERR_LIMIT);
    assert_null(map_u64_find(&map, 8));
    map_u64_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(every_key_is_possible),
        cmocka_unit_test(it_agrees_with_an_array_over_random_steps),
        cmocka_unit_test(keys_get_numbers_in_the_order_of_first_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
