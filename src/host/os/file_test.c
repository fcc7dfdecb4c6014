// SPDX-License-Identifier: MIT
#include "host/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/group_folder.h"
#include "host/os/new_file.h"

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void files_without_a_size_are_read_to_their_end(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf got = {0};
    strbuf_append_text(&got, "before ");
    assert_int_equal(file_read("/proc/self/cmdline", 100000, &got, NULL), ERR_OK);
    assert_true(strncmp(strbuf_text(&got), "before /", 8) == 0);
    assert_non_null(strstr(strbuf_text(&got), "unit.host.file"));
    assert_in_range(got.cap, got.len + 1, 16384); // larger room costs page faults when it grows
}

static void reading_stops_at_the_cap(void **state)
{
    (void)state;
    struct err_info info;
    CLEANUP(strbuf_release) struct strbuf got = {0};
    assert_int_equal(file_replace("f", bytes_of("12345"), NULL), ERR_OK);
    assert_int_equal(file_read("f", 5, &got, NULL), ERR_OK);
    assert_int_equal(file_read("f", 4, &got, &info), ERR_LIMIT);
    assert_string_equal(info.text, "'f' has more than 4 bytes");
    assert_string_equal(strbuf_text(&got), "12345");
    assert_int_equal(file_read("/dev/zero", 1000000, &got, NULL), ERR_LIMIT);
    assert_int_equal(unlink("f"), 0);
}

static void failures_name_the_file(void **state)
{
    (void)state;
    struct err_info info;
    CLEANUP(strbuf_release) struct strbuf got = {0};
    assert_int_equal(file_read("nowhere", 10, &got, &info), ERR_NOT_FOUND);
    assert_string_equal(info.text, "cannot open 'nowhere': No such file or directory");
    assert_int_equal(file_read(".", 10, &got, &info), ERR_IO);
    assert_int_equal(info.errno_value, EISDIR);
    assert_int_equal(file_replace("no/where", bytes_of(""), &info), ERR_NOT_FOUND);
    assert_int_equal(group_folder_count("."), 0);
}

static void parents_are_made_once(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(file_make_parents("a/b//c/file", NULL), ERR_OK);
    }
    assert_int_equal(group_folder_count("a/b/c"), 0);
    assert_int_equal(file_make_parents("plain", NULL), ERR_OK);
    assert_int_equal(file_make_parents("/", NULL), ERR_OK);
    assert_int_equal(file_make_parents("/tmp/x", NULL), ERR_OK);
    assert_int_equal(file_replace("a/f", bytes_of(""), NULL), ERR_OK);
    assert_int_equal(file_make_parents("a/f/b/c", NULL), ERR_NOT_FOUND);
    assert_int_equal(unlink("a/f"), 0);
    assert_int_equal(rmdir("a/b/c"), 0);
    assert_int_equal(rmdir("a/b"), 0);
    assert_int_equal(rmdir("a"), 0);
}

// A folder that may not be made does not exist either, but this is not the reason.
static void the_reason_why_a_parent_is_missing_is_told(void **state)
{
    (void)state;
    enum {
        NOBODY = 65534
    };
    struct err_info info = {0};
    const bool is_root = geteuid() == 0;
    assert_int_equal(chmod(".", 0755) + mkdir("locked", 0555), 0);
    assert_int_equal(is_root ? seteuid(NOBODY) : 0, 0); // root may do everything
    const enum err problem = file_make_parents("locked/new/file", &info);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_not_equal(problem, ERR_OK);
    assert_string_equal(info.text, "cannot create the directory 'locked/new': Permission denied");
    assert_int_equal(rmdir("locked"), 0);
}

