// SPDX-License-Identifier: MIT
// Tests of top_picture, top_chart and top_plain: a model in, lines of text out.
#include "cli/top/top_picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/text/screen_text.h"
#include "cli/top/test_sample.h"
#include "cli/top/top_plain.h"
#include "host/text/utf8.h"

static const char text[] = "main;load(a.c:7) 10 1048576 1 0 0 0 9 1048576\n@0 5 524288 0 0 0\n"
                           "@1 5 524288 1 0 0\n"
                           "main;void app::Cache<std::string>::insert(int)(/src/cache.cpp:9) "
                           "20500 5120 20480 0 20480 100 5 500\n@0 20500 5120 20480 0 20480\n"
                           "main;libz.so!deflate 1 100 0 0 0 0\n@1 1 100 0 0 0\n"
                           "main;\x1b[2Jevil(a\x07.c:1) 1 10 0 0 0 0\n@1 1 10 0 0 0\n";

static void draw(const struct top_model *model, struct top_size size, struct top_picture *picture)
{
    assert_int_equal(top_picture_draw(model, size, picture), ERR_OK);
}

static void start(struct top_model *model, struct top_size size)
{
    model->lines = top_picture_list_lines(size);
    assert_int_equal(top_model_take(model, test_sample(text, 2000)), ERR_OK);
}

static void press(struct top_model *model, uint32_t key)
{
    enum top_action action;
    assert_int_equal(top_model_key(model, key, &action), ERR_OK);
}

// The line above the list.
static size_t head_line(const struct top_picture *picture)
{
    size_t line = 0;
    while (picture->lines.items[line].style != TOP_STYLE_HEAD) {
        line++;
        assert_true(line < picture->lines.len);
    }
    return line;
}

static void rates_have_at_most_five_characters(void **state)
{
    (void)state;
    static const struct {
        unsigned allocations; // in two seconds
        const char *rate;
    } cases[] = {{0, "(0/s)"},          {1, "(0.5/s)"},         {19, "(9.5/s)"},
                 {20, "(10/s)"},        {19998, "(9999/s)"},    {19999, "(10.0k/s)"},
                 {1998998, "(999k/s)"}, {1999000, "(1.00M/s)"}, {20000000, "(10.0M/s)"}};
    const struct top_size size = {80, 24, false};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char drawing[64];
        CLEANUP(top_model_release) struct top_model model = {0};
        CLEANUP(top_picture_release) struct top_picture picture = {0};
        const unsigned count = cases[i].allocations;
        (void)snprintf(drawing, sizeof(drawing), "f %u %u\n@0 %u %u 0 0 0\n", count, count, count,
                       count);
        model.lines = top_picture_list_lines(size);
        assert_int_equal(top_model_take(&model, test_sample(drawing, 2000)), ERR_OK);
        draw(&model, size, &picture);
        if (strstr(top_picture_text(&picture, 3), cases[i].rate) == NULL) {
            fail_msg("%s: %s", cases[i].rate, top_picture_text(&picture, 3));
        }
    }
}

// As in the report, a run of wrapper frames is one line, and frames outside main are not shown.
static void stacks_fold_wrapper_frames(void **state)
{
    (void)state;
    static const char wrapped[] =
        "__libc_start_main;main(a.cpp:9);void std::vector<int>::push_back(int)(v.h:1);"
        "void std::vector<int>::_M_realloc_insert(int)(v.h:2);"
        "std::allocator<int>::allocate(unsigned long)(v.h:3) 10 1000 0 0 0 0 10 1000\n"
        "@0 10 1000 0 0 0\n";
    static const char *const lines[] = {
        "    std::vector<int>::push_back(int) (+ 2 frames)                          v.h:1",
        "    main                                                                 a.cpp:9", ""};
    const struct top_size size = {80, 24, false};
    CLEANUP(top_model_release) struct top_model model = {0};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    model.lines = top_picture_list_lines(size);
    assert_int_equal(top_model_take(&model, test_sample(wrapped, 2000)), ERR_OK);
    press(&model, TOP_KEY_ENTER);
    draw(&model, size, &picture);
    const size_t head = head_line(&picture);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_string_equal(top_picture_text(&picture, head + 2 + i), lines[i]);
    }
}

