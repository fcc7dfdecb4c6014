// SPDX-License-Identifier: MIT
#include "inject/process/threads/fresh_stop.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "inject/process/target_process.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/thread_regs.h"
#include "waiting_arch.h"

enum {
    ARRIVAL_S = 30,
    POLL_NS = 50000,
    LOOK_NS = 150000, // how long the loader runs between two looks; longer each time
    LOOK_NS_MAX = 5000000,
    SYMBOLS_MAX = 1 << 16,
    DYNAMIC_MAX = 256,
};

#define EXEC_OPTIONS (PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)

struct loader_symbols {
    uint64_t state_function; // _dl_debug_state
    uint64_t debug;          // _r_debug; 0: not exported, and the first call is the one (musl)
};

enum err fresh_stop_begin(const struct fresh_start *start, struct err_info *info)
{
    const long births = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    const long options = start->makes_child ? births : EXEC_OPTIONS;
    if (start->calls->ptrace(PTRACE_SEIZE, start->tid, NULL, (void *)options) != 0) {
        return err_set_errno(info, errno, "the system does not let cairn trace process %d",
                             start->pid);
    }
    return ERR_OK;
}

// The parent of a process waits for its end, and the parent may be this process.
bool fresh_stop_has_ended(const struct fresh_start *start)
{
    siginfo_t change = {0};
    const int options = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
    return waitid(P_PID, (id_t)start->pid, &change, options) == 0 && change.si_pid == start->pid &&
           (change.si_code == CLD_EXITED || change.si_code == CLD_KILLED ||
            change.si_code == CLD_DUMPED);
}

// A thread that executes a program gets the number of its process.
static int wait_for_any(const struct fresh_start *start, int *status)
{
    if (fresh_stop_has_ended(start)) {
        errno = ECHILD;
        return -1;
    }
    int got = start->calls->wait(start->tid, status, __WALL | WNOHANG);
    if (got < 0 && errno == ECHILD && start->tid != start->pid) {
        got = start->calls->wait(start->pid, status, __WALL | WNOHANG);
    }
    return got;
}

// Let it go on after another stop than the one that is waited for, with its signal. That stop has
// cleared a pending interruption.
static enum err pass(const struct fresh_start *start, int pid, int status, int event)
{
    const uintptr_t signal = status >> 16 == 0 ? (uintptr_t)WSTOPSIG(status) : 0;
    if (event == PTRACE_EVENT_STOP &&
        start->calls->ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0) {
        return ERR_NOT_FOUND;
    }
    return start->calls->ptrace(PTRACE_CONT, pid, NULL, (void *)signal) == 0 ? ERR_OK
                                                                             : ERR_NOT_FOUND;
}

static bool is_cancelled(const struct fresh_start *start)
{
    // Relaxed: nothing is read that comes with it.
    return start->is_cancelled != NULL &&
           atomic_load_explicit(start->is_cancelled, memory_order_relaxed);
}

// Whether a stop is the awaited one. PTRACE_EVENT_FORK stands for each way to make a child.
static bool is_awaited(int status, int event)
{
    const int found = status >> 16;
    return found == event || (event == PTRACE_EVENT_FORK &&
                              (found == PTRACE_EVENT_VFORK || found == PTRACE_EVENT_CLONE));
}

// Wait for a stop of this event. ERR_CANCELLED only if `may_cancel`.
static enum err wait_for_event(const struct fresh_start *start, int event, bool may_cancel)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + ARRIVAL_S * NS_PER_S;
    while (clock_monotonic_ns() < deadline_ns) {
        int status = 0;
        const int got = wait_for_any(start, &status);
        if (got > 0 && WIFSTOPPED(status) && is_awaited(status, event)) {
            return ERR_OK;
        }
        if ((got > 0 && !WIFSTOPPED(status)) || (got < 0 && errno != EINTR)) {
            return ERR_NOT_FOUND;
        }
        if (got > 0) {
            TRY(pass(start, got, status, event));
        } else if (may_cancel && is_cancelled(start)) {
            return ERR_CANCELLED;
        } else {
            clock_sleep_ns(POLL_NS);
        }
    }
    return ERR_LIMIT;
}

