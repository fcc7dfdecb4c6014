// SPDX-License-Identifier: MIT
#include "attach/trim.h"

#include <gelf.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"
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

// What the numbers that an allocator says add up to.
enum answer {
    ANSWER_NONE, // brings the numbers up to date
    ANSWER_UNIT, // bytes in one of ANSWER_FREE
    ANSWER_FREE, // what its function would give back
    ANSWER_HELD, // resident
    ANSWER_USED, // in blocks in use, and in caches of threads
    ANSWERS,
};

// jemalloc's numbers are of all arenas, as above. Its resident bytes are its own upper bound.
// Sources: ctl.c of jemalloc 5.3, tcmalloc.cc of gperftools 2.10.
static const struct query {
    const char *allocator;
    const char *text;
    enum answer answer;
} queries[] = {
    {"jemalloc", "epoch", ANSWER_NONE},
    {"jemalloc", "arenas.page", ANSWER_UNIT},
    {"jemalloc", "stats.arenas.4096.pdirty", ANSWER_FREE},
    {"jemalloc", "stats.arenas.4096.pmuzzy", ANSWER_FREE},
    {"jemalloc", "stats.resident", ANSWER_HELD},
    {"jemalloc", "stats.allocated", ANSWER_USED},
    {"tcmalloc", "tcmalloc.pageheap_free_bytes", ANSWER_FREE},
    {"tcmalloc", "generic.total_physical_bytes", ANSWER_HELD},
    {"tcmalloc", "generic.current_allocated_bytes", ANSWER_USED},
};

// The functions that answer. mallctl(text, value, length, new value, its length) returns 0;
// GetNumericProperty(text, value) returns 1.
static const struct asked {
    const char *function;
    const char *allocator;
    uint64_t success;
} askeds[] = {
    {"mallctl", "jemalloc", 0},
    {"je_mallctl", "jemalloc", 0},
    {"_rjem_mallctl", "jemalloc", 0},
    {"MallocExtension_GetNumericProperty", "tcmalloc", 1},
};

enum {
    ANSWER_LIMIT_MS = 1000,
    ASK_PATIENCE_MS = 200,
    STATM_BYTES_MAX = 4096,
};

struct found_release {
    const struct release *release;
    uint64_t address;
    const struct asked *asked; // NULL: its allocator cannot be asked
    uint64_t asked_address;
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

static bool open_module(const struct target_process *target,
                        const struct target_module *module,
                        struct elf_file *out)
{
    struct err_info unused = {0};
    int fd = -1;
    const char *path = target_process_path(target, module->path);
    return !module->is_vdso &&
           target_process_open_module_file(target, module, &fd, &unused) == ERR_OK &&
           elf_file_open_fd(out, fd, path, &unused) == ERR_OK;
}

// --- queries -----------------------------------------------------------------------------------

// Return the address of __errno_location, 0: unknown.
static uint64_t find_errno_location(const struct target_process *target)
{
    static const char *const names[] = {"libc.so", "libc-2.", "ld-musl-"};
    uint64_t address = 0;
    for (size_t i = 0; i < target->modules.len && address == 0; i++) {
        const struct target_module *module = target->modules.items + i;
        const char *name = path_file_name(target_process_path(target, module->path));
        for (size_t k = 0; k < ARRAY_LEN(names) && address == 0; k++) {
            CLEANUP(elf_file_close) struct elf_file file = {0};
            if (strncmp(name, names[k], strlen(names[k])) == 0 &&
                open_module(target, module, &file)) {
                address = address_of(module, file.elf, "__errno_location");
            }
        }
    }
    return address;
}

// Find the function of a module that answers. NULL: it has none.
static const struct asked *
find_asked(const struct target_module *module, Elf *elf, uint64_t *out_address)
{
    for (size_t i = 0; i < ARRAY_LEN(askeds); i++) {
        *out_address = address_of(module, elf, askeds[i].function);
        if (*out_address != 0) {
            return askeds + i;
        }
    }
    return NULL;
}

static enum err ask_one(struct target_process *target,
                        const struct asked *asked,
                        const struct query *query,
                        struct lent_call *call,
                        struct err_info *info)
{
    call->text = query->text;
    call->value = query->answer == ANSWER_NONE; // any number brings jemalloc's up to date
    memset(call->arguments, 0, sizeof(call->arguments));
    if (query->answer == ANSWER_NONE) {
        call->value_argument = 3;
        call->length_argument = 0;
        call->arguments[4] = sizeof(call->value);
    } else {
        call->value_argument = 1;
        call->length_argument = 2;
    }
    call->has_begun = false;
    TRY(lent_call_run(target, call, info));
    return (uint32_t)call->result == asked->success
               ? ERR_OK
               : err_set(info, ERR_UNSUPPORTED, "%s of process %d does not know %s",
                         asked->function, target->pid, query->text);
}

static uint64_t resident_bytes(int pid)
{
    CLEANUP(strbuf_release) struct strbuf statm = {0};
    return proc_file_read(pid, "statm", STATM_BYTES_MAX, &statm)
               ? proc_text_pages(strbuf_text(&statm)).resident * page_bytes()
               : 0;
}

bool trim_can_ask(const char *allocator)
{
    bool is_found = false;
    for (size_t i = 0; allocator != NULL && i < ARRAY_LEN(askeds); i++) {
        is_found = is_found || strcmp(askeds[i].allocator, allocator) == 0;
    }
    return is_found;
}

// Ask all that an allocator can be asked. `call` has its function.
static enum err ask_all(struct target_process *target,
                        const struct asked *asked,
                        struct lent_call *call,
                        struct trim_answer *out,
                        struct err_info *info)
{
    *out = (struct trim_answer){0};
    if (asked == NULL || call->errno_location == 0) {
        return err_set(info, ERR_UNSUPPORTED, "the allocator of process %d cannot be asked",
                       target->pid);
    }
    uint64_t sums[ANSWERS] = {0};
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        if (strcmp(queries[i].allocator, asked->allocator) == 0) {
            TRY(ask_one(target, asked, queries + i, call, info));
            sums[queries[i].answer] += call->value;
        }
    }
    const uint64_t unit_bytes = max_u64(sums[ANSWER_UNIT], 1);
    uint64_t free_bytes = 0;
    if (__builtin_mul_overflow(sums[ANSWER_FREE], unit_bytes, &free_bytes)) {
        return err_set(info, ERR_UNSUPPORTED, "the allocator of process %d says nonsense",
                       target->pid);
    }
    const uint64_t kept_bytes = excess_u64(sums[ANSWER_HELD], sums[ANSWER_USED]);
    *out = (struct trim_answer){.kept_bytes = kept_bytes,
                                .released_bytes = min_u64(free_bytes, kept_bytes),
                                .rss_bytes = resident_bytes(target->pid)};
    return ERR_OK;
}

