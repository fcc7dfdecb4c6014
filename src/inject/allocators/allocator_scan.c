// SPDX-License-Identifier: MIT
#include "inject/allocators/allocator_scan.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/order.h"
#include "inject/allocators/allocator_marks.h"
#include "symbols/elf/debug_search.h"
#include "symbols/elf/symbol_table.h"

// A symbol that is an entry. Several may have one address.
struct candidate {
    uint64_t addr;
    uint64_t size_bytes;
    const char *name; // borrowed from the file
    size_t name_len;  // without version
    enum agent_hook hook;
    bool is_users;
    bool is_operator;
    bool is_exported;
    const char *nothrow; // static; NULL: none
};
DEFINE_VEC(candidate_vec, struct candidate);

// The executable segments of the module.
struct code_range {
    uint64_t start;
    uint64_t end;
};
DEFINE_VEC(code_range_vec, struct code_range);

void allocator_scan_release(struct allocator_scan *scan)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        free(scan->entries.items[i].name);
    }
    allocator_entry_vec_release(&scan->entries);
    *scan = (struct allocator_scan){0};
}

static enum err find_code(const struct elf_file *module, struct code_range_vec *out)
{
    size_t count = 0;
    GElf_Phdr header;
    if (elf_getphdrnum(module->elf, &count) != 0) {
        return ERR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(module->elf, (int)i, &header) != NULL && header.p_type == PT_LOAD &&
            (header.p_flags & PF_X) != 0 && header.p_vaddr <= UINT64_MAX - header.p_filesz) {
            TRY(code_range_vec_push(
                out, (struct code_range){header.p_vaddr, header.p_vaddr + header.p_filesz}));
        }
    }
    return ERR_OK;
}

// Return whether a function is in executable bytes of the file.
static bool is_code(const struct code_range_vec *code, const GElf_Sym *symbol)
{
    for (size_t i = 0; i < code->len; i++) {
        const struct code_range *range = code->items + i;
        if (symbol->st_value >= range->start && symbol->st_value < range->end) {
            return symbol->st_size <= range->end - symbol->st_value;
        }
    }
    return false;
}

static const struct allocator_name *
find_users(const struct allocator_name_vec *names, const char *name, size_t len)
{
    for (size_t i = 0; names != NULL && i < names->len; i++) {
        if (strncmp(names->items[i].name, name, len) == 0 && names->items[i].name[len] == '\0') {
            return names->items + i;
        }
    }
    return NULL;
}

// Append the entries that a symbol table names. The address of an indirect function is that of its
// resolver, so it is not one.
static enum err find_candidates(Elf *elf,
                                uint32_t type,
                                const struct code_range_vec *code,
                                const struct allocator_name_vec *names,
                                struct candidate_vec *out)
{
    struct symbol_table table;
    struct function_symbol function;
    (void)symbol_table_open(&table, elf, type); // a missing one is empty
    while (symbol_table_next(&table, &function)) {
        if ((names == NULL || names->len == 0) && !allocator_name_may_be_known(function.name)) {
            continue;
        }
        const size_t len = strcspn(function.name, "@");
        const struct allocator_name *users = find_users(names, function.name, len);
        const struct allocator_form *form =
            users == NULL ? allocator_form_find(function.name, len) : NULL;
        if ((users == NULL && form == NULL) || !is_code(code, &function.symbol) ||
            GELF_ST_TYPE(function.symbol.st_info) != STT_FUNC) {
            continue;
        }
        TRY(candidate_vec_push(out, (struct candidate){
                                        .addr = function.symbol.st_value,
                                        .size_bytes = function.symbol.st_size,
                                        .name = function.name,
                                        .name_len = len,
                                        .hook = users != NULL ? users->hook : form->hook,
                                        .is_users = users != NULL,
                                        .is_operator = form != NULL && form->is_operator,
                                        .is_exported = type == SHT_DYNSYM,
                                        .nothrow = form != NULL ? form->nothrow : NULL,
                                    }));
    }
    return ERR_OK;
}

static bool is_named(const struct candidate *candidate, const char *name)
{
    return strncmp(candidate->name, name, candidate->name_len) == 0 &&
           name[candidate->name_len] == '\0';
}

