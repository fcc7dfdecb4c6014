// SPDX-License-Identifier: MIT
// findings_churn: work that blocks cause without staying: they die young, or grow step by step.
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/format.h"
#include "profile/findings/findings_builder.h"

#define MIB (UINT64_C(1) << 20)

enum {
    TEMPORARY_MIN = 10000,    // allocations
    TEMPORARY_SHARE = 10,     // a tenth of all allocations
    SHORT_LIVED_MIN = 100000, // allocations
    SHORT_LIVED_SHARE = 4,    // a quarter of all allocations
    STEPS_MOVED_PER_BYTE = 16,
    STEPS_SHARE = 10,      // a tenth of all allocated bytes
    BYTES_PER_SCORE = 256, // short-lived or moved bytes that count as one
};

#define TEMPORARY_BYTES_MIN MIB
#define STEPS_BYTES_MIN     (16 * MIB)

DEFINE_VEC(realloc_vec, struct rec_realloc);
DEFINE_VEC(bucket_vec, struct rec_bucket);

static MUST_USE enum err find_temporary(struct findings_builder *builder)
{
    const uint64_t allocations = builder->summary->costs.values[COST_ALLOCATIONS];
    struct finding_leader leader;
    if (!profile_knows(builder->selection->profile, COST_TEMPORARY)) {
        return ERR_OK;
    }
    TRY(finding_leader(builder, COST_TEMPORARY, NULL, &leader));
    const uint64_t count = costs_get(&leader.costs, COST_TEMPORARY);
    if (leader.group == REC_NONE || count < TEMPORARY_MIN ||
        count < allocations / TEMPORARY_SHARE) {
        return ERR_OK;
    }
    const struct costs *whole = &builder->summary->costs;
    const uint64_t bytes = costs_get(&leader.costs, COST_TEMPORARY_BYTES);
    if (bytes < TEMPORARY_BYTES_MIN) {
        return ERR_OK;
    }
    struct finding finding = {
        .kind = FINDING_CHURN,
        .confidence = CONFIDENCE_HIGH,
        .location = row_groups_location(&builder->out.groups, leader.group),
        .bytes = bytes,
        .whole_bytes = costs_get(whole, COST_ALLOCATED_BYTES),
        .blocks = count,
        .bytes_error = finding_error(builder, &leader.costs, COST_TEMPORARY_BYTES),
        .whole_bytes_error = finding_error(builder, whole, COST_ALLOCATED_BYTES),
        .blocks_error = finding_error(builder, &leader.costs, COST_TEMPORARY),
        .score = bytes / BYTES_PER_SCORE,
        .look = "-T"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " makes %s%s, ",
                  format_things(count, "temporary allocation", "temporary allocations").text,
                  sampling_format_error(count, finding.blocks_error).text);
    strbuf_printf(out, "%s of all allocations", format_percent(count, allocations).text);
    strbuf_printf(out, " (%s): its thread frees each with its next heap call.",
                  finding_format(builder, &leader.costs, COST_TEMPORARY_BYTES).text);
    return finding_add(builder, &finding);
}

