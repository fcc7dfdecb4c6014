// SPDX-License-Identifier: MIT
// protobuf: each wire type at its limits, by examples from the specification of the encoding.
#include "formats/codec/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"

static struct cursor over(const char *bytes, size_t len)
{
    return cursor_over((struct bytes){.data = (const uint8_t *)bytes, .len = len});
}

static void numbers_have_seven_bits_a_byte(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        size_t len;
        const char *bytes;
    } cases[] = {
        {0, 1, "\x00"},
        {127, 1, "\x7f"},
        {128, 2, "\x80\x01"},
        {150, 2, "\x96\x01"},
        {16383, 2, "\xff\x7f"},
        {16384, 3, "\x80\x80\x01"},
        {UINT64_MAX, 10, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        protobuf_varint(&out, cases[i].value);
        assert_int_equal(out.len, cases[i].len);
        assert_memory_equal(out.data, cases[i].bytes, out.len);
    }
}

static void fields_are_written_as_specified(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    CLEANUP(strbuf_release) struct strbuf inner = {0};
    protobuf_u64(&out, 1, 150);
    protobuf_u64(&out, 7, 0); // the default: nothing
    protobuf_bytes(&out, 2, "testing", 7);
    protobuf_u64(&inner, 1, 150);
    protobuf_message(&out, 3, &inner);
    protobuf_u64(&out, 16, 1); // the first field whose tag takes two bytes
    static const char wanted[] = "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x80\x01\x01";
    assert_int_equal(out.len, sizeof(wanted) - 1);
    assert_memory_equal(out.data, wanted, out.len);
}

static void fields_are_read_by_their_wire_type(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        size_t len;
        bool is_good;
        bool is_bytes;
        uint64_t number;
        uint64_t value; // of a number; else a number of bytes
    } cases[] = {
        {"\x08\x96\x01", 3, true, false, 1, 150},
        {"\x09\x01\x02\x00\x00\x00\x00\x00\x00", 9, true, false, 1, 0x201},
        {"\x12\x02xy", 4, true, true, 2, 2},
        {"\x12\x00", 2, true, true, 2, 0},
        {"\x1d\x01\x02\x00\x00", 5, true, false, 3, 0x201},
        {"\x80\x01\x05", 3, true, false, 16, 5},
        {"\x08", 1, false, false, 0, 0},                             // without a value
        {"\x08\x96", 2, false, false, 0, 0},                         // half a value
        {"\x09\x01\x02\x00\x00\x00\x00\x00", 8, false, false, 0, 0}, // a byte is missing
        {"\x1d\x01\x02\x00", 4, false, false, 0, 0},                 // a byte is missing
        {"\x12\x03xy", 4, false, false, 0, 0},                       // a byte is missing
        {"\x00\x05", 2, false, false, 0, 0},                         // field 0
        {"\x0b\x05", 2, false, false, 0, 0},                         // groups, which are obsolete
        {"\x0e\x05", 2, false, false, 0, 0},                         // undefined types
        {"\x0f\x05", 2, false, false, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cursor c = over(cases[i].message, cases[i].len);
        struct protobuf_field field = {0};
        print_message("case %zu\n", i);
        assert_int_equal(protobuf_next(&c, &field), cases[i].is_good);
        assert_int_equal(c.failed, !cases[i].is_good);
        assert_int_equal(field.number, cases[i].number);
        assert_int_equal(field.is_bytes, cases[i].is_bytes);
        assert_int_equal(cases[i].is_bytes ? field.bytes.len : field.value, cases[i].value);
        assert_false(protobuf_next(&c, &field)); // the end, or still failed
        assert_int_equal(c.failed, !cases[i].is_good);
    }
}

static void repeated_numbers_may_be_packed(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        size_t len;
        bool is_good;
        size_t count;
        uint64_t numbers[3];
    } cases[] = {
        {"\x08\x00", 2, true, 1, {0}},
        {"\x08\x07", 2, true, 1, {7}},
        {"\x0a\x00", 2, true, 0, {0}},
        {"\x0a\x04\x00\x96\x01\x03", 6, true, 3, {0, 150, 3}},
        {"\x0a\x02\x05\x96", 4, false, 1, {5}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cursor c = over(cases[i].message, cases[i].len);
        struct protobuf_field field;
        assert_true(protobuf_next(&c, &field));
        struct protobuf_numbers numbers = protobuf_numbers_of(&field);
        uint64_t number;
        for (size_t at = 0; at < cases[i].count; at++) {
            assert_true(protobuf_next_number(&numbers, &number));
            assert_int_equal(number, cases[i].numbers[at]);
        }
        assert_false(protobuf_next_number(&numbers, &number));
        assert_int_equal(numbers.packed.failed, !cases[i].is_good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_seven_bits_a_byte),
        cmocka_unit_test(fields_are_written_as_specified),
        cmocka_unit_test(fields_are_read_by_their_wire_type),
        cmocka_unit_test(repeated_numbers_may_be_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
