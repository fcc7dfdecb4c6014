// SPDX-License-Identifier: MIT
#include "profile/findings/findings.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "host/text/format.h"
#include "profile/findings/findings_builder.h"
#include "profile/findings/program_start.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum {
    PEAK_SHARE = 10,      // a tenth of the peak
    SECOND_SHARE = 3,     // a third of it: a function beside the one that holds the most
    GROWING_SITES = 5,    // call sites whose growth is judged: those with the most bytes
    GROWTH_FINDINGS = 3,  // at most
    JUDGED_RUN_MS = 1000, // shorter runs have no growth and no unfreed memory
    UNFREED_SHARE = 10,   // a tenth of the peak
    UNFREED_PER_SCORE = 4,
    SECONDS_OF_GROWTH = 60, // at most; not longer than the growth was seen
    PAST_GROWTH_MS = 2000,  // of growth that was over before the end: programs start by growing
    FREED_TIMES = 16,       // of what is left was held: it was freed at the end
};

#define PEAK_BYTES_MIN    MIB
#define GROWTH_BYTES_MIN  (16 * KIB)
#define UNFREED_BYTES_MIN (4 * MIB)

static void builder_release(struct findings_builder *builder)
{
    findings_release(&builder->out);
}

// Append what a function gained. `is_first`: since when is not said yet.
static void append_gain(const struct findings_builder *builder,
                        struct strbuf *out,
                        const struct finding_leader *leader,
                        bool is_first)
{
    const struct peak_rise *rise = &builder->out.rise;
    const uint64_t peak_bytes = builder->selection->profile->recording.totals.peak_bytes;
    const uint64_t held_bytes = costs_get(&leader->costs, COST_PEAK_BYTES);
    const uint64_t error_bytes = peak_rise_error_bytes(held_bytes, leader->gained);
    strbuf_printf(out, " gained %s",
                  finding_format_gain(builder, leader->gained, error_bytes).text);
    if (is_first) {
        strbuf_printf(out, " since %s, when the heap held ",
                      format_duration(rise->trough_ms * 1000000).text);
        strbuf_append_text(out, finding_format_bytes(builder, rise->trough_bytes).text);
    } else {
        strbuf_append_text(out, " in that time");
    }
    strbuf_printf(out, "; without that the peak would be %s.",
                  finding_format_bytes(builder, peak_bytes - leader->gained).text);
}

// Append what another function holds, if that is much, too, and it is not named yet.
static MUST_USE enum err append_second(const struct findings_builder *builder,
                                       struct strbuf *out,
                                       const struct finding_leader *leader)
{
    const uint64_t peak_bytes = builder->selection->profile->recording.totals.peak_bytes;
    struct finding_leader second;
    TRY(finding_leader(builder, COST_PEAK_BYTES, leader, &second));
    const uint64_t bytes = costs_get(&second.costs, COST_PEAK_BYTES);
    if (second.group != REC_NONE && bytes >= peak_bytes / SECOND_SHARE) {
        strbuf_append_char(out, ' ');
        finding_append_leader(builder, out, &second);
        strbuf_printf(out, " holds another %s, ",
                      finding_format(builder, &second.costs, COST_PEAK_BYTES).text);
        strbuf_printf(out, "%s.", format_percent(bytes, peak_bytes).text);
    }
    return ERR_OK;
}

// Append what the function with most of the peak gained, and what another one did that gained more,
// or holds as well.
static MUST_USE enum err append_rise(const struct findings_builder *builder,
                                     struct strbuf *out,
                                     const struct finding_leader *leader)
{
    const struct peak_rise *rise = &builder->out.rise;
    const struct recording *recording = &builder->selection->profile->recording;
    const uint64_t peak_bytes = recording->totals.peak_bytes;
    struct finding_leader gainer;
    TRY(finding_gainer(builder, &gainer));
    const bool has_gained = leader->gained > 0 && leader->gained <= peak_bytes;
    const bool is_another = gainer.gained > leader->gained && gainer.gained <= peak_bytes &&
                            gainer.gained >= peak_bytes / PEAK_SHARE;
    if (rise->trough_bytes == 0 || (!has_gained && !is_another)) {
        return append_second(builder, out, leader);
    }
    if (has_gained) {
        strbuf_append_text(out, " It");
        append_gain(builder, out, leader, true);
    }
    if (is_another) {
        strbuf_append_char(out, ' ');
        finding_append_leader(builder, out, &gainer);
        append_gain(builder, out, &gainer, !has_gained);
    } else {
        TRY(append_second(builder, out, leader));
    }
    if (rise->mark != REC_NONE) {
        strbuf_printf(
            out, " The last mark before the peak was \"%s\".",
            profile_string(builder->selection->profile, recording->marks[rise->mark].text));
    }
    return ERR_OK;
}

