// SPDX-License-Identifier: MIT
// Tests of top_model: keys and samples in, rows out, on drawn recordings.
#include "cli/top/top_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/top/test_sample.h"

// At one second: load has 900 live bytes of 10 blocks, keep 500, churn nothing.
static const char early[] = "main;load(a.c:7) 10 1000 1 100 0 0 9 900\n@0 10 1000 1 100 0\n"
                            "main;keep(b.c:9) 5 500 0 0 0 0 5 500\n@0 5 500 0 0 0\n"
                            "main;libz!churn(c.c:3) 100 1000 100 1000 90 900 1 10\n"
                            "@0 100 1000 100 1000 90\n";

// At three seconds: keep has grown, load has shrunk, fresh is new. The order of the text differs.
static const char late[] = "main;fresh(d.c:1) 1 50 0 0 0 0 0 0\n@9 1 50 0 0 0\n"
                           "main;libz!churn(c.c:3) 300 3000 300 3000 290 2900 1 10\n"
                           "@9 300 3000 300 3000 290\n"
                           "main;keep(b.c:9) 25 2500 0 0 0 0 5 500\n@9 25 2500 0 0 0\n"
                           "main;load(a.c:7) 10 1000 6 600 0 0 9 900\n@9 10 1000 6 600 0\n";

static void press(struct top_model *model, uint32_t key, enum top_action wanted)
{
    enum top_action action = TOP_NOTHING;
    assert_int_equal(top_model_key(model, key, &action), ERR_OK);
    assert_int_equal(action, wanted);
}

static void type_text(struct top_model *model, const char *text)
{
    for (; *text != '\0'; text++) {
        press(model, (unsigned char)*text, TOP_NOTHING);
    }
}

// Assert the functions of the rows, in order, separated by blanks.
static void assert_rows(const struct top_model *model, const char *wanted)
{
    CLEANUP(strbuf_release) struct strbuf is = {0};
    for (size_t i = 0; i < model->rows.len; i++) {
        const size_t site = model->rows.items[i].site;
        strbuf_append_text(&is, i > 0 ? " " : "");
        strbuf_append_text(
            &is, profile_location_function(model->sample->profile,
                                           model->sample->sites.sites.items[site].location));
    }
    assert_string_equal(strbuf_text(&is), wanted);
}

static const char *cursor_function(const struct top_model *model)
{
    const struct top_row *row = top_model_row(model);
    assert_non_null(row);
    return profile_location_function(model->sample->profile,
                                     model->sample->sites.sites.items[row->site].location);
}

static void take(struct top_model *model, const char *text, uint64_t time_ms)
{
    assert_int_equal(top_model_take(model, test_sample(text, time_ms)), ERR_OK);
}

static void rows_have_changes_and_rates(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 10};
    take(&model, early, 1000);
    assert_rows(&model, "load keep churn");
    assert_int_equal(model.rows.items[0].change_bytes, 0);
    assert_true(model.rows.items[2].rate == 100.0); // since the start of the run
    take(&model, late, 3000);
    assert_rows(&model, "keep load fresh churn");
    assert_int_equal(model.rows.items[0].now.live_bytes, 2500);
    assert_int_equal(model.rows.items[0].change_bytes, 2000);
    assert_true(model.rows.items[0].rate == 10.0); // 20 in two seconds
    assert_int_equal(model.rows.items[0].peak_bytes, 500);
    assert_int_equal(model.rows.items[1].change_bytes, -500);
    assert_int_equal(model.rows.items[2].change_bytes, 50);
    assert_int_equal(model.rows.items[3].now.temporary, 290);
    assert_true(model.rate == 110.5); // 336 - 115 in two seconds
}

