// SPDX-License-Identifier: MIT
#include "symbols/jit/perf_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "symbols/names/symbol_name.h"

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
    assert_int_equal(map.codes.len, 6);
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

// The oracle asks every piece of code, from the newest on.
static void the_latest_code_wins_wherever_pieces_overlap(void **state)
{
    (void)state;
    enum {
        COUNT = 60,
        SPACE = 200
    };
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t begins[COUNT];
        uint64_t sizes[COUNT];
        CLEANUP(jit_map_release) struct jit_map map = {0};
        for (size_t i = 0; i < COUNT; i++) {
            const uint64_t random = hash_mix(seed << 32 | i);
            char name[16];
            begins[i] = random % SPACE;
            sizes[i] = (random >> 32) % 40;
            const int len = snprintf(name, sizeof(name), "f%zu", i);
            const struct bytes text = {(const uint8_t *)name, (size_t)len};
            assert_int_equal(jit_map_add(&map, begins[i], sizes[i], text), ERR_OK);
        }
        assert_int_equal(jit_map_seal(&map), ERR_OK);
        for (uint64_t pc = 0; pc < SPACE + 50; pc++) {
            char want[16] = "(none)";
            for (size_t i = COUNT; i > 0 && want[0] == '('; i--) {
                if (pc - begins[i - 1] < sizes[i - 1]) {
                    (void)snprintf(want, sizeof(want), "f%zu", i - 1);
                }
            }
            check(&map, pc, want);
        }
    }
}

static void code_that_was_replaced_a_million_times_has_its_newest_name(void **state)
{
    (void)state;
    enum {
        COUNT = 1000000,
        PLACES = 64
    };
    CLEANUP(jit_map_release) struct jit_map map = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[16];
        const int len = snprintf(name, sizeof(name), "f%" PRIu64, i);
        const struct bytes text = {(const uint8_t *)name, (size_t)len};
        assert_int_equal(jit_map_add(&map, 0x1000 + i % PLACES * 16, 16, text), ERR_OK);
    }
    assert_int_equal(jit_map_seal(&map), ERR_OK);
    check(&map, 0x1000, "f999936");
    check(&map, 0x13ff, "f999999");
    check(&map, 0x1400, "(none)");
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    static char text[100 + 2 * SYMBOL_NAME_MAX];
    const size_t head = (size_t)snprintf(text, sizeof(text), "1000 10 ");
    memset(text + head, 'x', sizeof(text) - 100);
    CLEANUP(jit_map_release) struct jit_map map = {0};
    parse(&map, text, head + sizeof(text) - 100);
    assert_int_equal(strlen(jit_map_find(&map, 0x1000)), SYMBOL_NAME_MAX);
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
        assert_int_equal(map.codes.len, cases[i].kept);
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

static void a_file_that_is_too_large_is_not_read(void **state)
{
    (void)state;
    char path[] = "/tmp/cairn-perf-map-test-XXXXXX";
    CLEANUP(jit_map_release) struct jit_map map = {0};
    CLEANUP(fd_closep) int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, INT64_C(1) << 36), 0); // sparse
    assert_int_equal(perf_map_add_file(&map, fd, path, geteuid(), INT64_MIN, NULL), ERR_LIMIT);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_named_and_newer_code_wins),
        cmocka_unit_test(the_latest_code_wins_wherever_pieces_overlap),
        cmocka_unit_test(code_that_was_replaced_a_million_times_has_its_newest_name),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(crooked_lines_are_left_out),
        cmocka_unit_test(every_cut_of_a_file_parses),
        cmocka_unit_test(only_a_new_file_of_the_owner_is_read),
        cmocka_unit_test(a_file_that_is_too_large_is_not_read),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
