// SPDX-License-Identifier: MIT
#include "profile/compare/diff_verdict.h"

#include "base/compiler.h"
#include "profile/compare/diff_format.h"
#include "profile/model/function_name.h"
#include "profile/names/distinct_name.h"

const enum cost diff_judged_costs[DIFF_JUDGED_COSTS] = {COST_PEAK_BYTES, COST_ALLOCATIONS,
                                                        COST_TEMPORARY, COST_LEAKED_BYTES};

static MUST_USE enum err
judge_cost(const struct diff *diff, enum cost cost, double threshold, struct diff_finding_vec *out)
{
    struct diff_finding whole = {
        .cost = cost, .entry = REC_NONE, .change = diff_total_change(diff, cost)};
    if (diff_is_beyond(diff, cost, &whole.change, threshold)) {
        TRY(diff_finding_vec_push(out, whole));
    }
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(diff_ranked(diff, cost, &ids));
    for (size_t i = 0; i < ids.len; i++) {
        struct diff_finding part = {.cost = cost,
                                    .entry = ids.items[i],
                                    .change = diff_entry_change(diff, ids.items[i], cost)};
        if (diff_is_beyond(diff, cost, &part.change, threshold)) {
            TRY(diff_finding_vec_push(out, part));
        }
    }
    return ERR_OK;
}

enum err diff_judge(const struct diff *diff,
                    const enum cost *costs,
                    size_t cost_count,
                    double threshold,
                    struct diff_finding_vec *out)
{
    CLEANUP(diff_finding_vec_release) struct diff_finding_vec findings = {0};
    for (size_t i = 0; i < cost_count; i++) {
        TRY(judge_cost(diff, costs[i], threshold, &findings));
    }
    *out = TAKE(findings);
    return ERR_OK;
}

static const char *name_of(const struct diff *diff, size_t entry)
{
    const uint32_t function = diff->entries.items[entry].function;
    return function != REC_NONE ? code_union_name(diff->code, function) : "(no stack)";
}

// Append the name of an entry's function, with what differs where its short form is another's, too.
static void append_function(const struct diff *diff, uint32_t entry, struct strbuf *out)
{
    struct name_peers peers = name_peers_of(name_of(diff, entry));
    CLEANUP(strbuf_release) struct strbuf shortest = {0};
    name_append(&shortest, peers.name, NAME_NO_ANONYMOUS);
    for (size_t i = 0; i < diff->entries.len; i++) {
        if (name_has_short_form(name_of(diff, i), strbuf_text(&shortest))) {
            name_peers_add(&peers, name_of(diff, i));
        }
    }
    name_append_distinct(out, &peers);
    out->failed |= shortest.failed;
}

bool diff_has_grown(const struct diff_finding_vec *findings)
{
    for (size_t i = 0; i < findings->len; i++) {
        if (findings->items[i].entry == REC_NONE) {
            return true;
        }
    }
    return false;
}

// Append the first finding of each cost whose first finding is the whole, or is a function.
static void append_findings(const struct diff *diff,
                            const struct diff_finding_vec *findings,
                            bool of_whole,
                            const char *begin,
                            struct strbuf *out)
{
    for (size_t i = 0; i < findings->len; i++) {
        const struct diff_finding *finding = &findings->items[i];
        const bool is_first = i == 0 || findings->items[i - 1].cost != finding->cost;
        if (!is_first || (finding->entry == REC_NONE) != of_whole) {
            continue;
        }
        strbuf_printf(out, "%s %s", begin, cost_get_info(finding->cost)->option);
        begin = ",";
        if (!of_whole) {
            strbuf_append_text(out, " of ");
            append_function(diff, finding->entry, out);
        }
        strbuf_printf(out, " %s%s (%s)",
                      diff_format_change(finding->cost, finding->change.change).text,
                      diff_format_error(finding->cost, finding->change.change_error).text,
                      diff_format_ratio(finding->change).text);
    }
}

static void append_renames(const struct code_union *code, struct strbuf *out)
{
    enum {
        NAMED = 2 // the others are counted
    };
    const struct code_rename_vec *renames = &code->renames;
    for (size_t i = 0; i < renames->len && i < NAMED; i++) {
        strbuf_append_text(out, i == 0 ? "; renamed: " : ", ");
        name_append_in_sentence(out, code_union_name(code, renames->items[i].from));
        strbuf_append_text(out, " to ");
        name_append_in_sentence(out, code_union_name(code, renames->items[i].to));
    }
    if (renames->len > NAMED) {
        strbuf_printf(out, " and %zu more", renames->len - NAMED);
    }
}

void diff_verdict_append(const struct diff *diff,
                         const struct diff_verdict *verdict,
                         struct strbuf *out)
{
    const bool has_grown = diff_has_grown(verdict->findings);
    const bool has_any = verdict->findings->len > 0;
    strbuf_printf(out, "%sgrew beyond %.10g%%",
                  has_grown ? ""
                  : has_any ? "no total "
                            : "nothing ",
                  (double)verdict->threshold / 100);
    append_findings(diff, verdict->findings, true, ":", out);
    append_findings(diff, verdict->findings, false, "; in one function:", out);
    const char *begin = "; not in both recordings:";
    for (size_t i = 0; i < verdict->cost_count; i++) {
        if (!diff_knows(diff, verdict->costs[i])) {
            strbuf_printf(out, "%s %s", begin, cost_get_info(verdict->costs[i])->option);
            begin = ",";
        }
    }
    append_renames(diff->code, out);
}
