// SPDX-License-Identifier: MIT
// findings: see findings.h.
#include "profile/findings/findings.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/model/function_name.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/unseen.h"

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
    TEMPORARY_PER_SCORE = 256, // short-lived bytes that count as one
    UNFREED_PER_SCORE = 4,
    SECONDS_OF_GROWTH = 60,
};

#define PEAK_BYTES_MIN      MIB
#define GROWTH_BYTES_MIN    (16 * KIB)
#define UNFREED_BYTES_MIN   MIB
#define TEMPORARY_BYTES_MIN MIB
#define RSS_BYTES_MIN       (8 * MIB)

struct builder {
    const struct selection *selection;
    const struct summary *summary;
    struct findings out; // owned until returned
};

static void builder_release(struct builder *builder)
{
    findings_release(&builder->out);
}

static const struct profile *profile_of(const struct builder *builder)
{
    return builder->selection->profile;
}

// Begin the sentence of the next finding.
static struct strbuf *begin(struct builder *builder, struct finding *finding)
{
    finding->sentence = builder->out.texts.len;
    return &builder->out.texts;
}

static MUST_USE enum err add(struct builder *builder, const struct finding *finding)
{
    strbuf_append_char(&builder->out.texts, '\0');
    return finding_vec_push(&builder->out.items, *finding);
}

// Append a name; the middle of a long one is omitted, because a sentence must be readable.
static void append_name(struct strbuf *out, const char *function)
{
    enum {
        NAME_BYTES = 56
    };
    CLEANUP(strbuf_release) struct strbuf name = {0};
    name_append(&name, function, NAME_NO_TEMPLATES);
    const char *text = strbuf_text(&name);
    if (name.len <= NAME_BYTES) {
        strbuf_append_text(out, text);
        return;
    }
    size_t head = NAME_BYTES / 2;
    size_t tail = name.len - NAME_BYTES / 2;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80) { // inside a UTF-8 character
        head--;
    }
    while (tail < name.len && ((unsigned char)text[tail] & 0xc0) == 0x80) {
        tail++;
    }
    strbuf_append(out, text, head);
    strbuf_append_text(out, "...");
    strbuf_append_text(out, text + tail);
}

// Append "load (app.c:12)".
static void append_site(const struct builder *builder, struct strbuf *out, uint32_t location)
{
    const struct profile *profile = profile_of(builder);
    if (location == REC_NONE) {
        strbuf_append_text(out, "code without a stack");
        return;
    }
    append_name(out, profile_location_function(profile, location));
    const char *file = profile_location_file(profile, location);
    const uint32_t line = profile_location_get(profile, location)->line;
    if (file[0] != '\0') {
        strbuf_append_text(out, " (");
        append_name(out, path_file_name(file));
        strbuf_printf(out, line > 0 ? ":%" PRIu32 ")" : ")", line);
    }
}

// The function with the most of a cost over all its call sites.
struct leader {
    struct costs costs;
    uint32_t group; // its largest call site; REC_NONE: there is none
    uint64_t gained;
};

static MUST_USE enum err
find_leader(const struct builder *builder, enum cost cost, struct leader *out)
{
    const struct code_index *code = &profile_of(builder)->code;
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

static void append_rise(const struct builder *builder, struct strbuf *out, uint64_t gained)
{
    const struct peak_rise *rise = &builder->out.rise;
    const struct recording *recording = &profile_of(builder)->recording;
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
        strbuf_printf(out, " The last mark before the peak was \"%s\".",
                      profile_string(profile_of(builder), recording->marks[rise->mark].text));
    }
}