static void a_rest_has_no_rates_and_none_are_of_it(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 10};
    assert_int_equal(top_model_rest(&model, 500), ERR_OK); // of nothing yet
    take(&model, early, 1000);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    assert_string_equal(cursor_function(&model), "keep");
    assert_int_equal(top_model_rest(&model, 9000), ERR_OK);
    assert_int_equal(top_model_rest(&model, 11000), ERR_OK);
    assert_string_equal(cursor_function(&model), "keep");
    assert_rows(&model, "load keep churn");
    assert_true(model.rate == 0 && model.rows.items[2].rate == 0);
    assert_int_equal(model.sample->profile->recording.meta.runtime_ms, 11000);
    assert_int_equal(model.base->time_ms, 1000);
    take(&model, late, 13000);
    assert_true(model.rate == 110.5); // in the two seconds since it rested
    assert_true(model.rows.items[0].rate == 10.0);
    assert_int_equal(model.rows.items[0].change_bytes, 2000);
}

static void keys_sort(void **state)
{
    (void)state;
    static const struct {
        uint32_t key;
        const char *rows;
    } cases[] = {
        {'g', "keep fresh churn load"},
        {'r', "churn keep fresh load"},
        {'t', "churn keep load fresh"},
        {'a', "churn keep load fresh"},
        {'p', "load keep churn fresh"},
        {'l', "keep load fresh churn"},
        {'I', "churn fresh load keep"},
        {'>', "keep fresh churn load"}, // in the usual order again
        {'<', "keep load fresh churn"},
        {TOP_KEY_LEFT, "load keep churn fresh"},
        {TOP_KEY_F0 + 6, "keep load fresh churn"},
        {'x', "keep load fresh churn"}, // no key
    };
    CLEANUP(top_model_release) struct top_model model = {.lines = 10};
    take(&model, early, 1000);
    take(&model, late, 3000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        press(&model, cases[i].key, TOP_NOTHING);
        assert_rows(&model, cases[i].rows);
    }
}

static void a_filter_is_typed(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 10};
    take(&model, late, 3000);
    press(&model, '/', TOP_NOTHING);
    type_text(&model, "LO"); // q and m are letters here, too
    assert_rows(&model, "load");
    type_text(&model, "qm");
    assert_rows(&model, "");
    press(&model, TOP_KEY_ENTER, TOP_NOTHING); // no stack without a row
    press(&model, TOP_KEY_ENTER, TOP_NOTHING);
    assert_int_equal(model.page, TOP_PAGE_LIST);
    press(&model, '\\', TOP_NOTHING);
    for (int i = 0; i < 4; i++) {
        press(&model, TOP_KEY_BACKSPACE, TOP_NOTHING);
    }
    type_text(&model, "b.C");
    assert_rows(&model, "keep");
    take(&model, early, 4000); // it stays
    assert_rows(&model, "keep");
    press(&model, TOP_KEY_ESCAPE, TOP_NOTHING);
    assert_rows(&model, "load keep churn");
    assert_int_equal(top_model_filter(&model, "libz"), ERR_OK);
    assert_rows(&model, "churn");
    press(&model, TOP_KEY_ESCAPE, TOP_NOTHING);
    assert_rows(&model, "load keep churn");
    press(&model, '/', TOP_NOTHING);
    press(&model, 0xe9, TOP_NOTHING); // two bytes
    press(&model, TOP_KEY_BACKSPACE, TOP_NOTHING);
    press(&model, TOP_KEY_UP, TOP_NOTHING); // not a character
    assert_rows(&model, "load keep churn");
}

static void a_mark_is_the_base_of_changes(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 10};
    press(&model, 'm', TOP_NOTHING); // nothing to mark yet
    take(&model, early, 1000);
    take(&model, late, 3000);
    press(&model, 'm', TOP_NOTHING);
    assert_int_equal(model.rows.items[0].change_bytes, 0);
    take(&model, early, 5000); // as if keep had been freed
    assert_rows(&model, "load keep churn");
    assert_int_equal(model.rows.items[0].change_bytes, 500);
    assert_int_equal(model.rows.items[1].change_bytes, -2000);
    assert_int_equal(model.base->time_ms, 3000);
    assert_true(model.is_marked);
}

