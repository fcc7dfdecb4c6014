// SPDX-License-Identifier: MIT
// Tests of baseline_upload: at most 1 GiB is accepted, with or without Content-Length. Most bytes
// are only counted here, since writing 1 GiB takes too long for a test.
#include "server/state/baseline_upload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

static void the_announced_length_is_bounded(void **state)
{
    (void)state;
    const struct {
        const char *length;
        bool may_come;
    } cases[] = {
        {NULL, false},        {"0", true},           {"1073741823", true},
        {"1073741824", true}, {"1073741825", false}, {"99999999999999999999999999", false},
        {"-1", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].length != NULL ? cases[i].length : "(none)");
        assert_int_equal(baseline_upload_may_come(cases[i].length), cases[i].may_come);
    }
}

static void what_comes_is_bounded_whatever_was_announced(void **state)
{
    (void)state;
    const struct bytes ten = {(const uint8_t *)"0123456789", 10};
    struct baseline_upload upload = {0};
    baseline_upload_add(&upload, ten);
    assert_int_equal(upload.outcome, ERR_OK);
    assert_int_equal(upload.bytes, 10);
    upload.bytes = ((uint64_t)1 << 30) - 10;
    baseline_upload_add(&upload, ten);
    assert_int_equal(upload.outcome, ERR_OK);
    assert_int_equal(ftell(upload.file), 20); // all bytes were written
    baseline_upload_add(&upload, (struct bytes){ten.data, 1});
    assert_int_equal(upload.outcome, ERR_LIMIT);
    assert_int_equal(ftell(upload.file), 20);
    baseline_upload_release(&upload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_announced_length_is_bounded),
        cmocka_unit_test(what_comes_is_bounded_whatever_was_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