// Add the blocks of each call site that lived for less than a millisecond.
static MUST_USE enum err sum_short_lives(const struct row_groups *groups, struct bucket_vec *out)
{
    const struct recording *recording = &groups->profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec starts = {0};
    TRY(bucket_vec_resize(out, groups->groups.len));
    TRY(rec_row_starts(recording->lifetime_buckets, recording->lifetime_bucket_count,
                       sizeof(recording->lifetime_buckets[0]), recording->row_count, &starts));
    for (uint32_t group = 0; group < groups->groups.len; group++) {
        for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1];
             i++) {
            const uint32_t row = groups->rows.items[i];
            for (uint32_t at = starts.items[row]; at < starts.items[row + 1]; at++) {
                const struct rec_bucket *bucket = &recording->lifetime_buckets[at];
                out->items[group].count += bucket->bucket == 0 ? bucket->count : 0;
                out->items[group].bytes += bucket->bucket == 0 ? bucket->bytes : 0;
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
    CLEANUP(bucket_vec_release) struct bucket_vec sums = {0};
    TRY(sum_short_lives(groups, &sums));
    uint32_t most = 0;
    for (uint32_t i = 1; i < sums.len; i++) {
        most = sums.items[i].count > sums.items[most].count ? i : most;
    }
    const uint64_t count = sums.len > 0 ? sums.items[most].count : 0;
    if (count < SHORT_LIVED_MIN || count < allocations / SHORT_LIVED_SHARE) {
        return ERR_OK;
    }
    const uint64_t bytes = sums.items[most].bytes;
    const struct costs *whole = &builder->summary->costs;
    const struct costs short_lived = {
        .values = {[COST_ALLOCATIONS] = count, [COST_ALLOCATED_BYTES] = bytes},
        .sizes = groups->groups.items[most].costs.sizes};
    struct finding finding = {
        .kind = FINDING_CHURN,
        .confidence = CONFIDENCE_HIGH,
        .location = row_groups_location(groups, most),
        .bytes = bytes,
        .whole_bytes = costs_get(whole, COST_ALLOCATED_BYTES),
        .blocks = count,
        .bytes_error = finding_error(builder, &short_lived, COST_ALLOCATED_BYTES),
        .whole_bytes_error = finding_error(builder, whole, COST_ALLOCATED_BYTES),
        .blocks_error = finding_error(builder, &short_lived, COST_ALLOCATIONS),
        .score = bytes / BYTES_PER_SCORE,
        .look = "--histogram"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " makes %s%s that %s for less than a millisecond, ",
                  format_things(count, "allocation", "allocations").text,
                  sampling_format_error(count, finding.blocks_error).text,
                  count == 1 ? "lives" : "live");
    strbuf_printf(out, "%s of all allocations", format_percent(count, allocations).text);
    strbuf_printf(out, " (%s).", finding_format(builder, &short_lived, COST_ALLOCATED_BYTES).text);
    return finding_add(builder, &finding);
}

// Add what the reallocs of each call site did.
static MUST_USE enum err sum_reallocs(const struct row_groups *groups, struct realloc_vec *out)
{
    const struct recording *recording = &groups->profile->recording;
    TRY(realloc_vec_resize(out, groups->groups.len));
    for (uint32_t group = 0; group < groups->groups.len; group++) {
        struct rec_realloc *sum = &out->items[group];
        for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1];
             i++) {
            const uint32_t row = groups->rows.items[i];
            FOR_ENTRIES_OF_ROW (entry, recording->reallocs, recording->realloc_count, row) {
                sum->reallocs += entry->reallocs;
                sum->moved_bytes += entry->moved_bytes;
                sum->grown_bytes += entry->grown_bytes;
                sum->largest_bytes = max_u64(sum->largest_bytes, entry->largest_bytes);
            }
        }
    }
    return ERR_OK;
}

// Whether blocks grow by small steps. A block that doubles moves one byte for each byte that it
// gains, one that grows by an eighth moves 8, and one that grows by a constant moves the more the
// larger it is.
static bool is_stepwise(const struct rec_realloc *sum)
{
    return sum->moved_bytes / STEPS_MOVED_PER_BYTE >= sum->grown_bytes;
}

// Find the call site whose reallocs move the most for growth in small steps.
static MUST_USE enum err find_steps(struct findings_builder *builder)
{
    const struct row_groups *groups = &builder->out.groups;
    const uint64_t allocated_bytes = builder->summary->costs.values[COST_ALLOCATED_BYTES];
    CLEANUP(realloc_vec_release) struct realloc_vec sums = {0};
    TRY(sum_reallocs(groups, &sums));
    const struct rec_realloc *most = NULL;
    for (uint32_t i = 0; i < sums.len; i++) {
        const struct rec_realloc *sum = &sums.items[i];
        if (is_stepwise(sum) && (most == NULL || sum->moved_bytes > most->moved_bytes)) {
            most = sum;
        }
    }
    if (most == NULL || most->moved_bytes < STEPS_BYTES_MIN ||
        most->moved_bytes < allocated_bytes / STEPS_SHARE) {
        return ERR_OK;
    }
    const uint32_t group = (uint32_t)(most - sums.items);
    struct finding finding = {.kind = FINDING_CHURN,
                              .confidence = CONFIDENCE_HIGH,
                              .location = row_groups_location(groups, group),
                              .bytes = most->moved_bytes,
                              .whole_bytes = allocated_bytes,
                              .blocks = most->reallocs,
                              .is_lower_limit = builder->sampling.is_sampled,
                              .score = most->moved_bytes / BYTES_PER_SCORE,
                              .look = "-a"};
    struct strbuf *out = finding_begin(builder, &finding);
    finding_append_site(builder, out, finding.location);
    strbuf_printf(out, " grows blocks step by step: %s ",
                  format_things(most->reallocs, "realloc", "reallocs").text);
    strbuf_printf(out, "by %s on average, ", format_bytes(most->grown_bytes / most->reallocs).text);
    strbuf_printf(out, "up to %s, ", format_bytes(most->largest_bytes).text);
    strbuf_printf(out, "moved up to %s. Doubling the size ", format_bytes(most->moved_bytes).text);
    strbuf_printf(out, "would move about %s.", format_bytes(most->grown_bytes).text);
    if (finding.is_lower_limit) {
        strbuf_append_text(out, " These are lower limits: only recorded blocks are counted.");
    }
    return finding_add(builder, &finding);
}

enum err findings_add_churn(struct findings_builder *builder)
{
    const size_t before = builder->out.items.len;
    TRY(find_temporary(builder));
    TRY(builder->out.items.len == before ? find_short_lived(builder) : ERR_OK);
    return find_steps(builder);
}
