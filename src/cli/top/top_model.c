// SPDX-License-Identifier: MIT
#include "cli/top/top_model.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/utf8.h"

enum {
    FILTER_BYTES_MAX = 200
};

void top_model_release(struct top_model *model)
{
    top_sample_free(model->sample);
    site_moment_unref(model->previous);
    site_moment_unref(model->base);
    strbuf_release(&model->filter);
    top_row_vec_release(&model->rows);
    top_stack_line_vec_release(&model->stack);
    *model = (struct top_model){0};
}

const struct top_row *top_model_row(const struct top_model *model)
{
    return model->cursor < model->rows.len ? &model->rows.items[model->cursor] : NULL;
}

// Return whether the function, file or module of the site contains the text of the filter.
static bool passes_filter(const struct top_model *model, uint32_t location)
{
    const struct profile *profile = model->sample->profile;
    const char *text = strbuf_text(&model->filter);
    if (text[0] == '\0' || location == REC_NONE) {
        return text[0] == '\0';
    }
    return strcasestr(profile_location_function(profile, location), text) != NULL ||
           strcasestr(profile_location_file(profile, location), text) != NULL ||
           strcasestr(profile_location_module(profile, location), text) != NULL;
}

static struct top_moments moments_of(const struct top_model *model)
{
    return (struct top_moments){.sample = model->sample,
                                .base = model->base,
                                .previous = model->previous,
                                .previous_ms = model->previous_ms};
}

// Order rows by the model's column, highest first; equal ones by live bytes, then by id.
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct top_model *model = context;
    const struct top_row *a = left;
    const struct top_row *b = right;
    const enum top_column order[] = {model->sort, TOP_LIVE, TOP_ALLOCATIONS};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const double x = top_row_value(a, order[i]);
        const double y = top_row_value(b, order[i]);
        if (x < y || x > y) {
            return (x < y) != (i == 0 && model->is_inverted) ? 1 : -1;
        }
    }
    return a->site < b->site ? -1 : a->site > b->site;
}

// Fill the rows again, and keep the cursor on the call site `followed`, SIZE_MAX for none.
static MUST_USE enum err list_rows(struct top_model *model, size_t followed)
{
    top_row_vec_clear(&model->rows);
    if (model->sample == NULL) {
        return ERR_OK;
    }
    const struct top_moments moments = moments_of(model);
    const struct call_site_vec *sites = &model->sample->sites.sites;
    for (size_t i = 0; i < sites->len; i++) {
        if (passes_filter(model, sites->items[i].location)) {
            TRY(top_row_vec_push(&model->rows, top_row_of(&moments, i)));
        }
    }
    top_row_vec_sort_by(&model->rows, compare_rows, model);
    for (size_t i = 0; i < model->rows.len; i++) {
        if (model->rows.items[i].site == followed) {
            model->cursor = i;
        }
    }
    top_model_show_cursor(model);
    return ERR_OK;
}

// Return the row that the cursor follows, NULL for none: it stays on the first row, unless its
// stacks are on the screen.
static const struct top_row *followed_row(const struct top_model *model)
{
    const bool is_followed = model->cursor > 0 || model->page == TOP_PAGE_STACK;
    return is_followed ? top_model_row(model) : NULL;
}

static MUST_USE enum err sort_again(struct top_model *model)
{
    const struct top_row *row = followed_row(model);
    return list_rows(model, row != NULL ? row->site : SIZE_MAX);
}

// Show the list in an order that the user has asked for, from the first row.
static MUST_USE enum err list_from_first(struct top_model *model)
{
    model->page = TOP_PAGE_LIST;
    model->cursor = 0;
    return list_rows(model, SIZE_MAX);
}

void top_model_show_cursor(struct top_model *model)
{
    const size_t count = model->rows.len;
    model->cursor = min_u64(model->cursor, count > 0 ? count - 1 : 0);
    if (model->cursor < model->first) {
        model->first = model->cursor;
    }
    if (model->cursor >= model->first + model->lines) {
        model->first = model->cursor + 1 - model->lines;
    }
    model->first = min_u64(model->first, count > model->lines ? count - model->lines : 0);
}

static MUST_USE enum err list_stack(struct top_model *model)
{
    const struct top_row *row = top_model_row(model);
    top_stack_line_vec_clear(&model->stack);
    if (row == NULL) {
        model->page = TOP_PAGE_LIST;
        return ERR_OK;
    }
    return top_sample_stacks(model->sample, row->site, &model->stack);
}

// Return the site of `sample` that has the name of site `site` of the present sample, or SIZE_MAX.
static size_t same_site(const struct top_model *model, const struct top_sample *sample, size_t site)
{
    const struct site_moment *old = model->sample->moment;
    const char *name = string_table_get(&old->names, old->ids.items[site]);
    uint32_t id = 0;
    if (string_table_find(&sample->moment->names, name, strlen(name), &id) != ERR_OK) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < sample->moment->ids.len; i++) {
        if (sample->moment->ids.items[i] == id) {
            return i;
        }
    }
    return SIZE_MAX;
}

