// SPDX-License-Identifier: MIT
// findings_builder: findings in the making: what findings.c and the files findings_* share.
//
// A finding begins with its sentence, which is written to builder->out.texts, and is added when the
// sentence is complete. Context: H.
#pragma once

#include "profile/findings/findings.h"

struct findings_builder {
    const struct selection *selection;     // borrowed
    const struct summary *summary;         // borrowed
    const struct rss_breakdown *breakdown; // borrowed
    struct findings out;                   // owned until returned
};

// Begin the sentence of the next finding.
struct strbuf *finding_begin(struct findings_builder *builder, struct finding *finding);
enum err finding_add(struct findings_builder *builder, const struct finding *finding) MUST_USE;

// The function with the most of a cost over all its call sites.
struct finding_leader {
    struct costs costs;
    uint32_t group; // its largest call site; REC_NONE: there is none
    uint64_t gained;
};

// Find that function for `cost`. ERR_NO_MEMORY.
enum err finding_leader(const struct findings_builder *builder,
                        enum cost cost,
                        struct finding_leader *out) MUST_USE;

// Append a call site to a sentence, as "load (app.c:12)". REC_NONE: code without a stack.
void finding_append_site(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location);

// Add the findings on resident memory and on what was not seen. The selection is everything.
enum err findings_add_memory(struct findings_builder *builder) MUST_USE;

// Add the findings on blocks that die young, and on those that grow step by step.
enum err findings_add_churn(struct findings_builder *builder) MUST_USE;

// Add the findings on threads and processes that hold much more than others of their kind.
enum err findings_add_uneven(struct findings_builder *builder) MUST_USE;
