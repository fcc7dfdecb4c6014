// SPDX-License-Identifier: MIT
// report_blocks: lists single blocks for `cairn report --blocks`. See report.h.
#include <inttypes.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "profile/accuracy/sampling.h"
#include "profile/tables/block_table.h"

// The moment of a list: the end or the peak.
struct block_moment {
    uint32_t flag;
    const char *title;
};

static const struct block_moment moments[] = {
    {.flag = REC_BLOCK_END, .title = "BLOCKS AT THE END"},
    {.flag = REC_BLOCK_PEAK, .title = "BLOCKS AT THE PEAK"},
};

static const struct rec_thread *thread_of(const struct report *report,
                                          const struct rec_block *block)
{
    const struct recording *recording = &report->profile->recording;
    return &recording->threads[recording->rows[block->row].thread];
}

static uint32_t location_of(const struct report *report, const struct rec_block *block)
{
    const uint32_t node = report->profile->recording.rows[block->row].node;
    return selection_call_site(&report->selection, node).location;
}

static void print_block(const struct report *report,
                        FILE *out,
                        uint32_t index,
                        const struct block_moment *moment)
{
    enum {
        NAME_COLUMNS = 15
    };
    const struct rec_block *block = &report->profile->recording.blocks[index];
    const struct rec_thread *thread = thread_of(report, block);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf place = {0};
    screen_append_cut(&name, report_string(report, &text, thread->name), NAME_COLUMNS,
                      SCREEN_CUT_MIDDLE);
    const int used =
        fprintf(out, "  %#14" PRIx64 "  %10s  %9s  %7" PRIu32 " %-*s  ", block->address,
                format_bytes(block->size_bytes).text,
                screen_format_ms(block_age_ms(report->profile, index, moment->flag)).text,
                thread->thread_id, NAME_COLUMNS, strbuf_text(&name));
    const size_t left =
        report_width(report) > (size_t)used + 20 ? report_width(report) - (size_t)used : 20;
    report_append_function(report, &place, location_of(report, block), false, left);
    (void)fprintf(out, "%s\n", strbuf_text(&place)); // errors are found at the end
}

static void print_list(const struct report *report,
                       FILE *out,
                       const struct block_table *table,
                       const struct block_moment *moment)
{
    (void)fprintf(out, "\n%s%s%s: ", report_paint(report, PAINT_TITLE), moment->title,
                  report_unpaint(report));
    report_print_counted(out, table->blocks.len, "block", "blocks", ", ");
    CLEANUP(strbuf_release) struct strbuf mark = {0};
    sampling_append_mark(&report->profile->recording, &mark);
    (void)fprintf(out, "%s%s\n\n", format_bytes(table->bytes).text, strbuf_text(&mark));
    if (table->blocks.len == 0) {
        return;
    }
    (void)fprintf(out, "  %14s  %10s  %9s  %7s %-15s  %s\n", "address", "size", "age", "thread", "",
                  "from");
    const size_t shown = limited_u64(table->blocks.len, report->options->site_limit);
    for (size_t i = 0; i < shown; i++) {
        print_block(report, out, table->blocks.items[i], moment);
    }
    report_print_rest(out, table->blocks.len, shown, "more", "more");
}

static enum err build_table(const struct report *report,
                            const struct block_moment *moment,
                            struct block_table *out,
                            struct err_info *info)
{
    if (!block_table_is_recorded(report->profile)) {
        return err_set(info, ERR_INVALID,
                       "the recording has no list of blocks; record with 'cairn record --blocks'");
    }
    return block_table_build(&report->selection, &report->options->filter, moment->flag, out, info);
}

enum err report_check_blocks(const struct report *report, struct err_info *info)
{
    CLEANUP(block_table_release) struct block_table table = {0};
    return build_table(report, &moments[0], &table, info);
}

enum err report_write_blocks(const struct report *report, FILE *out, struct err_info *info)
{
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        CLEANUP(block_table_release) struct block_table table = {0};
        TRY(build_table(report, &moments[i], &table, info));
        if (i == 0) {
            report_print_header(report, out);
            report_print_filter(report, out);
        }
        print_list(report, out, &table, &moments[i]);
    }
    report_print_notes(report, out);
    return ERR_OK;
}