// Whether a call site with `bytes` of unfreed memory grows so that it is worth a finding: much of a
// large level may be old, and what was seen to come little.
static bool
is_growth_of_note(const struct profile *profile, const struct growth_entry *entry, uint64_t bytes)
{
    const struct recording *recording = &profile->recording;
    const uint64_t start_ms = recording->processes[entry->process].start_ms;
    const double seen_bytes = entry->slope_bytes_per_s * (double)entry->slope_ms / 1000;
    return entry->class == GROWTH_GROWING && entry->confidence >= CONFIDENCE_MEDIUM &&
           entry->slope_bytes_per_s >= 1 && bytes >= GROWTH_BYTES_MIN &&
           seen_bytes >= GROWTH_BYTES_MIN &&
           (entry->until_ms == 0 || excess_u64(entry->until_ms, start_ms) >= PAST_GROWTH_MS) &&
           !program_start_is_all(profile, entry->process, entry->until_ms);
}

// Append how the peak's maker grew until its process freed all, because it ended: a cache or a
// queue without bounds, or what it built.
static MUST_USE enum err
append_torn_down(struct findings_builder *builder, struct strbuf *out, uint32_t group)
{
    const struct selection *selection = builder->selection;
    if (!growth_is_known(&selection->profile->recording) || !selection->is_everything ||
        !profile_has_ended(selection->profile) || builder->summary->counted_ms < JUDGED_RUN_MS) {
        return ERR_OK;
    }
    CLEANUP(growth_release) struct growth growth = {0};
    struct row_groups *groups = &builder->out.groups;
    TRY(growth_of_groups(selection, groups, GROWING_SITES, true, &growth));
    *groups = growth.groups; // back again
    growth.groups = (struct row_groups){0};
    for (size_t i = 0; i < growth.entries.len && i < GROWING_SITES; i++) {
        const struct growth_entry *entry = &growth.entries.items[i];
        const uint64_t unfreed =
            costs_get(&groups->groups.items[entry->group].costs, COST_LEAKED_BYTES);
        if (entry->group == group && FREED_TIMES * unfreed <= entry->held.bytes &&
            entry->until_ms == 0 && entry->slope_ms >= JUDGED_RUN_MS && // of the second half
            is_growth_of_note(selection->profile, entry, entry->held.bytes)) {
            strbuf_printf(
                out, " It grew by %s%s a second", format_byte_rate(entry->slope_bytes_per_s).text,
                sampling_format_rate_error(entry->slope_bytes_per_s, entry->slope_error).text);
            strbuf_printf(out, " over %s, and was freed at the end.",
                          format_duration(entry->slope_ms * 1000000).text);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err find_peak(struct findings_builder *builder)
{
    const struct costs *whole = &builder->summary->costs;
    const uint64_t peak_bytes = costs_get(whole, COST_PEAK_BYTES);
    struct finding_leader leader;
    if (!profile_knows(builder->selection->profile, COST_PEAK_BYTES) ||
        peak_bytes < PEAK_BYTES_MIN) {
        return ERR_OK;
    }
    TRY(finding_leader(builder, COST_PEAK_BYTES, NULL, &leader));
    const uint64_t bytes = costs_get(&leader.costs, COST_PEAK_BYTES);
    if (leader.group == REC_NONE || bytes < peak_bytes / PEAK_SHARE) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_PEAK,
                              .confidence = CONFIDENCE_HIGH,
                              .location = row_groups_location(&builder->out.groups, leader.group),
                              .bytes = bytes,
                              .whole_bytes = peak_bytes,
                              .blocks = costs_get(&leader.costs, COST_PEAK_BLOCKS),
                              .bytes_error = finding_error(builder, &leader.costs, COST_PEAK_BYTES),
                              .whole_bytes_error = finding_error(builder, whole, COST_PEAK_BYTES),
                              .blocks_error =
                                  finding_error(builder, &leader.costs, COST_PEAK_BLOCKS),
                              .score = bytes,
                              .look = "-p"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_leader(builder, out, &leader);
    strbuf_printf(out, " holds %s, ", finding_format(builder, &leader.costs, COST_PEAK_BYTES).text);
    strbuf_printf(out, "%s of the peak", format_percent(bytes, peak_bytes).text);
    strbuf_printf(out, " of %s.", finding_format(builder, whole, COST_PEAK_BYTES).text);
    TRY(append_rise(builder, out, &leader));
    TRY(append_torn_down(builder, out, leader.group));
    return finding_add(builder, &finding);
}

// Find who held the heap when the kernel killed a process for lack of memory.
static MUST_USE enum err find_oom(struct findings_builder *builder)
{
    const uint64_t limit_bytes = builder->selection->profile->recording.meta.oom_limit_bytes;
    const struct costs *whole = &builder->summary->costs;
    const uint64_t live_bytes = costs_get(whole, COST_LEAKED_BYTES);
    struct finding_leader leader;
    if (limit_bytes == 0) {
        return ERR_OK;
    }
    TRY(finding_leader(builder, COST_LEAKED_BYTES, NULL, &leader));
    struct finding finding = {.kind = FINDING_OOM,
                              .confidence = CONFIDENCE_HIGH,
                              .location =
                                  leader.group != REC_NONE
                                      ? row_groups_location(&builder->out.groups, leader.group)
                                      : REC_NONE,
                              .bytes = live_bytes,
                              .whole_bytes = limit_bytes,
                              .blocks = costs_get(whole, COST_LEAKED_ALLOCATIONS),
                              .bytes_error = finding_error(builder, whole, COST_LEAKED_BYTES),
                              .score = UINT64_MAX,
                              .look = "-l"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "out of memory: limit %s, heap ", format_bytes(limit_bytes).text);
    strbuf_append_text(out, finding_format(builder, whole, COST_LEAKED_BYTES).text);
    if (leader.group != REC_NONE) {
        strbuf_append_text(out, "; ");
        finding_append_leader(builder, out, &leader);
        strbuf_printf(out, " held %s",
                      finding_format(builder, &leader.costs, COST_LEAKED_BYTES).text);
    }
    strbuf_append_char(out, '.');
    return finding_add(builder, &finding);
}

static void append_slope(struct strbuf *out, const struct growth_entry *entry, bool has_ended)
{
    const char *until_now = has_ended ? " grows until the end," : " grows,";
    strbuf_printf(out, "%s by %s%s a second", entry->until_ms > 0 ? " grew" : until_now,
                  format_byte_rate(entry->slope_bytes_per_s).text,
                  sampling_format_rate_error(entry->slope_bytes_per_s, entry->slope_error).text);
    if (entry->until_ms > 0) {
        strbuf_printf(out, " until %s, while there was work: ",
                      format_duration(entry->until_ms * 1000000).text);
    } else {
        strbuf_printf(out, " over the last %s: ", format_duration(entry->slope_ms * 1000000).text);
    }
}

static MUST_USE enum err add_growth(struct findings_builder *builder,
                                    const struct growth_entry *entry)
{
    const struct row_groups *groups = &builder->out.groups;
    const struct costs *costs = &groups->groups.items[entry->group].costs;
    const struct costs *whole = &builder->summary->costs;
    const uint64_t bytes = costs_get(costs, COST_LEAKED_BYTES);
    const double slope = entry->slope_bytes_per_s;
    struct finding finding = {
        .kind = FINDING_GROWTH,
        .confidence = entry->confidence,
        .location = row_groups_location(groups, entry->group),
        .bytes = bytes,
        .whole_bytes = costs_get(whole, COST_LEAKED_BYTES),
        .blocks = costs_get(costs, COST_LEAKED_ALLOCATIONS),
        .bytes_error = finding_error(builder, costs, COST_LEAKED_BYTES),
        .whole_bytes_error = finding_error(builder, whole, COST_LEAKED_BYTES),
        .blocks_error = finding_error(builder, costs, COST_LEAKED_ALLOCATIONS),
        .bytes_per_s = slope,
        .bytes_per_s_error = entry->slope_error,
        .score = bytes +
                 (uint64_t)slope * min_u64(SECONDS_OF_GROWTH, builder->summary->counted_ms / 1000),
        .look = "-l",
    };
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    const bool has_ended = profile_has_ended(builder->selection->profile);
    append_slope(out, entry, has_ended);
    strbuf_printf(out, "%s ", finding_format(builder, costs, COST_LEAKED_BYTES).text);
    strbuf_printf(out, "in %s", format_things(finding.blocks, "block", "blocks").text);
    strbuf_printf(out, "%s were %s.",
                  sampling_format_error(finding.blocks, finding.blocks_error).text,
                  has_ended ? "never freed" : "not freed so far");
    return finding_add(builder, &finding);
}

// Whether the unfreed bytes were never live together: each process took its own with it.
static bool were_left_in_turn(const struct findings_builder *builder)
{
    const struct summary *summary = builder->summary;
    return builder->selection->is_everything && summary->processes > 1 &&
           costs_get(&summary->costs, COST_LEAKED_BYTES) >
               costs_get(&summary->costs, COST_PEAK_BYTES);
}

// Find unfreed memory that does not grow: all but that of the growing call sites.
static MUST_USE enum err find_unfreed(struct findings_builder *builder, bool may_grow)
{
    const struct costs *whole = &builder->summary->costs;
    const uint64_t bytes = costs_get(whole, COST_LEAKED_BYTES);
    const uint64_t error = finding_error(builder, whole, COST_LEAKED_BYTES);
    struct finding_leader leader;
    if (bytes < UNFREED_BYTES_MIN || bytes < costs_get(whole, COST_PEAK_BYTES) / UNFREED_SHARE) {
        return ERR_OK;
    }
    TRY(finding_leader(builder, COST_LEAKED_BYTES, NULL, &leader));
    if (leader.group == REC_NONE) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_UNFREED,
                              .confidence = CONFIDENCE_MEDIUM,
                              .location = row_groups_location(&builder->out.groups, leader.group),
                              .bytes = bytes,
                              .whole_bytes = bytes,
                              .blocks = costs_get(whole, COST_LEAKED_ALLOCATIONS),
                              .bytes_error = error,
                              .whole_bytes_error = error,
                              .blocks_error =
                                  finding_error(builder, whole, COST_LEAKED_ALLOCATIONS),
                              .score = bytes / UNFREED_PER_SCORE,
                              .look = "-l"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "%s %s, and %s.", finding_format(builder, whole, COST_LEAKED_BYTES).text,
                  were_left_in_turn(builder) ? "were left by processes one after the other"
                  : profile_has_ended(builder->selection->profile) ? "are live at the end"
                                                                   : "are live",
                  may_grow ? "it is not sure whether they grow with the work"
                           : "no call site with much of it grows");
    strbuf_printf(out, " The largest part, %s, was allocated by ",
                  finding_format(builder, &leader.costs, COST_LEAKED_BYTES).text);
    finding_append_leader(builder, out, &leader);
    strbuf_append_char(out, '.');
    return finding_add(builder, &finding);
}

static MUST_USE enum err find_growth(struct findings_builder *builder)
{
    const struct selection *selection = builder->selection;
    if (!growth_is_known(&selection->profile->recording) ||
        builder->summary->counted_ms < JUDGED_RUN_MS) {
        return ERR_OK;
    }
    CLEANUP(growth_release) struct growth growth = {0};
    struct row_groups *groups = &builder->out.groups;
    TRY(growth_of_groups(selection, groups, GROWING_SITES, false, &growth));
    *groups = growth.groups; // back again
    growth.groups = (struct row_groups){0};
    size_t count = 0;
    bool may_grow = false;
    for (size_t i = 0; i < growth.entries.len && count < GROWTH_FINDINGS; i++) {
        const struct growth_entry *entry = &growth.entries.items[i];
        const struct costs *costs = &groups->groups.items[entry->group].costs;
        may_grow |= i < GROWING_SITES && (entry->class == GROWTH_GROWING || entry->is_idle_since);
        if (i < GROWING_SITES &&
            is_growth_of_note(selection->profile, entry, costs_get(costs, COST_LEAKED_BYTES))) {
            TRY(add_growth(builder, entry));
            count++;
        }
    }
    return count == 0 ? find_unfreed(builder, may_grow) : ERR_OK;
}

static int compare_findings(const void *left, const void *right)
{
    const struct finding *a = left;
    const struct finding *b = right;
    return order_u64(a->repeats, b->repeats)
               ?: order_u64(b->score, a->score)
               ?: order_u64(a->kind, b->kind)
               ?: order_u64(a->sentence, b->sentence);
}

// Return how many of the `count` findings answer the same question as `finding`.
static uint32_t
count_alike(const struct finding *items, size_t count, const struct finding *finding)
{
    uint32_t alike = 0;
    for (size_t i = 0; i < count; i++) {
        alike += items[i].kind == finding->kind && strcmp(items[i].look, finding->look) == 0;
    }
    return alike;
}

// Order the findings by score, then by their place among those that answer the same question.
static void rank_findings(struct finding_vec *items)
{
    finding_vec_sort(items, compare_findings);
    for (size_t i = 1; i < items->len; i++) {
        items->items[i].repeats = count_alike(items->items, i, &items->items[i]);
    }
    finding_vec_sort(items, compare_findings);
}

// What concerns processes rather than call stacks, and the history of the whole heap.
static MUST_USE enum err find_of_everything(struct findings_builder *builder)
{
    TRY(find_oom(builder));
    TRY(peak_rise_build(&builder->out.groups, &builder->out.rise));
    return findings_add_memory(builder);
}

enum err findings_build(const struct selection *selection,
                        const struct summary *summary,
                        const struct rss_breakdown *breakdown,
                        struct findings *out)
{
    CLEANUP(builder_release)
    struct findings_builder builder = {.selection = selection,
                                       .summary = summary,
                                       .breakdown = breakdown,
                                       .sampling = sampling_of(&selection->profile->recording)};
    if (!selection->has_range) {
        TRY(row_groups_build(selection, ROW_GROUPS_BY_SITE_ALONE, &builder.out.groups));
        TRY(selection->is_everything ? find_of_everything(&builder) : ERR_OK);
        TRY(find_peak(&builder));
        TRY(find_growth(&builder));
        TRY(findings_add_churn(&builder));
        TRY(findings_add_uneven(&builder));
    }
    TRY(strbuf_result(&builder.out.texts));
    rank_findings(&builder.out.items);
    *out = TAKE(builder.out);
    return ERR_OK;
}

enum err
findings_of(const struct selection *selection, const struct summary *summary, struct findings *out)
{
    CLEANUP(rss_breakdown_release) struct rss_breakdown breakdown = {0};
    if (selection->is_everything) {
        TRY(rss_breakdown_build(selection->profile, 0, &breakdown));
    }
    return findings_build(selection, summary, &breakdown, out);
}

void findings_release(struct findings *findings)
{
    finding_vec_release(&findings->items);
    strbuf_release(&findings->texts);
    row_groups_release(&findings->groups);
    peak_rise_release(&findings->rise);
}

const char *finding_kind_name(enum finding_kind kind)
{
    static const char *const names[FINDING_KIND_COUNT] = {
        [FINDING_PEAK] = "peak",   [FINDING_GROWTH] = "growth", [FINDING_UNFREED] = "unfreed",
        [FINDING_CHURN] = "churn", [FINDING_RSS] = "rss",       [FINDING_SPARSE] = "sparse",
        [FINDING_HUGE] = "huge",   [FINDING_UNEVEN] = "uneven", [FINDING_UNSEEN] = "unseen",
        [FINDING_OOM] = "oom"};
    return names[kind];
}
