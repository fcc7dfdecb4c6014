// SPDX-License-Identifier: MIT
// Columns of lengths around the block length, with numbers of all lengths, against an encoder that
// writes byte by byte: the bytes are equal, the encoding is the first of the shortest ones, and
// decoding gives the encoded values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "recording/format/column.h"

enum {
    VALUES_MAX = 200,
    BYTES_MAX = VALUES_MAX * 10,
};

struct column {
    uint64_t values[VALUES_MAX];
    uint64_t reference[VALUES_MAX];
    uint64_t shares[VALUES_MAX];
    size_t count;
    struct column_context context;
};

static uint64_t signed_number(uint64_t difference)
{
    const int64_t number = (int64_t)difference;
    return number < 0 ? (uint64_t)(-1 - number) * 2 + 1 : (uint64_t)number * 2;
}

// Return the number that docs/format/recording.md defines for each encoding.
static uint64_t number_of(const struct column *c, size_t i, enum column_encoding encoding)
{
    switch (encoding) {
    case COLUMN_DELTAS:
        return signed_number(c->values[i] - (i > 0 ? c->values[i - 1] : 0));
    case COLUMN_DIFFERENCES:
        return signed_number(c->reference[i] - c->values[i]);
    case COLUMN_POSITIONS:
        return signed_number(c->context.first + i - c->values[i]);
    case COLUMN_SHARES:
        return signed_number(c->shares[i] - c->values[i]);
    case COLUMN_CONSTANT:
    case COLUMN_VALUES:
    case COLUMN_TEXT:
        break;
    }
    return c->values[i];
}

static size_t write_slowly(const struct column *c, enum column_encoding encoding, uint8_t *out)
{
    size_t bytes = 0;
    const size_t count = encoding == COLUMN_CONSTANT ? 1 : c->count;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = number_of(c, i, encoding);
        for (; number > 0x7f; number >>= 7) {
            out[bytes++] = (uint8_t)(number & 0x7f) | 0x80;
        }
        out[bytes++] = (uint8_t)number;
    }
    return bytes;
}

static bool is_constant(const struct column *c)
{
    for (size_t i = 1; i < c->count; i++) {
        if (c->values[i] != c->values[0]) {
            return false;
        }
    }
    return true;
}

static enum column_encoding best_of(const struct column *c)
{
    static const enum column_encoding candidates[] = {
        COLUMN_VALUES, COLUMN_DIFFERENCES, COLUMN_SHARES, COLUMN_POSITIONS, COLUMN_DELTAS};
    enum column_encoding best = COLUMN_CONSTANT;
    size_t best_bytes = SIZE_MAX;
    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]) && !is_constant(c); i++) {
        uint8_t bytes[BYTES_MAX];
        if ((candidates[i] == COLUMN_DIFFERENCES && c->context.reference == NULL) ||
            (candidates[i] == COLUMN_SHARES && c->context.shares == NULL)) {
            continue;
        }
        const size_t needed = write_slowly(c, candidates[i], bytes);
        if (needed < best_bytes) {
            best = candidates[i];
            best_bytes = needed;
        }
    }
    return best;
}

static void check(const struct column *c)
{
    CLEANUP(strbuf_release) struct strbuf encoded = {0};
    uint8_t want[BYTES_MAX];
    uint64_t decoded[VALUES_MAX];
    const enum column_encoding encoding = column_encode(c->values, c->context, c->count, &encoded);
    assert_int_equal(strbuf_result(&encoded), ERR_OK);
    assert_int_equal(encoding, best_of(c));
    assert_int_equal(encoded.len, write_slowly(c, encoding, want));
    assert_memory_equal(encoded.data, want, encoded.len);
    assert_true(column_decode(strbuf_bytes(&encoded), encoding, c->context, c->count, decoded));
    assert_memory_equal(decoded, c->values, c->count * sizeof(decoded[0]));
}

// Make values of at most `bits`, near the prediction of one of the encodings.
static void fill(struct column *c, uint32_t near, uint32_t bits, uint64_t *random)
{
    c->context.first = next_random(random) >> 40;
    for (size_t i = 0; i < c->count; i++) {
        c->reference[i] = next_random(random);
        c->shares[i] = next_random(random);
        const uint64_t small = next_random(random) >> (64 - bits) >> (next_random(random) % bits);
        const uint64_t bases[] = {0, c->reference[i], c->shares[i], c->context.first + i,
                                  i > 0 ? c->values[i - 1] : 0};
        c->values[i] = bases[near] + (next_random(random) % 2 == 0 ? small : 0 - small);
    }
}

static void columns_are_as_an_encoder_writes_them_that_goes_byte_by_byte(void **state)
{
    (void)state;
    static struct column c;
    uint64_t random = 88172645463325252ULL;
    for (c.count = 1; c.count <= VALUES_MAX; c.count++) {
        for (uint32_t bits = 1; bits <= 63; bits++) {
            for (uint32_t near = 0; near < 5; near++) {
                fill(&c, near, bits, &random);
                c.context.reference = bits % 2 == 0 ? c.reference : NULL;
                c.context.shares = bits % 3 == 0 ? c.shares : NULL;
                check(&c);
            }
        }
    }
}

// A number takes at most ten bytes, and only the lowest bit of the tenth fits.
static void numbers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const struct {
        uint8_t tenth;
        uint8_t eleventh; // 0: none
        bool fits;
    } cases[] = {{0, 0, true},     {1, 0, true},     {2, 0, false}, {3, 0, false},
                 {0x7f, 0, false}, {0x80, 1, false}, {1, 1, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t bytes[11];
        memset(bytes, 0xff, 9);
        bytes[9] = cases[i].tenth;
        bytes[10] = cases[i].eleventh;
        const size_t len = cases[i].eleventh != 0 ? 11 : 10;
        uint64_t value = 77;
        const bool fits = column_decode((struct bytes){bytes, len}, COLUMN_VALUES,
                                        (struct column_context){0}, 1, &value);
        print_message("tenth byte %#x\n", cases[i].tenth);
        assert_int_equal(fits, cases[i].fits);
        if (fits) {
            assert_int_equal(value, cases[i].tenth != 0 ? UINT64_MAX : UINT64_MAX >> 1);
        }
    }
}

static void numbers_at_the_edges_of_lengths_take_what_they_must(void **state)
{
    (void)state;
    static struct column c;
    for (uint32_t bits = 0; bits < 64; bits++) {
        for (c.count = 2; c.count < 70; c.count++) {
            for (size_t i = 0; i < c.count; i++) {
                c.values[i] = ((uint64_t)1 << bits) - i % 3; // below, at, and beside a power of 2
            }
            check(&c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_an_encoder_writes_them_that_goes_byte_by_byte),
        cmocka_unit_test(numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(numbers_at_the_edges_of_lengths_take_what_they_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
