// SPDX-License-Identifier: MIT
#include "cli/top/top_picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "cli/top/top_chart.h"
#include "host/os/file.h"
#include "host/text/format.h"

enum {
    FINDING_LINES = 2,  // of a finding; one more on a high and narrow screen
    FINDING_WIDE = 120, // columns
    LOW_LINES = 14,
    HIGH_LINES = 24,
    TALL_LINES = 34, // from here on, charts have several lines
    TALL_CHART_LINES = 3,
    CHART_LEFT = 18,       // columns before a chart
    CHART_RIGHT = 16,      // and after it
    ERROR_COLUMNS = 5,     // "±999%"; without UTF-8 one more
    SORTED_WIDTH_MIN = 40, // from here on, the column of the order is shown in any case
    FUNCTION_COLUMNS_MIN = 16,
    PLACE_COLUMNS_MAX = 40,
    MODULE_COLUMNS = 20,
};

// Columns of the list by the width of the screen that they need, and that their errors need.
static const struct {
    enum top_column column;
    unsigned width_min;
    unsigned error_width_min;
} shown[] = {
    {TOP_LIVE, 0, 60},        {TOP_CHANGE, 50, 90},        {TOP_RATE, 60, 120},
    {TOP_TEMPORARY, 70, 130}, {TOP_ALLOCATIONS, 100, 140}, {TOP_PEAK, 110, 110},
};

static const char *const help[] = {
    "Call sites: the lines of the program that allocate.",
    "",
    "  LIVE     bytes that are allocated and not freed now",
    "  CHANGE   change of LIVE since the start of cairn top, or since the mark",
    "  ALLOC/S  allocations per second since the previous update",
    "  TEMP     allocations that the thread freed with its next heap operation",
    "  ALLOCS   allocations since recording began      AT PEAK  live at the peak",
    "  ±        error of an estimate: the figure is within it in 95 of 100 cases",
    "",
    "  Up Down PgUp PgDn Home End   move             Enter F5   call stacks, and back",
    "  l g r t a p   sort by live, change, rate, temporary, allocations, at peak",
    "  < > F6        sort by another column          I          reverse the order",
    "  / F3 F4       filter by function, file, module; Esc removes the filter",
    "  m F7          mark: changes count from now on",
    "  z F8          pause, and go on                Space      update now",
    "  k F9          end the program, after a y      q F10      quit; it runs on",
};

void top_picture_release(struct top_picture *picture)
{
    strbuf_release(&picture->texts);
    top_line_vec_release(&picture->lines);
}

// Whether figures of the sample have errors.
static bool has_errors(const struct top_model *model)
{
    return model->sample->sampling.bytes != 0;
}

// A picture in the making.
struct drawing {
    const struct top_model *model;
    struct top_size size;
    struct top_picture *picture;
    struct strbuf line; // owned; the text of one line
};

static void drawing_release(struct drawing *d)
{
    strbuf_release(&d->line);
}

// Replace what is not ASCII. A plus-minus sign has two bytes.
static void make_ascii(char *text, size_t len)
{
    static const char sign[] = "\xc2\xb1";
    for (size_t i = 0; i < len; i++) {
        if (i + 1 < len && memcmp(text + i, sign, 2) == 0) {
            text[i++] = '+';
            text[i] = '-';
        } else if ((unsigned char)text[i] >= 0x80) {
            text[i] = '?';
        }
    }
}

// Append the line to the picture, cut to the width. The line is empty then.
static MUST_USE enum err end_line(struct drawing *d, enum top_style style)
{
    struct strbuf *texts = &d->picture->texts;
    const struct top_line line = {.text = texts->len, .style = style};
    TRY(strbuf_result(&d->line));
    if (!d->size.is_utf8) {
        make_ascii(d->line.data, d->line.len);
    }
    screen_append_cut(texts, strbuf_text(&d->line), d->size.width, SCREEN_CUT_MIDDLE);
    strbuf_append_char(texts, '\0');
    strbuf_clear(&d->line);
    TRY(strbuf_result(texts));
    return d->picture->lines.len < d->size.height ? top_line_vec_push(&d->picture->lines, line)
                                                  : ERR_OK;
}

