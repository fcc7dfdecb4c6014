// SPDX-License-Identifier: MIT
// Tests of what is read from /proc: drawn texts, read in pieces and with errors, and the kernel's
// own words about a child of the test.
#include "inject/process/proc_files.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"

#define DRAWN_MEMORY (-1) // in place of the file of a target's memory

// What the next file of /proc is, and how its reading fails.
static struct {
    const char *text;  // NULL: there is no such file
    const char *later; // what it is when it is opened again; NULL: the same
    bool is_opened;
    int open_errno;
    int read_errno; // at the end of the text; 0: none
    bool is_interrupted;
    char path[80];
} g_file;

static int open_drawn(const char *path, int flags)
{
    (void)flags;
    (void)snprintf(g_file.path, sizeof(g_file.path), "%s", path);
    g_file.text = g_file.is_opened && g_file.later != NULL ? g_file.later : g_file.text;
    g_file.is_opened = true;
    if (g_file.text == NULL) {
        errno = g_file.open_errno;
        return -1;
    }
    return memfd_create("file of /proc", 0);
}

// Return at most 3 bytes at a time, with an interruption before each. All memory can be read.
static ssize_t read_drawn(int fd, void *into, size_t len, off_t at)
{
    if (fd == DRAWN_MEMORY) {
        memset(into, 0, len);
        return (ssize_t)len;
    }
    g_file.is_interrupted = !g_file.is_interrupted;
    const size_t rest = strlen(g_file.text) - (size_t)at;
    if (g_file.is_interrupted || (rest == 0 && g_file.read_errno != 0)) {
        errno = g_file.is_interrupted ? EINTR : g_file.read_errno;
        return -1;
    }
    const size_t count = min_u64(rest, min_u64(len, 3));
    memcpy(into, g_file.text + at, count);
    return (ssize_t)count;
}

static const struct kernel_calls g_drawn_calls = {.open = open_drawn, .read_at = read_drawn};
static const struct target_process g_drawn = {
    .pid = 17, .mem_fd = DRAWN_MEMORY, .calls = &g_drawn_calls};

static void draw(const char *text)
{
    g_file = (typeof(g_file)){.text = text, .open_errno = ENOENT};
}

static void files_are_read_to_their_end(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "a", "abc", "abcd", "two lines\nof text\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct strbuf text = {0};
        draw(texts[i]);
        assert_int_equal(proc_files_read(&g_drawn, 18, "maps", &text, NULL), ERR_OK);
        assert_string_equal(strbuf_text(&text), texts[i]);
        assert_int_equal(text.len, strlen(texts[i]));
        assert_string_equal(g_file.path, "/proc/17/task/18/maps");
        strbuf_release(&text);
    }
}

static void each_failure_has_its_error(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum err expected;
        const char *said; // of what is not about the target
    } cases[] = {
        {EACCES, ERR_PERMISSION, ""},
        {EPERM, ERR_PERMISSION, ""},
        {ENOENT, ERR_NOT_FOUND, ""},
        {ESRCH, ERR_NOT_FOUND, ""},
        {EIO, ERR_IO, "cannot read '/proc/17/task/18/maps': Input/output error"},
        {EMFILE, ERR_IO, "cannot read '/proc/17/task/18/maps': Too many open files"},
        {ENFILE, ERR_IO, "cannot read '/proc/17/task/18/maps': Too many open files in system"},
        {ENOMEM, ERR_NO_MEMORY, "cannot read '/proc/17/task/18/maps': Cannot allocate memory"},
        {EAGAIN, ERR_IO, "cannot read '/proc/17/task/18/maps': Resource temporarily unavailable"},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        const int error = cases[i / 2].error;
        draw(i % 2 == 0 ? NULL : "begun");
        g_file.open_errno = error;
        g_file.read_errno = error;
        struct strbuf text = {0};
        struct err_info info = {0};
        assert_int_equal(proc_files_read(&g_drawn, 18, "maps", &text, &info),
                         cases[i / 2].expected);
        assert_string_equal(info.text, cases[i / 2].said);
        strbuf_release(&text);
    }
}

