// SPDX-License-Identifier: MIT
// Tests of target_file: links that lead out, files whose opening has effects, and files that the
// process itself may not read. Those that need another root or user are left out without root.
#include "host/os/target_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"

enum {
    OTHER_USER = 65534,
};

static char g_base[] = "/tmp/target_file_test.XXXXXX";

static const char *in_base(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", g_base, name);
    return path;
}

static void make_file(const char *name, mode_t mode)
{
    CLEANUP(fd_closep) int fd = open(in_base(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, name, strlen(name)) == (ssize_t)strlen(name));
    assert_int_equal(fchmod(fd, mode), 0);
}

static int begin(void **state)
{
    (void)state;
    if (mkdtemp(g_base) == NULL || chmod(g_base, 0755) != 0 || mkdir(in_base("d"), 0755) != 0 ||
        mkdir(in_base("d/closed"), 0700) != 0 || mkfifo(in_base("fifo"), 0666) != 0) {
        return -1;
    }
    make_file("secret", 0600);
    make_file("outside", 0644);
    make_file("d/plain", 0644);
    make_file("d/own", 0600);
    make_file("d/closed/file", 0644);
    const struct {
        const char *text;
        const char *name;
    } links[] = {
        {"plain", "d/beside"},
        {"../d/plain", "d/around"},
        {"/outside", "d/absolute"},
        {"../../../../outside", "d/above"},
        {"loop", "d/loop"},
        {"/dev/null", "d/device"},
        {"/proc/self/fd/0", "d/descriptor"},
        {"/proc/self/status", "d/text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (symlink(links[i].text, in_base(links[i].name)) != 0) {
            return -1;
        }
    }
    return open_files_note(state);
}

static int end(void **state)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", g_base);
    return system(command) == 0 ? open_files_expect(state) : -1;
}

static enum err try(int pid, const char *path)
{
    CLEANUP(fd_closep) int fd = -1;
    const enum err err = target_file_open(pid, path, &fd, NULL);
    assert_int_equal(err == ERR_OK, fd >= 0);
    return err;
}

static void regular_files_are_opened_whatever_links_lead_to_them(void **state)
{
    (void)state;
    static const char *const names[] = {"d/plain", "d/beside", "d/around", "d//./plain",
                                        "d/closed/../plain"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(try(0, in_base(names[i])), ERR_OK);
        assert_int_equal(try(getpid(), in_base(names[i])), ERR_OK);
    }
    assert_int_equal(try(0, in_base("d/loop")), ERR_NOT_FOUND);
    assert_int_equal(try(0, in_base("d/plain/more")), ERR_NOT_FOUND);
    assert_int_equal(try(0, in_base("missing")), ERR_NOT_FOUND);
    assert_int_equal(try(INT32_MAX, in_base("d/plain")), ERR_NOT_FOUND);
}

static void nothing_else_is_opened(void **state)
{
    (void)state;
    static const char *const names[] = {"fifo", "d", "d/device", "d/text"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(try(getpid(), in_base(names[i])), ERR_UNSUPPORTED);
    }
    // Opening it would let a writer in.
    const int writer = open(in_base("fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(writer, -1);
}

static void a_link_of_proc_leads_to_no_descriptor(void **state)
{
    (void)state;
    CLEANUP(fd_closep) int fd = open(in_base("outside"), O_RDWR | O_CLOEXEC);
    assert_int_equal(unlink(in_base("outside")), 0);
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); // its text ends in " (deleted)"
    assert_int_equal(try(0, path), ERR_NOT_FOUND);
    make_file("outside", 0644);
}

static void a_folder_gives_its_own_files(void **state)
{
    (void)state;
    CLEANUP(fd_closep) int folder = target_file_open_folder(getpid(), in_base("d"));
    CLEANUP(fd_closep) int fd = -1;
    int none = -1;
    assert_int_equal(target_file_open_in(folder, "plain", &fd, NULL), ERR_OK);
    assert_int_equal(target_file_open_in(folder, "beside", &none, NULL), ERR_UNSUPPORTED);
    assert_int_equal(target_file_open_in(folder, "missing", &none, NULL), ERR_NOT_FOUND);
    assert_int_equal(none, -1);
}

static void a_process_has_a_working_folder(void **state)
{
    (void)state;
    char here[PATH_MAX];
    CLEANUP(strbuf_release) struct strbuf folder = {0};
    assert_non_null(getcwd(here, sizeof(here)));
    assert_true(target_file_append_folder(getpid(), &folder));
    assert_string_equal(strbuf_text(&folder), here);
    assert_false(target_file_append_folder(INT32_MAX, &folder));
    assert_string_equal(strbuf_text(&folder), here);
}

static void others_may_have_written_what_they_may_write(void **state)
{
    (void)state;
    struct stat status = {.st_uid = geteuid(), .st_mode = S_IFREG | 0755};
    assert_true(target_file_is_trusted(&status));
    status.st_mode |= S_IWGRP;
    assert_false(target_file_is_trusted(&status));
    status.st_mode = S_IFREG | 0606;
    assert_false(target_file_is_trusted(&status));
    status = (struct stat){.st_uid = geteuid() + 1, .st_mode = S_IFREG | 0755};
    assert_false(target_file_is_trusted(&status));
    assert_true(target_file_shares_root(getpid()));
}

static bool become_other_user(void)
{
    return setgroups(0, NULL) == 0 && setgid(OTHER_USER) == 0 && setuid(OTHER_USER) == 0;
}

// Have CAP_DAC_READ_SEARCH alone, and keep it as another user.
static bool become_reader(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {
        {.effective = 1U << CAP_DAC_READ_SEARCH, .permitted = 1U << CAP_DAC_READ_SEARCH}};
    return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && become_other_user() &&
           syscall(SYS_capset, &head, caps) == 0;
}

static bool lose_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    return syscall(SYS_capset, &head, none) == 0;
}

