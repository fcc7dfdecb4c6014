// SPDX-License-Identifier: MIT
// Tests of engine: an engine that opens badly is closed, and a number is the first cell of an
// answer.
#include "store/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

struct answering {
    struct store engine; // first
    unsigned closed;
    size_t cells;
    enum err problem;
};

static void note_close(struct store *engine)
{
    ((struct answering *)(void *)engine)->closed++;
}

// Answer one column: 100 more than the value, and 1 less in each row below.
static enum err answer(struct store *engine,
                       const char *sql,
                       const struct store_value *values,
                       size_t count,
                       bool is_foreign,
                       struct store_table *out,
                       struct err_info *info)
{
    const struct answering *answering = (struct answering *)(void *)engine;
    (void)info;
    assert_string_equal(sql, "SELECT ?1");
    assert_int_equal(count, 1);
    assert_false(is_foreign);
    if (answering->problem != ERR_OK) {
        return answering->problem;
    }
    TRY(store_table_add_column(out, "n"));
    for (size_t i = 0; i < answering->cells; i++) {
        const struct store_value value = store_integer(values[0].integer + 100 - (int64_t)i);
        TRY(store_table_add(out, &value, 0));
    }
    return ERR_OK;
}

static const struct engine_kind kind = {.close = note_close, .query = answer};

static void an_engine_that_opens_badly_is_closed(void **state)
{
    (void)state;
    struct answering answering = {.engine.kind = &kind};
    struct store *out = NULL;
    assert_int_equal(engine_finish_open(&answering.engine, ERR_UNSUPPORTED, &out), ERR_UNSUPPORTED);
    assert_null(out);
    assert_int_equal(answering.closed, 1);
    assert_int_equal(engine_finish_open(&answering.engine, ERR_OK, &out), ERR_OK);
    assert_ptr_equal(out, &answering.engine);
    assert_int_equal(answering.closed, 1);
}

static void a_number_is_the_first_cell(void **state)
{
    (void)state;
    static const struct {
        size_t cells;
        enum err problem;
        int64_t wanted;
    } cases[] = {{0, ERR_OK, 0}, {1, ERR_OK, 107}, {3, ERR_OK, 107}, {1, ERR_IO, -1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct answering answering = {
            .engine.kind = &kind, .cells = cases[i].cells, .problem = cases[i].problem};
        int64_t got = -1;
        assert_int_equal(
            engine_number(&answering.engine, "SELECT ?1", store_integer(7), &got, NULL),
            cases[i].problem);
        assert_int_equal(got, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_that_opens_badly_is_closed),
        cmocka_unit_test(a_number_is_the_first_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
