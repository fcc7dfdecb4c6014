// SPDX-License-Identifier: MIT
#include "cli/names/jit_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/os/target_file.h"
#include "host/text/number.h"
#include "host/text/proc_text.h"
#include "symbols/jit/perf_map.h"

static const char jit_prefix[] = "[jit ";
static const char merged_path[] = "[jit]";

enum {
    STATUS_BYTES_MAX = 65536,
    MAPS_BYTES_MAX = 16 << 20,
    PATH_BYTES_MAX = 4096,
    START_ERROR_S = 1, // of a process's start, in kernel ticks, and of the times of files
};

void jit_names_init(struct jit_names *names)
{
    *names = (struct jit_names){.since_s = time(NULL) - START_ERROR_S};
}

static void close_files(struct jit_process *process)
{
    fd_closep(&process->tmp);
    fd_closep(&process->dump);
}

void jit_names_release(struct jit_names *names)
{
    for (size_t i = 0; i < names->processes.len; i++) {
        close_files(names->processes.items + i);
    }
    jit_process_vec_release(&names->processes);
}

// Read a text of the process in /proc, "" if there is none.
static void read_proc(uint32_t pid, const char *name, size_t max_bytes, struct strbuf *out)
{
    if (!proc_file_read((pid_t)pid, name, max_bytes, out)) {
        strbuf_clear(out); // the process has ended
    }
}

// Return the wall-clock time before which the process was not there. It may run for days before it
// is recorded, and write nothing more for hours.
static int64_t start_of(int64_t unknown_s, uint32_t pid)
{
    const uint64_t start_ticks = proc_file_start((pid_t)pid);
    if (start_ticks == 0) {
        return unknown_s; // it has ended
    }
    const uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t age_ns = clock_read_ns(CLOCK_BOOTTIME) - start_ticks * tick_ns;
    return ((int64_t)clock_real_ns() - (int64_t)age_ns) / (int64_t)NS_PER_S - START_ERROR_S;
}

// Return the last number of the line "NSpid:", the pid in the innermost namespace. Without that
// line return `pid`.
static uint32_t own_pid_of(uint32_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    read_proc(pid, "status", STATUS_BYTES_MAX, &text);
    const uint32_t found = proc_text_innermost_pid(strbuf_text(&text));
    return found != 0 ? found : pid;
}

// Open the dump that the process has mapped as executable, as perf expects: ".../jit-PID.dump".
// `living`: see proc_file_living.
static int open_dump(const struct jit_process *process, uint32_t living)
{
    CLEANUP(strbuf_release) struct strbuf maps = {0};
    char name[32];
    read_proc(living, "maps", MAPS_BYTES_MAX, &maps);
    (void)snprintf(name, sizeof(name), "/jit-%u.dump\n", process->own_pid);
    const char *end = maps.len > 0 ? strstr(strbuf_text(&maps), name) : NULL;
    if (end == NULL) {
        return -1;
    }
    const char *begin = end;
    while (begin > strbuf_text(&maps) && begin[-1] != '\n') {
        begin--;
    }
    begin += strcspn(begin, "/\n");
    char path[PATH_BYTES_MAX];
    const size_t len = (size_t)(end - begin) + strlen(name) - 1;
    if (begin > end || len >= sizeof(path)) {
        return -1;
    }
    memcpy(path, begin, len);
    path[len] = '\0';
    int fd = -1;
    return target_file_open((int)living, path, &fd, NULL) == ERR_OK ? fd : -1;
}

static void free_process(void *context)
{
    close_files(context);
    free(context);
}

// Inspect the process `context`. Its pid is set; if its start is unknown, `since_s` stands for it.
static void inspect_process(void *context)
{
    struct jit_process *process = context;
    const uint32_t living = (uint32_t)proc_file_living((pid_t)process->pid);
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof(path), "/proc/%u", living);
    process->user = stat(path, &status) == 0 ? status.st_uid : geteuid();
    process->since_s = start_of(process->since_s, process->pid);
    process->own_pid = own_pid_of(process->pid);
    process->tmp = target_file_open_folder((int)living, "/tmp");
    process->dump = open_dump(process, living);
}

// Return the process of a JIT module's path, or 0 for any other path.
static uint32_t pid_of(const char *path)
{
    const bool is_jit = strncmp(path, jit_prefix, strlen(jit_prefix)) == 0;
    return is_jit ? (uint32_t)number_field(path + strlen(jit_prefix)) : 0;
}

// Without memory, or if the process does not answer, its code has no names.
static void add_process(struct jit_names *names,
                        const struct jit_process *begun,
                        const struct aside_reader *reader)
{
    struct jit_process *process = malloc(sizeof(*process));
    if (process == NULL) {
        return;
    }
    *process = *begun;
    const struct aside_work work = {
        .run = inspect_process, .release = free_process, .context = process};
    if (reader->read(reader->context, process->pid, &work) != ERR_OK) {
        return;
    }
    if (jit_process_vec_push(&names->processes, *process) != ERR_OK) {
        close_files(process);
    }
    free(process);
}

