// SPDX-License-Identifier: MIT
#include "inject/process/seccomp_filter.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/page.h"
#include "machine_arch.h"

enum {
    FILTERS_MAX = 1024,
    COUNT_MAX = BPF_MAXINSNS,
};

// The calls of the agent's hooks (base/sys.h), with arguments that filters look at.
static const struct {
    uint32_t number;
    uint64_t arguments[3];
} calls[] = {
    {SYS_futex, {0, FUTEX_WAKE}},
    {SYS_futex, {0, FUTEX_WAIT}},
    {SYS_mprotect, {0, PAGE_GRAIN, PROT_READ | PROT_WRITE}},
    {SYS_mmap, {0, PAGE_GRAIN, PROT_READ | PROT_WRITE}},
    {SYS_munmap, {0, PAGE_GRAIN}},
    {SYS_madvise, {0, PAGE_GRAIN, MADV_DONTNEED}},
    {SYS_rt_sigprocmask, {SIG_SETMASK}},
    {SYS_prctl, {PR_GET_NAME}},
    {SYS_gettid, {0}},
    {SYS_getpid, {0}},
    {SYS_getppid, {0}},
    {SYS_getrusage, {RUSAGE_SELF}},
    {SYS_sched_yield, {0}},
    {SYS_kill, {1, 0}},
    {SYS_clock_gettime, {1}},
    {SYS_openat, {(uint64_t)-100, 0, 02000000}}, // AT_FDCWD, O_RDONLY | O_CLOEXEC
    {SYS_read, {3}},
    {SYS_close, {3}},
    {SYS_newfstatat, {(uint64_t)-100}},
    {SYS_process_vm_readv, {1}},
};

struct machine {
    const struct seccomp_data *data;
    uint32_t a;
    uint32_t x;
    uint32_t memory[BPF_MEMWORDS];
    bool is_broken;
};

static uint32_t load(struct machine *m, const struct sock_filter *op)
{
    uint32_t word = 0;
    switch (BPF_MODE(op->code)) {
    case BPF_IMM:
        return op->k;
    case BPF_ABS:
        if (op->k <= sizeof(*m->data) - sizeof(word) && op->k % sizeof(word) == 0) {
            memcpy(&word, (const char *)m->data + op->k, sizeof(word));
            return word;
        }
        break;
    case BPF_LEN:
        return sizeof(*m->data);
    case BPF_MEM:
        if (op->k < BPF_MEMWORDS) {
            return m->memory[op->k];
        }
        break;
    default: // the kernel permits no other
        break;
    }
    m->is_broken = true;
    return 0;
}

static uint32_t calculate(struct machine *m, uint16_t code, uint32_t operand)
{
    const bool is_shift = BPF_OP(code) == BPF_LSH || BPF_OP(code) == BPF_RSH;
    const bool is_division = BPF_OP(code) == BPF_DIV || BPF_OP(code) == BPF_MOD;
    if ((is_shift && operand > 31) || (is_division && operand == 0)) {
        m->is_broken = is_division; // the kernel ends the filter, which kills
        return 0;
    }
    switch (BPF_OP(code)) {
    case BPF_ADD:
        return m->a + operand;
    case BPF_SUB:
        return m->a - operand;
    case BPF_MUL:
        return m->a * operand;
    case BPF_DIV:
        return m->a / operand;
    case BPF_MOD:
        return m->a % operand;
    case BPF_AND:
        return m->a & operand;
    case BPF_OR:
        return m->a | operand;
    case BPF_XOR:
        return m->a ^ operand;
    case BPF_LSH:
        return m->a << operand;
    case BPF_RSH:
        return m->a >> operand;
    case BPF_NEG:
        return -m->a;
    default:
        m->is_broken = true;
        return 0;
    }
}

static bool jumps(const struct machine *m, uint16_t code, uint32_t operand)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return m->a == operand;
    case BPF_JGT:
        return m->a > operand;
    case BPF_JGE:
        return m->a >= operand;
    default: // BPF_JSET
        return (m->a & operand) != 0;
    }
}

// Do one instruction that is neither a jump nor a return.
static void step(struct machine *m, const struct sock_filter *op, uint32_t operand)
{
    switch (BPF_CLASS(op->code)) {
    case BPF_LD:
        m->a = load(m, op);
        break;
    case BPF_LDX:
        m->x = load(m, op);
        break;
    case BPF_ST:
    case BPF_STX:
        if (op->k < BPF_MEMWORDS) {
            m->memory[op->k] = BPF_CLASS(op->code) == BPF_ST ? m->a : m->x;
        } else {
            m->is_broken = true;
        }
        break;
    case BPF_ALU:
        m->a = calculate(m, op->code, operand);
        break;
    default: // BPF_MISC
        if (BPF_MISCOP(op->code) == BPF_TAX) {
            m->x = m->a;
        } else {
            m->a = m->x;
        }
        break;
    }
}

uint32_t
seccomp_filter_run(const struct sock_filter *code, size_t count, const struct seccomp_data *data)
{
    struct machine m = {.data = data};
    for (size_t at = 0; at < count && !m.is_broken; at++) {
        const struct sock_filter *op = code + at;
        const uint32_t operand = BPF_SRC(op->code) == BPF_X ? m.x : op->k;
        if (BPF_CLASS(op->code) == BPF_RET) {
            return BPF_RVAL(op->code) == BPF_A ? m.a : op->k;
        }
        if (BPF_CLASS(op->code) != BPF_JMP) {
            step(&m, op, operand);
        } else if (BPF_OP(op->code) == BPF_JA) {
            at += op->k;
        } else {
            at += jumps(&m, op->code, operand) ? op->jt : op->jf;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static bool permits_calls(const struct sock_filter *code, size_t count)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct seccomp_data data = {.nr = (int)calls[i].number, .arch = MACHINE_AUDIT};
        for (size_t k = 0; k < ARRAY_LEN(calls[i].arguments); k++) {
            data.args[k] = calls[i].arguments[k];
        }
        const uint32_t action = seccomp_filter_run(code, count, &data) & SECCOMP_RET_ACTION_FULL;
        if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG) {
            return false;
        }
    }
    return true;
}

enum err seccomp_filter_check(const struct target_process *target, int tid, bool *out_permits)
{
    struct sock_filter *code = malloc(COUNT_MAX * sizeof(*code));
    if (code == NULL) {
        return ERR_NO_MEMORY;
    }
    long count = 0;
    *out_permits = true;
    for (uintptr_t i = 0; i < FILTERS_MAX && *out_permits && count >= 0; i++) {
        errno = 0;
        count = target->calls->ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, code);
        *out_permits = count <= 0 || permits_calls(code, (size_t)count);
    }
    const int failure = count < 0 ? errno : 0;
    free(code);
    return failure == 0 || failure == ENOENT ? ERR_OK
           : failure == EINVAL               ? ERR_NOT_FOUND
                                             : ERR_PERMISSION;
}