// Make the present sample the previous one.
static void let_pass(struct top_model *model)
{
    site_moment_unref(model->previous);
    model->previous = site_moment_ref(model->sample->moment);
    model->previous_ms = max_u64(model->previous_ms, model->previous->time_ms);
}

// Compare the sample with the previous one. The cursor stays at the call site `followed`.
static MUST_USE enum err compare(struct top_model *model, size_t followed)
{
    const struct site_figures none = {0};
    const struct site_figures *now = &model->sample->moment->total;
    const struct site_figures *before = model->previous != NULL ? &model->previous->total : &none;
    const struct top_moments moments = moments_of(model);
    model->rate = top_rate(&moments, now->allocations, before->allocations);
    model->rate_error = top_rate_error(&moments, now, before);
    return list_rows(model, followed);
}

enum err top_model_take(struct top_model *model, struct top_sample *sample)
{
    const struct top_row *row = followed_row(model);
    const size_t followed = row != NULL ? same_site(model, sample, row->site) : SIZE_MAX;
    if (model->sample != NULL) {
        let_pass(model);
    }
    top_sample_free(model->sample);
    model->sample = sample;
    if (model->base == NULL) {
        model->base = site_moment_ref(sample->moment);
    }
    TRY(compare(model, followed));
    return model->page == TOP_PAGE_STACK ? list_stack(model) : ERR_OK;
}

enum err top_model_rest(struct top_model *model, uint64_t now_ms)
{
    if (model->sample == NULL) {
        return ERR_OK;
    }
    const struct top_row *row = followed_row(model);
    let_pass(model);
    model->previous_ms = max_u64(model->previous_ms, now_ms);
    model->sample->profile->recording.meta.runtime_ms = now_ms;
    return compare(model, row != NULL ? row->site : SIZE_MAX);
}

enum err top_model_filter(struct top_model *model, const char *text)
{
    strbuf_clear(&model->filter);
    strbuf_append_text(&model->filter, text);
    TRY(strbuf_result(&model->filter));
    return sort_again(model);
}

// Make the present sample the base of changes.
static MUST_USE enum err set_mark(struct top_model *model)
{
    if (model->sample == NULL) {
        return ERR_OK;
    }
    site_moment_unref(model->base);
    model->base = site_moment_ref(model->sample->moment);
    model->is_marked = true;
    return model->sort == TOP_CHANGE && model->page != TOP_PAGE_STACK ? list_from_first(model)
                                                                      : sort_again(model);
}

static MUST_USE enum err sort_by(struct top_model *model, enum top_column column)
{
    model->is_inverted = false;
    model->sort = column;
    return list_from_first(model);
}

// Move the cursor, or the page without one, by `by` lines; it stops at both ends.
static void move_cursor(struct top_model *model, int64_t by)
{
    const bool is_list = model->page == TOP_PAGE_LIST;
    const size_t count = is_list ? model->rows.len : model->stack.len;
    const size_t last =
        is_list ? (count > 0 ? count - 1 : 0) : (count > model->lines ? count - model->lines : 0);
    size_t *at = is_list ? &model->cursor : &model->stack_first;
    const int64_t wanted = (int64_t)*at + by;
    *at = wanted < 0 ? 0 : min_u64((uint64_t)wanted, last);
    top_model_show_cursor(model);
}

// Change the text of the filter by a key.
static MUST_USE enum err type_filter(struct top_model *model, uint32_t key)
{
    struct strbuf *filter = &model->filter;
    if (key == TOP_KEY_ENTER) {
        model->is_typing = false;
        return ERR_OK;
    }
    if (key == TOP_KEY_ESCAPE) {
        model->is_typing = false;
        strbuf_clear(filter);
    } else if (key == TOP_KEY_BACKSPACE) {
        size_t len = filter->len;
        while (len > 0 && ((unsigned char)filter->data[--len] & 0xc0) == 0x80) {
        }
        strbuf_truncate(filter, len);
    } else if (key >= ' ' && key < TOP_KEY_UP && filter->len < FILTER_BYTES_MAX) {
        utf8_append(filter, key);
    }
    TRY(strbuf_result(filter));
    return list_from_first(model);
}

enum command {
    QUIT,
    HELP,
    FILTER,
    STACK,
    BACK,
    SORT,
    SORT_NEXT,
    SORT_PREVIOUS,
    INVERT,
    MARK,
    PAUSE,
    REFRESH,
    END_PROGRAM,
    MOVE,
    MOVE_PAGE,
    MOVE_TO_END,
};

struct binding {
    uint32_t key;
    enum command command;
    int argument;
};