static const struct candidate *find_named(const struct candidate_vec *candidates, const char *name)
{
    for (size_t i = 0; i < candidates->len; i++) {
        if (is_named(candidates->items + i, name)) {
            return candidates->items + i;
        }
    }
    return NULL;
}

static bool is_operator(const struct candidate *candidate)
{
    return candidate->is_operator;
}

// Whether the function has the name of one of libc's, and other modules do not call it instead of
// that: it is a private one, which does anything.
static bool is_namesake(const struct candidate *candidate)
{
    return agent_hook_is_libcs(candidate->hook) && !candidate->is_exported;
}

static void drop(struct candidate_vec *candidates, bool (*is_out)(const struct candidate *))
{
    size_t kept = 0;
    for (size_t i = 0; i < candidates->len; i++) {
        if (!is_out(candidates->items + i)) {
            candidates->items[kept++] = candidates->items[i];
        }
    }
    candidates->len = kept;
}

// By address; of one address first the user's, then by kind, then the shortest name.
static int compare(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    return order_u64(a->addr, b->addr)
               ?: order_u64(b->is_users, a->is_users)
               ?: order_u64(a->hook, b->hook)
               ?: order_u64(a->name_len, b->name_len)
               ?: strncmp(a->name, b->name, a->name_len);
}

static int32_t entry_at(const struct allocator_entry_vec *entries, uint64_t addr)
{
    for (size_t i = 0; i < entries->len; i++) {
        if (entries->items[i].addr == addr) {
            return (int32_t)i;
        }
    }
    return -1;
}

// Make one entry of each address, from sorted candidates.
static enum err add_entries(const struct candidate_vec *candidates, struct allocator_entry_vec *out)
{
    for (size_t i = 0; i < candidates->len; i++) {
        const struct candidate *candidate = candidates->items + i;
        if (i > 0 && candidate->addr == candidate[-1].addr) {
            continue;
        }
        TRY(allocator_entry_vec_reserve(out, 1));
        char *name = strndup(candidate->name, candidate->name_len);
        if (name == NULL) {
            return ERR_NO_MEMORY;
        }
        out->items[out->len++] = (struct allocator_entry){.addr = candidate->addr,
                                                          .size_bytes = candidate->size_bytes,
                                                          .hook = candidate->hook,
                                                          .nothrow = -1,
                                                          .is_users = candidate->is_users,
                                                          .name = name};
    }
    // Any name of an address may have the nothrow form.
    for (size_t i = 0; i < candidates->len; i++) {
        const struct candidate *candidate = candidates->items + i;
        const struct candidate *nothrow =
            candidate->nothrow != NULL ? find_named(candidates, candidate->nothrow) : NULL;
        if (nothrow != NULL) {
            out->items[entry_at(out, candidate->addr)].nothrow = entry_at(out, nothrow->addr);
        }
    }
    return ERR_OK;
}

struct file_kind {
    bool is_executable;
    bool has_interpreter; // a loader starts it
    bool has_tls;
};

static bool is_marked_as_executable(Elf *elf, const GElf_Phdr *dynamic)
{
    Elf_Data *data =
        elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz, ELF_T_DYN);
    GElf_Dyn entry;
    for (int i = 0; data != NULL && gelf_getdyn(data, i, &entry) != NULL; i++) {
        if (entry.d_tag == DT_FLAGS_1) {
            return (entry.d_un.d_val & DF_1_PIE) != 0;
        }
    }
    return false;
}

static struct file_kind kind_of(Elf *elf)
{
    GElf_Ehdr header;
    size_t count = 0;
    if (gelf_getehdr(elf, &header) == NULL || elf_getphdrnum(elf, &count) != 0) {
        return (struct file_kind){0};
    }
    struct file_kind kind = {.is_executable = header.e_type == ET_EXEC};
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) == NULL) {
            continue;
        }
        kind.has_interpreter |= segment.p_type == PT_INTERP;
        kind.has_tls |= segment.p_type == PT_TLS;
        kind.is_executable |=
            segment.p_type == PT_DYNAMIC && is_marked_as_executable(elf, &segment);
    }
    return kind;
}

