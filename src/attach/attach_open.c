// SPDX-License-Identifier: MIT
// attach_open: the first step of attach.h: open the process, find its allocators, map the agent.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "attach/agent_bytes.h"
#include "attach/attach.h"
#include "attach/attach_plan.h"
#include "attach/executed_path.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/proc_file.h"
#include "host/os/process_search.h"
#include "inject/process/loader_list.h"
#include "inject/process/proc_files.h"
#include "inject/process/seccomp_filter.h"
#include "inject/process/target_reading.h"
#include "inject/process/target_refusal.h"

#define COMMAND_LINE_MAX (64u << 10)
#define LISTED_MAX       1024    // threads whose names are read
#define COMM_BYTES_MAX   64      // of a thread's name
#define STOPPED_MAX      8192    // threads; so many do not stop within the limit of a stop
#define LOOK_NS          1000000 // between two looks at a process that is starting
// How long a process may have no program, or no allocator although it has a loader. The kernel and
// the loader need far less; a program that unpacks itself never shows any.
#define START_PATIENCE_MS 1000
#define ASK_PATIENCE_MS   50 // to find a thread that waits and may ask its allocator

// List all threads of the process, also those that sleep.
static enum err list_threads(struct attach *attach)
{
    const int pid = attach->inject.target.pid;
    CLEANUP(u32_vec_release) struct u32_vec found = {0};
    if (process_search_threads(pid, LISTED_MAX, &found) == ERR_NO_MEMORY) { // else it has ended
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < found.len; i++) {
        char path[64];
        CLEANUP(strbuf_release) struct strbuf name = {0};
        (void)snprintf(path, sizeof(path), "task/%" PRIu32 "/comm", found.items[i]); // fits
        if (proc_file_read(pid, path, COMM_BYTES_MAX, &name) && name.len > 0) {
            strbuf_truncate(&name, name.len - 1); // the line feed
            strbuf_append_text(&attach->thread_names, strbuf_text(&name));
            strbuf_append_char(&attach->thread_names, '\0');
            TRY(u32_vec_push(&attach->threads, found.items[i]));
        }
    }
    return strbuf_result(&attach->thread_names);
}

// Read what the recording says about the process. What cannot be read stays empty.
static enum err describe(struct attach *attach)
{
    const struct target_process *target = &attach->inject.target;
    TRY(executed_path_append(target, &attach->executable));
    // On failure it stays empty.
    (void)!proc_files_read(target, target->live_tid, "cmdline", &attach->command_line, NULL);
    strbuf_truncate(&attach->command_line, min_u64(attach->command_line.len, COMMAND_LINE_MAX));
    for (size_t i = 0; i < attach->modules.len && attach->allocator.len == 0; i++) {
        strbuf_append_text(&attach->allocator, strbuf_text(&attach->modules.items[i].path));
    }
    TRY(strbuf_result(&attach->command_line));
    TRY(attach->is_fresh ? ERR_OK : list_threads(attach));
    return strbuf_result(&attach->allocator);
}

