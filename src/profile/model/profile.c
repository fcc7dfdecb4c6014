// SPDX-License-Identifier: MIT
// profile: opens profiles, and has the lookups that all queries share. See profile.h.
#include "profile/model/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"

enum {
    SYMBOLS_PER_FRAME_MAX = 256
}; // deeper inlining than any compiler's: a damaged file

// The key of a text. A damaged file has numbers of texts that are not there.
static uint32_t key_of(const struct recording *recording, rec_string text)
{
    return text < recording->strings.count ? text : 0;
}

// Copy the symbols that the recording has for a frame. Return their number.
static size_t recorded_positions(const struct recording *recording,
                                 const struct rec_frame *frame,
                                 struct code_position *positions)
{
    size_t count = 0;
    for (; count < frame->symbol_count && count < SYMBOLS_PER_FRAME_MAX; count++) {
        const struct rec_symbol *symbol = &recording->symbols[frame->symbol_first + count];
        positions[count] = (struct code_position){
            .function = rec_string_get(recording, symbol->function),
            .file = rec_string_get(recording, symbol->file),
            .function_key = key_of(recording, symbol->function),
            .file_key = key_of(recording, symbol->file),
            .line = symbol->line,
        };
    }
    return count;
}

// Copy the symbols that deferred_symbols found. Return their number.
static size_t
late_positions(const struct deferred_symbols *late, size_t frame, struct code_position *positions)
{
    if (late->chains.len == 0) {
        return 0;
    }
    struct symbol_chain chain = late->chains.items[frame];
    size_t count = 0;
    for (; count < chain.count && count < SYMBOLS_PER_FRAME_MAX; count++) {
        const struct symbol_frame *symbol = &late->frames.items[chain.first + count];
        positions[count] = (struct code_position){
            .function = string_table_get(&late->texts, symbol->function),
            .file = string_table_get(&late->texts, symbol->file),
            .line = symbol->line,
        };
    }
    return count;
}

// Append the name of unnamed code.
static MUST_USE enum err
append_unnamed(const struct profile *profile, size_t index, struct strbuf *out)
{
    const struct recording *recording = &profile->recording;
    const struct rec_frame *frame = &recording->frames[index];
    const struct symbol_chain_vec *late = &profile->late.chains;
    uint64_t start = index < late->len ? late->items[index].function_start : 0;
    start = start != 0 ? start : frame->function_start;
    strbuf_clear(out);
    if (frame->module != REC_NONE) {
        const char *path = profile_string(profile, recording->modules[frame->module].path);
        strbuf_append_text(out, path_file_name(path));
        strbuf_append_char(out, '+');
    }
    strbuf_printf(out, "0x%" PRIx64, start != 0 ? start : frame->offset);
    return strbuf_result(out);
}

// Find the first module with the build-id of each module: a program that is executed by several
// paths (git) is the same code.
static MUST_USE enum err find_same_code(const struct recording *recording, struct u32_vec *firsts)
{
    CLEANUP(map_u64_release) struct map_u64 by_build_id = {0};
    for (uint32_t i = 0; i < recording->module_count; i++) {
        const rec_string build_id = recording->modules[i].build_id;
        const bool has_one = rec_string_get(recording, build_id)[0] != '\0';
        const uint32_t *first = has_one ? map_u64_find(&by_build_id, build_id) : NULL;
        TRY(u32_vec_push(firsts, first != NULL ? *first : i));
        if (has_one && first == NULL) {
            TRY(map_u64_put(&by_build_id, build_id, i));
        }
    }
    return ERR_OK;
}

static bool has_unnamed(const struct code_position *positions, size_t count)
{
    bool has = count == 0;
    for (size_t i = 0; i < count; i++) {
        has |= positions[i].function[0] == '\0';
    }
    return has;
}

static MUST_USE enum err index_code(struct profile *profile, struct progress *progress)
{
    const struct recording *recording = &profile->recording;
    struct code_position positions[SYMBOLS_PER_FRAME_MAX];
    CLEANUP(strbuf_release) struct strbuf unnamed = {0};
    CLEANUP(u32_vec_release) struct u32_vec modules = {0};
    TRY(find_same_code(recording, &modules));
    for (size_t i = 0; i < recording->frame_count; i++) {
        const struct rec_frame *frame = &recording->frames[i];
        // Names from the deferred lookup are better, or the only ones.
        size_t count = late_positions(&profile->late, i, positions);
        count = count > 0 ? count : recorded_positions(recording, frame, positions);
        if (has_unnamed(positions, count)) {
            TRY(append_unnamed(profile, i, &unnamed));
        }
        const uint32_t module =
            frame->module < modules.len ? modules.items[frame->module] : frame->module;
        TRY(code_index_add_frame(&profile->code, module, frame->offset, frame->flags, positions,
                                 count, strbuf_text(&unnamed)));
        if (progress != NULL) {
            progress_update(progress, "reading the recording", i, recording->frame_count);
        }
    }
    code_index_finish(&profile->code);
    return ERR_OK;
}

