// SPDX-License-Identifier: MIT
// agent_calls_aarch64_test: the agent itself in this process, and functions of this process that
// are patched to call it.
//
// Each kind of function is called with registers that the test has drawn. It compares every
// register afterwards, the arguments that the original got, the result, and what the agent sent.
// Then libc's allocator is patched. Seed: CAIRN_TEST_SEED. Context: H. AArch64, also emulated.
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/random_numbers.h"
#include "inject/agent_image.h"
#include "inject/test_agent/agent_here.h"
#include "inject/test_agent/register_call.h"
#include "patch_arch.h"

enum {
    DRAWS = 30, // of registers, for each kind and way
    THREADS = 4,
    BLOCKS = 50,
};

static struct agent_page *g_page;
static uint64_t g_random;

static int set_up(void **state)
{
    (void)state;
    const char *seed = getenv("CAIRN_TEST_SEED");
    g_random = seed != NULL ? strtoull(seed, NULL, 0) | 1 : 0x9e3779b97f4a7c15u;
    g_page = agent_here_begin();
    return 0;
}

static uint64_t drawn(void)
{
    return next_random(&g_random);
}

static struct records g_records;

static void draw(struct registers *out)
{
    for (size_t i = 0; i < ARRAY_LEN(out->x); i++) {
        out->x[i] = drawn();
    }
    for (size_t i = 0; i < ARRAY_LEN(out->q); i++) {
        out->q[i][0] = drawn();
        out->q[i][1] = drawn();
    }
    out->flags = drawn() & 0xf0000000u;
    out->fpsr = drawn() & 0x0800001fu;
}

static void expect_kept(const struct registers *in, const struct registers *out, const char *what)
{
    for (size_t i = 1; i <= 28; i++) {
        if (i != 16 && i != 17 && out->x[i] != in->x[i]) {
            fail_msg("%s: x%zu was %llx and is %llx", what, i, (unsigned long long)in->x[i],
                     (unsigned long long)out->x[i]);
        }
    }
    assert_int_equal(out->sp, 0);
    assert_int_equal(out->x[30], (uint64_t)return_of_call);
    assert_int_equal(out->flags, in->flags);
    assert_int_equal(out->fpsr, in->fpsr);
    assert_memory_equal(out->q, in->q, sizeof(out->q));
}

// A block of a heap that only the numbers know.
static uint64_t drawn_block(void)
{
    return drawn() & 0x7ffffffffff0u;
}

static char text_block[] = "copied";
static uint64_t block_at;

// How a kind is called and what it does, for the arguments in `in`.
struct expectation {
    uint64_t result;  // of the original
    uint64_t address; // of the block in the record
    bool allocates;
    bool frees; // of a block whose allocation no hook has seen
    bool has_result;
};

// Assert that the call was recorded as expected, and nothing else.
static void expect_recorded(const struct expectation *e)
{
    static uint64_t frees_before;
    agent_here_take(&g_records);
    size_t found = 0;
    for (size_t i = 0; i < g_records.count; i++) {
        const struct record *record = &g_records.items[i];
        const bool is_born = record_is(record, WIRE_BLOCK_BORN);
        if (is_born || record_is(record, WIRE_BLOCK_FREED)) { // of a block there before
            assert_int_equal(record->words[0] >> 8, e->address);
        }
        found += is_born;
    }
    assert_int_equal(found, e->allocates);
    const uint64_t frees = agent_here_unknown_frees();
    assert_int_equal(frees - frees_before, e->frees);
    frees_before = frees;
}