static bool has_function(const struct attach *attach, const char *name)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct allocator_entry_vec *entries = &attach->modules.items[i].scan.entries;
        for (size_t k = 0; k < entries->len; k++) {
            if (strcmp(entries->items[k].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

// Refuse names that the process does not have: its user expects their calls to be counted.
static enum err check_names(const struct attach *attach,
                            const struct allocator_name_vec *names,
                            struct err_info *info)
{
    for (size_t i = 0; names != NULL && i < names->len; i++) {
        if (!has_function(attach, names->items[i].name)) {
            return err_set(info, ERR_NOT_FOUND, "process %d has no function '%s'",
                           attach->inject.target.pid, names->items[i].name);
        }
    }
    return ERR_OK;
}

static bool has_allocator(const struct attach *attach)
{
    bool is_found = false;
    for (size_t i = 0; i < attach->modules.len; i++) {
        is_found = is_found || allocator_scan_has_allocator(&attach->modules.items[i].scan);
    }
    return is_found;
}

// Wait until the kernel has mapped the program of an exec, and the loader its libraries: an
// allocator that comes later is not found. A program that is stopped, or takes very long, is taken
// as it is.
static enum err await_loader(struct target_process *target, bool is_urgent, struct err_info *info)
{
    enum {
        LOADER_PATIENCE_MS = 30000
    };
    const uint64_t begin_ms = clock_monotonic_ms();
    while (!loader_list_is_complete(target) &&
           clock_monotonic_ms() - begin_ms <
               (loader_list_has_program(target) ? LOADER_PATIENCE_MS : START_PATIENCE_MS) &&
           strchr("tT", proc_files_thread_state(target, target->live_tid)) == NULL) {
        if (is_urgent) {
            return err_set(info, ERR_TRUNCATED, "process %d has not loaded its libraries yet",
                           target->pid);
        }
        if (target_refusal_is_replaced(target)) { // its memory is gone
            return target_refusal_explain(target, ERR_NOT_FOUND, info);
        }
        clock_sleep_ns(LOOK_NS);
        TRY(target_process_refresh(target, info));
    }
    return target_process_refresh(target, info); // they were read before the loader's list
}

static enum err read_filters(struct thread_stop *stop, void *context, struct err_info *info)
{
    bool *permits = context;
    const enum err err = seccomp_filter_check(stop->target, stop->threads.items[0].tid, permits);
    *permits = *permits && err == ERR_OK;
    return err == ERR_NO_MEMORY ? err_set(info, err, "no memory for the recorder") : ERR_OK;
}

// Refuse a process with a filter that forbids a system call of the hooks: it could kill it. Each
// thread may have one of its own.
static enum err check_filters(struct attach *attach, struct err_info *info)
{
    struct target_process *target = &attach->inject.target;
    struct stop_options options = attach->inject.calls.stop;
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    const enum err err = options.is_held ? ERR_OK : proc_files_list_threads(target, &tids, info);
    if (err != ERR_OK) {
        return target_refusal_explain(target, err, info);
    }
    if (tids.len > STOPPED_MAX) {
        return err_set(info, ERR_LIMIT,
                       "process %d has %zu threads; cairn stops at most %d at once", target->pid,
                       tids.len, STOPPED_MAX);
    }
    for (size_t i = 0; i < tids.len; i++) {
        bool permits = true;
        options.only_tid = (int)tids.items[i];
        if (proc_files_is_confined(target, options.only_tid)) {
            target->has_seccomp = true;
            const enum err result =
                thread_stop_run(target, &options, read_filters, &permits, NULL, info);
            TRY(result == ERR_NOT_FOUND ? ERR_OK : result); // the thread has ended
        }
        if (!permits) {
            return err_set(info, ERR_PERMISSION,
                           "process %d has a seccomp filter that forbids system calls which "
                           "recording needs, and may kill it; start the program under cairn",
                           target->pid);
        }
    }
    return ERR_OK;
}

// Ask the allocators of a running process that can be asked what they keep. What they do not say is
// unknown.
static void ask_allocators(struct attach *attach)
{
    struct target_process *target = &attach->inject.target;
    for (size_t i = 0; i < attach->modules.len; i++) {
        struct attach_module *found = attach->modules.items + i;
        const struct target_module *module = NULL;
        for (size_t k = 0; trim_can_ask(found->scan.owner) && k < target->modules.len; k++) {
            module = target->modules.items[k].load_bias == found->module.load_bias
                         ? target->modules.items + k
                         : module;
        }
        struct err_info unused = {0};
        if (module != NULL &&
            trim_ask(target, module, ASK_PATIENCE_MS, &found->answer, &unused) != ERR_OK) {
            found->answer = (struct trim_answer){0};
        }
    }
}

static enum err open_once(struct attach *attach,
                          int pid,
                          const struct attach_options *options,
                          struct err_info *info)
{
    const struct inject_options injection = {.stop.is_held = options->is_fresh};
    *attach = (struct attach){.is_fresh = options->is_fresh};
    TRY(inject_open(&attach->inject, pid, &injection, info));
    TRY(check_filters(attach, info));
    if (!options->is_fresh) {
        TRY(await_loader(&attach->inject.target, options->is_urgent, info));
    }
    const struct target_module_vec *modules = &attach->inject.target.modules;
    for (size_t i = 0; i < modules->len; i++) {
        const enum err err = attach_plan_examine(attach, modules->items + i, options, info);
        if (err == ERR_UNSUPPORTED || err == ERR_NO_MEMORY) {
            return err_set(info, err,
                           err == ERR_UNSUPPORTED ? "the program has a sanitizer inside"
                                                  : "no memory for the recorder");
        }
        TRY(err);
    }
    // What hides the only allocator explains a missing name as well.
    const bool is_hidden =
        (attach->hidden.len > 0 || attach->runtime != NULL) && !has_allocator(attach);
    TRY(options->may_lack_names || is_hidden ? ERR_OK : check_names(attach, options->names, info));
    if (!has_allocator(attach)) {
        if (attach->runtime != NULL) {
            strbuf_append_text(&attach->hidden, "it ");
            runtime_explain(attach->runtime, &attach->hidden);
        }
        const char *separator = attach->hidden.len > 0 ? ": " : "";
        return options->is_fresh
                   ? err_set(info, ERR_NOT_FOUND, "found no allocator in the program%s%s",
                             separator, strbuf_text(&attach->hidden))
                   : err_set(info, ERR_NOT_FOUND, "found no allocator in process %d%s%s", pid,
                             separator, strbuf_text(&attach->hidden));
    }
    TRY(attach_plan_nears(attach, info));
    TRY(describe(attach));
    TRY(inject_map(&attach->inject, agent_bytes(), attach->nears.items, attach->nears.len, info));
    TRY(attach_plan_patches(attach, info));
    if (!options->is_fresh) {
        ask_allocators(attach);
    }
    return attach->unpatched_count > 0 && target_refusal_is_replaced(&attach->inject.target)
               ? target_refusal_explain(&attach->inject.target, ERR_NOT_FOUND, info)
               : ERR_OK;
}

// Whether the program may be about to map its libraries, although its loader's list is complete.
static bool may_get_allocator(const struct attach *attach)
{
    return !has_allocator(attach) && loader_list_find(&attach->inject.target) != 0;
}

// A process that executes another program meanwhile is opened anew, and one that is starting too.
// What cairn itself lacks it lacks the next time, too.
enum err attach_open(struct attach *attach,
                     int pid,
                     const struct attach_options *options,
                     struct err_info *info)
{
    enum {
        PROGRAMS_MAX = 5
    };
    const uint64_t begin_ms = clock_monotonic_ms();
    enum err err = open_once(attach, pid, options, info);
    for (int programs = 1;
         err != ERR_OK && !options->is_fresh && !err_is_own_lack(info->errno_value);) {
        if (target_refusal_is_replaced(&attach->inject.target) && programs < PROGRAMS_MAX) {
            programs++;
        } else if (!options->is_urgent && may_get_allocator(attach) &&
                   clock_monotonic_ms() - begin_ms < START_PATIENCE_MS) {
            clock_sleep_ns(LOOK_NS);
        } else {
            break;
        }
        attach_release(attach);
        err = open_once(attach, pid, options, info);
    }
    return target_refusal_if_gone(&attach->inject.target, err, info);
}
