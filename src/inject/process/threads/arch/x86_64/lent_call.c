// SPDX-License-Identifier: MIT
// lent_call (x86-64): see lent_call.h.
#include "inject/process/threads/lent_call.h"

#include <cpuid.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/remote_calls.h"
#include "inject/process/threads/remote_code.h"
#include "inject/process/threads/stop_scan.h"
#include "inject/process/threads/thread_stop.h"

enum {
    CODE_BYTES_MAX = 768,
    CODE_OFFSET = REMOTE_CODE_BYTES_MAX, // in the unused end; what is before it is remote_calls.h's
    RED_ZONE_BYTES = 128,
    STACK_BYTES = 64 << 10,   // that the function may need
    SCAN_BYTES_MAX = 1 << 20, // of the stack; a thread waits in a frame that is not as deep
    USER_CODE_SEGMENT = 0x33,
    HEADERS_MAX = 64,
    PAUSE_MS = 5, // between two looks for a thread that waits
    DONE_POLL_NS = 50000,
    RETURN_LOOKS = 100,
    SYSCALL_BYTES = 2, // of the instruction
};

// In the order of the constants behind the code.
enum {
    CONSTANT_FUNCTION,
    CONSTANT_ARGUMENTS, // five
    CONSTANT_ERRNO = CONSTANT_ARGUMENTS + LENT_ARGUMENTS,
    CONSTANT_RESULT,
    CONSTANT_VECTOR_BYTES,
    CONSTANT_MASK,
    CONSTANT_RIP,
    CONSTANT_COUNT,
};

// What the thread stores, and reads.
struct lent_result {
    uint64_t done; // 1: the thread goes on
    uint64_t result;
    char text[LENT_TEXT_BYTES];
    uint64_t value;
    uint64_t length;
};

// rbp: the saved registers, and below them the thread's mask of signals; r12: its vector registers;
// r13: the address of errno, or 0; r14: errno; r15: the result.
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "lent_code_begin:\n"
        "    leaq -128(%rsp), %rsp\n"
        "    pushfq\n"
        "    pushq %rax\n"
        "    pushq %rcx\n"
        "    pushq %rdx\n"
        "    pushq %rbx\n"
        "    pushq %rbp\n"
        "    pushq %rsi\n"
        "    pushq %rdi\n"
        "    pushq %r8\n"
        "    pushq %r9\n"
        "    pushq %r10\n"
        "    pushq %r11\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, %rbp\n"
        "    cld\n"
        "    subq $8, %rsp\n"
        "    movl $14, %eax\n" // rt_sigprocmask(SIG_SETMASK, all, old)
        "    movl $2, %edi\n"
        "    leaq lent_constants + 8*9(%rip), %rsi\n"
        "    leaq -8(%rbp), %rdx\n"
        "    movl $8, %r10d\n"
        "    syscall\n"
        "    subq lent_constants + 8*8(%rip), %rsp\n"
        "    andq $-64, %rsp\n"
        "    movq %rsp, %r12\n"
        "    leaq 512(%r12), %rdi\n" // the header of the vector registers' memory
        "    xorl %eax, %eax\n"
        "    movl $8, %ecx\n"
        "    rep stosq\n"
        "    movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xsave64 (%r12)\n"
        "    xorl %r13d, %r13d\n"
        "    movq lent_constants + 8*6(%rip), %rax\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    call *%rax\n"
        "    movq %rax, %r13\n"
        "    movl (%r13), %r14d\n"
        "1:  movq lent_constants + 8*1(%rip), %rdi\n"
        "    movq lent_constants + 8*2(%rip), %rsi\n"
        "    movq lent_constants + 8*3(%rip), %rdx\n"
        "    movq lent_constants + 8*4(%rip), %rcx\n"
        "    movq lent_constants + 8*5(%rip), %r8\n"
        "    xorl %eax, %eax\n"
        "    call *lent_constants + 8*0(%rip)\n"
        "    movq %rax, %r15\n"
        "    testq %r13, %r13\n"
        "    jz 2f\n"
        "    movl %r14d, (%r13)\n"
        "2:  movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xrstor64 (%r12)\n"
        "    movl $14, %eax\n" // rt_sigprocmask(SIG_SETMASK, old, NULL)
        "    movl $2, %edi\n"
        "    leaq -8(%rbp), %rsi\n"
        "    xorl %edx, %edx\n"
        "    movl $8, %r10d\n"
        "    syscall\n"
        "    movq lent_constants + 8*7(%rip), %rcx\n"
        "    movq %r15, 8(%rcx)\n"
        "    movl $1, %eax\n"
        "    movq %rax, (%rcx)\n"
        "    movq %rbp, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %r11\n"
        "    popq %r10\n"
        "    popq %r9\n"
        "    popq %r8\n"
        "    popq %rdi\n"
        "    popq %rsi\n"
        "    popq %rbp\n"
        "    popq %rbx\n"
        "    popq %rdx\n"
        "    popq %rcx\n"
        "    popq %rax\n"
        "    popfq\n"
        "    leaq 128(%rsp), %rsp\n"
        "    jmp *lent_constants + 8*10(%rip)\n"
        ".balign 8, 0xcc\n"
        "lent_constants:\n"
        ".popsection\n");