// The loader's dynamic section is not relocated yet: its addresses are those in the file.
static enum err find_tables(const struct target_process *target,
                            const struct target_module *loader,
                            uint64_t *out_symbols,
                            uint64_t *out_names)
{
    Elf64_Dyn entry = {0};
    for (uint64_t i = 0; i < DYNAMIC_MAX; i++) {
        TRY(target_process_read(target, loader->dynamic + i * sizeof(entry), &entry,
                                sizeof(entry)));
        if (entry.d_tag == DT_NULL) {
            break;
        }
        if (entry.d_tag == DT_SYMTAB) {
            *out_symbols = loader->load_bias + entry.d_un.d_ptr;
        } else if (entry.d_tag == DT_STRTAB) {
            *out_names = loader->load_bias + entry.d_un.d_ptr;
        }
    }
    return *out_symbols != 0 && *out_names > *out_symbols ? ERR_OK : ERR_UNSUPPORTED;
}

// The names follow the symbols in every loader, so they say where the symbols end.
static enum err find_symbols(const struct target_process *target,
                             const struct target_module *loader,
                             struct loader_symbols *out)
{
    uint64_t symbols = 0;
    uint64_t names = 0;
    TRY(find_tables(target, loader, &symbols, &names));
    for (uint64_t i = 0; i < SYMBOLS_MAX && symbols + (i + 1) * sizeof(Elf64_Sym) <= names; i++) {
        Elf64_Sym symbol;
        char name[sizeof("_dl_debug_state")] = "";
        TRY(target_process_read(target, symbols + i * sizeof(symbol), &symbol, sizeof(symbol)));
        if (symbol.st_value == 0 ||
            target_process_read(target, names + symbol.st_name, name, sizeof(name)) != ERR_OK) {
            continue;
        }
        const uint64_t addr = loader->load_bias + symbol.st_value;
        if (memcmp(name, "_dl_debug_state", sizeof("_dl_debug_state")) == 0) {
            out->state_function = addr;
        } else if (memcmp(name, "_r_debug", sizeof("_r_debug")) == 0) {
            out->debug = addr;
        }
    }
    return out->state_function != 0 ? ERR_OK : ERR_UNSUPPORTED;
}

// Whether the loader has mapped and relocated everything. Before it begins, the state is the same.
static bool is_consistent(const struct target_process *target, uint64_t debug)
{
    int version = 0;
    uint32_t state = 0;
    return debug == 0 || (target_process_read(target, debug + offsetof(struct r_debug, r_version),
                                              &version, sizeof(version)) == ERR_OK &&
                          version != 0 &&
                          target_process_read(target, debug + offsetof(struct r_debug, r_state),
                                              &state, sizeof(state)) == ERR_OK &&
                          state == RT_CONSISTENT);
}

// A program whose loader runs. It has one thread.
struct loading {
    const struct fresh_start *start;
    const struct target_process *target;
    const struct target_module *loader;
    struct loader_symbols symbols;
    struct waiting_piece pieces[WAITING_PIECES_MAX]; // what is written into the program
    uint8_t old[WAITING_PIECES_MAX][WAITING_BYTES_MAX];
    size_t piece_count;
    bool is_running;
};

static bool is_in_pieces(const struct loading *loading, uint64_t pc)
{
    for (size_t i = 0; i < loading->piece_count; i++) {
        if (pc - loading->pieces[i].addr < loading->pieces[i].len) {
            return true;
        }
    }
    return false;
}

// Stop the program if it runs, and read its registers.
static enum err interrupt(struct loading *loading, struct user_regs_struct *regs)
{
    const struct fresh_start *start = loading->start;
    if (loading->is_running) {
        if (start->calls->ptrace(PTRACE_INTERRUPT, start->pid, NULL, NULL) != 0) {
            return ERR_NOT_FOUND;
        }
        TRY(wait_for_event(start, PTRACE_EVENT_STOP, false)); // it comes at once
        loading->is_running = false;
    }
    return thread_regs_read(start->calls, start->pid, regs) == 0 ? ERR_OK : ERR_NOT_FOUND;
}

static enum err set_regs(const struct fresh_start *start, struct user_regs_struct *regs)
{
    thread_regs_forget_call(regs);
    return thread_regs_write(start->calls, start->pid, regs) == 0 ? ERR_OK : ERR_NOT_FOUND;
}

