// SPDX-License-Identifier: MIT
#include "profile/names/known_functions.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "host/os/file.h"
#include "symbols/function_names.h"

struct search {
    const struct name_sources *sources;
    struct pattern *pattern;
    struct known_functions *known;
    struct err_info *info;
    enum err problem;
};

static bool visit_name(void *context, const char *name)
{
    struct search *search = context;
    search->known->is_known = pattern_matches_function(search->pattern, name);
    search->problem = pattern_result(search->pattern, search->info);
    return search->problem == ERR_OK && !search->known->is_known;
}

static void search_stacks(const struct profile *profile, struct search *search)
{
    const struct code_index *code = &profile->code;
    bool goes_on = true;
    for (size_t i = 0; i < code->functions.len && goes_on; i++) {
        goes_on = visit_name(search, string_table_get(&code->names, code->functions.items[i].name));
    }
}

// Add a module whose functions cannot all be found by name.
static void add_blind(struct known_functions *known, const char *path)
{
    if (known->blind_count++ < KNOWN_FUNCTIONS_BLIND_NAMED) {
        strbuf_append_text(&known->blind, known->blind_count > 1 ? ", " : "");
        strbuf_append_text(&known->blind, path_file_name(path));
    }
}

static MUST_USE enum err
search_module(const char *path, const char *build_id_text, struct search *search)
{
    uint8_t bytes[64];
    enum symbol_gap gap;
    if (path[0] != '/') {
        return ERR_OK; // the kernel's own, or code without a file
    }
    TRY(function_names_walk(search->sources, path, hex_parse(build_id_text, bytes, sizeof(bytes)),
                            visit_name, search, &gap));
    if (gap != SYMBOL_GAP_NONE) {
        add_blind(search->known, path);
    }
    return search->problem;
}

static bool is_module(const struct profile *profile, const char *path)
{
    for (size_t i = 0; i < profile->recording.module_count; i++) {
        if (strcmp(profile_string(profile, profile->recording.modules[i].path), path) == 0) {
            return true;
        }
    }
    return false;
}

// Modules without any frame are not in the recording, but their executables are, by path.
static MUST_USE enum err search_executables(const struct profile *profile, struct search *search)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->process_count && !search->known->is_known; i++) {
        rec_string executable = recording->processes[i].executable;
        bool was_read = i > 0 && recording->processes[i - 1].executable == executable;
        const char *path = profile_string(profile, executable);
        if (!was_read && !is_module(profile, path)) {
            TRY(search_module(path, "", search));
        }
    }
    return ERR_OK;
}

enum err known_functions_find(const struct profile *profile,
                              const struct name_sources *sources,
                              struct pattern *pattern,
                              struct known_functions *out,
                              struct err_info *info)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(known_functions_release) struct known_functions known = {0};
    static const struct name_sources standard = {0};
    struct search search = {.sources = sources != NULL ? sources : &standard,
                            .pattern = pattern,
                            .known = &known,
                            .info = info};
    search_stacks(profile, &search);
    TRY(search.problem);
    for (size_t i = 0; i < recording->module_count && !known.is_known; i++) {
        const struct rec_module *module = &recording->modules[i];
        TRY(search_module(profile_string(profile, module->path),
                          profile_string(profile, module->build_id), &search));
    }
    TRY(search_executables(profile, &search));
    TRY(strbuf_result(&known.blind));
    *out = TAKE(known);
    return ERR_OK;
}

void known_functions_release(struct known_functions *known)
{
    strbuf_release(&known->blind);
}
