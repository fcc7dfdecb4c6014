// SPDX-License-Identifier: MIT
// Where the registers of an interrupted thread are below a signal handler, compared with libc's
// description of the kernel's frame; and a step that takes them from there.
#include "target/unwind/environment/signal_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "signal_arch.h"
#include "test_signal_arch.h"

static void registers_are_where_the_kernel_saves_them(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(test_signal_places), ARCH_SIGNAL_REGISTERS + 1);
    for (unsigned reg = 0; reg < ARCH_SIGNAL_REGISTERS; reg++) {
        print_message("register %u\n", reg);
        assert_int_equal(arch_signal_register(reg), test_signal_places[reg]);
    }
    assert_int_equal(ARCH_SIGNAL_PC, test_signal_places[ARCH_SIGNAL_REGISTERS]);
}

enum {
    WORDS = 4096
};
static uint64_t g_frame[WORDS]; // from sp
static uint64_t g_unreadable;   // offset of a word

static bool read_frame(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    const uint64_t offset = addr - (uint64_t)g_frame;
    (void)self;
    if (offset == g_unreadable || offset >= sizeof(g_frame)) {
        return false;
    }
    *word = g_frame[offset / sizeof(*word)];
    return true;
}

static void a_step_takes_all_registers(void **state)
{
    (void)state;
    struct memory_reader memory = {.read = read_frame};
    const struct cpu handler = {
        .pc = 5, .known = ~UINT64_C(0), .value[ARCH_REG_SP] = (uint64_t)g_frame};
    for (size_t i = 0; i < WORDS; i++) {
        g_frame[i] = 1000 + 8 * i;
    }
    g_unreadable = UINT64_MAX;
    struct cpu cpu = handler;
    assert_int_equal(signal_frame_step(&memory, &cpu), ERR_OK);
    assert_int_equal(cpu.pc, 1000 + ARCH_SIGNAL_PC + 1); // not a return address
    for (unsigned reg = 0; reg < ARCH_SIGNAL_REGISTERS; reg++) {
        assert_true(cpu_knows(&cpu, reg));
        assert_int_equal(cpu.value[reg], 1000 + arch_signal_register(reg));
    }
    assert_int_equal(cpu.known >> ARCH_SIGNAL_REGISTERS, 0);
    // Without one of them there is no step.
    for (unsigned reg = 0; reg <= ARCH_SIGNAL_REGISTERS; reg++) {
        g_unreadable =
            reg < ARCH_SIGNAL_REGISTERS ? (uint64_t)arch_signal_register(reg) : ARCH_SIGNAL_PC;
        cpu = handler;
        assert_int_equal(signal_frame_step(&memory, &cpu), ERR_IO);
        assert_memory_equal(&cpu, &handler, sizeof(cpu));
    }
}

static void a_handler_returns_to_known_code(void **state)
{
    (void)state;
    struct memory_reader memory = {.read = read_frame};
    g_unreadable = 16;
    g_frame[1] = ARCH_SIGRETURN_CODE;
    g_frame[3] = ARCH_SIGRETURN_CODE + 1;
    assert_true(signal_frame_begins(&memory, (uint64_t)(g_frame + 1)));
    assert_false(signal_frame_begins(&memory, (uint64_t)(g_frame + 2)));
    assert_false(signal_frame_begins(&memory, (uint64_t)(g_frame + 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_are_where_the_kernel_saves_them),
        cmocka_unit_test(a_step_takes_all_registers),
        cmocka_unit_test(a_handler_returns_to_known_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
