// SPDX-License-Identifier: MIT
#include "profile/names/named_recording.h"

#include "base/compiler.h"

void named_recording_release(struct named_recording *named)
{
    named_frame_vec_release(&named->frames);
    named_symbol_vec_release(&named->symbols);
    named_module_vec_release(&named->modules);
    named_text_vec_release(&named->texts);
    u64_vec_release(&named->text_offsets);
    *named = (struct named_recording){0};
}

// Copy the recording's strings, then the names that were found: id n of the latter becomes `count +
// n - 1`.
static MUST_USE enum err take_strings(struct named_recording *named, const struct profile *profile)
{
    const struct rec_strings *old = &profile->recording.strings;
    const struct string_table *found = &profile->late.texts;
    const size_t found_count = string_table_count(found) - 1;
    if (found_count >= UINT32_MAX - old->count) {
        return ERR_LIMIT;
    }
    TRY(named_text_vec_resize(&named->texts, old->data_bytes + found->texts.len));
    TRY(u64_vec_resize(&named->text_offsets, old->count + found_count));
    memcpy(named->texts.items, old->data, old->data_bytes);
    memcpy(named->text_offsets.items, old->offsets, old->count * sizeof(uint64_t));
    if (found_count > 0) {
        memcpy(named->texts.items + old->data_bytes, found->texts.items, found->texts.len);
    }
    for (size_t i = 0; i < found_count; i++) {
        named->text_offsets.items[old->count + i] =
            old->data_bytes + found->entries.items[i].offset;
    }
    named->recording.strings = (struct rec_strings){.data = named->texts.items,
                                                    .offsets = named->text_offsets.items,
                                                    .count = old->count + (uint32_t)found_count,
                                                    .data_bytes = named->texts.len};
    return ERR_OK;
}

static rec_string string_of(const struct profile *profile, uint32_t found)
{
    return found == 0 ? 0 : profile->recording.strings.count + found - 1;
}

static MUST_USE enum err
add_found(struct named_recording *named, const struct profile *profile, struct symbol_chain chain)
{
    for (uint32_t i = 0; i < chain.count; i++) {
        const struct symbol_frame *found = &profile->late.frames.items[chain.first + i];
        const struct rec_symbol symbol = {.function = string_of(profile, found->function),
                                          .file = string_of(profile, found->file),
                                          .line = found->line};
        TRY(named_symbol_vec_push(&named->symbols, symbol));
    }
    return ERR_OK;
}

// Count a frame in its module: the last symbol is the real function.
static void count_frame(struct named_recording *named, const struct rec_frame *frame)
{
    if (frame->module == REC_NONE) {
        return;
    }
    const struct rec_symbol *real =
        frame->symbol_count > 0
            ? &named->symbols.items[frame->symbol_first + frame->symbol_count - 1]
            : NULL;
    const bool has_function = real != NULL && real->function != 0;
    struct rec_module *module = &named->modules.items[frame->module];
    module->frames++;
    module->frames_with_function += has_function;
    module->frames_with_line += has_function && real->line != 0;
}

// Append the new symbols to the recording's. Frames without new names keep their symbols.
static MUST_USE enum err take_frames(struct named_recording *named, const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    const struct symbol_chain_vec *chains = &profile->late.chains;
    TRY(named_frame_vec_reserve(&named->frames, recording->frame_count));
    TRY(named_symbol_vec_reserve(&named->symbols, recording->symbol_count));
    for (size_t i = 0; i < recording->symbol_count; i++) {
        named->symbols.items[named->symbols.len++] = recording->symbols[i];
    }
    for (size_t i = 0; i < recording->frame_count; i++) {
        struct rec_frame frame = recording->frames[i];
        const uint64_t start = i < chains->len ? chains->items[i].function_start : 0;
        if (start != 0 && start != frame.function_start) {
            frame.function_start = start;
            named->is_changed = true;
        }
        if (i < chains->len && chains->items[i].count > 0) {
            frame.symbol_first = (uint32_t)named->symbols.len;
            frame.symbol_count = chains->items[i].count;
            named->named_frames++;
            named->is_changed = true;
            TRY(add_found(named, profile, chains->items[i]));
        }
        if (named->symbols.len > UINT32_MAX) {
            return ERR_LIMIT;
        }
        count_frame(named, &frame);
        TRY(named_frame_vec_push(&named->frames, frame));
    }
    return ERR_OK;
}

static MUST_USE enum err take_modules(struct named_recording *named, const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    const struct late_module_vec *found = &profile->late.modules;
    TRY(named_module_vec_reserve(&named->modules, recording->module_count));
    for (size_t i = 0; i < recording->module_count; i++) {
        struct rec_module module = recording->modules[i];
        const struct late_module *late = i < found->len ? &found->items[i] : NULL;
        if (late != NULL && late->is_known) {
            const rec_string source = string_of(profile, late->source);
            module.symbol_source =
                late->is_better || module.symbol_source == 0 ? source : module.symbol_source;
            // Advice for this machine need not help on the machine that reads the file.
            module.symbol_advice = late->is_better || module.symbol_advice == 0
                                       ? string_of(profile, late->advice)
                                       : module.symbol_advice;
            named->named_modules += late->is_better;
        }
        module.frames = 0;
        module.frames_with_function = 0;
        module.frames_with_line = 0;
        TRY(named_module_vec_push(&named->modules, module));
    }
    return ERR_OK;
}

enum err named_recording_make(const struct profile *profile, struct named_recording *out)
{
    *out = (struct named_recording){.recording = profile->recording};
    struct recording *recording = &out->recording;
    recording->owner = NULL;
    TRY(take_strings(out, profile));
    TRY(take_modules(out, profile));
    TRY(take_frames(out, profile));
    recording->frames = out->frames.items;
    recording->symbols = out->symbols.items;
    recording->symbol_count = out->symbols.len;
    recording->modules = out->modules.items;
    recording->meta.unknown &= ~(uint32_t)REC_UNKNOWN_NAMES;
    return ERR_OK;
}