// Append what the separate debug file of the module names; it stays open in `debug`.
static enum err search_apart(const struct elf_file *module,
                             const char *path,
                             const struct name_sources *sources,
                             const struct allocator_name_vec *names,
                             const struct code_range_vec *code,
                             struct elf_file *debug,
                             struct candidate_vec *candidates)
{
    const enum err opened =
        debug_search_dwarf(sources, path, elf_file_build_id(module), module, debug);
    if (opened != ERR_OK) {
        return opened == ERR_NO_MEMORY ? opened : ERR_OK;
    }
    return find_candidates(debug->elf, SHT_SYMTAB, code, names, candidates);
}

// Return whether the program's threads have a thread pointer: the loader sets it, and so do glibc
// and musl. Another runtime may do without. A program of musl may have no segment for it.
static bool has_thread_pointer(const struct elf_file *module,
                               const struct elf_file *debug,
                               struct file_kind kind)
{
    static const char libc_begins[] = "__libc_start_main";
    return !kind.is_executable || kind.has_interpreter || kind.has_tls ||
           symbol_table_may_name(module->elf, SHT_SYMTAB, libc_begins) ||
           (debug->elf != NULL && symbol_table_may_name(debug->elf, SHT_SYMTAB, libc_begins));
}

// Whether the module is libc, or contains it. A library that executes programs is libc.
static bool has_libc(const struct candidate_vec *candidates, struct file_kind kind)
{
    return kind.is_executable ? !kind.has_interpreter : find_named(candidates, "execve") != NULL;
}

// Return the allocator that the names belong to. Another one's names count before those of libc,
// because allocators that replace it have its names, too.
static const char *find_owner(const struct candidate_vec *candidates, bool is_libc_library)
{
    const char *owner = is_libc_library ? "libc" : NULL;
    for (size_t i = 0; i < candidates->len; i++) {
        const struct candidate *candidate = candidates->items + i;
        const char *found = allocator_name_owner(candidate->name, candidate->name_len);
        const bool is_libc = found != NULL && strcmp(found, "libc") == 0;
        if (found != NULL && !is_libc && owner != NULL && strcmp(owner, "libc") != 0 &&
            strcmp(owner, found) != 0) {
            return NULL; // several
        }
        owner = found != NULL && (!is_libc || owner == NULL) ? found : owner;
    }
    return owner;
}

enum err allocator_scan(const struct elf_file *module,
                        const char *path,
                        const struct name_sources *sources,
                        const struct allocator_name_vec *names,
                        struct allocator_scan *out)
{
    CLEANUP(allocator_scan_release) struct allocator_scan scan = {0};
    CLEANUP(candidate_vec_release) struct candidate_vec candidates = {0};
    CLEANUP(code_range_vec_release) struct code_range_vec code = {0};
    CLEANUP(elf_file_close) struct elf_file debug = {.fd = -1};
    TRY(find_code(module, &code));
    TRY(find_candidates(module->elf, SHT_DYNSYM, &code, names, &candidates));
    TRY(find_candidates(module->elf, SHT_SYMTAB, &code, names, &candidates));
    const bool is_stripped = !elf_file_has_symtab(module);
    const struct file_kind kind = kind_of(module->elf);
    const bool is_nameless = is_stripped && candidates.len == 0;
    const char *printed = is_nameless && !kind.is_executable ? allocator_marks_find(module) : NULL;
    const bool may_be_apart = (names != NULL && names->len > 0) ||
                              (candidates.len == 0 && (kind.is_executable || printed != NULL));
    if (is_stripped && may_be_apart && sources != NULL) {
        TRY(search_apart(module, path, sources, names, &code, &debug, &candidates));
    }
    if (find_named(&candidates, "malloc") == NULL) {
        drop(&candidates, is_operator);
    }
    if (!has_libc(&candidates, kind)) {
        drop(&candidates, is_namesake);
    }
    if (candidates.len > 0 && !has_thread_pointer(module, &debug, kind)) {
        scan.lacks_thread_pointer = true;
        scan.hidden = "an allocator";
        candidates.len = 0;
    }
    if (candidates.len > 0) {
        qsort(candidates.items, candidates.len, sizeof(*candidates.items), compare);
    }
    TRY(add_entries(&candidates, &scan.entries));
    scan.is_library = !kind.is_executable;
    scan.is_libc = has_libc(&candidates, kind);
    scan.owner = find_owner(&candidates, scan.is_library && scan.is_libc);
    scan.runtime = runtime_table_of_module(module, path);
    if (scan.runtime != NULL) {
        scan.hidden = NULL;
        scan.lacks_thread_pointer = false;
    } else if (scan.entries.len == 0 && !scan.lacks_thread_pointer && is_stripped &&
               debug.elf == NULL) {
        const bool is_static = kind.is_executable && !kind.has_interpreter;
        scan.hidden = is_static ? "an allocator" : printed;
        scan.has_unread_texts = is_nameless && kind.is_executable;
    }
    *out = scan;
    scan = (struct allocator_scan){0};
    return ERR_OK;
}

