// SPDX-License-Identifier: MIT
// findings_builder: findings in the making: what findings.c and the files findings_* share.
//
// A finding begins with its sentence, which is written to builder->out.texts, and is added when the
// sentence is complete. Context: H.
#pragma once

#include "host/text/format.h"
#include "profile/accuracy/sampling.h"
#include "profile/findings/findings.h"

struct findings_builder {
    const struct selection *selection;     // borrowed
    const struct summary *summary;         // borrowed
    const struct rss_breakdown *breakdown; // borrowed
    struct sampling sampling;
    struct findings out; // owned until returned
};

// Begin the sentence of the next finding.
struct strbuf *finding_begin(struct findings_builder *builder, struct finding *finding);

// The error of one of `costs`.
uint64_t
finding_error(const struct findings_builder *builder, const struct costs *costs, enum cost cost);

// Format a figure for a sentence, with its error if it is an estimate: "50.0 MiB ±21%". The second
// is for a sum of bytes that is not a cost.
struct human
finding_format(const struct findings_builder *builder, const struct costs *costs, enum cost cost);
struct human finding_format_bytes(const struct findings_builder *builder, uint64_t bytes);

// Format such a sum whose error is that of more bytes, because blocks were taken from it.
struct human
finding_format_gain(const struct findings_builder *builder, uint64_t bytes, uint64_t sum_bytes);

enum err finding_add(struct findings_builder *builder, const struct finding *finding) MUST_USE;

// The function with the most of a cost over all its call sites.
struct finding_leader {
    struct costs costs;
    uint32_t group; // its largest call site; REC_NONE: there is none
    uint32_t sites; // its call sites with the cost
    uint64_t gained;
};

// Find that function for `cost`; `except` is passed over, NULL: none. ERR_NO_MEMORY.
enum err finding_leader(const struct findings_builder *builder,
                        enum cost cost,
                        const struct finding_leader *except,
                        struct finding_leader *out) MUST_USE;

// Find the function that gained most from the trough to the peak. ERR_NO_MEMORY.
enum err finding_gainer(const struct findings_builder *builder, struct finding_leader *out)
    MUST_USE;

// Append the moment of a memory snapshot to a sentence, as " after 3.00 s"; nothing at the start.
void finding_append_moment(struct strbuf *out, uint64_t time_ms);

// Append a call site to a sentence, as "load (app.c:12)". REC_NONE: code without a stack.
void finding_append_site(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location);

// Append that function: as its call site, or with several as "load (app.c:12 and 2 more lines)".
void finding_append_leader(const struct findings_builder *builder,
                           struct strbuf *out,
                           const struct finding_leader *leader);

// Add the findings on resident memory and on what was not seen. The selection is everything.
enum err findings_add_memory(struct findings_builder *builder) MUST_USE;

// Add the finding on huge pages that hold much that was never written.
enum err findings_add_huge(struct findings_builder *builder) MUST_USE;

// Add the findings on blocks that die young, and on those that grow step by step.
enum err findings_add_churn(struct findings_builder *builder) MUST_USE;

// Add the findings on threads and processes that hold much more than others of their kind.
enum err findings_add_uneven(struct findings_builder *builder) MUST_USE;