static struct expectation prepare(struct registers *in, enum agent_hook hook)
{
    const struct agent_hook_shape shape = agent_hook_shape(hook);
    struct expectation e = {.result = drawn_block() | 16, .has_result = true, .allocates = true};
    if (shape.size_argument != AGENT_NONE) {
        in->x[shape.size_argument] = 1 + drawn() % (1u << 20);
    }
    if (shape.count_argument != AGENT_NONE) {
        in->x[shape.count_argument] = 1 + drawn() % 8;
    }
    if (shape.block_argument != AGENT_NONE) {
        in->x[shape.block_argument] = drawn_block() | 16;
    }
    e.address = e.result;
    switch ((enum agent_effect)shape.effect) {
    case AGENT_ALLOCATES:
    case AGENT_ALLOCATES_OR_THROWS:
        break;
    case AGENT_ALLOCATES_AT:
        e.result = 0;
        block_at = e.address;
        in->x[0] = (uint64_t)&block_at;
        break;
    case AGENT_COPIES_TEXT:
        e.result = e.address = (uint64_t)text_block;
        break;
    case AGENT_RESIZES:
    case AGENT_RESIZES_OR_FREES:
        e.frees = true;
        break;
    case AGENT_RESIZES_IN_PLACE:
        e.result = in->x[shape.size_argument] + 8; // the usable size
        e.address = in->x[shape.block_argument];
        e.frees = true;
        break;
    case AGENT_FREES:
        e.has_result = false;
        e.allocates = false;
        e.frees = true;
        break;
    case AGENT_CHANGES_MODULES:
        e.has_result = false;
        e.allocates = false;
        break;
    case AGENT_MAPS: // it fails
        e.result = UINT64_MAX;
        e.allocates = false;
        break;
    case AGENT_EXECUTES:
    case AGENT_CONFINES:
    case AGENT_EXITS: // this process goes on
    case AGENT_LIMITS:
        e.allocates = false;
        break;
    }
    return e;
}

static const char *const kind_names[] = {
#define X(kind, effect, size, count, block) #kind,
    AGENT_HOOKS(X)
#undef X
};

// A kind of a hook: call it, recorded or not, and compare everything.
static void check_kind(enum agent_hook hook, bool is_enabled)
{
    atomic_store(&g_page->enabled, is_enabled);
    const bool may_throw = agent_hook_shape(hook).effect == AGENT_ALLOCATES_OR_THROWS;
    for (int i = 0; i < DRAWS; i++) {
        static struct registers in;
        static struct registers out;
        draw(&in);
        struct expectation e = prepare(&in, hook);
        // A throwing form is only called if its other form fails.
        const bool fails = may_throw && i % 2 == 1;
        const bool uses_nothrow = may_throw && is_enabled;
        original_seen = (struct original){.result = e.result};
        nothrow_seen = (struct original){.result = fails ? 0 : e.result};
        call_with_registers(
            &in, &out, (uint64_t)(e.has_result ? original_with_result : original_without_result));
        expect_kept(&in, &out, kind_names[hook]);
        assert_int_equal(out.x[0], e.has_result ? e.result : in.x[0]);
        assert_int_equal(nothrow_seen.calls, uses_nothrow);
        assert_int_equal(original_seen.calls, !uses_nothrow || fails);
        const struct original *seen = original_seen.calls != 0 ? &original_seen : &nothrow_seen;
        assert_memory_equal(seen->arguments, in.x, 6 * sizeof(uint64_t));
        e.allocates = e.allocates && is_enabled && !fails;
        e.frees = e.frees && is_enabled;
        expect_recorded(&e);
    }
    atomic_store(&g_page->enabled, 1);
}

static void each_kind_keeps_registers_and_passes_arguments_and_results(void **state)
{
    (void)state;
    for (int hook = 0; hook < AGENT_HOOK_COUNT; hook++) {
        const enum agent_effect effect = (enum agent_effect)agent_hook_shape(hook).effect;
        const bool has_result = effect != AGENT_FREES && effect != AGENT_CHANGES_MODULES;
        const uint64_t nothrow = effect == AGENT_ALLOCATES_OR_THROWS ? (uint64_t)nothrow_form : 0;
        const uint32_t index = agent_here_patch(
            (uint64_t)(has_result ? original_with_result : original_without_result),
            (enum agent_hook)hook, nothrow);
        check_kind((enum agent_hook)hook, true);
        check_kind((enum agent_hook)hook, false);
        agent_here_unpatch(index);
    }
}

