// SPDX-License-Identifier: MIT
#include "recording/format/foreign_file.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *bytes;
    enum foreign_kind kind;
} starts[] = {
    {"\177ELF", FOREIGN_ELF},
    {"\013cairn", FOREIGN_TEXT_MODE},         // the magic number without its top bit,
    {"\213cairn", FOREIGN_TEXT_MODE},         // with its line end changed,
    {"\302\213cairn", FOREIGN_TEXT_MODE},     // as UTF-8,
    {"\357\277\275cairn", FOREIGN_TEXT_MODE}, // as UTF-8 by a converter that does not know the byte
};

static bool begins_with(struct bytes data, const char *start, size_t len)
{
    return data.len >= len && memcmp(data.data, start, len) == 0;
}

enum foreign_kind foreign_file_kind(struct bytes head)
{
    bool is_gzip = begins_with(head, "\x1f\x8b", 2);
    bool is_zstd = begins_with(head, "\x28\xb5\x2f\xfd", 4);
    if (is_gzip || is_zstd) {
        return FOREIGN_COMPRESSED;
    }
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (begins_with(head, starts[i].bytes, strlen(starts[i].bytes))) {
            return starts[i].kind;
        }
    }
    return FOREIGN_UNKNOWN;
}
