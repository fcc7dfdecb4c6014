// SPDX-License-Identifier: MIT
#include "inject/process/threads/remote_calls.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "inject/process/address_gaps.h"
#include "inject/process/code_cave.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/remote_code.h"
#include "inject/process/threads/stop_scan.h"
#include "inject/process/threads/thread_regs.h"

enum {
    SLOTS = REMOTE_CODE_BYTES_MIN / REMOTE_CODE_BYTES_MAX,
    RESULTS_OFFSET = 64, // in the page of the list; `done` is at 0
    LIST_OFFSET = 512,
    THREADS_LOOKED_AT = 64,
    THREADS_TRIED = 5, // in each attempt
    ATTEMPTS = 10,
    DONE_MS = 10000,    // a thread that is not scheduled for longer is given up
    RSEQ_CS_OFFSET = 8, // struct rseq, rseq(2)
};
#define DONE_POLL_NS 30000
#define PAUSE_NS     (20 * NS_PER_MS) // before the second attempt; longer before each further one

_Static_assert(LIST_OFFSET + (REMOTE_CALLS_MAX + 1) * sizeof(struct remote_code_call) <=
                   REMOTE_LIST_BYTES,
               "the list fits");
_Static_assert(RESULTS_OFFSET + (REMOTE_CALLS_MAX + 1) * sizeof(uint64_t) <= LIST_OFFSET,
               "the results fit");

// One run by one thread.
struct run {
    struct remote_calls *calls;
    struct remote_code_call list[REMOTE_CALLS_MAX + 1]; // the last one does nothing: run_held
    size_t count;                                       // without that
    uint64_t code;      // address at which the thread's code is to be
    uint64_t list_addr; // of the list; 0: behind the code
    uint64_t done;      // address of the word that becomes 1
    bool is_first;      // the code's place is chosen when the thread is stopped
    bool is_unfit;      // the thread cannot be used now; try another one
    bool lacks_room;    // no module has unused bytes behind its code in reach of the latest thread
    bool has_begun;     // the thread has been sent to the code
    bool is_over;       // a held thread has made the calls
};

static uint64_t list_page(const struct remote_calls *calls)
{
    return calls->page + remote_code_bytes();
}

static bool is_done(void *context)
{
    const struct run *run = context;
    uint64_t done = 0;
    return target_process_read(run->calls->target, run->done, &done, sizeof(done)) == ERR_OK &&
           done == 1;
}

// A thread that runs inside a restartable sequence must not leave it unnoticed: rseq(2). There are
// no system calls in one.
static bool is_in_rseq(const struct thread_stop *stop)
{
    const struct stopped_thread *thread = stop->threads.items;
    uint64_t sequence = 0;
    struct __ptrace_rseq_configuration configuration;
    return !thread_regs_is_in_call(&thread->regs) &&
           stop->target->calls->ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread->tid,
                                       (void *)sizeof(configuration),
                                       &configuration) == (long)sizeof(configuration) &&
           configuration.rseq_abi_pointer != 0 &&
           target_process_read(stop->target, configuration.rseq_abi_pointer + RSEQ_CS_OFFSET,
                               &sequence, sizeof(sequence)) == ERR_OK &&
           sequence != 0;
}

// A held thread makes the calls while it is traced, and then is where it was, without any
// instruction of its own. So one more call follows, which does nothing: it is stopped there, when
// the results of the others are stored. If this process is killed, the thread goes on by itself.
static enum err run_held(struct thread_stop *stop, struct run *run)
{
    const struct user_regs_struct before = stop->threads.items[0].regs;
    struct user_regs_struct regs = before;
    thread_regs_go_to(&regs, run->code);
    thread_regs_forget_call(&regs);
    TRY(thread_stop_set_regs(stop, 0, &regs));
    run->has_begun = true;
    TRY(thread_stop_let_call(stop, run->count + 1, DONE_MS));
    if (thread_regs_pc(&stop->threads.items[0].regs) - run->code >= REMOTE_CODE_BYTES_MAX) {
        return ERR_LIMIT; // a call that it cannot go on without has failed
    }
    TRY(thread_stop_set_regs(stop, 0, &before));
    run->is_over = true;
    return ERR_OK;
}

static struct remote_code_call map_call(uint64_t addr, uint64_t bytes, int prot)
{
    return (struct remote_code_call){
        .number = SYS_mmap,
        .arguments = {addr, bytes, (uint64_t)prot,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0},
    };
}

