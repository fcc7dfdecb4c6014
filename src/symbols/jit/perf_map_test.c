// SPDX-License-Identifier: MIT
#include "symbols/jit/perf_map.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support/open_files.h"
#include "host/os/file.h"

static void parse(struct jit_map *map, const char *text, size_t len)
{
    CLEANUP(strbuf_release) struct strbuf content = {0};
    strbuf_append(&content, text, len);
    assert_int_equal(perf_map_add_lines(map, &content), ERR_OK);
    assert_int_equal(jit_map_seal(map), ERR_OK);
}

static void check(const struct jit_map *map, uint64_t pc, const char *want)
{
    const char *got = jit_map_find(map, pc);
    assert_string_equal(got != NULL ? got : "(none)", want);
}

static void code_is_named_and_newer_code_wins(void **state)
{
    (void)state;
    static const char text[] = "7f0000001000 100 LazyCompile:*sum /app/a.js:3\n"
                               "0x7f0000002000 0X10 stub with  blanks \n"
                               "7f0000001080 10 Replaced\n"
                               "7f0000001000 40 Newest\n"
                               "7F0000003000\t8\tTabs\n"
                               "ffffffffffffff00 ff Top";
    struct jit_map map = {0};
    parse(&map, text, sizeof(text) - 1);
    assert_int_equal(map.names.len, 6);
    check(&map, 0x7f0000001000, "Newest");
    check(&map, 0x7f000000103f, "Newest");
    check(&map, 0x7f0000001040, "LazyCompile:*sum /app/a.js:3");
    check(&map, 0x7f0000001088, "Replaced");
    check(&map, 0x7f00000010ff, "LazyCompile:*sum /app/a.js:3");
    check(&map, 0x7f0000001100, "(none)");
    check(&map, 0x7f000000200f, "stub with  blanks ");
    check(&map, 0x7f0000003007, "Tabs");
    check(&map, 0xfffffffffffffffe, "Top");
    check(&map, 0, "(none)");
    jit_map_release(&map);
}

static void crooked_lines_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t kept;
    } cases[] = {
        {"", 0},
        {"\n\n", 0},
        {"1000", 0},
        {"1000 10", 0},
        {"1000 10 ", 0},
        {"1000 10\n", 0},
        {"zz 10 name\n", 0},
        {"1000 -1 name\n", 0},
        {"0x 10 name\n", 0},
        {"10000000000000000 10 name\n", 0},
        {"ffffffffffffffff 2 name\n", 0},
        {"1000 ffffffffffffffff name\n", 0},
        {" 1000 10 name\n", 0},
        {"1000 10 good\nbad\n2000 10 good\n", 2},
        {"1000 0 empty\n", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jit_map map = {0};
        parse(&map, cases[i].text, strlen(cases[i].text));
        assert_int_equal(map.names.len, cases[i].kept);
        check(&map, 0x2005, i == 13 ? "good" : "(none)");
        jit_map_release(&map);
    }
}

static void every_cut_of_a_file_parses(void **state)
{
    (void)state;
    static const char text[] = "1000 10 first\n2000 10 sec\0ond\n3000 10 third\n";
    for (size_t len = 0; len < sizeof(text); len++) {
        struct jit_map map = {0};
        parse(&map, text, len);
        // "1000 10 " is not an entry yet. With one letter more it is an entry with a truncated
        // name.
        const char *got = jit_map_find(&map, 0x1001);
        size_t name_len = len < 9 ? 0 : len - 8 < 5 ? len - 8 : 5;
        assert_int_equal(got != NULL ? strlen(got) : 0, name_len);
        check(&map, 0x2001, len < 23 ? "(none)" : len == 23 ? "s" : len == 24 ? "se" : "sec");
        jit_map_release(&map);
    }
}

// Add the file at `path`, which must not block; the answer goes to `map`.
static enum err add(struct jit_map *map, const char *path, uint32_t owner, int64_t since_s)
{
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    assert_true(fd >= 0);
    return perf_map_add_file(map, fd, path, owner, since_s, NULL);
}

static void only_a_new_file_of_the_owner_is_read(void **state)
{
    (void)state;
    char path[] = "/tmp/cairn-perf-map-test-XXXXXX";
    const uint32_t stranger = 12345;
    CLEANUP(jit_map_release) struct jit_map map = {0};
    struct stat status;
    CLEANUP(fd_closep) int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1000 10 name\n", 13), 13);
    if (geteuid() == 0) { // root's own files are always accepted
        assert_int_equal(fchown(fd, stranger, stranger), 0);
    }
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(add(&map, path, status.st_uid + 1, INT64_MIN), ERR_PERMISSION);
    assert_int_equal(add(&map, path, status.st_uid, status.st_mtime + 1), ERR_NOT_FOUND);
    assert_int_equal(add(&map, path, status.st_uid, status.st_mtime), ERR_OK);
    assert_int_equal(jit_map_seal(&map), ERR_OK);
    check(&map, 0x1000, "name");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(add(&map, path, geteuid(), INT64_MIN), ERR_UNSUPPORTED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(add(&map, "/tmp", geteuid(), INT64_MIN), ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_named_and_newer_code_wins),
        cmocka_unit_test(crooked_lines_are_left_out),
        cmocka_unit_test(every_cut_of_a_file_parses),
        cmocka_unit_test(only_a_new_file_of_the_owner_is_read),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