static void programs_are_found_in_the_path(void **state)
{
    (void)state;
    const char *before = getenv("PATH");
    char *kept = before != NULL ? strdup(before) : NULL;
    assert_int_equal(mkdir("programs", 0777), 0);
    assert_int_equal(close(open("programs/one", O_CREAT | O_WRONLY | O_CLOEXEC, 0700)), 0);
    assert_int_equal(close(open("programs/text", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    static const struct {
        const char *path;
        const char *program;
        bool is_found;
    } cases[] = {
        {"programs", "one", true},    {"/nowhere:programs", "one", true},
        {"programs:", "one", true},   {"/nowhere", "one", false},
        {"", "one", false},           {"programs", "two", false},
        {"programs", "text", false},  {NULL, "sh", true},
        {NULL, "no such one", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            cases[i].path != NULL ? setenv("PATH", cases[i].path, 1) : unsetenv("PATH"), 0);
        assert_int_equal(file_is_in_path(cases[i].program), cases[i].is_found);
    }
    if (kept != NULL) {
        assert_int_equal(setenv("PATH", kept, 1), 0);
    }
    free(kept);
    assert_int_equal(unlink("programs/one") + unlink("programs/text") + rmdir("programs"), 0);
}

static void names_are_made_absolute(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *name;
        const char *absolute; // below the working directory, if it begins with "."
    } cases[] = {
        {"x", "x", "./x"},           {"./x", "x", "./x"},         {"../x", "x", "/tmp/x"},
        {"/x", "x", "/x"},           {"/tmp/x", "x", "/tmp/x"},   {"/tmp/../x.y", "x.y", "/x.y"},
        {"//tmp//x", "x", "/tmp/x"}, {"/tmp/", "/tmp/", "/tmp/"}, {"/", "/", "/"},
    };
    struct err_info info = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf absolute = {0};
        CLEANUP(strbuf_release) struct strbuf want = {0};
        const bool is_here = cases[i].absolute[0] == '.';
        strbuf_printf(&want, "%s%s", is_here ? g_group_folder : "", cases[i].absolute + is_here);
        assert_int_equal(file_absolute_path(cases[i].path, &absolute, &info), ERR_OK);
        assert_string_equal(strbuf_text(&absolute), strbuf_text(&want));
        assert_string_equal(path_file_name(cases[i].path), cases[i].name);
    }
    CLEANUP(strbuf_release) struct strbuf absolute = {0};
    assert_int_equal(file_absolute_path("none/x", &absolute, &info), ERR_NOT_FOUND);
    assert_non_null(strstr(info.text, "'none'"));
}

static void whatever_changes_a_file_changes_its_identity(void **state)
{
    (void)state;
    const struct stat old = {
        .st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = {.tv_sec = 4, .tv_nsec = 5}};
    struct stat others[5] = {old, old, old, old, old};
    others[0].st_dev++;
    others[1].st_ino++;
    others[2].st_size++;
    others[3].st_mtim.tv_sec++;
    others[4].st_mtim.tv_nsec++;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_not_equal(file_identity(others + i), file_identity(&old));
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(file_identity(others + i), file_identity(others + k));
        }
    }
}

static void cleanups_accept_nothing_and_keep_errno(void **state)
{
    (void)state;
    int fd = -1;
    FILE *stream = NULL;
    char *text = NULL;
    errno = 77;
    fd_closep(&fd);
    stream_closep(&stream);
    text_freep(&text);
    fd = 1000000; // not open: close() sets errno
    fd_closep(&fd);
    assert_int_equal(errno, 77);
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_a_size_are_read_to_their_end),
        cmocka_unit_test(reading_stops_at_the_cap),
        cmocka_unit_test(failures_name_the_file),
        cmocka_unit_test(parents_are_made_once),
        cmocka_unit_test(the_reason_why_a_parent_is_missing_is_told),
        cmocka_unit_test(programs_are_found_in_the_path),
        cmocka_unit_test(names_are_made_absolute),
        cmocka_unit_test(whatever_changes_a_file_changes_its_identity),
        cmocka_unit_test(cleanups_accept_nothing_and_keep_errno),
    };
    return cmocka_run_group_tests(tests, group_folder_enter, group_folder_leave);
}
