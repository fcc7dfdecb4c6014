// SPDX-License-Identifier: MIT
#include "inject/process/target_refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "inject/process/proc_files.h"
#include "machine_arch.h"

// The name of a process, for a sentence.
static void read_name(int pid, char *name, size_t len)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid); // fits
    const bool is_read = file_read(path, 4096, &text, NULL) == ERR_OK;
    (void)snprintf(name, len, "%.*s", (int)strcspn(strbuf_text(&text), "\n"),
                   is_read ? strbuf_text(&text) : ""); // truncated
}

static enum err
refuse_traced(const struct target_process *target, int tracer, struct err_info *info)
{
    char name[32];
    read_name(tracer, name, sizeof(name));
    return err_set(info, ERR_PERMISSION,
                   "process %d is already traced by %s (process %d); end that first", target->pid,
                   name, tracer);
}

static enum err
refuse_by_status(struct target_process *target, const struct strbuf *status, struct err_info *info)
{
    const int leader = (int)proc_text_number(strbuf_text(status), "Tgid");
    const int tracer = (int)proc_text_number(strbuf_text(status), "TracerPid");
    target->has_seccomp = proc_text_number(strbuf_text(status), "Seccomp") != 0;
    if (leader != target->pid) {
        return err_set(info, ERR_INVALID,
                       "%d is a thread of process %d; give the number of the process", target->pid,
                       leader);
    }
    if (target->pid == getpid()) {
        return err_set(info, ERR_UNSUPPORTED, "process %d is cairn itself", target->pid);
    }
    if (tracer != 0 && tracer != gettid()) {
        return refuse_traced(target, tracer, info);
    }
    if (proc_text_number(strbuf_text(status), "Kthread") != 0) { // a line since Linux 6.8
        return err_set(info, ERR_UNSUPPORTED, "process %d is a thread of the kernel", target->pid);
    }
    return ERR_OK;
}

// A program for another machine, or one of the 32-bit kinds. Without permission to read it the
// mappings will be refused too.
static enum err refuse_by_program(const struct target_process *target, struct err_info *info)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", target->pid); // fits
    CLEANUP(fd_closep) int fd = target->calls->open(path, O_RDONLY);
    if (fd < 0 && errno == ENOENT) {
        // A thread of the kernel, or a process whose first thread has ended.
        return ERR_OK;
    }
    Elf64_Ehdr header;
    if (fd < 0 ||
        target->calls->read_at(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        return ERR_OK;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE_ELF) {
        return err_set(info, ERR_UNSUPPORTED,
                       "process %d is not a " MACHINE_NAME
                       " program, and cairn attaches to these only",
                       target->pid);
    }
    return ERR_OK;
}

enum err target_refusal_find(struct target_process *target, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    const enum err err = target->pid > 0
                             ? proc_files_read(target, target->pid, "status", &status, info)
                             : ERR_NOT_FOUND;
    if (err == ERR_NOT_FOUND) {
        return err_set(info, err, "there is no process %d", target->pid);
    }
    if (err != ERR_OK) {
        return target_refusal_explain(target, err, info);
    }
    TRY(refuse_by_status(target, &status, info));
    return refuse_by_program(target, info);
}

static long read_yama(void)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const bool is_there =
        file_read("/proc/sys/kernel/yama/ptrace_scope", 64, &text, NULL) == ERR_OK;
    return is_there ? (long)number_field(strbuf_text(&text)) : 0;
}

// The order is that of the kernel's checks: ptrace(2), "Ptrace access mode checking".
static enum err explain_permission(const struct target_process *target, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf status = {0};
    if (proc_files_read(target, target->pid, "status", &status, NULL) != ERR_OK) {
        strbuf_clear(&status); // no owner and no tracer is known
    }
    const char *uids = proc_text_value(strbuf_text(&status), "Uid");
    const unsigned long owner = uids != NULL ? number_field(uids) : geteuid();
    const int tracer = (int)proc_text_number(strbuf_text(&status), "TracerPid");
    const long yama = read_yama();
    if (tracer != 0) {
        return refuse_traced(target, tracer, info);
    }
    if (owner != geteuid()) {
        return err_set(info, ERR_PERMISSION,
                       "process %d belongs to user %lu; run cairn as that user or as root",
                       target->pid, owner);
    }
    if (yama == 3) {
        return err_set(info, ERR_PERMISSION,
                       "this machine forbids attaching to any process until the machine is started "
                       "again (kernel.yama.ptrace_scope is 3); start the program under cairn");
    }
    if (yama != 0) {
        return err_set(info, ERR_PERMISSION,
                       "this machine lets only root attach to process %d "
                       "(kernel.yama.ptrace_scope is %ld); run cairn as root, or start the "
                       "program under cairn",
                       target->pid, yama);
    }
    return err_set(info, ERR_PERMISSION,
                   geteuid() != 0
                       ? "the kernel does not let this user attach to process %d, because it has "
                         "privileges or protects itself (PR_SET_DUMPABLE); run cairn as root"
                       : "the kernel does not let cairn attach to process %d, because it protects "
                         "itself (PR_SET_DUMPABLE) or has capabilities that cairn lacks; give "
                         "cairn CAP_SYS_PTRACE and the capabilities of the process",
                   target->pid);
}

