// SPDX-License-Identifier: MIT
// Tests the precise walk of another process, which attaching needs, with a memory reader.
//
// A child walks its own stack at some depth, leaves the result in shared memory and stops. Its
// parent reads the registers by ptrace and the stack by process_vm_readv, walks too, and compares.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "base/sys.h"
#include "target/unwind/environment/module_table.h"
#include "target/unwind/unwind.h"
#include "target/unwind/walk/precise_walk.h"
#include "test_stopped_arch.h"

#define MAX_FRAMES 128u

struct shared {
    uint32_t count;
    struct unwind_frame frames[MAX_FRAMES];
};

struct other_memory {
    struct memory_reader reader;
    pid_t pid;
};

static bool read_other(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    struct other_memory *memory = (struct other_memory *)self;
    const struct iovec local = {.iov_base = word, .iov_len = sizeof(*word)};
    const struct iovec remote = {.iov_base = (void *)addr, .iov_len = sizeof(*word)};
    return sys_process_vm_readv(memory->pid, &local, 1, &remote, 1) == sizeof(*word);
}

// The child is a fork: its modules have the same addresses as ours.
static bool
find_table(const struct unwind_source *self, uint64_t pc, bool is_guess, struct eh_table *out)
{
    (void)is_guess; // a stopped process unloads nothing
    (void)self;
    struct module_span span;
    return module_table_find(pc, &span) && module_table_unwind(&span, out);
}

static NOINLINE void walk_and_stop(struct shared *shared)
{
    const struct unwind_regs start = unwind_caller_regs();
    struct unwind_thread *thread = unwind_thread_init(
        page_alloc(unwind_thread_bytes(MAX_FRAMES, MAX_FRAMES)), MAX_FRAMES, MAX_FRAMES);
    struct unwind_walk walk;
    unwind_thread_walk(thread, &start, &walk);
    memcpy(shared->frames, walk.frames, walk.count * sizeof(*walk.frames));
    shared->count = walk.count;
    (void)sys_tgkill(sys_getpid(), sys_gettid(), SIGSTOP);
}

static NOINLINE uint64_t descend(struct shared *shared, unsigned depth)
{
    volatile uint64_t block[8] = {depth};
    if (depth == 0) {
        walk_and_stop(shared);
    } else {
        block[1] = descend(shared, depth - 1);
    }
    return block[0] + block[1];
}

static struct cpu registers_of(pid_t pid)
{
    struct user_regs_struct regs;
    struct iovec into = {.iov_base = &regs, .iov_len = sizeof(regs)};
    assert_int_equal(ptrace(PTRACE_GETREGSET, pid, (void *)1, &into), 0); // NT_PRSTATUS
    return test_stopped_cpu(&regs);
}

static void compare_walks(pid_t child, const struct shared *shared)
{
    struct other_memory memory = {.reader = {.read = read_other}, .pid = child};
    const struct unwind_source source = {.memory = &memory.reader, .find_table = find_table};
    const struct cpu cpu = registers_of(child);
    struct frame_sink sink;
    struct unwind_walk walk;
    void *sink_memory = page_alloc(frame_sink_bytes(MAX_FRAMES));
    bool guessed = false;
    frame_sink_init(&sink, sink_memory, MAX_FRAMES);
    assert_int_equal(precise_walk_run(&source, &cpu, &sink, &guessed), WALK_FINISHED);
    frame_sink_finish(&sink, &walk);
    assert_false(guessed);
    // Further in, the child is now in a system call. The frames that both walks have are equal
    // except the innermost, which has continued to another call.
    assert_true(walk.count > shared->count);
    for (uint32_t i = 0; i + 1 < shared->count; i++) {
        if (walk.frames[i].pc != shared->frames[i].pc) {
            fail_msg("frame %u of %u is %#llx, the child says %#llx", i, walk.count,
                     (unsigned long long)walk.frames[i].pc,
                     (unsigned long long)shared->frames[i].pc);
        }
    }
    page_free(sink_memory, frame_sink_bytes(MAX_FRAMES));
}

static void a_stopped_child_is_walked_from_outside(void **state)
{
    (void)state;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (unsigned depth = 0; depth < 60; depth += 7) {
        pid_t child = fork();
        if (child == 0) {
            (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            sys_exit_group(descend(shared, depth) != 0 ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSTOPPED(status));
        assert_true(shared->count > depth);
        compare_walks(child, shared);
        assert_int_equal(ptrace(PTRACE_KILL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_child_is_walked_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
