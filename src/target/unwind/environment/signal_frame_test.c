// SPDX-License-Identifier: MIT
// Where the registers of an interrupted thread are below a signal handler, compared with libc's
// description of the kernel's frame.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_are_where_the_kernel_saves_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
