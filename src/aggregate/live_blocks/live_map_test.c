// SPDX-License-Identifier: MIT
// live_map against a naive model: an array of queues, searched from end to end.
#include "aggregate/live_blocks/live_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregate/test_support/live_map_bytes.h"
#include "base/test_support/by_night.h"
#include "base/test_support/random_numbers.h"

enum {
    MODEL_BLOCKS_MAX = 1 << 17,
    AHEAD = 24, // events between the prefetch of an address and its use
};

struct model_block {
    uint64_t address;
    struct live_block block;
};

// Blocks in order of birth, so that a search finds the oldest of an address first.
struct model {
    struct model_block *blocks;
    size_t count;
};

static bool model_take(struct model *model, uint64_t address, struct live_block *out)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->blocks[i].address == address) {
            *out = model->blocks[i].block;
            for (size_t j = i + 1; j < model->count; j++) {
                model->blocks[j - 1] = model->blocks[j];
            }
            model->count--;
            return true;
        }
    }
    return false;
}

// The kinds of addresses and sizes that a stream draws from.
struct stream {
    const char *name;
    uint64_t seed;
    uint64_t address_base;
    uint64_t address_step;
    uint64_t address_count;
    uint64_t size_mask;
    uint64_t born_mask;
    uint32_t row_mask;
    unsigned add_percent;
    size_t events;
};

static const struct stream streams[] = {
    {"heap", 1, 0x555555560000, 16, 3000, 0xfff, 0xffff, 0xff, 55, 40000},
    {"few addresses, many generations", 2, 0x7f0000001000, 32, 12, 0xff, 0xff, 0xf, 52, 20000},
    {"sizes beyond a slot", 3, 0x7f0000000000, 4096, 500, 0xffffffffff, 0xffff, 3, 55, 20000},
    {"rows and times beyond a slot", 4, 0x10000, 8, 500, 0xff, 0xffffffffffff, ~0u, 55, 20000},
    {"addresses that are no multiple of 8", 5, 0x1001, 3, 600, 0x3ff, 0xff, 0xf, 55, 20000},
    {"addresses of 56 bits", 6, 0xfffffffffff000, 8, 600, 0x3ff, 0xff, 0xf, 55, 20000},
    {"the lowest addresses", 7, 1, 1, 64, 0x3ff, 0xff, 0xf, 55, 20000},
    {"mostly frees", 8, 0x555555560000, 16, 100, 0xfff, 0xffff, 0xff, 30, 20000},
};

static void assert_same_block(struct live_block got, struct live_block want)
{
    assert_int_equal(got.size_bytes, want.size_bytes);
    assert_int_equal(got.born_ms, want.born_ms);
    assert_int_equal(got.row, want.row);
}

static void run_stream(const struct stream *stream, struct model *model)
{
    print_message("stream: %s\n", stream->name);
    struct live_map map;
    live_map_init(&map, stream->seed * 77);
    uint64_t random = stream->seed * 0x9e3779b97f4a7c15ULL;
    model->count = 0;
    uint64_t ahead[AHEAD] = {0};
    for (size_t event = 0; event < stream->events; event++) {
        const uint64_t later = stream->address_base +
                               next_random(&random) % stream->address_count * stream->address_step;
        const uint64_t address = event < AHEAD ? later : ahead[event % AHEAD];
        ahead[event % AHEAD] = later;
        live_map_prefetch(&map, later);
        if (next_random(&random) % 100 < stream->add_percent) {
            struct live_block block = {.size_bytes = next_random(&random) & stream->size_mask,
                                       .born_ms = next_random(&random) & stream->born_mask,
                                       .row = (uint32_t)next_random(&random) & stream->row_mask};
            assert_int_equal(live_map_add(&map, address, &block), ERR_OK);
            model->blocks[model->count++] = (struct model_block){address, block};
        } else {
            struct live_block got = {0};
            struct live_block want = {0};
            bool is_taken = live_map_take(&map, address, &got);
            assert_int_equal(is_taken, model_take(model, address, &want));
            assert_same_block(got, want);
        }
        assert_int_equal(map.live_count, model->count);
        if (event % 1000 == 0) {
            assert_true(live_map_check(&map));
        }
    }
    assert_true(live_map_check(&map));
    live_map_release(&map);
}

static void pairs_blocks_as_the_naive_model_does(void **state)
{
    (void)state;
    struct model model = {.blocks = calloc(MODEL_BLOCKS_MAX, sizeof(*model.blocks))};
    assert_non_null(model.blocks);
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        run_stream(streams + i, &model);
    }
    free(model.blocks);
}

