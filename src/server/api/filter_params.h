// SPDX-License-Identifier: MIT
// filter_params: reads the parameters of the filter into a struct filter.
//
// They are the same on every route with a selection. Context: H.
#pragma once

#include "host/text/strbuf.h"
#include "profile/select/filter.h"
#include "server/http/problem.h"
#include "server/http/request.h"

// Read all but the time range, which depends on the recording: a comparison has two.
enum err filter_params_read(const struct request *request,
                            struct filter *filter,
                            struct problem *problem) MUST_USE;

// Read the time range, in slices of one recording.
enum err filter_params_read_time(const struct request *request,
                                 const struct recording *recording,
                                 struct filter *filter,
                                 struct problem *problem) MUST_USE;

// Report which parameter made the selection fail with `reason`, and how. problem->info describes
// the failure already. Return `reason`.
enum err
filter_params_blame(const struct request *request, enum err reason, struct problem *problem);

// Append all given filter parameters, so that the text identifies the filter.
void filter_params_append(const struct request *request, struct strbuf *out);
