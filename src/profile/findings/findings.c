// SPDX-License-Identifier: MIT
// findings: see findings.h.
#include "profile/findings/findings.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/format.h"
#include "profile/findings/findings_builder.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum {
    PEAK_SHARE = 10,           // a tenth of the peak
    GROWING_SITES = 5,         // call sites whose growth is judged: those with the most bytes
    GROWTH_FINDINGS = 3,       // at most
    JUDGED_RUN_MS = 1000,      // shorter runs have no growth and no unfreed memory
    UNFREED_SHARE = 10,        // a tenth of the peak
    TEMPORARY_MIN = 10000,     // allocations
    TEMPORARY_SHARE = 10,      // a tenth of all allocations
    SHORT_LIVED_MIN = 100000,  // allocations
    SHORT_LIVED_SHARE = 4,     // a quarter of all allocations
    TEMPORARY_PER_SCORE = 256, // short-lived bytes that count as one
    UNFREED_PER_SCORE = 4,
    SECONDS_OF_GROWTH = 60,
};

#define PEAK_BYTES_MIN      MIB
#define GROWTH_BYTES_MIN    (16 * KIB)
#define UNFREED_BYTES_MIN   (4 * MIB)
#define TEMPORARY_BYTES_MIN MIB

static void builder_release(struct findings_builder *builder)
{
    findings_release(&builder->out);
}

// The function with the most of a cost over all its call sites.
struct leader {
    struct costs costs;
    uint32_t group; // its largest call site; REC_NONE: there is none
    uint64_t gained;
};

static MUST_USE enum err
find_leader(const struct findings_builder *builder, enum cost cost, struct leader *out)
{
    const struct code_index *code = &builder->selection->profile->code;
    const struct row_groups *groups = &builder->out.groups;
    CLEANUP(u64_vec_release) struct u64_vec sums = {0};  // by function
    TRY(u64_vec_resize(&sums, code->functions.len + 1)); // the last: no stack
    size_t leader = code->functions.len;
    for (uint32_t pass = 0; pass < 2; pass++) {
        *out = (struct leader){.group = REC_NONE};
        uint64_t largest = 0;
        for (uint32_t i = 0; i < groups->groups.len; i++) {
            const uint32_t location = row_groups_location(groups, i);
            const size_t function = location == REC_NONE ? code->functions.len
                                                         : code->locations.items[location].function;
            const uint64_t value = costs_get(&groups->groups.items[i].costs, cost);
            if (pass == 0) {
                sums.items[function] += value;
                leader = sums.items[function] > sums.items[leader] ? function : leader;
            } else if (function == leader && value > 0) {
                costs_add(&out->costs, &groups->groups.items[i].costs);
                out->gained +=
                    builder->out.rise.gained.len > 0 ? builder->out.rise.gained.items[i] : 0;
                out->group = value > largest ? i : out->group;
                largest = max_u64(value, largest);
            }
        }
    }
    return ERR_OK;
}

static void append_rise(const struct findings_builder *builder, struct strbuf *out, uint64_t gained)
{
    const struct peak_rise *rise = &builder->out.rise;
    const struct recording *recording = &builder->selection->profile->recording;
    const uint64_t peak_bytes = recording->totals.peak_bytes;
    if (rise->trough_bytes == 0 || gained == 0 || gained > peak_bytes) {
        return;
    }
    strbuf_printf(out, " It gained %s since %s, when the heap held ", format_bytes(gained).text,
                  format_duration(rise->trough_ms * 1000000).text);
    strbuf_printf(out, "%s; without that the peak would be ",
                  format_bytes(rise->trough_bytes).text);
    strbuf_printf(out, "%s.", format_bytes(peak_bytes - gained).text);
    if (rise->mark != REC_NONE) {
        strbuf_printf(
            out, " The last mark before the peak was \"%s\".",
            profile_string(builder->selection->profile, recording->marks[rise->mark].text));
    }
}

static MUST_USE enum err find_peak(struct findings_builder *builder)
{
    const uint64_t peak_bytes = builder->summary->costs.values[COST_PEAK_BYTES];
    struct leader leader;
    if (!profile_knows(builder->selection->profile, COST_PEAK_BYTES) ||
        peak_bytes < PEAK_BYTES_MIN) {
        return ERR_OK;
    }
    TRY(find_leader(builder, COST_PEAK_BYTES, &leader));
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
                              .score = bytes,
                              .look = "-p"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " holds %s, ", format_bytes(bytes).text);
    strbuf_printf(out, "%s of the peak", format_percent(bytes, peak_bytes).text);
    strbuf_printf(out, " of %s.", format_bytes(peak_bytes).text);
    append_rise(builder, out, leader.gained);
    return finding_add(builder, &finding);
}

