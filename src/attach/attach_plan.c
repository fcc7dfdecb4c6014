// SPDX-License-Identifier: MIT
#include "attach/attach_plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/agent_bytes.h"
#include "attach/module_code.h"
#include "attach/plain_modules.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "inject/process/target_reading.h"
#include "session/agent_page.h"
#include "session/books/block_words.h"
#include "session/python_versions.h"
#include "symbols/elf/symbol_table.h"

enum {
    LOOKS = 5, // at modules that may be on their way in or out
    MAPS_BYTES_MAX = 64 << 20,
};

static void release_module(struct attach_module *module)
{
    allocator_scan_release(&module->scan);
    unwind_copy_release(&module->unwind);
    strbuf_release(&module->path);
}

static uint64_t build_id_hash(const struct target_module *module)
{
    uint64_t hash = module->build_id_len;
    for (size_t i = 0; i < module->build_id_len; i++) {
        hash = hash_mix(hash ^ module->build_id[i]);
    }
    return hash;
}

// Return a number for the module's file: of its build-id, which any file may claim, and of what the
// kernel says of the file.
static uint64_t file_key(const struct attach *attach, const struct target_module *module)
{
    const struct target_mapping *mapping =
        target_process_mapping_at(&attach->inject.target, module->start);
    const uint64_t inode = mapping != NULL ? mapping->inode : 0;
    const uint64_t device = mapping != NULL ? mapping->device : 0;
    return hash_mix(hash_mix(hash_mix(hash_mix(device) ^ inode) ^ (module->end - module->start)) ^
                    build_id_hash(module));
}

static enum err note_plain(const struct attach *attach,
                           const struct target_module *module,
                           struct plain_modules *plain)
{
    return plain != NULL ? plain_modules_add(plain, file_key(attach, module)) : ERR_OK;
}

bool attach_plan_is_plain(const struct attach *attach,
                          const struct target_module *module,
                          const struct attach_options *options)
{
    return options->plain_modules != NULL &&
           plain_modules_has(options->plain_modules, file_key(attach, module));
}

// Of a process that has ended nothing can be read, and nothing is missing.
static bool is_there(const struct target_process *target)
{
    uint8_t byte;
    return target->modules.len > 0 &&
           target_process_read(target, target->modules.items[0].start, &byte, 1) == ERR_OK;
}

void attach_plan_note_unread(struct attach *attach, const char *name)
{
    if (is_there(&attach->inject.target) && strstr(strbuf_text(&attach->unread), name) == NULL) {
        strbuf_printf(&attach->unread, "%s\n", name);
    }
}

// Whether the process has a file mapped now: it may have closed a plugin since its map was read.
static bool is_mapped(const struct attach *attach, const char *path)
{
    CLEANUP(strbuf_release) struct strbuf maps = {0};
    return !proc_file_read(attach->inject.target.live_tid, "maps", MAPS_BYTES_MAX, &maps) ||
           strstr(strbuf_text(&maps), path) != NULL;
}

void attach_plan_note_modules(struct attach *attach)
{
    const struct target_process *target = &attach->inject.target;
    for (int looks = 1; looks < LOOKS && target->unread.len > 0; looks++) {
        if (target_process_refresh(&attach->inject.target, NULL) != ERR_OK) {
            return; // it has ended
        }
    }
    for (size_t i = 0; i < target->unread.len; i++) {
        attach_plan_note_unread(attach, target_process_path(target, target->unread.items[i]));
    }
    if (target->has_more_modules) {
        attach_plan_note_unread(attach, "modules beyond those that cairn reads");
    }
}

// Whether a file is the one that is mapped: its name may lead to another one. The functions of that
// would be at other addresses.
static bool is_file_of(const struct attach *attach,
                       const struct target_module *module,
                       const struct elf_file *file)
{
    const struct bytes build_id = elf_file_build_id(file);
    if (module->build_id_len > 0) {
        return min_u64(build_id.len, TARGET_BUILD_ID_MAX) == module->build_id_len &&
               memcmp(build_id.data, module->build_id, module->build_id_len) == 0;
    }
    struct stat status;
    const struct target_mapping *mapping =
        target_process_mapping_at(&attach->inject.target, module->start);
    return mapping != NULL && fstat(file->fd, &status) == 0 &&
           (uint64_t)status.st_ino == mapping->inode;
}

