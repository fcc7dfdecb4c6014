// SPDX-License-Identifier: MIT
// pattern: see pattern.h.
#include "profile/pattern.h"

#include <string.h>

// Some seconds' worth. A hundred thousand functions with long names take a hundredth of it.
static const uint64_t work_max = 2000000000;

enum err pattern_init(struct pattern *pattern,
                      enum pattern_kind kind,
                      const char *text,
                      const char *name,
                      struct err_info *info)
{
    struct pattern made = {.kind = kind, .text = text, .name = name};
    if (kind == PATTERN_REGEX) {
        TRY(name_regex_compile(&made.regex, text, name, info));
    }
    *pattern = made;
    return ERR_OK;
}

void pattern_release(struct pattern *pattern)
{
    name_regex_release(&pattern->regex);
    *pattern = (struct pattern){0};
}

bool pattern_matches(struct pattern *pattern, const char *name)
{
    switch (pattern->kind) {
    case PATTERN_TEXT:
        return strcasestr(name, pattern->text) != NULL;
    case PATTERN_REGEX:
        return name_regex_matches(&pattern->regex, name, &pattern->work);
    }
    return false;
}

enum err pattern_result(const struct pattern *pattern, struct err_info *info)
{
    if (pattern->work > work_max) {
        return err_set(info, ERR_LIMIT, "%s: this regular expression takes too long",
                       pattern->name);
    }
    return ERR_OK;
}
