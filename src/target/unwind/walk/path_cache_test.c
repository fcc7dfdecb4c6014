// SPDX-License-Identifier: MIT
// Tests path_cache over a stack made by hand: four frames of eight words, whose step reads a return
// address in the last word and, in some frames, a saved fp in the word before.
#include "target/unwind/walk/path_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"

#define FRAMES      4u
#define FRAME_WORDS 8u
#define FRAME_BYTES 64

enum {
    LEAF_PC = 0x1000, // frame i from the leaf outwards has LEAF_PC + i
    LEAF_FP = 77,     // and LEAF_FP + i in fp, where it is saved by the frame before
};

struct world {
    uint64_t stack[FRAMES * FRAME_WORDS];
    struct walk_cache walk_cache;
    struct shortcuts shortcuts;
    struct fresh_frame frames[FRAMES]; // [0] is the leaf
};

static uint64_t sp_of(const struct world *w, uint32_t frame)
{
    return (uint64_t)(uintptr_t)&w->stack[(size_t)frame * FRAME_WORDS];
}

// Return the name of the stack down to `frame`, counted from the leaf.
static uint64_t name_of(const struct world *w, uint32_t frame)
{
    uint64_t name = 0;
    for (uint32_t i = FRAMES; i-- > frame;) {
        name = stack_name(name, w->frames[i].regs.pc);
    }
    return name;
}

// Initialize a world. `uses_fp`: its frames need fp; `saves_fp`: each frame keeps its caller's fp.
static void world_init(struct world *w, bool uses_fp, bool saves_fp)
{
    *w = (struct world){0};
    w->walk_cache = (struct walk_cache){
        .capacity = FRAMES,
        .frames = calloc(FRAMES, sizeof(struct unwind_frame)),
        .states = calloc(FRAMES + 1, sizeof(struct walk_cache_state)),
        .words = calloc(FRAMES, REMEMBERED_WORDS_PER_FRAME * sizeof(struct walk_cache_word)),
    };
    w->shortcuts.table = calloc(SHORTCUT_COUNT, sizeof(struct path_cache));
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint64_t *words = &w->stack[(size_t)i * FRAME_WORDS];
        words[FRAME_WORDS - 1] = LEAF_PC + i + 1;
        words[FRAME_WORDS - 2] = LEAF_FP + i + 1;
        w->frames[i] = (struct fresh_frame){
            .regs = {.pc = LEAF_PC + i, .sp = sp_of(w, i), .fp = LEAF_FP + (saves_fp ? i : 0)},
            .rule = rule_of(saves_fp ? RULE_FP_SAVED : 0, FRAME_BYTES, -16, -8),
        };
    }
    // The outermost frame ends the walk, and determines whether fp counts.
    w->frames[FRAMES - 1].rule = rule_stopping(uses_fp ? RULE_NO_TABLE : RULE_LAST);
    (void)walk_cache_replace(&w->walk_cache, 0, w->frames, FRAMES, false);
}

static void world_release(struct world *w)
{
    free(w->walk_cache.frames);
    free(w->walk_cache.states);
    free(w->walk_cache.words);
    free(w->shortcuts.table);
}

// Learn a path from the leaf over `count` frames.
static void learn(struct world *w, uint32_t count)
{
    path_cache_learn(&w->shortcuts, &w->walk_cache, FRAMES - 1 - count, w->frames, count,
                     name_of(w, 0));
}

static uint64_t take(const struct world *w)
{
    return path_cache_take(&w->shortcuts, &w->walk_cache, &w->frames[0].regs);
}

static void it_gives_the_name_while_all_is_as_it_was(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct world w;
        world_init(&w, kind % 2 != 0, kind / 2 != 0);
        assert_int_equal(take(&w), 0);
        learn(&w, 2);
        assert_int_equal(take(&w), name_of(&w, 0));
        // Nor does it need remembered frames of the same path.
        w.walk_cache.count = 2;
        assert_int_equal(take(&w), name_of(&w, 0));
        path_cache_forget_all(&w.shortcuts);
        assert_int_equal(take(&w), 0);
        world_release(&w);
    }
}

// Change each word that the walk depends on, and no other: the return addresses, and the fp of the
// outermost frame, if that uses it and has it from memory.
static void a_word_that_changed_ends_it(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 8; kind++) {
        const bool needs_saved_fp = (kind & 3) == 3;
        struct world w;
        world_init(&w, (kind & 1) != 0, (kind & 2) != 0);
        learn(&w, 2 + kind / 4);
        for (size_t i = 0; i < ARRAY_LEN(w.stack); i++) {
            const size_t frame = i / FRAME_WORDS;
            const size_t at = i % FRAME_WORDS;
            const bool is_return = frame < FRAMES - 1 && at == FRAME_WORDS - 1;
            const bool is_fp = frame == FRAMES - 2 && at == FRAME_WORDS - 2;
            const bool counts = is_return || (is_fp && needs_saved_fp);
            w.stack[i] ^= 1;
            if (take(&w) != (counts ? 0 : name_of(&w, 0))) {
                fail_msg("kind %u: word %zu of frame %zu %s", kind, at, frame,
                         counts ? "counts" : "does not count");
            }
            w.stack[i] ^= 1;
        }
        world_release(&w);
    }
}

