// SPDX-License-Identifier: MIT
// findings_cure: what helps against memory that allocators keep, with its effect.
//
// For each allocator that keeps much: by what call how much of it goes back at once, what holds the
// rest, and which setting keeps less from the start. What goes back is the recorder's figure
// (release_rules.h), where the pages and all blocks are known; in older recordings it is the pages
// without a live block. Context: H; pure.
#pragma once

#include "base/err.h"
#include "profile/findings/findings_builder.h"
#include "profile/tables/rss_breakdown.h"

// Append to a sentence on the kept memory of a split, which ends without a full stop. The advice
// that follows is sentences of its own. *out_confidence: of what is said to go back; CONFIDENCE_LOW
// if that is not known. ERR_NO_MEMORY.
enum err finding_append_cure(const struct findings_builder *builder,
                             const struct rss_breakdown_split *split,
                             struct strbuf *out,
                             enum growth_confidence *out_confidence) MUST_USE;

// Append to a sentence on memory that is not explained, which ends without a full stop: the
// allocator of an attached process that may have it, and the call that returns what is free.
void finding_append_unasked(const struct findings_builder *builder,
                            const struct rss_breakdown_split *split,
                            struct strbuf *out);