// Append blanks up to a column, at least `least`.
static void blank_to(struct strbuf *line, size_t column, size_t least)
{
    const size_t used = screen_columns(strbuf_text(line));
    strbuf_printf(line, "%*s", (int)max_u64(column > used ? column - used : 0, least), "");
}

void top_append_change(struct strbuf *out, int64_t change_bytes)
{
    const bool is_less = change_bytes < 0;
    const uint64_t amount = is_less ? 0 - (uint64_t)change_bytes : (uint64_t)change_bytes;
    strbuf_printf(out, "%s%s", is_less ? "-" : amount > 0 ? "+" : "", format_bytes(amount).text);
}

bool top_append_bytes(struct strbuf *out, const struct top_row *row, enum top_column column)
{
    if (column == TOP_CHANGE) {
        top_append_change(out, row->change_bytes);
    } else if (column == TOP_LIVE || column == TOP_PEAK) {
        strbuf_append_text(out, format_bytes((uint64_t)top_row_value(row, column)).text);
    } else {
        return false;
    }
    return true;
}

void top_append_error(struct strbuf *out, double figure, double error)
{
    const double parts = 1000; // of a whole: rates may be below 1
    strbuf_append_text(
        out, sampling_format_error((uint64_t)(fabs(figure) * parts), (uint64_t)ceil(error * parts))
                 .text);
}

const char *top_state_words(const struct top_model *model)
{
    static const char *const words[] = {
        [TOP_RUNS] = "running",           [TOP_STARTS] = "starting",
        [TOP_ENDED] = "has ended",        [TOP_STOPPED] = "runs on, no longer recorded",
        [TOP_LOST] = "recorder has died",
    };
    return model->state == TOP_RUNS && model->is_paused ? "paused" : words[model->state];
}

// Return a count in at most five characters: "9999", "12.3k", "1.23M".
static struct human format_short(double count)
{
    static const char units[] = " kMGTPE";
    struct human human;
    size_t unit = 0;
    if (count < 9.95 && count - (double)(uint64_t)count >= 0.05) {
        (void)snprintf(human.text, sizeof(human.text), "%.1f", count); // fits
        return human;
    }
    if (count < 9999.5) {
        (void)snprintf(human.text, sizeof(human.text), "%.0f", count); // fits
        return human;
    }
    while (count >= 999.5 && units[unit + 1] != '\0') {
        count /= 1000;
        unit++;
    }
    (void)snprintf(human.text, sizeof(human.text), "%.*f%c",
                   count < 9.995   ? 2
                   : count < 99.95 ? 1
                                   : 0,
                   count, units[unit]); // fits
    return human;
}

static MUST_USE enum err draw_title(struct drawing *d)
{
    const struct top_model *model = d->model;
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf right = {0};
    strbuf_printf(&right, "%s", top_state_words(model));
    strbuf_append_text(&d->line, "cairn top");
    if (model->sample != NULL) {
        const struct profile *profile = model->sample->profile;
        const struct rec_meta *meta = &profile->recording.meta;
        screen_append(&name, path_file_name(profile_string(profile, meta->program)));
        strbuf_append_text(&d->line, name.len > 0 ? ": " : "");
        screen_append_cut(&d->line, strbuf_text(&name), d->size.width / 2, SCREEN_CUT_MIDDLE);
        if (meta->pid != 0) {
            strbuf_printf(&d->line, " (process %" PRIu32 ")", meta->pid);
        }
        sampling_append_mark(&profile->recording, &d->line);
        strbuf_printf(&right, ", %s", screen_format_ms(meta->runtime_ms).text);
    }
    const size_t columns = right.len;
    blank_to(&d->line, d->size.width > columns ? d->size.width - columns : 0, 2);
    strbuf_append_text(&d->line, strbuf_text(&right));
    TRY(strbuf_result(&right));
    return end_line(d, TOP_STYLE_TITLE);
}

static unsigned chart_lines(struct top_size size)
{
    return size.height >= TALL_LINES ? TALL_CHART_LINES : 1;
}

