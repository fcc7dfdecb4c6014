// SPDX-License-Identifier: MIT
// filter_params: reads the parameters of the filter into a struct filter.
//
// They are the same on every route with a selection. Context: H.
#pragma once

#include "host/text/strbuf.h"
#include "server/api/query.h"

// Read all but the time range, which depends on the recording: a comparison has two.
enum err filter_params_read(struct query *query, struct filter *filter) MUST_USE;

// Read the time range, in slices of one recording.
enum err filter_params_read_time(struct query *query,
                                 const struct recording *recording,
                                 struct filter *filter) MUST_USE;

// Report which parameter made the selection fail with `problem`, and how. Return `problem`.
enum err filter_params_blame(struct query *query, enum err problem);

// Append all given filter parameters, so that the text identifies the filter.
void filter_params_append(const struct request *request, struct strbuf *out);