// The first event of the thread, so its stack is sent.
static void a_stack_begins_with_the_call(void **state)
{
    (void)state;
    const uint32_t index = agent_here_patch((uint64_t)original_with_result, AGENT_MALLOC, 0);
    static struct registers in;
    static struct registers out;
    draw(&in);
    in.x[0] = 64;
    original_seen = (struct original){.result = drawn_block() | 16};
    call_with_registers(&in, &out, (uint64_t)original_with_result);
    agent_here_unpatch(index);
    agent_here_take(&g_records);
    size_t found = 0;
    for (size_t i = 0; i < g_records.count; i++) {
        if (record_is(&g_records.items[i], WIRE_STACK)) {
            assert_true(agent_here_is_frame(g_records.items[i].leaves[0], return_of_call));
            found++;
        }
    }
    assert_int_equal(found, 1);
}

// Calls a patched function. The result differs, so that this is no jump.
static uint64_t __attribute__((noinline)) calling_original(uint64_t size_bytes)
{
    uint64_t (*volatile inner)(uint64_t) = (uint64_t(*)(uint64_t))original_with_result;
    return inner(size_bytes) + 1;
}

// The original's frame is the innermost, its caller's the outermost; the agent's are between them.
static void a_stack_leads_through_an_entry(void **state)
{
    (void)state;
    const uint32_t inner = agent_here_patch((uint64_t)original_with_result, AGENT_MALLOC, 0);
    const uint32_t outer = agent_here_patch((uint64_t)calling_original, AGENT_EXECVE, 0);
    static struct registers in;
    static struct registers out;
    draw(&in);
    in.x[0] = 72;
    original_seen = (struct original){.result = drawn_block() | 16};
    call_with_registers(&in, &out, (uint64_t)calling_original);
    agent_here_unpatch(outer);
    agent_here_unpatch(inner);
    assert_int_equal(out.x[0], original_seen.result + 1);
    agent_here_take(&g_records);
    size_t found = 0;
    for (size_t i = 0; i < g_records.count; i++) {
        const struct record *record = &g_records.items[i];
        if (record_is(record, WIRE_STACK)) {
            assert_true(agent_here_is_frame(record->leaves[RECORD_LEAVES - 1], return_of_call));
            found++;
        }
    }
    assert_int_equal(found, 1);
}

// The sizes of a thread's blocks tell which call made them.
#define SIZE_OF(call, number) (1000u * (call) + (number))

enum {
    CALL_MALLOC = 1,
    CALL_CALLOC = 2,
    CALL_REALLOC = 3,
    CALL_MEMALIGN = 4,
    NUMBERS = THREADS * BLOCKS,
};
_Static_assert(NUMBERS <= 1000, "sizes of two calls differ");

struct worker {
    pthread_barrier_t *barrier;
    pthread_t thread;
    unsigned first;
    bool is_good;
};

static bool is_filled(const uint8_t *block, size_t len, uint8_t with)
{
    for (size_t i = 0; i < len; i++) {
        if (block[i] != with) {
            return false;
        }
    }
    return true;
}

static bool use_allocator(unsigned number)
{
    uint8_t *block = malloc(SIZE_OF(CALL_MALLOC, number));
    uint8_t *zeros = calloc(1, SIZE_OF(CALL_CALLOC, number));
    void *aligned = NULL;
    bool is_good = block != NULL && zeros != NULL &&
                   posix_memalign(&aligned, 512, SIZE_OF(CALL_MEMALIGN, number)) == 0 &&
                   (uintptr_t)aligned % 512 == 0 &&
                   is_filled(zeros, SIZE_OF(CALL_CALLOC, number), 0);
    if (is_good) {
        memset(block, (int)(number & 0xff), SIZE_OF(CALL_MALLOC, number));
        memset(aligned, 0x55, SIZE_OF(CALL_MEMALIGN, number));
        uint8_t *grown = realloc(block, SIZE_OF(CALL_REALLOC, number));
        is_good = grown != NULL &&
                  is_filled(grown, SIZE_OF(CALL_MALLOC, number), (uint8_t)(number & 0xff));
        block = grown;
    }
    free(block);
    free(zeros);
    free(aligned);
    return is_good;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    (void)pthread_barrier_wait(worker->barrier); // the functions are patched
    worker->is_good = true;
    for (unsigned i = 0; i < BLOCKS; i++) {
        worker->is_good = use_allocator(worker->first + i) && worker->is_good;
    }
    (void)pthread_barrier_wait(worker->barrier);
    (void)pthread_barrier_wait(worker->barrier); // they are as before
    return NULL;
}

