// SPDX-License-Identifier: MIT
// agent_calls: see agent_calls.h.
//
// Compiled with frame pointers: unwind_caller_regs() reads them.
#include "target/agent/agent_calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "session/exec_check.h"
#include "session/session_env.h"
#include "target/agent/agent_original.h"
#include "target/agent/agent_outer.h"
#include "target/agent/agent_resize.h"
#include "target/preload/process/confinement.h"
#include "target/preload/process/exec_path.h"
#include "target/preload/process/process.h"
#include "target/preload/record/record_hot.h"
#include "target/producer/exec_note.h"
#include "thread_way.h"

// Call an original that returns nothing. One that leaves the register of results alone must find
// the caller's value there, because the caller may rely on it as on any other register.
ALWAYS_INLINE uint64_t call_void_original(const struct agent_call *call)
{
    return agent_call_keeping_result(call, agent_patch_of(call)->original);
}

// Return the thread's slot if the call is to be recorded. NULL: only call the original.
ALWAYS_INLINE struct agent_thread *outer_thread(const struct agent_call *call)
{
    return agent_outer_thread((uint64_t)call);
}

// Do the same for a call that records nothing before it calls the original, and note it.
ALWAYS_INLINE struct agent_thread *enter(const struct agent_call *call)
{
    return agent_outer_enter((uint64_t)call);
}

ALWAYS_INLINE uint64_t size_of(const struct agent_call *call, enum agent_hook hook)
{
    const struct agent_hook_shape shape = agent_hook_shape(hook);
    const uint64_t size_bytes = call->arguments[shape.size_argument];
    return shape.count_argument == AGENT_NONE
               ? size_bytes
               : size_bytes * call->arguments[shape.count_argument]; // an overflow: the call fails
}

ALWAYS_INLINE uint64_t record_block_hot(struct agent_thread *thread,
                                        void *block,
                                        uint64_t size_bytes)
{
    return (uint64_t)agent_outer_record(thread, block, size_bytes);
}

uint64_t agent_on_allocation(struct agent_call *call, enum agent_hook hook)
{
    struct agent_thread *thread = enter(call);
    void *block = (void *)agent_call_original(call);
    if (UNLIKELY(thread == NULL)) {
        return (uint64_t)block;
    }
    agent_outer_leave(thread);
    return LIKELY(block != NULL) ? record_block_hot(thread, block, size_of(call, hook)) : 0;
}

uint64_t agent_on_throwing(struct agent_call *call, enum agent_hook hook)
{
    const struct agent_patch *patch = agent_patch_of(call);
    struct agent_thread *thread = patch->nothrow != 0 ? enter(call) : NULL;
    if (thread != NULL) {
        void *block = (void *)agent_call_function(call, patch->nothrow);
        agent_outer_leave(thread);
        if (LIKELY(block != NULL)) {
            return record_block_hot(thread, block, size_of(call, hook));
        }
    }
    call->patch = patch->original;
    return 0;
}

// Record a block for the call's caller, after the outermost call has returned.
ALWAYS_INLINE void
record_block_of(struct agent_thread *thread, const void *block, uint64_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    agent_outer_leave(thread);
    record_alloc(&caller, block, size_bytes);
}

uint64_t agent_on_allocation_at(struct agent_call *call, enum agent_hook hook)
{
    struct agent_thread *thread = enter(call);
    const uint64_t result = agent_call_original(call);
    if (thread == NULL) {
        return result;
    }
    if ((int)result != 0) {
        agent_outer_leave(thread);
        return result;
    }
    record_block_of(thread, *(void *const *)call->arguments[0], size_of(call, hook));
    return result;
}

uint64_t agent_on_text(struct agent_call *call, enum agent_hook hook)
{
    (void)hook;
    struct agent_thread *thread = enter(call);
    const uint64_t text = agent_call_original(call);
    if (thread == NULL) {
        return text;
    }
    if (text == 0) {
        agent_outer_leave(thread);
        return text;
    }
    record_block_of(thread, (const void *)text, __builtin_strlen((const char *)text) + 1);
    return text;
}

