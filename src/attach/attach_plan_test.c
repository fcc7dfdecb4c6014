// SPDX-License-Identifier: MIT
// attach_plan_test: modules that a process loads or unloads while cairn looks at them. The process
// is a child that has a library of its own, and unloads it when it is told to.
#include "attach/attach_plan.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "inject/process/target_reading.h"

// A copy of a library that no other process has, in a child of the test.
struct loaded {
    char path[PATH_MAX];
    pid_t child;
    int to_child; // a byte unloads it; closed, the child ends
    int answers;  // a byte each time that the child has done it
};

static void copy_libm(char *path)
{
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    struct link_map *map = NULL;
    struct stat status;
    assert_non_null(libm);
    assert_int_equal(dlinfo(libm, RTLD_DI_LINKMAP, &map), 0);
    CLEANUP(fd_closep) int from = open(map->l_name, O_RDONLY | O_CLOEXEC);
    CLEANUP(fd_closep) int into = mkstemp(path);
    assert_true(from >= 0 && into >= 0);
    assert_int_equal(fstat(from, &status), 0);
    for (off_t at = 0; at < status.st_size;) {
        assert_true(sendfile(into, from, &at, (size_t)(status.st_size - at)) > 0);
    }
    assert_int_equal(dlclose(libm), 0);
}

static void be_child(const char *path, int orders, int answers)
{
    void *library = dlopen(path, RTLD_NOW);
    char byte = 0;
    if (library == NULL || write(answers, &byte, 1) != 1) {
        _exit(1);
    }
    if (read(orders, &byte, 1) == 1) {
        _exit(dlclose(library) != 0 || write(answers, &byte, 1) != 1 ||
              read(orders, &byte, 1) != 0);
    }
    _exit(0);
}

static void await_answer(const struct loaded *loaded)
{
    char byte;
    assert_int_equal(read(loaded->answers, &byte, 1), 1);
}

static void begin(struct loaded *out)
{
    int orders[2];
    int answers[2];
    *out = (struct loaded){.path = "/tmp/attach_plan_XXXXXX"};
    copy_libm(out->path);
    assert_true(pipe(orders) == 0 && pipe(answers) == 0);
    out->child = fork();
    if (out->child == 0) {
        (void)close(orders[1]);
        be_child(out->path, orders[0], answers[1]);
    }
    (void)close(orders[0]);
    (void)close(answers[1]);
    out->to_child = orders[1];
    out->answers = answers[0];
    await_answer(out);
}

static void end(const struct loaded *loaded)
{
    int status = 0;
    (void)close(loaded->to_child);
    (void)close(loaded->answers);
    assert_int_equal(waitpid(loaded->child, &status, 0), loaded->child);
    assert_int_equal(status, 0);
    (void)unlink(loaded->path); // a test may have removed it
}

static struct target_module module_of(const struct target_process *target, const char *path)
{
    for (size_t i = 0; i < target->modules.len; i++) {
        if (strcmp(target_process_path(target, target->modules.items[i].path), path) == 0) {
            return target->modules.items[i];
        }
    }
    fail_msg("%s is no module", path);
    abort();
}

static int g_fails; // so many further calls
static uint64_t g_start;

static ssize_t read_later(int fd, void *into, size_t len, off_t at)
{
    if ((uint64_t)at == g_start && g_fails-- > 0) {
        errno = EIO;
        return -1;
    }
    return pread(fd, into, len, at);
}

// A module without the file that was mapped is named as unread, unless it is no module any more.
static void only_a_mapped_file_is_missing(void **state)
{
    (void)state;
    static const struct {
        bool is_another; // the file, by its build id
        bool is_unloaded;
        bool is_noted;
    } cases[] = {{false, false, false}, {true, false, true}, {true, true, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct attach attach = {0};
        const struct attach_options options = {0};
        struct err_info info = {0};
        struct loaded loaded;
        begin(&loaded);
        struct target_process *target = &attach.inject.target;
        assert_int_equal(target_process_open(target, loaded.child, &kernel_calls_real, &info),
                         ERR_OK);
        struct target_module module = module_of(target, loaded.path);
        assert_true(module.build_id_len > 0);
        module.build_id[0] ^= cases[i].is_another;
        if (cases[i].is_unloaded) {
            assert_int_equal(write(loaded.to_child, "", 1), 1);
            await_answer(&loaded);
        }
        assert_int_equal(attach_plan_examine(&attach, &module, &options, &info), ERR_OK);
        const char *unread = strbuf_text(&attach.unread);
        if ((strstr(unread, loaded.path) != NULL) != cases[i].is_noted) {
            fail_msg("case %zu: '%s' is unread", i, unread);
        }
        attach_plan_release(&attach);
        strbuf_release(&attach.unread);
        target_process_close(target);
        end(&loaded);
    }
}

// A module whose headers could not be read is looked at again.
static void headers_that_are_unreadable_for_a_moment(void **state)
{
    (void)state;
    static const struct {
        int fails; // after the first time
        bool is_noted;
    } cases[] = {{0, false}, {2, false}, {INT_MAX - 1, true}};
    struct loaded loaded;
    begin(&loaded);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kernel_calls calls = kernel_calls_real;
        struct attach attach = {0};
        struct err_info info = {0};
        struct target_process *target = &attach.inject.target;
        assert_int_equal(target_process_open(target, loaded.child, &calls, &info), ERR_OK);
        g_start = module_of(target, loaded.path).start;
        g_fails = 1 + cases[i].fails;
        calls.read_at = read_later;
        assert_int_equal(target_process_refresh(target, &info), ERR_OK);
        assert_int_equal(target->unread.len, 1);
        attach_plan_note_modules(&attach);
        const char *unread = strbuf_text(&attach.unread);
        if ((strstr(unread, loaded.path) != NULL) != cases[i].is_noted) {
            fail_msg("case %zu: '%s' is unread", i, unread);
        }
        strbuf_release(&attach.unread);
        target_process_close(target);
    }
    end(&loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_mapped_file_is_missing),
        cmocka_unit_test(headers_that_are_unreadable_for_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
