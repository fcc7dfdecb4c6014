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
    assert_int_equal(err_set_at(&info, ERR_CORRUPT, 17, "chunk %d", 3), ERR_CORRUPT);
    assert_int_equal(info.code, ERR_CORRUPT);
    assert_int_equal(info.offset, 17);
    assert_string_equal(info.text, "chunk 3");
    assert_int_equal(err_set_errno(&info, ENOENT, "cannot open '%s'", "f"), ERR_NOT_FOUND);
    assert_int_equal(info.errno_value, ENOENT);
    assert_string_equal(info.text, "cannot open 'f': No such file or directory");
    assert_int_equal(err_set_errno(&info, EACCES, "x"), ERR_PERMISSION);
    assert_int_equal(err_set_errno(&info, ENOSPC, "x"), ERR_IO);
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
        cmocka_unit_test(long_text_is_cut_not_overrun),
        cmocka_unit_test(nobody_has_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
