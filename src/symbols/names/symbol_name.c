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
    MAX_D_REFERENCES = 24
};

struct collector {
    struct strbuf *out;
    jmp_buf too_long;
};

static void collect(const char *piece, size_t len, void *context)
{
    struct collector *collector = context;
    strbuf_append(collector->out, piece, len);
    if (collector->out->len > SYMBOL_NAME_MAX || collector->out->failed) {
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
    if (rust_demangle_callback(mangled, options, collect, &collector) != 0) {
        return true;
    }
    strbuf_clear(out);
    return cplus_demangle_v3_callback(mangled, options, collect, &collector) != 0;
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
static void blunt(struct strbuf *out)
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
    }
    if (!done) {
        strbuf_clear(out);
        strbuf_append(out, mangled, len);
    }
    blunt(out);
    return strbuf_result(out);
}
