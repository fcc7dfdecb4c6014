// SPDX-License-Identifier: MIT
#include "symbols/symbolizer.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "host/text/strbuf.h"
#include "symbols/dwarf/frame_texts.h"
#include "symbols/name_memo.h"
#include "symbols/symbol_source.h"

enum {
    QUERIES_PER_PROGRESS = 16
};

struct module {
    char *path;     // owned
    char *build_id; // owned bytes
    size_t build_id_bytes;
    struct symbol_source files; // owned, while is_open
    uint64_t counted_bytes;     // of `files`, in open_bytes
    bool is_open;
    bool wants_debug_info; // use only debug information
    struct name_memo memo; // owned
    enum symbol_gap gap;
    struct strbuf source;
    struct strbuf advice;
};

DEFINE_VEC(module_vec, struct module);

struct symbolizer {
    struct symbolizer_options options;
    struct module_vec modules;

    uint64_t open_bytes; // symbol_source_bytes() of the open modules

    struct frame_texts texts;            // owned; of the open modules
    struct dwarf_frame_vec dwarf_frames; // scratch
};

enum err symbolizer_new(const struct symbolizer_options *options, struct symbolizer **out)
{
    struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
    if (symbolizer == NULL) {
        return ERR_NO_MEMORY;
    }
    symbolizer->options = *options;
    symbolizer->texts.strings = options->strings;
    *out = symbolizer;
    return ERR_OK;
}

static void module_release(struct module *module)
{
    free(module->path);
    free(module->build_id);
    if (module->is_open) {
        symbol_source_close(&module->files);
    }
    name_memo_release(&module->memo);
    strbuf_release(&module->source);
    strbuf_release(&module->advice);
    *module = (struct module){0};
}

void symbolizer_free(struct symbolizer *symbolizer)
{
    if (symbolizer == NULL) {
        return;
    }
    for (size_t i = 0; i < symbolizer->modules.len; i++) {
        module_release(&symbolizer->modules.items[i]);
    }
    module_vec_release(&symbolizer->modules);
    frame_texts_release(&symbolizer->texts);
    dwarf_frame_vec_release(&symbolizer->dwarf_frames);
    free(symbolizer);
}