static void the_cursor_follows_its_call_site(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 2};
    take(&model, early, 1000);
    assert_string_equal(cursor_function(&model), "load");
    take(&model, late, 3000); // on the first row, it stays there
    assert_string_equal(cursor_function(&model), "keep");
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    assert_string_equal(cursor_function(&model), "load");
    take(&model, late, 3500);
    assert_string_equal(cursor_function(&model), "load");
    press(&model, 'g', TOP_NOTHING); // load is the last one now, and what grew most is to be seen
    assert_string_equal(cursor_function(&model), "keep");
    assert_int_equal(model.cursor + model.first, 0);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    press(&model, 'm', TOP_NOTHING); // all changes are 0 now
    assert_int_equal(model.cursor + model.first, 0);
    press(&model, 'l', TOP_NOTHING);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    press(&model, 'm', TOP_NOTHING); // the order is the same
    assert_string_equal(cursor_function(&model), "load");
    press(&model, '/', TOP_NOTHING);
    press(&model, 'h', TOP_NOTHING); // fresh and churn
    assert_int_equal(model.cursor + model.first, 0);
    press(&model, TOP_KEY_ESCAPE, TOP_NOTHING);
    assert_int_equal(model.cursor + model.first, 0);
    press(&model, TOP_KEY_END, TOP_NOTHING);
    assert_int_equal(model.first, 2); // in view
    press(&model, TOP_KEY_HOME, TOP_NOTHING);
    assert_int_equal(model.cursor + model.first, 0);
    press(&model, TOP_KEY_UP, TOP_NOTHING);
    assert_int_equal(model.cursor, 0);
    press(&model, TOP_KEY_PAGE_DOWN, TOP_NOTHING);
    assert_int_equal(model.cursor, 2);
    press(&model, TOP_KEY_END, TOP_NOTHING);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    assert_int_equal(model.cursor, 3);
    take(&model, early, 4000); // three rows only, and fresh has gone
    assert_true(model.cursor < 3 && model.first <= 1);
}

static void stacks_are_a_page(void **state)
{
    (void)state;
    static const char text[] =
        "main;a;load(a.c:7) 2 20 0 0 0 0\nmain;b;load(a.c:7) 3 300 0 0 0 0\n"
        "main;c;load(a.c:7) 3 30 3 30 0 0\nmain;other(a.c:9) 9 900 9 900 0 0\n";
    CLEANUP(top_model_release) struct top_model model = {.lines = 4};
    take(&model, text, 1000);
    press(&model, TOP_KEY_ENTER, TOP_NOTHING);
    assert_int_equal(model.page, TOP_PAGE_STACK);
    // Only stacks with live blocks, most bytes first, each of three frames below its costs.
    assert_int_equal(model.stack.len, 8);
    assert_int_equal(costs_get(&model.stack.items[0].costs, COST_LEAKED_BYTES), 300);
    assert_int_equal(costs_get(&model.stack.items[4].costs, COST_LEAKED_BYTES), 20);
    static const char *const wanted[] = {"load", "b", "main"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_string_equal(
            profile_location_function(model.sample->profile, model.stack.items[1 + i].location),
            wanted[i]);
    }
    press(&model, TOP_KEY_PAGE_DOWN, TOP_NOTHING);
    press(&model, TOP_KEY_PAGE_DOWN, TOP_NOTHING);
    assert_int_equal(model.stack_first, 4); // the last lines fill the page
    press(&model, TOP_KEY_ESCAPE, TOP_NOTHING);
    assert_int_equal(model.page, TOP_PAGE_LIST);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    press(&model, TOP_KEY_F0 + 5, TOP_NOTHING);
    assert_int_equal(model.stack.len, 3); // without live blocks: by allocations
    assert_int_equal(model.stack_first, 0);
    take(&model, "main;x;y;other(a.c:9) 1 10 0 0 0 0\n", 2000); // the page stays at its site
    assert_int_equal(model.stack.len, 5);
    take(&model, "", 3000);
    assert_int_equal(model.page, TOP_PAGE_LIST);
}

