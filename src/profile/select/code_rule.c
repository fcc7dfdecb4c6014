// SPDX-License-Identifier: MIT
#include "profile/select/code_rule.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "profile/select/pattern.h"

// By module: 1 if its path matches; the last entry is for code outside modules.
static MUST_USE enum err
modules_with(const struct profile *profile, const char *pattern, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    TRY(u32_vec_resize(out, recording->module_count + 1));
    for (size_t i = 0; i < recording->module_count; i++) {
        out->items[i] =
            leak_pattern_matches(pattern, profile_string(profile, recording->modules[i].path));
    }
    out->items[recording->module_count] = pattern[0] == '\0';
    return ERR_OK;
}

static bool is_in(const struct u32_vec *modules, const struct recording *recording, size_t node)
{
    const uint32_t module = node != 0 ? recording->frames[recording->nodes[node].frame].module
                                      : REC_NONE; // the root has no frame
    return modules->items[module != REC_NONE ? module : recording->module_count] != 0;
}

static bool matches_any(const char *const *patterns, const char *function)
{
    for (size_t i = 0; patterns[i] != NULL; i++) {
        if (leak_pattern_matches(patterns[i], function)) {
            return true;
        }
    }
    return false;
}

// By function: 1 if its name matches one of these. A function has many locations.
static MUST_USE enum err
functions_with(const struct profile *profile, const char *const *patterns, struct u32_vec *out)
{
    const struct code_index *code = &profile->code;
    TRY(u32_vec_resize(out, code->functions.len));
    for (size_t i = 0; i < code->functions.len; i++) {
        out->items[i] =
            matches_any(patterns, string_table_get(&code->names, code->functions.items[i].name));
    }
    return ERR_OK;
}

// Whether all functions of a frame have names, and none of these.
static bool
has_other_names(const struct profile *profile, const char *const *patterns, uint32_t node)
{
    const struct code_chain chain =
        code_index_node_chain(&profile->code, node, profile->recording.nodes[node].frame);
    for (size_t i = 0; i < chain.count; i++) {
        const struct code_location *place = &profile->code.locations.items[chain.locations[i]];
        const uint32_t flags = profile->code.functions.items[place->function].flags;
        if ((flags & (CODE_UNKNOWN | CODE_CUT)) != 0 ||
            matches_any(patterns, profile_location_function(profile, chain.locations[i]))) {
            return false;
        }
    }
    return true;
}

// By node: 1 if it or a node farther out has one of these functions. Parents come before their
// children.
static MUST_USE enum err
nodes_within(const struct profile *profile, const char *const *functions, struct u32_vec *out)
{
    const struct code_location *locations = profile->code.locations.items;
    CLEANUP(u32_vec_release) struct u32_vec chosen = {0};
    TRY(functions_with(profile, functions, &chosen));
    TRY(u32_vec_resize(out, profile->recording.node_count));
    for (uint32_t i = 1; i < profile->recording.node_count; i++) {
        const struct rec_node *node = &profile->recording.nodes[i];
        const struct code_chain chain = code_index_node_chain(&profile->code, i, node->frame);
        out->items[i] = out->items[node->parent];
        for (size_t k = 0; k < chain.count; k++) {
            out->items[i] |= chosen.items[locations[chain.locations[k]].function];
        }
    }
    return ERR_OK;
}

struct code_matcher {
    const struct code_rule *code;
    const struct profile *profile;
    struct u32_vec modules; // owned; of the rule, by module
    struct u32_vec callers; // owned
    struct u32_vec within;  // owned; by node, if the rule needs it
};

static void code_matcher_release(struct code_matcher *matcher)
{
    u32_vec_release(&matcher->modules);
    u32_vec_release(&matcher->callers);
    u32_vec_release(&matcher->within);
}

// Whether the innermost frames, from `node` outwards, are those of the rule.
static bool is_matched(const struct code_matcher *matcher, uint32_t node)
{
    const struct code_rule *code = matcher->code;
    const struct recording *recording = &matcher->profile->recording;
    if (!is_in(&matcher->modules, recording, node) ||
        (code->within != NULL && matcher->within.items[node] == 0)) {
        return false;
    }
    do {
        if (code->no_function != NULL &&
            !has_other_names(matcher->profile, code->no_function, node)) {
            return false;
        }
        node = recording->nodes[node].parent;
    } while (code->is_run && node != 0 && is_in(&matcher->modules, recording, node));
    return is_in(&matcher->callers, recording, node);
}

// Assign a rule to the innermost nodes that it matches and no other rule has.
static MUST_USE enum err take_innermost(const struct code_rule *code,
                                        uint32_t number,
                                        const struct profile *profile,
                                        const struct u32_vec *has_callee,
                                        struct u32_vec *out)
{
    CLEANUP(code_matcher_release)
    struct code_matcher matcher = {.code = code, .profile = profile};
    TRY(modules_with(profile, code->module, &matcher.modules));
    if (!u32_vec_has_any(&matcher.modules)) {
        return ERR_OK;
    }
    TRY(modules_with(profile, code->caller, &matcher.callers));
    TRY(code->within != NULL ? nodes_within(profile, code->within, &matcher.within) : ERR_OK);
    for (uint32_t i = 1; i < profile->recording.node_count; i++) {
        if (out->items[i] == 0 && has_callee->items[i] == 0 && is_matched(&matcher, i)) {
            out->items[i] = number;
        }
    }
    return ERR_OK;
}

// Assign a rule to the nodes whose call site it matches and that no other rule has.
static MUST_USE enum err take_by_site(const struct code_rule *code,
                                      uint32_t number,
                                      const struct profile *profile,
                                      struct u32_vec *out)
{
    const char *const patterns[] = {code->site, NULL};
    CLEANUP(u32_vec_release) struct u32_vec sites = {0};
    TRY(functions_with(profile, patterns, &sites));
    const bool is_any = u32_vec_has_any(&sites);
    for (uint32_t i = 1; is_any && i < profile->recording.node_count; i++) {
        const uint32_t location = profile_call_site(profile, i).location;
        if (out->items[i] == 0 && location != REC_NONE &&
            sites.items[profile_location_get(profile, location)->function] != 0) {
            out->items[i] = number;
        }
    }
    return ERR_OK;
}

enum err code_rule_find_callers(const struct profile *profile, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec hooks = {0};
    TRY(modules_with(profile, "/libcairn_preload", &hooks));
    TRY(u32_vec_resize(out, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        out->items[recording->nodes[i].parent] |= !is_in(&hooks, recording, i);
    }
    return ERR_OK;
}

enum err code_rule_take(const struct code_rule *code,
                        uint32_t number,
                        const struct profile *profile,
                        const struct u32_vec *has_callee,
                        struct u32_vec *out)
{
    return code->site != NULL ? take_by_site(code, number, profile, out)
                              : take_innermost(code, number, profile, has_callee, out);
}
