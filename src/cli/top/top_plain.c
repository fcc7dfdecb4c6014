// SPDX-License-Identifier: MIT
// top_plain: see the header.
#include "cli/top/top_plain.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "cli/top/top_picture.h"
#include "host/text/format.h"

// "12.5", "232,070": a rate with as many digits as it deserves.
static struct human format_rate(double rate)
{
    struct human out;
    if (rate >= 1000) {
        return format_count((uint64_t)rate);
    }
    (void)snprintf(out.text, sizeof(out.text), "%.1f", rate); // fits
    return out;
}

static MUST_USE enum err write_head(const struct top_model *model, FILE *out)
{
    const struct top_sample *sample = model->sample;
    const struct rec_meta *meta = &sample->profile->recording.meta;
    const struct site_figures *total = &sample->moment->total;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    screen_append(&text, screen_basename(profile_string(sample->profile, meta->program)));
    strbuf_printf(&text, " (process %" PRIu32 "): %s, %s\n", meta->pid, top_state_words(model),
                  screen_format_ms(meta->runtime_ms).text);
    strbuf_printf(&text, "live heap: %s in %s blocks, peak %s\n",
                  format_bytes(total->live_bytes).text, format_count(total->live_blocks).text,
                  format_bytes(costs_get(&sample->summary.costs, COST_PEAK_BYTES)).text);
    strbuf_printf(&text, "RSS: %s, peak %s\n", format_bytes(top_sample_rss_bytes(sample)).text,
                  format_bytes(sample->summary.peak_rss_bytes).text);
    strbuf_printf(&text, "allocations: %s, %s per second, %s temporary (%s)\n",
                  format_count(total->allocations).text, format_rate(model->rate).text,
                  format_count(total->temporary).text,
                  format_percent(total->temporary, total->allocations).text);
    strbuf_append_text(&text, "change of the live heap: ");
    top_append_change(&text, (int64_t)(total->live_bytes - model->base->total.live_bytes));
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

static MUST_USE enum err
write_row(const struct top_model *model, const struct top_row *row, FILE *out)
{
    const struct profile *profile = model->sample->profile;
    const struct call_site *site = &model->sample->sites.sites.items[row->site];
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf change = {0};
    top_append_change(&change, row->change_bytes);
    strbuf_printf(&text, "%10s %11s %9s %13s %13s %10s  ", format_bytes(row->now.live_bytes).text,
                  strbuf_text(&change), format_rate(row->rate).text,
                  format_count(row->now.temporary).text, format_count(row->now.allocations).text,
                  format_bytes(row->peak_bytes).text);
    location_append_function(&text, profile, site->location, site->is_inlined, SIZE_MAX);
    strbuf_append_text(&text, "  ");
    const size_t before = text.len;
    location_append_line(&text, profile, site->location, false);
    if (text.len == before && site->location != REC_NONE) {
        screen_append(&text, screen_basename(profile_location_module(profile, site->location)));
    }
    strbuf_append_char(&text, '\n');
    TRY(strbuf_result(&text));
    (void)fputs(strbuf_text(&text), out); // errors of the stream are found at the end
    return ERR_OK;
}

enum err top_plain_write(const struct top_model *model, size_t limit, FILE *out)
{
    const size_t count = min_u64(model->rows.len, limit);
    TRY(write_head(model, out));
    (void)fprintf(out, "%zu of %zu call sites, most %s first\n", count, model->rows.len,
                  top_column_get(model->sort)->words);
    if (count > 0) {
        (void)fprintf(out, "%10s %11s %9s %13s %13s %10s  %s\n", "LIVE", "CHANGE", "ALLOC/S",
                      "TEMPORARY", "ALLOCATIONS", "AT PEAK", "FUNCTION, PLACE");
    }
    for (size_t i = 0; i < count; i++) {
        TRY(write_row(model, &model->rows.items[i], out));
    }
    (void)fputc('\n', out); // errors of the stream are found at the end
    return ERR_OK;
}
