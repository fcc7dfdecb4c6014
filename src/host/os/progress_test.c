// SPDX-License-Identifier: MIT
#include "host/os/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const uint64_t ms = 1000000;

// A terminal in memory, and a clock that only the test moves.
struct bench {
    struct progress progress;
    uint64_t now_ns;
    char *text;
    size_t len;
    FILE *stream;
};

static uint64_t bench_now(void *context)
{
    return *(uint64_t *)context;
}

static void bench_init(struct bench *b, unsigned width_columns)
{
    *b = (struct bench){.now_ns = 5000 * ms};
    b->stream = open_memstream(&b->text, &b->len);
    assert_non_null(b->stream);
    progress_init_with_clock(&b->progress, b->stream, width_columns, bench_now, &b->now_ns);
}

static const char *bench_text(struct bench *b)
{
    assert_int_equal(fflush(b->stream), 0);
    return b->text;
}

static void bench_release(struct bench *b)
{
    assert_int_equal(fclose(b->stream), 0);
    free(b->text);
}

static void short_work_shows_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 80);
    for (uint64_t i = 0; i < 1000; i++) {
        progress_update(&b.progress, "reading", i, 1000);
        b.now_ns += ms - 1000;
    }
    progress_clear(&b.progress);
    assert_string_equal(bench_text(&b), "");
    bench_release(&b);
}

static void long_work_shows_at_most_ten_lines_a_second_and_wipes_the_last(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 80);
    b.now_ns += 1000 * ms;
    progress_update(&b.progress, "reading", 1, 4);
    assert_string_equal(bench_text(&b), "\r\033[Kreading: 25.0%");
    b.now_ns += 99 * ms;
    progress_update(&b.progress, "reading", 2, 4);
    assert_string_equal(bench_text(&b), "\r\033[Kreading: 25.0%");
    b.now_ns += 1 * ms;
    progress_update(&b.progress, "counting", 12345, 0);
    assert_string_equal(bench_text(&b), "\r\033[Kreading: 25.0%\r\033[Kcounting: 12,345");
    progress_clear(&b.progress);
    progress_clear(&b.progress);
    assert_string_equal(bench_text(&b), "\r\033[Kreading: 25.0%\r\033[Kcounting: 12,345\r\033[K");
    bench_release(&b);
}

static void a_line_never_wraps_nor_controls_the_terminal(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 12);
    b.now_ns += 1000 * ms;
    progress_update(&b.progress, "\033[2Jabc\nreading a file", 5, 4);
    assert_string_equal(bench_text(&b), "\r\033[K?[2Jabc?rea");
    bench_release(&b);
}

static void what_is_no_terminal_stays_silent(void **state)
{
    (void)state;
    FILE *stream = tmpfile();
    assert_non_null(stream);
    struct progress p;
    progress_init(&p, stream);
    assert_null(p.stream);
    p.started_ns = 0; // long ago
    progress_update(&p, "reading", 1, 2);
    progress_clear(&p);
    assert_int_equal(ftell(stream), 0);
    assert_int_equal(fclose(stream), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_work_shows_nothing),
        cmocka_unit_test(long_work_shows_at_most_ten_lines_a_second_and_wipes_the_last),
        cmocka_unit_test(a_line_never_wraps_nor_controls_the_terminal),
        cmocka_unit_test(what_is_no_terminal_stays_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