uint64_t agent_on_resize(struct agent_call *call, enum agent_hook hook)
{
    struct agent_thread *thread = outer_thread(call);
    if (thread == NULL) {
        return agent_call_original(call);
    }
    const struct unwind_regs caller = unwind_caller_regs();
    const struct agent_hook_shape shape = agent_hook_shape(hook);
    const struct agent_resizing resizing = agent_resize_begins(
        (const void *)call->arguments[shape.block_argument], size_of(call, hook));
    agent_outer_note(thread, (uint64_t)call);
    const uint64_t block = agent_call_original(call);
    agent_outer_leave(thread);
    agent_resize_ends(&resizing, &caller, (const void *)block,
                      shape.effect == AGENT_RESIZES_OR_FREES);
    return block;
}

uint64_t agent_on_resize_in_place(struct agent_call *call, enum agent_hook hook)
{
    struct agent_thread *thread = outer_thread(call);
    if (thread == NULL) {
        return agent_call_original(call);
    }
    const struct unwind_regs caller = unwind_caller_regs();
    const void *block = (const void *)call->arguments[agent_hook_shape(hook).block_argument];
    const struct freed_note freed = record_realloc_begins(block);
    agent_outer_note(thread, (uint64_t)call);
    const uint64_t usable_bytes = agent_call_original(call);
    agent_outer_leave(thread);
    const uint64_t size_bytes = size_of(call, hook);
    if (usable_bytes >= size_bytes) {
        record_realloc(&caller, block, block, size_bytes, freed);
    } else {
        record_realloc_fails(freed);
    }
    return usable_bytes;
}

uint64_t agent_on_free(struct agent_call *call, enum agent_hook hook)
{
    (void)hook;
    struct agent_thread *thread = outer_thread(call);
    const void *block = (const void *)call->arguments[0];
    if (LIKELY(thread != NULL)) {
        if (LIKELY(block != NULL) && !record_free_passes(&thread->pass, block)) {
            record_free_hot(thread->state, block);
        }
        agent_outer_note(thread, (uint64_t)call);
    }
    const uint64_t result = call_void_original(call);
    if (LIKELY(thread != NULL)) {
        agent_outer_leave(thread);
    }
    return result;
}

// The new modules may have allocators: wait until the recorder has hooked them. None of their
// functions has run yet, not even a constructor. Where system calls may be forbidden the recorder
// looks at all its processes, a little later.
static void note_modules(struct session_header *session)
{
    const bool may_wait = !sys_is_forbidden();
    const struct exec_notice notice = {.path = "",
                                       .pid = may_wait ? (uint32_t)sys_getpid() : 0,
                                       .pid_namespace = may_wait ? process_pid_namespace() : 0,
                                       .is_to_be_followed = may_wait,
                                       .has_loaded = true};
    bool is_hooked = false;
    (void)exec_note_put(session, &notice, &is_hooked);
    if (!is_hooked && !session_is_over(session)) {
        session_count(session, NOTE_late_hooks, 1);
    }
}

uint64_t agent_on_modules(struct agent_call *call, enum agent_hook hook)
{
    (void)hook;
    const uint64_t result = call_void_original(call);
    if (atomic_load_explicit(&g_agent_page.enabled, memory_order_acquire) != 0) {
        struct session_header *session = (struct session_header *)g_agent_page.session;
        const uint32_t count = g_agent_page.load_count;
        unwind_modules_refresh();
        if (g_agent_page.load_count != count && !session_is_over(session)) {
            note_modules(session);
        }
    }
    return result;
}

// Return the session that is to know of programs that are executed; NULL: none.
static struct session_header *followed_session(void)
{
    struct session_header *session = (struct session_header *)g_agent_page.session;
    const bool is_followed =
        atomic_load_explicit(&g_agent_page.enabled, memory_order_acquire) != 0 &&
        (session->flags & SESSION_FOLLOW_CHILDREN) != 0 && !session_is_over(session) &&
        !sys_is_forbidden();
    return is_followed ? session : NULL;
}

// Whether a program with this environment finds a session by itself: it was started by a static
// program that was started by cairn.
static bool has_session(char *const *variables)
{
    static const char name[] = SESSION_ENV_NAME "=";
    for (; variables != NULL && *variables != NULL; variables++) {
        size_t at = 0;
        while (at < sizeof(name) - 1 && (*variables)[at] == name[at]) {
            at++;
        }
        if (at == sizeof(name) - 1) {
            return true;
        }
    }
    return false;
}

