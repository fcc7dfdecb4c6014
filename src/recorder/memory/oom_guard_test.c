// SPDX-License-Identifier: MIT
// oom_guard on drawn histories of a group's memory.
#include "recorder/memory/oom_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/compiler.h"

#define MIB UINT64_C(1048576)

enum outcome {
    NOTHING,
    NEAR,  // a checkpoint, because the limit has become near
    AGAIN, // another one
};

// A reading, and what follows.
struct step {
    uint64_t now_ms;
    uint64_t used_mib; // of 1024
    uint64_t stall_percent;
    enum outcome outcome;
};

static void checkpoints_come_when_the_limit_is_near(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct step steps[8];
    } cases[] = {
        {"far away",
         {{50, 100, 0, NOTHING},
          {5000, 500, 0, NOTHING},
          {9000, 700, 0, NOTHING},
          {20000, 800, 0, NOTHING}}},
        {"slowly up to the limit",
         {{1000, 900, 0, NOTHING}, {3000, 950, 0, NOTHING}, {5000, 961, 0, NEAR}}},
        // 100 MiB in 50 ms are 2000 MiB in a second, and 924 are left.
        {"fast",
         {{50, 0, 0, NOTHING}, {100, 100, 0, NEAR}, {150, 200, 0, NOTHING}, {1100, 700, 0, AGAIN}}},
        {"the first reading is no growth", {{50, 900, 0, NOTHING}, {10050, 901, 0, NOTHING}}},
        {"at once near", {{50, 1000, 0, NEAR}, {100, 1020, 0, NOTHING}, {1050, 1020, 0, AGAIN}}},
        {"near without growth costs one",
         {{50, 970, 0, NEAR},
          {2000, 970, 0, NOTHING},
          {9000, 971, 0, NOTHING},
          {90000, 971, 0, NOTHING}}},
        {"growth is worth another, once a second",
         {{50, 970, 0, NEAR},
          {500, 990, 0, NOTHING},
          {1000, 999, 0, NOTHING},
          {1050, 999, 0, AGAIN}}},
        {"away and near again",
         {{50, 970, 0, NEAR},
          {100000, 940, 0, NOTHING},
          {200000, 800, 0, NOTHING},
          {400000, 970, 0, NEAR}}},
        {"bursts are one",
         {{50, 970, 0, NEAR},
          {5000, 900, 0, NOTHING},
          {9000, 971, 0, NOTHING},
          {12000, 990, 0, AGAIN}}},
        {"stalls",
         {{50, 500, 0, NOTHING},
          {10000, 500, 9, NOTHING},
          {20000, 500, 10, NEAR},
          {30000, 500, 50, NOTHING}}},
        {"over the limit", {{50, 1024, 0, NEAR}, {5000, 1024, 0, NOTHING}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct oom_guard guard = {0};
        for (size_t k = 0; k < 8 && cases[i].steps[k].now_ms > 0; k++) {
            const struct step *step = &cases[i].steps[k];
            const struct memory_headroom headroom = {.limit_bytes = 1024 * MIB,
                                                     .used_bytes = step->used_mib * MIB,
                                                     .stall_percent = step->stall_percent};
            bool just_near = false;
            assert_true(oom_guard_is_due(&guard, false, step->now_ms));
            const bool is_due =
                oom_guard_look(&guard, &headroom, step->now_ms, step->now_ms, &just_near);
            if (is_due != (step->outcome != NOTHING) || just_near != (step->outcome == NEAR)) {
                fail_msg("%s, step %zu: due %d, near %d", cases[i].what, k, is_due, just_near);
            }
            assert_false(oom_guard_is_due(&guard, false, step->now_ms));
        }
    }
}

static void an_unknown_limit_is_never_near(void **state)
{
    (void)state;
    struct oom_guard guard = {0};
    bool just_near = true;
    const struct memory_headroom nothing = {.stall_percent = 99};
    assert_false(oom_guard_look(&guard, &nothing, 0, 1, &just_near));
    assert_false(just_near);
}

static void looks_are_rarer_during_a_rest_but_in_time(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit_mib;
        uint64_t used_mib;
        uint64_t next_ms; // after a look at 100 ms
    } cases[] = {
        {1024, 100, 212},    // 924 MiB last for an eighth of a second
        {1024, 970, 150},    // near
        {65536, 1000, 1000}, // with the looks at memory
        {0, 0, 1000},        // no limit
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct oom_guard guard = {0};
        const struct memory_headroom headroom = {.limit_bytes = cases[i].limit_mib * MIB,
                                                 .used_bytes = cases[i].used_mib * MIB};
        bool just_near;
        (void)oom_guard_look(&guard, &headroom, 0, 100, &just_near);
        assert_true(oom_guard_is_due(&guard, false, 150));
        assert_false(oom_guard_is_due(&guard, true, cases[i].next_ms - 1));
        assert_true(oom_guard_is_due(&guard, true, cases[i].next_ms + 1));
    }
}

// Near its limit, a rest is looked at often only until a checkpoint has what was recorded.
static void a_rest_is_saved_once(void **state)
{
    (void)state;
    static const struct {
        uint64_t now_ms;
        uint64_t events;
        bool is_due;       // a checkpoint
        uint64_t next_ms;  // of a look during the rest
        uint64_t left_mib; // of 1024
    } steps[] = {
        {100, 5, false, 161, 500},     {1099, 5, false, 1160, 500},
        {1100, 5, true, 2000, 500},    {2000, 5, false, 3000, 500},
        {3000, 5, false, 4000, 450},   {3100, 6, false, 3161, 500}, // it has gone on
        {4200, 6, false, 4261, 500},                                // too soon for another one
        {11099, 6, false, 11160, 500}, {11100, 6, true, 12000, 500},
        {12000, 6, false, 13000, 500},
    };
    struct oom_guard guard = {0};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        bool just_near;
        const struct memory_headroom headroom = {.limit_bytes = 1024 * MIB,
                                                 .used_bytes = (1024 - steps[i].left_mib) * MIB};
        assert_int_equal(
            oom_guard_look(&guard, &headroom, steps[i].events, steps[i].now_ms, &just_near),
            steps[i].is_due);
        assert_false(just_near);
        assert_false(oom_guard_is_due(&guard, true, steps[i].next_ms - 1));
        assert_true(oom_guard_is_due(&guard, true, steps[i].next_ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_come_when_the_limit_is_near),
        cmocka_unit_test(an_unknown_limit_is_never_near),
        cmocka_unit_test(looks_are_rarer_during_a_rest_but_in_time),
        cmocka_unit_test(a_rest_is_saved_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
