// SPDX-License-Identifier: MIT
// relocate_aarch64_test: functions of AArch64 run in their place and in their trampoline, and must
// return the same. Context: H, one thread. AArch64.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "inject/code/relocate.h"

enum {
    WORDS_MAX = 12,
    PAGE = 4096,
    CALLER_AT = 0,
    ENTRY_AT = 256,
    STUB_AT = PAGE,
    TRAMPOLINE_AT = PAGE + STUB_BYTES,
};

// Called as (x0, target): saves the return address in x9, compares, and jumps.
static const uint32_t caller[] = {
    0xaa1e03e9, // mov x9, x30
    0xf100141f, // cmp x0, #5
    0xd61f0020, // br x1
};

#define RET       0xd65f03c0u
#define RET_X9    0xd65f0120u
#define MOV_X0(n) (0xd2800000u | (n) << 5)

struct sample {
    const char *what;
    uint32_t code[WORDS_MAX];
};

static const struct sample samples[] = {
    {"no address", {0x91001c00 /* add x0, x0, #7 */, RET}},
    {"adr", {0x10000040 /* adr x0, +8 */, RET}},
    {"adr backwards", {0x10ffffe0 /* adr x0, -4 */, RET}},
    {"adrp", {0xb0000000 /* adrp x0, +4096 */, RET}},
    {"ldr x", {0x58000040 /* ldr x0, +8 */, RET, 0x89abcdef, 0x01234567}},
    {"ldr w", {0x18000040 /* ldr w0, +8 */, RET, 0x89abcdef, 0x01234567}},
    {"ldrsw", {0x98000040 /* ldrsw x0, +8 */, RET, 0x89abcdef, 0x01234567}},
    {"ldr d", {0x5c000060 /* ldr d0, +12 */, 0x9e660000 /* fmov x0, d0 */, RET, 0x89abcdef, 0x1}},
    {"ldr q", {0x9c000060 /* ldr q0, +12 */, 0x4e183c00 /* mov x0, v0.d[1] */, RET, 1, 2, 3, 4}},
    {"prfm", {0xd8000040 /* prfm pldl1keep, +8 */, RET, 0}},
    {"b", {0x14000003 /* b +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"bl",
     {0x94000003 /* bl +12 */, 0x91000400 /* add x0, x0, #1 */, RET_X9,
      0xaa1e03e0 /* mov x0, x30 */, RET}},
    {"b.eq", {0x54000060 /* b.eq +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"b.lo", {0x54000063 /* b.lo +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"cbz", {0xb4000060 /* cbz x0, +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"cbnz", {0x35000060 /* cbnz w0, +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"tbz", {0x36000060 /* tbz w0, #0, +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"tbnz", {0xb7080060 /* tbnz x0, #33, +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"paciasp", {0xd503233f, 0xd50323bf /* autiasp */, 0x91000400 /* add x0, x0, #1 */, RET}},
    {"paciasp, adr", {0xd503233f, 0x10000040 /* adr x0, +8 */, 0xd50323bf /* autiasp */, RET}},
    {"paciasp, b", {0xd503233f, 0x14000002 /* b +8 */, RET, 0xd50323bf, MOV_X0(2), RET}},
    {"pacibsp", {0xd503237f, 0x91000400, 0xd50323ff /* autibsp */, RET}},
    {"bti c", {0xd503245f, 0x91000400 /* add x0, x0, #1 */, RET}},
    {"bti jc, cbz", {0xd50324df, 0xb4000060 /* cbz x0, +12 */, MOV_X0(1), RET, MOV_X0(2), RET}},
    {"ret", {RET}},
};

static uint64_t run(uint8_t *pages, size_t target, uint64_t argument)
{
    const uintptr_t at = (uintptr_t)pages + CALLER_AT;
    uint64_t (*call)(uint64_t argument, uintptr_t target);
    memcpy(&call, &at, sizeof(call));
    return call(argument, (uintptr_t)pages + target);
}

// Run the function in its place and moved, with each argument.
static void compare_moved(const struct sample *sample, uint8_t *pages)
{
    static const uint64_t arguments[] = {0, 1, 4, 5, 6, (uint64_t)1 << 33};
    memcpy(pages + CALLER_AT, caller, sizeof(caller));
    memcpy(pages + ENTRY_AT, sample->code, sizeof(sample->code));
    struct relocated moved;
    const enum relocate_refusal refusal = relocate_prologue(
        (struct bytes){(const uint8_t *)sample->code, sizeof(sample->code)}, sizeof(sample->code),
        (uintptr_t)pages + ENTRY_AT, (uintptr_t)pages + TRAMPOLINE_AT, &moved);
    if (refusal != RELOCATE_OK) {
        fail_msg("%s: %s", sample->what, relocate_refusal_text(refusal));
    }
    memcpy(pages + TRAMPOLINE_AT, moved.code, moved.code_len);
    uint64_t wanted[ARRAY_LEN(arguments)];
    for (size_t k = 0; k < ARRAY_LEN(arguments); k++) {
        __builtin___clear_cache((char *)pages, (char *)pages + (size_t)2 * PAGE);
        wanted[k] = run(pages, ENTRY_AT, arguments[k]);
    }
    // The entry jumps to a stub, whose hook is the trampoline.
    const uint64_t jump_at = ENTRY_AT + (uint64_t)moved.kept_len;
    assert_int_equal(relocate_write_jump((uintptr_t)pages + jump_at, (uintptr_t)pages + STUB_AT,
                                         pages + jump_at),
                     RELOCATE_OK);
    // What a call by pointer may land on is still there.
    assert_int_equal(get_u32(pages + ENTRY_AT) == sample->code[0], moved.kept_len != 0);
    relocate_write_stub(&moved, 7, (uintptr_t)pages + TRAMPOLINE_AT, pages + STUB_AT);
    for (size_t k = 0; k < ARRAY_LEN(arguments); k++) {
        __builtin___clear_cache((char *)pages, (char *)pages + (size_t)2 * PAGE);
        const uint64_t got = run(pages, ENTRY_AT, arguments[k]);
        if (got != wanted[k]) {
            fail_msg("%s(%llx): %llx, wanted %llx", sample->what, (unsigned long long)arguments[k],
                     (unsigned long long)got, (unsigned long long)wanted[k]);
        }
    }
}

