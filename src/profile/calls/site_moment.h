// SPDX-License-Identifier: MIT
// site_moment: what each call site had at one moment of a run, to compare with a later moment.
//
//   recording at 10 s --site_moment_build--> moment --+
//   recording at 12 s --site_moment_build--> moment --+--> change and rate of each call site
//
// Ids of call sites are valid in one profile only. A moment identifies a site by its function,
// file, line and module, so it needs no profile, and costs some hundred bytes for each site.
// Live bytes are those of processes that have not left the heap (process_lives.h). So they are less
// than the leaked bytes of the same site if an ended process left blocks behind.
// Moments are shared by counted references. Context: H; one thread at a time.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/call_sites.h"

struct site_figures {
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t allocations; // since the start, as are the next
    uint64_t temporary;
    uint64_t allocated_bytes;
    struct sampled_sizes sizes; // of the allocations
};

DEFINE_VEC(site_figures_vec, struct site_figures);

struct site_moment {
    unsigned references;
    uint64_t time_ms;
    struct string_table names;       // owned; of the sites
    struct site_figures_vec figures; // owned; by id in `names`
    struct u32_vec ids;              // owned; by call site of the profile: id in `names`
    struct site_figures total;       // of the whole selection
};

// Build the moment of a recording's end. `sites` must come from call_sites_build_alone of the same
// selection. The caller receives the only reference. ERR_NO_MEMORY.
enum err site_moment_build(const struct selection *selection,
                           const struct call_sites *sites,
                           struct site_moment **out) MUST_USE;

struct site_moment *site_moment_ref(struct site_moment *moment);
void site_moment_unref(struct site_moment *moment); // accepts NULL

// The figures of a call site at its own moment.
static inline struct site_figures site_moment_get(const struct site_moment *moment, size_t site)
{
    return moment->figures.items[moment->ids.items[site]];
}

// The figures that call site `site` of `later` had at an earlier moment; all 0 if it had none.
struct site_figures site_moment_earlier(const struct site_moment *earlier,
                                        const struct site_moment *later,
                                        size_t site);

// Two standard errors of each figure; 0 if it is exact or its error unknown.
struct site_figures site_figures_error(const struct sampling *sampling,
                                       const struct site_figures *figures);

// The same of what happened between two moments of one run: the change of live bytes, and how many
// were allocated. The change has no error from blocks that are live at both.
uint64_t site_change_error(const struct sampling *sampling,
                           const struct site_figures *earlier,
                           const struct site_figures *later);
uint64_t site_allocations_error(const struct sampling *sampling,
                                const struct site_figures *earlier,
                                const struct site_figures *later);
