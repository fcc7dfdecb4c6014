// SPDX-License-Identifier: MIT
// fuzz_symbols: libFuzzer over the parsers of src/symbols that are our own: perf maps, and the
// bounds around the demangler. The first byte of the input chooses. Whatever comes out must be
// within the promised limits.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/perf_map.h"
#include "symbols/names/symbol_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void fuzz_perf_map(const uint8_t *data, size_t size)
{
    struct strbuf text = {0};
    struct jit_map map = {0};
    strbuf_append(&text, data, size);
    if (perf_map_add_lines(&map, &text) != ERR_OK || jit_map_seal(&map) != ERR_OK) {
        abort(); // no memory
    }
    for (size_t i = 0; i < map.codes.len; i++) {
        const struct jit_code *code = &map.codes.items[i];
        if (code->begin < code->end) {
            const char *name = jit_map_find(&map, code->begin);
            require(name != NULL && strlen(name) <= size);
            require(jit_map_find(&map, code->end - 1) != NULL);
        }
    }
    jit_map_release(&map);
    strbuf_release(&text);
}

static void fuzz_symbol_name(const uint8_t *data, size_t size)
{
    CLEANUP(strbuf_release) struct strbuf mangled = {0};
    CLEANUP(strbuf_release) struct strbuf out = {0};
    strbuf_append(&mangled, data, size);
    if (strbuf_result(&mangled) != ERR_OK ||
        symbol_name_demangle(strbuf_text(&mangled), &out) != ERR_OK) {
        return;
    }
    require(out.len <= SYMBOL_NAME_MAX);
    require(strpbrk(strbuf_text(&out), "\n\033\t") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        (data[0] == 'p' ? fuzz_perf_map : fuzz_symbol_name)(data + 1, size - 1);
    }
    return 0;
}