static MUST_USE enum err find_peak(struct builder *builder)
{
    const uint64_t peak_bytes = builder->summary->costs.values[COST_PEAK_BYTES];
    struct leader leader;
    if (!profile_knows(profile_of(builder), COST_PEAK_BYTES) || peak_bytes < PEAK_BYTES_MIN) {
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
    struct strbuf *out = begin(builder, &finding);
    append_site(builder, out, finding.location);
    strbuf_printf(out, " holds %s, ", format_bytes(bytes).text);
    strbuf_printf(out, "%s of the peak", format_percent(bytes, peak_bytes).text);
    strbuf_printf(out, " of %s.", format_bytes(peak_bytes).text);
    append_rise(builder, out, leader.gained);
    return add(builder, &finding);
}

static MUST_USE enum err add_growth(struct builder *builder,
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
    struct strbuf *out = begin(builder, &finding);
    append_site(builder, out, finding.location);
    strbuf_printf(out, " grows until the end, by %s a second: ", format_bytes(slope).text);
    strbuf_printf(out, "%s ", format_bytes(bytes).text);
    strbuf_printf(out, "in %s %s were never freed.", format_count(finding.blocks).text,
                  finding.blocks == 1 ? "block" : "blocks");
    return add(builder, &finding);
}

// Find unfreed memory that does not grow: all but that of the growing call sites.
static MUST_USE enum err find_unfreed(struct builder *builder)
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
    struct strbuf *out = begin(builder, &finding);
    strbuf_printf(out, "%s are live at the end, and no call site with much of it grows.",
                  format_bytes(bytes).text);
    strbuf_printf(out, " The largest part, %s, was allocated by ",
                  format_bytes(costs_get(&leader.costs, COST_LEAKED_BYTES)).text);
    append_site(builder, out, finding.location);
    strbuf_append_char(out, '.');
    return add(builder, &finding);
}

static MUST_USE enum err find_growth(struct builder *builder)
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