enum err trim_ask(struct target_process *target,
                  const struct target_module *module,
                  uint32_t patience_ms,
                  struct trim_answer *out,
                  struct err_info *info)
{
    struct lent_call call = {.patience_ms = patience_ms,
                             .limit_ms = ANSWER_LIMIT_MS,
                             .errno_location = find_errno_location(target)};
    CLEANUP(elf_file_close) struct elf_file file = {0};
    const struct asked *asked =
        open_module(target, module, &file) ? find_asked(module, file.elf, &call.function) : NULL;
    return ask_all(target, asked, &call, out, info);
}

// --- the release ---------------------------------------------------------------------------------

// A module that cannot be read has no function that is known.
static void search_module(struct search *search, const struct target_module *module)
{
    CLEANUP(elf_file_close) struct elf_file file = {0};
    if (!open_module(search->target, module, &file)) {
        return;
    }
    uint64_t asked_address = 0;
    const struct asked *asked = find_asked(module, file.elf, &asked_address);
    for (size_t i = 0; i < ARRAY_LEN(releases) && search->count < TRIM_CALLS_MAX; i++) {
        const uint64_t address = address_of(module, file.elf, releases[i].function);
        const bool is_asked = asked != NULL && strcmp(asked->allocator, releases[i].allocator) == 0;
        if (address != 0) {
            search->found[search->count++] =
                (struct found_release){.release = releases + i,
                                       .address = address,
                                       .asked = is_asked ? asked : NULL,
                                       .asked_address = is_asked ? asked_address : 0};
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

// Ask how much the release will give back. An allocator that does not say is told to all the same.
// *is_back: as of lent_call, of the call before this one, and of the last one here.
static bool promise(struct search *search, size_t index, bool *is_back, struct trim_answer *out)
{
    const struct found_release *found = search->found + index;
    struct err_info unused = {0};
    struct lent_call call = {.function = found->asked_address,
                             .patience_ms = ASK_PATIENCE_MS,
                             .limit_ms = ANSWER_LIMIT_MS,
                             .errno_location = search->errno_location,
                             .is_back = *is_back};
    const enum err err = ask_all(search->target, found->asked, &call, out, &unused);
    *is_back = call.is_back;
    return err == ERR_OK;
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
    bool is_back = false; // the thread of the call before
    for (size_t i = 0; i < search.count; i++) {
        struct trim_answer answer;
        const bool is_answered = promise(&search, i, &is_back, &answer);
        struct lent_call call = {
            .patience_ms = patience_ms, .limit_ms = limit_ms, .is_back = is_back};
        TRY(call_one(&search, i, &call, info));
        is_back = call.is_back;
        out->calls[out->count++] =
            (struct trim_call){.allocator = search.found[i].release->allocator,
                               .function = search.found[i].release->function,
                               .promised_bytes = answer.released_bytes,
                               .is_promised = is_answered,
                               .stopped_ns = call.stopped_ns,
                               .held_ns = call.held_ns,
                               .tid = call.tid};
    }
    return ERR_OK;
}