extern const uint8_t lent_code_begin[] __attribute__((visibility("hidden")));
extern const uint8_t lent_constants[] __attribute__((visibility("hidden")));

struct lending {
    struct target_process *target;
    struct lent_call *call;
    uint64_t code;   // address of the lent code
    uint64_t result; // address of a struct lent_result
    uint64_t vector_bytes;
    uint64_t wait_pc; // of the thread in its own call, behind the instruction
    uint64_t wait_sp;
    bool is_unfit; // the thread cannot be used now
    bool was_late; // a thread that waits was not stopped in time
};

// --- places --------------------------------------------------------------------------------------

// Find a place for the code behind the text of a module. Returns 0: there is none.
static uint64_t find_code_place(const struct target_process *target)
{
    uint64_t place = 0;
    const uint64_t room = remote_calls_find_cave(target, &place);
    return room >= CODE_OFFSET + CODE_BYTES_MAX ? place + CODE_OFFSET : 0;
}

// Return the end of a module's writable data, 0: unknown.
static uint64_t end_of_data(const struct target_process *target, const struct target_module *module)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < module->header_count && i < HEADERS_MAX; i++) {
        Elf64_Phdr header;
        if (target_process_read(target, module->headers + i * sizeof(header), &header,
                                sizeof(header)) == ERR_OK &&
            header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) {
            end = module->load_bias + header.p_vaddr + header.p_memsz;
        }
    }
    return end;
}

