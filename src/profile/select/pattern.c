// SPDX-License-Identifier: MIT
#include "profile/select/pattern.h"

#include <string.h>

#include "profile/model/function_name.h"

enum err pattern_init(struct pattern *pattern,
                      enum pattern_kind kind,
                      const char *text,
                      const char *name,
                      struct err_info *info)
{
    struct pattern made = {.kind = kind, .text = text};
    if (kind == PATTERN_REGEX) {
        TRY(name_regex_compile(&made.regex, text, name, info));
    }
    *pattern = made;
    return ERR_OK;
}

void pattern_release(struct pattern *pattern)
{
    name_regex_release(&pattern->regex);
    strbuf_release(&pattern->form);
    *pattern = (struct pattern){0};
}

bool pattern_matches(struct pattern *pattern, const char *name)
{
    switch (pattern->kind) {
    case PATTERN_TEXT:
        return strcasestr(name, pattern->text) != NULL;
    case PATTERN_REGEX:
        return name_regex_matches(&pattern->regex, name);
    }
    return false;
}

static bool matches_form(struct pattern *pattern, const char *name, enum name_form form)
{
    strbuf_clear(&pattern->form);
    name_append(&pattern->form, name, form);
    return pattern_matches(pattern, strbuf_text(&pattern->form));
}

bool pattern_matches_function(struct pattern *pattern, const char *name)
{
    if (name[strcspn(name, " <(")] == '\0') {
        return pattern_matches(pattern, name); // all forms are equal
    }
    if (pattern->kind == PATTERN_TEXT) {
        bool is_plain = pattern->text[strcspn(pattern->text, " <>()")] == '\0';
        return is_plain ? matches_form(pattern, name, NAME_NO_TEMPLATES) ||
                              matches_form(pattern, name, NAME_NO_ANONYMOUS)
                        : matches_form(pattern, name, NAME_WHOLE);
    }
    for (int form = 0; form < NAME_FORM_COUNT; form++) {
        if (matches_form(pattern, name, (enum name_form)form)) {
            return true;
        }
    }
    return false;
}

enum err pattern_result(const struct pattern *pattern, struct err_info *info)
{
    return name_regex_result(&pattern->regex, info);
}