// A process that cairn cannot read has not ended, and the reason is reported.
static void what_cairn_lacks_is_told_as_that(void **state)
{
    (void)state;
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, EAGAIN};
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        struct target_process target = g_drawn;
        struct err_info info = {0};
        draw(NULL);
        g_file.open_errno = errors[i];
        assert_int_equal(proc_files_thread_state(&g_drawn, 18), '?');
        assert_true(proc_files_is_confined(&g_drawn, 18));
        assert_true(target_refusal_has_memory(&g_drawn));
        assert_int_equal(target_process_refresh(&target, &info),
                         errors[i] == ENOMEM ? ERR_NO_MEMORY : ERR_IO);
        assert_non_null(strstr(info.text, strerror(errors[i])));
        info = (struct err_info){0};
        assert_int_equal(target_process_open(&target, 17, &g_drawn_calls, &info),
                         errors[i] == ENOMEM ? ERR_NO_MEMORY : ERR_IO);
        assert_non_null(strstr(info.text, strerror(errors[i])));
    }
}

// Descriptors that run out at each step of opening a process, this one's child.
static void a_process_is_not_dead_for_lack_of_descriptors(void **state)
{
    (void)state;
    const int pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int first_free = dup(STDIN_FILENO);
    assert_int_equal(close(first_free), 0);
    bool is_open = false;
    for (int room = 0; !is_open && room < 10; room++) {
        struct target_process target = {0};
        struct err_info info = {0};
        const struct rlimit few = {.rlim_cur = (rlim_t)(first_free + room),
                                   .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        is_open = target_process_open(&target, pid, &kernel_calls_real, &info) == ERR_OK;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (!is_open && strstr(info.text, ": Too many open files") == NULL) {
            fail_msg("%d: %s", room, info.text);
        }
        target_process_close(&target);
    }
    assert_true(is_open);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_state_is_behind_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char expected;
    } cases[] = {
        {"18 (program) S 1 18 18 0", 'S'},
        {"18 (a) R 1) t 1 18", 't'},
        {"18 (()) Z 1", 'Z'},
        {"18 (program)", 'X'},
        {"18 (program)S", 'X'},
        {"18 program S", 'X'},
        {"", 'X'},
        {NULL, 'X'}, // ENOENT
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        draw(cases[i].text);
        assert_int_equal(proc_files_thread_state(&g_drawn, 18), cases[i].expected);
    }
}