// Every call was recorded once, with its size. A realloc is a free and a block.
static void expect_calls(void)
{
    static unsigned counts[CALL_MEMALIGN + 1][1000];
    size_t frees = 0;
    size_t blocks = 0;
    agent_here_take(&g_records);
    for (size_t i = 0; i < g_records.count; i++) {
        const struct record *record = &g_records.items[i];
        frees += record_is(record, WIRE_BLOCK_FREED);
        if (record_is(record, WIRE_BLOCK_BORN)) {
            const uint64_t size_bytes = record->words[2];
            assert_in_range(size_bytes, SIZE_OF(CALL_MALLOC, 0), SIZE_OF(CALL_MEMALIGN, 999));
            counts[size_bytes / 1000][size_bytes % 1000]++;
            blocks++;
        }
    }
    assert_int_equal(frees, 4 * NUMBERS);
    assert_int_equal(blocks, 4 * NUMBERS);
    for (unsigned call = CALL_MALLOC; call <= CALL_MEMALIGN; call++) {
        for (unsigned number = 0; number < NUMBERS; number++) {
            assert_int_equal(counts[call][number], 1);
        }
    }
}

static void the_allocator_of_libc_is_hooked_and_restored(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum agent_hook hook;
    } functions[] = {
        {"malloc", AGENT_MALLOC},
        {"free", AGENT_FREE},
        {"calloc", AGENT_CALLOC},
        {"realloc", AGENT_REALLOC},
        {"posix_memalign", AGENT_POSIX_MEMALIGN},
    };
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.barrier = &barrier, .first = i * BLOCKS};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, workers + i), 0);
    }
    uint64_t addrs[ARRAY_LEN(functions)];
    uint8_t before[ARRAY_LEN(functions)][PATCH_BYTES];
    uint32_t indexes[ARRAY_LEN(functions)];
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        addrs[i] = (uint64_t)dlsym(RTLD_DEFAULT, functions[i].name);
        memcpy(before[i], (const void *)addrs[i], PATCH_BYTES);
    }
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        indexes[i] = agent_here_patch(addrs[i], functions[i].hook, 0);
    }
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier); // they have worked
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        agent_here_unpatch(indexes[i]);
        assert_memory_equal((const void *)addrs[i], before[i], PATCH_BYTES);
    }
    (void)pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].is_good);
    }
    expect_calls();
    assert_true(use_allocator(0));
    agent_here_take(&g_records);
    assert_int_equal(g_records.count, 0);
    (void)pthread_barrier_destroy(&barrier);
}

static void an_image_of_another_machine_is_refused(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(agent_here_file().len);
    assert_non_null(bytes);
    memcpy(bytes, agent_here_file().data, agent_here_file().len);
    put_u16(bytes + offsetof(Elf64_Ehdr, e_machine), EM_X86_64);
    struct agent_image image;
    struct err_info info = {0};
    assert_int_equal(
        agent_image_init(&image, (struct bytes){bytes, agent_here_file().len}, PAGE_GRAIN, &info),
        ERR_INVALID);
    assert_string_equal(info.text, "the agent is not a shared object for AArch64");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_begins_with_the_call),
        cmocka_unit_test(a_stack_leads_through_an_entry),
        cmocka_unit_test(each_kind_keeps_registers_and_passes_arguments_and_results),
        cmocka_unit_test(the_allocator_of_libc_is_hooked_and_restored),
        cmocka_unit_test(an_image_of_another_machine_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