// Read the path of the executable. Returns false if it is unknown.
static bool read_executable(const struct target_process *target, char out[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", target->pid); // fits
    const ssize_t len = readlink(link, out, PATH_MAX - 1);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

// The memory behind an executable's data may be the heap's, and that behind the loader's is its own
// allocator's.
static bool may_have_room(const struct target_process *target,
                          const struct target_module *module,
                          const char *executable)
{
    const char *path = target_process_path(target, module->path);
    const char *name = path_file_name(path);
    return !module->is_vdso && module->dynamic != 0 && strcmp(path, executable) != 0 &&
           strncmp(name, "ld-", strlen("ld-")) != 0 && strstr(name, ".so") != NULL;
}

// Find a place for the result behind the data of a library. Returns 0: there is none.
static uint64_t find_result_place(const struct target_process *target)
{
    char executable[PATH_MAX];
    const bool is_known = read_executable(target, executable);
    for (size_t i = 0; is_known && i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        const uint64_t end = may_have_room(target, module, executable)
                                 ? (end_of_data(target, module) + 15) & ~UINT64_C(15)
                                 : 0;
        const struct target_mapping *mapping =
            end != 0 ? target_process_mapping_at(target, end) : NULL;
        const uint64_t last = page_end(end);
        if (mapping != NULL && (mapping->prot & PROT_WRITE) != 0 && last <= mapping->end &&
            last - end >= sizeof(struct lent_result)) {
            return end;
        }
    }
    return 0;
}

// --- the thread ----------------------------------------------------------------------------------

// Whether a thread in this call waits for work, and holds no lock of an allocator. Locks of libc
// wait otherwise than conditions.
static bool is_waiting_call(long number, uint64_t second_argument)
{
    static const long numbers[] = {
        SYS_read,      SYS_readv,         SYS_recvfrom,
        SYS_recvmsg,   SYS_accept,        SYS_accept4,
        SYS_poll,      SYS_ppoll,         SYS_select,
        SYS_pselect6,  SYS_epoll_wait,    SYS_epoll_pwait,
        SYS_nanosleep, SYS_epoll_pwait2,  SYS_clock_nanosleep,
        SYS_wait4,     SYS_waitid,        SYS_pause,
        SYS_msgrcv,    SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return number == SYS_futex && (second_argument & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

static bool is_code(const struct target_process *target, uint64_t address)
{
    const struct target_mapping *mapping = target_process_mapping_at(target, address);
    return mapping != NULL && (mapping->prot & PROT_EXEC) != 0;
}

// Whether the kernel's frame of a signal handler is at an address of the stack: what the handler
// returns to makes rt_sigreturn, and what it has interrupted is in the frame. Old frames leave the
// former in memory that nothing has written since.
static bool is_signal_frame(const struct target_process *target, uint64_t address)
{
    static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    struct {
        uint64_t restorer;
        uint64_t flags;
        uint64_t link;
        uint64_t stack[3];
        uint64_t registers[15]; // r8 to r15, and others
        uint64_t rsp;
        uint64_t rip;
        uint64_t eflags;
        uint16_t cs;
    } frame;
    uint8_t code[sizeof(restorer)];
    return target_process_read(target, address, &frame, sizeof(frame)) == ERR_OK &&
           is_code(target, frame.restorer) &&
           target_process_read(target, frame.restorer, code, sizeof(code)) == ERR_OK &&
           memcmp(code, restorer, sizeof(code)) == 0 && frame.link == 0 &&
           frame.cs == USER_CODE_SEGMENT && is_code(target, frame.rip) &&
           target_process_mapping_at(target, frame.rsp) != NULL;
}

// Whether a signal handler is on the stack, or may be. What it has interrupted may be an allocator.
static bool is_in_handler(const struct target_process *target, const struct user_regs_struct *regs)
{
    const struct target_mapping *stack = target_process_mapping_at(target, regs->rsp);
    if (stack == NULL || stack->end - regs->rsp > SCAN_BYTES_MAX) {
        return true; // unknown
    }
    for (uint64_t at = regs->rsp & ~UINT64_C(7); at < stack->end;) {
        uint64_t words[512];
        const uint64_t left = stack->end - at;
        const size_t bytes = left < sizeof(words) ? left : sizeof(words);
        if (target_process_read(target, at, words, bytes) != ERR_OK) {
            return true; // unknown
        }
        for (size_t i = 0; i < bytes / sizeof(*words); i++) {
            if (is_code(target, words[i]) && is_signal_frame(target, at + i * sizeof(*words))) {
                return true;
            }
        }
        at += bytes;
    }
    return false;
}

// Whether the stack has room. The kernel extends that of the first thread.
static bool has_stack(const struct lending *l, uint64_t sp)
{
    const struct target_mapping *stack = target_process_mapping_at(l->target, sp);
    const uint64_t wanted = RED_ZONE_BYTES + l->vector_bytes + STACK_BYTES;
    return stack != NULL && (sp - stack->start >= wanted ||
                             strcmp(target_process_path(l->target, stack->path), "[stack]") == 0);
}

static size_t write_code(const struct lending *l, uint64_t rip, uint8_t out[CODE_BYTES_MAX])
{
    const size_t code_len = (size_t)(lent_constants - lent_code_begin);
    uint64_t constants[CONSTANT_COUNT] = {
        [CONSTANT_FUNCTION] = l->call->function,
        [CONSTANT_ERRNO] = l->call->errno_location,
        [CONSTANT_RESULT] = l->result,
        [CONSTANT_VECTOR_BYTES] = l->vector_bytes,
        [CONSTANT_MASK] = UINT64_MAX,
        [CONSTANT_RIP] = rip,
    };
    memcpy(constants + CONSTANT_ARGUMENTS, l->call->arguments, sizeof(l->call->arguments));
    memcpy(out, lent_code_begin, code_len);
    memcpy(out + code_len, constants, sizeof(constants));
    return code_len + sizeof(constants);
}

static enum err begin_call(struct thread_stop *stop, void *context, struct err_info *info)
{
    struct lending *l = context;
    struct user_regs_struct regs = stop->threads.items[0].regs;
    (void)info; // failures here are those of the stop
    // A call that a stop would end is made again already: then the thread is in none.
    const bool is_again = (int64_t)regs.orig_rax >= 0 && regs.rax == regs.orig_rax;
    if (regs.cs != USER_CODE_SEGMENT || (int64_t)regs.orig_rax < 0 ||
        !is_waiting_call((long)regs.orig_rax, regs.rsi) ||
        stop->threads.items[0].was_in_group_stop || is_in_handler(stop->target, &regs) ||
        !has_stack(l, regs.rsp)) {
        l->is_unfit = true;
        return ERR_OK;
    }
    const uint64_t rip = regs.rip;
    interrupted_call_rewind(&regs);
    if (regs.rip == rip && !is_again) { // the call has ended: the thread works
        l->is_unfit = true;
        return ERR_OK;
    }
    const struct lent_result none = {0};
    uint8_t bytes[CODE_BYTES_MAX];
    const size_t len = write_code(l, regs.rip, bytes);
    TRY(target_process_write(stop->target, l->result, &none, offsetof(struct lent_result, text)));
    TRY(thread_stop_write(stop, l->code, bytes, len));
    l->wait_pc = regs.rip + SYSCALL_BYTES;
    l->wait_sp = regs.rsp;
    regs.rip = l->code;
    TRY(thread_stop_set_regs(stop, 0, &regs));
    l->call->has_begun = true;
    l->call->tid = stop->threads.items[0].tid;
    return ERR_OK;
}

// Stop a thread that waits and let it begin. ERR_LIMIT: none waits now.
static enum err begin_one(struct lending *l, struct err_info *info)
{
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    TRY(proc_files_list_threads(l->target, &tids, info));
    for (size_t i = 0; i < tids.len; i++) {
        const int tid = (int)tids.items[i];
        const struct current_call call = proc_files_current_call(l->target, tid);
        if (call.is_running || !is_waiting_call(call.number, FUTEX_WAIT_BITSET)) {
            continue;
        }
        const struct stop_options options = {.only_tid = tid, .attempts = 1};
        struct stop_report report = {0};
        l->is_unfit = false;
        const enum err err = thread_stop_run(l->target, &options, begin_call, l, &report, info);
        l->call->stopped_ns = report.held_ns;
        l->was_late = err == ERR_LIMIT;
        if (l->call->has_begun || (err != ERR_OK && err != ERR_LIMIT && err != ERR_NOT_FOUND)) {
            return err;
        }
    }
    return ERR_LIMIT;
}

// See whether the thread waits again where it did: then it is in no signal handler that came upon
// the end of the lent code.
static void await_return(struct lending *l)
{
    for (int i = 0; i < RETURN_LOOKS && !l->call->is_back; i++) {
        const struct current_call call = proc_files_current_call(l->target, l->call->tid);
        l->call->is_back = call.number >= 0 && call.pc == l->wait_pc && call.sp == l->wait_sp;
        clock_sleep_ns(l->call->is_back ? 0 : DONE_POLL_NS);
    }
}

static enum err wait_until_done(struct lending *l, uint64_t begin_ns, struct err_info *info)
{
    const uint64_t deadline_ns = begin_ns + l->call->limit_ms * NS_PER_MS;
    struct lent_result result = {0};
    while (target_process_read(l->target, l->result, &result, sizeof(result)) == ERR_OK) {
        if (result.done == 1) {
            l->call->result = result.result;
            l->call->value = result.value;
            l->call->held_ns = clock_monotonic_ns() - begin_ns;
            await_return(l);
            return ERR_OK;
        }
        if (clock_monotonic_ns() > deadline_ns) {
            return err_set(info, ERR_LIMIT,
                           "thread %d of process %d has not ended the call within %u s; it goes on "
                           "when it has",
                           l->call->tid, l->target->pid, (unsigned)(l->call->limit_ms / MS_PER_S));
        }
        clock_sleep_ns(DONE_POLL_NS);
    }
    return target_refusal_explain(l->target, ERR_NOT_FOUND, info);
}

// --- the call ------------------------------------------------------------------------------------

// Return the size of the vector registers' memory; 0: the machine cannot keep them.
static uint64_t vector_bytes(void)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    const bool has_xsave = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_OSXSAVE) != 0;
    return has_xsave && __get_cpuid_count(0xd, 0, &eax, &ebx, &ecx, &edx) != 0 ? ebx : 0;
}

static bool is_code_there(const struct lending *l)
{
    uint8_t bytes[CODE_BYTES_MAX];
    const size_t len = (size_t)(lent_constants - lent_code_begin);
    return target_process_read(l->target, l->code, bytes, len) == ERR_OK &&
           memcmp(bytes, lent_code_begin, len) == 0;
}

// Write what the arguments are addresses of.
static enum err write_arguments(const struct lending *l)
{
    struct lent_call *call = l->call;
    struct lent_result result = {.value = call->value, .length = sizeof(call->value)};
    memcpy(result.text, call->text, strnlen(call->text, sizeof(result.text) - 1));
    call->arguments[0] = l->result + offsetof(struct lent_result, text);
    if (call->value_argument != 0) {
        call->arguments[call->value_argument] = l->result + offsetof(struct lent_result, value);
    }
    if (call->length_argument != 0) {
        call->arguments[call->length_argument] = l->result + offsetof(struct lent_result, length);
    }
    return target_process_write(l->target, l->result, &result, sizeof(result));
}

static enum err prepare(struct lending *l, struct err_info *info)
{
    l->code = find_code_place(l->target);
    l->result = find_result_place(l->target);
    l->vector_bytes = vector_bytes();
    if (l->code == 0 || l->result == 0 || l->vector_bytes == 0) {
        return err_set(info, ERR_UNSUPPORTED,
                       "no library of process %d has room for the %d bytes of code that a thread "
                       "of it would need",
                       l->target->pid, (int)CODE_BYTES_MAX);
    }
    if (l->target->has_seccomp) {
        return err_set(info, ERR_UNSUPPORTED,
                       "process %d has a seccomp filter, which may forbid what its allocator "
                       "does",
                       l->target->pid);
    }
    const bool is_unused = l->call->is_back;
    l->call->is_back = false;
    if (!is_unused && is_code_there(l)) { // a thread of an earlier call may still be in it
        struct remote_calls calls = {.target = l->target};
        TRY(remote_calls_await_unused(
            &calls, (struct address_range){.start = l->code, .end = l->code + CODE_BYTES_MAX},
            info));
    }
    return l->call->text != NULL ? write_arguments(l) : ERR_OK;
}

enum err lent_call_run(struct target_process *target, struct lent_call *call, struct err_info *info)
{
    _Static_assert(sizeof(uint64_t) * CONSTANT_COUNT <= CODE_BYTES_MAX / 2, "room for the code");
    struct lending l = {.target = target, .call = call};
    TRY(prepare(&l, info));
    const uint64_t deadline_ns = clock_monotonic_ns() + call->patience_ms * NS_PER_MS;
    enum err err = ERR_LIMIT;
    uint64_t begin_ns = 0;
    while (err == ERR_LIMIT && !call->has_begun && clock_monotonic_ns() < deadline_ns) {
        clock_sleep_ns(begin_ns != 0 ? PAUSE_MS * NS_PER_MS : 0);
        begin_ns = clock_monotonic_ns();
        err = begin_one(&l, info);
    }
    if (call->has_begun) {
        return wait_until_done(&l, begin_ns, info);
    }
    if (err != ERR_LIMIT) {
        return target_refusal_explain(target, err, info);
    }
    return l.was_late ? err_set(info, ERR_LIMIT,
                                "no thread of process %d stopped in time; try again when the "
                                "machine is less busy",
                                target->pid)
                      : err_set(info, ERR_LIMIT,
                                "no thread of process %d waits for work, in epoll_wait, read, a "
                                "sleep or a condition; others may be in the allocator and are left "
                                "as they are",
                                target->pid);
}