// Note where the module has what the frames of Python need. The first definition counts.
static void find_python(struct agent_python *python,
                        const struct target_module *module,
                        const struct elf_file *file)
{
    const struct {
        const char *name;
        uint64_t *place;
    } wanted[] = {{"_PyRuntime", &python->runtime},
                  {"Py_Version", &python->version},
                  {"pthread_getspecific", &python->get_specific}};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        GElf_Sym symbol;
        if (*wanted[i].place == 0 && symbol_table_find(file->elf, wanted[i].name, &symbol)) {
            *wanted[i].place = symbol.st_value + module->load_bias;
        }
    }
    GElf_Sym unused;
    for (size_t i = python->older == 0 ? 0 : ARRAY_LEN(python_versions);
         i < ARRAY_LEN(python_versions) &&
         symbol_table_find(file->elf, python_versions[i].function, &unused);
         i++) {
        python->older = python_versions[i].version;
    }
}

// Open the file of a module. *out_is_read: it is the one that is mapped.
static enum err open_file(struct attach *attach,
                          const struct target_module *module,
                          struct elf_file *file,
                          bool *out_is_read,
                          struct err_info *info)
{
    const char *path = target_process_path(&attach->inject.target, module->path);
    struct err_info problem = {0};
    int fd = -1;
    enum err err = target_process_open_module_file(&attach->inject.target, module, &fd, &problem);
    if (err == ERR_OK) {
        err = elf_file_open_fd(file, fd, path, &problem);
    }
    if (err == ERR_NO_MEMORY || (err != ERR_OK && err_is_own_lack(problem.errno_value))) {
        return err_set(info, err, "%s", err_text(&problem));
    }
    *out_is_read = err == ERR_OK && is_file_of(attach, module, file);
    return ERR_OK;
}

// A module whose file cannot be read has none that could be found, unless cairn lacks something.
enum err attach_plan_examine(struct attach *attach,
                             const struct target_module *module,
                             const struct attach_options *options,
                             struct err_info *info)
{
    const char *path = target_process_path(&attach->inject.target, module->path);
    CLEANUP(elf_file_close) struct elf_file file = {0};
    bool is_read = false;
    if (module->is_vdso) {
        return ERR_OK;
    }
    TRY(open_file(attach, module, &file, &is_read, info));
    if (!is_read && !is_mapped(attach, path)) {
        return ERR_OK; // should it come again, its loader calls the hook for new modules
    }
    if (!is_read) {
        attach_plan_note_unread(attach, path);
        return strbuf_result(&attach->unread);
    }
    if (options->is_fresh && allocator_scan_sanitizer(&file) != NULL) {
        return ERR_UNSUPPORTED; // it is about to map its shadow, where the agent's memory may be
    }
    if (options->reads_python) {
        find_python(&attach->python, module, &file);
    }
    struct attach_module found = {.module = *module};
    strbuf_append_text(&found.path, path);
    const struct name_sources sources = {.root_pid = attach->inject.target.live_tid};
    enum err err = allocator_scan(&file, path, &sources, options->names, &found.scan);
    if (err == ERR_OK) {
        allocator_scan_read_texts(&found.scan, &file);
    }
    if (err == ERR_OK && found.scan.hidden != NULL) {
        if (attach->hidden_in.len == 0) {
            strbuf_printf(&attach->hidden_in, "%s contains %s", path_file_name(path),
                          found.scan.hidden);
        }
        strbuf_append_text(&attach->hidden, attach->hidden.len > 0 ? "\n" : "");
        allocator_scan_explain(&found.scan, &file, path, &attach->hidden);
    }
    attach->runtime = attach->runtime != NULL ? attach->runtime : found.scan.runtime;
    if (err == ERR_OK) {
        module_code_note(&file, &found.scan);
    }
    if (err == ERR_OK && module->eh_frame_hdr == 0) {
        err = unwind_copy_read(&file, &found.unwind);
    }
    err = err == ERR_OK ? strbuf_result(&found.path) : err;
    if (err == ERR_OK && found.scan.entries.len > 0) {
        err = attach_module_vec_push(&attach->modules, found);
        if (err == ERR_OK) {
            return ERR_OK;
        }
    } else if (err == ERR_OK) {
        err = note_plain(attach, module, options->plain_modules);
    }
    release_module(&found);
    return err;
}

