// SPDX-License-Identifier: MIT
// column: see column.h.
#include "recording/format/column.h"

#include <string.h>

#include "base/compiler.h"

enum {
    MAX_LEB128_BYTES = 10,
    BLOCK = 64,         // values that are coded together
    SHORT_BITS = 8 * 7, // bits of a number that takes at most eight bytes
};

// Map small numbers of either sign to small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t coded)
{
    return coded >> 1 ^ (0 - (coded & 1));
}

static uint32_t leb128_bytes(uint64_t value)
{
    const uint32_t highest = 63 - (uint32_t)__builtin_clzll(value | 1);
    return (highest * 9 + 73) >> 6; // highest / 7 + 1, exact for all 64 bits
}

// Spread `value`, which is below 2^56, over bytes of seven bits.
static uint64_t spread(uint64_t value)
{
    value = (value & 0x000000000fffffff) | (value & 0x00fffffff0000000) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    return (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
}

// Write a number; there is room for MAX_LEB128_BYTES. Its length is unpredictable, so no branch
// depends on it, except for the longest numbers.
ALWAYS_INLINE uint8_t *put_leb128(uint8_t *at, uint64_t value)
{
    if (LIKELY(value >> SHORT_BITS == 0)) {
        const uint32_t bytes = leb128_bytes(value);
        const uint64_t others = ((uint64_t)1 << (8 * (bytes - 1))) - 1; // all bytes but the last
        put_u64(at, spread(value) | (0x8080808080808080 & others));
        return at + bytes;
    }
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

// Encoded numbers, followed by zeros.
struct coded_block {
    uint64_t numbers[BLOCK];
    uint64_t all; // all numbers ORed
    size_t count;
};

// Compilers vectorize loops of a constant length whose inputs are not written.
ALWAYS_INLINE void subtract_each(const uint64_t *restrict from,
                                 const uint64_t *restrict what,
                                 size_t count,
                                 uint64_t *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = zigzag(from[i] - what[i]);
    }
}

static void subtract(const uint64_t *from, const uint64_t *what, size_t count, uint64_t out[BLOCK])
{
    if (LIKELY(count == BLOCK)) {
        subtract_each(from, what, BLOCK, out);
    } else {
        subtract_each(from, what, count, out);
    }
}

ALWAYS_INLINE void subtract_each_from_position(uint64_t first,
                                               const uint64_t *restrict what,
                                               size_t count,
                                               uint64_t *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = zigzag(first + i - what[i]);
    }
}

static void
subtract_from_positions(uint64_t first, const uint64_t *what, size_t count, uint64_t out[BLOCK])
{
    if (LIKELY(count == BLOCK)) {
        subtract_each_from_position(first, what, BLOCK, out);
    } else {
        subtract_each_from_position(first, what, count, out);
    }
}

static uint64_t or_all(const uint64_t numbers[BLOCK])
{
    uint64_t all = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        all |= numbers[i];
    }
    return all;
}

// Encode the values from number `begin` of `count` on, up to one block.
static void code_block(const uint64_t *values,
                       struct column_context context,
                       size_t begin,
                       size_t count,
                       enum column_encoding encoding,
                       struct coded_block *out)
{
    const uint64_t *from = values + begin;
    const size_t now = count - begin < BLOCK ? count - begin : BLOCK;
    const size_t is_first = begin == 0; // the first value has no value before it
    switch (encoding) {
    case COLUMN_DELTAS:
        out->numbers[0] = zigzag(from[0]);
        subtract(from + is_first, from + is_first - 1, now - is_first, out->numbers + is_first);
        break;
    case COLUMN_DIFFERENCES:
        subtract(context.reference + begin, from, now, out->numbers);
        break;
    case COLUMN_SHARES:
        subtract(context.shares + begin, from, now, out->numbers);
        break;
    case COLUMN_POSITIONS:
        subtract_from_positions(context.first + begin, from, now, out->numbers);
        break;
    case COLUMN_CONSTANT:
    case COLUMN_VALUES:
    case COLUMN_TEXT:
        memcpy(out->numbers, from, now * sizeof(out->numbers[0]));
    }
    memset(out->numbers + now, 0, (BLOCK - now) * sizeof(out->numbers[0]));
    out->all = or_all(out->numbers);
    out->count = now;
}

// Return the bytes of a block: one for each number, and one more for each further seven bits.
static size_t block_bytes(const struct coded_block *block)
{
    size_t bytes = block->count;
    for (uint32_t bits = 7; bits < SHORT_BITS && block->all >> bits != 0; bits += 7) {
        const uint64_t rest = ((uint64_t)1 << SHORT_BITS) - ((uint64_t)1 << bits);
        uint64_t longer = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            longer += (block->numbers[i] + rest) >> SHORT_BITS;
        }
        bytes += longer;
    }
    return bytes;
}

// Return the bytes of a block with numbers of any length.
static size_t long_block_bytes(const struct coded_block *block)
{
    size_t bytes = 0;
    for (size_t i = 0; i < block->count; i++) {
        bytes += leb128_bytes(block->numbers[i]);
    }
    return bytes;
}

