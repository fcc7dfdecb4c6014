// SPDX-License-Identifier: MIT
// toml: a parser in one pass over the lines. See toml.h.
#include "host/text/toml.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "host/text/utf8.h"

// The position of the parser. `at` never passes `end`, where a zero byte is readable.
struct reader {
    const char *at;
    const char *end;
    const char *name;
    uint32_t line;
    struct err_info *info;
    struct toml *out;
};

static enum err refuse_text(const struct reader *r, enum err code, const char *what)
{
    return err_set(r->info, code, "%.200s:%u: %s", r->name, r->line, what);
}

static char peek_char(const struct reader *r)
{
    return (char)(r->at < r->end ? *r->at : '\0');
}

static bool take_char(struct reader *r, const char *text)
{
    size_t len = strlen(text);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (peek_char(r) == ' ' || peek_char(r) == '\t') {
        r->at++;
    }
}

static bool is_key_character(char character)
{
    return isalnum((unsigned char)character) || character == '-' || character == '_';
}

static MUST_USE enum err take_key(struct reader *r, size_t *out)
{
    size_t len = 0;
    while (r->at + len < r->end && is_key_character(r->at[len])) {
        len++;
    }
    if (len == 0) {
        bool is_quoted = peek_char(r) == '"' || peek_char(r) == '\'';
        return is_quoted ? refuse_text(r, ERR_UNSUPPORTED, "keys in quotes are not supported")
                         : refuse_text(r, ERR_INVALID, "expected a key");
    }
    *out = r->out->texts.len;
    strbuf_append(&r->out->texts, r->at, len);
    strbuf_append_char(&r->out->texts, '\0');
    r->at += len;
    skip_blanks(r);
    if (peek_char(r) == '.') {
        return refuse_text(r, ERR_UNSUPPORTED, "keys with dots are not supported");
    }
    return strbuf_result(&r->out->texts);
}

// Take the four or eight digits of \uXXXX or \UXXXXXXXX, as UTF-8.
static MUST_USE enum err take_code_point(struct reader *r, size_t digits)
{
    uint32_t code = 0;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_digit(peek_char(r));
        if (digit < 0) {
            return refuse_text(r, ERR_INVALID, "\\u needs four hexadecimal digits, \\U eight");
        }
        code = code << 4 | (uint32_t)digit;
        r->at++;
    }
    if (code == 0 || !utf8_is_character(code)) {
        return refuse_text(r, ERR_INVALID, "this character is not allowed in a text");
    }
    utf8_append(&r->out->texts, code);
    return ERR_OK;
}

static MUST_USE enum err take_escape(struct reader *r)
{
    static const char names[] = "btnfr\"\\";
    static const char meanings[] = "\b\t\n\f\r\"\\";
    char name = peek_char(r);
    const char *found = name != '\0' ? strchr(names, name) : NULL;
    if (found != NULL) {
        r->at++;
        strbuf_append_char(&r->out->texts, meanings[found - names]);
        return ERR_OK;
    }
    if (name == 'u' || name == 'U') {
        r->at++;
        return take_code_point(r, name == 'u' ? 4 : 8);
    }
    return refuse_text(r, ERR_INVALID, "unknown escape");
}

// Take a text of one line in quotes.
static MUST_USE enum err take_text(struct reader *r, size_t *out)
{
    char quote = *r->at++;
    if (peek_char(r) == quote && r->at + 1 < r->end && r->at[1] == quote) {
        return refuse_text(r, ERR_UNSUPPORTED, "texts over several lines are not supported");
    }
    *out = r->out->texts.len;
    while (peek_char(r) != quote) {
        unsigned char next = (unsigned char)peek_char(r);
        if (r->at == r->end || next == '\n') {
            return refuse_text(r, ERR_INVALID, "the text has no closing quote");
        }
        if ((next < ' ' && next != '\t') || next == 0x7f) {
            return refuse_text(r, ERR_INVALID, "a text may not hold control characters");
        }
        r->at++;
        if (next == '\\' && quote == '"') {
            TRY(take_escape(r));
        } else {
            strbuf_append_char(&r->out->texts, (char)next);
        }
    }
    r->at++;
    strbuf_append_char(&r->out->texts, '\0');
    return strbuf_result(&r->out->texts);
}

// Take a decimal integer, with optional _ between digits.
static MUST_USE enum err take_integer(struct reader *r, int64_t *out)
{
    bool is_negative = peek_char(r) == '-';
    if (peek_char(r) == '-' || peek_char(r) == '+') {
        r->at++;
    }
    const char *first = r->at;
    int64_t number = 0;
    while (isdigit((unsigned char)peek_char(r)) || peek_char(r) == '_') {
        bool is_between = r->at > first && isdigit((unsigned char)r->at[-1]) &&
                          r->at + 1 < r->end && isdigit((unsigned char)r->at[1]);
        if (*r->at == '_') {
            if (!is_between) {
                return refuse_text(r, ERR_INVALID, "_ must be between two digits");
            }
        } else if (__builtin_mul_overflow(number, 10, &number) ||
                   __builtin_add_overflow(number, *r->at - '0', &number)) {
            return refuse_text(r, ERR_LIMIT, "the number is too large");
        }
        r->at++;
    }
    if (r->at == first || (*first == '0' && r->at > first + 1)) {
        return refuse_text(r, ERR_INVALID, "expected \"text\", a whole number, true or false");
    }
    *out = is_negative ? -number : number;
    return ERR_OK;
}

