// SPDX-License-Identifier: MIT
// protobuf: the wire format. See protobuf.h.
#include "formats/codec/protobuf.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
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

void protobuf_message(struct strbuf *out, uint32_t field, struct strbuf *message)
{
    protobuf_bytes(out, field, strbuf_text(message), message->len);
    out->failed = out->failed || message->failed;
    strbuf_clear(message);
}

bool protobuf_next(struct cursor *c, struct protobuf_field *out)
{
    if (c->failed || cursor_left(c) == 0) {
        return false;
    }
    uint64_t tag = cursor_uleb(c);
    struct protobuf_field field = {.number = tag >> 3};
    switch (tag & 7) {
    case WIRE_VARINT:
        field.value = cursor_uleb(c);
        break;
    case WIRE_FIXED64:
        field.value = cursor_u64(c);
        break;
    case WIRE_FIXED32:
        field.value = cursor_u32(c);
        break;
    case WIRE_BYTES:
        field.is_bytes = true;
        field.bytes.len = cursor_uleb(c);
        field.bytes.data = cursor_take(c, field.bytes.len);
        break;
    default:
        c->failed = true;
    }
    c->failed = c->failed || field.number == 0;
    if (!c->failed) {
        *out = field;
    }
    return !c->failed;
}

struct protobuf_numbers protobuf_numbers_of(const struct protobuf_field *field)
{
    return field->is_bytes ? (struct protobuf_numbers){.packed = cursor_over(field->bytes)}
                           : (struct protobuf_numbers){.single = field->value, .has_single = true};
}

bool protobuf_next_number(struct protobuf_numbers *n, uint64_t *out)
{
    if (n->has_single) {
        n->has_single = false;
        *out = n->single;
        return true;
    }
    if (n->packed.failed || cursor_left(&n->packed) == 0) {
        return false;
    }
    uint64_t value = cursor_uleb(&n->packed);
    if (!n->packed.failed) {
        *out = value;
    }
    return !n->packed.failed;
}
