// SPDX-License-Identifier: MIT
#include "recording/format/column.h"

#include "base/compiler.h"
#include "base/minmax.h"

enum {
    COUNTED_TOGETHER = 1024, // numbers
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

static uint8_t *put_leb128(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

// Return what `encoding` predicts for value `i`. Needs the values before it.
static inline uint64_t
predicted(const uint64_t *values, const struct column_context *context, unsigned encoding, size_t i)
{
    switch (encoding) {
    case COLUMN_DELTAS:
        return i > 0 ? values[i - 1] : 0;
    case COLUMN_DIFFERENCES:
        return context->reference[i];
    case COLUMN_SHARES:
        return context->shares[i];
    case COLUMN_POSITIONS:
        return context->first + i;
    default:
        return 0;
    }
}

static inline bool has_predictions(unsigned encoding)
{
    return encoding != COLUMN_VALUES && encoding != COLUMN_CONSTANT;
}

// Return the number that stands for value `i`.
static inline uint64_t
coded(const uint64_t *values, const struct column_context *context, unsigned encoding, size_t i)
{
    if (!has_predictions(encoding)) {
        return values[i];
    }
    const uint64_t difference = predicted(values, context, encoding, i) - values[i];
    return zigzag(encoding == COLUMN_DELTAS ? 0 - difference : difference);
}

// Return the bytes that an encoding takes, or at least `limit` if it takes that many: each number
// takes one, so most encodings that are too long are seen early.
static size_t coded_bytes(const uint64_t *values,
                          const struct column_context *context,
                          size_t count,
                          enum column_encoding encoding,
                          size_t limit)
{
    size_t bytes = count;
    for (size_t first = 0; first < count && bytes < limit; first += COUNTED_TOGETHER) {
        const size_t end = min_u64(first + COUNTED_TOGETHER, count);
        for (size_t i = first; i < end; i++) {
            bytes += leb128_bytes(coded(values, context, encoding, i)) - 1;
        }
    }
    return bytes;
}

static bool are_all_equal(const uint64_t *values, size_t count)
{
    uint64_t unlike = 0;
    for (size_t i = 1; i < count && unlike == 0; i++) {
        unlike = values[i] ^ values[0];
    }
    return unlike == 0;
}

static enum column_encoding smallest_encoding(const uint64_t *values,
                                              const struct column_context *context,
                                              size_t count,
                                              size_t *out_bytes)
{
    // Of equally short encodings the first one wins: without a prediction, then from the nearest
    // value.
    static const enum column_encoding candidates[] = {
        COLUMN_VALUES, COLUMN_DIFFERENCES, COLUMN_SHARES, COLUMN_POSITIONS, COLUMN_DELTAS};
    enum column_encoding best = COLUMN_CONSTANT;
    if (are_all_equal(values, count)) {
        *out_bytes = coded_bytes(values, context, 1, COLUMN_CONSTANT, SIZE_MAX);
        return COLUMN_CONSTANT;
    }
    *out_bytes = SIZE_MAX;
    for (size_t c = 0; c < ARRAY_LEN(candidates); c++) {
        if ((candidates[c] == COLUMN_DIFFERENCES && context->reference == NULL) ||
            (candidates[c] == COLUMN_SHARES && context->shares == NULL)) {
            continue;
        }
        const size_t bytes = coded_bytes(values, context, count, candidates[c], *out_bytes);
        if (bytes < *out_bytes) {
            best = candidates[c];
            *out_bytes = bytes;
        }
    }
    return best;
}

enum column_encoding column_encode(const uint64_t *values,
                                   struct column_context context,
                                   size_t count,
                                   struct strbuf *out)
{
    size_t bytes;
    const enum column_encoding encoding = smallest_encoding(values, &context, count, &bytes);
    const size_t numbers = encoding == COLUMN_CONSTANT ? 1 : count;
    if (strbuf_reserve(out, bytes)) { // else out->failed is set
        uint8_t *at = (uint8_t *)out->data + out->len;
        for (size_t i = 0; i < numbers; i++) {
            at = put_leb128(at, coded(values, &context, encoding, i));
        }
        out->len += bytes;
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
    for (size_t i = 0; i < count && has_predictions(encoding); i++) {
        const uint64_t expected = predicted(values, &context, encoding, i);
        const uint64_t difference = unzigzag(values[i]);
        values[i] = encoding == COLUMN_DELTAS ? expected + difference : expected - difference;
    }
    return true;
}