static MUST_USE enum err add_growth(struct findings_builder *builder,
                                    const struct row_groups *groups,
                                    const struct growth_entry *entry)
{
    const struct costs *costs = &groups->groups.items[entry->group].costs;
    const uint64_t bytes = costs_get(costs, COST_LEAKED_BYTES);
    const uint64_t slope = (uint64_t)entry->slope_bytes_per_s;
    struct finding finding = {
        .kind = FINDING_GROWTH,
        .confidence = entry->confidence,
        .location = row_groups_location(groups, entry->group),
        .bytes = bytes,
        .whole_bytes = builder->summary->costs.values[COST_LEAKED_BYTES],
        .blocks = costs_get(costs, COST_LEAKED_ALLOCATIONS),
        .bytes_per_s = entry->slope_bytes_per_s,
        .score = bytes + slope * SECONDS_OF_GROWTH,
        .look = "-l",
    };
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " grows until the end, by %s a second: ", format_bytes(slope).text);
    strbuf_printf(out, "%s ", format_bytes(bytes).text);
    strbuf_printf(out, "in %s %s were never freed.", format_count(finding.blocks).text,
                  finding.blocks == 1 ? "block" : "blocks");
    return finding_add(builder, &finding);
}

// Find unfreed memory that does not grow: all but that of the growing call sites.
static MUST_USE enum err find_unfreed(struct findings_builder *builder)
{
    const uint64_t *costs = builder->summary->costs.values;
    const uint64_t bytes = costs[COST_LEAKED_BYTES];
    struct leader leader;
    if (bytes < UNFREED_BYTES_MIN || bytes < costs[COST_PEAK_BYTES] / UNFREED_SHARE) {
        return ERR_OK;
    }
    TRY(find_leader(builder, COST_LEAKED_BYTES, &leader));
    if (leader.group == REC_NONE) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_UNFREED,
                              .confidence = CONFIDENCE_MEDIUM,
                              .location = row_groups_location(&builder->out.groups, leader.group),
                              .bytes = bytes,
                              .whole_bytes = bytes,
                              .blocks = costs[COST_LEAKED_ALLOCATIONS],
                              .score = bytes / UNFREED_PER_SCORE,
                              .look = "-l"};
    struct strbuf *out = finding_begin(builder, &finding);
    strbuf_printf(out, "%s are live at the end, and no call site with much of it grows.",
                  format_bytes(bytes).text);
    strbuf_printf(out, " The largest part, %s, was allocated by ",
                  format_bytes(costs_get(&leader.costs, COST_LEAKED_BYTES)).text);
    finding_append_site(builder, out, finding.location);
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
    TRY(growth_build(selection, ROW_GROUPS_BY_SITE_ALONE, GROWING_SITES, &growth));
    size_t count = 0;
    for (size_t i = 0; i < growth.entries.len && count < GROWTH_FINDINGS; i++) {
        const struct growth_entry *entry = &growth.entries.items[i];
        const struct costs *costs = &growth.groups.groups.items[entry->group].costs;
        if (i < GROWING_SITES && entry->class == GROWTH_GROWING &&
            entry->confidence >= CONFIDENCE_MEDIUM && entry->slope_bytes_per_s >= 1 &&
            costs_get(costs, COST_LEAKED_BYTES) >= GROWTH_BYTES_MIN) {
            TRY(add_growth(builder, &growth.groups, entry));
            count++;
        }
    }
    return count == 0 ? find_unfreed(builder) : ERR_OK;
}

static MUST_USE enum err find_temporary(struct findings_builder *builder)
{
    const uint64_t allocations = builder->summary->costs.values[COST_ALLOCATIONS];
    struct leader leader;
    if (!profile_knows(builder->selection->profile, COST_TEMPORARY)) {
        return ERR_OK;
    }
    TRY(find_leader(builder, COST_TEMPORARY, &leader));
    const uint64_t count = costs_get(&leader.costs, COST_TEMPORARY);
    if (leader.group == REC_NONE || count < TEMPORARY_MIN ||
        count < allocations / TEMPORARY_SHARE) {
        return ERR_OK;
    }
    const uint64_t bytes = costs_get(&leader.costs, COST_TEMPORARY_BYTES);
    if (bytes < TEMPORARY_BYTES_MIN) {
        return ERR_OK;
    }
    struct finding finding = {.kind = FINDING_CHURN,
                              .confidence = CONFIDENCE_HIGH,
                              .location = row_groups_location(&builder->out.groups, leader.group),
                              .bytes = bytes,
                              .whole_bytes = builder->summary->costs.values[COST_ALLOCATED_BYTES],
                              .blocks = count,
                              .score = bytes / TEMPORARY_PER_SCORE,
                              .look = "-T"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " makes %s temporary allocations, ", format_count(count).text);
    strbuf_printf(out, "%s of all allocations", format_percent(count, allocations).text);
    strbuf_printf(out, " (%s): its thread frees each with its next heap call.",
                  format_bytes(bytes).text);
    return finding_add(builder, &finding);
}

