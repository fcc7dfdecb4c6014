// SPDX-License-Identifier: MIT
// memory_headroom on folders in the form of /sys/fs/cgroup and /proc.
#include "host/memory/memory_headroom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    FILES_MAX = 10
};

#define MEMINFO                                                                      \
    "MemTotal:        8000 kB\nMemFree: 1 kB\nMemAvailable:    3000 kB\nSwapTotal: " \
    "1000 kB\nSwapFree: 500 kB\n"

static const struct layout {
    const char *name;
    const char *files[FILES_MAX][2];
    struct memory_headroom expected;
} layouts[] = {
    {"nothing", {{"cgroup", "0::/a\n"}}, {0}},
    {"a machine",
     {{"meminfo", MEMINFO}, {"pressure/memory", "some avg10=7.00\nfull avg10=12.34 avg60=0\n"}},
     {UINT64_C(9000) * 1024, UINT64_C(5500) * 1024, 12}},
    {"version 2, without the caches",
     {{"cgroup", "0::/a/b\n"},
      {"meminfo", MEMINFO},
      {"a/b/memory.max", "1000000\n"},
      {"a/b/memory.current", "900000\n"},
      {"a/b/memory.stat", "anon 1\nfile 7\ninactive_file 100000\nactive_file 50000\n"},
      {"a/b/memory.pressure", "some avg10=0.50 avg60=0\nfull avg10=55.00 avg60=0.00 total=1\n"}},
     {1000000, 750000, 55}},
    {"a group around it has less left",
     {{"cgroup", "0::/a/b\n"},
      {"a/b/memory.max", "1000000\n"},
      {"a/b/memory.current", "500000\n"},
      {"a/memory.max", "2000000\n"},
      {"a/memory.current", "1900000\n"}},
     {2000000, 1900000, 0}},
    {"no limit",
     {{"cgroup", "0::/a\n"}, {"a/memory.max", "max\n"}, {"a/memory.current", "1\n"}},
     {0}},
    {"version 1",
     {{"cgroup", "4:cpu,memory:/x\n"},
      {"memory/x/memory.limit_in_bytes", "4000\n"},
      {"memory/x/memory.usage_in_bytes", "3000\n"},
      {"memory/x/memory.stat",
       "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 300\n"}},
     {4000, 2500, 0}},
    {"more than the limit, and more cache than memory",
     {{"cgroup", "0::/a/b\n"},
      {"a/memory.max", "1000\n"},
      {"a/memory.current", "9000\n"},
      {"a/b/memory.max", "1000\n"},
      {"a/b/memory.current", "500\n"},
      {"a/b/memory.stat", "inactive_file 900\nactive_file x\n"}},
     {1000, 1000, 0}},
    {"nonsense",
     {{"cgroup", ":::\n0::/a\n"}, {"meminfo", "MemTotal: x\n"}, {"a/memory.max", "?\n"}},
     {0}},
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

// Make a folder from the template with the files of a layout. `cgroup`: the path of one of them.
static void make_layout(char *folder, char *cgroup, size_t cgroup_size, const struct layout *layout)
{
    assert_non_null(mkdtemp(folder));
    for (size_t k = 0; k < FILES_MAX && layout->files[k][0] != NULL; k++) {
        write_file(folder, layout->files[k][0], layout->files[k][1]);
    }
    (void)snprintf(cgroup, cgroup_size, "%s/cgroup", folder);
}

// Remove the files of a layout, and then the folders, which are then empty.
static void remove_layout(const char *folder, const struct layout *layout)
{
    char path[512];
    for (size_t pass = 0; pass < 4; pass++) {
        for (size_t i = 0; i < FILES_MAX && layout->files[i][0] != NULL; i++) {
            (void)snprintf(path, sizeof(path), "%s/%s", folder, layout->files[i][0]);
            (void)unlink(path); // gone after the first pass
            for (char *slash; (slash = strrchr(path, '/')) != path + strlen(folder);) {
                *slash = '\0';
                (void)rmdir(path); // until it is empty
            }
        }
    }
    assert_int_equal(rmdir(folder), 0);
}

static void the_nearest_limit_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        const struct layout *layout = &layouts[i];
        char folder[] = "/tmp/memory_headroom.XXXXXX";
        char cgroup[64];
        make_layout(folder, cgroup, sizeof(cgroup), layout);
        const struct memory_headroom found = memory_headroom_of(cgroup, folder, folder);
        remove_layout(folder, layout);
        if (found.limit_bytes != layout->expected.limit_bytes ||
            found.used_bytes != layout->expected.used_bytes ||
            found.stall_percent != layout->expected.stall_percent) {
            fail_msg("%s: limit %llu, used %llu, stall %llu", layout->name,
                     (unsigned long long)found.limit_bytes, (unsigned long long)found.used_bytes,
                     (unsigned long long)found.stall_percent);
        }
    }
}

static void this_machine_has_memory(void **state)
{
    (void)state;
    const struct memory_headroom here =
        memory_headroom_of("/proc/self/cgroup", "/sys/fs/cgroup", "/proc");
    assert_in_range(here.limit_bytes, 1 << 20, UINT64_MAX);
    assert_in_range(here.used_bytes, 1, here.limit_bytes);
}

static void kills_count_where_they_are_counted(void **state)
{
    (void)state;
    static const struct {
        struct layout layout;
        uint64_t kills;
    } cases[] = {
        {{.files = {{"cgroup", "0::/a/b\n"},
                    {"a/b/memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\n"},
                    {"vmstat", "oom_kill 9\n"}}},
         2},
        {{.files = {{"cgroup", "4:memory:/x\n"},
                    {"memory/x/memory.oom_control",
                     "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"}}},
         5},
        {{.files = {{"cgroup", "0::/a\n"}, {"vmstat", "pgfault 8\noom_kill 9\n"}}}, 9},
        {{.files = {{"cgroup", "4:memory:/x\n"},
                    {"memory/x/memory.oom_control", "oom_kill_disable 1\n"}}},
         0}, // before Linux 4.13
        {{.files = {{"cgroup", "0::/a\n"}}}, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct layout *layout = &cases[i].layout;
        char folder[] = "/tmp/memory_headroom.XXXXXX";
        char cgroup[64];
        make_layout(folder, cgroup, sizeof(cgroup), layout);
        const uint64_t kills = memory_kills_of(cgroup, folder, folder);
        remove_layout(folder, layout);
        assert_int_equal(kills, cases[i].kills);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_limit_counts),
        cmocka_unit_test(kills_count_where_they_are_counted),
        cmocka_unit_test(this_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
