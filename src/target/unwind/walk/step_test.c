// SPDX-License-Identifier: MIT
// Steps over frame records at the limits of what is plausible.
#include "target/unwind/walk/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_arch.h"

#define STACK       ((uint64_t)0x7fff00000000) // sp
#define STACK_BYTES ((uint64_t)0x200000)
#define CALLER_FP   ((uint64_t)0x7fff00008000)

// The memory has the same record everywhere: `context` is its return address.
static bool load(void *context, uint64_t addr, uint64_t *out)
{
    *out = addr % 16 == 0 ? CALLER_FP : *(const uint64_t *)context;
    return true;
}

static void only_plausible_frame_records_are_followed(void **state)
{
    (void)state;
    static const struct {
        uint64_t record; // from sp
        uint64_t ret_addr;
        enum step_result expected;
    } cases[] = {
        {0x40, 0x401000, STEP_OK},
        {0, 0x401000, STEP_OK},
        {(uint64_t)-16, 0x401000, STEP_UNFINISHED}, // below sp
        {0x44, 0x401000, STEP_UNFINISHED},
        {FRAME_RECORD_REACH_BYTES, 0x401000, STEP_OK},
        {FRAME_RECORD_REACH_BYTES + 16, 0x401000, STEP_UNFINISHED},
        {0x40, USER_ADDR_MIN, STEP_OK},
        {0x40, USER_ADDR_MIN - 1, STEP_UNREADABLE},
        {0x40, 0, STEP_UNREADABLE},
        {0x40, CODE_ADDR_MAX - 1, STEP_OK},
        {0x40, CODE_ADDR_MAX, STEP_UNREADABLE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ret_addr = cases[i].ret_addr;
        struct frame_regs regs = {.pc = 0x400000, .sp = STACK, .fp = STACK + cases[i].record};
        print_message("record %#llx, return address %#llx\n", (unsigned long long)regs.fp,
                      (unsigned long long)ret_addr);
        assert_int_equal(step_frame_pointer(&regs, STACK + STACK_BYTES, load, &ret_addr),
                         cases[i].expected);
        const bool is_ok = cases[i].expected == STEP_OK;
        assert_int_equal(regs.pc, is_ok ? arch_strip(ret_addr) : 0x400000);
        assert_int_equal(regs.fp, is_ok ? CALLER_FP : STACK + cases[i].record);
    }
}

static void a_frame_record_is_inside_the_stack(void **state)
{
    (void)state;
    uint64_t ret_addr = 0x401000;
    for (uint64_t room = 0; room <= 32; room += 8) {
        struct frame_regs regs = {.pc = 0x400000, .sp = STACK, .fp = STACK + 0x40};
        assert_int_equal(step_frame_pointer(&regs, regs.fp + room, load, &ret_addr),
                         room >= FRAME_RECORD_BYTES ? STEP_OK : STEP_UNFINISHED);
    }
}

// The caller has a frame of 0x60 bytes, with its record at the start, in the middle, and behind
// more than a rule can state. On x86-64 a record ends its frame.
static void the_caller_s_sp_is_where_its_own_record_says(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        int64_t cfa, fp_slot, ret_slot;
        uint64_t fp; // from the record's end
        uint64_t sp; // likewise, where a record is inside its frame
    } cases[] = {
        {RULE_FP_SAVED, 0x60, -0x60, -0x58, 0x20, 0x20},
        {RULE_FP_SAVED, 0x60, -0x20, -0x18, 0x40, 0},
        {RULE_FP_SAVED, 0x60, -0x20, -0x18, 0x50, 0x10},
        {RULE_FP_SAVED, 0x60, -0x60, -0x58, 0x28, 0},               // not aligned
        {RULE_FP_SAVED, 0x60, -0x60, -0x58, (uint64_t)-0x10, 0},    // below
        {RULE_FP_SAVED, 0x60, -0x60, -0x58, 0x7ff0, 0x7ff0},        // far
        {RULE_FP_SAVED, 0x60, -0x60, -0x58, 0x8000, 0},             // too far
        {RULE_FP_SAVED, 0x60, -0x60, -0x40, 0x20, 0},               // no record
        {RULE_FP_SAVED | RULE_CFA_FP, 0x60, -0x60, -0x58, 0x20, 0}, // needs no sp
        {0, 0x60, 0, -8, 0x20, 0},                                  // keeps x29
        {RULE_FP_SAVED | RULE_CFA_DEREF, 0x60, -0x60, -0x58, 0x20, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t rule =
            rule_of(cases[i].flags, cases[i].cfa, cases[i].fp_slot, cases[i].ret_slot);
        const uint64_t sp = arch_sp_behind_record(STACK, STACK + cases[i].fp, rule);
        print_message("case %zu\n", i);
        assert_int_equal(sp - STACK, ARCH_RECORD_IS_INSIDE ? cases[i].sp : 0);
        const uint64_t remembered = rule_frame_pointer(sp - STACK + 16);
        assert_int_equal(rule_cfa_offset(remembered), sp - STACK + 16);
        assert_int_equal(rule_ret_offset(remembered), -8 - (int64_t)(sp - STACK));
    }
    const uint64_t none = rule_stopping(RULE_NO_TABLE);
    assert_int_equal(arch_sp_behind_record(STACK, STACK + 0x20, none), STACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_plausible_frame_records_are_followed),
        cmocka_unit_test(a_frame_record_is_inside_the_stack),
        cmocka_unit_test(the_caller_s_sp_is_where_its_own_record_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