// Stop the program and look where it is. In the function, but before the loader is done, it does
// what the empty function does: it returns. Inside the loader the state alone does not say that the
// loader is done: it is the same after the loader has found itself and before it adds objects.
static enum err look(struct loading *loading, bool *out_is_there)
{
    struct user_regs_struct regs;
    const struct loader_symbols *symbols = &loading->symbols;
    TRY(interrupt(loading, &regs));
    const uint64_t pc = thread_regs_pc(&regs);
    const bool is_waiting = is_in_pieces(loading, pc);
    const bool is_done = is_consistent(loading->target, symbols->debug);
    *out_is_there = is_waiting && is_done;
    if (*out_is_there) {
        thread_regs_go_to(&regs, symbols->state_function);
        return set_regs(loading->start, &regs);
    }
    if (is_waiting) {
        TRY(thread_regs_return(loading->target, &regs));
        return set_regs(loading->start, &regs);
    }
    const struct target_module *loader = loading->loader;
    const bool has_left = is_done && pc - loader->start >= loader->end - loader->start;
    return has_left && symbols->debug != 0 ? ERR_LIMIT : ERR_OK; // it has waited long enough
}

static bool has_stopped(const struct fresh_start *start)
{
    siginfo_t change = {0};
    return waitid(P_PID, (id_t)start->pid, &change, WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           change.si_pid == start->pid;
}

// A traced program stops at each signal, also at one that it ignores: let it have that and go on. A
// stopped one stays stopped until it is continued. The end of one that runs is left to its parent,
// also if it comes just now: only one that has stopped is waited for.
static enum err pass_signal(const struct fresh_start *start)
{
    int status = 0;
    if (fresh_stop_has_ended(start)) {
        return ERR_NOT_FOUND;
    }
    const int got = has_stopped(start) ? wait_for_any(start, &status) : 0;
    if (got == 0 || (got < 0 && errno == EINTR)) {
        return ERR_OK;
    }
    if (got < 0 || !WIFSTOPPED(status)) {
        return ERR_NOT_FOUND;
    }
    const bool is_stopped = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
    const uintptr_t signal = status >> 16 == 0 ? (uintptr_t)WSTOPSIG(status) : 0;
    const long result = is_stopped ? start->calls->ptrace(PTRACE_LISTEN, got, NULL, NULL)
                                   : start->calls->ptrace(PTRACE_CONT, got, NULL, (void *)signal);
    return result == 0 ? ERR_OK : ERR_NOT_FOUND;
}

// Let the program run for so much time of a processor: with less it might never get on where many
// processes wait for one.
static enum err let_run(struct loading *loading, uint64_t run_ns, uint64_t deadline_ns)
{
    const struct fresh_start *start = loading->start;
    clockid_t clock;
    struct timespec begun;
    struct timespec now;
    if (clock_getcpuclockid(start->pid, &clock) != 0 || clock_gettime(clock, &begun) != 0 ||
        start->calls->ptrace(PTRACE_CONT, start->pid, NULL, NULL) != 0) {
        return ERR_NOT_FOUND;
    }
    loading->is_running = true;
    do {
        clock_sleep_ns(POLL_NS);
        if (clock_gettime(clock, &now) != 0 || is_cancelled(start)) {
            return ERR_NOT_FOUND;
        }
        TRY(pass_signal(start)); // the time of a process that has ended stands still
        if (clock_monotonic_ns() > deadline_ns) {
            return ERR_LIMIT;
        }
    } while ((uint64_t)(now.tv_sec - begun.tv_sec) * NS_PER_S + (uint64_t)now.tv_nsec -
                 (uint64_t)begun.tv_nsec <
             run_ns);
    return ERR_OK;
}

static enum err await_symbol(struct loading *loading)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + ARRIVAL_S * NS_PER_S;
    uint64_t pause_ns = LOOK_NS;
    for (bool is_there = false; !is_there; pause_ns = min_u64(pause_ns * 3 / 2, LOOK_NS_MAX)) {
        TRY(let_run(loading, pause_ns, deadline_ns));
        TRY(look(loading, &is_there));
    }
    return ERR_OK;
}

static enum err write_pieces(struct loading *loading)
{
    for (size_t i = 0; i < loading->piece_count; i++) {
        const struct waiting_piece *piece = loading->pieces + i;
        TRY(target_process_read(loading->target, piece->addr, loading->old[i], piece->len));
    }
    for (size_t i = 0; i < loading->piece_count; i++) {
        const struct waiting_piece *piece = loading->pieces + i;
        TRY(target_process_write(loading->target, piece->addr, piece->bytes, piece->len));
    }
    return ERR_OK;
}

