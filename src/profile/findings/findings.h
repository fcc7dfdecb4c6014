// SPDX-License-Identifier: MIT
// findings: what deserves attention in a recording, as ranked sentences with figures.
//
//   peak      a function holds a large share of the heap's peak; what it gained since the trough,
//             and which other one gained more
//   growth    memory of a call site grows until the end of the run
//   unfreed   much memory is live at the end and does not grow
//   churn     a function makes many temporary allocations, or grows blocks step by step
//   rss       resident memory is much larger than the live heap, and which part is
//   sparse    few blocks keep many pages of the heap resident (fragmentation)
//   huge      huge pages hold much that was never written
//   uneven    a thread or process holds much more than its siblings
//   unseen    a process has a heap that cairn does not see
//   oom       the kernel killed a process for lack of memory: the limit, the heap, and who held it.
//             It is before all others
//
// A finding is made only above the limits in findings.c and findings_churn.c. These are in bytes
// and shares, so that a healthy program has none but that of its peak. Findings are ranked by the
// bytes that they are about. Growth counts with what it would add in a minute, or in the length of
// the run if that is less. Temporary bytes, moved bytes, settled memory and estimates of resident
// memory count with a part. Findings of one kind that point to the same view answer the same
// question. The first answer to each question comes before the second to any, so that three leaks
// do not hide why RSS is high. Growth and unfreed memory are not judged in runs of less than a
// second: such programs need not free anything. A figure of a sampled recording is followed by its
// error.
// Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/findings/peak_rise.h"
#include "profile/growth/growth.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"

enum finding_kind {
    FINDING_PEAK,
    FINDING_GROWTH,
    FINDING_UNFREED,
    FINDING_CHURN,
    FINDING_RSS,
    FINDING_SPARSE,
    FINDING_HUGE,
    FINDING_UNEVEN,
    FINDING_UNSEEN,
    FINDING_OOM,
    FINDING_KIND_COUNT,
};

struct finding {
    enum finding_kind kind;
    enum growth_confidence confidence;
    uint32_t location;    // call site, in the code index; REC_NONE: none
    uint32_t pid;         // of the process or thread that it is about; 0: none
    uint32_t thread_id;   // of that thread; 0: none
    uint64_t bytes;       // that the finding is about
    uint64_t whole_bytes; // that they are a part of: peak, leaked, allocated or resident bytes
    uint64_t blocks;      // or allocations; 0 if unknown
    // Two standard errors of these estimates (sampling_errors); 0 if they are exact or unknown.
    uint64_t bytes_error;
    uint64_t whole_bytes_error;
    uint64_t blocks_error;
    bool is_lower_limit; // bytes and blocks are of the recorded blocks alone
    double bytes_per_s;  // growth; else 0
    double bytes_per_s_error;
    uint64_t score;   // ranks the findings, after repeats
    uint32_t repeats; // number of higher findings that answer the same question
    size_t sentence;  // offset in findings.texts
    const char *look; // arguments of `cairn report` that show more; static
};

DEFINE_VEC(finding_vec, struct finding);

struct findings {
    struct finding_vec items; // owned; most important first
    struct strbuf texts;      // owned
    struct row_groups groups; // owned; by call site, without stacks
    struct peak_rise rise;    // owned; by group; empty for a part of a recording
};

// Find what deserves attention in the selection, whose summary and RSS breakdown these are. The
// breakdown is only read if the selection is everything. ERR_NO_MEMORY.
enum err findings_build(const struct selection *selection,
                        const struct summary *summary,
                        const struct rss_breakdown *breakdown,
                        struct findings *out) MUST_USE;
// The same, with an RSS breakdown that is built for it if the selection is everything.
enum err findings_of(const struct selection *selection,
                     const struct summary *summary,
                     struct findings *out) MUST_USE;
void findings_release(struct findings *findings);

// One or more English sentences. Names are the recording's, not made safe.
static inline const char *findings_sentence(const struct findings *findings,
                                            const struct finding *finding)
{
    return strbuf_text(&findings->texts) + finding->sentence;
}

// "peak", "growth", ...: the name in JSON and in the report. Static.
const char *finding_kind_name(enum finding_kind kind);
