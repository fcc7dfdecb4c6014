// SPDX-License-Identifier: MIT
#include "symbols/names/symbol_name.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

// Each pair of back references can double a D name, so 24 make at most some 10^4 copies.
enum {
    MAX_D_BYTES = 4096,
    MAX_D_REFERENCES = 24,
    MAX_BYTES_TO_SHORTEN = 1 << 20, // some milliseconds of the demangler
    SHORTENED_BYTES = 2048,
    LEVELS_MAX = 6,
};

struct collector {
    struct strbuf *out;
    jmp_buf too_long;
};

static void collect_output(const char *piece, size_t len, void *context)
{
    struct collector *collector = context;
    strbuf_append(collector->out, piece, len);
    if (collector->out->len > MAX_BYTES_TO_SHORTEN || collector->out->failed) {
        longjmp(collector->too_long, 1); // the only way to stop the library
    }
}

// Demangle C++ and Rust. While these demanglers print, their only heap memory is the letters of one
// identifier that is not ASCII. It leaks if the output becomes too long there.
static bool demangle_in_pieces(const char *mangled, struct strbuf *out)
{
    static const int options = DMGL_PARAMS | DMGL_ANSI;
    struct collector collector = {.out = out};
    if (setjmp(collector.too_long) != 0) {
        return false;
    }
    if (rust_demangle_callback(mangled, options, collect_output, &collector) != 0) {
        return true;
    }
    strbuf_clear(out);
    return cplus_demangle_v3_callback(mangled, options, collect_output, &collector) != 0;
}

// Return the length of "operator" and its symbol at the start of `text`, if the symbol has an angle
// bracket; else 0.
static size_t operator_len(const char *text)
{
    static const char word[] = "operator";
    static const char *const symbols[] = {"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                          "<=",  ">=",  "->",  "<",   ">"};
    const size_t len = sizeof(word) - 1;
    for (size_t i = 0; strncmp(text, word, len) == 0 && i < ARRAY_LEN(symbols); i++) {
        if (strncmp(text + len, symbols[i], strlen(symbols[i])) == 0) {
            return len + strlen(symbols[i]);
        }
    }
    return 0;
}

// Append `name` without template arguments below that many levels: "f<std::list<...> >". Return
// false if its brackets do not match.
static bool append_levels(struct strbuf *out, const char *name, size_t levels)
{
    size_t depth = 0;
    for (size_t len = 0; *name != 0; name += len) {
        len = strcspn(name, "<>-o");
        len = len > 0 ? len : operator_len(name);
        len = len > 0 ? len : strncmp(name, "->", 2) == 0 ? 2 : 1;
        if (*name == '>' && depth-- == 0) {
            return false;
        }
        strbuf_append(out, name, depth <= levels ? len : 0);
        if (*name == '<' && depth++ == levels) {
            strbuf_append_text(out, "...");
        }
    }
    return depth == 0;
}

// Shorten a name that is too long: templates of templates grow exponentially. Keep as many levels
// as a reader can bear.
static bool shorten_name(struct strbuf *name)
{
    CLEANUP(strbuf_release) struct strbuf shorter = {0};
    CLEANUP(strbuf_release) struct strbuf longer = {0};
    for (size_t levels = 0; levels <= LEVELS_MAX && longer.len <= SHORTENED_BYTES; levels++) {
        strbuf_clear(&shorter);
        strbuf_append(&shorter, strbuf_text(&longer), longer.len);
        strbuf_clear(&longer);
        if (!append_levels(&longer, strbuf_text(name), levels)) {
            return false;
        }
    }
    const struct strbuf *best =
        longer.len <= SHORTENED_BYTES || shorter.len == 0 ? &longer : &shorter;
    strbuf_clear(name);
    strbuf_append(name, strbuf_text(best), best->len);
    return !best->failed && name->len <= SYMBOL_NAME_MAX;
}

static bool demangle_d(const char *mangled, size_t len, struct strbuf *out)
{
    size_t references = 0;
    for (size_t i = 0; i < len; i++) {
        references += mangled[i] == 'Q';
    }
    if (len > MAX_D_BYTES || references > MAX_D_REFERENCES) {
        return false;
    }
    char *name = dlang_demangle(mangled, DMGL_PARAMS);
    if (name == NULL) {
        return false;
    }
    size_t name_len = strlen(name);
    bool fits = name_len <= SYMBOL_NAME_MAX;
    strbuf_append(out, name, fits ? name_len : 0);
    free(name);
    return fits;
}

// Replace characters that a terminal could take for a command: no name contains them.
static void blunt_name(struct strbuf *out)
{
    for (size_t i = 0; i < out->len; i++) {
        if ((unsigned char)out->data[i] < 0x20 || out->data[i] == 0x7f) {
            out->data[i] = '?';
        }
    }
}

enum err symbol_name_demangle(const char *mangled, struct strbuf *out)
{
    bool done = false;
    size_t len = strnlen(mangled, SYMBOL_NAME_MAX);
    strbuf_clear(out);
    if (len < SYMBOL_NAME_MAX && mangled[0] == '_') {
        done = mangled[1] == 'D' ? demangle_d(mangled, len, out) : demangle_in_pieces(mangled, out);
        done = done && (out->len <= SYMBOL_NAME_MAX || shorten_name(out));
    }
    if (!done) {
        strbuf_clear(out);
        strbuf_append(out, mangled, len);
    }
    blunt_name(out);
    return strbuf_result(out);
}