// An exec between opening and reading the list empties it, too, but not each time.
bool target_refusal_has_memory(const struct target_process *target)
{
    enum {
        TRIES = 5
    };
    bool has_memory = false;
    for (int i = 0; i < TRIES && !has_memory; i++) {
        CLEANUP(strbuf_release) struct strbuf maps = {0};
        const enum err err = proc_files_read(target, target->live_tid, "maps", &maps, NULL);
        if (err == ERR_NOT_FOUND) {
            return false;
        }
        has_memory = err != ERR_OK || maps.len != 0;
    }
    return has_memory;
}

bool target_refusal_is_replaced(const struct target_process *target)
{
    uint8_t byte;
    for (size_t i = 0; i < target->mappings.len; i++) {
        const struct target_mapping *mapping = target->mappings.items + i;
        if ((mapping->prot & PROT_READ) != 0 &&
            target_process_read(target, mapping->start, &byte, sizeof(byte)) == ERR_OK) {
            return false;
        }
    }
    return target->mappings.len != 0 && target_refusal_has_memory(target);
}

static enum err explain_end(const struct target_process *target, struct err_info *info)
{
    return target_refusal_is_replaced(target)
               ? err_set(info, ERR_NOT_FOUND,
                         "process %d has executed another program; attach to it again", target->pid)
               : err_set(info, ERR_NOT_FOUND, "process %d has ended, or is a thread of the kernel",
                         target->pid);
}

enum err
target_refusal_of_room(const struct target_process *target, int problem, struct err_info *info)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    const bool is_limited = problem == ENOMEM &&
                            prlimit(target->pid, RLIMIT_AS, NULL, &limit) == 0 &&
                            limit.rlim_cur != RLIM_INFINITY;
    return is_limited
               ? err_set_errno(info, problem,
                               "process %d cannot map memory for cairn's agent within its limit of "
                               "%llu KiB of addresses (ulimit -v)",
                               target->pid, (unsigned long long)limit.rlim_cur / 1024)
               : err_set_errno(info, problem, "process %d cannot map memory for cairn's agent",
                               target->pid);
}

enum err target_refusal_of_write(const struct target_process *target, struct err_info *info)
{
    return target_refusal_has_memory(target) && !target_refusal_is_replaced(target)
               ? err_set(info, ERR_IO, "cannot write to the memory of process %d", target->pid)
               : explain_end(target, info);
}

enum err
target_refusal_explain(const struct target_process *target, enum err err, struct err_info *info)
{
    const bool is_known = info != NULL && info->code == err && info->text[0] != '\0';
    // What cairn lacks, and its limits.
    if ((err == ERR_IO || err == ERR_NO_MEMORY || err == ERR_LIMIT) && is_known) {
        return err;
    }
    if (target_refusal_is_replaced(target)) { // also if the new program may not be traced
        return explain_end(target, info);
    }
    switch (err) {
    case ERR_NOT_FOUND:
        return explain_end(target, info);
    case ERR_PERMISSION:
        return explain_permission(target, info);
    case ERR_NO_MEMORY:
    case ERR_OK:
    case ERR_IO:
    case ERR_INVALID:
    case ERR_CORRUPT:
    case ERR_TRUNCATED:
    case ERR_UNSUPPORTED:
    case ERR_LIMIT:
    case ERR_DEAD:
    case ERR_CANCELLED:
        break;
    }
    // The process may have ended meanwhile.
    return target_refusal_has_memory(target)
               ? err_set(info, err, "cannot read process %d", target->pid)
               : explain_end(target, info);
}

enum err
target_refusal_if_gone(const struct target_process *target, enum err err, struct err_info *info)
{
    const bool is_gone = target->mappings.len != 0 &&
                         (!target_refusal_has_memory(target) || target_refusal_is_replaced(target));
    return err != ERR_OK && is_gone ? target_refusal_explain(target, ERR_NOT_FOUND, info) : err;
}