static size_t coded_bytes(const uint64_t *values,
                          struct column_context context,
                          size_t count,
                          enum column_encoding encoding)
{
    struct coded_block block;
    size_t bytes = 0;
    for (size_t begin = 0; begin < count; begin += BLOCK) {
        code_block(values, context, begin, count, encoding, &block);
        bytes += block.all >> SHORT_BITS == 0 ? block_bytes(&block) : long_block_bytes(&block);
    }
    return bytes;
}

static uint8_t *put_block(uint8_t *at, const struct coded_block *block)
{
    if (block->all < 0x80) {
        for (size_t i = 0; i < BLOCK; i++) { // room for all is reserved
            at[i] = (uint8_t)block->numbers[i];
        }
        return at + block->count;
    }
    for (size_t i = 0; i < block->count; i++) {
        at = put_leb128(at, block->numbers[i]);
    }
    return at;
}

static bool are_all_equal(const uint64_t *values, size_t count)
{
    uint64_t unlike = 0;
    for (size_t i = 1; i < count && unlike == 0; i++) {
        unlike = values[i] ^ values[0];
    }
    return unlike == 0;
}

static enum column_encoding
smallest_encoding(const uint64_t *values, struct column_context context, size_t count)
{
    // Of equally short encodings the first one wins: without a prediction, then from the nearest
    // value.
    static const enum column_encoding candidates[] = {
        COLUMN_VALUES, COLUMN_DIFFERENCES, COLUMN_SHARES, COLUMN_POSITIONS, COLUMN_DELTAS};
    enum column_encoding best = COLUMN_CONSTANT;
    size_t best_bytes = SIZE_MAX;
    if (are_all_equal(values, count)) {
        return COLUMN_CONSTANT;
    }
    for (size_t c = 0; c < ARRAY_LEN(candidates); c++) {
        if ((candidates[c] == COLUMN_DIFFERENCES && context.reference == NULL) ||
            (candidates[c] == COLUMN_SHARES && context.shares == NULL)) {
            continue;
        }
        const size_t bytes = coded_bytes(values, context, count, candidates[c]);
        if (bytes < best_bytes) {
            best = candidates[c];
            best_bytes = bytes;
        }
        if (bytes == count) {
            break; // no encoding is shorter
        }
    }
    return best;
}

enum column_encoding column_encode(const uint64_t *values,
                                   struct column_context context,
                                   size_t count,
                                   struct strbuf *out)
{
    enum column_encoding encoding = smallest_encoding(values, context, count);
    size_t numbers = encoding == COLUMN_CONSTANT ? 1 : count;
    struct coded_block block;
    for (size_t begin = 0; begin < numbers; begin += BLOCK) {
        if (!strbuf_reserve(out, (size_t)BLOCK * MAX_LEB128_BYTES)) {
            break; // out->failed is set
        }
        code_block(values, context, begin, numbers, encoding, &block);
        uint8_t *start = (uint8_t *)out->data + out->len;
        out->len += (size_t)(put_block(start, &block) - start);
    }
    return encoding;
}

// Return the address after the number, or NULL if it is truncated or does not fit 64 bits.
static const uint8_t *get_leb128(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return NULL;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return at;
        }
    }
    return NULL;
}

static bool decode_numbers(struct bytes data, size_t count, uint64_t *values)
{
    const uint8_t *at = data.data;
    const uint8_t *end = data.data + data.len;
    for (size_t i = 0; i < count; i++) {
        if (at < end && *at < 0x80) {
            values[i] = *at++;
            continue;
        }
        at = get_leb128(at, end, &values[i]);
        if (at == NULL) {
            return false;
        }
    }
    return at == end;
}

bool column_decode(struct bytes data,
                   unsigned encoding,
                   struct column_context context,
                   size_t count,
                   uint64_t *values)
{
    if (encoding == COLUMN_CONSTANT) {
        if (count == 0 || !decode_numbers(data, 1, values)) {
            return false;
        }
        for (size_t i = 1; i < count; i++) {
            values[i] = values[0];
        }
        return true;
    }
    bool is_known = encoding == COLUMN_VALUES || encoding == COLUMN_DELTAS ||
                    encoding == COLUMN_POSITIONS ||
                    (encoding == COLUMN_DIFFERENCES && context.reference != NULL) ||
                    (encoding == COLUMN_SHARES && context.shares != NULL);
    if (!is_known || data.len < count || !decode_numbers(data, count, values)) {
        return false;
    }
    uint64_t before = 0;
    for (size_t i = 0; i < count && encoding == COLUMN_DELTAS; i++) {
        before += unzigzag(values[i]);
        values[i] = before;
    }
    for (size_t i = 0; i < count && encoding == COLUMN_DIFFERENCES; i++) {
        values[i] = context.reference[i] - unzigzag(values[i]);
    }
    for (size_t i = 0; i < count && encoding == COLUMN_POSITIONS; i++) {
        values[i] = context.first + i - unzigzag(values[i]);
    }
    for (size_t i = 0; i < count && encoding == COLUMN_SHARES; i++) {
        values[i] = context.shares[i] - unzigzag(values[i]);
    }
    return true;
}