// Each sample has pages of its own until the end: qemu 7.2 with -cpu max sometimes runs what it has
// translated where other code is by now.
static void moved_functions_return_the_same(void **state)
{
    (void)state;
    const size_t bytes = ARRAY_LEN(samples) * 2 * PAGE;
    uint8_t *pages =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        compare_moved(samples + i, pages + i * 2 * PAGE);
    }
    (void)munmap(pages, bytes);
}

static void some_functions_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t code[3];
        uint8_t size_bytes;
        uint64_t distance;
        enum relocate_refusal refusal;
    } cases[] = {
        {{0xd4200000 /* brk */, RET}, 8, PAGE, RELOCATE_BREAKPOINT},
        {{0, RET}, 8, PAGE, RELOCATE_UNDECODABLE},
        {{MOV_X0(1), 0x54ffffe0 /* b.eq -4 */, RET}, 12, PAGE, RELOCATE_BRANCH_INTO},
        {{MOV_X0(1), 0x97ffffff /* bl -4 */, RET}, 12, PAGE, RELOCATE_OK},
        {{MOV_X0(1), 0x17ffffff /* b -4 */, RET}, 0, PAGE, RELOCATE_OK},
        {{MOV_X0(1), RET}, 8, 0x7fffff0, RELOCATE_OK},
        {{MOV_X0(1), RET}, 8, 0x8000010, RELOCATE_OUT_OF_REACH},
        {{MOV_X0(1), RET}, 16, PAGE, RELOCATE_UNDECODABLE},
        {{MOV_X0(1), RET}, 2, PAGE, RELOCATE_TOO_SHORT},
        {{0xd503245f /* bti c */, RET}, 4, PAGE, RELOCATE_TOO_SHORT},
        {{0xd503245f /* bti c */, RET}, 8, PAGE, RELOCATE_OK},
        {{0xd503233f /* paciasp */, MOV_X0(1), 0x17ffffff /* b -4 */},
         12,
         PAGE,
         RELOCATE_BRANCH_INTO},
        {{0xd503233f /* paciasp */, 0xd4200000 /* brk */, RET}, 12, PAGE, RELOCATE_BREAKPOINT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct relocated moved;
        const enum relocate_refusal refusal =
            relocate_prologue((struct bytes){(const uint8_t *)cases[i].code, sizeof(cases[i].code)},
                              cases[i].size_bytes, 0x400000, 0x400000 + cases[i].distance, &moved);
        if (refusal != cases[i].refusal) {
            fail_msg("case %zu: '%s', wanted '%s'", i, relocate_refusal_text(refusal),
                     relocate_refusal_text(cases[i].refusal));
        }
    }
}

static void a_stub_passes_its_index(void **state)
{
    (void)state;
    // orr x0, xzr, x17; ret: stands for the hook.
    static const uint32_t hook[] = {0xaa1103e0, RET};
    uint8_t *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memcpy(page + CALLER_AT, caller, sizeof(caller));
    memcpy(page + ENTRY_AT, hook, sizeof(hook));
    relocate_write_stub(&(struct relocated){0}, 0x12345678, (uintptr_t)page + ENTRY_AT, page + 64);
    __builtin___clear_cache((char *)page, (char *)page + PAGE);
    assert_true(run(page, 64, 0) == 0x12345678);
    (void)munmap(page, PAGE);
}

static void direct_branches_are_found(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xd503201f, // nop
        0x94000003, // bl +12
        0x17fffffe, // b -8
        0x54000040, // b.eq +8
    };
    const struct bytes body = {(const uint8_t *)code, sizeof(code)};
    assert_true(relocate_leads_to(body, 0x1000, 0x1010));
    assert_true(relocate_leads_to(body, 0x1000, 0x1000));
    assert_false(relocate_leads_to(body, 0x1000, 0x1014));
    assert_false(relocate_leads_to(body, 0x1000, 0x1004));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_functions_return_the_same),
        cmocka_unit_test(some_functions_are_refused),
        cmocka_unit_test(a_stub_passes_its_index),
        cmocka_unit_test(direct_branches_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
