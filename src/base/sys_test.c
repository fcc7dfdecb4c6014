// SPDX-License-Identifier: MIT
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/page_alloc.h"
#include "base/test_support/open_files.h"

static void failures_are_returned_and_errno_is_left_alone(void **state)
{
    (void)state;
    errno = 4321;
    assert_int_equal(sys_open("/no/such/file", O_RDONLY, 0), -ENOENT);
    assert_int_equal(sys_close(-1), -EBADF);
    assert_int_equal(sys_read(-1, NULL, 0), -EBADF);
    assert_true(sys_failed(sys_mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    assert_int_equal(errno, 4321);
    assert_true(sys_failed(-4095));
    assert_false(sys_failed(-4096));
    assert_false(sys_failed(0));
}

static void the_process_is_the_one_that_libc_knows(void **state)
{
    (void)state;
    assert_int_equal(sys_getpid(), getpid());
    assert_int_equal(sys_getppid(), getppid());
    assert_int_equal(sys_gettid(), gettid());
}

static void a_file_is_opened_close_on_exec_and_read(void **state)
{
    (void)state;
    long fd = sys_open("/proc/self/comm", O_RDONLY, 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl((int)fd, F_GETFD), FD_CLOEXEC);
    char text[32] = "";
    assert_true(sys_read((int)fd, text, sizeof(text) - 1) > 0);
    assert_int_equal(sys_close((int)fd), 0);
    char link[4096];
    char want[4096];
    long len = sys_readlink("/proc/self/exe", link, sizeof(link));
    assert_int_equal(len, readlink("/proc/self/exe", want, sizeof(want)));
    assert_memory_equal(link, want, (size_t)len);
}

static void readable_means_mapped_and_permitted(void **state)
{
    (void)state;
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = page_alloc(2 * page_bytes);
    assert_non_null(pages);
    uint64_t addr = (uint64_t)pages;
    assert_true(sys_is_readable(addr));
    assert_true(sys_is_readable(addr + page_bytes));
    assert_int_equal(sys_mprotect(pages + page_bytes, page_bytes, PROT_NONE), 0);
    assert_true(sys_is_readable(addr + page_bytes - 8));
    assert_false(sys_is_readable(addr + page_bytes - 7));
    assert_false(sys_is_readable(addr + page_bytes));
    page_free(pages, 2 * page_bytes);
    assert_false(sys_is_readable(addr));
    assert_false(sys_is_readable(0));
    assert_false(sys_is_readable(8));
    assert_false(sys_is_readable(UINT64_MAX - 64));
    sigset_t before = {0}; // libc fills only the part that the kernel has
    sigset_t after = {0};
    sigprocmask(SIG_SETMASK, NULL, &before);
    uint64_t all = UINT64_MAX;
    assert_true(sys_is_readable((uint64_t)&all));
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof(before));
}

static void a_word_is_compared_by_the_kernel(void **state)
{
    (void)state;
    const long fd = sys_open("/proc/self/exe", O_RDONLY, 0);
    const uint64_t size = 2 * PAGE_GRAIN;
    const uint64_t at =
        (uint64_t)sys_mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(fd >= 0 && !sys_failed((long)at));
    assert_true(sys_has_word(at, 0)); // read-only, without a page of its own
    assert_false(sys_has_word(at, 1));
    uint32_t magic;
    memcpy(&magic, "\177ELF", sizeof(magic));
    assert_int_equal(
        sys_mmap((void *)at, PAGE_GRAIN, PROT_READ, MAP_PRIVATE | MAP_FIXED, (int)fd, 0), at);
    assert_true(sys_has_word(at, magic));
    assert_int_equal(mprotect((void *)at, PAGE_GRAIN, PROT_NONE), 0);
    assert_false(sys_has_word(at, magic));
    assert_int_equal(sys_munmap((void *)at, size), 0);
    assert_false(sys_has_word(at, magic));
    assert_false(sys_has_word(at, 0));
    assert_int_equal(sys_close((int)fd), 0);
}

static void pages_are_zero_and_impossible_sizes_are_refused(void **state)
{
    (void)state;
    uint8_t *memory = page_alloc(3 * PAGE_GRAIN - 5);
    assert_non_null(memory);
    for (size_t i = 0; i < 3 * PAGE_GRAIN; i++) {
        assert_int_equal(memory[i], 0);
        memory[i] = 0xff;
    }
    page_free(memory, 3 * PAGE_GRAIN - 5);
    page_free(NULL, 1);
    assert_null(page_alloc(0));
    assert_null(page_alloc(SIZE_MAX));
    assert_null(page_alloc((size_t)1 << 62));
}

static void a_futex_wakes_its_sleeper_in_another_process(void **state)
{
    (void)state;
    uint32_t *word =
        mmap(NULL, PAGE_GRAIN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(word != MAP_FAILED);
    assert_int_equal(sys_futex_wait(word, 1, NULL), -EAGAIN);
    const struct timespec short_time = {.tv_nsec = 1000};
    assert_int_equal(sys_futex_wait(word, 0, &short_time), -ETIMEDOUT);
    pid_t child = fork();
    if (child == 0) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
            (void)sys_futex_wait(word, 0, NULL);
        }
        sys_exit_group(7);
    }
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    (void)sys_futex_wake(word, 1);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    munmap(word, PAGE_GRAIN);
}

// Check that nothing is readable, and nothing happens, while system calls are forbidden.
static void forbidden_calls_are_refused_without_the_kernel(void **state)
{
    (void)state;
    uint64_t word = 0;
    assert_true(sys_is_readable((uint64_t)&word & ~(uint64_t)7));
    sys_forbid(true);
    assert_true(sys_is_forbidden());
    assert_false(sys_is_readable((uint64_t)&word & ~(uint64_t)7));
    assert_int_equal(sys_getpid(), -EPERM);
    assert_int_equal(sys_open("/dev/null", O_RDONLY, 0), -EPERM);
    assert_int_equal(sys_mmap(NULL, PAGE_GRAIN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     -EPERM);
    assert_int_equal(sys_futex_wait((const uint32_t *)(const void *)&word, 0, NULL), -EPERM);
    sys_forbid(false);
    assert_int_equal(sys_getpid(), getpid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_returned_and_errno_is_left_alone),
        cmocka_unit_test(the_process_is_the_one_that_libc_knows),
        cmocka_unit_test(a_file_is_opened_close_on_exec_and_read),
        cmocka_unit_test(readable_means_mapped_and_permitted),
        cmocka_unit_test(a_word_is_compared_by_the_kernel),
        cmocka_unit_test(pages_are_zero_and_impossible_sizes_are_refused),
        cmocka_unit_test(a_futex_wakes_its_sleeper_in_another_process),
        cmocka_unit_test(forbidden_calls_are_refused_without_the_kernel),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