static void a_call_is_a_number_none_or_running(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct current_call expected;
    } cases[] = {
        {"0 0x3 0x7ffe 0x400", {.number = 0, .first_argument = 3}}, // cut
        {"271 0x7ffe 0x1 0x0 0x0 0x8 0x0 0x7ffd 0x7f11\n",
         {.number = 271, .first_argument = 0x7ffe, .sp = 0x7ffd, .pc = 0x7f11}},
        {"-1 0x7ffd18c1f8a8 0x5581\n", {.number = -1}},
        {"running\n", {.number = -1, .is_running = true}},
        {"", {.number = -1}},
        {NULL, {.number = -1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        draw(cases[i].text);
        const struct current_call call = proc_files_current_call(&g_drawn, 18);
        assert_int_equal(call.number, cases[i].expected.number);
        assert_int_equal(call.is_running, cases[i].expected.is_running);
        assert_int_equal(call.first_argument, cases[i].expected.first_argument);
        assert_int_equal(call.sp, cases[i].expected.sp);
        assert_int_equal(call.pc, cases[i].expected.pc);
    }
}

// A child that waits for the end of a pipe, in read(2), and that has ended.
static void the_kernel_says_the_same_of_a_child(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int pid = fork();
    if (pid == 0) {
        char byte;
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    const struct target_process child = {.pid = pid, .calls = &kernel_calls_real};
    while (proc_files_current_call(&child, pid).number != SYS_read ||
           proc_files_thread_state(&child, pid) != 'S') {
        (void)sched_yield(); // it must come there
    }
    struct u32_vec tids = {0};
    assert_int_equal(proc_files_list_threads(&child, &tids, NULL), ERR_OK);
    assert_int_equal(tids.len, 1);
    assert_int_equal(tids.items[0], pid);
    u32_vec_release(&tids);
    (void)close(ends[0]);
    (void)close(ends[1]);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_files_thread_state(&child, pid), 'Z');
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(proc_files_thread_state(&child, pid), 'X');
    assert_int_equal(proc_files_list_threads(&child, &tids, NULL), ERR_NOT_FOUND);
}

// The memory goes first when a process ends, so any error may be its end.
static void an_error_is_the_end_of_a_process_without_memory(void **state)
{
    (void)state;
    static const struct {
        const char *maps; // NULL: no file
        int open_errno;
        enum err err;
        const char *said;
        const char *said_of_write;
    } cases[] = {
        {"0-1000 r-xp 0 0:0 0\n", 0, ERR_IO, "cannot read process 17",
         "cannot write to the memory of process 17"},
        {NULL, EACCES, ERR_IO, "cannot read process 17",
         "cannot write to the memory of process 17"},
        {"", 0, ERR_NOT_FOUND, "process 17 has ended, or is a thread of the kernel",
         "process 17 has ended, or is a thread of the kernel"},
        {NULL, ENOENT, ERR_NOT_FOUND, "process 17 has ended, or is a thread of the kernel",
         "process 17 has ended, or is a thread of the kernel"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        draw(cases[i].maps);
        g_file.open_errno = cases[i].open_errno;
        struct err_info info = {0};
        assert_int_equal(target_refusal_explain(&g_drawn, ERR_IO, &info), cases[i].err);
        assert_string_equal(info.text, cases[i].said);
        assert_int_equal(target_refusal_of_write(&g_drawn, &info), cases[i].err);
        assert_string_equal(info.text, cases[i].said_of_write);
    }
}

// The list that was opened before an exec is empty behind it, too.
static void a_process_that_executes_a_program_has_memory(void **state)
{
    (void)state;
    draw("");
    assert_false(target_refusal_has_memory(&g_drawn));
    draw("");
    g_file.later = "0-1000 r-xp 0 0:0 0\n";
    assert_true(target_refusal_has_memory(&g_drawn));
}

// Two mappings that become one while the list is read are listed as the first and as both.
static void a_list_in_which_mappings_overlap_is_read_again(void **state)
{
    (void)state;
    static const char whole[] = "1000-3000 rw-p 10 0:0 0\n5000-6000 r--p 10 0:0 0\n";
    static const char torn[] = "1000-2000 rw-p 10 0:0 0\n1000-3000 rw-p 10 0:0 0\n";
    struct target_process target = g_drawn;
    struct err_info info = {0};
    draw(torn);
    g_file.later = whole;
    assert_int_equal(target_process_refresh(&target, &info), ERR_OK);
    assert_int_equal(target.mappings.len, 2);
    assert_int_equal(target.mappings.items[0].end, 0x3000);
    draw(torn);
    assert_int_equal(target_process_refresh(&target, &info), ERR_CORRUPT);
    assert_int_equal(target.mappings.len, 2);
    target.calls = NULL;
    target_process_close(&target);
}

// The fields of each line, and the lines that are none.
static void every_field_of_a_mapping_is_read(void **state)
{
    (void)state;
    static const char listed[] = "1000-2000 r--p 00001000 08:01 77 /lib/a b.so\n"
                                 "2000-4000 r-xp 00002000 08:01 77 /lib/a b.so\n"
                                 "4000-5000 rw-s 00003000 08:01 78 /lib/a b.so (deleted)\n"
                                 "6000-7000 -w-p 00004000 00:00 0 \n"
                                 "7fff00000000-ffffffffff600000 --xp ffffffff00 00:00 0 [heap]";
    static const struct {
        struct target_mapping mapping;
        const char *path;
    } expected[] = {
        {{0x1000, 0x2000, 0x1000, 77, 0x800001, 0, PROT_READ}, "/lib/a b.so"},
        {{0x2000, 0x4000, 0x2000, 77, 0x800001, 0, PROT_READ | PROT_EXEC}, "/lib/a b.so"},
        {{0x4000, 0x5000, 0x3000, 78, 0x800001, 0, PROT_READ | PROT_WRITE}, "/lib/a b.so"},
        {{0x6000, 0x7000, 0x4000, 0, 0, 0, PROT_WRITE}, ""},
        {{0x7fff00000000, 0xffffffffff600000, 0xffffffff00, 0, 0, 0, PROT_EXEC}, "[heap]"},
    };
    struct target_process target = g_drawn;
    struct err_info info = {0};
    draw(listed);
    assert_int_equal(target_process_refresh(&target, &info), ERR_OK);
    assert_int_equal(target.mappings.len, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct target_mapping *mapping = &target.mappings.items[i];
        assert_int_equal(mapping->start, expected[i].mapping.start);
        assert_int_equal(mapping->end, expected[i].mapping.end);
        assert_int_equal(mapping->file_off, expected[i].mapping.file_off);
        assert_int_equal(mapping->inode, expected[i].mapping.inode);
        assert_int_equal(mapping->device, expected[i].mapping.device);
        assert_int_equal(mapping->prot, expected[i].mapping.prot);
        assert_string_equal(target_process_path(&target, mapping->path), expected[i].path);
    }
    assert_int_equal(target.mappings.items[1].path, target.mappings.items[0].path); // kept once
    assert_int_equal(target.mappings.items[2].path, target.mappings.items[0].path);
    static const struct {
        const char *text;
        enum err err;
    } wrong[] = {
        {"1000-1000 r--p 0 0:0 0\n", ERR_CORRUPT},
        {"2000-1000 r--p 0 0:0 0\n", ERR_CORRUPT},
        {"1000-2000 r--p 0 0:0\n", ERR_CORRUPT},
        {"1000 2000 r--p 0 0:0 0\n", ERR_CORRUPT},
        {"1000-2000 r--p 10 0:0 0\nwords\n", ERR_CORRUPT},
        {"", ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        draw(wrong[i].text);
        assert_int_equal(target_process_refresh(&target, &info), wrong[i].err);
        assert_int_equal(target.mappings.len, ARRAY_LEN(expected)); // the old ones stay
    }
    static const struct {
        uint64_t addr;
        size_t mapping; // its place; ARRAY_LEN(expected): none
    } places[] = {{0xfff, 5},  {0x1000, 0}, {0x1fff, 0}, {0x2000, 1}, {0x4fff, 2},
                  {0x5000, 5}, {0x5fff, 5}, {0x6000, 3}, {0x7000, 5}, {UINT64_MAX, 5}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct target_mapping *found = target_process_mapping_at(&target, places[i].addr);
        assert_ptr_equal(found, places[i].mapping == ARRAY_LEN(expected)
                                    ? NULL
                                    : &target.mappings.items[places[i].mapping]);
    }
    target.calls = NULL;
    target_process_close(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_a_mapping_is_read),
        cmocka_unit_test(a_list_in_which_mappings_overlap_is_read_again),
        cmocka_unit_test(files_are_read_to_their_end),
        cmocka_unit_test(each_failure_has_its_error),
        cmocka_unit_test(what_cairn_lacks_is_told_as_that),
        cmocka_unit_test(a_process_is_not_dead_for_lack_of_descriptors),
        cmocka_unit_test(a_state_is_behind_the_name),
        cmocka_unit_test(a_call_is_a_number_none_or_running),
        cmocka_unit_test(the_kernel_says_the_same_of_a_child),
        cmocka_unit_test(an_error_is_the_end_of_a_process_without_memory),
        cmocka_unit_test(a_process_that_executes_a_program_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
