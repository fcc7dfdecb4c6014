// SPDX-License-Identifier: MIT
// Tests lane_heap against a search through all lanes, with drawn stamps.
#include "recorder/lanes/lane_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"

enum {
    LANES = 70,
    STEPS = 20000,
    NO_LANE = LANES,
};

static struct lane_heap g_heap;

// What the heap should hold.
static struct {
    bool is_in;
    bool is_earlier;
    uint64_t stamp;
} g_lanes[LANES];

// Return the lane that is first, or NO_LANE; *out_second: the lowest stamp of the others. Of
// several first ones it takes `favourite`, if that is one.
static uint32_t search(uint32_t favourite, uint64_t *out_second)
{
    uint32_t first = NO_LANE;
    for (uint32_t k = 0; k < LANES; k++) {
        const uint32_t i = (favourite + k) % LANES;
        if (g_lanes[i].is_in && (first == NO_LANE || g_lanes[i].stamp < g_lanes[first].stamp ||
                                 (g_lanes[i].stamp == g_lanes[first].stamp &&
                                  g_lanes[i].is_earlier && !g_lanes[first].is_earlier))) {
            first = i;
        }
    }
    *out_second = UINT64_MAX;
    for (uint32_t i = 0; i < LANES; i++) {
        if (g_lanes[i].is_in && i != first && g_lanes[i].stamp < *out_second) {
            *out_second = g_lanes[i].stamp;
        }
    }
    return first;
}

static void check(void)
{
    uint64_t second;
    const uint32_t favourite = g_heap.count > 0 ? g_heap.turns[0].lane : 0;
    const uint32_t first = search(favourite, &second);
    assert_int_equal(g_heap.count == 0, first == NO_LANE);
    if (first != NO_LANE) {
        assert_int_equal(g_heap.turns[0].lane, first);
        assert_int_equal(g_heap.turns[0].stamp, g_lanes[first].stamp);
        assert_int_equal(lane_heap_second_stamp(&g_heap), second);
    }
}

// Stamps have few values, so that many are equal, among them the largest one.
static uint64_t draw_stamp(uint64_t *random)
{
    const uint64_t drawn = next_random(random) % 50;
    return drawn == 49 ? UINT64_MAX : drawn;
}

static void add(uint64_t *random)
{
    const uint32_t lane = (uint32_t)(next_random(random) % LANES);
    if (!g_lanes[lane].is_in) {
        g_lanes[lane].is_in = true;
        g_lanes[lane].is_earlier = next_random(random) % 2 == 0;
        g_lanes[lane].stamp = draw_stamp(random);
        lane_heap_add(&g_heap, (struct lane_turn){.stamp = g_lanes[lane].stamp,
                                                  .lane = lane,
                                                  .is_earlier = g_lanes[lane].is_earlier});
    }
}

static void the_first_lane_is_that_of_a_search(void **state)
{
    (void)state;
    uint64_t random = 20;
    lane_heap_clear(&g_heap);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t drawn = next_random(&random) % 8;
        const uint32_t first = g_heap.count > 0 ? g_heap.turns[0].lane : NO_LANE;
        if (first == NO_LANE || drawn < 3) {
            add(&random);
        } else if (drawn < 6) {
            g_lanes[first].stamp = draw_stamp(&random);
            lane_heap_move_first(&g_heap, g_lanes[first].stamp);
        } else {
            g_lanes[first].is_in = false;
            lane_heap_drop_first(&g_heap);
        }
        check();
    }
    lane_heap_clear(&g_heap);
    assert_int_equal(g_heap.count, 0);
}

static void a_session_full_of_lanes_comes_out_in_order(void **state)
{
    (void)state;
    uint64_t random = 21;
    lane_heap_clear(&g_heap);
    for (uint32_t i = 0; i < SESSION_MAX_LANES; i++) {
        lane_heap_add(&g_heap, (struct lane_turn){.stamp = next_random(&random), .lane = i});
    }
    for (uint64_t before = 0; g_heap.count > 0; lane_heap_drop_first(&g_heap)) {
        assert_true(g_heap.turns[0].stamp >= before);
        before = g_heap.turns[0].stamp;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_lane_is_that_of_a_search),
        cmocka_unit_test(a_session_full_of_lanes_comes_out_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