// Letters and function keys as in htop, where it has the same command.
static const struct binding bindings[] = {
    {'q', QUIT, 0},
    {TOP_KEY_F0 + 10, QUIT, 0},
    {'h', HELP, 0},
    {'?', HELP, 0},
    {TOP_KEY_F0 + 1, HELP, 0},
    {'/', FILTER, 0},
    {'\\', FILTER, 0},
    {TOP_KEY_F0 + 3, FILTER, 0},
    {TOP_KEY_F0 + 4, FILTER, 0},
    {TOP_KEY_ENTER, STACK, 0},
    {TOP_KEY_F0 + 5, STACK, 0},
    {TOP_KEY_ESCAPE, BACK, 0},
    {TOP_KEY_BACKSPACE, BACK, 0},
    {'l', SORT, TOP_LIVE},
    {'g', SORT, TOP_CHANGE},
    {'r', SORT, TOP_RATE},
    {'t', SORT, TOP_TEMPORARY},
    {'a', SORT, TOP_ALLOCATIONS},
    {'p', SORT, TOP_PEAK},
    {'>', SORT_NEXT, 0},
    {'.', SORT_NEXT, 0},
    {TOP_KEY_RIGHT, SORT_NEXT, 0},
    {TOP_KEY_F0 + 6, SORT_NEXT, 0},
    {'<', SORT_PREVIOUS, 0},
    {',', SORT_PREVIOUS, 0},
    {TOP_KEY_LEFT, SORT_PREVIOUS, 0},
    {'I', INVERT, 0},
    {'m', MARK, 0},
    {TOP_KEY_F0 + 7, MARK, 0},
    {'z', PAUSE, 0},
    {'Z', PAUSE, 0},
    {TOP_KEY_F0 + 8, PAUSE, 0},
    {' ', REFRESH, 0},
    {'k', END_PROGRAM, 0},
    {TOP_KEY_F0 + 9, END_PROGRAM, 0},
    {TOP_KEY_UP, MOVE, -1},
    {TOP_KEY_DOWN, MOVE, 1},
    {TOP_KEY_PAGE_UP, MOVE_PAGE, -1},
    {TOP_KEY_PAGE_DOWN, MOVE_PAGE, 1},
    {TOP_KEY_HOME, MOVE_TO_END, -1},
    {TOP_KEY_END, MOVE_TO_END, 1},
};

static MUST_USE enum err turn_page(struct top_model *model, enum top_page page)
{
    model->page = model->page == page ? TOP_PAGE_LIST : page;
    model->stack_first = 0;
    return model->page == TOP_PAGE_STACK ? list_stack(model) : ERR_OK;
}

static MUST_USE enum err
obey_key(struct top_model *model, const struct binding *binding, enum top_action *action)
{
    const int column = (int)model->sort;
    switch (binding->command) {
    case QUIT:
        *action = TOP_QUIT;
        return ERR_OK;
    case HELP:
        return turn_page(model, TOP_PAGE_HELP);
    case FILTER:
        model->page = TOP_PAGE_LIST;
        model->is_typing = true;
        return ERR_OK;
    case STACK:
        return turn_page(model, TOP_PAGE_STACK);
    case BACK:
        if (model->page == TOP_PAGE_LIST && model->filter.len > 0) {
            return top_model_filter(model, "");
        }
        return turn_page(model, TOP_PAGE_LIST);
    case SORT:
        return sort_by(model, (enum top_column)binding->argument);
    case SORT_NEXT:
        return sort_by(model, (enum top_column)((column + 1) % TOP_COLUMN_COUNT));
    case SORT_PREVIOUS:
        return sort_by(model,
                       (enum top_column)((column + TOP_COLUMN_COUNT - 1) % TOP_COLUMN_COUNT));
    case INVERT:
        model->is_inverted = !model->is_inverted;
        return list_from_first(model);
    case MARK:
        return set_mark(model);
    case PAUSE:
        model->is_paused = !model->is_paused;
        *action = TOP_PAUSE;
        return ERR_OK;
    case REFRESH:
        *action = TOP_REFRESH;
        return ERR_OK;
    case END_PROGRAM:
        model->is_asking = model->state == TOP_RUNS;
        return ERR_OK;
    case MOVE:
        move_cursor(model, binding->argument);
        return ERR_OK;
    case MOVE_PAGE:
        move_cursor(model, (int64_t)model->lines * binding->argument);
        return ERR_OK;
    case MOVE_TO_END:
        move_cursor(model, INT32_MAX * (int64_t)binding->argument);
        return ERR_OK;
    }
    return ERR_OK;
}

enum err top_model_key(struct top_model *model, uint32_t key, enum top_action *action)
{
    *action = TOP_NOTHING;
    model->message[0] = '\0';
    if (model->is_typing) {
        return type_filter(model, key);
    }
    if (model->is_asking) {
        model->is_asking = false;
        if (key == 'y' || key == 'Y') {
            model->is_paused = false; // the end is to be seen
            *action = TOP_END_PROGRAM;
        }
        return ERR_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(bindings); i++) {
        if (bindings[i].key == key) {
            return obey_key(model, &bindings[i], action);
        }
    }
    return ERR_OK;
}