static MUST_USE enum err prepare_profile(struct profile *profile,
                                         const struct name_sources *sources,
                                         struct progress *progress)
{
    TRY(process_lives_init(&profile->lives, &profile->recording));
    TRY(deferred_symbols_find(&profile->recording, sources, NULL, progress, &profile->late));
    TRY(index_code(profile, progress));
    TRY(wrappers_find(&profile->recording, &profile->code, &profile->wrappers));
    if (progress != NULL) {
        progress_clear(progress);
    }
    return ERR_OK;
}

enum err profile_from_recording(const struct recording *recording,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info)
{
    CLEANUP(profile_closep) struct profile *profile = calloc(1, sizeof(*profile));
    if (profile == NULL) {
        return err_set(info, ERR_NO_MEMORY, "not enough memory");
    }
    profile->recording = *recording;
    enum err problem = prepare_profile(profile, sources, progress);
    if (problem != ERR_OK) {
        return err_set(info, problem, "not enough memory to index the recording's code");
    }
    *out = TAKE(profile);
    return ERR_OK;
}

// Describe what the reader found missing; "" for a whole or growing file.
static void describe_damage(const struct recording_open_result *result, struct profile *profile)
{
    static const char *const phrases[] = {
        [RECORDING_COMPLETE] = NULL,
        [RECORDING_GROWING] = NULL,
        [RECORDING_TRUNCATED] = "the file is truncated",
        [RECORDING_DAMAGED] = "the file is damaged",
        [RECORDING_PRUNED] = "the file is too large for the available memory",
    };
    const char *phrase = phrases[result->condition];
    if (phrase != NULL) {
        const char *detail =
            result->missing[0] != '\0' ? result->missing : "what follows is all that could be read";
        // Both texts fit; snprintf would truncate longer ones.
        (void)snprintf(profile->damage, sizeof(profile->damage), "%s: %s", phrase, detail);
    }
}

enum err profile_take_recording(struct recording *recording,
                                const struct recording_open_result *result,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info)
{
    struct profile *profile;
    TRY(profile_from_recording(recording, sources, progress, &profile, info));
    *recording = (struct recording){0};
    profile->owns_recording = true;
    describe_damage(result, profile);
    *out = profile;
    return ERR_OK;
}

void profile_close(struct profile *profile)
{
    if (profile == NULL) {
        return;
    }
    code_index_release(&profile->code);
    deferred_symbols_release(&profile->late);
    process_lives_release(&profile->lives);
    wrapper_vec_release(&profile->wrappers);
    if (profile->owns_recording) {
        recording_release(&profile->recording);
    }
    free(profile);
}

void profile_closep(struct profile **profile)
{
    profile_close(*profile);
}

// The result of the deferred lookup for the module; NULL without a lookup.
static const struct late_module *late_module_of(const struct profile *profile, uint32_t module)
{
    const struct late_module_vec *modules = &profile->late.modules;
    return module < modules->len && modules->items[module].is_known ? &modules->items[module]
                                                                    : NULL;
}

const char *profile_string(const struct profile *profile, rec_string id)
{
    return rec_string_get(&profile->recording, id);
}

const char *profile_module_source(const struct profile *profile, uint32_t module)
{
    const struct late_module *late = late_module_of(profile, module);
    const char *recorded =
        profile_string(profile, profile->recording.modules[module].symbol_source);
    // A file without debug information is not better than the recorded source.
    return late == NULL || (!late->is_better && recorded[0] != '\0')
               ? recorded
               : string_table_get(&profile->late.texts, late->source);
}

const char *profile_module_advice(const struct profile *profile, uint32_t module)
{
    const struct late_module *late = late_module_of(profile, module);
    return late != NULL ? string_table_get(&profile->late.texts, late->advice)
                        : profile_string(profile, profile->recording.modules[module].symbol_advice);
}