// Move `module` into the list, and zero it.
static enum err
take_module(struct symbolizer *symbolizer, struct module *module, uint32_t *out_module)
{
    if (symbolizer->modules.len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    module->gap = SYMBOL_GAP_NOT_RESOLVED;
    TRY(module_vec_push(&symbolizer->modules, *module));
    *module = (struct module){0};
    *out_module = (uint32_t)(symbolizer->modules.len - 1);
    return ERR_OK;
}

enum err symbolizer_add_module(struct symbolizer *symbolizer,
                               const char *path,
                               struct bytes build_id,
                               uint32_t *out_module)
{
    CLEANUP(module_release)
    struct module module = {
        .path = strdup(path), .build_id = malloc(build_id.len + 1), .build_id_bytes = build_id.len};
    if (module.path == NULL || module.build_id == NULL) {
        return ERR_NO_MEMORY;
    }
    if (build_id.len > 0) {
        memcpy(module.build_id, build_id.data, build_id.len);
    }
    return take_module(symbolizer, &module, out_module);
}

void symbolizer_want_debug_info(struct symbolizer *symbolizer, uint32_t module)
{
    symbolizer->modules.items[module].wants_debug_info = true;
}

static enum err append_frame(struct symbol_frame_vec *out, struct symbol_frame frame)
{
    return out->len < UINT32_MAX ? symbol_frame_vec_push(out, frame) : ERR_LIMIT;
}

static bool is_mangled(const char *name)
{
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

// Find or add the name of one frame. For the physical function, the symbol table may have the
// mangled name where DWARF has only the plain one.
static enum err name_frame(struct symbolizer *s,
                           const struct symbol_source *source,
                           uint64_t address,
                           struct dwarf_frame *frame,
                           struct symbol_frame *out)
{
    if (frame->name != NULL && frame->is_linkage_name) {
        return frame_texts_function(&s->texts, frame->name, &out->function);
    }
    const char *symbol = out->is_inlined ? NULL : symtab_find(&source->symtab, address);
    if (frame->name == NULL || (symbol != NULL && is_mangled(symbol))) {
        return frame_texts_function(&s->texts, symbol, &out->function);
    }
    return frame_texts_scoped(&s->texts, frame, &out->function);
}

static enum err resolve_dwarf(struct symbolizer *s,
                              struct symbol_source *source,
                              uint64_t address,
                              struct symbol_frame_vec *out)
{
    if (!source->has_dwarf) {
        return ERR_OK;
    }
    TRY(dwarf_reader_find(&source->dwarf, address, &s->dwarf_frames));
    for (size_t i = 0; i < s->dwarf_frames.len; i++) {
        struct dwarf_frame *found = &s->dwarf_frames.items[i];
        struct symbol_frame frame = {.line = found->place.line,
                                     .is_inlined = i + 1 < s->dwarf_frames.len};
        TRY(name_frame(s, source, address, found, &frame));
        TRY(frame_texts_file(&s->texts, found, &frame.file));
        TRY(append_frame(out, frame));
    }
    return ERR_OK;
}

static enum err resolve_in_files(struct symbolizer *s,
                                 struct module *module,
                                 uint64_t address,
                                 struct symbol_frame_vec *out)
{
    struct symbol_source *source = &module->files;
    size_t before = out->len;
    TRY(resolve_dwarf(s, source, address, out));
    if (out->len != before) {
        return ERR_OK;
    }
    struct symbol_frame frame = {0};
    TRY(frame_texts_function(&s->texts, symtab_find(&source->symtab, address), &frame.function));
    return frame.function != 0 ? append_frame(out, frame) : ERR_OK;
}

static struct bytes build_id_of(const struct module *module)
{
    return (struct bytes){.data = (const uint8_t *)module->build_id, .len = module->build_id_bytes};
}

// Return the key of the module in the cache: its build-id, unless the file that claims it may be
// another user's; else the identity of its file. A file system in user space (FUSE) makes that up.
static struct cache_key key_of(const struct module *module, const struct elf_file *file)
{
    struct stat status;
    struct statfs system;
    if (module->build_id_bytes > 0 && (file->elf == NULL || file->is_trusted)) {
        return cache_key_of_build_id(build_id_of(module));
    }
    if (file->elf == NULL || fstat(file->fd, &status) != 0 || fstatfs(file->fd, &system) != 0 ||
        system.f_type == FUSE_SUPER_MAGIC) {
        return (struct cache_key){0};
    }
    return cache_key_of_file(module->path, &status);
}

// Return whether the answers may be kept: the file that was opened is the one whose names were
// read, and no other user has written the debug information for it.
static bool may_keep(const struct module *module)
{
    const struct symbol_source *files = &module->files;
    const struct cache_key key = key_of(module, &files->module);
    return cache_key_is_same(&key, &module->memo.key) &&
           (files->debug.elf == NULL || files->debug.is_trusted);
}

// Keep the sum of all open modules. Lookups may add to a module's memory.
static void count_bytes(struct symbolizer *s, struct module *module)
{
    const uint64_t bytes = module->is_open ? symbol_source_bytes(&module->files) : 0;
    s->open_bytes += bytes - module->counted_bytes;
    module->counted_bytes = bytes;
}

static enum err open_module(struct symbolizer *s, struct module *module)
{
    TRY(symbol_source_open(&module->files, &s->options.sources, module->path, build_id_of(module),
                           module->wants_debug_info));
    module->is_open = true;
    count_bytes(s, module);
    module->gap = module->files.gap;
    strbuf_clear(&module->source);
    strbuf_clear(&module->advice);
    strbuf_append_text(&module->source, symbol_source_path(&module->files));
    symbol_source_advise(&module->files, module->path, &module->advice);
    if (!may_keep(module)) {
        name_memo_close(&module->memo);
    }
    return ERR_OK;
}

// Read the module's names from the cache.
static enum err open_memo(struct symbolizer *s, struct module *module)
{
    struct elf_file file = {.fd = -1};
    if (s->options.sources.cache == NULL) {
        name_memo_close(&module->memo);
        return ERR_OK;
    }
    // Only a module with a build-id may have names in the cache although it cannot be opened.
    if (debug_search_module(&s->options.sources, module->path, build_id_of(module), &file, NULL) ==
        ERR_NO_MEMORY) {
        return ERR_NO_MEMORY;
    }
    const struct cache_key key = key_of(module, &file);
    elf_file_close(&file);
    TRY(name_memo_open(&module->memo, s->options.sources.cache, &key));
    if (module->memo.entry.is_found) {
        module->gap = SYMBOL_GAP_NONE; // until a query misses the cache
        strbuf_clear(&module->source);
        strbuf_append_text(&module->source, name_memo_source(&module->memo));
    }
    return ERR_OK;
}

// Return the start of the function if the chain frames->items[first ..] does not name it; else 0.
static uint64_t start_of_unnamed(struct module *module,
                                 uint64_t address,
                                 const struct symbol_frame_vec *frames,
                                 size_t first)
{
    const bool is_named = frames->len > first && frames->items[frames->len - 1].function != 0;
    return is_named || !module->is_open ? 0 : function_starts_find(&module->files.starts, address);
}

// Answer one query from the cache or from the files. The first query that misses the cache opens
// the files.
static enum err resolve_one(struct symbolizer *s,
                            struct module *module,
                            uint64_t address,
                            struct symbol_frame_vec *out,
                            uint64_t *out_function_start)
{
    const size_t first = out->len;
    bool is_known;
    TRY(name_memo_find(&module->memo, address, s->options.strings, out, out_function_start,
                       &is_known));
    if (is_known) {
        return ERR_OK;
    }
    if (!module->is_open) {
        TRY(open_module(s, module));
    }
    TRY(resolve_in_files(s, module, address, out));
    *out_function_start = start_of_unnamed(module, address, out, first);
    // Without debug information a later run may find a better answer, so do not cache this one.
    return module->gap == SYMBOL_GAP_NONE
               ? name_memo_add(&module->memo, address, *out_function_start, out->items + first,
                               (uint32_t)(out->len - first))
               : ERR_OK;
}

static enum err resolve_all(struct symbolizer *s,
                            struct module *module,
                            const struct symbol_query *queries,
                            size_t count,
                            struct symbol_chain *out_chains,
                            struct symbol_frame_vec *out_frames)
{
    const struct symbolizer_options *options = &s->options;
    for (size_t i = 0; i < count; i++) {
        if (i % QUERIES_PER_PROGRESS == 0 && options->progress != NULL &&
            !options->progress(options->progress_context, module->path, i, count)) {
            return ERR_CANCELLED;
        }
        size_t first = out_frames->len;
        uint64_t address = queries[i].address;
        address -= !queries[i].is_exact && address > 0;
        uint64_t function_start = 0;
        TRY(resolve_one(s, module, address, out_frames, &function_start));
        out_chains[i] = (struct symbol_chain){.first = (uint32_t)first,
                                              .count = (uint32_t)(out_frames->len - first),
                                              .function_start = function_start};
    }
    return ERR_OK;
}

// Return whether the program gave the module its name and the module has no code: "[pool nodes]",
// "[event sent]".
static bool is_named_by_program(const struct module *module)
{
    return strncmp(module->path, "[pool ", 6) == 0 || strncmp(module->path, "[event ", 7) == 0;
}

static enum err resolve_named(struct symbolizer *s,
                              struct module *module,
                              size_t count,
                              struct symbol_chain *out_chains,
                              struct symbol_frame_vec *out_frames)
{
    struct symbol_frame frame = {0};
    module->gap = SYMBOL_GAP_NONE;
    TRY(string_table_intern(s->options.strings, module->path, strlen(module->path),
                            &frame.function));
    for (size_t i = 0; i < count; i++) {
        out_chains[i] = (struct symbol_chain){.first = (uint32_t)out_frames->len, .count = 1};
        TRY(append_frame(out_frames, frame));
    }
    return ERR_OK;
}

// Return NAME:/FILE of a module that stands for a function of Python, whose addresses are lines
// (target/preload/python/python_code.h); NULL for any other module.
static const char *python_code_of(const struct module *module)
{
    static const char prefix[] = "[python] ";
    const bool is_python = strncmp(module->path, prefix, sizeof(prefix) - 1) == 0;
    return is_python ? module->path + sizeof(prefix) - 1 : NULL;
}

static enum err resolve_python(struct symbolizer *s,
                               struct module *module,
                               const struct symbol_query *queries,
                               size_t count,
                               struct symbol_chain *out_chains,
                               struct symbol_frame_vec *out_frames)
{
    const char *name = python_code_of(module);
    const char *end = strstr(name, ":/");
    const size_t name_bytes = end != NULL ? (size_t)(end - name) : strlen(name);
    const char *file = end != NULL ? end + 2 : "";
    struct symbol_frame frame = {0};
    module->gap = SYMBOL_GAP_NONE;
    TRY(string_table_intern(s->options.strings, name, name_bytes, &frame.function));
    TRY(string_table_intern(s->options.strings, file, strlen(file), &frame.file));
    for (size_t i = 0; i < count; i++) {
        const uint64_t line = queries[i].address - (!queries[i].is_exact && queries[i].address > 0);
        frame.line = line <= UINT32_MAX ? (uint32_t)line : 0;
        out_chains[i] = (struct symbol_chain){.first = (uint32_t)out_frames->len, .count = 1};
        TRY(append_frame(out_frames, frame));
    }
    return ERR_OK;
}

static void close_module(struct symbolizer *s, struct module *module)
{
    if (module->is_open) {
        symbol_source_close(&module->files);
        module->is_open = false;
        count_bytes(s, module);
    }
    frame_texts_clear(&s->texts); // other texts may get these addresses
}

enum err symbolizer_resolve(struct symbolizer *symbolizer,
                            uint32_t module_id,
                            const struct symbol_query *queries,
                            size_t count,
                            struct symbol_chain *out_chains,
                            struct symbol_frame_vec *out_frames)
{
    if (module_id >= symbolizer->modules.len) {
        return ERR_INVALID;
    }
    struct module *module = &symbolizer->modules.items[module_id];
    if (is_named_by_program(module)) {
        return resolve_named(symbolizer, module, count, out_chains, out_frames);
    }
    if (python_code_of(module) != NULL) {
        return resolve_python(symbolizer, module, queries, count, out_chains, out_frames);
    }
    if (!module->memo.is_open) {
        TRY(open_memo(symbolizer, module));
    }
    const enum err err = resolve_all(symbolizer, module, queries, count, out_chains, out_frames);
    count_bytes(symbolizer, module);
    if (symbolizer->open_bytes > symbolizer->options.keep_bytes) {
        close_module(symbolizer, module);
    }
    return err;
}

void symbolizer_store(struct symbolizer *symbolizer)
{
    for (size_t i = 0; i < symbolizer->modules.len; i++) {
        struct module *module = &symbolizer->modules.items[i];
        name_memo_store(&module->memo, module->path, strbuf_text(&module->source),
                        symbolizer->options.strings);
    }
}

struct symbol_coverage symbolizer_coverage(const struct symbolizer *symbolizer, uint32_t module_id)
{
    const struct module *module = &symbolizer->modules.items[module_id];
    return (struct symbol_coverage){.gap = module->gap,
                                    .source = strbuf_text(&module->source),
                                    .advice = strbuf_text(&module->advice)};
}