static void holds_each_block_in_24_bytes_at_every_size(void **state)
{
    (void)state;
    struct live_map map;
    live_map_init(&map, 42);
    enum {
        BLOCKS = 1500000
    };
    uint64_t worst_bytes = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        struct live_block block = {.size_bytes = i % 5000, .born_ms = i / 1000, .row = i % 97};
        assert_int_equal(live_map_add(&map, 0x555500000000 + i * 48, &block), ERR_OK);
        if (i % 997 == 0 && i > 300000) { // smaller maps may use more
            uint64_t bytes = live_map_bytes(&map) * 100 / map.live_count;
            worst_bytes = bytes > worst_bytes ? bytes : worst_bytes;
        }
    }
    print_message("at most %.2f bytes a block\n", (double)worst_bytes / 100);
    assert_in_range(worst_bytes, 1600, 2400);
    assert_true(live_map_check(&map));
    for (uint64_t i = 0; i < BLOCKS; i++) {
        struct live_block block = {0};
        assert_true(live_map_take(&map, 0x555500000000 + i * 48, &block));
        assert_int_equal(block.size_bytes, i % 5000);
    }
    assert_int_equal(map.live_count, 0);
    assert_in_range(live_map_bytes(&map), 0, 5 << 19); // and returns the memory, except 2 MiB
    live_map_release(&map);
}

static void walks_every_block_once(void **state)
{
    (void)state;
    struct live_map map;
    live_map_init(&map, 3);
    static const uint64_t addresses[] = {0x1000, 0x1000, 0x1003,
                                         0x1003, 0x2000, 0xff00000000000008};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct live_block block = {.size_bytes = (uint64_t)1 << i * 8};
        sum += block.size_bytes;
        assert_int_equal(live_map_add(&map, addresses[i], &block), ERR_OK);
    }
    struct live_map_position position = {0};
    uint64_t address = 0;
    struct live_block block;
    uint64_t seen_bytes = 0;
    uint64_t last_address = 0;
    uint64_t last_size = 0;
    while (live_map_next(&map, &position, &address, &block)) {
        seen_bytes += block.size_bytes;
        assert_false(address == last_address && block.size_bytes < last_size); // oldest first
        last_address = address;
        last_size = block.size_bytes;
    }
    assert_int_equal(seen_bytes, sum);
    live_map_release(&map);
}

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct live_map map;
    live_map_init(&map, 1);
    struct live_block block;
    assert_false(live_map_take(&map, 0x1000, &block));
    assert_false(live_map_take(&map, 0x1001, &block));
    live_map_prefetch(&map, 0x1000);
    assert_true(live_map_check(&map));
    live_map_release(&map);
    live_map_release(&map);
}

// The number of blocks rises and falls so often and so far that the recent table is dropped and
// restored. The model is a live_table, which has a naive model of its own above.
static void waves_pair_as_without_recent_blocks(void **state)
{
    (void)state;
    struct live_map map;
    struct live_table model;
    live_map_init(&map, 7);
    live_table_init(&model, 8);
    uint64_t random = 99;
    uint64_t most_recent = 0;
    uint64_t least_recent = UINT64_MAX;
    for (uint32_t i = 0; i < 600000 / step_by_day(6); i++) {
        const uint64_t address = 0x7f0000000000 + next_random(&random) % 20000 * 16;
        const bool is_rising = i % 150000 < 30000;
        const struct live_block block = {.size_bytes = i, .born_ms = i / 1000, .row = i % 97};
        if (next_random(&random) % 100 < (is_rising ? 75 : 4)) {
            assert_int_equal(live_map_add(&map, address, &block), ERR_OK);
            assert_int_equal(live_table_add(&model, address, &block), ERR_OK);
        } else {
            struct live_block got = {0};
            struct live_block want = {0};
            bool is_last;
            assert_int_equal(live_map_take(&map, address, &got),
                             live_table_take(&model, address, &want, &is_last));
            assert_same_block(got, want);
        }
        assert_int_equal(map.live_count, model.live_count);
        if (i % 1000 == 0) {
            assert_true(live_map_check(&map));
            const uint64_t recent = map.live_count - map.table.live_count;
            most_recent = recent > most_recent ? recent : most_recent;
            least_recent = recent < least_recent ? recent : least_recent;
        }
    }
    assert_true(most_recent > 100);
    assert_int_equal(least_recent, 0);
    live_map_release(&map);
    live_table_release(&model);
}

// Add a block of one address to both maps, or take it from both.
static void add_to_both(struct live_map *map,
                        struct live_table *model,
                        uint64_t address,
                        const struct live_block *block)
{
    assert_int_equal(live_map_add(map, address, block), ERR_OK);
    assert_int_equal(live_table_add(model, address, block), ERR_OK);
}

