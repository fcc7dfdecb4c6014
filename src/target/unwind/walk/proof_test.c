// SPDX-License-Identifier: MIT
// Tests how much of a deep stack is read back: words that must not be read are in unreadable
// memory.
#include "target/unwind/walk/proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define FRAMES   100u
#define READABLE 60u // frames [FRAMES - READABLE, FRAMES) have words that can be read

// A stack of FRAMES frames with one word each. The outer frames' words cannot be read.
struct stack {
    struct walk_cache walk_cache;
    struct walk_cache_state states[FRAMES + 1];
    struct walk_cache_word words[FRAMES];
    uint64_t memory[FRAMES];
    uint64_t *closed;
};

static void make(struct stack *s)
{
    *s = (struct stack){.closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    assert_ptr_not_equal(s->closed, MAP_FAILED);
    for (uint32_t i = 0; i < FRAMES; i++) {
        const bool is_closed = i < FRAMES - READABLE;
        s->memory[i] = 5000 + i;
        s->words[i] = (struct walk_cache_word){
            .addr = (uint64_t)(uintptr_t)(is_closed ? s->closed + i : s->memory + i),
            .value = 5000 + i};
        s->states[i].first_word = i;
    }
    s->states[FRAMES].first_word = FRAMES;
    s->walk_cache = (struct walk_cache){.count = FRAMES, .states = s->states, .words = s->words};
}

// Make the closed words readable from now on; they contain the remembered values.
static void open_all(struct stack *s)
{
    assert_int_equal(mprotect(s->closed, 4096, PROT_READ | PROT_WRITE), 0);
    memcpy(s->closed, s->memory, (FRAMES - READABLE) * sizeof(uint64_t));
}

static void no_more_is_read_than_proves_the_rest(void **state)
{
    (void)state;
    struct stack s;
    make(&s);
    struct proof proof = {.evidence = READABLE, .from = FRAMES};
    assert_false(proof_holds(&proof, FRAMES));
    assert_int_equal(proof_extend(&proof, &s.walk_cache, FRAMES), FRAMES);
    assert_int_equal(proof.from, FRAMES - READABLE);
    assert_true(proof_holds(&proof, FRAMES));
    assert_false(proof_holds(&proof, FRAMES - 1));
    (void)munmap(s.closed, 4096);
}

// Frames further in than a changed one prove nothing; the same number must be intact further out.
static void a_change_asks_for_more(void **state)
{
    (void)state;
    for (uint32_t changed = FRAMES - READABLE; changed < FRAMES; changed++) {
        struct stack s;
        make(&s);
        const uint32_t evidence = 10;
        s.memory[changed] ^= 1;
        struct proof proof = {.evidence = evidence, .from = FRAMES};
        if (changed - (FRAMES - READABLE) < evidence) {
            open_all(&s); // the evidence is there
        }
        const uint32_t known = proof_extend(&proof, &s.walk_cache, FRAMES);
        const bool is_seen = changed >= FRAMES - evidence;
        assert_int_equal(known, is_seen ? changed : FRAMES);
        assert_int_equal(proof.from, known - evidence);
        (void)munmap(s.closed, 4096);
    }
}

static void without_evidence_all_is_read(void **state)
{
    (void)state;
    for (uint32_t changed = 0; changed < FRAMES; changed += 33) {
        struct stack s;
        make(&s);
        open_all(&s);
        *(uint64_t *)(uintptr_t)s.words[changed].addr ^= 1;
        struct proof proof = {.evidence = UINT32_MAX, .from = FRAMES};
        assert_int_equal(proof_extend(&proof, &s.walk_cache, FRAMES), changed);
        assert_true(changed == 0 || proof.from == 0);
        (void)munmap(s.closed, 4096);
    }
}

// A walk that meets a frame further out than expected has a smaller proof than before.
static void a_frame_further_out_is_proved_anew(void **state)
{
    (void)state;
    struct stack s;
    make(&s);
    struct proof proof = {.evidence = 10, .from = FRAMES};
    assert_int_equal(proof_extend(&proof, &s.walk_cache, FRAMES), FRAMES);
    assert_int_equal(proof_extend(&proof, &s.walk_cache, FRAMES - 25), FRAMES - 25);
    assert_int_equal(proof.from, FRAMES - 35);
    s.memory[FRAMES - 38] ^= 1;
    assert_int_equal(proof_extend(&proof, &s.walk_cache, FRAMES - 30), FRAMES - 38);
    (void)munmap(s.closed, 4096);
}

static void time_bounds_calls(void **state)
{
    (void)state;
    const struct moment then = {.ticks = 1000, .processor = 3};
    const uint64_t per_tick = arch_calls_per_tick();
    const uint64_t countable = (UINT32_MAX - PROOF_IN_FLIGHT) / per_tick; // ticks, in 32 bits
    const struct {
        struct moment now;
        uint64_t calls;
    } cases[] = {
        {{.ticks = 1001, .processor = 3}, 2 * per_tick + PROOF_IN_FLIGHT},
        {{.ticks = 2000, .processor = 3}, 1001 * per_tick + PROOF_IN_FLIGHT},
        {{.ticks = 1000, .processor = 3}, UINT32_MAX}, // stopped
        {{.ticks = 999, .processor = 3}, UINT32_MAX},  // runs backwards
        {{.ticks = 2000, .processor = 2}, UINT32_MAX}, // another processor's
        {{.ticks = 1000 + countable - 2, .processor = 3},
         (countable - 1) * per_tick + PROOF_IN_FLIGHT},
        {{.ticks = 1000 + countable - 1, .processor = 3}, UINT32_MAX}, // too long ago
        {{.ticks = 1000 + UINT32_MAX, .processor = 3}, UINT32_MAX},
        {{.ticks = UINT64_MAX, .processor = 3}, UINT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(proof_calls_between(&then, &cases[i].now), cases[i].calls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_is_read_than_proves_the_rest),
        cmocka_unit_test(a_change_asks_for_more),
        cmocka_unit_test(without_evidence_all_is_read),
        cmocka_unit_test(a_frame_further_out_is_proved_anew),
        cmocka_unit_test(time_bounds_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
