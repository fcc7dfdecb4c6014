// SPDX-License-Identifier: MIT
#include "profile/model/deferred_lookup.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/hex.h"

DEFINE_VEC(symbol_query_vec, struct symbol_query);
DEFINE_VEC(done_vec, bool);

struct deferred_lookup {
    struct deferred_lookup_options options;
    struct symbolizer *symbolizer; // owned
    struct deferred_symbols found; // owned until it is taken
    struct done_vec is_done;       // owned; by frame: 1 after its lookup
    struct u32_vec symbol_modules; // owned; by module: its id in the symbolizer

    // The current step.
    struct progress *progress;    // borrowed, may be NULL
    const struct late_code *code; // borrowed
    uint32_t module;              // the current module
    struct u32_vec frame_order;   // owned; frames to look up, grouped by module
    struct u32_vec module_first;  // owned; by module, start of its group; and the end
};

void deferred_symbols_release(struct deferred_symbols *symbols)
{
    string_table_release(&symbols->texts);
    symbol_frame_vec_release(&symbols->frames);
    symbol_chain_vec_release(&symbols->chains);
    late_module_vec_release(&symbols->modules);
}

void deferred_lookup_free(struct deferred_lookup *lookup)
{
    if (lookup == NULL) {
        return;
    }
    symbolizer_free(lookup->symbolizer);
    deferred_symbols_release(&lookup->found);
    done_vec_release(&lookup->is_done);
    u32_vec_release(&lookup->symbol_modules);
    u32_vec_release(&lookup->frame_order);
    u32_vec_release(&lookup->module_first);
    free(lookup);
}

static bool show_progress(void *context, const char *module_path, size_t done, size_t total)
{
    (void)module_path;
    (void)done;
    (void)total;
    struct deferred_lookup *lookup = context;
    if (lookup->progress != NULL) {
        // Progress counts modules, not addresses: opening debug files takes the time.
        progress_update(lookup->progress, "looking up names", lookup->module,
                        lookup->code->module_count);
    }
    return lookup->options.go_on == NULL || lookup->options.go_on(lookup->options.context);
}

enum err deferred_lookup_new(const struct deferred_lookup_options *options,
                             struct deferred_lookup **out)
{
    struct deferred_lookup *lookup = calloc(1, sizeof(*lookup));
    if (lookup == NULL) {
        return ERR_NO_MEMORY;
    }
    lookup->options = *options;
    const struct symbolizer_options how = {.strings = &lookup->found.texts,
                                           .sources = options->sources,
                                           .keep_bytes = options->keep_bytes,
                                           .progress = show_progress,
                                           .progress_context = lookup};
    const enum err err = symbolizer_new(&how, &lookup->symbolizer);
    if (err != ERR_OK) {
        free(lookup);
        return err;
    }
    *out = lookup;
    return ERR_OK;
}

// Whether the frame can have names and was not looked up yet.
static bool is_wanted(const struct deferred_lookup *lookup, size_t index)
{
    const struct rec_frame *frame = &lookup->code->frames[index];
    if (lookup->is_done.items[index] || frame->module >= lookup->code->module_count ||
        (frame->flags & (REC_FRAME_CUT | REC_FRAME_LOADED)) != 0) {
        return false;
    }
    const struct late_code_module *module = &lookup->code->modules[frame->module];
    return !module->is_left_alone && (frame->symbol_count == 0 || module->is_named);
}

// Sort the frames by module (counting sort).
static MUST_USE enum err group_frames(struct deferred_lookup *lookup)
{
    const struct late_code *code = lookup->code;
    u32_vec_clear(&lookup->module_first);
    TRY(u32_vec_resize(&lookup->module_first, code->module_count + 1));
    uint32_t *first = lookup->module_first.items;
    uint32_t total = 0;
    for (size_t i = 0; i < code->frame_count; i++) {
        if (is_wanted(lookup, i)) {
            first[code->frames[i].module + 1]++;
            total++;
        }
    }
    for (size_t i = 0; i < code->module_count; i++) {
        first[i + 1] += first[i];
    }
    TRY(u32_vec_resize(&lookup->frame_order, total));
    CLEANUP(u32_vec_release) struct u32_vec next = {0};
    TRY(u32_vec_resize(&next, code->module_count));
    for (size_t i = 0; i < code->frame_count; i++) {
        const uint32_t module = code->frames[i].module;
        if (is_wanted(lookup, i)) {
            lookup->frame_order.items[first[module] + next.items[module]++] = (uint32_t)i;
        }
    }
    return ERR_OK;
}

