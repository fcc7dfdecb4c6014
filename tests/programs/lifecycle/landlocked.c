// SPDX-License-Identifier: MIT
//
// landlocked FOLDER... -- PROGRAM ARGUMENTS...: executes a program that may open files below the
// folders only (landlock(7)). access(2) still permits the others. Status 77: the kernel cannot.
// It has no TRUTH.
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OPENING = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE,
    STATUS_CANNOT = 77,
};

int main(int argc, char **argv)
{
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = OPENING};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    if (rules < 0) {
        return STATUS_CANNOT;
    }
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        const struct landlock_path_beneath_attr rule = {
            .allowed_access = OPENING, .parent_fd = open(argv[at], O_PATH | O_CLOEXEC)};
        // One that is not there needs no rule.
        (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    if (at + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_landlock_restrict_self, rules, 0) != 0) {
        return STATUS_CANNOT;
    }
    (void)execv(argv[at + 1], argv + at + 1);
    perror("execv");
    return 1;
}
