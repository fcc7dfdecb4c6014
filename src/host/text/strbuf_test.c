// SPDX-License-Identifier: MIT
#include "host/text/strbuf.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void pieces_join(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf sb = {0};
    assert_string_equal(strbuf_text(&sb), "");
    strbuf_append_text(&sb, "a");
    strbuf_append_char(&sb, 'b');
    strbuf_append(&sb, "c\0d", 3);
    strbuf_printf(&sb, "%d-%s", 17, "e");
    assert_int_equal(sb.len, 9);
    assert_memory_equal(strbuf_text(&sb), "abc\0d17-e", 10);
    strbuf_truncate(&sb, 100);
    assert_int_equal(sb.len, 9);
    strbuf_truncate(&sb, 2);
    assert_string_equal(strbuf_text(&sb), "ab");
    strbuf_append_hex(&sb, (struct bytes){(const uint8_t *)"\x00\x9f\xfa", 3});
    assert_string_equal(strbuf_text(&sb), "ab009ffa");
    assert_int_equal(strbuf_result(&sb), ERR_OK);
}

static void it_is_terminated_at_every_length(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf sb = {0};
    for (size_t i = 1; i <= 5000; i++) {
        strbuf_printf(&sb, "%c", 'a' + (int)(i % 26));
        assert_int_equal(strlen(strbuf_text(&sb)), i);
        assert_true(sb.len < sb.cap);
    }
}

static void a_failure_is_walk_cache_until_it_is_cleared(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf sb = {0};
    strbuf_append_text(&sb, "kept");
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_false(strbuf_reserve(&sb, sizes[i]));
        strbuf_append_text(&sb, "not added");
        assert_string_equal(strbuf_text(&sb), "kept");
        assert_int_equal(strbuf_result(&sb), ERR_NO_MEMORY);
        sb.failed = false;
    }
    sb.failed = true;
    strbuf_clear(&sb);
    strbuf_append_text(&sb, "again");
    assert_string_equal(strbuf_text(&sb), "again");
}

static void a_stream_fails_with_its_text(void **state)
{
    (void)state;
    for (int failed = 0; failed <= 1; failed++) {
        CLEANUP(strbuf_release) struct strbuf sb = {0};
        FILE *stream = strbuf_open_stream(&sb);
        assert_non_null(stream);
        assert_int_equal(fputc('a', stream), 'a'); // stays in the stream's buffer
        sb.failed = failed != 0;
        assert_int_equal(fclose(stream), failed != 0 ? EOF : 0);
        assert_string_equal(strbuf_text(&sb), failed != 0 ? "" : "a");
    }
}

static void taking_moves_the_text_out(void **state)
{
    (void)state;
    struct strbuf sb = {0};
    strbuf_append_text(&sb, "mine");
    char *text = strbuf_take(&sb);
    assert_string_equal(text, "mine");
    free(text);
    assert_null(sb.data);
    text = strbuf_take(&sb);
    assert_string_equal(text, "");
    free(text);
    sb.failed = true;
    assert_null(strbuf_take(&sb));
}

static void it_holds_no_more_than_it_may(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf sb = {.most = 5};
    strbuf_append_text(&sb, "12345");
    assert_false(sb.failed);
    strbuf_append_char(&sb, '6');
    assert_true(sb.failed);
    assert_string_equal(strbuf_text(&sb), "12345");
    strbuf_clear(&sb);
    strbuf_append(&sb, "123456", 6);
    assert_int_equal(strbuf_result(&sb), ERR_NO_MEMORY);
    assert_string_equal(strbuf_text(&sb), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_join),
        cmocka_unit_test(it_is_terminated_at_every_length),
        cmocka_unit_test(a_failure_is_walk_cache_until_it_is_cleared),
        cmocka_unit_test(it_holds_no_more_than_it_may),
        cmocka_unit_test(a_stream_fails_with_its_text),
        cmocka_unit_test(taking_moves_the_text_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