// On the page of stacks a mark keeps the call site, and a key that sorts shows the list.
static void the_page_of_stacks_keeps_its_call_site(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 4};
    take(&model, early, 1000);
    take(&model, late, 3000);
    press(&model, 'g', TOP_NOTHING);
    press(&model, TOP_KEY_DOWN, TOP_NOTHING);
    press(&model, TOP_KEY_ENTER, TOP_NOTHING);
    assert_string_equal(cursor_function(&model), "fresh");
    press(&model, 'm', TOP_NOTHING); // all changes are 0: keep is the first now
    assert_int_equal(model.page, TOP_PAGE_STACK);
    assert_string_equal(cursor_function(&model), "fresh");
    take(&model, late, 4000);
    assert_string_equal(cursor_function(&model), "fresh");
    static const uint32_t keys[] = {'l', 'I', '>', TOP_KEY_LEFT};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        press(&model, TOP_KEY_DOWN, TOP_NOTHING);
        press(&model, i % 2 == 0 ? TOP_KEY_ENTER : TOP_KEY_F0 + 1, TOP_NOTHING);
        press(&model, keys[i], TOP_NOTHING);
        assert_int_equal(model.page, TOP_PAGE_LIST);
        assert_int_equal(model.cursor, 0);
    }
}

static void other_keys_ask_for_actions(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 4, .state = TOP_RUNS};
    press(&model, 'z', TOP_PAUSE);
    assert_true(model.is_paused);
    press(&model, ' ', TOP_REFRESH);
    press(&model, 'k', TOP_NOTHING);
    press(&model, 'n', TOP_NOTHING);
    press(&model, 'y', TOP_NOTHING); // the question was answered
    press(&model, TOP_KEY_F0 + 9, TOP_NOTHING);
    press(&model, 'q', TOP_NOTHING); // no, and not quit
    press(&model, 'k', TOP_NOTHING);
    assert_true(model.is_paused);
    press(&model, 'y', TOP_END_PROGRAM);
    assert_false(model.is_paused); // the end is to be seen
    model.state = TOP_ENDED;
    press(&model, 'k', TOP_NOTHING);
    press(&model, 'q', TOP_QUIT);
    press(&model, TOP_KEY_F0 + 10, TOP_QUIT);
    press(&model, '?', TOP_NOTHING);
    assert_int_equal(model.page, TOP_PAGE_HELP);
    press(&model, TOP_KEY_ENTER, TOP_NOTHING); // there is no call site
    assert_int_equal(model.page, TOP_PAGE_LIST);
}

