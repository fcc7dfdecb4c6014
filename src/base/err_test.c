// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

// However long a name is, the sentence has its start and its end, where the reason is.
static void long_text_is_cut_in_its_middle(void **state)
{
    (void)state;
    struct err_info info;
    static char name[100 * 1000];
    static const char *const letters[] = {"x", "\xc3\xa4", "\xe2\x82\xac"}; // of 1 to 3 bytes
    for (size_t i = 0; i < 15000; i++) {
        const size_t used = strlen(name);
        const char *letter = letters[i / 5000];
        memcpy(name + used, letter, strlen(letter) + 1);
        if (i % 5000 == 0) {
            name[0] = '\0';
        }
        (void)err_set_errno(&info, ENOENT, "cannot open '%s'", name);
        const char *end = strstr(info.text, "': No such file or directory");
        assert_true(strncmp(info.text, "cannot open '", 13) == 0 && end != NULL && end[28] == 0);
        const char *cut = strstr(info.text, "...");
        const bool is_whole =
            strlen(name) + strlen("cannot open '': No such file or directory") < sizeof(info.text);
        assert_int_equal(cut == NULL, is_whole);
        if (cut != NULL) {
            assert_true(strlen(info.text) > sizeof(info.text) - 12);
            assert_int_equal(cut[3], letter[0]);
            assert_memory_equal(cut - strlen(letter), letter, strlen(letter));
        }
    }
    memset(name, 'x', sizeof(name) - 1);
    (void)err_set_errno(&info, ENAMETOOLONG, "cannot open '%s'", name);
    assert_non_null(strstr(info.text, "xxx: File name too long"));
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
        cmocka_unit_test(long_text_is_cut_in_its_middle),
        cmocka_unit_test(a_lack_of_ones_own_is_known),
        cmocka_unit_test(nobody_has_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