// Count the blocks of each call site that lived for less than a millisecond.
static MUST_USE enum err count_short_lives(const struct row_groups *groups, struct u64_vec *out)
{
    const struct recording *recording = &groups->profile->recording;
    TRY(u64_vec_resize(out, groups->groups.len));
    for (uint32_t group = 0; group < groups->groups.len; group++) {
        for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1];
             i++) {
            const uint32_t row = groups->rows.items[i];
            const size_t at = rec_first_entry_of_row(recording->lifetime_buckets,
                                                     recording->lifetime_bucket_count,
                                                     sizeof(recording->lifetime_buckets[0]), row);
            if (at < recording->lifetime_bucket_count &&
                recording->lifetime_buckets[at].row == row &&
                recording->lifetime_buckets[at].bucket == 0) {
                out->items[group] += recording->lifetime_buckets[at].count;
            }
        }
    }
    return ERR_OK;
}

// Find a call site whose blocks are freed soon, if not by the next heap call.
static MUST_USE enum err find_short_lived(struct findings_builder *builder)
{
    const uint64_t allocations = builder->summary->costs.values[COST_ALLOCATIONS];
    const struct row_groups *groups = &builder->out.groups;
    CLEANUP(u64_vec_release) struct u64_vec counts = {0};
    TRY(count_short_lives(groups, &counts));
    uint32_t most = 0;
    for (uint32_t i = 1; i < counts.len; i++) {
        most = counts.items[i] > counts.items[most] ? i : most;
    }
    const uint64_t count = counts.len > 0 ? counts.items[most] : 0;
    if (count < SHORT_LIVED_MIN || count < allocations / SHORT_LIVED_SHARE) {
        return ERR_OK;
    }
    const struct costs *costs = &groups->groups.items[most].costs;
    const uint64_t bytes = costs_get(costs, COST_ALLOCATED_BYTES);
    struct finding finding = {.kind = FINDING_CHURN,
                              .confidence = CONFIDENCE_HIGH,
                              .location = row_groups_location(groups, most),
                              .bytes = bytes,
                              .whole_bytes = builder->summary->costs.values[COST_ALLOCATED_BYTES],
                              .blocks = count,
                              .score = bytes / TEMPORARY_PER_SCORE,
                              .look = "--histogram"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " makes %s allocations that live for less than a millisecond, ",
                  format_count(count).text);
    strbuf_printf(out, "%s of all allocations.", format_percent(count, allocations).text);
    return finding_add(builder, &finding);
}

static MUST_USE enum err find_churn(struct findings_builder *builder)
{
    const size_t before = builder->out.items.len;
    TRY(find_temporary(builder));
    return builder->out.items.len == before ? find_short_lived(builder) : ERR_OK;
}

static int compare(const void *left, const void *right)
{
    const struct finding *a = left;
    const struct finding *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

// What concerns processes rather than call stacks, and the history of the whole heap.
static MUST_USE enum err find_of_everything(struct findings_builder *builder)
{
    TRY(peak_rise_build(&builder->out.groups, &builder->out.rise));
    return findings_add_memory(builder);
}

enum err findings_build(const struct selection *selection,
                        const struct summary *summary,
                        const struct rss_breakdown *breakdown,
                        struct findings *out)
{
    CLEANUP(builder_release)
    struct findings_builder builder = {
        .selection = selection, .summary = summary, .breakdown = breakdown};
    if (!selection->has_range) {
        TRY(row_groups_build(selection, ROW_GROUPS_BY_SITE_ALONE, &builder.out.groups));
        TRY(selection->is_everything ? find_of_everything(&builder) : ERR_OK);
        TRY(find_peak(&builder));
        TRY(find_growth(&builder));
        TRY(find_churn(&builder));
        TRY(findings_add_uneven(&builder));
    }
    TRY(strbuf_result(&builder.out.texts));
    struct finding_vec *items = &builder.out.items;
    if (items->len > 1) {
        qsort(items->items, items->len, sizeof(items->items[0]), compare);
    }
    *out = builder.out;
    builder.out = (struct findings){0};
    return ERR_OK;
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
        [FINDING_PEAK] = "peak",     [FINDING_GROWTH] = "growth", [FINDING_UNFREED] = "unfreed",
        [FINDING_CHURN] = "churn",   [FINDING_RSS] = "rss",       [FINDING_SPARSE] = "sparse",
        [FINDING_UNEVEN] = "uneven", [FINDING_UNSEEN] = "unseen"};
    return names[kind];
}