// What each key does to a list of several rows whose program runs; other keys do nothing.
static void each_key_has_its_meaning(void **state)
{
    (void)state;
    static const uint32_t quits[] = {'q', TOP_KEY_F0 + 10};
    static const uint32_t helps[] = {'h', '?', TOP_KEY_F0 + 1};
    static const uint32_t filters[] = {'/', '\\', TOP_KEY_F0 + 3, TOP_KEY_F0 + 4};
    static const uint32_t stacks[] = {TOP_KEY_ENTER, TOP_KEY_F0 + 5};
    static const uint32_t marks[] = {'m', TOP_KEY_F0 + 7};
    static const uint32_t pauses[] = {'z', 'Z', TOP_KEY_F0 + 8};
    static const uint32_t refreshes[] = {' '};
    static const uint32_t ends[] = {'k', TOP_KEY_F0 + 9};
    static const uint32_t nexts[] = {'>', '.', TOP_KEY_RIGHT, TOP_KEY_F0 + 6};
    static const uint32_t previous[] = {'<', ',', TOP_KEY_LEFT};
    static const uint32_t nothings[] = {'x', 'A', '0', TOP_KEY_F0 + 2, TOP_KEY_F0 + 11, 0x20ac};
    static const struct {
        const uint32_t *keys;
        size_t count;
        enum top_action action;
        enum top_page page;
        bool is_typing;
        bool is_asking;
        bool is_marked;
        bool is_paused;
        enum top_column sort;
    } cases[] = {
        {quits, ARRAY_LEN(quits), TOP_QUIT, TOP_PAGE_LIST, .sort = TOP_LIVE},
        {helps, ARRAY_LEN(helps), TOP_NOTHING, TOP_PAGE_HELP, .sort = TOP_LIVE},
        {filters, ARRAY_LEN(filters), TOP_NOTHING, TOP_PAGE_LIST, .is_typing = true},
        {stacks, ARRAY_LEN(stacks), TOP_NOTHING, TOP_PAGE_STACK, .sort = TOP_LIVE},
        {marks, ARRAY_LEN(marks), TOP_NOTHING, TOP_PAGE_LIST, .is_marked = true},
        {pauses, ARRAY_LEN(pauses), TOP_PAUSE, TOP_PAGE_LIST, .is_paused = true},
        {refreshes, ARRAY_LEN(refreshes), TOP_REFRESH, TOP_PAGE_LIST, .sort = TOP_LIVE},
        {ends, ARRAY_LEN(ends), TOP_NOTHING, TOP_PAGE_LIST, .is_asking = true},
        {nexts, ARRAY_LEN(nexts), TOP_NOTHING, TOP_PAGE_LIST, .sort = TOP_LIVE + 1},
        {previous, ARRAY_LEN(previous), TOP_NOTHING, TOP_PAGE_LIST, .sort = TOP_COLUMN_COUNT - 1},
        {nothings, ARRAY_LEN(nothings), TOP_NOTHING, TOP_PAGE_LIST, .sort = TOP_LIVE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t k = 0; k < cases[i].count; k++) {
            CLEANUP(top_model_release) struct top_model model = {.lines = 3, .state = TOP_RUNS};
            take(&model, early, 1000);
            press(&model, cases[i].keys[k], cases[i].action);
            assert_int_equal(model.page, cases[i].page);
            assert_int_equal(model.is_typing, cases[i].is_typing);
            assert_int_equal(model.is_asking, cases[i].is_asking);
            assert_int_equal(model.is_marked, cases[i].is_marked);
            assert_int_equal(model.is_paused, cases[i].is_paused);
            assert_int_equal(model.sort, cases[i].sort);
        }
    }
}

// "operator new" has a blank. Control characters and other keys are none of a filter's, and it has
// an end.
static void a_filter_takes_characters_only(void **state)
{
    (void)state;
    CLEANUP(top_model_release) struct top_model model = {.lines = 3};
    take(&model, "operator new 1 8\nmain 1 8\n", 1000);
    press(&model, '/', TOP_NOTHING);
    type_text(&model, "r n\x1f\x01");
    press(&model, TOP_KEY_F0 + 1, TOP_NOTHING);
    press(&model, TOP_KEY_UP, TOP_NOTHING);
    assert_string_equal(strbuf_text(&model.filter), "r n");
    assert_rows(&model, "operator new");
    for (size_t i = 0; i < 1000; i++) {
        press(&model, 'n', TOP_NOTHING);
    }
    const size_t most = model.filter.len;
    press(&model, 'n', TOP_NOTHING);
    assert_int_equal(model.filter.len, most);
    assert_true(most < 1000);
}

static void columns_have_words(void **state)
{
    (void)state;
    for (int i = 0; i < TOP_COLUMN_COUNT; i++) {
        assert_int_equal(top_column_find(top_column_get((enum top_column)i)->word), i);
    }
    assert_int_equal(top_column_find("beauty"), TOP_COLUMN_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_changes_and_rates),
        cmocka_unit_test(a_rest_has_no_rates_and_none_are_of_it),
        cmocka_unit_test(keys_sort),
        cmocka_unit_test(a_filter_is_typed),
        cmocka_unit_test(a_mark_is_the_base_of_changes),
        cmocka_unit_test(the_cursor_follows_its_call_site),
        cmocka_unit_test(stacks_are_a_page),
        cmocka_unit_test(the_page_of_stacks_keeps_its_call_site),
        cmocka_unit_test(other_keys_ask_for_actions),
        cmocka_unit_test(each_key_has_its_meaning),
        cmocka_unit_test(a_filter_takes_characters_only),
        cmocka_unit_test(columns_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
