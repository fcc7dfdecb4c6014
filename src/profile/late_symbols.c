// SPDX-License-Identifier: MIT
// late_symbols: a recording that is named when it is opened. See late_symbols.h.
#include "profile/late_symbols.h"

#include "base/compiler.h"

void late_symbols_release(struct late_symbols *symbols)
{
    string_table_release(&symbols->texts);
    symbol_frame_vec_release(&symbols->frames);
    symbol_chain_vec_release(&symbols->chains);
    late_module_vec_release(&symbols->modules);
}

static bool is_needed(const struct recording *recording)
{
    return recording->meta.state == REC_STATE_RUNNING || recording->symbol_count == 0 ||
           (recording->meta.unknown & REC_UNKNOWN_NAMES) != 0;
}

static void lookup_freep(struct late_lookup **lookup)
{
    late_lookup_free(*lookup);
}

enum err late_symbols_find(const struct recording *recording,
                           const struct name_sources *sources,
                           struct late_lookup *lookup,
                           struct progress *progress,
                           struct late_symbols *out)
{
    if (!is_needed(recording)) {
        *out = (struct late_symbols){0};
        return ERR_OK;
    }
    CLEANUP(late_code_module_vec_release) struct late_code_module_vec modules = {0};
    CLEANUP(lookup_freep) struct late_lookup *own = NULL;
    TRY(late_code_module_vec_reserve(&modules, recording->module_count));
    for (size_t i = 0; i < recording->module_count; i++) {
        const struct rec_module *module = &recording->modules[i];
        TRY(late_code_module_vec_push(
            &modules,
            (struct late_code_module){.path = rec_string_get(recording, module->path),
                                      .build_id = rec_string_get(recording, module->build_id)}));
    }
    const struct late_code code = {.modules = modules.items,
                                   .module_count = modules.len,
                                   .frames = recording->frames,
                                   .frame_count = recording->frame_count};
    if (lookup == NULL) {
        const struct late_lookup_options options = {
            .sources = sources != NULL ? *sources : (struct name_sources){0}};
        TRY(late_lookup_new(&options, &own));
        lookup = own;
    }
    TRY(late_lookup_step(lookup, &code, progress));
    late_lookup_take(lookup, out);
    return ERR_OK;
}
