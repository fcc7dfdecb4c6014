// SPDX-License-Identifier: MIT
// cycles: does something to a running process many times, for the tests of src/inject.
//
// usage: cycles PID COUNT stop
//        cycles PID COUNT attach|hold|faults|write AGENT malloc@ADDRESS free@ADDRESS ...
//
// stop: stop all threads and let them go. attach: put the agent of agent.c in, hook the functions,
// wait until `malloc` was called, and detach; each time the code must be what it was. hold: the
// same, but print "attached" and wait for a line of input before the detach. faults: COUNT
// attaches, in the nth of which the nth call to the kernel fails, each followed by a good one.
// write: with PROTECTED, write over the code of `malloc` and restore it, while all threads are
// stopped.
// Variables: STEP (the (STEP * n)th call fails), ATTEMPTS and LIMIT_MS (of each stop), PROTECTED
// (the kernel does not write to protected pages through /proc/PID/mem).
//
// Prints one line of JSON: what the stops took, and the agent's counts. `given_up` counts cycles
// that were refused because the target was busy; any other failure is printed, and ends with
// status 1.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/os/file.h"
#include "inject/code/patch_plan.h"
#include "inject/inject.h"
#include "inject/process/target_reading.h"

static struct stop_options g_stop;
static long g_fault_step = 1;
static bool g_is_past_last_fault;
static bool g_is_protected;

struct totals {
    uint64_t *held_ns;
    unsigned cycles;
    unsigned given_up;
    unsigned restarted_calls;
    unsigned threads;
    bool is_realtime;
};

static void take_report(struct totals *totals, const struct stop_report *report)
{
    totals->held_ns[totals->cycles++] = report->held_ns;
    totals->restarted_calls += report->restarted_calls;
    totals->threads = report->threads > totals->threads ? report->threads : totals->threads;
    totals->is_realtime = report->is_realtime;
}

static enum err do_nothing(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)context;
    (void)info;
    return stop->threads.len > 0 ? ERR_OK : ERR_NOT_FOUND;
}

static enum err
cycle_stop(struct target_process *target, struct totals *totals, struct err_info *info)
{
    struct stop_report report = {0};
    TRY(thread_stop_run(target, &g_stop, do_nothing, NULL, &report, info));
    take_report(totals, &report);
    return ERR_OK;
}

struct wish {
    enum agent_hook hook;
    uint64_t addr;
};

enum {
    WISHES_MAX = 8,
    BLOCK_BYTES = 4096,
    WATCHED_BYTES = 64
};

static struct wish g_wishes[WISHES_MAX];
static unsigned g_wish_count;
static struct strbuf g_agent;
static uint64_t g_counts[AGENT_HOOK_COUNT];

static size_t read_code(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    return target_process_read(context, addr, out, len) == ERR_OK ? len : 0;
}

// All functions are in one module.
static enum err make_plan(struct inject *inject, uint64_t block, struct patch_plan *plan)
{
    const struct bytes image = strbuf_bytes(&g_agent);
    const struct code_reader reader = {.read = read_code, .context = &inject->target};
    const uint64_t hooks = inject_symbol(inject, image, "agent_hooks");
    TRY(target_process_read(&inject->target, hooks, plan->hook_addrs, sizeof(plan->hook_addrs)));
    struct patch_target targets[WISHES_MAX];
    for (unsigned i = 0; i < g_wish_count; i++) {
        targets[i] = (struct patch_target){.addr = g_wishes[i].addr,
                                           .hook = g_wishes[i].hook,
                                           .nothrow = -1,
                                           .name = "a function"};
    }
    TRY(patch_plan_add(plan, targets, g_wish_count, block, &reader));
    for (size_t i = 0; i < plan->refusals.len; i++) {
        fprintf(stderr, "refused: %s\n", plan->refusals.items[i].reason);
    }
    const uint64_t originals = inject_symbol(inject, image, "agent_originals");
    for (size_t i = 0; i < plan->patches.len; i++) {
        const struct patch *patch = plan->patches.items + i;
        TRY(target_process_write(&inject->target, originals + 8 * patch->index,
                                 &patch->trampoline_addr, 8));
    }
    return plan->patches.len == g_wish_count ? ERR_OK : ERR_UNSUPPORTED;
}

