// SPDX-License-Identifier: MIT
#include "profile/findings/findings_builder.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "profile/model/function_name.h"
#include "profile/names/distinct_name.h"

// Begin the sentence of the next finding.
struct strbuf *finding_begin(struct findings_builder *builder, struct finding *finding)
{
    finding->sentence = builder->out.texts.len;
    return &builder->out.texts;
}

uint64_t
finding_error(const struct findings_builder *builder, const struct costs *costs, enum cost cost)
{
    const struct costs errors = sampling_errors(&builder->sampling, costs);
    return costs_get(&errors, cost);
}

static struct human with_error(struct human figure, uint64_t value, uint64_t error)
{
    struct human out;
    (void)snprintf(out.text, sizeof(out.text), "%.38s%.9s", figure.text, // fits
                   sampling_format_error(value, error).text);
    return out;
}

struct human
finding_format(const struct findings_builder *builder, const struct costs *costs, enum cost cost)
{
    const uint64_t value = costs_get(costs, cost);
    return with_error(cost_get_info(cost)->unit == COST_UNIT_BYTES ? format_bytes(value)
                                                                   : format_count(value),
                      value, finding_error(builder, costs, cost));
}

struct human
finding_format_gain(const struct findings_builder *builder, uint64_t bytes, uint64_t sum_bytes)
{
    return with_error(format_bytes(bytes), bytes,
                      sampling_error_of_bytes(&builder->sampling, sum_bytes));
}

struct human finding_format_bytes(const struct findings_builder *builder, uint64_t bytes)
{
    return finding_format_gain(builder, bytes, bytes);
}

enum err finding_add(struct findings_builder *builder, const struct finding *finding)
{
    strbuf_append_char(&builder->out.texts, '\0');
    return finding_vec_push(&builder->out.items, *finding);
}

// Append the name of a call site's function. Where its short form is that of others that allocate,
// too, the figure would seem to be theirs as well: then append what differs.
static void
append_function(const struct findings_builder *builder, struct strbuf *out, uint32_t location)
{
    const struct profile *profile = builder->selection->profile;
    const struct row_groups *groups = &builder->out.groups;
    struct name_peers peers = name_peers_of(profile_location_function(profile, location));
    CLEANUP(strbuf_release) struct strbuf shortest = {0};
    name_append(&shortest, peers.name, NAME_NO_ANONYMOUS);
    for (uint32_t i = 0; i < groups->groups.len; i++) {
        const uint32_t other = row_groups_location(groups, i);
        const char *name = other == REC_NONE ? "" : profile_location_function(profile, other);
        if (name_has_short_form(name, strbuf_text(&shortest))) {
            name_peers_add(&peers, name);
        }
    }
    name_append_distinct(out, &peers);
    out->failed |= shortest.failed;
}

static void append_lines(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location,
                         uint32_t more)
{
    const struct profile *profile = builder->selection->profile;
    if (location == REC_NONE) {
        strbuf_append_text(out, "code without a stack");
        return;
    }
    append_function(builder, out, location);
    const char *file = profile_location_file(profile, location);
    const uint32_t line = profile_location_get(profile, location)->line;
    if (file[0] == '\0') {
        return;
    }
    strbuf_append_text(out, " (");
    name_append_in_sentence(out, path_file_name(file));
    if (line > 0) {
        strbuf_printf(out, ":%" PRIu32, line);
    }
    if (line > 0 && more > 0) {
        strbuf_printf(out, " and %s", format_things(more, "more line", "more lines").text);
    }
    strbuf_append_char(out, ')');
}

void finding_append_site(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location)
{
    append_lines(builder, out, location, 0);
}

void finding_append_moment(struct strbuf *out, uint64_t time_ms)
{
    if (time_ms > 0) {
        strbuf_printf(out, " after %s", format_duration(time_ms * NS_PER_MS).text);
    }
}

void finding_append_leader(const struct findings_builder *builder,
                           struct strbuf *out,
                           const struct finding_leader *leader)
{
    append_lines(builder, out, row_groups_location(&builder->out.groups, leader->group),
                 leader->sites - 1);
}

// Return the function of a call site. What has no stack is one more.
static size_t function_of(const struct findings_builder *builder, uint32_t group)
{
    const struct code_index *code = &builder->selection->profile->code;
    const uint32_t location = row_groups_location(&builder->out.groups, group);
    return location == REC_NONE ? code->functions.len
                                : profile_function_at(builder->selection->profile, location);
}

// Find the function with the largest sum of `values`, which are by group.
static MUST_USE enum err leader_of(const struct findings_builder *builder,
                                   const struct u64_vec *values,
                                   struct finding_leader *out)
{
    const struct code_index *code = &builder->selection->profile->code;
    const struct row_groups *groups = &builder->out.groups;
    CLEANUP(u64_vec_release) struct u64_vec sums = {0};  // by function
    TRY(u64_vec_resize(&sums, code->functions.len + 1)); // the last: no stack
    size_t leader = code->functions.len;
    // The first pass finds the function, the second adds up its call sites.
    for (uint32_t pass = 0; pass < 2; pass++) {
        *out = (struct finding_leader){.group = REC_NONE};
        uint64_t largest = 0;
        for (uint32_t i = 0; i < values->len; i++) {
            const size_t function = function_of(builder, i);
            const uint64_t value = values->items[i];
            if (pass == 0) {
                sums.items[function] += value;
                leader = sums.items[function] > sums.items[leader] ? function : leader;
            } else if (function == leader && value > 0) {
                costs_add(&out->costs, &groups->groups.items[i].costs);
                out->sites++;
                out->gained +=
                    builder->out.rise.gained.len > 0 ? builder->out.rise.gained.items[i] : 0;
                out->group = value > largest ? i : out->group;
                largest = max_u64(value, largest);
            }
        }
    }
    return ERR_OK;
}

enum err finding_leader(const struct findings_builder *builder,
                        enum cost cost,
                        const struct finding_leader *except,
                        struct finding_leader *out)
{
    const struct row_group_vec *groups = &builder->out.groups.groups;
    CLEANUP(u64_vec_release) struct u64_vec values = {0};
    TRY(u64_vec_resize(&values, groups->len));
    for (uint32_t i = 0; i < groups->len; i++) {
        const bool counts =
            except == NULL || function_of(builder, i) != function_of(builder, except->group);
        values.items[i] = counts ? costs_get(&groups->items[i].costs, cost) : 0;
    }
    return leader_of(builder, &values, out);
}

enum err finding_gainer(const struct findings_builder *builder, struct finding_leader *out)
{
    return leader_of(builder, &builder->out.rise.gained, out);
}