// Find the module with the largest cave from which a thread can continue at `pc`. NULL: there is
// none.
static const struct target_module *find_cave(const struct target_process *target, uint64_t pc)
{
    const struct target_module *found = NULL;
    uint64_t most = REMOTE_CODE_BYTES_MAX - 1;
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct address_range cave = code_cave_of(target, target->modules.items + i);
        if (cave.end - cave.start > most && remote_code_reaches(cave.start, pc)) {
            most = cave.end - cave.start;
            found = target->modules.items + i;
        }
    }
    return found;
}

// Choose where the first run's code is, and where its calls map the page: both in reach of a thread
// at `pc`, for the next runs too. Return whether there is room.
static bool place_first_run(struct run *run, uint64_t pc)
{
    const struct target_process *target = run->calls->target;
    const struct target_module *module = find_cave(target, pc);
    if (module == NULL) {
        return false;
    }
    const struct address_range near = {.start = module->start, .end = module->end};
    const struct address_range_vec none = {0};
    uint64_t page = address_gaps_find_near(target, &none, remote_page_bytes(), near);
    page = page != 0 ? page : address_gaps_find(target, &none, remote_page_bytes());
    run->code = code_cave_of(target, module).start;
    run->done = page + remote_code_bytes();
    run->list[0] =
        map_call(run->done, REMOTE_LIST_BYTES + REMOTE_NOTE_BYTES, PROT_READ | PROT_WRITE);
    run->list[0].must = -run->done;
    run->list[1] = map_call(page, remote_code_bytes(), PROT_READ | PROT_EXEC);
    run->list[2].number = SYS_getpid;
    return page != 0;
}

static enum err begin_run(struct thread_stop *stop, void *context, struct err_info *info)
{
    struct run *run = context;
    struct user_regs_struct regs = stop->threads.items[0].regs;
    (void)info; // failures here are those of the stop
    interrupted_call_rewind(&regs);
    const uint64_t pc = thread_regs_pc(&regs);
    run->lacks_room = run->is_first && !place_first_run(run, pc);
    if (run->lacks_room || !thread_regs_may_call(stop->target, stop->threads.items[0].tid, &regs) ||
        is_in_rseq(stop) || !remote_code_reaches(run->code, pc)) {
        run->is_unfit = true;
        return ERR_OK;
    }
    const size_t count = run->count + (stop->options->is_held ? 1 : 0);
    struct remote_code_run code = {
        .addr = run->code,
        .calls = run->list_addr,
        .results = run->done + RESULTS_OFFSET,
        .done = run->done,
        .count = count,
        .regs = &regs,
    };
    uint8_t bytes[REMOTE_CODE_BYTES_MAX + sizeof(run->list)];
    size_t len = remote_code_write(&code, bytes);
    if (run->list_addr == 0) {
        code.calls = run->code + len;
        len = remote_code_write(&code, bytes);
        memcpy(bytes + len, run->list, count * sizeof(*run->list));
        len += count * sizeof(*run->list);
    }
    TRY(thread_stop_write(stop, run->code, bytes, len));
    if (stop->options->is_held) {
        return run_held(stop, run);
    }
    thread_regs_go_to(&regs, run->code);
    TRY(thread_stop_set_regs(stop, 0, &regs));
    run->has_begun = true;
    // A stopped process makes no calls by itself, and a filter is lifted only while it is traced.
    return stop->target->has_seccomp || stop->threads.items[0].was_in_group_stop
               ? thread_stop_let_run(stop, 0, is_done, run, DONE_MS)
               : ERR_OK;
}

static void keep_longest(struct remote_calls *calls, const struct stop_report *report)
{
    if (report->held_ns > calls->longest.held_ns) {
        calls->longest = *report;
    }
}

// The lower the better; 0 is impossible. Threads that sleep in a call wake up for the run and sleep
// again; a call that would return EINTR waits anew, so its time is a little longer.
static unsigned rate_thread(const struct target_process *target, int tid)
{
    const char state = proc_files_thread_state(target, tid);
    if (state == 'Z' || state == 'X' || state == 'D') {
        return 0;
    }
    const struct current_call call = proc_files_current_call(target, tid);
    if (call.is_running) {
        return 2;
    }
    return interrupted_call_returns_eintr(call.number) ? 3 : 1;
}

