// SPDX-License-Identifier: MIT
// Tests of source_file: which files are shown and which are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "recording/test_support/test_folder.h"
#include "server/state/source_file.h"

static void write_file(const char *path, const char *data, size_t len)
{
    struct bytes bytes = {(const uint8_t *)data, len};
    assert_int_equal(file_replace(path, bytes, NULL), ERR_OK);
}

static void expect_refused(const char *path, enum err code, const char *words)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    uint64_t modified_ms;
    enum err problem = source_file_read(path, &text, &modified_ms, &info);
    if (problem != code || strstr(info.text, words) == NULL) {
        fail_msg("%s: %s, \"%s\"", path, err_name(problem), info.text);
    }
}

static void a_text_file_is_read_whole(void **state)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint64_t modified_ms = 0;
    static const char source[] = "int main(void)\n{\n\treturn '\xe9';\n}\n";
    const char *path = test_path(*state, "a.c");
    write_file(path, source, sizeof(source) - 1);
    assert_int_equal(source_file_read(path, &text, &modified_ms, NULL), ERR_OK);
    assert_string_equal(strbuf_text(&text), source);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(modified_ms / 1000, status.st_mtim.tv_sec);
}

static void an_empty_file_is_text(void **state)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint64_t modified_ms;
    write_file(test_path(*state, "a.c"), "", 0);
    assert_int_equal(source_file_read(test_path(*state, "a.c"), &text, &modified_ms, NULL), ERR_OK);
    assert_int_equal(text.len, 0);
}

// Else the viewer would show its beginning as the whole file.
static void a_file_that_cannot_be_read_whole_is_refused(void **state)
{
    struct strbuf text = {.failed = true}; // no memory
    uint64_t modified_ms;
    write_file(test_path(*state, "a.c"), "int x;\n", 7);
    assert_int_equal(source_file_read(test_path(*state, "a.c"), &text, &modified_ms, NULL),
                     ERR_NO_MEMORY);
    strbuf_release(&text);
}

static void what_is_no_source_file_is_refused(void **state)
{
    expect_refused("a.c", ERR_INVALID, "relative");
    expect_refused("", ERR_INVALID, "relative");
    expect_refused(test_path(*state, "nothing.c"), ERR_NOT_FOUND, "No such file");
    assert_int_equal(mkdir(test_path(*state, "folder.c"), 0700), 0);
    expect_refused(test_path(*state, "folder.c"), ERR_INVALID, "not a regular file");
    assert_int_equal(rmdir(test_path(*state, "folder.c")), 0);
    write_file(test_path(*state, "binary.c"),
               "\x7f"
               "ELF\0\0",
               6);
    expect_refused(test_path(*state, "binary.c"), ERR_INVALID, "not text");
}

// A recording may name any file.
static void a_file_that_is_not_called_like_a_source_file_is_refused(void **state)
{
    static const char *const names[] = {"/etc/shadow",        "/root/.ssh/id_rsa", "/dev/null",
                                        "/proc/self/environ", "/etc/passwd",       "/",
                                        "/home/me/.env",      "/home/me/.netrc",   "/home/c"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        expect_refused(names[i], ERR_INVALID, "not that of a source file");
    }
    static const char *const good[] = {"a.C", "a.hpp", "a.S", "a.f90", "a.rs", "a.b.cpp"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        uint64_t modified_ms;
        write_file(test_path(*state, good[i]), "x", 1);
        assert_int_equal(source_file_read(test_path(*state, good[i]), &text, &modified_ms, NULL),
                         ERR_OK);
    }
    CLEANUP(strbuf_release) struct strbuf header = {0};
    uint64_t modified_ms;
    assert_int_equal(mkdir(test_path(*state, "include"), 0700), 0);
    write_file(test_path(*state, "include/vector"), "x", 1);
    assert_int_equal(
        source_file_read(test_path(*state, "include/vector"), &header, &modified_ms, NULL), ERR_OK);
    assert_int_equal(unlink(test_path(*state, "include/vector")), 0);
    assert_int_equal(rmdir(test_path(*state, "include")), 0);
    write_file(test_path(*state, "secret"), "x", 1);
    assert_int_equal(symlink("secret", test_path(*state, "secret.c")), 0);
    expect_refused(test_path(*state, "secret.c"), ERR_INVALID, "links to a file");
}

// Opening a pipe without a writer must not block.
static void a_pipe_does_not_block(void **state)
{
    assert_int_equal(mkfifo(test_path(*state, "pipe.c"), 0600), 0);
    expect_refused(test_path(*state, "pipe.c"), ERR_INVALID, "not a regular file");
}

static void a_link_out_of_bounds_is_refused(void **state)
{
    assert_int_equal(symlink("/proc/self/status", test_path(*state, "link.c")), 0);
    expect_refused(test_path(*state, "link.c"), ERR_INVALID, "not a regular file");
}

static void a_huge_file_is_refused(void **state)
{
    const char *path = test_path(*state, "huge.c");
    write_file(path, "x", 1);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); // sparse
    expect_refused(path, ERR_LIMIT, "larger than 4 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_text_file_is_read_whole),
        TEST_IN_FOLDER(an_empty_file_is_text),
        TEST_IN_FOLDER(a_file_that_cannot_be_read_whole_is_refused),
        TEST_IN_FOLDER(what_is_no_source_file_is_refused),
        TEST_IN_FOLDER(a_file_that_is_not_called_like_a_source_file_is_refused),
        TEST_IN_FOLDER(a_pipe_does_not_block),
        TEST_IN_FOLDER(a_link_out_of_bounds_is_refused),
        TEST_IN_FOLDER(a_huge_file_is_refused),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