// All capabilities, for what belongs to a namespace without users of ours.
static bool rule_own_namespace(void)
{
    return become_other_user() && unshare(CLONE_NEWUSER) == 0;
}

// Begin a child with another root, if it is not NULL, and what `change` makes of it. It ends with
// `*end`.
static pid_t begin_child(const char *root, bool (*change)(void), int *end)
{
    int ready[2];
    int stop[2];
    char byte = 0;
    assert_true(pipe2(ready, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)close(stop[1]);
        const bool is_done = (root == NULL || (chroot(root) == 0 && chdir("/") == 0)) && change();
        _exit(is_done && write(ready[1], "", 1) == 1 && read(stop[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(ready[1]);
    (void)close(stop[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    *end = stop[1];
    return child;
}

static void end_child(pid_t child, int end)
{
    int status = 0;
    (void)close(end);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void files_are_read_with_the_rights_of_the_process(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    int stop;
    const pid_t child = begin_child(NULL, become_other_user, &stop);
    assert_int_equal(try(child, in_base("d/plain")), ERR_OK);
    assert_int_equal(try(child, in_base("d/own")), ERR_PERMISSION);
    assert_int_equal(try(child, in_base("d/closed/file")), ERR_PERMISSION);
    assert_int_equal(chown(in_base("d/own"), OTHER_USER, OTHER_USER), 0);
    assert_int_equal(try(child, in_base("d/own")), ERR_OK);
    assert_int_equal(chown(in_base("d/own"), 0, OTHER_USER), 0);
    assert_int_equal(chmod(in_base("d/own"), 0640), 0);
    assert_int_equal(try(child, in_base("d/own")), ERR_OK);
    assert_int_equal(chmod(in_base("d/own"), 0604), 0); // the group's bits count, not the others'
    assert_int_equal(try(child, in_base("d/own")), ERR_PERMISSION);
    end_child(child, stop);
}

static void capabilities_for_files_of_the_same_namespace_count(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    static const struct {
        bool (*change)(void);
        enum err of_root; // what a file of root's alone is
    } cases[] = {
        {become_reader, ERR_OK},
        {become_other_user, ERR_PERMISSION},
        {rule_own_namespace, ERR_PERMISSION},
    };
    assert_int_equal(chown(in_base("d/own"), 0, 0), 0);
    assert_int_equal(chmod(in_base("d/own"), 0600), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int stop;
        const pid_t child = begin_child(NULL, cases[i].change, &stop);
        print_message("case %zu\n", i);
        assert_int_equal(try(child, in_base("d/own")), cases[i].of_root);
        assert_int_equal(try(child, in_base("d/closed/file")), cases[i].of_root);
        end_child(child, stop);
    }
}

static void root_without_capabilities_is_a_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    int stop;
    assert_int_equal(chown(in_base("d/own"), OTHER_USER, OTHER_USER), 0);
    assert_int_equal(chmod(in_base("d/own"), 0600), 0);
    assert_int_equal(try(getpid(), in_base("d/own")), ERR_OK);
    const pid_t child = begin_child(NULL, lose_capabilities, &stop);
    assert_int_equal(try(child, in_base("d/own")), ERR_PERMISSION);
    assert_int_equal(try(child, in_base("secret")), ERR_OK);
    end_child(child, stop);
}

static void no_link_leads_out_of_the_root_of_the_process(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    int stop;
    const pid_t child = begin_child(in_base("d"), become_other_user, &stop);
    assert_false(target_file_shares_root(child));
    assert_int_equal(try(child, "/plain"), ERR_OK);
    assert_int_equal(try(child, "/../../plain"), ERR_OK);
    assert_int_equal(try(child, "/absolute"), ERR_NOT_FOUND);
    assert_int_equal(try(child, "/above"), ERR_NOT_FOUND);
    assert_int_equal(try(child, "/device"), ERR_NOT_FOUND);
    struct stat status;
    assert_true(target_file_stat(child, "/plain", &status));
    assert_false(target_file_stat(child, "/above", &status));
    end_child(child, stop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_files_are_opened_whatever_links_lead_to_them),
        cmocka_unit_test(nothing_else_is_opened),
        cmocka_unit_test(a_link_of_proc_leads_to_no_descriptor),
        cmocka_unit_test(a_folder_gives_its_own_files),
        cmocka_unit_test(a_process_has_a_working_folder),
        cmocka_unit_test(others_may_have_written_what_they_may_write),
        cmocka_unit_test(files_are_read_with_the_rights_of_the_process),
        cmocka_unit_test(capabilities_for_files_of_the_same_namespace_count),
        cmocka_unit_test(root_without_capabilities_is_a_user),
        cmocka_unit_test(no_link_leads_out_of_the_root_of_the_process),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
