// SPDX-License-Identifier: MIT
#include "profile/names/asked_wrappers.h"

#include "base/compiler.h"
#include "profile/select/pattern.h"

static MUST_USE enum err
apply_wrappers(struct profile *profile, struct pattern *pattern, struct err_info *info)
{
    struct code_index *code = &profile->code;
    for (uint32_t i = 0; i < code->functions.len; i++) {
        const char *name = string_table_get(&code->names, code->functions.items[i].name);
        const bool is_known = (code->functions.items[i].flags & CODE_WRAPPER) != 0;
        if (!is_known && pattern_matches_function(pattern, name)) {
            const struct wrapper wrapper = {.function = i, .is_asked = true};
            TRY(wrappers_add(code, wrapper, &profile->wrappers));
        }
    }
    wrappers_flag_locations(code);
    return pattern_result(pattern, info);
}

enum err asked_wrappers_apply(struct profile *profile,
                              const struct name_sources *sources,
                              struct err_info *info)
{
    for (size_t i = 0; sources != NULL && i < sources->wrapper_count; i++) {
        CLEANUP(pattern_release) struct pattern pattern = {0};
        TRY(pattern_init(&pattern, PATTERN_REGEX, sources->wrappers[i], "--hide", info));
        TRY(apply_wrappers(profile, &pattern, info));
    }
    return ERR_OK;
}
