// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void detail_reaches_the_reader(void **state)
{
    (void)state;
    struct err_info info;
    assert_int_equal(err_set(&info, ERR_CORRUPT, "chunk %d", 3), ERR_CORRUPT);
    assert_int_equal(info.code, ERR_CORRUPT);
    assert_string_equal(info.text, "chunk 3");
    assert_int_equal(err_set_errno(&info, ENOENT, "cannot open '%s'", "f"), ERR_NOT_FOUND);
    assert_int_equal(info.errno_value, ENOENT);
    assert_string_equal(info.text, "cannot open 'f': No such file or directory");
    assert_int_equal(err_set_errno(&info, EACCES, "x"), ERR_PERMISSION);
    assert_int_equal(err_set_errno(&info, ENOSPC, "x"), ERR_IO);
}

// An error that is set over another one keeps nothing of it.
static void a_later_error_replaces_the_earlier_one(void **state)
{
    (void)state;
    struct err_info info;
    (void)err_set_errno(&info, ENOENT, "a long text");
    assert_int_equal(err_set(&info, ERR_CORRUPT, "chunk"), ERR_CORRUPT);
    assert_int_equal(info.errno_value, 0);
    assert_int_equal(err_set(&info, ERR_LIMIT, "b"), ERR_LIMIT);
    assert_int_equal(info.code, ERR_LIMIT);
    assert_int_equal(info.errno_value, 0);
    assert_string_equal(info.text, "b");
    // By errno: what kind of failure it is.
    static const struct {
        int errno_value;
        enum err wanted;
    } cases[] = {{ENOENT, ERR_NOT_FOUND}, {ENOTDIR, ERR_NOT_FOUND}, {EACCES, ERR_PERMISSION},
                 {EPERM, ERR_PERMISSION}, {ENOMEM, ERR_NO_MEMORY},  {EIO, ERR_IO},
                 {ENOSPC, ERR_IO}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(err_set_errno(NULL, cases[i].errno_value, "unheard"), cases[i].wanted);
        assert_int_equal(err_set_errno(&info, cases[i].errno_value, "x"), cases[i].wanted);
        assert_int_equal(info.code, cases[i].wanted);
    }
}

static void long_text_is_cut_not_overrun(void **state)
{
    (void)state;
    struct err_info info;
    char longer[2 * sizeof(info.text)];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    (void)err_set_errno(&info, ENOENT, "%s", longer);
    assert_int_equal(strlen(info.text), sizeof(info.text) - 1);
}

static void a_lack_of_ones_own_is_known(void **state)
{
    (void)state;
    assert_true(err_is_own_lack(EMFILE) && err_is_own_lack(ENFILE) && err_is_own_lack(ENOMEM));
    assert_false(err_is_own_lack(ENOENT) || err_is_own_lack(ESRCH) || err_is_own_lack(EACCES));
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_LIMIT, "unheard"), ERR_LIMIT);
    assert_string_equal(err_name(ERR_LIMIT), "over a limit");
    assert_string_equal(err_name((enum err)1000), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detail_reaches_the_reader),
        cmocka_unit_test(a_later_error_replaces_the_earlier_one),
        cmocka_unit_test(long_text_is_cut_not_overrun),
        cmocka_unit_test(a_lack_of_ones_own_is_known),
        cmocka_unit_test(nobody_has_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
