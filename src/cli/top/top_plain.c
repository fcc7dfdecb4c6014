// SPDX-License-Identifier: MIT
#include "cli/top/top_plain.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "cli/top/top_drawing.h"
#include "host/os/file.h"
#include "host/text/format.h"

// "12.5", "232,070": a rate with as many digits as it deserves.
static struct human format_fine_rate(double rate)
{
    struct human out;
    if (rate >= 1000) {
        return format_rate(rate);
    }
    (void)snprintf(out.text, sizeof(out.text), "%.1f", rate); // fits
    return out;
}

// A count with its error.
static void append_count(struct strbuf *out, uint64_t count, uint64_t error)
{
    strbuf_append_text(out, format_count(count).text);
    top_append_error(out, (double)count, (double)error);
}

static void append_bytes(struct strbuf *out, uint64_t bytes, uint64_t error)
{
    strbuf_append_text(out, format_bytes(bytes).text);
    top_append_error(out, (double)bytes, (double)error);
}

static void append_title(const struct top_model *model, struct strbuf *out)
{
    const struct profile *profile = model->sample->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    screen_append(out, path_file_name(profile_string(profile, meta->program)));
    strbuf_printf(out, " (process %" PRIu32 "): %s, %s", meta->pid, top_state_words(model),
                  screen_format_ms(meta->runtime_ms).text);
    sampling_append_mark(&profile->recording, out);
    strbuf_append_char(out, '\n');
}

static void append_totals(const struct top_model *model, struct strbuf *out)
{
    const struct top_sample *sample = model->sample;
    const struct site_figures *total = &sample->moment->total;
    const struct site_figures errors = site_figures_error(&sample->sampling, total);
    strbuf_append_text(out, "live heap: ");
    append_bytes(out, total->live_bytes, errors.live_bytes);
    strbuf_append_text(out, " in ");
    append_count(out, total->live_blocks, errors.live_blocks);
    strbuf_append_text(out, " blocks, peak ");
    append_bytes(out, costs_get(&sample->summary.costs, COST_PEAK_BYTES),
                 sample->sampling.bytes != 0 ? sample->summary.peak_error_bytes : 0);
    strbuf_printf(out, "\nRSS: %s, peak %s\n", format_bytes(top_sample_rss_bytes(sample)).text,
                  format_bytes(sample->summary.peak_rss_bytes).text);
    strbuf_append_text(out, "allocations: ");
    append_count(out, total->allocations, errors.allocations);
    strbuf_printf(out, ", %s", format_fine_rate(model->rate).text);
    top_append_error(out, model->rate, model->rate_error);
    strbuf_append_text(out, " per second, ");
    append_count(out, total->temporary, errors.temporary);
    strbuf_printf(out, " temporary (%s)\n",
                  format_percent(total->temporary, total->allocations).text);
}

static MUST_USE enum err write_head(const struct top_model *model, FILE *out)
{
    const struct top_sample *sample = model->sample;
    const struct site_figures *total = &sample->moment->total;
    const struct site_figures *base = &model->base->total;
    const int64_t change_bytes = (int64_t)(total->live_bytes - base->live_bytes);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    append_title(model, &text);
    append_totals(model, &text);
    strbuf_append_text(&text, "change of the live heap: ");
    top_append_change(&text, change_bytes);
    top_append_error(&text, (double)change_bytes,
                     (double)site_change_error(&sample->sampling, base, total));
    strbuf_printf(&text, " since %s\n", screen_format_ms(model->base->time_ms).text);
    if (sample->findings.items.len > 0) {
        strbuf_append_text(&text, "finding: ");
        screen_append(&text,
                      findings_sentence(&sample->findings, &sample->findings.items.items[0]));
        strbuf_append_char(&text, '\n');
    }
    TRY(strbuf_result(&text));
    (void)fputs(strbuf_text(&text), out); // errors of the stream are found at the end
    return ERR_OK;
}

// The columns of an update, by their order.
static const struct {
    enum top_column column;
    int width;
    const char *title;
} cells[] = {
    {TOP_LIVE, 10, "LIVE"},
    {TOP_CHANGE, 12, "CHANGE"},
    {TOP_RATE, 10, "ALLOC/S"},
    {TOP_TEMPORARY, 14, "TEMPORARY"},
    {TOP_ALLOCATIONS, 14, "ALLOCATIONS"},
    {TOP_PEAK, 11, "AT PEAK"},
};

enum {
    ERROR_COLUMNS = 6 // " ±999%"
};

// Append a text in a column, right-aligned; with room for an error if figures have one.
static void append_cell(struct strbuf *out, const char *text, int width, bool has_errors)
{
    const int padding = width + (has_errors ? ERROR_COLUMNS : 0) - (int)screen_columns(text);
    strbuf_printf(out, "%*s%s", padding > 0 ? padding : 0, "", text);
}

static void append_figure(struct strbuf *out, const struct top_row *row, enum top_column column)
{
    const double value = top_row_value(row, column);
    if (!top_append_bytes(out, row, column)) {
        strbuf_append_text(out, column == TOP_RATE ? format_fine_rate(value).text
                                                   : format_count((uint64_t)value).text);
    }
    top_append_error(out, value, row->errors[column]);
}

static MUST_USE enum err
write_row(const struct top_model *model, const struct top_row *row, FILE *out)
{
    const struct profile *profile = model->sample->profile;
    const struct call_site *site = &model->sample->sites.sites.items[row->site];
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        strbuf_clear(&cell);
        append_figure(&cell, row, cells[i].column);
        append_cell(&text, strbuf_text(&cell), cells[i].width, model->sample->sampling.bytes != 0);
    }
    strbuf_append_text(&text, "  ");
    location_append_function(&text, profile, site->location, site->is_inlined, SIZE_MAX);
    strbuf_append_text(&text, "  ");
    const size_t before = text.len;
    location_append_line(&text, profile, site->location, false);
    if (text.len == before && site->location != REC_NONE) {
        screen_append(&text, path_file_name(profile_location_module(profile, site->location)));
    }
    strbuf_append_char(&text, '\n');
    TRY(strbuf_result(&cell));
    TRY(strbuf_result(&text));
    (void)fputs(strbuf_text(&text), out); // errors of the stream are found at the end
    return ERR_OK;
}

static MUST_USE enum err write_titles(const struct top_model *model, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        append_cell(&text, cells[i].title, cells[i].width, model->sample->sampling.bytes != 0);
    }
    strbuf_append_text(&text, "  FUNCTION, PLACE\n");
    TRY(strbuf_result(&text));
    (void)fputs(strbuf_text(&text), out); // errors of the stream are found at the end
    return ERR_OK;
}

enum err top_plain_write(const struct top_model *model, size_t limit, FILE *out)
{
    const size_t count = min_u64(model->rows.len, limit);
    TRY(write_head(model, out));
    (void)fprintf(out, "%zu of %s, most %s first\n", count,
                  format_things(model->rows.len, "call site", "call sites").text,
                  top_column_get(model->sort)->words);
    if (count > 0) {
        TRY(write_titles(model, out));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(write_row(model, &model->rows.items[i], out));
    }
    (void)fputc('\n', out); // errors of the stream are found at the end
    return ERR_OK;
}