static bool may_execute(const char *path)
{
    return !sys_failed(SYS_CALL(SYS_faccessat, AT_FDCWD, (long)path, R_OK | X_OK));
}

// Note a program that does not load the library, and wait until the recorder traces its exec. Where
// the environment has a session the program joins by itself, which voids the note. A path that
// cannot be read fails, is one of many that execvp tries, or changes the identity unseen.
static uint64_t note_exec(struct session_header *session, const char *path, char *const *variables)
{
    bool is_traced = false;
    struct exec_notice notice = {.path = path,
                                 .obstacle = exec_check(path),
                                 .pid = (uint32_t)sys_getpid(),
                                 .pid_namespace = process_pid_namespace()};
    const bool joins = notice.obstacle == EXEC_NONE && has_session(variables);
    notice.obstacle = notice.obstacle == EXEC_NONE ? EXEC_AGENT : notice.obstacle;
    notice.is_to_be_followed =
        !joins && may_execute(path) && exec_note_may_follow(session, notice.obstacle);
    return exec_note_put(session, &notice, &is_traced);
}

// Return the path that an exec with these arguments means.
static const char *
path_of_exec(const uint64_t *arguments, enum agent_hook hook, char name[static EXEC_PATH_BYTES_MAX])
{
    const char *path = (const char *)arguments[agent_hook_shape(hook).block_argument];
    return hook == AGENT_FEXECVE    ? exec_path_of((int)arguments[0], "", name)
           : hook == AGENT_EXECVEAT ? exec_path_of((int)arguments[0], path, name)
                                    : path;
}

// Note an exec, make the call, which returns only to fail, and take the note back. The new program
// does not have the agent. Also called by children of vfork.
static uint64_t
execute(const struct agent_call *call, const uint64_t *arguments, enum agent_hook hook)
{
    struct session_header *session = followed_session();
    char name[EXEC_PATH_BYTES_MAX];
    const char *path = session != NULL ? path_of_exec(arguments, hook, name) : NULL;
    const uint8_t path_argument = agent_hook_shape(hook).block_argument;
    char *const *variables = (char *const *)arguments[path_argument + 2];
    const uint64_t number = path != NULL ? note_exec(session, path, variables) : 0;
    const uint64_t result = agent_call_original(call);
    exec_note_take_back(session, number);
    return result;
}

uint64_t agent_on_exec(struct agent_call *call, enum agent_hook hook)
{
    return execute(call, call->arguments, hook);
}

// Return the function that makes that system call; AGENT_SYSCALL: none that executes a program.
static enum agent_hook exec_of_number(uint64_t number)
{
    return number == SYS_execve     ? AGENT_EXECVE
           : number == SYS_execveat ? AGENT_EXECVEAT
                                    : AGENT_SYSCALL;
}

// An entry that may jump cannot return 0 itself.
static uint64_t return_zero(void)
{
    return 0;
}

// All other uses are passed on by a jump: syscall() takes an argument from the stack, and may be
// vfork. The threads go on without system calls in the memory that they have.
uint64_t agent_on_confinement(struct agent_call *call, enum agent_hook hook)
{
    const uint64_t *a = call->arguments;
    const uint64_t original = agent_patch_of(call)->original;
    const enum agent_hook exec = hook == AGENT_SYSCALL ? exec_of_number(a[0]) : AGENT_SYSCALL;
    if (UNLIKELY(exec != AGENT_SYSCALL)) {
        return execute(call, a + 1, exec); // not 0, because it has failed
    }
    const bool confines = hook == AGENT_PRCTL ? confinement_is_prctl(a[0], a[1], a[2])
                                              : confinement_is_syscall(a[0], a[1], a[2], a[3]);
    if (LIKELY(!confines) || !agent_is_enabled()) {
        call->patch = original;
        return 0;
    }
    if (agent_thread_here() != NULL) {
        guard_prepare();
    }
    const bool was_forbidden = confinement_begin();
    const uint64_t result = agent_call_function(call, original);
    confinement_end(was_forbidden, (int)result >= 0);
    call->patch = (uint64_t)return_zero;
    return result;
}
