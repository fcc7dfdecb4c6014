// SPDX-License-Identifier: MIT
// agent_process: hooks of the functions by which a program maps memory itself, limits itself, and
// ends (agent_calls.h).
//
// Of mmap and its kin the functions themselves are patched, so allocators and libc come here too.
// Calls inside a call of an allocator, and those by a library that has one, are the allocator's.
// Those by libc are not recorded: their shapes are known. One such function may call another, as
// sbrk brk, or one of tcmalloc libc's: the outermost counts. A static program has libc inside:
// there the stack of a thread is told by its flag, and musl's, which has none, counts as the
// program's. libc may map memory before it has set the thread pointer; that is not recorded either.
//
// Every end by exit, quick_exit or a return from main comes to _exit, behind all handlers.
//
// Compiled with frame pointers: unwind_caller_regs() reads them. Context: T, as agent_calls.h.
#include <linux/mman.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "session/wire.h"
#include "target/agent/agent_calls.h"
#include "target/agent/agent_modules.h"
#include "target/agent/agent_original.h"
#include "target/agent/agent_outer.h"
#include "target/preload/process/process.h"
#include "target/preload/record/address_limit.h"
#include "target/preload/record/record_exit.h"
#include "target/preload/record/record_mapping.h"
#include "thread_way.h"

#define FAILED UINT64_MAX // MAP_FAILED, and sbrk's failure

// Return the slot of the calling thread; NULL: nothing is recorded.
static struct agent_thread *thread_here(void)
{
    if (!agent_is_enabled()) {
        return NULL;
    }
    // A process that is attached to, or one of whose threads has recorded, has set it long since. A
    // filter may forbid the question, but not before libc has made that system call itself.
    // Relaxed: only compared.
    const bool has_pointer =
        (g_agent_page.process_flags & PROCESS_ATTACHED) != 0 ||
        atomic_load_explicit(&agent_attachment()->first_pointer, memory_order_relaxed) != 0 ||
        arch_has_thread_pointer();
    return has_pointer ? agent_thread_here() : NULL;
}

static bool is_stack_of_thread(const struct agent_call *call, enum agent_hook hook)
{
    const bool is_static = g_agent_page.loader_list == 0;
    return hook == AGENT_MMAP && is_static && (call->arguments[3] & MAP_STACK) != 0;
}

// Whose call it is.
enum mapper {
    MAPPER_LIBC, // or it is inside another one
    MAPPER_ALLOCATOR,
    MAPPER_PROGRAM,
};

static enum mapper
mapper_of(const struct agent_thread *thread, const struct agent_call *call, enum agent_hook hook)
{
    const uint32_t flags = agent_module_flags_at(call->return_address);
    if ((flags & AGENT_MODULE_IS_LIBC) != 0 || is_stack_of_thread(call, hook) ||
        !agent_outer_is(thread->outer_mapping, (uint64_t)call)) {
        return MAPPER_LIBC;
    }
    const bool is_inside = !agent_outer_is(thread->outer_call, (uint64_t)call);
    return is_inside || (flags & AGENT_MODULE_ALLOCATES) != 0 ? MAPPER_ALLOCATOR : MAPPER_PROGRAM;
}

// What the call has changed. `before`: the program's break before a call of brk.
static struct mapping_change change_of(const struct agent_call *call,
                                       enum agent_hook hook,
                                       uint64_t result,
                                       uint64_t number,
                                       uint64_t before)
{
    const uint64_t *a = call->arguments;
    if (hook == AGENT_MMAP && result != FAILED) {
        return mapping_of_mmap(result, a[1], a[3]);
    }
    if (hook == AGENT_MUNMAP && (int)result == 0) {
        return mapping_of_munmap(a[0], a[1], number);
    }
    if (hook == AGENT_MREMAP && result != FAILED) {
        return mapping_of_mremap(result, a[2], a[3], a[0], a[1], number);
    }
    if (hook == AGENT_SBRK && result != FAILED) {
        return mapping_of_break(result, result + a[0], number);
    }
    if (hook == AGENT_BRK && (int)result == 0) {
        return mapping_of_break(before, a[0], number);
    }
    return (struct mapping_change){0};
}

uint64_t agent_on_mapping(struct agent_call *call, enum agent_hook hook)
{
    struct agent_thread *thread = thread_here();
    const enum mapper mapper = thread != NULL ? mapper_of(thread, call, hook) : MAPPER_LIBC;
    if (mapper == MAPPER_LIBC) {
        return agent_call_original(call);
    }
    const struct unwind_regs caller = unwind_caller_regs();
    const uint64_t before = hook == AGENT_BRK ? (uint64_t)SYS_CALL(SYS_brk, 0) : 0;
    const uint64_t number = process_next_mapping();
    thread->outer_mapping = (uint64_t)call;
    const uint64_t result = agent_call_original(call);
    thread->outer_mapping = 0;
    struct mapping_change change = change_of(call, hook, result, number, before);
    change.kind = mapper == MAPPER_ALLOCATOR ? WIRE_MAPPING_HEAP : change.kind;
    record_mapping(&caller, &change);
    return result;
}

uint64_t agent_on_limit(struct agent_call *call, enum agent_hook hook)
{
    const uint64_t *a = call->arguments;
    if (thread_here() != NULL && (process_session() != NULL || process_join())) {
        if (hook == AGENT_SETRLIMIT) {
            address_limit_expect((unsigned)a[0], (const struct rlimit *)a[1]);
        } else {
            address_limit_expect_of((int32_t)a[0], (unsigned)a[1], (const struct rlimit *)a[2]);
        }
    }
    return agent_call_original(call);
}

uint64_t agent_on_exit(struct agent_call *call, enum agent_hook hook)
{
    (void)hook;
    if (thread_here() != NULL) {
        record_own_exit();
    }
    call->patch = agent_patch_of(call)->original;
    return 0;
}
