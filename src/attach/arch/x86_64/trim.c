// SPDX-License-Identifier: MIT
#include "attach/trim.h"

#include <gelf.h>
#include <string.h>

#include "base/compiler.h"
#include "inject/process/kernel_calls.h"
#include "inject/process/target_reading.h"
#include "inject/process/threads/lent_call.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/symbol_table.h"

// What gives memory back, by allocator. The number of jemalloc's arena means all of them.
static const struct release {
    const char *function;
    const char *allocator;
    uint64_t argument;
    const char *text;
} releases[] = {
    {.function = "malloc_trim", .allocator = "glibc"},
    {.function = "mallctl", .allocator = "jemalloc", .text = "arena.4096.purge"},
    {.function = "je_mallctl", .allocator = "jemalloc", .text = "arena.4096.purge"},
    {.function = "_rjem_mallctl", .allocator = "jemalloc", .text = "arena.4096.purge"},
    {.function = "MallocExtension_ReleaseFreeMemory", .allocator = "tcmalloc"},
    {.function = "mi_collect", .allocator = "mimalloc", .argument = 1},
};

struct found_release {
    const struct release *release;
    uint64_t address;
};

struct search {
    struct target_process *target;
    struct found_release found[TRIM_CALLS_MAX];
    size_t count;
    uint64_t errno_location;
};

static void searching_close(struct search *search)
{
    target_process_close(search->target);
}

static uint64_t address_of(const struct target_module *module, Elf *elf, const char *name)
{
    GElf_Sym symbol;
    const bool is_there = symbol_table_find(elf, name, &symbol) &&
                          GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0;
    return is_there ? module->load_bias + symbol.st_value : 0;
}

// A module that cannot be read has no function that is known.
static void search_module(struct search *search, const struct target_module *module)
{
    CLEANUP(elf_file_close) struct elf_file file = {0};
    struct err_info unused = {0};
    int fd = -1;
    const char *path = target_process_path(search->target, module->path);
    if (module->is_vdso ||
        target_process_open_module_file(search->target, module, &fd, &unused) != ERR_OK ||
        elf_file_open_fd(&file, fd, path, &unused) != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(releases) && search->count < TRIM_CALLS_MAX; i++) {
        const uint64_t address = address_of(module, file.elf, releases[i].function);
        if (address != 0) {
            search->found[search->count++] =
                (struct found_release){.release = releases + i, .address = address};
        }
    }
    const uint64_t location = address_of(module, file.elf, "__errno_location");
    search->errno_location = location != 0 ? location : search->errno_location;
}

static enum err
call_one(struct search *search, size_t index, struct lent_call *call, struct err_info *info)
{
    const struct found_release *found = search->found + index;
    call->function = found->address;
    call->arguments[0] = found->release->argument;
    call->text = found->release->text;
    call->errno_location = search->errno_location;
    return lent_call_run(search->target, call, info);
}

enum err
trim_run(int pid, uint32_t patience_ms, uint32_t limit_ms, struct trim *out, struct err_info *info)
{
    struct target_process target = {0};
    CLEANUP(searching_close) struct search search = {.target = &target};
    *out = (struct trim){0};
    TRY(target_process_open(&target, pid, &kernel_calls_real, info));
    for (size_t i = 0; i < target.modules.len; i++) {
        search_module(&search, target.modules.items + i);
    }
    if (search.count == 0) {
        return err_set(info, ERR_UNSUPPORTED,
                       "process %d has no function with which an allocator gives memory back: "
                       "glibc's, jemalloc's, tcmalloc's and mimalloc's are known",
                       pid);
    }
    for (size_t i = 0; i < search.count; i++) {
        struct lent_call call = {.patience_ms = patience_ms, .limit_ms = limit_ms};
        TRY(call_one(&search, i, &call, info));
        out->calls[out->count++] =
            (struct trim_call){.allocator = search.found[i].release->allocator,
                               .function = search.found[i].release->function,
                               .stopped_ns = call.stopped_ns,
                               .held_ns = call.held_ns,
                               .tid = call.tid};
    }
    return ERR_OK;
}
