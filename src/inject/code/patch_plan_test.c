// SPDX-License-Identifier: MIT
// patch_plan_test: a plan applied to this process: libc's functions run in trampolines, and its
// allocator's entries jump to a hook that counts.
//
// The hook keeps all registers, counts, and jumps to the trampoline. Context: H, one thread.
#include "inject/code/patch_plan.h"

#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    PAGE = 4096,
    PATCHES_MAX = 32,
    FIRST_INDEX = 3,
};

static struct {
    void *libc; // handle
    uint8_t *near_page;
    int memory_fd; // /proc/self/mem writes read-only pages
} g_test;

extern uint64_t test_counts[PATCHES_MAX];
extern uint64_t test_trampolines[PATCHES_MAX];
uint64_t test_counts[PATCHES_MAX];
uint64_t test_trampolines[PATCHES_MAX];
void test_hook(void);

// On entry: the index, the return address. It takes the index off the stack by jumping with it.
// The compiler's section stays: it may be in the middle of the variables.
__asm__(".pushsection .text\n"
        ".globl test_hook\n"
        ".type test_hook, @function\n"
        "test_hook:\n"
        "    endbr64\n"
        "    pushq %rax\n"
        "    pushq %rcx\n"
        "    movq 16(%rsp), %rax\n"
        "    movq test_counts@GOTPCREL(%rip), %rcx\n"
        "    incq (%rcx,%rax,8)\n"
        "    movq test_trampolines@GOTPCREL(%rip), %rcx\n"
        "    movq (%rcx,%rax,8), %rax\n"
        "    movq %rax, 16(%rsp)\n"
        "    popq %rcx\n"
        "    popq %rax\n"
        "    ret\n"
        ".size test_hook, . - test_hook\n"
        ".popsection\n");

static uint64_t abi_calls;

// For functions that change all registers: counts, and does what the function does.
static uint64_t
test_abi_hook(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t (*original)(uint64_t, ...))
{
    abi_calls++;
    return original(a, b, c, d);
}

static size_t read_own(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    (void)context;
    const ssize_t got = pread(g_test.memory_fd, out, len, (off_t)addr);
    return got > 0 ? (size_t)got : 0;
}

static const struct code_reader own_memory = {.read = read_own};

static struct patch_target target_of(const char *name, enum agent_hook hook)
{
    void *addr = dlsym(g_test.libc, name);
    assert_non_null(addr);
    Dl_info info;
    void *found = NULL;
    assert_int_not_equal(dladdr1(addr, &info, &found, RTLD_DL_SYMENT), 0);
    const ElfW(Sym) *symbol = found;
    return (struct patch_target){.addr = (uintptr_t)addr,
                                 .size_bytes = symbol->st_size,
                                 .hook = hook,
                                 .nothrow = -1,
                                 .name = name};
}

static void write_text(uint64_t addr, const void *bytes, size_t len)
{
    assert_int_equal(pwrite(g_test.memory_fd, bytes, len, (off_t)addr), len);
}