// A near block has the slots of the patches and, for a module without them, unwind tables.
uint64_t attach_plan_slots_bytes(const struct attach_module *found)
{
    return (patch_plan_block_bytes(found->scan.entries.len) + 15) & ~UINT64_C(15);
}

// Return a number for all that a module's near block will hold: its code, and the patches' numbers.
static uint64_t key_of(const struct attach_module *found, uint64_t first_index)
{
    uint64_t key =
        hash_mix(hash_mix(found->module.start ^ first_index) ^ build_id_hash(&found->module));
    for (size_t i = 0; i < found->scan.entries.len; i++) {
        const struct allocator_entry *entry = found->scan.entries.items + i;
        key = hash_mix(key ^ entry->addr);
        key = hash_mix(key ^ (uint64_t)entry->changes_all << 63 ^ (uint64_t)entry->hook << 32 ^
                       (uint32_t)entry->nothrow);
    }
    return key;
}

enum err attach_plan_nears(struct attach *attach, struct err_info *info)
{
    uint64_t index = attach->plan.first_index;
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct attach_module *found = attach->modules.items + i;
        const struct inject_near near = {
            .module_start = found->module.start,
            .module_end = found->module.end,
            .bytes = attach_plan_slots_bytes(found) + unwind_copy_bytes(&found->unwind),
            .key = key_of(found, index),
        };
        TRY(inject_near_vec_push(&attach->nears, near));
        index += found->scan.entries.len;
    }
    return index <= AGENT_PATCHES_MAX
               ? ERR_OK
               : err_set(info, ERR_LIMIT,
                         "process %d has %" PRIu64 " allocation functions; cairn can record %u",
                         attach->inject.target.pid, index, AGENT_PATCHES_MAX);
}

static size_t read_code(void *context, uint64_t addr, uint8_t *out, size_t len)
{
    const struct target_process *target = context;
    while (len > 0 && target_process_read(target, addr, out, len) != ERR_OK) {
        len /= 2; // the end of the module
    }
    return len;
}

// Return why the function at `addr` is not hooked, "" if it is. NULL: it calls one that is.
static const char *
reason_of(const struct patch_plan *plan, size_t first_patch, size_t first_refusal, uint64_t addr)
{
    for (size_t i = first_patch; i < plan->patches.len; i++) {
        if (plan->patches.items[i].entry_addr == addr) {
            return "";
        }
    }
    for (size_t i = first_refusal; i < plan->refusals.len; i++) {
        if (plan->refusals.items[i].addr == addr) {
            return plan->refusals.items[i].reason;
        }
    }
    return NULL;
}

// Note what becomes of each function of a module whose patches and refusals begin there.
static enum err note_hooks(struct attach *attach,
                           const struct attach_module *found,
                           size_t first_patch,
                           size_t first_refusal)
{
    const size_t module = attach->hook_texts.len;
    strbuf_append(&attach->hook_texts, strbuf_text(&found->path), found->path.len + 1);
    for (size_t i = 0; i < found->scan.entries.len; i++) {
        const struct allocator_entry *entry = found->scan.entries.items + i;
        const bool is_allocators = agent_hook_is_allocators(entry->hook);
        struct attach_hook hook = {
            .module = module,
            .name = attach->hook_texts.len,
            .allocator = is_allocators && found->scan.owner != NULL ? found->scan.owner : "",
            .reason = reason_of(&attach->plan, first_patch, first_refusal,
                                entry->addr + found->module.load_bias),
            .is_allocators = is_allocators,
        };
        if (hook.reason != NULL) {
            strbuf_append(&attach->hook_texts, entry->name, strlen(entry->name) + 1);
            TRY(attach_hook_vec_push(&attach->hooks, hook));
        }
    }
    return strbuf_result(&attach->hook_texts);
}

