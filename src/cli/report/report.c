// SPDX-License-Identifier: MIT
// report: asking the questions of a report. See report.h.
#include "cli/report/report.h"

#include "base/compiler.h"
#include "cli/diff/comparison.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/text/format.h"
#include "profile/accuracy/sampling.h"
#include "profile/time/marks.h"

// Takes about as long as all the rest, so only where leaks are the question.
static MUST_USE enum err build_growth(struct report *report)
{
    const struct report_options *options = report->options;
    const bool is_by_bytes = options->sort == COST_LEAKED_BYTES;
    if ((!is_by_bytes && options->sort != COST_LEAKED_ALLOCATIONS) || options->filter.has_range ||
        !growth_is_known(&report->profile->recording)) {
        return ERR_OK;
    }
    const bool is_limited = is_by_bytes && options->site_limit != 0;
    return growth_build(&report->selection, ROW_GROUPS_BY_SITE,
                        is_limited ? options->site_limit : SIZE_MAX, &report->growth);
}

const struct growth_entry *report_growth(const struct report *report, uint32_t site)
{
    const struct growth_entry_vec *entries = &report->growth.entries;
    for (size_t i = 0; i < entries->len; i++) {
        const struct growth_entry *entry = &entries->items[i];
        if (entry->group == site) { // groups are in the order of sites
            return entry->class != GROWTH_UNKNOWN ? entry : NULL;
        }
    }
    return NULL;
}

enum err report_build(const struct profile *profile,
                      const struct report_options *options,
                      struct report *out,
                      struct err_info *info)
{
    CLEANUP(report_release) struct report report = {.options = options, .profile = profile};
    TRY(profile_select(profile, &options->filter, &report.selection, info));
    report.selection.progress = options->progress;
    enum err problem = summary_build(&report.selection, &report.summary);
    if (problem == ERR_OK) {
        problem = options->without_stacks ? call_sites_build_alone(&report.selection, &report.sites)
                                          : call_sites_build(&report.selection, &report.sites);
    }
    if (problem == ERR_OK) {
        problem = ledger_build(profile, options->filter.pid, &report.ledger);
    }
    if (problem == ERR_OK) {
        problem = build_growth(&report);
    }
    if (problem == ERR_OK && !options->without_stacks && options->comparison == NULL) {
        problem = code_union_build(profile, NULL, &report.alone);
    }
    if (options->progress != NULL) {
        progress_clear(options->progress);
    }
    if (problem != ERR_OK) {
        return err_set(info, problem, "not enough memory for the report");
    }
    *out = report;
    out->code = options->comparison != NULL ? &options->comparison->code : &out->alone;
    report = (struct report){0};
    return ERR_OK;
}

void report_release(struct report *report)
{
    selection_release(&report->selection);
    call_sites_release(&report->sites);
    code_union_release(&report->alone);
    ledger_release(&report->ledger);
    growth_release(&report->growth);
}

size_t report_sections(const struct report *report, const enum cost **out)
{
    static const enum cost usual[] = {COST_PEAK_BYTES, COST_ALLOCATIONS, COST_TEMPORARY,
                                      COST_LEAKED_BYTES};
    bool is_usual = report->options->sort == COST_COUNT;
    *out = is_usual ? usual : &report->options->sort;
    return is_usual ? ARRAY_LEN(usual) : 1;
}

static void write_losses(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (counter->kind != REC_COUNTER_LOSS || counter->value == 0) {
            continue;
        }
        CLEANUP(strbuf_release) struct strbuf text = {0};
        screen_append(&text, profile_string(profile, counter->text));
        // Output errors are found when the stream is closed.
        (void)fprintf(out, "%sevents were lost: %s (%s)\n", prefix, strbuf_text(&text),
                      format_count(counter->value).text);
    }
}

static void write_stops(const struct profile *profile, const char *prefix, FILE *out)
{
    const uint64_t stopped_ms = marks_stopped_ms(&profile->recording);
    if (stopped_ms > 0) {
        (void)fprintf(out,
                      "%srecording was stopped for %s of %s: what was allocated then is not here\n",
                      prefix, report_format_ms(stopped_ms).text,
                      report_format_ms(profile->recording.meta.runtime_ms).text);
    }
}

static void write_sampling(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct sampling sampling = sampling_of(&profile->recording);
    if (sampling.is_sampled) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        sampling_append(&sampling, &text);
        (void)fprintf(out, "%s%s\n", prefix, strbuf_text(&text));
    }
}

static void write_merged(const struct profile *profile, const char *prefix, FILE *out)
{
    const uint64_t merged = rec_counter_value(&profile->recording, "merged_stacks");
    if (merged > 0) {
        (void)fprintf(out,
                      "%scall stacks took the recorder's memory (--max-memory): %s times a new one "
                      "was merged with others, and has its call site and outermost callers only\n",
                      prefix, format_count(merged).text);
    }
}

void report_write_warnings(const struct profile *profile, const char *prefix, FILE *out)
{
    if (profile->damage[0] != '\0') {
        (void)fprintf(out, "%s%s\n", prefix, profile->damage);
    }
    const struct rec_meta *meta = &profile->recording.meta;
    if (meta->state == REC_STATE_RUNNING) {
        (void)fprintf(out,
                      "%sthe program had not ended when this was written: "
                      "figures are those of %s after its start\n",
                      prefix, report_format_ms(meta->runtime_ms).text);
        if (meta->checkpoint_interval_ms > 0) {
            (void)fprintf(out, "%swhile it is recorded, newer ones come every %s\n", prefix,
                          report_format_ms(meta->checkpoint_interval_ms).text);
        }
    }
    write_stops(profile, prefix, out);
    write_sampling(profile, prefix, out);
    write_merged(profile, prefix, out);
    write_losses(profile, prefix, out);
    report_write_unseen(profile, prefix, out);
}
