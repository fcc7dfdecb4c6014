// SPDX-License-Identifier: MIT
// function_name: splits and shortens demangled names. See function_name.h.
//
// One scan tracks the nesting depth of brackets. `<` and `>` are brackets, except in the names of
// operators (operator<, operator->, operator<=>, operator>>) and in `->` of Rust types.
#include "profile/model/function_name.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"

static bool is_identifier(char character)
{
    return isalnum((unsigned char)character) || character == '_' || character == '$';
}

// The length of the operator symbol at `at`, just after the word "operator"; 0 if there is none.
static size_t operator_symbol(const char *at)
{
    static const char *const symbols[] = {
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"};
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        size_t len = strlen(symbols[i]);
        if (strncmp(at, symbols[i], len) == 0) {
            return len;
        }
    }
    return strspn(at, "+-*/%^&|~!=,");
}

// The length of "operator" and its symbol at name[at]; 0 if they are not there.
static size_t operator_at(const char *name, size_t at)
{
    static const char word[] = "operator";
    size_t len = sizeof(word) - 1;
    // The first letter alone is a fast check; this runs for every letter of a name.
    if (name[at] != word[0] || strncmp(name + at, word, len) != 0 ||
        (at > 0 && is_identifier(name[at - 1]))) {
        return 0;
    }
    size_t symbol = operator_symbol(name + at + len);
    return symbol > 0 ? len + symbol : 0;
}

// "(anonymous namespace)" and "{closure#0}" start a part of a name, never a parameter list.
static bool begins_parameters(const char *name, size_t at)
{
    static const char anonymous[] = "(anonymous namespace)";
    return at > 0 && strncmp(name + at, anonymous, sizeof(anonymous) - 1) != 0 &&
           (at < 2 || strncmp(name + at - 2, "::", 2) != 0) && name[at - 1] != ' ';
}

// "operator new(unsigned long)": the space after "operator" does not end a return type.
static bool ends_operator_word(const char *name, size_t space_at)
{
    static const char word[] = "operator";
    size_t len = sizeof(word) - 1;
    return space_at >= len && strncmp(name + space_at - len, word, len) == 0 &&
           (space_at == len || !is_identifier(name[space_at - len - 1]));
}

// Whether `rest`, which follows a parameter list, can end a signature or name an entity local to
// the function.
static bool may_follow_parameters(const char *rest)
{
    static const char *const ends[] = {"::",  " const",    " volatile", " &", " [",
                                       " (.", " noexcept", " restrict", " ->"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (strncmp(rest, ends[i], strlen(ends[i])) == 0) {
            return true;
        }
    }
    return rest[0] == '\0';
}

// Not strchr: these run for every letter of a name.
static bool is_opening(char character)
{
    return character == '<' || character == '(' || character == '[' || character == '{';
}

static bool is_closing(char character)
{
    return character == ')' || character == ']' || character == '}';
}

struct name_parts name_split(const char *name)
{
    size_t len = strlen(name);
    const struct name_parts whole = {.qualified_at = 0, .parameters_at = len, .len = len};
    if (memchr(name, '(', len) == NULL) { // most names of C
        return whole;
    }
    struct name_parts parts = whole;
    long depth = 0;
    bool has_parameters = false;
    bool is_conversion = false; // "operator std::string()": a type follows, not a name
    for (size_t at = 0; at < len; at++) {
        size_t operator_len = operator_at(name, at);
        if (operator_len > 0) {
            at += operator_len - 1;
            // "operator< <int>": the demangler separates the symbol and the arguments.
            at += name[at + 1] == ' ' && name[at + 2] == '<';
            continue;
        }
        char character = name[at];
        if (depth == 0 && character == '(' && begins_parameters(name, at)) {
            parts.parameters_at = at;
            has_parameters = true;
            // The name may continue after the parameters with a local entity: f(int)::{lambda()#1}.
            size_t closing = at;
            long inner = 0;
            do {
                inner += name[closing] == '(' ? 1 : name[closing] == ')' ? -1 : 0;
                closing++;
            } while (inner > 0 && closing < len);
            if (inner > 0 || !may_follow_parameters(name + closing)) {
                return whole;
            }
            const char *local = strstr(name + closing, "::");
            if (local == NULL || (size_t)(local - name) > closing + sizeof(" const") - 1) {
                return parts;
            }
            parts.parameters_at = len;
            at = (size_t)(local - name);
        } else if (is_opening(character)) {
            depth++;
        } else if (is_closing(character) || (character == '>' && at > 0 && name[at - 1] != '-')) {
            depth -= depth > 0;
        } else if (depth == 0 && character == ' ' && !is_conversion) {
            is_conversion = ends_operator_word(name, at);
            // Rust: "<T as Trait>::f" has its space inside; " const" only follows parameters.
            parts.qualified_at = is_conversion ? parts.qualified_at : at + 1;
        }
    }
    // Only a name with parameters has a return type before it, or is local to one.
    return has_parameters ? parts : whole;
}

// After template arguments a name ends, or its next part or its parameters follow.
static bool may_follow_templates(char next)
{
    return next == '\0' || strchr(":( >,[&*{.", next) != NULL;
}