static void take_from_both(struct live_map *map, struct live_table *model, uint64_t address)
{
    struct live_block got = {0};
    struct live_block want = {0};
    bool is_last;
    assert_int_equal(live_map_take(map, address, &got),
                     live_table_take(model, address, &want, &is_last));
    assert_same_block(got, want);
    assert_int_equal(map->live_count, model->live_count);
}

// Blocks that die young among many that do not, at addresses that were used before: by other recent
// blocks, by old blocks that were freed, and, as second blocks of an address, by live ones.
static void recent_blocks_stay_among_many_old_ones(void **state)
{
    (void)state;
    enum {
        OLD = 30000,
        NESTED = 6,
    };
    struct live_map map;
    struct live_table model;
    live_map_init(&map, 5);
    live_table_init(&model, 6);
    const uint64_t old_base = 0x7f0000000000;
    const uint64_t recent_base = 0x7f0000004000; // in the same range as the old ones
    struct live_block block = {0};
    for (uint64_t i = 0; i < OLD; i++) {
        block = (struct live_block){.size_bytes = i, .born_ms = 1, .row = 3};
        add_to_both(&map, &model, old_base + i * 64, &block);
    }
    uint64_t random = 4711;
    for (uint32_t i = 0; i < 60000; i++) {
        uint64_t addresses[NESTED];
        for (uint32_t k = 0; k < NESTED; k++) {
            const uint64_t of_old = old_base + next_random(&random) % OLD * 64;
            const uint64_t of_recent = recent_base + next_random(&random) % 256 * 16;
            addresses[k] = i % 8 == 0 && k == 0 ? of_old : of_recent;
            if (i % 16 == 0 && k == 0) {
                take_from_both(&map, &model, addresses[k]);
            }
            block = (struct live_block){.size_bytes = i, .born_ms = k, .row = i % 97};
            add_to_both(&map, &model, addresses[k], &block);
        }
        for (uint32_t k = NESTED; k > 0; k--) {
            take_from_both(&map, &model, addresses[k - 1]);
        }
        if (i % 1000 == 0) {
            assert_true(live_map_check(&map));
            assert_true(i <= 20000 || map.recent != NULL);
        }
    }
    assert_true(map.table.live_count > OLD / 2);
    live_map_release(&map);
    live_table_release(&model);
}

// Three addresses that share a place, in some order, and what the map knows about each. Too short
// for the recent table to be dropped.
static void run_one_place(uint64_t seed)
{
    struct live_map map;
    struct live_table model;
    live_map_init(&map, 9);
    live_table_init(&model, 10);
    static const uint64_t addresses[] = {0x7f0000001230, 0x7f0000011220, 0x7f0000021210};
    uint64_t random = seed;
    for (uint32_t i = 0; i < 1500; i++) {
        const uint64_t address = addresses[next_random(&random) % 3];
        if (i == 0 || next_random(&random) % 100 < 48) {
            const struct live_block block = {.size_bytes = i};
            add_to_both(&map, &model, address, &block);
        } else {
            take_from_both(&map, &model, address);
        }
        assert_true(live_map_check(&map));
        assert_non_null(map.recent);
        assert_ptr_equal(live_map_place(&map, addresses[0]), live_map_place(&map, address));
    }
    live_map_release(&map);
    live_table_release(&model);
}

static void addresses_of_one_place_pair_as_without_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        run_one_place(seed * 31);
    }
}

// The program writes the freed address of a realloc as a word of 64 bits.
static void an_address_that_is_none_frees_no_block_twice(void **state)
{
    (void)state;
    struct live_map map;
    live_map_init(&map, 1);
    const struct live_block block = {.size_bytes = 5};
    assert_int_equal(live_map_add(&map, 0x1000, &block), ERR_OK);
    struct live_block out;
    uint64_t taken = 0;
    for (uint64_t bit = 56; bit < 64; bit++) {
        taken += live_map_take(&map, 0x1000 | (uint64_t)1 << bit, &out);
        taken += live_map_take(&map, 0x1000 | (uint64_t)1 << bit, &out);
    }
    taken += live_map_take(&map, 0x1000, &out);
    assert_int_equal(taken, 1);
    assert_int_equal(map.live_count, 0);
    assert_true(live_map_check(&map));
    live_map_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_blocks_as_the_naive_model_does),
        cmocka_unit_test(waves_pair_as_without_recent_blocks),
        cmocka_unit_test(recent_blocks_stay_among_many_old_ones),
        cmocka_unit_test(addresses_of_one_place_pair_as_without_it),
        cmocka_unit_test(an_address_that_is_none_frees_no_block_twice),
        cmocka_unit_test(holds_each_block_in_24_bytes_at_every_size),
        cmocka_unit_test(walks_every_block_once),
        cmocka_unit_test(an_empty_map_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