static enum err plan_module(struct attach *attach, size_t index)
{
    struct attach_module *found = attach->modules.items + index;
    const size_t count = found->scan.entries.len;
    const size_t before = attach->plan.refusals.len;
    const size_t planned = attach->plan.patches.len;
    struct patch_target *targets = calloc(count, sizeof(*targets));
    if (targets == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const struct allocator_entry *entry = found->scan.entries.items + i;
        targets[i] = (struct patch_target){.addr = entry->addr + found->module.load_bias,
                                           .size_bytes = entry->size_bytes,
                                           .hook = entry->hook,
                                           .nothrow = entry->nothrow,
                                           .changes_all = entry->changes_all,
                                           .name = entry->name};
    }
    const struct code_reader reader = {.read = read_code, .context = &attach->inject.target};
    enum err err =
        patch_plan_add(&attach->plan, targets, count, attach->nears.items[index].addr, &reader);
    free(targets);
    err = err == ERR_OK ? note_hooks(attach, found, planned, before) : err;
    found->patch_count = attach->plan.patches.len - planned;
    for (size_t i = before; i < attach->plan.refusals.len; i++) {
        const struct patch_refusal *refusal = attach->plan.refusals.items + i;
        strbuf_printf(&attach->unpatched, "%s%s of '%s' %s",
                      attach->unpatched_count++ > 0 ? ", " : "", refusal->name,
                      strbuf_text(&found->path), refusal->reason);
    }
    return err == ERR_OK ? strbuf_result(&attach->unpatched) : err;
}

enum err attach_plan_patches(struct attach *attach, struct err_info *info)
{
    struct agent_page page;
    const struct target_process *target = &attach->inject.target;
    attach->page_addr = inject_symbol(&attach->inject, agent_bytes(), AGENT_PAGE_SYMBOL);
    if (attach->page_addr == 0 ||
        target_process_read(target, attach->page_addr, &page, sizeof(page)) != ERR_OK ||
        page.magic != AGENT_MAGIC || page.version != AGENT_VERSION) {
        return err_set(info, ERR_CORRUPT, "the agent in process %d is damaged", target->pid);
    }
    memcpy(attach->plan.hook_addrs, page.hooks, sizeof(attach->plan.hook_addrs));
    memcpy(attach->plan.abi_hook_addrs, page.abi_hooks, sizeof(attach->plan.abi_hook_addrs));
    for (size_t i = 0; i < attach->modules.len; i++) {
        TRY(plan_module(attach, i));
    }
    return ERR_OK;
}

// glibc has it, musl does not.
static bool has_pvalloc(const struct allocator_scan *scan)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        if (strstr(scan->entries.items[i].name, "pvalloc") != NULL) {
            return true;
        }
    }
    return false;
}

static bool has_users_names(const struct allocator_scan *scan)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        if (scan->entries.items[i].is_users) {
            return true;
        }
    }
    return false;
}

// Return the sizes of an allocator whose blocks may be less than 32 bytes apart.
static enum words_tiny_below tiny_below(const struct allocator_scan *scan)
{
    static const char *const usual[] = {"jemalloc", "mimalloc", "tcmalloc"};
    if (scan->owner == NULL || has_users_names(scan)) {
        return WORDS_TINY_SMALL;
    }
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        if (strcmp(scan->owner, usual[i]) == 0) {
            return WORDS_TINY_USUAL;
        }
    }
    return strcmp(scan->owner, "libc") == 0 && has_pvalloc(scan) ? WORDS_TINY_NEVER
                                                                 : WORDS_TINY_SMALL;
}

enum err attach_plan_send_sizes(const struct attach *attach)
{
    const uint64_t addr = attach->page_addr + offsetof(struct agent_page, tiny_below_bytes);
    uint32_t before = 0;
    uint32_t below = 0;
    TRY(target_process_read(&attach->inject.target, addr, &before, sizeof(before)));
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct allocator_scan *scan = &attach->modules.items[i].scan;
        if (allocator_scan_has_allocator(scan)) {
            below = max_u32(below, tiny_below(scan));
        }
    }
    return below > before
               ? target_process_write(&attach->inject.target, addr, &below, sizeof(below))
               : ERR_OK;
}

void attach_plan_release(struct attach *attach)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        release_module(attach->modules.items + i);
    }
    attach_module_vec_release(&attach->modules);
    inject_near_vec_release(&attach->nears);
    patch_plan_release(&attach->plan);
    attach->plan = (struct patch_plan){0};
}
