// SPDX-License-Identifier: MIT
// fuzz_toml: parse any bytes as a settings file. The result must be consistent.
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/text/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    CLEANUP(toml_release) struct toml toml = {0};
    struct err_info info = {0};
    struct bytes input = {.data = data, .len = len};
    if (toml_parse(input, "fuzz", &toml, &info) != ERR_OK) {
        if (info.text[0] == '\0') {
            abort(); // a failure without a sentence
        }
        return 0;
    }
    for (size_t i = 0; i < toml.entries.len; i++) {
        const struct toml_entry *entry = &toml.entries.items[i];
        bool is_sound = entry->table < toml.tables.len && entry->key < toml.texts.len &&
                        entry->text < toml.texts.len && toml_text(&toml, entry->key)[0] != '\0';
        if (!is_sound) {
            abort();
        }
    }
    return 0;
}
