// SPDX-License-Identifier: MIT
// Tests of runtime_files: paths of this process and of none, read once.
#include "symbols/runtimes/runtime_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "symbols/runtimes/test_module.h"

static const char *
found(struct runtime_files *files, struct string_table *strings, const char *path, int pid)
{
    rec_string id = 0;
    const struct runtime *runtime = NULL;
    const struct runtime *known = NULL;
    assert_int_equal(string_table_intern_text(strings, path, &id), ERR_OK);
    if (!runtime_files_get(files, id, &runtime)) {
        runtime = runtime_files_read(path, pid);
        assert_int_equal(runtime_files_put(files, id, runtime), ERR_OK);
    }
    assert_true(runtime_files_get(files, id, &known));
    assert_ptr_equal(known, runtime);
    return runtime != NULL ? runtime->key : "";
}

static void write_module(const char *path, const char *function)
{
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    assert_true(test_module_write(fd, function, 1, ".text"));
    assert_int_equal(close(fd), 0);
}

static void each_path_is_read_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/runtime_files_test.XXXXXX";
    char path[64];
    struct runtime_files files = {0};
    CLEANUP(string_table_release) struct string_table strings = {0};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_module("php", "_emalloc");
    write_module("none", "main");
    (void)snprintf(path, sizeof(path), "%s/php", folder);
    assert_string_equal(found(&files, &strings, "./php", 0), ""); // of no process: no folder
    assert_string_equal(found(&files, &strings, "php", getpid()), "php");
    assert_string_equal(found(&files, &strings, path, 0), "php");
    assert_string_equal(found(&files, &strings, "none", getpid()), "");
    assert_string_equal(found(&files, &strings, "missing", getpid()), "");
    assert_string_equal(found(&files, &strings, "/dev/null", getpid()), "");
    assert_int_equal(unlink("php"), 0);
    assert_int_equal(unlink("none"), 0);
    assert_string_equal(found(&files, &strings, "php", getpid()), "php");
    assert_string_equal(found(&files, &strings, "./php", getpid()), "");
    assert_int_equal(rmdir(folder), 0);
    runtime_files_release(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
