// SPDX-License-Identifier: MIT
// protobuf: the wire format of Protocol Buffers.
//
// Writing: fields are appended to a message in a strbuf. A message that is a field of another is
// built in its own strbuf and appended as bytes. The strbuf remembers a lack of memory. Reading: a
// cursor over a message returns its fields one by one, in any order.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "host/text/strbuf.h"

void protobuf_varint(struct strbuf *out, uint64_t value);

// Append a number. 0 is the default of every field and is not written.
void protobuf_u64(struct strbuf *out, uint32_t field, uint64_t value);

// Append a string, bytes, a message or packed numbers.
void protobuf_bytes(struct strbuf *out, uint32_t field, const void *data, size_t len);

// Append what was collected in `message`, and clear it. `out` takes over its failure.
void protobuf_message(struct strbuf *out, uint32_t field, struct strbuf *message);

struct protobuf_field {
    uint64_t number;
    bool is_bytes;      // false: a number
    uint64_t value;     // a number's value
    struct bytes bytes; // borrowed from the message
};

// Read the next field. Return false at the end of the message, and with c->failed set if the bytes
// are not a field.
bool protobuf_next(struct cursor *c, struct protobuf_field *out) MUST_USE;

// The numbers of a repeated field, packed or single.
struct protobuf_numbers {
    struct cursor packed;
    uint64_t single;
    bool has_single;
};

struct protobuf_numbers protobuf_numbers_of(const struct protobuf_field *field);

// Read the next number. Return false at the end, and with n->packed.failed set for malformed bytes.
bool protobuf_next_number(struct protobuf_numbers *n, uint64_t *out) MUST_USE;