static void the_usual_screen_has_every_part(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "cairn top                                                        running, 2.00 s",
        "Heap   1.00 MiB   ======================######################  peak 1.00 MiB",
        NULL, // RSS: none was sampled
        "31 live blocks, 20,512 allocations (10.3k/s), 99.8% temporary",
        "Change 0 B since 2.00 s",
        NULL, // the finding
        NULL,
        NULL,
        "     LIVEv     CHANGE  ALLOC/S    TEMP  FUNCTION                           PLACE",
        " 1.00 MiB         0 B        5       0  load                               a.c:7",
        " 5.00 KiB         0 B    10.2k   20.5k  app::Cache::insert           cache.cpp:9",
        "    100 B         0 B      0.5       0  deflate                          libz.so",
        "     10 B         0 B      0.5       0  \\x1b[2Jevil                    a\\x07.c:1",
        "",
    };
    const struct top_size size = {80, 24, false};
    CLEANUP(top_model_release) struct top_model model = {0};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    start(&model, size);
    draw(&model, size, &picture);
    assert_int_equal(picture.lines.len, 24);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (wanted[i] != NULL) {
            assert_string_equal(top_picture_text(&picture, i), wanted[i]);
        }
    }
    assert_int_equal(picture.lines.items[9].style, TOP_STYLE_CURSOR);
    assert_int_equal(picture.lines.items[10].style, TOP_STYLE_PLAIN);
    assert_non_null(strstr(top_picture_text(&picture, 23), "F10 Quit"));
}

// What the lines of the finding say, joined.
static void join_finding(const struct top_picture *picture, struct strbuf *out)
{
    for (size_t i = 0; i < head_line(picture); i++) {
        const char *line = top_picture_text(picture, i);
        if (picture->lines.items[i].style == TOP_STYLE_NOTE && line[0] != '\0') {
            strbuf_printf(out, "%s%s", out->len > 0 ? " " : "", line);
        }
    }
}

// Who it is and how much can be read, and no sentence ends in its middle.
static void the_finding_is_shown_in_whole_sentences(void **state)
{
    (void)state;
    static const char grown[] =
        "main;void app::sessions::open_a_session_of_a_visitor<std::string>(int)"
        "(/src/sessions.cpp:18) 1000 13000000 400 4000000 0 0 600 9000000 9000000\n"
        "@0 500 5000000 0 0 0\n@2 0 0 400 4000000 0\n@5 500 8000000 0 0 0\n";
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    size_t cut = 0;
    for (unsigned width = 60; width < 300; width++) {
        CLEANUP(top_model_release) struct top_model model = {0};
        CLEANUP(strbuf_release) struct strbuf said = {0};
        const struct top_size size = {width, width % 2 == 0 ? 24 : 14, true};
        model.lines = top_picture_list_lines(size);
        assert_int_equal(top_model_take(&model, test_sample(grown, 2000)), ERR_OK);
        draw(&model, size, &picture);
        join_finding(&picture, &said);
        const struct findings *findings = &model.sample->findings;
        const char *whole = findings_sentence(findings, &findings->items.items[0]);
        const char *is = strbuf_text(&said);
        print_message("%u: %s\n", width, is);
        assert_memory_equal(is, whole, strlen(is));
        const char *end = strrchr(is, '.');
        assert_non_null(end);
        assert_string_equal(end, ".");
        assert_non_null(strstr(is, "open_a_session_of_a_visitor (sessions.cpp:18) "));
        assert_non_null(strstr(is, "8.58 MiB"));
        cut += strlen(is) < strlen(whole);
        assert_true(width < 80 || size.height < 24 || strlen(whole) > 240 ||
                    strlen(is) == strlen(whole));
    }
    assert_true(cut > 0);
}

// The name of unnamed code has its module, which is not repeated beside it.
static void a_module_is_shown_once(void **state)
{
    (void)state;
    static const char unnamed[] = "main;libz.so! 1 100 0 0 0 0\n@1 1 100 0 0 0\n";
    const struct top_size size = {80, 24, true};
    CLEANUP(top_model_release) struct top_model model = {0};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    model.lines = top_picture_list_lines(size);
    assert_int_equal(top_model_take(&model, test_sample(unnamed, 2000)), ERR_OK);
    draw(&model, size, &picture);
    const char *row = top_picture_text(&picture, head_line(&picture) + 1);
    const char *name = strstr(row, "  libz.so+0x");
    assert_non_null(name);
    assert_null(strstr(name + 3, "libz.so"));
}

