// SPDX-License-Identifier: MIT
// protobuf: writing the wire format. See protobuf.h.
#include "formats/protobuf.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_BYTES = 2,
};

void protobuf_varint(struct strbuf *out, uint64_t value)
{
    char bytes[10];
    size_t len = 0;
    while (value >= 0x80) {
        bytes[len++] = (char)(unsigned char)(value | 0x80);
        value >>= 7;
    }
    bytes[len++] = (char)value;
    strbuf_append(out, bytes, len);
}

void protobuf_u64(struct strbuf *out, uint32_t field, uint64_t value)
{
    if (value != 0) {
        protobuf_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
        protobuf_varint(out, value);
    }
}

void protobuf_bytes(struct strbuf *out, uint32_t field, const void *data, size_t len)
{
    protobuf_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    protobuf_varint(out, len);
    strbuf_append(out, data, len);
}

void protobuf_message(struct strbuf *out, uint32_t field, const struct strbuf *message)
{
    protobuf_bytes(out, field, strbuf_text(message), message->len);
}
