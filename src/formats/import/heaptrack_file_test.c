// SPDX-License-Identifier: MIT
// Tests of heaptrack_file: the numbers of a line.
#include "formats/import/heaptrack_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static void a_number_has_hexadecimal_digits_only(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool wanted;
        uint64_t number;
        const char *rest; // of a sound one
    } cases[] = {
        {"0", true, 0, ""},
        {"9", true, 9, ""},
        {"a", true, 10, ""},
        {"f", true, 15, ""},
        {" 1f 2", true, 0x1f, " 2"},
        {"1f 2", true, 0x1f, " 2"},
        {"ffffffffffffffff", true, UINT64_MAX, ""},
        {"fffffffffffffffff", false, 0, NULL}, // 17 digits
        {"00000000000000001", false, 0, NULL},
        {"0000000000000001", true, 1, ""},
        {"", false, 0, NULL},
        {" ", false, 0, NULL},
        {"  1", false, 0, NULL},
        // The neighbours of the digits.
        {"/", false, 0, NULL},
        {":", false, 0, NULL},
        {"1:", false, 0, NULL},
        {"`", false, 0, NULL},
        {"1`", false, 0, NULL},
        {"g", false, 0, NULL},
        {"1g", false, 0, NULL},
        {"A", false, 0, NULL}, // heaptrack writes small letters
        {"1\t", false, 0, NULL},
        {"-1", false, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct bytes whole = {.data = (const uint8_t *)cases[i].line,
                                    .len = strlen(cases[i].line)};
        struct bytes line = whole;
        uint64_t number = 77;
        const bool got = heaptrack_number(&line, &number);
        if (got != cases[i].wanted || number != (got ? cases[i].number : 77)) {
            fail_msg("\"%s\": %d, %llx", cases[i].line, got, (unsigned long long)number);
        }
        assert_ptr_equal(line.data + line.len, whole.data + whole.len);
        assert_int_equal(line.len, got ? strlen(cases[i].rest) : whole.len);
    }
    // The line ends where its length says, whatever follows.
    struct bytes line = {.data = (const uint8_t *)"12 34", .len = 1};
    uint64_t number = 0;
    assert_true(heaptrack_number(&line, &number));
    assert_int_equal(number, 1);
    assert_int_equal(line.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_hexadecimal_digits_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
