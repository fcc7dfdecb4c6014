// SPDX-License-Identifier: MIT
// filter_params: the parameters of the filter, read into a struct filter.
//
// They are the same on every route that has a selection. Context: H.
#pragma once

#include "host/text/strbuf.h"
#include "server/api/question.h"

// Everything but the time range, which depends on the recording: a diff has two.
enum err filter_params_read(struct question *question, struct filter *filter) MUST_USE;

// The time range, in slices of one recording.
enum err filter_params_read_time(struct question *question,
                                 const struct recording *recording,
                                 struct filter *filter) MUST_USE;

// Says which parameter made the selection fail with `problem`, and how. Returns it.
enum err filter_params_blame(struct question *question, enum err problem);

// All of them as they were given, so that texts differ if filters do.
void filter_params_append(const struct request *request, struct strbuf *out);
