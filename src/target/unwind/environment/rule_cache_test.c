// SPDX-License-Identifier: MIT
// Compares the cache with the compiler of rules itself, over every address of libc's code.
#include "target/unwind/environment/rule_cache.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/by_night.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/environment/module_table.h"

#define PCS 280000u // more than the largest table holds

static struct {
    uint64_t first; // libc's code
    struct module_span span;
    struct eh_table table;
} g_libc;

static uint64_t expected(uint64_t pc)
{
    return rule_from_table(&g_libc.table, pc);
}

static uint64_t pc_of(uint64_t index)
{
    uint64_t len = g_libc.span.end - g_libc.first;
    return g_libc.first + 1 + index * 3 % (len - 1);
}

static int find_libc(void **state)
{
    (void)state;
    g_libc.first = (uint64_t)(void *)&getpid & ~0xfffULL;
    if (!module_table_find(g_libc.first, &g_libc.span) ||
        !module_table_unwind(&g_libc.span, &g_libc.table)) {
        return -1;
    }
    return 0;
}

static void a_rule_is_what_the_table_says(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < PCS; i += 1 + round * 6) {
            uint64_t pc = pc_of(i);
            uint64_t rule = rule_cache_get(rule_cache_view(), pc);
            if (rule != expected(pc) || rule == 0) {
                fail_msg("pc %#llx: %#llx, wanted %#llx", (unsigned long long)pc,
                         (unsigned long long)rule, (unsigned long long)expected(pc));
            }
        }
    }
}

static void it_grows_and_keeps_what_it_has(void **state)
{
    (void)state;
    rule_cache_flush();
    unsigned found = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        (void)rule_cache_get(rule_cache_view(), pc_of(i));
    }
    for (uint64_t i = 0; i < 20000; i++) {
        found += rule_cache_find(rule_cache_view(), pc_of(i)) != 0;
    }
    assert_true(found > 19000); // a few are lost to full lines
}

static void a_flush_forgets_everything(void **state)
{
    (void)state;
    uint64_t before = rule_cache_generation();
    struct rule_view old = rule_cache_view();
    (void)rule_cache_get(old, pc_of(1));
    rule_cache_flush();
    assert_true(rule_cache_generation() == before + 1);
    assert_true(rule_cache_find(rule_cache_view(), pc_of(1)) == 0);
    // An entry that a thread writes after the flush, having begun before it, is not found either.
    (void)rule_cache_fill(old.table, old.salt, old.is_guess, pc_of(2));
    assert_true(rule_cache_find(rule_cache_view(), pc_of(2)) == 0);
    assert_true(rule_cache_get(rule_cache_view(), pc_of(2)) == expected(pc_of(2)));
}

static void unknown_code_is_noticed(void **state)
{
    (void)state;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    rule_cache_flush();
    (void)rule_cache_get(rule_cache_view(), pc_of(1));
    assert_false(rule_cache_has_unknown_code());
    assert_true(rule_cache_get(rule_cache_view(), (uint64_t)page + 8) ==
                rule_stopping(RULE_NO_TABLE));
    assert_true(rule_cache_has_unknown_code());
    rule_cache_flush();
    assert_false(rule_cache_has_unknown_code());
    assert_int_equal(munmap(page, 4096), 0);
}

struct worker {
    pthread_t thread;
    uint64_t seed;
    uint64_t wrong;
};

static _Atomic bool g_stop;

static void *look_up(void *context)
{
    struct worker *worker = context;
    uint64_t random = worker->seed;
    while (!atomic_load(&g_stop)) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        uint64_t pc = pc_of((random >> 33) % 3000);
        worker->wrong += rule_cache_get(rule_cache_view(), pc) != expected(pc);
    }
    return NULL;
}

static void threads_see_right_rules_while_others_write_and_flush(void **state)
{
    (void)state;
    struct worker workers[4] = {0};
    atomic_store(&g_stop, false);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].seed = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, look_up, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 2000; i += step_by_day(12)) {
        rule_cache_flush();
        for (uint64_t k = 0; k < 100; k++) {
            (void)rule_cache_get(rule_cache_view(), pc_of(k));
        }
    }
    atomic_store(&g_stop, true);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].wrong == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_is_what_the_table_says),
        cmocka_unit_test(it_grows_and_keeps_what_it_has),
        cmocka_unit_test(a_flush_forgets_everything),
        cmocka_unit_test(unknown_code_is_noticed),
        cmocka_unit_test(threads_see_right_rules_while_others_write_and_flush),
    };
    return cmocka_run_group_tests(tests, find_libc, NULL);
}
