// SPDX-License-Identifier: MIT
// selector: see selector.h.
#include "server/store/selector.h"

#include <string.h>

#include "base/compiler.h"

#define NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
#define NAME_REST  NAME_FIRST "0123456789"

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool take_name(const char **at, struct strbuf *out)
{
    if (**at == '\0' || strchr(NAME_FIRST, **at) == NULL) {
        return false;
    }
    const size_t len = strspn(*at, NAME_REST);
    strbuf_append(out, *at, len);
    *at += len;
    return true;
}

// Take a string with its quotes.
static bool take_string(const char **at, struct strbuf *out)
{
    static const char letters[] = "\\\"'ntr";
    static const char characters[] = "\\\"'\n\t\r";
    const char quote = **at;
    if (quote != '"' && quote != '\'' && quote != '`') {
        return false;
    }
    for ((*at)++; **at != quote; (*at)++) {
        const char *found = NULL;
        if (**at == '\\' && quote != '`') {
            (*at)++;
            found = **at != '\0' ? strchr(letters, **at) : NULL;
            if (found == NULL) {
                return false;
            }
        }
        if (**at == '\0') {
            return false;
        }
        char character = **at;
        if (found != NULL) {
            character = characters[found - letters];
        }
        strbuf_append_char(out, character);
    }
    (*at)++;
    return true;
}

static bool take_operator(const char **at, struct matcher *matcher)
{
    static const struct {
        const char *text;
        bool is_regex;
        bool is_negated;
    } operators[] = {
        {"=~", true, false}, {"!~", true, true}, {"!=", false, true}, {"=", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (strncmp(*at, operators[i].text, strlen(operators[i].text)) == 0) {
            *at += strlen(operators[i].text);
            matcher->is_regex = operators[i].is_regex;
            matcher->is_negated = operators[i].is_negated;
            return true;
        }
    }
    return false;
}

static MUST_USE enum err compile_regex(struct matcher *matcher, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf whole = {0};
    strbuf_printf(&whole, "\\A(?:%s)\\z", strbuf_text(&matcher->value));
    TRY(strbuf_result(&whole));
    return name_regex_compile(&matcher->regex, strbuf_text(&whole), "query", info);
}

static MUST_USE enum err
take_matcher(const char **at, struct selector *selector, struct err_info *info)
{
    if (selector->count == SELECTOR_MATCHERS_MAX) {
        return err_set(info, ERR_LIMIT, "query: more than %d matchers", SELECTOR_MATCHERS_MAX);
    }
    struct matcher *matcher = &selector->matchers[selector->count++];
    bool is_good = take_name(at, &matcher->label);
    skip_blanks(at);
    is_good = is_good && take_operator(at, matcher);
    skip_blanks(at);
    is_good = is_good && take_string(at, &matcher->value);
    skip_blanks(at);
    TRY(strbuf_result(&matcher->label));
    TRY(strbuf_result(&matcher->value));
    if (!is_good) {
        return err_set(info, ERR_INVALID, "query: a matcher such as service=\"web\" is expected");
    }
    return matcher->is_regex ? compile_regex(matcher, info) : ERR_OK;
}

static MUST_USE enum err
take_matchers(const char **at, struct selector *selector, struct err_info *info)
{
    skip_blanks(at);
    while (**at != '}') {
        TRY(take_matcher(at, selector, info));
        if (**at != ',' && **at != '}') {
            return err_set(info, ERR_INVALID, "query: ',' or '}' is expected behind a matcher");
        }
        *at += **at == ',';
        skip_blanks(at);
    }
    (*at)++;
    return ERR_OK;
}

static MUST_USE enum err
parse_text(const char *text, struct selector *selector, struct err_info *info)
{
    const char *at = text;
    if (strlen(text) > SELECTOR_TEXT_MAX) {
        return err_set(info, ERR_LIMIT, "query: more than %d bytes", SELECTOR_TEXT_MAX);
    }
    skip_blanks(&at);
    struct matcher *name = &selector->matchers[0];
    if (take_name(&at, &name->value)) {
        selector->count = 1;
        strbuf_append_text(&name->label, "__name__");
        TRY(strbuf_result(&name->value));
        TRY(strbuf_result(&name->label));
    }
    skip_blanks(&at);
    const bool has_matchers = *at == '{';
    if (has_matchers) {
        at++;
        TRY(take_matchers(&at, selector, info));
    }
    skip_blanks(&at);
    if (*at != '\0' || (selector->count == 0 && !has_matchers)) {
        return err_set(info, ERR_INVALID,
                       "query: only a selector such as cairn_store_peak_bytes{service=\"web\"} is "
                       "answered, without operators, functions and ranges");
    }
    return ERR_OK;
}

enum err selector_parse(const char *text, struct selector *out, struct err_info *info)
{
    *out = (struct selector){0};
    const enum err problem = parse_text(text, out, info);
    if (problem != ERR_OK) {
        selector_release(out);
    }
    return problem;
}

void selector_release(struct selector *selector)
{
    for (size_t i = 0; i < SELECTOR_MATCHERS_MAX; i++) {
        strbuf_release(&selector->matchers[i].label);
        strbuf_release(&selector->matchers[i].value);
        name_regex_release(&selector->matchers[i].regex);
    }
    *selector = (struct selector){0};
}

bool selector_takes(struct selector *selector, const char *label, const char *value)
{
    for (size_t i = 0; i < selector->count; i++) {
        struct matcher *matcher = &selector->matchers[i];
        if (strcmp(strbuf_text(&matcher->label), label) != 0) {
            continue;
        }
        const bool is_equal = matcher->is_regex ? name_regex_matches(&matcher->regex, value)
                                                : strcmp(strbuf_text(&matcher->value), value) == 0;
        if (is_equal == matcher->is_negated) {
            return false;
        }
    }
    return true;
}

const char *selector_equal(const struct selector *selector, const char *label)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        if (!matcher->is_regex && !matcher->is_negated &&
            strcmp(strbuf_text(&matcher->label), label) == 0) {
            return strbuf_text(&matcher->value);
        }
    }
    return "";
}
