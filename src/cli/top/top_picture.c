// SPDX-License-Identifier: MIT
#include "cli/top/top_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "host/text/utf8.h"

enum {
    FINDING_LINES = 2,  // of a finding; one more on a high and narrow screen
    FINDING_WIDE = 120, // columns
    LOW_LINES = 14,
    HIGH_LINES = 24,
    TALL_LINES = 34, // from here on, charts have several lines
    TALL_CHART_LINES = 3,
    CHART_LEFT = 18,  // columns before a chart
    CHART_RIGHT = 16, // and after it
    CHART_COLUMNS_MAX = 512,
    CHART_STEPS = 8, // of a character
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

// Fill `columns` values that cover the run: the highest live bytes of the slices in each, or the
// RSS at the end of each.
static void sample_live(const struct timeline *timeline, uint64_t *values, size_t columns)
{
    const size_t count = timeline->points.len;
    for (size_t column = 0; column < columns; column++) {
        const size_t first = column * count / columns;
        const size_t end = (column + 1) * count / columns;
        values[column] = 0;
        for (size_t i = first; i < count && (i == first || i < end); i++) {
            values[column] = max_u64(values[column], timeline->points.items[i].live_bytes);
        }
    }
}

static void
sample_rss(const struct rss_breakdown *rss, uint64_t runtime_ms, uint64_t *values, size_t columns)
{
    size_t next = 0;
    uint64_t rss_bytes = 0;
    for (size_t column = 0; column < columns; column++) {
        const uint64_t end_ms = (column + 1) * runtime_ms / columns;
        for (; next < rss->samples.len && rss->samples.items[next].time_ms <= end_ms; next++) {
            rss_bytes = rss->samples.items[next].rss_bytes;
        }
        values[column] = rss_bytes;
    }
}

// Return the height of a value in whole steps. Only 0 has none.
static uint64_t height_of(uint64_t value, uint64_t most, uint64_t steps)
{
    return most == 0 || value == 0
               ? 0
               : max_u64(1,
                         (uint64_t)((double)min_u64(value, most) / (double)most * (double)steps));
}

void top_chart_append(struct strbuf *out,
                      const uint64_t *values,
                      size_t columns,
                      uint64_t most,
                      unsigned line,
                      unsigned lines,
                      bool is_utf8)
{
    static const char plain[CHART_STEPS + 1] = " .:-=+*##";
    const uint32_t lower_one_eighth = 0x2581;
    const uint64_t below = (uint64_t)(lines - 1 - line) * CHART_STEPS;
    for (size_t i = 0; i < columns; i++) {
        const uint64_t height = height_of(values[i], most, (uint64_t)lines * CHART_STEPS);
        const uint64_t steps = height > below ? min_u64(height - below, CHART_STEPS) : 0;
        if (steps > 0 && is_utf8) {
            utf8_append(out, lower_one_eighth + (uint32_t)steps - 1);
        } else {
            strbuf_append_char(out, plain[steps]);
        }
    }
}

static MUST_USE enum err draw_title(struct top_drawing *d)
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
    top_drawing_blank_to(&d->line, d->size.width > columns ? d->size.width - columns : 0, 2);
    strbuf_append_text(&d->line, strbuf_text(&right));
    TRY(strbuf_result(&right));
    return top_drawing_end_line(d, TOP_STYLE_TITLE);
}