enum symbol_gap profile_module_gap(const struct profile *profile, uint32_t module)
{
    const struct late_module *late = late_module_of(profile, module);
    return late != NULL ? late->gap : SYMBOL_GAP_NOT_RESOLVED;
}

bool profile_knows(const struct profile *profile, enum cost cost)
{
    static const uint32_t made_of[COST_COUNT] = {
        [COST_PEAK_BYTES] = REC_UNKNOWN_PEAK,
        [COST_PEAK_BLOCKS] = REC_UNKNOWN_PEAK | REC_UNKNOWN_BLOCKS,
        [COST_ALLOCATIONS] = REC_UNKNOWN_ALLOCATIONS,
        [COST_ALLOCATED_BYTES] = REC_UNKNOWN_ALLOCATIONS,
        [COST_FREES] = REC_UNKNOWN_ALLOCATIONS,
        [COST_FREED_BYTES] = REC_UNKNOWN_ALLOCATIONS,
        [COST_TEMPORARY] = REC_UNKNOWN_TEMPORARY,
        [COST_TEMPORARY_BYTES] = REC_UNKNOWN_TEMPORARY,
        [COST_LEAKED_BYTES] = REC_UNKNOWN_LEAKED,
        [COST_LEAKED_ALLOCATIONS] = REC_UNKNOWN_LEAKED | REC_UNKNOWN_BLOCKS,
        [COST_OWN_PEAK_BYTES] = REC_UNKNOWN_OWN_PEAK,
    };
    return (made_of[cost] & profile->recording.meta.unknown) == 0;
}

uint32_t profile_unknown_costs(const struct profile *profile)
{
    uint32_t unknown = 0;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        unknown |= profile_knows(profile, (enum cost)cost) ? 0 : 1U << cost;
    }
    return unknown;
}

uint32_t profile_process_of_row(const struct profile *profile, uint32_t row)
{
    return profile->recording.threads[profile->recording.rows[row].thread].process;
}

const struct code_location *profile_location_get(const struct profile *profile, uint32_t location)
{
    return &profile->code.locations.items[location];
}

const char *profile_location_function(const struct profile *profile, uint32_t location)
{
    const struct code_location *place = profile_location_get(profile, location);
    return string_table_get(&profile->code.names,
                            profile->code.functions.items[place->function].name);
}

const char *profile_location_file(const struct profile *profile, uint32_t location)
{
    return string_table_get(&profile->code.names, profile_location_get(profile, location)->file);
}

const char *profile_module_path(const struct profile *profile, uint32_t module)
{
    return module == REC_NONE ? ""
                              : profile_string(profile, profile->recording.modules[module].path);
}

const char *profile_location_module(const struct profile *profile, uint32_t location)
{
    const struct code_location *place = profile_location_get(profile, location);
    return profile_module_path(profile, profile->code.functions.items[place->function].module);
}

struct call_site_location profile_call_site(const struct profile *profile, uint32_t node)
{
    return wrappers_call_site(&profile->recording, &profile->code, node);
}

bool profile_process_has_ended(const struct profile *profile, uint32_t process)
{
    const struct rec_process *record = &profile->recording.processes[process];
    const bool is_old = record->end_error_ms == 0; // the file has no such flag
    const bool may_run =
        is_old && record->left_ms == 0 && profile->recording.meta.state != REC_STATE_FINISHED;
    return (record->flags & REC_PROCESS_RUNNING) == 0 && !may_run;
}

bool profile_has_ended(const struct profile *profile)
{
    bool has_ended = profile->recording.meta.state != REC_STATE_RUNNING;
    for (uint32_t i = 0; i < profile->recording.process_count && has_ended; i++) {
        has_ended = profile_process_has_ended(profile, i);
    }
    return has_ended;
}

struct cost_info profile_cost_info(const struct profile *profile, enum cost cost)
{
    struct cost_info info = *cost_get_info(cost);
    const bool is_leaked = cost == COST_LEAKED_BYTES || cost == COST_LEAKED_ALLOCATIONS;
    if (is_leaked && !profile_has_ended(profile)) {
        info.option = cost == COST_LEAKED_BYTES ? "live" : "live-blocks";
        info.phrase = cost == COST_LEAKED_BYTES ? "live bytes" : "live blocks";
    }
    return info;
}

const char *profile_state_name(const struct profile *profile)
{
    static const char *const names[] = {
        [REC_STATE_RUNNING] = "running",
        [REC_STATE_FINISHED] = "finished",
        [REC_STATE_STOPPED] = "stopped",
    };
    uint32_t state = profile->recording.meta.state;
    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}