// Return false if the brackets are not those of template arguments; `out` is then meaningless.
static bool append_outside_templates(struct strbuf *out, const char *name, size_t from, size_t to)
{
    long depth = 0;
    bool follows_operator = false;
    for (size_t at = from; at < to; at++) {
        size_t operator_len = depth == 0 ? operator_at(name, at) : 0;
        if (operator_len > 0) {
            strbuf_append(out, name + at, operator_len);
            at += operator_len - 1;
            at += name[at + 1] == ' ' && name[at + 2] == '<'; // "operator< <int>"
            follows_operator = true;
            continue;
        }
        // A "<" that starts a part, as in Rust's "<T as Trait>::f", belongs to the name.
        bool is_argument_list =
            at > from && (is_identifier(name[at - 1]) || depth > 0 || follows_operator);
        follows_operator = false;
        if (name[at] == '<' && is_argument_list) {
            depth++;
        } else if (name[at] == '>' && depth > 0 && name[at - 1] != '-') {
            depth--;
            if (depth == 0 && !may_follow_templates(name[at + 1])) {
                return false;
            }
        } else if (depth == 0) {
            strbuf_append_char(out, name[at]);
        }
    }
    return depth == 0;
}

static void append_without_templates(struct strbuf *out, const char *name, size_t from, size_t to)
{
    if (memchr(name + from, '<', to - from) == NULL) {
        strbuf_append(out, name + from, to - from);
        return;
    }
    CLEANUP(strbuf_release) struct strbuf shorter = {0};
    bool is_sound = append_outside_templates(&shorter, name, from, to);
    if (shorter.failed) {
        out->failed = true;
    } else if (is_sound) {
        strbuf_append(out, shorter.data, shorter.len);
    } else {
        strbuf_append(out, name + from, to - from);
    }
}

static void
append_without_anonymous(struct strbuf *out, const char *name, const struct name_parts *parts)
{
    static const char anonymous[] = "(anonymous namespace)::";
    CLEANUP(strbuf_release) struct strbuf whole = {0};
    append_without_templates(&whole, name, parts->qualified_at, parts->parameters_at);
    const char *rest = strbuf_text(&whole);
    for (const char *at; (at = strstr(rest, anonymous)) != NULL;
         rest = at + sizeof(anonymous) - 1) {
        strbuf_append(out, rest, (size_t)(at - rest));
    }
    strbuf_append_text(out, rest);
    out->failed |= whole.failed;
}

void name_append(struct strbuf *out, const char *name, enum name_form form)
{
    struct name_parts parts = name_split(name);
    switch (form) {
    case NAME_WHOLE:
        strbuf_append(out, name, parts.len);
        return;
    case NAME_NO_RETURN_TYPE:
        strbuf_append(out, name + parts.qualified_at, parts.len - parts.qualified_at);
        return;
    case NAME_NO_PARAMETERS:
        strbuf_append(out, name + parts.qualified_at, parts.parameters_at - parts.qualified_at);
        return;
    case NAME_NO_TEMPLATES:
        append_without_templates(out, name, parts.qualified_at, parts.parameters_at);
        return;
    case NAME_NO_ANONYMOUS:
        append_without_anonymous(out, name, &parts);
        return;
    case NAME_FORM_COUNT:
        return;
    }
}

// The length without one suffix like " [clone .isra.0]", or `len` if there is none.
static size_t without_clone_phrase(const char *name, size_t len)
{
    static const char phrase[] = " [clone ";
    if (len == 0 || name[len - 1] != ']') {
        return len;
    }
    size_t open = len - 1;
    while (open > 0 && name[open] != '[') {
        open--;
    }
    bool is_clone = open > 1 && strncmp(name + open - 1, phrase, sizeof(phrase) - 1) == 0;
    return is_clone ? open - 1 : len;
}

// The length without one suffix of a mangled name (".isra.0", ".cold"), or `len`.
static size_t without_clone_suffix(const char *name, size_t len)
{
    static const char *const words[] = {"part", "constprop", "isra", "cold", "lto_priv", "llvm"};
    size_t end = len;
    while (end > 0 && isdigit((unsigned char)name[end - 1])) {
        end--;
    }
    // A number needs a point before it; a word does not.
    if (end < len) {
        if (end == 0 || name[end - 1] != '.') {
            return len;
        }
        end--;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t word = strlen(words[i]);
        if (end > word + 1 && name[end - word - 1] == '.' &&
            strncmp(name + end - word, words[i], word) == 0) {
            return end - word - 1;
        }
    }
    return len;
}

size_t name_len_without_clones(const char *name)
{
    size_t len = strlen(name);
    while (true) {
        size_t shorter = without_clone_suffix(name, without_clone_phrase(name, len));
        if (shorter == len) {
            return len;
        }
        len = shorter;
    }
}

void name_append_cut(struct strbuf *out, const char *text, size_t most)
{
    const size_t len = strlen(text);
    if (len <= most) {
        strbuf_append(out, text, len);
        return;
    }
    size_t head = most / 2;
    size_t tail = len - most / 2;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80) { // inside a UTF-8 character
        head--;
    }
    while (tail < len && ((unsigned char)text[tail] & 0xc0) == 0x80) {
        tail++;
    }
    strbuf_append(out, text, head);
    strbuf_append_text(out, "...");
    strbuf_append_text(out, text + tail);
}

void name_append_in_sentence(struct strbuf *out, const char *function)
{
    enum {
        NAME_BYTES = 56
    };
    CLEANUP(strbuf_release) struct strbuf name = {0};
    name_append(&name, function, NAME_NO_ANONYMOUS);
    name_append_cut(out, strbuf_text(&name), NAME_BYTES);
    out->failed |= name.failed;
}
