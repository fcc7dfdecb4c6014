// SPDX-License-Identifier: MIT
#include "server/pages/base64.h"

#include "base/hex.h"

enum {
    HEX_MAX_BYTES = 64
};

void base64_append(struct strbuf *out, struct bytes data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data.len; i += 3) {
        size_t left = data.len - i;
        uint32_t group = (uint32_t)data.data[i] << 16 |
                         (left > 1 ? (uint32_t)data.data[i + 1] << 8 : 0) |
                         (left > 2 ? data.data[i + 2] : 0);
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63],
                        digits[group & 63]};
        for (size_t missing = 4; missing > left + 1; missing--) {
            text[missing - 1] = '=';
        }
        strbuf_append(out, text, sizeof(text));
    }
}

void base64_append_hex(struct strbuf *out, const char *hex)
{
    uint8_t bytes[HEX_MAX_BYTES];
    base64_append(out, hex_parse(hex, bytes, sizeof(bytes)));
}