static void another_start_is_another_way(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        const bool uses_fp = kind != 0;
        struct world w;
        world_init(&w, uses_fp, false);
        learn(&w, 2);
        struct frame_regs *start = &w.frames[0].regs;
        start->fp++;
        assert_int_equal(take(&w), uses_fp ? 0 : name_of(&w, 0));
        start->fp--;
        // Even if they had the same index.
        for (uint32_t i = 0; i < SHORTCUT_COUNT; i++) {
            w.shortcuts.table[i] = w.shortcuts.table[path_cache_place(start)];
        }
        for (size_t i = 0; i < ARRAY_LEN(w.shortcuts.is_known); i++) {
            w.shortcuts.is_known[i] = UINT64_MAX;
        }
        start->pc++;
        assert_int_equal(take(&w), 0);
        start->pc--;
        start->sp += 8;
        assert_int_equal(take(&w), 0);
        start->sp -= 8;
        assert_int_equal(take(&w), name_of(&w, 0));
        world_release(&w);
    }
}

static void it_has_to_end_in_what_is_walk_cache_now(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, true, false);
    learn(&w, 2);
    struct walk_cache_state *end = &w.walk_cache.states[1];
    end->sp += 16;
    assert_int_equal(take(&w), 0);
    end->sp -= 16;
    end->fp++;
    assert_int_equal(take(&w), 0);
    end->fp--;
    end->flags ^= REMEMBERED_NEEDS_FP;
    assert_int_equal(take(&w), 0);
    end->flags ^= REMEMBERED_NEEDS_FP;
    w.walk_cache.frames[1].pc++;
    assert_int_equal(take(&w), 0);
    w.walk_cache.frames[1].pc--;
    w.walk_cache.count = 1;
    assert_int_equal(take(&w), 0);
    w.walk_cache.count = FRAMES;
    assert_int_equal(take(&w), name_of(&w, 0));
    world_release(&w);
}

// The same path over another outermost frame.
static void over_another_root_it_has_another_name(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, true);
    learn(&w, 2);
    const uint64_t before = name_of(&w, 0);
    w.frames[FRAMES - 1].regs.pc = 0x9999;
    w.stack[(FRAMES - 1) * FRAME_WORDS - 1] = 0x9999;
    (void)walk_cache_replace(&w.walk_cache, 0, w.frames, FRAMES, false);
    assert_int_not_equal(name_of(&w, 0), before);
    assert_int_equal(take(&w), name_of(&w, 0));
    world_release(&w);
}

// A path that does not fit, or steps over a signal's frame, is not learned and replaces no other.
static void what_it_cannot_say_is_not_learned(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, false);
    w.frames[1].rule |= RULE_SIGNAL;
    learn(&w, 2);
    assert_int_equal(take(&w), 0);
    w.frames[1].rule &= ~(uint64_t)RULE_SIGNAL;
    learn(&w, 2);
    const struct fresh_frame long_way[SHORTCUT_WORDS_MAX + 1] = {w.frames[0]};
    path_cache_learn(&w.shortcuts, &w.walk_cache, 0, long_way, ARRAY_LEN(long_way), 1);
    assert_int_equal(take(&w), name_of(&w, 0));
    world_release(&w);
}

static void a_way_is_worth_keeping_the_second_time(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, false);
    const struct frame_regs *start = &w.frames[0].regs;
    assert_false(path_cache_is_worth(&w.shortcuts, start, 7));
    assert_true(path_cache_is_worth(&w.shortcuts, start, 7));
    assert_false(path_cache_is_worth(&w.shortcuts, start, 8));
    assert_false(path_cache_is_worth(&w.shortcuts, start, 7));
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_the_name_while_all_is_as_it_was),
        cmocka_unit_test(a_word_that_changed_ends_it),
        cmocka_unit_test(another_start_is_another_way),
        cmocka_unit_test(it_has_to_end_in_what_is_walk_cache_now),
        cmocka_unit_test(over_another_root_it_has_another_name),
        cmocka_unit_test(what_it_cannot_say_is_not_learned),
        cmocka_unit_test(a_way_is_worth_keeping_the_second_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
