// SPDX-License-Identifier: MIT
//
// shell_after filter|chroot FOLDER|landlock FOLDER...: confines itself, and starts shells by system
// and popen, which libc executes by calls that no preloaded library sees. The filter kills for two
// calls that a shell does not make. Status 77: the kernel cannot. It has no TRUTH.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OPENING = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE,
    STATUS_CANNOT = 77,
};

static int install_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int allow_only(char **folders)
{
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = OPENING};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    for (; rules >= 0 && *folders != NULL; folders++) {
        const struct landlock_path_beneath_attr rule = {
            .allowed_access = OPENING, .parent_fd = open(*folders, O_PATH | O_CLOEXEC)};
        // One that is not there needs no rule.
        (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    return rules >= 0 ? (int)syscall(SYS_landlock_restrict_self, rules, 0) : -1;
}

static int confine(const char *way, char **words)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return strcmp(way, "filter") == 0   ? install_filter()
           : strcmp(way, "chroot") == 0 ? (chroot(words[0]) != 0 ? -1 : chdir("/"))
                                        : allow_only(words);
}

int main(int argc, char **argv)
{
    char line[64] = "";
    if (argc < 2 || confine(argv[1], argv + 2) != 0) {
        return STATUS_CANNOT;
    }
    printf("%d\n", system("echo \"one $LD_PRELOAD\"; exit 3"));
    FILE *shell = popen("echo two", "r");
    if (shell == NULL || fgets(line, sizeof(line), shell) == NULL) {
        return 1;
    }
    printf("%s%d\n", line, pclose(shell));
    return 7;
}
