// SPDX-License-Identifier: MIT
#include "symbols/symbol_source.h"

#include <string.h>

#include "host/os/file.h"
#include "symbols/elf/debuginfod.h"

void symbol_source_close(struct symbol_source *source)
{
    symtab_release(&source->symtab);
    dwarf_reader_close(&source->dwarf);
    elf_file_close(&source->debug);
    elf_file_close(&source->module);
    source->has_dwarf = false;
    source->starts = (struct function_starts){0};
}

// ERR_NO_MEMORY must not look like a missing file.
static enum err unless_no_memory(enum err result)
{
    return result == ERR_NO_MEMORY ? ERR_NO_MEMORY : ERR_OK;
}

static enum err open_dwarf(struct symbol_source *source,
                           const struct name_sources *sources,
                           const char *path,
                           struct bytes build_id)
{
    struct elf_file *module = source->module.elf != NULL ? &source->module : NULL;
    struct elf_file *holder = module;
    if (module == NULL || !elf_file_has_dwarf(module)) {
        if (build_id.len == 0 && module != NULL) {
            build_id = elf_file_build_id(module);
        }
        enum err found = debug_search_dwarf(sources, path, build_id, module, &source->debug);
        TRY(unless_no_memory(found));
        holder = found == ERR_OK ? &source->debug : NULL;
    }
    if (holder == NULL) {
        return ERR_OK;
    }
    enum err opened = dwarf_reader_open(&source->dwarf, holder);
    source->has_dwarf = opened == ERR_OK;
    return unless_no_memory(opened);
}

static enum symbol_gap gap_of(const struct symbol_source *source, enum err module_result)
{
    if (source->has_dwarf) {
        return SYMBOL_GAP_NONE;
    }
    switch (module_result) {
    case ERR_OK:
        break;
    case ERR_CORRUPT:
        return SYMBOL_GAP_FILE_CHANGED;
    case ERR_UNSUPPORTED:
        return SYMBOL_GAP_DAMAGED;
    default:
        return SYMBOL_GAP_NO_FILE;
    }
    if (source->debug.elf != NULL || elf_file_has_dwarf(&source->module)) {
        return SYMBOL_GAP_DAMAGED;
    }
    return elf_file_has_symtab(&source->module) ? SYMBOL_GAP_NO_DEBUG_INFO : SYMBOL_GAP_STRIPPED;
}

enum err symbol_source_open(struct symbol_source *source,
                            const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            bool needs_dwarf)
{
    CLEANUP(symbol_source_close)
    struct symbol_source fresh = {.module = {.fd = -1}, .debug = {.fd = -1}};
    enum err found = debug_search_module(sources, path, build_id, &fresh.module, &fresh.trouble);
    TRY(unless_no_memory(found));
    TRY(open_dwarf(&fresh, sources, path, build_id));
    bool debug_has_symtab = fresh.debug.elf != NULL && elf_file_has_symtab(&fresh.debug);
    bool is_useless = needs_dwarf && !fresh.has_dwarf;
    if (debug_has_symtab) {
        TRY(symtab_init(&fresh.symtab, fresh.debug.elf));
    } else if (fresh.module.elf != NULL && !is_useless) {
        TRY(symtab_init(&fresh.symtab, fresh.module.elf));
    }
    if (fresh.module.elf != NULL) {
        function_starts_init(fresh.module.elf, &fresh.starts);
    }
    fresh.gap = gap_of(&fresh, found);
    *source = fresh;
    fresh = (struct symbol_source){.module = {.fd = -1}, .debug = {.fd = -1}};
    return ERR_OK;
}

uint64_t symbol_source_bytes(const struct symbol_source *source)
{
    const uint64_t files =
        source->has_dwarf ? source->module.size_bytes + source->debug.size_bytes : 0;
    return files + source->symtab.bytes + source->starts.frames.len;
}

const char *symbol_source_path(const struct symbol_source *source)
{
    if (source->debug.elf != NULL) {
        return source->debug.path;
    }
    return source->module.elf != NULL ? source->module.path : "";
}

// Packages with separate debug information that are common and in the main archives of Debian and
// Ubuntu.
static const struct {
    const char *file_prefix;
    const char *package;
} known_packages[] = {
    {"libc.so", "libc6-dbg"},       {"libc-2", "libc6-dbg"},   {"libm.so", "libc6-dbg"},
    {"libpthread.so", "libc6-dbg"}, {"libdl.so", "libc6-dbg"}, {"librt.so", "libc6-dbg"},
    {"libresolv.so", "libc6-dbg"},  {"ld-linux", "libc6-dbg"}, {"ld-2", "libc6-dbg"},
};

static bool is_of_the_system(const char *path)
{
    static const char *const places[] = {"/usr/local/", "/usr/", "/lib", "/bin/", "/sbin/"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (strncmp(path, places[i], strlen(places[i])) == 0) {
            return i != 0; // software that the user built is in /usr/local
        }
    }
    return false;
}

// Servers that were asked without success are no advice.
static const char *servers_advice(const char *path)
{
    return is_of_the_system(path) && !debuginfod_is_wanted() ? ", or set DEBUGINFOD_URLS" : "";
}

static void advise_debug_info(const char *path, struct strbuf *out)
{
    const char *base = path_file_name(path);
    if (!is_of_the_system(path)) {
        strbuf_append_text(out, "build it with -g and do not strip it, or name the directory of "
                                "its debug file with --debug-dir");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known_packages); i++) {
        const char *prefix = known_packages[i].file_prefix;
        if (strncmp(base, prefix, strlen(prefix)) == 0) {
            strbuf_printf(out, "install its debug symbols (Debian and Ubuntu: %s)%s",
                          known_packages[i].package, servers_advice(path));
            return;
        }
    }
    strbuf_printf(out, "install the debug symbols of its package%s", servers_advice(path));
}

void symbol_source_advise(const struct symbol_source *source, const char *path, struct strbuf *out)
{
    switch (source->gap) {
    case SYMBOL_GAP_NONE:
    case SYMBOL_GAP_NOT_RESOLVED:
        break;
    case SYMBOL_GAP_NO_FILE:
        // The kernel's own module is called linux-vdso.so.1 or [vdso] and is not on disk.
        if (*path == '/') {
            strbuf_printf(out,
                          "name a directory that contains a copy of it with --executable-dir%s",
                          servers_advice(path));
        }
        break;
    case SYMBOL_GAP_FILE_CHANGED:
        strbuf_printf(out,
                      "record again, or name a directory that contains the file that ran with "
                      "--executable-dir%s",
                      servers_advice(path));
        break;
    case SYMBOL_GAP_DAMAGED:
        strbuf_append_text(out, "build or install it again");
        break;
    case SYMBOL_GAP_NO_DEBUG_INFO:
    case SYMBOL_GAP_STRIPPED:
        advise_debug_info(path, out);
        break;
    }
}
