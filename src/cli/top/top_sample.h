// SPDX-License-Identifier: MIT
// top_sample: what `cairn top` knows at one moment: the answers of src/profile about one
// checkpoint.
//
// top computes no figure of the program itself. It queries the profile once for each sample and
// keeps the answers. Context: H; a sample is built by one thread and then given to another.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/call_sites.h"
#include "profile/calls/site_moment.h"
#include "profile/findings/findings.h"
#include "profile/model/profile.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"
#include "profile/time/timeline.h"

struct top_sample {
    struct profile *profile; // owned
    struct sampling sampling;
    struct selection selection;
    struct summary summary;
    struct call_sites sites;    // owned; without stacks
    struct site_moment *moment; // owned reference
    struct timeline timeline;
    struct rss_breakdown rss;
    struct findings findings;
};

// Open the recording at `path` and query it. Errors: those of input_open_profile.
enum err top_sample_open(const char *path,
                         const struct name_sources *sources,
                         struct top_sample **out,
                         struct err_info *info) MUST_USE;

// Query `profile` and take it. On failure the caller keeps it. ERR_NO_MEMORY.
enum err top_sample_take(struct profile *profile, struct top_sample **out) MUST_USE;

void top_sample_free(struct top_sample *sample); // accepts NULL
void top_sample_freep(struct top_sample **sample);

// The state of the recording in the file.
static inline uint32_t top_sample_state(const struct top_sample *sample)
{
    return sample->profile->recording.meta.state;
}

// RSS of all processes at their last samples; 0 if there is none.
uint64_t top_sample_rss_bytes(const struct top_sample *sample);

// A line about a stack of a call site: its costs, or one frame of it, innermost first. Several
// wrapper frames in a row are one line, with the outermost, as in the report.
struct top_stack_line {
    bool is_title;
    struct costs costs; // of a title
    uint32_t location;  // of a frame
    bool is_inlined;
    uint32_t inner; // further wrapper frames that the line stands for
};

DEFINE_VEC(top_stack_line_vec, struct top_stack_line);

// List the stacks of a call site with the most unfreed bytes. ERR_NO_MEMORY.
enum err top_sample_stacks(const struct top_sample *sample,
                           size_t site,
                           struct top_stack_line_vec *out) MUST_USE;
