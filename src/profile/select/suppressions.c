// SPDX-License-Identifier: MIT
#include "profile/select/suppressions.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "profile/model/function_name.h"
#include "profile/select/built_in_rules.h"
#include "profile/select/code_rule.h"
#include "profile/select/pattern.h"

const char *suppression_source_name(enum suppression_source source)
{
    static const char *const names[] = {[SUPPRESSION_BUILT_IN] = "built-in",
                                        [SUPPRESSION_EMBEDDED] = "embedded",
                                        [SUPPRESSION_FILE] = "file"};
    return names[source];
}

static MUST_USE enum err
add_rule(struct suppressions *list, const char *pattern, size_t len, enum suppression_source source)
{
    struct suppression rule = {.pattern = list->texts.len, .source = source};
    if (list->rules.len == SUPPRESSION_RULES_MAX) {
        return ERR_LIMIT;
    }
    strbuf_append(&list->texts, pattern, len);
    strbuf_append_char(&list->texts, '\0');
    TRY(strbuf_result(&list->texts));
    rule.first = leak_pattern_first(strbuf_text(&list->texts) + rule.pattern);
    return suppression_vec_push(&list->rules, rule);
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t' || character == '\r';
}

// Add the rule of a line, without blanks at either end.
static MUST_USE enum err
add_line(struct suppressions *list, const char *line, size_t len, enum suppression_source source)
{
    static const char type[] = "leak:";
    const size_t type_len = sizeof(type) - 1;
    while (len > 0 && is_blank(line[0])) {
        line++;
        len--;
    }
    while (len > 0 && is_blank(line[len - 1])) {
        len--;
    }
    if (len == 0 || line[0] == '#') {
        return ERR_OK;
    }
    bool is_rule = len > type_len && strncmp(line, type, type_len) == 0;
    if (!is_rule || memchr(line, '\0', len) != NULL) {
        return ERR_INVALID;
    }
    return add_rule(list, line + type_len, len - type_len, source);
}

enum err suppressions_add(struct suppressions *list,
                          struct bytes text,
                          enum suppression_source source,
                          const char *name,
                          struct err_info *info)
{
    const char *at = (const char *)text.data;
    const char *end = at + text.len;
    for (uint32_t line = 1; at < end; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t len = next != NULL ? (size_t)(next - at) : (size_t)(end - at);
        enum err problem = add_line(list, at, len, source);
        if (problem == ERR_INVALID && name != NULL) {
            return err_set(info, problem, "%.200s:%u: expected leak:PATTERN or # comment", name,
                           line);
        }
        if (problem == ERR_LIMIT) {
            return err_set(info, problem, "there are more than %d suppressions",
                           SUPPRESSION_RULES_MAX);
        }
        if (problem != ERR_INVALID) {
            TRY(problem);
        }
        at += len + (next != NULL);
    }
    return ERR_OK;
}

enum err suppressions_add_built_in(struct suppressions *list)
{
    for (size_t i = 0; i < built_in_rules.name_count; i++) {
        const char *pattern = built_in_rules.names[i];
        TRY(add_rule(list, pattern, strlen(pattern), SUPPRESSION_BUILT_IN));
    }
    for (size_t i = 0; i < built_in_rules.code_count; i++) {
        const char *words = built_in_rules.code[i].words;
        TRY(add_rule(list, words, strlen(words), SUPPRESSION_BUILT_IN));
        list->rules.items[list->rules.len - 1].code = &built_in_rules.code[i];
    }
    return ERR_OK;
}

// Append the rules that an imported recording contains.
static MUST_USE enum err
add_embedded(struct suppressions *list, const struct recording *recording, struct err_info *info)
{
    const char *text = rec_string_get(recording, recording->meta.suppressions);
    struct bytes bytes = {.data = (const uint8_t *)text, .len = strlen(text)};
    return suppressions_add(list, bytes, SUPPRESSION_EMBEDDED, NULL, info);
}

static MUST_USE enum err
add_file(struct suppressions *list, const char *path, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(file_read(path, SUPPRESSION_FILE_MAX_BYTES, &text, info));
    return suppressions_add(list, strbuf_bytes(&text), SUPPRESSION_FILE, path, info);
}

enum err suppressions_add_chosen(struct suppressions *list,
                                 const struct suppression_choice *choice,
                                 const struct recording *recording,
                                 struct err_info *info)
{
    if (choice->path != NULL) {
        TRY(add_file(list, choice->path, info));
    }
    if (!choice->no_embedded) {
        TRY(add_embedded(list, recording, info));
    }
    return choice->no_built_in ? ERR_OK : suppressions_add_built_in(list);
}

void suppressions_release(struct suppressions *list)
{
    suppression_vec_release(&list->rules);
    strbuf_release(&list->texts);
}

