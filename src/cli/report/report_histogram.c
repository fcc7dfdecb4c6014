// SPDX-License-Identifier: MIT
// report_histogram: prints the sizes and lifetimes of blocks as bars.
//
//          64 B to      127 B     10,000  50.0%     640 KiB  ##########
//
// A text line covers a power of two; JSON has each bucket of the recording.

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"
#include "profile/tables/histogram.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/views.h"

enum {
    BAR_COLUMNS_MAX = 40,
    LINE_COLUMNS = 60, // before the bar
    SITES_SHOWN = 10,  // call sites in JSON
};

// The buckets of one line.
struct line {
    uint64_t low;
    uint64_t end;       // the first value after it
    struct costs costs; // histogram_costs()
};

DEFINE_VEC(line_vec, struct line);

static uint32_t octave_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(value);
}

static MUST_USE enum err list_lines(const struct histogram *histogram, struct line_vec *out)
{
    for (size_t i = 0; i < histogram->total.len; i++) {
        uint32_t bucket = histogram->first_bucket + (uint32_t)i;
        uint64_t low = rec_bucket_low(bucket);
        uint64_t end = rec_bucket_low(bucket + 1);
        struct line *last = out->len > 0 ? &out->items[out->len - 1] : NULL;
        if (last == NULL || octave_of(last->low) != octave_of(low)) {
            TRY(line_vec_push(out, (struct line){.low = low}));
            last = &out->items[out->len - 1];
        }
        last->end = end;
        const struct costs part = histogram_costs(histogram, i);
        costs_add(&last->costs, &part);
    }
    return ERR_OK;
}

static struct human format_value(enum histogram_of of, uint64_t value)
{
    return of == HISTOGRAM_SIZES ? format_bytes(value) : screen_format_ms(value);
}

static void print_line(const struct report *report,
                       FILE *out,
                       enum histogram_of of,
                       const struct line *line,
                       uint64_t all,
                       uint64_t most)
{
    static const char bar[] = "########################################";
    CLEANUP(strbuf_release) struct strbuf count_error = {0};
    CLEANUP(strbuf_release) struct strbuf bytes_error = {0};
    const size_t used =
        LINE_COLUMNS + report_append_error(report, &count_error, COST_ALLOCATIONS, &line->costs) +
        report_append_error(report, &bytes_error, COST_ALLOCATED_BYTES, &line->costs);
    const uint64_t count = costs_get(&line->costs, COST_ALLOCATIONS);
    size_t width = report_width(report) > used ? report_width(report) - used : 1;
    width = min_u64(width, BAR_COLUMNS_MAX);
    int len = (int)share_u64(width, count, most);
    const struct human low = format_value(of, line->low);
    const struct human end = format_value(of, line->end);
    bool is_one = line->end - line->low == 1; // value
    char last[sizeof(end.text) + 1];
    (void)snprintf(last, sizeof(last), "%s%s", is_one ? "" : "<",
                   is_one ? low.text : end.text); // fits
    (void)fprintf(out, "  %10s %2s %9s %s%13s%s %6s%s  %10s%s  %.*s\n", is_one ? "" : low.text,
                  is_one ? "" : "to", last, report_paint(report, PAINT_COST),
                  format_count(count).text, strbuf_text(&count_error),
                  format_percent(count, all).text, report_unpaint(report),
                  format_bytes(costs_get(&line->costs, COST_ALLOCATED_BYTES)).text,
                  strbuf_text(&bytes_error), count > 0 && len == 0 ? 1 : len, bar);
}

static MUST_USE enum err
print_histogram(const struct report *report, FILE *out, enum histogram_of of, const char *title)
{
    CLEANUP(histogram_release) struct histogram histogram = {0};
    CLEANUP(line_vec_release) struct line_vec lines = {0};
    TRY(histogram_build(&report->selection, of, false, 0, &histogram));
    TRY(list_lines(&histogram, &lines));
    uint64_t all = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < lines.len; i++) {
        const uint64_t count = costs_get(&lines.items[i].costs, COST_ALLOCATIONS);
        all += count;
        most = max_u64(most, count);
    }
    report_view_title(report, out, title);
    for (size_t i = 0; i < lines.len; i++) {
        print_line(report, out, of, &lines.items[i], all, most);
    }
    (void)fputs(lines.len == 0 ? "     nothing\n" : "", out);
    return ERR_OK;
}

enum err report_histograms_text(const struct report *report, FILE *out)
{
    TRY(print_histogram(report, out, HISTOGRAM_SIZES, "SIZES: of all allocations"));
    return print_histogram(report, out, HISTOGRAM_LIFETIMES,
                           "LIFETIMES: of the blocks that were freed");
}

static MUST_USE enum err write_histogram(struct view *view, const char *key, enum histogram_of of)
{
    const struct histogram_options options = {.of = of, .top_count = SITES_SHOWN};
    view_csv_tag(view, 0, key);
    VIEW_OBJECT(view, key, view_histogram(view, &options));
    return ERR_OK;
}

enum err report_histograms_json(const struct report *report, struct view *view)
{
    (void)report; // this view has no options
    TRY(write_histogram(view, "sizes", HISTOGRAM_SIZES));
    return write_histogram(view, "lifetimes", HISTOGRAM_LIFETIMES);
}