// The column of the order is there even if the screen is too narrow for all columns.
static void the_order_can_be_seen(void **state)
{
    (void)state;
    static const struct {
        uint32_t key;
        unsigned width;
        const char *head; // of the list
    } cases[] = {
        {'l', 80, "     LIVEv     CHANGE  ALLOC/S    TEMP  FUNCTION"},
        {'a', 80, "     LIVE      CHANGE  ALLOC/S    TEMP  ALLOCSv FUNCTION"},
        {'p', 80, "     LIVE      CHANGE  ALLOC/S    TEMP    AT PEAKv FUNCTION"},
        {'t', 40, "     LIVE    TEMPv FUNCTION"},
        {'t', 39, "     LIVE  FUNCTION"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct top_size size = {cases[i].width, 24, true};
        CLEANUP(top_model_release) struct top_model model = {0};
        CLEANUP(top_picture_release) struct top_picture picture = {0};
        start(&model, size);
        press(&model, cases[i].key);
        draw(&model, size, &picture);
        const char *line = top_picture_text(&picture, head_line(&picture));
        if (strncmp(line, cases[i].head, strlen(cases[i].head)) != 0) {
            fail_msg("%zu: '%s'", i, line);
        }
    }
}

// Whatever the size and the page, a picture has as many lines as the screen, and none is too long.
static void every_size_fits(void **state)
{
    (void)state;
    static const uint32_t keys[] = {
        TOP_KEY_END, 'a', TOP_KEY_ENTER, TOP_KEY_F0 + 1, '/', 'x', 'y', TOP_KEY_ESCAPE, 'k'};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    for (unsigned width = 1; width < 300; width += width < 130 ? 1 : 23) {
        CLEANUP(top_model_release) struct top_model model = {0};
        const struct top_size size = {width, 1 + width % 50, width % 2 == 0};
        draw(&model, size, &picture); // nothing yet
        start(&model, size);
        for (size_t key = 0; key < ARRAY_LEN(keys); key++) {
            press(&model, keys[key]);
            draw(&model, size, &picture);
            assert_true(picture.lines.len <= size.height);
            for (size_t i = 0; i < picture.lines.len; i++) {
                const char *line = top_picture_text(&picture, i);
                if (screen_columns(line) > width || !utf8_is_valid(line)) {
                    fail_msg("%u columns, line %zu: '%s'", width, i, line);
                }
            }
        }
    }
}

static void the_bottom_says_what_is_typed_asked_or_wrong(void **state)
{
    (void)state;
    const struct top_size size = {80, 24, true};
    CLEANUP(top_model_release) struct top_model model = {.state = TOP_RUNS};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    start(&model, size);
    press(&model, '/');
    press(&model, 'o');
    press(&model, 'a');
    draw(&model, size, &picture);
    assert_non_null(strstr(top_picture_text(&picture, 23), "Filter: oa_"));
    assert_non_null(strstr(top_picture_text(&picture, 4), "1 of 4 call sites matches 'oa'"));
    press(&model, TOP_KEY_ESCAPE);
    press(&model, 'k');
    draw(&model, size, &picture);
    assert_non_null(strstr(top_picture_text(&picture, 23), "End the program (SIGTERM)? y/n"));
    press(&model, 'n');
    (void)snprintf(model.message, sizeof(model.message), "the disk is full \x1b[31m");
    draw(&model, size, &picture);
    assert_string_equal(top_picture_text(&picture, 23), "the disk is full \\x1b[31m");
}

static void the_state_is_in_the_title(void **state)
{
    (void)state;
    static const struct {
        enum top_run_state state;
        const char *words;
    } cases[] = {{TOP_RUNS, "running, 2.00 s"},
                 {TOP_ENDED, "has ended, 2.00 s"},
                 {TOP_STOPPED, "runs on, no longer recorded, 2.00 s"},
                 {TOP_LOST, "recorder has died, 2.00 s"}};
    const struct top_size size = {80, 24, true};
    CLEANUP(top_model_release) struct top_model model = {0};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    start(&model, size);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        model.state = cases[i].state;
        draw(&model, size, &picture);
        assert_true(screen_ends_with(top_picture_text(&picture, 0), cases[i].words));
    }
}