// Append the best threads first.
static enum err
choose_threads(const struct target_process *target, struct u32_vec *out, struct err_info *info)
{
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    TRY(proc_files_list_threads(target, &tids, info));
    unsigned ratings[THREADS_LOOKED_AT] = {0};
    const size_t count = tids.len < THREADS_LOOKED_AT ? tids.len : THREADS_LOOKED_AT;
    for (size_t i = 0; i < count; i++) {
        ratings[i] = rate_thread(target, (int)tids.items[i]);
    }
    for (unsigned rating = 1; rating <= 3; rating++) {
        for (size_t i = 0; i < count; i++) {
            if (ratings[i] == rating) {
                TRY(u32_vec_push(out, tids.items[i]));
            }
        }
    }
    return ERR_OK;
}

// The first thread of a process may have ended before the others, so its state alone says little.
static bool has_ended(const struct target_process *target)
{
    const char state = proc_files_thread_state(target, target->pid);
    return state == 'X' || (state == 'Z' && !target_refusal_has_memory(target)) ||
           target_refusal_is_replaced(target);
}

static bool wait_until_done(struct run *run)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + DONE_MS * NS_PER_MS;
    while (!is_done(run)) {
        if (clock_monotonic_ns() > deadline_ns || has_ended(run->calls->target)) {
            return is_done(run);
        }
        clock_sleep_ns(DONE_POLL_NS);
    }
    return true;
}

// Send the best thread that can be stopped now to the code. ERR_LIMIT: none can.
static enum err begin_one(struct run *run, struct err_info *info)
{
    struct remote_calls *calls = run->calls;
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    enum err err = choose_threads(calls->target, &tids, info);
    if (err != ERR_OK) {
        return target_refusal_explain(calls->target, err, info);
    }
    for (size_t i = 0; i < tids.len && i < THREADS_TRIED; i++) {
        struct stop_options options = calls->stop;
        struct stop_report report = {0};
        options.only_tid = (int)tids.items[i];
        options.attempts = 1;
        run->is_unfit = false;
        err = thread_stop_run(calls->target, &options, begin_run, run, &report, info);
        keep_longest(calls, &report);
        // Never a second thread: the first may still be at it.
        if (run->has_begun || (err != ERR_LIMIT && err != ERR_NOT_FOUND && !run->is_unfit)) {
            return err;
        }
    }
    return ERR_LIMIT;
}

// Let a thread make the calls. On a busy machine a thread may be too slow to stop, and all threads
// may be in vfork, so it is tried again.
static enum err run_list(struct run *run, struct err_info *info)
{
    enum err err = ERR_LIMIT;
    for (unsigned attempt = 0; err == ERR_LIMIT && !run->has_begun && attempt < ATTEMPTS;
         attempt++) {
        clock_sleep_ns(attempt * PAUSE_NS);
        err = begin_one(run, info);
    }
    if (err != ERR_OK && err != ERR_LIMIT && !run->has_begun) {
        return err;
    }
    if (run->is_over || (run->has_begun && !run->calls->stop.is_held &&
                         (err == ERR_OK || err == ERR_LIMIT) && wait_until_done(run))) {
        return ERR_OK;
    }
    if (!target_refusal_has_memory(run->calls->target) ||
        target_refusal_is_replaced(run->calls->target)) {
        return target_refusal_explain(run->calls->target, ERR_NOT_FOUND, info);
    }
    if (err == ERR_IO) { // the kernel refuses
        return err;
    }
    if (run->lacks_room) {
        return err_set(info, ERR_UNSUPPORTED,
                       "process %d has less than %d unused bytes behind the code of each of its "
                       "modules, so cairn has no room for its system calls",
                       run->calls->target->pid, REMOTE_CODE_BYTES_MAX);
    }
    return err_set(info, ERR_LIMIT,
                   "no thread of process %d made cairn's system calls in time; it goes on "
                   "unchanged, try again when the machine is less busy",
                   run->calls->target->pid);
}

// Whether no thread is in a range of code, nor returns into it from a handler.
static enum err check_unused(struct thread_stop *stop, void *context, struct err_info *info)
{
    const struct address_range *code = context;
    (void)info; // no failure
    for (size_t i = 0; i < stop->threads.len; i++) {
        const struct user_regs_struct *regs = &stop->threads.items[i].regs;
        urgent_turns_spare_others(&stop->turns);
        stop->try_again = stop->try_again || stop_scan_is_in(code, 1, thread_regs_pc(regs)) ||
                          stop_scan_stack(stop->target, regs, code, 1);
    }
    return ERR_OK;
}

enum err remote_calls_await_unused(struct remote_calls *calls,
                                   struct address_range code,
                                   struct err_info *info)
{
    struct stop_report report = {0};
    const enum err err =
        thread_stop_run(calls->target, &calls->stop, check_unused, &code, &report, info);
    keep_longest(calls, &report);
    return err;
}