// The number of the first rule that matches a name, + 1; REC_NONE if none does.
static uint32_t rule_of_text(const struct suppressions *list, const char *name)
{
    for (size_t i = 0; name[0] != '\0' && i < list->rules.len; i++) {
        const struct suppression *rule = &list->rules.items[i];
        if (rule->code == NULL && (rule->first == '\0' || rule->first == name[0]) &&
            leak_pattern_matches(suppression_pattern(list, i), name)) {
            return (uint32_t)i + 1;
        }
    }
    return REC_NONE;
}

// The same number for a path, kept in *known: many locations share names.
static uint32_t rule_of_name(const struct suppressions *list, const char *name, uint32_t *known)
{
    if (*known == 0) {
        *known = rule_of_text(list, name);
    }
    return *known;
}

struct matcher {
    const struct suppressions *list;
    const struct profile *profile;
    struct u32_vec names;   // by name of the code index: rule + 1; REC_NONE: none; 0: unknown
    struct u32_vec modules; // by module, likewise
    struct strbuf form;     // buffer: the last function name, without some parts
};

static void matcher_release(struct matcher *matcher)
{
    u32_vec_release(&matcher->names);
    u32_vec_release(&matcher->modules);
    strbuf_release(&matcher->form);
}

// The same number for a function, matched with and without parameters and template arguments.
static uint32_t rule_of_function(struct matcher *matcher, const char *name, uint32_t *known)
{
    if (*known != 0) {
        return *known;
    }
    *known = rule_of_text(matcher->list, name);
    const int forms = strpbrk(name, "(<") != NULL ? NAME_FORM_COUNT : NAME_WHOLE + 1; // C has one
    for (int form = NAME_WHOLE + 1; form < forms; form++) {
        strbuf_clear(&matcher->form);
        name_append(&matcher->form, name, (enum name_form)form);
        uint32_t rule = rule_of_text(matcher->list, strbuf_text(&matcher->form));
        *known = rule < *known ? rule : *known;
    }
    return *known;
}

// The lowest rule that matches a location's module, function or file; REC_NONE if none does.
static uint32_t rule_of_location(struct matcher *matcher, const struct code_location *location)
{
    const struct profile *profile = matcher->profile;
    const struct code_function *function = &profile->code.functions.items[location->function];
    const struct string_table *names = &profile->code.names;
    uint32_t rule = rule_of_function(matcher, string_table_get(names, function->name),
                                     &matcher->names.items[function->name]);
    uint32_t by_file = rule_of_name(matcher->list, string_table_get(names, location->file),
                                    &matcher->names.items[location->file]);
    rule = min_u64(rule, by_file);
    if (function->module != REC_NONE) {
        rec_string path = profile->recording.modules[function->module].path;
        uint32_t by_module = rule_of_name(matcher->list, profile_string(profile, path),
                                          &matcher->modules.items[function->module]);
        rule = min_u64(rule, by_module);
    }
    return rule;
}

// By frame: the rule of its innermost location that has one; 0 if none has.
static MUST_USE enum err rules_of_frames(struct matcher *matcher, struct u32_vec *out)
{
    const struct profile *profile = matcher->profile;
    TRY(u32_vec_resize(out, profile->recording.frame_count));
    for (uint32_t i = 0; i < out->len; i++) {
        struct code_chain chain = code_index_chain(&profile->code, i);
        for (size_t n = 0; n < chain.count && out->items[i] == 0; n++) {
            uint32_t rule =
                rule_of_location(matcher, &profile->code.locations.items[chain.locations[n]]);
            out->items[i] = rule != REC_NONE ? rule : 0;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err
take_by_code(const struct suppressions *list, const struct profile *profile, struct u32_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec has_callee = {0};
    TRY(code_rule_find_callers(profile, &has_callee));
    for (size_t i = 0; i < list->rules.len; i++) {
        const struct code_rule *code = list->rules.items[i].code;
        if (code != NULL) {
            TRY(code_rule_take(code, (uint32_t)i + 1, profile, &has_callee, out));
        }
    }
    return ERR_OK;
}

enum err suppressions_of_nodes(const struct suppressions *list,
                               const struct profile *profile,
                               struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(matcher_release) struct matcher matcher = {.list = list, .profile = profile};
    CLEANUP(u32_vec_release) struct u32_vec frames = {0};
    TRY(u32_vec_resize(&matcher.names, string_table_count(&profile->code.names)));
    TRY(u32_vec_resize(&matcher.modules, recording->module_count));
    TRY(rules_of_frames(&matcher, &frames));
    TRY(u32_vec_resize(out, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        struct rec_node node = recording->nodes[i];
        uint32_t own = frames.items[node.frame];
        out->items[i] = own != 0 ? own : out->items[node.parent];
    }
    TRY(take_by_code(list, profile, out));
    if (!u32_vec_has_any(out)) {
        u32_vec_release(out);
    }
    return ERR_OK;
}
