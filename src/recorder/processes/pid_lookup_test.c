// SPDX-License-Identifier: MIT
#include "recorder/processes/pid_lookup.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/proc_file.h"

static void we_find_ourselves_where_we_are_and_nowhere_else(void **state)
{
    (void)state;
    struct stat found;
    assert_int_equal(stat("/proc/self/ns/pid", &found), 0);
    const uint32_t here = (uint32_t)found.st_ino;
    for (int again = 0; again < 2; again++) { // then in the namespace that was asked for last
        assert_int_equal(pid_lookup((uint32_t)getpid(), here), getpid());
        assert_int_equal(pid_lookup((uint32_t)getpid(), here + 1), 0);
        assert_int_equal(pid_lookup(0, here), 0);
        assert_int_equal(pid_lookup(INT_MAX, here), 0);
    }
    const struct inner_pid inner = pid_lookup_inner(getpid());
    assert_int_equal(inner.pid, getpid());
    assert_int_equal(inner.pid_namespace, here);
    assert_int_equal(pid_lookup_inner(INT_MAX).pid, 0);
    assert_int_equal(proc_file_parent(getpid()), getppid());
}

static void a_mapping_finds_who_has_no_proc(void **state)
{
    (void)state;
    struct stat found;
    assert_int_equal(stat("/proc/self/ns/pid", &found), 0);
    const int file = memfd_create("pid_lookup_test", MFD_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 4096), 0);
    assert_int_equal(pid_lookup_namespace((uint32_t)getpid(), file), 0); // no process maps it
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(pid_lookup_namespace((uint32_t)getpid(), file), (uint32_t)found.st_ino);
    assert_int_equal(pid_lookup_namespace((uint32_t)getppid(), file), 0); // but not this one
    assert_int_equal(pid_lookup_namespace(0, file), 0);
    assert_true(pid_lookup_may_map(getpid(), file));
    assert_true(pid_lookup_maps(getpid(), file));
    assert_false(pid_lookup_maps(getppid(), file));
    assert_false(pid_lookup_maps(0, file));
    assert_false(pid_lookup_may_map(getppid(), file));
    assert_false(pid_lookup_may_map(1, file)); // older than this process, if unreadable
    assert_int_equal(munmap(memory, 4096), 0);
    assert_false(pid_lookup_may_map(getpid(), file));
    assert_int_equal(close(file), 0);
    assert_int_equal(pid_lookup_namespace((uint32_t)getpid(), file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(we_find_ourselves_where_we_are_and_nowhere_else),
        cmocka_unit_test(a_mapping_finds_who_has_no_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