static unsigned chart_lines(struct top_size size)
{
    return size.height >= TALL_LINES ? TALL_CHART_LINES : 1;
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
static MUST_USE enum err draw_chart(struct top_drawing *d,
                                    const struct charted *charted,
                                    const uint64_t *values,
                                    size_t columns)
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
        top_drawing_blank_to(&d->line, CHART_LEFT + top_drawing_error_columns(d), 2);
        top_chart_append(&d->line, values, columns, most, line, lines, d->size.is_utf8);
        if (is_last) {
            strbuf_printf(&d->line, "  peak %s", format_bytes(charted->peak_bytes).text);
            top_append_error(&d->line, (double)charted->peak_bytes, (double)charted->peak_error);
        }
        TRY(top_drawing_end_line(d, TOP_STYLE_CHART));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_charts(struct top_drawing *d)
{
    const struct top_sample *sample = d->model->sample;
    const struct site_figures *total = &sample->moment->total;
    const struct site_figures errors = site_figures_error(&sample->sampling, total);
    const unsigned around = CHART_LEFT + CHART_RIGHT + 2 + 2 * top_drawing_error_columns(d);
    uint64_t values[CHART_COLUMNS_MAX];
    const size_t columns =
        d->size.width > around ? min_u64(d->size.width - around, CHART_COLUMNS_MAX) : 0;
    sample_live(&sample->timeline, values, columns);
    const struct charted heap = {
        .name = "Heap",
        .now_bytes = total->live_bytes,
        .now_error = errors.live_bytes,
        .peak_bytes = costs_get(&sample->summary.costs, COST_PEAK_BYTES),
        .peak_error = top_drawing_has_errors(d->model) ? sample->summary.peak_error_bytes : 0,
    };
    TRY(draw_chart(d, &heap, values, columns));
    sample_rss(&sample->rss, sample->summary.runtime_ms, values, columns);
    const struct charted rss = {.name = "RSS",
                                .now_bytes = top_sample_rss_bytes(sample),
                                .peak_bytes = sample->summary.peak_rss_bytes};
    return draw_chart(d, &rss, values, columns);
}

static MUST_USE enum err draw_totals(struct top_drawing *d)
{
    const struct top_model *model = d->model;
    const struct site_figures *total = &model->sample->moment->total;
    const struct site_figures errors = site_figures_error(&model->sample->sampling, total);
    strbuf_append_text(&d->line, format_count(total->live_blocks).text);
    top_append_error(&d->line, (double)total->live_blocks, (double)errors.live_blocks);
    strbuf_printf(&d->line, " live blocks, %s", format_count(total->allocations).text);
    top_append_error(&d->line, (double)total->allocations, (double)errors.allocations);
    strbuf_printf(&d->line, " allocations (%s", top_format_short(model->rate).text);
    top_append_error(&d->line, model->rate, model->rate_error);
    strbuf_printf(&d->line, "/s), %s temporary",
                  format_percent(total->temporary, total->allocations).text);
    TRY(top_drawing_end_line(d, TOP_STYLE_PLAIN));
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
        strbuf_printf(&d->line, "; %zu of %s %s '%s'", model->rows.len,
                      format_things(model->sample->sites.sites.len, "call site", "call sites").text,
                      model->rows.len == 1 ? "matches" : "match", strbuf_text(&safe));
    }
    return top_drawing_end_line(d, TOP_STYLE_PLAIN);
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
static MUST_USE enum err draw_finding(struct top_drawing *d)
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
        TRY(top_drawing_end_line(d, TOP_STYLE_NOTE));
        text += len;
        text += min_u64(strspn(text, " "), (size_t)(end - text));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_help(struct top_drawing *d, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        strbuf_append_text(&d->line, i < ARRAY_LEN(help) ? help[i] : "");
        TRY(top_drawing_end_line(d, TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}

static MUST_USE enum err draw_bottom(struct top_drawing *d)
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
        top_drawing_blank_to(&d->line, d->size.width, 0);
    }
    return top_drawing_end_line(d, TOP_STYLE_KEYS);
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

static MUST_USE enum err draw_lines(struct top_drawing *d)
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
            TRY(top_drawing_end_line(d, TOP_STYLE_PLAIN));
        }
        return draw_bottom(d);
    }
    TRY(draw_charts(d));
    TRY(draw_totals(d));
    TRY(draw_finding(d));
    TRY(d->model->page == TOP_PAGE_STACK ? top_list_draw_stack(d, lines) : top_list_draw(d, lines));
    return draw_bottom(d);
}

enum err
top_picture_draw(const struct top_model *model, struct top_size size, struct top_picture *out)
{
    CLEANUP(top_drawing_release)
    struct top_drawing d = {.model = model, .size = size, .picture = out};
    strbuf_clear(&out->texts);
    top_line_vec_clear(&out->lines);
    return draw_lines(&d);
}