static MUST_USE enum err take_value(struct reader *r, struct toml_entry *entry)
{
    char next = peek_char(r);
    if (next == '"' || next == '\'') {
        entry->type = TOML_TEXT;
        return take_text(r, &entry->text);
    }
    if (next == '[' || next == '{') {
        return refuse_text(r, ERR_UNSUPPORTED, "arrays and inline tables are not supported");
    }
    if (take_char(r, "true") || take_char(r, "false")) {
        entry->type = TOML_BOOLEAN;
        entry->boolean = next == 't';
        return ERR_OK;
    }
    entry->type = TOML_INTEGER;
    TRY(take_integer(r, &entry->integer));
    if (is_key_character(peek_char(r)) ||
        (peek_char(r) != '\0' && strchr(".:", peek_char(r)) != NULL)) {
        return refuse_text(
            r, ERR_UNSUPPORTED,
            "only whole decimal numbers are supported; put \"quotes\" around the rest");
    }
    return ERR_OK;
}

static bool is_known_table(const struct toml *toml, size_t name, bool is_element)
{
    for (size_t i = 1; i < toml->tables.len; i++) {
        const struct toml_table *table = &toml->tables.items[i];
        if (strcmp(toml_text(toml, table->name), toml_text(toml, name)) == 0 &&
            !(is_element && table->is_element)) {
            return true;
        }
    }
    return false;
}

static MUST_USE enum err take_table(struct reader *r)
{
    struct toml_table table = {.line = r->line, .is_element = take_char(r, "[[")};
    if (!table.is_element) {
        r->at++;
    }
    skip_blanks(r);
    TRY(take_key(r, &table.name));
    if (!take_char(r, table.is_element ? "]]" : "]")) {
        return refuse_text(r, ERR_INVALID, "the table's name has no closing bracket");
    }
    if (is_known_table(r->out, table.name, table.is_element)) {
        return refuse_text(r, ERR_INVALID, "duplicate table");
    }
    return toml_table_vec_push(&r->out->tables, table);
}

static MUST_USE enum err take_entry(struct reader *r)
{
    uint32_t table = (uint32_t)r->out->tables.len - 1;
    struct toml_entry entry = {.table = table, .line = r->line};
    TRY(take_key(r, &entry.key));
    for (size_t i = r->out->entries.len; i > 0 && r->out->entries.items[i - 1].table == table;
         i--) {
        const char *known = toml_text(r->out, r->out->entries.items[i - 1].key);
        if (strcmp(known, toml_text(r->out, entry.key)) == 0) {
            return refuse_text(r, ERR_INVALID, "duplicate key");
        }
    }
    if (!take_char(r, "=")) {
        return refuse_text(r, ERR_INVALID, "expected = after the key");
    }
    skip_blanks(r);
    TRY(take_value(r, &entry));
    return toml_entry_vec_push(&r->out->entries, entry);
}

// Take the end of a line, with an optional comment before it.
static MUST_USE enum err take_line_end(struct reader *r)
{
    skip_blanks(r);
    if (peek_char(r) == '#') {
        while (r->at < r->end && *r->at != '\n') {
            unsigned char next = (unsigned char)*r->at;
            bool is_end = next == '\r' && r->at + 1 < r->end && r->at[1] == '\n';
            if (((next < ' ' && next != '\t') || next == 0x7f) && !is_end) {
                return refuse_text(r, ERR_INVALID, "a comment may not hold control characters");
            }
            r->at++;
        }
    }
    if (r->at == r->end || take_char(r, "\n") || take_char(r, "\r\n")) {
        r->line++;
        return ERR_OK;
    }
    return refuse_text(r, ERR_INVALID, "expected the end of the line");
}

enum err toml_parse(struct bytes input, const char *name, struct toml *out, struct err_info *info)
{
    CLEANUP(toml_release) struct toml toml = {0};
    struct reader r = {.at = (const char *)input.data,
                       .end = (const char *)input.data + input.len,
                       .name = name,
                       .line = 1,
                       .info = info,
                       .out = &toml};
    if (input.len > TOML_MAX_BYTES) {
        return err_set(info, ERR_LIMIT, "%.200s: the file is too large", name);
    }
    strbuf_append_char(&toml.texts, '\0'); // the empty name
    TRY(toml_table_vec_push(&toml.tables, (struct toml_table){0}));
    while (r.at < r.end) {
        skip_blanks(&r);
        char next = peek_char(&r);
        if (next == '[') {
            TRY(take_table(&r));
        } else if (next != '#' && next != '\n' && next != '\r' && r.at < r.end) {
            TRY(take_entry(&r));
        }
        TRY(take_line_end(&r));
    }
    TRY(strbuf_result(&toml.texts));
    *out = TAKE(toml);
    return ERR_OK;
}

void toml_release(struct toml *toml)
{
    strbuf_release(&toml->texts);
    toml_table_vec_release(&toml->tables);
    toml_entry_vec_release(&toml->entries);
}
