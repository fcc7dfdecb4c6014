// SPDX-License-Identifier: MIT
// machine_check: what is said of machines that are drawn as files below a folder.
#include "cli/doctor/machine_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"

struct drawn_file {
    const char *path;
    const char *text;
};

static const char clock_path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
static const char scope_path[] = "/proc/sys/kernel/yama/ptrace_scope";
static const char status_path[] = "/proc/self/status";

static const struct machine {
    const char *check;
    struct drawn_file files[2];
    enum machine_verdict verdict;
    const char *said; // in the detail
    bool has_cure;
} machines[] = {
    {"attaching", {{NULL, NULL}}, MACHINE_WORKS, "your own processes", false},
    {"attaching", {{scope_path, "0\n"}}, MACHINE_WORKS, "your own processes", false},
    {"attaching", {{scope_path, "1\n"}}, MACHINE_FORBIDS, "ptrace_scope is 1", true},
    {"attaching", {{scope_path, "2\n"}}, MACHINE_FORBIDS, "ptrace_scope is 2", true},
    {"attaching",
     {{scope_path, "1\n"}, {status_path, "Name:\tx\nCapEff:\t0000000000080000\n"}},
     MACHINE_WORKS,
     "CAP_SYS_PTRACE",
     false},
    {"attaching",
     {{scope_path, "1\n"}, {status_path, "CapEff:\t0000000000040000\nSeccomp:\t0\n"}},
     MACHINE_FORBIDS,
     "ptrace_scope is 1",
     true},
    {"attaching",
     {{scope_path, "3\n"}, {status_path, "CapEff:\t000001ffffffffff\n"}},
     MACHINE_FORBIDS,
     "ptrace_scope is 3",
     true},
    {"seccomp", {{status_path, "Seccomp:\t0\n"}}, MACHINE_WORKS, "no filter", false},
    {"seccomp", {{status_path, "Seccomp:\t2\n"}}, MACHINE_LACKS, "a filter", true},
    {"user namespace",
     {{"/proc/self/uid_map", "         0          0 4294967295\n"}},
     MACHINE_WORKS,
     "own",
     false},
    {"user namespace",
     {{"/proc/self/uid_map", "         0       1000          1\n"}},
     MACHINE_LACKS,
     "outside of it",
     true},
    {"control group",
     {{"/sys/fs/cgroup/cgroup.controllers", "memory\n"}, {"/proc/pressure/memory", "some\n"}},
     MACHINE_WORKS,
     "version 2",
     false},
    {"control group", {{NULL, NULL}}, MACHINE_LACKS, "version 1", true},
    {"clock source", {{clock_path, "tsc\n"}}, MACHINE_WORKS, "tsc", false},
    {"clock source", {{clock_path, "hpet\n"}}, MACHINE_LACKS, "hpet", true},
};

static void draw(const char *root, const struct machine *machine)
{
    struct err_info info = {0};
    for (size_t f = 0; f < ARRAY_LEN(machine->files) && machine->files[f].path != NULL; f++) {
        char path[160];
        const struct drawn_file *file = &machine->files[f];
        (void)snprintf(path, sizeof(path), "%s%s", root, file->path); // fits
        assert_int_equal(file_make_parents(path, &info), ERR_OK);
        const struct bytes text = {(const uint8_t *)file->text, strlen(file->text)};
        assert_int_equal(file_replace(path, text, &info), ERR_OK);
    }
}

static void each_machine_gets_its_verdict_and_its_cure(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
        const struct machine *machine = &machines[i];
        char root[] = "/tmp/machine_check.XXXXXX";
        char command[64];
        size_t check = 0;
        assert_non_null(mkdtemp(root));
        draw(root, machine);
        while (strcmp(machine_checks[check].name, machine->check) != 0) {
            check++;
        }
        CLEANUP(machine_result_release)
        struct machine_result result = machine_checks[check].look(root);
        if (result.verdict != machine->verdict ||
            strstr(strbuf_text(&result.detail), machine->said) == NULL ||
            (result.cure != NULL) != machine->has_cure) {
            fail_msg("machine %zu: %d, %s", i, (int)result.verdict, strbuf_text(&result.detail));
        }
        (void)snprintf(command, sizeof(command), "rm -r %s", root); // fits
        assert_int_equal(system(command), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_machine_gets_its_verdict_and_its_cure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
