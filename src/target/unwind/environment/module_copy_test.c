// SPDX-License-Identifier: MIT
// A copy of a module yields what the module itself does. A module that cannot be read any more, as
// during its unloading, does no harm; neither does a guessed stack. Without _dl_find_object, as
// with glibc before 2.35, modules that came after the list are found by system calls only.
#include "target/unwind/environment/module_copy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/page_alloc.h"
#include "base/sys.h"
#include "base/test_support/open_files.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/environment/rule_cache.h"
#include "target/unwind/environment/self_memory.h"
#include "target/unwind/unwind.h"

#define SAMPLES 1000u

static uint64_t rule_of_pc(uint64_t pc, bool is_guess)
{
    rule_cache_flush();
    struct rule_view view = rule_cache_view();
    view.is_guess = is_guess;
    return rule_cache_get(view, pc);
}

// Return the first return address in a function that a rule leads on from. On AArch64 the first
// instructions have none: the return address is in its register.
static uint64_t pc_with_frame(uint64_t function)
{
    uint64_t pc = function + 1;
    while ((rule_of_pc(pc, false) & RULE_STOP) != 0) {
        pc++;
        assert_true(pc < function + 256);
    }
    return pc;
}

static void *open_module(uint64_t *pc)
{
    void *module = dlopen(LOADABLE_MODULE, RTLD_NOW);
    assert_non_null(module);
    const uint64_t *nodes = dlsym(module, "nodes"); // functions of trees
    assert_non_null(nodes);
    *pc = nodes[0] + 1;
    return module;
}

static void a_copy_tells_the_same_rules(void **state)
{
    (void)state;
    const uint64_t libc_pc = (uint64_t)(void *)&getpid;
    uint64_t module_pc;
    void *module = open_module(&module_pc);
    const uint64_t pcs[] = {libc_pc, module_pc};
    unsigned with_rule = 0;
    for (unsigned k = 0; k < ARRAY_LEN(pcs); k++) {
        struct module_span span;
        assert_true(module_table_find(pcs[k], &span));
        const uint64_t step = (span.end - span.start) / SAMPLES + 1;
        for (uint64_t pc = span.start + 1; pc < span.end; pc += step) {
            const uint64_t rule = rule_of_pc(pc, false);
            assert_int_equal(rule_of_pc(pc, true), rule);
            with_rule += (rule & RULE_STOP) == 0;
        }
    }
    assert_true(with_rule > SAMPLES / 4);
    assert_int_equal(dlclose(module), 0);
}

static void a_copy_tells_the_same_of_the_module(void **state)
{
    (void)state;
    uint64_t module_pc;
    void *module = open_module(&module_pc);
    const uint64_t pcs[] = {(uint64_t)(void *)&getpid, module_pc};
    for (unsigned i = 0; i < ARRAY_LEN(pcs); i++) {
        struct unwind_module own;
        struct unwind_module copied;
        assert_true(unwind_find_module(pcs[i], &own));
        assert_true(unwind_find_guessed_module(pcs[i], &copied));
        assert_true(copied.path != own.path); // else it is not a copy
        assert_string_equal(copied.path, own.path);
        assert_int_equal(copied.start, own.start);
        assert_int_equal(copied.end, own.end);
        assert_int_equal(copied.bias, own.bias);
        assert_int_equal(copied.build_id.len, own.build_id.len);
        assert_memory_equal(copied.build_id.data, own.build_id.data, own.build_id.len);
        unwind_module_release(&copied);
        unwind_module_release(&own);
    }
    assert_int_equal(dlclose(module), 0);
}

static void protect(const struct module_span *span, int protection)
{
    assert_int_equal(mprotect((void *)span->start, span->end - span->start, protection), 0);
}

static void what_cannot_be_read_tells_nothing(void **state)
{
    (void)state;
    uint64_t pc;
    void *module = open_module(&pc);
    struct module_span span;
    struct unwind_module found;
    assert_true(module_table_find(pc, &span));
    protect(&span, PROT_NONE);
    const uint64_t rule = rule_of_pc(pc, true);
    const bool is_found = unwind_find_guessed_module(pc, &found);
    protect(&span, PROT_READ | PROT_WRITE | PROT_EXEC);
    assert_int_equal(rule, rule_stopping(RULE_NO_TABLE));
    assert_false(is_found);
    // Nor is the pc's rule cached, where its module was found.
    assert_int_equal(rule_cache_find(rule_cache_view(), pc),
                     module_table_needs_refresh() ? rule : 0);
    assert_int_equal(dlclose(module), 0);
}

static void without_system_calls_a_guess_tells_nothing(void **state)
{
    (void)state;
    uint64_t pc;
    void *module = open_module(&pc);
    struct unwind_module found;
    pc = pc_with_frame(pc - 1);
    sys_forbid(true);
    const uint64_t rule = rule_of_pc(pc, true);
    const uint64_t sure = rule_of_pc(pc, false);
    const bool is_found = unwind_find_guessed_module(pc, &found);
    sys_forbid(false);
    assert_int_equal(rule, rule_stopping(RULE_NO_TABLE));
    assert_int_equal((sure & RULE_STOP) != 0, module_table_needs_refresh());
    assert_false(is_found);
    assert_int_equal(dlclose(module), 0);
}

struct flicker {
    char *page;
    atomic_bool is_over;
};

static void *come_and_go(void *context)
{
    struct flicker *flicker = context;
    while (!flicker->is_over) {
        (void)mprotect(flicker->page, PAGE_GRAIN, PROT_NONE);
        (void)mprotect(flicker->page, PAGE_GRAIN, PROT_READ);
    }
    return NULL;
}

// Another thread may unmap the page between the check and the read.
static void a_guess_is_read_where_memory_comes_and_goes(void **state)
{
    (void)state;
    const struct stack_bounds unknown = {0};
    pthread_t thread;
    struct flicker flicker = {
        .page = mmap(NULL, PAGE_GRAIN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    assert_true(flicker.page != MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &flicker), 0);
    unsigned seen[2] = {0};
    while (seen[false] < 5000 || seen[true] < 5000) {
        struct self_memory memory = self_memory_over(&unknown);
        memory.reader.is_guess = true;
        uint64_t word = 1;
        const bool got = memory.reader.read(&memory.reader, (uint64_t)flicker.page, &word);
        assert_true(!got || word == 0);
        seen[got]++;
    }
    flicker.is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(munmap(flicker.page, PAGE_GRAIN), 0);
}

// The last test, because it cannot be undone.
static void what_stays_is_read_in_place(void **state)
{
    (void)state;
    unwind_modules_stay();
    uint64_t module_pc;
    void *module = open_module(&module_pc);
    unwind_modules_stay(); // changes nothing
    const uint64_t libc_pc = pc_with_frame((uint64_t)(void *)&qsort);
    struct unwind_module found;
    sys_forbid(true);
    const uint64_t rule = rule_of_pc(libc_pc, true);
    const bool is_found = unwind_find_guessed_module(libc_pc, &found);
    const bool is_module_found = unwind_find_guessed_module(module_pc, &found);
    sys_forbid(false);
    assert_true((rule & RULE_STOP) == 0);
    assert_true(is_found);
    assert_false(is_module_found);
    assert_int_equal(dlclose(module), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_tells_the_same_rules),
        cmocka_unit_test(a_copy_tells_the_same_of_the_module),
        cmocka_unit_test(what_cannot_be_read_tells_nothing),
        cmocka_unit_test(without_system_calls_a_guess_tells_nothing),
        cmocka_unit_test(a_guess_is_read_where_memory_comes_and_goes),
        cmocka_unit_test(what_stays_is_read_in_place),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