void jit_names_see(struct jit_names *names,
                   const struct stack_table *stacks,
                   const struct aside_reader *reader)
{
    while (names->seen_modules < stacks->modules.len) {
        const size_t module = names->seen_modules++;
        const struct jit_process begun = {
            .module = (uint32_t)module,
            .pid = pid_of(string_table_get(stacks->strings, stacks->modules.items[module].path)),
            .since_s = names->since_s,
            .tmp = -1,
            .dump = -1};
        if (begun.pid != 0 && names->processes.len < JIT_PROCESSES_MAX) {
            add_process(names, &begun, reader);
        }
    }
}

// Read the names of all files of the process. An unreadable file adds nothing; the first one that
// is too large is named in `too_large`.
static enum err
read_files(const struct jit_process *process, struct jit_map *map, struct strbuf *too_large)
{
    char path[64];
    CLEANUP(fd_closep) int tmp = -1;
    CLEANUP(fd_closep) int fd = -1;
    (void)snprintf(path, sizeof(path), "/tmp/perf-%u.map", process->own_pid);
    if (process->tmp < 0) { // the process had ended
        tmp = target_file_open_folder(0, "/tmp");
    }
    // Most processes have none.
    (void)!target_file_open_in(process->tmp >= 0 ? process->tmp : tmp, path + strlen("/tmp/"), &fd,
                               NULL);
    const int files[] = {fd, process->dump};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct err_info info = {0};
        const enum err err = files[i] >= 0 ? perf_map_add_file(map, files[i], path, process->user,
                                                               process->since_s, &info)
                                           : ERR_OK;
        if (err == ERR_NO_MEMORY) {
            return err;
        }
        if (err == ERR_LIMIT && too_large->len == 0) {
            strbuf_printf(too_large, "%s, so code that process %u made has no names",
                          err_text(&info), process->pid);
        }
    }
    return jit_map_seal(map);
}

static enum err name_frame(struct rec_frame *frame,
                           const struct jit_map *map,
                           struct string_table *strings,
                           struct rec_symbol_vec *symbols)
{
    const uint64_t pc = frame->offset;
    const bool is_exact = (frame->flags & REC_FRAME_EXACT_PC) != 0;
    const char *name = jit_map_find(map, is_exact || pc == 0 ? pc : pc - 1);
    if (name == NULL) {
        return ERR_OK;
    }
    struct rec_symbol symbol = {0};
    const enum err err = string_table_intern_text(strings, name, &symbol.function);
    if (err == ERR_LIMIT) {
        return ERR_OK; // a program that writes 4 GiB of names must not cost the recording
    }
    TRY(err);
    if (symbols->len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    frame->symbol_first = (uint32_t)symbols->len;
    frame->symbol_count = 1;
    return rec_symbol_vec_push(symbols, symbol);
}

enum err jit_names_add(const struct jit_names *names,
                       struct recording *recording,
                       struct string_table *strings,
                       struct rec_symbol_vec *symbols,
                       struct strbuf *too_large)
{
    for (size_t i = 0; i < names->processes.len; i++) {
        const struct jit_process *process = &names->processes.items[i];
        CLEANUP(jit_map_release) struct jit_map map = {0};
        TRY(read_files(process, &map, too_large));
        for (size_t k = 0; k < recording->frame_count && map.codes.len > 0; k++) {
            if (recording->frames[k].module == process->module) {
                TRY(name_frame(&recording->frames[k], &map, strings, symbols));
            }
        }
    }
    return ERR_OK;
}

static bool is_jit(const struct rec_module *module, const struct string_table *strings)
{
    return pid_of(string_table_get(strings, module->path)) != 0;
}

static bool has_named_code(const struct recording *recording, const struct string_table *strings)
{
    for (size_t i = 0; i < recording->frame_count; i++) {
        const struct rec_frame *frame = &recording->frames[i];
        if (frame->module != REC_NONE && frame->symbol_count > 0 &&
            is_jit(&recording->modules[frame->module], strings)) {
            return true;
        }
    }
    return false;
}

enum err jit_names_merge(struct recording *recording, struct string_table *strings)
{
    CLEANUP(u32_vec_release) struct u32_vec numbers = {0}; // new number by old number
    const bool is_named = has_named_code(recording, strings);
    uint32_t merged = REC_NONE;
    uint32_t count = 0;
    TRY(u32_vec_resize(&numbers, recording->module_count));
    for (uint32_t i = 0; i < recording->module_count; i++) {
        struct rec_module module = recording->modules[i];
        numbers.items[i] = count;
        if (is_jit(&module, strings)) {
            numbers.items[i] = merged != REC_NONE || !is_named ? merged : count;
            if (merged != REC_NONE || !is_named) {
                continue;
            }
            merged = count;
            module = (struct rec_module){0};
            TRY(string_table_intern_text(strings, merged_path, &module.path));
        }
        recording->modules[count++] = module;
    }
    recording->module_count = count;
    for (size_t i = 0; i < recording->frame_count; i++) {
        struct rec_frame *frame = &recording->frames[i];
        frame->module = frame->module != REC_NONE ? numbers.items[frame->module] : REC_NONE;
        if (merged != REC_NONE && frame->module == merged) {
            const bool has_name = frame->symbol_count > 0;
            frame->module = has_name ? merged : REC_NONE;
            recording->modules[merged].frames += has_name;
            recording->modules[merged].frames_with_function += has_name;
        }
    }
    return ERR_OK;
}
