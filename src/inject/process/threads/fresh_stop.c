// SPDX-License-Identifier: MIT
// fresh_stop: see fresh_stop.h.
#include "inject/process/threads/fresh_stop.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_process.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"

enum {
    ARRIVAL_S = 60,
    LOOK_EVERY_NS = 100000,
    SYMBOLS_MAX = 1 << 16,
    DYNAMIC_MAX = 256,
};

static const uint8_t endless_loop[FRESH_LOOP_BYTES] = {0xeb, 0xfe}; // jmp to itself

struct loader_symbols {
    uint64_t state_function; // _dl_debug_state
    uint64_t debug;          // _r_debug; 0: not exported, and the first call is the one (musl)
};

enum err fresh_stop_begin(int pid, const struct kernel_calls *calls, struct err_info *info)
{
    const long options = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (calls->ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) != 0) {
        return err_set_errno(info, errno, "cannot trace process %d", pid);
    }
    return ERR_OK;
}

// Wait for a stop of this event; let the program have its signals meanwhile.
static enum err wait_for_event(int pid, const struct kernel_calls *calls, int event)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + ARRIVAL_S * NS_PER_S;
    while (clock_monotonic_ns() < deadline_ns) {
        int status = 0;
        const int got = calls->wait(pid, &status, __WALL | WNOHANG);
        if (got == pid && WIFSTOPPED(status) && status >> 16 == event) {
            return ERR_OK;
        }
        if ((got == pid && !WIFSTOPPED(status)) || (got < 0 && errno != EINTR)) {
            return ERR_NOT_FOUND;
        }
        if (got == pid) {
            const uintptr_t signal = status >> 16 == 0 ? (uintptr_t)WSTOPSIG(status) : 0;
            if (calls->ptrace(PTRACE_CONT, pid, NULL, (void *)signal) != 0) {
                return ERR_NOT_FOUND;
            }
        } else {
            clock_sleep_ns(LOOK_EVERY_NS);
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

static bool is_consistent(const struct target_process *target, uint64_t debug)
{
    uint32_t state = 0;
    return debug == 0 || (target_process_read(target, debug + offsetof(struct r_debug, r_state),
                                              &state, sizeof(state)) == ERR_OK &&
                          state == RT_CONSISTENT);
}

// Stop the program, which has one thread, and look whether it is in the loop. If the loader is not
// done, do what the empty function does: return.
static enum err
look(const struct target_process *target, const struct loader_symbols *symbols, bool *out_is_there)
{
    const struct kernel_calls *calls = target->calls;
    struct user_regs_struct regs;
    if (calls->ptrace(PTRACE_INTERRUPT, target->pid, NULL, NULL) != 0) {
        return ERR_NOT_FOUND;
    }
    TRY(wait_for_event(target->pid, calls, PTRACE_EVENT_STOP));
    if (calls->ptrace(PTRACE_GETREGS, target->pid, NULL, &regs) != 0) {
        return ERR_NOT_FOUND;
    }
    const bool is_in_loop = regs.rip == symbols->state_function;
    *out_is_there = is_in_loop && is_consistent(target, symbols->debug);
    if (is_in_loop && !*out_is_there) {
        TRY(target_process_read(target, regs.rsp, &regs.rip, sizeof(regs.rip)));
        regs.rsp += sizeof(regs.rip);
        if (calls->ptrace(PTRACE_SETREGS, target->pid, NULL, &regs) != 0) {
            return ERR_NOT_FOUND;
        }
    }
    return ERR_OK;
}

static enum err put_loop(const struct target_process *target, uint64_t addr, struct fresh_stop *out)
{
    out->loop = addr;
    TRY(target_process_read(target, addr, out->old, sizeof(out->old)));
    return target_process_write(target, addr, endless_loop, sizeof(endless_loop));
}

// A static program is at its entry.
static enum err hold_here(const struct target_process *target, struct fresh_stop *out)
{
    struct user_regs_struct regs;
    return target->calls->ptrace(PTRACE_GETREGS, target->pid, NULL, &regs) == 0
               ? put_loop(target, regs.rip, out)
               : ERR_NOT_FOUND;
}

static enum err run_to_symbol(const struct target_process *target,
                              const struct loader_symbols *symbols,
                              struct fresh_stop *out)
{
    bool is_there = false;
    const uint64_t deadline_ns = clock_monotonic_ns() + ARRIVAL_S * NS_PER_S;
    TRY(put_loop(target, symbols->state_function, out));
    while (!is_there) {
        if (target->calls->ptrace(PTRACE_CONT, target->pid, NULL, NULL) != 0) {
            return ERR_NOT_FOUND;
        }
        if (clock_monotonic_ns() > deadline_ns) {
            return ERR_LIMIT;
        }
        clock_sleep_ns(LOOK_EVERY_NS);
        TRY(look(target, symbols, &is_there));
    }
    return ERR_OK;
}

// At the exec only the program, its loader and the vdso are mapped.
static enum err run_loader(const struct target_process *target, struct fresh_stop *out)
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
    struct loader_symbols symbols = {0};
    if (!is_dynamic) {
        return hold_here(target, out);
    }
    if (loader == NULL) {
        return ERR_UNSUPPORTED;
    }
    TRY(find_symbols(target, loader, &symbols));
    return run_to_symbol(target, &symbols, out);
}

// The stop signal is pending when the program is let go, so it stops before its next instruction.
static enum err leave_stopped(const struct target_process *target)
{
    if (kill(target->pid, SIGSTOP) != 0 ||
        target->calls->ptrace(PTRACE_DETACH, target->pid, NULL, NULL) != 0) {
        return ERR_NOT_FOUND;
    }
    for (;;) {
        const char state = proc_files_thread_state(target, target->pid);
        if (state == 'T' || state == 'Z' || state == 'X') {
            return state == 'T' ? ERR_OK : ERR_NOT_FOUND;
        }
        clock_sleep_ns(LOOK_EVERY_NS);
    }
}

static enum err
bring(const struct target_process *target, struct fresh_stop *out, struct err_info *info)
{
    enum err err = run_loader(target, out);
    if (err == ERR_OK) {
        err = leave_stopped(target);
    }
    if (err == ERR_UNSUPPORTED) {
        return err_set(info, err, "the dynamic loader of process %d is of an unknown kind",
                       target->pid);
    }
    return err == ERR_OK ? ERR_OK : target_refusal_explain(target, err, info);
}

enum err fresh_stop_run(int pid,
                        const struct kernel_calls *calls,
                        struct fresh_stop *out,
                        struct err_info *info)
{
    CLEANUP(target_process_close) struct target_process target = {0};
    enum err err = wait_for_event(pid, calls, PTRACE_EVENT_EXEC);
    if (err != ERR_OK) {
        err = err_set(info, err, "process %d has not become another program", pid);
    } else {
        err = target_process_open(&target, pid, calls, info);
    }
    if (err == ERR_OK) {
        err = bring(&target, out, info);
    }
    if (err != ERR_OK) {
        (void)kill(pid, SIGKILL); // it may have ended
    }
    return err;
}

enum err fresh_stop_release(const struct fresh_stop *held, const struct target_process *target)
{
    TRY(target_process_write(target, held->loop, held->old, sizeof(held->old)));
    return kill(target->pid, SIGCONT) == 0 ? ERR_OK : ERR_NOT_FOUND;
}
