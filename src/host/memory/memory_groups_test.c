// SPDX-License-Identifier: MIT
// Tests of memory_groups: numbers in the files of control groups, and the groups around a process.
#include "host/memory/memory_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

static void an_entry_is_found_by_its_whole_key(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *key;
        uint64_t wanted;
    } cases[] = {
        {"", "file", 0},
        {"anon 1\n", "file", 0},
        {"file 7", "file", 7},
        {"anon 1\nfile 7\n", "file", 7},
        {"full avg10=12.34 avg60=5\n", "avg10", 12},
        {"full avg10=12.34 avg60=5\n", "avg60", 5},
        {"inactive_file 3\nfile 7\n", "file", 7}, // the end of another key
        {"file_mapped 3\nfile 7\n", "file", 7},   // the start of another key
        {"inactive_file 3\nfile_mapped 4\n", "file", 0},
        {"file max\nfile 9\n", "file", 9},
        {"file max\n", "file", 0},
        {"file:7\n", "file", 0},
        {"file", "file", 0},
        {"file 18446744073709551615", "file", UINT64_MAX},
        {"file 0\n", "file", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t got = memory_group_entry(cases[i].text, cases[i].key);
        if (got != cases[i].wanted) {
            fail_msg("\"%s\": %llu, not %llu", cases[i].text, (unsigned long long)got,
                     (unsigned long long)cases[i].wanted);
        }
    }
}

// Write `text` to a new file, and set `path` to its name in the folder.
static void write_file(char path[static 64], const char *folder, const char *text)
{
    (void)snprintf(path, 64, "%s/file-XXXXXX", folder);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static void a_file_without_a_number_has_no_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t wanted;
    } cases[] = {
        {"0\n", 0}, {"4096\n", 4096}, {"max\n", UINT64_MAX}, {"", UINT64_MAX}, {"-1\n", UINT64_MAX},
    };
    char folder[] = "/tmp/cairn-memory-groups-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[64];
        write_file(path, folder, cases[i].text);
        assert_int_equal(memory_group_number(folder, strrchr(path, '/') + 1), cases[i].wanted);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(memory_group_number(folder, "missing"), UINT64_MAX);
    assert_int_equal(rmdir(folder), 0);
}

static void note_group(void *context, const char *folder, bool is_version_1)
{
    strbuf_printf(context, "%s%s ", is_version_1 ? "1:" : "", folder);
}

static void all_groups_around_a_process_are_visited(void **state)
{
    (void)state;
    static const struct {
        const char *proc_cgroup;
        const char *wanted;
    } cases[] = {
        {"0::/a/b\n", "/r/a/b /r/a /r "},
        {"0::/a/b", "/r/a/b /r/a /r "}, // no end of line
        {"0::/\n", "/r/ /r "},
        {"4:memory:/x/y\n", "1:/r/memory/x/y 1:/r/memory/x 1:/r/memory "},
        {"4:cpu,memory:/x\n", "1:/r/memory/x 1:/r/memory "},
        {"4:memory,cpu:/x\n", "1:/r/memory/x 1:/r/memory "},
        {"4:cpu:/x\n", ""},
        {"4:memory_not:/x\n", ""},
        {"4:not_memory:/x\n", ""},
        {"4:cpu,memory_not,not_memory:/x\n", ""},
        {"4:name=systemd:/x\n0::/a\n", "/r/a /r "},
        {"4:memory:/x\n0::/a\n", "1:/r/memory/x 1:/r/memory /r/a /r "},
        {"0::/a:b\n", "/r/a:b /r "}, // the path may have a colon
        {"nonsense\n", ""},
        {"4:nonsense\n", ""},
        {"", ""},
    };
    char folder[] = "/tmp/cairn-memory-groups-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf visited = {0};
        char path[64];
        write_file(path, folder, cases[i].proc_cgroup);
        memory_groups_visit(path, "/r", note_group, &visited);
        assert_string_equal(strbuf_text(&visited), cases[i].wanted);
        assert_int_equal(unlink(path), 0);
        memory_groups_visit(path, "/r", note_group, &visited); // not there
        assert_string_equal(strbuf_text(&visited), cases[i].wanted);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_found_by_its_whole_key),
        cmocka_unit_test(a_file_without_a_number_has_no_limit),
        cmocka_unit_test(all_groups_around_a_process_are_visited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
