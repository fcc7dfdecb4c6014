// SPDX-License-Identifier: MIT
// column: see column.h.
#include "recording/column.h"

enum {
    MAX_LEB128_BYTES = 10,
    ENCODE_STEP = 4096, // values between two requests for room
};

// Small numbers of either sign become small: 0, -1, 1, -2 are 0, 1, 2, 3.
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t coded)
{
    return coded >> 1 ^ (0 - (coded & 1));
}

static size_t leb128_bytes(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
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

// What an encoding writes for entry i. Always inline: `encoding` is a constant where it is called,
// so that loops do not ask for it.
ALWAYS_INLINE uint64_t coded(const uint64_t *values,
                             struct column_context context,
                             size_t i,
                             enum column_encoding encoding)
{
    switch (encoding) {
    case COLUMN_DELTAS:
        return zigzag(values[i] - (i > 0 ? values[i - 1] : 0));
    case COLUMN_DIFFERENCES:
        return zigzag(context.reference[i] - values[i]);
    case COLUMN_POSITIONS:
        return zigzag(context.first + i - values[i]);
    case COLUMN_SHARES:
        return zigzag(context.shares[i] - values[i]);
    case COLUMN_CONSTANT:
    case COLUMN_VALUES:
    case COLUMN_TEXT:
        break;
    }
    return values[i];
}

static bool are_all_equal(const uint64_t *values, size_t count)
{
    uint64_t unlike = 0;
    for (size_t i = 1; i < count; i++) {
        unlike |= values[i] ^ values[0];
    }
    return unlike == 0;
}

ALWAYS_INLINE size_t sum_of_bytes(const uint64_t *values,
                                  struct column_context context,
                                  size_t count,
                                  enum column_encoding encoding)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += leb128_bytes(coded(values, context, i, encoding));
    }
    return bytes;
}

// How many bytes `count` values take.
static size_t coded_bytes(const uint64_t *values,
                          struct column_context context,
                          size_t count,
                          enum column_encoding encoding)
{
    switch (encoding) {
    case COLUMN_DELTAS:
        return sum_of_bytes(values, context, count, COLUMN_DELTAS);
    case COLUMN_DIFFERENCES:
        return sum_of_bytes(values, context, count, COLUMN_DIFFERENCES);
    case COLUMN_POSITIONS:
        return sum_of_bytes(values, context, count, COLUMN_POSITIONS);
    case COLUMN_SHARES:
        return sum_of_bytes(values, context, count, COLUMN_SHARES);
    case COLUMN_CONSTANT:
    case COLUMN_VALUES:
    case COLUMN_TEXT:
        break;
    }
    return sum_of_bytes(values, context, count, COLUMN_VALUES);
}

ALWAYS_INLINE uint8_t *put_all(uint8_t *at,
                               const uint64_t *values,
                               struct column_context context,
                               size_t begin,
                               size_t end,
                               enum column_encoding encoding)
{
    for (size_t i = begin; i < end; i++) {
        at = put_leb128(at, coded(values, context, i, encoding));
    }
    return at;
}

// Writes values[begin..end) at `at`, where there is room; returns what is behind them.
static uint8_t *put_coded(uint8_t *at,
                          const uint64_t *values,
                          struct column_context context,
                          size_t begin,
                          size_t end,
                          enum column_encoding encoding)
{
    switch (encoding) {
    case COLUMN_DELTAS:
        return put_all(at, values, context, begin, end, COLUMN_DELTAS);
    case COLUMN_DIFFERENCES:
        return put_all(at, values, context, begin, end, COLUMN_DIFFERENCES);
    case COLUMN_POSITIONS:
        return put_all(at, values, context, begin, end, COLUMN_POSITIONS);
    case COLUMN_SHARES:
        return put_all(at, values, context, begin, end, COLUMN_SHARES);
    case COLUMN_CONSTANT:
    case COLUMN_VALUES:
    case COLUMN_TEXT:
        break;
    }
    return put_all(at, values, context, begin, end, COLUMN_VALUES);
}

static enum column_encoding
smallest_encoding(const uint64_t *values, struct column_context context, size_t count)
{
    // Of equals the first is taken: what needs no prediction, then what needs the nearest one.
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
    for (size_t i = 0; i < numbers;) {
        size_t end = numbers - i > ENCODE_STEP ? i + ENCODE_STEP : numbers;
        if (!strbuf_reserve(out, (end - i) * MAX_LEB128_BYTES)) {
            break; // out->failed says so
        }
        uint8_t *start = (uint8_t *)out->data + out->len;
        out->len += (size_t)(put_coded(start, values, context, i, end, encoding) - start);
        i = end;
    }
    return encoding;
}

// Returns what follows the number, or NULL if it is not whole or does not fit 64 bits.
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
