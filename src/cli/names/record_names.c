// SPDX-License-Identifier: MIT
// record_names: adds the symbolizer's answers to the tables of the recording. See record_names.h.
#include "cli/names/record_names.h"

#include "profile/model/deferred_symbols.h"

static MUST_USE enum err copy_text(const struct deferred_symbols *found,
                                   uint32_t id,
                                   struct string_table *strings,
                                   uint32_t *out)
{
    return string_table_intern_text(strings, string_table_get(&found->texts, id), out);
}

static MUST_USE enum err add_symbol(const struct deferred_symbols *found,
                                    const struct symbol_frame *frame,
                                    struct string_table *strings,
                                    struct rec_symbol_vec *symbols)
{
    struct rec_symbol symbol = {.line = frame->line};
    TRY(copy_text(found, frame->function, strings, &symbol.function));
    TRY(copy_text(found, frame->file, strings, &symbol.file));
    return rec_symbol_vec_push(symbols, symbol);
}

// Count a named frame in its module. The last symbol is the real function, not an inlined one.
static void count_names(struct recording *recording,
                        const struct rec_frame *frame,
                        const struct symbol_frame *real)
{
    if (frame->module == REC_NONE) {
        return;
    }
    struct rec_module *module = &recording->modules[frame->module];
    module->frames_with_function += real->function != 0;
    module->frames_with_line += real->function != 0 && real->line != 0;
}

static MUST_USE enum err add_frames(struct recording *recording,
                                    const struct deferred_symbols *found,
                                    struct string_table *strings,
                                    struct rec_symbol_vec *symbols)
{
    for (size_t i = 0; i < recording->frame_count; i++) {
        struct rec_frame *frame = &recording->frames[i];
        if (frame->symbol_count > 0) {
            continue; // of a JIT compiler: jit_names adds it
        }
        struct symbol_chain chain = found->chains.items[i];
        const struct symbol_frame *first = found->frames.items + chain.first;
        frame->symbol_first = (uint32_t)symbols->len;
        frame->symbol_count = chain.count;
        frame->function_start = chain.function_start;
        for (uint32_t symbol = 0; symbol < chain.count; symbol++) {
            TRY(add_symbol(found, &first[symbol], strings, symbols));
        }
        if (chain.count > 0) {
            count_names(recording, frame, &first[chain.count - 1]);
        }
    }
    return ERR_OK;
}

enum err record_names_add(struct recording *recording,
                          const struct name_sources *sources,
                          struct background_symbolizer *ahead,
                          struct string_table *strings,
                          struct rec_symbol_vec *symbols,
                          struct progress *progress)
{
    CLEANUP(deferred_symbols_release) struct deferred_symbols found = {0};
    struct deferred_lookup *lookup = background_symbolizer_end(ahead);
    TRY(deferred_symbols_find(recording, sources, lookup, progress, &found));
    if (sources->is_off) {
        recording->meta.unknown |= REC_UNKNOWN_NAMES; // the reader of the recording looks them up
        return ERR_OK;
    }
    for (size_t i = 0; i < found.modules.len; i++) {
        struct rec_module *module = &recording->modules[i];
        TRY(copy_text(&found, found.modules.items[i].source, strings, &module->symbol_source));
        TRY(copy_text(&found, found.modules.items[i].advice, strings, &module->symbol_advice));
    }
    return found.chains.len > 0 ? add_frames(recording, &found, strings, symbols) : ERR_OK;
}