static enum err read_counts(const struct inject *inject)
{
    const uint64_t at = inject_symbol(inject, strbuf_bytes(&g_agent), "agent_counts");
    return target_process_read(&inject->target, at, g_counts, sizeof(g_counts));
}

// The first bytes of all functions.
static enum err read_text(const struct inject *inject, uint8_t text[WISHES_MAX][WATCHED_BYTES])
{
    for (unsigned i = 0; i < g_wish_count; i++) {
        TRY(target_process_read(&inject->target, g_wishes[i].addr, text[i], WATCHED_BYTES));
    }
    return ERR_OK;
}

// A failure of this program's own look at the target.
static enum err own(enum err err, struct err_info *info)
{
    return err == ERR_OK ? ERR_OK : err_set(info, err, "cycles itself cannot read or write");
}

// How to spend the time between attach and detach.
enum between {
    SHORTLY,
    UNTIL_INPUT
};

// Wait until a hook was called, or not much longer: some programs allocate rarely.
static enum err wait_between(const struct inject *inject, enum between between)
{
    if (between == UNTIL_INPUT) {
        printf("attached\n");
        (void)fflush(stdout);
        (void)getchar();
        return read_counts(inject);
    }
    TRY(read_counts(inject));
    const uint64_t before = g_counts[AGENT_MALLOC];
    for (unsigned i = 0; i < 20 && g_counts[AGENT_MALLOC] == before; i++) {
        clock_sleep_ns(500000);
        TRY(read_counts(inject));
    }
    return ERR_OK;
}

static const struct target_module *module_of(const struct target_process *target, uint64_t addr)
{
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        if (addr >= module->start && addr < module->end) {
            return module;
        }
    }
    return NULL;
}

static enum err
use_agent(struct inject *inject, enum between between, struct totals *totals, struct err_info *info)
{
    const struct target_module *module = module_of(&inject->target, g_wishes[0].addr);
    if (module == NULL) {
        return err_set(info, ERR_INVALID, "no module is at 0x%" PRIx64, g_wishes[0].addr);
    }
    struct inject_near near = {
        .module_start = module->start, .module_end = module->end, .bytes = BLOCK_BYTES};
    static uint8_t before[WISHES_MAX][WATCHED_BYTES];
    static uint8_t after[WISHES_MAX][WATCHED_BYTES];
    CLEANUP(patch_plan_release) struct patch_plan plan = {0};
    TRY(own(read_text(inject, before), info));
    TRY(inject_map(inject, strbuf_bytes(&g_agent), &near, 1, info));
    TRY(own(make_plan(inject, near.addr, &plan), info));
    TRY(inject_patch(inject, &plan, info));
    take_report(totals, &inject->stop);
    const enum err err = own(wait_between(inject, between), info);
    TRY(inject_unpatch(inject, info));
    if (err != ERR_OK) {
        return err;
    }
    TRY(own(read_text(inject, after), info));
    if (memcmp(before, after, sizeof(before)) != 0) {
        return err_set(info, ERR_CORRUPT, "the code has changed");
    }
    return ERR_OK;
}

static enum err cycle_attach(int pid,
                             const struct kernel_calls *kernel,
                             enum between between,
                             struct totals *totals,
                             struct err_info *info)
{
    struct inject inject;
    const struct inject_options options = {.kernel = kernel, .stop = g_stop};
    TRY(inject_open(&inject, pid, &options, info));
    const enum err err = use_agent(&inject, between, totals, info);
    inject_close(&inject);
    return err;
}

// Faults: the call with this number, counted over all kinds, fails.

static long g_fault_at;
static long g_calls_made;
static int g_fault_errno;

static bool is_fault(void)
{
    if (++g_calls_made != g_fault_at) {
        return false;
    }
    errno = g_fault_errno;
    return true;
}

static long faulty_ptrace(int request, int tid, void *addr, void *data)
{
    return is_fault() ? -1 : kernel_calls_real.ptrace(request, tid, addr, data);
}

static int faulty_wait(int tid, int *status, int options)
{
    return is_fault() ? -1 : kernel_calls_real.wait(tid, status, options);
}

static int faulty_open(const char *path, int flags)
{
    return is_fault() ? -1 : kernel_calls_real.open(path, flags);
}