static void changes_have_signs(void **state)
{
    (void)state;
    static const struct {
        int64_t change_bytes;
        const char *wanted;
    } cases[] = {{0, "0 B"},          {1, "+1 B"},          {-1, "-1 B"},
                 {1536, "+1.50 KiB"}, {-1536, "-1.50 KiB"}, {INT64_MIN, "-8.00 EiB"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        top_append_change(&out, cases[i].change_bytes);
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void charts_are_as_high_as_their_values(void **state)
{
    (void)state;
    static const struct {
        uint64_t most;
        unsigned line;
        unsigned lines;
        bool is_utf8;
        const char *wanted;
    } cases[] = {
        {80, 0, 1, false, " ..-*##"},
        {80, 0, 2, false, "    =*#"},
        {80, 1, 2, false, " .:####"},
        {0, 0, 1, false, "       "},
        {80, 0, 1, true,
         " \xe2\x96\x81\xe2\x96\x81\xe2\x96\x83\xe2\x96\x86\xe2\x96\x87\xe2\x96\x88"},
    };
    static const uint64_t values[] = {0, 1, 10, 35, 60, 72, 80};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(strbuf_release) struct strbuf out = {0};
        top_chart_append(&out, values, ARRAY_LEN(values), cases[i].most, cases[i].line,
                         cases[i].lines, cases[i].is_utf8);
        print_message("%zu: '%s'\n", i, strbuf_text(&out));
        assert_string_equal(strbuf_text(&out), cases[i].wanted);
    }
}

static void plain_text_has_whole_numbers_and_names(void **state)
{
    (void)state;
    char *is = NULL;
    size_t len = 0;
    CLEANUP(top_model_release) struct top_model model = {.lines = 1};
    assert_int_equal(top_model_take(&model, test_sample(text, 2000)), ERR_OK);
    FILE *out = open_memstream(&is, &len);
    assert_int_equal(top_plain_write(&model, 3, out), ERR_OK);
    assert_int_equal(fclose(out), 0);
    print_message("%s", is);
    assert_non_null(strstr(is, " (process 0): running, 2.00 s\n"
                               "live heap: 1.00 MiB in 31 blocks, peak 1.00 MiB\n"));
    assert_non_null(
        strstr(is, "allocations: 20,512, 10,256 per second, 20,480 temporary (99.8%)\n"));
    assert_non_null(strstr(is, "3 of 4 call sites, most live bytes first\n"));
    assert_non_null(
        strstr(is, "  5.00 KiB         0 B    10,250        20,480        20,500      500 B  "
                   "void app::Cache<std::string>::insert(int)  cache.cpp:9\n"));
    assert_null(strstr(is, "evil")); // beyond the limit
    free(is);
}

static const char sampled_text[] =
    "main;load(a.c:7) 1000 1048576 100 104857 0 0 900 943719 943719\n"
    "@0 500 524288 0 0 0\n@1 500 524288 100 104857 0\n";

// Figures of a sample have their errors, beside them or in a column of its own.
static void estimates_have_errors(void **state)
{
    (void)state;
    char *is = NULL;
    size_t len = 0;
    CLEANUP(top_model_release) struct top_model model = {.lines = 1};
    CLEANUP(top_picture_release) struct top_picture picture = {0};
    assert_int_equal(top_model_take(&model, test_sampled(sampled_text, 2000, 4096)), ERR_OK);
    FILE *out = open_memstream(&is, &len);
    assert_int_equal(top_plain_write(&model, 3, out), ERR_OK);
    assert_int_equal(fclose(out), 0);
    print_message("%s", is);
    // 2 * sqrt(9 / 8 * 4096 * 943719), 14% of it
    assert_non_null(strstr(is, "live heap: 922 KiB ±14% in 900 blocks, peak 922 KiB ±11%\n"));
    assert_non_null(strstr(is, "[estimates: 1 of "));
    assert_non_null(strstr(is, " 922 KiB ±14%  "));
    free(is);
    for (unsigned width = 60; width < 200; width++) {
        draw(&model, (struct top_size){width, 24, true}, &picture);
        const char *row = top_picture_text(&picture, head_line(&picture) + 1);
        const char *head = top_picture_text(&picture, head_line(&picture));
        assert_non_null(strstr(head, "LIVEv     ±  "));
        assert_non_null(strstr(row, " 922 KiB   ±14%  "));
        assert_non_null(strstr(top_picture_text(&picture, 1), "Heap    922 KiB ±14%"));
        draw(&model, (struct top_size){width, 24, false}, &picture);
        assert_non_null(
            strstr(top_picture_text(&picture, head_line(&picture) + 1), " 922 KiB   +-14%  "));
    }
    draw(&model, (struct top_size){160, 24, true}, &picture);
    const char *head = top_picture_text(&picture, head_line(&picture));
    size_t signs = 0;
    for (const char *at = head; (at = strstr(at, "±")) != NULL; at++) {
        signs++;
    }
    assert_int_equal(signs, TOP_COLUMN_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_have_at_most_five_characters),
        cmocka_unit_test(stacks_fold_wrapper_frames),
        cmocka_unit_test(the_usual_screen_has_every_part),
        cmocka_unit_test(the_finding_is_shown_in_whole_sentences),
        cmocka_unit_test(a_module_is_shown_once),
        cmocka_unit_test(the_order_can_be_seen),
        cmocka_unit_test(every_size_fits),
        cmocka_unit_test(the_bottom_says_what_is_typed_asked_or_wrong),
        cmocka_unit_test(the_state_is_in_the_title),
        cmocka_unit_test(changes_have_signs),
        cmocka_unit_test(charts_are_as_high_as_their_values),
        cmocka_unit_test(estimates_have_errors),
        cmocka_unit_test(plain_text_has_whole_numbers_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