// Map a page in reach of libc.
static int set_up(void **state)
{
    (void)state;
    g_test.libc = dlopen(LIBC_SO, RTLD_NOW | RTLD_NOLOAD);
    g_test.memory_fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    const uintptr_t libc_addr = (uintptr_t)dlsym(g_test.libc, "malloc");
    for (uintptr_t at = libc_addr / PAGE * PAGE; at > PAGE && g_test.near_page == NULL;
         at -= PAGE) {
        void *page = mmap((void *)at, PAGE, PROT_READ | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        g_test.near_page = page != MAP_FAILED ? page : NULL;
    }
    return g_test.libc != NULL && g_test.memory_fd >= 0 && g_test.near_page != NULL ? 0 : -1;
}

static struct patch_plan plan_of(const struct patch_target *targets, size_t count)
{
    struct patch_plan plan = {.first_index = FIRST_INDEX};
    for (size_t i = 0; i < AGENT_HOOK_COUNT; i++) {
        plan.hook_addrs[i] = (uintptr_t)test_hook;
    }
    plan.abi_hook_addrs[AGENT_MALLOC] = (uintptr_t)test_abi_hook;
    plan.abi_hook_addrs[AGENT_CALLOC] = (uintptr_t)test_abi_hook;
    plan.abi_hook_addrs[AGENT_NEW] = (uintptr_t)test_abi_hook;
    assert_int_equal(
        patch_plan_add(&plan, targets, count, (uintptr_t)g_test.near_page, &own_memory), ERR_OK);
    assert_int_equal(plan.blocks.len, 1);
    assert_true(plan.blocks.items[0].len <= patch_plan_block_bytes(count));
    write_text(plan.blocks.items[0].addr, plan.blocks.items[0].bytes, plan.blocks.items[0].len);
    for (size_t i = 0; i < plan.patches.len; i++) {
        assert_int_equal(plan.patches.items[i].index, FIRST_INDEX + i);
        test_trampolines[FIRST_INDEX + i] = plan.patches.items[i].trampoline_addr;
        test_counts[FIRST_INDEX + i] = 0;
    }
    return plan;
}

// Declare moved_<name>, a pointer of its type to the trampoline of a patch.
#define MOVED(name, patch)            \
    __typeof__(&(name)) moved_##name; \
    memcpy(&moved_##name, &(patch).trampoline_addr, sizeof(moved_##name))

static int compare_ints(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static void functions_of_libc_run_in_their_trampolines(void **state)
{
    (void)state;
    const struct patch_target targets[] = {
        target_of("strtol", AGENT_MALLOC),  target_of("qsort", AGENT_MALLOC),
        target_of("toupper", AGENT_MALLOC), target_of("snprintf", AGENT_MALLOC),
        target_of("memmem", AGENT_MALLOC),  target_of("div", AGENT_MALLOC),
        target_of("getenv", AGENT_MALLOC),  target_of("strsignal", AGENT_MALLOC),
    };
    struct patch_plan plan = plan_of(targets, ARRAY_LEN(targets));
    assert_int_equal(plan.refusals.len, 0);
    const struct patch *at = plan.patches.items;
    MOVED(strtol, at[0]);
    assert_int_equal(moved_strtol("-123456", NULL, 10), -123456);
    MOVED(qsort, at[1]);
    int numbers[] = {5, 3, 9, -1, 4};
    moved_qsort(numbers, ARRAY_LEN(numbers), sizeof(*numbers), compare_ints);
    assert_memory_equal(numbers, ((int[]){-1, 3, 4, 5, 9}), sizeof(numbers));
    MOVED(toupper, at[2]);
    assert_int_equal(moved_toupper('q'), 'Q');
    MOVED(snprintf, at[3]);
    char text[64];
    assert_int_equal(moved_snprintf(text, sizeof(text), "%d %s %.3f", 42, "x", 1.5), 10);
    assert_string_equal(text, "42 x 1.500");
    MOVED(memmem, at[4]);
    const char *hay = "needles in hay";
    assert_ptr_equal(moved_memmem(hay, strlen(hay), "in", 2), hay + 8);
    MOVED(div, at[5]);
    assert_int_equal(moved_div(17, 5).rem, 2);
    MOVED(getenv, at[6]);
    assert_null(moved_getenv("CAIRN_NO_SUCH_VARIABLE"));
    MOVED(strsignal, at[7]);
    assert_string_equal(moved_strsignal(9), "Killed");
    patch_plan_release(&plan);
}

// The allocator of libc, by its handle: in a sanitized build the names mean another one.
struct allocator {
    void *(*malloc)(size_t size);
    void (*free)(void *block);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    int (*posix_memalign)(void **block, size_t alignment, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
};

static void use(const struct allocator *allocator)
{
    enum {
        ROUNDS = 500
    };
    static char *blocks[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        blocks[i] = allocator->malloc(i * 37 % 3000 + 1);
        memset(blocks[i], (int)i, i * 37 % 3000 + 1);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        blocks[i] = allocator->realloc(blocks[i], i * 91 % 9000 + 1);
        assert_int_equal((uint8_t)blocks[i][0], i & 0xff);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        allocator->free(blocks[i]);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        void *zeroed = allocator->calloc(i + 1, 8);
        assert_int_equal(*(uint64_t *)zeroed, 0);
        void *aligned = NULL;
        assert_int_equal(allocator->posix_memalign(&aligned, 256, i + 1), 0);
        assert_int_equal((uintptr_t)aligned % 256, 0);
        void *page = allocator->aligned_alloc(4096, 4096);
        assert_int_equal((uintptr_t)page % 4096, 0);
        allocator->free(zeroed);
        allocator->free(aligned);
        allocator->free(page);
    }
    allocator->free(NULL);
}

static void patched_entries_count_each_call_and_are_restored(void **state)
{
    (void)state;
    const struct patch_target targets[] = {
        target_of("malloc", AGENT_MALLOC),
        target_of("free", AGENT_FREE),
        target_of("calloc", AGENT_CALLOC),
        target_of("realloc", AGENT_REALLOC),
        target_of("posix_memalign", AGENT_POSIX_MEMALIGN),
        target_of("aligned_alloc", AGENT_ALIGNED_ALLOC),
        target_of("valloc", AGENT_MALLOC),
        target_of("pvalloc", AGENT_MALLOC),
    };
    struct allocator allocator;
    const void *const slots[] = {&allocator.malloc,         &allocator.free,
                                 &allocator.calloc,         &allocator.realloc,
                                 &allocator.posix_memalign, &allocator.aligned_alloc};
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        memcpy((void *)(uintptr_t)slots[i], &targets[i].addr, sizeof(void *));
    }
    struct patch_plan plan = plan_of(targets, ARRAY_LEN(targets));
    assert_int_equal(plan.refusals.len, 0);
    assert_int_equal(plan.patches.len, ARRAY_LEN(targets));
    const struct patch *patches = plan.patches.items;
    for (size_t i = 0; i < plan.patches.len; i++) {
        write_text(patches[i].entry_addr, patches[i].new_bytes, PATCH_BYTES);
    }
    uint64_t before[ARRAY_LEN(targets)];
    memcpy(before, test_counts + FIRST_INDEX, sizeof(before));
    use(&allocator);
    uint64_t counts[ARRAY_LEN(targets)];
    memcpy(counts, test_counts + FIRST_INDEX, sizeof(counts));
    for (size_t i = 0; i < plan.patches.len; i++) {
        write_text(patches[i].entry_addr, patches[i].old_bytes, PATCH_BYTES);
    }
    use(&allocator);
    assert_memory_equal(counts, test_counts + FIRST_INDEX, sizeof(counts));
    // posix_memalign and aligned_alloc of glibc share an inner function, not an entry.
    static const uint64_t wanted[] = {500, 2001, 500, 500, 500, 500, 0, 0};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (counts[i] - before[i] != wanted[i]) {
            fail_msg("%s: %lu calls, wanted %lu", targets[i].name, counts[i] - before[i],
                     wanted[i]);
        }
    }
    patch_plan_release(&plan);
}

// Of the kinds that have such a hook; the others keep theirs.
static void functions_that_change_all_registers_have_the_other_hook(void **state)
{
    (void)state;
    struct patch_target targets[] = {
        target_of("strtol", AGENT_MALLOC), target_of("memmem", AGENT_CALLOC),
        target_of("div", AGENT_MALLOC),    target_of("getenv", AGENT_FREE),
        target_of("strsignal", AGENT_NEW),
    };
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        targets[i].changes_all = i != 2;
    }
    targets[4].nothrow = 1;
    struct patch_plan plan = plan_of(targets, ARRAY_LEN(targets));
    assert_int_equal(plan.refusals.len, 0);
    const struct patch *at = plan.patches.items;
#define STUB(name, patch)            \
    __typeof__(&(name)) stub_##name; \
    memcpy(&stub_##name, &(patch).stub_addr, sizeof(stub_##name))
    STUB(strtol, at[0]);
    STUB(memmem, at[1]);
    STUB(div, at[2]);
    STUB(getenv, at[3]);
    STUB(strsignal, at[4]);
    abi_calls = 0;
    assert_int_equal(stub_strtol("-123456", NULL, 10), -123456);
    const char *hay = "needles in hay";
    assert_ptr_equal(stub_memmem(hay, strlen(hay), "in", 2), hay + 8);
    assert_int_equal(abi_calls, 2);
    assert_int_equal(stub_div(17, 5).rem, 2);
    assert_null(stub_getenv("CAIRN_NO_SUCH_VARIABLE"));
    assert_int_equal(abi_calls, 2);
    assert_int_equal(test_counts[FIRST_INDEX + 2], 1);
    assert_int_equal(test_counts[FIRST_INDEX + 3], 1);

    // That of a throwing operator finds the form that returns NULL before the trampoline.
    assert_string_equal(stub_strsignal(9), "Killed");
    assert_int_equal(abi_calls, 3);
    uint64_t nothrow_addr;
    memcpy(&nothrow_addr, g_test.near_page + (at[4].trampoline_addr - 8 - at[0].stub_addr),
           sizeof(nothrow_addr));
    assert_int_equal(nothrow_addr, at[1].trampoline_addr);
    assert_int_equal(at[4].nothrow_addr, at[1].trampoline_addr);
    patch_plan_release(&plan);
}

// Bytes at made-up addresses.
static const uint8_t made_up[] = {
    0x55, 0x48, 0x89, 0xe5, 0x90, 0xc3, 0x90, 0x90, // 0: push, mov, nop, ret
    0xc3, 0x55, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, // 8: too short
    0x48, 0x85, 0xff, 0x74, 0x20, 0xc3, 0x90, 0x90, // 16: test, je
    0xe8, 0xe3, 0xff, 0xff, 0xff, 0xc3, 0x90, 0x90, // 24: call 0
    0xe3, 0x05, 0xe8, 0xd9, 0xff, 0xff, 0xff, 0xc3, // 32: jrcxz, call 0
};
#define MADE_UP 0x400000u

static size_t read_made_up(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    (void)context;
    const size_t at = addr - MADE_UP;
    const size_t left = at < sizeof(made_up) ? sizeof(made_up) - at : 0;
    const size_t got = len < left ? len : left;
    memcpy(out, made_up + at, got);
    return got;
}

static void what_cannot_be_patched_is_refused_and_the_rest_is_not(void **state)
{
    (void)state;
    static const struct patch_target targets[] = {
        {.addr = MADE_UP, .size_bytes = 6, .hook = AGENT_MALLOC, .nothrow = -1, .name = "first"},
        {.addr = MADE_UP + 4,
         .size_bytes = 2,
         .hook = AGENT_MALLOC,
         .nothrow = -1,
         .name = "inner"},
        {.addr = MADE_UP + 8,
         .size_bytes = 1,
         .hook = AGENT_MALLOC,
         .nothrow = -1,
         .name = "short"},
        {.addr = MADE_UP + 16, .size_bytes = 6, .hook = AGENT_NEW, .nothrow = 0, .name = "throws"},
        {.addr = MADE_UP + 16, .size_bytes = 6, .hook = AGENT_NEW, .nothrow = -1, .name = "only"},
        {.addr = MADE_UP + 24, .size_bytes = 6, .hook = AGENT_NEW, .nothrow = -1, .name = "calls"},
        {.addr = MADE_UP, .size_bytes = 2u << 20, .hook = AGENT_NEW, .nothrow = 99, .name = "bad"},
        {.addr = MADE_UP + 32,
         .size_bytes = 8,
         .hook = AGENT_CALLOC,
         .nothrow = -1,
         .name = "leads"},
        {.addr = MADE_UP + 32,
         .size_bytes = 8,
         .hook = AGENT_REALLOC,
         .nothrow = -1,
         .name = "grows"},
        {.addr = MADE_UP + 40, .size_bytes = 9, .hook = AGENT_MALLOC, .nothrow = 0, .name = "gone"},
        {.addr = MADE_UP, .size_bytes = 6, .hook = AGENT_FREE, .nothrow = 0, .name = "not hooked"},
    };
    static const char *const reasons[] = {
        "inner: begins within another patched function",
        "short: is too short for a jump",
        "only: has no form that returns instead of throwing",
        "bad: has no form that returns instead of throwing",
        "grows: begins with an instruction that cannot be moved",
        "gone: cannot be read",
    };
    struct patch_plan plan = {0};
    for (size_t i = 0; i < AGENT_HOOK_COUNT; i++) {
        plan.hook_addrs[i] = i == AGENT_FREE ? 0 : 0x7f0000001000;
    }
    static const struct code_reader reader = {.read = read_made_up};
    assert_int_equal(patch_plan_add(&plan, targets, ARRAY_LEN(targets), MADE_UP - PAGE, &reader),
                     ERR_OK);
    assert_int_equal(plan.refusals.len, ARRAY_LEN(reasons));
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        const struct patch_refusal *refusal = plan.refusals.items + i;
        const size_t name_len = strlen(refusal->name);
        assert_memory_equal(reasons[i], refusal->name, name_len);
        assert_string_equal(reasons[i] + name_len + 2, refusal->reason);
    }
    assert_int_equal(plan.patches.len, 2);
    const struct patch *first = plan.patches.items;
    const struct patch *throws = first + 1;
    assert_int_equal(first->nothrow_addr, 0);
    assert_int_equal(throws->nothrow_addr, first->trampoline_addr);
    assert_int_equal(throws->stub_addr - first->stub_addr, PATCH_SLOT_BYTES);
    assert_int_equal(plan.blocks.items[0].len, 2 * PATCH_SLOT_BYTES);

    // A program counter inside the overwritten bytes moves with its instruction; others stay.
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP), MADE_UP);
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP + 1), first->trampoline_addr + 1);
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP + 4), first->trampoline_addr + 4);
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP + 5), MADE_UP + 5);
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP + 19), throws->trampoline_addr + 3);
    assert_int_equal(patch_plan_moved_pc(&plan, MADE_UP + 21), MADE_UP + 21);
    patch_plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_libc_run_in_their_trampolines),
        cmocka_unit_test(patched_entries_count_each_call_and_are_restored),
        cmocka_unit_test(functions_that_change_all_registers_have_the_other_hook),
        cmocka_unit_test(what_cannot_be_patched_is_refused_and_the_rest_is_not),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