uint64_t remote_calls_find_cave(const struct target_process *target, uint64_t *out_addr)
{
    uint64_t best = 0;
    for (size_t i = 0; i < target->modules.len; i++) {
        const struct address_range cave = code_cave_of(target, target->modules.items + i);
        if (cave.end - cave.start > best) {
            best = cave.end - cave.start;
            *out_addr = cave.start;
        }
    }
    return best;
}

static enum err read_results(const struct run *run, uint64_t *results, struct err_info *info)
{
    const struct target_process *target = run->calls->target;
    const enum err err = target_process_read(target, run->done + RESULTS_OFFSET, results,
                                             run->count * sizeof(*results));
    return err == ERR_OK ? ERR_OK : target_refusal_explain(target, err, info);
}

static enum err write_list(struct run *run, struct err_info *info)
{
    const struct target_process *target = run->calls->target;
    const uint64_t not_done = 0;
    enum err err = target_process_write(target, run->done, &not_done, sizeof(not_done));
    if (err == ERR_OK) {
        err = target_process_write(target, run->list_addr, run->list,
                                   (run->count + 1) * sizeof(*run->list));
    }
    return err == ERR_OK ? ERR_OK : target_refusal_explain(target, err, info);
}

// An injector that was killed may have left its code, with a thread in it.
static enum err leave_caves(struct remote_calls *calls, struct err_info *info)
{
    for (size_t i = 0; i < calls->target->modules.len; i++) {
        const struct address_range cave =
            code_cave_of(calls->target, calls->target->modules.items + i);
        if (cave.end - cave.start >= REMOTE_CODE_BYTES_MAX &&
            remote_code_is_at(calls->target, cave.start)) {
            TRY(remote_calls_await_unused(calls, cave, info));
        }
    }
    return ERR_OK;
}

// The first run: map the page. Without memory for the results the thread just goes on, and `done`
// never becomes readable.
static enum err map_page(struct remote_calls *calls, struct err_info *info)
{
    struct run run = {.calls = calls, .count = 2, .is_first = true};
    uint64_t unused;
    if (remote_calls_find_cave(calls->target, &unused) < REMOTE_CODE_BYTES_MAX) {
        return err_set(info, ERR_UNSUPPORTED,
                       "no module of process %d has room for the %d bytes of code with which "
                       "cairn begins",
                       calls->target->pid, (int)REMOTE_CODE_BYTES_MAX);
    }
    TRY(leave_caves(calls, info));
    TRY(run_list(&run, info));
    uint64_t results[2];
    TRY(read_results(&run, results, info));
    const uint64_t page = run.done - remote_code_bytes();
    if (results[1] != page) {
        return err_set_errno(info, (int)-(int64_t)results[1],
                             "process %d may not map executable memory", calls->target->pid);
    }
    calls->page = page;
    calls->next_slot = 0;
    return ERR_OK;
}

static enum err prepare_page(struct remote_calls *calls, struct err_info *info)
{
    if (calls->page == 0) {
        return map_page(calls, info);
    }
    if (calls->next_slot < SLOTS) {
        return ERR_OK;
    }
    TRY(remote_calls_await_unused(
        calls, (struct address_range){.start = calls->page, .end = list_page(calls)}, info));
    calls->next_slot = 0;
    return ERR_OK;
}

enum err remote_calls_run(struct remote_calls *calls,
                          struct remote_call *list,
                          size_t count,
                          struct err_info *info)
{
    if (count > REMOTE_CALLS_MAX) {
        return err_set(info, ERR_LIMIT, "%zu system calls are too many for one run", count);
    }
    TRY(prepare_page(calls, info));
    struct run run = {
        .calls = calls,
        .count = count,
        .code = calls->page + (uint64_t)calls->next_slot * REMOTE_CODE_BYTES_MAX,
        .list_addr = list_page(calls) + LIST_OFFSET,
        .done = list_page(calls),
    };
    for (size_t i = 0; i < count; i++) {
        run.list[i].number = (uint64_t)list[i].number;
        memcpy(run.list[i].arguments, list[i].arguments, sizeof(list[i].arguments));
    }
    run.list[count].number = SYS_getpid;
    TRY(write_list(&run, info));
    calls->next_slot++; // also if the thread never comes: it may still do so
    TRY(run_list(&run, info));
    uint64_t results[REMOTE_CALLS_MAX];
    TRY(read_results(&run, results, info));
    for (size_t i = 0; i < count; i++) {
        list[i].result = (int64_t)results[i];
    }
    return ERR_OK;
}