static enum err restore_pieces(const struct loading *loading)
{
    for (size_t i = loading->piece_count; i-- > 0;) {
        const struct waiting_piece *piece = loading->pieces + i;
        TRY(target_process_write(loading->target, piece->addr, loading->old[i], piece->len));
    }
    return ERR_OK;
}

// Restore the function also after a failure, if the program can be stopped for that: it may be
// inside. Otherwise it waits there at each call for some seconds, which does it no other harm.
static enum err run_to_symbol(struct loading *loading)
{
    struct user_regs_struct regs;
    TRY(write_pieces(loading));
    const enum err err = await_symbol(loading);
    if (err != ERR_OK) {
        TRY(interrupt(loading, &regs));
        if (is_in_pieces(loading, thread_regs_pc(&regs))) {
            thread_regs_go_to(&regs, loading->symbols.state_function);
            (void)set_regs(loading->start, &regs); // it has been killed meanwhile
        }
    }
    const enum err restored = restore_pieces(loading);
    return err != ERR_OK ? err : restored;
}

// At the exec only the program, its loader and the vdso are mapped.
static enum err run_loader(const struct fresh_start *start, const struct target_process *target)
{
    const struct target_module *loader = NULL;
    bool is_dynamic = false;
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        is_dynamic = is_dynamic || module->has_interpreter;
        if (!module->has_interpreter && !module->is_vdso) {
            loader = module;
        }
    }
    struct loading loading = {.start = start, .target = target, .loader = loader};
    if (loader == NULL) {
        return is_dynamic ? ERR_UNSUPPORTED : ERR_OK;
    }
    const enum err found =
        loader->dynamic != 0 ? find_symbols(target, loader, &loading.symbols) : ERR_UNSUPPORTED;
    if (!is_dynamic && found != ERR_OK) {
        return ERR_OK; // a static program; otherwise the loader itself was executed
    }
    TRY(found);
    loading.piece_count =
        waiting_make(target, loader, loading.symbols.state_function, loading.pieces);
    return loading.piece_count != 0 ? run_to_symbol(&loading) : ERR_UNSUPPORTED;
}

// Let the thread go when it has made the child, and trace that instead. Both stop by themselves.
static enum err go_over_to_child(struct fresh_start *start)
{
    unsigned long child = 0;
    TRY(wait_for_event(start, PTRACE_EVENT_FORK, true));
    const bool is_known =
        start->calls->ptrace(PTRACE_GETEVENTMSG, start->tid, NULL, &child) == 0 && child != 0;
    (void)start->calls->ptrace(PTRACE_DETACH, start->tid, NULL, NULL); // it may have been killed
    if (!is_known) {
        return ERR_NOT_FOUND;
    }
    start->makes_child = false;
    start->pid = (int)child;
    start->tid = (int)child;
    TRY(wait_for_event(start, PTRACE_EVENT_STOP, false));
    const bool is_set =
        start->calls->ptrace(PTRACE_SETOPTIONS, start->pid, NULL, (void *)(long)EXEC_OPTIONS) == 0;
    return is_set && start->calls->ptrace(PTRACE_CONT, start->pid, NULL, NULL) == 0 ? ERR_OK
                                                                                    : ERR_NOT_FOUND;
}

enum err fresh_stop_run(struct fresh_start *start, struct err_info *info)
{
    CLEANUP(target_process_close) struct target_process target = {0};
    enum err err = start->makes_child ? go_over_to_child(start) : ERR_OK;
    err = err == ERR_OK ? wait_for_event(start, PTRACE_EVENT_EXEC, true) : err;
    if (err != ERR_OK) {
        return err_set(info, err, "process %d has not become another program", start->pid);
    }
    TRY(target_process_open(&target, start->pid, start->calls, info));
    err = run_loader(start, &target);
    if (err == ERR_UNSUPPORTED) {
        return err_set(info, err, "the dynamic loader of process %d is of an unknown kind",
                       start->pid);
    }
    if (err == ERR_LIMIT) {
        return err_set(info, err, "process %d has not loaded its libraries in time", start->pid);
    }
    return err == ERR_OK ? ERR_OK : target_refusal_explain(&target, err, info);
}

void fresh_stop_release(const struct fresh_start *start)
{
    // It has ended if this fails, or it runs: then it goes on untraced when this thread ends.
    (void)start->calls->ptrace(PTRACE_DETACH, start->pid, NULL, NULL);
}