// The columns of an error beside a chart.
static unsigned error_columns(const struct drawing *d)
{
    return has_errors(d->model) ? ERROR_COLUMNS + !d->size.is_utf8 + 1U : 0;
}

// A figure and its highest value so far, with their errors.
struct charted {
    const char *name;
    uint64_t now_bytes;
    uint64_t now_error;
    uint64_t peak_bytes;
    uint64_t peak_error;
};

// Draw the lines of a chart: figure and peak are beside the last one.
static MUST_USE enum err
draw_chart(struct drawing *d, const struct charted *charted, const uint64_t *values, size_t columns)
{
    const unsigned lines = chart_lines(d->size);
    uint64_t most = 0;
    for (size_t i = 0; i < columns; i++) {
        most = max_u64(most, values[i]);
    }
    for (unsigned line = 0; line < lines; line++) {
        const bool is_last = line + 1 == lines;
        if (is_last) {
            strbuf_printf(&d->line, "%-5s%10s", charted->name,
                          format_bytes(charted->now_bytes).text);
            top_append_error(&d->line, (double)charted->now_bytes, (double)charted->now_error);
        }
        blank_to(&d->line, CHART_LEFT + error_columns(d), 2);
        top_chart_append(&d->line, values, columns, most, line, lines, d->size.is_utf8);
        if (is_last) {
            strbuf_printf(&d->line, "  peak %s", format_bytes(charted->peak_bytes).text);
            top_append_error(&d->line, (double)charted->peak_bytes, (double)charted->peak_error);
        }
        TRY(end_line(d, TOP_STYLE_CHART));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_charts(struct drawing *d)
{
    const struct top_sample *sample = d->model->sample;
    const struct site_figures *total = &sample->moment->total;
    const struct site_figures errors = site_figures_error(&sample->sampling, total);
    const unsigned around = CHART_LEFT + CHART_RIGHT + 2 + 2 * error_columns(d);
    uint64_t values[TOP_CHART_COLUMNS_MAX];
    const size_t columns =
        d->size.width > around ? min_u64(d->size.width - around, TOP_CHART_COLUMNS_MAX) : 0;
    top_chart_live(&sample->timeline, values, columns);
    const struct charted heap = {
        .name = "Heap",
        .now_bytes = total->live_bytes,
        .now_error = errors.live_bytes,
        .peak_bytes = costs_get(&sample->summary.costs, COST_PEAK_BYTES),
        .peak_error = has_errors(d->model) ? sample->summary.peak_error_bytes : 0,
    };
    TRY(draw_chart(d, &heap, values, columns));
    top_chart_rss(&sample->rss, sample->summary.runtime_ms, values, columns);
    const struct charted rss = {.name = "RSS",
                                .now_bytes = top_sample_rss_bytes(sample),
                                .peak_bytes = sample->summary.peak_rss_bytes};
    return draw_chart(d, &rss, values, columns);
}

static MUST_USE enum err draw_totals(struct drawing *d)
{
    const struct top_model *model = d->model;
    const struct site_figures *total = &model->sample->moment->total;
    const struct site_figures errors = site_figures_error(&model->sample->sampling, total);
    strbuf_append_text(&d->line, format_count(total->live_blocks).text);
    top_append_error(&d->line, (double)total->live_blocks, (double)errors.live_blocks);
    strbuf_printf(&d->line, " live blocks, %s", format_count(total->allocations).text);
    top_append_error(&d->line, (double)total->allocations, (double)errors.allocations);
    strbuf_printf(&d->line, " allocations (%s", format_short(model->rate).text);
    top_append_error(&d->line, model->rate, model->rate_error);
    strbuf_printf(&d->line, "/s), %s temporary",
                  format_percent(total->temporary, total->allocations).text);
    TRY(end_line(d, TOP_STYLE_PLAIN));
    strbuf_append_text(&d->line, "Change ");
    const int64_t change_bytes = (int64_t)(total->live_bytes - model->base->total.live_bytes);
    top_append_change(&d->line, change_bytes);
    top_append_error(
        &d->line, (double)change_bytes,
        (double)site_change_error(&model->sample->sampling, &model->base->total, total));
    strbuf_printf(&d->line, " since %s%s", model->is_marked ? "the mark at " : "",
                  screen_format_ms(model->base->time_ms).text);
    if (model->filter.len > 0) {
        CLEANUP(strbuf_release) struct strbuf safe = {0};
        screen_append(&safe, strbuf_text(&model->filter));
        strbuf_printf(&d->line, "; %zu of %zu call sites match '%s'", model->rows.len,
                      model->sample->sites.sites.len, strbuf_text(&safe));
    }
    return end_line(d, TOP_STYLE_PLAIN);
}

// The same for every finding, so that the list does not move. A low terminal needs its lines for
// the list.
static unsigned finding_lines(struct top_size size)
{
    if (size.height < LOW_LINES) {
        return 0;
    }
    return size.height >= HIGH_LINES && size.width < FINDING_WIDE ? FINDING_LINES + 1
                                                                  : FINDING_LINES;
}

// Return the bytes of the sentences that fit into the lines; of the whole text if not even the
// first sentence fits.
static size_t fitting_sentences(const char *text, size_t columns, unsigned lines)
{
    size_t len = 0;
    for (unsigned line = 0; line < lines; line++) {
        len += screen_fitting_words(text + len, columns);
        len += strspn(text + len, " ");
    }
    for (size_t end = len; text[len] != '\0' && end > 1; end--) {
        if (text[end - 2] == '.' && text[end - 1] == ' ') {
            return end - 1;
        }
    }
    return strlen(text);
}

// Draw the first finding: the sentences that fit. If the first one does not, its last line is cut.
static MUST_USE enum err draw_finding(struct drawing *d)
{
    const struct findings *findings = &d->model->sample->findings;
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    if (findings->items.len > 0) {
        screen_append(&safe, findings_sentence(findings, &findings->items.items[0]));
    }
    const unsigned count = finding_lines(d->size);
    const char *text = strbuf_text(&safe);
    const char *end = text + fitting_sentences(text, d->size.width, count);
    for (unsigned line = 1; line <= count; line++) {
        const size_t rest = (size_t)(end - text);
        const size_t len =
            line < count ? min_u64(screen_fitting_words(text, d->size.width), rest) : rest;
        strbuf_append(&d->line, text, len);
        TRY(end_line(d, TOP_STYLE_NOTE));
        text += len;
        text += min_u64(strspn(text, " "), (size_t)(end - text));
    }
    return ERR_OK;
}

static bool is_shown(const struct drawing *d, size_t column)
{
    const bool is_order = shown[column].column == d->model->sort;
    return d->size.width >= (is_order ? min_u64(SORTED_WIDTH_MIN, shown[column].width_min)
                                      : shown[column].width_min);
}

static bool is_error_shown(const struct drawing *d, size_t column)
{
    return has_errors(d->model) && is_shown(d, column) &&
           (shown[column].column == d->model->sort ||
            d->size.width >= shown[column].error_width_min);
}

// Append the error of a cell in a column of its own, or its title.
static void append_error(struct drawing *d, const char *text)
{
    const size_t columns = error_columns(d) - 1;
    // Its sign becomes two characters without UTF-8.
    const size_t used = screen_columns(text) + (!d->size.is_utf8 && text[0] != '\0');
    strbuf_printf(&d->line, "%*s%s  ", (int)(columns > used ? columns - used : 0), "", text);
}

// Append function and place of a location in the rest of the line.
static void append_location(struct drawing *d, uint32_t location, bool is_inlined)
{
    const struct profile *profile = d->model->sample->profile;
    CLEANUP(strbuf_release) struct strbuf place = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    const size_t used = screen_columns(strbuf_text(&d->line));
    const size_t rest = d->size.width > used ? d->size.width - used : 0;
    location_append_line(&place, profile, location, false);
    if (place.len == 0 && location != REC_NONE && !location_names_module(profile, location)) {
        screen_append(&place, path_file_name(profile_location_module(profile, location)));
    }
    const size_t room = rest > FUNCTION_COLUMNS_MIN + 2 ? rest - FUNCTION_COLUMNS_MIN - 2 : 0;
    screen_append_cut(&cut, strbuf_text(&place),
                      min_u64(min_u64(room, rest / 2), PLACE_COLUMNS_MAX), SCREEN_CUT_START);
    const size_t taken = cut.len > 0 ? screen_columns(strbuf_text(&cut)) + 2 : 0;
    location_append_function(&d->line, profile, location, is_inlined, rest - min_u64(taken, rest));
    if (cut.len > 0) {
        blank_to(&d->line, d->size.width - (taken - 2), 2);
        strbuf_append_text(&d->line, strbuf_text(&cut));
    }
}

static void append_cell(struct drawing *d, const struct top_row *row, enum top_column column)
{
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    if (!top_append_bytes(&cell, row, column)) {
        strbuf_append_text(&cell, format_short(top_row_value(row, column)).text);
    }
    strbuf_printf(&d->line, "%*s  ", (int)top_column_get(column)->columns, strbuf_text(&cell));
}

// Append the cells of a column, if it is shown: the figure and its error.
static void append_cells(struct drawing *d, const struct top_row *row, size_t column)
{
    const enum top_column of = shown[column].column;
    CLEANUP(strbuf_release) struct strbuf error = {0};
    if (is_shown(d, column)) {
        append_cell(d, row, of);
    }
    if (is_error_shown(d, column)) {
        top_append_error(&error, top_row_value(row, of), row->errors[of]);
        append_error(d, strbuf_text(&error) + (error.len > 0)); // without its blank
    }
}

static MUST_USE enum err draw_list(struct drawing *d, size_t lines)
{
    const struct top_model *model = d->model;
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        if (is_shown(d, i)) {
            const struct top_column_info *info = top_column_get(shown[i].column);
            const char *mark = shown[i].column != model->sort ? " "
                               : model->is_inverted           ? "^"
                                                              : "v";
            strbuf_printf(&d->line, "%*s%s ", (int)info->columns, info->title, mark);
        }
        if (is_error_shown(d, i)) {
            append_error(d, "±");
        }
    }
    strbuf_append_text(&d->line, "FUNCTION");
    blank_to(&d->line, d->size.width > 5 ? d->size.width - 5 : 0, 2);
    strbuf_append_text(&d->line, "PLACE");
    TRY(end_line(d, TOP_STYLE_HEAD));
    for (size_t i = model->first; i < model->first + lines; i++) {
        if (i < model->rows.len) {
            const struct top_row *row = &model->rows.items[i];
            const struct call_site *site = &model->sample->sites.sites.items[row->site];
            for (size_t column = 0; column < ARRAY_LEN(shown); column++) {
                append_cells(d, row, column);
            }
            append_location(d, site->location, false); // the place says more
        } else if (i == 0) {
            strbuf_append_text(&d->line, model->filter.len > 0 ? "No call site matches the filter."
                                                               : "Nothing was allocated so far.");
        }
        TRY(end_line(d, i == model->cursor && i < model->rows.len ? TOP_STYLE_CURSOR
                                                                  : TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}

// Append a cost of a stack with its error.
static void append_cost(struct drawing *d, const struct costs *costs, enum cost cost)
{
    const uint64_t value = costs_get(costs, cost);
    const struct costs errors = sampling_errors(&d->model->sample->sampling, costs);
    strbuf_append_text(&d->line, cost_get_info(cost)->unit == COST_UNIT_BYTES
                                     ? format_bytes(value).text
                                     : format_count(value).text);
    top_append_error(&d->line, (double)value, (double)costs_get(&errors, cost));
}

static void append_stack_line(struct drawing *d, const struct top_stack_line *line)
{
    if (!line->is_title) {
        strbuf_append_text(&d->line, "    ");
        append_location(d, line->location, line->is_inlined);
        return;
    }
    const uint64_t blocks = costs_get(&line->costs, COST_LEAKED_ALLOCATIONS);
    const uint64_t allocations = costs_get(&line->costs, COST_ALLOCATIONS);
    append_cost(d, &line->costs, COST_LEAKED_BYTES);
    strbuf_append_text(&d->line, " in ");
    append_cost(d, &line->costs, COST_LEAKED_ALLOCATIONS);
    strbuf_append_text(&d->line, blocks == 1 ? " block; " : " blocks; ");
    append_cost(d, &line->costs, COST_ALLOCATIONS);
    strbuf_append_text(&d->line, allocations == 1 ? " allocation, " : " allocations, ");
    append_cost(d, &line->costs, COST_TEMPORARY);
    strbuf_append_text(&d->line, " temporary");
}

static MUST_USE enum err draw_stack(struct drawing *d, size_t lines)
{
    const struct top_model *model = d->model;
    strbuf_append_text(&d->line, "Call stacks, innermost function first, most unfreed bytes first");
    TRY(end_line(d, TOP_STYLE_HEAD));
    for (size_t i = model->stack_first; i < model->stack_first + lines; i++) {
        const struct top_stack_line *line = i < model->stack.len ? &model->stack.items[i] : NULL;
        if (line != NULL) {
            append_stack_line(d, line);
        }
        TRY(end_line(d, line != NULL && line->is_title ? TOP_STYLE_NOTE : TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_help(struct drawing *d, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        strbuf_append_text(&d->line, i < ARRAY_LEN(help) ? help[i] : "");
        TRY(end_line(d, TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_bottom(struct drawing *d)
{
    const struct top_model *model = d->model;
    if (model->is_typing) {
        CLEANUP(strbuf_release) struct strbuf safe = {0};
        screen_append(&safe, strbuf_text(&model->filter));
        strbuf_printf(&d->line, "Filter: %s_   (Enter keeps it, Esc removes it)",
                      strbuf_text(&safe));
    } else if (model->is_asking) {
        strbuf_append_text(&d->line, "End the program (SIGTERM)? y/n");
    } else if (model->message[0] != '\0') {
        screen_append(&d->line, model->message);
    } else if (model->page != TOP_PAGE_LIST) {
        strbuf_append_text(&d->line, "Esc back  Up Down PgUp PgDn scroll  q quit");
    } else {
        strbuf_append_text(&d->line, "F1 Help  F4 Filter  F5 Stacks  F6 Sort  F7 Mark  F8 Pause  "
                                     "F9 End  F10 Quit");
        blank_to(&d->line, d->size.width, 0);
    }
    return end_line(d, TOP_STYLE_KEYS);
}

// Lines besides the list: title, charts, two of totals, the finding, the head and the bottom.
static size_t other_lines(struct top_size size)
{
    return 1 + (size_t)chart_lines(size) * 2 + 2 + finding_lines(size) + 1 + 1;
}

size_t top_picture_list_lines(struct top_size size)
{
    return size.height > other_lines(size) ? size.height - other_lines(size) : 1;
}

static MUST_USE enum err draw(struct drawing *d)
{
    const size_t lines = top_picture_list_lines(d->size);
    const size_t above = other_lines(d->size) - 2; // the bottom, and the title
    TRY(draw_title(d));
    if (d->model->page == TOP_PAGE_HELP) {
        TRY(draw_help(d, lines + above));
        return draw_bottom(d);
    }
    if (d->model->sample == NULL) {
        for (size_t i = 0; i < lines + above; i++) {
            strbuf_append_text(&d->line, i == 1 ? "Waiting for the first figures." : "");
            TRY(end_line(d, TOP_STYLE_PLAIN));
        }
        return draw_bottom(d);
    }
    TRY(draw_charts(d));
    TRY(draw_totals(d));
    TRY(draw_finding(d));
    TRY(d->model->page == TOP_PAGE_STACK ? draw_stack(d, lines) : draw_list(d, lines));
    return draw_bottom(d);
}

enum err
top_picture_draw(const struct top_model *model, struct top_size size, struct top_picture *out)
{
    CLEANUP(drawing_release) struct drawing d = {.model = model, .size = size, .picture = out};
    strbuf_clear(&out->texts);
    top_line_vec_clear(&out->lines);
    return draw(&d);
}
