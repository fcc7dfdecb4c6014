// SPDX-License-Identifier: MIT
// memory_limit on folders in the form of /sys/fs/cgroup.
#include "host/memory/memory_limit.h"

#define _XOPEN_SOURCE 700 // nftw
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"

#define MACHINE 8000u

// The files to write below a new folder; NULL: absent.
struct layout {
    const char *name;
    const char *cgroup; // content of /proc/self/cgroup
    const char *files[4][2];
    uint64_t limit;
};

static const struct layout layouts[] = {
    {"none", NULL, {{NULL}}, MACHINE},
    {"version 2", "0::/a/b\n", {{"a/b/memory.max", "700\n"}}, 700},
    {"no limit", "0::/a/b\n", {{"a/b/memory.max", "max\n"}}, MACHINE},
    {"more than there is", "0::/a/b\n", {{"a/b/memory.max", "9000\n"}}, MACHINE},
    {"a group around it is tighter",
     "0::/a/b\n",
     {{"a/b/memory.max", "700\n"}, {"a/memory.max", "500\n"}},
     500},
    {"throttled before",
     "0::/a/b\n",
     {{"a/b/memory.max", "700\n"}, {"a/b/memory.high", "600\n"}},
     600},
    {"a container's root", "0::/\n", {{"memory.max", "300\n"}}, 300},
    {"version 1",
     "5:cpu,cpuacct:/x\n4:memory:/x\n",
     {{"memory/x/memory.limit_in_bytes", "900\n"}, {"cpu/x/memory.limit_in_bytes", "1\n"}},
     900},
    {"version 1 without a limit",
     "4:memory:/\n",
     {{"memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     MACHINE},
    {"both",
     "4:memory:/x\n0::/x\n",
     {{"memory/x/memory.limit_in_bytes", "900\n"}, {"x/memory.max", "800\n"}},
     800},
    {"nonsense", "garbage\n:\n::\n", {{"memory.max", "?\n"}}, MACHINE},
};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0700); // fopen fails if it is missing
            *at = '/';
        }
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *walk)
{
    (void)what;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void the_tightest_limit_counts(void **state)
{
    (void)state;
    char folder[] = "/tmp/memory_limit.XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        const struct layout *layout = layouts + i;
        print_message("%s\n", layout->name);
        char root[64];
        char proc[80];
        (void)snprintf(root, sizeof(root), "%s/%zu", folder, i);
        (void)snprintf(proc, sizeof(proc), "%s/cgroup", root);
        if (layout->cgroup != NULL) {
            write_file(root, "cgroup", layout->cgroup);
        }
        for (size_t k = 0; k < ARRAY_LEN(layout->files) && layout->files[k][0] != NULL; k++) {
            write_file(root, layout->files[k][0], layout->files[k][1]);
        }
        assert_int_equal(memory_limit_of(proc, root, MACHINE), layout->limit);
    }
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_in_range(memory_limit_here(), 1u << 20, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_limit_counts),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
