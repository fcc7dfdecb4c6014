// SPDX-License-Identifier: MIT
// fuzz_cached_names: parse any bytes as a file of the name cache, with the right checksum, because
// a checksum does not prove who wrote the file. An accepted file must be readable to its last
// frame, and writing it again must give the same content.
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/compiler.h"
#include "symbols/cached_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum {
    CHECKSUM_AT = 16,
    SUMMED_AT = 24,
};

static size_t walk(const struct cached_names *names)
{
    size_t bytes = strlen(names->reader) + strlen(names->module) + strlen(names->source);
    for (uint32_t i = 0; i < names->place_count; i++) {
        struct cached_place found = {0};
        const struct cached_place place = cached_names_place(names, i);
        if (!cached_names_find(names, place.address, &found) || found.first != place.first) {
            abort();
        }
        for (uint32_t k = 0; k < place.count; k++) {
            const struct cached_frame frame = cached_names_frame(names, place.first + k);
            bytes += strlen(frame.function) + strlen(frame.file) + frame.line % 2;
        }
    }
    return bytes;
}

static void rewrite(const struct cached_names *names)
{
    CLEANUP(strbuf_release) struct strbuf out = {0};
    struct fresh_names nothing = {0};
    const struct string_table strings = {0};
    const struct cached_names_labels labels = {
        .reader = names->reader, .module = names->module, .source = names->source};
    const enum err problem = cached_names_write(names, &nothing, &strings, &labels, &out);
    if (problem == ERR_NO_MEMORY || problem == ERR_LIMIT) {
        return;
    }
    struct cached_names again = {0};
    if (problem != ERR_OK || cached_names_parse(strbuf_bytes(&out), &again) != ERR_OK ||
        walk(&again) != walk(names)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct cached_names names;
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL) {
        return 0;
    }
    if (len > 0) {
        memcpy(copy, data, len);
    }
    if (len >= SUMMED_AT) {
        put_u64(copy + CHECKSUM_AT, XXH3_64bits(copy + SUMMED_AT, len - SUMMED_AT));
    }
    if (cached_names_parse((struct bytes){.data = copy, .len = len}, &names) == ERR_OK) {
        (void)walk(&names);
        rewrite(&names);
    }
    free(copy);
    return 0;
}
