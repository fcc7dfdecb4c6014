// SPDX-License-Identifier: MIT
// protobuf: Protocol Buffers' wire format, as far as writing needs it.
//
// A message is appended to a strbuf field by field; a field of a field is built in a strbuf of its
// own and added as bytes. Out of memory is the strbuf's to remember. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/strbuf.h"

void protobuf_varint(struct strbuf *out, uint64_t value);

// A number; 0 is the default of every field and is not written.
void protobuf_u64(struct strbuf *out, uint32_t field, uint64_t value);

// A string, bytes, a message or packed numbers.
void protobuf_bytes(struct strbuf *out, uint32_t field, const void *data, size_t len);
void protobuf_message(struct strbuf *out, uint32_t field, const struct strbuf *message);
