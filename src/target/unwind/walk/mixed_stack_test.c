// SPDX-License-Identifier: MIT
// Mixes frames of a language into drawn native stacks, which change from one mix to the next, and
// compares each result with one that is made whole: cut and uncut, with inserts of other stacks.
#include "target/unwind/walk/mixed_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/test_support/random_numbers.h"
#include "session/wire.h"

enum {
    CAPACITY = 256,
    NATIVES_MAX = 40,
    INSERTS_MAX = 60,
    MAX_FRAMES = 24,
    TOP = 1 << 20,
    ROUNDS = 40000,
};

struct world {
    struct walk_cache native; // outermost first
    struct unwind_frame frames[NATIVES_MAX];
    struct walk_cache_state states[NATIVES_MAX + 1];
    struct unwind_insert items[INSERTS_MAX];
    struct unwind_inserts inserts;
    struct mixed_stack *mixed;
    uint32_t native_same; // since the last mix
};

static uint32_t below(uint64_t *random, uint32_t end)
{
    return (uint32_t)(next_random(random) % end);
}

static struct world *new_world(void)
{
    struct world *w = calloc(1, sizeof(*w));
    w->native.frames = w->frames;
    w->native.states = w->states;
    w->inserts.items = w->items;
    w->mixed =
        mixed_stack_init(calloc(1, mixed_stack_bytes(CAPACITY, MAX_FRAMES)), CAPACITY, MAX_FRAMES);
    return w;
}

static void free_world(struct world *w)
{
    free(w->mixed);
    free(w);
}

// Keep some native frames, and draw those further in.
static void change_natives(struct world *w, uint64_t *random)
{
    const uint32_t kept = below(random, w->native.count + 1);
    uint32_t count = kept;
    uint64_t sp = count > 0 ? w->states[count - 1].sp : TOP;
    while (count < NATIVES_MAX && (count == 0 || below(random, 6) != 0)) {
        sp -= 64 * (uint64_t)(1 + below(random, 8));
        w->states[count].sp = sp;
        w->frames[count++].pc = 100 + below(random, 4);
    }
    w->native.count = count;
    w->native_same = kept < w->native_same ? kept : w->native_same;
}

// Keep some inserts, and draw those further in: in native frames, and some elsewhere.
static void change_inserts(struct world *w, uint64_t *random)
{
    const uint32_t kept = below(random, w->inserts.count + 1);
    uint32_t count = kept;
    uint64_t place = count > 0 ? w->items[count - 1].place : TOP - 1;
    while (count < INSERTS_MAX && below(random, 5) != 0) {
        place -= (uint64_t)below(random, 3) * 40;
        const bool is_elsewhere = below(random, 20) == 0;
        w->items[count++] = (struct unwind_insert){.pc = 1000 + below(random, 4),
                                                   .place = is_elsewhere ? TOP + 8 : place};
    }
    w->inserts.count = count;
    w->inserts.same = kept < w->inserts.same ? kept : w->inserts.same;
}

// Mix all of it, as the header says.
static uint32_t mix_whole(const struct world *w, uint64_t pcs[static CAPACITY])
{
    uint32_t count = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < w->native.count; i++) {
        const uint64_t high = i > 0 ? w->states[i - 1].sp : TOP;
        const uint32_t before = count;
        for (; next < w->inserts.count && w->items[next].place >= w->states[i].sp; next++) {
            if (w->items[next].place < high) {
                pcs[count++] = w->items[next].pc;
            }
        }
        if (count == before) {
            pcs[count++] = w->frames[i].pc;
        }
    }
    return count;
}

static void assert_is_whole(const struct world *w, const struct unwind_walk *walk)
{
    uint64_t pcs[CAPACITY];
    const uint32_t count = mix_whole(w, pcs);
    const bool is_cut = count > MAX_FRAMES;
    const struct frame_cut cut = is_cut ? frame_cut_of(count, MAX_FRAMES)
                                        : (struct frame_cut){.outer = count, .inner_from = count};
    assert_int_equal((walk->flags & UNWIND_CUT) != 0, is_cut);
    assert_int_equal(walk->count, is_cut ? cut.outer + 1 + count - cut.inner_from : count);
    uint64_t name = 0;
    for (uint32_t i = 0; i < walk->count; i++) {
        uint64_t pc = WIRE_FRAME_CUT;
        if (!is_cut || i != cut.outer) {
            pc = pcs[i < cut.outer ? i : i - cut.outer - 1 + cut.inner_from];
        }
        name = stack_name(name, pc);
        assert_int_equal(walk->frames[i].pc, pc);
        assert_int_equal(walk->frames[i].name, name);
    }
    assert_int_equal(walk->name, name);
    assert_int_equal(mixed_stack_name(w->mixed), name);
}

static void each_mix_is_as_if_made_whole(void **state)
{
    (void)state;
    struct world *w = new_world();
    uint64_t random = 1;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        change_natives(w, &random);
        if (below(&random, 3) != 0) {
            change_inserts(w, &random);
        }
        if (below(&random, 4) == 0) {
            continue; // a walk that is not mixed
        }
        struct unwind_walk walk;
        const uint32_t changed =
            mixed_stack_make(w->mixed, &w->native, TOP, w->native_same, &w->inserts);
        assert_int_not_equal(changed, UINT32_MAX);
        mixed_stack_result(w->mixed, MAX_FRAMES, changed, &walk);
        assert_is_whole(w, &walk);
        w->native_same = w->inserts.same = UINT32_MAX;
    }
    free_world(w);
}

static void what_stays_is_not_made_again(void **state)
{
    (void)state;
    struct world *w = new_world();
    w->native.count = 2;
    w->states[0].sp = 4096;
    w->states[1].sp = 2048;
    for (uint32_t i = 0; i < 10; i++) {
        w->items[i] = (struct unwind_insert){.pc = 1000 + i, .place = 5000};
    }
    w->inserts.count = 9;
    assert_int_equal(mixed_stack_make(w->mixed, &w->native, TOP, 0, &w->inserts), 0);
    w->inserts.count = 10;
    w->inserts.same = 9;
    assert_int_equal(mixed_stack_make(w->mixed, &w->native, TOP, UINT32_MAX, &w->inserts), 9);
    w->inserts.same = 10;
    assert_int_equal(mixed_stack_make(w->mixed, &w->native, TOP, UINT32_MAX, &w->inserts), 11);
    free_world(w);
}

static void too_little_room_leaves_nothing_remembered(void **state)
{
    (void)state;
    struct world *w = new_world();
    w->mixed->capacity = 3;
    w->native.count = 4;
    for (uint32_t i = 0; i < w->native.count; i++) {
        w->states[i].sp = TOP - 64 * (i + 1);
    }
    assert_int_equal(mixed_stack_make(w->mixed, &w->native, TOP, 0, &w->inserts), UINT32_MAX);
    assert_int_equal(mixed_stack_name(w->mixed), 0);
    w->native.count = 3;
    assert_int_equal(mixed_stack_make(w->mixed, &w->native, TOP, 3, &w->inserts), 0);
    free_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mix_is_as_if_made_whole),
        cmocka_unit_test(what_stays_is_not_made_again),
        cmocka_unit_test(too_little_room_leaves_nothing_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
