// SPDX-License-Identifier: MIT
// protobuf: Protocol Buffers' wire format.
//
// Writing: a message is appended to a strbuf field by field; a field of a field is built in a
// strbuf of its own and added as bytes. Out of memory is the strbuf's to remember.
// Reading: a cursor over a message gives its fields one by one, in whatever order they come.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "host/text/strbuf.h"

void protobuf_varint(struct strbuf *out, uint64_t value);

// A number; 0 is the default of every field and is not written.
void protobuf_u64(struct strbuf *out, uint32_t field, uint64_t value);

// A string, bytes, a message or packed numbers.
void protobuf_bytes(struct strbuf *out, uint32_t field, const void *data, size_t len);
void protobuf_message(struct strbuf *out, uint32_t field, const struct strbuf *message);

struct protobuf_field {
    uint64_t number;
    bool is_bytes;      // else it is a number
    uint64_t value;     // of a number
    struct bytes bytes; // borrowed from the message
};

// The next field; false at the end of the message, or if c->failed then: what comes is no field.
bool protobuf_next(struct cursor *c, struct protobuf_field *out) MUST_USE;

// The numbers of a repeated field: all of a packed one, or its single one.
struct protobuf_numbers {
    struct cursor packed;
    uint64_t single;
    bool has_single;
};

struct protobuf_numbers protobuf_numbers_of(const struct protobuf_field *field);

// The next one; false at the end, or if n->packed.failed then.
bool protobuf_next_number(struct protobuf_numbers *n, uint64_t *out) MUST_USE;