// Look up frames[0..count), all of `module`. A cancelled step keeps its results.
static MUST_USE enum err resolve_frames(struct deferred_lookup *lookup,
                                        uint32_t module,
                                        const uint32_t *frames,
                                        size_t count)
{
    const struct symbol_chain unasked = {.first = UINT32_MAX};
    CLEANUP(symbol_query_vec_release) struct symbol_query_vec queries = {0};
    CLEANUP(symbol_chain_vec_release) struct symbol_chain_vec chains = {0};
    TRY(symbol_query_vec_reserve(&queries, count));
    TRY(symbol_chain_vec_reserve(&chains, count));
    for (size_t i = 0; i < count; i++) {
        const struct rec_frame *frame = &lookup->code->frames[frames[i]];
        const struct symbol_query query = {.address = frame->offset,
                                           .is_exact = (frame->flags & REC_FRAME_EXACT_PC) != 0};
        TRY(symbol_query_vec_push(&queries, query));
        TRY(symbol_chain_vec_push(&chains, unasked));
    }
    const enum err err =
        symbolizer_resolve(lookup->symbolizer, lookup->symbol_modules.items[module], queries.items,
                           count, chains.items, &lookup->found.frames);
    for (size_t i = 0; i < count && chains.items[i].first != unasked.first; i++) {
        lookup->found.chains.items[frames[i]] = chains.items[i];
        lookup->is_done.items[frames[i]] = true;
    }
    return err;
}

static MUST_USE enum err resolve_module(struct deferred_lookup *lookup, uint32_t module)
{
    const uint32_t first = lookup->module_first.items[module];
    const uint32_t count = lookup->module_first.items[module + 1] - first;
    const struct late_code_module *entry = &lookup->code->modules[module];
    uint32_t *symbol_module = &lookup->symbol_modules.items[module];
    struct late_module *late = &lookup->found.modules.items[module];
    if (count == 0) {
        return ERR_OK;
    }
    if (*symbol_module == REC_NONE) {
        uint8_t build_id[64];
        TRY(symbolizer_add_module(lookup->symbolizer, entry->path,
                                  hex_parse(entry->build_id, build_id, sizeof(build_id)),
                                  symbol_module));
        if (entry->is_named) {
            symbolizer_want_debug_info(lookup->symbolizer, *symbol_module);
        }
    }
    TRY(resolve_frames(lookup, module, lookup->frame_order.items + first, count));
    const struct symbol_coverage coverage = symbolizer_coverage(lookup->symbolizer, *symbol_module);
    late->is_known = true;
    late->is_better = coverage.gap == SYMBOL_GAP_NONE;
    late->gap = coverage.gap;
    TRY(string_table_intern_text(&lookup->found.texts, coverage.source, &late->source));
    return string_table_intern_text(&lookup->found.texts, coverage.advice, &late->advice);
}

// Make room for all modules and frames of the step.
static MUST_USE enum err make_room(struct deferred_lookup *lookup)
{
    const struct late_code *code = lookup->code;
    while (lookup->symbol_modules.len < code->module_count) {
        TRY(u32_vec_push(&lookup->symbol_modules, REC_NONE));
    }
    TRY(late_module_vec_resize(&lookup->found.modules, code->module_count));
    TRY(symbol_chain_vec_resize(&lookup->found.chains, code->frame_count));
    return done_vec_resize(&lookup->is_done, code->frame_count);
}

enum err deferred_lookup_step(struct deferred_lookup *lookup,
                              const struct late_code *code,
                              struct progress *progress)
{
    lookup->code = code;
    lookup->progress = progress;
    TRY(make_room(lookup));
    TRY(group_frames(lookup));
    for (uint32_t i = 0; i < code->module_count; i++) {
        lookup->module = i;
        TRY(show_progress(lookup, "", 0, 0) ? ERR_OK : ERR_CANCELLED);
        TRY(resolve_module(lookup, i));
    }
    return ERR_OK;
}

void deferred_lookup_take(struct deferred_lookup *lookup, struct deferred_symbols *out)
{
    symbolizer_store(lookup->symbolizer);
    *out = TAKE(lookup->found);
}
