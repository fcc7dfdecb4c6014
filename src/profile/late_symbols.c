// SPDX-License-Identifier: MIT
// late_symbols: asking the symbolizer module by module. See late_symbols.h.
#include "profile/late_symbols.h"

#include "base/compiler.h"
#include "host/strbuf.h"

DEFINE_VEC(symbol_query_vec, struct symbol_query);

struct lookup {
    const struct recording *recording; // borrowed
    struct progress *progress;         // borrowed, may be NULL
    struct symbolizer *symbolizer;     // owned
    struct late_symbols found;         // owned until it is handed out
    struct u32_vec frame_order;        // owned; frames without symbols, grouped by module
    struct u32_vec module_first;       // owned; by module, where its group begins; and the end
};

static void lookup_release(struct lookup *lookup)
{
    symbolizer_free(lookup->symbolizer);
    late_symbols_release(&lookup->found);
    u32_vec_release(&lookup->frame_order);
    u32_vec_release(&lookup->module_first);
}

static bool is_needed(const struct recording *recording)
{
    return recording->meta.state == REC_STATE_RUNNING || recording->symbol_count == 0;
}

static bool lacks_symbols(const struct rec_frame *frame)
{
    return frame->symbol_count == 0 && frame->module != REC_NONE &&
           (frame->flags & (REC_FRAME_CUT | REC_FRAME_LOADED)) == 0;
}

// Counting sort of the frames by module.
static MUST_USE enum err group_frames(struct lookup *lookup)
{
    const struct recording *recording = lookup->recording;
    TRY(u32_vec_resize(&lookup->module_first, recording->module_count + 1));
    uint32_t *first = lookup->module_first.items;
    uint32_t total = 0;
    for (size_t i = 0; i < recording->frame_count; i++) {
        if (lacks_symbols(&recording->frames[i])) {
            first[recording->frames[i].module + 1]++;
            total++;
        }
    }
    for (size_t i = 0; i < recording->module_count; i++) {
        first[i + 1] += first[i];
    }
    TRY(u32_vec_resize(&lookup->frame_order, total));
    CLEANUP(u32_vec_release) struct u32_vec next = {0};
    TRY(u32_vec_resize(&next, recording->module_count));
    for (size_t i = 0; i < recording->frame_count; i++) {
        uint32_t module = recording->frames[i].module;
        if (lacks_symbols(&recording->frames[i])) {
            lookup->frame_order.items[first[module] + next.items[module]++] = (uint32_t)i;
        }
    }
    return ERR_OK;
}

static bool show_progress(void *context, const char *module_path, size_t done, size_t total)
{
    (void)module_path;
    (void)done;
    (void)total;
    struct lookup *lookup = context;
    if (lookup->progress != NULL) {
        // By module rather than by address: the time goes into opening debug files.
        progress_update(lookup->progress, "looking up names", lookup->found.modules.len,
                        lookup->recording->module_count);
    }
    return true;
}

static int hex_digit(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

// Build-ids are lower-case hexadecimal in a recording; one that is not counts as none.
static struct bytes parse_build_id(const char *text, uint8_t *out, size_t max_bytes)
{
    size_t len = 0;
    for (; text[0] != '\0'; text += 2) {
        int high = hex_digit(text[0]);
        int low = high >= 0 ? hex_digit(text[1]) : -1;
        if (low < 0 || len == max_bytes) {
            return (struct bytes){0};
        }
        out[len++] = (uint8_t)(high << 4 | low);
    }
    return (struct bytes){.data = out, .len = len};
}

static MUST_USE enum err
resolve_frames(struct lookup *lookup, uint32_t module, uint32_t symbol_module)
{
    uint32_t first = lookup->module_first.items[module];
    uint32_t count = lookup->module_first.items[module + 1] - first;
    CLEANUP(symbol_query_vec_release) struct symbol_query_vec queries = {0};
    CLEANUP(symbol_chain_vec_release) struct symbol_chain_vec chains = {0};
    TRY(symbol_query_vec_reserve(&queries, count));
    TRY(symbol_chain_vec_resize(&chains, count));
    for (uint32_t i = 0; i < count; i++) {
        const struct rec_frame *frame =
            &lookup->recording->frames[lookup->frame_order.items[first + i]];
        struct symbol_query query = {.address = frame->offset,
                                     .is_exact = (frame->flags & REC_FRAME_EXACT_PC) != 0};
        TRY(symbol_query_vec_push(&queries, query));
    }
    TRY(symbolizer_resolve(lookup->symbolizer, symbol_module, queries.items, count, chains.items,
                           &lookup->found.frames));
    for (uint32_t i = 0; i < count; i++) {
        lookup->found.chains.items[lookup->frame_order.items[first + i]] = chains.items[i];
    }
    return ERR_OK;
}

static MUST_USE enum err resolve_module(struct lookup *lookup, uint32_t module)
{
    struct late_module late = {0};
    if (lookup->module_first.items[module] != lookup->module_first.items[module + 1]) {
        const struct rec_module *entry = &lookup->recording->modules[module];
        uint8_t build_id[64];
        uint32_t symbol_module;
        TRY(symbolizer_add_module(lookup->symbolizer,
                                  rec_string_get(lookup->recording, entry->path),
                                  parse_build_id(rec_string_get(lookup->recording, entry->build_id),
                                                 build_id, sizeof(build_id)),
                                  &symbol_module));
        TRY(resolve_frames(lookup, module, symbol_module));
        struct symbol_coverage coverage = symbolizer_coverage(lookup->symbolizer, symbol_module);
        TRY(string_table_intern_text(&lookup->found.texts, coverage.source, &late.source));
        TRY(string_table_intern_text(&lookup->found.texts, coverage.advice, &late.advice));
    }
    return late_module_vec_push(&lookup->found.modules, late);
}

enum err late_symbols_find(const struct recording *recording,
                           struct progress *progress,
                           struct late_symbols *out)
{
    if (!is_needed(recording)) {
        *out = (struct late_symbols){0};
        return ERR_OK;
    }
    CLEANUP(lookup_release) struct lookup lookup = {.recording = recording, .progress = progress};
    struct symbolizer_options options = {
        .strings = &lookup.found.texts, .progress = show_progress, .progress_context = &lookup};
    TRY(symbolizer_new(&options, &lookup.symbolizer));
    TRY(group_frames(&lookup));
    TRY(symbol_chain_vec_resize(&lookup.found.chains, recording->frame_count));
    for (size_t i = 0; i < recording->module_count; i++) {
        (void)show_progress(&lookup, "", 0, 0); // never gives up
        TRY(resolve_module(&lookup, (uint32_t)i));
    }
    *out = lookup.found;
    lookup.found = (struct late_symbols){0};
    return ERR_OK;
}

void late_symbols_release(struct late_symbols *symbols)
{
    string_table_release(&symbols->texts);
    symbol_frame_vec_release(&symbols->frames);
    symbol_chain_vec_release(&symbols->chains);
    late_module_vec_release(&symbols->modules);
}