static ssize_t faulty_read_at(int fd, void *into, size_t len, off_t at)
{
    return is_fault() ? -1 : kernel_calls_real.read_at(fd, into, len, at);
}

static ssize_t faulty_write_at(int fd, const void *from, size_t len, off_t at)
{
    return is_fault() ? -1 : kernel_calls_real.write_at(fd, from, len, at);
}

static const struct kernel_calls faulty_calls = {.ptrace = faulty_ptrace,
                                                 .wait = faulty_wait,
                                                 .open = faulty_open,
                                                 .read_at = faulty_read_at,
                                                 .write_at = faulty_write_at};

// A kernel with proc_mem.force_override=never (Linux 6.12): /proc/PID/mem obeys page protection.

static int g_pid;
static unsigned g_refused_writes;

static bool is_protected(uint64_t addr)
{
    char path[40];
    char line[512];
    uint64_t start;
    uint64_t end;
    char writable = '-';
    bool is_found = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", g_pid); // fits
    FILE *maps = fopen(path, "re");
    while (maps != NULL && !is_found && fgets(line, sizeof(line), maps) != NULL) {
        is_found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%c", &start, &end, &writable) == 3 &&
                   addr >= start && addr < end;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return is_found && writable != 'w';
}

static ssize_t protected_write_at(int fd, const void *from, size_t len, off_t at)
{
    if (is_protected((uint64_t)at)) {
        g_refused_writes++;
        errno = EIO;
        return -1;
    }
    return kernel_calls_real.write_at(fd, from, len, at);
}

static const struct kernel_calls *protecting_calls(int pid)
{
    static struct kernel_calls calls;
    calls = kernel_calls_real;
    calls.write_at = protected_write_at;
    g_pid = pid;
    return &calls;
}

// Write code at addresses that no word begins or ends at, read it, and restore it: each stop that
// writes ends with what was there.
static enum err write_across_words(struct thread_stop *stop, void *context, struct err_info *info)
{
    enum {
        BYTES = 21
    };
    (void)context;
    for (uint64_t addr = g_wishes[0].addr; addr < g_wishes[0].addr + sizeof(uint64_t); addr++) {
        uint8_t before[BYTES + 2 * sizeof(uint64_t)];
        uint8_t wanted[sizeof(before)];
        uint8_t found[sizeof(before)];
        const uint64_t around = addr - sizeof(uint64_t);
        TRY(target_process_read(stop->target, around, before, sizeof(before)));
        memcpy(wanted, before, sizeof(before));
        for (unsigned i = 0; i < BYTES; i++) {
            wanted[sizeof(uint64_t) + i] = (uint8_t)(0xa0 + i);
        }
        TRY(thread_stop_write(stop, addr, wanted + sizeof(uint64_t), BYTES));
        TRY(target_process_read(stop->target, around, found, sizeof(found)));
        TRY(thread_stop_write(stop, addr, before + sizeof(uint64_t), BYTES));
        if (memcmp(found, wanted, sizeof(found)) != 0) {
            return err_set(info, ERR_CORRUPT, "%#" PRIx64 ": other bytes were written", addr);
        }
    }
    return ERR_OK;
}

static enum err cycle_write(int pid, struct err_info *info)
{
    CLEANUP(target_process_close) struct target_process target = {0};
    TRY(target_process_open(&target, pid, protecting_calls(pid), info));
    return thread_stop_run(&target, &g_stop, write_across_words, NULL, NULL, info);
}

// One attach with a fault, then one without, which restores what the first may have left. Some
// faults do no harm, and the first attach succeeds.
static enum err cycle_fault(int pid, struct totals *totals, struct err_info *info)
{
    struct totals ignored = *totals;
    g_fault_at += g_fault_step;
    g_calls_made = 0;
    g_fault_errno = g_fault_at % 2 == 0 ? EIO : EPERM;
    info->text[0] = '\0';
    const enum err err = cycle_attach(pid, &faulty_calls, SHORTLY, &ignored, info);
    if (err != ERR_OK && info->text[0] == '\0') {
        return err_set(info, ERR_CORRUPT, "call %ld failed without a sentence (%s)", g_fault_at,
                       err_name(err));
    }
    g_is_past_last_fault = g_calls_made < g_fault_at;
    return cycle_attach(pid, NULL, SHORTLY, totals, info);
}

static bool read_wishes(int count, char **arguments)
{
    static const char *const names[] = {"malloc", "free", "calloc", "realloc"};
    for (int i = 0; i < count; i++) {
        const char *at = strchr(arguments[i], '@');
        for (unsigned hook = 0; at != NULL && hook < ARRAY_LEN(names); hook++) {
            if (strncmp(arguments[i], names[hook], (size_t)(at - arguments[i])) == 0) {
                g_wishes[g_wish_count++] = (struct wish){.hook = (enum agent_hook)hook,
                                                         .addr = strtoull(at + 1, NULL, 16)};
                break;
            }
        }
    }
    return (int)g_wish_count == count;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static double ms_at(const struct totals *totals, unsigned percent)
{
    return totals->cycles == 0
               ? 0
               : (double)totals->held_ns[(size_t)(totals->cycles - 1) * percent / 100] / 1e6;
}

static void print_totals(struct totals *totals)
{
    qsort(totals->held_ns, totals->cycles, sizeof(*totals->held_ns), compare);
    printf("{\"counts\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],", g_counts[AGENT_MALLOC],
           g_counts[AGENT_FREE], g_counts[AGENT_CALLOC], g_counts[AGENT_REALLOC]);
    printf("\"cycles\":%u,\"given_up\":%u,\"threads\":%u,\"restarted_calls\":%u,\"realtime\":%s,"
           "\"held_ms\":{\"median\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
           totals->cycles, totals->given_up, totals->threads, totals->restarted_calls,
           totals->is_realtime ? "true" : "false", ms_at(totals, 50), ms_at(totals, 99),
           ms_at(totals, 100));
}

static enum err run_cycle(const char *kind,
                          int pid,
                          struct target_process *target,
                          struct totals *totals,
                          struct err_info *info)
{
    if (strcmp(kind, "attach") == 0 || strcmp(kind, "hold") == 0) {
        return cycle_attach(pid, g_is_protected ? protecting_calls(pid) : NULL,
                            kind[0] == 'h' ? UNTIL_INPUT : SHORTLY, totals, info);
    }
    if (strcmp(kind, "faults") == 0) {
        return cycle_fault(pid, totals, info);
    }
    if (strcmp(kind, "write") == 0) {
        return cycle_write(pid, info);
    }
    if (target->mem_fd == 0) {
        TRY(target_process_open(target, pid, &kernel_calls_real, info));
    }
    return cycle_stop(target, totals, info);
}

static long number_of(const char *variable, long otherwise)
{
    const char *value = getenv(variable);
    return value != NULL ? strtol(value, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct err_info info = {0};
    if (argc < 4 || (argc > 5 && (!read_wishes(argc - 5, argv + 5) ||
                                  file_read(argv[4], SIZE_MAX, &g_agent, &info) != ERR_OK))) {
        return 2;
    }
    g_fault_step = number_of("STEP", 1);
    g_is_protected = number_of("PROTECTED", 0) != 0;
    g_stop.attempts = (uint32_t)number_of("ATTEMPTS", 0);
    g_stop.limit_ms = (uint32_t)number_of("LIMIT_MS", 0);
    const int pid = (int)strtol(argv[1], NULL, 10);
    const unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    struct totals totals = {.held_ns = calloc(count + 1, sizeof(uint64_t))};
    struct target_process target = {0};
    enum err err = ERR_OK;
    for (unsigned i = 0; i < count && !g_is_past_last_fault && (err == ERR_OK || err == ERR_LIMIT);
         i++) {
        clock_sleep_ns(2 * NS_PER_MS);
        err = run_cycle(argv[3], pid, &target, &totals, &info);
        totals.given_up += err == ERR_LIMIT;
        if (err != ERR_OK) {
            fprintf(stderr, "%s: %s\n", err_name(err), info.text);
        }
    }
    if (g_is_protected && g_refused_writes == 0) {
        fprintf(stderr, "no write was refused\n");
        return 1;
    }
    print_totals(&totals);
    target_process_close(&target);
    strbuf_release(&g_agent);
    free(totals.held_ns);
    return err == ERR_OK || err == ERR_LIMIT ? 0 : 1;
}