static MUST_USE enum err find_churn(struct builder *builder)
{
    const uint64_t allocations = builder->summary->costs.values[COST_ALLOCATIONS];
    struct leader leader;
    if (!profile_knows(profile_of(builder), COST_TEMPORARY)) {
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
    struct strbuf *out = begin(builder, &finding);
    append_site(builder, out, finding.location);
    strbuf_printf(out, " makes %s temporary allocations, ", format_count(count).text);
    strbuf_printf(out, "%s of all allocations", format_percent(count, allocations).text);
    strbuf_printf(out, " (%s): its thread frees each with its next heap call.",
                  format_bytes(bytes).text);
    return add(builder, &finding);
}

// The function that mapped most resident memory of a kind, over all its call sites.
struct mapper {
    uint32_t location; // of its largest mapping; REC_NONE: unknown
    uint64_t bytes;
};

static MUST_USE enum err find_mapper(const struct profile *profile,
                                     const struct rss_breakdown_split *split,
                                     uint32_t kind,
                                     struct mapper *out)
{
    CLEANUP(u64_vec_release) struct u64_vec sums = {0}; // by function
    TRY(u64_vec_resize(&sums, profile->code.functions.len));
    *out = (struct mapper){.location = REC_NONE};
    for (size_t i = 0; i < split->parts.len; i++) {
        const struct rss_breakdown_part *part = &split->parts.items[i];
        const uint32_t location = part->kind == kind && part->node != REC_NONE
                                      ? profile_call_site(profile, part->node).location
                                      : REC_NONE;
        if (location != REC_NONE) {
            uint64_t *sum = &sums.items[profile->code.locations.items[location].function];
            *sum += part->rss_bytes;
            *out = *sum > out->bytes ? (struct mapper){.location = location, .bytes = *sum} : *out;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err find_rss(struct builder *builder)
{
    static const uint32_t kinds[] = {REC_PART_ROUNDING, REC_PART_KEPT,   REC_PART_MAPPED,
                                     REC_PART_STACK,    REC_PART_SHARED, REC_PART_REST};
    CLEANUP(rss_breakdown_release) struct rss_breakdown breakdown = {0};
    TRY(rss_breakdown_build(profile_of(builder), 0, &breakdown));
    const struct rss_breakdown_split *split = rss_breakdown_peak(&breakdown);
    uint64_t other_bytes = 0;
    uint32_t largest = REC_PART_REST;
    for (size_t i = 0; split != NULL && i < ARRAY_LEN(kinds); i++) {
        other_bytes += split->bytes[kinds[i]];
        largest = split->bytes[kinds[i]] > split->bytes[largest] ? kinds[i] : largest;
    }
    if (split == NULL || other_bytes < RSS_BYTES_MIN || other_bytes < split->bytes[REC_PART_LIVE]) {
        return ERR_OK;
    }
    struct mapper mapper;
    TRY(find_mapper(profile_of(builder), split, largest, &mapper));
    struct finding finding = {
        .kind = FINDING_RSS,
        .confidence = rss_breakdown_is_estimate(split, largest) ? CONFIDENCE_LOW : CONFIDENCE_HIGH,
        .location = mapper.location,
        .bytes = split->bytes[largest],
        .whole_bytes = split->rss_bytes,
        .score = other_bytes,
        .look = "-r"};
    struct strbuf *out = begin(builder, &finding);
    strbuf_printf(out, "RSS was %s, of which live heap blocks took ",
                  format_bytes(split->rss_bytes).text);
    strbuf_printf(out, "%s. The largest other part, ",
                  format_bytes(split->bytes[REC_PART_LIVE]).text);
    strbuf_printf(out, "%s, is \"%s\"", format_bytes(finding.bytes).text,
                  rss_breakdown_kind(largest)->phrase);
    if (finding.location != REC_NONE) {
        strbuf_append_text(out, "; ");
        append_site(builder, out, finding.location);
        strbuf_printf(out, " mapped %s of it", format_bytes(mapper.bytes).text);
    }
    strbuf_append_char(out, '.');
    return add(builder, &finding);
}

static MUST_USE enum err find_unseen(struct builder *builder)
{
    static const char *const reasons[] = {
        [UNSEEN_MALLOC] = "it has its own malloc built in",
        [UNSEEN_GO] = "it is a Go program",
        [UNSEEN_MAPPED] = "it mapped most of its anonymous memory itself",
    };
    const struct profile *profile = profile_of(builder);
    CLEANUP(unseen_vec_release) struct unseen_vec unseen = {0};
    TRY(unseen_collect(profile, &unseen));
    const struct unseen *most = NULL;
    for (size_t i = 0; i < unseen.len; i++) {
        const struct unseen *here = &unseen.items[i];
        most = most == NULL || here->mapped_bytes > most->mapped_bytes ? here : most;
    }
    if (most == NULL || (most->kind == UNSEEN_MAPPED && builder->out.items.len > 0)) {
        return ERR_OK; // the finding on RSS says who mapped the memory
    }
    struct finding finding = {
        .kind = FINDING_UNSEEN,
        .confidence = most->kind == UNSEEN_MAPPED ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH,
        .location =
            most->node != REC_NONE ? profile_call_site(profile, most->node).location : REC_NONE,
        .bytes = most->mapped_bytes,
        .whole_bytes = most->anonymous_bytes,
        .score = most->mapped_bytes,
        .look = "-r",
    };
    const struct rec_process *process = &profile->recording.processes[most->process];
    struct strbuf *out = begin(builder, &finding);
    strbuf_printf(out, "cairn does not see most of the heap of %s: %s.",
                  path_file_name(profile_string(profile, process->executable)),
                  reasons[most->kind]);
    return add(builder, &finding);
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
static MUST_USE enum err find_of_everything(struct builder *builder)
{
    TRY(peak_rise_build(&builder->out.groups, &builder->out.rise));
    TRY(find_rss(builder));
    return find_unseen(builder);
}

enum err findings_build(const struct selection *selection,
                        const struct summary *summary,
                        struct findings *out)
{
    CLEANUP(builder_release)
    struct builder builder = {.selection = selection, .summary = summary};
    if (!selection->has_range) {
        TRY(row_groups_build(selection, ROW_GROUPS_BY_SITE_ALONE, &builder.out.groups));
        TRY(selection->is_everything ? find_of_everything(&builder) : ERR_OK);
        TRY(find_peak(&builder));
        TRY(find_growth(&builder));
        TRY(find_churn(&builder));
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
        [FINDING_PEAK] = "peak",   [FINDING_GROWTH] = "growth", [FINDING_UNFREED] = "unfreed",
        [FINDING_CHURN] = "churn", [FINDING_RSS] = "rss",       [FINDING_UNSEEN] = "unseen"};
    return names[kind];
}
