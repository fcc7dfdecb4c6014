// SPDX-License-Identifier: MIT
// source_place: where in the program's source a call site is, for tools that show a line.
//
// That is the call site itself, or its nearest caller with a file on the heaviest stack. The frame
// of a pool has no place, nor do the functions of cairn.h and of the crate that are inlined above
// it. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/call_sites.h"
#include "profile/model/profile.h"

// Whether a location has a file of the program's own source.
bool source_place_has(const struct profile *profile, uint32_t location);

// Find the place of `site`, whose stacks are ranked by `cost`: a location, the call site's own if
// none has a file. `stack`, which may be NULL, gets the heaviest stack, a node of sites->tree, 0 if
// there is none. `sites` has stacks (call_sites_build). ERR_NO_MEMORY.
enum err source_place_of_site(const struct profile *profile,
                              const struct call_sites *sites,
                              const struct call_site *site,
                              enum cost cost,
                              uint32_t *stack,
                              uint32_t *out) MUST_USE;
