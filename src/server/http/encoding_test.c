// SPDX-License-Identifier: MIT
// Tests of encoding: gzip in both directions, the request headers about encodings and tags, and
// base64 by the examples of RFC 4648, section 10, and every byte.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/http/encoding.h"

static void gzip_comes_back_as_it_was(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1000, 262143, 262144, 262145, 3000000};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        CLEANUP(strbuf_release) struct strbuf plain = {0};
        CLEANUP(strbuf_release) struct strbuf packed = {0};
        CLEANUP(strbuf_release) struct strbuf again = {0};
        uint32_t random = 1;
        for (size_t at = 0; at < lengths[i]; at++) {
            random = random * 1664525 + 1013904223;
            // Compressible data, random data, and zeros.
            strbuf_append_char(&plain, (char)(at % 4096 < 2048 ? random >> 24 : at % 7));
        }
        strbuf_append_text(&packed, "kept"); // the output is appended
        assert_int_equal(gzip_compress(strbuf_bytes(&plain), GZIP_FAST, &packed), ERR_OK);
        assert_memory_equal(packed.data, "kept\x1f\x8b", 6);
        struct bytes body = {(const uint8_t *)packed.data + 4, packed.len - 4};
        assert_int_equal(gzip_expand(body, &again), ERR_OK);
        assert_int_equal(again.len, plain.len);
        assert_memory_equal(strbuf_text(&again), strbuf_text(&plain), plain.len);
    }
}

static void damaged_gzip_is_an_error(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf packed = {0};
    static const char text[] = "some text that is long enough to be compressed, compressed";
    struct bytes plain = {(const uint8_t *)text, sizeof(text)};
    assert_int_equal(gzip_compress(plain, GZIP_SMALL, &packed), ERR_OK);
    for (size_t len = 0; len < packed.len; len++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        struct bytes cut = {(const uint8_t *)packed.data, len};
        assert_int_equal(gzip_expand(cut, &out), ERR_CORRUPT);
    }
}

static void gzip_is_sent_to_those_who_take_it(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool accepts;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"gzip", true},
        {"GZIP", true},
        {"gzip, deflate, br, zstd", true},
        {"br;q=1.0, gzip;q=0.8, *;q=0.1", true},
        {"deflate", false},
        {"identity", false},
        {"*", true},
        {"gzip;q=0", false},
        {"gzip;q=0.000", false},
        {"gzip; q=0", false},
        {"gzip;q=0.001", true},
        {"x-gzip", false},
        {"gzipped", false},
        {",,,", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (accepts_gzip(cases[i].header) != cases[i].accepts) {
            fail_msg("\"%s\"", cases[i].header);
        }
    }
}

static void tags_are_compared_weakly(void **state)
{
    (void)state;
    struct etag tag = etag_of(0x1234);
    assert_string_equal(tag.text, "W/\"0000000000001234\"");
    static const struct {
        const char *header;
        bool is_in;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"*", true},
        {"W/\"0000000000001234\"", true},
        {"\"0000000000001234\"", true},
        {"\"a\", W/\"0000000000001234\", \"b\"", true},
        {"W/\"0000000000001235\"", false},
        {"0000000000001234", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (etag_is_in(&tag, cases[i].header) != cases[i].is_in) {
            fail_msg("\"%s\"", cases[i].header);
        }
    }
    struct etag other = etag_of(0x1235);
    assert_string_not_equal(tag.text, other.text);
}

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
        cmocka_unit_test(gzip_comes_back_as_it_was),
        cmocka_unit_test(damaged_gzip_is_an_error),
        cmocka_unit_test(gzip_is_sent_to_those_who_take_it),
        cmocka_unit_test(tags_are_compared_weakly),
        cmocka_unit_test(the_examples_of_the_rfc),
        cmocka_unit_test(digits_of_all_values),
        cmocka_unit_test(hexadecimal_digits_are_bytes),
        cmocka_unit_test(more_digits_than_the_longest_digest_are_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
