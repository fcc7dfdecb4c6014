// SPDX-License-Identifier: MIT
// Tests of base64: the examples of RFC 4648, section 10, and every byte.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/pages/base64.h"

static void the_examples_of_the_rfc(void **state)
{
    (void)state;
    static const struct {
        const char *plain;
        const char *text;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        base64_append(&out,
                      (struct bytes){(const uint8_t *)cases[i].plain, strlen(cases[i].plain)});
        assert_string_equal(strbuf_text(&out), cases[i].text);
    }
}

static void digits_of_all_values(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    // 64 groups of six bits, from 0 to 63.
    uint8_t bytes[48] = {0};
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned bit = 0; bit < 6; bit++) {
            unsigned place = i * 6 + bit;
            bytes[place / 8] |= (uint8_t)((i >> (5 - bit) & 1) << (7 - place % 8));
        }
    }
    base64_append(&out, (struct bytes){bytes, sizeof(bytes)});
    assert_string_equal(strbuf_text(&out),
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

static void hexadecimal_digits_are_bytes(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf out = {0};
    base64_append_hex(&out, "666f6f62");
    assert_string_equal(strbuf_text(&out), "Zm9vYg==");
    strbuf_clear(&out);
    base64_append_hex(&out, "00ff10");
    assert_string_equal(strbuf_text(&out), "AP8Q");
}

// The longest digest is one of 512 bits.
static void more_digits_than_the_longest_digest_are_nothing(void **state)
{
    (void)state;
    char hex[2 * 65 + 1];
    memset(hex, '0', sizeof(hex) - 1);
    hex[sizeof(hex) - 1] = '\0';
    CLEANUP(strbuf_release) struct strbuf out = {0};
    base64_append_hex(&out, hex);
    assert_int_equal(out.len, 0);
    base64_append_hex(&out, hex + 2);
    assert_int_equal(out.len, 88); // of 64 bytes
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_rfc),
        cmocka_unit_test(digits_of_all_values),
        cmocka_unit_test(hexadecimal_digits_are_bytes),
        cmocka_unit_test(more_digits_than_the_longest_digest_are_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