void allocator_scan_read_texts(struct allocator_scan *scan, const struct elf_file *module)
{
    const char *printed = scan->has_unread_texts ? allocator_marks_find(module) : NULL;
    scan->has_unread_texts = false;
    scan->hidden = printed != NULL ? printed : scan->hidden;
}

// Whether a stripped executable has a sanitizer inside that lays out memory. Such a sanitizer
// defines malloc, and memcpy to check the bytes. Each sanitizer calls, if some library has it, a
// function that finds the names of its stacks. A sanitizer in a library works under hooks.
static bool is_like_a_sanitizer(const struct elf_file *module)
{
    struct symbol_table table;
    struct function_symbol function;
    bool defines_malloc = false;
    bool defines_memcpy = false;
    if (!symbol_table_may_name(module->elf, SHT_DYNSYM, "__sanitizer_symbolize_code") ||
        !symbol_table_open(&table, module->elf, SHT_DYNSYM) ||
        !kind_of(module->elf).is_executable) {
        return false;
    }
    while (symbol_table_next(&table, &function)) {
        defines_malloc = defines_malloc || strcmp(function.name, "malloc") == 0;
        defines_memcpy = defines_memcpy || strcmp(function.name, "memcpy") == 0;
    }
    return defines_malloc && defines_memcpy;
}

// gcc exports no name of a sanitizer that it links statically, so local symbols count as well.
const char *allocator_scan_sanitizer(const struct elf_file *module)
{
    static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
    const char *sanitizer = NULL;
    for (size_t i = 0; sanitizer == NULL && i < ARRAY_LEN(types); i++) {
        struct symbol_table table;
        struct function_symbol function;
        (void)symbol_table_open(&table, module->elf, types[i]); // a missing one is empty
        while (sanitizer == NULL && symbol_table_next(&table, &function)) {
            sanitizer = allocator_name_sanitizer(function.name);
        }
    }
    return sanitizer == NULL && is_like_a_sanitizer(module) ? "a sanitizer" : sanitizer;
}

bool allocator_scan_has_allocator(const struct allocator_scan *scan)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        switch ((enum agent_effect)agent_hook_shape(scan->entries.items[i].hook).effect) {
        case AGENT_ALLOCATES:
        case AGENT_ALLOCATES_OR_THROWS:
        case AGENT_ALLOCATES_AT:
        case AGENT_RESIZES:
        case AGENT_RESIZES_OR_FREES:
            return true;
        case AGENT_COPIES_TEXT:
        case AGENT_RESIZES_IN_PLACE:
        case AGENT_FREES:
        case AGENT_CHANGES_MODULES:
        case AGENT_EXECUTES:
        case AGENT_CONFINES:
        case AGENT_MAPS:
        case AGENT_EXITS:
        case AGENT_LIMITS:
            break;
        }
    }
    return false;
}

void allocator_scan_explain(const struct allocator_scan *scan,
                            const struct elf_file *module,
                            const char *path,
                            struct strbuf *out)
{
    const struct bytes build_id = elf_file_build_id(module);
    if (scan->lacks_thread_pointer) {
        strbuf_printf(out,
                      "'%s' is built without glibc and musl, so its threads have no thread "
                      "pointer, and cairn cannot tell them apart",
                      path);
        return;
    }
    strbuf_printf(out,
                  "'%s' contains %s, but has no symbols that name its functions, so its "
                  "allocations are not recorded",
                  path, scan->hidden);
    strbuf_append_text(out, "; an unstripped build would help");
    if (build_id.len > 0) {
        strbuf_append_text(out, ", or in /usr/lib/debug the debug file of build-id ");
    }
    strbuf_append_hex(out, build_id);
}
